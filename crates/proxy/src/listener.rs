//! Accepts connections until it is stopped, on its own threads; distinguishes TLS from plain text by the first byte.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
    /// Listens, and serves each connection by `serve`.
    pub(crate) fn start<S, F>(address: SocketAddr, serve: S) -> Result<Self, Error>
    where
        S: Fn(TcpStream, SocketAddr, u64) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let refused = |source| Error::Listen { address, source };
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREAD_COUNT).enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let (stop, mut stopped) = watch::channel(false);
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

    /// Accepts nothing more, and gives what is open a moment to end.
    pub(crate) fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(GOODBYE);
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

const THREAD_COUNT: usize = 2;

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const GOODBYE: Duration = Duration::from_millis(500);
