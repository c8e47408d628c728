//! Finds the lines of a head or of a trailer section, and where it ends.
//!
//! Owns: how far the lines were read. The bytes belong to the caller, who passes all of the section's bytes each time.
//! Whether something is wrong depends on the bytes alone, never on the pieces in which they came: a line is judged when it is whole.

use super::DecodeError;
use super::field::parse_field;
use super::head::Head;
use super::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADER_COUNT_MAX};

/// The parser of one section.
#[derive(Debug)]
pub(super) struct Section {
    part: Part,
    /// What the lines said so far.
    pub(super) head: Head,
    /// Whether a field goes on in a next line (RFC 9112 5.2).
    pub(super) is_folded: bool,
    /// Fields read.
    pub(super) field_count: usize,
    /// Where the first line begins that was not read.
    line_start: usize,
    /// That line does not end before this.
    searched: usize,
    /// Whether that line has a NUL or a bare CR so far.
    is_dirty: bool,
}

/// What the next line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    StatusLine,
    Headers,
    Trailers,
}

impl Section {
    /// A response head.
    pub(super) const fn head() -> Self {
        Self::new(Part::StatusLine)
    }

    /// A trailer section.
    pub(super) const fn trailers() -> Self {
        Self::new(Part::Trailers)
    }

    const fn new(part: Part) -> Self {
        Self {
            part,
            head: Head::new(),
            is_folded: false,
            field_count: 0,
            line_start: 0,
            searched: 0,
            is_dirty: false,
        }
    }

    /// Reads on. `bytes` begins at the section's first byte and has more than the last time. Returns the section's length, empty
    /// line included, when it is whole.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, DecodeError> {
        let window = &bytes[..bytes.len().min(RESPONSE_HEAD_BYTES_MAX)];
        if self.part == Part::StatusLine && !self.read_status_line(window)? {
            return at_end_of(window);
        }
        while let Some(line) = self.next_field_line(window) {
            if line.is_empty() {
                return Ok(Some(self.line_start));
            }
            self.read_field(line)?;
        }
        at_end_of(window)
    }

    /// Whether the status line was whole.
    fn read_status_line(&mut self, window: &[u8]) -> Result<bool, DecodeError> {
        // What does not speak HTTP may never send a line feed, so this does not wait for one.
        check_http_name(window)?;
        let Some(end) = self.find_line_end(window) else { return Ok(false) };
        let line = self.take_line(window, end);
        self.head.read_status_line(line)?;
        if self.is_dirty {
            return Err(DecodeError::StatusLineInvalid);
        }
        self.part = Part::Headers;
        Ok(true)
    }

    /// The next whole line without its end, folds included. A field line is whole when the byte after it shows that no fold follows.
    fn next_field_line<'b>(&mut self, window: &'b [u8]) -> Option<&'b [u8]> {
        loop {
            let end = self.find_line_end(window)?;
            if end.index == self.line_start {
                return Some(self.take_line(window, end));
            }
            match window.get(end.next_line_start) {
                None => {
                    self.searched = end.index;
                    return None;
                }
                Some(b' ' | b'\t') => {
                    self.is_folded = true;
                    self.searched = end.next_line_start;
                }
                Some(_) => return Some(self.take_line(window, end)),
            }
        }
    }

    /// Finds the next CRLF or LF, and on the way what may not be in a line, in one pass.
    fn find_line_end(&mut self, window: &[u8]) -> Option<LineEnd> {
        loop {
            let Some(offset) = find_low_byte(&window[self.searched..]) else {
                self.searched = window.len();
                return None;
            };
            let index = self.searched + offset;
            self.searched = index;
            match (window[index], window.get(index + 1)) {
                (b'\n', _) => return Some(LineEnd { index, next_line_start: index + 1 }),
                (b'\r', Some(b'\n')) => return Some(LineEnd { index, next_line_start: index + 2 }),
                (b'\r', None) => return None,
                (b'\r' | 0, _) => self.is_dirty = true,
                _ => {}
            }
            self.searched += 1;
        }
    }

    fn take_line<'b>(&mut self, window: &'b [u8], end: LineEnd) -> &'b [u8] {
        let line = &window[self.line_start..end.index];
        self.line_start = end.next_line_start;
        self.searched = end.next_line_start;
        line
    }

    fn read_field(&mut self, line: &[u8]) -> Result<(), DecodeError> {
        if self.field_count == RESPONSE_HEADER_COUNT_MAX {
            return Err(DecodeError::TooManyFields { count_max: RESPONSE_HEADER_COUNT_MAX });
        }
        if self.field_count == 0 && matches!(line[0], b' ' | b'\t') {
            return Err(DecodeError::WhitespaceBeforeFields);
        }
        self.field_count += 1;
        if self.is_folded { self.note_field(&unfold(line)) } else { self.note_field(line) }
    }

    fn note_field(&mut self, line: &[u8]) -> Result<(), DecodeError> {
        let field = parse_field(line, self.field_count)?;
        // The name is a token, so the dirt is in the value.
        if self.is_dirty {
            return Err(DecodeError::FieldValueInvalid { number: self.field_count });
        }
        // RFC 9110 6.5.1: trailers never change how a message is framed.
        if self.part == Part::Headers {
            self.head.note_field(&field);
        }
        Ok(())
    }
}

/// Where a line ends.
#[derive(Debug, Clone, Copy)]
struct LineEnd {
    /// Place of its CRLF or LF.
    index: usize,
    next_line_start: usize,
}

/// The same bytes with each fold replaced by spaces, as RFC 9112 5.2 asks of user agents. The length stays.
pub(super) fn unfold(bytes: &[u8]) -> Vec<u8> {
    let mut unfolded = bytes.to_vec();
    for index in 1..bytes.len() {
        if bytes[index - 1] == b'\n' && matches!(bytes[index], b' ' | b'\t') {
            unfolded[index - 1] = b' ';
            if index > 1 && bytes[index - 2] == b'\r' {
                unfolded[index - 2] = b' ';
            }
        }
    }
    unfolded
}

/// The first byte below 0x0e: line ends and NUL are among them, and little else is common. Eight bytes at a time.
fn find_low_byte(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit set is that of the first such byte; a borrow can only set bits above it.
        let low = word.wrapping_sub(ONES * 0x0e) & !word & (ONES * 0x80);
        if low != 0 {
            return Some(index * 8 + low.trailing_zeros() as usize / 8);
        }
    }
    tail.iter().position(|&byte| byte < 0x0e).map(|index| words.len() * 8 + index)
}

fn check_http_name(bytes: &[u8]) -> Result<(), DecodeError> {
    for (index, (&byte, &expected)) in bytes.iter().zip(b"HTTP/").enumerate() {
        if byte != expected {
            return Err(DecodeError::NotHttp { index, byte });
        }
    }
    Ok(())
}

fn at_end_of(window: &[u8]) -> Result<Option<usize>, DecodeError> {
    if window.len() == RESPONSE_HEAD_BYTES_MAX {
        return Err(DecodeError::HeadTooLarge { bytes_max: RESPONSE_HEAD_BYTES_MAX });
    }
    Ok(None)
}
