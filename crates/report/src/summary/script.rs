//! The part of the summary that only scripts have: their checks and metrics, under k6's names and in its units.

use std::collections::BTreeMap;

use serde::Serialize;
use squall_measure::{RunRecord, ScriptMetric, ScriptValue};

use crate::k6;

/// What scripts measured themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Script {
    /// Checks, by group and name.
    pub checks: Vec<Check>,
    /// Metrics and sub-metrics that have a value.
    pub metrics: Vec<Metric>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Path of its group, such as `::checkout`; empty outside of groups.
    pub group: String,
    /// Its name.
    pub name: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not.
    pub fails: u64,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Its name; a sub-metric's tags follow in braces.
    pub name: String,
    /// `counter`, `gauge`, `rate` or `trend`.
    pub kind: &'static str,
    /// What its values are: `default`, `time` (in milliseconds) or `data` (in bytes).
    pub contains: &'static str,
    /// Its statistics, named as in k6: `count`, `rate`, `avg`, `p(95)` and so on.
    pub values: BTreeMap<String, f64>,
}

impl Script {
    /// How often a check did not hold.
    pub(crate) fn fails(&self) -> u64 {
        self.checks.iter().map(|check| check.fails).sum()
    }
}

/// What scripts measured; `None` where none was run.
pub(super) fn script(record: &RunRecord) -> Option<Script> {
    let figures = record.total.script.as_deref()?;
    let checks = figures.checks.iter().map(|check| Check {
        group: check.group.clone(),
        name: check.name.clone(),
        passes: check.passes,
        fails: check.fails,
    });
    let metrics = figures.metrics.iter().filter(|metric| !metric.value.is_empty());
    Some(Script { checks: checks.collect(), metrics: metrics.map(|metric| of(metric, record)).collect() })
}

fn of(metric: &ScriptMetric, record: &RunRecord) -> Metric {
    let trend_stats = TREND_STATS.map(str::to_owned);
    let values = k6::stats(metric, record.duration, &trend_stats).into_iter();
    Metric {
        name: metric.full_name(),
        kind: k6::kind(&metric.value),
        contains: k6::contains(metric.contains),
        values: values.filter(|(_, value)| value.is_finite()).collect(),
    }
}

/// The sum of one of k6's own counters, as a count.
pub(super) fn counted(record: &RunRecord, name: &str) -> Option<u64> {
    let metric = record.total.script.as_deref()?.metric(name);
    match metric.map(|metric| &metric.value) {
        Some(ScriptValue::Counter { sum, .. }) => Some(*sum as u64),
        _ => Some(0),
    }
}

const TREND_STATS: [&str; 8] = ["avg", "min", "med", "max", "p(90)", "p(95)", "p(99)", "count"];
