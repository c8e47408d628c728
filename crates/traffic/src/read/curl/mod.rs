//! curl command lines, as browsers copy them ("Copy as cURL", for both systems) and as people keep them in notes and scripts.
//!
//! They have no times: each request follows the one before it by a millisecond, so that their order is kept.

mod command;
mod heredoc;
mod options;
mod words;

use std::collections::VecDeque;

use squall_plan::shell::printf_bytes;

use self::command::Command;
use self::words::{Joiner, Shell, Words};
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
        if !is_curl(first_word) && !PIPERS.contains(&first_word) {
            if !text.trim().is_empty() && !text.starts_with('#') {
                self.notes.add(NO_COMMAND, place);
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
        if !text.contains("curl") {
            self.notes.add(NO_COMMAND, place);
            return Ok(None);
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
        for Words { words, stdin } in &line.commands {
            let stdin = stdin.as_ref().map(|text| text.clone().into_bytes()).or_else(|| piped.take());
            match words.as_slice() {
                [name, rest @ ..] if is_curl(name) => requests.extend(self.requests(rest, stdin, place)?),
                _ => piped = self.output(words, stdin),
            }
        }
        self.ready = requests.into_iter().map(|request| self.record(request, place)).collect();
        Ok(())
    }

    /// What a command writes that may stand in front of curl; `None`: not known.
    fn output(&self, words: &[String], stdin: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["printf", format] => printf_bytes(format),
            ["echo", "-n", words @ ..] => Some(words.join(" ").into_bytes()),
            ["echo", words @ ..] => Some((words.join(" ") + "\n").into_bytes()),
            ["cat"] | ["cat", "-"] => stdin,
            ["cat", name] => self.files.read(name).ok(),
            _ => None,
        }
    }

    /// The requests of one curl with this standard input.
    fn requests(
        &mut self,
        words: &[String],
        stdin: Option<Vec<u8>>,
        place: Place,
    ) -> Result<Vec<Request>, String> {
        let files = self.files.with_stdin(stdin);
        let mut requests = Vec::new();
        for part in words.split(|word| word == "--next" || word == "-:") {
            let command = Command::read(part, &mut self.notes, place)?;
            requests.extend(command.requests(&files, &mut self.notes, place)?);
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

/// Commands whose output may be a body that could not be one of curl's words.
const PIPERS: [&str; 3] = ["printf", "echo", "cat"];

const NO_COMMAND: &str = "lines that are no curl command left out";

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
