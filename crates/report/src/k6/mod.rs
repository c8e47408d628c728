//! The faces of a k6 script's run, in k6's own form: the end summary as text, the data of `handleSummary`, `--summary-export`.

mod data;
mod text;
mod units;

use std::time::Duration;

use squall_measure::{Rules, ScriptCheck, ScriptFigures, ScriptMetric, ScriptUnit, ScriptValue};

pub use data::{export, machine_data, summary_data};
pub use text::{TextForm, TextMode, summary_text};

/// The figures of a scenario, or of a group in it, for the full summary.
#[derive(Debug, Clone, Copy)]
pub struct ScriptSection<'a> {
    /// The scenario.
    pub scenario: &'a str,
    /// Path of the group; empty: the whole scenario.
    pub group: &'a str,
    /// What was measured there.
    pub figures: &'a ScriptFigures,
}

/// What every face of a script's run is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct ScriptSummary<'a> {
    /// The figures.
    pub figures: &'a ScriptFigures,
    /// The thresholds.
    pub rules: &'a Rules,
    /// Length of the run, setup and teardown included.
    pub duration: Duration,
    /// Statistics of trends.
    pub trend_stats: &'a [String],
    /// `s`, `ms`, `us`, or empty.
    pub time_unit: &'a str,
    /// The parts of the full summary, by scenario and group.
    pub sections: &'a [ScriptSection<'a>],
    /// What `setup()` gave, as JSON.
    pub setup_data: Option<&'a str>,
}

impl ScriptSummary<'_> {
    /// Whether a metric is shown: it has values, or a threshold is on it or on a part of it.
    pub(crate) fn tells(&self, idx: usize) -> bool {
        let metric = &self.figures.metrics[idx];
        let parts = self.figures.metrics.iter().enumerate().filter(|(_, part)| part.name == metric.name);
        let mut ruled = parts.filter(|(part_idx, _)| *part_idx == idx || metric.tags.is_empty());
        !metric.value.is_empty() || ruled.any(|(idx, _)| self.rules.of(idx).is_some())
    }
}

/// Checks of one name are one, whatever groups they are in.
fn merged_by_name(checks: &[ScriptCheck]) -> Vec<ScriptCheck> {
    let mut merged: Vec<ScriptCheck> = Vec::new();
    for check in checks {
        match merged.iter_mut().find(|known| known.name == check.name) {
            Some(known) => {
                known.passes += check.passes;
                known.fails += check.fails;
            }
            None => merged.push(check.clone()),
        }
    }
    merged
}

/// A value of a metric by its name.
type Stat = (String, f64);

/// The values of a metric as k6 names them; `duration`: the run's.
pub(crate) fn stats(metric: &ScriptMetric, duration: Duration, trend_stats: &[String]) -> Vec<Stat> {
    let named =
        |pairs: &[(&str, f64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    match &metric.value {
        ScriptValue::Counter { sum, .. } => named(&[("count", *sum), ("rate", per_s(*sum, duration))]),
        ScriptValue::Gauge { last, min, max, .. } => named(&[("value", *last), ("min", *min), ("max", *max)]),
        ScriptValue::Rate { trues, total } => {
            let rate = if *total == 0 { 0.0 } else { *trues as f64 / *total as f64 };
            named(&[("rate", rate), ("passes", *trues as f64), ("fails", (*total - *trues) as f64)])
        }
        ScriptValue::Trend(trend) => {
            let stat = |name: &String| (name.clone(), trend_stat(trend, name));
            trend_stats.iter().map(stat).collect()
        }
    }
}

fn trend_stat(trend: &squall_measure::Trend, name: &str) -> f64 {
    match name {
        "avg" => trend.mean(),
        "min" => trend.min(),
        "max" => trend.max(),
        "med" => trend.quantile(0.5),
        "count" => trend.count() as f64,
        _ => {
            let percent = name.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
            percent
                .and_then(|percent| percent.parse::<f64>().ok())
                .map_or(0.0, |percent| trend.quantile(percent / 100.0))
        }
    }
}

fn per_s(sum: f64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { sum / duration.as_secs_f64() }
}

/// k6's name of a metric's kind.
pub(crate) fn kind(value: &ScriptValue) -> &'static str {
    match value {
        ScriptValue::Counter { .. } => "counter",
        ScriptValue::Gauge { .. } => "gauge",
        ScriptValue::Rate { .. } => "rate",
        ScriptValue::Trend(_) => "trend",
    }
}

pub(crate) fn contains(unit: ScriptUnit) -> &'static str {
    match unit {
        ScriptUnit::Default => "default",
        ScriptUnit::Time => "time",
        ScriptUnit::Data => "data",
    }
}
