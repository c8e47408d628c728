//! One point of a series as numbers: small enough that a page holds a day, wide enough that every chart is drawn from it.

use std::collections::BTreeMap;

use serde::Serialize;
use squall_measure::{ReasonKind, SeriesPoint, Sketch};

/// The columns of [`Point::v`], in order. `at_s` and `span_s` are in seconds, other times in microseconds; counts and bytes are those of
/// the span.
pub const COLUMNS: &[&str] = &[
    "at_s",
    "span_s",
    "started",
    "asked",
    "ok",
    "failed",
    "interrupted",
    "in",
    "out",
    "opened",
    "open",
    "waiting",
    "min",
    "mean",
    "p50",
    "p90",
    "p99",
    "p99_9",
    "max",
    "lag_p99",
    "busy",
    "descheduled",
    "cpu",
    "rss",
    "blocked",
    "connecting",
    "tls",
    "sending",
    "wait",
    "receiving",
];

/// A point: its columns, and what few points have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// A value for each of [`COLUMNS`]; `null` where there is none.
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
        let mut v = counts(at_s, point, is_open);
        v.extend(times(&point.latency));
        v.push(point.schedule_lag.quantile(0.99).map(micros));
        v.extend(state(point));
        v.extend(phases(point));
        debug_assert_eq!(v.len(), COLUMNS.len());
        let cause = |&(cause, count): &(squall_measure::Cause, u64)| (super::run::name_of(&cause), count);
        Self {
            v,
            h: heat(&point.latency),
            e: point.failures.iter().map(cause).collect(),
            w: point.warnings.clone(),
        }
    }
}

fn counts(at_s: f64, point: &SeriesPoint, is_open: bool) -> Vec<Option<f64>> {
    let count = |value: u64| Some(value as f64);
    vec![
        Some(at_s),
        Some(thousandths(point.wall.as_secs_f64())),
        count(point.started),
        is_open.then_some(point.asked as f64),
        count(point.ok),
        count(point.failed),
        count(point.interrupted),
        count(point.wire_bytes_received),
        count(point.wire_bytes_sent),
        count(point.connections_opened),
        count(point.connections_open),
        is_open.then_some(point.arrivals_waiting as f64),
    ]
}

fn times(times: &Sketch) -> Vec<Option<f64>> {
    let quantile = |q| times.quantile(q).map(micros);
    vec![
        times.min().map(micros),
        times.mean().map(|mean_ns| micros(mean_ns.round() as u64)),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999),
        times.max().map(micros),
    ]
}

fn state(point: &SeriesPoint) -> Vec<Option<f64>> {
    let machine = point.machine.as_ref();
    vec![
        Some(thousandths(point.busy_max)),
        Some(thousandths(point.descheduled_max)),
        machine.map(|machine| thousandths(machine.cpu_fraction)),
        machine.map(|machine| machine.process_rss_bytes as f64),
    ]
}

/// The mean of each phase over all successful requests, so that they add up to the mean of the whole.
fn phases(point: &SeriesPoint) -> Vec<Option<f64>> {
    let sums = &point.phases;
    let all =
        [sums.blocked, sums.connecting, sums.tls_handshaking, sums.sending, sums.waiting, sums.receiving];
    let mean = |sum: std::time::Duration| {
        (point.ok > 0).then(|| micros((sum.as_nanos() / u128::from(point.ok)) as u64))
    };
    all.into_iter().map(mean).collect()
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

fn micros(ns: u64) -> f64 {
    (ns as f64 / 10.0).round() / 100.0
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
