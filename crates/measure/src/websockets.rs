//! What only WebSockets have: messages, their latency, and how connections were closed.
//!
//! Owns: the figures that kept connections do not have. How many were opened, lost and reopened is in [`Kept`](crate::Kept).

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::figures::figures;

figures! {
    /// Figures of WebSockets in a span of time. Recording, clearing and merging what is known never allocate.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct WebSockets {
        /// Messages that the schedule asked for, sent or not.
        pub messages_asked: u64,
        /// Messages sent.
        pub messages_sent: u64,
        /// Messages received.
        pub messages_received: u64,
        /// Bytes of messages sent, before compression.
        pub bytes_sent: u64,
        /// Bytes of messages received, decompressed.
        pub bytes_received: u64,
        /// From a message's intended start (open model) or its sending to its echo, or to its delivery; in nanoseconds.
        pub latency: Histogram,
        /// Open model: the same from the sending.
        pub service: Histogram,
        /// Messages received that were answers, or deliveries, and have a latency.
        pub answered: u64,
        /// Echoes that differ from what was sent.
        pub mismatched: u64,
        /// Messages whose answer did not come: in time, before their connection was lost, or before the end.
        pub unanswered: u64,
        /// Pings of the server that were answered.
        pub pings_answered: u64,
        /// How connections were closed, and how often.
        pub closes: Vec<CloseCount> as by_close,
    }
}

/// How a connection was closed, and how often that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseCount {
    /// How.
    #[serde(flatten)]
    pub close: Close,
    /// How often.
    pub count: u64,
}

/// How a WebSocket was closed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Close {
    /// Who began.
    pub by: ClosedBy,
    /// The code of the close frame (RFC 6455 7.4): 1005 if it had none, 1006 if there was no close frame.
    pub code: u16,
    /// The reason that the server gave, or what went wrong.
    pub reason: String,
}

/// Who closed a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// The server sent the first close frame.
    Server,
    /// We did.
    Squall,
    /// The connection ended without one.
    Neither,
}

impl WebSockets {
    /// Counts so many closes of one kind. Beyond `CLOSE_COUNT_MAX` kinds they share one row for each code.
    pub fn count_close(&mut self, by: ClosedBy, code: u16, reason: &str, count: u64) {
        let is_same = |known: &&mut CloseCount| {
            (known.close.by, known.close.code) == (by, code) && known.close.reason == reason
        };
        match self.closes.iter_mut().find(is_same) {
            Some(known) => known.count += count,
            None => {
                let reason = reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
                by_close::add_one(&mut self.closes, &Close { by, code, reason }, count);
            }
        }
    }
}

mod by_close {
    use super::{CLOSE_COUNT_MAX, Close, CloseCount};

    pub(super) fn add(mine: &mut Vec<CloseCount>, theirs: &[CloseCount]) {
        for CloseCount { close, count } in theirs.iter().filter(|known| known.count > 0) {
            add_one(mine, close, *count);
        }
        mine.sort_by(|left, right| left.close.cmp(&right.close));
    }

    /// Which closes there were is kept.
    pub(super) fn empty(mine: &mut [CloseCount]) {
        mine.iter_mut().for_each(|known| known.count = 0);
    }

    pub(super) fn add_one(mine: &mut Vec<CloseCount>, close: &Close, count: u64) {
        let has_space = mine.len() < CLOSE_COUNT_MAX;
        match mine.iter_mut().find(|known| known.close == *close) {
            Some(known) => known.count += count,
            None if has_space || close.reason == OTHER => {
                mine.push(CloseCount { close: close.clone(), count });
            }
            None => add_one(mine, &Close { reason: OTHER.to_owned(), ..close.clone() }, count),
        }
    }

    const OTHER: &str = "(other)";
}

/// Most kinds of closes with rows of their own; reasons are the server's, and may be all different.
const CLOSE_COUNT_MAX: usize = 32;

/// Longest reason that is kept: a close frame has at most as much.
const REASON_BYTES_MAX: usize = 123;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_add_up_in_any_order_and_are_bounded() {
        let part = |range: std::ops::Range<u32>| {
            let mut part = WebSockets::default();
            range.for_each(|nth| part.count_close(ClosedBy::Server, 1001, &(nth % 20).to_string(), 1));
            part
        };
        let merged = |parts: [WebSockets; 2]| {
            let mut whole = WebSockets::default();
            parts.iter().for_each(|part| whole.merge(part));
            whole
        };
        assert_eq!(merged([part(0..30), part(10..50)]), merged([part(10..50), part(0..30)]));
        let mut many = WebSockets::default();
        (0..1000).for_each(|nth| many.count_close(ClosedBy::Neither, 1006, &nth.to_string(), 1));
        assert_eq!(many.closes.len(), CLOSE_COUNT_MAX + 1);
        assert_eq!(many.closes.iter().map(|row| row.count).sum::<u64>(), 1000);
        many.clear();
        assert!(many.closes.iter().all(|row| row.count == 0));
    }
}
