//! Every limit of this crate, with its reason.

/// Largest record: one request and its response, heads and bodies. Larger ones are left out and reported.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// Largest body of a request that is kept in memory, and in the frame of its record. Of a larger one, the middle is spooled.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// Bytes at the beginning and at the end of a spooled body that are kept in memory: the fields of a form are there.
pub const BODY_ENDS_BYTES: usize = 256 << 10;

/// Largest body that is read into memory for a format that cannot spool it. Bodies of request and response, and their heads, fit into one record.
pub const LOADED_BODY_BYTES_MAX: u64 = 60 << 20;

/// Messages of one recorded WebSocket, as they are in memory; they fit into one record. What follows is left out, and that is reported.
pub const CONVERSATION_BYTES_MAX: usize = 32 << 20;

/// Largest message of a WebSocket that is recorded.
pub const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// Largest head of a request or response; no server reads more, and the engine sends no more.
pub const HEAD_BYTES_MAX: usize = squall_plan::limits::REQUEST_HEAD_BYTES_MAX;

/// Most header fields of one message.
pub const FIELD_COUNT_MAX: usize = 1024;

/// A file in which no record ends for this long is no recording: a compressed file may hold terabytes of nothing.
pub const SKIP_BYTES_MAX: u64 = 1 << 30;

/// Most requests kept while their responses are looked for further down in the file, and of those behind the oldest of them.
pub const PENDING_COUNT_MAX: usize = 65_536;

/// Most bytes that those requests take in memory.
pub const PENDING_BYTES_MAX: usize = 16 << 20;

/// Bytes of memory for records that are sorted; what is larger is sorted in runs on disk.
pub const SORT_BYTES_MAX: usize = 24 << 20;

/// Most different rows (method and URL without what varies) that are distinguished in a recording.
pub const ROW_COUNT_MAX: usize = 1000;

/// Most different origins (scheme, host and port) in one recording.
pub const ORIGIN_COUNT_MAX: usize = 1000;

/// A block of the index spans at least this many bytes: ten thousand lines for ten gigabytes.
pub const BLOCK_BYTES: u64 = 1 << 20;

/// Deepest nesting of values in a mitmproxy dump.
pub const NESTING_MAX: u32 = 32;

/// Times before this are taken for mistakes: HTTP did not exist.
pub const TIME_NS_MIN: u64 = 631_152_000_000_000_000; // 1990-01-01

/// Times after this are taken for mistakes.
pub const TIME_NS_MAX: u64 = 4_102_444_800_000_000_000; // 2100-01-01

/// Records that the user's program may keep before it answers the first of them.
pub const PIPE_COUNT_MAX: usize = 16_384;
