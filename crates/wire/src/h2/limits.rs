//! Every bound of this codec, with its reason. What a response may be is bounded as in HTTP/1.1: see [`crate::h1::limits`].

/// Largest frame payload that is read, in bytes: what the RFC lets every peer send (9113 4.2), and larger ones save nothing.
pub const FRAME_BYTES_MAX: u32 = 16_384;

/// Largest header block that is read, as compressed, in bytes: the list that it stands for is bounded at the same size.
pub const HEADER_BLOCK_BYTES_MAX: usize = crate::h1::limits::RESPONSE_HEAD_BYTES_MAX;

/// Most CONTINUATION frames of one header block: each of an honest peer is as large as a frame may be.
pub const CONTINUATION_COUNT_MAX: u32 = 64;

/// Most frames in a row that bring nothing (pings, settings, priorities, empty data): each costs its peer nothing and us time.
pub const IDLE_FRAME_COUNT_MAX: u32 = 10_000;

/// Most bytes of answers to control frames that wait for the socket: a peer that asks must also read.
pub const CONTROL_BYTES_MAX: usize = 64 * 1024;

/// Bytes that one stream may add to them: two WINDOW_UPDATE frames and a RST_STREAM frame of 13 bytes each.
pub const CONTROL_BYTES_PER_STREAM_MAX: usize = 3 * 13;

/// The dynamic table of HPACK in either direction, in bytes: the RFC's initial size (9113 6.5.2). A larger one would cost memory for
/// each connection and save next to nothing.
pub const HEADER_TABLE_BYTES_MAX: usize = 4096;

/// Streams opened before the peer has said how many it allows: what the RFC recommends every peer to allow (9113 6.5.2).
pub const STREAM_COUNT_BEFORE_SETTINGS: u32 = 100;

/// Largest header block that is remembered to recognise the next one, in bytes.
pub(super) const CACHED_BLOCK_BYTES_MAX: usize = 4096;
