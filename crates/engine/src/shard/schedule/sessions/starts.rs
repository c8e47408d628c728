//! Which attempt begins when: users who open one connection after the other, or the arrivals of a schedule.

use std::cmp::Reverse;

use squall_plan::limits::RECONNECT_PAUSE_MAX;

use super::{Ended, Wanted};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange, RequestId, SessionStage};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::waiter::SWEEP_NS;
use crate::shard::schedule::{Life, ShardSchedule};
use crate::sys::nanoseconds;
use crate::trouble::reconnect_pause_ns;

impl ShardSchedule {
    /// Starts users that the profile wants by now. Those that it wants no more end when their connection does.
    pub(in crate::shard) fn adjust_session_users(&mut self, connections: &Connections) {
        let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        for _ in 0..self.demand.missing_users(at_ns).max(0) {
            if !self.demand.take_one(at_ns) {
                return;
            }
            self.demand.add_users(1);
            self.want_session(connections.now_ns, 0, (0, false));
        }
    }

    /// Takes the arrivals that are due, and the attempts whose pause is over.
    pub(in crate::shard) fn release_sessions(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        self.end_rests(connections.now_ns);
        let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        while let Some(due) = self.demand.pop_arrival(at_ns) {
            self.demand.note_asked(due.intended_ns);
            let Some(sessions) = &mut self.sessions else { return };
            let is_prompt = sessions.waiting.is_empty() && sessions.may_start(connections.counts.open);
            let at_ns = self.times.start_ns + due.intended_ns;
            sessions.waiting.push_back(Wanted { at_ns, failure_count: 0, is_reopening: false });
            self.start_waiting_sessions(connections, recorder);
            if is_prompt && self.sessions.as_ref().is_some_and(|sessions| sessions.waiting.is_empty()) {
                let late_ns = connections.now_ns.saturating_sub(self.times.start_ns + due.exact_ns);
                recorder.pulse.snapshot.generator.schedule_lag.record(late_ns);
            }
        }
    }

    fn end_rests(&mut self, now_ns: u64) {
        let Some(sessions) = &mut self.sessions else { return };
        while let Some(Reverse(wanted)) = sessions.resting.peek().copied()
            && wanted.at_ns <= now_ns
        {
            sessions.resting.pop();
            sessions.waiting.push_back(Wanted { at_ns: now_ns, ..wanted });
        }
    }

    /// Lets the users go on whose connections have ended, and starts what waits.
    pub(in crate::shard) fn serve_sessions(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let Some(sessions) = &mut self.sessions else { return };
        // Which user a connection had does not matter: all do the same.
        connections.turn.ready.clear();
        let mut ended = std::mem::take(&mut sessions.ended);
        for one in ended.drain(..) {
            self.continue_session_user(connections.now_ns, one);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.ended = ended;
        }
        self.start_waiting_sessions(connections, recorder);
    }

    /// A user's next connection, after a pause where the last connect failed or what was to be kept ended soon; or the user's end.
    fn continue_session_user(&mut self, now_ns: u64, ended: Ended) {
        let Some(sessions) = &mut self.sessions else { return };
        sessions.live_count -= 1;
        let conduct = sessions.conduct;
        // Without reopening, its user stays among the live ones, so that no other takes its place.
        if sessions.is_open_model || conduct.is_idle && !conduct.reopens && ended.has_stood {
            return;
        }
        let at_ns = now_ns.saturating_sub(self.times.start_ns);
        let is_wanted = self.life == Life::Running && self.demand.missing_users(at_ns) >= 0;
        if !is_wanted || !self.demand.take_one(at_ns) {
            return self.demand.add_users(-1);
        }
        let Ended { failure_count, is_reopening, .. } = ended;
        let pause_ns = if failure_count > 0 { reconnect_pause_ns(failure_count.into()) } else { 0 };
        self.want_session(now_ns, pause_ns, (failure_count, is_reopening));
    }

    /// An attempt is to begin after a pause and the jitter.
    fn want_session(&mut self, now_ns: u64, pause_ns: u64, (failure_count, is_reopening): (u16, bool)) {
        let Some(sessions) = &mut self.sessions else { return };
        let pause_ns = pause_ns + sessions.jitter_ns();
        let wanted = Wanted { at_ns: now_ns + pause_ns, failure_count, is_reopening };
        if pause_ns == 0 {
            sessions.waiting.push_back(wanted);
        } else {
            sessions.resting.push(Reverse(wanted));
            self.times.next_sweep_ns = self.times.next_sweep_ns.min(now_ns + SWEEP_NS);
        }
    }

    /// Begins what waits, as far as connections are allowed.
    fn start_waiting_sessions(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        while let Some(sessions) = &mut self.sessions
            && self.life == Life::Running
            && connections.may_open()
            && sessions.may_start(connections.counts.open)
            && let Some(wanted) = sessions.waiting.pop_front()
        {
            sessions.live_count += 1;
            connections.counts.opened_this_turn += 1;
            connections.counts.open += 1;
            let request = RequestId(self.demand.next_of_rotation(&connections.prepared.rotation));
            let exchange = Exchange {
                request,
                intended_ns: wanted.at_ns,
                assigned_ns: connections.now_ns,
                is_first: true,
                is_warmup: wanted.at_ns < connections.limits.warm_until_ns,
                ..Exchange::default()
            };
            recorder.pulse.count_start(exchange.is_warmup, wanted.is_reopening);
            let conn_idx = connections.free_slot(recorder);
            let conn = &mut connections.conns[conn_idx];
            conn.origin_idx = connections.prepared.requests[request.0 as usize].origin_idx;
            conn.cold.failure_count = wanted.failure_count.into();
            conn.cold.is_reopening = wanted.is_reopening;
            self.times.next_sweep_ns = self.times.next_sweep_ns.min(connections.now_ns + SWEEP_NS);
            connections.open_for(self, recorder, conn_idx, exchange);
            self.settle_down(connections, recorder, conn_idx);
        }
    }

    /// A connection was dropped together with all others: its successor begins at once.
    pub(in crate::shard::schedule) fn end_for_storm(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if let Some(sessions) = &mut self.sessions {
            sessions.ended.push(Ended { failure_count: 0, is_reopening: true, has_stood: true });
        }
        self.leave_talk(connections, recorder, conn_idx);
        connections.vacate(recorder, conn_idx);
    }

    /// A connection ends: what the next one in its place has to know. A server that ends all soon must not be flooded.
    pub(in crate::shard) fn note_session_end(&mut self, connections: &Connections, conn_idx: usize) {
        let Some(sessions) = &mut self.sessions else { return };
        let conn = &connections.conns[conn_idx];
        let has_stood = conn.state != ConnState::Connecting;
        let was_kept_long = conn.cold.stage == SessionStage::Kept
            && connections.now_ns.saturating_sub(conn.cold.ready_ns) >= nanoseconds(RECONNECT_PAUSE_MAX);
        let is_forgiven = has_stood && (!sessions.conduct.is_idle || was_kept_long);
        let failure_count = if is_forgiven { 0 } else { conn.cold.failure_count.saturating_add(1) };
        sessions.ended.push(Ended {
            failure_count: failure_count.min(u16::MAX.into()) as u16,
            is_reopening: conn.cold.is_reopening,
            has_stood,
        });
    }
}
