//! Monitors: found before the load, read by machines of the plan, also behind a bastion.

use std::process::Command;

use serde_json::Value;
use squall_testkit::Process;
use squall_testkit::lab::Lab;
use squall_testkit::real::{NginxOptions, Server};

use crate::site::Site;
use crate::squall::{Place, assert_code, ok, text};

/// Names of the series that a source has, each with how often it was seen.
fn seen(record: &Value, source: &str) -> Vec<(String, usize)> {
    let own = record["monitors"].as_array().unwrap().iter().filter(|monitor| monitor["source"] == source);
    own.map(|monitor| {
        (monitor["name"].as_str().unwrap().to_owned(), monitor["samples"].as_array().unwrap().len())
    })
    .collect()
}

#[test]
fn what_cannot_be_monitored_is_reported_before_anything_is_sent() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { g: local, shop: local }
monitors:
  - { machine: shop, process: [squal, no-such-program-here] }
  - { machine: shop, process: 4194304 }
  - nginx: http://127.0.0.1:1/status
  - { h2o: SAFE/, name: safe, from: shop }
  - { nginx: TARGET/, name: other }
  - { prometheus: TARGET/status/503, name: down }
loads: [{ http: /, requests: 5 }]
";
    // A handshake with a server that does not speak TLS.
    let plan = plan.replace("SAFE", &place.url().replace("http:", "https:"));
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for problem in [
        "machine `shop`: no process `squal` runs there\n      a similar one runs: `squall`",
        "machine `shop`: no process `no-such-program-here` runs there\n      start it, or use its name in `ps -e`",
        "machine `shop`: no process `4194304` runs there",
        "monitor `127.0.0.1:1`: g and 1 other machine cannot read it: Connection refused",
        "monitor `safe`: shop cannot read it: ",
        "monitor `other`: g and 1 other machine cannot read it: it is not nginx's `stub_status` page",
        "monitor `down`: g and 1 other machine cannot read it: the server answered with status 503",
        "7 problems, nothing was sent",
    ] {
        assert!(said.contains(problem), "{problem}\n{said}");
    }
    assert!(record.is_null());
    assert_eq!(place.logged(), 4, "two machines read two pages of the target once, and sent nothing else");
}

#[test]
fn a_series_that_never_comes_is_reported_and_nothing_else_suffers() {
    let place = Place::new();
    let page = place.write_as_is("metrics.txt", "up 1\n");
    let mut server = Command::new("python3");
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(page.parent().unwrap());
    let log = place.folder.path().join("server.out");
    server.stdout(std::fs::File::create(&log).unwrap()).stderr(std::process::Stdio::null());
    let _server = Process::start(&mut server);
    let port = || {
        let said = std::fs::read_to_string(&log).unwrap();
        said.split_whitespace().skip_while(|word| *word != "port").nth(1).map(str::to_owned)
    };
    crate::squall::wait_until(|| port().is_some());
    let plan = format!(
        "
target: TARGET
monitors: [{{ prometheus: 'http://127.0.0.1:{}/metrics.txt', series: [up, no_such], name: odd }}]
loads: [{{ http: /delay/5, connections: 2, duration: 1500ms }}]
",
        port().unwrap(),
    );
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert_code(&record, &output, 0);
    assert!(said.contains("monitor `odd` does not report `no_such` yet"), "{said}");
    assert!(said.contains("monitor odd never reported `no_such`"), "{said}");
    assert!(record["events"].to_string().contains("monitor odd never reported `no_such`"));
    let seen = seen(&record, "odd");
    assert!(matches!(&seen[..], [(name, count)] if name == "up" && *count > 0), "{seen:?}");
}

#[test]
fn a_machine_without_a_part_of_the_load_is_a_generator_all_the_same() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { a: local, b: local, shop: local }
monitors: [{ machine: shop }]
loads: [{ http: /delay/5, connections: 1, requests: 300 }]
";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 0);
    let mut sources: Vec<&str> =
        record["monitors"].as_array().unwrap().iter().map(|one| one["source"].as_str().unwrap()).collect();
    sources.dedup();
    sources.sort_unstable();
    sources.dedup();
    assert_eq!(sources, ["generator a", "generator b", "target shop"]);
}

/// Nothing is read of the first machines while the last one is opened, which takes longer than `lost_after`.
#[test]
fn a_machine_is_not_silent_while_others_are_being_reached() {
    let place = Place::new();
    let plan = format!(
        "
target: TARGET
lost_after: 3s
machines: {{ early: local, other: local, late: {{ command: [sh, -c, 'sleep 5; exec {} agent'] }} }}
monitors: [{{ machine: early, process: squall }}]
loads: [{{ http: /, requests: 20, connections: 2 }}]
",
        env!("CARGO_BIN_EXE_squall")
    );
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    assert!(!text(&output.stderr).contains("lost"), "{}", text(&output.stderr));
    assert_eq!(place.logged(), 20);
}

/// A real nginx on the target, which only machines behind the bastion reach.
fn nginx(lab: &Lab) -> Process {
    let folder = lab.path("nginx");
    std::fs::create_dir(&folder).unwrap();
    let config = "daemon off; user root; worker_processes 1; pid nginx.pid; error_log error.log;
events { worker_connections 64; }
http { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
server { listen 8080; location = /status { stub_status; } } }";
    std::fs::write(folder.join("nginx.conf"), config).unwrap();
    let mut command = lab.command("target", "nginx");
    let folder = folder.to_string_lossy().into_owned();
    let process = Process::start(command.args(["-p", &folder, "-c", "nginx.conf", "-e", "error.log"]));
    lab.wait_for_port("target", 8080);
    process
}

#[test]
fn a_page_behind_a_bastion_is_read_by_a_machine_that_reaches_it() {
    let site = Site::new();
    let _nginx = nginx(&site.lab);
    let target = Lab::address("target");
    let plan = format!(
        "  shop: {target}
monitors:
  - {{ machine: shop, process: nginx }}
  - nginx: http://{target}:8080/status
  - {{ nginx: 'http://127.0.0.1:8080/status', from: shop, name: inside }}
loads: [{{ http: /delay/5, connections: 3, duration: 2500ms }}]
"
    );
    let (record, output) = site.run(&plan);
    let said = text(&output.stderr);
    assert_code(&record, &output, 0);
    assert!(said.contains(&format!("monitor `{target}:8080` is read by g1")), "{said}");
    assert!(ok(&record["total"]) > 0);
    for (source, series) in [
        (format!("target {target}:8080"), "connections active"),
        ("inside".to_owned(), "requests"),
        ("target shop".to_owned(), "nginx rss"),
    ] {
        let seen = seen(&record, &source);
        assert!(seen.iter().any(|(name, count)| name == series && *count > 0), "{source}: {seen:?}");
    }
    site.wait_until_clean();
}

#[test]
fn ptr_files_take_monitors_from_the_command_line_and_from_a_plan_next_to_them() {
    let site = Site::new();
    let _nginx = nginx(&site.lab);
    let (target, g1) = (Lab::address("target"), Lab::address("g1"));
    let write = |name: &str, text: &str| {
        let path = site.lab.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let ptr = serde_json::json!({
        "target_host": format!("{target}:80"), "generator_hosts": [g1], "generator_driver": "wrk",
        "scenarios": [{"desc": "one", "target_file": "/delay/5", "generator_config": {"connections": 2, "duration": 3}}],
    });
    let ptr = write("ptr.json", &ptr.to_string());
    let hooks = site.lab.path("hooks");
    let plan = format!(
        "monitors: [{{ nginx: 'http://{target}:8080/status', name: page, from: {g1} }}]\n\
         before: {{ run: 'echo $SQUALL_STEP >> {}', on: {g1} }}\nthresholds: [{{ monitor: {target} nginx rss, rule: 'max>1' }}]\n",
        hooks.display(),
    );
    let plan = write("extras.yaml", &plan);
    let known = site.lab.path("known_hosts");
    let config = write("ssh_config", &format!("UserKnownHostsFile {}\n", known.display()));
    let results = site.lab.path("ptr-runs");
    let run = |monitor: &str, more: &[&str]| {
        let mut command = site.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
        command.args(["run", "--user", "root", "--bastion-host", Lab::BASTION, "--test-config"]).arg(&ptr);
        command.arg("--ssh-keyfile").arg(site.lab.key()).arg("--ssh-config").arg(&config);
        command.arg(&plan).args(["--monitor", monitor]).arg("--results").arg(&results).args(more);
        command.env("NO_COLOR", "1").output().unwrap()
    };
    let output = run("shop: process=nginx", &["--dry-run"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`--monitor shop: process=nginx`: there is no machine `shop`"), "{said}");
    let output = run("target: process=nginx", &[]);
    let record = crate::squall::record(&results);
    assert_code(&record, &output, 0);
    for (source, series) in
        [(format!("target {target}"), "nginx rss"), ("page".to_owned(), "connections active")]
    {
        let seen = seen(&record, &source);
        assert!(seen.iter().any(|(name, count)| name == series && *count > 0), "{source}: {seen:?}");
    }
    assert_eq!(std::fs::read_to_string(hooks).unwrap(), "one\n");
    assert_eq!(record["thresholds"][0]["ok"], true, "{}", record["thresholds"]);
}

#[test]
fn a_page_whose_machine_is_lost_is_read_by_another_one_where_it_may() {
    let nginx = Server::nginx(NginxOptions::default());
    let place = Place::new();
    let plan = format!(
        "
target: TARGET
machines: {{ goes: {{ command: [sh, -c, 'timeout -s KILL 4 \"$0\" agent', {:?}] }}, stays: local }}
monitors:
  - {{ nginx: '{url}', name: free }}
  - {{ nginx: '{url}', name: bound, from: goes }}
allow_lost: 1
loads: [{{ http: /delay/5, connections: 2, duration: 7s }}]
",
        env!("CARGO_BIN_EXE_squall"),
        url = nginx.url("/status"),
    );
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert_code(&record, &output, 0);
    assert!(said.contains("monitor `free` is read by goes"), "{said}");
    assert!(said.contains("monitor `free` is read by stays from here on"), "{said}");
    assert!(
        said.contains("monitor `bound` is no longer read: no other machine can, or is allowed to"),
        "{said}"
    );
    let events = record["events"].as_array().unwrap();
    let lost = events.iter().find(|event| event["label"].as_str().unwrap().starts_with("lost machine"));
    let lost_s = lost.unwrap()["at_s"].as_f64().unwrap();
    // Each series goes on as one.
    for (source, goes_on) in [("free", true), ("bound", false)] {
        let own = record["monitors"].as_array().unwrap().iter().filter(|monitor| monitor["source"] == source);
        let ends: Vec<(&str, f64)> = own
            .map(|monitor| {
                let last = monitor["samples"].as_array().unwrap().last().unwrap();
                (monitor["name"].as_str().unwrap(), last[0].as_f64().unwrap())
            })
            .collect();
        let mut names: Vec<&str> = ends.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ends.len(), "{ends:?}");
        assert!(
            ends.iter().all(|(_, end)| (*end > lost_s) == goes_on) && !ends.is_empty(),
            "{lost_s} {ends:?}"
        );
    }
}
