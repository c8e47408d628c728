//! From a vacant slot to an open connection: TCP connect, the proxy's tunnel, the TLS handshake.

use std::io;
use std::sync::Arc;

use squall_measure::{Cause, Phase};
use squall_plan::HttpVersion;
use squall_wire::h1::Decoder;
use squall_wire::{Client, Version};

use crate::dial::Caller;
use crate::prepare::Prepared;
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Conn, ConnState, PreludeProgress};
use crate::shard::connections::receive::Read1;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::sys::{Connect, Recv, connection_error, enable_receive_stamps, monotonic_ns, recv, send};
use crate::tls::TlsStream;
use crate::trouble::{Trouble, reconnect_pause_ns};

impl Connections {
    /// A new slot of a pool, where the plan's number of connections allows one more.
    pub(in crate::shard) fn add_slot(
        &mut self,
        recorder: &mut ShardRecorder,
        pool_idx: usize,
    ) -> Option<usize> {
        let pool = &self.pools[pool_idx];
        let is_allowed = pool.is_unlimited || pool.slots.len() < self.limits.slot_count_max as usize;
        is_allowed.then(|| self.push_slot(recorder, pool_idx))
    }

    pub(in crate::shard) fn push_slot(&mut self, recorder: &mut ShardRecorder, pool_idx: usize) -> usize {
        let conn_idx = self.conns.len();
        let pool = &mut self.pools[pool_idx];
        pool.slots.push(conn_idx as u32);
        let origin_idx = pool.origin_idx;
        let home_place = self.add_places(recorder, self.limits.stride);
        self.conns.push(Conn::new(pool_idx as u32, origin_idx, home_place));
        self.deadlines.push(u64::MAX);
        conn_idx
    }

    /// Begins to open a vacant slot's connection.
    pub(in crate::shard) fn open(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.conns[conn_idx].state != ConnState::Vacant {
            return;
        }
        let conn = &mut self.conns[conn_idx];
        conn.state = ConnState::Connecting;
        conn.opened_ns = self.now_ns;
        self.counts.opening += 1;
        let quic_remote = self.next_quic_remote(recorder, conn_idx);
        let deadline_ns = self.now_ns + self.opening_timeout_ns(conn_idx);
        let call_ns = self.deadline_of_opener(conn_idx).unwrap_or(u64::MAX);
        self.deadlines[conn_idx] = deadline_ns.min(call_ns);
        if self.is_carried(conn_idx) {
            return self.board(schedule, recorder, conn_idx);
        }
        let begun = match quic_remote {
            None => self.dial(conn_idx).and_then(|connect| self.adopt(recorder, conn_idx, connect)),
            Some(remote) => self.open_quic(schedule, recorder, conn_idx, remote).map(|()| false),
        };
        match begun {
            Ok(true) => self.on_connected(schedule, recorder, conn_idx),
            Ok(false) => {}
            Err(error) => {
                // A refusal by this machine comes within the call, and took as long as that.
                self.now_ns = monotonic_ns();
                self.fail(schedule, recorder, conn_idx, &Trouble::io(&error, Phase::Connecting));
            }
        }
        self.now_ns = monotonic_ns();
    }

    /// When the call that a connection is opened for has taken too long; `None`: it is no call.
    pub(in crate::shard) fn deadline_of_opener(&self, conn_idx: usize) -> Option<u64> {
        self.deadline_of_call(&self.exchanges[self.place_of(conn_idx, 0)])
    }

    fn dial(&mut self, conn_idx: usize) -> io::Result<Connect> {
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        let caller = Caller { user: self.user_of(conn_idx), writes_twice: self.limits.writes_twice };
        let Prepared { origins, names, .. } = &*self.prepared;
        let dial = &origins[origin_idx].dial;
        let remote = self.dialer.next_remote(origin_idx, dial, names);
        self.conns[conn_idx].cold.remote = remote;
        self.dialer.connect(dial, remote, caller)
    }

    /// Watches the socket; true when it is connected already.
    fn adopt(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, connect: Connect) -> io::Result<bool> {
        let conn = &mut self.conns[conn_idx];
        conn.generation = conn.generation.wrapping_add(1);
        self.poller.watch(&connect.socket, conn.token(conn_idx))?;
        if recorder.receive_times.stamp_clock.is_some() {
            enable_receive_stamps(&connect.socket)?;
        }
        conn.socket = Some(connect.socket);
        Ok(connect.done)
    }

    /// The connect has ended, one way or the other. Only a socket that is closed at once can have failed.
    pub(in crate::shard) fn on_connect_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        is_closed: bool,
    ) {
        let Some(socket) = &self.conns[conn_idx].socket else { return };
        match if is_closed { connection_error(socket) } else { Ok(()) } {
            Ok(()) => self.on_connected(schedule, recorder, conn_idx),
            Err(error) => self.fail(schedule, recorder, conn_idx, &Trouble::io(&error, Phase::Connecting)),
        }
    }

    fn on_connected(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, conn_idx: usize) {
        // Handshakes of the same turn may have taken long.
        self.now_ns = monotonic_ns();
        self.conns[conn_idx].cold.connected_ns = self.now_ns;
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        if let Some(prelude) = &self.prepared.origins[origin_idx].prelude {
            let mut decoder = Decoder::new();
            decoder.begin(prelude.kind);
            let conn = &mut self.conns[conn_idx];
            conn.cold.prelude = Some(Box::new(PreludeProgress { decoder, written_bytes: 0 }));
            conn.state = ConnState::Tunnelling;
            self.send_prelude(schedule, recorder, conn_idx);
        } else {
            self.begin_tls(schedule, recorder, conn_idx);
        }
    }

    /// Writes what is left of the `CONNECT` request, or of that for an upgrade.
    pub(in crate::shard) fn send_prelude(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let conn = &mut self.conns[conn_idx];
        let origin = &self.prepared.origins[conn.origin_idx as usize];
        let (Some(prelude), Some(progress)) = (&origin.prelude, &mut conn.cold.prelude) else { return };
        let Some(socket) = &conn.socket else { return };
        let rest = &prelude.request[progress.written_bytes..];
        if rest.is_empty() {
            return;
        }
        match send(socket, rest, false) {
            Ok(count) => {
                progress.written_bytes += count;
                self.count_sent(recorder, conn_idx, count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => self.fail(schedule, recorder, conn_idx, &Trouble::io(&error, Phase::Tunnelling)),
        }
    }

    /// Reads the answer to that.
    pub(in crate::shard) fn receive_prelude(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let trouble = loop {
            let Some(socket) = &self.conns[conn_idx].socket else { return };
            // One byte more than the answer would belong to the tunnel, so the read is small and the answer is waited for whole.
            let count = match recv(socket, &mut self.io.read[..TUNNEL_READ_BYTES], Recv::Take) {
                Ok(0) => break Trouble::closed(Phase::Tunnelling),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => break Trouble::io(&error, Phase::Tunnelling),
            };
            self.count_received(recorder, conn_idx, count as u64);
            let conn = &mut self.conns[conn_idx];
            let Some(PreludeProgress { decoder, .. }) = conn.cold.prelude.as_deref_mut() else { return };
            match decoder.decode(&mut self.io.head_caches.h1, &self.io.read[..count], &mut ()) {
                Err(error) => break Trouble::decode(&error, Phase::Tunnelling),
                Ok(progress) => match progress.response {
                    // What a refusal goes on to say, maybe until the close, is not waited for.
                    None => match decoder.status() {
                        None => {}
                        Some(status) => break self.refused(conn_idx, status),
                    },
                    Some(response) if response.status == 101 => {
                        return self.on_upgraded(schedule, recorder, conn_idx, progress.consumed..count);
                    }
                    Some(response) if (200..300).contains(&response.status) && progress.consumed == count => {
                        conn.cold.prelude = None;
                        return self.begin_tls(schedule, recorder, conn_idx);
                    }
                    Some(response) => break self.refused(conn_idx, response.status),
                },
            }
        };
        self.fail(schedule, recorder, conn_idx, &trouble);
    }

    /// The server speaks HTTP/2 from here on; maybe it has begun to, in the same read.
    fn on_upgraded(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        rest: std::ops::Range<usize>,
    ) {
        self.conns[conn_idx].cold.prelude = None;
        self.begin_tls(schedule, recorder, conn_idx);
        let count = rest.len();
        self.io.read.copy_within(rest, 0);
        self.receive_first(schedule, recorder, conn_idx, count);
    }

    fn refused(&self, conn_idx: usize, status: u16) -> Trouble {
        let origin = &self.prepared.origins[self.conns[conn_idx].origin_idx as usize];
        if !origin.is_upgraded() {
            return Trouble::proxy_refused(status);
        }
        let text = format!("the server answered the upgrade to h2c with status {status}, not 101");
        Trouble::new(Cause::VersionNotNegotiated, Phase::Tunnelling, text)
    }

    fn begin_tls(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, conn_idx: usize) {
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        self.conns[conn_idx].cold.connected_ns = self.now_ns;
        let Some(origin_tls) = &self.prepared.origins[origin_idx].tls else {
            return self.on_open(schedule, recorder, conn_idx);
        };
        let begun = match &mut schedule.sessions {
            None => TlsStream::new(Arc::clone(&origin_tls.config), origin_tls.server_name.clone()),
            Some(sessions) => {
                let request = &self.prepared.requests[origin_idx].bytes;
                sessions.start_tls(origin_tls, request, &mut self.conns[conn_idx].cold)
            }
        };
        match begun {
            Ok(session) => {
                self.conns[conn_idx].tls = Some(Box::new(session));
                self.conns[conn_idx].state = ConnState::Handshaking;
                self.handshake(schedule, recorder, conn_idx);
            }
            Err(error) => {
                self.fail(schedule, recorder, conn_idx, &Trouble::tls(&error, Phase::TlsHandshaking));
            }
        }
    }

    /// Moves the handshake on as far as the socket allows.
    pub(in crate::shard) fn handshake(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        match self.handshake_step(recorder, conn_idx) {
            Ok(true) => self.on_handshaken(schedule, recorder, conn_idx),
            Ok(false) => {}
            Err(trouble) => self.fail(schedule, recorder, conn_idx, &trouble),
        }
    }

    fn handshake_step(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) -> Result<bool, Trouble> {
        loop {
            if let Err(error) = self.flush_tls(recorder, conn_idx) {
                // A server that refuses sends an alert and closes: the alert says more than the broken pipe.
                self.read_tls(recorder, conn_idx, Phase::TlsHandshaking)?;
                return Err(Trouble::io(&error, Phase::TlsHandshaking));
            }
            let is_handshaking =
                self.conns[conn_idx].tls.as_ref().is_some_and(|session| session.is_handshaking());
            if !is_handshaking {
                return Ok(true);
            }
            match self.read_tls(recorder, conn_idx, Phase::TlsHandshaking)? {
                None => return Ok(false),
                Some(Read1 { bytes: 0, .. }) => return Err(Trouble::closed(Phase::TlsHandshaking)),
                Some(_) => self.check_handshake_size(conn_idx)?,
            }
        }
    }

    /// A server may not keep us busy with a handshake that has no end.
    fn check_handshake_size(&self, conn_idx: usize) -> Result<(), Trouble> {
        if self.conns[conn_idx].cold.handshake_bytes.received <= HANDSHAKE_BYTES_MAX {
            return Ok(());
        }
        let text = format!("handshake not finished after {HANDSHAKE_BYTES_MAX} bytes");
        Err(Trouble::new(Cause::TlsProtocol, Phase::TlsHandshaking, text))
    }

    /// The session is established; whether it speaks what was asked for was decided by ALPN.
    fn on_handshaken(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, conn_idx: usize) {
        self.now_ns = monotonic_ns();
        schedule.count_handshake(self, recorder, conn_idx);
        let conn = &self.conns[conn_idx];
        let asked = self.prepared.origins[conn.origin_idx as usize].key.http;
        match negotiated(asked, conn.tls.as_ref().and_then(|session| session.alpn())) {
            Ok(()) => self.on_open(schedule, recorder, conn_idx),
            Err(trouble) => self.fail(schedule, recorder, conn_idx, &trouble),
        }
    }

    /// The connection is ready: requests that were put on it go out.
    pub(super) fn on_open(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let conn = &mut self.conns[conn_idx];
        conn.state = ConnState::Open;
        self.now_ns = monotonic_ns();
        conn.cold.ready_ns = self.now_ns;
        self.counts.opening -= 1;
        self.deadlines[conn_idx] = u64::MAX;
        recorder.pulse.snapshot.connections_opened += 1;
        // Of WebSockets, those are open that have a stream.
        recorder.pulse.connections_open += u64::from(!self.is_carrier(conn_idx));
        self.control.note_connected();
        if schedule.sessions.is_some() {
            return schedule.on_session_ready(self, recorder, conn_idx);
        }
        let client = self.new_client(conn_idx);
        self.begin_requests(recorder, conn_idx, client);
        // Whether an HTTP/2 server takes requests is seen by the first response.
        if self.conns[conn_idx].client.as_ref().is_some_and(Client::answers_in_order) {
            self.conns[conn_idx].cold.failure_count = 0;
        }
        // The first request goes out at once: what the server says next may be about it already.
        self.send(schedule, recorder, conn_idx);
        if self.conns[conn_idx].state != ConnState::Open {
            return;
        }
        // Data may have come with the last flight, before the next edge.
        if self.conns[conn_idx].tls.is_some() {
            self.receive(schedule, recorder, conn_idx);
        }
        if self.has_free_slot(conn_idx) && self.conns[conn_idx].in_flight() > 0 {
            self.offer(schedule, recorder, conn_idx);
        }
    }

    /// Frees the slot. In a closed model a slot whose connect failed rests for a while: a user who finds the door shut
    /// does not try a hundred thousand times a second.
    pub(in crate::shard) fn vacate(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        self.drop_peeked(conn_idx);
        self.note_header_bytes(recorder, conn_idx);
        self.leave_carrier(recorder, conn_idx);
        let is_carrier = self.is_carrier(conn_idx);
        if self.conns[conn_idx].cold.quic.is_some() {
            self.end_quic(recorder, conn_idx);
        }
        let conn = &mut self.conns[conn_idx];
        match conn.state {
            ConnState::Vacant => return,
            ConnState::Open if is_carrier => {}
            ConnState::Open => recorder.pulse.connections_open -= 1,
            ConnState::Connecting | ConnState::Tunnelling | ConnState::Handshaking => {
                self.counts.opening -= 1;
                // Nothing says that the others would wait for anything better.
                self.origin_states[conn.origin_idx as usize].version.get_or_insert(Version::H1);
                conn.cold.failure_count += 1;
                self.control.note_connect_failure();
            }
        }
        let (failure_count, first_place, home_place) =
            (conn.cold.failure_count, conn.first_place, conn.cold.home_place);
        *conn = conn.vacated();
        if first_place == home_place {
            recorder.sink.forget(conn_idx, home_place..home_place + self.limits.stride);
        } else {
            recorder.sink.forget(conn_idx, first_place..first_place + self.limits.h2_stride);
            self.wide_parts.push(first_place);
        }
        if failure_count > 0 && self.limits.rests_after_failure {
            self.deadlines[conn_idx] = self.now_ns + reconnect_pause_ns(failure_count);
        } else {
            self.end_rest(conn_idx);
        }
    }

    /// A vacant slot may be opened again.
    pub(in crate::shard) fn end_rest(&mut self, conn_idx: usize) {
        self.deadlines[conn_idx] = u64::MAX;
        let pool_idx = self.conns[conn_idx].pool_idx as usize;
        self.pools[pool_idx].vacant.push(conn_idx as u32);
    }
}

/// Whether the protocol that ALPN came to is one that was asked for. A server that knows no ALPN speaks HTTP/1.1.
fn negotiated(asked: HttpVersion, alpn: Option<&[u8]>) -> Result<(), Trouble> {
    let is_h2 = alpn == Some(b"h2");
    let text = match (asked, alpn) {
        // HTTP/3 is not spoken over TCP.
        (HttpVersion::Auto | HttpVersion::Http3, _) => return Ok(()),
        (HttpVersion::Http2, _) if is_h2 => return Ok(()),
        (HttpVersion::Http11, _) if !is_h2 => return Ok(()),
        (HttpVersion::Http2, Some(name)) => {
            format!("the server negotiated `{}` (ALPN), not `h2`", String::from_utf8_lossy(name))
        }
        (HttpVersion::Http2, None) => {
            "the server negotiated no protocol (ALPN), so it does not support `h2`".to_owned()
        }
        (HttpVersion::Http11, _) => "the server negotiated `h2` (ALPN), not `http/1.1`".to_owned(),
    };
    Err(Trouble::new(Cause::VersionNotNegotiated, Phase::TlsHandshaking, text))
}

/// Certificate chains take some kilobytes; a handshake that is larger than this never ends.
const HANDSHAKE_BYTES_MAX: u64 = 256 * 1024;

/// Largest read while the proxy's answer is awaited.
const TUNNEL_READ_BYTES: usize = 4096;
