//! What one event loop records: samples, examples of failures, the times and the contents of responses.
//!
//! Owns: the snapshot of the running second, captured responses, receive times. Never: sockets, the schedule.

pub(super) mod capture;
pub(super) mod sink;
pub(super) mod stamps;
pub(super) mod streams;

use squall_measure::{Cause, FailureExample};
use squall_plan::{Pacing, ShardPart, When};

use crate::prepare::Prepared;
use crate::pulse::Pulse;
use crate::shard::connections::conn::Exchange;
use crate::shard::connections::{Connections, stride};
use crate::shard::recorder::sink::ResponseSink;
use crate::shard::recorder::stamps::ReceiveTimes;
use crate::shard::schedule::waiter::GATHER_IN_FLIGHT_MIN;
use crate::sys::has_stamps;
use crate::trouble::{Trouble, time_limit};

/// What one event loop has recorded.
pub(in crate::shard) struct ShardRecorder {
    pub(in crate::shard) pulse: Pulse,
    /// What is kept of responses.
    pub(in crate::shard) sink: ResponseSink,
    pub(in crate::shard) receive_times: ReceiveTimes,
    /// Lengths that `--expect-same-length` learned, by request; 0: none yet, else the length + 1.
    learned_lengths: Vec<u64>,
    /// When the run began.
    pub(in crate::shard) start_ns: u64,
}

impl ShardRecorder {
    /// Nothing is recorded yet.
    pub(in crate::shard) fn new(
        mut pulse: Pulse,
        prepared: &Prepared,
        part: &ShardPart,
        start_ns: u64,
    ) -> Self {
        pulse.has_sessions = prepared.sessions.is_some();
        Self {
            pulse,
            sink: ResponseSink::new(prepared),
            receive_times: ReceiveTimes::new(batches(prepared, part), stride(prepared) > 1),
            learned_lengths: vec![0; prepared.requests.len()],
            start_ns,
        }
    }

    /// Moves the figures of streams into the snapshot.
    pub(in crate::shard) fn fill_streams(&mut self) {
        if let Some(streams) = &mut self.sink.streams {
            streams.fill(&mut self.pulse.snapshot);
        }
    }

    /// The run starts now, or did so before.
    pub(in crate::shard) fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns.min(self.start_ns);
        self.pulse.begin(now_ns);
    }

    /// The loop goes on after a wait that was to end by `due_ns`.
    pub(in crate::shard) fn resume(&mut self, now_ns: u64, due_ns: u64) {
        self.pulse.resume(now_ns, due_ns);
        self.receive_times.look_for_step(now_ns);
    }

    /// The length of the first response of this request; this one's, if it is the first.
    pub(in crate::shard) fn learned_length(&mut self, exchange: &Exchange, body_bytes: u64) -> u64 {
        let Some(learned) = self.learned_lengths.get_mut(exchange.request.0 as usize) else {
            return body_bytes;
        };
        if *learned == 0 {
            *learned = body_bytes + 1;
        }
        *learned - 1
    }

    /// Keeps one example of each kind of failure. With the status, if there was one, and how long the request might have taken.
    pub(in crate::shard) fn keep_example(
        &mut self,
        connections: &mut Connections,
        row_idx: u32,
        (status, timeout_ns): (u16, u64),
        trouble: Trouble,
    ) {
        let Trouble { cause, phase, mut text, .. } = trouble;
        if !self.pulse.snapshot.failures.wants_example(cause, phase) {
            return;
        }
        if text.is_empty() {
            text = self.describe(connections, cause, status, timeout_ns);
        }
        let url = connections.prepared.rows[row_idx as usize].url.clone();
        let at_ns = connections.now_ns.saturating_sub(self.start_ns);
        self.pulse.snapshot.failures.set_example(cause, phase, FailureExample { at_ns, url, text });
    }

    /// Texts that are made only when one is wanted: these failures may come by the thousand.
    fn describe(&self, connections: &Connections, cause: Cause, status: u16, timeout_ns: u64) -> String {
        match cause {
            Cause::UnexpectedStatus => format!("status {status}"),
            Cause::Timeout => format!("no complete response within {}", time_limit(timeout_ns)),
            Cause::ConnectTimeout => {
                format!("no connection within {}", time_limit(connections.limits.connect_timeout_ns))
            }
            _ => String::new(),
        }
    }

    /// There are as many rows of figures as the preparation knows.
    pub(in crate::shard) fn add_rows(&mut self, connections: &mut Connections) {
        let rows = connections.prepared.rows.len();
        if self.pulse.snapshot.rows.len() < rows {
            self.pulse.snapshot.rows.resize_with(rows, Default::default);
        }
    }
}

/// Whether answers may lie unread for a while, on sockets that have receive stamps.
fn batches(prepared: &Prepared, part: &ShardPart) -> bool {
    let in_flight_max =
        || part.connection_count_max(&prepared.load.when).saturating_mul(prepared.requests_per_connection());
    let waits = match &prepared.load.when {
        When::Open { pacing, .. } => *pacing != Pacing::Precise,
        When::Closed { .. } => in_flight_max() >= GATHER_IN_FLIGHT_MIN,
    };
    let is_plain = prepared.sessions.is_none() && prepared.streams.is_none();
    waits && is_plain && prepared.load.network.unix_socket.is_none() && has_stamps()
}
