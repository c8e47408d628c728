//! What a run or a load is measured by: where all it makes are WebSockets the messages, where all are streams the events, else what it
//! makes.
//!
//! Owns: which of the figures are those of interest, so that live views, comparisons and sweeps agree. Opening a connection once says
//! nothing of what then goes on in it.

use std::borrow::Cow;

use squall_plan::{Load, MessageExchange, What};

use crate::{Histogram, SeriesPoint, Sketch, Snapshot};

/// What is counted, and whose times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Requests, handshakes, openings, with their latency.
    Operations,
    /// Messages received on WebSockets, with the time to their echo or delivery.
    Messages,
    /// Events of streams, with the time to the first of each stream.
    Events,
}

impl Counted {
    /// What these loads are measured by together.
    pub fn of<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Self {
        let mut each = loads.into_iter().map(Self::of_load);
        let first = each.next().unwrap_or(Self::Operations);
        if each.all(|other| other == first) { first } else { Self::Operations }
    }

    fn of_load(load: &Load) -> Self {
        match &load.what {
            What::WebSocket(load) if load.exchange != MessageExchange::Idle => Self::Messages,
            What::Stream(_) => Self::Events,
            _ => Self::Operations,
        }
    }

    /// Those that ended well, or came.
    pub fn ok(self, total: &Snapshot) -> u64 {
        match self {
            Self::Operations => total.ok(),
            Self::Messages => total.websockets.as_deref().map_or(0, |made| made.messages_received),
            Self::Events => total.streams.as_deref().map_or(0, |made| made.events),
        }
    }

    /// The same, and those that failed: neither messages nor events fail.
    pub fn ended(self, total: &Snapshot) -> u64 {
        if self == Self::Operations { total.ok() + total.failed() } else { self.ok(total) }
    }

    /// Their times.
    pub fn latency(self, total: &Snapshot) -> Cow<'_, Histogram> {
        let known = match self {
            Self::Operations => return total.latency(),
            Self::Messages => total.websockets.as_deref().map(|made| &made.latency),
            Self::Events => total.streams.as_deref().map(|made| &made.first_event),
        };
        known.map_or_else(|| Cow::Owned(Histogram::new()), Cow::Borrowed)
    }

    /// How many in this span.
    pub fn ended_in(self, point: &SeriesPoint) -> u64 {
        if self == Self::Operations { point.ok + point.failed } else { point.received }
    }

    /// How many per second of this span; 0 when nothing was measured.
    pub fn rate_per_s(self, point: &SeriesPoint) -> f64 {
        let seconds = point.wall.as_secs_f64();
        if seconds > 0.0 { self.ended_in(point) as f64 / seconds } else { 0.0 }
    }

    /// Their times in this span.
    pub fn times(self, point: &SeriesPoint) -> &Sketch {
        if self == Self::Operations { &point.latency } else { &point.received_latency }
    }
}
