//! The controller: brings the machines together, starts them at one moment, and merges what they report.
//!
//! A machine that is lost at any moment takes nothing with it: what it reported stays, the others go on, and the record says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use squall_measure::{Event, EventKind, Monitor, RunRecord, RunRecorder, StoppedBy, ToolRun};
use squall_plan::file::Reach;

use crate::binary::Binary;
use crate::clock::unix_ns;
use crate::ledger::{Ledger, Source};
use crate::link::{Arrival, Link};
use crate::monitor::web::WebMonitors;
use crate::order::{FleetPlan, Word};
use crate::protocol::{Begin, LoadOrder, Order, Report, SeriesName, Trouble};
use crate::transport;

/// What the user wants of a running fleet, from another thread such as a signal's.
#[derive(Debug, Clone, Default)]
pub struct Steer(Arc<AtomicU8>);

impl Steer {
    /// Starts nothing more, finishes what is open.
    pub fn drain(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Ends at once.
    pub fn abort(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    fn wanted(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Follows a run.
pub trait Watcher {
    /// Something that is worth a line: what is being done, who was lost.
    fn note(&mut self, text: &str);

    /// About every 100 ms: what is known by then, of the whole and of each machine.
    fn look(&mut self, recorder: &RunRecorder, machines: &[MachineView<'_>]);
}

/// A machine while the run goes on.
#[derive(Debug, Clone, Copy)]
pub struct MachineView<'a> {
    /// The name that the plan gives it.
    pub name: &'a str,
    /// Its figures so far.
    pub recorder: &'a RunRecorder,
    /// Why it does no more, where it does not.
    pub problem: Option<&'a str>,
}

/// What a fleet brings home.
#[derive(Debug)]
pub struct Outcome {
    /// The record of the whole run.
    pub record: RunRecord,
    /// What foreign tools printed: names of files, and their content.
    pub raw: Vec<(String, String)>,
}

/// Runs a plan to its end.
///
/// # Errors
/// All that is wrong before any load starts. Once one has started there is always an outcome.
pub fn run(plan: &FleetPlan, steer: &Steer, watcher: &mut dyn Watcher) -> Result<Outcome, Vec<Trouble>> {
    let mut fleet = Fleet::assemble(plan, watcher)?;
    fleet.outfit(watcher)?;
    fleet.make(steer, watcher);
    Ok(fleet.go_home())
}

struct Fleet<'a> {
    plan: &'a FleetPlan,
    /// By machine.
    links: Vec<Link>,
    inbox: Receiver<Arrival>,
    ledger: Ledger,
    /// By machine: where the series of its agent are in `monitors`.
    series: Vec<Vec<usize>>,
    monitors: Vec<Monitor>,
    web: WebMonitors,
    events: Vec<Event>,
    tools: Vec<ToolRun>,
    raw: Vec<(String, String)>,
    /// When the first step started, in nanoseconds since 1970; 0 before.
    started_unix_ns: u64,
    troubles: Vec<Trouble>,
    lost_count: usize,
    stopped_by: StoppedBy,
    /// What agents were told to do; [`Steer`]'s numbers.
    told: u8,
    /// Of each step's moments of start: the step, the moment in nanoseconds since 1970, and how far from it the machines began,
    /// in nanoseconds: the first one and the last one.
    starts: BTreeMap<(usize, u64), (i64, i64)>,
}

/// One load on one machine in the running step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Preparing,
    Ready,
    Running,
    Over,
}

/// The loads of the running step.
struct Step {
    step_idx: usize,
    /// Machine, load, state.
    jobs: Vec<(usize, usize, State)>,
    /// Load, and the machine whose `setup()` the others wait for.
    callers: Vec<(usize, usize)>,
    origin_s: u32,
}

impl Step {
    fn state_mut(&mut self, machine_idx: usize, load_idx: usize) -> Option<&mut State> {
        let job =
            self.jobs.iter_mut().find(|(machine, load, _)| (*machine, *load) == (machine_idx, load_idx));
        job.map(|(_, _, state)| state)
    }

    fn any(&self, state: State) -> bool {
        self.jobs.iter().any(|(_, _, job)| *job == state)
    }

    fn source(&self, plan: &FleetPlan, machine_idx: usize, load_idx: usize) -> Source {
        let after_s = plan.loads[load_idx].start_after.as_secs() as u32;
        Source { machine_idx, load_idx, step_idx: self.step_idx, origin_s: self.origin_s + after_s }
    }
}

impl<'a> Fleet<'a> {
    /// Opens the way to every machine, all at the same time.
    fn assemble(plan: &'a FleetPlan, watcher: &mut dyn Watcher) -> Result<Self, Vec<Trouble>> {
        let (inbox_sender, inbox) = mpsc::channel();
        let (links, mut troubles) = open_all(plan, &inbox_sender, watcher)?;
        troubles.extend(clock_troubles(plan, &links));
        let mut ledger = Ledger::new(plan);
        for (machine_idx, link) in links.iter().enumerate() {
            ledger.machine_mut(machine_idx).facts.clone_from(&link.facts);
        }
        Ok(Self {
            plan,
            series: vec![Vec::new(); links.len()],
            links,
            inbox,
            ledger,
            monitors: Vec::new(),
            web: WebMonitors::new(&plan.monitors),
            events: Vec::new(),
            tools: Vec::new(),
            raw: Vec::new(),
            started_unix_ns: 0,
            troubles,
            lost_count: 0,
            stopped_by: StoppedBy::Count,
            told: 0,
            starts: BTreeMap::new(),
        })
    }

    /// Sends files, says what is to be watched, and has every load of every step looked at before any starts.
    fn outfit(&mut self, watcher: &mut dyn Watcher) -> Result<(), Vec<Trouble>> {
        self.send_files();
        for monitor in &self.plan.monitors {
            let squall_plan::file::Watched::Machine { machine, processes } = &monitor.what else { continue };
            let idx = self.plan.machines.iter().position(|known| known.name.value == machine.value);
            if let Some(idx) = idx {
                self.links[idx].order(Order::Watch { processes: processes.clone() });
            }
        }
        for step_idx in 0..self.plan.steps.len() {
            let step = self.prepare(step_idx, watcher);
            if step_idx > 0 || !self.troubles.is_empty() {
                // Only looked at: it is prepared again when its time comes.
                self.order_all(&step, &Order::Stop { at_once: true });
            }
        }
        if self.troubles.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.troubles)) }
    }

    fn send_files(&mut self) {
        for file in &self.plan.files {
            for &machine_idx in &file.machine_idxs {
                self.send_file(machine_idx, &file.from, &file.to, file.mode);
            }
        }
        for (load_idx, load) in self.plan.loads.iter().enumerate() {
            for (word_idx, word) in load.words.iter().enumerate() {
                let remote = load.parts.iter().map(|(idx, _)| *idx).filter(|&idx| !self.is_local(idx));
                let remote: Vec<usize> = remote.collect();
                for (from, to) in sent_files(load_idx, word_idx, word) {
                    remote.iter().for_each(|&idx| self.send_file(idx, from, &to, 0o600));
                }
            }
        }
    }

    fn send_file(&mut self, machine_idx: usize, from: &Path, to: &str, mode: u32) {
        if let Err(error) = self.links[machine_idx].send_file(from, to, mode) {
            let message = format!("cannot read `{}`: {error}", from.display());
            self.troubles.push(Trouble::new(message, "check the path and its permissions"));
        }
    }

    fn is_local(&self, machine_idx: usize) -> bool {
        self.plan.machines[machine_idx].reach == Reach::Local
    }

    /// Runs the steps. Nothing that happens here loses what was measured.
    fn make(&mut self, steer: &Steer, watcher: &mut dyn Watcher) {
        for step_idx in 0..self.plan.steps.len() {
            let mut step = self.prepare(step_idx, watcher);
            for trouble in std::mem::take(&mut self.troubles) {
                let step = self.ledger.step_mut(step_idx);
                step.problem = Some(trouble.message.clone());
                self.note(EventKind::Note, &trouble.message, watcher);
            }
            if self.told == 0 && self.any_left() {
                self.start(&mut step, watcher);
                self.follow(&mut step, steer, watcher);
            }
            if self.told > 0 || !self.any_left() {
                return;
            }
            self.pause(step_idx, steer, watcher);
        }
    }

    /// Has the loads of a step prepared, and waits until each is ready, refused, or gone with its machine.
    fn prepare(&mut self, step_idx: usize, watcher: &mut dyn Watcher) -> Step {
        let plan = self.plan;
        let mut step = Step { step_idx, jobs: Vec::new(), callers: Vec::new(), origin_s: 0 };
        for machine_idx in 0..self.links.len() {
            let mut loads = Vec::new();
            for &load_idx in &plan.steps[step_idx].load_idxs {
                let part = plan.loads[load_idx].parts.iter().find(|(machine, _)| *machine == machine_idx);
                let Some(&(_, segment)) = part.filter(|_| self.links[machine_idx].lost.is_none()) else {
                    continue;
                };
                step.jobs.push((machine_idx, load_idx, State::Preparing));
                let load = &plan.loads[load_idx];
                let is_first = !step.callers.iter().any(|(called, _)| *called == load_idx);
                if is_first {
                    step.callers.push((load_idx, machine_idx));
                }
                loads.push(LoadOrder {
                    load_idx: load_idx as u32,
                    name: load.name.clone(),
                    kind: load.kind.clone(),
                    words: self.words(load_idx, machine_idx),
                    env: load.env.clone(),
                    segment,
                    is_first,
                    start_after: load.start_after,
                });
            }
            self.links[machine_idx].order(Order::Prepare { loads });
        }
        let deadline = Instant::now() + PREPARE_MAX;
        while step.any(State::Preparing) && Instant::now() < deadline {
            self.turn(&mut step, watcher);
        }
        for (machine_idx, load_idx, _) in step.jobs.iter().filter(|(_, _, state)| *state == State::Preparing)
        {
            let message = format!(
                "machine `{}`: the load `{}` is not ready after {} s",
                plan.machines[*machine_idx].name.value,
                plan.loads[*load_idx].name,
                PREPARE_MAX.as_secs(),
            );
            self.troubles
                .push(Trouble::new(message, "check that names resolve there, and that it is not overloaded"));
        }
        step
    }

    /// The words of a load for a machine: paths of files are those that they have there.
    fn words(&self, load_idx: usize, machine_idx: usize) -> Vec<String> {
        let word = |(word_idx, word): (usize, &Word)| match word {
            Word::Text(text) => text.clone(),
            Word::File(path) | Word::Tree { entry: path, .. } if self.is_local(machine_idx) => {
                path.to_string_lossy().into_owned()
            }
            Word::File(path) => sent_name(load_idx, word_idx, path.file_name().unwrap_or_default().as_ref()),
            Word::Tree { root, entry, .. } => sent_name(load_idx, word_idx, below(root, entry)),
        };
        self.plan.loads[load_idx].words.iter().enumerate().map(word).collect()
    }

    /// Starts what is ready, everywhere at the same moment. Later steps begin a whole number of seconds after the first, so that
    /// seconds of all steps are seconds of the run.
    fn start(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        self.compare_clocks(step, watcher);
        let slowest = self.slowest_round_trip();
        let earliest = unix_ns(SystemTime::now() + START_DELAY + 2 * slowest);
        if self.started_unix_ns == 0 {
            self.started_unix_ns = earliest;
            self.ledger.whole.recorder.set_started(earliest / 1_000_000);
        }
        let since_s = (earliest - self.started_unix_ns).div_ceil(SECOND_NS);
        step.origin_s = since_s as u32;
        let at_ns = self.started_unix_ns + since_s * SECOND_NS;
        for link in self.links.iter().filter(|link| link.lost.is_none()) {
            link.order(Order::Start { at_unix_ns: link.clock.theirs(at_ns) });
        }
        for job_idx in 0..step.jobs.len() {
            let (machine_idx, load_idx, state) = step.jobs[job_idx];
            if state == State::Ready {
                step.jobs[job_idx].2 = State::Running;
                self.ledger.begin(step.source(self.plan, machine_idx, load_idx));
            }
        }
        let name = self.plan.steps[step.step_idx].name.clone();
        let at_s = f64::from(step.origin_s);
        self.events.push(Event { at_s, label: name.clone(), kind: EventKind::Step });
        if self.plan.steps.len() > 1 {
            watcher.note(&format!("step `{name}`"));
        }
    }

    /// Asks all agents for their clocks while nobody works yet, when answers are quick.
    fn compare_clocks(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        for _ in 0..CLOCK_ROUND_COUNT {
            self.links.iter().for_each(Link::ask_clock);
            thread::sleep(CLOCK_ROUND);
        }
        while let Ok(arrival) = self.inbox.try_recv() {
            self.arrive(arrival, step, watcher);
        }
    }

    /// Collects until every load of the step has ended everywhere.
    fn follow(&mut self, step: &mut Step, steer: &Steer, watcher: &mut dyn Watcher) {
        while step.any(State::Running) {
            self.turn(step, watcher);
            self.obey(steer);
            self.stop_when_broken(step, watcher);
        }
        self.ledger.end_step();
    }

    fn pause(&mut self, step_idx: usize, steer: &Steer, watcher: &mut dyn Watcher) {
        let pause = self.plan.steps[step_idx].pause;
        let end = Instant::now() + pause;
        let mut nothing = Step { step_idx, jobs: Vec::new(), callers: Vec::new(), origin_s: 0 };
        while Instant::now() < end && self.any_left() && self.told == 0 {
            self.turn(&mut nothing, watcher);
            self.obey(steer);
        }
    }

    /// Takes in what came in the next tenth of a second, shows it, and notices who is silent.
    fn turn(&mut self, step: &mut Step, watcher: &mut dyn Watcher) {
        let end = Instant::now() + TURN;
        while let Ok(arrival) = self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.arrive(arrival, step, watcher);
            if !step.any(State::Preparing) && !step.any(State::Running) {
                break;
            }
        }
        let silent = |link: &Link| link.lost.is_none() && link.heard_at.elapsed() > SILENT_MAX;
        let silent: Vec<usize> = (0..self.links.len()).filter(|&idx| silent(&self.links[idx])).collect();
        for machine_idx in silent {
            self.lose(machine_idx, "it fell silent", step, watcher);
        }
        self.take_web_samples();
        if self.started_unix_ns > 0 {
            self.ledger.whole.recorder.tick(self.elapsed());
            watcher.look(&self.ledger.whole.recorder, &self.ledger.machine_views());
        }
    }

    fn arrive(&mut self, arrival: Arrival, step: &mut Step, watcher: &mut dyn Watcher) {
        let Arrival { machine_idx, report, came_unix_ns } = arrival;
        match report {
            Some(report) => {
                self.links[machine_idx].hear(&report, came_unix_ns);
                self.take(machine_idx, report, step, watcher);
            }
            None => self.lose(machine_idx, "the connection ended", step, watcher),
        }
    }

    fn take(&mut self, machine_idx: usize, report: Report, step: &mut Step, watcher: &mut dyn Watcher) {
        match report {
            Report::Hello { .. } | Report::Clock { .. } => {}
            Report::Ready { load_idx, ready } => {
                let load_idx = load_idx as usize;
                let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
                *state = State::Ready;
                self.ledger.take_rows(machine_idx, load_idx, &ready.rows);
                let machine = self.ledger.machine_mut(machine_idx);
                machine.facts.extend(ready.environment);
            }
            Report::Refused { load_idx, trouble } => self.refused(machine_idx, load_idx, &trouble, step),
            Report::Second { load_idx, second_idx, shard_idx, snapshot } => {
                let source = step.source(self.plan, machine_idx, load_idx as usize);
                self.ledger.absorb(source, second_idx, shard_idx, *snapshot);
            }
            Report::Close { load_idx, second_idx, machine } => {
                let source = step.source(self.plan, machine_idx, load_idx as usize);
                self.ledger.close(source, second_idx, machine);
            }
            Report::Rows { load_idx, rows } => self.ledger.take_rows(machine_idx, load_idx as usize, &rows),
            Report::SetUp { load_idx, data } => self.begin(load_idx as usize, step, |at_unix_ns| {
                Some(Begin { setup_data: data.clone(), at_unix_ns })
            }),
            Report::Said { load_idx, line } => {
                let load = &self.plan.loads[load_idx as usize].name;
                watcher.note(&format!("{} on {}: {line}", load, self.machine_name(machine_idx)));
            }
            Report::Ended { load_idx, end } => self.ended(machine_idx, load_idx as usize, end, step, watcher),
            Report::Samples { at_unix_ns, new, values } => self.samples(machine_idx, at_unix_ns, new, values),
            Report::Note { at_unix_ns, label, is_restart } => {
                let kind = if is_restart { EventKind::Restart } else { EventKind::Note };
                let own_ns = self.links[machine_idx].clock.own(at_unix_ns);
                let label = format!("{}: {label}", self.machine_name(machine_idx));
                if let Some(at_s) = self.at_s(own_ns) {
                    self.events.push(Event { at_s, label: label.clone(), kind });
                    watcher.note(&label);
                }
            }
        }
    }

    fn refused(&mut self, machine_idx: usize, load_idx: Option<u32>, trouble: &Trouble, step: &mut Step) {
        let mut message = format!("machine `{}`: ", self.machine_name(machine_idx));
        if let Some(load_idx) = load_idx.map(|idx| idx as usize) {
            let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
            // A load that was only looked at ends without having been refused.
            if *state == State::Over {
                return;
            }
            *state = State::Over;
            let load = &self.plan.loads[load_idx];
            message.push_str(&format!("load `{}`: ", load.name));
        }
        message.push_str(&trouble.message);
        let trouble = Trouble::new(message, trouble.help.clone());
        if !self.troubles.contains(&trouble) {
            self.troubles.push(trouble);
        }
    }

    fn ended(
        &mut self,
        machine_idx: usize,
        load_idx: usize,
        end: Result<crate::protocol::LoadEnd, Trouble>,
        step: &mut Step,
        watcher: &mut dyn Watcher,
    ) {
        let source = step.source(self.plan, machine_idx, load_idx);
        let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
        if std::mem::replace(state, State::Over) != State::Running {
            return;
        }
        let load = &self.plan.loads[load_idx];
        match end {
            Ok(end) => {
                self.ledger.lasted(source, end.duration, load.start_after);
                self.note_skew(machine_idx, end.started_unix_ns, step, load.start_after);
                self.stopped_by = worse(self.stopped_by, end.stopped_by);
                if let Some(tool) = end.tool {
                    self.take_tool(machine_idx, *tool, source.origin_s);
                }
            }
            Err(trouble) => {
                let text = format!("{}: {}: {}", self.machine_name(machine_idx), load.name, trouble.message);
                self.ledger.load_mut(load_idx).problem = Some(text.clone());
                self.note(EventKind::Lost, &text, watcher);
            }
        }
        self.ledger.end(source);
        self.abandon(machine_idx, load_idx, step);
    }

    /// Begins the scenarios of a script everywhere at one moment, when its `setup()` is over or will never be.
    fn begin(&self, load_idx: usize, step: &mut Step, begin_at: impl Fn(u64) -> Option<Begin>) {
        let before = step.callers.len();
        step.callers.retain(|(called, _)| *called != load_idx);
        if step.callers.len() == before {
            return;
        }
        let at_ns = unix_ns(SystemTime::now() + BEGIN_DELAY + 2 * self.slowest_round_trip());
        let own = step.jobs.iter().filter(|(_, load, state)| *load == load_idx && *state != State::Over);
        for (machine_idx, _, _) in own {
            let link = &self.links[*machine_idx];
            let begin = begin_at(link.clock.theirs(at_ns));
            link.order(Order::Begin { load_idx: load_idx as u32, begin });
        }
    }

    /// A machine has no part in a load any more: those that wait for its `setup()` wait in vain.
    fn abandon(&self, machine_idx: usize, load_idx: usize, step: &mut Step) {
        if step.callers.contains(&(load_idx, machine_idx)) {
            self.begin(load_idx, step, |_| None);
        }
    }

    fn slowest_round_trip(&self) -> Duration {
        self.links.iter().map(|link| link.clock.round_trip()).max().unwrap_or_default()
    }

    fn take_tool(&mut self, machine_idx: usize, (mut tool, output): (ToolRun, String), origin_s: u32) {
        tool.machine = self.machine_name(machine_idx);
        tool.at_s = f64::from(origin_s);
        tool.raw_file = format!("raw-{}-{}.txt", plain(&tool.load), plain(&tool.machine));
        if let Some(problem) = &tool.problem {
            let label = format!("{}: {problem}", tool.load);
            self.events.push(Event {
                at_s: tool.at_s + tool.duration.as_secs_f64(),
                label,
                kind: EventKind::Note,
            });
        }
        self.raw.push((tool.raw_file.clone(), output));
        self.tools.push(tool);
    }

    /// How far a machine's start was from the moment that all were told.
    fn note_skew(&mut self, machine_idx: usize, started_unix_ns: u64, step: &Step, start_after: Duration) {
        let own_ns = self.links[machine_idx].clock.own(started_unix_ns);
        let wanted_ns = self.started_unix_ns
            + u64::from(step.origin_s) * SECOND_NS
            + u64::try_from(start_after.as_nanos()).unwrap_or(0);
        let off_ns = own_ns.wrapping_sub(wanted_ns) as i64;
        let (first, last) = self.starts.entry((step.step_idx, wanted_ns)).or_insert((off_ns, off_ns));
        (*first, *last) = (off_ns.min(*first), off_ns.max(*last));
        let text = format!("{:+.2} ms", off_ns as f64 / 1e6);
        self.ledger.machine_mut(machine_idx).facts.insert("started_off".to_owned(), text);
    }

    /// The longest time between the first machine's start and the last one's, of all moments at which machines started together.
    fn start_skew(&self) -> Option<Duration> {
        let skews = self.starts.values().map(|(first, last)| Duration::from_nanos(last.abs_diff(*first)));
        skews.max().filter(|_| self.links.len() > 1)
    }

    fn samples(
        &mut self,
        machine_idx: usize,
        at_unix_ns: u64,
        new: Vec<SeriesName>,
        values: Vec<(u32, f64)>,
    ) {
        let role = if self.plan.loads.iter().any(|load| load.parts.iter().any(|(idx, _)| *idx == machine_idx))
        {
            "generator"
        } else {
            "target"
        };
        let source = format!("{role} {}", self.machine_name(machine_idx));
        for SeriesName { name, unit } in new {
            self.series[machine_idx].push(self.monitors.len());
            self.monitors.push(Monitor::new(source.clone(), name, unit));
        }
        let own_ns = self.links[machine_idx].clock.own(at_unix_ns);
        let Some(at_s) = self.at_s(own_ns) else { return };
        for (number, value) in values {
            if let Some(&idx) = self.series[machine_idx].get(number as usize) {
                self.monitors[idx].push(at_s, value);
            }
        }
    }

    fn take_web_samples(&mut self) {
        for sample in self.web.take() {
            let found = self.monitors.iter().position(|monitor| {
                (monitor.source.as_str(), monitor.name.as_str())
                    == (sample.source.as_str(), sample.name.as_str())
            });
            let idx = found.unwrap_or_else(|| {
                self.monitors.push(Monitor::new(sample.source.clone(), sample.name.clone(), sample.unit));
                self.monitors.len() - 1
            });
            if let Some(at_s) = self.at_s(sample.at_unix_ns) {
                self.monitors[idx].push(at_s, sample.value);
            }
        }
    }

    fn lose(&mut self, machine_idx: usize, why: &str, step: &mut Step, watcher: &mut dyn Watcher) {
        if self.links[machine_idx].lost.is_some() {
            return;
        }
        self.links[machine_idx].lose(why);
        self.lost_count += 1;
        let why = self.links[machine_idx].lost.clone().unwrap_or_default();
        let label = format!("lost machine {}: {why}", self.machine_name(machine_idx));
        self.ledger.machine_mut(machine_idx).problem = Some(format!("lost: {why}"));
        let is_preparing = step.any(State::Preparing);
        let since_step = self.elapsed().saturating_sub(Duration::from_secs(u64::from(step.origin_s)));
        for job_idx in 0..step.jobs.len() {
            let (machine, load_idx, state) = step.jobs[job_idx];
            if machine != machine_idx || state == State::Over {
                continue;
            }
            step.jobs[job_idx].2 = State::Over;
            if state == State::Running {
                let start_after = self.plan.loads[load_idx].start_after;
                let source = step.source(self.plan, machine_idx, load_idx);
                self.ledger.lasted(source, since_step.saturating_sub(start_after), start_after);
                self.ledger.end(source);
                self.abandon(machine_idx, load_idx, step);
            }
        }
        if is_preparing && self.started_unix_ns == 0 {
            let help = "see why its connection ended; nothing was sent yet";
            self.troubles.push(Trouble::new(label, help));
        } else {
            self.note(EventKind::Lost, &label, watcher);
        }
    }

    fn note(&mut self, kind: EventKind, label: &str, watcher: &mut dyn Watcher) {
        let at_s = self.elapsed().as_secs_f64();
        self.events.push(Event { at_s, label: label.to_owned(), kind });
        watcher.note(label);
    }

    /// Passes on what the user wants.
    fn obey(&mut self, steer: &Steer) {
        let wanted = steer.wanted();
        if wanted > self.told {
            self.told = wanted;
            self.links.iter().for_each(|link| link.order(Order::Stop { at_once: wanted > 1 }));
        }
    }

    /// A rule that ends the run ends it once.
    fn stop_when_broken(&mut self, step: &Step, watcher: &mut dyn Watcher) {
        if self.told > 0 {
            return;
        }
        let elapsed = self.elapsed();
        let in_step = elapsed.saturating_sub(Duration::from_secs(u64::from(step.origin_s)));
        let monitors = &self.monitors;
        let mut broken = self.ledger.whole.broken(elapsed, monitors);
        broken = broken.or_else(|| self.ledger.step_mut(step.step_idx).broken(in_step, monitors));
        for (_, load_idx, _) in &step.jobs {
            broken = broken.or_else(|| self.ledger.load_mut(*load_idx).broken(in_step, monitors));
        }
        let Some(rule) = broken else { return };
        self.told = 1;
        self.links.iter().for_each(|link| link.order(Order::Stop { at_once: false }));
        self.note(EventKind::Note, &format!("`{rule}` is broken: the run ends"), watcher);
    }

    fn any_left(&self) -> bool {
        self.links.iter().any(|link| link.lost.is_none())
    }

    fn order_all(&self, step: &Step, order: &Order) {
        let mut told = vec![false; self.links.len()];
        for (machine_idx, _, _) in &step.jobs {
            if !std::mem::replace(&mut told[*machine_idx], true) {
                self.links[*machine_idx].order(order.clone());
            }
        }
    }

    fn machine_name(&self, machine_idx: usize) -> String {
        self.plan.machines[machine_idx].name.value.clone()
    }

    fn elapsed(&self) -> Duration {
        let now_ns = unix_ns(SystemTime::now());
        if self.started_unix_ns == 0 {
            Duration::ZERO
        } else {
            Duration::from_nanos(now_ns.saturating_sub(self.started_unix_ns))
        }
    }

    /// Seconds after the run's start; `None` before it.
    fn at_s(&self, unix_ns: u64) -> Option<f64> {
        let is_known = self.started_unix_ns > 0 && unix_ns >= self.started_unix_ns;
        is_known.then(|| (unix_ns - self.started_unix_ns) as f64 / 1e9)
    }

    /// Sends everybody home, and puts the record together.
    fn go_home(mut self) -> Outcome {
        self.links.iter_mut().for_each(Link::farewell);
        let deadline = Instant::now() + FAREWELL_MAX;
        self.links.iter_mut().for_each(|link| link.wait_until(deadline));
        let facts = &mut self.ledger.whole.facts;
        facts.extend(crate::facts::facts());
        facts.insert("machines".to_owned(), self.links.len().to_string());
        let start_skew = self.start_skew();
        let mut record = self.ledger.finish(self.stopped_by, &self.monitors);
        record.start_skew = start_skew;
        record.verdict.note_lost(self.lost_count, self.links.len());
        let failed_tools = self.tools.iter().filter(|tool| tool.problem.is_some()).count();
        record.verdict.note_tools(failed_tools, self.tools.len());
        self.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        record.events = self.events;
        self.monitors.retain(|monitor| !monitor.samples.is_empty());
        record.monitors = self.monitors;
        record.tools = self.tools;
        Outcome { record, raw: self.raw }
    }
}

/// Opens all links side by side; what failed is told together with what is found later.
fn open_all(
    plan: &FleetPlan,
    inbox: &Sender<Arrival>,
    watcher: &mut dyn Watcher,
) -> Result<(Vec<Link>, Vec<Trouble>), Vec<Trouble>> {
    let program = std::env::current_exe().map_err(|error| {
        vec![Trouble::new(format!("cannot find this program's own file: {error}"), "call it by its path")]
    })?;
    let needs_binary = plan.machines.iter().any(|machine| matches!(machine.reach, Reach::Ssh(_)));
    let binary =
        if needs_binary { Binary::read(&program).map_err(|trouble| vec![trouble])? } else { Binary::none() };
    let binary = Arc::new(binary);
    let (notes, noted) = mpsc::channel::<String>();
    let opened: Vec<Result<Link, Trouble>> = thread::scope(|scope| {
        let mut openings = Vec::new();
        for (machine_idx, machine) in plan.machines.iter().enumerate() {
            let transport = transport::of(&machine.reach, program.clone(), &binary);
            let (inbox, notes, name) = (inbox.clone(), notes.clone(), machine.name.value.clone());
            openings.push(scope.spawn(move || {
                let note = |text: &str| drop(notes.send(format!("{name}: {text}")));
                Link::open(machine_idx, &*transport, &inbox, &note)
            }));
        }
        drop(notes);
        noted.iter().for_each(|note| watcher.note(&note));
        openings.into_iter().map(|opening| opening.join().unwrap_or_else(|_| Err(bug()))).collect()
    });
    let (mut links, mut troubles) = (Vec::new(), Vec::new());
    for (machine, opened) in plan.machines.iter().zip(opened) {
        match opened {
            Ok(link) => links.push(link),
            Err(trouble) => {
                links.push(Link::absent());
                let message = format!("machine `{}`: {}", machine.name.value, trouble.message);
                troubles.push(Trouble::new(message, trouble.help));
            }
        }
    }
    Ok((links, troubles))
}

/// Machines whose clocks are so far off that it is a fault to mend.
fn clock_troubles(plan: &FleetPlan, links: &[Link]) -> Vec<Trouble> {
    let is_off = |link: &Link| link.clock.ahead_ns().unsigned_abs() > CLOCK_OFF_MAX.as_nanos() as u64;
    let off = plan.machines.iter().zip(links).filter(|(_, link)| is_off(link));
    off.map(|(machine, link)| {
        let seconds = link.clock.ahead_ns() as f64 / 1e9;
        let message = format!("machine `{}`: its clock is off by {seconds:.0} s", machine.name.value);
        Trouble::new(
            message,
            "set it by NTP (chrony, systemd-timesyncd); offsets up to a minute are taken out",
        )
    })
    .collect()
}

fn bug() -> Trouble {
    Trouble::new("a bug of squall: opening a machine panicked", "please report it")
}

/// The worse reason to end: what explains the others.
fn worse(a: StoppedBy, b: StoppedBy) -> StoppedBy {
    let rank = |by: StoppedBy| match by {
        StoppedBy::Count => 0,
        StoppedBy::Duration => 1,
        StoppedBy::Unreachable => 2,
        StoppedBy::Drained => 3,
        StoppedBy::Aborted => 4,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// The files of a word, each with its name on machines that it is sent to.
fn sent_files(load_idx: usize, word_idx: usize, word: &Word) -> Vec<(&Path, String)> {
    let named = |path: &Path| sent_name(load_idx, word_idx, path);
    match word {
        Word::Text(_) => Vec::new(),
        Word::File(path) => vec![(path, named(path.file_name().unwrap_or_default().as_ref()))],
        Word::Tree { root, files, .. } => {
            files.iter().map(|path| (path.as_path(), named(below(root, path)))).collect()
        }
    }
}

/// A file's name on machines that it was sent to.
fn sent_name(load_idx: usize, word_idx: usize, path: &Path) -> String {
    format!("files/{load_idx}-{word_idx}/{}", path.to_string_lossy())
}

/// A path as seen from a folder above it.
fn below<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

/// A name as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect()
}

const SECOND_NS: u64 = 1_000_000_000;

/// How long what came is taken in before it is shown.
const TURN: Duration = Duration::from_millis(100);

/// An agent says something every second; one that is silent for so long is lost.
const SILENT_MAX: Duration = Duration::from_secs(6);

/// From the word to start to the start: time for the word to arrive everywhere.
const START_DELAY: Duration = Duration::from_millis(150);

/// From the word to begin a script's scenarios to their begin.
const BEGIN_DELAY: Duration = Duration::from_millis(50);

/// How often the clocks are compared before each step, and how long an answer may take without another question beside it.
const CLOCK_ROUND_COUNT: u32 = 8;
const CLOCK_ROUND: Duration = Duration::from_millis(5);

/// Names resolve and threads start within it, or something is wrong.
const PREPARE_MAX: Duration = Duration::from_secs(60);

/// How long agents have to remove what they made.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

/// A clock further off is a fault to mend: certificates and logs of that machine are wrong as well.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(60);
