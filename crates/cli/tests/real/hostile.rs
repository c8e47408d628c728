//! Every hostile server gets a counted cause, and costs neither time nor memory nor a panic.

use std::fs::File;

use squall_testkit::hostile::{BODY_FILE, FullBacklog, HostileServer, PEERS, Peer};
use tempfile::TempDir;

use crate::squall::{Ended, assert_none_complains, run};

/// Whatever the peer sends.
const RSS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Larger than the socket buffers of both ends together.
const BODY_BYTES: u64 = 64 * 1024 * 1024;

#[test]
fn hostile_servers_are_counted_by_cause_and_phase() {
    assert_none_complains(PEERS, complaint);
}

#[test]
fn a_full_backlog_is_a_connect_timeout() {
    let server = FullBacklog::start();
    let ended = run(&[&server.url(), "-c", "1", "-n", "1", "--connect-timeout", "300ms"]);
    assert_eq!(ended.errors(), [("connect_timeout".to_owned(), "connecting".to_owned(), 1)], "{ended:#?}");
}

/// What is wrong about a run against this peer, if anything is.
fn complaint(peer: &Peer) -> Option<String> {
    let ended = run_against(peer);
    let wrong = |what: String| Some(format!("{}: {what}", peer.name));
    if !matches!(ended.code, Some(0 | 4 | 5)) {
        return wrong(format!("exit code {:?}: {}", ended.code, ended.stderr));
    }
    if ended.rss_bytes > RSS_BYTES_MAX {
        return wrong(format!("{} bytes of memory", ended.rss_bytes));
    }
    // A redirect that is followed is a request of its own.
    if ended.assert_all_counted() < 2 {
        return wrong(format!("fewer requests than asked for: {}", ended.stdout));
    }
    if ended.count("/totals/ok") > 0 && !peer.expect.ok {
        return wrong("counted as a success".to_owned());
    }
    let unexpected = ended.errors().into_iter().find(|error| !is_expected(peer, error))?;
    wrong(format!("counted as {} while {}: {}", unexpected.0, unexpected.1, example(&ended)))
}

fn run_against(peer: &Peer) -> Ended {
    let folder = TempDir::new().expect("a temporary folder");
    let (body_file, ca_file) = (folder.path().join("body"), folder.path().join("ca.pem"));
    File::create(&body_file).and_then(|file| file.set_len(BODY_BYTES)).expect("a sparse file");
    let server = HostileServer::start(peer);
    let mut args = vec![server.url(), "-c1".to_owned(), "-n2".to_owned()];
    args.extend(peer.args.iter().map(|arg| arg.replace(BODY_FILE, &body_file.display().to_string())));
    if !peer.args.contains(&"--timeout") {
        args.extend(["--timeout".to_owned(), "500ms".to_owned()]);
    }
    if let Some(pem) = server.ca_pem() {
        std::fs::write(&ca_file, pem).expect("the temporary folder is writable");
        args.extend(["--cacert".to_owned(), ca_file.display().to_string()]);
    }
    run(&args.iter().map(String::as_str).collect::<Vec<&str>>())
}

fn is_expected(peer: &Peer, (cause, phase, _): &(String, String, u64)) -> bool {
    let name = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|name| name.as_str().map(str::to_owned))
    };
    peer.expect.failures.iter().any(|(expected_cause, expected_phase)| {
        name(serde_json::to_value(expected_cause)).as_ref() == Some(cause)
            && name(serde_json::to_value(expected_phase)).as_ref() == Some(phase)
    })
}

fn example(ended: &Ended) -> String {
    ended.json()["errors"][0]["example"].to_string()
}
