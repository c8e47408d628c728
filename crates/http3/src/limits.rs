//! Every bound of a server, with its reason.

use std::time::Duration;

/// Requests that one connection may have open: as many as load generators ask of one.
pub(crate) const STREAM_COUNT_MAX: u32 = 1024;

/// Unidirectional streams that a client may have open: three of HTTP/3, and some that mean nothing.
pub(crate) const UNI_STREAM_COUNT_MAX: u32 = 16;

/// Bytes of one request body that may come before they are read, and of one response before they are acknowledged: enough for a fast link
/// with a long way.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 8 << 20;

/// The same for all requests of a connection together.
pub(crate) const WINDOW_BYTES: u32 = 64 << 20;

/// Pieces of a request body that wait for the service; the window holds back what follows.
pub(crate) const PIECE_COUNT_MAX: usize = 8;

/// Silence after which a connection is taken for dead: where a client vanished, no FIN says so.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(600);

/// Socket buffers for all connections together, where the kernel allows as much: a burst must not overflow them.
pub(crate) const UDP_BUFFER_BYTES: usize = 8 << 20;

/// How long the farewell to connections may take when the server stops.
pub(crate) const CLOSE_MAX: Duration = Duration::from_millis(200);

/// Bodies up to this length leave in one piece with their head.
pub(crate) const COPIED_BYTES_MAX: usize = 16 * 1024;

/// Free TCP ports that are tried until one is free in UDP as well.
pub(crate) const PORT_TRY_COUNT: u32 = 10;
