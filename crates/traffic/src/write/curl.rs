//! Writes curl commands for any POSIX shell, each on its own line; a body of several lines goes on over them.

use std::io::{self, Write};

use squall_plan::shell::{printf_format, quoted};

use super::sink::{Sink, lossless};
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
        let is_piped = !can_be_argument(&request.body);
        if is_piped {
            write!(self.out, "printf {} | ", printf_format(&request.body))?;
        }
        match request.method.as_str() {
            // With `-X HEAD` curl waits for a body that never comes.
            "HEAD" if request.body.is_empty() => self.out.write_all(b"curl -I")?,
            method => write!(self.out, "curl -X {}", argument(method))?,
        }
        let url = request.url();
        // Without it curl makes several URLs of brackets and braces.
        if url.contains(['[', ']', '{', '}']) {
            self.out.write_all(b" -g")?;
        }
        write!(self.out, " {}", quoted(&url))?;
        for field in request.headers.iter().filter(|field| !field.name.starts_with(':')) {
            write!(self.out, " -H {}", quoted(&header(&field.name, &lossless(&field.value))))?;
        }
        match std::str::from_utf8(&request.body) {
            _ if is_piped => self.out.write_all(b" --data-binary @-")?,
            Ok(text) if !text.is_empty() => write!(self.out, " --data-raw {}", quoted(text))?,
            _ => {}
        }
        self.out.write_all(b"\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a body can be a word of a command line: text in which nothing moves a terminal's cursor, and which the kernel accepts
/// as one argument. Any other body reaches curl through a pipe from `printf`, which every shell has built in.
pub(super) fn can_be_argument(body: &[u8]) -> bool {
    let is_text = std::str::from_utf8(body)
        .is_ok_and(|text| !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
    is_text && body.len() < ARGUMENT_BYTES_MAX
}

/// Linux ends one argument at 128 KiB (`MAX_ARG_STRLEN`).
const ARGUMENT_BYTES_MAX: usize = 1 << 16;

/// A word that is left bare where no shell sees anything in it.
fn argument(word: &str) -> String {
    match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => word.to_owned(),
        false => quoted(word),
    }
}

/// curl reads `Name:` as the wish to leave the field out; `Name;` sends it empty.
fn header(name: &str, value: &str) -> String {
    if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") }
}
