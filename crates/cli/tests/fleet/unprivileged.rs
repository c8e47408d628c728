//! Generators that are logged in to as a user without privileges, whose shell is dash: with and without `sudo`.

use std::fs;

use squall_testkit::Process;
use squall_testkit::lab::Lab;

use crate::squall::{record, text, wait_until};

/// A plan that sets a kernel setting on these generators, and shows it there while it runs.
fn run(lab: &Lab, hosts: &[&str], sudo: bool) -> (Option<i32>, String) {
    let machine = |host: &&str| {
        let sysctl = format!("sysctl: {{ {SETTING}: 2048 }}, sudo: {sudo}");
        format!("  {host}: {{ ssh: {}, {sysctl} }}\n", Lab::address(host))
    };
    let machines: String = hosts.iter().map(machine).collect();
    let plan = format!(
        "target: http://{}:8080\nssh: {}\nmachines:\n{machines}loads:\n  - {{ http: /, requests: 100, connections: 4 }}\n  \
         - {{ tool: wrk, command: [sh, -c, 'id -un; cat {FILE}'] }}\n",
        Lab::address("target"),
        lab.ssh_settings(),
    );
    fs::write(lab.path("plan.yaml"), plan).unwrap();
    let mut command = lab.command("controller", env!("CARGO_BIN_EXE_squall"));
    command.arg("run").arg(lab.path("plan.yaml")).arg("--results").arg(lab.path("runs"));
    let output = command.env("NO_COLOR", "1").output().unwrap();
    (output.status.code(), text(&output.stderr))
}

fn value(lab: &Lab, host: &str) -> String {
    text(&lab.command(host, "cat").arg(FILE).output().unwrap().stdout).trim().to_owned()
}

#[test]
fn kernel_settings_are_changed_by_sudo_where_it_needs_no_password_and_refused_elsewhere() {
    let lab = Lab::without_privileges(2);
    lab.allow_sudo("g1");
    let mut command = lab.command("target", env!("CARGO_BIN_EXE_squall"));
    command.args(["target", "--listen", "0.0.0.0:8080"]).stdout(std::process::Stdio::null());
    let _target = Process::start(&mut command);
    lab.wait_for_port("target", 8080);
    let before = value(&lab, "g1");
    let announced = format!("g1: sets {SETTING} to 2048 until the end of the run (it is {before})");

    let (code, said) = run(&lab, &["g1"], false);
    assert_eq!(code, Some(2), "{said}");
    let wanted = format!("the kernel setting {SETTING} is {before}, but the plan needs 2048");
    assert!(said.contains(&format!("machine `g1`: {wanted}, and this login may not change it")), "{said}");
    assert!(said.contains("help: ") && said.contains("`sudo: true`"), "{said}");

    let (code, said) = run(&lab, &["g1", "g2"], true);
    assert_eq!(code, Some(2), "{said}");
    let message =
        format!("machine `g2`: {wanted}, and sudo refuses to change it: sudo: a password is required");
    assert!(said.contains(&message) && said.contains("NOPASSWD"), "{said}");
    assert!(record(&lab.path("runs")).is_null(), "nothing was sent");
    wait_until(|| value(&lab, "g1") == before);

    let (code, said) = run(&lab, &["g1"], true);
    // A busy machine makes the verdict worse.
    assert!(matches!(code, Some(0 | 5)), "{said}");
    assert!(said.contains(&announced), "{said}");
    let run = record(&lab.path("runs"));
    let raw = fs::read_dir(lab.path("runs")).unwrap().next().unwrap().unwrap().path();
    let raw = fs::read_to_string(raw.join(run["tools"][0]["raw_file"].as_str().unwrap())).unwrap();
    assert!(raw.contains("load\n") && raw.contains("\n2048"), "{raw}");
    wait_until(|| value(&lab, "g1") == before);
    for host in ["g1", "g2"] {
        wait_until(|| lab.programs(host).is_empty() && lab.files(host).is_empty());
    }
}

const SETTING: &str = "net.core.somaxconn";
const FILE: &str = "/proc/sys/net/core/somaxconn";
