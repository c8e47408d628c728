//! One event loop. Shards share nothing while they run.
//!
//! A shard has three parts, each of which owns its data and its methods, and gets the others as arguments where it needs them:
//! `connections` (sockets and what is on them), `schedule` (what starts when) and `recorder` (what is counted). This file ties them together by
//! one turn of the loop: take what is due, send it all, wait, read all that is ready. Requests whose responses came in a turn are followed by the
//! next ones together, after all reads: fewer switches between the directions, larger batches.
//!
//! Owns: the order of a turn. Never: argv, files of results, the terminal.

mod connections;
#[cfg(test)]
mod held;
mod recorder;
mod schedule;
#[cfg(test)]
mod simulation;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use squall_plan::limits::BODIES_BYTES_MAX;

use crate::Error;
use crate::driver::Driver;
use crate::prepare::Prepared;
use crate::setup::ShardSetup;
use crate::sys::{monotonic_ns, sleep_until};
use crate::tls::TlsStream;

use connections::Connections;
use recorder::ShardRecorder;
use recorder::sink::ResponseSink;
use schedule::ShardSchedule;
use schedule::wait::{Plan, TICK_NS_MAX};

/// One event loop.
pub(crate) struct Shard {
    connections: Connections,
    schedule: ShardSchedule,
    recorder: ShardRecorder,
}

/// Each thread's first use of the cryptography gathers entropy for tens of milliseconds: that is done before the start.
pub(crate) fn warm_up_tls(prepared: &Prepared) {
    if let Some(origin_tls) = prepared.origins.iter().find_map(|origin| origin.tls.as_ref()) {
        // A failure here comes again with the first connection, where it is counted.
        let _ = TlsStream::new(Arc::clone(&origin_tls.config), origin_tls.server_name.clone());
    }
}

impl Shard {
    /// A loop that starts at `start_ns` on the monotonic clock.
    pub(crate) fn new(setup: ShardSetup<Arc<Prepared>>, start_ns: u64) -> Result<Self, Error> {
        let (part, warmup_ns, watches_memory) = (setup.part.clone(), setup.warmup_ns, setup.watches_memory);
        let (pulse, prepared, control) = setup.into_pulse(start_ns);
        let schedule =
            ShardSchedule::new(&prepared, &part, (start_ns, warmup_ns), (control.clone(), watches_memory))?;
        let recorder = ShardRecorder::new(pulse, &prepared, &part, start_ns);
        let connections = Connections::new(prepared, &part, (start_ns, warmup_ns), control)?;
        Ok(Self { connections, schedule, recorder })
    }

    /// A loop whose requests `driver` decides; of one user at most `per_host` connections go to one origin.
    pub(crate) fn driven(
        setup: ShardSetup<Arc<Prepared>>,
        start_ns: u64,
        (driver, per_host): (Box<dyn Driver>, u32),
    ) -> Result<Self, Error> {
        let mut shard = Self::new(setup, start_ns)?;
        let held_bytes_max = shard.schedule.part.part_of(BODIES_BYTES_MAX) as usize;
        shard.recorder.sink = ResponseSink::for_driver(held_bytes_max);
        shard.connections.limits.allow_per_user(per_host);
        shard.schedule.follow_driver(driver);
        Ok(shard)
    }

    /// Runs the load to its end; returns when that was, on the monotonic clock.
    pub(crate) fn run(mut self) -> Result<u64, Error> {
        self.run_to_end()?;
        Ok(self.connections.now_ns)
    }

    fn run_to_end(&mut self) -> Result<(), Error> {
        let Self { connections, schedule, recorder } = self;
        schedule.waiter.prepare_thread();
        schedule.sleep_until_start(connections);
        recorder.begin(connections.now_ns);
        schedule.tell_recorded(recorder);
        if schedule.control.is_stopped() {
            schedule.follow_control(connections, recorder);
        } else {
            schedule.spawn_first_users(connections, recorder);
        }
        while !self.schedule.is_finished(&self.connections) {
            if !self.turn()? {
                break;
            }
        }
        self.end();
        Ok(())
    }

    /// One turn of the loop; false when nothing was left to wait for.
    fn turn(&mut self) -> Result<bool, Error> {
        let Self { connections, schedule, recorder } = self;
        schedule.follow_control(connections, recorder);
        schedule.follow_schedule(connections, recorder);
        schedule.serve_ready(connections, recorder);
        schedule.drive(connections, recorder);
        schedule.converse(connections, recorder);
        schedule.start_next(connections, recorder);
        connections.drop_all_peeked();
        if schedule.is_finished(connections) {
            return Ok(false);
        }
        let event_count = self.wait().map_err(|source| Error::Os { what: "wait for events", source })?;
        self.handle_events(event_count);
        let Self { connections, schedule, recorder } = self;
        connections.expire_quic(schedule, recorder);
        schedule.sweep_deadlines(connections, recorder);
        schedule.turn_second(connections, recorder);
        Ok(true)
    }

    /// Waits for events; returns how many there are.
    fn wait(&mut self) -> io::Result<usize> {
        let begin_ns = monotonic_ns();
        let Self { connections, schedule, recorder } = self;
        recorder.pulse.pause(begin_ns);
        // Whatever comes, the loop looks at its deadlines then; an arrival that is due later than that is waited for in its own tick.
        let due_ns = schedule.next_timer_ns(connections, recorder).max(begin_ns) + TICK_NS_MAX;
        let event_count = match schedule.plan_wait(connections, recorder, begin_ns) {
            Plan::Block(timeout) => connections.poller.wait(timeout)?,
            Plan::SpinUntil(until_ns) => schedule.spin(connections, recorder, until_ns)?,
            Plan::GatherUntil(until_ns, timeout) => schedule.gather(connections, until_ns, timeout)?,
            Plan::SleepUntil(until_ns) => {
                sleep_until(until_ns);
                connections.now_ns = monotonic_ns();
                recorder.resume(connections.now_ns, due_ns);
                // What is due goes out before what came in is read: that has its time stamped already.
                schedule.release_arrivals(connections, recorder);
                connections.send_unsent(schedule, recorder);
                connections.poller.wait(Duration::ZERO)?
            }
        };
        connections.now_ns = monotonic_ns();
        recorder.resume(connections.now_ns, due_ns);
        schedule.waiter.end_wait(connections.now_ns - begin_ns, connections.poller.is_full(event_count));
        Ok(event_count)
    }

    /// Reads all that is ready.
    fn handle_events(&mut self, event_count: usize) {
        let Self { connections, schedule, recorder } = self;
        connections.is_mid_response = false;
        recorder.receive_times.reads_stamps = schedule.waiter.lets_responses_gather();
        connections.resume_unfinished(schedule, recorder);
        for idx in 0..event_count {
            let event = connections.poller.event(idx);
            connections.handle(schedule, recorder, event);
        }
        if recorder.receive_times.clock().is_some() {
            // Reads have set the time back to when their data came.
            connections.now_ns = monotonic_ns();
        }
    }

    /// Closes what is open, and hands the last figures over.
    fn end(&mut self) {
        let Self { connections, schedule, recorder } = self;
        schedule.tell_recorded(recorder);
        schedule.fill_driven(connections, recorder);
        schedule.end_talks(connections, recorder);
        recorder.fill_streams();
        if let Some(sessions) = &mut schedule.sessions {
            sessions.note_memory(&mut recorder.pulse);
            schedule.count_farewells(connections, recorder);
            schedule.count_unanswered(recorder);
        }
        // What is sent to close connections counts; the time that it takes is not the load's.
        recorder.pulse.fill_generator(connections.now_ns, schedule.backlog(connections));
        connections.part_with_all(schedule, recorder);
        connections.part_with_parked(recorder);
        connections.flush_quic();
        connections.note_quic_end(recorder);
        recorder.pulse.end();
    }
}
