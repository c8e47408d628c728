//! PTR files over ssh, several at once: by squall itself, and by the real tools where they are installed.
//!
//! k6 and tls-perf are no packages of Debian: they are found by `K6` and `TLS_PERF`, or in `PATH`, and left out where they are not.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use squall_testkit::Process;
use squall_testkit::lab::Lab;

use crate::site::Site;
use crate::squall::{ok, parts, record, text};

/// A program by an environment variable, or by its name in `PATH`.
fn found(variable: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os(variable).map(PathBuf::from);
    let found = named
        .or_else(|| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()));
    if found.is_none() {
        println!("{name} is not installed (nor named by {variable}): its PTR file is left out");
    }
    found
}

/// A PTR file as it is written for the framework: one scenario of one second, for two generators.
fn ptr(driver: &str, file: Option<&str>, mut config: Value, tool: Option<&Path>) -> Value {
    if let Some(tool) = tool {
        config["command_path"] = json!(tool);
    }
    let hosts = [Lab::address("g1"), format!("{}:22", Lab::address("g2"))];
    let mut scenario = json!({"desc": driver, "generator_config": config});
    if let Some(file) = file {
        scenario["target_file"] = json!(file);
    }
    json!({
        "target_host": format!("{}:443", Lab::address("target")),
        "generator_hosts": hosts,
        "generator_driver": driver,
        "pause": 1,
        "scenarios": [scenario],
    })
}

fn handshakes(tool: Option<&Path>) -> Value {
    let config = json!({"duration": 1, "handshakes": 60, "tls-version": "1.3", "limit-connections": 4, "threads": 1,
        "process-tickets": false, "target-ip": Lab::address("target"), "port": 443});
    ptr("tls-perf", None, config, tool)
}

fn files() -> Vec<Value> {
    let idle = json!({"target": Lab::address("target"), "port": 443, "protocol": "h1", "connections": 20, "duration": 1,
        "pause": "1ms", "jitter": "1ms", "bind-to-nics": ["eth0"]});
    vec![
        ptr(
            "wrk",
            Some("/bytes/100"),
            json!({"protocol": "h1", "connections": 4, "threads": 1, "duration": 1}),
            None,
        ),
        ptr(
            "h2load",
            Some("/bytes/100"),
            json!({"protocol": "h2", "connections": 4, "threads": 1, "streams": 2, "duration": 1}),
            None,
        ),
        ptr("idle-connections", None, idle, None),
    ]
}

/// Its script is copied to one generator, since the machines of the lab share a file system.
fn k6(site: &Site, tool: Option<&Path>) -> Value {
    let (script, copy) = (site.lab.path("test.js"), site.lab.path("copy.js"));
    let body = "import http from 'k6/http';\nexport default function () { http.get(__ENV.TARGET + '/bytes/100'); }\n";
    fs::write(&script, body).unwrap();
    let mut file = ptr("k6", copy.to_str(), json!({"vus": 2, "duration": 1}), tool);
    file["target_host"] = json!(format!("http://{}", Lab::address("target")));
    file["generator_hosts"] = json!([Lab::address("g3")]);
    file["files_to_generator_hosts"] =
        json!([{"local_path": script, "remote_addr": copy, "file_permission": "0644"}]);
    file
}

/// Runs files that go on at the same time; gives the record, and the summary.
fn run(site: &Site, files: &[Value], drivers: &str) -> (Value, String) {
    let mut names = OsString::new();
    for (number, file) in files.iter().enumerate() {
        let path = site.lab.path(&format!("ptr-{number}.json"));
        fs::write(&path, file.to_string()).unwrap();
        if number > 0 {
            names.push(",");
        }
        names.push(path);
    }
    let config = site.lab.path("ssh_config");
    fs::write(&config, format!("UserKnownHostsFile {}\n", site.lab.path("known_hosts").display())).unwrap();
    let results = site.lab.path(drivers);
    let mut command = site.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
    command.args([
        "run",
        "--drivers",
        drivers,
        "--user",
        "root",
        "--bastion-host",
        Lab::BASTION,
        "--test-config",
    ]);
    command.arg(names).arg("--ssh-keyfile").arg(site.lab.key()).arg("--ssh-config").arg(config);
    let output = command.arg("--results").arg(&results).env("NO_COLOR", "1").output().unwrap();
    // A busy machine makes the verdict worse, not the figures.
    assert!(
        matches!(output.status.code(), Some(0 | 5)),
        "{}\n{}",
        text(&output.stderr),
        text(&output.stdout)
    );
    (record(&results), text(&output.stdout))
}

/// A target that speaks TLS, beside the site's own.
fn tls_target(site: &Site) -> Process {
    let mut command: Command = site.lab.command("target", env!("CARGO_BIN_EXE_squall"));
    command.args(["target", "--listen", "0.0.0.0:443", "--tls"]).stdout(Stdio::null());
    let process = Process::start(&mut command);
    site.lab.wait_for_port("target", 443);
    process
}

#[test]
fn ptr_files_run_over_ssh_by_squall_itself() {
    let site = Site::new();
    let _tls = tls_target(&site);
    let mut files = files();
    files.extend([handshakes(None), k6(&site, None)]);
    let (record, said) = run(&site, &files, "native");
    let loads = parts(&record, "load");
    assert_eq!(loads.len(), 5);
    assert!(
        loads.iter().filter(|(name, _)| !name.contains("idle")).all(|(_, count)| *count > 0),
        "{loads:?}"
    );
    assert_eq!(
        loads.iter().find(|(name, _)| name.contains("tls-perf")).unwrap().1,
        60,
        "handshakes win over duration"
    );
    let machines = parts(&record, "machine");
    assert!(machines.len() == 3 && machines.iter().all(|(_, count)| *count > 0), "{machines:?}");
    assert_eq!(machines.iter().map(|(_, count)| count).sum::<u64>(), ok(&record["total"]));
    assert!(said.contains("MACHINES") && said.contains("LOADS"), "{said}");
}

#[test]
fn ptr_files_run_over_ssh_by_the_real_tools() {
    let site = Site::new();
    let _tls = tls_target(&site);
    let mut files = files();
    let mut expected = vec![("wrk", 2), ("h2load", 2)];
    if let Some(tool) = found("TLS_PERF", "tls-perf") {
        files.push(handshakes(Some(&tool)));
        expected.push(("tls-perf", 2));
    }
    if let Some(tool) = found("K6", "k6") {
        files.push(k6(&site, Some(&tool)));
        expected.push(("k6", 1));
    }
    let (record, said) = run(&site, &files, "external");
    let tools = record["tools"].as_array().unwrap();
    assert!(
        tools.iter().all(|tool| tool["problem"].is_null() && tool["exit_code"] == 0),
        "{}",
        record["tools"]
    );
    for (name, count) in expected {
        let own: Vec<&Value> = tools.iter().filter(|tool| tool["tool"] == name).collect();
        assert_eq!(own.len(), count, "{name} on each of its generators");
        assert!(own.iter().all(|tool| tool["figures"]["rate_per_s"].is_number()), "{own:?}");
        assert!(said.contains(&format!("{name} on ")), "{said}");
    }
    assert!(!site.lab.path("copy.js").exists(), "copied files are removed");
}
