//! Finds secrets by their places: fields of heads, parameters of URLs and forms, parts of multipart bodies; `json` and `text` find those
//! of JSON and of everything else.
//!
//! Each function returns the text with its secrets replaced, or `None` where it has none.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use squall_plan::secret::{Secrecy, looks_random};

use super::rules::Rules;
use super::values::{PLACEHOLDER, REDACTED_NUMBER, Values};
use crate::{Field, multipart};

/// Looks through the parts of one message.
pub(super) struct Finder<'a> {
    pub(super) rules: &'a Rules,
    pub(super) values: &'a mut Values,
    /// What a client sends under the name of a secret is one; a server's texts mention secrets in many ways.
    pub(super) is_request: bool,
}

/// Parts of a text, and what replaces them.
pub(super) type Edits = Vec<(Range<usize>, String)>;

impl Finder<'_> {
    /// The placeholder of a value, where it is a secret; then it is remembered.
    pub(super) fn secret(&mut self, secrecy: Secrecy, value: &str) -> Option<String> {
        // What is nested in a URL is found separately.
        let is_url = secrecy < Secrecy::Any && value.contains("://");
        if is_url || is_redacted(value) || !secrecy.covers(value.as_bytes()) {
            return None;
        }
        if self.is_distinct(value) {
            match self.is_request {
                true => self.values.remember_sent(value.as_bytes()),
                false => self.values.remember(value.as_bytes()),
            }
        }
        Some(self.values.placeholder(value.as_bytes()))
    }

    /// Whether a value stands for itself alone, so that every occurrence of it is the secret.
    fn is_distinct(&self, value: &str) -> bool {
        let is_plain = value.bytes().all(|byte| byte.is_ascii_lowercase())
            || value.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
        match self.is_request {
            true if is_plain => value.len() >= 8 && Secrecy::of(value) == Secrecy::No,
            true => value.len() >= 6,
            false => looks_random(value.as_bytes()),
        }
    }

    /// The fields of a head; whether any was changed.
    pub(super) fn fields(&mut self, fields: &mut [Field]) {
        for field in fields {
            let text = String::from_utf8_lossy(&field.value);
            let name = field.name.to_ascii_lowercase();
            let redacted = match name.as_str() {
                "cookie" => self.cookies(&text),
                "set-cookie" => self.set_cookie(&text),
                "authorization" | "proxy-authorization" if !self.rules.keeps(&name) => {
                    self.credentials(&text)
                }
                "location" | "referer" | "content-location" | "refresh" | "link" => self.url(&text, 0),
                // These describe credentials, or where they may go.
                "www-authenticate" | "proxy-authenticate" | "content-security-policy" => None,
                name if name.starts_with("access-control-") => None,
                name => {
                    let secrecy = self.rules.secrecy(name, Secrecy::of(name));
                    self.secret(secrecy, &text).or_else(|| self.patterns_and_tokens(&text))
                }
            };
            if let Some(redacted) = redacted {
                field.value = redacted.into_bytes();
            }
        }
    }

    /// `Bearer x` keeps its scheme, `Token token="x"` its parameters' names.
    fn credentials(&mut self, text: &str) -> Option<String> {
        let Some((scheme, rest)) = text.split_once(' ') else { return self.secret(Secrecy::Any, text) };
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(Ok(pair)) = STANDARD.decode(rest).map(String::from_utf8)
            && let Some((_, password)) = pair.split_once(':')
        {
            self.secret(Secrecy::Any, password);
        }
        let by_names = rest.contains("=\"").then(|| self.text(rest, 0)).flatten();
        let redacted = by_names.or_else(|| self.secret(Secrecy::Any, rest))?;
        Some(format!("{scheme} {redacted}"))
    }

    /// Every cookie is a secret, but for the shortest: `consent=yes`.
    fn cookies(&mut self, text: &str) -> Option<String> {
        let mut edits = Edits::new();
        for pair in parts(text, b';') {
            edits.extend(self.cookie(text, pair));
        }
        applied(text, edits)
    }

    fn set_cookie(&mut self, text: &str) -> Option<String> {
        let pair = parts(text, b';').next()?;
        let edits = self.cookie(text, pair).into_iter().collect();
        applied(text, edits)
    }

    fn cookie(&mut self, text: &str, pair: Range<usize>) -> Option<(Range<usize>, String)> {
        let (name, value) = halves(text, pair)?;
        let value = trimmed(text, value);
        let by_place = if value.len() < COOKIE_BYTES_MIN { Secrecy::No } else { Secrecy::Text };
        let name = text[name].trim();
        let secrecy = self.rules.secrecy(name, Secrecy::of(name).max(by_place));
        let written = &text[value.clone()];
        // The client may send it back decoded, as the header that repeats a CSRF cookie: it is one value in two encodings.
        let decoded = percent_decode_str(written).decode_utf8_lossy();
        let is_random = looks_random(written.as_bytes());
        let placeholder = self.secret_of_cookie(secrecy, &decoded, is_random)?;
        let placeholder = if decoded == written { placeholder } else { placeholder.replace('=', "%3D") };
        Some((value, placeholder))
    }

    /// `theme=dark-mode` is replaced there, and nowhere else.
    fn secret_of_cookie(&mut self, secrecy: Secrecy, value: &str, is_random: bool) -> Option<String> {
        if is_redacted(value) || !secrecy.covers(value.as_bytes()) {
            return None;
        }
        if is_random {
            self.values.remember(value.as_bytes());
        }
        Some(self.values.placeholder(value.as_bytes()))
    }

    /// A path or URL: user information, parameters of path, query and fragment.
    pub(super) fn url(&mut self, text: &str, depth: u8) -> Option<String> {
        let mut edits = Edits::new();
        let authority = text.find("://").map_or(0, |at| at + 3);
        let path_end = text.find(['?', '#']).unwrap_or(text.len());
        if authority > 0 && authority <= path_end {
            let end = text[authority..path_end].find('/').map_or(path_end, |at| authority + at);
            if let Some(user_end) = text[authority..end].rfind('@') {
                edits.push((authority..authority + user_end + 1, String::new()));
            }
        }
        let path = authority.min(path_end)..path_end;
        for (at, _) in text[path.clone()].match_indices(';') {
            let begin = path.start + at + 1;
            let end = text[begin..path_end].find([';', '/']).map_or(path_end, |at| begin + at);
            edits.extend(self.parameter(text, begin..end, depth));
        }
        if let Some(mut begin) = (path_end < text.len()).then_some(path_end + 1) {
            for part in text[begin..].split(['&', '#']) {
                edits.extend(self.parameter(text, begin..begin + part.len(), depth));
                begin += part.len() + 1;
            }
        }
        let redacted = applied(text, edits);
        self.patterns_and_tokens(redacted.as_deref().unwrap_or(text)).or(redacted)
    }

    /// `a=1&token=x`
    pub(super) fn form(&mut self, text: &str) -> Option<String> {
        let mut edits = Edits::new();
        for pair in parts(text, b'&') {
            edits.extend(self.parameter(text, pair, 0));
        }
        let redacted = applied(text, edits);
        self.patterns_and_tokens(redacted.as_deref().unwrap_or(text)).or(redacted)
    }

    /// A value may hold a nested URL or JSON.
    fn parameter(&mut self, text: &str, pair: Range<usize>, depth: u8) -> Option<(Range<usize>, String)> {
        let (name, value) = halves(text, pair)?;
        let name = decoded(&text[name]);
        let plain = decoded(&text[value.clone()]);
        let secrecy = self.rules.secrecy(&name, Secrecy::of_parameter(&name));
        if let Some(placeholder) = self.secret(secrecy, &plain) {
            let is_encoded = plain != text[value.clone()];
            return Some((value, if is_encoded { placeholder.replace('=', "%3D") } else { placeholder }));
        }
        if depth >= DEPTH_MAX || self.rules.keeps(&name) {
            return None;
        }
        let inner = match plain.trim_start().as_bytes().first()? {
            b'{' | b'[' => self.json(&plain, depth + 1),
            _ if plain.contains(['?', '#']) || plain.contains("://") => self.url(&plain, depth + 1),
            _ => None,
        }?;
        Some((value, form_urlencoded::byte_serialize(inner.as_bytes()).collect()))
    }

    /// A body without its content coding.
    pub(super) fn body(&mut self, body: &[u8], content_type: &[u8]) -> Option<Vec<u8>> {
        if let Some(boundary) = multipart::boundary(content_type) {
            return self.multipart(body, &boundary);
        }
        let text = std::str::from_utf8(body).ok()?;
        let content_type = String::from_utf8_lossy(content_type).to_ascii_lowercase();
        let is_json = content_type.contains("json") || text.trim_start().starts_with(['{', '[']);
        let is_form = content_type.starts_with("application/x-www-form-urlencoded")
            || self.is_request && !is_json && looks_like_form(text);
        let redacted = match () {
            () if is_form => self.form(text),
            () if is_json => self.json(text, 0),
            () => self.text(text, 0),
        };
        redacted.map(String::into_bytes)
    }

    /// A message of a WebSocket. Protocols such as Socket.IO have a number before their JSON.
    pub(super) fn message(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = bytes.split_at(digits);
        match rest.first() {
            Some(b'{' | b'[') if digits > 0 => {
                let redacted = self.body(rest, b"")?;
                Some([number, &redacted].concat())
            }
            _ => self.stomp(bytes).or_else(|| self.body(bytes, b"")),
        }
    }

    /// A frame of STOMP: a command, `name:value` lines, an empty line and a body.
    fn stomp(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let ends = ["\n\n", "\r\n\r\n"].into_iter().filter_map(|end| Some(text.find(end)? + end.len()));
        let (head, rest) = text.split_at(ends.min()?);
        let (command, fields) = head.split_at(head.find('\n')? + 1);
        if !command.starts_with(|c: char| c.is_ascii_uppercase())
            || command.contains(|c: char| c.is_ascii_lowercase() || c == ' ')
        {
            return None;
        }
        let mut out = command.to_owned();
        for line in fields.split_inclusive('\n') {
            let (field, end) = line.split_at(line.trim_end().len());
            let secret = field.split_once(':').and_then(|(name, value)| {
                let secrecy = self.rules.secrecy(name, Secrecy::of(name));
                Some(format!("{name}:{}", self.secret(secrecy, value)?))
            });
            out.extend([secret.as_deref().unwrap_or(field), end]);
        }
        let (body, end) = rest.split_at(rest.trim_end_matches(['\0', '\r', '\n']).len());
        let body = self.body(body.as_bytes(), b"").unwrap_or_else(|| body.as_bytes().to_vec());
        let out = [out.as_bytes(), &body, end.as_bytes()].concat();
        (out != bytes).then_some(out)
    }

    /// The values of parts may be anything.
    fn multipart(&mut self, body: &[u8], boundary: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(body.len());
        let mut from = 0;
        for multipart::Part { name, value } in multipart::parts(body, boundary) {
            let secrecy = self.rules.secrecy(&name, Secrecy::of_parameter(&name));
            let lossy = String::from_utf8_lossy(&body[value.clone()]);
            let redacted = self.secret(secrecy, &lossy).map(String::into_bytes);
            if let Some(redacted) = redacted.or_else(|| self.body(&body[value.clone()], b"")) {
                out.extend_from_slice(&body[from..value.start]);
                out.extend_from_slice(&redacted);
                from = value.end;
            }
        }
        out.extend_from_slice(&body[from..]);
        (from > 0).then_some(out)
    }
}

/// Replaces parts of a text; of two that overlap the first wins.
pub(super) fn applied(text: &str, mut edits: Edits) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (range, replacement) in edits.iter().filter(|(range, _)| range.start <= range.end) {
        if range.start >= from {
            out.push_str(&text[from..range.start]);
            out.push_str(replacement);
            from = range.end;
        }
    }
    Some(out + &text[from..])
}

/// Whether a value is a placeholder already, or ends with one, as a token does.
fn is_redacted(value: &str) -> bool {
    value.rfind(PLACEHOLDER).is_some_and(|at| value.len() - at <= REDACTED_NUMBER.len() + 16)
}

/// The parts between separators.
fn parts(text: &str, separator: u8) -> impl Iterator<Item = Range<usize>> {
    let mut begin = 0;
    text.split(char::from(separator)).map(move |part| {
        let range = begin..begin + part.len();
        begin = range.end + 1;
        range
    })
}

/// Name and value of `name=value`.
fn halves(text: &str, pair: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
    let equals = pair.start + text[pair.clone()].find('=')?;
    Some((pair.start..equals, equals + 1..pair.end))
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let begin = range.start + part.len() - part.trim_start().len();
    begin..begin + part.trim().len()
}

/// As a form or a query has it.
fn decoded(text: &str) -> Cow<'_, str> {
    match text.contains('+') {
        true => Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()),
        false => percent_decode_str(text).decode_utf8_lossy(),
    }
}

/// `user=a&pass=b` without a content type that says so.
fn looks_like_form(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.~*+%&=[]$!'(),:@/;".contains(c);
    let begins_with_name = text.split('=').next().is_some_and(|name| !name.is_empty() && name.len() <= 100);
    text.contains('=') && begins_with_name && text.trim_end().chars().all(is_part)
}

/// URLs in values in URLs, JSON in strings in JSON.
pub(super) const DEPTH_MAX: u8 = 4;

/// A shorter cookie says yes or no, or names a language.
const COOKIE_BYTES_MIN: usize = 4;
