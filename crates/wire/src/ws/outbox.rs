//! Messages and control frames to bytes.

use super::deflate::Deflater;
use super::frame::{Header, MessageKind, Opcode};
use super::inbox::KEPT_BYTES;
use super::{CONTROL_BYTES_MAX, CloseCode, mask};

/// Writes what one connection sends.
#[derive(Debug, Default)]
pub struct Outbox {
    deflater: Option<Deflater>,
    compressed: Vec<u8>,
}

impl Outbox {
    /// `deflater`: where permessage-deflate was agreed on.
    pub fn new(deflater: Option<Deflater>) -> Self {
        Self { deflater, compressed: Vec::new() }
    }

    /// Appends a message in one frame. `key`: a client's masking key; a server gives none.
    pub fn message(&mut self, kind: MessageKind, payload: &[u8], key: Option<[u8; 4]>, out: &mut Vec<u8>) {
        let opcode = Opcode::Message(kind);
        match &mut self.deflater {
            None => frame(opcode, false, payload, key, out),
            Some(deflater) => {
                self.compressed.clear();
                deflater.compress(payload, &mut self.compressed);
                frame(opcode, true, &self.compressed, key, out);
                self.compressed.clear();
                self.compressed.shrink_to(KEPT_BYTES);
            }
        }
    }

    /// Appends a ping. Of a payload of more than 125 bytes the rest is left out.
    pub fn ping(&mut self, payload: &[u8], key: Option<[u8; 4]>, out: &mut Vec<u8>) {
        frame(Opcode::Ping, false, cut(payload), key, out);
    }

    /// Appends the answer to a ping.
    pub fn pong(&mut self, payload: &[u8], key: Option<[u8; 4]>, out: &mut Vec<u8>) {
        frame(Opcode::Pong, false, cut(payload), key, out);
    }

    /// Appends a close frame; one without a payload where the code is one that is never sent. A long reason is cut between two
    /// characters.
    pub fn close(&mut self, code: CloseCode, reason: &str, key: Option<[u8; 4]>, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        if code.may_be_sent() {
            payload.extend(code.0.to_be_bytes());
            payload.extend(&reason.as_bytes()[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)]);
        }
        frame(Opcode::Close, false, &payload, key, out);
    }
}

fn cut(payload: &[u8]) -> &[u8] {
    &payload[..payload.len().min(CONTROL_BYTES_MAX)]
}

fn frame(opcode: Opcode, is_compressed: bool, payload: &[u8], key: Option<[u8; 4]>, out: &mut Vec<u8>) {
    let bytes = payload.len() as u64;
    out.reserve(payload.len() + 14);
    Header { opcode, is_last: true, is_compressed, bytes, mask: key }.write(out);
    let at = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = key {
        mask::apply(key, 0, &mut out[at..]);
    }
}
