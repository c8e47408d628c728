//! Frames: their kinds and heads (RFC 9114 7).

use super::varint;

pub(super) const DATA: u64 = 0x0;
pub(super) const HEADERS: u64 = 0x1;
pub(super) const CANCEL_PUSH: u64 = 0x3;
pub(super) const SETTINGS: u64 = 0x4;
pub(super) const PUSH_PROMISE: u64 = 0x5;
pub(super) const GOAWAY: u64 = 0x7;
pub(super) const MAX_PUSH_ID: u64 = 0xd;
/// PRIORITY_UPDATE of a request, and of a push (RFC 9218 7.2).
pub(super) const PRIORITY_OF_REQUEST: u64 = 0xf0700;
pub(super) const PRIORITY_OF_PUSH: u64 = 0xf0701;

/// Bytes of the longest frame head: two integers.
pub(super) const HEAD_BYTES_MAX: usize = 16;

/// RFC 9114 7.2.8: kinds of HTTP/2 that HTTP/3 does not have.
pub(super) const fn is_of_http2(kind: u64) -> bool {
    matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
}

/// RFC 9114 7.2, RFC 9218 7.2: kinds that only the control stream may have.
pub(super) const fn is_of_control(kind: u64) -> bool {
    matches!(kind, SETTINGS | GOAWAY | CANCEL_PUSH | MAX_PUSH_ID | PRIORITY_OF_REQUEST | PRIORITY_OF_PUSH)
}

/// Appends the head of a frame.
pub(super) fn put_head(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::put(kind, out);
    varint::put(length, out);
}

/// Appends a whole frame.
pub(super) fn put(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    put_head(kind, payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Takes the head of a frame, its kind and its length, from the front of `input`; `None`: it is not there in whole.
pub(super) fn take_head(input: &mut &[u8]) -> Option<(u64, u64)> {
    let mut rest = *input;
    let head = (varint::take(&mut rest)?, varint::take(&mut rest)?);
    *input = rest;
    Some(head)
}

/// RFC 9114 6.2.3, 7.2.4.1, 7.2.8: the `n`-th of the numbers that mean nothing, of streams, settings and frames.
pub(super) const fn grease(n: u32) -> u64 {
    0x1f * n as u64 + 0x21
}
