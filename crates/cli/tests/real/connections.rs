//! `squall handshake` and `squall idle` against nginx, whose own count must be ours, and against servers that break every rule.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use squall_testkit::hostile::{Act, Expect, FullBacklog, HostileServer, Peer, Tls};
use squall_testkit::real::{NginxOptions, Server};
use tempfile::TempDir;

use crate::squall::{Ended, run, start_command, with_json};

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
fn each_handshake_with_a_request_is_a_line_in_nginx_s_log() {
    let nginx = Server::nginx(NginxOptions::default());
    let tls = authority(&nginx.tls_url("/"));
    let ended = run(&["handshake", &tls, "--insecure", "-n", "500", "--request", "/", "--close", "notify"]);
    assert_eq!(ended.count("/totals/ok"), 500, "{ended:#?}");
    assert_eq!(nginx.logged_count(), 500);
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
        assert!(matches!(ended.code, Some(0 | 4)), "{}: {ended:#?}", peer.name);
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
fn too_few_descriptors_are_told_before_anything_is_opened() {
    let mut command = Command::new("sh");
    let squall = env!("CARGO_BIN_EXE_squall");
    let script = format!("ulimit -n 200; exec {squall} idle 127.0.0.1:9 -c 1000 --no-save");
    command.args(["-c", &script]);
    let ended = start_command(command).wait();
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("open files are needed"), "{}", ended.stderr);
}

#[test]
fn a_server_that_stops_accepting_leaves_what_is_open_open() {
    let nginx = Server::nginx(NginxOptions::default());
    let plain = authority(&nginx.url("/"));
    let args = ["idle", &plain, "-c", "50", "-d", "3s", "--no-reopen"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
    command.args(with_json(&args));
    let running = start_command(command);
    squall_testkit::wait_until(Duration::from_secs(20), || accepted(&plain) > 50);
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
fn authority(url: &str) -> String {
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
