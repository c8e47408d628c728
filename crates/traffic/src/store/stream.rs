//! Reads a `.squall` file front to back without its index: damaged frames are reported, and the next whole one is found.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::input::Input;
use crate::read::{Notes, Source};
use crate::{Place, Problem, Record, Spooled};

use super::codec::SpooledPart;
use super::{
    FILE_HEAD_BYTES, FORMAT_VERSION, FRAME_HEAD_BYTES, Frame, FrameKind, MAGIC, RecordView, SYNC_RECORD,
};

/// The reader.
pub struct Stream {
    input: Input,
    notes: Notes,
    record_count: u64,
    /// The frame being read, and what is read ahead of it.
    buffer: Vec<u8>,
    /// Bytes of the buffer that are done with.
    done: usize,
    is_begun: bool,
    is_at_end: bool,
    spool: Spool,
}

/// A temporary file for the spooled bodies of the records that are read: the input may be compressed, or a pipe.
#[derive(Default)]
struct Spool {
    file: Option<Arc<File>>,
    /// Bytes in it.
    end: u64,
    /// Where the parts begin that no record has taken.
    begin: u64,
}

impl Spool {
    fn push(&mut self, part: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => Arc::new(tempfile::tempfile()?),
        };
        self.file.insert(file).write_all_at(part, self.end)?;
        self.end += part.len() as u64;
        Ok(())
    }

    /// The last bytes for the record that follows them; `None` where some are missing. Earlier ones are of a record that is.
    fn take(&mut self, part: SpooledPart) -> Option<Spooled> {
        let begin = self.end.checked_sub(part.bytes).filter(|begin| *begin >= self.begin)?;
        self.begin = self.end;
        Some(Spooled::plain(Arc::clone(self.file.as_ref()?), begin, part.bytes, part.at))
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("record_count", &self.record_count).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(input: Input) -> Self {
        Self {
            input,
            notes: Notes::default(),
            record_count: 0,
            buffer: Vec::new(),
            done: 0,
            is_begun: false,
            is_at_end: false,
            spool: Spool::default(),
        }
    }

    fn place(&self) -> Place {
        let byte = self.input.byte() - (self.buffer.len() - self.done) as u64;
        Place { record: self.record_count + 1, line: 0, byte }
    }

    /// Reads until `count` bytes are there; false at the end of the file.
    fn need(&mut self, count: usize) -> Result<bool, Problem> {
        if self.done > KEPT_BYTES_MAX {
            self.buffer.drain(..self.done);
            self.done = 0;
        }
        let place = self.place();
        while self.buffer.len() - self.done < count {
            let chunk = self.input.fill().map_err(|error| Problem::io(place, &error))?;
            let chunk_bytes = chunk.len();
            if chunk_bytes == 0 {
                return Ok(false);
            }
            self.buffer.extend_from_slice(chunk);
            self.input.consume(chunk_bytes);
        }
        Ok(true)
    }

    fn begin(&mut self) -> Result<(), Problem> {
        self.is_begun = true;
        let whole = self.need(FILE_HEAD_BYTES as usize)?;
        if !whole || !self.buffer.starts_with(MAGIC) {
            return Err(Problem::fatal(Place::default(), "not a .squall file"));
        }
        let version = self.buffer[8..12].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if version != FORMAT_VERSION {
            let reason = format!(
                "version {version} of the .squall format; this squall reads version {FORMAT_VERSION}"
            );
            return Err(Problem::fatal(Place::default(), reason));
        }
        self.done = FILE_HEAD_BYTES as usize;
        Ok(())
    }

    /// The next frame, whole; its bytes begin at `done`. `None` at the end.
    fn frame(&mut self) -> Result<Option<Frame>, Problem> {
        if !self.need(FRAME_HEAD_BYTES)? {
            self.is_at_end = true;
            return match self.buffer.len() - self.done {
                0 => Ok(None),
                _ if self.buffer.ends_with(super::TRAILER_MAGIC) => Ok(None),
                _ => Err(Problem::record(self.place(), "the file ends inside a frame")),
            };
        }
        let Some(frame) = Frame::read(&self.buffer[self.done..]) else { return self.find_next() };
        let is_there = self.need(frame.bytes())?;
        if is_there && frame.is_whole(&self.buffer[self.done..]) {
            return Ok(Some(frame));
        }
        // Where another frame begins in what is left, it is the length that is damaged.
        let rest = &self.buffer[self.done + SYNC_RECORD.len()..];
        let is_cut_off = || memchr::memmem::find(rest, &SYNC_RECORD).is_none();
        if !is_there && frame.payload_bytes < KEPT_BYTES_MAX && is_cut_off() {
            self.is_at_end = true;
            return Err(Problem::record(self.place(), "the file ends inside a frame"));
        }
        self.find_next()
    }

    /// Skips damage: the next bytes that begin a frame, or the end.
    fn find_next(&mut self) -> Result<Option<Frame>, Problem> {
        // After an index comes its trailer; more frames follow where the file was appended to.
        let trailer = &self.buffer[self.done..];
        if trailer.get(8..16) == Some(super::TRAILER_MAGIC) {
            self.done += super::TRAILER_BYTES as usize;
            return self.frame();
        }
        let place = self.place();
        self.done += 1;
        loop {
            let found = memchr::memmem::find(&self.buffer[self.done..], &SYNC_RECORD);
            match found {
                Some(at) => {
                    self.done += at;
                    return Err(Problem::record(place, "damaged: skipped to the next frame"));
                }
                None => {
                    self.done =
                        self.buffer.len() - (SYNC_RECORD.len() - 1).min(self.buffer.len() - self.done);
                }
            }
            if !self.need(SYNC_RECORD.len())? {
                self.is_at_end = true;
                return Err(Problem::record(place, "damaged to the end"));
            }
        }
    }
}

impl Source for Stream {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        if !self.is_begun {
            self.begin()?;
        }
        while !self.is_at_end {
            let Some(frame) = self.frame()? else { break };
            let place = self.place();
            let begin = self.done + FRAME_HEAD_BYTES;
            self.done += frame.bytes();
            let payload = &self.buffer[begin..self.done];
            match frame.kind {
                FrameKind::Record => {}
                FrameKind::Index => continue,
                FrameKind::Body => {
                    let spooled = self.spool.push(payload);
                    spooled
                        .map_err(|error| Problem::fatal(place, format!("cannot spool a body: {error}")))?;
                    continue;
                }
            }
            self.record_count += 1;
            let view = RecordView::read(payload);
            let view = view.ok_or_else(|| Problem::record(place, "a malformed payload"))?;
            let mut record = view.record(&frame);
            if let Some(part) = view.spooled {
                let spooled = self.spool.take(part);
                record.request.spooled =
                    Some(spooled.ok_or_else(|| Problem::record(place, "parts of its body are missing"))?);
            }
            let flaw = record.request.flaw().or_else(|| view.flaw_of(record.response.as_ref()));
            return match flaw {
                Some(flaw) => Err(Problem::record(place, flaw)),
                None => Ok(Some(record)),
            };
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

/// Bytes that are done with, before the buffer is moved up.
const KEPT_BYTES_MAX: usize = 1 << 20;
