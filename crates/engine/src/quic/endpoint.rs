//! The QUIC side of one event loop: its UDP sockets, which connection each datagram is for, and when each connection needs attention.
//!
//! Connections to one address from one local address share a socket, so that datagrams of many of them leave, and arrive, in one call. A socket is
//! connected, which saves the kernel the search for a route, and brings refusals (ICMP) to the right ones. Owns: sockets, buffers, timers. Never:
//! what is said on a connection.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, ConnectError, DatagramEvent, EcnCodepoint, Endpoint, EndpointEvent, NoneTokenStore,
    TransportConfig, VarInt,
};
use rustls::pki_types::ServerName;

use super::crypto::Settings;
use super::qlog::QlogFiles;
use super::session::{QuicClock, QuicSession};
use super::transport::{endpoint_config, transport_config};
use crate::sys::{
    Fd, OutgoingDatagrams, ReceivedBatch, connect_udp, dropped_count, enlarge_buffers, has_segmentation,
    monotonic_ns, quic_seed, recv_datagrams, send_datagrams,
};
use squall_plan::ConnectionPolicy;

/// The QUIC connections of one event loop, as far as the network sees them.
pub(crate) struct QuicEndpoint {
    endpoint: Endpoint,
    clock: QuicClock,
    policy: ConnectionPolicy,
    transport: Arc<TransportConfig>,
    /// Log files of connections, where they are wanted.
    qlog: Option<Arc<QlogFiles>>,
    /// Settings by those of TLS: a few.
    configs: Vec<(Arc<rustls::ClientConfig>, ClientConfig)>,
    sockets: Vec<UdpSocket>,
    vacant_sockets: Vec<usize>,
    /// Sockets on which something waits to be sent.
    dirty_sockets: Vec<usize>,
    /// The slot of each connection that the endpoint knows.
    owners: Vec<u32>,
    /// When connections need attention, and their slots: one entry for each at most, as times that have only moved later stay until they come.
    timers: BTreeSet<(u64, u32)>,
    received: ReceivedBatch,
    /// Connections whose datagrams found no space in a socket.
    pub(crate) blocked: Vec<u32>,
    /// Sockets that have become full since this was asked last.
    newly_blocked: Vec<usize>,
    /// Sockets that had more to read than one turn allows.
    pub(crate) unfinished: Vec<usize>,
    /// Slots for which something came: kept for its capacity.
    pub(crate) touched: Vec<u32>,
    pub(crate) counts: SocketCounts,
    /// The kernel gave every socket as much as was asked for, and that is enough for many connections.
    has_large_buffers: bool,
}

/// What sockets have done since it was asked last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SocketCounts {
    /// Calls that sent or received datagrams.
    pub(crate) send_calls: u64,
    pub(crate) receive_calls: u64,
    /// Datagrams that the kernel dropped because we did not read them in time.
    pub(crate) dropped: u64,
}

/// A socket, and what waits to be sent on it.
struct UdpSocket {
    fd: Option<Fd>,
    /// By what another connection finds it.
    path: (Option<IpAddr>, SocketAddr),
    is_shared: bool,
    /// Connections have moved to another one; what is on its way to them still comes here.
    is_left: bool,
    user_count: u32,
    unsent: Vec<OutgoingDatagrams>,
    /// Buffers of those that were sent.
    spare: Vec<Vec<u8>>,
    is_blocked: bool,
    segment_count_max: usize,
    dropped_before: u32,
}

/// Where a connection goes, and how.
pub(crate) struct QuicTarget<'a> {
    pub(crate) remote: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) config: &'a Arc<rustls::ClientConfig>,
    pub(crate) server_name: &'a ServerName<'static>,
}

/// What a datagram turned out to be.
pub(crate) struct QuicDelivery {
    /// Slot of the connection that it is for.
    pub(crate) owner: u32,
    pub(crate) event: quinn_proto::ConnectionEvent,
    pub(crate) bytes: usize,
    pub(crate) is_retry: bool,
    pub(crate) is_version_negotiation: bool,
}

impl QuicEndpoint {
    pub(crate) fn new(policy: &ConnectionPolicy, qlog: Option<Arc<QlogFiles>>) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(endpoint_config(policy)), None, true, quic_seed()),
            clock: QuicClock::new(monotonic_ns()),
            policy: policy.clone(),
            transport: Arc::new(transport_config(policy)),
            qlog,
            configs: Vec::new(),
            sockets: Vec::new(),
            vacant_sockets: Vec::new(),
            dirty_sockets: Vec::new(),
            owners: Vec::new(),
            timers: BTreeSet::new(),
            received: ReceivedBatch::new(),
            blocked: Vec::new(),
            newly_blocked: Vec::new(),
            unfinished: Vec::new(),
            touched: Vec::new(),
            counts: SocketCounts::default(),
            has_large_buffers: true,
        }
    }

    /// Begins a connection for a slot. `watch` is given each new socket with its number.
    pub(crate) fn connect(
        &mut self,
        owner: usize,
        now_ns: u64,
        target: &QuicTarget<'_>,
        watch: impl FnOnce(&Fd, usize) -> io::Result<()>,
    ) -> io::Result<Box<QuicSession>> {
        let mut config = self.config_of(target.config)?;
        let now = self.clock.instant(now_ns);
        let log = self.qlog.as_ref().and_then(|files| files.next_stream(now));
        if log.is_some() {
            let mut transport = transport_config(&self.policy);
            transport.qlog_stream(log);
            config.transport_config(Arc::new(transport));
        }
        let name = target.server_name.to_str();
        let (handle, connection) =
            self.endpoint.connect(now, config, target.remote, &name).map_err(connect_failed)?;
        // The socket comes last: one of a single connection is closed by nothing but the connection's end.
        let path = (target.source, target.remote);
        let socket_idx = self.socket_for(path, watch).inspect_err(|_| {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        })?;
        if self.owners.len() <= handle.0 {
            self.owners.resize(handle.0 + 1, u32::MAX);
        }
        self.owners[handle.0] = owner as u32;
        self.sockets[socket_idx].user_count += 1;
        Ok(Box::new(QuicSession::new(connection, handle, socket_idx)))
    }

    fn config_of(&mut self, tls: &Arc<rustls::ClientConfig>) -> io::Result<ClientConfig> {
        if let Some((_, config)) = self.configs.iter().find(|(known, _)| Arc::ptr_eq(known, tls)) {
            return Ok(config.clone());
        }
        let settings = Settings::new(Arc::clone(tls)).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(settings));
        config.transport_config(Arc::clone(&self.transport));
        // Each connection represents a new client, so it has no token that the server gave to another.
        config.token_store(Arc::new(NoneTokenStore));
        self.configs.push((Arc::clone(tls), config.clone()));
        Ok(config)
    }

    fn socket_for(
        &mut self,
        path: (Option<IpAddr>, SocketAddr),
        watch: impl FnOnce(&Fd, usize) -> io::Result<()>,
    ) -> io::Result<usize> {
        let is_shared = !self.policy.quic.socket_per_connection;
        let known = self.sockets.iter().position(|socket| socket.path == path && socket.is_current());
        if let Some(idx) = known.filter(|_| is_shared) {
            return Ok(idx);
        }
        let fd = connect_udp(&path.1, path.0, self.policy.quic.ecn)?;
        let buffer_bytes = if is_shared { UDP_BUFFER_BYTES as usize } else { OWN_BUFFER_BYTES };
        self.has_large_buffers &= enlarge_buffers(&fd, buffer_bytes)? >= UDP_BUFFER_BYTES as usize;
        let can_cut = self.policy.quic.segmentation && has_segmentation(&fd);
        let idx = self.vacant_sockets.last().copied().unwrap_or(self.sockets.len());
        watch(&fd, idx)?;
        let socket = UdpSocket {
            fd: Some(fd),
            path,
            is_shared,
            is_left: false,
            user_count: 0,
            unsent: Vec::new(),
            spare: Vec::new(),
            is_blocked: false,
            segment_count_max: if can_cut { SEGMENT_COUNT_MAX } else { 1 },
            dropped_before: 0,
        };
        if idx == self.sockets.len() {
            self.sockets.push(socket);
        } else {
            self.vacant_sockets.pop();
            self.sockets[idx] = socket;
        }
        Ok(idx)
    }

    /// Leaves all sockets: connections that move now get others. Those that were left before are closed.
    pub(crate) fn leave_sockets(&mut self) {
        for socket_idx in 0..self.sockets.len() {
            self.send_unsent(socket_idx);
            let socket = &mut self.sockets[socket_idx];
            if socket.is_left && socket.user_count == 0 {
                self.close_socket(socket_idx);
            } else {
                socket.is_left = true;
            }
        }
    }

    /// Moves a connection to another local port, or address, as a client does that changes its network.
    pub(crate) fn migrate(
        &mut self,
        session: &mut QuicSession,
        path: (Option<IpAddr>, SocketAddr),
        watch: impl FnOnce(&Fd, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let socket_idx = self.socket_for(path, watch)?;
        self.sockets[socket_idx].user_count += 1;
        self.sockets[session.socket_idx].user_count -= 1;
        session.socket_idx = socket_idx;
        session.note_migration();
        Ok(())
    }

    fn close_socket(&mut self, socket_idx: usize) {
        self.note_dropped(socket_idx);
        if self.sockets[socket_idx].fd.take().is_some() {
            self.vacant_sockets.push(socket_idx);
        }
    }

    /// The socket of that number, for settings of its own.
    pub(crate) fn socket(&self, socket_idx: usize) -> Option<&Fd> {
        self.sockets.get(socket_idx)?.fd.as_ref()
    }

    /// Whether what comes may lie in the sockets for a while.
    pub(crate) const fn has_large_buffers(&self) -> bool {
        self.has_large_buffers
    }

    /// Receives what a socket has, in one call; how many messages that were, and whether there may be more.
    pub(crate) fn receive(&mut self, socket_idx: usize) -> io::Result<(usize, bool)> {
        let Some(fd) = self.sockets.get(socket_idx).and_then(|socket| socket.fd.as_ref()) else {
            return Ok((0, false));
        };
        let count = recv_datagrams(fd, &mut self.received)?;
        self.counts.receive_calls += 1;
        Ok((count, ReceivedBatch::is_full(count)))
    }

    /// When the kernel received a message of the last call, on the wall clock.
    pub(crate) fn received_at(&self, message_idx: usize) -> Option<u64> {
        self.received.message(message_idx).0.wall_ns
    }

    /// Gives what one message of the last call has for connections to `deliver`.
    pub(crate) fn deliver(
        &mut self,
        socket_idx: usize,
        message_idx: usize,
        now_ns: u64,
        mut deliver: impl FnMut(QuicDelivery),
    ) {
        let (message, bytes) = self.received.message(message_idx);
        let now = self.clock.instant(now_ns);
        let remote = self.sockets[socket_idx].path.1;
        // One allocation for all datagrams of the message.
        let mut rest = BytesMut::from(bytes);
        let mut unused = Vec::new();
        while !rest.is_empty() {
            let datagram = rest.split_to(message.segment_bytes.min(rest.len()));
            let (kind, bytes) = (PacketKind::of(&datagram), datagram.len());
            let ecn = EcnCodepoint::from_bits(message.ecn);
            let event = self.endpoint.handle(now, remote, None, ecn, datagram, &mut unused);
            // What belongs to no connection is late: a client has nothing to answer to it.
            if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event {
                deliver(QuicDelivery {
                    owner: self.owners[handle.0],
                    event,
                    bytes,
                    is_retry: kind == PacketKind::Retry,
                    is_version_negotiation: kind == PacketKind::VersionNegotiation,
                });
            }
        }
    }

    /// Passes on what a connection has to say to the endpoint, such as connection ids that it needs.
    pub(crate) fn exchange_events(&mut self, session: &mut QuicSession) {
        while let Some(event) = session.connection.poll_endpoint_events() {
            // It is forgotten when its slot is.
            if !event.is_drained()
                && let Some(answer) = self.endpoint.handle_event(session.handle, event)
            {
                session.connection.handle_event(answer);
            }
        }
    }

    /// Queues what a connection has to send; how many bytes that is, and whether it is all. If not, its socket is full, and it is to be asked again
    /// once that is [unblocked](Self::unblock).
    pub(crate) fn transmit(&mut self, session: &mut QuicSession, owner: u32, now_ns: u64) -> (usize, bool) {
        let now = self.clock.instant(now_ns);
        let (mut queued_bytes, mut is_whole) = (0, true);
        loop {
            let socket = &mut self.sockets[session.socket_idx];
            if socket.unsent.len() >= UNSENT_COUNT_MAX {
                self.send_unsent(session.socket_idx);
            }
            let socket = &mut self.sockets[session.socket_idx];
            if socket.is_blocked {
                is_whole = false;
                break;
            }
            let mut bytes = socket.spare.pop().unwrap_or_default();
            bytes.clear();
            let fitting = UDP_BYTES_MAX / usize::from(session.connection.current_mtu());
            let segment_count = socket.segment_count_max.min(fitting.max(1));
            let Some(transmit) = session.connection.poll_transmit(now, segment_count, &mut bytes) else {
                socket.spare.push(bytes);
                break;
            };
            bytes.truncate(transmit.size);
            queued_bytes += transmit.size;
            let segment_bytes = transmit.segment_size.unwrap_or(0) as u16;
            let ecn = transmit.ecn.filter(|_| self.policy.quic.ecn).map_or(0, |ecn| ecn as u8);
            self.push_unsent(session.socket_idx, OutgoingDatagrams { bytes, segment_bytes, ecn });
        }
        self.exchange_events(session);
        self.arm(session, owner);
        (queued_bytes, is_whole)
    }

    /// Notes when a connection needs attention next, where that is earlier than what is noted.
    fn arm(&mut self, session: &mut QuicSession, owner: u32) {
        let Some(at) = session.connection.poll_timeout() else { return };
        let at_ns = self.clock.nanoseconds(at);
        if at_ns < session.timer_ns {
            self.timers.remove(&(session.timer_ns, owner));
            session.timer_ns = at_ns;
            self.timers.insert((at_ns, owner));
        }
    }

    /// When the next connection may need attention; `u64::MAX`: none will.
    pub(crate) fn next_timer_ns(&self) -> u64 {
        self.timers.first().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    /// The slot of a connection whose time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<u32> {
        let (_, owner) = *self.timers.first().filter(|(at_ns, _)| *at_ns <= now_ns)?;
        self.timers.pop_first();
        Some(owner)
    }

    /// The time of a connection has come, or had been noted before it moved; whether there was anything to do.
    pub(crate) fn expire(&mut self, session: &mut QuicSession, owner: u32, now_ns: u64) -> bool {
        session.timer_ns = u64::MAX;
        let is_due = session.connection.poll_timeout().is_some_and(|at| self.clock.nanoseconds(at) <= now_ns);
        if is_due {
            session.connection.handle_timeout(self.clock.instant(now_ns));
        } else {
            self.arm(session, owner);
        }
        is_due
    }

    /// Sends what is queued on all sockets.
    pub(crate) fn flush(&mut self) {
        while let Some(socket_idx) = self.dirty_sockets.pop() {
            self.send_unsent(socket_idx);
        }
    }

    /// Queues datagrams on a socket.
    fn push_unsent(&mut self, socket_idx: usize, datagrams: OutgoingDatagrams) {
        let socket = &mut self.sockets[socket_idx];
        if socket.unsent.is_empty() {
            self.dirty_sockets.push(socket_idx);
        }
        socket.unsent.push(datagrams);
    }

    /// A socket takes datagrams: whether it did not before. Then what is queued is sent; connections that waited for that are in `blocked`.
    pub(crate) fn unblock(&mut self, socket_idx: usize) -> bool {
        let Some(socket) = self.sockets.get_mut(socket_idx).filter(|socket| socket.is_blocked) else {
            return false;
        };
        socket.is_blocked = false;
        self.send_unsent(socket_idx);
        true
    }

    /// A socket that is full now, and was not before.
    pub(crate) fn pop_newly_blocked(&mut self) -> Option<usize> {
        self.newly_blocked.pop()
    }

    /// Sends what is queued on a socket, as far as it takes it: the rest goes when it is unblocked.
    fn send_unsent(&mut self, socket_idx: usize) {
        let socket = &mut self.sockets[socket_idx];
        let Some(fd) = &socket.fd else { return socket.unsent.clear() };
        let mut sent = 0;
        let mut retried = None;
        while sent < socket.unsent.len() && !socket.is_blocked {
            self.counts.send_calls += 1;
            match send_datagrams(fd, socket.path.1.is_ipv4(), &socket.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_blocked = true;
                    self.newly_blocked.push(socket_idx);
                }
                // What an earlier datagram met is reported once, and says nothing of this one.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::ECONNREFUSED | libc::EMSGSIZE))
                        && retried != Some(sent) =>
                {
                    retried = Some(sent);
                }
                Err(error) => {
                    // Drivers without checksum offloading refuse to cut (quinn-udp knows of this, too).
                    if error.raw_os_error() == Some(libc::EIO) {
                        socket.segment_count_max = 1;
                    }
                    // Too large for the path (a probe of it), or dropped on the way out: QUIC treats it as lost.
                    sent += 1;
                }
            }
        }
        socket.spare.extend(socket.unsent.drain(..sent).map(|datagrams| datagrams.bytes));
        socket.spare.truncate(SPARE_COUNT_MAX);
    }

    /// Closes a connection, and says so to the server; in how many bytes.
    pub(crate) fn close(&mut self, session: &mut QuicSession, code: u64, now_ns: u64) -> usize {
        let now = self.clock.instant(now_ns);
        let code = VarInt::try_from(code).unwrap_or(VarInt::MAX);
        session.connection.close(now, code, bytes::Bytes::new());
        let socket = &mut self.sockets[session.socket_idx];
        let mut bytes = socket.spare.pop().unwrap_or_default();
        bytes.clear();
        let mut queued_bytes = 0;
        if let Some(transmit) = session.connection.poll_transmit(now, 1, &mut bytes) {
            bytes.truncate(transmit.size);
            queued_bytes = transmit.size;
            self.push_unsent(session.socket_idx, OutgoingDatagrams { bytes, segment_bytes: 0, ecn: 0 });
        }
        if self.sockets[session.socket_idx].unsent.len() >= UNSENT_COUNT_MAX {
            self.send_unsent(session.socket_idx);
        }
        queued_bytes
    }

    /// Forgets a connection. What is still on its way for it belongs to no one.
    pub(crate) fn forget(&mut self, session: &QuicSession) {
        self.endpoint.handle_event(session.handle, EndpointEvent::drained());
        if let Some(owner) = self.owners.get_mut(session.handle.0) {
            self.timers.remove(&(session.timer_ns, *owner));
            *owner = u32::MAX;
        }
        let socket_idx = session.socket_idx;
        self.sockets[socket_idx].user_count -= 1;
        if !self.sockets[socket_idx].is_shared && self.sockets[socket_idx].user_count == 0 {
            self.send_unsent(socket_idx);
            self.close_socket(socket_idx);
        }
    }

    /// What the sockets have done since this was asked last.
    pub(crate) fn take_counts(&mut self) -> SocketCounts {
        (0..self.sockets.len()).for_each(|socket_idx| self.note_dropped(socket_idx));
        std::mem::take(&mut self.counts)
    }

    fn note_dropped(&mut self, socket_idx: usize) {
        let socket = &mut self.sockets[socket_idx];
        if let Some(fd) = &socket.fd {
            let dropped = dropped_count(fd);
            self.counts.dropped += u64::from(dropped.wrapping_sub(socket.dropped_before));
            socket.dropped_before = dropped;
        }
    }
}

impl UdpSocket {
    /// Whether connections may still be put on it.
    const fn is_current(&self) -> bool {
        self.fd.is_some() && !self.is_left
    }
}

impl QuicSession {
    /// The socket that it is on.
    pub(crate) const fn socket_idx(&self) -> usize {
        self.socket_idx
    }
}

/// What can be seen of a packet from outside (RFC 8999, RFC 9000 17.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketKind {
    VersionNegotiation,
    Retry,
    Other,
}

impl PacketKind {
    fn of(datagram: &[u8]) -> Self {
        match datagram {
            [first, version @ ..] if first & 0x80 != 0 && version.len() >= 4 => {
                if version[..4] == [0; 4] {
                    Self::VersionNegotiation
                } else if first & 0x30 == 0x30 {
                    Self::Retry
                } else {
                    Self::Other
                }
            }
            _ => Self::Other,
        }
    }
}

fn connect_failed(error: ConnectError) -> io::Error {
    io::Error::other(error)
}

/// How large a buffer the system gives a UDP socket, of what is asked for; `None`: it gives no socket.
pub(crate) fn udp_buffer_available() -> Option<u64> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").ok()?;
    Some(enlarge_buffers(&socket, UDP_BUFFER_BYTES as usize).ok()? as u64)
}

/// Buffers of a socket that many connections share: what comes within 10 ms at 6 Gbit/s.
pub(crate) const UDP_BUFFER_BYTES: u64 = 8 << 20;

/// Those of a socket that has one connection.
const OWN_BUFFER_BYTES: usize = 256 << 10;

/// Datagrams that the kernel cuts one message into (`UDP_MAX_SEGMENTS` is 64 in old kernels).
const SEGMENT_COUNT_MAX: usize = 44;

/// What one message has at most, cut or not: what IPv4 leaves of 64 KiB after its header and that of UDP.
const UDP_BYTES_MAX: usize = 65_507;

/// Messages that gather before they are sent in any case.
const UNSENT_COUNT_MAX: usize = 32;

/// Buffers that are kept to be used again.
const SPARE_COUNT_MAX: usize = 64;
