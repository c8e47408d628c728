//! What crosses the border between a script and its driver: requests and streams out, replies and events in. No socket, no clock.

use std::any::Any;
use std::cell::OnceCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use squall_plan::mask::masked_text;
use squall_plan::{Body, RequestPlan};

/// What a virtual user wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To be resumed when one of its replies has come, or at this time on the run's clock, whichever is first.
    Wait {
        /// Nanoseconds since the run's start; `None`: only a reply.
        until_ns: Option<u64>,
    },
    /// To be resumed soon: it has used up its turn, and others go first.
    Yield,
    /// Its work is done; [`User::outcome`](crate::User::outcome) says how.
    Idle,
}

/// What a script asked for: a request on a connection of this user.
#[derive(Debug, Clone)]
pub struct Request {
    /// Comes back in the [`Reply`].
    pub token: u32,
    /// What is sent.
    pub spec: Rc<Spec>,
    /// From the start of sending, connecting included.
    pub timeout: Duration,
    /// Most bytes of the body that the script may read, more than which is an error; 0: it reads none.
    pub body_bytes_max: u64,
    /// Statuses that are expected, in inclusive ranges; none: any.
    pub expects: Rc<[(u16, u16)]>,
}

/// What is sent: kept and shared where the same request is made again and again.
#[derive(Debug)]
pub struct Spec {
    /// Method, URL, header fields and body. The fields have no `Host` and `Content-Length` unless the script gave a `Host`.
    pub plan: RequestPlan,
    /// The URL as the script gave it, credentials masked: what a response says that its own is.
    pub text: String,
    /// The `name` tag.
    pub name: String,
    /// User name and password that the URL gave.
    pub user: Option<(String, String)>,
    /// Which of the script's own clients sends it ([`Program::clients`](crate::Program::clients), from 1); 0: none.
    pub client: u32,
    /// The scenario that asked, for the row in reports.
    pub scenario: Rc<str>,
    /// What the engine sends for it, encoded once.
    pub prepared: OnceCell<Rc<dyn Any>>,
}

impl Spec {
    /// The body that a method sends: POST, PUT and PATCH state the length of one that is empty.
    pub(crate) fn body(method: &str, body: Body) -> Body {
        match body {
            Body::Empty if matches!(method, "POST" | "PUT" | "PATCH") => Body::Bytes(Vec::new()),
            body => body,
        }
    }

    /// The name of the row in reports: what is shown and saved has no credentials.
    pub(crate) fn pattern(name: &str) -> String {
        if name.contains("://") { masked_text(name) } else { name.to_owned() }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The request's.
    pub token: u32,
    /// Status code; 0 when the request failed.
    pub status: u16,
    /// Protocol spoken, by Go's name, as in k6: `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.
    pub proto: &'static str,
    /// Status line and fields, as they came.
    pub head: Vec<u8>,
    /// Body as transferred; empty where it was not to be kept.
    pub body: Vec<u8>,
    /// How long each phase took.
    pub timing: Timing,
    /// Where the connection went.
    pub remote: Option<SocketAddr>,
    /// Of a TLS connection: k6's names of version and cipher suite.
    pub tls: Option<(&'static str, &'static str)>,
    /// Why it failed.
    pub failure: Option<ReplyFailure>,
}

/// Why a request failed, in k6's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyFailure {
    /// k6's `error_code`.
    pub code: u16,
    /// k6's `error`.
    pub text: String,
}

/// What a script wants of a stream: a WebSocket, or a response that is read while it comes. Commands of one stream are obeyed in order.
#[derive(Debug)]
pub struct StreamRequest {
    /// The stream's name, which its events carry; no other stream of the user gets it.
    pub token: u32,
    /// What is wanted.
    pub command: ScriptStreamCommand,
}

/// Whether a token is a stream's, and not a request's.
pub const fn is_stream_token(token: u32) -> bool {
    token & STREAM_TOKEN != 0
}

/// Set in the tokens of streams. Those of requests would have to be counted for days to reach it.
pub(crate) const STREAM_TOKEN: u32 = 1 << 31;

/// A command to a stream.
#[derive(Debug)]
pub enum ScriptStreamCommand {
    /// To be opened: [`ScriptStreamNews::Open`] or [`ScriptStreamNews::Refused`] follows.
    Open(Box<StreamOpen>),
    /// A message to be sent.
    Send(StreamMessage),
    /// A ping with this payload, of at most 125 bytes.
    Ping(Vec<u8>),
    /// A close frame to be sent; [`ScriptStreamNews::Closed`] follows when the peer has answered.
    Close(StreamClose),
    /// To be ended at once, when what was asked for before has been sent as far as possible. Nothing is to be reported of it any more.
    Drop,
}

/// A stream to be opened.
#[derive(Debug)]
pub struct StreamOpen {
    /// The request that opens it. A WebSocket's has the scheme `http` or `https`, and no fields of the handshake.
    pub spec: Rc<Spec>,
    /// What it is.
    pub kind: StreamKind,
    /// Until the head of the response, connecting included.
    pub timeout: Duration,
}

/// What a stream is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamKind {
    /// A WebSocket.
    WebSocket {
        /// Whether permessage-deflate is offered.
        compresses: bool,
        /// Subprotocols that are offered.
        protocols: Vec<String>,
    },
    /// The response to a request, whose body is reported as it comes.
    Body,
}

/// A message of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamMessage {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// A close frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamClose {
    /// Its code; `None`: it has no payload.
    pub code: Option<u16>,
    /// Its reason.
    pub reason: String,
}

/// What happened on a stream.
#[derive(Debug)]
pub struct ScriptStreamEvent {
    /// The stream.
    pub token: u32,
    /// When, on the run's clock.
    pub at_ns: u64,
    /// What.
    pub news: ScriptStreamNews,
}

/// News of a stream.
#[derive(Debug)]
pub enum ScriptStreamNews {
    /// It is open; the reply has everything but a body.
    Open(Box<Reply>),
    /// It was not opened: there was no connection, or no 101 came. It is over.
    Refused(Box<Reply>),
    /// A message came.
    Message(StreamMessage),
    /// A ping came, and is answered.
    Ping,
    /// A pong came, with this payload.
    Pong(Vec<u8>),
    /// So many bytes of messages wait for the socket.
    Unsent(u64),
    /// A piece of the body came.
    Data(Vec<u8>),
    /// It is over.
    Closed(StreamEnd),
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer's close frame came, and is answered; or the body is whole.
    Peer(StreamClose),
    /// The connection was closed without that.
    Eof,
    /// It broke.
    Failed(ReplyFailure),
    /// A bound of ours ended it: what holds too much.
    Limit(String),
}

/// Phases of a request, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timing {
    /// Until a connection was there to use; on a new one dialling included, as in k6.
    pub blocked_ns: u64,
    /// TCP connect.
    pub connecting_ns: u64,
    /// TLS handshake.
    pub tls_handshaking_ns: u64,
    /// Writing the request.
    pub sending_ns: u64,
    /// Until the first byte of the response.
    pub waiting_ns: u64,
    /// Until its last byte.
    pub receiving_ns: u64,
}

impl Timing {
    /// k6's `http_req_duration`.
    pub fn duration_ns(&self) -> u64 {
        self.sending_ns + self.waiting_ns + self.receiving_ns
    }
}

/// What `new Client({…})` of `k6/x/fasthttp` asks for, as far as it changes how a request is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientConfig {
    /// Longest connect; zero: the extension's 5 s.
    pub dial_timeout: Duration,
    /// A connection is not used for longer; zero: any time.
    pub connection_age_max: Duration,
    /// HTTP proxy: `user:password@host:port`; empty: none.
    pub proxy: String,
    /// Certificates are not verified.
    pub insecure: bool,
    /// Files of the client's certificate and key, in PEM; empty: none.
    pub certificate: Option<(String, String)>,
}
