//! Writes requests: prepared bytes, then the body file where there is one, as far as the socket takes them.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use squall_measure::{Cause, Phase};

use super::conn::{Exchange, State};
use super::{Shard, request_of};
use crate::prepare::PreparedRequest;
use crate::sys::{Fd, monotonic_ns, send, send_file};
use crate::tls::TlsStream;
use crate::trouble::Trouble;

/// How far a request got.
enum Written {
    Whole,
    /// The socket takes no more for now.
    Blocked,
    /// The socket would take more, but other connections have their turn.
    Unfinished,
}

impl Shard {
    /// Writes every request of a connection that is not written yet.
    pub(super) fn send(&mut self, conn_idx: usize) {
        while self.conns[conn_idx].state == State::Open {
            let ring = self.conns[conn_idx].ring;
            if ring.sent_count == ring.len {
                return;
            }
            let place = ring.place(conn_idx, self.limits.stride, ring.sent_count);
            if self.exchanges[place].start_ns == 0 {
                self.begin_exchange(conn_idx, place);
            }
            match self.write_request(conn_idx, place) {
                Ok(Written::Whole) => {
                    self.now_ns = monotonic_ns();
                    self.exchanges[place].sent_ns = self.now_ns;
                    self.exchanges[place].sent_bytes = self.conns[conn_idx].write_offset;
                    self.conns[conn_idx].ring.sent_count += 1;
                    self.conns[conn_idx].write_offset = 0;
                }
                Ok(Written::Blocked) => return,
                Ok(Written::Unfinished) => return self.unfinished.push(conn_idx as u32),
                Err(trouble) => return self.fail_after_reading(conn_idx, &trouble),
            }
        }
    }

    fn begin_exchange(&mut self, conn_idx: usize, place: usize) {
        self.exchanges[place].start_ns = self.now_ns;
        if self.conns[conn_idx].ring.sent_count == 0 {
            let kind = self.request(self.exchanges[place].request).kind;
            self.conns[conn_idx].decoder.begin(kind);
            self.deadlines[conn_idx] = self.deadline_of(&self.exchanges[place]);
        }
        let Exchange { request, is_warmup, .. } = self.exchanges[place];
        self.begin_recorded((conn_idx, 0), request, is_warmup);
        if !self.exchanges[place].is_first {
            self.pulse.snapshot.connections_reused += u64::from(!self.exchanges[place].is_warmup);
        }
    }

    fn write_request(&mut self, conn_idx: usize, place: usize) -> Result<Written, Trouble> {
        let id = self.exchanges[place].request;
        let request = request_of(&self.prepared, &self.dynamic, id);
        let conn = &mut self.conns[conn_idx];
        let Some(socket) = &conn.socket else { return Ok(Written::Blocked) };
        let mut writer = Writer { socket, request, offset: &mut conn.write_offset, wire_bytes: 0 };
        let written = match &mut conn.tls {
            None => writer.write_plain(),
            Some(session) => writer.write_tls(session, &mut self.io.read),
        };
        self.pulse.snapshot.wire_bytes_sent += writer.wire_bytes;
        written
    }

    /// A server may answer and close before it has read the whole request: its answer counts, not our broken pipe.
    fn fail_after_reading(&mut self, conn_idx: usize, trouble: &Trouble) {
        let generation = self.conns[conn_idx].generation;
        if trouble.cause != Cause::BodyFile {
            self.receive(conn_idx);
        }
        let conn = &self.conns[conn_idx];
        if conn.generation == generation && conn.state == State::Open {
            self.fail(conn_idx, trouble);
        }
    }

    /// Writes what the TLS session has ready; what the socket does not take now goes later.
    pub(super) fn flush_tls(&mut self, conn_idx: usize) -> io::Result<()> {
        let conn = &mut self.conns[conn_idx];
        let (Some(session), Some(socket)) = (&mut conn.tls, &conn.socket) else { return Ok(()) };
        let mut wire_bytes = 0;
        let result = flush(session, socket, &mut wire_bytes);
        self.pulse.snapshot.wire_bytes_sent += wire_bytes;
        result.map(drop)
    }
}

/// One request on its way to one socket.
struct Writer<'a> {
    socket: &'a Fd,
    request: &'a PreparedRequest,
    /// Bytes of the request that are written, or taken over by the TLS session.
    offset: &'a mut u64,
    wire_bytes: u64,
}

impl Writer<'_> {
    fn write_plain(&mut self) -> Result<Written, Trouble> {
        let total = self.request.total_bytes();
        for _ in 0..PARTS_PER_TURN_MAX {
            if *self.offset >= total {
                return Ok(Written::Whole);
            }
            let count = match self.write_plain_part() {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Written::Blocked),
                Err(error) => return Err(Trouble::io(&error, Phase::Sending)),
            };
            if count == 0 {
                return Err(file_shrank());
            }
            *self.offset += count as u64;
            self.wire_bytes += count as u64;
        }
        Ok(if *self.offset >= total { Written::Whole } else { Written::Unfinished })
    }

    fn write_plain_part(&self) -> io::Result<usize> {
        let in_memory = self.request.bytes.len() as u64;
        match &self.request.file {
            Some(body) if *self.offset >= in_memory => {
                let at = *self.offset - in_memory;
                send_file(self.socket, &body.file, at, body.bytes - at)
            }
            body => send(self.socket, &self.request.bytes[*self.offset as usize..], body.is_some()),
        }
    }

    fn write_tls(&mut self, session: &mut TlsStream, scratch: &mut [u8]) -> Result<Written, Trouble> {
        let total = self.request.total_bytes();
        for _ in 0..PARTS_PER_TURN_MAX {
            while *self.offset < total {
                let count = self.encrypt_part(session, scratch)?;
                *self.offset += count as u64;
                if count == 0 {
                    break;
                }
            }
            let is_flushed = flush(session, self.socket, &mut self.wire_bytes)
                .map_err(|error| Trouble::io(&error, Phase::Sending))?;
            match (is_flushed, *self.offset < total) {
                (true, false) => return Ok(Written::Whole),
                (true, true) => {}
                (false, _) => return Ok(Written::Blocked),
            }
        }
        Ok(Written::Unfinished)
    }

    /// Gives the TLS session more to encrypt; 0: its buffer is full.
    fn encrypt_part(&self, session: &mut TlsStream, scratch: &mut [u8]) -> Result<usize, Trouble> {
        let in_memory = self.request.bytes.len() as u64;
        let part = match &self.request.file {
            Some(body) if *self.offset >= in_memory => {
                let at = *self.offset - in_memory;
                let wanted = (body.bytes - at).min(TLS_PART_BYTES) as usize;
                match body.file.read_at(&mut scratch[..wanted], at) {
                    Ok(0) => return Err(file_shrank()),
                    Ok(count) => &scratch[..count],
                    Err(error) => {
                        return Err(Trouble::new(Cause::BodyFile, Phase::Sending, error.to_string()));
                    }
                }
            }
            _ => &self.request.bytes[*self.offset as usize..],
        };
        session.write(part).map_err(|error| Trouble::tls(&error, Phase::Sending))
    }
}

fn file_shrank() -> Trouble {
    Trouble::new(Cause::BodyFile, Phase::Sending, "the body file became shorter during the run".to_owned())
}

/// Writes the session's ready records; true when none is left.
pub(super) fn flush(session: &mut TlsStream, socket: &Fd, wire_bytes: &mut u64) -> io::Result<bool> {
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

/// Parts (of at most 1 MiB plain, 64 KiB in TLS) of one request written in one turn of the loop.
const PARTS_PER_TURN_MAX: u32 = 16;

/// A TLS record's worth of a body file.
const TLS_PART_BYTES: u64 = 16 * 1024;
