//! The connections of one event loop, and the requests in flight on them.
//!
//! Owns: sockets, pools, the exchange table, the poller, the buffers of reads and writes. Never: decides what starts when.
//! Its methods are in `open` (connect, tunnel, TLS), `quic` and `http3` (all that differs where datagrams carry a connection), `alternative` (HTTP/3 that an origin announces), `park` (kept and silent), `carried` (WebSockets that are streams), `events`, `send`, `receive` and `peek` (bytes), `streams` (requests on an open connection), `pool`
//! (which connection a request gets) and `settle` (how each request ends).

mod acks;
mod alternative;
mod calls;
mod carried;
pub(super) mod carrier;
pub(super) mod conn;
mod events;
mod held;
mod http3;
mod messages;
mod open;
mod park;
pub(super) mod parked;
mod peek;
pub(super) mod pool;
mod quic;
mod receive;
mod send;
mod settle;
mod streams;
mod unsent;
pub(super) mod websocket;

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use squall_plan::{CloseMode, ShardPart, When};
use squall_wire::{HeadCaches, Version};

use crate::dial::Dialer;
use crate::driver::Port;
use crate::pace::SplitMix;
use crate::prepare::{Origin, Prepared, PreparedRequest};
use crate::quic::QuicEndpoint;
use crate::shard::connections::acks::AckTrial;
use crate::shard::connections::alternative::Alternative;
use crate::shard::connections::conn::{CallInFlight, Conn, Exchange, Pool, RequestId};
use crate::shard::connections::parked::ParkedTable;
use crate::sys::{Poller, nanoseconds};
use crate::{Control, Error};

/// The connections of one event loop.
pub(in crate::shard) struct Connections {
    pub(in crate::shard) prepared: Arc<Prepared>,
    pub(in crate::shard) control: Control,
    pub(in crate::shard) limits: Limits,
    pub(in crate::shard) poller: Poller,
    pub(in crate::shard) conns: Vec<Conn>,
    /// `Limits::stride` places for each connection, and more for those of HTTP/2 where it carries more.
    pub(in crate::shard) exchanges: Vec<Exchange>,
    /// Beginnings of parts with `Limits::h2_stride` places that no connection has now.
    pub(in crate::shard) wide_parts: Vec<u32>,
    /// When each slot's present state has lasted too long; apart from the slots because all are looked at often.
    pub(in crate::shard) deadlines: Vec<u64>,
    /// Connections that are kept and silent.
    pub(in crate::shard) parked: ParkedTable,
    /// One pool for each origin, or for each user and origin where a driver decides.
    pub(in crate::shard) pools: Vec<Pool>,
    pub(in crate::shard) origin_states: Vec<OriginState>,
    pub(in crate::shard) dialer: Dialer,
    /// Sockets and timers of QUIC connections; made with the first of them.
    pub(in crate::shard) quic: Option<Box<QuicEndpoint>>,
    /// When its connections move to another local address next; `u64::MAX`: never.
    next_migration_ns: u64,
    pub(in crate::shard) turn: TurnLists,
    pub(in crate::shard) made: MadeRequests,
    pub(in crate::shard) io: IoBuffers,
    pub(in crate::shard) counts: Counts,
    /// Masking keys of WebSockets.
    pub(in crate::shard) masks: SplitMix,
    /// Of the keys of their opening handshakes.
    pub(in crate::shard) handshake_seed: u64,
    /// WebSockets are streams of connections in HTTP/2 or HTTP/3, where their origin is spoken to in that.
    pub(in crate::shard) carries: bool,
    /// A response came in part: the rest is not left waiting for a tick.
    pub(in crate::shard) is_mid_response: bool,
    pub(in crate::shard) now_ns: u64,
}

/// What is known of an origin.
pub(in crate::shard) struct OriginState {
    /// What it has spoken, once a connection to it has been open.
    pub(in crate::shard) version: Option<Version>,
    /// How its responses are acknowledged.
    pub(in crate::shard) acks: AckTrial,
    /// Connections to it that may have streams left for WebSockets.
    carriers: Vec<u32>,
    /// What it has announced, where that is followed.
    alternative: Option<Box<Alternative>>,
}

/// Connections that have something to do in this turn of the loop, or the next.
#[derive(Default)]
pub(in crate::shard) struct TurnLists {
    /// Their response came, or they failed: their users go next.
    pub(in crate::shard) ready: Vec<u32>,
    /// Redirects to follow: sent once the responses of the turn are read, as a send that fails closes the connection.
    pub(in crate::shard) hops: Vec<Exchange>,
    /// They had more to read or to write than one turn allows.
    pub(in crate::shard) unfinished: Vec<u32>,
    /// Their response is still in the socket, until the turn's requests are written.
    pub(in crate::shard) peeked: Vec<u32>,
    /// They have something to send, which goes out at the end of the turn.
    pub(in crate::shard) unsent: Vec<u32>,
}

/// Requests made at run time.
#[derive(Default)]
pub(in crate::shard) struct MadeRequests {
    pub(in crate::shard) requests: Vec<Option<Rc<PreparedRequest>>>,
    /// Free places among them.
    pub(in crate::shard) free: Vec<usize>,
    /// Of those that a driver has made: what it wants of each.
    pub(in crate::shard) calls: Vec<Option<CallInFlight>>,
    /// What a driver asks for, and how many bytes its users' connections have carried.
    pub(in crate::shard) port: Port,
}

/// How many connections and requests are in which state.
#[derive(Default)]
pub(in crate::shard) struct Counts {
    /// Requests that wait for a connection, in all pools.
    pub(in crate::shard) waiting: u64,
    /// Requests that were started and have not ended.
    pub(in crate::shard) open: u32,
    /// Connections that are not open yet.
    pub(in crate::shard) opening: u32,
    /// Connections whose opening began in this turn of the loop.
    pub(in crate::shard) opened_this_turn: u32,
}

/// Buffers shared by all connections of a shard: nothing is kept per connection.
pub(in crate::shard) struct IoBuffers {
    pub(in crate::shard) read: Vec<u8>,
    /// Never touched: the kernel only wants its length.
    pub(in crate::shard) discard: Vec<u8>,
    pub(in crate::shard) head_caches: HeadCaches,
    /// What one connection sends in one go, and the slots of the requests that end in it.
    pub(in crate::shard) out: Vec<u8>,
    pub(in crate::shard) ending: Vec<u32>,
    /// Where heads are put that QUIC keeps until they are acknowledged.
    pub(in crate::shard) heads: BytesMut,
    /// What a WebSocket's stream has brought: kept for its capacity.
    carried: Vec<u8>,
    /// What a stream of QUIC has brought: kept for its capacity.
    pub(in crate::shard) parts: Vec<Bytes>,
}

/// What a load allows its connections.
pub(in crate::shard) struct Limits {
    pub(in crate::shard) warm_until_ns: u64,
    pub(in crate::shard) timeout_ns: u64,
    pub(in crate::shard) connect_timeout_ns: u64,
    pub(in crate::shard) age_max_ns: u64,
    pub(in crate::shard) served_max: u32,
    /// Requests in flight on one HTTP/1.1 connection.
    pub(in crate::shard) depth: u16,
    /// Streams of one HTTP/2 connection.
    pub(in crate::shard) stream_count: u32,
    /// Places for requests in flight that each connection has.
    pub(in crate::shard) stride: u32,
    /// The same once it speaks HTTP/2. It finds a place by the stream's number, which wants a power of two.
    pub(in crate::shard) h2_stride: u32,
    /// Slots per origin.
    pub(in crate::shard) slot_count_max: u32,
    /// Connections whose opening begins in one turn of the loop.
    pub(in crate::shard) open_per_turn_max: u32,
    /// A closed model's slot rests after a failed connect; an open model's arrivals are all tried.
    pub(in crate::shard) rests_after_failure: bool,
    /// A short write may follow another that is not acknowledged yet.
    pub(in crate::shard) writes_twice: bool,
    /// How connections are closed from our side.
    pub(in crate::shard) close: CloseMode,
}

impl Connections {
    /// None yet; `start_ns`: the loop's start on the monotonic clock.
    pub(in crate::shard) fn new(
        prepared: Arc<Prepared>,
        part: &ShardPart,
        (start_ns, warmup_ns): (u64, u64),
        control: Control,
    ) -> Result<Self, Error> {
        let limits = Limits::new(&prepared, part, start_ns + warmup_ns);
        let origin_count = prepared.origins.len();
        let mut dialer = Dialer::new(&prepared.load, part);
        prepared.origins.iter().for_each(|origin| dialer.add(&origin.dial, &prepared.names));
        let os = |source| Error::Os { what: "create an epoll instance", source };
        let poller = match &prepared.sessions {
            None => Poller::new(),
            Some(_) => Poller::with_capacity(HANDSHAKES_PER_TURN),
        };
        let is_alone = limits.stride == 1 && prepared.sessions.is_none() && prepared.streams.is_none();
        let mut masks = SplitMix::new(start_ns ^ u64::from(part.shard_idx));
        let handshake_seed = masks.next();
        Ok(Self {
            poller: poller.map_err(os)?,
            conns: Vec::new(),
            exchanges: Vec::new(),
            wide_parts: Vec::new(),
            origin_states: prepared.origins.iter().map(|origin| OriginState::new(origin, is_alone)).collect(),
            deadlines: Vec::new(),
            parked: ParkedTable::default(),
            pools: (0..origin_count as u32)
                .map(|origin_idx| Pool {
                    is_unlimited: prepared.origins[origin_idx as usize].key.is_held,
                    ..Pool::new(origin_idx, None)
                })
                .collect(),
            dialer,
            quic: None,
            next_migration_ns: u64::MAX,
            turn: TurnLists::default(),
            made: MadeRequests::default(),
            io: IoBuffers::new(),
            counts: Counts::default(),
            masks,
            handshake_seed,
            carries: prepared.carries_websockets(),
            is_mid_response: false,
            now_ns: start_ns,
            prepared,
            control,
            limits,
        })
    }

    pub(in crate::shard) fn waiting_count(&self) -> u64 {
        self.counts.waiting
    }

    pub(in crate::shard) fn request(&self, id: RequestId) -> &PreparedRequest {
        request_of(&self.prepared, &self.made.requests, id)
    }
}

/// The request of an id, for callers that hold other parts of the shard.
pub(in crate::shard) fn request_of<'a>(
    prepared: &'a Prepared,
    dynamic: &'a [Option<Rc<PreparedRequest>>],
    id: RequestId,
) -> &'a PreparedRequest {
    match id.dynamic_idx() {
        None => &prepared.requests[id.0 as usize],
        Some(idx) => {
            dynamic[idx].as_deref().expect("a request made at run time lives as long as its exchange")
        }
    }
}

impl OriginState {
    /// `is_alone`: whether a read holds one response.
    pub(in crate::shard) fn new(origin: &Origin, is_alone: bool) -> Self {
        let alternative = origin.alternative.is_some().then(Box::default);
        Self { version: None, acks: AckTrial::new(is_alone), carriers: Vec::new(), alternative }
    }
}

impl IoBuffers {
    fn new() -> Self {
        Self {
            read: vec![0; READ_BYTES],
            discard: vec![0; DISCARD_BYTES],
            head_caches: HeadCaches::default(),
            out: Vec::new(),
            ending: Vec::new(),
            carried: Vec::new(),
            heads: BytesMut::with_capacity(HEADS_BYTES),
            parts: Vec::new(),
        }
    }
}

impl Limits {
    fn new(prepared: &Prepared, part: &ShardPart, warm_until_ns: u64) -> Self {
        let policy = &prepared.load.connections;
        let stride = stride(prepared);
        // A WebSocket has its own place, and its stream one on the connection that carries it.
        let stream_count = match prepared.carries_websockets() {
            true => policy.stream_count.get(),
            false => policy.stream_count.get().min(stride),
        };
        let conduct = prepared.sessions.as_ref().map(|sessions| sessions.conduct);
        Self {
            warm_until_ns,
            timeout_ns: nanoseconds(prepared.http().timeout),
            connect_timeout_ns: nanoseconds(policy.connect_timeout),
            age_max_ns: policy.age_max.map_or(u64::MAX, nanoseconds),
            served_max: policy.request_count_max.map_or(u32::MAX, std::num::NonZero::get),
            depth: u16::try_from(policy.pipeline_depth.get()).unwrap_or(u16::MAX),
            // Origins that were not known at the start have no more places than HTTP/1.1 needs.
            stream_count,
            stride,
            h2_stride: stride.max(stream_count.next_power_of_two()),
            slot_count_max: part.connection_count_max(&prepared.load.when),
            open_per_turn_max: if conduct.is_some() { HANDSHAKES_OPEN_PER_TURN } else { OPEN_PER_TURN_MAX },
            // Where connections are the load, their schedule decides that.
            rests_after_failure: matches!(prepared.load.when, When::Closed { .. }) && conduct.is_none(),
            writes_twice: conduct.is_none_or(|conduct| conduct.writes_twice()),
            close: conduct.map_or(policy.close, |conduct| conduct.close),
        }
    }

    /// Requests that a driver decides: so many connections of one user go to one origin, or one with as many streams.
    pub(in crate::shard) fn allow_per_user(&mut self, count: u32) {
        self.slot_count_max = count;
        self.stream_count = count.min(DRIVEN_STREAM_COUNT_MAX);
        self.h2_stride = self.stream_count.next_power_of_two();
        self.rests_after_failure = false;
    }
}

/// Requests in flight on one connection, before its version is known.
pub(in crate::shard) fn stride(prepared: &Prepared) -> u32 {
    match prepared.may_speak_h2() {
        true => prepared.requests_per_connection().next_power_of_two(),
        false => prepared.load.connections.pipeline_depth.get(),
    }
}

/// Connections whose opening begins in one turn of the loop: more would keep the responses of the others waiting.
const OPEN_PER_TURN_MAX: u32 = 64;

/// The same where they are the load: the first of them is seen to be established only after the last was begun, some 13 us each.
const HANDSHAKES_OPEN_PER_TURN: u32 = 16;

/// Events handled in one turn of such a load: each may be a handshake of 100 us and more.
const HANDSHAKES_PER_TURN: usize = 64;

/// One read takes at most this much; larger unread bodies are dropped inside the kernel.
const READ_BYTES: usize = 64 * 1024;

/// Streams of one HTTP/2 connection of a driven load: what Go's servers allow, and more than most scripts ask for at a time.
const DRIVEN_STREAM_COUNT_MAX: u32 = 256;

/// Heads that share their memory on QUIC: some hundred. One whose acknowledgement is late keeps all of it.
const HEADS_BYTES: usize = 16 * 1024;

/// Bytes of a body dropped inside the kernel in one go.
const DISCARD_BYTES: usize = 4 << 20;
