//! Changes that keep recorded requests valid: fields, parameters, JSON values and cookies set by templates, and texts
//! replaced by regular expressions.

use regex::bytes::Regex;
use serde_json::Value;
use squall_plan::{Change, InputError};

use crate::{Field, Request};

/// Changes, ready to be made.
#[derive(Debug)]
pub struct Changes(Vec<Step>);

#[derive(Debug)]
enum Step {
    SetHeader { name: String, value: Template },
    DropHeader { name: String },
    SetQuery { name: String, value: Template },
    SetJson { pointer: String, value: Template },
    SetCookie { name: String, value: Template },
    Replace { pattern: Regex, with: Vec<u8> },
}

/// A text with places for what differs between requests.
#[derive(Debug)]
struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    /// Number of the copy, from 1.
    User,
    /// Number of the record, from 1.
    Record,
    /// A number that no other request of the run has.
    Unique,
    /// The present, in milliseconds since the epoch.
    NowMillis,
    /// The present, in seconds.
    NowSeconds,
}

/// What templates may name.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Number of the copy, from 0.
    pub user: u32,
    /// Number of the record, from 0.
    pub ordinal: u64,
    /// A number that no other request of the run has.
    pub unique: u64,
    /// The present, in nanoseconds since the epoch.
    pub now_ns: u64,
}

impl Changes {
    /// Reads the changes of a plan.
    ///
    /// # Errors
    /// When a template or a regular expression cannot be read.
    pub fn new(changes: &[Change]) -> Result<Self, InputError> {
        changes.iter().map(step).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes a request.
    pub fn apply(&self, request: &mut Request, context: Context) {
        for step in &self.0 {
            match step {
                Step::SetHeader { name, value } => set_header(request, name, value.fill(context)),
                Step::DropHeader { name } => request.headers.retain(|field| !field.is(name)),
                Step::SetQuery { name, value } => set_query(request, name, &value.fill(context)),
                Step::SetJson { pointer, value } => set_json(request, pointer, value.fill(context)),
                Step::SetCookie { name, value } => set_cookie(request, name, &value.fill(context)),
                Step::Replace { pattern, with } => replace(request, pattern, with),
            }
        }
    }
}

fn step(change: &Change) -> Result<Step, InputError> {
    Ok(match change {
        Change::SetHeader { name, value } => {
            Step::SetHeader { name: name.clone(), value: Template::read(value)? }
        }
        Change::DropHeader { name } => Step::DropHeader { name: name.clone() },
        Change::SetQuery { name, value } => {
            Step::SetQuery { name: name.clone(), value: Template::read(value)? }
        }
        Change::SetJson { pointer, value } => {
            Step::SetJson { pointer: pointer.clone(), value: Template::read(value)? }
        }
        Change::SetCookie { name, value } => {
            Step::SetCookie { name: name.clone(), value: Template::read(value)? }
        }
        Change::Replace { pattern, with } => {
            let pattern = Regex::new(pattern).map_err(|error| {
                refused(format!("bad regular expression: {error}"), "write it as in Rust's regex crate")
            })?;
            Step::Replace { pattern, with: with.clone().into_bytes() }
        }
    })
}

impl Template {
    /// `order-{user}-{unique}`; `{{` is a brace.
    fn read(text: &str) -> Result<Self, InputError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            parts.push(Part::Text(rest[..at].to_owned()));
            let behind = &rest[at + 1..];
            if let Some(behind) = behind.strip_prefix('{') {
                parts.push(Part::Text("{".to_owned()));
                rest = behind;
                continue;
            }
            let (name, behind) = behind.split_once('}').ok_or_else(|| {
                refused(format!("`{text}` has an open brace"), "write {{ for a brace that is meant as it is")
            })?;
            parts.push(match name {
                "user" => Part::User,
                "record" => Part::Record,
                "unique" => Part::Unique,
                "now_ms" => Part::NowMillis,
                "now_s" => Part::NowSeconds,
                _ => {
                    let help = "names are {user}, {record}, {unique}, {now_ms} and {now_s}; {{ is a brace";
                    return Err(refused(format!("no such name: `{{{name}}}`"), help));
                }
            });
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    fn fill(&self, context: Context) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::User => (context.user + 1).to_string(),
            Part::Record => (context.ordinal + 1).to_string(),
            Part::Unique => context.unique.to_string(),
            Part::NowMillis => (context.now_ns / 1_000_000).to_string(),
            Part::NowSeconds => (context.now_ns / 1_000_000_000).to_string(),
        };
        self.0.iter().map(part).collect()
    }
}

fn refused(reason: impl Into<String>, help: &str) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.to_owned() }
}

fn set_header(request: &mut Request, name: &str, value: String) {
    let value: Vec<u8> =
        value.into_bytes().into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect();
    match request.headers.iter().position(|field| field.is(name)) {
        None => request.headers.push(Field::new(name, value)),
        Some(first) => {
            request.headers[first].value = value;
            let mut nth = 0;
            request.headers.retain(|field| {
                nth += 1;
                nth - 1 <= first || !field.is(name)
            });
        }
    }
}

fn set_query(request: &mut Request, name: &str, value: &str) {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}={}", encoded(name), encoded(value));
    let is_it = |part: &str| part.split('=').next().is_some_and(|own| own == name || own == encoded(name));
    let mut parts: Vec<String> =
        query.split('&').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    match parts.iter().position(|part| is_it(part)) {
        Some(at) => parts[at] = pair,
        None => parts.push(pair),
    }
    request.target = format!("{path}?{}", parts.join("&"));
}

fn set_json(request: &mut Request, pointer: &str, value: String) {
    let Ok(mut json) = serde_json::from_slice::<Value>(&request.body) else { return };
    let Some(place) = json.pointer_mut(pointer) else { return };
    *place = serde_json::from_str(&value).unwrap_or(Value::String(value));
    request.body = json.to_string().into_bytes();
}

fn set_cookie(request: &mut Request, name: &str, value: &str) {
    let pair = format!("{name}={value}");
    let cookies = request.header("cookie").map(|value| String::from_utf8_lossy(value).into_owned());
    let mut pairs: Vec<String> =
        cookies.unwrap_or_default().split("; ").filter(|pair| !pair.is_empty()).map(str::to_owned).collect();
    match pairs.iter().position(|own| own.split('=').next() == Some(name)) {
        Some(at) => pairs[at] = pair,
        None => pairs.push(pair),
    }
    set_header(request, "Cookie", pairs.join("; "));
}

fn replace(request: &mut Request, pattern: &Regex, with: &[u8]) {
    if let Ok(target) = String::from_utf8(pattern.replace_all(request.target.as_bytes(), with).into_owned())
        && target.bytes().all(|byte| byte > b' ' && byte != 0x7f)
    {
        request.target = target;
    }
    if pattern.is_match(&request.body) {
        request.body = pattern.replace_all(&request.body, with).into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &[Change]) -> Request {
        let mut request = Request {
            target: "/a/7?x=1&y=2".into(),
            headers: vec![Field::new("A", "1"), Field::new("Cookie", "s=1; t=2"), Field::new("a", "2")],
            body: br#"{"id":1,"n":{"m":"x"}}"#.to_vec(),
            ..Request::default()
        };
        let context = Context { user: 1, ordinal: 4, unique: 99, now_ns: 1_700_000_000_123_000_000 };
        Changes::new(changes).unwrap().apply(&mut request, context);
        request
    }

    #[test]
    fn each_change_does_what_it_says() {
        let text = |text: &str| text.to_owned();
        let request = changed(&[
            Change::SetHeader { name: text("a"), value: text("u{user}-{{{record}") },
            Change::SetQuery { name: text("y"), value: text("{unique} z") },
            Change::SetQuery { name: text("w"), value: text("{now_ms}") },
            Change::SetJson { pointer: text("/n/m"), value: text("{now_s}") },
            Change::SetJson { pointer: text("/absent"), value: text("1") },
            Change::SetCookie { name: text("t"), value: text("9") },
            Change::Replace { pattern: text("/a/([0-9])"), with: text("/b/${1}0") },
        ]);
        assert_eq!(request.target, "/b/70?x=1&y=99+z&w=1700000000123");
        assert_eq!(request.headers, [Field::new("A", "u2-{5"), Field::new("Cookie", "s=1; t=9")]);
        assert_eq!(request.body, br#"{"id":1,"n":{"m":1700000000}}"#);
        assert_eq!(changed(&[Change::DropHeader { name: text("COOKIE") }]).headers.len(), 2);
    }

    #[test]
    fn bad_templates_and_patterns_are_refused() {
        for value in ["{", "{user", "{nobody}"] {
            assert!(
                Changes::new(&[Change::SetHeader { name: "a".into(), value: value.into() }]).is_err(),
                "{value}"
            );
        }
        assert!(Changes::new(&[Change::Replace { pattern: "(".into(), with: String::new() }]).is_err());
    }
}
