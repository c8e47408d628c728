//! Runs a plan file, and `squall plan` and `squall new`, which only look at one or write one.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use squall_fleet::{
    FleetHook, FleetPlan, LoadWork, MachineView, Pools, Refusal, Steer, Trouble, Watcher, manifests,
};
use squall_measure::{PartKind, RunRecord, RunRecorder, Status, StoppedBy};
use squall_plan::file::Reach;
use squall_plan::options::plan_schema;
use squall_plan::rules::Source;
use squall_plan::units::DurationText;
use squall_plan::{LoadSpec, PortablePlan};
use squall_report::{Ask, MachineGlance};

use super::{Kind, Planned, plan_file};
use crate::args::{FleetArgs, NewArgs, OutputArgs, PlanCommand, RunArgs};
use crate::echo;
use crate::faces::Faces;
use crate::failure::{ExitCode, Failure};
use crate::http::{exit_code, unreachable};
use crate::patience::Patience;
use crate::view::View;
use crate::{output, signals};

/// Runs the plan in a file.
pub(crate) fn run(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    if plan_file::is_ptr(path) {
        return run_ptr(&args.files, None, args);
    }
    let doing = format!("reading {}, its scripts and recordings", path.display());
    let patience = Patience::unless_quiet(&args.output.faces, doing);
    let plan = plan_file::read(path, &args.plan, &args.kubernetes)?;
    drop(patience);
    run_fleet(plan, &args.fleet, &args.output)
}

/// Runs a load that was typed on pods.
pub(crate) fn run_on_pods(path: &Path, load: LoadSpec, args: &RunArgs) -> Result<ExitCode, Failure> {
    run_fleet(plan_file::of_load(path, load, &args.kubernetes)?, &args.fleet, &args.output)
}

/// What the plan in a file would do.
pub(crate) fn planned(path: &Path, args: &RunArgs) -> Result<Planned, Failure> {
    let plan = match plan_file::is_ptr(path) {
        true => plan_file::read_ptr(&args.files, (&args.ptr.reading, &[]), None)?,
        false => plan_file::read(path, &args.plan, &args.kubernetes)?,
    };
    Ok(Planned { has_tools: plan.loads.iter().any(|load| load.work.is_tool()), plan: plan.plan })
}

/// Runs PTR configuration files, all at the same time. `added`: a plan file without loads.
pub(crate) fn run_ptr(paths: &[PathBuf], added: Option<&Path>, args: &RunArgs) -> Result<ExitCode, Failure> {
    let added = added.map(|path| (path, &args.plan));
    run_fleet(
        plan_file::read_ptr(paths, (&args.ptr.reading, &args.ptr.monitor), added)?,
        &args.fleet,
        &args.output,
    )
}

/// Runs a plan on its machines.
pub(crate) fn run_fleet(
    mut plan: FleetPlan,
    fleet: &FleetArgs,
    args: &OutputArgs,
) -> Result<ExitCode, Failure> {
    plan.lost_after = fleet.lost_after.unwrap_or(plan.lost_after);
    plan.keeps_program &= !fleet.no_keep;
    plan.lost_count_allowed = fleet.allow_lost.unwrap_or(plan.lost_count_allowed);
    if let Some(name) = &args.name {
        plan.plan.name.clone_from(name);
    }
    if args.dry_run {
        output::plain(&shown(&plan))?;
        output::plain(&manifests(&plan))?;
        return Ok(ExitCode::Ok);
    }
    // However the run ends, nothing of it is left on a cluster. The result comes first: a deletion may take long.
    let (pools, steer) = (Pools::default(), Steer::default());
    let said = (!args.live).then_some("finishing open requests everywhere");
    let _watch = signals::steer(said, steered(&steer))?;
    let code = run_on((&plan, &pools), &steer, args);
    pools.remove(&steer, &mut |text| {
        if args.faces.quiet == 0 {
            output::note(text);
        }
    });
    code
}

/// Runs a plan, and reports and saves its result.
fn run_on(
    (plan, pools): (&FleetPlan, &Pools),
    steer: &Steer,
    args: &OutputArgs,
) -> Result<ExitCode, Failure> {
    let faces = Faces::open(args, &plan.whole())?;
    if args.faces.quiet == 0 && !args.live {
        output::note(&shown(plan));
    }
    let mut follower = Follower {
        view: View::open(args, &plan.plan.name, Box::new(steered(steer)))?,
        is_quiet: args.faces.quiet > 0 || args.live,
    };
    follower.view.save_in(faces.folder());
    let outcome = squall_fleet::run((plan, pools), steer, &mut follower);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Refusal::Troubles(troubles)) => return Err(refused(&troubles)),
        Err(Refusal::Stopped) => {
            drop(follower);
            output::note("stopped before anything was sent");
            return Ok(ExitCode::Aborted);
        }
    };
    follower.view.finish(&outcome.record);
    keep_raw(&outcome.raw, faces.folder(), args);
    faces.finish(&outcome.record)?;
    match outcome_code(&outcome.record) {
        ExitCode::TargetUnreachable => Err(unreachable(&outcome.record)),
        ExitCode::Aborted => Ok(ExitCode::Aborted),
        _ if outcome.lost_count > plan.lost_count_allowed => {
            Err(lost(outcome.lost_count, plan.machines.len()))
        }
        code => Ok(code),
    }
}

/// More machines were lost than may be: the figures are those of a smaller load.
fn lost(lost_count: usize, machine_count: usize) -> Failure {
    let were = if lost_count == 1 { "was" } else { "were" };
    Failure {
        code: ExitCode::Incomplete,
        message: format!("{lost_count} of {} {were} lost", counted(machine_count, "machine")),
        help: format!("the reasons are above; `--allow-lost {lost_count}` accepts such a run"),
    }
}

/// What the machines could not do.
fn outcome_code(record: &RunRecord) -> ExitCode {
    match record.stopped_by {
        StoppedBy::Aborted => ExitCode::Aborted,
        StoppedBy::Unreachable if record.total.ok() == 0 => ExitCode::TargetUnreachable,
        _ if is_incomplete(record) => ExitCode::Incomplete,
        _ if record.verdict.status == Status::Invalid => ExitCode::GeneratorOverloaded,
        _ => exit_code(record),
    }
}

/// Whether a step, or what belongs to it, could not be made.
fn is_incomplete(record: &RunRecord) -> bool {
    record.parts.iter().any(|part| part.kind == PartKind::Step && part.problem.is_some())
}

struct Follower<'a> {
    view: View<'a>,
    is_quiet: bool,
}

impl Watcher for Follower<'_> {
    fn note(&mut self, text: &str) {
        if !self.is_quiet {
            self.view.clear();
            output::note(text);
        }
    }

    fn wait(&mut self, doing: &str, recorder: &RunRecorder) {
        self.view.wait(doing, recorder);
    }

    fn phase(&mut self, phase: Option<&str>) {
        self.view.phase(phase);
    }

    fn look(&mut self, recorder: &RunRecorder, machines: &[MachineView<'_>]) {
        let glances = machines
            .iter()
            .map(|machine| MachineGlance::new(machine.name, machine.recorder, machine.problem));
        self.view.update(recorder, &glances.collect::<Vec<_>>());
    }
}

/// Does what the user asks for.
fn steered(steer: &Steer) -> impl FnMut(Ask) + Send + 'static {
    let steer = steer.clone();
    move |ask| match ask {
        Ask::Drain => steer.drain(),
        Ask::Abort => steer.abort(),
    }
}

/// Writes what foreign tools printed during the run.
fn keep_raw(raw: &[(String, String)], folder: Option<&Path>, args: &OutputArgs) {
    let Some(folder) = folder else { return };
    for (name, text) in raw {
        if let Err(error) = fs::write(folder.join(name), text) {
            output::warning(args.faces.color, &format!("cannot write `{name}`: {error}"));
        }
    }
}

fn refused(troubles: &[Trouble]) -> Failure {
    // Whatever else is wrong has to be fixed first.
    let is_target = troubles.iter().all(|trouble| trouble.is_target_unreachable);
    let code = if is_target { ExitCode::TargetUnreachable } else { ExitCode::Usage };
    if let [trouble] = troubles {
        return Failure { code, message: trouble.message.clone(), help: trouble.help.clone() };
    }
    let mut message = format!("{} problems, nothing was sent", troubles.len());
    for trouble in troubles {
        let _ = write!(message, "\n  {}\n      {}", trouble.message, trouble.help);
    }
    Failure { code, message, help: "fix these, then run again".to_owned() }
}

/// `squall plan`.
pub(crate) fn look(command: &PlanCommand) -> Result<ExitCode, Failure> {
    match command {
        PlanCommand::Check(args) => {
            let plan = plan_file::read_files(args)?;
            let (steps, loads, machines) = (plan.steps.len(), plan.loads.len(), plan.machines.len());
            let text = format!(
                "{} is valid: {}, {}, {}\n",
                listed(&args.files),
                counted(steps, "step"),
                counted(loads, "load"),
                counted(machines, "machine"),
            );
            output::plain(&text)?;
        }
        PlanCommand::Show(args) => output::plain(&shown(&plan_file::read_files(args)?))?,
        PlanCommand::Manifests(args) => {
            let text = manifests(&plan_file::read_files(args)?);
            if text.is_empty() {
                let message = format!("{} has neither pods nor monitors of a cluster", listed(&args.files));
                let help = "add one: `machines: { pods: { kubernetes: { replicas: 3 } } }`";
                return Err(Failure::usage(message, help));
            }
            output::plain(&text)?;
        }
        PlanCommand::Schema => output::result(&plan_schema())?,
    }
    Ok(ExitCode::Ok)
}

/// `squall new`.
pub(crate) fn new(args: &NewArgs) -> Result<ExitCode, Failure> {
    let is_script = args.file.as_deref().and_then(Kind::of) == Some(Kind::Script);
    let starter = if is_script { SCRIPT_STARTER } else { STARTER };
    let text = starter.replace("TARGET_URL", &args.target);
    let Some(path) = &args.file else {
        output::result(&text)?;
        return Ok(ExitCode::Ok);
    };
    let written = fs::OpenOptions::new().write(true).create_new(true).open(path);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::usage(message, "choose a new name in an existing folder")
    })?;
    let kind = if is_script { "k6 script" } else { "plan" };
    output::note(&format!("{} is a {kind}: `squall run {}`", path.display(), path.display()));
    Ok(ExitCode::Ok)
}

/// What would run where, and when.
fn shown(plan: &FleetPlan) -> String {
    let mut text = format!("plan        {}\n", plan.plan.name);
    for (machine_idx, machine) in plan.machines.iter().enumerate() {
        let makes_load = plan.loads.iter().any(|load| load.parts.iter().any(|(idx, _)| *idx == machine_idx));
        let _ =
            writeln!(text, "machine     {:<11} {}", machine.name.value, reached(&machine.reach, makes_load));
    }
    for step in &plan.steps {
        let _ = writeln!(text, "step        {}", step.name);
        hook_lines(&mut text, plan, "before", &step.before);
        for load in step.load_idxs.iter().map(|&idx| &plan.loads[idx]) {
            let _ = writeln!(text, "  load      {:<11} {}", load.name, load_line(plan, load));
            let _ = writeln!(text, "    on      {}", on(plan, load));
            if let Some(total) = total(plan, load) {
                let _ = writeln!(text, "    total   {total}");
            }
        }
        hook_lines(&mut text, plan, "after", &step.after);
        if !step.pause.is_zero() {
            let _ = writeln!(text, "  pause     {}", DurationText(step.pause));
        }
    }
    text
}

fn hook_lines(text: &mut String, plan: &FleetPlan, when: &str, hooks: &[FleetHook]) {
    for hook in hooks {
        let machines = hook.machine_idxs.iter().map(|&idx| plan.machines[idx].name.value.as_str());
        let machines = machines.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  {when:<9} {machines:<11} {}", hook.text);
    }
}

fn load_line(plan: &FleetPlan, load: &squall_fleet::FleetLoad) -> String {
    let described = plan.plan.loads.iter().find(|known| known.name == load.name);
    let what = match (described, &load.work) {
        (Some(described), _) => echo::load_line(described, &plan.plan),
        (None, LoadWork::Tool(tool)) => format!("tool {}", tool.shown()),
        (None, _) => String::new(),
    };
    if load.start_after.is_zero() {
        what
    } else {
        format!("{what}, {} after the step", DurationText(load.start_after))
    }
}

fn on(plan: &FleetPlan, load: &squall_fleet::FleetLoad) -> String {
    let share = |(machine_idx, segment): &(usize, squall_plan::Segment)| {
        let name = &plan.machines[*machine_idx].name.value;
        if segment.is_whole() { name.clone() } else { format!("{name} {}/{}", segment.width(), segment.of()) }
    };
    let names = load.parts.iter().map(share).collect::<Vec<_>>().join(", ");
    if load.copy_count() > 1 { format!("each of {names}") } else { names }
}

/// What all machines make together, where they are several.
fn total(plan: &FleetPlan, load: &squall_fleet::FleetLoad) -> Option<String> {
    let copies = load.copy_count();
    if load.parts.len() < 2 {
        return None;
    }
    let described = plan.plan.loads.iter().find(|known| known.name == load.name);
    let (total, nics) = match (described, &load.work) {
        (Some(described), LoadWork::Plan(work)) => (echo::amount(&described.times(copies)), interfaces(work)),
        (Some(described), _) => (echo::amount(&described.times(copies)), Vec::new()),
        (None, LoadWork::Tool(tool)) => (tool.asked(copies).total, Vec::new()),
        (None, _) => return None,
    };
    match (total.is_empty(), nics.is_empty()) {
        (true, _) => None,
        (false, true) => Some(total),
        (false, false) => Some(format!("{total}, for each address of {} there", nics.join(", "))),
    }
}

/// Interfaces for each of whose addresses there are idle connections: how many those are, their machine knows.
fn interfaces(plan: &PortablePlan) -> Vec<&str> {
    let names = plan.sources.iter().filter_map(|source| match source {
        Source::Interfaces(pattern) => Some(pattern.trim_end_matches('*')),
        Source::Addresses(_) => None,
    });
    names.filter(|_| plan.opening.is_some()).collect()
}

fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn reached(reach: &Reach, makes_load: bool) -> String {
    match reach {
        Reach::Local if makes_load => "this machine generates the load".to_owned(),
        Reach::Local => "this machine".to_owned(),
        Reach::Command(words) => words.join(" "),
        Reach::Ssh(spec) => {
            let jump = spec.jump.as_ref().map_or_else(String::new, |jump| format!(" through {jump}"));
            format!("ssh {}{jump}", spec.destination())
        }
        Reach::Pod { pool, index } => {
            let namespace =
                pool.namespace.as_ref().map_or_else(String::new, |name| format!(" in namespace {name}"));
            format!("pod {index} of {}{namespace}, image {}", pool.replicas, pool.image)
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A plan to start from.
const STARTER: &str = include_str!("starter.yaml");

/// What `squall new FILE.js` writes.
const SCRIPT_STARTER: &str = include_str!("starter.js");
