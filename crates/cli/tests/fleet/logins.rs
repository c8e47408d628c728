//! Many machines behind a bastion whose `sshd` has its default settings.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};

use squall_testkit::lab::Lab;

use crate::squall::{parts, record, text, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_squall");

/// A lab whose farm stands for so many generators. They have the program, and find out quickly that it is the same one.
fn farm(count: u32) -> Lab {
    let lab = Lab::with_farm(count);
    let digest = Command::new("sha256sum").arg(PROGRAM).output().unwrap().stdout;
    lab.install("farm", "sha256sum", &format!("#!/bin/sh\necho '{}'\n", text(&digest).trim()));
    std::os::unix::fs::symlink(PROGRAM, lab.path("bin-farm").join("squall")).unwrap();
    lab
}

/// Has each of the farm's addresses make one request.
fn run(lab: &Lab, count: u32, ssh: &str) -> Output {
    // On a busy machine, so many agents take longer to give a sign of life than the default allows.
    let mut plan = format!("ssh: {ssh}\nlost_after: 5m\nmachines:\n");
    for number in 1..=count {
        writeln!(plan, "  f{number}: {}", Lab::farm_address(number)).unwrap();
    }
    let url = format!("http://{}:8080/", Lab::address("target"));
    writeln!(plan, "loads: [{{ http: '{url}', requests: {count}, connections: {count}, threads: 1 }}]")
        .unwrap();
    fs::write(lab.path("plan.yaml"), plan).unwrap();
    let mut target = lab.command("target", PROGRAM);
    target.args(["target", "--listen", "0.0.0.0:8080"]).stdout(std::process::Stdio::null());
    let _target = squall_testkit::Process::start(&mut target);
    lab.wait_for_port("target", 8080);
    let mut command = lab.command("controller", PROGRAM);
    command.arg("run").arg(lab.path("plan.yaml")).arg("--results").arg(lab.path("runs"));
    command.env("NO_COLOR", "1").output().unwrap()
}

fn logins(lab: &Lab, host: &str) -> usize {
    lab.sshd_log(host).matches("Accepted publickey").count()
}

#[test]
fn a_hundred_generators_behind_a_default_bastion_log_in_and_the_bastion_is_asked_once() {
    let lab = farm(100);
    let output = run(&lab, 100, &lab.ssh_settings());
    let said = text(&output.stderr);
    let record = record(&lab.path("runs"));
    let machines = parts(&record, "machine");
    assert_eq!(machines.len(), 100, "{said}");
    assert!(machines.iter().all(|(_, ok)| *ok == 1), "{machines:?}\n{said}\n{}", text(&output.stdout));
    assert_eq!((logins(&lab, "bastion"), logins(&lab, "farm")), (1, 100));
}

#[test]
fn a_bastion_of_the_users_own_configuration_is_shared_as_well() {
    let lab = farm(12);
    let config = lab.path("ssh-config");
    let text_of_config = format!(
        "Host 10.88.*\n  User root\n  IdentityFile {}\n  UserKnownHostsFile {}\nHost 10.88.2.*\n  ProxyJump {}\n",
        lab.key().display(),
        lab.path("known_hosts").display(),
        Lab::BASTION,
    );
    fs::write(&config, text_of_config).unwrap();
    let output = run(&lab, 12, &format!("{{ config: {} }}", config.display()));
    assert_eq!(parts(&record(&lab.path("runs")), "machine").len(), 12, "{}", text(&output.stderr));
    assert_eq!(logins(&lab, "bastion"), 1);
}

#[test]
fn a_bastion_that_drops_logins_is_tried_again_and_the_cause_is_shown() {
    let mut lab = farm(2);
    lab.configure_sshd("bastion", "MaxStartups 1:100:1\n");
    // A connection that never logs in takes the only place.
    let script = format!("exec 3<>/dev/tcp/{}/22; sleep 600", Lab::BASTION);
    let mut holder = squall_testkit::Process::start(lab.command("controller", "bash").args(["-c", &script]));
    wait_until(|| {
        let args = ["-Htn", "state", "established", "sport = :22"];
        !lab.command("bastion", "ss").args(args).output().unwrap().stdout.is_empty()
    });
    let output = run(&lab, 2, &lab.ssh_settings());
    holder.kill();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the login was dropped (") && said.contains("attempt 2 of 5 in 0.5 s"), "{said}");
    let message =
        "machines f1, f2: jump host `root@10.88.1.2`: the connection was dropped before the login (";
    assert!(said.contains(message) && said.contains(", after 5 attempts"), "{said}");
    let output = run(&lab, 2, &lab.ssh_settings());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn settings_of_the_kernel_are_announced_changed_for_the_run_and_set_back() {
    let lab = farm(1);
    let ports = "net.ipv4.ip_local_port_range";
    let value = || {
        text(
            &lab.command("farm", "cat")
                .arg("/proc/sys/net/ipv4/ip_local_port_range")
                .output()
                .unwrap()
                .stdout,
        )
    };
    let before = value();
    let run = |sysctl: &str| {
        let plan = format!(
            "ssh: {}\nmachines: {{ f1: {{ ssh: {}, sysctl: {{ {sysctl} }} }} }}\n\
             loads: [{{ tool: wrk, command: 'cat /proc/sys/net/ipv4/ip_local_port_range' }}]\n",
            lab.ssh_settings(),
            Lab::farm_address(1),
        );
        fs::write(lab.path("plan.yaml"), plan).unwrap();
        let mut command = lab.command("controller", PROGRAM);
        command.arg("run").arg(lab.path("plan.yaml")).arg("--results").arg(lab.path("runs"));
        text(&command.env("NO_COLOR", "1").output().unwrap().stderr)
    };
    let said = run(&format!("{ports}: 20000 60001"));
    assert!(
        said.contains(&format!(
            "f1: sets {ports} to 20000 60001 until the end of the run (it is 32768 60999)"
        )),
        "{said}"
    );
    let folder = fs::read_dir(lab.path("runs")).unwrap().next().unwrap().unwrap().path();
    let raw = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let raw = raw.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("raw-"));
    let shown: Vec<String> = raw.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(shown[0].contains("20000\t60001"), "{shown:?}");
    wait_until(|| value() == before);
    let said = run("net.no.such: 1");
    assert!(said.contains("machine `f1`: there is no kernel setting net.no.such"), "{said}");
}
