//! The steady state allocates nothing, whether heads come whole or in pieces.

use allocation_counter::measure;
use squall_wire::h1::{Decoder, HeadCache, RequestKind};

/// Decodes the same responses over and over, in pieces of `piece_bytes`, and counts the allocations after the first time.
fn check(responses: &[&str], piece_bytes: usize) {
    let (mut decoder, mut cache) = (Decoder::new(), HeadCache::default());
    let mut decode_all = || {
        for response in responses {
            decoder.begin(RequestKind::Other);
            for piece in response.as_bytes().chunks(piece_bytes) {
                decoder.decode(&mut cache, piece, &mut ()).unwrap();
            }
        }
    };
    decode_all();
    let counts = measure(|| (0..100).for_each(|_| decode_all()));
    assert_eq!(counts.count_total, 0, "in pieces of {piece_bytes} bytes");
}

#[test]
fn steady_state_allocates_nothing() {
    let responses = [
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
    ];
    for piece_bytes in [1, 10, 1000] {
        check(&responses, piece_bytes);
    }
}
