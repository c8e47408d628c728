//! The whole client against a random peer: requests, bodies and cancellations between frames whose heads are good more often than chance
//! would have it. Nothing panics, and the client keeps to its bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::h2::{BODY_BYTES, Peer, frame};
use squall_wire::h2::HeadCache;

fuzz_target!(|data: &[u8]| {
    let (mut peer, mut cache) = (Peer::new(1), HeadCache::default());
    if !peer.read(&mut cache, &frame(4, 0, 0, &[])) {
        return;
    }
    let mut rest = data;
    while let Some((&command, after)) = rest.split_first() {
        rest = after;
        match command {
            0..16 => peer.ask(u64::from(command % 2) * BODY_BYTES),
            16..32 => peer.flush(),
            32..40 => peer.client.cancel(u32::from(command % 4)),
            _ => {
                let Some((&[flags, stream, length], after)) = rest.split_first_chunk() else { return };
                let (payload, after) = after.split_at(usize::from(length).min(after.len()));
                rest = after;
                if !peer.read(&mut cache, &frame(command % 11, flags, u32::from(stream), payload)) {
                    return;
                }
            }
        }
    }
});
