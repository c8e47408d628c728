//! One surface for every version of HTTP: what a connection's client can do, whichever it speaks.
//!
//! Owns: what the versions have in common. Never: sockets, the clock, bodies.

use crate::h1::{self, DecodeError, RequestKind, Response, Sink};
use crate::h2::{self, FieldBlock, FieldTable, HeaderBytes};
use crate::h3::{self, FieldSection};
use crate::{ErrorCode, StreamFailure};

/// The client's side of one connection.
///
/// A request takes a slot with [`reserve`](Self::reserve), which names it from then on; it leaves with [`start`](Self::start) and as many
/// [`next_chunk`](Self::next_chunk) as its body needs; [`decode`](Self::decode) reports what came of it.
///
/// A stream that lasts longer is the same in more steps. [`start_stream`](Self::start_stream) sends the head; the body grows with
/// [`extend`](Self::extend) until [`finish`](Self::finish), and [`unsent_bytes`](Self::unsent_bytes) says how much of it the peer has not allowed
/// yet. The response is reported as it comes: interim responses, head, data and trailers to the [`Sink`], and every piece as
/// [`Event::Received`]. A consumer that cannot keep up [pauses](Self::pause) it, and then the peer has to wait.
#[derive(Debug)]
pub enum Client {
    /// HTTP/1.1: responses come in the order of their requests.
    H1(h1::Client),
    /// HTTP/2: a stream for each request.
    H2(Box<h2::Client>),
    /// HTTP/3: a stream of QUIC for each request. Where bytes come and go by stream, [`Client::quic`] and [`Client::decode_stream`] replace
    /// [`Client::write_control`] and [`Client::decode`].
    H3(Box<h3::Client>),
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, and the 1.0 of a server that speaks no better.
    H1,
    /// HTTP/2.
    H2,
    /// HTTP/3.
    H3,
}

/// Heads that were decoded before, so that an equal one need not be decoded again. One for each event loop.
#[derive(Debug, Default)]
pub struct HeadCaches {
    /// Of HTTP/1.1.
    pub h1: h1::HeadCache,
    /// Of HTTP/2.
    pub h2: h2::HeadCache,
    /// Of HTTP/3.
    pub h3: h3::HeadCache,
}

/// A request to be started, in every version that it may be sent in.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its head as HTTP/1.1 writes it.
    pub head: &'a [u8],
    /// Its fields as HTTP/2 sends them.
    pub fields: Option<&'a FieldBlock>,
    /// Its fields as HTTP/3 sends them.
    pub section: Option<&'a FieldSection>,
    /// What was asked, as far as it decides how the response is framed.
    pub kind: RequestKind,
    /// Length of its body; 0: none.
    pub body_bytes: u64,
}

/// A piece of a request's body: exactly these bytes must be sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The request's slot.
    pub slot: u32,
    /// Where the piece begins in the body.
    pub offset: u64,
    /// Its length.
    pub bytes: usize,
    /// Nothing follows it.
    pub is_last: bool,
    /// What must follow the piece to frame it.
    pub tail: &'static [u8],
}

/// What one call has decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were read. Less than all only when there is an event.
    pub consumed: usize,
    /// What happened.
    pub event: Option<Event>,
}

/// What the bytes of a server came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Bytes of a response came.
    Received {
        /// The request's slot; free again when the response is whole.
        slot: u32,
        /// How many, frame heads and padding included.
        bytes: u32,
        /// The response, when it is whole.
        response: Option<Response>,
    },
    /// A request ends without a response. Its slot is free again.
    Failed {
        /// Its slot.
        slot: u32,
        /// Why.
        failure: StreamFailure,
    },
    /// The peer allows more, or fewer, requests than before.
    Allowance,
    /// The peer has answered a [`ping`](Client::ping).
    Pong,
    /// The peer takes no new requests; see [`Client::next_unprocessed`].
    GoingAway,
}

/// Why a connection is of no further use.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[error(transparent)]
pub enum ProtocolError {
    /// Of HTTP/1.1.
    H1(#[from] DecodeError),
    /// Of HTTP/2; the peer should be sent its code in GOAWAY.
    H2(#[from] h2::Error),
    /// Of HTTP/3; the connection should be closed with its code.
    H3(#[from] h3::Error),
}

impl ProtocolError {
    /// The code to send before the connection is closed, if the protocol has one.
    pub const fn goodbye_code(&self) -> Option<ErrorCode> {
        match self {
            Self::H1(_) => None,
            Self::H2(error) => Some(error.code),
            Self::H3(error) => Some(error.code),
        }
    }
}

impl Client {
    /// What the connection speaks.
    pub const fn version(&self) -> Version {
        match self {
            Self::H1(_) => Version::H1,
            Self::H2(_) => Version::H2,
            Self::H3(_) => Version::H3,
        }
    }

    /// How many more requests may be reserved now.
    pub fn free_count(&self) -> u32 {
        match self {
            Self::H1(client) => client.free_count(),
            Self::H2(client) => client.free_count(),
            Self::H3(client) => client.free_count(),
        }
    }

    /// Requests that have a slot.
    pub const fn in_flight(&self) -> u32 {
        match self {
            Self::H1(client) => client.in_flight(),
            Self::H2(client) => client.in_flight(),
            Self::H3(client) => client.in_flight(),
        }
    }

    /// No request will get a slot any more.
    pub fn is_ending(&self) -> bool {
        match self {
            Self::H1(client) => client.is_ending(),
            Self::H2(client) => client.is_ending(),
            Self::H3(client) => client.is_ending(),
        }
    }

    /// Gives a request a slot; `None`: all are taken. Requests are started in the order in which they were reserved.
    pub fn reserve(&mut self) -> Option<u32> {
        match self {
            Self::H1(client) => client.reserve(),
            Self::H2(client) => client.reserve(),
            Self::H3(client) => client.reserve(),
        }
    }

    /// The request that may be started now.
    pub fn next_reserved(&self) -> Option<u32> {
        match self {
            Self::H1(client) => client.next_reserved(),
            Self::H2(client) => client.next_reserved(),
            Self::H3(client) => client.next_reserved(),
        }
    }

    /// Whether the peer takes header lists as large as this request's (RFC 9113 10.5.1, RFC 9114 4.2.2).
    pub fn takes(&self, request: Request<'_>) -> bool {
        match self {
            Self::H1(_) => true,
            Self::H2(client) => request.fields.is_none_or(|fields| client.takes(fields)),
            Self::H3(client) => request.section.is_none_or(|section| client.takes(section)),
        }
    }

    /// Whether the peer takes extended CONNECT requests (RFC 8441 3, RFC 9220 3), where the protocol has them; `None`: it has not said so yet.
    pub fn extended_connect(&self) -> Option<bool> {
        match self {
            Self::H1(_) => Some(false),
            Self::H2(client) => client.extended_connect(),
            Self::H3(client) => client.extended_connect(),
        }
    }

    /// Appends the head of the [`next_reserved`](Self::next_reserved) request. `table`: the one that its fields were prepared with, the same for
    /// the whole connection.
    pub fn start(&mut self, table: &FieldTable, request: Request<'_>, out: &mut Vec<u8>) {
        let Request { head, fields, section, kind, body_bytes } = request;
        match self {
            Self::H1(client) => client.start(head, kind, body_bytes, out),
            Self::H2(client) => {
                let fields =
                    fields.expect("a request is prepared for each version that its origin may speak");
                client.start(table, h2::Request { fields, kind, body_bytes }, out);
            }
            Self::H3(client) => {
                let section =
                    section.expect("a request is prepared for each version that its origin may speak");
                client.start(h3::Request { section, kind, body_bytes }, out);
            }
        }
    }

    /// Appends the head of the [`next_reserved`](Self::next_reserved) request, whose body comes in pieces. In HTTP/1.1 the head must say
    /// `Transfer-Encoding: chunked`, and no other request starts before the body is finished. `request.body_bytes`: what is there already.
    pub fn start_stream(&mut self, table: &FieldTable, request: Request<'_>, out: &mut Vec<u8>) {
        let Some(slot) = self.next_reserved() else { return debug_assert!(false, "no request to start") };
        let body_bytes = request.body_bytes;
        match self {
            Self::H1(client) => client.start_stream(request.head, request.kind, out),
            Self::H2(client) => {
                let fields =
                    request.fields.expect("a request is prepared for each version that its origin may speak");
                client.start_stream(table, h2::Request { fields, kind: request.kind, body_bytes: 0 }, out);
            }
            Self::H3(client) => {
                let section = request
                    .section
                    .expect("a request is prepared for each version that its origin may speak");
                client.start_stream(h3::Request { section, kind: request.kind, body_bytes: 0 }, out);
            }
        }
        self.extend(slot, body_bytes);
    }

    /// So many more bytes of a stream's body are there to be handed out.
    pub fn extend(&mut self, slot: u32, bytes: u64) {
        match self {
            Self::H1(client) => client.extend(slot, bytes),
            Self::H2(client) => client.extend(slot, bytes),
            Self::H3(client) => client.extend(slot, bytes),
        }
    }

    /// A stream's body ends with what is there.
    pub fn finish(&mut self, slot: u32) {
        match self {
            Self::H1(client) => client.finish(slot),
            Self::H2(client) => client.finish(slot),
            Self::H3(client) => client.finish(slot),
        }
    }

    /// Bytes of a body that are there and have not been handed out: who extends it faster than the peer takes it should wait.
    pub fn unsent_bytes(&self, slot: u32) -> u64 {
        match self {
            Self::H1(client) => client.unsent_bytes(slot),
            Self::H2(client) => client.unsent_bytes(slot),
            Self::H3(client) => client.unsent_bytes(slot),
        }
    }

    /// No more of this response is wanted for now. What has come already is still reported; in HTTP/1.1 [`wants_read`](Self::wants_read) says
    /// that nothing is to be read, in HTTP/2 the stream's window stays as it is, in HTTP/3 its stream is not to be read.
    pub fn pause(&mut self, slot: u32) {
        match self {
            Self::H1(client) => client.pause(slot),
            Self::H2(client) => client.pause(slot),
            Self::H3(client) => client.pause(slot),
        }
    }

    /// More of it is wanted again. What the socket has must be read: it may not report that a second time.
    pub fn resume(&mut self, slot: u32) {
        match self {
            Self::H1(client) => client.resume(slot),
            Self::H2(client) => client.resume(slot),
            Self::H3(client) => client.resume(slot),
        }
    }

    /// The next piece of a body, at most `bytes_max` long; what frames it is appended, and the caller appends the
    /// piece itself and its [tail](Chunk::tail).
    pub fn next_chunk(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Option<Chunk> {
        match self {
            Self::H1(client) => client.next_chunk(bytes_max, out),
            Self::H2(client) => client.next_chunk(bytes_max, out),
            Self::H3(client) => client.next_chunk(bytes_max, out),
        }
    }

    /// The end of a piece that needs no framing was not sent after all: the next piece begins with it.
    pub const fn return_chunk(&mut self, bytes: usize) {
        if let Self::H1(client) = self {
            client.return_chunk(bytes);
        }
    }

    /// Bytes of a body that can be written as they are, without framing; 0: none are to be sent, or they need frames.
    pub const fn unframed_body_bytes(&self) -> u64 {
        match self {
            Self::H1(client) => client.unframed_body_bytes(),
            Self::H2(_) | Self::H3(_) => 0,
        }
    }

    /// Whether anything could be sent now.
    pub fn wants_write(&self) -> bool {
        match self {
            Self::H1(client) => client.next_reserved().is_some() || client.has_chunk(),
            Self::H2(client) => client.next_reserved().is_some() || client.wants_write(),
            Self::H3(client) => client.next_reserved().is_some() || client.wants_write(),
        }
    }

    /// Appends what is sent besides requests: settings, acknowledgements, windows, resets.
    pub fn write_control(&mut self, out: &mut Vec<u8>) {
        if let Self::H2(client) = self {
            client.write_control(out);
        }
    }

    /// Asks the peer for a sign of life, where the protocol has one: [`Event::Pong`].
    pub fn ping(&mut self) {
        if let Self::H2(client) = self {
            client.ping();
        }
    }

    /// The peer has sent nothing more for now, on a connection that is kept without requests.
    pub fn note_pause(&mut self) {
        match self {
            Self::H1(_) => {}
            Self::H2(client) => client.note_pause(),
            Self::H3(client) => client.note_pause(),
        }
    }

    /// Bytes that the protocol itself waits to send.
    pub fn control_bytes(&self) -> usize {
        match self {
            Self::H1(_) => 0,
            Self::H2(client) => client.control_bytes(),
            Self::H3(client) => client.control_bytes(),
        }
    }

    /// Appends what should precede the end of the connection (RFC 9113 6.8).
    pub fn write_goodbye(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if let Self::H2(client) = self {
            client.write_control(out);
            client.write_goaway(code, out);
        }
    }

    /// Reads until something happened that the caller should know, or all is read.
    ///
    /// # Errors
    ///
    /// When the peer broke a rule that leaves the connection useless.
    pub fn decode<S: Sink>(
        &mut self,
        caches: &mut HeadCaches,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Progress, ProtocolError> {
        match self {
            Self::H1(client) => Ok(client.decode(&mut caches.h1, input, sink)?),
            Self::H2(client) => Ok(client.decode(&mut caches.h2, input, sink)?),
            Self::H3(_) => {
                debug_assert!(false, "the bytes of HTTP/3 come by stream");
                Ok(Progress { consumed: input.len(), event: None })
            }
        }
    }

    /// The same for bytes of one stream of QUIC; `is_fin`: nothing follows them. All of them are read when `consumed` says so; then the FIN
    /// has been read as well. A call without bytes reads what was kept of a [readable](h3::Client::next_readable) stream.
    ///
    /// # Errors
    ///
    /// When the peer broke a rule that leaves the connection useless.
    pub fn decode_stream<S: Sink>(
        &mut self,
        caches: &mut HeadCaches,
        stream_id: u64,
        (input, is_fin): (&[u8], bool),
        sink: &mut S,
    ) -> Result<Progress, ProtocolError> {
        let Self::H3(client) = self else {
            debug_assert!(false, "only HTTP/3 has streams of QUIC");
            return Ok(Progress { consumed: input.len(), event: None });
        };
        Ok(client.decode_stream(&mut caches.h3, stream_id, (input, is_fin), sink)?)
    }

    /// What only a transport with streams needs to know and to say.
    pub fn quic(&mut self) -> Option<&mut h3::Client> {
        match self {
            Self::H3(client) => Some(client),
            Self::H1(_) | Self::H2(_) => None,
        }
    }

    /// Whether a response is being waited for, or the peer may send at any time.
    pub fn wants_read(&self) -> bool {
        match self {
            Self::H1(client) => client.wants_read(),
            Self::H2(_) | Self::H3(_) => true,
        }
    }

    /// Bytes of a response's body that may be discarded unread, and then [skipped](Self::skip).
    pub const fn skippable_bytes(&self) -> u64 {
        match self {
            Self::H1(client) => client.skippable_bytes(),
            Self::H2(_) | Self::H3(_) => 0,
        }
    }

    /// So many bytes of the body were discarded unread: at most [`skippable_bytes`](Self::skippable_bytes).
    pub fn skip(&mut self, bytes: u64) -> Option<Event> {
        match self {
            Self::H1(client) => Some(client.skip(bytes)),
            Self::H2(_) | Self::H3(_) => None,
        }
    }

    /// The request that the next bytes answer, where they answer one after the other.
    pub const fn next_answered(&self) -> Option<u32> {
        match self {
            Self::H1(client) => client.next_answered(),
            Self::H2(_) | Self::H3(_) => None,
        }
    }

    /// Whether the next byte begins a response, where responses come one after the other.
    pub const fn is_between_responses(&self) -> bool {
        match self {
            Self::H1(client) => client.is_between_responses(),
            Self::H2(_) | Self::H3(_) => false,
        }
    }

    /// What the compression of header fields has saved since it was asked last.
    pub fn take_header_bytes(&mut self) -> HeaderBytes {
        match self {
            Self::H1(_) => HeaderBytes::default(),
            Self::H2(client) => std::mem::take(&mut client.headers),
            Self::H3(client) => std::mem::take(&mut client.headers),
        }
    }

    /// Whether a response has come in part and its rest holds up those behind it.
    pub const fn is_mid_response(&self) -> bool {
        match self {
            Self::H1(client) => client.is_mid_response(),
            Self::H2(_) | Self::H3(_) => false,
        }
    }

    /// The peer has closed its side; `is_cut_off`: without TLS's word for it. `None`: requests in flight get no response any more.
    ///
    /// # Errors
    ///
    /// When a response was cut off.
    pub fn handle_eof(&mut self, is_cut_off: bool) -> Result<Option<Event>, ProtocolError> {
        match self {
            Self::H1(client) => Ok(Some(client.handle_eof(is_cut_off)?)),
            Self::H2(_) | Self::H3(_) => Ok(None),
        }
    }

    /// Whether one request can be given up without the connection: [`cancel`](Self::cancel) does it.
    pub const fn can_cancel(&self) -> bool {
        matches!(self, Self::H2(_) | Self::H3(_))
    }

    /// Gives up a request whose response is no longer wanted, where [`can_cancel`](Self::can_cancel).
    pub fn cancel(&mut self, slot: u32) {
        match self {
            Self::H1(_) => {}
            Self::H2(client) => client.cancel(slot),
            Self::H3(client) => client.cancel(slot),
        }
    }

    /// Takes back the oldest request that the peer, going away, has not processed; its slot is free then.
    pub fn next_unprocessed(&mut self) -> Option<u32> {
        match self {
            Self::H1(_) => None,
            Self::H2(client) => client.next_unprocessed(),
            Self::H3(client) => client.next_unprocessed(),
        }
    }

    /// Why the peer takes no more requests, where it said so.
    pub fn goaway_code(&self) -> Option<ErrorCode> {
        match self {
            Self::H1(_) => None,
            Self::H3(client) => client.is_ending().then_some(ErrorCode::H3_NO_ERROR),
            Self::H2(client) => client.goaway().map(|goaway| goaway.code),
        }
    }

    /// Whether a request behind the oldest one may be sent again when the connection breaks: a server that answers in order may not have read
    /// it (RFC 9112 9.3.1).
    pub const fn answers_in_order(&self) -> bool {
        matches!(self, Self::H1(_))
    }

    /// The slots in use, that of the oldest request first.
    pub fn slots(&self) -> Vec<u32> {
        match self {
            Self::H1(client) => client.slots().collect(),
            Self::H2(client) => client.slots(),
            Self::H3(client) => client.slots(),
        }
    }
}
