//! Many machines in few words: ranges (`g[1-40]`), groups of machines, and lists of hosts that a file or a command gives.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::document::{Node, Value, single, texts};
use super::{Machine, MachineSettings, PlanFile, Problem, Reach, SshSpec, Text};
use crate::InputError;
use crate::limits::MACHINE_COUNT_MAX;

/// Where a list of hosts comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSource {
    /// A file, relative to the plan.
    File(String),
    /// What a program prints.
    Command(Vec<String>),
}

/// Gives the list of hosts from where the plan says; or why it cannot.
pub type HostList<'a> = &'a dyn Fn(&HostSource) -> Result<String, String>;

/// Groups by name, with the names of their machines.
pub(super) type Groups = BTreeMap<String, Vec<String>>;

/// A name or address for each number of the range in it; itself where it has none. `g[08-10]` is `g08`, `g09` and `g10`.
fn expand(text: &str) -> Result<Vec<String>, InputError> {
    let Some((before, (first, last), after)) = range(text) else { return Ok(vec![text.to_owned()]) };
    let wrong = |reason: &str| InputError::at(text, before.len(), reason, "write a range such as `g[1-40]`");
    let (Ok(from), Ok(to)) = (first.parse::<usize>(), last.parse::<usize>()) else {
        return Err(wrong("numbers that are too large"));
    };
    if from > to {
        return Err(wrong("a range that ends before it starts"));
    }
    if to - from >= MACHINE_COUNT_MAX {
        return Err(wrong("a range of too many machines"));
    }
    if range(after).is_some() {
        return Err(wrong("more than one range in a name"));
    }
    let width = first.len();
    Ok((from..=to).map(|number| format!("{before}{number:0width$}{after}")).collect())
}

/// What is before a range, its two numbers, and what is after it. The brackets of an IPv6 address are none.
fn range(text: &str) -> Option<(&str, (&str, &str), &str)> {
    let open = text.find('[')?;
    let close = open + text[open..].find(']')?;
    let (first, last) = text[open + 1..close].split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_range = is_number(first) && is_number(last);
    is_range.then_some((&text[..open], (first, last), &text[close + 1..]))
}

/// Machines for an entry whose name may have a range. Its destination may have one of the same length.
pub(super) fn spread(machine: Machine, problems: &mut Vec<Problem>) -> Vec<Machine> {
    let place = machine.name.place;
    let mut expanded = |text: &str| match expand(text) {
        Ok(texts) => texts,
        Err(error) => {
            problems.push(Problem::at(place, format!("`{text}`: {}", error.reason), error.help));
            vec![text.to_owned()]
        }
    };
    let names = expanded(&machine.name.value);
    let hosts = match &machine.reach {
        Reach::Ssh(spec) => expanded(&spec.host),
        Reach::Local | Reach::Command(_) => Vec::new(),
        Reach::Pod { .. } if names.len() > 1 => {
            let help = "one name stands for all pods: `replicas` says how many";
            problems.push(Problem::at(place, format!("`{}`: a pool has no range", machine.name.value), help));
            return vec![machine];
        }
        Reach::Pod { .. } => return super::kubernetes::machines(&machine),
    };
    if hosts.len() != names.len() && hosts.len() > 1 || hosts.len() == 1 && names.len() > 1 {
        let host_count =
            if hosts.len() == 1 { "one host".to_owned() } else { format!("{} hosts", hosts.len()) };
        let message = format!("{} names for {host_count}", names.len());
        let help = "give name and host ranges of the same length, such as `g[1-3]: 10.0.0.[11-13]`";
        problems.push(Problem::at(place, message, help));
        return vec![machine];
    }
    let host_of = |idx: usize| hosts.get(idx).cloned().unwrap_or_default();
    let named = names.into_iter().enumerate().map(|(idx, name)| {
        let reach = match &machine.reach {
            Reach::Ssh(spec) => Reach::Ssh(SshSpec { host: host_of(idx), ..spec.clone() }),
            other => other.clone(),
        };
        Machine { name: Text { value: name, place }, reach, ..machine.clone() }
    });
    named.collect()
}

/// Each pool of pods is a group of that name.
pub(super) fn add_pools(machines: &[Machine], groups: &mut Groups, problems: &mut Vec<Problem>) {
    let mut pools = Groups::new();
    for machine in machines {
        let Reach::Pod { pool, .. } = &machine.reach else { continue };
        if groups.contains_key(&pool.name) && !pools.contains_key(&pool.name) {
            let message = format!("both a pool of pods and a group are called `{}`", pool.name);
            problems.push(Problem::at(machine.name.place, message, "rename one of them"));
        }
        pools.entry(pool.name.clone()).or_default().push(machine.name.value.clone());
    }
    // A group may contain a pool.
    for members in groups.values_mut() {
        let of_pool = |name: String| pools.get(&name).cloned().unwrap_or_else(|| vec![name]);
        *members = std::mem::take(members).into_iter().flat_map(of_pool).collect();
    }
    groups.append(&mut pools);
}

/// Where the key `inventory` says that the hosts are listed.
fn source(node: &Node, problems: &mut Vec<Problem>) -> Option<HostSource> {
    match &node.value {
        Value::Scalar(path) => Some(HostSource::File(path.clone())),
        Value::Map(entries) if entries.len() == 1 && entries[0].0.value == "command" => {
            let words = match &entries[0].1.value {
                Value::Scalar(text) => text.split_whitespace().map(str::to_owned).collect(),
                _ => texts(&entries[0].1, "=", problems).into_iter().map(|text| text.value).collect(),
            };
            Some(HostSource::Command(words))
        }
        _ => {
            let help = "write `inventory: hosts.txt`, or `inventory: { command: [program, argument] }`";
            let message = format!("`inventory` is {}, neither a file nor a command", node.kind());
            problems.push(Problem::at(node.place, message, help));
            None
        }
    }
}

/// The machines of the list that `inventory` names.
pub(super) fn read(
    node: &Node,
    list: HostList<'_>,
    defaults: &SshSpec,
    groups: &mut Groups,
    problems: &mut Vec<Problem>,
) -> Vec<Machine> {
    let Some(source) = source(node, problems) else { return Vec::new() };
    match list(&source) {
        Ok(text) => hosts(&text, node, defaults, groups, problems),
        Err(reason) => {
            let help = "name a file relative to the plan, or a command that prints a host on each line";
            problems.push(Problem::at(node.place, format!("cannot read the list of hosts: {reason}"), help));
            Vec::new()
        }
    }
}

/// The machines of a list: a line is `[user@]host[:port]`, or a name and that; `[group]` begins a group, `#` a comment.
fn hosts(
    text: &str,
    node: &Node,
    defaults: &SshSpec,
    groups: &mut Groups,
    problems: &mut Vec<Problem>,
) -> Vec<Machine> {
    let (mut machines, mut group) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let heading = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, destination) = match (heading.filter(|_| range(line).is_none()), &words[..]) {
            (_, []) => continue,
            (Some(heading), _) => {
                group = Some(heading.trim().to_owned());
                continue;
            }
            (None, [host]) => (bare_host(host), *host),
            (None, [name, destination]) => (*name, *destination),
            (None, _) => {
                let message = format!("inventory, line {number}: `{line}` is not a machine");
                let help = "write `[user@]host[:port]`, optionally after a name, on each line";
                problems.push(Problem::at(node.place, message, help));
                continue;
            }
        };
        let machine = Machine {
            name: Text { value: name.to_owned(), place: node.place },
            reach: Reach::Ssh(with_destination(defaults.clone(), destination)),
            weight: NonZeroU32::MIN,
            settings: MachineSettings::default(),
        };
        let spread = spread(machine, problems);
        if let Some(group) = &group {
            let names = spread.iter().map(|machine| machine.name.value.clone());
            groups.entry(group.clone()).or_default().extend(names);
        }
        machines.extend(spread);
    }
    machines
}

/// `[user@]host[:port]`, where the host may be `[v6]`.
pub(super) fn with_destination(mut spec: SshSpec, text: &str) -> SshSpec {
    let rest = match text.rsplit_once('@') {
        Some((user, rest)) => {
            spec.user = Some(user.to_owned());
            rest
        }
        None => text,
    };
    let split = rest.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let port = split.and_then(|(_, port)| port.parse().ok());
    let host = if port.is_some() { split.map_or(rest, |(host, _)| host) } else { rest };
    spec.port = port.or(spec.port);
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    address.filter(|address| address.contains(':')).unwrap_or(host).clone_into(&mut spec.host);
    spec
}

/// A destination without its user.
fn bare_host(destination: &str) -> &str {
    destination.rsplit('@').next().unwrap_or(destination)
}

/// The key `groups`: names of machines by the group's name.
pub(super) fn groups(node: &Node, problems: &mut Vec<Problem>) -> Groups {
    let Value::Map(entries) = &node.value else {
        let message = format!("`groups` is {}, not a mapping", node.kind());
        problems.push(Problem::at(node.place, message, "write `name: [machine, machine]` lines below it"));
        return Groups::new();
    };
    let mut groups = Groups::new();
    for (name, node) in entries {
        let members = match &node.value {
            Value::List(items) => items.iter().filter_map(|item| single(item, problems)).collect(),
            _ => texts(node, "", problems),
        };
        groups
            .insert(name.value.clone(), members.iter().flat_map(|text| members_of(text, problems)).collect());
    }
    groups
}

fn members_of(text: &Text, problems: &mut Vec<Problem>) -> Vec<String> {
    expand(&text.value).unwrap_or_else(|error| {
        problems.push(Problem::at(text.place, format!("`{}`: {}", text.value, error.reason), error.help));
        Vec::new()
    })
}

/// Puts machines in the place of groups and ranges, wherever machines are named.
pub(super) fn resolve(file: &mut PlanFile, groups: &Groups, problems: &mut Vec<Problem>) {
    let PlanFile { steps, files, before, after, .. } = file;
    let mut lists: Vec<&mut Vec<Text>> = files.iter_mut().map(|file| &mut file.on).collect();
    lists.extend(before.iter_mut().chain(after).map(|hook| &mut hook.on));
    for step in steps {
        lists.extend(step.loads.iter_mut().map(|load| &mut load.on));
        lists.extend(step.before.iter_mut().chain(&mut step.after).map(|hook| &mut hook.on));
    }
    for on in lists {
        let named = std::mem::take(on);
        for text in named {
            let members = match groups.get(&text.value) {
                Some(members) => members.clone(),
                None => members_of(&text, problems),
            };
            on.extend(members.into_iter().map(|value| Text { value, place: text.place }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_out() {
        for (text, expected) in [
            ("g", Ok(vec!["g"])),
            ("g[1-3]", Ok(vec!["g1", "g2", "g3"])),
            ("g[08-10].lab", Ok(vec!["g08.lab", "g09.lab", "g10.lab"])),
            ("[::1]", Ok(vec!["[::1]"])),
            ("g[a-b]", Ok(vec!["g[a-b]"])),
            ("g[3-1]", Err("a range that ends before it starts")),
            ("g[1-99999999]", Err("a range of too many machines")),
            ("g[1-2][1-2]", Err("more than one range in a name")),
            ("g[1-99999999999999999999999]", Err("numbers that are too large")),
        ] {
            let expanded = expand(text).map_err(|error| error.reason);
            let expected = expected.map(|texts| texts.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(expanded, expected.map_err(str::to_owned), "{text}");
        }
    }
}
