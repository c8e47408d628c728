//! An HTTP/1.1 server that answers each request after a known delay, and keeps the truth about it.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::acceptor::{Acceptor, Socket};
use crate::identity::Identity;
use crate::request::Requests;
use crate::sleep_until;

/// What a [`ScriptedServer`] does.
#[derive(Debug, Clone)]
pub struct Script {
    /// Delays from a whole request to its answer, used in turn over all connections; at least one.
    pub delays: Vec<Duration>,
    /// Answers that fall into this time are held until it is over.
    pub stall: Option<Stall>,
    /// Length of each response body.
    pub body_bytes: usize,
    /// Speaks TLS with this certificate.
    pub identity: Option<Identity>,
}

/// A time in which the server does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// Counted from the first request.
    pub after: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// One answered request.
#[derive(Debug, Clone, Copy)]
pub struct ServedRequest {
    /// When it was whole.
    pub received: Instant,
    /// From there until its answer was handed to the kernel.
    pub delay: Duration,
}

/// A running server; stopped on drop.
#[derive(Debug)]
pub struct ScriptedServer {
    acceptor: Acceptor,
    truth: Arc<Truth>,
    is_tls: bool,
}

/// What a [`ScriptedServer`] did.
#[derive(Debug, Default)]
pub struct Served {
    /// Every request answered, in the order of the answers.
    pub requests: Vec<ServedRequest>,
    /// Connections accepted.
    pub connection_count: u64,
}

#[derive(Debug)]
struct Truth {
    script: Script,
    response: Vec<u8>,
    first_request: OnceLock<Instant>,
    received_count: AtomicUsize,
    log: Mutex<Vec<ServedRequest>>,
}

impl Default for Script {
    fn default() -> Self {
        Self { delays: vec![Duration::ZERO], stall: None, body_bytes: 6, identity: None }
    }
}

impl Script {
    /// Delays spread evenly on a logarithmic scale from `shortest` to `longest`, in a fixed shuffled order. No two are
    /// alike, so an answer more or less moves no percentile far.
    pub fn spread(shortest: Duration, longest: Duration, count: usize) -> Vec<Duration> {
        // Coprime to any count that is not its multiple: visits every step once, far apart from its neighbours.
        const STRIDE: usize = 7_919;
        assert!(!count.is_multiple_of(STRIDE), "the stride must not divide the count");
        let ratio = longest.as_secs_f64() / shortest.as_secs_f64();
        let delay = |step: usize| shortest.mul_f64(ratio.powf(step as f64 / (count - 1) as f64));
        (0..count).map(|idx| delay(idx * STRIDE % count)).collect()
    }
}

impl ScriptedServer {
    /// Starts on a free port of 127.0.0.1.
    pub fn start(script: Script) -> Self {
        let tls = script.identity.as_ref().map(|one| Arc::new(one.server_config(rustls::ALL_VERSIONS)));
        let is_tls = tls.is_some();
        let truth = Arc::new(Truth::new(script));
        let known = Arc::clone(&truth);
        let acceptor = Acceptor::start(move |socket| {
            // However a client leaves, what it got is in the log.
            let _ = known.serve_socket(socket, tls.as_ref());
        });
        Self { acceptor, truth, is_tls }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// `http://127.0.0.1:PORT/` or its TLS form.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/", self.address())
    }

    /// Requests read whole so far, answered or not.
    pub fn received_count(&self) -> usize {
        self.truth.received_count.load(Ordering::Relaxed)
    }

    /// Ends all connections and returns what was answered.
    pub fn finish(self) -> Served {
        let Self { acceptor, truth, .. } = self;
        let connection_count = acceptor.connection_count();
        drop(acceptor);
        Served { requests: std::mem::take(&mut truth.lock_log()), connection_count }
    }
}

impl Served {
    /// The smallest true delay that is not exceeded by the share `quantile` (0 to 1) of the answered requests.
    pub fn delay(&self, quantile: f64) -> Duration {
        let mut delays: Vec<Duration> = self.requests.iter().map(|one| one.delay).collect();
        delays.sort_unstable();
        let rank = (quantile * delays.len() as f64).ceil() as usize;
        delays[rank.clamp(1, delays.len()) - 1]
    }
}

impl Truth {
    fn new(script: Script) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", script.body_bytes);
        let mut response = head.into_bytes();
        response.resize(response.len() + script.body_bytes, b'.');
        Self {
            script,
            response,
            first_request: OnceLock::new(),
            received_count: AtomicUsize::new(0),
            log: Mutex::default(),
        }
    }

    fn serve_socket(&self, socket: Socket, tls: Option<&Arc<ServerConfig>>) -> io::Result<()> {
        match tls {
            None => self.serve(socket),
            Some(config) => {
                let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                self.serve(StreamOwned::new(session, socket))
            }
        }
    }

    fn serve(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut requests = Requests::default();
        while requests.next(&mut stream)? {
            let received = Instant::now();
            sleep_until(self.due(received));
            stream.write_all(&self.response)?;
            stream.flush()?;
            self.lock_log().push(ServedRequest { received, delay: received.elapsed() });
        }
        Ok(())
    }

    fn due(&self, received: Instant) -> Instant {
        let first = *self.first_request.get_or_init(|| received);
        let delays = &self.script.delays;
        let due = received + delays[self.received_count.fetch_add(1, Ordering::Relaxed) % delays.len()];
        match self.script.stall {
            Some(stall) if due >= first + stall.after => due.max(first + stall.after + stall.length),
            _ => due,
        }
    }

    fn lock_log(&self) -> MutexGuard<'_, Vec<ServedRequest>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    fn ask(stream: &mut TcpStream) -> Duration {
        let sent = Instant::now();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        let count = stream.read(&mut answer).unwrap();
        assert!(answer[..count].ends_with(b"\r\n\r\n......"), "{:?}", &answer[..count]);
        sent.elapsed()
    }

    #[test]
    fn answers_come_after_the_scripted_delays() {
        let delays = vec![Duration::from_millis(5), Duration::from_millis(20)];
        let server = ScriptedServer::start(Script { delays: delays.clone(), ..Script::default() });
        let mut stream = TcpStream::connect(server.address()).unwrap();
        for delay in delays {
            assert!(ask(&mut stream) >= delay);
        }
        let served = server.finish();
        assert_eq!((served.requests.len(), served.connection_count), (2, 1));
        assert!(served.delay(0.5) >= Duration::from_millis(5) && served.delay(0.5) < served.delay(1.0));
        assert!(served.delay(1.0) >= Duration::from_millis(20));
    }

    #[test]
    fn a_stall_holds_every_answer_that_falls_into_it() {
        let stall = Stall { after: Duration::ZERO, length: Duration::from_millis(200) };
        let server = ScriptedServer::start(Script { stall: Some(stall), ..Script::default() });
        let mut stream = TcpStream::connect(server.address()).unwrap();
        assert!(ask(&mut stream) >= Duration::from_millis(200));
        assert!(server.finish().delay(1.0) >= Duration::from_millis(200));
    }

    #[test]
    fn spread_delays_visit_every_step_once() {
        let mut delays = Script::spread(Duration::from_millis(1), Duration::from_millis(100), 1000);
        assert_ne!(delays[0], delays[1]);
        delays.sort_unstable();
        delays.dedup();
        assert_eq!(delays.len(), 1000);
        assert_eq!(delays[0].as_micros(), 1000);
    }
}
