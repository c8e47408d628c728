//! What a client sends.

use squall_wire::ErrorCode;
use squall_wire::h1::RequestKind;
use squall_wire::h3::{Client, Request, Setup, prepare};

use crate::conversation::{CONTROL, Conversation, DATA, HEADERS, OK, control, frame, get, head, whole};

/// A client that has reserved and started so many requests with such bodies.
fn uploading(count: u32, body_bytes: u64) -> Client {
    let mut client = Client::new(Setup::new(count));
    client.set_stream_limit(u64::MAX);
    for _ in 0..count {
        client.reserve().unwrap();
        let section = get();
        client.start(Request { section: &section, kind: RequestKind::Other, body_bytes }, &mut Vec::new());
    }
    client
}

/// Chunks as (slot, head, offset, bytes, is_last).
fn chunk(client: &mut Client, bytes_max: usize) -> Option<(u32, Vec<u8>, u64, usize, bool)> {
    let mut out = Vec::new();
    let chunk = client.next_chunk(bytes_max, &mut out)?;
    Some((chunk.slot, out, chunk.offset, chunk.bytes, chunk.is_last))
}

#[test]
fn a_request_is_one_frame() {
    let headers = [("User-Agent", "squall"), ("Connection", "close"), ("TE", "trailers")];
    let section = prepare(&head(&headers), "https").unwrap();
    let mut client = Client::new(Setup::new(1));
    client.set_stream_limit(1);
    client.reserve().unwrap();
    let mut out = Vec::new();
    client.start(Request { section: &section, kind: RequestKind::Other, body_bytes: 0 }, &mut out);
    // :method GET, :scheme https, :authority x, :path /, user-agent squall (Huffman-coded), te trailers.
    let fields =
        [&[0, 0, 0xd1, 0xd7, 0x50, 1, b'x', 0xc1, 0x5f, 0x50, 0x85][..], &[0x41, 0xf6, 0xd8, 0xe8, 0xa0]]
            .concat();
    assert_eq!(out[..2], [1, out.len() as u8 - 2]);
    assert_eq!(out[2..13], fields[..11]);
    assert!(!client.is_uploading(0));
    assert_eq!((section.bytes(), section.list_bytes()), (65, 65 + 6 * 32));
}

#[test]
fn requests_take_the_streams_in_order() {
    let mut client = Client::new(Setup::new(2));
    let section = get();
    let request = Request { section: &section, kind: RequestKind::Other, body_bytes: 0 };
    // Before the transport allows any, one may wait.
    assert_eq!((client.free_count(), client.reserve(), client.reserve()), (1, Some(0), None));
    assert_eq!(client.next_reserved(), None);
    client.set_stream_limit(3);
    assert_eq!((client.next_reserved(), client.next_stream(), client.stream_of(0)), (Some(0), 0, None));
    client.start(request, &mut Vec::new());
    assert_eq!((client.stream_of(0), client.free_count()), (Some(0), 1));
    assert_eq!(client.reserve(), Some(1));
    client.start(request, &mut Vec::new());
    assert_eq!((client.stream_of(1), client.free_count()), (Some(4), 0));
    let mut conversation = Conversation { client, cache: Default::default(), seen: Default::default() };
    conversation.read_all(&[whole(0, &[frame(HEADERS, OK)])]).unwrap();
    // The limit leaves one.
    let client = &mut conversation.client;
    assert_eq!((client.free_count(), client.reserve()), (1, Some(0)));
    client.start(request, &mut Vec::new());
    assert_eq!(client.stream_of(0), Some(8));
    conversation.read_all(&[whole(4, &[frame(HEADERS, OK)])]).unwrap();
    assert_eq!((conversation.client.reserve(), conversation.client.next_reserved()), (Some(1), None));
}

/// A slow request keeps its slot; the others' answers find theirs.
#[test]
fn a_slow_request_is_passed_by() {
    let mut conversation = Conversation::with_requests(4);
    conversation.client.set_stream_limit(u64::MAX);
    let section = get();
    let request = Request { section: &section, kind: RequestKind::Other, body_bytes: 0 };
    for number in 4..200 {
        let stream_id = 4 * (number - 3);
        conversation.read_all(&[whole(stream_id, &[frame(HEADERS, OK)])]).unwrap();
        assert_eq!(conversation.client.in_flight(), 3, "{number}");
        let slot = conversation.client.reserve().unwrap();
        conversation.client.start(request, &mut Vec::new());
        assert_eq!(conversation.client.stream_of(slot), Some(4 * number));
    }
    conversation.read_all(&[whole(0, &[frame(HEADERS, OK)])]).unwrap();
    assert_eq!(conversation.seen.lines.last().unwrap(), "0: 200 with 0 bytes");
}

/// A reserved request that is given up uses no stream: QUIC's are opened in order.
#[test]
fn a_reserved_request_that_is_given_up_leaves_no_gap() {
    let mut client = Client::new(Setup::new(4));
    client.set_stream_limit(u64::MAX);
    let section = get();
    let slots: Vec<u32> = (0..3).map(|_| client.reserve().unwrap()).collect();
    client.cancel(slots[1]);
    for (slot, stream_id) in [(slots[0], 0), (slots[2], 4)] {
        assert_eq!(client.next_reserved(), Some(slot));
        client.start(Request { section: &section, kind: RequestKind::Other, body_bytes: 0 }, &mut Vec::new());
        assert_eq!(client.stream_of(slot), Some(stream_id));
    }
    assert_eq!((client.in_flight(), client.next_command()), (2, None));
}

#[test]
fn a_body_has_one_frame_and_bodies_take_turns() {
    let mut client = uploading(2, 20_000);
    let mut begin = [0, 0x80, 0, 0x4e, 0x20].to_vec();
    assert_eq!(chunk(&mut client, 8000), Some((0, begin.clone(), 0, 8000, false)));
    assert_eq!(chunk(&mut client, 8000), Some((1, std::mem::take(&mut begin), 0, 8000, false)));
    assert_eq!(chunk(&mut client, 12_000), Some((0, vec![], 8000, 12_000, true)));
    assert!(!client.is_uploading(0) && client.is_uploading(1));
    // The transport takes a part only.
    assert_eq!(chunk(&mut client, 12_000), Some((1, vec![], 8000, 12_000, true)));
    client.return_chunk(1, 5000);
    client.block(1);
    assert_eq!((chunk(&mut client, 9000), client.wants_write()), (None, true), "settings wait");
    assert!(client.unblock(1));
    assert_eq!(chunk(&mut client, 9000), Some((1, vec![], 15_000, 5000, true)));
    assert_eq!(chunk(&mut client, 9000), None);
}

#[test]
fn a_body_in_pieces_has_a_frame_for_each() {
    let mut client = Client::new(Setup::new(1));
    client.set_stream_limit(1);
    let section = get();
    let slot = client.reserve().unwrap();
    client.start_stream(
        Request { section: &section, kind: RequestKind::Other, body_bytes: 0 },
        &mut Vec::new(),
    );
    assert_eq!(chunk(&mut client, 100), None);
    client.extend(slot, 3);
    client.extend(slot, 2);
    assert_eq!(client.unsent_bytes(slot), 5);
    assert_eq!(chunk(&mut client, 4), Some((slot, vec![0, 5], 0, 4, false)));
    client.extend(slot, 1);
    assert_eq!(chunk(&mut client, 4), Some((slot, vec![], 4, 1, false)));
    client.finish(slot);
    assert_eq!(chunk(&mut client, 4), Some((slot, vec![0, 1], 5, 1, true)));
    assert_eq!(chunk(&mut client, 4), None);
    // One that is finished late ends without a frame.
    let mut client = Client::new(Setup::new(1));
    client.set_stream_limit(1);
    client.reserve().unwrap();
    client.start_stream(
        Request { section: &section, kind: RequestKind::Other, body_bytes: 0 },
        &mut Vec::new(),
    );
    client.finish(0);
    assert_eq!(chunk(&mut client, 0), Some((0, vec![], 0, 0, true)));
}

/// RFC 9114 4.1 and 4.1.1.
#[test]
fn uploads_end_early() {
    let answered = |frames: &[Vec<u8>]| {
        let client = uploading(2, 100);
        let mut conversation = Conversation { client, cache: Default::default(), seen: Default::default() };
        conversation.read_all(&[whole(0, frames)]).unwrap();
        conversation
    };
    let mut conversation = answered(&[frame(HEADERS, OK)]);
    assert_eq!(conversation.commands(), ["reset 0 H3_NO_ERROR"]);
    assert_eq!(chunk(&mut conversation.client, 100).map(|chunk| chunk.0), Some(1));
    conversation.client.cancel(1);
    assert_eq!(conversation.commands(), ["stop 4 H3_REQUEST_CANCELLED"], "all of it was handed out");

    let mut conversation = answered(&[frame(0x21, b"")]);
    assert_eq!(conversation.commands(), ["stop 0 H3_MESSAGE_ERROR", "reset 0 H3_MESSAGE_ERROR"]);
    // The server wants no more of the body, and still answers.
    conversation.client.handle_stop_sending(4, ErrorCode::H3_NO_ERROR).unwrap();
    assert_eq!(conversation.commands(), ["reset 4 H3_NO_ERROR"]);
    assert_eq!(chunk(&mut conversation.client, 100), None);
    conversation.read_all(&[whole(4, &[frame(HEADERS, OK), frame(DATA, b"no")])]).unwrap();
    assert_eq!(conversation.seen.lines.last().unwrap(), "1: 200 with 2 bytes");
}

#[test]
fn a_paused_response_is_not_read() {
    let mut conversation = Conversation::with_requests(1);
    conversation.client.pause(0);
    assert!(!conversation.client.wants_stream(0) && conversation.client.wants_stream(CONTROL));
    conversation.client.resume(0);
    assert_eq!((conversation.client.next_readable(), conversation.client.next_readable()), (Some(0), None));
    assert!(conversation.client.wants_stream(0));
}

/// RFC 9114 4.2.2.
#[test]
fn large_sections_are_not_taken() {
    let mut conversation = Conversation::with_requests(1);
    let section = get();
    assert!(conversation.client.takes(&section));
    conversation.read_all(&[control(&[6, 10])]).unwrap();
    assert!(!conversation.client.takes(&section));
}
