//! Bodies of any size, sent and received.

use hyper::{
    StatusCode,
    header::{ACCEPT_RANGES, CONTENT_RANGE, RANGE},
};
use serde_json::json;

use crate::{
    body::{Source, block},
    call::Call,
    limits::REPLY_BYTES_MAX,
    reply::{Refusal, Reply},
};

pub(super) fn bytes(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::new("application/octet-stream", noise(call)?))
}

pub(super) fn stream_bytes(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::new("application/octet-stream", noise(call)?.chunked()))
}

fn noise(call: &Call<'_>) -> Result<Source, Refusal> {
    let length = call.size(0, 0..=REPLY_BYTES_MAX)?;
    let seed = call.query_count("seed", 0, 0..=u64::MAX)?;
    Ok(Source::repeated(block(Some(seed)), 0, length))
}

pub(super) fn upload(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({ "bytes": call.body.length })))
}

/// The alphabet over and over. Of several ranges the first is answered, as RFC 9110 14.2 allows; ranges in other units
/// are ignored.
pub(super) fn range(call: &Call<'_>) -> Result<Reply, Refusal> {
    let length = call.size(0, 0..=REPLY_BYTES_MAX)?;
    let asked = call.header(RANGE).and_then(|text| text.strip_prefix("bytes="));
    match asked.map(|ranges| parse_range(ranges, length)) {
        None | Some(ByteRange::Malformed) => Ok(letters(0, length)),
        Some(ByteRange::Unsatisfiable) => {
            let reply = Reply::empty(StatusCode::RANGE_NOT_SATISFIABLE);
            reply.with_asked(CONTENT_RANGE, &format!("bytes */{length}"))
        }
        Some(ByteRange::Within { first, last }) => {
            let reply = letters(first, last - first + 1).with_status(StatusCode::PARTIAL_CONTENT);
            reply.with_asked(CONTENT_RANGE, &format!("bytes {first}-{last}/{length}"))
        }
    }
}

fn letters(from: u64, length: u64) -> Reply {
    let alphabets = ALPHABET.repeat(ALPHABET_COUNT).into();
    Reply::new("application/octet-stream", Source::repeated(alphabets, from, length))
        .with(ACCEPT_RANGES, "bytes")
}

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// Alphabets per block: about 16 KiB are copied per call, and then repeated without a copy.
const ALPHABET_COUNT: usize = 630;

#[derive(Debug, PartialEq, Eq)]
enum ByteRange {
    /// RFC 9110 14.2: such a header is ignored.
    Malformed,
    Unsatisfiable,
    Within {
        first: u64,
        last: u64,
    },
}

fn parse_range(ranges: &str, length: u64) -> ByteRange {
    let range = ranges.split(',').next().unwrap_or_default().trim();
    let Some((first, last)) = range.split_once('-') else { return ByteRange::Malformed };
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if last < first => ByteRange::Malformed,
        (Ok(first), Ok(last)) => within(first, last, length),
        (Ok(first), Err(_)) if last.is_empty() => within(first, u64::MAX, length),
        (Err(_), Ok(0)) if first.is_empty() => ByteRange::Unsatisfiable,
        (Err(_), Ok(count)) if first.is_empty() => within(length.saturating_sub(count), u64::MAX, length),
        _ => ByteRange::Malformed,
    }
}

fn within(first: u64, last: u64, length: u64) -> ByteRange {
    if first >= length {
        return ByteRange::Unsatisfiable;
    }
    ByteRange::Within { first, last: last.min(length - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_rfc_9110() {
        let within = |first, last| ByteRange::Within { first, last };
        let cases = [
            ("0-9", within(0, 9)),
            ("90-", within(90, 99)),
            ("-10", within(90, 99)),
            ("-1000", within(0, 99)),
            ("5-1000", within(5, 99)),
            ("1-2, 5-6", within(1, 2)),
            ("100-", ByteRange::Unsatisfiable),
            ("-0", ByteRange::Unsatisfiable),
            ("9-1", ByteRange::Malformed),
            ("a-b", ByteRange::Malformed),
            ("", ByteRange::Malformed),
            ("5", ByteRange::Malformed),
            ("-", ByteRange::Malformed),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_range(text, 100), expected, "{text}");
        }
        assert_eq!(parse_range("0-0", 0), ByteRange::Unsatisfiable);
    }
}
