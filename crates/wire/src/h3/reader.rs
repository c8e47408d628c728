//! Where we are in the frames of a request's stream (RFC 9114 4.1, 7), whichever side reads it.
//!
//! Owns: frames that came in part, and which may come next. Never: what they mean.

use super::control::Side;
use super::error::{frame_error, id_error, unexpected};
use super::limits::{SECTION_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use super::{Error, frame};

/// What has been read of a message.
#[derive(Debug)]
pub(super) struct Reader {
    /// Who reads it.
    side: Side,
    /// Set by the owner, who knows what a section was.
    pub(super) phase: Phase,
    place: Place,
    /// A frame's head that came in part; then its section.
    pub(super) buffer: Vec<u8>,
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head is to come.
    Head,
    /// The body or the trailers are to come.
    Body,
    /// The trailers have come.
    Over,
}

/// Where the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    FrameHead,
    Data { left_bytes: u64 },
    Section { left_bytes: u64 },
    Skipped { left_bytes: u64 },
}

/// What some bytes were.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Nothing that is whole.
    More,
    /// A piece of the body; never empty.
    Data(&'a [u8]),
    /// A whole field section, where it lies.
    Section(&'a [u8]),
    /// The same, in the reader's buffer.
    BufferedSection,
    /// A frame that means nothing, or DATA without bytes.
    Skipped,
    /// A field section that is larger than the limit.
    TooLarge,
}

impl Reader {
    pub(super) const fn new(side: Side) -> Self {
        Self { side, phase: Phase::Head, place: Place::FrameHead, buffer: Vec::new() }
    }

    /// Begins another message.
    pub(super) fn reset(&mut self) {
        (self.phase, self.place) = (Phase::Head, Place::FrameHead);
        let buffer = std::mem::take(&mut self.buffer);
        self.give_back(buffer);
    }

    /// A buffer is not needed any more.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() <= SPARE_BUFFER_BYTES_MAX {
            self.buffer = buffer;
        }
    }

    /// Reads some of a non-empty input, at least one byte.
    pub(super) fn step<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Step<'a>, Error> {
        match self.place {
            Place::FrameHead => self.read_head(rest),
            Place::Data { left_bytes } => {
                let (bytes, left_bytes) = take(rest, left_bytes);
                self.place = if left_bytes > 0 { Place::Data { left_bytes } } else { Place::FrameHead };
                Ok(Step::Data(bytes))
            }
            Place::Section { left_bytes } => {
                let (bytes, left_bytes) = take(rest, left_bytes);
                self.buffer.extend_from_slice(bytes);
                if left_bytes > 0 {
                    self.place = Place::Section { left_bytes };
                    return Ok(Step::More);
                }
                self.place = Place::FrameHead;
                Ok(Step::BufferedSection)
            }
            Place::Skipped { left_bytes } => {
                let (_, left_bytes) = take(rest, left_bytes);
                self.place = if left_bytes > 0 { Place::Skipped { left_bytes } } else { Place::FrameHead };
                Ok(Step::More)
            }
        }
    }

    fn read_head<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Step<'a>, Error> {
        if self.buffer.is_empty()
            && let Some((kind, length)) = frame::take_head(rest)
        {
            return self.begin(kind, length, rest);
        }
        while let Some((byte, after)) = rest.split_first() {
            self.buffer.push(*byte);
            *rest = after;
            if let Some((kind, length)) = frame::take_head(&mut &self.buffer[..]) {
                self.buffer.clear();
                return self.begin(kind, length, rest);
            }
        }
        Ok(Step::More)
    }

    fn begin<'a>(&mut self, kind: u64, length: u64, rest: &mut &'a [u8]) -> Result<Step<'a>, Error> {
        match (kind, self.phase) {
            (frame::DATA, Phase::Head) => Err(unexpected("DATA before the head")),
            (frame::DATA | frame::HEADERS, Phase::Over) => Err(unexpected("frame after the trailers")),
            (frame::DATA, _) if length == 0 => Ok(Step::Skipped),
            (frame::DATA, _) => {
                self.place = Place::Data { left_bytes: length };
                Ok(Step::More)
            }
            (frame::HEADERS, _) => Ok(self.begin_section(length, rest)),
            // RFC 9114 7.2.5: no push was ever allowed, and clients never push.
            (frame::PUSH_PROMISE, _) if self.side == Side::Server => {
                Err(unexpected("PUSH_PROMISE from a client"))
            }
            (frame::PUSH_PROMISE, _) => Err(id_error("PUSH_PROMISE although pushing is off")),
            _ if frame::is_of_control(kind) => {
                Err(unexpected("frame of the control stream on a request's stream"))
            }
            _ if frame::is_of_http2(kind) => Err(unexpected("frame of HTTP/2")),
            _ => {
                if length > 0 {
                    self.place = Place::Skipped { left_bytes: length };
                }
                Ok(Step::Skipped)
            }
        }
    }

    fn begin_section<'a>(&mut self, length: u64, rest: &mut &'a [u8]) -> Step<'a> {
        if length > SECTION_BYTES_MAX {
            return Step::TooLarge;
        }
        if let Some((section, after)) = rest.split_at_checked(length as usize) {
            *rest = after;
            return Step::Section(section);
        }
        self.place = Place::Section { left_bytes: length };
        Step::More
    }

    /// The stream has ended: not within a frame (RFC 9114 7.1).
    pub(super) fn check_end(&self) -> Result<(), Error> {
        if self.place != Place::FrameHead || !self.buffer.is_empty() {
            return Err(frame_error("the stream ended within a frame"));
        }
        Ok(())
    }
}

/// Takes at most `left_bytes` of the input; how many are left after them.
fn take<'a>(rest: &mut &'a [u8], left_bytes: u64) -> (&'a [u8], u64) {
    let taken = rest.len().min(usize::try_from(left_bytes).unwrap_or(usize::MAX));
    let (bytes, after) = rest.split_at(taken);
    *rest = after;
    (bytes, left_bytes - taken as u64)
}
