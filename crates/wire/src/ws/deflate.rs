//! permessage-deflate (RFC 7692): what is agreed on, and the compression itself.

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Error, WebSocketRole};

/// What both ends have agreed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Params {
    /// The server begins each message with an empty window.
    pub server_no_context_takeover: bool,
    /// The client does.
    pub client_no_context_takeover: bool,
    /// The server's window is 2 to the power of this many bytes; `None`: the largest, without a word about it.
    pub server_window_bits: Option<u8>,
    /// The client's.
    pub client_window_bits: Option<u8>,
}

impl Params {
    /// A server's answer to the offers in `Sec-WebSocket-Extensions`: the first that can be met, or none (RFC 7692 5).
    pub fn choose(offers: &str) -> Option<Self> {
        offers.split(',').find_map(|offer| Self::read(offer, WebSocketRole::Client))
    }

    /// What a server has agreed to in its `Sec-WebSocket-Extensions`; `None`: something that was not offered. `limits_client`: the offer had
    /// `client_max_window_bits`, without which the server may not ask for it (RFC 7692 7.1.2.2).
    pub fn agreed(answer: &str, limits_client: bool) -> Option<Self> {
        let params = Self::read(answer, WebSocketRole::Server)?;
        (limits_client || params.client_window_bits.is_none()).then_some(params)
    }

    /// Reads one element of the field, written by `writer`.
    fn read(element: &str, writer: WebSocketRole) -> Option<Self> {
        let mut parts = element.split(';').map(str::trim);
        if parts.next()? != "permessage-deflate" {
            return None;
        }
        let (mut params, mut names) = (Self::default(), Vec::new());
        for part in parts {
            let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| {
                (name.trim_end(), Some(value.trim().trim_matches('"')))
            });
            // RFC 7692 7.1: a parameter that is unknown, repeated or invalid declines the whole element.
            if names.contains(&name) {
                return None;
            }
            names.push(name);
            match (name, value) {
                ("server_no_context_takeover", None) => params.server_no_context_takeover = true,
                ("client_no_context_takeover", None) => params.client_no_context_takeover = true,
                ("server_max_window_bits", Some(bits)) => {
                    params.server_window_bits = Some(window_bits(bits)?);
                }
                ("client_max_window_bits", Some(bits)) => {
                    params.client_window_bits = Some(window_bits(bits)?);
                }
                ("client_max_window_bits", None) if writer == WebSocketRole::Client => {}
                _ => return None,
            }
        }
        // zlib cannot write with the smallest window.
        let own_bits = match writer {
            WebSocketRole::Client => params.server_window_bits,
            WebSocketRole::Server => params.client_window_bits,
        };
        own_bits.is_none_or(|bits| bits >= WINDOW_BITS_WRITTEN_MIN).then_some(params)
    }

    /// Decompresses what the peer of `role` sends.
    pub fn inflater(&self, role: WebSocketRole) -> Inflater {
        let resets = match role {
            WebSocketRole::Client => self.server_no_context_takeover,
            WebSocketRole::Server => self.client_no_context_takeover,
        };
        Inflater { inner: Decompress::new(false), resets }
    }

    /// Compresses what `role` sends.
    pub fn deflater(&self, role: WebSocketRole) -> Deflater {
        let (resets, bits) = match role {
            WebSocketRole::Client => (self.client_no_context_takeover, self.client_window_bits),
            WebSocketRole::Server => (self.server_no_context_takeover, self.server_window_bits),
        };
        let bits = bits.unwrap_or(WINDOW_BITS_MAX);
        Deflater { inner: Compress::new_with_window_bits(Compression::fast(), false, bits), resets }
    }
}

/// As a value of `Sec-WebSocket-Extensions`. A window that was offered is answered, even the largest (RFC 7692 7.1.2.1).
impl fmt::Display for Params {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("permessage-deflate")?;
        for (name, is_set) in [
            ("server_no_context_takeover", self.server_no_context_takeover),
            ("client_no_context_takeover", self.client_no_context_takeover),
        ] {
            if is_set {
                write!(out, "; {name}")?;
            }
        }
        for (name, bits) in [
            ("server_max_window_bits", self.server_window_bits),
            ("client_max_window_bits", self.client_window_bits),
        ] {
            if let Some(bits) = bits {
                write!(out, "; {name}={bits}")?;
            }
        }
        Ok(())
    }
}

fn window_bits(text: &str) -> Option<u8> {
    let is_plain = !text.starts_with(['0', '+']);
    text.parse().ok().filter(|bits| is_plain && (WINDOW_BITS_MIN..=WINDOW_BITS_MAX).contains(bits))
}

/// Decompresses the messages of one connection.
#[derive(Debug)]
pub struct Inflater {
    inner: Decompress,
    resets: bool,
}

impl Inflater {
    /// Appends what the next part of a message holds, up to `bytes_max` bytes of the whole message.
    pub(super) fn push(
        &mut self,
        part: &[u8],
        is_last: bool,
        bytes_max: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.inflate(part, bytes_max, out)?;
        if is_last {
            let message_bytes = out.len();
            self.inflate(&TAIL, bytes_max, out)?;
            self.inflate(&PROBE, bytes_max, out)?;
            // Within a block, what is appended is data, or damage.
            if out.len() > message_bytes {
                return Err(Error::Deflate);
            }
            if self.resets {
                self.inner.reset(false);
            }
        }
        Ok(())
    }

    fn inflate(&mut self, mut input: &[u8], bytes_max: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            if out.len() as u64 > bytes_max {
                return Err(Error::TooLarge(bytes_max));
            }
            out.reserve(CHUNK_BYTES);
            let (read, written) = (self.inner.total_in(), out.len());
            let status = self.inner.decompress_vec(input, out, FlushDecompress::Sync);
            let status = status.map_err(|_damaged| Error::Deflate)?;
            input = &input[(self.inner.total_in() - read) as usize..];
            match status {
                // RFC 7692 7.2.3.5: a block that is marked as the last one may end a message; the next bytes begin another stream.
                Status::StreamEnd => self.inner.reset(false),
                _ if input.is_empty() && out.len() < out.capacity() => return Ok(()),
                _ if out.len() == written && !input.is_empty() => return Err(Error::Deflate),
                _ => {}
            }
        }
    }
}

/// Compresses the messages of one connection.
#[derive(Debug)]
pub struct Deflater {
    inner: Compress,
    resets: bool,
}

impl Deflater {
    /// Appends the compressed payload.
    pub(super) fn compress(&mut self, mut payload: &[u8], out: &mut Vec<u8>) {
        loop {
            out.reserve(CHUNK_BYTES);
            let read = self.inner.total_in();
            let status = self.inner.compress_vec(payload, out, FlushCompress::Sync);
            payload = &payload[(self.inner.total_in() - read) as usize..];
            // zlib fails on a wrong use alone. It has flushed everything when it left space in the output.
            if status.is_err() || (payload.is_empty() && out.len() < out.capacity()) {
                break;
            }
        }
        if out.ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
        if out.is_empty() {
            // zlib writes nothing when there is nothing new to flush; RFC 7692 7.2.3.6 has this byte for an empty message.
            out.push(0);
        }
        if self.resets {
            self.inner.reset();
        }
    }
}

/// What a flush ends with; it is left out on the wire (RFC 7692 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Empty blocks: they change nothing where a message has ended between two blocks, as it must. They are longer than the description of a block's
/// codes can be (RFC 1951 3.2.7), within which nothing else would tell.
const PROBE: [u8; 64 * EMPTY_BLOCK.len()] = {
    let mut blocks = [0; 64 * EMPTY_BLOCK.len()];
    let mut at = 0;
    while at < blocks.len() {
        blocks[at] = EMPTY_BLOCK[at % EMPTY_BLOCK.len()];
        at += 1;
    }
    blocks
};

/// A block that holds nothing (RFC 1951 3.2.4).
const EMPTY_BLOCK: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// By how much outputs grow.
const CHUNK_BYTES: usize = 4096;

/// RFC 7692 7.1.2.
const WINDOW_BITS_MIN: u8 = 8;

/// RFC 7692 7.1.2.
const WINDOW_BITS_MAX: u8 = 15;

/// The smallest window that zlib writes a raw stream with.
const WINDOW_BITS_WRITTEN_MIN: u8 = 9;
