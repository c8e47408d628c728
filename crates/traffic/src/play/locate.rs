//! Where in a response a value is, so that the same place gives the live one.

use std::fmt;

use serde_json::Value;
use squall_plan::cookies::set_cookie_pair;
use squall_plan::secret::looks_random;

use crate::markup;

/// A place in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locator {
    /// The value of a cookie that is set.
    Cookie(String),
    /// The same, percent-decoded: scripts repeat CSRF cookies so in a header.
    CookieDecoded(String),
    /// The value of a header field, behind its scheme where it has one (`Bearer x`).
    Header(String),
    /// A parameter of `Location`.
    LocationParameter(String),
    /// A segment of the path of `Location`, counted from its end.
    LocationSegment(usize),
    /// A value in a JSON body, as an RFC 6901 pointer.
    Json(String),
    /// The `value` of a form's input of that name.
    Input(String),
    /// The `content` of a `meta` element of that name.
    Meta(String),
    /// The text behind a name in markup or a script: `token = "x"`, `<token>x</token>`.
    Named(String),
    /// A parameter of a link in markup.
    LinkParameter(String),
}

impl Locator {
    /// Whether the value is in the response's head.
    pub(super) fn is_in_head(&self) -> bool {
        match self {
            Self::Cookie(_) | Self::CookieDecoded(_) | Self::Header(_) => true,
            Self::LocationParameter(_) | Self::LocationSegment(_) => true,
            Self::Json(_) | Self::Input(_) | Self::Meta(_) | Self::Named(_) | Self::LinkParameter(_) => false,
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::CookieDecoded(name) => write!(f, "cookie {name}, decoded"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::LocationParameter(name) => write!(f, "parameter {name} of Location"),
            Self::LocationSegment(nth) => write!(f, "path segment {} from the end of Location", nth + 1),
            Self::Json(pointer) => write!(f, "JSON {pointer}"),
            Self::Input(name) => write!(f, "form field {name}"),
            Self::Meta(name) => write!(f, "meta {name}"),
            Self::Named(name) => write!(f, "text behind {name}"),
            Self::LinkParameter(name) => write!(f, "parameter {name} of a link"),
        }
    }
}

/// A response whose values are looked for: fields in order, and the body without its content coding.
#[derive(Debug, Clone, Copy)]
pub struct ResponseText<'a> {
    /// Header fields.
    pub headers: &'a [(String, Vec<u8>)],
    /// Decoded body; empty where it is not known.
    pub body: &'a [u8],
}

impl ResponseText<'_> {
    /// The value at a place.
    pub fn find(&self, locator: &Locator) -> Option<Vec<u8>> {
        let mut found = None;
        self.each(&mut |place, value| {
            if found.is_none() && place == *locator {
                found = Some(value.to_vec());
            }
        });
        found
    }

    /// Calls `give` with every value that may come back in a later request, and its place.
    pub fn each(&self, give: &mut dyn FnMut(Locator, &[u8])) {
        for (name, value) in self.headers {
            field_values(&name.to_ascii_lowercase(), value, give);
        }
        let body = self.body.trim_ascii_start();
        if body.starts_with(b"{") || body.starts_with(b"[") {
            if let Ok(json) = serde_json::from_slice(body) {
                json_values(&json, &mut String::new(), give);
            }
        } else if body.starts_with(b"<") {
            markup_values(&String::from_utf8_lossy(body), give);
        }
    }
}

fn field_values(name: &str, value: &[u8], give: &mut dyn FnMut(Locator, &[u8])) {
    match name {
        "set-cookie" => {
            if let Some((name, value)) = set_cookie_pair(value) {
                let name = String::from_utf8_lossy(name).into_owned();
                give(Locator::Cookie(name.clone()), value);
                let decoded: Vec<u8> = percent_encoding::percent_decode(value).collect();
                give(Locator::CookieDecoded(name), &decoded);
            }
        }
        "location" => location_values(&String::from_utf8_lossy(value), give),
        // These say nothing that a client would send back, ETag apart.
        "date" | "server" | "vary" | "connection" | "cache-control" | "expires" | "last-modified" | "age" => {
        }
        name if name.starts_with("content-") || name.starts_with("access-control-") => {}
        name => {
            let secret = value.strip_prefix(b"Bearer ").unwrap_or(value);
            give(Locator::Header(name.to_owned()), secret);
        }
    }
}

fn location_values(location: &str, give: &mut dyn FnMut(Locator, &[u8])) {
    let (location, fragment) = location.split_once('#').unwrap_or((location, ""));
    let (path, query) = location.split_once('?').unwrap_or((location, ""));
    let path =
        path.split_once("://").map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    for (name, value) in
        path.split(';').skip(1).filter_map(|parameter| parameter.split('/').next()?.split_once('='))
    {
        give(Locator::LocationParameter(name.to_owned()), value.as_bytes());
    }
    for (nth, segment) in path.rsplit('/').enumerate().filter(|(_, segment)| !segment.is_empty()) {
        give(Locator::LocationSegment(nth), segment.as_bytes());
    }
    let parameters = [query, fragment].map(|part| form_urlencoded::parse(part.as_bytes()));
    for (name, value) in parameters.into_iter().flatten() {
        give(Locator::LocationParameter(name.into_owned()), value.as_bytes());
    }
}

fn json_values(value: &Value, pointer: &mut String, give: &mut dyn FnMut(Locator, &[u8])) {
    let length = pointer.len();
    match value {
        Value::String(text) => give(Locator::Json(pointer.clone()), text.as_bytes()),
        Value::Number(number) => give(Locator::Json(pointer.clone()), number.to_string().as_bytes()),
        Value::Array(items) => {
            for (nth, item) in items.iter().take(ITEMS_MAX).enumerate() {
                pointer.push_str(&format!("/{nth}"));
                json_values(item, pointer, give);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter().take(ITEMS_MAX) {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                json_values(field, pointer, give);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Inputs and metas; and whatever looks like a token behind a name or in a link.
fn markup_values(body: &str, give: &mut dyn FnMut(Locator, &[u8])) {
    for field in markup::fields(body) {
        let place = if field.is_meta { Locator::Meta(field.name) } else { Locator::Input(field.name) };
        give(place, markup::unescaped(&body[field.value]).as_bytes());
    }
    for (name, range) in markup::named(body) {
        let value = markup::unescaped(&markup::unescaped_script(&body[range]));
        if looks_random(value.as_bytes()) {
            give(Locator::Named(name.to_owned()), value.as_bytes());
        }
    }
    for (name, range) in markup::parameters(body) {
        let value = percent_encoding::percent_decode_str(&body[range]).decode_utf8_lossy();
        if looks_random(value.as_bytes()) {
            give(Locator::LinkParameter(name.to_owned()), value.as_bytes());
        }
    }
}

/// Items of an array or object that are looked at: lists of thousands hold no secrets of the session.
const ITEMS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn find(headers: &[(&str, &str)], body: &str, locator: &Locator) -> Option<String> {
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec())).collect();
        let text = ResponseText { headers: &headers, body: body.as_bytes() };
        text.find(locator).map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let headers = [
            ("Set-Cookie", "sid=abc%3D; Path=/"),
            ("Location", "https://x/orders;jsessionid=7/42?t=q%20z#access=ey"),
            ("X-CSRF", "tok"),
        ];
        let html = r#"<html><meta content='m1' name=csrf><form action="/a?x=1&amp;st=q1w2e3r4%2B"><input type=hidden value="a&amp;b"
            name="_t"></form><script>var csrfToken = "q1w2\u002Be3\/r4";</script><x:id>AbC123456</x:id>"#;
        for (locator, value) in [
            (Locator::Cookie("sid".into()), "abc%3D"),
            (Locator::CookieDecoded("sid".into()), "abc="),
            (Locator::LocationParameter("jsessionid".into()), "7"),
            (Locator::LocationParameter("access".into()), "ey"),
            (Locator::LinkParameter("st".into()), "q1w2e3r4+"),
            (Locator::Named("csrfToken".into()), "q1w2+e3/r4"),
            (Locator::Named("id".into()), "AbC123456"),
            (Locator::LocationSegment(0), "42"),
            (Locator::LocationParameter("t".into()), "q z"),
            (Locator::Header("x-csrf".into()), "tok"),
            (Locator::Input("_t".into()), "a&b"),
            (Locator::Meta("csrf".into()), "m1"),
        ] {
            assert_eq!(find(&headers, html, &locator).as_deref(), Some(value), "{locator}");
        }
        let json = r#"{"a":{"b/c":[{"id":17},"x"]}}"#;
        assert_eq!(find(&[], json, &Locator::Json("/a/b~1c/0/id".into())).as_deref(), Some("17"));
        assert_eq!(find(&[], "<input", &Locator::Input("x".into())), None);
    }
}
