//! `squall convert`: a recording in another format, or what it holds.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use squall_plan::printable::printable;
use squall_report::units::counted;
use squall_traffic::play::{Learned, Learner, Supplied, Suppliers};
use squall_traffic::redact::Redactor;
use squall_traffic::store::{Recording, Writer, replace};
use squall_traffic::write::{K6, SinkFormat, sink};
use squall_traffic::{Imported, Record, Redirect, Side, WriteError};

use super::import::{playable, read_into, text_output, unwritable};
use super::reading::ReadArgs;
use super::{redact, summary};
use crate::args::ConvertArgs;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::run::plan_file;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Squall,
    Foreign(SinkFormat),
}

impl Target {
    /// Whether it has a place for the messages of WebSockets.
    fn has_messages(self) -> bool {
        matches!(self, Self::Squall | Self::Foreign(SinkFormat::Har))
    }
}

/// Converts, or with `--dry-run` shows what the recording holds.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    if plan_file::is_ptr(&args.input) {
        return to_plan(args);
    }
    plan_file::refuse_ptr_flags(&args.input, &args.ptr)?;
    let (Some(path), false) = (&args.output, args.dry_run) else {
        output::plain(&summary::of_file(&args.input, &ReadArgs::typed(&args.read)?)?)?;
        return Ok(ExitCode::Ok);
    };
    if args.diff {
        return difference(&args.input, path, args);
    }
    let target = target(path, args.output_format.as_deref())?;
    let index = match target {
        Target::Squall => to_squall(args, path)?,
        Target::Foreign(format) => to_foreign(args, path, format)?,
    }
    .index;
    let written_count = match target.has_messages() {
        true => index.record_count,
        false => index.record_count - index.web_socket_count,
    };
    output::note(&format!("{} written to {}", counted(written_count, "request"), path.display()));
    Ok(ExitCode::Ok)
}

/// Shows what two recordings differ in. Like `diff`, it is no failure when they do.
fn difference(one: &Path, two: &Path, args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let side = |path: &Path| -> Result<Side, Failure> {
        let playable = playable(path, &ReadArgs::typed(&args.read)?)?;
        let mut side = Side::default();
        each(&playable.recording, |_, record| {
            side.add(record);
            Ok(())
        })
        .map_err(|source| unwritable(&WriteError::Os { path: path.to_owned(), source }))?;
        Ok(side)
    };
    let text = side(one)?.difference(&side(two)?);
    output::plain(text.as_deref().unwrap_or("no difference\n"))?;
    Ok(ExitCode::Ok)
}

/// The plan that a PTR file means.
fn to_plan(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let is_plan = |path: &Path| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let Some(path) = args.output.as_deref().filter(|path| is_plan(path)) else {
        let message = format!("`{}` is a PTR file: it can only be converted to a plan", args.input.display());
        return Err(Failure::usage(
            message,
            "use a file name ending in .yaml: `squall convert a.json plan.yaml`",
        ));
    };
    let text = plan_file::ptr_as_plan(&args.input, &plan_file::folder_of(path), &args.ptr)?;
    if args.dry_run {
        output::plain(&text)?;
        return Ok(ExitCode::Ok);
    }
    std::fs::write(path, text).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::usage(message, "choose another path, or make its folder writable")
    })?;
    output::note(&format!("{} is a plan: `squall run {}`", path.display(), path.display()));
    Ok(ExitCode::Ok)
}

fn target(path: &Path, named: Option<&str>) -> Result<Target, Failure> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let found = match named {
        Some("squall") => Some(Target::Squall),
        Some(named) => {
            SinkFormat::ALL.iter().find(|(_, name, _)| *name == named).map(|one| Target::Foreign(one.0))
        }
        None if name.ends_with(".squall") => Some(Target::Squall),
        None => {
            SinkFormat::ALL.iter().find(|(_, _, end)| name.ends_with(end)).map(|one| Target::Foreign(one.0))
        }
    };
    found.ok_or_else(|| match named {
        Some(named) => Failure::usage(
            format!("unknown output format `{named}`"),
            "formats are squall, har, gor, rrpair, log, curl and k6",
        ),
        None => Failure::usage(
            format!("cannot tell the format from the name `{}`", path.display()),
            "give the format with --as, or use the extension .squall, .har, .gor, .jsonl, .log, .sh or .js",
        ),
    })
}

fn to_squall(args: &ConvertArgs, path: &Path) -> Result<Imported, Failure> {
    if same_file(&args.input, path) {
        return Err(Failure::usage("input and output are the same file", "write to another file"));
    }
    if path.as_os_str() == "-" {
        return Err(Failure::usage("a .squall file cannot be written to stdout", "name a file"));
    }
    let (read, redactor) = (ReadArgs::typed(&args.read)?, redactor(args)?);
    let imported =
        replace(path, |writer| read_into(&args.input, &read, writer, &mut change(args, redactor.as_ref())))?;
    if let Some(redactor) = &redactor
        && !redact::is_swept(path, redactor)?
    {
        redact::rewrite(path, Some(redactor))?;
    }
    Ok(imported)
}

/// By way of a temporary recording, so that the result is in order.
fn to_foreign(args: &ConvertArgs, path: &Path, format: SinkFormat) -> Result<Imported, Failure> {
    if same_file(&args.input, path) {
        return Err(Failure::usage("input and output are the same file", "write to another file"));
    }
    if format == SinkFormat::Gor && path.as_os_str() == "-" && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a GoReplay file has bodies as they are, and a terminal would act on control characters in them",
            "name a file, or pipe the output to a program",
        ));
    }
    let read = ReadArgs::typed(&args.read)?;
    let place = Path::new("a temporary file");
    let os = |source| WriteError::Os { path: place.to_owned(), source };
    let file = tempfile::tempfile().map_err(|error| unwritable(&os(error)))?;
    let writer = file.try_clone().map_err(os).and_then(|file| Writer::on_file(file, place));
    let writer = writer.map_err(|error| unwritable(&error))?;
    let redactor = redactor(args)?;
    let imported = read_into(&args.input, &read, writer, &mut change(args, redactor.as_ref()))?;
    match write_foreign(file, path, format, redactor.as_ref()) {
        // A reader of stdout that has gone away has what it wanted.
        Err(error) if path.as_os_str() == "-" && error.kind() == ErrorKind::BrokenPipe => {}
        written => {
            written.map_err(|source| unwritable(&WriteError::Os { path: path.to_owned(), source }))??;
        }
    }
    Ok(imported)
}

fn write_foreign(
    file: File,
    path: &Path,
    format: SinkFormat,
    redactor: Option<&Redactor>,
) -> std::io::Result<Result<(), Failure>> {
    let recording = Recording::on_file(file, path).map_err(std::io::Error::other)?;
    let out = match text_output(path) {
        Ok(out) => out,
        Err(failure) => return Ok(Err(failure)),
    };
    let is_shown = path.as_os_str() == "-" && std::io::stdout().is_terminal();
    let out = if is_shown { Box::new(Shown(out)) } else { out };
    let mut sink = match format {
        SinkFormat::K6 => {
            let learned = learned(&recording, redactor)?;
            let supplied = supplied(&recording, redactor, &learned)?;
            note_supplied(&supplied);
            Box::new(K6::new(out, learned, supplied))
        }
        _ => sink(format, out),
    };
    let (mut lost_count, mut web_socket_count) = (0, 0);
    each(&recording, |_, record| {
        let record = swept(record, redactor);
        let record = record.loaded()?;
        if !Target::Foreign(format).has_messages() && record.opens_web_socket() {
            web_socket_count += 1;
            return Ok(());
        }
        lost_count += u64::from(record.request.lost_body_bytes > 0);
        sink.write(&record)
    })?;
    sink.finish()?;
    if web_socket_count > 0 {
        let opened = counted(web_socket_count, "WebSocket");
        output::note(&format!("{opened} left out of the output: only .squall and HAR have messages"));
    }
    if lost_count > 0 {
        let bodies = counted(lost_count, "request body");
        output::note(&format!(
            "{bodies} left out of the output: not recorded, or too large for any format but .squall"
        ));
    }
    Ok(Ok(()))
}

/// Commands on a terminal, which must not act on the control characters in them; files and pipes get them as they are.
struct Shown<W>(W);

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(printable(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// What later requests send of earlier responses.
fn learned(recording: &Recording, redactor: Option<&Redactor>) -> std::io::Result<Learned> {
    let mut learner = Learner::default();
    let mut ordinal = 0;
    each(recording, |row, record| {
        learner.add(ordinal, row, &swept(record, redactor));
        ordinal += 1;
        Ok(())
    })?;
    Ok(learner.finish())
}

/// Redacted values of requests that no response gives.
fn supplied(
    recording: &Recording,
    redactor: Option<&Redactor>,
    learned: &Learned,
) -> std::io::Result<Vec<Supplied>> {
    let mut suppliers = Suppliers::new(learned);
    each(recording, |_, record| {
        suppliers.add(&swept(record, redactor));
        Ok(())
    })?;
    Ok(suppliers.finish())
}

fn note_supplied(supplied: &[Supplied]) {
    if supplied.is_empty() {
        return;
    }
    let lines = supplied.iter().map(|one| format!("\n  {}: -e {}=VALUE", one.place, one.name));
    output::note(&format!(
        "the script takes redacted values from its environment, because no response gives them:{}",
        lines.collect::<String>()
    ));
}

/// The record without the secrets that were found after it was read.
fn swept<'a>(record: &'a Record, redactor: Option<&Redactor>) -> Cow<'a, Record> {
    let mut record = Cow::Borrowed(record);
    if let Some(redactor) = redactor {
        redactor.sweep(record.to_mut());
    }
    record
}

/// Calls `take` with each record, in order, and its row.
pub(super) fn each(
    recording: &Recording,
    mut take: impl FnMut(u16, &Record) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut cursor = recording.cursor(1 << 16);
    while let Some(frame) = cursor.peek()? {
        if let Some(record) = cursor.record(&frame)? {
            take(frame.row, &record)?;
        }
    }
    Ok(())
}

fn redactor(args: &ConvertArgs) -> Result<Option<Redactor>, Failure> {
    match args.mask || redact::has_rules(&args.redact) {
        true => Ok(Some(Redactor::new(redact::rules(&args.redact)?))),
        false => Ok(None),
    }
}

fn change<'a>(args: &ConvertArgs, redactor: Option<&'a Redactor>) -> impl FnMut(&mut Record) + 'a {
    let redirect = args.to.as_ref().map(Redirect::to);
    move |record| {
        if let Some(redirect) = &redirect {
            redirect.apply(&mut record.request);
        }
        if let Some(redactor) = redactor {
            redactor.redact(record);
        }
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
