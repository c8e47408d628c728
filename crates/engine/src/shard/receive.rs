//! Reads responses: no more often than needed, and bodies that nobody reads are dropped inside the kernel.

use std::io::{self, Read};
use std::os::fd::AsFd;

use squall_measure::Phase;
use squall_wire::h1::{HeadView, Response, Sink};

use super::capture::Captures;
use super::conn::State;
use super::stamps::ReadStamps;
use super::{IoBuffers, Shard};
use crate::sys::{Clock, Fd, Recv, monotonic_ns, peek_stamp, recv, recv_stamped};
use crate::trouble::Trouble;

/// Hears responses: remembers the `Location` of each redirect until its response is whole, and keeps what somebody reads.
#[derive(Debug)]
pub(super) struct ResponseSink {
    is_followed: bool,
    /// Connection and stream that are being read.
    at: (usize, u32),
    locations: Vec<((usize, u32), String)>,
    pub(super) captures: Captures,
    /// What each connection's present response holds, where a driver wants it.
    responses: Option<Vec<KeptResponse>>,
    /// Bytes of all their bodies, and the most of this shard.
    held_bytes: usize,
    held_bytes_max: usize,
}

/// A response as it came.
#[derive(Debug, Default)]
struct KeptResponse {
    head: Vec<u8>,
    body: Vec<u8>,
    /// 0: nobody reads it.
    body_bytes_max: usize,
    is_too_large: bool,
}

impl ResponseSink {
    /// `is_followed`: whether anybody will ask.
    pub(super) fn new(is_followed: bool) -> Self {
        Self {
            is_followed,
            at: (0, 0),
            locations: Vec::new(),
            captures: Captures::default(),
            responses: None,
            held_bytes: 0,
            held_bytes_max: 0,
        }
    }

    /// Keeps responses for a driver, as many bytes of them as this.
    pub(super) fn for_driver(held_bytes_max: usize) -> Self {
        Self { responses: Some(Vec::new()), held_bytes_max, ..Self::new(false) }
    }

    /// There is one more connection.
    pub(super) fn add_conn(&mut self) {
        if let Some(responses) = &mut self.responses {
            responses.push(KeptResponse::default());
        }
    }

    /// How much is wanted of the body of what this connection reads next.
    pub(super) fn keep_body(&mut self, conn_idx: usize, body_bytes_max: usize) {
        if let Some(responses) = &mut self.responses {
            responses[conn_idx].body_bytes_max = body_bytes_max;
        }
    }

    /// Whether the body of the response that this connection reads was given up.
    pub(super) fn is_too_large(&self, conn_idx: usize) -> bool {
        let response = self.responses.as_ref().and_then(|responses| responses.get(conn_idx));
        response.is_some_and(|response| response.is_too_large)
    }

    /// Takes head and body of the response that this connection has read.
    pub(super) fn take_response(&mut self, conn_idx: usize) -> (Vec<u8>, Vec<u8>) {
        let response = self.responses.as_mut().and_then(|responses| responses.get_mut(conn_idx));
        let Some(response) = response else { return Default::default() };
        self.held_bytes -= response.body.len();
        response.is_too_large = false;
        (std::mem::take(&mut response.head), std::mem::take(&mut response.body))
    }

    /// What is read now comes from this connection.
    pub(super) fn begin(&mut self, conn_idx: usize) {
        self.at = (conn_idx, 0);
    }

    /// The location of the response in this place; 0 in HTTP/1.1.
    pub(super) fn take(&mut self, conn_idx: usize, slot: u32) -> Option<String> {
        let idx = self.locations.iter().position(|(at, _)| *at == (conn_idx, slot))?;
        Some(self.locations.swap_remove(idx).1)
    }

    /// Of the answers that come in this place, only the last one's counts: others were of no redirect, or given up.
    fn note_location(&mut self, head: &HeadView<'_>) {
        let at = self.at;
        self.locations.retain(|(other, _)| *other != at);
        if (300..400).contains(&head.status())
            && let Some(value) = head.field("location")
        {
            self.locations.push((at, String::from_utf8_lossy(value).into_owned()));
        }
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, conn_idx: usize) {
        self.locations.retain(|((at, _), _)| *at != conn_idx);
        self.captures.forget(conn_idx);
        drop(self.take_response(conn_idx));
    }
}

impl Sink for ResponseSink {
    fn head(&mut self, head: &HeadView<'_>) {
        if self.is_followed {
            self.note_location(head);
        }
        self.captures.head(self.at, head);
        if let Some(responses) = &mut self.responses {
            let response = &mut responses[self.at.0];
            self.held_bytes -= response.body.len();
            response.is_too_large = false;
            response.head.clear();
            response.body.clear();
            response.head.extend_from_slice(head.raw());
        }
    }

    fn data(&mut self, bytes: &[u8]) {
        self.captures.data(self.at, bytes);
        let Some(responses) = &mut self.responses else { return };
        let response = &mut responses[self.at.0];
        if response.body_bytes_max == 0 || response.is_too_large {
            return;
        }
        let has_room = response.body.len() + bytes.len() <= response.body_bytes_max
            && self.held_bytes + bytes.len() <= self.held_bytes_max;
        if has_room {
            self.held_bytes += bytes.len();
            response.body.extend_from_slice(bytes);
        } else {
            self.held_bytes -= response.body.len();
            (response.body, response.is_too_large) = (Vec::new(), true);
        }
    }

    fn stream(&mut self, slot: u32) {
        self.at.1 = slot;
    }

    fn wants_heads(&self) -> bool {
        self.is_followed || !self.captures.is_empty() || self.responses.is_some()
    }
}

/// What one read brought.
pub(super) struct Read1 {
    /// 0: the peer has closed. Those of a TLS session are encrypted.
    pub(super) bytes: usize,
    /// Less than was asked for: the socket is empty, unless the peer's close follows.
    pub(super) is_short: bool,
    /// The bytes were dropped inside the kernel.
    is_discarded: bool,
}

impl Shard {
    /// Reads a connection until it owes nothing, or the socket is empty.
    pub(super) fn receive(&mut self, conn_idx: usize) {
        let result = match (&self.conns[conn_idx].h2, &self.conns[conn_idx].tls) {
            (Some(_), _) => return self.receive_h2(conn_idx),
            (None, None) => self.receive_plain(conn_idx),
            (None, Some(_)) => self.receive_tls(conn_idx),
        };
        if let Err(trouble) = result {
            self.fail(conn_idx, &trouble);
        }
        let is_mid_response =
            self.conns[conn_idx].ring.len > 0 && self.exchanges[self.front(conn_idx)].first_ns != 0;
        self.waiter.is_mid_response |= is_mid_response;
    }

    fn receive_plain(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        for _ in 0..READS_PER_TURN_MAX {
            if !self.is_same(conn_idx, generation) {
                return Ok(());
            }
            let Some(read) = self.read_plain(conn_idx)? else { return Ok(()) };
            if read.bytes == 0 {
                return self.on_peer_close(conn_idx);
            }
            if read.is_discarded {
                self.skip_body(conn_idx, read.bytes);
            } else {
                self.decode(conn_idx, read.bytes)?;
            }
            let conn = &self.conns[conn_idx];
            if !conn.peer_closed && (read.is_short || conn.ring.len == 0) {
                return Ok(());
            }
        }
        self.unfinished.push(conn_idx as u32);
        Ok(())
    }

    /// One read, with its time in `now_ns`; `None`: the socket is empty.
    fn read_plain(&mut self, conn_idx: usize) -> Result<Option<Read1>, Trouble> {
        let how = self.answer_mode(conn_idx);
        let skippable = self.conns[conn_idx].decoder.skippable_bytes() as usize;
        let body_bytes_max = self.body_bytes_max(conn_idx);
        self.io.sink.keep_body(conn_idx, body_bytes_max);
        let keeps_body = body_bytes_max > 0;
        let conn = &self.conns[conn_idx];
        let is_wanted = keeps_body || self.io.sink.captures.has((conn_idx, 0));
        let is_discarded = !is_wanted && skippable >= DISCARD_BYTES_MIN;
        let (wanted, how) = if is_discarded {
            (skippable.min(self.io.discard.len()), Recv::Drop)
        } else if !keeps_body && conn.expects_large_body && conn.decoder.is_idle() {
            (HEAD_FIRST_BYTES, Recv::Take)
        } else {
            (self.io.read.len(), how)
        };
        match self.recv_answer(conn_idx, wanted, how) {
            Ok(bytes) => Ok(Some(Read1 { bytes, is_short: bytes < wanted, is_discarded })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Trouble::io(&error, Phase::Receiving)),
        }
    }

    fn skip_body(&mut self, conn_idx: usize, bytes: usize) {
        let place = self.front(conn_idx);
        self.exchanges[place].received_bytes += bytes as u64;
        if let Some(response) = self.conns[conn_idx].decoder.skip(bytes as u64) {
            self.complete(conn_idx, response);
        }
    }

    /// Decodes the first `bytes` of the read buffer: all responses in it.
    fn decode(&mut self, conn_idx: usize, bytes: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut begin = 0;
        while begin < bytes && self.is_same(conn_idx, generation) {
            if self.conns[conn_idx].ring.sent_count == 0 && !self.is_front_begun(conn_idx) {
                return self.on_unasked(conn_idx);
            }
            let place = self.front(conn_idx);
            self.exchanges[place].note_first_byte(self.io.time_of(self.now_ns, 0));
            let conn = &mut self.conns[conn_idx];
            let IoBuffers { read, head_cache, sink, .. } = &mut self.io;
            sink.begin(conn_idx);
            let progress = conn.decoder.decode(head_cache, &read[begin..bytes], sink);
            let progress = progress.map_err(|error| Trouble::decode(&error, Phase::Receiving))?;
            begin += progress.consumed;
            self.on_progress(conn_idx, progress.consumed, progress.response);
        }
        Ok(())
    }

    fn on_progress(&mut self, conn_idx: usize, consumed: usize, response: Option<Response>) {
        self.now_ns = self.io.time_of(self.now_ns, consumed);
        let place = self.front(conn_idx);
        self.exchanges[place].received_bytes += consumed as u64;
        if let Some(response) = response {
            self.complete(conn_idx, response);
        }
    }

    fn receive_tls(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        let mut is_short = false;
        for _ in 0..READS_PER_TURN_MAX {
            self.decode_plaintext(conn_idx)?;
            if !self.is_same(conn_idx, generation) {
                return Ok(());
            }
            let conn = &self.conns[conn_idx];
            if !conn.peer_closed && (is_short || conn.ring.len == 0) {
                return Ok(());
            }
            match self.read_tls(conn_idx, Phase::Receiving)? {
                None => return Ok(()),
                Some(Read1 { bytes: 0, .. }) => return self.on_cut_off(conn_idx),
                Some(read) => is_short = read.is_short,
            }
        }
        self.unfinished.push(conn_idx as u32);
        Ok(())
    }

    /// Reads and decrypts once; `None`: the socket is empty. Also answers what the peer asks of the session (key updates).
    pub(super) fn read_tls(&mut self, conn_idx: usize, phase: Phase) -> Result<Option<Read1>, Trouble> {
        let how = self.answer_mode(conn_idx);
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(socket)) = (&mut conn.tls, &conn.socket) else { return Ok(None) };
        let clock = self.io.stamps();
        let stamps = &mut self.io.read_stamps;
        let mut reader = SocketReader { socket, how, clock, stamps, now_ns: &mut self.now_ns, wanted: 0 };
        let bytes = match session.read_tls(&mut reader) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(Trouble::io(&error, phase)),
        };
        let wanted = reader.wanted;
        self.note_answer(conn_idx, how, bytes, wanted);
        let Some(session) = &mut self.conns[conn_idx].tls else { return Ok(None) };
        match session.process() {
            Ok(plain_bytes) => self.io.read_stamps.begin(self.now_ns, bytes, plain_bytes),
            Err(error) => {
                // The alert that tells the peer is sent where that is possible; the failure is ours to count either way.
                let _ = self.flush_tls(conn_idx);
                return Err(Trouble::tls(&error, phase));
            }
        }
        self.flush_tls(conn_idx).map_err(|error| Trouble::io(&error, phase))?;
        Ok(Some(Read1 { bytes, is_short: bytes < wanted, is_discarded: false }))
    }

    /// Decodes all plaintext that the TLS session holds.
    fn decode_plaintext(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        let body_bytes_max = self.body_bytes_max(conn_idx);
        self.io.sink.keep_body(conn_idx, body_bytes_max);
        let generation = self.conns[conn_idx].generation;
        while self.is_same(conn_idx, generation) {
            let is_begun = self.conns[conn_idx].ring.sent_count > 0 || self.is_front_begun(conn_idx);
            let place = self.front(conn_idx);
            let conn = &mut self.conns[conn_idx];
            let Some(session) = &mut conn.tls else { return Ok(()) };
            let chunk = match session.chunk() {
                Ok(Some([])) => return self.on_peer_close(conn_idx),
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Trouble::tls(&error, Phase::Receiving)),
            };
            if !is_begun {
                return self.on_unasked(conn_idx);
            }
            self.exchanges[place].note_first_byte(self.io.time_of(self.now_ns, 0));
            let IoBuffers { head_cache, sink, .. } = &mut self.io;
            sink.begin(conn_idx);
            let progress = conn.decoder.decode(head_cache, chunk, sink);
            let progress = progress.map_err(|error| Trouble::decode(&error, Phase::Receiving))?;
            session.consume(progress.consumed);
            self.on_progress(conn_idx, progress.consumed, progress.response);
        }
        Ok(())
    }

    /// The peer has closed its side: that may end a response, and always ends the connection.
    fn on_peer_close(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        if let Some(response) = self.end_of_stream(conn_idx)? {
            self.complete(conn_idx, response);
        }
        Ok(())
    }

    /// The connection ended without TLS's own word for it, so nobody knows whether a body that lasts until the close is
    /// whole (RFC 9112 9.8).
    fn on_cut_off(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        match self.end_of_stream(conn_idx)? {
            None => Ok(()),
            Some(_) => Err(Trouble::closed(Phase::Receiving)),
        }
    }

    /// The response that the end of the stream completes; `None`: none was owed, and the connection is closed.
    fn end_of_stream(&mut self, conn_idx: usize) -> Result<Option<Response>, Trouble> {
        if self.conns[conn_idx].ring.len == 0 {
            self.close(conn_idx);
            return Ok(None);
        }
        if !self.is_front_begun(conn_idx) {
            return Err(Trouble::closed(Phase::Sending));
        }
        let response = self.conns[conn_idx].decoder.handle_eof();
        response.map(Some).map_err(|error| Trouble::decode(&error, Phase::Receiving))
    }

    /// Bytes that nobody asked for (such as a 408 before a close): the connection is not used again.
    fn on_unasked(&mut self, conn_idx: usize) -> Result<(), Trouble> {
        if self.conns[conn_idx].ring.len == 0 {
            self.close(conn_idx);
            return Ok(());
        }
        Err(Trouble::closed(Phase::Sending))
    }

    /// Whether the oldest request has at least begun to be written.
    fn is_front_begun(&self, conn_idx: usize) -> bool {
        self.conns[conn_idx].ring.len > 0 && self.exchanges[self.front(conn_idx)].start_ns != 0
    }

    /// Place of a connection's oldest request.
    pub(super) fn front(&self, conn_idx: usize) -> usize {
        self.conns[conn_idx].ring.place(conn_idx, self.limits.stride, 0)
    }

    /// Whether the slot still holds the connection that it held.
    pub(super) fn is_same(&self, conn_idx: usize, generation: u32) -> bool {
        self.conns[conn_idx].generation == generation && self.conns[conn_idx].state == State::Open
    }
}

impl IoBuffers {
    /// Reads into the shared buffer, or drops what is there. `now_ns` becomes the present, or with stamps the time at which the data
    /// came.
    pub(super) fn recv(
        &mut self,
        socket: &Fd,
        wanted: usize,
        how: Recv,
        now_ns: &mut u64,
    ) -> io::Result<usize> {
        let clock = self.stamps();
        let buf = if how == Recv::Drop { &mut self.discard } else { &mut self.read };
        let bytes = recv_at(clock, socket, &mut buf[..wanted], how, &mut self.read_stamps, now_ns)?;
        if clock.is_some() {
            self.read_stamps.begin(*now_ns, bytes, bytes);
        }
        Ok(bytes)
    }

    /// When the next `decoded_bytes` of the present read came: `now_ns`, unless it is stamped and holds several answers.
    pub(super) fn time_of(&mut self, now_ns: u64, decoded_bytes: usize) -> u64 {
        self.stamps().map_or(now_ns, |_| self.read_stamps.advance(decoded_bytes))
    }

    pub(super) fn stamps(&self) -> Option<Clock> {
        self.stamp_clock.filter(|_| self.reads_stamps && !self.has_stepped)
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
    let first_ns = if stamps.wants_first() { peek_stamp(socket.as_fd()) } else { None };
    let read = recv_stamped(socket.as_fd(), buf, how)?;
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
