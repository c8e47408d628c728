//! The running server: its threads, from the listening socket to the last join.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    thread::{self, JoinHandle},
};

use hyper::header::HeaderValue;
use socket2::{Domain, Protocol, Socket, Type};
use squall_http3::{Endpoint, Sockets};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
};

use crate::{
    Error, Options, Stats,
    channels::Channels,
    limits,
    log::{self, Log},
    shared::{Sequences, SharedState, Worker},
    stats::Counters,
    tls::Identity,
    worker::Accepted,
};

/// A server that runs in its own threads until it is stopped or dropped.
///
/// Stopping is prompt: open connections are closed, whatever they were doing.
pub struct Target {
    address: SocketAddr,
    shared: Arc<SharedState>,
    /// Dropping it ends the acceptor, and the workers with it.
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Target {
    /// Listens, and starts the threads. Once it returns, connections are taken.
    ///
    /// # Errors
    /// When the address, the certificate, the log file or the threads cannot be had.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let tls = options.tls.as_ref().map(|tls| Identity::new(tls, options.listen)).transpose()?;
        if options.http3 && tls.is_none() {
            return Err(Error::Http3NeedsTls);
        }
        let Sockets { listener, quic, address } = listen(options)?;
        let alt_svc = options.http3.then(|| format!("h3=\":{}\"; ma=86400", address.port()));
        let shared = Arc::new(SharedState {
            tls,
            alt_svc: alt_svc.and_then(|text| HeaderValue::try_from(text).ok()),
            head_timeout: options.head_timeout,
            counters: (0..options.threads.get()).map(|_| Counters::default()).collect(),
            sequences: Sequences::default(),
            channels: Channels::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let mut target = Self { address, shared, stop: Some(stop), threads: Vec::new() };
        target.start_threads(options, (listener, quic), stopped)?;
        Ok(target)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate chain as PEM when it serves TLS; a client that trusts it can verify the server.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.shared.tls.as_ref().map(|identity| identity.certificate_pem.as_str())
    }

    /// What it counted so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Closes all connections, ends the threads, and hands the final counts over. The log is complete then.
    pub fn stop(mut self) -> Stats {
        self.end();
        self.stats()
    }

    fn start_threads(
        &mut self,
        options: &Options,
        (listener, quic): (std::net::TcpListener, Option<UdpSocket>),
        stopped: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        if let Some(path) = &options.log {
            log::create(path)?;
        }
        let mut workers = Vec::new();
        let mut runtimes = Vec::new();
        for index in 0..options.threads.get() {
            let log = options.log.as_deref().map(Log::open).transpose()?;
            let worker = Arc::new(Worker { shared: Arc::clone(&self.shared), index, log });
            let (sender, receiver) = mpsc::channel(limits::HANDOVER_COUNT);
            workers.push(sender);
            runtimes.push((worker, build_runtime()?, receiver));
        }
        let (_, runtime, _) = &runtimes[0];
        let entered = runtime.enter();
        let listener = TcpListener::from_std(listener).map_err(Error::Thread)?;
        let quic = quic.zip(self.shared.tls.as_ref());
        let endpoint =
            |(socket, identity): (_, &Identity)| squall_http3::endpoint(socket, identity.quic.clone());
        let quic = quic.map(endpoint).transpose().map_err(Error::Thread)?;
        runtime.spawn(accept(Arc::clone(&self.shared), (listener, quic), workers, stopped));
        drop(entered);
        for (worker, runtime, connections) in runtimes {
            let name = format!("target-{}", worker.index);
            let run = move || worker.run(runtime, connections);
            self.threads.push(thread::Builder::new().name(name).spawn(run).map_err(Error::Thread)?);
        }
        Ok(())
    }

    fn end(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            thread.join().ok(); // a thread that panicked has said so on stderr
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.end();
    }
}

fn build_runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_io().enable_time().build().map_err(Error::Thread)
}

fn listen(options: &Options) -> Result<Sockets<std::net::TcpListener>, Error> {
    squall_http3::listen(options.listen, options.http3, open_listener).map_err(|(address, source)| {
        match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse { address },
            _ => Error::Listen { address, source },
        }
    })
}

fn open_listener(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?; // a restart must not wait for old connections in TIME_WAIT
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::BACKLOG_COUNT)?;
    let listener = std::net::TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Deals connections out to the workers in turn: with few of them, an even share matters more than a saved wake-up.
async fn accept(
    shared: Arc<SharedState>,
    (listener, quic): (TcpListener, Option<Endpoint>),
    workers: Vec<mpsc::Sender<Accepted>>,
    stopped: oneshot::Receiver<()>,
) {
    let deal = async {
        for worker in workers.iter().cycle() {
            if worker.send(accept_one(&shared, &listener, quic.as_ref()).await).await.is_err() {
                break; // that worker's thread is gone
            }
        }
    };
    tokio::select! {
        _ = stopped => {}
        () = deal => {}
    }
    if let Some(endpoint) = &quic {
        squall_http3::close(endpoint).await;
    }
}

async fn accept_one(shared: &SharedState, listener: &TcpListener, quic: Option<&Endpoint>) -> Accepted {
    let Some(endpoint) = quic else { return accept_tcp(shared, listener).await };
    tokio::select! {
        accepted = accept_tcp(shared, listener) => accepted,
        Some(incoming) = endpoint.accept() => Accepted::Quic(Box::new(incoming)),
    }
}

async fn accept_tcp(shared: &SharedState, listener: &TcpListener) -> Accepted {
    loop {
        match listener.accept().await.and_then(hand_over) {
            Ok(accepted) => return accepted,
            Err(error) if is_gone(&error) => {}
            Err(_) => {
                shared.counters[0].accepts_failed.add(1);
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Takes the connection out of this thread's event queue; a worker puts it into its own.
fn hand_over((stream, peer): (TcpStream, SocketAddr)) -> io::Result<Accepted> {
    stream.set_nodelay(true)?;
    Ok(Accepted::Tcp(stream.into_std()?, peer))
}

/// The client gave up before it was accepted.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
