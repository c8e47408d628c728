//! What either side announces (RFC 9113 6.5.2, RFC 8441 3).

use super::Error;
use super::error::{flow_control, protocol};
use super::frame::{self, SETTINGS, STREAM_ID_MAX};
use crate::h1::limits::RESPONSE_HEAD_BYTES_MAX;

/// What we allow the peer.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Streams that are used at once, where the peer allows as many; at least 1.
    pub stream_count: u32,
    /// Bytes of one response that may come before we say that they were read: at most 2^31 - 1.
    pub window_bytes: u32,
    /// The same for all responses together: from 65,535 to 2^31 - 1.
    pub connection_window_bytes: u32,
}

/// What the peer allows us.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerSettings {
    pub(super) has_spoken: bool,
    pub(super) stream_count_max: u32,
    pub(super) window_bytes: i32,
    pub(super) frame_bytes_max: u32,
    pub(super) header_table_bytes: usize,
    pub(super) header_list_bytes_max: u32,
    pub(super) has_extended_connect: bool,
}

/// One entry of a SETTINGS frame.
pub(super) struct Setting {
    id: u16,
    value: u32,
}

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;

/// The connection's window, and each stream's, before anything is said (RFC 9113 6.9.2).
pub(super) const WINDOW_BYTES_INITIAL: u32 = 65_535;

impl Setup {
    /// Appends our SETTINGS, and the WINDOW_UPDATE that widens the connection.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(18);
        for (id, value) in [
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, self.window_bytes),
            (MAX_HEADER_LIST_SIZE, RESPONSE_HEAD_BYTES_MAX as u32),
        ] {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frame::put(out, SETTINGS, 0, 0, &payload);
        let widened = self.connection_window_bytes.saturating_sub(WINDOW_BYTES_INITIAL);
        if widened > 0 {
            frame::put(out, frame::WINDOW_UPDATE, 0, 0, &widened.to_be_bytes());
        }
    }
}

impl PeerSettings {
    pub(super) const fn new() -> Self {
        Self {
            has_spoken: false,
            stream_count_max: super::limits::STREAM_COUNT_BEFORE_SETTINGS,
            window_bytes: WINDOW_BYTES_INITIAL as i32,
            frame_bytes_max: super::limits::FRAME_BYTES_MAX,
            header_table_bytes: super::limits::HEADER_TABLE_BYTES_MAX,
            header_list_bytes_max: u32::MAX,
            has_extended_connect: false,
        }
    }

    /// RFC 9113 6.5.2: a peer that announces no limit of streams has none.
    pub(super) fn note_first_word(&mut self) {
        if !std::mem::replace(&mut self.has_spoken, true) {
            self.stream_count_max = u32::MAX;
        }
    }

    /// Takes note of one entry; unknown ones mean nothing.
    pub(super) fn apply(&mut self, setting: &Setting) -> Result<(), Error> {
        let value = setting.value;
        match setting.id {
            HEADER_TABLE_SIZE => self.header_table_bytes = value as usize,
            // RFC 9113 6.5.2: a server may only say that it does not push.
            ENABLE_PUSH if value != 0 => return Err(protocol("SETTINGS_ENABLE_PUSH from a server is not 0")),
            MAX_CONCURRENT_STREAMS => self.stream_count_max = value,
            INITIAL_WINDOW_SIZE if value > STREAM_ID_MAX => {
                return Err(flow_control("SETTINGS_INITIAL_WINDOW_SIZE beyond 2^31 - 1"));
            }
            INITIAL_WINDOW_SIZE => self.window_bytes = value as i32,
            MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(protocol("SETTINGS_MAX_FRAME_SIZE out of its range"));
            }
            MAX_FRAME_SIZE => self.frame_bytes_max = value,
            MAX_HEADER_LIST_SIZE => self.header_list_bytes_max = value,
            // RFC 8441 3: either 0 or 1, and never 0 after 1.
            ENABLE_CONNECT_PROTOCOL if value > 1 || value == 0 && self.has_extended_connect => {
                return Err(protocol("SETTINGS_ENABLE_CONNECT_PROTOCOL out of its range, or withdrawn"));
            }
            ENABLE_CONNECT_PROTOCOL => self.has_extended_connect = value == 1,
            _ => {}
        }
        Ok(())
    }
}

/// The entries of a SETTINGS frame, whose length is a multiple of six.
pub(super) fn entries(payload: &[u8]) -> impl Iterator<Item = Setting> {
    payload.as_chunks::<6>().0.iter().map(|&[i0, i1, v0, v1, v2, v3]| Setting {
        id: u16::from_be_bytes([i0, i1]),
        value: u32::from_be_bytes([v0, v1, v2, v3]),
    })
}
