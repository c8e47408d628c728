//! The files that `--out` and `--json FILE` ask for: opened before the first packet, written at the end.
//!
//! A path that cannot be written is an error before the run. A disk that fills up during the run costs the file, never
//! the summary on the terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use squall_measure::RunRecord;
use squall_plan::files::{Access, replace, temporary_next_to};
use squall_plan::mask::masked_text;

use crate::{Error, Summary, csv, json, junit, markdown, page};

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The whole [`Summary`] as JSON.
    Json,
    /// One line per second, per row, and for the total.
    Csv,
    /// The page.
    Html,
    /// The thresholds as test cases, for continuous integration.
    Junit,
    /// The summary for a CI job's page or an issue.
    Markdown,
}

/// One output that the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSpec {
    /// What is written.
    pub format: Format,
    /// Where; `None` is standard output.
    pub path: Option<PathBuf>,
}

/// Every output of a run, open.
#[derive(Debug, Default)]
pub struct Outputs {
    outputs: Vec<(Format, Sink)>,
}

/// Where an output goes.
#[derive(Debug)]
enum Sink {
    Stdout,
    /// Replaced in one step at the end; what it held before stays until then.
    Regular(PathBuf),
    /// A pipe, a device, or a file in a folder closed to us: cannot be replaced, so it is kept open.
    Open(PathBuf, File),
}

impl Format {
    const ALL: [(&'static str, Self); 5] = [
        ("json", Self::Json),
        ("csv", Self::Csv),
        ("html", Self::Html),
        ("junit", Self::Junit),
        ("markdown", Self::Markdown),
    ];

    /// The face's text. `summary` is the record's.
    pub fn draw(self, record: &RunRecord, summary: &Summary) -> String {
        match self {
            Self::Json => json::draw(summary),
            Self::Csv => csv::draw(summary),
            Self::Html => page::draw(&page::of_run(record)),
            Self::Junit => junit::draw(summary),
            Self::Markdown => markdown::draw(summary),
        }
    }
}

impl FromStr for OutputSpec {
    type Err = Error;

    /// Reads `FORMAT=FILE`, such as `json=run.json`; `-` means standard output.
    fn from_str(given: &str) -> Result<Self, Error> {
        let (name, path) = given.split_once('=').unwrap_or_default();
        let format = Format::ALL.into_iter().find(|(known, _)| *known == name);
        match format {
            Some((_, format)) if !path.is_empty() => Ok(Self::new(format, path)),
            _ => Err(Error::UserBadOutput { given: masked_text(given) }),
        }
    }
}

impl OutputSpec {
    /// An output of `format` at `path`, where `-` means standard output.
    pub fn new(format: Format, path: &str) -> Self {
        Self { format, path: (path != "-").then(|| PathBuf::from(path)) }
    }
}

impl Outputs {
    /// Opens every output. Nothing that a file held is lost yet.
    pub fn create(specs: &[OutputSpec]) -> Result<Self, Error> {
        let open = |spec: &OutputSpec| Ok((spec.format, Sink::open(spec.path.as_deref())?));
        Ok(Self { outputs: specs.iter().map(open).collect::<Result<_, Error>>()? })
    }

    /// Whether one of them is standard output, which then carries nothing else.
    pub fn uses_stdout(&self) -> bool {
        self.outputs.iter().any(|(_, sink)| matches!(sink, Sink::Stdout))
    }

    /// Writes every output, those of standard output to `stdout`. One that fails does not stop the others.
    pub fn write(&mut self, record: &RunRecord, summary: &Summary, stdout: &mut dyn Write) -> Vec<Error> {
        let write = |(format, sink): &mut (Format, Sink)| {
            sink.write(format.draw(record, summary).as_bytes(), stdout).err()
        };
        self.outputs.iter_mut().filter_map(write).collect()
    }
}

impl Sink {
    fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Self::Stdout) };
        let failed = |source| Error::write(path, source);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(Self::Open(path.to_owned(), file));
        }
        // Through links, so that the rename replaces the file and not the link to it.
        let target = fs::canonicalize(path).map_err(failed)?;
        // A folder closed to us takes no file next to it.
        let can_replace = temporary_next_to(&target, Access::Shared).is_ok();
        Ok(if can_replace { Self::Regular(target) } else { Self::Open(target, file) })
    }

    fn write(&mut self, content: &[u8], stdout: &mut dyn Write) -> Result<(), Error> {
        match self {
            Self::Stdout => stdout
                .write_all(content)
                .and_then(|()| stdout.flush())
                .map_err(|e| Error::write(Path::new("-"), e)),
            Self::Regular(path) => {
                replace(path, content, Access::Shared).map_err(|source| Error::write(path, source))
            }
            Self::Open(path, file) => write_open(file, content).map_err(|source| Error::write(path, source)),
        }
    }
}

/// Pipes and devices have no length to cut.
fn write_open(file: &mut File, content: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(content)
}
