//! Sleeping precisely: a thread that sleeps alone wakes tens of microseconds late.

use std::thread;
use std::time::{Duration, Instant};

/// Returns at `deadline`, a few microseconds late at most on a core that is free: sleeps, then spins the last bit.
pub fn sleep_until(deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    if left > SPIN {
        thread::sleep(left - SPIN);
    }
    while Instant::now() < deadline {
        std::hint::spin_loop();
    }
}

/// Longer than the kernel's default timer slack (50 us) and the wake-up together.
const SPIN: Duration = Duration::from_micros(100);
