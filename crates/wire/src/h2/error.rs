//! What goes wrong on a connection or on one of its streams.

use std::fmt;

/// Why a connection is of no further use: the peer broke a rule (RFC 9113 5.4.1).
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
#[error("{text} ({code})")]
pub struct Error {
    /// What GOAWAY says to the peer.
    pub code: ErrorCode,
    /// What it did.
    pub text: &'static str,
}

/// Why a stream ended without a whole response; the connection goes on (RFC 9113 5.4.2).
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFailure {
    /// The peer reset it.
    #[error("the server reset the stream ({0})")]
    Reset(ErrorCode),
    /// The peer says that it has not looked at the request (RFC 9113 8.7): it may be sent again, whatever its method.
    #[error("the server refused the stream without processing it ({0})")]
    Unprocessed(ErrorCode),
    /// The response is malformed (RFC 9113 8.1.1); the peer was informed.
    #[error("malformed response: {0}")]
    Malformed(&'static str),
    /// The response's head or trailers are larger than the limit.
    #[error("response head or trailer section is larger than the limit")]
    HeadTooLarge,
}

/// An error code of RFC 9113 7.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

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

    const NAMES: [&'static str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.get(self.0 as usize) {
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

pub(super) const fn protocol(text: &'static str) -> Error {
    Error { code: ErrorCode::PROTOCOL_ERROR, text }
}

pub(super) const fn frame_size(text: &'static str) -> Error {
    Error { code: ErrorCode::FRAME_SIZE_ERROR, text }
}

pub(super) const fn flow_control(text: &'static str) -> Error {
    Error { code: ErrorCode::FLOW_CONTROL_ERROR, text }
}

pub(super) const fn stream_closed(text: &'static str) -> Error {
    Error { code: ErrorCode::STREAM_CLOSED, text }
}

pub(super) const fn compression(text: &'static str) -> Error {
    Error { code: ErrorCode::COMPRESSION_ERROR, text }
}

pub(super) const fn calm(text: &'static str) -> Error {
    Error { code: ErrorCode::ENHANCE_YOUR_CALM, text }
}
