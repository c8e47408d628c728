//! The parts of a run that have figures of their own: steps, loads and machines of a plan, foreign tools, and what was watched.

use std::collections::BTreeMap;

use serde::Serialize;
use squall_measure::{Event, Monitor, MonitorUnit, PartKind, RunRecord, Status, ToolRun};

use super::{Distribution, rate_per_s, three_decimals};

/// A step, a load or a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What it is a part of.
    pub kind: PartKind,
    /// Its name in the plan.
    pub name: String,
    /// When it began, in seconds after the run's start.
    pub at_s: f64,
    /// Length of its measured time.
    pub duration_s: f64,
    /// Why it ended before its time, where it did.
    pub problem: Option<String>,
    /// Whether its figures can be believed.
    pub verdict: Status,
    /// Requests (or what else it made) that were begun.
    pub requests: u64,
    /// Those that ended well.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that ended, per second of its own time.
    pub rate_per_s: f64,
    /// Of those that ended well.
    pub latency_us: Distribution,
    /// Facts about it, by name.
    pub facts: BTreeMap<String, String>,
}

/// A watched figure, without its samples, which `run.json` has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Watched {
    /// Who it is about.
    pub source: String,
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: MonitorUnit,
    /// The least value.
    pub min: f64,
    /// The mean of the values.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// The last value.
    pub last: f64,
}

/// The parts of a record.
pub(super) fn parts(record: &RunRecord) -> Vec<Part> {
    let part = |part: &squall_measure::Part| Part {
        kind: part.kind,
        name: part.name.clone(),
        at_s: part.at_s,
        duration_s: part.duration.as_secs_f64(),
        problem: part.problem.clone(),
        verdict: part.verdict.status,
        requests: part.total.requests_started,
        ok: part.total.ok(),
        failed: part.total.failed(),
        rate_per_s: rate_per_s(part.total.ok() + part.total.failed(), part.duration.as_secs_f64()),
        latency_us: Distribution::from(part.total.latency().as_ref()),
        facts: part.facts.clone(),
    };
    record.parts.iter().map(part).collect()
}

/// A span of time, in seconds after the run's start, and how many there are of something in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) from_s: f64,
    pub(crate) until_s: f64,
    pub(crate) count: u64,
}

/// The most at any moment.
pub(crate) fn most_at_once(spans: &[Span]) -> u64 {
    let at = |moment_s: f64| {
        let is_there =
            |span: &&Span| span.from_s == moment_s || span.from_s < moment_s && moment_s < span.until_s;
        spans.iter().filter(is_there).map(|span| span.count).sum()
    };
    spans.iter().map(|span| at(span.from_s)).max().unwrap_or(0)
}

/// How long it is in any of the spans, in seconds.
pub(crate) fn length_s(spans: &[Span]) -> f64 {
    let mut spans = spans.to_vec();
    spans.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let (mut length_s, mut reached_s) = (0.0, 0.0_f64);
    for span in spans {
        length_s += (span.until_s - span.from_s.max(reached_s)).max(0.0);
        reached_s = reached_s.max(span.until_s);
    }
    length_s
}

/// What was watched.
pub(super) fn monitors(record: &RunRecord) -> Vec<Watched> {
    let watched = |monitor: &Monitor| {
        let values = || monitor.samples.iter().map(|&(_, value)| value);
        Watched {
            source: monitor.source.clone(),
            name: monitor.name.clone(),
            unit: monitor.unit,
            min: three_decimals(values().fold(f64::INFINITY, f64::min)),
            mean: three_decimals(values().sum::<f64>() / monitor.samples.len() as f64),
            max: three_decimals(values().fold(f64::NEG_INFINITY, f64::max)),
            last: three_decimals(monitor.last().unwrap_or_default()),
        }
    };
    record.monitors.iter().filter(|monitor| !monitor.samples.is_empty()).map(watched).collect()
}

/// Marked moments.
pub(super) fn events(record: &RunRecord) -> Vec<Event> {
    record.events.clone()
}

/// What foreign tools did.
pub(super) fn tools(record: &RunRecord) -> Vec<ToolRun> {
    record.tools.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_add_up_where_they_overlap_and_only_there() {
        let span = |from_s, until_s, count| Span { from_s, until_s, count };
        for (spans, most, length) in [
            (vec![], 0, 0.0),
            (vec![span(0.0, 2.0, 5)], 5, 2.0),
            (vec![span(0.0, 2.0, 5), span(3.0, 4.0, 20)], 20, 3.0),
            (vec![span(3.0, 8.0, 4), span(0.0, 2.0, 5), span(5.0, 6.0, 2)], 6, 7.0),
        ] {
            assert_eq!((most_at_once(&spans), length_s(&spans)), (most, length), "{spans:?}");
        }
    }
}
