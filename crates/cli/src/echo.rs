//! What a run is about to do, in a few lines: shown before it starts, and all that `--dry-run` shows.

use std::fmt::Write;
use std::path::Path;

use squall_plan::mask::masked_url;
use squall_plan::units::DurationText;
use squall_plan::{
    Arrival, HttpLoad, Load, Network, Pacing, Plan, Profile, Stage, Stop, TlsPolicy, TlsVersions, What, When,
};

use crate::args::LoadArgs;
use crate::build::load::{CONNECTION_COUNT_DEFAULT, CONNECTION_COUNT_MAX_DEFAULT, DURATION_DEFAULT};

/// The lines, without secrets. `saved_in`: where the run will be saved.
pub(crate) fn text(plan: &Plan, args: &LoadArgs, saved_in: Option<&Path>) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for load in &plan.loads {
        let What::Http(http) = &load.what else { continue };
        lines.push(("target", target(http)));
        lines.push(("load", format!("{} {}", when(&load.when), stop(&load.stop, plan))));
        lines.extend(via(&load.network).map(|text| ("via", text)));
        lines.extend(tls(load, http).map(|text| ("tls", text)));
    }
    lines.extend(defaults(args).map(|text| ("defaults", text)));
    lines.extend((!plan.thresholds.is_empty()).then(|| ("thresholds", plan.thresholds.join(", "))));
    lines.extend(saved_in.map(|path| ("saved in", path.display().to_string())));
    lines.iter().fold(String::new(), |mut text, (name, line)| {
        let _ = writeln!(text, "{name:<NAME_WIDTH$}{line}");
        text
    })
}

fn target(http: &HttpLoad) -> String {
    let Some(first) = http.requests.first() else { return String::new() };
    let shown = format!("{} {}", first.method, masked_url(&first.url));
    match http.requests.len() {
        1 => shown,
        count => format!("{count} requests by weight, the first {shown}"),
    }
}

fn when(when: &When) -> String {
    match when {
        When::Closed { connections } if connections.stages.is_empty() => profile(connections, "connection"),
        When::Closed { connections } => format!("{},", profile(connections, "connection")),
        When::Open { rate, arrival, pacing, connection_count_max } => {
            let rate = profile(rate, "request/s");
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

/// The `s` goes before a unit: `requests/s`.
fn plural(noun: &str) -> String {
    match noun.split_once('/') {
        Some((noun, unit)) => format!("{noun}s/{unit}"),
        None => format!("{noun}s"),
    }
}

fn stop(stop: &Stop, plan: &Plan) -> String {
    let end = match (stop.duration, stop.count) {
        (Some(duration), None) => format!("for {}", DurationText(duration)),
        (Some(duration), Some(count)) => format!("for {} or {count} requests", DurationText(duration)),
        (None, Some(count)) => format!("until {count} requests are made"),
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
fn tls(load: &Load, http: &HttpLoad) -> Option<String> {
    let is_spoken = http.requests.iter().any(|request| request.url.scheme() == "https");
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
    (is_spoken && !parts.is_empty()).then(|| parts.join(", "))
}

/// The choices that nobody made: a first run should not leave one guessing.
fn defaults(args: &LoadArgs) -> Option<String> {
    let mut flags = Vec::new();
    if args.connections.is_none() && args.rate.is_some() {
        flags.push(format!("--connections {CONNECTION_COUNT_MAX_DEFAULT}"));
    } else if args.connections.is_none() && args.ramp.is_none() {
        flags.push(format!("--connections {CONNECTION_COUNT_DEFAULT}"));
    }
    if args.duration.is_none() && args.ramp.is_none() && args.requests.is_none() {
        flags.push(format!("--duration {}", DurationText(DURATION_DEFAULT)));
    }
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

const NAME_WIDTH: usize = 12;
