//! `squall replay`: recorded requests, played back.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use squall_plan::units::DurationText;
use squall_plan::{OptionProblem, Plan, PortablePlan, Problems, What};
use squall_report::units::counted;
use squall_traffic::change::Changes;
use squall_traffic::play::{Silence, Unfilled};
use squall_traffic::store::Recording;

pub(crate) use super::import::Playable;
use super::import::{as_played, playable};
use super::summary;
use crate::args::{Command, OutputArgs, ReplayArgs, RunArgs};
use crate::failure::{ExitCode, Failure};
use crate::patience::Patience;
use crate::usage::{self, Request};
use crate::{http, load, output};

/// Plays the recording, or with `--dry-run` shows what it holds.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    play(args, &args.output)
}

fn play(args: &ReplayArgs, shown: &OutputArgs) -> Result<ExitCode, Failure> {
    if shown.dry_run {
        output::plain(&summary::of_file(&args.file, &as_played(&args.file, &args.read))?)?;
        return Ok(ExitCode::Ok);
    }
    // A terminal sees how far it is.
    let patience = match std::io::stderr().is_terminal() {
        true => None,
        false => Patience::unless_quiet(&shown.faces, format!("reading {}", args.file.display())),
    };
    let (plan, _playable) = prepared(args, shown)?;
    let plan = load::settled(plan)?;
    drop(patience);
    http::make(&plan, shown, None)
}

/// The plan, and the recording, which must live as long.
pub(crate) fn prepared(args: &ReplayArgs, shown: &OutputArgs) -> Result<(PortablePlan, Playable), Problems> {
    let of_file = |failure: Failure| OptionProblem::of("FILE", failure.message, failure.help);
    let playable = playable(&args.file, &args.read).map_err(of_file)?;
    if playable.recording.index().record_count == 0 {
        let message = format!("`{}` contains no requests that can be sent", args.file.display());
        return Err(OptionProblem::of("FILE", message, "`--dry-run` shows what it contains").into());
    }
    let silence = silence(args, &playable.recording).map_err(of_file)?;
    let plan = load::replay::plan(args, shown, playable.path(), playable.recording.index(), silence.cut_ns)?;
    if shown.faces.quiet == 0 {
        if silence.count > 0 {
            let cut = DurationText(Duration::from_secs(silence.cut_ns / 1_000_000_000));
            output::note(&format!("{} cut by --max-gap, {cut} in total", counted(silence.count, "silence")));
        }
        tell_unfilled(&plan.plan, &playable.recording).map_err(of_file)?;
    }
    Ok((plan, playable))
}

/// What `--max-gap` cuts of the recording.
fn silence(args: &ReplayArgs, recording: &Recording) -> Result<Silence, Failure> {
    let mut silence = Silence::default();
    let Some(gap) = args.play.max_gap else { return Ok(silence) };
    let mut cursor = recording.cursor(1 << 20);
    while let Some(frame) = cursor.peek().map_err(|error| damaged(&error))? {
        silence.pass(frame.time_ns, u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX));
        cursor.skip(frame.bytes());
    }
    Ok(silence)
}

fn damaged(error: &std::io::Error) -> Failure {
    Failure::usage(error.to_string(), "--skip-bad leaves out what cannot be read")
}

/// Says which placeholders of redacted secrets would go out, and how each is set; and how many bodies are not the recorded ones.
fn tell_unfilled(plan: &Plan, recording: &Recording) -> Result<(), Failure> {
    let lost_count = recording.index().lost_body_count;
    if lost_count > 0 {
        let bodies = counted(lost_count, "request body");
        output::note(&format!(
            "{bodies} were not recorded: zeros of the same length are sent (record with a larger --max-body)"
        ));
    }
    let Some(What::Replay(replay)) = plan.loads.first().map(|load| &load.what) else { return Ok(()) };
    let changes =
        Changes::new(&replay.changes, 0).map_err(|error| Failure::usage(error.reason, error.help))?;
    let unfilled = Unfilled::of(recording, replay.learns, &changes).map_err(|error| damaged(&error))?;
    if unfilled.is_empty() {
        return Ok(());
    }
    output::note("redacted values are sent unchanged, because no response provides the real ones:");
    for one in unfilled.iter().take(UNFILLED_SHOWN_MAX) {
        let count = counted(one.request_count, "request");
        output::note(&format!("  {}, in {count}: {}", one.place, one.flag));
    }
    if unfilled.len() > UNFILLED_SHOWN_MAX {
        output::note(&format!("  and {} more", unfilled.len() - UNFILLED_SHOWN_MAX));
    }
    Ok(())
}

/// Places of redacted values that are listed.
const UNFILLED_SHOWN_MAX: usize = 12;

/// `squall run FILE`: plays it as `squall replay FILE` does.
pub(crate) fn run_file(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    play(&file_args(path)?, &args.output)
}

/// What `squall run FILE` would do.
pub(crate) fn planned(path: &Path) -> Result<Plan, Failure> {
    let args = file_args(path)?;
    Ok(prepared(&args, &args.output)?.0.plan)
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
