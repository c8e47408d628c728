//! The text of a head whose fields came compressed, as HTTP/1.1 would write it.

use super::{Found, Head, write_line};

/// What a compressed head is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadWanted {
    /// What it means.
    Meaning,
    /// Its fields as well.
    Text,
}

/// Collects the fields of the head that was read last. Of use only if that was read as [`HeadWanted::Text`].
#[derive(Debug, Default)]
pub(crate) struct HeadText {
    bytes: Vec<u8>,
    status_line_bytes: usize,
    is_wanted: bool,
}

impl HeadText {
    /// All of it, the status line first.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The same without the status line.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.bytes[self.status_line_bytes..]
    }

    /// Begins a head. The status itself is reported separately: `status_line` names the version alone.
    pub(crate) fn begin(&mut self, status_line: &[u8], wanted: HeadWanted) {
        self.bytes.clear();
        self.bytes.extend_from_slice(status_line);
        self.status_line_bytes = status_line.len();
        self.is_wanted = wanted == HeadWanted::Text;
    }

    /// Takes one more field; those after a fault are left out.
    #[inline]
    pub(crate) fn note(&mut self, head: &mut Head, found: &Found<'_>) {
        head.note(found);
        if self.is_wanted && head.fault.is_none() {
            write_line(found, &mut self.bytes);
        }
    }

    pub(crate) fn end(&mut self) {
        if self.is_wanted {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }
}
