//! The five drivers of PTR: the keys of their `generator_config`, and the load that each describes, made by squall or by the real tool.
//!
//! What a scenario leaves out has the default of the tool that PTR started. `docs/ptr.md` has all keys in a table.
//! Owns: that mapping. Never: reads a value itself; `fields` does.

use super::super::{FileSpec, LoadSpec, Place, Text};
use super::fields::{Fields, Reader, Unit};
use crate::GivenOption;

/// What makes the load of a file's scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    K6,
    Wrk,
    H2load,
    Idle,
    TlsPerf,
}

/// What every scenario of a file has in common.
pub(super) struct Common {
    pub(super) driver: Driver,
    pub(super) target: Option<Text>,
    pub(super) on: Vec<Text>,
    pub(super) files: Vec<FileSpec>,
}

impl Driver {
    pub(super) const ALL: [Self; 5] = [Self::K6, Self::Wrk, Self::H2load, Self::Idle, Self::TlsPerf];

    /// By its name in any case.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|driver| driver.name().eq_ignore_ascii_case(name))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::K6 => "k6",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Idle => "idle-connections",
            Self::TlsPerf => "tls-perf",
        }
    }

    /// The keys of its `generator_config`.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::K6 => &["protocol", "vus", "duration", "command_path"],
            Self::Wrk => &[
                "protocol",
                "connections",
                "threads",
                "duration",
                "port",
                "tls",
                "bind-to-nics",
                "command_path",
            ],
            Self::H2load => &[
                "protocol",
                "connections",
                "threads",
                "streams",
                "requests",
                "duration",
                "port",
                "tls",
                "bind-to-nics",
                "command_path",
            ],
            Self::Idle => &[
                "target",
                "port",
                "protocol",
                "connections",
                "duration",
                "pause",
                "jitter",
                "tls",
                "bind-to-nics",
            ],
            Self::TlsPerf => &[
                "target-ip",
                "port",
                "duration",
                "handshakes",
                "tls-version",
                "limit-connections",
                "threads",
                "process-tickets",
                "bind-to-nics",
                "command_path",
            ],
        }
    }
}

impl Reader<'_> {
    /// Describes the load of a scenario.
    pub(super) fn drive(
        &mut self,
        load: &mut LoadSpec,
        config: &Fields<'_>,
        common: &Common,
        file: Option<Text>,
    ) {
        match common.driver {
            Driver::K6 => self.k6(load, config, common, file),
            Driver::Wrk => self.wrk(load, config, common, file),
            Driver::H2load => self.h2load(load, config, common, file.as_ref()),
            Driver::Idle => self.idle(load, config, common),
            Driver::TlsPerf => self.handshakes(load, config, common),
        }
    }

    fn k6(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common, file: Option<Text>) {
        let Some(script) = file else {
            self.problem(config.place, "k6 needs a `target_file`", "name its script");
            return;
        };
        // A script that is copied to the generators is here, too.
        let copied = common.files.iter().find(|file| file.to.value == script.value);
        let script = copied.map_or_else(|| self.local(script), |file| file.from.clone());
        let target = common.target.as_ref().map(|target| {
            let url = url(target, None, self.is_tls(config, target));
            Text { value: url.value.trim_end_matches('/').to_owned(), ..url }
        });
        if self.is_tool(load, config, common.driver) {
            push(load, "script", Some(script));
            push(load, "url", target);
        } else {
            "script".clone_into(&mut load.kind.value);
            load.arguments.push(script);
            push(
                load,
                "env",
                target.map(|target| Text { value: format!("TARGET={}", target.value), ..target }),
            );
        }
        // Without it k6 speaks what the server prefers, which `h2` asks for.
        if let Some(("h1", place)) = self.choice(config, "protocol", PROTOCOLS) {
            push(load, "http", Some(word("1.1", place)));
        }
        push(load, "vus", self.count(config, "vus"));
        push(load, "duration", self.duration(config, "duration", Unit::Seconds));
    }

    fn wrk(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common, file: Option<Text>) {
        let lua = file.clone().filter(|file| file.value.ends_with(".lua")).map(|file| self.local(file));
        let path = file.filter(|_| lua.is_none());
        if let Some(("h2", place)) = self.choice(config, "protocol", PROTOCOLS) {
            let help = "leave `protocol` out, or set `generator_driver` to h2load";
            self.problem(place, "`protocol: h2`: wrk speaks HTTP/1.1 only", help);
        }
        let Some(address) = self.http_url(config, common, path.as_ref()) else { return };
        if self.is_tool(load, config, common.driver) {
            push(load, "url", Some(address));
            push(load, "script", lua);
        } else if let Some(lua) = lua {
            self.problem(lua.place, "a Lua script needs the real wrk", "run it with `--drivers external`");
        } else {
            self.native_http(load, config, address);
        }
        self.clients(load, config, "10");
        let duration = self.duration(config, "duration", Unit::Seconds);
        push(load, "duration", Some(duration.unwrap_or_else(|| word("10s", config.place))));
        self.network(load, config, common.driver);
    }

    fn h2load(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common, file: Option<&Text>) {
        let is_h2 = self.choice(config, "protocol", PROTOCOLS).is_none_or(|(version, _)| version == "h2");
        let Some(address) = self.http_url(config, common, file) else { return };
        if self.is_tool(load, config, common.driver) {
            push(load, "url", Some(address));
            push(load, "http", Some(word(if is_h2 { "2" } else { "1" }, config.place)));
        } else {
            let address = if is_h2 { as_http_2(&address) } else { address };
            self.native_http(load, config, address);
        }
        self.clients(load, config, "1");
        push(load, "streams", self.count(config, "streams").filter(|_| is_h2));
        let requests = self.count(config, "requests");
        match self.duration(config, "duration", Unit::Seconds) {
            Some(duration) => push(load, "duration", Some(duration)),
            None => push(load, "requests", Some(requests.unwrap_or_else(|| word("1", config.place)))),
        }
        self.network(load, config, common.driver);
    }

    /// `connections` of each interface that it binds to.
    fn idle(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common) {
        let is_h2 = matches!(self.choice(config, "protocol", PROTOCOLS), Some(("h2", _)));
        let Some(target) = self.target(config, common, "target") else { return };
        "idle".clone_into(&mut load.kind.value);
        let is_tls = self.is_tls(config, &target);
        load.arguments.push(Text { value: authority(&target.value), place: target.place });
        if is_tls {
            load.options.extend([flag("tls", config.place), flag("insecure", config.place)]);
        }
        if is_h2 {
            push(load, "http", Some(word("2", config.place)));
        }
        push(load, "connections", self.count(config, "connections"));
        push(load, "duration", self.duration(config, "duration", Unit::Seconds));
        push(load, "pause", self.positive(config, "pause"));
        push(load, "jitter", self.positive(config, "jitter"));
        self.network(load, config, common.driver);
    }

    /// Of a number and a time the number wins; one of them is needed.
    fn handshakes(&mut self, load: &mut LoadSpec, config: &Fields<'_>, common: &Common) {
        let Some(target) = self.target(config, common, "target-ip") else { return };
        let count = self.count(config, "handshakes");
        let duration = self.duration(config, "duration", Unit::Seconds);
        if config.get("handshakes").is_none() && config.get("duration").is_none() {
            let help =
                "give `duration` in seconds, or `handshakes` as a number; `handshakes` takes precedence";
            self.problem(config.place, "tls-perf needs `duration` or `handshakes`", help);
        }
        let duration = duration.filter(|_| count.is_none());
        let threads = self.count(config, "threads");
        let limit = self.count(config, "limit-connections");
        let address = authority(&target.value);
        if self.is_tool(load, config, common.driver) {
            push(load, "url", Some(Text { value: format!("https://{address}"), place: target.place }));
            push(load, "threads", threads.clone());
        } else {
            "handshake".clone_into(&mut load.kind.value);
            load.arguments.push(Text { value: address, place: target.place });
            load.options.push(flag("insecure", config.place));
        }
        // The tool's limit is of each of its threads.
        let or_one = |count: Option<Text>| count.as_ref().map_or(1, number);
        let connections = or_one(limit).saturating_mul(or_one(threads));
        push(load, "connections", Some(word(&connections.to_string(), config.place)));
        push(load, "handshakes", count);
        push(load, "duration", duration);
        // tls-perf's defaults are TLS 1.2 and no tickets.
        let version = self.choice(config, "tls-version", &["1.2", "1.3", "any"]);
        let (version, place) = version.unwrap_or(("1.2", config.place));
        push(load, "tls", Some(word(version, place)));
        let tickets = self.choice(config, "process-tickets", &["on", "off", "advertise", "true", "false"]);
        let (tickets, place) = tickets.unwrap_or(("off", config.place));
        let tickets = match tickets {
            "true" => "on",
            "false" => "off",
            other => other,
        };
        push(load, "tickets", Some(word(tickets, place)));
        self.network(load, config, common.driver);
    }

    /// Whether the real tool makes the load; then it is begun as one.
    fn is_tool(&mut self, load: &mut LoadSpec, config: &Fields<'_>, driver: Driver) -> bool {
        let path = self.optional(config, "command_path").filter(|path| !path.value.is_empty());
        if self.options.external {
            "tool".clone_into(&mut load.kind.value);
            load.arguments.push(word(driver.name(), load.kind.place));
            push(load, "path", path);
        }
        self.options.external
    }

    /// Requests by squall; like wrk and h2load it does not verify certificates then.
    fn native_http(&mut self, load: &mut LoadSpec, config: &Fields<'_>, address: Text) {
        "http".clone_into(&mut load.kind.value);
        load.arguments.push(address);
        load.options.push(flag("insecure", config.place));
    }

    /// Connections and threads of wrk and h2load, which refuse fewer connections than threads.
    fn clients(&mut self, load: &mut LoadSpec, config: &Fields<'_>, default: &str) {
        let connections = self.count(config, "connections").unwrap_or_else(|| word(default, config.place));
        let threads = self.count(config, "threads");
        if let Some(threads) = threads.as_ref().filter(|threads| number(threads) > number(&connections)) {
            let message = format!("{} connections for {} threads", connections.value, threads.value);
            let help = "each thread needs a connection: raise `connections`, or lower `threads`";
            self.problem(threads.place, message, help);
        }
        push(load, "connections", Some(connections));
        push(load, "threads", threads);
    }

    /// A time in milliseconds; 0 is none.
    fn positive(&mut self, config: &Fields<'_>, key: &str) -> Option<Text> {
        let text = self.duration(config, key, Unit::Milliseconds)?;
        let is_zero = crate::units::parse_duration(&text.value).is_ok_and(|time| time.is_zero());
        (!is_zero).then_some(text)
    }

    fn network(&mut self, load: &mut LoadSpec, config: &Fields<'_>, driver: Driver) {
        let nics = self.list(config, "bind-to-nics");
        let nics: Vec<Text> = nics.into_iter().filter_map(|node| self.scalar(node)).collect();
        let Some(first) = nics.first() else { return };
        if load.kind.value == "tool" {
            let message = format!("`bind-to-nics`: {} cannot choose interfaces", driver.name());
            self.problem(first.place, message, "leave `--drivers external` out, or the key");
            return;
        }
        let is_http = load.kind.value == "http";
        let name = if is_http { "source" } else { "bind-to-nics" };
        let pattern = |nic: &str| if is_http { format!("nic:{nic}*") } else { nic.to_owned() };
        let values = nics.iter().map(|nic| word(&pattern(&nic.value), nic.place));
        load.options.push(GivenOption { name: word(name, first.place), values: values.collect() });
    }

    fn http_url(&mut self, config: &Fields<'_>, common: &Common, path: Option<&Text>) -> Option<Text> {
        let target = self.target(config, common, "target")?;
        let is_tls = self.is_tls(config, &target);
        Some(url(&target, path, is_tls))
    }

    /// The scenario's own target by `key`, else the file's; with the scenario's port.
    fn target(&mut self, config: &Fields<'_>, common: &Common, key: &str) -> Option<Text> {
        let port = self.port(config, "port");
        let Some(mut target) = self.optional(config, key).or_else(|| common.target.clone()) else {
            self.problem(config.place, "there is no target", "give the file a `target_host`");
            return None;
        };
        if let Some(port) = port {
            target.value = with_port(&target.value, port);
        }
        Some(target)
    }

    fn is_tls(&mut self, config: &Fields<'_>, target: &Text) -> bool {
        let by_target = || {
            target.value.starts_with("https://")
                || !target.value.contains("://") && matches!(authority_port(&target.value), Some(443 | 8443))
        };
        self.truth(config, "tls").unwrap_or_else(by_target)
    }
}

fn push(load: &mut LoadSpec, name: &str, value: Option<Text>) {
    if let Some(value) = value {
        load.options.push(GivenOption { name: word(name, value.place), values: vec![value] });
    }
}

fn flag(name: &str, place: Place) -> GivenOption {
    GivenOption { name: word(name, place), values: Vec::new() }
}

/// A count as the reader left it.
fn number(count: &Text) -> u64 {
    count.value.parse().unwrap_or(1)
}

fn word(value: &str, place: Place) -> Text {
    Text { value: value.to_owned(), place }
}

/// The URL of a file on the target.
fn url(target: &Text, file: Option<&Text>, is_tls: bool) -> Text {
    if let Some(file) = file.filter(|file| file.value.contains("://")) {
        return file.clone();
    }
    let scheme = if is_tls { "https" } else { "http" };
    let base = match target.value.split_once("://") {
        Some((given, rest)) if is_tls == (given == "https") => format!("{given}://{rest}"),
        Some((_, rest)) => format!("{scheme}://{rest}"),
        None => format!("{scheme}://{}", target.value),
    };
    let path = file.map_or("", |file| file.value.trim_start_matches('/'));
    Text { value: format!("{}/{path}", base.trim_end_matches('/')), place: target.place }
}

/// A URL by the schemes that name HTTP/2: by prior knowledge, or over TLS.
fn as_http_2(url: &Text) -> Text {
    let (scheme, rest) = url.value.split_once("://").unwrap_or(("http", &url.value));
    let scheme = if scheme == "https" { "h2" } else { "h2c" };
    Text { value: format!("{scheme}://{rest}"), place: url.place }
}

/// Host and port without scheme and path.
fn authority(target: &str) -> String {
    let rest = target.split("://").nth(1).unwrap_or(target);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

fn authority_port(target: &str) -> Option<u16> {
    split_port(&authority(target)).1
}

/// A host, in brackets where it is an IPv6 address with a port, and its port.
fn split_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    }
}

/// A target with another port.
fn with_port(target: &str, port: u16) -> String {
    let (scheme, rest) = target.split_once("://").map_or(("", target), |(scheme, rest)| (scheme, rest));
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let host = split_port(authority).0;
    let is_bare_v6 = host.contains(':') && !host.starts_with('[');
    let host = if is_bare_v6 { format!("[{host}]") } else { host.to_owned() };
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    format!("{scheme}{host}:{port}{path}")
}

const PROTOCOLS: &[&str] = &["h1", "h2"];
