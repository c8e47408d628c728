//! A shard's figures: folded into the running second's snapshot, handed over once a second; and how busy the loop was.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use squall_measure::Snapshot;

use super::Shard;
use super::demand::Demand;
use crate::sys::thread_cpu;

/// A shard's figures of one second.
#[derive(Debug)]
pub(crate) struct Second {
    pub(crate) shard_idx: u32,
    /// Seconds after the run's start.
    pub(crate) second_idx: u32,
    pub(crate) snapshot: Box<Snapshot>,
    /// It is the shard's last one.
    pub(crate) is_last: bool,
}

/// The running second.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) snapshot: Box<Snapshot>,
    pub(super) connections_open: u64,
    shard_idx: u32,
    seconds: Sender<Second>,
    spare: Receiver<Box<Snapshot>>,
    start_ns: u64,
    second_begin_ns: u64,
    second_idx: u32,
    /// When the loop last woke.
    woke_ns: u64,
    busy_ns: u64,
    stall_ns_max: u64,
    cpu_before: Duration,
    asked_before: u64,
}

/// What a pulse needs.
pub(super) struct PulseSetup {
    pub(super) shard_idx: u32,
    pub(super) start_ns: u64,
    pub(super) row_count: usize,
    pub(super) is_open_model: bool,
    pub(super) seconds: Sender<Second>,
    pub(super) spare: Receiver<Box<Snapshot>>,
}

impl Pulse {
    pub(super) fn new(setup: PulseSetup) -> Self {
        let PulseSetup { shard_idx, start_ns, row_count, is_open_model, seconds, spare } = setup;
        Self {
            snapshot: Box::new(Snapshot::new(row_count, is_open_model)),
            connections_open: 0,
            shard_idx,
            seconds,
            spare,
            start_ns,
            second_begin_ns: start_ns,
            second_idx: 0,
            woke_ns: start_ns,
            busy_ns: 0,
            stall_ns_max: 0,
            cpu_before: Duration::ZERO,
            asked_before: 0,
        }
    }

    /// Sets the counters to zero at the run's start.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.woke_ns = now_ns;
        self.cpu_before = thread_cpu();
    }

    pub(super) fn is_open_model(&self) -> bool {
        self.snapshot.open_model
    }

    pub(super) fn count_start(&mut self, is_warmup: bool) {
        self.snapshot.requests_warmup += u64::from(is_warmup);
        self.snapshot.requests_started += u64::from(!is_warmup);
    }

    /// The loop begins to wait.
    pub(super) fn pause(&mut self, now_ns: u64) {
        let turn_ns = now_ns.saturating_sub(self.woke_ns);
        self.busy_ns += turn_ns;
        self.stall_ns_max = self.stall_ns_max.max(turn_ns);
        self.woke_ns = now_ns;
    }

    /// The loop goes on.
    pub(super) fn resume(&mut self, now_ns: u64) {
        self.woke_ns = now_ns;
    }

    pub(super) fn second_end_ns(&self) -> u64 {
        self.start_ns + (u64::from(self.second_idx) + 1) * SECOND_NS
    }

    /// Hands the last, maybe short, second over.
    pub(super) fn end(&mut self, now_ns: u64, demand: &Demand, waiting_count: u64) {
        self.fill_generator(now_ns, demand, waiting_count);
        self.hand_over(true);
    }

    fn fill_generator(&mut self, now_ns: u64, demand: &Demand, waiting_count: u64) {
        let cpu = thread_cpu();
        let asked_count = demand.asked_count();
        self.snapshot.arrivals_asked = asked_count - self.asked_before;
        let generator = &mut self.snapshot.generator;
        generator.wall = Duration::from_nanos(now_ns.saturating_sub(self.second_begin_ns));
        generator.busy = Duration::from_nanos(self.busy_ns);
        generator.cpu = cpu.saturating_sub(self.cpu_before);
        generator.stall_max = Duration::from_nanos(self.stall_ns_max);
        generator.connections_open = self.connections_open;
        generator.arrivals_waiting = waiting_count;
        (self.busy_ns, self.stall_ns_max) = (0, 0);
        (self.cpu_before, self.asked_before, self.second_begin_ns) = (cpu, asked_count, now_ns);
    }

    /// Sends the snapshot away and goes on with a spare one; only a collector that lags behind makes us allocate.
    fn hand_over(&mut self, is_last: bool) {
        let fresh = self.spare.try_recv().unwrap_or_else(|_none| {
            Box::new(Snapshot::new(self.snapshot.rows.len(), self.snapshot.open_model))
        });
        let snapshot = std::mem::replace(&mut self.snapshot, fresh);
        let second = Second { shard_idx: self.shard_idx, second_idx: self.second_idx, snapshot, is_last };
        // A collector that is gone needs no figures.
        let _ = self.seconds.send(second);
    }
}

impl Shard {
    /// Ends the second when its time has come.
    pub(super) fn turn_second(&mut self) {
        if self.now_ns < self.pulse.second_end_ns() {
            return;
        }
        let waiting_count = self.waiting_count();
        self.pulse.fill_generator(self.now_ns, &self.demand, waiting_count);
        self.pulse.hand_over(false);
        self.pulse.second_idx = ((self.now_ns - self.limits.start_ns) / SECOND_NS) as u32;
        if let Some(clock) = &mut self.io.stamp_clock {
            *clock = crate::sys::Clock::new();
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;
