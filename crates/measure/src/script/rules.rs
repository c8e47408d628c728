//! The thresholds of a script, on the metrics that they name.

use std::time::Duration;

use super::{Rule, RuleOutcome, ScriptFigures, ScriptMetric};
use crate::Unit;

/// Every threshold of a run.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<MetricRules>);

/// The thresholds on one metric.
#[derive(Debug, Clone)]
pub struct MetricRules {
    /// The metric as typed, `name{tag:value}`.
    pub name: String,
    /// Index into the figures' metrics.
    pub metric_idx: usize,
    /// In the order in which they were given; none: the metric is only to be shown.
    pub rules: Vec<Threshold>,
}

/// One threshold.
#[derive(Debug, Clone)]
pub struct Threshold {
    /// What must hold.
    pub rule: Rule,
    /// The run ends when it does not.
    pub aborts: bool,
    /// But not before this time.
    pub delay: Duration,
}

/// What became of a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'a> {
    /// The metric as typed.
    pub name: &'a str,
    /// The rule.
    pub rule: &'a Rule,
    /// What the metric is measured in, [`Unit::Us`] standing for k6's milliseconds.
    pub unit: Unit,
    /// What it says.
    pub outcome: RuleOutcome,
}

impl Rules {
    /// Rules on metrics.
    pub fn new(rules: Vec<MetricRules>) -> Self {
        Self(rules)
    }

    /// By metric.
    pub fn metrics(&self) -> &[MetricRules] {
        &self.0
    }

    /// The rules on a metric.
    pub fn of(&self, metric_idx: usize) -> Option<&MetricRules> {
        self.0.iter().find(|rules| rules.metric_idx == metric_idx)
    }

    /// Judges all.
    pub fn judge<'a>(&'a self, figures: &ScriptFigures, duration: Duration) -> Vec<Judged<'a>> {
        self.judged(figures, duration).map(|(_, _, judged)| judged).collect()
    }

    /// The threshold that ends the run now, because it does not hold. Metrics without a sample are not looked at yet.
    pub fn broken<'a>(&'a self, figures: &ScriptFigures, elapsed: Duration) -> Option<Judged<'a>> {
        let is_broken = |(threshold, figure, judged): &(&Threshold, &ScriptMetric, Judged<'_>)| {
            threshold.aborts && threshold.delay < elapsed && !figure.value.is_empty() && !judged.outcome.is_ok
        };
        self.judged(figures, elapsed).find(is_broken).map(|(_, _, judged)| judged)
    }

    fn judged<'a, 'f>(
        &'a self,
        figures: &'f ScriptFigures,
        duration: Duration,
    ) -> impl Iterator<Item = (&'a Threshold, &'f ScriptMetric, Judged<'a>)> {
        let known =
            self.0.iter().filter_map(|metric| Some((metric, figures.metrics.get(metric.metric_idx)?)));
        known.flat_map(move |(metric, figure)| {
            metric.rules.iter().map(move |threshold| {
                let outcome = threshold.rule.judge(figure, duration);
                let (rule, unit) = (&threshold.rule, threshold.rule.unit(figure));
                (threshold, figure, Judged { name: &metric.name, rule, unit, outcome })
            })
        })
    }
}
