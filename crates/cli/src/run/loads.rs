//! A load of a plan file: its keys are the options of the command of that name, read by the same table and the same code.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::CommandFactory;
use squall_fleet::{LoadWork, ScriptWork, tool};
use squall_measure::Rules;
use squall_plan::file::{LoadSpec, Place, Problem, Text};
use squall_plan::{OptionProblem, Plan, PortablePlan, nearest};

use crate::args::{Cli, Command, ReplayArgs, RunArgs, SCRIPT_FLAGS};
use crate::load::{self, script::ScriptReader};
use crate::traffic::replay;
use crate::usage::{GivenWord, GivenWords, is_argument};

/// A load, complete.
pub(crate) struct ReadLoad {
    pub(crate) work: LoadWork,
    /// What it does, unless a foreign tool does it.
    pub(crate) plan: Option<Plan>,
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
    let kind = load.kind.value.as_str();
    let words = words(load, folder, spoiled);
    let mut given = GivenWords::new(&["squall", command_of(kind)], words);
    given.is_reduced = !load.is_whole;
    given.leave_out(|word| spoiled.contains(&word.place).then_some(None));
    if kind != "tool" {
        let command = Cli::command();
        given.leave_out(|word| unknown_key(&command, kind, word.option.as_ref()?).map(Some));
    }
    given.leave_out(|word| unreadable(kind, word).map(Some));
    let read = if kind == "tool" { read_tool(&mut given) } else { read_command(&mut given, kind) };
    let problems = given.problems.into_iter().map(|(place, problem)| placed(load, place, problem));
    (read.filter(|_| !given.is_reduced), problems.collect())
}

/// A load as words. One whose name is spoiled is as spoiled as its name.
fn words(load: &LoadSpec, folder: &Path, spoiled: &[Place]) -> Vec<GivenWord> {
    let (command, kind) = (Cli::command(), load.kind.value.as_str());
    let word = |name: Option<&Text>, text: Option<&Text>| {
        let value = text.map(|text| text.value.clone());
        let option = name.map(|name| name.value.as_str());
        let file = value.as_ref().and_then(|value| file_of(&command, kind, option, value));
        let read = match file {
            Some((mark, path)) => format!("{mark}{}", folder.join(path).to_string_lossy()),
            None => value.clone().unwrap_or_default(),
        };
        let written = match (name, text) {
            (Some(name), Some(_)) => format!("--{}={read}", name.value),
            (Some(name), None) => format!("--{}", name.value),
            (None, _) => read.clone(),
        };
        let by_name = name.filter(|name| text.is_none() || spoiled.contains(&name.place));
        let place = by_name.or(text).map_or(load.kind.place, |text| text.place);
        GivenWord {
            option: name.map(|name| name.value.clone()),
            value,
            read,
            written: vec![written.into()],
            place,
        }
    };
    let mut words = Vec::new();
    for option in &load.options {
        words.extend(option.values.iter().map(|text| word(Some(&option.name), Some(text))));
        words.extend(option.values.is_empty().then(|| word(Some(&option.name), None)));
    }
    words.extend(load.arguments.iter().map(|text| word(None, Some(text))));
    words
}

/// Where a problem is to be reported, with the help that loads without an argument get.
fn placed(load: &LoadSpec, place: Option<Place>, problem: OptionProblem) -> Problem {
    let is_bare = load.arguments.is_empty() && problem.option.as_deref().is_none_or(is_argument);
    let own = load.options.iter().find(|option| Some(&option.name.value) == problem.option.as_ref());
    let by_name = own.filter(|_| problem.value.is_none()).map(|option| option.name.place);
    let help = argument_help(&load.kind.value).filter(|_| is_bare).map_or(problem.help, str::to_owned);
    Problem::at(by_name.or(place).unwrap_or(load.kind.place), problem.message, help)
}

/// Whether the argument of a load is a file.
pub(crate) fn takes_file(kind: &str) -> bool {
    matches!(kind, "replay" | "script")
}

fn read_tool(given: &mut GivenWords) -> Option<ReadLoad> {
    let (names, options): (Vec<_>, Vec<_>) = given.words.iter().partition(|word| word.option.is_none());
    let name = names.first().map(|word| word.read.clone()).unwrap_or_default();
    let options = options.iter().map(|word| (word.option.clone().unwrap_or_default(), word.read.clone()));
    let more = names.iter().skip(1).map(|word| (word.read.clone(), String::new()));
    let options: Vec<(String, String)> = options.chain(more).collect();
    let tool = given.noted(tool::read(&name, &options))?;
    let work = LoadWork::Tool(Box::new(tool));
    Some(ReadLoad { work, plan: None, sources: Vec::new(), recording: None, rules: Rules::default() })
}

fn read_command(given: &mut GivenWords, kind: &str) -> Option<ReadLoad> {
    let plan = match given.parsed()? {
        Command::Http(args) => load::portable(&args),
        Command::Handshake(args) => load::sessions::handshake_plan(&args),
        Command::Idle(args) => load::sessions::idle_plan(&args),
        Command::Replay(args) => return read_replay(given, &args),
        Command::Run(args) => return read_script(given, &args),
        _ => {
            let message = format!("`{kind}` is not yet supported as a load of a plan");
            Err(OptionProblem::whole(message, KINDS_HELP).into())
        }
    };
    given.noted(plan).map(ReadLoad::native)
}

fn read_replay(given: &mut GivenWords, args: &ReplayArgs) -> Option<ReadLoad> {
    // Reading it may take long: in vain, where something is wrong already.
    if given.is_reduced {
        return None;
    }
    let (plan, recording) = given.noted(replay::prepared(args, &args.output))?;
    Some(ReadLoad { recording: recording.into_file().map(Arc::new), ..ReadLoad::native(plan) })
}

fn read_script(given: &mut GivenWords, args: &RunArgs) -> Option<ReadLoad> {
    let mut settings = given.noted(load::script::settings(&args.script))?;
    // Of the environment it is relative to this folder; the machine that makes the load has another.
    settings.config = settings.config.map(|path| std::path::absolute(&path).unwrap_or(path));
    let path = args.files.first().filter(|_| !given.is_reduced)?;
    // What a script says as it is read is for the machines that run it.
    let read = load::script::read(path, None, &settings, ScriptReader::plain(Box::new(std::io::sink())));
    let read = read.and_then(|script| load::script::check(&script.plan).map(|()| script));
    let script =
        given.noted(read.map_err(|failure| OptionProblem::of("FILE", failure.message, failure.help)))?;
    Some(ReadLoad {
        work: LoadWork::Script(Box::new(ScriptWork { path: path.clone(), settings })),
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
            sources: Vec::new(),
            recording: None,
            rules: Rules::default(),
        }
    }
}

/// What is wrong with a key that is not one of the load's.
fn unknown_key(command: &clap::Command, kind: &str, name: &str) -> Option<OptionProblem> {
    let of_kind = command.find_subcommand(command_of(kind))?;
    if flag_of(command, kind, name).is_some() {
        return None;
    }
    let is_flag = of_kind.get_arguments().any(|flag| flag.get_long() == Some(name));
    Some(if is_flag { of_the_run(name) } else { unknown(name, kind, of_kind) })
}

/// What is wrong with a file that cannot be opened.
fn unreadable(kind: &str, word: &GivenWord) -> Option<OptionProblem> {
    let value = word.value.as_ref()?;
    let (mark, _) = file_of(&Cli::command(), kind, word.option.as_deref(), value)?;
    let path = word.read.strip_prefix(mark)?;
    let error = File::open(path).err()?;
    let message = format!("cannot read `{path}`: {error}");
    let option = word.option.as_deref().unwrap_or("FILE");
    Some(OptionProblem::of(option, message, "paths are relative to the plan's folder").about(value))
}

/// The flag that a key of a load stands for.
fn flag_of<'c>(command: &'c clap::Command, kind: &str, name: &str) -> Option<&'c clap::Arg> {
    let command = command.find_subcommand(command_of(kind))?;
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some(name))?;
    is_of_a_load(flag, kind).then_some(flag)
}

/// The command that makes a kind of load.
fn command_of(kind: &str) -> &str {
    if kind == "script" { "run" } else { kind }
}

/// `squall run` has flags about plans as well as those about scripts.
fn is_of_a_load(flag: &clap::Arg, kind: &str) -> bool {
    let is_of_the_run = flag.get_long().is_some_and(|name| NOT_OF_A_LOAD.contains(&name));
    !is_of_the_run && (kind != "script" || flag.get_help_heading() == Some(SCRIPT_FLAGS))
}

/// The file that a value names, after what marks it as one.
fn file_of<'v>(
    command: &clap::Command,
    kind: &str,
    option: Option<&str>,
    value: &'v str,
) -> Option<(&'static str, &'v str)> {
    match option {
        // Machines have another standard input: only what is read completely before can come from it.
        Some("urls") if value == "-" => None,
        Some("header") if kind == "http" => value.strip_prefix('@').map(|path| ("@", path)),
        Some(name) => is_file(command, kind, name).then_some(("", value)),
        None => takes_file(kind).then_some(("", value)),
    }
}

/// Whether the values of an option name files.
fn is_file(command: &clap::Command, kind: &str, name: &str) -> bool {
    let names_file = |flag: &clap::Arg| {
        flag.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "FILE"))
    };
    match kind {
        "tool" => name == "script",
        _ => flag_of(command, kind, name).is_some_and(names_file),
    }
}

fn of_the_run(name: &str) -> OptionProblem {
    let message = format!("`{name}` applies to the whole run, not to a load");
    let help = match name {
        "threshold" => "write `thresholds:`, in the load, in its step or for the whole plan",
        _ => "pass it to `squall run` as a flag",
    };
    OptionProblem::of(name, message, help)
}

fn unknown(name: &str, kind: &str, command: &clap::Command) -> OptionProblem {
    let flags = command.get_arguments().filter(|flag| is_of_a_load(flag, kind));
    let flags = flags.filter_map(clap::Arg::get_long).chain(OWN_KEYS.iter().copied());
    let help = match nearest(name, flags) {
        Some(nearest) => format!("a similar one exists: `{nearest}`"),
        None => {
            let command = command_of(kind);
            format!("keys of a load are the flags of `squall {command}`: see `squall {command} --help`")
        }
    };
    OptionProblem::of(name, format!("a load of kind `{kind}` has no key `{name}`"), help)
}

/// What to write where a load does not say which machines it is for.
fn argument_help(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "http" => "give the plan a `target`, or the load a URL, such as `http: http://localhost:8080/`",
        "handshake" => "give the plan a `target`, or the load an address, such as `handshake: localhost:443`",
        "idle" => "give the plan a `target`, or the load an address, such as `idle: localhost:8080`",
        "replay" => "name the recording, such as `replay: site.har`",
        _ => return None,
    })
}

const KINDS_HELP: &str = "loads of a plan are `http`, `script`, `handshake`, `idle`, `replay` and `tool`";

/// Keys of every load that are no flags.
const OWN_KEYS: &[&str] = &["name", "on", "per_machine", "start_after", "thresholds"];

/// Flags that say what becomes of a run.
const NOT_OF_A_LOAD: &[&str] = &[
    "name",
    "results",
    "no-save",
    "out",
    "json",
    "quiet",
    "color",
    "live",
    "web",
    "dry-run",
    "threshold",
    "help",
];
