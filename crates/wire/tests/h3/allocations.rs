//! The steady state allocates nothing.

use allocation_counter::measure;
use squall_wire::h1::RequestKind;
use squall_wire::h3::{Client, HeadCache, Request, Setup};

use crate::conversation::{CONTROL, DATA, HEADERS, OK, frame, get, headers};

/// Sends and answers the same ten requests over and over, in pieces of `piece_bytes`, and counts the allocations after the first times.
fn check(response: &[u8], piece_bytes: usize) {
    let section = get();
    let mut client = Client::new(Setup::new(10));
    client.set_stream_limit(u64::MAX);
    let mut cache = HeadCache::default();
    let mut out = Vec::new();
    client
        .decode_stream(&mut cache, CONTROL, (&[&[0][..], &frame(4, &[])].concat(), false), &mut ())
        .unwrap();
    let mut round = || {
        let first = client.next_stream();
        for _ in 0..10 {
            out.clear();
            client.reserve().unwrap();
            client.start(Request { section: &section, kind: RequestKind::Other, body_bytes: 5 }, &mut out);
            let chunk = client.next_chunk(usize::MAX, &mut out).unwrap();
            assert!(chunk.is_last);
        }
        for nth in 0..10 {
            let mut left = response.len();
            for piece in response.chunks(piece_bytes) {
                left -= piece.len();
                client.decode_stream(&mut cache, first + 4 * nth, (piece, left == 0), &mut ()).unwrap();
            }
        }
    };
    (0..100).for_each(|_| round());
    let counts = measure(|| (0..100).for_each(|_| round()));
    assert_eq!(counts.count_total, 0, "in pieces of {piece_bytes} bytes");
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn steady_state_allocates_nothing() {
    let body = frame(DATA, b"ok");
    let plain = [frame(HEADERS, OK), body.clone()].concat();
    let varied = [headers(&[(":status", "200"), ("content-length", "2"), ("server", "x")]), body].concat();
    for piece_bytes in [1, 10, 100_000] {
        check(&plain, piece_bytes);
        check(&varied, piece_bytes);
    }
}
