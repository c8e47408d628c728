//! What goes with a request that follows a redirect.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::squall::run;

#[test]
fn redirects_are_followed_with_the_user_agent_that_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || redirect_each(&listener));
    let args = ["-c1", "-n20", "--follow", "1", "--user-agent", "alpha", "--user-agent", "beta", &url];
    let ended = run(&args);
    assert_eq!(ended.count("/totals/failed"), 0, "{ended:#?}");
    let heads = server.join().unwrap();
    let agents: Vec<&str> =
        heads.iter().filter_map(|head| head.split("User-Agent: ").nth(1)?.lines().next()).collect();
    assert!(agents.chunks(2).all(|pair| pair[0] == pair[1]), "{agents:?}");
    assert!(agents.contains(&"alpha") && agents.contains(&"beta"), "{agents:?}");
}

#[test]
fn hops_are_requests_but_none_that_the_schedule_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || redirect_each(&listener));
    let ended = run(&["-c1", "-r", "100/s", "-n", "30", "--follow", "1", &url]);
    assert_eq!(ended.count("/totals/requests"), 60, "{ended:#?}");
    assert_eq!(ended.count("/totals/requests_asked"), 30, "{ended:#?}");
    assert_eq!(ended.count("/totals/requests_never_sent"), 0, "{ended:#?}");
    assert_eq!(server.join().unwrap().len(), 60);
}

/// Serves one connection to its end, each second request with an answer, the others with a redirect; the heads it read.
fn redirect_each(listener: &TcpListener) -> Vec<String> {
    let (mut socket, _) = listener.accept().unwrap();
    let mut heads = Vec::new();
    let mut buf = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut buf) {
        let answer: &[u8] = match heads.len() % 2 {
            0 => b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        heads.push(String::from_utf8_lossy(&buf[..count]).into_owned());
        socket.write_all(answer).unwrap();
    }
    heads
}
