//! One step: has its loads prepared, starts them everywhere at one moment, and follows them to their end.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use squall_measure::{Event, EventKind};
use squall_plan::units::DurationText;

use super::jobs::{State, Step};
use super::{Fleet, SECOND_NS, Steer, Watcher};
use crate::clock::unix_ns;
use crate::link::Link;
use crate::order::FleetPlan;
use crate::protocol::{LoadOrder, Order, Trouble};

impl Fleet<'_> {
    /// Has the loads of a step prepared, and waits until each is ready, refused, or gone with its machine.
    /// Stopped by the user it waits for nothing.
    pub(super) fn prepare(&mut self, step_idx: usize, steer: &Steer, watcher: &mut dyn Watcher) -> Step {
        let mut step = Step::new(step_idx);
        for machine_idx in 0..self.links.len() {
            let loads = self.load_orders(machine_idx, &mut step);
            self.links[machine_idx].order(Order::Prepare { loads });
        }
        let mut deadline = Instant::now() + PREPARE_MAX;
        while step.any(State::Preparing) && Instant::now() < deadline && self.steered == 0 {
            self.turn(&mut step, watcher);
            self.obey(steer);
            if self.links.iter().any(Link::is_sending_files) {
                deadline = Instant::now() + PREPARE_MAX;
            }
        }
        if self.steered == 0 {
            self.troubles.extend(unready(self.plan, &step));
        }
        step
    }

    /// A machine's part of a step.
    fn load_orders(&self, machine_idx: usize, step: &mut Step) -> Vec<LoadOrder> {
        let mut orders = Vec::new();
        for &load_idx in &self.plan.steps[step.step_idx].load_idxs {
            let load = &self.plan.loads[load_idx];
            let part = load.parts.iter().find(|(machine, _)| *machine == machine_idx);
            let Some((_, segment)) = part.filter(|_| self.links[machine_idx].lost.is_none()) else {
                continue;
            };
            step.jobs.push((machine_idx, load_idx, State::Preparing));
            let is_first = load.is_copied() || !step.callers.iter().any(|(called, _)| *called == load_idx);
            if is_first {
                step.callers.push((load_idx, machine_idx));
            }
            orders.push(LoadOrder {
                load_idx: load_idx as u32,
                name: load.name.clone(),
                work: self.work(load_idx, machine_idx),
                env: load.env.clone(),
                segment: segment.clone(),
                is_copied: load.parts.len() > 1 && load.is_copied(),
                is_first,
                start_after: load.start_after,
            });
        }
        orders
    }

    /// Starts what is ready, everywhere at the same moment. Later steps begin a whole number of seconds after the first, so that
    /// seconds of all steps are seconds of the run.
    pub(super) fn start(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        let slowest = self.slowest_round_trip();
        let earliest = unix_ns(SystemTime::now() + START_DELAY + 2 * slowest);
        if self.started_unix_ns == 0 {
            self.started_unix_ns = earliest;
            self.ledger.whole.recorder.set_started(earliest / 1_000_000);
        }
        let (origin_s, at_ns) = step_start(self.started_unix_ns, earliest);
        step.origin_s = origin_s;
        for link in self.links.iter().filter(|link| link.lost.is_none()) {
            link.order(Order::Start { at_unix_ns: link.clock.theirs(at_ns) });
        }
        for job_idx in 0..step.jobs.len() {
            let (machine_idx, load_idx, state) = step.jobs[job_idx];
            if state == State::Ready {
                step.jobs[job_idx].2 = State::Running;
                let has_seconds = !self.plan.loads[load_idx].work.is_tool();
                self.ledger.begin(step.source(self.plan, machine_idx, load_idx), has_seconds);
            }
        }
        let name = self.plan.steps[step.step_idx].name.clone();
        let at_s = f64::from(step.origin_s);
        self.events.push(Event { at_s, label: name.clone(), kind: EventKind::Step });
        let count = self.plan.steps.len();
        let phase = format!("step `{name}` ({} of {count})", step.step_idx + 1);
        watcher.phase(Some(phase.as_str()).filter(|_| count > 1));
        if count > 1 {
            watcher.note(&phase);
        }
    }

    /// Asks all agents for their clocks before any machine works, when answers are quick.
    pub(super) fn compare_clocks(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        for _ in 0..CLOCK_ROUND_COUNT {
            self.links.iter().for_each(Link::ask_clock);
            thread::sleep(CLOCK_ROUND);
        }
        while let Ok(arrival) = self.inbox.try_recv() {
            self.arrive(arrival, step, watcher);
        }
    }

    /// Collects until every load of the step has ended everywhere.
    pub(super) fn follow(&mut self, step: &mut Step, steer: &Steer, watcher: &mut dyn Watcher) {
        while step.any(State::Running) {
            self.turn(step, watcher);
            self.obey(steer);
            self.stop_when_broken(step, watcher);
        }
        self.ledger.end_step(self.elapsed());
    }

    pub(super) fn pause(&mut self, step_idx: usize, steer: &Steer, watcher: &mut dyn Watcher) {
        let pause = self.plan.steps[step_idx].pause;
        if !pause.is_zero() {
            watcher.phase(Some(&format!("pause after `{}`", self.plan.steps[step_idx].name)));
        }
        let end = Instant::now() + pause;
        let mut nothing = Step::new(step_idx);
        while Instant::now() < end && self.any_left() && self.steered == 0 {
            self.turn(&mut nothing, watcher);
            self.obey(steer);
        }
    }

    /// Takes in what came in the next tenth of a second, shows it, and notices who is silent.
    pub(super) fn turn(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        let end = Instant::now() + TURN;
        while let Ok(arrival) = self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.arrive(arrival, step, watcher);
            if !step.any(State::Preparing) && !step.any(State::Running) {
                break;
            }
        }
        self.lose_silent(step, watcher);
        if self.started_unix_ns > 0 {
            self.ledger.tick(self.elapsed());
            watcher.look(&self.ledger.whole.recorder, &self.ledger.machine_views());
        } else {
            watcher.wait(&self.awaited(step), &self.ledger.whole.recorder);
        }
    }

    /// Machines of which nothing came for too long are lost.
    fn lose_silent(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        let lost_after = self.plan.lost_after;
        for machine_idx in 0..self.links.len() {
            let link = &self.links[machine_idx];
            if link.lost.is_none() && link.heard_at.elapsed() > lost_after {
                let seconds = DurationText(lost_after);
                let why = match link.is_returning() {
                    true => format!("its connection ended and could not be re-established within {seconds}"),
                    false => format!("it was silent for {seconds}"),
                };
                self.lose(machine_idx, &why, step, watcher);
            }
        }
    }

    /// What a step waits for before it starts.
    fn awaited(&self, step: &Step) -> String {
        if step.jobs.is_empty() {
            return self.doing.clone();
        }
        let preparing = step.jobs.iter().filter(|(_, _, state)| *state == State::Preparing);
        let mut machines: Vec<String> =
            preparing.map(|(machine, _, _)| self.machine_name(*machine)).collect();
        machines.dedup();
        format!("preparing the load on {}", listed(&machines))
    }

    /// A rule that ends the run ends it once.
    fn stop_when_broken(&mut self, step: &Step, watcher: &mut dyn Watcher) {
        if self.steered > 0 {
            return;
        }
        let judged = (step.step_idx, &self.plan.steps[step.step_idx].load_idxs[..]);
        let broken = self.ledger.broken(judged, self.elapsed().as_secs_f64(), &self.monitors);
        let Some(rule) = broken else { return };
        self.steered = 1;
        self.links.iter().for_each(|link| link.order(Order::Stop { at_once: false }));
        self.note(EventKind::Note, &format!("`{rule}` is missed: the run ends"), watcher);
    }

    pub(super) fn slowest_round_trip(&self) -> Duration {
        self.links.iter().map(|link| link.clock.round_trip()).max().unwrap_or_default()
    }
}

/// A whole number of seconds after the run's start, and when that is, in nanoseconds since 1970. Where the wall clock was set back
/// meanwhile to before the start, it is unknown how many they are: the step begins at once all the same.
fn step_start(started_unix_ns: u64, earliest_unix_ns: u64) -> (u32, u64) {
    let Some(since_ns) = earliest_unix_ns.checked_sub(started_unix_ns) else { return (0, earliest_unix_ns) };
    let since_s = since_ns.div_ceil(SECOND_NS);
    (since_s as u32, started_unix_ns + since_s * SECOND_NS)
}

/// Loads that had time enough to be prepared, and are not ready.
fn unready(plan: &FleetPlan, step: &Step) -> Vec<Trouble> {
    let late = step.jobs.iter().filter(|(_, _, state)| *state == State::Preparing);
    late.map(|(machine_idx, load_idx, _)| {
        let message = format!(
            "machine `{}`: the load `{}` is not ready after {} s",
            plan.machines[*machine_idx].name.value,
            plan.loads[*load_idx].name,
            PREPARE_MAX.as_secs(),
        );
        Trouble::new(message, "check that names resolve there, and that it is not overloaded")
    })
    .collect()
}

/// The first few names, and how many more there are.
pub(super) fn listed(names: &[String]) -> String {
    let first = names.iter().take(NAME_COUNT_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAME_COUNT_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What fits on a line.
const NAME_COUNT_MAX: usize = 3;

/// How long what came is taken in before it is shown.
pub(super) const TURN: Duration = Duration::from_millis(100);

/// From the word to start to the start: time for the word to arrive everywhere.
const START_DELAY: Duration = Duration::from_millis(150);

/// How often the clocks are compared before each step, and how long an answer may take without another question in flight.
const CLOCK_ROUND_COUNT: u32 = 8;
const CLOCK_ROUND: Duration = Duration::from_millis(5);

/// Names resolve and threads start within it, or something is wrong.
const PREPARE_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_begin_whole_seconds_after_the_first_and_at_once_where_the_clock_was_set_back() {
        let started = 1_000 * SECOND_NS + 7;
        for (earliest, start) in [
            (started, (0, started)),
            (started + 1, (1, started + SECOND_NS)),
            (started + 3 * SECOND_NS, (3, started + 3 * SECOND_NS)),
            (started - 1, (0, started - 1)),
            (started - 900 * SECOND_NS, (0, started - 900 * SECOND_NS)),
        ] {
            assert_eq!(step_start(started, earliest), start);
        }
    }
}
