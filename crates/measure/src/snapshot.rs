//! All figures of a span of time: what a shard fills for a second, and what a run adds up to.

use std::time::Duration;

use crate::{Failures, Histogram, Sample};

/// All figures of a span of time. Snapshots of any two spans or shards of the same run merge into one.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Requests begun (each settles as ok, failed, or interrupted; maybe in a later second).
    pub requests_started: u64,
    /// Requests made again on a new connection because a reused one died before any byte came.
    pub requests_retried: u64,
    /// Requests made in the warm-up; they are in no other figure.
    pub requests_warmup: u64,
    /// Open model: arrivals that the schedule asked for in this span.
    pub arrivals_asked: u64,
    /// TCP connections opened (TLS included where spoken).
    pub connections_opened: u64,
    /// Requests that went out on a connection that had carried one before.
    pub connections_reused: u64,
    /// Bytes written to sockets, below TLS.
    pub wire_bytes_sent: u64,
    /// Bytes read from sockets, below TLS.
    pub wire_bytes_received: u64,
    /// Name look-ups.
    pub looking_up: Histogram,
    /// Failures by cause and phase.
    pub failures: Failures,
    /// The generator's own state.
    pub generator: Generator,
    /// Figures by row.
    pub rows: Vec<Row>,
}

/// The generator's own state in a span: how late and how busy it was.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Length of the span, summed over shards.
    pub wall: Duration,
    /// Time between waking and waiting again, summed over shards.
    pub busy: Duration,
    /// CPU time of the shards' threads, summed.
    pub cpu: Duration,
    /// Longest turn of a loop.
    pub stall_max: Duration,
    /// Open model: how late each arrival was sent although a connection was free, in nanoseconds: the generator's own fault.
    pub schedule_lag: Histogram,
    /// Connections open at the span's end, summed over shards.
    pub connections_open: u64,
    /// Open model: arrivals waiting for a connection at the span's end, summed over shards.
    pub arrivals_waiting: u64,
}

/// Figures of one row.
#[derive(Debug, Clone)]
pub struct Row {}

impl Snapshot {
    /// An empty snapshot. `open_model`: whether service times are kept apart from latencies.
    pub fn new(_row_count: usize, _open_model: bool) -> Self {
        todo!()
    }

    /// Folds one settled request in.
    pub fn record(&mut self, _sample: &Sample) {
        todo!()
    }

    /// Adds another snapshot of the same run.
    pub fn merge(&mut self, _other: &Self) {
        todo!()
    }

    /// Empties it for the next span; keeps its memory.
    pub fn clear(&mut self) {
        todo!()
    }
}
