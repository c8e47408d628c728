//! The plan: what a run does, complete and valid. Every face of input ends here, and the engine reads nothing else.

use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::limits::WINDOW_BYTES_DEFAULT;
use crate::{CloseMode, HandshakeLoad, IdleLoad, Profile, ReplayLoad, Segment, StreamLoad, WebSocketLoad};

/// A whole run: loads that start together, and the rules its result must meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names the saved run's folder and its reports.
    pub name: String,
    /// Loads that start together.
    pub loads: Vec<Load>,
    /// Rules as typed, such as `p(95)<200`; `measure` parses and judges them.
    pub thresholds: Vec<String>,
    /// Requests that start in this first part of the run are made but not measured.
    pub warmup: Duration,
    /// Event-loop threads per load; `None`: as many as the CPUs this process may use.
    pub threads: Option<NonZeroU32>,
}

/// One kind of load: *what a user does* x *when the next one starts* x *when to stop*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Shown in reports.
    pub name: String,
    /// What a user does.
    pub what: What,
    /// When the next request starts.
    pub when: When,
    /// When the load ends.
    pub stop: Stop,
    /// How connections are kept and closed.
    pub connections: ConnectionPolicy,
    /// Where packets go and come from.
    pub network: Network,
    /// How TLS is spoken to `https` targets.
    pub tls: TlsPolicy,
    /// Which part of it this machine makes, where several make it together.
    #[serde(default, skip_serializing_if = "Segment::is_whole")]
    pub segment: Segment,
}

impl Load {
    /// Into how many parts it can be divided, for threads and machines, so that none is without a connection, a user or a request.
    pub fn part_count_max(&self) -> u64 {
        let user_count = match &self.when {
            When::Closed { users: Some(users), .. } => users.max().ceil() as u64,
            When::Closed { users: None, .. } | When::Open { .. } => u64::MAX,
        };
        self.when.connection_count_max().min(user_count).min(self.stop.count.unwrap_or(u64::MAX))
    }

    /// What so many machines ask for together, each of which makes all of it.
    pub fn times(&self, machine_count: u32) -> Self {
        let factor = f64::from(machine_count);
        let when = match &self.when {
            When::Closed { connections, users } => When::Closed {
                connections: connections.times(factor),
                users: users.as_ref().map(|users| users.times(factor)),
            },
            When::Open { rate, arrival, pacing, connection_count_max } => {
                let connection_count_max = connection_count_max.get().saturating_mul(machine_count);
                When::Open {
                    rate: rate.times(factor),
                    arrival: *arrival,
                    pacing: *pacing,
                    connection_count_max: NonZeroU32::new(connection_count_max).unwrap_or(NonZeroU32::MIN),
                }
            }
        };
        let count = self.stop.count.map(|count| count.saturating_mul(u64::from(machine_count)));
        let what = match &self.what {
            What::WebSocket(websocket) => What::WebSocket(websocket.times(machine_count)),
            other => other.clone(),
        };
        Self { what, when, stop: Stop { count, ..self.stop }, ..self.clone() }
    }
}

/// What a user does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum What {
    /// Plain requests, described natively.
    Http(HttpLoad),
    /// Connections that are closed after their TLS handshake.
    Handshake(HandshakeLoad),
    /// Connections that are opened and kept.
    Idle(IdleLoad),
    /// Recorded requests, played back.
    Replay(ReplayLoad),
    /// What a k6 script says.
    Script(ScriptLoad),
    /// Requests whose responses are streams of events.
    Stream(StreamLoad),
    /// WebSockets that are opened and kept.
    WebSocket(WebSocketLoad),
}

/// A k6 script: its options say the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptLoad {
    /// The script.
    pub path: PathBuf,
    /// Its options as JSON, put together from every layer.
    pub options: String,
    /// Its scenarios in words.
    pub scenarios: Vec<String>,
    /// Whether requests of any scenario are made over HTTP/3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub speaks_http3: bool,
}

/// Requests described natively: a weighted rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpLoad {
    /// At least one.
    pub requests: Vec<RequestPlan>,
    /// `User-Agent` values in rotation; at least one.
    pub user_agents: Vec<Weighted<String>>,
    /// Redirects followed for one request (0: a redirect is an answer like any other).
    pub follow_count_max: u32,
    /// What makes a response a success.
    pub expect: Expect,
    /// From the start of a request on its connection to the last byte of its response.
    pub timeout: Duration,
}

/// One request of the rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Share in the rotation, relative to the others.
    pub weight: NonZeroU32,
    /// Method, as sent.
    pub method: String,
    /// Absolute `http` or `https` URL without user information (that became a header).
    pub url: Url,
    /// The name of this request's row in reports: its URL without the query unless named otherwise.
    pub pattern: String,
    /// Header fields in the order in which they are sent. A `Host` here replaces the one made from the URL.
    pub headers: Vec<Header>,
    /// What is sent after the head.
    pub body: Body,
    /// HTTP version spoken for it.
    #[serde(default)]
    pub http: HttpVersion,
}

impl RequestPlan {
    /// Whether it may be sent in HTTP/3: the server may announce that.
    pub fn may_be_http3(&self) -> bool {
        match self.http {
            HttpVersion::Http3 => true,
            HttpVersion::Auto => self.url.scheme() == "https",
            HttpVersion::Http11 | HttpVersion::Http2 => false,
        }
    }
}

/// The HTTP version that a request is sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2: over TLS by ALPN, and nothing else will do; over plain TCP by prior knowledge (h2c).
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3 over QUIC, and nothing else will do; for https URLs.
    #[serde(rename = "3")]
    Http3,
    /// Over TLS what the server chooses by ALPN, preferably HTTP/2; over plain TCP HTTP/1.1. Loads that are described by their requests move to
    /// HTTP/3 once the server announces it.
    #[serde(rename = "auto")]
    Auto,
}

/// A header field. Its value may be a secret: see [`Header::is_secret`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Field name as typed.
    pub name: String,
    /// Field value.
    pub value: String,
}

/// A request's body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// No body and no `Content-Length`.
    #[default]
    Empty,
    /// Bytes kept in memory.
    Bytes(#[serde(with = "crate::latin1")] Vec<u8>),
    /// Streamed from disk for each request; its size was read when the plan was made.
    File {
        /// Path as given.
        path: PathBuf,
        /// Size in bytes.
        bytes: u64,
    },
}

/// A value with its share in a rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighted<T> {
    /// Share, relative to the others.
    pub weight: NonZeroU32,
    /// The value.
    pub value: T,
}

/// What makes a response a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// Inclusive status ranges; k6's default is 200-399.
    pub status: Vec<(u16, u16)>,
    /// The length that each response body must have.
    pub body: ExpectBody,
}

/// The length that each response body must have, as transferred (before any content coding is undone).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExpectBody {
    /// Any.
    Any,
    /// This many bytes.
    Bytes(u64),
    /// As many bytes as the first response of the same request on the same thread (ab's length failure).
    SameLength,
}

/// When the next request starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum When {
    /// Closed model: each user sends its next request when the last one has ended.
    Closed {
        /// Connections over time.
        connections: Profile,
        /// Users over time who share the connections and wait for a free one; `None`: as many as the connections hold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        users: Option<Profile>,
    },
    /// Open model: requests start when the schedule says, whether or not the server keeps up.
    Open {
        /// Arrivals per second over time.
        rate: Profile,
        /// How arrivals are spread within the rate.
        arrival: Arrival,
        /// How precisely the schedule is kept, at what price in CPU.
        pacing: Pacing,
        /// Most connections; an arrival that finds none free waits, and that wait is part of its latency.
        connection_count_max: NonZeroU32,
    },
}

impl When {
    /// The most connections to one origin.
    pub fn connection_count_max(&self) -> u64 {
        match self {
            Self::Closed { connections, .. } => connections.max().ceil() as u64,
            Self::Open { connection_count_max, .. } => u64::from(connection_count_max.get()),
        }
    }
}

/// How arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Equal gaps.
    Constant,
    /// Exponential gaps (a Poisson process), from a fixed seed.
    Poisson,
}

/// How precisely an open model's schedule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Each arrival separately; the thread spins between arrivals that are close.
    Precise,
    /// Arrivals are sent in ticks of 0.8 ms.
    Balanced,
    /// Arrivals are sent in ticks of 1 ms.
    Cheap,
}

/// When a load ends. Where both are given, the first one met ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// No request starts after this; warm-up included.
    pub duration: Option<Duration>,
    /// Requests started in all, redirects followed not counted.
    pub count: Option<u64>,
}

/// How connections are kept and closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionPolicy {
    /// `None`: as many as the peer allows. `Some(1)`: a new connection for each request (`--no-keepalive`).
    pub request_count_max: Option<NonZeroU32>,
    /// A connection older than this is closed after its current response.
    pub age_max: Option<Duration>,
    /// Requests in flight on one HTTP/1.1 connection (pipelining); at least 1.
    pub pipeline_depth: NonZeroU32,
    /// Requests in flight on one HTTP/2 connection, where the peer allows as many; at least 1.
    pub stream_count: NonZeroU32,
    /// How HTTP/2 begins on plain TCP.
    pub h2c: H2c,
    /// How connections are closed that the peer leaves open.
    pub close: CloseMode,
    /// HTTP/2: bytes of one response that the peer may send before we have said that we read them.
    pub window_bytes: u32,
    /// HTTP/2: the same for all responses of a connection together.
    pub connection_window_bytes: u32,
    /// From the first SYN to an open TCP connection, proxy and TLS handshakes included; the same for QUIC.
    pub connect_timeout: Duration,
    /// What only connections of QUIC have.
    pub quic: QuicPolicy,
}

/// How QUIC is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuicPolicy {
    /// Congestion controller of what we send.
    pub congestion: QuicCongestion,
    /// Largest UDP payload that is sent; `None`: what the path turns out to carry, up to 1452 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_payload_bytes_max: Option<NonZeroU16>,
    /// Several datagrams are handed to the kernel as one, which cuts them (UDP GSO).
    pub segmentation: bool,
    /// Packets carry marks of explicit congestion notification, and those that come are reported (RFC 9000 13.4).
    pub ecn: bool,
    /// Each connection has a UDP socket, and so a port, of its own.
    pub socket_per_connection: bool,
    /// The server is asked to acknowledge at the latest every so many packets; `None`: what it does unasked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_frequency: Option<NonZeroU32>,
    /// HTTP/3: the dynamic table that the server may fill (RFC 9204 3.2); 0: none.
    pub table_bytes: u32,
    /// Open connections get another local address this often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_interval: Option<Duration>,
    /// What happens on the first connections is written to files here (qlog).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qlog_dir: Option<PathBuf>,
}

/// A congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuicCongestion {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// BBR.
    Bbr,
    /// NewReno (RFC 9002).
    NewReno,
}

impl Default for QuicPolicy {
    fn default() -> Self {
        Self {
            congestion: QuicCongestion::Cubic,
            udp_payload_bytes_max: None,
            segmentation: true,
            ecn: true,
            socket_per_connection: false,
            ack_frequency: None,
            table_bytes: 0,
            migration_interval: None,
            qlog_dir: None,
        }
    }
}

/// How HTTP/2 begins on plain TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum H2c {
    /// With its first byte: the server is known to speak it (RFC 9113 3.3).
    Prior,
    /// With a request of HTTP/1.1, `OPTIONS *`, that asks for it (RFC 7540 3.2).
    Upgrade,
}

/// Where packets go and come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Network {
    /// Fixed addresses for names (`--resolve HOST:PORT:ADDRESS`).
    pub resolve: Vec<ResolveRule>,
    /// Dial elsewhere, keeping `Host` and SNI (`--connect-to HOST:PORT:HOST:PORT`).
    pub connect_to: Vec<ConnectToRule>,
    /// Dial this Unix socket whatever the URL says.
    pub unix_socket: Option<PathBuf>,
    /// Local addresses used in rotation; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// HTTP proxy: `CONNECT` for `https`, absolute-form for `http`.
    pub proxy: Option<Proxy>,
}

/// `--resolve HOST:PORT:ADDRESS[,ADDRESS]`, as in curl. `None` stands for `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRule {
    /// Name to match.
    pub host: Option<String>,
    /// Port to match.
    pub port: Option<u16>,
    /// Addresses to use, in rotation.
    pub addresses: Vec<IpAddr>,
}

/// `--connect-to HOST1:PORT1:HOST2:PORT2`, as in curl. `None` stands for an empty part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectToRule {
    /// Host of the URL to match.
    pub from_host: Option<String>,
    /// Port of the URL to match.
    pub from_port: Option<u16>,
    /// Host to dial instead.
    pub to_host: Option<String>,
    /// Port to dial instead.
    pub to_port: Option<u16>,
}

/// An HTTP proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `Proxy-Authorization` value, made from the proxy URL's user information. A secret.
    pub authorization: Option<String>,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPolicy {
    /// Do not verify the server's certificate at all.
    pub insecure: bool,
    /// Trust these PEM files instead of the system's store.
    pub ca_files: Vec<PathBuf>,
    /// PEM files of the client's certificate chain and key.
    pub client_identity: Option<ClientIdentity>,
    /// Versions offered.
    pub versions: TlsVersions,
    /// Cipher suites offered, by IANA name, in order; empty: the library's defaults.
    pub ciphers: Vec<String>,
    /// Server name sent and verified instead of the URL's host.
    pub sni: Option<String>,
    /// ALPN protocols offered, in order; empty: those that belong to the HTTP version.
    pub alpn: Vec<String>,
    /// Key-exchange groups offered, by IANA name, in order; empty: X25519, secp256r1 and secp384r1.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Secrets of each session are appended to this file, in NSS key-log format, so that a capture can be read.
    #[serde(default)]
    pub key_log: Option<PathBuf>,
}

/// The client's certificate (mTLS).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// PEM file with the certificate chain.
    pub cert_file: PathBuf,
    /// PEM file with the private key.
    pub key_file: PathBuf,
}

/// TLS versions offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    Any,
    /// 1.2 only.
    Tls12,
    /// 1.3 only.
    Tls13,
}

impl Default for Expect {
    fn default() -> Self {
        Self { status: vec![(200, 399)], body: ExpectBody::Any }
    }
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self {
            insecure: false,
            ca_files: Vec::new(),
            client_identity: None,
            versions: TlsVersions::Any,
            ciphers: Vec::new(),
            sni: None,
            alpn: Vec::new(),
            groups: Vec::new(),
            key_log: None,
        }
    }
}

impl Default for ConnectionPolicy {
    fn default() -> Self {
        Self {
            request_count_max: None,
            age_max: None,
            pipeline_depth: NonZeroU32::MIN,
            stream_count: NonZeroU32::MIN,
            h2c: H2c::Prior,
            close: CloseMode::Notify,
            window_bytes: WINDOW_BYTES_DEFAULT,
            connection_window_bytes: WINDOW_BYTES_DEFAULT,
            connect_timeout: Duration::from_secs(10),
            quic: QuicPolicy::default(),
        }
    }
}
