//! Postman's collection format (2.0 and 2.1), as far as requests need it.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Field, Response};

/// A file with a collection: as exported, or as Postman's API wraps it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum File {
    Wrapped { collection: Collection },
    Plain(Collection),
}

#[derive(Deserialize)]
pub(super) struct Collection {
    pub(super) item: Vec<Item>,
    #[serde(default)]
    pub(super) variable: Vec<Pair>,
    pub(super) auth: Option<Auth>,
    #[serde(default)]
    pub(super) event: Events,
}

/// A folder or a request.
#[derive(Deserialize)]
pub(super) struct Item {
    #[serde(default)]
    pub(super) name: String,
    pub(super) item: Option<Vec<Self>>,
    pub(super) request: Option<PostmanRequest>,
    pub(super) auth: Option<Auth>,
    #[serde(default)]
    pub(super) event: Events,
    #[serde(default)]
    pub(super) variable: Vec<Pair>,
    /// Saved responses; anything else that is there is none.
    #[serde(default)]
    pub(super) response: Value,
}

/// A saved response, with the request that it answered.
#[derive(Deserialize)]
struct Saved {
    #[serde(rename = "originalRequest")]
    request: PostmanRequest,
    #[serde(default)]
    code: Option<u16>,
    header: Option<Headers>,
    body: Option<String>,
    #[serde(rename = "responseTime", default)]
    took_ms: Value,
}

/// Scripts: a list, or a single one.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Events {
    Many(Vec<Event>),
    One(Event),
    Other(serde::de::IgnoredAny),
}

/// A script.
#[derive(Deserialize)]
pub(super) struct Event {
    #[serde(default)]
    pub(super) listen: String,
    #[serde(default)]
    script: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PostmanRequest {
    Url(String),
    Full(Box<Full>),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Full {
    pub(super) method: String,
    pub(super) url: Option<PostmanUrl>,
    pub(super) header: Option<Headers>,
    pub(super) body: Option<Body>,
    pub(super) auth: Option<Auth>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PostmanUrl {
    Text(String),
    Parts(Box<UrlParts>),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct UrlParts {
    pub(super) raw: String,
    protocol: Option<String>,
    host: Value,
    port: Value,
    path: Value,
    query: Option<Vec<Pair>>,
    pub(super) variable: Option<Vec<Pair>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Headers {
    List(Vec<Pair>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Pair {
    #[serde(deserialize_with = "or_default")]
    pub(super) key: String,
    pub(super) value: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) disabled: bool,
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    /// The file of a form's part: a path, or several.
    pub(super) src: Value,
    #[serde(rename = "contentType")]
    pub(super) content_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Body {
    pub(super) mode: String,
    pub(super) raw: Option<String>,
    pub(super) urlencoded: Option<Vec<Pair>>,
    pub(super) formdata: Option<Vec<Pair>>,
    pub(super) graphql: Option<Value>,
    pub(super) file: Option<Value>,
    pub(super) options: Option<Value>,
    pub(super) disabled: bool,
}

#[derive(Deserialize, Clone)]
pub(super) struct Auth {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(flatten)]
    values: serde_json::Map<String, Value>,
}

impl Default for Events {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// The saved responses of an item, each with its request.
pub(super) fn saved(responses: &Value) -> Vec<(PostmanRequest, Response)> {
    let saved = responses.as_array().into_iter().flatten();
    saved.filter_map(|one| Saved::deserialize(one).ok()).map(Saved::into_pair).collect()
}

impl Saved {
    fn into_pair(self) -> (PostmanRequest, Response) {
        let pairs = match self.header {
            Some(Headers::List(pairs)) => pairs,
            _ => Vec::new(),
        };
        // The body is saved decoded.
        let is_framing = |name: &str| {
            ["content-encoding", "content-length", "transfer-encoding", "connection"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
        };
        let is_kept =
            |pair: &&Pair| !pair.disabled && squall_plan::urls::is_token(&pair.key) && !is_framing(&pair.key);
        let field = |pair: &Pair| Field::new(&pair.key, text(&pair.value).replace(['\r', '\n', '\0'], " "));
        let mut response = Response {
            status: self.code.filter(|code| (100..=999).contains(code)).unwrap_or(200),
            headers: pairs.iter().filter(is_kept).map(field).collect(),
            latency_ns: self.took_ms.as_u64().unwrap_or_default().saturating_mul(1_000_000),
            ..Response::default()
        };
        response.set_body(self.body.unwrap_or_default().into_bytes());
        (self.request, response)
    }
}

impl Events {
    pub(super) fn all(&self) -> &[Event] {
        match self {
            Self::Many(events) => events,
            Self::One(event) => std::slice::from_ref(event),
            Self::Other(_) => &[],
        }
    }
}

impl Event {
    /// Whether it does anything.
    pub(super) fn has_code(&self) -> bool {
        let exec = &self.script["exec"];
        let lines = exec.as_array().map_or_else(|| std::slice::from_ref(exec), Vec::as_slice);
        let code = |line: &Value| line.as_str().is_some_and(|line| !matches!(line.trim(), "" | "//"));
        lines.iter().any(code)
    }
}

impl UrlParts {
    /// The URL as a text, made of its parts where the file has only those.
    pub(super) fn text(&self) -> String {
        if !self.raw.is_empty() {
            return self.raw.clone();
        }
        let scheme = self.protocol.as_ref().map(|scheme| format!("{scheme}://")).unwrap_or_default();
        let port = text(&self.port);
        let port = if port.is_empty() { port } else { format!(":{port}") };
        let path = joined(&self.path, "/");
        let path = if path.is_empty() || path.starts_with('/') { path } else { format!("/{path}") };
        let query = self.query.iter().flatten().filter(|pair| !pair.disabled);
        let query: Vec<String> = query.map(|pair| format!("{}={}", pair.key, text(&pair.value))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{scheme}{}{port}{path}{mark}{}", joined(&self.host, "."), query.join("&"))
    }
}

impl Auth {
    /// A value of its kind; format 2.1 has a list of pairs, 2.0 an object.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        match self.values.get(&self.kind)? {
            Value::Array(pairs) => {
                pairs.iter().find(|pair| pair["key"] == key).map(|pair| text(&pair["value"]))
            }
            object => object.get(key).map(text),
        }
    }
}

/// `null` is as good as nothing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A text, or a list of texts.
fn joined(value: &Value, separator: &str) -> String {
    let part = |part: &Value| if part.is_object() { text(&part["value"]) } else { text(part) };
    match value {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join(separator),
        one => text(one),
    }
}

/// What a value is in a text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
