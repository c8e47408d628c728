//! Hooks: commands on machines before and after each step, and comparisons of two builds of a server by them.

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use squall_testkit::Process;

use crate::squall::{Place, assert_code, ok, parts, squall, text, wait_until};

/// What the hooks of a plan wrote, line by line.
fn written(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.folder.path().join("hooks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A plan of two steps; `HOOKS` is the file that its hooks write to.
fn two_steps(place: &Place, before_second: &str) -> String {
    let hooks = place.folder.path().join("hooks");
    "
target: TARGET
machines: { g: local, shop: local }
before: { run: 'echo all before $SQUALL_STEP >> HOOKS', on: shop }
after: { run: 'echo all after $SQUALL_STEP >> HOOKS', on: shop }
steps:
  - name: first
    loads: [{ http: /, requests: 20, connections: 2 }]
    before:
      - { run: 'echo one >> HOOKS', on: shop }
      - { run: [sh, -c, 'echo two >> HOOKS'], on: [shop] }
    after: { run: 'echo three >> HOOKS', on: shop }
  - name: second
    loads: [{ http: /, requests: 30, connections: 2, name: more }]
    before: { run: 'SECOND', on: shop }
"
    .replace("SECOND", before_second)
    .replace("HOOKS", &hooks.to_string_lossy())
}

#[test]
fn hooks_run_before_and_after_each_step_in_their_order() {
    let place = Place::new();
    let (record, output) = place.run(&two_steps(&place, "true"), &[]);
    assert_code(&record, &output, 0);
    let expected = [
        "all before first",
        "one",
        "two",
        "three",
        "all after first",
        "all before second",
        "all after second",
    ];
    assert_eq!(written(&place), expected);
    assert_eq!(parts(&record, "machine"), [("g".to_owned(), 50)], "a machine with hooks makes no load");
    let events: Vec<&str> =
        record["events"].as_array().unwrap().iter().map(|event| event["label"].as_str().unwrap()).collect();
    assert_eq!(events[0], "first");
    assert!(events[1].starts_with("after `first`, shop: echo three"), "{events:?}");
    assert!(events.contains(&"before `second`, shop: true"), "{events:?}");
}

#[test]
fn a_hook_that_fails_before_the_first_step_sends_nothing() {
    let place = Place::new();
    let plan = two_steps(&place, "true").replace("echo one", "echo no such unit >&2; exit 3; echo");
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("machine `shop`: hook `echo no such unit"), "{said}");
    assert!(said.contains("ended with exit code 3: no such unit"), "{said}");
    assert!(record.is_null());
    assert_eq!(written(&place)[1..], ["three", "all after first"], "what was begun is cleared away");
    assert_eq!(place.logged(), 0);
}

#[test]
fn a_hook_that_fails_later_ends_the_run_and_keeps_what_was_measured() {
    let place = Place::new();
    let (record, output) = place.run(&two_steps(&place, "exit 7"), &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("hook `exit 7` ended with exit code 7: the run ends"), "{said}");
    assert_eq!(ok(&record["total"]), 20);
    let steps = record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "step");
    let problems: Vec<&Value> = steps.map(|step| &step["problem"]).collect();
    assert!(problems[0].is_null() && problems[1].as_str().unwrap().contains("exit code 7"), "{problems:?}");
    assert_eq!(place.logged(), 20);
}

#[test]
fn what_is_wrong_with_hooks_is_reported_with_its_place() {
    let place = Place::new();
    for (plan, expected) in [
        ("before: { run: ls, on: shp }", "plan.yaml:3:24: there is no machine `shp`"),
        ("before: { run: ls }", "plan.yaml:3:16: the hook does not name its machines"),
        ("before: { on: shop }", "plan.yaml:3:9: a hook needs `run`"),
        ("before: { run: ls, on: shop, timeout: soon }", "plan.yaml:3:39: `timeout: soon`: not a number"),
        ("after: { run: ls, on: [g, shop] }", "no machine is left to generate the load: all are used"),
        (
            "monitors: [{ machine: shop, from: g }]",
            "`from` is only for pages: `shop` is read on that machine itself",
        ),
        ("monitors: [{ nginx: 'http://x/', from: h }]", "there is no machine `h`"),
    ] {
        let plan = format!(
            "target: TARGET\nmachines: {{ g: local, shop: local }}\n{plan}\nloads: [{{ http: / }}]\n"
        );
        let (_, output) = place.run(&plan, &["--dry-run"]);
        let said = text(&output.stderr);
        assert!(said.contains(expected) && output.status.code() == Some(2), "{plan}: {said}");
    }
}

#[test]
fn two_builds_of_a_server_are_compared_with_its_cpu_and_memory() {
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = place.folder.path();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_squall"), folder.join("server")).unwrap();
    let start = format!(
        "{0}/server target --listen 127.0.0.1:{port} > {0}/$build.out 2>&1 & echo $! > {0}/pid; \
         until {0}/server http http://127.0.0.1:{port}/ -n 1 -c 1 --no-save -qq; do sleep 0.05; done",
        folder.display(),
    );
    place.write_as_is("start.sh", &format!("build=$1\n{start}\n"));
    let plan = place.write_as_is(
        "plan.yaml",
        &format!(
            "target: http://127.0.0.1:{port}
machines: {{ g: local, shop: local }}
monitors: [{{ machine: shop, process: server }}]
before: {{ run: 'sh {0}/start.sh ${{build}}', on: shop }}
after: {{ run: 'kill $(cat {0}/pid)', on: shop }}
loads: [{{ http: /, connections: 2, duration: 2500ms }}]
",
            folder.display()
        ),
    );
    let with = |build: &str| format!("{} --var build={build}", plan.display());
    let json = folder.join("answer.json");
    let output = squall()
        .args([
            "compare",
            "--run",
            &with("old"),
            &with("new"),
            "--repeat",
            "1",
            "--names",
            "old,new",
            "--results",
        ])
        .arg(folder.join("studies"))
        .arg("--out")
        .arg(format!("json={}", json.display()))
        .output()
        .unwrap();
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(output.status.success(), "{said}");
    let answer: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let findings = answer["pairs"][0]["findings"].as_array().unwrap();
    let value = |metric: &str| {
        let finding = findings.iter().find(|finding| finding["metric"] == metric);
        finding.and_then(|finding| finding["b"][0].as_f64())
    };
    assert!(value("server cpu/request").is_some_and(|us| us > 0.0), "{said}");
    assert!(value("server rss").is_some_and(|bytes| bytes > 1e6), "{said}");
    assert!(said.contains("server rss"), "{said}");
    assert!(folder.join("old.out").exists() && folder.join("new.out").exists(), "each build was started");
}

#[test]
fn a_hook_ends_when_its_agent_is_killed() {
    let place = Place::new();
    let file = |name: &str| place.folder.path().join(name);
    let plan = place.write(
        "plan.yaml",
        &format!(
            "target: TARGET\nmachines: {{ g: local, shop: {{ command: [sh, -c, 'echo $$ > {0}/agent; exec {1} agent'] }} }}\n\
             before: {{ run: 'echo $$ > {0}/hook; exec sleep 600', on: shop }}\nloads: [{{ http: /, requests: 5, on: g }}]\n",
            place.folder.path().display(),
            env!("CARGO_BIN_EXE_squall"),
        ),
    );
    let mut command = squall();
    command.arg("run").arg(plan).arg("--no-save").stderr(fs::File::create(file("err")).unwrap());
    let mut run = Process::start(&mut command);
    let pid = |name: &str| fs::read_to_string(file(name)).unwrap_or_default().trim().to_owned();
    wait_until(|| !pid("hook").is_empty());
    // A process that has ended may still wait to be reaped by its parent.
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid("hook"))).unwrap_or_default();
        stat.contains("(sleep) ") && !stat.contains("(sleep) Z")
    };
    wait_until(runs);
    assert!(Command::new("kill").args(["-KILL", &pid("agent")]).status().unwrap().success());
    wait_until(|| !runs());
    let code = run.wait(Duration::from_secs(60)).unwrap().code();
    let said = fs::read_to_string(file("err")).unwrap();
    assert!(code == Some(2) && said.contains("shop"), "{code:?} {said}");
    assert_eq!(place.logged(), 0);
}
