//! The part of the summary that only WebSockets have: messages, their latency, and how connections were closed.

use serde::Serialize;
use squall_measure::{CloseCount, RunRecord};

use super::{Distribution, rate_per_s};

/// Messages on WebSockets. Connections that were opened, kept and lost are in `idle_connections`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WebSocketSummary {
    /// Messages sent.
    pub messages_sent: u64,
    /// Per second of `duration_s`.
    pub sent_per_s: f64,
    /// Messages received.
    pub messages_received: u64,
    /// Per second of `duration_s`.
    pub received_per_s: f64,
    /// Messages that the schedule asked for; of a closed model those that were begun.
    pub messages_asked: u64,
    /// Bytes of messages sent, before compression.
    pub bytes_sent: u64,
    /// Bytes of messages received, decompressed.
    pub bytes_received: u64,
    /// From a message's scheduled time (open model) or its sending to its echo or delivery.
    pub latency_us: Distribution,
    /// Open model: from its sending. Null in a closed model.
    pub service_us: Option<Distribution>,
    /// Messages received that were echoes or deliveries.
    pub answered: u64,
    /// Echoes that differ from what was sent.
    pub mismatched: u64,
    /// Messages whose answer did not come in time, or before their connection was lost.
    pub unanswered: u64,
    /// Pings of the server that were answered.
    pub pings_answered: u64,
    /// How connections were closed, the most frequent first.
    pub closes: Vec<CloseCount>,
}

/// The messages of a run; `None` where no load was made of WebSockets.
pub(super) fn websockets(record: &RunRecord) -> Option<WebSocketSummary> {
    let made = record.total.websockets.as_deref()?;
    let per_s = |count: u64| rate_per_s(count, record.duration.as_secs_f64());
    let mut closes: Vec<CloseCount> = made.closes.iter().filter(|row| row.count > 0).cloned().collect();
    closes.sort_by_key(|row| std::cmp::Reverse(row.count));
    Some(WebSocketSummary {
        messages_sent: made.messages_sent,
        sent_per_s: per_s(made.messages_sent),
        messages_received: made.messages_received,
        received_per_s: per_s(made.messages_received),
        messages_asked: made.messages_asked,
        bytes_sent: made.bytes_sent,
        bytes_received: made.bytes_received,
        latency_us: Distribution::from(&made.latency),
        service_us: (made.service.count() > 0).then(|| Distribution::from(&made.service)),
        answered: made.answered,
        mismatched: made.mismatched,
        unanswered: made.unanswered,
        pings_answered: made.pings_answered,
        closes,
    })
}
