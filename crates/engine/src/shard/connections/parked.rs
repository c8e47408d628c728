//! Connections that are kept and fall silent, in a compact form: a million of them cost little else than their sockets.
//!
//! A silent connection leaves its slot, with all that reading and writing needs, and gets one again when its peer sends something or its time
//! is over. Owns: the table of parked connections. Never: decides which are kept, and for how long. Parking itself is in `park`.

use crate::shard::connections::conn::Goodbye;
use crate::shard::schedule::waiter::SWEEP_NS_PER_CONNECTION;
use crate::sys::Fd;
use crate::tls::TlsStream;

/// Parked connections, and when the time of each is over.
#[derive(Default)]
pub(in crate::shard) struct ParkedTable {
    pub(super) places: Vec<Parked>,
    /// Apart from the places because all are looked at.
    pub(super) deadlines: Vec<u64>,
    pub(super) vacant: Vec<u32>,
    /// No deadline comes before this.
    pub(super) next_deadline_ns: u64,
    next_sweep_ns: u64,
}

/// A parked connection, or the place of one.
#[derive(Default)]
pub(super) struct Parked {
    /// Counts uses of the place, so that a late event of an earlier socket is recognised.
    pub(super) generation: u32,
    pub(super) origin_idx: u32,
    pub(super) socket: Option<Fd>,
    pub(super) failure_count: u16,
    /// It speaks WebSocket, and is between two messages.
    pub(super) is_websocket: bool,
    pub(super) ready_ns: u64,
    pub(super) session: ParkedSession,
}

/// What is left of a TLS session.
#[derive(Default)]
pub(super) enum ParkedSession {
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
        self.next_sweep_ns = now_ns + self.deadlines.len() as u64 * SWEEP_NS_PER_CONNECTION;
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
    pub(super) fn next_place(&mut self) -> (u32, u64) {
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

    pub(super) fn vacate(&mut self, place: u32) -> Parked {
        let own = &mut self.places[place as usize];
        let generation = own.generation.wrapping_add(1);
        self.deadlines[place as usize] = u64::MAX;
        self.vacant.push(place);
        std::mem::replace(own, Parked { generation, ..Parked::default() })
    }
}

/// Marks the tokens of parked connections: no slot has such a number.
pub(super) const PARKED: u32 = 1 << 31;

/// Places made at once at first.
const PLACES_AT_ONCE: usize = 256;
