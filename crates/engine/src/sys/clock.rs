//! Clocks, in nanoseconds.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock: the engine's only time.
pub(crate) fn monotonic_ns() -> u64 {
    reading(clock_gettime(ClockId::Monotonic))
}

/// A length of time in nanoseconds; what does not fit (584 years) counts as for ever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(reading(clock_gettime(ClockId::ThreadCPUTime)))
}

/// CPU time of the whole process.
pub(crate) fn process_cpu() -> Duration {
    Duration::from_nanos(reading(clock_gettime(ClockId::ProcessCPUTime)))
}

/// Sleeps until a time of the monotonic clock.
pub(crate) fn sleep_until(at_ns: u64) {
    let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    // An interrupted sleep is a short wait, which every caller can bear.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
}

/// Waits for a time of the monotonic clock, the last of it awake: sleeping alone ends up to a tenth of a millisecond late. Returns
/// the time that it is then.
pub(crate) fn wait_until(at_ns: u64) -> u64 {
    loop {
        let now_ns = monotonic_ns();
        match at_ns.saturating_sub(now_ns) {
            0 => return now_ns,
            // A signal may have cut the sleep short.
            AWAKE_NS.. => sleep_until(at_ns - AWAKE_NS),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Translates the kernel's receive stamps, which are wall-clock times, to the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall_minus_monotonic_ns: i128,
    /// When the monotonic clock was last read with it: no stamp lies far from that.
    seen_ns: u64,
}

impl Clock {
    /// Reads both clocks. Repeated now and then, so that a clock that is being slewed does no harm.
    pub(crate) fn new() -> Self {
        let before = monotonic_ns();
        let wall = reading(clock_gettime(ClockId::Realtime));
        let after = monotonic_ns();
        Self::of(wall, before.midpoint(after))
    }

    fn of(wall_ns: u64, monotonic_ns: u64) -> Self {
        Self {
            wall_minus_monotonic_ns: i128::from(wall_ns) - i128::from(monotonic_ns),
            seen_ns: monotonic_ns,
        }
    }

    /// Whether the wall clock was set since: then both are read anew, and stamps of data that came before are not to be used.
    /// Called once a turn of the loop; where stamps are read, that costs one look at the clock.
    pub(crate) fn has_stepped(&mut self, now_ns: u64, reads_stamps: bool) -> bool {
        if !reads_stamps {
            self.seen_ns = now_ns;
            return false;
        }
        let has_stepped = self.note(reading(clock_gettime(ClockId::Realtime)), now_ns);
        if has_stepped {
            *self = Self::new();
        }
        has_stepped
    }

    /// Compares readings of both clocks. A thread that lost its core between them takes that for a step, which costs a turn's stamps.
    fn note(&mut self, wall_ns: u64, monotonic_ns: u64) -> bool {
        self.seen_ns = monotonic_ns;
        let moved_ns = i128::from(wall_ns) - i128::from(monotonic_ns) - self.wall_minus_monotonic_ns;
        moved_ns.unsigned_abs() > u128::from(STEP_NS_MIN)
    }

    /// The monotonic time of a wall-clock time. Within a turn the clock may be set once more: a stamp that cannot be is taken for the present.
    pub(crate) fn monotonic_of(&self, wall_ns: u64) -> u64 {
        let monotonic_ns =
            u64::try_from(i128::from(wall_ns) - self.wall_minus_monotonic_ns).unwrap_or(u64::MAX);
        let is_near = monotonic_ns.saturating_add(UNREAD_NS_MAX) >= self.seen_ns
            && monotonic_ns <= self.seen_ns.saturating_add(TURN_NS_MAX);
        if is_near { monotonic_ns } else { self.seen_ns }
    }
}

fn reading(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A wall clock that is off by more than this was set; one that is slewed moves by half of it in a second, after which it is read anew.
const STEP_NS_MIN: u64 = 1_000_000;

/// Data may lie unread for so long, where the whole process was stopped.
const UNREAD_NS_MAX: u64 = 60_000_000_000;

/// A turn of the loop lasts less than this.
const TURN_NS_MAX: u64 = 1_000_000_000;

/// How long a thread is awake before a time that it waits for.
const AWAKE_NS: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_clock_that_is_set_is_noticed_and_one_that_is_slewed_is_not() {
        let wall = 1_000_000 * SECOND;
        for (step_ns, has_stepped) in [
            (0, false),
            (500_000, false),
            (-500_000, false),
            (2_000_000, true),
            (-2_000_000, true),
            (3_600 * SECOND as i64, true),
            (-3_600 * SECOND as i64, true),
        ] {
            let mut clock = Clock::of(wall, 7 * SECOND);
            let wall_then = (wall + SECOND).saturating_add_signed(step_ns);
            assert_eq!(clock.note(wall_then, 8 * SECOND), has_stepped, "{step_ns}");
        }
    }

    #[test]
    fn a_stamp_that_cannot_be_is_taken_for_the_present() {
        let wall = 1_000_000 * SECOND;
        let mut clock = Clock::of(wall, 100 * SECOND);
        clock.note(wall, 100 * SECOND);
        for (stamp_ns, monotonic_ns) in [
            (wall, 100 * SECOND),
            (wall - 5_000, 100 * SECOND - 5_000),
            (wall + 5_000, 100 * SECOND + 5_000),
            (wall - 2 * SECOND, 98 * SECOND),
            (wall + 3_600 * SECOND, 100 * SECOND),
            (wall - 3_600 * SECOND, 100 * SECOND),
            (0, 100 * SECOND),
            (u64::MAX, 100 * SECOND),
        ] {
            assert_eq!(clock.monotonic_of(stamp_ns), monotonic_ns, "{stamp_ns}");
        }
    }
}
