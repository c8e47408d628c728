//! The part of the summary that only connections of QUIC have.

use serde::Serialize;
use squall_measure::RunRecord;

use super::Distribution;

/// Connections of QUIC: what was sent, what was lost, and where.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuicSummary {
    /// Connections whose handshake was completed.
    pub connections: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Of these, those that were declared lost.
    pub packets_lost: u64,
    /// Times that the congestion controller reduced what it sends, because of losses or ECN marks.
    pub congestion_events: u64,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// System calls that received them.
    pub receive_calls: u64,
    /// Bytes of the datagrams sent, without UDP and IP headers.
    pub bytes_sent: u64,
    /// Bytes of the datagrams received, without UDP and IP headers.
    pub bytes_received: u64,
    /// Datagrams that the generator's kernel dropped because they were not read in time.
    pub datagrams_dropped: u64,
    /// Retry packets received.
    pub retries: u64,
    /// Version negotiation packets received.
    pub version_negotiations: u64,
    /// Times that a connection moved to another local address (`--migrate`).
    pub migrations: u64,
    /// Of these, those after which the server's datagrams arrived there.
    pub migrations_survived: u64,
    /// Mean congestion window of the connections that were open at the end of each second.
    pub congestion_window_bytes: Option<u64>,
    /// Shortest round-trip time of each connection.
    pub rtt_min_us: Distribution,
    /// Smoothed round-trip time of each connection, at its end.
    pub rtt_us: Distribution,
}

pub(super) fn quic(record: &RunRecord) -> Option<QuicSummary> {
    let quic = record.total.quic.as_ref()?;
    Some(QuicSummary {
        connections: quic.connections,
        packets_sent: quic.packets_sent,
        packets_lost: quic.packets_lost,
        congestion_events: quic.congestion_events,
        datagrams_sent: quic.datagrams_sent,
        datagrams_received: quic.datagrams_received,
        send_calls: quic.send_calls,
        receive_calls: quic.receive_calls,
        bytes_sent: quic.bytes_sent,
        bytes_received: quic.bytes_received,
        datagrams_dropped: quic.datagrams_dropped,
        retries: quic.retries,
        version_negotiations: quic.version_negotiations,
        migrations: quic.migrations,
        migrations_survived: quic.migrations_survived,
        congestion_window_bytes: quic.paths.window_bytes_mean(),
        rtt_min_us: Distribution::from(&quic.rtt_min),
        rtt_us: Distribution::from(&quic.rtt_smoothed),
    })
}
