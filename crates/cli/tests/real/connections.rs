//! `squall handshake` and `squall idle` against nginx, whose own count must be ours, and against servers that break every rule.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use squall_testkit::hostile::{Act, Expect, FullBacklog, HostileServer, Peer, Tls};
use squall_testkit::real::{NginxOptions, OpensslServer, Server};
use tempfile::TempDir;

use crate::squall::{Ended, assert_none_complains, run, start, start_command, with_json};

#[test]
fn handshakes_are_as_many_as_nginx_accepts() {
    let nginx = Server::nginx(NginxOptions { tls13: true, ..NginxOptions::default() });
    let (tls, plain) = (authority(&nginx.tls_url("/")), authority(&nginx.url("/")));
    for flags in [
        &["--tls", "1.2", "-n", "777"][..],
        &["--tls", "1.3", "-n", "777"],
        &["--tls", "1.3", "-n", "777", "--resumption", "psk"],
        &["--tls", "1.2", "-n", "777", "--resumption", "ticket", "--resumption-ratio", "50%"],
        &["-l", "5", "-t", "2", "-n", "777", "--tickets", "on", "--sni", "localhost"],
        &["-d", "1s", "-r", "300/s", "--close", "fin"],
    ] {
        let before = accepted(&plain);
        let ended = run(&[&["handshake", &tls, "--insecure"], flags].concat());
        // The question itself is a connection, too.
        let accepted = accepted(&plain) - before - 1;
        assert_eq!(ended.assert_all_counted(), accepted, "{flags:?}");
        assert_eq!(ended.count("/totals/ok"), accepted, "{flags:?}: {ended:#?}");
        assert_eq!(ended.count("/totals/handshakes/count"), accepted, "{flags:?}");
    }
}

#[test]
fn full_and_resumed_handshakes_are_as_many_as_openssl_counts() {
    let mut server = OpensslServer::start();
    let address = server.address().to_string();
    for flags in [
        &["--tls", "1.2"][..],
        &["--tls", "1.3"],
        &["--tls", "1.3", "--close", "notify", "--request", "/"],
        &["--tls", "1.2", "--resumption", "id"],
        &["--tls", "1.2", "--resumption", "ticket", "--resumption-ratio", "50%"],
        &["--tls", "1.3", "--resumption", "psk"],
    ] {
        let before = server.counts();
        let ended = run(&[&["handshake", &address, "--insecure", "-c", "5", "-n", "333"], flags].concat());
        let counts = server.counts();
        let made = |name: &str| ended.count(&format!("/totals/handshakes/{name}"));
        assert_eq!((ended.count("/totals/ok"), made("count")), (333, 333), "{flags:?}: {ended:#?}");
        assert_eq!(counts.finished - before.finished, 333, "{flags:?}: {ended:#?}");
        assert_eq!(counts.resumed - before.resumed, made("resumed"), "{flags:?}: {ended:#?}");
        assert_eq!(made("resumed") > 0, flags.contains(&"--resumption"), "{flags:?}: {ended:#?}");
    }
}

#[test]
fn each_handshake_with_a_request_is_a_line_in_nginx_s_log() {
    let nginx = Server::nginx(NginxOptions::default());
    let tls = authority(&nginx.tls_url("/"));
    let ended = run(&["handshake", &tls, "--insecure", "-n", "500", "--request", "/", "--close", "notify"]);
    assert_eq!(ended.count("/totals/ok"), 500, "{ended:#?}");
    assert_eq!(nginx.logged_count(), 500);
}

#[test]
fn early_data_is_counted_as_nginx_counts_it() {
    let options = NginxOptions { tls13: true, early_data: true, ..NginxOptions::default() };
    let nginx = Server::nginx(options);
    let tls = authority(&nginx.tls_url("/"));
    let flags = ["--insecure", "-c", "5", "-n", "300", "--resumption", "psk", "--early-data"];
    let ended = run(&[&["handshake", &tls, "--request", "/", "--close", "notify"], &flags[..]].concat());
    let made = |name: &str| ended.count(&format!("/totals/handshakes/{name}"));
    assert_eq!((ended.count("/totals/ok"), made("count")), (300, 300), "{ended:#?}");
    let lines = nginx.into_access_log();
    // The fields that follow the five of each line: `r` or `.`, and `1` where the request was early.
    let fields = |line: &String| line.split(' ').skip(5).map(str::to_owned).collect::<Vec<_>>();
    let count =
        |wanted: &dyn Fn(&[String]) -> bool| lines.iter().filter(|line| wanted(&fields(line))).count() as u64;
    assert_eq!(lines.len(), 300);
    assert_eq!(count(&|fields| fields[0] == "r"), made("resumed"));
    assert_eq!(count(&|fields| fields[0] != "r"), made("full"));
    assert_eq!((made("early_data_accepted"), made("early_data_rejected")), (made("resumed"), 0));
    assert_eq!(made("early_data_accepted") + made("without_ticket"), 300);
    // nginx calls a request early only if it gets to it before the handshake is whole, so it may tell of a few less.
    let logged = count(&|fields| fields[1] == "1");
    assert!((1..=made("early_data_accepted")).contains(&logged), "{logged} logged: {ended:#?}");
}

#[test]
fn a_rate_that_the_server_can_follow_is_kept() {
    let nginx = Server::nginx(NginxOptions { tls13: true, ..NginxOptions::default() });
    let (tls, plain) = (authority(&nginx.tls_url("/")), authority(&nginx.url("/")));
    let before = accepted(&plain);
    let ended = run(&["handshake", &tls, "--insecure", "-r", "1k/s", "-d", "3s"]);
    // The question itself is a connection, too.
    let done = accepted(&plain) - before - 1;
    assert_eq!((ended.assert_all_counted(), ended.count("/totals/ok")), (done, done), "{ended:#?}");
    assert_eq!(ended.count("/totals/requests_asked"), 3000, "{ended:#?}");
    // Where the machine is too busy for that, it is said: such a run is not called valid.
    let is_kept = (2970..=3030).contains(&done);
    assert!(is_kept || ended.json()["verdict"]["status"] != "VALID", "{ended:#?}");
}

/// Five connections, each of which the server keeps waiting for 100 ms, make at most 50 handshakes a second of the 200 asked.
#[test]
fn a_rate_that_the_server_cannot_follow_is_reported_as_a_backlog() {
    const SLOW: Peer = Peer {
        name: "slow",
        tls: Tls::Valid,
        acts: &[Act::Pause(Duration::from_millis(100)), Act::Hold],
        args: &[],
        expect: Expect { ok: true, failures: &[] },
    };
    let server = HostileServer::start(&SLOW);
    let (folder, address) = (TempDir::new().unwrap(), server.address().to_string());
    let path = folder.path().join("result.json").display().to_string();
    let flags = ["--insecure", "-c", "5", "-r", "200/s", "-d", "3s", "--no-save", "--json", &path];
    let summary = start(&[&["handshake", &address], &flags[..]].concat()).wait();
    let ended = Ended { stdout: fs::read_to_string(&path).unwrap(), ..summary.clone() };
    let started = ended.assert_all_counted();
    let never_started = 600 - started;
    assert_eq!((ended.count("/totals/requests_asked"), ended.count("/totals/ok")), (600, started));
    // One after the other on each connection, thirty in three seconds; and one each that may just have begun.
    assert!((20..=155).contains(&started), "{ended:#?}");
    let json = ended.json();
    let seconds = json["series"].as_array().unwrap();
    let backlog = seconds.iter().map(|second| second["arrivals_waiting"].as_u64().unwrap()).max();
    assert_eq!(backlog, Some(never_started), "{ended:#?}");
    assert!(json["verdict"]["notes"].as_array().unwrap().iter().any(|note| note["kind"] == "backlog"));
    // The wait for a connection is in the latency and not in the service time.
    let mean = |name: &str| ended.number(&format!("/{name}/mean"));
    assert!(mean("service_us") >= 100_000.0, "{ended:#?}");
    assert!(mean("latency_us") - mean("service_us") >= 0.9 * mean("phases_us/blocked"), "{ended:#?}");
    // Arrivals come four times as fast as they can begin.
    assert!(ended.number("/phases_us/blocked/max") >= 1_000.0 * started as f64, "{ended:#?}");
    let said = summary.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "RATE scheduled",
        "/s started",
        "/s completed",
        &format!("never started {never_started}"),
        &format!("note: {never_started} arrivals waited for a free connection"),
        "the server did not keep up with the rate",
        "service time",
    ] {
        assert!(said.contains(words), "{words}: {}", summary.stdout);
    }
}

#[test]
fn a_full_server_closes_and_each_close_is_counted() {
    let nginx = Server::nginx(NginxOptions { connection_count_max: 40, ..NginxOptions::default() });
    let (tls, plain) = (authority(&nginx.tls_url("/")), authority(&nginx.url("/")));
    let ended = run(&["idle", &plain, "-c", "100", "-d", "2s", "--open-rate", "100/s", "--no-reopen"]);
    let kept = |name: &str| ended.count(&format!("/totals/idle_connections/{name}"));
    assert_eq!((kept("opened"), lost(&ended) + kept("closed_by_us")), (100, 100), "{ended:#?}");
    assert!(lost(&ended) >= 60, "{ended:#?}");
    let ended = run(&[
        "idle",
        &tls,
        "--tls",
        "--insecure",
        "-c",
        "100",
        "-d",
        "2s",
        "--open-rate",
        "100/s",
        "--no-reopen",
    ]);
    assert_eq!(ended.assert_all_counted(), ended.count("/totals/ok") + ended.count("/totals/failed"));
    assert!(ended.count("/totals/failed") + lost(&ended) >= 60, "{ended:#?}");
    for (cause, phase, _) in ended.errors() {
        assert!(
            GONE.contains(&(cause.as_str(), phase.as_str())) || phase == "connecting",
            "{cause} in {phase}"
        );
    }
}

#[test]
fn what_1_200_000_connections_need_is_reported_before_any_is_opened() {
    let squall = env!("CARGO_BIN_EXE_squall");
    let mut command = Command::new("sh");
    let script = format!("ulimit -n 20000; exec {squall} idle 127.0.0.1:9 -c 1200000 --dry-run --no-save");
    command.args(["-c", &script]);
    let ended = start_command(command).wait();
    assert_eq!(ended.code, Some(2), "as the run itself would: {ended:#?}");
    for line in
        ["1200064 open files (20000 here)", "across 61 processes", "1200000 local ports", "GiB of memory"]
    {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
}

#[test]
fn signs_of_life_are_answered_by_those_who_are_asked() {
    let nginx = Server::nginx(NginxOptions::default());
    let (plain, tls) = (authority(&nginx.url("/")), authority(&nginx.tls_url("/")));
    let h2c = nginx.h2c_url("/").replace("h2c://", "").replace('/', "");
    let h2o = Server::h2o();
    let h2o_tls = authority(&h2o.tls_url("/"));
    for (flags, answers) in [
        (&["idle", &plain, "--ping-with", "request"][..], true),
        (&["idle", &plain, "--ping-with", "byte"], false),
        (&["idle", &tls, "--tls", "--insecure", "--ping-with", "request"], true),
        (&["idle", &h2c, "--http", "2"], true),
        (&["idle", &tls, "--tls", "--insecure", "--http", "2"], true),
        (&["idle", &h2o_tls, "--tls", "--insecure", "--http", "2"], true),
    ] {
        let ended = run(&[flags, &["-c", "20", "-d", "1500ms", "--ping", "200ms"]].concat());
        let kept = |name: &str| ended.count(&format!("/totals/idle_connections/{name}"));
        assert_eq!((kept("opened"), kept("closed_by_us")), (20, 20), "{flags:?}: {ended:#?}");
        assert!(kept("pings") >= 20, "{flags:?}: {ended:#?}");
        // Those of the last moment may be on their way.
        let answered = kept("ping_us/count");
        let expected = if answers { kept("pings") - 20..=kept("pings") } else { 0..=0 };
        assert!(expected.contains(&answered), "{flags:?}: {answered} of {}", kept("pings"));
    }
}

#[test]
fn hostile_servers_lose_kept_connections_by_cause() {
    assert_none_complains(IDLE_PEERS, |peer| {
        let ended = run_idle_against(peer);
        let lost = |name: &str| ended.count(&format!("/totals/idle_connections/{name}")) > 0;
        let losses: Vec<&str> =
            ["closed_by_server", "reset", "broken"].into_iter().filter(|name| lost(name)).collect();
        let failures: Vec<(String, String)> =
            ended.errors().into_iter().map(|(cause, phase, _)| (cause, phase)).collect();
        let is_known = losses.iter().all(|loss| peer.losses.contains(loss))
            && failures.iter().all(|(cause, phase)| peer.failures.contains(&(cause, phase)));
        let is_harmless = peer.losses.is_empty() && peer.failures.is_empty();
        let is_right = is_known && is_harmless == (losses.is_empty() && failures.is_empty());
        let is_small = ended.rss_bytes < RSS_BYTES_MAX;
        ended.assert_all_counted();
        let what =
            || format!("{}: {losses:?} {failures:?} {} bytes: {}", peer.name, ended.rss_bytes, ended.stderr);
        (!is_right || !is_small || !matches!(ended.code, Some(0 | 4 | 5))).then(what)
    });
}

fn run_idle_against(idle: &IdlePeer) -> Ended {
    let IdlePeer { name, tls, acts, args, .. } = *idle;
    let expect = Expect { ok: false, failures: &[] };
    let server = HostileServer::start(&Peer { name, tls, acts, args, expect });
    let address = server.address().to_string();
    let limits = ["--connect-timeout", "400ms", "--timeout", "400ms"];
    run(&[&["idle", &address, "-c", "3", "-d", "1500ms"], &limits[..], args].concat())
}

/// A server that misbehaves towards connections that are kept.
struct IdlePeer {
    name: &'static str,
    tls: Tls,
    acts: &'static [Act],
    args: &'static [&'static str],
    /// How kept connections end other than by us; empty: none does.
    losses: &'static [&'static str],
    /// Causes and phases of those that are not kept; empty: all are.
    failures: &'static [(&'static str, &'static str)],
}

const IDLE_PEERS: &[IdlePeer] = &[
    silent("closes at once", &[], &["closed_by_server"]),
    IdlePeer { failures: RESET, ..silent("resets at once", &[Act::Reset], &["reset"]) },
    silent("says what nobody asked for, for ever", &[Act::SendForever(b"hello")], &[]),
    silent("never reads", &[Act::HoldUnread], &[]),
    IdlePeer {
        args: &["--ping", "100ms"],
        ..silent("does not answer a ping", &[Act::ReadRequest, Act::Hold], &["broken"])
    },
    IdlePeer {
        args: &["--ping", "100ms"],
        ..silent(
            "answers a ping with nonsense",
            &[Act::ReadRequest, Act::Send(b"hello\r\n\r\n"), Act::Hold],
            &["broken"],
        )
    },
    IdlePeer {
        args: &["--ping", "50ms", "--ping-with", "byte"],
        ..silent("never reads what is said", &[Act::HoldUnread], &[])
    },
    IdlePeer {
        args: &["--after-request"],
        failures: &[("timeout", "waiting")],
        ..silent("does not answer the first request", &[Act::ReadRequest, Act::Hold], &[])
    },
    over_h2(
        "goes away",
        &[Act::ReadSome, Act::Send(SETTINGS), Act::Send(GOAWAY), Act::Hold],
        &["closed_by_server"],
    ),
    over_h2(
        "resets after its settings",
        &[Act::ReadSome, Act::Send(SETTINGS), Act::ReadSome, Act::Reset],
        &["reset"],
    ),
    over_h2(
        "asks for ever and never reads",
        &[Act::ReadSome, Act::Send(SETTINGS), Act::SendForever(H2_PING)],
        &["broken", "reset"],
    ),
    IdlePeer {
        args: &["--http", "2", "--ping", "100ms"],
        ..over_h2("does not answer a ping", &[Act::ReadSome, Act::Send(SETTINGS), Act::Hold], &["broken"])
    },
    IdlePeer { failures: &[("timeout", "waiting")], ..over_h2("sends no settings", &[Act::Hold], &[]) },
    IdlePeer {
        failures: &[("http_protocol", "receiving")],
        ..over_h2("sends a frame that is too large", &[Act::ReadSome, Act::Send(HUGE_FRAME), Act::Hold], &[])
    },
    IdlePeer {
        tls: Tls::Valid,
        args: &["--http", "2", "--tls", "--insecure"],
        failures: &[("tls_protocol", "tls_handshaking"), ("version_not_negotiated", "tls_handshaking")],
        ..over_h2("does not support HTTP/2", &[Act::Hold], &[])
    },
    IdlePeer {
        tls: Tls::Valid,
        args: &["--tls", "--insecure"],
        ..silent("closes TLS at once", &[Act::Send(b"x")], &["closed_by_server", "reset"])
    },
];

const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
const H2_PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";
const HUGE_FRAME: &[u8] = b"\xff\xff\xff\0\0\0\0\0\0";

const fn silent(name: &'static str, acts: &'static [Act], losses: &'static [&'static str]) -> IdlePeer {
    IdlePeer { name, tls: Tls::No, acts, args: &[], losses, failures: &[] }
}

const fn over_h2(name: &'static str, acts: &'static [Act], losses: &'static [&'static str]) -> IdlePeer {
    IdlePeer { name, tls: Tls::No, acts, args: &["--http", "2"], losses, failures: &[] }
}

#[test]
fn idle_connections_are_those_that_nginx_holds() {
    let nginx = Server::nginx(NginxOptions::default());
    let (tls, plain) = (authority(&nginx.tls_url("/")), authority(&nginx.url("/")));
    for flags in [
        &["idle", &plain, "-c", "300", "-d", "1s"][..],
        &["idle", &tls, "--tls", "--insecure", "-c", "100", "--source", "127.0.0.2-127.0.0.4", "-d", "2s"],
        &["idle", &plain, "-c", "300", "-d", "1s", "--after-request", "--ping", "200ms"],
        &["idle", &plain, "-c", "300", "-d", "1s", "--ping", "200ms", "--ping-with", "byte"],
    ] {
        let ended = run(flags);
        assert_eq!(ended.assert_all_counted(), 300, "{flags:?}");
        assert_eq!(ended.count("/totals/idle_connections/opened"), 300, "{flags:?}: {ended:#?}");
        assert_eq!(ended.count("/totals/idle_connections/open_max"), 300, "{flags:?}");
        assert_eq!(ended.count("/totals/idle_connections/closed_by_us"), 300, "{flags:?}");
    }
}

#[test]
fn hostile_servers_are_counted_by_cause_and_phase_in_handshakes() {
    for peer in HANDSHAKE_PEERS {
        let ended = run_against(peer);
        // A client that TLS lets in before the server refuses it has reached the target.
        let is_never_open = peer.failures.iter().all(|(_, phase)| *phase == "tls_handshaking");
        assert!(
            ended.code == Some(4) || !is_never_open && ended.code == Some(0),
            "{}: {ended:#?}",
            peer.name
        );
        assert!(ended.rss_bytes < RSS_BYTES_MAX, "{}: {} bytes", peer.name, ended.rss_bytes);
        assert!(ended.assert_all_counted() >= 6, "{}: given up early: {ended:#?}", peer.name);
        assert_eq!(ended.count("/totals/ok"), 0, "{}: {ended:#?}", peer.name);
        for (cause, phase, _) in ended.errors() {
            let is_right = peer.failures.contains(&(cause.as_str(), phase.as_str()));
            assert!(is_right, "{}: {cause} in {phase}: {}", peer.name, ended.stdout);
        }
    }
}

#[test]
fn a_full_backlog_is_a_connect_timeout_and_is_tried_again() {
    let server = FullBacklog::start();
    let address = authority(&server.url());
    let ended = run(&["handshake", &address, "-c", "2", "-n", "4", "--connect-timeout", "200ms"]);
    assert_eq!(ended.errors(), [("connect_timeout".to_owned(), "connecting".to_owned(), 4)], "{ended:#?}");
}

#[test]
fn a_server_that_stops_accepting_leaves_what_is_open_open() {
    let nginx = Server::nginx(NginxOptions::default());
    let plain = authority(&nginx.url("/"));
    let args = ["idle", &plain, "-c", "50", "-d", "3s", "--no-reopen"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
    command.args(with_json(&args));
    let running = start_command(command);
    // Each question is a connection, too.
    let mut question_count = 0;
    let is_open = squall_testkit::wait_until(Duration::from_secs(20), || {
        question_count += 1;
        accepted(&plain) >= 50 + question_count
    });
    assert!(is_open, "not all were opened");
    drop(nginx);
    let ended = running.wait();
    assert_eq!(ended.count("/totals/idle_connections/opened"), 50, "{ended:#?}");
    assert_eq!(lost(&ended), 50, "{ended:#?}");
}

fn lost(ended: &Ended) -> u64 {
    let kept = |name: &str| ended.count(&format!("/totals/idle_connections/{name}"));
    kept("closed_by_server") + kept("reset")
}

/// Host and port of a URL.
pub(crate) fn authority(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

/// nginx's count of accepted connections, this one included.
fn accepted(address: &str) -> u64 {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /status HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let counts = text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1).unwrap();
    counts.split_whitespace().next().unwrap().parse().unwrap()
}

fn run_against(hostile: &Hostile) -> Ended {
    let Hostile { name, tls, acts, args, .. } = *hostile;
    let server =
        HostileServer::start(&Peer { name, tls, acts, args, expect: Expect { ok: false, failures: &[] } });
    let address = server.address().to_string();
    let folder = TempDir::new().unwrap();
    let ca_path = folder.path().join("ca.pem").display().to_string();
    let mut all = vec!["handshake", &address, "-c", "2", "-n", "6", "--connect-timeout", "400ms"];
    all.extend(args);
    if let Some(pem) = server.ca_pem() {
        fs::write(&ca_path, pem).unwrap();
        all.extend(["--cacert", &ca_path]);
    }
    run(&all)
}

/// A server that misbehaves in or after the TLS handshake.
struct Hostile {
    name: &'static str,
    tls: Tls,
    /// What it does on each connection; then it closes.
    acts: &'static [Act],
    args: &'static [&'static str],
    /// Causes and phases that are right; more than one where the order of two packets decides.
    failures: &'static [(&'static str, &'static str)],
}

const TIMEOUT: &[(&str, &str)] = &[("connect_timeout", "tls_handshaking")];
const GONE: &[(&str, &str)] =
    &[("connection_closed", "tls_handshaking"), ("connection_reset", "tls_handshaking")];
/// The reset may be there before we see the connection stand.
const RESET: &[(&str, &str)] = &[("connection_reset", "tls_handshaking"), ("connection_reset", "connecting")];
const NOT_TLS: &[(&str, &str)] = &[("tls_protocol", "tls_handshaking")];
const ALERT: &[(&str, &str)] = &[("tls_alert", "tls_handshaking"), ("tls_protocol", "tls_handshaking")];
const CERTIFICATE: &[(&str, &str)] = &[("tls_certificate", "tls_handshaking")];

/// A fatal `handshake_failure`, in the clear.
const FATAL_ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x28";

const HANDSHAKE_PEERS: &[Hostile] = &[
    raw("accepts and never answers", &[Act::Hold], TIMEOUT),
    raw("accepts and never reads", &[Act::HoldUnread], TIMEOUT),
    raw("closes at once", &[], GONE),
    raw("resets at once", &[Act::Reset], RESET),
    raw("closes after the hello", &[Act::ReadSome], GONE),
    raw("resets after the hello", &[Act::ReadSome, Act::Reset], GONE),
    raw("alert after the hello", &[Act::ReadSome, Act::Send(FATAL_ALERT)], ALERT),
    raw("speaks HTTP", &[Act::ReadSome, Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Act::Hold], NOT_TLS),
    raw(
        "endless bytes of a handshake",
        &[Act::ReadSome, Act::SendForever(b"\x16\x03\x03\x00\x01\x02")],
        NOT_TLS,
    ),
    raw("endless warnings", &[Act::ReadSome, Act::SendForever(b"\x15\x03\x03\x00\x02\x01\x5a")], ALERT),
    raw("endless empty records", &[Act::ReadSome, Act::SendForever(b"\x16\x03\x03\x00\x00")], NOT_TLS),
    raw(
        "a record that never ends",
        &[Act::ReadSome, Act::Send(b"\x16\x03\x03\x40\x00\x02"), Act::Hold],
        TIMEOUT,
    ),
    raw(
        "one byte now and then",
        &[Act::ReadSome, Act::Drip(b"\x16", Duration::from_millis(50))],
        ALERT_OR_TIMEOUT,
    ),
    within("closes after its hello", Tls::HelloThen(b""), &[], GONE),
    within("resets after its hello", Tls::HelloThen(b""), &[Act::Reset], GONE),
    within("alert after its hello", Tls::HelloThen(FATAL_ALERT), &[Act::Hold], ALERT),
    within("silent after its hello", Tls::HelloThen(b""), &[Act::Hold], TIMEOUT),
    within("certificate of another name", Tls::WrongName, &[Act::Hold], CERTIFICATE),
    within("expired certificate", Tls::Expired, &[Act::Hold], CERTIFICATE),
    within("nobody's certificate", Tls::Untrusted, &[Act::Hold], CERTIFICATE),
    Hostile {
        args: &["--request", "/"],
        ..within("wants a certificate of ours", Tls::WantsClientCert, &[Act::ReadRequest], WANTS_OURS)
    },
    Hostile {
        args: &["--request", "/", "--tls", "1.2"],
        ..within(
            "refuses our lack of a certificate in its last flight",
            Tls::WantsClientCert,
            &[Act::ReadRequest],
            WANTS_OURS,
        )
    },
    within("knows no such name", Tls::UnknownName, &[Act::Hold], ALERT),
    raw("says goodbye after the hello", &[Act::ReadSome, Act::Send(CLOSE_NOTIFY), Act::Hold], GONE_OR_ALERT),
    within("says goodbye after its hello", Tls::HelloThen(CLOSE_NOTIFY), &[Act::Hold], GONE_OR_ALERT),
    raw(
        "an alert of an unknown kind",
        &[Act::ReadSome, Act::Send(b"\x15\x03\x03\x00\x02\x02\xff"), Act::Hold],
        ALERT,
    ),
    raw("half an alert", &[Act::ReadSome, Act::Send(b"\x15\x03\x03\x00\x02\x02"), Act::Hold], TIMEOUT),
    Hostile { args: &["--tls", "1.2"], ..within("wrong version", Tls::Only13, &[Act::Hold], ALERT) },
    Hostile {
        args: &["--request", "/"],
        ..within("closes instead of answering", Tls::Valid, &[Act::ReadRequest], NO_ANSWER)
    },
    Hostile {
        args: &["--request", "/", "--timeout", "300ms"],
        ..within("never answers", Tls::Valid, &[Act::ReadRequest, Act::Hold], &[("timeout", "waiting")])
    },
    Hostile {
        args: &["--request", "/"],
        ..within(
            "answers nonsense",
            Tls::Valid,
            &[Act::ReadRequest, Act::Send(b"hello\r\n\r\n"), Act::Hold],
            &[("http_protocol", "receiving")],
        )
    },
];

/// `close_notify`, in the clear.
const CLOSE_NOTIFY: &[u8] = b"\x15\x03\x03\x00\x02\x01\x00";
/// It need not be heeded before there is a session: then time is what ends the wait.
const GONE_OR_ALERT: &[(&str, &str)] = &[
    ("connect_timeout", "tls_handshaking"),
    ("connection_closed", "tls_handshaking"),
    ("tls_alert", "tls_handshaking"),
    ("tls_protocol", "tls_handshaking"),
];
const ALERT_OR_TIMEOUT: &[(&str, &str)] =
    &[("tls_protocol", "tls_handshaking"), ("connect_timeout", "tls_handshaking")];
const NO_ANSWER: &[(&str, &str)] =
    &[("connection_closed", "waiting"), ("connection_reset", "waiting"), ("connection_reset", "receiving")];
/// In TLS 1.3 the client's handshake is whole before the server refuses; the request finds out.
const WANTS_OURS: &[(&str, &str)] = &[("tls_alert", "tls_handshaking"), ("tls_alert", "waiting")];

const fn raw(
    name: &'static str,
    acts: &'static [Act],
    failures: &'static [(&'static str, &'static str)],
) -> Hostile {
    Hostile { name, tls: Tls::Raw, acts, args: &[], failures }
}

const fn within(
    name: &'static str,
    tls: Tls,
    acts: &'static [Act],
    failures: &'static [(&'static str, &'static str)],
) -> Hostile {
    Hostile { name, tls, acts, args: &[], failures }
}

/// Whatever the peer sends.
const RSS_BYTES_MAX: u64 = 64 * 1024 * 1024;
