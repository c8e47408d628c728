//! What is rejected, and the exact error that says why.

use squall_wire::h1::limits::{
    CHUNK_LINE_BYTES_MAX, INTERIM_RESPONSE_COUNT_MAX, RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADER_COUNT_MAX,
};
use squall_wire::h1::{DecodeError, DecodeErrorKind, Decoder, HeadCache, RequestKind};

use crate::harness::{decode, decode_error};

fn check_all(cases: &[(&str, DecodeError)]) {
    for (input, error) in cases {
        assert_eq!(&decode_error(RequestKind::Other, input.as_bytes()), error, "{input:?}");
    }
}

/// An error in the fields `fields` of a response.
fn check_fields(cases: &[(&str, DecodeError)]) {
    for (fields, error) in cases {
        let input = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        assert_eq!(&decode_error(RequestKind::Other, input.as_bytes()), error, "{fields:?}");
    }
}

/// An error in the chunked body `chunks`.
fn check_chunks(cases: &[(&str, DecodeError)]) {
    for (chunks, error) in cases {
        let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(&decode_error(RequestKind::Other, input.as_bytes()), error, "{chunks:?}");
    }
}

#[test]
fn what_is_not_http_is_reported_by_its_first_wrong_byte() {
    check_all(&[
        ("SSH-2.0-OpenSSH_9.2\r\n", DecodeError::NotHttp { index: 0, byte: b'S' }),
        ("\x15\x03\x03\0\x02\x02\x46", DecodeError::NotHttp { index: 0, byte: 0x15 }),
        ("http/1.1 200 OK\r\n\r\n", DecodeError::NotHttp { index: 0, byte: b'h' }),
        ("HTML", DecodeError::NotHttp { index: 2, byte: b'M' }),
        ("HTTP\n", DecodeError::NotHttp { index: 4, byte: b'\n' }),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", DecodeError::NotHttp { index: 0, byte: b'\r' }),
        ("ICY 200 OK\r\n\r\n", DecodeError::NotHttp { index: 0, byte: b'I' }),
    ]);
}

#[test]
fn malformed_status_lines_are_rejected() {
    check_all(&[
        ("HTTP/2.0 200 OK\r\n", DecodeError::VersionUnsupported { major: 2, minor: 0 }),
        ("HTTP/0.9 200 OK\r\n", DecodeError::VersionUnsupported { major: 0, minor: 9 }),
        ("HTTP/2 200\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1 200 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.10 200 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 \r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1  200 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1\t200 OK\r\n", DecodeError::StatusLineInvalid),
        (" HTTP/1.1 200 OK\r\n", DecodeError::NotHttp { index: 0, byte: b' ' }),
        ("HTTP/1.1 20 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 2000 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 -20 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 2x0 OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 200OK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 200\tOK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 200 O\0K\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 200 O\rK\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 200 OK\r\r\n", DecodeError::StatusLineInvalid),
        ("HTTP/1.1 099 OK\r\n", DecodeError::StatusOutOfRange { status: 99 }),
        ("HTTP/1.1 000 OK\r\n", DecodeError::StatusOutOfRange { status: 0 }),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", DecodeError::UpgradeUnasked),
    ]);
}

#[test]
fn malformed_fields_are_rejected() {
    check_fields(&[
        (" A: 1", DecodeError::WhitespaceBeforeFields),
        ("\tA: 1", DecodeError::WhitespaceBeforeFields),
        (" ", DecodeError::WhitespaceBeforeFields),
        ("A 1", DecodeError::FieldColonMissing { number: 1 }),
        ("A: 1\r\nnonsense\r\nB: 2", DecodeError::FieldColonMissing { number: 2 }),
        ("A : 1", DecodeError::FieldNameInvalid { number: 1, byte: b' ' }),
        ("A\t: 1", DecodeError::FieldNameInvalid { number: 1, byte: b'\t' }),
        (": 1", DecodeError::FieldNameInvalid { number: 1, byte: b':' }),
        ("\u{e9}: 1", DecodeError::FieldNameInvalid { number: 1, byte: 0xc3 }),
        ("A: 1\r\nA(B): 1", DecodeError::FieldNameInvalid { number: 2, byte: b'(' }),
        ("A\0B: 1", DecodeError::FieldNameInvalid { number: 1, byte: 0 }),
        ("A: 1\0", DecodeError::FieldValueInvalid { number: 1 }),
        ("A: 1\rB: 2", DecodeError::FieldValueInvalid { number: 1 }),
        ("A: 1\r", DecodeError::FieldValueInvalid { number: 1 }),
        ("A: 1\r\r\n 2", DecodeError::FieldValueInvalid { number: 1 }),
        ("A\r\n : 1", DecodeError::FieldNameInvalid { number: 1, byte: b' ' }),
    ]);
}

#[test]
fn faulty_framing_is_rejected() {
    check_fields(&[
        ("Content-Length: -1", DecodeError::ContentLengthInvalid),
        ("Content-Length: +1", DecodeError::ContentLengthInvalid),
        ("Content-Length:", DecodeError::ContentLengthInvalid),
        ("Content-Length: 0x10", DecodeError::ContentLengthInvalid),
        ("Content-Length: 1 2", DecodeError::ContentLengthInvalid),
        ("Content-Length: 1,", DecodeError::ContentLengthInvalid),
        ("Content-Length: 1.0", DecodeError::ContentLengthInvalid),
        ("Content-Length: 18446744073709551616", DecodeError::ContentLengthOverflow),
        ("Content-Length: 99999999999999999999999999", DecodeError::ContentLengthOverflow),
        ("Content-Length: 1, 2", DecodeError::ContentLengthConflict { first: 1, other: 2 }),
        ("Content-Length: 7\r\nContent-Length: 8", DecodeError::ContentLengthConflict { first: 7, other: 8 }),
        ("Content-Length: 7\r\nContent-Length: x", DecodeError::ContentLengthInvalid),
        ("Transfer-Encoding: chunked, chunked", DecodeError::TransferEncodingInvalid),
        ("Transfer-Encoding: chunked, gzip, chunked", DecodeError::TransferEncodingInvalid),
        ("Transfer-Encoding: chunked;a=b", DecodeError::TransferEncodingInvalid),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", DecodeError::TransferEncodingInvalid),
    ]);
    check_all(&[(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
        DecodeError::TransferEncodingInHttp10,
    )]);
}

#[test]
fn malformed_chunks_are_rejected() {
    check_chunks(&[
        ("\r\n", DecodeError::ChunkSizeInvalid { byte: b'\r' }),
        ("x\r\n", DecodeError::ChunkSizeInvalid { byte: b'x' }),
        ("-1\r\n", DecodeError::ChunkSizeInvalid { byte: b'-' }),
        ("0x1\r\n", DecodeError::ChunkSizeInvalid { byte: b'x' }),
        (" 1\r\n", DecodeError::ChunkSizeInvalid { byte: b' ' }),
        ("1 1\r\n", DecodeError::ChunkSizeInvalid { byte: b'1' }),
        (";a\r\n", DecodeError::ChunkSizeInvalid { byte: b';' }),
        ("10000000000000000\r\n", DecodeError::ChunkSizeOverflow),
        ("fffffffffffffffff\r\n", DecodeError::ChunkSizeOverflow),
        ("1\na\r\n", DecodeError::ChunkLineEndInvalid { byte: b'\n' }),
        ("1\ra", DecodeError::ChunkLineEndInvalid { byte: b'a' }),
        ("1;x\ry", DecodeError::ChunkLineEndInvalid { byte: b'y' }),
        ("1;x\ny", DecodeError::ChunkLineEndInvalid { byte: b'\n' }),
        ("1;\0", DecodeError::ChunkExtensionInvalid { byte: 0 }),
        ("1\r\nab\r\n", DecodeError::ChunkDataEndInvalid { byte: b'b' }),
        ("1\r\na\n", DecodeError::ChunkDataEndInvalid { byte: b'\n' }),
        ("1\r\na\r0", DecodeError::ChunkDataEndInvalid { byte: b'0' }),
        ("0\r\nA 1\r\n\r\n", DecodeError::FieldColonMissing { number: 1 }),
        ("0\r\n A: 1\r\n\r\n", DecodeError::WhitespaceBeforeFields),
        ("0\r\nA: 1\r\nB: \0\r\n\r\n", DecodeError::FieldValueInvalid { number: 2 }),
    ]);
}

#[test]
fn early_close_says_what_was_missing() {
    check_all(&[
        ("", DecodeError::ClosedBeforeResponse),
        ("H", DecodeError::ClosedInHead { bytes: 1 }),
        ("HTTP/1.1 200 OK\r\nA: 1\r\n", DecodeError::ClosedInHead { bytes: 23 }),
        ("HTTP/1.1 100 Continue\r\n\r\n", DecodeError::ClosedAfterInterim { interim_count: 1 }),
        ("HTTP/1.1 100 Continue\r\n\r\nHT", DecodeError::ClosedInHead { bytes: 2 }),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", DecodeError::ClosedInBody { bytes: 0, expected: 9 }),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            DecodeError::ClosedInBody { bytes: 3, expected: 9 },
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc",
            DecodeError::ClosedInBody { bytes: 3, expected: u64::MAX },
        ),
    ]);
    check_chunks(&[
        ("", DecodeError::ClosedInChunks { bytes: 0 }),
        ("5\r\nabc", DecodeError::ClosedInChunks { bytes: 3 }),
        ("ffffffffffffffff\r\nabc", DecodeError::ClosedInChunks { bytes: 3 }),
        ("3\r\nabc\r\n0\r", DecodeError::ClosedInChunks { bytes: 3 }),
        ("3\r\nabc\r\n0\r\n", DecodeError::ClosedInTrailers { bytes: 3 }),
        ("3\r\nabc\r\n0\r\nA: 1\r\n", DecodeError::ClosedInTrailers { bytes: 3 }),
    ]);
}

#[test]
fn endless_heads_stop_at_the_limit() {
    let error = DecodeError::HeadTooLarge { bytes_max: RESPONSE_HEAD_BYTES_MAX };
    let endless_line = format!("HTTP/1.1 200 {}", "x".repeat(RESPONSE_HEAD_BYTES_MAX));
    let endless_value = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(RESPONSE_HEAD_BYTES_MAX));
    let endless_fold = format!("HTTP/1.1 200 OK\r\nA: x{}", "\r\n x".repeat(RESPONSE_HEAD_BYTES_MAX / 4));
    let endless_trailer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: {}",
        "x".repeat(RESPONSE_HEAD_BYTES_MAX)
    );
    for input in [endless_line, endless_value, endless_fold, endless_trailer] {
        assert_eq!(decode_error(RequestKind::Other, input.as_bytes()), error);
    }
}

#[test]
fn largest_head_passes_and_one_byte_more_does_not() {
    let frame = "HTTP/1.1 204 OK\r\nA: \r\n\r\n".len();
    let head = |bytes: usize| format!("HTTP/1.1 204 OK\r\nA: {}\r\n\r\n", "x".repeat(bytes - frame));
    assert!(decode(RequestKind::Other, head(RESPONSE_HEAD_BYTES_MAX).as_bytes()).response.is_some());
    let error = decode_error(RequestKind::Other, head(RESPONSE_HEAD_BYTES_MAX + 1).as_bytes());
    assert_eq!(error, DecodeError::HeadTooLarge { bytes_max: RESPONSE_HEAD_BYTES_MAX });
}

#[test]
fn field_count_is_limited() {
    let head = |count: usize| format!("HTTP/1.1 204 OK\r\n{}\r\n", "a:b\r\n".repeat(count));
    assert!(decode(RequestKind::Other, head(RESPONSE_HEADER_COUNT_MAX).as_bytes()).response.is_some());
    let error = decode_error(RequestKind::Other, head(RESPONSE_HEADER_COUNT_MAX + 1).as_bytes());
    assert_eq!(error, DecodeError::TooManyFields { count_max: RESPONSE_HEADER_COUNT_MAX });
}

#[test]
fn interim_responses_are_limited() {
    let most = INTERIM_RESPONSE_COUNT_MAX as usize;
    let input = |count: usize| "HTTP/1.1 102 x\r\n\r\n".repeat(count) + "HTTP/1.1 204 x\r\n\r\n";
    let response = decode(RequestKind::Other, input(most).as_bytes()).response.unwrap();
    assert_eq!(response.interim_count, INTERIM_RESPONSE_COUNT_MAX);
    let error = decode_error(RequestKind::Other, input(most + 1).as_bytes());
    assert_eq!(error, DecodeError::TooManyInterim { count_max: INTERIM_RESPONSE_COUNT_MAX });
}

#[test]
fn chunk_lines_are_limited() {
    let line = |bytes: usize| format!("1;{}\r\n", "x".repeat(bytes - "1;\r\n".len()));
    let input = |bytes: usize| {
        let line = line(bytes);
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{line}a\r\n{line}b\r\n0\r\n\r\n")
    };
    assert_eq!(decode(RequestKind::Other, input(CHUNK_LINE_BYTES_MAX).as_bytes()).body, b"ab");
    let error = decode_error(RequestKind::Other, input(CHUNK_LINE_BYTES_MAX + 1).as_bytes());
    assert_eq!(error, DecodeError::ChunkLineTooLong { bytes_max: CHUNK_LINE_BYTES_MAX });
}

#[test]
fn nothing_is_decoded_after_an_error() {
    for pieces in [
        ["SSH-", "2.0"],
        ["HTTP/1.1 200 OK\r\nnonsense\r", "\n\r\n"],
        ["HTTP/1.1 200 OK\r\nContent-Length: -", "1\r\n\r\n"],
    ] {
        let (mut decoder, mut cache) = (Decoder::new(), HeadCache::default());
        let results = pieces.map(|piece| decoder.decode(&mut cache, piece.as_bytes(), &mut ()));
        assert!(results.iter().any(Result::is_err), "{pieces:?}");
        assert!(!decoder.is_idle());
        let progress = decoder.decode(&mut cache, b"HTTP/1.1 204 No Content\r\n\r\n", &mut ()).unwrap();
        assert_eq!((progress.consumed, progress.response), (0, None));
    }
}

#[test]
fn errors_have_the_kind_they_are_counted_by() {
    for (error, kind) in [
        (DecodeError::StatusLineInvalid, DecodeErrorKind::Protocol),
        (DecodeError::TooManyInterim { count_max: 1 }, DecodeErrorKind::Protocol),
        (DecodeError::HeadTooLarge { bytes_max: 1 }, DecodeErrorKind::HeadTooLarge),
        (DecodeError::TooManyFields { count_max: 1 }, DecodeErrorKind::HeadTooLarge),
        (DecodeError::ClosedBeforeResponse, DecodeErrorKind::Closed),
        (DecodeError::ClosedInTrailers { bytes: 1 }, DecodeErrorKind::Closed),
    ] {
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn errors_read_as_sentences() {
    let error = DecodeError::ClosedInBody { bytes: 3, expected: 9 };
    assert_eq!(error.to_string(), "server closed the connection after 3 of 9 body bytes");
    let error = DecodeError::NotHttp { index: 0, byte: b'S' };
    assert_eq!(error.to_string(), "response does not begin with \"HTTP/\": byte 0 is 0x53");
    let alert = DecodeError::NotHttp { index: 0, byte: 0x15 };
    assert_eq!(
        alert.to_string(),
        "the server answered with a TLS alert: the port uses TLS, so the URL needs https"
    );
}
