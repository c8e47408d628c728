//! What concerns the connection as a whole: the unidirectional streams of both sides (RFC 9114 6.2, RFC 9204 4.2), and the frames and
//! instructions on them.
//!
//! Owns: settings, GOAWAY, the state of QPACK, what waits to be sent besides messages. Never: requests.

use std::collections::VecDeque;

use super::error::{closed_critical, excessive, frame_error, id_error, stream_creation, unexpected};
use super::limits::{
    IDLE_FRAME_COUNT_MAX, PRIORITY_UPDATE_BYTES_MAX, SETTINGS_BYTES_MAX, UNI_OUTPUT_BYTES_MAX,
    UNKNOWN_STREAM_COUNT_MAX,
};
use super::qpack::{self, Decoder};
use super::settings::{PeerSettings, Setup};
use super::{Error, frame, varint};
use crate::ErrorCode;

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// A frame of QUIC that the transport is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamAbort {
    /// RESET_STREAM: nothing more is sent on the stream, and what waits is dropped.
    Reset {
        /// The stream.
        stream_id: u64,
        /// Why.
        code: ErrorCode,
    },
    /// STOP_SENDING: the stream is not read any more.
    StopSending {
        /// The stream.
        stream_id: u64,
        /// Why.
        code: ErrorCode,
    },
}

#[derive(Debug)]
pub(super) struct Control {
    side: Side,
    pub(super) peer: PeerSettings,
    /// From here on the peer processes no requests; a client's push ids are of no interest.
    pub(super) goaway: Option<u64>,
    pub(super) decoder: Decoder,
    pub(super) commands: VecDeque<StreamAbort>,
    /// What waits on our own streams.
    outputs: Vec<Vec<u8>>,
    /// The peer's control stream, and where its frames are.
    control_id: Option<u64>,
    frames: ControlFrames,
    pub(super) has_settings: bool,
    /// The push ids that a client allows must not shrink.
    push_id_max: u64,
    /// The highest stream whose priority a client has changed.
    prioritised_id_max: Option<u64>,
    encoder_id: Option<u64>,
    decoder_id: Option<u64>,
    /// Instructions of the peer's decoder stream that came in part.
    acknowledgements: Vec<u8>,
    /// Streams of which the kind has not come in whole, with what has come of it; and those that mean nothing.
    others: Vec<Other>,
    idle_frame_count: u32,
}

/// A stream of the peer that has no known kind.
#[derive(Debug)]
struct Other {
    stream_id: u64,
    /// Of its kind; empty: it is known, and means nothing.
    begin: Vec<u8>,
}

/// Where we are on the peer's control stream.
#[derive(Debug, Default)]
struct ControlFrames {
    /// A frame that came in part, its head included.
    partial: Vec<u8>,
    /// What is left of a frame that means nothing.
    skip_bytes: u64,
}

/// What a stream is for (RFC 9114 6.2, RFC 9204 4.2).
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const QPACK_ENCODER: u64 = 0x2;
const QPACK_DECODER: u64 = 0x3;

/// What the peer said about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    Settings,
    GoAway,
    /// The dynamic table has grown.
    Inserted,
}

impl Control {
    pub(super) fn new(side: Side, setup: Setup) -> Self {
        let mut control = Vec::new();
        varint::put(CONTROL, &mut control);
        setup.put(&mut control);
        let mut outputs = vec![control];
        // RFC 9204 4.2: neither of QPACK's streams is opened where it would have nothing to say.
        if setup.table_bytes > 0 {
            outputs.push(vec![QPACK_DECODER as u8]);
        }
        if let Some(n) = setup.grease.filter(|_| setup.has_grease_stream) {
            let mut output = Vec::new();
            varint::put(frame::grease(n), &mut output);
            outputs.push(output);
        }
        Self {
            side,
            peer: PeerSettings::new(),
            goaway: None,
            decoder: Decoder::new(setup.table_bytes(), setup.blocked_stream_count()),
            commands: VecDeque::new(),
            outputs,
            control_id: None,
            frames: ControlFrames::default(),
            has_settings: false,
            push_id_max: 0,
            prioritised_id_max: None,
            encoder_id: None,
            decoder_id: None,
            acknowledgements: Vec::new(),
            others: Vec::new(),
            idle_frame_count: 0,
        }
    }

    pub(super) fn uni_count(&self) -> u64 {
        self.outputs.len() as u64
    }

    pub(super) fn uni_output(&self, stream_id: u64) -> &[u8] {
        self.outputs.get(uni_idx(stream_id)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn uni_sent(&mut self, stream_id: u64, bytes: usize) {
        if let Some(output) = self.outputs.get_mut(uni_idx(stream_id)) {
            output.drain(..bytes.min(output.len()));
        }
    }

    pub(super) fn output_bytes(&self) -> usize {
        self.outputs.iter().map(Vec::len).sum()
    }

    pub(super) fn wants_write(&self) -> bool {
        !self.commands.is_empty() || self.outputs.iter().any(|output| !output.is_empty())
    }

    pub(super) fn note_pause(&mut self) {
        self.idle_frame_count = 0;
    }

    /// Appends GOAWAY (RFC 9114 5.2): requests from this stream on are not processed.
    pub(super) fn put_goaway(&mut self, stream_id: u64) {
        let mut payload = Vec::new();
        varint::put(stream_id, &mut payload);
        frame::put(frame::GOAWAY, &payload, &mut self.outputs[0]);
    }

    /// What the transport is to send next. Of a stream whose reading it stops nothing more comes.
    pub(super) fn next_command(&mut self) -> Option<StreamAbort> {
        let command = self.commands.pop_front();
        if let Some(StreamAbort::StopSending { stream_id, .. }) = command {
            self.others.retain(|other| other.stream_id != stream_id);
        }
        command
    }

    /// A stream is abandoned before its end.
    pub(super) fn stop_reading(&mut self, stream_id: u64, code: ErrorCode) {
        self.commands.push_back(StreamAbort::StopSending { stream_id, code });
        self.forget_sections(stream_id);
    }

    /// RFC 9204 2.2.2.2: sections of this stream will not be acknowledged.
    pub(super) fn forget_sections(&mut self, stream_id: u64) {
        if self.decoder.has_table() {
            qpack::put_cancellation(stream_id, &mut self.outputs[DECODER_OUTPUT]);
        }
    }

    /// RFC 9204 2.2.2.1: a section that uses the dynamic table was decoded.
    pub(super) fn acknowledge_section(&mut self, stream_id: u64, insert_count: u64) -> Result<(), Error> {
        qpack::put_acknowledgement(stream_id, &mut self.outputs[DECODER_OUTPUT]);
        self.decoder.note_known(insert_count);
        self.check_outputs()
    }

    /// Reads bytes of one of the peer's unidirectional streams, until something happened that the caller should know, or all is read.
    pub(super) fn decode(
        &mut self,
        stream_id: u64,
        input: &[u8],
        is_fin: bool,
    ) -> Result<(usize, Option<Notice>), Error> {
        if let Some(idx) = self.others.iter().position(|other| other.stream_id == stream_id) {
            if !self.others[idx].begin.is_empty() {
                return self.decode_kind(idx, input, is_fin);
            }
            if is_fin {
                self.others.swap_remove(idx);
            }
            return Ok((input.len(), None));
        }
        let stream = Some(stream_id);
        let (consumed, notice) = if stream == self.control_id {
            self.decode_control(input)?
        } else if stream == self.encoder_id {
            (input.len(), self.decode_insertions(input)?)
        } else if stream == self.decoder_id {
            qpack::read_acknowledgements(&mut self.acknowledgements, input)?;
            (input.len(), None)
        } else {
            if self.others.len() >= UNKNOWN_STREAM_COUNT_MAX {
                return Err(excessive("too many unidirectional streams"));
            }
            self.others.push(Other { stream_id, begin: Vec::new() });
            return self.decode_kind(self.others.len() - 1, input, is_fin);
        };
        if is_fin && consumed == input.len() {
            return Err(closed_critical("the peer closed its control stream or one of QPACK's"));
        }
        Ok((consumed, notice))
    }

    /// Reads the first bytes of a stream, which say what it is for.
    fn decode_kind(
        &mut self,
        idx: usize,
        input: &[u8],
        is_fin: bool,
    ) -> Result<(usize, Option<Notice>), Error> {
        let stream_id = self.others[idx].stream_id;
        let begin = &mut self.others[idx].begin;
        let had = begin.len();
        let mut kind = None;
        let mut taken = 0;
        while kind.is_none() && taken < input.len() {
            begin.push(input[taken]);
            taken += 1;
            kind = varint::take(&mut &begin[..]);
        }
        debug_assert!(had + taken <= 8, "an integer has at most eight bytes");
        let Some(kind) = kind else {
            // RFC 9114 6.2: a stream that ends before its kind is no error.
            if is_fin || begin.is_empty() {
                self.others.swap_remove(idx);
            }
            return Ok((taken, None));
        };
        self.begin(idx, stream_id, kind)?;
        let (consumed, notice) = self.decode(stream_id, &input[taken..], is_fin)?;
        Ok((taken + consumed, notice))
    }

    fn begin(&mut self, idx: usize, stream_id: u64, kind: u64) -> Result<(), Error> {
        let place = match (kind, self.side) {
            (CONTROL, _) => &mut self.control_id,
            (QPACK_ENCODER, _) => &mut self.encoder_id,
            (QPACK_DECODER, _) => &mut self.decoder_id,
            // RFC 9114 4.6: no push was ever allowed.
            (PUSH, Side::Client) => return Err(id_error("push stream although pushing is off")),
            (PUSH, Side::Server) => return Err(stream_creation("push stream from a client")),
            _ => {
                self.others[idx].begin.clear();
                let code = ErrorCode::H3_STREAM_CREATION_ERROR;
                self.commands.push_back(StreamAbort::StopSending { stream_id, code });
                return Ok(());
            }
        };
        if place.is_some() {
            return Err(stream_creation("a second control stream, or a second of one of QPACK's"));
        }
        *place = Some(stream_id);
        self.others.swap_remove(idx);
        Ok(())
    }

    fn decode_insertions(&mut self, input: &[u8]) -> Result<Option<Notice>, Error> {
        if !self.decoder.insert(input)? {
            return Ok(None);
        }
        let count = self.decoder.take_unknown();
        if count > 0 {
            qpack::put_increment(count, &mut self.outputs[DECODER_OUTPUT]);
        }
        self.check_outputs()?;
        Ok(Some(Notice::Inserted))
    }

    /// Reads at most one frame to its end.
    fn decode_control(&mut self, input: &[u8]) -> Result<(usize, Option<Notice>), Error> {
        let mut rest = input;
        while !rest.is_empty() {
            let skipped = rest.len().min(usize::try_from(self.frames.skip_bytes).unwrap_or(usize::MAX));
            self.frames.skip_bytes -= skipped as u64;
            rest = &rest[skipped..];
            if let Some(notice) = self.step_control(&mut rest)? {
                return Ok((input.len() - rest.len(), Some(notice)));
            }
        }
        Ok((input.len(), None))
    }

    fn step_control(&mut self, rest: &mut &[u8]) -> Result<Option<Notice>, Error> {
        // Bytes of a frame that is not whole are gathered: first its head, byte by byte, then its payload.
        let mut partial = std::mem::take(&mut self.frames.partial);
        let (kind, length, head_bytes) = loop {
            let mut gathered = &partial[..];
            if let Some((kind, length)) = frame::take_head(&mut gathered) {
                break (kind, length, partial.len() - gathered.len());
            }
            let Some((byte, after)) = rest.split_first() else {
                self.frames.partial = partial;
                return Ok(None);
            };
            partial.push(*byte);
            *rest = after;
        };
        if partial.len() == head_bytes {
            self.check_frame(kind, length)?;
            if !frame::is_of_control(kind) {
                partial.clear();
                self.frames = ControlFrames { partial, skip_bytes: length };
                self.note_idle_frame()?;
                return Ok(None);
            }
        }
        let missing = head_bytes + length as usize - partial.len();
        let (bytes, after) = rest.split_at(missing.min(rest.len()));
        partial.extend_from_slice(bytes);
        *rest = after;
        if bytes.len() < missing {
            self.frames.partial = partial;
            return Ok(None);
        }
        let notice = self.on_frame(kind, &partial[head_bytes..])?;
        partial.clear();
        self.frames.partial = partial;
        Ok(notice)
    }

    /// What can be said of a frame by its head alone.
    fn check_frame(&mut self, kind: u64, length: u64) -> Result<(), Error> {
        if !self.has_settings && kind != frame::SETTINGS {
            let text = "the control stream does not begin with SETTINGS";
            return Err(Error::new(ErrorCode::H3_MISSING_SETTINGS, text));
        }
        if matches!(kind, frame::DATA | frame::HEADERS | frame::PUSH_PROMISE) {
            return Err(unexpected("frame of a message on the control stream"));
        }
        if frame::is_of_http2(kind) {
            return Err(unexpected("frame of HTTP/2"));
        }
        match kind {
            frame::SETTINGS if self.has_settings => Err(unexpected("SETTINGS twice")),
            frame::MAX_PUSH_ID if self.side == Side::Client => Err(unexpected("MAX_PUSH_ID from a server")),
            frame::SETTINGS if length > SETTINGS_BYTES_MAX => Err(excessive("SETTINGS without end")),
            frame::PRIORITY_OF_REQUEST | frame::PRIORITY_OF_PUSH => self.check_priority(kind, length),
            // These have one integer.
            frame::GOAWAY | frame::MAX_PUSH_ID | frame::CANCEL_PUSH if !matches!(length, 1..=8) => {
                Err(frame_error("frame with a wrong length on the control stream"))
            }
            _ => Ok(()),
        }
    }

    /// RFC 9218 7.2: only clients send PRIORITY_UPDATE, and no push was ever promised.
    fn check_priority(&self, kind: u64, length: u64) -> Result<(), Error> {
        if self.side == Side::Client {
            return Err(unexpected("PRIORITY_UPDATE from a server"));
        }
        if kind == frame::PRIORITY_OF_PUSH {
            return Err(id_error("PRIORITY_UPDATE of a push that was never promised"));
        }
        if length > PRIORITY_UPDATE_BYTES_MAX {
            return Err(excessive("PRIORITY_UPDATE without end"));
        }
        Ok(())
    }

    fn on_frame(&mut self, kind: u64, payload: &[u8]) -> Result<Option<Notice>, Error> {
        if kind == frame::SETTINGS {
            self.peer = PeerSettings::read(payload)?;
            self.has_settings = true;
            return Ok(Some(Notice::Settings));
        }
        self.note_idle_frame()?;
        let mut rest = payload;
        let id = varint::take(&mut rest);
        if kind == frame::PRIORITY_OF_REQUEST {
            return self.on_priority(id).map(|()| None);
        }
        let id = id.filter(|_| rest.is_empty());
        let id = id.ok_or_else(|| frame_error("frame with a wrong length on the control stream"))?;
        match kind {
            frame::GOAWAY => self.on_goaway(id),
            // RFC 9114 7.2.3: no push was ever allowed, and none promised.
            frame::CANCEL_PUSH => Err(id_error("CANCEL_PUSH of a push that was never promised")),
            _ if id < self.push_id_max => Err(id_error("MAX_PUSH_ID that is lower than before")),
            _ => {
                self.push_id_max = id;
                Ok(None)
            }
        }
    }

    /// RFC 9218 7.2: the frame names a request's stream. Responses are sent as they come, so its field value is not parsed, which the RFC leaves
    /// open; nor are stream limits checked, which are the transport's.
    fn on_priority(&mut self, id: Option<u64>) -> Result<(), Error> {
        let id = id.ok_or_else(|| frame_error("PRIORITY_UPDATE without an id"))?;
        if id & 3 != 0 {
            return Err(id_error("PRIORITY_UPDATE with an id that no request has"));
        }
        // Browsers send one with each request: only repetitions are idle.
        if self.prioritised_id_max.is_none_or(|max| id > max) {
            self.prioritised_id_max = Some(id);
            self.idle_frame_count = 0;
        }
        Ok(())
    }

    /// RFC 9114 5.2: a server names a request, and never a later one than before.
    fn on_goaway(&mut self, id: u64) -> Result<Option<Notice>, Error> {
        if self.side == Side::Client && id & 3 != 0 {
            return Err(id_error("GOAWAY with an id that no request has"));
        }
        if self.goaway.is_some_and(|known| id > known) {
            return Err(id_error("GOAWAY with a higher id than before"));
        }
        self.goaway = Some(id);
        Ok(Some(Notice::GoAway))
    }

    /// The peer has reset a stream of its own.
    pub(super) fn handle_reset(&mut self, stream_id: u64) -> Result<(), Error> {
        let stream = Some(stream_id);
        if stream == self.control_id || stream == self.encoder_id || stream == self.decoder_id {
            return Err(closed_critical("the peer reset its control stream or one of QPACK's"));
        }
        self.others.retain(|other| other.stream_id != stream_id);
        Ok(())
    }

    /// The peer does not read one of our streams.
    pub(super) fn handle_stop_sending(&mut self, stream_id: u64, code: ErrorCode) -> Result<(), Error> {
        let idx = uni_idx(stream_id);
        let is_grease = idx > 0 && !(idx == DECODER_OUTPUT && self.decoder.has_table());
        if !is_grease {
            return Err(closed_critical("the peer stopped reading our control stream or one of QPACK's"));
        }
        if let Some(output) = self.outputs.get_mut(idx) {
            output.clear();
            self.commands.push_back(StreamAbort::Reset { stream_id, code });
        }
        Ok(())
    }

    /// A peer that makes us answer must read the answers.
    fn check_outputs(&self) -> Result<(), Error> {
        if self.output_bytes() > UNI_OUTPUT_BYTES_MAX {
            return Err(excessive("the peer does not read our unidirectional streams"));
        }
        Ok(())
    }

    fn note_idle_frame(&mut self) -> Result<(), Error> {
        self.idle_frame_count += 1;
        if self.idle_frame_count > IDLE_FRAME_COUNT_MAX {
            return Err(excessive("too many consecutive frames without effect"));
        }
        Ok(())
    }
}

/// The decoder stream's place among our own, where it is opened at all.
const DECODER_OUTPUT: usize = 1;

const fn uni_idx(stream_id: u64) -> usize {
    (stream_id >> 2) as usize
}
