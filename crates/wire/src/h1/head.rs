//! What a response head means: status, framing, persistence. Collected line by line, judged when the head is whole.

use super::field::{list_members, trim_whitespace};
use super::{DecodeError, Field, RequestKind};

/// Version of the protocol that a response came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, or a later 1.x, which is read as 1.1 (RFC 9110 2.5).
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// A response head reduced to what decides how the connection goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) version: Version,
    content_length: ContentLength,
    transfer_coding: TransferCoding,
    option_close: bool,
    option_keep_alive: bool,
}

/// How a body ends (RFC 9112 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

impl Head {
    pub(super) const fn new() -> Self {
        Self {
            status: 0,
            version: Version::Http11,
            content_length: ContentLength::Absent,
            transfer_coding: TransferCoding::Absent,
            option_close: false,
            option_keep_alive: false,
        }
    }

    /// Reads `HTTP/1.1 200 Reason`. The caller has checked that the line begins with `HTTP/`.
    pub(super) fn read_status_line(&mut self, line: &[u8]) -> Result<(), DecodeError> {
        self.version = parse_version(line)?;
        self.status = parse_status(line)?;
        // RFC 9112 4 demands the space before an absent reason; servers leave it away, and nothing is ambiguous without it.
        match line.get(REASON_INDEX - 1) {
            None | Some(b' ') => Ok(()),
            Some(_) => Err(DecodeError::StatusLineInvalid),
        }
    }

    /// Takes note of a field that matters to framing or persistence. What is wrong with it is reported by [`Self::framing`], because
    /// some responses are framed without it.
    pub(super) fn note_field(&mut self, field: &Field<'_>) {
        match field.name.len() {
            10 if field.name.eq_ignore_ascii_case(b"connection") => self.note_connection(field.value),
            14 if field.name.eq_ignore_ascii_case(b"content-length") => {
                self.content_length = self.content_length.and_field(field.value);
            }
            17 if field.name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.transfer_coding = self.transfer_coding.and_field(field.value);
            }
            _ => {}
        }
    }

    /// How the body of a final response ends: the rules of RFC 9112 6.3, in their order.
    pub(super) fn framing(&self, kind: RequestKind) -> Result<Framing, DecodeError> {
        if self.opens_tunnel(kind) {
            return Ok(Framing::Empty);
        }
        if self.version == Version::Http10 && self.transfer_coding != TransferCoding::Absent {
            return Err(DecodeError::TransferEncodingInHttp10);
        }
        if kind == RequestKind::Head || matches!(self.status, 204 | 304) {
            return Ok(Framing::Empty);
        }
        match self.transfer_coding {
            TransferCoding::Absent => self.content_length.framing(),
            TransferCoding::ChunkedLast => Ok(Framing::Chunked),
            TransferCoding::Unchunked | TransferCoding::ChunkedEarlier => Ok(Framing::UntilClose),
            TransferCoding::Invalid => Err(DecodeError::TransferEncodingInvalid),
        }
    }

    /// Whether the connection outlives the response (RFC 9112 9.3). A tunnel does whatever the head says.
    pub(super) fn keeps_alive(&self, kind: RequestKind, framing: Framing) -> bool {
        if self.opens_tunnel(kind) {
            return true;
        }
        framing != Framing::UntilClose
            && !self.option_close
            && (self.version == Version::Http11 || self.option_keep_alive)
    }

    pub(super) fn opens_tunnel(&self, kind: RequestKind) -> bool {
        kind == RequestKind::Connect && matches!(self.status, 200..=299)
            || kind == RequestKind::Upgrade && self.status == 101
    }

    fn note_connection(&mut self, value: &[u8]) {
        for option in list_members(value) {
            self.option_close |= option.eq_ignore_ascii_case(b"close");
            self.option_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// What the Content-Length fields seen so far say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentLength {
    Absent,
    Bytes(u64),
    Invalid,
    Overflow,
    Conflict { first: u64, other: u64 },
}

impl ContentLength {
    /// RFC 9112 6.3: a list of equal numbers counts as one of them. What is wrong first stays.
    fn and_field(self, value: &[u8]) -> Self {
        value.split(|&byte| byte == b',').map(trim_whitespace).map(Self::parse).fold(self, Self::and)
    }

    const fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Absent, next) => next,
            (Self::Bytes(first), Self::Bytes(other)) if first != other => Self::Conflict { first, other },
            (Self::Bytes(_), next) => next,
            (wrong, _) => wrong,
        }
    }

    fn parse(digits: &[u8]) -> Self {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Self::Invalid;
        }
        digits
            .iter()
            .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
            .map_or(Self::Overflow, Self::Bytes)
    }

    const fn framing(self) -> Result<Framing, DecodeError> {
        match self {
            Self::Absent => Ok(Framing::UntilClose),
            Self::Bytes(0) => Ok(Framing::Empty),
            Self::Bytes(bytes) => Ok(Framing::Length(bytes)),
            Self::Invalid => Err(DecodeError::ContentLengthInvalid),
            Self::Overflow => Err(DecodeError::ContentLengthOverflow),
            Self::Conflict { first, other } => Err(DecodeError::ContentLengthConflict { first, other }),
        }
    }
}

/// What the Transfer-Encoding fields seen so far say together (RFC 9112 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransferCoding {
    Absent,
    /// No `chunked` among the codings.
    Unchunked,
    /// `chunked` is the last coding.
    ChunkedLast,
    /// `chunked` is among the codings, and another follows.
    ChunkedEarlier,
    Invalid,
}

impl TransferCoding {
    fn and_field(self, value: &[u8]) -> Self {
        let present = if self == Self::Absent { Self::Unchunked } else { self };
        list_members(value).filter(|coding| !coding.is_empty()).fold(present, Self::and)
    }

    fn and(self, coding: &[u8]) -> Self {
        match (self, is_chunked(coding)) {
            (Self::Invalid, _) | (_, IsChunked::WithParameters) => Self::Invalid,
            (Self::ChunkedLast | Self::ChunkedEarlier, IsChunked::Yes) => Self::Invalid,
            (_, IsChunked::Yes) => Self::ChunkedLast,
            (Self::ChunkedLast | Self::ChunkedEarlier, IsChunked::No) => Self::ChunkedEarlier,
            (_, IsChunked::No) => Self::Unchunked,
        }
    }
}

enum IsChunked {
    Yes,
    No,
    WithParameters,
}

fn is_chunked(coding: &[u8]) -> IsChunked {
    let name_end = coding.iter().position(|&byte| byte == b';').unwrap_or(coding.len());
    let (name, parameters) = coding.split_at(name_end);
    match (trim_whitespace(name).eq_ignore_ascii_case(b"chunked"), parameters.is_empty()) {
        (true, true) => IsChunked::Yes,
        (true, false) => IsChunked::WithParameters,
        (false, _) => IsChunked::No,
    }
}

fn parse_version(line: &[u8]) -> Result<Version, DecodeError> {
    match *line {
        [_, _, _, _, _, b'1', b'.', b'0', b' ', ..] => Ok(Version::Http10),
        [_, _, _, _, _, b'1', b'.', b'1'..=b'9', b' ', ..] => Ok(Version::Http11),
        [_, _, _, _, _, major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9', b' ', ..] => {
            Err(DecodeError::VersionUnsupported { major: major - b'0', minor: minor - b'0' })
        }
        _ => Err(DecodeError::StatusLineInvalid),
    }
}

fn parse_status(line: &[u8]) -> Result<u16, DecodeError> {
    let Some(digits) =
        line.get(STATUS_INDEX..STATUS_INDEX + 3).filter(|it| it.iter().all(u8::is_ascii_digit))
    else {
        return Err(DecodeError::StatusLineInvalid);
    };
    let status = digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    if status < 100 { Err(DecodeError::StatusOutOfRange { status }) } else { Ok(status) }
}

/// Where the status code begins in `HTTP/1.1 200 Reason`.
const STATUS_INDEX: usize = 9;

/// Where the reason phrase begins in `HTTP/1.1 200 Reason`.
pub(super) const REASON_INDEX: usize = 13;
