//! The instructions of decoder streams (RFC 9204 4.4): ours, and a peer's.

use crate::compression::{CodingError, put, take};
use crate::h3::Error;
use crate::h3::error::decoder_stream;

/// Section Acknowledgment (RFC 9204 4.4.1).
pub(in crate::h3) fn put_acknowledgement(stream_id: u64, out: &mut Vec<u8>) {
    put(stream_id, 7, 0x80, out);
}

/// Stream Cancellation (RFC 9204 4.4.2).
pub(in crate::h3) fn put_cancellation(stream_id: u64, out: &mut Vec<u8>) {
    put(stream_id, 6, 0x40, out);
}

/// Insert Count Increment (RFC 9204 4.4.3).
pub(in crate::h3) fn put_increment(count: u64, out: &mut Vec<u8>) {
    put(count, 6, 0, out);
}

/// Reads what a peer's decoder says of our sections, none of which uses the dynamic table: it has nothing to acknowledge.
/// `partial`: what came of an instruction that is not whole.
pub(in crate::h3) fn read_acknowledgements(partial: &mut Vec<u8>, input: &[u8]) -> Result<(), Error> {
    partial.extend_from_slice(input);
    let mut rest = &partial[..];
    while let Some(first) = rest.first() {
        let prefix_bits = if first & 0x80 != 0 { 7 } else { 6 };
        let mut after = rest;
        match take(&mut after, prefix_bits) {
            Ok(_) if first & 0x80 != 0 => {
                return Err(decoder_stream("acknowledgement of a section that uses no dynamic table"));
            }
            Ok(_) if first & 0x40 == 0 => {
                return Err(decoder_stream("acknowledgement of insertions that were never made"));
            }
            Ok(_) => rest = after,
            Err(CodingError::Incomplete) => break,
            Err(CodingError::Invalid(text)) => return Err(decoder_stream(text)),
        }
    }
    let read_bytes = partial.len() - rest.len();
    partial.drain(..read_bytes);
    Ok(())
}
