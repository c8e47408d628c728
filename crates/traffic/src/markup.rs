//! What HTML and scripts hold of interest here: the fields of forms, `meta` elements, and texts without their escapes. No whole parser of
//! HTML is needed for two elements.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::{Captures, Regex};

/// An `input` or `meta` element with a name and a value.
pub(crate) struct MarkupField {
    /// `meta`, not `input`.
    pub(crate) is_meta: bool,
    /// Its `name`, or else its `id`.
    pub(crate) name: String,
    /// Where its `value` or `content` is, with its escapes.
    pub(crate) value: Range<usize>,
    /// `type="password"`
    pub(crate) is_password: bool,
}

/// The fields in the order of the text.
pub(crate) fn fields(text: &str) -> impl Iterator<Item = MarkupField> {
    memmem::find_iter(text.as_bytes(), "<").filter_map(|begin| field(text, begin + 1))
}

/// Texts behind the name of a variable, of an attribute or of an element: `token = "x"`, `"token":"x"`, `<token>x</token>`.
pub(crate) fn named(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    pairs(&ASSIGNMENT, text).chain(pairs(&ELEMENT, text))
}

/// Parameters of URLs anywhere in a text: `?token=x`, `&amp;token=x`.
pub(crate) fn parameters(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    pairs(&PARAMETER, text)
}

fn pairs<'t>(pattern: &'static Regex, text: &'t str) -> impl Iterator<Item = (&'t str, Range<usize>)> {
    let pair = |found: Captures<'t>| Some((found.get(1)?.as_str(), found.get(2)?.range()));
    pattern.captures_iter(text).filter_map(pair).filter(|(_, value)| value.len() <= VALUE_BYTES_MAX)
}

fn field(text: &str, begin: usize) -> Option<MarkupField> {
    let rest = text.get(begin..)?;
    let is_named = |name: &str| rest.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
    let (is_meta, length, value_name) = match () {
        () if is_named("input") => (false, 5, "value"),
        () if is_named("meta") => (true, 4, "content"),
        () => return None,
    };
    let attributes: Vec<(Range<usize>, Range<usize>)> = attributes(text, begin + length);
    let find = |name: &str| {
        attributes
            .iter()
            .find(|(own, _)| text[own.clone()].eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
    };
    let name = find("name").or_else(|| find("id")).or_else(|| find("property"))?;
    let is_password = find("type").is_some_and(|kind| text[kind].eq_ignore_ascii_case("password"));
    Some(MarkupField { is_meta, name: unescaped(&text[name]), value: find(value_name)?, is_password })
}

/// Names and values of the attributes up to the end of the tag.
fn attributes(text: &str, begin: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let bytes = &text.as_bytes()[..text.len().min(begin + TAG_BYTES_MAX)];
    let mut found = Vec::new();
    let mut at = begin;
    let skip = |mut at: usize, is: &dyn Fn(u8) -> bool| {
        while bytes.get(at).is_some_and(|byte| is(*byte)) {
            at += 1;
        }
        at
    };
    loop {
        let name_begin = skip(at, &|byte| byte.is_ascii_whitespace() || byte == b'/');
        let name_end = skip(name_begin, &|byte| !byte.is_ascii_whitespace() && !b"=>/".contains(&byte));
        if name_end == name_begin && bytes.get(name_end) != Some(&b'=') {
            return found;
        }
        let equals = skip(name_end, &|byte| byte.is_ascii_whitespace());
        if bytes.get(equals) != Some(&b'=') {
            at = name_end;
            continue;
        }
        let value_begin = skip(equals + 1, &|byte| byte.is_ascii_whitespace());
        let value = match bytes.get(value_begin) {
            Some(quote @ (b'"' | b'\'')) => {
                let end = skip(value_begin + 1, &|byte| byte != *quote);
                at = end + 1;
                value_begin + 1..end
            }
            _ => {
                at = skip(value_begin, &|byte| !byte.is_ascii_whitespace() && byte != b'>');
                value_begin..at
            }
        };
        if text.get(value.clone()).is_some() && text.get(name_begin..name_end).is_some() {
            found.push((name_begin..name_end, value));
        }
    }
}

/// A text with its entities decoded: those that templates write, and numbers.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest
            .find(';')
            .filter(|end| *end <= ENTITY_BYTES_MAX)
            .and_then(|end| Some((end, entity(&rest[1..end])?)));
        let (bytes, decoded) = entity.map_or((1, '&'), |(end, decoded)| (end + 1, decoded));
        out.push(decoded);
        rest = &rest[bytes..];
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

/// The inside of a script's string without `\/` and `\u002B`.
pub(crate) fn unescaped_script(text: &str) -> String {
    match text.contains('\\') {
        true => serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.to_owned()),
        false => text.to_owned(),
    }
}

static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    let name = r#"([A-Za-z_$][A-Za-z0-9_$.\-]*)\\?["']?"#;
    let value = r#"\\?["'`]((?:[^"'`\\<>\r\n]|\\u[0-9A-Fa-f]{4}|\\/)+)"#;
    constant(&format!(r"{name}[ \t]*[:=][ \t]*{value}"))
});

static ELEMENT: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"<(?:[A-Za-z0-9_.\-]+:)?([A-Za-z_][A-Za-z0-9_.\-]*)";
    constant(&format!(r"{name}(?:[ \t\r\n][^<>]*)?>([^<>]+)</"))
});

static PARAMETER: LazyLock<Regex> =
    LazyLock::new(|| constant(r#"(?:[?&]|&amp;)([A-Za-z_$][A-Za-z0-9_.$\-]*)=([^&"'<>\s#;\\`)]+)"#));

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is constant")
}

/// A longer text is no token.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Longest tag that is looked at: ASP.NET's view state is long.
const TAG_BYTES_MAX: usize = 256 << 10;

/// `&#x002B;`
const ENTITY_BYTES_MAX: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_however_their_tags_are_written() {
        for (text, expected) in [
            ("<input name=a value=b>", Some(("a", "b"))),
            ("<INPUT type='hidden' VALUE=\"x>y\"\n name = '_t' />", Some(("_t", "x>y"))),
            ("<meta content='m' name=csrf-token>", Some(("csrf-token", "m"))),
            ("<input value=\"\" id=q>", Some(("q", ""))),
            ("<input disabled name=a>", None),
            ("<input", None),
            ("<input name", None),
            ("<input name=\"a", None),
            ("<p name=a value=b>", None),
        ] {
            let found = fields(text).next().map(|field| (field.name, text[field.value].to_owned()));
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn entities_are_decoded() {
        for (text, expected) in [
            ("a&amp;b&#43;&#x2B;&quot;", "a&b++\""),
            ("&", "&"),
            ("&nope;&#;&#xD800;", "&nope;&#;&#xD800;"),
            ("é&lt;é", "é<é"),
        ] {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }
}
