//! Ctrl-C and SIGTERM: once drains, twice stops at once, and both report what was measured.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use squall_server::{Options, Target};
use squall_testkit::real::{NginxOptions, Server};
use squall_testkit::{Script, ScriptedServer, wait_until};

use crate::squall::{Ended, start, with_json};

/// Far less than any of the runs here would take without the signal.
const PROMPT: Duration = Duration::from_secs(5);

/// How long the server keeps everyone waiting: longer than [`PROMPT`], so that no answer comes in between.
const DELAY: Duration = Duration::from_secs(8);

#[track_caller]
fn check_drain(signal: Signal) {
    let server = Server::nginx(NginxOptions::default());
    let running = start(&with_json(&[&server.url("/"), "-c", "10", "-d", "60s"]));
    assert!(wait_until(PROMPT, || server.logged_count() > 100), "no load came");
    running.process.signal(signal);
    let signalled = Instant::now();
    let ended = running.wait();
    assert!(signalled.elapsed() < PROMPT, "{:?} to drain", signalled.elapsed());
    assert!(matches!(ended.code, Some(0 | 5)), "{ended:#?}");
    assert_eq!((ended.count("/totals/failed"), ended.count("/totals/interrupted")), (0, 0), "{ended:#?}");
    assert_eq!(ended.assert_all_counted(), server.into_access_log().len() as u64);
}

#[track_caller]
fn check_abort(signal: Signal) {
    let server = ScriptedServer::start(Script { delays: vec![DELAY], ..Script::default() });
    let running = start(&with_json(&[&server.url(), "-c", "10", "-d", "60s"]));
    assert!(wait_until(PROMPT, || server.received_count() == 10), "no load came");
    running.process.signal(signal);
    // Draining waits for the answers that are owed, and none comes. Two signals at once would be one.
    assert!(
        wait_until(PROMPT, || running.said().contains("again to stop at once")),
        "the signal was not received"
    );
    running.process.signal(signal);
    let signalled = Instant::now();
    let ended = running.wait();
    assert!(signalled.elapsed() < PROMPT, "{:?} to stop", signalled.elapsed());
    assert_eq!(ended.code, Some(130), "{ended:#?}");
    assert_eq!((ended.assert_all_counted(), ended.count("/totals/interrupted")), (10, 10), "{ended:#?}");
}

#[test]
fn ctrl_c_once_drains_and_reports() {
    check_drain(Signal::INT);
}

#[test]
fn sigterm_once_drains_and_reports() {
    check_drain(Signal::TERM);
}

#[test]
fn ctrl_c_twice_reports_at_once() {
    check_abort(Signal::INT);
}

#[test]
fn sigterm_twice_reports_at_once() {
    check_abort(Signal::TERM);
}

#[test]
fn a_terminal_that_goes_away_drains_and_reports() {
    check_drain(Signal::HUP);
}

#[test]
fn sigquit_drains_and_reports() {
    check_drain(Signal::QUIT);
}

/// Its own clocks may run as they like meanwhile: it is the loop that was not there.
#[test]
fn a_generator_that_was_stopped_is_suspect() {
    let server = Server::nginx(NginxOptions::default());
    let running = start(&with_json(&[&server.url("/"), "-c", "4", "-d", "6s"]));
    assert!(wait_until(PROMPT, || server.logged_count() > 100), "no load came");
    running.process.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(2));
    running.process.signal(Signal::CONT);
    let ended = running.wait();
    let verdict = ended.json()["verdict"].clone();
    assert_ne!(verdict["status"], "VALID", "{verdict}");
}

#[test]
fn a_run_that_was_killed_leaves_a_checkpoint() {
    let server = Server::nginx(NginxOptions::default());
    let results = tempfile::tempdir().unwrap();
    let at = results.path().to_str().unwrap();
    let running = start(&["http", &server.url("/"), "-c", "4", "-d", "60s", "--results", at]);
    let record = || {
        let folder = results.path().read_dir().unwrap().flatten().next()?.path();
        Some(folder.join("run.json")).filter(|file| file.exists())
    };
    assert!(wait_until(Duration::from_secs(30), || record().is_some()), "no checkpoint came");
    running.process.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    let ended = start(&["report", at, "--color", "never"]).wait();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(
        ended.stdout.contains("the program was killed; results from its last checkpoint"),
        "{}",
        ended.stdout
    );
    let file = record().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "others may read {}", file.display());
    let left = file.parent().unwrap().read_dir().unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().ends_with(".tmp")));
}

/// Looks at every element of a list without any, which takes QuickJS minutes without a check for interrupts.
const STUCK: &str = "new Array(2 ** 32 - 1).includes(1);";

/// A script whose users ask the target, but for one that is stuck from the second second on.
fn stuck_script(url: &str, stuck: &str, rest: &str) -> String {
    format!(
        "import http from 'k6/http';
        export const options = {{ scenarios: {{
          ask: {{ executor: 'constant-vus', vus: 4, duration: '60s', exec: 'ask' }},
          stick: {{ executor: 'per-vu-iterations', vus: 1, startTime: '2s', exec: 'stick' }},
        }} }};
        export function ask() {{ http.get('{url}'); }}
        export function stick() {{ {stuck} }}
        {rest}"
    )
}

/// Two signals, and what comes of them. The second follows the first: both at once would be one.
fn signalled_twice(running: crate::squall::Running, signal: Signal) -> Ended {
    running.process.signal(signal);
    std::thread::sleep(Duration::from_millis(300));
    running.process.signal(signal);
    let signalled = Instant::now();
    let ended = running.wait();
    assert!(signalled.elapsed() < PROMPT, "{:?} to stop", signalled.elapsed());
    ended
}

#[test]
fn a_script_that_nothing_interrupts_does_not_keep_the_report_from_coming() {
    let server = Server::nginx(NginxOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("stuck.js");
    for signal in [Signal::INT, Signal::TERM] {
        std::fs::write(&script, stuck_script(&server.url("/"), STUCK, "")).unwrap();
        let logged = server.logged_count();
        let running = start(&with_json(&["run", script.to_str().unwrap()]));
        assert!(wait_until(PROMPT * 4, || server.logged_count() > logged + 100), "no load came");
        std::thread::sleep(Duration::from_millis(3500));
        let ended = signalled_twice(running, signal);
        assert_eq!(ended.code, Some(105), "{ended:#?}");
        assert!(ended.count("/totals/ok") > 100, "{ended:#?}");
        assert!(ended.stderr.contains("1 event loop did not end"), "{ended:#?}");
        assert_ne!(ended.json()["verdict"]["status"], "VALID", "{ended:#?}");
        ended.assert_all_counted();
    }
}

/// Requests that the stuck loop had begun are interrupted where they belong, not in the row of others.
#[test]
fn open_requests_of_a_stuck_loop_are_interrupted_in_their_own_rows() {
    let quick = Server::nginx(NginxOptions::default());
    let slow = Target::start(&Options::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("stuck.js");
    let text = format!(
        "import http from 'k6/http';
        const scenario = (exec, vus, startTime) => ({{ executor: 'per-vu-iterations', exec, vus, startTime }});
        export const options = {{ scenarios: {{
          quick: scenario('quick', 1, '0s'), slow: scenario('slow', 4, '0s'), stick: scenario('stick', 2, '3s'),
        }} }};
        export function quick() {{ http.get('{}'); }}
        export function slow() {{ http.get('http://{}/hang'); }}
        export function stick() {{ console.log('stuck'); {STUCK} }}",
        quick.url("/"),
        slow.address()
    );
    std::fs::write(&script, text).unwrap();
    let running = start(&with_json(&["run", script.to_str().unwrap()]));
    assert!(wait_until(PROMPT * 4, || running.said().contains("stuck")), "{}", running.said());
    let ended = signalled_twice(running, Signal::INT);
    assert!(ended.stderr.contains("did not end"), "{ended:#?}");
    let rows = ended.json()["rows"].clone();
    // Whichever was asked first has the first row.
    for row in rows.as_array().unwrap() {
        let is_slow = row["url"].as_str().unwrap().ends_with("/hang");
        assert_eq!(row["interrupted"], if is_slow { 4 } else { 0 }, "{rows:#}");
    }
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows:#}");
}

#[test]
fn handle_summary_that_nothing_interrupts_does_not_keep_the_report_from_coming() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("stuck.js");
    let text = format!(
        "export const options = {{ iterations: 1 }};
        export default function () {{}}
        export function handleSummary() {{ console.log('summing up'); {STUCK} }}"
    );
    std::fs::write(&script, text).unwrap();
    let running = start(&["run", script.to_str().unwrap(), "--no-save"]);
    assert!(wait_until(PROMPT * 4, || running.said().contains("summing up")), "{}", running.said());
    let ended = signalled_twice(running, Signal::INT);
    assert_eq!(ended.code, Some(105), "{ended:#?}");
    assert!(ended.stdout.contains("iterations"), "{ended:#?}");
}

#[test]
fn a_user_that_is_stuck_in_its_first_lines_ends_too() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("stuck.js");
    let text =
        format!("if (__VU > 0) {{ console.log('first lines'); {STUCK} }} export default function () {{}}");
    std::fs::write(&script, text).unwrap();
    let running = start(&with_json(&["run", script.to_str().unwrap()]));
    assert!(wait_until(PROMPT * 4, || running.said().contains("first lines")), "{}", running.said());
    let ended = signalled_twice(running, Signal::TERM);
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(105), 0), "{ended:#?}");
}

#[test]
fn a_script_of_a_plan_that_nothing_interrupts_does_not_keep_the_report_from_coming() {
    let folder = tempfile::tempdir().unwrap();
    let [script, plan] = ["stuck.js", "plan.yaml"].map(|name| folder.path().join(name));
    let text = format!(
        "export const options = {{ duration: '60s' }};
        export default function () {{ console.log('at work'); {STUCK} }}"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::write(&plan, "loads:\n  - script: stuck.js\n").unwrap();
    let running = start(&["run", plan.to_str().unwrap(), "--no-save", "--json", "-"]);
    assert!(wait_until(PROMPT * 4, || running.said().contains("at work")), "{}", running.said());
    std::thread::sleep(Duration::from_secs(2));
    let ended = signalled_twice(running, Signal::INT);
    assert_eq!(ended.code, Some(130), "{ended:#?}");
    assert_ne!(ended.json()["verdict"]["status"], "VALID", "{ended:#?}");
}
