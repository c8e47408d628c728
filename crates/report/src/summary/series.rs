//! The run over time: the values of each point, and where they come from.

use serde::Serialize;
use squall_measure::{ReasonKind, RunRecord, SeriesPoint, Snapshot};

use super::totals::asked;
use super::{Distribution, Micros, three_decimals};

/// One point of the series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Start of its span, in seconds after the start of the run.
    pub at_s: f64,
    /// Length of its span, in seconds.
    pub span_s: f64,
    /// Requests begun.
    pub started: u64,
    /// Open model: requests that the schedule asked for.
    pub asked: Option<u64>,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests cut off by the run's end.
    pub interrupted: u64,
    /// Requests per second that ended well or failed.
    pub rate_per_s: f64,
    /// Bytes read from sockets, below TLS.
    pub bytes_received: u64,
    /// Bytes written to sockets, below TLS.
    pub bytes_sent: u64,
    /// Latencies of successful requests that ended in this span; percentiles within 0.8 %.
    pub latency_us: Distribution,
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections open at its end.
    pub connections_open: u64,
    /// Open model: requests waiting for a connection at its end.
    pub arrivals_waiting: u64,
    /// Open model: how late requests were sent although a connection was free, 99th percentile.
    pub schedule_lag_us_p99: Option<Micros>,
    /// Share of its time in which the busiest event loop was not waiting, 0 to 1.
    pub busy: f64,
    /// Messages on WebSockets, or events of streams, that came; only where all that come are either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Latency of these messages, or times to the first event of streams; percentiles within 0.8 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_latency_us: Option<Distribution>,
    /// What impaired the measurement in this span.
    pub warnings: Vec<ReasonKind>,
}

pub(super) fn series(record: &RunRecord) -> Vec<Point> {
    let step_s = f64::from(record.series.seconds_per_point);
    let at = |(idx, point)| self::point(idx as f64 * step_s, point, &record.total);
    record.series.points.iter().enumerate().map(at).collect()
}

fn point(at_s: f64, point: &SeriesPoint, total: &Snapshot) -> Point {
    // Where a run has both, no figure adds them up.
    let receives = total.websockets.is_some() != total.streams.is_some();
    Point {
        at_s,
        span_s: point.wall.as_secs_f64(),
        started: point.started,
        asked: asked(total, point.asked),
        ok: point.ok,
        failed: point.failed,
        interrupted: point.interrupted,
        rate_per_s: three_decimals(point.rate_per_s()),
        bytes_received: point.wire_bytes_received,
        bytes_sent: point.wire_bytes_sent,
        latency_us: Distribution::from(&point.latency),
        connections_opened: point.connections_opened,
        connections_open: point.connections_open,
        arrivals_waiting: point.arrivals_waiting,
        schedule_lag_us_p99: point.schedule_lag.quantile(0.99).map(Micros),
        busy: three_decimals(point.busy_max),
        received: receives.then_some(point.received),
        received_latency_us: receives.then(|| Distribution::from(&point.received_latency)),
        warnings: point.warnings.clone(),
    }
}
