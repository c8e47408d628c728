//! A record as bytes: a head of fixed size, then a payload of lengths and bytes.
//!
//! Head (all numbers little-endian): sync 4, payload length 4, checksum 4 (CRC-32 of what follows it), time 8,
//! connection 8, session 8, origin 2, row 2. A reader that wants only some connections skips the others by the head alone.

use super::{SYNC_BODY, SYNC_INDEX, SYNC_RECORD};
use crate::limits::RECORD_BYTES_MAX;
use crate::{
    Field, Peer, Place, Record, RecordedKind, RecordedMessage, Request, Response, Scheme, Version, WriteError,
};

/// Bytes of a frame before its payload.
pub const FRAME_HEAD_BYTES: usize = 40;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A record.
    Record,
    /// A part of the spooled body of the next record.
    Body,
    /// An index.
    Index,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: FrameKind,
    /// Bytes of its payload.
    pub payload_bytes: usize,
    /// CRC-32 of the rest of the head and the payload.
    pub check: u32,
    /// When the request began, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The client's connection; 0: unknown.
    pub connection: u64,
    /// The client's session; 0: unknown.
    pub session: u64,
    /// Index into the recording's origins.
    pub origin: u16,
    /// Index into the recording's rows, or [`super::ROW_OTHER`].
    pub row: u16,
}

/// A record on the bytes that it was read from: nothing is copied.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// Line or number in the file that it came from.
    pub place: Place,
    /// Scheme.
    pub scheme: Scheme,
    /// Version it was sent with.
    pub version: Version,
    /// Method.
    pub method: &'a str,
    /// Host and port; may be empty.
    pub authority: &'a str,
    /// Path and query.
    pub target: &'a str,
    headers: Part<'a>,
    /// Body as sent, without its spooled part.
    pub body: &'a [u8],
    /// What of the body is in separate frames.
    pub spooled: Option<SpooledPart>,
    /// Length of a body that was not kept; else 0.
    pub lost_body_bytes: u64,
    response: Option<&'a [u8]>,
}

/// The part of a body that is in frames before the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpooledPart {
    /// Where it belongs in the rest of the body.
    pub at: usize,
    /// Its length.
    pub bytes: u64,
    /// From the first of its frames to the frame of the record.
    pub distance: u64,
}

/// Encoded fields.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl Frame {
    /// Reads the head; `None` when these bytes begin no frame.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        let kind = match head[..4].try_into().ok()? {
            SYNC_RECORD => FrameKind::Record,
            SYNC_BODY => FrameKind::Body,
            SYNC_INDEX => FrameKind::Index,
            _ => return None,
        };
        let payload_bytes = u32_at(head, 4) as usize;
        (payload_bytes <= RECORD_BYTES_MAX * 2).then(|| Self {
            kind,
            payload_bytes,
            check: u32_at(head, 8),
            time_ns: u64_at(head, 12),
            connection: u64_at(head, 20),
            session: u64_at(head, 28),
            origin: u16_at(head, 36),
            row: u16_at(head, 38),
        })
    }

    /// Bytes of the whole frame.
    pub fn bytes(&self) -> usize {
        FRAME_HEAD_BYTES + self.payload_bytes
    }

    /// Whether the checksum of the frame that begins `bytes` holds.
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        bytes.get(12..self.bytes()).is_some_and(|checked| crc32fast::hash(checked) == self.check)
    }
}

fn u16_at(bytes: &[u8; FRAME_HEAD_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; FRAME_HEAD_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; FRAME_HEAD_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Appends a whole frame to `out`. `distance`: from the first frame of its spooled body, where it has one.
pub(super) fn write_frame(
    out: &mut Vec<u8>,
    record: &Record,
    (origin, row): (u16, u16),
    distance: u64,
) -> Result<(), WriteError> {
    let begin = out.len();
    out.extend_from_slice(&SYNC_RECORD);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&record.time_ns.to_le_bytes());
    out.extend_from_slice(&record.connection.to_le_bytes());
    out.extend_from_slice(&record.session.to_le_bytes());
    out.extend_from_slice(&origin.to_le_bytes());
    out.extend_from_slice(&row.to_le_bytes());
    write_payload(out, record, distance);
    finish_frame(out, begin)
}

/// Appends the frame of an index, or of a part of a body.
pub(super) fn write_plain_frame(
    out: &mut Vec<u8>,
    kind: FrameKind,
    payload: &[u8],
) -> Result<(), WriteError> {
    let begin = out.len();
    out.extend_from_slice(if kind == FrameKind::Body { &SYNC_BODY } else { &SYNC_INDEX });
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES - 4]);
    out.extend_from_slice(payload);
    finish_frame(out, begin)
}

/// Fills in length and checksum.
fn finish_frame(out: &mut Vec<u8>, begin: usize) -> Result<(), WriteError> {
    let bytes = out.len() - begin - FRAME_HEAD_BYTES;
    if bytes > RECORD_BYTES_MAX * 2 {
        out.truncate(begin);
        return Err(WriteError::TooLarge { bytes });
    }
    out[begin + 4..begin + 8].copy_from_slice(&(bytes as u32).to_le_bytes());
    let check = crc32fast::hash(&out[begin + 12..]);
    out[begin + 8..begin + 12].copy_from_slice(&check.to_le_bytes());
    Ok(())
}

fn write_payload(out: &mut Vec<u8>, record: &Record, distance: u64) {
    let Record { request, response, place, .. } = record;
    put_number(out, place.record);
    put_number(out, place.line);
    put_number(out, place.byte);
    let flags = [request.scheme == Scheme::Https, request.lost_body_bytes > 0, request.spooled.is_some()];
    out.push((0..).zip(flags).map(|(nth, flag)| u8::from(flag) << nth).sum());
    out.push(version_code(request.version));
    put_bytes(out, request.method.as_bytes());
    put_bytes(out, request.authority.as_bytes());
    put_bytes(out, request.target.as_bytes());
    put_fields(out, &request.headers);
    put_bytes(out, &request.body);
    if request.lost_body_bytes > 0 {
        put_number(out, request.lost_body_bytes);
    }
    if let Some(spooled) = &request.spooled {
        put_number(out, spooled.at as u64);
        put_number(out, spooled.bytes);
        put_number(out, distance);
    }
    let Some(response) = response else { return out.push(0) };
    out.push(1);
    out.extend_from_slice(&response.status.to_le_bytes());
    out.push(version_code(response.version));
    put_number(out, response.latency_ns);
    put_number(out, response.body_bytes);
    out.extend_from_slice(&response.body_check.to_le_bytes());
    put_fields(out, &response.headers);
    match &response.body {
        None => out.push(0),
        Some(body) => {
            out.push(1);
            put_bytes(out, body);
        }
    }
    put_timeline(out, response);
}

/// Messages and times of events; nothing where there are none, as in files that were written before there could be.
fn put_timeline(out: &mut Vec<u8>, response: &Response) {
    let Response { messages, event_times_ns, .. } = response;
    if messages.is_empty() && event_times_ns.is_empty() {
        return;
    }
    put_number(out, messages.len() as u64);
    for RecordedMessage { at_ns, by, kind, bytes } in messages {
        let by_client = if *by == Peer::Client { BY_CLIENT } else { 0 };
        out.push(kind.opcode() | by_client);
        put_number(out, *at_ns);
        put_bytes(out, bytes);
    }
    put_number(out, event_times_ns.len() as u64);
    let mut before_ns = 0;
    for at_ns in event_times_ns {
        put_number(out, at_ns.saturating_sub(before_ns));
        before_ns = *at_ns;
    }
}

/// In the byte of a message's kind: the client sent it.
const BY_CLIENT: u8 = 0x80;

fn put_fields(out: &mut Vec<u8>, fields: &[Field]) {
    put_number(out, fields.len() as u64);
    let bytes: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 20).sum();
    out.reserve(bytes);
    for Field { name, value } in fields {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value);
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// LEB128: seven bits a byte, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

const fn version_code(version: Version) -> u8 {
    match version {
        Version::Http10 => 10,
        Version::Http11 => 11,
        Version::Http2 => 20,
        Version::Http3 => 30,
    }
}

const fn version_of(code: u8) -> Version {
    match code {
        10 => Version::Http10,
        20 => Version::Http2,
        30 => Version::Http3,
        _ => Version::Http11,
    }
}

impl<'a> RecordView<'a> {
    /// Reads a payload; `None` when it is damaged in a way that the checksum does not tell.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let mut bytes = payload;
        let place =
            Place { record: number(&mut bytes)?, line: number(&mut bytes)?, byte: number(&mut bytes)? };
        let flags = byte(&mut bytes)?;
        let scheme = if flags & 1 == 1 { Scheme::Https } else { Scheme::Http };
        let version = version_of(byte(&mut bytes)?);
        let method = text(&mut bytes)?;
        let authority = text(&mut bytes)?;
        let target = text(&mut bytes)?;
        let headers = fields(&mut bytes)?;
        let body = slice(&mut bytes)?;
        let lost_body_bytes = if flags & 2 == 2 { number(&mut bytes)? } else { 0 };
        let spooled = if flags & 4 == 4 { Some(spooled_part(&mut bytes, body.len())?) } else { None };
        let response = (byte(&mut bytes)? == 1).then_some(bytes);
        Some(Self {
            place,
            scheme,
            version,
            method,
            authority,
            target,
            headers,
            body,
            spooled,
            lost_body_bytes,
            response,
        })
    }

    /// The request's fields in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone {
        self.headers.iter()
    }

    /// Status of the recorded response, and from the request's beginning to the response's end in nanoseconds (0: unknown).
    pub fn outcome(&self) -> Option<(u16, u64)> {
        let mut bytes = self.response?;
        let status = u16::from_le_bytes([byte(&mut bytes)?, byte(&mut bytes)?]);
        byte(&mut bytes)?;
        Some((status, number(&mut bytes)?))
    }

    /// How many events the recorded response has, where it is an event stream; nothing is copied.
    pub fn event_count(&self) -> u64 {
        self.response.and_then(event_count).unwrap_or_default()
    }

    /// Why the response, which was read as this, cannot be read, or cannot have been sent by any server.
    pub fn flaw_of(&self, response: Option<&Response>) -> Option<&'static str> {
        self.response?;
        match response {
            Some(response) => response.flaw(),
            None => {
                Some("a malformed response: a part is missing, or a WebSocket message has an unknown opcode")
            }
        }
    }

    /// The recorded response, copied.
    pub fn response(&self) -> Option<Response> {
        let mut bytes = self.response?;
        let status = u16::from_le_bytes([byte(&mut bytes)?, byte(&mut bytes)?]);
        let version = version_of(byte(&mut bytes)?);
        let latency_ns = number(&mut bytes)?;
        let body_bytes = number(&mut bytes)?;
        let body_check = u32::from_le_bytes(std::array::from_fn(|_| byte(&mut bytes).unwrap_or(0)));
        let headers = fields(&mut bytes)?.own();
        let body = match byte(&mut bytes)? {
            1 => Some(slice(&mut bytes)?.to_vec()),
            _ => None,
        };
        let (messages, event_times_ns) = if bytes.is_empty() { Default::default() } else { timeline(bytes)? };
        let known =
            Response { status, version, headers, body, body_bytes, body_check, ..Response::default() };
        Some(Response { latency_ns, messages, event_times_ns, ..known })
    }

    /// The record, copied, without the spooled part of its body; [`super::Cursor::record`] gives it whole.
    pub fn record(&self, frame: &Frame) -> Record {
        Record {
            time_ns: frame.time_ns,
            connection: frame.connection,
            session: frame.session,
            request: Request {
                method: self.method.to_owned(),
                scheme: self.scheme,
                authority: self.authority.to_owned(),
                target: self.target.to_owned(),
                version: self.version,
                headers: self.headers.own(),
                body: self.body.to_vec(),
                spooled: None,
                lost_body_bytes: self.lost_body_bytes,
            },
            response: self.response(),
            place: self.place,
        }
    }
}

impl<'a> Part<'a> {
    fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone {
        let mut bytes = self.bytes;
        (0..self.count).map_while(move |_| Some((text(&mut bytes)?, slice(&mut bytes)?)))
    }

    fn own(&self) -> Vec<Field> {
        self.iter().map(|(name, value)| Field::new(name, value)).collect()
    }
}

/// That of a response, by what stands before it.
fn event_count(mut bytes: &[u8]) -> Option<u64> {
    const STATUS_AND_VERSION_BYTES: usize = 3;
    const CHECK_BYTES: usize = 4;
    bytes = bytes.get(STATUS_AND_VERSION_BYTES..)?;
    let (_latency_ns, _body_bytes) = (number(&mut bytes)?, number(&mut bytes)?);
    bytes = bytes.get(CHECK_BYTES..)?;
    fields(&mut bytes)?;
    if byte(&mut bytes)? == 1 {
        slice(&mut bytes)?;
    }
    if bytes.is_empty() {
        return Some(0);
    }
    for _ in 0..number(&mut bytes)? {
        let (_kind, _at_ns, _text) = (byte(&mut bytes)?, number(&mut bytes)?, slice(&mut bytes)?);
    }
    number(&mut bytes)
}

/// Counts are those of the file: nothing is reserved for them.
fn timeline(mut bytes: &[u8]) -> Option<(Vec<RecordedMessage>, Vec<u64>)> {
    let (mut messages, mut times) = (Vec::new(), Vec::new());
    for _ in 0..number(&mut bytes)? {
        let what = byte(&mut bytes)?;
        let by = if what & BY_CLIENT == 0 { Peer::Server } else { Peer::Client };
        let kind = RecordedKind::of(what & !BY_CLIENT)?;
        let at_ns = number(&mut bytes)?;
        messages.push(RecordedMessage { at_ns, by, kind, bytes: slice(&mut bytes)?.to_vec() });
    }
    let mut at_ns = 0_u64;
    for _ in 0..number(&mut bytes)? {
        at_ns = at_ns.saturating_add(number(&mut bytes)?);
        times.push(at_ns);
    }
    Some((messages, times))
}

fn spooled_part(bytes: &mut &[u8], body_bytes: usize) -> Option<SpooledPart> {
    let at = usize::try_from(number(bytes)?).ok().filter(|at| *at <= body_bytes)?;
    Some(SpooledPart { at, bytes: number(bytes)?, distance: number(bytes)? })
}

/// Reads the fields, so that iterating over them cannot fail.
fn fields<'a>(bytes: &mut &'a [u8]) -> Option<Part<'a>> {
    let count = usize::try_from(number(bytes)?).ok()?;
    let begin = *bytes;
    for _ in 0..count {
        text(bytes)?;
        slice(bytes)?;
    }
    Some(Part { count, bytes: &begin[..begin.len() - bytes.len()] })
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn slice<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (slice, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(slice)
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(slice(bytes)?).ok()
}
