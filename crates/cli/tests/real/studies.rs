//! Signals to a study: its run under way ends in order and is saved, no further one is made, and what was measured is reported.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use squall_server::{Options, Target};
use squall_testkit::real::{NginxOptions, Server};
use squall_testkit::wait_until;
use tempfile::TempDir;

use crate::squall::{Ended, Running, binary, start_command};

/// A study and the folder that it is kept in.
struct Study {
    running: Running,
    results: TempDir,
}

impl Study {
    /// Starts it as a shell does, as the first process of a group.
    fn start(args: &[&str]) -> Self {
        let results = TempDir::new().expect("a temporary folder");
        let mut command = Command::new(binary());
        let (name, rest) = args.split_first().expect("a command");
        command.arg(name).arg("--results").arg(results.path()).args(rest).process_group(0);
        Self { running: start_command(command), results }
    }

    fn await_words(&self, words: &str) {
        let is_there = wait_until(PATIENCE, || self.running.said().contains(words));
        assert!(is_there, "no `{words}`: {}", self.running.said());
    }

    fn end(self) -> (Ended, TempDir) {
        (self.running.wait(), self.results)
    }
}

/// Why each run below a folder stopped, in the order in which they were made.
fn reasons(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    records_below(folder, &mut files);
    files.sort();
    let reason = |path: PathBuf| {
        let record: Value =
            serde_json::from_str(&fs::read_to_string(path).expect("a saved run")).expect("JSON");
        record["stopped_by"].as_str().unwrap_or_default().to_owned()
    };
    files.into_iter().map(reason).collect()
}

fn records_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of results").flatten() {
        match entry.path() {
            path if path.is_dir() => records_below(&path, files),
            path if path.ends_with("run.json") => files.push(path),
            _ => {}
        }
    }
}

/// The run under way is drained by whichever signal the study gets, and by one that the whole group gets.
#[test]
fn the_run_under_way_is_drained_and_saved() {
    let server = Server::nginx(NginxOptions::default());
    let url = server.url("/");
    let flags = format!("{url} -c 2 -d 60s");
    let cases: [(&[&str], Signal, bool); 4] = [
        (&["sweep", "--connections", "2,4", &url, "-d", "60s"], Signal::TERM, false),
        (&["compare", "--run", &flags, &flags], Signal::HUP, false),
        (&["capacity", "--start", "100", "--probe", "60s", "--slo", "p99<1s", &url], Signal::INT, false),
        (&["sweep", "--rates", "100,200", &url, "-d", "60s"], Signal::INT, true),
    ];
    for (args, signal, to_group) in cases {
        let logged = server.logged_count();
        let study = Study::start(args);
        let has_begun = wait_until(PATIENCE, || server.logged_count() > logged + 20);
        assert!(has_begun, "{args:?}: no load came: {}", study.running.said());
        if to_group {
            let group = Pid::from_raw(study.running.process.pid() as i32).unwrap();
            kill_process_group(group, signal).unwrap();
        } else {
            study.running.process.signal(signal);
        }
        let (ended, results) = study.end();
        assert_eq!(ended.code, Some(130), "{args:?}: {ended:#?}");
        assert_eq!(reasons(results.path()), ["drained"], "{args:?}: {ended:#?}");
        assert!(ended.stderr.contains("error: stopped"), "{args:?}: {ended:#?}");
    }
}

#[test]
fn what_was_measured_before_the_signal_is_reported() {
    let server = Server::nginx(NginxOptions::default());
    let url = server.url("/");
    let quick = format!("{url} -c 2 -n 50");
    let lines = ["--line", "quick: -n 50", "--line", "long: -d 60s"];
    let cases: [(&[&str], &str, &str); 3] = [
        (&[&["sweep", "--connections", "2,4"], &lines[..], &[&url]].concat(), "run 2 of 4", "quick"),
        (&["compare", "--repeat", "1000", "--run", &quick, &quick], "round 3 of 1000: b", "a"),
        (
            &["capacity", "--start", "50", "--probe", "1s", "--slo", "p50<8s", &url],
            "probe 2:",
            "stopped early: met at",
        ),
    ];
    for (args, words, shown) in cases {
        let study = Study::start(args);
        study.await_words(words);
        study.running.process.signal(Signal::TERM);
        let (ended, _results) = study.end();
        assert_eq!(ended.code, Some(130), "{args:?}: {ended:#?}");
        assert!(ended.stdout.contains(shown), "{args:?}: {ended:#?}");
    }
}

#[test]
fn a_second_signal_ends_the_run_under_way_at_once() {
    let target = Target::start(&Options::default()).unwrap();
    let url = format!("http://{}/hang", target.address());
    let study = Study::start(&["sweep", "--connections", "2,4", &url, "-d", "60s"]);
    assert!(wait_until(PATIENCE, || target.stats().requests == 2), "no load came");
    study.running.process.signal(Signal::TERM);
    study.await_words("again to stop it at once");
    study.running.process.signal(Signal::TERM);
    let (ended, results) = study.end();
    assert_eq!(ended.code, Some(130), "{ended:#?}");
    assert_eq!(reasons(results.path()), ["aborted"], "{ended:#?}");
}

/// Nobody is left to stop a run whose study was killed.
#[test]
fn a_run_whose_study_was_killed_ends_in_order() {
    let server = Server::nginx(NginxOptions::default());
    let study = Study::start(&["sweep", "--connections", "2,4", &server.url("/"), "-d", "600s"]);
    let has_begun = wait_until(PATIENCE, || server.logged_count() > 20);
    assert!(has_begun, "no load came: {}", study.running.said());
    study.running.process.signal(Signal::KILL);
    let (ended, results) = study.end();
    assert_eq!(ended.code, None);
    let has_ended = wait_until(PATIENCE, || reasons(results.path()) == ["drained"]);
    assert!(has_ended, "{:?}", reasons(results.path()));
}

/// Nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(60);
