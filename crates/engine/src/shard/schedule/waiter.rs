//! What the loop has learned of its waits.
//!
//! A wake-up of a sleeping core costs as much as several requests. So a loop with few requests in flight and a fast
//! server spins for some microseconds, while the core is its own; a loop with many lets a batch of answers gather before
//! it wakes; and an open model's loop sleeps whole ticks. Where answers lie unread for a while, latencies are kept true
//! by the kernel's receive stamps.

use rustix::thread::set_current_timer_slack;
use squall_plan::{Pacing, Profile, ShardPart, When};

use crate::pace::grid_ns;
use crate::shard::schedule::trial::Trial;
use crate::sys::{involuntary_switch_count, thread_cpu};

/// What the loop has learned of its waits.
#[derive(Debug)]
pub(in crate::shard) struct Waiter {
    pub(super) mode: Mode,
    /// Exponential mean of recent waits.
    wait_ns_mean: u64,
    /// Exponential mean of recent response times.
    response_ns_mean: u64,
    /// The last batch of events was cut off by its size.
    pub(super) is_batch_full: bool,
    /// Until then the core is not ours alone, and spinning would take it from others.
    spin_forbidden_until_ns: u64,
    /// In this turn of the trial the other way could not be had, at least once.
    pub(super) is_hindered: bool,
    switch_count: u64,
    response_count: u64,
    trial: Trial,
}

/// What the plan's way of starting requests allows.
#[derive(Debug)]
pub(super) enum Mode {
    Closed,
    /// Connections by themselves: a handshake takes longer than any wake-up.
    Sessions,
    /// Open model, each arrival at its own time.
    Precise,
    /// Open model on a grid.
    Ticks {
        grid_ns: u64,
        /// Of the load.
        rate: Profile,
        /// Of it, this shard's.
        fraction: f64,
    },
}

impl Waiter {
    /// `has_sessions`: connections are opened for their own sake.
    pub(in crate::shard) fn new(when: &When, part: &ShardPart, has_sessions: bool) -> Self {
        let mode = match when {
            _ if has_sessions => Mode::Sessions,
            When::Closed { .. } => Mode::Closed,
            When::Open { pacing: Pacing::Precise, .. } => Mode::Precise,
            When::Open { pacing, rate, .. } => {
                Mode::Ticks { grid_ns: grid_ns(*pacing), rate: rate.clone(), fraction: part.fraction() }
            }
        };
        Self {
            mode,
            wait_ns_mean: SPIN_NS * 2,
            response_ns_mean: 0,
            is_batch_full: false,
            spin_forbidden_until_ns: 0,
            is_hindered: false,
            switch_count: 0,
            response_count: 0,
            trial: Trial::default(),
        }
    }

    /// The kernel may round time-outs up by the timer slack, 50 us by default: too much for a schedule.
    pub(in crate::shard) fn prepare_thread(&mut self) {
        self.switch_count = involuntary_switch_count();
        // Without the finer slack the loop works as well, only later.
        let _ = set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    }

    pub(in crate::shard) fn note_response(&mut self, response_ns: u64) {
        self.response_count += 1;
        self.response_ns_mean = (self.response_ns_mean * 15 + response_ns) / 16;
    }

    /// A wait is over; `is_batch_full`: its events were cut off by their number.
    pub(in crate::shard) fn end_wait(&mut self, waited_ns: u64, is_batch_full: bool) {
        self.wait_ns_mean = (self.wait_ns_mean * 7 + waited_ns.min(2 * WAIT_NS_MAX)) / 8;
        self.is_batch_full = is_batch_full;
    }

    /// Whether responses may have lain unread before the next reads.
    pub(in crate::shard) fn lets_responses_gather(&self) -> bool {
        !matches!(self.mode, Mode::Closed) || self.trial.is_other()
    }

    /// Whether to wait the other way, because that costs less: to spin, or to let answers gather.
    pub(super) fn prefers_other(&mut self, now_ns: u64) -> bool {
        if self.trial.is_turn_over(now_ns) {
            let is_hindered = std::mem::take(&mut self.is_hindered);
            self.trial.end_turn(now_ns, thread_cpu(), self.response_count, is_hindered);
            let before = std::mem::replace(&mut self.switch_count, involuntary_switch_count());
            if self.switch_count - before > SWITCHES_ALLOWED {
                self.spin_forbidden_until_ns = now_ns + SPIN_FORBIDDEN_NS;
            }
        }
        self.trial.is_other()
    }

    /// Whether spinning can pay, and takes the core from no other work.
    pub(super) fn may_spin(&self, now_ns: u64) -> bool {
        self.wait_ns_mean < WAIT_NS_MAX && now_ns >= self.spin_forbidden_until_ns
    }

    /// How long answers may lie unread.
    pub(super) fn gather_ns(&self, longest_ns: u64) -> u64 {
        (self.response_ns_mean / GATHER_SHARE).min(longest_ns)
    }
}

/// How long a loop spins for an answer: about what waking a sleeping core costs.
pub(super) const SPIN_NS: u64 = 50_000;

/// With more requests in flight than this, batches come by themselves, and spinning only costs.
pub(super) const SPIN_IN_FLIGHT_MAX: u32 = 8;

/// With at least this many requests in flight, waking for each answer costs more than handling it.
pub(in crate::shard) const GATHER_IN_FLIGHT_MIN: u32 = SPIN_IN_FLIGHT_MAX + 1;

/// They lie unread for at most this part of a response time; the trial sees to it that the users of a closed model get no fewer answers.
pub(super) const GATHER_SHARE: u64 = 4;

/// A server whose answers take longer than this is slept for.
pub(super) const WAIT_NS_MAX: u64 = 4 * SPIN_NS;

/// Involuntary context switches within a turn of the trial that leave the core called ours.
pub(super) const SWITCHES_ALLOWED: u64 = 2;

/// How long a loop that was pushed off its core does not spin.
pub(super) const SPIN_FORBIDDEN_NS: u64 = 200_000_000;

/// How often deadlines are looked at: time-outs are met within this.
pub(in crate::shard) const SWEEP_NS: u64 = 10_000_000;

/// How long a look at one kept connection puts off the next look at all of them: about a hundred times what it takes.
pub(in crate::shard) const SWEEP_NS_PER_CONNECTION: u64 = 100;
