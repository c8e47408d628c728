//! Parts to whole messages, decompressed and bounded.

use super::deflate::Inflater;
use super::utf8::Utf8;
use super::{Error, MessageKind, Part};

/// Puts the messages of one connection together.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    bytes_max: u64,
    utf8: Utf8,
    inflater: Option<Inflater>,
    is_done: bool,
}

/// A whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSocketMessage<'a> {
    /// Of what kind; text is valid UTF-8.
    pub kind: MessageKind,
    /// Decompressed.
    pub bytes: &'a [u8],
}

impl Inbox {
    /// `bytes_max`: of one message, decompressed. `inflater`: where permessage-deflate was agreed on.
    pub fn new(bytes_max: u64, inflater: Option<Inflater>) -> Self {
        Self { bytes: Vec::new(), bytes_max, utf8: Utf8::default(), inflater, is_done: false }
    }

    /// Adds a part; the message, when it is complete.
    ///
    /// # Errors
    /// When the message is too large, cannot be decompressed, or is text that is not UTF-8.
    pub fn push(&mut self, part: Part<'_>) -> Result<Option<WebSocketMessage<'_>>, Error> {
        self.release();
        let before = self.bytes.len();
        match &mut self.inflater {
            Some(inflater) if part.is_compressed => {
                inflater.push(part.bytes, part.is_last, self.bytes_max, &mut self.bytes)?;
                if part.kind == MessageKind::Text && !self.utf8.push(&self.bytes[before..]) {
                    return Err(Error::Utf8);
                }
            }
            _ if (before + part.bytes.len()) as u64 > self.bytes_max => {
                return Err(Error::TooLarge(self.bytes_max));
            }
            _ => self.bytes.extend_from_slice(part.bytes),
        }
        // The last block of a compressed message may hold a little more.
        if self.bytes.len() as u64 > self.bytes_max {
            return Err(Error::TooLarge(self.bytes_max));
        }
        if !part.is_last {
            return Ok(None);
        }
        if !self.utf8.finish() {
            return Err(Error::Utf8);
        }
        self.is_done = true;
        Ok(Some(WebSocketMessage { kind: part.kind, bytes: &self.bytes }))
    }

    /// Gives back the memory of a large message that has been handled; the connection may be silent from now on.
    pub fn release(&mut self) {
        if std::mem::take(&mut self.is_done) {
            self.clear();
        }
    }

    /// Empties the buffer for the next message; one large message does not hold its memory for ever.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

/// Bytes that stay allocated between two messages.
pub(super) const KEPT_BYTES: usize = 64 * 1024;
