//! k6's thresholds: `p(95)<200` on a metric of its kind.

use std::time::Duration;

use super::{ScriptMetric, ScriptUnit, ScriptValue};
use crate::Unit;
use crate::criterion::{Clause, Criterion, Statistic};

/// A rule on one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// As typed.
    pub text: String,
    criterion: Criterion,
}

/// What a rule says of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RuleOutcome {
    /// The statistic's value.
    pub actual: f64,
    /// How far it is on the good side of the limit; negative on the bad side.
    pub margin: f64,
    /// Whether the rule holds.
    pub is_ok: bool,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is not of the form `method op number`.
    #[error("`{0}` is not of the form `method op number`")]
    Form(String),
    /// The method is not one of the metric's kind.
    #[error("a {kind} has no method `{method}`: use {known}")]
    Method {
        /// As typed.
        method: String,
        /// The metric's kind.
        kind: &'static str,
        /// Methods of that kind.
        known: &'static str,
    },
}

impl Rule {
    /// Reads a rule on a metric whose value is like `value`.
    ///
    /// # Errors
    /// When it cannot be read, or names a method that the metric's kind does not have.
    pub fn parse(text: &str, value: &ScriptValue) -> Result<Self, RuleError> {
        let form = || RuleError::Form(text.to_owned());
        let Clause { subject, comparison, limit } = Clause::split(text, "").map_err(|_error| form())?;
        let (method, limit) = (subject.text.trim(), limit.text.parse::<f64>().map_err(|_error| form())?);
        let statistic = Statistic::read(method).ok().filter(|statistic| fits(*statistic, value));
        let statistic = statistic.ok_or_else(|| {
            let (kind, known) = methods(value);
            RuleError::Method { method: method.to_owned(), kind, known }
        })?;
        Ok(Self { text: text.to_owned(), criterion: Criterion { statistic, comparison, limit } })
    }

    /// Judges a metric. `duration`: of the run so far. A rate of no samples passes, as in k6.
    pub fn judge(&self, metric: &ScriptMetric, duration: Duration) -> RuleOutcome {
        let actual = self.actual(&metric.value, duration);
        let has_nothing = matches!(metric.value, ScriptValue::Rate { total: 0, .. });
        RuleOutcome {
            actual,
            margin: self.criterion.margin(actual),
            is_ok: has_nothing || self.criterion.holds(actual),
        }
    }

    fn actual(&self, value: &ScriptValue, duration: Duration) -> f64 {
        match (value, self.criterion.statistic) {
            (ScriptValue::Counter { sum, .. }, Statistic::Rate) => {
                if duration.is_zero() {
                    0.0
                } else {
                    sum / duration.as_secs_f64()
                }
            }
            (ScriptValue::Counter { sum, .. }, _) => *sum,
            (ScriptValue::Gauge { last, .. }, _) => *last,
            (ScriptValue::Rate { total: 0, .. }, _) => 0.0,
            (ScriptValue::Rate { trues, total }, _) => *trues as f64 / *total as f64,
            (ScriptValue::Trend(trend), statistic) => match statistic {
                Statistic::Min => trend.min(),
                Statistic::Max => trend.max(),
                Statistic::Quantile(q) => trend.quantile(q),
                _ => trend.mean(),
            },
        }
    }

    /// What the value is compared with.
    pub fn limit(&self) -> f64 {
        self.criterion.limit
    }

    /// What the value is measured in, before [`Unit::Us`] is made of a script's milliseconds.
    pub(crate) fn unit(&self, metric: &ScriptMetric) -> Unit {
        match (&metric.value, metric.contains) {
            (ScriptValue::Rate { .. }, _) => Unit::Fraction,
            (ScriptValue::Counter { .. }, _) if self.criterion.statistic == Statistic::Rate => {
                Unit::PerSecond
            }
            (_, ScriptUnit::Time) => Unit::Us,
            (_, ScriptUnit::Data) => Unit::Bytes,
            (ScriptValue::Counter { sum, .. }, ScriptUnit::Default) if sum.fract() == 0.0 => Unit::Count,
            (_, ScriptUnit::Default) => Unit::Number,
        }
    }

    /// The method as typed, such as `p(95)`.
    pub fn method(&self) -> &str {
        let end = self.text.find(['<', '>', '=', '!']).unwrap_or(self.text.len());
        self.text[..end].trim()
    }
}

fn fits(statistic: Statistic, value: &ScriptValue) -> bool {
    match value {
        ScriptValue::Counter { .. } => matches!(statistic, Statistic::Count | Statistic::Rate),
        ScriptValue::Gauge { .. } => statistic == Statistic::Value,
        ScriptValue::Rate { .. } => statistic == Statistic::Rate,
        ScriptValue::Trend(_) => statistic.is_of_distribution(),
    }
}

fn methods(value: &ScriptValue) -> (&'static str, &'static str) {
    match value {
        ScriptValue::Counter { .. } => ("counter", "count or rate"),
        ScriptValue::Gauge { .. } => ("gauge", "value"),
        ScriptValue::Rate { .. } => ("rate", "rate"),
        ScriptValue::Trend(_) => ("trend", "avg, min, med, max or p(N)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Trend;

    #[test]
    fn rules_are_judged_as_k6_does() {
        let mut trend = Trend::exact();
        (1..=100).for_each(|value| trend.add(f64::from(value)));
        let values = [
            ScriptValue::Counter { sum: 20.0, count: 2 },
            ScriptValue::Gauge { last: 3.0, min: 1.0, max: 5.0, at_ns: 1 },
            ScriptValue::Rate { trues: 1, total: 4 },
            ScriptValue::Trend(Box::new(trend)),
            ScriptValue::Rate { trues: 0, total: 0 },
        ];
        for (idx, text, expected) in [
            (0, "count>=20", Ok(true)),
            (0, "rate < 2", Ok(false)),
            (1, "value===3", Ok(true)),
            (2, "rate<0.3", Ok(true)),
            (3, "p(95)<95", Ok(false)),
            (3, "p(99.9)<=100", Ok(true)),
            (3, "med!=50.5", Ok(false)),
            (4, "rate>0.9", Ok(true)),
            (3, "count>1", Err(())),
            (0, "p(95)<1", Err(())),
            (3, "p(101)<1", Err(())),
            (3, "avg=1", Err(())),
            (3, "avg<x", Err(())),
        ] {
            let value = values[idx].clone();
            let metric = ScriptMetric::new("m", ScriptUnit::Time, value);
            let judged = Rule::parse(text, &metric.value).map_err(|_| ());
            let judged = judged.map(|rule| rule.judge(&metric, Duration::from_secs(10)).is_ok);
            assert_eq!(judged, expected, "{text}");
        }
    }
}
