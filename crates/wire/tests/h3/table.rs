//! Responses that use the dynamic table, and wait for it.

use squall_wire::ErrorCode;
use squall_wire::h1::RequestKind;
use squall_wire::h3::Setup;

use crate::conversation::{Conversation, DATA, ENCODER, HEADERS, frame};

/// Capacity 100; `custom: value`.
const INSERTION: &[u8] = b"\x3f\x45\x46custom\x05value";

/// `:status: 200`, and the first entry of the table.
const SECTION: &[u8] = &[2, 0, 0xd9, 0x80];

fn conversation(count: u32) -> Conversation {
    let setup = Setup { table_bytes: 100, ..Setup::new(count) };
    let mut conversation = Conversation::new(setup, RequestKind::Other, count);
    conversation.outputs();
    conversation.read(ENCODER, &[2], false).unwrap();
    conversation
}

#[test]
fn settings_announce_the_table() {
    let setup = Setup { table_bytes: 100, grease: Some(2), has_grease_stream: true, ..Setup::new(7) };
    let mut conversation = Conversation::new(setup, RequestKind::Other, 0);
    let settings = [6, 0x80, 4, 0, 0, 1, 0x40, 100, 7, 7, 0x40, 0x5f, 2];
    let control = [vec![0], frame(4, &settings)].concat();
    assert_eq!(conversation.outputs(), [control, vec![3], vec![0x40, 0x5f]]);
    assert_eq!(conversation.outputs(), [&b""[..], b"", b""]);
    let mut setting_only =
        Conversation::new(Setup { grease: Some(2), ..Setup::new(7) }, RequestKind::Other, 0);
    assert_eq!(setting_only.outputs(), [[vec![0], frame(4, &[6, 0x80, 4, 0, 0, 0x40, 0x5f, 2])].concat()]);
    let mut plain = Conversation::with_requests(0);
    assert_eq!(plain.outputs(), [[vec![0], frame(4, &[6, 0x80, 4, 0, 0])].concat()]);
}

#[test]
fn a_response_waits_for_its_insertions() {
    let mut conversation = conversation(2);
    conversation.read(0, &frame(HEADERS, SECTION), false).unwrap();
    assert!(!conversation.client.wants_stream(0) && conversation.client.wants_stream(4));
    conversation.read(0, &frame(DATA, b"late"), true).unwrap();
    assert_eq!(conversation.seen.lines, [""; 0]);
    conversation.read(4, &[frame(HEADERS, SECTION), frame(DATA, b"x")].concat(), false).unwrap();
    conversation.read(ENCODER, INSERTION, false).unwrap();
    assert!(conversation.client.wants_stream(4));
    conversation.read(4, b"", true).unwrap();
    assert_eq!(
        conversation.seen.lines,
        [
            "0: head 200 custom=value",
            "0: data follows",
            "0: data late",
            "0: 200 with 4 bytes",
            "1: head 200 custom=value",
            "1: data follows",
            "1: data x",
            "1: 200 with 1 bytes",
        ]
    );
    assert_eq!(conversation.outputs()[1], [0x01, 0x80, 0x84]);
}

#[test]
fn a_request_that_is_given_up_is_forgotten() {
    let mut conversation = conversation(2);
    conversation.read(0, &frame(HEADERS, SECTION), false).unwrap();
    conversation.client.cancel(0);
    conversation.client.handle_reset(4, ErrorCode::H3_REQUEST_CANCELLED).unwrap();
    assert_eq!(conversation.outputs()[1], [0x40, 0x44]);
    conversation.read(ENCODER, INSERTION, false).unwrap();
    assert_eq!(conversation.client.next_readable(), None);
    assert_eq!(conversation.client.in_flight(), 0);
}

/// What a section needs is relative to the insertions when it comes, not when it is read at last (RFC 9204 4.5.1.1).
#[test]
fn a_response_waits_for_the_insertions_that_it_meant() {
    let mut conversation = conversation(1);
    conversation.read(0, &frame(HEADERS, SECTION), true).unwrap();
    // Six more insertions than the table has places for: what they mean is another number by now.
    let insertions = [INSERTION, &b"\x46custom\x05value".repeat(6)].concat();
    let error = conversation.read(ENCODER, &insertions, false).unwrap_err();
    assert_eq!(error.code, ErrorCode::QPACK_DECOMPRESSION_FAILED, "the first entry is gone");
}

/// RFC 9204 2.1.2.
#[test]
fn no_more_streams_wait_than_were_announced() {
    let mut conversation = conversation(200);
    let blocked = (0..200).map(|nth| conversation.read(4 * nth, &frame(HEADERS, SECTION), false));
    let errors: Vec<_> = blocked.filter_map(Result::err).collect();
    assert_eq!((errors.len(), errors[0].code), (100, ErrorCode::QPACK_DECOMPRESSION_FAILED));
}

#[test]
fn what_is_kept_has_a_bound() {
    let mut conversation = conversation(1);
    conversation.read(0, &frame(HEADERS, SECTION), false).unwrap();
    let data = frame(DATA, &[0; 10_000]);
    let error = (0..1000).find_map(|_| conversation.read(0, &data, false).err()).unwrap();
    assert_eq!(error.code, ErrorCode::H3_EXCESSIVE_LOAD);
}

/// A peer that inserts and never reads our acknowledgements makes nothing grow.
#[test]
fn acknowledgements_that_nobody_reads_have_a_bound() {
    let mut conversation = conversation(1);
    conversation.read(ENCODER, &[0x3f, 0x45], false).unwrap();
    let insertion = b"\x46custom\x05value";
    let error = (0..100_000).find_map(|_| conversation.read(ENCODER, insertion, false).err()).unwrap();
    assert_eq!(error.code, ErrorCode::H3_EXCESSIVE_LOAD);
    assert!(conversation.client.control_bytes() < 70_000);
}

/// What another implementation wrote (ls-qpack), with insertions, duplicates and evictions in tables of two sizes: `data/ls-qpack.txt` has a line
/// with the table's size and the first instructions, then for each response its instructions and its section, and what it means.
#[test]
fn another_implementation_is_understood() {
    let hex = |text: &str| -> Vec<u8> {
        let pairs = text.as_bytes().chunks_exact(2);
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let field = |text: &str| {
        let (name, value) = text.split_once('=').unwrap();
        [hex(name), hex(value)].map(|part| String::from_utf8(part).unwrap())
    };
    for is_late in [false, true] {
        let mut conversation = conversation(1);
        let (mut stream_id, mut table_count) = (0, 0);
        for line in include_str!("data/ls-qpack.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["table", bytes, instructions] => {
                    let setup = Setup { table_bytes: bytes.parse().unwrap(), ..Setup::new(60) };
                    conversation = Conversation::new(setup, RequestKind::Other, 60);
                    conversation.read(ENCODER, &[vec![2], hex(instructions)].concat(), false).unwrap();
                    (stream_id, table_count) = (0, table_count + 1);
                }
                ["section", instructions, section] => {
                    conversation.seen.lines.clear();
                    let response = (stream_id, frame(HEADERS, &hex(section)), true);
                    let instructions = (ENCODER, hex(instructions), false);
                    let pieces = if is_late { [response, instructions] } else { [instructions, response] };
                    conversation.read_all(&pieces).unwrap();
                    stream_id += 4;
                }
                ["fields", ref fields @ ..] => {
                    let fields: Vec<_> = fields.iter().map(|text| field(text)).collect();
                    let rest: Vec<String> =
                        fields[1..].iter().map(|[name, value]| format!("{name}={value}")).collect();
                    let slot = stream_id / 4 - 1;
                    let expected = format!("{slot}: head {} {}", fields[0][1], rest.join(" "));
                    assert_eq!(conversation.seen.lines[0], expected, "late: {is_late}");
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!((table_count, conversation.client.in_flight()), (2, 0));
    }
}
