//! How connections of requests end: as `--close` asks, seen from the other side.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::squall::run;

#[test]
fn connections_end_as_asked() {
    for (flags, expected) in [
        (&["--close", "rst"][..], Err(ErrorKind::ConnectionReset)),
        (&["--close", "fin"], Ok(Vec::new())),
        (&[], Ok(Vec::new())),
        (&["--close", "rst", "--no-keepalive"], Err(ErrorKind::ConnectionReset)),
        (&["--h2c", "--close", "fin"], Ok(Vec::new())),
        (&["--h2c"], Ok(GOAWAY.to_vec())),
    ] {
        let end = thread::scope(|scope| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let server = scope.spawn(move || end_of_one(&listener, flags.contains(&"--h2c")));
            let ended = run(&[&[url.as_str(), "-c1", "-n1"], flags].concat());
            assert_eq!(ended.count("/totals/ok"), 1, "{flags:?}: {ended:#?}");
            server.join().unwrap()
        });
        assert_eq!(end, expected, "{flags:?}");
    }
}

/// Answers one request of one connection; what comes after its answer until the connection ends, and how it ends.
fn end_of_one(listener: &TcpListener, is_h2: bool) -> Result<Vec<u8>, ErrorKind> {
    let (mut socket, _) = listener.accept().unwrap();
    // The request's head ends its first write, over HTTP/2 with the client's settings before it.
    let count = socket.read(&mut [0; 4096]).unwrap();
    assert!(count > 0);
    let mut rest = Vec::new();
    let answer = if is_h2 { H2_ANSWER } else { b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" };
    socket.write_all(answer).unwrap();
    socket.read_to_end(&mut rest).map_err(|error| error.kind())?;
    Ok(rest.strip_prefix(SETTINGS_ACK).map(<[u8]>::to_vec).unwrap_or(rest))
}

/// Settings, and a response of status 200 without a body on stream 1.
const H2_ANSWER: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88";
const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
