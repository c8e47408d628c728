//! One connection as its client sees it: requests leave in order, and responses come back in the same order (RFC 9112 9.3.2).
//!
//! Owns: which request is being sent, and which response is being read. Never: sockets, the clock, bodies (the caller appends them).

use super::{DecodeError, Decoder, HeadCache, RequestKind, Response, Sink};
use crate::{Chunk, Event, Progress};

/// The client's side of one connection.
///
/// A request gets a slot with [`reserve`](Self::reserve), leaves with [`start`](Self::start) and as many [`next_chunk`](Self::next_chunk) as its
/// body needs, and is answered by [`Event::Received`]. Slots are numbers below the pipeline depth and are used in turn.
#[derive(Debug)]
pub struct Client {
    decoder: Decoder,
    /// Kinds of the started requests, by slot. Empty without pipelining, where the decoder has the only one.
    kinds: Box<[RequestKind]>,
    depth: u16,
    /// Slot of the oldest request in flight.
    oldest_slot: u16,
    reserved_count: u16,
    /// Of those that are reserved, so many have been started. They are the oldest.
    started_count: u16,
    /// The body of the request that was started last: bytes handed out, and bytes still to come.
    body_sent_bytes: u64,
    body_left_bytes: u64,
    upload: Upload,
    /// The slot of a response that is not wanted for now.
    paused_slot: Option<u16>,
    is_ending: bool,
}

/// How the body of the request that was started last goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    /// As it is; its length is known.
    Plain,
    /// In chunks (RFC 9112 7.1), and there may be more.
    Open,
    /// In chunks, and the last one is to come.
    Finished,
}

impl Client {
    /// A new connection that carries up to `depth` requests at a time.
    pub fn new(depth: u16) -> Self {
        let kind_count = if depth > 1 { usize::from(depth) } else { 0 };
        Self {
            decoder: Decoder::new(),
            kinds: vec![RequestKind::Other; kind_count].into_boxed_slice(),
            depth,
            oldest_slot: 0,
            reserved_count: 0,
            started_count: 0,
            body_sent_bytes: 0,
            body_left_bytes: 0,
            upload: Upload::Plain,
            paused_slot: None,
            is_ending: false,
        }
    }

    /// How many more requests may be reserved now.
    pub const fn free_count(&self) -> u32 {
        if self.is_ending { 0 } else { (self.depth - self.reserved_count) as u32 }
    }

    /// Requests that are reserved or started.
    pub const fn in_flight(&self) -> u32 {
        self.reserved_count as u32
    }

    /// The server ends the connection after the last response, or was still being sent the request when it had answered it.
    pub const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Gives a request a slot; `None`: all are taken.
    pub const fn reserve(&mut self) -> Option<u32> {
        if self.free_count() == 0 {
            return None;
        }
        self.reserved_count += 1;
        Some(self.slot_of(self.reserved_count - 1))
    }

    /// The request to be started next, once the body of the one before it has been handed out.
    pub const fn next_reserved(&self) -> Option<u32> {
        if self.started_count == self.reserved_count || !self.is_sent() {
            return None;
        }
        Some(self.slot_of(self.started_count))
    }

    /// Appends the head of the [`next_reserved`](Self::next_reserved) request.
    pub fn start(&mut self, head: &[u8], kind: RequestKind, body_bytes: u64, out: &mut Vec<u8>) {
        debug_assert!(self.next_reserved().is_some(), "no request to start");
        if self.started_count == 0 {
            self.decoder.begin(kind);
        } else {
            self.kinds[self.slot_of(self.started_count) as usize] = kind;
        }
        self.started_count += 1;
        (self.body_sent_bytes, self.body_left_bytes, self.upload) = (0, body_bytes, Upload::Plain);
        out.extend_from_slice(head);
    }

    /// The same for a body that comes in pieces: the head must say that it is sent in chunks.
    pub fn start_stream(&mut self, head: &[u8], kind: RequestKind, out: &mut Vec<u8>) {
        self.start(head, kind, 0, out);
        self.upload = Upload::Open;
    }

    /// So many more bytes of the body are there.
    pub fn extend(&mut self, slot: u32, bytes: u64) {
        let is_open = self.upload == Upload::Open && slot == self.last_started();
        self.body_left_bytes += if is_open { bytes } else { 0 };
    }

    /// The body ends with what is there.
    pub fn finish(&mut self, slot: u32) {
        if self.upload == Upload::Open && slot == self.last_started() {
            self.upload = Upload::Finished;
        }
    }

    /// Bytes of a body that are there and have not been handed out.
    pub const fn unsent_bytes(&self, slot: u32) -> u64 {
        if slot == self.last_started() { self.body_left_bytes } else { 0 }
    }

    /// The next piece of the body of the request that was started last, at most `bytes_max` long. `None`: all that is there was handed out.
    pub fn next_chunk(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Option<Chunk> {
        if !self.has_chunk() || bytes_max == 0 {
            return None;
        }
        let bytes = self.body_left_bytes.min(bytes_max as u64) as usize;
        let mut chunk = Chunk {
            slot: self.last_started(),
            offset: self.body_sent_bytes,
            bytes,
            is_last: self.body_left_bytes <= bytes_max as u64,
            tail: b"",
        };
        self.body_sent_bytes += bytes as u64;
        self.body_left_bytes -= bytes as u64;
        match self.upload {
            Upload::Plain => {}
            Upload::Open | Upload::Finished if bytes > 0 => {
                out.extend_from_slice(format!("{bytes:x}\r\n").as_bytes());
                (chunk.is_last, chunk.tail) = (false, b"\r\n");
            }
            Upload::Open | Upload::Finished => {
                out.extend_from_slice(b"0\r\n\r\n");
                self.upload = Upload::Plain;
            }
        }
        Some(chunk)
    }

    /// Whether a piece of a body could be handed out.
    pub const fn has_chunk(&self) -> bool {
        self.body_left_bytes > 0 || matches!(self.upload, Upload::Finished)
    }

    /// The end of a piece was not sent after all: the next piece begins with it.
    pub const fn return_chunk(&mut self, bytes: usize) {
        self.body_sent_bytes -= bytes as u64;
        self.body_left_bytes += bytes as u64;
    }

    /// Bytes of a body that are sent as they are and have not been handed out.
    pub const fn unframed_body_bytes(&self) -> u64 {
        if matches!(self.upload, Upload::Plain) { self.body_left_bytes } else { 0 }
    }

    /// Whether the request that was started last has been handed out to its end.
    const fn is_sent(&self) -> bool {
        self.body_left_bytes == 0 && matches!(self.upload, Upload::Plain)
    }

    /// The response in this slot is not wanted for now.
    pub const fn pause(&mut self, slot: u32) {
        self.paused_slot = Some(slot as u16);
    }

    /// It is wanted again.
    pub fn resume(&mut self, slot: u32) {
        self.paused_slot = self.paused_slot.filter(|paused| u32::from(*paused) != slot);
    }

    /// Whether a response is waited for, and wanted now.
    pub fn wants_read(&self) -> bool {
        self.reserved_count > 0 && self.paused_slot != Some(self.oldest_slot)
    }

    /// Decodes what belongs to the oldest response, and stops right after its last byte.
    ///
    /// # Errors
    ///
    /// When the bytes are no response, or answer nothing.
    pub fn decode<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Progress, DecodeError> {
        if self.started_count == 0 {
            return Err(DecodeError::Unrequested);
        }
        sink.stream(self.oldest_slot.into());
        let progress = self.decoder.decode(cache, input, sink)?;
        let event = self.received(progress.consumed, progress.response);
        Ok(Progress { consumed: progress.consumed, event: Some(event) })
    }

    /// Bytes left of a body of known length, which the caller may discard unread and then [`skip`](Self::skip).
    pub const fn skippable_bytes(&self) -> u64 {
        self.decoder.skippable_bytes()
    }

    /// Notes that `bytes` of the body were discarded unread: at most [`skippable_bytes`](Self::skippable_bytes).
    pub fn skip(&mut self, bytes: u64) -> Event {
        let response = self.decoder.skip(bytes);
        self.received(bytes as usize, response)
    }

    /// The server has closed its side: that ends a body that lasts until then, unless the connection was cut off (RFC 9112 9.8).
    ///
    /// # Errors
    ///
    /// When something was missing, and what. The requests in flight keep their slots.
    pub fn handle_eof(&mut self, is_cut_off: bool) -> Result<Event, DecodeError> {
        if self.started_count == 0 {
            return Err(DecodeError::ClosedBeforeResponse);
        }
        if let Some(bytes) = self.decoder.bytes_until_close().filter(|_| is_cut_off) {
            return Err(DecodeError::CutOff { bytes });
        }
        let response = self.decoder.handle_eof()?;
        Ok(self.received(0, Some(response)))
    }

    /// Whether no byte of the oldest response has been read.
    pub const fn is_between_responses(&self) -> bool {
        self.decoder.is_idle()
    }

    /// Whether a response has come in part.
    pub const fn is_mid_response(&self) -> bool {
        self.started_count > 0 && !self.decoder.is_idle()
    }

    /// The request that the next bytes answer; `None`: none was sent.
    pub const fn next_answered(&self) -> Option<u32> {
        if self.started_count > 0 { Some(self.oldest_slot as u32) } else { None }
    }

    /// The slots in use, that of the oldest request first.
    pub fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        let (oldest, depth) = (self.oldest_slot, self.depth);
        (0..self.reserved_count).map(move |nth| ring_slot(oldest, nth, depth))
    }

    fn received(&mut self, bytes: usize, response: Option<Response>) -> Event {
        let slot = self.oldest_slot.into();
        if let Some(response) = &response {
            let is_sent = self.started_count > 1 || self.is_sent();
            self.paused_slot = self.paused_slot.filter(|paused| *paused != self.oldest_slot);
            self.is_ending |= !response.keep_alive || !is_sent;
            self.oldest_slot = self.slot_of(1) as u16;
            self.reserved_count -= 1;
            self.started_count -= 1;
            if self.started_count > 0 {
                self.decoder.begin(self.kinds[usize::from(self.oldest_slot)]);
            }
        }
        Event::Received { slot, bytes: bytes as u32, response }
    }

    const fn last_started(&self) -> u32 {
        self.slot_of(self.started_count.saturating_sub(1))
    }

    const fn slot_of(&self, nth: u16) -> u32 {
        ring_slot(self.oldest_slot, nth, self.depth)
    }
}

/// The slot of the `nth` request behind the oldest one. `nth` is at most `depth`, so that no division is needed.
const fn ring_slot(oldest_slot: u16, nth: u16, depth: u16) -> u32 {
    let (slot, depth) = (oldest_slot as u32 + nth as u32, depth as u32);
    if slot < depth { slot } else { slot - depth }
}
