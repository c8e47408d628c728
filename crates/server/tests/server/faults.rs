//! Answers that break, as a client sees them.

use std::io::{ErrorKind, Read};

use crate::{
    client::{Client, start},
    connections::wait_until,
};

#[test]
fn abort_resets_without_a_response() {
    let target = start();
    let mut client = Client::connect(target.address());
    client.write("GET /abort HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn abort_can_close_without_a_response() {
    let target = start();
    let mut client = Client::connect(target.address());
    client.write("GET /abort?how=close HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.is_closed());
}

#[test]
fn abort_cuts_a_body_after_so_many_bytes() {
    let target = start();
    for after in [0, 10, 100_000] {
        for (how, end) in [("reset", Err(ErrorKind::ConnectionReset)), ("close", Ok(0))] {
            let mut client = Client::connect(target.address());
            client.write(format!("GET /abort?after={after}&how={how} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = client.read_head().unwrap();
            assert!(head.contains(&format!("content-length: {}\r\n", after + 1)), "{head}");
            client.stream.read_exact(&mut vec![0; after]).unwrap();
            assert_eq!(client.stream.read(&mut [0]).map_err(|e| e.kind()), end, "{how} after {after}");
        }
    }
}

#[test]
fn hanging_request_is_over_when_the_client_leaves() {
    let target = start();
    let mut client = Client::connect(target.address());
    client.write("GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until(|| target.stats().requests == 1);
    assert_eq!(target.stats().requests_finished, 0);
    drop(client);
    wait_until(|| target.stats().requests_cut == 1 && target.stats().connections_open == 0);
}

#[test]
fn unread_body_counts_as_cut() {
    let target = start();
    let mut client = Client::connect(target.address());
    client.write("GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.read_head().unwrap();
    drop(client);
    wait_until(|| target.stats().requests_cut == 1);
}
