//! Short runs against the embedded server: what goes to which stream and file, and the exit code.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use squall_server::{Options, Target};

use crate::{command, folder, squall};

/// A server, and a place of runs that no other test uses.
struct Bench {
    target: Target,
    runs: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Self {
        let runs = folder().join(format!("runs-{name}"));
        let _ = fs::remove_dir_all(&runs);
        Self { target: Target::start(&Options::default()).unwrap(), runs }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.target.address())
    }

    fn squall(&self, path: &str, flags: &[&str]) -> (String, String, i32) {
        squall(&[&[&self.url(path), "--results", self.runs.to_str().unwrap()], flags].concat())
    }

    fn saved(&self) -> Vec<PathBuf> {
        let entries =
            fs::read_dir(&self.runs).map(|entries| entries.map(|entry| entry.unwrap().path()).collect());
        entries.unwrap_or_default()
    }
}

#[test]
fn a_run_is_summed_up_on_stdout_saved_and_drawn_again() {
    let bench = Bench::new("again");
    let (stdout, stderr, code) = bench.squall("/", &["-n", "200", "-c", "4"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("200 ok"), "{stdout}");
    assert!(stderr.contains("4 connections for 200 requests"), "{stderr}");
    let saved = bench.saved();
    assert_eq!(saved.len(), 1);
    let (again, _, code) = squall(&["report", saved[0].to_str().unwrap()]);
    assert_eq!((again, code), (stdout, 0));
    assert_eq!(bench.target.stats().requests, 200);
}

#[test]
fn a_run_that_an_earlier_version_saved_is_repeated() {
    let bench = Bench::new("earlier");
    let saved = folder().join("saved-0.1.0");
    fs::create_dir_all(&saved).unwrap();
    let record = include_str!("saved-0.1.0.json");
    let address = bench.target.address().to_string();
    fs::write(saved.join("run.json"), record.replace("127.0.0.1:18422", &address)).unwrap();
    let (_, stderr, code) = squall(&["report", saved.to_str().unwrap()]);
    assert_eq!((stderr.as_str(), code), ("", 0));
    let (stdout, stderr, code) =
        squall(&["run", "--again", saved.to_str().unwrap(), "--no-save", "--json", "-"]);
    assert_eq!(code, 0, "{stderr}");
    let summary: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["totals"]["ok"], &summary["totals"]["connections_opened"]), (&20.into(), &2.into()));
    assert_eq!(bench.target.stats().requests, 20);
}

#[test]
fn a_replay_of_a_temporary_recording_is_not_repeated() {
    let bench = Bench::new("temporary");
    let entry = serde_json::json!({
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 1,
        "request": {"method": "GET", "url": bench.url("/"), "httpVersion": "HTTP/1.1", "headers": []},
        "response": {"status": 200, "headers": [], "content": {}},
    });
    let har = folder().join("temporary.har");
    fs::write(&har, serde_json::json!({"log": {"version": "1.2", "entries": [entry]}}).to_string()).unwrap();
    let results = bench.runs.to_str().unwrap();
    let (_, stderr, code) = squall(&["replay", har.to_str().unwrap(), "--results", results]);
    assert_eq!(code, 0, "{stderr}");
    let saved = bench.saved().remove(0);
    let (_, stderr, code) = squall(&["run", "--again", saved.to_str().unwrap()]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("its recording was a temporary file"), "{stderr}");
    assert!(stderr.contains("help: run its plan file or its command line again"), "{stderr}");
}

#[test]
fn k6_options_of_the_environment_are_found_by_the_loads_of_a_plan() {
    let bench = Bench::new("config");
    let write = |name: &str, text: &str| fs::write(folder().join(name), text).unwrap();
    let call = format!("http.get('{}')", bench.url("/"));
    write("config.js", &format!("import http from 'k6/http';\nexport default () => {{ {call}; }};\n"));
    write("config.yaml", "loads:\n  - script: config.js\n");
    write("config.json", "{\"iterations\": 3}");
    let mut command = command(&["run", "config.yaml", "--no-save"]);
    let output = command.env("K6_CONFIG", "config.json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(bench.target.stats().requests, 3);
}

#[test]
fn json_is_alone_on_stdout() {
    let bench = Bench::new("json");
    let (stdout, _, code) = bench.squall("/", &["-n", "50", "--no-keepalive", "--json", "-"]);
    let summary: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["totals"]["ok"], code), (&50.into(), 0));
    assert_eq!(summary["totals"]["connections_opened"], 50);
}

#[test]
fn outputs_are_written_next_to_the_summary() {
    let bench = Bench::new("outputs");
    let (json, csv) = (folder().join("run.out.json"), folder().join("run.out.csv"));
    let flags = [format!("json={}", json.display()), format!("csv={}", csv.display())];
    let (stdout, _, code) = bench.squall("/", &["-n", "10", "--out", &flags[0], "--out", &flags[1]]);
    assert_eq!(code, 0);
    assert!(stdout.contains("10 ok"), "{stdout}");
    assert!(fs::read_to_string(json).unwrap().starts_with('{'));
    assert!(fs::read_to_string(csv).unwrap().lines().count() > 1);
}

#[test]
fn quiet_is_one_line_and_twice_quiet_none() {
    let bench = Bench::new("quiet");
    let (stdout, stderr, _) = bench.squall("/", &["-n", "10", "-q"]);
    assert_eq!((stdout.lines().count(), stderr.as_str()), (1, ""));
    let (stdout, stderr, code) = bench.squall("/", &["-n", "10", "-qq"]);
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", "", 0));
}

#[test]
fn nothing_is_kept_when_that_is_asked_for() {
    let bench = Bench::new("nothing");
    let (stdout, stderr, code) = squall(&[&bench.url("/"), "-n", "10", "--no-save"]);
    assert_eq!(code, 0);
    assert!(!stdout.contains("report.html") && !stderr.contains("saved"), "{stdout}{stderr}");
}

#[test]
fn a_long_setup_and_the_step_of_a_plan_are_reported_while_they_last() {
    let bench = Bench::new("phases");
    let (script, plan) = (folder().join("long_setup.js"), folder().join("steps.yaml"));
    fs::write(
        &script,
        "import { sleep } from 'k6';\nexport const setup = () => sleep(3);\nexport default () => {};\n",
    )
    .unwrap();
    let (_, stderr, code) = squall(&["run", script.to_str().unwrap(), "--no-save"]);
    assert!(code == 0 && stderr.contains("setup() is running …"), "{stderr}");
    let load = format!("{{ loads: [{{ http: '{}', requests: 10, connections: 1 }}] }}", bench.url("/"));
    fs::write(&plan, format!("steps: [{load}, {load}]\n")).unwrap();
    let (_, stderr, _) = squall(&["run", plan.to_str().unwrap(), "--no-save"]);
    assert!(stderr.contains("step `step 2` (2 of 2)") && !stderr.contains(" …"), "{stderr}");
}

#[test]
fn a_target_is_given_up_a_second_after_the_first_attempt_not_after_the_start() {
    let script = folder().join("late_first_request.js");
    let text = "import http from 'k6/http'; import { sleep } from 'k6';\nexport const setup = () => sleep(1.5);\n\
                export const options = { duration: '10s' };\n\
                export default () => { http.get('http://127.0.0.1:1/'); sleep(0.2); };\n";
    fs::write(&script, text).unwrap();
    let (stdout, stderr, _) = squall(&["run", script.to_str().unwrap(), "--no-save", "--json", "-"]);
    let summary: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(summary["totals"]["failed"].as_u64() > Some(1), "{stderr}");
    let (stdout, _, _) = squall(&["run", script.to_str().unwrap(), "--no-save", "--out", "json=-"]);
    let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    assert!(stdout.lines().count() > 5 && stdout.lines().all(is_json), "samples stand alone: {stdout}");
}

#[test]
fn an_impossible_run_leaves_no_folder() {
    let bench = Bench::new("impossible");
    let (_, stderr, code) = bench.squall("/", &["--json", "missing/file"]);
    assert_eq!((bench.saved().len(), code), (0, 2), "{stderr}");
    let https = bench.url("/").replace("http", "https");
    let (_, stderr, code) = squall(&[&https, "--ciphers", "NONE", "--results", bench.runs.to_str().unwrap()]);
    assert_eq!((bench.saved().len(), code), (0, 2), "{stderr}");
}

#[test]
fn exit_codes_say_how_it_went() {
    let bench = Bench::new("codes");
    for (path, flags, expected) in [
        ("/status/500", &["-n", "10"][..], 0),
        ("/", &["-n", "10", "--threshold", "errors<1%"], 0),
        ("/status/500", &["-n", "10", "--threshold", "errors<1%"], 3),
        ("/", &["-n", "10", "--threshold", "requests>10k"], 3),
    ] {
        let (stdout, stderr, code) = bench.squall(path, flags);
        assert_eq!(code, expected, "{path} {flags:?}\n{stdout}{stderr}");
    }
}

#[test]
fn an_unreachable_target_has_a_code_of_its_own() {
    let bench = Bench::new("unreachable");
    let url = bench.url("/");
    let (_, stderr, code) = squall(&[&url.replace("http:", "https:"), "-d", "30s", "--no-save", "-q"]);
    assert!(code == 4 && stderr.contains("help: if that port does not use TLS"), "{stderr}");
    bench.target.stop();
    let (stdout, _, code) = squall(&[&url, "-d", "30s", "--no-save"]);
    assert_eq!(code, 4, "{stdout}");
    let plan = folder().join("unreachable.yaml");
    fs::write(&plan, format!("loads: [{{ http: '{url}', duration: 30s }}]\n")).unwrap();
    let (_, stderr, code) = squall(&["run", plan.to_str().unwrap(), "--no-save", "-qq"]);
    assert!(code == 4 && stderr.starts_with("error: cannot connect to `http://"), "{stderr}");
    let (_, stderr, code) = squall(&["http://name.invalid/", "--no-save", "-q"]);
    assert_eq!(code, 4);
    assert!(stderr.starts_with("error: cannot resolve `name.invalid`"), "{stderr}");
}

#[test]
fn the_first_signal_drains_and_the_second_ends() {
    let bench = Bench::new("signals");
    for (path, signals, expected, interrupted) in [
        ("/delay/300", &["INT"][..], 0, 0),
        ("/delay/300", &["TERM"], 0, 0),
        ("/hang", &["INT", "TERM"], 130, 2),
    ] {
        let url = bench.url(path);
        let before = bench.target.stats().requests;
        let mut run = command(&[&url, "-c", "2", "-d", "60s", "--no-save", "--json", "-"]);
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until(|| bench.target.stats().requests >= before + 2);
        signals.iter().for_each(|signal| kill(signal, &run));
        let output = run.wait_with_output().unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let totals = &summary["totals"];
        assert_eq!(output.status.code(), Some(expected), "{path} {signals:?} {totals}");
        assert_eq!(
            (&totals["failed"], &totals["interrupted"]),
            (&0.into(), &interrupted.into()),
            "{path} {totals}"
        );
    }
}

fn kill(signal: &str, child: &Child) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}
