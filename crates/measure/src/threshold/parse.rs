//! Reads rules: `[METRIC:] STATISTIC COMPARISON LIMIT`. Every error knows its column and what to write instead.

use std::str::FromStr;

use squall_plan::{InputError, nearest, units};

use crate::comparison::{COMPARISONS, Comparison};

use super::{METRICS, Metric, Statistic, Subject, Threshold, Time, Unit};

impl FromStr for Threshold {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let whole = Part::of(text);
        if let Some(brace) = text.find('{') {
            return Err(whole.split_at(brace).1.error("filters by tag are not supported", RULE_HELP));
        }
        let operator_at = text.find(['<', '>', '=', '!']);
        let operator_at = operator_at.ok_or_else(|| whole.error("the rule has no comparison", RULE_HELP))?;
        let (left, right) = whole.split_at(operator_at);
        let (comparison, limit) = Comparison::read(right)?;
        let subject = Subject::read(left, limit.text)?;
        let limit = subject.read_limit(limit)?;
        Ok(Self { text: text.trim().to_owned(), subject, comparison, limit })
    }
}

impl Subject {
    /// Reads what stands left of the comparison: `metric: statistic`, or one of them alone. The limit's unit decides between
    /// a share and a count (`errors<1%`, `errors<10`).
    fn read(left: Part<'_>, limit: &str) -> Result<Self, InputError> {
        if let Some(colon) = left.text.find(':') {
            let (metric, rest) = left.split_at(colon);
            let statistic = rest.split_at(1).1.trim();
            return Metric::read(metric.trim())?.with_statistic(statistic);
        }
        let word = left.trim();
        match word.text {
            "" => Err(word.error("the metric before the comparison is missing", RULE_HELP)),
            "rate" | "count" => Metric::Requests.with_statistic(word),
            name => match Metric::of_name(name) {
                Some(metric) => metric.alone(word, limit),
                None => Metric::Time(Time::Latency).with_statistic(word),
            },
        }
    }

    /// Reads the limit in this subject's unit.
    fn read_limit(self, limit: Part<'_>) -> Result<f64, InputError> {
        match self.unit() {
            Unit::Us => read_time_us(limit),
            Unit::Fraction => read_fraction(limit),
            Unit::PerSecond => units::parse_rate(&joined(limit.text)).map_err(|e| limit.shift(e)),
            _ => read_count(limit),
        }
    }
}

impl Metric {
    fn read(name: Part<'_>) -> Result<Self, InputError> {
        Self::of_name(name.text).ok_or_else(|| {
            let help = suggestion(name.text, METRICS.iter().map(|(name, _)| *name));
            name.error(format!("unknown metric `{}`", name.text), help)
        })
    }

    fn of_name(name: &str) -> Option<Self> {
        METRICS.iter().find(|(own, _)| *own == name).map(|(_, metric)| *metric)
    }

    /// `metric: statistic`.
    fn with_statistic(self, statistic: Part<'_>) -> Result<Subject, InputError> {
        let subject = match (self, statistic.text) {
            (Self::Time(time), _) => Subject::Time(time, Statistic::read(statistic)?),
            (Self::Errors, "rate") => Subject::ErrorShare,
            (Self::Errors, "count") => Subject::ErrorCount,
            (Self::Requests, "rate") => Subject::RequestRate,
            (Self::Requests, "count") => Subject::RequestCount,
            (Self::Throughput, "rate") => Subject::Throughput,
            (Self::Differing, "rate") => Subject::DifferingShare,
            (Self::Differing, "count") => Subject::DifferingCount,
            _ => {
                let reason = format!("`{}` has no `{}`", self.name(), statistic.text);
                return Err(statistic
                    .error(reason, "write `rate`, or `count` (of `errors`, `requests` and `differing`)"));
            }
        };
        Ok(subject)
    }

    /// A metric without a statistic.
    fn alone(self, name: Part<'_>, limit: &str) -> Result<Subject, InputError> {
        match self {
            Self::Errors if limit.ends_with('%') => Ok(Subject::ErrorShare),
            Self::Errors => Ok(Subject::ErrorCount),
            Self::Requests if limit.contains('/') => Ok(Subject::RequestRate),
            Self::Requests => Ok(Subject::RequestCount),
            Self::Throughput => Ok(Subject::Throughput),
            Self::Differing if limit.ends_with('%') => Ok(Subject::DifferingShare),
            Self::Differing => Ok(Subject::DifferingCount),
            Self::Time(_) => {
                let reason = format!("`{}` has several statistics, and the rule names none", name.text);
                Err(name.error(
                    reason,
                    format!("write `{}: p(95)<200`, or `avg`, `med`, `min`, `max`", name.text),
                ))
            }
        }
    }
}

impl Statistic {
    pub(super) fn read(part: Part<'_>) -> Result<Self, InputError> {
        match part.text {
            "avg" | "mean" => Ok(Self::Mean),
            "med" | "median" => Ok(Self::Quantile(0.5)),
            "min" => Ok(Self::Min),
            "max" => Ok(Self::Max),
            text => match percent_of(text) {
                Some(percent) => read_percentile(part, percent),
                None => Err(unknown_statistic(part)),
            },
        }
    }
}

impl Comparison {
    /// Reads the operator at the front of `right`; what follows it is the limit.
    pub(super) fn read(right: Part<'_>) -> Result<(Self, Part<'_>), InputError> {
        let (operator, comparison) =
            COMPARISONS.into_iter().find(|(operator, _)| right.text.starts_with(operator)).ok_or_else(
                || right.error("unknown comparison", "write one of `<`, `<=`, `>`, `>=`, `==`, `!=`"),
            )?;
        let limit = right.split_at(operator.len()).1.trim();
        if limit.text.is_empty() {
            return Err(limit.error("the limit is missing", RULE_HELP));
        }
        Ok((comparison, limit))
    }
}

/// A piece of the rule that remembers where it stood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    text: &'a str,
    columns_before: usize,
}

impl<'a> Part<'a> {
    /// A whole rule.
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, columns_before: 0 }
    }

    pub(super) fn text(self) -> &'a str {
        self.text
    }

    /// Cuts before byte `at`, which must be a character's first.
    pub(super) fn split_at(self, at: usize) -> (Self, Self) {
        let (front, back) = self.text.split_at(at);
        let columns_before = self.columns_before + front.chars().count();
        (Self { text: front, ..self }, Self { text: back, columns_before })
    }

    pub(super) fn trim(self) -> Self {
        let blank_bytes = self.text.len() - self.text.trim_start().len();
        let (_, Self { text, columns_before }) = self.split_at(blank_bytes);
        Self { text: text.trim_end(), columns_before }
    }

    pub(super) fn error(self, reason: impl Into<String>, help: impl Into<String>) -> InputError {
        InputError { column: self.columns_before + 1, reason: reason.into(), help: help.into() }
    }

    /// An error within this part, seen from the whole rule.
    fn shift(self, error: InputError) -> InputError {
        InputError { column: self.columns_before + error.column, ..error }
    }
}

/// A bare number is in milliseconds, as in k6.
fn read_time_us(limit: Part<'_>) -> Result<f64, InputError> {
    if let Some(millis) = read_number(limit.text) {
        return Ok(millis * 1e3);
    }
    let duration = units::parse_duration(&joined(limit.text)).map_err(|e| limit.shift(e))?;
    Ok(duration.as_nanos() as f64 / 1e3)
}

/// `1%`, or `0.01` as in k6.
fn read_fraction(limit: Part<'_>) -> Result<f64, InputError> {
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

/// What stands in `p(95)` or `p95`.
fn percent_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('p')?.trim_start();
    match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').map(str::trim),
        None => Some(rest).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
    }
}

fn read_count(limit: Part<'_>) -> Result<f64, InputError> {
    match units::parse_count(&joined(limit.text)) {
        Ok(count) => Ok(count as f64),
        Err(error) => Err(InputError { help: COUNT_HELP.to_owned(), ..limit.shift(error) }),
    }
}

fn read_percentile(part: Part<'_>, percent: &str) -> Result<Statistic, InputError> {
    match read_number(percent).filter(|percent| *percent <= 100.0) {
        Some(percent) => Ok(Statistic::Quantile(percent / 100.0)),
        None => Err(part.error("a percentile is a number from 0 to 100", "write for example `p(99.9)`")),
    }
}

/// Digits with at most one point: no sign, no exponent, no `inf`, and not so many that it would become one in another unit.
pub(super) fn read_number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|number| is_plain && *number <= NUMBER_MAX)
}

fn unknown_statistic(part: Part<'_>) -> InputError {
    let names = STATISTIC_NAMES.into_iter().chain(METRICS.iter().map(|(name, _)| *name));
    part.error(format!("unknown statistic `{}`", part.text), suggestion(part.text, names))
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
            ("p(1e1)<200", 1, "a percentile is a number from 0 to 100"),
            ("p(95<200", 1, "unknown statistic `p(95`"),
            ("p()<200", 1, "a percentile is a number from 0 to 100"),
            ("  latncy: avg<200", 3, "unknown metric `latncy`"),
            ("waiting: agv<200", 10, "unknown statistic `agv`"),
            ("waiting:<200", 9, "unknown statistic ``"),
            ("waiting<200", 1, "`waiting` has several statistics, and the rule names none"),
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
            let limit = |rule: &str| rule.parse::<Threshold>().map(|rule| (rule.subject, rule.limit));
            assert_eq!(limit(spaced), limit(close), "{spaced}");
            assert!(limit(spaced).is_ok(), "{spaced}");
        }
    }

    #[test]
    fn a_mistyped_name_is_told_its_neighbour() {
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
