//! WebSockets that are opened and kept, and the messages on them: `squall ws`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Arrival, CloseMode, HttpLoad, Pacing, Profile};

/// WebSockets that are opened and kept: `squall ws`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebSocketLoad {
    /// The requests that open them: `GET`, without the fields of the opening handshake. Their timeout is how long an answer may take, that to the
    /// handshake and those to messages and pings.
    pub http: HttpLoad,
    /// Who sends what.
    pub exchange: MessageExchange,
    /// What is sent.
    pub message: MessagePayload,
    /// Messages per second of all connections together; `None`: each connection sends when the last message was answered.
    pub rate: Option<MessageRate>,
    /// How many messages are sent in all; `None`: until the end.
    pub count: Option<u64>,
    /// Between an answer and the next message of its connection.
    pub pause: Duration,
    /// Sent first on each connection, such as a subscription.
    pub greeting: Option<String>,
    /// How long a connection is silent before each ping.
    pub ping: Option<Duration>,
    /// Whether permessage-deflate is offered.
    pub compress: bool,
    /// Subprotocols offered, the preferred one first.
    pub subprotocols: Vec<String>,
    /// Each opening, and each ping, comes later by a random time up to this.
    pub jitter: Duration,
    /// Whether a connection that the server closed is opened again.
    pub reopens: bool,
    /// All connections are dropped this often and opened again at once.
    pub storm: Option<Duration>,
    /// How the TCP connections are closed at the end, after the close frame.
    pub close: CloseMode,
    /// Other machines make the same load at the same time, each all of it: what they publish arrives here, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_copied: bool,
}

impl WebSocketLoad {
    /// What so many machines send together, each of which sends all of it.
    pub(crate) fn times(&self, machine_count: u32) -> Self {
        let exchange = match self.exchange {
            MessageExchange::Publish(count) => MessageExchange::Publish(count.saturating_mul(machine_count)),
            other => other,
        };
        let times =
            |rate: &MessageRate| MessageRate { rate: rate.rate.times(machine_count.into()), ..rate.clone() };
        let rate = self.rate.as_ref().map(times);
        let count = self.count.map(|count| count.saturating_mul(machine_count.into()));
        Self { exchange, rate, count, ..self.clone() }
    }
}

/// Who sends messages, and what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageExchange {
    /// Each connection sends, and gets the same back.
    Echo,
    /// So many connections send messages with the time in them; every connection that gets one measures.
    Publish(u32),
    /// The server sends.
    Receive,
    /// Nobody does, but for pings.
    Idle,
}

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePayload {
    /// As a binary message, else as text.
    pub is_binary: bool,
    /// Its bytes: a template, with `{stamp}` for the time of sending. See `docs/websocket.md`.
    #[serde(with = "crate::latin1")]
    pub bytes: Vec<u8>,
    /// CSV whose columns the template names. Its content, so that it is on every machine that the plan is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}

/// Messages in an open model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRate {
    /// Per second.
    pub rate: Profile,
    /// How they are spaced.
    pub arrival: Arrival,
    /// How precisely the schedule is followed.
    pub pacing: Pacing,
}

impl MessagePayload {
    /// What a message has in the place of the time at which it is sent.
    pub const STAMP: &str = "{stamp}";

    /// Bytes of what takes its place.
    pub const STAMP_BYTES: usize = 24;
}
