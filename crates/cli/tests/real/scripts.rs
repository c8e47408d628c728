//! The scripts of `suites/k6`: squall does with each what k6 did, as `make k6-diff` has written it down.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use squall_server::{Options, Target};
use tempfile::TempDir;

use crate::squall::{self, assert_none_complains, start};

#[test]
fn scripts_end_as_they_do_in_k6() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/k6");
    let target = Target::start(&Options::default()).unwrap();
    let sockets = Sockets::start(&suite);
    let base = [format!("BASE=http://{}", target.address()), format!("SOCKETS={}", sockets.url)];
    let figures = fs::read_to_string(suite.join("figures")).unwrap();
    let known: Vec<(&str, &str)> = figures.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert!(known.len() > 60, "{} scripts", known.len());
    assert_none_complains(&known, |(name, expected)| {
        let script = ["js", "ts"].map(|form| suite.join("scripts").join(format!("{name}.{form}")));
        let script = script.iter().find(|path| path.exists()).unwrap();
        let seen = run(script, &base);
        (seen != serde_json::from_str::<Value>(expected).unwrap())
            .then(|| format!("{name}: {seen}, where k6 has {expected}"))
    });
}

#[test]
fn summaries_have_the_data_that_k6_gives() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/k6");
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let shape = folder.path().join("shape.json");
    let (base, out) = (format!("BASE=http://{}", target.address()), format!("OUT={}", shape.display()));
    let script = suite.join("scripts/summary-data.js");
    let script = script.to_str().unwrap();
    let known = fs::read_to_string(suite.join("summary-data")).unwrap();
    for line in known.lines() {
        let (form, expected) = line.split_once('\t').unwrap();
        let flag: &[&str] = if form == "newer" { &["--new-machine-readable-summary"] } else { &[] };
        let args = [&["run", "-qq", "--no-save", "-e", &base, "-e", &out], flag, &[script]].concat();
        assert_eq!(start(&args).wait().code, Some(99), "{form}");
        let seen: Value = serde_json::from_slice(&fs::read(&shape).unwrap()).unwrap();
        assert_eq!(seen, serde_json::from_str::<Value>(expected).unwrap(), "{form}");
    }
}

#[test]
fn event_streams_of_scripts_are_those_of_the_server() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("sse.js");
    fs::write(&script, EVENT_STREAM).unwrap();
    let base = format!("BASE=http://{}", target.address());
    let ended = start(&["run", "--no-save", "-e", &base, script.to_str().unwrap()]).wait();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    for event in ["0 tick", "1 tick", "2 tick", "whole 200", "closed after 1", "refused 404"] {
        assert_eq!(ended.stderr.matches(event).count(), 2, "{event}: {ended:#?}");
    }
}

/// Reads a stream to its end, leaves another one after its first event, and asks for one that is none.
const EVENT_STREAM: &str = r#"
import sse from 'k6/x/sse';
import { check } from 'k6';
export const options = {
  iterations: 2,
  thresholds: { sse_event: ['count==8'], checks: ['rate==1'] },
};
function read(path, onEvent) {
  return sse.open(`${__ENV.BASE}${path}`, { headers: { Accept: 'text/event-stream' } }, (client) => {
    client.on('event', (event) => onEvent(client, event));
    client.on('error', (error) => console.log(`error ${error.error()}`));
  });
}
export default function () {
  const whole = read('/sse?count=3&interval=5ms&event=tick', (client, event) => {
    console.log(`${event.id} ${event.name}`);
  });
  check(whole, { 'is a stream': (response) => response.status === 200 });
  console.log(`whole ${whole.status}`);
  let seen = 0;
  read('/sse?count=1000&interval=10ms', (client) => { seen += 1; client.close(); });
  console.log(`closed after ${seen}`);
  const refused = read('/status/404', () => {});
  console.log(`refused ${refused.status}`);
}
"#;

#[test]
fn users_that_are_cancelled_while_their_request_is_to_be_sent_again_end() {
    let base = answer_once_each();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export const options = { scenarios: { it: { executor: 'constant-vus', vus: 200, duration: '1s', gracefulStop: '0s' } } };
         export default function () { http.get(__ENV.BASE); }",
    );
    let ended = squall::run(&["run", "-e", &format!("BASE={base}"), &script]);
    ended.assert_all_counted();
}

/// Each connection has one answer, and is closed at its second request.
fn answer_once_each() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut buf = [0; 4096];
                if socket.read(&mut buf).is_ok_and(|count| count > 0) {
                    let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n");
                    let _ = socket.read(&mut buf);
                }
            });
        }
    });
    url
}

#[test]
fn a_name_that_does_not_resolve_fails_its_own_requests_alone() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export default function () {
           http.get('http://no-such-host.invalid/');
           for (const nth of [1, 2, 3]) http.get(`${__ENV.BASE}/get?nth=${nth}`);
         }",
    );
    let base = format!("BASE=http://{}", target.address());
    let ended = squall::run(&["run", "-i", "2", "-e", &base, &script]);
    assert_eq!((ended.count("/totals/ok"), ended.count("/totals/failed")), (6, 2), "{ended:#?}");
    assert_eq!(ended.count("/errors/0/count"), 2, "{ended:#?}");
    assert_eq!(ended.json()["errors"][0]["cause"], "name_not_resolved", "{ended:#?}");
}

#[test]
fn thresholds_of_a_script_are_part_of_its_record() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export const options = { thresholds: {
           http_req_duration: ['p(95)<0.000001'], 'http_reqs{status:200}': ['count>=2'] } };
         export default function () { http.get(__ENV.BASE); }",
    );
    let (base, runs) = (format!("BASE=http://{}", target.address()), folder.path().join("runs"));
    let junit = folder.path().join("junit.xml");
    let (runs, out) = (runs.to_str().unwrap(), format!("junit={}", junit.display()));
    let flags = ["--json", "-", "--quiet", "--name", "mine", "-i", "2", "--results", runs, "--out", &out];
    let ended = start(&[&["run", "-e", &base, &script], &flags[..]].concat()).wait();
    assert_eq!(ended.code, Some(99), "{ended:#?}");
    let rules = &ended.json()["thresholds"];
    let facts = |idx: usize| ["metric", "rule", "ok"].map(|name| rules[idx][name].clone());
    assert_eq!(facts(0), [json!("http_req_duration"), json!("p(95)<0.000001"), json!(false)]);
    assert_eq!(facts(1), [json!("http_reqs{status:200}"), json!("count>=2"), json!(true)]);
    assert_eq!((rules[1]["actual"].as_f64(), ended.json()["name"].as_str()), (Some(2.0), Some("mine")));
    // k6's milliseconds are microseconds here, as all times are.
    assert_eq!((rules[0]["unit"].as_str(), rules[0]["limit"].as_f64()), (Some("us"), Some(0.001)));
    assert_eq!((rules[1]["unit"].as_str(), rules[1]["margin"].as_f64()), (Some("count"), Some(0.0)));
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    let missed = start(&["runs", runs, "--missed"]).wait();
    assert!(missed.stdout.contains("1 of 2 missed") && missed.stdout.contains("-mine"), "{missed:#?}");
    let shown = start(&["run", "-i", "2", "--no-save", "-e", &base, &script]).wait();
    assert_eq!(shown.stdout.matches("THRESHOLDS").count(), 1, "{shown:#?}");
}

#[test]
fn iterations_checks_and_metrics_of_a_script_are_in_its_summary() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "import { check } from 'k6'; import { Counter } from 'k6/metrics';
         const sold = new Counter('sold');
         export default function () {
           check(http.get(__ENV.BASE), { 'is 200': (r) => r.status === 200, 'is first': () => __ITER === 0 });
           sold.add(3);
         }",
    );
    let base = format!("BASE=http://{}", target.address());
    let flags = ["run", "-i", "4", "-e", &base, &script];
    let ended = squall::run(&flags);
    assert_eq!((ended.count("/totals/iterations"), ended.count("/totals/iterations_dropped")), (4, 0));
    let made = &ended.json()["totals"]["script"];
    assert_eq!(made["checks"][1], json!({ "group": "", "name": "is first", "passes": 1, "fails": 3 }));
    let metrics = made["metrics"].as_array().unwrap();
    let sold = metrics.iter().find(|metric| metric["name"] == "sold").unwrap();
    assert_eq!((&sold["kind"], &sold["values"]["count"]), (&json!("counter"), &json!(12.0)));
    let shown = start(&[&flags[..], &["--no-save"]].concat()).wait();
    assert!(shown.stdout.contains("ITERATIONS  4 done"), "{shown:#?}");
    assert!(shown.stdout.contains("62.5 % passed   5 of 8   is first: 3 failed"), "{shown:#?}");
}

#[test]
fn a_setup_that_never_settles_ends_the_run_before_any_iteration() {
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export async function setup() { await new Promise(() => {}); }
         export default function () { console.log('iterated'); }",
    );
    let ended = start(&["run", "-i", "1", "--no-save", &script]).wait();
    assert_eq!(ended.code, Some(107), "{ended:#?}");
    let said = "setup(): the promise that it returns is never settled";
    assert!(ended.stderr.contains(said) && !ended.stderr.contains("iterated"), "{ended:#?}");
}

#[test]
fn the_timeout_of_a_request_holds_while_its_connection_opens() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export default function () {
           const res = http.get(__ENV.BASE, { timeout: '200ms' });
           console.log(`${res.error_code} ${res.error}`);
         }",
    );
    // The handshake is never answered.
    let base = format!("BASE=https://{}", silent.local_addr().unwrap());
    let ended = squall::run(&["run", "-i", "1", "-e", &base, &script]);
    assert!(ended.stderr.contains("1050 request timeout"), "{ended:#?}");
    let error = &ended.json()["errors"][0];
    assert_eq!((&error["cause"], &error["phase"]), (&json!("timeout"), &json!("tls_handshaking")));
    assert_eq!(error["example"], "no complete response within 200ms", "{error}");
}

/// Neither are its phases longer for what the script does before, nor its rest shorter.
#[test]
fn what_a_script_computes_takes_its_own_time() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "import { sleep } from 'k6';
         const text = JSON.stringify(Array.from({ length: 100000 }, (_, nth) => `${nth}`));
         export const options = { noConnectionReuse: true };
         export default function () {
           const begin = Date.now();
           JSON.parse(text);
           const parsed = Date.now();
           const timings = http.get(__ENV.BASE).timings;
           const before_ms = timings.blocked + timings.sending;
           const rested = Date.now();
           JSON.parse(text);
           sleep((parsed - begin) / 1000);
           console.log(`${before_ms < (parsed - begin) / 2} ${Date.now() - rested > 1.5 * (parsed - begin)}`);
         }",
    );
    let base = format!("BASE=http://{}", target.address());
    let ended = squall::run(&["run", "-i", "10", "-e", &base, &script]);
    // A busy machine may delay some, but not all.
    assert!(ended.stderr.contains("true true"), "{ended:#?}");
}

#[test]
fn a_process_may_make_a_part_of_the_run_by_its_flags() {
    let folder = TempDir::new().unwrap();
    let script = written(&folder, "export default function () { console.log('iterated'); }");
    let part = ["--execution-segment", "1/3:1", "--execution-segment-sequence", "0,1/3,1"];
    let ended = start(&[&["run", "-u", "3", "-i", "9", "--no-save"], &part[..], &[&script]].concat()).wait();
    assert_eq!((ended.code, ended.stderr.matches("iterated").count()), (Some(0), 6), "{ended:#?}");
}

#[test]
fn a_run_that_is_too_short_for_an_iteration_says_so() {
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "import { sleep } from 'k6';
         export const options = { scenarios: { it: { executor: 'constant-vus', duration: '1s', gracefulStop: '0s' } } };
         export default function () { sleep(__ENV.SLEEP); }",
    );
    for (sleep, count) in [("SLEEP=3", 1), ("SLEEP=0.1", 0)] {
        let ended = start(&["run", "--no-save", "-e", sleep, &script]).wait();
        assert_eq!(ended.stderr.matches("No script iterations fully finished").count(), count, "{ended:#?}");
    }
}

#[test]
fn a_threshold_that_ends_the_run_is_reported_as_such() {
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "import { sleep } from 'k6';
         export const options = { duration: '30s', thresholds: { iterations: [{ threshold: 'count<2', abortOnFail: true }] } };
         export default function () { sleep(0.1); }",
    );
    let ended = start(&["run", "--no-save", &script]).wait();
    let shown = "thresholds on metrics 'iterations' were crossed; at least one has abortOnFail enabled";
    assert!(ended.code == Some(99) && ended.stderr.contains(shown), "{ended:#?}");
}

#[test]
fn variables_stand_for_flags_that_are_not_given() {
    let folder = TempDir::new().unwrap();
    let script =
        written(&folder, "export default function () { console.log(__ENV.OWN, __ENV.K6_NO_SUMMARY); }");
    let [said, samples] = ["said", "samples"].map(|name| folder.path().join(name));
    let mut command = Command::new(squall::binary());
    command.args(["run", "-i", "1", "--summary", "k6", "--no-save", "-e", "OWN=1", &script]);
    command.env("K6_OUT", format!("json={}", samples.display())).env("K6_CONSOLE_OUTPUT", &said);
    command
        .env("K6_LOG_FORMAT", "raw")
        .env("K6_NO_SUMMARY", "true")
        .env("K6_INCLUDE_SYSTEM_ENV_VARS", "false");
    let ended = squall::start_command(command).wait();
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), ""), "{ended:#?}");
    assert_eq!(fs::read_to_string(said).unwrap(), "1 undefined\n");
    assert!(fs::read_to_string(samples).unwrap().contains("\"metric\":\"iterations\""));
}

#[test]
fn names_of_sub_metrics_keep_their_text() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export const options = { thresholds: { \"http_req_duration{name:'a'}\": ['max>=0'], 'http_reqs{ name: a, status : 200 }': ['count==1'] } };
         export default function () { http.get(`${__ENV.BASE}/get`, { tags: { name: 'a' } }); }
         export function handleSummary(data) {
           const names = Object.keys(data.metrics).filter((name) => name.includes('{') && name.includes('a'));
           return { stdout: names.sort().join(' & ') + '\\n' };
         }",
    );
    let [samples, export] = ["samples", "export"].map(|name| folder.path().join(name));
    let (base, out) = (format!("BASE=http://{}", target.address()), format!("json={}", samples.display()));
    let export_flag = format!("--summary-export={}", export.display());
    let ended =
        start(&["run", "--summary", "k6", "--no-save", "-e", &base, "-o", &out, &export_flag, &script])
            .wait();
    let names = ["http_req_duration{name:'a'}", "http_reqs{name: a, status : 200}"];
    assert!(ended.code == Some(0) && names.iter().all(|name| ended.stdout.contains(name)), "{ended:#?}");
    let export = fs::read_to_string(export).unwrap();
    assert!(names.iter().all(|name| export.contains(&format!("\"{name}\""))), "{export}");
    let samples = fs::read_to_string(samples).unwrap();
    assert!(names.iter().all(|name| samples.contains(name)), "{samples}");
}

#[test]
fn outputs_and_variables_of_k6_are_taken_or_named() {
    let folder = TempDir::new().unwrap();
    let script = written(&folder, "export default function () { __ENV.K6_OWN; }");
    let run = |out: &str| {
        let mut command = Command::new(squall::binary());
        command.args(["run", "-i", "1", "--summary", "k6", "--no-save", &script]);
        command
            .env("K6_OUT", out)
            .env("K6_CLOUD_TOKEN", "t")
            .env("K6_OWN", "o")
            .env("K6_STATSD_ADDR", "127.0.0.1:9");
        squall::start_command(command).wait()
    };
    let ended = run("statsd");
    let warning = "the variable K6_CLOUD_TOKEN has no effect: only k6 itself can use Grafana Cloud k6";
    assert!(ended.code == Some(0) && ended.stderr.contains(warning), "{ended:#?}");
    assert!(!ended.stderr.contains("K6_OWN") && !ended.stderr.contains("K6_STATSD"), "{ended:#?}");
    let ended = run("cloud");
    let refusal = "`cloud` sends to Grafana Cloud k6, which only k6 itself can do";
    assert!(ended.code == Some(255) && ended.stderr.contains(refusal), "{ended:#?}");
}

#[test]
fn a_new_script_runs_and_overwrites_nothing() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("new.js").display().to_string();
    let url = format!("http://{}/get", target.address());
    let ended = start(&["new", &script, "--target", &url]).wait();
    assert!(ended.code == Some(0) && ended.stderr.contains("is a k6 script: `squall run "), "{ended:#?}");
    let ended = start(&["run", "-i", "1", "--vus", "1", "--summary", "k6", "--no-save", &script]).wait();
    assert!(ended.code == Some(0) && ended.stdout.contains("status is 200"), "{ended:#?}");
    assert_eq!(start(&["new", &script]).wait().code, Some(2));
}

#[test]
fn commands_and_wrong_flags_of_k6_are_answered() {
    for (word, answer) in [
        ("cloud", "Grafana Cloud"),
        ("archive", "no archives"),
        ("pause", "cannot be controlled from outside"),
        ("status", "cannot be controlled from outside"),
    ] {
        let ended = start(&[word, "x.js"]).wait();
        assert!(ended.code == Some(2) && ended.stderr.contains(answer), "{word}: {ended:#?}");
    }
    assert!(start(&["version"]).wait().stdout.starts_with("squall "));
    assert_eq!(start(&["run", "--nope", "x.js"]).wait().code, Some(255));
    assert_eq!(start(&["run", "--nope", "x.yaml"]).wait().code, Some(2));
}

#[test]
fn the_summary_may_be_sent_to_a_server() {
    let target = Target::start(&Options::default()).unwrap();
    let folder = TempDir::new().unwrap();
    let script = written(
        &folder,
        "export default function () {}
         export async function handleSummary(data) {
           const sent = http.post(`${__ENV.BASE}/post`, JSON.stringify({ done: data.metrics.iterations.values.count }));
           const got = await http.asyncRequest('GET', `${__ENV.BASE}/get`);
           return { stdout: `${sent.status} ${sent.json('json.done')} ${got.status}` };
         }",
    );
    let base = format!("BASE=http://{}", target.address());
    let ended = start(&["run", "-i", "2", "--summary", "k6", "--no-save", "-e", &base, &script]).wait();
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "200 2 200"), "{ended:#?}");
}

#[test]
fn what_the_script_says_may_go_to_a_file_of_its_own() {
    let folder = TempDir::new().unwrap();
    let script =
        written(&folder, "export default function () { console.log('hello'); throw new Error('broken'); }");
    let file = folder.path().join("said.txt");
    let ended =
        start(&["run", "-i", "1", "--no-save", "--console-output", file.to_str().unwrap(), &script]).wait();
    let said = fs::read_to_string(file).unwrap();
    assert!(said.ends_with("level=info msg=hello\n") && said.lines().count() == 1, "{said}");
    assert!(ended.stderr.contains("broken") && !ended.stderr.contains("hello"), "{ended:#?}");
}

/// A script with this text after its import, and its path.
fn written(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("script.js");
    fs::write(&path, format!("import http from 'k6/http';\n{text}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The suite's servers of protocols on WebSockets; they end when their input does.
struct Sockets {
    server: Child,
    url: String,
}

impl Sockets {
    fn start(suite: &Path) -> Self {
        let mut command = Command::new("node");
        command.arg(suite.join("servers/sockets.cjs")).env("NODE_PATH", "/usr/share/nodejs");
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { server, url: url.trim().to_owned() }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

/// What `suites/k6/diff` compares: the exit code, then counts and checks where the run came so far.
fn run(script: &Path, [base, sockets]: &[String; 2]) -> Value {
    let folder = TempDir::new().unwrap();
    let export = folder.path().join("summary.json");
    let (script, path) = (script.to_str().unwrap(), export.to_str().unwrap());
    let ended =
        start(&["run", "-qq", "--no-save", "--summary-export", path, "-e", base, "-e", sockets, script])
            .wait();
    let code = ended.code.unwrap();
    let Ok(text) = fs::read_to_string(&export) else { return json!(code) };
    let summary: Value = serde_json::from_str(&text).unwrap();
    let figure = |metric: &str, field: &str| summary["metrics"][metric][field].clone();
    let mut checks = BTreeSet::new();
    collect_checks(&summary["root_group"], &mut checks);
    let mut figures = vec![
        json!(code.to_string()),
        figure("iterations", "count"),
        figure("http_reqs", "count"),
        figure("http_req_failed", "passes"),
        figure("dropped_iterations", "count"),
        json!(checks),
    ];
    if !figure("ws_sessions", "count").is_null() {
        figures.push(json!(
            ["ws_sessions", "ws_msgs_sent", "ws_msgs_received"].map(|metric| figure(metric, "count"))
        ));
    }
    json!(figures)
}

fn collect_checks(value: &Value, checks: &mut BTreeSet<String>) {
    if let (Some(passes), Some(path)) = (value.get("passes"), value.get("path").and_then(Value::as_str)) {
        checks.insert(format!("{path}={passes}/{}", value["fails"]));
    }
    let parts = value.as_object().into_iter().flat_map(|object| object.values());
    let elements = value.as_array().into_iter().flatten();
    parts.chain(elements).for_each(|part| collect_checks(part, checks));
}

/// An IPv4 address is the same host in its IPv6 form, in the list as in the URL.
#[test]
fn forbidden_addresses_are_not_reached_in_another_form() {
    let target = Target::start(&Options::default()).unwrap();
    let port = target.address().port();
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.js");
    for (list, host, code) in [
        ("127.0.0.0/8", "127.0.0.1", 1110),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]", 1110),
        ("127.0.0.0/8", "[::ffff:7f00:1]", 1110),
        ("::ffff:127.0.0.0/104", "127.0.0.1", 1110),
        ("::ffff:127.0.0.0/104", "[::ffff:127.0.0.1]", 1110),
        ("10.0.0.0/8", "127.0.0.1", 0),
    ] {
        let text = format!(
            "import http from 'k6/http'; export const options = {{ blacklistIPs: ['{list}'] }};
            export default function () {{ console.log('code', http.get('http://{host}:{port}/get').error_code); }}"
        );
        fs::write(&script, text).unwrap();
        let ended = start(&["run", script.to_str().unwrap(), "--no-save"]).wait();
        assert!(ended.stderr.contains(&format!("code {code}\"")), "{list} {host}: {ended:#?}");
    }
    assert_eq!(target.stop().requests, 1);
}

/// Anyone on the path could insert a script.
#[test]
fn an_https_import_follows_no_redirect_to_http() {
    let plain = Target::start(&Options::default()).unwrap();
    let tls = squall_server::Tls::SelfMade { names: vec!["localhost".to_owned()] };
    let secure = Target::start(&Options { tls: Some(tls), ..Options::default() }).unwrap();
    let folder = TempDir::new().unwrap();
    let [script, roots] = ["script.js", "roots.pem"].map(|name| folder.path().join(name));
    fs::write(&roots, secure.certificate_pem().unwrap()).unwrap();
    // `export const a = 41 + 1;`
    let module = "/base64/ZXhwb3J0IGNvbnN0IGEgPSA0MSArIDE7";
    let place = |scheme: &str, port: u16| format!("{scheme}://localhost:{port}{module}");
    let (http, https) = (place("http", plain.address().port()), place("https", secure.address().port()));
    let run = |to: &str| {
        let from = format!("https://localhost:{}/redirect-to?url={to}", secure.address().port());
        let text =
            format!("import {{ a }} from '{from}'; export default function () {{ console.log('a is', a); }}");
        fs::write(&script, text).unwrap();
        let mut command = Command::new(squall::binary());
        command.args(["run", script.to_str().unwrap(), "--no-save"]);
        command.env("SSL_CERT_FILE", &roots).env("XDG_CACHE_HOME", folder.path());
        squall::start_command(command).wait()
    };
    let followed = run(&https);
    assert!(followed.stderr.contains("a is 42"), "{followed:#?}");
    let refused = run(&http);
    assert!(refused.stderr.contains("configured for https only"), "{refused:#?}");
    assert_eq!(plain.stop().requests, 0);
}
