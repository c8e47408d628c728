//! Machines whose connection is lost: those that come back lose nothing, those that do not are counted for what is known of them.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use squall_testkit::Process;

use crate::site::Site;
use crate::squall::{Place, ok, parts, record, squall, wait_until};

fn count(total: &Value, name: &str) -> u64 {
    total[name].as_u64().unwrap_or(0)
}

fn interrupted(total: &Value) -> u64 {
    total["rows"].as_array().unwrap().iter().map(|row| count(row, "interrupted")).sum()
}

#[test]
fn a_bastion_that_restarts_costs_no_figure() {
    let mut site = Site::with_program();
    let mut run = site.start("loads: [{ http: /, rate: 300/s, duration: 6s }]\n");
    wait_until(|| site.has_load());
    std::thread::sleep(Duration::from_millis(1500));
    site.lab.stop_sshd("bastion");
    std::thread::sleep(Duration::from_millis(1500));
    site.lab.restart_sshd("bastion");
    let code = run.wait(Duration::from_secs(60)).unwrap().code();
    let said = fs::read_to_string(site.lab.path("controller.err")).unwrap();
    let record = record(&site.lab.path("runs"));
    for machine in ["g1", "g2", "g3"] {
        assert!(said.contains(&format!("connection to {machine} lost, reconnecting")), "{said}");
        assert!(said.contains(&format!("reconnected to {machine}")), "{said}");
    }
    let total = &record["total"];
    assert_eq!((ok(total), interrupted(total), count(total, "arrivals_asked")), (1800, 0, 1800), "{said}");
    assert_eq!(parts(&record, "machine").iter().map(|(_, ok)| *ok).collect::<Vec<_>>(), [600, 600, 600]);
    assert!(matches!(code, Some(0 | 5)), "{said}");
    site.wait_until_clean();
    assert_eq!(site.log().len(), 1800);
}

#[test]
fn a_machine_that_is_cut_off_owes_what_its_schedule_asked_for() {
    let site = Site::with_program();
    let plan = "lost_after: 3s\nloads: [{ http: /, rate: 300/s, duration: 10s }]\n";
    let mut run = site.start(plan);
    wait_until(|| site.has_load());
    std::thread::sleep(Duration::from_millis(1500));
    // The target is still reached: the agent goes on until it has received nothing for three seconds.
    site.lab.drop_packets_to("g2", "bastion");
    let code = run.wait(Duration::from_secs(60)).unwrap().code();
    let said = fs::read_to_string(site.lab.path("controller.err")).unwrap();
    let record = record(&site.lab.path("runs"));
    let total = &record["total"];
    let (ok, interrupted) = (ok(total), interrupted(total));
    assert_eq!(count(total, "arrivals_asked"), 3000, "{said}");
    assert_eq!(count(total, "requests_started"), ok + interrupted, "{said}");
    assert_eq!(ok + interrupted + count(total, "arrivals_lost"), 3000);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("lost machine g2: ")).collect();
    let stated = lines[0].split(' ').filter_map(|word| word.parse::<u64>().ok()).max();
    assert!(lines[0].contains("scheduled requests without a report count as interrupted"), "{said}");
    assert!(stated <= Some(interrupted) && interrupted > 100, "{said}");
    assert!(record["verdict"]["reasons"].to_string().contains("machines_lost"));
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("1 of 3 machines was lost") && said.contains("`--allow-lost 1`"), "{said}");
    let served = site.log().len() as u64;
    assert!(ok < served && served <= ok + interrupted, "{ok} ok, {interrupted} interrupted, {served} served");
}

/// A plan in which the agent of `goes` is killed when the target has seen requests; gives the exit code and the record.
fn lose(loads: &str, flags: &[&str]) -> (Option<i32>, Value) {
    lose_by(("-KILL", Duration::ZERO), &Place::new(), loads, flags)
}

/// The same with another signal, so long after the target has seen requests.
fn lose_by(
    (signal, after): (&str, Duration),
    place: &Place,
    loads: &str,
    flags: &[&str],
) -> (Option<i32>, Value) {
    let pid = place.folder.path().join("pid");
    let plan = format!(
        "target: TARGET\nmachines: {{ stays: local, goes: {{ command: [sh, -c, 'echo $$ > {}; exec {} agent'] }} }}\nloads:\n{loads}",
        pid.display(),
        env!("CARGO_BIN_EXE_squall"),
    );
    let plan = place.write("plan.yaml", &plan);
    let results = place.folder.path().join("runs");
    let mut command = squall();
    command.arg("run").arg(plan).arg("--results").arg(&results).args(flags);
    let mut run = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(|| place.target.stats().requests > 20);
    std::thread::sleep(after);
    let pid = fs::read_to_string(pid).unwrap();
    assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    let code = run.wait(Duration::from_secs(60)).unwrap().code();
    // One that was only stopped lives on; one that was killed is gone.
    let _ = Command::new("kill").args(["-KILL", pid.trim()]).output();
    (code, record(&results))
}

#[test]
fn a_lost_machine_is_no_success_unless_it_is_allowed() {
    let load = "  - { http: /, rate: 50/s, duration: 3s }\n";
    for (flags, expected) in [(&[][..], 6), (&["--allow-lost", "1"], 0)] {
        let (code, record) = lose(load, flags);
        assert_eq!(count(&record["total"], "arrivals_asked"), 150);
        let is_valid = record["verdict"]["status"] != "INVALID";
        assert!(code == Some(expected) || (expected == 0 && !is_valid), "{flags:?}: {code:?}");
    }
}

#[test]
fn a_tool_of_a_lost_machine_keeps_its_row() {
    let loads = "  - { http: /, rate: 50/s, duration: 2s, on: stays }\n  - { tool: wrk, command: 'sleep 60', on: goes, name: foreign }\n";
    let (code, record) = lose(loads, &[]);
    assert_eq!(code, Some(6));
    let tool = &record["tools"][0];
    assert_eq!((&tool["load"], &tool["machine"]), (&"foreign".into(), &"goes".into()));
    assert_eq!(tool["problem"], "its machine was lost, and its metrics with it");
}

/// What an iteration requests is known to the script alone: the arrivals of its executor are no requests.
#[test]
fn requests_of_a_script_that_a_lost_machine_did_not_report_are_estimated() {
    let place = Place::new();
    let script = "import http from 'k6/http';
const executor = 'constant-arrival-rate';
export const options = {
  scenarios: { one: { executor, rate: 60, timeUnit: '1s', preAllocatedVUs: 10, duration: '7s' } },
};
export default function () { http.get('TARGET/delay/40'); http.get('TARGET/delay/40'); }
";
    place.write("test.js", script);
    // Two of its seconds are over by then: the estimate needs a whole one.
    let signal = ("-STOP", Duration::from_millis(2500));
    let (code, record) = lose_by(signal, &place, "  - { script: test.js }\n", &["--lost-after", "3s"]);
    let total = &record["total"];
    assert_eq!(code, Some(6));
    assert_eq!(count(total, "requests_started"), ok(total) + interrupted(total));
    let machines = record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "machine");
    let problems: Vec<&str> = machines.filter_map(|part| part["problem"].as_str()).collect();
    let words = "it may have made about ";
    let estimate = problems.iter().find_map(|problem| problem.split(words).nth(1)?.split(' ').next());
    // Sixty a second for three seconds and a bit; a busy machine makes fewer.
    let is_near = estimate
        .and_then(|number| number.parse::<u64>().ok())
        .is_some_and(|count| (20..=600).contains(&count));
    assert!(is_near && problems.len() == 1, "{problems:?}");
}
