//! One connection slot and the requests in flight on it: data only; the shard moves it from state to state.

use std::collections::VecDeque;
use std::net::SocketAddr;

use squall_wire::Client;
use squall_wire::h1::Decoder;

use crate::driver::Call;
use crate::driver::stream::{CallKind, StreamBody};
use crate::quic::QuicSession;
use crate::shard::connections::carrier::{CarriedStream, Carrier};
use crate::shard::connections::unsent::HeldBytes;
use crate::shard::connections::websocket::WebSocket;
use crate::sys::Fd;
use crate::tls::TlsStream;

/// A slot that holds one connection at a time. Kept small, with all that a plain request does not need in [`ConnCold`]: a hundred of these and
/// their exchanges fit into a first-level cache.
#[derive(Debug)]
pub(in crate::shard) struct Conn {
    pub(in crate::shard) state: ConnState,
    /// Index into the origins; fixed while the slot is not [`ConnState::Vacant`].
    pub(in crate::shard) origin_idx: u32,
    /// Index into the pools; the origin's, unless each user has a pool.
    pub(in crate::shard) pool_idx: u32,
    /// Where its part of the exchange table begins: a place for each slot of a request.
    pub(in crate::shard) first_place: u32,
    /// Counts uses of the slot, so that a late event of an earlier socket is recognised.
    pub(in crate::shard) generation: u32,
    pub(in crate::shard) socket: Option<Fd>,
    pub(in crate::shard) tls: Option<Box<TlsStream>>,
    /// What it speaks, once it is open; an open connection without it carries nothing, and what comes is dropped.
    pub(in crate::shard) client: Option<Client>,
    /// One request waits for it to be ready, in slot 0.
    pub(in crate::shard) has_opener: bool,
    /// What a socket did not take; made when that happens first.
    pub(in crate::shard) held: Option<Box<HeldBytes>>,
    /// It is in the shard's list of connections with something to send.
    pub(in crate::shard) is_listed_unsent: bool,
    /// It takes no new requests, and is closed when its last response is whole.
    pub(in crate::shard) is_retiring: bool,
    /// Responses completed on this connection.
    pub(in crate::shard) served_count: u32,
    /// The last response was large: the next is read head first, so that its body need not be copied.
    pub(in crate::shard) expects_large_body: bool,
    /// epoll reported more than has been read: a FIN may be pending.
    pub(in crate::shard) peer_closed: bool,
    /// What was read last is still in the socket: so many bytes.
    pub(in crate::shard) peeked_bytes: u32,
    /// It is in its pool's list of idle connections (maybe no longer usable: the taker checks).
    pub(in crate::shard) is_listed_idle: bool,
    /// When connecting began.
    pub(in crate::shard) opened_ns: u64,
    pub(in crate::shard) cold: Box<ConnCold>,
}

/// What is read only when a connection opens, fails or ends, or carries streams.
#[derive(Debug, Default)]
pub(in crate::shard) struct ConnCold {
    /// [`Conn::first_place`] while the connection speaks nothing yet; fixed.
    pub(in crate::shard) home_place: u32,
    /// Where it goes, when that is a TCP address.
    pub(in crate::shard) remote: Option<SocketAddr>,
    /// The exchange with a proxy, or for an upgrade, that comes before the connection is open.
    pub(in crate::shard) prelude: Option<Box<PreludeProgress>>,
    /// Connect attempts that failed in a row on this slot.
    pub(in crate::shard) failure_count: u32,
    pub(in crate::shard) refusals: Refusals,
    /// When the TCP connection (and the tunnel) was established.
    pub(in crate::shard) connected_ns: u64,
    /// When the connection was ready for requests.
    pub(in crate::shard) ready_ns: u64,
    /// When the peer last sent anything, where single requests can be given up.
    pub(in crate::shard) heard_ns: u64,
    /// What the TLS handshake has taken on the wire so far.
    pub(in crate::shard) handshake_bytes: HandshakeBytes,
    /// Of a connection that was opened for its own sake: how far it is.
    pub(in crate::shard) stage: SessionStage,
    /// Its handshake was meant to resume a session, and there was none.
    pub(in crate::shard) lacks_ticket: bool,
    /// It takes the place of one that was to be kept, and has ended.
    pub(in crate::shard) is_reopening: bool,
    /// When a ping was sent that is not answered yet; 0: none was.
    pub(in crate::shard) pinged_ns: u64,
    /// The connection itself, where it is one of QUIC: then it has neither a socket of its own nor a TLS session. It is here because all that
    /// it does goes through the endpoint's table of connections, and a connection of TCP should not pay for it.
    pub(in crate::shard) quic: Option<Box<QuicSession>>,
    /// It is HTTP/3 because the origin has announced that.
    pub(in crate::shard) is_alternative: bool,
    /// What closes the TLS session that it had.
    pub(in crate::shard) goodbye: Option<Goodbye>,
    /// Its codec, once it speaks WebSocket.
    pub(in crate::shard) websocket: Option<Box<WebSocket>>,
    /// The WebSockets that it carries, where it is opened for them.
    pub(in crate::shard) carrier: Option<Box<Carrier>>,
    /// The stream that it is, where it is a WebSocket on another connection.
    pub(in crate::shard) carried: Option<CarriedStream>,
    /// The user and the token of the call that opened it, where a driver holds it.
    pub(in crate::shard) held_by: Option<(u32, u32)>,
}

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::shard) struct HandshakeBytes {
    pub(in crate::shard) sent: u64,
    pub(in crate::shard) received: u64,
}

/// How far a connection is that was opened for its own sake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::shard) enum SessionStage {
    /// It is opened, and its request answered.
    #[default]
    Attempt,
    /// It waits for a ticket, so that later handshakes can resume.
    AwaitingTicket,
    /// It is kept open.
    Kept,
}

/// A sealed `close_notify`: 24 bytes in TLS 1.3, at most 31 in TLS 1.2 with AEADs.
#[derive(Debug)]
pub(in crate::shard) struct Goodbye {
    len: u8,
    bytes: [u8; 31],
}

impl Goodbye {
    /// `None`: the session could not seal one.
    pub(in crate::shard) fn new(record: &[u8]) -> Option<Self> {
        let mut goodbye = Self { len: record.len() as u8, bytes: [0; 31] };
        goodbye.bytes.get_mut(..record.len())?.copy_from_slice(record);
        (!record.is_empty()).then_some(goodbye)
    }

    pub(in crate::shard) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The life of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shard) enum ConnState {
    /// No connection.
    Vacant,
    /// TCP connect under way.
    Connecting,
    /// Waiting for the proxy's answer to `CONNECT`.
    Tunnelling,
    /// TLS handshake under way.
    Handshaking,
    /// Ready for requests.
    Open,
}

/// How far the `CONNECT` request, or that for an upgrade, has been written, and its response been read.
#[derive(Debug)]
pub(in crate::shard) struct PreludeProgress {
    pub(in crate::shard) decoder: Decoder,
    pub(in crate::shard) written_bytes: usize,
}

/// Requests in a row whose fields the peer does not accept, with no response between them.
#[derive(Debug, Default)]
pub(in crate::shard) struct Refusals {
    count: u32,
    served_count: u32,
}

/// One request in flight, in one cache line. Times are the monotonic clock's nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(in crate::shard) struct Exchange {
    pub(in crate::shard) request: RequestId,
    /// When the schedule (open model) or its user (closed model) wanted it.
    pub(in crate::shard) intended_ns: u64,
    /// When a connection took it.
    pub(in crate::shard) assigned_ns: u64,
    /// When its first byte was written.
    pub(in crate::shard) start_ns: u64,
    /// When its last byte was written.
    pub(in crate::shard) sent_ns: u64,
    /// When the first byte of its response was read.
    pub(in crate::shard) first_ns: u64,
    /// Bytes of its response read so far, above TLS.
    pub(in crate::shard) received_bytes: u64,
    /// Bytes of the request that were written, above TLS.
    pub(in crate::shard) sent_bytes: u64,
    pub(in crate::shard) redirect_count: u8,
    /// How often it was sent before, on connections that died or refused it.
    pub(in crate::shard) retry_count: u8,
    /// It is the first request on its connection, so that connecting is part of its story.
    pub(in crate::shard) is_first: bool,
    /// It started in the warm-up.
    pub(in crate::shard) is_warmup: bool,
}

/// A request: one of the plan's, or one made at run time (a redirect).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::shard) struct RequestId(pub(in crate::shard) u32);

/// A call in flight.
pub(in crate::shard) struct CallInFlight {
    pub(in crate::shard) call: Call,
    pub(in crate::shard) pool_idx: u32,
    /// Of a body that grows, what is to be sent.
    pub(in crate::shard) outgoing: Outgoing,
}

/// The part of a growing body that has not been sent.
#[derive(Debug, Default)]
pub(in crate::shard) struct Outgoing {
    pub(in crate::shard) bytes: Vec<u8>,
    /// Where in the body they begin.
    pub(in crate::shard) begin: u64,
    pub(in crate::shard) is_finished: bool,
}

impl CallInFlight {
    /// Whether the body of its request comes in pieces.
    pub(in crate::shard) fn has_growing_body(&self) -> bool {
        matches!(self.call.kind, CallKind::Stream(StreamBody::Grows))
    }

    pub(in crate::shard) fn timeout_ns(&self) -> u64 {
        self.call.request.timeout.as_nanos() as u64
    }
}

/// The connections to one origin; where a driver decides, those of one user.
#[derive(Debug)]
pub(in crate::shard) struct Pool {
    /// Whose connections they are, where a driver decides.
    pub(in crate::shard) user: Option<u32>,
    /// Index into the origins.
    pub(in crate::shard) origin_idx: u32,
    /// Open connections with a free slot, the most recently used last.
    pub(in crate::shard) idle: Vec<u32>,
    /// Slots without a connection that may open one.
    pub(in crate::shard) vacant: Vec<u32>,
    /// Requests in order of their intended start.
    pub(in crate::shard) waiting: VecDeque<Exchange>,
    /// Slots made so far, with a connection or without.
    pub(in crate::shard) slots: Vec<u32>,
    /// As many connections as requests are open in it.
    pub(in crate::shard) is_unlimited: bool,
}

impl Pool {
    pub(in crate::shard) const fn new(origin_idx: u32, user: Option<u32>) -> Self {
        Self {
            user,
            origin_idx,
            idle: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            slots: Vec::new(),
            is_unlimited: false,
        }
    }
}

impl Exchange {
    pub(in crate::shard) const fn is_retry(&self) -> bool {
        self.retry_count > 0
    }

    /// When its first byte was written; before that, when a connection took it.
    pub(in crate::shard) const fn begin_ns(&self) -> u64 {
        if self.start_ns == 0 { self.assigned_ns } else { self.start_ns }
    }

    /// The same request, to be sent again from the beginning.
    pub(in crate::shard) fn again(self) -> Self {
        Self {
            retry_count: self.retry_count + 1,
            start_ns: 0,
            sent_ns: 0,
            first_ns: 0,
            received_bytes: 0,
            ..self
        }
    }

    /// Bytes of its response have come, whatever they turn out to be.
    pub(in crate::shard) fn note_first_byte(&mut self, now_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
    }
}

impl Conn {
    pub(in crate::shard) fn new(pool_idx: u32, origin_idx: u32, home_place: u32) -> Self {
        Self {
            state: ConnState::Vacant,
            first_place: home_place,
            origin_idx,
            pool_idx,
            generation: 0,
            socket: None,
            tls: None,
            client: None,
            has_opener: false,
            held: None,
            is_listed_unsent: false,
            is_retiring: false,
            served_count: 0,
            expects_large_body: false,
            peer_closed: false,
            peeked_bytes: 0,
            is_listed_idle: false,
            opened_ns: 0,
            cold: Box::new(ConnCold { home_place, ..ConnCold::default() }),
        }
    }

    /// The slot after its connection: socket and session are gone, and a new generation makes late events of theirs strangers.
    pub(in crate::shard) fn vacated(&self) -> Self {
        let mut vacated = Self::new(self.pool_idx, self.origin_idx, self.cold.home_place);
        vacated.cold.failure_count = self.cold.failure_count;
        Self { generation: self.generation.wrapping_add(1), is_listed_idle: self.is_listed_idle, ..vacated }
    }

    /// Requests in flight.
    pub(in crate::shard) fn in_flight(&self) -> u32 {
        self.client.as_ref().map_or(0, Client::in_flight) + u32::from(self.has_opener)
    }

    /// Whether one more request may be put on it.
    pub(in crate::shard) fn has_free_slot(&self) -> bool {
        !self.is_retiring && self.client.as_ref().is_some_and(|client| client.free_count() > 0)
    }

    /// Whether it is open, or about to be, and will take more requests.
    pub(in crate::shard) fn may_get_streams(&self) -> bool {
        match &self.client {
            None => self.state != ConnState::Vacant,
            Some(client) => !self.is_retiring && !client.is_ending(),
        }
    }

    /// It takes no more requests, and what it still owes, if anything, will not come on it.
    pub(in crate::shard) fn is_over(&self) -> bool {
        let Some(client) = &self.client else { return false };
        let is_ending = client.is_ending();
        client.in_flight() == 0 && (self.is_retiring || is_ending) || is_ending && client.answers_in_order()
    }

    /// Whether anything waits to be written.
    pub(in crate::shard) fn wants_write(&self) -> bool {
        self.is_blocked()
            || self.client.as_ref().is_some_and(Client::wants_write)
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether there are bytes that the socket did not take.
    pub(in crate::shard) fn is_blocked(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.rest.is_empty())
    }

    /// The epoll token of the slot's present use.
    pub(in crate::shard) fn token(&self, conn_idx: usize) -> u64 {
        u64::from(self.generation) << 32 | conn_idx as u64
    }
}

impl Refusals {
    /// The peer did not accept a request's fields; whether that was so for many in a row.
    pub(in crate::shard) fn note(&mut self, served_count: u32) -> bool {
        self.count = if self.served_count == served_count { self.count + 1 } else { 1 };
        self.served_count = served_count;
        self.count >= REFUSAL_COUNT_MAX
    }
}

impl RequestId {
    /// Ids from here on are made at run time.
    const DYNAMIC: u32 = 1 << 31;

    pub(in crate::shard) fn dynamic(idx: usize) -> Self {
        Self(Self::DYNAMIC | idx as u32)
    }

    /// Index among the requests made at run time.
    pub(in crate::shard) fn dynamic_idx(self) -> Option<usize> {
        (self.0 & Self::DYNAMIC != 0).then_some((self.0 & !Self::DYNAMIC) as usize)
    }
}

/// With 64 bytes for each exchange, a hundred connections fit into 24 of the 32 KiB that a first-level data cache has at least.
#[cfg(not(test))]
const _: () = assert!(size_of::<Conn>() <= 160 && size_of::<Exchange>() == 64);

/// Requests whose fields a peer does not accept in a row before its connection ends.
const REFUSAL_COUNT_MAX: u32 = 8;
