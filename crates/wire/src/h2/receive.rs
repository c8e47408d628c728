//! Reads what the peer sends: frames in whatever pieces, and what each of them means (RFC 9113 5 and 6).

use super::client::{Client, GoAway};
use super::error::{calm, flow_control, frame_size, protocol, stream_closed};
use super::frame::{self, FrameHead, HEAD_BYTES};
use super::head::HeadCache;
use super::input::{Block, Data};
use super::limits::{
    CONTINUATION_COUNT_MAX, CONTROL_BYTES_MAX, CONTROL_BYTES_PER_STREAM_MAX, FRAME_BYTES_MAX,
    HEADER_BLOCK_BYTES_MAX, IDLE_FRAME_COUNT_MAX,
};
use super::settings::entries;
use super::stream::{Known, State};
use super::{Error, ErrorCode, StreamFailure};
use crate::h1::{Fields, HeadView, Sink, Version};
use crate::message::{Fault, HeadWanted, Part};
use crate::{Event, Progress};

/// What is read, and for which request.
struct Readers<'a, S> {
    cache: &'a mut HeadCache,
    sink: &'a mut S,
}

impl Client {
    /// Reads until something happened that the caller should know, or all is read.
    ///
    /// # Errors
    ///
    /// When the peer broke a rule that leaves the connection useless. Whether and why depends on the bytes alone, never on the pieces in
    /// which they come.
    pub fn decode<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Progress, Error> {
        let mut readers = Readers { cache, sink };
        let mut consumed = 0;
        while consumed < input.len() {
            let (bytes, event) = self.step(&mut readers, &input[consumed..])?;
            consumed += bytes;
            if event.is_some() {
                return Ok(Progress { consumed, event });
            }
        }
        Ok(Progress { consumed, event: None })
    }

    /// Reads some of a non-empty input, at least one byte.
    fn step<S: Sink>(
        &mut self,
        readers: &mut Readers<'_, S>,
        input: &[u8],
    ) -> Result<(usize, Option<Event>), Error> {
        if let Some(data) = self.input.data {
            return self.read_data(data, readers, input, 0);
        }
        if !self.input.partial.is_empty() {
            return self.read_partial(readers, input);
        }
        let Some(head_bytes) = input.first_chunk() else {
            self.input.partial.extend_from_slice(input);
            return Ok((input.len(), None));
        };
        let head = self.check_head(head_bytes)?;
        if head.kind == frame::DATA {
            return self.begin_data(head, readers, &input[HEAD_BYTES..]);
        }
        let end = HEAD_BYTES + head.length as usize;
        match input.get(HEAD_BYTES..end) {
            Some(payload) => Ok((end, self.on_frame(head, payload, readers)?)),
            None => {
                self.input.partial.extend_from_slice(input);
                Ok((input.len(), None))
            }
        }
    }

    /// Goes on with a frame of which some bytes have come.
    fn read_partial<S: Sink>(
        &mut self,
        readers: &mut Readers<'_, S>,
        input: &[u8],
    ) -> Result<(usize, Option<Event>), Error> {
        let had = self.input.partial.len();
        if had < HEAD_BYTES {
            let taken = input.len().min(HEAD_BYTES - had);
            self.input.partial.extend_from_slice(&input[..taken]);
            let Some(head_bytes) = self.input.partial.first_chunk().copied() else {
                return Ok((taken, None));
            };
            let head = self.check_head(&head_bytes)?;
            if head.kind == frame::DATA {
                self.input.partial.clear();
                let (consumed, event) = self.begin_data(head, readers, &input[taken..])?;
                return Ok((consumed - (HEAD_BYTES - taken), event));
            }
            if head.length > 0 {
                return Ok((taken, None));
            }
            self.input.partial.clear();
            return Ok((taken, self.on_frame(head, &[], readers)?));
        }
        let Some(head) = self.input.partial.first_chunk().map(|bytes| FrameHead::parse(*bytes)) else {
            return Ok((0, None));
        };
        let taken = input.len().min(HEAD_BYTES + head.length as usize - had);
        self.input.partial.extend_from_slice(&input[..taken]);
        if had + taken < HEAD_BYTES + head.length as usize {
            return Ok((taken, None));
        }
        let mut frame = std::mem::take(&mut self.input.partial);
        let event = self.on_frame(head, &frame[HEAD_BYTES..], readers)?;
        frame.clear();
        self.input.partial = frame;
        Ok((taken, event))
    }

    /// What can be said of a frame by its head alone.
    fn check_head(&mut self, bytes: &[u8; HEAD_BYTES]) -> Result<FrameHead, Error> {
        let head = FrameHead::parse(*bytes);
        if !self.input.has_settings {
            check_first_frame(bytes, head)?;
            self.input.has_settings = true;
        }
        if head.length > FRAME_BYTES_MAX {
            return Err(frame_size("frame larger than SETTINGS_MAX_FRAME_SIZE"));
        }
        let open_block = self.input.block.stream_id;
        if open_block != 0 && (head.kind != frame::CONTINUATION || head.stream_id != open_block) {
            return Err(protocol("another frame within a header block"));
        }
        let is_about_stream = matches!(
            head.kind,
            frame::DATA | frame::HEADERS | frame::PRIORITY | frame::RST_STREAM | frame::CONTINUATION
        );
        let is_about_connection = matches!(head.kind, frame::SETTINGS | frame::PING | frame::GOAWAY);
        if is_about_stream && head.stream_id == 0 {
            return Err(protocol("stream frame on stream 0"));
        }
        if is_about_connection && head.stream_id != 0 {
            return Err(protocol("connection frame on a stream"));
        }
        Ok(head)
    }

    /// A DATA frame begins; `input` is what follows its head. The whole frame counts against the windows, padding too (RFC 9113 6.9.1).
    fn begin_data<S: Sink>(
        &mut self,
        head: FrameHead,
        readers: &mut Readers<'_, S>,
        input: &[u8],
    ) -> Result<(usize, Option<Event>), Error> {
        if head.has(frame::PADDED) && head.length == 0 {
            return Err(frame_size("padded DATA frame without a padding length"));
        }
        self.take_from_connection_window(head.length)?;
        let is_end = head.has(frame::END_STREAM);
        if head.length == 0 && !is_end {
            self.note_idle_frame()?;
        }
        let mut data = Data {
            slot: None,
            bytes_left: head.length,
            padding_left: 0,
            awaits_padding: head.has(frame::PADDED),
            is_end,
        };
        match self.find(head.stream_id)? {
            None => {}
            Some(slot) => match self.data_fault(slot, head.length) {
                None => {
                    data.slot = Some(slot);
                    self.widen_stream(slot)?;
                }
                Some((code, why)) => {
                    self.input.data = Some(data);
                    return Ok((HEAD_BYTES, Some(self.fail(slot, code, why))));
                }
            },
        }
        self.read_data(data, readers, input, HEAD_BYTES)
    }

    /// Reads on in a DATA frame. `before`: bytes of the frame that this call has read already.
    fn read_data<S: Sink>(
        &mut self,
        mut data: Data,
        readers: &mut Readers<'_, S>,
        mut input: &[u8],
        before: usize,
    ) -> Result<(usize, Option<Event>), Error> {
        let input_bytes = input.len();
        if data.awaits_padding
            && let Some((&padding, rest)) = input.split_first()
        {
            input = rest;
            data.awaits_padding = false;
            data.padding_left = u32::from(padding);
            data.bytes_left = (data.bytes_left - 1)
                .checked_sub(data.padding_left)
                .ok_or_else(|| protocol("padding longer than the frame"))?;
        }
        let taken = input.len().min(data.bytes_left as usize);
        if !data.awaits_padding {
            let (bytes, rest) = input.split_at(taken);
            data.bytes_left -= taken as u32;
            if let Some(slot) = data.slot.filter(|_| taken > 0) {
                readers.sink.stream(slot);
                readers.sink.data(bytes);
                self.streams.at(slot).message.body_bytes += taken as u64;
                self.input.idle_frame_count = 0;
            }
            let skipped = rest.len().min(data.padding_left as usize);
            data.padding_left -= skipped as u32;
            input = &rest[skipped..];
        }
        let read = before + input_bytes - input.len();
        let is_over = !data.awaits_padding && data.bytes_left == 0 && data.padding_left == 0;
        self.input.data = (!is_over).then_some(data);
        let Some(slot) = data.slot else { return Ok((read, None)) };
        if is_over && data.is_end {
            return Ok((read, Some(self.end_response(slot, read as u32))));
        }
        Ok((read, Some(Event::Received { slot, bytes: read as u32, response: None })))
    }

    /// What makes a DATA frame wrong on its stream; else the stream's window is charged.
    fn data_fault(&mut self, slot: u32, bytes: u32) -> Option<(ErrorCode, &'static str)> {
        let stream = self.streams.at(slot);
        if stream.state == State::Head {
            return Some((ErrorCode::PROTOCOL_ERROR, "DATA before the head"));
        }
        if let Some(why) = stream.message.data_fault(bytes) {
            return Some((ErrorCode::PROTOCOL_ERROR, why));
        }
        let Some(left) = stream.receive_window.checked_sub(bytes) else {
            return Some((ErrorCode::FLOW_CONTROL_ERROR, "more DATA than the stream's window"));
        };
        stream.receive_window = left;
        None
    }

    /// Opens a stream's window again once half of it is used.
    fn widen_stream(&mut self, slot: u32) -> Result<(), Error> {
        let window_bytes = self.setup.window_bytes;
        let stream = self.streams.at(slot);
        let (id, left) = (stream.id, stream.receive_window);
        if left > window_bytes / 2 || stream.is_paused {
            return Ok(());
        }
        stream.receive_window = window_bytes;
        self.widen(id, window_bytes - left)
    }

    fn widen(&mut self, stream_id: u32, increment: u32) -> Result<(), Error> {
        self.check_control()?;
        frame::put(&mut self.control, frame::WINDOW_UPDATE, 0, stream_id, &increment.to_be_bytes());
        Ok(())
    }

    /// A peer that keeps to its windows cannot make us owe it more than two updates of each and an end of each stream: it has not read the first of
    /// them yet. One that goes beyond sends without reading.
    fn check_control(&self) -> Result<(), Error> {
        let streams_bytes = self.setup.stream_count as usize * CONTROL_BYTES_PER_STREAM_MAX;
        if self.control.len() > CONTROL_BYTES_MAX + streams_bytes {
            return Err(calm("the server sends requests but does not read the replies"));
        }
        Ok(())
    }

    fn take_from_connection_window(&mut self, bytes: u32) -> Result<(), Error> {
        let Some(left) = self.receive_window.checked_sub(bytes) else {
            return Err(flow_control("more DATA than the connection's window"));
        };
        self.receive_window = left;
        let window_bytes = self.setup.connection_window_bytes;
        if left <= window_bytes / 2 {
            self.receive_window = window_bytes;
            self.widen(0, window_bytes - left)?;
        }
        Ok(())
    }

    /// A whole frame of any kind but DATA.
    fn on_frame<S: Sink>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        readers: &mut Readers<'_, S>,
    ) -> Result<Option<Event>, Error> {
        match head.kind {
            frame::HEADERS => self.on_headers(head, payload, readers),
            frame::CONTINUATION => self.on_continuation(head, payload, readers),
            frame::RST_STREAM => self.on_reset(head, payload),
            frame::SETTINGS => self.on_settings(head, payload),
            frame::PING => self.on_ping(head, payload),
            frame::GOAWAY => self.on_goaway(payload),
            frame::WINDOW_UPDATE => self.on_window_update(head, payload),
            frame::PUSH_PROMISE => Err(protocol("PUSH_PROMISE although pushing is off")),
            frame::PRIORITY if payload.len() != 5 => {
                let failed = |this: &mut Self, slot| {
                    this.fail(slot, ErrorCode::FRAME_SIZE_ERROR, "PRIORITY of a wrong length")
                };
                Ok(self.find_or_ignore(head.stream_id).map(|slot| failed(self, slot)))
            }
            // RFC 9113 5.3.2 and 5.5: priorities, and unknown kinds, are ignored.
            _ => self.note_idle_frame().map(|()| None),
        }
    }

    fn on_headers<S: Sink>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        readers: &mut Readers<'_, S>,
    ) -> Result<Option<Event>, Error> {
        let block = header_block(head, payload)?;
        let frame_bytes = HEAD_BYTES as u32 + head.length;
        let is_end = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            return self.on_block(head.stream_id, is_end, block, frame_bytes, readers);
        }
        let open = &mut self.input.block;
        open.bytes.clear();
        open.bytes.extend_from_slice(block);
        (open.stream_id, open.is_end) = (head.stream_id, is_end);
        (open.frame_count, open.frame_bytes) = (0, frame_bytes);
        Ok(None)
    }

    fn on_continuation<S: Sink>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        readers: &mut Readers<'_, S>,
    ) -> Result<Option<Event>, Error> {
        let open = &mut self.input.block;
        if open.stream_id == 0 {
            return Err(protocol("CONTINUATION without HEADERS"));
        }
        open.frame_count += 1;
        open.frame_bytes += HEAD_BYTES as u32 + head.length;
        if open.frame_count > CONTINUATION_COUNT_MAX
            || open.bytes.len() + payload.len() > HEADER_BLOCK_BYTES_MAX
        {
            return Err(calm("header block without end"));
        }
        open.bytes.extend_from_slice(payload);
        if !head.has(frame::END_HEADERS) {
            return Ok(None);
        }
        let Block { stream_id, is_end, frame_bytes, .. } = *open;
        let block = std::mem::take(&mut open.bytes);
        open.stream_id = 0;
        let event = self.on_block(stream_id, is_end, &block, frame_bytes, readers)?;
        self.input.block.bytes = block;
        Ok(event)
    }

    /// A whole header block. Unwanted blocks are read too: they change the table.
    fn on_block<S: Sink>(
        &mut self,
        stream_id: u32,
        is_end: bool,
        block: &[u8],
        frame_bytes: u32,
        readers: &mut Readers<'_, S>,
    ) -> Result<Option<Event>, Error> {
        let found = self.find(stream_id)?;
        let wanted = if found.is_some() && readers.sink.wants_heads() {
            HeadWanted::Text
        } else {
            HeadWanted::Meaning
        };
        let head = readers.cache.read(&mut self.decoder, block, wanted)?;
        self.headers.received += head.bytes as u64;
        self.headers.received_packed += block.len() as u64;
        let Some(slot) = found else { return Ok(None) };
        if let Some(fault) = head.fault {
            return Ok(Some(match fault {
                Fault::Malformed(why) => self.fail(slot, ErrorCode::PROTOCOL_ERROR, why),
                Fault::TooLarge => {
                    self.reset(slot, ErrorCode::CANCEL);
                    Event::Failed { slot, failure: StreamFailure::HeadTooLarge }
                }
            }));
        }
        let part = match self.streams.at(slot).message.note_section(&head, is_end) {
            Ok(part) => part,
            Err(why) => return Ok(Some(self.fail(slot, ErrorCode::PROTOCOL_ERROR, why))),
        };
        if part == Part::Head {
            self.streams.at(slot).state = State::Body;
        }
        tell(slot, part, head.status, readers);
        if is_end {
            return Ok(Some(self.end_response(slot, frame_bytes)));
        }
        Ok(Some(Event::Received { slot, bytes: frame_bytes, response: None }))
    }

    /// The peer has ended its side: the response is whole, if it is as long as it said.
    fn end_response(&mut self, slot: u32, bytes: u32) -> Event {
        let stream = *self.streams.get(slot);
        let response = match stream.message.end() {
            Ok(response) => response,
            Err(why) => return self.fail(slot, ErrorCode::PROTOCOL_ERROR, why),
        };
        self.input.idle_frame_count = 0;
        if stream.is_uploading {
            // RFC 9113 8.1: the server needs no more of the request.
            self.reset(slot, ErrorCode::NO_ERROR);
        } else {
            self.streams.free(slot);
        }
        Event::Received { slot, bytes, response: Some(response) }
    }

    fn on_reset(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Event>, Error> {
        let code = exactly(payload, 4, "RST_STREAM with a wrong length")?;
        let code = ErrorCode(code.into());
        if self.streams.find(head.stream_id) == Known::Idle {
            return Err(protocol("RST_STREAM on a stream that was never opened"));
        }
        let Some(slot) = self.find_or_ignore(head.stream_id) else {
            return self.note_idle_frame().map(|()| None);
        };
        self.end(slot);
        let failure = match code {
            ErrorCode::REFUSED_STREAM => StreamFailure::Unprocessed(code),
            _ => StreamFailure::Reset(code),
        };
        Ok(Some(Event::Failed { slot, failure }))
    }

    fn on_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Event>, Error> {
        if head.has(frame::ACK) {
            return if payload.is_empty() {
                Ok(None)
            } else {
                Err(frame_size("SETTINGS acknowledgement with a payload"))
            };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(frame_size("SETTINGS with a wrong length"));
        }
        self.note_idle_frame()?;
        let before = self.peer.window_bytes;
        self.peer.note_first_word();
        for setting in entries(payload) {
            self.peer.apply(&setting)?;
        }
        self.shift_send_windows(self.peer.window_bytes - before)?;
        self.apply_header_table_size();
        self.answer(frame::SETTINGS, &[])?;
        Ok(Some(Event::Allowance))
    }

    fn on_ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Event>, Error> {
        if payload.len() != 8 {
            return Err(frame_size("PING with a wrong length"));
        }
        if head.has(frame::ACK) && std::mem::take(&mut self.input.awaits_pong) {
            return Ok(Some(Event::Pong));
        }
        self.note_idle_frame()?;
        if !head.has(frame::ACK) {
            self.answer(frame::PING, payload)?;
        }
        Ok(None)
    }

    fn on_goaway(&mut self, payload: &[u8]) -> Result<Option<Event>, Error> {
        let (Some(last), Some(code)) = (frame::number(payload), payload.get(4..).and_then(frame::number))
        else {
            return Err(frame_size("GOAWAY with a wrong length"));
        };
        self.note_idle_frame()?;
        // RFC 9113 6.8: what was once said to be left alone stays so.
        let known = self.goaway.map_or(u32::MAX, |goaway| goaway.last_stream_id);
        let last_stream_id = (last & frame::STREAM_ID_MAX).min(known);
        self.goaway = Some(GoAway { last_stream_id, code: ErrorCode(code.into()) });
        Ok(Some(Event::GoingAway))
    }

    fn on_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Event>, Error> {
        let increment = exactly(payload, 4, "WINDOW_UPDATE with a wrong length")? & frame::STREAM_ID_MAX;
        if self.sending.is_empty() {
            self.note_idle_frame()?;
        }
        if head.stream_id == 0 {
            if increment == 0 {
                return Err(protocol("WINDOW_UPDATE with an increment of 0"));
            }
            let widened = self.send_window.checked_add(increment as i32);
            self.send_window = widened.ok_or_else(|| flow_control("connection window beyond 2^31 - 1"))?;
            return Ok(Some(Event::Allowance));
        }
        if self.streams.find(head.stream_id) == Known::Idle {
            return Err(protocol("WINDOW_UPDATE on a stream that was never opened"));
        }
        let Some(slot) = self.find_or_ignore(head.stream_id) else { return Ok(None) };
        if increment == 0 {
            return Ok(Some(self.fail(
                slot,
                ErrorCode::PROTOCOL_ERROR,
                "WINDOW_UPDATE with an increment of 0",
            )));
        }
        let stream = self.streams.at(slot);
        match stream.send_window.checked_add(increment as i32) {
            Some(window) => {
                stream.send_window = window;
                Ok(Some(Event::Allowance))
            }
            None => Ok(Some(self.fail(slot, ErrorCode::FLOW_CONTROL_ERROR, "stream window beyond 2^31 - 1"))),
        }
    }

    /// The open stream that HEADERS or DATA are about; `None`: one that no request waits for any more.
    fn find(&self, stream_id: u32) -> Result<Option<u32>, Error> {
        match self.streams.find(stream_id) {
            Known::Open(slot) => Ok(Some(slot)),
            Known::Ignored => Ok(None),
            Known::Closed => Err(stream_closed("frame on a closed stream")),
            Known::Idle => Err(protocol("frame on a stream that was never opened")),
        }
    }

    fn find_or_ignore(&self, stream_id: u32) -> Option<u32> {
        match self.streams.find(stream_id) {
            Known::Open(slot) => Some(slot),
            _ => None,
        }
    }

    /// The response is malformed: its stream is reset.
    fn fail(&mut self, slot: u32, code: ErrorCode, why: &'static str) -> Event {
        self.reset(slot, code);
        Event::Failed { slot, failure: StreamFailure::Malformed(why) }
    }

    fn answer(&mut self, kind: u8, payload: &[u8]) -> Result<(), Error> {
        self.check_control()?;
        frame::put(&mut self.control, kind, frame::ACK, 0, payload);
        Ok(())
    }

    fn note_idle_frame(&mut self) -> Result<(), Error> {
        self.input.idle_frame_count += 1;
        if self.input.idle_frame_count > IDLE_FRAME_COUNT_MAX {
            return Err(calm("too many consecutive frames without effect"));
        }
        Ok(())
    }
}

/// Passes a block on to the sink.
fn tell<S: Sink>(slot: u32, part: Part, status: u16, readers: &mut Readers<'_, S>) {
    if !readers.sink.wants_heads() {
        return;
    }
    readers.sink.stream(slot);
    match part {
        Part::Trailers => readers.sink.trailers(Fields::new(readers.cache.text().lines())),
        Part::Interim => readers.sink.interim(status),
        Part::Head => {
            readers.sink.head(&HeadView::of_fields(Version::Http2, status, readers.cache.text().whole()));
        }
    }
}

/// RFC 9113 3.4: the peer begins with SETTINGS. What does not is often no HTTP/2 at all.
fn check_first_frame(bytes: &[u8; HEAD_BYTES], head: FrameHead) -> Result<(), Error> {
    if bytes.starts_with(b"HTTP/") {
        return Err(protocol("the server answered in HTTP/1.x: it does not support HTTP/2 here"));
    }
    if matches!(bytes, [0x15, 0x03, ..]) {
        return Err(protocol(
            "the server answered with a TLS alert: the port uses TLS, so the URL needs https",
        ));
    }
    if head.kind != frame::SETTINGS || head.has(frame::ACK) {
        return Err(protocol("the server did not start with SETTINGS: it does not support HTTP/2"));
    }
    Ok(())
}

/// The header block of a HEADERS frame, without padding and priority (RFC 9113 6.2).
fn header_block(head: FrameHead, payload: &[u8]) -> Result<&[u8], Error> {
    let mut block = payload;
    let mut padding = 0;
    if head.has(frame::PADDED) {
        let (&length, rest) =
            block.split_first().ok_or_else(|| frame_size("padded HEADERS without a padding length"))?;
        (padding, block) = (usize::from(length), rest);
    }
    if head.has(frame::PRIORITISED) {
        block = block.get(5..).ok_or_else(|| frame_size("HEADERS too short for its priority"))?;
    }
    let bytes = block.len().checked_sub(padding).ok_or_else(|| protocol("padding longer than the frame"))?;
    Ok(&block[..bytes])
}

fn exactly(payload: &[u8], length: usize, text: &'static str) -> Result<u32, Error> {
    frame::number(payload).filter(|_| payload.len() == length).ok_or_else(|| frame_size(text))
}
