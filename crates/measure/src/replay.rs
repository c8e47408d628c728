//! What only the replay of recorded traffic has: how true it was to its times, and what the server answered differently.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::figures::{figures, most};

figures! {
    /// Figures of a replay in a span of time.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Replay {
        /// Requests that started within [`ON_TIME_NS`] of their time.
        pub on_time: u64,
        /// Requests that started later: the session's earlier answer, or a free connection, was waited for.
        pub late: u64,
        /// Requests whose time had come but that were never sent, because the run ended first.
        pub skipped: u64,
        /// Records that could not be read from the recording.
        pub unreadable: u64,
        /// How late requests started, for any reason, in nanoseconds.
        pub lateness: Histogram,
        /// Requests in which a live value took the place of a recorded one.
        pub corrected: u64,
        /// Responses compared with the recorded ones.
        pub compared: u64,
        /// Of these, those that were the same as far as compared.
        pub same: u64,
        /// Differences by kind.
        pub differences: Vec<Difference> as by_kind,
        /// What was learned of the recording before the run; the same in every shard.
        pub learned: Vec<LearnedValue> as learned_once,
        /// Records that were looked through to learn it, where those were not all; else 0.
        #[serde(default)]
        pub looked_through: u64 as most,
    }
}

/// Responses that differed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Row of the request.
    pub row_idx: u32,
    /// Recorded status.
    pub recorded_status: u16,
    /// Live status; the same as the recorded one where the bodies differ.
    pub live_status: u16,
    /// How many.
    pub count: u64,
}

/// A value that responses gave and later requests sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedValue {
    /// Where the response has it, such as `cookie sid`.
    pub place: String,
    /// Method and URL of the request that was answered.
    pub source: String,
    /// Requests of the recording that sent it.
    pub use_count: u64,
}

impl Replay {
    /// A request started so late.
    pub fn note_start(&mut self, late_ns: u64) {
        self.lateness.record(late_ns);
        if late_ns <= ON_TIME_NS {
            self.on_time += 1;
        } else {
            self.late += 1;
        }
    }

    /// A response was compared.
    pub fn note_compared(&mut self, row_idx: u32, recorded_status: u16, live_status: u16, is_same: bool) {
        self.compared += 1;
        if is_same {
            self.same += 1;
        } else {
            let difference = Difference { row_idx, recorded_status, live_status, count: 1 };
            by_kind::add_one(&mut self.differences, &difference);
        }
    }
}

mod by_kind {
    use super::{DIFFERENCE_KIND_COUNT_MAX, Difference};

    pub(super) fn add(mine: &mut Vec<Difference>, theirs: &[Difference]) {
        theirs.iter().for_each(|difference| add_one(mine, difference));
    }

    pub(super) fn empty(mine: &mut Vec<Difference>) {
        mine.clear();
    }

    /// Kinds of differences beyond the bound are in no row of their own, but in `compared` less `same`.
    pub(super) fn add_one(mine: &mut Vec<Difference>, other: &Difference) {
        let is_kind = |one: &Difference| {
            (one.row_idx, one.recorded_status, one.live_status)
                == (other.row_idx, other.recorded_status, other.live_status)
        };
        if let Some(known) = mine.iter_mut().find(|one| is_kind(one)) {
            known.count += other.count;
        } else if mine.len() < DIFFERENCE_KIND_COUNT_MAX {
            mine.push(other.clone());
            mine.sort_unstable();
        }
    }
}

mod learned_once {
    use super::LearnedValue;

    pub(super) fn add(mine: &mut Vec<LearnedValue>, theirs: &[LearnedValue]) {
        if mine.is_empty() {
            mine.extend_from_slice(theirs);
        }
    }

    pub(super) fn empty(mine: &mut Vec<LearnedValue>) {
        mine.clear();
    }
}

/// A request that starts within this of its time is on time: what an idle machine keeps.
pub const ON_TIME_NS: u64 = 2_000_000;

/// Kinds of differences with a row of their own.
const DIFFERENCE_KIND_COUNT_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(seed: u64) -> Replay {
        let mut replay = Replay::default();
        for nth in 0..seed {
            replay.note_start(nth * 700_000);
            replay.note_compared((nth % 3) as u32, 200, 200 + (nth % 2) as u16, nth % 2 == 0);
        }
        replay.skipped = seed;
        replay.looked_through = seed;
        replay
    }

    #[test]
    fn merging_is_the_same_in_any_order() {
        let (mut one, mut other) = (figures(7), figures(4));
        one.merge(&figures(4));
        other.merge(&figures(7));
        assert_eq!(one, other);
        assert_eq!((one.on_time, one.late, one.compared, one.same), (6, 5, 11, 6));
        assert_eq!(one.differences.iter().map(|difference| difference.count).sum::<u64>(), 5);
        one.clear();
        assert_eq!(one, Replay::default());
    }
}
