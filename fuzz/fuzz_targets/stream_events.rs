//! Arbitrary bytes as an event stream or lines: nothing panics, and the same events come of them however they are cut.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use squall_wire::events::{EventDecoder, EventFormat, StreamEvent};

#[derive(Arbitrary, Debug)]
struct Input {
    is_lines: bool,
    step: u8,
    bytes: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let whole = events(&input, input.bytes.len().max(1));
    let cut = events(&input, usize::from(input.step).max(1));
    assert_eq!(whole, cut);
});

/// Type and data of each event, and whether one was too large.
fn events(input: &Input, step: usize) -> (Vec<[Vec<u8>; 2]>, bool) {
    let format = if input.is_lines { EventFormat::Lines } else { EventFormat::EventStream };
    let mut decoder = EventDecoder::new(format, EVENT_BYTES_MAX);
    let owned = |event: StreamEvent<'_>| [event.kind.to_vec(), event.data.to_vec()];
    let mut seen = Vec::new();
    for mut piece in input.bytes.chunks(step) {
        loop {
            match decoder.decode(&mut piece) {
                Ok(Some(event)) => seen.push(owned(event)),
                Ok(None) => break,
                Err(_) => return (seen, true),
            }
        }
    }
    seen.extend(decoder.finish().map(owned));
    (seen, false)
}

/// Small enough to be reached.
const EVENT_BYTES_MAX: usize = 1 << 10;
