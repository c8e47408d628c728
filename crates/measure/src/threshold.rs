//! Rules that a run must meet, in k6's grammar: `p(95)<200`, `latency: avg<=1s`, `errors<0.1%`, `requests: rate>1000/s`.
//!
//! Parsed once (in [`parse`]), before the run; judged against its figures at the end. `docs/thresholds.md` is the user's page.

mod parse;
mod watched;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::criterion::{Criterion, Relation, Statistic};
use crate::run::per_s;
use crate::script::Judged;
use crate::{Histogram, Snapshot};

pub(crate) use parse::read_limit;
pub use watched::WatchedThreshold;

/// A rule, such as `waiting: p(99.9)<=1s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    metric: Metric,
    criterion: Criterion,
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

impl ThresholdResult {
    /// The outcome of a criterion, which is not met where there is no value.
    fn new(metric: &str, rule: &str, unit: Unit, criterion: &Criterion, actual: Option<f64>) -> Self {
        Self {
            metric: metric.to_owned(),
            rule: rule.to_owned(),
            unit,
            actual,
            limit: criterion.limit,
            margin: actual.map(|actual| criterion.margin(actual)),
            ok: actual.is_some_and(|actual| criterion.holds(actual)),
        }
    }
}

/// A script's: its times are in milliseconds, as k6 has them, and in microseconds here, as all others are.
impl From<Judged<'_>> for ThresholdResult {
    fn from(judged: Judged<'_>) -> Self {
        let scale = if judged.unit == Unit::Us { US_PER_MS } else { 1.0 };
        Self {
            metric: judged.name.to_owned(),
            rule: judged.rule.text.clone(),
            unit: judged.unit,
            actual: Some(judged.outcome.actual * scale),
            limit: judged.rule.limit() * scale,
            margin: Some(judged.outcome.margin * scale),
            ok: judged.outcome.is_ok,
        }
    }
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
    /// Requests, or of a watched figure anything, per second.
    PerSecond,
    /// A watched figure: percent.
    Percent,
    /// A watched figure: bytes.
    Bytes,
    /// A watched figure: seconds.
    Seconds,
    /// A watched figure: a number of things.
    Number,
}

impl Threshold {
    /// The rule as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it judges, by its own name rather than k6's.
    pub fn metric(&self) -> &'static str {
        self.metric.name()
    }

    /// The percentile that it judges, 0 to 1.
    pub fn quantile(&self) -> Option<f64> {
        match self.criterion.statistic {
            Statistic::Quantile(q) => Some(q),
            _ => None,
        }
    }

    /// Whether it asks for an amount of load: little load does not meet it, however good the target is.
    pub fn wants_load(&self) -> bool {
        matches!(self.metric, Metric::Requests | Metric::Throughput)
            && matches!(self.criterion.comparison, Relation::Greater | Relation::GreaterOrEqual)
    }

    /// Judges a run by its figures and its measured time.
    pub fn evaluate(&self, total: &Snapshot, duration: Duration) -> ThresholdResult {
        let statistic = self.criterion.statistic;
        let actual = self.metric.actual(statistic, total, duration);
        ThresholdResult::new(self.metric(), &self.text, self.metric.unit(statistic), &self.criterion, actual)
    }
}

/// What a rule judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Time(Time),
    Errors,
    Requests,
    Throughput,
    Differing,
    Events,
    Goodput,
    Messages,
    Unanswered,
    Disconnects,
    Reconnects,
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
    FirstEvent,
    EventGap,
    MessageLatency,
    Ping,
}

impl Metric {
    fn name(self) -> &'static str {
        METRICS.iter().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name)
    }

    fn has(self, statistic: Statistic) -> bool {
        match self {
            Self::Time(_) => statistic.is_of_distribution(),
            Self::Throughput => statistic == Statistic::Rate,
            Self::Errors
            | Self::Requests
            | Self::Differing
            | Self::Events
            | Self::Goodput
            | Self::Messages
            | Self::Unanswered
            | Self::Disconnects
            | Self::Reconnects => {
                matches!(statistic, Statistic::Rate | Statistic::Count)
            }
        }
    }

    fn unit(self, statistic: Statistic) -> Unit {
        match (self, statistic) {
            (Self::Time(_), _) => Unit::Us,
            (
                Self::Errors | Self::Differing | Self::Goodput | Self::Unanswered | Self::Disconnects,
                Statistic::Rate,
            ) => Unit::Fraction,
            (_, Statistic::Rate) => Unit::PerSecond,
            _ => Unit::Count,
        }
    }

    /// The value of a statistic that the metric has; `None` where there was no sample.
    fn actual(self, statistic: Statistic, total: &Snapshot, duration: Duration) -> Option<f64> {
        let ended = total.ok() + total.failed();
        let differing =
            || total.replay.as_ref().map(|replay| (replay.compared - replay.same, replay.compared));
        let share = |(part, whole): (u64, u64)| (whole > 0).then(|| part as f64 / whole as f64);
        let (streams, messages) = (total.streams.as_deref(), total.websockets.as_deref());
        match (self, statistic) {
            (Self::Time(time), _) => statistic.of(&time.histogram(total)).map(|ns| ns / 1e3),
            (Self::Errors, Statistic::Rate) => share((total.failed(), ended)),
            (Self::Errors, _) => Some(total.failed() as f64),
            (Self::Requests, Statistic::Rate) => Some(per_s(ended, duration)),
            (Self::Requests, _) => Some(total.settled() as f64),
            (Self::Throughput, _) => Some(per_s(total.ok(), duration)),
            (Self::Messages, Statistic::Rate) => messages.map(|made| per_s(made.messages_received, duration)),
            (Self::Messages, _) => messages.map(|made| made.messages_received as f64),
            (Self::Unanswered, Statistic::Rate) => {
                messages.and_then(|made| share((made.unanswered, made.unanswered + made.answered)))
            }
            (Self::Unanswered, _) => messages.map(|made| made.unanswered as f64),
            (Self::Disconnects, Statistic::Rate) => disconnects(total).and_then(share),
            (Self::Disconnects, _) => disconnects(total).map(|(count, _)| count as f64),
            (Self::Reconnects, Statistic::Rate) => reconnects(total).map(|count| per_s(count, duration)),
            (Self::Reconnects, _) => reconnects(total).map(|count| count as f64),
            (Self::Events, Statistic::Rate) => streams.map(|streams| per_s(streams.events, duration)),
            (Self::Events, _) => streams.map(|streams| streams.events as f64),
            (Self::Goodput, Statistic::Rate) => {
                streams.and_then(|streams| share((streams.good, streams.judged)))
            }
            (Self::Goodput, _) => streams.map(|streams| streams.good as f64),
            (Self::Differing, Statistic::Rate) => differing().and_then(share),
            (Self::Differing, _) => differing().map(|(count, _)| count as f64),
        }
    }
}

/// Kept connections and streams that ended too early, and all that were opened; `None` where there were none.
fn disconnects(total: &Snapshot) -> Option<(u64, u64)> {
    let kept = total.sessions.as_deref().map(|made| (made.kept.lost(), made.kept.opened));
    let streams = total.streams.as_deref().map(|made| (made.ended_early, made.opened));
    let known = [kept.filter(|(_, opened)| *opened > 0), streams];
    known.into_iter().flatten().reduce(|left, right| (left.0 + right.0, left.1 + right.1))
}

/// Kept connections and streams that were opened again; `None` where there were none.
fn reconnects(total: &Snapshot) -> Option<u64> {
    let kept = total.sessions.as_deref().map(|made| &made.kept).filter(|kept| kept.opened > 0);
    let streams = total.streams.as_deref().map(|made| made.reconnects);
    kept.map(|kept| kept.reopened).into_iter().chain(streams).reduce(|left, right| left + right)
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
            Self::FirstEvent => or_empty(total.streams.as_deref().map(|streams| &streams.first_event)),
            Self::EventGap => or_empty(total.streams.as_deref().map(|streams| &streams.event_gap)),
            Self::MessageLatency => or_empty(total.websockets.as_deref().map(|made| &made.latency)),
            Self::Ping => or_empty(total.sessions.as_deref().map(|made| &made.kept.ping_time)),
        }
    }
}

/// A time that only some kinds of run have.
fn or_empty(histogram: Option<&Histogram>) -> Cow<'_, Histogram> {
    histogram.map_or_else(|| Cow::Owned(Histogram::new()), Cow::Borrowed)
}

impl Statistic {
    /// In nanoseconds.
    fn of(self, histogram: &Histogram) -> Option<f64> {
        match self {
            Self::Quantile(q) => histogram.quantile(q).map(|ns| ns as f64),
            Self::Mean => histogram.mean(),
            Self::Min => histogram.min().map(|ns| ns as f64),
            Self::Max => histogram.max().map(|ns| ns as f64),
            Self::Count | Self::Rate | Self::Value => None,
        }
    }
}

/// Microseconds in k6's unit of time.
const US_PER_MS: f64 = 1e3;

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
    ("differing", Metric::Differing),
    ("first_event", Metric::Time(Time::FirstEvent)),
    ("event_gap", Metric::Time(Time::EventGap)),
    ("events", Metric::Events),
    ("goodput", Metric::Goodput),
    ("msg_latency", Metric::Time(Time::MessageLatency)),
    ("ping", Metric::Time(Time::Ping)),
    ("messages", Metric::Messages),
    ("unanswered", Metric::Unanswered),
    ("disconnects", Metric::Disconnects),
    ("reconnects", Metric::Reconnects),
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
            total.record(&Sample { outcome, phases, ..Sample::ok(latency_ns) });
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
    fn differing_responses_of_a_replay_are_judged() {
        let mut total = total();
        assert_eq!(
            "differing<5%".parse::<Threshold>().unwrap().evaluate(&total, Duration::ZERO).actual,
            None
        );
        let replay = total.replay.get_or_insert_default();
        (0..40_u16).for_each(|nth| replay.note_compared(0, 200, 200 + nth / 37, nth < 37));
        for (rule, actual, ok) in [
            ("differing<5%", 0.075, false),
            ("differing: rate<0.1", 0.075, true),
            ("differing<=3", 3.0, true),
        ] {
            let result = rule.parse::<Threshold>().unwrap().evaluate(&total, Duration::ZERO);
            assert_eq!(
                (result.metric.as_str(), result.actual, result.ok),
                ("differing", Some(actual), ok),
                "{rule}"
            );
        }
    }

    #[test]
    fn disconnects_and_reconnects_are_judged() {
        let mut total = total();
        let judge = |total: &Snapshot, rule: &str| {
            rule.parse::<Threshold>().unwrap().evaluate(total, Duration::from_secs(10))
        };
        for rule in ["disconnects<1", "disconnects<1%", "reconnects<1", "reconnects: rate<1"] {
            assert_eq!(judge(&total, rule).actual, None, "{rule}: nothing was to stay open");
        }
        let kept = &mut total.sessions.get_or_insert_default().kept;
        (kept.opened, kept.reopened, kept.closed_by_us) = (40, 3, 36);
        (kept.closed_by_server, kept.reset, kept.broken) = (2, 1, 1);
        for (rule, unit, actual, ok) in [
            ("disconnects<4", Unit::Count, 4.0, false),
            ("disconnects: count<5", Unit::Count, 4.0, true),
            ("disconnects<=10%", Unit::Fraction, 0.1, true),
            ("disconnects: rate<0.05", Unit::Fraction, 0.1, false),
            ("reconnects<=3", Unit::Count, 3.0, true),
            ("reconnects<1/s", Unit::PerSecond, 0.3, true),
        ] {
            let result = judge(&total, rule);
            assert_eq!((result.unit, result.actual, result.ok), (unit, Some(actual), ok), "{rule}");
        }
        let streams = total.streams.get_or_insert_default();
        (streams.opened, streams.ended_early, streams.reconnects) = (60, 6, 5);
        assert_eq!(judge(&total, "disconnects<5%").actual, Some(0.1));
        assert_eq!(judge(&total, "reconnects<9").actual, Some(8.0));
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
}
