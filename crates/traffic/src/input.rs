//! The bytes of a file: unpacked where they are compressed, with the place of each, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use memchr::memmem;

use crate::limits::SKIP_BYTES_MAX;
use crate::{Place, Problem};

/// A file that is read once, front to back.
pub(crate) struct Input {
    reader: Box<dyn BufRead + Send>,
    /// Bytes consumed.
    byte: u64,
    /// Line of the next byte, from 1.
    line: u64,
}

/// How a search for a delimiter ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It was found and is consumed, not stored.
    Found,
    /// The file ended first.
    End,
    /// More than wanted lay before it; the rest was skipped up to the delimiter or the file's end.
    TooLong,
}

impl Input {
    /// Opens a file; `-` is standard input. Gzip (also several members) and zlib are unpacked, a byte-order mark is dropped.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::new(Box::new(io::stdin()));
        }
        Self::new(Box::new(File::open(path)?))
    }

    /// The same for any reader.
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, reader);
        let reader: Box<dyn BufRead + Send> = match plain.fill_buf()? {
            [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain))),
            // mitmproxy's `.zhar`; no text begins so.
            [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
                Box::new(BufReader::with_capacity(BUFFER_BYTES, ZlibDecoder::new(plain)))
            }
            _ => Box::new(plain),
        };
        let mut input = Self { reader, byte: 0, line: 1 };
        if input.fill()?.starts_with(b"\xEF\xBB\xBF") {
            input.consume(3);
        }
        Ok(input)
    }

    /// The place of the next byte, in record number `record`.
    pub(crate) fn place(&self, record: u64) -> Place {
        Place { record, line: self.line, byte: self.byte }
    }

    /// Bytes consumed so far.
    pub(crate) fn byte(&self) -> u64 {
        self.byte
    }

    /// What is buffered; empty at the end of the file.
    pub(crate) fn fill(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    /// Takes `count` of the buffered bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        if let Ok(buffered) = self.reader.fill_buf() {
            self.line += memchr::memchr_iter(b'\n', &buffered[..count.min(buffered.len())]).count() as u64;
        }
        self.reader.consume(count);
        self.byte += count as u64;
    }

    /// Appends to `out` what lies before `delimiter`, at most `max` bytes of it.
    pub(crate) fn read_until(
        &mut self,
        delimiter: &[u8],
        out: &mut Vec<u8>,
        max: usize,
    ) -> io::Result<Until> {
        let begin = out.len();
        let begin_byte = self.byte;
        let mut is_too_long = false;
        loop {
            if self.byte - begin_byte > SKIP_BYTES_MAX {
                return Err(io::Error::other("no record ends within 1 GiB"));
            }
            let searched = out.len().saturating_sub(delimiter.len() - 1).max(begin);
            let old_len = out.len();
            let chunk = self.fill()?;
            let chunk_len = chunk.len();
            out.extend_from_slice(chunk);
            if let Some(at) = memmem::find(&out[searched..], delimiter) {
                let end = searched + at;
                self.consume(end + delimiter.len() - old_len);
                out.truncate(end);
                return Ok(if is_too_long || end - begin > max { Until::TooLong } else { Until::Found });
            }
            self.consume(chunk_len);
            if chunk_len == 0 {
                return Ok(if is_too_long { Until::TooLong } else { Until::End });
            }
            if out.len() - begin > max {
                is_too_long = true;
                // Only what may be the delimiter's beginning is still of use.
                out.drain(begin..out.len() - (delimiter.len() - 1));
            }
        }
    }

    /// The same for a record of a file: `Ok(false)` at the end of the file, which may have been right behind it.
    ///
    /// # Errors
    /// When it cannot be read, or is larger than `max`; then what follows can be read.
    pub(crate) fn read_record(
        &mut self,
        delimiter: &[u8],
        out: &mut Vec<u8>,
        max: usize,
        place: Place,
    ) -> Result<bool, Problem> {
        match self.read_until(delimiter, out, max).map_err(|error| Problem::io(place, &error))? {
            Until::Found => Ok(true),
            Until::End => Ok(false),
            Until::TooLong => Err(Problem::record(place, format!("larger than {max} bytes"))),
        }
    }

    /// Appends exactly `count` bytes to `out`; false when the file ends first.
    pub(crate) fn read_exact(&mut self, count: usize, out: &mut Vec<u8>) -> io::Result<bool> {
        let mut missing = count;
        while missing > 0 {
            let chunk = self.fill()?;
            let part = chunk.len().min(missing);
            if part == 0 {
                return Ok(false);
            }
            out.extend_from_slice(&chunk[..part]);
            self.consume(part);
            missing -= part;
        }
        Ok(true)
    }

    /// Drops `count` bytes; false when the file ends first.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<bool> {
        let mut missing = count;
        while missing > 0 {
            let part = (self.fill()?.len() as u64).min(missing);
            if part == 0 {
                return Ok(false);
            }
            self.consume(part as usize);
            missing -= part;
        }
        Ok(true)
    }
}

/// One read of the file.
const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
pub(crate) fn of_bytes(bytes: &[u8]) -> Input {
    Input::new(Box::new(io::Cursor::new(bytes.to_vec()))).expect("memory can be read")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn delimiters_are_found_across_buffers_and_long_parts_are_skipped() {
        let text = [vec![b'a'; 100_000], b"<>b<>".to_vec()].concat();
        let mut input = of_bytes(&text);
        let mut out = Vec::new();
        assert_eq!(input.read_until(b"<>", &mut out, 10).unwrap(), Until::TooLong);
        out.clear();
        assert_eq!(input.read_until(b"<>", &mut out, 10).unwrap(), Until::Found);
        assert_eq!(out, b"b");
        assert_eq!(input.read_until(b"<>", &mut out, 10).unwrap(), Until::End);
        assert_eq!(input.byte(), 100_005);
    }

    #[test]
    fn gzip_members_are_unpacked_one_after_the_other() {
        let mut packed = Vec::new();
        for part in ["one\n", "two\n"] {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            packed.extend(encoder.finish().unwrap());
        }
        let mut input = of_bytes(&packed);
        let mut out = Vec::new();
        assert!(input.read_exact(8, &mut out).unwrap());
        assert_eq!((out.as_slice(), input.place(0).line), (&b"one\ntwo\n"[..], 3));
    }
}
