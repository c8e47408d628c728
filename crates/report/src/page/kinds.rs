//! What only some kinds of run have, as tables for the page: handshakes, kept connections, a script's checks and metrics, a replay.
//!
//! Owns: which figures of a kind are shown, in words. Never: how a table looks.

use serde::Serialize;
use squall_measure::{CloseCount, RunRecord, ScriptFigures, ScriptMetric, ScriptUnit, ScriptValue};

use crate::replay::{comparison_facts, fidelity_facts};
use crate::sessions::kept_facts;
use crate::streams::stream_facts;
use crate::summary::{
    Distribution, HandshakeSummary, IdleConnections, ReplaySummary, StreamSummary, Summary, Totals,
    WebSocketSummary,
};
use crate::terminal::{alt_svc_facts, http2_facts, quic_facts};
use crate::websockets::{closer, message_facts};
use crate::{units, wording};

/// A table of a kind of run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactBlock {
    /// Above it.
    pub title: &'static str,
    /// Whether it is what the run was made for: then it comes before the charts.
    pub is_headline: bool,
    /// Names of its columns, of which the first names a row.
    pub head: Vec<&'static str>,
    /// Cells in words.
    pub rows: Vec<Vec<String>>,
    /// How many of the last columns are figures.
    pub figure_count: usize,
}

/// All blocks that a run has something for.
pub(super) fn blocks(record: &RunRecord, summary: &Summary) -> Vec<FactBlock> {
    let totals = &summary.totals;
    let mut blocks = Vec::new();
    blocks.extend(totals.handshakes.iter().flat_map(of_handshakes));
    blocks.extend(totals.idle_connections.iter().map(of_kept));
    blocks.extend(totals.streams.iter().flat_map(of_streams));
    blocks.extend(totals.websockets.iter().flat_map(of_websockets));
    blocks.extend(totals.replay.iter().flat_map(of_replay));
    let script = record.total.script.as_deref();
    blocks.extend(script.into_iter().flat_map(|script| of_script(script, summary.duration_s)));
    blocks.extend(of_protocols(totals));
    blocks.retain(|block| !block.rows.is_empty());
    blocks
}

fn of_handshakes(made: &HandshakeSummary) -> [FactBlock; 2] {
    let row = |name: &str, count: u64, times: &Distribution| {
        let share = units::percent(count as f64 / made.count.max(1) as f64);
        [vec![name.to_owned(), units::count(count), share], times_of(times)].concat()
    };
    let kinds = [("full", made.full, &made.full_us), ("resumed", made.resumed, &made.resumed_us)];
    let rows =
        kinds.iter().filter(|(_, count, _)| *count > 0).map(|(name, count, times)| row(name, *count, times));
    let handshakes = FactBlock {
        title: "Handshakes",
        is_headline: true,
        head: [&["kind", "count", "share"][..], &TIMES].concat(),
        rows: rows.collect(),
        figure_count: 2 + TIMES.len(),
    };
    let terms = made.negotiated.iter().map(|one| {
        let terms = &one.terms;
        let certificates = match terms.chain_count {
            0 => "none".to_owned(),
            count => format!("{count} of {}", units::bytes(u64::from(terms.chain_bytes))),
        };
        let words = [&terms.version, &terms.cipher, &terms.group, &terms.alpn].map(|word| or_dash(word));
        [words.to_vec(), vec![certificates, units::count(one.count)]].concat()
    });
    let negotiated = FactBlock {
        title: "Negotiated",
        is_headline: true,
        head: vec!["version", "cipher suite", "group", "ALPN", "certificates", "count"],
        rows: terms.collect(),
        figure_count: 1,
    };
    [handshakes, negotiated]
}

fn of_kept(kept: &IdleConnections) -> FactBlock {
    facts("Kept connections", kept_facts(kept))
}

fn of_streams(streams: &StreamSummary) -> [FactBlock; 2] {
    let row = |name: &str, times: &Distribution| {
        [vec![name.to_owned(), units::count(times.count)], times_of(times)].concat()
    };
    let times = [("first event", &streams.first_event_us), ("gap between events", &streams.event_gap_us)];
    let rows = times.iter().filter(|(_, times)| times.count > 0).map(|(name, times)| row(name, times));
    let events = FactBlock {
        title: "Events",
        is_headline: true,
        head: [&["time", "count"][..], &TIMES].concat(),
        rows: rows.collect(),
        figure_count: 1 + TIMES.len(),
    };
    [events, facts("Streams", stream_facts(streams))]
}

fn of_websockets(made: &WebSocketSummary) -> [FactBlock; 3] {
    let row = |name: &str, times: &Distribution| {
        [vec![name.to_owned(), units::count(times.count)], times_of(times)].concat()
    };
    let latency = (made.latency_us.count > 0).then(|| row("latency", &made.latency_us));
    let service = made.service_us.as_ref().map(|times| row("service time", times));
    let times = FactBlock {
        title: "Message latency",
        is_headline: true,
        head: [&["time", "messages"][..], &TIMES].concat(),
        rows: latency.into_iter().chain(service).collect(),
        figure_count: 1 + TIMES.len(),
    };
    [times, facts("Messages", message_facts(made)), of_closes(&made.closes)]
}

fn of_closes(closes: &[CloseCount]) -> FactBlock {
    let row = |row: &CloseCount| {
        let close = &row.close;
        vec![
            close.code.to_string(),
            closer(close.by).to_owned(),
            or_dash(&close.reason),
            units::count(row.count),
        ]
    };
    FactBlock {
        title: "Closes",
        is_headline: true,
        head: vec!["code", "closed by", "reason", "count"],
        rows: closes.iter().map(row).collect(),
        figure_count: 1,
    }
}

fn of_replay(replay: &ReplaySummary) -> [FactBlock; 3] {
    let shown = if replay.compared > 0 { comparison_facts(replay) } else { Vec::new() };
    let corrected = (replay.corrected > 0)
        .then(|| format!("{} with live values", units::counted(replay.corrected, "request")));
    let differences = replay.differences.iter().map(|one| {
        let status = |code: u16| code.to_string();
        let now = if one.recorded_status == one.live_status {
            "different body".to_owned()
        } else {
            status(one.live_status)
        };
        vec![one.request.clone(), status(one.recorded_status), now, units::count(one.count)]
    });
    let learned = replay
        .learned
        .iter()
        .map(|one| vec![one.place.clone(), one.source.clone(), units::count(one.use_count)]);
    [
        facts("Replay", fidelity_facts(replay).into_iter().chain(shown).chain(corrected).collect()),
        FactBlock {
            title: "Answered differently",
            is_headline: false,
            head: vec!["request", "recorded", "now", "count"],
            rows: differences.take(ROW_COUNT_MAX).collect(),
            figure_count: 3,
        },
        FactBlock {
            title: "Learned",
            is_headline: false,
            head: vec!["value", "of the answer to", "used in requests"],
            rows: learned.take(ROW_COUNT_MAX).collect(),
            figure_count: 1,
        },
    ]
}

fn of_script(script: &ScriptFigures, duration_s: f64) -> [FactBlock; 2] {
    let checks = script.checks.iter().map(|check| {
        let sign = if check.fails == 0 { "✓" } else { "✗" };
        let place = check.group.trim_start_matches("::").replace("::", " › ");
        let counts = [units::percent(check.share()), units::count(check.passes), units::count(check.fails)];
        [vec![format!("{sign} {}", check.name), or_dash(&place)], counts.to_vec()].concat()
    });
    let metrics = script.metrics.iter().filter(|metric| !metric.value.is_empty());
    [
        FactBlock {
            title: "Checks",
            is_headline: true,
            head: vec!["check", "group", "held", "passes", "fails"],
            rows: checks.collect(),
            figure_count: 3,
        },
        FactBlock {
            title: "Metrics of the script",
            is_headline: false,
            head: vec!["metric", "figures"],
            rows: metrics.take(ROW_COUNT_MAX).map(|metric| metric_row(metric, duration_s)).collect(),
            figure_count: 0,
        },
    ]
}

fn metric_row(metric: &ScriptMetric, duration_s: f64) -> Vec<String> {
    let text = |value: f64| in_unit(value, metric.contains);
    let figures = match &metric.value {
        ScriptValue::Counter { sum, .. } if duration_s > 0.0 => {
            format!("{} · {}/s", text(*sum), text(sum / duration_s))
        }
        ScriptValue::Counter { sum, .. } => text(*sum),
        ScriptValue::Gauge { last, min, max, .. } => {
            format!("{} · min {} · max {}", text(*last), text(*min), text(*max))
        }
        ScriptValue::Rate { trues, total } => {
            let share = units::percent(*trues as f64 / (*total).max(1) as f64);
            format!("{share} · {} of {}", units::count(*trues), units::count(*total))
        }
        ScriptValue::Trend(trend) => {
            let [p90, p95] = [0.9, 0.95].map(|q| text(trend.quantile(q)));
            let [mean, min, max] = [trend.mean(), trend.min(), trend.max()].map(text);
            format!(
                "avg {mean} · min {min} · med {} · p90 {p90} · p95 {p95} · max {max}",
                text(trend.quantile(0.5))
            )
        }
    };
    vec![metric.full_name(), figures]
}

/// k6 counts times in milliseconds.
fn in_unit(value: f64, unit: ScriptUnit) -> String {
    match unit {
        ScriptUnit::Time => units::latency((value.max(0.0) * 1e6).round() as u64),
        ScriptUnit::Data => units::bytes(value.max(0.0).round() as u64),
        ScriptUnit::Default if value.fract() == 0.0 && value >= 0.0 => units::count(value as u64),
        ScriptUnit::Default => format!("{value:.2}"),
    }
}

/// What connections of HTTP/2, HTTP/3 and QUIC did, in the words of the terminal.
fn of_protocols(totals: &Totals) -> impl Iterator<Item = FactBlock> {
    let http2 = totals.http2.iter().map(|http2| facts("HTTP/2", http2_facts(http2).into()));
    let http3 = totals.http3.iter().map(|http3| facts("HTTP/3", http2_facts(http3).into()));
    let quic = totals.quic.iter().map(|quic| facts("QUIC", quic_facts(quic)));
    let alt_svc = totals.alt_svc.iter().map(|alt_svc| facts("Alt-Svc", alt_svc_facts(alt_svc)));
    let blocks = http2.chain(http3).chain(quic).chain(alt_svc);
    blocks.map(|block| FactBlock { is_headline: false, ..block })
}

/// One line of words for each fact.
fn facts(title: &'static str, facts: Vec<String>) -> FactBlock {
    let rows = facts.into_iter().map(|fact| vec![fact]).collect();
    FactBlock { title, is_headline: true, head: vec!["fact"], rows, figure_count: 0 }
}

fn times_of(times: &Distribution) -> Vec<String> {
    [times.p50, times.p90, times.p99, times.p99_9, times.max].map(wording::time).to_vec()
}

fn or_dash(word: &str) -> String {
    if word.is_empty() { "–".to_owned() } else { word.to_owned() }
}

const TIMES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

/// More rows are in the JSON.
const ROW_COUNT_MAX: usize = 100;
