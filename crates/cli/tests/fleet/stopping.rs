//! What Ctrl-C does to a plan: in each of its phases, once, twice, and a third time.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use squall_testkit::Process;

use crate::squall::{Place, ok, record, squall, text, wait_until};

/// Far less than what is waited for here takes without the signal.
const PROMPT: Duration = Duration::from_secs(20);

/// A run of a plan that is under way.
struct Run<'a> {
    place: &'a Place,
    process: Process,
}

impl<'a> Run<'a> {
    fn start(place: &'a Place, plan: &str) -> Self {
        let plan = place.write("plan.yaml", plan);
        let mut command = squall();
        command.arg("run").arg(plan).arg("--results").arg(place.folder.path().join("runs"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(place.folder.path().join("stderr")).unwrap());
        Self { place, process: Process::start(&mut command) }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.place.folder.path().join("stderr")).unwrap()
    }

    fn interrupt(&self) {
        self.process.signal(Signal::INT);
    }

    /// Waits for an end that comes promptly; gives the exit code and the record.
    fn end(mut self) -> (Option<i32>, Value) {
        let begin = Instant::now();
        let status = self.process.wait(PROMPT);
        assert!(status.is_some(), "still there after {:?}: {}", begin.elapsed(), self.said());
        (status.and_then(|status| status.code()), record(&self.place.folder.path().join("runs")))
    }
}

#[test]
fn loads_that_wait_for_their_start_end_with_the_run_and_send_nothing() {
    let place = Place::new();
    place.write_as_is(
        "late.js",
        "import http from 'k6/http'; export default function () { http.get(`${__ENV.TARGET}/anything/late`); }",
    );
    let touched = place.folder.path().join("touched");
    let plan = format!(
        "target: TARGET
machines: {{ a: local, b: local }}
loads:
  - {{ http: /delay/10, connections: 2, duration: 1m, name: early }}
  - {{ http: /anything/late, connections: 2, duration: 1m, start_after: 1m, name: late }}
  - {{ idle: '{}', connections: 2, duration: 1m, start_after: 1m, name: idle }}
  - {{ script: late.js, vus: 2, duration: 1m, start_after: 1m, name: script }}
  - {{ tool: wrk, command: 'touch {}', start_after: 1m, name: tool, on: a }}
",
        place.target.address(),
        touched.display(),
    );
    let run = Run::start(&place, &plan);
    wait_until(|| place.target.stats().requests > 10);
    run.interrupt();
    let (code, record) = run.end();
    assert!(matches!(code, Some(0 | 5)), "{code:?}");
    assert_eq!(record["stopped_by"], "drained");
    assert!(
        record["duration"]["secs"].as_u64().unwrap() < 30,
        "waiting is not measured: {}",
        record["duration"]
    );
    assert!(!touched.exists(), "the tool was started all the same");
    assert_eq!(ok(&record["total"]), place.logged());
}

#[test]
fn a_machine_that_never_answers_is_given_up_by_ctrl_c() {
    let place = Place::new();
    // What is started beside it holds its pipes.
    let plan = "
target: TARGET
machines: { a: local, g1: { command: [sh, -c, 'touch FOLDER/started; sleep 300 & sleep 300'] } }
loads: [{ http: /, requests: 5 }]
"
    .replace("FOLDER", &place.folder.path().display().to_string());
    let run = Run::start(&place, &plan);
    wait_until(|| place.folder.path().join("started").exists());
    run.interrupt();
    wait_until(|| run.said().contains("ended before anything was sent"));
    let (code, record) = run.end();
    assert_eq!((code, record.is_null(), place.logged()), (Some(130), true, 0));
}

#[test]
fn a_machine_that_never_answers_is_told_by_name() {
    let place = Place::new();
    let plan =
        "target: TARGET\nmachines: { g1: { command: [sleep, '300'] } }\nloads: [{ http: /, requests: 5 }]\n";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("machine `g1`: the agent does not answer: it said nothing for "), "{said}");
    assert!(said.contains("the command must start `squall agent`"), "{said}");
    assert_eq!((output.status.code(), record.is_null()), (Some(2), true));
}

#[test]
fn a_plan_that_is_stopped_while_it_is_prepared_sends_nothing() {
    let place = Place::new();
    // The agent of `b` is greeted, and hears no more: of what follows only the first bytes arrive.
    let plan = "
target: TARGET
machines: { a: local, b: { command: [sh, -c, '(dd bs=1 count=500 2>/dev/null; touch FOLDER/held; cat >/dev/null) | AGENT agent'] } }
loads: [{ http: /, connections: 2, duration: 1m }]
"
    .replace("AGENT", env!("CARGO_BIN_EXE_squall"))
    .replace("FOLDER", &place.folder.path().display().to_string());
    let run = Run::start(&place, &plan);
    wait_until(|| place.folder.path().join("held").exists());
    run.interrupt();
    let (code, record) = run.end();
    assert_eq!((code, record.is_null(), place.logged()), (Some(130), true, 0));
}
