//! What a TLS handshake has agreed on, the same for both record layers.

use rustls::{CommonState, Error, HandshakeKind, NamedGroup, ProtocolVersion, SupportedCipherSuite};
use squall_measure::Terms;

use super::names::suite_name;

/// What a whole handshake has agreed on; asked of the library, not inferred.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Agreement {
    suite: SupportedCipherSuite,
    group: Option<NamedGroup>,
    kind: Option<HandshakeKind>,
    alpn: Option<Box<[u8]>>,
    /// Certificates that came in this handshake, and their bytes.
    chain_count: u32,
    chain_bytes: u32,
}

impl Agreement {
    /// What rustls says once the handshake is over.
    pub(crate) fn of(state: &CommonState) -> Result<Self, Error> {
        let kind = state.handshake_kind();
        // A resumed session only remembers the certificates of the one before.
        let is_resumed = kind == Some(HandshakeKind::Resumed);
        let chain = state.peer_certificates().filter(|_| !is_resumed).unwrap_or_default();
        Ok(Self {
            suite: state.negotiated_cipher_suite().ok_or(Error::HandshakeNotComplete)?,
            group: state.negotiated_key_exchange_group().map(|group| group.name()),
            kind,
            alpn: state.alpn_protocol().map(Box::from),
            chain_count: chain.len() as u32,
            chain_bytes: chain.iter().map(|certificate| certificate.len() as u32).sum(),
        })
    }

    pub(crate) const fn suite(&self) -> SupportedCipherSuite {
        self.suite
    }

    /// The protocol that ALPN came to.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    pub(crate) fn version(&self) -> ProtocolVersion {
        self.suite.version().version
    }

    pub(crate) fn is_tls13(&self) -> bool {
        self.suite.tls13().is_some()
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.kind == Some(HandshakeKind::Resumed)
    }

    /// The server wanted another key share than the one that was offered first.
    pub(crate) fn was_retried(&self) -> bool {
        self.kind == Some(HandshakeKind::FullWithHelloRetryRequest)
    }

    /// The same in words.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            version: if self.is_tls13() { "TLS 1.3" } else { "TLS 1.2" }.to_owned(),
            cipher: suite_name(&self.suite),
            group: self.group.map_or_else(String::new, |group| format!("{group:?}")),
            alpn: String::from_utf8_lossy(self.alpn().unwrap_or_default()).into_owned(),
            chain_count: self.chain_count,
            chain_bytes: self.chain_bytes,
        }
    }
}

/// What became of a request that left before the handshake was over (RFC 8446 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EarlyData {
    /// None was sent.
    #[default]
    None,
    Accepted,
    /// The server dropped it: it must be sent again.
    Rejected,
}
