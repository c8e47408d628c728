//! PTR files over ssh, on generators that are logged in to without privileges: all five drivers, by squall itself and by the real tools,
//! with the counts of each generator compared with those of nginx and h2o; and what is refused before anything starts.
//!
//! k6 and tls-perf are no packages of Debian: `dev/setup test` builds them. They are found by `K6` and `TLS_PERF`, or in `PATH`, and left out where
//! that failed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use squall_testkit::lab::Lab;

use crate::servers::{Kind, Server};
use crate::site::{place, place_program, wait_until_clean};
use crate::squall::{ok, parts, record, squall, text};

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

/// The generators of these files, of which the second is named with its port, as PTR allows.
fn hosts() -> [String; 3] {
    [Lab::address("g1"), format!("{}:22", Lab::address("g2")), Lab::address("g3")]
}

/// A count for each generator.
fn on_each(number: u64) -> BTreeMap<String, u64> {
    ["g1", "g2", "g3"].map(|name| (Lab::address(name), number)).into()
}

/// A PTR file as it is written for the framework: one scenario, for two generators.
fn ptr(driver: &str, port: u16, file: &str, config: &Value) -> Value {
    json!({
        "target_host": format!("{}:{port}", Lab::address("target")),
        "generator_hosts": hosts(),
        "generator_driver": driver,
        "pause": 60,
        "scenarios": [{"desc": driver, "target_file": file, "generator_config": config}],
    })
}

fn with_tool(mut config: Value, tool: Option<&Path>) -> Value {
    if let Some(tool) = tool {
        config["command_path"] = json!(tool);
    }
    config
}

fn wrk() -> Value {
    ptr("Wrk", 8080, "/wrk", &json!({"protocol": "h1", "connections": 3, "threads": 1, "duration": 1}))
}

fn h2load() -> Value {
    ptr(
        "h2load",
        8443,
        "/h2load",
        &json!({"protocol": "h2", "connections": 4, "threads": 1, "streams": 2, "requests": 30}),
    )
}

/// Times between connections are milliseconds: as seconds they would take longer than the run.
fn idle() -> Value {
    let config = json!({"target": Lab::address("target"), "port": 8445, "protocol": "h1", "connections": 20, "duration": 1,
        "pause": 2, "jitter": 1, "tls": true, "bind-to-nics": ["eth"]});
    ptr("Idle-Connections", 80, "", &config)
}

fn handshakes(tool: Option<&Path>) -> Value {
    let config = json!({"duration": 60, "handshakes": 40, "limit-connections": 4, "threads": 1,
        "process-tickets": false, "target-ip": Lab::address("target"), "port": 8444});
    ptr("tls-perf", 443, "", &with_tool(config, tool))
}

/// Its script has a copy on the generators, which share a file system here; `h1` keeps it from HTTP/2.
fn k6(lab: &Lab, tool: Option<&Path>) -> Value {
    let (script, copy) = (lab.path("test.js"), lab.home().join("copy.js"));
    let body = "import http from 'k6/http';\nexport const options = { insecureSkipTLSVerify: true };\n\
                export default function () { http.get(__ENV.TARGET + '/k6'); }\n";
    fs::write(&script, body).unwrap();
    let config = with_tool(json!({"protocol": "h1", "vus": 2, "duration": 1}), tool);
    let mut file = ptr("K6", 8443, copy.to_str().unwrap(), &config);
    file["files_to_generator_hosts"] =
        json!([{"local_path": "test.js", "remote_addr": copy, "file_permission": "0644"}]);
    file
}

/// `squall run --test-config` on the controller, through the bastion.
fn command(lab: &Lab, files: &[Value], flags: &[&str]) -> Command {
    let paths = files.iter().enumerate().map(|(number, file)| {
        let path = lab.path(&format!("ptr-{number}.json"));
        fs::write(&path, file.to_string()).unwrap();
        path.to_string_lossy().into_owned()
    });
    let paths: Vec<String> = paths.collect();
    let config = lab.path("ssh_config");
    fs::write(&config, format!("UserKnownHostsFile {}\n", lab.path("known_hosts").display())).unwrap();
    let mut command = lab.command("controller", env!("CARGO_BIN_EXE_squall"));
    command.args([
        "run",
        "--user",
        lab.user(),
        "--bastion-host",
        Lab::BASTION,
        "--test-config",
        &paths.join(","),
    ]);
    command.arg("--ssh-keyfile").arg(lab.key()).arg("--ssh-config").arg(config).args(flags);
    command.env("NO_COLOR", "1");
    command
}

/// Runs files that go on at the same time; gives the record, and what was said.
fn run(lab: &Lab, files: &[Value], drivers: &str) -> (Value, Output) {
    let results = lab.path(drivers);
    let output =
        command(lab, files, &["--drivers", drivers]).arg("--results").arg(&results).output().unwrap();
    // A busy machine makes the verdict worse, not the figures.
    assert!(
        matches!(output.status.code(), Some(0 | 5)),
        "{}\n{}",
        text(&output.stderr),
        text(&output.stdout)
    );
    (record(&results), output)
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// The lab, with logins of a user whose shell is dash.
fn lab() -> Lab {
    let lab = Lab::without_privileges(3);
    place_program(&lab);
    lab
}

/// All five drivers by squall itself.
fn natively(kind: Kind) {
    let lab = lab();
    let server = Server::start(&lab, kind);
    let files = [wrk(), h2load(), idle(), handshakes(None), k6(&lab, None)];
    // What another run left at the path of a copied file is replaced, as PTR did.
    let copy = lab.home().join("copy.js");
    fs::write(&copy, "left").unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o666)).unwrap();
    let (record, output) = run(&lab, &files, "native");
    let log = server.log();
    let said = text(&output.stderr);
    for total in
        ["9 connections", "12 connections, 90 requests", "60 connections, for each address of eth there"]
    {
        assert!(said.contains(&format!("total   {total}\n")), "{total}\n{said}");
    }
    assert!(said.contains("12 connections, 120 handshakes") && said.contains("6 virtual users"), "{said}");
    assert_eq!(log.requests("/h2load"), on_each(30));
    assert_eq!(log.silent(8444), &on_each(40), "handshakes win over duration");
    assert_eq!(log.silent(8445), &on_each(20), "for each interface of each host");
    assert_eq!(log.versions("/k6"), ["HTTP/1.1"]);
    assert_eq!(
        (log.versions("/wrk"), log.versions("/h2load")),
        (vec!["HTTP/1.1".into()], vec!["HTTP/2".into()])
    );
    let counted =
        [log.requests("/wrk"), log.requests("/h2load"), log.requests("/k6"), log.silent(8444).clone()];
    let loads: BTreeMap<String, u64> = parts(&record, "load").into_iter().collect();
    for (name, counts) in ["1: Wrk", "2: h2load", "5: K6", "4: tls-perf"].into_iter().zip(&counted) {
        assert!(counts.len() == 3, "{name} on {counts:?}");
        assert_eq!(loads[name], sum(counts), "{name}");
    }
    let idle = loads.get("3: Idle-Connections").copied().unwrap_or(0);
    let machines = parts(&record, "machine");
    let seen = |address: &String| counted.iter().map(|counts| counts[address]).sum::<u64>();
    for (name, count) in &machines {
        let address = name.split(':').next().unwrap().to_owned();
        // Idle connections are counted as they were in the load's own row.
        assert_eq!(*count, seen(&address) + idle / 3, "{name}");
    }
    assert_eq!(machines.iter().map(|(_, count)| count).sum::<u64>(), ok(&record["total"]));
    assert_eq!(fs::read_to_string(copy).unwrap(), fs::read_to_string(lab.path("test.js")).unwrap());
    assert!(!said.contains("pause"), "no pause after the last scenario: {said}");
    wait_until_clean(&lab);
}

/// All five drivers by the real tools; idle connections have none.
fn externally(kind: Kind) {
    let lab = lab();
    let server = Server::start(&lab, kind);
    let mut files = vec![wrk(), h2load(), idle()];
    files[2]["scenarios"][0]["generator_config"]["bind-to-nics"] = json!([]);
    let tool = |variable, name| Some(place(&lab, &found(variable, name)?));
    let (tls_perf, k6_path) = (tool("TLS_PERF", "tls-perf"), tool("K6", "k6"));
    files.extend(tls_perf.as_deref().map(|tool| handshakes(Some(tool))));
    files.extend(k6_path.as_deref().map(|tool| k6(&lab, Some(tool))));
    let (record, output) = run(&lab, &files, "external");
    let log = server.log();
    let tools = record["tools"].as_array().unwrap();
    let is_well = |tool: &Value| tool["problem"].is_null() && tool["exit_code"] == 0;
    assert!(tools.iter().all(is_well), "{}", record["tools"]);
    let figures = |name: &str| -> BTreeMap<String, u64> {
        let own = tools.iter().filter(|tool| tool["tool"] == name);
        let count = |tool: &Value| tool["figures"]["requests"].as_u64().unwrap();
        let address = |tool: &Value| tool["machine"].as_str().unwrap().split(':').next().unwrap().to_owned();
        own.map(|tool| (address(tool), count(tool))).collect()
    };
    assert_eq!((figures("h2load"), log.requests("/h2load")), (on_each(30), on_each(30)));
    assert_eq!(log.silent(8445), &on_each(20), "idle connections are squall's own");
    // What was open at the end is in the server's log alone.
    let assert_like_log = |name: &str, counted: &BTreeMap<String, u64>, open: u64| {
        let own = figures(name);
        assert_eq!(own.len(), 3, "{name}");
        for (host, count) in own {
            let seen = counted[&host];
            assert!((count..=count + open).contains(&seen), "{name} on {host}: {count}, {kind:?} {seen}");
        }
    };
    assert_like_log("wrk", &log.requests("/wrk"), 3);
    if k6_path.is_some() {
        assert_like_log("k6", &log.requests("/k6"), 2);
        assert_eq!(log.versions("/k6"), ["HTTP/1.1"]);
    }
    if tls_perf.is_some() {
        let own = figures("tls-perf");
        assert!(own.len() == 3 && own.values().all(|count| *count >= 40), "{own:?}");
        assert_like_log("tls-perf", log.silent(8444), 8);
    }
    let said = text(&output.stdout);
    assert!(said.contains("wrk on ") && said.contains("h2load on "), "{said}");
    assert!(!lab.home().join("copy.js").exists(), "copied files are removed");
    wait_until_clean(&lab);
}

#[test]
fn every_generator_makes_all_of_each_load_by_squall_itself() {
    natively(Kind::Nginx);
}

#[test]
fn every_generator_makes_all_of_each_load_by_squall_itself_against_h2o() {
    natively(Kind::H2o);
}

#[test]
fn every_generator_makes_all_of_each_load_by_the_real_tools() {
    externally(Kind::Nginx);
}

#[test]
fn every_generator_makes_all_of_each_load_by_the_real_tools_against_h2o() {
    externally(Kind::H2o);
}

#[test]
fn a_load_can_be_divided_and_a_tool_that_fails_says_why() {
    let lab = lab();
    let nginx = Server::start(&lab, Kind::Nginx);
    let mut nobody = wrk();
    nobody["target_host"] = json!(format!("{}:9", Lab::address("target")));
    let divided = command(&lab, &[h2load(), nobody], &["--divide", "--drivers", "external", "--no-save"]);
    let output = { divided }.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("wrk ended with exit code 1: ") && said.contains("unable to connect to"), "{said}");
    assert_eq!(nginx.log().requests("/h2load"), on_each(10));
}

#[test]
fn a_key_that_cannot_be_used_is_reported_before_anything_is_sent() {
    let lab = Lab::new(1);
    let mut file = wrk();
    file["generator_hosts"] = json!([Lab::address("g1")]);
    let locked = lab.path("locked");
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "secret", "-f"]).arg(&locked).status();
    assert!(made.unwrap().success());
    for (key, expected) in [
        (lab.path("missing"), "`--ssh-keyfile`: cannot read the ssh key"),
        (locked, "has a passphrase"),
        (lab.path("known_hosts"), "other users can read the ssh key"),
    ] {
        let mut command = command(&lab, std::slice::from_ref(&file), &["--no-save"]);
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let place = args.iter().position(|arg| arg == "--ssh-keyfile").unwrap() + 1;
        let mut other = Command::new(command.get_program());
        other.args(&args[..place]).arg(&key).args(&args[place + 1..]).env("NO_COLOR", "1");
        command = other;
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.contains("help: "), "{said}");
    }
}

/// `squall plan check`, and what `squall run` says of the same files.
fn checked(folder: &Path, files: &[(&str, Value)], flags: &[&str]) -> (Option<i32>, String) {
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.join(name)).collect();
    for ((_, file), path) in files.iter().zip(&paths) {
        fs::write(path, file.to_string()).unwrap();
    }
    let check = squall().args(["plan", "check"]).args(&paths).args(flags).output().unwrap();
    let run = squall().arg("run").args(&paths).args(flags).arg("--dry-run").output().unwrap();
    let (said, told) = (text(&check.stderr), text(&run.stderr));
    assert_eq!((check.status.code(), &said), (run.status.code(), &told));
    (check.status.code(), said)
}

#[test]
fn plan_check_and_run_say_the_same_of_ptr_files() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) =
        checked(folder.path(), &[("a.json", wrk()), ("b.json", handshakes(None))], &["--user", "me"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let mut wrong = h2load();
    wrong["scenarios"][0]["generator_config"]["treads"] = json!(1);
    wrong["generator_hosts"][0] = json!("g1:99999");
    let mut missing = k6_without_file();
    missing["generator_hosts"] = json!([]);
    let (code, said) = checked(folder.path(), &[("a.json", wrong), ("b.json", missing)], &[]);
    assert_eq!(code, Some(2), "{said}");
    for expected in [
        "a.json:1:",
        "`generator_config` of h2load has no key `treads`",
        "a similar one exists: `threads`",
        "`generator_hosts: g1:99999`: `99999` is not a port",
        "b.json:1:",
        "cannot read `",
        "have 3 problems",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}

fn k6_without_file() -> Value {
    ptr("k6", 80, "nowhere.js", &json!({}))
}

#[test]
fn the_plan_of_a_ptr_file_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |args: &[&str]| {
        let output = squall().current_dir(folder.path()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        // The plan's own name is that of its file.
        text(&output.stdout).split_once('\n').unwrap().1.to_owned()
    };
    for file in [wrk(), h2load(), idle(), handshakes(None)] {
        fs::write(folder.path().join("a.json"), file.to_string()).unwrap();
        let flags = ["--user", "me", "--bastion-host", "b:2222"];
        let converted =
            squall().current_dir(folder.path()).args(["convert", "a.json", "plan.yaml"]).args(flags).output();
        assert_eq!(converted.unwrap().status.code(), Some(0));
        let of_file = shown(&[&["plan", "show", "a.json"][..], &flags].concat());
        assert_eq!(shown(&["plan", "show", "plan.yaml"]), of_file);
        assert!(of_file.contains("each of 10.88.2.11, 10.88.2.12:22, 10.88.2.13"), "{of_file}");
    }
}

#[test]
fn without_generators_this_machine_makes_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = wrk();
    file["generator_hosts"] = json!([]);
    fs::write(folder.path().join("a.json"), file.to_string()).unwrap();
    let output = squall().current_dir(folder.path()).args(["run", "--dry-run", "a.json"]).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("local       this machine generates the load"), "{said}{}", text(&output.stderr));
}
