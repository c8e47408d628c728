//! Texts found in a request by what they look like, and changed wherever they stand: target, header values, body.

use regex::bytes::Regex;

use crate::Request;

/// Replaces what `pattern` matches by what `change` makes of it; `None` leaves it.
pub(super) fn each(request: &mut Request, pattern: &Regex, change: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) {
    if let Some(target) = replaced(request.target.as_bytes(), pattern, change)
        && target.iter().all(|byte| *byte > b' ' && *byte < 0x7f)
    {
        request.target = String::from_utf8_lossy(&target).into_owned();
    }
    for field in &mut request.headers {
        if let Some(value) = replaced(&field.value, pattern, change) {
            field.value = value;
        }
    }
    if let Some(body) = replaced(&request.body, pattern, change) {
        request.body = body;
    }
}

/// The text with its changes; `None` where there are none.
fn replaced(
    text: &[u8],
    pattern: &Regex,
    change: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut from = 0;
    for found in pattern.find_iter(text) {
        if !stands_alone(text, found.range()) {
            continue;
        }
        if let Some(new) = change(found.as_bytes()) {
            let out = out.get_or_insert_default();
            out.extend_from_slice(&text[from..found.start()]);
            out.extend_from_slice(&new);
            from = found.end();
        }
    }
    let mut out = out?;
    out.extend_from_slice(&text[from..]);
    Some(out)
}

/// Not a part of a longer word or number.
fn stands_alone(text: &[u8], range: std::ops::Range<usize>) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let before = range.start.checked_sub(1).and_then(|at| text.get(at));
    // `%3A1700000000`: the digit before belongs to an escape.
    let is_escaped = range.start >= 3
        && text[range.start - 3] == b'%'
        && text[range.start - 2..range.start].iter().all(u8::is_ascii_hexdigit);
    (is_escaped || !is_word(before)) && !is_word(text.get(range.end))
}
