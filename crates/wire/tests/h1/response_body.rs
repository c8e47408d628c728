//! How a body ends: RFC 9112 6 and 7.

use squall_wire::h1::{Decoder, HeadCache, RequestKind, Response};

use crate::harness::{decode, text};

/// Decodes `HTTP/1.1 <head>` and what follows; checks status, body, and what is left.
fn check(kind: RequestKind, input: &str, body: &str, rest: &str) -> Response {
    let seen = decode(kind, format!("HTTP/1.1 {input}").as_bytes());
    let response = seen.response.unwrap_or_else(|| panic!("{input:?}: {seen:?}"));
    assert_eq!(text(&seen.body), body, "{input:?}");
    assert_eq!(text(&seen.rest), rest, "{input:?}");
    assert_eq!(response.body_bytes, body.len() as u64, "{input:?}");
    response
}

#[test]
fn content_length_counts_the_body() {
    for (fields, body) in [
        ("Content-Length: 3", "abc"),
        ("Content-Length: 0", ""),
        ("content-length:003", "abc"),
        ("Content-Length: 3\r\nContent-Length: 3", "abc"),
        ("Content-Length: 3, 3 ,03", "abc"),
    ] {
        let response =
            check(RequestKind::Other, &format!("200 OK\r\n{fields}\r\n\r\n{body}HTTP/1.1"), body, "HTTP/1.1");
        assert!(response.keep_alive);
    }
}

#[test]
fn responses_without_a_body_ignore_every_framing_field() {
    for (kind, head) in [
        (RequestKind::Head, "200 OK\r\nContent-Length: 10"),
        (RequestKind::Head, "200 OK\r\nTransfer-Encoding: chunked"),
        (RequestKind::Head, "200 OK"),
        (RequestKind::Head, "200 OK\r\nContent-Length: nonsense"),
        (RequestKind::Other, "204 No Content\r\nContent-Length: 10"),
        (RequestKind::Other, "304 Not Modified\r\nContent-Length: 10"),
        (RequestKind::Other, "304 Not Modified\r\nTransfer-Encoding: chunked"),
        (RequestKind::Connect, "200 Connected\r\nContent-Length: 10"),
        (RequestKind::Connect, "299 Connected\r\nTransfer-Encoding: chunked"),
    ] {
        let response = check(kind, &format!("{head}\r\n\r\n10\r\n"), "", "10\r\n");
        assert!(response.keep_alive, "{head}");
    }
}

#[test]
fn tunnel_stays_open_whatever_its_head_says() {
    for head in ["HTTP/1.0 200 Connection established", "HTTP/1.1 200 OK\r\nConnection: close"] {
        let seen = decode(RequestKind::Connect, format!("{head}\r\n\r\n\x16\x03").as_bytes());
        assert!(seen.response.unwrap().keep_alive, "{head}");
        assert_eq!(seen.rest, b"\x16\x03");
    }
}

#[test]
fn refused_tunnel_has_a_body() {
    check(RequestKind::Connect, "407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", "no", "");
}

#[test]
fn body_without_a_length_lasts_until_close() {
    for head in [
        "200 OK",
        "200 OK\r\nConnection: keep-alive",
        "200 OK\r\nTransfer-Encoding: gzip",
        "200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1",
        "200 OK\r\nTransfer-Encoding: chunked, gzip",
        "200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
        "200 OK\r\nTransfer-Encoding: x;a=\", chunked\"",
        "200 OK\r\nTransfer-Encoding:",
    ] {
        let response = check(RequestKind::Other, &format!("{head}\r\n\r\nall of it"), "all of it", "");
        assert!(!response.keep_alive, "{head}");
        check(RequestKind::Other, &format!("{head}\r\n\r\n"), "", "");
    }
}

#[test]
fn chunked_is_recognised_last_in_the_list() {
    for field in [
        "Transfer-Encoding: chunked",
        "transfer-encoding:CHUNKED",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: gzip;q=\"a,\\\"b\", ,chunked ,",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: nonsense",
    ] {
        let response = check(
            RequestKind::Other,
            &format!("200 OK\r\n{field}\r\n\r\n2\r\nhi\r\n0\r\n\r\nrest"),
            "hi",
            "rest",
        );
        assert!(response.keep_alive, "{field}");
    }
}

#[test]
fn chunks_are_joined() {
    for (chunks, body) in [
        ("0\r\n\r\n", ""),
        ("1\r\na\r\n0000\r\n\r\n", "a"),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
        ("0003;name\r\nabc\r\n0;last=\"yes;\t\u{e9}\"\r\n\r\n", "abc"),
        ("2 \t\r\n\r\n\r\n0 ; x\r\n\r\n", "\r\n"),
        ("0000000000000000000000000000000001\r\nx\r\n0\r\n\r\n", "x"),
    ] {
        check(
            RequestKind::Other,
            &format!("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}+"),
            body,
            "+",
        );
    }
}

#[test]
fn trailers_are_kept_apart_and_change_nothing() {
    let seen = decode(
        RequestKind::Other,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nDigest: x\r\n y\nConnection: close\r\nContent-Length: 7\r\n\r\nrest",
    );
    assert_eq!(seen.fields.len(), 1);
    let names: Vec<&str> = seen.trailers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Digest", "Connection", "Content-Length"]);
    assert_eq!(seen.trailers[0].1, "x   y");
    assert!(seen.response.unwrap().keep_alive);
    assert_eq!(seen.rest, b"rest");
}

#[test]
fn skipped_bytes_count_as_body() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.skippable_bytes(), 0);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxy";
    decoder.decode(&mut HeadCache::default(), head, &mut ()).unwrap();
    assert_eq!(decoder.skippable_bytes(), 998);
    assert_eq!(decoder.skip(997), None);
    assert_eq!(decoder.skippable_bytes(), 1);
    let response = decoder.skip(1).unwrap();
    assert_eq!((response.status, response.body_bytes, response.keep_alive), (200, 1000, true));
    assert_eq!(decoder.skippable_bytes(), 0);
}

#[test]
fn pipelined_responses_are_decoded_one_by_one() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let mut rest = input.as_slice();
    let (mut decoder, mut cache) = (Decoder::new(), HeadCache::default());
    for (kind, status, body_bytes) in
        [(RequestKind::Other, 200, 3), (RequestKind::Head, 200, 0), (RequestKind::Other, 404, 0)]
    {
        decoder.begin(kind);
        let progress = decoder.decode(&mut cache, rest, &mut ()).unwrap();
        let response = progress.response.unwrap();
        assert_eq!((response.status, response.body_bytes), (status, body_bytes));
        rest = &rest[progress.consumed..];
    }
    assert_eq!(rest, b"");
}

#[test]
fn nothing_is_consumed_after_a_whole_response() {
    let (mut decoder, mut cache) = (Decoder::new(), HeadCache::default());
    let whole = b"HTTP/1.1 204 No Content\r\n\r\n";
    assert!(decoder.decode(&mut cache, whole, &mut ()).unwrap().response.is_some());
    let progress = decoder.decode(&mut cache, whole, &mut ()).unwrap();
    assert_eq!((progress.consumed, progress.response), (0, None));
}
