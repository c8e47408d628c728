//! Writes curl commands, one a line.

use std::io::{self, Write};

use super::{Sink, lossless};
use crate::Record;

/// The writer.
pub(super) struct Curl<W> {
    out: W,
}

impl<W: Write> Curl<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Sink for Curl<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let request = &record.request;
        match request.method.as_str() {
            // With `-X HEAD` curl waits for a body that never comes.
            "HEAD" if request.body.is_empty() => self.out.write_all(b"curl -I")?,
            method => write!(self.out, "curl -X {method}")?,
        }
        write!(self.out, " {}", quoted(&request.url()))?;
        for field in &request.headers {
            let value = lossless(&field.value);
            write!(self.out, " -H {}", quoted(&format!("{}: {value}", field.name)))?;
        }
        if !request.body.is_empty() {
            write!(self.out, " --data-raw {}", quoted(&lossless(&request.body)))?;
        }
        self.out.write_all(b"\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// `'..'`, or `$'..'` where there is something that single quotes cannot hold on one line.
fn quoted(text: &str) -> String {
    if !text.contains(['\'', '\n', '\r', '\t', '\\']) && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    let mut out = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "'"
}
