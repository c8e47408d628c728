//! The figures of a moment by name, label and value: the one source of all outputs.
//!
//! Names, labels and units are those of k6's Prometheus output where it has the figure, so that its dashboards work unchanged:
//! counters end in `_total`, times are in seconds. What k6 does not have begins with `squall_`.

mod messages;
mod script;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use squall_measure::{Histogram, Row, RowKey, RunRecord, RunRecorder, SeriesPoint, Snapshot, Status};
use squall_plan::Plan;

/// All figures at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// Milliseconds since 1970.
    pub(crate) unix_ms: u64,
    /// When the run started, in milliseconds since 1970.
    pub(crate) started_unix_ms: u64,
    /// Every figure; those of one name stand together.
    pub(crate) figures: Vec<OutputFigure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputFigure {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: OutputKind,
    pub(crate) unit: FigureUnit,
    pub(crate) help: &'static str,
    /// Sorted by name.
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: f64,
}

/// How a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// What a figure's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FigureUnit {
    /// A number or a share.
    Number,
    Seconds,
}

/// What the figures are made of, of a run under way or at its end.
struct Source<'a> {
    plan: &'a Plan,
    rows: &'a [RowKey],
    total: &'a Snapshot,
    second: &'a SeriesPoint,
    status: Status,
}

impl Moment {
    /// The figures of a run as they are now.
    pub(crate) fn of_recorder(recorder: &RunRecorder) -> Self {
        let (setup, none) = (recorder.setup(), SeriesPoint::default());
        let source = Source {
            plan: &setup.plan,
            rows: &setup.rows,
            total: recorder.total(),
            second: recorder.last_second().unwrap_or(&none),
            status: recorder.verdict().status,
        };
        Self::new(setup.started_unix_ms, recorder.elapsed(), &source)
    }

    /// The figures of a run that has ended; the moment before was sent at `told_at` of its time. A plan's measured time leaves its
    /// pauses out, so it may end before that, and systems refuse what is not newer.
    pub(crate) fn of_record(record: &RunRecord, told_at: Duration) -> Self {
        let end = record.plan.warmup + record.duration;
        let none = SeriesPoint::default();
        let second = record.series.points.last().unwrap_or(&none);
        let source = Source {
            plan: &record.plan,
            rows: &record.rows,
            total: &record.total,
            second,
            status: record.verdict.status,
        };
        Self::new(record.started_unix_ms, end.max(told_at + Duration::from_millis(1)), &source)
    }

    fn new(started_unix_ms: u64, elapsed: Duration, source: &Source<'_>) -> Self {
        let of_script = source.total.script.as_deref().map(script::of_script).unwrap_or_default();
        // A script counts as k6 does; where it is a part of the run only, what the run has is of all parts.
        let is_all = source.plan.loads.iter().all(|load| load.what.is_script());
        let mut figures = if is_all {
            overridden(of_run(source), of_script)
        } else {
            overridden(of_script, of_run(source))
        };
        figures.extend(of_rows(source));
        figures.sort_by(|a, b| a.name.cmp(&b.name));
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Self { unix_ms: started_unix_ms.saturating_add(elapsed_ms), started_unix_ms, figures }
    }

    /// When, in nanoseconds since 1970.
    pub(crate) fn unix_ns(&self) -> u128 {
        u128::from(self.unix_ms) * 1_000_000
    }
}

/// Both, without the first ones whose names the others have.
fn overridden(mut figures: Vec<OutputFigure>, others: Vec<OutputFigure>) -> Vec<OutputFigure> {
    let names: BTreeSet<&str> = others.iter().map(|other| &*other.name).collect();
    figures.retain(|figure| !names.contains(&*figure.name));
    figures.extend(others);
    figures
}

fn of_run(source: &Source<'_>) -> Vec<OutputFigure> {
    let mut figures = always(source);
    if source.total.open_model {
        figures.extend(of_schedule(source));
    }
    figures.extend(of_failures(source.total));
    figures.extend(of_phases(source.total));
    figures.extend(messages::of_messages(source.total));
    figures
}

/// What every run has.
fn always(source: &Source<'_>) -> Vec<OutputFigure> {
    let Source { total, second, status, .. } = source;
    let failed = total.failed() as f64 / (total.ok() + total.failed()).max(1) as f64;
    let verdict = match status {
        Status::Valid => 0.0,
        Status::Suspect => 1.0,
        Status::Invalid => 2.0,
    };
    let (open, waiting) = (second.connections_open as f64, second.arrivals_waiting as f64);
    vec![
        counter("k6_data_sent_total", "Bytes written to sockets.", total.wire_bytes_sent),
        counter("k6_data_received_total", "Bytes read from sockets.", total.wire_bytes_received),
        gauge("k6_http_req_failed_rate", "Fraction of requests that failed.", failed),
        gauge("k6_vus", "Open connections; in a closed model, one per user.", open),
        counter("squall_connections_opened_total", "Connections opened.", total.connections_opened),
        gauge(
            "squall_generator_busy",
            "Fraction of time that the busiest event loop was working.",
            second.busy_max,
        ),
        gauge("squall_arrivals_waiting", "Requests waiting for a connection.", waiting),
        gauge("squall_verdict", "Whether the generator keeps up: 0 valid, 1 suspect, 2 invalid.", verdict),
    ]
}

fn of_schedule(source: &Source<'_>) -> impl Iterator<Item = OutputFigure> {
    let asked = source.total.arrivals_asked;
    let lag = source.second.schedule_lag.quantile(0.99);
    let lag = lag.map(|ns| {
        seconds("squall_schedule_lag_p99", "How late requests are sent, in seconds.", ns as f64 / 1e9)
    });
    [counter("squall_requests_asked_total", "Requests scheduled so far.", asked)].into_iter().chain(lag)
}

fn of_failures(total: &Snapshot) -> impl Iterator<Item = OutputFigure> {
    total.failures.kinds().into_iter().map(|kind| OutputFigure {
        labels: vec![("cause", name_of(&kind.cause)), ("phase", name_of(&kind.phase))],
        ..counter("squall_failures_total", "Requests that failed, by cause and phase.", kind.count)
    })
}

fn of_phases(total: &Snapshot) -> impl Iterator<Item = OutputFigure> {
    let help = "A phase of successful requests, 99th percentile in seconds.";
    let phases = [
        ("k6_http_req_blocked_p99", &total.phases.blocked),
        ("k6_http_req_connecting_p99", &total.phases.connecting),
        ("k6_http_req_tls_handshaking_p99", &total.phases.tls_handshaking),
        ("k6_http_req_sending_p99", &total.phases.sending),
        ("k6_http_req_waiting_p99", &total.phases.waiting),
        ("k6_http_req_receiving_p99", &total.phases.receiving),
    ];
    phases.into_iter().filter_map(move |(name, times)| quantile(name, help, times, 0.99))
}

/// The rows of loads that are no scripts: those of scripts are known at the end only.
fn of_rows(source: &Source<'_>) -> impl Iterator<Item = OutputFigure> {
    let loads = source.plan.loads.iter().filter(|load| !load.what.is_script());
    let names: BTreeSet<&str> = loads.map(|load| &*load.name).collect();
    let rows = source.rows.iter().zip(&source.total.rows);
    rows.filter(move |(key, _)| names.contains(&*key.load)).flat_map(|(key, row)| of_row(key, row))
}

fn of_row(key: &RowKey, row: &Row) -> Vec<OutputFigure> {
    let labels = vec![
        ("method", key.method.clone()),
        ("name", key.url.clone()),
        ("proto", name_of(&key.protocol)),
        ("scenario", key.load.clone()),
    ];
    let mut figures = Vec::new();
    for (expected, count) in [("true", row.ok), ("false", row.failed)] {
        let mut figure = counter("k6_http_reqs_total", "Requests completed.", count);
        figure.labels = [vec![("expected_response", expected.to_owned())], labels.clone()].concat();
        figures.push(figure);
    }
    let help = "Latency of successful requests so far, in seconds.";
    let times = distribution(&times_named!("k6_http_req_duration"), help, &row.latency);
    figures.extend(times.into_iter().map(|figure| OutputFigure { labels: labels.clone(), ..figure }));
    figures
}

/// The names of the figures of a set of times, as k6 has them; the last is the mean's.
macro_rules! times_named {
    ($name:literal) => {
        [
            (concat!($name, "_p50"), Some(0.5)),
            (concat!($name, "_p90"), Some(0.9)),
            (concat!($name, "_p95"), Some(0.95)),
            (concat!($name, "_p99"), Some(0.99)),
            (concat!($name, "_max"), Some(1.0)),
            (concat!($name, "_min"), Some(0.0)),
            (concat!($name, "_avg"), None),
        ]
    };
}
use times_named;

/// A set of times; nothing where it is empty. A name without a quantile is that of the mean.
fn distribution(
    names: &[(&'static str, Option<f64>)],
    help: &'static str,
    times: &Histogram,
) -> Vec<OutputFigure> {
    let figure = |&(name, q): &(&'static str, Option<f64>)| match q {
        Some(q) => quantile(name, help, times, q),
        None => times.mean().map(|ns| seconds(name, help, ns / 1e9)),
    };
    names.iter().filter_map(figure).collect()
}

fn quantile(name: &'static str, help: &'static str, times: &Histogram, q: f64) -> Option<OutputFigure> {
    times.quantile(q).map(|ns| seconds(name, help, ns as f64 / 1e9))
}

fn counter(name: &'static str, help: &'static str, value: u64) -> OutputFigure {
    OutputFigure { kind: OutputKind::Counter, ..gauge(name, help, value as f64) }
}

fn gauge(name: impl Into<Cow<'static, str>>, help: &'static str, value: f64) -> OutputFigure {
    OutputFigure {
        name: name.into(),
        kind: OutputKind::Gauge,
        unit: FigureUnit::Number,
        help,
        labels: Vec::new(),
        value,
    }
}

fn seconds(name: &'static str, help: &'static str, value: f64) -> OutputFigure {
    OutputFigure { unit: FigureUnit::Seconds, ..gauge(name, help, value) }
}

/// The name that the JSON contract has for a value.
fn name_of<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use squall_measure::{End, RunSetup, StoppedBy};
    use squall_plan::Plan;

    use super::*;

    /// Four seconds in which nothing was done.
    pub(crate) fn record() -> RunRecord {
        let plan = Plan {
            name: "steps".to_owned(),
            loads: Vec::new(),
            thresholds: Vec::new(),
            warmup: Duration::ZERO,
            threads: None,
        };
        let recorder = RunRecorder::new(RunSetup {
            plan,
            rows: Vec::new(),
            open_model: false,
            lag_allowed: Duration::ZERO,
            thresholds: Vec::new(),
            length: None,
            started_unix_ms: 1_000,
            environment: BTreeMap::new(),
        });
        let duration = Duration::from_secs(4);
        recorder.finish(End { duration, stopped_by: StoppedBy::Duration })
    }

    #[test]
    fn the_last_moment_is_newer_than_the_one_before() {
        let record = record();
        for (reported_at_ms, unix_ms) in [(3_000, 5_000), (4_000, 5_001), (9_000, 10_001)] {
            let moment = Moment::of_record(&record, Duration::from_millis(reported_at_ms));
            assert_eq!(moment.unix_ms, unix_ms, "reported at {reported_at_ms} ms");
        }
    }
}
