//! The parts of a run that have figures of their own: steps, loads and machines of a plan, foreign tools, and what was watched.

use std::collections::BTreeMap;

use serde::Serialize;
use squall_measure::{
    Cause, Event, Monitor, MonitorUnit, PartKind, PhaseSums, RunRecord, SeriesPoint, Snapshot, Status,
    ToolRun,
};

use super::{Distribution, LoadKind, rate_per_s, three_decimals};

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
    /// What a load makes; null of steps and machines, whose loads may make different things.
    pub makes: Option<LoadKind>,
    /// Requests (or what else it made) that were begun.
    pub requests: u64,
    /// Those that ended, per second of its measured time.
    pub rate_per_s: f64,
    /// What became of them.
    #[serde(flatten)]
    pub figures: Figures,
    /// Facts about it, by name.
    pub facts: BTreeMap<String, String>,
}

/// What one machine made of one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShareSummary {
    /// The load's name.
    pub load: String,
    /// The machine's name.
    pub machine: String,
    /// What the load makes.
    pub makes: Option<LoadKind>,
    /// When the load began, in seconds after the run's start.
    pub at_s: f64,
    /// Length of the load's measured time.
    pub duration_s: f64,
    /// Those that ended, per second of that time.
    pub rate_per_s: f64,
    /// What became of them; percentiles within 0.8 %.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The figures that a load, a machine, a step and a load on a machine have alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Those that ended well.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those cut off by the run's end.
    pub interrupted: u64,
    /// Open model: those that the schedule asked for.
    pub asked: u64,
    /// Bytes read from sockets, below TLS.
    pub bytes_received: u64,
    /// Bytes written to sockets, below TLS.
    pub bytes_sent: u64,
    /// The most connections that were open at the end of a second.
    pub connections_open_max: u64,
    /// Of those that ended well.
    pub latency_us: Distribution,
    /// Messages on WebSockets, or events of streams, that came; only where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Latency of these messages, or times to the first event of streams; percentiles within 0.8 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_latency_us: Option<Distribution>,
    /// The phases of those that ended well, each as its mean over all of them; null where none did.
    pub phases_mean_us: Option<PhaseMeans>,
    /// Failures by cause.
    pub failures: BTreeMap<Cause, u64>,
}

/// Means over all successes, those without the phase included: so they add up to the mean latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseMeans {
    /// From the intended start until a connection was there to use.
    pub blocked: f64,
    /// TCP connects.
    pub connecting: f64,
    /// TLS handshakes.
    pub tls_handshaking: f64,
    /// Writing.
    pub sending: f64,
    /// From the last byte written to the first byte read.
    pub waiting: f64,
    /// From the first byte read to the last.
    pub receiving: f64,
}

impl From<&Snapshot> for Figures {
    fn from(total: &Snapshot) -> Self {
        let mut failures = BTreeMap::new();
        for kind in total.failures.kinds() {
            *failures.entry(kind.cause).or_default() += kind.count;
        }
        let mut came = SeriesPoint::default();
        // Where a step or a machine has both messages and events, no figure adds them up.
        if total.websockets.is_some() != total.streams.is_some() {
            came.add_received(total);
        }
        Self {
            ok: total.ok(),
            failed: total.failed(),
            interrupted: total.interrupted(),
            asked: total.arrivals_asked,
            bytes_received: total.wire_bytes_received,
            bytes_sent: total.wire_bytes_sent,
            connections_open_max: total.generator.connections_open,
            latency_us: Distribution::from(total.latency().as_ref()),
            received: received(&came),
            received_latency_us: received_latency(&came),
            phases_mean_us: PhaseMeans::new(&PhaseSums::from(&total.phases), total.ok()),
            failures,
        }
    }
}

impl From<&SeriesPoint> for Figures {
    fn from(total: &SeriesPoint) -> Self {
        Self {
            ok: total.ok,
            failed: total.failed,
            interrupted: total.interrupted,
            asked: total.asked,
            bytes_received: total.wire_bytes_received,
            bytes_sent: total.wire_bytes_sent,
            connections_open_max: total.connections_open,
            latency_us: Distribution::from(&total.latency),
            received: received(total),
            received_latency_us: received_latency(total),
            phases_mean_us: PhaseMeans::new(&total.phases, total.ok),
            failures: total.failures.iter().copied().collect(),
        }
    }
}

fn received(point: &SeriesPoint) -> Option<u64> {
    (point.received > 0).then_some(point.received)
}

fn received_latency(point: &SeriesPoint) -> Option<Distribution> {
    received(point).map(|_| Distribution::from(&point.received_latency))
}

impl Figures {
    /// Those that ended well or not, per second.
    pub(crate) fn rate_per_s(&self, duration_s: f64) -> f64 {
        rate_per_s(self.ok + self.failed, duration_s)
    }
}

impl PhaseMeans {
    fn new(sums: &PhaseSums, count: u64) -> Option<Self> {
        let mean = |sum: std::time::Duration| three_decimals(sum.as_secs_f64() * 1e6 / count as f64);
        (count > 0).then(|| Self {
            blocked: mean(sums.blocked),
            connecting: mean(sums.connecting),
            tls_handshaking: mean(sums.tls_handshaking),
            sending: mean(sums.sending),
            waiting: mean(sums.waiting),
            receiving: mean(sums.receiving),
        })
    }
}

/// A watched figure, without its samples, which `run.json` has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorSummary {
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
    let part = |part: &squall_measure::Part| {
        let is_load = part.kind == PartKind::Load;
        let (figures, duration_s) = (Figures::from(&part.total), part.duration.as_secs_f64());
        Part {
            kind: part.kind,
            name: part.name.clone(),
            at_s: part.at_s,
            duration_s,
            problem: part.problem.clone(),
            verdict: part.verdict.status,
            makes: LoadKind::of_named(&record.plan, &part.name).filter(|_| is_load),
            requests: part.total.requests_started,
            rate_per_s: figures.rate_per_s(duration_s),
            figures,
            facts: part.facts.clone(),
        }
    };
    record.parts.iter().map(part).collect()
}

/// What each machine made of each load.
pub(super) fn shares(record: &RunRecord) -> Vec<ShareSummary> {
    let share = |share: &squall_measure::Share| {
        let is_own = |part: &&squall_measure::Part| part.kind == PartKind::Load && part.name == share.load;
        let load = record.parts.iter().find(is_own);
        let duration_s = load.map_or(record.duration, |load| load.duration).as_secs_f64();
        let figures = Figures::from(&share.series.total());
        ShareSummary {
            load: share.load.clone(),
            machine: share.machine.clone(),
            makes: LoadKind::of_named(&record.plan, &share.load),
            at_s: share.at_s,
            duration_s,
            rate_per_s: figures.rate_per_s(duration_s),
            figures,
        }
    };
    record.shares.iter().map(share).collect()
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
pub(super) fn monitors(record: &RunRecord) -> Vec<MonitorSummary> {
    let watched = |monitor: &Monitor| {
        let values = || monitor.samples.iter().map(|&(_, value)| value);
        MonitorSummary {
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
