//! One connection's place: data only; the shard moves it from state to state.

use squall_wire::h1::Decoder;
use squall_wire::h2::IdleClient;

use super::tls::TlsSession;
use crate::sys::Fd;

/// A place that holds one connection at a time. Kept small: a silent connection costs little else.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    /// Index into the courses; of the connection that it holds.
    pub(super) course_idx: u32,
    /// Counts uses of the place, so that a late event of an earlier socket is recognised.
    pub(super) generation: u32,
    /// Connects that failed in a row; of connections to be kept also those that ended soon.
    pub(super) failure_count: u16,
    pub(super) marks: Marks,
    pub(super) socket: Option<Fd>,
    /// What a connection needs while it has something to say.
    pub(super) talk: Option<Box<Talk>>,
    /// What closes a TLS connection whose session is gone, sealed while it was there.
    pub(super) goodbye: Option<Box<Goodbye>>,
    /// When the schedule, or its user, wanted it.
    pub(super) intended_ns: u64,
    /// When connecting began.
    pub(super) opened_ns: u64,
    /// When TCP stood.
    pub(super) connected_ns: u64,
    /// When the connection was ready: with TLS, after the handshake.
    pub(super) ready_ns: u64,
}

/// Small facts about a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    /// It was wanted in the warm-up.
    pub(super) is_warmup: bool,
    /// How it ended as an attempt is counted; what follows is its life.
    pub(super) is_settled: bool,
    /// It is among the open connections.
    pub(super) is_open: bool,
    /// Its handshake is meant to resume a session.
    pub(super) resumes: bool,
    /// It was meant to, and there was none.
    pub(super) lacks_ticket: bool,
    /// It takes the place of one that was to be kept, and has ended.
    pub(super) is_reopening: bool,
    /// The place held a connection that stood and has ended.
    pub(super) has_stood: bool,
    /// epoll reported more than has been read: a FIN may be pending.
    pub(super) peer_closed: bool,
}

/// The life of a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SlotState {
    /// No connection; maybe a pause before the next.
    #[default]
    Vacant,
    /// TCP connect under way.
    Connecting,
    /// TLS handshake under way.
    Handshaking,
    /// Waiting for the server's HTTP/2 settings.
    Greeting,
    /// Waiting for the response to the request that follows the handshake.
    Requesting,
    /// Waiting for a ticket, so that later handshakes can resume.
    AwaitingTicket,
    /// Kept open.
    Kept,
}

/// What a connection needs while it has something to say.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) session: Option<TlsSession>,
    /// Bytes that the socket has not taken yet.
    pub(super) unsent: Vec<u8>,
    /// The request, or the ping, that is not answered yet.
    pub(super) exchange: Option<SlotExchange>,
    /// Bytes written and read by the handshake.
    pub(super) handshake_bytes_sent: u64,
    pub(super) handshake_bytes_received: u64,
    /// Without requests, this is what HTTP/2 needs.
    pub(super) idle: IdleClient,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct SlotExchange {
    pub(super) decoder: Decoder,
    /// When sending began.
    pub(super) start_ns: u64,
    /// When the last byte was written.
    pub(super) sent_ns: u64,
    /// When the first byte of the response was read; 0: not yet.
    pub(super) first_ns: u64,
    pub(super) received_bytes: u64,
}

/// A sealed `close_notify`: 24 bytes in TLS 1.3, at most 31 in TLS 1.2 with AEADs.
#[derive(Debug)]
pub(super) struct Goodbye {
    pub(super) len: u8,
    pub(super) bytes: [u8; 31],
}

impl Slot {
    /// The epoll token of the place's present use.
    pub(super) fn token(&self, slot_idx: usize) -> u64 {
        u64::from(self.generation) << 32 | slot_idx as u64
    }

    /// The TLS session, where there is one.
    pub(super) fn session(&mut self) -> Option<&mut TlsSession> {
        self.talk.as_mut()?.session.as_mut()
    }

    /// What a connection that talks has; made where it is not there.
    pub(super) fn talk(&mut self) -> &mut Talk {
        self.talk.get_or_insert_default()
    }
}

impl SlotExchange {
    pub(super) fn new(decoder: Decoder, start_ns: u64) -> Self {
        Self { decoder, start_ns, sent_ns: start_ns, first_ns: 0, received_bytes: 0 }
    }
}
