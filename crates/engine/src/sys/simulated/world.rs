//! The simulated network: connections, the bytes under way on them, and the clock.
//!
//! Owns: when bytes arrive and in which pieces, and how much a socket takes. What the server does with them is `server`'s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use squall_measure::Sample;

use super::http3::{QuicServer, ServerCounts};
use super::secure::{SecurePeer, server_config};
use super::server::{Answer, Behaviour, Peer, Speaks};
use crate::pace::SplitMix;
use crate::sys::{Readiness, Recv};

/// Everything outside the event loop.
pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) samples: Vec<Sample>,
    /// What the network saw of each response that arrived whole.
    pub(crate) truths: Vec<Truth>,
    /// How long each connect took that succeeded.
    pub(crate) connects: Vec<u64>,
    /// Whole requests that reached the server.
    pub(crate) received_count: u64,
    pub(crate) fault_count: u64,
    /// Of them, those of single datagrams, which QUIC makes good.
    pub(crate) lost_count: u64,
    /// The last things that happened, for a seed that fails.
    pub(crate) log: VecDeque<String>,
    pub(super) random: SplitMix,
    pub(super) behaviour: Behaviour,
    /// The server of HTTP/3, where that is spoken.
    pub(super) quic: Option<Box<QuicServer>>,
    seed: u64,
    /// How often the loop has looked for events.
    pub(crate) wait_count: u64,
    tls: Option<Arc<ServerConfig>>,
    pub(super) sockets: Vec<Socket>,
    /// Sockets with an edge that was not reported yet.
    ready: VecDeque<usize>,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    actions: Vec<Option<(usize, Action)>>,
}

/// One response, as the network saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truth {
    /// From the moment when the request's first byte was offered to the socket to the arrival of the response's last one.
    pub(crate) duration_ns: u64,
    pub(crate) status: u16,
    /// Which connection it came on, and when, since the world began.
    pub(crate) socket_idx: usize,
    pub(crate) at_ns: u64,
}

/// What happens at a moment.
pub(super) enum Action {
    /// The connect ends.
    Connected(Result<(), io::ErrorKind>),
    /// Bytes reach the server.
    ToServer(Vec<u8>),
    /// The socket has space for so many bytes more.
    Drained(usize),
    /// The server answers, in an order of its own.
    Answer(Answer),
    /// Bytes reach the client; with the response that they complete, whose duration is that since this moment.
    ToClient(Vec<u8>, Option<(u64, u16)>),
    /// The server's end of the stream, or its reset, reaches the client.
    End {
        is_reset: bool,
        completes: Option<(u64, u16)>,
    },
    /// A datagram reaches the server, or the client.
    DatagramToServer(Vec<u8>),
    DatagramToClient(Vec<u8>),
    /// An ICMP message says that nothing listens at the server's port.
    Unreachable,
    /// A connection of the HTTP/3 server has asked for this moment.
    QuicTimer(usize),
    /// It answers the request on this stream.
    QuicAnswer(usize, u64),
}

#[derive(Default)]
pub(super) struct Socket {
    pub(super) is_udp: bool,
    pub(super) is_unreachable: bool,
    pub(super) datagrams: VecDeque<Vec<u8>>,
    token: Option<u64>,
    is_closed: bool,
    connect_error: Option<io::ErrorKind>,
    inbox: VecDeque<u8>,
    has_ended: bool,
    is_reset: bool,
    is_silenced: bool,
    /// Bytes that the socket still takes.
    space_bytes: usize,
    pub(super) is_blocked: bool,
    edge: Edge,
    peer: Peer,
    secure: Option<SecurePeer>,
    connect_ns: u64,
    /// Where each write began in the stream, how much it offered, and when.
    offers: Vec<(u64, u64, u64)>,
    sent_bytes: u64,
    /// Nothing overtakes in either direction.
    pub(super) last_to_server_ns: u64,
    pub(super) last_to_client_ns: u64,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Edge {
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) closed: bool,
    pub(super) is_listed: bool,
}

impl World {
    pub(crate) fn new(seed: u64, behaviour: Behaviour) -> Self {
        Self {
            now_ns: BEGIN_NS,
            samples: Vec::new(),
            truths: Vec::new(),
            connects: Vec::new(),
            received_count: 0,
            fault_count: 0,
            lost_count: 0,
            log: VecDeque::new(),
            random: SplitMix::new(seed),
            tls: behaviour.is_tls.then(server_config),
            quic: (behaviour.speaks == Speaks::H3).then(|| Box::new(QuicServer::new())),
            seed,
            wait_count: 0,
            behaviour,
            sockets: Vec::new(),
            ready: VecDeque::new(),
            queue: BinaryHeap::new(),
            actions: Vec::new(),
        }
    }

    /// Sockets that the event loop has not closed.
    pub(crate) fn open_count(&self) -> usize {
        self.sockets.iter().filter(|socket| !socket.is_closed).count()
    }

    /// A socket whose peer is the HTTP/3 server.
    pub(super) fn connect_nothing(&mut self) -> usize {
        self.sockets.push(Socket { space_bytes: 1, ..Socket::default() });
        self.sockets.len() - 1
    }

    /// What the HTTP/3 server has counted.
    pub(crate) fn server_counts(&self) -> Option<&ServerCounts> {
        self.quic.as_deref().map(QuicServer::counts)
    }

    pub(super) fn connect(&mut self) -> usize {
        let idx = self.sockets.len();
        let space_bytes = self.behaviour.socket_bytes;
        self.sockets.push(Socket {
            space_bytes,
            peer: Peer::new(self.behaviour.speaks),
            secure: self.tls.as_ref().map(SecurePeer::new),
            connect_ns: self.now_ns,
            ..Socket::default()
        });
        let is_refused = self.has_fault(self.behaviour.refused);
        let result = if is_refused { Err(io::ErrorKind::ConnectionRefused) } else { Ok(()) };
        let at_ns = self.now_ns + 1 + self.below(300_000);
        self.at(at_ns, idx, Action::Connected(result));
        if self.has_fault(self.behaviour.closes) {
            let at_ns = at_ns + 1 + self.below(20_000_000);
            let is_reset = self.one_in(2);
            self.at(at_ns, idx, Action::End { is_reset, completes: None });
        }
        idx
    }

    pub(super) fn connection_error(&mut self, idx: usize) -> io::Result<()> {
        self.sockets[idx].connect_error.map_or(Ok(()), |kind| Err(kind.into()))
    }

    pub(super) fn watch(&mut self, idx: usize, token: u64) {
        self.sockets[idx].token = Some(token);
    }

    /// Linux reports again what the socket is ready for.
    pub(super) fn rewatch(&mut self, idx: usize, token: u64) {
        let socket = &mut self.sockets[idx];
        socket.token = Some(token);
        let readable =
            !socket.inbox.is_empty() || !socket.datagrams.is_empty() || socket.has_ended || socket.is_reset;
        let edge = Edge {
            readable,
            writable: socket.space_bytes > 0 && !(socket.is_udp && socket.is_blocked),
            closed: socket.has_ended || socket.is_reset,
            is_listed: false,
        };
        self.list(idx, edge);
    }

    pub(super) fn close(&mut self, idx: usize) {
        self.note(|| format!("client closes {idx}"));
        self.sockets[idx].is_closed = true;
    }

    pub(super) fn recv(&mut self, idx: usize, buf: &mut [u8], how: Recv) -> io::Result<usize> {
        let socket = &mut self.sockets[idx];
        if socket.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if socket.inbox.is_empty() {
            return if socket.has_ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = buf.len().min(socket.inbox.len());
        if how != Recv::Drop {
            buf.iter_mut().zip(&socket.inbox).for_each(|(to, from)| *to = *from);
        }
        if how != Recv::Peek {
            socket.inbox.drain(..count);
        }
        Ok(count)
    }

    pub(super) fn send(&mut self, idx: usize, bytes: &[u8]) -> io::Result<usize> {
        if self.sockets[idx].is_reset {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let partial = if self.one_in(8) { 1 + self.below(bytes.len() as u64) as usize } else { bytes.len() };
        let now_ns = self.now_ns;
        let socket = &mut self.sockets[idx];
        let count = bytes.len().min(socket.space_bytes).min(partial);
        socket.offers.push((socket.sent_bytes, bytes.len() as u64, now_ns));
        socket.is_blocked = count < bytes.len();
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        socket.space_bytes -= count;
        socket.sent_bytes += count as u64;
        let at_ns = socket.last_to_server_ns.max(now_ns) + 1 + self.below(100_000);
        self.sockets[idx].last_to_server_ns = at_ns;
        self.at(at_ns, idx, Action::ToServer(bytes[..count].to_vec()));
        let drained_ns = at_ns + self.below(50_000);
        self.at(drained_ns, idx, Action::Drained(count));
        Ok(count)
    }

    pub(super) fn sleep_until(&mut self, at_ns: u64) {
        while let Some(Reverse((next_ns, ..))) = self.queue.peek()
            && *next_ns <= at_ns
        {
            self.step();
        }
        self.now_ns = self.now_ns.max(at_ns);
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Lets time pass until a socket is ready. A loop that does not sleep moves it as well, or it would spin for ever.
    pub(super) fn wait(&mut self, timeout: Duration) -> Vec<Readiness> {
        self.wait_count += 1;
        assert!(self.now_ns < END_NS, "seed {}: the run does not end", self.seed);
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(POLL_NS);
        let until_ns = self.now_ns.saturating_add(timeout_ns);
        while self.ready.is_empty() {
            match self.queue.peek() {
                Some(Reverse((at_ns, ..))) if *at_ns <= until_ns => self.step(),
                _ => {
                    self.now_ns = until_ns;
                    break;
                }
            }
        }
        self.report()
    }

    /// Some of the sockets that are ready, in any order.
    fn report(&mut self) -> Vec<Readiness> {
        let count = self.ready.len();
        for idx in (1..count).rev() {
            self.ready.swap(idx, self.random.next() as usize % (idx + 1));
        }
        let reported = if self.one_in(4) { 1 + self.below(count.max(1) as u64) as usize } else { count };
        let mut events = Vec::new();
        for idx in self.ready.drain(..reported.min(count)).collect::<Vec<_>>() {
            let socket = &mut self.sockets[idx];
            let Edge { readable, writable, closed, .. } = std::mem::take(&mut socket.edge);
            if let Some(token) = socket.token.filter(|_| !socket.is_closed) {
                // Linux reports that a socket is writable with every other edge.
                let writable = writable || socket.space_bytes > 0 && !socket.is_udp;
                events.push(Readiness { token, readable, writable, closed });
            }
        }
        events
    }

    /// All that happens at the next moment.
    fn step(&mut self) {
        let Some(Reverse((at_ns, ..))) = self.queue.peek().copied() else { return };
        self.now_ns = self.now_ns.max(at_ns);
        while let Some(Reverse((next_ns, _, action_idx))) = self.queue.peek().copied()
            && next_ns <= at_ns
        {
            self.queue.pop();
            if let Some((idx, action)) = self.actions[action_idx].take() {
                self.act(idx, action);
            }
        }
    }

    fn act(&mut self, idx: usize, action: Action) {
        if self.sockets[idx].is_closed {
            return;
        }
        match action {
            Action::Connected(result) => {
                self.note(|| format!("{idx} connected: {result:?}"));
                if result.is_ok() {
                    self.connects.push(self.now_ns - self.sockets[idx].connect_ns);
                }
                self.sockets[idx].connect_error = result.err();
                self.list(idx, Edge { writable: true, closed: result.is_err(), ..Edge::default() });
            }
            Action::Drained(count) => {
                let socket = &mut self.sockets[idx];
                socket.space_bytes += count;
                if socket.is_udp {
                    socket.is_blocked = false;
                    return self.list(idx, Edge { writable: true, ..Edge::default() });
                }
                // Linux, too, waits until there is space worth a write.
                if socket.is_blocked && socket.space_bytes >= self.behaviour.socket_bytes / 2 {
                    socket.is_blocked = false;
                    self.list(idx, Edge { writable: true, ..Edge::default() });
                }
            }
            Action::ToServer(bytes) => self.serve(idx, &bytes),
            Action::Answer(answer) => self.answer(idx, answer),
            Action::ToClient(..) if self.sockets[idx].has_ended => {}
            Action::ToClient(bytes, completes) => {
                self.sockets[idx].inbox.extend(bytes);
                self.note_whole(idx, completes);
                self.list(idx, Edge { readable: true, ..Edge::default() });
            }
            Action::End { is_reset, completes } => {
                self.note_whole(idx, completes);
                self.note(|| format!("{idx} is ended by the server, reset: {is_reset}"));
                let socket = &mut self.sockets[idx];
                (socket.has_ended, socket.is_reset) = (true, is_reset);
                self.list(idx, Edge { readable: true, writable: is_reset, closed: true, is_listed: false });
            }
            other => self.act_on_datagrams(idx, other),
        }
    }

    /// A response may be whole now.
    fn note_whole(&mut self, idx: usize, completes: Option<(u64, u16)>) {
        if let Some((start_ns, status)) = completes {
            self.note(|| format!("{idx} has a whole response: {status}"));
            let (duration_ns, at_ns) = (self.now_ns - start_ns, self.now_ns - BEGIN_NS);
            self.truths.push(Truth { duration_ns, status, socket_idx: idx, at_ns });
        }
    }

    /// The server reads, and does something about it now or later.
    fn serve(&mut self, idx: usize, bytes: &[u8]) {
        let socket = &mut self.sockets[idx];
        let opened = socket.secure.as_mut().map(|secure| secure.open(bytes));
        let mut peer = std::mem::take(&mut socket.peer);
        let plain = opened.as_ref().map_or(bytes, |(plain, _)| plain);
        let answers = peer.take(plain, &self.behaviour, &mut self.random);
        if let Some((_, output)) = opened.filter(|(_, output)| !output.is_empty()) {
            self.send_to_client(idx, self.now_ns, &output, None);
        }
        self.sockets[idx].peer = peer;
        for answer in answers {
            self.fault_count += u64::from(answer.is_fault);
            self.received_count += u64::from(answer.request_offset.is_some());
            if self.behaviour.speaks == Speaks::H2 {
                self.at(self.now_ns + answer.delay_ns, idx, Action::Answer(Answer { delay_ns: 0, ..answer }));
            } else {
                self.answer(idx, answer);
            }
        }
    }

    fn answer(&mut self, idx: usize, answer: Answer) {
        if std::mem::replace(&mut self.sockets[idx].is_silenced, answer.silences) {
            self.sockets[idx].is_silenced = true;
            return;
        }
        let Answer { delay_ns, bytes, request_offset, status, ends, lasts_until_close, .. } = answer;
        let at_end = |is_wanted: bool, start_ns| (is_wanted && status != 0).then_some((start_ns, status));
        let start_ns = request_offset.map_or(0, |offset| self.offered_ns(idx, offset));
        let begin_ns = self.now_ns + delay_ns;
        // The end of a TLS session is announced where a response lasts until then, and that completes it.
        let is_announced = lasts_until_close && self.behaviour.is_tls;
        let bytes = match &mut self.sockets[idx].secure {
            Some(secure) if !bytes.is_empty() => secure.seal(&bytes, is_announced),
            _ => bytes,
        };
        let completes = at_end(!lasts_until_close || is_announced, start_ns);
        let at_ns = self.send_to_client(idx, begin_ns, &bytes, completes);
        if let Some(is_reset) = ends {
            let at_ns = self.sockets[idx].last_to_client_ns.max(at_ns) + 1 + self.below(20_000);
            self.sockets[idx].last_to_client_ns = at_ns;
            let completes = at_end(lasts_until_close && !is_announced, start_ns);
            self.at(at_ns, idx, Action::End { is_reset, completes });
        }
    }

    /// Bytes leave for the client, in pieces of any size; when the last of them arrives, and completes a response.
    fn send_to_client(
        &mut self,
        idx: usize,
        begin_ns: u64,
        bytes: &[u8],
        completes: Option<(u64, u16)>,
    ) -> u64 {
        let mut at_ns = begin_ns;
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece_bytes =
                if self.one_in(3) { 1 + self.below(rest.len() as u64) as usize } else { rest.len() };
            let (piece, after) = rest.split_at(piece_bytes);
            rest = after;
            at_ns = self.sockets[idx].last_to_client_ns.max(at_ns) + 1 + self.below(20_000);
            self.sockets[idx].last_to_client_ns = at_ns;
            let completes = completes.filter(|_| rest.is_empty());
            self.at(at_ns, idx, Action::ToClient(piece.to_vec(), completes));
        }
        at_ns
    }

    /// When the byte at an offset of the client's stream was first offered to the socket.
    fn offered_ns(&self, idx: usize, offset: u64) -> u64 {
        let secure = self.sockets[idx].secure.as_ref();
        let offset = secure.map_or(offset, |secure| secure.offset_of(offset));
        let covers = |(begin, bytes, _): &&(u64, u64, u64)| *begin <= offset && offset < begin + bytes;
        self.sockets[idx].offers.iter().find(covers).map_or(self.now_ns, |(.., at_ns)| *at_ns)
    }

    pub(super) fn list(&mut self, idx: usize, edge: Edge) {
        let own = &mut self.sockets[idx].edge;
        own.readable |= edge.readable;
        own.writable |= edge.writable;
        own.closed |= edge.closed;
        if !std::mem::replace(&mut own.is_listed, true) {
            self.ready.push_back(idx);
        }
    }

    pub(super) fn at(&mut self, at_ns: u64, idx: usize, action: Action) {
        self.queue.push(Reverse((at_ns, self.actions.len() as u64, self.actions.len())));
        self.actions.push(Some((idx, action)));
    }

    pub(super) fn has_fault(&mut self, per_thousand: u32) -> bool {
        let has_fault = self.below(1000) < u64::from(per_thousand);
        self.fault_count += u64::from(has_fault);
        has_fault
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.random.next().is_multiple_of(count)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random.next() % bound
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(format!("{:>12} {}", self.now_ns - BEGIN_NS, what()));
    }
}

/// When the world begins, on its clock.
const BEGIN_NS: u64 = 1_000_000_000;

/// Long after the end of every run: after the last time limit there is.
const END_NS: u64 = 300_000_000_000;

/// What a look at the sockets takes.
const POLL_NS: u64 = 500;

/// Events that are shown of a seed that fails.
const LOG_LINES: usize = 40;
