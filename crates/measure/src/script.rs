//! The metrics of a k6 script: counters, gauges, rates, trends, sub-metrics by tags, checks and groups; and thresholds on them.
//!
//! Owns: their merge law, and the statistics that k6 names. Figures carry their own names, so that a record explains itself.

mod rule;
mod rules;
mod trend;

use serde::{Deserialize, Serialize};
use squall_plan::limits::{CHECK_COUNT_MAX, GROUP_COUNT_MAX};

pub use rule::{Rule, RuleError, RuleOutcome};
pub use rules::{Judged, MetricRules, Rules, Threshold as ScriptThreshold};
pub use trend::Trend;

/// The metrics of a script in a span of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptFigures {
    /// Metrics and sub-metrics; in all figures of one script in the same order.
    pub metrics: Vec<ScriptMetric>,
    /// Checks, by group and name.
    pub checks: Vec<ScriptCheck>,
    /// Paths of groups in the order in which they were entered first.
    pub groups: Vec<String>,
}

/// A metric, or the part of it whose samples have certain tags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptMetric {
    /// Name.
    pub name: String,
    /// Tags that samples must have; empty: all samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// The tags as the script writes them, which name the sub-metric; empty: `key:value` of each.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter: String,
    /// What the values are.
    pub contains: ScriptUnit,
    /// What came together.
    pub value: ScriptValue,
}

/// What a metric's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptUnit {
    /// Plain numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
}

/// What a metric adds up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptValue {
    /// A sum.
    Counter {
        /// Of all values.
        sum: f64,
        /// Samples.
        count: u64,
    },
    /// The last value.
    Gauge {
        /// The last one.
        last: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
        /// When the last one came, in nanoseconds after the start; 0: none came.
        at_ns: u64,
    },
    /// The share of values that are not zero.
    Rate {
        /// Not zero.
        trues: u64,
        /// All.
        total: u64,
    },
    /// A distribution.
    Trend(Box<Trend>),
}

/// A check in its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCheck {
    /// Path of the group; empty at the root.
    pub group: String,
    /// Name.
    pub name: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not.
    pub fails: u64,
}

impl ScriptFigures {
    /// Adds the figures of another span or shard of the same run.
    pub fn merge(&mut self, other: &Self) {
        for (idx, theirs) in other.metrics.iter().enumerate() {
            match self.metric_mut(idx, theirs) {
                Some(mine) => mine.value.merge(&theirs.value),
                None => self.metrics.push(theirs.clone()),
            }
        }
        for theirs in &other.checks {
            let mine = self.check_mut(&theirs.group, &theirs.name);
            mine.passes += theirs.passes;
            mine.fails += theirs.fails;
        }
        for path in &other.groups {
            self.enter(path);
        }
    }

    /// The same metric as `theirs`, which has the place `idx` where the figures are of the same script.
    fn metric_mut(&mut self, idx: usize, theirs: &ScriptMetric) -> Option<&mut ScriptMetric> {
        let is_same = |mine: &ScriptMetric| mine.name == theirs.name && mine.tags == theirs.tags;
        let place = match self.metrics.get(idx).is_some_and(is_same) {
            true => idx,
            false => self.metrics.iter().position(is_same)?,
        };
        self.metrics.get_mut(place)
    }

    /// Empties it for the next span; keeps the metrics' names.
    pub fn clear(&mut self) {
        self.metrics.iter_mut().for_each(|metric| metric.value.clear());
        self.checks.clear();
        self.groups.clear();
    }

    /// A check's counts; of those of `(other)` once there are [`CHECK_COUNT_MAX`].
    pub fn check_mut(&mut self, group: &str, name: &str) -> &mut ScriptCheck {
        let find = |group: &str, name: &str| {
            self.checks.iter().position(|check| check.name == name && check.group == group)
        };
        let mut known = find(group, name);
        let (mut group, mut name) = (group, name);
        if known.is_none() && self.checks.len() >= CHECK_COUNT_MAX {
            (group, name) = ("", "(other)");
            known = find(group, name);
        }
        let idx = known.unwrap_or_else(|| {
            let (group, name) = (group.to_owned(), name.to_owned());
            self.checks.push(ScriptCheck { group, name, passes: 0, fails: 0 });
            self.checks.len() - 1
        });
        &mut self.checks[idx]
    }

    /// A check was made.
    pub fn count_check(&mut self, group: &str, name: &str, is_ok: bool) {
        let check = self.check_mut(group, name);
        check.passes += u64::from(is_ok);
        check.fails += u64::from(!is_ok);
    }

    /// A group was entered.
    pub fn enter(&mut self, path: &str) {
        if self.groups.len() < GROUP_COUNT_MAX && !self.groups.iter().any(|known| known == path) {
            self.groups.push(path.to_owned());
        }
    }

    /// A metric without tags.
    pub fn metric(&self, name: &str) -> Option<&ScriptMetric> {
        self.metrics.iter().find(|metric| metric.name == name && metric.tags.is_empty())
    }
}

impl ScriptCheck {
    /// The share of times that it held; 0 where it was never made.
    pub fn share(&self) -> f64 {
        self.passes as f64 / (self.passes + self.fails).max(1) as f64
    }
}

impl ScriptMetric {
    /// A metric over all samples.
    pub fn new(name: &str, contains: ScriptUnit, value: ScriptValue) -> Self {
        Self { name: name.to_owned(), tags: Vec::new(), filter: String::new(), contains, value }
    }

    /// `name{tag:value}`.
    pub fn full_name(&self) -> String {
        if self.tags.is_empty() {
            return self.name.clone();
        }
        if !self.filter.is_empty() {
            return format!("{}{{{}}}", self.name, self.filter);
        }
        let tags: Vec<String> = self.tags.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        format!("{}{{{}}}", self.name, tags.join(","))
    }
}

impl ScriptValue {
    /// Adds a value that came `at_ns` after the start.
    pub fn add(&mut self, value: f64, at_ns: u64) {
        match self {
            Self::Counter { sum, count } => {
                *sum += value;
                *count += 1;
            }
            Self::Gauge { last, min, max, at_ns: at } => {
                (*min, *max) = if *at == 0 { (value, value) } else { (min.min(value), max.max(value)) };
                (*last, *at) = (value, at_ns.max(1));
            }
            Self::Rate { trues, total } => {
                *trues += u64::from(value != 0.0);
                *total += 1;
            }
            Self::Trend(trend) => trend.add(value),
        }
    }

    /// Whether no value came.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Counter { count, .. } => *count == 0,
            Self::Gauge { at_ns, .. } => *at_ns == 0,
            Self::Rate { total, .. } => *total == 0,
            Self::Trend(trend) => trend.count() == 0,
        }
    }

    fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter { sum, count }, Self::Counter { sum: their_sum, count: their_count }) => {
                *sum += their_sum;
                *count += their_count;
            }
            (mine @ Self::Gauge { .. }, Self::Gauge { .. }) => mine.merge_gauge(other),
            (Self::Rate { trues, total }, Self::Rate { trues: their_trues, total: their_total }) => {
                *trues += their_trues;
                *total += their_total;
            }
            (Self::Trend(mine), Self::Trend(theirs)) => mine.merge(theirs),
            // The order of metrics is the same in all figures of a run.
            _ => {}
        }
    }

    /// The later one is the last; of gauges of the same moment (shards tell at the same time) the values add up.
    fn merge_gauge(&mut self, other: &Self) {
        let (Self::Gauge { last, min, max, at_ns }, Self::Gauge { last: l, min: lo, max: hi, at_ns: at }) =
            (self, other)
        else {
            return;
        };
        if *at == 0 {
            return;
        }
        if *at_ns == 0 {
            (*last, *min, *max, *at_ns) = (*l, *lo, *hi, *at);
            return;
        }
        (*min, *max) = (min.min(*lo), max.max(*hi));
        if *at >= *at_ns {
            (*last, *at_ns) = (*l, *at);
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Counter { sum, count } => (*sum, *count) = (0.0, 0),
            Self::Gauge { last, min, max, at_ns } => (*last, *min, *max, *at_ns) = (0.0, 0.0, 0.0, 0),
            Self::Rate { trues, total } => (*trues, *total) = (0, 0),
            Self::Trend(trend) => trend.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: &[f64]) -> ScriptFigures {
        let kinds = [
            ScriptValue::Counter { sum: 0.0, count: 0 },
            ScriptValue::Gauge { last: 0.0, min: 0.0, max: 0.0, at_ns: 0 },
            ScriptValue::Rate { trues: 0, total: 0 },
            ScriptValue::Trend(Box::default()),
        ];
        let mut metrics: Vec<ScriptMetric> =
            kinds.into_iter().map(|value| ScriptMetric::new("m", ScriptUnit::Default, value)).collect();
        for (at_ns, value) in (1..).zip(values) {
            metrics.iter_mut().for_each(|metric| metric.value.add(*value, at_ns));
        }
        ScriptFigures { metrics, ..ScriptFigures::default() }
    }

    #[test]
    fn names_made_of_data_share_one_check() {
        let mut figures = ScriptFigures::default();
        for nth in 0..3 * CHECK_COUNT_MAX {
            figures.count_check("::g", &format!("id {nth}"), nth % 2 == 0);
        }
        assert_eq!(figures.checks.len(), CHECK_COUNT_MAX + 1);
        let other = figures.checks.last().unwrap();
        assert_eq!(
            (other.name.as_str(), other.passes + other.fails),
            ("(other)", 2 * CHECK_COUNT_MAX as u64)
        );
    }

    #[test]
    fn groups_made_of_data_are_not_all_kept() {
        let mut figures = ScriptFigures::default();
        (0..3 * GROUP_COUNT_MAX).for_each(|nth| figures.enter(&format!("::id {nth}")));
        assert_eq!(figures.groups.len(), GROUP_COUNT_MAX);
    }

    #[test]
    fn parts_merge_into_the_whole() {
        let mut merged = figures(&[3.0, 0.0]);
        merged.check_mut("::g", "c").passes += 1;
        let mut rest = figures(&[]);
        for metric in &mut rest.metrics {
            metric.value.add(5.0, 3);
        }
        rest.check_mut("::g", "c").fails += 2;
        merged.merge(&rest);
        let mut whole = figures(&[3.0, 0.0, 5.0]);
        whole.check_mut("::g", "c").passes += 1;
        whole.check_mut("::g", "c").fails += 2;
        assert_eq!(merged, whole);
        merged.clear();
        assert!(merged.metrics.iter().all(|metric| metric.value.is_empty()));
    }
}
