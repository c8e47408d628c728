//! Every bound of this codec, with its reason. What a response may be is bounded as in HTTP/1.1: see [`crate::h1::limits`].

/// Largest field section that is read, as compressed, in bytes: the list that it stands for is bounded at the same size.
pub const SECTION_BYTES_MAX: u64 = crate::h1::limits::RESPONSE_HEAD_BYTES_MAX as u64;

/// Largest SETTINGS frame, in bytes: some 1,000 settings, where a few dozen exist.
pub const SETTINGS_BYTES_MAX: u64 = 8 * 1024;

/// Largest PRIORITY_UPDATE frame, in bytes: an id and two short parameters, with room for those of extensions.
pub const PRIORITY_UPDATE_BYTES_MAX: u64 = 1024;

/// Most frames in a row that bring nothing (unknown kinds, empty DATA, GOAWAY again): each costs its peer next to nothing and us time.
pub const IDLE_FRAME_COUNT_MAX: u32 = 10_000;

/// Most unidirectional streams of unknown kinds that are open at once: each is refused when its kind is known, so honest peers have one or two.
pub const UNKNOWN_STREAM_COUNT_MAX: usize = 64;

/// Most bytes that wait for one of our unidirectional streams: a peer that causes them must also read.
pub const UNI_OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Largest dynamic table of QPACK, in bytes: its entries have lengths of 16 bits.
pub const TABLE_BYTES_MAX: u32 = 65_535;

/// Most streams that may wait for entries of the dynamic table at once (`SETTINGS_QPACK_BLOCKED_STREAMS`): what the RFC expects of peers with a
/// table (9204 7.3 leaves the number open), and a bound on the sections that are kept meanwhile.
pub const BLOCKED_STREAM_COUNT_MAX: u32 = 100;

/// Most bytes that are kept of a stream that waits for the dynamic table: its section and what came in the same call. A transport that asks
/// [`wants_stream`](super::Client::wants_stream) delivers no more.
pub const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Largest field section that is remembered to recognise the next one, in bytes.
pub(super) const CACHED_SECTION_BYTES_MAX: usize = 4096;

/// Largest buffer that a free slot keeps for sections that come in pieces, in bytes: abuse by one server must not stay in memory.
pub(super) const SPARE_BUFFER_BYTES_MAX: usize = 16 * 1024;
