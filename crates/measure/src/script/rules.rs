//! The thresholds of a script, on the metrics that they name.

use std::time::Duration;

use super::{Rule, RuleOutcome, ScriptFigures, ScriptMetric};

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
        let mut all = Vec::new();
        for metric in &self.0 {
            let Some(figure) = figures.metrics.get(metric.metric_idx) else { continue };
            all.extend(metric.rules.iter().map(|threshold| Judged {
                name: &metric.name,
                rule: &threshold.rule,
                outcome: threshold.rule.judge(figure, duration),
            }));
        }
        all
    }

    /// Whether a threshold that does not hold ends the run now. Metrics without a sample are not looked at yet.
    pub fn want_abort(&self, figures: &ScriptFigures, elapsed: Duration) -> bool {
        let fails = |figure: &ScriptMetric, threshold: &Threshold| {
            threshold.aborts
                && threshold.delay < elapsed
                && !figure.value.is_empty()
                && !threshold.rule.judge(figure, elapsed).is_ok
        };
        self.0.iter().any(|metric| {
            let figure = figures.metrics.get(metric.metric_idx);
            figure.is_some_and(|figure| metric.rules.iter().any(|threshold| fails(figure, threshold)))
        })
    }
}
