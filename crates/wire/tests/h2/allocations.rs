//! The steady state allocates nothing.

use allocation_counter::measure;
use squall_wire::h1::RequestKind;
use squall_wire::h2::{Client, FieldTable, HeadCache, Request, Setup, prepare};

use crate::conversation::{frame, head};

/// Sends and answers the same ten requests over and over, in pieces of `piece_bytes`, and counts the allocations after the first times.
fn check(response_head: &[u8], piece_bytes: usize) {
    let mut table = FieldTable::default();
    let fields = prepare(&head(&[("user-agent", "squall")]), "http", Some(&mut table)).unwrap();
    let mut client =
        Client::new(Setup { stream_count: 10, window_bytes: 1 << 30, connection_window_bytes: 1 << 30 });
    let (mut cache, mut out, mut input) = (HeadCache::default(), Vec::new(), Vec::new());
    let mut round = |is_first: bool| {
        out.clear();
        input.clear();
        if is_first {
            input.extend_from_slice(&frame(4, 0, 0, b""));
        }
        client.write_control(&mut out);
        for _ in 0..10 {
            client.reserve().unwrap();
            let begin = out.len();
            client.start(
                &table,
                Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 },
                &mut out,
            );
            let id = &out[begin + 5..begin + 9];
            input.extend_from_slice(&[0, 0, response_head.len() as u8, 1, 4]);
            input.extend_from_slice(id);
            input.extend_from_slice(response_head);
            input.extend_from_slice(&[0, 0, 2, 0, 1]);
            input.extend_from_slice(id);
            input.extend_from_slice(b"ok");
        }
        for piece in input.chunks(piece_bytes) {
            let mut begin = 0;
            while begin < piece.len() {
                begin += client.decode(&mut cache, &piece[begin..], &mut ()).unwrap().consumed;
            }
        }
    };
    round(true);
    // So many that the tables have grown to their full size.
    (0..1000).for_each(|_| round(false));
    let counts = measure(|| (0..100).for_each(|_| round(false)));
    assert_eq!(counts.count_total, 0, "in pieces of {piece_bytes} bytes");
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn steady_state_allocates_nothing() {
    let literal = b"\x88\x0f\x0d\x012\x00\x01a\x01b";
    let indexed_after_the_first = b"\x88\x40\x01a\x01b";
    for piece_bytes in [1, 10, 100_000] {
        check(literal, piece_bytes);
        check(indexed_after_the_first, piece_bytes);
    }
}
