//! Bytes to parts of messages and control frames.
//!
//! Nothing is buffered but what a read can cut through and a caller needs whole: a header, and the payload of a control frame, for
//! which memory is taken only when that happens. So a silent connection costs what this struct has.

use super::frame::{Header, MessageKind, Opcode, header_bytes};
use super::utf8::Utf8;
use super::{CONTROL_BYTES_MAX, CloseCode, Error, WebSocketRole, mask};

/// Decodes what one connection receives.
#[derive(Debug)]
pub struct Decoder {
    role: WebSocketRole,
    allows_compression: bool,
    is_closed: bool,
    /// The beginning of a header.
    head: [u8; 14],
    head_count: u8,
    frame: Option<Frame>,
    message: Option<OpenMessage>,
    utf8: Utf8,
    /// The payload so far of a control frame that a read has cut through.
    control: Option<Box<Control>>,
}

/// A frame whose payload is being received.
#[derive(Debug, Clone, Copy)]
struct Frame {
    header: Header,
    received: u64,
}

/// A message whose last frame has not ended.
#[derive(Debug, Clone, Copy)]
struct OpenMessage {
    kind: MessageKind,
    is_compressed: bool,
}

#[derive(Debug)]
struct Control {
    bytes: [u8; CONTROL_BYTES_MAX],
    count: usize,
}

/// What [`Decoder::decode`] made of the beginning of its input.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// Bytes that are done with.
    pub consumed: usize,
    /// `None`: more bytes are needed.
    pub event: Option<Event<'a>>,
}

/// What was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A part of a message.
    Part(Part<'a>),
    /// To be answered with a pong that has the same payload.
    Ping(&'a [u8]),
    /// The answer to a ping, or unsolicited.
    Pong(&'a [u8]),
    /// The peer closes, with this code and reason. [`CloseCode::NONE`]: it gave none.
    Close(CloseCode, &'a str),
}

/// A part of a message: as much of it as was there to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Of the message.
    pub kind: MessageKind,
    /// Unmasked. Text that is not compressed has been checked.
    pub bytes: &'a [u8],
    /// The message is complete.
    pub is_last: bool,
    /// Bytes of a compressed message.
    pub is_compressed: bool,
}

impl Decoder {
    /// A decoder for this end of a connection. `allows_compression`: permessage-deflate was agreed on.
    pub fn new(role: WebSocketRole, allows_compression: bool) -> Self {
        Self {
            role,
            allows_compression,
            is_closed: false,
            head: [0; 14],
            head_count: 0,
            frame: None,
            message: None,
            utf8: Utf8::default(),
            control: None,
        }
    }

    /// Whether all that was received has been handed out: no frame and no message has come in part.
    pub const fn is_between_frames(&self) -> bool {
        self.head_count == 0 && self.frame.is_none() && self.message.is_none()
    }

    /// Decodes the next event; unmasks where it lies. Call it until there is no event.
    ///
    /// # Errors
    /// What the peer did against the protocol; nothing can be decoded after it.
    pub fn decode<'a>(&'a mut self, input: &'a mut [u8]) -> Result<Decoded<'a>, Error> {
        let mut consumed = 0;
        if self.frame.is_none() {
            consumed = self.read_header(input)?;
        }
        let Some(frame) = self.frame else { return Ok(Decoded { consumed, event: None }) };
        let left = frame.header.bytes - frame.received;
        let there = (input.len() - consumed) as u64;
        if left > there && (there == 0 || frame.header.opcode.is_control()) {
            self.keep_control(&frame, &mut input[consumed..]);
            return Ok(Decoded { consumed: input.len(), event: None });
        }
        let payload = &mut input[consumed..][..left.min(there) as usize];
        if let Some(key) = frame.header.mask {
            mask::apply(key, frame.received, payload);
        }
        consumed += payload.len();
        let event = self.payload(frame, payload)?;
        Ok(Decoded { consumed, event: Some(event) })
    }

    /// Collects a header, and begins its frame when it is whole; how many bytes it took.
    fn read_header(&mut self, input: &[u8]) -> Result<usize, Error> {
        let mut consumed = 0;
        loop {
            let have = usize::from(self.head_count);
            let want = header_bytes(&self.head[..have]).unwrap_or(2);
            if have >= 2 && have == want {
                break;
            }
            let taken = (want - have).min(input.len() - consumed);
            if taken == 0 {
                return Ok(consumed);
            }
            self.head[have..have + taken].copy_from_slice(&input[consumed..consumed + taken]);
            self.head_count += taken as u8;
            consumed += taken;
        }
        let header = Header::read(&self.head, self.role, self.allows_compression)?;
        self.begin(&header)?;
        self.head_count = 0;
        self.frame = Some(Frame { header, received: 0 });
        Ok(consumed)
    }

    fn begin(&mut self, header: &Header) -> Result<(), Error> {
        if self.is_closed {
            return Err(Error::AfterClose);
        }
        match header.opcode {
            Opcode::Continuation if self.message.is_none() => return Err(Error::NothingToContinue),
            Opcode::Message(_) if self.message.is_some() => return Err(Error::Unfinished),
            Opcode::Message(kind) => {
                self.message = Some(OpenMessage { kind, is_compressed: header.is_compressed });
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps the part of a control frame's payload that is there.
    fn keep_control(&mut self, frame: &Frame, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(key) = frame.header.mask {
            mask::apply(key, frame.received, bytes);
        }
        let empty = || Box::new(Control { bytes: [0; CONTROL_BYTES_MAX], count: 0 });
        let control = self.control.get_or_insert_with(empty);
        control.bytes[control.count..control.count + bytes.len()].copy_from_slice(bytes);
        control.count += bytes.len();
        self.frame = Some(Frame { received: frame.received + bytes.len() as u64, ..*frame });
    }

    /// What the payload of a frame, or the next part of it, means.
    fn payload<'a>(&'a mut self, frame: Frame, bytes: &'a mut [u8]) -> Result<Event<'a>, Error> {
        let received = frame.received + bytes.len() as u64;
        let is_whole = received == frame.header.bytes;
        self.frame = (!is_whole).then_some(Frame { received, ..frame });
        if frame.header.opcode.is_control() {
            return self.control_event(frame.header.opcode, bytes);
        }
        let message = self.message.ok_or(Error::NothingToContinue)?;
        let is_last = is_whole && frame.header.is_last;
        if is_last {
            self.message = None;
        }
        if message.kind == MessageKind::Text && !message.is_compressed {
            let is_valid = self.utf8.push(bytes) && (!is_last || self.utf8.finish());
            if !is_valid {
                return Err(Error::Utf8);
            }
        }
        let OpenMessage { kind, is_compressed } = message;
        Ok(Event::Part(Part { kind, bytes, is_last, is_compressed }))
    }

    fn control_event<'a>(&'a mut self, opcode: Opcode, bytes: &'a mut [u8]) -> Result<Event<'a>, Error> {
        let bytes = match &mut self.control {
            Some(control) if control.count > 0 => {
                let whole = control.count + bytes.len();
                control.bytes[control.count..whole].copy_from_slice(bytes);
                control.count = 0;
                &control.bytes[..whole]
            }
            _ => &*bytes,
        };
        Ok(match opcode {
            Opcode::Ping => Event::Ping(bytes),
            Opcode::Pong => Event::Pong(bytes),
            _ => {
                self.is_closed = true;
                close_event(bytes)?
            }
        })
    }
}

fn close_event(bytes: &[u8]) -> Result<Event<'_>, Error> {
    let Some((code, reason)) = bytes.split_first_chunk() else {
        return if bytes.is_empty() {
            Ok(Event::Close(CloseCode::NONE, ""))
        } else {
            Err(Error::ClosePayload)
        };
    };
    let code = CloseCode(u16::from_be_bytes(*code));
    if !code.may_be_sent() {
        return Err(Error::CloseCode(code.0));
    }
    let reason = std::str::from_utf8(reason).map_err(|_invalid| Error::Utf8)?;
    Ok(Event::Close(code, reason))
}
