//! Too few descriptors, on our side or the server's: reported before the run where that can be known, counted by cause where not.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use squall_testkit::real::{NginxOptions, Server};
use squall_testkit::wait_until;

use crate::connections::authority;
use crate::squall::{Ended, Running, run, start, start_command, with_json};

/// A server's count moves long before this.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn too_few_descriptors_are_reported_before_anything_is_opened() {
    for (load, limit, help) in [
        (
            &["http", "http://127.0.0.1:9/"][..],
            200,
            "use fewer connections (at most 136 sockets), or raise the hard limit",
        ),
        (
            &["handshake", "127.0.0.1:9"],
            200,
            "use fewer connections (at most 136 sockets), or raise the hard limit",
        ),
        (
            &["idle", "127.0.0.1:9"],
            200,
            "use fewer connections (at most 136 sockets), or raise the hard limit",
        ),
        // Not even squall itself has enough.
        (
            &["idle", "127.0.0.1:9"],
            64,
            "help: raise the hard limit before the run: `ulimit -Hn 1064` as root",
        ),
    ] {
        let ended = run_limited(limit, &[load, &["-c", "1000"]].concat());
        assert_eq!(ended.code, Some(2), "{load:?}: {ended:#?}");
        let error = format!("the run needs 1064 open files (1000 sockets plus 64), but the limit is {limit}");
        assert!(ended.stderr.contains(&error) && ended.stderr.contains(help), "{load:?}: {}", ended.stderr);
    }
}

#[test]
fn as_many_descriptors_as_were_asked_for_are_enough() {
    let nginx = Server::nginx(NginxOptions::default());
    let (plain, tls) = (authority(&nginx.url("/")), authority(&nginx.tls_url("/")));
    for (load, limit) in [
        (&["http", &nginx.url("/"), "-n", "1000"][..], 64 + 50),
        (&["handshake", &tls, "--insecure", "-n", "300"], 64 + 50),
        (&["idle", &plain, "-d", "1s"], 64 + 50),
        // Each thread has an epoll set.
        (&["http", &nginx.url("/"), "-n", "1000", "--threads", "50"], 32 + 50 + 50),
    ] {
        let ended = run_limited(limit, &[load, &["-c", "50"]].concat());
        assert_eq!(ended.assert_all_counted(), ended.count("/totals/ok"), "{load:?}: {ended:#?}");
    }
}

/// What no preflight can know: the limit falls while the load runs, and rises again.
#[test]
fn descriptors_that_run_out_meanwhile_are_counted_and_the_load_goes_on() {
    let nginx = Server::nginx(NginxOptions::default());
    let tls = authority(&nginx.tls_url("/"));
    for load in [
        &["http", &nginx.url("/"), "--no-keepalive"][..],
        &["handshake", &tls, "--insecure", "--request", "/", "--close", "notify"],
    ] {
        let before = nginx.logged_count();
        let running = start(&with_json(&[load, &["-c", "20", "--threads", "1", "-d", "60s"]].concat()));
        wait_for_more(&nginx, 100);
        // Less than the twenty connections need, and more than squall itself.
        let before_limit = limit_descriptors(&running, Some(16));
        wait_for_more(&nginx, 100);
        limit_descriptors(&running, before_limit.current);
        wait_for_more(&nginx, 100);
        running.process.signal(Signal::INT);
        let ended = running.wait();
        ended.assert_all_counted();
        let errors = ended.errors();
        assert!(
            matches!(&errors[..], [(cause, phase, _)] if cause == "out_of_resources" && phase == "connecting"),
            "{load:?}: {errors:?}"
        );
        assert_eq!(ended.count("/totals/ok"), (nginx.logged_count() - before) as u64, "{load:?}: {ended:#?}");
        assert_ne!(ended.json()["verdict"]["status"], "VALID", "{load:?}");
    }
}

/// Whom the server cannot accept the kernel connects all the same: they wait for its first word.
#[test]
fn a_server_without_descriptors_serves_those_it_has_and_the_others_are_counted() {
    let nginx = Server::nginx(NginxOptions { descriptor_count_max: 24, ..NginxOptions::default() });
    let (plain, tls) = (authority(&nginx.url("/")), authority(&nginx.tls_url("/")));
    for (load, cause, phase) in [
        (&["http", &nginx.url("/"), "--timeout", "500ms", "-d", "2s"][..], "timeout", "waiting"),
        (&["idle", &plain, "--after-request", "--timeout", "500ms", "-d", "2s"], "timeout", "waiting"),
        (
            &["handshake", &tls, "--insecure", "--hold", "1s", "--connect-timeout", "500ms", "-n", "100"],
            "connect_timeout",
            "tls_handshaking",
        ),
    ] {
        let ended = run(&[load, &["-c", "40"]].concat());
        let known = ended.assert_all_counted() - ended.count("/totals/interrupted");
        let failed = ended.count("/totals/failed");
        assert_eq!(ended.errors(), [(cause.to_owned(), phase.to_owned(), failed)], "{load:?}");
        // Of the forty, far from all can be inside, and those who are stay undisturbed.
        assert!(failed >= 10 && known > failed, "{load:?}: {ended:#?}");
    }
    assert!(nginx.output().contains("Too many open files"), "{}", nginx.output());
}

/// Runs squall where so many descriptors may be open, and no more.
fn run_limited(limit: u64, args: &[&str]) -> Ended {
    let mut command = Command::new("bash");
    let script = format!("ulimit -n {limit}; exec \"$@\"");
    command.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_squall")]).args(with_json(args));
    start_command(command).wait()
}

/// Lets a run have so many descriptors; returns how many it could have before.
fn limit_descriptors(running: &Running, count: Option<u64>) -> Rlimit {
    let pid = Pid::from_raw(running.process.pid() as i32);
    let hard = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current: count, maximum: hard }).expect("a process of ours")
}

/// Waits until a server has answered so many more requests.
fn wait_for_more(nginx: &Server, count: usize) {
    let enough = nginx.logged_count() + count;
    assert!(wait_until(PATIENCE, || nginx.logged_count() >= enough), "the load makes no progress");
}
