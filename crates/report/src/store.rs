//! Saved runs: one folder `<time>-<name>/` each, from which every face can be drawn again.
//!
//! | file           | holds                                                                        |
//! |----------------|------------------------------------------------------------------------------|
//! | `run.json`     | the whole [`RunRecord`], with its mergeable histograms: all else follows from it |
//! | `summary.json` | the JSON face                                                                |
//! | `summary.txt`  | the terminal's summary, without colours                                      |
//! | `plan.json`    | the plan as it was run, secrets masked                                       |
//! | `report.html`  | the page                                                                     |

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::Value;
use squall_measure::{RUN_RECORD_SCHEMA, RunRecord};
use squall_plan::files::{self, Access};
use squall_plan::{Plan, limits};

pub use crate::files::{PAGE_FILE, RECORD_FILE};
use crate::files::{PLAN_FILE, SUMMARY_FILE, TEXT_FILE};
use crate::style::Style;
use crate::{Error, Summary, json, page, terminal, time};

/// A place where runs are kept.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    /// `None`: all of them.
    keep_count: Option<usize>,
}

/// A run's folder, made before the run and filled after it. Dropped unfilled, it is removed again.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    is_filled: bool,
}

impl Store {
    /// A place that the user named with `--results`: every run stays.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), keep_count: None }
    }

    /// `$XDG_STATE_HOME/squall/runs`, else `~/.local/state/squall/runs`: the newest
    /// [`limits::SAVED_RUN_COUNT_MAX`] stay. `env` looks a variable up.
    pub fn of_user(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        // XDG Base Directory Specification: a relative path is invalid and to be ignored.
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state =
            absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        let root = state.ok_or(Error::UserNoStateDir)?.join("squall").join("runs");
        Ok(Self { root, keep_count: Some(limits::SAVED_RUN_COUNT_MAX) })
    }

    /// Makes the folder of a run that starts now and writes its plan, whose secrets the caller has masked.
    pub fn create(&self, started_at: SystemTime, plan: &Plan) -> Result<RunFolder, Error> {
        fs::create_dir_all(&self.root).map_err(|source| Error::write(&self.root, source))?;
        let name = format!("{}-{}", time::folder_stamp(started_at), sanitised(&plan.name));
        let folder = RunFolder { path: in_full(&self.create_free(&name)?), is_filled: false };
        folder.write(PLAN_FILE, &json::pretty(plan))?;
        Ok(folder)
    }

    /// Where studies of many runs are kept: `studies` next to the user's runs. Every one stays.
    pub fn studies_of_user(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let runs = Self::of_user(env)?;
        Ok(Self::at(&runs.root.with_file_name("studies")))
    }

    /// Makes the folder of a study that starts now.
    pub fn create_study(&self, started_at: SystemTime, kind: &str) -> Result<PathBuf, Error> {
        fs::create_dir_all(&self.root).map_err(|source| Error::write(&self.root, source))?;
        Ok(in_full(&self.create_free(&format!("{}-{}", time::folder_stamp(started_at), sanitised(kind)))?))
    }

    /// The newest run's folder.
    pub fn latest(&self) -> Result<PathBuf, Error> {
        self.list()?.pop().ok_or_else(|| Error::UserNoRuns { path: self.root.clone() })
    }

    /// Every run's folder, the oldest first. A place that does not exist yet holds none.
    pub fn list(&self) -> Result<Vec<PathBuf>, Error> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::read(&self.root, source)),
        };
        let is_run = |path: &PathBuf| is_run_name(path) && path.join(RECORD_FILE).is_file();
        let mut runs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_run).collect();
        runs.sort_by_cached_key(|path| sort_key(path));
        Ok(runs)
    }

    /// Removes the oldest runs beyond the number that is kept here. Only files of ours go; a folder that holds
    /// anything else stays with it.
    pub fn prune(&self) -> Result<(), Error> {
        let Some(keep_count) = self.keep_count else { return Ok(()) };
        let runs = self.list()?;
        for run in runs.iter().take(runs.len().saturating_sub(keep_count)) {
            remove_run(run);
        }
        Ok(())
    }

    /// The folder's name, or the name with the first free number behind it.
    fn create_free(&self, name: &str) -> Result<PathBuf, Error> {
        let mut path = self.root.join(name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => {
                    return created.map(|()| path.clone()).map_err(|source| Error::write(&path, source));
                }
            }
            path = self.root.join(format!("{name}-{number}"));
        }
        unreachable!("the loop counts on until a name is free")
    }
}

impl RunFolder {
    /// The folder of a run that is there, to be filled again.
    pub fn reopen(path: &Path) -> Self {
        Self { path: path.to_owned(), is_filled: true }
    }

    /// Where it is, in full.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the run. The record comes first: every other file can be drawn from it again.
    pub fn fill(&mut self, record: &RunRecord, summary: &Summary) -> Result<(), Error> {
        self.write(RECORD_FILE, &json::compact(record))?;
        self.is_filled = true;
        self.write(SUMMARY_FILE, &json::draw(summary))?;
        self.write(TEXT_FILE, &terminal::draw(summary, Some(&self.path), Style::FILE))?;
        self.write(PAGE_FILE, &page::draw(&page::of_run(record)))
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        files::replace(&path, content.as_bytes(), Access::Private)
            .map_err(|source| Error::write(&path, source))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.is_filled {
            remove_run(&self.path);
        }
    }
}

/// Reads a saved run: its folder, the `run.json` in it, or a place of runs, whose newest one is meant.
pub fn open(path: &Path) -> Result<RunRecord, Error> {
    let file = record_file(path)?;
    let content =
        files::read(&file, limits::RUN_FILE_BYTES_MAX).map_err(|source| Error::read(&file, source))?;
    parse(&content, &file)
}

/// The folders of all runs that a path means: its own, or every one in it.
pub fn runs_in(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() || path.join(RECORD_FILE).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let runs = Store::at(path).list()?;
    if runs.is_empty() { Err(Error::UserNotARun { path: path.to_owned() }) } else { Ok(runs) }
}

/// Saves a run that goes on in its folder, so that [`open`] finds it when the program is killed.
pub fn checkpoint(folder: &Path, record: &RunRecord) -> Result<(), Error> {
    let path = folder.join(RECORD_FILE);
    files::replace(&path, json::compact(record).as_bytes(), Access::Private)
        .map_err(|source| Error::write(&path, source))
}

/// Writes a text file whole or not at all.
pub fn write(path: &Path, content: &str) -> Result<(), Error> {
    files::replace(path, content.as_bytes(), Access::Shared).map_err(|source| Error::write(path, source))
}

/// The folder, in full, of the run that [`open`] reads, so that a face drawn again names it as the run itself did.
pub fn folder_of(path: &Path) -> Result<PathBuf, Error> {
    Ok(in_full(&record_file(path)?).parent().unwrap_or(path).to_owned())
}

fn record_file(path: &Path) -> Result<PathBuf, Error> {
    let file = path.join(RECORD_FILE);
    if !path.is_dir() {
        Ok(path.to_owned())
    } else if file.is_file() {
        Ok(file)
    } else {
        let latest = Store::at(path).latest().map_err(|_| Error::UserNotARun { path: path.to_owned() })?;
        Ok(latest.join(RECORD_FILE))
    }
}

/// A path that means the same from everywhere; as given where the system cannot tell.
fn in_full(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The schema is read separately first: the rest of a newer one may have any shape.
fn parse(content: &[u8], file: &Path) -> Result<RunRecord, Error> {
    #[derive(Deserialize)]
    struct Head {
        schema: u64,
    }
    let foreign = |error: serde_json::Error| Error::UserForeignFile {
        path: file.to_owned(),
        reason: error.to_string(),
    };
    let head: Head = serde_json::from_slice(content).map_err(foreign)?;
    if head.schema > u64::from(RUN_RECORD_SCHEMA) {
        return Err(Error::UserNewerSchema {
            path: file.to_owned(),
            found: head.schema,
            known: RUN_RECORD_SCHEMA,
        });
    }
    let Figures { total, series } = serde_json::from_slice(content).map_err(foreign)?;
    if has_wild_count(&total) || has_wild_count(&series) {
        let reason = "it has a count that no run reaches".to_owned();
        return Err(Error::UserForeignFile { path: file.to_owned(), reason });
    }
    serde_json::from_slice(content).map_err(foreign)
}

/// The parts of a record whose numbers are added up.
#[derive(Deserialize)]
struct Figures {
    #[serde(default)]
    total: Value,
    #[serde(default)]
    series: Value,
}

/// Sums of counts must not overflow, whatever a file says. Sums of nanoseconds are kept wide, and may be large.
fn has_wild_count(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_some_and(|count| count > COUNT_MAX),
        Value::Array(list) => list.iter().any(has_wild_count),
        Value::Object(map) => map.iter().any(|(name, value)| name != "sum_ns" && has_wild_count(value)),
        _ => false,
    }
}

/// A million requests a second would take three centuries, and a thousand such counts can still be added.
const COUNT_MAX: u64 = 1 << 53;

/// Removes the files of ours and then the folder, which the system refuses when it holds anything else. A run that
/// cannot be removed is no reason to bother the user at the end of another one.
fn remove_run(path: &Path) {
    for name in [SUMMARY_FILE, TEXT_FILE, PLAN_FILE, PAGE_FILE, RECORD_FILE] {
        let _ = fs::remove_file(path.join(name));
    }
    let _ = fs::remove_dir(path);
}

/// Letters, digits and `._-` as they are, anything else as `-`; no leading dot, and short enough for every file system.
fn sanitised(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(allowed).take(NAME_CHAR_COUNT_MAX).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "run".to_owned() } else { name.to_owned() }
}

/// Whether a path is a real folder whose name starts as ours do: `2026-08-30T141200Z-`.
fn is_run_name(path: &Path) -> bool {
    let shape = |(c, like): (char, char)| if like == '0' { c.is_ascii_digit() } else { c == like };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_ours = name.len() > NAME_SHAPE.len() && name.chars().zip(NAME_SHAPE.chars()).all(shape);
    is_ours && path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// By time, then by the moment the record was written: `-10` comes after `-9`, which their names deny.
fn sort_key(path: &Path) -> (String, Option<SystemTime>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = path.join(RECORD_FILE).metadata().and_then(|metadata| metadata.modified()).ok();
    (name.chars().take(NAME_SHAPE.len()).collect(), written)
}

const NAME_SHAPE: &str = "0000-00-00T000000Z-";

const NAME_CHAR_COUNT_MAX: usize = 60;
