//! A load of a plan file, complete: its keys are the options of its kind, read as flags are.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use squall_fleet::{LoadWork, ScriptWork, tool};
use squall_measure::Rules;
use squall_plan::file::Problem;
use squall_plan::load::{handshake, http, idle, replay as replay_draft, stream, websocket};
use squall_plan::options::{LoadType, ReadContext};
use squall_plan::{LoadSpec, OptionProblem, Place, Plan, PortablePlan, Problems};
use squall_script::script_settings;

use crate::load::check_value;
use crate::load::script::{self, ScriptReader};
use crate::traffic::replay;

/// A load, complete.
pub(crate) struct ReadLoad {
    pub(crate) work: LoadWork,
    /// What it does, unless a foreign tool does it.
    pub(crate) plan: Option<Plan>,
    /// How long it takes at most, where only its script says so.
    pub(crate) length_max: Option<Duration>,
    /// The files of its script.
    pub(crate) sources: Vec<PathBuf>,
    /// The temporary file that its recording is in.
    pub(crate) recording: Option<Arc<File>>,
    /// The thresholds of its script.
    pub(crate) rules: Rules,
}

/// Reads a load, or finds all that is wrong with it. `folder`: where its files are looked for. `spoiled`: places of the plan file with
/// problems that are known already.
pub(crate) fn read(load: &LoadSpec, folder: &Path, spoiled: &[Place]) -> (Option<ReadLoad>, Vec<Problem>) {
    let kind = LoadType::of(&load.kind.value);
    let (spec, unreadable) = load.in_folder(folder, |option, value| match kind {
        Some(kind) => kind.file_in(option, value),
        None => (option == Some("script")).then_some(value),
    });
    let spoiled: Vec<Place> =
        spoiled.iter().copied().chain(unreadable.iter().filter_map(|problem| problem.place)).collect();
    let context = ReadContext { spoiled: Some(&spoiled), check: &check_value };
    let read = match kind {
        Some(LoadType::Http) => http(&spec, context).map(ReadLoad::native),
        Some(LoadType::Stream) => stream(&spec, context).map(ReadLoad::native),
        Some(LoadType::WebSocket) => websocket(&spec, context).map(ReadLoad::native),
        Some(LoadType::Handshake) => handshake(&spec, context).map(ReadLoad::native),
        Some(LoadType::Idle) => idle(&spec, context).map(ReadLoad::native),
        Some(LoadType::Replay) => read_replay(&spec, context),
        Some(LoadType::Script) => read_script(&spec, context),
        Some(LoadType::Recording) | None => read_tool(&spec, &spoiled),
    };
    let (read, problems) = match read {
        Ok(read) => (Some(read), Vec::new()),
        Err(Problems(problems)) => (None, problems),
    };
    let problems = unreadable.into_iter().chain(problems);
    let placed = problems.map(|problem| Problem::at(load.place_of(&problem), problem.message, problem.help));
    (read, placed.collect())
}

fn read_tool(spec: &LoadSpec, spoiled: &[Place]) -> Result<ReadLoad, Problems> {
    let work = LoadWork::Tool(Box::new(tool::read(spec, spoiled)?));
    Ok(ReadLoad {
        work,
        plan: None,
        length_max: None,
        sources: Vec::new(),
        recording: None,
        rules: Rules::default(),
    })
}

fn read_replay(spec: &LoadSpec, context: ReadContext<'_>) -> Result<ReadLoad, Problems> {
    let draft = replay_draft(spec, context)?;
    let file = spec.arguments.first().map(|text| PathBuf::from(&text.value)).unwrap_or_default();
    let (plan, recording) = replay::prepared(&file, draft, false)?;
    Ok(ReadLoad { recording: recording.into_file().map(Arc::new), ..ReadLoad::native(plan) })
}

fn read_script(spec: &LoadSpec, context: ReadContext<'_>) -> Result<ReadLoad, Problems> {
    let settings = script::with_environment(script_settings(spec, context)?);
    let path = spec.arguments.first().map(|text| PathBuf::from(&text.value)).unwrap_or_default();
    // What a script says as it is read is for the machines that run it.
    let read = script::read(&path, None, &settings, ScriptReader::plain(Box::new(std::io::sink())));
    let read = read.and_then(|script| script::check(&script.plan).map(|()| script));
    let script = read.map_err(|failure| {
        let place = spec.arguments.first().map(|text| text.place);
        OptionProblem { place, ..OptionProblem::of("FILE", failure.message, failure.help) }
    })?;
    Ok(ReadLoad {
        length_max: Some(script.length_max()),
        work: LoadWork::Script(Box::new(ScriptWork { path, settings })),
        sources: script.sources(),
        plan: Some(script.plan),
        recording: None,
        rules: script.rules,
    })
}

impl ReadLoad {
    fn native(plan: PortablePlan) -> Self {
        Self {
            plan: Some(plan.plan.clone()),
            work: LoadWork::Plan(Box::new(plan)),
            length_max: None,
            sources: Vec::new(),
            recording: None,
            rules: Rules::default(),
        }
    }
}
