//! Starts what is wanted: users of a closed model, arrivals of an open one, each on the connection that it gets.

use squall_plan::limits::ARRIVALS_WAITING_MAX;

use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Exchange, RequestId};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::replay::Taken;
use crate::shard::schedule::{Life, ShardSchedule};

impl ShardSchedule {
    pub(in crate::shard) fn spawn_first_users(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        self.demand.begin_rotation(connections.prepared.rotation.len(), &self.part);
        self.adjust_users(connections, recorder);
    }

    /// Follows the profile of users or the schedule of arrivals up to now.
    pub(in crate::shard) fn follow_schedule(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        connections.counts.opened_this_turn = 0;
        if self.life == Life::Running {
            self.release_arrivals(connections, recorder);
            self.release_streams(connections, recorder);
            self.serve_messages(connections, recorder);
        }
    }

    /// Starts users that the profile wants by now. Those that it wants no more end when their request ends.
    pub(in crate::shard) fn adjust_users(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        if self.sessions.is_some() {
            return self.adjust_session_users(connections);
        }
        let missing = self.demand.missing_users(connections.now_ns.saturating_sub(self.times.start_ns));
        for _ in 0..missing.max(0) {
            self.demand.add_users(1);
            self.continue_user(connections, recorder, None);
        }
    }

    /// Starts all arrivals that are due.
    pub(in crate::shard) fn release_arrivals(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        if self.sessions.is_some() {
            return self.release_sessions(connections, recorder);
        }
        connections.serve_hops(self, recorder);
        if self.demand.is_recorded() {
            return self.release_recorded(connections, recorder);
        }
        let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        while let Some(due) = self.demand.pop_arrival(at_ns) {
            let intended_ns = self.times.start_ns + due.intended_ns;
            let taken = match self.replay {
                Some(_) => self.next_of_recording(connections, intended_ns),
                None => Taken::Go(self.next_of_rotation(connections, intended_ns)),
            };
            // A recorded request that waits for another one is asked for, too.
            if matches!(taken, Taken::Go(_) | Taken::Later) {
                self.demand.note_asked(due.intended_ns);
            }
            let Taken::Go(exchange) = taken else { continue };
            if connections.counts.waiting >= ARRIVALS_WAITING_MAX {
                self.demand.note_unsent(1);
            } else if connections.place(self, recorder, exchange) {
                let late_ns = connections.now_ns.saturating_sub(self.times.start_ns + due.exact_ns);
                recorder.pulse.snapshot.generator.schedule_lag.record(late_ns);
            }
        }
    }

    /// Starts what arrivals and those who wait have free connections for, and sends it.
    pub(in crate::shard) fn start_next(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        self.start_released(connections, recorder);
        connections.serve_waiting(self, recorder);
        connections.send_unsent(self, recorder);
    }

    /// Lets the users go on whose requests have ended, on the connections that these have left; redirects go before.
    pub(in crate::shard) fn serve_ready(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        if self.sessions.is_some() {
            return self.serve_sessions(connections, recorder);
        }
        connections.serve_hops(self, recorder);
        let mut ready = std::mem::take(&mut connections.turn.ready);
        for conn_idx in ready.drain(..) {
            if self.demand.is_closed_model() {
                self.continue_user(connections, recorder, Some(conn_idx as usize));
            } else {
                connections.offer(self, recorder, conn_idx as usize);
            }
        }
        // What was added meanwhile (a send that failed at once) is for the next turn.
        ready.append(&mut connections.turn.ready);
        connections.turn.ready = ready;
    }

    /// A user's next request, on the connection it has where that leads to the same origin; or the user's end.
    fn continue_user(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: Option<usize>,
    ) {
        if self.streams.as_mut().is_some_and(|streams| streams.take_rest()) {
            return conn_idx.into_iter().for_each(|idx| connections.offer(self, recorder, idx));
        }
        let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        let is_wanted = self.life == Life::Running && self.demand.missing_users(at_ns) >= 0;
        let next =
            (is_wanted && self.demand.take_one(at_ns)).then(|| self.next_of_user(connections)).flatten();
        let Some(exchange) = next else {
            self.demand.add_users(-1);
            if let Some(conn_idx) = conn_idx {
                connections.retire(self, recorder, conn_idx);
            }
            return;
        };
        match conn_idx {
            Some(conn_idx) if connections.fits(conn_idx, &exchange) => {
                connections.assign(self, recorder, conn_idx, exchange);
            }
            Some(conn_idx) => {
                connections.place(self, recorder, exchange);
                connections.offer(self, recorder, conn_idx);
            }
            None => {
                connections.place(self, recorder, exchange);
            }
        }
    }

    /// A user's next request; `None` where a recording has no more.
    fn next_of_user(&mut self, connections: &mut Connections) -> Option<Exchange> {
        if self.replay.is_none() {
            return Some(self.next_of_rotation(connections, connections.now_ns));
        }
        let next = self.next_of_copies(connections);
        if next.is_none() && self.has_played_all() {
            self.demand.exhaust();
        }
        next
    }

    fn next_of_rotation(&mut self, connections: &Connections, intended_ns: u64) -> Exchange {
        let request = RequestId(self.demand.next_of_rotation(&connections.prepared.rotation));
        Exchange { request, intended_ns, ..Exchange::default() }
    }
}
