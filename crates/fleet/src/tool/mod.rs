//! Foreign load tools behind one trait: the command line that a load's description means, and what the printed text says.
//!
//! Figures are the tool's own and are never merged with ours or with another machine's: a percentile without its histogram does not
//! add up. `docs/plans.md` says which keys each tool understands.

mod ab;
mod fortio;
mod h2load;
mod hey;
mod job;
mod k6;
mod oha;
mod text;
mod tls_perf;
mod vegeta;
mod wrk;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use squall_measure::ToolFigures;
use squall_plan::mask::{MASK, is_secret_name, masked_text};
use squall_plan::units::{DurationText, parse_count, parse_duration, parse_rate};
use squall_plan::urls::is_token;
use squall_plan::{GivenOption, LoadSpec, OptionProblem, Place, Problems, Segment, Text};

pub use job::ToolJob;

/// A foreign tool.
trait Tool: Sync {
    /// Its name in plans.
    fn name(&self) -> &'static str;

    /// The keys that it understands, besides [`COMMON_KEYS`].
    fn keys(&self) -> &'static [&'static str];

    /// Its words for a load, without the program itself.
    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem>;

    /// Environment that makes it do what the load says.
    fn env(&self, _load: &ToolLoad) -> Option<(&'static str, String)> {
        None
    }

    /// Whether it divides users and requests itself, where it is given its part: then they are the whole.
    fn divides(&self) -> bool {
        false
    }

    /// What of its words is shown and saved: no secrets. `words`: what [`Tool::words`] gave, and what was added to them.
    fn shown(&self, _load: &ToolLoad, words: &[String]) -> Vec<String> {
        masked_words(words)
    }

    /// What was printed. `file`: the content of [`ToolLoad::report_file`], where it wrote one.
    fn read(&self, printed: &str, file: &str) -> ToolFigures;

    /// What an exit code other than 0 means, where the tool gives it a meaning.
    fn exit_meaning(&self, code: i32) -> Option<&'static str> {
        let _ = code;
        None
    }
}

/// Every tool.
const TOOLS: &[&dyn Tool] = &[
    &k6::K6,
    &wrk::Wrk { is_wrk2: false },
    &wrk::Wrk { is_wrk2: true },
    &h2load::H2load,
    &tls_perf::TlsPerf,
    &vegeta::Vegeta,
    &oha::Oha,
    &ab::Ab,
    &fortio::Fortio,
    &hey::Hey,
];

/// Keys that every tool's load understands.
const COMMON_KEYS: &[&str] = &["url", "path", "args", "command", "ulimit"];

/// A load for a tool, as the plan describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolLoad {
    /// The tool.
    name: String,
    /// As people read it: without its secrets.
    shown: String,
    url: String,
    /// The program, where it is not found by its name.
    path: Option<String>,
    /// Connections, clients, or k6's virtual users.
    connections: Option<u64>,
    duration: Option<Duration>,
    requests: Option<u64>,
    /// Per second.
    rate: Option<f64>,
    threads: Option<u64>,
    /// Streams on each connection.
    streams: Option<u64>,
    /// `1`, `2`.
    http: Option<String>,
    headers: Vec<String>,
    script: Option<PathBuf>,
    insecure: bool,
    /// TLS version: `1.2`, `1.3`, `any`.
    tls: Option<String>,
    /// tls-perf's session tickets: `on`, `off`, `advertise`.
    tickets: Option<String>,
    /// Most open files; as many as are allowed when `None`.
    ulimit: Option<u64>,
    args: Vec<String>,
    /// All words, program included, instead of what the rest would mean.
    command: Vec<String>,
    /// A file that the tool may write its figures to.
    #[serde(skip)]
    report_file: String,
}

/// The numbers of a tool's load: those of all machines together, and into how many parts they can be divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// As people read it, such as `12 connections, 300 requests`; empty where the load says no numbers.
    pub total: String,
    /// So that no machine is without a connection or a request.
    pub part_count_max: u64,
}

/// Names of all tools.
pub fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|tool| tool.name()).collect()
}

/// A load for a tool as people read it: without its secrets.
fn shown<'a>(name: &str, options: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let own = options.flat_map(|(key, value)| match key {
        "command" => value.split_whitespace().map(str::to_owned).collect(),
        "args" => vec![value.to_owned()],
        _ if value.is_empty() => vec![format!("--{key}")],
        _ => vec![format!("--{key}={value}")],
    });
    masked_words(&std::iter::once(name.to_owned()).chain(own).collect::<Vec<_>>()).join(" ")
}

/// Words of a command line without their secrets: one that follows a flag whose value is a secret is one.
fn masked_words(words: &[String]) -> Vec<String> {
    let mut is_secret = false;
    let mask = |word: &String| {
        let is_value = std::mem::replace(&mut is_secret, takes_secret(word));
        if is_value && !word.starts_with('-') { MASK.to_owned() } else { masked_word(word) }
    };
    words.iter().map(mask).collect()
}

/// Whether the value of a flag, in the next word, is a secret: `-A user:password` of ab, `-a` of hey and oha, and all that are named so.
fn takes_secret(word: &str) -> bool {
    let is_named_so = word.starts_with('-') && !word.contains(['=', ':', ' ']) && is_secret_name(word);
    is_named_so || SECRET_FLAGS.contains(&word)
}

/// A word of a command line without its secrets: a header, a URL, `TOKEN=x`, and all these behind a flag (`-header=Cookie: x`).
fn masked_word(word: &str) -> String {
    match word.split_once('=') {
        Some((name, _)) if is_token(name) && is_secret_name(name) => format!("{name}={MASK}"),
        Some((name, value)) if is_token(name) => format!("{name}={}", masked_word(value)),
        _ => masked_text(word),
    }
}

/// Reads the load of a tool. An option without a value is a switch; an option may be there several times. `spoiled`: places with
/// problems that are known already.
///
/// # Errors
/// All that is wrong with it: no such tool, options that it does not understand, values that cannot be read, and what it cannot do.
pub fn read(spec: &LoadSpec, spoiled: &[Place]) -> Result<ToolLoad, Problems> {
    let is_spoiled = |text: &Text| spoiled.contains(&text.place);
    let name = spec.arguments.first().cloned().unwrap_or_default();
    let tool = by_name(&name.value).map_err(|problem| problem.at(name.place))?;
    let mut options = Vec::new();
    for GivenOption { name, values } in spec.options.iter().filter(|option| !is_spoiled(&option.name)) {
        let switch = values.is_empty().then(|| (name.value.clone(), String::new(), name.place));
        let values = values.iter().filter(|text| !is_spoiled(text));
        options.extend(values.map(|text| (name.value.clone(), text.value.clone(), text.place)).chain(switch));
    }
    let more = spec.arguments.iter().skip(1);
    options.extend(more.map(|text| (text.value.clone(), String::new(), text.place)));
    let pairs = options.iter().map(|(key, value, _)| (key.as_str(), value.as_str()));
    let shown = shown(&name.value, pairs);
    let mut load = ToolLoad { name: name.value, shown, ..ToolLoad::default() };
    let mut problems = Problems::default();
    for (key, value, place) in &options {
        let set = if COMMON_KEYS.contains(&key.as_str()) || tool.keys().contains(&key.as_str()) {
            load.set(key, value).map_err(|problem| problem.at(*place))
        } else {
            let keys = [COMMON_KEYS, tool.keys()].concat().join(", ");
            let message = format!("{} has no option `{key}`", load.name);
            Err(OptionProblem::of(key, message, format!("its options: {keys}")))
        };
        problems.take(set);
    }
    problems.end()?;
    let is_whole = spec.is_whole
        && !spec
            .options
            .iter()
            .any(|option| is_spoiled(&option.name) || option.values.iter().any(is_spoiled));
    if !is_whole {
        return Err(Problems::default());
    }
    if load.command.is_empty() {
        tool.words(&load)?;
    }
    Ok(load)
}

fn by_name(name: &str) -> Result<&'static dyn Tool, OptionProblem> {
    let tool = TOOLS.iter().find(|tool| tool.name() == name).copied();
    tool.ok_or_else(|| {
        let help = format!("tools: {}", names().join(", "));
        OptionProblem::of(ARGUMENT, format!("unknown tool `{name}`"), help)
    })
}

impl ToolLoad {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As people read it: without its secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What it asks for when so many machines each make all of it.
    pub fn asked(&self, machine_count: u32) -> Asked {
        let (users, ends) = match self.name.as_str() {
            "k6" => ("virtual user", "iteration"),
            "tls-perf" => ("connection", "handshake"),
            _ => ("connection", "request"),
        };
        let counted = |count: Option<u64>, noun: &str| {
            let count = count?.saturating_mul(u64::from(machine_count));
            Some(if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") })
        };
        let rate = self.rate.map(|rate| format!("{} {ends}s/s", rate * f64::from(machine_count)));
        let parts = [counted(self.connections, users), counted(self.requests, ends), rate];
        let counts = [self.connections, self.requests].into_iter().flatten();
        Asked {
            total: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            part_count_max: counts.min().unwrap_or(u64::MAX).max(1),
        }
    }

    /// Every file that a machine needs to make it.
    pub(crate) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.script.iter_mut().collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), OptionProblem> {
        let wrong = |error: squall_plan::InputError| {
            OptionProblem::of(key, format!("`{key}: {value}`: {}", error.reason), error.help)
        };
        let text = || Some(value.to_owned());
        match key {
            "url" => value.clone_into(&mut self.url),
            "path" => self.path = text(),
            "connections" | "vus" => self.connections = Some(parse_count(value).map_err(wrong)?),
            "duration" => self.duration = Some(parse_duration(value).map_err(wrong)?),
            "requests" | "handshakes" => self.requests = Some(parse_count(value).map_err(wrong)?),
            "rate" => self.rate = Some(parse_rate(value).map_err(wrong)?),
            "threads" => self.threads = Some(parse_count(value).map_err(wrong)?),
            "streams" => self.streams = Some(parse_count(value).map_err(wrong)?),
            "http" => self.http = text(),
            "header" => self.headers.push(value.to_owned()),
            "script" => self.script = Some(value.into()),
            "insecure" => self.insecure = matches!(value, "" | "true"),
            "tls" => self.tls = text(),
            "tickets" => self.tickets = text(),
            "ulimit" => self.ulimit = Some(parse_count(value).map_err(wrong)?),
            "args" => self.args.push(value.to_owned()),
            "command" if self.command.is_empty() => {
                self.command = value.split_whitespace().map(str::to_owned).collect();
            }
            _ => self.command.push(value.to_owned()),
        }
        Ok(())
    }

    /// Whether the tool is given its part; a command line of the user's gives it none.
    fn is_divided_by(&self, tool: &dyn Tool) -> bool {
        tool.divides() && self.command.is_empty()
    }

    /// Leaves a machine's part, unless the tool divides it itself.
    fn divide(&mut self, tool: &dyn Tool, segment: &Segment) {
        if self.is_divided_by(tool) {
            return;
        }
        self.connections = self.connections.map(|count| segment.part_of(count));
        self.requests = self.requests.map(|count| segment.part_of(count));
        self.rate = self.rate.map(|rate| rate * segment.fraction());
    }

    /// A duration as Go's programs and wrk read it.
    fn duration_text(&self) -> Option<String> {
        self.duration.map(with_unit)
    }

    /// Refuses what tools with a connection for each thread, and a request for each connection, refuse.
    fn check_counts(&self, name: &str) -> Result<(), OptionProblem> {
        let pairs = [
            ("connections", self.connections, "threads", self.threads),
            ("requests", self.requests, "connections", self.connections),
        ];
        for (of, more, per, fewer) in pairs {
            if let (Some(more), Some(fewer)) = (more, fewer)
                && more < fewer
            {
                let message = format!("{name} would have {more} {of} for {fewer} {per}");
                let help = format!("raise `{of}`, lower `{per}`, or use fewer machines");
                return Err(OptionProblem::of(of, message, help));
            }
        }
        Ok(())
    }

    fn need_url(&self) -> Result<String, OptionProblem> {
        if self.url.is_empty() {
            let help = "give the plan a `target`, or the load a `url`";
            return Err(OptionProblem::whole("the tool has no URL", help));
        }
        Ok(self.url.clone())
    }
}

/// Words of a command line, added when there is a value.
#[derive(Debug, Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, word: &str) -> &mut Self {
        self.0.push(word.to_owned());
        self
    }

    fn option(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        if let Some(value) = value {
            self.0.extend([name.to_owned(), value.to_string()]);
        }
        self
    }

    fn flag(&mut self, word: &str, is_set: bool) -> &mut Self {
        if is_set { self.add(word) } else { self }
    }

    /// So many requests, or else so long, by the names that the tool has for both.
    fn length(
        &mut self,
        load: &ToolLoad,
        (count, time): (&str, &str),
        written: fn(Duration) -> String,
    ) -> &mut Self {
        match load.requests {
            Some(requests) => self.option(count, Some(requests)),
            None => self.option(time, Some(written(load.duration.unwrap_or(LENGTH)))),
        }
    }

    fn headers(&mut self, name: &str, load: &ToolLoad) -> &mut Self {
        load.headers.iter().for_each(|header| self.0.extend([name.to_owned(), header.clone()]));
        self
    }

    /// The user's own words, then the URL.
    fn end(&mut self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        self.0.extend(load.args.iter().cloned());
        self.0.push(load.need_url()?);
        Ok(std::mem::take(&mut self.0))
    }
}

/// Whether `http` names HTTP/1.1.
fn is_http_1(version: &str) -> bool {
    version.starts_with('1') || version == "h1"
}

/// As Go's programs and wrk read it.
fn with_unit(duration: Duration) -> String {
    DurationText(duration).to_string()
}

/// Whole seconds, at least one.
fn whole_seconds(duration: Duration) -> String {
    duration.as_secs_f64().ceil().max(1.0).to_string()
}

/// Flags of the tools whose names do not say that a secret follows.
const SECRET_FLAGS: &[&str] = &["-A", "-a", "-u", "--user"];

/// How long a load lasts that says nothing of it.
const LENGTH: Duration = Duration::from_secs(10);

/// What the name of the tool is in a load: its one argument.
const ARGUMENT: &str = "TOOL";

#[cfg(test)]
mod tests;
