//! The CSV face: a line per second, then one per row of figures, then the total, all with the same columns.
//!
//! `scope` distinguishes them; a figure that a scope does not have is empty. The columns are documented in `docs/output.md`.

use std::borrow::Cow;

use serde::Serialize;
use squall_plan::printable::csv_cell;

use crate::summary::{Distribution, Micros, Point, RowSummary, Summary, rate_per_s};

/// Every line of the summary's CSV, with a header.
pub fn draw(summary: &Summary) -> String {
    let mut lines: Vec<Line<'_>> = summary.series.iter().map(of_point).collect();
    lines.extend(summary.rows.iter().map(|row| of_row(row, summary.duration_s)));
    lines.push(of_total(summary));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line).expect("a flat record into memory cannot fail");
    }
    let bytes = writer.into_inner().expect("memory cannot fail to be flushed");
    String::from_utf8(bytes).expect("strings and numbers are UTF-8")
}

/// The columns, in their order.
#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    scope: &'static str,
    load: Cow<'a, str>,
    method: Cow<'a, str>,
    url: Cow<'a, str>,
    at_s: f64,
    span_s: f64,
    requests: u64,
    ok: u64,
    failed: u64,
    interrupted: u64,
    rate_per_s: f64,
    bytes_received: u64,
    bytes_sent: u64,
    latency_us_min: Option<Micros>,
    latency_us_mean: Option<Micros>,
    latency_us_p50: Option<Micros>,
    latency_us_p90: Option<Micros>,
    latency_us_p95: Option<Micros>,
    latency_us_p99: Option<Micros>,
    latency_us_p99_9: Option<Micros>,
    latency_us_max: Option<Micros>,
    latency_count: u64,
    connections_opened: Option<u64>,
    connections_open: Option<u64>,
    arrivals_waiting: Option<u64>,
    schedule_lag_us_p99: Option<Micros>,
    busy: Option<f64>,
    received: Option<u64>,
    received_latency_us_p50: Option<Micros>,
    received_latency_us_p90: Option<Micros>,
    received_latency_us_p99: Option<Micros>,
    received_latency_us_max: Option<Micros>,
}

fn of_point(point: &Point) -> Line<'_> {
    let line = Line {
        scope: "second",
        at_s: point.at_s,
        span_s: point.span_s,
        requests: point.started,
        ok: point.ok,
        failed: point.failed,
        interrupted: point.interrupted,
        rate_per_s: point.rate_per_s,
        bytes_received: point.bytes_received,
        bytes_sent: point.bytes_sent,
        connections_opened: Some(point.connections_opened),
        connections_open: Some(point.connections_open),
        arrivals_waiting: Some(point.arrivals_waiting),
        schedule_lag_us_p99: point.schedule_lag_us_p99,
        busy: Some(point.busy),
        ..of_latency(&point.latency_us)
    };
    line.with_received(point.received, point.received_latency_us.as_ref())
}

fn of_row(row: &RowSummary, duration_s: f64) -> Line<'_> {
    Line {
        scope: "row",
        load: csv_cell(&row.load),
        method: csv_cell(&row.method),
        url: csv_cell(&row.url),
        span_s: duration_s,
        requests: row.ok + row.failed + row.interrupted,
        ok: row.ok,
        failed: row.failed,
        interrupted: row.interrupted,
        rate_per_s: rate_per_s(row.ok + row.failed, duration_s),
        bytes_received: row.bytes_received,
        bytes_sent: row.bytes_sent,
        ..of_latency(&row.latency_us)
    }
}

fn of_total(summary: &Summary) -> Line<'_> {
    let totals = &summary.totals;
    let line = Line {
        scope: "total",
        span_s: summary.duration_s,
        requests: totals.requests,
        ok: totals.ok,
        failed: totals.failed,
        interrupted: totals.interrupted,
        rate_per_s: totals.rate_per_s,
        bytes_received: totals.bytes_received,
        bytes_sent: totals.bytes_sent,
        connections_opened: Some(totals.connections_opened),
        schedule_lag_us_p99: summary.generator.schedule_lag_us_p99,
        busy: Some(summary.generator.busy),
        ..of_latency(&summary.latency_us)
    };
    // Where a run has both, no figure adds them up.
    match (&totals.websockets, &totals.streams) {
        (Some(made), None) => line.with_received(Some(made.messages_received), Some(&made.latency_us)),
        (None, Some(made)) => line.with_received(Some(made.events), Some(&made.first_event_us)),
        _ => line,
    }
}

impl Line<'_> {
    fn with_received(self, count: Option<u64>, times: Option<&Distribution>) -> Self {
        let times = times.copied().unwrap_or_default();
        Self {
            received: count,
            received_latency_us_p50: times.p50,
            received_latency_us_p90: times.p90,
            received_latency_us_p99: times.p99,
            received_latency_us_max: times.max,
            ..self
        }
    }
}

fn of_latency<'a>(times: &Distribution) -> Line<'a> {
    Line {
        latency_us_min: times.min,
        latency_us_mean: times.mean,
        latency_us_p50: times.p50,
        latency_us_p90: times.p90,
        latency_us_p95: times.p95,
        latency_us_p99: times.p99,
        latency_us_p99_9: times.p99_9,
        latency_us_max: times.max,
        latency_count: times.count,
        ..Line::default()
    }
}
