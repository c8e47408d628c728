//! One TLS session, sans-IO: bytes in, bytes out. Buffers are the caller's, so that a silent session keeps none.
//!
//! Owns: the TLS library's state, and what came of a record that is not whole yet. Never: sockets, the clock, figures.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncryptError, InsufficientSizeError, UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, CommonState, Error, HandshakeKind, ProtocolVersion};
use squall_measure::Terms;

use super::early::EarlySession;
use crate::tls::{encode, group_name, suite_name};

/// A session as the client sees it.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are lean, and a box for each would be one allocation more"
)]
pub(super) enum TlsSession {
    /// As nearly all are.
    Lean(LeanSession),
    /// One that may send its request before the handshake is whole.
    Early(Box<EarlySession>),
}

/// A session whose buffers are the caller's.
pub(super) struct LeanSession {
    tls: UnbufferedClientConnection,
    /// The beginning of a record, or of a handshake message, whose rest has not come.
    partial: Vec<u8>,
    /// It has failed: the library must not be asked again.
    is_broken: bool,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStage {
    /// The handshake wants more of the peer.
    Handshaking,
    /// Data may be sent.
    Open,
    /// The peer has said that it sends no more.
    PeerClosed,
}

/// What a whole handshake was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) is_resumed: bool,
    pub(super) was_retried: bool,
    pub(super) is_tls13: bool,
    pub(super) early_data: EarlyData,
}

/// What became of the request that was said before the handshake was whole (RFC 8446 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum EarlyData {
    /// None was sent.
    #[default]
    None,
    Accepted,
    /// The server dropped it: it must be said again.
    Rejected,
}

/// What was agreed on, as numbers: cheap to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TermsKey {
    version: u16,
    suite: u16,
    group: u16,
    chain_count: u32,
    chain_bytes: u32,
    alpn: [u8; ALPN_BYTES],
}

impl TlsSession {
    /// A new session; its first flight is appended to `out`, `early` among it where the settings and a ticket allow that.
    pub(super) fn start(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        early: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        match early {
            None => Ok(Self::Lean(LeanSession::start(config, name, out)?)),
            Some(request) => Ok(Self::Early(Box::new(EarlySession::start(config, name, request, out)?))),
        }
    }

    /// How much was left over: it belongs in front of what is read next.
    pub(super) fn partial_bytes(&self) -> usize {
        match self {
            Self::Lean(session) => session.partial.len(),
            Self::Early(_) => 0,
        }
    }

    /// Puts what was left over in front.
    pub(super) fn restore(&mut self, incoming: &mut [u8]) {
        if let Self::Lean(session) = self {
            incoming[..session.partial.len()].copy_from_slice(&session.partial);
            session.partial = Vec::new();
        }
    }

    /// Works off what came in. What is to be sent is appended to `out`, data of the peer to `plain`. After an error `out` holds the
    /// alert to the peer.
    pub(super) fn feed(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<SessionStage, Error> {
        match self {
            Self::Lean(session) => session.feed(incoming, out, plain),
            Self::Early(session) => session.feed(incoming, out, plain),
        }
    }

    /// Encrypts `plain` and appends it to `out`.
    pub(super) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Lean(session) => session.seal(plain, out),
            Self::Early(session) => session.seal(plain, out),
        }
    }

    /// The `close_notify` that ends our side; empty where the session cannot make one.
    pub(super) fn goodbye_record(&mut self) -> Vec<u8> {
        match self {
            Self::Lean(session) => session.goodbye_record(),
            Self::Early(session) => session.goodbye_record(),
        }
    }

    /// What the whole handshake was; asked of the library, not inferred.
    pub(super) fn outcome(&self) -> Outcome {
        let kind = self.state().handshake_kind();
        let early_data = match self {
            Self::Lean(_) => EarlyData::None,
            Self::Early(session) => session.early_data(),
        };
        Outcome {
            early_data,
            is_resumed: kind == Some(HandshakeKind::Resumed),
            was_retried: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
            is_tls13: self.state().protocol_version() == Some(ProtocolVersion::TLSv1_3),
        }
    }

    /// Tickets of TLS 1.3 that the server has sent in this session.
    pub(super) fn ticket_count(&self) -> u32 {
        match self {
            Self::Lean(session) => session.tls.tls13_tickets_received(),
            Self::Early(session) => session.ticket_count(),
        }
    }

    /// The ALPN protocol that was agreed on.
    pub(super) fn alpn(&self) -> &[u8] {
        self.state().alpn_protocol().unwrap_or_default()
    }

    /// What was agreed on, as numbers.
    pub(super) fn terms_key(&self) -> TermsKey {
        let mut alpn = [0; ALPN_BYTES];
        let name = &self.alpn()[..self.alpn().len().min(ALPN_BYTES)];
        alpn[..name.len()].copy_from_slice(name);
        let (chain_count, chain_bytes) = self.chain();
        TermsKey {
            version: self.state().protocol_version().map_or(0, u16::from),
            suite: self.state().negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
            group: self.state().negotiated_key_exchange_group().map_or(0, |group| group.name().into()),
            chain_count,
            chain_bytes,
            alpn,
        }
    }

    /// What was agreed on, in words.
    pub(super) fn terms(&self) -> Terms {
        let (chain_count, chain_bytes) = self.chain();
        Terms {
            version: match self.state().protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
                Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
                other => format!("{other:?}"),
            },
            cipher: self
                .state()
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| suite_name(&suite)),
            group: self.state().negotiated_key_exchange_group().map_or_else(String::new, group_name),
            alpn: String::from_utf8_lossy(self.alpn()).into_owned(),
            chain_count,
            chain_bytes,
        }
    }

    /// Certificates that came in this handshake, and their bytes.
    fn chain(&self) -> (u32, u32) {
        let chain =
            self.state().peer_certificates().filter(|_| !self.outcome().is_resumed).unwrap_or_default();
        (chain.len() as u32, chain.iter().map(|certificate| certificate.len() as u32).sum())
    }

    fn state(&self) -> &CommonState {
        match self {
            Self::Lean(session) => &session.tls,
            Self::Early(session) => session.state(),
        }
    }
}

impl LeanSession {
    fn start(config: Arc<ClientConfig>, name: ServerName<'static>, out: &mut Vec<u8>) -> Result<Self, Error> {
        let tls = UnbufferedClientConnection::new(config, name)?;
        let mut session = Self { tls, partial: Vec::new(), is_broken: false };
        session.feed(&mut [], out, &mut Vec::new())?;
        Ok(session)
    }

    fn feed(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<SessionStage, Error> {
        let mut begin = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.tls.process_tls_records(&mut incoming[begin..]);
            let stage = match state {
                Err(error) => {
                    self.is_broken = true;
                    encode::alert(&mut self.tls, out);
                    return Err(error);
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode::data(data, out);
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                    None
                }
                Ok(ConnectionState::BlockedHandshake) => Some(SessionStage::Handshaking),
                Ok(ConnectionState::WriteTraffic(_)) => Some(SessionStage::Open),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(SessionStage::PeerClosed),
                Ok(_) => return Err(Error::General("a state that clients do not have".to_owned())),
            };
            begin += discard;
            if let Some(stage) = stage {
                self.partial = incoming[begin..].to_vec();
                return Ok(stage);
            }
        }
    }

    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let begin = out.len();
        loop {
            match self.write(|traffic| traffic.encrypt(plain, &mut out[begin..])) {
                Ok(count) => {
                    out.truncate(begin + count);
                    return Ok(());
                }
                Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
                    out.resize(begin + required_size, 0);
                }
                Err(EncryptError::EncryptExhausted) => return Err(Error::EncryptError),
            }
        }
    }

    fn goodbye_record(&mut self) -> Vec<u8> {
        // With too little space the library would queue the alert and take the session for ended, so there is enough.
        let mut record = vec![0; GOODBYE_BYTES_MAX];
        let sealed = self.write(|traffic| traffic.queue_close_notify(&mut record));
        record.truncate(sealed.unwrap_or(0));
        record
    }

    /// Writes while the session is open. The library wants to see what is left of the peer's records each time.
    fn write(
        &mut self,
        write: impl FnOnce(&mut WriteTraffic<'_, ClientConnectionData>) -> Result<usize, EncryptError>,
    ) -> Result<usize, EncryptError> {
        if self.is_broken {
            return Err(EncryptError::EncryptExhausted);
        }
        match self.tls.process_tls_records(&mut self.partial) {
            UnbufferedStatus { discard: 0, state: Ok(ConnectionState::WriteTraffic(mut traffic)) } => {
                write(&mut traffic)
            }
            _ => Err(EncryptError::EncryptExhausted),
        }
    }
}

/// More than any cipher suite adds to the two bytes of an alert.
const GOODBYE_BYTES_MAX: usize = 256;

/// Names of protocols that matter here are shorter: `http/1.1`.
const ALPN_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use rustls::ServerConnection;
    use rustls::version::{TLS12, TLS13};
    use squall_plan::TlsPolicy;
    use squall_testkit::Authority;

    use super::*;
    use crate::pace::SplitMix;
    use crate::tls::client_config;

    /// A client and a server that have not spoken yet, and the client's first flight.
    fn pair(
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> (TlsSession, ServerConnection, Vec<u8>) {
        let policy = TlsPolicy { insecure: true, ..TlsPolicy::default() };
        let server = Arc::new(Authority::new().issue_for_loopback().server_config(versions));
        let mut hello = Vec::new();
        let name = ServerName::try_from("localhost").unwrap();
        let session = TlsSession::start(client_config(&policy).unwrap(), name, None, &mut hello).unwrap();
        (session, ServerConnection::new(server).unwrap(), hello)
    }

    /// What the server answers.
    fn answer(server: &mut ServerConnection, mut bytes: &[u8]) -> Vec<u8> {
        let mut flight = Vec::new();
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            // A server that refuses has an alert to send.
            let _ = server.process_new_packets();
            while server.wants_write() {
                server.write_tls(&mut flight).unwrap();
            }
        }
        flight
    }

    /// Gives the client bytes as the shard does: behind what it kept.
    fn give(
        session: &mut TlsSession,
        piece: &[u8],
        out: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<SessionStage, Error> {
        let mut incoming = vec![0; session.partial_bytes() + piece.len()];
        let kept = session.partial_bytes();
        incoming[kept..].copy_from_slice(piece);
        session.restore(&mut incoming);
        session.feed(&mut incoming, out, plain)
    }

    #[test]
    fn a_flight_may_come_in_pieces_of_any_size() {
        for versions in [&[&TLS12][..], &[&TLS13]] {
            for size in [1, 2, 7, 64, 500, 4096] {
                let (mut session, mut server, mut out) = pair(versions);
                let mut stage = SessionStage::Handshaking;
                while stage != SessionStage::Open || server.is_handshaking() {
                    let flight = answer(&mut server, &std::mem::take(&mut out));
                    for piece in flight.chunks(size) {
                        stage = give(&mut session, piece, &mut out, &mut Vec::new()).unwrap();
                    }
                }
                session.seal(b"hello", &mut out).unwrap();
                out.extend(session.goodbye_record());
                server.read_tls(&mut &out[..]).unwrap();
                assert!(server.process_new_packets().unwrap().peer_has_closed(), "{versions:?} in {size}");
            }
        }
    }

    #[test]
    fn a_half_message_stops_neither_data_nor_goodbye() {
        let (mut session, mut server, mut out) = pair(&[&TLS13]);
        let flight = answer(&mut server, &std::mem::take(&mut out));
        give(&mut session, &flight, &mut out, &mut Vec::new()).unwrap();
        let tickets = answer(&mut server, &std::mem::take(&mut out));
        let stage = give(&mut session, &tickets[..tickets.len() / 2], &mut out, &mut Vec::new());
        assert_eq!(stage, Ok(SessionStage::Open));
        session.seal(b"hello", &mut out).unwrap();
        assert!(!session.goodbye_record().is_empty());
    }

    #[test]
    fn damaged_flights_are_refused_without_panic() {
        let mut random = SplitMix::new(7);
        for round in 0..400_usize {
            let (mut session, mut server, mut out) = pair(&[[&TLS12, &TLS13][round % 2]]);
            for _ in 0..3 {
                let mut flight = answer(&mut server, &std::mem::take(&mut out));
                if !flight.is_empty() {
                    let place = random.next() as usize % flight.len();
                    flight[place] ^= 1 << (random.next() % 8);
                }
                let size = random.next() as usize % 300 + 1;
                let pieces: Vec<&[u8]> = flight.chunks(size).collect();
                if pieces.iter().any(|piece| give(&mut session, piece, &mut out, &mut Vec::new()).is_err()) {
                    break;
                }
                let _ = session.seal(b"x", &mut out);
            }
            session.goodbye_record();
        }
    }
}
