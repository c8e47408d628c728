//! One connection: its socket, what its requests count, and the watch on heads that never end.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use hyper::{Version, http::request::Parts};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};

use crate::{
    log::{Entry, RequestEnd},
    shared::Worker,
    stats::Counters,
};

/// What socket, service and bodies of one connection share. They all run on one thread; the atomics only say so to the compiler.
pub(crate) struct Connection {
    pub(crate) worker: Arc<Worker>,
    pub(crate) peer: std::net::SocketAddr,
    /// Number of the connection, from 1 on.
    id: u64,
    requests_open: AtomicU64,
    is_head_open: AtomicBool,
    heads_ended: AtomicU64,
    is_reset_at_close: AtomicBool,
    /// HTTP/2 has frames between requests, which are no heads.
    is_http2: AtomicBool,
}

impl Connection {
    pub(crate) fn new(worker: Arc<Worker>, peer: std::net::SocketAddr) -> Arc<Self> {
        worker.counters().connections.add(1);
        let id = worker.shared.sequences.connection.count();
        Arc::new(Self {
            worker,
            peer,
            id,
            requests_open: AtomicU64::new(0),
            is_head_open: AtomicBool::new(false),
            heads_ended: AtomicU64::new(0),
            is_reset_at_close: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
        })
    }

    /// A head, or the TLS handshake, was read to its end.
    pub(crate) fn handle_head_end(&self) {
        self.is_head_open.store(false, Relaxed);
        self.heads_ended.fetch_add(1, Relaxed);
    }

    /// While a request is open, bytes belong to its body (or are pipelined, and then read at once).
    fn handle_bytes(&self) {
        if self.requests_open.load(Relaxed) == 0 && !self.is_http2.load(Relaxed) {
            self.is_head_open.store(true, Relaxed);
        }
    }

    /// The number of the head that is partly read.
    fn open_head(&self) -> Option<u64> {
        self.is_head_open.load(Relaxed).then(|| self.heads_ended.load(Relaxed))
    }

    pub(crate) fn cut(&self, cut: Cut) -> Cut {
        self.is_reset_at_close.store(cut == Cut::Reset, Relaxed);
        cut
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.worker.counters().connections_closed.add(1);
    }
}

/// How a connection is broken off on purpose; to hyper it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    #[error("the route closes the connection")]
    Close,
    #[error("the route resets the connection")]
    Reset,
}

/// A request that is open. Dropping it counts the request as over, and logs it.
pub(crate) struct Ticket {
    connection: Arc<Connection>,
    entry: Option<Box<Entry>>,
    /// 0 until a response exists.
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) is_complete: bool,
}

impl Ticket {
    pub(crate) fn new(connection: Arc<Connection>, head: &Parts) -> Self {
        connection.handle_head_end();
        connection.is_http2.store(head.version == Version::HTTP_2, Relaxed);
        connection.requests_open.fetch_add(1, Relaxed);
        connection.worker.counters().requests.add(1);
        let entry = connection.worker.log.as_ref().map(|_| Box::new(Entry::new(head)));
        Self { connection, entry, status: 0, body_bytes: 0, is_complete: false }
    }

    /// Notes how the connection is to be broken off, and hands the error for hyper back.
    pub(crate) fn cut(&self, cut: Cut) -> Cut {
        self.connection.cut(cut)
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.connection.worker.counters()
    }

    fn log(&self, entry: &Entry) {
        let Self { connection, status, body_bytes, is_complete, .. } = self;
        let end = RequestEnd {
            connection: connection.id,
            status: *status,
            body_bytes: *body_bytes,
            is_complete: *is_complete,
        };
        connection.worker.write_log(&entry.line(&end));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let counters = self.connection.worker.counters();
        counters.requests_finished.add(1);
        counters.requests_cut.add(u64::from(!self.is_complete));
        counters.body_bytes_sent.add(self.body_bytes);
        self.connection.requests_open.fetch_sub(1, Relaxed);
        if let Some(entry) = &self.entry {
            self.log(entry);
        }
    }
}

/// The TCP stream of a connection. Reading fails when a head stays incomplete for too long; closing resets when asked to.
pub(crate) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// Runs while a head is partly read: rare, since heads mostly come in one piece.
    head_timer: Option<HeadTimer>,
}

struct HeadTimer {
    head_idx: u64,
    sleep: Pin<Box<Sleep>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection, head_timer: None }
    }

    fn poll_head_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(head_idx) = self.connection.open_head() else {
            self.head_timer = None;
            return Poll::Pending;
        };
        let timer = match self.head_timer.take() {
            Some(timer) if timer.head_idx == head_idx => timer,
            _ => self.start_head_timer(head_idx),
        };
        ready!(self.head_timer.insert(timer).sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn start_head_timer(&self, head_idx: u64) -> HeadTimer {
        let timeout = self.connection.worker.shared.head_timeout;
        HeadTimer { head_idx, sleep: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let filled_before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        if polled.is_pending() {
            return this.poll_head_timeout(cx);
        }
        if buf.filled().len() > filled_before {
            this.connection.handle_bytes();
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.is_reset_at_close.load(Relaxed) {
            // Closing with a linger of zero makes the kernel send RST. When the system refuses, a FIN cuts the response too.
            self.stream.set_zero_linger().ok();
        }
    }
}
