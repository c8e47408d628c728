//! One side of a conversation in HTTP/2, frame by frame.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

use crate::acceptor::Socket;

/// Kinds of frames.
#[expect(missing_docs, reason = "the names are the RFC's")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
#[expect(missing_docs, reason = "the names are the RFC's")]
pub mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Error codes.
#[expect(missing_docs, reason = "the names are the RFC's")]
pub mod code {
    pub const NO_ERROR: u32 = 0x0;
    pub const PROTOCOL_ERROR: u32 = 0x1;
    pub const INTERNAL_ERROR: u32 = 0x2;
    pub const FLOW_CONTROL_ERROR: u32 = 0x3;
    pub const STREAM_CLOSED: u32 = 0x5;
    pub const FRAME_SIZE_ERROR: u32 = 0x6;
    pub const REFUSED_STREAM: u32 = 0x7;
    pub const CANCEL: u32 = 0x8;
    pub const COMPRESSION_ERROR: u32 = 0x9;
    pub const ENHANCE_YOUR_CALM: u32 = 0xb;
}

/// A frame that the client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: u8,
    /// Of [`flag`].
    pub flags: u8,
    /// 0: the connection.
    pub stream_id: u32,
    /// What follows the head.
    pub payload: Vec<u8>,
}

/// What a script can do on a connection.
#[derive(Debug)]
pub struct Talk<'a> {
    reader: &'a mut Socket,
    writer: &'a mut Socket,
    seen: &'a Mutex<Vec<Frame>>,
    complaint: &'a Mutex<Option<String>>,
}

impl Frame {
    /// The first four bytes of the payload as a number; 0 when there are fewer.
    pub fn number(&self) -> u32 {
        self.payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    fn ends_stream(&self) -> bool {
        matches!(self.kind, kind::HEADERS | kind::DATA) && self.flags & flag::END_STREAM != 0
    }
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        reader: &'a mut Socket,
        writer: &'a mut Socket,
        seen: &'a Mutex<Vec<Frame>>,
        complaint: &'a Mutex<Option<String>>,
    ) -> Self {
        Self { reader, writer, seen, complaint }
    }

    pub(super) fn read_preface(&mut self) -> io::Result<()> {
        let mut preface = [0; 24];
        self.reader.read_exact(&mut preface)?;
        if &preface != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
            return self.complain("the client does not begin with the preface");
        }
        Ok(())
    }

    /// The client has done what it must not do.
    ///
    /// # Errors
    /// Always, so that the script ends.
    pub fn complain<T>(&mut self, what: &str) -> io::Result<T> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what.to_owned());
        Err(io::Error::other(what.to_owned()))
    }

    /// Sends SETTINGS.
    ///
    /// # Errors
    /// When the client has left, as in all that follow.
    pub fn settings(&mut self, entries: &[(u16, u32)]) -> io::Result<()> {
        let payload: Vec<u8> = entries
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        self.send(kind::SETTINGS, 0, 0, &payload)
    }

    /// Sends a frame, whatever it is.
    pub fn send(&mut self, kind: u8, flags: u8, stream_id: u32, payload: &[u8]) -> io::Result<()> {
        let [_, l0, l1, l2] = (payload.len() as u32).to_be_bytes();
        let [s0, s1, s2, s3] = stream_id.to_be_bytes();
        let mut frame = vec![l0, l1, l2, kind, flags, s0, s1, s2, s3];
        frame.extend_from_slice(payload);
        self.raw(&frame)
    }

    /// Sends bytes.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Sends `:status: 200`, and more fields, already coded.
    pub fn head(&mut self, stream_id: u32, fields: &[u8]) -> io::Result<()> {
        self.send(kind::HEADERS, flag::END_HEADERS, stream_id, &[&[0x88], fields].concat())
    }

    /// Sends the last DATA of a response.
    pub fn body(&mut self, stream_id: u32, bytes: &[u8]) -> io::Result<()> {
        self.send(kind::DATA, flag::END_STREAM, stream_id, bytes)
    }

    /// Answers well.
    pub fn respond(&mut self, stream_id: u32) -> io::Result<()> {
        self.head(stream_id, &[])?;
        self.body(stream_id, b"ok")
    }

    /// Reads the next frame, and acknowledges settings.
    pub fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.reader.read_exact(&mut head)?;
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, l0, l1, l2]) as usize];
        self.reader.read_exact(&mut payload)?;
        let frame = Frame { kind, flags, stream_id: u32::from_be_bytes([s0, s1, s2, s3]), payload };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(frame.clone());
        if kind == kind::SETTINGS && flags & flag::ACK == 0 {
            self.send(kind::SETTINGS, flag::ACK, 0, &[])?;
        }
        Ok(frame)
    }

    /// Reads until a frame of this kind comes.
    pub fn until(&mut self, kind: u8) -> io::Result<Frame> {
        loop {
            let frame = self.read()?;
            if frame.kind == kind {
                return Ok(frame);
            }
        }
    }

    /// Reads the next frame that is about neither settings nor windows.
    pub fn next_but_settings(&mut self) -> io::Result<Frame> {
        loop {
            let frame = self.read()?;
            if !matches!(frame.kind, kind::SETTINGS | kind::WINDOW_UPDATE) {
                return Ok(frame);
            }
        }
    }

    /// Reads DATA, until so many bytes have come.
    pub fn read_data(&mut self, bytes: usize) -> io::Result<()> {
        let mut read = 0;
        while read < bytes {
            read += self.until(kind::DATA)?.payload.len();
        }
        if read > bytes { self.complain("more DATA than the windows allow") } else { Ok(()) }
    }

    /// Gives the client the largest possible window.
    pub fn open_windows(&mut self) -> io::Result<()> {
        self.settings(&[(4, 1 << 30)])?;
        self.send(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())
    }

    /// Reads until a request is whole; its stream.
    pub fn request(&mut self) -> io::Result<u32> {
        loop {
            let frame = self.read()?;
            if frame.ends_stream() {
                return Ok(frame.stream_id);
            }
        }
    }

    /// Reads until a request's head came; its stream.
    pub fn request_head(&mut self) -> io::Result<u32> {
        Ok(self.until(kind::HEADERS)?.stream_id)
    }

    /// Begins well and reads the first request; its stream.
    pub fn begin(&mut self) -> io::Result<u32> {
        self.settings(&[])?;
        self.request()
    }

    /// Answers every request well until the client leaves.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            let stream_id = self.request()?;
            self.respond(stream_id)?;
        }
    }

    /// Reads until the client leaves, and answers nothing.
    pub fn hold(&mut self) -> io::Result<()> {
        loop {
            self.read()?;
        }
    }

    /// Closes the connection.
    ///
    /// # Errors
    /// Always, so that the script ends.
    pub fn close(&mut self) -> io::Result<()> {
        self.writer.shut_down()?;
        Err(io::ErrorKind::NotConnected.into())
    }
}
