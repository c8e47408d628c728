//! Connections for their own sake: handshakes, and idle connections.

use std::num::NonZeroU32;
use std::time::Duration;

use super::connection::{quic_policy, tls_settings};
use super::thresholds;
use super::timing::Timing;
use crate::endpoints::parse_endpoint;
use crate::options::table::{
    AFTER_REQUEST, BIND_TO_NICS, EARLY_DATA, HANDSHAKE_CLOSE, HANDSHAKE_CONNECTIONS, HANDSHAKE_DURATION,
    HANDSHAKE_QUIC, HANDSHAKE_SNI, HANDSHAKE_TIMEOUT, HANDSHAKE_TLS, HANDSHAKES, HOLD, IDLE_CLOSE,
    IDLE_CONNECTIONS, IDLE_DURATION, IDLE_HTTP, IDLE_QUIC, IDLE_SNI, IDLE_THREADS, IDLE_TIMEOUT, IDLE_TLS,
    JITTER, KEEP_SESSIONS, NO_REOPEN, OPEN_RATE, PAUSE, PER_THREAD, PING, PING_WITH, REQUEST, RESOLVE,
    RESUMPTION, RESUMPTION_RATIO, SECONDS, SESSION_CONNECT_TIMEOUT, SESSION_SOURCE, TICKETS,
};
use crate::options::values::{PingWith, Tickets};
use crate::options::{LoadType, ReadContext, Reading};
use crate::rules::Source;
use crate::{
    CloseMode, ConnectionPolicy, Endpoint, HandshakeLoad, IdleLoad, IdleOpening, IdleProtocol, Load,
    LoadSpec, Network, OptionProblem, Ping, PingKind, PortablePlan, Problems, Resumption, ResumptionMode,
    Segment, SessionRequest, TlsPolicy, TlsVersions, Weighted, What, When,
};

/// The plan of handshakes.
///
/// # Errors
/// All that is wrong with its options.
pub fn handshake(spec: &LoadSpec, context: ReadContext<'_>) -> Result<PortablePlan, Problems> {
    let mut given = Reading::new(LoadType::Handshake, spec, context);
    let versions = given.one(&HANDSHAKE_TLS).unwrap_or(TlsVersions::Any);
    let quic = given.is_set(&HANDSHAKE_QUIC);
    given.take(refuse_with_quic(&given, quic.then_some(versions)));
    let targets = endpoints(&mut given, HTTPS_PORT);
    let resumption = resumption(&mut given, versions, quic);
    let has_room = given.has(&HANDSHAKE_CONNECTIONS.option) || given.has(&PER_THREAD.option);
    let timing = handshake_timing(&mut given);
    let when = given.take(timing.when());
    let tls = TlsPolicy { versions, ..tls_settings(&mut given) };
    let (path, timeout) = (given.one(&REQUEST), given.or_default(&HANDSHAKE_TIMEOUT));
    let hold = given.one(&HOLD).unwrap_or_default();
    let (connections, network, sources) = session_network(&mut given, quic);
    let thresholds = thresholds(&mut given);
    let name = default_name(&targets);
    let what = HandshakeLoad {
        quic,
        server_names: given.all(&HANDSHAKE_SNI),
        resumption,
        request: path.map(|path| SessionRequest { path, timeout }),
        hold,
        close: given.one(&HANDSHAKE_CLOSE).unwrap_or(CloseMode::Rst),
        targets,
    };
    let load = when.filter(|_| given.is_clean()).map(|when| Load {
        name: "handshake".to_owned(),
        when: if has_room { when } else { with_room_to_hold(when, hold) },
        stop: timing.stop(),
        connections,
        network,
        tls,
        what: What::Handshake(what),
        segment: Segment::WHOLE,
    });
    let plan = load.and_then(|load| given.take(PortablePlan::of_load(spec, name, load, &timing, thresholds)));
    given.finish(plan.map(|plan| PortablePlan { sources, ..plan }))
}

/// The plan of idle connections.
///
/// # Errors
/// All that is wrong with its options.
pub fn idle(spec: &LoadSpec, context: ReadContext<'_>) -> Result<PortablePlan, Problems> {
    let mut given = Reading::new(LoadType::Idle, spec, context);
    let (has_tls, quic) = (given.has(&IDLE_TLS.option), given.is_set(&IDLE_QUIC));
    let versions = given.one(&IDLE_TLS).unwrap_or(TlsVersions::Any);
    let targets = endpoints(&mut given, if has_tls || quic { HTTPS_PORT } else { HTTP_PORT });
    given.take(refuse_tls_settings(&given));
    let opening = IdleOpening {
        count_each: given.one(&IDLE_CONNECTIONS).map_or(IDLE_COUNT_DEFAULT, NonZeroU32::get),
        per_s: given.one(&OPEN_RATE),
        pause: given.one(&PAUSE),
        duration: given.one(&IDLE_DURATION),
    };
    let paced = given.take(opening.settle(0));
    let tls = TlsPolicy { versions, sni: given.one(&IDLE_SNI), ..tls_settings(&mut given) };
    let (connections, network, sources) = session_network(&mut given, quic);
    let thresholds = thresholds(&mut given);
    let name = default_name(&targets);
    let what = idle_load(&mut given, targets, has_tls);
    let timing = Timing { threads: given.one(&IDLE_THREADS), ..Timing::default() };
    let load = paced.filter(|_| given.is_clean()).map(|(when, stop)| Load {
        name: "idle".to_owned(),
        what: What::Idle(what),
        when,
        stop,
        connections,
        network,
        tls,
        segment: Segment::WHOLE,
    });
    let plan = load.and_then(|load| given.take(PortablePlan::of_load(spec, name, load, &timing, thresholds)));
    given.finish(plan.map(|plan| PortablePlan { sources, opening: Some(opening), ..plan }))
}

/// `HOST PORT`, as tls-perf has it, is one target.
fn endpoints(given: &mut Reading<'_>, port: u16) -> Vec<Weighted<Endpoint>> {
    let read = |text: &str| {
        parse_endpoint(text, port).map_err(|error| OptionProblem::invalid("HOST:PORT", text, &error))
    };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match &given.spec().arguments[..] {
        [host, port_text] if is_port(&port_text.value) => {
            let (host, port) = (&host.value, &port_text.value);
            let joined =
                if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            given.take(read(&joined)).into_iter().collect()
        }
        [] => {
            given.take(Err::<(), _>(OptionProblem::of("HOST:PORT", "no address given", "write HOST:PORT")));
            Vec::new()
        }
        _ => given.arguments(read),
    }
}

/// The options as those of any load; tls-perf's are translated.
fn handshake_timing(given: &mut Reading<'_>) -> Timing {
    let paced = Timing::paced(given);
    let per_thread = given.one(&PER_THREAD).map(NonZeroU32::get);
    let threads = paced.threads.or_else(|| per_thread.and(Some(NonZeroU32::MIN)));
    let all = per_thread.map(|count| count.saturating_mul(threads.map_or(1, NonZeroU32::get)));
    let seconds = given.one(&SECONDS);
    Timing {
        connections: given.one(&HANDSHAKE_CONNECTIONS).or_else(|| all.and_then(NonZeroU32::new)),
        duration: given.one(&HANDSHAKE_DURATION).or(seconds),
        requests: given.one(&HANDSHAKES),
        threads,
        ..paced
    }
}

/// By default those that are held come on top of those under way.
fn with_room_to_hold(when: When, hold: Duration) -> When {
    match when {
        When::Open { rate, arrival, pacing, connection_count_max } => {
            let held = rate.max() * hold.as_secs_f64();
            let connection_count_max = connection_count_max.saturating_add(held.ceil() as u32);
            When::Open { rate, arrival, pacing, connection_count_max }
        }
        other => other,
    }
}

fn resumption(given: &mut Reading<'_>, versions: TlsVersions, quic: bool) -> Resumption {
    let asked = given.one(&RESUMPTION).unwrap_or(ResumptionMode::Off);
    let share = given.one(&RESUMPTION_RATIO).unwrap_or(1.0);
    let (mode, ratio) = match given.one(&TICKETS) {
        Some(Tickets::On) => (ResumptionMode::Ticket, 1.0),
        Some(Tickets::Advertise) => (ResumptionMode::Ticket, 0.0),
        Some(Tickets::Off) => (ResumptionMode::Off, 0.0),
        None if asked == ResumptionMode::Off => (ResumptionMode::Off, 0.0),
        None => (asked, share),
    };
    let early_data = given.is_set(&EARLY_DATA);
    // A QUIC handshake may begin with keys for early data, and have none to send.
    let lacks_request = early_data && !quic && !given.has(&REQUEST.option);
    given.take(match lacks_request {
        true => {
            let message = "`--early-data` needs `--request <PATH>`";
            let help = "add `--request`, or remove `--early-data`";
            Err(OptionProblem::of("early-data", message, help).with(&["request"]))
        }
        // QUIC carries no other version.
        false => check_resumption(mode, if quic { TlsVersions::Tls13 } else { versions }, early_data),
    });
    Resumption { mode, ratio, early_data }
}

/// QUIC has its own ways to begin and to end a connection. `versions`: those of TLS that are asked for, where QUIC is.
fn refuse_with_quic(given: &Reading<'_>, versions: Option<TlsVersions>) -> Result<(), OptionProblem> {
    let refuse = |option, message, help| Err(OptionProblem::of(option, message, help).with(&["quic"]));
    match versions {
        None => Ok(()),
        Some(TlsVersions::Tls12) => {
            refuse("tls", "`--quic` needs TLS 1.3, the only version that QUIC carries", "remove `--tls 1.2`")
        }
        Some(_) if given.has(&REQUEST.option) => refuse(
            "request",
            "`--request` sends HTTP/1.1, which QUIC does not carry",
            "remove it; `squall URL --http 3` sends requests",
        ),
        Some(_) if given.has(&HANDSHAKE_CLOSE.option) => {
            refuse("close", "`--close` is for TCP; a QUIC connection ends with CONNECTION_CLOSE", "remove it")
        }
        Some(_) => Ok(()),
    }
}

fn check_resumption(
    mode: ResumptionMode,
    versions: TlsVersions,
    early_data: bool,
) -> Result<(), OptionProblem> {
    let allows_early_data =
        matches!(mode, ResumptionMode::Ticket | ResumptionMode::Psk) && versions != TlsVersions::Tls12;
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
        _ if early_data && !allows_early_data => {
            let message = "`--early-data` needs TLS 1.3 resumption";
            Err(OptionProblem::of("early-data", message, "add `--resumption psk`")
                .with(&["tls", "resumption"]))
        }
        _ => Ok(()),
    }
}

fn idle_load(given: &mut Reading<'_>, targets: Vec<Weighted<Endpoint>>, tls: bool) -> IdleLoad {
    let protocol = given.one(&IDLE_HTTP).unwrap_or(IdleProtocol::Http1);
    let (first, with) = (given.one(&AFTER_REQUEST), given.one(&PING_WITH));
    let (every, timeout) = (given.one(&PING), given.or_default(&IDLE_TIMEOUT));
    if protocol == IdleProtocol::Http2 && (first.is_some() || with.is_some()) {
        let option = if first.is_some() { "after-request" } else { "ping-with" };
        given.take(Err::<(), _>(OptionProblem::of(
            option,
            "`--after-request` and `--ping-with` are for HTTP/1.1; `--http 2` uses its own PING",
            "remove them, or remove `--http 2`",
        )));
    }
    let request = |path: Option<&str>| SessionRequest { path: path.unwrap_or("/").to_owned(), timeout };
    let kind = match (protocol, with) {
        _ if given.is_set(&IDLE_QUIC) => PingKind::Quic,
        (IdleProtocol::Http2, _) => PingKind::H2,
        (_, Some(PingWith::Byte)) => PingKind::Byte,
        (_, Some(PingWith::Request) | None) => PingKind::Request(request(first.as_deref())),
    };
    IdleLoad {
        targets,
        tls,
        protocol,
        first_request: first.as_deref().map(|path| request(Some(path))),
        ping: every.map(|every| Ping { every, kind, timeout }),
        jitter: given.one(&JITTER).unwrap_or_default(),
        reopens: !given.is_set(&NO_REOPEN),
        quic: given.is_set(&IDLE_QUIC),
        keeps_sessions: given.is_set(&KEEP_SESSIONS),
        close: given.one(&IDLE_CLOSE).unwrap_or(CloseMode::Notify),
    }
}

fn refuse_tls_settings(given: &Reading<'_>) -> Result<(), OptionProblem> {
    let settings = ["insecure", "cacert", "cert", "ciphers", "groups", "key-log", "alpn", "sni"];
    match settings.into_iter().find(|name| given.spec().has(name)) {
        Some(option) if !given.has(&IDLE_TLS.option) && !given.has(&IDLE_QUIC.option) => {
            let help = "add `--tls`, or remove them";
            Err(OptionProblem::of(option, "TLS flags were given without `--tls`", help).with(&["tls"]))
        }
        _ => Ok(()),
    }
}

/// How connections are made, where packets go, and where they come from.
fn session_network(given: &mut Reading<'_>, quic: bool) -> (ConnectionPolicy, Network, Vec<Source>) {
    let connect_timeout = given.or_default(&SESSION_CONNECT_TIMEOUT);
    let nics = given.all(&BIND_TO_NICS).into_iter().map(|prefix| Source::Interfaces(format!("{prefix}*")));
    let sources = given.all(&SESSION_SOURCE).into_iter().chain(nics).collect();
    (
        ConnectionPolicy {
            connect_timeout,
            quic: quic_policy(given, quic, "quic"),
            ..ConnectionPolicy::default()
        },
        Network { resolve: given.all(&RESOLVE), ..Network::default() },
        sources,
    )
}

fn default_name(targets: &[Weighted<Endpoint>]) -> String {
    targets.first().map_or_else(|| "connections".to_owned(), |target| target.value.authority())
}

/// Connections for each local address when nothing says otherwise.
pub const IDLE_COUNT_DEFAULT: u32 = 1000;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
