//! One connection slot and the requests in flight on it: data only; the shard moves it from state to state.

use std::collections::VecDeque;
use std::net::SocketAddr;

use squall_wire::h1::Decoder;

use super::h2::Session;
use crate::sys::Fd;
use crate::tls::TlsStream;

/// A slot that holds one connection at a time. Kept small: ten thousand of them are walked in the loop.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) state: State,
    /// Index into the origins; fixed while the slot is not [`State::Vacant`].
    pub(super) origin_idx: u32,
    /// Index into the pools; the origin's, unless each user has a pool.
    pub(super) pool_idx: u32,
    /// Where it goes, when that is a TCP address.
    pub(super) remote: Option<SocketAddr>,
    /// Counts uses of the slot, so that a late event of an earlier socket is recognised.
    pub(super) generation: u32,
    pub(super) socket: Option<Fd>,
    pub(super) tls: Option<Box<TlsStream>>,
    /// HTTP/2, once the connection is open and speaks it; else it is HTTP/1.1, which the next fields are about.
    pub(super) h2: Option<Box<Session>>,
    pub(super) decoder: Decoder,
    /// Requests in flight, oldest first, as a ring in the connection's part of the exchange table.
    pub(super) ring: Ring,
    /// Bytes of the first unsent request (or of the tunnel request) that are written already.
    pub(super) write_offset: u64,
    /// Responses completed on this connection.
    pub(super) served_count: u32,
    /// Connect attempts that failed in a row on this slot.
    pub(super) failure_count: u32,
    /// The last response was large: the next is read head first, so that its body need not be copied.
    pub(super) expects_large_body: bool,
    /// The socket told of more than has been read: the peer's close may be waiting.
    pub(super) peer_closed: bool,
    /// What was read last is still in the socket: so many bytes.
    pub(super) peeked_bytes: u32,
    /// It is in its pool's list of idle connections (maybe no longer usable: the taker checks).
    pub(super) is_listed_idle: bool,
    /// When connecting began.
    pub(super) opened_ns: u64,
    /// When TCP (and the tunnel) stood.
    pub(super) connected_ns: u64,
    /// When the connection was ready for requests.
    pub(super) ready_ns: u64,
}

/// The life of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
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

/// A ring of exchanges. `sent_count <= len`: those at the front have been written whole.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ring {
    head: u32,
    pub(super) len: u32,
    pub(super) sent_count: u32,
}

/// One request in flight. Times are the monotonic clock's nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exchange {
    pub(super) request: RequestId,
    /// When the schedule (open model) or its user (closed model) wanted it.
    pub(super) intended_ns: u64,
    /// When a connection took it.
    pub(super) assigned_ns: u64,
    /// When its first byte was written.
    pub(super) start_ns: u64,
    /// When its last byte was written.
    pub(super) sent_ns: u64,
    /// When the first byte of its response was read.
    pub(super) first_ns: u64,
    /// Bytes of its response read so far, above TLS.
    pub(super) received_bytes: u64,
    /// Bytes of the request that were written, above TLS.
    pub(super) sent_bytes: u64,
    pub(super) redirect_count: u8,
    /// How often it was sent before, on connections that died or refused it.
    pub(super) retry_count: u8,
    /// It is the first request on its connection, so that connecting is part of its story.
    pub(super) is_first: bool,
    /// It started in the warm-up.
    pub(super) is_warmup: bool,
}

/// A request: one of the plan's, or one made at run time (a redirect).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RequestId(pub(super) u32);

/// The connections to one origin; where a driver decides, those of one user.
#[derive(Debug)]
pub(super) struct Pool {
    /// Index into the origins.
    pub(super) origin_idx: u32,
    /// Open connections with room for a request, the most recently used last.
    pub(super) idle: Vec<u32>,
    /// Slots without a connection that may open one.
    pub(super) vacant: Vec<u32>,
    /// Requests in order of their intended start.
    pub(super) waiting: VecDeque<Exchange>,
    /// Slots made so far.
    pub(super) slot_count: u32,
}

impl Pool {
    pub(super) const fn new(origin_idx: u32) -> Self {
        Self { origin_idx, idle: Vec::new(), vacant: Vec::new(), waiting: VecDeque::new(), slot_count: 0 }
    }
}

impl Exchange {
    pub(super) const fn is_retry(&self) -> bool {
        self.retry_count > 0
    }

    /// When its first byte was written; before that, when a connection took it.
    pub(super) const fn begin_ns(&self) -> u64 {
        if self.start_ns == 0 { self.assigned_ns } else { self.start_ns }
    }

    /// The same request, to be sent again from the beginning.
    pub(super) fn again(self) -> Self {
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
    pub(super) fn note_first_byte(&mut self, now_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
    }
}

impl Conn {
    pub(super) const fn new(pool_idx: u32, origin_idx: u32) -> Self {
        Self {
            state: State::Vacant,
            origin_idx,
            pool_idx,
            remote: None,
            generation: 0,
            socket: None,
            tls: None,
            h2: None,
            decoder: Decoder::new(),
            ring: Ring { head: 0, len: 0, sent_count: 0 },
            write_offset: 0,
            served_count: 0,
            failure_count: 0,
            expects_large_body: false,
            peer_closed: false,
            peeked_bytes: 0,
            is_listed_idle: false,
            opened_ns: 0,
            connected_ns: 0,
            ready_ns: 0,
        }
    }

    /// Requests in flight.
    pub(super) fn in_flight(&self) -> u32 {
        match &self.h2 {
            None => self.ring.len,
            Some(session) => session.client.in_flight(),
        }
    }

    /// The epoll token of the slot's present use.
    pub(super) fn token(&self, conn_idx: usize) -> u64 {
        u64::from(self.generation) << 32 | conn_idx as u64
    }
}

impl Ring {
    /// Place in the exchange table of the `nth` oldest request of connection `conn_idx`.
    pub(super) fn place(&self, conn_idx: usize, stride: u32, nth: u32) -> usize {
        conn_idx * stride as usize + ((self.head + nth) % stride) as usize
    }

    /// Forgets the oldest request.
    pub(super) fn pop(&mut self, stride: u32) {
        self.head = (self.head + 1) % stride;
        self.len -= 1;
        self.sent_count = self.sent_count.saturating_sub(1);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl RequestId {
    /// Ids from here on are made at run time.
    const DYNAMIC: u32 = 1 << 31;

    pub(super) fn dynamic(idx: usize) -> Self {
        Self(Self::DYNAMIC | idx as u32)
    }

    /// Index among the requests made at run time.
    pub(super) fn dynamic_idx(self) -> Option<usize> {
        (self.0 & Self::DYNAMIC != 0).then_some((self.0 & !Self::DYNAMIC) as usize)
    }
}
