//! `squall replay`: recorded requests, played back.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use squall_measure::Threshold;
use squall_plan::load::{ReplayDraft, ReplayFacts};
use squall_plan::units::DurationText;
use squall_plan::{LoadSpec, OptionProblem, Plan, PortablePlan, Problems, Text, What};
use squall_report::units::counted;
use squall_traffic::change::Changes;
use squall_traffic::play::{ConversationScript, Silence, Unfilled};
use squall_traffic::store::Recording;

pub(crate) use super::import::Playable;
use super::import::{as_played, playable, unreadable};
use super::summary;
use crate::args::{OutputArgs, ReplayArgs, RunArgs};
use crate::failure::{ExitCode, Failure};
use crate::patience::Patience;
use crate::{http, load, output};

/// Plays the recording, or with `--dry-run` shows what it holds.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    play(&args.file, &args.spec(), &args.output)
}

fn play(file: &Path, spec: &LoadSpec, shown: &OutputArgs) -> Result<ExitCode, Failure> {
    let draft = squall_plan::load::replay(spec, load::typed())?;
    if shown.dry_run {
        let read = as_played(file, &draft.reading.into());
        output::plain(&summary::of_file(file, &read)?)?;
        return Ok(ExitCode::Ok);
    }
    // A terminal sees how far it is.
    let patience = match std::io::stderr().is_terminal() {
        true => None,
        false => Patience::unless_quiet(&shown.faces, format!("reading {}", file.display())),
    };
    let (plan, _playable) = prepared(file, draft, shown.faces.quiet > 0)?;
    let plan = squall_engine::settled(plan)?;
    drop(patience);
    http::make(&plan, shown, None)
}

/// The plan, and the recording, which must live as long.
pub(crate) fn prepared(
    file: &Path,
    draft: ReplayDraft,
    is_quiet: bool,
) -> Result<(PortablePlan, Playable), Problems> {
    let of_file = |failure: Failure| OptionProblem::of("FILE", failure.message, failure.help);
    Changes::new(draft.changes(), 0).map_err(|error| {
        OptionProblem::whole(format!("cannot change requests: {}", error.reason), error.help)
    })?;
    let reading = draft.reading.clone().into();
    let playable = playable(file, &reading).map_err(of_file)?;
    let flaw =
        ConversationScript::find_flaw(&playable.recording).map_err(|error| of_file(damaged(&error)))?;
    if let Some(problem) = flaw {
        return Err(of_file(unreadable(file, &reading, &problem)).into());
    }
    let index = playable.recording.index();
    if index.record_count == 0 {
        let message = format!("`{}` contains no requests that can be sent", file.display());
        return Err(OptionProblem::of("FILE", message, "`--dry-run` shows what it contains").into());
    }
    let silence = silence(draft.max_gap, &playable.recording).map_err(of_file)?;
    let facts = ReplayFacts {
        recording: playable.path(),
        length: Duration::from_nanos(index.length_ns().saturating_sub(silence.cut_ns)),
        record_count: index.record_count,
        has_responses: index.has_responses,
    };
    let is_about_differing =
        |rule: &String| rule.parse::<Threshold>().is_ok_and(|rule| rule.metric() == "differing");
    let is_judged = draft.thresholds().iter().any(is_about_differing);
    let plan = draft.plan(file, facts, is_judged)?;
    if !is_quiet {
        if silence.count > 0 {
            let cut = DurationText(Duration::from_secs(silence.cut_ns / 1_000_000_000));
            output::note(&format!("{} cut by --max-gap, {cut} in total", counted(silence.count, "silence")));
        }
        tell_unfilled(&plan.plan, &playable.recording).map_err(of_file)?;
    }
    Ok((plan, playable))
}

/// What `--max-gap` cuts of the recording.
fn silence(max_gap: Option<Duration>, recording: &Recording) -> Result<Silence, Failure> {
    let mut silence = Silence::default();
    let Some(gap) = max_gap else { return Ok(silence) };
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
    let spec = LoadSpec { name: args.output.name.clone().unwrap_or_default(), ..spec_of(path) };
    play(path, &spec, &args.output)
}

/// What `squall run FILE` would do.
pub(crate) fn planned(path: &Path) -> Result<Plan, Failure> {
    let draft = squall_plan::load::replay(&spec_of(path), load::typed())?;
    Ok(prepared(path, draft, false)?.0.plan)
}

/// `squall replay FILE`.
pub(crate) fn spec_of(path: &Path) -> LoadSpec {
    LoadSpec {
        kind: Text::typed("replay"),
        arguments: vec![Text::typed(path.to_string_lossy())],
        is_whole: true,
        ..LoadSpec::default()
    }
}
