//! Every bound of the server, with its reason.

use std::time::Duration;

/// Longest body that a route makes, in bytes: 1 GiB is enough to fill any link for seconds, and nothing of it is stored.
pub(crate) const REPLY_BYTES_MAX: u64 = 1 << 30;

/// Longest request body that an echoing route keeps, in bytes; it is held in memory up to four times while it becomes JSON.
pub(crate) const ECHO_BYTES_MAX: u64 = 16 << 20;

/// Longest delay that a request may ask for: far beyond any client's timeout.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Most lines of `/stream/N`, links of `/links/N/I`, hops of `/redirect/N`; httpbin allows 100, 200 and no bound.
pub(crate) const ITEM_COUNT_MAX: u64 = 10_000;

/// Most events of `/sse`, and messages after which `/ws/echo` closes: a billion last longer than any test.
pub(crate) const SEQUENCE_COUNT_MAX: u64 = 1_000_000_000;

/// Largest WebSocket message in bytes, decompressed; larger ones close the connection with 1009.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// Largest message of `/ws/broadcast` in bytes: as many as below of them may wait in memory.
pub(crate) const POST_BYTES_MAX: u64 = 64 * 1024;

/// Messages that wait for a slow reader of `/ws/broadcast`; one that falls behind by more is closed with 1013.
pub(crate) const CHANNEL_MESSAGE_COUNT_MAX: usize = 1024;

/// Most bytes read from a WebSocket at once, and kept for writing between two messages.
pub(crate) const READ_BYTES_MAX: usize = 64 * 1024;

/// Bytes in each direction between a WebSocket and its stream of HTTP/3: the stream's windows hold back what follows.
pub(crate) const TUNNEL_BYTES: usize = 16 * 1024;

/// Most parts of a multipart body; each becomes a member of the answer.
pub(crate) const PART_COUNT_MAX: usize = 1000;

/// Connections that the kernel may hold for us before they are accepted; it caps this at `net.core.somaxconn`.
pub(crate) const BACKLOG_COUNT: i32 = 4096;

/// Accepted connections that wait for one worker; when it is full, the kernel's backlog holds the rest.
pub(crate) const HANDOVER_COUNT: usize = 1024;

/// Pause after `accept` failed for want of descriptors or memory: the cause will not vanish within microseconds.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// How old a line of the log may get before it is in the file.
pub(crate) const LOG_FLUSH_EVERY: Duration = Duration::from_millis(200);

/// Requests that one HTTP/2 connection may have open: as many as load generators ask of one.
pub(crate) const STREAM_COUNT_MAX: u32 = 1024;

/// Sessions of QUIC that may be resumed, in memory: two tickets for each of some thousands of clients.
pub(crate) const QUIC_SESSION_COUNT_MAX: usize = 20_000;
