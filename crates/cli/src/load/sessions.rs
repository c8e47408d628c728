//! The plans of `squall handshake` and `squall idle`.

use std::num::NonZeroU32;
use std::time::Duration;

use squall_plan::endpoints::parse_endpoint;
use squall_plan::rules::Source;
use squall_plan::{
    CloseMode, ConnectionPolicy, Endpoint, HandshakeLoad, IdleLoad, IdleOpening, IdleProtocol, Load, Network,
    OptionProblem, Ping, PingKind, Plan, PortablePlan, Problems, Resumption, ResumptionMode, Segment,
    SessionRequest, TlsPolicy, TlsVersions, Weighted, What, When,
};

use super::{impossible, network, timing};
use crate::args::{
    HandshakeArgs, HandshakeLoadArgs, IdleArgs, IdleLoadArgs, LoadArgs, PingArg, ResumptionArg,
    ResumptionArgs, SessionNetworkArgs, TicketsArg,
};

/// The plan of `squall handshake`.
pub(crate) fn handshake_plan(args: &HandshakeArgs) -> Result<PortablePlan, Problems> {
    let versions = network::tls_versions(args.tls_version);
    let load_args = load_args(&args.load);
    let mut problems = Problems::default();
    let targets = problems.take(endpoints(&args.targets, HTTPS_PORT));
    let resumption = problems.take(resumption(&args.handshake, versions));
    let when = problems.take(timing::when(&load_args, None));
    let settings = problems.take(network::tls_settings(&args.tls));
    problems.end()?;
    let (Some(targets), Some(resumption), Some(when), Some(settings)) = (targets, resumption, when, settings)
    else {
        unreachable!("what is missing is a problem")
    };
    let what = HandshakeLoad {
        server_names: args.sni.clone(),
        resumption,
        request: args.after.request.as_ref().map(|path| request(path, args.after.timeout)),
        hold: args.after.hold.unwrap_or_default(),
        close: network::close_mode(args.after.close).unwrap_or(CloseMode::Rst),
        targets,
    };
    let name = args.output.name.clone().unwrap_or_else(|| default_name(&what.targets));
    let load = Load {
        name: "handshake".to_owned(),
        when: with_room_to_hold(when, args),
        stop: timing::stop(&load_args),
        connections: connection_policy(&args.network),
        network: session_network(&args.network),
        tls: TlsPolicy { versions, ..settings },
        what: What::Handshake(what),
        segment: Segment::WHOLE,
    };
    let plan = plan(name, load, &load_args)?;
    Ok(PortablePlan { plan, sources: sources(&args.network), opening: None })
}

/// The plan of `squall idle`.
pub(crate) fn idle_plan(args: &IdleArgs) -> Result<PortablePlan, Problems> {
    let port = if args.tls.is_some() { HTTPS_PORT } else { HTTP_PORT };
    let opening = opening(&args.load);
    let mut problems = Problems::default();
    let targets = problems.take(endpoints(&args.targets, port));
    problems.take(refuse_tls_settings(args));
    let paced = problems.take(opening.settle(0));
    let settings = problems.take(network::tls_settings(&args.tls_settings));
    let what = targets.and_then(|targets| problems.take(idle_load(args, targets)));
    problems.end()?;
    let (Some(what), Some((when, stop)), Some(settings)) = (what, paced, settings) else {
        unreachable!("what is missing is a problem")
    };
    let name = args.output.name.clone().unwrap_or_else(|| default_name(&what.targets));
    let load = Load {
        name: "idle".to_owned(),
        what: What::Idle(what),
        when,
        stop,
        connections: connection_policy(&args.network),
        network: session_network(&args.network),
        tls: TlsPolicy { versions: network::tls_versions(args.tls), sni: args.sni.clone(), ..settings },
        segment: Segment::WHOLE,
    };
    let load_args = LoadArgs {
        threads: args.load.threads,
        threshold: args.load.threshold.clone(),
        ..LoadArgs::default()
    };
    let plan = plan(name, load, &load_args)?;
    Ok(PortablePlan { plan, sources: sources(&args.network), opening: Some(opening) })
}

fn plan(name: String, load: Load, args: &LoadArgs) -> Result<Plan, OptionProblem> {
    let plan = Plan {
        name,
        loads: vec![load],
        thresholds: args.threshold.iter().map(|rule| rule.text().to_owned()).collect(),
        warmup: args.warmup.unwrap_or_default(),
        threads: args.threads,
    };
    plan.validate().map_err(|error| impossible(&error))?;
    Ok(plan)
}

/// `HOST PORT`, as tls-perf has it, is one target.
fn endpoints(texts: &[String], port: u16) -> Result<Vec<Weighted<Endpoint>>, Problems> {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let [host, port_text] = texts
        && is_port(port_text)
    {
        let joined =
            if host.contains(':') { format!("[{host}]:{port_text}") } else { format!("{host}:{port_text}") };
        return endpoints(&[joined], port);
    }
    let mut problems = Problems::default();
    let mut read = |text: &String| {
        let bad = |error| OptionProblem::invalid("HOST:PORT", text, &error);
        problems.take(parse_endpoint(text, port).map_err(bad))
    };
    let endpoints = texts.iter().filter_map(&mut read).collect();
    problems.end()?;
    Ok(endpoints)
}

/// The flags as those of any load; tls-perf's are translated.
fn load_args(args: &HandshakeLoadArgs) -> LoadArgs {
    let per_thread = args.per_thread.map(NonZeroU32::get);
    let threads = args.threads.or_else(|| per_thread.and(Some(NonZeroU32::MIN)));
    let all = per_thread.map(|count| count.saturating_mul(threads.map_or(1, NonZeroU32::get)));
    LoadArgs {
        connections: args.connections.or_else(|| all.and_then(NonZeroU32::new)),
        duration: args.duration.or(args.seconds),
        requests: args.handshakes,
        rate: args.rate,
        ramp: args.ramp.clone(),
        arrival: args.arrival,
        pacing: args.pacing,
        warmup: args.warmup,
        threads,
        threshold: args.threshold.clone(),
    }
}

/// By default those that are held come on top of those under way.
fn with_room_to_hold(when: When, args: &HandshakeArgs) -> When {
    match when {
        When::Open { rate, arrival, pacing, connection_count_max } if args.load.connections.is_none() => {
            let held = rate.max() * args.after.hold.unwrap_or_default().as_secs_f64();
            let connection_count_max = connection_count_max.saturating_add(held.ceil() as u32);
            When::Open { rate, arrival, pacing, connection_count_max }
        }
        other => other,
    }
}

fn resumption(args: &ResumptionArgs, versions: TlsVersions) -> Result<Resumption, OptionProblem> {
    let (mode, ratio) = match (args.tickets, args.resumption) {
        (Some(TicketsArg::On), _) => (ResumptionMode::Ticket, 1.0),
        (Some(TicketsArg::Advertise), _) => (ResumptionMode::Ticket, 0.0),
        (Some(TicketsArg::Off), _) | (None, None | Some(ResumptionArg::Off)) => (ResumptionMode::Off, 0.0),
        (None, Some(ResumptionArg::Id)) => (ResumptionMode::Id, args.resumption_ratio.unwrap_or(1.0)),
        (None, Some(ResumptionArg::Ticket)) => (ResumptionMode::Ticket, args.resumption_ratio.unwrap_or(1.0)),
        (None, Some(ResumptionArg::Psk)) => (ResumptionMode::Psk, args.resumption_ratio.unwrap_or(1.0)),
    };
    match (mode, versions) {
        (ResumptionMode::Id, TlsVersions::Tls13) => Err(OptionProblem::of(
            "resumption",
            "`--resumption id` needs TLS 1.2: TLS 1.3 resumes only with tickets",
            "use `--resumption psk`, or `--tls 1.2`",
        )
        .with(&["tls"])),
        (ResumptionMode::Psk, TlsVersions::Tls12) => Err(OptionProblem::of(
            "resumption",
            "`--resumption psk` needs TLS 1.3",
            "use `--resumption ticket` or `id`, or `--tls 1.3`",
        )
        .with(&["tls"])),
        _ if args.early_data && !allows_early_data(mode, versions) => {
            let message = "`--early-data` needs TLS 1.3 resumption";
            Err(OptionProblem::of("early-data", message, "add `--resumption psk`")
                .with(&["tls", "resumption"]))
        }
        _ => Ok(Resumption { mode, ratio, early_data: args.early_data }),
    }
}

fn allows_early_data(mode: ResumptionMode, versions: TlsVersions) -> bool {
    matches!(mode, ResumptionMode::Ticket | ResumptionMode::Psk) && versions != TlsVersions::Tls12
}

fn idle_load(args: &IdleArgs, targets: Vec<Weighted<Endpoint>>) -> Result<IdleLoad, OptionProblem> {
    let talk = &args.talk;
    let protocol = if talk.http.as_deref() == Some("2") { IdleProtocol::Http2 } else { IdleProtocol::Http1 };
    if protocol == IdleProtocol::Http2 && (talk.after_request.is_some() || talk.ping_with.is_some()) {
        let option = if talk.after_request.is_some() { "after-request" } else { "ping-with" };
        return Err(OptionProblem::of(
            option,
            "`--after-request` and `--ping-with` are for HTTP/1.1; `--http 2` uses its own PING",
            "remove them, or remove `--http 2`",
        ));
    }
    let path = talk.after_request.as_deref().unwrap_or("/");
    let kind = match (protocol, talk.ping_with) {
        (IdleProtocol::Http2, _) => PingKind::H2,
        (_, Some(PingArg::Byte)) => PingKind::Byte,
        (_, Some(PingArg::Request) | None) => PingKind::Request(request(path, talk.timeout)),
    };
    Ok(IdleLoad {
        targets,
        tls: args.tls.is_some(),
        protocol,
        first_request: talk.after_request.as_ref().map(|path| request(path, talk.timeout)),
        ping: talk.ping.map(|every| Ping { every, kind, timeout: talk.timeout }),
        jitter: args.load.jitter.unwrap_or_default(),
        reopens: !args.load.no_reopen,
        keeps_sessions: args.keep_sessions,
        close: network::close_mode(args.load.close).unwrap_or(CloseMode::Notify),
    })
}

fn refuse_tls_settings(args: &IdleArgs) -> Result<(), OptionProblem> {
    let settings = &args.tls_settings;
    let given = [
        ("insecure", settings.insecure),
        ("cacert", !settings.cacert.is_empty()),
        ("cert", settings.cert.is_some()),
        ("ciphers", !settings.ciphers.is_empty()),
        ("groups", !settings.groups.is_empty()),
        ("key-log", settings.key_log.is_some()),
        ("alpn", settings.alpn.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) if args.tls.is_none() => {
            let help = "add `--tls`, or remove them";
            Err(OptionProblem::of(option, "TLS flags were given without `--tls`", help).with(&["tls"]))
        }
        _ => Ok(()),
    }
}

fn opening(args: &IdleLoadArgs) -> IdleOpening {
    IdleOpening {
        count_each: args.connections.map_or(IDLE_COUNT_DEFAULT, NonZeroU32::get),
        per_s: args.open_rate,
        pause: args.pause,
        duration: args.duration,
    }
}

fn request(path: &str, timeout: Duration) -> SessionRequest {
    SessionRequest { path: path.to_owned(), timeout }
}

fn connection_policy(args: &SessionNetworkArgs) -> ConnectionPolicy {
    ConnectionPolicy { connect_timeout: args.connect_timeout, ..ConnectionPolicy::default() }
}

fn session_network(args: &SessionNetworkArgs) -> Network {
    Network { resolve: args.resolve.clone(), ..Network::default() }
}

fn sources(args: &SessionNetworkArgs) -> Vec<Source> {
    let nics = args.bind_to_nics.iter().map(|prefix| Source::Interfaces(format!("{prefix}*")));
    args.source.iter().cloned().chain(nics).collect()
}

fn default_name(targets: &[Weighted<Endpoint>]) -> String {
    targets.first().map_or_else(|| "connections".to_owned(), |target| target.value.authority())
}

/// Connections for each local address when nothing says otherwise.
pub(crate) const IDLE_COUNT_DEFAULT: u32 = 1000;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
