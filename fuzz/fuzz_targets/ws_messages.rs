//! Arbitrary bytes as WebSocket frames: nothing panics, and the same messages come of them however they are cut.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use squall_wire::ws::deflate::Params;
use squall_wire::ws::{Decoder, Error, Event, Inbox, WebSocketRole};

#[derive(Arbitrary, Debug)]
struct Input {
    is_server: bool,
    is_compressed: bool,
    resets: bool,
    step: u8,
    bytes: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let whole = messages(&input, input.bytes.len().max(1));
    let cut = messages(&input, usize::from(input.step).max(1));
    // Of two violations in one message, the cut decides which is met first.
    assert_eq!((whole.0, whole.1.is_some()), (cut.0, cut.1.is_some()));
});

/// What a connection receives, and the violation that ends it.
fn messages(input: &Input, step: usize) -> (Vec<Vec<u8>>, Option<Error>) {
    let role = if input.is_server { WebSocketRole::Server } else { WebSocketRole::Client };
    let params = Params {
        server_no_context_takeover: input.resets,
        client_no_context_takeover: input.resets,
        ..Params::default()
    };
    let params = input.is_compressed.then_some(params);
    let mut decoder = Decoder::new(role, params.is_some());
    let mut inbox = Inbox::new(MESSAGE_BYTES_MAX, params.map(|params| params.inflater(role)));
    let mut seen = Vec::new();
    for piece in input.bytes.chunks(step) {
        if let Err(error) = receive(&mut decoder, &mut inbox, &mut piece.to_vec(), &mut seen) {
            return (seen, Some(error));
        }
    }
    (seen, None)
}

fn receive(
    decoder: &mut Decoder,
    inbox: &mut Inbox,
    mut input: &mut [u8],
    seen: &mut Vec<Vec<u8>>,
) -> Result<(), Error> {
    loop {
        let decoded = decoder.decode(input)?;
        let consumed = decoded.consumed;
        match decoded.event {
            None => return Ok(()),
            Some(Event::Part(part)) => {
                if let Some(message) = inbox.push(part)? {
                    assert!(message.bytes.len() as u64 <= MESSAGE_BYTES_MAX);
                    seen.push(message.bytes.to_vec());
                }
            }
            Some(Event::Ping(payload) | Event::Pong(payload)) => seen.push(payload.to_vec()),
            Some(Event::Close(code, reason)) => seen.push(format!("{} {reason}", code.0).into_bytes()),
        }
        input = &mut input[consumed..];
    }
}

/// Small enough to be reached.
const MESSAGE_BYTES_MAX: u64 = 1 << 16;
