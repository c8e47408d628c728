//! What a run is about to do, in a few lines: shown before it starts, and all that `--dry-run` shows.

use std::fmt::Write;
use std::path::Path;

use squall_engine::{Need, Resource};
use squall_plan::load::{
    CONNECTION_COUNT_DEFAULT, CONNECTION_COUNT_MAX_DEFAULT, DURATION_DEFAULT, IDLE_COUNT_DEFAULT,
};
use squall_plan::mask::masked_url;
use squall_plan::units::DurationText;
use squall_plan::{
    Arrival, CloseMode, Endpoint, HandshakeLoad, HttpLoad, IdleLoad, IdleProtocol, Load, LoadSpec,
    MessageExchange, Network, OptionStyle, Pacing, PingKind, Plan, Profile, ReplayLoad, ReplayPace,
    Resumption, ResumptionMode, Stage, Stop, StreamFormat, StreamLoad, TlsPolicy, TlsVersions, WebSocketLoad,
    Weighted, What, When,
};

/// A plan that is about to be run.
pub(crate) struct Echo<'a> {
    pub plan: &'a Plan,
    /// The defaults that applied: a first run should not leave one guessing.
    pub defaults: Option<String>,
}

impl Echo<'_> {
    /// The lines, without secrets. `saved_in`: where the run will be saved.
    pub(crate) fn text(&self, saved_in: Option<&Path>) -> String {
        let plan = self.plan;
        let mut lines: Vec<(&str, String)> =
            plan.loads.iter().flat_map(|load| load_lines(load, plan)).collect();
        lines.extend(self.defaults.clone().map(|text| ("defaults", text)));
        lines.extend((!plan.thresholds.is_empty()).then(|| ("thresholds", plan.thresholds.join(", "))));
        lines.extend(needs(plan, saved_in.is_none()));
        lines.extend(saved_in.map(|path| ("saved in", path.display().to_string())));
        lines.iter().fold(String::new(), |mut text, (name, line)| {
            let _ = writeln!(text, "{name:<NAME_WIDTH$}{line}");
            text
        })
    }
}

/// What the run needs of the machine: what is missing; with a look at many connections without opening them, all of it.
fn needs(plan: &Plan, is_dry: bool) -> Vec<(&'static str, String)> {
    let needs = squall_engine::needs(plan, OptionStyle::Flags);
    let is_large = needs.first().is_some_and(|need| need.needed > NEEDS_SHOWN_FROM);
    let shown = needs.iter().filter(|need| need.is_missing() || is_dry && is_large);
    shown.map(|need| (if need.is_missing() { "MISSING" } else { "needs" }, need_text(need))).collect()
}

fn need_text(need: &Need) -> String {
    let quantity = |count: u64| match need.what {
        Resource::Memory => format!("{:.2} GiB", count as f64 / (1_u64 << 30) as f64),
        Resource::UdpBuffer => format!("{:.2} MiB", count as f64 / (1_u64 << 20) as f64),
        _ => count.to_string(),
    };
    let name = match need.what {
        Resource::Descriptors => "open files",
        Resource::Ports => "local ports towards a target",
        Resource::Conntrack => "conntrack entries",
        Resource::Memory => "of memory, the kernel's included",
        Resource::UdpBuffer => "of UDP receive buffer",
    };
    let there =
        need.there.map_or_else(|| "not known here".to_owned(), |there| format!("{} here", quantity(there)));
    let help = if need.is_missing() { format!(": {}", need.help) } else { String::new() };
    format!("{} {name} ({there}){help}", quantity(need.needed))
}

fn load_lines(load: &Load, plan: &Plan) -> Vec<(&'static str, String)> {
    let noun = load.what.noun();
    let mut lines = Vec::new();
    match &load.what {
        What::Http(http) => lines.push(("target", target(http))),
        What::WebSocket(websocket) => {
            lines.push(("target", websocket_target(&websocket.http)));
            lines.push(("messages", websocket_ways(websocket)));
        }
        What::Stream(stream) => {
            lines.push(("target", target(&stream.http)));
            lines.extend(stream_ways(stream).map(|text| ("each", text)));
        }
        What::Handshake(handshake) => {
            lines.push(("target", endpoints(&handshake.targets)));
            lines.extend(handshake_ways(handshake).map(|text| ("each", text)));
        }
        What::Idle(idle) => {
            lines.push(("target", endpoints(&idle.targets)));
            lines.push(("each", idle_ways(idle)));
        }
        What::Replay(replay) => {
            lines.extend(replay.to.as_ref().map(|url| ("target", masked_url(url).to_string())));
        }
        _ => {}
    }
    let line = format!("{} {}", starts(load, noun), ends(load, plan, noun));
    lines.push(("load", line.trim_end().to_owned()));
    lines.extend(via(&load.network).map(|text| ("via", text)));
    lines.extend(tls(load).map(|text| ("tls", text)));
    lines
}

/// When what is counted starts.
fn starts(load: &Load, noun: &str) -> String {
    match &load.what {
        What::Replay(ReplayLoad { pace: ReplayPace::Recorded { factor }, users, .. }) => {
            let copies =
                if users.get() == 1 { String::new() } else { format!(" by {users} copies of each client") };
            match *factor == 1.0 {
                true => format!("recorded requests at their recorded times{copies},"),
                false => format!("recorded requests at their times x {factor}{copies},"),
            }
        }
        What::Replay(_) => format!("recorded requests, {}", when(&load.when, noun)),
        What::Script(script) => script.scenarios.join(", "),
        _ => when(&load.when, noun),
    }
}

/// When the load ends; a recording has an end.
fn ends(load: &Load, plan: &Plan, noun: &str) -> String {
    match &load.what {
        What::Replay(replay) if load.stop == Stop { duration: None, count: None } && !replay.loops => {
            "to the end of the recording".to_owned()
        }
        What::Script(_) => String::new(),
        _ => stop(&load.stop, plan, noun),
    }
}

fn endpoints(targets: &[Weighted<Endpoint>]) -> String {
    match targets {
        [one] => one.value.authority(),
        [first, ..] => format!("{} targets by weight, the first {}", targets.len(), first.value.authority()),
        [] => String::new(),
    }
}

/// What differs from a full handshake and a reset.
fn handshake_ways(load: &HandshakeLoad) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(load.quic.then(|| "QUIC".to_owned()));
    let Resumption { mode, ratio, early_data } = load.resumption;
    parts.extend(resumed_by(mode).map(|by| format!("{:.0} % resumed by {by}", ratio * 100.0)));
    let early = if early_data { " as early data" } else { "" };
    parts.extend(load.request.as_ref().map(|request| format!("GET {}{early}", request.path)));
    parts.extend((!load.hold.is_zero()).then(|| format!("held for {}", DurationText(load.hold))));
    parts.extend((load.close != CloseMode::Rst).then(|| format!("closed by {}", close_name(load.close))));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What differs from a response that is read to its end.
fn stream_ways(load: &StreamLoad) -> Option<String> {
    let format = match load.format {
        StreamFormat::Auto => None,
        StreamFormat::Sse => Some("read as server-sent events".to_owned()),
        StreamFormat::Lines => Some("read as lines".to_owned()),
        StreamFormat::Pieces => Some("read as it comes".to_owned()),
    };
    let done = load.done.as_ref().map(|done| format!("until `{done}`"));
    let hold = load.hold.map(|hold| format!("held for {}", DurationText(hold)));
    let reconnecting = load.reconnects.then(|| "opened again when it ends".to_owned());
    let good = load.objectives.as_ref().map(|rules| format!("good if {rules}"));
    let parts: Vec<String> = [format, done, hold, reconnecting, good].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Who sends what.
fn websocket_ways(load: &WebSocketLoad) -> String {
    let size = format!("{} bytes", load.message.bytes.len());
    let exchange = match load.exchange {
        MessageExchange::Echo => format!("{size}, expected back"),
        MessageExchange::Publish(count) => {
            format!("{size}, published by {}", counted(count.into(), "connection"))
        }
        MessageExchange::Receive => "only received".to_owned(),
        MessageExchange::Idle => "none".to_owned(),
    };
    let rate = load.rate.as_ref().map(|rate| profile(&rate.rate, "message/s"));
    let pause = (!load.pause.is_zero()).then(|| format!("{} apart", DurationText(load.pause)));
    let ping = load.ping.map(|every| format!("a ping every {}", DurationText(every)));
    let compress = load.compress.then(|| "compressed".to_owned());
    let storm = load.storm.map(|every| format!("all reopened every {}", DurationText(every)));
    let parts = [Some(exchange), rate, pause, ping, compress, storm];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn idle_ways(load: &IdleLoad) -> String {
    let protocol = match load.protocol {
        IdleProtocol::Http1 => None,
        IdleProtocol::Http2 => Some("HTTP/2".to_owned()),
    };
    let ping = load.ping.as_ref().map(|ping| {
        let kind = match &ping.kind {
            PingKind::Byte => "a byte".to_owned(),
            PingKind::Request(request) => format!("GET {}", request.path),
            PingKind::H2 | PingKind::Quic => "PING".to_owned(),
        };
        format!("{kind} every {}", DurationText(ping.every))
    });
    let first = load.first_request.as_ref().map(|request| format!("GET {} first", request.path));
    let transport = match (load.quic, load.tls) {
        (true, _) => "QUIC",
        (false, true) => "TLS",
        (false, false) => "TCP",
    };
    let parts = [Some(transport.to_owned()), protocol, first];
    let silence = Some(ping.unwrap_or_else(|| "then silent".to_owned()));
    let reopening = (!load.reopens).then(|| "not reopened".to_owned());
    parts.into_iter().chain([silence, reopening]).flatten().collect::<Vec<_>>().join(", ")
}

fn resumed_by(mode: ResumptionMode) -> Option<&'static str> {
    match mode {
        ResumptionMode::Off => None,
        ResumptionMode::Id => Some("session id"),
        ResumptionMode::Ticket => Some("ticket"),
        ResumptionMode::Psk => Some("PSK"),
    }
}

fn close_name(close: CloseMode) -> &'static str {
    match close {
        CloseMode::Rst => "reset",
        CloseMode::Fin => "FIN",
        CloseMode::Notify => "close_notify",
    }
}

/// One load in one line.
pub(crate) fn load_line(load: &Load, plan: &Plan) -> String {
    let lines = load_lines(load, plan).into_iter();
    lines
        .filter(|(name, _)| ["target", "load"].contains(name))
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(", ")
}

/// How much a load is at its most, in numbers: `12 connections`, `12 connections, 300 handshakes`.
pub(crate) fn amount(load: &Load) -> String {
    let noun = load.what.noun();
    let most = |of: &Profile, noun: &str| profile(&Profile::constant(of.max()), noun);
    let users = match (&load.what, &load.when) {
        (What::Script(_), When::Closed { connections, .. }) => most(connections, "virtual user"),
        (What::Replay(_), _) => return String::new(),
        (_, When::Closed { connections, .. }) => most(connections, "connection"),
        (_, When::Open { rate, .. }) => most(rate, &format!("{noun}/s")),
    };
    let count = load.stop.count.map(|count| format!(", {}", counted(count, noun)));
    format!("{users}{}", count.unwrap_or_default())
}

/// The URL as the user knows it: what opens a WebSocket depends on the version of HTTP.
fn websocket_target(http: &HttpLoad) -> String {
    let Some(first) = http.requests.first() else { return String::new() };
    let shown = masked_url(&first.url).as_str().replacen("http", "ws", 1);
    match http.requests.len() {
        1 => shown,
        count => format!("{count} URLs by weight, the first {shown}"),
    }
}

fn target(http: &HttpLoad) -> String {
    let Some(first) = http.requests.first() else { return String::new() };
    let shown = format!("{} {}", first.method, masked_url(&first.url));
    match http.requests.len() {
        1 => shown,
        count => format!("{count} requests by weight, the first {shown}"),
    }
}

fn when(when: &When, noun: &str) -> String {
    match when {
        When::Closed { connections, users: Some(users) } => {
            let users = profile(users, "user");
            format!("{users} who share {},", profile(connections, "connection"))
        }
        When::Closed { connections, users: None } if connections.stages.is_empty() => {
            profile(connections, "connection")
        }
        When::Closed { connections, users: None } => format!("{},", profile(connections, "connection")),
        When::Open { rate, arrival, pacing, connection_count_max } => {
            let rate = profile(rate, &format!("{noun}/s"));
            let (arrival, pacing) = (arrival_name(*arrival), pacing_name(*pacing));
            format!(
                "{rate}, {arrival} arrivals, {pacing} pacing, at most {connection_count_max} connections,"
            )
        }
    }
}

/// `50 connections`, or `1 connection, to 100 in 10s, to 1000 in 1m`.
fn profile(profile: &Profile, noun: &str) -> String {
    let noun = if profile.from == 1.0 { noun.to_owned() } else { plural(noun) };
    let stage = |stage: &Stage| format!(", to {} in {}", stage.target, DurationText(stage.duration));
    format!("{} {noun}{}", profile.from, profile.stages.iter().map(stage).collect::<String>())
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {}", plural(noun)) }
}

/// The `s` goes before a unit: `requests/s`.
fn plural(noun: &str) -> String {
    match noun.split_once('/') {
        Some((noun, unit)) => format!("{noun}s/{unit}"),
        None => format!("{noun}s"),
    }
}

fn stop(stop: &Stop, plan: &Plan, noun: &str) -> String {
    let end = match (stop.duration, stop.count) {
        (Some(duration), None) => format!("for {}", DurationText(duration)),
        (Some(duration), Some(count)) => {
            format!("for {} or {}", DurationText(duration), counted(count, noun))
        }
        (None, Some(count)) => format!("for {}", counted(count, noun)),
        (None, None) => "until Ctrl-C".to_owned(),
    };
    if plan.warmup.is_zero() {
        end
    } else {
        format!("{end}, the first {} unmeasured", DurationText(plan.warmup))
    }
}

fn via(network: &Network) -> Option<String> {
    if let Some(path) = &network.unix_socket {
        return Some(format!("Unix socket {}", path.display()));
    }
    let mut parts = Vec::new();
    parts.extend(network.proxy.as_ref().map(|proxy| format!("proxy {}:{}", proxy.host, proxy.port)));
    match &network.sources[..] {
        [] => {}
        [one] => parts.push(format!("from {one}")),
        [first, .., last] => {
            parts.push(format!("from {} addresses, {first} to {last}", network.sources.len()));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What differs from the rule: both versions, certificates verified.
fn tls(load: &Load) -> Option<String> {
    let TlsPolicy { insecure, client_identity, versions, sni, .. } = &load.tls;
    let mut parts = Vec::new();
    parts.extend(match versions {
        TlsVersions::Any => None,
        TlsVersions::Tls12 => Some("1.2 only".to_owned()),
        TlsVersions::Tls13 => Some("1.3 only".to_owned()),
    });
    parts.extend(insecure.then(|| "certificate NOT verified".to_owned()));
    parts.extend(client_identity.as_ref().map(|identity| format!("as {}", identity.cert_file.display())));
    parts.extend(sni.as_ref().map(|name| format!("server name {name}")));
    (load.speaks_tls() && !parts.is_empty()).then(|| parts.join(", "))
}

/// What `squall http` or `squall handshake` chose automatically.
pub(crate) fn defaults(spec: &LoadSpec) -> Option<String> {
    let has_any = |names: &[&str]| names.iter().any(|name| spec.has(name));
    let has_ramp = has_any(&["ramp"]);
    joined([
        connections_default(
            has_any(&["connections", "per-thread"]),
            has_any(&["rate"]),
            has_ramp && !has_any(&["users"]),
        ),
        duration_default(has_ramp || has_any(&["duration", "seconds", "requests", "handshakes"])),
    ])
}

/// What `squall idle` chose automatically.
pub(crate) fn idle_defaults(spec: &LoadSpec) -> Option<String> {
    let connections = (!spec.has("connections")).then(|| format!("--connections {IDLE_COUNT_DEFAULT}"));
    let duration = (!spec.has("duration"))
        .then(|| format!("--duration of the opening and {}", DurationText(DURATION_DEFAULT)));
    joined([connections, duration])
}

fn connections_default(is_given: bool, has_rate: bool, has_ramp: bool) -> Option<String> {
    match (is_given, has_rate, has_ramp) {
        (true, ..) | (false, false, true) => None,
        (false, true, _) => Some(format!("--connections {CONNECTION_COUNT_MAX_DEFAULT}")),
        (false, false, false) => Some(format!("--connections {CONNECTION_COUNT_DEFAULT}")),
    }
}

fn duration_default(is_given: bool) -> Option<String> {
    (!is_given).then(|| format!("--duration {}", DurationText(DURATION_DEFAULT)))
}

fn joined(flags: [Option<String>; 2]) -> Option<String> {
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    (!flags.is_empty()).then(|| flags.join(", "))
}

fn arrival_name(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Constant => "constant",
        Arrival::Poisson => "poisson",
    }
}

fn pacing_name(pacing: Pacing) -> &'static str {
    match pacing {
        Pacing::Precise => "precise",
        Pacing::Balanced => "balanced",
        Pacing::Cheap => "cheap",
    }
}

/// Runs of fewer descriptors than this need nothing to speak of.
const NEEDS_SHOWN_FROM: u64 = 5_000;

const NAME_WIDTH: usize = 12;
