//! Writes a recording: frames as they come, the index at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use squall_plan::files::{self, Access};

use super::index::Builder;
use super::{
    BODY_FRAME_BYTES, FILE_HEAD_BYTES, FORMAT_VERSION, FRAME_HEAD_BYTES, FrameKind, Index, MAGIC,
    OpenStoreError, Recording, Stream, TRAILER_MAGIC, codec,
};
use crate::input::Input;
use crate::{Record, Source, Spooled, WriteError};

/// A file that records are appended to.
#[derive(Debug)]
pub struct Writer {
    out: BufWriter<File>,
    path: PathBuf,
    offset: u64,
    builder: Builder,
    frame: Vec<u8>,
}

impl Writer {
    /// A new file; what was there is lost.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let file = files::create_private(path).map_err(|source| os(path, source))?;
        Self::on_file(file, path)
    }

    /// The same on a file that is open, such as a temporary one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn on_file(file: File, path: &Path) -> Result<Self, WriteError> {
        let mut writer = Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            path: path.to_owned(),
            offset: 0,
            builder: Builder::default(),
            frame: Vec::new(),
        };
        let mut head = [0; FILE_HEAD_BYTES as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    /// Goes on at the end of a file; its index is read, or made anew after a crash. An empty file is one that was begun just now.
    ///
    /// # Errors
    /// When the file is no recording of this version, which leaves it as it was, or cannot be written.
    pub fn append(path: &Path) -> Result<Self, WriteError> {
        let recording = match Recording::open(path) {
            Err(OpenStoreError::NoIndex { .. }) => {
                repair(path)?;
                Recording::open(path)?
            }
            Err(OpenStoreError::NotStore { .. }) if is_empty(path) => return Self::create(path),
            other => other?,
        };
        let mut file =
            files::open_private(path, OpenOptions::new().write(true)).map_err(|source| os(path, source))?;
        let offset = file.seek(SeekFrom::End(0)).map_err(|source| os(path, source))?;
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            path: path.to_owned(),
            offset,
            builder: Builder::continued(recording.index().clone()),
            frame: Vec::new(),
        })
    }

    /// Whether the recording can take one more of this record's origin.
    pub fn has_room_for(&self, record: &Record) -> bool {
        self.builder.has_room_for(record)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When it is too large, or the file cannot be written.
    pub fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        let mut frame = std::mem::take(&mut self.frame);
        let written = self.write_parts(record, &mut frame);
        self.frame = frame;
        written
    }

    /// The frames of a spooled body, and then that of the record. Readers pass over parts of a body whose record is missing.
    fn write_parts(&mut self, record: &Record, frame: &mut Vec<u8>) -> Result<(), WriteError> {
        let place = self.builder.place(record);
        let begin = self.offset;
        if let Some(spooled) = &record.request.spooled {
            self.write_body(spooled, frame)?;
        }
        let offset = self.offset;
        frame.clear();
        codec::write_frame(frame, record, place, offset - begin)?;
        self.put(frame)?;
        self.builder.add(record, place, offset..self.offset);
        Ok(())
    }

    fn write_body(&mut self, spooled: &Spooled, frame: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut part = vec![0; BODY_FRAME_BYTES];
        let mut position = 0;
        while position < spooled.bytes {
            let count = spooled.read_at(&mut part, position).map_err(|source| os(&self.path, source))?;
            position += count as u64;
            frame.clear();
            codec::write_plain_frame(frame, FrameKind::Body, &part[..count])?;
            self.put(frame)?;
        }
        Ok(())
    }

    /// Hands what is buffered to the system, so that a crash of this process does not lose it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.out.flush().map_err(|source| os(&self.path, source))
    }

    /// What is written so far.
    pub fn index(&self) -> &Index {
        self.builder.index()
    }

    /// Writes the index and the trailer; returns the index.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<Index, WriteError> {
        let json = serde_json::to_vec(self.builder.index()).map_err(|error| os(&self.path, error.into()))?;
        let mut frame = Vec::with_capacity(json.len() + FRAME_HEAD_BYTES);
        codec::write_plain_frame(&mut frame, FrameKind::Index, &json)?;
        let at = self.offset;
        self.put(&frame)?;
        self.put(&at.to_le_bytes())?;
        self.put(TRAILER_MAGIC)?;
        self.flush()?;
        Ok(self.builder.index().clone())
    }

    /// Appends these bytes, or none of them.
    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if let Err(source) = self.out.write_all(bytes) {
            // What matters is the error that led here.
            let _ = self.forget_half();
            return Err(os(&self.path, source));
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// A disk that fills up takes the first part of what does not fit: the file ends before it again.
    fn forget_half(&mut self) -> io::Result<()> {
        let end = self.offset - self.out.buffer().len() as u64;
        let file = self.out.get_mut();
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end)).map(drop)
    }
}

/// Makes a file whole that was not closed: what can be read is written anew, with an index, in its place.
///
/// # Errors
/// When it is no recording of this version, or cannot be read or written; then it stays as it was.
pub fn repair(path: &Path) -> Result<Index, WriteError> {
    let mut stream = Stream::new(Input::open(path).map_err(|source| os(path, source))?);
    replace(path, |mut writer| {
        loop {
            match stream.next() {
                Ok(Some(record)) => writer.write(&record)?,
                Ok(None) => return writer.finish(),
                Err(problem) if problem.is_fatal => return Err(os(path, io::Error::other(problem.reason))),
                Err(_) => {}
            }
        }
    })
}

/// Has `fill` write a recording, which is at `path` once it is whole; until then, and when that fails, what is there stays. Who may
/// read that may read the new one.
///
/// # Errors
/// Those of `fill`, and when a file cannot be made next to `path` or moved there.
pub fn replace<T, E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(Writer) -> Result<T, E>,
) -> Result<T, E> {
    if path.exists() && !path.is_file() {
        return fill(Writer::create(path)?);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let temporary = files::temporary_next_to(&path, Access::Private).map_err(|source| os(&path, source))?;
    let file = temporary.reopen().map_err(|source| os(&path, source))?;
    let filled = fill(Writer::on_file(file, &path)?)?;
    temporary.persist(&path).map_err(|error| os(&path, error.error))?;
    Ok(filled)
}

/// Not a device, whose length says nothing.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

fn os(path: &Path, source: io::Error) -> WriteError {
    WriteError::Os { path: path.to_owned(), source }
}

/// One write to the file.
const BUFFER_BYTES: usize = 256 * 1024;
