//! HTTP/2 with the servers that people use: no request fails, and counts are the servers' own.

use std::process::Command;

use squall_testkit::real::{NginxOptions, Server};

use crate::squall::{Ended, binary, run, start, start_command, with_json};

/// Streams on each connection.
const STREAM_COUNTS: [&str; 3] = ["1", "10", "100"];

/// Requests for each number of streams, unless `SQUALL_H2_REQUESTS` says otherwise.
const REQUEST_COUNT: u64 = 10_000;

fn request_count() -> u64 {
    let asked = std::env::var("SQUALL_H2_REQUESTS").ok();
    asked.map_or(REQUEST_COUNT, |text| text.parse().expect("SQUALL_H2_REQUESTS is a number"))
}

/// Runs against each of the server's HTTP/2 ports with each number of streams; how many requests that were.
#[track_caller]
fn check(server: &Server) -> u64 {
    let ca_file = server.ca_file().display().to_string();
    let (mut count, each) = (0, request_count());
    for url in [server.h2c_url("/"), server.h2_url("/")] {
        for streams in STREAM_COUNTS {
            let requests = format!("-n{each}");
            let ended = run(&[&url, "-c4", &requests, "--streams", streams, "--cacert", &ca_file]);
            assert_eq!(ended.code, Some(0), "{ended:#?}");
            assert_eq!(ended.assert_all_counted(), each, "{ended:#?}");
            assert_eq!(ended.count("/status/200"), each, "{ended:#?}");
            assert_eq!(protocol(&ended), if url.starts_with("h2c") { "h2c" } else { "h2" });
            count += each;
        }
    }
    count
}

fn protocol(ended: &Ended) -> String {
    ended.json()["rows"][0]["protocol"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn requests_over_http2_equal_nginx_s_log() {
    let server = Server::nginx(NginxOptions::default());
    let count = check(&server);
    assert_eq!(server.into_access_log().len() as u64, count);
}

#[test]
fn requests_over_http2_equal_h2o_s_log() {
    let server = Server::h2o();
    let count = check(&server);
    assert_eq!(server.into_access_log().len() as u64, count);
}

#[test]
fn requests_over_http2_equal_the_log_behind_haproxy() {
    let behind = Server::nginx(NginxOptions::default());
    let count = check(&Server::haproxy(behind.address()));
    assert_eq!(behind.into_access_log().len() as u64, count);
}

#[test]
fn requests_over_http2_equal_what_go_s_handler_counts() {
    let server = Server::go();
    let count = check(&server);
    assert_eq!(server.into_access_log().len() as u64, count);
}

#[test]
fn caddy_nghttpd_and_node_speak_http2_without_failures() {
    for server in [Server::caddy(None), Server::nghttpd(), Server::node()] {
        check(&server);
    }
}

#[test]
fn bodies_over_http2_are_counted_to_the_byte() {
    let server = Server::nginx(NginxOptions::default());
    for args in
        [&["--streams", "10"][..], &["--streams", "10", "--window", "10000", "--connection-window", "65535"]]
    {
        let ended = run(
            &[&[&server.h2c_url("/100k"), "-c4", "-n50", "--expect-body-bytes", "100000"], args].concat()
        );
        assert_eq!((ended.assert_all_counted(), ended.count("/totals/ok")), (50, 50), "{ended:#?}");
    }
}

#[test]
fn one_run_speaks_http11_h2_and_h2c_at_once() {
    let server = Server::nginx(NginxOptions::default());
    let ca_file = server.ca_file().display().to_string();
    let urls = [server.url("/"), server.tls_url("/"), server.h2_url("/"), server.h2c_url("/")];
    let args: Vec<&str> = urls
        .iter()
        .map(String::as_str)
        .chain(["-c4", "-n400", "--streams", "5", "--cacert", &ca_file])
        .collect();
    let ended = run(&args);
    assert_eq!(ended.count("/totals/ok"), 400, "{ended:#?}");
    let json = ended.json();
    let rows = json["rows"].as_array().unwrap();
    let row = |row: &serde_json::Value| {
        (row["protocol"].as_str().unwrap_or_default().to_owned(), row["ok"].as_u64())
    };
    let named = |name: &str| (name.to_owned(), Some(100));
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), ["http/1.1", "https/1.1", "h2", "h2c"].map(named));
}

#[test]
fn connections_over_http2_are_closed_after_as_many_requests_as_asked() {
    let server = Server::nginx(NginxOptions::default());
    let ended =
        run(&[&server.h2c_url("/"), "-c2", "-n100", "--streams", "5", "--requests-per-connection", "10"]);
    assert_eq!(
        (ended.count("/totals/ok"), ended.count("/totals/connections_opened")),
        (100, 10),
        "{ended:#?}"
    );
    assert_eq!(server.into_access_log().len(), 100);
}

#[test]
fn auto_takes_what_the_server_speaks() {
    let server = Server::nginx(NginxOptions::default());
    let ca_file = server.ca_file().display().to_string();
    for (url, expected) in [(server.url("/"), "http/1.1"), (server.tls_url("/"), "h2")] {
        let ended = run(&[&url, "--http", "auto", "-c1", "-n10", "--cacert", &ca_file]);
        assert_eq!((ended.count("/totals/ok"), protocol(&ended)), (10, expected.to_owned()), "{ended:#?}");
    }
}

#[test]
fn a_connection_is_upgraded_where_the_server_wants_to_be_asked() {
    let server = Server::h2o();
    let url = server.url("/");
    let mut asked = 0;
    for streams in STREAM_COUNTS {
        let ended = run(&[&url, "--h2c=upgrade", "-c4", "-n1000", "--streams", streams]);
        assert_eq!((ended.assert_all_counted(), ended.count("/totals/ok")), (1000, 1000), "{ended:#?}");
        assert_eq!(protocol(&ended), "h2c");
        asked += 1000 + ended.count("/totals/connections_opened");
    }
    // Each connection began with a request for the upgrade.
    assert_eq!(server.into_access_log().len() as u64, asked);
}

#[test]
fn what_the_server_does_not_speak_is_named() {
    let nginx = Server::nginx(NginxOptions { http2: false, ..NginxOptions::default() });
    let h2 = Server::nghttpd();
    let (plain, tls) = (nginx.url("/"), nginx.tls_url("/"));
    let swapped = |url: &str, from: &str, to: &str| url.replacen(from, to, 1);
    for (url, flags, cause, text) in [
        (tls.clone(), &["--http", "2"][..], "version_not_negotiated", "not `h2`"),
        (
            plain.clone(),
            &["--h2c=upgrade"],
            "version_not_negotiated",
            "answered the upgrade to h2c with status",
        ),
        (plain.clone(), &["--h2c"], "http_protocol", "HTTP/1"),
        (swapped(&tls, "https:", "h2c:"), &[], "http_protocol", "HTTP/1"),
        (swapped(&plain, "http:", "h2:"), &[], "tls_protocol", ""),
        (swapped(&h2.h2c_url("/"), "h2c:", "http:"), &[], "http_protocol", "does not begin with"),
    ] {
        let args = [&[url.as_str(), "-c1", "-n3", "--insecure", "--timeout", "5s"], flags].concat();
        let ended = run(&args);
        let errors = ended.json()["errors"].clone();
        assert_eq!(errors[0]["cause"], cause, "{args:?}: {errors:#}");
        let example = errors[0]["example"].to_string();
        assert!(example.contains(text), "{args:?}: {example}");
    }
}

/// With either version of HTTP.
#[test]
fn rustls_may_handle_the_records() {
    let server = Server::nginx(NginxOptions::default());
    let run_with = |layer: &str, url: &str| {
        let mut command = Command::new(binary());
        let args = ["-c4", "-n200", "--insecure", url];
        command.args(with_json(&args)).env("SQUALL_TLS", layer);
        start_command(command).wait()
    };
    for url in [server.tls_url("/100k"), server.h2_url("/100k")] {
        let ended = run_with("rustls", &url);
        assert_eq!((ended.code, ended.assert_all_counted()), (Some(0), 200), "{url}: {ended:#?}");
        let received = ended.count("/totals/bytes_received");
        assert!(received >= 200 * 100_000, "{url}: {received}");
    }
    let refused = run_with("openssl", &server.tls_url("/"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("SQUALL_TLS is `openssl`"), "{refused:#?}");
    assert!(refused.stderr.contains("help: set it to `squall` or `rustls`"), "{refused:#?}");
}

#[test]
fn every_request_may_have_a_connection_of_its_own() {
    let server = Server::nginx(NginxOptions::default());
    for url in [server.url("/"), server.tls_url("/"), server.h2c_url("/"), server.h2_url("/")] {
        let ended = run(&[&url, "--no-keepalive", "-c4", "-n40", "--insecure"]);
        let counts = (ended.count("/totals/ok"), ended.count("/totals/connections_opened"));
        assert_eq!(counts, (40, 40), "{url}: {ended:#?}");
    }
    let lines = server.into_access_log();
    let connections: std::collections::BTreeSet<&str> =
        lines.iter().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!((lines.len(), connections.len()), (160, 160));
}

#[test]
fn scripts_speak_the_versions_that_they_ask_for() {
    let server = Server::nginx(NginxOptions::default());
    let ended = run_versions(&server, "");
    // Three scenarios with five iterations of ten requests.
    assert_eq!(server.into_access_log().len(), 150, "{ended:#?}");
    let server = Server::caddy(None);
    let ended = run_versions(&server, "yes");
    let log = server.into_access_log();
    let in_http3 = log.iter().filter(|line| line.contains(r#""proto":"HTTP/3.0""#)).count();
    // Caddy logs what it serves over TLS: ten requests of an iteration, and eleven of the one over HTTP/3. Of those, eight are sent
    // in HTTP/3, and one of each of the others.
    assert_eq!((log.len(), in_http3), (3 * 5 * 10 + 5 * 11, 5 * 8 + 3 * 5), "{ended:#?}");
}

/// Runs [`VERSIONS`]; `has_h3`: empty for a server without HTTP/3.
#[track_caller]
fn run_versions(server: &Server, has_h3: &str) -> Ended {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join("script.js").display().to_string();
    std::fs::write(&path, VERSIONS).expect("the temporary folder is writable");
    let [plain, tls, h2c] = [server.url("/"), server.tls_url("/"), server.h2c_url("/")];
    let variables = [
        format!("PLAIN={plain}"),
        format!("TLS={tls}"),
        format!("H2C={}", h2c.replacen("h2c:", "http:", 1)),
        format!("H3={has_h3}"),
    ];
    let env = variables.iter().flat_map(|variable| ["-e", variable.as_str()]);
    let args: Vec<&str> = ["run", "-q", "--no-save", &path].into_iter().chain(env).collect();
    let ended = start(&args).wait();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    ended
}

/// Each scenario has a version of its own, some requests another one.
const VERSIONS: &str = r"
import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';

const scenario = { executor: 'shared-iterations', vus: 2, iterations: 5 };
const [h1, h2, h3] = ['HTTP/1.1', 'HTTP/2.0', 'HTTP/3.0'];
const { PLAIN, TLS, H2C, H3 } = __ENV;
const by_scenario = {
  one: { tls: h1, plain: h1, url: PLAIN },
  two: { tls: h2, plain: h2, url: H2C },
  any: { tls: h2, plain: h1, url: PLAIN },
  three: { tls: h3, plain: h3, url: TLS },
};
const phases = ['blocked', 'connecting', 'tls_handshaking', 'sending', 'waiting', 'receiving'];
const filled = phases.map((phase) => [`http_req_${phase}{scenario:three}`, ['max>0']]);

export const options = {
  insecureSkipTLSVerify: true,
  scenarios: { one: scenario, two: scenario, any: scenario, ...(H3 && { three: scenario }) },
  thresholds: { checks: ['rate==1'], http_req_failed: ['rate==0'], ...(H3 && Object.fromEntries(filled)) },
  ext: {
    squall: { http: '1.1', scenarios: { two: { http: '2' }, any: { http: 'auto' }, ...(H3 && { three: { http: '3' } }) } },
  },
};

export default function () {
  const { tls, plain, url } = by_scenario[exec.scenario.name];
  check(http.get(TLS), { tls: (r) => r.proto === tls && r.status_text === '200 OK' && r.body === 'hello\n' });
  check(http.get(url), { plain: (r) => r.proto === plain });
  for (const [version, proto] of [['1.1', h1], ['2', h2], ['auto', h2], ...(H3 ? [['3', h3]] : [])]) {
    check(http.get(TLS, { http: version }), { [version]: (r) => r.proto === proto });
  }
  check(http.get(TLS + '100k'), { body: (r) => r.body.length === 100000 && r.headers['Content-Length'] === '100000' });
  const batch = http.batch([TLS, TLS, TLS, TLS]);
  check(batch, { batch: (all) => all.every((r) => r.proto === tls && r.status === 200) });
}
";

#[test]
fn a_batch_over_http3_is_one_connection_with_a_stream_for_each_request() {
    let server = Server::caddy(None);
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join("batch.js").display().to_string();
    std::fs::write(&path, BATCH).expect("the temporary folder is writable");
    let (url, flags) = (format!("URL={}", server.tls_url("/")), ["--quiet", "--no-save", "--json", "-"]);
    // The version comes from the script's options, and where they have none from the command line.
    for chosen in [&["-e", "VERSION=3"][..], &["--http", "3"]] {
        let args = [&["run", &path, "-e", &url, "-e", "PER_HOST=20"], &flags[..], chosen].concat();
        let ended = start(&args).wait();
        let count = |name: &str| ended.count(&format!("/totals/{name}"));
        assert_eq!((ended.code, count("ok"), count("http3/streams")), (Some(0), 120, 120), "{ended:#?}");
        assert_eq!(count("quic/connections"), 2, "{ended:#?}");
    }
    let log = server.into_access_log();
    assert!(log.iter().all(|line| line.contains(r#""proto":"HTTP/3.0""#)), "{}", log[0]);
    assert_eq!(log.len(), 240);
}

/// Batches go out on one connection per VU, which is what k6 logs at the same server; over HTTP/1.1 they share `batchPerHost` of them.
#[test]
fn a_batch_over_http2_is_one_connection_with_a_stream_for_each_request() {
    for (version, per_host, connection_count_max) in
        [("auto", 6, 2), ("auto", 20, 2), ("2", 20, 2), ("1.1", 6, 12)]
    {
        let server = Server::nginx(NginxOptions::default());
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let path = folder.path().join("batch.js").display().to_string();
        std::fs::write(&path, BATCH).expect("the temporary folder is writable");
        let variables = [
            format!("URL={}", server.tls_url("/")),
            format!("PER_HOST={per_host}"),
            format!("VERSION={version}"),
        ];
        let env = variables.iter().flat_map(|variable| ["-e", variable.as_str()]);
        let args: Vec<&str> = ["run", "-q", "--no-save", &path].into_iter().chain(env).collect();
        let ended = start(&args).wait();
        assert_eq!(ended.code, Some(0), "{version} {per_host}: {ended:#?}");
        let lines = server.into_access_log();
        let connections: std::collections::BTreeSet<&str> =
            lines.iter().filter_map(|line| line.split_whitespace().nth(3)).collect();
        assert_eq!(lines.len(), 120, "{version} {per_host}: {ended:#?}");
        assert!(
            (2..=connection_count_max).contains(&connections.len()),
            "{version} {per_host}: {connections:?}"
        );
    }
}

/// Two VUs, three batches of twenty each.
const BATCH: &str = r"
import http from 'k6/http';
import { check } from 'k6';

export const options = {
  insecureSkipTLSVerify: true,
  batchPerHost: Number(__ENV.PER_HOST),
  scenarios: { all: { executor: 'per-vu-iterations', vus: 2, iterations: 3 } },
  thresholds: { checks: ['rate==1'], http_req_failed: ['rate==0'] },
  ext: { squall: __ENV.VERSION ? { http: __ENV.VERSION } : {} },
};

export default function () {
  const urls = Array.from({ length: 20 }, (_, i) => (i % 2 ? __ENV.URL : __ENV.URL + '100k'));
  const right = (r, i) => r.status === 200 && r.body.length === (i % 2 ? 6 : 100000);
  check(http.batch(urls), { all: (responses) => responses.every(right) });
}
";
