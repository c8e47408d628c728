//! Requests in flight on one connection: their order, their bodies, and how the connection ends.

use squall_wire::h1::{Client, DecodeError, HeadCache, RequestKind};
use squall_wire::{Chunk, Event};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client with requests of these kinds, all started.
fn client_with(kinds: &[RequestKind]) -> Client {
    let mut client = Client::new(4);
    for kind in kinds {
        client.reserve().unwrap();
        client.start(b"", *kind, 0, &mut Vec::new());
    }
    client
}

/// Slots and body lengths of the responses in `input`, which comes in pieces of so many bytes.
fn responses(client: &mut Client, input: &[u8], piece_bytes: usize) -> Result<Vec<(u32, u64)>, DecodeError> {
    let (mut cache, mut responses) = (HeadCache::default(), Vec::new());
    for mut piece in input.chunks(piece_bytes) {
        while !piece.is_empty() {
            let progress = client.decode(&mut cache, piece, &mut ())?;
            piece = &piece[progress.consumed..];
            if let Some(Event::Received { slot, response: Some(response), .. }) = progress.event {
                responses.push((slot, response.body_bytes));
            }
        }
    }
    Ok(responses)
}

#[test]
fn responses_are_those_of_the_requests_in_their_order() {
    let head_response = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n";
    for piece_bytes in [1, 7, 1000] {
        let mut client = client_with(&[RequestKind::Other, RequestKind::Head, RequestKind::Other]);
        let input = [OK, head_response, OK].concat();
        assert_eq!(responses(&mut client, &input, piece_bytes), Ok(vec![(0, 2), (1, 0), (2, 2)]));
        assert_eq!((client.in_flight(), client.is_ending()), (0, false));
    }
}

#[test]
fn slots_are_used_in_turn_up_to_the_depth() {
    let mut client = Client::new(2);
    assert_eq!([client.reserve(), client.reserve(), client.reserve()], [Some(0), Some(1), None]);
    assert_eq!(client.next_reserved(), Some(0));
    client.start(b"", RequestKind::Other, 0, &mut Vec::new());
    assert_eq!(responses(&mut client, OK, 1000), Ok(vec![(0, 2)]));
    assert_eq!((client.free_count(), client.reserve()), (1, Some(0)));
    assert_eq!(client.slots().collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_body_is_handed_out_before_the_next_request_starts() {
    let (mut client, mut out) = (Client::new(2), Vec::new());
    client.reserve().unwrap();
    client.reserve().unwrap();
    client.start(b"POST", RequestKind::Other, 10, &mut out);
    assert_eq!((out.as_slice(), client.next_reserved()), (&b"POST"[..], None));
    let chunk = |offset, bytes, is_last| Some(Chunk { slot: 0, offset, bytes, is_last, tail: b"" });
    assert_eq!(client.next_chunk(6, &mut out), chunk(0, 6, false));
    client.return_chunk(2);
    assert_eq!(client.next_chunk(100, &mut out), chunk(4, 6, true));
    assert_eq!((client.next_chunk(100, &mut out), client.next_reserved()), (None, Some(1)));
}

/// The server is still owed a part of the request: it cannot tell where the next one would begin.
#[test]
fn a_response_before_the_request_is_sent_ends_the_connection() {
    let mut client = Client::new(2);
    client.reserve().unwrap();
    client.start(b"POST", RequestKind::Other, 10, &mut Vec::new());
    client.next_chunk(4, &mut Vec::new()).unwrap();
    assert_eq!(responses(&mut client, OK, 1000), Ok(vec![(0, 2)]));
    assert_eq!((client.is_ending(), client.free_count()), (true, 0));
}

#[test]
fn a_response_to_no_request_is_an_error() {
    for is_reserved in [false, true] {
        let mut client = Client::new(1);
        if is_reserved {
            client.reserve().unwrap();
        }
        assert_eq!(responses(&mut client, OK, 1000), Err(DecodeError::Unrequested));
    }
}

#[test]
fn the_end_of_the_connection_ends_a_body_that_lasts_until_then() {
    let mut client = client_with(&[RequestKind::Other]);
    assert_eq!(responses(&mut client, b"HTTP/1.1 200 OK\r\n\r\nsome", 1000), Ok(vec![]));
    // A connection that is cut off ends nothing, and the request stays in flight for its failure to be counted.
    assert_eq!(client.handle_eof(true), Err(DecodeError::CutOff { bytes: 4 }));
    assert_eq!(client.in_flight(), 1);
    let Ok(Event::Received { response: Some(response), .. }) = client.handle_eof(false) else { panic!() };
    assert_eq!((response.body_bytes, client.in_flight(), client.is_ending()), (4, 0, true));
    assert_eq!(client.handle_eof(false), Err(DecodeError::ClosedBeforeResponse));
}

#[test]
fn discarded_bytes_count_as_received() {
    let mut client = client_with(&[RequestKind::Other]);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    assert_eq!(responses(&mut client, head, 1000), Ok(vec![]));
    assert!(client.is_mid_response());
    let bytes = client.skippable_bytes();
    let Event::Received { bytes, response: Some(response), .. } = client.skip(bytes) else { panic!() };
    assert_eq!((bytes, response.body_bytes), (1000, 1000));
}
