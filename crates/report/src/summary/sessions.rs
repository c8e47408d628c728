//! The part of the summary that only connections for their own sake have: handshakes by kind, kept connections and their ends.

use serde::Serialize;
use squall_measure::{Cause, Kept, Part, PartKind, RunRecord, Sessions, Terms};
use squall_plan::What;

use super::{Distribution, Span, most_at_once, rate_per_s, three_decimals};

/// TLS handshakes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandshakeSummary {
    /// Whole handshakes.
    pub count: u64,
    /// Per second of `duration_s`.
    pub per_s: f64,
    /// With a certificate and a key exchange of their own.
    pub full: u64,
    /// Resumed from an earlier session, as the TLS library reports.
    pub resumed: u64,
    /// Full ones for which the server asked for another key-exchange group first.
    pub hello_retries: u64,
    /// Meant to resume, but with no session to show.
    pub without_ticket: u64,
    /// Resumed ones whose request the server took as early data (0-RTT). None where none was to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_data_accepted: Option<u64>,
    /// Handshakes whose early data the server did not take, so that the request was sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_data_rejected: Option<u64>,
    /// Bytes written by whole handshakes, below TLS.
    pub bytes_sent: u64,
    /// Bytes read by whole handshakes, below TLS.
    pub bytes_received: u64,
    /// TLS time of full handshakes.
    pub full_us: Distribution,
    /// TLS time of resumed handshakes.
    pub resumed_us: Distribution,
    /// What was agreed on, the most frequent first.
    pub negotiated: Vec<NegotiatedSummary>,
}

/// Terms, and how many handshakes agreed on them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NegotiatedSummary {
    /// How many.
    pub count: u64,
    /// On what.
    #[serde(flatten)]
    pub terms: Terms,
}

/// Connections that were to stay open.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleConnections {
    /// Opened, those opened again among them.
    pub opened: u64,
    /// Opened again after the server had closed.
    pub reopened: u64,
    /// Connects that took longer than the time allowed.
    pub timeouts: u64,
    /// The most that were open at the end of a second.
    pub open_max: u64,
    /// Ended by the server in order.
    pub closed_by_server: u64,
    /// Ended by a reset.
    pub reset: u64,
    /// Ended because a ping was not answered, or the server broke the protocol.
    pub broken: u64,
    /// Closed by us.
    pub closed_by_us: u64,
    /// How long those lived that we did not close.
    pub lifetime_us: Distribution,
    /// Pings sent.
    pub pings: u64,
    /// From a ping to its answer.
    pub ping_us: Distribution,
    /// Our own memory for each connection: what the process grew by, at the most, over the most connections. Null without connections.
    pub memory_bytes_each: Option<f64>,
}

/// The handshakes of a run; `None` where no load was made of connections, or none spoke TLS.
pub(super) fn handshakes(record: &RunRecord) -> Option<HandshakeSummary> {
    let made = &sessions(record)?.handshakes;
    let mut negotiated: Vec<NegotiatedSummary> = made
        .negotiated
        .iter()
        .map(|known| NegotiatedSummary { count: known.count, terms: known.terms.clone() })
        .collect();
    negotiated.sort_by_key(|row| std::cmp::Reverse(row.count));
    let is_early = record.plan.loads.iter().any(sends_early_data);
    let is_spoken = |load: &squall_plan::Load| load.what.endpoints().is_some() && load.speaks_tls();
    record.plan.loads.iter().any(is_spoken).then(|| HandshakeSummary {
        count: made.count(),
        per_s: rate_per_s(made.count(), record.duration.as_secs_f64()),
        full: made.full,
        resumed: made.resumed,
        hello_retries: made.hello_retries,
        without_ticket: made.without_ticket,
        early_data_accepted: is_early.then_some(made.early_data_accepted),
        early_data_rejected: is_early.then_some(made.early_data_rejected),
        bytes_sent: made.bytes_sent,
        bytes_received: made.bytes_received,
        full_us: Distribution::from(&made.full_time),
        resumed_us: Distribution::from(&made.resumed_time),
        negotiated,
    })
}

fn sends_early_data(load: &squall_plan::Load) -> bool {
    matches!(&load.what, What::Handshake(handshake) if handshake.resumption.early_data)
}

/// The kept connections of a run; `None` where none were to be kept.
pub(super) fn idle_connections(record: &RunRecord) -> Option<IdleConnections> {
    let Sessions { kept, memory_grown_bytes, .. } = sessions(record)?;
    let is_idle = |load: &squall_plan::Load| matches!(load.what, What::Idle(_) | What::WebSocket(_));
    if !record.plan.loads.iter().any(is_idle) && kept.opened == 0 {
        return None;
    }
    let Kept { opened, reopened, closed_by_server, reset, broken, closed_by_us, pings, .. } = *kept;
    let open_max = kept_max(record);
    Some(IdleConnections {
        opened,
        reopened,
        timeouts: record.total.failures.count_of(Cause::ConnectTimeout),
        open_max,
        closed_by_server,
        reset,
        broken,
        closed_by_us,
        lifetime_us: Distribution::from(&kept.lifetime),
        pings,
        ping_us: Distribution::from(&kept.ping_time),
        memory_bytes_each: (open_max > 0)
            .then(|| three_decimals(*memory_grown_bytes as f64 / open_max as f64)),
    })
}

/// The most that were kept at any moment. Connections of other loads are no part of it.
fn kept_max(record: &RunRecord) -> u64 {
    let all = record.total.generator.connections_open;
    let keeps = |part: &&Part| {
        let kept = part.total.sessions.as_deref().map_or(0, |sessions| sessions.kept.opened);
        part.kind == PartKind::Load && kept > 0
    };
    let span = |part: &Part| Span {
        from_s: part.at_s,
        until_s: part.at_s + part.duration.as_secs_f64(),
        count: part.total.generator.connections_open,
    };
    let spans: Vec<Span> = record.parts.iter().filter(keeps).map(span).collect();
    if spans.is_empty() { all } else { most_at_once(&spans).min(all) }
}

fn sessions(record: &RunRecord) -> Option<&Sessions> {
    record.total.sessions.as_deref()
}
