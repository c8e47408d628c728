//! Every rule of RFC 9113 that binds a client: the reaction that it demands, a counted cause, no hang.

use std::fs::File;

use squall_measure::{Cause, Phase};
use squall_testkit::h2::{BODY_BYTES, BODY_FILE, PEERS, Peer, ScriptedPeer};
use tempfile::TempDir;

use crate::squall::{Ended, assert_none_complains, run};

/// Whatever the peer sends.
const RSS_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[test]
fn every_rule_of_http2_is_kept_and_every_breach_is_counted() {
    assert_none_complains(PEERS, |peer| {
        complaint(peer).map(|what| format!("{} {}: {what}", peer.section, peer.name))
    });
}

/// Requests that no server would take are not sent, and would fail by the million without a pause between connections.
#[test]
fn a_server_that_takes_no_header_list_is_not_asked_without_a_pause() {
    let peer = PEERS.iter().find(|peer| peer.name == "a server that takes small header lists only").unwrap();
    let server = ScriptedPeer::start(peer);
    let url = server.url();
    let args = [&[url.as_str(), "-c1", "-d3s"], peer.args].concat();
    let ended = run(&args.iter().copied().filter(|arg| !arg.starts_with("-n")).collect::<Vec<&str>>());
    let failed = ended.count("/totals/failed");
    assert!((1..1000).contains(&failed), "{failed} requests failed in 3 s: {ended:#?}");
    assert_eq!(ended.assert_all_counted(), ended.count("/totals/ok") + failed, "{ended:#?}");
}

/// What is wrong about a run against this peer, if anything is.
fn complaint(peer: &Peer) -> Option<String> {
    let server = ScriptedPeer::start(peer);
    let ended = run_against(peer, &server);
    if !matches!(ended.code, Some(0 | 5)) {
        return Some(format!("exit code {:?}: {}", ended.code, ended.stderr));
    }
    if ended.rss_bytes > RSS_BYTES_MAX {
        return Some(format!("{} bytes of memory", ended.rss_bytes));
    }
    let requests = ended.assert_all_counted();
    let failures = failures(&ended);
    if !peer.failures.iter().any(|expected| names(expected) == failures) {
        return Some(format!("failures {failures:?}: {}", ended.json()["errors"]));
    }
    if ended.count("/totals/ok") + failures.len() as u64 != requests {
        return Some(format!("not every request ended: {}", ended.stdout));
    }
    server.complaint(peer)
}

fn run_against(peer: &Peer, server: &ScriptedPeer) -> Ended {
    let folder = TempDir::new().expect("a temporary folder");
    let body_file = folder.path().join("body");
    File::create(&body_file).and_then(|file| file.set_len(BODY_BYTES as u64)).expect("a sparse file");
    let mut args: Vec<String> =
        [&server.url(), "-c1", "--timeout", "500ms", "-d10s"].map(str::to_owned).to_vec();
    args.extend(peer.args.iter().map(|arg| arg.replace(BODY_FILE, &body_file.display().to_string())));
    if !peer.args.iter().any(|arg| arg.starts_with("-n")) {
        args.push("-n3".to_owned());
    }
    run(&args.iter().map(String::as_str).collect::<Vec<&str>>())
}

/// Causes and phases, one for each failed request, in order.
pub(crate) fn failures(ended: &Ended) -> Vec<(String, String)> {
    let repeat = |(cause, phase, count): (String, String, u64)| vec![(cause, phase); count as usize];
    let mut failures: Vec<_> = ended.errors().into_iter().flat_map(repeat).collect();
    failures.sort_unstable();
    failures
}

/// The same, as they are expected.
pub(crate) fn names(expected: &[(Cause, Phase)]) -> Vec<(String, String)> {
    let name = |value: serde_json::Result<serde_json::Value>| {
        value.expect("names are strings").as_str().unwrap_or_default().to_owned()
    };
    let pair = |(cause, phase): &(Cause, Phase)| {
        (name(serde_json::to_value(cause)), name(serde_json::to_value(phase)))
    };
    let mut names: Vec<_> = expected.iter().map(pair).collect();
    names.sort_unstable();
    names
}
