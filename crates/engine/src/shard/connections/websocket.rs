//! A connection that speaks WebSocket: its codec, and what its user has on it. Data only: `messages` moves bytes.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use squall_plan::limits::WEBSOCKET_MESSAGE_BYTES_MAX;
use squall_wire::ws::deflate::Params;
use squall_wire::ws::{Decoder, Inbox, Outbox, WebSocketRole};

/// What a connection has that speaks WebSocket.
#[derive(Debug)]
pub(in crate::shard) struct WebSocket {
    pub(in crate::shard) decoder: Decoder,
    pub(in crate::shard) inbox: Inbox,
    pub(in crate::shard) outbox: Outbox,
    /// A message has come in part.
    pub(in crate::shard) is_mid_message: bool,
    /// Both ends keep a window of what was sent: a parked connection could not.
    pub(in crate::shard) is_compressed: bool,
    /// Our close frame has gone out; the peer's is awaited.
    pub(in crate::shard) is_closing: bool,
    /// Nothing is to be read of it for now.
    pub(in crate::shard) is_paused: bool,
    /// Of what waits to be sent, at most so many bytes are pongs.
    pub(in crate::shard) pong_bytes: usize,
    /// A driver's messages that the socket has not taken.
    pub(in crate::shard) unsent: Option<Box<UnsentMessages>>,
    /// How it was closed has been counted.
    pub(in crate::shard) is_noted: bool,
    pub(in crate::shard) talk: Talk,
}

/// Messages that the socket has not taken: each counts until it is gone as a whole.
#[derive(Debug, Default)]
pub(in crate::shard) struct UnsentMessages {
    /// Where each ends among all bytes that were ever kept for the socket, and its bytes before framing and compression.
    messages: VecDeque<(u64, usize)>,
    bytes: u64,
    /// What the driver knows.
    reported_bytes: u64,
}

impl UnsentMessages {
    pub(in crate::shard) fn add(&mut self, end: u64, bytes: usize) {
        self.messages.push_back((end, bytes));
        self.bytes += bytes as u64;
    }

    /// The socket has taken so much of all that was ever kept for it; what is left, where that is news.
    pub(in crate::shard) fn advance(&mut self, taken_bytes: u64) -> Option<u64> {
        while let Some((_, bytes)) = self.messages.pop_front_if(|(end, _)| *end <= taken_bytes) {
            self.bytes -= bytes as u64;
        }
        (std::mem::replace(&mut self.reported_bytes, self.bytes) != self.bytes).then_some(self.bytes)
    }
}

/// Messages of a connection that a schedule makes.
#[derive(Debug)]
pub(in crate::shard) struct Talk {
    /// Its place among the connections that send.
    pub(in crate::shard) sender_at: Option<u32>,
    /// When each message that waits for the socket was to be sent.
    pub(in crate::shard) to_send: VecDeque<u64>,
    /// Messages whose answer is awaited, the oldest first.
    pub(in crate::shard) unanswered: VecDeque<SentMessage>,
    /// When the next ping is due.
    pub(in crate::shard) ping_at_ns: u64,
}

/// A message whose answer is awaited.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::shard) struct SentMessage {
    pub(in crate::shard) intended_ns: u64,
    pub(in crate::shard) sent_ns: u64,
    /// Where each message differs: what its echo is compared with.
    pub(in crate::shard) digest: MessageDigest,
}

/// A message in 64 bits, so that its echo can be recognised without its bytes. Another message has the same by chance once in 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::shard) struct MessageDigest(u64);

impl MessageDigest {
    pub(in crate::shard) fn of(bytes: &[u8]) -> Self {
        Self(FixedState::default().hash_one(bytes))
    }
}

impl WebSocket {
    /// `params`: the compression that was agreed on.
    pub(in crate::shard) fn new(params: Option<Params>) -> Self {
        let role = WebSocketRole::Client;
        Self {
            decoder: Decoder::new(role, params.is_some()),
            inbox: Inbox::new(WEBSOCKET_MESSAGE_BYTES_MAX, params.map(|params| params.inflater(role))),
            outbox: Outbox::new(params.map(|params| params.deflater(role))),
            is_mid_message: false,
            is_compressed: params.is_some(),
            is_closing: false,
            is_paused: false,
            pong_bytes: 0,
            unsent: None,
            is_noted: false,
            talk: Talk {
                sender_at: None,
                to_send: VecDeque::new(),
                unanswered: VecDeque::new(),
                ping_at_ns: u64::MAX,
            },
        }
    }

    /// Whether nothing of it would be lost if only its socket were kept.
    pub(in crate::shard) fn is_silent(&self) -> bool {
        !self.is_compressed
            && !self.is_mid_message
            && !self.is_closing
            && self.decoder.is_between_frames()
            && self.talk.to_send.is_empty()
            && self.talk.unanswered.is_empty()
    }
}
