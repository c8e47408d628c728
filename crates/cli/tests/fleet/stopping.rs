//! What Ctrl-C does to a plan: in each of its phases, once, twice, and a third time.

use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use squall_testkit::{Process, free_port};

use crate::kubernetes::lab;
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
        place.write("plan.yaml", plan);
        Self::with(place, &["run", "plan.yaml"], Stdio::null())
    }

    fn with(place: &'a Place, args: &[&str], stdout: Stdio) -> Self {
        let mut command = squall();
        command.args(args).arg("--results").arg(place.folder.path().join("runs"));
        command
            .current_dir(place.folder.path())
            .env("TARGET", place.url())
            .stdin(Stdio::null())
            .stdout(stdout);
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
    // What is started next to it holds its pipes.
    let plan = "
target: TARGET
machines: { a: local, g1: { command: [sh, -c, 'touch FOLDER/started; sleep 300 & sleep 300'] } }
loads: [{ http: /, requests: 5 }]
"
    .replace("FOLDER", &place.folder.path().display().to_string());
    let run = Run::start(&place, &plan);
    wait_until(|| place.folder.path().join("started").exists());
    run.interrupt();
    wait_until(|| run.said().contains("stopped before anything was sent"));
    let (code, record) = run.end();
    assert_eq!((code, record.is_null(), place.logged()), (Some(130), true, 0));
}

#[test]
fn a_machine_that_never_answers_is_reported_by_name() {
    let place = Place::new();
    let plan =
        "target: TARGET\nmachines: { g1: { command: [sleep, '300'] } }\nloads: [{ http: /, requests: 5 }]\n";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(
        said.contains("machine `g1`: the agent does not answer: nothing was received from it for "),
        "{said}"
    );
    assert!(said.contains("nothing else may write to its standard output"), "{said}");
    assert_eq!((output.status.code(), record.is_null()), (Some(2), true));
}

#[test]
fn a_machine_whose_login_says_nothing_is_given_up() {
    let place = Place::new();
    let ssh = place.write_as_is("bin/ssh", "#!/bin/sh\nsleep 300\n");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", ssh.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let plan = "target: TARGET\nmachines: { g1: load@shop }\nloads: [{ http: /, requests: 5 }]\n";
    let plan = place.write("plan.yaml", plan);
    let output = squall().arg("run").arg(plan).arg("--no-save").env("PATH", path).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("machine `g1`: its login printed nothing for 30 s"), "{said}");
    assert_eq!((output.status.code(), place.logged()), (Some(2), 0));
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

/// A pipe that takes nothing more: who writes to it hangs. Its reader must be kept.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    let mut filler = writer.try_clone().unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    // It hangs until the test ends.
    thread::spawn(move || {
        while filler.write_all(&[b' '; 512]).is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    loop {
        let before = count.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(500));
        if before > 0 && before == count.load(Ordering::Relaxed) {
            return (reader, writer);
        }
    }
}

#[test]
fn the_second_ctrl_c_leaves_a_report_while_the_cluster_does_not_answer() {
    let (place, plan) = lab(true, "ready");
    fs::write(place.folder.path().join("hangs"), "").unwrap();
    let (machines, _) = plan.split_once("loads:").unwrap();
    let run = Run::start(&place, &format!("{machines}loads: [{{ http: /, rate: 60/s, duration: 10m }}]\n"));
    wait_until(|| place.target.stats().requests > 10);
    run.interrupt();
    wait_until(|| run.said().contains("press Ctrl-C again"));
    run.interrupt();
    wait_until(|| run.said().contains("is not deleted yet"));
    assert!(run.said().contains("deleting the Job"), "{}", run.said());
    let (code, record) = run.end();
    assert_eq!(code, Some(130));
    assert!(ok(&record["total"]) > 10);
}

#[test]
fn a_third_ctrl_c_ends_the_program_whatever_hangs() {
    for args in [&["http", "TARGET", "-n", "5", "-c", "1"][..], &["run", "plan.yaml"], &["run", "few.js"]] {
        let place = Place::new();
        place.write("plan.yaml", "target: TARGET\nloads: [{ http: /, requests: 5, connections: 1 }]\n");
        place.write(
            "few.js",
            "import http from 'k6/http'; export const options = { iterations: 5 };
            export default function () { http.get('TARGET'); }",
        );
        let url = place.url();
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "TARGET" { &url } else { *arg }).collect();
        let (_reader, writer) = full_pipe();
        let mut run = Run::with(&place, &args, writer.into());
        wait_until(|| place.target.stats().requests == 5);
        // Signals that come faster than they are handled are one.
        for _ in 0..100 {
            run.interrupt();
            if run.process.wait(Duration::from_millis(200)).is_some() {
                break;
            }
        }
        assert_eq!(run.end().0, Some(130), "{args:?}");
    }
}

#[test]
fn the_second_stop_of_the_page_ends_a_script_at_once() {
    let place = Place::new();
    place.write(
        "long.js",
        "import http from 'k6/http'; import { sleep } from 'k6';
         export const options = { duration: '1m', teardownTimeout: '10m' };
         export default function () { http.get('TARGET/delay/10'); }
         export function teardown() { console.log('sweeping'); sleep(500); }",
    );
    let web = format!("--web=127.0.0.1:{}", free_port());
    let run = Run::with(&place, &["run", "long.js", &web], Stdio::null());
    wait_until(|| place.target.stats().requests > 10 && run.said().contains("live page"));
    let said = run.said();
    let url = said.lines().find_map(|line| line.strip_prefix("live page")).unwrap().trim().to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let stop = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        let request = format!(
            "POST /stop HTTP/1.1\r\nHost: {address}\r\nx-squall: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    };
    stop();
    // In `teardown()` only the second one helps.
    wait_until(|| run.said().contains("sweeping"));
    stop();
    assert_eq!(run.end().0, Some(105));
}
