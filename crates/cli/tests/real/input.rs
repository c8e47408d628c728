//! Bad input: one clear message with a `help:` line, the documented exit code, and not a packet sent.

use std::time::{Duration, Instant};

use squall_testkit::free_port;
use squall_testkit::real::{NginxOptions, Server};

use crate::squall::start;

/// A plan that cannot be.
const USAGE: i32 = 2;

/// Nothing answers there.
const UNREACHABLE: i32 = 4;

#[track_caller]
fn check(args: &[&str], code: i32, message: &str) {
    let started = Instant::now();
    let ended = start(args).wait();
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:#?}");
    for part in ["error: ", "help: ", message] {
        assert!(ended.stderr.contains(part), "{args:?}: no {part:?} in:\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{args:?}: {}", ended.stderr);
    assert!(started.elapsed() < Duration::from_secs(15), "{args:?} took {:?}", started.elapsed());
}

/// A URL at which nothing listens: whatever sends a packet there ends with [`UNREACHABLE`].
fn nowhere() -> String {
    format!("http://127.0.0.1:{}/", free_port())
}

#[test]
fn flags_that_cannot_be_are_refused_before_the_first_packet() {
    let url = nowhere();
    let cases: &[(&[&str], &str)] = &[
        (&["--frobnicate"], "--frobnicate"),
        (&["--duration", "10parsecs"], "parsecs"),
        (&["--rate", "fast"], "fast"),
        (&["--connections", "0"], "--connections"),
        (&["--requests", "0"], "--requests"),
        (&["--rate", "0/s"], "--rate"),
        (&["--threshold", "p(95)<"], "p(95)<"),
        (&["--header", "no colon"], "no colon"),
        (&["--expect-status", "banana"], "banana"),
        (&["--out", "xml=result.xml"], "xml"),
        (&["--tls", "0.9"], "0.9"),
        (&["--source", "192.0.2.1"], "192.0.2.1"),
        (&["--source", "::1"], "::1"),
        (&["--body", "a", "--body-file", "/dev/null"], "--body-file"),
        (&["--no-keepalive", "--requests-per-connection", "5"], "--requests-per-connection"),
    ];
    for (args, message) in cases {
        check(&[&[url.as_str()], *args].concat(), USAGE, message);
    }
}

#[test]
fn files_that_cannot_be_used_are_named_before_the_first_packet() {
    let url = nowhere();
    for flag in ["--body-file", "--urls", "--cacert"] {
        check(&[&url, flag, "/no/such/file"], USAGE, "/no/such/file");
    }
    // Not even root can make folders there.
    check(&[&url, "--results", "/proc/squall"], USAGE, "/proc/squall");
    check(&[&url, "--no-save", "--out", "json=/no/such/folder/out.json"], USAGE, "/no/such/folder");
}

#[test]
fn a_missing_or_broken_url_is_refused() {
    check(&["http"], USAGE, "URL");
    check(&["http://"], USAGE, "http://");
    check(&["ftp://127.0.0.1/"], USAGE, "ftp");
    check(&["http://127.0.0.1:99999/"], USAGE, "99999");
}

/// Nothing can be known before the first packet here, so there is a summary as well.
#[test]
fn a_refused_port_is_an_unreachable_target() {
    let ended = start(&[&nowhere(), "-d", "5s", "--no-save"]).wait();
    assert_eq!(ended.code, Some(UNREACHABLE), "{ended:#?}");
    for part in ["target unreachable", "connection refused while connecting", "0 ok"] {
        assert!(ended.stdout.contains(part), "no {part:?} in:\n{}", ended.stdout);
    }
    for part in [
        "error: cannot connect to `http://127.0.0.1:",
        "Connection refused",
        "help: check that the server is running",
    ] {
        assert!(ended.stderr.contains(part), "no {part:?} in:\n{}", ended.stderr);
    }
}

#[test]
fn a_certificate_that_nobody_trusts_is_reported_with_what_helps() {
    let server = Server::nginx(NginxOptions::default());
    check(&[&server.tls_url("/"), "-d", "5s", "--no-save"], UNREACHABLE, "--cacert FILE");
}

#[test]
fn a_name_without_an_address_is_an_unreachable_target() {
    check(&["http://no-such-host.invalid/", "-d", "5s", "--no-save"], UNREACHABLE, "no-such-host.invalid");
}
