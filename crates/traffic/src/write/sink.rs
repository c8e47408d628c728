//! What a writer of a format is, and what the writers share.

use std::io::{self, Write};

use squall_plan::printable::printable_json;

use crate::Record;

/// Takes records.
pub trait Sink {
    /// Writes one.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn write(&mut self, record: &Record) -> io::Result<()>;

    /// Writes what ends the file.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Passes JSON, or a script whose strings are JSON, on without what would drive a terminal: none of it can be outside of strings.
pub(super) struct Printable<W>(pub(super) W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(printable_json(text.to_owned()).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A time as RFC 3339.
pub fn iso(time_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time_ns))
        .map_or_else(|_| String::new(), |time| time.to_string())
}

/// Bytes as text; bytes that are no UTF-8 are read as Latin-1, so that none is lost.
pub(super) fn lossless(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}
