//! `squall replay`: recorded requests, played back.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use squall_plan::Plan;

pub(crate) use super::import::Playable;
use super::import::{as_played, playable};
use super::summary;
use crate::args::{Command, OutputArgs, ReplayArgs, RunArgs};
use crate::failure::{ExitCode, Failure};
use crate::patience::Patience;
use crate::usage::{self, Request};
use crate::{build, http, output};

/// Plays the recording, or with `--dry-run` shows what it holds.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    play(args, &args.output)
}

fn play(args: &ReplayArgs, shown: &OutputArgs) -> Result<ExitCode, Failure> {
    if shown.dry_run {
        output::result(&summary::of_file(&args.file, &as_played(&args.file, &args.read))?)?;
        return Ok(ExitCode::Ok);
    }
    // A terminal sees how far it is.
    let patience = match std::io::stderr().is_terminal() {
        true => None,
        false => Patience::unless_quiet(&shown.faces, format!("reading {}", args.file.display())),
    };
    let (plan, _playable) = prepared(args, shown)?;
    drop(patience);
    http::make(&plan, shown, None)
}

/// The plan, and the recording, which must live as long.
pub(crate) fn prepared(args: &ReplayArgs, shown: &OutputArgs) -> Result<(Plan, Playable), Failure> {
    let playable = playable(&args.file, &args.read)?;
    if playable.recording.index().record_count == 0 {
        let message = format!("no requests in `{}` that could be sent", args.file.display());
        return Err(Failure::usage(message, "`--dry-run` shows what it holds"));
    }
    let plan = build::replay::plan(args, shown, playable.path(), playable.recording.index())?;
    Ok((plan, playable))
}

/// `squall run FILE`: plays it as `squall replay FILE` does.
pub(crate) fn run_file(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    play(&file_args(path)?, &args.output)
}

/// What `squall run FILE` would do.
pub(crate) fn planned(path: &Path) -> Result<Plan, Failure> {
    let args = file_args(path)?;
    prepared(&args, &args.output).map(|(plan, _)| plan)
}

/// The arguments of `squall replay FILE`.
fn file_args(path: &Path) -> Result<ReplayArgs, Failure> {
    let argv =
        ["squall", "replay", "--"].map(OsString::from).into_iter().chain([path.as_os_str().to_owned()]);
    match usage::parse(argv)? {
        Request::Do(Command::Replay(replay)) => Ok(*replay),
        _ => unreachable!("`replay` was asked for"),
    }
}
