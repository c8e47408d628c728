//! What crosses the border between a script and its driver: requests out, replies in. No socket, no clock.

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
    /// Protocol spoken, by k6's name: `HTTP/1.1` or `HTTP/2.0`.
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
