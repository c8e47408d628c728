//! Writes what connections have to send, at the end of each turn: requests of one connection leave together, in one write.
//!
//! Small requests and all frames are gathered in one buffer of the loop. A large body that needs no framing is written from where it lies,
//! or by the kernel from its file. What a socket does not take is kept with its connection and goes first, once the socket is writable.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use squall_measure::{Cause, Phase};
use squall_traffic::Stretch;
use squall_wire::Chunk;
use squall_wire::h1::RequestKind;
use squall_wire::h2::ErrorCode;

use crate::prepare::{HandshakeKey, Part};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Conn, ConnState};
use crate::shard::connections::request_of;
use crate::shard::connections::streams::stream_figures;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::sys::{Fd, monotonic_ns, send, send_file};
use crate::tls::TlsStream;
use crate::trouble::Trouble;

/// What became of bytes that were to be written.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// So many went to the socket, or into the TLS session.
    taken: usize,
    /// The socket has all of them: nothing is held back in a TLS session.
    is_whole: bool,
}

impl Connections {
    /// The connection has something to send at the end of this turn.
    pub(in crate::shard) fn list_unsent(&mut self, conn_idx: usize) {
        if !std::mem::replace(&mut self.conns[conn_idx].is_listed_unsent, true) {
            self.turn.unsent.push(conn_idx as u32);
        }
    }

    /// Ends the turn: whatever gathered goes out.
    pub(in crate::shard) fn send_unsent(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        let mut unsent = std::mem::take(&mut self.turn.unsent);
        self.send_all_carried(schedule, recorder, &mut unsent);
        for conn_idx in unsent.drain(..) {
            self.send(schedule, recorder, conn_idx as usize);
        }
        // What was added meanwhile (a request that was sent again) is for the next turn.
        unsent.append(&mut self.turn.unsent);
        self.turn.unsent = unsent;
        self.flush_quic();
    }

    pub(in crate::shard) fn send(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.is_carried(conn_idx) {
            return self.send_carried(schedule, recorder, conn_idx);
        }
        if self.quic.is_some() && self.conns[conn_idx].cold.quic.is_some() {
            return self.send_quic(schedule, recorder, conn_idx);
        }
        self.conns[conn_idx].is_listed_unsent = false;
        for _ in 0..WRITES_PER_TURN_MAX {
            if self.conns[conn_idx].state != ConnState::Open {
                return;
            }
            match self.send_once(schedule, recorder, conn_idx) {
                Ok(true) => {}
                Ok(false) => return self.close_when_over(schedule, recorder, conn_idx),
                Err(trouble) => return self.fail_after_reading(schedule, recorder, conn_idx, &trouble),
            }
        }
        // A large body could fill turn after turn: other connections have theirs first.
        self.list_unsent(conn_idx);
    }

    /// Writes what the socket did not take before, then one bufferful or one piece of a large body; true when there may be more.
    fn send_once(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<bool, Trouble> {
        if !self.flush(recorder, conn_idx)? {
            return Ok(false);
        }
        self.fill(schedule, recorder, conn_idx)?;
        if self.is_body_next(conn_idx) {
            return Ok(self.write_filled(recorder, conn_idx, true)? && self.write_body(recorder, conn_idx)?);
        }
        let is_large = self.io.out.len() >= WRITE_BYTES;
        Ok(self.write_filled(recorder, conn_idx, false)? && is_large)
    }

    /// Writes what the socket did not take before; true when nothing is left.
    pub(in crate::shard) fn flush(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<bool, Trouble> {
        let conn = &mut self.conns[conn_idx];
        let is_sealed = conn.tls.as_ref().is_some_and(|tls| tls.wants_write());
        if !conn.is_blocked() && !is_sealed {
            // Reading writes what a TLS session holds, too: then these requests have been sent by now.
            if let Some(held) = conn.held.as_mut().filter(|held| !held.ending.is_empty()) {
                self.io.ending.clear();
                self.io.ending.append(&mut held.ending);
                self.note_sent(conn_idx);
            }
            return Ok(true);
        }
        let mut held = conn.held.take().unwrap_or_default();
        let mut wire_bytes = 0;
        let written = write(conn, &held.rest[held.written_bytes..], false, &mut wire_bytes);
        held.take(written.as_ref().map_or(0, |written| written.taken));
        self.io.ending.clear();
        if written.as_ref().is_ok_and(|written| written.is_whole) {
            self.io.ending.append(&mut held.ending);
        }
        conn.held = Some(held);
        self.report_unsent(conn_idx);
        self.count_sent(recorder, conn_idx, wire_bytes);
        Ok(self.note_written(conn_idx, written?))
    }

    /// Gathers what is to be sent into the shared buffer: control frames, new requests, then bodies as far as windows allow.
    fn fill(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<(), Trouble> {
        self.io.out.clear();
        self.io.ending.clear();
        match &mut self.conns[conn_idx].client {
            Some(client) => client.write_control(&mut self.io.out),
            None => {
                self.fill_messages(schedule, recorder, conn_idx);
                return Ok(());
            }
        }
        while self.io.out.len() < WRITE_BYTES {
            let is_started = self.start_request(schedule, recorder, conn_idx);
            if !self.fill_body(schedule, recorder, conn_idx)? && !is_started {
                break;
            }
        }
        Ok(())
    }

    /// Appends the head of the next request that may be started; whether there was one.
    pub(super) fn start_request(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> bool {
        if self.is_carrier(conn_idx) {
            return self.start_carried(schedule, recorder, conn_idx);
        }
        let conn = &mut self.conns[conn_idx];
        let Some(client) = &mut conn.client else { return false };
        let Some(slot) = client.next_reserved() else { return false };
        let place = (conn.first_place + slot) as usize;
        let exchange = &mut self.exchanges[place];
        let prepared = request_of(&self.prepared, &self.made.requests, exchange.request);
        let request = prepared.on_wire();
        if !client.takes(request) {
            let field_bytes = request.fields.map_or(0, |fields| fields.list_bytes());
            self.refuse_request(schedule, recorder, conn_idx, slot, field_bytes);
            return true;
        }
        exchange.start_ns = self.now_ns;
        // Of recorded requests, few have streams for answers: `begin_recorded` knows which.
        if let Some(streams) = recorder.sink.streams.as_mut().filter(|_| schedule.replay.is_none()) {
            let is_open_model = recorder.pulse.is_open_model();
            let begin_ns = if is_open_model { exchange.intended_ns } else { exchange.start_ns };
            streams.begin(place, (begin_ns, exchange.is_warmup), prepared.resumption.as_deref());
        }
        let flight = exchange.request.dynamic_idx().and_then(|idx| self.made.calls.get(idx)?.as_ref());
        let growing = flight.filter(|flight| flight.has_growing_body()).map(|flight| &flight.outgoing);
        let is_growing = growing.is_some();
        let opens_websocket = request.kind == RequestKind::Upgrade;
        let table = &self.prepared.origins[conn.origin_idx as usize].fields;
        let begin = self.io.out.len();
        match growing {
            None => client.start(table, request, &mut self.io.out),
            Some(outgoing) => {
                client.start_stream(table, request, &mut self.io.out);
                client.extend(slot, outgoing.bytes.len() as u64);
                if outgoing.is_finished {
                    client.finish(slot);
                }
            }
        }
        if opens_websocket {
            HandshakeKey::new(self.handshake_seed, conn_idx, conn.generation).fill(&mut self.io.out[begin..]);
        }
        exchange.sent_bytes = (self.io.out.len() - begin) as u64;
        if request.body_bytes == 0 && !is_growing {
            self.io.ending.push(slot);
        }
        let (id, is_warmup, is_reused) = (exchange.request, exchange.is_warmup, !exchange.is_first);
        let snapshot = &mut recorder.pulse.snapshot;
        snapshot.connections_reused += u64::from(is_reused && !is_warmup);
        let version = client.version();
        if let Some(figures) = stream_figures(recorder, version).filter(|_| !is_warmup) {
            figures.streams += 1;
        }
        schedule.begin_recorded(self, recorder, (conn_idx, slot), id, is_warmup);
        true
    }

    /// Appends a piece of a body that is not written directly; whether there was one.
    fn fill_body(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Result<bool, Trouble> {
        if self.is_body_next(conn_idx) {
            return Ok(false);
        }
        let begin = self.io.out.len();
        let bytes_max = WRITE_BYTES.saturating_sub(begin);
        let Some(client) = &mut self.conns[conn_idx].client else { return Ok(false) };
        let Some(chunk) = client.next_chunk(bytes_max, &mut self.io.out) else { return Ok(false) };
        let overhead_bytes = (self.io.out.len() - begin + chunk.tail.len()) as u64;
        if let Err(trouble) = self.append_body(conn_idx, chunk) {
            self.io.out.truncate(begin);
            self.give_up_body(schedule, recorder, conn_idx, chunk.slot, trouble)?;
            return Ok(true);
        }
        self.io.out.extend_from_slice(chunk.tail);
        self.note_chunk(conn_idx, chunk, overhead_bytes);
        Ok(true)
    }

    /// The request that is next has left already, with the TLS handshake: only its response is awaited.
    pub(in crate::shard) fn note_sent_early(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let Some(client) = &mut conn.client else { return };
        let Some(slot) = client.next_reserved() else { return };
        let exchange = &mut self.exchanges[(conn.first_place + slot) as usize];
        let request = request_of(&self.prepared, &self.made.requests, exchange.request).on_wire();
        self.io.out.clear();
        client.start(&self.prepared.origins[conn.origin_idx as usize].fields, request, &mut self.io.out);
        (exchange.start_ns, exchange.sent_ns) = (self.now_ns, self.now_ns);
        exchange.sent_bytes = self.io.out.len() as u64;
        self.io.out.clear();
    }

    /// Bytes that are no request go out before anything else; how many wait to be sent then.
    pub(in crate::shard) fn hold_back(&mut self, conn_idx: usize, bytes: &[u8]) -> usize {
        let held = self.conns[conn_idx].held.get_or_insert_default();
        held.rest.extend_from_slice(bytes);
        held.left_bytes()
    }

    /// Whether what follows is a large body without framing, which is not copied.
    fn is_body_next(&self, conn_idx: usize) -> bool {
        let client = self.conns[conn_idx].client.as_ref();
        client.is_some_and(|client| client.unframed_body_bytes() >= DIRECT_BYTES_MIN)
    }

    pub(super) fn append_body(&mut self, conn_idx: usize, chunk: Chunk) -> Result<(), Trouble> {
        if self.is_carrier(conn_idx) {
            self.append_carried(conn_idx, chunk);
            return Ok(());
        }
        let place = self.place_of(conn_idx, chunk.slot);
        if self.has_growing_body(&self.exchanges[place]) {
            self.append_growing(conn_idx, chunk.slot, (chunk.offset, chunk.bytes));
            return Ok(());
        }
        let request = request_of(&self.prepared, &self.made.requests, self.exchanges[place].request);
        let out = &mut self.io.out;
        let (mut at, end) = (chunk.offset, chunk.offset + chunk.bytes as u64);
        while at < end {
            let left = (end - at) as usize;
            let begin = out.len();
            match request.part(request.body_at as u64 + at) {
                Part::Bytes(bytes) => out.extend_from_slice(&bytes[..bytes.len().min(left)]),
                Part::File(Stretch { file, offset, bytes }) => {
                    out.resize(begin + left.min(usize::try_from(bytes).unwrap_or(usize::MAX)), 0);
                    file.read_exact_at(&mut out[begin..], offset).map_err(|error| body_trouble(&error))?;
                }
            }
            at += (out.len() - begin) as u64;
        }
        Ok(())
    }

    /// A piece of a body is on its way.
    pub(super) fn note_chunk(&mut self, conn_idx: usize, chunk: Chunk, overhead_bytes: u64) {
        let place = self.place_of(conn_idx, chunk.slot);
        self.exchanges[place].sent_bytes += overhead_bytes + chunk.bytes as u64;
        if chunk.is_last {
            self.io.ending.push(chunk.slot);
        }
    }

    /// A body file cannot be read any more: its request fails, with its connection where that carries nothing else.
    pub(super) fn give_up_body(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
        trouble: Trouble,
    ) -> Result<(), Trouble> {
        let exchange = self.exchanges[self.place_of(conn_idx, slot)];
        let client = self.conns[conn_idx].client.as_mut().filter(|client| client.can_cancel());
        let Some(client) = client else { return Err(trouble) };
        client.cancel(slot);
        client.write_control(&mut self.io.out);
        self.settle(schedule, recorder, (conn_idx, slot), &exchange, 0, Err(trouble));
        self.turn.ready.push(conn_idx as u32);
        Ok(())
    }

    /// Writes the shared buffer; true when the socket took all of it. `more`: a body follows at once.
    fn write_filled(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        more: bool,
    ) -> Result<bool, Trouble> {
        if self.io.out.is_empty() {
            return Ok(more);
        }
        let conn = &mut self.conns[conn_idx];
        let mut wire_bytes = 0;
        let written = write(conn, &self.io.out, more, &mut wire_bytes);
        let taken = written.as_ref().map_or(0, |written| written.taken);
        if taken < self.io.out.len() {
            conn.held.get_or_insert_default().rest.extend_from_slice(&self.io.out[taken..]);
        }
        self.count_sent(recorder, conn_idx, wire_bytes);
        let is_whole = self.note_written(conn_idx, written?);
        self.note_header_bytes(recorder, conn_idx);
        Ok(is_whole)
    }

    /// Bytes were written, and maybe all: if not, the requests that end in them are sent with the rest.
    fn note_written(&mut self, conn_idx: usize, written: Written) -> bool {
        if written.is_whole {
            self.note_sent(conn_idx);
        } else if !self.io.ending.is_empty() {
            self.conns[conn_idx].held.get_or_insert_default().ending.append(&mut self.io.ending);
        }
        written.is_whole
    }

    /// Writes a piece of a large body from where it lies; true when the socket may take more.
    fn write_body(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) -> Result<bool, Trouble> {
        let Some(client) = &mut self.conns[conn_idx].client else { return Ok(false) };
        let Some(chunk) = client.next_chunk(PART_BYTES_MAX, &mut self.io.out) else { return Ok(true) };
        let written = self.write_chunk(recorder, conn_idx, chunk)?;
        if let Some(client) = &mut self.conns[conn_idx].client {
            client.return_chunk(chunk.bytes - written.taken);
        }
        let is_last = chunk.is_last && written.taken == chunk.bytes;
        self.note_chunk(conn_idx, Chunk { bytes: written.taken, is_last, ..chunk }, 0);
        Ok(self.note_written(conn_idx, written))
    }

    fn write_chunk(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        chunk: Chunk,
    ) -> Result<Written, Trouble> {
        let place = self.place_of(conn_idx, chunk.slot);
        let request = request_of(&self.prepared, &self.made.requests, self.exchanges[place].request);
        let conn = &mut self.conns[conn_idx];
        let mut wire_bytes = 0;
        let part = request.part(request.body_at as u64 + chunk.offset);
        let written = match (part, &conn.tls, &conn.socket) {
            (Part::Bytes(bytes), ..) => {
                write(conn, &bytes[..bytes.len().min(chunk.bytes)], false, &mut wire_bytes)
            }
            (Part::File(Stretch { file, offset, bytes }), None, Some(socket)) => {
                let sent = send_file(socket, file, offset, bytes.min(chunk.bytes as u64));
                file_written(sent, &mut wire_bytes)
            }
            (Part::File(Stretch { file, offset, bytes }), ..) => {
                let bytes_max = chunk.bytes.min(TLS_FILE_PART_BYTES) as u64;
                let piece = &mut self.io.read[..bytes.min(bytes_max) as usize];
                file.read_exact_at(piece, offset).map_err(|error| body_trouble(&error))?;
                write(conn, piece, false, &mut wire_bytes)
            }
        };
        self.count_sent(recorder, conn_idx, wire_bytes);
        written
    }

    /// What is written is sent: requests that end in it wait for their responses now, except those whose response has begun already.
    pub(super) fn note_sent(&mut self, conn_idx: usize) {
        self.now_ns = monotonic_ns();
        let first_place = self.conns[conn_idx].first_place;
        for slot in self.io.ending.drain(..) {
            let exchange = &mut self.exchanges[(first_place + slot) as usize];
            if exchange.first_ns == 0 {
                exchange.sent_ns = self.now_ns;
            }
        }
    }

    /// A server may answer and close before it has read all: its answers count, not our broken pipe.
    fn fail_after_reading(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        trouble: &Trouble,
    ) {
        let generation = self.conns[conn_idx].generation;
        if trouble.cause != Cause::BodyFile {
            self.receive(schedule, recorder, conn_idx);
        }
        if self.is_same(conn_idx, generation) {
            self.fail(schedule, recorder, conn_idx, trouble);
        }
    }

    /// Writes what precedes the end of a connection, as far as the socket takes it.
    pub(in crate::shard) fn write_goodbye(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        code: ErrorCode,
    ) {
        self.close_quic(recorder, conn_idx, code.0);
        let conn = &mut self.conns[conn_idx];
        let is_blocked = conn.is_blocked();
        let Some(client) = conn.client.as_mut().filter(|_| !is_blocked) else { return };
        let mut bytes = Vec::new();
        client.write_goodbye(code, &mut bytes);
        if !bytes.is_empty() {
            // Nothing depends on whether the peer still reads it.
            let mut wire_bytes = 0;
            let _ = write(conn, &bytes, false, &mut wire_bytes);
            self.count_sent(recorder, conn_idx, wire_bytes);
        }
    }

    /// Writes what the TLS session has ready; what the socket does not take now goes later.
    pub(in crate::shard) fn flush_tls(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> io::Result<()> {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(socket)) = (&mut conn.tls, &conn.socket) else { return Ok(()) };
        let mut wire_bytes = 0;
        let flushed = flush_session(session, socket, &mut wire_bytes);
        if conn.state == ConnState::Handshaking {
            conn.cold.handshake_bytes.sent += wire_bytes;
        }
        self.count_sent(recorder, conn_idx, wire_bytes);
        flushed.map(drop)
    }

    /// Moves what HPACK saved into the metrics.
    pub(in crate::shard) fn note_header_bytes(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let Some(client) = &mut self.conns[conn_idx].client else { return };
        let bytes = client.take_header_bytes();
        let Some(figures) = stream_figures(recorder, client.version()) else { return };
        figures.header_bytes_sent += bytes.sent;
        figures.header_bytes_sent_packed += bytes.sent_packed;
        figures.header_bytes_received += bytes.received;
        figures.header_bytes_received_packed += bytes.received_packed;
    }
}

/// Writes to the socket, or through the TLS session. `more`: another write follows at once.
fn write(conn: &mut Conn, bytes: &[u8], more: bool, wire_bytes: &mut u64) -> Result<Written, Trouble> {
    let Some(socket) = &conn.socket else { return Ok(Written::default()) };
    let written = match &mut conn.tls {
        Some(session) => write_session(session, socket, bytes, wire_bytes),
        None => send(socket, bytes, more).map(|taken| {
            *wire_bytes += taken as u64;
            Written { taken, is_whole: taken == bytes.len() }
        }),
    };
    or_blocked(written)
}

/// The session takes as much as its buffer holds; more, once the socket has taken that.
fn write_session(
    session: &mut TlsStream,
    socket: &Fd,
    bytes: &[u8],
    wire_bytes: &mut u64,
) -> io::Result<Written> {
    let mut taken = 0;
    loop {
        let is_flushed = flush_session(session, socket, wire_bytes)?;
        if !is_flushed || taken == bytes.len() {
            return Ok(Written { taken, is_whole: is_flushed });
        }
        taken += session.write(&bytes[taken..]).map_err(io::Error::other)?;
    }
}

/// The kernel has read that much of a file into the socket.
fn file_written(sent: io::Result<usize>, wire_bytes: &mut u64) -> Result<Written, Trouble> {
    match sent {
        Ok(0) => Err(body_trouble(&io::ErrorKind::UnexpectedEof.into())),
        sent => or_blocked(sent.map(|taken| {
            *wire_bytes += taken as u64;
            // It may send less than was asked for and still have space for more, which the next write shows.
            Written { taken, is_whole: true }
        })),
    }
}

fn or_blocked(written: io::Result<Written>) -> Result<Written, Trouble> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Written::default()),
        other => other.map_err(|error| Trouble::io(&error, Phase::Sending)),
    }
}

/// Writes the session's ready records; true when none is left.
fn flush_session(session: &mut TlsStream, socket: &Fd, wire_bytes: &mut u64) -> io::Result<bool> {
    while session.wants_write() {
        match session.write_tls(&mut SocketWriter(socket)) {
            Ok(count) => *wire_bytes += count as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

struct SocketWriter<'a>(&'a Fd);

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(self.0, bytes, false)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn body_trouble(error: &io::Error) -> Trouble {
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the body file became shorter during the run".to_owned(),
        _ => error.to_string(),
    };
    Trouble::new(Cause::BodyFile, Phase::Sending, text)
}

/// One write carries about so much: enough that a larger one saves nothing.
const WRITE_BYTES: usize = 64 * 1024;

/// Writes of one connection in one turn of the loop: a large body must not make all others wait.
const WRITES_PER_TURN_MAX: u32 = 16;

/// A body of at least this size is worth a write of its own rather than a copy.
const DIRECT_BYTES_MIN: u64 = 16 * 1024;

/// Most of a body that is written in one go.
const PART_BYTES_MAX: usize = 1 << 20;

/// Most of a body file that is read for a TLS session in one go.
const TLS_FILE_PART_BYTES: usize = 16 * 1024;
