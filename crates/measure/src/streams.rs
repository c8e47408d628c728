//! What only responses that are streams of events have: the time to the first event, the gaps between events, how streams ended.
//!
//! Owns: the figures that plain requests do not have. Counts of streams, failures and their latencies are those of every load.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::figures::figures;

figures! {
    /// Figures of streams in a span of time. Recording, clearing and merging never allocate.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct StreamFigures {
        /// StreamFigures whose response head came.
        pub opened: u64,
        /// Events received.
        pub events: u64,
        /// Bytes of their data.
        pub event_bytes: u64,
        /// Comments, with which servers keep streams alive.
        pub comments: u64,
        /// From the start of a stream to its first event, in nanoseconds; in the open model from the intended start.
        pub first_event: Histogram,
        /// Between two events of a stream, in nanoseconds.
        pub event_gap: Histogram,
        /// StreamFigures that ended before the event that was to be their last.
        pub ended_early: u64,
        /// StreamFigures that we closed: held as long as was wanted, or open at the end.
        pub closed_by_us: u64,
        /// StreamFigures opened again after one had ended.
        pub reconnects: u64,
        /// StreamFigures that were judged by the objectives: all that ended well or failed.
        pub judged: u64,
        /// Of these, those that met all of them.
        pub good: u64,
    }
}
