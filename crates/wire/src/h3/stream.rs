//! The requests of a connection, found by the ids of their streams without a search.
//!
//! A request's place is its number modulo the number of places, or the next one that is free: QUIC's streams are opened in order, so that a
//! number cannot be skipped as in HTTP/2. Only requests that meet a slow one cost a look more.

use super::control::Side;
use super::reader::Reader;
use crate::h1::RequestKind;
use crate::message::Incoming;

/// One place, and the request in it.
#[derive(Debug)]
pub(super) struct Stream {
    /// Of the request, from 0; its stream is four times that.
    pub(super) number: u64,
    pub(super) state: State,
    pub(super) message: Incoming,
    pub(super) reader: Reader,
    /// Bytes of the request's body that are sent, and that are to be.
    pub(super) sent_bytes: u64,
    pub(super) left_bytes: u64,
    /// What is left of the DATA frame whose head was handed out.
    pub(super) frame_left_bytes: u64,
    /// The request's last byte has not been handed out.
    pub(super) is_uploading: bool,
    /// There may be more of its body.
    pub(super) is_open: bool,
    /// The transport takes no more of it for now.
    pub(super) is_blocked: bool,
    /// The response is not wanted for now.
    pub(super) is_paused: bool,
    /// A field section that waits for the dynamic table, and what came after it.
    pub(super) held: Option<Box<Held>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Its request is not sent yet.
    Reserved,
    /// Its response is to come.
    Open,
}

/// What a stream that waits for the dynamic table has brought.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) section: Vec<u8>,
    pub(super) rest: Vec<u8>,
    pub(super) is_fin: bool,
    /// Insertions that it waits for, counted from the connection's beginning.
    pub(super) insert_count: u64,
}

#[derive(Debug)]
pub(super) struct Streams {
    places: Box<[Stream]>,
    /// Number of the next request to be started.
    pub(super) next_number: u64,
    /// Requests that are reserved or open.
    pub(super) count: u32,
    /// Those of them that are not sent yet.
    pub(super) reserved_count: u32,
}

impl Stream {
    fn free() -> Self {
        Self {
            number: 0,
            state: State::Free,
            message: Incoming::new(RequestKind::Other),
            reader: Reader::new(Side::Client),
            sent_bytes: 0,
            left_bytes: 0,
            frame_left_bytes: 0,
            is_uploading: false,
            is_open: false,
            is_blocked: false,
            is_paused: false,
            held: None,
        }
    }

    /// Begins anew; the reader keeps its buffer.
    fn reset(&mut self, state: State) {
        let mut reader = std::mem::replace(&mut self.reader, Reader::new(Side::Client));
        reader.reset();
        *self = Self { state, reader, ..Self::free() };
    }

    /// Whether a piece of the body could be handed out.
    pub(super) const fn has_chunk(&self) -> bool {
        !self.is_blocked && (self.left_bytes > 0 || !self.is_open)
    }

    pub(super) const fn id(&self) -> u64 {
        self.number << 2
    }
}

impl Streams {
    /// `count`: at least 1.
    pub(super) fn new(count: u32) -> Self {
        let places = (0..count.max(1).next_power_of_two()).map(|_| Stream::free()).collect();
        Self { places, next_number: 0, count: 0, reserved_count: 0 }
    }

    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.places[slot as usize]
    }

    pub(super) fn get(&self, slot: u32) -> &Stream {
        &self.places[slot as usize]
    }

    /// Takes a free place, the one of the request's number if possible. The caller has seen that one is free.
    pub(super) fn reserve(&mut self) -> Option<u32> {
        let number = self.next_number + u64::from(self.reserved_count);
        let slot = self.probe(number, |stream| stream.state == State::Free)?;
        self.at(slot).reset(State::Reserved);
        self.count += 1;
        self.reserved_count += 1;
        Some(slot)
    }

    /// A reserved request goes out.
    pub(super) fn open(&mut self, slot: u32) -> &mut Stream {
        let number = self.next_number;
        self.next_number += 1;
        self.reserved_count -= 1;
        let stream = self.at(slot);
        (stream.number, stream.state) = (number, State::Open);
        stream
    }

    /// The open request of a stream; `None`: it has ended, or never began.
    pub(super) fn find(&self, stream_id: u64) -> Option<u32> {
        let number = stream_id >> 2;
        self.probe(number, |stream| stream.number == number && stream.state == State::Open)
    }

    /// The requests whose responses are to come.
    pub(super) fn live(&self) -> impl Iterator<Item = &Stream> {
        self.places.iter().filter(|stream| stream.state == State::Open)
    }

    /// The request has ended.
    pub(super) fn free(&mut self, slot: u32) {
        self.reserved_count -= u32::from(self.get(slot).state == State::Reserved);
        self.at(slot).state = State::Free;
        self.count -= 1;
    }

    /// The places in use, those of the oldest requests first, then those that are not sent yet.
    pub(super) fn by_age(&self) -> Vec<u32> {
        let mut slots: Vec<u32> =
            (0..self.places.len() as u32).filter(|slot| self.get(*slot).state != State::Free).collect();
        slots.sort_unstable_by_key(|slot| {
            let stream = self.get(*slot);
            (stream.state == State::Reserved, stream.number)
        });
        slots
    }

    fn probe(&self, number: u64, is_it: impl Fn(&Stream) -> bool) -> Option<u32> {
        let mask = self.places.len() - 1;
        let first = number as usize & mask;
        (first..=first + mask).map(|at| at & mask).find(|at| is_it(&self.places[*at])).map(|at| at as u32)
    }
}
