//! Generators whose local ports run out, in network namespaces of their own: whose limit that is, and which sockets count.

use std::process::{Output, Stdio};

use serde_json::Value;
use squall_testkit::Process;
use squall_testkit::lab::Lab;

use crate::squall::{ok, record, text};

/// A lab whose generator has few local ports, and a target that listens on two ports.
struct FewPorts {
    lab: Lab,
    _targets: Vec<Process>,
}

impl FewPorts {
    fn new() -> Self {
        let lab = Lab::new(1);
        let range = format!(
            "echo {FIRST_PORT} {} > /proc/sys/net/ipv4/ip_local_port_range",
            FIRST_PORT + PORT_COUNT - 1
        );
        assert!(lab.command("g1", "sh").args(["-c", &range]).status().unwrap().success());
        let targets = [8080, 8081].map(|port| {
            let mut command = lab.command("target", env!("CARGO_BIN_EXE_squall"));
            command.args(["target", "--listen", &format!("0.0.0.0:{port}")]);
            let process = Process::start(command.stdout(Stdio::null()));
            lab.wait_for_port("target", port);
            process
        });
        Self { lab, _targets: targets.into() }
    }

    /// `squall http` on the generator.
    fn http(&self, port: u16, flags: &[&str]) -> (Value, Output) {
        let results = self.lab.path(&format!("runs-{port}"));
        let mut command = self.lab.command("g1", env!("CARGO_BIN_EXE_squall"));
        command.args(["http", &format!("http://{}:{port}/", Lab::address("target"))]).args(flags);
        let output = command.arg("--results").arg(&results).env("NO_COLOR", "1").output().unwrap();
        (record(&results), output)
    }

    /// Connections that this generator closed, and whose ports it keeps for a minute.
    fn time_wait_count(&self) -> u64 {
        let mut command = self.lab.command("g1", "ss");
        text(&command.args(["-Htan", "state", "time-wait"]).output().unwrap().stdout).lines().count() as u64
    }
}

fn reasons(record: &Value) -> Vec<&str> {
    let reasons = record["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_generator_without_local_ports_is_the_limit_and_the_target_is_not_called_unreachable() {
    let site = FewPorts::new();
    let (record, output) = site.http(8080, &["-c", "4", "-n", "100", "--no-keepalive"]);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(record["verdict"]["status"], "INVALID");
    assert_eq!(ok(&record["total"]), PORT_COUNT, "{said}");
    assert!(reasons(&record).contains(&"own_failures"), "{said}");
    assert!(said.contains("100 % of the local ports were in use"), "{said}");
    assert!(said.contains("36  out of ports, descriptors or buffers (generator side)"), "{said}");
    assert!(!said.contains("unreachable") && !said.contains("cannot connect"), "{said}");
}

#[test]
fn sockets_in_time_wait_towards_other_endpoints_take_no_ports_of_the_run() {
    let site = FewPorts::new();
    site.http(8080, &["-c", "4", "-n", &PORT_COUNT.to_string(), "--no-keepalive"]);
    let waiting = site.time_wait_count();
    assert!(2 * waiting > PORT_COUNT, "{waiting} sockets are too few to make a difference");
    let (record, output) = site.http(8081, &["-c", "4", "-n", "500"]);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert_eq!(ok(&record["total"]), 500, "{said}");
    assert!(!said.contains("of the local ports were in use"), "{said}");
    assert!(site.time_wait_count() >= waiting, "they were there until the end");
    // The same sockets take the ports of a run to their own endpoint: none is left.
    let (record, output) = site.http(8080, &["-c", "1", "-n", "1"]);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert_eq!((output.status.code(), reasons(&record)[0]), (Some(5), "own_failures"), "{said}");
    assert!(!said.contains("unreachable") && !said.contains("cannot connect"), "{said}");
}

const FIRST_PORT: u64 = 20_000;
const PORT_COUNT: u64 = 64;
