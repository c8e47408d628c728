//! HTTP/3 and QUIC with a server that people use: no request fails, and counts are the server's own.

use std::net::Ipv6Addr;
use std::path::Path;

use squall_server::{Options, Target, Tls};
use squall_testkit::quic::{LossyRelay, PEERS, PathFaults, QuicPeer};
use squall_testkit::real::Server;

use crate::squall::{Ended, run, start};

/// Runs with the server's authority trusted.
fn run_trusting(server: &Server, args: &[&str]) -> Ended {
    let ca_file = server.ca_file().display().to_string();
    run(&[args, &["--cacert", &ca_file]].concat())
}

fn protocol(ended: &Ended) -> String {
    ended.json()["rows"][0]["protocol"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn requests_over_http3_equal_caddy_s_log() {
    let server = Server::caddy(None);
    let mut count = 0;
    for streams in ["1", "10", "100"] {
        let ended = run_trusting(&server, &[&server.h3_url("/"), "-c4", "-n3000", "--streams", streams]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert_eq!((ended.assert_all_counted(), ended.count("/status/200")), (3000, 3000), "{ended:#?}");
        assert_eq!((protocol(&ended), ended.count("/totals/http3/streams")), ("h3".to_owned(), 3000));
        assert_eq!(ended.count("/totals/quic/connections"), 4, "{ended:#?}");
        count += 3000;
    }
    let log = server.into_access_log();
    assert_eq!(log.len(), count);
    assert!(log.iter().all(|line| line.contains(r#""proto":"HTTP/3.0""#)), "{}", log[0]);
}

#[test]
fn bodies_redirects_and_head_work_over_http3() {
    let server = Server::caddy(None);
    let moved = server.h3_url("/moved");
    let upload = server.ca_file().with_file_name("www/1m").display().to_string();
    for (path, args, ok) in [
        ("/1m", &["-n20", "--streams", "4", "--expect-body-bytes", "1000000"][..], 20),
        ("/1m", &["-n20", "--streams", "4", "--window", "20000", "--connection-window", "65535"], 20),
        ("/1m", &["-n20", "-X", "HEAD", "--expect-body-bytes", "0"], 20),
        ("/echo", &["-n20", "--streams", "2", "--body", "abc", "--expect-body-bytes", "3"], 20),
        ("/", &["-n20", "--streams", "2", "--body-file", &upload], 20),
        ("/", &["-n20", "--no-keepalive"], 20),
        ("/", &["-n20", "--requests-per-connection", "5"], 20),
        ("/", &["-n20", "--udp-socket-per-connection", "--no-gso", "--no-ecn", "--quic-cc", "bbr"], 20),
        ("/", &["-n20", "--max-udp-payload-size", "1200"], 20),
        ("/", &["-n20", "--qpack-table", "4KiB", "--ack-frequency", "10"], 20),
        ("/", &["-d1s", "--rate", "50"], 50),
    ] {
        let url = server.h3_url(path);
        let ended = run_trusting(&server, &[&[&url, "-c2"], args].concat());
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), ok), "{path} {args:?} {ended:#?}");
        ended.assert_all_counted();
    }
    let ended = run_trusting(&server, &[&moved, "-c1", "-n10", "--follow", "2"]);
    assert_eq!((ended.count("/status/302"), ended.count("/status/200")), (10, 10), "{ended:#?}");
}

/// RFC 9218 5: the priority of a request is a field of it.
#[test]
fn the_server_receives_priorities() {
    let server = Server::caddy(None);
    let args = ["-c1", "-n3", "-H", "priority: u=1, i"];
    let ended = run_trusting(&server, &[&[&*server.h3_url("/")], &args[..]].concat());
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 3), "{ended:#?}");
    let log = server.into_access_log();
    let has_priority = |line: &String| line.contains(r#""Priority":["u=1, i"]"#);
    assert!(log.len() == 3 && log.iter().all(has_priority), "{log:#?}");
}

#[test]
fn one_run_speaks_http11_h2_and_h3_at_once() {
    let server = Server::caddy(None);
    let urls = [server.tls_url("/"), server.h2_url("/"), server.h3_url("/")];
    let args: Vec<&str> = urls.iter().map(String::as_str).chain(["-c3", "-n300", "--streams", "5"]).collect();
    let ended = run_trusting(&server, &args);
    let json = ended.json();
    let rows = json["rows"].as_array().unwrap();
    let row = |row: &serde_json::Value| {
        (row["protocol"].as_str().unwrap_or_default().to_owned(), row["ok"].as_u64())
    };
    let named = |name: &str| (name.to_owned(), Some(100));
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), ["https/1.1", "h2", "h3"].map(named));
}

#[test]
fn quic_handshakes_are_full_resumed_or_early() {
    let server = Server::caddy(None);
    let address = server.tls_address();
    let full = run_trusting(&server, &["handshake", &address, "--quic", "-c4", "-n100"]);
    assert_eq!((full.code, full.count("/totals/handshakes/full")), (Some(0), 100), "{full:#?}");
    let args = ["handshake", &address, "--quic", "-c2", "-n100", "--resumption", "psk"];
    let resumed = run_trusting(&server, &args);
    let counts = ["full", "resumed"].map(|kind| resumed.count(&format!("/totals/handshakes/{kind}")));
    assert!(counts[1] >= 90 && counts.iter().sum::<u64>() == 100, "{resumed:#?}");
    let early = run_trusting(&server, &[&args[..], &["--early-data"]].concat());
    let counts = ["early_data_accepted", "early_data_rejected"]
        .map(|kind| early.count(&format!("/totals/handshakes/{kind}")));
    assert!(counts.iter().sum::<u64>() >= 90, "{early:#?}");
}

#[test]
fn early_data_that_the_server_rejects_is_counted() {
    let peer = PEERS.iter().find(|peer| peer.name == "tickets of no use").unwrap();
    let server = QuicPeer::start(peer);
    let address = server.address().to_string();
    let flags = ["--insecure", "-c2", "-n20", "--resumption", "psk", "--early-data"];
    let ended = run(&[&["handshake", &address, "--quic"], &flags[..]].concat());
    let made = |kind: &str| ended.count(&format!("/totals/handshakes/{kind}"));
    assert_eq!((ended.code, made("full"), made("early_data_accepted")), (Some(0), 20, 0), "{ended:#?}");
    // The first on each connection has no ticket.
    assert!(made("early_data_rejected") >= 10, "{ended:#?}");
    assert_eq!(made("early_data_rejected") + made("without_ticket"), 20, "{ended:#?}");
}

#[test]
fn keys_of_quic_connections_are_logged() {
    let target = secure_target();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let (url, keys) = (format!("h3://{}/get", target.address()), path.display().to_string());
    let ended = run(&[&url, "-c2", "-n4", "--insecure", "--key-log", &keys]);
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 4), "{ended:#?}");
    let text = std::fs::read_to_string(&path).unwrap();
    for side in ["CLIENT", "SERVER"] {
        for secret in ["HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0"] {
            let begin = format!("{side}_{secret} ");
            let randoms: std::collections::BTreeSet<&str> =
                text.lines().filter_map(|line| line.strip_prefix(&begin)?.split(' ').next()).collect();
            assert_eq!(randoms.len(), 2, "{begin}: {text}");
        }
    }
}

#[test]
fn http3_works_over_ipv6() {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    let listen = (Ipv6Addr::LOCALHOST, 0).into();
    let target = Target::start(&Options { listen, tls, http3: true, ..Options::default() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("cert.pem");
    std::fs::write(&ca_file, target.certificate_pem().unwrap()).unwrap();
    let (url, ca_file) = (format!("h3://{}/get", target.address()), ca_file.display().to_string());
    for args in [&["-n100", "--streams", "5"][..], &["-n100", "--udp-socket-per-connection"]] {
        let ended = run(&[&[&*url, "-c2", "--cacert", &ca_file], args].concat());
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 100), "{ended:#?}");
        assert_eq!((protocol(&ended), ended.assert_all_counted()), ("h3".to_owned(), 100));
    }
}

#[test]
fn streamed_responses_come_over_http3() {
    let target = secure_target();
    let url = format!("h3://{}/sse?count=5&interval=5ms&end=[DONE]", target.address());
    for args in [&["-c2", "--streams", "5"][..], &["-c2"], &["-c10", "-r", "100"]] {
        let all = [&["stream", "-n20", "--done", "[DONE]", "--insecure", &url], args].concat();
        let ended = run(&all);
        let count = |name: &str| ended.count(&format!("/totals/streams/{name}"));
        assert_eq!((count("opened"), count("events"), count("ended_early")), (20, 120, 0), "{ended:#?}");
        assert_eq!((ended.code, ended.count("/totals/http3/streams")), (Some(0), 20), "{ended:#?}");
        // Five events at 5 ms each, and one at the end.
        assert!(ended.number("/totals/streams/event_gap_us/max") >= 5_000.0, "{ended:#?}");
        ended.assert_all_counted();
    }
}

#[test]
fn missed_thresholds_over_http3_decide_the_exit_code() {
    let target = secure_target();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.js").display().to_string();
    let url = format!("h3://{}/status/503", target.address());
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ iterations: 3, thresholds: {{ http_req_failed: [`rate<${{__ENV.RATE}}`] }} }};
         export default function () {{ http.get('{}'); }}",
        url.replacen("h3:", "https:", 1)
    );
    std::fs::write(&script, text).unwrap();
    for (rule, rate, codes) in [("requests<3", "RATE=0.5", [3, 99]), ("requests<4", "RATE=1.1", [0, 0])] {
        let plain = run(&[&url, "-c1", "-n3", "--insecure", "--threshold", rule]);
        let args = ["run", "--no-save", "--http", "3", "--insecure-skip-tls-verify", "-e", rate, &script];
        let ended = start(&args).wait();
        assert_eq!([plain.code, ended.code], codes.map(Some), "{plain:#?} {ended:#?}");
    }
}

#[test]
fn idle_quic_connections_answer_pings() {
    let server = Server::caddy(None);
    let address = server.tls_address();
    let args = ["idle", &address, "--quic", "-c20", "-d2s", "--ping", "300ms"];
    let ended = run_trusting(&server, &args);
    let idle = ["opened", "broken", "closed_by_us"]
        .map(|name| ended.count(&format!("/totals/idle_connections/{name}")));
    assert_eq!((ended.code, idle), (Some(0), [20, 0, 20]), "{ended:#?}");
    assert!(ended.count("/totals/idle_connections/ping_us/count") >= 40, "{ended:#?}");
}

#[test]
fn connections_survive_a_change_of_their_local_port() {
    // Not every server follows a client to another port: quic-go of Caddy 2.6 sends on to the first one.
    let target = secure_target();
    let (address, url) = (target.address().to_string(), format!("h3://{}/get", target.address()));
    for args in [
        &[&*url, "-c3", "-d1s", "--streams", "4", "--migrate", "100ms"][..],
        &[&url, "-c3", "-d1s", "--migrate", "100ms", "--udp-socket-per-connection"],
        &["idle", &address, "--quic", "-c3", "-d1s", "--migrate", "300ms", "--ping", "100ms"],
    ] {
        let ended = run(&[args, &["--insecure"]].concat());
        let count = |name: &str| ended.count(&format!("/totals/{name}"));
        assert_eq!((ended.code, count("failed"), count("quic/connections")), (Some(0), 0, 3), "{ended:#?}");
        let (moved, survived) = (count("quic/migrations"), count("quic/migrations_survived"));
        // The last move may come too late for an answer.
        assert!(moved >= 6 && survived <= moved && survived + 3 >= moved, "{moved} {survived} {args:?}");
    }
}

#[test]
fn an_ack_frequency_saves_acknowledgements_of_uploads() {
    let target = secure_target();
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("1m");
    std::fs::write(&body, vec![b'.'; 1_000_000]).unwrap();
    let (url, body) = (format!("h3://{}/upload", target.address()), body.display().to_string());
    // Datagrams that arrive together are acknowledged together, whatever was asked for.
    let received = ["1", "1000"].map(|frequency| {
        let args = ["-c1", "-n20", "--no-gso", "--body-file", &body, "--ack-frequency", frequency];
        let ended = run(&[&[&*url, "--insecure"], &args[..]].concat());
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 20), "{ended:#?}");
        ended.count("/totals/quic/datagrams_received")
    });
    assert!(received[1] * 4 < received[0], "{received:?}");
}

#[test]
fn the_first_hundred_connections_have_qlog_files() {
    let target = secure_target();
    let (address, url) = (target.address().to_string(), format!("h3://{}/get", target.address()));
    for (args, count) in [
        (&[&*url, "-c3", "-n30"][..], 3),
        (&[&url, "-c5", "-n110", "--no-keepalive"], 100),
        (&["handshake", &address, "--quic", "-c2", "-n4"], 4),
        (&["idle", &address, "--quic", "-c2", "-d1s", "--ping", "200ms"], 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder");
        let ended = run(&[args, &["--insecure", "--qlog", &path.display().to_string()]].concat());
        assert_eq!((ended.code, ended.count("/totals/failed")), (Some(0), 0), "{ended:#?}");
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), count, "{args:?}");
        (0..count).for_each(|number| assert_is_qlog(&path.join(format!("connection-{number}.sqlog"))));
    }
}

#[test]
fn steps_that_share_a_qlog_folder_keep_each_other_s_files() {
    let target = secure_target();
    let folder = tempfile::tempdir().unwrap();
    let (qlog, plan) = (folder.path().join("qlog"), folder.path().join("plan.yaml"));
    let load = format!(
        "{{ http: 'h3://{}/get', connections: 2, requests: 10, insecure: true, qlog: {qlog:?} }}",
        target.address()
    );
    let text = format!("steps:\n  - {{ name: a, loads: [{load}] }}\n  - {{ name: b, loads: [{load}] }}\n");
    std::fs::write(&plan, text).unwrap();
    let ended = run(&["run", &plan.display().to_string()]);
    assert_eq!((ended.code, ended.count("/totals/failed")), (Some(0), 0), "{ended:#?}");
    assert_eq!(std::fs::read_dir(&qlog).unwrap().count(), 4);
    (0..4).for_each(|number| assert_is_qlog(&qlog.join(format!("connection-{number}.sqlog"))));
}

/// A file of JSON text sequences (RFC 7464), with packets in both directions and what became of the connection.
fn assert_is_qlog(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a qlog file");
    let parse = |record| serde_json::from_str(record).expect("JSON");
    let records: Vec<serde_json::Value> = text.split('\u{1e}').skip(1).map(parse).collect();
    assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
    for name in ["packet_sent", "packet_received", "metrics_updated"] {
        let is_one =
            |record: &serde_json::Value| record["name"].as_str().is_some_and(|text| text.ends_with(name));
        assert!(records.iter().any(is_one), "{name} {}", records[1]);
    }
}

#[test]
fn what_cannot_be_written_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").display().to_string();
    std::fs::write(&file, "").unwrap();
    for (option, what) in [("--qlog", "qlog directory"), ("--key-log", "key log")] {
        let path = format!("{file}/below");
        let refused = run(&["h3://127.0.0.1:1/", "-n1", option, &path]);
        let message = format!("error: cannot write {what} `{path}`: Not a directory");
        assert!(refused.stderr.contains(&message) && refused.code == Some(2), "{refused:#?}");
    }
}

#[test]
fn what_stops_a_quic_connection_has_its_cause() {
    let server = Server::caddy(None);
    let url = server.h3_url("/");
    let untrusting = run(&[&url, "-c1", "-n1"]);
    assert_eq!(causes(&untrusting), [("tls_certificate".to_owned(), "tls_handshaking".to_owned())]);
    let wrong_name = run_trusting(&server, &[&url, "-c1", "-n1", "--sni", "other.example"]);
    assert_eq!(causes(&wrong_name), [("tls_alert".to_owned(), "tls_handshaking".to_owned())]);
    let other_protocol = run_trusting(&server, &[&url, "-c1", "-n1", "--alpn", "hq"]);
    assert_eq!(
        causes(&other_protocol),
        [("version_not_negotiated".to_owned(), "tls_handshaking".to_owned())]
    );
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&[&format!("h3://{closed}/"), "-c1", "-n1"]);
    assert_eq!(causes(&refused), [("connection_refused".to_owned(), "connecting".to_owned())]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let late = run(&[&format!("h3://{address}/"), "-c1", "-n1", "--connect-timeout", "300ms"]);
    assert_eq!(causes(&late), [("connect_timeout".to_owned(), "connecting".to_owned())]);
}

#[test]
fn requests_survive_a_path_with_faults() {
    let server = Server::caddy(None);
    for percent in [1, 5] {
        let faults = PathFaults {
            lost: percent,
            late: percent,
            twice: percent,
            corrupt: percent,
            ..PathFaults::default()
        };
        let relay = LossyRelay::start(server.tls_address().parse().unwrap(), faults);
        let url = |path: &str| format!("h3://{}{path}", relay.address());
        let small = run_trusting(&server, &[&url("/"), "-c4", "-n1000", "--streams", "5"]);
        assert_eq!((small.code, small.count("/totals/ok")), (Some(0), 1000), "{percent} % {small:#?}");
        let large = ["-c2", "-n20", "--streams", "2", "--expect-body-bytes", "100000"];
        let ended = run_trusting(&server, &[&[&*url("/100k")], &large[..]].concat());
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 20), "{percent} % {ended:#?}");
        assert!(small.count("/totals/quic/packets_lost") > 0 || percent < 5, "{small:#?}");
    }
}

#[test]
fn servers_answer_a_client_hello_that_comes_in_two_datagrams() {
    let target = secure_target();
    let faults = PathFaults { is_first_alone: true, ..PathFaults::default() };
    let relay = LossyRelay::start(target.address(), faults);
    let url = format!("h3://{}/", relay.address());
    let args = ["-c20", "-n20", "--udp-socket-per-connection", "--timeout", "5s"];
    let ended = run(&[&[&*url, "--insecure", "--groups", "X25519MLKEM768"], &args[..]].concat());
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 20), "{ended:#?}");
}

#[test]
fn every_datagram_that_leaves_is_counted() {
    let target = secure_target();
    for args in [
        &["http", "-c3", "-n30", "--http", "3"][..],
        &["http", "-c3", "-d1s", "--rate", "50", "--http", "3"],
        &["http", "-c3", "-n30", "--no-keepalive", "--http", "3"],
        &["handshake", "-c3", "-n30", "--quic"],
        &["idle", "-c3", "-d1s", "--quic"],
    ] {
        let relay = LossyRelay::start(target.address(), PathFaults::default());
        let address = relay.address();
        let at = if args[0] == "http" { format!("https://{address}/") } else { address.to_string() };
        let ended = run(&[args, &[&*at, "--insecure"]].concat());
        assert_eq!((ended.code, ended.count("/totals/failed")), (Some(0), 0), "{ended:#?}");
        assert_eq!(relay.finish(), ended.count("/totals/quic/datagrams_sent"), "{args:?}");
    }
}

#[test]
fn datagrams_have_bytes_and_open_connections_have_congestion_windows() {
    let target = secure_target();
    let url = format!("h3://{}/bytes/20000", target.address());
    let ended = run(&[&url, "-c2", "-d2s", "--insecure"]);
    let count = |name: &str| ended.count(&format!("/totals/quic/{name}"));
    let [sent, received] =
        ["sent", "received"].map(|way| count(&format!("bytes_{way}")) / count(&format!("datagrams_{way}")));
    // QUIC sends 1,200 bytes at least in handshakes, and less afterwards; bodies fill datagrams.
    assert!((20..1_200).contains(&sent) && (1_000..=1_472).contains(&received), "{sent} {received}");
    assert!(count("congestion_window_bytes") >= 12_000, "{ended:#?}");
}

/// Our own server, with HTTP/3.
fn secure_target() -> Target {
    let tls = Some(Tls::SelfMade { names: Vec::new() });
    Target::start(&Options { tls, http3: true, ..Options::default() }).expect("the target starts")
}

/// Causes and phases of the failures.
fn causes(ended: &Ended) -> Vec<(String, String)> {
    ended.errors().into_iter().map(|(cause, phase, _)| (cause, phase)).collect()
}
