//! Saved runs as a study reads them: merged, held against each other, refused; and objectives that are never met.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use squall_server::{Options, Target};

use crate::squall;

/// A target and a folder of runs of it.
struct Place {
    target: Target,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let target = Target::start(&Options::default()).unwrap();
        Self { target, folder: tempfile::tempdir().unwrap() }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.target.address())
    }

    /// Makes a run of this name; its folder.
    fn run(&self, name: &str, path: &str, flags: &[&str]) -> String {
        let (results, url) = (self.folder.path().to_str().unwrap(), self.url(path));
        let always = ["--name", name, "--results", results, "--threads", "1", "-qq", url.as_str()];
        // On a busy machine the run may be INVALID, and end with that code; it is there all the same.
        squall(&[&always[..], flags].concat());
        let is_it = |entry: &PathBuf| entry.to_str().unwrap().ends_with(&format!("-{name}"));
        let runs = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        runs.filter(is_it).max().unwrap().to_str().unwrap().to_owned()
    }
}

#[track_caller]
fn refused(args: &[&str], message: &str, help: &str) {
    let (stdout, stderr, code) = squall(args);
    assert_eq!((stdout.as_str(), code), ("", 2), "{args:?}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(message), "{args:?}: {stderr}");
    assert!(stderr.contains(&format!("help: {help}")), "{args:?}: {stderr}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

#[test]
fn several_runs_are_one_report() {
    let place = Place::new();
    let runs = [
        place.run("one", "/status/200", &["-n", "30", "-c", "2"]),
        place.run("two", "/anything", &["-n", "20", "-c", "2"]),
        place.run("three", "/status/200", &["-n", "10", "-c", "2"]),
    ];
    let (stdout, stderr, code) = squall(&["report", &runs[0], &runs[1], &runs[2], "--json", "-"]);
    assert_eq!(code, 0, "{stderr}");
    let merged = json(&stdout);
    assert_eq!(
        (&merged["totals"]["ok"], &merged["latency_us"]["count"]),
        (&Value::from(60), &Value::from(60))
    );
    let rows: Vec<&Value> = merged["rows"].as_array().unwrap().iter().map(|row| &row["ok"]).collect();
    assert_eq!(rows, [40, 20], "rows of the same request are one");
    let parts: Vec<(&Value, &Value)> =
        merged["parts"].as_array().unwrap().iter().map(|part| (&part["kind"], &part["ok"])).collect();
    let run = Value::from("run");
    assert_eq!(parts, [(&run, &Value::from(30)), (&run, &Value::from(20)), (&run, &Value::from(10))]);
    let (text, _, _) = squall(&["report", &runs[0], &runs[1]]);
    assert!(text.contains("RUNS") && text.contains("30 ok"), "{text}");
    let page = place.folder.path().join("merged.html");
    let (_, _, code) =
        squall(&["report", &runs[0], &runs[1], "-qq", "--out", &format!("html={}", page.display())]);
    assert_eq!((code, page.is_file()), (0, true));
}

#[test]
fn runs_that_cannot_be_one_are_refused_with_the_reason() {
    let place = Place::new();
    let closed = place.run("closed", "/status/200", &["-n", "5", "-c", "1"]);
    let open = place.run("open", "/status/200", &["-n", "5", "-r", "100/s"]);
    let help = "remove one of them";
    refused(&["report", &closed, &closed], "these runs cannot be merged", help);
    refused(&["report", &closed, &closed], "are the same run", help);
    refused(&["report", &closed, &open], "measures latency from the scheduled start", help);
    let foreign = Path::new(&closed).join("nothing");
    refused(&["report", &closed, foreign.to_str().unwrap()], "cannot read", "give the folder of a saved run");
}

#[test]
fn runs_of_different_loads_are_not_compared_unless_that_is_meant() {
    let place = Place::new();
    let one = place.run("one", "/status/200", &["-n", "5", "-c", "1"]);
    let two = place.run("two", "/status/200", &["-n", "5", "-c", "2"]);
    refused(
        &["compare", &one, "--", &two],
        "cannot be compared: they ran different loads: their plans differ in `loads[0].when",
        "compare runs of the same load, or add `--force`",
    );
    let (stdout, stderr, code) = squall(&["compare", "--force", &one, "--", &two]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("not enough runs"), "{stdout}");
}

#[test]
fn what_cannot_be_compared_is_refused_before_the_first_run() {
    let place = Place::new();
    let plan = |name: &str, load: &str| {
        let path = place.folder.path().join(name);
        fs::write(&path, format!("loads:\n  - {load}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let results = place.folder.path().join("studies");
    let requests = place.url("/ -c 5 -d 10s");
    let handshakes = plan("h.yaml", "{ handshake: 'localhost:1', connections: 5, duration: 10s }");
    let kept = plan("i.yaml", "{ idle: 'localhost:1', connections: 5, duration: 10s }");
    let tool = plan("t.yaml", "{ tool: wrk, url: 'http://localhost:1/', duration: 10s }");
    for (other, message) in [
        (&handshakes, "cannot be compared: they ran different loads: requests, handshakes"),
        (&kept, "cannot be compared: they ran different loads: requests, connections that are kept"),
        (&tool, "the load `b` is generated only by external tools"),
    ] {
        let args = ["compare", "--run", &requests, other, "--results", results.to_str().unwrap()];
        refused(&args, message, "compare ");
        assert!(!results.exists());
    }
}

#[test]
fn a_script_that_cannot_be_run_is_refused_before_the_first_run() {
    let place = Place::new();
    let write = |name: &str, options: &str| {
        let path = place.folder.path().join(name);
        let text = format!("export const options = {options};\nexport default function () {{}}\n");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.js", "{ iterations: 1 }");
    let large = write("large.js", "{ vus: 20000000, duration: '1s' }");
    let untagged = format!("{good} --tag untagged");
    let results = place.folder.path().join("studies");
    for (wrong, message, help) in [
        (&large, "20000000 connections", "correct the script's options"),
        (&untagged, "invalid value `untagged` for `--tag <NAME=VALUE>`: no `=`", "write NAME=VALUE"),
    ] {
        refused(&["compare", "--run", &good, wrong, "--results", results.to_str().unwrap()], message, help);
        assert!(!results.exists());
    }
}

#[test]
fn objectives_that_no_rate_meets_and_that_every_rate_meets_are_reported() {
    let place = Place::new();
    let results = place.folder.path().to_str().unwrap();
    let url = place.url("/status/503");
    let probes = [
        "--probe",
        "1s",
        "--pause",
        "0s",
        "--start",
        "20/s",
        "--max",
        "40/s",
        "--results",
        results,
        "--out",
        "json=-",
    ];
    let answer = |slo: &str, url: &str| {
        let (stdout, stderr, _) =
            squall(&[&["capacity", "--slo", slo][..], &probes, &[url, "--threads", "1"]].concat());
        let answer = json(&stdout)["answer"].as_str().unwrap().to_owned();
        // A machine that is too busy to make 20 requests a second says so, which is an answer as well.
        if answer.contains("the generator cannot sustain") {
            String::new()
        } else {
            format!("{answer}{stderr}")
        }
    };
    let never_met = answer("errors<1%", &url);
    assert!(never_met.is_empty() || never_met.contains("not even"), "{never_met}");
    let never_missed = answer("p(50)<10000", &url.replace("503", "200"));
    assert!(never_missed.is_empty() || never_missed.contains("met at every rate"), "{never_missed}");
}
