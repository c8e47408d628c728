//! What a header block means: the status, the length, and whether it is well-formed.
//!
//! A block that says nothing of the dynamic table means the same each time; the last such block is remembered.

use super::Error;
use super::field::Meaning;
use super::hpack::{Decoder, Found, Scratch};
use super::limits::CACHED_BLOCK_BYTES_MAX;
use crate::h1::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADER_COUNT_MAX};

/// A header block reduced to what decides how its stream goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    /// 0: none.
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) fault: Option<Fault>,
    has_fields: bool,
    field_count: usize,
    /// Names and values alone.
    pub(super) bytes: usize,
}

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed(&'static str),
    TooLarge,
}

/// Recognises a header block that equals the last one, and lends room to decode the others. One for each event loop.
#[derive(Debug, Default)]
pub struct HeadCache {
    /// The remembered block; empty: none.
    block: Vec<u8>,
    /// It asks for insertions, so it means the same only to a table without capacity.
    inserts: bool,
    head: Head,
    /// Its fields as text, if they were asked for.
    text: Vec<u8>,
    has_text: bool,
    scratch: Scratch,
}

/// What a block is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What it means.
    Meaning,
    /// Its fields as well.
    Text,
}

impl HeadCache {
    /// The block that was read last as HTTP/1.1 would write it; of use only if it was read as [`Wanted::Text`].
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The same without a status line.
    pub(super) fn lines(&self) -> &[u8] {
        &self.text[STATUS_LINE.len()..]
    }

    /// Reads a whole block.
    pub(super) fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        wanted: Wanted,
    ) -> Result<Head, Error> {
        if self.recognises(decoder, block, wanted) {
            return Ok(self.head);
        }
        let (mut head, has_text) = (Head::default(), wanted == Wanted::Text);
        let Self { text, scratch, .. } = self;
        text.clear();
        text.extend_from_slice(STATUS_LINE);
        let traits = decoder.decode(block, scratch, &mut |found| {
            head.note(found);
            if has_text && head.fault.is_none() {
                write_line(found, text);
            }
        });
        self.block.clear();
        let traits = traits?;
        if has_text {
            text.extend_from_slice(b"\r\n");
        }
        if !traits.uses_table && block.len() <= CACHED_BLOCK_BYTES_MAX {
            self.block.extend_from_slice(block);
            (self.inserts, self.head, self.has_text) = (traits.inserts, head, has_text);
        }
        Ok(head)
    }

    fn recognises(&self, decoder: &Decoder, block: &[u8], wanted: Wanted) -> bool {
        block == self.block
            && !block.is_empty()
            && (!self.inserts || decoder.is_table_closed())
            && (self.has_text || wanted == Wanted::Meaning)
    }
}

impl Head {
    fn note(&mut self, found: &Found<'_>) {
        self.field_count += 1;
        self.bytes += found.name.len() + found.value.len();
        // RFC 9113 6.5.2: each field counts 32 bytes beside its own.
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

/// Stands before the fields; the status itself is told apart.
const STATUS_LINE: &[u8] = b"HTTP/2\r\n";

fn write_line(found: &Found<'_>, text: &mut Vec<u8>) {
    if !matches!(found.meaning, Meaning::Status(_)) {
        for part in [found.name, b": ", found.value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
}
