//! Real clients through the recording proxy, exported as HAR and replayed: the server sees the same requests and gives the same answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use squall_testkit::{Process, program, wait_until};
use tempfile::TempDir;

use crate::site::{self, Answer, Given};
use crate::squall;
use crate::traffic::{Serving, logged, path};

/// A site with assets, a login and an API; its tokens, session ids and order numbers are new in each run.
struct Site {
    given: Given,
    log: Mutex<Vec<String>>,
}

impl Site {
    fn start() -> (Arc<Self>, String) {
        let site = Arc::new(Self { given: Given::new(), log: Mutex::default() });
        let serving = Arc::clone(&site);
        (site, site::serve(move |request| serving.answer_and_log(request)))
    }

    fn answer_and_log(&self, request: &str) -> Answer {
        let answer = self.answer(request);
        let line = request.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let sent = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // What differs in each run is a number; all else of target and body must be the same.
        self.log.lock().unwrap().push(without_numbers(&format!("{line} {} {sent}", answer.0)));
        answer
    }

    fn answer(&self, request: &str) -> Answer {
        let typed = |kind: &str| format!("Content-Type: {kind}\r\n");
        let ok = |kind: &str, body: &[u8]| (200, typed(kind), body.to_vec());
        let refused = (403, String::new(), Vec::new());
        let is_in = || self.given.is_in(request, "in-");
        let target = request.split(' ').nth(1).unwrap_or_default();
        match (request.split(' ').next().unwrap_or_default(), target.split('?').next().unwrap_or_default()) {
            ("GET", "/") => {
                let page = PAGE.replace("TOKEN", &self.given.fresh("csrf-"));
                let headers =
                    format!("{}Set-Cookie: sid={}; Path=/\r\n", typed("text/html"), self.given.fresh("out-"));
                (200, headers, page.into())
            }
            ("GET", "/style.css") => ok("text/css", b"body { background: url(/logo.png?v=2) }"),
            ("GET", "/app.js") => ok("text/javascript", APP.as_bytes()),
            ("GET", "/logo.png") => ok("image/png", &[0x89, b'P', b'N', b'G', 0xff, 0, 13, 10]),
            ("POST", "/login") if self.given.is_in(request, "csrf-") && self.given.is_in(request, "out-") => {
                let (ticket, sid) = (self.given.fresh("ticket-"), self.given.fresh("in-"));
                let headers = format!("Location: /home?ticket={ticket}\r\nSet-Cookie: sid={sid}; Path=/\r\n");
                (303, headers, Vec::new())
            }
            ("GET", "/home") if is_in() && self.given.is_in(request, "ticket-") => {
                ok("text/html", HOME.as_bytes())
            }
            ("POST", "/api/orders") if is_in() => {
                ok("application/json", format!("{{\"id\":{}}}", self.given.fresh("")).as_bytes())
            }
            ("GET", path) if path.starts_with("/api/orders/") && is_in() => {
                let is_known = self.given.is_known(path.trim_start_matches("/api/orders/"));
                if is_known { ok("application/json", b"{}") } else { refused }
            }
            ("POST", "/upload") | ("DELETE", "/done") if is_in() => (204, String::new(), Vec::new()),
            ("GET", "/end") => (204, String::new(), Vec::new()),
            ("GET", "/absent") => (404, String::new(), Vec::new()),
            _ => refused,
        }
    }

    /// The browser has the answers to all requests that count.
    fn has_ended(&self) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.starts_with(END))
    }

    /// Each line of the log, counted; but for the last one, whose answer the browser may not live to see.
    fn seen(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for line in self.log.lock().unwrap().iter().filter(|line| !line.starts_with(END)) {
            *counts.entry(line.clone()).or_default() += 1;
        }
        counts
    }
}

fn without_numbers(text: &str) -> String {
    let parts: Vec<&str> = text.split(|c: char| c.is_ascii_digit()).collect();
    let kept =
        parts.iter().enumerate().filter(|(at, part)| *at == 0 || *at + 1 == parts.len() || !part.is_empty());
    kept.map(|(_, part)| *part).collect::<Vec<_>>().join("N")
}

const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css?v=1">
<img src="/logo.png"><form id="login" method="post" action="/login"><input type="hidden" name="csrf" value="TOKEN">
<input name="user" value="Änne &amp; co"><textarea name="note">two
lines</textarea></form><script src="/app.js"></script>"#;

const APP: &str = "addEventListener('load', () => document.getElementById('login').submit());";

const END: &str = "GET /end ";

/// Requests one after the other, requests at once, JSON, a multipart form, and one that is not found.
const HOME: &str = r#"<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script>
(async () => {
  const headers = { 'Content-Type': 'application/json' };
  const order = await fetch('/api/orders', { method: 'POST', headers, body: JSON.stringify({ article: 'ü', n: 3 }) });
  const { id } = await order.json();
  await Promise.all([fetch('/api/orders/' + id), fetch('/api/orders/' + id + '?full=yes&q=a%20b'), fetch('/absent')]);
  const form = new FormData();
  form.append('file', new Blob(['one,two\n']), 'a.csv');
  await fetch('/upload', { method: 'POST', body: form });
  await fetch('/done', { method: 'DELETE' });
  await fetch('/end');
})();
</script>"#;

/// Headless Chromium on its way through the page; its group of processes ends with this.
fn browse(url: &str, profile: &Path) -> Process {
    let mut command = Command::new(program("chromium"));
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--no-first-run", "--ignore-certificate-errors"]);
    command.arg("--remote-debugging-port=0").arg(format!("--user-data-dir={}", profile.display())).arg(url);
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// The recording as HAR, read back.
fn as_har(recording: &str, har: &str) -> Value {
    let converted = squall::start(&["convert", recording, har]).wait();
    assert_eq!(converted.code, Some(0), "{converted:#?}");
    serde_json::from_str(&fs::read_to_string(har).unwrap()).unwrap()
}

#[test]
fn what_a_browser_did_is_done_again() {
    for (is_tls, version) in [(false, "HTTP/1.1"), (true, "HTTP/2")] {
        let folder = TempDir::new().unwrap();
        let (recording, har, ca) = (path(&folder, "r.squall"), path(&folder, "r.har"), path(&folder, "ca"));
        let (site, url) = Site::start();
        let mut args = vec!["record", &recording, "--to", &url, "--keep-secrets"];
        args.extend(is_tls.then_some(["--tls", "--ca", &ca]).into_iter().flatten());
        let proxy = Serving::start(&args, folder.path());
        let begin = if is_tls { proxy.url.replace("http:", "https:") } else { proxy.url.clone() };
        let mut browser = browse(&format!("{begin}/"), &folder.path().join("profile"));
        let has_ended = wait_until(Duration::from_secs(60), || site.has_ended());
        assert!(has_ended, "the browser did not come to the end: {:#?}", site.seen());
        browser.kill();
        proxy.stop();
        let entries = as_har(&recording, &har)["log"]["entries"].as_array().unwrap().clone();
        assert!(entries.iter().all(|entry| entry["request"]["httpVersion"] == version), "{version}");

        let (other, to) = Site::start();
        let played = squall::run(&["replay", &har, "--to", &to, "--speed", "2"]);
        assert_eq!(played.count("/totals/replay/same"), entries.len() as u64, "{played:#?}");
        assert_eq!(other.seen(), site.seen(), "{version}");
    }
}

#[test]
fn what_k6_scripts_did_is_done_again() {
    let folder = TempDir::new().unwrap();
    let (recording, har) = (path(&folder, "r.squall"), path(&folder, "r.har"));
    let logs = [path(&folder, "recorded.log"), path(&folder, "played.log")];
    let target = Serving::start(&["target", "--log", &logs[0]], folder.path());
    let proxy = Serving::start(&["record", &recording, "--to", &target.url, "--keep-secrets"], folder.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/k6/scripts");
    for name in ["verbs", "forms", "batch", "cookies", "headers", "types", "compression", "async", "url-name"]
    {
        let script = scripts.join(format!("http-{name}.js")).display().to_string();
        let ran = squall::start(&["run", "-qq", "--no-save", "-e", &format!("BASE={}", proxy.url), &script]);
        assert_eq!(ran.wait().code, Some(0), "{name}");
    }
    proxy.stop();
    target.stop();
    let count = as_har(&recording, &har)["log"]["entries"].as_array().unwrap().len();
    let target = Serving::start(&["target", "--log", &logs[1]], folder.path());
    let played = squall::run(&["replay", &har, "--to", &target.url, "--speed", "10"]);
    assert_eq!(played.count("/totals/replay/same"), count as u64, "{played:#?}");
    target.stop();
    let [recorded, played] = logs.map(|log| logged(&fs::read_to_string(log).unwrap()));
    assert_eq!(played, recorded);
}

#[test]
fn a_slow_server_makes_requests_late_and_it_is_reported() {
    const COUNT: u64 = 40;
    let folder = TempDir::new().unwrap();
    let har = path(&folder, "slow.har");
    let entry = |nth: u64| {
        json!({"startedDateTime": format!("2024-05-01T10:00:00.{:03}Z", nth * 10), "time": 1, "connection": "7",
               "request": {"method": "GET", "url": "http://x.example/delay/50ms", "headers": []},
               "response": {"status": 200, "headers": [], "content": {"size": 0}}})
    };
    let entries: Vec<Value> = (0..COUNT).map(entry).collect();
    fs::write(&har, json!({"log": {"version": "1.2", "entries": entries}}).to_string()).unwrap();
    let target = Serving::start(&["target"], folder.path());
    let played = squall::run(&["replay", &har, "--to", &target.url]);
    assert_eq!(played.count("/totals/ok"), COUNT);
    // Each waits for the one before it, 50 ms; it was due after 10. The last is 40 times 40 ms behind.
    assert!(played.count("/totals/replay/late") >= COUNT - 1, "{played:#?}");
    assert!(played.number("/totals/replay/lateness_us/max") >= 39.0 * 40_000.0, "{played:#?}");
    assert!(
        played.number("/latency_us/max") >= 39.0 * 40_000.0 + 50_000.0,
        "latency counts from the schedule"
    );
    assert!(played.number("/service_us/p50") < played.number("/latency_us/p50"), "{played:#?}");
}
