//! The floor of the comparison: what `send` and `recv` alone cost the client, without waiting, parsing or counting.
//!
//! Sends a request, or a WebSocket message, on every connection, then receives from every connection, and again. It knows each answer's length
//! from the first one, so it only fits a server whose answers are all alike.

#![expect(clippy::print_stdout, reason = "the count is what the comparison reads")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// A text message of 32 bytes, with a mask of zeros.
const MESSAGE: &[u8] = b"\x81\xa0\0\0\0\0abcdefghijklmnopqrstuvwxyzabcdef";

/// Who sends.
#[derive(Clone, Copy, PartialEq)]
enum Sends {
    Each,
    /// The first connection, and each receives it.
    First,
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (address, connection_count, seconds, websocket) = match args.as_slice() {
        [address, connection_count, seconds] => (address, connection_count, seconds, None),
        [address, connection_count, seconds, path, who] => {
            (address, connection_count, seconds, Some((path, who == "publish")))
        }
        _ => {
            let usage = "usage: squall-floor ADDRESS:PORT CONNECTIONS SECONDS [PATH echo|publish]";
            return Err(io::Error::other(usage));
        }
    };
    let connection_count: usize = connection_count.parse().map_err(io::Error::other)?;
    let duration = Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    let mut streams = connect(address, connection_count)?;
    let (sent, sends) = match websocket {
        None => (REQUEST, Sends::Each),
        Some((path, is_published)) => {
            streams.iter_mut().try_for_each(|stream| upgrade(stream, address, path))?;
            (MESSAGE, if is_published { Sends::First } else { Sends::Each })
        }
    };
    let answer_bytes =
        if sends == Sends::Each { first_answer(&mut streams[0], sent)? } else { MESSAGE.len() - 4 };
    let started = Instant::now();
    let mut count = 1;
    while started.elapsed() < duration {
        count += one_turn(&mut streams, sent, sends, answer_bytes)?;
    }
    println!("requests: {count}");
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

/// The opening handshake; whatever the answer says.
fn upgrade(stream: &mut TcpStream, address: &str, path: &str) -> io::Result<()> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(())
}

fn first_answer(stream: &mut TcpStream, sent: &[u8]) -> io::Result<usize> {
    stream.write_all(sent)?;
    let count = stream.read(&mut [0; 4096])?;
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

fn one_turn(streams: &mut [TcpStream], sent: &[u8], sends: Sends, answer_bytes: usize) -> io::Result<usize> {
    let sender_count = if sends == Sends::Each { streams.len() } else { 1 };
    for stream in &mut streams[..sender_count] {
        stream.write_all(sent)?;
    }
    let mut answer = [0; 4096];
    for stream in &mut *streams {
        stream.read_exact(&mut answer[..answer_bytes])?;
    }
    Ok(streams.len())
}
