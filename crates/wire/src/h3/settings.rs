//! What either side announces (RFC 9114 7.2.4, RFC 9204 5, RFC 9220 3).

use super::error::{frame_error, settings_error};
use super::limits::{BLOCKED_STREAM_COUNT_MAX, TABLE_BYTES_MAX};
use super::{Error, frame, varint};
use crate::h1::limits::RESPONSE_HEAD_BYTES_MAX;

/// What we allow the peer, and use of what it allows us.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Streams that are used at once, where the peer allows as many; at least 1. A server's is the transport's to enforce.
    pub stream_count: u32,
    /// The dynamic table that the peer may fill (RFC 9204 3.2.3); 0: none, so that no response ever waits for another stream.
    pub table_bytes: u32,
    /// Sends a setting that means nothing, so that peers that reject what they do not know are found (RFC 9114 7.2.4.1): which of them.
    pub grease: Option<u32>,
    /// Opens a stream that means nothing as well (RFC 9114 6.2.3), where there is `grease`.
    pub has_grease_stream: bool,
    /// A server accepts extended CONNECT (RFC 9220).
    pub has_extended_connect: bool,
}

/// What the peer allows us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeerSettings {
    pub(super) section_bytes_max: u64,
    pub(super) has_extended_connect: bool,
}

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
const H3_DATAGRAM: u64 = 0x33;

impl Setup {
    /// Requests on `stream_count` streams at once, without a dynamic table.
    pub const fn new(stream_count: u32) -> Self {
        Self {
            stream_count,
            table_bytes: 0,
            grease: None,
            has_grease_stream: false,
            has_extended_connect: false,
        }
    }

    pub(super) fn table_bytes(&self) -> u32 {
        self.table_bytes.min(TABLE_BYTES_MAX)
    }

    pub(super) fn blocked_stream_count(&self) -> u32 {
        if self.table_bytes == 0 { 0 } else { BLOCKED_STREAM_COUNT_MAX.min(self.stream_count) }
    }

    /// Appends our SETTINGS. What has its default value is left out (RFC 9114 7.2.4.1).
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(32);
        let mut put = |id: u64, value: u64| {
            varint::put(id, &mut payload);
            varint::put(value, &mut payload);
        };
        put(MAX_FIELD_SECTION_SIZE, RESPONSE_HEAD_BYTES_MAX as u64);
        if self.table_bytes > 0 {
            put(QPACK_MAX_TABLE_CAPACITY, self.table_bytes().into());
            put(QPACK_BLOCKED_STREAMS, self.blocked_stream_count().into());
        }
        if self.has_extended_connect {
            put(ENABLE_CONNECT_PROTOCOL, 1);
        }
        if let Some(n) = self.grease {
            put(frame::grease(n), n.into());
        }
        frame::put(frame::SETTINGS, &payload, out);
    }
}

impl PeerSettings {
    /// Before anything is said. Our encoder uses no dynamic table, so that the peer's is of no interest.
    pub(super) const fn new() -> Self {
        Self { section_bytes_max: u64::MAX, has_extended_connect: false }
    }

    /// Reads the payload of a SETTINGS frame; unknown settings mean nothing.
    pub(super) fn read(payload: &[u8]) -> Result<Self, Error> {
        let mut settings = Self::new();
        let mut ids = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            let (Some(id), Some(value)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
                return Err(frame_error("SETTINGS ends within a setting"));
            };
            ids.push(id);
            settings.apply(id, value)?;
        }
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(settings_error("a setting twice in SETTINGS"));
        }
        Ok(settings)
    }

    fn apply(&mut self, id: u64, value: u64) -> Result<(), Error> {
        match id {
            // RFC 9114 7.2.4.1: what HTTP/2 has and HTTP/3 does not.
            0x0 | 0x2..=0x5 => return Err(settings_error("a setting of HTTP/2 in SETTINGS")),
            MAX_FIELD_SECTION_SIZE => self.section_bytes_max = value,
            ENABLE_CONNECT_PROTOCOL | H3_DATAGRAM if value > 1 => {
                return Err(settings_error("a setting that is neither 0 nor 1"));
            }
            ENABLE_CONNECT_PROTOCOL => self.has_extended_connect = value == 1,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back() {
        let setup =
            Setup { table_bytes: 4096, grease: Some(7), has_extended_connect: true, ..Setup::new(10) };
        let mut out = Vec::new();
        setup.put(&mut out);
        let mut payload = &out[..];
        assert_eq!(frame::take_head(&mut payload), Some((frame::SETTINGS, payload.len() as u64)));
        let expected = PeerSettings { section_bytes_max: 256 * 1024, has_extended_connect: true };
        assert_eq!(PeerSettings::read(payload), Ok(expected));
    }
}
