//! Reads responses: no more often than needed, and unread bodies are dropped inside the kernel.

use std::io::{self, Read};

use squall_measure::{Cause, Phase};
use squall_wire::{Client, Event, ProtocolError};

use crate::shard::connections::Connections;
use crate::shard::connections::IoBuffers;
use crate::shard::connections::conn::ConnState;
use crate::shard::recorder::ShardRecorder;
use crate::shard::recorder::stamps::{ReadStamps, ReceiveTimes};
use crate::shard::schedule::ShardSchedule;
use crate::sys::{Clock, Fd, Recv, monotonic_ns, peek_stamp, recv, recv_stamped};
use crate::trouble::Trouble;

/// What one read brought.
pub(in crate::shard) struct Read1 {
    /// 0: the peer has closed. Those of a TLS session are encrypted.
    pub(in crate::shard) bytes: usize,
    /// Less than was asked for: the socket is empty, unless the peer's close follows.
    pub(in crate::shard) is_short: bool,
    /// The bytes were dropped inside the kernel.
    is_discarded: bool,
}

impl Connections {
    /// Reads a connection until it owes nothing, or the socket is empty, or others have their turn.
    pub(in crate::shard) fn receive(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.quic.is_some() && self.conns[conn_idx].cold.quic.is_some() {
            return self.receive_resumed(schedule, recorder, conn_idx);
        }
        let generation = self.conns[conn_idx].generation;
        let result = self.read_all(schedule, recorder, conn_idx, generation);
        self.after_read(schedule, recorder, conn_idx, generation, result);
    }

    /// Decodes what came with the response that made the connection one of HTTP/2: the first `bytes` of the read buffer.
    pub(in crate::shard) fn receive_first(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        bytes: usize,
    ) {
        let generation = self.conns[conn_idx].generation;
        let result = self.decode(schedule, recorder, conn_idx, bytes);
        self.after_read(schedule, recorder, conn_idx, generation, result);
    }

    fn after_read(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        generation: u32,
        result: Result<(), Trouble>,
    ) {
        if !self.is_same(conn_idx, generation) {
            return;
        }
        self.note_header_bytes(recorder, conn_idx);
        if let Err(trouble) = result {
            return self.fail(schedule, recorder, conn_idx, &trouble);
        }
        let conn = &self.conns[conn_idx];
        self.is_mid_response |= conn.client.as_ref().is_some_and(Client::is_mid_response);
        if conn.wants_write() {
            self.list_unsent(conn_idx);
        }
        self.close_when_over(schedule, recorder, conn_idx);
    }

    fn read_all(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        generation: u32,
    ) -> Result<(), Trouble> {
        if self.conns[conn_idx].tls.is_some() {
            // What came with the end of the handshake.
            self.decode(schedule, recorder, conn_idx, 0)?;
        }
        for _ in 0..READS_PER_TURN_MAX {
            if !self.is_same(conn_idx, generation) {
                return Ok(());
            }
            let Some(read) = self.read_once(recorder, conn_idx)? else { return Ok(()) };
            match read {
                Read1 { bytes: 0, .. } => return self.on_eof(schedule, recorder, conn_idx, false),
                Read1 { bytes, is_discarded: true, .. } => {
                    self.skip_body(schedule, recorder, conn_idx, bytes);
                }
                Read1 { bytes, .. } => self.decode(schedule, recorder, conn_idx, bytes)?,
            }
            let conn = &self.conns[conn_idx];
            // Without a client, a ticket is waited for.
            let owes_nothing = conn.client.as_ref().is_some_and(|client| !client.wants_read());
            if !conn.peer_closed && (read.is_short || owes_nothing) {
                return Ok(());
            }
        }
        self.turn.unfinished.push(conn_idx as u32);
        Ok(())
    }

    /// One read, with its time in `now_ns`; `None`: the socket is empty.
    fn read_once(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) -> Result<Option<Read1>, Trouble> {
        if self.conns[conn_idx].tls.is_some() {
            return self.read_tls(recorder, conn_idx, Phase::Receiving);
        }
        let how = self.answer_mode(conn_idx);
        let (wanted, how) = self.wanted_of(recorder, conn_idx, how);
        match self.recv_answer(recorder, conn_idx, wanted, how) {
            Ok(bytes) => Ok(Some(Read1 { bytes, is_short: bytes < wanted, is_discarded: how == Recv::Drop })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Trouble::io(&error, Phase::Receiving)),
        }
    }

    /// How much to read, and how: the rest of a large body that is not kept is dropped inside the kernel, and where one is expected, its head
    /// is read alone.
    fn wanted_of(&self, recorder: &ShardRecorder, conn_idx: usize, how: Recv) -> (usize, Recv) {
        let conn = &self.conns[conn_idx];
        let whole = (self.io.read.len(), how);
        let Some(client) = &conn.client else { return whole };
        let skippable = client.skippable_bytes() as usize;
        let is_head_next = conn.expects_large_body && client.is_between_responses();
        if skippable < DISCARD_BYTES_MIN && !is_head_next {
            return whole;
        }
        let Some(slot) = client.next_answered() else { return whole };
        let is_kept = recorder.sink.keeps_body(self.place_of(conn_idx, slot));
        if is_kept || !is_head_next && recorder.sink.captures.has((conn_idx, slot)) {
            whole
        } else if is_head_next {
            (HEAD_FIRST_BYTES, Recv::Take)
        } else {
            (skippable.min(self.io.discard.len()), Recv::Drop)
        }
    }

    fn skip_body(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        bytes: usize,
    ) {
        let event = self.conns[conn_idx].client.as_mut().and_then(|client| client.skip(bytes as u64));
        if let Some(event) = event {
            self.on_event(schedule, recorder, conn_idx, event, self.now_ns);
        }
    }

    /// Decodes the first `bytes` of the read buffer, or all plaintext that the TLS session holds.
    fn decode(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        bytes: usize,
    ) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut begin = 0;
        while self.is_same(conn_idx, generation) {
            let first_ns = recorder.receive_times.time_of(self.now_ns, 0);
            let conn = &mut self.conns[conn_idx];
            let input = match &conn.tls {
                None if begin == bytes => return Ok(()),
                None => &self.io.read[begin..bytes],
                Some(session) => match session.chunk() {
                    Ok(None) => return Ok(()),
                    Ok(Some([])) => return self.on_eof(schedule, recorder, conn_idx, true),
                    Ok(Some(chunk)) => chunk,
                    Err(error) => return Err(Trouble::tls(&error, Phase::Receiving)),
                },
            };
            let Some(client) = &mut conn.client else {
                if conn.cold.websocket.is_some() {
                    return self.decode_messages(schedule, recorder, conn_idx, begin..bytes);
                }
                let bytes = input.len();
                begin += bytes;
                if let Some(session) = &mut conn.tls {
                    session.consume(bytes);
                }
                continue;
            };
            if client.can_cancel() {
                conn.cold.heard_ns = self.now_ns;
            }
            recorder.sink.begin(conn_idx, conn.first_place, first_ns);
            let progress = match client.decode(&mut self.io.head_caches, input, &mut recorder.sink) {
                Ok(progress) => progress,
                Err(error) => {
                    // Bytes that are no response are the first of one all the same.
                    if let Some(slot) = client.next_answered().or_else(|| conn.has_opener.then_some(0)) {
                        self.exchanges[(conn.first_place + slot) as usize].note_first_byte(first_ns);
                    }
                    return self.on_protocol_error(schedule, recorder, conn_idx, &error);
                }
            };
            begin += progress.consumed;
            if let Some(session) = &mut conn.tls {
                session.consume(progress.consumed);
            }
            self.now_ns = recorder.receive_times.time_of(self.now_ns, progress.consumed);
            if let Some(event) = progress.event {
                self.on_event(schedule, recorder, conn_idx, event, first_ns);
            }
        }
        Ok(())
    }

    /// Reads and decrypts once; `None`: the socket is empty. Also answers what the peer asks of the session (key updates).
    pub(in crate::shard) fn read_tls(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        phase: Phase,
    ) -> Result<Option<Read1>, Trouble> {
        let how = self.answer_mode(conn_idx);
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(socket)) = (&mut conn.tls, &conn.socket) else { return Ok(None) };
        let clock = recorder.receive_times.clock();
        let stamps = &mut recorder.receive_times.read_stamps;
        let mut reader = SocketReader { socket, how, clock, stamps, now_ns: &mut self.now_ns, wanted: 0 };
        let bytes = match session.read_tls(&mut reader) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(Trouble::io(&error, phase)),
        };
        let wanted = reader.wanted;
        self.note_answer(recorder, conn_idx, how, bytes, wanted);
        let conn = &mut self.conns[conn_idx];
        if conn.state == ConnState::Handshaking {
            conn.cold.handshake_bytes.received += bytes as u64;
        }
        let Some(session) = &mut conn.tls else { return Ok(None) };
        match session.process() {
            Ok(plain_bytes) => recorder.receive_times.read_stamps.begin(self.now_ns, bytes, plain_bytes),
            Err(error) => {
                // The alert to the peer is sent where that is possible; the failure is ours to count either way.
                let _ = self.flush_tls(recorder, conn_idx);
                return Err(Trouble::tls(&error, phase));
            }
        }
        self.flush_tls(recorder, conn_idx).map_err(|error| Trouble::io(&error, phase))?;
        Ok(Some(Read1 { bytes, is_short: bytes < wanted, is_discarded: false }))
    }

    /// The peer has closed its side; `is_announced`: by TLS. That may end a response, and always ends the connection.
    fn on_eof(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        is_announced: bool,
    ) -> Result<(), Trouble> {
        let conn = &mut self.conns[conn_idx];
        let Some(client) = conn.client.as_mut().filter(|client| client.in_flight() > 0) else {
            self.close(schedule, recorder, conn_idx);
            return Ok(());
        };
        let is_cut_off = conn.tls.is_some() && !is_announced;
        match client.handle_eof(is_cut_off) {
            Ok(Some(event)) => {
                self.on_event(schedule, recorder, conn_idx, event, self.now_ns);
                Ok(())
            }
            Ok(None) => Err(closed_by_peer(client)),
            Err(error) => Err(Trouble::protocol(&error, Phase::Receiving)),
        }
    }

    /// The peer broke a rule, or sent a response without a request (such as a 408 before a close): the connection is not used again.
    pub(super) fn on_protocol_error(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        error: &ProtocolError,
    ) -> Result<(), Trouble> {
        match error.goodbye_code() {
            Some(code) => self.write_goodbye(recorder, conn_idx, code),
            None if self.conns[conn_idx].in_flight() == 0 => {
                self.close(schedule, recorder, conn_idx);
                return Ok(());
            }
            None => {}
        }
        Err(Trouble::protocol(error, Phase::Receiving))
    }

    pub(super) fn on_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        event: Event,
        first_ns: u64,
    ) {
        if self.is_carrier(conn_idx) {
            return self.on_carrier_event(schedule, recorder, conn_idx, (event, first_ns));
        }
        match event {
            Event::Received { slot, bytes, response } => {
                let place = self.place_of(conn_idx, slot);
                let exchange = &mut self.exchanges[place];
                exchange.note_first_byte(first_ns);
                exchange.received_bytes += u64::from(bytes);
                match response {
                    Some(response) => self.complete(schedule, recorder, conn_idx, slot, &response),
                    None => self.hasten(recorder, conn_idx, place),
                }
            }
            Event::Failed { slot, failure } => self.fail_alone(schedule, recorder, conn_idx, slot, failure),
            Event::Allowance if schedule.sessions.is_some() => {
                schedule.on_session_settings(self, recorder, conn_idx);
            }
            Event::Pong => schedule.on_pong(self, recorder, conn_idx),
            // The peer allows more streams than before: requests that wait for a connection may have them.
            Event::Allowance if self.has_free_slot(conn_idx) && self.conns[conn_idx].in_flight() > 0 => {
                self.list_idle(conn_idx);
            }
            Event::Allowance => {}
            Event::GoingAway => self.take_back_unprocessed(schedule, recorder, conn_idx),
        }
    }

    /// Whether the slot still holds the connection that it held.
    pub(in crate::shard) fn is_same(&self, conn_idx: usize, generation: u32) -> bool {
        self.conns[conn_idx].generation == generation && self.conns[conn_idx].state == ConnState::Open
    }
}

impl IoBuffers {
    /// Reads into the shared buffer, or drops what is there. `now_ns` becomes the present, or with stamps the time at which the data
    /// came.
    pub(in crate::shard) fn recv(
        &mut self,
        times: &mut ReceiveTimes,
        socket: &Fd,
        (wanted, how): (usize, Recv),
        now_ns: &mut u64,
    ) -> io::Result<usize> {
        let clock = times.clock();
        let buf = if how == Recv::Drop { &mut self.discard } else { &mut self.read };
        let bytes = recv_at(clock, socket, &mut buf[..wanted], how, &mut times.read_stamps, now_ns)?;
        if clock.is_some() {
            times.read_stamps.begin(*now_ns, bytes, bytes);
        }
        Ok(bytes)
    }
}

/// The peer has closed the connection; what it sent before says why.
fn closed_by_peer(client: &Client) -> Trouble {
    match client.goaway_code() {
        None => Trouble::closed(Phase::Receiving),
        Some(code) => Trouble::new(
            Cause::ConnectionClosed,
            Phase::Receiving,
            format!("the server closed the connection after GOAWAY ({code})"),
        ),
    }
}

/// Reads, and sets `now_ns` to the time at which the data came; to the present without stamps, or where the kernel gave none.
fn recv_at(
    clock: Option<Clock>,
    socket: &Fd,
    buf: &mut [u8],
    how: Recv,
    stamps: &mut ReadStamps,
    now_ns: &mut u64,
) -> io::Result<usize> {
    let Some(clock) = clock else {
        let bytes = recv(socket, buf, how)?;
        *now_ns = monotonic_ns();
        return Ok(bytes);
    };
    let first_ns = if stamps.wants_first() { peek_stamp(socket) } else { None };
    let read = recv_stamped(socket, buf, how)?;
    if let (Some(first_ns), Some(last_ns)) = (first_ns, read.wall_ns) {
        stamps.learn(first_ns, last_ns, read.bytes);
    }
    *now_ns = read.wall_ns.map_or_else(monotonic_ns, |wall_ns| clock.monotonic_of(wall_ns));
    Ok(read.bytes)
}

/// Gives a TLS session what the socket has.
struct SocketReader<'a> {
    socket: &'a Fd,
    how: Recv,
    clock: Option<Clock>,
    stamps: &'a mut ReadStamps,
    now_ns: &'a mut u64,
    /// Bytes that the last read asked for.
    wanted: usize,
}

impl Read for SocketReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = recv_at(self.clock, self.socket, buf, self.how, self.stamps, self.now_ns)?;
        self.wanted = buf.len();
        Ok(bytes)
    }
}

/// Reads of one connection in one turn of the loop: a fast sender of a large body must not make all others wait.
const READS_PER_TURN_MAX: u32 = 16;

/// A remainder of at least this is dropped inside the kernel; for less, a plain read is as cheap.
const DISCARD_BYTES_MIN: usize = 4096;

/// First read of a response whose predecessor was large: the head, and little of the body.
const HEAD_FIRST_BYTES: usize = 2048;
