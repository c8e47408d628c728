//! A small HTTP server on a separate thread: hyper does the protocol, callers give an answer to each request.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Frame, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// What is answered.
pub(crate) enum HttpAnswer {
    /// A whole body.
    Whole { status: StatusCode, kind: &'static str, body: Bytes },
    /// Server-sent events, as they come.
    Events(mpsc::Receiver<Bytes>),
}

/// What is asked.
pub(crate) struct HttpAsked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Whether it carries the header that only the page's own script sends: a form of another site cannot.
    pub(crate) is_from_page: bool,
}

/// A server until it is dropped.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Handler = dyn Fn(&HttpAsked<'_>) -> HttpAnswer + Send + Sync;

impl HttpServer {
    /// Listens, and answers on a separate thread.
    pub(crate) fn start(address: SocketAddr, handler: Arc<Handler>) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::OsListen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Os { what: "start a server", source })?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("web".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve(listener, address, handler, stopped)));
        let thread = thread.map_err(|source| Error::Os { what: "start a thread", source })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has said so on stderr.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    handler: Arc<Handler>,
    mut stopped: oneshot::Receiver<()>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let connections = Arc::new(tokio::sync::Semaphore::new(CONNECTION_COUNT_MAX));
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => { tokio::time::sleep(Duration::from_millis(50)).await; continue; }
            },
            _ = &mut stopped => break,
        };
        let Ok(place) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                ready(Ok::<_, Infallible>(respond(address, &handler, &request)))
            });
            // A browser that goes away is no fault of the run.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(place);
        });
    }
    // What was written last is on its way to the browsers.
    tokio::time::sleep(FAREWELL).await;
}

fn respond(address: SocketAddr, handler: &Arc<Handler>, request: &Request<Incoming>) -> Response<AnswerBody> {
    let answer = if is_for_us(address, request.headers().get(HOST)) {
        let is_from_page = request.headers().contains_key("x-squall");
        handler(&HttpAsked { method: request.method(), path: request.uri().path(), is_from_page })
    } else {
        text(StatusCode::FORBIDDEN, "this server only answers requests for its own address")
    };
    response(answer)
}

/// A name of another site that resolves to this machine (DNS rebinding) must not read a run's figures. Who listens on more than
/// loopback wants to be reached by other names.
fn is_for_us(address: SocketAddr, host: Option<&HeaderValue>) -> bool {
    if !address.ip().is_loopback() {
        return true;
    }
    let Some(host) = host.and_then(|host| host.to_str().ok()) else { return false };
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let name = name.trim_matches(['[', ']']);
    name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

pub(crate) fn text(status: StatusCode, text: &'static str) -> HttpAnswer {
    HttpAnswer::Whole { status, kind: "text/plain; charset=utf-8", body: Bytes::from_static(text.as_bytes()) }
}

fn response(answer: HttpAnswer) -> Response<AnswerBody> {
    let (status, kind, body) = match answer {
        HttpAnswer::Whole { status, kind, body } => (status, kind, AnswerBody::Whole(Some(body))),
        HttpAnswer::Events(events) => (StatusCode::OK, "text/event-stream", AnswerBody::Events(events)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in EVERY_RESPONSE {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// No other site may show the page in a frame, where a click on something else would stop the run.
const EVERY_RESPONSE: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (X_FRAME_OPTIONS, "DENY"),
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The body of an answer.
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take()),
            Self::Events(events) => events.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// More viewers than anyone has; beyond them connections are closed at once.
const CONNECTION_COUNT_MAX: usize = 64;

/// How long a server goes on after its run, for what is in flight.
const FAREWELL: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_site_frames_a_page() {
        let response = response(text(StatusCode::OK, "x"));
        assert_eq!(response.headers()["x-frame-options"], "DENY");
        assert_eq!(response.headers()["content-security-policy"], "frame-ancestors 'none'");
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let address: SocketAddr = "127.0.0.1:5665".parse().unwrap();
        for (host, is_ours) in [
            ("127.0.0.1:5665", true),
            ("localhost:5665", true),
            ("localhost", true),
            ("[::1]:5665", true),
            ("evil.example:5665", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(is_for_us(address, Some(&HeaderValue::from_static(host))), is_ours, "{host}");
        }
        assert!(!is_for_us(address, None));
    }
}
