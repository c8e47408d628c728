//! Reads rules: `[METRIC:] STATISTIC COMPARISON LIMIT`. Every error knows its column and what to write instead.

use std::str::FromStr;

use squall_plan::{InputError, nearest, units};

use super::{METRICS, Metric, Threshold, Time, Unit};
use crate::criterion::{Clause, Criterion, Excerpt, NotAStatistic, Statistic};

impl FromStr for Threshold {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        if let Some(brace) = text.find('{') {
            let filter = Excerpt::of(text).split_at(brace).1;
            return Err(filter.error("filters by tag are not supported", RULE_HELP));
        }
        let Clause { subject, comparison, limit } = Clause::split(text, RULE_HELP)?;
        let (metric, statistic) = read_subject(subject, limit.text)?;
        let limit = read_limit(limit, metric.unit(statistic))?;
        let criterion = Criterion { statistic, comparison, limit };
        Ok(Self { text: text.trim().to_owned(), metric, criterion })
    }
}

/// Reads what is left of the comparison: `metric: statistic`, or one of them alone. The limit's unit decides between a share and a
/// count (`errors<1%`, `errors<10`).
fn read_subject(subject: Excerpt<'_>, limit: &str) -> Result<(Metric, Statistic), InputError> {
    if let Some(colon) = subject.text.find(':') {
        let (metric, rest) = subject.split_at(colon);
        let metric = Metric::read(metric.trim())?;
        return Ok((metric, metric.read_statistic(rest.split_at(1).1.trim())?));
    }
    let word = subject.trim();
    match (word.text, Metric::of_name(word.text)) {
        ("", _) => Err(word.error("the metric before the comparison is missing", RULE_HELP)),
        (_, Some(metric)) => Ok((metric, metric.usual_statistic(word, limit)?)),
        ("rate" | "count", None) => Ok((Metric::Requests, Metric::Requests.read_statistic(word)?)),
        (_, None) => {
            let latency = Metric::Time(Time::Latency);
            Ok((latency, latency.read_statistic(word)?))
        }
    }
}

/// Reads the limit in the unit of what is judged.
pub(crate) fn read_limit(limit: Excerpt<'_>, unit: Unit) -> Result<f64, InputError> {
    match unit {
        Unit::Us => read_time_us(limit),
        Unit::Fraction => read_fraction(limit),
        Unit::PerSecond => units::parse_rate(&joined(limit.text)).map_err(|e| limit.shift(e)),
        _ => read_count(limit),
    }
}

impl Metric {
    fn read(name: Excerpt<'_>) -> Result<Self, InputError> {
        Self::of_name(name.text).ok_or_else(|| {
            let help = suggestion(name.text, METRICS.iter().map(|(name, _)| *name));
            name.error(format!("unknown metric `{}`", name.text), help)
        })
    }

    fn of_name(name: &str) -> Option<Self> {
        METRICS.iter().find(|(own, _)| *own == name).map(|(_, metric)| *metric)
    }

    /// Reads one of its statistics.
    fn read_statistic(self, word: Excerpt<'_>) -> Result<Statistic, InputError> {
        match (Statistic::read_any(word.text), self) {
            (Ok(statistic), _) if self.has(statistic) => Ok(statistic),
            (Err(NotAStatistic::Percentile), Self::Time(_)) => {
                let reason = NotAStatistic::Percentile.reason(word.text);
                Err(word.error(reason, "write for example `p(99.9)`"))
            }
            (Err(NotAStatistic::Unknown), Self::Time(_)) => {
                let names = STATISTIC_NAMES.into_iter().chain(METRICS.iter().map(|(name, _)| *name));
                let help = suggestion(word.text, names);
                Err(word.error(NotAStatistic::Unknown.reason(word.text), help))
            }
            _ => {
                let reason = format!("`{}` has no `{}`", self.name(), word.text);
                Err(word.error(reason, self.statistics_help()))
            }
        }
    }

    fn statistics_help(self) -> &'static str {
        match self {
            Self::Time(_) => "write `p(95)`, `avg`, `med`, `min` or `max`",
            _ => "write `rate`, or `count` (not of `throughput`)",
        }
    }

    /// What the metric means where a rule names no statistic.
    fn usual_statistic(self, name: Excerpt<'_>, limit: &str) -> Result<Statistic, InputError> {
        let is_rate = match self {
            Self::Errors | Self::Differing | Self::Goodput | Self::Unanswered | Self::Disconnects => {
                limit.ends_with('%')
            }
            Self::Requests | Self::Events | Self::Messages | Self::Reconnects => limit.contains('/'),
            Self::Throughput => true,
            Self::Time(_) => {
                let reason = format!("`{}` has several statistics, and the rule names none", name.text);
                let help = format!("write `{}: p(95)<200`, or `avg`, `med`, `min`, `max`", name.text);
                return Err(name.error(reason, help));
            }
        };
        Ok(if is_rate { Statistic::Rate } else { Statistic::Count })
    }
}

/// A bare number is in milliseconds, as in k6.
fn read_time_us(limit: Excerpt<'_>) -> Result<f64, InputError> {
    if let Some(millis) = read_number(limit.text) {
        return Ok(millis * 1e3);
    }
    let duration = units::parse_duration(&joined(limit.text)).map_err(|e| limit.shift(e))?;
    Ok(duration.as_nanos() as f64 / 1e3)
}

/// `1%`, or `0.01` as in k6.
fn read_fraction(limit: Excerpt<'_>) -> Result<f64, InputError> {
    let fraction = match limit.text.strip_suffix('%') {
        Some(percent) => read_number(percent.trim_end()).map(|percent| percent / 100.0),
        None => read_number(limit.text),
    };
    let fraction = fraction.ok_or_else(|| limit.error("not a fraction or percentage", FRACTION_HELP))?;
    if fraction > 1.0 {
        return Err(limit.error("more than 100 %", FRACTION_HELP));
    }
    Ok(fraction)
}

/// A limit without the blanks before its unit and around its slash: `5 ms` is `5ms`.
pub(super) fn joined(limit: &str) -> String {
    let part = |text: &str| {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        // Two numbers do not become one.
        let unit = if unit.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            unit
        } else {
            unit.trim_start()
        };
        format!("{number}{unit}")
    };
    limit.split('/').map(|text| part(text.trim())).collect::<Vec<_>>().join("/")
}

fn read_count(limit: Excerpt<'_>) -> Result<f64, InputError> {
    match units::parse_count(&joined(limit.text)) {
        Ok(count) => Ok(count as f64),
        Err(error) => Err(InputError { help: COUNT_HELP.to_owned(), ..limit.shift(error) }),
    }
}

/// Digits with at most one point: no sign, no exponent, no `inf`, and not so many that it would become one in another unit.
pub(super) fn read_number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|number| is_plain && *number <= NUMBER_MAX)
}

/// Names the nearest of the known names, or says how a rule looks.
fn suggestion(typed: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest(typed, known)
        .map_or_else(|| RULE_HELP.to_owned(), |name| format!("a similar name exists: `{name}`"))
}

/// More than any count; in milliseconds, thirty million years.
const NUMBER_MAX: f64 = 1e18;

const STATISTIC_NAMES: [&str; 8] = ["avg", "mean", "med", "median", "min", "max", "rate", "count"];

const RULE_HELP: &str =
    "write a rule such as `p(95)<200`, `waiting: p(99.9)<=1s`, `errors<0.1%` or `requests: rate>1000/s`";

const COUNT_HELP: &str =
    "write a count such as `10` or `10k`, or for errors a percentage such as `errors<1%`";

const FRACTION_HELP: &str = "write a percentage such as `1%`, or a fraction such as `0.01`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_rules_say_where_and_why() {
        for (rule, column, reason) in [
            ("", 1, "the rule has no comparison"),
            (&format!("p0>{}", "2".repeat(400)), 4, "too many digits"),
            ("p(95)", 1, "the rule has no comparison"),
            ("<200", 1, "the metric before the comparison is missing"),
            ("p(95)<", 7, "the limit is missing"),
            ("p(95)=200", 6, "unknown comparison"),
            ("p(95)<>200", 7, "not a number"),
            ("p(101)<200", 1, "a percentile is a number from 0 to 100"),
            ("p(95<200", 1, "unknown statistic `p(95`"),
            ("p()<200", 1, "a percentile is a number from 0 to 100"),
            ("  latncy: avg<200", 3, "unknown metric `latncy`"),
            ("waiting: agv<200", 10, "unknown statistic `agv`"),
            ("waiting:<200", 9, "unknown statistic ``"),
            ("waiting<200", 1, "`waiting` has several statistics, and the rule names none"),
            ("waiting: rate<1", 10, "`waiting` has no `rate`"),
            ("value<1", 1, "`latency` has no `value`"),
            ("errors: avg<200", 9, "`errors` has no `avg`"),
            ("throughput: count>1", 13, "`throughput` has no `count`"),
            ("errors<200%", 8, "more than 100 %"),
            ("errors: rate<5", 14, "more than 100 %"),
            ("errors<0.5", 8, "not a whole number"),
            ("µ: avg<2", 1, "unknown metric `µ`"),
            ("waiting: avg < 2 parsecs", 17, "unknown unit `parsecs`"),
            ("avg<1 0ms", 6, "unknown unit ` `"),
            ("rate>1/parsec", 8, "unknown period `parsec`"),
            ("http_req_duration{status:200}: avg<2", 18, "filters by tag are not supported"),
            ("avg<-1", 5, "not a number"),
            ("avg<inf", 5, "not a number"),
        ] {
            let error = rule.parse::<Threshold>().unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{rule}");
            assert!(!error.help.is_empty());
        }
    }

    #[test]
    fn blanks_do_not_matter() {
        for (spaced, close) in [
            ("p(95)<5 ms", "p(95)<5ms"),
            (" p (95) < 1 s ", "p(95)<1s"),
            ("errors < 1 %", "errors<1%"),
            ("errors: count < 10 k", "errors: count<10k"),
            ("requests: rate > 1 k / s", "requests: rate>1k/s"),
            ("requests > 50 / 10 s", "requests>50/10s"),
        ] {
            let limit = |rule: &str| rule.parse::<Threshold>().map(|rule| (rule.metric, rule.criterion));
            assert_eq!(limit(spaced), limit(close), "{spaced}");
            assert!(limit(spaced).is_ok(), "{spaced}");
        }
    }

    #[test]
    fn a_mistyped_name_is_answered_with_its_neighbour() {
        for (rule, help) in [
            ("latncy: avg<200", "a similar name exists: `latency`"),
            ("agv<200", "a similar name exists: `avg`"),
            ("erors<1%", "a similar name exists: `errors`"),
            ("http_req_faild: rate<1%", "a similar name exists: `http_req_failed`"),
            ("zebra<1", RULE_HELP),
        ] {
            assert_eq!(rule.parse::<Threshold>().unwrap_err().help, help, "{rule}");
        }
    }
}
