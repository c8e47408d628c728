//! The controller: brings the machines together, starts them at one moment, and merges what they report.
//!
//! A machine that is lost at any moment takes nothing with it: what it reported stays, the others go on, and the record says so.
//!
//! `open` is the way to the machines, `files` what they are sent, `step` how one step is prepared, started and followed, `reports` what
//! machines say, `monitored` finds what is to be watched, `samples` takes in what it says, `hooks` has machines run commands between
//! steps.

#[cfg(test)]
mod crowd;
mod files;
mod hooks;
mod jobs;
mod monitored;
mod open;
mod reports;
mod samples;
mod step;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant, SystemTime};

use squall_measure::{Event, EventKind, Monitor, RunRecord, RunRecorder, StoppedBy, ToolRun};

use self::jobs::{HookMoment, Step};
use crate::clock::unix_ns;
use crate::kubernetes::{ClusterWatch, Placement, Pools};
use crate::ledger::{Ledger, MachineView};
use crate::link::{Arrival, Link};
use crate::order::FleetPlan;
use crate::page::MonitoredPage;
use crate::protocol::{Found, Order, Trouble};
use crate::transport::Transport;

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

    pub(crate) fn is_aborted(&self) -> bool {
        self.wanted() > 1
    }

    fn wanted(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Follows a run.
pub trait Watcher {
    /// Something that is worth a line: what is being done, who was lost.
    fn note(&mut self, text: &str);

    /// About every 100 ms, before anything has started. `doing`: what is waited for.
    fn wait(&mut self, _doing: &str, _recorder: &RunRecorder) {}

    /// What the plan does from now on, where it has more than one step: a step, a pause.
    fn phase(&mut self, _phase: Option<&str>) {}

    /// About every 100 ms: what is known by then, of the whole and of each machine.
    fn look(&mut self, recorder: &RunRecorder, machines: &[MachineView<'_>]);
}

/// The result of a fleet run.
#[derive(Debug)]
pub struct Outcome {
    /// The record of the whole run.
    pub record: RunRecord,
    /// What foreign tools printed: names of files, and their content.
    pub raw: Vec<(String, String)>,
    /// Machines that were lost.
    pub lost_count: usize,
}

/// Why there was no run.
#[derive(Debug)]
pub enum Refusal {
    /// All that is wrong.
    Troubles(Vec<Trouble>),
    /// The user ended it before any load started.
    Stopped,
}

impl From<Vec<Trouble>> for Refusal {
    fn from(troubles: Vec<Trouble>) -> Self {
        Self::Troubles(troubles)
    }
}

/// Runs a plan to its end. `pools` gets the pools of pods that it starts, whose Jobs the caller deletes after it has saved the result.
///
/// # Errors
/// All that is wrong before any load starts, or that the user ended it before. Once one has started there is always an outcome.
pub fn run(
    (plan, pools): (&FleetPlan, &Pools),
    steer: &Steer,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, Refusal> {
    make(plan, open::transports(plan, pools)?, steer, watcher)
}

fn make(
    plan: &FleetPlan,
    transports: Vec<Arc<dyn Transport>>,
    steer: &Steer,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, Refusal> {
    let mut fleet = Fleet::assemble((plan, transports), steer, watcher)?;
    fleet.outfit(steer, watcher)?;
    fleet.make(steer, watcher)?;
    if fleet.steered > 0 && fleet.started_unix_ns == 0 {
        return Err(Refusal::Stopped);
    }
    fleet.note_absent_series(watcher);
    fleet.note_clusters_without_samples(watcher);
    Ok(fleet.finish())
}

struct Fleet<'a> {
    plan: &'a FleetPlan,
    /// By machine. Connections to jump hosts live as long as they do.
    transports: Vec<Arc<dyn Transport>>,
    /// By machine.
    links: Vec<Link>,
    inbox: Receiver<Arrival>,
    inbox_sender: Sender<Arrival>,
    ledger: Ledger,
    /// By machine, and by monitor where a page has them: where the series that it reports are in `monitors`.
    series: HashMap<(usize, Option<u32>), Vec<usize>>,
    monitors: Vec<Monitor>,
    /// By machine: what it found of what it is to watch.
    found: Vec<Option<Found>>,
    /// By machine: the pages that it reads.
    pages: Vec<Vec<MonitoredPage>>,
    /// By number of the monitor: clusters that are monitored, and whether they have answered.
    clusters: BTreeMap<usize, (ClusterWatch, bool)>,
    /// By number of the monitor: series that its page did not have before the load.
    absent_series: Vec<(usize, Vec<String>)>,
    /// The number of the hook that ran last, and by machine how it ended there.
    hook_idx: u32,
    hook_ends: Vec<Option<Result<(), Trouble>>>,
    /// What is waited for while no load is prepared.
    doing: String,
    events: Vec<Event>,
    tools: Vec<ToolRun>,
    raw: Vec<(String, String)>,
    /// When the first step started, in nanoseconds since 1970; 0 before.
    started_unix_ns: u64,
    troubles: Vec<Trouble>,
    lost_count: usize,
    stopped_by: StoppedBy,
    /// A load on some machine never reached its target.
    is_unreached: bool,
    /// The orders that agents have; [`Steer`]'s numbers.
    steered: u8,
    /// Of each step's moments of start: the step, the moment in nanoseconds since 1970, and how far from it the machines began,
    /// in nanoseconds: the first one and the last one.
    starts: BTreeMap<(usize, u64), (i64, i64)>,
}

impl Fleet<'_> {
    /// Sends files, finds what is to be watched, and has every load of every step looked at before any starts.
    fn outfit(&mut self, steer: &Steer, watcher: &mut dyn Watcher) -> Result<(), Refusal> {
        self.send_files();
        // What a hook starts is not there yet.
        if self.plan.steps[0].before.is_empty() {
            self.watch_monitored(steer, watcher);
        }
        for step_idx in 0..self.plan.steps.len() {
            let step = self.prepare(step_idx, steer, watcher);
            if self.steered > 0 {
                return Err(Refusal::Stopped);
            }
            if step_idx > 0 || !self.troubles.is_empty() {
                // Only looked at: it is prepared again when its time comes.
                self.order_all(&step, &Order::Stop { at_once: true });
            }
        }
        if self.troubles.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.troubles).into()) }
    }

    /// Runs the steps. Nothing that happens here loses what was measured.
    ///
    /// # Errors
    /// What is wrong before the first load has started.
    fn make(&mut self, steer: &Steer, watcher: &mut dyn Watcher) -> Result<(), Refusal> {
        for step_idx in 0..self.plan.steps.len() {
            if self.is_over() {
                self.cut_short();
                break;
            }
            let made = self.make_ready(step_idx, steer, watcher).map(|mut step| {
                if self.is_over() {
                    self.cut_short();
                } else {
                    self.start(&mut step, watcher);
                    self.follow(&mut step, steer, watcher);
                }
            });
            let cleared = self.run_hooks(step_idx, HookMoment::After, steer, watcher);
            if let Err(troubles) = made.and(cleared) {
                if self.started_unix_ns == 0 {
                    return Err(troubles.into());
                }
                self.end_by_failure(step_idx, &troubles, watcher);
                break;
            }
            self.pause(step_idx, steer, watcher);
        }
        Ok(())
    }

    /// Runs what the plan has before a step, and has its loads prepared.
    fn make_ready(
        &mut self,
        step_idx: usize,
        steer: &Steer,
        watcher: &mut dyn Watcher,
    ) -> Result<Step, Vec<Trouble>> {
        self.run_hooks(step_idx, HookMoment::Before, steer, watcher)?;
        if step_idx == 0 && !self.plan.steps[0].before.is_empty() && self.steered == 0 {
            self.watch_monitored(steer, watcher);
            if !self.troubles.is_empty() {
                return Err(std::mem::take(&mut self.troubles));
            }
        }
        let mut step = self.prepare(step_idx, steer, watcher);
        for trouble in std::mem::take(&mut self.troubles) {
            self.ledger.step_mut(step_idx).problem = Some(trouble.message.clone());
            self.note(EventKind::Note, &trouble.message, watcher);
        }
        self.compare_clocks(&mut step, watcher);
        self.obey(steer);
        Ok(step)
    }

    /// A hook failed: the target is not what the steps that follow would measure.
    fn end_by_failure(&mut self, step_idx: usize, troubles: &[Trouble], watcher: &mut dyn Watcher) {
        for trouble in troubles {
            self.ledger.step_mut(step_idx).problem = Some(trouble.message.clone());
            self.note(EventKind::Note, &format!("{}: the run ends", trouble.message), watcher);
        }
        self.stopped_by = self.stopped_by.graver(StoppedBy::Drained);
    }

    /// Nothing more shall start, or no machine is left to start it.
    fn is_over(&self) -> bool {
        self.steered > 0 || !self.any_left()
    }

    /// A step was left out: where that is the user's wish, it says more than how the steps before have ended.
    fn cut_short(&mut self) {
        match self.steered {
            0 => {}
            1 => self.stopped_by = self.stopped_by.graver(StoppedBy::Drained),
            _ => self.stopped_by = self.stopped_by.graver(StoppedBy::Aborted),
        }
    }

    /// Passes on what the user wants.
    fn obey(&mut self, steer: &Steer) {
        let wanted = steer.wanted();
        if wanted > self.steered {
            self.steered = wanted;
            self.links.iter().for_each(|link| link.order(Order::Stop { at_once: wanted > 1 }));
        }
    }

    fn note(&mut self, kind: EventKind, label: &str, watcher: &mut dyn Watcher) {
        let at_s = self.elapsed().as_secs_f64();
        self.events.push(Event { at_s, label: label.to_owned(), kind });
        watcher.note(label);
    }

    fn any_left(&self) -> bool {
        self.links.iter().any(|link| link.lost.is_none())
    }

    fn order_all(&self, step: &Step, order: &Order) {
        let mut ordered = vec![false; self.links.len()];
        for (machine_idx, _, _) in &step.jobs {
            if !std::mem::replace(&mut ordered[*machine_idx], true) {
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

    /// The longest time between the first machine's start and the last one's, of all moments at which machines started together.
    fn start_skew(&self) -> Option<Duration> {
        let skews = self.starts.values().map(|(first, last)| Duration::from_nanos(last.abs_diff(*first)));
        skews.max().filter(|_| self.links.len() > 1)
    }

    fn placement(&self) -> Placement {
        let facts = self.links.iter().map(|link| &link.facts);
        Placement::of(self.plan.machines.iter().zip(facts))
    }

    /// Ends all agents, and puts the record together.
    fn finish(mut self) -> Outcome {
        self.links.iter_mut().for_each(Link::farewell);
        let deadline = Instant::now() + FAREWELL_MAX;
        self.links.iter_mut().for_each(|link| link.wait_until(deadline));
        let facts = &mut self.ledger.whole.facts;
        facts.extend(crate::facts::facts());
        // The environment is that of the machine that made the load, where there is only one.
        if let [link] = &self.links[..] {
            facts.extend(link.facts.clone());
        }
        facts.insert("machines".to_owned(), self.links.len().to_string());
        let (start_skew, placement) = (self.start_skew(), self.placement());
        // Where others were answered the target is there: what a machine could not reach is among the failures.
        if self.is_unreached && self.ledger.whole.recorder.total().ok() == 0 {
            self.stopped_by = self.stopped_by.graver(StoppedBy::Unreachable);
        }
        let mut record = self.ledger.finish(self.stopped_by, &self.monitors);
        record.start_skew = start_skew;
        record.verdict.note_lost(self.lost_count, self.links.len());
        record.verdict.note_tools(&self.tools);
        record.verdict.note_not_reserved(placement.not_reserved_count, placement.pod_count);
        record.verdict.note_shared_nodes(placement.sharing_count, placement.pod_count);
        self.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        record.events = self.events;
        self.monitors.retain(|monitor| !monitor.samples.is_empty());
        record.monitors = self.monitors;
        record.tools = self.tools;
        Outcome { record, raw: self.raw, lost_count: self.lost_count }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// How long after a hook's own time its machine has to say how it ended.
const HOOK_REPORT_MAX: Duration = Duration::from_secs(10);

/// How long agents have to remove what they made.
const FAREWELL_MAX: Duration = Duration::from_secs(5);
