//! Strings: a length, and the bytes as they are or in the Huffman code (RFC 7541 5.2, RFC 9204 4.1.2).

use super::{CodingError, huffman, put, take};

/// Space for strings that were Huffman-coded; one for each event loop.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Takes a string whose length has a prefix of `prefix_bits`, after the bit that says whether it is coded: where it lies, or decoded into
/// `buffer`.
pub(crate) fn take_string<'i: 'o, 'o>(
    rest: &mut &'i [u8],
    prefix_bits: u32,
    buffer: &'o mut Vec<u8>,
) -> Result<&'o [u8], CodingError> {
    let is_coded = rest.first().is_some_and(|first| first & 1 << prefix_bits != 0);
    let length = take(rest, prefix_bits)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(CodingError::Incomplete)?;
    *rest = after;
    if !is_coded {
        return Ok(bytes);
    }
    buffer.clear();
    huffman::decode(bytes, buffer)?;
    Ok(buffer)
}

/// Appends a string in whichever form is shorter; `pattern` is what the first byte says besides.
pub(crate) fn put_string(text: &[u8], prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_bytes(text);
    if coded_bytes < text.len() {
        put(coded_bytes as u64, prefix_bits, pattern | 1 << prefix_bits, out);
        huffman::encode(text, out);
    } else {
        put(text.len() as u64, prefix_bits, pattern, out);
        out.extend_from_slice(text);
    }
}
