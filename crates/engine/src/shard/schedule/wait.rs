//! How long the loop waits, and how: blocking, spinning for a moment, or sleeping to the next tick.

use std::io;
use std::time::Duration;

use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::waiter::{GATHER_IN_FLIGHT_MIN, Mode, SPIN_IN_FLIGHT_MAX, SPIN_NS};
use crate::shard::schedule::{Life, ShardSchedule};
use crate::sys::{monotonic_ns, sleep_until};

/// One wait.
pub(in crate::shard) enum Plan {
    Block(Duration),
    SpinUntil(u64),
    SleepUntil(u64),
    /// When nothing is ready yet: sleep until then, and only then wait for the first event.
    GatherUntil(u64, Duration),
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
            || connections.has_unread_quic()
            || self.has_session_work(connections);
        if has_work || self.waiter.is_batch_full || self.has_more_to_open(connections) {
            return Plan::Block(Duration::ZERO);
        }
        let due_ns = match self.life {
            Life::Running => self.demand.next_due_ns().map(|due_ns| self.times.start_ns + due_ns),
            Life::Draining { .. } => None,
        };
        let timer_ns = self.next_timer_ns(connections, recorder);
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
    pub(in crate::shard) fn next_timer_ns(&self, connections: &Connections, recorder: &ShardRecorder) -> u64 {
        let driven_ns = self
            .driven
            .as_ref()
            .map_or(u64::MAX, |driven| self.times.start_ns.saturating_add(driven.next_due_ns()));
        let stream_ns = self.streams.as_ref().map_or(u64::MAX, |streams| streams.next_due_ns());
        let message_ns = self.messages.as_ref().map_or(u64::MAX, |messages| messages.next_due_ns());
        let message_ns = if self.life == Life::Running { message_ns } else { u64::MAX };
        let stop_ns = if self.life == Life::Running { self.times.stop_at_ns } else { u64::MAX };
        self.times
            .next_sweep_ns
            .min(recorder.pulse.second_end_ns())
            .min(driven_ns)
            .min(connections.next_quic_ns())
            .min(stream_ns)
            .min(self.next_talk_ns())
            .min(message_ns)
            .min(stop_ns)
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
        let gather_until_ns = now_ns + self.waiter.gather_ns(connections.gather_ns_max());
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
        let Mode::Ticks { grid_ns, rate, fraction } = &self.waiter.mode else { return false };
        let at_s = now_ns.saturating_sub(self.times.start_ns) as f64 / 1e9;
        rate.value_at(at_s) * *grid_ns as f64 / 1e9 * fraction >= 1.0
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
                    let timer_ns = self.next_timer_ns(connections, recorder);
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

/// How long before an arrival is due a precise loop wakes, to spin the rest.
const WAKE_UP_NS: u64 = 60_000;
