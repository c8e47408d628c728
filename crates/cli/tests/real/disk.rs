//! A full disk costs the file, not the summary.

use std::process::Command;

use squall_testkit::real::{NginxOptions, Server};

use crate::squall::{Ended, run, start_command};

#[test]
fn a_full_disk_costs_the_output_file_alone() {
    let server = Server::nginx(NginxOptions::default());
    let ended = run(&[&server.url("/"), "-c", "2", "-n", "20", "--out", "json=/dev/full"]);
    assert_eq!(ended.assert_all_counted(), 20);
    assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    assert_eq!(server.into_access_log().len(), 20);
}

/// A file size limit fails like a full disk does, and needs no disk to fill: the plan fits, the result does not.
#[test]
fn a_full_disk_costs_the_saved_run_alone() {
    let server = Server::nginx(NginxOptions::default());
    let ended =
        run_in_bash("trap '' XFSZ; ulimit -f 3; exec \"$@\"", &[&server.url("/"), "-c", "2", "-n", "20"]);
    assert!(ended.stdout.contains("LATENCY"), "{ended:#?}");
    assert!(ended.stderr.contains("run.json"), "{ended:#?}");
    assert!(!ended.stdout.contains("report.html"), "a page that is not there is announced: {ended:#?}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let server = Server::nginx(NginxOptions::default());
    let ended = run_in_bash("set -o pipefail; \"$@\" | true", &[&server.url("/"), "-n", "20", "--no-save"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

/// Runs squall by a bash script, to which it and its arguments are `$@`.
fn run_in_bash(script: &str, args: &[&str]) -> Ended {
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_squall")]).args(args);
    start_command(command).wait()
}
