//! A server that answers as recorded: for the dependencies of a system under test, in their place or as their HTTP proxy.
//!
//! A request is answered by the recorded one that is most like it ([`Likeness`]). Several answers to the same request are given in turn. An
//! answer to a request that is not the same is counted apart, and named. What nothing is like is a miss: 404, or passed through.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use hyper::header::{
    ALT_SVC, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue,
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use squall_http3::RequestBody;
use squall_traffic::limits::RECORD_BYTES_MAX;
use squall_traffic::store::{RecordView, Recording};
use squall_traffic::{Record, Scheme, events_of};
use squall_wire::ws::deflate::Params;
use squall_wire::ws::handshake;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::body::{Carried, Paced, Passage, Tap};
use crate::listener::{HEAD_TIMEOUT, Listener, speaks_tls};
use crate::matching::{Ignored, Likeness, MatchKey, MockRequest};
use crate::playback::{MessageCounts, Playback};
use crate::record::{client_tls, is_web_socket, keep_upgrade_alone, pass_between, refuse};
use crate::upstream::{ClientTls, Server, Upstream, Wanted};
use crate::{Authority, Error, tunnel};

/// How to answer.
#[derive(Debug)]
pub struct MockOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The recorded time of each answer is multiplied by this; 0 answers at once.
    pub latency_factor: f64,
    /// Vouches for the server where clients speak TLS to it.
    pub authority: Option<Arc<Authority>>,
    /// Speak HTTP/3 too, on the UDP port of the same number, and announce it to other clients. Needs `authority`.
    pub http3: bool,
    /// Be the HTTP proxy of the clients, and answer in place of the servers that they ask.
    pub is_proxy: bool,
    /// Answer only requests that are the same as a recorded one.
    pub is_strict: bool,
    /// What is not compared.
    pub ignored: Ignored,
    /// What becomes of requests that are not in the recording.
    pub misses: Misses,
    /// Trust these (PEM) instead of the system's certificates.
    pub ca_files: Vec<PathBuf>,
    /// Do not verify servers that requests are passed through to.
    pub insecure: bool,
}

/// What becomes of requests that are not in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misses {
    /// 404.
    Refused,
    /// Sent to the server that the client asked its proxy for.
    PassedOn,
    /// Sent to this server.
    PassedTo {
        /// Scheme of the server.
        scheme: Scheme,
        /// Host and port.
        authority: String,
    },
}

/// A server that answers as recorded.
#[derive(Debug)]
pub struct Mock {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockStats {
    /// Requests answered as recorded.
    pub answered: u64,
    /// Requests answered by one that is not the same, by method, target and how they differ.
    pub inexact: BTreeMap<String, u64>,
    /// Requests that nothing in the recording is like, by method and target.
    pub misses: BTreeMap<String, u64>,
    /// Misses that a server answered.
    pub passed: u64,
    /// Messages of WebSockets that came.
    pub messages_received: u64,
    /// Messages of WebSockets that were sent.
    pub messages_sent: u64,
    /// Messages that came and are the same as none in the recording.
    pub messages_unlike: u64,
}

#[derive(Debug)]
struct Shared {
    options: MockOptions,
    recording: Recording,
    index: Index,
    tls: ClientTls,
    answered: AtomicU64,
    passed: AtomicU64,
    inexact: Kinds,
    misses: Kinds,
    messages: Arc<MessageCounts>,
    /// What clients are told of HTTP/3, where it is spoken.
    alt_svc: OnceLock<HeaderValue>,
}

/// Kinds of requests, counted.
#[derive(Debug, Default)]
struct Kinds(Mutex<BTreeMap<String, u64>>);

/// Where in the recording the answers are, by what they answer.
#[derive(Debug, Default)]
struct Index {
    answers: HashMap<MatchKey, Answers>,
    hosts: HashSet<String>,
}

/// Offsets of records that answer the same request, given in turn.
#[derive(Debug, Default)]
struct Answers {
    offsets: Vec<u64>,
    next: AtomicU64,
}

/// One connection of a client, or the tunnel that it opened.
struct Client {
    shared: Arc<Shared>,
    /// The server at the other end of the tunnel, as far as the client knows.
    server: Option<Server>,
    is_tls: bool,
    upstream: Upstream,
}

/// A WebSocket that a client wants to open.
struct Asked {
    /// The value of `Sec-WebSocket-Accept`.
    accept: String,
    extensions: String,
    subprotocols: Vec<String>,
}

/// A request as it came.
struct Question {
    server: Option<Server>,
    method: Method,
    target: String,
    /// `None`: too large to be compared.
    body: Option<Vec<u8>>,
}

impl Mock {
    /// Looks through the recording, listens and answers.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the recording cannot be read.
    pub fn start(recording: Recording, options: MockOptions) -> Result<Self, Error> {
        let index = Index::of(&recording, &options.ignored)
            .map_err(|source| Error::File { path: recording.path().to_owned(), source })?;
        let listen = options.listen;
        let shared = Arc::new(Shared {
            tls: client_tls(&options.ca_files, options.insecure)?,
            options,
            recording,
            index,
            answered: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            inexact: Kinds::default(),
            misses: Kinds::default(),
            messages: Arc::default(),
            alt_svc: OnceLock::new(),
        });
        let (serving, serving_quic) = (Arc::clone(&shared), Arc::clone(&shared));
        let quic = match &shared.options.authority {
            Some(authority) if shared.options.http3 => Some(authority.quic_config(listen.ip().to_string())?),
            _ => None,
        };
        let serve_quic =
            move |incoming| squall_http3::serve(incoming, Arc::new(Client::new(&serving_quic, None, true)));
        let listener = Listener::start(
            listen,
            move |stream, _peer, _id| serve(Arc::clone(&serving), stream),
            quic.map(|config| (config, serve_quic)),
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

    /// What was answered so far.
    pub fn stats(&self) -> MockStats {
        MockStats {
            answered: self.shared.answered.load(Relaxed),
            passed: self.shared.passed.load(Relaxed),
            inexact: self.shared.inexact.counted(),
            misses: self.shared.misses.counted(),
            messages_received: self.shared.messages.received.load(Relaxed),
            messages_sent: self.shared.messages.sent.load(Relaxed),
            messages_unlike: self.shared.messages.unlike.load(Relaxed),
        }
    }

    /// Stops.
    pub fn stop(self) -> MockStats {
        let stats = self.stats();
        self.listener.stop();
        stats
    }
}

impl Index {
    fn of(recording: &Recording, ignored: &Ignored) -> std::io::Result<Self> {
        let mut index = Self::default();
        let mut cursor = recording.cursor(INDEX_BUFFER_BYTES);
        while let Some(frame) = cursor.peek()? {
            let offset = cursor.offset();
            let Some(view) = RecordView::read(cursor.take(&frame)?) else { continue };
            if view.outcome().is_none() {
                continue;
            }
            let large = match view.spooled {
                Some(_) => recording.record_at(offset)?.map(|record| record.into_loaded()).transpose()?,
                None => None,
            };
            let body = large.as_ref().map_or(view.body, |record| &record.request.body);
            let host = without_default_port(view.authority);
            // Under its host for clients that name it, and without for those that only know the mock.
            for host in [Some(host.as_str()), None] {
                let asked = MockRequest { host, method: view.method, target: view.target, body };
                for key in ignored.keys(asked) {
                    index.answers.entry(key).or_default().offsets.push(offset);
                }
            }
            index.hosts.insert(host);
        }
        Ok(index)
    }
}

/// The same for `x:80` and `x`: the scheme is not compared.
fn without_default_port(authority: &str) -> String {
    let authority = authority.to_ascii_lowercase();
    let bare = authority.strip_suffix(":443").or_else(|| authority.strip_suffix(":80"));
    bare.unwrap_or(&authority).to_owned()
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    match &shared.options.authority {
        Some(authority) if speaks_tls(&stream).await.unwrap_or(false) => {
            if let Some(stream) = tunnel::accept(authority, stream).await {
                serve_http(Client::new(&shared, None, true), stream).await;
            }
        }
        _ => serve_http(Client::new(&shared, None, false), stream).await,
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
        let builder = auto::Builder::new(TokioExecutor::new());
        // What a client breaks is the client's business.
        let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    })
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

impl Client {
    fn new(shared: &Arc<Shared>, server: Option<Server>, is_tls: bool) -> Self {
        let upstream = Upstream::new(shared.tls.clone(), None);
        Self { shared: Arc::clone(shared), server, is_tls, upstream }
    }

    async fn answer(self: Arc<Self>, request: Request<Passage>) -> Response<Carried> {
        if request.method() == Method::CONNECT {
            return self.tunnel(request);
        }
        let alt_svc = self.shared.alt_svc.get().filter(|_| self.is_tls).cloned();
        let mut response = self.find(request).await;
        // What the recorded server announced is not here.
        response.headers_mut().remove(ALT_SVC);
        if let Some(value) = alt_svc {
            response.headers_mut().insert(ALT_SVC, value);
        }
        response
    }

    async fn find(&self, mut request: Request<Passage>) -> Response<Carried> {
        let asked = Asked::of(request.headers());
        // What comes after an answer 101, recorded or passed on.
        let upgrade = is_web_socket(request.headers()).then(|| hyper::upgrade::on(&mut request));
        let server = self.server_of(&request);
        let (parts, incoming) = request.into_parts();
        let Ok(body) = read(incoming).await else {
            return refuse(StatusCode::BAD_REQUEST, "squall mock: the body broke off\n".to_owned());
        };
        let target = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let question = Question { server, method: parts.method.clone(), target, body };
        match self.shared.find(&question) {
            Some((likeness, record)) => {
                self.shared.give(likeness, record, &question, asked.zip(upgrade)).await
            }
            None => self.miss(parts, question, upgrade).await,
        }
    }

    /// The client's tunnel ends here: what it sends through it is TLS, with the server's name on our certificate.
    fn tunnel(self: Arc<Self>, request: Request<Passage>) -> Response<Carried> {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let (true, Some(authority)) = (self.shared.options.is_proxy, authority) else {
            return refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "squall mock: this is not a proxy, see --proxy\n".to_owned(),
            );
        };
        tokio::spawn(async move {
            let Some(ca) = &self.shared.options.authority else { return };
            let Some(stream) = tunnel::accept_in(ca, request, &authority).await else { return };
            let authority = authority.strip_suffix(":443").unwrap_or(&authority).to_owned();
            let server = Some(Server { scheme: Scheme::Https, authority });
            serve_http(Self::new(&self.shared, server, true), stream).await;
        });
        Response::new(Carried::none())
    }

    /// The server that the client asks: that of its tunnel, of an absolute URL, or of `Host`.
    fn server_of(&self, request: &Request<Passage>) -> Option<Server> {
        if let Some(server) = &self.server {
            return Some(server.clone());
        }
        let scheme = request.uri().scheme_str().and_then(Scheme::of).unwrap_or_default();
        let of_uri = request.uri().authority().map(|authority| authority.as_str());
        let of_field = || request.headers().get(HOST)?.to_str().ok();
        let authority = of_uri.or_else(of_field)?.rsplit('@').next()?.to_owned();
        Some(Server { scheme, authority })
    }

    async fn miss(
        &self,
        parts: hyper::http::request::Parts,
        question: Question,
        upgrade: Option<OnUpgrade>,
    ) -> Response<Carried> {
        let what = question.shown();
        self.shared.misses.add(what.clone());
        let server = match &self.shared.options.misses {
            Misses::Refused => None,
            Misses::PassedOn => question.server,
            Misses::PassedTo { scheme, authority } => {
                Some(Server { scheme: *scheme, authority: authority.clone() })
            }
        };
        let Some(server) = server else {
            return refuse(StatusCode::NOT_FOUND, format!("squall mock: {what} is not in the recording\n"));
        };
        let Some(body) = question.body else {
            let reason = "squall mock: the body is too large to be passed through\n";
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, reason.to_owned());
        };
        let mut outgoing = Request::from_parts(parts, Carried::of(body));
        LENGTH_FIELDS.iter().for_each(|name| drop(outgoing.headers_mut().remove(*name)));
        let passed = match upgrade {
            Some(upgrade) => self.pass_upgrade(&server, outgoing, upgrade).await,
            None => self.pass(&server, outgoing).await,
        };
        self.shared.passed.fetch_add(u64::from(passed.is_ok()), Relaxed);
        passed.unwrap_or_else(|reason| refuse(StatusCode::BAD_GATEWAY, format!("squall mock: {reason}\n")))
    }

    async fn pass(&self, server: &Server, request: Request<Carried>) -> Result<Response<Carried>, String> {
        let response = self.upstream.send(server, Wanted::Http1, request).await?;
        let (mut parts, incoming) = response.into_parts();
        // The length follows from the body; it may go out by another version than it came.
        ["connection", "keep-alive", "transfer-encoding"]
            .iter()
            .for_each(|name| drop(parts.headers.remove(*name)));
        Ok(Response::from_parts(parts, Carried::Passing(Passage::Http(incoming), Tap::default())))
    }

    /// A WebSocket: once both sides have agreed, bytes pass untouched.
    async fn pass_upgrade(
        &self,
        server: &Server,
        mut request: Request<Carried>,
        of_client: OnUpgrade,
    ) -> Result<Response<Carried>, String> {
        keep_upgrade_alone(request.headers_mut());
        let mut response = self.upstream.send_upgrade(server, request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let of_server = hyper::upgrade::on(&mut response);
            tokio::spawn(pass_between(of_client, of_server));
        }
        let (mut parts, incoming) = response.into_parts();
        keep_upgrade_alone(&mut parts.headers);
        Ok(Response::from_parts(parts, Carried::Passing(Passage::Http(incoming), Tap::default())))
    }
}

impl Question {
    fn shown(&self) -> String {
        let Self { server, method, target, .. } = self;
        match server {
            Some(server) => format!("{method} {}{target}", server.authority),
            None => format!("{method} {target}"),
        }
    }

    /// The body as it is compared: one that is too large is like no recorded one.
    fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or(b"\0")
    }
}

impl Shared {
    /// The answer that is due, and how much its request is like this one.
    fn find(&self, question: &Question) -> Option<(Likeness, Record)> {
        let host = question.server.as_ref().map(|server| without_default_port(&server.authority));
        // A client that asks the mock by its own address means any host.
        let host = host.filter(|host| self.options.is_proxy || self.index.hosts.contains(host));
        // HEAD is GET without the body (RFC 9110 9.3.2).
        let methods = [question.method.as_str(), "GET"];
        let methods = &methods[..if question.method == Method::HEAD { 2 } else { 1 }];
        let keys = methods.iter().map(|method| {
            let asked = MockRequest {
                host: host.as_deref(),
                method,
                target: &question.target,
                body: question.body(),
            };
            self.options.ignored.keys(asked)
        });
        let keys: Vec<[MatchKey; 4]> = keys.collect();
        let levels = if self.options.is_strict { &Likeness::ALL[..1] } else { &Likeness::ALL[..] };
        let mut ranked = levels
            .iter()
            .enumerate()
            .flat_map(|(nth, level)| keys.iter().map(move |keys| (*level, keys[nth])));
        let (likeness, answers) =
            ranked.find_map(|(level, key)| Some((level, self.index.answers.get(&key)?)))?;
        let nth = answers.next.fetch_add(1, Relaxed) as usize % answers.offsets.len();
        let record = self.recording.record_at(answers.offsets[nth]).ok().flatten()?;
        Some((likeness, record))
    }

    async fn give(
        &self,
        likeness: Likeness,
        mut record: Record,
        question: &Question,
        asked: Option<(Asked, OnUpgrade)>,
    ) -> Response<Carried> {
        let is_web_socket = record.opens_web_socket();
        if is_web_socket && asked.is_none() {
            self.misses.add(question.shown());
            let reason = "squall mock: a WebSocket is recorded here, and this request opens none\n";
            let mut response = refuse(StatusCode::UPGRADE_REQUIRED, reason.to_owned());
            // RFC 6455 4.4: the version that is spoken.
            let version = HeaderValue::from_static(handshake::VERSION);
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, version);
            return response;
        }
        match likeness {
            Likeness::Same => drop(self.answered.fetch_add(1, Relaxed)),
            other => self.inexact.add(format!("{} ({})", question.shown(), other.text())),
        }
        let mut response = match (asked, paced(&record, self.options.latency_factor)) {
            (Some(asked), _) if is_web_socket => self.accept(&mut record, asked),
            (_, Some(body)) if question.method != Method::HEAD => {
                let mut response = response(record, true);
                response.headers_mut().remove(CONTENT_LENGTH);
                *response.body_mut() = body;
                response
            }
            _ => {
                let latency_ns = record.response.as_ref().map_or(0, |response| response.latency_ns);
                let wait = Duration::from_nanos((latency_ns as f64 * self.options.latency_factor) as u64);
                if !wait.is_zero() {
                    tokio::time::sleep(wait.min(LATENCY_MAX)).await;
                }
                response(record, question.method == Method::HEAD)
            }
        };
        if likeness != Likeness::Same {
            let value = HeaderValue::from_static(likeness.text());
            response.headers_mut().insert(HeaderName::from_static("squall-mock"), value);
        }
        response
    }
}

impl Shared {
    /// Opens a WebSocket, on which what was recorded is said.
    fn accept(&self, record: &mut Record, (asked, upgrade): (Asked, OnUpgrade)) -> Response<Carried> {
        let messages = record.response.as_mut().map(|response| std::mem::take(&mut response.messages));
        let mut response = response(std::mem::take(record), true);
        let offered = |name: &HeaderValue| asked.subprotocols.iter().any(|one| name == one.as_str());
        let headers = response.headers_mut();
        if headers.get(SEC_WEBSOCKET_PROTOCOL).is_some_and(|name| !offered(name)) {
            headers.remove(SEC_WEBSOCKET_PROTOCOL);
        }
        for name in [CONTENT_LENGTH, SEC_WEBSOCKET_EXTENSIONS] {
            headers.remove(name);
        }
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let params = Params::choose(&asked.extensions);
        let agreed = params.map(|params| (SEC_WEBSOCKET_EXTENSIONS, params.to_string()));
        for (name, value) in agreed.into_iter().chain([(SEC_WEBSOCKET_ACCEPT, asked.accept)]) {
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
        }
        let factor = self.options.latency_factor;
        let playback =
            Playback::new(messages.unwrap_or_default(), factor, &self.options.ignored, &self.messages);
        tokio::spawn(async move {
            if let Ok(upgraded) = upgrade.await {
                playback.play(upgraded, params).await;
            }
        });
        response
    }
}

impl Asked {
    /// What a request that opens a WebSocket asks for (RFC 6455 4.2.1); `None`: it opens none.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let is_version = headers.get(SEC_WEBSOCKET_VERSION)?.as_bytes() == handshake::VERSION.as_bytes();
        let key = headers.get(SEC_WEBSOCKET_KEY)?.to_str().ok().filter(|key| handshake::is_key(key));
        let accept = handshake::accept(key.filter(|_| is_version && is_web_socket(headers))?);
        let all = |name: HeaderName| -> Vec<String> {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
        };
        let (extensions, subprotocols) =
            (all(SEC_WEBSOCKET_EXTENSIONS).join(", "), all(SEC_WEBSOCKET_PROTOCOL));
        Some(Self { accept, extensions, subprotocols })
    }
}

/// A recorded event stream, whose events come at their times.
fn paced(record: &Record, factor: f64) -> Option<Carried> {
    let response = record.response.as_ref()?;
    let times_ns = Some(&response.event_times_ns).filter(|times| !times.is_empty())?;
    let body = Bytes::copy_from_slice(response.body.as_deref()?);
    let now = Instant::now();
    let at = |at_ns: u64| now + Duration::from_nanos((at_ns as f64 * factor) as u64).min(LATENCY_MAX);
    let mut begin = 0;
    let mut pieces: VecDeque<(Instant, Bytes)> = events_of(&body)
        .zip(times_ns)
        .map(|(event, at_ns)| (at(*at_ns), body.slice(std::mem::replace(&mut begin, event.end)..event.end)))
        .collect();
    // What comes behind the last event, and the end.
    pieces.push_back((at(response.latency_ns), body.slice(begin..)));
    Some(Carried::Paced(Paced::new(pieces)))
}

impl Kinds {
    fn add(&self, what: String) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = kinds.len() < KIND_COUNT_MAX || kinds.contains_key(&what);
        let what = if is_known { what } else { "(others)".to_owned() };
        *kinds.entry(what).or_default() += 1;
    }

    fn counted(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn response(record: Record, is_head: bool) -> Response<Carried> {
    let Some(recorded) = record.response else { return Response::new(Carried::none()) };
    let is_filled = recorded.body.is_none();
    let length = recorded.body.as_ref().map_or(recorded.body_bytes, |body| body.len() as u64);
    // A body that was not kept is made up: as many zeros as it had bytes.
    let filler = || vec![b'0'; usize::try_from(length.min(FILLER_BYTES_MAX)).unwrap_or(0)];
    let mut response = match is_head {
        true => Response::new(Carried::none()),
        false => Response::new(Carried::of(recorded.body.unwrap_or_else(filler))),
    };
    if is_head {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.status_mut() = StatusCode::from_u16(recorded.status).unwrap_or(StatusCode::OK);
    for field in &recorded.headers {
        let name = HeaderName::from_bytes(field.name.to_ascii_lowercase().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&field.value))
            && !LENGTH_FIELDS.contains(&name.as_str())
            // Zeros are of no coding.
            && !(is_filled && name == CONTENT_ENCODING)
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Reads a body to its end; `None`: it is too large to be kept.
async fn read(mut body: Passage) -> Result<Option<Vec<u8>>, ()> {
    let mut bytes = Some(Vec::new());
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            None => return Ok(bytes),
            Some(Err(_)) => return Err(()),
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                bytes =
                    bytes.filter(|bytes| bytes.len() + data.len() <= RECORD_BYTES_MAX).map(|mut bytes| {
                        bytes.extend_from_slice(data);
                        bytes
                    });
            }
        }
    }
}

/// What follows from the body that is sent, or belongs to a connection.
const LENGTH_FIELDS: [&str; 5] =
    ["content-length", "transfer-encoding", "connection", "keep-alive", "trailer"];

const INDEX_BUFFER_BYTES: usize = 1 << 20;

/// Longest wait before an answer.
const LATENCY_MAX: Duration = Duration::from_secs(600);

/// Different kinds of requests that are listed.
const KIND_COUNT_MAX: usize = 10_000;

/// Largest body that is made up.
const FILLER_BYTES_MAX: u64 = 64 << 20;
