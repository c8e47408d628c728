//! How long the loop waits, and how: blocking, spinning for a moment, or sleeping to the next tick.
//!
//! A wake-up of a sleeping core costs as much as several requests. So a loop with few requests in flight and a fast
//! server spins for some microseconds, while the core is its own; a loop with many lets a batch of answers gather before
//! it wakes; and an open model's loop sleeps whole ticks. Where answers lie unread for a while, latencies are kept true
//! by the kernel's receive stamps.

use std::io;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use squall_plan::{Pacing, Profile, When};

use super::conn::State;
use super::trial::Trial;
use super::{Life, Shard};
use crate::pace::{Share, grid_ns};
use crate::sys::{Readiness, involuntary_switch_count, monotonic_ns, sleep_until, thread_cpu};

/// What the loop has learned of its waits.
#[derive(Debug)]
pub(super) struct Waiter {
    mode: Mode,
    /// Exponential mean of recent waits.
    wait_ns_mean: u64,
    /// Exponential mean of recent response times.
    response_ns_mean: u64,
    /// The last batch of events was cut off by its size.
    is_batch_full: bool,
    /// A response came in part: the rest is not left waiting for a tick.
    pub(super) is_mid_response: bool,
    /// Until then the core is not ours alone, and spinning would take it from others.
    spin_forbidden_until_ns: u64,
    /// In this turn of the trial the other way could not be had, at least once.
    is_hindered: bool,
    switch_count: u64,
    response_count: u64,
    trial: Trial,
}

/// What the plan's way of starting requests allows.
#[derive(Debug)]
enum Mode {
    Closed,
    /// Open model, each arrival at its own time.
    Precise,
    /// Open model on a grid.
    Ticks {
        grid_ns: u64,
        rate: Profile,
        share: Share,
    },
}

/// One wait.
enum Plan {
    Block(Duration),
    SpinUntil(u64),
    SleepUntil(u64),
    /// When nothing is ready yet: sleep until then, and only then wait for the first event.
    GatherUntil(u64, Duration),
}

impl Waiter {
    pub(super) fn new(when: &When, share: Share) -> Self {
        let mode = match when {
            When::Closed { .. } => Mode::Closed,
            When::Open { pacing: Pacing::Precise, .. } => Mode::Precise,
            When::Open { pacing, rate, .. } => {
                Mode::Ticks { grid_ns: grid_ns(*pacing), rate: rate.clone(), share }
            }
        };
        Self {
            mode,
            wait_ns_mean: SPIN_NS * 2,
            response_ns_mean: 0,
            is_batch_full: false,
            is_mid_response: false,
            spin_forbidden_until_ns: 0,
            is_hindered: false,
            switch_count: 0,
            response_count: 0,
            trial: Trial::default(),
        }
    }

    /// The kernel may round time-outs up by the timer slack, 50 us by default: too much for a schedule.
    pub(super) fn prepare_thread(&mut self) {
        self.switch_count = involuntary_switch_count();
        // Without the finer slack the loop works as well, only later.
        let _ = set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    }

    pub(super) fn note_response(&mut self, response_ns: u64) {
        self.response_count += 1;
        self.response_ns_mean = (self.response_ns_mean * 15 + response_ns) / 16;
    }

    fn note_wait(&mut self, waited_ns: u64) {
        self.wait_ns_mean = (self.wait_ns_mean * 7 + waited_ns.min(2 * WAIT_NS_MAX)) / 8;
    }

    /// Whether to wait the other way, because that costs less: to spin, or to let answers gather.
    fn prefers_other(&mut self, now_ns: u64) -> bool {
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

    /// Whether spinning can pay, and takes the core from nobody.
    fn may_spin(&self, now_ns: u64) -> bool {
        self.wait_ns_mean < WAIT_NS_MAX && now_ns >= self.spin_forbidden_until_ns
    }

    /// How long answers may lie unread.
    fn gather_ns(&self) -> u64 {
        (self.response_ns_mean / GATHER_SHARE).min(GATHER_NS_MAX)
    }
}

impl Shard {
    /// Waits for events, and handles them.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let begin_ns = monotonic_ns();
        self.pulse.pause(begin_ns);
        // Whatever comes, the loop looks at its deadlines then; an arrival that is due later than that is waited for in its own tick.
        let due_ns = self.next_timer_ns().max(begin_ns) + TICK_NS_MAX;
        let event_count = match self.plan_wait(begin_ns) {
            Plan::Block(timeout) => self.poller.wait(timeout)?,
            Plan::SpinUntil(until_ns) => self.spin(until_ns)?,
            Plan::GatherUntil(until_ns, timeout) => self.gather(until_ns, timeout)?,
            Plan::SleepUntil(until_ns) => {
                sleep_until(until_ns);
                self.resume(due_ns);
                // What is due goes out before what came in is read: that has its time stamped already.
                self.release_arrivals();
                self.send_unsent();
                self.poller.wait(Duration::ZERO)?
            }
        };
        self.resume(due_ns);
        self.waiter.note_wait(self.now_ns - begin_ns);
        self.waiter.is_batch_full = self.poller.is_full(event_count);
        self.waiter.is_mid_response = false;
        self.io.reads_stamps = !matches!(self.waiter.mode, Mode::Closed) || self.waiter.trial.is_other();
        self.resume_unfinished();
        for idx in 0..event_count {
            self.handle(self.poller.event(idx));
        }
        if self.io.stamps().is_some() {
            // Reads have set the time back to when their data came.
            self.now_ns = monotonic_ns();
        }
        Ok(())
    }

    /// Goes on where the last turn stopped: an edge-triggered poller does not tell again.
    fn resume_unfinished(&mut self) {
        let mut unfinished = std::mem::take(&mut self.unfinished);
        for conn_idx in unfinished.drain(..) {
            let conn_idx = conn_idx as usize;
            if self.conns[conn_idx].state == State::Open {
                let readiness = Readiness {
                    token: self.conns[conn_idx].token(conn_idx),
                    readable: true,
                    writable: true,
                    closed: false,
                };
                self.on_open_event(conn_idx, readiness);
            }
        }
        // Its capacity is kept; what was added meanwhile is for the next turn.
        unfinished.append(&mut self.unfinished);
        self.unfinished = unfinished;
    }

    fn resume(&mut self, due_ns: u64) {
        self.now_ns = monotonic_ns();
        self.pulse.resume(self.now_ns, due_ns);
        if let Some(clock) = &mut self.io.stamp_clock {
            self.io.has_stepped = clock.has_stepped(self.now_ns, self.io.reads_stamps);
        }
    }

    fn plan_wait(&mut self, now_ns: u64) -> Plan {
        let has_work = !self.ready.is_empty()
            || !self.hops.is_empty()
            || !self.unfinished.is_empty()
            || !self.unsent.is_empty();
        if has_work || self.waiter.is_batch_full || self.has_more_to_open() {
            return Plan::Block(Duration::ZERO);
        }
        let due_ns = match self.life {
            Life::Running => self.demand.next_due_ns().map(|due_ns| self.limits.start_ns + due_ns),
            Life::Draining { .. } => None,
        };
        let timer_ns = self.next_timer_ns();
        if timer_ns <= now_ns {
            return Plan::Block(Duration::ZERO);
        }
        // A handshake, the rest of a body, and whoever waits for a connection should not wait for a tick as well.
        let is_calm = self.opening_count == 0 && !self.waiter.is_mid_response && self.waiting_count() == 0;
        if matches!(self.waiter.mode, Mode::Closed) && is_calm && self.waiter.prefers_other(now_ns) {
            return self.plan_other(now_ns, timer_ns);
        }
        match (&self.waiter.mode, due_ns) {
            (Mode::Precise, Some(due_ns)) if due_ns < now_ns + WAKE_UP_NS => Plan::SpinUntil(due_ns),
            (Mode::Precise, Some(due_ns)) => block(now_ns, timer_ns.min(due_ns - WAKE_UP_NS)),
            // Only stamps say when an answer came that lay unread during the sleep.
            (Mode::Ticks { .. }, Some(due_ns))
                if is_calm && self.io.stamp_clock.is_some() && self.is_tick_dense(now_ns) =>
            {
                Plan::SleepUntil(due_ns)
            }
            (_, due_ns) => block(now_ns, timer_ns.min(due_ns.unwrap_or(u64::MAX))),
        }
    }

    /// When the loop has something to do whatever comes.
    fn next_timer_ns(&self) -> u64 {
        let driven_ns = self
            .driven
            .as_ref()
            .map_or(u64::MAX, |driven| self.limits.start_ns.saturating_add(driven.next_due_ns()));
        let stop_ns = if self.life == Life::Running { self.limits.stop_at_ns } else { u64::MAX };
        self.limits.next_sweep_ns.min(self.pulse.second_end_ns()).min(driven_ns).min(stop_ns)
    }

    /// Requests wait, and slots for them are left, but enough were opened in this turn.
    fn has_more_to_open(&self) -> bool {
        self.opened_this_turn >= super::demand::OPEN_PER_TURN_MAX && self.waiting_count() > 0
    }

    /// A closed model's other way to wait: with few requests in flight it spins, with many it lets answers gather, where each
    /// has its time stamped by the kernel.
    fn plan_other(&mut self, now_ns: u64, timer_ns: u64) -> Plan {
        let gather_until_ns = now_ns + self.waiter.gather_ns();
        match self.open_count {
            1..=SPIN_IN_FLIGHT_MAX if self.waiter.may_spin(now_ns) => Plan::SpinUntil(now_ns + SPIN_NS),
            GATHER_IN_FLIGHT_MIN.. if self.io.stamp_clock.is_some() => Plan::GatherUntil(
                gather_until_ns,
                Duration::from_nanos(timer_ns.saturating_sub(gather_until_ns)),
            ),
            _ => {
                self.waiter.is_hindered = true;
                block(now_ns, timer_ns)
            }
        }
    }

    /// Where connections carry one request each, answers that are there are taken at once. Where they carry many, more of them gather in
    /// each connection meanwhile, and one read takes them all.
    fn gather(&mut self, until_ns: u64, timeout: Duration) -> io::Result<usize> {
        if self.limits.stride == 1 {
            let event_count = self.poller.wait(Duration::ZERO)?;
            if event_count > 0 {
                return Ok(event_count);
            }
        }
        sleep_until(until_ns);
        self.poller.wait(timeout)
    }

    /// At less than one arrival per tick, sleeping whole ticks saves nothing.
    fn is_tick_dense(&self, now_ns: u64) -> bool {
        let Mode::Ticks { grid_ns, rate, share } = &self.waiter.mode else { return false };
        let at_s = now_ns.saturating_sub(self.limits.start_ns) as f64 / 1e9;
        rate.value_at(at_s) * *grid_ns as f64 / 1e9 * share.fraction() >= 1.0
    }

    /// Polls without sleeping; when nothing came, a closed model's loop goes to sleep, and an arrival is due in the others.
    fn spin(&mut self, until_ns: u64) -> io::Result<usize> {
        loop {
            let event_count = self.poller.wait(Duration::ZERO)?;
            let now_ns = monotonic_ns();
            if event_count > 0 || now_ns >= until_ns {
                let is_closed = matches!(self.waiter.mode, Mode::Closed);
                if event_count == 0 && is_closed {
                    let timer_ns = self.next_timer_ns();
                    return self.poller.wait(Duration::from_nanos(timer_ns.saturating_sub(now_ns)));
                }
                return Ok(event_count);
            }
        }
    }

    fn handle(&mut self, event: Readiness) {
        let conn_idx = (event.token & u64::from(u32::MAX)) as usize;
        let conn = &mut self.conns[conn_idx];
        if conn.token(conn_idx) != event.token {
            return;
        }
        conn.peer_closed |= event.closed;
        match conn.state {
            State::Vacant => {}
            State::Connecting if event.writable => self.on_connect_event(conn_idx),
            State::Connecting => {}
            State::Tunnelling => self.on_tunnel_event(conn_idx, event),
            State::Handshaking => self.handshake(conn_idx),
            State::Open => self.on_open_event(conn_idx, event),
        }
    }

    fn on_tunnel_event(&mut self, conn_idx: usize, event: Readiness) {
        if event.writable {
            self.send_prelude(conn_idx);
        }
        if event.readable && self.conns[conn_idx].state == State::Tunnelling {
            self.receive_prelude(conn_idx);
        }
    }

    fn on_open_event(&mut self, conn_idx: usize, event: Readiness) {
        if event.writable && self.conns[conn_idx].wants_write() {
            self.list_unsent(conn_idx);
        }
        if event.readable && self.conns[conn_idx].token(conn_idx) == event.token {
            self.receive(conn_idx);
        }
    }
}

fn block(now_ns: u64, until_ns: u64) -> Plan {
    Plan::Block(Duration::from_nanos(until_ns.saturating_sub(now_ns)))
}

/// The longest tick of an open model's pacing that is waited out asleep.
const TICK_NS_MAX: u64 = 2_000_000;

/// How long a loop spins for an answer: about what waking a sleeping core costs.
const SPIN_NS: u64 = 50_000;

/// With more requests in flight than this, batches come by themselves, and spinning only costs.
const SPIN_IN_FLIGHT_MAX: u32 = 8;

/// With at least this many requests in flight, waking for each answer costs more than handling it.
pub(super) const GATHER_IN_FLIGHT_MIN: u32 = SPIN_IN_FLIGHT_MAX + 1;

/// The longest time that answers may lie unread.
const GATHER_NS_MAX: u64 = 250_000;

/// They lie unread for at most this part of a response time; the trial sees to it that the users of a closed model get no fewer answers.
const GATHER_SHARE: u64 = 4;

/// How long before an arrival is due a precise loop wakes, to spin the rest.
const WAKE_UP_NS: u64 = 60_000;

/// A server whose answers take longer than this is slept for.
const WAIT_NS_MAX: u64 = 4 * SPIN_NS;

/// Involuntary context switches within a turn of the trial that leave the core called ours.
const SWITCHES_ALLOWED: u64 = 2;

/// How long a loop that was pushed off its core does not spin.
const SPIN_FORBIDDEN_NS: u64 = 200_000_000;
