//! One connection as its client sees it: which requests are open, and what is to be sent on their streams.
//!
//! Owns: the connection's state. Never: QUIC, sockets, the clock, bodies (they are the caller's; it says which bytes go next).
//! What comes in is read in `receive`.

use std::collections::VecDeque;

use super::control::{Control, Side, StreamAbort};
use super::frame;
use super::request::FieldSection;
use super::settings::Setup;
use super::stream::{State, Streams};
use crate::h1::RequestKind;
use crate::h2::HeaderBytes;
use crate::message::Incoming;
use crate::{Chunk, ErrorCode};

/// The client's side of one connection.
///
/// A request takes a slot with [`reserve`](Self::reserve), which names it from then on, and goes out with [`start`](Self::start) and as many
/// [`next_chunk`](Self::next_chunk) as its body needs. Slots are numbers below the power of two that is at least [`Setup::stream_count`].
#[derive(Debug)]
pub struct Client {
    setup: Setup,
    pub(super) streams: Streams,
    pub(super) control: Control,
    /// Requests that have a slot and are not started yet, in their order.
    reserved: VecDeque<u32>,
    /// Requests with a body that is not sent whole.
    sending: VecDeque<u32>,
    /// Streams that are to be read again.
    pub(super) readable: VecDeque<u64>,
    /// Streams that wait for the dynamic table.
    pub(super) held_count: u32,
    /// How many streams the transport lets us open in all.
    stream_limit: u64,
    /// Frames since the last one with an effect.
    pub(super) idle_frame_count: u32,
    /// Bytes of field sections, before and after compression.
    pub headers: HeaderBytes,
}

/// A request to be started.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its fields.
    pub section: &'a FieldSection,
    /// What was asked, as far as it decides how the response is framed.
    pub kind: RequestKind,
    /// Length of its body; 0: none.
    pub body_bytes: u64,
}

impl Client {
    /// A new connection. Its first bytes wait on its unidirectional streams.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            streams: Streams::new(setup.stream_count),
            control: Control::new(Side::Client, setup),
            reserved: VecDeque::new(),
            sending: VecDeque::new(),
            readable: VecDeque::new(),
            held_count: 0,
            stream_limit: 0,
            idle_frame_count: 0,
            headers: HeaderBytes::default(),
        }
    }

    /// How many bidirectional streams the transport can open in all, those that were opened included. 0 at first; it never falls.
    pub fn set_stream_limit(&mut self, count: u64) {
        self.stream_limit = self.stream_limit.max(count);
    }

    /// How many more requests may be reserved now. Where the peer allows none at all, one may still wait until it does.
    pub fn free_count(&self) -> u32 {
        if self.is_ending() {
            return 0;
        }
        let allowed = self.stream_limit.saturating_sub(self.streams.next_number).max(1);
        let allowed = u32::try_from(allowed).unwrap_or(u32::MAX).saturating_sub(self.streams.reserved_count);
        self.setup.stream_count.max(1).saturating_sub(self.streams.count).min(allowed)
    }

    /// Requests that have a slot.
    pub const fn in_flight(&self) -> u32 {
        self.streams.count
    }

    /// No request will get a slot any more: the peer goes away.
    pub const fn is_ending(&self) -> bool {
        self.control.goaway.is_some()
    }

    /// Gives a request a slot; `None`: all are taken.
    pub fn reserve(&mut self) -> Option<u32> {
        if self.free_count() == 0 {
            return None;
        }
        let slot = self.streams.reserve()?;
        self.reserved.push_back(slot);
        Some(slot)
    }

    /// The request to be started next; `None`: there is none, or the transport has no stream for it.
    pub fn next_reserved(&self) -> Option<u32> {
        if self.streams.next_number >= self.stream_limit {
            return None;
        }
        self.reserved.front().copied()
    }

    /// The stream that the next started request will be on.
    pub const fn next_stream(&self) -> u64 {
        self.streams.next_number << 2
    }

    /// The stream of a request; `None`: it is not started, or over.
    pub fn stream_of(&self, slot: u32) -> Option<u64> {
        let stream = self.streams.get(slot);
        (stream.state == State::Open).then(|| stream.id())
    }

    /// Whether the peer takes field sections as large as this one (RFC 9114 4.2.2).
    pub const fn takes(&self, section: &FieldSection) -> bool {
        section.list_bytes() as u64 <= self.control.peer.section_bytes_max
    }

    /// Whether the peer takes extended CONNECT requests (RFC 9220 3); `None`: it has not said so yet.
    pub fn extended_connect(&self) -> Option<bool> {
        self.control.has_settings.then_some(self.control.peer.has_extended_connect)
    }

    /// Appends the head of the [`next_reserved`](Self::next_reserved) request, to be sent on [`next_stream`](Self::next_stream).
    pub fn start(&mut self, request: Request<'_>, out: &mut Vec<u8>) {
        self.start_with(request, false, out);
    }

    /// The same for a body that comes in pieces.
    pub fn start_stream(&mut self, request: Request<'_>, out: &mut Vec<u8>) {
        self.start_with(request, true, out);
    }

    fn start_with(&mut self, request: Request<'_>, is_open: bool, out: &mut Vec<u8>) {
        let Some(slot) = self.reserved.pop_front() else {
            debug_assert!(false, "no request to start");
            return;
        };
        let stream = self.streams.open(slot);
        stream.message = Incoming::new(request.kind);
        stream.left_bytes = request.body_bytes;
        (stream.is_uploading, stream.is_open) = (is_open || request.body_bytes > 0, is_open);
        if stream.is_uploading {
            self.sending.push_back(slot);
        }
        let frame = request.section.frame();
        out.extend_from_slice(frame);
        self.headers.sent += request.section.bytes() as u64;
        self.headers.sent_packed += frame.len() as u64;
    }

    /// So many more bytes of the body are there.
    pub fn extend(&mut self, slot: u32, bytes: u64) {
        let stream = self.streams.at(slot);
        // A request that the peer wants no more of takes nothing more.
        if stream.state == State::Open && stream.is_open {
            stream.left_bytes += bytes;
        }
    }

    /// The body ends with what is there.
    pub fn finish(&mut self, slot: u32) {
        self.streams.at(slot).is_open = false;
    }

    /// Bytes of a body that are there and have not been handed out.
    pub fn unsent_bytes(&self, slot: u32) -> u64 {
        self.streams.get(slot).left_bytes
    }

    /// Whether the stream's FIN was not handed out yet: a request without a body ends with its head.
    pub fn is_uploading(&self, slot: u32) -> bool {
        self.streams.get(slot).is_uploading
    }

    /// The transport takes no more of this request for now.
    pub fn block(&mut self, slot: u32) {
        self.streams.at(slot).is_blocked = true;
    }

    /// It takes more again. Whether there is more.
    pub fn unblock(&mut self, slot: u32) -> bool {
        let stream = self.streams.at(slot);
        stream.is_blocked = false;
        stream.is_uploading && stream.has_chunk()
    }

    /// The response in this slot is not wanted for now: its stream is not to be read, so that the peer has to wait.
    pub fn pause(&mut self, slot: u32) {
        self.streams.at(slot).is_paused = true;
    }

    /// It is wanted again.
    pub fn resume(&mut self, slot: u32) {
        let stream = self.streams.at(slot);
        if std::mem::take(&mut stream.is_paused) && stream.state == State::Open {
            let id = stream.id();
            self.readable.push_back(id);
        }
    }

    /// Whether a stream is to be read now.
    pub fn wants_stream(&self, stream_id: u64) -> bool {
        if stream_id & 3 != 0 {
            return true;
        }
        let stream = self.streams.find(stream_id).map(|slot| self.streams.get(slot));
        stream.is_none_or(|stream| !stream.is_paused && stream.held.is_none())
    }

    /// A stream that is to be read again, first of all without bytes: what was kept of it is decoded then.
    pub fn next_readable(&mut self) -> Option<u64> {
        self.readable.pop_front()
    }

    /// The next piece of a body of any request that the transport takes more of, at most `bytes_max` long, to be sent on its slot's stream:
    /// what precedes it is appended to `out`, and then the caller appends the piece. Requests take turns.
    pub fn next_chunk(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Option<Chunk> {
        let ready = self.sending.iter().position(|slot| {
            let stream = self.streams.get(*slot);
            stream.has_chunk() && (bytes_max > 0 || stream.left_bytes == 0)
        })?;
        self.sending.rotate_left(ready);
        let slot = self.sending.pop_front()?;
        let stream = self.streams.at(slot);
        // One frame for all that is there: a body of known length has one head.
        if stream.frame_left_bytes == 0 && stream.left_bytes > 0 {
            stream.frame_left_bytes = stream.left_bytes;
            frame::put_head(frame::DATA, stream.left_bytes, out);
        }
        let bytes = stream.frame_left_bytes.min(bytes_max as u64);
        let offset = stream.sent_bytes;
        stream.sent_bytes += bytes;
        stream.left_bytes -= bytes;
        stream.frame_left_bytes -= bytes;
        let is_last = stream.left_bytes == 0 && !stream.is_open;
        stream.is_uploading = !is_last;
        if !is_last {
            self.sending.push_back(slot);
        }
        Some(Chunk { slot, offset, bytes: bytes as usize, is_last, tail: b"" })
    }

    /// The end of a piece was not sent after all: the next piece of this request begins with it, and without a head.
    pub fn return_chunk(&mut self, slot: u32, bytes: usize) {
        let stream = self.streams.at(slot);
        if bytes == 0 || stream.state != State::Open {
            return;
        }
        stream.sent_bytes -= bytes as u64;
        stream.left_bytes += bytes as u64;
        stream.frame_left_bytes += bytes as u64;
        if !std::mem::replace(&mut stream.is_uploading, true) {
            self.sending.push_back(slot);
        }
    }

    /// Whether anything could be sent now besides new requests.
    pub fn wants_write(&self) -> bool {
        self.control.wants_write() || self.sending.iter().any(|slot| self.streams.get(*slot).has_chunk())
    }

    /// How many unidirectional streams the client has: 2, 6, and so on.
    pub fn uni_count(&self) -> u64 {
        self.control.uni_count()
    }

    /// What waits to be sent on one of them.
    pub fn uni_output(&self, stream_id: u64) -> &[u8] {
        self.control.uni_output(stream_id)
    }

    /// So many bytes of it were taken.
    pub fn uni_sent(&mut self, stream_id: u64, bytes: usize) {
        self.control.uni_sent(stream_id, bytes);
    }

    /// Bytes that wait on all of them.
    pub fn control_bytes(&self) -> usize {
        self.control.output_bytes()
    }

    /// The next RESET_STREAM or STOP_SENDING frame that is to be sent.
    pub fn next_command(&mut self) -> Option<StreamAbort> {
        self.control.next_command()
    }

    /// The peer has sent nothing more for now, or something with an effect: what has none is bounded within one stretch of frames, on the control
    /// stream as on those of requests.
    pub fn note_pause(&mut self) {
        self.idle_frame_count = 0;
        self.control.note_pause();
    }

    /// Gives up a request whose response is no longer wanted.
    pub fn cancel(&mut self, slot: u32) {
        match self.streams.get(slot).state {
            State::Free => {}
            State::Reserved => self.end(slot),
            State::Open => self.abort(slot, ErrorCode::H3_REQUEST_CANCELLED),
        }
    }

    /// Takes back the oldest request that the peer, going away, has not processed (RFC 9114 5.2); its slot is free then.
    pub fn next_unprocessed(&mut self) -> Option<u32> {
        let first = self.control.goaway?;
        let is_unprocessed = |slot: &u32| {
            let stream = self.streams.get(*slot);
            stream.state == State::Reserved || stream.id() >= first
        };
        let slot = self.streams.by_age().into_iter().find(is_unprocessed)?;
        self.cancel(slot);
        Some(slot)
    }

    /// The slots in use, those of the oldest requests first.
    pub fn slots(&self) -> Vec<u32> {
        self.streams.by_age()
    }

    /// Ends a request on both sides of its stream, before its response was whole.
    pub(super) fn abort(&mut self, slot: u32, code: ErrorCode) {
        let stream = self.streams.get(slot).id();
        self.control.stop_reading(stream, code);
        self.reset_upload(slot, code);
        self.end(slot);
    }

    /// The peer needs no more of the request.
    pub(super) fn reset_upload(&mut self, slot: u32, code: ErrorCode) {
        let stream = self.streams.at(slot);
        if std::mem::take(&mut stream.is_uploading) {
            (stream.left_bytes, stream.frame_left_bytes, stream.is_open) = (0, 0, false);
            let stream_id = stream.id();
            self.sending.retain(|one| *one != slot);
            self.control.commands.push_back(StreamAbort::Reset { stream_id, code });
        }
    }

    /// The request's slot is free again.
    pub(super) fn end(&mut self, slot: u32) {
        let stream = self.streams.at(slot);
        self.held_count -= u32::from(stream.held.take().is_some());
        if stream.state == State::Reserved {
            self.reserved.retain(|one| *one != slot);
        }
        self.streams.free(slot);
    }
}
