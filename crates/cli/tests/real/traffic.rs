//! Recorded traffic, from end to end: what was recorded is what is replayed, secrets stay secret, and a login passes without a rule.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use squall_server::{Options, Target};
use tempfile::TempDir;

use crate::site::{self, Given, read_request};
use crate::squall;

/// A squall that serves until it is stopped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
}

impl Serving {
    pub(crate) fn start(args: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
        let errors =
            File::options().create(true).append(true).open(folder.join("stderr")).expect("it is writable");
        command.args(args).stdout(Stdio::piped()).stderr(errors).env("XDG_STATE_HOME", folder);
        let mut child = command.spawn().expect("squall starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("squall writes text");
        assert!(line.starts_with("http"), "squall {args:?} does not serve");
        Self { child, url: line.trim().trim_end_matches('/').to_owned() }
    }

    /// Its peak resident memory so far.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        squall::peak_rss(self.child.id()).expect("it runs")
    }

    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Method, target and status of each line of a target's log, counted.
pub(crate) fn logged(log: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        *counts.entry(parts[2..5].join(" ")).or_default() += 1;
    }
    counts
}

#[test]
fn what_was_recorded_is_what_is_replayed() {
    let folder = TempDir::new().unwrap();
    let (log, recording, urls) = (path(&folder, "log"), path(&folder, "r.squall"), path(&folder, "urls"));
    let target = Serving::start(&["target", "--log", &log], folder.path());
    let proxy = Serving::start(&["record", &recording, "--to", &target.url], folder.path());
    let list: Vec<String> = ["/", "/anything/1?x=%20y", "/status/404", "/bytes/100000", "/gzip"]
        .iter()
        .map(|path| format!("{}{path}", proxy.url))
        .chain([format!("POST {}/anything/post", proxy.url)])
        .collect();
    fs::write(&urls, list.join("\n")).unwrap();
    let sent = squall::run(&[
        "-n",
        "60",
        "-c",
        "4",
        "--urls",
        &urls,
        "-H",
        "Cookie: sid=S3CRETVALUE",
        "-H",
        "Authorization: Bearer S3CRETVALUE",
        "--expect-status",
        "200-499",
    ]);
    assert_eq!(sent.count("/totals/ok"), 60, "{sent:#?}");
    proxy.stop();
    let bytes = fs::read(&recording).unwrap();
    assert!(!bytes.windows(11).any(|window| window == b"S3CRETVALUE"), "a secret was written");
    let played = squall::run(&["replay", &recording, "--speed", "2"]);
    assert_eq!(played.count("/totals/ok"), 60, "{played:#?}");
    assert_eq!(played.count("/totals/replay/same"), 60, "{played:#?}");
    target.stop();
    // The log is whole now: each request once from the recorded run, once from the replay.
    let expected = [
        "GET / 200",
        "GET /anything/1?x=%20y 200",
        "GET /bytes/100000 200",
        "GET /gzip 200",
        "GET /status/404 404",
        "POST /anything/post 200",
    ];
    let expected: BTreeMap<String, u64> = expected.map(|line| (line.to_owned(), 20)).into();
    assert_eq!(logged(&fs::read_to_string(&log).unwrap()), expected);
}

#[test]
fn https_is_recorded_by_an_authority_of_ones_own() {
    for version in ["1.1", "2"] {
        let folder = TempDir::new().unwrap();
        let (cert, recording, ca) = (path(&folder, "t.pem"), path(&folder, "r.squall"), path(&folder, "ca"));
        let target = Serving::start(&["target", "--tls", "--write-cert", &cert], folder.path());
        let proxy =
            Serving::start(&["record", &recording, "--proxy", "--ca", &ca, "--cacert", &cert], folder.path());
        let ca_file = format!("{ca}/squall-ca.pem");
        let url = format!("{}/anything/x", target.url);
        let through = ["--proxy", &proxy.url, "--cacert", &ca_file, "--http", version, "--streams", "10"];
        let through = if version == "2" { &through[..] } else { &through[..6] };
        let sent = squall::run(&[&["-n", "40", "-c", "2", url.as_str()][..], through].concat());
        assert_eq!(sent.count("/totals/ok"), 40, "HTTP/{version}: {sent:#?}");
        proxy.stop();
        let har = path(&folder, "r.har");
        assert_eq!(squall::start(&["convert", &recording, &har]).wait().code, Some(0));
        let har: Value = serde_json::from_str(&fs::read_to_string(&har).unwrap()).unwrap();
        let entries = har["log"]["entries"].as_array().unwrap();
        let is_of_version = |message: &Value| message["httpVersion"] == format!("HTTP/{version}");
        assert!(entries.iter().all(|one| is_of_version(&one["request"]) && is_of_version(&one["response"])));
        let played = squall::run(&["replay", &recording, "--cacert", &cert]);
        assert_eq!(played.count("/totals/ok"), 40, "{played:#?}");
        let key = fs::metadata(format!("{ca}/squall-ca.key")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o077, 0);
    }
}

/// Recorded in HTTP/3, played back by the mock in HTTP/3: the same statuses and lengths, and what is announced is the proxy's own.
#[test]
fn http3_is_recorded_and_mocked() {
    let folder = TempDir::new().unwrap();
    let (recording, ca) = (path(&folder, "r.squall"), path(&folder, "ca"));
    let ca_file = format!("{ca}/squall-ca.pem");
    let target = Serving::start(&["target"], folder.path());
    let tls = ["--tls", "--http3", "--ca", &ca];
    let ask = |url: &str, args: &[&str]| {
        let at = url.strip_prefix("http://").unwrap();
        let h3 = |path: &str| format!("h3://{at}{path}");
        let urls = [h3("/bytes/100000"), h3("/status/204"), h3("/gzip")];
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let common = ["-n30", "-c2", "--streams", "5", "--cacert", &ca_file, "--expect-status", "200-299"];
        let got = squall::run(&[&urls[..], &common, args].concat());
        assert_eq!((got.code, got.count("/totals/ok")), (Some(0), 30), "{got:#?}");
        assert_eq!(got.count("/totals/http3/streams"), 30);
        let body = "x".repeat(50_000);
        let post = [&*h3("/anything"), "-n10", "-c2", "--body", &body, "--cacert", &ca_file];
        let post = squall::run(&post);
        assert_eq!((post.code, post.count("/totals/ok")), (Some(0), 10), "{post:#?}");
        let auto = [&*format!("https://{at}/gzip"), "-n40", "-c2", "--http", "auto", "--cacert", &ca_file];
        let auto = squall::run(&auto);
        assert_eq!((auto.code, auto.count("/totals/ok")), (Some(0), 40), "{auto:#?}");
        assert!(auto.count("/totals/alt_svc/connections") > 0, "{auto:#?}");
        got
    };
    let proxy =
        Serving::start(&[&["record", &recording, "--to", &target.url], &tls[..]].concat(), folder.path());
    ask(&proxy.url, &[]);
    proxy.stop();
    let har = path(&folder, "r.har");
    assert_eq!(squall::start(&["convert", &recording, &har]).wait().code, Some(0));
    let har: Value = serde_json::from_str(&fs::read_to_string(&har).unwrap()).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let in_http3 = entries.iter().filter(|entry| entry["request"]["httpVersion"] == "HTTP/3").count();
    assert!(entries.len() == 80 && in_http3 > 40, "{in_http3} of {}", entries.len());
    let posted = entries.iter().filter(|entry| entry["request"]["bodySize"] == 50_000).count();
    assert_eq!(posted, 10);
    let mock = Serving::start(&[&["mock", &recording, "--latency", "0"], &tls[..]].concat(), folder.path());
    ask(&mock.url, &["--expect-same-length"]);
    mock.stop();
}

#[test]
fn any_bytes_pass_the_proxy_untouched_after_an_upgrade() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("http://{}", server.local_addr().unwrap());
    thread::spawn(move || {
        let (stream, _) = server.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let request = read_request(&mut reader).unwrap().to_ascii_lowercase();
        assert!(
            request.contains("upgrade: websocket") && request.contains("sec-websocket-key: k"),
            "{request}"
        );
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        (&stream).write_all(head.as_bytes()).unwrap();
        // Any bytes at all: back as they came.
        let mut bytes = [0; 300];
        reader.read_exact(&mut bytes).unwrap();
        (&stream).write_all(&bytes).unwrap();
    });
    let proxy = Serving::start(&["record", &recording, "--to", &to], folder.path());
    let mut client = TcpStream::connect(proxy.url.trim_start_matches("http://")).unwrap();
    let head = "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(&client);
    let answer = read_request(&mut reader).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    let sent: Vec<u8> = (0..300_u32).map(|nth| nth as u8).collect();
    (&client).write_all(&sent).unwrap();
    let mut back = vec![0; sent.len()];
    reader.read_exact(&mut back).unwrap();
    assert_eq!(back, sent);
    proxy.stop();
    let held = squall::start(&["convert", "--dry-run", &recording]).wait();
    assert!(held.stdout.contains("requests    1"), "{held:#?}");
}

#[test]
fn websockets_of_a_recording_are_shown_and_counted() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "a.har");
    let entry = |url: &str, status: u64, messages: Value| {
        json!({"startedDateTime": "2024-05-01T10:00:00.000Z", "time": 1,
               "request": {"method": "GET", "url": url, "headers": []},
               "response": {"status": status, "headers": [], "content": {}}, "_webSocketMessages": messages})
    };
    let message = |text: &str| json!({"type": "send", "time": 1714557600.5, "opcode": 1, "data": text});
    let messages = json!([message("CONNECT\nlogin:a\u{1b}"), message(&"x".repeat(2000))]);
    let entries = [entry("http://x/a", 200, Value::Null), entry("ws://x/chat", 101, messages)];
    fs::write(&har, json!({"log": {"version": "1.2", "entries": entries}}).to_string()).unwrap();
    let shown = squall::start(&["view", &har, "--record", "2"]).wait();
    assert!(shown.stdout.contains(r"0.500s  client  CONNECT\nlogin:a\u{1b}"), "{shown:#?}");
    assert!(shown.stdout.contains("xx (976 more bytes)\n"), "{shown:#?}");
    let written = squall::start(&["convert", &har, &path(&folder, "a.sh")]).wait();
    assert!(written.stderr.contains("1 request written to"), "{written:#?}");
    let written = squall::start(&["convert", &har, &path(&folder, "b.har")]).wait();
    assert!(written.stderr.contains("2 requests written to"), "{written:#?}");
    let mock = Serving::start(&["mock", &har, "--latency", "0"], folder.path());
    assert_eq!(asked(&["-o", "/dev/null", &format!("{}/chat", mock.url)]), "426");
    mock.stop();
    let said = fs::read_to_string(folder.path().join("stderr")).unwrap();
    assert!(said.contains("answered 0 requests as recorded") && said.contains("1 not recorded"), "{said}");
}

#[test]
fn a_mock_answers_as_recorded_and_lists_nothing_else() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "a.har");
    let entry = |nth: u64| {
        json!({"startedDateTime": format!("2024-05-01T10:00:00.{nth:03}Z"), "time": 1,
               "request": {"method": "GET", "url": format!("http://x.example/a/{nth}"), "headers": []},
               "response": {"status": 200 + nth % 2, "headers": [], "content": {"size": 2, "text": "ok"}}})
    };
    let entries: Vec<Value> = (0..20).map(entry).collect();
    fs::write(&har, json!({"log": {"version": "1.2", "entries": entries}}).to_string()).unwrap();
    let ca = path(&folder, "ca");
    let mock =
        Serving::start(&["mock", &har, "--latency", "0", "--tls", "--http3", "--ca", &ca], folder.path());
    let ca_file = format!("{ca}/squall-ca.pem");
    let port = mock.url.rsplit(':').next().unwrap();
    let (tls, by_address) = (format!("https://localhost:{port}"), format!("https://127.0.0.1:{port}"));
    for (to, version) in [(mock.url.as_str(), "1.1"), (&tls, "2"), (&by_address, "1.1"), (&by_address, "3")] {
        let args = ["replay", &har, "--to", to, "--compare", "body", "--cacert", &ca_file, "--http", version];
        let played = squall::run(&args);
        assert_eq!(played.count("/totals/replay/same"), 20, "HTTP/{version}: {played:#?}");
        let streams = played.json()["totals"]["http3"]["streams"].as_u64().unwrap_or(0);
        assert_eq!(streams, if version == "3" { 20 } else { 0 }, "HTTP/{version}: {played:#?}");
    }
    let miss = squall::run(&["-n", "1", "-c", "1", &format!("{}/nothing", mock.url)]);
    assert_eq!(miss.count("/status/404"), 1, "{miss:#?}");
    mock.stop();
}

/// What `curl` gets: the status, the header that says how the answer differs, and the body.
fn asked(args: &[&str]) -> String {
    let format = "%{http_code} %header{squall-mock}\n";
    let output =
        Command::new("curl").args(["-s", "-m", "20", "-w", format]).args(args).output().expect("curl runs");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

#[test]
fn a_mock_says_when_an_answer_is_not_the_recorded_one() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "a.har");
    let entry = |nth: u64, method: &str, url: &str, body: &str| {
        json!({"startedDateTime": format!("2024-05-01T10:00:00.{nth:03}Z"), "time": 1,
               "request": {"method": method, "url": url, "headers": [], "postData": {"mimeType": "application/json", "text": body}},
               "response": {"status": 200, "headers": [], "content": {"text": format!("<{nth}>")}}})
    };
    let entries = [
        entry(1, "GET", "http://one.example/a?q=1&t=0", ""),
        entry(2, "GET", "https://two.example/a?q=1&t=0", ""),
        entry(3, "POST", "https://two.example/b", r#"{"id":1,"name":"x"}"#),
    ];
    fs::write(&har, json!({"log": {"version": "1.2", "entries": entries}}).to_string()).unwrap();
    let target = Serving::start(&["target"], folder.path());
    let pass = format!("--pass-through={}", target.url);
    let ca = path(&folder, "ca");
    let args = [
        "mock",
        &har,
        "--latency",
        "0",
        "--ca",
        &ca,
        "--ignore-query",
        "t",
        "--ignore-body",
        "id",
        "--proxy",
        &pass,
    ];
    let mock = Serving::start(&args, folder.path());
    let ca_file = format!("{ca}/squall-ca.pem");
    let proxied = ["--proxy", &mock.url, "--cacert", &ca_file];
    for (more, expected) in [
        (&["http://one.example/a?t=9&q=1"][..], "<1>200"),
        (&["https://two.example/a?q=1"], "<2>200"),
        (&["https://two.example/a?q=2"], "<2>200 other query"),
        (&["https://two.example/b", "-d", r#"{ "name": "x", "id": 7 }"#], "<3>200"),
        (&["https://two.example/b", "-d", r#"{"name":"y"}"#], "<3>200 other values in the body"),
        (&["https://two.example/b", "-d", "z"], "<3>200 other body"),
        (&["-I", "-o", "/dev/null", "http://one.example/a?q=1"], "200"),
        (&["https://two.example/status/418"], "418"),
    ] {
        let args: Vec<&str> = proxied.iter().chain(more).copied().collect();
        assert_eq!(asked(&args).trim_end(), expected, "{more:?}");
    }
    mock.stop();
    let strict = Serving::start(&["mock", &har, "--latency", "0", "--strict"], folder.path());
    let host = ["-H", "Host: one.example"];
    let of = |query: &str| asked(&[host[0], host[1], &format!("{}/a?{query}", strict.url)]);
    assert_eq!(of("t=0&q=1"), "<1>200");
    assert!(of("q=1").ends_with("404"), "another query is none that was recorded");
    strict.stop();
}

/// A shop with a CSRF token, a session cookie, a JWT and ids of its own: all of them new in each run.
struct Shop {
    given: Given,
}

impl Shop {
    /// Its URL.
    fn start() -> String {
        let shop = Self { given: Given::new() };
        site::serve(move |request| {
            let (status, headers, body) = shop.answer(request);
            (status, headers, body.into_bytes())
        })
    }

    fn answer(&self, request: &str) -> (u16, String, String) {
        let refused = (403, String::new(), String::new());
        let is_in = || self.given.is_in(request, "sid-in-") && self.given.is_in(request, "ey.jwt.");
        match request.split(' ').take(2).collect::<Vec<_>>()[..] {
            ["GET", "/login"] => {
                let form = format!(
                    "<form><input type=\"hidden\" name=\"csrf\" value=\"{}\"></form>",
                    self.given.fresh("csrf/+")
                );
                (200, format!("Set-Cookie: sid={}; Path=/\r\n", self.given.fresh("sid-out-")), form)
            }
            ["POST", "/login"] => {
                let sent = request.replace("%2F", "/").replace("%2B", "+");
                match self.given.is_in(&sent, "csrf/+") && self.given.is_in(request, "sid-out-") {
                    true => {
                        let token = json!({"access_token": self.given.fresh("ey.jwt.")}).to_string();
                        (200, format!("Set-Cookie: sid={}; Path=/\r\n", self.given.fresh("sid-in-")), token)
                    }
                    false => refused,
                }
            }
            ["POST", "/orders"] if is_in() => {
                (201, String::new(), format!("{{\"id\":{}}}", self.given.fresh("")))
            }
            ["GET", path] if is_in() && path.starts_with("/orders/") => {
                let is_known = self.given.is_known(path.trim_start_matches("/orders/"));
                if is_known { (200, String::new(), "{}".into()) } else { refused }
            }
            _ => refused,
        }
    }
}

/// A browser's way through the shop, recorded by hand: each step uses what the one before it gave.
fn record_login(proxy: &str) {
    let address = proxy.trim_start_matches("http://").to_owned();
    let ask = |method: &str, path: &str, fields: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: browser\r\nConnection: close\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let between = |text: &str, begin: &str, end: &str| {
        let from = text.find(begin).unwrap_or_else(|| panic!("no {begin} in {text}")) + begin.len();
        text[from..].split(end).next().unwrap().to_owned()
    };
    let page = ask("GET", "/login", "", "");
    let (csrf, sid) = (between(&page, "value=\"", "\""), between(&page, "sid=", ";"));
    let form = format!("user=u&csrf={}", csrf.replace('/', "%2F").replace('+', "%2B"));
    let fields = format!("Cookie: sid={sid}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    let login = ask("POST", "/login", &fields, &form);
    let (sid, token) = (between(&login, "sid=", ";"), between(&login, "access_token\":\"", "\""));
    let fields =
        format!("Cookie: sid={sid}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    let order = ask("POST", "/orders", &fields, "{\"article\":1}");
    let id = between(&order, "\"id\":", "}");
    assert!(ask("GET", &format!("/orders/{id}"), &fields, "").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_login_passes_by_what_was_learned() {
    let folder = TempDir::new().unwrap();
    for masking in [&[][..], &["--keep-secrets"]] {
        let recording: PathBuf = folder.path().join(format!("{}.squall", masking.len()));
        let recording = recording.display().to_string();
        let url = Shop::start();
        let args = [&["record", &recording, "--to", &url], masking].concat();
        let proxy = Serving::start(&args, folder.path());
        record_login(&proxy.url);
        proxy.stop();
        // Another shop: nothing that the recording says is known there.
        let other = Shop::start();
        let played = squall::run(&["replay", &recording, "--to", &other, "--speed", "10", "--users", "3"]);
        assert_eq!(
            (played.count("/totals/ok"), played.count("/totals/failed")),
            (12, 0),
            "{masking:?} {played:#?}"
        );
        assert!(played.count("/totals/replay/corrected") >= 9, "{played:#?}");
        let blind = squall::run(&["replay", &recording, "--to", &other, "--speed", "10", "--no-learn"]);
        assert_eq!(blind.count("/totals/ok"), 1, "without learning only the first page is given: {blind:#?}");
        let script = path(&folder, "login.js");
        assert_eq!(squall::start(&["convert", &recording, &script, "--to", &other]).wait().code, Some(0));
        let made = squall::run(&["run", &script]);
        let checks = made.json()["totals"]["script"]["checks"].as_array().unwrap().clone();
        assert!(checks.len() == 4 && checks.iter().all(|check| check["passes"] == 1), "{made:#?}");
    }
}

/// Browsers follow a redirect when they have its head, so that the next request may begin before the recorded end of the redirect.
#[test]
fn a_redirect_gives_its_cookie_to_a_request_that_was_recorded_as_parallel() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "login.har");
    let entry = |at_ms: u64, target: &str, cookie: &str, set_cookie: &str, status: u64| {
        let fields = |name: &str, value: &str| match value {
            "" => json!([]),
            _ => json!([{"name": name, "value": value}]),
        };
        json!({
            "startedDateTime": format!("2026-01-01T00:00:00.{at_ms:03}Z"), "time": 200,
            "request": {"method": "GET", "url": format!("http://shop.example{target}"), "headers": fields("Cookie", cookie)},
            "response": {"status": status, "headers": fields("Set-Cookie", set_cookie), "content": {}},
        })
    };
    let entries = [
        entry(0, "/login", "", "sessionid=Zk39q9XvT7LmP2", 302),
        entry(100, "/account", "sessionid=Zk39q9XvT7LmP2", "", 200),
    ];
    fs::write(&har, json!({"log": {"entries": entries}}).to_string()).unwrap();
    let given = Given::new();
    let url = site::serve(move |request| match request.starts_with("GET /login ") {
        true => {
            // The account is due long before this response.
            thread::sleep(Duration::from_millis(500));
            (302, format!("Set-Cookie: sessionid={}\r\n", given.fresh("session-")), Vec::new())
        }
        false => (if given.is_in(request, "session-") { 200 } else { 403 }, String::new(), Vec::new()),
    });
    let played = squall::run(&["replay", &har, "--to", &url]);
    assert_eq!((played.count("/totals/ok"), played.count("/totals/failed")), (2, 0), "{played:#?}");
}

/// The rate that is asked for is that of the schedule, also where requests of a session wait for each other.
#[test]
fn a_rate_that_a_session_cannot_keep_is_shown_as_it_was_asked_for() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "one.har");
    let entry = |nth: u64| {
        json!({
            "startedDateTime": format!("2026-01-01T00:00:0{nth}Z"), "time": 20, "connection": "1",
            "request": {"method": "GET", "url": format!("http://shop.example/{nth}"), "headers": []},
            "response": {"status": 200, "headers": [], "content": {}},
        })
    };
    fs::write(&har, json!({"log": {"entries": [entry(0), entry(1)]}}).to_string()).unwrap();
    let url = site::serve(|_| {
        // Twenty requests a second, one after the other.
        thread::sleep(Duration::from_millis(50));
        (200, String::new(), Vec::new())
    });
    let played = squall::run(&["replay", &har, "--to", &url, "--rate", "200/s", "--loop", "-d", "1s"]);
    let (asked, sent) = (played.count("/totals/requests_asked"), played.count("/totals/requests"));
    assert_eq!((asked, played.count("/totals/requests_never_sent")), (200, 200 - sent), "{played:#?}");
    assert!(sent < 100, "{played:#?}");
}

/// A recording of three requests, a tenth of a second apart; the second is no record, though its checksum holds.
fn partly_unreadable(folder: &TempDir) -> String {
    let (har, recording) = (path(folder, "three.har"), path(folder, "three.squall"));
    let entry = |nth: u64| {
        json!({
            "startedDateTime": format!("2026-01-01T00:00:00.{nth}Z"), "time": 20, "connection": "1",
            "request": {"method": "GET", "url": format!("http://shop.example/get?{nth}"), "headers": []},
            "response": {"status": 200, "headers": [], "content": {}},
        })
    };
    fs::write(&har, json!({"log": {"entries": [entry(0), entry(1), entry(2)]}}).to_string()).unwrap();
    assert!(squall::start(&["convert", &har, &recording]).wait().code == Some(0));
    let mut bytes = fs::read(&recording).unwrap();
    let begin = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\xf5SqR")).nth(1).unwrap();
    let frame = &mut bytes[begin..];
    let end = 40 + u32::from_le_bytes(frame[4..8].try_into().unwrap()) as usize;
    frame[40..end].fill(0xff);
    let check = crc32(&frame[12..end]);
    frame[8..12].copy_from_slice(&check.to_le_bytes());
    fs::write(&recording, bytes).unwrap();
    recording
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[test]
fn a_record_that_cannot_be_read_is_neither_asked_for_nor_the_end() {
    let folder = TempDir::new().unwrap();
    let (recording, target) = (partly_unreadable(&folder), Target::start(&Options::default()).unwrap());
    let to = format!("http://{}", target.address());
    for args in [&["--rate", "50/s"][..], &["--speed", "10"], &["-c", "1"]] {
        let args = [&["replay", &recording, "--to", &to, "--threads", "1"], args].concat();
        let played = squall::run(&args);
        assert_eq!(
            (played.count("/totals/ok"), played.count("/totals/replay/unreadable")),
            (2, 1),
            "{played:#?}"
        );
        let never_sent = &played.json()["totals"]["requests_never_sent"];
        assert!(never_sent.as_u64().unwrap_or(0) == 0, "{args:?} {played:#?}");
    }
}

/// A site that answers 200 to what fits, and where it is.
fn strict_site(fits: fn(&str) -> bool) -> String {
    site::serve(move |request| (if fits(request) { 200 } else { 400 }, String::new(), Vec::new()))
}

fn send(proxy: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn users_behind_one_connection_of_a_goreplay_file_are_distinguished() {
    let folder = TempDir::new().unwrap();
    let file = path(&folder, "lb.gor");
    let request = |nth: u64, user: u64| {
        let id = format!("1 07f88207b4b9ed74{nth:08} {} 0", 1_714_557_600_000_000_000 + nth * 1_000_000);
        let cookie = format!("Cookie: sid=Zk3{user}q9XvT7LmP2");
        format!("{id}\nGET / HTTP/1.1\r\nHost: x\r\n{cookie}\r\n\r\n\n\u{1F435}\u{1F648}\u{1F649}\n")
    };
    fs::write(&file, (0..40).map(|nth| request(nth, nth % 4)).collect::<String>()).unwrap();
    let cases = [(&[][..], 4), (&["--session-by", "cookie:sid"], 4), (&["--session-by", "connection"], 1)];
    for (flags, session_count) in cases {
        let shown = squall::start(&[&["replay", &file, "--dry-run"][..], flags].concat()).wait();
        assert!(shown.stdout.contains(&format!("{session_count} identified")), "{flags:?}: {shown:#?}");
    }
}

#[test]
fn uploads_that_are_too_long_keep_their_length() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let site = strict_site(|request| request.split_once("\r\n\r\n").unwrap().1.len() == 200_000);
    let proxy = Serving::start(&["record", &recording, "--to", &site, "--max-body", "1KiB"], folder.path());
    let body = "x".repeat(200_000);
    let head = "POST /up HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n";
    assert!(send(&proxy.url, &format!("{head}{body}")).starts_with("HTTP/1.1 200"));
    proxy.stop();
    let played = squall::start(&["replay", &recording, "--no-save"]).wait();
    assert!(
        played.stderr.contains("zeros of the same length are sent") && played.code == Some(0),
        "{played:#?}"
    );
}

#[test]
fn a_prefix_of_paths_is_put_before_them_and_referers_follow() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let has_prefix = |request: &str| {
        let host = request
            .lines()
            .find_map(|line| line.strip_prefix("host: ").or_else(|| line.strip_prefix("Host: ")))
            .unwrap_or_default();
        let referer = format!("http://{host}/base/page");
        request.starts_with("GET /base/a?b ")
            && request.to_ascii_lowercase().contains(&format!("referer: {referer}\r\n"))
    };
    let (site, other) = (strict_site(has_prefix), strict_site(has_prefix));
    let to = format!("{site}/base");
    let proxy = Serving::start(&["record", &recording, "--to", &to], folder.path());
    let host = proxy.url.trim_start_matches("http://");
    let request = format!(
        "GET /a?b HTTP/1.1\r\nHost: {host}\r\nReferer: http://{host}/page\r\nConnection: close\r\n\r\n"
    );
    assert!(send(&proxy.url, &request).starts_with("HTTP/1.1 200"));
    proxy.stop();
    let played = squall::run(&["replay", &recording, "--to", &other]);
    assert_eq!((played.count("/totals/ok"), played.code), (1, Some(0)), "{played:#?}");
    let har = path(&folder, "b.har");
    let entry = json!({"startedDateTime": "2024-05-01T10:00:00Z", "time": 1, "response": {"status": 200, "headers": [], "content": {"size": 0}},
        "request": {"method": "GET", "url": "http://x.example/a?b", "headers": [{"name": "Referer", "value": "http://x.example/page"}]}});
    fs::write(&har, json!({"log": {"version": "1.2", "entries": [entry]}}).to_string()).unwrap();
    let played = squall::run(&["replay", &har, "--to", &to]);
    assert_eq!(played.count("/totals/ok"), 1, "{played:#?}");
}

#[test]
fn a_replay_whose_responses_differ_fails_unless_configured_otherwise() {
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "a.har");
    let entry = |nth: u64| {
        json!({"startedDateTime": format!("2024-05-01T10:00:00.{nth:03}Z"), "time": 1,
               "request": {"method": "GET", "url": format!("http://x.example/{nth}"), "headers": []},
               "response": {"status": 200, "headers": [], "content": {"size": 0}}})
    };
    fs::write(
        &har,
        json!({"log": {"version": "1.2", "entries": (0..10).map(entry).collect::<Vec<_>>()}}).to_string(),
    )
    .unwrap();
    let site = strict_site(|request| !request.starts_with("GET /3 "));
    for (rule, code) in
        [(None, 3), (Some("differing<=10%"), 0), (Some("differing<1"), 3), (Some("errors<50%"), 3)]
    {
        let rule = rule.map_or(vec![], |rule| vec!["--threshold", rule]);
        let played = squall::run(&[&["replay", &har, "--to", &site][..], &rule].concat());
        assert_eq!(played.code, Some(code), "{rule:?}: {played:#?}");
    }
    let played = squall::run(&["replay", &har, "--to", &site, "--compare", "nothing", "--max-gap", "1ms"]);
    assert_eq!((played.code, played.count("/totals/failed")), (Some(0), 1), "{played:#?}");
}

#[test]
fn requests_are_changed_as_the_flags_say() {
    let folder = TempDir::new().unwrap();
    let (har, key, csv) = (path(&folder, "a.har"), path(&folder, "key"), path(&folder, "users.csv"));
    fs::write(&key, "secret").unwrap();
    fs::write(&csv, "name,pin\nanna,11\nben,22\n").unwrap();
    // {"alg":"HS256"} and {"sub":"u","exp":1714561200}
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1IiwiZXhwIjoxNzE0NTYxMjAwfQ.old";
    let entry = json!({
        "startedDateTime": "2024-05-01T10:00:00Z", "time": 1,
        "request": {"method": "POST", "url": "http://x.example/anything?day=2024-05-01",
                    "headers": [{"name": "Authorization", "value": format!("Bearer {token}")},
                                {"name": "Content-Type", "value": "application/json"}],
                    "postData": {"mimeType": "application/json",
                                 "text": r#"{"id":"3f2504e0-4f89-41d3-9a0c-0305e82c3301","name":"x"}"#}},
        "response": {"status": 200, "headers": [], "content": {"size": 0}}});
    fs::write(&har, json!({"log": {"version": "1.2", "entries": [entry]}}).to_string()).unwrap();
    let target = Serving::start(&["target"], folder.path());
    let changed = path(&folder, "changed.squall");
    let proxy = Serving::start(&["record", &changed, "--to", &target.url, "--keep-secrets"], folder.path());
    let played = squall::run(&[
        "replay",
        &har,
        "--to",
        &proxy.url,
        "--users",
        "2",
        "--user-shift",
        "1ms",
        "--unique-ids",
        "--shift-times",
        "--csv",
        &csv,
        "--set-json",
        "/name={csv.name}",
        "--sign-jwt",
        &key,
        "--jwt-claim",
        "sub=user-{user}",
        "--pipe",
        "sed 's#/anything#/anything/piped#'",
    ]);
    assert_eq!(played.count("/totals/ok"), 2, "{played:#?}");
    proxy.stop();
    let out = path(&folder, "changed.har");
    assert_eq!(squall::start(&["convert", &changed, &out]).wait().code, Some(0));
    let sent: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let requests: Vec<&Value> =
        sent["log"]["entries"].as_array().unwrap().iter().map(|entry| &entry["request"]).collect();
    let bodies: Vec<Value> = requests
        .iter()
        .map(|request| serde_json::from_str(request["postData"]["text"].as_str().unwrap()).unwrap())
        .collect();
    let names: std::collections::BTreeSet<&str> =
        bodies.iter().map(|body| body["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["anna", "ben"].into());
    assert_ne!(bodies[0]["id"], bodies[1]["id"]);
    for request in requests {
        let text = request.to_string();
        assert!(text.contains("/anything/piped?day=20") && !text.contains("2024-05-01"), "{text}");
        assert!(!text.contains("3f2504e0") && !text.contains(".old"), "{text}");
    }
}

#[test]
fn a_rate_is_kept_with_as_few_sessions_as_the_recording_has() {
    let folder = TempDir::new().unwrap();
    let (log, target) = (path(&folder, "access.log"), Target::start(&Options::default()).unwrap());
    // All of one client, whose requests were a second apart.
    let line = |second: u32| {
        format!(
            "10.0.0.1 - - [22/Nov/2026:10:00:0{second} +0000] \"GET /get?nth={second} HTTP/1.1\" 200 10 \"-\" \"a\"\n"
        )
    };
    fs::write(&log, (0..10).map(line).collect::<String>()).unwrap();
    let to = format!("http://{}", target.address());
    let args = ["replay", &log, "--to", &to, "--rate", "50/s", "--loop", "-d", "1s", "--threads", "2"];
    let played = squall::run(&args);
    assert_eq!((played.count("/totals/requests_asked"), played.count("/totals/ok")), (50, 50), "{played:#?}");
    let shown = squall::start(&[&args[..], &["--no-save"]].concat()).wait();
    assert!(shown.stdout.contains("scheduled 50.0/s"), "the rate of the schedule: {shown:#?}");
    // Late is what the rate's time is over for, not the recording's.
    assert!(played.number("/totals/replay/lateness_us/p50") < 500_000.0, "{played:#?}");
}

#[test]
fn changes_that_cannot_be_made_are_reported_before_anything_is_sent() {
    let folder = TempDir::new().unwrap();
    let (curl, csv) = (path(&folder, "a.sh"), path(&folder, "a.csv"));
    fs::write(&curl, "curl http://localhost:1/\n").unwrap();
    fs::write(&csv, "name\n").unwrap();
    for (args, reason) in [
        (&["--csv", csv.as_str()][..], "the table has no rows"),
        (&["--set-query", "a={csv.x}"], "`{csv.x}` without a table"),
        (&["--sign-jwt", "/nonexistent"], "--sign-jwt"),
        (&["--sign-jwt", &csv, "--jwt-claim", "a={b}"], "no such name"),
        (&["--unique-ids=["], "bad regular expression"),
        (&["--pipe", "exit 4"], "ended (exit status: 4)"),
    ] {
        let refused = squall::start(&[&["replay", curl.as_str()], args].concat()).wait();
        assert_eq!(refused.code, Some(2), "{args:?} {}", refused.stderr);
        assert!(refused.stderr.contains(reason) && refused.stderr.contains("help:"), "{}", refused.stderr);
    }
}

#[test]
fn a_damaged_recording_is_played_as_far_as_it_is_whole() {
    let folder = TempDir::new().unwrap();
    let (gor, recording) = (path(&folder, "a.gor"), path(&folder, "a.squall"));
    write_gor(&gor, 50, 100);
    assert_eq!(squall::start(&["convert", &gor, &recording]).wait().code, Some(0));
    let whole = fs::read(&recording).unwrap();
    let target = Serving::start(&["target"], folder.path());
    let play = |flags: &[&str]| {
        let args = ["replay", &recording, "--asap", "-c", "1", "--to", &target.url];
        squall::run(&[&args[..], flags].concat())
    };
    // A bit that was turned over in the middle, and an end that was never written.
    let mut turned = whole.clone();
    turned[whole.len() / 2] ^= 1;
    for (name, bytes) in [("turned", &turned[..]), ("cut", &whole[..whole.len() / 2])] {
        fs::write(&recording, bytes).unwrap();
        let played = play(&["--skip-bad"]);
        assert_eq!((played.code, played.count("/totals/failed")), (Some(0), 0), "{name}: {played:#?}");
        assert!((20..50).contains(&played.count("/totals/ok")), "{name}: {played:#?}");
        // Without its index it is what a killed recorder leaves: that is played as far as it goes.
        let shown = squall::start(&["replay", &recording, "--dry-run"]).wait();
        assert_eq!(shown.code, Some(if name == "cut" { 0 } else { 2 }), "{name}: {shown:#?}");
    }
}

#[test]
fn broken_files_say_where_and_the_rest_is_used_when_asked() {
    let folder = TempDir::new().unwrap();
    let log = path(&folder, "access.log");
    let line = |second: u32| {
        format!(
            "1.2.3.4 - - [26/Jan/2021:06:28:{second:02} +0000] \"GET /anything HTTP/1.1\" 200 1 \"-\" \"x\"\n"
        )
    };
    fs::write(&log, format!("{}nonsense\n{}", line(1), line(1))).unwrap();
    let refused = squall::start(&["convert", "--format", "log", &log, &path(&folder, "a.squall")]).wait();
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("record 2 at line 2") && refused.stderr.contains("--skip-bad"),
        "{}",
        refused.stderr
    );
    let target = Serving::start(&["target"], folder.path());
    let played = squall::run(&["replay", &log, "--format", "log", "--to", &target.url, "--skip-bad"]);
    assert_eq!(played.count("/totals/ok"), 2, "{played:#?}");
    let summary = squall::start(&["replay", &log, "--format", "log", "--dry-run", "--skip-bad"]).wait();
    assert!(
        summary.stdout.contains("requests    2") && summary.stdout.contains("--to URL"),
        "{}",
        summary.stdout
    );
}

#[test]
fn a_recording_is_shown_as_a_table_in_detail_and_against_another() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, last: &str| {
        let line = |second: u32, request: &str, status: u32| {
            format!(
                "1.2.3.4 - - [26/Jan/2021:06:28:{second:02} +0000] \"{request} HTTP/1.1\" {status} 12 \"-\" \"x\"\n"
            )
        };
        let lines = [line(1, "GET /a?token=s3cret", 200), line(2, "POST /b", 500), line(40, last, 404)];
        fs::write(folder.path().join(name), lines.concat()).unwrap();
        path(&folder, name)
    };
    let (log, other) = (write("a.log", "GET /c"), write("b.log", "GET /d"));
    let view = |args: &[&str]| squall::start(&[&["view", &log], args].concat()).wait();
    let urls = |args: &[&str]| -> Vec<String> {
        let shown = view(args).stdout;
        shown.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    for (args, expected) in [
        (&["--method", "post", "--method", "PUT"][..], &["/b"][..]),
        (&["--status", "4xx,500"], &["/b", "/c"]),
        (&["--from", "500ms", "--until", "30s"], &["/b"]),
        (&["--only-path", "/c"], &["/c"]),
        (&["--status", "200", "--show-secrets"], &["/a?token=s3cret"]),
    ] {
        assert_eq!(urls(args), expected, "{args:?}");
    }
    assert!(!view(&[]).stdout.contains("s3cret"));
    let detail = view(&["--record", "2"]).stdout;
    assert!(
        detail.contains("POST /b HTTP/1.1\nUser-Agent: x") && detail.contains("HTTP/1.1 500"),
        "{detail}"
    );
    let missing = view(&["--record", "4"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("the recording has 3"), "{}", missing.stderr);
    let difference = |one: &str, two: &str| squall::start(&["convert", "--diff", one, two]).wait().stdout;
    assert_eq!(difference(&log, &log), "no difference\n");
    assert_eq!(difference(&log, &other), "GET /c\n  requests  1 -> 0\nGET /d\n  requests  0 -> 1\n");
}

/// What any file may take, however large; an unoptimised squall takes 24 MB of it for itself.
const RSS_BYTES_MAX: u64 = 110_000_000;

#[test]
fn large_recordings_are_converted_and_replayed_in_bounded_memory() {
    let folder = TempDir::new().unwrap();
    let names = ["a.gor", "a.squall", "a.har", "small.gor", "small.squall"];
    let [gor, squall, har, small_gor, small_squall] = names.map(|name| path(&folder, name));
    write_gor(&gor, 2000, 100_000);
    write_gor(&small_gor, 250_000, 1);
    let target = Serving::start(&["target"], folder.path());
    let run_small = |args: &[&str]| {
        let ended = squall::start(args).wait();
        assert!(ended.rss_bytes < RSS_BYTES_MAX, "{args:?}: {} bytes", ended.rss_bytes);
        ended
    };
    for (from, to, count) in
        [(&gor, &squall, 2000), (&squall, &har, 2000), (&small_gor, &small_squall, 250_000)]
    {
        let ended = run_small(&["convert", from, to]);
        let written = squall_report::units::counted(count, "request") + " written";
        assert!(ended.stderr.contains(&written), "{from}: {ended:#?}");
    }
    let ended = run_small(&["convert", "--dry-run", &har]);
    assert!(ended.stdout.contains("requests    2000"), "{ended:#?}");
    for recording in [&gor, &squall] {
        let args = ["replay", recording, "--to", &target.url, "--speed", "10"];
        let ended = run_small(&squall::with_json(&args));
        assert_eq!(ended.count("/totals/ok"), 2000, "{recording}: {ended:#?}");
    }
}

#[test]
fn a_reader_of_a_converted_recording_may_go_away() {
    let folder = TempDir::new().unwrap();
    let gor = path(&folder, "a.gor");
    write_gor(&gor, 2000, 1000);
    let mut command = Command::new("bash");
    let squall = env!("CARGO_BIN_EXE_squall");
    command.args(["-c", &format!("set -o pipefail; {squall} convert {gor} - --as har | head -c 10")]);
    let ended = squall::start_command(command).wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "{\"log\":{\"v"), "{ended:#?}");
}

/// So many requests in two seconds.
fn write_gor(path: &str, request_count: u64, body_bytes: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let body = "x".repeat(body_bytes);
    for nth in 0..request_count {
        let time_ns = 1_714_557_600_000_000_000 + nth * (2_000_000_000 / request_count);
        let head = format!(
            "POST /status/204?{} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nCookie: session=1\r\nContent-Length: {body_bytes}",
            nth % 200
        );
        write!(file, "1 {nth:024x} {time_ns} 0\n{head}\r\n\r\n{body}{GOR_SEPARATOR}").unwrap();
    }
    file.flush().unwrap();
}

const GOR_SEPARATOR: &str = "\n\u{1f435}\u{1f648}\u{1f649}\n";

#[test]
fn files_that_are_gigantic_in_one_place_take_bounded_memory() {
    let folder = TempDir::new().unwrap();
    let gor = "1 aeb496b6165db3fad05c89b8 1714557600000000000 0\nPOST / HTTP/1.1\r\nHost: x\r\n";
    let log = "1.2.3.4 - - [01/May/2024:10:00:00 +0000] \"GET /";
    for (name, begin, block, is_packed) in [
        ("bomb.gor.gz", format!("{gor}Content-Length: 1000000000\r\n\r\n"), "\0".repeat(1 << 20), true),
        ("head.gor", gor.to_owned(), format!("A: {}\r\n", "b".repeat(1 << 20)), false),
        ("line.log", log.to_owned(), "a".repeat(1 << 20), false),
        ("line.log.gz", log.to_owned(), "a".repeat(1 << 20), true),
    ] {
        let (file, out) = (path(&folder, name), path(&folder, "out.squall"));
        write_gigantic(&file, &begin, &block, is_packed);
        let format = if name.contains(".gor") { "gor" } else { "log" };
        for (flags, code) in [(&[][..], 2), (&["--skip-bad"], 0)] {
            let ended =
                squall::start(&[&["convert", "--format", format, &file, &out], flags].concat()).wait();
            assert_eq!(ended.code, Some(code), "{name}: {ended:#?}");
            assert!(ended.stderr.contains("record 1 at line 1: "), "{name}: {ended:#?}");
            assert!(ended.stderr.contains("larger than"), "{name}: {ended:#?}");
            assert!(ended.rss_bytes < RSS_BYTES_MAX, "{name}: {} bytes", ended.rss_bytes);
        }
    }
}

/// A file of 200 such blocks, or one that unpacks to them.
fn write_gigantic(path: &str, begin: &str, block: &str, is_packed: bool) {
    let file = File::create(path).unwrap();
    let mut writer: Box<dyn Write> =
        if is_packed { Box::new(GzEncoder::new(file, Compression::fast())) } else { Box::new(file) };
    writer.write_all(begin.as_bytes()).unwrap();
    for _ in 0..200 {
        writer.write_all(block.as_bytes()).unwrap();
    }
}
