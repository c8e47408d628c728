//! Reads requests just well enough for the servers here: a head, and a body by `Content-Length`.

use std::io::{self, Read};

/// Bytes read from a client and not yet used.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    buffer: Vec<u8>,
}

impl Requests {
    /// Reads one request with its body. False: the client closed before the first byte of one.
    pub(crate) fn next(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        let Some(head_bytes) = self.read_head(stream)? else { return Ok(false) };
        let whole = head_bytes + content_length(&self.buffer[..head_bytes]);
        while self.buffer.len() < whole {
            if !self.read_more(stream)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.buffer.drain(..whole);
        Ok(true)
    }

    /// Reads until a head is whole and leaves it in the buffer; its length, or `None` at the end of the stream.
    pub(crate) fn read_head(&mut self, stream: &mut impl Read) -> io::Result<Option<usize>> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(Some(at + 4));
            }
            if !self.read_more(stream)? {
                return Ok(None);
            }
        }
    }

    fn read_more(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let count = stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0)
}
