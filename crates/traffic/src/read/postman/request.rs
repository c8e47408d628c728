//! One request of a collection, as Postman would send it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::format::{Auth, Body, Full, Headers, Pair, PostmanRequest, PostmanUrl, text};
use super::variables::{Filled, Variables};
use crate::read::files::Files;
use crate::read::multipart::{self, Part};
use crate::read::{Notes, http1, time};
use crate::{Field, Place, Request};

/// Makes one request.
pub(super) struct Maker<'a> {
    variables: &'a Variables,
    files: &'a Files,
    notes: &'a mut Notes,
    place: Place,
    filled: Filled,
    headers: Vec<Field>,
    /// Parameters that authentication adds.
    query: Vec<(String, String)>,
}

/// What came of it.
pub(super) enum Made {
    Request(Result<Box<Request>, String>),
    /// Variables without a value.
    Missing(Vec<String>),
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        variables: &'a Variables,
        files: &'a Files,
        notes: &'a mut Notes,
        place: Place,
    ) -> Self {
        Self {
            variables,
            files,
            notes,
            place,
            filled: Filled::default(),
            headers: Vec::new(),
            query: Vec::new(),
        }
    }

    pub(super) fn make(mut self, request: PostmanRequest, inherited: Option<&Auth>) -> Made {
        let full = match request {
            PostmanRequest::Url(url) => Full { url: Some(PostmanUrl::Text(url)), ..Full::default() },
            PostmanRequest::Full(full) => *full,
        };
        let request = self.request(full, inherited);
        for name in std::mem::take(&mut self.filled.made_up) {
            self.notes.add(
                &format!("{{{{${name}}}}}: made up by Postman for each request, fixed here"),
                self.place,
            );
        }
        match (self.filled.cycle, self.filled.missing.is_empty()) {
            (Some(names), _) => Made::Request(Err(circular(&names))),
            (None, true) => Made::Request(request.map(Box::new)),
            (None, false) => Made::Missing(self.filled.missing),
        }
    }

    fn request(&mut self, full: Full, inherited: Option<&Auth>) -> Result<Request, String> {
        let url = self.url(full.url.as_ref().ok_or("no URL")?);
        if let Some(Headers::List(pairs)) = &full.header {
            for pair in pairs.iter().filter(|pair| !pair.disabled) {
                let value = self.fill(&text(&pair.value));
                self.set_default(&pair.key.clone(), &value);
            }
        }
        if let Some(auth) = full.auth.as_ref().or(inherited) {
            self.authorize(auth);
        }
        let body = match full.body.filter(|body| !body.disabled) {
            Some(body) => self.body(body)?,
            None => Vec::new(),
        };
        let method = if full.method.is_empty() { "GET".to_owned() } else { self.fill(&full.method) };
        if !squall_plan::urls::is_token(&method) && self.filled.missing.is_empty() {
            return Err(format!("bad method `{}`", time::cut(&method)));
        }
        let headers = std::mem::take(&mut self.headers);
        let mut request = Request { method, headers, body, ..Request::default() };
        http1::set_url(&mut request, &url)?;
        for (name, value) in std::mem::take(&mut self.query) {
            request.target.push(if request.target.contains('?') { '&' } else { '?' });
            let pair = form_urlencoded::Serializer::new(String::new()).append_pair(&name, &value).finish();
            request.target.push_str(&pair);
        }
        request.drop_connection_fields();
        Ok(request)
    }

    fn fill(&mut self, raw: &str) -> String {
        self.variables.fill(raw, self.place.record, &mut self.filled)
    }

    /// With its variables, and the segments of the path that have names (`/:id`).
    fn url(&mut self, url: &PostmanUrl) -> String {
        let (raw, named) = match url {
            PostmanUrl::Text(raw) => (raw.clone(), &[][..]),
            PostmanUrl::Parts(parts) => (parts.text(), parts.variable.as_deref().unwrap_or_default()),
        };
        let (before_query, query) = raw.split_at(raw.find('?').unwrap_or(raw.len()));
        let segments: Vec<String> =
            before_query.split('/').map(|segment| self.segment(segment, named)).collect();
        let url = self.fill(&(segments.join("/") + query));
        let url = url.trim().to_owned();
        if url.contains("://") { url } else { format!("http://{url}") }
    }

    fn segment(&mut self, segment: &str, named: &[Pair]) -> String {
        let Some(name) = segment.strip_prefix(':') else { return segment.to_owned() };
        let Some(pair) = named.iter().find(|pair| pair.key == name && !pair.disabled) else {
            return segment.to_owned();
        };
        let value = text(&pair.value);
        // An environment may have what the collection leaves open.
        match value.is_empty() {
            true => format!("{{{{{name}}}}}"),
            false => value,
        }
    }

    /// Adds a header that can be sent, unless there is one of that name.
    fn set_default(&mut self, name: &str, value: &str) {
        if squall_plan::urls::is_token(name) && !self.headers.iter().any(|field| field.is(name)) {
            self.headers.push(Field::new(name, value.replace(['\r', '\n', '\0'], " ")));
        }
    }

    fn authorize(&mut self, auth: &Auth) {
        let mut value = |key: &str| {
            self.variables.fill(&auth.value(key).unwrap_or_default(), self.place.record, &mut self.filled)
        };
        match auth.kind.as_str() {
            "noauth" | "" | "inherit" => {}
            "basic" => {
                let pair = format!("{}:{}", value("username"), value("password"));
                self.set_default("Authorization", &format!("Basic {}", STANDARD.encode(pair)));
            }
            "bearer" => {
                let token = value("token");
                self.set_default("Authorization", &format!("Bearer {token}"));
            }
            "apikey" => {
                let (name, key) = (value("key"), value("value"));
                match value("in").as_str() {
                    "query" => self.query.push((name, key)),
                    _ => self.set_default(&name, &key),
                }
            }
            "oauth2" if !value("accessToken").is_empty() => {
                let (token, prefix) = (value("accessToken"), value("headerPrefix"));
                match value("addTokenTo").as_str() {
                    "queryParams" => self.query.push(("access_token".to_owned(), token)),
                    _ if prefix.trim().is_empty() => {
                        self.set_default("Authorization", &format!("Bearer {token}"));
                    }
                    _ => self.set_default("Authorization", &format!("{} {token}", prefix.trim())),
                }
            }
            other => {
                let text = format!(
                    "authorization of kind `{}` is computed for each request: sent without",
                    time::cut(other)
                );
                self.notes.add(&text, self.place);
            }
        }
    }

    fn body(&mut self, body: Body) -> Result<Vec<u8>, String> {
        match body.mode.as_str() {
            "raw" => {
                let language = body.options.as_ref().and_then(|options| options.pointer("/raw/language"));
                if let Some(kind) = language.and_then(Value::as_str).and_then(type_of) {
                    self.set_default("Content-Type", kind);
                }
                Ok(self.fill(&body.raw.unwrap_or_default()).into_bytes())
            }
            "urlencoded" => {
                self.set_default("Content-Type", "application/x-www-form-urlencoded");
                let mut form = form_urlencoded::Serializer::new(String::new());
                for pair in body.urlencoded.iter().flatten().filter(|pair| !pair.disabled) {
                    form.append_pair(&self.fill(&pair.key), &self.fill(&text(&pair.value)));
                }
                Ok(form.finish().into_bytes())
            }
            "formdata" => {
                let pairs = body.formdata.unwrap_or_default();
                let pairs = pairs.iter().filter(|pair| !pair.disabled);
                let parts: Vec<Part> = pairs.flat_map(|pair| self.parts(pair)).collect();
                multipart::set_content_type(&mut self.headers);
                Ok(multipart::body(&parts))
            }
            "graphql" => {
                self.set_default("Content-Type", "application/json");
                self.graphql(body.graphql.unwrap_or_default())
            }
            "file" => Ok(self.file(&text(&body.file.unwrap_or_default()["src"]))),
            "" | "none" => Ok(Vec::new()),
            other => Err(format!("a body of mode `{}`", time::cut(other))),
        }
    }

    /// Postman keeps the variables of a query as a text of JSON, and sends them as JSON.
    fn graphql(&mut self, mut graphql: Value) -> Result<Vec<u8>, String> {
        let query = self.fill(&text(&graphql["query"]));
        let variables = self.fill(&text(&graphql["variables"]));
        graphql["query"] = query.into();
        graphql["variables"] = match variables.trim() {
            "" => Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text)
                .map_err(|error| format!("the variables of the GraphQL query are no JSON: {error}"))?,
        };
        Ok(graphql.to_string().into_bytes())
    }

    fn parts(&mut self, pair: &Pair) -> Vec<Part> {
        let name = self.fill(&pair.key);
        let content_type = pair.content_type.clone().filter(|kind| !kind.is_empty());
        if pair.kind != "file" {
            let content = self.fill(&text(&pair.value)).into_bytes();
            return vec![Part { name, content_type, content, file_name: None }];
        }
        let sources: Vec<String> = match &pair.src {
            Value::Array(sources) => sources.iter().map(text).collect(),
            one => vec![text(one)],
        };
        let part = |source: String| Part {
            name: name.clone(),
            file_name: Some(source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()),
            content_type: content_type.clone().or_else(|| Some("application/octet-stream".to_owned())),
            content: self.file(&source),
        };
        sources.into_iter().map(part).collect()
    }

    /// Paths are those of the machine that exported the collection: a file that is not here is sent empty.
    fn file(&mut self, source: &str) -> Vec<u8> {
        let bytes =
            if source.is_empty() { Err("no file is named".to_owned()) } else { self.files.read(source) };
        let note = match &bytes {
            Ok(_) => "bodies read from the files that the collection names".to_owned(),
            Err(reason) => format!("files of bodies that cannot be read are sent empty: {reason}"),
        };
        self.notes.add(&note, self.place);
        bytes.unwrap_or_default()
    }
}

/// Why variables that lead back to themselves have no value.
fn circular(names: &[String]) -> String {
    let chain: Vec<String> =
        names.iter().chain(names.first()).map(|name| format!("{{{{{name}}}}}")).collect();
    format!("the value of a variable contains the variable itself: {}", chain.join(" -> "))
}

/// What Postman sends for the language of a raw body.
fn type_of(language: &str) -> Option<&'static str> {
    Some(match language {
        "json" => "application/json",
        "xml" => "application/xml",
        "html" => "text/html",
        "javascript" => "application/javascript",
        "text" => "text/plain",
        _ => return None,
    })
}
