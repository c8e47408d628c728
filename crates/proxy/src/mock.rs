//! A server that answers as recorded: for the dependencies of a system under test.
//!
//! A request is answered by the recorded one that is most like it: the same method, target and body; else the same method and target; else
//! the same method and path. Several answers to the same request are given in turn. What nothing is like is a miss: 404, and listed.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use squall_traffic::store::{RecordView, Recording};
use squall_traffic::{Record, body_check};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::body::Carried;
use crate::listener::{Listener, speaks_tls};
use crate::record::refuse;
use crate::{Authority, Error};

/// How to answer.
#[derive(Debug)]
pub struct MockOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The recorded time of each answer is multiplied by this; 0 answers at once.
    pub latency_factor: f64,
    /// Vouches for the server where clients speak TLS to it.
    pub authority: Option<Authority>,
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
    /// Requests that nothing in the recording is like, by method and target.
    pub misses: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Shared {
    options: MockOptions,
    recording: Recording,
    /// Where in the recording the answers lie, by what they answer.
    answers: HashMap<Key, Answers>,
    answered: AtomicU64,
    misses: Mutex<BTreeMap<String, u64>>,
}

/// What a request has in common with a recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Whole(String, String, u32),
    Target(String, String),
    Path(String, String),
}

/// Offsets of records that answer the same request, given in turn.
#[derive(Debug, Default)]
struct Answers {
    offsets: Vec<u64>,
    next: AtomicU64,
}

impl Mock {
    /// Looks through the recording, listens and answers.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the recording cannot be read.
    pub fn start(recording: Recording, options: MockOptions) -> Result<Self, Error> {
        let answers =
            index(&recording).map_err(|source| Error::File { path: recording.path().to_owned(), source })?;
        let listen = options.listen;
        let shared = Arc::new(Shared {
            options,
            recording,
            answers,
            answered: AtomicU64::new(0),
            misses: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let listener =
            Listener::start(listen, move |stream, _peer, _id| serve(Arc::clone(&serving), stream))?;
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// What was answered so far.
    pub fn stats(&self) -> MockStats {
        MockStats {
            answered: self.shared.answered.load(Relaxed),
            misses: self.shared.misses.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Stops.
    pub fn stop(self) -> MockStats {
        let stats = self.stats();
        self.listener.stop();
        stats
    }
}

fn index(recording: &Recording) -> std::io::Result<HashMap<Key, Answers>> {
    let mut answers: HashMap<Key, Answers> = HashMap::new();
    let mut cursor = recording.cursor(INDEX_BUFFER_BYTES);
    while let Some(frame) = cursor.peek()? {
        let offset = cursor.offset();
        let Some(view) = RecordView::read(cursor.take(&frame)?) else { continue };
        if view.outcome().is_some() {
            for key in keys(view.method, view.target, view.body) {
                answers.entry(key).or_default().offsets.push(offset);
            }
        }
    }
    Ok(answers)
}

/// From the most exact to the least.
fn keys(method: &str, target: &str, body: &[u8]) -> [Key; 3] {
    let path = target.split('?').next().unwrap_or_default();
    [
        Key::Whole(method.to_owned(), target.to_owned(), body_check(body)),
        Key::Target(method.to_owned(), target.to_owned()),
        Key::Path(method.to_owned(), path.to_owned()),
    ]
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    match &shared.options.authority {
        Some(authority) if speaks_tls(&stream).await.unwrap_or(false) => {
            let Ok(config) = authority.config_for("localhost") else { return };
            if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                serve_http(Arc::clone(&shared), stream).await;
            }
        }
        _ => serve_http(shared, stream).await,
    }
}

async fn serve_http<S>(shared: Arc<Shared>, stream: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, std::convert::Infallible>(shared.answer(request).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // What a client breaks is the client's business.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Carried> {
        let method = request.method().as_str().to_owned();
        let target = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let Ok(body) = read(request.into_body()).await else {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "squall mock: the body is too large\n".to_owned());
        };
        let found = keys(&method, &target, &body).into_iter().find_map(|key| self.answers.get(&key));
        let record = found.and_then(|answers| {
            let nth = answers.next.fetch_add(1, Relaxed) as usize % answers.offsets.len();
            self.recording.record_at(answers.offsets[nth]).ok().flatten()
        });
        let Some(record) = record else {
            self.miss(format!("{method} {target}"));
            return refuse(
                StatusCode::NOT_FOUND,
                format!("squall mock: {method} {target} is not in the recording\n"),
            );
        };
        self.answered.fetch_add(1, Relaxed);
        let latency_ns = record.response.as_ref().map_or(0, |response| response.latency_ns);
        let wait = Duration::from_nanos((latency_ns as f64 * self.options.latency_factor) as u64);
        if !wait.is_zero() {
            tokio::time::sleep(wait.min(LATENCY_MAX)).await;
        }
        response(record)
    }

    fn miss(&self, what: String) {
        let mut misses = self.misses.lock().unwrap_or_else(PoisonError::into_inner);
        if misses.len() < MISS_KIND_COUNT_MAX || misses.contains_key(&what) {
            *misses.entry(what).or_default() += 1;
        }
    }
}

fn response(record: Record) -> Response<Carried> {
    let Some(recorded) = record.response else { return Response::new(Carried::none()) };
    // A body that was not kept is made up: as many zeros as it had bytes.
    let filler = || vec![b'0'; usize::try_from(recorded.body_bytes.min(FILLER_BYTES_MAX)).unwrap_or(0)];
    let is_filled = recorded.body.is_none();
    let body = recorded.body.unwrap_or_else(filler);
    let mut response = Response::new(Carried::of(body));
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

/// Reads a whole body, in bounds.
async fn read(mut body: Incoming) -> Result<Vec<u8>, ()> {
    let mut bytes = Vec::new();
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            None => return Ok(bytes),
            Some(Err(_)) => return Err(()),
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                if bytes.len() + data.len() > squall_traffic::limits::RECORD_BYTES_MAX {
                    return Err(());
                }
                bytes.extend_from_slice(data);
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

/// Different misses that are listed.
const MISS_KIND_COUNT_MAX: usize = 10_000;

/// Largest body that is made up.
const FILLER_BYTES_MAX: u64 = 64 << 20;
