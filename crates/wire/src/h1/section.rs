//! Finds the lines of a head or of a trailer section, and where it ends.
//!
//! Owns: how far the lines were read. The bytes belong to the caller, who passes all of the section's bytes each time.
//! Whether something is wrong depends on the bytes alone, never on the pieces in which they came: a line is judged when it is whole.

use memchr::memchr;

use super::DecodeError;
use super::field::{parse_field, strip_cr};
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
    /// No line feed before this can end that line.
    searched: usize,
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
        Self { part, head: Head::new(), is_folded: false, field_count: 0, line_start: 0, searched: 0 }
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
        let Some(line_end) = self.find_line_feed(window) else { return Ok(false) };
        self.head.read_status_line(strip_cr(&window[..line_end]))?;
        self.part = Part::Headers;
        self.line_start = line_end + 1;
        Ok(true)
    }

    /// The next whole line without its end, folds included. A field line is whole when the byte after it shows that no fold follows.
    fn next_field_line<'b>(&mut self, window: &'b [u8]) -> Option<&'b [u8]> {
        loop {
            let line_end = self.find_line_feed(window)?;
            let line = strip_cr(&window[self.line_start..line_end]);
            match window.get(line_end + 1) {
                _ if line.is_empty() => {}
                None => {
                    self.searched = line_end;
                    return None;
                }
                Some(b' ' | b'\t') => {
                    self.is_folded = true;
                    continue;
                }
                Some(_) => {}
            }
            self.line_start = line_end + 1;
            return Some(line);
        }
    }

    fn find_line_feed(&mut self, window: &[u8]) -> Option<usize> {
        let found = memchr(b'\n', &window[self.searched..]).map(|index| self.searched + index);
        self.searched = found.map_or(window.len(), |line_end| line_end + 1);
        found
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
        // RFC 9110 6.5.1: trailers never change how a message is framed.
        if self.part == Part::Headers {
            self.head.note_field(&field);
        }
        Ok(())
    }
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
