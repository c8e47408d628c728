//! What squall counts is what the server's access log says, to the last request.

use squall_testkit::real::{NginxOptions, Server};

use crate::squall::{Ended, run};

#[derive(Clone, Copy)]
enum Scheme {
    Plain,
    Tls,
}

/// Runs against a server, which must have no failures.
#[track_caller]
fn run_well(server: &Server, scheme: Scheme, args: &[&str]) -> Ended {
    let ca_file = server.ca_file().display().to_string();
    let (url, trust) = match scheme {
        Scheme::Plain => (server.url("/"), vec![]),
        Scheme::Tls => (server.tls_url("/"), vec!["--cacert", ca_file.as_str()]),
    };
    let ended = run(&[&[url.as_str()], args, &trust].concat());
    assert!(matches!(ended.code, Some(0 | 5)), "{ended:#?}");
    assert_eq!((ended.count("/totals/failed"), ended.count("/totals/interrupted")), (0, 0), "{ended:#?}");
    ended
}

/// Runs against nginx and compares with its log; the run and the log's lines.
#[track_caller]
fn check(scheme: Scheme, args: &[&str]) -> (Ended, Vec<String>) {
    let server = Server::nginx(NginxOptions::default());
    let ended = run_well(&server, scheme, args);
    let log = server.into_access_log();
    assert_eq!(ended.assert_all_counted(), log.len() as u64);
    assert_eq!(ended.count("/status/200"), log.len() as u64);
    assert!(log.iter().all(|line| line.starts_with("200 GET / ")), "{:?}", log.first());
    assert_eq!(ended.count("/totals/connections_opened"), connection_count(&log));
    (ended, log)
}

/// Distinct connections in nginx's log: the number before the last.
fn connection_count(log: &[String]) -> u64 {
    let connection = |line: &String| line.rsplit(' ').nth(1).map(str::to_owned);
    let mut connections: Vec<_> = log.iter().map(connection).collect();
    connections.sort_unstable();
    connections.dedup();
    connections.len() as u64
}

#[test]
fn requests_equal_the_access_log() {
    let (ended, _) = check(Scheme::Plain, &["-c", "100", "-d", "2s"]);
    assert_eq!(ended.count("/totals/connections_opened"), 100);
}

#[test]
fn requests_equal_the_access_log_on_one_connection() {
    let (ended, _) = check(Scheme::Plain, &["-c", "1", "-d", "1s"]);
    assert_eq!(ended.count("/totals/connections_opened"), 1);
}

#[test]
fn requests_equal_the_access_log_on_two_thousand_connections() {
    check(Scheme::Plain, &["-c", "2000", "-d", "2s"]);
}

#[test]
fn requests_equal_the_access_log_without_keepalive() {
    let (ended, log) = check(Scheme::Plain, &["-c", "100", "-d", "1s", "--no-keepalive"]);
    assert!(log.iter().all(|line| line.ends_with(" 1")));
    assert_eq!(ended.count("/totals/connections_opened"), log.len() as u64);
}

#[test]
fn requests_equal_the_access_log_over_tls() {
    let (ended, _) = check(Scheme::Tls, &["-c", "100", "-d", "1s"]);
    assert!(ended.number("/phases_us/tls_handshaking/p50") > 0.0);
}

#[test]
fn requests_equal_the_access_log_over_tls_without_keepalive() {
    check(Scheme::Tls, &["-c", "20", "-d", "1s", "--no-keepalive"]);
}

#[test]
fn requests_equal_the_access_log_in_an_open_model() {
    let (_, log) = check(Scheme::Plain, &["-c", "50", "-d", "1s", "--rate", "1000/s"]);
    assert!((995..=1005).contains(&log.len()), "{}", log.len());
}

#[test]
fn as_many_requests_are_made_as_were_asked_for() {
    let (_, log) = check(Scheme::Plain, &["-c", "100", "-n", "12345"]);
    assert_eq!(log.len(), 12_345);
}

#[test]
fn the_warm_up_uses_up_no_request_that_was_asked_for() {
    for load in [&["-c", "2"][..], &["-r", "200/s"]] {
        let server = Server::nginx(NginxOptions::default());
        let url = server.url("/");
        let ended = run(&[&[url.as_str(), "-n", "50", "--warmup", "500ms"], load].concat());
        let warm = ended.count("/totals/warmup_requests");
        assert!(warm > 0, "{ended:#?}");
        assert_eq!(ended.count("/totals/requests"), 50, "{ended:#?}");
        assert_eq!(server.into_access_log().len() as u64, 50 + warm);
    }
}

#[test]
fn connections_are_closed_after_as_many_requests_as_asked() {
    let (ended, log) = check(Scheme::Plain, &["-c", "1", "-n", "100", "--requests-per-connection", "7"]);
    assert_eq!((log.len(), ended.count("/totals/connections_opened")), (100, 15));
}

#[test]
fn bodies_are_counted_to_the_byte() {
    let server = Server::nginx(NginxOptions::default());
    let ended = run(&[&server.url("/100k"), "-c", "4", "-n", "50"]);
    let received = ended.count("/totals/bytes_received");
    assert!((50 * 100_000..50 * 101_000).contains(&received), "{received}");
}

#[test]
fn h2o_haproxy_and_caddy_serve_without_failures() {
    let behind = Server::nginx(NginxOptions::default());
    for server in [Server::h2o(), Server::haproxy(behind.address()), Server::caddy(None)] {
        for scheme in [Scheme::Plain, Scheme::Tls] {
            let requests = run_well(&server, scheme, &["-c", "50", "-d", "1s"]).assert_all_counted();
            assert!(requests > 50, "{requests}");
            run_well(&server, scheme, &["-c", "10", "-n", "100", "--no-keepalive"]).assert_all_counted();
        }
    }
}

#[test]
fn fields_of_answers_are_counted_on_connections_that_end_with_them() {
    let server = Server::nginx(NginxOptions::default());
    let received = |flags: &[&str]| {
        let h2c = server.h2c_url("/");
        let ended = run(&[&[h2c.as_str(), "-c", "1", "-n", "30"], flags].concat());
        ended.count("/totals/http2/header_bytes_received")
    };
    assert_eq!(received(&["--requests-per-connection", "3"]), received(&[]));
}
