//! QUIC servers that keep or break the rules of RFC 9000 and RFC 9114, and what a client must come to with each of them.
//!
//! Owns: the server ([`QuicPeer`]), a thread that drives quinn-proto's state machines on a UDP socket. The table is [`PEERS`]. What is said above QUIC is
//! written by hand there, so that nothing is taken from the codec that is tested.

mod forge;
mod peers;
mod relay;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, Incoming,
    RandomConnectionIdGenerator, ServerConfig, Side, StreamEvent, StreamId, Transmit, TransportConfig,
};
use squall_measure::{Cause, Phase};

use forge::{ForgedConfig, Forgery};

use crate::{Authority, Script, Served, ServedRequest, Validity};

pub use peers::PEERS;
pub use relay::{LossyRelay, PathFaults};

/// Something that a server does on a connection.
pub type Act = fn(&mut Talk<'_>);

/// One server.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The section of RFC 9000, or of RFC 9114, that binds the client here.
    pub section: &'static str,
    /// Names it in a test's output.
    pub name: &'static str,
    /// What it does with the first packets of its first connections.
    pub greeting: Greeting,
    /// What it does as soon as a handshake is complete, after its SETTINGS.
    pub on_connected: fn(&mut Connection),
    /// What it does with each request: it answers well unless this says something else.
    pub on_request: Act,
    /// Changes quinn's settings of its transport.
    pub transport: fn(&mut TransportConfig),
    /// Changes its settings of TLS.
    pub tls: fn(&mut rustls::ServerConfig),
    /// Changes its transport parameters, as they are encoded.
    pub parameters: fn(&mut Vec<u8>),
    /// Frames that its first Handshake packet has in the place of its own; empty: that has its own.
    pub handshake_frames: &'static [u8],
    /// Issues no connection ids besides the first.
    pub withholds_ids: bool,
    /// Names in its certificate besides those of loopback.
    pub name_count: usize,
    /// Flags that make the client meet it.
    pub args: &'static [&'static str],
    /// Failures that the client's three requests come to; the others succeed.
    pub failures: &'static [(Cause, Phase)],
    /// Counts of `totals.quic` that the client must have.
    pub counts: &'static [(&'static str, u64)],
}

/// What becomes of a client's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// A handshake.
    Accept,
    /// A Retry packet, and then a handshake.
    Retry,
    /// A Retry packet each time.
    RetryForEver,
    /// A refusal (CONNECTION_REFUSED).
    Refuse,
    /// A version negotiation packet with these versions.
    Negotiate(&'static [u32]),
    /// A handshake, and after its first packets one of version negotiation.
    LateNegotiation,
    /// A handshake, and after its first packets a Retry packet.
    LateRetry,
    /// These bytes, each time.
    Bytes(&'static [u8]),
    /// A handshake each time, after which its tickets and their early data are forgotten.
    ForgetTickets,
    /// A handshake; with the first request all is forgotten, so that what comes then is answered with a stateless reset.
    ForgetAll,
}

/// A request, and the connection that it came on.
#[derive(Debug)]
pub struct Talk<'a> {
    connection: &'a mut Connection,
    /// The request's stream.
    stream: StreamId,
    /// How many requests came before it, on all connections.
    pub request_idx: u64,
    /// How many connections came before its own.
    pub connection_idx: u64,
    /// Our control stream.
    control: Option<StreamId>,
    /// It is answered when its time comes.
    is_later: bool,
    forgery: &'a Forgery,
    /// What follows when all of this has been sent.
    next: Option<Act>,
}

/// A running [`Peer`]; stopped on drop.
#[derive(Debug)]
pub struct QuicPeer {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<Served>>,
}

impl QuicPeer {
    /// Starts on a free port of 127.0.0.1.
    pub fn start(peer: &Peer) -> Self {
        Self::start_with(peer, Script::default())
    }

    /// One that answers well, after known delays; of the script, it has only these.
    pub fn scripted(script: Script) -> Self {
        Self::start_with(&Peer { on_request: |talk| talk.answer_later(), ..peers::GOOD }, script)
    }

    fn start_with(peer: &Peer, script: Script) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        let address = socket.local_addr().expect("a bound socket has an address");
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (stops, peer) = (Arc::clone(&is_stopping), *peer);
        let thread = thread::spawn(move || Loop::new(peer, script, socket).run(&stops));
        Self { address, is_stopping, thread: Some(thread) }
    }

    /// What to ask for.
    pub fn url(&self) -> String {
        format!("h3://{}/", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; what it did. One that panicked has printed why.
    pub fn finish(mut self) -> Served {
        self.stop().unwrap_or_default()
    }

    fn stop(&mut self) -> Option<Served> {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.thread.take()?.join().ok()
    }
}

impl Drop for QuicPeer {
    fn drop(&mut self) {
        // One that panicked has printed why; the test judges by what the client saw.
        let _ = self.stop();
    }
}

impl Talk<'_> {
    /// Sends bytes on the request's stream, and maybe its end.
    pub fn send(&mut self, bytes: &[u8], is_last: bool) {
        let mut stream = self.connection.send_stream(self.stream);
        let written = stream.write(bytes);
        assert_eq!(written.ok(), Some(bytes.len()), "a few bytes fit");
        if is_last {
            stream.finish().expect("the stream is open");
        }
    }

    /// Answers well.
    pub fn answer(&mut self) {
        self.send(OK, true);
    }

    /// Answers well after the next delay of the script.
    fn answer_later(&mut self) {
        self.is_later = true;
    }

    /// What has come on the client's control stream since this was asked last.
    pub fn client_control(&mut self) -> Vec<u8> {
        let first = StreamId::new(Side::Client, Dir::Uni, 0);
        let mut receiving = self.connection.recv_stream(first);
        let Ok(mut chunks) = receiving.read(true) else { return Vec::new() };
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes.extend_from_slice(&chunk.bytes);
        }
        // What is due is sent after this in any case.
        let _ = chunks.finalize();
        bytes
    }

    /// How many requests came before it on its connection.
    pub fn stream_idx(&self) -> u64 {
        self.stream.index()
    }

    /// Sends a packet with these frames of QUIC, 200 bytes of them at most.
    pub fn forge(&mut self, frames: &'static [u8]) {
        self.forgery.set(frames);
        // Something to send: it is replaced, and nothing misses it.
        self.open_uni(&[0x21; 250]);
    }

    /// Does this when what was sent until now has left: a later datagram has it.
    pub fn then(&mut self, act: Act) {
        self.next = Some(act);
    }

    /// Gives the response up.
    pub fn reset(&mut self, code: u32) {
        self.connection.send_stream(self.stream).reset(code.into()).expect("the stream is open");
    }

    /// Sends bytes on the control stream.
    pub fn send_control(&mut self, bytes: &[u8]) {
        let control = self.control.expect("it was opened with the connection");
        self.connection.send_stream(control).write(bytes).expect("a few bytes fit");
    }

    /// Ends the control stream.
    pub fn end_control(&mut self) {
        let control = self.control.expect("it was opened with the connection");
        self.connection.send_stream(control).finish().expect("the stream is open");
    }

    /// Opens another unidirectional stream with these bytes.
    pub fn open_uni(&mut self, bytes: &[u8]) {
        let stream = self.connection.streams().open(Dir::Uni).expect("the client allows some");
        self.connection.send_stream(stream).write(bytes).expect("a few bytes fit");
    }

    /// Closes the connection.
    pub fn close(&mut self, code: u32) {
        self.connection.close(Instant::now(), code.into(), bytes::Bytes::new());
    }
}

/// An answer that waits for its time: then, on which connection and stream, and when the request was received.
type Due = Reverse<(Instant, usize, StreamId, Instant)>;

/// The server's thread.
struct Loop {
    peer: Peer,
    script: Script,
    due: BinaryHeap<Due>,
    served: Served,
    /// When the last datagram was received.
    received: Instant,
    socket: UdpSocket,
    endpoint: Endpoint,
    config: Arc<EndpointConfig>,
    server_config: Arc<ServerConfig>,
    connections: BTreeMap<usize, Open>,
    request_count: u64,
    has_forgotten: bool,
    forgery: Forgery,
}

/// One connection.
struct Open {
    handle: ConnectionHandle,
    connection: Connection,
    /// How many were complete before it.
    idx: u64,
    /// Our control stream, once the handshake is complete.
    control: Option<StreamId>,
    /// What follows on which request when all has been sent.
    next: Vec<(StreamId, Act)>,
}

impl Loop {
    fn new(peer: Peer, script: Script, socket: UdpSocket) -> Self {
        let forgery = Forgery::default();
        let server_config = Arc::new(server_config(&peer, &forgery));
        let mut config = EndpointConfig::default();
        // One that forgets its connections must still know its ids, to answer them with a stateless reset.
        config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(8)));
        let config = Arc::new(config);
        let endpoint = Endpoint::new(Arc::clone(&config), Some(Arc::clone(&server_config)), true, None);
        Self {
            peer,
            script,
            due: BinaryHeap::new(),
            served: Served::default(),
            received: Instant::now(),
            socket,
            endpoint,
            config,
            server_config,
            connections: BTreeMap::new(),
            request_count: 0,
            has_forgotten: false,
            forgery,
        }
    }

    fn run(mut self, is_stopping: &AtomicBool) -> Served {
        let mut room = vec![0; 1 << 16];
        while !is_stopping.load(Ordering::SeqCst) {
            self.answer_due();
            match self.socket.recv_from(&mut room) {
                Ok((count, from)) => {
                    self.received = Instant::now();
                    self.on_datagram(&room[..count], from);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // A client that has gone is reported to the socket.
                Err(_) => {}
            }
            self.drive();
        }
        self.served
    }

    /// Sends the answers whose time has come.
    fn answer_due(&mut self) {
        while let Some(Reverse((at, key, stream, received))) = self.due.peek().copied()
            && at <= Instant::now()
        {
            self.due.pop();
            let Some(open) = self.connections.get_mut(&key) else { continue };
            discard_request(&mut open.connection, stream);
            open.talk(stream, self.request_count, &self.forgery).answer();
            self.drive_one(key);
            self.served.requests.push(ServedRequest { received, delay: received.elapsed() });
        }
    }

    fn on_datagram(&mut self, datagram: &[u8], from: SocketAddr) {
        let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
        match self.peer.greeting {
            Greeting::Negotiate(versions) if is_long => {
                let answer = version_negotiation(datagram, versions);
                return drop(self.socket.send_to(&answer, from));
            }
            Greeting::Bytes(bytes) if is_long => return drop(self.socket.send_to(bytes, from)),
            _ => {}
        }
        let mut out = Vec::new();
        let data = BytesMut::from(datagram);
        match self.endpoint.handle(Instant::now(), from, None, None, data, &mut out) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.greet(incoming, from);
                self.follow_up(datagram, from);
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(open) = self.connections.get_mut(&handle.0) {
                    open.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.send(&transmit, &out),
            None => {}
        }
    }

    /// Sends what a client must ignore, as it has received the first packets of a handshake.
    fn follow_up(&mut self, datagram: &[u8], from: SocketAddr) {
        let answer = match self.peer.greeting {
            Greeting::LateNegotiation => version_negotiation(datagram, &[0x6b33_43cf]),
            Greeting::LateRetry => self.retry(datagram, from),
            _ => return,
        };
        self.drive();
        // As good as lost.
        let _ = self.socket.send_to(&answer, from);
    }

    /// The Retry packet that another server would have answered with.
    fn retry(&self, datagram: &[u8], from: SocketAddr) -> Vec<u8> {
        let server_config = Some(Arc::clone(&self.server_config));
        let mut endpoint = Endpoint::new(Arc::clone(&self.config), server_config, true, None);
        let (mut out, data) = (Vec::new(), BytesMut::from(datagram));
        let event = endpoint.handle(Instant::now(), from, None, None, data, &mut out);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return Vec::new() };
        let retry = endpoint.retry(incoming, &mut out).expect("it has no token yet");
        out.truncate(retry.size);
        out
    }

    fn greet(&mut self, incoming: Incoming, from: SocketAddr) {
        let mut out = Vec::new();
        let is_validated = incoming.remote_address_validated();
        let answer = match self.peer.greeting {
            Greeting::Refuse => self.endpoint.refuse(incoming, &mut out),
            Greeting::Retry if !is_validated => {
                self.endpoint.retry(incoming, &mut out).expect("it has no token yet")
            }
            // A second Retry cannot be made with a token in the packet: the client must drop it anyway, and so does this.
            Greeting::RetryForEver if is_validated => return self.endpoint.ignore(incoming),
            Greeting::RetryForEver => {
                let answer = self.endpoint.retry(incoming, &mut out).expect("it has no token yet");
                // Once more at once: the client has followed the first by then.
                let _ = self.socket.send_to(&out[..answer.size], from);
                answer
            }
            greeting => {
                let is_new = greeting == Greeting::ForgetTickets;
                let config = is_new.then(|| Arc::new(server_config(&self.peer, &self.forgery)));
                let accepted = self.endpoint.accept(incoming, Instant::now(), &mut out, config);
                match accepted {
                    Ok((handle, connection)) => {
                        let open = Open { handle, connection, idx: 0, control: None, next: Vec::new() };
                        self.connections.insert(handle.0, open);
                    }
                    Err(error) => {
                        if let Some(answer) = error.response {
                            self.send(&answer, &out);
                        }
                    }
                }
                return;
            }
        };
        self.send(&answer, &out);
    }

    fn send(&self, transmit: &Transmit, bytes: &[u8]) {
        let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for datagram in bytes[..transmit.size].chunks(size) {
            // As good as lost.
            let _ = self.socket.send_to(datagram, transmit.destination);
        }
    }

    fn drive(&mut self) {
        for key in self.connections.keys().copied().collect::<Vec<_>>() {
            self.drive_one(key);
            if self.peer.greeting == Greeting::ForgetAll && self.request_count > 0 && !self.has_forgotten {
                self.has_forgotten = true;
                self.connections.clear();
                let server_config = Some(Arc::clone(&self.server_config));
                self.endpoint = Endpoint::new(Arc::clone(&self.config), server_config, true, None);
                return;
            }
        }
        self.connections.retain(|_, open| !open.connection.is_drained());
    }

    fn drive_one(&mut self, key: usize) {
        let Some(mut open) = self.connections.remove(&key) else { return };
        let now = Instant::now();
        if open.connection.poll_timeout().is_some_and(|at| at <= now) {
            open.connection.handle_timeout(now);
        }
        while let Some(event) = open.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(open.handle, event) {
                open.connection.handle_event(answer);
            }
        }
        while let Some(event) = open.connection.poll() {
            match event {
                Event::Connected => self.begin(&mut open),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = open.connection.streams().accept(Dir::Bi) {
                        self.on_request(key, &mut open, stream);
                    }
                }
                _ => {}
            }
        }
        self.transmit(&mut open, now);
        while let Some((stream, act)) = open.next.pop() {
            let mut talk = open.talk(stream, self.request_count, &self.forgery);
            act(&mut talk);
            let next = talk.next;
            open.next.extend(next.map(|act| (stream, act)));
            self.transmit(&mut open, now);
        }
        self.connections.insert(key, open);
    }

    fn begin(&mut self, open: &mut Open) {
        open.idx = self.served.connection_count;
        self.served.connection_count += 1;
        let stream = open.connection.streams().open(Dir::Uni).expect("the client allows some");
        open.connection.send_stream(stream).write(SETTINGS).expect("a few bytes fit");
        open.control = Some(stream);
        (self.peer.on_connected)(&mut open.connection);
    }

    fn on_request(&mut self, key: usize, open: &mut Open, stream: StreamId) {
        let request_idx = self.request_count;
        self.request_count += 1;
        if self.peer.greeting == Greeting::ForgetAll && !self.has_forgotten {
            return;
        }
        let mut talk = open.talk(stream, request_idx, &self.forgery);
        (self.peer.on_request)(&mut talk);
        if talk.is_later {
            let delays = &self.script.delays;
            let at = self.received + delays[request_idx as usize % delays.len()];
            self.due.push(Reverse((at, key, stream, self.received)));
        }
        let next = talk.next;
        open.next.extend(next.map(|act| (stream, act)));
    }

    fn transmit(&self, open: &mut Open, now: Instant) {
        let mut out = Vec::new();
        while let Some(transmit) = open.connection.poll_transmit(now, 1, &mut out) {
            self.send(&transmit, &out);
            out.clear();
        }
    }
}

impl Open {
    fn talk<'a>(&'a mut self, stream: StreamId, request_idx: u64, forgery: &'a Forgery) -> Talk<'a> {
        let Self { connection, idx, control, .. } = self;
        let (connection_idx, control) = (*idx, *control);
        let (is_later, next) = (false, None);
        Talk { connection, stream, request_idx, connection_idx, control, is_later, forgery, next }
    }
}

/// With a certificate and with session tickets of its own.
fn server_config(peer: &Peer, forgery: &Forgery) -> ServerConfig {
    let more = (0..peer.name_count).map(|nth| format!("{nth}.of-many-names.example"));
    let names: Vec<String> = ["localhost", "127.0.0.1"].map(str::to_owned).into_iter().chain(more).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let identity = Authority::new().issue(&names, Validity::Current);
    let mut tls = identity.server_config(&[&rustls::version::TLS13]);
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // RFC 9001 4.6.1: the only value but 0.
    tls.max_early_data_size = u32::MAX;
    (peer.tls)(&mut tls);
    let tls = Arc::new(tls);
    let plain = QuicServerConfig::try_from(Arc::clone(&tls)).expect("TLS 1.3 is what QUIC needs");
    let forgery = forgery.clone();
    let crypto = ForgedConfig { peer: *peer, tls, plain: Arc::new(plain), forgery };
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    (peer.transport)(&mut transport);
    config.transport_config(Arc::new(transport));
    config
}

/// Takes a request off its stream: only streams that were read to their end make way for more (RFC 9000 4.6).
fn discard_request(connection: &mut Connection, stream: StreamId) {
    let mut receiving = connection.recv_stream(stream);
    let Ok(mut chunks) = receiving.read(true) else { return };
    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
    // What is due is sent after this in any case.
    let _ = chunks.finalize();
}

/// RFC 9000 17.2.1: the connection ids of the client's packet, swapped, and the versions.
fn version_negotiation(packet: &[u8], versions: &[u32]) -> Vec<u8> {
    let destination_bytes = usize::from(packet[5]);
    let (destination, rest) = packet[6..].split_at(destination_bytes);
    let source = &rest[1..1 + usize::from(rest[0])];
    let mut answer = vec![0x80, 0, 0, 0, 0, source.len() as u8];
    answer.extend_from_slice(source);
    answer.push(destination.len() as u8);
    answer.extend_from_slice(destination);
    versions.iter().for_each(|version| answer.extend_from_slice(&version.to_be_bytes()));
    answer
}

/// A control stream with empty SETTINGS.
const SETTINGS: &[u8] = &[0x00, 0x04, 0x00];

/// HEADERS with `:status: 200` (QPACK's static table has it at 25).
pub(crate) const OK: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9];
