//! Wall clocks as numbers, and how far another machine's clock is off.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970; 0 before it.
pub fn unix_ns(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of a number of nanoseconds since 1970.
pub(crate) fn from_unix_ns(unix_ns: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(unix_ns)
}

/// How far another clock is ahead of this one, from questions and answers (Mills' NTP, RFC 5905 8: the quickest answer tells best).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    best: Option<Answer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    round_trip_ns: u64,
    ahead_ns: i64,
}

impl ClockOffset {
    /// Takes one answer in: when it was asked for, what the other clock said, and when that came.
    pub(crate) fn take(&mut self, asked_ns: u64, theirs_ns: u64, came_ns: u64) {
        let round_trip_ns = came_ns.saturating_sub(asked_ns);
        let middle_ns = asked_ns + round_trip_ns / 2;
        let ahead_ns = i64::try_from(i128::from(theirs_ns) - i128::from(middle_ns)).unwrap_or(i64::MAX);
        if self.best.is_none_or(|best| round_trip_ns <= best.round_trip_ns) {
            self.best = Some(Answer { round_trip_ns, ahead_ns });
        }
    }

    /// By how many nanoseconds the other clock is ahead; negative when it is behind.
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.best.map_or(0, |best| best.ahead_ns)
    }

    /// The quickest question and answer; half of it bounds the error of the offset.
    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.best.map_or(0, |best| best.round_trip_ns))
    }

    /// What the other clock shows when this one shows `own_ns`.
    pub(crate) fn theirs(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.ahead_ns())
    }

    /// What this clock showed when the other one showed `theirs_ns`.
    pub(crate) fn own(&self, theirs_ns: u64) -> u64 {
        theirs_ns.saturating_add_signed(self.ahead_ns().saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_tells_the_offset() {
        let mut offset = ClockOffset::default();
        offset.take(1_000, 5_000 + 900, 3_000);
        offset.take(10_000, 15_050, 10_100);
        offset.take(20_000, 99_000, 29_000);
        assert_eq!((offset.ahead_ns(), offset.round_trip()), (5_000, Duration::from_nanos(100)));
        assert_eq!((offset.theirs(1_000), offset.own(6_000)), (6_000, 1_000));
    }

    #[test]
    fn a_clock_behind_is_a_negative_offset() {
        let mut offset = ClockOffset::default();
        offset.take(10_000, 4_000, 10_000);
        assert_eq!((offset.ahead_ns(), offset.theirs(10_000), offset.own(4_000)), (-6_000, 4_000, 10_000));
    }

    #[test]
    fn times_come_back() {
        let now = SystemTime::now();
        assert_eq!(from_unix_ns(unix_ns(now)), now);
        assert_eq!(unix_ns(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
