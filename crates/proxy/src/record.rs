//! The proxy that records: in front of one server (reverse), or of all (forward, with CONNECT).
//!
//! What passes is passed on as it comes and copied on the way. A record is written when its response has ended, in one piece, so that
//! a crash costs what was under way and nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper::body::Incoming;
use hyper::header::{
    ALT_SVC, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue,
    UPGRADE,
};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ClientConfig;
use squall_http3::RequestBody;
use squall_plan::files;
use squall_plan::limits::PEM_FILE_BYTES_MAX;
use squall_traffic::limits::LOADED_BODY_BYTES_MAX;
use squall_traffic::redact::{Redactor, Rules};
use squall_traffic::store::{Index, Writer};
use squall_traffic::{Field, Record, Redirect, Scheme, SessionBy, Sessions, Version, key_of};
use tokio::net::TcpStream;

use crate::body::{Carried, EventTimes, Passage, Tap, Tapped};
use crate::listener::{HEAD_TIMEOUT, Listener, speaks_tls};
use crate::names::ServerNames;
use crate::upstream::{ClientTls, Server, Upstream, Wanted};
use crate::websocket::{Budget, Conversation};
use crate::{Authority, Error, tunnel};

/// What the proxy is in front of.
#[derive(Debug, Clone)]
pub enum Role {
    /// One server, and what the paths of requests begin with there.
    Reverse(Redirect),
    /// Whichever server the client names.
    Forward,
}

/// How to record.
#[derive(Debug)]
pub struct RecordOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What is behind.
    pub role: Role,
    /// Vouches for the proxy where clients speak TLS to it.
    pub authority: Option<Arc<Authority>>,
    /// In front of one server: speak HTTP/3 too, on the UDP port of the same number, and announce it to other clients. Needs `authority`.
    pub http3: bool,
    /// Trust these (PEM) instead of the system's certificates.
    pub ca_files: Vec<PathBuf>,
    /// Do not verify servers.
    pub insecure: bool,
    /// The recording; it is appended to where it is there.
    pub output: PathBuf,
    /// How secrets are replaced; `None`: they are written as they are.
    pub redaction: Option<Rules>,
    /// What identifies a client.
    pub session_by: SessionBy,
    /// Of a longer body only the length is kept. Large bodies of requests are spooled; of a response, no more is kept than fits into memory.
    pub body_bytes_max: u64,
    /// Bodies of responses are not kept, only their lengths and checksums.
    pub drops_response_bodies: bool,
    /// Only these hosts (`*.example` for all below); empty: all.
    pub only_host: Vec<String>,
    /// Only paths that begin so; empty: all.
    pub only_path: Vec<String>,
    /// Only responses of these types (`text/html`, `image/`); empty: all.
    pub only_type: Vec<String>,
}

/// A proxy that records.
#[derive(Debug)]
pub struct Recorder {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordStats {
    /// Requests that passed.
    pub passed: u64,
    /// Requests written to the recording.
    pub recorded: u64,
    /// Requests that could not be passed on.
    pub failed: u64,
    /// Connections that became something else that is no HTTP and no WebSocket: they passed, and are not recorded.
    pub upgraded: u64,
    /// Request bodies of which only the length is kept: too long, broken off, or of a content coding that secrets cannot be found in.
    pub lost_bodies: u64,
    /// Redirects to other servers, which clients of a reverse proxy follow past it.
    pub led_away: u64,
    /// WebSockets of which not all messages were recorded: they were too many, or not what the protocol allows.
    pub cut_conversations: u64,
}

/// A recording that has ended.
#[derive(Debug)]
pub struct Recorded {
    /// What is in the file.
    pub index: Index,
    /// Replaces the secrets in it that were found later than they were written.
    pub redactor: Option<Redactor>,
    /// What was recorded in all.
    pub stats: RecordStats,
}

/// What needs a look at all records in their order.
#[derive(Debug)]
struct Book {
    writer: Option<Writer>,
    sessions: Sessions,
}

#[derive(Debug)]
struct Shared {
    options: RecordOptions,
    tls: ClientTls,
    redactor: Option<Redactor>,
    book: Mutex<Book>,
    passed: AtomicU64,
    recorded: AtomicU64,
    failed: AtomicU64,
    upgraded: AtomicU64,
    upgraded_by_host: Mutex<BTreeMap<String, u64>>,
    lost_bodies: AtomicU64,
    led_away: AtomicU64,
    cut_conversations: AtomicU64,
    budget: Arc<Budget>,
    quic_count: AtomicU64,
    /// What clients are told of HTTP/3, where it is spoken.
    alt_svc: OnceLock<HeaderValue>,
}

/// One connection of a client.
struct Client {
    shared: Arc<Shared>,
    id: u64,
    peer: SocketAddr,
    /// Where requests go that do not say so themselves.
    server: Option<Server>,
    is_tls: bool,
    upstream: Upstream,
}

/// What is known of a request while its response is under way.
struct Half {
    shared: Arc<Shared>,
    record: Record,
    /// The client's.
    address: String,
    body: Tap,
    started: Instant,
}

impl Recorder {
    /// Listens and records.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start(options: RecordOptions) -> Result<Self, Error> {
        let output = options.output.clone();
        let is_new = !output.exists();
        let writer = if is_new { Writer::create(&output)? } else { Writer::append(&output)? };
        let started = Self::serve(options, writer);
        if started.is_err() && is_new {
            // A recording that never began is nothing to keep; where it cannot be removed, it is empty.
            let _ = fs::remove_file(&output);
        }
        started
    }

    fn serve(mut options: RecordOptions, writer: Writer) -> Result<Self, Error> {
        let sessions = Sessions::new(options.session_by.clone());
        let shared = Arc::new(Shared {
            tls: client_tls(&options.ca_files, options.insecure)?,
            redactor: options.redaction.take().map(Redactor::new),
            book: Mutex::new(Book { writer: Some(writer), sessions }),
            passed: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            upgraded: AtomicU64::new(0),
            upgraded_by_host: Mutex::default(),
            lost_bodies: AtomicU64::new(0),
            led_away: AtomicU64::new(0),
            cut_conversations: AtomicU64::new(0),
            budget: Arc::default(),
            quic_count: AtomicU64::new(0),
            alt_svc: OnceLock::new(),
            options,
        });
        let listen = shared.options.listen;
        let (serving, serving_quic) = (Arc::clone(&shared), Arc::clone(&shared));
        let quic = match &shared.options.authority {
            Some(authority) if shared.options.http3 => Some(authority.quic_config(listen.ip().to_string())?),
            _ => None,
        };
        let listener = Listener::start(
            listen,
            move |stream, peer, id| serve(Arc::clone(&serving), stream, peer, id),
            quic.map(|config| (config, move |incoming| serve_quic(Arc::clone(&serving_quic), incoming))),
        )?;
        if let Some(value) = listener.alt_svc(shared.options.http3) {
            // It is set here alone.
            let _ = shared.alt_svc.set(value);
        }
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The certificate authority that clients must trust.
    pub fn authority(&self) -> Option<&Authority> {
        self.shared.options.authority.as_deref()
    }

    /// What was recorded so far.
    pub fn stats(&self) -> RecordStats {
        self.shared.stats()
    }

    /// How many connections became something that is not recorded, by host.
    pub fn upgraded_by_host(&self) -> BTreeMap<String, u64> {
        self.shared.upgraded_by_host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops, and closes the recording. What is still open then, such as a WebSocket, is recorded up to this moment.
    ///
    /// # Errors
    /// When the recording cannot be closed.
    pub fn stop(self) -> Result<Recorded, Error> {
        let Self { listener, shared } = self;
        listener.stop();
        let writer = shared.book.lock().unwrap_or_else(PoisonError::into_inner).writer.take();
        let index = writer.map(Writer::finish).transpose()?.unwrap_or_default();
        let stats = shared.stats();
        // A connection that has not ended yet records nothing any more.
        let redactor = Arc::into_inner(shared).and_then(|shared| shared.redactor);
        Ok(Recorded { index, redactor, stats })
    }

    /// What a user must do to record, a line each.
    pub fn instructions(&self) -> String {
        let mut text = String::new();
        let address = self.address();
        match (&self.shared.options.role, self.authority()) {
            (Role::Reverse(server), _) => {
                let _ = writeln!(
                    text,
                    "send requests for {}{} to http://{address}/",
                    server.origin(),
                    server.prefix
                );
                if let Some(ca) = self.authority().filter(|_| self.shared.options.http3) {
                    let _ = writeln!(text, "or to https://{address}/, in HTTP/3 too");
                    let _ = writeln!(text, "for https, let clients trust {}", ca.pem_path().display());
                }
            }
            (Role::Forward, Some(ca)) => {
                let _ = writeln!(text, "set http://{address} as HTTP and HTTPS proxy");
                let _ = writeln!(text, "for https, let clients trust {}", ca.pem_path().display());
                let _ = writeln!(
                    text,
                    "  curl --proxy http://{address} --cacert {} URL",
                    ca.pem_path().display()
                );
            }
            (Role::Forward, None) => {
                let _ = writeln!(text, "set http://{address} as HTTP proxy");
            }
        }
        text
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr, id: u64) {
    let server = shared.options.role.server();
    let tls = shared.options.authority.as_ref().filter(|_| server.is_some());
    let client = |is_tls| Client::new(&shared, id, peer, server.clone(), is_tls);
    match tls {
        Some(authority) if speaks_tls(&stream).await.unwrap_or(false) => {
            if let Some(stream) = tunnel::accept(authority, stream).await {
                serve_http(client(true), stream).await;
            }
        }
        _ => serve_http(client(false), stream).await,
    }
}

/// Serves a connection of QUIC until it ends.
async fn serve_quic(shared: Arc<Shared>, incoming: squall_http3::Incoming) {
    let peer = incoming.remote_address();
    let id = QUIC_ID | shared.quic_count.fetch_add(1, Relaxed);
    let client = Client::new(&shared, id, peer, shared.options.role.server(), true);
    squall_http3::serve(incoming, Arc::new(client)).await;
}

impl squall_http3::Service for Client {
    type Body = Carried;

    async fn answer(self: Arc<Self>, request: Request<RequestBody>) -> Option<Response<Carried>> {
        Some(self.answer(request.map(Passage::Http3)).await)
    }

    fn head_timeout(&self) -> Duration {
        HEAD_TIMEOUT
    }
}

impl Role {
    /// The server that requests go to; `None`: each request names it.
    fn server(&self) -> Option<Server> {
        match self {
            Self::Reverse(Redirect { scheme, authority, .. }) => {
                Some(Server { scheme: *scheme, authority: authority.clone() })
            }
            Self::Forward => None,
        }
    }
}

/// Serves HTTP on a stream until it ends. Boxed, because a tunnel is served by the same function.
fn serve_http<S>(client: Client, stream: S) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    Box::pin(async move {
        let client = Arc::new(client);
        let service = service_fn(move |request: Request<Incoming>| {
            let client = Arc::clone(&client);
            let request = request.map(Passage::Http);
            async move { Ok::<_, std::convert::Infallible>(client.answer(request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().preserve_header_case(true);
        // What a client breaks is the client's business.
        let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    })
}

impl Client {
    fn new(shared: &Arc<Shared>, id: u64, peer: SocketAddr, server: Option<Server>, is_tls: bool) -> Self {
        // Who set up a reverse proxy has named its server; a forward proxy goes wherever its clients say.
        let guard = match &shared.options.role {
            Role::Reverse { .. } => None,
            Role::Forward => Some(shared.options.only_host.clone()),
        };
        let upstream = Upstream::new(shared.tls.clone(), guard);
        Self { shared: Arc::clone(shared), id, peer, server, is_tls, upstream }
    }

    async fn answer(self: Arc<Self>, request: Request<Passage>) -> Response<Carried> {
        if request.method() == Method::CONNECT {
            return self.tunnel(request);
        }
        let answered = match becomes_something_else(request.headers()) {
            true => self.pass_upgrade(request).await,
            false => self.pass(request).await,
        };
        let counter = if answered.is_ok() { &self.shared.passed } else { &self.shared.failed };
        counter.fetch_add(1, Relaxed);
        answered
            .unwrap_or_else(|reason| refuse(StatusCode::BAD_GATEWAY, format!("squall record: {reason}\n")))
    }

    /// A WebSocket, say: once both sides have agreed, bytes pass untouched. Of a WebSocket, a copy of its messages is recorded.
    async fn pass_upgrade(&self, mut request: Request<Passage>) -> Result<Response<Carried>, String> {
        let server = self.server_of(&request)?;
        self.name_server(&mut request)?;
        let is_web_socket = is_web_socket(request.headers());
        let half = is_web_socket.then(|| self.half(&request, &server));
        let of_client = hyper::upgrade::on(&mut request);
        let (mut parts, incoming) = request.into_parts();
        keep_upgrade_alone(&mut parts.headers);
        let outgoing = Request::from_parts(parts, Carried::Passing(incoming, Tap::default()));
        let mut response = self.upstream.send_upgrade(&server, outgoing).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let half = half.filter(|half| self.shared.options.wants(&half.record, ""));
            let conversation = half.map(|half| half.converse(&response));
            if !is_web_socket {
                self.shared.count_upgrade(&server);
            }
            let of_server = hyper::upgrade::on(&mut response);
            tokio::spawn(async move {
                let Some(conversation) = conversation else {
                    return pass_between(of_client, of_server).await;
                };
                let (Ok(client), Ok(server)) = (of_client.await, of_server.await) else { return };
                conversation.pass(client, server).await;
            });
        }
        let (mut parts, incoming) = response.into_parts();
        keep_upgrade_alone(&mut parts.headers);
        Ok(Response::from_parts(parts, Carried::Passing(Passage::Http(incoming), Tap::default())))
    }

    /// The client's tunnel ends here: what it sends through it is TLS, with the server's name on our certificate.
    fn tunnel(self: Arc<Self>, request: Request<Passage>) -> Response<Carried> {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let (Role::Forward, Some(authority)) = (&self.shared.options.role, authority) else {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "this is not a forward proxy\n".to_owned());
        };
        tokio::spawn(async move {
            let Some(ca) = &self.shared.options.authority else { return };
            let Some(stream) = tunnel::accept_in(ca, request, &authority).await else { return };
            let authority = authority.strip_suffix(":443").unwrap_or(&authority).to_owned();
            let server = Some(Server { scheme: Scheme::Https, authority });
            serve_http(Self::new(&self.shared, self.id, self.peer, server, true), stream).await;
        });
        Response::new(Carried::none())
    }

    async fn pass(&self, mut request: Request<Passage>) -> Result<Response<Carried>, String> {
        let server = self.server_of(&request)?;
        join_cookies(request.headers_mut());
        drop_connection_fields(request.headers_mut());
        let proxy = self.name_server(&mut request)?;
        let half = self.half(&request, &server);
        let body = half.body.clone();
        let wanted = match request.version() {
            hyper::Version::HTTP_2 | hyper::Version::HTTP_3 if self.is_tls => Wanted::Http2,
            hyper::Version::HTTP_2 => Wanted::Http2Plain,
            _ => Wanted::Http1,
        };
        let (parts, incoming) = request.into_parts();
        let outgoing = Request::from_parts(parts, Carried::Passing(incoming, body));
        let response = self.upstream.send(&server, wanted, outgoing).await?;
        let mut response = half.finish(response);
        self.announce(response.headers_mut());
        if let (Some(proxy), Role::Reverse(server)) = (proxy, &self.shared.options.role) {
            let leads_away = ServerNames { proxy, server }.to_client(response.headers_mut());
            self.shared.led_away.fetch_add(u64::from(leads_away), Relaxed);
        }
        Ok(response)
    }

    /// What a server announces would lead clients past the proxy.
    fn announce(&self, headers: &mut HeaderMap) {
        headers.remove(ALT_SVC);
        if let Some(value) = self.shared.alt_svc.get().filter(|_| self.is_tls) {
            headers.insert(ALT_SVC, value.clone());
        }
    }

    /// In front of one server: makes of a request to the proxy one to the server. How the client calls the proxy.
    fn name_server(&self, request: &mut Request<Passage>) -> Result<Option<String>, String> {
        let Role::Reverse(server) = &self.shared.options.role else { return Ok(None) };
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let named = named.or_else(|| Some(request.headers().get(HOST)?.to_str().ok()?.to_owned()));
        let scheme = if self.is_tls { "https" } else { "http" };
        let target = server.target(path).parse().map_err(|error| format!("{path}: {error}"))?;
        *request.uri_mut() = target;
        let proxy = named.map(|authority| format!("{scheme}://{authority}"));
        if let Some(proxy) = proxy.clone() {
            ServerNames { proxy, server }.to_server(request.headers_mut());
        }
        Ok(proxy)
    }

    fn server_of(&self, request: &Request<Passage>) -> Result<Server, String> {
        if let Some(server) = &self.server {
            return Ok(server.clone());
        }
        let uri = request.uri();
        match (uri.scheme_str().and_then(Scheme::of), uri.authority()) {
            (Some(scheme), Some(authority)) => {
                let authority = authority.as_str().rsplit('@').next().unwrap_or_default().to_owned();
                Ok(Server { scheme, authority })
            }
            _ => Err("the request names no server: set this proxy as the client's HTTP proxy".to_owned()),
        }
    }

    fn half(&self, request: &Request<Passage>, server: &Server) -> Half {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut record = Record {
            time_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            connection: key_of(format!("{}#{}", self.peer, self.id).as_bytes()),
            ..Record::default()
        };
        record.request.method = request.method().as_str().to_owned();
        record.request.scheme = server.scheme;
        record.request.authority = server.authority.clone();
        record.request.target = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        record.request.version = version_of(request.version());
        record.request.headers = fields(request.headers());
        record.request.drop_connection_fields();
        let folder = self.shared.options.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
        let body = Tap::up_to(self.shared.options.body_bytes_max, folder);
        let address = self.peer.ip().to_string();
        Half { shared: Arc::clone(&self.shared), record, address, body, started: Instant::now() }
    }
}

impl Half {
    /// The response on its way to the client; when it has ended, the record is written.
    fn finish(mut self, response: Response<Incoming>) -> Response<Carried> {
        let (mut parts, incoming) = response.into_parts();
        drop_connection_fields(&mut parts.headers);
        let answer = squall_traffic::Response {
            status: parts.status.as_u16(),
            version: version_of(parts.version),
            headers: fields(&parts.headers),
            ..squall_traffic::Response::default()
        };
        let is_coded = parts.headers.contains_key(CONTENT_ENCODING);
        let content_type =
            parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_wanted = self.shared.options.wants(&self.record, content_type);
        let has_events = content_type.starts_with("text/event-stream") && !is_coded;
        let events = has_events.then(|| EventTimes::since(self.started));
        let bytes_max = self.shared.options.body_bytes_max.min(LOADED_BODY_BYTES_MAX);
        let tap = Tap::at_end(bytes_max, events, move |tapped| {
            if is_wanted {
                self.record.response = Some(answer);
                self.write(tapped);
            }
        });
        if http_body::Body::is_end_stream(&incoming) {
            // Nobody asks for a body that is empty, and the client may go on as soon as it has the head.
            tap.end(true);
        }
        Response::from_parts(parts, Carried::Passing(Passage::Http(incoming), tap))
    }

    /// The server has agreed to a WebSocket; when that has ended, the record is written.
    fn converse(mut self, response: &Response<Incoming>) -> Conversation {
        let of_handshake = |field: &Field| HANDSHAKE_FIELDS.iter().any(|name| field.is(name));
        let mut headers = fields(response.headers());
        let extensions = headers.iter().find(|field| field.is("sec-websocket-extensions"));
        let extensions = extensions.map(|field| String::from_utf8_lossy(&field.value).into_owned());
        headers.retain(|field| !of_handshake(field) && !field.is("connection") && !field.is("upgrade"));
        self.record.request.headers.retain(|field| !of_handshake(field));
        let answer = squall_traffic::Response {
            status: response.status().as_u16(),
            version: version_of(response.version()),
            headers,
            ..squall_traffic::Response::default()
        };
        let (started, budget) = (self.started, Arc::clone(&self.shared.budget));
        Conversation::new(extensions.as_deref(), started, budget, move |messages, is_cut| {
            self.shared.cut_conversations.fetch_add(u64::from(is_cut), Relaxed);
            self.record.response = Some(squall_traffic::Response { messages, ..answer });
            self.write(&mut Tapped::default());
        })
    }

    fn write(&mut self, answered: &mut Tapped) {
        let options = &self.shared.options;
        self.body.take().give_to(&mut self.record.request);
        if let Some(response) = &mut self.record.response {
            response.latency_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
            if answered.is_whole() {
                response.set_body(std::mem::take(&mut answered.bytes));
                response.event_times_ns = answered.take_event_times();
            }
            response.body_bytes = answered.length;
        }
        // Bodies are still needed to tell sessions apart.
        let drops_response_body = options.drops_response_bodies;
        self.shared.write(&mut self.record, &self.address, drops_response_body);
    }
}

impl Shared {
    fn stats(&self) -> RecordStats {
        RecordStats {
            passed: self.passed.load(Relaxed),
            recorded: self.recorded.load(Relaxed),
            failed: self.failed.load(Relaxed),
            upgraded: self.upgraded.load(Relaxed),
            lost_bodies: self.lost_bodies.load(Relaxed),
            led_away: self.led_away.load(Relaxed),
            cut_conversations: self.cut_conversations.load(Relaxed),
        }
    }

    fn count_upgrade(&self, server: &Server) {
        self.upgraded.fetch_add(1, Relaxed);
        let mut hosts = self.upgraded_by_host.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < HOST_COUNT_MAX || hosts.contains_key(&server.authority) {
            *hosts.entry(server.authority.clone()).or_default() += 1;
        }
    }

    fn write(&self, record: &mut Record, address: &str, drops_response_body: bool) {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).sessions.assign(record, address);
        if let Some(redactor) = &self.redactor {
            redactor.redact(record);
        }
        if let Some(response) = record.response.as_mut().filter(|_| drops_response_body) {
            response.drop_body();
        }
        self.lost_bodies.fetch_add(u64::from(record.request.lost_body_bytes > 0), Relaxed);
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = book.writer.as_mut() else { return };
        match writer.write(record).and_then(|()| writer.flush()) {
            Ok(()) => self.recorded.fetch_add(1, Relaxed),
            Err(_) => self.failed.fetch_add(1, Relaxed),
        };
    }
}

impl RecordOptions {
    fn wants(&self, record: &Record, content_type: &str) -> bool {
        let type_fits = |wanted: &String| content_type.starts_with(wanted.as_str());
        record.is_to(&self.only_host, &self.only_path)
            && (self.only_type.is_empty() || self.only_type.iter().any(type_fits))
    }
}

/// RFC 6455 4.2.1.
pub(crate) fn is_web_socket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// What two ends of one connection agree on, which a replay does anew. The offer of extensions and subprotocols stays in the request.
const HANDSHAKE_FIELDS: [&str; 3] = ["sec-websocket-key", "sec-websocket-accept", "sec-websocket-version"];

/// Whether the client wants to leave HTTP. An offer of HTTP/2 ([RFC 7540] section 3.2), which some clients make with each request,
/// may be passed over.
///
/// [RFC 7540]: https://www.rfc-editor.org/rfc/rfc7540
fn becomes_something_else(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|protocol| !protocol.as_bytes().eq_ignore_ascii_case(b"h2c"))
}

fn fields(headers: &HeaderMap) -> Vec<Field> {
    headers.iter().map(|(name, value)| Field::new(name.as_str(), value.as_bytes())).collect()
}

fn version_of(version: hyper::Version) -> Version {
    match version {
        hyper::Version::HTTP_10 => Version::Http10,
        hyper::Version::HTTP_2 => Version::Http2,
        hyper::Version::HTTP_3 => Version::Http3,
        _ => Version::Http11,
    }
}

/// RFC 9113 8.2.3: HTTP/2 may split the field; elsewhere, and in a recording, it is one.
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(COOKIE, whole);
    }
}

/// RFC 9110 7.6.1: what belongs to this connection, and what its `Connection` names as such.
fn drop_connection_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    const NAMES: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "te",
        "upgrade",
        "http2-settings",
    ];
    for name in NAMES {
        headers.remove(HeaderName::from_static(name));
    }
}

/// The same, but for what asks for, or agrees to, another protocol (RFC 9110 7.8).
pub(crate) fn keep_upgrade_alone(headers: &mut HeaderMap) {
    let protocol = headers.get(UPGRADE).cloned();
    drop_connection_fields(headers);
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Carries bytes both ways between a client and a server that have left HTTP. Either end breaks it off.
pub(crate) async fn pass_between(of_client: OnUpgrade, of_server: OnUpgrade) {
    let (Ok(client), Ok(server)) = (of_client.await, of_server.await) else { return };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

pub(crate) fn refuse(status: StatusCode, text: String) -> Response<Carried> {
    let mut response = Response::new(Carried::of(text));
    *response.status_mut() = status;
    response
}

/// Verifies servers as any client does, by default.
pub(crate) fn client_tls(ca_files: &[PathBuf], insecure: bool) -> Result<ClientTls, Error> {
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let tls = |error: &dyn std::fmt::Display| crate::authority::tls("set TLS up", error);
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(&error))?;
    if insecure {
        let verifier = Arc::new(Unverified(default_provider()));
        return Ok(ClientTls::new(
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
        ));
    }
    let mut roots = rustls::RootCertStore::empty();
    if ca_files.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for path in ca_files {
        let text = files::read(path, PEM_FILE_BYTES_MAX)
            .map_err(|source| Error::File { path: path.to_owned(), source })?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            roots.add(certificate.map_err(|error| tls(&error))?).map_err(|error| tls(&error))?;
        }
    }
    Ok(ClientTls::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Takes any certificate: the user turned verification off by name.
#[derive(Debug)]
struct Unverified(rustls::crypto::CryptoProvider);

impl rustls::client::danger::ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &rustls::pki_types::CertificateDer<'_>,
        _intermediates: &[rustls::pki_types::CertificateDer<'_>],
        _server_name: &rustls::pki_types::ServerName<'_>,
        _ocsp: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &rustls::pki_types::CertificateDer<'_>,
        _dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &rustls::pki_types::CertificateDer<'_>,
        _dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Marks the numbers of connections of QUIC.
const QUIC_ID: u64 = 1 << 63;

/// Hosts of such connections that are counted by themselves; a client may ask for any name.
const HOST_COUNT_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    use squall_traffic::store::{RecordView, Recording};

    use super::*;

    /// What a server sends before it closes, and whether the client waits for that.
    struct Exchange {
        answer: String,
        client_leaves: bool,
        is_whole: bool,
    }

    #[test]
    fn bodies_that_broke_off_are_not_kept() {
        let body = "~".repeat(30_000);
        let promised = |bytes| format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n{body}");
        let chunked = |end| {
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n{end}", 30_000)
        };
        for (answer, client_leaves, is_whole) in [
            (promised(30_000), false, true),
            (promised(100_000), false, false),
            (promised(100_000), true, false),
            (chunked("0\r\n\r\n"), false, true),
            (chunked(""), false, false),
            (chunked(""), true, false),
        ] {
            let exchange = Exchange { answer, client_leaves, is_whole };
            let response = recorded(&exchange).response.unwrap();
            let kept = exchange.is_whole.then(|| body.clone().into_bytes());
            assert_eq!((response.status, response.body_bytes), (200, 30_000));
            assert!(response.body == kept, "{client_leaves} {:.80}", exchange.answer);
        }
    }

    /// A client goes on as soon as it has a head without a body: what it sends then must not seem to overlap with the request before.
    #[test]
    fn an_empty_response_has_ended_when_the_client_has_its_head() {
        let folder = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let output = folder.path().join("r.squall");
        let recorder = Recorder::start(options(server.local_addr().unwrap(), &output)).unwrap();
        let mut client = BufReader::new(TcpStream::connect(recorder.address()).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = server.accept().unwrap();
                for _ in 0..REQUEST_COUNT {
                    read_head(&mut stream);
                    stream.write_all(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n").unwrap();
                }
            });
            for nth in 1..=REQUEST_COUNT {
                client.get_mut().write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
                read_head(&mut client);
                assert_eq!(recorder.stats().recorded, nth);
            }
        });
        recorder.stop().unwrap();
    }

    const REQUEST_COUNT: u64 = 200;

    /// What the recorder says of a WebSocket that is open when it stops, with this field in the server's answer.
    fn open_at_the_end(field: &str, only_type: &[&str]) -> (RecordStats, u64) {
        let folder = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = RecordOptions {
            only_type: only_type.iter().map(|wanted| (*wanted).to_owned()).collect(),
            ..options(server.local_addr().unwrap(), &folder.path().join("r.squall"))
        };
        let recorder = Recorder::start(wanted).unwrap();
        let mut client = TcpStream::connect(recorder.address()).unwrap();
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\n";
        write!(client, "GET / HTTP/1.1\r\nhost: x\r\n{upgrade}\r\n").unwrap();
        let (mut stream, _) = server.accept().unwrap();
        read_head(&mut stream);
        write!(stream, "HTTP/1.1 101 Switching Protocols\r\n{upgrade}{field}\r\n\x01\x02hi").unwrap();
        read_head(&mut client);
        client.read_exact(&mut [0; 4]).unwrap();
        let recorded = recorder.stop().unwrap();
        (recorded.stats, recorded.index.record_count)
    }

    #[test]
    fn websockets_that_are_open_when_the_recorder_stops_are_counted() {
        for (field, only_type, counts) in [
            ("", &[][..], (1, 0, 0)),
            ("sec-websocket-extensions: x-other\r\n", &[], (1, 1, 0)),
            ("", &["text/html"], (0, 0, 0)),
        ] {
            let (stats, record_count) = open_at_the_end(field, only_type);
            assert_eq!((stats.recorded, stats.cut_conversations, stats.upgraded), counts, "{field}");
            assert_eq!(record_count, stats.recorded, "{field}");
        }
    }

    #[test]
    fn fields_of_one_connection_are_not_passed_on() {
        let of = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let field = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(field).collect()
        };
        let given = of(&[
            ("connection", "Upgrade, X-Hop, close"),
            ("connection", "x-other"),
            ("x-hop", "1"),
            ("x-other", "2"),
            ("x-end", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authenticate", "Basic realm=a"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("http2-settings", "AAMAAABk"),
        ]);
        let (mut plain, mut upgrade) = (given.clone(), given);
        drop_connection_fields(&mut plain);
        keep_upgrade_alone(&mut upgrade);
        assert_eq!(plain, of(&[("x-end", "3")]));
        assert_eq!(upgrade, of(&[("x-end", "3"), ("upgrade", "websocket"), ("connection", "upgrade")]));
    }

    /// By a request, and by one that asks for another protocol.
    #[test]
    fn a_forward_proxy_does_not_reach_metadata_services() {
        let folder = tempfile::tempdir().unwrap();
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let options = options(anywhere, &folder.path().join("r.squall"));
        let recorder = Recorder::start(RecordOptions { role: Role::Forward, ..options }).unwrap();
        for (host, upgrade) in [
            ("169.254.169.254", ""),
            ("[::ffff:169.254.169.254]", ""),
            ("169.254.169.254", "upgrade: websocket\r\nconnection: upgrade\r\n"),
        ] {
            let mut client = TcpStream::connect(recorder.address()).unwrap();
            write!(client, "GET http://{host}/latest/ HTTP/1.1\r\nhost: {host}\r\n{upgrade}\r\n").unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let (mut reader, mut answer) = (BufReader::new(client), String::new());
            while !answer.contains(&format!("`--only-host {}", host.trim_matches(['[', ']']))) {
                assert!(reader.read_line(&mut answer).unwrap() > 0, "{host}: {answer}");
            }
            assert!(answer.starts_with("HTTP/1.1 502 "), "{host}: {answer}");
        }
        recorder.stop().unwrap();
    }

    /// The record of an exchange through the proxy.
    fn recorded(exchange: &Exchange) -> Record {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("r.squall");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Recorder::start(options(server.local_addr().unwrap(), &output)).unwrap();
        let client = TcpStream::connect(recorder.address()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| serve_one(&server, exchange));
            ask_one(client, exchange);
            while recorder.stats().recorded == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        });
        recorder.stop().unwrap();
        let mut cursor = Recording::open(&output).unwrap().cursor(1 << 16);
        let frame = cursor.peek().unwrap().unwrap();
        RecordView::read(cursor.take(&frame).unwrap()).unwrap().record(&frame)
    }

    fn serve_one(server: &TcpListener, exchange: &Exchange) {
        let (mut stream, _) = server.accept().unwrap();
        read_head(&mut stream);
        stream.write_all(exchange.answer.as_bytes()).unwrap();
        if !exchange.client_leaves {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        // Until the proxy closes.
        let _ = stream.read_to_end(&mut Vec::new());
    }

    fn read_head(stream: &mut impl Read) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
    }

    fn ask_one(mut client: TcpStream, exchange: &Exchange) {
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        if exchange.client_leaves {
            let of_body =
                BufReader::new(client).bytes().filter(|byte| byte.as_ref().is_ok_and(|byte| *byte == b'~'));
            assert_eq!(of_body.take(30_000).count(), 30_000);
        } else {
            // A body that breaks off may end in a reset.
            let _ = client.read_to_end(&mut Vec::new());
        }
    }

    fn options(server: SocketAddr, output: &Path) -> RecordOptions {
        RecordOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            role: Role::Reverse(Redirect {
                scheme: Scheme::Http,
                authority: server.to_string(),
                prefix: String::new(),
            }),
            authority: None,
            http3: false,
            ca_files: Vec::new(),
            insecure: true,
            output: output.to_owned(),
            redaction: None,
            session_by: SessionBy::Auto,
            body_bytes_max: 1 << 20,
            drops_response_bodies: false,
            only_host: Vec::new(),
            only_path: Vec::new(),
            only_type: Vec::new(),
        }
    }
}
