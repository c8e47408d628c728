//! What a fleet is to do: the plan file with every word read, every load divided, every rule parsed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use squall_measure::Threshold;
use squall_plan::file::{Machine, MonitorSpec, Text};
use squall_plan::{Plan, Segment};

/// A whole run.
#[derive(Debug, Clone)]
pub struct FleetPlan {
    /// The plan as the record shows it: all loads of all steps, whole, with secrets masked.
    pub plan: Plan,
    /// At least one.
    pub machines: Vec<Machine>,
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
}

/// One load.
#[derive(Debug, Clone)]
pub struct FleetLoad {
    /// Its name.
    pub name: String,
    /// Where it stands in the plan file.
    pub written: Text,
    /// The command.
    pub kind: String,
    /// The command's words.
    pub words: Vec<Word>,
    /// Environment for scripts and tools.
    pub env: BTreeMap<String, String>,
    /// Numbers of the machines that make it, each with its part.
    pub parts: Vec<(usize, Segment)>,
    /// How long after the step it starts.
    pub start_after: Duration,
    /// Its rules.
    pub thresholds: Vec<FleetRule>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// As it is.
    Text(String),
    /// A file here, which the machine needs.
    File(PathBuf),
}

/// A rule.
#[derive(Debug, Clone)]
pub struct FleetRule {
    /// What must hold.
    pub threshold: Threshold,
    /// Whether the run ends as soon as it does not.
    pub abort: bool,
}
