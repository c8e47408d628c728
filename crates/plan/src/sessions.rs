//! Connections for their own sake: TLS handshakes one after the other, and connections that are opened and kept.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{HttpVersion, Load, RequestPlan, StreamLoad, WebSocketLoad, Weighted, What};

/// Full connections, each closed after its handshake: `squall handshake`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandshakeLoad {
    /// Where connections go, in rotation; at least one.
    pub targets: Vec<Weighted<Endpoint>>,
    /// Whether the handshakes are QUIC's instead of TLS's over TCP.
    #[serde(default)]
    pub quic: bool,
    /// Server names sent and verified, in rotation; none: the target's own host.
    pub server_names: Vec<Weighted<String>>,
    /// How sessions of earlier handshakes are used again.
    pub resumption: Resumption,
    /// The HTTP request that each connection makes after its handshake.
    pub request: Option<SessionRequest>,
    /// How long each connection stays open after its handshake.
    pub hold: Duration,
    /// How connections are closed.
    pub close: CloseMode,
}

/// Connections that are opened and kept: `squall idle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleLoad {
    /// Where connections go, in rotation; at least one.
    pub targets: Vec<Weighted<Endpoint>>,
    /// Whether TLS is spoken over TCP.
    pub tls: bool,
    /// Whether they are connections of QUIC.
    #[serde(default)]
    pub quic: bool,
    /// What is spoken on the connections.
    pub protocol: IdleProtocol,
    /// The HTTP request that each connection makes before it falls silent.
    pub first_request: Option<SessionRequest>,
    /// What is said now and then, so that the connection is not taken for dead.
    pub ping: Option<Ping>,
    /// Each opening, and each ping, comes later by a random time up to this.
    pub jitter: Duration,
    /// Whether a connection that the server closed is opened again.
    pub reopens: bool,
    /// Keep each TLS session whole, rather than only what closing it needs.
    pub keeps_sessions: bool,
    /// How connections are closed at the end.
    pub close: CloseMode,
}

/// Host and port to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Name or address, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// `GET` of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// Path and query.
    pub path: String,
    /// From sending it to the end of its response.
    pub timeout: Duration,
}

/// How sessions of earlier handshakes are used again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Resumption {
    /// What is used.
    pub mode: ResumptionMode,
    /// Share of the handshakes that try: 0 to 1.
    pub ratio: f64,
    /// Send the request as early data (0-RTT) where the server allows it.
    pub early_data: bool,
}

/// What a resumed handshake shows the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumptionMode {
    /// Nothing: each handshake is full, as of a new client.
    Off,
    /// The session id of a TLS 1.2 session (RFC 5246 7.4.1.2).
    Id,
    /// A session ticket: of TLS 1.2 (RFC 5077) or, where that is spoken, of TLS 1.3.
    Ticket,
    /// A ticket of TLS 1.3 (RFC 8446 2.2); TLS 1.2 handshakes are full.
    Psk,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseMode {
    /// By a reset: no `TIME_WAIT` is left, so the port is free at once.
    Rst,
    /// By a FIN alone.
    Fin,
    /// By TLS's `close_notify` and a FIN; a plain connection by the FIN.
    Notify,
}

/// What is spoken on idle connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleProtocol {
    /// HTTP/1.1, or nothing at all.
    Http1,
    /// HTTP/2: preface and settings are exchanged, and its pings answered.
    Http2,
}

/// What is said on an idle connection now and then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// How long a connection is silent before each.
    pub every: Duration,
    /// What it is.
    pub kind: PingKind,
    /// How long its answer may take, where one is awaited.
    #[serde(default = "pong_timeout")]
    pub timeout: Duration,
}

const fn pong_timeout() -> Duration {
    Duration::from_secs(30)
}

/// Signs of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PingKind {
    /// One byte, a line feed, which servers skip before a request (RFC 9112 2.2). Nothing answers it.
    Byte,
    /// An HTTP/1.1 request; its response is awaited.
    Request(SessionRequest),
    /// An HTTP/2 PING frame; its acknowledgement is awaited (RFC 9113 6.7).
    H2,
    /// A QUIC PING frame; its acknowledgement is awaited (RFC 9000 19.2).
    Quic,
}

impl Endpoint {
    /// `host:port`, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl Resumption {
    /// Each handshake is full.
    pub const OFF: Self = Self { mode: ResumptionMode::Off, ratio: 0.0, early_data: false };
}

impl What {
    /// What is counted, in the singular: what a user does again and again.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Http(_) | Self::Replay(_) | Self::Script(_) => "request",
            Self::Handshake(_) => "handshake",
            Self::Idle(_) | Self::WebSocket(_) => "connection",
            Self::Stream(_) => "stream",
        }
    }

    /// Whether a script says what is done.
    pub const fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// Whether its connections are opened for their own sake, and are QUIC's.
    pub fn is_quic_session(&self) -> bool {
        match self {
            Self::Http(_) | Self::Replay(_) | Self::Script(_) | Self::Stream(_) | Self::WebSocket(_) => false,
            Self::Handshake(load) => load.quic,
            Self::Idle(load) => load.quic,
        }
    }

    /// Where connections by themselves go; `None` for loads that are made of requests.
    pub fn endpoints(&self) -> Option<&[Weighted<Endpoint>]> {
        match self {
            Self::Http(_) | Self::Replay(_) | Self::Script(_) | Self::Stream(_) | Self::WebSocket(_) => None,
            Self::Handshake(load) => Some(&load.targets),
            Self::Idle(load) => Some(&load.targets),
        }
    }
}

impl Load {
    /// Whether its connections speak TLS to at least one target.
    pub fn speaks_tls(&self) -> bool {
        match &self.what {
            What::Http(http)
            | What::Stream(StreamLoad { http, .. })
            | What::WebSocket(WebSocketLoad { http, .. }) => {
                http.requests.iter().any(|request| request.url.scheme() == "https")
            }
            What::Handshake(_) | What::Script(_) => true,
            What::Idle(idle) => idle.tls || idle.quic,
            // Only its recording says, unless it goes elsewhere.
            What::Replay(replay) => replay.to.as_ref().is_none_or(|url| url.scheme() == "https"),
        }
    }

    /// How many of its kinds of requests are over QUIC, or may be: none, some, or all. Connections for their own sake are all of one kind.
    pub fn quic_part(&self) -> QuicPart {
        let is_quic = |version| version == HttpVersion::Http3;
        let (some, all) = match &self.what {
            What::Http(http)
            | What::Stream(StreamLoad { http, .. })
            | What::WebSocket(WebSocketLoad { http, .. }) => {
                let mut requests = http.requests.iter();
                let may_be_quic = requests.clone().any(RequestPlan::may_be_http3);
                (may_be_quic, requests.all(|request| is_quic(request.http)))
            }
            What::Replay(replay) => (is_quic(replay.version), is_quic(replay.version)),
            What::Handshake(_) | What::Idle(_) => (self.what.is_quic_session(), self.what.is_quic_session()),
            // Its requests are known when they are made; those to http URLs are over TCP.
            What::Script(script) => (script.speaks_http3, false),
        };
        match (some, all) {
            (false, _) => QuicPart::None,
            (true, false) => QuicPart::Some,
            (true, true) => QuicPart::All,
        }
    }
}

/// How much of a load is over QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicPart {
    /// Nothing.
    None,
    /// Some of its requests.
    Some,
    /// All.
    All,
}

impl<T> Weighted<T> {
    /// A value that comes as often as any other.
    pub fn once(value: T) -> Self {
        Self { weight: NonZeroU32::MIN, value }
    }
}
