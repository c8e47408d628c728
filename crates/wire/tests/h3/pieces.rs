//! Whatever the pieces in which bytes come, and however streams interleave, the client sees and answers the same.

use squall_wire::h1::RequestKind;
use squall_wire::h3::{Error, Setup};

use crate::conversation::{
    CONTROL, Conversation, DATA, EARLY_HINTS, ENCODER, HEADERS, OTHER, Piece, frame, headers,
};
use crate::seen::Seen;

/// Two responses with an interim one, unknown frames, trailers and a dynamic table, and the streams around them.
fn good() -> Vec<Piece> {
    let settings = [vec![0], frame(4, &[6, 0x44, 0, 0x21, 5]), frame(0x21, b"grease")].concat();
    // Capacity 100; custom: value.
    let insertions = b"\x02\x3f\x45\x46custom\x05value".to_vec();
    vec![
        (CONTROL, settings, false),
        (OTHER, [vec![0x21], b"whatever".to_vec()].concat(), true),
        (ENCODER, insertions, false),
        (
            0,
            [
                frame(HEADERS, EARLY_HINTS),
                headers(&[(":status", "200"), ("content-length", "4")]),
                frame(DATA, b"ab"),
                frame(0x40, b"skip"),
                frame(DATA, b"cd"),
                headers(&[("a", "b")]),
            ]
            .concat(),
            true,
        ),
        (4, [frame(HEADERS, &[2, 0, 0xd9, 0x80]), frame(DATA, b"xyz")].concat(), true),
    ]
}

type Outcome = (Vec<String>, Vec<Vec<u8>>, Vec<String>, Option<Error>);

fn read_pieces(pieces: impl Iterator<Item = Piece>) -> Outcome {
    let setup = Setup { table_bytes: 100, ..Setup::new(2) };
    let mut conversation = Conversation::new(setup, RequestKind::Other, 2);
    let error =
        pieces.into_iter().find_map(|(id, bytes, is_fin)| conversation.read(id, &bytes, is_fin).err());
    let outputs = conversation.outputs();
    let commands = conversation.commands();
    conversation.seen.line(String::new());
    (by_slot(&conversation.seen), outputs, commands, error)
}

/// What was seen, slot by slot: streams may interleave.
fn by_slot(seen: &Seen) -> Vec<String> {
    let mut lines: Vec<String> =
        seen.lines.iter().filter(|line| !line.ends_with("data follows")).cloned().collect();
    lines.sort_by_key(|line| line.split(':').next().unwrap_or_default().to_owned());
    let mut joined: Vec<String> = Vec::new();
    for line in lines {
        match (joined.last_mut(), line.split_once(": data ")) {
            (Some(last), Some((slot, data))) if last.starts_with(&format!("{slot}: data ")) => {
                last.push_str(data);
            }
            _ => joined.push(line),
        }
    }
    joined
}

/// The pieces cut to a length, one stream after the other.
fn cut(pieces: &[Piece], bytes_max: usize) -> Vec<Piece> {
    let mut cut = Vec::new();
    for (id, bytes, is_fin) in pieces {
        let count = bytes.chunks(bytes_max).count();
        let chunks = bytes.chunks(bytes_max).enumerate();
        cut.extend(chunks.map(|(nth, chunk)| (*id, chunk.to_vec(), *is_fin && nth + 1 == count)));
        if count == 0 {
            cut.push((*id, Vec::new(), *is_fin));
        }
    }
    cut
}

#[test]
fn pieces_change_nothing() {
    let good = good();
    let whole = read_pieces(good.iter().cloned());
    assert_eq!(
        whole.0,
        [
            "",
            "0: interim 103",
            "0: head 200 content-length=4",
            "0: data abcd",
            "0: trailers a=b",
            "0: 200 with 4 bytes",
            "1: head 200 custom=value",
            "1: data xyz",
            "1: 200 with 3 bytes",
            "Allowance",
        ]
    );
    assert_eq!(whole.3, None);
    assert_eq!(whole.2, ["stop 15 H3_STREAM_CREATION_ERROR"]);
    // Increment by 1, acknowledgement of stream 4, after the kind of the stream.
    assert_eq!(whole.1[1], [3, 0x01, 0x84]);
    for bytes_max in 1..40 {
        let pieces = cut(&good, bytes_max);
        assert_eq!(read_pieces(pieces.into_iter()), whole, "pieces of {bytes_max}");
    }
}

/// The order in which streams arrive is as QUIC likes, also that of a section and the insertions that it needs.
#[test]
fn streams_interleave_in_any_way() {
    let good = good();
    let mut whole = read_pieces(good.iter().cloned());
    whole.1.clear();
    let mut random = 1_u64;
    let mut next = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound
    };
    for turn in 0..2000 {
        let mut queues: Vec<Vec<Piece>> =
            good.iter().map(|piece| cut(std::slice::from_ref(piece), 1 + turn % 30)).collect();
        queues.iter_mut().for_each(|queue| queue.reverse());
        let mut pieces = Vec::new();
        while !queues.is_empty() {
            let at = next(queues.len());
            pieces.extend(queues[at].pop());
            queues.retain(|queue| !queue.is_empty());
        }
        let mut outcome = read_pieces(pieces.into_iter());
        outcome.1.clear();
        assert_eq!(outcome, whole, "turn {turn}");
    }
}

/// Every byte of a good conversation, replaced by every of some others: no panic, and the same in whatever pieces.
#[test]
fn broken_bytes_are_judged_the_same_in_pieces() {
    let good = good();
    for stream in 0..good.len() {
        for at in 0..good[stream].1.len() {
            for byte in [0, 1, 0x3f, 0x7f, 0x80, 0xff, good[stream].1[at] ^ 1, good[stream].1[at] ^ 0x20] {
                let mut pieces = good.clone();
                pieces[stream].1[at] = byte;
                let mut whole = read_pieces(pieces.iter().cloned());
                for bytes_max in [1, 3, 10] {
                    let mut outcome = read_pieces(cut(&pieces, bytes_max).into_iter());
                    if whole.3.is_some() {
                        // Where the connection ends, the last piece has been seen up to the error or not.
                        (whole.0, outcome.0) = (Vec::new(), Vec::new());
                        (whole.1, outcome.1) = (Vec::new(), Vec::new());
                    }
                    assert_eq!(
                        outcome, whole,
                        "stream {stream}, byte {at} is {byte:#x}, pieces of {bytes_max}"
                    );
                }
            }
        }
    }
}
