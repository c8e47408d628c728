//! Uploads that are larger than a record may be: recorded, converted and replayed from disk.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::squall::{self, Ended};
use crate::traffic::{Serving, path};

/// More than the 64 MiB of a record.
const FILE_BYTES: u64 = 70_000_000;

/// What a program may take more than one that has nothing large.
const GROWTH_BYTES_MAX: u64 = 48_000_000;

#[test]
fn a_large_upload_is_replayed_whole_from_little_memory() {
    let folder = TempDir::new().unwrap();
    let (recording, copy) = (path(&folder, "r.squall"), path(&folder, "copy.squall"));
    let (site, other) = (serve("t0ken-Recorded0001"), serve("t0ken-Replayed0002"));
    let proxy = Serving::start(&["record", &recording, "--to", &site, "--max-body", "1GiB"], folder.path());
    let small_bytes = proxy.peak_rss_bytes();
    let address = proxy.url.trim_start_matches("http://").to_owned();
    assert!(walk(&address, "t0ken-Recorded0001").starts_with("HTTP/1.1 200"));
    let growth_bytes = proxy.peak_rss_bytes() - small_bytes;
    assert!(growth_bytes < GROWTH_BYTES_MAX, "record grew by {growth_bytes} bytes");
    proxy.stop();
    let found = Command::new("grep").args(["-aqF", "t0ken-Recorded0001", &recording]).status().unwrap();
    assert_eq!(found.code(), Some(1), "the recording has the token");

    let is_small = |ended: &Ended| ended.rss_bytes < small_bytes + GROWTH_BYTES_MAX;
    let converted = squall::start(&["convert", &recording, &copy]).wait();
    assert!(converted.code == Some(0) && is_small(&converted), "{converted:#?}");
    for file in [&recording, &copy] {
        let played = squall::run(&["replay", file, "--to", &other]);
        assert_eq!((played.count("/totals/ok"), played.count("/totals/failed")), (2, 0), "{played:#?}");
        assert!(is_small(&played), "{played:#?}");
    }
    let log = squall::start(&["convert", &recording, &path(&folder, "r.har")]).wait();
    assert!(log.code == Some(0) && is_small(&log), "{log:#?}");
    assert!(log.stderr.contains("1 request body left out of the output"), "{log:#?}");
}

/// A client: a form, and its upload.
fn walk(address: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /form HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let (_, body_bytes) = read_head(&mut BufReader::new(&mut stream)).unwrap();
    assert!(body_bytes > 0);
    let mut stream = TcpStream::connect(address).unwrap();
    let (before, behind) = around(token);
    let bytes = (before.len() + behind.len()) as u64 + FILE_BYTES;
    write!(stream, "POST /up HTTP/1.1\r\nHost: {address}\r\nCookie: session=c00kie-{token}\r\n").unwrap();
    write!(stream, "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {bytes}\r\n").unwrap();
    write!(stream, "Connection: close\r\n\r\n{before}").unwrap();
    io::copy(&mut Content::default(), &mut stream).unwrap();
    stream.write_all(behind.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What is before the file and behind it in the form.
fn around(token: &str) -> (String, String) {
    let part = |name: &str| format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"");
    let (first, file, last) = (part("csrf_token"), part("file"), part("authenticity_token"));
    let before = format!("{first}\r\n\r\n{token}\r\n{file}; filename=\"a\"\r\n\r\n");
    (before, format!("\r\n{last}\r\n\r\n{token}\r\n--B--\r\n"))
}

/// A site whose form has this token, and that takes only the upload of that form.
fn serve(token: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that leaves ends its connection.
            thread::spawn(move || answer(stream, token));
        }
    });
    url
}

fn answer(stream: TcpStream, token: &str) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        let (request, body_bytes) = read_head(&mut reader)?;
        let is_valid = !request.starts_with("POST") || is_upload(&mut reader, body_bytes, token)?;
        let status = if is_valid { "200 OK" } else { "400 Bad Request" };
        let page = format!("<form><input type=hidden name=csrf_token value=\"{token}\"></form>");
        let cookie = format!("Set-Cookie: session=c00kie-{token}; Path=/");
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{cookie}");
        write!(reader.get_mut(), "{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len())?;
    }
}

/// The first line, and the length of the body.
fn read_head(reader: &mut impl BufRead) -> io::Result<(String, u64)> {
    let (mut first, mut body_bytes) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            return Ok((first, body_bytes));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body_bytes = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

fn is_upload(reader: &mut impl Read, body_bytes: u64, token: &str) -> io::Result<bool> {
    let mut body = reader.take(body_bytes);
    let (before, behind) = around(token);
    let is_valid = begins_with(&mut body, before.as_bytes())?
        && begins_with(&mut body, Content::default())?
        && begins_with(&mut body, behind.as_bytes())?
        && body.limit() == 0;
    io::copy(&mut body, &mut io::sink())?;
    Ok(is_valid)
}

fn begins_with(body: &mut impl Read, mut expected: impl Read) -> io::Result<bool> {
    let (mut wanted, mut found) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let count = expected.read(&mut wanted)?;
        if count == 0 {
            return Ok(true);
        }
        if body.read_exact(&mut found[..count]).is_err() || found[..count] != wanted[..count] {
            return Ok(false);
        }
    }
}

/// The bytes of the file: those of a counter, so that each place has its own.
#[derive(Default)]
struct Content {
    position: u64,
}

impl Read for Content {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = (FILE_BYTES - self.position).min(out.len() as u64 / 8 * 8) as usize;
        for chunk in out[..count].chunks_exact_mut(8) {
            chunk.copy_from_slice(&(self.position.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes());
            self.position += 8;
        }
        Ok(count)
    }
}
