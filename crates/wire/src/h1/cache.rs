//! Recognises a head that equals the last one, and keeps the buffers of heads that come in pieces.

use super::head::Head;
use super::limits::{CACHED_HEAD_BYTES_MAX, SPARE_BUFFER_BYTES_MAX, SPARE_BUFFER_COUNT_MAX};
use super::section::Section;

/// The last head's bytes and what they meant. A server under load sends the same head again and again, at most with another
/// `Date` each second, so that one comparison stands for parsing it. One per event loop.
#[derive(Debug)]
pub struct HeadCache {
    /// Empty, or a whole final head without folds.
    bytes: Vec<u8>,
    head: Head,
    #[expect(clippy::vec_box, reason = "the boxes are what is kept: decoders hold them by one pointer")]
    spares: Vec<Box<Partial>>,
}

/// A head or trailer section that came in pieces.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) section: Section,
    /// Everything of the section so far; once it is whole, maybe bytes after it too.
    pub(super) bytes: Vec<u8>,
}

impl Default for HeadCache {
    fn default() -> Self {
        Self { bytes: Vec::new(), head: Head::new(), spares: Vec::new() }
    }
}

impl HeadCache {
    /// What the head at the beginning of `input` means, and its length, if it is the remembered one. Equal bytes up to and
    /// including the empty line mean the same whatever follows them.
    pub(super) fn recognise(&self, input: &[u8]) -> Option<(Head, usize)> {
        (!self.bytes.is_empty() && input.starts_with(&self.bytes)).then_some((self.head, self.bytes.len()))
    }

    /// Remembers a whole final head without folds.
    pub(super) fn remember(&mut self, head: &Head, bytes: &[u8]) {
        if bytes.len() <= CACHED_HEAD_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = *head;
        }
    }

    /// A buffer for a section of which `bytes` have come.
    pub(super) fn lend(&mut self, section: Section, bytes: &[u8]) -> Box<Partial> {
        let Some(mut partial) = self.spares.pop() else {
            return Box::new(Partial { section, bytes: bytes.to_vec() });
        };
        partial.section = section;
        partial.bytes.clear();
        partial.bytes.extend_from_slice(bytes);
        partial
    }

    /// Takes a buffer back.
    pub(super) fn give_back(&mut self, partial: Box<Partial>) {
        if self.spares.len() < SPARE_BUFFER_COUNT_MAX && partial.bytes.capacity() <= SPARE_BUFFER_BYTES_MAX {
            self.spares.push(partial);
        }
    }
}
