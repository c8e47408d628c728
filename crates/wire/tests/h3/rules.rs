//! What a server must not do, section by section of RFC 9114 and RFC 9204, and what becomes of it.

use squall_wire::ErrorCode;
use squall_wire::h1::RequestKind;
use squall_wire::h3::Setup;

use crate::conversation::{
    CONTROL, Conversation, DATA, DECODER, EARLY_HINTS, ENCODER, HEADERS, OK, OTHER, Piece, control, frame,
    headers, name_of, varint, whole,
};

/// What becomes of the first of one requests, by what the server sends.
#[track_caller]
fn check(what: &str, pieces: &[Piece], expected: &str) {
    check_kind(RequestKind::Other, what, pieces, expected);
}

#[track_caller]
fn check_kind(kind: RequestKind, what: &str, pieces: &[Piece], expected: &str) {
    // Byte by byte, the same is said.
    for is_whole in [true, false] {
        let mut conversation = Conversation::new(Setup::new(1), kind, 1);
        let result = if is_whole {
            conversation.read_all(pieces)
        } else {
            pieces.iter().try_for_each(|(id, bytes, is_fin)| {
                let count = bytes.len();
                let mut single = bytes.chunks(1).enumerate();
                single.try_for_each(|(nth, byte)| conversation.read(*id, byte, *is_fin && nth + 1 == count))
            })
        };
        let last = conversation.seen.lines.last().cloned().unwrap_or_default();
        let seen = result.map_or_else(|error| name_of(&error), |()| last);
        assert!(seen.contains(expected), "{what}: {seen}, not {expected}");
    }
}

/// RFC 9114 6.2 and 6.2.1: which streams a server may open.
#[test]
fn unidirectional_streams() {
    let control = |frames: &[Vec<u8>]| vec![(CONTROL, [vec![0], frames.concat()].concat(), false)];
    let settings = frame(4, &[]);
    let cases: Vec<(&str, Vec<Piece>, &str)> = vec![
        ("no SETTINGS", control(&[frame(7, &[0])]), "H3_MISSING_SETTINGS"),
        ("an unknown frame first", control(&[frame(0x21, &[])]), "H3_MISSING_SETTINGS"),
        ("SETTINGS twice", control(&[settings.clone(), settings.clone()]), "H3_FRAME_UNEXPECTED"),
        ("DATA", control(&[settings.clone(), frame(0, b"x")]), "H3_FRAME_UNEXPECTED"),
        ("HEADERS", control(&[settings.clone(), frame(1, OK)]), "H3_FRAME_UNEXPECTED"),
        ("PUSH_PROMISE", control(&[settings.clone(), frame(5, &[0])]), "H3_FRAME_UNEXPECTED"),
        ("MAX_PUSH_ID", control(&[settings.clone(), frame(13, &[0])]), "H3_FRAME_UNEXPECTED"),
        ("CANCEL_PUSH", control(&[settings.clone(), frame(3, &[0])]), "H3_ID_ERROR"),
        // RFC 9218 7.2.
        (
            "PRIORITY_UPDATE of a request",
            control(&[settings.clone(), frame(0xf0700, b"\0u=1")]),
            "H3_FRAME_UNEXPECTED",
        ),
        (
            "PRIORITY_UPDATE of a push",
            control(&[settings.clone(), frame(0xf0701, b"\0u=1")]),
            "H3_FRAME_UNEXPECTED",
        ),
        ("GOAWAY with two ids", control(&[settings.clone(), frame(7, &[0, 0])]), "H3_FRAME_ERROR"),
        ("GOAWAY without an id", control(&[settings.clone(), frame(7, &[])]), "H3_FRAME_ERROR"),
        ("GOAWAY of no request", control(&[settings.clone(), frame(7, &[1])]), "H3_ID_ERROR"),
        ("GOAWAY that rises", control(&[settings.clone(), frame(7, &[0]), frame(7, &[4])]), "H3_ID_ERROR"),
        (
            "an unknown frame",
            control(&[settings.clone(), frame(0x21, b"abc"), settings]),
            "H3_FRAME_UNEXPECTED",
        ),
        (
            "SETTINGS without end",
            vec![(CONTROL, [&[0, 4][..], &varint(1 << 20)].concat(), false)],
            "H3_EXCESSIVE_LOAD",
        ),
        ("a push stream", vec![(OTHER, vec![1, 0], false)], "H3_ID_ERROR"),
        ("a bidirectional stream", vec![(1, vec![0], false)], "H3_STREAM_CREATION_ERROR"),
        (
            "two control streams",
            vec![(CONTROL, vec![0], false), (OTHER, vec![0], false)],
            "H3_STREAM_CREATION_ERROR",
        ),
        (
            "two encoders",
            vec![(ENCODER, vec![2], false), (OTHER, vec![2], false)],
            "H3_STREAM_CREATION_ERROR",
        ),
        (
            "two decoders",
            vec![(DECODER, vec![3], false), (OTHER, vec![3], false)],
            "H3_STREAM_CREATION_ERROR",
        ),
        (
            "the end of control",
            vec![(CONTROL, [vec![0], frame(4, &[])].concat(), true)],
            "H3_CLOSED_CRITICAL_STREAM",
        ),
        ("the end of the encoder", vec![(ENCODER, vec![2], true)], "H3_CLOSED_CRITICAL_STREAM"),
        ("the end of the decoder", vec![(DECODER, vec![3], true)], "H3_CLOSED_CRITICAL_STREAM"),
        ("bytes on a stream of ours", vec![(2, vec![0], false)], "H3_STREAM_CREATION_ERROR"),
        ("an answer without a request", vec![(4, vec![0], false)], "H3_ID_ERROR"),
    ];
    for (what, pieces, expected) in cases {
        check(what, &pieces, expected);
    }
    for kind in [2, 6, 8, 9] {
        check("a frame of HTTP/2", &control(&[frame(4, &[]), frame(kind, &[])]), "H3_FRAME_UNEXPECTED");
    }
}

/// RFC 9114 7.2.4, RFC 9220 3.
#[test]
fn settings() {
    for (what, payload, expected) in [
        ("nothing", vec![], "Allowance"),
        ("unknown settings", [varint(0x21), varint(1 << 40)].concat(), "Allowance"),
        ("a list size", vec![6, 40], "Allowance"),
        ("ENABLE_PUSH", vec![2, 0], "H3_SETTINGS_ERROR"),
        ("MAX_CONCURRENT_STREAMS", vec![3, 0], "H3_SETTINGS_ERROR"),
        ("INITIAL_WINDOW_SIZE", vec![4, 0], "H3_SETTINGS_ERROR"),
        ("MAX_FRAME_SIZE", vec![5, 0], "H3_SETTINGS_ERROR"),
        ("the same twice", vec![6, 1, 6, 1], "H3_SETTINGS_ERROR"),
        ("the same unknown one twice", vec![0x21, 1, 6, 1, 0x21, 1], "H3_SETTINGS_ERROR"),
        ("ENABLE_CONNECT_PROTOCOL 2", vec![8, 2], "H3_SETTINGS_ERROR"),
        ("H3_DATAGRAM 2", vec![0x33, 2], "H3_SETTINGS_ERROR"),
        ("half a setting", vec![6], "H3_FRAME_ERROR"),
        ("half a value", vec![6, 0x40], "H3_FRAME_ERROR"),
    ] {
        check(what, &[control(&payload)], expected);
    }
    let mut conversation = Conversation::with_requests(1);
    assert_eq!(conversation.client.extended_connect(), None);
    conversation.read_all(&[control(&[8, 1])]).unwrap();
    assert_eq!(conversation.client.extended_connect(), Some(true));
}

/// RFC 9114 4.1, 7.1 and 7.2: which frames may come in which order.
#[test]
fn frames_of_a_response() {
    let ok = || frame(HEADERS, OK);
    let data = || frame(DATA, b"abc");
    let trailers = || headers(&[("a", "b")]);
    let cut = |bytes: usize| vec![(0, [ok(), data()].concat()[..ok().len() + bytes].to_vec(), true)];
    let cases: Vec<(&str, Vec<Piece>, &str)> = vec![
        ("a response", vec![whole(0, &[ok(), data()])], "0: 200 with 3 bytes"),
        ("two pieces of a body", vec![whole(0, &[ok(), data(), data()])], "0: 200 with 6 bytes"),
        ("no body", vec![whole(0, &[ok()])], "0: 200 with 0 bytes"),
        ("an empty piece", vec![whole(0, &[ok(), frame(DATA, b"")])], "0: 200 with 0 bytes"),
        ("trailers", vec![whole(0, &[ok(), data(), trailers()])], "0: 200 with 3 bytes"),
        (
            "unknown frames",
            vec![whole(
                0,
                &[frame(0x21, b"x"), ok(), frame(0x40, b""), data(), trailers(), frame(0x5f, b"yz")],
            )],
            "0: 200 with 3 bytes",
        ),
        ("an interim response", vec![whole(0, &[frame(HEADERS, EARLY_HINTS), ok()])], "0: 200 with 0 bytes"),
        ("DATA first", vec![whole(0, &[data()])], "H3_FRAME_UNEXPECTED"),
        ("empty DATA first", vec![whole(0, &[frame(DATA, b"")])], "H3_FRAME_UNEXPECTED"),
        (
            "DATA after an interim response",
            vec![whole(0, &[frame(HEADERS, EARLY_HINTS), data()])],
            "H3_FRAME_UNEXPECTED",
        ),
        ("DATA after trailers", vec![whole(0, &[ok(), trailers(), data()])], "H3_FRAME_UNEXPECTED"),
        ("HEADERS after trailers", vec![whole(0, &[ok(), trailers(), trailers()])], "H3_FRAME_UNEXPECTED"),
        ("PUSH_PROMISE", vec![whole(0, &[frame(5, &[0, 0, 0])])], "H3_ID_ERROR"),
        ("SETTINGS", vec![whole(0, &[frame(4, &[])])], "H3_FRAME_UNEXPECTED"),
        ("PRIORITY_UPDATE", vec![whole(0, &[ok(), frame(0xf0700, &[0])])], "H3_FRAME_UNEXPECTED"),
        ("GOAWAY", vec![whole(0, &[ok(), frame(7, &[0])])], "H3_FRAME_UNEXPECTED"),
        ("CANCEL_PUSH", vec![whole(0, &[ok(), frame(3, &[0])])], "H3_FRAME_UNEXPECTED"),
        ("MAX_PUSH_ID", vec![whole(0, &[ok(), frame(13, &[0])])], "H3_FRAME_UNEXPECTED"),
        ("the end in a frame's head", cut(1), "H3_FRAME_ERROR"),
        ("the end before a payload", cut(2), "H3_FRAME_ERROR"),
        ("the end in a payload", cut(4), "H3_FRAME_ERROR"),
        ("the end in a section", vec![(0, ok()[..3].to_vec(), true)], "H3_FRAME_ERROR"),
        ("an empty section", vec![whole(0, &[frame(HEADERS, b"")])], "QPACK_DECOMPRESSION_FAILED"),
        ("a broken section", vec![whole(0, &[frame(HEADERS, &[0, 0, 0x80])])], "QPACK_DECOMPRESSION_FAILED"),
        (
            "a section with a table",
            vec![whole(0, &[frame(HEADERS, &[2, 0, 0x80])])],
            "QPACK_DECOMPRESSION_FAILED",
        ),
        (
            "a section without end",
            vec![(0, [varint(HEADERS), varint(1 << 20)].concat(), false)],
            "HeadTooLarge",
        ),
    ];
    for (what, pieces, expected) in cases {
        check(what, &pieces, expected);
    }
    for kind in [2, 6, 8, 9] {
        check("a frame of HTTP/2", &[whole(0, &[ok(), frame(kind, &[])])], "H3_FRAME_UNEXPECTED");
    }
}

/// RFC 9114 4.1.2, 4.2 and 4.3.2: malformed responses end their request alone.
#[test]
fn malformed_responses() {
    let status = |value: &'static str| (":status", value);
    let head = |fields: &[(&str, &str)]| vec![whole(0, &[headers(fields)])];
    let trailers =
        |fields: &[(&str, &str)]| vec![whole(0, &[frame(HEADERS, OK), frame(DATA, b"x"), headers(fields)])];
    let with_body = |fields: &[(&str, &str)]| vec![whole(0, &[headers(fields), frame(DATA, b"abc")])];
    let interim: Vec<Vec<u8>> = (0..65).map(|_| frame(HEADERS, EARLY_HINTS)).collect();
    let ok = status("200");
    let cases: Vec<(&str, Vec<Piece>, &str)> = vec![
        ("no status", head(&[("a", "b")]), "head without :status"),
        ("an odd status", head(&[status("2OO")]), ":status that is not three digits"),
        ("two statuses", head(&[ok, ok]), ":status twice"),
        ("a late status", head(&[("a", "b"), ok]), "pseudo-header field after another field"),
        ("a path", head(&[ok, (":path", "/")]), "pseudo-header field that responses do not have"),
        (
            "an unknown pseudo-header field",
            head(&[ok, (":x", "")]),
            "pseudo-header field that responses do not have",
        ),
        ("a field name in capitals", head(&[ok, ("A", "b")]), "invalid byte in a field name"),
        ("an empty field name", head(&[ok, ("", "b")]), "invalid byte in a field name"),
        ("a line end in a value", head(&[ok, ("a", "b\r\nc")]), "invalid byte in a field value"),
        ("a space before a value", head(&[ok, ("a", " b")]), "invalid byte in a field value"),
        ("Connection", head(&[ok, ("connection", "close")]), "connection-specific field"),
        ("Transfer-Encoding", head(&[ok, ("transfer-encoding", "chunked")]), "connection-specific field"),
        ("TE", head(&[ok, ("te", "gzip")]), "connection-specific field"),
        (
            "a length that is no number",
            head(&[ok, ("content-length", "1x")]),
            "content-length is not a number",
        ),
        (
            "two lengths",
            with_body(&[ok, ("content-length", "3"), ("content-length", "4")]),
            "content-length twice",
        ),
        ("a length that is too high", with_body(&[ok, ("content-length", "4")]), "body length differs"),
        ("a length that is too low", with_body(&[ok, ("content-length", "2")]), "body length differs"),
        ("a body with 204", with_body(&[status("204")]), "DATA in a response that has no body"),
        ("a body with 304", with_body(&[status("304")]), "DATA in a response that has no body"),
        ("101", head(&[status("101")]), "status 101, which only HTTP/1.1 has"),
        ("a status in trailers", trailers(&[ok]), "pseudo-header field in trailers"),
        ("a field of the connection in trailers", trailers(&[("upgrade", "x")]), "connection-specific field"),
        ("no response", vec![(0, Vec::new(), true)], "the stream ended before the response"),
        (
            "an interim response alone",
            vec![whole(0, &[frame(HEADERS, EARLY_HINTS)])],
            "the stream ended before",
        ),
        ("interim responses without end", vec![whole(0, &interim)], "too many interim responses"),
        (
            "two equal lengths",
            with_body(&[ok, ("content-length", "3"), ("content-length", "3")]),
            "200 with 3",
        ),
    ];
    for (what, pieces, expected) in cases {
        if pieces[0].1.is_empty() {
            let mut conversation = Conversation::with_requests(1);
            conversation.read_all(&pieces).unwrap();
            assert!(conversation.seen.lines[0].contains(expected), "{what}");
            continue;
        }
        check(what, &pieces, expected);
    }
    let large: Vec<(String, String)> = (0..1500).map(|nth| (format!("f{nth}"), "v".repeat(100))).collect();
    let mut fields = vec![ok];
    fields.extend(large.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    check("too many fields", &head(&fields), "HeadTooLarge");
}

/// What was asked decides whether there is a body.
#[test]
fn bodies_that_cannot_be() {
    let with = |fields: &[(&str, &str)], data: &[u8]| vec![whole(0, &[headers(fields), frame(DATA, data)])];
    let long = [(":status", "200"), ("content-length", "9")];
    for (kind, pieces, expected) in [
        (RequestKind::Head, vec![whole(0, &[headers(&long)])], "0: 200 with 0 bytes"),
        (RequestKind::Head, with(&long, b"x"), "DATA in a response that has no body"),
        (RequestKind::Connect, with(&[(":status", "200")], b"x"), "0: 200 with 1 bytes"),
        (
            RequestKind::Connect,
            vec![whole(0, &[headers(&[(":status", "200")]), headers(&[("a", "b")])])],
            "H3_FRAME_UNEXPECTED",
        ),
        (
            RequestKind::Other,
            vec![whole(0, &[headers(&[(":status", "304"), ("content-length", "9")])])],
            "304 with 0",
        ),
    ] {
        check_kind(kind, "a body", &pieces, expected);
    }
}

/// A malformed response costs its stream: the peer is informed, and the others go on.
#[test]
fn the_peer_is_informed() {
    let mut conversation = Conversation::with_requests(2);
    conversation.read_all(&[whole(0, &[headers(&[("a", "b")])])]).unwrap();
    assert_eq!(conversation.commands(), ["stop 0 H3_MESSAGE_ERROR"]);
    // What still comes of it is ignored.
    conversation.read_all(&[whole(0, &[frame(DATA, b"x")]), whole(4, &[frame(HEADERS, OK)])]).unwrap();
    assert_eq!(conversation.seen.lines.last().unwrap(), "1: 200 with 0 bytes");
    assert_eq!(conversation.client.in_flight(), 0);
}

/// RFC 9114 4.1.1.
#[test]
fn resets() {
    for (code, expected) in [
        (ErrorCode::H3_REQUEST_REJECTED, "Unprocessed(H3_REQUEST_REJECTED)"),
        (ErrorCode::H3_REQUEST_CANCELLED, "Reset(H3_REQUEST_CANCELLED)"),
        (ErrorCode(0x4242), "Reset(error code 0x4242)"),
    ] {
        let mut conversation = Conversation::with_requests(1);
        conversation.read(0, &frame(HEADERS, OK), false).unwrap();
        let event = conversation.client.handle_reset(0, code).unwrap();
        assert!(format!("{event:?}").contains(expected), "{event:?}");
        assert_eq!(
            (conversation.client.handle_reset(0, code), conversation.client.in_flight()),
            (Ok(None), 0)
        );
    }
    for (stream_id, kind) in [(CONTROL, 0), (ENCODER, 2), (DECODER, 3)] {
        let mut conversation = Conversation::with_requests(1);
        conversation.read(stream_id, &[kind], false).unwrap();
        let error = conversation.client.handle_reset(stream_id, ErrorCode::H3_NO_ERROR).unwrap_err();
        assert_eq!(error.code, ErrorCode::H3_CLOSED_CRITICAL_STREAM);
    }
    let setup = Setup { table_bytes: 100, grease: Some(3), has_grease_stream: true, ..Setup::new(1) };
    let mut conversation = Conversation::new(setup, RequestKind::Other, 1);
    for stream_id in [2, 6] {
        let error = conversation.client.handle_stop_sending(stream_id, ErrorCode::H3_NO_ERROR).unwrap_err();
        assert_eq!(error.code, ErrorCode::H3_CLOSED_CRITICAL_STREAM);
    }
    conversation.client.handle_stop_sending(10, ErrorCode::H3_STREAM_CREATION_ERROR).unwrap();
    assert_eq!(conversation.commands(), ["reset 10 H3_STREAM_CREATION_ERROR"]);
}

/// RFC 9114 6.2.3 and 9: what is not known is refused politely, or ignored.
#[test]
fn unknown_streams_are_stopped() {
    let mut conversation = Conversation::with_requests(1);
    conversation.read(OTHER, &varint(0x21 + 0x1f * 100), false).unwrap();
    conversation.read(OTHER, &[0, 1, 2], true).unwrap();
    assert_eq!(conversation.commands(), ["stop 15 H3_STREAM_CREATION_ERROR"]);
    conversation.read(OTHER + 4, &[0x21], true).unwrap();
    conversation.read(OTHER + 8, &[], true).unwrap();
    conversation.read(OTHER + 12, &[0x40], true).unwrap();
    for nth in 0..100 {
        conversation.read(1003 + 4 * nth, &[0x21], false).unwrap();
        // One that is stopped does not count any more.
        conversation.commands();
    }
    let error = (0..100).find_map(|nth| conversation.read(103 + 4 * nth, &[0x21], false).err()).unwrap();
    assert_eq!(error.code, ErrorCode::H3_EXCESSIVE_LOAD);
}

/// What is known ends the connection where it says nothing, over and over.
#[test]
fn frames_without_effect_are_bounded() {
    for (stream_id, flood) in [(0, frame(0x21, b"")), (CONTROL, frame(0x21, b"")), (CONTROL, frame(7, &[0]))]
    {
        let mut conversation = Conversation::with_requests(1);
        conversation.read_all(&[control(&[])]).unwrap();
        let error = (0..20_000).find_map(|_| conversation.read(stream_id, &flood, false).err()).unwrap();
        assert_eq!(error.code, ErrorCode::H3_EXCESSIVE_LOAD);
    }
    let mut conversation = Conversation::with_requests(1);
    conversation.read(0, &frame(HEADERS, OK), false).unwrap();
    (0..20_000).for_each(|_| conversation.read(0, &frame(DATA, b"x"), false).unwrap());
}

/// RFC 9114 5.2.
#[test]
fn a_server_that_goes_away_gives_requests_back() {
    let mut conversation = Conversation::with_requests(3);
    conversation.read_all(&[control(&[]), (CONTROL, frame(7, &[4]), false)]).unwrap();
    assert_eq!(conversation.seen.lines, ["Allowance", "GoingAway"]);
    let client = &mut conversation.client;
    assert!(client.is_ending() && client.reserve().is_none());
    assert_eq!(
        [client.next_unprocessed(), client.next_unprocessed(), client.next_unprocessed()],
        [Some(1), Some(2), None]
    );
    assert_eq!(conversation.commands(), ["stop 4 H3_REQUEST_CANCELLED", "stop 8 H3_REQUEST_CANCELLED"]);
    conversation.read_all(&[whole(0, &[frame(HEADERS, OK)])]).unwrap();
    assert_eq!(conversation.client.in_flight(), 0);
}

/// RFC 9204 4.4: our sections refer to no dynamic table.
#[test]
fn instructions_about_sections_of_ours() {
    for (what, instructions, expected) in [
        ("a cancellation", vec![3, 0x7f, 0x80, 0x01], ""),
        ("an acknowledgement", vec![3, 0x80], "QPACK_DECODER_STREAM_ERROR"),
        ("an increment", vec![3, 0x01], "QPACK_DECODER_STREAM_ERROR"),
        ("an increment of 0", vec![3, 0x00], "QPACK_DECODER_STREAM_ERROR"),
        ("too large an integer", [vec![3, 0x7f], vec![0xff; 9]].concat(), "QPACK_DECODER_STREAM_ERROR"),
    ] {
        check(what, &[(DECODER, instructions, false)], expected);
    }
    check("an insertion", &[(ENCODER, vec![2, 0xc0, 1, b'x'], false)], "QPACK_ENCODER_STREAM_ERROR");
    check("a capacity", &[(ENCODER, vec![2, 0x21], false)], "QPACK_ENCODER_STREAM_ERROR");
    check("a capacity of 0", &[(ENCODER, vec![2, 0x20], false)], "");
}
