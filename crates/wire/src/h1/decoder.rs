//! Decodes the responses of one connection, one after the other.
//!
//! Owns: where in the current response the next byte belongs. Never: bytes of a body; reads ahead into the next response.

use super::cache::Partial;
use super::chunks::{Chunks, Piece};
use super::head::{Framing, Head};
use super::limits::{INTERIM_RESPONSE_COUNT_MAX, RESPONSE_HEAD_BYTES_MAX};
use super::section::{Section, unfold};
use super::{DecodeError, Fields, HeadCache, HeadView, Sink};

/// Decodes the responses of one connection. At most 40 bytes, plus a buffer while a head is incomplete.
///
/// For each response: [`begin`](Self::begin), then [`decode`](Self::decode) until it returns a [`Response`]; between two
/// calls of it [`skip`](Self::skip) stands for body bytes that were discarded unread; [`handle_eof`](Self::handle_eof) when the peer
/// has closed. After an error the connection is of no use; until the next `begin`, nothing more is consumed.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    body_bytes: u64,
    /// The section that is incomplete, if one is.
    partial: Option<Box<Partial>>,
    status: u16,
    kind: RequestKind,
    keep_alive: bool,
    interim_count: u8,
}

/// What was asked, as far as it decides how the response is framed (RFC 9112 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// `HEAD`: the response has no body.
    Head,
    /// `CONNECT`: a successful response has no body; what follows it belongs to the tunnel.
    Connect,
    /// A request that asks for another protocol (RFC 9110 7.8): what follows the response 101 belongs to that.
    Upgrade,
    /// Any other method.
    Other,
}

/// What one call has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that belong to the current response. Less than all only when the response is whole.
    pub consumed: usize,
    /// The response, when it is whole.
    pub response: Option<Response>,
}

/// A whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Status code, 200-999.
    pub status: u16,
    /// Whether the connection can carry another request (RFC 9112 9.3), or has become a tunnel.
    pub keep_alive: bool,
    /// Length of the body as transferred: without chunk framing and trailers, before any content coding is undone.
    pub body_bytes: u64,
    /// Interim (1xx) responses before this one.
    pub interim_count: u32,
}

/// Where the next byte belongs.
#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    /// A body of known length, of which this many bytes (at least one) are to come.
    Length(u64),
    Chunks(Chunks),
    Trailers,
    UntilClose,
    /// Nowhere: the response is whole or faulty, and the next one has not begun.
    Over,
}

impl Decoder {
    /// A decoder that awaits the first response of a connection, of kind [`RequestKind::Other`] unless it is begun otherwise.
    pub const fn new() -> Self {
        Self {
            state: State::Head,
            body_bytes: 0,
            partial: None,
            status: 0,
            kind: RequestKind::Other,
            keep_alive: false,
            interim_count: 0,
        }
    }

    /// Awaits the next response; `kind` is its request's. Forgets what was incomplete.
    pub fn begin(&mut self, kind: RequestKind) {
        *self = Self { kind, ..Self::new() };
    }

    /// Decodes what belongs to the current response, and stops right after its last byte.
    ///
    /// # Errors
    ///
    /// When the bytes are no response. Whether and why depends on the bytes alone, never on the pieces in which they come.
    pub fn decode<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<Decoded, DecodeError> {
        let mut consumed = 0;
        while consumed < input.len() && !matches!(self.state, State::Over) {
            match self.decode_piece(cache, &input[consumed..], sink) {
                Ok(bytes) => consumed += bytes,
                Err(error) => {
                    self.state = State::Over;
                    return Err(error);
                }
            }
            if matches!(self.state, State::Over) {
                return Ok(Decoded { consumed, response: Some(self.response()) });
            }
        }
        Ok(Decoded { consumed, response: None })
    }

    /// Bytes left of a body of known length, which the caller may discard unread and then [`skip`](Self::skip). Zero when no such
    /// body is being read.
    pub const fn skippable_bytes(&self) -> u64 {
        match self.state {
            State::Length(left) => left,
            _ => 0,
        }
    }

    /// Notes that `bytes` of the body were discarded unread: at most [`skippable_bytes`](Self::skippable_bytes). Returns the response
    /// when it is whole by that.
    pub fn skip(&mut self, bytes: u64) -> Option<Response> {
        debug_assert!(bytes <= self.skippable_bytes(), "{bytes} bytes skipped of {}", self.skippable_bytes());
        let State::Length(left) = self.state else { return None };
        self.advance_length(left, bytes.min(left));
        matches!(self.state, State::Over).then(|| self.response())
    }

    /// Notes that the peer has closed its side: that ends a body that lasts until then.
    ///
    /// # Errors
    ///
    /// When something was missing, and what.
    pub fn handle_eof(&mut self) -> Result<Response, DecodeError> {
        let bytes = self.body_bytes;
        Err(match self.state {
            State::UntilClose => {
                self.state = State::Over;
                return Ok(self.response());
            }
            State::Head => self.closed_in_head(),
            State::Length(left) => DecodeError::ClosedInBody { bytes, expected: bytes + left },
            State::Chunks(_) => DecodeError::ClosedInChunks { bytes },
            State::Trailers => DecodeError::ClosedInTrailers { bytes },
            State::Over => DecodeError::ClosedBeforeResponse,
        })
    }

    /// Body bytes so far of a body that lasts until the connection ends; `None`: the response is framed otherwise.
    pub(super) const fn bytes_until_close(&self) -> Option<u64> {
        match self.state {
            State::UntilClose => Some(self.body_bytes),
            _ => None,
        }
    }

    /// Whether no byte of the current response has been seen. Interim responses belong to it.
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Head) && self.partial.is_none() && self.interim_count == 0
    }

    /// Status of the response whose head is complete; `None`: it is still to come.
    pub fn status(&self) -> Option<u16> {
        (self.status != 0).then_some(self.status)
    }

    /// Decodes some of a non-empty `input`, at least one byte.
    fn decode_piece<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        match self.state {
            State::Head => self.decode_head(cache, input, sink),
            State::Length(left) => Ok(self.decode_length(left, input, sink)),
            State::Chunks(chunks) => self.decode_chunk(chunks, input, sink),
            State::Trailers => self.decode_section(Section::trailers(), cache, input, sink),
            State::UntilClose => {
                sink.data(input);
                self.body_bytes += input.len() as u64;
                Ok(input.len())
            }
            State::Over => Ok(0),
        }
    }

    fn decode_head<S: Sink>(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        if self.partial.is_none()
            && let Some((head, bytes)) = cache.recognise(input)
        {
            self.accept_head(&head, &input[..bytes], sink)?;
            return Ok(bytes);
        }
        self.decode_section(Section::head(), cache, input, sink)
    }

    /// Reads a section: on, if it came in pieces, else from its first byte, where it lies.
    fn decode_section<S: Sink>(
        &mut self,
        mut section: Section,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        if let Some(partial) = self.partial.take() {
            return self.decode_partial(partial, cache, input, sink);
        }
        let Some(bytes) = section.read(input)? else {
            self.partial = Some(cache.lend(section, input));
            return Ok(input.len());
        };
        self.accept_section(&section, cache, &input[..bytes], sink)?;
        Ok(bytes)
    }

    fn decode_partial<S: Sink>(
        &mut self,
        mut partial: Box<Partial>,
        cache: &mut HeadCache,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        let bytes_before = partial.bytes.len();
        let bytes_wanted = input.len().min(RESPONSE_HEAD_BYTES_MAX - bytes_before);
        partial.bytes.extend_from_slice(&input[..bytes_wanted]);
        let Some(bytes) = partial.section.read(&partial.bytes)? else {
            self.partial = Some(partial);
            return Ok(bytes_wanted);
        };
        self.accept_section(&partial.section, cache, &partial.bytes[..bytes], sink)?;
        cache.give_back(partial);
        Ok(bytes - bytes_before)
    }

    fn accept_section<S: Sink>(
        &mut self,
        section: &Section,
        cache: &mut HeadCache,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), DecodeError> {
        if section.is_folded {
            return self.accept_unfolded(section, &unfold(bytes), sink);
        }
        if section.head.status >= 200 {
            cache.remember(&section.head, bytes);
        }
        self.accept_unfolded(section, bytes, sink)
    }

    fn accept_unfolded<S: Sink>(
        &mut self,
        section: &Section,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(), DecodeError> {
        if !matches!(self.state, State::Trailers) {
            return self.accept_head(&section.head, bytes, sink);
        }
        if section.field_count > 0 {
            sink.trailers(Fields::new(bytes));
        }
        self.state = State::Over;
        Ok(())
    }

    fn accept_head<S: Sink>(&mut self, head: &Head, bytes: &[u8], sink: &mut S) -> Result<(), DecodeError> {
        if head.status < 200 && !head.opens_tunnel(self.kind) {
            return self.accept_interim(head.status, sink);
        }
        let framing = head.framing(self.kind)?;
        self.status = head.status;
        self.keep_alive = head.keeps_alive(self.kind, framing);
        self.state = State::after_head(framing);
        sink.head(&HeadView::new(head, bytes));
        Ok(())
    }

    fn accept_interim<S: Sink>(&mut self, status: u16, sink: &mut S) -> Result<(), DecodeError> {
        if status == 101 {
            return Err(DecodeError::UpgradeUnasked);
        }
        if u32::from(self.interim_count) == INTERIM_RESPONSE_COUNT_MAX {
            return Err(DecodeError::TooManyInterim { count_max: INTERIM_RESPONSE_COUNT_MAX });
        }
        self.interim_count += 1;
        sink.interim(status);
        Ok(())
    }

    fn decode_length<S: Sink>(&mut self, left: u64, input: &[u8], sink: &mut S) -> usize {
        let bytes = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        sink.data(&input[..bytes]);
        self.advance_length(left, bytes as u64);
        bytes
    }

    fn advance_length(&mut self, left: u64, bytes: u64) {
        self.body_bytes += bytes;
        self.state = if bytes == left { State::Over } else { State::Length(left - bytes) };
    }

    fn decode_chunk<S: Sink>(
        &mut self,
        mut chunks: Chunks,
        input: &[u8],
        sink: &mut S,
    ) -> Result<usize, DecodeError> {
        let (bytes, piece) = chunks.decode(input)?;
        self.state = State::Chunks(chunks);
        match piece {
            Piece::Framing => {}
            Piece::Data(data) => {
                self.body_bytes += data.len() as u64;
                sink.data(data);
            }
            Piece::Last => self.state = State::Trailers,
        }
        Ok(bytes)
    }

    fn closed_in_head(&self) -> DecodeError {
        let interim_count = u32::from(self.interim_count);
        match &self.partial {
            Some(partial) => DecodeError::ClosedInHead { bytes: partial.bytes.len() },
            None if interim_count > 0 => DecodeError::ClosedAfterInterim { interim_count },
            None => DecodeError::ClosedBeforeResponse,
        }
    }

    const fn response(&self) -> Response {
        Response {
            status: self.status,
            keep_alive: self.keep_alive,
            body_bytes: self.body_bytes,
            interim_count: self.interim_count as u32,
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    const fn after_head(framing: Framing) -> Self {
        match framing {
            Framing::Empty => Self::Over,
            Framing::Length(bytes) => Self::Length(bytes),
            Framing::Chunked => Self::Chunks(Chunks::new()),
            Framing::UntilClose => Self::UntilClose,
        }
    }
}

// A million idle connections hold a million decoders.
const _: () = assert!(size_of::<Decoder>() <= 40);
const _: () = assert!(INTERIM_RESPONSE_COUNT_MAX <= u8::MAX as u32);
