//! `.squall`, the flat format of our own: append-only frames with a checksum each, and an index at the end.
//!
//! Written record by record, readable after a crash (what is whole is found again without the index), and quick to open
//! at any size: the index has what a replay must know before it starts. `docs/squall-format.md` describes every byte.

mod codec;
mod index;
mod reader;
mod stream;
mod writer;

pub use codec::{FRAME_HEAD_BYTES, Frame, FrameKind, RecordView};
pub use index::{Block, Index, Origin, Row};
pub use reader::{Cursor, OpenStoreError, Recording};
pub use stream::Stream;
pub use writer::{Writer, repair, replace};

/// The first bytes of a file: name and version.
pub const MAGIC: &[u8; 8] = b"SQUALLTR";

/// Version of the format.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes before the first frame: the magic, the version, and space for later.
pub const FILE_HEAD_BYTES: u64 = 16;

/// Begins the frame of a record.
const SYNC_RECORD: [u8; 4] = [0xF5, b'S', b'q', b'R'];

/// Begins a frame with a part of a spooled body; the record follows them.
const SYNC_BODY: [u8; 4] = [0xF5, b'S', b'q', b'B'];

/// Bytes of a spooled body in each of its frames but the last.
pub(crate) const BODY_FRAME_BYTES: usize = 1 << 20;

/// Begins the frame of an index.
const SYNC_INDEX: [u8; 4] = [0xF5, b'S', b'q', b'I'];

/// Ends a file that was closed.
const TRAILER_MAGIC: &[u8; 8] = b"SQUALLIX";

/// The trailer: where the index begins, and the magic.
const TRAILER_BYTES: u64 = 16;

/// Row of a record whose recording has too many different ones.
pub const ROW_OTHER: u16 = u16::MAX;

#[cfg(test)]
mod tests;
