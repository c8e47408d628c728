//! Reads HTTP/2 connections: one read, all frames in it.

use std::io;

use squall_measure::{Cause, Phase};
use squall_plan::limits::REFUSED_RETRY_COUNT_MAX;
use squall_wire::h1::Response;
use squall_wire::h2::{Event, Progress, StreamFailure};

use crate::shard::receive::Read1;
use crate::shard::{IoBuffers, Shard};
use crate::trouble::Trouble;

impl Shard {
    /// Reads a connection until its socket is empty, or others have their turn.
    pub(in crate::shard) fn receive_h2(&mut self, conn_idx: usize) {
        let generation = self.conns[conn_idx].generation;
        let body_bytes_max = self.body_bytes_max(conn_idx);
        self.io.sink.keep_body(conn_idx, body_bytes_max);
        let result = match self.conns[conn_idx].tls {
            None => self.read_plain_h2(conn_idx),
            Some(_) => self.read_tls_h2(conn_idx),
        };
        self.after_read(conn_idx, generation, result);
    }

    /// Decodes what came with the answer that made the connection one of HTTP/2: the first `bytes` of the read buffer.
    pub(in crate::shard) fn receive_first_h2(&mut self, conn_idx: usize, bytes: usize) {
        let generation = self.conns[conn_idx].generation;
        let result = self.decode_read(conn_idx, bytes);
        self.after_read(conn_idx, generation, result);
    }

    fn after_read(&mut self, conn_idx: usize, generation: u32, result: Result<(), Trouble>) {
        if !self.is_same(conn_idx, generation) {
            return;
        }
        self.note_header_bytes(conn_idx);
        match result {
            Err(trouble) => self.fail(conn_idx, &trouble),
            Ok(()) => {
                let session = self.conns[conn_idx].h2.as_mut();
                if session.is_some_and(|session| session.wants_write()) {
                    self.list_unsent(conn_idx);
                }
                self.close_when_over(conn_idx);
            }
        }
    }

    fn read_plain_h2(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        for _ in 0..READS_PER_TURN_MAX {
            let wanted = self.io.read.len();
            let how = self.answer_mode(conn_idx);
            let bytes = match self.recv_answer(conn_idx, wanted, how) {
                Ok(0) => return Err(self.closed_by_peer(conn_idx)),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Trouble::io(&error, Phase::Receiving)),
            };
            self.decode_read(conn_idx, bytes)?;
            let is_short = bytes < wanted;
            if !self.is_same(conn_idx, generation) || is_short && !self.conns[conn_idx].peer_closed {
                return Ok(());
            }
        }
        self.unfinished.push(conn_idx as u32);
        Ok(())
    }

    /// Decodes the first `bytes` of the read buffer.
    fn decode_read(&mut self, conn_idx: usize, bytes: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut begin = 0;
        while begin < bytes && self.is_same(conn_idx, generation) {
            let Some(session) = &mut self.conns[conn_idx].h2 else { return Ok(()) };
            session.heard_ns = self.now_ns;
            let IoBuffers { read, h2_head_cache, sink, .. } = &mut self.io;
            sink.begin(conn_idx);
            let progress = session.client.decode(h2_head_cache, &read[begin..bytes], sink);
            if let Ok(progress) = &progress {
                self.now_ns = self.io.time_of(self.now_ns, progress.consumed);
            }
            begin += self.on_h2_progress(conn_idx, progress)?;
        }
        Ok(())
    }

    fn read_tls_h2(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut is_short = false;
        for _ in 0..READS_PER_TURN_MAX {
            self.decode_plaintext_h2(conn_idx)?;
            if !self.is_same(conn_idx, generation) || is_short && !self.conns[conn_idx].peer_closed {
                return Ok(());
            }
            match self.read_tls(conn_idx, Phase::Receiving)? {
                None => return Ok(()),
                Some(Read1 { bytes: 0, .. }) => return Err(self.closed_by_peer(conn_idx)),
                Some(read) => is_short = read.is_short,
            }
        }
        self.unfinished.push(conn_idx as u32);
        Ok(())
    }

    /// Decodes all plaintext that the TLS session holds.
    fn decode_plaintext_h2(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        while self.is_same(conn_idx, generation) {
            let conn = &mut self.conns[conn_idx];
            let (Some(tls), Some(session)) = (&mut conn.tls, &mut conn.h2) else { return Ok(()) };
            let chunk = match tls.chunk() {
                Ok(Some([])) => return Err(self.closed_by_peer(conn_idx)),
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Trouble::tls(&error, Phase::Receiving)),
            };
            session.heard_ns = self.now_ns;
            let IoBuffers { h2_head_cache, sink, .. } = &mut self.io;
            sink.begin(conn_idx);
            let progress = session.client.decode(h2_head_cache, chunk, sink);
            if let Ok(progress) = &progress {
                tls.consume(progress.consumed);
                self.now_ns = self.io.time_of(self.now_ns, progress.consumed);
            }
            self.on_h2_progress(conn_idx, progress)?;
        }
        Ok(())
    }

    /// Follows what was decoded; returns how many bytes that were.
    fn on_h2_progress(
        &mut self,
        conn_idx: usize,
        progress: Result<Progress, squall_wire::h2::Error>,
    ) -> Result<usize, Trouble> {
        let progress = progress.map_err(|error| {
            self.write_goaway(conn_idx, error.code);
            Trouble::new(Cause::HttpProtocol, Phase::Receiving, error.to_string())
        })?;
        match progress.event {
            None => {}
            Some(Event::Received { slot, bytes, response }) => {
                self.on_received(conn_idx, slot, bytes, response);
            }
            Some(Event::Failed { slot, failure }) => self.fail_stream(conn_idx, slot, failure),
            Some(Event::Allowance) => self.list_idle_h2(conn_idx),
            Some(Event::GoingAway) => self.take_back_unprocessed(conn_idx),
        }
        Ok(progress.consumed)
    }

    fn on_received(&mut self, conn_idx: usize, slot: u32, bytes: u32, response: Option<Response>) {
        let place = self.stream_place(conn_idx, slot);
        let exchange = &mut self.exchanges[place];
        exchange.note_first_byte(self.now_ns);
        exchange.received_bytes += u64::from(bytes);
        let Some(response) = response else { return };
        let exchange = *exchange;
        let hop = self.conclude(conn_idx, slot, &exchange, &response);
        self.retire_when_due(conn_idx);
        self.go_on(conn_idx, hop);
    }

    /// The peer goes away: what it has not looked at is sent again on another connection, whatever its method (RFC 9113 6.8).
    fn take_back_unprocessed(&mut self, conn_idx: usize) {
        let mut again = Vec::new();
        while let Some(session) = &mut self.conns[conn_idx].h2
            && let Some(slot) = session.client.next_unprocessed()
        {
            session.pending.retain(|one| *one != slot);
            let code =
                session.client.goaway().map_or(squall_wire::h2::ErrorCode::NO_ERROR, |goaway| goaway.code);
            let exchange = self.exchanges[self.stream_place(conn_idx, slot)];
            if u32::from(exchange.retry_count) < REFUSED_RETRY_COUNT_MAX {
                again.push(exchange);
            } else {
                self.fail_stream(conn_idx, slot, StreamFailure::Unprocessed(code));
            }
        }
        self.send_again(conn_idx, again);
    }

    /// The peer allows more streams than before: those who wait for a connection may have them.
    fn list_idle_h2(&mut self, conn_idx: usize) {
        if self.has_room(conn_idx) && self.conns[conn_idx].in_flight() > 0 {
            self.list_idle(conn_idx);
        }
    }

    /// The peer has closed the connection; what it said before tells why.
    fn closed_by_peer(&self, conn_idx: usize) -> Trouble {
        let goaway = self.conns[conn_idx].h2.as_ref().and_then(|session| session.client.goaway());
        match goaway {
            None => Trouble::closed(Phase::Receiving),
            Some(goaway) => Trouble::new(
                Cause::ConnectionClosed,
                Phase::Receiving,
                format!("the server closed the connection after GOAWAY ({})", goaway.code),
            ),
        }
    }
}

/// Reads of one connection in one turn of the loop: a fast sender of large bodies must not make all others wait.
const READS_PER_TURN_MAX: u32 = 16;
