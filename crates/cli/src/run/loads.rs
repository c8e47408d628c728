//! A load of a plan file is a command of this program: its keys are that command's flags, read by the same code.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use squall_fleet::{Word, tool};
use squall_plan::file::{LoadOption, LoadSpec, Problem, Text};
use squall_plan::{Plan, nearest};

use super::script::{self, LoadScript};
use crate::args::{Cli, Command};
use crate::build;
use crate::failure::Failure;
use crate::traffic::replay::{self, Playable};
use crate::usage::{self, Request};

/// A load as its command reads it.
pub(crate) struct LoadPlan {
    pub(crate) plan: Plan,
    /// What it plays, where that is a recording: it lives as long.
    _recording: Option<Playable>,
    /// The script, where it is one.
    pub(crate) script: Option<LoadScript>,
}

impl LoadPlan {
    /// A script's files, as one word: they keep their places beside each other.
    pub(crate) fn with_tree(&self, words: Vec<Word>) -> Vec<Word> {
        let Some(script) = &self.script else { return words };
        let root = |path: &Path| path.parent().map_or_else(PathBuf::new, Path::to_owned);
        let common = |a: PathBuf, b: &PathBuf| a.ancestors().find(|a| b.starts_with(a)).map(Path::to_owned);
        let tree = |entry: PathBuf| {
            let roots = script.sources.iter().try_fold(root(&entry), common);
            Word::Tree { root: roots.unwrap_or_default(), entry, files: script.sources.clone() }
        };
        let entry = |word| match word {
            Word::File(path) if script.sources.contains(&path) => tree(path),
            word => word,
        };
        words.into_iter().map(entry).collect()
    }
}

/// The plan that a command's words describe. `said`: where a script's console speaks.
pub(crate) fn plan(kind: &str, words: &[String], said: Box<dyn Write + Send>) -> Result<LoadPlan, Failure> {
    let alone = |plan| LoadPlan { plan, _recording: None, script: None };
    let argv =
        ["squall", command_of(kind)].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from);
    match usage::parse(argv)? {
        Request::Do(Command::Http(args)) => build::plan(&args).map(alone),
        Request::Do(Command::Handshake(args)) => build::sessions::handshake_plan(&args).map(alone),
        Request::Do(Command::Idle(args)) => build::sessions::idle_plan(&args).map(alone),
        Request::Do(Command::Replay(args)) => {
            let (plan, recording) = replay::prepared(&args, &args.output)?;
            Ok(LoadPlan { plan, _recording: Some(recording), script: None })
        }
        Request::Do(Command::Run(args)) if kind == "script" => {
            let script = script::load(&args, said)?;
            Ok(LoadPlan { plan: script.plan.clone(), _recording: None, script: Some(script) })
        }
        _ => Err(Failure::usage(format!("`{kind}` is not yet supported as a load of a plan"), KINDS_HELP)),
    }
}

/// The words of a load: its options as flags, then its arguments. What is no key of such a load is left out. `folder`: where files
/// of the plan are looked for.
pub(crate) fn words(load: &LoadSpec, folder: &Path) -> Vec<Word> {
    if load.kind.value == "tool" {
        return tool_words(load, folder);
    }
    let command = Cli::command();
    let mut words = Vec::new();
    for option in &load.options {
        if let Some(flag) = flag_of(&command, load, option) {
            push(option, is_file(flag), folder, &mut words);
        }
    }
    let word = |text: &Text| match takes_file(&load.kind.value) {
        true => Word::File(folder.join(&text.value)),
        false => Word::Text(text.value.clone()),
    };
    words.extend(load.arguments.iter().map(word));
    words
}

/// The keys of a load that it does not have.
pub(crate) fn unknown_keys(load: &LoadSpec) -> Vec<Problem> {
    let command = Cli::command();
    let Some(of_kind) = command.find_subcommand(command_of(&load.kind.value)) else { return Vec::new() };
    let problem = |option: &LoadOption| {
        if flag_of(&command, load, option).is_some() {
            return None;
        }
        let is_flag = of_kind.get_arguments().any(|flag| flag.get_long() == Some(&option.name.value));
        Some(if is_flag { of_the_run(option) } else { unknown(option, &load.kind.value, of_kind) })
    };
    load.options.iter().filter_map(problem).collect()
}

/// The texts of a load that name files.
pub(crate) fn files(load: &LoadSpec) -> Vec<&Text> {
    let command = Cli::command();
    let is_of_a_file = |option: &&LoadOption| match load.kind.value.as_str() {
        "tool" => FILES_OF_TOOLS.contains(&option.name.value.as_str()),
        _ => flag_of(&command, load, option).is_some_and(is_file),
    };
    let of_options = load.options.iter().filter(is_of_a_file).flat_map(|option| &option.values);
    let of_arguments = load.arguments.iter().filter(|_| takes_file(&load.kind.value));
    of_options.filter(|text| text.value != "-").chain(of_arguments).collect()
}

/// Says what a tool does not understand.
pub(crate) fn check_tool(load: &LoadSpec, folder: &Path) -> Result<(), Failure> {
    let mut words = joined(&texts(&tool_words(load, folder)));
    if load.arguments.is_empty() {
        // The tool's name comes first: an option must not be taken for it.
        words.insert(0, String::new());
    }
    tool::check(&words).map_err(|trouble| Failure::usage(trouble.message, trouble.help))
}

/// The flag that a key of a load stands for.
fn flag_of<'c>(command: &'c clap::Command, load: &LoadSpec, option: &LoadOption) -> Option<&'c clap::Arg> {
    let command = command.find_subcommand(command_of(&load.kind.value))?;
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some(&option.name.value))?;
    is_of_a_load(flag, &load.kind.value).then_some(flag)
}

/// Whether the argument of a load is a file.
pub(crate) fn takes_file(kind: &str) -> bool {
    matches!(kind, "replay" | "script")
}

/// The command that makes a kind of load.
fn command_of(kind: &str) -> &str {
    if kind == "script" { "run" } else { kind }
}

/// `squall run` has flags about plans as well as those about scripts.
fn is_of_a_load(flag: &clap::Arg, kind: &str) -> bool {
    let is_of_the_run = flag.get_long().is_some_and(|name| NOT_OF_A_LOAD.contains(&name));
    !is_of_the_run && (kind != "script" || flag.get_help_heading() == Some(SCRIPT_HEADING))
}

/// A tool's name, then its keys and values as `--key=value`; its script is a file.
fn tool_words(load: &LoadSpec, folder: &Path) -> Vec<Word> {
    let mut words: Vec<Word> = load.arguments.iter().map(|text| Word::Text(text.value.clone())).collect();
    for option in &load.options {
        push(option, FILES_OF_TOOLS.contains(&option.name.value.as_str()), folder, &mut words);
    }
    words
}

/// A file's path is a word of its own, because it is another one elsewhere: here it becomes a part of its flag again.
pub(crate) fn joined(words: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let is_flag = |flag: &String| FILES_OF_TOOLS.iter().any(|name| flag.strip_prefix("--") == Some(name));
        match joined.last_mut().filter(|flag| is_flag(flag)) {
            Some(flag) => flag.push_str(&format!("={word}")),
            None => joined.push(word.clone()),
        }
    }
    joined
}

fn push(option: &LoadOption, is_file: bool, folder: &Path, words: &mut Vec<Word>) {
    let name = format!("--{}", option.name.value);
    if option.values.is_empty() {
        words.push(Word::Text(name));
        return;
    }
    for text in &option.values {
        if is_file && text.value != "-" {
            words.extend([Word::Text(name.clone()), Word::File(folder.join(&text.value))]);
        } else {
            words.push(Word::Text(format!("{name}={}", text.value)));
        }
    }
}

fn is_file(flag: &clap::Arg) -> bool {
    flag.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "FILE"))
}

fn of_the_run(option: &LoadOption) -> Problem {
    let name = option.name.value.as_str();
    let message = format!("`{name}` applies to the whole run, not to a load");
    let help = match name {
        "threshold" => "write `thresholds:`, in the load, in its step or for the whole plan",
        _ => "pass it to `squall run` as a flag",
    };
    Problem::at(option.name.place, message, help)
}

fn unknown(option: &LoadOption, kind: &str, command: &clap::Command) -> Problem {
    let name = option.name.value.as_str();
    let flags = command.get_arguments().filter(|flag| is_of_a_load(flag, kind));
    let flags = flags.filter_map(clap::Arg::get_long).chain(OWN_KEYS.iter().copied());
    let help = match nearest(name, flags) {
        Some(nearest) => format!("a similar one exists: `{nearest}`"),
        None => {
            let command = command_of(kind);
            format!("keys of a load are the flags of `squall {command}`: see `squall {command} --help`")
        }
    };
    Problem::at(option.name.place, format!("a load of kind `{kind}` has no key `{name}`"), help)
}

/// The words of a load as one reads them here.
pub(crate) fn texts(words: &[Word]) -> Vec<String> {
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::File(path) | Word::Tree { entry: path, .. } => path.to_string_lossy().into_owned(),
    };
    words.iter().map(text).collect()
}

/// Keys of tools whose value is a file.
const FILES_OF_TOOLS: &[&str] = &["script"];

const KINDS_HELP: &str = "loads of a plan are `http`, `script`, `handshake`, `idle`, `replay` and `tool`";

/// Where `squall run --help` lists the flags of scripts.
const SCRIPT_HEADING: &str = "k6 scripts";

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
