//! Writes an access log in the combined format: what it has no place for is lost.

use std::io::{self, Write};

use squall_plan::printable::is_unsafe;

use super::sink::{Sink, lossless};
use crate::Record;

/// The writer.
pub(super) struct AccessLog<W> {
    out: W,
}

impl<W: Write> AccessLog<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Sink for AccessLog<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let request = &record.request;
        let time = jiff::Timestamp::from_nanosecond(i128::from(record.time_ns)).map_err(io::Error::other)?;
        let time = jiff::fmt::strtime::format("%d/%b/%Y:%H:%M:%S +0000", time).map_err(io::Error::other)?;
        let field = |name: &str| {
            request.header(name).map_or_else(|| "-".to_owned(), |value| escaped(&lossless(value)))
        };
        let (status, bytes) =
            record.response.as_ref().map_or((0, 0), |response| (response.status, response.body_bytes));
        writeln!(
            self.out,
            "127.0.0.1 - - [{time}] \"{} {} {}\" {status:03} {bytes} \"{}\" \"{}\"",
            request.method,
            escaped(&request.target),
            request.version.text(),
            field("referer"),
            field("user-agent")
        )
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// As nginx writes it: what would drive a terminal is its bytes in hexadecimal.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '"' => shown.extend(['\\', c]),
            _ if is_unsafe(c) => {
                shown.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02X}")));
            }
            _ => shown.push(c),
        }
    }
    shown
}
