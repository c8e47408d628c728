//! How connections live and die, and what is counted of them.

use std::{
    fs,
    io::{Read, Write},
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use squall_server::{Options, Stats, Target};

use crate::client::{Client, connect, start};

#[test]
fn connection_is_kept_alive() {
    let target = start();
    let mut client = Client::connect(target.address());
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(client.send("POST /status/200", "", b"unread").status, 200);
    assert_eq!(client.get("/").status, 200, "a body that no route wants leaves the connection usable");
    let stats = target.stats();
    assert_eq!((stats.connections, stats.connections_open, stats.requests), (1, 1, 5));
    assert_eq!(stats.body_bytes_received, 6);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let target = start();
    let mut client = Client::connect(target.address());
    let requests: String = (0..100).map(|n| format!("GET /bytes/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.write(requests);
    for n in 0..100 {
        assert_eq!(client.read(false).body.len(), n);
    }
}

#[test]
fn connection_closes_when_either_side_asks() {
    let target = start();
    let check = |request: &str| {
        let mut client = Client::connect(target.address());
        client.write(request);
        assert_eq!(client.read(false).status, 200, "{request}");
        assert!(client.is_closed(), "{request}");
    };
    check("GET /close HTTP/1.1\r\nHost: a\r\n\r\n");
    check("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    check("GET / HTTP/1.0\r\n\r\n");
}

#[test]
fn expectation_of_100_is_met_before_the_body() {
    let target = start();
    let mut client = Client::connect(target.address());
    client.write("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.read(true).status, 100);
    client.write("ab");
    assert_eq!(client.read(false).text(), "{\"bytes\":2}\n");
}

#[test]
fn abusive_heads_are_refused() {
    let target = start();
    let check = |request: String, status: &str| {
        let mut client = Client::connect(target.address());
        // The server may answer and close before it has read everything.
        client.stream.get_mut().write_all(request.as_bytes()).ok();
        let head = client.read_head().unwrap();
        assert_eq!(&head[9..12], status, "{head}");
    };
    check("GET / HTTP/1.1\r\nnonsense\r\n\r\n".to_owned(), "400");
    check("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".to_owned(), "400");
    check(format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101)), "431");
    check(format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(420_000)), "431");
    check(format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(66_000)), "414");
}

#[test]
fn heads_that_never_end_are_closed_and_idle_connections_are_not() {
    let options = Options { head_timeout: Duration::from_millis(200), ..Options::default() };
    let target = Target::start(&options).unwrap();
    let mut idle = Client::connect(target.address());
    let mut reused = Client::connect(target.address());
    assert_eq!(reused.get("/").status, 200);
    let mut stalled = Client::connect(target.address());
    stalled.write("GET / HTTP/1.1\r\nHost");
    let mut dripping = Client::connect(target.address());
    dripping.write("GET / HTTP/1.1\r\n");
    while dripping.stream.get_mut().write_all(b"A: b\r\n").is_ok() {
        std::thread::sleep(Duration::from_millis(20)); // far slower than a head of 100 fields could last
    }
    assert!(stalled.is_closed());
    assert_eq!(idle.get("/").status, 200);
    assert_eq!(reused.get("/").status, 200);
}

#[test]
fn slow_bodies_are_not_taken_for_slow_heads() {
    let options = Options { head_timeout: Duration::from_millis(100), ..Options::default() };
    let target = Target::start(&options).unwrap();
    let mut client = Client::connect(target.address());
    client.write("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n");
    for _ in 0..30 {
        client.write("x");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(client.read(false).text(), "{\"bytes\":30}\n");
}

#[test]
fn gigabyte_is_streamed_in_flat_memory() {
    let target = start();
    let mut stream = connect(target.address());
    stream.write_all(b"GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut client = Client::new(stream);
    client.read_head().unwrap();
    let length = std::io::copy(&mut client.stream, &mut std::io::sink()).unwrap();
    assert_eq!(length, 1 << 30);
    // The tests that run at the same time hold some tens of megabytes.
    assert!(peak_memory_kb() < 400_000, "{} kB", peak_memory_kb());
}

fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn log_has_one_line_for_each_request() {
    let path = std::env::temp_dir().join(format!("squall-server-{}.log", std::process::id()));
    let threads = NonZeroUsize::new(3).unwrap();
    let target = Target::start(&Options { threads, log: Some(path.clone()), ..Options::default() }).unwrap();
    for _ in 0..10 {
        let mut client = Client::connect(target.address());
        client.get("/bytes/7");
        client.send("HEAD /get?a=b", "", b"");
        client.get("/nowhere");
    }
    let mut cut = Client::connect(target.address());
    cut.write("GET /abort HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(cut.stream.read(&mut [0]).is_err());
    let stats = target.stop();
    let log = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    check_log(&log, &stats);
}

fn check_log(log: &str, stats: &Stats) {
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    assert!(lines.iter().all(|fields| fields.len() == 8), "{log}");
    assert_eq!(lines.len() as u64, stats.requests);
    assert_eq!((stats.requests, stats.requests_finished, stats.requests_cut), (31, 31, 1));
    let count = |wanted: &str| lines.iter().filter(|f| [f[2], f[3], f[4], f[7]].join(" ") == wanted).count();
    assert_eq!(count("GET /bytes/7 200 ok"), 10, "{log}");
    assert_eq!(count("HEAD /get?a=b 200 ok"), 10, "{log}");
    assert_eq!(count("GET /nowhere 404 ok"), 10, "{log}");
    assert_eq!(count("GET /abort 0 cut"), 1, "{log}");
    assert!(lines.iter().filter(|f| f[3] == "/bytes/7").all(|f| f[5] == "7"), "{log}");
}

#[test]
fn connections_are_dealt_out_to_all_threads() {
    let threads = NonZeroUsize::new(2).unwrap();
    let target = Target::start(&Options { threads, ..Options::default() }).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| Client::connect(target.address())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(target.stats().connections_open, 20);
    drop(clients);
    wait_until(|| target.stats().connections_open == 0);
}

/// Polls what another thread is about to do.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it never came true");
        std::thread::sleep(Duration::from_millis(1));
    }
}
