//! As much of a connection as one without requests needs: settings, pings, and the server's farewell.
//!
//! Owns: where in the stream of frames the connection is, in a few bytes, since a hundred thousand of them may be open. Never: streams; frames
//! that matter to requests alone are skipped.

use super::frame::{self, FrameHead, HEAD_BYTES};
use super::limits::FRAME_BYTES_MAX;
use super::{Error, ErrorCode};

/// The client's side of a connection that carries no requests.
#[derive(Debug, Default)]
pub struct IdleClient {
    /// The head, and the first bytes of the payload, of the frame that is being read.
    begin: Vec<u8>,
    /// Bytes of its payload that are to be skipped.
    skip_bytes: u32,
}

/// What a frame means to a client without requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleEvent {
    /// The server's settings: the connection is established.
    Settings,
    /// The answer to a [`ping`](IdleClient::write_ping).
    Pong,
    /// The server ends the connection.
    GoAway,
}

impl IdleClient {
    /// Appends the client's preface and its empty settings (RFC 9113 3.4).
    pub fn write_preface(out: &mut Vec<u8>) {
        out.extend_from_slice(frame::PREFACE);
        frame::put(out, frame::SETTINGS, 0, 0, &[]);
    }

    /// Appends a ping, with data that means nothing.
    pub fn write_ping(out: &mut Vec<u8>) {
        frame::put(out, frame::PING, 0, 0, PING_DATA);
    }

    /// Takes the next event out of `input`, and what was read off it; `None`: there is none. What the server must be answered is appended to
    /// `out`.
    ///
    /// # Errors
    ///
    /// When a frame is larger than allowed.
    pub fn decode(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<Option<IdleEvent>, Error> {
        loop {
            let skipped = (self.skip_bytes as usize).min(input.len());
            *input = &input[skipped..];
            self.skip_bytes -= skipped as u32;
            if self.skip_bytes > 0 || !self.fill(input, HEAD_BYTES) {
                return Ok(None);
            }
            let Some(head) = self.begin.first_chunk() else { return Ok(None) };
            let head = FrameHead::parse(*head);
            if head.length > FRAME_BYTES_MAX {
                let text = "the server sent a frame larger than allowed";
                return Err(Error { code: ErrorCode::FRAME_SIZE_ERROR, text });
            }
            let wanted = if head.kind == frame::PING { head.length.min(PING_DATA.len() as u32) } else { 0 };
            if !self.fill(input, HEAD_BYTES + wanted as usize) {
                return Ok(None);
            }
            let event = self.on_frame(head, out);
            self.skip_bytes = head.length - wanted;
            self.begin.clear();
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn on_frame(&self, head: FrameHead, out: &mut Vec<u8>) -> Option<IdleEvent> {
        match (head.kind, head.has(frame::ACK)) {
            (frame::SETTINGS, false) => {
                frame::put(out, frame::SETTINGS, frame::ACK, 0, &[]);
                Some(IdleEvent::Settings)
            }
            (frame::PING, true) => Some(IdleEvent::Pong),
            (frame::PING, false) if head.length == PING_DATA.len() as u32 => {
                frame::put(out, frame::PING, frame::ACK, 0, &self.begin[HEAD_BYTES..]);
                None
            }
            (frame::GOAWAY, _) => Some(IdleEvent::GoAway),
            _ => None,
        }
    }

    /// Whether the first `count` bytes of the frame are there.
    fn fill(&mut self, input: &mut &[u8], count: usize) -> bool {
        let taken = count.saturating_sub(self.begin.len()).min(input.len());
        self.begin.extend_from_slice(&input[..taken]);
        *input = &input[taken..];
        self.begin.len() >= count
    }
}

const PING_DATA: &[u8; 8] = b"squall\0\0";
