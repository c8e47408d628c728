//! The controller in a cluster: what `deploy/kubernetes` has kubectl create.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::squall::{squall, text, wait_until};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    fs::read_to_string(deploy().join(name)).unwrap()
}

#[test]
fn the_controller_may_do_exactly_what_its_plan_needs() {
    let plan = deploy().join("kubernetes/plan.yaml");
    let output = squall().args(["plan", "manifests"]).arg(plan).output().unwrap();
    let printed = text(&output.stdout);
    let [role, binding, _job] = printed.split("---\n").collect::<Vec<_>>()[..] else {
        panic!("{printed}{}", text(&output.stderr))
    };
    assert_eq!(read("kubernetes/access/role.yaml"), role);
    assert_eq!(read("kubernetes/access/role-binding.yaml"), binding);
}

/// The controller's script, with a squall that does `does`.
fn controller(folder: &Path, does: &str, after_run: &str) -> Child {
    let squall = folder.join("squall");
    fs::write(&squall, format!("#!/bin/sh\necho \"$@\" > {}/ran\n{does}\n", folder.display())).unwrap();
    fs::set_permissions(&squall, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = read("kubernetes/controller.yaml");
    let (_, script) = manifest.split_once("- |\n").unwrap();
    let (script, _) = script.split_once("          env:").unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env("PATH", path).env("AFTER_RUN", after_run).current_dir(folder);
    command.spawn().unwrap()
}

#[test]
fn the_exit_code_of_the_controller_is_that_of_the_run() {
    for (does, after_run, code) in [
        ("exit 0", "", 0),
        ("exit 5", "", 5),
        ("exit 5", "echo stored > stored", 5),
        ("exit 0", "exit 9", 1),
        ("exit 3", "exit 9", 3),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let status = controller(folder.path(), does, after_run).wait().unwrap();
        assert_eq!(status.code(), Some(code), "{does}, {after_run}");
        assert_eq!(folder.path().join("stored").exists(), after_run.contains("stored"));
        let ran = fs::read_to_string(folder.path().join("ran")).unwrap();
        assert_eq!(ran, "run /plan/plan.yaml --results /results\n");
    }
}

#[test]
fn a_controller_that_is_deleted_ends_its_run_first() {
    let folder = tempfile::tempdir().unwrap();
    let does = "trap 'sleep 0.2; exit 7' TERM; : > waits; while :; do sleep 0.1; done";
    let mut controller = controller(folder.path(), does, "echo stored > stored");
    wait_until(|| folder.path().join("waits").exists());
    kill_process(Pid::from_child(&controller), Signal::TERM).unwrap();
    assert_eq!(controller.wait().unwrap().code(), Some(7));
    assert!(folder.path().join("stored").exists());
}

/// Where kubectl is installed.
#[test]
fn kubectl_renders_the_folders() {
    for (folder, kind) in [("kubernetes", "kind: Job\n"), ("kubernetes-cron", "kind: CronJob\n")] {
        let kubectl = std::env::var_os("KUBECTL").unwrap_or_else(|| "kubectl".into());
        let output = match Command::new(kubectl).arg("kustomize").arg(deploy().join(folder)).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            output => output.unwrap(),
        };
        let rendered = text(&output.stdout);
        let kinds = rendered.lines().filter(|line| line.starts_with("kind: ")).count();
        assert_eq!((kinds, rendered.contains(kind)), (5, true), "{rendered}{}", text(&output.stderr));
        assert!(rendered.contains("  name: squall\n  namespace: load\n"), "{rendered}");
    }
}
