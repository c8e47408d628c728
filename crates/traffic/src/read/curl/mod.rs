//! curl command lines, as browsers copy them ("Copy as cURL", for both systems) and as people keep them in notes and scripts.
//!
//! They have no times: each request follows the one before it by a millisecond, so that their order is kept.

mod command;
mod options;
mod words;

use std::collections::VecDeque;

use squall_plan::shell::printf_bytes;

use self::command::Command;
use self::words::{Joiner, Shell};
use super::files::Files;
use super::{Notes, Source, time};
use crate::input::Input;
use crate::limits::RECORD_BYTES_MAX;
use crate::{Place, Problem, Record, Request};

/// The reader.
pub(super) struct Curl {
    input: Input,
    files: Files,
    notes: Notes,
    request_count: u64,
    /// A command may have several URLs.
    ready: VecDeque<Record>,
    is_at_end: bool,
}

impl Curl {
    pub(super) fn new(input: Input, files: Files) -> Self {
        Self {
            input,
            files,
            notes: Notes::default(),
            request_count: 0,
            ready: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// One command: a line, and those that belong to it. `None`: the line has no curl command.
    fn command(&mut self) -> Result<Option<(Shell, String, Place)>, Problem> {
        let place = self.input.place(self.request_count + 1);
        let first = self.line(place)?;
        let text = first.trim_start();
        let text = text.strip_prefix("$ ").or_else(|| text.strip_prefix("> ")).unwrap_or(text);
        let first_word = text.split([' ', '\t', '\\', '^']).next().unwrap_or_default();
        if !is_curl(first_word) && first_word != PRINTF {
            if !text.trim().is_empty() && !text.starts_with('#') {
                self.notes.add("lines that are no curl command left out", place);
            }
            return Ok(None);
        }
        let shell = Shell::of(text);
        let mut joiner = Joiner::new(shell);
        let mut goes_on = joiner.goes_on(text);
        let mut text = text.to_owned();
        while goes_on && !self.is_at_end && text.len() < RECORD_BYTES_MAX {
            let line = self.line(place)?;
            goes_on = joiner.goes_on(&line);
            text.push('\n');
            text.push_str(&line);
        }
        Ok(Some((shell, text, place)))
    }

    fn line(&mut self, place: Place) -> Result<String, Problem> {
        let mut line = Vec::new();
        self.is_at_end = !self.input.read_record(b"\n", &mut line, RECORD_BYTES_MAX, place)?;
        let mut line =
            String::from_utf8(line).map_err(|_| Problem::record(place, "the line is not UTF-8"))?;
        line.truncate(line.trim_end_matches('\r').len());
        Ok(line)
    }

    /// Makes the requests of a command.
    fn read(&mut self, shell: Shell, text: &str, place: Place) -> Result<(), String> {
        let line = shell.split(text).ok_or("a quote is not closed")?;
        if line.has_variables {
            self.notes.add("shell variables and substitutions: sent as they are written", place);
        }
        let mut requests = Vec::new();
        let mut piped = None;
        for words in &line.commands {
            match words.as_slice() {
                [name, format] if name == PRINTF => piped = printf_bytes(format),
                [name, rest @ ..] if is_curl(name) => {
                    requests.extend(self.requests(rest, piped.take().as_deref(), place)?);
                }
                _ => {}
            }
        }
        self.ready = requests.into_iter().map(|request| self.record(request, place)).collect();
        Ok(())
    }

    /// The requests of one curl. `piped`: what a `printf` writes to its standard input.
    fn requests(
        &mut self,
        words: &[String],
        piped: Option<&[u8]>,
        place: Place,
    ) -> Result<Vec<Request>, String> {
        let mut requests = Vec::new();
        for part in words.split(|word| word == "--next" || word == "-:") {
            let stdin_at = part.windows(2).position(|two| two == ["--data-binary", "@-"]);
            let (mut part, mut body) = (part.to_vec(), None);
            if let (Some(at), Some(piped)) = (stdin_at, piped) {
                part.drain(at..at + 2);
                body = Some(piped.to_vec());
            }
            let command = Command::read(&part, &mut self.notes, place)?;
            for mut request in command.requests(&self.files, &mut self.notes, place)? {
                request.body = body.clone().unwrap_or(request.body);
                requests.push(request);
            }
        }
        match requests.iter().find_map(Request::flaw) {
            Some(flaw) => Err(flaw.to_owned()),
            None => Ok(requests),
        }
    }

    fn record(&mut self, request: Request, place: Place) -> Record {
        self.request_count += 1;
        let time_ns = time::ANY_NS + self.request_count * 1_000_000;
        Record { time_ns, connection: 1, session: 1, request, response: None, place }
    }
}

/// What puts a body in front of a curl that could not be one of its words.
const PRINTF: &str = "printf";

fn is_curl(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("curl" | "curl.exe"))
}

impl Source for Curl {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while self.ready.is_empty() && !self.is_at_end {
            if let Some((shell, text, place)) = self.command()? {
                self.read(shell, &text, place).map_err(|reason| Problem::record(place, reason))?;
            }
        }
        Ok(self.ready.pop_front())
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

#[cfg(test)]
mod tests;
