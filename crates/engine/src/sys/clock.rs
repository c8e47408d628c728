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
}

impl Clock {
    /// Reads both clocks. Repeated now and then, so that a clock that is being slewed does no harm.
    pub(crate) fn new() -> Self {
        let before = monotonic_ns();
        let wall = reading(clock_gettime(ClockId::Realtime));
        let after = monotonic_ns();
        Self { wall_minus_monotonic_ns: i128::from(wall) - i128::from(before.midpoint(after)) }
    }

    /// The monotonic time of a wall-clock time.
    pub(crate) fn monotonic_of(&self, wall_ns: u64) -> u64 {
        u64::try_from(i128::from(wall_ns) - self.wall_minus_monotonic_ns).unwrap_or(0)
    }
}

fn reading(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long a thread is awake before a time that it waits for.
const AWAKE_NS: u64 = 100_000;
