//! A shard's figures: folded into the running second's snapshot, handed over once a second; and how busy the loop was.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use squall_measure::{Sample, Snapshot};

use crate::sys::thread_cpu;

/// A shard's figures of one second.
#[derive(Debug)]
pub(crate) struct Second {
    pub(crate) shard_idx: u32,
    /// Seconds after the run's start.
    pub(crate) second_idx: u32,
    pub(crate) snapshot: Box<Snapshot>,
    /// Requests open at its end, by row; empty where the shard cannot get stuck, or nothing is open.
    pub(crate) open_rows: Vec<u64>,
    /// It is the shard's last one.
    pub(crate) is_last: bool,
}

/// The running second.
#[derive(Debug)]
pub(crate) struct Pulse {
    pub(crate) snapshot: Box<Snapshot>,
    pub(crate) connections_open: u64,
    /// Samples are of connections that were opened for their own sake, not of requests.
    pub(crate) has_sessions: bool,
    /// Requests open at the end of the second, by row, as the shard last set them.
    pub(crate) open_rows: Vec<u64>,
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

/// How far a shard is behind its schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    /// Arrivals that the schedule has asked for so far, those of the warm-up left out.
    pub(crate) asked_count: u64,
    /// Arrivals that wait for a connection.
    pub(crate) waiting_count: u64,
}

/// What a pulse needs.
pub(crate) struct PulseSetup {
    pub(crate) shard_idx: u32,
    pub(crate) start_ns: u64,
    pub(crate) row_count: usize,
    pub(crate) is_open_model: bool,
    pub(crate) seconds: Sender<Second>,
    pub(crate) spare: Receiver<Box<Snapshot>>,
}

impl Pulse {
    pub(crate) fn new(setup: PulseSetup) -> Self {
        let PulseSetup { shard_idx, start_ns, row_count, is_open_model, seconds, spare } = setup;
        Self {
            snapshot: Box::new(Snapshot::new(row_count, is_open_model)),
            connections_open: 0,
            has_sessions: false,
            open_rows: Vec::new(),
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

    /// Sets the counters to zero at the run's start, or before it, where the run was stopped while it waited.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.start_ns = self.start_ns.min(now_ns);
        self.second_begin_ns = self.start_ns;
        self.woke_ns = now_ns;
        self.cpu_before = thread_cpu();
    }

    pub(crate) fn is_open_model(&self) -> bool {
        self.snapshot.open_model
    }

    /// `follows`: something else led to it than the schedule, such as a redirect.
    pub(crate) fn count_start(&mut self, is_warmup: bool, follows: bool) {
        self.snapshot.requests_warmup += u64::from(is_warmup);
        self.snapshot.requests_started += u64::from(!is_warmup);
        self.snapshot.arrivals_sent += u64::from(self.snapshot.open_model && !is_warmup && !follows);
    }

    /// A request has ended.
    pub(crate) fn record(&mut self, sample: &Sample) {
        #[cfg(test)]
        crate::sys::simulated::note_sample(sample);
        match self.has_sessions {
            false => self.snapshot.record(sample),
            true => self.snapshot.record_session(sample),
        }
    }

    /// The loop begins to wait.
    pub(crate) fn pause(&mut self, now_ns: u64) {
        let turn_ns = now_ns.saturating_sub(self.woke_ns);
        self.busy_ns += turn_ns;
        self.stall_ns_max = self.stall_ns_max.max(turn_ns);
        self.woke_ns = now_ns;
    }

    /// The loop goes on. `due_ns`: when it was to go on at the latest; a process that was stopped or got no CPU is late, and answers
    /// lay unread meanwhile.
    pub(crate) fn resume(&mut self, now_ns: u64, due_ns: u64) {
        self.stall_ns_max = self.stall_ns_max.max(now_ns.saturating_sub(due_ns));
        self.woke_ns = now_ns;
    }

    pub(crate) fn second_end_ns(&self) -> u64 {
        self.start_ns + (u64::from(self.second_idx) + 1) * SECOND_NS
    }

    /// Hands the last, maybe short, second over, once its generator's figures are taken.
    pub(crate) fn end(&mut self) {
        self.hand_over(true);
    }

    /// Ends the second when its time has come; whether it had.
    pub(crate) fn turn_second(&mut self, now_ns: u64, backlog: impl FnOnce() -> Backlog) -> bool {
        if now_ns < self.second_end_ns() {
            return false;
        }
        self.fill_generator(now_ns, backlog());
        self.hand_over(false);
        self.second_idx = ((now_ns - self.start_ns) / SECOND_NS) as u32;
        true
    }

    /// Takes what this thread did in a second.
    pub(crate) fn fill_generator(&mut self, now_ns: u64, backlog: Backlog) {
        let cpu = thread_cpu();
        let Backlog { asked_count, waiting_count } = backlog;
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
        let row_count = self.snapshot.rows.len();
        let mut fresh = self
            .spare
            .try_recv()
            .unwrap_or_else(|_none| Box::new(Snapshot::new(row_count, self.snapshot.open_model)));
        // A spare one that was made before the rows that a script or a recording has added since.
        fresh.rows.resize_with(row_count, Default::default);
        let snapshot = std::mem::replace(&mut self.snapshot, fresh);
        let open_rows = std::mem::take(&mut self.open_rows);
        let (shard_idx, second_idx) = (self.shard_idx, self.second_idx);
        let second = Second { shard_idx, second_idx, snapshot, open_rows, is_last };
        // A collector that is gone needs no figures.
        let _ = self.seconds.send(second);
    }
}

const SECOND_NS: u64 = 1_000_000_000;
