//! Encodes request heads made of arbitrary text: either it is refused and nothing is written, or `httparse` reads back exactly what
//! was asked for, so that no value can smuggle a line, a field or a second request.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use squall_wire::h1::{RequestHead, encode_head};

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    method: &'a str,
    target: &'a str,
    host: Option<&'a str>,
    headers: Vec<(&'a str, &'a str)>,
    content_length: Option<u64>,
}

fuzz_target!(|input: Input<'_>| {
    let head = RequestHead {
        method: input.method,
        target: input.target,
        host: input.host,
        headers: &input.headers,
        content_length: input.content_length,
    };
    let mut out = b"before".to_vec();
    if encode_head(&head, &mut out).is_err() {
        assert_eq!(out, b"before");
        return;
    }
    check_against_httparse(&head, &out[b"before".len()..]);
});

fn check_against_httparse(head: &RequestHead<'_>, encoded: &[u8]) {
    let mut headers = vec![httparse::EMPTY_HEADER; head.headers.len() + 2];
    let mut reference = httparse::Request::new(&mut headers);
    let parsed = reference.parse(encoded).expect("what was encoded can be parsed");
    assert_eq!(parsed, httparse::Status::Complete(encoded.len()));
    assert_eq!(reference.method, Some(head.method));
    assert_eq!(reference.path, Some(head.target));
    assert_eq!(reference.version, Some(1));
    let read: Vec<_> =
        reference.headers.iter().map(|it| (it.name.to_owned(), trim(it.value).to_vec())).collect();
    assert_eq!(read, expected_fields(head));
}

fn expected_fields(head: &RequestHead<'_>) -> Vec<(String, Vec<u8>)> {
    let has = |name: &str| head.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
    let host = head.host.filter(|_| !has("host")).map(|host| ("Host", host.to_owned()));
    let length = head
        .content_length
        .filter(|_| !has("content-length") && !has("transfer-encoding"))
        .map(|bytes| ("Content-Length", bytes.to_string()));
    host.into_iter()
        .chain(head.headers.iter().map(|(name, value)| (*name, (*value).to_owned())))
        .chain(length)
        .map(|(name, value)| (name.to_owned(), trim(value.as_bytes()).to_vec()))
        .collect()
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
