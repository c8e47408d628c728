//! When each of several answers came that one read took: the kernel stamps a read with the time of its last segment only.
//!
//! How far the first and the last byte of a read lie apart is learned from a sample of the reads, by peeking at the first
//! byte's stamp. Answers before the last one are set back by their distance from the read's end.
//! Never: reads sockets or clocks.

use crate::sys::Clock;

/// When responses came, by the kernel's stamps where they may lie unread for a while.
#[derive(Debug)]
pub(in crate::shard) struct ReceiveTimes {
    /// The sockets have kernel receive stamps, and this translates them.
    pub(in crate::shard) stamp_clock: Option<Clock>,
    /// Reads ask for the stamps: answers may have lain unread.
    pub(in crate::shard) reads_stamps: bool,
    /// The wall clock was set since the last turn: stamps of data that came before are of the old time.
    pub(in crate::shard) has_stepped: bool,
    pub(in crate::shard) read_stamps: ReadStamps,
}

impl ReceiveTimes {
    /// `is_many`: whether a read may hold several answers.
    pub(in crate::shard) fn new(has_stamps: bool, is_many: bool) -> Self {
        Self {
            stamp_clock: has_stamps.then(Clock::new),
            reads_stamps: has_stamps,
            has_stepped: false,
            read_stamps: ReadStamps::new(is_many),
        }
    }

    /// Notices when the wall clock was set since the last turn.
    pub(in crate::shard) fn look_for_step(&mut self, now_ns: u64) {
        if let Some(clock) = &mut self.stamp_clock {
            self.has_stepped = clock.has_stepped(now_ns, self.reads_stamps);
        }
    }

    /// When the next `decoded_bytes` of the present read came: `now_ns`, unless it is stamped and holds several answers.
    pub(in crate::shard) fn time_of(&mut self, now_ns: u64, decoded_bytes: usize) -> u64 {
        self.clock().map_or(now_ns, |_| self.read_stamps.advance(decoded_bytes))
    }

    /// What translates the stamps of the present read; `None`: it has none.
    pub(in crate::shard) fn clock(&self) -> Option<Clock> {
        self.stamp_clock.filter(|_| self.reads_stamps && !self.has_stepped)
    }
}

/// The times within the present read.
#[derive(Debug, Default)]
pub(in crate::shard) struct ReadStamps {
    /// A read may hold several answers.
    is_many: bool,
    /// Sums over the sampled reads, older ones counting less and less.
    sampled_ns: f64,
    sampled_bytes: f64,
    reads_until_sample: u32,
    /// Of the present read: the stamp of its end, how long before that its first byte came, and its bytes.
    end_ns: u64,
    spread_ns: f64,
    bytes: f64,
    /// Of the present read, what has been decoded.
    decoded_bytes: f64,
}

impl ReadStamps {
    /// `is_many`: whether a read may hold several answers; else its stamp is the answer's.
    pub(in crate::shard) fn new(is_many: bool) -> Self {
        Self { is_many, ..Self::default() }
    }

    /// Whether to look at the stamp of the next read's first byte, too.
    pub(in crate::shard) fn wants_first(&mut self) -> bool {
        if !self.is_many {
            return false;
        }
        self.reads_until_sample = self.reads_until_sample.checked_sub(1).unwrap_or(READS_BETWEEN_SAMPLES);
        self.reads_until_sample == 0
    }

    /// A sampled read of so many bytes lasted from its first byte's stamp to its last one's.
    pub(in crate::shard) fn learn(&mut self, first_ns: u64, last_ns: u64, bytes: usize) {
        self.sampled_ns = self.sampled_ns * REMEMBERED + last_ns.saturating_sub(first_ns) as f64;
        self.sampled_bytes = self.sampled_bytes * REMEMBERED + bytes as f64;
    }

    /// A read of `wire_bytes` ended with this stamp; `bytes` of it will be decoded (fewer than were read, in TLS).
    pub(in crate::shard) fn begin(&mut self, end_ns: u64, wire_bytes: usize, bytes: usize) {
        self.end_ns = end_ns;
        self.bytes = bytes as f64;
        self.decoded_bytes = 0.0;
        self.spread_ns = match self.sampled_bytes > 0.0 {
            true => self.sampled_ns / self.sampled_bytes * wire_bytes as f64,
            false => 0.0,
        };
    }

    /// When the next `bytes` of the read had come.
    pub(in crate::shard) fn advance(&mut self, bytes: usize) -> u64 {
        if self.spread_ns == 0.0 {
            return self.end_ns;
        }
        self.decoded_bytes += bytes as f64;
        let rest = ((self.bytes - self.decoded_bytes) / self.bytes).max(0.0);
        self.end_ns.saturating_sub((rest * self.spread_ns) as u64)
    }
}

/// Every so many reads one is sampled: looking costs about as much as reading.
const READS_BETWEEN_SAMPLES: u32 = 8;

/// What the sums keep of themselves with each sample.
const REMEMBERED: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_one_read_came_one_after_the_other() {
        let mut stamps = ReadStamps::default();
        stamps.learn(1_000, 2_000, 100);
        stamps.begin(50_000, 200, 200);
        assert_eq!([50, 50, 100].map(|bytes| stamps.advance(bytes)), [48_500, 49_000, 50_000]);
    }

    #[test]
    fn what_is_decoded_of_a_read_may_be_less_than_was_read() {
        let mut stamps = ReadStamps::default();
        stamps.learn(1_000, 2_000, 100);
        stamps.begin(50_000, 100, 50);
        assert_eq!([25, 25].map(|bytes| stamps.advance(bytes)), [49_500, 50_000]);
    }

    #[test]
    fn before_anything_is_known_all_came_with_the_last() {
        let mut stamps = ReadStamps::default();
        stamps.begin(50_000, 200, 200);
        assert_eq!(stamps.advance(1), 50_000);
        stamps.begin(50_000, 0, 0);
        assert_eq!(stamps.advance(0), 50_000);
    }

    #[test]
    fn recent_samples_count_most() {
        let mut stamps = ReadStamps::default();
        stamps.learn(0, 100_000, 100);
        (0..200).for_each(|_| stamps.learn(5_000, 5_000, 100));
        stamps.begin(50_000, 100, 100);
        assert!(stamps.advance(0) > 49_990);
    }

    #[test]
    fn one_read_in_eight_or_so_is_sampled() {
        let mut stamps = ReadStamps::new(true);
        let count = (0..900).filter(|_| stamps.wants_first()).count();
        assert_eq!(count, 100);
    }
}
