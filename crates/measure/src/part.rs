//! Parts of a run that have figures of their own: the runs that were merged into it, its steps, its loads, the machines that made it, and foreign tools.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Snapshot, ThresholdResult, Verdict};

/// The figures of a run among several, of a step, of a load, or of a machine. Each kind's parts add up to the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is a part of.
    pub kind: PartKind,
    /// The name that the plan gives it.
    pub name: String,
    /// When it began, in seconds after the run's start.
    pub at_s: f64,
    /// Length of its measured time.
    pub duration: Duration,
    /// Why it ended before its time, where it did: `lost: connection closed`.
    pub problem: Option<String>,
    /// Whether its figures can be believed.
    pub verdict: Verdict,
    /// The rules given for it.
    pub thresholds: Vec<ThresholdResult>,
    /// Facts about it by name; of a machine its `os`, `cpus_usable` and so on.
    pub facts: BTreeMap<String, String>,
    /// Its figures.
    pub total: Snapshot,
}

/// How a run is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// By occasion: runs that were merged into one.
    Run,
    /// By time: the steps of a plan.
    Step,
    /// By what was done: the loads of a step.
    Load,
    /// By who did it: the machines.
    Machine,
}

/// What a foreign tool did: its own figures as it printed them. They are in no total: percentiles do not add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRun {
    /// The tool, such as `wrk`.
    pub tool: String,
    /// What it said of its version; empty when it said nothing.
    pub version: String,
    /// The load's name in the plan.
    pub load: String,
    /// The machine that it ran on.
    pub machine: String,
    /// When it began, in seconds after the run's start.
    pub at_s: f64,
    /// How long it ran.
    pub duration: Duration,
    /// Program and arguments, secrets masked.
    pub command: Vec<String>,
    /// Its exit code; `None` when it was ended by a signal or never ran.
    pub exit_code: Option<i32>,
    /// What is wrong with the run or with what was printed; `None` when all is well.
    pub problem: Option<String>,
    /// What it printed, read.
    pub figures: ToolFigures,
    /// The file in the run's folder that has all it printed.
    pub raw_file: String,
}

impl ToolRun {
    /// Whether it did not make its load, other than one that made it at another rate than it was asked for.
    pub fn has_failed(&self) -> bool {
        let ToolFigures { requests, rate_per_s, .. } = &self.figures;
        self.problem.is_some() && (self.exit_code != Some(0) || rate_per_s.is_none() || *requests == Some(0))
    }
}

/// Figures that tools print, in common units. What a tool does not print is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolFigures {
    /// Requests (or handshakes) that ended.
    pub requests: Option<u64>,
    /// Of these, those that failed by the tool's own measure.
    pub failed: Option<u64>,
    /// Requests (or handshakes) per second.
    pub rate_per_s: Option<f64>,
    /// The rate that was asked for.
    pub asked_per_s: Option<f64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// The time that the tool itself measured, in seconds.
    pub duration_s: Option<f64>,
    /// Latency statistics in microseconds by the tool's own names: `mean`, `p50`, `p99`, `max`.
    pub latency_us: BTreeMap<String, f64>,
    /// Answers by status; where the tool groups them, by `2xx`.
    pub status: BTreeMap<String, u64>,
    /// Errors by the tool's own words.
    pub errors: BTreeMap<String, u64>,
}
