//! Connections that are kept and fall silent, in a compact form: a million of them cost little else than their sockets.
//!
//! A silent connection leaves its slot, with all that reading and writing needs, and gets one again when its peer sends something or its time
//! is over. Owns: the table of parked connections. Never: decides which are kept, and for how long.

use std::io;

use squall_plan::CloseMode;

use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Conn, ConnState, Goodbye, SessionStage};
use crate::shard::recorder::ShardRecorder;
use crate::sys::Fd;
use crate::tls::TlsStream;

/// Parked connections, and when the time of each is over.
#[derive(Default)]
pub(in crate::shard) struct ParkedTable {
    places: Vec<Parked>,
    /// Apart from the places because all are looked at.
    deadlines: Vec<u64>,
    vacant: Vec<u32>,
    /// No deadline comes before this.
    next_deadline_ns: u64,
    next_sweep_ns: u64,
}

/// A parked connection, or the place of one.
#[derive(Default)]
struct Parked {
    /// Counts uses of the place, so that a late event of an earlier socket is recognised.
    generation: u32,
    origin_idx: u32,
    socket: Option<Fd>,
    failure_count: u16,
    ready_ns: u64,
    session: ParkedSession,
}

/// What is left of a TLS session.
#[derive(Default)]
enum ParkedSession {
    #[default]
    None,
    /// Only what closes it: here and not on the heap, where it would keep the pages of its handshake from being used again.
    Goodbye(Goodbye),
    Whole(Box<TlsStream>),
}

impl ParkedTable {
    /// How many connections are parked.
    pub(in crate::shard) fn count(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// How many places were made.
    #[cfg(test)]
    pub(in crate::shard) fn place_count(&self) -> usize {
        self.places.len()
    }

    /// Whether any has a time that will be over.
    pub(in crate::shard) fn has_deadlines(&self) -> bool {
        self.next_deadline_ns < u64::MAX && self.count() > 0
    }

    /// Appends those whose time is over. Looking at all of them is kept to a hundredth of a core.
    pub(in crate::shard) fn take_due(&mut self, now_ns: u64, due: &mut Vec<u32>) {
        if now_ns < self.next_sweep_ns || now_ns < self.next_deadline_ns {
            return;
        }
        self.next_sweep_ns = now_ns + self.deadlines.len() as u64 * SWEEP_NS_PER_PLACE;
        self.next_deadline_ns = u64::MAX;
        for (place, deadline_ns) in self.deadlines.iter_mut().enumerate() {
            if now_ns >= *deadline_ns {
                *deadline_ns = u64::MAX;
                due.push(place as u32);
            } else {
                self.next_deadline_ns = self.next_deadline_ns.min(*deadline_ns);
            }
        }
    }

    /// All that are parked.
    pub(in crate::shard) fn places(&self) -> Vec<u32> {
        let is_taken = |place: &u32| self.places[*place as usize].socket.is_some();
        (0..self.places.len() as u32).filter(is_taken).collect()
    }

    /// A place for one more, and the token of its socket.
    fn next_place(&mut self) -> (u32, u64) {
        let place = self.vacant.pop().unwrap_or_else(|| {
            if self.places.len() == self.places.capacity() {
                // Doubling would keep twice of what a million connections need.
                let more = (self.places.len() / 8).max(PLACES_AT_ONCE);
                self.places.reserve_exact(more);
                self.deadlines.reserve_exact(more);
            }
            self.places.push(Parked::default());
            self.deadlines.push(u64::MAX);
            self.places.len() as u32 - 1
        });
        let generation = self.places[place as usize].generation;
        (place, u64::from(generation) << 32 | u64::from(PARKED | place))
    }

    fn vacate(&mut self, place: u32) -> Parked {
        let own = &mut self.places[place as usize];
        let generation = own.generation.wrapping_add(1);
        self.deadlines[place as usize] = u64::MAX;
        self.vacant.push(place);
        std::mem::replace(own, Parked { generation, ..Parked::default() })
    }
}

impl Connections {
    /// The parked connection that an event is about; `None`: it is about one that was there before.
    pub(in crate::shard) fn parked_place(&self, token: u64) -> Option<u32> {
        let place = token as u32 & !PARKED;
        let parked = self.parked.places.get(place as usize)?;
        (u64::from(parked.generation) == token >> 32 && parked.socket.is_some()).then_some(place)
    }

    /// Whether a kept connection has nothing to send, and nothing to read that has come already.
    fn is_silent(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        let has_plain = conn.tls.as_ref().is_some_and(|tls| !matches!(tls.chunk(), Ok(None)));
        conn.client.is_none() && !conn.wants_write() && !has_plain
    }

    /// Parks a kept connection, if it is silent; its slot is free then. `drops_session`: nothing will be sent through its TLS session.
    pub(in crate::shard) fn park(&mut self, conn_idx: usize, drops_session: bool) -> io::Result<()> {
        if !self.is_silent(conn_idx) {
            return Ok(());
        }
        self.drop_peeked(conn_idx);
        let (place, token) = self.parked.next_place();
        let conn = &mut self.conns[conn_idx];
        if let Some(socket) = &conn.socket
            && let Err(error) = self.poller.rewatch(socket, token)
        {
            self.parked.vacant.push(place);
            return Err(error);
        }
        let vacated = conn.vacated();
        let Conn { socket, tls, origin_idx, cold, .. } = std::mem::replace(conn, vacated);
        let goodbye = cold.goodbye.map_or(ParkedSession::None, ParkedSession::Goodbye);
        let session = match tls {
            None => goodbye,
            Some(mut session) if drops_session => {
                let record = (self.limits.close == CloseMode::Notify).then(|| sealed_goodbye(&mut session));
                record.flatten().map_or(ParkedSession::None, ParkedSession::Goodbye)
            }
            Some(mut session) => {
                session.shed_buffers();
                ParkedSession::Whole(session)
            }
        };
        let parked = &mut self.parked.places[place as usize];
        let (failure_count, ready_ns) = (cold.failure_count as u16, cold.ready_ns);
        *parked = Parked { origin_idx, socket, failure_count, ready_ns, session, ..std::mem::take(parked) };
        self.parked.deadlines[place as usize] = self.deadlines[conn_idx];
        self.parked.next_deadline_ns = self.parked.next_deadline_ns.min(self.deadlines[conn_idx]);
        self.end_rest(conn_idx);
        Ok(())
    }

    /// A parked connection gets a slot again; [`rewatch`](Self::rewatch) is to follow, unless it is to be closed.
    pub(in crate::shard) fn restore(&mut self, recorder: &mut ShardRecorder, place: u32) -> usize {
        let deadline_ns = self.parked.deadlines[place as usize];
        let Parked { origin_idx, socket, failure_count, ready_ns, session, .. } = self.parked.vacate(place);
        let conn_idx = self.free_slot(recorder);
        self.deadlines[conn_idx] = deadline_ns;
        let conn = &mut self.conns[conn_idx];
        conn.generation = conn.generation.wrapping_add(1);
        (conn.state, conn.origin_idx, conn.socket) = (ConnState::Open, origin_idx, socket);
        (conn.cold.stage, conn.cold.is_reopening) = (SessionStage::Kept, true);
        (conn.cold.failure_count, conn.cold.ready_ns) = (failure_count.into(), ready_ns);
        match session {
            ParkedSession::None => {}
            ParkedSession::Goodbye(goodbye) => conn.cold.goodbye = Some(goodbye),
            ParkedSession::Whole(session) => conn.tls = Some(session),
        }
        conn_idx
    }

    /// Events of a connection's socket are its own again.
    pub(in crate::shard) fn rewatch(&self, conn_idx: usize) -> io::Result<()> {
        let conn = &self.conns[conn_idx];
        conn.socket.as_ref().map_or(Ok(()), |socket| self.poller.rewatch(socket, conn.token(conn_idx)))
    }

    /// Whether it is a connection that is kept for its own sake.
    pub(in crate::shard) fn is_kept(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        conn.state == ConnState::Open && conn.cold.stage == SessionStage::Kept
    }

    /// Whether all connections are parked, and none has a time that will be over.
    pub(in crate::shard) fn are_all_silent(&self) -> bool {
        self.pools[0].vacant.len() == self.conns.len() && !self.parked.has_deadlines()
    }

    /// The run is over: what is parked is closed.
    pub(in crate::shard) fn part_with_parked(&mut self, recorder: &mut ShardRecorder) {
        for place in self.parked.places() {
            let conn_idx = self.restore(recorder, place);
            self.part(recorder, conn_idx);
            self.vacate(recorder, conn_idx);
        }
    }

    /// A slot without a connection, whatever pools allow: a load of connections counts them itself.
    pub(in crate::shard) fn free_slot(&mut self, recorder: &mut ShardRecorder) -> usize {
        match self.pools[0].vacant.pop() {
            Some(conn_idx) => conn_idx as usize,
            None => self.push_slot(recorder, 0),
        }
    }
}

fn sealed_goodbye(session: &mut TlsStream) -> Option<Goodbye> {
    let mut record = Vec::new();
    session.send_close_notify();
    session.write_tls(&mut record).ok()?;
    Goodbye::new(&record)
}

/// Marks the tokens of parked connections: no slot has such a number.
const PARKED: u32 = 1 << 31;

/// Places made at once at first.
const PLACES_AT_ONCE: usize = 256;

/// How long the next look at all deadlines waits for each place: about a hundred times what it takes.
const SWEEP_NS_PER_PLACE: u64 = 100;

const _: () = assert!(size_of::<Parked>() <= 64 || cfg!(test));
