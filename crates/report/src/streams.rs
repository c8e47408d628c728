//! What the terminal and the page say of streams of events.

use crate::summary::{Distribution, StreamSummary};
use crate::{units, wording};

/// `12 000 total   1 200/s   first event p50 12.1 ms   gap p50 …`
pub(crate) fn event_facts(streams: &StreamSummary) -> Vec<String> {
    let mut facts = vec![
        format!("{} total", units::count(streams.events)),
        units::rate(streams.events_per_s),
        format!("{}/s", units::bytes(streams.event_bytes_per_s.round() as u64)),
    ];
    facts.extend(times("first event", &streams.first_event_us));
    facts.extend(times("gap", &streams.event_gap_us));
    facts
}

/// `100 opened   90 good of 95 (94.7 %)   3 ended early …`
pub(crate) fn stream_facts(streams: &StreamSummary) -> Vec<String> {
    let mut facts = vec![format!("{} opened", units::count(streams.opened))];
    if let (Some(good), Some(judged), Some(per_s)) = (streams.good, streams.judged, streams.goodput_per_s) {
        let share = units::percent(good as f64 / judged.max(1) as f64);
        facts.push(format!("{} of {} good ({share})", units::count(good), units::count(judged)));
        facts.push(format!("goodput {}", units::rate(per_s)));
    }
    let rare = [
        (streams.ended_early, "ended early"),
        (streams.closed_by_us, "open at the end"),
        (streams.reconnects, "opened again"),
        (streams.comments, "comments"),
    ];
    let rare = rare.iter().filter(|(count, _)| *count > 0);
    facts.extend(rare.map(|(count, name)| format!("{} {name}", units::count(*count))));
    facts
}

fn times(name: &str, times: &Distribution) -> Option<String> {
    let of = wording::time;
    (times.count > 0)
        .then(|| format!("{name} p50 {}, p95 {}, p99 {}", of(times.p50), of(times.p95), of(times.p99)))
}
