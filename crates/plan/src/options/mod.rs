//! The options of loads: the one table behind flags, keys of plan files, their JSON Schema, completions and the reference of the
//! documentation.
//!
//! Owns: names, help, how values are written, which options exclude or need others. Never: what options mean together (`load`).

mod reading;
mod schema;
#[allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "doc comments are the help here, where brackets mean what may be left out"
)]
pub mod table;
pub mod values;

pub use reading::{ReadContext, Reading};
pub use schema::plan_schema;
pub use values::ValueForm;

use std::path::PathBuf;

use values::Named;

use crate::{InputError, OptionProblem, nearest};

/// What makes a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadType {
    /// Plain requests.
    Http,
    /// TLS handshakes.
    Handshake,
    /// Idle connections.
    Idle,
    /// Recorded traffic.
    Replay,
    /// A k6 script.
    Script,
    /// Requests whose responses are streams of events.
    Stream,
    /// WebSockets.
    WebSocket,
    /// No load by itself: how recorded traffic is read.
    Recording,
}

/// An option that loads of some kinds have.
#[derive(Debug)]
pub struct LoadOption {
    /// The long name without dashes; the key in a plan file.
    pub name: &'static str,
    /// The one-letter flag.
    pub short: Option<char>,
    /// What the help calls the value; empty for a switch.
    pub value_name: &'static str,
    /// How a value is written.
    pub form: ValueForm,
    /// How many values there are.
    pub arity: Arity,
    /// The value when none is given, where it is a single one.
    pub default: Option<&'static str>,
    /// Under which heading the help has it; empty: under none.
    pub group: &'static str,
    /// Whether the short help leaves it out.
    pub is_rare: bool,
    /// Whether no help has it.
    pub is_hidden: bool,
    /// Where it may be written.
    pub written: Written,
    /// Which values may begin with a dash.
    pub hyphens: Hyphens,
    /// Whether messages leave the value out.
    pub is_secret: bool,
    docs: &'static [&'static str],
    /// Options that it excludes, and that exclude it.
    pub conflicts: &'static [&'static str],
    requires: Option<&'static str>,
    of: &'static [LoadType],
}

/// How many values an option has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// One, or this one when it is given without a value.
    OneOr(&'static str),
    /// Each time it is given, one more.
    Many,
    /// As [`Arity::Many`], and a value may be several, separated by commas.
    List,
}

/// Where an option may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// As a flag, and as a key of a plan file.
    Anywhere,
    /// As a flag: it is about the run.
    AsFlag,
    /// As a flag of one letter only: for those who know it from another tool.
    AsLetter,
}

/// Which values of a flag may begin with a dash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hyphens {
    /// None: what begins with one is a flag.
    None,
    /// Numbers.
    Numbers,
    /// All.
    Any,
}

/// An option, and the type of its values.
#[derive(Debug)]
pub struct TypedOption<T: 'static> {
    /// What does not depend on the type.
    pub option: LoadOption,
    read: fn(&str) -> Result<T, InputError>,
}

impl LoadType {
    /// Those that are loads.
    pub const LOADS: [Self; 7] =
        [Self::Http, Self::Stream, Self::WebSocket, Self::Handshake, Self::Idle, Self::Replay, Self::Script];

    /// The kind of that name in plan files.
    pub fn of(name: &str) -> Option<Self> {
        Self::LOADS.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in plan files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stream => "stream",
            Self::WebSocket => "ws",
            Self::Handshake => "handshake",
            Self::Idle => "idle",
            Self::Replay => "replay",
            Self::Script => "script",
            Self::Recording => "recording",
        }
    }

    /// The command that has its options as flags.
    pub fn command(self) -> &'static str {
        if self == Self::Script { "run" } else { self.name() }
    }

    /// What the help calls its argument.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Http | Self::Stream | Self::WebSocket => "URL",
            Self::Handshake | Self::Idle => "HOST:PORT",
            Self::Replay | Self::Script | Self::Recording => "FILE",
        }
    }

    /// Whether its argument is a file.
    pub fn takes_file(self) -> bool {
        self.argument() == "FILE"
    }

    /// Its options, in the order of the help.
    pub fn options(self) -> impl Iterator<Item = &'static LoadOption> {
        table::ALL.iter().copied().flatten().copied().filter(move |option| option.of.contains(&self))
    }

    /// The option of that name.
    pub fn option(self, name: &str) -> Option<&'static LoadOption> {
        self.options().find(|option| option.name == name)
    }

    /// The options that are keys of a load in a plan file. One with the name of its kind is none: that key has the argument.
    fn keys(self) -> impl Iterator<Item = &'static LoadOption> {
        self.options().filter(move |option| option.written == Written::Anywhere && option.name != self.name())
    }

    /// The path in a value of an option, or in an argument (`None`), that names a file.
    pub fn file_in<'v>(self, option: Option<&str>, value: &'v str) -> Option<&'v str> {
        match option {
            // Machines have another standard input: only what is read completely before can come from it.
            Some("urls") if value == "-" => None,
            Some("header" | "message") => value.strip_prefix('@'),
            Some(name) => {
                let is_file = |option: &LoadOption| matches!(option.form, ValueForm::File);
                self.option(name).is_some_and(is_file).then_some(value)
            }
            None => self.takes_file().then_some(value),
        }
    }

    /// What is wrong with a key of a plan file that is no option of this kind; `None` where it is one.
    fn unknown_key(self, name: &str) -> Option<OptionProblem> {
        if self.keys().any(|option| option.name == name) {
            return None;
        }
        if let Some(help) = self.help_of_run_flag(name) {
            let message = format!("`{name}` applies to the whole run, not to a load");
            return Some(OptionProblem::of(name, message, help));
        }
        let keys = self.keys().map(|option| option.name).chain(KEYS_OF_ALL.iter().copied());
        let help = match nearest(name, keys) {
            Some(nearest) => format!("a similar one exists: `{nearest}`"),
            None => {
                let command = self.command();
                format!("keys of a load are the flags of `squall {command}`: see `squall {command} --help`")
            }
        };
        let message = format!("a load of kind `{}` has no key `{name}`", self.name());
        Some(OptionProblem::of(name, message, help))
    }

    /// What to do with a flag of a whole run that is written as a key of a load.
    fn help_of_run_flag(self, name: &str) -> Option<&'static str> {
        let is_script = self == Self::Script;
        match name {
            "threshold" => Some("write `thresholds:`, in the load, in its step or for the whole plan"),
            _ if OF_THE_RUN.contains(&name) => Some("pass it to `squall run` as a flag"),
            _ if is_script && OF_PLAN_RUNS.contains(&name) => Some("pass it to `squall run` as a flag"),
            _ if is_script && OF_SCRIPT_RUNS.contains(&name) => {
                Some("remove it: `squall run` has this flag for scripts, not for plans")
            }
            _ if is_script && OF_PTR_RUNS.contains(&name) => Some(
                "remove it: `squall run` has this flag for PTR files; `squall plan schema` lists the keys of plans",
            ),
            _ => None,
        }
    }

    /// What to write in a plan file where a load does not say where it goes.
    fn argument_help(self) -> &'static str {
        match self {
            Self::Http => {
                "give the plan a `target`, or the load a URL, such as `http: http://localhost:8080/`"
            }
            Self::Stream => {
                "give the plan a `target`, or the load a URL, such as `stream: http://localhost:8080/sse`"
            }
            Self::WebSocket => {
                "give the plan a `target`, or the load a URL, such as `ws: ws://localhost:8080/ws/echo`"
            }
            Self::Handshake => {
                "give the plan a `target`, or the load an address, such as `handshake: localhost:443`"
            }
            Self::Idle => "give the plan a `target`, or the load an address, such as `idle: localhost:8080`",
            Self::Replay | Self::Recording => "name the recording, such as `replay: site.har`",
            Self::Script => "name the script, such as `script: test.js`",
        }
    }
}

impl LoadOption {
    /// The help in one paragraph.
    pub fn help(&self) -> String {
        self.paragraphs().swap_remove(0)
    }

    /// The whole help, where it has more than one paragraph.
    pub fn long_help(&self) -> Option<String> {
        let paragraphs = self.paragraphs();
        (paragraphs.len() > 1).then(|| paragraphs.join("\n\n"))
    }

    fn paragraphs(&self) -> Vec<String> {
        let paragraphs = self.docs.split(|line| line.is_empty());
        paragraphs.map(|lines| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")).collect()
    }

    /// As the help shows it: `--rate <RATE>`, `--h2c[=<HOW>]`, `--insecure`.
    pub fn shown(&self) -> String {
        let name = match self.short.filter(|_| self.written == Written::AsLetter) {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", self.name),
        };
        match self.arity {
            _ if self.is_switch() => name,
            Arity::OneOr(_) => format!("{name}[=<{}>]", self.value_name),
            _ => format!("{name} <{}>", self.value_name),
        }
    }

    /// Whether the two cannot be given together.
    fn excludes(&self, other: &Self) -> bool {
        self.conflicts.contains(&other.name) || other.conflicts.contains(&self.name)
    }

    /// Whether it has no value.
    pub fn is_switch(&self) -> bool {
        matches!(self.form, ValueForm::Switch)
    }

    /// Whether it may be given several times.
    pub fn is_repeatable(&self) -> bool {
        matches!(self.arity, Arity::Many | Arity::List)
    }

    /// The values that it can have, where they are few.
    pub fn choices(&self) -> Vec<&'static str> {
        if let ValueForm::Choice(names) = self.form { names() } else { Vec::new() }
    }
}

/// A row of the table: an option with a value.
const fn option<T>(
    name: &'static str,
    value_name: &'static str,
    form: ValueForm,
    read: fn(&str) -> Result<T, InputError>,
) -> TypedOption<T> {
    let option = LoadOption {
        name,
        short: None,
        value_name,
        form,
        arity: Arity::One,
        default: None,
        group: "",
        is_rare: false,
        is_hidden: false,
        written: Written::Anywhere,
        hyphens: Hyphens::None,
        is_secret: false,
        docs: &[],
        conflicts: &[],
        requires: None,
        of: &[],
    };
    TypedOption { option, read }
}

/// A row of the table: an option without a value.
const fn switch(name: &'static str) -> TypedOption<()> {
    option(name, "", ValueForm::Switch, |_| Ok(()))
}

/// A row of the table: any text.
const fn text(name: &'static str, value_name: &'static str) -> TypedOption<String> {
    option(name, value_name, ValueForm::Text, |text| Ok(text.to_owned()))
}

/// A row of the table: a file that goes with the load.
const fn file(name: &'static str) -> TypedOption<PathBuf> {
    option(name, "FILE", ValueForm::File, values::path)
}

/// A row of the table: a few names.
const fn choice<T: Named>(name: &'static str, value_name: &'static str) -> TypedOption<T> {
    option(name, value_name, ValueForm::Choice(values::names::<T>), values::by_name::<T>)
}

impl<T> TypedOption<T> {
    const fn short(mut self, letter: char) -> Self {
        self.option.short = Some(letter);
        self
    }

    const fn default(mut self, value: &'static str) -> Self {
        self.option.default = Some(value);
        self
    }

    const fn or(mut self, value: &'static str) -> Self {
        self.option.arity = Arity::OneOr(value);
        self
    }

    const fn many(mut self) -> Self {
        self.option.arity = Arity::Many;
        self
    }

    const fn list(mut self) -> Self {
        self.option.arity = Arity::List;
        self
    }

    const fn conflicts(mut self, names: &'static [&'static str]) -> Self {
        self.option.conflicts = names;
        self
    }

    const fn requires(mut self, name: &'static str) -> Self {
        self.option.requires = Some(name);
        self
    }

    const fn rare(mut self) -> Self {
        self.option.is_rare = true;
        self
    }

    const fn hidden(mut self) -> Self {
        self.option.is_hidden = true;
        self
    }

    const fn written(mut self, written: Written) -> Self {
        self.option.written = written;
        self
    }

    const fn hyphens(mut self, hyphens: Hyphens) -> Self {
        self.option.hyphens = hyphens;
        self
    }

    const fn secret(mut self) -> Self {
        self.option.is_secret = true;
        self
    }

    const fn of(mut self, kinds: &'static [LoadType]) -> Self {
        self.option.of = kinds;
        self
    }

    /// What the rows of a group have in common, unless a row says otherwise.
    const fn within(
        mut self,
        group: &'static str,
        kinds: &'static [LoadType],
        docs: &'static [&'static str],
    ) -> Self {
        self.option.group = group;
        self.option.docs = docs;
        if self.option.of.is_empty() {
            self.option.of = kinds;
        }
        self
    }
}

/// Arguments of commands and loads as problems name them.
pub const ARGUMENTS: &[&str] = &["URL", "HOST:PORT", "FILE", "TOOL"];

/// Keys of every load that are no flags.
const KEYS_OF_ALL: &[&str] = &["name", "on", "per_machine", "start_after", "thresholds"];

/// Flags that say what becomes of a run.
const OF_THE_RUN: &[&str] =
    &["name", "results", "no-save", "out", "json", "quiet", "color", "live", "web", "dry-run", "threshold"];

/// Further flags of `squall run`, whose other flags are keys of script loads: those that plans have.
const OF_PLAN_RUNS: &[&str] =
    &["var", "lost-after", "allow-lost", "no-keep", "again", "kubernetes", "kubectl"];

/// Those that scripts have.
const OF_SCRIPT_RUNS: &[&str] = &[
    "no-summary",
    "summary",
    "summary-mode",
    "summary-export",
    "new-machine-readable-summary",
    "console-output",
    "log-output",
    "log-format",
    "verbose",
    "fail-on-exceptions",
    "no-usage-report",
    "no-color",
    "linger",
    "address",
    "compatibility-mode",
    "type",
    "traces-output",
    "features",
    "profiling-enabled",
];

/// Those that PTR files have.
const OF_PTR_RUNS: &[&str] =
    &["test-config", "monitor", "user", "ssh-keyfile", "bastion-host", "ssh-config", "drivers", "divide"];

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
