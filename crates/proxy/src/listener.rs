//! Accepts connections until it is stopped, on its own threads; distinguishes TLS from plain text by the first byte.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use rustls::ServerConfig;
use squall_http3::{Endpoint, Incoming, Sockets};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::Error;

/// A running server.
#[derive(Debug)]
pub(crate) struct Listener {
    runtime: Option<Runtime>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Listener {
    /// Listens, and serves each connection by `serve`; on the UDP port of the same number, with these settings of TLS, each connection of QUIC
    /// by the function with them.
    pub(crate) fn start<S, F, Q, G>(
        address: SocketAddr,
        serve: S,
        quic: Option<(ServerConfig, Q)>,
    ) -> Result<Self, Error>
    where
        S: Fn(TcpStream, SocketAddr, u64) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
        Q: Fn(Incoming) -> G + Send + Sync + 'static,
        G: Future<Output = ()> + Send + 'static,
    {
        let refused = |source| Error::Listen { address, source };
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREAD_COUNT).enable_all().build().map_err(refused)?;
        let bind = |address| {
            let listener = runtime.block_on(TcpListener::bind(address))?;
            let bound = listener.local_addr()?;
            Ok((listener, bound))
        };
        let sockets = squall_http3::listen(address, quic.is_some(), bind);
        let Sockets { listener, quic: socket, address: bound } =
            sockets.map_err(|(address, source)| Error::Listen { address, source })?;
        let (stop, mut stopped) = watch::channel(false);
        if let (Some(socket), Some((tls, serve))) = (socket, quic) {
            let entered = runtime.enter();
            let endpoint = squall_http3::endpoint(socket, tls).map_err(refused)?;
            drop(entered);
            runtime.spawn(accept_quic(endpoint, stopped.clone(), serve));
        }
        let serve = Arc::new(serve);
        runtime.spawn(async move {
            for nth in 1.. {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    _ = stopped.changed() => return,
                };
                match accepted {
                    Ok((stream, peer)) => {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(serve(stream, peer, nth));
                    }
                    // Descriptors are short: those in use must be closed first.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        });
        Ok(Self { runtime: Some(runtime), address: bound, stop })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What tells clients that HTTP/3 is spoken here, where it is.
    pub(crate) fn alt_svc(&self, has_quic: bool) -> Option<HeaderValue> {
        let value = has_quic.then(|| format!("h3=\":{}\"; ma=86400", self.address.port()))?;
        HeaderValue::try_from(value).ok()
    }

    /// Accepts nothing more, and gives what is open a moment to end.
    pub(crate) fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(GOODBYE);
        }
    }
}

async fn accept_quic<Q, G>(endpoint: Endpoint, mut stopped: watch::Receiver<bool>, serve: Q)
where
    Q: Fn(Incoming) -> G,
    G: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = endpoint.accept() => accepted,
            _ = stopped.changed() => None,
        };
        match accepted {
            Some(incoming) => drop(tokio::spawn(serve(incoming))),
            None => return squall_http3::close(&endpoint).await,
        }
    }
}

/// Whether the peer begins with a TLS handshake.
pub(crate) async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE)
}

/// The first byte of a TLS record that begins a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// How long the handshake of QUIC, and the head of a request on it, may take.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

const THREAD_COUNT: usize = 2;

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const GOODBYE: Duration = Duration::from_millis(500);
