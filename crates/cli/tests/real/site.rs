//! What the sites that tests record have in common: values that are new in each run, and a socket that answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

/// Values that one site gave out. No two sites give the same.
pub(crate) struct Given {
    next: AtomicU64,
    values: Mutex<Vec<String>>,
}

impl Given {
    pub(crate) fn new() -> Self {
        static SITE_COUNT: AtomicU64 = AtomicU64::new(1);
        Self { next: AtomicU64::new(SITE_COUNT.fetch_add(1, SeqCst) * 1_000_003), values: Mutex::default() }
    }

    /// A new value of this kind.
    pub(crate) fn fresh(&self, kind: &str) -> String {
        let value = format!("{kind}{}", self.next.fetch_add(7, SeqCst));
        self.values.lock().unwrap().push(value.clone());
        value
    }

    /// Whether a text has a value of this kind.
    pub(crate) fn is_in(&self, text: &str, kind: &str) -> bool {
        let values = self.values.lock().unwrap();
        values.iter().any(|value| value.starts_with(kind) && text.contains(value.as_str()))
    }

    pub(crate) fn is_known(&self, value: &str) -> bool {
        self.values.lock().unwrap().iter().any(|known| known == value)
    }
}

/// Status, lines of headers, body.
pub(crate) type Answer = (u16, String, Vec<u8>);

/// Answers each request that comes to the URL that it returns.
pub(crate) fn serve(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            thread::spawn(move || talk(&stream, &*answer));
        }
    });
    url
}

fn talk(mut stream: &TcpStream, answer: &dyn Fn(&str) -> Answer) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let (status, headers, body) = answer(&request);
        let head = format!("HTTP/1.1 {status} x\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

pub(crate) fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    let length = text
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(text + &String::from_utf8_lossy(&body))
}
