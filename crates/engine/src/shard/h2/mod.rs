//! HTTP/2 on a connection of the shard: which stream carries which request, and when a connection takes no more.
//!
//! The protocol itself is `wire::h2`; here are its socket and its figures. A stream's place is its slot in the connection's part of the
//! exchange table. What is to be sent gathers during a turn of the loop and leaves in one write: [`send`]; what came is read in [`receive`].

mod receive;
mod send;

use std::collections::VecDeque;

use squall_measure::{Cause, Phase};
use squall_plan::limits::REFUSED_RETRY_COUNT_MAX;
use squall_wire::h2::{Client, ErrorCode, Setup, StreamFailure};

use super::Shard;
use super::conn::Exchange;
use super::settle::phase_of;
use crate::trouble::Trouble;

pub(super) use squall_wire::h2::HeadCache;

/// A connection that speaks HTTP/2.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    /// Slots whose requests are not sent yet, in their order.
    pending: VecDeque<u32>,
    /// Bytes that the socket did not take; `written` of them it took since.
    unsent: Vec<u8>,
    written: usize,
    /// Slots whose requests end in what is being written.
    ending: Vec<u32>,
    /// It is in the shard's list of connections with something to send.
    is_listed: bool,
    /// It takes no new requests, and is closed when its last response is whole.
    is_retiring: bool,
    /// When the peer was last heard of.
    heard_ns: u64,
    refusals: Refusals,
}

/// Requests in a row whose fields the peer does not take, none answered between them.
#[derive(Debug, Default)]
struct Refusals {
    count: u32,
    served_count: u32,
}

impl Session {
    fn new(client: Client, now_ns: u64) -> Self {
        Self {
            client,
            pending: VecDeque::new(),
            unsent: Vec::new(),
            written: 0,
            ending: Vec::new(),
            is_listed: false,
            is_retiring: false,
            heard_ns: now_ns,
            refusals: Refusals::default(),
        }
    }

    /// The peer does not take a request's fields; whether that was so for many in a row.
    fn note_refusal(&mut self, served_count: u32) -> bool {
        let Refusals { count, served_count: before } = &mut self.refusals;
        *count = if *before == served_count { *count + 1 } else { 1 };
        *before = served_count;
        *count >= REFUSAL_COUNT_MAX
    }

    /// Whether one more request may be put on it.
    pub(super) fn has_room(&self) -> bool {
        !self.is_retiring && self.client.room() > 0
    }

    fn is_over(&self) -> bool {
        (self.is_retiring || self.client.is_ending()) && self.client.in_flight() == 0
    }
}

impl Shard {
    /// The connection stands and speaks HTTP/2: the request that it was opened for gets the first stream.
    pub(super) fn open_h2(&mut self, conn_idx: usize) {
        let policy = &self.prepared.load.connections;
        let setup = Setup {
            // Origins that were not known at the start have no more places than HTTP/1.1 needs.
            stream_count: policy.stream_count.get().min(self.limits.stride),
            window_bytes: policy.window_bytes,
            connection_window_bytes: policy.connection_window_bytes,
        };
        let conn = &mut self.conns[conn_idx];
        let is_upgraded = self.prepared.origins[conn.origin_idx as usize].is_upgraded();
        let client = if is_upgraded { Client::upgraded(setup) } else { Client::new(setup) };
        let first = (conn.ring.len > 0).then(|| conn.ring.place(conn_idx, self.limits.stride, 0));
        conn.ring.clear();
        conn.h2 = Some(Box::new(Session::new(client, self.now_ns)));
        self.pulse.snapshot.http2.connections += 1;
        self.list_unsent(conn_idx);
        if let Some(exchange) = first.map(|place| self.exchanges[place]) {
            self.reserve_stream(conn_idx, exchange);
        }
    }

    /// Puts a request on the connection, which has room; it goes out with the turn.
    pub(super) fn reserve_stream(&mut self, conn_idx: usize, exchange: Exchange) {
        let Some(session) = &mut self.conns[conn_idx].h2 else { return };
        let slot = session.client.reserve().expect("the caller has seen that there is room");
        session.pending.push_back(slot);
        let place = self.stream_place(conn_idx, slot);
        self.exchanges[place] = exchange;
        self.deadlines[conn_idx] = self.deadlines[conn_idx].min(self.deadline_of(&exchange));
        self.list_unsent(conn_idx);
    }

    /// The place in the exchange table of a connection's stream.
    pub(super) fn stream_place(&self, conn_idx: usize, slot: u32) -> usize {
        conn_idx * self.limits.stride as usize + slot as usize
    }

    /// The connection has something to send at the end of this turn.
    pub(super) fn list_unsent(&mut self, conn_idx: usize) {
        if let Some(session) = &mut self.conns[conn_idx].h2
            && !std::mem::replace(&mut session.is_listed, true)
        {
            self.unsent.push(conn_idx as u32);
        }
    }

    /// A stream has ended without a response. What the server has not looked at is sent again, elsewhere or here.
    fn fail_stream(&mut self, conn_idx: usize, slot: u32, failure: StreamFailure) {
        let exchange = self.exchanges[self.stream_place(conn_idx, slot)];
        let is_unprocessed = matches!(failure, StreamFailure::Unprocessed(_));
        if is_unprocessed && u32::from(exchange.retry_count) < REFUSED_RETRY_COUNT_MAX {
            self.send_again(conn_idx, vec![exchange]);
            if self.has_room(conn_idx) {
                self.list_idle(conn_idx);
            }
            return;
        }
        let cause = match failure {
            StreamFailure::Reset(_) => Cause::StreamReset,
            StreamFailure::Unprocessed(_) => Cause::StreamRefused,
            StreamFailure::Malformed(_) => Cause::HttpProtocol,
            StreamFailure::HeadTooLarge => Cause::HeadTooLarge,
        };
        self.settle_stream(conn_idx, &exchange, cause, failure.to_string());
    }

    /// Counts the failure of a request whose stream is gone already.
    fn settle_stream(&mut self, conn_idx: usize, exchange: &Exchange, cause: Cause, text: String) {
        let phase = phase_of(exchange, true, Phase::Receiving);
        self.settle(conn_idx, exchange, 0, Err(Trouble::new(cause, phase, text)));
        self.ready.push(conn_idx as u32);
    }

    /// Ends the streams whose time is up. The others go on; but when the peer was silent for all of that time, the connection takes no more.
    pub(super) fn end_late_streams(&mut self, conn_idx: usize) {
        self.deadlines[conn_idx] = u64::MAX;
        let Some(session) = &self.conns[conn_idx].h2 else { return };
        for slot in session.client.slots() {
            let place = self.stream_place(conn_idx, slot);
            let exchange = self.exchanges[place];
            let end_ns = self.deadline_of(&exchange);
            if self.now_ns < end_ns {
                self.deadlines[conn_idx] = self.deadlines[conn_idx].min(end_ns);
                continue;
            }
            let Some(session) = &mut self.conns[conn_idx].h2 else { return };
            session.client.cancel(slot);
            session.pending.retain(|one| *one != slot);
            session.is_retiring |= session.heard_ns < exchange.begin_ns();
            self.settle_stream(conn_idx, &exchange, Cause::Timeout, String::new());
        }
        self.list_unsent(conn_idx);
        self.close_when_over(conn_idx);
    }

    /// Closes a connection that takes no more requests and owes no answer.
    fn close_when_over(&mut self, conn_idx: usize) {
        if self.conns[conn_idx].h2.as_ref().is_some_and(|session| session.is_over()) {
            self.close(conn_idx);
        }
    }

    /// After a response: a connection that is spent or old takes no more requests.
    fn retire_when_due(&mut self, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        let is_due = conn.served_count >= self.limits.served_max || self.is_old(conn_idx);
        if let Some(session) = &mut self.conns[conn_idx].h2 {
            session.is_retiring |= is_due;
        }
        self.close_when_over(conn_idx);
    }

    /// Tells the peer that the connection is done with, as far as it still listens.
    pub(super) fn say_goodbye(&mut self, conn_idx: usize) {
        self.write_goaway(conn_idx, ErrorCode::NO_ERROR);
    }
}

/// Requests that a peer does not take in a row before its connection ends.
const REFUSAL_COUNT_MAX: u32 = 8;
