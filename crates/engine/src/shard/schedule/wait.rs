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

use crate::pace::{Share, grid_ns};
use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::Life;
use crate::shard::schedule::ShardSchedule;
use crate::shard::schedule::trial::Trial;
use crate::sys::{involuntary_switch_count, monotonic_ns, sleep_until, thread_cpu};

/// What the loop has learned of its waits.
#[derive(Debug)]
pub(in crate::shard) struct Waiter {
    mode: Mode,
    /// Exponential mean of recent waits.
    wait_ns_mean: u64,
    /// Exponential mean of recent response times.
    response_ns_mean: u64,
    /// The last batch of events was cut off by its size.
    is_batch_full: bool,
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
    /// Connections by themselves: a handshake takes longer than any wake-up.
    Sessions,
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
pub(in crate::shard) enum Plan {
    Block(Duration),
    SpinUntil(u64),
    SleepUntil(u64),
    /// When nothing is ready yet: sleep until then, and only then wait for the first event.
    GatherUntil(u64, Duration),
}

impl Waiter {
    /// `has_sessions`: connections are opened for their own sake.
    pub(in crate::shard) fn new(when: &When, share: Share, has_sessions: bool) -> Self {
        let mode = match when {
            _ if has_sessions => Mode::Sessions,
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

    /// Whether spinning can pay, and takes the core from no other work.
    fn may_spin(&self, now_ns: u64) -> bool {
        self.wait_ns_mean < WAIT_NS_MAX && now_ns >= self.spin_forbidden_until_ns
    }

    /// How long answers may lie unread.
    fn gather_ns(&self) -> u64 {
        (self.response_ns_mean / GATHER_SHARE).min(GATHER_NS_MAX)
    }
}

impl ShardSchedule {
    pub(in crate::shard) fn plan_wait(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        now_ns: u64,
    ) -> Plan {
        let has_work = !connections.turn.ready.is_empty()
            || !connections.turn.hops.is_empty()
            || !connections.turn.unfinished.is_empty()
            || !connections.turn.unsent.is_empty()
            || self.has_session_work(connections);
        if has_work || self.waiter.is_batch_full || self.has_more_to_open(connections) {
            return Plan::Block(Duration::ZERO);
        }
        let due_ns = match self.life {
            Life::Running => self.demand.next_due_ns().map(|due_ns| self.times.start_ns + due_ns),
            Life::Draining { .. } => None,
        };
        let timer_ns = self.next_timer_ns(recorder);
        if timer_ns <= now_ns {
            return Plan::Block(Duration::ZERO);
        }
        // A handshake, the rest of a body, and requests that wait for a connection should not wait for a tick as well.
        let is_calm = connections.counts.opening == 0
            && !connections.is_mid_response
            && connections.waiting_count() == 0;
        if matches!(self.waiter.mode, Mode::Closed) && is_calm && self.waiter.prefers_other(now_ns) {
            return self.plan_other(connections, recorder, now_ns, timer_ns);
        }
        match (&self.waiter.mode, due_ns) {
            (Mode::Precise, Some(due_ns)) if due_ns < now_ns + WAKE_UP_NS => Plan::SpinUntil(due_ns),
            (Mode::Precise, Some(due_ns)) => block(now_ns, timer_ns.min(due_ns - WAKE_UP_NS)),
            // Only stamps say when an answer came that lay unread during the sleep.
            (Mode::Ticks { .. }, Some(due_ns))
                if is_calm && recorder.receive_times.stamp_clock.is_some() && self.is_tick_dense(now_ns) =>
            {
                Plan::SleepUntil(due_ns)
            }
            (_, due_ns) => block(now_ns, timer_ns.min(due_ns.unwrap_or(u64::MAX))),
        }
    }

    fn has_session_work(&self, connections: &Connections) -> bool {
        let is_running = self.life == Life::Running;
        self.sessions
            .as_ref()
            .is_some_and(|sessions| is_running && sessions.has_work(connections.counts.open))
    }

    /// When the loop has something to do whatever comes.
    pub(in crate::shard) fn next_timer_ns(&self, recorder: &ShardRecorder) -> u64 {
        let driven_ns = self
            .driven
            .as_ref()
            .map_or(u64::MAX, |driven| self.times.start_ns.saturating_add(driven.next_due_ns()));
        let stop_ns = if self.life == Life::Running { self.times.stop_at_ns } else { u64::MAX };
        self.times.next_sweep_ns.min(recorder.pulse.second_end_ns()).min(driven_ns).min(stop_ns)
    }

    /// Requests wait, and slots for them are left, but enough were opened in this turn.
    fn has_more_to_open(&self, connections: &Connections) -> bool {
        !connections.may_open() && connections.waiting_count() > 0
    }

    /// A closed model's other way to wait: with few requests in flight it spins, with many it lets answers gather, where each
    /// has its time stamped by the kernel.
    fn plan_other(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        now_ns: u64,
        timer_ns: u64,
    ) -> Plan {
        let gather_until_ns = now_ns + self.waiter.gather_ns();
        match connections.counts.open {
            1..=SPIN_IN_FLIGHT_MAX if self.waiter.may_spin(now_ns) => Plan::SpinUntil(now_ns + SPIN_NS),
            GATHER_IN_FLIGHT_MIN.. if recorder.receive_times.stamp_clock.is_some() => Plan::GatherUntil(
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
    pub(in crate::shard) fn gather(
        &mut self,
        connections: &mut Connections,
        until_ns: u64,
        timeout: Duration,
    ) -> io::Result<usize> {
        if connections.limits.stride == 1 {
            let event_count = connections.poller.wait(Duration::ZERO)?;
            if event_count > 0 {
                return Ok(event_count);
            }
        }
        sleep_until(until_ns);
        connections.poller.wait(timeout)
    }

    /// At less than one arrival per tick, sleeping whole ticks saves nothing.
    fn is_tick_dense(&self, now_ns: u64) -> bool {
        let Mode::Ticks { grid_ns, rate, share } = &self.waiter.mode else { return false };
        let at_s = now_ns.saturating_sub(self.times.start_ns) as f64 / 1e9;
        rate.value_at(at_s) * *grid_ns as f64 / 1e9 * share.fraction() >= 1.0
    }

    /// Polls without sleeping; when nothing came, a closed model's loop goes to sleep, and an arrival is due in the others.
    pub(in crate::shard) fn spin(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        until_ns: u64,
    ) -> io::Result<usize> {
        loop {
            let event_count = connections.poller.wait(Duration::ZERO)?;
            let now_ns = monotonic_ns();
            if event_count > 0 || now_ns >= until_ns {
                let is_closed = matches!(self.waiter.mode, Mode::Closed);
                if event_count == 0 && is_closed {
                    let timer_ns = self.next_timer_ns(recorder);
                    return connections.poller.wait(Duration::from_nanos(timer_ns.saturating_sub(now_ns)));
                }
                return Ok(event_count);
            }
        }
    }
}

fn block(now_ns: u64, until_ns: u64) -> Plan {
    Plan::Block(Duration::from_nanos(until_ns.saturating_sub(now_ns)))
}

/// The longest tick of an open model's pacing that is waited out asleep.
pub(in crate::shard) const TICK_NS_MAX: u64 = 2_000_000;

/// How long a loop spins for an answer: about what waking a sleeping core costs.
const SPIN_NS: u64 = 50_000;

/// With more requests in flight than this, batches come by themselves, and spinning only costs.
const SPIN_IN_FLIGHT_MAX: u32 = 8;

/// With at least this many requests in flight, waking for each answer costs more than handling it.
pub(in crate::shard) const GATHER_IN_FLIGHT_MIN: u32 = SPIN_IN_FLIGHT_MAX + 1;

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
