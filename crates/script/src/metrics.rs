//! The metrics of k6 by name and kind, and the border over which their values leave the script.
//!
//! Owns: which metrics there are. Never: sums, histograms, thresholds' outcomes (those are `measure`'s).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::step::Timing;

/// What a metric adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// A sum.
    Counter,
    /// The last value, the least and the most.
    Gauge,
    /// The share of values that are not zero.
    Rate,
    /// A distribution.
    Trend,
}

/// What a metric's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contains {
    /// Plain numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricDef {
    /// Name.
    pub name: Cow<'static, str>,
    /// Kind.
    pub kind: MetricKind,
    /// What its values are.
    pub contains: Contains,
}

/// A metric's index: built-in ones first, then the script's own in the order of their making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MetricId(pub u32);

macro_rules! builtins {
    ($($id:ident $name:literal $kind:ident $contains:ident;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "names of the table below")]
        #[repr(u32)]
        enum Order { $($id),* }
        impl MetricId {
            $(#[doc = concat!("`", $name, "`.")] pub const $id: Self = Self(Order::$id as u32);)*
        }
        /// k6's own metrics, in the order of their ids.
        pub const BUILTINS: &[MetricDef] = &[$(MetricDef {
            name: Cow::Borrowed($name), kind: MetricKind::$kind, contains: Contains::$contains,
        }),*];
    };
}

builtins! {
    VUS "vus" Gauge Default;
    VUS_MAX "vus_max" Gauge Default;
    ITERATIONS "iterations" Counter Default;
    ITERATION_DURATION "iteration_duration" Trend Time;
    DROPPED_ITERATIONS "dropped_iterations" Counter Default;
    CHECKS "checks" Rate Default;
    GROUP_DURATION "group_duration" Trend Time;
    HTTP_REQS "http_reqs" Counter Default;
    HTTP_REQ_FAILED "http_req_failed" Rate Default;
    HTTP_REQ_DURATION "http_req_duration" Trend Time;
    HTTP_REQ_BLOCKED "http_req_blocked" Trend Time;
    HTTP_REQ_CONNECTING "http_req_connecting" Trend Time;
    HTTP_REQ_TLS_HANDSHAKING "http_req_tls_handshaking" Trend Time;
    HTTP_REQ_SENDING "http_req_sending" Trend Time;
    HTTP_REQ_WAITING "http_req_waiting" Trend Time;
    HTTP_REQ_RECEIVING "http_req_receiving" Trend Time;
    WS_SESSIONS "ws_sessions" Counter Default;
    WS_MSGS_SENT "ws_msgs_sent" Counter Default;
    WS_MSGS_RECEIVED "ws_msgs_received" Counter Default;
    WS_PING "ws_ping" Trend Time;
    WS_SESSION_DURATION "ws_session_duration" Trend Time;
    WS_CONNECTING "ws_connecting" Trend Time;
    DATA_SENT "data_sent" Counter Data;
    DATA_RECEIVED "data_received" Counter Data;
}

/// Tags of a sample, looked up by name only where someone asks.
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a> {
    /// Scenario; empty outside of one.
    pub scenario: &'a str,
    /// Group path, such as `::login`; empty at the root.
    pub group: &'a str,
    /// Of a check: its name.
    pub check: Option<&'a str>,
    /// Of a request.
    pub http: Option<&'a HttpTags<'a>>,
    /// Run-wide, scenario's and user's own tags, then those of the call; a later one overrides.
    pub custom: [&'a [(String, String)]; 2],
    /// Which system tags are wanted.
    pub system: SystemTags,
    /// Number of the virtual user and of its iteration, which are metadata and no tags.
    pub vu: (u64, u64),
    /// The user's own metadata.
    pub metadata: &'a [(String, String)],
}

/// Tags of a request.
#[derive(Debug, Clone, Copy)]
pub struct HttpTags<'a> {
    /// Method.
    pub method: &'a str,
    /// URL, or the name that stands for it.
    pub url: &'a str,
    /// `name`.
    pub name: &'a str,
    /// Status; 0 on failure; `None`: a stream that got no response.
    pub status: Option<u16>,
    /// Of a WebSocket: the subprotocol, which may be empty.
    pub subproto: Option<&'a str>,
    /// `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`; empty on failure.
    pub proto: &'a str,
    /// `tls1.3`; empty without TLS.
    pub tls_version: &'a str,
    /// `error_code`; 0: none.
    pub error_code: u16,
    /// `error`; empty: none.
    pub error: &'a str,
    /// `expected_response`; `None` when nothing is expected.
    pub expected: Option<bool>,
    /// Remote address; empty when unknown.
    pub ip: &'a str,
}

/// One request's figures.
#[derive(Debug, Clone, Copy)]
pub struct HttpSample<'a> {
    /// Its phases.
    pub timing: &'a Timing,
    /// Whether it counts as failed; `None`: not determined.
    pub is_failed: Option<bool>,
    /// Its tags.
    pub tags: &'a Tags<'a>,
}

impl HttpSample<'_> {
    /// The values of each metric, in k6's order.
    pub fn values(&self) -> Vec<(MetricId, f64)> {
        let millis = |ns: u64| ns as f64 / 1e6;
        let timing = self.timing;
        let failed = self.is_failed.map(|is| (MetricId::HTTP_REQ_FAILED, f64::from(u8::from(is))));
        let phases = [
            (MetricId::HTTP_REQS, 1.0),
            (MetricId::HTTP_REQ_DURATION, millis(timing.duration_ns())),
            (MetricId::HTTP_REQ_BLOCKED, millis(timing.blocked_ns)),
            (MetricId::HTTP_REQ_CONNECTING, millis(timing.connecting_ns)),
            (MetricId::HTTP_REQ_TLS_HANDSHAKING, millis(timing.tls_handshaking_ns)),
            (MetricId::HTTP_REQ_SENDING, millis(timing.sending_ns)),
            (MetricId::HTTP_REQ_WAITING, millis(timing.waiting_ns)),
            (MetricId::HTTP_REQ_RECEIVING, millis(timing.receiving_ns)),
        ];
        phases.into_iter().chain(failed).collect()
    }
}

/// Takes what a script measures.
pub trait Recorder: std::fmt::Debug {
    /// A value of a metric.
    fn add(&self, metric: MetricId, value: f64, tags: &Tags<'_>);
    /// A request's metrics, together.
    fn http(&self, sample: &HttpSample<'_>);
    /// The outcome of a check in its group.
    fn check(&self, group: &str, name: &str, is_ok: bool, tags: &Tags<'_>);
    /// A group was entered: it is shown even where nothing is checked in it.
    fn group(&self, path: &str);
}

/// A set of system tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemTags(pub u32);

/// System tags by name; the first 14 are on by default.
pub const SYSTEM_TAGS: &[&str] = &[
    "proto",
    "subproto",
    "status",
    "method",
    "url",
    "name",
    "group",
    "check",
    "error",
    "error_code",
    "tls_version",
    "scenario",
    "service",
    "expected_response",
    "iter",
    "vu",
    "ip",
    "ocsp_status",
];

/// How many of [`SYSTEM_TAGS`] are on by default.
const DEFAULT_SYSTEM_TAG_COUNT: usize = 14;

impl Default for SystemTags {
    fn default() -> Self {
        Self((1 << DEFAULT_SYSTEM_TAG_COUNT) - 1)
    }
}

impl SystemTags {
    /// Whether a tag is in the set.
    pub fn has(self, name: &str) -> bool {
        SYSTEM_TAGS.iter().position(|tag| *tag == name).is_some_and(|idx| self.0 & (1 << idx) != 0)
    }

    /// The set of these names, and those of them that are no system tags.
    pub fn of(names: Vec<String>) -> (Self, Vec<String>) {
        let idx_of = |name: &String| SYSTEM_TAGS.iter().position(|tag| tag == name);
        let (known, unknown): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| idx_of(name).is_some());
        (Self(known.iter().filter_map(idx_of).fold(0, |set, idx| set | 1 << idx)), unknown)
    }

    /// Names in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        SYSTEM_TAGS.iter().enumerate().filter(move |(idx, _)| self.0 & (1 << idx) != 0).map(|(_, name)| *name)
    }
}

impl<'a> Tags<'a> {
    /// A tag's value, own tags first.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let own = self.custom.iter().rev().flat_map(|tags| tags.iter().rev()).find(|(key, _)| key == name);
        if let Some((_, value)) = own {
            return Some(Cow::Borrowed(value));
        }
        if !self.system.has(name) {
            return None;
        }
        match name {
            "scenario" => (!self.scenario.is_empty()).then_some(Cow::Borrowed(self.scenario)),
            "group" => Some(Cow::Borrowed(self.group)),
            "check" => self.check.map(Cow::Borrowed),
            _ => self.http.and_then(|http| http.get(name)),
        }
    }

    /// All tags, in no particular order; own ones override system ones.
    pub fn all(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let mut all: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for name in self.system.names() {
            all.extend(self.get(name).map(|value| (Cow::Borrowed(name), value)));
        }
        for (name, value) in self.custom.iter().flat_map(|tags| tags.iter()) {
            all.retain(|(known, _)| known != name);
            all.push((Cow::Borrowed(name), Cow::Borrowed(value)));
        }
        all
    }
}

impl<'a> HttpTags<'a> {
    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let text = |text: &'a str| (!text.is_empty()).then_some(Cow::Borrowed(text));
        match name {
            "method" => text(self.method),
            "url" => text(self.url),
            "name" => text(self.name),
            "proto" => text(self.proto),
            "tls_version" => text(self.tls_version),
            "error" => text(self.error),
            "ip" => text(self.ip),
            "status" => self.status.map(|status| Cow::Owned(status.to_string())),
            "subproto" => self.subproto.map(Cow::Borrowed),
            "error_code" => (self.error_code != 0).then(|| Cow::Owned(self.error_code.to_string())),
            "expected_response" => self.expected.map(|is| Cow::Borrowed(if is { "true" } else { "false" })),
            _ => None,
        }
    }
}

/// A metric's name must match `^[a-zA-Z_][a-zA-Z0-9_]{1,128}$`.
pub fn is_metric_name(name: &str) -> bool {
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    (2..=129).contains(&name.len()) && name.bytes().all(is_word) && !name.as_bytes()[0].is_ascii_digit()
}
