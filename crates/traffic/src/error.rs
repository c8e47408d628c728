//! What is wrong with a recording, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where in a file something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Number of the record (entry, line, pair), from 1; 0: the file as a whole.
    pub record: u64,
    /// Line of its first byte, from 1; 0 in binary files.
    pub line: u64,
    /// Byte offset of its first byte (after decompression).
    pub byte: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.record, self.line) {
            (0, 0) => write!(f, "byte {}", self.byte),
            (0, line) => write!(f, "line {line}"),
            (record, 0) => write!(f, "record {record} at byte {}", self.byte),
            (record, line) => write!(f, "record {record} at line {line}"),
        }
    }
}

/// Something in a recording that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// Why: lowercase, without a final period.
    pub reason: String,
    /// Nothing after it can be read either.
    pub is_fatal: bool,
}

impl Problem {
    /// One record is bad; those after it can be read.
    pub(crate) fn record(place: Place, reason: impl Into<String>) -> Self {
        Self { place, reason: without_period(reason.into()), is_fatal: false }
    }

    /// Nothing more can be read.
    pub(crate) fn fatal(place: Place, reason: impl Into<String>) -> Self {
        Self { place, reason: without_period(reason.into()), is_fatal: true }
    }

    pub(crate) fn io(place: Place, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the compressed file ends too early".to_owned(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                format!("the compressed data is damaged: {error}")
            }
            _ => error.to_string(),
        };
        Self::fatal(place, reason)
    }
}

/// Some libraries end what they say with one.
fn without_period(mut reason: String) -> String {
    reason.truncate(reason.trim_end_matches('.').len());
    reason
}

/// A recording cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused.
    #[error("cannot write `{}`: {source}", path.display())]
    Os {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A record is larger than the format allows.
    #[error("a record of {bytes} bytes is larger than {}", limits::RECORD_BYTES_MAX)]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// What was to be appended to is no recording, or one that this squall cannot go on with.
    #[error("cannot append: {0}")]
    NotRecording(#[from] OpenStoreError),
}

use crate::limits;
use crate::store::OpenStoreError;
