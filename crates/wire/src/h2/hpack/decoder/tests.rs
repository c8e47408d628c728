//! RFC 7541 appendix C, and what a peer must not send.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Error> {
    let mut fields = Vec::new();
    let text = String::from_utf8_lossy;
    decoder.decode(block, &mut Scratch::default(), &mut |found| {
        fields.push(format!("{}: {}", text(found.name), text(found.value)));
    })?;
    Ok(fields)
}

#[track_caller]
fn check(decoder: &mut Decoder, block: &str, expected: &[&str]) {
    assert_eq!(fields(decoder, &hex(block)).unwrap(), expected);
}

/// C.3 and C.4: three requests on one connection, plain and Huffman-coded.
#[test]
fn requests_of_the_rfc_are_decoded() {
    let first = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
    let second = [
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
        "cache-control: no-cache",
    ];
    let third = [
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ];
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        let mut decoder = Decoder::new();
        check(&mut decoder, blocks[0], &first);
        check(&mut decoder, blocks[1], &second);
        check(&mut decoder, blocks[2], &third);
    }
}

/// C.5: responses with a table of 256 bytes, so that entries are evicted.
#[test]
fn responses_of_the_rfc_evict_entries() {
    let mut decoder = Decoder::new();
    decoder.table.set_capacity(256);
    check(
        &mut decoder,
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        &[
            ":status: 302",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:21 GMT",
            "location: https://www.example.com",
        ],
    );
    check(
        &mut decoder,
        "4803333037c1c0bf",
        &[
            ":status: 307",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:21 GMT",
            "location: https://www.example.com",
        ],
    );
    check(
        &mut decoder,
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        &[
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            "location: https://www.example.com",
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ],
    );
}

#[test]
fn blocks_that_no_encoder_makes_are_refused() {
    for (what, block) in [
        ("index zero", "80"),
        ("index beyond both tables", "be"),
        ("name index beyond both tables", "7f0101610162"),
        ("ends within an integer", "ff80"),
        ("ends within a string", "400a6162"),
        ("ends before the value", "4001 61"),
        ("size update beyond what was announced", "3fe21f"),
        ("size update after a field", "88 20"),
        ("EOS in a string", "4084ffffffff0161"),
    ] {
        assert!(fields(&mut Decoder::new(), &hex(block)).is_err(), "{what}");
    }
}

#[test]
fn a_table_of_no_size_remembers_nothing() {
    let mut decoder = Decoder::new();
    check(&mut decoder, "20 4001610162", &["a: b"]);
    assert_eq!(decoder.table.capacity(), 0);
    assert!(fields(&mut decoder, &hex("be")).is_err());
    // Back to 4,096: RFC 7541 4.2 allows what was announced.
    check(&mut decoder, "3fe11f 4001610162 be", &["a: b", "a: b"]);
}

/// Many insertions run through the table's buffer again and again.
#[test]
fn the_table_keeps_the_newest_entries_for_ever() {
    let mut decoder = Decoder::new();
    for round in 0..2_000 {
        let value = format!("{round:->100}");
        let mut block = vec![0x40, 1, b'a', 100];
        block.extend_from_slice(value.as_bytes());
        fields(&mut decoder, &block).unwrap();
        assert_eq!(fields(&mut decoder, &[0xbe]).unwrap(), [format!("a: {value}")]);
        if round > 40 {
            let oldest = format!("{:->100}", round - 29);
            assert_eq!(fields(&mut decoder, &[0x80 | (62 + 29)]).unwrap(), [format!("a: {oldest}")]);
        }
    }
}
