//! Rules of QUIC and of HTTP/3 that bind a client: a counted cause, no hang, and the right packets in the figures.

use squall_testkit::quic::{PEERS, Peer, QuicPeer};

use crate::h2_peers::{failures, names};
use crate::squall::{assert_none_complains, run};

/// Whatever the peer sends.
const RSS_BYTES_MAX: u64 = 96 * 1024 * 1024;

#[test]
fn every_rule_of_quic_is_kept_and_every_breach_is_counted() {
    assert_none_complains(PEERS, |peer| {
        complaint(peer).map(|what| format!("{} {}: {what}", peer.section, peer.name))
    });
}

#[test]
fn a_handshake_with_a_retry_is_counted() {
    let peer = PEERS.iter().find(|peer| peer.name == "a Retry").unwrap();
    let server = QuicPeer::start(peer);
    let address = server.address().to_string();
    let ended = run(&["handshake", &address, "--quic", "--insecure", "-c2", "-n10"]);
    assert_eq!((ended.code, ended.count("/totals/ok")), (Some(0), 10), "{ended:#?}");
    assert_eq!(ended.count("/totals/quic/retries"), 10, "{ended:#?}");
}

#[test]
fn a_move_without_a_new_connection_id_is_survived() {
    let peer = PEERS.iter().find(|peer| peer.withholds_ids).unwrap();
    let server = QuicPeer::start(peer);
    let args = ["-c1", "-d2s", "--insecure", "--migrate", "100ms"];
    let ended = run(&[&[&*server.url()], &args[..]].concat());
    let count = |name: &str| ended.count(&format!("/totals/{name}"));
    assert_eq!((ended.code, count("failed"), count("quic/connections")), (Some(0), 0, 1), "{ended:#?}");
    let (moved, survived) = (count("quic/migrations"), count("quic/migrations_survived"));
    // The last move may come too late for an answer.
    assert!(moved >= 2 && survived <= moved && survived + 1 >= moved, "{moved} {survived}");
}

/// What is wrong about a run against this peer, if anything is.
fn complaint(peer: &Peer) -> Option<String> {
    let server = QuicPeer::start(peer);
    let url = server.url();
    let defaults = ["-n", "3", "--timeout", "500ms", "--connect-timeout", "5s"];
    let is_set = |name: &str| peer.args.contains(&name);
    let defaults = defaults.chunks(2).filter(|pair| !is_set(pair[0])).flatten().copied();
    let args = [url.as_str(), "--insecure", "-c1", "-d10s"].into_iter().chain(defaults);
    let ended = run(&args.chain(peer.args.iter().copied()).collect::<Vec<&str>>());
    // All failed before a connection was open: 4; some of what was counted: 5.
    if !matches!(ended.code, Some(0 | 4 | 5)) {
        return Some(format!("exit code {:?}: {}", ended.code, ended.stderr));
    }
    if ended.rss_bytes > RSS_BYTES_MAX {
        return Some(format!("{} bytes of memory", ended.rss_bytes));
    }
    let requests = ended.assert_all_counted();
    let failures = failures(&ended);
    if names(peer.failures) != failures {
        return Some(format!("failures {failures:?}: {}", ended.json()["errors"]));
    }
    if ended.count("/totals/ok") + failures.len() as u64 != requests {
        return Some(format!("not every request ended: {}", ended.stdout));
    }
    let wrong =
        peer.counts.iter().find(|(name, count)| ended.count(&format!("/totals/quic/{name}")) != *count);
    wrong.map(|(name, count)| format!("not {count} {name}: {}", ended.json()["totals"]["quic"]))
}
