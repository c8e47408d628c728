//! Arbitrary bytes after good settings: whole, byte by byte, in pieces, and with a warm cache, the client sees and answers the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::h2::{Peer, REQUEST_COUNT, frame};
use squall_fuzz::seen::Seen;
use squall_wire::h2::{Error, HeadCache};

fuzz_target!(|data: &[u8]| {
    let [step, input @ ..] = data else { return };
    let mut cache = HeadCache::default();
    let whole = read(&mut cache, input, usize::MAX);
    assert_eq!(read(&mut cache, input, usize::MAX), whole, "with a warm cache");
    assert_eq!(read(&mut HeadCache::default(), input, 1), whole, "byte by byte");
    let step = usize::from(*step).max(1);
    assert_eq!(read(&mut cache, input, step), whole, "in pieces of {step} bytes");
});

fn read(cache: &mut HeadCache, input: &[u8], piece_bytes: usize) -> (Seen<Error>, Vec<u8>) {
    let mut peer = Peer::new(REQUEST_COUNT);
    peer.read(cache, &frame(4, 0, 0, &[]));
    let _ = input.chunks(piece_bytes).try_for_each(|piece| peer.read(cache, piece).then_some(()));
    peer.finish()
}
