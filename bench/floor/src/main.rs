//! The floor of the comparison: what `send` and `recv` alone cost the client, without waiting, parsing or counting.
//!
//! Sends a request on every connection, then receives from every connection, and again. It knows each response's length
//! from the first one, so it only fits a server whose responses are all alike.

#![expect(clippy::print_stdout, reason = "the count is what the comparison reads")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, connection_count, seconds] = args.as_slice() else {
        return Err(io::Error::other("usage: squall-floor ADDRESS:PORT CONNECTIONS SECONDS"));
    };
    let connection_count: usize = connection_count.parse().map_err(io::Error::other)?;
    let duration = Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    let mut streams = connect(address, connection_count)?;
    let response_bytes = first_response(&mut streams[0])?;
    let started = Instant::now();
    let mut request_count = 1;
    while started.elapsed() < duration {
        request_count += one_turn(&mut streams, response_bytes)?;
    }
    println!("requests: {request_count}");
    Ok(())
}

fn connect(address: &str, count: usize) -> io::Result<Vec<TcpStream>> {
    let open = |_| {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    (0..count.max(1)).map(open).collect()
}

fn first_response(stream: &mut TcpStream) -> io::Result<usize> {
    stream.write_all(REQUEST)?;
    let count = stream.read(&mut [0; 4096])?;
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

fn one_turn(streams: &mut [TcpStream], response_bytes: usize) -> io::Result<usize> {
    for stream in &mut *streams {
        stream.write_all(REQUEST)?;
    }
    let mut response = [0; 4096];
    for stream in &mut *streams {
        stream.read_exact(&mut response[..response_bytes])?;
    }
    Ok(streams.len())
}
