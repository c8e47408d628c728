//! A server that is killed and comes back in the middle of a run.

use std::time::Duration;

use squall_testkit::real::{NginxOptions, Server};
use squall_testkit::wait_until;

use crate::squall::{start, with_json};

const CONNECTION_COUNT: usize = 20;

#[test]
fn every_request_is_counted_once_when_the_server_crashes_and_returns() {
    let mut server = Server::nginx(NginxOptions::default());
    let running = start(&with_json(&[&server.url("/"), "-c", "20", "-d", "6s"]));
    assert!(wait_until(Duration::from_secs(5), || server.logged_count() > 1000), "no load came");
    server.kill();
    let before = server.logged_count();
    // Long enough that squall meets a closed port many times on every connection.
    std::thread::sleep(Duration::from_millis(1500));
    server.restart();
    let ended = running.wait();
    let log = server.into_access_log();

    ended.assert_all_counted();
    assert!(log.len() > before + 1000, "load did not resume: {} requests after {before}", log.len() - before);
    // The worker writes a line after each answer: it may have died between the two, once; and answers may have died with it.
    let ok = ended.count("/totals/ok") as usize;
    assert!(
        (ok.saturating_sub(1)..=ok + CONNECTION_COUNT).contains(&log.len()),
        "{ok} ok, {} logged",
        log.len()
    );
    assert!(ended.count("/totals/failed") > 0);
    for (cause, phase, _) in ended.errors() {
        let is_right = matches!(
            (cause.as_str(), phase.as_str()),
            ("connection_refused", "connecting")
                | (
                    "connection_reset" | "connection_closed",
                    "connecting" | "sending" | "waiting" | "receiving"
                )
        );
        assert!(is_right, "{cause} while {phase}");
    }
}
