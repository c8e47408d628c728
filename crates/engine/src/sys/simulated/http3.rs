//! The simulated server of HTTP/3: quinn-proto's connections, and answers that are written by hand, good and bad ones.
//!
//! Owns: the server's end of QUIC. Never: when datagrams arrive, and whether, which is the network's.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, TransportConfig, VarInt, WriteError,
};
use squall_wire::h3::server::{Inbound, RequestHead, RequestSink, SectionReader};

use super::secure::server_config;
use super::server::Behaviour;
use crate::pace::SplitMix;

/// The server.
pub(crate) struct QuicServer {
    endpoint: Endpoint,
    connections: BTreeMap<usize, ServerConnection>,
    base: Instant,
    counts: ServerCounts,
    effects: Vec<Effect>,
}

/// What the server has seen and done.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerCounts {
    /// Requests that have come whole.
    pub(crate) requests: u64,
    /// Bytes of their bodies.
    pub(crate) body_bytes: u64,
    /// Whole answers that were written, by their status.
    pub(crate) answers: BTreeMap<u16, u64>,
    pub(crate) faults: u64,
}

/// What follows in the world.
pub(super) enum Effect {
    /// A datagram leaves for the client that has this socket.
    Send(usize, Vec<u8>),
    /// A connection wants to be asked at this moment.
    Timer { socket_idx: usize, handle: usize, at_ns: u64 },
    /// A request is answered after a while.
    Answer { socket_idx: usize, handle: usize, stream: u64, delay_ns: u64 },
}

struct ServerConnection {
    connection: Connection,
    socket_idx: usize,
    sections: SectionReader,
    requests: BTreeMap<u64, (Inbound, u64)>,
    /// What streams have still to send, and how they end then.
    unsent: BTreeMap<u64, (Vec<u8>, StreamEnd)>,
    control: Option<StreamId>,
    /// It answers nothing any more.
    is_silent: bool,
    timer_ns: u64,
}

#[derive(Clone, Copy)]
enum StreamEnd {
    Open,
    Fin,
    Reset(u32),
}

struct BodyCount(u64);

impl RequestSink for BodyCount {
    fn head(&mut self, _: &RequestHead) {}

    fn data(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

impl QuicServer {
    pub(super) fn new() -> Self {
        let mut tls = Arc::unwrap_or_clone(server_config());
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.max_early_data_size = u32::MAX;
        let crypto = QuicServerConfig::try_from(Arc::new(tls)).expect("it has a suite for QUIC");
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(8_u32.into())
            // Bodies are larger, so that they wait for the window.
            .stream_receive_window(4_000_u32.into())
            .send_window(1 << 20);
        config.transport_config(Arc::new(transport));
        let endpoint_config = Arc::new(EndpointConfig::default());
        Self {
            endpoint: Endpoint::new(endpoint_config, Some(Arc::new(config)), true, Some([7; 32])),
            connections: BTreeMap::new(),
            base: Instant::now(),
            counts: ServerCounts::default(),
            effects: Vec::new(),
        }
    }

    pub(crate) fn counts(&self) -> &ServerCounts {
        &self.counts
    }

    fn instant(&self, now_ns: u64) -> Instant {
        self.base + Duration::from_nanos(now_ns)
    }

    /// A datagram has come.
    pub(super) fn receive(
        &mut self,
        (now_ns, socket_idx): (u64, usize),
        bytes: &[u8],
        (behaviour, random): (&Behaviour, &mut SplitMix),
    ) -> Vec<Effect> {
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 1024 + socket_idx as u16));
        let now = self.instant(now_ns);
        let mut out = Vec::new();
        let event = self.endpoint.handle(now, remote, None, None, BytesMut::from(bytes), &mut out);
        match event {
            None => {}
            Some(DatagramEvent::Response(transmit)) => {
                self.effects.push(Effect::Send(socket_idx, out[..transmit.size].to_vec()));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut out, None) {
                    Ok((handle, connection)) => {
                        let own = ServerConnection::new(connection, socket_idx);
                        self.connections.insert(handle.0, own);
                        self.drive(handle, now_ns, (behaviour, random));
                    }
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.effects.push(Effect::Send(socket_idx, out[..transmit.size].to_vec()));
                        }
                    }
                }
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(own) = self.connections.get_mut(&handle.0) {
                    own.connection.handle_event(event);
                }
                self.drive(handle, now_ns, (behaviour, random));
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// The time of a connection may have come.
    pub(super) fn expire(
        &mut self,
        (now_ns, handle): (u64, usize),
        (behaviour, random): (&Behaviour, &mut SplitMix),
    ) -> Vec<Effect> {
        let now = self.instant(now_ns);
        if let Some(own) = self.connections.get_mut(&handle).filter(|own| own.timer_ns <= now_ns) {
            own.timer_ns = u64::MAX;
            if own.connection.poll_timeout().is_some_and(|at| at <= now) {
                own.connection.handle_timeout(now);
            }
            self.drive(ConnectionHandle(handle), now_ns, (behaviour, random));
        }
        std::mem::take(&mut self.effects)
    }

    /// A request is answered now.
    pub(super) fn answer(
        &mut self,
        (now_ns, handle, stream): (u64, usize, u64),
        (behaviour, random): (&Behaviour, &mut SplitMix),
    ) -> Vec<Effect> {
        let now = self.instant(now_ns);
        if let Some(own) = self.connections.get_mut(&handle).filter(|own| !own.is_silent) {
            own.answer((stream, now), (behaviour, random), &mut self.counts);
        }
        self.drive(ConnectionHandle(handle), now_ns, (behaviour, random));
        std::mem::take(&mut self.effects)
    }

    /// Follows what has happened on a connection, and sends what it has to send.
    fn drive(
        &mut self,
        handle: ConnectionHandle,
        now_ns: u64,
        (behaviour, random): (&Behaviour, &mut SplitMix),
    ) {
        let now = self.instant(now_ns);
        let Some(own) = self.connections.get_mut(&handle.0) else { return };
        let socket_idx = own.socket_idx;
        while let Some(event) = own.connection.poll() {
            match event {
                Event::Connected => own.greet(),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = own.connection.streams().accept(dir) {
                        own.read(id, &mut self.counts);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => own.read(id, &mut self.counts),
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    own.unsent.remove(&u64::from(id));
                    // It may have ended already.
                    let _ = own.connection.send_stream(id).reset(VarInt::from_u32(0x10c));
                }
                _ => {}
            }
            for stream in own.take_whole() {
                let delay_ns = random.next() % behaviour.delay_ns_max + 1;
                self.effects.push(Effect::Answer { socket_idx, handle: handle.0, stream, delay_ns });
            }
        }
        own.write_all();
        while let Some(event) = own.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                own.connection.handle_event(event);
            }
        }
        let mut out = Vec::new();
        while let Some(transmit) = own.connection.poll_transmit(now, 1, &mut out) {
            self.effects.push(Effect::Send(socket_idx, out[..transmit.size].to_vec()));
            out.clear();
        }
        if own.connection.is_drained() {
            self.connections.remove(&handle.0);
            return;
        }
        if let Some(at) = own.connection.poll_timeout() {
            let at_ns = (at.saturating_duration_since(self.base).as_nanos() as u64).max(now_ns + 1);
            if at_ns != own.timer_ns {
                own.timer_ns = at_ns;
                self.effects.push(Effect::Timer { socket_idx, handle: handle.0, at_ns });
            }
        }
    }
}

impl ServerConnection {
    fn new(connection: Connection, socket_idx: usize) -> Self {
        Self {
            connection,
            socket_idx,
            sections: SectionReader::default(),
            requests: BTreeMap::new(),
            unsent: BTreeMap::new(),
            control: None,
            is_silent: false,
            timer_ns: u64::MAX,
        }
    }

    /// The control stream begins with empty SETTINGS.
    fn greet(&mut self) {
        self.control = self.connection.streams().open(Dir::Uni);
        if let Some(id) = self.control {
            self.unsent.insert(u64::from(id), (vec![0x00, 0x04, 0x00], StreamEnd::Open));
        }
    }

    /// Reads what has come on a stream; those of one direction are of no interest.
    fn read(&mut self, id: StreamId, counts: &mut ServerCounts) {
        let mut bytes = Vec::new();
        let mut is_over = false;
        let mut stream = self.connection.recv_stream(id);
        if let Ok(mut chunks) = stream.read(true) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
                    Ok(None) => {
                        is_over = true;
                        break;
                    }
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
        }
        if id.dir() == Dir::Uni {
            return;
        }
        let (inbound, body_bytes) = self.requests.entry(u64::from(id)).or_default();
        let mut sink = BodyCount(0);
        let decoded = inbound.decode(&mut self.sections, (&bytes, is_over), &mut sink);
        decoded.expect("the client keeps to the rules");
        *body_bytes += sink.0;
        if is_over {
            counts.requests += 1;
            counts.body_bytes += *body_bytes;
            *body_bytes = WHOLE;
        }
    }

    /// Requests that have come whole since the last time.
    fn take_whole(&mut self) -> Vec<u64> {
        let whole: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, (_, body_bytes))| *body_bytes == WHOLE)
            .map(|(id, _)| *id)
            .collect();
        whole.iter().for_each(|id| drop(self.requests.remove(id)));
        whole
    }

    /// Answers a request, well or not.
    fn answer(
        &mut self,
        (stream, now): (u64, Instant),
        (behaviour, random): (&Behaviour, &mut SplitMix),
        counts: &mut ServerCounts,
    ) {
        let body = vec![b'b'; (random.next() % (behaviour.body_bytes_max + 1)) as usize];
        let mut draw = |per_thousand: u32| random.next() % 1000 < u64::from(per_thousand);
        let fates = [
            draw(behaviour.ends),
            draw(behaviour.cuts),
            draw(behaviour.stalls),
            draw(behaviour.resets),
            draw(behaviour.garbage),
        ];
        let (is_error, is_farewell, is_other) =
            (draw(behaviour.errors), draw(behaviour.farewells), draw(500));
        counts.faults += u64::from(fates.contains(&true) || is_error);
        if is_farewell && let Some(control) = self.control {
            // GOAWAY: requests behind this one are not processed.
            let id = stream + 4;
            counts.faults += 1;
            let frame = [&[0x07, 0x04][..], &(0x8000_0000 | id as u32).to_be_bytes()].concat();
            let entry = self.unsent.entry(u64::from(control)).or_insert((Vec::new(), StreamEnd::Open));
            entry.0.extend(frame);
        }
        let status = if is_error { 500 } else { 200 };
        let whole = answer_bytes(status, &body);
        let (bytes, end) = match fates {
            [true, ..] => {
                self.is_silent = true;
                let code = if is_other { 0x100 } else { 0x102 };
                return self.connection.close(now, VarInt::from_u32(code), bytes::Bytes::new());
            }
            [_, true, ..] => (whole[..whole.len() / 2].to_vec(), StreamEnd::Reset(0x102)),
            [_, _, true, ..] => {
                self.is_silent = true;
                return;
            }
            [_, _, _, true, _] => (Vec::new(), StreamEnd::Reset(if is_other { 0x10b } else { 0x102 })),
            // DATA before HEADERS.
            [.., true] => (vec![0x00, 0x01, b'x'], StreamEnd::Fin),
            _ => {
                *counts.answers.entry(status).or_default() += 1;
                (whole, StreamEnd::Fin)
            }
        };
        self.unsent.insert(stream, (bytes, end));
    }

    /// Writes what waits, as far as the client allows.
    fn write_all(&mut self) {
        let Self { connection, unsent, .. } = self;
        unsent.retain(|id, (bytes, end)| {
            let mut stream = connection.send_stream(StreamId::from(VarInt::from_u32(*id as u32)));
            while !bytes.is_empty() {
                match stream.write(bytes) {
                    Ok(count) => drop(bytes.drain(..count)),
                    Err(WriteError::Blocked) => return true,
                    Err(_) => return false,
                }
            }
            // It may have been stopped meanwhile.
            match *end {
                StreamEnd::Open => return true,
                StreamEnd::Fin => drop(stream.finish()),
                StreamEnd::Reset(code) => drop(stream.reset(VarInt::from_u32(code))),
            }
            false
        });
    }
}

/// A response without fields: `:status` is an entry of QPACK's static table.
fn answer_bytes(status: u16, body: &[u8]) -> Vec<u8> {
    let status: &[u8] = if status == 200 { &[0xd9] } else { &[0xff, 0x08] };
    let mut bytes = vec![0x01, 2 + status.len() as u8, 0, 0];
    bytes.extend_from_slice(status);
    if !body.is_empty() {
        bytes.push(0x00);
        bytes.extend_from_slice(&(0x8000_0000 | body.len() as u32).to_be_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}

/// In the place of a body's length: the request is whole.
const WHOLE: u64 = u64::MAX;
