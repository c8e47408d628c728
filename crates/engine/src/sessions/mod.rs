//! The second kind of event loop: connections for their own sake. Each is opened, makes its handshake and maybe one request, and is
//! then closed, held for a while, or kept for ever; a rotation of requests is what the loops of `shard` have.
//!
//! A turn of the loop is: open what is due, wait, work off what is ready.
//!
//! Owns: sockets, timers, schedule. Never: argv, files of results, the terminal. The modules of such a shard:
//! `prepared` (where connections go), `demand` (what starts when), `open` (connect and handshake), `tls` and `tickets`
//! (the sessions), `talk` (bytes out and in), `keep` (connections that stay), `settle` (how each ends).

mod demand;
mod keep;
mod open;
mod prepared;
mod settle;
mod slot;
mod talk;
mod tickets;
mod tls;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use squall_plan::When;
use squall_wire::h1::HeadCache;

use crate::dial::Dialer;
use crate::pace::{Share, SplitMix};
use crate::pulse::{Backlog, Pulse};
use crate::setup::ShardSetup;
use crate::shard::{Demand, Life};
use crate::sys::{Poller, monotonic_ns, nanoseconds, process_data_bytes};
use crate::tls::TlsStream;
use crate::{Control, Error, Stop};

use settle::TermsCache;
use slot::Slot;
use tickets::Configs;

pub(crate) use prepared::PreparedSessions;

/// One event loop.
pub(crate) struct SessionShard {
    prepared: Arc<PreparedSessions>,
    control: Control,
    limits: SessionLimits,
    demand: Demand,
    pulse: Pulse,
    poller: Poller,
    slots: Vec<Slot>,
    /// When each slot's present state has lasted long enough; apart from the slots because all are looked at.
    deadlines: Vec<u64>,
    /// Slots without a connection, that belong to no user.
    vacant: Vec<u32>,
    /// When those were wanted that wait for a slot.
    waiting: VecDeque<u64>,
    /// Slots whose connection has ended: their users go on.
    ready: Vec<u32>,
    /// Connections that had more to read than one turn allows.
    unfinished: Vec<u32>,
    dialer: Dialer,
    rotation_next: usize,
    configs: Option<Configs>,
    terms: TermsCache,
    /// Handshakes in a row after which no ticket came.
    ticketless_count: u32,
    io: SessionBuffers,
    random: SplitMix,
    memory: Option<Memory>,
    /// Started and not settled yet.
    unsettled_count: u32,
    /// Slots that hold a connection, or that rest before the next.
    live_count: u32,
    opened_this_turn: u32,
    now_ns: u64,
    life: Life,
}

/// Buffers shared by all connections of a shard: nothing is kept per connection.
struct SessionBuffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    plain: Vec<u8>,
    /// What HTTP/2 is to be answered, before it is sealed.
    control: Vec<u8>,
    head_cache: HeadCache,
}

/// The load's numbers in the units of the loop.
struct SessionLimits {
    start_ns: u64,
    warm_until_ns: u64,
    stop_at_ns: u64,
    connect_timeout_ns: u64,
    drain_ns: u64,
    slot_count_max: u32,
    is_open_model: bool,
    /// Until then the number of users changes.
    ramp_until_ns: u64,
    next_sweep_ns: u64,
    /// No deadline comes before this.
    next_deadline_ns: u64,
}

/// How much the process has grown since the start.
struct Memory {
    begin_bytes: u64,
    grown_bytes: u64,
}

/// Each thread's first use of the cryptography gathers entropy for tens of milliseconds: that is done before the start.
pub(crate) fn warm_up(prepared: &PreparedSessions) {
    let name = prepared.courses.iter().find_map(|course| course.server_name.clone());
    if let Some((config, name)) = prepared.tls.as_ref().zip(name) {
        // A failure here comes again with the first connection, where it is counted.
        let _ = TlsStream::new(Arc::clone(config), name);
    }
}

impl SessionShard {
    /// A loop that starts at `start_ns` on the monotonic clock.
    pub(crate) fn new(setup: ShardSetup<Arc<PreparedSessions>>, start_ns: u64) -> Result<Self, Error> {
        let (share, warmup_ns) = (setup.share, setup.warmup_ns);
        let memory = setup.watches_memory.then(Memory::new);
        let (pulse, prepared, control) = setup.into_pulse(start_ns);
        let limits = SessionLimits::new(&prepared, share, start_ns, warmup_ns);
        let length_ns = limits.stop_at_ns.saturating_sub(start_ns);
        let os = |source| Error::Os { what: "create an epoll instance", source };
        let mut dialer = Dialer::new(&prepared.load, share);
        prepared.courses.iter().for_each(|course| dialer.add(&course.dial, &prepared.names));
        let resumption = &prepared.conduct.resumption;
        Ok(Self {
            demand: Demand::new(&prepared.load, share, 1, (length_ns, warmup_ns)),
            pulse,
            poller: Poller::with_capacity(EVENTS_PER_TURN).map_err(os)?,
            slots: Vec::new(),
            deadlines: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            ready: Vec::new(),
            unfinished: Vec::new(),
            dialer,
            rotation_next: prepared.rotation.len() * share.shard_idx as usize / share.shard_count as usize,
            configs: prepared.tls.as_ref().map(|config| Configs::new(config, resumption)),
            terms: TermsCache::default(),
            ticketless_count: 0,
            io: SessionBuffers::new(),
            random: SplitMix::new(u64::from(share.shard_idx) + 1),
            memory,
            unsettled_count: 0,
            live_count: 0,
            opened_this_turn: 0,
            now_ns: start_ns,
            life: Life::Running,
            prepared,
            control,
            limits,
        })
    }

    /// Runs the load to its end; returns when that was, on the monotonic clock.
    pub(crate) fn run(mut self) -> Result<u64, Error> {
        self.now_ns = self.control.wait_for_start(self.limits.start_ns);
        self.control.note_late(self.now_ns.saturating_sub(self.limits.start_ns));
        self.pulse.begin(self.now_ns);
        // Where it was stopped before, there is nothing to wait for.
        self.follow_control();
        while !self.is_finished() {
            self.follow_control();
            self.follow_schedule();
            self.start_next();
            self.wait().map_err(|source| Error::Os { what: "wait for events", source })?;
            self.sweep_deadlines();
            self.turn_second();
        }
        self.count_farewells();
        self.note_memory();
        self.pulse.end(self.now_ns, self.backlog());
        self.close_all();
        Ok(self.now_ns)
    }

    /// Obeys the user's stop, and the plan's.
    fn follow_control(&mut self) {
        match (self.control.stop(), self.life) {
            (Stop::Abort, _) => self.interrupt_all(),
            (Stop::Drain, Life::Running) => self.drain(),
            (Stop::None, Life::Running) if self.now_ns >= self.limits.stop_at_ns => {
                // Arrivals of the last moment are the schedule's too, even when this turn came late.
                self.release_arrivals();
                self.drain();
            }
            (_, Life::Draining { until_ns }) if self.now_ns >= until_ns => self.interrupt_all(),
            _ => {}
        }
    }

    fn drain(&mut self) {
        self.life = Life::Draining { until_ns: self.now_ns + self.limits.drain_ns };
        self.demand.note_unsent(self.waiting.len() as u64);
        self.waiting.clear();
    }

    fn is_finished(&self) -> bool {
        match self.life {
            Life::Draining { .. } => self.unsettled_count == 0,
            Life::Running => {
                self.demand.is_exhausted()
                    && self.live_count == 0
                    && self.waiting.is_empty()
                    && self.ready.is_empty()
            }
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        self.now_ns = monotonic_ns();
        self.pulse.pause(self.now_ns);
        let length = self.wait_length();
        let due_ns = self.now_ns + nanoseconds(length);
        let event_count = self.poller.wait(length)?;
        self.now_ns = monotonic_ns();
        self.pulse.resume(self.now_ns, due_ns);
        self.resume_unfinished();
        for idx in 0..event_count {
            self.handle(self.poller.event(idx));
        }
        Ok(())
    }

    fn wait_length(&self) -> Duration {
        let has_work = !self.ready.is_empty() || !self.unfinished.is_empty();
        let may_open = !self.waiting.is_empty() && self.has_slot() && self.life == Life::Running;
        if has_work || may_open {
            return Duration::ZERO;
        }
        let mut until_ns = self.pulse.second_end_ns();
        if self.limits.next_deadline_ns < u64::MAX || self.now_ns < self.limits.ramp_until_ns {
            until_ns = until_ns.min(self.limits.next_sweep_ns.max(self.limits.next_deadline_ns));
            if self.now_ns < self.limits.ramp_until_ns {
                until_ns = until_ns.min(self.limits.next_sweep_ns);
            }
        }
        match self.life {
            Life::Running => {
                let due_ns = self.demand.next_due_ns().map(|due_ns| self.limits.start_ns + due_ns);
                until_ns = until_ns.min(due_ns.unwrap_or(u64::MAX)).min(self.limits.stop_at_ns);
            }
            Life::Draining { until_ns: drained_ns } => until_ns = until_ns.min(drained_ns),
        }
        Duration::from_nanos(until_ns.saturating_sub(self.now_ns).min(CONTROL_LOOK_NS))
    }

    /// Goes on where the last turn stopped: an edge-triggered poller does not tell again.
    fn resume_unfinished(&mut self) {
        let mut unfinished = std::mem::take(&mut self.unfinished);
        for slot_idx in unfinished.drain(..) {
            self.on_readable(slot_idx as usize);
        }
        unfinished.append(&mut self.unfinished);
        self.unfinished = unfinished;
    }

    /// Ends what has lasted long enough. Looking at all of them is kept to a hundredth of a core.
    fn sweep_deadlines(&mut self) {
        if self.now_ns < self.limits.next_sweep_ns {
            return;
        }
        let pause_ns = SWEEP_NS.max(self.deadlines.len() as u64 * SWEEP_NS_PER_SLOT);
        self.limits.next_sweep_ns = self.now_ns + pause_ns;
        if self.life == Life::Running {
            self.adjust_users();
        }
        if self.now_ns < self.limits.next_deadline_ns {
            return;
        }
        self.limits.next_deadline_ns = u64::MAX;
        for slot_idx in 0..self.deadlines.len() {
            let deadline_ns = self.deadlines[slot_idx];
            if self.now_ns >= deadline_ns {
                self.on_deadline(slot_idx);
            } else {
                self.limits.next_deadline_ns = self.limits.next_deadline_ns.min(deadline_ns);
            }
        }
    }

    fn set_deadline(&mut self, slot_idx: usize, at_ns: u64) {
        self.deadlines[slot_idx] = at_ns;
        self.limits.next_deadline_ns = self.limits.next_deadline_ns.min(at_ns);
    }

    fn turn_second(&mut self) {
        if self.now_ns >= self.pulse.second_end_ns() {
            self.note_memory();
        }
        let backlog = self.backlog();
        if self.pulse.turn_second(self.now_ns, || backlog) && self.life != Life::Running {
            self.demand.forget_unsent();
        }
    }

    fn backlog(&self) -> Backlog {
        self.demand.backlog(self.waiting.len() as u64)
    }

    fn note_memory(&mut self) {
        if let Some(memory) = &mut self.memory {
            let more_bytes = memory.more_bytes(process_data_bytes());
            self.pulse.snapshot.sessions.get_or_insert_default().memory_grown_bytes += more_bytes;
        }
    }
}

impl Memory {
    fn new() -> Self {
        Self { begin_bytes: process_data_bytes(), grown_bytes: 0 }
    }

    /// By how much the process is larger than ever before.
    fn more_bytes(&mut self, data_bytes: u64) -> u64 {
        let grown_bytes = data_bytes.saturating_sub(self.begin_bytes);
        let more_bytes = grown_bytes.saturating_sub(self.grown_bytes);
        self.grown_bytes += more_bytes;
        more_bytes
    }
}

impl SessionBuffers {
    fn new() -> Self {
        Self {
            incoming: vec![0; INCOMING_BYTES],
            outgoing: Vec::new(),
            plain: Vec::new(),
            control: Vec::new(),
            head_cache: HeadCache::default(),
        }
    }
}

impl SessionLimits {
    fn new(prepared: &PreparedSessions, share: Share, start_ns: u64, warmup_ns: u64) -> Self {
        let load = &prepared.load;
        let connect_timeout_ns = nanoseconds(load.connections.connect_timeout);
        let opening_ns = connect_timeout_ns.max(prepared.conduct.request_timeout_ns);
        let ramp_ns = match &load.when {
            When::Closed { connections, .. } => nanoseconds(connections.duration()),
            When::Open { .. } => 0,
        };
        Self {
            start_ns,
            warm_until_ns: start_ns + warmup_ns,
            stop_at_ns: load.stop.duration.map_or(u64::MAX, |duration| start_ns + nanoseconds(duration)),
            connect_timeout_ns,
            drain_ns: opening_ns.min(nanoseconds(squall_plan::limits::DRAIN_MAX)),
            slot_count_max: (share.part_of(load.when.connection_count_max()) as u32).max(1),
            is_open_model: matches!(load.when, When::Open { .. }),
            ramp_until_ns: start_ns.saturating_add(ramp_ns).saturating_add(SWEEP_NS),
            next_sweep_ns: start_ns,
            next_deadline_ns: u64::MAX,
        }
    }
}

/// Holds what came of the largest handshake message that the library takes (64 KiB), and one read more.
const INCOMING_BYTES: usize = 128 * 1024;

/// Events worked off in one turn: each may be a handshake of 100 us and more.
const EVENTS_PER_TURN: usize = 64;

/// How often deadlines are looked at: time-outs are met within this ...
const SWEEP_NS: u64 = 10_000_000;

/// ... or within this for each slot, which takes about a hundredth of it.
const SWEEP_NS_PER_SLOT: u64 = 100;

/// The user's stop is seen within this.
const CONTROL_LOOK_NS: u64 = 100_000_000;
