//! RFC 9204 appendix B, and what a peer must not send.

use super::*;
use crate::ErrorCode;
use crate::h3::qpack::SectionWriter;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

/// The fields of a section; `None`: it waits.
fn fields(decoder: &Decoder, section: &[u8]) -> Result<Option<Vec<String>>, Error> {
    let prefix = decoder.read_prefix(section, None)?;
    if prefix.insert_count > decoder.insert_count() {
        return Ok(None);
    }
    let mut fields = Vec::new();
    let text = String::from_utf8_lossy;
    decoder.decode(prefix, &mut Scratch::default(), &mut |found| {
        fields.push(format!("{}: {}", text(found.name), text(found.value)));
    })?;
    Ok(Some(fields))
}

#[track_caller]
fn check(decoder: &Decoder, section: &str, expected: &[&str]) {
    assert_eq!(fields(decoder, &hex(section)).unwrap().unwrap(), expected);
}

/// The whole of appendix B, with the encoder stream in pieces of every length.
#[test]
fn the_examples_of_the_rfc_are_decoded() {
    for piece_bytes in 1..30 {
        let mut decoder = Decoder::new(220, 100);
        let insert = |decoder: &mut Decoder, bytes: &str| {
            hex(bytes).chunks(piece_bytes).for_each(|piece| assert!(decoder.insert(piece).is_ok()));
        };
        check(&decoder, "0000 510b 2f69 6e64 6578 2e68 746d 6c", &[":path: /index.html"]);

        assert_eq!(fields(&decoder, &hex("0381 10 11")), Ok(None));
        insert(&mut decoder, "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d");
        insert(&mut decoder, "c10c 2f73 616d 706c 652f 7061 7468");
        check(&decoder, "0381 10 11", &[":authority: www.example.com", ":path: /sample/path"]);
        decoder.note_known(2);
        assert_eq!(decoder.take_unknown(), 0);

        insert(&mut decoder, "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565");
        assert_eq!(decoder.take_unknown(), 1);

        insert(&mut decoder, "02");
        let expected = [":authority: www.example.com", ":path: /", "custom-key: custom-value"];
        check(&decoder, "0500 80 c1 81", &expected);

        insert(&mut decoder, "810d 6375 7374 6f6d 2d76 616c 7565 32");
        assert_eq!(decoder.insert_count(), 5);
        check(&decoder, "0600 80", &["custom-key: custom-value2"]);
        // The oldest entry was evicted.
        assert!(fields(&decoder, &hex("0681 84")).is_err());
    }
}

#[test]
fn broken_sections_are_refused() {
    let mut decoder = Decoder::new(220, 100);
    decoder.insert(&hex("3fbd01 4161 0162")).unwrap();
    for (section, text) in [
        ("", "field section ends within a field"),
        ("00", "field section ends within a field"),
        ("0000 80", "index of no entry in the dynamic table"),
        ("0200 81", "index of no entry in the dynamic table"),
        ("0200 11", "index of no entry in the dynamic table"),
        ("0000 ff 24", "index of no entry in the static table"),
        ("0000 5f 54 00", "index of no entry in the static table"),
        ("0000 40 00", "index of no entry in the dynamic table"),
        ("0000 51 05 61", "field section ends within a field"),
        ("0000 2f", "field section ends within a field"),
        ("0d00", "required insert count out of its range"),
        ("0281", "base out of its range"),
        ("00ff", "field section ends within a field"),
        ("0000 51 81 00", "invalid padding in a Huffman-coded string"),
    ] {
        let error = fields(&decoder, &hex(section)).map(|_| ()).unwrap_err();
        assert_eq!((error.code, error.text), (ErrorCode::QPACK_DECOMPRESSION_FAILED, text), "{section}");
    }
    assert!(fields(&Decoder::new(0, 0), &hex("0100 80")).is_err(), "no table was announced");
}

#[test]
fn broken_instructions_are_refused() {
    for (instructions, text) in [
        ("3fbe01", "table capacity above the announced limit"),
        ("4161 0162", "insertion of an entry that is larger than the table"),
        ("22 41 61 01 62", "insertion of an entry that is larger than the table"),
        ("3fbd01 00", "index of no entry in the dynamic table"),
        ("3fbd01 80 0162", "index of no entry in the dynamic table"),
        ("3fbd01 ff 24 0162", "index of no entry in the static table"),
        ("3fbd01 61 00", "invalid padding in a Huffman-coded string"),
    ] {
        let mut decoder = Decoder::new(220, 100);
        let error = decoder.insert(&hex(instructions)).unwrap_err();
        assert_eq!((error.code, error.text), (ErrorCode::QPACK_ENCODER_STREAM_ERROR, text), "{instructions}");
    }
}

/// An instruction without end takes no memory without end.
#[test]
fn an_endless_instruction_is_refused() {
    let mut decoder = Decoder::new(220, 100);
    decoder.insert(&hex("3fbd01")).unwrap();
    for instruction in ["c0 7fffffff01", "5fffffff01"] {
        assert!(Decoder::new(220, 100).insert(&hex(instruction)).is_err(), "{instruction}");
    }
    // What may still be an entry is kept, and no more than that.
    decoder.insert(&hex("c0 ff d102")).unwrap();
    assert!((0..463).all(|_| decoder.insert(b"\xff").is_ok()));
    assert!(decoder.insert(b"\xff").is_err());
}

/// Over many insertions the required insert count wraps around in every way.
#[test]
fn the_required_insert_count_is_read_however_far_the_table_has_come() {
    let mut decoder = Decoder::new(220, 100);
    decoder.insert(&hex("3fbd01")).unwrap();
    for count in 1..=100_u64 {
        decoder.insert(&hex("4161 0162")).unwrap();
        let encoded = (count % 12 + 1) as u8;
        assert_eq!(decoder.read_prefix(&[encoded, 0], None).map(|prefix| prefix.insert_count), Ok(count));
    }
}

#[test]
fn what_is_written_is_read() {
    let decoder = Decoder::new(0, 0);
    let long = "v".repeat(300);
    let mut section = SectionWriter::default();
    let written = [
        (":method", "GET"),
        (":path", "/~x"),
        ("x-own", &long),
        ("a-name-that-is-longer-than-the-prefix", ""),
        ("server", "\u{7f}\u{e9}"),
    ];
    written.iter().for_each(|(name, value)| section.push(name.as_bytes(), value.as_bytes()));
    let expected: Vec<String> = written.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(fields(&decoder, section.as_bytes()).unwrap().unwrap(), expected);
}
