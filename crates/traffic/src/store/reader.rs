//! Opens a recording by its index, and walks through it: many cursors on one file, each with its own small buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Record, Spooled};

use super::{
    FILE_HEAD_BYTES, FORMAT_VERSION, FRAME_HEAD_BYTES, Frame, FrameKind, Index, MAGIC, RecordView,
    TRAILER_BYTES, TRAILER_MAGIC,
};

/// A recording that can be replayed at once: its index is read, its records are not.
#[derive(Debug, Clone)]
pub struct Recording {
    file: Arc<File>,
    path: PathBuf,
    index: Arc<Index>,
    /// Bytes of records: the file without its last index.
    end: u64,
}

/// Why a file is no recording that can be replayed at once.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// The system refused.
    #[error("cannot read `{}`: {source}", path.display())]
    Os {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another kind of file.
    #[error("`{}` is not a Squall recording (.squall)", path.display())]
    NotStore {
        /// The file.
        path: PathBuf,
    },
    /// A recording of another squall.
    #[error("`{}` has version {version} of the .squall format; this squall reads version {FORMAT_VERSION}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It was not closed, or is damaged.
    #[error("`{}` has no index: it was not closed", path.display())]
    NoIndex {
        /// The file.
        path: PathBuf,
    },
}

impl Recording {
    /// Opens a file by its trailer and index.
    ///
    /// # Errors
    /// When it has none: [`super::repair`] makes one.
    pub fn open(path: &Path) -> Result<Self, OpenStoreError> {
        let os = |source| OpenStoreError::Os { path: path.to_owned(), source };
        let file = File::open(path).map_err(os)?;
        Self::on_file(file, path)
    }

    /// The same on a file that is open, such as a temporary one.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn on_file(file: File, path: &Path) -> Result<Self, OpenStoreError> {
        let os = |source| OpenStoreError::Os { path: path.to_owned(), source };
        let no_index = || OpenStoreError::NoIndex { path: path.to_owned() };
        let length = file.metadata().map_err(os)?.len();
        let mut head = [0; FILE_HEAD_BYTES as usize];
        let is_store = length >= FILE_HEAD_BYTES && file.read_exact_at(&mut head, 0).is_ok();
        if !is_store || !head.starts_with(MAGIC) {
            return Err(OpenStoreError::NotStore { path: path.to_owned() });
        }
        let version = head[8..12].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if version != FORMAT_VERSION {
            return Err(OpenStoreError::OtherVersion { path: path.to_owned(), version });
        }
        let at =
            length.checked_sub(TRAILER_BYTES).filter(|at| *at >= FILE_HEAD_BYTES).ok_or_else(no_index)?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        file.read_exact_at(&mut trailer, at).map_err(os)?;
        let index_at = trailer.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if trailer[8..] != *TRAILER_MAGIC || index_at < FILE_HEAD_BYTES || index_at >= at {
            return Err(no_index());
        }
        let mut frame_bytes = vec![0; usize::try_from(at - index_at).map_err(|_| no_index())?];
        file.read_exact_at(&mut frame_bytes, index_at).map_err(os)?;
        let frame = Frame::read(&frame_bytes)
            .filter(|frame| frame.kind == FrameKind::Index && frame.is_whole(&frame_bytes));
        let frame = frame.ok_or_else(no_index)?;
        let json = frame_bytes.get(FRAME_HEAD_BYTES..frame.bytes()).ok_or_else(no_index)?;
        let index: Index = serde_json::from_slice(json).map_err(|_| no_index())?;
        Ok(Self { file: Arc::new(file), path: path.to_owned(), index: Arc::new(index), end: index_at })
    }

    /// What is known of it.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The record that begins at this offset, which [`Cursor::offset`] gave; `None` where none does.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged there.
    pub fn record_at(&self, offset: u64) -> io::Result<Option<Record>> {
        let mut cursor = Cursor { offset, ..self.cursor(RECORD_BUFFER_BYTES) };
        match cursor.peek()? {
            Some(frame) => cursor.record(&frame),
            None => Ok(None),
        }
    }

    /// The part of a body that is in separate frames; `offset`: where the frame of its record begins.
    pub fn spooled(&self, view: &RecordView<'_>, offset: u64) -> Option<Spooled> {
        spooled(&self.file, view, offset)
    }

    /// A walk from the first record, with a buffer of this many bytes (more for a record that is larger).
    pub fn cursor(&self, buffer_bytes: usize) -> Cursor {
        Cursor {
            file: Arc::clone(&self.file),
            end: self.end,
            offset: FILE_HEAD_BYTES,
            buffer: vec![0; buffer_bytes.max(FRAME_HEAD_BYTES)],
            begin: 0,
            filled: 0,
            passed_bytes: 0,
        }
    }
}

fn spooled(file: &Arc<File>, view: &RecordView<'_>, offset: u64) -> Option<Spooled> {
    let part = view.spooled?;
    // A distance that leads out of the file is found when the bytes are read.
    let begin = offset.saturating_sub(part.distance);
    Some(Spooled::framed(Arc::clone(file), begin, part.bytes, part.at))
}

/// A walk through the records of a recording. Nothing is allocated while it goes, records larger than its buffer apart.
#[derive(Debug)]
pub struct Cursor {
    file: Arc<File>,
    end: u64,
    /// Offset in the file of the next byte to read into the buffer.
    offset: u64,
    buffer: Vec<u8>,
    /// The next frame begins here.
    begin: usize,
    filled: usize,
    passed_bytes: u64,
}

impl Cursor {
    /// The next record's head, without moving on; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what its index says.
    pub fn peek(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if !self.fill(FRAME_HEAD_BYTES)? {
                return Ok(None);
            }
            let rest = &self.buffer[self.begin..self.filled];
            match Frame::read(rest) {
                Some(frame) if frame.kind == FrameKind::Record => return Ok(Some(frame)),
                Some(frame) if frame.kind == FrameKind::Body => self.leap(frame.bytes()),
                Some(frame) => self.leap(frame.bytes() + TRAILER_BYTES as usize),
                None => return Err(damaged()),
            }
        }
    }

    /// Where in the file the frame begins that [`Cursor::peek`] gave.
    pub fn offset(&self) -> u64 {
        self.offset - (self.filled - self.begin) as u64
    }

    /// Bytes of the records that it moved over, without spooled bodies.
    pub fn passed_bytes(&self) -> u64 {
        self.passed_bytes
    }

    /// Moves over the frame that [`Cursor::peek`] gave.
    pub fn skip(&mut self, frame_bytes: usize) {
        self.passed_bytes += frame_bytes as u64;
        self.leap(frame_bytes);
    }

    fn leap(&mut self, frame_bytes: usize) {
        let buffered = self.filled - self.begin;
        if frame_bytes <= buffered {
            self.begin += frame_bytes;
        } else {
            self.offset += (frame_bytes - buffered) as u64;
            (self.begin, self.filled) = (0, 0);
        }
    }

    /// The payload of the frame that [`Cursor::peek`] gave, and moves over it.
    ///
    /// # Errors
    /// When the file cannot be read or the checksum does not hold.
    pub fn take(&mut self, frame: &Frame) -> io::Result<&[u8]> {
        if !self.fill(frame.bytes())? {
            return Err(damaged());
        }
        let begin = self.begin;
        let bytes = &self.buffer[begin..begin + frame.bytes()];
        if !frame.is_whole(bytes) {
            return Err(damaged());
        }
        self.begin += frame.bytes();
        self.passed_bytes += frame.bytes() as u64;
        Ok(&self.buffer[begin + FRAME_HEAD_BYTES..begin + frame.bytes()])
    }

    /// The record of the frame that [`Cursor::peek`] gave, with all of its body, and moves over it; `None` where the payload makes no sense.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    pub fn record(&mut self, frame: &Frame) -> io::Result<Option<Record>> {
        let (offset, file) = (self.offset(), Arc::clone(&self.file));
        let view = RecordView::read(self.take(frame)?);
        Ok(view.map(|view| {
            let mut record = view.record(frame);
            record.request.spooled = spooled(&file, &view, offset);
            record
        }))
    }

    /// Back to the first record.
    pub fn rewind(&mut self) {
        (self.offset, self.begin, self.filled) = (FILE_HEAD_BYTES, 0, 0);
        self.passed_bytes = 0;
    }

    /// Reads until `count` bytes are buffered; false at the end of the records.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        if self.filled - self.begin >= count {
            return Ok(true);
        }
        self.buffer.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.begin = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count, 0);
        }
        while self.filled < count {
            let space = (self.buffer.len() - self.filled) as u64;
            let wanted = space.min(self.end.saturating_sub(self.offset)) as usize;
            let read = match wanted {
                0 => 0,
                _ => self.file.read_at(&mut self.buffer[self.filled..self.filled + wanted], self.offset)?,
            };
            if read == 0 {
                return if self.filled == 0 { Ok(false) } else { Err(damaged()) };
            }
            self.filled += read;
            self.offset += read as u64;
        }
        Ok(true)
    }
}

/// Most records fit into this.
const RECORD_BUFFER_BYTES: usize = 16 << 10;

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the recording is damaged: --skip-bad leaves out what cannot be read",
    )
}
