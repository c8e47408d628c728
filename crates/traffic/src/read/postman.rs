//! Postman collections (format 2): folders of requests without times, with variables in double braces.

use std::collections::{BTreeMap, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::{NESTING_MAX, RECORD_BYTES_MAX};
use crate::{Field, Place, Problem, Record, Request};

/// The reader. A collection is read whole: people write them.
pub(super) struct Postman {
    input: Input,
    notes: Notes,
    records: Option<VecDeque<Result<Record, Problem>>>,
}

#[derive(Deserialize)]
struct Collection {
    item: Vec<Item>,
    #[serde(default)]
    variable: Vec<Pair>,
    auth: Option<Auth>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    name: String,
    item: Option<Vec<Self>>,
    request: Option<PostmanRequest>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PostmanRequest {
    Url(String),
    Full(Box<Full>),
}

#[derive(Deserialize)]
struct Full {
    #[serde(default)]
    method: String,
    url: Option<PostmanUrl>,
    #[serde(default)]
    header: Option<Headers>,
    body: Option<Body>,
    auth: Option<Auth>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PostmanUrl {
    Text(String),
    Object {
        #[serde(default)]
        raw: String,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Headers {
    List(Vec<Pair>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Pair {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: serde_json::Value,
    #[serde(default)]
    disabled: bool,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    mode: String,
    raw: Option<String>,
    urlencoded: Option<Vec<Pair>>,
    graphql: Option<serde_json::Value>,
    options: Option<serde_json::Value>,
}

#[derive(Deserialize, Clone)]
struct Auth {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(flatten)]
    values: BTreeMap<String, serde_json::Value>,
}

impl Postman {
    pub(super) fn new(input: Input) -> Self {
        Self { input, notes: Notes::default(), records: None }
    }

    fn load(&mut self) -> Result<VecDeque<Result<Record, Problem>>, Problem> {
        let place = Place::default();
        let mut bytes = Vec::new();
        loop {
            let chunk = self.input.fill().map_err(|error| Problem::io(place, &error))?;
            let count = chunk.len();
            bytes.extend_from_slice(chunk);
            self.input.consume(count);
            if bytes.len() > RECORD_BYTES_MAX {
                return Err(Problem::fatal(
                    place,
                    format!("a collection of more than {RECORD_BYTES_MAX} bytes"),
                ));
            }
            if count == 0 {
                break;
            }
        }
        let collection: Collection = serde_json::from_slice(&bytes).map_err(|error| {
            Problem::fatal(
                Place { line: error.line() as u64, ..place },
                format!("no Postman collection: {error}"),
            )
        })?;
        let variables =
            collection.variable.iter().map(|pair| (pair.key.clone(), text(&pair.value))).collect();
        let mut walk = Walk { variables, notes: &mut self.notes, records: VecDeque::new() };
        walk.items(collection.item, collection.auth.as_ref(), 0);
        Ok(walk.records)
    }
}

impl Source for Postman {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        if self.records.is_none() {
            self.records = Some(VecDeque::new());
            self.records = Some(self.load()?);
        }
        self.records.as_mut().and_then(VecDeque::pop_front).transpose()
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

/// A walk through folders.
struct Walk<'a> {
    variables: BTreeMap<String, String>,
    notes: &'a mut Notes,
    records: VecDeque<Result<Record, Problem>>,
}

impl Walk<'_> {
    fn items(&mut self, items: Vec<Item>, auth: Option<&Auth>, depth: u32) {
        for item in items {
            if let Some(children) = item.item
                && depth < NESTING_MAX
            {
                self.items(children, auth, depth + 1);
            }
            let Some(request) = item.request else { continue };
            let nth = self.records.len() as u64 + 1;
            let place = Place { record: nth, ..Place::default() };
            let made = self.request(request, auth, place);
            let time_ns = time::ANY_NS + nth * 1_000_000;
            let record =
                |request| Record { time_ns, connection: 1, session: 1, request, response: None, place };
            let named =
                |reason: String| Problem::record(place, format!("`{}`: {reason}", time::cut(&item.name)));
            self.records.push_back(made.map(record).map_err(named));
        }
    }

    fn request(
        &mut self,
        request: PostmanRequest,
        auth: Option<&Auth>,
        place: Place,
    ) -> Result<Request, String> {
        let full = match request {
            PostmanRequest::Url(url) => Full {
                method: "GET".into(),
                url: Some(PostmanUrl::Text(url)),
                header: None,
                body: None,
                auth: None,
            },
            PostmanRequest::Full(full) => *full,
        };
        let raw = match full.url {
            Some(PostmanUrl::Text(raw) | PostmanUrl::Object { raw }) => self.filled(&raw, place),
            None => return Err("no URL".to_owned()),
        };
        let raw = if raw.contains("://") { raw } else { format!("http://{raw}") };
        let mut headers = match full.header {
            Some(Headers::List(pairs)) => self.fields(&pairs, place),
            _ => Vec::new(),
        };
        headers.extend(full.auth.as_ref().or(auth).and_then(|auth| self.authorization(auth, place)));
        let body = full.body.map_or_else(Vec::new, |body| self.body(body, &mut headers, place));
        let method = if full.method.is_empty() { "GET".to_owned() } else { full.method };
        if !squall_plan::urls::is_token(&method) {
            return Err(format!("bad method `{}`", time::cut(&method)));
        }
        let mut request = Request { method, headers, body, ..Request::default() };
        http1::set_url(&mut request, &raw)?;
        request.drop_connection_fields();
        Ok(request)
    }

    fn body(&mut self, body: Body, headers: &mut Vec<Field>, place: Place) -> Vec<u8> {
        let mut set_type = |kind: &str| {
            if !headers.iter().any(|field| field.is("content-type")) {
                headers.push(Field::new("Content-Type", kind));
            }
        };
        match body.mode.as_str() {
            "raw" => {
                let language = body.options.as_ref().and_then(|options| options.pointer("/raw/language"));
                if language.and_then(|language| language.as_str()) == Some("json") {
                    set_type("application/json");
                }
                self.filled(&body.raw.unwrap_or_default(), place).into_bytes()
            }
            "urlencoded" => {
                set_type("application/x-www-form-urlencoded");
                let mut form = form_urlencoded::Serializer::new(String::new());
                for pair in body.urlencoded.unwrap_or_default().iter().filter(|pair| !pair.disabled) {
                    form.append_pair(&pair.key, &self.filled(&text(&pair.value), place));
                }
                form.finish().into_bytes()
            }
            "graphql" => {
                set_type("application/json");
                self.filled(&body.graphql.unwrap_or_default().to_string(), place).into_bytes()
            }
            "" => Vec::new(),
            other => {
                self.notes.add(&format!("bodies of mode `{}`: sent without", time::cut(other)), place);
                Vec::new()
            }
        }
    }

    fn fields(&mut self, pairs: &[Pair], place: Place) -> Vec<Field> {
        let enabled = pairs.iter().filter(|pair| !pair.disabled && squall_plan::urls::is_token(&pair.key));
        let field = |pair: &Pair| {
            Field::new(
                pair.key.clone(),
                self.filled(&text(&pair.value), place).replace(['\r', '\n', '\0'], " "),
            )
        };
        enabled.map(field).collect()
    }

    fn authorization(&mut self, auth: &Auth, place: Place) -> Option<Field> {
        let value = |key: &str| match auth.values.get(&auth.kind)? {
            serde_json::Value::Array(pairs) => {
                pairs.iter().find(|pair| pair["key"] == key).map(|pair| text(&pair["value"]))
            }
            object => object.get(key).map(text),
        };
        let value = match auth.kind.as_str() {
            "basic" => {
                let pair = format!(
                    "{}:{}",
                    value("username").unwrap_or_default(),
                    value("password").unwrap_or_default()
                );
                format!("Basic {}", STANDARD.encode(self.filled(&pair, place)))
            }
            "bearer" => format!("Bearer {}", self.filled(&value("token").unwrap_or_default(), place)),
            "noauth" | "" => return None,
            other => {
                self.notes.add(&format!("authorization of kind `{}`: left out", time::cut(other)), place);
                return None;
            }
        };
        Some(Field::new("Authorization", value.replace(['\r', '\n', '\0'], " ")))
    }

    /// Puts the collection's variables in; those of environments are not in the file.
    fn filled(&mut self, raw: &str, place: Place) -> String {
        let mut out = String::new();
        let mut rest = raw;
        while let Some(begin) = rest.find("{{") {
            let Some(length) = rest[begin..].find("}}") else { break };
            let name = &rest[begin + 2..begin + length];
            out.push_str(&rest[..begin]);
            match self.variables.get(name.trim()) {
                Some(value) => out.push_str(value),
                None => {
                    self.notes.add(&format!("variable {{{{{name}}}}} has no value in the collection"), place);
                    out.push_str(name);
                }
            }
            rest = &rest[begin + length + 2..];
        }
        out + rest
    }
}

fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};

    #[test]
    fn folders_variables_and_authorization_are_followed() {
        let text = r#"{"info":{"schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
          "variable":[{"key":"base","value":"http://x:8080"}],
          "auth":{"type":"bearer","bearer":[{"key":"token","value":"T"}]},
          "item":[{"name":"f","item":[{"name":"a","request":{"method":"POST","url":{"raw":"{{base}}/a"},
             "header":[{"key":"X","value":"1"},{"key":"Y","value":"2","disabled":true}],
             "body":{"mode":"raw","raw":"{}","options":{"raw":{"language":"json"}}}}}]},
            {"name":"b","request":"{{base}}/b"},{"name":"bad","request":{"url":"http://"}}]}"#;
        let (records, problems) = all(Format::Postman, text.into());
        assert_eq!((records.len(), problems.len()), (2, 1));
        assert_eq!(records[0].request.url(), "http://x:8080/a");
        assert_eq!(records[0].request.header("authorization"), Some(&b"Bearer T"[..]));
        assert_eq!(records[0].request.header("content-type"), Some(&b"application/json"[..]));
        assert_eq!(records[0].request.header("y"), None);
        assert_eq!(good(Format::Postman, br#"{"item":[]}"#.to_vec()).len(), 0);
    }
}
