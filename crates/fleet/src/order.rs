//! What a fleet is to do: the plan file with every word read, every load divided, every rule parsed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use squall_measure::{Monitor, Rules, Snapshot, Threshold, ThresholdResult, WatchedThreshold};
use squall_plan::Text;
use squall_plan::file::{Machine, MonitorSpec};
use squall_plan::{Plan, PortablePlan, ScriptSettings, Segment};

use crate::tool::ToolLoad;

/// A whole run.
#[derive(Debug, Clone)]
pub struct FleetPlan {
    /// The plan as the record shows it: all loads of all steps, whole, with secrets masked.
    pub plan: Plan,
    /// At least one.
    pub machines: Vec<Machine>,
    /// By machine: whether it is there to make load, with a part of one or not; the others are only monitored.
    pub makes_load: Vec<bool>,
    /// What is watched.
    pub monitors: Vec<MonitorSpec>,
    /// Files to copy.
    pub files: Vec<FileOrder>,
    /// In sequence.
    pub steps: Vec<FleetStep>,
    /// All loads; steps name them by number.
    pub loads: Vec<FleetLoad>,
    /// Rules for the whole run.
    pub thresholds: Vec<FleetRule>,
    /// Whether requests of any load start by a schedule.
    pub open_model: bool,
    /// How late the coarsest pacing of any load may send by design.
    pub lag_allowed: Duration,
    /// A machine that is silent for so long is lost.
    pub lost_after: Duration,
    /// Machines that may be lost in a run that succeeds.
    pub lost_count_allowed: usize,
    /// Whether machines keep the program that they are sent, for the next run.
    pub keeps_program: bool,
}

/// A file to copy.
#[derive(Debug, Clone)]
pub struct FileOrder {
    /// Here.
    pub from: PathBuf,
    /// There.
    pub to: String,
    /// Permission bits.
    pub mode: u32,
    /// Numbers of machines.
    pub machine_idxs: Vec<usize>,
    /// Replace a file that is there already.
    pub overwrite: bool,
}

/// Loads that run side by side.
#[derive(Debug, Clone)]
pub struct FleetStep {
    /// Its name.
    pub name: String,
    /// Numbers of its loads.
    pub load_idxs: Vec<usize>,
    /// Its rules.
    pub thresholds: Vec<FleetRule>,
    /// How long nothing happens after it.
    pub pause: Duration,
    /// What machines run before it.
    pub before: Vec<FleetHook>,
    /// What machines run after it.
    pub after: Vec<FleetHook>,
}

/// A command before or after a step.
#[derive(Debug, Clone)]
pub struct FleetHook {
    /// The command as people read it.
    pub text: String,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Environment besides the machine's own.
    pub env: BTreeMap<String, String>,
    /// How long it may take.
    pub timeout: Duration,
    /// Numbers of the machines that run it.
    pub machine_idxs: Vec<usize>,
}

/// One load.
#[derive(Debug, Clone)]
pub struct FleetLoad {
    /// Its name.
    pub name: String,
    /// Where it is in the plan file.
    pub written: Text,
    /// What it is.
    pub work: LoadWork,
    /// The files of a script, with the one that names the others by where they lie next to it.
    pub sources: Vec<PathBuf>,
    /// A temporary file that its recording is in: it lives as long.
    pub recording: Option<Arc<File>>,
    /// Environment for scripts and tools.
    pub env: BTreeMap<String, String>,
    /// Numbers of the machines that make it, each with its part.
    pub parts: Vec<(usize, Segment)>,
    /// How long after the step it starts.
    pub start_after: Duration,
    /// How long it goes on; `None` where something else than time ends it.
    pub length: Option<Duration>,
    /// How long it goes on at most; `None` where that is unknown.
    pub length_max: Option<Duration>,
    /// Its rules.
    pub thresholds: Vec<FleetRule>,
    /// The thresholds of its script, where it is one.
    pub script_rules: Arc<Rules>,
}

/// What a load is, complete: agents read no command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadWork {
    /// A load of the engine.
    Plan(Box<PortablePlan>),
    /// A k6 script.
    Script(Box<ScriptWork>),
    /// A foreign tool.
    Tool(Box<ToolLoad>),
}

/// A k6 script as a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptWork {
    /// The script.
    pub path: PathBuf,
    /// How it is read and run.
    pub settings: ScriptSettings,
}

impl LoadWork {
    /// Every file that a machine needs to make it.
    pub(crate) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Plan(plan) => plan.files_mut(),
            Self::Script(script) => {
                [&mut script.path].into_iter().chain(&mut script.settings.config).collect()
            }
            Self::Tool(tool) => tool.files_mut(),
        }
    }

    /// The same, each with its file's number: equal paths have the same one.
    pub(crate) fn numbered_files_mut(&mut self) -> Vec<(usize, &mut PathBuf)> {
        let mut numbers = HashMap::new();
        let mut number = |path: &PathBuf| {
            let next = numbers.len();
            *numbers.entry(path.clone()).or_insert(next)
        };
        self.files_mut().into_iter().map(|path| (number(path), path)).collect()
    }

    /// The same with all paths below `folder` that are not absolute.
    #[must_use]
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.files_mut().into_iter().for_each(|path| *path = folder.join(&*path));
        self
    }

    /// Whether its metrics are a foreign tool's own.
    pub fn is_tool(&self) -> bool {
        matches!(self, Self::Tool(_))
    }
}

impl FleetPlan {
    /// The plan with the numbers of all machines together.
    pub fn whole(&self) -> Plan {
        let mut plan = self.plan.clone();
        for load in &mut plan.loads {
            let own = self.loads.iter().find(|own| own.name == load.name);
            *load = load.times(own.map_or(1, FleetLoad::copy_count));
        }
        plan
    }

    /// How long all of it takes: the steps, what goes before their starts, and their pauses. `None` where no time ends a load.
    pub fn length(&self) -> Option<Duration> {
        self.length_by(|load| load.length)
    }

    /// How long all of it takes at most; `None` where that is unknown.
    pub(crate) fn length_max(&self) -> Option<Duration> {
        self.length_by(|load| load.length_max)
    }

    fn length_by(&self, of: impl Fn(&FleetLoad) -> Option<Duration>) -> Option<Duration> {
        let mut end = Duration::ZERO;
        for step in &self.steps {
            if !end.is_zero() {
                // A step is made ready first, and begins whole seconds after the run.
                end = Duration::from_secs(end.as_secs() + 1);
            }
            let load_ends = step.load_idxs.iter().map(|&idx| {
                let load = &self.loads[idx];
                Some(load.start_after + of(load)?)
            });
            let load_ends: Option<Vec<Duration>> = load_ends.collect();
            end += load_ends?.into_iter().max().unwrap_or_default() + step.pause;
        }
        Some(end)
    }
}

impl FleetLoad {
    /// How often it is made: by each of its machines, or once by all of them together.
    pub fn copy_count(&self) -> u32 {
        if self.is_copied() { self.parts.len().max(1) as u32 } else { 1 }
    }

    /// Whether each of its machines makes all of it.
    pub(crate) fn is_copied(&self) -> bool {
        self.parts.iter().all(|(_, segment)| segment.is_whole())
    }
}

/// A rule.
#[derive(Debug, Clone)]
pub struct FleetRule {
    /// What must hold.
    pub what: RuleKind,
    /// Whether the run ends as soon as it does not.
    pub abort: bool,
}

/// What a rule is about.
#[derive(Debug, Clone)]
pub enum RuleKind {
    /// The load's own figures.
    Load(Threshold),
    /// A metric that is monitored during it.
    Watched(WatchedThreshold),
}

/// What a rule is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    /// Figures of the load.
    pub(crate) total: &'a Snapshot,
    /// How long it was measured.
    pub(crate) duration: Duration,
    /// Everything that was watched.
    pub(crate) monitors: &'a [Monitor],
    /// What was watched counts from here on, in seconds after the run's start.
    pub(crate) from_s: f64,
    /// And until here.
    pub(crate) until_s: f64,
}

impl FleetRule {
    /// As people read it.
    pub fn text(&self) -> String {
        match &self.what {
            RuleKind::Load(threshold) => threshold.text().to_owned(),
            RuleKind::Watched(threshold) => threshold.text(),
        }
    }

    pub(crate) fn evaluate(&self, evidence: Evidence<'_>) -> ThresholdResult {
        let Evidence { total, duration, monitors, from_s, until_s } = evidence;
        match &self.what {
            RuleKind::Load(threshold) => threshold.evaluate(total, duration),
            // What happened in the last second is reported after it.
            RuleKind::Watched(threshold) => threshold.evaluate(monitors, from_s, until_s + 1.0),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn load(start_after_s: u64, length_s: Option<u64>) -> FleetLoad {
        FleetLoad {
            name: String::new(),
            written: Text::default(),
            work: LoadWork::Tool(Box::default()),
            sources: Vec::new(),
            recording: None,
            env: BTreeMap::new(),
            parts: Vec::new(),
            start_after: Duration::from_secs(start_after_s),
            length: length_s.map(Duration::from_secs),
            length_max: length_s.map(Duration::from_secs),
            thresholds: Vec::new(),
            script_rules: Arc::default(),
        }
    }

    pub(crate) fn plan(loads: Vec<FleetLoad>, steps: &[(&[usize], u64)]) -> FleetPlan {
        let step = |(load_idxs, pause_s): &(&[usize], u64)| FleetStep {
            name: String::new(),
            load_idxs: load_idxs.to_vec(),
            thresholds: Vec::new(),
            pause: Duration::from_secs(*pause_s),
            before: Vec::new(),
            after: Vec::new(),
        };
        FleetPlan {
            plan: Plan {
                name: String::new(),
                loads: Vec::new(),
                thresholds: Vec::new(),
                warmup: Duration::ZERO,
                threads: None,
            },
            machines: Vec::new(),
            makes_load: Vec::new(),
            monitors: Vec::new(),
            files: Vec::new(),
            steps: steps.iter().map(step).collect(),
            loads,
            thresholds: Vec::new(),
            open_model: false,
            lag_allowed: Duration::ZERO,
            lost_after: squall_plan::limits::LOST_AFTER_DEFAULT,
            lost_count_allowed: 0,
            keeps_program: true,
        }
    }

    #[test]
    fn a_plan_takes_its_steps_their_pauses_and_what_goes_before_a_start() {
        let loads = || vec![load(0, Some(2)), load(0, Some(3)), load(4, Some(2))];
        let length = |plan: FleetPlan| plan.length().map(|length| length.as_secs());
        assert_eq!(length(plan(loads(), &[(&[0], 0)])), Some(2));
        assert_eq!(length(plan(loads(), &[(&[0], 5), (&[1, 2], 0)])), Some(14));
        let by_count = [loads(), vec![load(0, None)]].concat();
        assert_eq!(length(plan(by_count, &[(&[0], 0), (&[3], 0)])), None);
    }
}
