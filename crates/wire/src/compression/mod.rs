//! What HPACK (RFC 7541) and QPACK (RFC 9204) have in common: integers, strings, the Huffman code and the dynamic table.

mod huffman;
mod integer;
mod string;
mod table;

pub(crate) use integer::{put, take};
pub(crate) use string::{Scratch, put_string, take_string};
pub(crate) use table::{DynamicTable, ENTRY_OVERHEAD};

/// Why bytes cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodingError {
    /// They end too early.
    Incomplete,
    /// No bytes after them could make them right.
    Invalid(&'static str),
}
