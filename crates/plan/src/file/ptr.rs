//! PTR configuration files: what a target, its generators and a sequence of scenarios are, for the drivers k6, wrk, h2load,
//! idle-connections and tls-perf. Each becomes a plan; several together become one whose steps run side by side.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::document::{self, Node, Value};
use super::read::parse_mode;
use super::{
    FileSpec, LoadOption, LoadSpec, Machine, MachineSettings, Place, PlanFile, Problem, Reach, SshSpec, Step,
    Text,
};
use crate::units::parse_duration;

/// What is given beside the files.
#[derive(Debug, Clone, Default)]
pub struct PtrOptions {
    /// ssh user on generators and bastion.
    pub user: Option<String>,
    /// Private key file.
    pub key: Option<String>,
    /// The host to go through.
    pub bastion: Option<String>,
    /// Whether the real tools make the load, instead of squall itself.
    pub external: bool,
    /// ssh's configuration file, instead of the user's.
    pub config: Option<String>,
}

/// Whether a text is such a file, by the keys at its top.
pub fn is_ptr(text: &str) -> bool {
    let Some(Node { value: Value::Map(entries), .. }) = document::parse(text, &mut Vec::new()) else {
        return false;
    };
    entries
        .iter()
        .any(|(key, _)| ["generator_driver", "generator_hosts", "scenarios"].contains(&key.value.as_str()))
}

/// Reads files that run at the same time.
///
/// # Errors
/// All that is wrong, with the number of the file.
pub fn parse_ptr(texts: &[String], options: &PtrOptions) -> Result<PlanFile, Vec<(usize, Problem)>> {
    let (mut plan, mut problems) = (PlanFile::default(), Vec::new());
    for (file_idx, text) in texts.iter().enumerate() {
        let prefix = if texts.len() > 1 { format!("{}: ", file_idx + 1) } else { String::new() };
        let mut found = Vec::new();
        if let Some(root) = document::parse(text, &mut found) {
            Reader { options, problems: &mut found, prefix }.file(&root, &mut plan);
        }
        problems.extend(found.into_iter().map(|problem| (file_idx, problem)));
    }
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

struct Reader<'a> {
    options: &'a PtrOptions,
    problems: &'a mut Vec<Problem>,
    /// Tells the loads of several files apart.
    prefix: String,
}

/// A mapping by key; every key that is read is known.
struct Fields<'n> {
    place: Place,
    entries: BTreeMap<&'n str, &'n Node>,
}

/// What every scenario of a file has in common.
struct Common {
    driver: Text,
    target: Option<Text>,
    on: Vec<Text>,
    files: Vec<FileSpec>,
}

impl Reader<'_> {
    fn file(&mut self, root: &Node, plan: &mut PlanFile) {
        let known = [
            "target_host",
            "generator_hosts",
            "generator_driver",
            "pause",
            "files_to_generator_hosts",
            "scenarios",
        ];
        let Some(fields) = self.fields(root, "a PTR file", &known) else { return };
        let Some(driver) = self.driver(&fields) else { return };
        let pause = self.seconds(&fields, "pause").unwrap_or_default();
        let on = self.machines(&fields, plan);
        let files = self.files(&fields, &on, plan);
        let target = self.optional(&fields, "target_host");
        let common = Common { driver, target, on, files };
        let scenarios = self.list(&fields, "scenarios");
        if scenarios.is_empty() {
            self.problem(fields.place, "there is no scenario", "give `scenarios` at least one entry");
        }
        for (idx, node) in scenarios.into_iter().enumerate() {
            let Some((name, load)) = self.scenario(node, &common, idx) else { continue };
            if plan.steps.len() <= idx {
                plan.steps.push(Step { name, ..Step::default() });
            }
            let step = &mut plan.steps[idx];
            step.loads.push(load);
            step.pause = step.pause.max(pause);
        }
    }

    fn driver(&mut self, fields: &Fields<'_>) -> Option<Text> {
        let driver = self.text(fields, "generator_driver").unwrap_or_default();
        if DRIVERS.contains(&driver.value.as_str()) {
            return Some(driver);
        }
        let message = format!("there is no driver `{}`", driver.value);
        self.problem(driver.place, message, format!("drivers: {}", DRIVERS.join(", ")));
        None
    }

    /// Generators, each one machine of the plan whatever number of files names it; without any, this machine.
    fn machines(&mut self, fields: &Fields<'_>, plan: &mut PlanFile) -> Vec<Text> {
        let mut on = Vec::new();
        for node in self.list(fields, "generator_hosts") {
            let Some(host) = self.scalar(node) else { continue };
            let (address, port) = match host.value.rsplit_once(':') {
                Some((address, port)) if !address.contains(':') => (address.to_owned(), port.parse().ok()),
                _ => (host.value.clone(), None),
            };
            let spec = SshSpec {
                host: address,
                user: self.options.user.clone(),
                port: Some(port.unwrap_or(22)),
                key: self.options.key.clone(),
                jump: self.options.bastion.clone(),
                config: self.options.config.clone(),
                ..SshSpec::default()
            };
            if plan.machine(&host.value).is_none() {
                plan.machines.push(Machine {
                    name: host.clone(),
                    reach: Reach::Ssh(spec),
                    weight: NonZeroU32::MIN,
                    settings: MachineSettings::default(),
                });
            }
            on.push(host);
        }
        on
    }

    /// Files for the generators; what another PTR file has named is in the plan already.
    fn files(&mut self, fields: &Fields<'_>, on: &[Text], plan: &mut PlanFile) -> Vec<FileSpec> {
        let nodes = self.list(fields, "files_to_generator_hosts").into_iter();
        let files: Vec<FileSpec> = nodes.filter_map(|node| self.copied(node, on)).collect();
        let is_known =
            |file: &FileSpec| plan.files.iter().any(|known| known.to == file.to && known.on == file.on);
        let new: Vec<FileSpec> = files.iter().filter(|file| !is_known(file)).cloned().collect();
        plan.files.extend(new);
        files
    }

    fn copied(&mut self, node: &Node, on: &[Text]) -> Option<FileSpec> {
        let fields = self.fields(node, "a file", &["local_path", "remote_addr", "file_permission"])?;
        let (from, mut to) = (self.text(&fields, "local_path")?, self.text(&fields, "remote_addr")?);
        // `host:/path`, as scp has it.
        if let Some((_, path)) = to.value.split_once(":/") {
            to.value = format!("/{path}");
        }
        let mode = match self.optional(&fields, "file_permission") {
            None => 0o644,
            Some(text) => parse_mode(&text.value)
                .map_err(|error| {
                    self.problem(
                        text.place,
                        format!("`file_permission: {}`: {}", text.value, error.reason),
                        error.help,
                    );
                })
                .ok()?,
        };
        Some(FileSpec { from, to, mode, on: on.to_vec() })
    }

    fn scenario(&mut self, node: &Node, common: &Common, idx: usize) -> Option<(String, LoadSpec)> {
        let fields = self.fields(node, "a scenario", &["desc", "target_file", "generator_config"])?;
        let name =
            self.optional(&fields, "desc").map_or_else(|| format!("scenario {}", idx + 1), |text| text.value);
        let file = self.optional(&fields, "target_file");
        let empty = Node { place: fields.place, value: Value::Map(Vec::new()) };
        let config = fields.entries.get("generator_config").copied().unwrap_or(&empty);
        let config = self.fields(config, "`generator_config`", CONFIG_KEYS)?;
        let mut load = LoadSpec {
            name: format!("{}{name}", self.prefix),
            kind: Text { value: String::new(), place: fields.place },
            arguments: Vec::new(),
            options: Vec::new(),
            on: common.on.clone(),
            is_whole: true,
            start_after: Duration::ZERO,
            thresholds: Vec::new(),
        };
        match common.driver.value.as_str() {
            "k6" => self.k6(&mut load, &config, common, file),
            "wrk" | "h2load" => self.http(&mut load, &config, common, file),
            "idle-connections" => self.idle(&mut load, &config, common),
            _ => self.handshakes(&mut load, &config, common),
        }
        Some((name, load))
    }

    fn k6(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common, file: Option<Text>) {
        let Some(script) = file else {
            self.problem(config.place, "k6 needs a `target_file`", "name its script");
            return;
        };
        // A script that is copied to the generators is here, too.
        let copied =
            common.files.iter().find(|file| file.to.value == script.value).map(|file| file.from.clone());
        let script = copied.unwrap_or(script);
        let base = |target: &Text| {
            let url = url(target, None, false);
            Text { value: url.value.trim_end_matches('/').to_owned(), ..url }
        };
        let target = common.target.as_ref().map(base);
        if self.options.external {
            "tool".clone_into(&mut load.kind.value);
            load.arguments.push(word("k6", script.place));
            push(load, "script", Some(script));
            push(load, "url", target);
            push(load, "path", self.optional(config, "command_path"));
        } else {
            "script".clone_into(&mut load.kind.value);
            load.arguments.push(script);
            let env = |target: Text| Text { value: format!("TARGET={}", target.value), ..target };
            push(load, "env", target.map(env));
        }
        push(load, "vus", self.optional(config, "vus").or_else(|| self.optional(config, "connections")));
        push(load, "duration", self.duration(config, "duration"));
    }

    fn http(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common, file: Option<Text>) {
        let Some(target) = self.target(config, common) else { return };
        let is_h2 = self
            .optional(config, "protocol")
            .map_or(common.driver.value == "h2load", |text| text.value != "h1");
        let is_lua = file.as_ref().is_some_and(|file| file.value.ends_with(".lua"));
        let address = url(&target, file.as_ref().filter(|_| !is_lua), self.is_tls(config, &target));
        if self.options.external {
            "tool".clone_into(&mut load.kind.value);
            load.arguments.push(word(&common.driver.value, address.place));
            push(load, "url", Some(address));
            push(load, "path", self.optional(config, "command_path"));
            push(load, "script", file.filter(|_| is_lua));
            if common.driver.value == "h2load" {
                push(load, "http", Some(word(if is_h2 { "2" } else { "1" }, config.place)));
                push(load, "streams", self.optional(config, "streams"));
                push(load, "requests", self.optional(config, "requests"));
            }
        } else if let Some(file) = file.filter(|_| is_lua) {
            self.problem(file.place, "a Lua script needs the real wrk", "run it with `--drivers external`");
        } else {
            "http".clone_into(&mut load.kind.value);
            let is_plain = address.value.starts_with("http://");
            load.arguments.push(address);
            match (is_h2, is_plain) {
                (true, true) => load.options.push(flag("h2c", config.place)),
                (true, false) => push(load, "http", Some(word("2", config.place))),
                (false, _) => {}
            }
            push(load, "streams", self.optional(config, "streams").filter(|_| is_h2));
            push(load, "requests", self.optional(config, "requests"));
            load.options.push(flag("insecure", config.place));
        }
        push(load, "connections", self.optional(config, "connections"));
        push(load, "threads", self.optional(config, "threads"));
        push(load, "duration", self.duration(config, "duration"));
        self.network(load, config);
    }

    fn idle(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common) {
        let Some(target) = self.target(config, common) else { return };
        "idle".clone_into(&mut load.kind.value);
        let is_tls = self.is_tls(config, &target);
        load.arguments.push(Text { value: authority(&target.value), place: target.place });
        if is_tls {
            load.options.extend([flag("tls", config.place), flag("insecure", config.place)]);
        }
        if self.optional(config, "protocol").is_some_and(|text| text.value == "h2") {
            push(load, "http", Some(word("2", config.place)));
        }
        push(load, "connections", self.optional(config, "connections"));
        push(load, "duration", self.duration(config, "duration"));
        push(load, "pause", self.duration(config, "pause"));
        push(load, "jitter", self.duration(config, "jitter"));
        self.network(load, config);
    }

    /// Of a number and a time the number wins; one of them is needed.
    fn handshakes(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common) {
        let Some(target) = self.target(config, common) else { return };
        let (count, duration) = (self.optional(config, "handshakes"), self.duration(config, "duration"));
        if count.is_none() && duration.is_none() {
            let help = "give `duration` in seconds, or `handshakes`, a number of them, which wins where both are given";
            self.problem(config.place, "tls-perf needs `duration` or `handshakes`", help);
        }
        let duration = duration.filter(|_| count.is_none());
        let threads = self.optional(config, "threads");
        let limit = self.optional(config, "limit-connections");
        let address = authority(&target.value);
        if self.options.external {
            "tool".clone_into(&mut load.kind.value);
            load.arguments.push(word("tls-perf", target.place));
            push(load, "url", Some(Text { value: format!("https://{address}"), place: target.place }));
            push(load, "path", self.optional(config, "command_path"));
            push(load, "threads", threads.clone());
        } else {
            "handshake".clone_into(&mut load.kind.value);
            load.arguments.push(Text { value: address, place: target.place });
            load.options.push(flag("insecure", config.place));
            self.network(load, config);
        }
        // The limit is of each thread.
        let number =
            |text: &Option<Text>| text.as_ref().map_or(1, |text| text.value.parse::<u64>().unwrap_or(1));
        let connections = number(&limit) * number(&threads);
        push(load, "connections", Some(word(&connections.to_string(), config.place)));
        push(load, "handshakes", count);
        push(load, "duration", duration);
        push(load, "tls", self.optional(config, "tls-version"));
        push(
            load,
            "tickets",
            self.optional(config, "process-tickets").map(|text| Text {
                value: match text.value.as_str() {
                    "true" => "on".to_owned(),
                    "false" => "off".to_owned(),
                    other => other.to_owned(),
                },
                place: text.place,
            }),
        );
    }

    fn network(&mut self, load: &mut LoadSpec, config: &Fields<'_>) {
        let nics = self.list(config, "bind-to-nics");
        let nics: Vec<Text> = nics.into_iter().filter_map(|node| self.scalar(node)).collect();
        if nics.is_empty() || load.kind.value == "tool" {
            return;
        }
        let flag = if load.kind.value == "http" { "source" } else { "bind-to-nics" };
        let named = |text: Text| {
            if flag == "source" { Text { value: format!("nic:{}*", text.value), ..text } } else { text }
        };
        load.options.push(LoadOption {
            name: word(flag, config.place),
            values: nics.into_iter().map(named).collect(),
        });
    }

    /// The scenario's own target, else the file's; with the scenario's port.
    fn target(&mut self, config: &Fields<'_>, common: &Common) -> Option<Text> {
        let own = self.optional(config, "target-ip").or_else(|| self.optional(config, "target"));
        let Some(mut target) = own.or_else(|| common.target.clone()) else {
            self.problem(config.place, "there is no target", "give the file a `target_host`");
            return None;
        };
        if let Some(port) = self.optional(config, "port") {
            let host = target.value.trim_end_matches('/');
            let has_port = authority_port(host).is_some();
            if !has_port {
                target.value = format!("{host}:{}", port.value);
            }
        }
        Some(target)
    }

    fn is_tls(&mut self, config: &Fields<'_>, target: &Text) -> bool {
        match self.optional(config, "tls") {
            Some(text) => text.value == "true",
            None => {
                target.value.starts_with("https://")
                    || matches!(authority_port(&target.value), Some(443 | 8443))
            }
        }
    }

    fn fields<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            self.problem(
                node.place,
                format!("{what} is a mapping, but here is {}", node.kind()),
                "write `\"key\": value` pairs",
            );
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.value.as_str())) {
            let message = format!("{what} has no key `{}`", key.value);
            self.problem(key.place, message, super::read::suggestion(&key.value, known, "keys"));
        }
        Some(Fields {
            place: node.place,
            entries: entries.iter().map(|(key, node)| (key.value.as_str(), node)).collect(),
        })
    }

    fn list<'n>(&mut self, fields: &Fields<'n>, key: &str) -> Vec<&'n Node> {
        match fields.entries.get(key).map(|node| (*node, &node.value)) {
            None | Some((_, Value::Null)) => Vec::new(),
            Some((_, Value::List(items))) => items.iter().collect(),
            Some((node, _)) => vec![node],
        }
    }

    fn scalar(&mut self, node: &Node) -> Option<Text> {
        match &node.value {
            Value::Scalar(value) => Some(Text { value: value.clone(), place: node.place }),
            _ => {
                self.problem(
                    node.place,
                    format!("{} where a single value belongs", node.kind()),
                    "write one text",
                );
                None
            }
        }
    }

    fn optional(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        let node = fields.entries.get(key).copied().filter(|node| node.value != Value::Null)?;
        self.scalar(node)
    }

    fn text(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        if !fields.entries.contains_key(key) {
            self.problem(fields.place, format!("`{key}` is missing"), "see docs/ptr.md");
        }
        self.optional(fields, key)
    }

    /// A number of seconds, or a text with a unit, as a text with a unit.
    fn duration(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        let mut text = self.optional(fields, key)?;
        if text.value.parse::<f64>().is_ok() {
            text.value.push('s');
        }
        match parse_duration(&text.value) {
            Ok(_) => Some(text),
            Err(error) => {
                self.problem(text.place, format!("`{key}: {}`: {}", text.value, error.reason), error.help);
                None
            }
        }
    }

    fn seconds(&mut self, fields: &Fields<'_>, key: &str) -> Option<Duration> {
        let text = self.duration(fields, key)?;
        parse_duration(&text.value).ok()
    }

    fn problem(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::at(place, message, help));
    }
}

fn push(load: &mut LoadSpec, name: &str, value: Option<Text>) {
    if let Some(value) = value {
        load.options.push(LoadOption { name: word(name, value.place), values: vec![value] });
    }
}

fn flag(name: &str, place: Place) -> LoadOption {
    LoadOption { name: word(name, place), values: Vec::new() }
}

fn word(value: &str, place: Place) -> Text {
    Text { value: value.to_owned(), place }
}

/// The URL of a file on the target.
fn url(target: &Text, file: Option<&Text>, is_tls: bool) -> Text {
    if let Some(file) = file.filter(|file| file.value.contains("://")) {
        return file.clone();
    }
    let scheme = if is_tls { "https://" } else { "http://" };
    let base =
        if target.value.contains("://") { target.value.clone() } else { format!("{scheme}{}", target.value) };
    let path = file.map_or("", |file| file.value.trim_start_matches('/'));
    Text { value: format!("{}/{path}", base.trim_end_matches('/')), place: target.place }
}

/// Host and port without scheme and path.
fn authority(target: &str) -> String {
    let rest = target.split("://").nth(1).unwrap_or(target);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

fn authority_port(target: &str) -> Option<u16> {
    let authority = authority(target);
    let (host, port) = authority.rsplit_once(':')?;
    if host.contains(':') && !host.ends_with(']') { None } else { port.parse().ok() }
}

const DRIVERS: &[&str] = &["k6", "wrk", "h2load", "idle-connections", "tls-perf"];

/// Keys of all drivers' configurations, those that the report's future work asks for among them.
const CONFIG_KEYS: &[&str] = &[
    "protocol",
    "command_path",
    "duration",
    "handshakes",
    "tls-version",
    "limit-connections",
    "threads",
    "process-tickets",
    "target-ip",
    "target",
    "port",
    "connections",
    "pause",
    "jitter",
    "bind-to-nics",
    "vus",
    "streams",
    "requests",
    "tls",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, external: bool) -> Result<PlanFile, Vec<String>> {
        let options = PtrOptions {
            user: Some("u".to_owned()),
            bastion: Some("b".to_owned()),
            external,
            ..PtrOptions::default()
        };
        let problems = |problems: Vec<(usize, Problem)>| {
            problems.iter().map(|(_, problem)| problem.to_string()).collect()
        };
        parse_ptr(&[text.to_owned()], &options).map_err(problems)
    }

    fn line(load: &LoadSpec) -> String {
        let options = load.options.iter().map(|option| {
            let values: Vec<&str> = option.values.iter().map(|text| text.value.as_str()).collect();
            format!(" {}={}", option.name.value, values.join("|"))
        });
        let arguments: Vec<&str> = load.arguments.iter().map(|text| text.value.as_str()).collect();
        format!("{} {}{}", load.kind.value, arguments.join(" "), options.collect::<String>())
    }

    const TLS_PERF: &str = r#"{"target_host": "10.0.0.9", "generator_hosts": ["10.0.0.1", "10.0.0.2:2222"], "generator_driver": "tls-perf", "pause": 5,
        "scenarios": [{"desc": "full", "generator_config": {"command_path": "/opt/tls-perf", "duration": 10, "handshakes": 500, "tls-version": "1.3",
        "limit-connections": 100, "threads": 2, "process-tickets": false, "target-ip": "10.0.0.10", "port": 8443}}]}"#;

    #[test]
    fn tls_perf_is_native_handshakes_or_the_real_tool() {
        let native = parse(TLS_PERF, false).unwrap();
        assert_eq!(native.steps[0].pause, Duration::from_secs(5));
        assert_eq!(
            line(&native.steps[0].loads[0]),
            "handshake 10.0.0.10:8443 insecure= connections=200 handshakes=500 tls=1.3 tickets=off"
        );
        let Reach::Ssh(spec) = &native.machines[1].reach else { panic!("ssh") };
        assert_eq!(
            (spec.host.as_str(), spec.port, spec.jump.as_deref()),
            ("10.0.0.2", Some(2222), Some("b"))
        );
        let external = parse(TLS_PERF, true).unwrap();
        assert_eq!(
            line(&external.steps[0].loads[0]),
            "tool tls-perf url=https://10.0.0.10:8443 path=/opt/tls-perf threads=2 connections=200 handshakes=500 tls=1.3 tickets=off"
        );
    }

    #[test]
    fn the_other_drivers_have_native_loads_too() {
        let file = |driver: &str, target_file: &str, config: &str| {
            let text = format!(
                r#"{{"target_host": "shop:8080", "generator_hosts": "g", "generator_driver": "{driver}",
                "files_to_generator_hosts": [{{"local_path": "a.js", "remote_addr": "/tmp/a.js", "file_permission": "0640"}}],
                "scenarios": [{{"desc": "x", "target_file": "{target_file}", "generator_config": {config}}}]}}"#
            );
            parse(&text, false).map(|plan| line(&plan.steps[0].loads[0]))
        };
        let config = r#"{"connections": 10, "duration": "1m", "protocol": "h1"}"#;
        assert_eq!(
            file("wrk", "/index.html", config).unwrap(),
            "http http://shop:8080/index.html insecure= connections=10 duration=1m"
        );
        let config = r#"{"connections": 10, "duration": 5, "streams": 4, "port": 443}"#;
        assert_eq!(
            file("h2load", "", config).unwrap(),
            "http http://shop:8080/ h2c= streams=4 insecure= connections=10 duration=5s"
        );
        assert_eq!(
            file("k6", "/tmp/a.js", r#"{"vus": 5, "duration": 3}"#).unwrap(),
            "script a.js env=TARGET=http://shop:8080 vus=5 duration=3s"
        );
        let config = r#"{"target": "10.0.0.3", "port": 443, "connections": 1000, "duration": 60, "pause": 0.001, "jitter": "1ms", "bind-to-nics": ["eth"]}"#;
        assert_eq!(
            file("idle-connections", "", config).unwrap(),
            "idle 10.0.0.3:443 tls= insecure= connections=1000 duration=60s pause=0.001s jitter=1ms bind-to-nics=eth"
        );
        assert!(file("wrk", "a.lua", "{}").unwrap_err()[0].contains("a Lua script needs the real wrk"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (from, to, expected) in [
            ("\"duration\": 10, \"handshakes\": 500,", "", "tls-perf needs `duration` or `handshakes`"),
            ("tls-perf\", \"pause", "tlsperf\", \"pause", "there is no driver `tlsperf`"),
            ("\"threads\"", "\"treads\"", "`generator_config` has no key `treads`"),
            ("\"pause\": 5", "\"pause\": \"x\"", "`pause: x`: not a number"),
            (
                "\"generator_hosts\"",
                "\"files_to_generator_hosts\": [{\"local_path\": \"a\", \"remote_addr\": \"/b\", \"file_permission\": \"rwx\"}], \"generator_hosts\"",
                "`file_permission: rwx`: not octal permissions",
            ),
        ] {
            let text = TLS_PERF.replace(from, to);
            assert_ne!(text, TLS_PERF);
            let problems = parse(&text, false).unwrap_err();
            assert!(problems[0].contains(expected), "{problems:?}");
        }
    }

    #[test]
    fn several_files_run_side_by_side() {
        let texts = [TLS_PERF.to_owned(), TLS_PERF.replace("10.0.0.2:2222", "10.0.0.3")];
        let plan = parse_ptr(&texts, &PtrOptions::default()).unwrap();
        assert_eq!((plan.machines.len(), plan.steps.len(), plan.steps[0].loads.len()), (3, 1, 2));
        assert_eq!(plan.steps[0].loads[1].name, "2: full");
        assert!(is_ptr(TLS_PERF) && !is_ptr("loads: []") && !is_ptr("{"));
    }
}
