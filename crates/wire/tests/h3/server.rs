//! The server's side: what requests may be, and both sides together.

use squall_wire::h1::{Fields, RequestHead, RequestKind};
use squall_wire::h3::server::{
    Inbound, RequestError, RequestSink, SectionReader, UniStreams, put_data_head, put_section,
};
use squall_wire::h3::{Client, HeadCache, Request, Setup, prepare, server};
use squall_wire::{ErrorCode, Event};

use crate::conversation::{DATA, HEADERS, frame, headers, varint};
use crate::seen::Seen;

/// What a server sees of one request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    head: String,
    body: Vec<u8>,
    trailers: String,
}

impl RequestSink for Received {
    fn head(&mut self, head: &server::RequestHead) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let parts = [&head.method, &head.scheme, &head.authority, &head.path, &head.protocol];
        let parts: Vec<String> = parts.into_iter().map(|part| text(part)).collect();
        self.head = format!("{} {}", parts.join(" "), lines(head.fields()));
    }

    fn data(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, fields: Fields<'_>) {
        self.trailers = lines(fields);
    }
}

fn lines(fields: Fields<'_>) -> String {
    let text = String::from_utf8_lossy;
    let fields: Vec<String> =
        fields.map(|field| format!("{}={}", text(field.name), text(field.value))).collect();
    fields.join(" ")
}

fn decode(input: &[u8], bytes_max: usize) -> Result<Received, RequestError> {
    let (mut inbound, mut sections) = (Inbound::default(), SectionReader::default());
    let mut received = Received::default();
    let mut left = input.len();
    for piece in input.chunks(bytes_max) {
        left -= piece.len();
        inbound.decode(&mut sections, (piece, left == 0), &mut received)?;
    }
    Ok(received)
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", "/")];

/// RFC 9114 4.1, 4.3.1, 4.4 and 7.2, RFC 9220 3.
#[test]
fn rules_for_requests() {
    let without = |name: &str| -> Vec<u8> {
        let fields: Vec<_> = GET.into_iter().filter(|field| field.0 != name).collect();
        headers(&fields)
    };
    let with = |fields: &[(&str, &str)]| headers(&[&GET[..], fields].concat());
    let connect = |fields: &[(&str, &str)]| headers(&[&[(":method", "CONNECT")], fields].concat());
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a request", with(&[("a", "b")]), "GET https x /  a=b"),
        ("no authority", without(":authority"), "request without :authority and host"),
        ("the same Host", with(&[("host", "x")]), "GET https x /  host=x"),
        ("another Host", with(&[("host", "y")]), "host differs from :authority"),
        ("no method", without(":method"), "request without :method"),
        ("no scheme", without(":scheme"), "request without :scheme or :path"),
        ("no path", without(":path"), "request without :scheme or :path"),
        ("a status", with(&[(":status", "200")]), "pseudo-header field that requests do not have"),
        ("a path twice", with(&[(":path", "/")]), "pseudo-header field twice"),
        (
            "a late path",
            headers(&[(":method", "GET"), ("a", "b"), (":path", "/")]),
            "pseudo-header field after another",
        ),
        ("Connection", with(&[("connection", "close")]), "connection-specific field"),
        ("capitals", with(&[("A", "b")]), "invalid byte in a field name"),
        ("CONNECT", connect(&[(":authority", "x:1")]), "CONNECT  x:1"),
        (
            "CONNECT with a path",
            connect(&[(":authority", "x:1"), (":path", "/")]),
            "CONNECT without :authority, or with",
        ),
        ("CONNECT to nowhere", connect(&[]), "CONNECT without :authority, or with"),
        (
            "extended CONNECT",
            connect(&[(":protocol", "websocket"), (":scheme", "https"), (":path", "/"), (":authority", "x")]),
            "CONNECT https x / websocket",
        ),
        (
            "too short a body",
            [with(&[("content-length", "4")]), frame(DATA, b"abc")].concat(),
            "body length differs",
        ),
        (
            "too long a body",
            [with(&[("content-length", "2")]), frame(DATA, b"abc")].concat(),
            "body length differs",
        ),
        ("two lengths", with(&[("content-length", "2"), ("content-length", "3")]), "content-length twice"),
        ("DATA first", frame(DATA, b"x"), "H3_FRAME_UNEXPECTED"),
        ("an unknown frame alone", frame(0x21, b"x"), "H3_REQUEST_INCOMPLETE"),
        ("PUSH_PROMISE", frame(5, &[0, 0, 0]), "H3_FRAME_UNEXPECTED"),
        ("SETTINGS", frame(4, &[]), "H3_FRAME_UNEXPECTED"),
        ("PRIORITY_UPDATE", frame(0xf0700, &[0]), "H3_FRAME_UNEXPECTED"),
        ("a frame of HTTP/2", frame(8, &[]), "H3_FRAME_UNEXPECTED"),
        ("the end in a frame", with(&[])[..10].to_vec(), "H3_FRAME_ERROR"),
        ("a broken section", frame(HEADERS, &[0, 0, 0x80]), "QPACK_DECOMPRESSION_FAILED"),
        ("a table", frame(HEADERS, &[2, 0, 0x80]), "QPACK_DECOMPRESSION_FAILED"),
        ("a section without end", [varint(HEADERS), varint(1 << 20)].concat(), "H3_EXCESSIVE_LOAD"),
        (
            "a method in trailers",
            [with(&[]), headers(&[(":method", "GET")])].concat(),
            "pseudo-header field in trailers",
        ),
        (
            "frames after trailers",
            [with(&[]), headers(&[("a", "b")]), frame(DATA, b"x")].concat(),
            "H3_FRAME_UNEXPECTED",
        ),
        (
            "a tunnel's HEADERS",
            [connect(&[(":authority", "x:1")]), headers(&[("a", "b")])].concat(),
            "H3_FRAME_UNEXPECTED",
        ),
    ];
    for (what, input, expected) in cases {
        let whole = decode(&input, usize::MAX);
        let seen = match &whole {
            Ok(received) => received.head.clone(),
            Err(error) => error.to_string(),
        };
        assert!(seen.contains(expected), "{what}: {seen}, not {expected}");
        for bytes_max in [1, 7] {
            assert_eq!(decode(&input, bytes_max), whole, "{what} in pieces of {bytes_max}");
        }
    }
    let protocol = headers(&[&GET[..3], &[(":protocol", "x"), (":path", "/")]].concat());
    assert!(decode(&protocol, 99).unwrap_err().to_string().contains(":protocol in a request"));
    let error =
        Inbound::default().decode(&mut SectionReader::default(), (&[], true), &mut Received::default());
    let RequestError::Stream { code, .. } = error.unwrap_err() else { panic!("a connection error") };
    assert_eq!(code, ErrorCode::H3_REQUEST_INCOMPLETE);
}

/// The begin of a control stream.
fn settings() -> Vec<u8> {
    [vec![0], frame(4, &[])].concat()
}

/// RFC 9114 4.6, 6.2 and 7.2: what a client may do on its unidirectional streams.
#[test]
fn rules_for_clients() {
    for (what, stream, expected) in [
        ("settings", settings(), None),
        ("MAX_PUSH_ID", [settings(), frame(13, &[5]), frame(13, &[5]), frame(13, &[6])].concat(), None),
        (
            "MAX_PUSH_ID that falls",
            [settings(), frame(13, &[5]), frame(13, &[4])].concat(),
            Some(ErrorCode::H3_ID_ERROR),
        ),
        ("CANCEL_PUSH", [settings(), frame(3, &[0])].concat(), Some(ErrorCode::H3_ID_ERROR)),
        ("GOAWAY with a push id", [settings(), frame(7, &[3])].concat(), None),
        ("PRIORITY_UPDATE", [settings(), frame(0xf0700, b"\0u=1"), frame(0xf0700, b"\x08")].concat(), None),
        (
            "PRIORITY_UPDATE first",
            [vec![0], frame(0xf0700, b"\0u=1")].concat(),
            Some(ErrorCode::H3_MISSING_SETTINGS),
        ),
        (
            "PRIORITY_UPDATE of no request",
            [settings(), frame(0xf0700, b"\x02u=1")].concat(),
            Some(ErrorCode::H3_ID_ERROR),
        ),
        (
            "PRIORITY_UPDATE of a push",
            [settings(), frame(13, &[5]), frame(0xf0701, b"\0u=1")].concat(),
            Some(ErrorCode::H3_ID_ERROR),
        ),
        (
            "PRIORITY_UPDATE without an id",
            [settings(), frame(0xf0700, b"\x40")].concat(),
            Some(ErrorCode::H3_FRAME_ERROR),
        ),
        (
            "PRIORITY_UPDATE without end",
            [settings(), frame(0xf0700, &[0; 2000])].concat(),
            Some(ErrorCode::H3_EXCESSIVE_LOAD),
        ),
        ("a push stream", vec![1, 0], Some(ErrorCode::H3_STREAM_CREATION_ERROR)),
        ("an insertion", vec![2, 0xc0, 1, b'x'], Some(ErrorCode::QPACK_ENCODER_STREAM_ERROR)),
    ] {
        let mut connection = UniStreams::new(Setup::new(1));
        let error = connection.decode_stream(2, (&stream, false)).err();
        assert_eq!(error.map(|error| error.code), expected, "{what}");
    }
}

/// As Chromium sends them: one for each request (RFC 9218 7). The same one over and over has no effect.
#[test]
fn priorities_of_ever_new_requests_are_accepted() {
    let mut connection = UniStreams::new(Setup::new(1));
    connection.decode_stream(2, (&settings(), false)).unwrap();
    let mut update = |id: u64| {
        let update = frame(0xf0700, &[varint(id), b"u=0, i".to_vec()].concat());
        connection.decode_stream(2, (&update, false))
    };
    (0..20_000).for_each(|nth| update(4 * nth).unwrap());
    let error = (0..20_000).find_map(|_| update(4).err()).unwrap();
    assert_eq!(error.code, ErrorCode::H3_EXCESSIVE_LOAD);
}

/// Requests and responses through both sides, in random pieces and in a random order of streams.
#[test]
fn a_client_and_a_server_understand_each_other() {
    let mut random = 7_u64;
    let mut next = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound
    };
    for turn in 0..300 {
        let mut client = Client::new(Setup { grease: Some(turn), has_grease_stream: true, ..Setup::new(4) });
        client.set_stream_limit(4);
        let mut connection =
            UniStreams::new(Setup { grease: Some(turn), has_grease_stream: true, ..Setup::new(4) });
        let body: Vec<u8> = (0..next(5000)).map(|at| at as u8).collect();
        let length = Some(body.len() as u64);
        let value = "v".repeat(next(300));
        let own = [("x-own", value.as_str()), ("Accept", "*/*")];
        let head = RequestHead {
            method: "POST",
            target: "/p?q",
            host: Some("h"),
            headers: &own,
            content_length: length,
        };
        let section = prepare(&head, "https").unwrap();

        let mut streams: Vec<(u64, Vec<u8>)> = Vec::new();
        for _ in 0..4 {
            let slot = client.reserve().unwrap();
            let mut out = Vec::new();
            let request =
                Request { section: &section, kind: RequestKind::Other, body_bytes: body.len() as u64 };
            client.start(request, &mut out);
            streams.push((client.stream_of(slot).unwrap(), out));
        }
        let mut out = Vec::new();
        while let Some(chunk) = client.next_chunk(1 + next(2000), &mut out) {
            let at = client.stream_of(chunk.slot).unwrap() / 4;
            out.extend_from_slice(&body[chunk.offset as usize..][..chunk.bytes]);
            streams[at as usize].1.append(&mut out);
        }
        for nth in 0..client.uni_count() {
            let id = 2 + 4 * nth;
            connection.decode_stream(id, (client.uni_output(id), false)).unwrap();
        }

        let mut answers: Vec<(u64, Vec<u8>)> = Vec::new();
        for (id, bytes) in &streams {
            let received = decode(bytes, 1 + next(bytes.len())).unwrap();
            assert_eq!(
                received.head,
                format!("POST https h /p?q  x-own={value} accept=*/* content-length={}", body.len())
            );
            assert_eq!(received.body, body);
            let mut answer = Vec::new();
            put_section(103, [], &mut answer);
            put_section(200, [(&b"x-own"[..], value.as_bytes())], &mut answer);
            for piece in body.chunks(1 + next(3000)) {
                put_data_head(piece.len() as u64, &mut answer);
                answer.extend_from_slice(piece);
            }
            put_section(0, [(&b"end"[..], &b"yes"[..])], &mut answer);
            answers.push((*id, answer));
        }

        let (mut cache, mut seen) = (HeadCache::default(), Seen::default());
        let mut done = 0;
        for nth in 0..connection.uni_count() {
            let id = 3 + 4 * nth;
            let output = connection.uni_output(id).to_vec();
            let mut rest = &output[..];
            while !rest.is_empty() {
                rest =
                    &rest[client.decode_stream(&mut cache, id, (rest, false), &mut ()).unwrap().consumed..];
            }
        }
        while !answers.is_empty() {
            let at = next(answers.len());
            let (id, rest) = &mut answers[at];
            let bytes = 1 + next(rest.len());
            let piece: Vec<u8> = rest.drain(..bytes).collect();
            let read = client.decode_stream(&mut cache, *id, (&piece, rest.is_empty()), &mut seen).unwrap();
            if let Some(Event::Received { response: Some(response), .. }) = read.event {
                assert_eq!(
                    (response.status, response.body_bytes, response.interim_count),
                    (200, body.len() as u64, 1)
                );
                done += 1;
            }
            answers.retain(|(_, rest)| !rest.is_empty());
        }
        assert_eq!((done, client.in_flight()), (4, 0));
        assert_eq!(seen.lines.iter().filter(|line| line.ends_with("trailers end=yes")).count(), 4);
    }
}
