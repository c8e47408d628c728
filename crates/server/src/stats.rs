//! What the server counted. Each worker writes its own counters; a reader adds them up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

/// What the server counted since its start; `/stats` answers it as JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Requests whose head was read completely.
    pub requests: u64,
    /// Requests that are over: answered completely, or cut.
    pub requests_finished: u64,
    /// Of these, how many were not answered completely: the client went away, or the route cuts on purpose.
    pub requests_cut: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Of these, how many are open now.
    pub connections_open: u64,
    /// Times that the system refused to hand over a connection (usually: no descriptor left).
    pub accepts_failed: u64,
    /// TLS handshakes that succeeded.
    pub tls_handshakes: u64,
    /// Of these, how many resumed an earlier session.
    pub tls_handshakes_resumed: u64,
    /// TLS handshakes that failed or took too long.
    pub tls_handshakes_failed: u64,
    /// Bytes of request bodies, after chunked coding was taken off.
    pub body_bytes_received: u64,
    /// Bytes of response bodies, before chunked coding.
    pub body_bytes_sent: u64,
    /// WebSocket messages received.
    pub messages_received: u64,
    /// WebSocket messages sent.
    pub messages_sent: u64,
    /// Lines of the log that could not be written.
    pub log_lines_lost: u64,
}

/// One worker's counters, alone on their cache lines because the others write theirs at the same time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) requests: Counter,
    pub(crate) requests_finished: Counter,
    pub(crate) requests_cut: Counter,
    pub(crate) connections: Counter,
    pub(crate) connections_closed: Counter,
    pub(crate) accepts_failed: Counter,
    pub(crate) tls_handshakes: Counter,
    pub(crate) tls_handshakes_resumed: Counter,
    pub(crate) tls_handshakes_failed: Counter,
    pub(crate) body_bytes_received: Counter,
    pub(crate) body_bytes_sent: Counter,
    pub(crate) messages_received: Counter,
    pub(crate) messages_sent: Counter,
    pub(crate) log_lines_lost: Counter,
}

impl Counters {
    /// Adds these counters to `sum`.
    pub(crate) fn add_to(&self, sum: &mut Stats) {
        sum.requests += self.requests.value();
        sum.requests_finished += self.requests_finished.value();
        sum.requests_cut += self.requests_cut.value();
        // In this order, so that a connection closed in between cannot make the difference negative.
        let closed = self.connections_closed.value();
        let accepted = self.connections.value();
        sum.connections += accepted;
        sum.connections_open += accepted.saturating_sub(closed);
        sum.accepts_failed += self.accepts_failed.value();
        sum.tls_handshakes += self.tls_handshakes.value();
        sum.tls_handshakes_resumed += self.tls_handshakes_resumed.value();
        sum.tls_handshakes_failed += self.tls_handshakes_failed.value();
        sum.body_bytes_received += self.body_bytes_received.value();
        sum.body_bytes_sent += self.body_bytes_sent.value();
        sum.messages_received += self.messages_received.value();
        sum.messages_sent += self.messages_sent.value();
        sum.log_lines_lost += self.log_lines_lost.value();
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
