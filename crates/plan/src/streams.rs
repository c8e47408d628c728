//! Responses that are streams of events: `squall stream`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{HttpLoad, WebSocketLoad, What};

/// Requests whose responses are read as streams of events: `squall stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamLoad {
    /// The requests. Their timeout is how long a stream may be silent.
    pub http: HttpLoad,
    /// How a response is divided into events.
    pub format: StreamFormat,
    /// The data of the event that ends a stream; a stream that ends before it has ended early.
    pub done: Option<String>,
    /// How long a stream is held from its head on; then it is closed and counts as ok.
    pub hold: Option<Duration>,
    /// Streams that are open when the load ends may come to their own end.
    pub finishes: bool,
    /// Whether a stream that ends is opened again, as an EventSource does.
    pub reconnects: bool,
    /// What a stream must meet to be counted as good: rules, separated by commas.
    pub objectives: Option<String>,
}

/// How a response is divided into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamFormat {
    /// As its `Content-Type` says.
    Auto,
    /// `text/event-stream`.
    Sse,
    /// Each line that is not empty is an event, such as JSON lines.
    Lines,
    /// Each piece of the body, as it comes, is an event.
    Pieces,
}

impl What {
    /// The requests that it is described by; `None` for loads that are described otherwise.
    pub fn http(&self) -> Option<&HttpLoad> {
        match self {
            Self::Http(http)
            | Self::Stream(StreamLoad { http, .. })
            | Self::WebSocket(WebSocketLoad { http, .. }) => Some(http),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn http_mut(&mut self) -> Option<&mut HttpLoad> {
        match self {
            Self::Http(http)
            | Self::Stream(StreamLoad { http, .. })
            | Self::WebSocket(WebSocketLoad { http, .. }) => Some(http),
            _ => None,
        }
    }
}
