//! What a handler answers: a response that is not yet tied to a connection.

use std::time::Duration;

use bytes::Bytes;
use hyper::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::Serialize;

use crate::{body::Source, connection::Cut, websocket::WebSocketSession};

/// What a handler answers.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) source: Source,
    /// Wait this long before the head is sent.
    pub(crate) delay: Duration,
    pub(crate) fate: Fate,
    /// The connection, or the stream, becomes a WebSocket.
    pub(crate) upgrade: Option<Box<WebSocketSession>>,
}

/// Whether the reply is sent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answer,
    Hang,
    Cut(Cut),
}

impl Reply {
    /// 200 with this body.
    pub(crate) fn new(content_type: &'static str, source: Source) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { headers, source, ..Self::empty(StatusCode::OK) }
    }

    /// This status without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let source = Source::Whole(Bytes::new());
        let (headers, delay) = (HeaderMap::new(), Duration::ZERO);
        Self { status, headers, source, delay, fate: Fate::Answer, upgrade: None }
    }

    /// No response: `fate` happens instead.
    pub(crate) fn none(fate: Fate) -> Self {
        Self { fate, ..Self::empty(StatusCode::OK) }
    }

    pub(crate) fn whole(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::new(content_type, Source::Whole(body.into()))
    }

    pub(crate) fn text(body: impl Into<Bytes>) -> Self {
        Self::whole("text/plain; charset=utf-8", body)
    }

    pub(crate) fn html(body: impl Into<Bytes>) -> Self {
        Self::whole("text/html; charset=utf-8", body)
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::whole("application/json", json_line(value))
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Adds a header of our own making.
    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Adds a header that the request asked for; another one of that name stays.
    pub(crate) fn with_asked(mut self, name: HeaderName, value: &str) -> Result<Self, Refusal> {
        let refuse =
            |_| Refusal::new(format!("`{}` cannot be a value of the header {name}", value.escape_debug()));
        let value = HeaderValue::from_str(value).map_err(refuse)?;
        self.headers.append(name, value);
        Ok(self)
    }
}

/// A request that cannot be answered as it is: status 400, or another one, and a text that says why.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), header: None }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let reply = Self::text(refusal.message + "\n").with_status(refusal.status);
        match refusal.header {
            Some((name, value)) => reply.with(name, value),
            None => reply,
        }
    }
}

/// Compact JSON and a newline.
pub(crate) fn json_line(value: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).expect("maps with text keys always become JSON");
    text.push(b'\n');
    text.into()
}
