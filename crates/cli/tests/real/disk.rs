//! A full disk costs the file, not the summary.

use std::process::Command;

use squall_testkit::real::{NginxOptions, Server};

use crate::squall::{run, start_command};

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
    let mut command = Command::new("bash");
    let script = "trap '' XFSZ; ulimit -f 3; exec \"$@\"";
    command.args([
        "-c",
        script,
        "bash",
        env!("CARGO_BIN_EXE_squall"),
        &server.url("/"),
        "-c",
        "2",
        "-n",
        "20",
    ]);
    let ended = start_command(command).wait();
    assert!(ended.stdout.contains("LATENCY"), "{ended:#?}");
    assert!(ended.stderr.contains("run.json"), "{ended:#?}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let server = Server::nginx(NginxOptions::default());
    let mut command = Command::new("bash");
    let script = "set -o pipefail; \"$@\" | true";
    command.args([
        "-c",
        script,
        "bash",
        env!("CARGO_BIN_EXE_squall"),
        &server.url("/"),
        "-n",
        "20",
        "--no-save",
    ]);
    let ended = start_command(command).wait();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}
