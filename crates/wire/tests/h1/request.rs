//! What is sent, and what is never sent.

use squall_wire::h1::limits::REQUEST_HEAD_BYTES_MAX;
use squall_wire::h1::{EncodeError, RequestHead, encode_head};

const GET: RequestHead<'static> =
    RequestHead { method: "GET", target: "/", host: Some("h"), headers: &[], content_length: None };

fn check(head: &RequestHead<'_>, expected: &str) {
    let mut out = b"before".to_vec();
    encode_head(head, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}"));
}

fn check_error(head: &RequestHead<'_>, expected: &EncodeError) {
    let mut out = b"before".to_vec();
    assert_eq!(&encode_head(head, &mut out).unwrap_err(), expected);
    assert_eq!(out, b"before");
}

#[test]
fn host_comes_first_and_content_length_last() {
    let head =
        RequestHead { method: "POST", headers: &[("A", "1"), ("B", "")], content_length: Some(5), ..GET };
    check(&head, "POST / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: \r\nContent-Length: 5\r\n\r\n");
}

#[test]
fn every_form_of_target_is_sent_as_it_is() {
    for target in ["/a?b=c&d", "http://h:80/a", "h:443", "*", "/%00%0d%0a", "/a//../b"] {
        check(&RequestHead { target, ..GET }, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
}

#[test]
fn own_fields_replace_the_made_ones() {
    let head = RequestHead {
        headers: &[("hOST", "other"), ("content-length", "9")],
        content_length: Some(5),
        ..GET
    };
    check(&head, "GET / HTTP/1.1\r\nhOST: other\r\ncontent-length: 9\r\n\r\n");
    let head = RequestHead { headers: &[("Transfer-Encoding", "chunked")], content_length: Some(5), ..GET };
    check(&head, "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    check(&RequestHead { host: None, ..GET }, "GET / HTTP/1.1\r\n\r\n");
}

#[test]
fn values_may_hold_tabs_and_text_beyond_ascii() {
    let head = RequestHead { headers: &[("A", "\ttab caf\u{e9} ")], ..GET };
    check(&head, "GET / HTTP/1.1\r\nHost: h\r\nA: \ttab caf\u{e9} \r\n\r\n");
}

#[test]
fn methods_are_tokens() {
    for method in ["", "GET ", "G ET", "GET\r\n", "G\u{c9}T", "GET:"] {
        check_error(
            &RequestHead { method, ..GET },
            &EncodeError::MethodInvalid { method: method.to_owned() },
        );
    }
    check(&RequestHead { method: "m-search!", ..GET }, "m-search! / HTTP/1.1\r\nHost: h\r\n\r\n");
}

#[test]
fn targets_and_hosts_hold_visible_ascii_only() {
    check_error(&RequestHead { target: "", ..GET }, &EncodeError::TargetMissing);
    for (text, index, byte) in [
        ("/a b", 2, b' '),
        ("/\r\nX: y", 1, b'\r'),
        ("/\n", 1, b'\n'),
        ("/\0", 1, 0),
        ("/\u{e9}", 1, 0xc3),
        ("/\x7f", 1, 0x7f),
    ] {
        check_error(&RequestHead { target: text, ..GET }, &EncodeError::TargetInvalid { index, byte });
        check_error(&RequestHead { host: Some(text), ..GET }, &EncodeError::HostInvalid { index, byte });
    }
}

#[test]
fn fields_cannot_smuggle_lines() {
    for name in ["", "A ", "A:", "A\r\nB", "\u{e9}"] {
        let headers = &[("Fine", "1"), (name, "1")];
        check_error(
            &RequestHead { headers, ..GET },
            &EncodeError::FieldNameInvalid { name: name.to_owned() },
        );
    }
    for (value, index, byte) in
        [("a\r\nB: c", 1, b'\r'), ("\n", 0, b'\n'), ("ab\0", 2, 0), ("\x1b[", 0, 0x1b)]
    {
        let error = EncodeError::FieldValueInvalid { name: "A".to_owned(), index, byte };
        check_error(&RequestHead { headers: &[("A", value)], ..GET }, &error);
    }
}

#[test]
fn errors_do_not_repeat_values() {
    let error =
        encode_head(&RequestHead { headers: &[("Cookie", "secret\n")], ..GET }, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "byte 0x0a in the value of header \"Cookie\", at index 6");
}

#[test]
fn request_head_is_limited() {
    let frame = "GET  HTTP/1.1\r\nHost: h\r\n\r\n".len();
    let target = "/".repeat(REQUEST_HEAD_BYTES_MAX - frame);
    encode_head(&RequestHead { target: &target, ..GET }, &mut Vec::new()).unwrap();
    let error =
        EncodeError::HeadTooLarge { bytes: REQUEST_HEAD_BYTES_MAX + 1, bytes_max: REQUEST_HEAD_BYTES_MAX };
    check_error(&RequestHead { target: &format!("{target}/"), ..GET }, &error);
}
