//! Arbitrary header blocks, one response after the other on one connection: nothing panics, and a warm cache changes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::h2::{Peer, frame};
use squall_fuzz::seen::Seen;
use squall_wire::h2::{Error, HeadCache};

fuzz_target!(|data: &[u8]| {
    let mut warm = HeadCache::default();
    let first = read(&mut warm, data);
    assert_eq!(read(&mut warm, data), first, "with a warm cache");
});

/// The first byte says how long the first block is, and so on.
fn read(cache: &mut HeadCache, mut data: &[u8]) -> (Seen<Error>, Vec<u8>) {
    let mut peer = Peer::new(0);
    let mut stream_id = 1;
    while let Some((&length, rest)) = data.split_first() {
        let (block, rest) = rest.split_at(usize::from(length).min(rest.len()));
        data = rest;
        peer.ask(0);
        let settings = if stream_id == 1 { frame(4, 0, 0, &[]) } else { Vec::new() };
        if !peer.read(cache, &[settings, frame(1, 5, stream_id, block)].concat()) {
            break;
        }
        stream_id += 2;
    }
    peer.finish()
}
