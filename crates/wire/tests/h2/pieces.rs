//! Whatever the pieces in which bytes come, the client sees and answers the same.

use squall_wire::h2::Error;

use crate::conversation::{Conversation, frame};
use crate::seen::Seen;

/// Two responses, interleaved, with an interim one, CONTINUATION, padding, a PING, and trailers.
fn good() -> Vec<u8> {
    [
        frame(4, 0, 0, &[0, 4, 0, 1, 0, 0]),
        frame(1, 4, 1, b"\x08\x03103"),
        frame(1, 0, 1, b"\x88\x40\x01a"),
        frame(9, 4, 1, b"\x01b"),
        frame(1, 4, 3, b"\x88\xbe\x0f\x0d\x012"),
        frame(0, 8, 1, b"\x02ab\0\0"),
        frame(6, 0, 0, b"12345678"),
        frame(0, 1, 3, b"ok"),
        frame(0, 0, 1, b"cd"),
        frame(1, 5, 1, b"\xbe"),
        frame(4, 1, 0, b""),
    ]
    .concat()
}

fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Seen, Vec<u8>, Option<Error>) {
    let mut conversation = Conversation::with_requests(2);
    let error = pieces.into_iter().find_map(|piece| conversation.read(piece).err());
    let mut answers = Vec::new();
    conversation.client.write_control(&mut answers);
    (conversation.seen, answers, error)
}

#[track_caller]
fn check_pieces(input: &[u8]) -> (Seen, Vec<u8>, Option<Error>) {
    let whole = read_pieces([input].into_iter());
    for piece_bytes in 1..20 {
        assert_eq!(read_pieces(input.chunks(piece_bytes)), whole, "pieces of {piece_bytes}");
    }
    for at in 0..input.len() {
        let (before, after) = input.split_at(at);
        assert_eq!(
            read_pieces([before, after].into_iter().filter(|piece| !piece.is_empty())),
            whole,
            "split at {at}"
        );
    }
    whole
}

#[test]
fn pieces_change_nothing() {
    let (seen, answers, error) = check_pieces(&good());
    assert_eq!(error, None);
    assert_eq!(answers, [frame(4, 1, 0, b""), frame(6, 1, 0, b"12345678")].concat());
    assert_eq!(
        seen.lines,
        [
            "Allowance",
            "0: interim 103",
            "0: head 200 a=b",
            "1: head 200 a=b content-length=2",
            "0: data follows",
            "0: data ab",
            "1: data follows",
            "1: data ok",
            "1: 200 with 2 bytes",
            "0: data follows",
            "0: data cd",
            "0: trailers a=b",
            "0: 200 with 4 bytes",
        ]
    );
}

/// Every byte of a good conversation, replaced by every of some others: no panic, and the same in whatever pieces.
#[test]
fn broken_bytes_are_judged_the_same_in_pieces() {
    let good = good();
    for at in 0..good.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 1, good[at] ^ 0x20] {
            let mut input = good.clone();
            input[at] = byte;
            let whole = read_pieces([&input[..]].into_iter());
            for piece_bytes in [1, 3, 10] {
                assert_eq!(read_pieces(input.chunks(piece_bytes)), whole, "byte {at} is {byte:#x}");
            }
        }
    }
}
