//! What a response's field section means: the status, the length, and whether it is well-formed.

use super::Meaning;
use crate::h1::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADER_COUNT_MAX};

/// One field of a section.
pub(crate) struct Found<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) meaning: Meaning,
}

/// A field section reduced to what decides how its stream goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    /// 0: none.
    pub(crate) status: u16,
    pub(crate) length: Option<u64>,
    pub(crate) fault: Option<Fault>,
    has_fields: bool,
    field_count: usize,
    /// Names and values alone.
    pub(crate) bytes: usize,
}

/// What is wrong with a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed(&'static str),
    TooLarge,
}

impl Head {
    pub(crate) fn note(&mut self, found: &Found<'_>) {
        self.field_count += 1;
        self.bytes += found.name.len() + found.value.len();
        // RFC 9113 6.5.2, RFC 9114 4.2.2: each field counts 32 bytes in addition to its own.
        if self.bytes + 32 * self.field_count > RESPONSE_HEAD_BYTES_MAX
            || self.field_count > RESPONSE_HEADER_COUNT_MAX
        {
            self.fault = Some(Fault::TooLarge);
            return;
        }
        match found.meaning {
            Meaning::Plain => self.has_fields = true,
            Meaning::Status(status) => self.note_status(status),
            Meaning::Length(length) => self.note_length(length),
            Meaning::Wrong(why) => self.note_fault(why),
        }
    }

    fn note_status(&mut self, status: u16) {
        if self.has_fields {
            return self.note_fault("pseudo-header field after another field");
        }
        if self.status != 0 {
            return self.note_fault(":status twice");
        }
        self.status = status;
    }

    fn note_length(&mut self, length: u64) {
        self.has_fields = true;
        match self.length {
            Some(known) if known != length => self.note_fault("content-length twice, with different values"),
            _ => self.length = Some(length),
        }
    }

    fn note_fault(&mut self, why: &'static str) {
        self.fault.get_or_insert(Fault::Malformed(why));
    }
}

/// Appends a field as HTTP/1.1 would write it; the status is reported separately.
pub(crate) fn write_line(found: &Found<'_>, text: &mut Vec<u8>) {
    if !matches!(found.meaning, Meaning::Status(_)) {
        for part in [found.name, b": ", found.value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
}
