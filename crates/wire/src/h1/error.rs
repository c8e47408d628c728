//! Why bytes are no response.

/// Why a response cannot be decoded. The connection it came on is of no further use.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// Bytes came although no request had been sent: often a 408 before the server closes.
    #[error("the server sent a response before it got a request")]
    Unrequested,
    /// RFC 9112 2.3: a response begins with `HTTP/`, in capitals.
    #[error("{}", not_http(*index, *byte))]
    NotHttp {
        /// Place of the first wrong byte, from 0.
        index: usize,
        /// That byte.
        byte: u8,
    },
    /// Only HTTP/1.x has this syntax.
    #[error("response is in HTTP/{major}.{minor}, not HTTP/1.x")]
    VersionUnsupported {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// RFC 9112 4: version, space, three digits, and an optional space and reason.
    #[error("malformed status line")]
    StatusLineInvalid,
    /// RFC 9110 15: status codes begin at 100.
    #[error("status code {status:03} is out of range")]
    StatusOutOfRange {
        /// The code.
        status: u16,
    },
    /// RFC 9110 15.2.2: a server switches protocols only when asked to, and this client does not ask.
    #[error("server switched protocols without being asked (status 101)")]
    UpgradeUnasked,
    /// Interim responses without end.
    #[error("more than {count_max} interim (1xx) responses before the final one")]
    TooManyInterim {
        /// The limit.
        count_max: u32,
    },
    /// RFC 9112 2.2: whitespace between the start line and the first field, or before the first trailer.
    #[error("whitespace before the first field")]
    WhitespaceBeforeFields,
    /// RFC 9112 5: a field line has a colon.
    #[error("field {number} has no colon")]
    FieldColonMissing {
        /// Number of the field in its section, from 1.
        number: usize,
    },
    /// RFC 9112 5.1: a field name is a token, with no whitespace between it and the colon.
    #[error("byte {byte:#04x} in the name of field {number}")]
    FieldNameInvalid {
        /// Number of the field in its section, from 1.
        number: usize,
        /// The first byte that does not belong into a name.
        byte: u8,
    },
    /// RFC 9110 5.5: NUL and bare CR are invalid in a field value.
    #[error("NUL or bare CR in the value of field {number}")]
    FieldValueInvalid {
        /// Number of the field in its section, from 1.
        number: usize,
    },
    /// Larger than [`RESPONSE_HEAD_BYTES_MAX`](super::limits::RESPONSE_HEAD_BYTES_MAX).
    #[error("response head or trailer section does not end within {bytes_max} bytes")]
    HeadTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// More fields than [`RESPONSE_HEADER_COUNT_MAX`](super::limits::RESPONSE_HEADER_COUNT_MAX).
    #[error("response head or trailer section has more than {count_max} fields")]
    TooManyFields {
        /// The limit.
        count_max: usize,
    },
    /// RFC 9112 6.3: not a decimal number, or a list of equal ones.
    #[error("Content-Length is not a number")]
    ContentLengthInvalid,
    /// RFC 9110 8.6: a recipient prevents overflows.
    #[error("Content-Length is larger than 2^64 - 1")]
    ContentLengthOverflow,
    /// RFC 9112 6.3: different values have no meaning.
    #[error("Content-Length is both {first} and {other}")]
    ContentLengthConflict {
        /// The first value.
        first: u64,
        /// The first value that differs from it.
        other: u64,
    },
    /// RFC 9112 6.1 and 7: chunked more than once, or with parameters.
    #[error("Transfer-Encoding applies chunked twice or with parameters")]
    TransferEncodingInvalid,
    /// RFC 9112 6.1: in a message of HTTP/1.0 the framing is faulty.
    #[error("Transfer-Encoding in an HTTP/1.0 response")]
    TransferEncodingInHttp10,
    /// RFC 9112 7.1: a chunk size is hexadecimal digits.
    #[error("byte {byte:#04x} in a chunk size")]
    ChunkSizeInvalid {
        /// The byte.
        byte: u8,
    },
    /// RFC 9112 7.1: recipients prevent overflows.
    #[error("chunk size is larger than 2^64 - 1")]
    ChunkSizeOverflow,
    /// RFC 9112 7.1.1: a control character in a chunk extension.
    #[error("byte {byte:#04x} in a chunk extension")]
    ChunkExtensionInvalid {
        /// The byte.
        byte: u8,
    },
    /// RFC 9112 7.1: a chunk-size line ends with CRLF.
    #[error("byte {byte:#04x} where a chunk-size line should end with CRLF")]
    ChunkLineEndInvalid {
        /// The byte.
        byte: u8,
    },
    /// RFC 9112 7.1: chunk data ends with CRLF.
    #[error("byte {byte:#04x} where chunk data should end with CRLF")]
    ChunkDataEndInvalid {
        /// The byte.
        byte: u8,
    },
    /// Longer than [`CHUNK_LINE_BYTES_MAX`](super::limits::CHUNK_LINE_BYTES_MAX).
    #[error("chunk-size line is longer than {bytes_max} bytes")]
    ChunkLineTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The connection was closed and nothing of the response had come.
    #[error("server closed the connection without a response")]
    ClosedBeforeResponse,
    /// The connection was closed after interim responses only.
    #[error(
        "server closed the connection after {interim_count} interim (1xx) responses, without a final one"
    )]
    ClosedAfterInterim {
        /// Interim responses read.
        interim_count: u32,
    },
    /// The connection was cut off, and only its end could have said that the body was whole.
    #[error("server closed the connection after {bytes} body bytes, without TLS's close_notify")]
    CutOff {
        /// Body bytes that came.
        bytes: u64,
    },
    /// The connection was closed within the head.
    #[error("server closed the connection after {bytes} bytes of an incomplete response head")]
    ClosedInHead {
        /// Bytes of the head that came.
        bytes: usize,
    },
    /// The connection was closed before Content-Length bytes had come.
    #[error("server closed the connection after {bytes} of {expected} body bytes")]
    ClosedInBody {
        /// Bytes that came.
        bytes: u64,
        /// Bytes that Content-Length promised.
        expected: u64,
    },
    /// The connection was closed before the last chunk.
    #[error("server closed the connection after {bytes} body bytes, before the last chunk")]
    ClosedInChunks {
        /// Body bytes that came.
        bytes: u64,
    },
    /// The connection was closed after the last chunk, before the empty line that ends the trailers.
    #[error("server closed the connection within the trailers, after {bytes} body bytes")]
    ClosedInTrailers {
        /// Body bytes that came.
        bytes: u64,
    },
}

/// What the causes have in common for those who count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// The response is not HTTP, or breaks its rules.
    Protocol,
    /// The head or the trailers are larger than a limit.
    HeadTooLarge,
    /// The connection was closed too early, or is about to be.
    Closed,
}

impl DecodeError {
    /// The kind of this cause.
    pub const fn kind(&self) -> DecodeErrorKind {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyFields { .. } => DecodeErrorKind::HeadTooLarge,
            Self::Unrequested
            | Self::ClosedBeforeResponse
            | Self::ClosedAfterInterim { .. }
            | Self::CutOff { .. }
            | Self::ClosedInHead { .. }
            | Self::ClosedInBody { .. }
            | Self::ClosedInChunks { .. }
            | Self::ClosedInTrailers { .. } => DecodeErrorKind::Closed,
            _ => DecodeErrorKind::Protocol,
        }
    }
}

/// A server that expects TLS answers with an alert, whose first byte that is.
fn not_http(index: usize, byte: u8) -> String {
    match (index, byte) {
        (0, 0x15) => {
            "the server answered with a TLS alert: the port uses TLS, so the URL needs https".to_owned()
        }
        _ => format!("response does not begin with \"HTTP/\": byte {index} is {byte:#04x}"),
    }
}
