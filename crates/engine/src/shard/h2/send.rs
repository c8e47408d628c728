//! Writes what HTTP/2 connections have to say: frames of many streams in one write, once a turn.

use std::io;
use std::os::unix::fs::FileExt;

use squall_measure::{Cause, Phase};
use squall_wire::h2::{Chunk, ErrorCode, Request};

use super::Session;
use crate::shard::conn::State;
use crate::shard::send::flush;
use crate::shard::{Shard, request_of};
use crate::sys::{monotonic_ns, send};
use crate::trouble::Trouble;

/// What became of bytes that were to be written.
#[derive(Debug, Default)]
struct Written {
    /// So many went to the socket, or into the TLS session.
    taken: usize,
    /// The socket has all of them: what a TLS session holds is not on its way.
    is_whole: bool,
}

impl Shard {
    /// Ends the turn: whatever gathered goes out.
    pub(in crate::shard) fn send_unsent(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for conn_idx in unsent.drain(..) {
            self.send_h2(conn_idx as usize);
        }
        // What was added meanwhile (a request that was sent again) is for the next turn.
        unsent.append(&mut self.unsent);
        self.unsent = unsent;
    }

    fn send_h2(&mut self, conn_idx: usize) {
        let Some(session) = &mut self.conns[conn_idx].h2 else { return };
        session.is_listed = false;
        for _ in 0..WRITES_PER_TURN_MAX {
            let result = self.flush_h2(conn_idx).and_then(|is_flushed| {
                if !is_flushed {
                    return Ok(false);
                }
                self.fill(conn_idx);
                self.write_filled(conn_idx)
            });
            match result {
                Ok(true) => {}
                Ok(false) => return self.close_when_over(conn_idx),
                Err(trouble) => return self.fail_after_reading_h2(conn_idx, &trouble),
            }
        }
        // A window so large that a body fills turn after turn: the others have theirs.
        self.list_unsent(conn_idx);
    }

    /// Writes what the socket did not take before; true when nothing is left.
    fn flush_h2(&mut self, conn_idx: usize) -> Result<bool, Trouble> {
        let conn = &mut self.conns[conn_idx];
        let Some(session) = &mut conn.h2 else { return Ok(false) };
        let is_held = conn.tls.as_ref().is_some_and(|tls| tls.wants_write());
        if session.unsent.is_empty() && !is_held {
            return Ok(true);
        }
        let rest = std::mem::take(&mut session.unsent);
        let begin = std::mem::take(&mut session.written);
        let written = self.write_bytes(conn_idx, &rest[begin..])?;
        let Some(session) = &mut self.conns[conn_idx].h2 else { return Ok(false) };
        if begin + written.taken < rest.len() {
            (session.unsent, session.written) = (rest, begin + written.taken);
        }
        if written.is_whole {
            self.note_sent(conn_idx);
        }
        Ok(written.is_whole)
    }

    /// Gathers what is to be sent into the shared buffer: control frames, new requests, then bodies as far as windows allow.
    fn fill(&mut self, conn_idx: usize) {
        self.io.out.clear();
        if let Some(session) = &mut self.conns[conn_idx].h2 {
            session.client.write_control(&mut self.io.out);
        }
        self.fill_requests(conn_idx);
        self.fill_bodies(conn_idx);
    }

    fn fill_requests(&mut self, conn_idx: usize) {
        while let Some(session) = &mut self.conns[conn_idx].h2
            && self.io.out.len() < WRITE_BYTES
            && session.client.may_start()
            && let Some(slot) = session.pending.pop_front()
        {
            self.start_stream(conn_idx, slot);
        }
    }

    fn start_stream(&mut self, conn_idx: usize, slot: u32) {
        let place = self.stream_place(conn_idx, slot);
        let exchange = &mut self.exchanges[place];
        let request = request_of(&self.prepared, &self.dynamic, exchange.request);
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(fields)) = (&mut conn.h2, &request.fields) else { return };
        if !session.client.takes(fields) {
            session.client.cancel(slot);
            if session.note_refusal(conn.served_count) {
                // Its next connection waits as after one that failed: a server that takes nothing is not asked without a pause.
                session.is_retiring = true;
                conn.failure_count = conn.failure_count.saturating_add(1);
            }
            let text = format!(
                "the request's fields have {} bytes, more than the server's SETTINGS_MAX_HEADER_LIST_SIZE",
                fields.list_bytes()
            );
            let exchange = *exchange;
            return self.settle_stream(conn_idx, &exchange, Cause::HeadTooLarge, text);
        }
        exchange.start_ns = self.now_ns;
        let body_bytes = request.body_bytes();
        let table = &self.prepared.origins[conn.origin_idx as usize].fields;
        let begin = self.io.out.len();
        session.client.start(
            slot,
            table,
            Request { fields, kind: request.kind, body_bytes },
            &mut self.io.out,
        );
        let (id, is_warmup) = (exchange.request, exchange.is_warmup);
        exchange.sent_bytes = (self.io.out.len() - begin) as u64;
        if body_bytes == 0 {
            session.ending.push(slot);
        }
        self.pulse.snapshot.connections_reused += u64::from(!exchange.is_first && !exchange.is_warmup);
        self.pulse.snapshot.http2.streams += u64::from(!exchange.is_warmup);
        self.begin_recorded((conn_idx, slot), id, is_warmup);
    }

    fn fill_bodies(&mut self, conn_idx: usize) {
        while let Some(session) = &mut self.conns[conn_idx].h2
            && let Some(room) = WRITE_BYTES.checked_sub(self.io.out.len()).filter(|room| *room > 0)
        {
            let begin = self.io.out.len();
            let Some(chunk) = session.client.next_chunk(room, &mut self.io.out) else { return };
            if let Err(trouble) = self.append_body(conn_idx, chunk) {
                self.io.out.truncate(begin);
                self.give_up_body(conn_idx, chunk.slot, trouble);
            }
        }
    }

    /// Appends the bytes of a body that a DATA frame was announced for.
    fn append_body(&mut self, conn_idx: usize, chunk: Chunk) -> Result<(), Trouble> {
        let place = self.stream_place(conn_idx, chunk.slot);
        let exchange = &mut self.exchanges[place];
        let request = request_of(&self.prepared, &self.dynamic, exchange.request);
        let out = &mut self.io.out;
        match &request.file {
            None => {
                let offset = chunk.offset as usize;
                out.extend_from_slice(&request.body()[offset..offset + chunk.bytes]);
            }
            Some(body) => {
                let begin = out.len();
                out.resize(begin + chunk.bytes, 0);
                body.file
                    .read_exact_at(&mut out[begin..], chunk.offset)
                    .map_err(|error| body_trouble(&error))?;
            }
        }
        exchange.sent_bytes += FRAME_HEAD_BYTES + chunk.bytes as u64;
        if chunk.is_last
            && let Some(session) = &mut self.conns[conn_idx].h2
        {
            session.ending.push(chunk.slot);
        }
        Ok(())
    }

    fn give_up_body(&mut self, conn_idx: usize, slot: u32, trouble: Trouble) {
        let exchange = self.exchanges[self.stream_place(conn_idx, slot)];
        if let Some(session) = &mut self.conns[conn_idx].h2 {
            session.client.cancel(slot);
            session.client.write_control(&mut self.io.out);
        }
        self.settle(conn_idx, &exchange, 0, Err(trouble));
        self.ready.push(conn_idx as u32);
    }

    /// Writes the shared buffer; true when all of it went and there may be more.
    fn write_filled(&mut self, conn_idx: usize) -> Result<bool, Trouble> {
        if self.io.out.is_empty() {
            return Ok(false);
        }
        let out = std::mem::take(&mut self.io.out);
        let written = self.write_bytes(conn_idx, &out);
        let is_large = out.len() >= WRITE_BYTES;
        if let (Ok(written), Some(session)) = (&written, &mut self.conns[conn_idx].h2) {
            session.unsent.clear();
            session.unsent.extend_from_slice(&out[written.taken..]);
            session.written = 0;
        }
        self.io.out = out;
        let Written { is_whole, .. } = written?;
        if is_whole {
            self.note_sent(conn_idx);
        }
        self.note_header_bytes(conn_idx);
        Ok(is_whole && is_large)
    }

    /// What is written is sent: requests that end in it wait for their answers now.
    fn note_sent(&mut self, conn_idx: usize) {
        self.now_ns = monotonic_ns();
        let stride = self.limits.stride as usize;
        let Some(session) = &mut self.conns[conn_idx].h2 else { return };
        for slot in session.ending.drain(..) {
            self.exchanges[conn_idx * stride + slot as usize].sent_ns = self.now_ns;
        }
    }

    /// Writes to the socket, or through the TLS session.
    fn write_bytes(&mut self, conn_idx: usize, bytes: &[u8]) -> Result<Written, Trouble> {
        let conn = &mut self.conns[conn_idx];
        let Some(socket) = &conn.socket else { return Ok(Written::default()) };
        let mut wire_bytes = 0;
        let result = match &mut conn.tls {
            None => send(socket, bytes, false).map(|taken| {
                wire_bytes = taken as u64;
                Written { taken, is_whole: taken == bytes.len() }
            }),
            Some(session) => {
                // The session takes as much as its buffer holds; more, once the socket has taken that.
                let mut taken = 0;
                loop {
                    match flush(session, socket, &mut wire_bytes) {
                        Ok(true) if taken < bytes.len() => {}
                        Ok(is_flushed) => {
                            break Ok(Written { taken, is_whole: is_flushed && taken == bytes.len() });
                        }
                        Err(error) => break Err(error),
                    }
                    match session.write(&bytes[taken..]) {
                        Ok(count) => taken += count,
                        Err(error) => break Err(io::Error::other(error)),
                    }
                }
            }
        };
        self.pulse.snapshot.wire_bytes_sent += wire_bytes;
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Written::default()),
            other => other.map_err(|error| Trouble::io(&error, Phase::Sending)),
        }
    }

    /// A server may answer and close before it has read all: its answers count, not our broken pipe.
    fn fail_after_reading_h2(&mut self, conn_idx: usize, trouble: &Trouble) {
        let generation = self.conns[conn_idx].generation;
        self.receive(conn_idx);
        let conn = &self.conns[conn_idx];
        if conn.generation == generation && conn.state == State::Open {
            self.fail(conn_idx, trouble);
        }
    }

    /// Writes GOAWAY, as far as the socket takes it.
    pub(super) fn write_goaway(&mut self, conn_idx: usize, code: ErrorCode) {
        let Some(session) = &mut self.conns[conn_idx].h2 else { return };
        let mut bytes = Vec::new();
        if session.unsent.is_empty() {
            session.client.write_control(&mut bytes);
            session.client.write_goaway(code, &mut bytes);
            // Whether the peer still hears it is of no importance.
            let _ = self.write_bytes(conn_idx, &bytes);
        }
    }

    /// Moves what HPACK saved into the figures.
    pub(in crate::shard) fn note_header_bytes(&mut self, conn_idx: usize) {
        let Some(session) = &mut self.conns[conn_idx].h2 else { return };
        let bytes = std::mem::take(&mut session.client.headers);
        let http2 = &mut self.pulse.snapshot.http2;
        http2.header_bytes_sent += bytes.sent;
        http2.header_bytes_sent_packed += bytes.sent_packed;
        http2.header_bytes_received += bytes.received;
        http2.header_bytes_received_packed += bytes.received_packed;
    }
}

impl Session {
    /// Whether anything waits to be written.
    pub(super) fn wants_write(&self) -> bool {
        !self.unsent.is_empty() || !self.pending.is_empty() || self.client.wants_write()
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

/// RFC 9113 4.1.
const FRAME_HEAD_BYTES: u64 = 9;
