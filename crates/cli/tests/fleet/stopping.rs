//! What Ctrl-C does to a plan: in each of its phases, once, twice, and a third time.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use squall_testkit::Process;

use crate::squall::{Place, ok, record, squall, wait_until};

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
