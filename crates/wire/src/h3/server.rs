//! The server's side: requests are decoded, responses encoded.
//!
//! Owns: the rules for requests (RFC 9114 4.3.1). Never: which streams there are. A [`UniStreams`] reads what concerns all of them, and an
//! [`Inbound`] one request's stream; without a dynamic table no stream waits for another, so that they share nothing.

use super::control::{Control, Side, StreamAbort};
use super::error::excessive;
use super::limits::IDLE_FRAME_COUNT_MAX;
use super::qpack::{Decoder, SectionWriter};
use super::reader::{Phase, Reader, Step};
use super::{Error, Setup, frame};
use crate::ErrorCode;
use crate::compression::Scratch;
use crate::h1::Fields;
use crate::h1::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADER_COUNT_MAX};
use crate::message::{Found, Meaning, write_line};

/// The unidirectional streams of a connection.
#[derive(Debug)]
pub struct UniStreams {
    control: Control,
}

/// One request's stream.
#[derive(Debug)]
pub struct Inbound {
    reader: Reader,
    /// What `content-length` promised; `None`: nothing.
    body_bytes_expected: Option<u64>,
    body_bytes: u64,
    is_tunnel: bool,
    idle_frame_count: u32,
}

/// Decodes field sections, and lends space for it; one for each event loop.
#[derive(Debug)]
pub struct SectionReader {
    decoder: Decoder,
    scratch: Scratch,
    head: RequestHead,
}

/// A request's head. The fields are as HTTP/1.1 writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// `:method`.
    pub method: Vec<u8>,
    /// `:scheme`; empty for CONNECT.
    pub scheme: Vec<u8>,
    /// `:authority`, or else the `Host` field.
    pub authority: Vec<u8>,
    /// `:path`; empty for CONNECT.
    pub path: Vec<u8>,
    /// `:protocol` of extended CONNECT (RFC 9220); empty: none.
    pub protocol: Vec<u8>,
    lines: Vec<u8>,
    seen: u8,
    length: Option<u64>,
    has_fields: bool,
    field_count: usize,
    bytes: usize,
    fault: Option<&'static str>,
}

/// Receives a request as it comes. It is whole when [`Inbound::decode`] has read the end of the stream.
pub trait RequestSink {
    /// The head.
    fn head(&mut self, head: &RequestHead);

    /// A piece of the body; never empty.
    fn data(&mut self, bytes: &[u8]);

    /// The trailer fields.
    fn trailers(&mut self, _fields: Fields<'_>) {}
}

/// What is wrong with a request.
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The connection is of no further use.
    #[error(transparent)]
    Connection(#[from] Error),
    /// The stream alone should be reset, in both directions.
    #[error("{text} ({code})")]
    Stream {
        /// What the peer is sent.
        code: ErrorCode,
        /// What it did.
        text: &'static str,
    },
}

impl UniStreams {
    /// A new connection. Its first bytes wait on its unidirectional streams. Sections may not use a dynamic table.
    pub fn new(setup: Setup) -> Self {
        Self { control: Control::new(Side::Server, Setup { table_bytes: 0, ..setup }) }
    }

    /// Reads bytes of one of the client's unidirectional streams.
    ///
    /// # Errors
    ///
    /// When the client broke a rule that leaves the connection useless.
    pub fn decode_stream(&mut self, stream_id: u64, (input, is_fin): (&[u8], bool)) -> Result<(), Error> {
        let mut rest = input;
        loop {
            let (consumed, _) = self.control.decode(stream_id, rest, is_fin)?;
            rest = &rest[consumed..];
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// The client has reset one of its unidirectional streams.
    ///
    /// # Errors
    ///
    /// When the connection cannot do without the stream.
    pub fn handle_reset(&mut self, stream_id: u64) -> Result<(), Error> {
        self.control.handle_reset(stream_id)
    }

    /// How many unidirectional streams the server has: 3, 7, and so on.
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

    /// The next RESET_STREAM or STOP_SENDING frame that is to be sent.
    pub fn next_command(&mut self) -> Option<StreamAbort> {
        self.control.next_command()
    }

    /// Requests from this stream on are not processed (RFC 9114 5.2).
    pub fn go_away(&mut self, stream_id: u64) {
        self.control.put_goaway(stream_id);
    }
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            reader: Reader::new(Side::Server),
            body_bytes_expected: None,
            body_bytes: 0,
            is_tunnel: false,
            idle_frame_count: 0,
        }
    }
}

impl Default for SectionReader {
    fn default() -> Self {
        Self { decoder: Decoder::new(0, 0), scratch: Scratch::default(), head: RequestHead::default() }
    }
}

impl Inbound {
    /// Reads bytes of the stream; `is_fin`: nothing follows them.
    ///
    /// # Errors
    ///
    /// When the client broke a rule. Whether and why depends on the bytes alone, never on the pieces in which they come.
    pub fn decode<S: RequestSink>(
        &mut self,
        sections: &mut SectionReader,
        (input, is_fin): (&[u8], bool),
        sink: &mut S,
    ) -> Result<(), RequestError> {
        let mut rest = input;
        while !rest.is_empty() {
            match self.reader.step(&mut rest)? {
                Step::More => {}
                Step::Data(bytes) => {
                    self.body_bytes += bytes.len() as u64;
                    self.idle_frame_count = 0;
                    sink.data(bytes);
                }
                Step::Section(section) => self.on_section(sections, section, sink)?,
                Step::BufferedSection => {
                    let section = std::mem::take(&mut self.reader.buffer);
                    self.on_section(sections, &section, sink)?;
                    self.reader.give_back(section);
                }
                Step::Skipped => self.note_idle_frame()?,
                Step::TooLarge => return Err(TOO_LARGE),
            }
        }
        if is_fin { self.end() } else { Ok(()) }
    }

    /// Whether the head has come, or some of it.
    pub fn has_begun(&self) -> bool {
        self.reader.phase != Phase::Head || self.reader.check_end().is_err()
    }

    fn on_section<S: RequestSink>(
        &mut self,
        sections: &mut SectionReader,
        section: &[u8],
        sink: &mut S,
    ) -> Result<(), RequestError> {
        if self.is_tunnel {
            return Err(super::error::unexpected("HEADERS within a tunnel").into());
        }
        let is_head = self.reader.phase == Phase::Head;
        let head = sections.read(section)?;
        if let Some(text) =
            head.fault.or_else(|| if is_head { head.fault_of_head() } else { head.fault_of_trailers() })
        {
            return Err(if text == TOO_MANY_FIELDS { TOO_LARGE } else { malformed(text) });
        }
        if is_head {
            self.body_bytes_expected = head.length;
            self.is_tunnel = head.method == b"CONNECT";
            self.reader.phase = Phase::Body;
            sink.head(head);
        } else {
            self.reader.phase = Phase::Over;
            sink.trailers(head.fields());
        }
        self.idle_frame_count = 0;
        Ok(())
    }

    fn end(&self) -> Result<(), RequestError> {
        self.reader.check_end()?;
        if self.reader.phase == Phase::Head {
            let text = "the request's stream ended before its head";
            return Err(RequestError::Stream { code: ErrorCode::H3_REQUEST_INCOMPLETE, text });
        }
        match self.body_bytes_expected {
            Some(expected) if expected != self.body_bytes => {
                Err(malformed("body length differs from content-length"))
            }
            _ => Ok(()),
        }
    }

    fn note_idle_frame(&mut self) -> Result<(), Error> {
        self.idle_frame_count += 1;
        if self.idle_frame_count > IDLE_FRAME_COUNT_MAX {
            return Err(excessive("too many consecutive frames without effect"));
        }
        Ok(())
    }
}

impl SectionReader {
    fn read(&mut self, section: &[u8]) -> Result<&RequestHead, Error> {
        let Self { decoder, scratch, head } = self;
        head.clear();
        decoder.decode(decoder.read_prefix(section, None)?, scratch, &mut |found| head.note(found))?;
        head.lines.extend_from_slice(b"\r\n");
        Ok(head)
    }
}

impl RequestHead {
    /// The fields in the order in which they came, without the pseudo-header fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.lines)
    }

    /// Keeps its space.
    fn clear(&mut self) {
        let Self { method, scheme, authority, path, protocol, lines, .. } = self;
        [&mut *method, scheme, authority, path, protocol, lines].into_iter().for_each(|text| text.clear());
        (self.seen, self.length, self.has_fields, self.fault) = (0, None, false, None);
        (self.field_count, self.bytes) = (0, 0);
    }

    fn note(&mut self, found: &Found<'_>) {
        self.field_count += 1;
        self.bytes += found.name.len() + found.value.len();
        if self.bytes + 32 * self.field_count > RESPONSE_HEAD_BYTES_MAX
            || self.field_count > RESPONSE_HEADER_COUNT_MAX
        {
            self.fault = Some(TOO_MANY_FIELDS);
            return;
        }
        let fault = if found.name.first() == Some(&b':') {
            self.note_pseudo(found.name, found.value)
        } else {
            self.note_field(found)
        };
        self.fault = self.fault.or(fault);
    }

    /// RFC 9114 4.3.1.
    fn note_pseudo(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        let (place, bit) = match name {
            b":method" => (&mut self.method, METHOD),
            b":scheme" => (&mut self.scheme, SCHEME),
            b":authority" => (&mut self.authority, AUTHORITY),
            b":path" => (&mut self.path, PATH),
            b":protocol" => (&mut self.protocol, PROTOCOL),
            _ => return Some("pseudo-header field that requests do not have"),
        };
        place.extend_from_slice(value);
        if self.has_fields {
            return Some("pseudo-header field after another field");
        }
        let is_again = self.seen & bit != 0;
        self.seen |= bit;
        is_again.then_some("pseudo-header field twice")
    }

    fn note_field(&mut self, found: &Found<'_>) -> Option<&'static str> {
        self.has_fields = true;
        write_line(found, &mut self.lines);
        match found.meaning {
            Meaning::Wrong(why) => return Some(why),
            Meaning::Length(length) if self.length.is_some_and(|known| known != length) => {
                return Some("content-length twice, with different values");
            }
            Meaning::Length(length) => self.length = Some(length),
            Meaning::Plain | Meaning::Status(_) => {}
        }
        if found.name != b"host" {
            return None;
        }
        if self.seen & AUTHORITY != 0 && self.authority != found.value {
            return Some("host differs from :authority");
        }
        if self.seen & AUTHORITY == 0 {
            self.authority.clear();
            self.authority.extend_from_slice(found.value);
        }
        None
    }

    /// RFC 9114 4.3.1 and 4.4, RFC 9220.
    fn fault_of_head(&self) -> Option<&'static str> {
        let is_connect = self.method == b"CONNECT";
        if self.seen & METHOD == 0 {
            return Some("request without :method");
        }
        if self.seen & PROTOCOL != 0 && !is_connect {
            return Some(":protocol in a request that is not CONNECT");
        }
        if is_connect && self.seen & PROTOCOL == 0 {
            return (self.seen & (SCHEME | PATH) != 0 || self.authority.is_empty())
                .then_some("CONNECT without :authority, or with :scheme or :path");
        }
        if self.seen & SCHEME == 0 || self.path.is_empty() {
            return Some("request without :scheme or :path");
        }
        self.authority.is_empty().then_some("request without :authority and host")
    }

    const fn fault_of_trailers(&self) -> Option<&'static str> {
        if self.seen != 0 { Some("pseudo-header field in trailers") } else { None }
    }
}

/// Appends the head of a response, or its trailers: `status` 0. Names are in lower case; the caller leaves out what HTTP/3 does not have.
pub fn put_section<'a>(
    status: u16,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) {
    let mut section = SectionWriter::default();
    if status != 0 {
        section.push(b":status", status.to_string().as_bytes());
    }
    fields.into_iter().for_each(|(name, value)| section.push(name, value));
    frame::put(frame::HEADERS, section.as_bytes(), out);
}

/// Appends what precedes so many bytes of a body.
pub fn put_data_head(bytes: u64, out: &mut Vec<u8>) {
    frame::put_head(frame::DATA, bytes, out);
}

const fn malformed(text: &'static str) -> RequestError {
    RequestError::Stream { code: ErrorCode::H3_MESSAGE_ERROR, text }
}

const TOO_MANY_FIELDS: &str = "request head or trailer section is larger than the limit";
const TOO_LARGE: RequestError =
    RequestError::Stream { code: ErrorCode::H3_EXCESSIVE_LOAD, text: TOO_MANY_FIELDS };

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const AUTHORITY: u8 = 4;
const PATH: u8 = 8;
const PROTOCOL: u8 = 16;
