//! What is counted of handshakes and of kept connections, besides what every attempt comes to.

use squall_measure::{Sessions, Terms};

use super::kept;
use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::tls::{Agreement, EarlyData};

/// How a kept connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shard::schedule) enum Loss {
    /// The server closed it in order.
    Closed,
    /// It was reset.
    Reset,
    /// It broke the protocol, or did not answer.
    Broken,
}

/// Terms that were seen, so that no text is made for each handshake.
#[derive(Debug, Default)]
pub(super) struct TermsCache(Vec<(Agreement, Terms)>);

impl TermsCache {
    fn of(&mut self, agreement: &Agreement) -> &Terms {
        let place = self.0.iter().position(|(known, _)| known == agreement).unwrap_or_else(|| {
            self.0.truncate(TERMS_CACHED_MAX);
            self.0.push((agreement.clone(), agreement.terms()));
            self.0.len() - 1
        });
        &self.0[place].1
    }
}

impl ShardSchedule {
    /// Counts a whole handshake.
    pub(in crate::shard) fn count_handshake(
        &mut self,
        connections: &Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(sessions) = &mut self.sessions else { return };
        let conn = &connections.conns[conn_idx];
        let is_warmup = connections.exchanges[connections.place_of(conn_idx, 0)].is_warmup;
        let Some(agreement) = conn.agreement().filter(|_| !is_warmup) else { return };
        // QUIC's handshake begins with its first packet; that of TLS once TCP is connected.
        let begin_ns = if conn.cold.quic.is_some() { conn.opened_ns } else { conn.cold.connected_ns };
        let took_ns = connections.now_ns.saturating_sub(begin_ns);
        let Sessions { handshakes, .. } = &mut **recorder.pulse.snapshot.sessions.get_or_insert_default();
        match agreement.is_resumed() {
            true => {
                handshakes.resumed += 1;
                handshakes.resumed_time.record(took_ns);
            }
            false => {
                handshakes.full += 1;
                handshakes.full_time.record(took_ns);
            }
        }
        handshakes.early_data_accepted += u64::from(conn.early_data() == EarlyData::Accepted);
        handshakes.early_data_rejected += u64::from(conn.early_data() == EarlyData::Rejected);
        handshakes.hello_retries += u64::from(agreement.was_retried());
        handshakes.without_ticket += u64::from(conn.cold.lacks_ticket);
        handshakes.bytes_sent += conn.cold.handshake_bytes.sent;
        handshakes.bytes_received += conn.cold.handshake_bytes.received;
        let terms = sessions.terms.of(agreement);
        if !handshakes.count_terms(|known| known == terms) {
            handshakes.add_terms(terms, 1);
        }
    }

    /// A connection is kept. What takes its place later is a reopening.
    pub(super) fn count_opened(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let is_reopening = std::mem::replace(&mut connections.conns[conn_idx].cold.is_reopening, true);
        let kept = kept(&mut recorder.pulse);
        kept.opened += 1;
        kept.reopened += u64::from(is_reopening);
    }

    /// A kept connection has ended, and not by us.
    pub(super) fn count_loss(
        &mut self,
        connections: &Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        loss: Loss,
    ) {
        let lived_ns = connections.now_ns.saturating_sub(connections.conns[conn_idx].cold.ready_ns);
        let kept = kept(&mut recorder.pulse);
        match loss {
            Loss::Closed => kept.closed_by_server += 1,
            Loss::Reset => kept.reset += 1,
            Loss::Broken => kept.broken += 1,
        }
        kept.lifetime.record(lived_ns);
    }
}

/// Kinds of terms remembered: more than real servers mix.
const TERMS_CACHED_MAX: usize = 63;
