//! The summary: every figure that a face shows, drawn from a run's record and from nothing else.
//!
//! Its serialised form is the JSON contract (`docs/json.md`, `schema/summary.schema.json`). Fields are written in the
//! order in which they stand here. A name, once released, keeps its meaning; new fields may come.

mod alt_svc;
mod build;
mod generator;
mod kinds;
mod parts;
mod quic;
mod replay;
mod script;
mod series;
mod sessions;
mod streams;
mod totals;
mod websockets;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use squall_measure::{
    Cause, Event, PartKind, Phase, Protocol, ReasonKind, Status, StoppedBy, ThresholdResult, ToolRun,
};
use squall_plan::{Load, Plan, When};

pub use alt_svc::AltSvcSummary;
pub(crate) use build::is_shown;
pub use generator::{GeneratorSummary, MachineSummary};
pub(crate) use kinds::parts_of;
pub use kinds::{KindTotals, LoadKind};
pub use parts::{Figures, MonitorSummary, Part, PhaseMeans, ShareSummary};
pub(crate) use parts::{Span, length_s, most_at_once};
pub use quic::QuicSummary;
pub use replay::{ReplayDifference, ReplaySummary};
pub use script::{Check, Metric, Script};
pub use series::Point;
pub use sessions::{HandshakeSummary, IdleConnections, NegotiatedSummary};
pub use streams::StreamSummary;
pub use totals::Totals;
pub use websockets::WebSocketSummary;

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this contract: [`Summary::SCHEMA`].
    pub schema: u32,
    /// Version of squall that made the run.
    pub squall: String,
    /// The plan's name.
    pub name: String,
    /// When the run started, RFC 3339 in UTC.
    pub started_at: String,
    /// Whether the generator was fit to measure this.
    pub verdict: VerdictSummary,
    /// Why the run ended.
    pub stopped_by: StoppedBy,
    /// Length of the measured part, in seconds: from the end of the warm-up to the last figure.
    pub duration_s: f64,
    /// Counts over the measured part.
    pub totals: Totals,
    /// Latencies of successful requests; in an open model from the intended start.
    pub latency_us: Distribution,
    /// Latencies of failed requests, never mixed with those of successes.
    pub failed_latency_us: Distribution,
    /// Open model only: times of successful requests from the moment they were sent.
    pub service_us: Option<Distribution>,
    /// Phases of successful requests.
    pub phases_us: PhaseSummary,
    /// Responses by status code.
    pub status: BTreeMap<String, u64>,
    /// Failures by cause and phase, the most frequent first.
    pub errors: Vec<ErrorGroup>,
    /// Figures by load, protocol, method and URL pattern.
    pub rows: Vec<RowSummary>,
    /// The plan's rules and whether they were met.
    pub thresholds: Vec<ThresholdResult>,
    /// The generator's own state.
    pub generator: GeneratorSummary,
    /// One point per second, warm-up included, or per several in long runs.
    pub series: Vec<Point>,
    /// The machine that made the load, at its worst; `None` when it was not read.
    pub machine: Option<MachineSummary>,
    /// Facts about that machine, by name.
    pub environment: BTreeMap<String, String>,
    /// Steps, loads and machines of a plan, each with its own figures; empty for a run of one load on one machine that had no problem.
    pub parts: Vec<Part>,
    /// What each machine made of each load; empty where the run had one load on one machine.
    pub shares: Vec<ShareSummary>,
    /// What foreign tools did; their figures are in no other.
    pub tools: Vec<ToolRun>,
    /// What was monitored during the load.
    pub monitors: Vec<MonitorSummary>,
    /// Marked moments, in time order.
    pub events: Vec<Event>,
    /// The plan as it was run, secrets masked.
    pub plan: Plan,
}

/// A time in nanoseconds, written as microseconds with up to three decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

/// Whether the generator was fit to measure what it measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictSummary {
    /// How far squall's own figures can be trusted; a foreign tool's are not judged.
    pub status: Status,
    /// Why not further, the gravest first; empty when valid.
    pub reasons: Vec<ReasonSummary>,
    /// What explains the figures without impairing them, such as a backlog that the server caused.
    pub notes: Vec<ReasonSummary>,
}

/// One finding about the generator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReasonSummary {
    /// What it is.
    pub kind: ReasonKind,
    /// What it does to the verdict; `VALID` in a note.
    pub severity: Status,
    /// What happened, with its numbers.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
    /// In how many seconds; `None` when it is about the whole run.
    pub seconds_affected: Option<u32>,
    /// How many seconds the run had.
    pub seconds: u32,
}

/// Percentiles and bounds of a set of times; `null` where the set is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// Smallest value, exact.
    pub min: Option<Micros>,
    /// Mean, exact.
    pub mean: Option<Micros>,
    /// Median.
    pub p50: Option<Micros>,
    /// 90th percentile.
    pub p90: Option<Micros>,
    /// 95th percentile.
    pub p95: Option<Micros>,
    /// 99th percentile.
    pub p99: Option<Micros>,
    /// 99.9th percentile.
    pub p99_9: Option<Micros>,
    /// Largest value, exact.
    pub max: Option<Micros>,
    /// Number of values.
    pub count: u64,
}

/// k6's phases of successful requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseSummary {
    /// From the intended start until a connection was there to use, dialling excluded.
    pub blocked: Distribution,
    /// Name look-ups.
    pub looking_up: Distribution,
    /// TCP connects; requests on a reused connection have none.
    pub connecting: Distribution,
    /// TLS handshakes; requests on a reused connection have none.
    pub tls_handshaking: Distribution,
    /// Writing the request.
    pub sending: Distribution,
    /// From the last byte written to the first byte read.
    pub waiting: Distribution,
    /// From the first byte read to the last.
    pub receiving: Distribution,
    /// Sending + waiting + receiving (k6's `http_req_duration`).
    pub duration: Distribution,
    /// All phases together.
    pub total: Distribution,
}

/// Failures of one cause in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorGroup {
    /// Why.
    pub cause: Cause,
    /// Where in the request's life.
    pub phase: Phase,
    /// How many.
    pub count: u64,
    /// What the system, the TLS library or the codec said the first time.
    pub example: Option<String>,
    /// The row's URL of that first time.
    pub example_url: Option<String>,
    /// When the first one happened, in seconds after the start.
    pub first_at_s: Option<f64>,
}

/// Figures of one load, protocol, method and URL pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowSummary {
    /// The load's name.
    pub load: String,
    /// Protocol spoken.
    pub protocol: Protocol,
    /// Request method.
    pub method: String,
    /// URL pattern.
    pub url: String,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests still open when the run was cut off.
    pub interrupted: u64,
    /// Bytes of responses, above TLS.
    pub bytes_received: u64,
    /// Bytes of requests, above TLS.
    pub bytes_sent: u64,
    /// Latencies of successful requests.
    pub latency_us: Distribution,
    /// Responses by status code.
    pub status: BTreeMap<String, u64>,
}

impl Summary {
    /// Version of the JSON contract. It rises when a field changes its meaning or goes; not when one comes.
    pub const SCHEMA: u32 = 1;

    /// What is counted, in the singular: a request, unless every load counts the same other thing.
    pub(crate) fn noun(&self) -> &'static str {
        noun(&self.plan)
    }

    /// Whether it made different things, such as requests and handshakes, so that no figure of all of them means anything.
    pub(crate) fn is_mixed(&self) -> bool {
        self.totals.kinds.len() > 1
    }

    /// Whether foreign tools made all of it: then every figure of squall's own is empty, and it judges none.
    pub(crate) fn is_by_tools(&self) -> bool {
        self.plan.loads.is_empty() && !self.tools.is_empty()
    }

    /// When a load went on: as a part of a plan, else all the time; nowhere where it did not begin. `count` is for the caller to fill in.
    pub(crate) fn span_of(&self, load: &Load, count: u64) -> Option<Span> {
        let is_load = |part: &&Part| part.kind == PartKind::Load;
        let is_known = |load: &Load| self.parts.iter().filter(is_load).any(|part| part.name == load.name);
        if !self.plan.loads.iter().any(is_known) {
            return Some(Span { from_s: 0.0, until_s: self.duration_s, count });
        }
        let part = self.parts.iter().filter(is_load).find(|part| part.name == load.name)?;
        Some(Span { from_s: part.at_s, until_s: part.at_s + part.duration_s, count })
    }

    /// How long schedules started requests: the time in which the last answers were awaited is no part of it, nor is that of other loads.
    pub(crate) fn schedule_s(&self) -> f64 {
        self.schedule_s_of(|_| true)
    }

    /// The same of some loads.
    pub(crate) fn schedule_s_of(&self, is_counted: impl Fn(&Load) -> bool) -> f64 {
        let is_open = |load: &&Load| matches!(load.when, When::Open { .. }) && is_counted(load);
        let is_only = self.plan.loads.len() == 1 && self.plan.warmup.is_zero();
        // Without a duration the schedule ends with its last request, and the run only with the last response.
        let until_last = |load: &Load| match &load.when {
            When::Open { rate, .. } if is_only => rate.time_of(self.totals.requests_asked? as f64),
            _ => None,
        };
        let planned = |load: &Load| {
            let planned = load.stop.duration.map(|duration| duration.saturating_sub(self.plan.warmup));
            planned.map(|planned| planned.as_secs_f64()).or_else(|| until_last(load)).unwrap_or(f64::INFINITY)
        };
        let span = |load: &Load| {
            let span = self.span_of(load, 0)?;
            Some(Span { until_s: span.until_s.min(span.from_s + planned(load)), ..span })
        };
        let spans: Vec<Span> = self.plan.loads.iter().filter(is_open).filter_map(span).collect();
        if spans.is_empty() { self.duration_s } else { length_s(&spans) }
    }

    /// Whether the plan itself closes connections early, so that many new ones are no surprise.
    pub(crate) fn opens_connections_on_purpose(&self) -> bool {
        let closes =
            |load: &Load| load.connections.request_count_max.is_some() || load.connections.age_max.is_some();
        self.plan.loads.iter().any(closes)
    }
}

/// A rate over a span; zero over none.
pub(crate) fn rate_per_s(count: u64, span_s: f64) -> f64 {
    if span_s > 0.0 { three_decimals(count as f64 / span_s) } else { 0.0 }
}

/// No digits that the measurement does not carry.
fn three_decimals(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

/// What a plan's loads are counted in, in the singular. Those of different kinds together are no requests: they are operations.
pub(crate) fn noun(plan: &Plan) -> &'static str {
    let mut nouns = plan.loads.iter().map(|load| load.what.noun());
    let first = nouns.next().unwrap_or("request");
    if nouns.all(|noun| noun == first) { first } else { "operation" }
}
