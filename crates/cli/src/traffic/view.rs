//! `squall view`: the requests of a recording as a table, or one of them in detail. Secrets are replaced unless asked for.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use squall_plan::printable::printable;
use squall_report::units::{self, counted};
use squall_traffic::redact::{Redactor, Rules};
use squall_traffic::write::iso;
use squall_traffic::{Field, Peer, Record, RecordedKind, RecordedMessage, WriteError};

use super::convert::each;
use super::import::{playable, text_output, unwritable};
use super::reading::ReadArgs;
use crate::args::{Statuses, ViewArgs};
use crate::failure::{ExitCode, Failure};

/// Shows what the recording has.
pub(crate) fn run(args: &ViewArgs) -> Result<ExitCode, Failure> {
    let playable = playable(&args.file, &ReadArgs::typed(&args.read)?)?;
    let mut out = text_output("-".as_ref())?;
    let redactor = (!args.show_secrets).then(|| Redactor::new(Rules::default()));
    let mut shown = Shown { args, first_ns: None, count: 0, is_found: false };
    let written = each(&playable.recording, |_, record| {
        let first_ns = *shown.first_ns.get_or_insert(record.time_ns);
        shown.count += 1;
        if !shown.is_wanted(record, first_ns) {
            return Ok(());
        }
        let mut record = record.clone();
        if let Some(redactor) = &redactor {
            redactor.redact(&mut record);
        }
        let offset = Duration::from_nanos(record.time_ns - first_ns);
        match args.record {
            Some(_) => detail(&mut out, &record, shown.count, offset),
            None if !std::mem::replace(&mut shown.is_found, true) => {
                writeln!(out, "{HEAD}")?;
                row(&mut out, &record, shown.count, offset)
            }
            None => row(&mut out, &record, shown.count, offset),
        }
    });
    match written.and_then(|()| out.flush()) {
        // A reader of stdout that has gone away has what it wanted.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(unwritable(&WriteError::Os { path: "-".into(), source: error }))
        }
        _ => shown.end(),
    }
}

/// What was looked through so far.
struct Shown<'a> {
    args: &'a ViewArgs,
    first_ns: Option<u64>,
    count: u64,
    /// Something was shown.
    is_found: bool,
}

impl Shown<'_> {
    fn is_wanted(&mut self, record: &Record, first_ns: u64) -> bool {
        let args = self.args;
        if let Some(wanted) = args.record {
            self.is_found |= wanted == self.count;
            return wanted == self.count;
        }
        let status = record.response.as_ref().map_or(0, |response| response.status);
        let offset = Duration::from_nanos(record.time_ns.saturating_sub(first_ns));
        let has_method = |method: &String| method.eq_ignore_ascii_case(&record.request.method);
        let has_status =
            |wanted: &Statuses| wanted.0.iter().any(|(first, last)| (*first..=*last).contains(&status));
        (args.method.is_empty() || args.method.iter().any(has_method))
            && args.status.as_ref().is_none_or(has_status)
            && args.from.is_none_or(|from| offset >= from)
            && args.until.is_none_or(|until| offset < until)
    }

    fn end(&self) -> Result<ExitCode, Failure> {
        match (self.args.record, self.is_found) {
            (Some(number), false) => Err(Failure::usage(
                format!("no request {number}: the recording has {}", self.count),
                "numbers are those in the first column of the table",
            )),
            _ => Ok(ExitCode::Ok),
        }
    }
}

const HEAD: &str = "     #        time  method  status     took      size  url";

fn row(out: &mut dyn Write, record: &Record, number: u64, offset: Duration) -> io::Result<()> {
    let (status, took, size) = match &record.response {
        Some(response) => {
            let took =
                if response.latency_ns > 0 { units::latency(response.latency_ns) } else { "-".to_owned() };
            (response.status.to_string(), took, units::bytes(response.body_bytes))
        }
        None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
    };
    let url = record.request.url();
    let (url, method) = (printable(&url), printable(&record.request.method));
    writeln!(
        out,
        "{number:>6} {:>10.3}s  {method:<7} {status:>6} {took:>8} {size:>9}  {url}",
        offset.as_secs_f64()
    )
}

fn detail(out: &mut dyn Write, record: &Record, number: u64, offset: Duration) -> io::Result<()> {
    let request = &record.request;
    let when = iso(record.time_ns);
    writeln!(out, "request {number}, {when}, {:.3} s after the first", offset.as_secs_f64())?;
    writeln!(out, "session {:016x}, connection {:016x}\n", record.session, record.connection)?;
    writeln!(out, "{} {} {}", request.method, printable(&request.url()), request.version.text())?;
    fields(out, &request.headers)?;
    match request.spooled {
        Some(_) => writeln!(out, "\n({} bytes of body)", request.body_bytes())?,
        None => body(out, &request.body)?,
    }
    let Some(response) = &record.response else { return writeln!(out, "\nno response") };
    let took =
        if response.latency_ns > 0 { units::latency(response.latency_ns) } else { "unknown time".to_owned() };
    writeln!(out, "\n{} {} after {took}", response.version.text(), response.status)?;
    fields(out, &response.headers)?;
    if response.is_web_socket() {
        return messages(out, &response.messages);
    }
    if !response.event_times_ns.is_empty() {
        writeln!(out, "\n({})", counted(response.event_times_ns.len() as u64, "event"))?;
    }
    match &response.body {
        Some(bytes) => body(out, bytes),
        None => writeln!(out, "\n({} bytes of body, not recorded)", response.body_bytes),
    }
}

fn fields(out: &mut dyn Write, fields: &[Field]) -> io::Result<()> {
    fields.iter().try_for_each(|field| {
        let value = String::from_utf8_lossy(&field.value);
        writeln!(out, "{}: {}", printable(&field.name), printable(&value))
    })
}

/// Each on a line: when, by whom, and its text as far as it is one, in bounds.
fn messages(out: &mut dyn Write, messages: &[RecordedMessage]) -> io::Result<()> {
    writeln!(out, "\n{}", counted(messages.len() as u64, "message"))?;
    for message in messages {
        let by = if message.by == Peer::Client { "client" } else { "server" };
        let at_s = Duration::from_nanos(message.at_ns).as_secs_f64();
        let text = match (message.kind, std::str::from_utf8(&message.bytes)) {
            (RecordedKind::Close, _) => match message.close_parts() {
                (Some(code), reason) => format!("(close {code} {})", printable(reason)).replace(" )", ")"),
                (None, _) => "(close)".to_owned(),
            },
            (_, Ok(text)) => message_text(text),
            (_, Err(_)) => format!("({} bytes of binary data)", message.bytes.len()),
        };
        writeln!(out, "{at_s:>10.3}s  {by}  {text}")?;
    }
    Ok(())
}

/// A message's text on one line, in bounds.
fn message_text(text: &str) -> String {
    let (shown, rest) = text.split_at(text.floor_char_boundary(MESSAGE_SHOWN_BYTES));
    let shown = printable(shown).replace('\n', "\\n");
    if rest.is_empty() { shown } else { format!("{shown} ({} more bytes)", rest.len()) }
}

/// Text as far as it is one, in bounds; JSON is indented.
fn body(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return writeln!(out, "\n({} bytes of binary data)", bytes.len());
    };
    let json: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let indented = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    let text = indented.as_deref().unwrap_or(text);
    let end = text.floor_char_boundary(BODY_SHOWN_BYTES);
    writeln!(out)?;
    for line in text[..end].lines() {
        writeln!(out, "{}", printable(line))?;
    }
    match end < text.len() {
        true => writeln!(out, "({} of {} bytes shown)", end, text.len()),
        false => Ok(()),
    }
}

/// Bytes of a message that are shown.
const MESSAGE_SHOWN_BYTES: usize = 1 << 10;

/// Bytes of a body that are shown.
const BODY_SHOWN_BYTES: usize = 64 << 10;
