//! The secrets that were found, and every other occurrence of them, however it is encoded.
//!
//! Owns: the key of the placeholders, and the values in bounded memory. Never: decides what is a secret.
//!
//! A value is looked for by four of its letters or digits, which no encoding changes; around them the text is compared with the value
//! byte by byte, and an escape counts as the byte that it stands for. So one entry finds `a+b` as `a+b`, `a%2Bb`, `a%252Bb`, `a\u002Bb`
//! and `a&#x2B;b`. What a client sent is also found within Base64, whose letters depend on where in it the secret begins: in three ways.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What replaces a secret begins so, and 16 hexadecimal digits follow; and `=`, where encoding changes the secret: a cookie and the
/// header that repeats it decoded are distinguished by how that is written.
pub const PLACEHOLDER: &str = "redacted-";

/// What replaces a number of JSON begins so.
pub const REDACTED_NUMBER: &str = "redacted-number-";

/// The secrets of one recording.
#[derive(Debug, Default)]
pub(super) struct Values {
    key: RandomState,
    recent: Generation,
    older: Generation,
}

/// Values that were found in the same stretch of the recording.
#[derive(Debug, Default)]
struct Generation {
    by_anchor: HashMap<[u8; ANCHOR_BYTES], Vec<Value>>,
    /// A bit for each hash of an anchor that is there: most of a text is passed over without a look into the table.
    filter: Option<Box<Filter>>,
    /// Hashes of the values.
    known: HashSet<u64>,
}

#[derive(Debug)]
struct Value {
    bytes: Box<[u8]>,
    anchor_at: usize,
    /// Its letters go on in what stands around it, as those of Base64 do.
    is_part: bool,
}

impl Values {
    /// The placeholder of a secret. A JSON web token keeps its header and claims, which it needs to be signed again, and loses its signature.
    pub(super) fn placeholder(&self, secret: &[u8]) -> String {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let mark = if secret.iter().all(is_plain) { "" } else { "=" };
        let hidden = format!("{PLACEHOLDER}{:016x}{mark}", self.key.hash_one(secret));
        match claims_of(secret) {
            Some(claims) => format!("{claims}.{hidden}"),
            None => hidden,
        }
    }

    /// Remembers a secret, so that it is replaced wherever it occurs.
    pub(super) fn remember(&mut self, secret: &[u8]) {
        self.add(secret, false);
    }

    /// As [`remember`](Self::remember), for what a client sends: it may come again within Base64.
    pub(super) fn remember_sent(&mut self, secret: &[u8]) {
        self.remember(secret);
        base64_parts(secret).iter().for_each(|part| self.add(part.as_bytes(), true));
    }

    fn add(&mut self, secret: &[u8], is_part: bool) {
        let key = self.key.hash_one(secret);
        // One of the older generation comes again: it is in use.
        if secret.len() > VALUE_BYTES_MAX || self.recent.known.contains(&key) {
            return;
        }
        if self.recent.known.len() >= VALUE_COUNT_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.add(secret, key, is_part);
    }

    /// The text with its secrets replaced; `None` where it has none.
    pub(super) fn sweep(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.sweep_window(text, text.len(), 0).0
    }

    /// The same for a part of a text: looks for secrets up to `end`, and leaves the last `kept` bytes before it for the next part. With
    /// how many bytes of the text are done.
    pub(super) fn sweep_window(&self, text: &[u8], end: usize, kept: usize) -> (Option<Vec<u8>>, usize) {
        let mut out: Option<Vec<u8>> = None;
        let (mut from, mut at) = (0, 0);
        while let Some(candidate) = self.candidate(text, at, end) {
            at = candidate;
            let Some(anchor) = text[at..].first_chunk::<ANCHOR_BYTES>() else { break };
            let found = [&self.recent, &self.older]
                .into_iter()
                .filter_map(|one| one.find(text, at, from, anchor))
                .max_by_key(|(begin, end, _)| end - begin);
            let Some((begin, end, value)) = found else {
                at += 1;
                continue;
            };
            let out = out.get_or_insert_default();
            out.extend_from_slice(&text[from..begin]);
            out.extend_from_slice(
                written_like(&self.placeholder(&value.bytes), &text[begin..end]).as_bytes(),
            );
            (from, at) = (end, end);
        }
        let done = from.max(end - kept);
        if let Some(out) = &mut out {
            out.extend_from_slice(&text[from..done]);
        }
        (out, done)
    }

    /// The next place, from `at` and before `end`, where an anchor may stand: most bytes of a text are passed over in this loop.
    fn candidate(&self, text: &[u8], at: usize, end: usize) -> Option<usize> {
        let end = end.min(text.len().saturating_sub(ANCHOR_BYTES - 1));
        let (recent, older) = (self.recent.filter(), self.older.filter());
        let mut anchors = text.get(at..end + ANCHOR_BYTES - 1)?.windows(ANCHOR_BYTES);
        let is_there = |anchor: &[u8]| {
            let bit = hash([anchor[0], anchor[1], anchor[2], anchor[3]]);
            let bits =
                recent.map_or(0, |filter| filter[bit / 64]) | older.map_or(0, |filter| filter[bit / 64]);
            bits >> (bit % 64) & 1 == 1
        };
        let is_empty = recent.is_none() && older.is_none();
        if is_empty { None } else { anchors.position(is_there).map(|nth| at + nth) }
    }
}

/// The placeholder of a secret that was written so.
fn written_like(placeholder: &str, written: &[u8]) -> String {
    let mark = match () {
        () if memchr::memmem::find(written, b"%25").is_some() => "%253D",
        () if written.contains(&b'%') => "%3D",
        () => "=",
    };
    placeholder.replace('=', mark)
}

impl Generation {
    fn add(&mut self, secret: &[u8], key: u64, is_part: bool) {
        // The anchor that the fewest values have: `Passw0rd-1`, `Passw0rd-2` and so on must not share one.
        let count = |anchor: &[u8; ANCHOR_BYTES]| self.by_anchor.get(anchor).map_or(0, Vec::len);
        let tried = anchors_of(secret).take(ANCHORS_TRIED_MAX);
        let Some((anchor_at, anchor)) = tried.min_by_key(|(_, anchor)| count(anchor)) else { return };
        let bit = hash(anchor);
        let filter = self.filter.get_or_insert_with(|| Box::new([0; FILTER_BITS / 64]));
        filter[bit / 64] |= 1 << (bit % 64);
        self.by_anchor.entry(anchor).or_default().push(Value { bytes: secret.into(), anchor_at, is_part });
        self.known.insert(key);
    }

    fn filter(&self) -> Option<&Filter> {
        self.filter.as_deref()
    }

    /// The longest value whose anchor is at `at` and that begins at `from` or later: its begin and end in the text.
    fn find(
        &self,
        text: &[u8],
        at: usize,
        from: usize,
        anchor: &[u8; ANCHOR_BYTES],
    ) -> Option<(usize, usize, &Value)> {
        let found = self.by_anchor.get(anchor)?.iter().filter_map(|value| {
            let begin = backward(text, at, &value.bytes[..value.anchor_at])?;
            let end = forward(text, at, &value.bytes[value.anchor_at..])?;
            let is_alone = value.is_part || value.bytes.len() >= LONG_BYTES || stands_alone(text, begin, end);
            (begin >= from && is_alone).then_some((begin, end, value))
        });
        found.max_by_key(|(begin, end, _)| end - begin)
    }
}

/// The letters of Base64 that a secret alone decides, for each place at which it can begin in a group of three bytes, and in both alphabets.
fn base64_parts(secret: &[u8]) -> Vec<String> {
    if secret.len() > BASE64_BYTES_MAX {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for (offset, letters_before) in [(0, 0), (1, 2), (2, 3)] {
        let text = STANDARD_NO_PAD.encode([&[0; 2][..offset], secret].concat());
        let end = (offset + secret.len()) * 8 / 6;
        let Some(part) = text.get(letters_before..end).filter(|part| part.len() >= PART_LETTERS_MIN) else {
            continue;
        };
        let url_safe = part.replace('+', "-").replace('/', "_");
        parts.extend((url_safe != part).then_some(url_safe));
        parts.push(part.to_owned());
    }
    parts
}

/// Where an anchor may be: letters and digits alone, which nothing escapes. The last come first, because values often begin alike.
fn anchors_of(secret: &[u8]) -> impl Iterator<Item = (usize, [u8; ANCHOR_BYTES])> {
    let anchors = secret.windows(ANCHOR_BYTES).enumerate().rev();
    anchors.filter_map(|(at, anchor)| {
        let anchor: [u8; ANCHOR_BYTES] = anchor.try_into().ok()?;
        anchor.iter().all(u8::is_ascii_alphanumeric).then_some((at, anchor))
    })
}

fn hash(anchor: [u8; ANCHOR_BYTES]) -> usize {
    (u32::from_le_bytes(anchor).wrapping_mul(0x9E37_79B9) >> 16) as usize % FILTER_BITS
}

/// Where a value that begins at `at` ends.
fn forward(text: &[u8], mut at: usize, value: &[u8]) -> Option<usize> {
    for byte in value {
        at += width(text.get(at..)?, *byte)?;
    }
    Some(at)
}

/// Where a value that ends at `at` begins. An escape wins over its last byte.
fn backward(text: &[u8], mut at: usize, value: &[u8]) -> Option<usize> {
    for byte in value.iter().rev() {
        let is_width = |count: &usize| {
            at.checked_sub(*count).is_some_and(|begin| width(&text[begin..at], *byte) == Some(*count))
        };
        at -= (1..=ESCAPE_BYTES_MAX).rev().find(is_width)?;
    }
    Some(at)
}

/// Bytes of the text in which `byte` is written: itself, or an escape of it.
fn width(text: &[u8], byte: u8) -> Option<usize> {
    let first = *text.first()?;
    let escaped = match first {
        _ if byte.is_ascii_alphanumeric() => None,
        b'%' => percent(text, byte),
        b'\\' => backslash(text, byte),
        b'&' => entity(text, byte),
        b'+' if byte == b' ' => Some(1),
        _ => None,
    };
    escaped.or_else(|| (first == byte).then_some(1))
}

/// `%2B`, and `%252B` of what was encoded twice.
fn percent(text: &[u8], byte: u8) -> Option<usize> {
    let is_it = |digits: Option<&[u8]>| digits.and_then(hex) == Some(u32::from(byte));
    match () {
        () if is_it(text.get(1..3)) => Some(3),
        () if text.get(1..3) == Some(b"25") && is_it(text.get(3..5)) => Some(5),
        () => None,
    }
}

/// `\/`, `\"`, `\u002B`, `\x2B`
fn backslash(text: &[u8], byte: u8) -> Option<usize> {
    let is_it = |digits: Option<&[u8]>| digits.and_then(hex) == Some(u32::from(byte));
    match text.get(1)? {
        b'u' if is_it(text.get(2..6)) => Some(6),
        b'x' if is_it(text.get(2..4)) => Some(4),
        second if *second == byte && !byte.is_ascii_alphanumeric() => Some(2),
        _ => None,
    }
}

/// `&amp;`, `&#43;`, `&#x2B;`
fn entity(text: &[u8], byte: u8) -> Option<usize> {
    let end = memchr::memchr(b';', &text[..text.len().min(ESCAPE_BYTES_MAX)])?;
    let decoded = match &text[1..end] {
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        [b'#', b'x' | b'X', digits @ ..] => hex(digits)?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        _ => return None,
    };
    (decoded == u32::from(byte)).then_some(end + 1)
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|_| is_hex)
}

/// Not a part of a longer word: `hunter2` in `pass=hunter2`, not in `hunter22`.
fn stands_alone(text: &[u8], begin: usize, end: usize) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let before = &text[..begin];
    let is_escape = |bytes: usize, mark: &[u8]| {
        before.len().checked_sub(bytes).is_some_and(|at| {
            before[at..].starts_with(mark) && before[at + mark.len()..].iter().all(u8::is_ascii_hexdigit)
        })
    };
    let ends_escape =
        is_escape(3, b"%") || is_escape(6, b"\\u") || before.len() >= 2 && before[before.len() - 2] == b'\\';
    (ends_escape || !is_part(before.last())) && !is_part(text.get(end))
}

/// Header and claims of a JSON web token; `None` where it is none.
fn claims_of(secret: &[u8]) -> Option<&str> {
    let (claims, _) = std::str::from_utf8(secret).ok()?.rsplit_once('.')?;
    let (header, body) = claims.split_once('.')?;
    let is_object = |part: &str| URL_SAFE_NO_PAD.decode(part).is_ok_and(|json| json.starts_with(b"{"));
    (is_object(header) && is_object(body)).then_some(claims)
}

/// Letters or digits by which a value is looked for.
const ANCHOR_BYTES: usize = 4;

/// Anchors of a value that are compared.
const ANCHORS_TRIED_MAX: usize = 32;

/// The longest escape: `&#x002B;`
const ESCAPE_BYTES_MAX: usize = 8;

/// A value this long is no accident within a longer text.
const LONG_BYTES: usize = 16;

/// A longer secret is no password or key that a client puts into Base64.
const BASE64_BYTES_MAX: usize = 256;

/// Fewer letters of Base64 could be an accident.
const PART_LETTERS_MIN: usize = 8;

const FILTER_BITS: usize = 1 << 16;

type Filter = [u64; FILTER_BITS / 64];

/// Longest value that is looked for: a large JWT.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Values of a generation; there are two, so that what was found lately is never forgotten.
const VALUE_COUNT_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_however_it_is_encoded() {
        let mut values = Values::default();
        for secret in ["toke/n+1=", "hunter2", "p ss\"word&<é>", "AbCdEfGhIjKlMnOpQrSt"] {
            values.remember(secret.as_bytes());
        }
        let of = |secret: &str| values.placeholder(secret.as_bytes());
        let (token, pass, odd, long) =
            (of("toke/n+1="), of("hunter2"), of("p ss\"word&<é>"), of("AbCdEfGhIjKlMnOpQrSt"));
        let (once, twice) = (token.replace('=', "%3D"), token.replace('=', "%253D"));
        for (text, expected) in [
            ("t=toke/n+1=&x", format!("t={token}&x")),
            ("t=toke%2Fn%2B1%3D&x", format!("t={once}&x")),
            ("t=toke%2fn%2b1%3d", format!("t={once}")),
            ("u=a%3Ft%3Dtoke%252Fn%252B1%253D", format!("u=a%3Ft%3D{twice}")),
            (r#""toke\/n\u002B1\u003d""#, format!("\"{token}\"")),
            ("value='toke&#x2F;n&#43;1&#x3D;'", format!("value='{token}'")),
            ("%2Fhunter2%2F", format!("%2F{pass}%2F")),
            (r#"{"a":"\nhunter2"}"#, format!(r#"{{"a":"\n{pass}"}}"#)),
            ("p+ss%22word%26%3C%C3%A9%3E", odd.replace('=', "%3D")),
            (r#""p ss\"word\u0026\u003Cé\u003E""#, format!("\"{odd}\"")),
            ("p ss&quot;word&amp;&lt;é&gt;", odd.clone()),
            ("xAbCdEfGhIjKlMnOpQrStx", format!("x{long}x")),
            ("hunter2hunter2 hunter2", format!("hunter2hunter2 {pass}")),
        ] {
            let swept = values.sweep(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(String::from_utf8(swept).unwrap(), expected, "{text}");
        }
        for text in ["", "hun", "hunter22", "1hunter2", "toke/n+2="] {
            assert_eq!(values.sweep(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_was_sent_is_found_within_base64() {
        let mut values = Values::default();
        let secret = "c0rrect h>rse?battery";
        values.remember_sent(secret.as_bytes());
        for before in ["", "u", "u:", "u::", "\u{1}"] {
            for after in ["", "!", "}}"] {
                let plain = format!("{before}{secret}{after}");
                for text in [STANDARD_NO_PAD.encode(&plain), URL_SAFE_NO_PAD.encode(&plain)] {
                    let swept =
                        values.sweep(format!("x={text}").as_bytes()).unwrap_or_else(|| panic!("{plain}"));
                    let swept = String::from_utf8(swept).unwrap();
                    let left = swept.len() - swept.find(PLACEHOLDER).unwrap_or_default();
                    assert!(
                        swept.contains(PLACEHOLDER) && left <= PLACEHOLDER.len() + 16 + 6,
                        "{plain}: {swept}"
                    );
                }
            }
        }
        assert_eq!(values.sweep(STANDARD_NO_PAD.encode("c0rrect, but another one").as_bytes()), None);
    }

    #[test]
    fn values_that_are_nearly_alike_have_anchors_of_their_own() {
        let mut values = Values::default();
        for nth in 0..10_000 {
            values.remember(format!("Passw0rd-{nth:05}-zq").as_bytes());
        }
        let longest = values.recent.by_anchor.values().map(Vec::len).max();
        assert!(longest.is_some_and(|count| count <= 10), "{longest:?} values share an anchor");
        assert!(values.sweep(b"x=Passw0rd-00000-zq").is_some());
    }

    #[test]
    fn old_values_are_forgotten_in_the_end() {
        let mut values = Values::default();
        for nth in 0..2 * VALUE_COUNT_MAX + 1 {
            values.remember(format!("value{nth:08}").as_bytes());
        }
        assert!(values.sweep(b"value00000000").is_none());
        assert!(values.sweep(format!("value{:08}", 2 * VALUE_COUNT_MAX).as_bytes()).is_some());
    }
}
