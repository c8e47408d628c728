//! Reads field sections, and recognises the one that comes again.
//!
//! A section that refers to the static table alone means the same on every connection; the last such section is remembered.

use super::Error;
use super::limits::CACHED_SECTION_BYTES_MAX;
use super::qpack::Decoder;
use crate::compression::Scratch;
use crate::message::{Head, write_line};

/// Recognises a field section that equals the last one, and lends space to decode the others. One for each event loop.
#[derive(Debug, Default)]
pub struct HeadCache {
    /// The remembered section; empty: none.
    section: Vec<u8>,
    head: Head,
    /// The fields of the section that was read last as text, if they were asked for.
    text: Vec<u8>,
    has_text: bool,
    scratch: Scratch,
}

/// What a section is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What it means.
    Meaning,
    /// Its fields as well.
    Text,
}

/// What came of reading a section.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// It is read; where it used the dynamic table, `insert_count` is to be acknowledged.
    Read { head: Head, insert_count: u64 },
    /// It needs so many insertions, of which some have not come.
    Blocked { insert_count: u64 },
}

impl HeadCache {
    /// The section that was read last as HTTP/1.1 would write it; of use only if it was read as [`Wanted::Text`].
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The same without a status line.
    pub(super) fn lines(&self) -> &[u8] {
        &self.text[STATUS_LINE.len()..]
    }

    /// Reads a whole section. `waited_for`: the insertions that it had to wait for.
    pub(super) fn read(
        &mut self,
        decoder: &Decoder,
        (section, waited_for): (&[u8], Option<u64>),
        wanted: Wanted,
    ) -> Result<Section, Error> {
        let has_text = wanted == Wanted::Text;
        if section == self.section && !section.is_empty() && (self.has_text || !has_text) {
            return Ok(Section::Read { head: self.head, insert_count: 0 });
        }
        let prefix = decoder.read_prefix(section, waited_for)?;
        let insert_count = prefix.insert_count;
        if insert_count > decoder.insert_count() {
            return Ok(Section::Blocked { insert_count });
        }
        let mut head = Head::default();
        let Self { text, scratch, .. } = self;
        self.section.clear();
        text.clear();
        text.extend_from_slice(STATUS_LINE);
        decoder.decode(prefix, scratch, &mut |found| {
            head.note(found);
            if has_text && head.fault.is_none() {
                write_line(found, text);
            }
        })?;
        if has_text {
            text.extend_from_slice(b"\r\n");
        }
        if insert_count == 0 && section.len() <= CACHED_SECTION_BYTES_MAX {
            self.section.extend_from_slice(section);
            (self.head, self.has_text) = (head, has_text);
        }
        Ok(Section::Read { head, insert_count })
    }
}

/// Stands before the fields; the status itself is reported separately.
const STATUS_LINE: &[u8] = b"HTTP/3\r\n";
