//! Makes one run in a process of its own and reads its record.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use squall_measure::{Monitor, RunRecord};
use squall_report::store::{self, RunFolder, Store};

use super::watch::Watch;
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};

/// A run that was made.
pub(crate) struct Made {
    pub record: RunRecord,
    pub folder: PathBuf,
}

/// Says whether these arguments could be run, in the words that running them would have; nothing is sent.
pub(crate) fn check(args: &[String]) -> Result<(), Failure> {
    let output =
        command(args, &["--dry-run", "--no-save"])?.output().map_err(|error| cannot_start(&error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(told(ExitCode::Usage, &output.stderr))
}

/// The words in which a run failed.
fn told(code: ExitCode, stderr: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stderr);
    let part = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    Failure { code, message: part("error:"), help: part("help:") }
}

/// Runs squall with these arguments, saved below `place`, while `watched` processes are looked at.
///
/// A run that missed its thresholds or overloaded the generator is a run; one without a record is a failure, and so is the first
/// one below `place` when it cannot reach its target.
pub(crate) fn make(args: &[String], place: &Path, watched: &[String]) -> Result<Made, Failure> {
    let before = Store::at(place).latest().ok();
    let watch = Watch::start(watched);
    let results = place.to_string_lossy();
    let output = command(args, &["--quiet", "--quiet", "--results", &results])?
        .output()
        .map_err(|error| cannot_start(&error))?;
    let monitors = watch.stop();
    let folder = Store::at(place).latest().ok().filter(|folder| Some(folder) != before.as_ref());
    let is_unreachable = output.status.code() == Some(ExitCode::TargetUnreachable as i32);
    let folder = folder.ok_or_else(|| {
        let code = if is_unreachable { ExitCode::TargetUnreachable } else { ExitCode::Usage };
        let told = told(code, &output.stderr);
        if told.message.is_empty() {
            let message = format!("a run failed: `squall {}`", args.join(" "));
            return Failure::usage(message, "run it alone");
        }
        told
    })?;
    if before.is_none() && is_unreachable {
        return Err(told(ExitCode::TargetUnreachable, &output.stderr));
    }
    let mut record = store::open(&folder).map_err(|error| refused(&error))?;
    stop_when_asked(output.status.code())?;
    refuse_incomplete(output.status.code(), &record)?;
    add_monitors(&mut record, &folder, monitors)?;
    Ok(Made { record, folder })
}

/// A child that a signal ended was meant to be the last.
fn stop_when_asked(code: Option<i32>) -> Result<(), Failure> {
    match code {
        Some(code) if code != i32::from(ExitCode::Aborted as u8) && !super::files::was_interrupted() => {
            Ok(())
        }
        _ => Err(Failure {
            code: ExitCode::Aborted,
            message: "stopped".to_owned(),
            help: "the completed runs are saved in the folder of the study".to_owned(),
        }),
    }
}

/// A run whose hook failed did not measure what is compared.
fn refuse_incomplete(code: Option<i32>, record: &RunRecord) -> Result<(), Failure> {
    if code != Some(ExitCode::Incomplete as i32) {
        return Ok(());
    }
    let problem = record.parts.iter().find_map(|part| part.problem.as_deref()).unwrap_or("a step failed");
    Err(Failure {
        code: ExitCode::Incomplete,
        message: problem.to_owned(),
        help: "run that plan alone".to_owned(),
    })
}

/// What was watched from here belongs to the run as if it had watched itself.
fn add_monitors(record: &mut RunRecord, folder: &Path, monitors: Vec<(u64, Monitor)>) -> Result<(), Failure> {
    if monitors.is_empty() {
        return Ok(());
    }
    for (since_unix_ms, mut monitor) in monitors {
        let shift_s = (since_unix_ms as f64 - record.started_unix_ms as f64) / 1e3;
        monitor.samples.iter_mut().for_each(|sample| sample.0 += shift_s);
        monitor.samples.retain(|sample| sample.0 >= 0.0);
        record.monitors.push(monitor);
    }
    RunFolder::reopen(folder)
        .fill(record, &squall_report::Summary::from(&*record))
        .map_err(|error| refused(&error))
}

fn command(args: &[String], more: &[&str]) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| cannot_start(&error))?;
    let mut command = Command::new(program);
    // What follows a lone `--` would be taken for URLs, so our own flags come first.
    let (first, rest) = args.split_first().map_or((None, args), |(first, rest)| (Some(first), rest));
    command.args(first).args(more.iter().map(OsString::from)).args(rest);
    command.stdin(Stdio::null());
    Ok(command)
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot start squall: {error}"), "check this process's limits: `ulimit -a`")
}
