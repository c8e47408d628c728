//! Writers of foreign formats: each is a [`Sink`] that takes one record after the other.

mod access_log;
mod curl;
mod gor;
mod har;
mod k6;
mod rrpair;
mod sink;

use std::io::{self, Write};

pub use self::k6::K6;
use self::sink::Printable;
pub use self::sink::{Sink, iso};

use crate::Record;
use crate::play::Learned;

/// The formats that can be written, besides `.squall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkFormat {
    /// HAR 1.2.
    Har,
    /// GoReplay.
    Gor,
    /// Speedscale's pairs as JSON lines.
    Rrpair,
    /// Access log, combined.
    Log,
    /// curl commands.
    Curl,
    /// A k6 script; [`K6`] takes what was learned of the recording, too.
    K6,
}

impl SinkFormat {
    /// Every one, with its name and the ends of files that mean it.
    pub const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Har, "har", ".har"),
        (Self::Gor, "gor", ".gor"),
        (Self::Rrpair, "rrpair", ".jsonl"),
        (Self::Log, "log", ".log"),
        (Self::Curl, "curl", ".sh"),
        (Self::K6, "k6", ".js"),
    ];
}

/// A writer of this format. It refuses a request that no HTTP message can hold, which could become several lines of the output.
pub fn sink<'a>(format: SinkFormat, out: impl Write + 'a) -> Box<dyn Sink + 'a> {
    Box::new(Checked(unchecked(format, out)))
}

struct Checked<'a>(Box<dyn Sink + 'a>);

impl Sink for Checked<'_> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        match record.request.flaw() {
            Some(flaw) => Err(io::Error::new(io::ErrorKind::InvalidData, flaw)),
            None => self.0.write(record),
        }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish()
    }
}

fn unchecked<'a>(format: SinkFormat, out: impl Write + 'a) -> Box<dyn Sink + 'a> {
    match format {
        SinkFormat::Har => Box::new(har::Har::new(Printable(out))),
        SinkFormat::Gor => Box::new(gor::Gor::new(out)),
        SinkFormat::Rrpair => Box::new(rrpair::JsonLines::new(Printable(out))),
        SinkFormat::Log => Box::new(access_log::AccessLog::new(out)),
        SinkFormat::Curl => Box::new(curl::Curl::new(out)),
        SinkFormat::K6 => Box::new(K6::new(out, Learned::default(), Vec::new())),
    }
}

#[cfg(test)]
mod tests;
