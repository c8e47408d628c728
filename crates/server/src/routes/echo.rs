//! Routes that tell the client what it sent, in httpbin's JSON.

use std::time::Duration;

use data_encoding::BASE64;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    body::{Source, Step},
    call::Call,
    limits::ITEM_COUNT_MAX,
    multipart,
    reply::{Refusal, Reply, json_line},
};

/// What a request was, as httpbin writes it; members that are `None` are left out.
#[derive(Serialize)]
struct Echo {
    args: Map<String, Value>,
    headers: Map<String, Value>,
    origin: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(flatten)]
    body: Option<EchoBody>,
}

/// A form fills `files` and `form`; anything else `data` and, if it is JSON, `json`.
#[derive(Default, Serialize)]
struct EchoBody {
    data: Value,
    files: Map<String, Value>,
    form: Map<String, Value>,
    json: Value,
}

pub(super) fn without_body(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&Echo::new(call)))
}

pub(super) fn with_body(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Some(EchoBody::new(call)?);
    Ok(Reply::json(&Echo { body, ..Echo::new(call) }))
}

pub(super) fn anything(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Some(EchoBody::new(call)?);
    let method = Some(call.head.method.to_string());
    Ok(Reply::json(&Echo { body, method, ..Echo::new(call) }))
}

pub(super) fn headers(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({ "headers": header_map(call) })))
}

pub(super) fn ip(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({ "origin": call.peer.ip().to_string() })))
}

pub(super) fn user_agent(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({ "user-agent": call.header(USER_AGENT) })))
}

pub(super) fn stream(call: &Call<'_>) -> Result<Reply, Refusal> {
    let count = call.count(0, 0..=ITEM_COUNT_MAX)?;
    let interval = call.query_duration("interval", Duration::ZERO)?;
    let mut echo = Echo::new(call);
    let lines = (0..count).flat_map(move |id| {
        echo.id = Some(id);
        [Step::Until(interval.saturating_mul(id as u32)), Step::Data(json_line(&echo))]
    });
    Ok(Reply::new("application/json", Source::steps(lines, None)))
}

/// The query's parameters. A name that comes more than once gets a list.
pub(super) fn args(call: &Call<'_>) -> Map<String, Value> {
    multimap(call.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned().into())))
}

/// The headers with their names in httpbin's case. Several of one name are joined by commas (RFC 9110 5.3).
pub(super) fn header_map(call: &Call<'_>) -> Map<String, Value> {
    let headers = &call.head.headers;
    let joined = |name| {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect::<Vec<_>>().join(",")
    };
    headers.keys().map(|name| (title_case(name.as_str()), joined(name).into())).collect()
}

fn title_case(name: &str) -> String {
    let mut is_start = true;
    let cased = name.chars().map(|c| {
        let cased = if is_start { c.to_ascii_uppercase() } else { c };
        is_start = c == '-';
        cased
    });
    cased.collect()
}

impl Echo {
    fn new(call: &Call<'_>) -> Self {
        Self {
            args: args(call),
            headers: header_map(call),
            origin: call.peer.ip().to_string(),
            url: call.url(),
            method: None,
            id: None,
            body: None,
        }
    }
}

impl EchoBody {
    fn new(call: &Call<'_>) -> Result<Self, Refusal> {
        let content_type = call.header(CONTENT_TYPE).unwrap_or_default();
        if let Some(boundary) = multipart::boundary(content_type) {
            return Self::from_multipart(&call.body.bytes, &boundary);
        }
        if content_type.starts_with("application/x-www-form-urlencoded") {
            return Ok(Self::from_form(&call.body.bytes));
        }
        Ok(Self::from_data(&call.body.bytes, content_type))
    }

    fn from_multipart(bytes: &[u8], boundary: &str) -> Result<Self, Refusal> {
        let (files, fields): (Vec<_>, Vec<_>) =
            multipart::split(bytes, boundary)?.into_iter().partition(|part| part.file_name.is_some());
        let values = |parts: Vec<multipart::Part<'_>>| {
            let member = |part: multipart::Part<'_>| {
                let value = text_or_url(part.bytes, part.content_type.as_deref());
                (part.name, value)
            };
            multimap(parts.into_iter().map(member))
        };
        Ok(Self { data: "".into(), files: values(files), form: values(fields), ..Self::default() })
    }

    fn from_form(bytes: &[u8]) -> Self {
        let fields = form_urlencoded::parse(bytes);
        let form = multimap(fields.map(|(name, value)| (name.into_owned(), value.into_owned().into())));
        Self { data: "".into(), form, ..Self::default() }
    }

    fn from_data(bytes: &[u8], content_type: &str) -> Self {
        let json = serde_json::from_slice(bytes).unwrap_or_default();
        Self { data: text_or_url(bytes, Some(content_type)), json, ..Self::default() }
    }
}

/// Text as it is, anything else as a data URL.
fn text_or_url(bytes: &[u8], content_type: Option<&str>) -> Value {
    let content_type = content_type.filter(|text| !text.is_empty()).unwrap_or("application/octet-stream");
    let url = |_| format!("data:{content_type};base64,{}", BASE64.encode(bytes));
    std::str::from_utf8(bytes).map_or_else(url, str::to_owned).into()
}

fn multimap(pairs: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut members = Map::new();
    for (name, value) in pairs {
        match members.get_mut(&name) {
            None => drop(members.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_become_lists() {
        let pairs =
            [("a", 1), ("b", 2), ("a", 3), ("a", 4)].map(|(name, value)| (name.to_owned(), value.into()));
        assert_eq!(Value::Object(multimap(pairs.into_iter())), json!({ "a": [1, 3, 4], "b": 2 }));
    }

    #[test]
    fn header_names_are_written_as_httpbin_writes_them() {
        assert_eq!(title_case("x-forwarded-for"), "X-Forwarded-For");
    }
}
