//! Streams that a driver holds: commands to them, and what happens on them, by connection and slot.
//!
//! A driver opens one with a [`Call`](super::Call) of a kind other than [`CallKind::Whole`]. The key comes with the event `Open`, or, for a
//! WebSocket, with the end of its opening request; from then on commands name the stream by it. After `Closed` the key means nothing.

use squall_wire::ws::{CloseCode, MessageKind};

use crate::prepare::Offer;
use crate::trouble::Trouble;

/// What becomes of a call's response.
#[derive(Debug, Clone, Default)]
pub(crate) enum CallKind {
    /// It is reported when it is whole.
    #[default]
    Whole,
    /// It is reported as it comes, and its end as that of any call.
    Stream(StreamBody),
    /// It opens a WebSocket: its end is that of the opening request, and what follows belongs to the stream.
    WebSocket(std::rc::Rc<Offer>),
}

/// What a stream sends after its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamBody {
    /// The body of the request, which is whole.
    Whole,
    /// What [`StreamCommand::Extend`] brings, until [`StreamCommand::Finish`]. In HTTP/1.1 the request has `Transfer-Encoding: chunked`.
    #[allow(dead_code, reason = "no module of scripts uses it yet")]
    Grows,
}

/// The name of a stream on its event loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    pub(crate) conn_idx: u32,
    /// Which use of that place it is: connections come and go.
    pub(crate) generation: u32,
    /// 0 for a WebSocket.
    pub(crate) slot: u32,
}

/// What a driver wants of a stream. Commands to one that has ended do nothing.
#[derive(Debug)]
#[allow(dead_code, reason = "no module of scripts has bodies that grow, or pauses streams")]
pub(crate) enum StreamCommand {
    /// More of a body that grows.
    Extend(Vec<u8>),
    /// The body is complete.
    Finish,
    /// No more is to be read for now: the peer has to wait.
    Pause,
    Resume,
    /// A message on a WebSocket.
    Message(MessageKind, Vec<u8>),
    Ping(Vec<u8>),
    /// Closes a WebSocket; the peer's answer ends it.
    Close(CloseCode, String),
}

/// Something happened on a stream.
#[derive(Debug)]
pub(crate) struct StreamReport {
    pub(crate) user: u32,
    /// The call's.
    pub(crate) token: u32,
    pub(crate) key: StreamKey,
    /// When, on the monotonic clock.
    pub(crate) at_ns: u64,
    pub(crate) news: StreamNews,
}

/// What happened on a stream.
#[derive(Debug)]
pub(crate) enum StreamNews {
    /// A connection has taken it: commands reach it from now on.
    Open,
    /// An interim response.
    #[allow(dead_code, reason = "no module of scripts reports it")]
    Interim(u16),
    /// The head of the response: status line and fields as HTTP/1.1 writes them.
    Head(Vec<u8>),
    /// A piece of the response's body.
    Data(Vec<u8>),
    /// Trailer fields.
    #[allow(dead_code, reason = "no module of scripts reports them")]
    Trailers(Vec<(Vec<u8>, Vec<u8>)>),
    /// A whole message.
    Message(MessageKind, Vec<u8>),
    /// A ping, which is answered already.
    Ping,
    Pong(Vec<u8>),
    /// So many bytes of messages wait for the socket.
    Unsent(u64),
    /// The peer's close frame, which is answered already.
    Close(CloseCode, String),
    /// A WebSocket is over: in order, or because of this.
    Closed(Option<Trouble>),
}
