//! Three generators and a target behind a bastion, with real `sshd`s, in network namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use squall_testkit::Process;
use squall_testkit::lab::Lab;

use crate::squall::{ok, parts, record, text, wait_until};

/// The lab with a target that logs.
struct Site {
    lab: Lab,
    target: Option<Process>,
}

impl Site {
    fn new() -> Self {
        let lab = Lab::new(3);
        let mut command = lab.command("target", env!("CARGO_BIN_EXE_squall"));
        command.args(["target", "--listen", "0.0.0.0:80", "--log"]).arg(lab.path("log"));
        command.stdout(fs::File::create(lab.path("target.out")).unwrap());
        let target = Process::start(&mut command);
        lab.wait_for_port("target", 80);
        Self { lab, target: Some(target) }
    }

    /// A plan whose machines are the three generators; `TARGET` is the target's watched machine.
    fn plan(&self, rest: &str) -> PathBuf {
        let machines = ["g1", "g2", "g3"].map(|name| format!("  {name}: {}\n", Lab::address(name)));
        let text = format!(
            "target: http://{}\nssh: {}\nmachines:\n{}{rest}",
            Lab::address("target"),
            self.lab.ssh_settings(),
            machines.concat(),
        );
        let path = self.lab.path("plan.yaml");
        fs::write(&path, text).unwrap();
        path
    }

    fn controller(&self, rest: &str) -> Command {
        let mut command = self.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
        command.arg("run").arg(self.plan(rest)).arg("--results").arg(self.lab.path("runs"));
        command.env("NO_COLOR", "1");
        command
    }

    fn run(&self, rest: &str) -> (Value, Output) {
        let output = self.controller(rest).output().unwrap();
        (record(&self.lab.path("runs")), output)
    }

    fn start(&self, rest: &str) -> Process {
        let mut command = self.controller(rest);
        command.stderr(fs::File::create(self.lab.path("controller.err")).unwrap());
        Process::start(command.stdout(std::process::Stdio::null()))
    }

    /// Requests that the target has seen so far, as its socket counters tell.
    fn has_load(&self) -> bool {
        let output = self.lab.command("target", "ss").args(["-Htn", "sport = :80"]).output().unwrap();
        !output.stdout.is_empty()
    }

    /// The target's log, complete.
    fn log(mut self) -> Vec<String> {
        let mut target = self.target.take().unwrap();
        let _ = Command::new("kill").args(["-TERM", &target.pid().to_string()]).status();
        target.wait(Duration::from_secs(20)).unwrap();
        fs::read_to_string(self.lab.path("log")).unwrap().lines().map(str::to_owned).collect()
    }

    /// Nothing of ours runs or lies on a machine.
    fn is_clean(&self, host: &str) -> bool {
        self.lab.programs(host).is_empty() && self.lab.files(host).is_empty()
    }
}

#[test]
fn two_steps_of_three_loads_run_behind_a_bastion_and_nothing_stays() {
    let site = Site::new();
    let (record, output) = site.run(
        "
steps:
  - name: first
    loads:
      - { http: /anything/g1, requests: 301, connections: 4, on: g1, name: one }
      - { http: /anything/g2, requests: 202, connections: 4, on: g2, name: two }
      - { http: /anything/g3, requests: 103, connections: 4, on: g3, name: three }
  - name: second
    loads:
      - { http: /bytes/100, requests: 1000, connections: 30, name: together }
      - { http: /status/204, rate: 100/s, duration: 1s, name: steady }
      - { http: /, requests: 5, connections: 1, name: few, start_after: 500ms }
",
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let loads = [("one", 301), ("two", 202), ("three", 103), ("together", 1000), ("steady", 100), ("few", 5)];
    assert_eq!(parts(&record, "load"), loads.map(|(name, count)| (name.to_owned(), count)));
    let settled: u64 = loads.iter().map(|(_, count)| count).sum();
    assert_eq!(record["total"]["requests_started"], settled);
    for host in ["g1", "g2", "g3"] {
        wait_until(|| site.is_clean(host));
    }
    let machines: Vec<(&str, &str)> = record["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["kind"] == "machine")
        .map(|part| (part["name"].as_str().unwrap(), part["facts"]["start_skew"].as_str().unwrap()))
        .collect();
    let log = site.log();
    assert_eq!(log.len() as u64, settled);
    let first = |path: &str| {
        let own = log.iter().filter(|line| line.split(' ').nth(3) == Some(path));
        own.map(|line| line.split(' ').next().unwrap().parse::<f64>().unwrap()).fold(f64::MAX, f64::min)
    };
    let starts = ["/anything/g1", "/anything/g2", "/anything/g3"].map(first);
    let skew =
        starts.iter().fold(f64::MIN, |a, b| a.max(*b)) - starts.iter().fold(f64::MAX, |a, b| a.min(*b));
    // A figure for people: a busy machine must not fail the test.
    println!(
        "first requests of three generators lie {:.2} ms apart; by their own clocks {machines:?}",
        skew * 1e3
    );
}

#[test]
fn what_is_wrong_with_any_machine_is_told_before_any_load_starts() {
    let mut site = Site::new();
    site.lab.change_host_key("g2");
    site.lab.stop_sshd("g3");
    let (record, output) = site.run("loads: [{ http: /, requests: 5 }]\n");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("machine `g2`") && said.contains("its host key has changed, and is refused"),
        "{said}"
    );
    assert!(said.contains("machine `g3`") && said.contains("nothing listens on its ssh port"), "{said}");
    assert!(said.contains("2 problems, nothing was sent"), "{said}");
    assert!(record.is_null());
    wait_until(|| site.is_clean("g1"));
    assert!(site.log().is_empty());
}

#[test]
fn a_key_that_is_refused_and_an_address_that_nobody_has_are_told_apart() {
    let site = Site::new();
    let plan = site.lab.path("other.yaml");
    let known = site.lab.path("known_hosts");
    let text_of_plan = format!(
        "ssh: {{ options: ['UserKnownHostsFile={}', ConnectTimeout=2] }}\nmachines:\n  \
         stranger: {{ ssh: root@{}, key: {} }}\n  nobody: root@10.88.1.77\nloads: [{{ http: 'http://10.88.2.100/' }}]\n",
        known.display(),
        Lab::BASTION,
        site.lab.path("host-key").display(),
    );
    fs::write(&plan, text_of_plan).unwrap();
    let mut command = site.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
    let output = command.arg("run").arg(plan).arg("--no-save").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("machine `stranger`: `root@10.88.1.2`: it refuses the key"), "{said}");
    assert!(said.contains("machine `nobody`: `root@10.88.1.77`: there is no way to it"), "{said}");
}

#[test]
fn a_machine_whose_cable_is_pulled_is_lost_and_cleans_up_by_itself() {
    let site = Site::new();
    let mut run = site.start("loads: [{ http: /delay/5, connections: 30, duration: 15s }]\n");
    wait_until(|| site.has_load());
    std::thread::sleep(Duration::from_secs(2));
    site.lab.set_link("g2", false);
    wait_until(|| site.is_clean("g2"));
    let status = run.wait(Duration::from_secs(60)).unwrap();
    let said = fs::read_to_string(site.lab.path("controller.err")).unwrap();
    assert!(said.contains("lost machine g2"), "{said}");
    let record = record(&site.lab.path("runs"));
    assert!(status.code().is_some() && !record.is_null(), "{said}");
    let machines = parts(&record, "machine");
    assert!(machines.iter().all(|(_, count)| *count > 0), "{machines:?}");
    assert_eq!(machines.iter().map(|(_, count)| count).sum::<u64>(), ok(&record["total"]));
    assert!(record["verdict"]["reasons"].to_string().contains("machines_lost"));
    for host in ["g1", "g3"] {
        wait_until(|| site.is_clean(host));
    }
}

#[test]
fn machines_are_clean_when_the_controller_is_killed() {
    let site = Site::new();
    let mut run = site.start("loads: [{ http: /delay/5, connections: 30, duration: 1m }]\n");
    wait_until(|| site.has_load());
    run.kill();
    for host in ["g1", "g2", "g3"] {
        wait_until(|| site.is_clean(host));
    }
}

#[test]
fn a_bastion_that_fails_loses_all_machines_and_keeps_what_was_measured() {
    let mut site = Site::new();
    let mut run = site.start("loads: [{ http: /delay/5, connections: 30, duration: 1m }]\n");
    wait_until(|| site.has_load());
    std::thread::sleep(Duration::from_secs(3));
    site.lab.stop_sshd("bastion");
    run.wait(Duration::from_secs(60)).unwrap();
    let record = record(&site.lab.path("runs"));
    assert!(ok(&record["total"]) > 0);
    assert_eq!(record["verdict"]["status"], "INVALID");
    for host in ["g1", "g2", "g3"] {
        wait_until(|| site.is_clean(host));
    }
}
