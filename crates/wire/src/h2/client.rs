//! One connection as its client sees it: which streams are open, what is to be sent on them, and what either side allows.
//!
//! Owns: the connection's state. Never: sockets, the clock, bodies (they are the caller's; it says which bytes go next).
//! What comes in is read in `receive`.

use std::collections::VecDeque;

use super::frame::{self, FrameHead};
use super::hpack::{Decoder, Encoder, FieldBlock, FieldTable};
use super::input::Input;
use super::settings::{PeerSettings, Setup, WINDOW_BYTES_INITIAL};
use super::stream::{State, Streams};
use super::{Error, ErrorCode};
use crate::Chunk;
use crate::h1::RequestKind;
use crate::message::Incoming;

/// The client's side of one connection.
///
/// A request takes a slot with [`reserve`](Self::reserve), which names it from then on, and goes out with [`start`](Self::start) and as many
/// [`next_chunk`](Self::next_chunk) as its body needs. Slots are numbers below the power of two that is at least [`Setup::stream_count`].
#[derive(Debug)]
pub struct Client {
    pub(super) setup: Setup,
    pub(super) peer: PeerSettings,
    pub(super) streams: Streams,
    encoder: Encoder,
    pub(super) decoder: Decoder,
    pub(super) input: Input,
    /// Frames that answer the peer's, or tell it of resets and windows.
    pub(super) control: Vec<u8>,
    /// Requests that have a slot and are not started yet, in their order.
    reserved: VecDeque<u32>,
    /// Streams with a body that is not sent whole.
    pub(super) sending: VecDeque<u32>,
    /// A body came in pieces: a frame without data may end it, for which no window has to be open.
    has_streamed: bool,
    pub(super) send_window: i32,
    pub(super) receive_window: u32,
    pub(super) goaway: Option<GoAway>,
    /// Bytes of header lists, before and after compression.
    pub headers: HeaderBytes,
}

/// The peer's announcement that it takes no new streams (RFC 9113 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoAway {
    /// Streams beyond this were not looked at.
    pub last_stream_id: u32,
    /// Why.
    pub code: ErrorCode,
}

/// What HPACK saved. Taken and set back by the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeaderBytes {
    /// Names and values of requests.
    pub sent: u64,
    /// As they were sent.
    pub sent_packed: u64,
    /// Names and values of responses.
    pub received: u64,
    /// As they came.
    pub received_packed: u64,
}

/// A request to be started.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its fields.
    pub fields: &'a FieldBlock,
    /// What was asked, as far as it decides how the response is framed.
    pub kind: RequestKind,
    /// Length of its body; 0: none.
    pub body_bytes: u64,
}

impl Client {
    /// A new connection, whose first bytes are to be fetched with [`write_control`](Self::write_control).
    pub fn new(setup: Setup) -> Self {
        let mut control = frame::PREFACE.to_vec();
        setup.put(&mut control);
        Self {
            setup,
            peer: PeerSettings::new(),
            streams: Streams::new(setup.stream_count),
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            input: Input::default(),
            control,
            reserved: VecDeque::new(),
            sending: VecDeque::new(),
            has_streamed: false,
            send_window: WINDOW_BYTES_INITIAL as i32,
            receive_window: setup.connection_window_bytes.max(WINDOW_BYTES_INITIAL),
            goaway: None,
            headers: HeaderBytes::default(),
        }
    }

    /// A new connection that began as HTTP/1.1 and was upgraded (RFC 7540 3.2): the answer to the request that asked for that comes on the
    /// first stream, and is ignored.
    pub fn upgraded(setup: Setup) -> Self {
        let mut client = Self::new(setup);
        client.streams.skip_first();
        client
    }

    /// How many more requests may be reserved now. Where the peer allows none at all, one may still wait until it does.
    pub fn free_count(&self) -> u32 {
        if self.goaway.is_some() || !self.streams.has_ids() {
            return 0;
        }
        self.setup.stream_count.min(self.peer.stream_count_max.max(1)).saturating_sub(self.streams.count)
    }

    /// Requests that have a slot.
    pub const fn in_flight(&self) -> u32 {
        self.streams.count
    }

    /// No request will get a slot any more: the peer goes away, or ids are used up.
    pub fn is_ending(&self) -> bool {
        self.goaway.is_some() || !self.streams.has_ids()
    }

    /// What the peer said when it went away.
    pub const fn goaway(&self) -> Option<GoAway> {
        self.goaway
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

    /// The request to be started next; `None`: there is none, or the peer has lowered its limit since it was reserved.
    pub fn next_reserved(&self) -> Option<u32> {
        if self.streams.open_count() >= self.peer.stream_count_max {
            return None;
        }
        self.reserved.front().copied()
    }

    /// Whether the peer takes header lists as large as this one (RFC 9113 10.5.1).
    pub const fn takes(&self, fields: &FieldBlock) -> bool {
        fields.list_bytes() <= self.peer.header_list_bytes_max as usize
    }

    /// Whether the peer takes extended CONNECT requests (RFC 8441 3); `None`: it has not said so yet.
    pub fn extended_connect(&self) -> Option<bool> {
        self.peer.has_spoken.then_some(self.peer.has_extended_connect)
    }

    /// Appends the head of the [`next_reserved`](Self::next_reserved) request. `table`: the one its fields were prepared with, the same for the
    /// whole connection.
    pub fn start(&mut self, table: &FieldTable, request: Request<'_>, out: &mut Vec<u8>) {
        self.start_with(table, request, false, out);
    }

    /// The same for a body that comes in pieces.
    pub fn start_stream(&mut self, table: &FieldTable, request: Request<'_>, out: &mut Vec<u8>) {
        self.has_streamed = true;
        self.start_with(table, request, true, out);
    }

    /// So many more bytes of the body are there.
    pub fn extend(&mut self, slot: u32, bytes: u64) {
        let stream = self.streams.at(slot);
        // A stream that the peer has ended takes nothing more.
        if stream.is_live() && stream.is_open {
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

    /// The response in this slot is not wanted for now: its window is opened no further.
    pub fn pause(&mut self, slot: u32) {
        self.streams.at(slot).is_paused = true;
    }

    /// It is wanted again.
    pub fn resume(&mut self, slot: u32) {
        let window_bytes = self.setup.window_bytes;
        let stream = self.streams.at(slot);
        if std::mem::take(&mut stream.is_paused)
            && matches!(stream.state, State::Head | State::Body)
            && stream.receive_window <= window_bytes / 2
        {
            let increment = window_bytes - std::mem::replace(&mut stream.receive_window, window_bytes);
            let id = stream.id;
            frame::put(&mut self.control, frame::WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
        }
    }

    fn start_with(&mut self, table: &FieldTable, request: Request<'_>, is_open: bool, out: &mut Vec<u8>) {
        let Some(slot) = self.reserved.pop_front() else {
            debug_assert!(false, "no request to start");
            return;
        };
        let stream = self.streams.open(slot);
        stream.message = Incoming::new(request.kind);
        stream.receive_window = self.setup.window_bytes;
        stream.send_window = self.peer.window_bytes;
        stream.left_bytes = request.body_bytes;
        (stream.is_uploading, stream.is_open) = (is_open || request.body_bytes > 0, is_open);
        let (stream_id, is_uploading) = (stream.id, stream.is_uploading);
        if is_uploading {
            self.sending.push_back(slot);
        }
        let flags = if is_uploading { 0 } else { frame::END_STREAM };
        let begin = out.len();
        out.extend_from_slice(&[0; frame::HEAD_BYTES]);
        self.encoder.encode(table, request.fields, out);
        let length = out.len() - begin - frame::HEAD_BYTES;
        self.headers.sent += request.fields.bytes() as u64;
        self.headers.sent_packed += length as u64;
        if length <= self.peer.frame_bytes_max as usize {
            let flags = flags | frame::END_HEADERS;
            let head = FrameHead { length: length as u32, kind: frame::HEADERS, flags, stream_id };
            out[begin..begin + frame::HEAD_BYTES].copy_from_slice(&head.bytes());
        } else {
            self.split_head(stream_id, flags, begin, out);
        }
    }

    /// A header block that is too large for one frame goes on in CONTINUATION frames.
    fn split_head(&self, stream_id: u32, flags: u8, begin: usize, out: &mut Vec<u8>) {
        let block = out.split_off(begin).split_off(frame::HEAD_BYTES);
        let mut pieces = block.chunks(self.peer.frame_bytes_max as usize).peekable();
        let (mut kind, mut flags) = (frame::HEADERS, flags);
        while let Some(piece) = pieces.next() {
            let end = if pieces.peek().is_none() { frame::END_HEADERS } else { 0 };
            frame::put(out, kind, flags | end, stream_id, piece);
            (kind, flags) = (frame::CONTINUATION, 0);
        }
    }

    /// Appends the head of the next DATA frame that the windows allow, of any request whose body is not sent whole; requests take turns.
    /// The caller appends the body's bytes. `bytes_max`: how many it can take.
    pub fn next_chunk(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Option<Chunk> {
        let limit = self.peer.frame_bytes_max.min(self.send_window.max(0) as u32).min(bytes_max as u32);
        // A frame without data, which ends a body that was finished late, needs no window.
        let is_ready = |slot: &u32| {
            let stream = self.streams.get(*slot);
            stream.has_chunk() && (limit > 0 || stream.left_bytes == 0)
        };
        if limit == 0 && !self.has_streamed {
            return None;
        }
        let ready = self.sending.iter().position(is_ready)?;
        self.sending.rotate_left(ready);
        let slot = self.sending.pop_front()?;
        let stream = self.streams.at(slot);
        let bytes = u64::from(limit.min(stream.send_window.max(0) as u32)).min(stream.left_bytes);
        let chunk = Chunk {
            slot,
            offset: stream.sent_bytes,
            bytes: bytes as usize,
            is_last: bytes == stream.left_bytes && !stream.is_open,
            tail: b"",
        };
        stream.is_uploading = !chunk.is_last;
        stream.send_window -= bytes as i32;
        self.send_window -= bytes as i32;
        stream.sent_bytes += bytes;
        stream.left_bytes -= bytes;
        let flags = if chunk.is_last { frame::END_STREAM } else { 0 };
        let head = FrameHead { length: bytes as u32, kind: frame::DATA, flags, stream_id: stream.id };
        out.extend_from_slice(&head.bytes());
        if !chunk.is_last {
            self.sending.push_back(slot);
        }
        Some(chunk)
    }

    /// Whether anything could be sent now besides new requests.
    pub fn wants_write(&self) -> bool {
        !self.control.is_empty()
            || (self.send_window > 0 || self.has_streamed)
                && self.sending.iter().any(|slot| {
                    let stream = self.streams.get(*slot);
                    stream.has_chunk() && (self.send_window > 0 || stream.left_bytes == 0)
                })
    }

    /// Asks the peer for a sign of life; its answer is [`Event::Pong`](crate::Event::Pong).
    pub fn ping(&mut self) {
        self.input.awaits_pong = true;
        frame::put(&mut self.control, frame::PING, 0, 0, PING_DATA);
    }

    /// The peer has sent nothing more for now: what has no effect is bounded within one stretch of frames, not over the life of a connection that is
    /// kept without requests.
    pub fn note_pause(&mut self) {
        self.input.idle_frame_count = 0;
        self.input.partial.shrink_to_fit();
        self.control.shrink_to_fit();
    }

    /// Bytes of settings, acknowledgements, windows and resets that wait to be sent.
    pub const fn control_bytes(&self) -> usize {
        self.control.len()
    }

    /// Appends what is sent besides requests: settings, acknowledgements, windows, resets.
    pub fn write_control(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.control);
        self.control.clear();
    }

    /// Gives up a request whose response is no longer wanted.
    pub fn cancel(&mut self, slot: u32) {
        match self.streams.get(slot).state {
            State::Free | State::Reset => {}
            State::Reserved => self.end(slot),
            State::Head | State::Body => self.reset(slot, ErrorCode::CANCEL),
        }
    }

    /// Takes back the oldest request that the peer, going away, has not processed; its slot is free then.
    pub fn next_unprocessed(&mut self) -> Option<u32> {
        let last = self.goaway?.last_stream_id;
        let unprocessed = |slot: &u32| {
            let stream = self.streams.get(*slot);
            stream.id > last || stream.state == State::Reserved
        };
        let slot = self.streams.by_age().into_iter().find(unprocessed)?;
        self.end(slot);
        Some(slot)
    }

    /// The slots in use, those of the oldest requests first.
    pub fn slots(&self) -> Vec<u32> {
        self.streams.by_age()
    }

    /// Appends the farewell of RFC 9113 6.8: no stream of the peer's was ever accepted.
    pub fn write_goaway(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        let [c0, c1, c2, c3] = (code.0 as u32).to_be_bytes();
        frame::put(out, frame::GOAWAY, 0, 0, &[0, 0, 0, 0, c0, c1, c2, c3]);
    }

    pub(super) fn apply_header_table_size(&mut self) {
        self.encoder.set_capacity(self.peer.header_table_bytes);
    }

    /// Ends a stream on both sides.
    pub(super) fn reset(&mut self, slot: u32, code: ErrorCode) {
        let stream_id = self.streams.get(slot).id;
        frame::put(&mut self.control, frame::RST_STREAM, 0, stream_id, &(code.0 as u32).to_be_bytes());
        self.stop_sending(slot);
        self.input.disown(slot);
        self.streams.reset(slot);
    }

    /// The stream has ended on both sides, or its request will never be sent.
    pub(super) fn end(&mut self, slot: u32) {
        self.stop_sending(slot);
        if self.streams.get(slot).state == State::Reserved {
            self.reserved.retain(|one| *one != slot);
        }
        self.streams.free(slot);
    }

    fn stop_sending(&mut self, slot: u32) {
        if self.streams.get(slot).is_uploading {
            self.sending.retain(|one| *one != slot);
        }
    }

    /// RFC 9113 6.9.2: a change of the initial window applies to open streams as well, which may make their windows negative.
    pub(super) fn shift_send_windows(&mut self, difference: i32) -> Result<(), Error> {
        for stream in self.streams.live().filter(|stream| stream.state != State::Reserved) {
            stream.send_window = stream.send_window.checked_add(difference).ok_or_else(|| {
                super::error::flow_control("SETTINGS_INITIAL_WINDOW_SIZE makes a window overflow")
            })?;
        }
        Ok(())
    }
}

/// It means nothing.
const PING_DATA: &[u8; 8] = b"squall\0\0";
