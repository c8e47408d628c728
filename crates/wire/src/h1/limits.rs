//! Every bound of this codec, with its reason. `squall-plan` repeats the one that a plan can run into.

/// Largest response head or trailer section that is read, in bytes. nginx sends at most 4 x 8 KiB by default; more is abuse.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 256 * 1024;

/// Most header fields in one response head, and most fields in one trailer section.
pub const RESPONSE_HEADER_COUNT_MAX: usize = 1024;

/// Largest chunk-size line, chunk extensions and line end included (RFC 9112 7.1.1 asks recipients to set one).
pub const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// Most interim (1xx) responses before a final one.
pub const INTERIM_RESPONSE_COUNT_MAX: u32 = 64;

/// Largest request head, in bytes.
pub const REQUEST_HEAD_BYTES_MAX: usize = 1024 * 1024;

/// Largest head that is remembered to recognise the next one, in bytes: copying a larger one at every miss would cost more than
/// it saves.
pub(super) const CACHED_HEAD_BYTES_MAX: usize = 4096;

/// Most buffers kept for heads that come in pieces: as many as are likely to be incomplete at one moment on one event loop.
pub(super) const SPARE_BUFFER_COUNT_MAX: usize = 256;

/// Largest buffer kept for heads that come in pieces, in bytes: abuse by one server must not stay in memory.
pub(super) const SPARE_BUFFER_BYTES_MAX: usize = 16 * 1024;
