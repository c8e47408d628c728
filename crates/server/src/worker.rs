//! One thread of the server: it takes connections over, and answers their requests one after the other.

use std::{net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Version,
    body::{Body as _, Frame, Incoming},
    header::{ALT_SVC, CONTENT_LENGTH},
    http::request::Parts,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Runtime,
    sync::mpsc::Receiver,
};
use tokio_rustls::{TlsAcceptor, rustls::HandshakeKind};

use crate::{
    body::{ReplyBody, Source},
    call::{Call, Received},
    connection::{Connection, Cut, Socket, Ticket},
    h3, limits,
    pause::pause,
    reply::{Fate, Refusal, Reply},
    routes::{self, Intake},
    shared::Worker,
    websocket,
};

/// A connection on its way from the acceptor to a worker.
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream, SocketAddr),
    Quic(Box<quinn::Incoming>),
}

/// A request body that is being received.
pub(crate) trait Upload: Send {
    /// Nothing follows.
    fn is_end(&self) -> bool;

    /// The next piece; `None`: the body is whole.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, Cut>>> + Send;
}

impl Upload for Incoming {
    fn is_end(&self) -> bool {
        self.is_end_stream()
    }

    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                Ok(Err(_)) => {} // trailers
                Err(_) => return Some(Err(Cut::Close)),
            }
        }
    }
}

impl Worker {
    /// Serves until no more connections can come, then drops what is open.
    pub(crate) fn run(self: Arc<Self>, runtime: Runtime, mut connections: Receiver<Accepted>) {
        runtime.block_on(async {
            if self.log.is_some() {
                tokio::spawn(flush_log_often(Arc::clone(&self)));
            }
            while let Some(accepted) = connections.recv().await {
                let worker = Arc::clone(&self);
                match accepted {
                    Accepted::Tcp(stream, peer) => {
                        tokio::spawn(serve(Connection::new(worker, peer), stream));
                    }
                    Accepted::Quic(incoming) => {
                        tokio::spawn(h3::serve(worker, incoming));
                    }
                }
            }
        });
        drop(runtime); // the last requests are logged here
        self.flush_log();
    }
}

async fn flush_log_often(worker: Arc<Worker>) {
    loop {
        tokio::time::sleep(limits::LOG_FLUSH_EVERY).await;
        worker.flush_log();
    }
}

async fn serve(connection: Arc<Connection>, stream: std::net::TcpStream) {
    let Ok(stream) = TcpStream::from_std(stream) else {
        connection.worker.counters().accepts_failed.add(1); // the event queue is full
        return;
    };
    let socket = Socket::new(stream, Arc::clone(&connection));
    match &connection.worker.shared.tls {
        None => serve_http(connection, socket).await,
        Some(identity) => {
            let acceptor = TlsAcceptor::from(Arc::clone(&identity.config));
            serve_tls(connection, acceptor, socket).await;
        }
    }
}

async fn serve_tls(connection: Arc<Connection>, acceptor: TlsAcceptor, socket: Socket) {
    let timeout = connection.worker.shared.head_timeout;
    let counters = connection.worker.counters();
    let Ok(Ok(stream)) = tokio::time::timeout(timeout, acceptor.accept(socket)).await else {
        counters.tls_handshakes_failed.add(1);
        return;
    };
    counters.tls_handshakes.add(1);
    let is_resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
    counters.tls_handshakes_resumed.add(u64::from(is_resumed));
    connection.handle_head_end();
    serve_http(connection, stream).await;
}

/// Speaks HTTP/1.1 or HTTP/2, whichever the client begins with.
///
/// hyper's `pipeline_flush` stays off: it lifts the bound on its write buffer, and a long body would be buffered whole.
async fn serve_http(
    connection: Arc<Connection>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let connection = Arc::clone(&connection);
        async move {
            let (head, body) = request.into_parts();
            let alt_svc = connection.worker.shared.alt_svc.clone();
            let mut response = answer(connection, head, body).await?;
            if let Some(value) = alt_svc {
                response.headers_mut().insert(ALT_SVC, value);
            }
            Ok::<_, Cut>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(limits::STREAM_COUNT_MAX).enable_connect_protocol();
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    drop(served); // a client that breaks off, or talks nonsense, is its own affair: the ticket has counted it
}

/// Answers a request of any version.
pub(crate) async fn answer(
    connection: Arc<Connection>,
    mut head: Parts,
    body: impl Upload,
) -> Result<Response<ReplyBody>, Cut> {
    let ticket = Ticket::new(Arc::clone(&connection), &head);
    let reply = match routes::find(&head) {
        Ok((route, args)) => {
            let received = receive(&connection, body, route.intake).await?;
            let shared = &*connection.worker.shared;
            received.and_then(|body| {
                (route.handler)(&Call { head: &head, args, body, peer: connection.peer, shared })
            })
        }
        Err(refusal) => receive(&connection, body, Intake::Count).await?.and(Err(refusal)),
    };
    let reply = reply.unwrap_or_else(Reply::from);
    if reply.delay > Duration::ZERO {
        pause(reply.delay).await;
    }
    send(&mut head, reply, ticket).await
}

/// Reads the whole body, so that the connection can be used again. A broken body ends the connection.
async fn receive(
    connection: &Connection,
    mut body: impl Upload,
    intake: Intake,
) -> Result<Result<Received, Refusal>, Cut> {
    if body.is_end() {
        return Ok(Ok(Received::default()));
    }
    let mut kept = Vec::new();
    let mut length = 0;
    while let Some(data) = body.next().await {
        let data = data?;
        length += data.len() as u64;
        connection.worker.counters().body_bytes_received.add(data.len() as u64);
        if intake == Intake::Keep && length <= limits::ECHO_BYTES_MAX {
            kept.extend_from_slice(&data);
        }
    }
    Ok(received(intake, length, kept.into()))
}

fn received(intake: Intake, length: u64, bytes: Bytes) -> Result<Received, Refusal> {
    if intake == Intake::Keep && length > limits::ECHO_BYTES_MAX {
        let limit = limits::ECHO_BYTES_MAX;
        let message = format!(
            "this route echoes at most {limit} body bytes, but the request has {length}; use /upload"
        );
        return Err(Refusal::new(message).with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(Received { length, bytes })
}

async fn send(head: &mut Parts, reply: Reply, mut ticket: Ticket) -> Result<Response<ReplyBody>, Cut> {
    match reply.fate {
        Fate::Answer => {}
        Fate::Hang => std::future::pending().await, // until the client gives up, or the server stops
        Fate::Cut(cut) => return Err(ticket.cut(cut)),
    }
    ticket.status = reply.status.as_u16();
    if let Some(session) = reply.upgrade
        && let Some(upgrade) = head.extensions.remove::<OnUpgrade>()
    {
        tokio::spawn(websocket::serve(upgrade, *session, ticket));
        return Ok(response(reply.status, reply.headers, ReplyBody::none()));
    }
    let is_bodiless = head.method == Method::HEAD
        || matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    ticket.is_complete = is_bodiless;
    let Reply { status, mut headers, mut source, .. } = reply;
    // In HTTP/1.1, hyper sends no body in these cases, and so never asks for it; later versions would get it.
    if is_bodiless && head.version > Version::HTTP_11 {
        let body_bytes = source.left().filter(|_| head.method == Method::HEAD);
        if let Some(bytes) = body_bytes.filter(|_| !headers.contains_key(CONTENT_LENGTH)) {
            headers.insert(CONTENT_LENGTH, bytes.into());
        }
        source = Source::Whole(Bytes::new());
    }
    Ok(response(status, headers, ReplyBody::new(source, ticket)))
}

fn response(status: StatusCode, headers: HeaderMap, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
