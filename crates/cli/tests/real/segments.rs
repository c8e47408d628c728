//! What requests cost on the wire, as the kernel of the other side counts it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use squall_testkit::Process;

use crate::squall::{start, with_json};

const REQUESTS: u64 = 500;

#[test]
fn answers_in_two_segments_are_acknowledged_by_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let running = start(&with_json(&[&url, "-c1", "-n", &REQUESTS.to_string()]));
    let counted = answer_in_two(&listener, &running.process);
    let ended = running.wait();
    assert_eq!(ended.count("/totals/ok"), REQUESTS, "{ended:#?}");
    // All answers were acknowledged, few by a segment of its own: those of the first ones tell that it matters.
    assert_eq!(counted.requests, REQUESTS);
    assert!((20..REQUESTS / 2).contains(&counted.bare_segments), "{counted:?}");
}

#[derive(Debug)]
struct Counted {
    requests: u64,
    /// Segments without data that the client sent, acknowledgements all.
    bare_segments: u64,
}

/// Answers one connection until it ends by the client's FIN: a reset is an error. The client is halted while an answer is written, for
/// reading the first segment before the second one comes would need acknowledgements.
fn answer_in_two(listener: &TcpListener, client: &Process) -> Counted {
    let (mut socket, peer) = listener.accept().unwrap();
    socket.set_nodelay(true).unwrap();
    let mut counted = Counted { requests: 0, bare_segments: 0 };
    loop {
        // A request's head comes in one segment, and none before the answer to the one before.
        if socket.read(&mut [0; 4096]).unwrap() == 0 {
            return counted;
        }
        counted.requests += 1;
        if counted.requests == REQUESTS {
            counted.bare_segments = bare_segments(peer);
        }
        halt(client);
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n").unwrap();
        socket.write_all(b"hello\n").unwrap();
        client.signal(Signal::CONT);
    }
}

/// Stops the client once it has nothing to do but to wait.
fn halt(client: &Process) {
    thread::sleep(Duration::from_micros(500));
    client.signal(Signal::STOP);
    let pid = Pid::from_raw(client.pid().cast_signed()).unwrap();
    let stopped_or_ended = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), stopped_or_ended).unwrap();
}

/// Segments without data that have come from this peer.
fn bare_segments(peer: SocketAddr) -> u64 {
    let port = format!("= :{}", peer.port());
    let output = Command::new("ss").args(["-tinH", "state", "established", "dport", &port]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let field = |name: &str| {
        let value = text.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap();
        value.parse::<u64>().unwrap()
    };
    field("segs_in:") - field("data_segs_in:")
}
