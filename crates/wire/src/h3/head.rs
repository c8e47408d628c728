//! Reads field sections, and recognises the one that comes again.
//!
//! A section that refers to the static table alone means the same on every connection; the last such section is remembered.

use super::Error;
use super::limits::CACHED_SECTION_BYTES_MAX;
use super::qpack::Decoder;
use crate::compression::Scratch;
use crate::message::{Head, HeadText, HeadWanted};

/// Recognises a field section that equals the last one, and lends space to decode the others. One for each event loop.
#[derive(Debug, Default)]
pub struct HeadCache {
    /// The remembered section; empty: none.
    section: Vec<u8>,
    head: Head,
    text: HeadText,
    has_text: bool,
    scratch: Scratch,
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
    /// The section that was read last.
    pub(super) fn text(&self) -> &HeadText {
        &self.text
    }

    /// Reads a whole section. `waited_for`: the insertions that it had to wait for.
    pub(super) fn read(
        &mut self,
        decoder: &Decoder,
        (section, waited_for): (&[u8], Option<u64>),
        wanted: HeadWanted,
    ) -> Result<Section, Error> {
        let has_text = wanted == HeadWanted::Text;
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
        text.begin(b"HTTP/3\r\n", wanted);
        decoder.decode(prefix, scratch, &mut |found| text.note(&mut head, found))?;
        text.end();
        if insert_count == 0 && section.len() <= CACHED_SECTION_BYTES_MAX {
            self.section.extend_from_slice(section);
            (self.head, self.has_text) = (head, has_text);
        }
        Ok(Section::Read { head, insert_count })
    }
}
