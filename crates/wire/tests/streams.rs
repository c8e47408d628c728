//! Requests and responses in many steps, on the surface that both versions share: bodies that come bit by bit, and responses that are read as they
//! come.
#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

use squall_wire::h1::{Fields, HeadView, RequestHead, RequestKind, Sink};
use squall_wire::h2::{FieldBlock, FieldTable, Setup, prepare};
use squall_wire::{Client, Event, HeadCaches, Request, Version, h1, h2};

const VERSIONS: [Version; 2] = [Version::H1, Version::H2];

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

/// HTTP/2 frames of the server.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const SETTINGS_WITH_SMALL_WINDOWS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4];

/// A connection, and all that was seen of what came on it.
struct Stream {
    client: Client,
    fields: FieldBlock,
    slot: u32,
    caches: HeadCaches,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen(Vec<String>);

impl Sink for Seen {
    fn interim(&mut self, status: u16) {
        self.0.push(format!("interim {status}"));
    }

    fn head(&mut self, head: &HeadView<'_>) {
        self.0.push(format!("head {}", head.status()));
    }

    fn data(&mut self, bytes: &[u8]) {
        self.0.push(format!("data {}", String::from_utf8_lossy(bytes)));
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        self.0.push(format!("{} trailers", fields.count()));
    }
}

impl Stream {
    /// One whose head is sent; what was written for it.
    fn start(version: Version, settings: &[u8]) -> (Self, Vec<u8>) {
        let setup = Setup { stream_count: 1, window_bytes: 100, connection_window_bytes: 1 << 20 };
        let client = match version {
            Version::H1 => Client::H1(h1::Client::new(2)),
            _ => Client::H2(Box::new(h2::Client::new(setup))),
        };
        let head =
            RequestHead { method: "POST", target: "/", host: Some("x"), headers: &[], content_length: None };
        let fields = prepare(&head, "http", None).unwrap();
        let mut stream =
            Self { client, fields, slot: 0, caches: HeadCaches::default(), seen: Seen::default() };
        if version == Version::H2 {
            stream.read(settings);
        }
        let mut out = Vec::new();
        stream.client.write_control(&mut Vec::new());
        stream.slot = stream.client.reserve().unwrap();
        let request = Request {
            head: HEAD,
            fields: Some(&stream.fields),
            section: None,
            kind: RequestKind::Other,
            body_bytes: 0,
        };
        stream.client.start_stream(&FieldTable::default(), request, &mut out);
        (stream, out)
    }

    /// Writes all of a body that may be sent; what goes out.
    fn write(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(chunk) = self.client.next_chunk(3, &mut out) {
            out.extend_from_slice(&body[chunk.offset as usize..][..chunk.bytes]);
            out.extend_from_slice(chunk.tail);
        }
        out
    }

    /// Reads all of `input`; whether a response was whole.
    fn read(&mut self, mut input: &[u8]) -> bool {
        let mut is_whole = false;
        while !input.is_empty() {
            let progress = self.client.decode(&mut self.caches, input, &mut self.seen).unwrap();
            input = &input[progress.consumed..];
            is_whole |= matches!(progress.event, Some(Event::Received { response: Some(_), .. }));
        }
        is_whole
    }
}

fn frame(kind: u8, flags: u8, stream_id: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream_id.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[test]
fn a_body_that_comes_bit_by_bit_leaves_bit_by_bit() {
    for version in VERSIONS {
        let (mut stream, out) = Stream::start(version, SETTINGS);
        if version == Version::H1 {
            assert_eq!(out, HEAD);
        } else {
            assert_eq!((out[3], out[4]), (1, 4), "a head that does not end the stream");
        }
        assert!(stream.write(b"").is_empty() && !stream.client.wants_write(), "{version:?}");
        stream.client.extend(stream.slot, 5);
        assert_eq!((stream.client.unsent_bytes(stream.slot), stream.client.wants_write()), (5, true));
        let first = stream.write(b"hello");
        let (client, slot) = (&mut stream.client, stream.slot);
        assert_eq!(
            (client.unsent_bytes(slot), client.wants_write(), client.next_reserved()),
            (0, false, None)
        );
        client.finish(slot);
        assert!(client.wants_write(), "{version:?}");
        let last = stream.write(b"hello");
        let expected = match version {
            Version::H1 => [b"3\r\nhel\r\n2\r\nlo\r\n".to_vec(), b"0\r\n\r\n".to_vec()],
            _ => [[frame(0, 0, 1, b"hel"), frame(0, 0, 1, b"lo")].concat(), frame(0, 1, 1, b"")],
        };
        assert_eq!([first, last], expected, "{version:?}");
        assert!(!stream.client.wants_write(), "{version:?}");
    }
}

#[test]
fn a_body_that_is_finished_before_it_leaves_ends_with_its_last_piece() {
    let (mut stream, _) = Stream::start(Version::H2, SETTINGS);
    stream.client.extend(stream.slot, 4);
    stream.client.finish(stream.slot);
    assert_eq!(stream.write(b"good"), [frame(0, 0, 1, b"goo"), frame(0, 1, 1, b"d")].concat());
}

#[test]
fn a_peer_that_allows_no_more_holds_a_body_back() {
    let (mut stream, _) = Stream::start(Version::H2, SETTINGS_WITH_SMALL_WINDOWS);
    stream.client.extend(stream.slot, 6);
    assert_eq!(stream.write(b"abcdef"), [frame(0, 0, 1, b"abc"), frame(0, 0, 1, b"d")].concat());
    assert_eq!((stream.client.unsent_bytes(stream.slot), stream.client.wants_write()), (2, false));
    stream.client.finish(stream.slot);
    assert!(stream.write(b"abcdef").is_empty());
    stream.read(&frame(8, 0, 1, &[0, 0, 0, 9]));
    assert_eq!(stream.write(b"abcdef"), frame(0, 1, 1, b"ef"));
}

#[test]
fn a_response_that_comes_before_the_body_is_finished_ends_the_stream() {
    let (mut stream, _) = Stream::start(Version::H1, SETTINGS);
    assert!(stream.read(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(
        stream.client.is_ending(),
        "what is left of the body cannot be distinguished from the next request"
    );

    let (mut stream, _) = Stream::start(Version::H2, SETTINGS);
    assert!(stream.read(&frame(1, 5, 1, &[0x88])));
    stream.client.extend(stream.slot, 5);
    assert!(stream.write(b"hello").is_empty());
    let mut out = Vec::new();
    stream.client.write_control(&mut out);
    assert!(out.ends_with(&frame(3, 0, 1, &[0; 4])), "the rest is given up (RFC 9113 8.1)");
}

#[test]
fn what_comes_of_a_response_is_reported_in_its_order() {
    let h1: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n";
    let h2 = [
        frame(1, 4, 1, b"\x08\x03103"),
        frame(1, 4, 1, &[0x88]),
        frame(0, 0, 1, b"ok"),
        frame(1, 5, 1, b"\0\x05x-sum\x011"),
    ];
    for (version, input) in [(Version::H1, h1), (Version::H2, &h2.concat())] {
        let (mut stream, _) = Stream::start(version, SETTINGS);
        stream.client.finish(stream.slot);
        stream.write(b"");
        assert!(stream.read(input));
        assert_eq!(stream.seen.0, ["interim 103", "head 200", "data ok", "1 trailers"], "{version:?}");
    }
}

#[test]
fn a_response_that_is_not_wanted_now_is_held_back() {
    let (mut stream, _) = Stream::start(Version::H1, SETTINGS);
    stream.client.finish(stream.slot);
    stream.write(b"");
    stream.read(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    stream.client.pause(stream.slot);
    assert!(!stream.client.wants_read());
    stream.client.resume(stream.slot);
    assert!(stream.client.wants_read() && stream.read(b"cd"));
    assert!(!stream.client.wants_read());

    for pauses in [false, true] {
        let (mut stream, _) = Stream::start(Version::H2, SETTINGS);
        stream.client.finish(stream.slot);
        stream.write(b"");
        stream.read(&frame(1, 4, 1, &[0x88]));
        if pauses {
            stream.client.pause(stream.slot);
        }
        stream.client.write_control(&mut Vec::new());
        stream.read(&frame(0, 0, 1, &[b'.'; 60]));
        let widened = |client: &mut Client| {
            let mut out = Vec::new();
            client.write_control(&mut out);
            out == frame(8, 0, 1, &[0, 0, 0, 60])
        };
        assert_eq!(widened(&mut stream.client), !pauses);
        stream.client.resume(stream.slot);
        assert_eq!(widened(&mut stream.client), pauses);
    }
}
