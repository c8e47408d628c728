//! Streams that an extended CONNECT opens (RFC 8441): what the peer must offer, and how such a stream begins and ends.

use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h2::{FieldTable, Request, prepare_extended};

use crate::conversation::{Conversation, frame};

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

/// `:status: 200` and `:status: 404` of the static table.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

/// A connection with one extended CONNECT in flight, and what was sent for it.
fn opening() -> (Conversation, Vec<u8>) {
    let mut conversation = Conversation::with_requests(0);
    let head =
        RequestHead { method: "CONNECT", target: "/ws", host: Some("x"), headers: &[], content_length: None };
    let fields = prepare_extended(&head, ("http", "websocket"), None).unwrap();
    let mut out = Vec::new();
    conversation.read(&frame(SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 1])).unwrap();
    conversation.client.reserve().unwrap();
    let request = Request { fields: &fields, kind: RequestKind::Connect, body_bytes: 0 };
    conversation.client.start_stream(&FieldTable::default(), request, &mut out);
    (conversation, out)
}

#[test]
fn the_peer_says_whether_it_takes_extended_connect() {
    for (settings, expected) in [
        (&[][..], Ok(Some(false))),
        (&[0, 8, 0, 0, 0, 0], Ok(Some(false))),
        (&[0, 8, 0, 0, 0, 1], Ok(Some(true))),
        (&[0, 8, 0, 0, 0, 2], Err(())),
        (&[0, 8, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0], Err(())),
    ] {
        let mut conversation = Conversation::with_requests(0);
        assert_eq!(conversation.client.extended_connect(), None, "before the first SETTINGS");
        let read = conversation.read(&frame(SETTINGS, 0, 0, settings));
        let said = read.map(|()| conversation.client.extended_connect()).map_err(|_| ());
        assert_eq!(said, expected, "{settings:?}");
    }
}

#[test]
fn an_extended_connect_names_its_protocol_and_leaves_its_stream_open() {
    let (mut conversation, out) = opening();
    assert_eq!((out[3], out[4] & END_STREAM), (HEADERS, 0));
    let block = String::from_utf8_lossy(&out).into_owned();
    assert_eq!(conversation.client.next_chunk(100, &mut Vec::new()), None);
    conversation.client.extend(0, 5);
    let chunk = conversation.client.next_chunk(100, &mut Vec::new()).unwrap();
    assert_eq!((chunk.bytes, chunk.is_last), (5, false), "{block}");
    conversation.client.finish(0);
    let chunk = conversation.client.next_chunk(100, &mut Vec::new()).unwrap();
    assert_eq!((chunk.bytes, chunk.is_last), (0, true));
}

#[test]
fn what_answers_an_extended_connect() {
    let head = |flags, block| frame(HEADERS, END_HEADERS | flags, 1, block);
    let with_length = [OK, &[0x0f, 0x0d, 1, b'9']].concat();
    for (what, frames, expected) in [
        (
            "a tunnel",
            vec![head(0, OK), frame(DATA, 0, 1, b"ab"), frame(DATA, END_STREAM, 1, b"c")],
            "200 with 3 bytes",
        ),
        (
            "a length without meaning",
            vec![head(0, &with_length), frame(DATA, END_STREAM, 1, b"c")],
            "200 with 1 bytes",
        ),
        ("a tunnel that ends at once", vec![head(END_STREAM, OK)], "tunnel that ends at once"),
        ("trailers", vec![head(0, OK), head(END_STREAM, &[])], "HEADERS within a tunnel"),
        ("a refusal", vec![head(END_STREAM, NOT_FOUND)], "404 with 0 bytes"),
        (
            "a refusal with a body",
            vec![head(0, NOT_FOUND), frame(DATA, END_STREAM, 1, b"no")],
            "404 with 2 bytes",
        ),
    ] {
        let (mut conversation, _) = opening();
        conversation.read(&frames.concat()).unwrap();
        let last = conversation.seen.lines.last().unwrap();
        assert!(last.contains(expected), "{what}: {last}");
    }
}
