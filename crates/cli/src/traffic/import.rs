//! Any recording to one that can be replayed at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use squall_plan::files::create_private;
use squall_traffic::read::environment;
use squall_traffic::store::{OpenStoreError, Recording, Writer};
use squall_traffic::{
    Format, ImportError, ImportOptions, Imported, OpenError, Piped, Problem, ReadOptions, Record, Sessions,
    Source, WriteError, import, open,
};

use super::progress::ReadProgress;
use super::reading::ReadArgs;
use crate::failure::Failure;
use crate::output;

/// A recording in the order of its times, with its index.
pub(crate) struct Playable {
    /// The recording.
    pub(super) recording: Recording,
    /// The temporary file that holds it lives as long as this.
    file: Option<File>,
}

impl Playable {
    /// The path by which this process finds it, and every other one of this user here.
    pub(super) fn path(&self) -> PathBuf {
        match &self.file {
            Some(file) => PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())),
            None => self.recording.path().to_owned(),
        }
    }

    /// The temporary file that holds it, which must live as long as its path is used.
    pub(crate) fn into_file(self) -> Option<File> {
        self.file
    }
}

/// Opens `path` as it is where it is a `.squall` file in order, and imports it into a temporary file otherwise.
pub(super) fn playable(path: &Path, args: &ReadArgs) -> Result<Playable, Failure> {
    // What is in a recording is read when it is played: only a copy can leave out what is damaged.
    if is_filtered(args) || args.skip_bad || args.format.is_some_and(|format| format != Format::Squall) {
        return imported(path, args);
    }
    match Recording::open(path) {
        Ok(recording) if recording.index().is_sorted || recording.index().record_count == 0 => {
            Ok(Playable { recording, file: None })
        }
        _ => imported(path, &as_played(path, args)),
    }
}

/// How a recording is read to be played: one whose recorder was killed has no index, and maybe half a record at its end.
pub(super) fn as_played(path: &Path, args: &ReadArgs) -> ReadArgs {
    let is_cut_off = matches!(Recording::open(path), Err(OpenStoreError::NoIndex { .. }));
    ReadArgs { skip_bad: args.skip_bad || is_cut_off, ..args.clone() }
}

fn imported(path: &Path, args: &ReadArgs) -> Result<Playable, Failure> {
    let os = |source| WriteError::Os { path: std::env::temp_dir(), source };
    let file = tempfile::tempfile().map_err(|error| unwritable(&os(error)))?;
    let place = Path::new("a temporary file");
    let writer = file.try_clone().map_err(os).and_then(|file| Writer::on_file(file, place));
    let writer = writer.map_err(|error| unwritable(&error))?;
    read_into(path, args, writer, &mut |_| {})?;
    let recording = file
        .try_clone()
        .map_err(|error| error.to_string())
        .and_then(|file| Recording::on_file(file, place).map_err(|error| error.to_string()))
        .map_err(|error| Failure::usage(error, "check the free space in the temporary folder (TMPDIR)"))?;
    Ok(Playable { recording, file: Some(file) })
}

/// Reads a recording into `writer`, in order; `change` sees each record first.
pub(super) fn read_into(
    path: &Path,
    args: &ReadArgs,
    writer: Writer,
    change: &mut dyn FnMut(&mut Record),
) -> Result<Imported, Failure> {
    let mut source = source(path, args)?;
    let mut progress = ReadProgress::new(path);
    let mut sessions = sessions(args);
    let mut keep = |record: &mut Record| {
        assign_session(&mut sessions, record, args);
        change(record);
        is_wanted(record, args)
    };
    let options = ImportOptions { skip_bad: args.skip_bad };
    let imported = import(source.as_mut(), writer, options, &mut keep, &mut |bytes| progress.update(bytes));
    drop(progress);
    let imported = imported.map_err(|error| match error {
        ImportError::Read(problem) => unreadable(path, args, &problem),
        ImportError::Write(error) => unwritable(&error),
    })?;
    tell(path, &imported);
    Ok(imported)
}

/// The sessions of a recording that is read.
pub(super) fn sessions(args: &ReadArgs) -> Sessions {
    Sessions::new(args.session_by.clone().unwrap_or_default())
}

/// Finds the session of a record: which requests are one client's, most formats do not say.
pub(super) fn assign_session(sessions: &mut Sessions, record: &mut Record, args: &ReadArgs) {
    if args.session_by.is_some() || record.session == 0 {
        sessions.assign(record, "");
    }
}

/// Opens a recording of any format.
pub(super) fn source(path: &Path, args: &ReadArgs) -> Result<Box<dyn Source>, Failure> {
    let options = ReadOptions {
        format: args.format,
        log_pattern: args.log_pattern.clone(),
        variables: variables(&args.env_file)?,
        saved_responses: args.saved_responses,
    };
    let source = open(path, &options);
    let source = source.map_err(|error: OpenError| Failure::usage(error.to_string(), error.help()))?;
    let Some(command) = &args.pipe else { return Ok(source) };
    let piped = Piped::start(source, command).map_err(|error| {
        Failure::usage(format!("cannot start `{command}`: {error}"), "--pipe takes a command of /bin/sh")
    })?;
    Ok(Box::new(piped))
}

/// The values in environment files; later files win.
fn variables(files: &[PathBuf]) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for path in files {
        let text = squall_plan::files::read_text(path, squall_plan::limits::PLAN_FILE_BYTES_MAX)
            .map_err(|error| Failure::file("--env-file", path, &error))?;
        let read = environment(&text).map_err(|reason| {
            Failure::usage(
                format!("cannot read `{}`: {reason}", path.display()),
                "--env-file takes an environment exported from Postman, or lines of NAME=VALUE",
            )
        })?;
        variables.extend(read);
    }
    Ok(variables)
}

/// Whether the filters let a record pass.
pub(super) fn is_wanted(record: &Record, args: &ReadArgs) -> bool {
    record.is_to(&args.only_host, &args.only_path)
}

fn is_filtered(args: &ReadArgs) -> bool {
    !args.only_host.is_empty()
        || !args.only_path.is_empty()
        || args.pipe.is_some()
        || args.session_by.is_some()
}

/// What was odd, left out or moved.
fn tell(path: &Path, imported: &Imported) {
    let name = path.display();
    for problem in imported.bad.iter().take(BAD_SHOWN_MAX) {
        output::note(&format!("{name}: {problem}"));
    }
    if imported.bad_count > 0 {
        output::note(&format!("{name}: {} records could not be read and are left out", imported.bad_count));
    }
    for (text, count, place) in imported.notes.iter() {
        output::note(&format!("{name}: {count} x {text} (first at {place})"));
    }
    if imported.out_of_order_count > 0 {
        output::note(&format!(
            "{name}: {} records were out of order and have been sorted",
            imported.out_of_order_count
        ));
    }
}

/// A record that cannot be read.
pub(super) fn unreadable(path: &Path, args: &ReadArgs, problem: &Problem) -> Failure {
    if args.pipe.as_ref().is_some_and(|command| problem.is_fatal && problem.reason.contains(command.as_str()))
    {
        let help = "it must answer each line of JSON with one line: test it in a shell first";
        return Failure::usage(format!("the command of --pipe failed: {problem}"), help);
    }
    let help = match problem.is_fatal {
        true if args.format.is_some() => "remove --format to detect the format from the content",
        true => "nothing after it can be read; --skip-bad uses the part before it",
        false => "--skip-bad skips such records and uses the rest",
    };
    Failure::usage(format!("cannot read `{}`: {problem}", path.display()), help)
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        unwritable(&error)
    }
}

/// A recording that cannot be written.
pub(super) fn unwritable(error: &WriteError) -> Failure {
    Failure::usage(error.to_string(), "check the path, its permissions and the space left")
}

/// An output for a text format: a file, or stdout.
pub(super) fn text_output(path: &Path) -> Result<Box<dyn Write>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdout().lock()));
    }
    let file = create_private(path)
        .map_err(|source| unwritable(&WriteError::Os { path: path.to_owned(), source }))?;
    Ok(Box::new(std::io::BufWriter::new(file)))
}

/// Problems shown with their reasons.
const BAD_SHOWN_MAX: usize = 10;
