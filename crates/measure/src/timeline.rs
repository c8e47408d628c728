//! What else is on a run's timeline: metrics monitored during the load, and marked moments.
//!
//! All times are seconds after the run's start, on the clock of the machine that collects.

use serde::{Deserialize, Serialize};

/// One figure of one machine or server, watched while the run went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monitor {
    /// Who it is about, such as `target 10.0.0.5` or `generator g1`.
    pub source: String,
    /// What it is, such as `cpu`, `memory` or `nginx rss`.
    pub name: String,
    /// What its values are measured in.
    pub unit: MonitorUnit,
    /// Seconds after the run's start, and the value then. In time order; at most one a second, thinned when the run grows long.
    pub samples: Vec<(f64, f64)>,
}

/// What a watched figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MonitorUnit {
    /// Percent: 0 to 100, or to 100 for each CPU where the name says `cpus`.
    Percent,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// A number of things per second.
    PerSecond,
    /// Seconds.
    Seconds,
}

/// A moment that the timeline marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds after the run's start.
    pub at_s: f64,
    /// What happened, in a few words.
    pub label: String,
    /// What kind of thing happened.
    pub kind: EventKind,
}

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A step of a plan began.
    Step,
    /// A machine was lost, or a tool ended before its time.
    Lost,
    /// A watched process was started again.
    Restart,
    /// Anything else.
    Note,
}

impl Monitor {
    /// A figure without values yet.
    pub fn new(source: impl Into<String>, name: impl Into<String>, unit: MonitorUnit) -> Self {
        Self { source: source.into(), name: name.into(), unit, samples: Vec::new() }
    }

    /// Adds a value; beyond [`SAMPLE_COUNT_MAX`] of them, every second one is dropped.
    pub fn push(&mut self, at_s: f64, value: f64) {
        if self.samples.len() >= SAMPLE_COUNT_MAX {
            let mut is_kept = false;
            self.samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.samples.push((at_s, value));
    }

    /// The value that came last.
    pub fn last(&self) -> Option<f64> {
        self.samples.last().map(|&(_, value)| value)
    }
}

/// Most values kept of one figure: two hours at one a second, and never less than half of that.
pub const SAMPLE_COUNT_MAX: usize = 7200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_thins_its_samples_and_keeps_their_order() {
        let mut monitor = Monitor::new("target", "cpu", MonitorUnit::Percent);
        for second in 0..100_000 {
            monitor.push(f64::from(second), 1.0);
        }
        assert!(monitor.samples.len() <= SAMPLE_COUNT_MAX);
        assert!(monitor.samples.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(monitor.samples.last(), Some(&(99_999.0, 1.0)));
    }
}
