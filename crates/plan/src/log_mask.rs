//! Hides secrets in text that is made of anything: lines of logs, values of samples.
//!
//! Owns: where in a text a secret can be recognised. Never: which names carry secrets; that is `secret`'s. A secret on its own, without a
//! name or a URL around it, is not recognised.

use std::borrow::Cow;
use std::ops::Range;

use crate::mask::MASK;
use crate::secret::{Secrecy, is_secret_name, looks_random};

/// The text without user information and secret parameters of URLs, and without the values of secret header fields.
pub fn masked_line(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'=' | b':')) {
        return Cow::Borrowed(text);
    }
    let mut masked = String::new();
    let mut shown = 0;
    for (at, byte) in text.bytes().enumerate() {
        let secret = match byte {
            _ if at < shown => None,
            b'=' => parameter(text, at),
            b':' if text[at..].starts_with("://") => user_information(text, at + 3),
            b':' => field(text, at),
            _ => None,
        };
        if let Some(secret) = secret {
            masked.push_str(&text[shown..secret.start]);
            masked.push_str(MASK);
            shown = secret.end;
        }
    }
    if shown == 0 { Cow::Borrowed(text) } else { Cow::Owned(masked + &text[shown..]) }
}

/// What comes before the `@` of a URL whose authority begins there: `user:password`, or a token.
fn user_information(text: &str, begin: usize) -> Option<Range<usize>> {
    let end = end_of(text, begin, |byte| matches!(byte, b'/' | b'?' | b'#') || ends_url(byte));
    let user = &text[begin..begin + text[begin..end].rfind('@')?];
    // `****:****` is k6's, and stays.
    let is_masked = user.bytes().all(|byte| matches!(byte, b'*' | b':'));
    (!is_masked && (user.contains(':') || looks_random(user.as_bytes()))).then_some(begin..begin + user.len())
}

/// The value of a parameter in a query, a fragment or a form, by the place of its `=`.
fn parameter(text: &str, at: usize) -> Option<Range<usize>> {
    let begin = begin_of(text, at, |byte| byte.is_ascii_alphanumeric() || b"_-.[]%$".contains(&byte));
    let is_parameter = begin > 0 && matches!(text.as_bytes()[begin - 1], b'?' | b'&' | b'#');
    let value = at + 1..end_of(text, at + 1, |byte| matches!(byte, b'&' | b'#') || ends_url(byte));
    let name = &text[begin..at];
    let is_secret =
        || is_secret_name(name) || Secrecy::of_parameter(name).covers(&text.as_bytes()[value.clone()]);
    (is_parameter && !value.is_empty() && is_secret()).then_some(value)
}

/// The value of a header field, by the place of its colon: up to the end of its quotes, or of the line.
fn field(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name_end = if at > 0 && bytes[at - 1] == b'"' { at - 1 } else { at };
    let begin = begin_of(text, name_end, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let name = &text[begin..name_end];
    // `token: 3 left` is a sentence, or what a script wants to see.
    let is_header = name.contains('-') || HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !is_header || !is_secret_name(name) {
        return None;
    }
    let value = end_of(text, at + 1, |byte| !matches!(byte, b' ' | b'[' | b'"'));
    let is_quoted = text[at + 1..value].contains('"');
    let end = end_of(text, value, |byte| matches!(byte, b'\n' | b'\r') || is_quoted && byte == b'"');
    (value < end).then_some(value..end)
}

/// Where the bytes that end at `end` and are all of a kind begin.
fn begin_of(text: &str, end: usize, is_part: impl Fn(u8) -> bool) -> usize {
    text.as_bytes()[..end].iter().rposition(|byte| !is_part(*byte)).map_or(0, |before| before + 1)
}

/// Where from `begin` on the first byte of a kind is, or the end.
fn end_of(text: &str, begin: usize, ends: impl Fn(u8) -> bool) -> usize {
    text.as_bytes()[begin..].iter().position(|byte| ends(*byte)).map_or(text.len(), |count| begin + count)
}

/// What no URL has, and what is around one in a text.
fn ends_url(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// Header fields of one word; the others have a hyphen.
const HEADERS: &[&str] = &["authorization", "cookie"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_what_the_list_names_in_urls_and_header_fields() {
        for (text, masked) in [
            ("GET http://x/?token=abc&q=2 200", "GET http://x/?token=***&q=2 200"),
            ("\"http://x/?q=2&sig=a%2Fb\", next", "\"http://x/?q=2&sig=***\", next"),
            ("http://x/cb#access_token=abc&state=on", "http://x/cb#access_token=***&state=on"),
            ("/cb?code=4f9Xa82bQ1&lang=en", "/cb?code=***&lang=en"),
            ("/list?code=us&page=2", "/list?code=us&page=2"),
            ("at http://u:p@x/a, then http://v:q@y/", "at http://***@x/a, then http://***@y/"),
            ("https://ghp4x8Kq1Zz0@git/", "https://***@git/"),
            ("http://me@x/", "http://me@x/"),
            ("Authorization: Bearer abc\nnext", "Authorization: ***\nnext"),
            (r#"{"Authorization":"Bearer a b","q":1}"#, r#"{"Authorization":"***","q":1}"#),
            (r#"{ X-Api-Key: "a1", n: 1 }"#, r#"{ X-Api-Key: "***", n: 1 }"#),
            (r#""Set-Cookie":["sid=1; Path=/"]"#, r#""Set-Cookie":["***"]"#),
            ("pass=1 token=2 x=3", "pass=1 token=2 x=3"),
            ("token: 3 left", "token: 3 left"),
            ("é?pass=ü&x=ö é", "é?pass=***&x=ö é"),
            ("a://@:=?=&", "a://@:=?=&"),
            ("Cookie:", "Cookie:"),
        ] {
            assert_eq!(masked_line(text), masked, "{text}");
            assert_eq!(masked_line(masked), masked, "masked twice: {text}");
        }
    }
}
