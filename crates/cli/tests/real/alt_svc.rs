//! HTTP/3 that a server announces in Alt-Svc: `--http auto` follows it, and is back at TCP where it does not work.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;

use squall_server::{Options, Target, Tls};
use squall_testkit::real::Server;
use squall_testkit::{Authority, Validity};
use tempfile::TempDir;

use crate::squall::{Ended, run, start_command};

/// A server without HTTP/3 that announces whatever a request asks it for, and one with HTTP/3 that does so by itself.
struct Lab {
    folder: TempDir,
    announcing: Target,
    quic: Target,
}

impl Lab {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let authority = Authority::new();
        fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        let target = |name: &str, http3, names: &[&str]| {
            let identity = authority.issue(names, Validity::Current);
            let [certificate, key] = ["cert", "key"].map(|kind| folder.path().join(format!("{name}.{kind}")));
            fs::write(&certificate, identity.cert_pem).unwrap();
            fs::write(&key, identity.key_pem).unwrap();
            let tls = Some(Tls::Pem { certificate, key });
            Target::start(&Options { tls, http3, ..Options::default() }).unwrap()
        };
        let announcing = target("announcing", false, &["127.0.0.1", "localhost"]);
        let quic = target("quic", true, &["127.0.0.1"]);
        Self { announcing, quic, folder }
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A page whose response has this Alt-Svc field.
    fn announcing_url(&self, host: &str, value: &str) -> String {
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        format!("https://{host}:{}/response-headers?alt-svc={value}", self.announcing.address().port())
    }

    /// One event loop: what is announced is learned once.
    fn run(&self, args: &[&str]) -> Ended {
        let ca_file = self.ca_file().display().to_string();
        run(&[args, &["--http", "auto", "--threads", "1", "--cacert", &ca_file]].concat())
    }
}

/// Requests that were answered in each protocol.
fn by_protocol(ended: &Ended) -> Vec<(String, u64)> {
    let json = ended.json();
    let row = |row: &serde_json::Value| Some((row["protocol"].as_str()?.to_owned(), row["ok"].as_u64()?));
    json["rows"].as_array().unwrap().iter().filter_map(row).collect()
}

fn ok_in(ended: &Ended, protocol: &str) -> u64 {
    by_protocol(ended).iter().filter(|(name, _)| name == protocol).map(|(_, ok)| ok).sum()
}

fn alt_svc(ended: &Ended, name: &str) -> u64 {
    ended.count(&format!("/totals/alt_svc/{name}"))
}

fn fallback_causes(ended: &Ended) -> Vec<(String, String)> {
    let json = ended.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let causes = json["totals"]["alt_svc"]["fallback_causes"].as_array().unwrap();
    causes.iter().map(|group| (text(&group["cause"]), text(&group["phase"]))).collect()
}

#[test]
fn connections_move_to_http3_once_it_is_announced() {
    let lab = Lab::start();
    let url = format!("https://{}/get", lab.quic.address());
    let mut count = 0;
    for args in [&["-c4", "-n400"][..], &["-c2", "-n400", "--streams", "10"], &["-d2s", "--rate", "200"]] {
        let ended = lab.run(&[args, &[&url]].concat());
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 400), "{args:?} {ended:#?}");
        assert_eq!(ok_in(&ended, "h2") + ok_in(&ended, "h3"), 400, "{args:?} {ended:#?}");
        assert!(ok_in(&ended, "h3") > 300 && ok_in(&ended, "h2") > 0, "{args:?} {ended:#?}");
        assert_eq!((alt_svc(&ended, "discoveries"), alt_svc(&ended, "fallbacks")), (1, 0), "{ended:#?}");
        assert_eq!(alt_svc(&ended, "connections"), ended.count("/totals/quic/connections"), "{ended:#?}");
        count += 400;
    }
    assert_eq!(lab.quic.stats().requests, count);
}

#[test]
fn another_port_and_another_name_are_followed_with_the_origins_certificate() {
    let lab = Lab::start();
    let port = lab.quic.address().port();
    let own_port = lab.announcing_url("127.0.0.1", &format!(r#"h2=":1", h3=":{port}"; ma=60"#));
    // That server's certificate is for its address alone.
    let other_host = lab.announcing_url("127.0.0.1", &format!(r#"h3="localhost:{port}""#));
    for url in [own_port, other_host] {
        let ended = lab.run(&[&url, "-c2", "-n2000"]);
        assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 2000), "{url} {ended:#?}");
        assert!(ok_in(&ended, "h3") > 0 && alt_svc(&ended, "fallbacks") == 0, "{url} {ended:#?}");
    }
    let of_other_name = lab.announcing_url("localhost", &format!(r#"h3="127.0.0.1:{port}""#));
    let ended = lab.run(&[&of_other_name, "-c2", "-n100"]);
    assert_eq!((ended.code, ok_in(&ended, "h2")), (Some(0), 100), "{ended:#?}");
    assert_eq!(fallback_causes(&ended)[0].0, "tls_certificate", "{ended:#?}");
    // Nothing says that this server is the origin's where no certificate is verified.
    let ended = run(&[&of_other_name, "-c1", "-n20", "--http", "auto", "--threads", "1", "--insecure"]);
    assert_eq!((ok_in(&ended, "h2"), alt_svc(&ended, "ignored")), (20, 1), "{ended:#?}");
}

#[test]
fn what_cannot_be_reached_falls_back_to_tcp() {
    let lab = Lab::start();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    for (port, cause) in [(closed, "connection_refused"), (silent_port, "connect_timeout")] {
        let url = lab.announcing_url("127.0.0.1", &format!(r#"h3=":{port}""#));
        let ended = lab.run(&[&url, "-c3", "-n300", "--connect-timeout", "1s"]);
        assert_eq!((ended.code, ok_in(&ended, "h2")), (Some(0), 300), "{cause} {ended:#?}");
        assert_eq!((alt_svc(&ended, "connections"), alt_svc(&ended, "fallbacks")), (0, 1), "{ended:#?}");
        assert_eq!(fallback_causes(&ended), [(cause.to_owned(), "connecting".to_owned())]);
        ended.assert_all_counted();
    }
    assert_eq!(lab.announcing.stats().requests, 600);
}

#[test]
fn malformed_and_stale_announcements_are_not_followed() {
    let lab = Lab::start();
    for (value, name) in [
        ("h3", "ignored"),
        (r#"h3=":99999""#, "ignored"),
        (r#"h3=":443"; ma"#, "ignored"),
        (r#"h3=":443"; ma=0"#, "discoveries"),
    ] {
        let ended = lab.run(&[&lab.announcing_url("127.0.0.1", value), "-c2", "-n20"]);
        assert_eq!((ended.code, ok_in(&ended, "h2")), (Some(0), 20), "{value} {ended:#?}");
        assert_eq!((alt_svc(&ended, name), alt_svc(&ended, "connections")), (1, 0), "{value} {ended:#?}");
    }
    // RFC 7838 6: one that comes with 421 is ignored.
    let misdirected = lab.run(&[&format!("https://{}/status/421", lab.quic.address()), "-c2", "-n20"]);
    assert!(misdirected.json()["totals"]["alt_svc"].is_null(), "{misdirected:#?}");
    assert_eq!((ok_in(&misdirected, "h3"), misdirected.count("/totals/failed")), (0, 20), "{misdirected:#?}");
    let nothing = lab.run(&[&lab.announcing_url("127.0.0.1", "clear"), "-c2", "-n20"]);
    assert_eq!((nothing.code, alt_svc(&nothing, "withdrawals")), (Some(0), 0), "{nothing:#?}");
}

#[test]
fn connections_leave_http3_when_it_is_withdrawn() {
    let lab = Lab::start();
    let port = lab.quic.address().port();
    let begin = lab.announcing_url("127.0.0.1", &format!(r#"h3=":{port}""#));
    let end = lab.announcing_url("127.0.0.1", "clear").replace("alt-svc=", "a=b&alt-svc=");
    let ended = lab.run(&[&begin, &end, "-c1", "-n100"]);
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 100), "{ended:#?}");
    assert!(alt_svc(&ended, "discoveries") > 1 && alt_svc(&ended, "withdrawals") > 1, "{ended:#?}");
    assert!(ok_in(&ended, "h2") > 0 && alt_svc(&ended, "fallbacks") == 0, "{ended:#?}");
}

#[test]
fn caddy_s_announcement_is_followed() {
    let server = Server::caddy(None);
    let ca_file = server.ca_file().display().to_string();
    let args = ["-c4", "-n1000", "--http", "auto", "--streams", "5", "--cacert", &ca_file];
    let ended = run(&[&[server.tls_url("/").as_str()], &args[..]].concat());
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 1000), "{ended:#?}");
    assert!(ok_in(&ended, "h3") > 500 && alt_svc(&ended, "fallbacks") == 0, "{ended:#?}");
    let log = server.into_access_log();
    let in_http3 = log.iter().filter(|line| line.contains(r#""proto":"HTTP/3.0""#)).count();
    assert_eq!((log.len(), in_http3 as u64), (1000, ok_in(&ended, "h3")));
}

/// As in k6: a script says so when it wants HTTP/3.
#[test]
fn scripts_stay_with_what_alpn_comes_to() {
    let lab = Lab::start();
    let url = format!("https://{}/get", lab.quic.address());
    let script = lab.folder.path().join("script.js");
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ noConnectionReuse: true, iterations: 3 }};
         export default function () {{ console.log('over', http.get('{url}').proto); }}"
    );
    fs::write(&script, text).unwrap();
    let mut command = std::process::Command::new(crate::squall::binary());
    command.args(["run", "--no-save", "--http", "auto"]).arg(&script).env("SSL_CERT_FILE", lab.ca_file());
    let ended = start_command(command).wait();
    assert_eq!(ended.stderr.matches("over HTTP/2.0").count(), 3, "{ended:#?}");
}
