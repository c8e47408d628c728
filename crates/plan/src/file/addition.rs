//! What is given next to PTR files, which know no monitors: a plan file without loads, and monitors as typed on the command line.
//!
//! Owns: what such a plan may say, and the form of a typed monitor. Never: reads files.

use std::num::NonZeroU32;
use std::path::Path;

use super::document::{self, Node, Value};
use super::kubernetes::KubernetesPool;
use super::{
    Machine, MachineSettings, MonitorSpec, Place, PlanFile, Problem, PtrOptions, Reach, SshSpec, Text,
    Variables, Watched, read,
};

impl PlanFile {
    /// Adds what a plan file in `folder` says that has no loads. Its monitors, files and hooks may name the machines of this plan, too.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the file.
    pub fn add(&mut self, text: &str, folder: &Path, variables: &Variables<'_>) -> Result<(), Vec<Problem>> {
        let (mut added, problems) = Self::read_next_to(Some(self), text, variables);
        if !problems.is_empty() {
            return Err(problems);
        }
        for file in &mut added.files {
            file.from.value = folder.join(&file.from.value).to_string_lossy().into_owned();
        }
        self.lost_after = added.lost_after.or(self.lost_after);
        self.lost_count_allowed = self.lost_count_allowed.max(added.lost_count_allowed);
        self.name = added.name.or_else(|| self.name.take());
        self.machines.extend(added.machines);
        self.monitors.extend(added.monitors);
        self.files.extend(added.files);
        self.before.extend(added.before);
        self.after.extend(added.after);
        self.thresholds.extend(added.thresholds);
        Ok(())
    }

    /// Adds a monitor as typed: `target: process=h2o`, `nginx=http://10.0.0.9/nginx_status`. `target` is the machine that the name
    /// `target` stands for, where no machine of the plan has it.
    ///
    /// # Errors
    /// What is wrong with it; its place says nothing.
    pub fn add_monitor(&mut self, text: &str, target: Option<&Machine>) -> Result<(), Problem> {
        let mut problems = Vec::new();
        let monitor = read::monitor(&typed(text)?, &KubernetesPool::default(), &mut problems);
        let Some(mut monitor) = monitor.filter(|_| problems.is_empty()) else {
            let problem = problems.into_iter().next();
            return Err(problem.unwrap_or_else(|| Problem::at(Place::START, "it is empty", TYPED_HELP)));
        };
        let MonitorSpec { what, from, .. } = &mut monitor;
        let named = if let Watched::Machine { machine, .. } = what { Some(machine) } else { from.as_mut() };
        if let Some(name) = named {
            self.find_or_add(name, target)?;
        }
        self.monitors.push(monitor);
        Ok(())
    }

    /// Puts the machine's own name in the place of `target`, and the machine into the plan.
    fn find_or_add(&mut self, name: &mut Text, target: Option<&Machine>) -> Result<(), Problem> {
        if self.machine(&name.value).is_some() {
            return Ok(());
        }
        let Some(target) =
            target.filter(|target| [TARGET, &target.name.value].contains(&name.value.as_str()))
        else {
            let known: Vec<&str> = [TARGET]
                .into_iter()
                .chain(self.machines.iter().map(|machine| machine.name.value.as_str()))
                .collect();
            let message = format!("there is no machine `{}`", name.value);
            return Err(Problem::at(
                Place::START,
                message,
                read::suggestion(&name.value, &known, "machines"),
            ));
        };
        name.value.clone_from(&target.name.value);
        if self.machine(&target.name.value).is_none() {
            self.machines.push(target.clone());
        }
        Ok(())
    }
}

/// The machine of a PTR file's `target_host`, reached as its generators are; `None` where the file names none.
pub fn ptr_target(text: &str, options: &PtrOptions) -> Option<Machine> {
    let Node { value: Value::Map(entries), .. } = document::parse(text, &mut Vec::new())? else {
        return None;
    };
    let (_, node) = entries.iter().find(|(key, _)| key.value == "target_host")?;
    let Value::Scalar(target) = &node.value else { return None };
    let rest = target.split("://").nth(1).unwrap_or(target);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')) => {
            host
        }
        _ => authority,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let spec = SshSpec {
        host: host.to_owned(),
        user: options.user.clone(),
        key: options.key.clone(),
        jump: options.bastion.clone(),
        config: options.config.clone(),
        ..SshSpec::default()
    };
    let name = Text { value: host.to_owned(), place: node.place };
    let settings = MachineSettings::default();
    Some(Machine { name, reach: Reach::Ssh(spec), weight: NonZeroU32::MIN, settings })
}

/// The entry of a plan's `monitors` that a typed one stands for. The machine before the colon is the one that is monitored, or the one
/// that reads a page.
fn typed(text: &str) -> Result<Node, Problem> {
    let wrong = |message: String| Problem::at(Place::START, message, TYPED_HELP);
    let (machine, rest) = match text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, ""))) {
        Some((machine, rest)) => (machine.trim(), rest),
        None if !text.contains('=') => (text.trim(), ""),
        None => ("", text),
    };
    let mut entries: Vec<(Text, Node)> = Vec::new();
    for pair in parts(rest) {
        let (key, value) = pair.split_once('=').ok_or_else(|| wrong(format!("`{pair}` has no `=`")))?;
        let value = scalar(value.trim());
        match entries.iter_mut().find(|(known, _)| known.value == key.trim()) {
            None => entries
                .push((word(key.trim()), Node { place: Place::START, value: Value::List(vec![value]) })),
            Some((_, Node { value: Value::List(values), .. })) => values.push(value),
            Some(_) => {}
        }
    }
    for (key, node) in &mut entries {
        // One value alone is no list.
        if let Value::List(values) = &mut node.value
            && let (false, [value]) = (LISTS.contains(&key.value.as_str()), &mut values[..])
        {
            *node = value.clone();
        }
    }
    if !machine.is_empty() {
        let is_page = entries.iter().any(|(key, _)| PAGES.contains(&key.value.as_str()));
        entries.push((word(if is_page { "from" } else { "machine" }), scalar(machine)));
    }
    Ok(Node { place: Place::START, value: Value::Map(entries) })
}

/// Takes a text apart at commas, but not within braces or quotes, which labels of series have.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut is_quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn word(value: &str) -> Text {
    Text { value: value.to_owned(), place: Place::START }
}

fn scalar(value: &str) -> Node {
    Node { place: Place::START, value: Value::Scalar(value.to_owned()) }
}

/// The PTR file's target, as monitors name it.
const TARGET: &str = "target";

const PAGES: [&str; 3] = ["prometheus", "nginx", "h2o"];

/// Keys that may have several values.
const LISTS: [&str; 3] = ["process", "processes", "series"];

const TYPED_HELP: &str = "write `target: process=h2o`, or `nginx=http://10.0.0.9/nginx_status`";

#[cfg(test)]
mod tests {
    use super::*;

    const PTR: &str = r#"{"target_host": "https://10.0.0.9:8443/", "generator_hosts": ["10.0.0.1"], "generator_driver": "wrk", "scenarios":
        [{"desc": "one", "generator_config": {"connections": 1, "duration": 1}}]}"#;

    fn plan() -> (PlanFile, Option<Machine>) {
        let options = PtrOptions { user: Some("load".to_owned()), ..PtrOptions::default() };
        let machine = |name: &str| Machine {
            name: word(name),
            reach: Reach::Ssh(SshSpec::default()),
            weight: NonZeroU32::MIN,
            settings: MachineSettings::default(),
        };
        let plan = PlanFile { machines: vec![machine("10.0.0.1")], ..PlanFile::default() };
        (plan, ptr_target(PTR, &options))
    }

    #[test]
    fn monitors_are_typed_as_their_machine_and_what_is_read() {
        let machine = |processes: &[&str]| Watched::Machine {
            machine: word("10.0.0.9"),
            processes: processes.iter().map(|name| (*name).to_owned()).collect(),
        };
        let url = || word("http://x/status");
        let series = vec!["up{a=\"b,c\",d=\"e\"}".to_owned(), "other".to_owned()];
        for (typed, what, from) in [
            ("target", machine(&[]), None),
            ("target:", machine(&[]), None),
            ("target: process=h2o", machine(&["h2o"]), None),
            ("10.0.0.9: process=h2o, process=nginx", machine(&["h2o", "nginx"]), None),
            ("nginx=http://x/status", Watched::Nginx { url: url() }, None),
            ("target: h2o=http://x/status", Watched::H2o { url: url() }, Some("10.0.0.9")),
            (
                "10.0.0.1: prometheus=http://x/status, series=up{a=\"b,c\",d=\"e\"}, series=other",
                Watched::Prometheus { url: url(), series },
                Some("10.0.0.1"),
            ),
        ] {
            let (mut plan, target) = plan();
            plan.add_monitor(typed, target.as_ref()).unwrap();
            let [monitor] = &plan.monitors[..] else { panic!("{typed}: {:?}", plan.monitors) };
            assert_eq!((&monitor.what, monitor.from.as_ref()), (&what, from.map(word).as_ref()), "{typed}");
            let names_target = typed.starts_with("target") || typed.starts_with("10.0.0.9");
            let added = plan.machine("10.0.0.9").map(|machine| machine.reach.clone());
            assert_eq!(added.is_some(), names_target, "{typed}");
            if let Some(Reach::Ssh(spec)) = added {
                assert_eq!(spec.destination(), "load@10.0.0.9");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_typed_monitor_is_reported() {
        for (typed, expected) in [
            ("shop: process=h2o", "there is no machine `shop`"),
            ("target: h2o", "`h2o` has no `=`"),
            ("target: proces=h2o", "a monitor has no key `proces`"),
            ("nginx=shop", "not an http or https URL"),
            ("process=h2o", "a monitor has no key `process`"),
        ] {
            let (mut plan, target) = plan();
            let problem = plan.add_monitor(typed, target.as_ref()).unwrap_err();
            assert!(problem.message.contains(expected), "{typed}: {problem:?}");
        }
    }

    #[test]
    fn a_plan_without_loads_adds_to_the_one_that_has_them() {
        let variables = Variables { given: &[], environment: &|_| None, hosts: &|_| Err(String::new()) };
        let (mut plan, _) = plan();
        let text = "machines: { shop: ops@10.0.0.9 }\nmonitors: [{ machine: shop }, { nginx: 'http://x/', from: 10.0.0.1 }]\n\
                    before: { run: reload, on: shop }\n\
                    files: [{ from: a, to: /b, on: 10.0.0.1 }]\nthresholds: ['errors<1%']\n";
        plan.add(text, Path::new("/plans"), &variables).unwrap();
        assert_eq!(
            (plan.machines.len(), plan.monitors.len(), plan.before.len(), plan.thresholds.len()),
            (2, 2, 1, 1)
        );
        assert_eq!(plan.files[0].from.value, "/plans/a");
        for (text, expected) in [
            ("loads: [{ http: / }]", "1:8: a plan used with PTR files has no `loads`"),
            ("target: http://x/", "1:9: a plan used with PTR files has no `target`"),
            ("monitors: [{ machine: shp }]", "1:23: there is no machine `shp`"),
            ("machines: { shop: x }", "1:13: two machines are called `shop`"),
        ] {
            let problems = plan.add(text, Path::new("/plans"), &variables).unwrap_err();
            assert!(problems[0].to_string().contains(expected), "{text}: {problems:?}");
        }
    }
}
