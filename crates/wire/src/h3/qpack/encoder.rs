//! Encodes field sections with the static table alone (RFC 9204 4.5).

use super::static_table::find;
use crate::compression::{put, put_string};

/// A field section that is being written. It depends on no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::h3) struct SectionWriter {
    bytes: Vec<u8>,
}

impl Default for SectionWriter {
    /// RFC 9204 4.5.1: a required insert count and a base of 0.
    fn default() -> Self {
        Self { bytes: vec![0, 0] }
    }
}

impl SectionWriter {
    /// Adds a field; the name is in lower case.
    pub(in crate::h3) fn push(&mut self, name: &[u8], value: &[u8]) {
        match find(name, value) {
            // RFC 9204 4.5.2.
            Some((index, true)) => return put(index as u64, 6, 0xc0, &mut self.bytes),
            // RFC 9204 4.5.4.
            Some((index, false)) => put(index as u64, 4, 0x50, &mut self.bytes),
            // RFC 9204 4.5.6.
            None => put_string(name, 3, 0x20, &mut self.bytes),
        }
        put_string(value, 7, 0, &mut self.bytes);
    }

    pub(in crate::h3) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
