//! What connections did for their own sake: handshakes by kind, and the lives of connections that are kept.
//!
//! Owns: the figures that requests do not have. Counts of attempts, failures and latencies are those of every load.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::figures::figures;

figures! {
    /// Figures of handshakes and kept connections in a span of time. Recording, clearing and merging what is known never allocate.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Sessions {
        /// Handshakes, as the TLS library reports them.
        pub handshakes: Handshakes,
        /// Connections that were to stay open.
        pub kept: Kept,
        /// What this process's resident memory, that of files left out, grew by since the run's start, at its most. Each span brings what it added to
        /// that, one shard of each process.
        pub memory_grown_bytes: u64,
    }
}

figures! {
    /// Whole handshakes.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Handshakes {
        /// With a certificate and a key exchange of their own.
        pub full: u64,
        /// Resumed from an earlier session.
        pub resumed: u64,
        /// Of the full ones, those for which the server asked for another key-exchange group first (`HelloRetryRequest`).
        pub hello_retries: u64,
        /// Those that were meant to resume a session, and had none to show: no ticket had come in time.
        pub without_ticket: u64,
        /// Resumed, with the request accepted as early data (0-RTT).
        pub early_data_accepted: u64,
        /// The server did not take the early data, so the request was sent again.
        pub early_data_rejected: u64,
        /// Bytes written, below TLS, by whole handshakes.
        pub bytes_sent: u64,
        /// Bytes read, below TLS, by whole handshakes.
        pub bytes_received: u64,
        /// TLS time of full handshakes, in nanoseconds.
        pub full_time: Histogram,
        /// TLS time of resumed handshakes, in nanoseconds.
        pub resumed_time: Histogram,
        /// What was agreed on, and how often.
        pub negotiated: Vec<Negotiated> as by_terms,
    }
}

/// What handshakes agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// What was agreed on.
    pub terms: Terms,
    /// How many handshakes.
    pub count: u64,
}

/// The terms of a session, by their IANA names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Terms {
    /// Such as `TLS 1.3`.
    pub version: String,
    /// Cipher suite.
    pub cipher: String,
    /// Key-exchange group; empty where a resumed session needed none.
    pub group: String,
    /// ALPN protocol; empty where none was agreed on.
    pub alpn: String,
    /// Certificates that the server sent; 0 in a resumed handshake.
    pub chain_count: u32,
    /// Bytes of these certificates.
    pub chain_bytes: u32,
}

figures! {
    /// Connections that were to stay open.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Kept {
        /// Opened (TLS and first request included), those opened again among them.
        pub opened: u64,
        /// Opened again after the server had closed.
        pub reopened: u64,
        /// Ended by the server in order: a FIN, a `close_notify` or a GOAWAY.
        pub closed_by_server: u64,
        /// Ended by a reset, by the server or something between.
        pub reset: u64,
        /// Ended because a ping was not answered, or the server broke the protocol.
        pub broken: u64,
        /// Closed by us at the end.
        pub closed_by_us: u64,
        /// How long connections lived that we did not close, in nanoseconds.
        pub lifetime: Histogram,
        /// Pings sent.
        pub pings: u64,
        /// From a ping to its answer, in nanoseconds.
        pub ping_time: Histogram,
    }
}

impl Handshakes {
    /// Handshakes in all.
    pub fn count(&self) -> u64 {
        self.full + self.resumed
    }

    /// Counts one handshake of these terms; false when they are new, and must be [added](Self::add_terms).
    pub fn count_terms(&mut self, is_same: impl Fn(&Terms) -> bool) -> bool {
        let known = self.negotiated.iter_mut().find(|known| is_same(&known.terms));
        known.map(|known| known.count += 1).is_some()
    }

    /// Adds terms that were agreed on `count` times; beyond `TERMS_COUNT_MAX` kinds they share one row.
    pub fn add_terms(&mut self, terms: &Terms, count: u64) {
        by_terms::add_one(&mut self.negotiated, terms, count);
    }
}

mod by_terms {
    use super::{Negotiated, TERMS_COUNT_MAX, Terms};

    pub(super) fn add(mine: &mut Vec<Negotiated>, theirs: &[Negotiated]) {
        for Negotiated { terms, count } in theirs.iter().filter(|known| known.count > 0) {
            add_one(mine, terms, *count);
        }
        mine.sort_by(|left, right| left.terms.cmp(&right.terms));
    }

    /// Which terms there were is kept.
    pub(super) fn empty(mine: &mut [Negotiated]) {
        mine.iter_mut().for_each(|known| known.count = 0);
    }

    pub(super) fn add_one(mine: &mut Vec<Negotiated>, terms: &Terms, count: u64) {
        let has_space = mine.len() < TERMS_COUNT_MAX;
        match mine.iter_mut().find(|known| known.terms == *terms) {
            Some(known) => known.count += count,
            None if has_space || *terms == Terms::other() => {
                mine.push(Negotiated { terms: terms.clone(), count });
            }
            None => add_one(mine, &Terms::other(), count),
        }
    }
}

impl Terms {
    fn other() -> Self {
        let none = String::new;
        Self {
            version: "(other)".to_owned(),
            cipher: none(),
            group: none(),
            alpn: none(),
            chain_count: 0,
            chain_bytes: 0,
        }
    }
}

impl Kept {
    /// Connections that ended other than by us.
    pub fn lost(&self) -> u64 {
        self.closed_by_server + self.reset + self.broken
    }
}

/// Most kinds of terms with rows of their own: versions x suites x groups x protocols that real servers mix.
const TERMS_COUNT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(version: &str) -> Terms {
        Terms { version: version.to_owned(), ..Terms::other() }
    }

    fn second(version: &str, count: u64) -> Sessions {
        let mut sessions = Sessions::default();
        sessions.handshakes.full = count;
        sessions.handshakes.full_time.record_n(1_000, count);
        sessions.handshakes.add_terms(&terms(version), count);
        sessions.kept.opened = count;
        sessions.kept.lifetime.record(count);
        sessions.memory_grown_bytes = count;
        sessions
    }

    #[test]
    fn parts_add_up_in_any_order() {
        let parts = [second("b", 1), second("a", 2), second("b", 4)];
        let merged = |order: [usize; 3]| {
            let mut whole = Sessions::default();
            order.iter().for_each(|&idx| whole.merge(&parts[idx]));
            whole
        };
        let whole = merged([0, 1, 2]);
        assert_eq!(whole, merged([2, 1, 0]));
        assert_eq!((whole.handshakes.count(), whole.kept.opened, whole.memory_grown_bytes), (7, 7, 7));
        let rows: Vec<(&str, u64)> =
            whole.handshakes.negotiated.iter().map(|row| (row.terms.version.as_str(), row.count)).collect();
        assert_eq!(rows, [("a", 2), ("b", 5)]);
    }

    #[test]
    fn a_cleared_second_adds_nothing() {
        let mut cleared = second("a", 3);
        cleared.clear();
        let mut whole = second("b", 1);
        whole.merge(&cleared);
        assert_eq!(whole, second("b", 1));
        assert!(cleared.handshakes.count_terms(|known| *known == terms("a")), "terms are remembered");
    }

    #[test]
    fn terms_beyond_the_bound_share_a_row() {
        let mut handshakes = Handshakes::default();
        (0..1_000).for_each(|idx| handshakes.add_terms(&terms(&idx.to_string()), 1));
        assert_eq!(handshakes.negotiated.len(), TERMS_COUNT_MAX + 1);
        assert_eq!(handshakes.negotiated.iter().map(|row| row.count).sum::<u64>(), 1_000);
    }
}
