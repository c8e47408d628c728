//! Records through a program of the user's own: a line of JSON for each to its standard input, a line back from its standard output.
//!
//! Owns: the program and two threads that write to it and read from it. The last resort, for what no other change can do; it runs while a
//! recording is read, so that it costs the replay nothing.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::limits::{PIPE_COUNT_MAX, RECORD_BYTES_MAX};
use crate::read::http1;
use crate::{Field, Notes, Place, Problem, Record, Source};

/// The records of another source, as the program wants them.
pub struct Piped {
    source: Box<dyn Source>,
    command: String,
    child: Child,
    /// Lines for the program; `None` once there are no more.
    lines: Option<SyncSender<String>>,
    answers: Receiver<Vec<u8>>,
    /// Records that the program has not answered yet, in order.
    waiting: VecDeque<Record>,
    waiting_bytes: usize,
    answered_count: u64,
    has_ended: bool,
}

impl Piped {
    /// Starts the program, a command line for the shell.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn start(source: Box<dyn Source>, command: &str) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn()?;
        let (lines, to_write) = sync_channel(PIPE_COUNT_MAX);
        let (answer, answers) = channel();
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || write_lines(stdin, &to_write));
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_lines(stdout, &answer));
        }
        Ok(Self {
            source,
            command: command.to_owned(),
            child,
            lines: Some(lines),
            answers,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            answered_count: 0,
            has_ended: false,
        })
    }

    /// Gives the program one more record, if there is one.
    fn feed(&mut self) -> Result<(), Problem> {
        let Some(lines) = &self.lines else { return Ok(()) };
        match self.source.next()? {
            Some(record) => {
                // When the program is gone, its end shows in its answers.
                let _ = lines.send(line(&record));
                self.waiting_bytes += record.bytes();
                self.waiting.push_back(record);
            }
            None => self.lines = None,
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= PIPE_COUNT_MAX || self.waiting_bytes >= RECORD_BYTES_MAX
    }

    /// The oldest record as the program wants it; `None`: left out.
    fn take(&mut self, answer: &[u8]) -> Result<Option<Record>, Problem> {
        let Some(mut record) = self.waiting.pop_front() else { return Ok(None) };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(record.bytes());
        self.answered_count += 1;
        let place = record.place;
        let wrong = |reason: String| {
            Problem::record(
                place,
                format!("`{}` returned something that is not a request: {reason}", self.command),
            )
        };
        if answer.len() > RECORD_BYTES_MAX {
            return Err(wrong(format!("a line of more than {RECORD_BYTES_MAX} bytes")));
        }
        match serde_json::from_slice(answer).map_err(|error| wrong(error.to_string()))? {
            Value::Null => Ok(None),
            Value::Object(fields) => {
                change(&mut record, fields).map_err(wrong)?;
                Ok(Some(record))
            }
            _ => Err(wrong("neither an object nor null".to_owned())),
        }
    }

    /// The program writes no more.
    fn end(&mut self) -> Result<(), Problem> {
        self.has_ended = true;
        self.lines = None;
        let status = self.child.wait().map_err(|error| Problem::io(Place::default(), &error))?;
        match self.waiting.front() {
            None if status.success() => Ok(()),
            waiting => {
                let place = waiting.map_or_else(Place::default, |record| record.place);
                let answered = self.answered_count;
                let reason = format!("`{}` ended ({status}) after {answered} answers", self.command);
                Err(Problem::fatal(place, reason))
            }
        }
    }
}

impl Source for Piped {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while !self.has_ended {
            // What the program says before it was asked answers the first record: none is lost when it ends at once.
            if self.waiting.is_empty() && self.lines.is_some() {
                self.feed()?;
                continue;
            }
            let must_wait = self.lines.is_none() || self.is_full();
            let answer = match must_wait {
                true => self.answers.recv().map_err(|_| TryRecvError::Disconnected),
                false => self.answers.try_recv(),
            };
            match answer {
                Ok(answer) => {
                    if let Some(record) = self.take(&answer)? {
                        return Ok(Some(record));
                    }
                }
                Err(TryRecvError::Empty) => self.feed()?,
                Err(TryRecvError::Disconnected) => self.end()?,
            }
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        self.source.notes()
    }

    fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // A program that still runs is of no use any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_lines(stdin: ChildStdin, lines: &Receiver<String>) {
    let mut stdin = io::BufWriter::new(stdin);
    while let Ok(line) = lines.recv() {
        let mut written = stdin.write_all(line.as_bytes());
        // What is there already goes in the same write.
        while let (Ok(()), Ok(line)) = (&written, lines.try_recv()) {
            written = stdin.write_all(line.as_bytes());
        }
        if written.and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(stdout: ChildStdout, answers: &Sender<Vec<u8>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        // One byte more than allowed shows that it is too long.
        let read = (&mut stdout).take(RECORD_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) || answers.send(line).is_err() {
            return;
        }
    }
}

/// A record for the program.
fn line(record: &Record) -> String {
    let request = &record.request;
    let headers: Vec<[String; 2]> = request
        .headers
        .iter()
        .map(|field| [field.name.clone(), String::from_utf8_lossy(&field.value).into_owned()])
        .collect();
    let mut value = json!({
        "record": record.place.record,
        "time_ns": record.time_ns,
        "session": record.session,
        "method": request.method,
        "url": request.url(),
        "headers": headers,
        "status": record.response.as_ref().map(|response| response.status),
    });
    let (key, body) = match std::str::from_utf8(&request.body) {
        // Too large for a line: the program sees its length, and can replace it.
        _ if request.spooled.is_some() => ("body_bytes", request.body_bytes().into()),
        Ok(text) => ("body", text.into()),
        Err(_) => ("body_base64", STANDARD.encode(&request.body).into()),
    };
    value[key] = body;
    format!("{value}\n")
}

/// Takes over what the program says; what it leaves out stays.
fn change(record: &mut Record, fields: Map<String, Value>) -> Result<(), String> {
    let request = &mut record.request;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("method", Value::String(method)) if squall_plan::urls::is_token(&method) => {
                request.method = method;
            }
            ("url", Value::String(url)) => http1::set_url(request, &url)?,
            ("headers", value) => request.headers = headers(value)?,
            ("body", Value::String(text)) => request.set_body(text.into_bytes()),
            ("body_base64", Value::String(text)) => {
                let body = STANDARD.decode(text).map_err(|error| format!("body_base64: {error}"))?;
                request.set_body(body);
            }
            ("method" | "body" | "body_base64", value) => return Err(format!("`{name}` is {value}")),
            _ => {}
        }
    }
    request.drop_connection_fields();
    Ok(())
}

fn headers(value: Value) -> Result<Vec<Field>, String> {
    let pairs: Vec<[String; 2]> =
        serde_json::from_value(value).map_err(|error| format!("`headers`: {error}"))?;
    let is_bad = |[name, value]: &[String; 2]| {
        !squall_plan::urls::is_token(name) || value.contains(['\r', '\n', '\0'])
    };
    match pairs.iter().find(|pair| is_bad(pair)) {
        Some([name, _]) => Err(format!("the header `{}` cannot be sent", name.escape_debug())),
        None => Ok(pairs.into_iter().map(|[name, value]| Field::new(name, value)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Format, ReadOptions, open_bytes};

    /// The targets that come back, and the problem that ends it.
    fn piped(command: &str, count: usize) -> (Vec<String>, Option<Problem>) {
        let text: String = (1..=count).map(|nth| format!("curl http://x/{nth}\n")).collect();
        let source = open_bytes(Format::Curl, text.into(), &ReadOptions::default()).unwrap();
        let mut piped = Piped::start(source, command).unwrap();
        let mut targets = Vec::new();
        loop {
            match piped.next() {
                Ok(Some(record)) => targets.push(record.request.target),
                Ok(None) => return (targets, None),
                Err(problem) => return (targets, Some(problem)),
            }
        }
    }

    #[test]
    fn a_program_changes_records_in_order_however_it_buffers() {
        let (targets, problem) = piped("sed 's#http://x/#http://y/z/#'", 5000);
        assert_eq!((targets.len(), problem), (5000, None));
        assert_eq!((targets[0].as_str(), targets[4999].as_str()), ("/z/1", "/z/5000"));
        let (targets, problem) = piped("awk 'NR % 2 { print \"null\"; next } { print }'", 10);
        assert_eq!((targets.len(), problem), (5, None));
    }

    #[test]
    fn a_program_that_dies_or_talks_nonsense_is_named() {
        for (command, reason) in [
            ("head -n 2; exit 3", "ended (exit status: 3) after 2 answers"),
            ("cat >/dev/null", "after 0 answers"),
            ("/nonexistent", "exit status: 127"),
            ("echo '{'", "returned something that is not a request"),
            ("echo '{\"method\":\"a b\"}'", "`method` is"),
            ("printf '%s\\n' '{\"headers\":[[\"a\",\"b\\n\"]]}'", "cannot be sent"),
            ("echo '[]'", "neither an object nor null"),
        ] {
            let (_, problem) = piped(command, 5);
            let problem = problem.expect(command).to_string();
            assert!(problem.contains(reason) && problem.contains("record"), "{command}: {problem}");
        }
    }
}
