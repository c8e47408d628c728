//! Counts over the whole run: their names in the JSON contract, and where they come from.

use serde::Serialize;
use squall_measure::{Http2, RunRecord, Snapshot};

use super::{
    AltSvcSummary, HandshakeSummary, IdleConnections, KindTotals, QuicSummary, ReplaySummary, Script,
    StreamSummary, WebSocketSummary, alt_svc, kinds, quic, replay, script, sessions, streams, three_decimals,
    websockets,
};

/// Counts over the measured part of the run. `requests` = `ok` + `failed` + `interrupted`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Totals {
    /// Requests, handshakes and idle connections, separately: the fields below count everything that the run made.
    pub kinds: Vec<KindTotals>,
    /// Requests begun.
    pub requests: u64,
    /// Requests with a whole response that met every expectation.
    pub ok: u64,
    /// Requests that failed; see `errors`.
    pub failed: u64,
    /// Requests still open when the run was cut off.
    pub interrupted: u64,
    /// Requests that ended well or failed, per second of `duration_s`.
    pub rate_per_s: f64,
    /// Open model: requests that the schedule asked for.
    pub requests_asked: Option<u64>,
    /// Of these, those never sent.
    pub requests_never_sent: Option<u64>,
    /// Requests made again on a new connection because a reused one died before any byte of the answer; counted once
    /// in `requests`.
    pub retries: u64,
    /// Requests made in the warm-up; they are in no other figure.
    pub warmup_requests: u64,
    /// Bytes read from sockets, below TLS.
    pub bytes_received: u64,
    /// Bytes written to sockets, below TLS.
    pub bytes_sent: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Requests that went out on a connection that had carried one before.
    pub connections_reused: u64,
    /// TLS handshakes, where they are what the run is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<HandshakeSummary>,
    /// Connections that were to stay open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<IdleConnections>,
    /// Events of streamed responses, where they are what the run is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamSummary>,
    /// Messages on WebSockets, where they are what the run is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websockets: Option<WebSocketSummary>,
    /// What only HTTP/2 has; where it was spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    /// What only HTTP/3 has; where it was spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http3: Option<Http2>,
    /// What only QUIC has; where it was spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSummary>,
    /// What servers announced in Alt-Svc; only where they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt_svc: Option<AltSvcSummary>,
    /// The replay of recorded traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplaySummary>,
    /// Iterations of scripts that came to their end (k6's `iterations`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Iterations that were due, but for which no user was free (k6's `dropped_iterations`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations_dropped: Option<u64>,
    /// What scripts measured themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
}

pub(super) fn totals(record: &RunRecord) -> Totals {
    let total = &record.total;
    Totals {
        kinds: kinds::kinds(record),
        requests: total.requests_started,
        ok: total.ok(),
        failed: total.failed(),
        interrupted: total.interrupted(),
        rate_per_s: three_decimals(record.rate_per_s()),
        requests_asked: asked(total, total.arrivals_asked),
        requests_never_sent: asked(total, total.arrivals_asked.saturating_sub(total.arrivals_sent)),
        retries: total.requests_retried,
        warmup_requests: total.requests_warmup,
        bytes_received: total.wire_bytes_received,
        bytes_sent: total.wire_bytes_sent,
        connections_opened: total.connections_opened,
        connections_reused: total.connections_reused,
        handshakes: sessions::handshakes(record),
        idle_connections: sessions::idle_connections(record),
        streams: streams::streams(record),
        websockets: websockets::websockets(record),
        http2: (!total.http2.is_empty()).then_some(total.http2),
        http3: (!total.http3.is_empty()).then_some(total.http3),
        quic: quic::quic(record),
        alt_svc: alt_svc::alt_svc(record),
        replay: replay::replay(record),
        iterations: script::counted(record, "iterations"),
        iterations_dropped: script::counted(record, "dropped_iterations"),
        script: script::script(record),
    }
}

/// A closed model asks for nothing.
pub(super) fn asked(total: &Snapshot, arrivals: u64) -> Option<u64> {
    total.open_model.then_some(arrivals)
}
