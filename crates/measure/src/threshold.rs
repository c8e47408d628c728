//! Rules that a run must meet, in k6's grammar: `p(95)<200`, `latency: avg<=1s`, `errors<0.1%`, `requests: rate>1000/s`.
//!
//! Parsed once, before the run; judged against its figures at the end. `docs/thresholds.md` is the user's page.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use squall_plan::{InputError, units};

use crate::run::per_s;
use crate::{Histogram, Snapshot};

/// A rule, such as `waiting: p(99.9)<=1s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    subject: Subject,
    comparison: Comparison,
    limit: f64,
}

/// The outcome of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// What was judged, by its own name rather than k6's.
    pub metric: String,
    /// The rule as typed.
    pub rule: String,
    /// The unit of `actual`, `limit` and `margin`.
    pub unit: Unit,
    /// The value reached; `None` when there was no sample, and then the rule is not met.
    pub actual: Option<f64>,
    /// The value that the rule names.
    pub limit: f64,
    /// How far `actual` is on the good side of the limit; negative when it is on the bad side.
    pub margin: Option<f64>,
    /// Whether the rule is met.
    pub ok: bool,
}

/// What a value is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Microseconds.
    Us,
    /// A share of the requests that ended: 0 to 1.
    Fraction,
    /// A number of requests.
    Count,
    /// Requests per second.
    PerSecond,
}

impl Threshold {
    /// The rule as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Judges a run by its figures and its measured time.
    pub fn evaluate(&self, total: &Snapshot, duration: Duration) -> ThresholdResult {
        let actual = self.subject.actual(total, duration);
        ThresholdResult {
            metric: self.subject.metric().to_owned(),
            rule: self.text.clone(),
            unit: self.subject.unit(),
            actual,
            limit: self.limit,
            margin: actual.map(|actual| self.comparison.margin(actual, self.limit)),
            ok: actual.is_some_and(|actual| self.comparison.holds(actual, self.limit)),
        }
    }
}

impl FromStr for Threshold {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let whole = Part { text, columns_before: 0 };
        if let Some(brace) = text.find('{') {
            return Err(whole.split_at(brace).1.error("filters by tag are not supported", RULE_HELP));
        }
        let operator_at = text.find(['<', '>', '=', '!']);
        let operator_at = operator_at.ok_or_else(|| whole.error("the rule compares nothing", RULE_HELP))?;
        let (left, right) = whole.split_at(operator_at);
        let (comparison, limit) = Comparison::read(right)?;
        let subject = Subject::read(left, limit.text)?;
        let limit = subject.read_limit(limit)?;
        Ok(Self { text: text.trim().to_owned(), subject, comparison, limit })
    }
}

/// What a rule judges.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Time(Time, Statistic),
    ErrorShare,
    ErrorCount,
    RequestCount,
    RequestRate,
    Throughput,
}

/// What may stand before the colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Time(Time),
    Errors,
    Requests,
    Throughput,
}

/// A time of successful requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    Latency,
    Service,
    LookingUp,
    Blocked,
    Connecting,
    TlsHandshaking,
    Sending,
    Waiting,
    Receiving,
    Duration,
    Total,
}

/// Which value of a histogram is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Quantile(f64),
    Mean,
    Min,
    Max,
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
            "" => Err(word.error("nothing stands before the comparison", RULE_HELP)),
            "rate" | "count" => Metric::Requests.with_statistic(word),
            name => match Metric::of_name(name) {
                Some(metric) => metric.alone(word, limit),
                None => Metric::Time(Time::Latency).with_statistic(word),
            },
        }
    }

    /// The metric's own name.
    fn metric(self) -> &'static str {
        let metric = match self {
            Self::Time(time, _) => Metric::Time(time),
            Self::ErrorShare | Self::ErrorCount => Metric::Errors,
            Self::RequestCount | Self::RequestRate => Metric::Requests,
            Self::Throughput => Metric::Throughput,
        };
        metric.name()
    }

    fn unit(self) -> Unit {
        match self {
            Self::Time(..) => Unit::Us,
            Self::ErrorShare => Unit::Fraction,
            Self::ErrorCount | Self::RequestCount => Unit::Count,
            Self::RequestRate | Self::Throughput => Unit::PerSecond,
        }
    }

    /// Reads the limit in this subject's unit.
    fn read_limit(self, limit: Part<'_>) -> Result<f64, InputError> {
        match self.unit() {
            Unit::Us => read_time_us(limit),
            Unit::Fraction => read_fraction(limit),
            Unit::Count => read_count(limit),
            Unit::PerSecond => units::parse_rate(limit.text).map_err(|e| limit.shift(e)),
        }
    }

    fn actual(self, total: &Snapshot, duration: Duration) -> Option<f64> {
        let answered = total.ok() + total.failed();
        match self {
            Self::Time(time, statistic) => statistic.of(&time.histogram(total)).map(|ns| ns / 1e3),
            Self::ErrorShare => (answered > 0).then(|| total.failed() as f64 / answered as f64),
            Self::ErrorCount => Some(total.failed() as f64),
            Self::RequestCount => Some(total.settled() as f64),
            Self::RequestRate => Some(per_s(answered, duration)),
            Self::Throughput => Some(per_s(total.ok(), duration)),
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

    fn name(self) -> &'static str {
        METRICS.iter().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name)
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
            _ => {
                let reason = format!("`{}` has no `{}`", self.name(), statistic.text);
                return Err(statistic.error(reason, "write `rate`, or `count` (of `errors` and `requests`)"));
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
            Self::Time(_) => {
                let reason = format!("`{}` is many values: which one?", name.text);
                Err(name.error(
                    reason,
                    format!("write `{}: p(95)<200`, or `avg`, `med`, `min`, `max`", name.text),
                ))
            }
        }
    }
}

impl Time {
    fn histogram(self, total: &Snapshot) -> Cow<'_, Histogram> {
        let phases = &total.phases;
        match self {
            Self::Latency => total.latency(),
            Self::LookingUp => Cow::Borrowed(&total.looking_up),
            Self::Blocked => Cow::Borrowed(&phases.blocked),
            Self::Connecting => Cow::Borrowed(&phases.connecting),
            Self::TlsHandshaking => Cow::Borrowed(&phases.tls_handshaking),
            Self::Sending => Cow::Borrowed(&phases.sending),
            Self::Waiting => Cow::Borrowed(&phases.waiting),
            Self::Receiving => Cow::Borrowed(&phases.receiving),
            Self::Duration | Self::Service => Cow::Borrowed(&phases.duration),
            Self::Total => Cow::Borrowed(&phases.total),
        }
    }
}

impl Statistic {
    fn read(part: Part<'_>) -> Result<Self, InputError> {
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

    /// In nanoseconds.
    fn of(self, histogram: &Histogram) -> Option<f64> {
        match self {
            Self::Quantile(q) => histogram.quantile(q).map(|ns| ns as f64),
            Self::Mean => histogram.mean(),
            Self::Min => histogram.min().map(|ns| ns as f64),
            Self::Max => histogram.max().map(|ns| ns as f64),
        }
    }
}

/// How the value must stand to the limit. k6's `===` is `==`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Comparison {
    /// Reads the operator at the front of `right`; what follows it is the limit.
    fn read(right: Part<'_>) -> Result<(Self, Part<'_>), InputError> {
        let (operator, comparison) =
            OPERATORS.into_iter().find(|(operator, _)| right.text.starts_with(operator)).ok_or_else(
                || right.error("unknown comparison", "write one of `<`, `<=`, `>`, `>=`, `==`, `!=`"),
            )?;
        let limit = right.split_at(operator.len()).1.trim();
        if limit.text.is_empty() {
            return Err(limit.error("the limit is missing", RULE_HELP));
        }
        Ok((comparison, limit))
    }

    fn holds(self, actual: f64, limit: f64) -> bool {
        match self {
            Self::Less => actual < limit,
            Self::LessOrEqual => actual <= limit,
            Self::Greater => actual > limit,
            Self::GreaterOrEqual => actual >= limit,
            Self::Equal => actual == limit,
            Self::NotEqual => actual != limit,
        }
    }

    fn margin(self, actual: f64, limit: f64) -> f64 {
        match self {
            Self::Less | Self::LessOrEqual => limit - actual,
            Self::Greater | Self::GreaterOrEqual => actual - limit,
            Self::Equal => -(actual - limit).abs(),
            Self::NotEqual => (actual - limit).abs(),
        }
    }
}

/// A piece of the rule that remembers where it stood.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    columns_before: usize,
}

impl<'a> Part<'a> {
    /// Cuts before byte `at`, which must be a character's first.
    fn split_at(self, at: usize) -> (Self, Self) {
        let (front, back) = self.text.split_at(at);
        let columns_before = self.columns_before + front.chars().count();
        (Self { text: front, ..self }, Self { text: back, columns_before })
    }

    fn trim(self) -> Self {
        let blank_bytes = self.text.len() - self.text.trim_start().len();
        let (_, Self { text, columns_before }) = self.split_at(blank_bytes);
        Self { text: text.trim_end(), columns_before }
    }

    fn error(self, reason: impl Into<String>, help: impl Into<String>) -> InputError {
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
    let duration = units::parse_duration(limit.text).map_err(|e| limit.shift(e))?;
    Ok(duration.as_nanos() as f64 / 1e3)
}

/// `1%`, or `0.01` as in k6.
fn read_fraction(limit: Part<'_>) -> Result<f64, InputError> {
    let fraction = match limit.text.strip_suffix('%') {
        Some(percent) => read_number(percent.trim_end()).map(|percent| percent / 100.0),
        None => read_number(limit.text),
    };
    let fraction = fraction.ok_or_else(|| limit.error("not a share", FRACTION_HELP))?;
    if fraction > 1.0 {
        return Err(limit.error("a share above 100 %", FRACTION_HELP));
    }
    Ok(fraction)
}

/// What stands in `p(95)` or `p95`.
fn percent_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('p')?;
    match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').map(str::trim),
        None => Some(rest).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
    }
}

fn read_count(limit: Part<'_>) -> Result<f64, InputError> {
    match units::parse_count(limit.text) {
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

/// Digits with at most one point: no sign, no exponent, no `inf`.
fn read_number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| is_plain)
}

fn unknown_statistic(part: Part<'_>) -> InputError {
    let names = STATISTIC_NAMES.into_iter().chain(METRICS.iter().map(|(name, _)| *name));
    part.error(format!("unknown statistic `{}`", part.text), suggestion(part.text, names))
}

/// Names the nearest of the known names, or says how a rule looks.
fn suggestion(typed: &str, known: impl Iterator<Item = &'static str>) -> String {
    let distance = |name: &&str| strsim::damerau_levenshtein(typed, name);
    let nearest = known.min_by_key(distance).filter(|name| distance(name) <= name.len().div_ceil(3));
    nearest.map_or_else(|| RULE_HELP.to_owned(), |name| format!("a similar name exists: `{name}`"))
}

/// Own names first, then k6's.
const METRICS: &[(&str, Metric)] = &[
    ("latency", Metric::Time(Time::Latency)),
    ("service", Metric::Time(Time::Service)),
    ("looking_up", Metric::Time(Time::LookingUp)),
    ("blocked", Metric::Time(Time::Blocked)),
    ("connecting", Metric::Time(Time::Connecting)),
    ("tls_handshaking", Metric::Time(Time::TlsHandshaking)),
    ("sending", Metric::Time(Time::Sending)),
    ("waiting", Metric::Time(Time::Waiting)),
    ("receiving", Metric::Time(Time::Receiving)),
    ("duration", Metric::Time(Time::Duration)),
    ("total", Metric::Time(Time::Total)),
    ("errors", Metric::Errors),
    ("requests", Metric::Requests),
    ("throughput", Metric::Throughput),
    ("http_req_blocked", Metric::Time(Time::Blocked)),
    ("http_req_connecting", Metric::Time(Time::Connecting)),
    ("http_req_tls_handshaking", Metric::Time(Time::TlsHandshaking)),
    ("http_req_sending", Metric::Time(Time::Sending)),
    ("http_req_waiting", Metric::Time(Time::Waiting)),
    ("http_req_receiving", Metric::Time(Time::Receiving)),
    ("http_req_duration", Metric::Time(Time::Duration)),
    ("http_req_failed", Metric::Errors),
    ("http_reqs", Metric::Requests),
];

const STATISTIC_NAMES: [&str; 8] = ["avg", "mean", "med", "median", "min", "max", "rate", "count"];

/// Longer operators first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Comparison); 7] = [
    ("===", Comparison::Equal),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

const RULE_HELP: &str =
    "write a rule such as `p(95)<200`, `waiting: p(99.9)<=1s`, `errors<0.1%` or `requests: rate>1000/s`";

const COUNT_HELP: &str = "write a count such as `10` or `10k`, or of errors a share such as `errors<1%`";

const FRACTION_HELP: &str = "write a share such as `1%` or `0.01`";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Outcome, Phase, Phases, Sample};

    /// 100 successes of 1 ms to 100 ms, most of it waiting, and 25 failures, in 10 s.
    fn total() -> Snapshot {
        let mut total = Snapshot::new(1, true);
        for millis in 1..=125 {
            let latency_ns = millis * 1_000_000;
            let outcome = match millis {
                ..=100 => Outcome::Ok,
                _ => Outcome::Failed(Cause::Timeout, Phase::Waiting),
            };
            let phases = Phases { waiting_ns: latency_ns / 2, ..Phases::default() };
            let status = 200;
            total.record(&Sample {
                row_idx: 0,
                status,
                outcome,
                latency_ns,
                phases,
                bytes_sent: 0,
                bytes_received: 0,
            });
        }
        total
    }

    fn judge(rule: &str) -> ThresholdResult {
        rule.parse::<Threshold>().unwrap().evaluate(&total(), Duration::from_secs(10))
    }

    #[test]
    fn rules_are_judged_in_their_unit() {
        for (rule, metric, actual, ok) in [
            ("p(95)<200", "latency", 95_000.0, true),
            ("p95 < 90ms", "latency", 95_000.0, false),
            ("p(100)<=0.1s", "latency", 100_000.0, true),
            ("latency:avg<=50.5", "latency", 50_500.0, true),
            ("med>=49900us", "latency", 50_000.0, true),
            ("min==1", "latency", 1_000.0, true),
            ("max!=1", "latency", 100_000.0, true),
            ("service: max<50.1ms", "service", 50_000.0, true),
            ("http_req_waiting: p(99.9)<1s", "waiting", 50_000.0, true),
            ("errors<10%", "errors", 0.2, false),
            ("errors: rate<=0.2", "errors", 0.2, true),
            ("http_req_failed: rate<0.01", "errors", 0.2, false),
            ("errors<26", "errors", 25.0, true),
            ("errors: count===25", "errors", 25.0, true),
            ("requests>100", "requests", 125.0, true),
            ("count>1k", "requests", 125.0, false),
            ("rate>12/s", "requests", 12.5, true),
            ("http_reqs: rate>=750/m", "requests", 12.5, true),
            ("throughput>10/s", "throughput", 10.0, false),
        ] {
            let result = judge(rule);
            let value = result.actual.unwrap();
            assert!((value - actual).abs() <= actual / 1000.0, "{rule}: {value}");
            assert_eq!(
                (result.metric.as_str(), result.rule.as_str(), result.ok),
                (metric, rule, ok),
                "{rule}"
            );
        }
    }

    #[test]
    fn margin_is_positive_on_the_good_side() {
        for (rule, margin) in
            [("errors<30", 5.0), ("errors>30", -5.0), ("errors==30", -5.0), ("errors!=30", 5.0)]
        {
            assert_eq!(judge(rule).margin, Some(margin), "{rule}");
        }
    }

    #[test]
    fn a_metric_without_a_sample_is_not_met() {
        for rule in ["tls_handshaking: p(95)<1s", "looking_up: max>=0"] {
            let result = judge(rule);
            assert_eq!((result.actual, result.margin, result.ok), (None, None, false), "{rule}");
        }
        let nothing =
            "errors<1%".parse::<Threshold>().unwrap().evaluate(&Snapshot::new(1, false), Duration::ZERO);
        assert_eq!((nothing.actual, nothing.ok), (None, false));
    }

    #[test]
    fn bad_rules_say_where_and_why() {
        for (rule, column, reason) in [
            ("", 1, "the rule compares nothing"),
            ("p(95)", 1, "the rule compares nothing"),
            ("<200", 1, "nothing stands before the comparison"),
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
            ("waiting<200", 1, "`waiting` is many values: which one?"),
            ("errors: avg<200", 9, "`errors` has no `avg`"),
            ("throughput: count>1", 13, "`throughput` has no `count`"),
            ("errors<200%", 8, "a share above 100 %"),
            ("errors: rate<5", 14, "a share above 100 %"),
            ("errors<0.5", 8, "not a whole number"),
            ("µ: avg<2", 1, "unknown metric `µ`"),
            ("waiting: avg < 2 parsecs", 17, "unknown unit ` parsecs`"),
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
