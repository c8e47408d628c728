//! What starts when in one event loop, and when it ends.
//!
//! Owns: users and arrivals, the driver or the recording that decides requests, the time limits of the load, how the loop waits.
//! Never: sockets. Its methods are in `starts` (users and arrivals), `drive` (a script's calls), `replay` (recorded traffic), `sessions` (connections without a request load) and `wait` (how
//! long, and how).

pub(super) mod demand;
mod drive;
pub(super) mod driven;
mod held;
pub(super) mod messages;
mod replay;
pub(super) mod sessions;
mod starts;
mod streams;
mod trial;
pub(super) mod wait;
pub(super) mod waiter;

use squall_plan::ShardPart;

use crate::driver::Driver;
use crate::prepare::Prepared;
use crate::pulse::Backlog;
use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::demand::Demand;
use crate::shard::schedule::driven::Driven;
use crate::shard::schedule::messages::MessageSchedule;
use crate::shard::schedule::replay::Replay;
use crate::shard::schedule::sessions::SessionSchedule;
use crate::shard::schedule::streams::StreamSchedule;
use crate::shard::schedule::waiter::{SWEEP_NS, SWEEP_NS_PER_CONNECTION, Waiter};
use crate::sys::{Clock, nanoseconds};
use crate::{Control, Error, Stop};

/// What one event loop is to start, and when.
pub(in crate::shard) struct ShardSchedule {
    pub(in crate::shard) part: ShardPart,
    pub(in crate::shard) control: Control,
    pub(in crate::shard) times: Times,
    pub(in crate::shard) demand: Demand,
    pub(in crate::shard) waiter: Waiter,
    /// Recorded traffic, where the load is that.
    pub(in crate::shard) replay: Option<Box<Replay>>,
    /// Connections that are opened for their own sake, where the load is that.
    pub(in crate::shard) sessions: Option<Box<SessionSchedule>>,
    /// What is said on them, where they are WebSockets.
    pub(in crate::shard) messages: Option<Box<MessageSchedule>>,
    /// Streams that are opened again, where responses are streams.
    pub(in crate::shard) streams: Option<Box<StreamSchedule>>,
    /// Who decides the requests at run time, where the plan does not.
    pub(in crate::shard) driven: Option<Driven>,
    pub(in crate::shard) life: Life,
}

/// The load's times on the monotonic clock.
pub(in crate::shard) struct Times {
    pub(in crate::shard) start_ns: u64,
    pub(in crate::shard) stop_at_ns: u64,
    /// How long responses are waited for at the end.
    pub(in crate::shard) drain_ns: u64,
    pub(in crate::shard) next_sweep_ns: u64,
}

/// What the shard is still doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    /// Nothing more starts; what is open is waited for until then.
    Draining {
        until_ns: u64,
    },
}

impl ShardSchedule {
    /// The schedule of a load that starts at `start_ns`.
    pub(in crate::shard) fn new(
        prepared: &Prepared,
        part: &ShardPart,
        (start_ns, warmup_ns): (u64, u64),
        (control, watches_memory): (Control, bool),
    ) -> Result<Self, Error> {
        let load = &prepared.load;
        let times = Times::new(prepared, start_ns);
        let length_ns = times.stop_at_ns.saturating_sub(start_ns);
        let per_connection = prepared.requests_per_connection();
        Ok(Self {
            part: part.clone(),
            control,
            times,
            demand: Demand::new(load, part, per_connection, (length_ns, warmup_ns)),
            waiter: Waiter::new(&load.when, part, prepared.sessions.is_some() || prepared.streams.is_some()),
            replay: Replay::new(prepared, part)?,
            sessions: SessionSchedule::new(prepared, part, start_ns, watches_memory),
            messages: MessageSchedule::new(prepared, part, (start_ns, warmup_ns), length_ns),
            streams: StreamSchedule::new(prepared),
            driven: None,
            life: Life::Running,
        })
    }

    /// A driver decides from now on.
    pub(in crate::shard) fn follow_driver(&mut self, driver: Box<dyn Driver>) {
        self.demand = Demand::driven();
        self.driven = Some(Driven::new(driver));
    }

    /// Ends the second when its time has come.
    pub(in crate::shard) fn turn_second(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let backlog = self.backlog(connections);
        if connections.now_ns >= recorder.pulse.second_end_ns() {
            connections.note_quic(recorder);
            self.fill_driven(connections, recorder);
            if let Some(sessions) = &mut self.sessions {
                sessions.note_memory(&mut recorder.pulse);
            }
            recorder.fill_streams();
            // Only a script can hold its loop for ever.
            if self.driven.is_some() {
                recorder.pulse.open_rows = connections.open_rows(recorder);
            }
        }
        if !recorder.pulse.turn_second(connections.now_ns, || backlog) {
            return;
        }
        if self.life != Life::Running {
            self.demand.forget_unsent();
        }
        if let Some(clock) = &mut recorder.receive_times.stamp_clock {
            *clock = Clock::new();
        }
    }

    pub(in crate::shard) fn fill_driven(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let now_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        if let Some(driven) = &mut self.driven {
            driven.fill(now_ns, &mut recorder.pulse.snapshot);
        }
    }

    pub(in crate::shard) fn backlog(&self, connections: &Connections) -> Backlog {
        // What waits for another request of its session waits for the server, too; once the load drains, it is skipped.
        let running = self.replay.as_ref().filter(|_| self.life == Life::Running);
        let held_count = running.map_or(0, |replay| replay.pending_count() as u64);
        let session_count = self.sessions.as_ref().map_or(0, |sessions| sessions.waiting_count());
        self.demand.backlog(connections.counts.waiting + held_count + session_count)
    }

    pub(in crate::shard) fn sleep_until_start(&mut self, connections: &mut Connections) {
        connections.now_ns = self.control.wait_for_start(self.times.start_ns);
        self.control.note_late(connections.now_ns.saturating_sub(self.times.start_ns));
        // Where it was stopped before, what a driver has to end is due now.
        self.times.start_ns = connections.now_ns.min(self.times.start_ns);
    }

    /// Obeys the user's stop, and the plan's.
    pub(in crate::shard) fn follow_control(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        match (self.control.stop(), self.life) {
            (Stop::Abort, _) => connections.interrupt_all(self, recorder),
            (Stop::Drain, Life::Running) if self.driven.is_some() => self.stop_driver(connections, recorder),
            (Stop::Drain, Life::Running) => self.drain(connections, recorder),
            (Stop::None, Life::Running) if connections.now_ns >= self.times.stop_at_ns => {
                // Arrivals of the last moment are the schedule's too, even when this turn came late.
                self.release_arrivals(connections, recorder);
                self.drain(connections, recorder);
            }
            (_, Life::Draining { until_ns }) if connections.now_ns >= until_ns => {
                connections.interrupt_all(self, recorder);
            }
            _ => {}
        }
    }

    pub(in crate::shard) fn drain(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        self.life = Life::Draining { until_ns: connections.now_ns + self.times.drain_ns };
        let mut retry_count = 0;
        for pool_idx in 0..connections.pools.len() {
            for waiting in std::mem::take(&mut connections.pools[pool_idx].waiting) {
                if waiting.is_retry() {
                    retry_count += 1;
                    connections.pools[pool_idx].waiting.push_back(waiting);
                } else {
                    connections.give_back(&waiting);
                }
            }
        }
        let dropped_count = connections.counts.waiting - retry_count;
        self.skip_recorded(recorder, dropped_count);
        let session_count = self.sessions.as_mut().map_or(0, |sessions| sessions.drop_waiting());
        self.demand.note_unsent(dropped_count + session_count);
        connections.counts.waiting = retry_count;
        self.cut_streams(connections, recorder);
    }

    pub(in crate::shard) fn is_finished(&self, connections: &Connections) -> bool {
        if connections.counts.open > 0 || !connections.turn.hops.is_empty() {
            return false;
        }
        if !self.is_driver_finished(connections) {
            return false;
        }
        if self.life != Life::Running {
            let is_over = matches!(self.life, Life::Draining { until_ns: 0 });
            return is_over || self.has_settled_messages(connections.now_ns);
        }
        self.demand.is_exhausted()
            && connections.waiting_count() == 0
            && connections.turn.ready.is_empty()
            && self.pending_recorded() == 0
            && !self.is_talking()
            && self.sessions.as_ref().is_none_or(|sessions| sessions.is_at_rest())
    }

    /// Ends what has lasted too long: connects, responses, and the rests of slots that failed.
    pub(in crate::shard) fn sweep_deadlines(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        if connections.now_ns < self.times.next_sweep_ns {
            return;
        }
        let conn_count = connections.conns.len();
        // Kept connections are many: a sweep takes at most about a hundredth of the time.
        let pause_ns = if self.sessions.is_some() { conn_count as u64 * SWEEP_NS_PER_CONNECTION } else { 0 };
        self.times.next_sweep_ns = connections.now_ns + SWEEP_NS.max(pause_ns);
        let mut earliest_ns = u64::MAX;
        for conn_idx in 0..conn_count {
            if connections.now_ns >= connections.deadlines[conn_idx] {
                connections.on_deadline(self, recorder, conn_idx);
            }
            earliest_ns = earliest_ns.min(connections.deadlines[conn_idx]);
        }
        if self.sessions.is_some() {
            self.sweep_parked(connections, recorder);
        }
        match self.life {
            Life::Running => self.adjust_users(connections, recorder),
            // Streams may have had their first event since the last time.
            Life::Draining { .. } => self.cut_streams(connections, recorder),
        }
        let now_ns = connections.now_ns;
        let is_timeless = self.sessions.as_ref().is_some_and(|sessions| sessions.is_timeless(now_ns));
        if is_timeless && earliest_ns == u64::MAX && !connections.parked.has_deadlines() {
            self.times.next_sweep_ns = now_ns + SILENT_SWEEP_NS;
        }
    }
}

impl Times {
    fn new(prepared: &Prepared, start_ns: u64) -> Self {
        let drain_max_ns = nanoseconds(squall_plan::limits::DRAIN_MAX);
        let length = prepared.load.stop.duration;
        let timeout = match &prepared.sessions {
            None => prepared.http().timeout,
            Some(_) => prepared.http().timeout.max(prepared.load.connections.connect_timeout),
        };
        Self {
            start_ns,
            stop_at_ns: length.map_or(u64::MAX, |length| start_ns + nanoseconds(length)),
            drain_ns: nanoseconds(timeout).min(drain_max_ns),
            next_sweep_ns: start_ns,
        }
    }
}

/// How often it is looked whether there are deadlines, where there is none. The user's stop is seen within this, too.
const SILENT_SWEEP_NS: u64 = 100_000_000;
