//! What a client sends.

use squall_wire::h1::RequestKind;
use squall_wire::h2::{Client, FieldTable, Request, Setup, prepare};

use crate::conversation::{Conversation, frame, get, head};

fn client(stream_count: u32) -> Client {
    let mut client =
        Client::new(Setup { stream_count, window_bytes: 1 << 20, connection_window_bytes: 1 << 20 });
    client.write_control(&mut Vec::new());
    client
}

fn read(client: &mut Client, input: &[u8]) {
    let mut begin = 0;
    while begin < input.len() {
        begin += client.decode(&mut Default::default(), &input[begin..], &mut ()).unwrap().consumed;
    }
}

#[test]
fn a_connection_begins_with_preface_settings_and_a_wider_window() {
    let mut out = Vec::new();
    Client::new(Setup { stream_count: 1, window_bytes: 1 << 30, connection_window_bytes: 1 << 30 })
        .write_control(&mut out);
    let expected = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[0, 2, 0, 0, 0, 0, 0, 4, 0x40, 0, 0, 0, 0, 6, 0, 4, 0, 0]),
        frame(8, 0, 0, &((1_u32 << 30) - 65_535).to_be_bytes()),
    ];
    assert_eq!(out, expected.concat());
}

/// The first request teaches the server; the second is a byte for each field.
#[test]
fn a_repeated_request_is_a_few_bytes() {
    let mut table = FieldTable::default();
    let headers = [("User-Agent", "squall"), ("X-Trace", "on"), ("Connection", "close")];
    let fields = prepare(&head(&headers), "http", Some(&mut table)).unwrap();
    let (mut client, mut out) = (client(2), Vec::new());
    let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 };
    for _ in 0..2 {
        client.reserve().unwrap();
        out.clear();
        client.start(&table, request, &mut out);
    }
    // :method GET, :scheme http, :authority, :path /, user-agent, x-trace.
    assert_eq!(out, frame(1, 5, 3, &[0x82, 0x86, 0xc0, 0x84, 0xbf, 0xbe]));
}

#[test]
fn a_head_larger_than_a_frame_goes_on_in_continuation() {
    let value = "~".repeat(40_000);
    let fields = prepare(&head(&[("x", &value)]), "http", None).unwrap();
    let (mut client, mut out) = (client(1), Vec::new());
    client.reserve().unwrap();
    let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 1 };
    client.start(&FieldTable::default(), request, &mut out);
    let mut frames = Vec::new();
    let mut rest = &out[..];
    while let Some((head, after)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        frames.push((head[3], head[4], length));
        rest = &after[length..];
    }
    assert_eq!(frames.iter().map(|frame| (frame.0, frame.1)).collect::<Vec<_>>(), [(1, 0), (9, 0), (9, 4)]);
    assert!(frames.iter().all(|frame| frame.2 <= 16_384));
}

/// A slow stream keeps its place; the others' numbers go around it.
#[test]
fn a_slot_that_is_taken_is_skipped() {
    let (mut client, mut out) = (client(2), Vec::new());
    let (table, fields) = (FieldTable::default(), get());
    let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 };
    read(&mut client, &frame(4, 0, 0, b""));
    client.reserve().unwrap();
    client.start(&table, request, &mut out);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let slot = client.reserve().unwrap();
        assert_eq!((slot, client.reserve()), (1, None));
        out.clear();
        client.start(&table, request, &mut out);
        let id = u32::from_be_bytes([out[5], out[6], out[7], out[8]]);
        ids.push(id);
        read(&mut client, &frame(1, 5, id, &[0x88]));
    }
    assert_eq!(ids, [3, 7, 11]);
    assert_eq!(client.in_flight(), 1);
}

#[test]
fn bodies_take_turns_within_the_windows() {
    let (mut client, mut out) = (client(2), Vec::new());
    let (table, fields) = (FieldTable::default(), get());
    let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 40_000 };
    for _ in 0..2 {
        client.reserve().unwrap();
        client.start(&table, request, &mut out);
    }
    let mut chunks = Vec::new();
    while let Some(chunk) = client.next_chunk(usize::MAX, &mut out) {
        chunks.push((chunk.slot, chunk.offset, chunk.bytes, chunk.is_last));
    }
    // 65,535 bytes for the connection, in frames of at most 16,384.
    let expected = [
        (0, 0, 16_384, false),
        (1, 0, 16_384, false),
        (0, 16_384, 16_384, false),
        (1, 16_384, 16_383, false),
    ];
    assert_eq!(chunks, expected);
    assert!(!client.wants_write());
    read(&mut client, &[frame(4, 0, 0, b""), frame(8, 0, 0, &[0, 1, 0, 0])].concat());
    assert_eq!(
        client.next_chunk(usize::MAX, &mut out).map(|chunk| (chunk.slot, chunk.is_last)),
        Some((0, true))
    );
}

/// A stream that is given up in the middle of a DATA frame: what follows belongs to no request, least of all to the next in its place.
#[test]
fn the_rest_of_a_frame_is_nobodys_when_its_stream_is_given_up() {
    let mut conversation = Conversation::with_requests(1);
    let mut whole = frame(4, 0, 0, b"");
    whole.extend(frame(1, 4, 1, &[0x88]));
    let data = frame(0, 1, 1, b"of the first request");
    conversation.read(&[&whole[..], &data[..12]].concat()).unwrap();
    conversation.client.cancel(0);
    let slot = conversation.client.reserve().unwrap();
    let (table, fields) = (FieldTable::default(), get());
    let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 };
    conversation.client.start(&table, request, &mut Vec::new());
    assert_eq!(slot, 0);
    let seen_before = conversation.seen.lines.clone();
    conversation.read(&data[12..]).unwrap();
    assert_eq!((&conversation.seen.lines, conversation.client.in_flight()), (&seen_before, 1));
    conversation.read(&[frame(1, 4, 3, &[0x88]), frame(0, 1, 3, b"second")].concat()).unwrap();
    assert_eq!(conversation.seen.lines.last().unwrap(), "0: 200 with 6 bytes");
}

/// Windows are widened again however small they are.
#[test]
fn the_smallest_window_is_widened() {
    for window_bytes in 1..5 {
        let mut client =
            Client::new(Setup { stream_count: 1, window_bytes, connection_window_bytes: 65_535 });
        let (table, fields, mut out) = (FieldTable::default(), get(), Vec::new());
        client.write_control(&mut out);
        client.reserve().unwrap();
        let request = Request { fields: &fields, kind: RequestKind::Other, body_bytes: 0 };
        client.start(&table, request, &mut out);
        read(&mut client, &[frame(4, 0, 0, b""), frame(1, 4, 1, &[0x88])].concat());
        let mut left = window_bytes;
        for _ in 0..10 {
            read(&mut client, &frame(0, 0, 1, b"x"));
            out.clear();
            client.write_control(&mut out);
            left = if out.windows(4).any(|part| part == [0, 0, 4, 8]) { window_bytes } else { left - 1 };
            assert!(left > 0, "a window of {window_bytes} is used up");
        }
    }
}

/// A server that keeps sending and never reads our frames makes nothing grow.
#[test]
fn answers_that_nobody_reads_have_a_bound() {
    let data = frame(0, 0, 1, &[0; 1024]);
    let ping = frame(6, 0, 0, &[0; 8]);
    let mut floods: Vec<(&str, Vec<u8>)> = vec![("DATA", data), ("PING", ping)];
    floods.push(("SETTINGS", frame(4, 0, 0, &[])));
    for (what, flood) in floods {
        let setup = Setup { stream_count: 2, window_bytes: 1024, connection_window_bytes: 65_535 };
        let mut client = Client::new(setup);
        client.write_control(&mut Vec::new());
        client.reserve().unwrap();
        let request = Request { fields: &get(), kind: RequestKind::Other, body_bytes: 0 };
        client.start(&FieldTable::default(), request, &mut Vec::new());
        read(&mut client, &[frame(4, 0, 0, &[]), frame(1, 4, 1, &[0x88])].concat());
        let mut sent_count = 0;
        let refused = loop {
            if let Err(error) = client.decode(&mut Default::default(), &flood, &mut ()) {
                break error;
            }
            sent_count += 1;
            assert!(sent_count < 20_000, "{what}");
        };
        let mut control = Vec::new();
        client.write_control(&mut control);
        assert!(control.len() < 80 * 1024, "{what}: {} bytes, {refused}", control.len());
    }
}

/// Settings come first, from every server.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

#[test]
fn a_ping_is_answered_once_and_other_acknowledgements_mean_nothing() {
    let mut conversation = Conversation::with_requests(0);
    let pong = frame(6, 1, 0, b"squall\0\0");
    conversation.read(&[&SETTINGS[..], &pong].concat()).unwrap();
    conversation.client.ping();
    conversation.read(&[&pong[..], &pong].concat()).unwrap();
    assert_eq!(conversation.seen.lines, ["Allowance", "Pong"]);
    let mut out = Vec::new();
    conversation.client.write_control(&mut out);
    assert_eq!(out, [frame(4, 1, 0, &[]), frame(6, 0, 0, b"squall\0\0")].concat());
}

/// A connection without requests may live for as many pings as it likes, but not for a flood of them.
#[test]
fn frames_without_effect_are_bounded_between_pauses() {
    let ping = frame(6, 0, 0, &[7; 8]);
    for (pauses, is_accepted) in [(true, true), (false, false)] {
        let mut conversation = Conversation::with_requests(0);
        conversation.read(&SETTINGS).unwrap();
        let mut read = |_| {
            if pauses {
                conversation.client.note_pause();
            }
            conversation.client.write_control(&mut Vec::new());
            conversation.read(&ping)
        };
        assert_eq!((0..20_000).try_for_each(&mut read).is_ok(), is_accepted, "pauses: {pauses}");
    }
}
