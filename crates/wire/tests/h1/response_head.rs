//! Status lines, fields, interim responses, persistence: RFC 9112 2, 4, 5, 9; RFC 9110 15.

use squall_wire::h1::{Decoder, HeadCache, HeadView, RequestKind, Sink, Version};

use crate::harness::{decode, decode_pieces};

/// Decodes a response without a body: the status line and fields given, then the empty line.
fn decode_head(lines: &str) -> crate::harness::Seen {
    decode(RequestKind::Head, format!("{lines}\r\n\r\n").as_bytes())
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn status_line_gives_status_and_reason() {
    for (line, status, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.0 404 Not Found", 404, "Not Found"),
        ("HTTP/1.1 204 ", 204, ""),
        ("HTTP/1.1 204", 204, ""),
        ("HTTP/1.1 500  two  spaces ", 500, " two  spaces "),
        ("HTTP/1.1 200 na\u{ef}ve\ttab", 200, "na\u{ef}ve\ttab"),
        ("HTTP/1.1 999 beyond the classes", 999, "beyond the classes"),
        ("HTTP/1.2 200 a later minor version is read as 1.1", 200, "a later minor version is read as 1.1"),
    ] {
        let seen = decode_head(line);
        assert_eq!(seen.response.map(|it| it.status), Some(status), "{line}: {seen:?}");
        assert_eq!(seen.reason, reason, "{line}");
    }
}

#[test]
fn fields_keep_order_and_repetition_and_lose_outer_whitespace() {
    let seen = decode_head(
        "HTTP/1.1 200 OK\r\nB: 1\r\na:\r\nB: \t two words \t\r\nC:x:y\r\n!#$%&'*+-.^_`|~9: \u{e9}\x01",
    );
    let expected =
        [("B", "1"), ("a", ""), ("B", "two words"), ("C", "x:y"), ("!#$%&'*+-.^_`|~9", "\u{e9}\x01")];
    assert_eq!(seen.fields, expected.map(|(name, value)| pair(name, value)));
}

#[test]
fn bare_line_feeds_end_head_lines() {
    let seen = decode(RequestKind::Other, b"HTTP/1.1 200 OK\nA: 1\r\nContent-Length: 2\n\nhi");
    assert_eq!(seen.fields, [pair("A", "1"), pair("Content-Length", "2")]);
    assert_eq!(seen.body, b"hi");
}

#[test]
fn folded_values_are_unfolded_into_spaces() {
    let seen = decode(
        RequestKind::Other,
        b"HTTP/1.1 200 OK\r\nA: one\r\n two\r\n\t\r\nContent-Length:\r\n 3\r\nB: x\n  y\r\n\r\nabc",
    );
    assert_eq!(seen.fields, [pair("A", "one   two"), pair("Content-Length", "3"), pair("B", "x   y")]);
    assert_eq!(seen.body, b"abc");
}

#[test]
fn a_fold_does_not_leak_into_the_next_equal_head() {
    let mut cache = HeadCache::default();
    let plain = b"HTTP/1.1 200 OK\r\nA: x\r\nContent-Length: 0\r\n\r\n".as_slice();
    let folded = b"HTTP/1.1 200 OK\r\nA: x\r\n y\r\nContent-Length: 0\r\n\r\n".as_slice();
    for (input, value) in [(plain, "x"), (folded, "x   y"), (plain, "x"), (folded, "x   y")] {
        let seen = decode_pieces(RequestKind::Other, &mut cache, &[input]);
        assert_eq!(seen.fields[0], pair("A", value));
    }
}

#[test]
fn interim_responses_are_reported_and_skipped() {
    let seen = decode(
        RequestKind::Other,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    );
    assert_eq!(seen.interim, [100, 103]);
    assert_eq!(seen.fields, [pair("Content-Length", "1")]);
    let response = seen.response.unwrap();
    assert_eq!((response.status, response.interim_count, response.body_bytes), (200, 2, 1));
}

#[test]
fn connection_lasts_as_version_and_options_say() {
    for (lines, keep_alive) in [
        ("HTTP/1.1 200 OK", true),
        ("HTTP/1.1 200 OK\r\nConnection: close", false),
        ("HTTP/1.1 200 OK\r\nCONNECTION: Close", false),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive, , close", false),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: x,close", false),
        ("HTTP/1.1 200 OK\r\nConnection: closed, not-close", true),
        ("HTTP/1.0 200 OK", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive", true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive, close", false),
        ("HTTP/1.5 200 OK", true),
    ] {
        assert_eq!(decode_head(lines).response.map(|it| it.keep_alive), Some(keep_alive), "{lines}");
    }
}

#[test]
fn head_view_finds_fields_in_any_case() {
    struct Check(bool);
    impl Sink for Check {
        fn head(&mut self, head: &HeadView<'_>) {
            assert_eq!(head.status(), 302);
            assert_eq!(head.version(), Version::Http10);
            assert_eq!(head.reason(), b"Found");
            assert_eq!(head.field("LOCATION"), Some(b"/next".as_slice()));
            assert_eq!(head.field("loc"), None);
            self.0 = true;
        }
    }
    let mut check = Check(false);
    let input = b"HTTP/1.0 302 Found\r\nServer: x\r\nLocation: /next\r\nlocation: /other\r\n\r\n";
    Decoder::new().decode(&mut HeadCache::default(), input, &mut check).unwrap();
    assert!(check.0, "no head was reported");
}

#[test]
fn decoder_is_idle_until_the_first_byte() {
    let mut cache = HeadCache::default();
    let mut decoder = Decoder::new();
    assert!(decoder.is_idle());
    decoder.decode(&mut cache, b"", &mut ()).unwrap();
    assert!(decoder.is_idle());
    decoder.decode(&mut cache, b"H", &mut ()).unwrap();
    assert!(!decoder.is_idle());
    decoder.begin(RequestKind::Other);
    assert!(decoder.is_idle());
    decoder.decode(&mut cache, b"HTTP/1.1 100 Continue\r\n\r\n", &mut ()).unwrap();
    assert!(!decoder.is_idle());
}
