//! A blocking client that knows just enough HTTP/1.1 to see what the server really sent.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    num::NonZeroUsize,
    time::Duration,
};

use squall_server::{Options, Target};

/// A server on one thread, so that sequences are drawn in the order of the requests.
pub(crate) fn start() -> Target {
    Target::start(&Options { threads: NonZeroUsize::MIN, ..Options::default() }).unwrap()
}

/// One connection.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: BufReader<S>,
}

/// A response whose body was read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// As on the wire, one a line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(connect(address))
    }
}

/// A socket that gives up instead of hanging a test.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
        self.stream.get_mut().flush().unwrap();
    }

    /// Sends `GET /path`, and reads the answer.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path}"), "", b"")
    }

    /// `line` is method and target, `headers` end with line breaks.
    pub(crate) fn send(&mut self, line: &str, headers: &str, body: &[u8]) -> Response {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        self.write(format!("{line} HTTP/1.1\r\nHost: squall.test\r\n{headers}{length}\r\n"));
        self.write(body);
        self.read(line.starts_with("HEAD"))
    }

    pub(crate) fn read(&mut self, is_bodiless: bool) -> Response {
        let head = self.read_head().unwrap();
        let status: u16 = head[9..12].parse().unwrap();
        let mut response = Response { status, head, body: Vec::new() };
        if !is_bodiless && !matches!(status, 100 | 204 | 304) {
            response.body = self.read_body(&response);
        }
        response
    }

    pub(crate) fn read_head(&mut self) -> io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }

    fn read_body(&mut self, response: &Response) -> Vec<u8> {
        if response.header("transfer-encoding") == Some("chunked") {
            return self.read_chunks();
        }
        let length = response.header("content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        body
    }

    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    /// Whether the server closes without a further byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0]).unwrap() == 0
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
