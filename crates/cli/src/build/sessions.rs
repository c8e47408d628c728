//! The plans of `squall handshake` and `squall idle`.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use squall_plan::endpoints::parse_endpoint;
use squall_plan::rules::Source;
use squall_plan::{
    CloseMode, ConnectionPolicy, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, Load, Network, Ping,
    PingKind, Plan, Profile, Resumption, ResumptionMode, Segment, SessionRequest, Stage, Stop, TlsPolicy,
    TlsVersions, Weighted, What, When,
};

use super::{impossible, load, network};
use crate::args::{
    HandshakeArgs, HandshakeLoadArgs, IdleArgs, LoadArgs, PingArg, ResumptionArg, ResumptionArgs,
    SessionNetworkArgs, TicketsArg,
};
use crate::failure::Failure;

/// The plan of `squall handshake`.
pub(crate) fn handshake_plan(args: &HandshakeArgs) -> Result<Plan, Failure> {
    let targets = endpoints(&args.targets, HTTPS_PORT)?;
    let versions = network::tls_versions(args.tls_version);
    let load_args = load_args(&args.load);
    let what = HandshakeLoad {
        server_names: args.sni.clone(),
        resumption: resumption(&args.handshake, versions)?,
        request: args.after.request.as_ref().map(|path| request(path, args.after.timeout)),
        hold: args.after.hold.unwrap_or_default(),
        close: network::close_mode(args.after.close).unwrap_or(CloseMode::Rst),
        targets,
    };
    let name = args.output.name.clone().unwrap_or_else(|| default_name(&what.targets));
    let load = Load {
        name: "handshake".to_owned(),
        when: with_room_to_hold(load::when(&load_args, None)?, args),
        stop: load::stop(&load_args),
        connections: connection_policy(&args.network),
        network: session_network(&args.network)?,
        tls: TlsPolicy { versions, ..network::tls_settings(&args.tls)? },
        what: What::Handshake(what),
        segment: Segment::WHOLE,
    };
    plan(name, load, &load_args)
}

/// The plan of `squall idle`.
pub(crate) fn idle_plan(args: &IdleArgs) -> Result<Plan, Failure> {
    let targets = endpoints(&args.targets, if args.tls.is_some() { HTTPS_PORT } else { HTTP_PORT })?;
    refuse_tls_settings(args)?;
    let network = session_network(&args.network)?;
    let source_count = source_count(&targets, &network.sources);
    let connection_count = connection_count(args, source_count)?;
    let opening = opening(args, connection_count, source_count);
    let name = args.output.name.clone().unwrap_or_else(|| default_name(&targets));
    let load = Load {
        name: "idle".to_owned(),
        what: What::Idle(idle_load(args, targets)?),
        when: When::Closed { connections: profile(connection_count, opening), users: None },
        stop: Stop { duration: Some(idle_duration(args, opening)?), count: None },
        connections: connection_policy(&args.network),
        network,
        tls: TlsPolicy {
            versions: network::tls_versions(args.tls),
            sni: args.sni.clone(),
            ..network::tls_settings(&args.tls_settings)?
        },
        segment: Segment::WHOLE,
    };
    let load_args = LoadArgs {
        threads: args.load.threads,
        threshold: args.load.threshold.clone(),
        ..LoadArgs::default()
    };
    plan(name, load, &load_args)
}

fn plan(name: String, load: Load, args: &LoadArgs) -> Result<Plan, Failure> {
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
fn endpoints(texts: &[String], port: u16) -> Result<Vec<Weighted<Endpoint>>, Failure> {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let [host, port_text] = texts
        && is_port(port_text)
    {
        let joined =
            if host.contains(':') { format!("[{host}]:{port_text}") } else { format!("{host}:{port_text}") };
        return endpoints(&[joined], port);
    }
    let read =
        |text: &String| parse_endpoint(text, port).map_err(|error| Failure::value("HOST:PORT", text, &error));
    texts.iter().map(read).collect()
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

fn resumption(args: &ResumptionArgs, versions: TlsVersions) -> Result<Resumption, Failure> {
    let (mode, ratio) = match (args.tickets, args.resumption) {
        (Some(TicketsArg::On), _) => (ResumptionMode::Ticket, 1.0),
        (Some(TicketsArg::Advertise), _) => (ResumptionMode::Ticket, 0.0),
        (Some(TicketsArg::Off), _) | (None, None | Some(ResumptionArg::Off)) => (ResumptionMode::Off, 0.0),
        (None, Some(ResumptionArg::Id)) => (ResumptionMode::Id, args.resumption_ratio.unwrap_or(1.0)),
        (None, Some(ResumptionArg::Ticket)) => (ResumptionMode::Ticket, args.resumption_ratio.unwrap_or(1.0)),
        (None, Some(ResumptionArg::Psk)) => (ResumptionMode::Psk, args.resumption_ratio.unwrap_or(1.0)),
    };
    match (mode, versions) {
        (ResumptionMode::Id, TlsVersions::Tls13) => Err(Failure::usage(
            "`--resumption id` needs TLS 1.2: TLS 1.3 resumes only with tickets",
            "use `--resumption psk`, or `--tls 1.2`",
        )),
        (ResumptionMode::Psk, TlsVersions::Tls12) => Err(Failure::usage(
            "`--resumption psk` needs TLS 1.3",
            "use `--resumption ticket` or `id`, or `--tls 1.3`",
        )),
        _ if args.early_data && !allows_early_data(mode, versions) => {
            Err(Failure::usage("`--early-data` needs TLS 1.3 resumption", "add `--resumption psk`"))
        }
        _ => Ok(Resumption { mode, ratio, early_data: args.early_data }),
    }
}

fn allows_early_data(mode: ResumptionMode, versions: TlsVersions) -> bool {
    matches!(mode, ResumptionMode::Ticket | ResumptionMode::Psk) && versions != TlsVersions::Tls12
}

fn idle_load(args: &IdleArgs, targets: Vec<Weighted<Endpoint>>) -> Result<IdleLoad, Failure> {
    let talk = &args.talk;
    let protocol = if talk.http.as_deref() == Some("2") { IdleProtocol::Http2 } else { IdleProtocol::Http1 };
    if protocol == IdleProtocol::Http2 && (talk.after_request.is_some() || talk.ping_with.is_some()) {
        return Err(Failure::usage(
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

fn refuse_tls_settings(args: &IdleArgs) -> Result<(), Failure> {
    let settings = &args.tls_settings;
    let is_set = settings.insecure
        || !settings.cacert.is_empty()
        || settings.cert.is_some()
        || !settings.ciphers.is_empty()
        || !settings.groups.is_empty()
        || settings.key_log.is_some()
        || settings.alpn.is_some();
    match args.tls {
        None if is_set => {
            Err(Failure::usage("TLS flags were given without `--tls`", "add `--tls`, or remove them"))
        }
        _ => Ok(()),
    }
}

/// Local addresses that connections to these targets can come from: to an IPv4 address none comes from an IPv6 one.
fn source_count(targets: &[Weighted<Endpoint>], sources: &[IpAddr]) -> usize {
    let addresses = targets.iter().map(|target| target.value.host.parse::<IpAddr>().ok());
    let addresses: Option<Vec<IpAddr>> = addresses.collect();
    let fits = |source: &&IpAddr| {
        let is_alike = |address: &IpAddr| address.is_ipv4() == source.is_ipv4();
        addresses.as_ref().is_none_or(|all| all.iter().any(is_alike))
    };
    sources.iter().filter(fits).count()
}

/// So many for each local address.
fn connection_count(args: &IdleArgs, source_count: usize) -> Result<u32, Failure> {
    let each = args.load.connections.map_or(IDLE_COUNT_DEFAULT, NonZeroU32::get);
    let all = u32::try_from(u64::from(each) * source_count.max(1) as u64);
    all.map_err(|_| {
        Failure::usage(
            format!("{each} connections for each of {source_count} addresses are too many"),
            "lower --connections, or use fewer addresses",
        )
    })
}

/// How long the opening takes by plan; `None`: as long as it takes.
fn opening(args: &IdleArgs, connection_count: u32, source_count: usize) -> Option<Duration> {
    let by_pause = |pause: Duration| source_count.max(1) as f64 / pause.as_secs_f64();
    let per_s = args.load.open_rate.or_else(|| args.load.pause.map(by_pause)).filter(|rate| *rate > 0.0)?;
    Duration::try_from_secs_f64(f64::from(connection_count) / per_s).ok()
}

fn profile(connection_count: u32, opening: Option<Duration>) -> Profile {
    let target = f64::from(connection_count);
    match opening {
        None => Profile::constant(target),
        Some(duration) => Profile { from: 0.0, stages: vec![Stage { duration, target }] },
    }
}

fn idle_duration(args: &IdleArgs, opening: Option<Duration>) -> Result<Duration, Failure> {
    let opening = opening.unwrap_or_default();
    match args.load.duration {
        None => Ok(opening + load::DURATION_DEFAULT),
        Some(duration) if duration >= opening => Ok(duration),
        Some(duration) => Err(Failure::usage(
            format!(
                "the run takes {} s, but opening the connections takes {:.0} s",
                duration.as_secs_f64(),
                opening.as_secs_f64()
            ),
            "raise --duration or --open-rate, or leave --duration out",
        )),
    }
}

fn request(path: &str, timeout: Duration) -> SessionRequest {
    SessionRequest { path: path.to_owned(), timeout }
}

fn connection_policy(args: &SessionNetworkArgs) -> ConnectionPolicy {
    ConnectionPolicy { connect_timeout: args.connect_timeout, ..ConnectionPolicy::default() }
}

fn session_network(args: &SessionNetworkArgs) -> Result<Network, Failure> {
    let nics = args.bind_to_nics.iter().map(|prefix| Source::Interfaces(format!("{prefix}*")));
    let sources: Vec<Source> = args.source.iter().cloned().chain(nics).collect();
    Ok(Network { resolve: args.resolve.clone(), sources: network::sources(&sources)?, ..Network::default() })
}

fn default_name(targets: &[Weighted<Endpoint>]) -> String {
    targets.first().map_or_else(|| "connections".to_owned(), |target| target.value.authority())
}

/// Connections for each local address when nothing says otherwise.
pub(crate) const IDLE_COUNT_DEFAULT: u32 = 1000;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_targets_family_have_idle_connections() {
        let sources: Vec<IpAddr> =
            ["10.0.0.1", "10.0.0.2", "fd00::1"].map(|text| text.parse().unwrap()).into();
        for (targets, expected) in [
            (&["10.1.1.1:80"][..], 2),
            (&["[fd00::2]:80"], 1),
            (&["10.1.1.1:80", "[fd00::2]:80"], 3),
            (&["shop:80"], 3),
        ] {
            let targets: Vec<_> = targets.iter().map(|text| parse_endpoint(text, 80).unwrap()).collect();
            assert_eq!(source_count(&targets, &sources), expected);
        }
    }
}
