//! What goes wrong on a connection.

use crate::ErrorCode;
use crate::compression::CodingError;

/// Why a connection is of no further use: the peer broke a rule (RFC 9113 5.4.1).
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
#[error("{text} ({code})")]
pub struct Error {
    /// What GOAWAY says to the peer.
    pub code: ErrorCode,
    /// What it did.
    pub text: &'static str,
}

impl From<CodingError> for Error {
    fn from(error: CodingError) -> Self {
        match error {
            CodingError::Incomplete => compression("header block ends within a field"),
            CodingError::Invalid(text) => compression(text),
        }
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
