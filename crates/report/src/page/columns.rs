//! One point of a series as numbers: small enough that a page holds a day, wide enough that every chart is drawn from it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use squall_measure::{ReasonKind, SeriesPoint, Sketch};

use super::values::{name_of, rounded};

/// What a column shows of a point; `None` where the point has no such value.
type Show = fn(&Moment<'_>) -> Option<f64>;

/// A point of a series, and where it is.
struct Moment<'a> {
    at_s: f64,
    is_open: bool,
    point: &'a SeriesPoint,
}

/// The columns of [`Point::v`] by name, in order. `at_s` and `span_s` are in seconds, other times in microseconds; counts and bytes are
/// those of the span. Phases are means over all successful requests, so that they add up to the mean of the whole.
const COLUMNS: &[(&str, Show)] = &[
    ("at_s", |moment| Some(moment.at_s)),
    ("span_s", |moment| Some(rounded(moment.point.wall.as_secs_f64()))),
    ("started", |moment| count(moment.point.started)),
    ("asked", |moment| count(moment.point.asked).filter(|_| moment.is_open)),
    ("ok", |moment| count(moment.point.ok)),
    ("failed", |moment| count(moment.point.failed)),
    ("interrupted", |moment| count(moment.point.interrupted)),
    ("in", |moment| count(moment.point.wire_bytes_received)),
    ("out", |moment| count(moment.point.wire_bytes_sent)),
    ("opened", |moment| count(moment.point.connections_opened)),
    ("open", |moment| count(moment.point.connections_open)),
    ("waiting", |moment| count(moment.point.arrivals_waiting).filter(|_| moment.is_open)),
    ("min", |moment| moment.point.latency.min().map(micros)),
    ("mean", |moment| moment.point.latency.mean().map(|mean_ns| micros(mean_ns.round() as u64))),
    ("p50", |moment| moment.point.latency.quantile(0.5).map(micros)),
    ("p90", |moment| moment.point.latency.quantile(0.9).map(micros)),
    ("p99", |moment| moment.point.latency.quantile(0.99).map(micros)),
    ("p99_9", |moment| moment.point.latency.quantile(0.999).map(micros)),
    ("max", |moment| moment.point.latency.max().map(micros)),
    ("lag_p99", |moment| moment.point.schedule_lag.quantile(0.99).map(micros)),
    ("busy", |moment| Some(rounded(moment.point.busy_max))),
    ("descheduled", |moment| Some(rounded(moment.point.descheduled_max))),
    ("cpu", |moment| moment.point.machine.map(|machine| rounded(machine.cpu_fraction))),
    ("rss", |moment| moment.point.machine.map(|machine| machine.process_rss_bytes as f64)),
    ("blocked", |moment| moment.mean(moment.point.phases.blocked)),
    ("connecting", |moment| moment.mean(moment.point.phases.connecting)),
    ("tls", |moment| moment.mean(moment.point.phases.tls_handshaking)),
    ("sending", |moment| moment.mean(moment.point.phases.sending)),
    ("wait", |moment| moment.mean(moment.point.phases.waiting)),
    ("receiving", |moment| moment.mean(moment.point.phases.receiving)),
    ("received", |moment| count(moment.point.received).filter(|count| *count > 0.0)),
    ("received_p50", |moment| moment.point.received_latency.quantile(0.5).map(micros)),
    ("received_p90", |moment| moment.point.received_latency.quantile(0.9).map(micros)),
    ("received_p99", |moment| moment.point.received_latency.quantile(0.99).map(micros)),
    ("received_max", |moment| moment.point.received_latency.max().map(micros)),
    ("lost", |moment| moment.point.quic.and_then(|quic| count(quic.packets_lost))),
    ("window", |moment| moment.point.quic?.paths.window_bytes_mean().map(|bytes| bytes as f64)),
    ("rtt", |moment| moment.point.quic?.paths.rtt_ns_mean().map(micros)),
    ("gap_p50", |moment| moment.point.event_gap.quantile(0.5).map(micros)),
    ("gap_p95", |moment| moment.point.event_gap.quantile(0.95).map(micros)),
    ("gap_p99", |moment| moment.point.event_gap.quantile(0.99).map(micros)),
    ("disconnects", |moment| count(moment.point.disconnects).filter(|count| *count > 0.0)),
    ("reconnects", |moment| count(moment.point.reconnects).filter(|count| *count > 0.0)),
];

/// The names of the columns.
pub(crate) fn names() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

/// A point: its columns, and what few points have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// A value for each of the series' columns; `null` where there is none.
    pub v: Vec<Option<f64>>,
    /// Latencies by size: pairs of a bucket of `heat_bucket` and a count, in one list.
    pub h: Vec<u64>,
    /// Failures by cause.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub e: BTreeMap<String, u64>,
    /// What impaired the measurement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub w: Vec<ReasonKind>,
}

impl Point {
    /// The point that begins `at_s` seconds after the start.
    pub(crate) fn new(at_s: f64, point: &SeriesPoint, is_open: bool) -> Self {
        let moment = Moment { at_s, is_open, point };
        let cause = |&(cause, count): &(squall_measure::Cause, u64)| (name_of(&cause), count);
        Self {
            v: COLUMNS.iter().map(|(_, show)| show(&moment)).collect(),
            h: heat(&point.latency),
            e: point.failures.iter().map(cause).collect(),
            w: point.warnings.clone(),
        }
    }
}

impl Moment<'_> {
    /// A sum over all successful requests as their mean.
    fn mean(&self, sum: Duration) -> Option<f64> {
        let ok = self.point.ok;
        (ok > 0).then(|| micros((sum.as_nanos() / u128::from(ok)) as u64))
    }
}

/// Latencies by [`heat_bucket`], as pairs in one list.
fn heat(times: &Sketch) -> Vec<u64> {
    let mut pairs: Vec<u64> = Vec::new();
    for (value_ns, count) in times.buckets() {
        let bucket = heat_bucket(value_ns);
        match pairs.len() {
            len if len >= 2 && pairs[len - 2] == bucket => pairs[len - 1] += count,
            _ => pairs.extend([bucket, count]),
        }
    }
    pairs
}

/// Four buckets per doubling: bucket `n` holds times from 2^(n/4) to 2^((n+1)/4) nanoseconds.
fn heat_bucket(value_ns: u64) -> u64 {
    ((value_ns.max(1) as f64).log2() * 4.0) as u64
}

fn count(value: u64) -> Option<f64> {
    Some(value as f64)
}

fn micros(ns: u64) -> f64 {
    (ns as f64 / 10.0).round() / 100.0
}
