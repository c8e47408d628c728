//! Rules on metrics that are monitored during the load: of the target's CPU, `max<80%`.

use squall_plan::{InputError, units};

use super::parse::{joined, read_number};
use super::{ThresholdResult, Unit};
use crate::criterion::{Clause, Criterion, Excerpt, NotAStatistic, Statistic};
use crate::{Monitor, MonitorUnit};

/// A rule on a watched figure.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedThreshold {
    figure: String,
    rule: String,
    criterion: Criterion,
}

impl WatchedThreshold {
    /// Reads a rule such as `avg<80%` on a figure such as `shop cpu`: a machine's (or monitor's) name and the figure's own.
    ///
    /// # Errors
    /// When it is no such rule; the column is one of `rule`.
    pub fn parse(figure: &str, rule: &str) -> Result<Self, InputError> {
        let Clause { subject, comparison, limit } = Clause::split(rule, RULE_HELP)?;
        let subject = subject.trim();
        let statistic = Statistic::read_any(subject.text)
            .and_then(|read| if read.is_of_distribution() { Ok(read) } else { Err(NotAStatistic::Unknown) })
            .map_err(|problem| subject.error(problem.reason(subject.text), RULE_HELP))?;
        let criterion = Criterion { statistic, comparison, limit: read_limit(limit)? };
        Ok(Self { figure: figure.trim().to_owned(), rule: rule.trim().to_owned(), criterion })
    }

    /// The rule as people read it.
    pub fn text(&self) -> String {
        format!("{}: {}", self.figure, self.rule)
    }

    /// Judges what was watched from one moment to another, in seconds after the run's start.
    pub fn evaluate(&self, monitors: &[Monitor], from_s: f64, to_s: f64) -> ThresholdResult {
        let monitor = monitors.iter().find(|monitor| self.is_about(monitor));
        let mut values: Vec<f64> = monitor.map_or_else(Vec::new, |monitor| {
            let inside = monitor.samples.iter().filter(|(at_s, _)| (from_s..=to_s).contains(at_s));
            inside.map(|&(_, value)| value).collect()
        });
        values.sort_by(f64::total_cmp);
        let unit = monitor.map_or(Unit::Number, |monitor| Unit::from(monitor.unit));
        let actual = self.criterion.statistic.of_sorted(&values);
        ThresholdResult::new(&self.figure, &self.rule, unit, &self.criterion, actual)
    }

    /// Sources are named with their role, `target shop`, which a rule may leave out.
    fn is_about(&self, monitor: &Monitor) -> bool {
        let Some(source) = self.figure.strip_suffix(monitor.name.as_str()).map(str::trim_end) else {
            return false;
        };
        source == monitor.source || monitor.source.split_once(' ').is_some_and(|(_, name)| name == source)
    }
}

impl Statistic {
    fn of_sorted(self, values: &[f64]) -> Option<f64> {
        let (first, last) = (values.first()?, values.last()?);
        Some(match self {
            Self::Min => *first,
            Self::Max => *last,
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            // The value that occurred, as of histograms.
            Self::Quantile(q) => {
                values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1]
            }
            Self::Count | Self::Rate | Self::Value => return None,
        })
    }
}

impl From<MonitorUnit> for Unit {
    fn from(unit: MonitorUnit) -> Self {
        match unit {
            MonitorUnit::Percent => Self::Percent,
            MonitorUnit::Bytes => Self::Bytes,
            MonitorUnit::Count => Self::Number,
            MonitorUnit::PerSecond => Self::PerSecond,
            MonitorUnit::Seconds => Self::Seconds,
        }
    }
}

/// A number in the figure's own unit, or with a unit: `80%`, `2GB`, `1k/s`, `50ms`.
fn read_limit(limit: Excerpt<'_>) -> Result<f64, InputError> {
    let text = &joined(limit.text);
    let plain = read_number(text.strip_suffix('%').unwrap_or(text).trim_end());
    let rate = || units::parse_rate(text).ok().filter(|_| text.contains('/'));
    let seconds = || units::parse_duration(text).ok().map(|time| time.as_secs_f64());
    let size = || units::parse_size(text).ok().map(|bytes| bytes as f64);
    plain
        .or_else(rate)
        .or_else(seconds)
        .or_else(size)
        .ok_or_else(|| limit.error("not a number, percentage, size, rate or time", RULE_HELP))
}

const RULE_HELP: &str =
    "write a rule on a monitored metric such as `avg<80%`, `max<2GB`, `min>=100` or `p(95)<1k/s`";

#[cfg(test)]
mod tests {
    use super::*;

    fn monitors() -> [Monitor; 2] {
        let mut cpu = Monitor::new("target shop", "cpu", MonitorUnit::Percent);
        (0..10).for_each(|second| cpu.push(f64::from(second), f64::from(second) * 10.0));
        let mut rss = Monitor::new("target shop", "nginx rss", MonitorUnit::Bytes);
        rss.push(1.0, 3e9);
        [cpu, rss]
    }

    #[test]
    fn rules_hold_for_their_own_time() {
        for (figure, rule, span, actual, ok) in [
            ("shop cpu", "max<80%", (0.0, 9.0), Some(90.0), false),
            ("shop cpu", "max<80", (0.0, 7.5), Some(70.0), true),
            ("target shop cpu", "avg<=45", (0.0, 9.0), Some(45.0), true),
            ("shop cpu", "p(50)==40", (0.0, 9.0), Some(40.0), true),
            ("shop nginx rss", "max < 4GB", (0.0, 9.0), Some(3e9), true),
            ("shop nginx rss", "max<4GB", (2.0, 9.0), None, false),
            ("shop memory", "max<4GB", (0.0, 9.0), None, false),
        ] {
            let rule = WatchedThreshold::parse(figure, rule).unwrap();
            let result = rule.evaluate(&monitors(), span.0, span.1);
            assert_eq!((result.actual, result.ok), (actual, ok), "{}", rule.text());
        }
    }

    #[test]
    fn limits_have_the_units_of_what_is_watched() {
        for (rule, limit) in [
            ("max<80%", 80.0),
            ("max < 2 GB", 2e9),
            ("max<2k/s", 2000.0),
            ("max<50ms", 0.05),
            ("max<2MB", 2e6),
            ("max<1.5", 1.5),
        ] {
            assert_eq!(WatchedThreshold::parse("x", rule).unwrap().criterion.limit, limit, "{rule}");
        }
        for (rule, column, reason) in [
            ("cpu", 1, "the rule has no comparison"),
            ("<80", 1, "unknown statistic ``"),
            ("most<80", 1, "unknown statistic `most`"),
            ("max<", 5, "the limit is missing"),
            ("max<many", 5, "not a number, percentage, size, rate or time"),
        ] {
            let error = WatchedThreshold::parse("x", rule).unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{rule}");
        }
    }
}
