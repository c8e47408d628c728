//! One thread of the server: it takes connections over, and serves those of TCP.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, Response, body::Incoming, ext::Protocol, header::ALT_SVC, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use squall_http3::{ConnectProtocol, RequestBody};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Runtime,
    sync::mpsc::Receiver,
};
use tokio_rustls::{TlsAcceptor, rustls::HandshakeKind};

use crate::{
    answer::{answer, answer_connect},
    body::ReplyBody,
    connection::{Connection, Cut, Socket},
    limits,
    shared::Worker,
};

/// A connection on its way from the acceptor to a worker.
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream, SocketAddr),
    Quic(Box<squall_http3::Incoming>),
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
                        let connection = Connection::new(worker, incoming.remote_address());
                        tokio::spawn(squall_http3::serve(*incoming, connection));
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

impl squall_http3::Service for Connection {
    type Body = ReplyBody;

    async fn answer(self: Arc<Self>, request: Request<RequestBody>) -> Option<Response<ReplyBody>> {
        let (mut head, body) = request.into_parts();
        if let Some(ConnectProtocol(protocol)) = head.extensions.remove::<ConnectProtocol>() {
            if protocol == b"websocket" {
                head.extensions.insert(Protocol::from_static("websocket"));
            }
            return answer_connect(self, head, body).await.ok();
        }
        answer(self, head, body).await.ok()
    }

    fn note_handshake(&self, is_complete: bool) {
        let counters = self.worker.counters();
        let counter = if is_complete { &counters.tls_handshakes } else { &counters.tls_handshakes_failed };
        counter.add(1);
    }

    fn has_extended_connect(&self) -> bool {
        true
    }

    fn head_timeout(&self) -> Duration {
        self.worker.shared.head_timeout
    }
}
