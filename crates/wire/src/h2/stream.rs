//! The streams of a connection, found by their ids without a search.
//!
//! A stream's place is its number modulo the number of places. When that place is still taken by a slow stream, the number is
//! skipped, which the RFC allows (9113 5.1.1): ids need only rise.

use super::frame::STREAM_ID_MAX;
use crate::h1::RequestKind;
use crate::message::Incoming;

/// One place, and the stream in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) state: State,
    pub(super) message: Incoming,
    /// What the peer may still send.
    pub(super) receive_window: u32,
    /// What we may still send; settings can make it negative (RFC 9113 6.9.2).
    pub(super) send_window: i32,
    /// Bytes of the request's body that are sent, and that are to be.
    pub(super) sent_bytes: u64,
    pub(super) left_bytes: u64,
    /// The request's last frame has not been handed out.
    pub(super) is_uploading: bool,
    /// There may be more of its body.
    pub(super) is_open: bool,
    /// The response is not wanted for now.
    pub(super) is_paused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Its id is given; its request is not sent yet.
    Reserved,
    /// The response's head is to come.
    Head,
    /// The response's body or trailers are to come.
    Body,
    /// We have reset it: what is still on its way is ignored.
    Reset,
}

#[derive(Debug)]
pub(super) struct Streams {
    places: Box<[Stream]>,
    next_id: u32,
    /// Streams that are reserved or open.
    pub(super) count: u32,
    /// Those of them whose request is not sent yet.
    reserved_count: u32,
    /// The highest id that we have reset; 0: none.
    reset_id_max: u32,
}

/// What an id in a frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Open(u32),
    /// Reset by us, or so old that it may have been.
    Ignored,
    Closed,
    Idle,
}

impl Stream {
    const FREE: Self = Self {
        id: 0,
        state: State::Free,
        message: Incoming::new(RequestKind::Other),
        receive_window: 0,
        send_window: 0,
        sent_bytes: 0,
        left_bytes: 0,
        is_uploading: false,
        is_open: false,
        is_paused: false,
    };

    /// Whether a frame of the body could be handed out, if its connection's window is open.
    pub(super) const fn has_chunk(&self) -> bool {
        if self.left_bytes > 0 { self.send_window > 0 } else { !self.is_open }
    }

    pub(super) fn is_live(&self) -> bool {
        !matches!(self.state, State::Free | State::Reset)
    }
}

impl Streams {
    /// `count`: at least 1.
    pub(super) fn new(count: u32) -> Self {
        let places = vec![Stream::FREE; count.max(1).next_power_of_two() as usize];
        Self { places: places.into_boxed_slice(), next_id: 1, count: 0, reserved_count: 0, reset_id_max: 0 }
    }

    /// The first stream was another's: what comes on it is ignored.
    pub(super) fn skip_first(&mut self) {
        (self.next_id, self.reset_id_max) = (3, 1);
    }

    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.places[slot as usize]
    }

    pub(super) fn get(&self, slot: u32) -> &Stream {
        &self.places[slot as usize]
    }

    /// The next id whose place is free, with its place; `None`: no id is left. The caller has seen that a place is.
    pub(super) fn reserve(&mut self) -> Option<u32> {
        loop {
            if self.next_id > STREAM_ID_MAX {
                return None;
            }
            let (id, slot) = (self.next_id, self.slot_of(self.next_id));
            self.next_id += 2;
            let stream = self.at(slot);
            if !stream.is_live() {
                *stream = Stream { id, state: State::Reserved, ..Stream::FREE };
                self.count += 1;
                self.reserved_count += 1;
                return Some(slot);
            }
        }
    }

    /// The request of a reserved stream goes out.
    pub(super) fn open(&mut self, slot: u32) -> &mut Stream {
        self.reserved_count -= 1;
        let stream = self.at(slot);
        stream.state = State::Head;
        stream
    }

    /// Streams whose request was sent.
    pub(super) fn open_count(&self) -> u32 {
        self.count - self.reserved_count
    }

    pub(super) fn has_ids(&self) -> bool {
        self.next_id < STREAM_ID_MAX - 2 * self.places.len() as u32
    }

    /// What an id in a frame from the peer stands for.
    pub(super) fn find(&self, id: u32) -> Known {
        let slot = self.slot_of(id);
        let stream = &self.places[slot as usize];
        let is_idle = id.is_multiple_of(2) || id >= self.next_id;
        match stream.state {
            State::Reserved if stream.id == id => Known::Idle,
            State::Head | State::Body if stream.id == id => Known::Open(slot),
            State::Reset if stream.id == id => Known::Ignored,
            _ if is_idle => Known::Idle,
            _ if id <= self.reset_id_max => Known::Ignored,
            _ => Known::Closed,
        }
    }

    /// The stream has ended.
    pub(super) fn free(&mut self, slot: u32) {
        self.reserved_count -= u32::from(self.get(slot).state == State::Reserved);
        self.at(slot).state = State::Free;
        self.count -= 1;
    }

    /// We have reset the stream.
    pub(super) fn reset(&mut self, slot: u32) {
        self.free(slot);
        let stream = self.at(slot);
        stream.state = State::Reset;
        self.reset_id_max = self.reset_id_max.max(self.get(slot).id);
    }

    /// The live streams' places, the oldest first.
    pub(super) fn by_age(&self) -> Vec<u32> {
        let mut slots: Vec<u32> =
            (0..self.places.len() as u32).filter(|slot| self.get(*slot).is_live()).collect();
        slots.sort_unstable_by_key(|slot| self.get(*slot).id);
        slots
    }

    pub(super) fn live(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.places.iter_mut().filter(|stream| stream.is_live())
    }

    fn slot_of(&self, id: u32) -> u32 {
        (id >> 1) & (self.places.len() as u32 - 1)
    }
}
