//! A TLS server that counts full and resumed handshakes, and does with each connection what the test says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};
use squall_testkit::Authority;

/// A running server; stopped on drop.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// What the server saw.
#[derive(Debug, Default)]
struct Seen {
    full: AtomicU64,
    resumed: AtomicU64,
    /// Ended by the client's `close_notify`.
    notified: AtomicU64,
    requests: AtomicU64,
    /// Of these, those that came as early data.
    early_requests: AtomicU64,
    /// Taken by a handshake where the server makes one after the other.
    turn: Mutex<()>,
    is_over: AtomicBool,
}

/// What it does once a handshake is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then {
    /// Answers requests until the client leaves.
    Serve,
    /// Closes after this long.
    CloseAfter(Duration),
    /// Makes one handshake after the other, each no sooner than this long after the one before.
    OneByOne(Duration),
}

impl Server {
    /// Speaks these versions.
    pub(crate) fn start(versions: &[&'static SupportedProtocolVersion], then: Then) -> Self {
        Self::with(versions, then, |_| {})
    }

    /// With settings of its own.
    pub(crate) fn with(
        versions: &[&'static SupportedProtocolVersion],
        then: Then,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = Authority::new().issue_for_loopback().server_config(versions);
        config.ticketer = Ticketer::new().unwrap();
        change(&mut config);
        let (config, seen) = (Arc::new(config), Arc::new(Seen::default()));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), seen: Arc::clone(&seen) };
        thread::spawn(move || {
            for socket in listener.incoming().take_while(|_| !seen.is_over.load(Ordering::Relaxed)) {
                let (config, seen) = (Arc::clone(&config), Arc::clone(&seen));
                // A client that leaves early is no failure of the server.
                thread::spawn(move || serve(socket.unwrap(), config, &seen, then).unwrap_or_default());
            }
        });
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn full(&self) -> u64 {
        self.seen.full.load(Ordering::SeqCst)
    }

    pub(crate) fn resumed(&self) -> u64 {
        self.seen.resumed.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn early_requests(&self) -> u64 {
        self.seen.early_requests.load(Ordering::SeqCst)
    }

    /// Waits until so many handshakes are over on this side, too: the last flight may be the client's.
    pub(crate) fn wait_for_handshakes(&self, count: u64) -> bool {
        squall_testkit::wait_until(Duration::from_secs(20), || self.full() + self.resumed() >= count)
    }

    /// Waits until so many clients have said goodbye.
    pub(crate) fn wait_for_goodbyes(&self, count: u64) -> bool {
        squall_testkit::wait_until(Duration::from_secs(20), || {
            self.seen.notified.load(Ordering::SeqCst) >= count
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut socket: TcpStream, config: Arc<ServerConfig>, seen: &Seen, then: Then) -> std::io::Result<()> {
    let mut session = ServerConnection::new(config).unwrap();
    let turn = match then {
        Then::OneByOne(pause) => {
            let turn = seen.turn.lock().unwrap();
            thread::sleep(pause);
            Some(turn)
        }
        _ => None,
    };
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    drop(turn);
    match session.handshake_kind() {
        Some(HandshakeKind::Resumed) => seen.resumed.fetch_add(1, Ordering::SeqCst),
        _ => seen.full.fetch_add(1, Ordering::SeqCst),
    };
    if let Then::CloseAfter(pause) = then {
        thread::sleep(pause);
        session.send_close_notify();
        session.complete_io(&mut socket)?;
        return Ok(());
    }
    let mut early = Vec::new();
    if let Some(mut data) = session.early_data() {
        data.read_to_end(&mut early)?;
    }
    let mut stream = rustls::Stream::new(&mut session, &mut socket);
    if early.ends_with(b"\r\n\r\n") {
        seen.early_requests.fetch_add(1, Ordering::SeqCst);
        seen.requests.fetch_add(1, Ordering::SeqCst);
        stream.write_all(ANSWER)?;
    }
    let mut buffer = [0; 4096];
    loop {
        // A clean end is 0, the end of TCP alone is an error.
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            seen.notified.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        if buffer[..count].ends_with(b"\r\n\r\n") {
            seen.requests.fetch_add(1, Ordering::SeqCst);
            stream.write_all(ANSWER)?;
        }
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
