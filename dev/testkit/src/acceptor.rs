//! A listening socket on loopback with a thread for each connection, all ended on drop.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

/// A listening socket and the threads behind it.
#[derive(Debug)]
pub(crate) struct Acceptor {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// An accepted connection. Only its handler keeps it open, so that dropping it really closes (or resets) it.
#[derive(Debug, Clone)]
pub(crate) struct Socket(Arc<TcpStream>);

#[derive(Debug, Default)]
struct Shared {
    stopping: AtomicBool,
    connection_count: AtomicU64,
    open: Mutex<Vec<Weak<TcpStream>>>,
}

impl Acceptor {
    /// Listens on a free port of 127.0.0.1 and gives each connection to `handler` on a separate thread.
    pub(crate) fn start(handler: impl Fn(Socket) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || accept_all(&listener, &accepting, &Arc::new(handler)));
        Self { address, shared, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn connection_count(&self) -> u64 {
        self.shared.connection_count.load(Ordering::Relaxed)
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread from accept(); it sees the flag first.
        let woken = TcpStream::connect(self.address);
        self.shared.close_all();
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            // A handler that panicked has printed why; the test judges by what the client saw.
            let _ = thread.join();
        }
    }
}

impl Socket {
    /// Closes with RST instead of FIN, once the handler lets go of it.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_linger(&*self.0, Some(Duration::ZERO))?)
    }

    /// Closes both directions now, even if it is still held elsewhere.
    pub(crate) fn shut_down(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Both)
    }

    /// Waits until the peer closes its side, whatever it sent before that was not read.
    pub(crate) fn wait_for_hangup(&self) -> io::Result<()> {
        let mut watched = [PollFd::new(&*self.0, PollFlags::RDHUP)];
        rustix::event::poll(&mut watched, None)?;
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    /// A TLS session that fails makes one write of all it still has to say, its alert last.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self.0).write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn register(&self, stream: &Arc<TcpStream>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.strong_count() > 0);
        open.push(Arc::downgrade(stream));
    }

    fn close_all(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.iter().filter_map(Weak::upgrade) {
            // The peer may have closed it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept_all(
    listener: &TcpListener,
    shared: &Shared,
    handler: &Arc<impl Fn(Socket) + Send + Sync + 'static>,
) {
    let mut handlers: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        handlers.retain(|one| !one.is_finished());
        handlers.push(spawn_handler(stream, shared, handler));
    }
    // A connection accepted while stopping was registered after the first sweep.
    shared.close_all();
    for handler in handlers {
        let _ = handler.join();
    }
}

fn spawn_handler(
    stream: TcpStream,
    shared: &Shared,
    handler: &Arc<impl Fn(Socket) + Send + Sync + 'static>,
) -> JoinHandle<()> {
    shared.connection_count.fetch_add(1, Ordering::Relaxed);
    stream.set_nodelay(true).expect("TCP_NODELAY is always settable");
    let stream = Arc::new(stream);
    shared.register(&stream);
    let handler = Arc::clone(handler);
    thread::spawn(move || handler(Socket(stream)))
}
