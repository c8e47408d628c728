//! Why a stream of HTTP/2 or HTTP/3 ended, and the codes in which a peer says so.

use std::fmt;

/// Why a stream ended without a whole response; the connection goes on (RFC 9113 5.4.2, RFC 9114 8).
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFailure {
    /// The peer reset it.
    #[error("the server reset the stream ({0})")]
    Reset(ErrorCode),
    /// The peer says that it has not looked at the request (RFC 9113 8.7, RFC 9114 4.1.1): it may be sent again, whatever its method.
    #[error("the server refused the stream without processing it ({0})")]
    Unprocessed(ErrorCode),
    /// The response is malformed (RFC 9113 8.1.1, RFC 9114 4.1.2); the peer was informed.
    #[error("malformed response: {0}")]
    Malformed(&'static str),
    /// The response's head or trailers are larger than the limit.
    #[error("response head or trailer section is larger than the limit")]
    HeadTooLarge,
}

/// An error code of HTTP/2 (RFC 9113 7), or of HTTP/3 and QPACK (RFC 9114 8.1, RFC 9204 6). HTTP/3's begin where HTTP/2's will never
/// reach, so the number alone says which it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0x0);
    /// A rule that has no code of its own was broken.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// More was sent than the window allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// A frame came on a stream that was closed.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has a length that it cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The request was not looked at.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The response is no longer wanted.
    pub const CANCEL: Self = Self(0x8);
    /// A header block cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The peer makes work for nothing.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);

    /// HTTP/3: nothing is wrong.
    pub const H3_NO_ERROR: Self = Self(0x100);
    /// A stream that the peer may not open.
    pub const H3_STREAM_CREATION_ERROR: Self = Self(0x103);
    /// A stream that the connection needs was closed.
    pub const H3_CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame that is not allowed now, or on this stream.
    pub const H3_FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame whose layout or length is wrong.
    pub const H3_FRAME_ERROR: Self = Self(0x106);
    /// The peer makes work for nothing.
    pub const H3_EXCESSIVE_LOAD: Self = Self(0x107);
    /// A stream or push id that cannot be.
    pub const H3_ID_ERROR: Self = Self(0x108);
    /// A setting that cannot be.
    pub const H3_SETTINGS_ERROR: Self = Self(0x109);
    /// The control stream does not begin with SETTINGS.
    pub const H3_MISSING_SETTINGS: Self = Self(0x10a);
    /// The request was not looked at.
    pub const H3_REQUEST_REJECTED: Self = Self(0x10b);
    /// The request or its response is no longer wanted.
    pub const H3_REQUEST_CANCELLED: Self = Self(0x10c);
    /// The request ended before it was whole.
    pub const H3_REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// A message is malformed.
    pub const H3_MESSAGE_ERROR: Self = Self(0x10e);
    /// A field section cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    /// An instruction on the peer's encoder stream cannot be.
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// An instruction on the peer's decoder stream cannot be.
    pub const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);

    const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0 => "NO_ERROR",
            0x1 => "PROTOCOL_ERROR",
            0x2 => "INTERNAL_ERROR",
            0x3 => "FLOW_CONTROL_ERROR",
            0x4 => "SETTINGS_TIMEOUT",
            0x5 => "STREAM_CLOSED",
            0x6 => "FRAME_SIZE_ERROR",
            0x7 => "REFUSED_STREAM",
            0x8 => "CANCEL",
            0x9 => "COMPRESSION_ERROR",
            0xa => "CONNECT_ERROR",
            0xb => "ENHANCE_YOUR_CALM",
            0xc => "INADEQUATE_SECURITY",
            0xd => "HTTP_1_1_REQUIRED",
            0x33 => "H3_DATAGRAM_ERROR",
            0x100 => "H3_NO_ERROR",
            0x101 => "H3_GENERAL_PROTOCOL_ERROR",
            0x102 => "H3_INTERNAL_ERROR",
            0x103 => "H3_STREAM_CREATION_ERROR",
            0x104 => "H3_CLOSED_CRITICAL_STREAM",
            0x105 => "H3_FRAME_UNEXPECTED",
            0x106 => "H3_FRAME_ERROR",
            0x107 => "H3_EXCESSIVE_LOAD",
            0x108 => "H3_ID_ERROR",
            0x109 => "H3_SETTINGS_ERROR",
            0x10a => "H3_MISSING_SETTINGS",
            0x10b => "H3_REQUEST_REJECTED",
            0x10c => "H3_REQUEST_CANCELLED",
            0x10d => "H3_REQUEST_INCOMPLETE",
            0x10e => "H3_MESSAGE_ERROR",
            0x10f => "H3_CONNECT_ERROR",
            0x110 => "H3_VERSION_FALLBACK",
            0x200 => "QPACK_DECOMPRESSION_FAILED",
            0x201 => "QPACK_ENCODER_STREAM_ERROR",
            0x202 => "QPACK_DECODER_STREAM_ERROR",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
