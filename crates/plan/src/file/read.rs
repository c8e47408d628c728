//! From the tree of a plan file to its meaning. What is wrong is noted and passed over, so that all of it is reported at once.

mod kubernetes;

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub use kubernetes::{parse_kubernetes, parse_program_path};

use super::document::{Node, Value, single, texts};
use super::inventory::{self, Groups, HostList, with_destination};
use super::kubernetes::{KubernetesPool, PodProgram};
use super::{
    FileSpec, Hook, Machine, MachineSettings, MonitorSpec, PlanFile, Problem, Reach, SshSpec, Step, Watched,
};
use crate::limits::{LOST_AFTER_MAX, LOST_AFTER_MIN, MACHINE_COUNT_MAX};
use crate::mask::masked_text;
use crate::spec::{GivenOption, LoadSpec, Place, PlanRule, Text};
use crate::units::{parse_duration, parse_weight};
use crate::{InputError, nearest};

/// What a load can be: the key whose value is the load's argument.
pub const LOAD_KINDS: &[&str] = &["http", "script", "stream", "ws", "handshake", "idle", "replay", "tool"];

/// Every key that a plan file may have.
pub(super) const PLAN_KEYS: &[&str] = &[
    "lost_after",
    "allow_lost",
    "name",
    "target",
    "variables",
    "ssh",
    "kubernetes",
    "machines",
    "inventory",
    "groups",
    "monitors",
    "files",
    "before",
    "after",
    "steps",
    "loads",
    "thresholds",
];

/// Reads the whole file. `base`: the plan that it is added to, which has the loads.
pub(super) fn plan_file(
    root: &Node,
    base: Option<&PlanFile>,
    hosts: HostList<'_>,
    problems: &mut Vec<Problem>,
) -> PlanFile {
    let mut keys = Keys::of(root, "a plan", problems);
    if base.is_some() {
        keys.refuse_loads();
    }
    let defaults = Defaults {
        ssh: keys
            .take("ssh")
            .map(|node| ssh_spec(node, &SshSpec::default(), keys.problems))
            .unwrap_or_default(),
        pool: keys
            .take("kubernetes")
            .map(|node| kubernetes::defaults(node, keys.problems))
            .unwrap_or_default(),
    };
    let listed = keys.take("machines");
    let mut machines = listed.map_or_else(Vec::new, |node| machines(node, &defaults, keys.problems));
    let mut groups =
        keys.take("groups").map_or_else(Groups::new, |node| inventory::groups(node, keys.problems));
    if let Some(node) = keys.take("inventory") {
        machines.extend(inventory::read(node, hosts, &defaults.ssh, &mut groups, keys.problems));
    }
    inventory::add_pools(&machines, &mut groups, keys.problems);
    let steps = keys.steps(base.is_some());
    let mut file = PlanFile {
        name: keys.text("name").map(|text| text.value),
        target: keys.text("target"),
        machines,
        monitors: keys.take("monitors").map_or_else(Vec::new, |node| {
            each(node, keys.problems, |node, problems| monitor(node, &defaults.pool, problems))
        }),
        files: keys.take("files").map_or_else(Vec::new, |node| each(node, keys.problems, file_spec)),
        before: keys.hooks("before"),
        after: keys.hooks("after"),
        steps,
        thresholds: keys.rules(),
        lost_after: keys.parsed("lost_after", parse_lost_after),
        lost_count_allowed: keys.parsed("allow_lost", parse_count).unwrap_or(0),
    };
    keys.finish(PLAN_KEYS);
    inventory::resolve(&mut file, &groups, problems);
    let of_base = base.map_or(&[][..], |base| &base.machines[..]);
    check_apart(&file.machines, of_base, problems);
    // Whatever else is wrong with a machine, its name is known.
    let mut known = names_of(listed);
    // In the place of a pool are its pods.
    known.retain(|name| !groups.contains_key(*name));
    known.extend(file.machines.iter().chain(of_base).map(|machine| machine.name.value.as_str()));
    check_names(&file, &known, problems);
    file
}

/// Machines of a plan next to PTR files have other names than the generators of these.
fn check_apart(machines: &[Machine], of_base: &[Machine], problems: &mut Vec<Problem>) {
    let is_taken = |name: &Text| of_base.iter().any(|machine| machine.name.value == name.value);
    for machine in machines.iter().filter(|machine| is_taken(&machine.name)) {
        let message = format!("two machines are called `{}`", machine.name.value);
        let help = "the other one is in the PTR files: rename this one";
        problems.push(Problem::at(machine.name.place, message, help));
    }
}

fn steps(node: &Node, problems: &mut Vec<Problem>) -> Vec<Step> {
    let mut steps = each(node, problems, step);
    check_step_names(node, problems);
    if steps.is_empty() {
        problems.push(Problem::at(node.place, "`steps` has no step", "write `- loads:` below it"));
    }
    for (number, step) in (1..).zip(&mut steps) {
        if step.name.is_empty() {
            step.name = format!("step {number}");
        }
    }
    steps
}

/// Reports of two steps of one name could not be distinguished.
fn check_step_names(node: &Node, problems: &mut Vec<Problem>) {
    let Value::List(items) = &node.value else { return };
    let named = items.iter().filter_map(|item| match &item.value {
        Value::Map(entries) => entries.iter().find(|(key, _)| key.value == "name"),
        _ => None,
    });
    let mut names = HashSet::new();
    for (_, node) in named {
        let Value::Scalar(name) = &node.value else { continue };
        if !names.insert(name) {
            let message = format!("two steps are called `{name}`");
            problems.push(Problem::at(node.place, message, "give each a unique `name`"));
        }
    }
}

fn single_step(node: &Node, problems: &mut Vec<Problem>) -> Step {
    let loads = loads(node, problems);
    Step { name: "step 1".to_owned(), loads, ..Step::default() }
}

fn step(node: &Node, problems: &mut Vec<Problem>) -> Option<Step> {
    let mut keys = Keys::of(node, "a step", problems);
    let step = Step {
        name: keys.text("name").map(|text| text.value).unwrap_or_default(),
        loads: match keys.take("loads") {
            Some(list) => loads(list, keys.problems),
            None => {
                keys.missing(
                    "loads",
                    "list the loads to run in parallel, such as `- http: http://localhost:8080/`",
                );
                Vec::new()
            }
        },
        pause: keys.duration("pause"),
        thresholds: keys.rules(),
        before: keys.hooks("before"),
        after: keys.hooks("after"),
    };
    keys.finish(&["name", "loads", "pause", "thresholds", "before", "after"]);
    Some(step)
}

fn loads(node: &Node, problems: &mut Vec<Problem>) -> Vec<LoadSpec> {
    let before = problems.len();
    let loads = each(node, problems, load);
    if loads.is_empty() && problems.len() == before {
        problems.push(Problem::at(node.place, "no load is given", "write `- http: http://localhost:8080/`"));
    }
    loads
}

fn load(node: &Node, problems: &mut Vec<Problem>) -> Option<LoadSpec> {
    let mut keys = Keys::of(node, "a load", problems);
    // The first one counts: `http` is a flag of other commands.
    let kind = keys.entries.iter().map(|(key, _)| *key).find(|key| LOAD_KINDS.contains(&key.value.as_str()));
    let Some(kind) = kind.cloned() else {
        let help = format!("add one of {}, such as `http: http://localhost:8080/`", LOAD_KINDS.join(", "));
        keys.problems.push(Problem::at(node.place, "the load has no kind", help));
        return None;
    };
    let name = keys.text("name").map(|text| text.value).unwrap_or_default();
    let on = keys.take("on").map_or_else(Vec::new, |node| texts(node, "", keys.problems));
    let (start_after, thresholds) = (keys.duration("start_after"), keys.rules());
    let per_machine = keys.truth("per_machine");
    let before = keys.problems.len();
    let arguments = keys.take(&kind.value).map_or_else(Vec::new, |node| texts(node, "", keys.problems));
    let rest = std::mem::take(&mut keys.entries);
    let options = rest.into_iter().filter_map(|(key, value)| option(key, value, keys.problems)).collect();
    let is_whole = problems.len() == before;
    Some(LoadSpec { name, kind, arguments, options, is_whole, on, per_machine, start_after, thresholds })
}

/// `key: true` is a flag, `key: false` is none, a list is the flag several times, and a mapping its `name: value` pairs.
fn option(key: &Text, node: &Node, problems: &mut Vec<Problem>) -> Option<GivenOption> {
    let name = Text { value: key.value.replace('_', "-"), place: key.place };
    let values = match &node.value {
        Value::Scalar(text) if text == "true" => Vec::new(),
        Value::Scalar(text) if text == "false" => return None,
        Value::Null => Vec::new(),
        _ => texts(node, if PAIRS_WITH_COLON.contains(&name.value.as_str()) { ": " } else { "=" }, problems),
    };
    Some(GivenOption { name, values })
}

/// What holds for machines that do not say otherwise.
struct Defaults {
    ssh: SshSpec,
    pool: KubernetesPool,
}

fn machines(node: &Node, defaults: &Defaults, problems: &mut Vec<Problem>) -> Vec<Machine> {
    let Value::Map(entries) = &node.value else {
        let message = format!("`machines` is {}, not a mapping", node.kind());
        problems.push(Problem::at(node.place, message, "write `name: user@host` lines below it"));
        return Vec::new();
    };
    let machines = entries.iter().filter_map(|(name, node)| machine(name, node, defaults, problems));
    let machines: Vec<Machine> = machines.collect();
    let machines: Vec<Machine> =
        machines.into_iter().flat_map(|machine| inventory::spread(machine, problems)).collect();
    if machines.len() > MACHINE_COUNT_MAX {
        let message = format!("{} machines, but at most {MACHINE_COUNT_MAX} are supported", machines.len());
        problems.push(Problem::at(node.place, message, "give fewer"));
    }
    machines
}

fn machine(name: &Text, node: &Node, defaults: &Defaults, problems: &mut Vec<Problem>) -> Option<Machine> {
    let bare = |reach| (reach, NonZeroU32::MIN, MachineSettings::default());
    let (reach, weight, settings) = match &node.value {
        Value::Scalar(text) if text == "local" => bare(Reach::Local),
        Value::Scalar(text) => {
            check_ports(text, node.place, problems);
            bare(Reach::Ssh(with_destination(defaults.ssh.clone(), text)))
        }
        _ => {
            let mut keys = Keys::of(node, "a machine", problems);
            let help = "write a whole number from 1, such as `3`";
            let weight = |text: &str| {
                parse_weight(text).map_err(|error| InputError { help: help.to_owned(), ..error })
            };
            let weight = keys.parsed("weight", weight).unwrap_or(NonZeroU32::MIN);
            let pods =
                keys.take("kubernetes").map(|node| kubernetes::pool(node, &defaults.pool, keys.problems));
            if let Some(pool) = pods {
                let settings = keys.settings();
                keys.finish(&["kubernetes", "weight", "env", "tmp", "ulimit", "sysctl", "sudo"]);
                check_image_only(node.place, &pool, &settings, problems);
                let pool = Arc::new(KubernetesPool { name: name.value.clone(), ..pool });
                let reach = Reach::Pod { pool, index: 0 };
                return Some(Machine { name: name.clone(), reach, weight, settings });
            }
            let is_local = keys.text("local").is_some_and(|text| text.value == "true");
            let command = keys.take("command").map(|node| command(node, keys.problems));
            let ssh = keys.ssh(&defaults.ssh);
            let settings = keys.settings();
            keys.finish(
                &[
                    &[
                        "weight",
                        "local",
                        "command",
                        "ssh",
                        "kubernetes",
                        "env",
                        "tmp",
                        "ulimit",
                        "sysctl",
                        "sudo",
                    ],
                    SSH_KEYS,
                ]
                .concat(),
            );
            let reach = match (is_local, command, ssh.host.is_empty()) {
                (true, None, true) => Reach::Local,
                (false, Some(command), true) => Reach::Command(command),
                (false, None, false) => Reach::Ssh(ssh),
                _ => {
                    let message = format!("cannot tell how to reach the machine `{}`", name.value);
                    let help = "give one of `ssh: user@host`, `local: true`, `command: [program, argument]`, `kubernetes: { replicas: 3 }`";
                    problems.push(Problem::at(node.place, message, help));
                    return None;
                }
            };
            (reach, weight, settings)
        }
    };
    Some(Machine { name: name.clone(), reach, weight, settings })
}

/// Limits are set by a shell, which an image with squall need not have.
fn check_image_only(
    place: Place,
    pool: &KubernetesPool,
    settings: &MachineSettings,
    problems: &mut Vec<Problem>,
) {
    let needs_shell = settings.open_file_count_max.is_some() || !settings.sysctl.is_empty();
    if pool.program == PodProgram::Image && needs_shell {
        let message = "`ulimit` and `sysctl` need a shell, which `binary: image` does not use";
        problems.push(Problem::at(place, message, "leave them out, or use `binary: send`"));
    }
}

fn ssh_spec(node: &Node, defaults: &SshSpec, problems: &mut Vec<Problem>) -> SshSpec {
    let mut keys = Keys::of(node, "`ssh`", problems);
    let spec = keys.ssh(defaults);
    keys.finish(SSH_KEYS);
    spec
}

/// Notes a port of `[user@]host[:port]` that is none.
fn check_ports(text: &str, place: Place, problems: &mut Vec<Problem>) {
    if let Err(error) = check_destination(text) {
        problems.push(Problem::at(place, format!("`{text}`: {}", error.reason), error.help));
    }
}

/// Host, in brackets where it is written so, and port of `host[:port]`.
pub(super) fn destination_port(text: &str) -> Result<(&str, Option<u16>), InputError> {
    let split = text.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let Some((host, port)) = split else { return Ok((text, None)) };
    let wrong = |error: InputError| InputError { reason: format!("`{port}` is {}", error.reason), ..error };
    parse_port(port).map(|port| (host, Some(port))).map_err(wrong)
}

/// Checks `[user@]host[:port]`, or several with commas between them.
///
/// # Errors
/// When a port is none.
pub fn check_destination(text: &str) -> Result<String, InputError> {
    let rest = |hop: &str| hop.rsplit_once('@').map_or(hop, |(_, rest)| rest).to_owned();
    text.split(',').try_for_each(|hop| destination_port(&rest(hop)).map(drop)).map(|()| text.to_owned())
}

/// A list of words, or one text split at blanks.
fn command(node: &Node, problems: &mut Vec<Problem>) -> Vec<String> {
    match &node.value {
        Value::Scalar(text) => text.split_whitespace().map(str::to_owned).collect(),
        _ => texts(node, "=", problems).into_iter().map(|text| text.value).collect(),
    }
}

pub(super) fn monitor(
    node: &Node,
    cluster: &KubernetesPool,
    problems: &mut Vec<Problem>,
) -> Option<MonitorSpec> {
    let mut keys = Keys::of(node, "a monitor", problems);
    let name = keys.text("name").map(|text| text.value);
    let from = keys.text("from");
    let what = if let Some(machine) = keys.text("machine") {
        if let Some(from) = &from {
            let message =
                format!("`from` is only for pages: `{}` is read on that machine itself", machine.value);
            keys.problems.push(Problem::at(from.place, message, "leave `from` out"));
        }
        let mut processes = keys.strings("process");
        processes.extend(keys.strings("processes"));
        Some(Watched::Machine { machine, processes })
    } else if let Some(url) = keys.page("prometheus", "http://shop:9100/metrics") {
        Some(Watched::Prometheus { url, series: keys.series() })
    } else if let Some(url) = keys.page("nginx", "http://shop/nginx_status") {
        Some(Watched::Nginx { url })
    } else if let Some(node) = keys.take("kubernetes") {
        if let Some(from) = &from {
            let message = "`from` is only for pages: clusters are read by the controller";
            keys.problems.push(Problem::at(from.place, message, "leave `from` out"));
        }
        kubernetes::watched(node, cluster, keys.problems).map(Watched::Kubernetes)
    } else {
        keys.page("h2o", "http://shop/server-status/json").map(|url| Watched::H2o { url })
    };
    keys.finish(MONITOR_KEYS);
    let Some(what) = what else {
        let help = "give one of `machine: NAME`, `prometheus: URL`, `nginx: URL`, `h2o: URL`, `kubernetes: { pods: SELECTOR }`";
        problems.push(Problem::at(node.place, "the monitor has no source", help));
        return None;
    };
    Some(MonitorSpec { place: node.place, name, from, what })
}

const MONITOR_KEYS: &[&str] = &[
    "name",
    "machine",
    "process",
    "processes",
    "prometheus",
    "series",
    "nginx",
    "h2o",
    "kubernetes",
    "from",
];

/// `run` is a line for the shell, or a list of a program and its arguments.
fn hook(node: &Node, problems: &mut Vec<Problem>) -> Option<Hook> {
    let mut keys = Keys::of(node, "a hook", problems);
    let run = keys.take("run");
    let on = keys.take("on").map_or_else(Vec::new, |node| texts(node, "", keys.problems));
    let timeout = keys.parsed("timeout", parse_duration).unwrap_or(HOOK_TIMEOUT);
    let Some(run) = run.filter(|node| node.value != Value::Null) else {
        keys.missing("run", "write a command, such as `run: systemctl restart h2o`");
        return None;
    };
    let parts = texts(run, "", keys.problems);
    keys.finish(&["run", "on", "timeout"]);
    let value = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(" ");
    let text = Text { value, place: run.place };
    let words = match &run.value {
        Value::Scalar(line) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
        _ => parts.into_iter().map(|part| part.value).collect(),
    };
    if text.value.trim().is_empty() {
        let help = "write a command, such as `run: systemctl restart h2o`";
        problems.push(Problem::at(run.place, "the hook has no command", help));
        return None;
    }
    Some(Hook { text, words, on, timeout })
}

fn file_spec(node: &Node, problems: &mut Vec<Problem>) -> Option<FileSpec> {
    let mut keys = Keys::of(node, "a file", problems);
    let (from, to) = (keys.text("from"), keys.text("to"));
    let mode = keys.parsed("mode", parse_mode).unwrap_or(0o644);
    let on = keys.take("on").map_or_else(Vec::new, |node| texts(node, "", keys.problems));
    let overwrite = keys.truth("overwrite");
    if from.is_none() || to.is_none() {
        keys.missing(
            if from.is_none() { "from" } else { "to" },
            "write `from: here.txt` and `to: /tmp/there.txt`",
        );
    }
    keys.finish(&["from", "to", "mode", "on", "overwrite"]);
    Some(FileSpec { from: from?, to: to?, mode, on, overwrite })
}

/// Whether a text is the URL of a page that can be asked for.
fn is_page(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether a text is a series of Prometheus: `[a-zA-Z_:][a-zA-Z0-9_:]*`, its data model says, and maybe labels.
fn is_series(text: &str) -> bool {
    let (name, labels) = text.find('{').map_or((text, None), |at| (&text[..at], Some(&text[at..])));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    name.chars().all(is_part)
        && name.starts_with(|c: char| !c.is_ascii_digit())
        && labels.is_none_or(|labels| labels.ends_with('}'))
}

/// Reads how long a machine may be silent before it is lost.
///
/// # Errors
/// When it is no such time.
pub fn parse_lost_after(text: &str) -> Result<Duration, InputError> {
    let time = parse_duration(text)?;
    if (LOST_AFTER_MIN..=LOST_AFTER_MAX).contains(&time) {
        return Ok(time);
    }
    Err(InputError::at(text, 0, "not between 3s and 10m", "write a time such as `30s`"))
}

fn parse_count(text: &str) -> Result<usize, InputError> {
    text.parse().map_err(|_| InputError::at(text, 0, "not a count", "write a whole number, such as `1`"))
}

/// Reads a TCP port.
pub(crate) fn parse_port(text: &str) -> Result<u16, InputError> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| InputError::at(text, 0, "not a port", "write a number from 1 to 65535"))
}

/// Reads permission bits: three or four octal digits.
pub(crate) fn parse_mode(text: &str) -> Result<u32, InputError> {
    let digits = text.trim_start_matches("0o");
    let is_octal = (3..=4).contains(&digits.len()) && digits.bytes().all(|b| (b'0'..=b'7').contains(&b));
    match u32::from_str_radix(digits, 8) {
        Ok(mode) if is_octal => Ok(mode),
        _ => Err(InputError::at(
            text,
            0,
            "not octal permissions",
            "write three or four octal digits, such as 0644",
        )),
    }
}

/// The names of a mapping's entries, whatever is wrong with their values.
fn names_of(node: Option<&Node>) -> Vec<&str> {
    match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().map(|(name, _)| name.value.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// Every name that is used exists, and every load's name is its own. `known`: the names of machines.
fn check_names(file: &PlanFile, known: &[&str], problems: &mut Vec<Problem>) {
    let watched = file.monitors.iter().filter_map(|monitor| match &monitor.what {
        Watched::Machine { machine, .. } => Some(machine),
        _ => monitor.from.as_ref(),
    });
    let used = file.loads().flat_map(|load| &load.on).chain(file.files.iter().flat_map(|file| &file.on));
    let used = used.chain(file.hooks().flat_map(|hook| &hook.on));
    for name in used.chain(watched).filter(|name| !known.contains(&name.value.as_str())) {
        let message = format!("there is no machine `{}`", name.value);
        problems.push(Problem::at(name.place, message, suggestion(&name.value, known, "machines")));
    }
    for hook in file.hooks().filter(|hook| hook.on.is_empty() && !known.is_empty()) {
        let help = format!("name the machines, such as `on: {}`", known[0]);
        let message = "the hook does not name its machines";
        problems.push(Problem::at(hook.text.place, message, help));
    }
    let mut names = HashSet::new();
    for machine in &file.machines {
        if !names.insert(&machine.name.value) {
            let message = format!("two machines are called `{}`", machine.name.value);
            problems.push(Problem::at(machine.name.place, message, "give each a unique name"));
        }
    }
    let mut names = HashSet::new();
    for load in file.loads().filter(|load| !load.name.is_empty()) {
        if !names.insert(&load.name) {
            let message = format!("two loads are called `{}`", load.name);
            problems.push(Problem::at(load.kind.place, message, "give each a unique `name`"));
        }
    }
}

/// Reads each entry of a list; one that is no list counts as a list of one.
fn each<T>(
    node: &Node,
    problems: &mut Vec<Problem>,
    read: impl Fn(&Node, &mut Vec<Problem>) -> Option<T>,
) -> Vec<T> {
    match &node.value {
        Value::List(items) => items.iter().filter_map(|item| read(item, problems)).collect(),
        Value::Null => Vec::new(),
        _ => read(node, problems).into_iter().collect(),
    }
}

/// Variables of an environment.
fn variables(node: &Node, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    let Value::Map(entries) = &node.value else {
        let message = format!("`env` is {}, not a mapping", node.kind());
        problems.push(Problem::at(node.place, message, "write `NAME: value` lines below it"));
        return BTreeMap::new();
    };
    let mut env = BTreeMap::new();
    for (name, value) in entries {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.value.is_empty()
            || !name.value.chars().all(is_name)
            || name.value.starts_with(|c: char| c.is_ascii_digit())
        {
            let message = format!("`{}` is not the name of a variable", name.value);
            problems.push(Problem::at(name.place, message, "use letters, digits and `_`"));
        } else if let Some(value) = single(value, problems) {
            env.insert(name.value.clone(), value.value);
        }
    }
    env
}

/// Settings of a kernel.
fn sysctls(node: &Node, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    let Value::Map(entries) = &node.value else {
        let message = format!("`sysctl` is {}, not a mapping", node.kind());
        problems.push(Problem::at(node.place, message, "write `net.core.somaxconn: 65535` lines below it"));
        return BTreeMap::new();
    };
    let mut sysctls = BTreeMap::new();
    for (name, value) in entries {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.value.chars().all(is_part) || name.value.split('.').any(str::is_empty) {
            let message = format!("`{}` is not the name of a kernel setting", name.value);
            problems.push(Problem::at(
                name.place,
                message,
                "write it as `sysctl -a` does, such as `net.core.somaxconn`",
            ));
        } else if let Some(value) = single(value, problems) {
            let words: Vec<&str> = value.value.split_whitespace().collect();
            sysctls.insert(name.value.clone(), words.join(" "));
        }
    }
    sysctls
}

/// The entries of a mapping, taken one by one; what is left at the end is unknown.
struct Keys<'n, 'p> {
    what: &'static str,
    node: &'n Node,
    entries: Vec<(&'n Text, &'n Node)>,
    problems: &'p mut Vec<Problem>,
}

impl<'n, 'p> Keys<'n, 'p> {
    fn of(node: &'n Node, what: &'static str, problems: &'p mut Vec<Problem>) -> Self {
        let entries = match &node.value {
            Value::Map(entries) => entries.iter().map(|(key, value)| (key, value)).collect(),
            _ => {
                let message = format!("{what} is a mapping, but here is {}", node.kind());
                problems.push(Problem::at(node.place, message, "write `key: value` lines"));
                Vec::new()
            }
        };
        Self { what, node, entries, problems }
    }

    fn take(&mut self, key: &str) -> Option<&'n Node> {
        let idx = self.entries.iter().position(|(name, _)| name.value == key)?;
        Some(self.entries.remove(idx).1)
    }

    fn text(&mut self, key: &str) -> Option<Text> {
        let node = self.take(key)?;
        single(node, self.problems)
    }

    fn parsed<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, InputError>) -> Option<T> {
        let text = self.text(key)?;
        match parse(&text.value) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("`{key}: {}`: {}", text.value, error.reason);
                self.problems.push(Problem::at(text.place, message, error.help));
                None
            }
        }
    }

    /// `true` or `false`; `false` when it is not there.
    fn truth(&mut self, key: &str) -> bool {
        let read = |text: &str| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(InputError::at(text, 0, "neither true nor false", "write `true` or `false`")),
        };
        self.parsed(key, read).unwrap_or_default()
    }

    fn duration(&mut self, key: &str) -> Duration {
        self.parsed(key, parse_duration).unwrap_or_default()
    }

    fn string(&mut self, key: &str) -> Option<String> {
        self.text(key).map(|text| text.value)
    }

    fn strings(&mut self, key: &str) -> Vec<String> {
        let found = self.take(key).map_or_else(Vec::new, |node| texts(node, "=", self.problems));
        found.into_iter().map(|text| text.value).collect()
    }

    /// A page that is asked for once a second. `example`: one that the help names.
    fn page(&mut self, key: &str, example: &str) -> Option<Text> {
        let url = self.text(key)?;
        if !is_page(&url.value) {
            let message = format!("`{key}: {}`: not an http or https URL", masked_text(&url.value));
            let help = format!("write the whole URL, such as `{example}`");
            self.problems.push(Problem::at(url.place, message, help));
        }
        Some(url)
    }

    fn series(&mut self) -> Vec<String> {
        let series = self.take("series").map_or_else(Vec::new, |node| texts(node, "=", self.problems));
        for text in series.iter().filter(|text| !is_series(&text.value)) {
            let message = format!("`series: {}`: not the name of a series", text.value);
            let help =
                "write a name, such as `tls_handshakes_total`, or one with labels, such as `up{job=\"web\"}`";
            self.problems.push(Problem::at(text.place, message, help));
        }
        series.into_iter().map(|text| text.value).collect()
    }

    /// `thresholds`: texts, or mappings with `rule` and `abort`.
    fn rules(&mut self) -> Vec<PlanRule> {
        self.take("thresholds").map_or_else(Vec::new, |node| each(node, self.problems, rule))
    }

    /// Next to PTR files these have the loads and their target.
    fn refuse_loads(&mut self) {
        for key in ["steps", "loads", "target"] {
            if let Some(node) = self.take(key) {
                let message = format!("a plan used with PTR files has no `{key}`: it comes from them");
                let help = "keep `machines`, `monitors`, `files`, `before`, `after` and `thresholds`";
                self.problems.push(Problem::at(node.place, message, help));
            }
        }
    }

    /// `steps`, or the single step of `loads`. `has_base`: the PTR files next to the plan have the loads.
    fn steps(&mut self, has_base: bool) -> Vec<Step> {
        match (self.take("steps"), self.take("loads")) {
            (Some(node), None) => steps(node, self.problems),
            (None, Some(node)) => vec![single_step(node, self.problems)],
            (Some(_), Some(node)) => {
                let help = "move them into a step";
                self.problems.push(Problem::at(
                    node.place,
                    "a plan with `steps` has no `loads` outside them",
                    help,
                ));
                Vec::new()
            }
            (None, None) => {
                if !has_base && matches!(self.node.value, Value::Map(_)) {
                    let help =
                        "write `loads:` with at least one entry, such as `- http: http://localhost:8080/`";
                    self.problems.push(Problem::at(
                        self.node.place,
                        "the plan has neither `steps` nor `loads`",
                        help,
                    ));
                }
                Vec::new()
            }
        }
    }

    fn hooks(&mut self, key: &str) -> Vec<Hook> {
        self.take(key).map_or_else(Vec::new, |node| each(node, self.problems, hook))
    }

    /// The keys of ssh; what is not given is as in `defaults`.
    fn ssh(&mut self, defaults: &SshSpec) -> SshSpec {
        let spec = defaults.clone();
        let spec = match self.text("ssh").or_else(|| self.text("host")) {
            Some(destination) => {
                check_ports(&destination.value, destination.place, self.problems);
                with_destination(spec, &destination.value)
            }
            None => spec,
        };
        SshSpec {
            user: self.string("user").or(spec.user),
            port: self.parsed("port", parse_port).or(spec.port),
            key: self.string("key").or(spec.key),
            jump: self.parsed("jump", check_destination).or(spec.jump),
            config: self.string("config").or(spec.config),
            options: match self.take("options") {
                Some(node) => texts(node, "=", self.problems).into_iter().map(|text| text.value).collect(),
                None => spec.options,
            },
            binary: self.string("binary").or(spec.binary),
            host: spec.host,
        }
    }

    /// `env`, `tmp` and `ulimit` of a machine.
    fn settings(&mut self) -> MachineSettings {
        let mut env = self.take("env").map_or_else(BTreeMap::new, |node| variables(node, self.problems));
        let is_absolute = |text: &str| match text.starts_with('/') {
            true => Ok(text.to_owned()),
            false => Err(InputError::at(
                text,
                0,
                "not an absolute path",
                "write the whole path, such as `/scratch`",
            )),
        };
        if let Some(folder) = self.parsed("tmp", is_absolute) {
            env.insert("TMPDIR".to_owned(), folder);
        }
        let count = |text: &str| match text.parse() {
            Ok(count @ 1_u64..) => Ok(count),
            _ => Err(InputError::at(
                text,
                0,
                "not a number of files",
                "write a whole number, such as `1000000`",
            )),
        };
        MachineSettings {
            env,
            open_file_count_max: self.parsed("ulimit", count),
            sysctl: self.take("sysctl").map_or_else(BTreeMap::new, |node| sysctls(node, self.problems)),
            sudo: self.text("sudo").is_some_and(|text| text.value == "true"),
        }
    }

    fn missing(&mut self, key: &str, help: &str) {
        self.problems.push(Problem::at(self.node.place, format!("{} needs `{key}`", self.what), help));
    }

    /// What was not taken is unknown.
    fn finish(self, known: &[&str]) {
        for (key, _) in self.entries {
            let message = format!("{} has no key `{}`", self.what, key.value);
            self.problems.push(Problem::at(key.place, message, suggestion(&key.value, known, "keys")));
        }
    }
}

fn rule(node: &Node, problems: &mut Vec<Problem>) -> Option<PlanRule> {
    if !matches!(node.value, Value::Map(_)) {
        return single(node, problems).map(|text| PlanRule { text, monitor: None, abort: false });
    }
    let mut keys = Keys::of(node, "a threshold", problems);
    let (text, monitor) = (keys.text("rule"), keys.text("monitor"));
    let abort = keys.text("abort").is_some_and(|text| text.value == "true");
    if text.is_none() {
        keys.missing("rule", "write `rule: p(95)<200` and `abort: true`");
    }
    keys.finish(&["rule", "monitor", "abort"]);
    text.map(|text| PlanRule { text, monitor, abort })
}

/// The nearest of the known names, or all of them.
pub(crate) fn suggestion(name: &str, known: &[&str], what: &str) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("a similar one exists: `{nearest}`"),
        None if known.is_empty() => format!("the plan defines no {what}"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

/// Flags whose pairs are written as header fields are; those of the others as `name=value`.
const PAIRS_WITH_COLON: &[&str] = &["header"];

/// A server restarts within it, unless `timeout` says otherwise.
const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

const SSH_KEYS: &[&str] = &["host", "user", "port", "key", "jump", "config", "options", "binary"];
