//! Wall clocks as numbers, and how far another machine's clock is off.

use std::collections::VecDeque;
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

/// How far another clock is ahead of this one, from questions and answers (Mills' NTP, RFC 5905 8 and 10: of the last answers the
/// quickest is the most precise).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    /// The last [`ANSWER_COUNT_MAX`].
    answers: VecDeque<Answer>,
}

/// The four times of a question and its answer, in nanoseconds since 1970: two by this clock, two by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// When it was asked, here.
    pub asked_ns: u64,
    /// When that was received, there.
    pub heard_ns: u64,
    /// When it was answered, there.
    pub told_ns: u64,
    /// When that came, here.
    pub came_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    round_trip_ns: u64,
    ahead_ns: i64,
}

impl ClockOffset {
    /// Takes one answer in.
    pub(crate) fn take(&mut self, exchange: Exchange) {
        let Exchange { asked_ns, heard_ns, told_ns, came_ns } = exchange;
        let on_the_way_ns = came_ns.saturating_sub(asked_ns).saturating_sub(told_ns.saturating_sub(heard_ns));
        let theirs_twice = i128::from(heard_ns) + i128::from(told_ns);
        let ahead_ns = (theirs_twice - i128::from(asked_ns) - i128::from(came_ns)) / 2;
        if self.answers.len() >= ANSWER_COUNT_MAX {
            self.answers.pop_front();
        }
        let ahead_ns = i64::try_from(ahead_ns).unwrap_or(i64::MAX);
        self.answers.push_back(Answer { round_trip_ns: on_the_way_ns, ahead_ns });
    }

    fn best(&self) -> Option<Answer> {
        self.answers.iter().copied().min_by_key(|answer| answer.round_trip_ns)
    }

    /// By how many nanoseconds the other clock is ahead; negative when it is behind.
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.best().map_or(0, |best| best.ahead_ns)
    }

    /// The quickest question and answer; half of it bounds the error of the offset.
    pub(crate) fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.best().map_or(0, |best| best.round_trip_ns))
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

/// A clock that is being corrected is followed: one answer comes each second, and several before each step.
const ANSWER_COUNT_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(asked_ns: u64, heard_ns: u64, told_ns: u64, came_ns: u64) -> Exchange {
        Exchange { asked_ns, heard_ns, told_ns, came_ns }
    }

    #[test]
    fn the_quickest_answer_tells_the_offset() {
        let mut offset = ClockOffset::default();
        offset.take(exchange(1_000, 5_900, 5_900, 3_000));
        // Time that the other side took to answer counts for nothing.
        offset.take(exchange(10_000, 15_050, 16_050, 11_100));
        offset.take(exchange(20_000, 99_000, 99_000, 29_000));
        assert_eq!((offset.ahead_ns(), offset.round_trip()), (5_000, Duration::from_nanos(100)));
        assert_eq!((offset.theirs(1_000), offset.own(6_000)), (6_000, 1_000));
    }

    #[test]
    fn a_clock_behind_is_a_negative_offset() {
        let mut offset = ClockOffset::default();
        offset.take(exchange(10_000, 4_000, 4_000, 10_000));
        assert_eq!((offset.ahead_ns(), offset.theirs(10_000), offset.own(4_000)), (-6_000, 4_000, 10_000));
    }

    #[test]
    fn a_clock_that_moves_is_followed() {
        let mut offset = ClockOffset::default();
        offset.take(exchange(0, 50, 50, 0));
        (0..ANSWER_COUNT_MAX).for_each(|_| offset.take(exchange(100, 190, 190, 120)));
        assert_eq!(offset.ahead_ns(), 80);
    }

    #[test]
    fn times_come_back() {
        let now = SystemTime::now();
        assert_eq!(from_unix_ns(unix_ns(now)), now);
        assert_eq!(unix_ns(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
