//! QUIC connections: how they are opened, what comes for them, what they send, and how they end. Each is a slot as any other; what differs is that
//! many share a socket, that datagrams bring events instead of bytes, and that each has timers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use quinn_proto::{ConnectionError, Event, StreamEvent};
use squall_measure::{Cause, Phase};
use squall_wire::ErrorCode;

use crate::prepare::Prepared;
use crate::quic::{QuicDelivery, QuicEndpoint, QuicSession, QuicTarget, SocketCounts, trouble_of};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Conn, ConnState, HandshakeBytes};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::sys::{Fd, Poller, Readiness, enable_receive_stamps, monotonic_ns, nanoseconds};
use crate::trouble::Trouble;

impl Connections {
    /// Begins a connection whose origin is reached by QUIC. What it sends first goes out with the turn.
    pub(super) fn open_quic(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &ShardRecorder,
        conn_idx: usize,
        mut remote: SocketAddr,
    ) -> io::Result<()> {
        let user = self.user_of(conn_idx);
        let conn = &mut self.conns[conn_idx];
        conn.generation = conn.generation.wrapping_add(1);
        let Prepared { origins, load, qlog, .. } = &*self.prepared;
        let origin = &origins[conn.origin_idx as usize];
        let tls = origin.alternative.as_ref().or(origin.tls.as_ref()).ok_or(io::ErrorKind::Unsupported)?;
        // The kernel does this for TCP; quinn-proto refuses such an address.
        if remote.ip().is_unspecified() {
            remote.set_ip(match remote.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        conn.cold.remote = Some(remote);
        let config = match &mut schedule.sessions {
            None => Arc::clone(&tls.config),
            Some(sessions) => sessions.next_config(tls, &mut conn.cold),
        };
        let source = self.dialer.next_source(user, &remote);
        let target = QuicTarget { remote, source, config: &config, server_name: &tls.server_name };
        let watch = watching(&self.poller, recorder);
        if self.quic.is_none()
            && let Some(interval) = load.connections.quic.migration_interval
        {
            self.next_migration_ns = self.now_ns + nanoseconds(interval);
        }
        let quic =
            self.quic.get_or_insert_with(|| Box::new(QuicEndpoint::new(&load.connections, qlog.clone())));
        conn.cold.quic = Some(quic.connect(conn_idx, monotonic_ns(), &target, watch)?);
        self.list_unsent(conn_idx);
        Ok(())
    }

    /// A UDP socket is ready, if the token is one's.
    pub(super) fn on_quic_socket(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        event: Readiness,
    ) {
        let Some(socket_idx) = quic_socket_idx(event.token) else { return };
        if event.writable {
            self.unblock_quic(socket_idx);
        }
        if event.readable {
            self.receive_quic(schedule, recorder, socket_idx);
        }
    }

    /// A socket that was full takes datagrams again.
    fn unblock_quic(&mut self, socket_idx: usize) {
        let Some(quic) = &mut self.quic else { return };
        if !quic.unblock(socket_idx) {
            return;
        }
        if let Some(socket) = quic.socket(socket_idx) {
            // A socket that cannot be watched any more is none that the next call would not report.
            let _ = self.poller.rewatch_reading(socket, QUIC_SOCKET | socket_idx as u64);
        }
        for conn_idx in std::mem::take(&mut quic.blocked) {
            if let Some(session) = &mut self.conns[conn_idx as usize].cold.quic {
                session.is_blocked = false;
            }
            self.list_unsent(conn_idx as usize);
        }
    }

    /// Reads sockets that had more than one turn allows.
    pub(super) fn resume_quic(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder) {
        let Some(quic) = &mut self.quic else { return };
        for socket_idx in std::mem::take(&mut quic.unfinished) {
            self.receive_quic(schedule, recorder, socket_idx);
        }
    }

    fn receive_quic(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        socket_idx: usize,
    ) {
        let mut has_failed = false;
        for _ in 0..RECEIVES_PER_TURN_MAX {
            let Some(quic) = &mut self.quic else { return };
            match quic.receive(socket_idx) {
                Ok((message_count, may_be_more)) => {
                    let read_ns = monotonic_ns();
                    for message_idx in 0..message_count {
                        self.now_ns = self.received_at(recorder, message_idx).unwrap_or(read_ns);
                        self.deliver(schedule, recorder, (socket_idx, message_idx), read_ns);
                    }
                    if !may_be_more {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A datagram was too large for the path (a probe of it): QUIC sees that as a loss.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                // What has been sent before is reported datagram by datagram; the first report has ended all connections that it was sent for.
                Err(error) if !has_failed => {
                    self.now_ns = monotonic_ns();
                    self.fail_unanswered(schedule, recorder, socket_idx, &error);
                    has_failed = true;
                }
                Err(_) => {}
            }
        }
        if let Some(quic) = &mut self.quic
            && !quic.unfinished.contains(&socket_idx)
        {
            quic.unfinished.push(socket_idx);
        }
    }

    /// When a message came, where it may have lain unread for a while.
    fn received_at(&self, recorder: &ShardRecorder, message_idx: usize) -> Option<u64> {
        let clock = recorder.receive_times.clock()?;
        Some(clock.monotonic_of(self.quic.as_ref()?.received_at(message_idx)?))
    }

    /// Gives the connections what one message has for them.
    fn deliver(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (socket_idx, message_idx): (usize, usize),
        read_ns: u64,
    ) {
        let Self { quic, conns, .. } = self;
        let Some(quic) = quic else { return };
        let mut touched = std::mem::take(&mut quic.touched);
        quic.deliver(socket_idx, message_idx, read_ns, |delivery| {
            let QuicDelivery { owner, event, bytes, is_retry, is_version_negotiation } = delivery;
            let Some(session) = conns.get_mut(owner as usize).and_then(|conn| conn.cold.quic.as_mut()) else {
                return;
            };
            session.note_datagram(socket_idx, bytes);
            session.retry_count += u32::from(is_retry);
            session.version_negotiation_count += u32::from(is_version_negotiation);
            session.connection().handle_event(event);
            if touched.last() != Some(&owner) {
                touched.push(owner);
            }
        });
        for conn_idx in touched.drain(..) {
            self.conns[conn_idx as usize].cold.heard_ns = self.now_ns;
            self.process_quic(schedule, recorder, conn_idx as usize);
        }
        if let Some(quic) = &mut self.quic {
            quic.touched = touched;
        }
    }

    /// Follows what has happened on a connection.
    fn process_quic(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, conn_idx: usize) {
        let generation = self.conns[conn_idx].generation;
        self.note_answer_of_server(conn_idx);
        let session = self.conns[conn_idx].cold.quic.as_mut();
        let received_bytes = session.map_or(0, |session| std::mem::take(&mut session.received_bytes));
        self.count_received(recorder, conn_idx, received_bytes);
        let mut last_read = None;
        loop {
            let (Some(quic), Some(session)) = (&mut self.quic, &mut self.conns[conn_idx].cold.quic) else {
                return;
            };
            quic.exchange_events(session);
            match session.connection().poll() {
                None => break,
                Some(Event::Connected) => self.on_quic_connected(schedule, recorder, conn_idx),
                Some(Event::ConnectionLost { reason }) => {
                    return self.on_quic_lost(schedule, recorder, conn_idx, &reason);
                }
                // There is an event for each frame, but all frames of a message are there before the first event is asked for.
                Some(Event::Stream(StreamEvent::Readable { id })) if last_read == Some(id) => {}
                Some(Event::Stream(event)) => {
                    if let StreamEvent::Readable { id } = event {
                        last_read = Some(id);
                    }
                    let followed = self.on_stream_event(schedule, recorder, conn_idx, &event);
                    if let Err(trouble) = followed
                        && self.is_same(conn_idx, generation)
                    {
                        return self.fail(schedule, recorder, conn_idx, &trouble);
                    }
                }
                Some(_) => {}
            }
            if self.conns[conn_idx].generation != generation {
                return;
            }
        }
        self.note_header_bytes(recorder, conn_idx);
        self.look_for_pong(schedule, recorder, conn_idx);
        schedule.settle_down(self, recorder, conn_idx);
        if self.conns[conn_idx].generation == generation {
            self.list_unsent(conn_idx);
            self.close_when_over(schedule, recorder, conn_idx);
        }
    }

    /// The first that comes from a server shows that it is there: from then on, what is waited for is its part of the handshake.
    fn note_answer_of_server(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let is_answered = conn.cold.quic.as_ref().is_some_and(|session| session.is_answered);
        if conn.state == ConnState::Connecting && is_answered {
            conn.state = ConnState::Handshaking;
            conn.cold.connected_ns = self.now_ns;
        }
    }

    /// The handshake is over. What ends it for the server is queued before anything else is done: it may be the connection's end.
    fn on_quic_connected(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        self.transmit(recorder, conn_idx);
        self.now_ns = monotonic_ns();
        let conn = &mut self.conns[conn_idx];
        let Some(session) = &mut conn.cold.quic else { return };
        session.note_connected();
        recorder.pulse.snapshot.quic.get_or_insert_default().connections += 1;
        let stats = session.connection().stats();
        conn.cold.handshake_bytes = HandshakeBytes { sent: stats.udp_tx.bytes, received: stats.udp_rx.bytes };
        schedule.count_handshake(self, recorder, conn_idx);
        self.note_alternative_open(recorder, conn_idx);
        if !schedule.uses_tickets()
            && let Some(session) = &self.conns[conn_idx].cold.quic
        {
            session.drop_tls();
        }
        self.on_open(schedule, recorder, conn_idx);
    }

    fn on_quic_lost(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        reason: &ConnectionError,
    ) {
        let conn = &self.conns[conn_idx];
        let phase = match conn.state {
            ConnState::Connecting => Phase::Connecting,
            ConnState::Open => Phase::Receiving,
            _ => Phase::TlsHandshaking,
        };
        let Some(session) = &conn.cold.quic else { return };
        let trouble = trouble_of(reason, session, phase);
        match trouble.cause {
            // Nothing is owed: the server may close what it has served.
            Cause::ConnectionClosed if conn.state == ConnState::Open && conn.in_flight() == 0 => {
                self.close(schedule, recorder, conn_idx);
            }
            _ => self.fail(schedule, recorder, conn_idx, &trouble),
        }
    }

    /// A socket reports an error, such as that nothing listens where it goes: that is the end of connections that have had no answer. Others end
    /// only where the server has been silent for a while, as a report alone proves nothing (RFC 9000 14.2.1): it is gone then, and their
    /// requests would wait for their time limit.
    fn fail_unanswered(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        socket_idx: usize,
        error: &io::Error,
    ) {
        for conn_idx in 0..self.conns.len() {
            let conn = &self.conns[conn_idx];
            let is_on_it = conn.cold.quic.as_ref().is_some_and(|session| session.socket_idx() == socket_idx);
            let is_silent = self.now_ns.saturating_sub(conn.cold.heard_ns) >= SILENCE_NS_MIN;
            if is_on_it && (conn.state == ConnState::Connecting || is_silent) {
                self.fail(schedule, recorder, conn_idx, &Trouble::io(error, Phase::Connecting));
            }
        }
    }

    /// A ping is answered by its acknowledgement: on a connection that is silent otherwise, the next one that comes.
    fn look_for_pong(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        let is_answered = conn.cold.pinged_ns > 0
            && conn.cold.quic.as_ref().is_some_and(|session| session.ack_count() > session.acks_before_ping);
        if is_answered {
            schedule.on_pong(self, recorder, conn_idx);
        }
    }

    /// Sends what a connection has to send.
    pub(super) fn send_quic(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let conn = &mut self.conns[conn_idx];
        conn.is_listed_unsent = false;
        if conn.state == ConnState::Open && conn.client.is_some() {
            if let Err(trouble) = self.fill_streams(schedule, recorder, conn_idx) {
                return self.fail(schedule, recorder, conn_idx, &trouble);
            }
            self.transmit(recorder, conn_idx);
            return self.close_when_over(schedule, recorder, conn_idx);
        }
        self.transmit(recorder, conn_idx);
    }

    /// Queues what a connection has to send. What its socket does not take now goes once it does.
    fn transmit(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let (Some(quic), Some(session)) = (&mut self.quic, &mut conn.cold.quic) else { return };
        let (queued_bytes, is_whole) = quic.transmit(session, conn_idx as u32, monotonic_ns());
        if !is_whole && !std::mem::replace(&mut session.is_blocked, true) {
            quic.blocked.push(conn_idx as u32);
        }
        self.count_sent(recorder, conn_idx, queued_bytes as u64);
    }

    /// What is queued leaves.
    pub(in crate::shard) fn flush_quic(&mut self) {
        let Some(quic) = &mut self.quic else { return };
        quic.flush();
        while let Some(socket_idx) = quic.pop_newly_blocked() {
            if let Some(socket) = quic.socket(socket_idx) {
                let _ = self.poller.rewatch(socket, QUIC_SOCKET | socket_idx as u64);
            }
        }
    }

    /// When a QUIC connection needs attention next.
    pub(in crate::shard) fn next_quic_ns(&self) -> u64 {
        self.quic.as_ref().map_or(u64::MAX, |quic| quic.next_timer_ns().min(self.next_migration_ns))
    }

    /// The longest time that answers may lie unread. One read of a socket that QUIC connections share takes the answers of all of them, so that
    /// waiting longer saves more: with 10 connections of 10 streams each, 0.82 of the CPU per request that 250 us cost.
    pub(in crate::shard) fn gather_ns_max(&self) -> u64 {
        match &self.quic {
            Some(quic) if quic.has_large_buffers() => GATHER_NS_MAX_SHARED,
            _ => GATHER_NS_MAX,
        }
    }

    /// Whether sockets are left with something to read.
    pub(in crate::shard) fn has_unread_quic(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| !quic.unfinished.is_empty())
    }

    /// Lets time pass for the connections whose timers have run out.
    pub(in crate::shard) fn expire_quic(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        if self.next_quic_ns() > self.now_ns {
            return;
        }
        if self.next_migration_ns <= self.now_ns {
            self.migrate_all(schedule, recorder);
        }
        while let Some(owner) = self.quic.as_mut().and_then(|quic| quic.pop_due(self.now_ns)) {
            let conn_idx = owner as usize;
            let session = &mut self.conns[conn_idx].cold.quic;
            let (Some(quic), Some(session)) = (&mut self.quic, session) else { continue };
            if quic.expire(session, owner, self.now_ns) {
                self.process_quic(schedule, recorder, conn_idx);
            }
        }
    }

    /// Moves every open connection to another local address, and notes when that is done again.
    fn migrate_all(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder) {
        let Some(quic) = &mut self.quic else { return };
        quic.leave_sockets();
        for conn_idx in 0..self.conns.len() {
            if let Err(error) = self.migrate(recorder, conn_idx) {
                self.fail(schedule, recorder, conn_idx, &Trouble::io(&error, Phase::Connecting));
            }
        }
        let interval = self.prepared.load.connections.quic.migration_interval;
        self.next_migration_ns = interval.map_or(u64::MAX, |interval| self.now_ns + nanoseconds(interval));
    }

    /// Moves a connection, if it is open.
    fn migrate(&mut self, recorder: &ShardRecorder, conn_idx: usize) -> io::Result<()> {
        let user = self.user_of(conn_idx);
        let Self { quic, conns, dialer, poller, .. } = self;
        let conn = &mut conns[conn_idx];
        let (Some(quic), Some(session), Some(remote)) = (quic, &mut conn.cold.quic, conn.cold.remote) else {
            return Ok(());
        };
        if conn.state != ConnState::Open {
            return Ok(());
        }
        let path = (dialer.next_source(user, &remote), remote);
        quic.migrate(session, path, watching(poller, recorder))?;
        self.list_unsent(conn_idx);
        Ok(())
    }

    /// The connection in a slot ends: it is closed with a code, and its figures are kept.
    pub(super) fn end_quic(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        self.close_quic(recorder, conn_idx, ErrorCode::H3_NO_ERROR.0);
        self.note_quic_progress(recorder, conn_idx);
        let Some(session) = self.conns[conn_idx].cold.quic.take() else { return };
        note_rtt(recorder, &session);
        if let Some(quic) = &mut self.quic {
            quic.forget(&session);
        }
    }

    /// Says to the server that a connection ends, unless that has been said.
    pub(super) fn close_quic(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, code: u64) {
        if let (Some(quic), Some(session)) = (&mut self.quic, &mut self.conns[conn_idx].cold.quic) {
            let queued_bytes = quic.close(session, code, monotonic_ns());
            self.count_sent(recorder, conn_idx, queued_bytes as u64);
        }
    }

    /// Takes what sockets and connections have counted into the figures of the second.
    pub(in crate::shard) fn note_quic(&mut self, recorder: &mut ShardRecorder) {
        let Some(quic) = &mut self.quic else { return };
        let SocketCounts { send_calls, receive_calls, dropped } = quic.take_counts();
        let figures = recorder.pulse.snapshot.quic.get_or_insert_default();
        figures.send_calls += send_calls;
        figures.receive_calls += receive_calls;
        figures.datagrams_dropped += dropped;
        for conn_idx in 0..self.conns.len() {
            self.note_quic_progress(recorder, conn_idx);
            self.note_quic_path(recorder, conn_idx);
        }
    }

    /// Counts in what the path of an open connection is like now.
    fn note_quic_path(&self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        if conn.state == ConnState::Open
            && let Some(session) = &conn.cold.quic
        {
            let (_, rtt) = session.rtt();
            let figures = recorder.pulse.snapshot.quic.get_or_insert_default();
            figures.paths.note(session.congestion_window(), nanoseconds(rtt));
        }
    }

    /// The run is over: what is open counts as ended.
    pub(in crate::shard) fn note_quic_end(&mut self, recorder: &mut ShardRecorder) {
        self.note_quic(recorder);
        for session in self.conns.iter().filter_map(|conn| conn.cold.quic.as_ref()) {
            note_rtt(recorder, session);
        }
    }

    fn note_quic_progress(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let Some(session) = &mut self.conns[conn_idx].cold.quic else { return };
        let progress = session.take_progress();
        let figures = recorder.pulse.snapshot.quic.get_or_insert_default();
        figures.packets_sent += progress.packets_sent;
        figures.packets_lost += progress.packets_lost;
        figures.congestion_events += progress.congestion_events;
        figures.datagrams_sent += progress.datagrams_sent;
        figures.datagrams_received += progress.datagrams_received;
        figures.bytes_sent += progress.bytes_sent;
        figures.bytes_received += progress.bytes_received;
        figures.migrations += u64::from(std::mem::take(&mut session.migration_count));
        figures.migrations_survived += u64::from(std::mem::take(&mut session.survival_count));
        figures.retries += u64::from(std::mem::take(&mut session.retry_count));
        figures.version_negotiations += u64::from(std::mem::take(&mut session.version_negotiation_count));
    }
}

/// Watches a new UDP socket.
fn watching<'a>(
    poller: &'a Poller,
    recorder: &ShardRecorder,
) -> impl FnOnce(&Fd, usize) -> io::Result<()> + use<'a> {
    let has_stamps = recorder.receive_times.stamp_clock.is_some();
    move |socket, socket_idx| {
        if has_stamps {
            enable_receive_stamps(socket)?;
        }
        poller.watch_reading(socket, QUIC_SOCKET | socket_idx as u64)
    }
}

/// A connection ends: how far away its server was.
fn note_rtt(recorder: &mut ShardRecorder, session: &QuicSession) {
    if session.agreement().is_some() {
        let (least, smoothed) = session.rtt();
        let figures = recorder.pulse.snapshot.quic.get_or_insert_default();
        figures.rtt_min.record(nanoseconds(least));
        figures.rtt_smoothed.record(nanoseconds(smoothed));
    }
}

impl Conn {
    /// What its session, of TLS or QUIC, has agreed on.
    pub(in crate::shard) fn agreement(&self) -> Option<&crate::tls::Agreement> {
        match &self.cold.quic {
            Some(session) => session.agreement(),
            None => self.tls.as_ref()?.agreement(),
        }
    }

    /// Tickets that its session has kept.
    pub(in crate::shard) fn ticket_count(&self) -> u32 {
        match (&self.cold.quic, &self.tls) {
            (Some(session), _) => session.ticket_count(),
            (None, Some(session)) => session.ticket_count(),
            (None, None) => 0,
        }
    }

    /// What became of what was sent before its handshake was over.
    pub(in crate::shard) fn early_data(&self) -> crate::tls::EarlyData {
        match (&self.cold.quic, &self.tls) {
            (Some(session), _) => session.early_data(),
            (None, Some(session)) => session.early_data(),
            (None, None) => crate::tls::EarlyData::None,
        }
    }

    /// Whether it is protected: what is on it is a session of TLS.
    pub(in crate::shard) fn is_secure(&self) -> bool {
        self.tls.is_some()
            || self.cold.quic.is_some()
            || self.cold.carried.is_some_and(|stream| stream.is_secure)
    }
}

/// The number of a UDP socket among an event's tokens; `None`: it is a connection's own.
fn quic_socket_idx(token: u64) -> Option<usize> {
    (token & QUIC_SOCKET != 0 && token >> 32 == 0).then_some((token & !QUIC_SOCKET) as usize)
}

/// Marks the tokens of UDP sockets: no slot has such a number, and no parked connection.
const QUIC_SOCKET: u64 = 1 << 30;

/// A server that says nothing for so long although something is sent to it, and whose port is reported closed, is gone.
const SILENCE_NS_MIN: u64 = 250_000_000;

/// The longest time that answers may lie unread.
const GATHER_NS_MAX: u64 = 250_000;

/// The same in a socket with a buffer for ten times as long, at 6 Gbit/s.
const GATHER_NS_MAX_SHARED: u64 = 1_000_000;

/// Calls that read one socket in one turn of the loop, each of several datagrams: others have their turn.
const RECEIVES_PER_TURN_MAX: u32 = 16;
