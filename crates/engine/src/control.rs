//! How the outside steers a run: drain, then abort. Shared by the shards; all of it is rare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sys::{monotonic_ns, sleep_until, wait_until};

/// Steers a run from another thread, such as a signal's. Clones steer the same run.
#[derive(Debug, Clone, Default)]
pub struct Control {
    flags: Arc<Flags>,
    /// The run whose abort ends this one, too, from a moment on.
    followed: Option<(Arc<Flags>, Instant)>,
}

#[derive(Debug, Default)]
struct Flags {
    stop: AtomicU8,
    was_connected: AtomicBool,
    connect_failure_count: AtomicU64,
    /// Of those, the ones for which this side had no port, descriptor or buffer.
    own_failure_count: AtomicU64,
    late_ns: AtomicU64,
    stuck_count: AtomicU32,
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    None,
    Drain,
    Abort,
}

impl Control {
    /// A run that was not stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steers work that comes after this run, such as its summary: whether the run was stopped is nothing to it, but an abort ends it,
    /// once it has had so much time.
    pub fn follower(&self, allowed: Duration) -> Self {
        Self { flags: Arc::default(), followed: Some((Arc::clone(&self.flags), Instant::now() + allowed)) }
    }

    /// Starts nothing more; waits for the answers that are owed, then ends the run.
    pub fn drain(&self) {
        self.flags.stop.fetch_max(DRAIN, Ordering::Relaxed);
    }

    /// Ends the run at once; open requests are counted as interrupted.
    pub fn abort(&self) {
        self.flags.stop.fetch_max(ABORT, Ordering::Relaxed);
    }

    /// Somebody asked it to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop() != Stop::None
    }

    /// Somebody asked it to end at once.
    pub fn is_aborted(&self) -> bool {
        self.stop() == Stop::Abort
    }

    /// Event loops that were left behind, because nothing could end them.
    pub fn stuck_count(&self) -> u32 {
        self.flags.stuck_count.load(Ordering::Relaxed)
    }

    pub(crate) fn note_stuck(&self) {
        self.flags.stuck_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) -> Stop {
        match self.flags.stop.load(Ordering::Relaxed) {
            _ if self.is_followed_abort() => Stop::Abort,
            0 => Stop::None,
            DRAIN => Stop::Drain,
            _ => Stop::Abort,
        }
    }

    fn is_followed_abort(&self) -> bool {
        let is_due = |(flags, since): &(Arc<Flags>, Instant)| {
            flags.stop.load(Ordering::Relaxed) == ABORT && Instant::now() >= *since
        };
        self.followed.as_ref().is_some_and(is_due)
    }

    /// Waits for the moment of the start; not when the run is stopped before. Returns the time that it is then. Both are of the
    /// monotonic clock.
    pub(crate) fn wait_for_start(&self, start_ns: u64) -> u64 {
        while !self.is_stopped() {
            let now_ns = monotonic_ns();
            if now_ns + LOOK_EVERY_NS >= start_ns {
                return wait_until(start_ns);
            }
            sleep_until(now_ns + LOOK_EVERY_NS);
        }
        monotonic_ns()
    }

    pub(crate) fn note_connected(&self) {
        // Read first: this is called for every connection, and a shared line that is only read stays cheap.
        if !self.flags.was_connected.load(Ordering::Relaxed) {
            self.flags.was_connected.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn note_connect_failure(&self) {
        self.flags.connect_failure_count.fetch_add(1, Ordering::Relaxed);
    }

    /// A failure that was counted, or is about to be, was this side's own: it says nothing about the target.
    pub(crate) fn note_own_failure(&self) {
        self.flags.own_failure_count.fetch_add(1, Ordering::Relaxed);
    }

    /// An event loop began its work so long after the start.
    pub(crate) fn note_late(&self, late_ns: u64) {
        self.flags.late_ns.fetch_max(late_ns, Ordering::Relaxed);
    }

    /// How long after the start the last event loop began its work.
    pub(crate) fn late(&self) -> Duration {
        Duration::from_nanos(self.flags.late_ns.load(Ordering::Relaxed))
    }

    /// Attempts were made to connect, none has ever succeeded, and not all of them failed on this side.
    pub(crate) fn is_unreachable(&self) -> bool {
        let own_failure_count = self.flags.own_failure_count.load(Ordering::Relaxed);
        !self.flags.was_connected.load(Ordering::Relaxed)
            && self.flags.connect_failure_count.load(Ordering::Relaxed) > own_failure_count
    }
}

const DRAIN: u8 = 1;
const ABORT: u8 = 2;

/// How often a wait looks whether the run was stopped: the delay is too short to notice.
const LOOK_EVERY_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_run_ends_with_its_abort_alone_and_not_before_its_time() {
        for (allowed, is_aborted, expected) in [
            (Duration::ZERO, false, Stop::None),
            (Duration::ZERO, true, Stop::Abort),
            (Duration::from_secs(3600), true, Stop::None),
        ] {
            let control = Control::new();
            control.drain();
            let follower = control.follower(allowed);
            if is_aborted {
                control.abort();
            }
            assert_eq!(follower.stop(), expected, "{allowed:?}, {is_aborted}");
        }
    }

    #[test]
    fn a_target_is_unreachable_where_no_attempt_succeeded_and_the_failures_are_not_all_our_own() {
        for (own, others, connected, expected) in [
            (0, 0, false, false),
            (0, 1, false, true),
            (5, 0, false, false),
            (5, 1, false, true),
            (0, 9, true, false),
        ] {
            let control = Control::new();
            (0..own + others).for_each(|_| control.note_connect_failure());
            (0..own).for_each(|_| control.note_own_failure());
            if connected {
                control.note_connected();
            }
            assert_eq!(control.is_unreachable(), expected, "{own} own of {}", own + others);
        }
    }
}
