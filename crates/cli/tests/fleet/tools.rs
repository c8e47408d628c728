//! Foreign tools as loads, monitors of real servers, and PTR files.

use std::fs;
use std::process::Command;

use serde_json::Value;
use squall_testkit::real::{NginxOptions, Server};

use crate::squall::{Place, assert_code, ok, record, squall, text};

fn tool<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut tools = record["tools"].as_array().unwrap().iter();
    tools.find(|run| run["tool"] == name).unwrap_or_else(|| panic!("no {name} in {}", record["tools"]))
}

#[test]
fn tools_run_side_by_side_with_a_native_load_and_their_output_is_kept() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { a: local, b: local }
loads:
  - { tool: wrk, url: /bytes/10, connections: 4, threads: 1, duration: 1s, on: a }
  - { tool: h2load, connections: 4, requests: 501, http: '1', on: [a, b], name: h2 }
  - { tool: ab, url: /bytes/20, connections: 2, requests: 100, on: b }
  - { http: /, requests: 50, connections: 2, on: a, name: native }
";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(ok(&record["total"]), 50, "tools are in no total");
    let tools = record["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 4);
    assert!(tools.iter().all(|run| run["problem"].is_null() && run["exit_code"] == 0), "{}", record["tools"]);
    let h2: u64 = tools
        .iter()
        .filter(|run| run["tool"] == "h2load")
        .map(|run| run["figures"]["requests"].as_u64().unwrap())
        .sum();
    assert_eq!(h2, 501, "divided among two machines");
    assert_eq!(tool(&record, "ab")["figures"]["requests"], 100);
    let wrk = tool(&record, "wrk");
    let runs = place.folder.path().join("runs");
    let folder = fs::read_dir(runs).unwrap().flatten().next().unwrap().path();
    let raw = fs::read_to_string(folder.join(wrk["raw_file"].as_str().unwrap())).unwrap();
    assert!(raw.contains("Requests/sec"), "{raw}");
    let made = wrk["figures"]["requests"].as_u64().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("TOOLS") && said.contains("MACHINES"), "{said}");
    assert!(!said.contains("LOADS"), "tools stand among the tools alone: {said}");
    // wrk does not count what was open at its end.
    assert!(place.logged() >= made + 501 + 100 + 50);
}

#[test]
fn a_tool_that_is_missing_or_fails_is_reported() {
    let place = Place::new();
    let (_, output) = place.run("target: TARGET\nloads: [{ tool: fortio, path: /no/such/fortio }]\n", &[]);
    let said = text(&output.stderr);
    assert!(said.contains("load `tool`: `/no/such/fortio` is not installed"), "{said}");
    let (record, output) = place.run("loads: [{ tool: wrk, command: 'sh -c false' }]\n", &[]);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(tool(&record, "wrk")["problem"], "wrk ended with exit code 1");
    assert!(record["verdict"]["reasons"].to_string().contains("tools_failed"));
    let (_, output) = place.run("loads: [{ tool: wrk9, conections: 5 }]\n", &[]);
    let said = text(&output.stderr);
    assert!(said.contains("plan.yaml:1:17: unknown tool `wrk9`"), "{said}");
    assert!(!said.contains("problems") && !said.contains("conections"), "its keys are unknown: {said}");
    let (_, output) = place.run("loads: [{ tool: wrk, conections: 5 }]\n", &[]);
    assert!(
        text(&output.stderr).contains("plan.yaml:1:22: wrk has no option `conections`"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_tool_that_measured_nothing_keeps_its_machine_and_outputs_of_like_names_are_kept_apart() {
    let place = Place::new();
    let plan = r#"
loads:
  - { tool: hey, name: a b, command: [printf, 'Summary:\n  Average: NaN secs\n  Requests/sec: 10\n'] }
  - { tool: hey, name: a-b, command: [echo, -A, secret] }
"#;
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(!said.contains("lost machine") && !said.contains("secret"), "{said}");
    let tools = record["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{said}");
    let folder = fs::read_dir(place.folder.path().join("runs")).unwrap().flatten().next().unwrap().path();
    for run in tools {
        let raw = fs::read_to_string(folder.join(run["raw_file"].as_str().unwrap())).unwrap();
        let is_first = run["load"] == "a b";
        assert!(raw.contains(if is_first { "NaN" } else { "-A secret" }), "{raw}");
        assert_eq!(run["figures"]["rate_per_s"].as_f64(), is_first.then_some(10.0));
        assert!(!run["command"].to_string().contains("secret"));
    }
}

/// Values of a figure of the target.
fn watched(record: &Value, name: &str) -> Vec<f64> {
    let mut monitors = record["monitors"].as_array().unwrap().iter();
    let found = monitors
        .find(|monitor| monitor["name"] == name && monitor["source"].as_str().unwrap().starts_with("target"));
    let found = found.unwrap_or_else(|| panic!("no {name} in {}", record["monitors"]));
    found["samples"].as_array().unwrap().iter().map(|pair| pair[1].as_f64().unwrap()).collect()
}

/// 200 requests a second for four seconds to a server that is watched, by `/proc` and by its own page.
fn watch(server: &Server, page: &str, process: &str) -> (Value, f64) {
    let place = Place::new();
    let plan = format!(
        "target: {0}\nmachines: {{ g: local, here: local }}\nmonitors:\n  - {{ machine: here, process: {process} }}\n  \
         - {page}\nloads: [{{ http: /, rate: 200/s, duration: 4s, connections: 10, on: g }}]\n",
        server.url("/"),
    );
    let (record, output) = place.run(&plan, &[]);
    // A busy machine makes the verdict worse, not the figures.
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
    // What the kernel says of the same processes now: they keep their memory.
    let ps = Command::new("ps").args(["-C", process, "-o", "rss="]).output().unwrap();
    let rss_kib: f64 = text(&ps.stdout).split_whitespace().map(|kib| kib.parse::<f64>().unwrap()).sum();
    (record, rss_kib * 1024.0)
}

fn assert_process_as_in_proc(record: &Value, process: &str, rss: f64) {
    let seen = *watched(record, &format!("{process} rss")).last().unwrap();
    // Concurrent tests have servers of that name, too, which come and go.
    assert!(seen > 1e6 && rss > 1e6, "{seen} of {rss} bytes");
    assert!(watched(record, &format!("{process} processes")).iter().all(|count| *count >= 1.0));
    assert!(watched(record, &format!("{process} descriptors")).iter().all(|count| *count >= 10.0));
    assert!(watched(record, &format!("{process} threads")).iter().all(|count| *count >= 1.0));
    assert!(watched(record, "cpu").len() >= 2);
}

#[test]
fn nginx_and_its_processes_are_watched_and_match_its_own_counters() {
    let nginx = Server::nginx(NginxOptions::default());
    let (record, rss) = watch(&nginx, &format!("nginx: {}", nginx.url("/status")), "nginx");
    assert_process_as_in_proc(&record, "nginx", rss);
    let served = watched(&record, "requests").into_iter().fold(0.0, f64::max);
    // The page itself is a request, once a second.
    assert!((100.0..=400.0).contains(&served), "{served} requests/s");
    assert!(watched(&record, "connections active").into_iter().fold(0.0, f64::max) <= 12.0);
    assert_eq!(ok(&record["total"]), nginx.into_access_log().len() as u64);
}

#[test]
fn h2o_and_its_processes_are_watched_and_match_its_own_page() {
    let h2o = Server::h2o();
    let (record, rss) = watch(&h2o, &format!("h2o: {}", h2o.url("/status/json")), "h2o");
    assert_process_as_in_proc(&record, "h2o", rss);
    let connections = watched(&record, "connections");
    // At most ten of the load, of which the rate needs some, and the one that asks.
    assert!(connections.iter().all(|count| (1.0..=12.0).contains(count)), "{connections:?}");
    assert!(connections.iter().any(|count| *count >= 2.0), "{connections:?}");
    let log = h2o.into_access_log();
    let loads = log.iter().filter(|line| !line.contains("/status/json")).count() as u64;
    assert_eq!(ok(&record["total"]), loads);
}

#[test]
fn a_ptr_file_runs_natively_and_with_the_real_tool() {
    let place = Place::new();
    let host = place.url().replace("http://", "");
    let config = format!(
        r#"{{"target_host": "{host}", "generator_hosts": [], "generator_driver": "wrk", "pause": 0,
            "scenarios": [{{"desc": "small", "target_file": "/bytes/10", "generator_config": {{"protocol": "h1", "connections": 4, "threads": 1, "duration": 1}}}},
                          {{"desc": "again", "target_file": "/bytes/10", "generator_config": {{"protocol": "h1", "connections": 2, "threads": 1, "duration": 1}}}}]}}"#
    );
    let path = place.write("ptr.json", &config);
    for (drivers, has_tools) in [("native", false), ("external", true)] {
        let results = place.folder.path().join(drivers);
        let mut command = squall();
        command
            .args(["run", "--drivers", drivers, "--test-config"])
            .arg(&path)
            .arg("--results")
            .arg(&results);
        let output = command.output().unwrap();
        let record = record(&results);
        assert_code(&record, &output, 0);
        let steps =
            record["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "step").count();
        assert_eq!(steps, 2);
        assert_eq!(record.get("tools").is_some(), has_tools);
        assert_eq!(ok(&record["total"]) > 0, !has_tools);
    }
}
