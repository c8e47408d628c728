//! A TLS session whose records are opened and sealed here, sans-IO: bytes in, bytes out.
//!
//! The handshake is rustls's. Once it is over, the keys are taken over ([`rustls::kernel`]): rustls copies what it has opened and allocates for each
//! record, which costs nearly as much as the cipher where records are small. Owns: the session's buffers. Never: sockets, the clock, figures.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{AlertDescription, ClientConfig, Error, InvalidMessage, PeerMisbehaved, SupportedCipherSuite};

use super::agreement::Agreement;
use super::encode;
use super::records::{
    ALERT, DATA, HANDSHAKE, HEAD_BYTES, Keys, OUTGOING_BYTES_MAX, PLAIN_BYTES_MAX, RecordHead, VERSION_MINOR,
    read_head,
};

/// A session as the client sees it; the methods are those of `TlsStream`.
pub(crate) struct DirectStream {
    stage: StreamStage,
    incoming: Incoming,
    /// Sealed records; the socket has taken the first `written` bytes.
    outgoing: Vec<u8>,
    written: usize,
    is_peer_closed: bool,
    keeps_tickets: bool,
    /// Why the session ended, behind data that is not consumed yet: what came whole before it counts.
    failure: Option<Error>,
}

#[expect(clippy::large_enum_variant, reason = "a connection boxes the whole, and nearly all are open")]
enum StreamStage {
    Handshake(Box<UnbufferedClientConnection>),
    Open(Session),
    /// It has failed: nothing is opened or sealed any more.
    Broken,
}

/// What was read: some of it is opened and not consumed, what follows is a record that is not whole.
#[derive(Default)]
struct Incoming {
    /// Filled up to `filled`, and opened up to `opened`.
    bytes: Vec<u8>,
    filled: usize,
    opened: usize,
    /// What is not opened and rustls has seen: one record after the other, so that it never sees one that follows the handshake.
    offered_bytes: usize,
    plain: VecDeque<Range<usize>>,
}

/// After the handshake.
struct Session {
    seal: Keys,
    open: Keys,
    /// As many records should one key seal at most (RFC 8446 5.5).
    seal_count_max: u64,
    agreement: Agreement,
    /// Tickets that were kept; `None`: none is.
    ticket_count: Option<u32>,
    /// Makes the next keys; TLS 1.2 has none.
    successor: Option<Box<KernelConnection<ClientConnectionData>>>,
    /// A handshake message that came in several records.
    message: Vec<u8>,
    /// Messages that ask for nothing.
    idle_count: u32,
    /// Records without data, one after the other.
    empty_count: u32,
}

impl DirectStream {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let handshake = Box::new(UnbufferedClientConnection::new(config, name)?);
        let mut stream = Self {
            stage: StreamStage::Handshake(handshake),
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            written: 0,
            is_peer_closed: false,
            keeps_tickets: false,
            failure: None,
        };
        stream.shake_hands()?;
        Ok(stream)
    }

    /// The same, but the tickets of TLS 1.3 that come are put where the settings say.
    pub(super) fn keeping_tickets(self) -> Self {
        Self { keeps_tickets: true, ..self }
    }

    pub(super) const fn is_handshaking(&self) -> bool {
        matches!(self.stage, StreamStage::Handshake(_))
    }

    pub(super) fn agreement(&self) -> Option<&Agreement> {
        Some(&self.session()?.agreement)
    }

    pub(super) fn ticket_count(&self) -> u32 {
        self.session().and_then(|session| session.ticket_count).unwrap_or(0)
    }

    pub(super) fn is_worn(&self) -> bool {
        self.session().is_some_and(|session| session.successor.is_none() && session.wants_keys())
    }

    fn session(&self) -> Option<&Session> {
        match &self.stage {
            StreamStage::Open(session) => Some(session),
            StreamStage::Handshake(_) | StreamStage::Broken => None,
        }
    }

    pub(super) fn read_tls(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        if self.is_peer_closed {
            return Ok(0);
        }
        let count = reader.read(self.incoming.space()?)?;
        self.incoming.filled += count;
        Ok(count)
    }

    pub(super) fn process(&mut self) -> Result<usize, Error> {
        if let Err(error) = self.shake_hands().and_then(|()| self.open_records()) {
            self.refuse(&error);
            if self.incoming.plain.is_empty() {
                return Err(error);
            }
            self.failure = Some(error);
        }
        Ok(self.incoming.plain.iter().map(Range::len).sum())
    }

    pub(super) fn chunk(&self) -> Result<Option<&[u8]>, Error> {
        match (self.incoming.plain.front(), &self.failure) {
            (Some(range), _) => Ok(Some(&self.incoming.bytes[range.clone()])),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Ok(self.is_peer_closed.then_some(&[])),
        }
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        if let Some(range) = self.incoming.plain.front_mut() {
            range.start += bytes;
            if range.start >= range.end {
                self.incoming.plain.pop_front();
            }
        }
    }

    pub(super) fn write(&mut self, plain: &[u8]) -> Result<usize, Error> {
        let StreamStage::Open(session) = &mut self.stage else { return Err(Error::HandshakeNotComplete) };
        let space = OUTGOING_BYTES_MAX.saturating_sub(self.outgoing.len() - self.written);
        let plain = &plain[..plain.len().min(space)];
        if session.wants_keys() {
            session.renew_seal(&mut self.outgoing)?;
        }
        for part in plain.chunks(PLAIN_BYTES_MAX) {
            session.seal.seal(DATA, part, &mut self.outgoing)?;
        }
        Ok(plain.len())
    }

    pub(super) fn send_close_notify(&mut self) {
        self.alert(WARNING, AlertDescription::CloseNotify);
    }

    pub(super) const fn wants_write(&self) -> bool {
        self.written < self.outgoing.len()
    }

    pub(super) fn shed_buffers(&mut self) {
        self.incoming.shed();
        if !self.wants_write() {
            self.outgoing = Vec::new();
        }
    }

    pub(super) fn write_tls(&mut self, writer: &mut impl Write) -> io::Result<usize> {
        let count = writer.write(&self.outgoing[self.written..])?;
        self.written += count;
        if self.written == self.outgoing.len() {
            self.outgoing.clear();
            self.outgoing.shrink_to(OUTGOING_BYTES_KEPT);
            self.written = 0;
        }
        Ok(count)
    }

    /// Moves the handshake on, as far as what was read allows.
    fn shake_hands(&mut self) -> Result<(), Error> {
        while let StreamStage::Handshake(tls) = &mut self.stage {
            // Records that follow the handshake are not rustls's: it is asked for the rest of its last flight only.
            let is_over = !tls.is_handshaking();
            let incoming = if is_over { &mut [][..] } else { self.incoming.offered() };
            let UnbufferedStatus { discard, state, .. } = tls.process_tls_records(incoming);
            let waits = match state {
                Err(error) => {
                    encode::alert(tls, &mut self.outgoing);
                    return Err(error);
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode::data(data, &mut self.outgoing);
                    false
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.is_peer_closed = true;
                    true
                }
                Ok(_) => true,
            };
            self.incoming.opened += discard;
            self.incoming.offered_bytes -= discard;
            if waits && is_over {
                return self.take_over();
            }
            if waits && tls.is_handshaking() && !self.incoming.offer_more() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The handshake is over: its keys are taken over.
    fn take_over(&mut self) -> Result<(), Error> {
        let StreamStage::Handshake(tls) = std::mem::replace(&mut self.stage, StreamStage::Broken) else {
            return Ok(());
        };
        self.stage = StreamStage::Open(Session::new(*tls, self.keeps_tickets)?);
        self.incoming.shrink();
        Ok(())
    }

    fn open_records(&mut self) -> Result<(), Error> {
        let StreamStage::Open(session) = &mut self.stage else { return Ok(()) };
        let incoming = &mut self.incoming;
        while !self.is_peer_closed
            && let Some(head) = read_head(&incoming.bytes[incoming.opened..incoming.filled])?
            && incoming.opened + HEAD_BYTES + head.payload_bytes <= incoming.filled
        {
            let begin = incoming.opened + HEAD_BYTES;
            incoming.opened = begin + head.payload_bytes;
            let (kind, range) = session.open_record(head, &mut incoming.bytes[begin..incoming.opened])?;
            let range = begin + range.start..begin + range.end;
            if range.start < range.end {
                session.empty_count = 0;
            }
            if kind != DATA {
                self.is_peer_closed = session.hear(kind, &incoming.bytes[range], &mut self.outgoing)?;
            } else if range.start < range.end {
                incoming.plain.push_back(range);
            } else {
                session.note_empty()?;
            }
        }
        if self.outgoing.len() - self.written > 2 * OUTGOING_BYTES_MAX {
            return Err(Error::General("the server sends requests but does not read the replies".to_owned()));
        }
        Ok(())
    }

    /// Sends the peer the reason why the session ends.
    fn refuse(&mut self, error: &Error) {
        let description = match error {
            Error::DecryptError => AlertDescription::BadRecordMac,
            Error::PeerSentOversizedRecord | Error::InvalidMessage(InvalidMessage::MessageTooLarge) => {
                AlertDescription::RecordOverflow
            }
            Error::InvalidMessage(_) => AlertDescription::DecodeError,
            _ => AlertDescription::UnexpectedMessage,
        };
        if !matches!(error, Error::AlertReceived(_)) {
            self.alert(FATAL, description);
        }
        self.stage = StreamStage::Broken;
    }

    fn alert(&mut self, level: u8, description: AlertDescription) {
        if let StreamStage::Open(session) = &mut self.stage {
            // An alert that cannot be sealed is not sent, and the connection ends without it.
            let _ = session.seal.seal(ALERT, &[level, description.into()], &mut self.outgoing);
        }
    }
}

impl std::fmt::Debug for DirectStream {
    /// Without keys and contents.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectStream").field("is_handshaking", &self.is_handshaking()).finish_non_exhaustive()
    }
}

impl Incoming {
    /// Where the next read goes.
    fn space(&mut self) -> io::Result<&mut [u8]> {
        if self.plain.is_empty() {
            self.bytes.copy_within(self.opened..self.filled, 0);
            self.filled -= self.opened;
            self.opened = 0;
        }
        if self.filled == self.bytes.len() {
            if self.filled >= INCOMING_BYTES_MAX {
                return Err(io::Error::other("TLS message too large"));
            }
            self.bytes.resize((2 * self.filled).max(INCOMING_BYTES_MIN), 0);
        }
        Ok(&mut self.bytes[self.filled..])
    }

    fn offered(&mut self) -> &mut [u8] {
        &mut self.bytes[self.opened..self.opened + self.offered_bytes]
    }

    /// Offers one more record, where one is whole, else whatever there is; false: there is nothing.
    fn offer_more(&mut self) -> bool {
        let unopened = &self.bytes[self.opened..self.filled];
        let before = self.offered_bytes;
        self.offered_bytes = 0;
        while self.offered_bytes <= before && self.offered_bytes < unopened.len() {
            let record = match read_head(&unopened[self.offered_bytes..]) {
                Ok(Some(head)) => HEAD_BYTES + head.payload_bytes,
                // What is wrong with it is for rustls to say.
                Ok(None) | Err(_) => unopened.len(),
            };
            self.offered_bytes = unopened.len().min(self.offered_bytes + record);
        }
        self.offered_bytes > before
    }

    /// Nothing is kept but the beginning of a record.
    fn shed(&mut self) {
        if self.plain.is_empty() {
            self.bytes = self.bytes[self.opened..self.filled].to_vec();
            (self.filled, self.opened) = (self.filled - self.opened, 0);
            self.plain = VecDeque::new();
        }
    }

    /// What the handshake needed is given back.
    fn shrink(&mut self) {
        self.bytes.truncate(self.filled.max(INCOMING_BYTES_MIN));
        self.bytes.shrink_to_fit();
    }
}

impl Session {
    fn new(tls: UnbufferedClientConnection, keeps_tickets: bool) -> Result<Self, Error> {
        let agreement = Agreement::of(&tls)?;
        let is_tls13 = agreement.is_tls13();
        let (secrets, successor) = tls.dangerous_into_kernel_connection()?;
        Ok(Self {
            seal: Keys::new(secrets.tx, is_tls13)?,
            open: Keys::new(secrets.rx, is_tls13)?,
            seal_count_max: seal_count_max(agreement.suite()),
            agreement,
            ticket_count: keeps_tickets.then_some(0),
            successor: is_tls13.then(|| Box::new(successor)),
            message: Vec::new(),
            idle_count: 0,
            empty_count: 0,
        })
    }

    fn is_tls13(&self) -> bool {
        self.successor.is_some()
    }

    fn open_record(&mut self, head: RecordHead, payload: &mut [u8]) -> Result<(u8, Range<usize>), Error> {
        if self.is_tls13() && head.kind != DATA {
            return Err(InvalidMessage::InvalidContentType.into());
        }
        if !self.is_tls13() && head.version_minor != VERSION_MINOR {
            return Err(Error::DecryptError);
        }
        let (kind, range) = self.open.open(head.kind, payload)?;
        if kind != HANDSHAKE && !self.message.is_empty() {
            return Err(PeerMisbehaved::MessageInterleavedWithHandshakeMessage.into());
        }
        Ok((kind, range))
    }

    /// Whether the keys have sealed as many records as they should.
    const fn wants_keys(&self) -> bool {
        self.seal.record_count() >= self.seal_count_max
    }

    /// Hears what is no data; true: the peer has said that it sends no more.
    fn hear(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        match (kind, content) {
            (ALERT, [level, description]) => self.hear_alert(*level, AlertDescription::from(*description)),
            (HANDSHAKE, [_, ..]) => {
                self.message.extend_from_slice(content);
                while let Some(length) = self.message_bytes()? {
                    let message: Vec<u8> = self.message.drain(..length).collect();
                    self.hear_message(message[0], &message[MESSAGE_HEAD_BYTES..], out)?;
                }
                Ok(false)
            }
            (ALERT, _) => Err(InvalidMessage::MissingData("AlertMessagePayload").into()),
            _ => Err(InvalidMessage::InvalidContentType.into()),
        }
    }

    /// As rustls judges alerts: one of an unknown level ends the session, and a warning does so in TLS 1.3 unless it says that the user has
    /// cancelled.
    fn hear_alert(&mut self, level: u8, description: AlertDescription) -> Result<bool, Error> {
        let is_known = matches!(level, WARNING | FATAL);
        let is_idle = level == WARNING && (!self.is_tls13() || description == AlertDescription::UserCanceled);
        match description {
            AlertDescription::CloseNotify if is_known => Ok(true),
            _ if is_idle => self.note_idle(),
            _ => Err(Error::AlertReceived(description)),
        }
    }

    /// Length of the first handshake message; `None`: it is not whole.
    fn message_bytes(&self) -> Result<Option<usize>, Error> {
        let Some([_, high, middle, low]) = self.message.first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(InvalidMessage::HandshakePayloadTooLarge.into());
        }
        Ok(Some(MESSAGE_HEAD_BYTES + length).filter(|whole| *whole <= self.message.len()))
    }

    fn hear_message(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match (kind, content, self.is_tls13()) {
            (NEW_SESSION_TICKET, _, true) => {
                self.note_idle()?;
                self.keep_ticket(content)
            }
            (KEY_UPDATE, [asked @ 0..=1], true) => {
                if !self.message.is_empty() {
                    return Err(PeerMisbehaved::KeyEpochWithPendingFragment.into());
                }
                self.note_idle()?;
                if let Some(successor) = &mut self.successor {
                    self.open = Keys::new(successor.update_rx_secret()?, true)?;
                }
                if *asked == 1 { self.renew_seal(out) } else { Ok(()) }
            }
            (KEY_UPDATE, _, true) => Err(InvalidMessage::InvalidKeyUpdate.into()),
            (HELLO_REQUEST, [], false) => {
                self.note_idle()?;
                self.seal.seal(ALERT, &[WARNING, AlertDescription::NoRenegotiation.into()], out)
            }
            _ => Err(InvalidMessage::UnexpectedMessage("handshake message after the handshake").into()),
        }
    }

    /// A connection that stands for a new client keeps no ticket.
    fn keep_ticket(&mut self, content: &[u8]) -> Result<(), Error> {
        if let (Some(count), Some(successor)) = (&mut self.ticket_count, &mut self.successor) {
            successor.handle_new_session_ticket(content)?;
            *count += 1;
        }
        Ok(())
    }

    /// From the next record on new keys seal (RFC 8446 4.6.3); TLS 1.2 goes on with the old ones.
    fn renew_seal(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(successor) = &mut self.successor else { return Ok(()) };
        self.seal.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], out)?;
        self.seal = Keys::new(successor.update_tx_secret()?, true)?;
        Ok(())
    }

    /// Counts records that hold nothing: each costs its peer little and us the work of opening it.
    fn note_empty(&mut self) -> Result<(), Error> {
        self.empty_count += 1;
        if self.empty_count > EMPTY_COUNT_MAX {
            return Err(Error::General("too many consecutive empty records".to_owned()));
        }
        Ok(())
    }

    /// Counts what asks for nothing, so that a peer cannot send it for ever.
    fn note_idle(&mut self) -> Result<bool, Error> {
        self.idle_count += 1;
        if self.idle_count > IDLE_COUNT_MAX {
            return Err(PeerMisbehaved::TooManyWarningAlertsReceived.into());
        }
        Ok(false)
    }
}

fn seal_count_max(suite: SupportedCipherSuite) -> u64 {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
        SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
    }
}

/// Levels of alerts (RFC 8446 6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// Kinds of handshake messages that come after the handshake (RFC 8446 4, RFC 5246 7.4.1.1).
const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

/// A handshake message's kind and length.
const MESSAGE_HEAD_BYTES: usize = 4;

/// The largest handshake message that is read, as in rustls.
const MESSAGE_BYTES_MAX: usize = 0xffff;

/// Space for a session's first read, and of those to come where records are small.
const INCOMING_BYTES_MIN: usize = 4096;

/// Space for the largest chain of certificates that rustls takes, and more.
const INCOMING_BYTES_MAX: usize = 1 << 17;

/// Space that a session keeps for what it writes: most requests fit.
const OUTGOING_BYTES_KEPT: usize = 4096;

/// Tickets, key updates and warnings on one connection: a server that renews its keys every 2^24 records makes a trillion with these.
const IDLE_COUNT_MAX: u32 = 1 << 16;

/// Records without data in a row, as in BoringSSL and rustls: peers that send them on purpose, against attacks on old ciphers, send one at a time.
const EMPTY_COUNT_MAX: u32 = 32;

#[cfg(test)]
mod tests;
