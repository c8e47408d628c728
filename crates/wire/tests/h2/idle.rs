//! Connections without requests.

use squall_wire::h2::{IdleClient, IdleEvent};

/// Settings with one value, a window update, a ping, its answer, a farewell.
const STREAM: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0d\0\0\x04\x08\0\0\0\0\0\0\0\xff\xff\
    \0\0\x08\x06\0\0\0\0\0abcdefgh\0\0\x08\x06\x01\0\0\0\0squall\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn events_and_answers_are_the_same_in_pieces_of_any_size() {
    for size in 1..STREAM.len() {
        let (mut client, mut events, mut out) = (IdleClient::default(), Vec::new(), Vec::new());
        for mut piece in STREAM.chunks(size) {
            while let Some(event) = client.decode(&mut piece, &mut out).unwrap() {
                events.push(event);
            }
        }
        assert_eq!(events, [IdleEvent::Settings, IdleEvent::Pong, IdleEvent::GoAway], "in pieces of {size}");
        let answers = b"\0\0\0\x04\x01\0\0\0\0\0\0\x08\x06\x01\0\0\0\0abcdefgh";
        assert_eq!(out, answers, "in pieces of {size}");
    }
}

#[test]
fn a_frame_that_is_too_large_is_refused() {
    let mut out = Vec::new();
    assert!(IdleClient::default().decode(&mut &b"\xff\xff\xff\0\0\0\0\0\0"[..], &mut out).is_err());
}

#[test]
fn a_ping_of_a_wrong_length_neither_fails_nor_panics() {
    let mut out = Vec::new();
    let mut input = &b"\0\0\x02\x06\0\0\0\0\0ab\0\0\x09\x06\0\0\0\0\0abcdefghi"[..];
    assert_eq!(IdleClient::default().decode(&mut input, &mut out), Ok(None));
    assert!(input.is_empty() && out.is_empty());
}

#[test]
fn the_preface_and_a_ping_are_those_of_the_rfc() {
    let mut out = Vec::new();
    IdleClient::write_preface(&mut out);
    IdleClient::write_ping(&mut out);
    assert_eq!(out, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\0\0\0\0\0squall\0\0");
}
