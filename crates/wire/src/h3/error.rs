//! What goes wrong on a connection.

use crate::ErrorCode;

/// Why a connection is of no further use: the peer broke a rule (RFC 9114 8, RFC 9204 6).
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
#[error("{text} ({code})")]
pub struct Error {
    /// What CONNECTION_CLOSE says to the peer.
    pub code: ErrorCode,
    /// What it did.
    pub text: &'static str,
}

impl Error {
    pub(super) const fn new(code: ErrorCode, text: &'static str) -> Self {
        Self { code, text }
    }
}

pub(super) const fn unexpected(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_FRAME_UNEXPECTED, text)
}

pub(super) const fn frame_error(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_FRAME_ERROR, text)
}

pub(super) const fn id_error(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_ID_ERROR, text)
}

pub(super) const fn settings_error(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_SETTINGS_ERROR, text)
}

pub(super) const fn stream_creation(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, text)
}

pub(super) const fn closed_critical(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_CLOSED_CRITICAL_STREAM, text)
}

pub(super) const fn excessive(text: &'static str) -> Error {
    Error::new(ErrorCode::H3_EXCESSIVE_LOAD, text)
}

pub(super) const fn decompression(text: &'static str) -> Error {
    Error::new(ErrorCode::QPACK_DECOMPRESSION_FAILED, text)
}

pub(super) const fn encoder_stream(text: &'static str) -> Error {
    Error::new(ErrorCode::QPACK_ENCODER_STREAM_ERROR, text)
}

pub(super) const fn decoder_stream(text: &'static str) -> Error {
    Error::new(ErrorCode::QPACK_DECODER_STREAM_ERROR, text)
}
