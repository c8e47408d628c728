//! The part of a large body that stays on disk: its beginning and its end are in memory, where names, tokens and secrets are.
//!
//! Owns: where the bytes are and how they are read. Never: keeps more than a buffer of them in memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::store::{BODY_FRAME_BYTES, FRAME_HEAD_BYTES};

/// Bytes of a body that are in a file.
#[derive(Debug, Clone)]
pub struct Spooled {
    file: Arc<File>,
    /// Where they begin in the file, or the first of their frames.
    begin: u64,
    layout: Layout,
    /// How many they are.
    pub bytes: u64,
    /// Where they belong in the rest of the body.
    pub at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One after the other.
    Plain,
    /// In frames of a recording.
    Frames,
}

/// A stretch of a file.
#[derive(Debug)]
pub struct Stretch<'a> {
    /// The file.
    pub file: &'a File,
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

impl Spooled {
    /// Bytes of a file, as they are.
    pub fn plain(file: Arc<File>, begin: u64, bytes: u64, at: usize) -> Self {
        Self { file, begin, layout: Layout::Plain, bytes, at }
    }

    /// Bytes in the frames of a recording, the first of which is at `begin`.
    pub(crate) fn framed(file: Arc<File>, begin: u64, bytes: u64, at: usize) -> Self {
        Self { file, begin, layout: Layout::Frames, bytes, at }
    }

    /// The bytes from `position` on, as far as they are one stretch of the file; `None` at the end.
    pub fn stretch(&self, position: u64) -> Option<Stretch<'_>> {
        let left = self.bytes.checked_sub(position).filter(|left| *left > 0)?;
        let frame_bytes = BODY_FRAME_BYTES as u64;
        let (offset, bytes) = match self.layout {
            Layout::Plain => (position, left),
            Layout::Frames => {
                let heads = (position / frame_bytes + 1).checked_mul(FRAME_HEAD_BYTES as u64)?;
                (position.checked_add(heads)?, left.min(frame_bytes - position % frame_bytes))
            }
        };
        Some(Stretch { file: &self.file, offset: self.begin.checked_add(offset)?, bytes })
    }

    /// Reads from `position` on; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or has become shorter.
    pub fn read_at(&self, out: &mut [u8], mut position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < out.len() {
            let Some(Stretch { file, offset, bytes }) = self.stretch(position) else { break };
            let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).min(out.len() - filled);
            file.read_exact_at(&mut out[filled..filled + wanted], offset)?;
            filled += wanted;
            position += wanted as u64;
        }
        Ok(filled)
    }

    /// Reads all from the beginning on.
    pub fn reader(&self) -> impl Read {
        Reader { spooled: self, position: 0 }
    }
}

/// Two are the same where they are the same bytes of the same file; what they hold is not compared.
impl PartialEq for Spooled {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (Arc::as_ptr(&one.file), one.begin, one.layout, one.bytes, one.at);
        key(self) == key(other)
    }
}

impl Eq for Spooled {}

struct Reader<'a> {
    spooled: &'a Spooled,
    position: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.spooled.read_at(out, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
