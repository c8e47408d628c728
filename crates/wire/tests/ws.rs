//! WebSocket connections between the two ends, and what each must refuse.

use squall_wire::ws::deflate::Params;
use squall_wire::ws::{CloseCode, Decoder, Error, Event, Inbox, MessageKind, Outbox, Part, WebSocketRole};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What a decoder makes of bytes that arrive in pieces of `step`.
fn events(
    role: WebSocketRole,
    params: Option<Params>,
    bytes: &[u8],
    step: usize,
) -> Result<Vec<String>, Error> {
    let mut decoder = Decoder::new(role, params.is_some());
    let mut inbox = Inbox::new(1 << 20, params.map(|params| params.inflater(role)));
    let mut seen = Vec::new();
    for piece in bytes.chunks(step) {
        let mut input = piece.to_vec();
        let mut input = &mut input[..];
        loop {
            let decoded = decoder.decode(input)?;
            let consumed = decoded.consumed;
            match decoded.event {
                Some(Event::Part(part)) => {
                    if let Some(message) = inbox.push(part)? {
                        seen.push(match message.kind {
                            MessageKind::Text => format!("text {}", String::from_utf8_lossy(message.bytes)),
                            MessageKind::Binary => format!("binary {:?}", message.bytes),
                        });
                    }
                }
                Some(Event::Ping(bytes)) => seen.push(format!("ping {bytes:?}")),
                Some(Event::Pong(bytes)) => seen.push(format!("pong {bytes:?}")),
                Some(Event::Close(code, reason)) => seen.push(format!("close {} {reason}", code.0)),
                None => break,
            }
            input = &mut input[consumed..];
        }
    }
    Ok(seen)
}

#[test]
fn what_one_end_writes_the_other_reads_however_it_is_cut() {
    let long = "Hallo, κόσμε! ".repeat(5000);
    let deflate = [
        None,
        Some(Params::default()),
        Some(Params {
            client_no_context_takeover: true,
            server_no_context_takeover: true,
            ..Params::default()
        }),
        Some(Params { client_window_bits: Some(9), server_window_bits: Some(10), ..Params::default() }),
    ];
    for params in deflate {
        for (from, to, key) in [
            (WebSocketRole::Client, WebSocketRole::Server, Some(KEY)),
            (WebSocketRole::Server, WebSocketRole::Client, None),
        ] {
            let mut outbox = Outbox::new(params.map(|params| params.deflater(from)));
            let mut wire = Vec::new();
            for text in ["", "Hello", "Hello", &long, ""] {
                outbox.message(MessageKind::Text, text.as_bytes(), key, &mut wire);
            }
            outbox.ping(&[7; 125], key, &mut wire);
            outbox.pong(b"", key, &mut wire);
            outbox.message(MessageKind::Binary, &[0, 255, 254], key, &mut wire);
            outbox.close(CloseCode::NORMAL, "done", key, &mut wire);
            let long = format!("text {long}");
            let ping = format!("ping {:?}", [7; 125]);
            let expected = [
                "text ",
                "text Hello",
                "text Hello",
                &long,
                "text ",
                &ping,
                "pong []",
                "binary [0, 255, 254]",
                "close 1000 done",
            ];
            for step in [1, 2, 3, 7, 126, 4096, wire.len()] {
                assert_eq!(
                    events(to, params, &wire, step).unwrap(),
                    expected,
                    "{params:?}, {from:?}, by {step}"
                );
            }
        }
    }
}

#[test]
fn frames_are_those_of_the_rfc() {
    // RFC 6455 5.7, RFC 7692 7.2.3.
    let cases: [(WebSocketRole, bool, &[u8], &[&str]); 7] = [
        (WebSocketRole::Client, false, &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], &["text Hello"]),
        (
            WebSocketRole::Server,
            false,
            &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58],
            &["text Hello"],
        ),
        (
            WebSocketRole::Client,
            false,
            &[0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f],
            &["text Hello"],
        ),
        (
            WebSocketRole::Client,
            false,
            &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f],
            &["ping [72, 101, 108, 108, 111]"],
        ),
        (
            WebSocketRole::Client,
            true,
            &[0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0xc1, 0x05, 0xf2, 0x00, 0x11, 0x00, 0x00],
            &["text Hello", "text Hello"],
        ),
        (
            WebSocketRole::Client,
            true,
            &[0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00],
            &["text Hello"],
        ),
        // A block that says it is the last one (RFC 7692 7.2.3.5).
        (
            WebSocketRole::Client,
            true,
            &[0xc1, 0x08, 0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &["text Hello"],
        ),
    ];
    for (role, is_compressed, bytes, expected) in cases {
        let params = is_compressed.then(Params::default);
        for step in 1..=bytes.len() {
            assert_eq!(events(role, params, bytes, step).unwrap(), expected, "{bytes:?} by {step}");
        }
    }
}

#[test]
fn violations_are_refused_with_their_code() {
    let cases: [(&[u8], Error, u16); 18] = [
        (&[0xa1, 0x00], Error::ReservedBits, 1002),
        (&[0xc1, 0x00], Error::ReservedBits, 1002),
        (&[0x83, 0x00], Error::Opcode(3), 1002),
        (&[0x8b, 0x00], Error::Opcode(11), 1002),
        (&[0x81, 0x80, 1, 2, 3, 4], Error::Masked, 1002),
        (&[0x09, 0x00], Error::FragmentedControl, 1002),
        (&[0x89, 126, 0, 126], Error::LongControl(126), 1002),
        (&[0x82, 126, 0, 125], Error::Length, 1002),
        (&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Error::Length, 1002),
        (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Error::Length, 1002),
        (&[0x80, 0x00], Error::NothingToContinue, 1002),
        (&[0x01, 0x00, 0x81, 0x00], Error::Unfinished, 1002),
        (&[0x81, 0x01, 0xff], Error::Utf8, 1007),
        (&[0x01, 0x01, 0xce, 0x80, 0x00], Error::Utf8, 1007),
        (&[0x88, 0x01, 0x03], Error::ClosePayload, 1002),
        (&[0x88, 0x02, 0x03, 0xed], Error::CloseCode(1005), 1002),
        (&[0x88, 0x00, 0x89, 0x00], Error::AfterClose, 1002),
        (&[0x88, 0x03, 0x03, 0xe8, 0xff], Error::Utf8, 1007),
    ];
    for (bytes, expected, code) in cases {
        for step in 1..=bytes.len() {
            assert_eq!(
                events(WebSocketRole::Client, None, bytes, step).unwrap_err(),
                expected,
                "{bytes:?} by {step}"
            );
        }
        assert_eq!(expected.close_code(), CloseCode(code));
    }
    let not_masked = events(WebSocketRole::Server, None, &[0x81, 0x00], 2);
    assert_eq!(not_masked.unwrap_err(), Error::NotMasked);
    let damaged = events(WebSocketRole::Client, Some(Params::default()), &[0xc1, 0x03, 0xff, 0xff, 0xff], 5);
    assert_eq!(damaged.unwrap_err(), Error::Deflate);
    let cut_text = events(
        WebSocketRole::Client,
        Some(Params::default()),
        &[0xc1, 0x05, 0x3a, 0x07, 0x00, 0x00, 0x00],
        7,
    );
    assert!(matches!(cut_text.unwrap_err(), Error::Utf8 | Error::Deflate));
}

#[test]
fn a_message_has_a_bound_however_it_arrives() {
    let params = Params::default();
    let mut wire = Vec::new();
    Outbox::new(Some(params.deflater(WebSocketRole::Server))).message(
        MessageKind::Binary,
        &vec![0; 50 << 20],
        None,
        &mut wire,
    );
    assert!(wire.len() < 1 << 20, "a compression bomb is small: {}", wire.len());
    let bomb = events(WebSocketRole::Client, Some(params), &wire, 4096);
    assert_eq!(bomb.unwrap_err(), Error::TooLarge(1 << 20));
    let mut wire = Vec::new();
    Outbox::default().message(MessageKind::Binary, &vec![0; (1 << 20) + 1], None, &mut wire);
    assert_eq!(events(WebSocketRole::Client, None, &wire, 4096).unwrap_err(), Error::TooLarge(1 << 20));
}

#[test]
fn a_server_chooses_the_first_offer_that_it_can_meet() {
    let check = |offers: &str, expected: Option<&str>| {
        let chosen = Params::choose(offers).map(|params| params.to_string());
        assert_eq!(chosen.as_deref(), expected, "{offers}");
    };
    check("permessage-deflate", Some("permessage-deflate"));
    check("permessage-deflate; client_max_window_bits", Some("permessage-deflate"));
    check(
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10",
        Some(
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10",
        ),
    );
    check("permessage-deflate; server_max_window_bits=8, permessage-deflate", Some("permessage-deflate"));
    check(
        "permessage-deflate; client_max_window_bits=\"9\"",
        Some("permessage-deflate; client_max_window_bits=9"),
    );
    for declined in [
        "",
        "x-webkit-deflate-frame",
        "permessage-deflate; mystery",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=09",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
    ] {
        check(declined, None);
    }
    check(
        "permessage-deflate; server_max_window_bits=15",
        Some("permessage-deflate; server_max_window_bits=15"),
    );
    assert_eq!(Params::agreed("permessage-deflate; client_max_window_bits", true), None);
    let limited = "permessage-deflate; client_max_window_bits=10";
    assert_eq!(Params::agreed(limited, false), None);
    assert_eq!(Params::agreed(limited, true).unwrap().client_window_bits, Some(10));
}

/// Levels and texts that make stored blocks, blocks with fixed codes, and blocks with codes of their own.
#[test]
fn a_compressed_message_that_ends_within_a_block_is_refused() {
    let mixed: String = (0..3000_u32).map(|nth| char::from(b'!' + (nth * nth % 89) as u8)).collect();
    for text in ["x", "Hallo, Hallo, Hallo!", &mixed] {
        let mut wire = Vec::new();
        Outbox::new(Some(Params::default().deflater(WebSocketRole::Server))).message(
            MessageKind::Binary,
            text.as_bytes(),
            None,
            &mut wire,
        );
        let payload = &wire[if wire[1] == 126 { 4 } else { 2 }..];
        for kept in 1..=payload.len() {
            let mut inbox = Inbox::new(1 << 20, Some(Params::default().inflater(WebSocketRole::Client)));
            let part = Part {
                kind: MessageKind::Binary,
                bytes: &payload[..kept],
                is_last: true,
                is_compressed: true,
            };
            let pushed = inbox.push(part).map(|message| message.map(|message| message.bytes.to_vec()));
            if kept == payload.len() {
                assert_eq!(pushed, Ok(Some(text.as_bytes().to_vec())));
            } else {
                assert_eq!(pushed, Err(Error::Deflate), "{kept} of {} bytes", payload.len());
            }
        }
    }
}
