//! The whole client against a random server: streams in pieces, resets and stops between requests, bodies and cancellations. Nothing panics, and
//! the client keeps to its bounds. Where only streams come, they are read the same byte by byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::h3::{BODY_BYTES, Peer, REQUEST_COUNT, TABLE_BYTES};
use squall_fuzz::seen::Seen;
use squall_wire::h3::{Error, HeadCache};

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let table_bytes = u32::from(first % 2) * TABLE_BYTES;
    if first & 2 != 0 {
        let whole = read_streams(data, table_bytes, usize::MAX);
        let piece_bytes = usize::from(first >> 2).max(1);
        let pieces = read_streams(data, table_bytes, piece_bytes);
        // A server that evicts what a section waits for breaks a rule; whether that is noticed depends on which comes first.
        if table_bytes == 0 {
            assert_eq!(whole.0.error, pieces.0.error, "in pieces of {piece_bytes}");
        }
        // What was seen last before an error depends on the pieces, and so does how insertions are acknowledged.
        if whole.0.error.is_none() && pieces.0.error.is_none() {
            assert_eq!(whole.0.by_slot(), pieces.0.by_slot(), "in pieces of {piece_bytes}");
        }
        return;
    }
    converse(data, table_bytes);
});

/// Each command is a byte, and what it needs after it.
fn converse(data: &[u8], table_bytes: u32) {
    let (mut peer, mut cache) = (Peer::new(1, table_bytes), HeadCache::default());
    let mut rest = data;
    let mut limit = u64::from(REQUEST_COUNT);
    while let Some((&command, after)) = rest.split_first() {
        rest = after;
        match command {
            0..16 => {
                limit += 1;
                peer.client.set_stream_limit(limit);
                peer.ask(u64::from(command % 2) * BODY_BYTES);
            }
            16..32 => peer.flush(usize::from(command) * 100),
            32..36 => peer.client.cancel(u32::from(command % 4)),
            36..40 => peer.client.pause(u32::from(command % 4)),
            40..44 => peer.client.resume(u32::from(command % 4)),
            44..48 => drop(peer.client.unblock(u32::from(command % 4))),
            48..56 => {
                let Some((&[stream, code], after)) = rest.split_first_chunk() else { return };
                rest = after;
                if !peer.interrupt(u64::from(stream), 0x100 + u64::from(code), command % 2 == 0) {
                    return;
                }
            }
            _ => {
                let Some((stream, bytes)) = piece(&mut rest) else { return };
                if !peer.read(&mut cache, u64::from(stream), bytes, command % 4 == 0) {
                    return;
                }
            }
        }
    }
}

/// Takes the id of a stream, a length, and so many bytes.
fn piece<'d>(rest: &mut &'d [u8]) -> Option<(u8, &'d [u8])> {
    let (&[stream, length], after) = rest.split_first_chunk()?;
    let (bytes, after) = after.split_at(usize::from(length).min(after.len()));
    *rest = after;
    Some((stream, bytes))
}

fn read_streams(data: &[u8], table_bytes: u32, piece_bytes: usize) -> (Seen<Error>, Vec<Vec<u8>>) {
    let (mut peer, mut cache) = (Peer::new(REQUEST_COUNT, table_bytes), HeadCache::default());
    let mut rest = data;
    while let Some((stream, bytes)) = piece(&mut rest) {
        let is_fin = stream & 0x80 != 0;
        let mut left = bytes.len();
        for part in bytes.chunks(piece_bytes) {
            left -= part.len();
            if !peer.read(&mut cache, u64::from(stream & 0x7f), part, is_fin && left == 0) {
                return peer.finish();
            }
        }
    }
    peer.finish()
}
