//! What the terminal says of a replay: how true it was to its times, what differed, what was learned.

use crate::summary::ReplaySummary;
use crate::{units, wording};

/// `98,765 on time   1,235 late   late p99 1.2 ms   0 skipped`
pub(crate) fn fidelity_facts(replay: &ReplaySummary) -> Vec<String> {
    let mut facts = Vec::new();
    if replay.lateness_us.count > 0 {
        facts.push(format!("{} on time (within 2 ms)", units::count(replay.on_time)));
        facts.push(format!("{} late", units::count(replay.late)));
        facts.push(format!("p99 {} late", wording::time(replay.lateness_us.p99)));
    }
    let rare = [(replay.skipped, "never sent"), (replay.unreadable, "unreadable")];
    facts.extend(
        rare.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{} {name}", units::count(*count))),
    );
    facts
}

/// `1,000 as recorded   2 not`
pub(crate) fn comparison_facts(replay: &ReplaySummary) -> Vec<String> {
    vec![
        format!("{} as recorded", units::count(replay.same)),
        format!("{} not", units::count(replay.compared - replay.same)),
    ]
}

/// One line for each kind of difference: `12   GET http://x/a: recorded 200, now 404`.
pub(crate) fn difference_lines(replay: &ReplaySummary) -> Vec<String> {
    let line = |one: &crate::summary::ReplayDifference| match one.recorded_status == one.live_status {
        true => format!("{} x {}: different body", units::count(one.count), one.request),
        false => format!(
            "{} x {}: recorded {}, now {}",
            units::count(one.count),
            one.request,
            one.recorded_status,
            one.live_status
        ),
    };
    replay.differences.iter().take(LINE_COUNT_MAX).map(line).collect()
}

/// One line for each learned value: `cookie sid of POST http://x/login, in 12 requests`.
pub(crate) fn learned_lines(replay: &ReplaySummary) -> Vec<String> {
    let line = |one: &squall_measure::LearnedValue| {
        format!("{} of {}, in {}", one.place, one.source, units::counted(one.use_count, "request"))
    };
    let mut lines: Vec<String> = replay.learned.iter().take(LINE_COUNT_MAX).map(line).collect();
    if replay.learned.len() > LINE_COUNT_MAX {
        lines.push(format!("and {} more", replay.learned.len() - LINE_COUNT_MAX));
    }
    lines
}

/// Lines of a kind that are shown; all are in the JSON.
const LINE_COUNT_MAX: usize = 8;
