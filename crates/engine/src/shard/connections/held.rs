//! Calls of a driver whose responses are streams: how a WebSocket is opened, how bodies grow, how reading pauses.

use std::rc::Rc;

use squall_wire::h1::Response;

use crate::driver::GivenUp;
use crate::driver::stream::{CallKind, StreamKey};
use crate::prepare::{HandshakeKey, Offer};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{CallInFlight, ConnState, Exchange};
use crate::shard::connections::websocket::WebSocket;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;

impl Connections {
    /// What the call offers that a request was made for, where it is to open a WebSocket.
    pub(in crate::shard) fn offer_of(&self, exchange: &Exchange) -> Option<Rc<Offer>> {
        match &self.flight_of(exchange)?.call.kind {
            CallKind::WebSocket(offer) => Some(Rc::clone(offer)),
            CallKind::Whole | CallKind::Stream(_) => None,
        }
    }

    /// That of the opening handshake on this connection.
    pub(in crate::shard) fn handshake_key(&self, conn_idx: usize) -> HandshakeKey {
        HandshakeKey::new(self.handshake_seed, conn_idx, self.conns[conn_idx].generation)
    }

    /// The user, the token and the name of a stream, where the response to a request is reported as it comes.
    pub(super) fn stream_of(
        &self,
        exchange: &Exchange,
        conn_idx: usize,
        slot: u32,
    ) -> Option<(u32, u32, StreamKey)> {
        let call = &self.flight_of(exchange)?.call;
        let generation = self.conns[conn_idx].generation;
        let key = StreamKey { conn_idx: conn_idx as u32, generation, slot };
        matches!(call.kind, CallKind::Stream(_)).then_some((call.user, call.request.token, key))
    }

    /// A call of a driver is given up, wherever it is: on a connection, as the WebSocket that it has opened, or waiting for a connection. One
    /// that has ended is nowhere.
    pub(in crate::shard) fn give_up_call(&mut self, recorder: &mut ShardRecorder, given_up: GivenUp) {
        let GivenUp { user, token, key } = given_up;
        let owner = (user, token);
        // What is open is where its driver knows it; what was sent again is somewhere else.
        if let Some(key) = key.filter(|key| self.has(*key))
            && self.gives_up_on(recorder, key.conn_idx as usize, owner)
        {
            return;
        }
        for conn_idx in 0..self.conns.len() {
            if self.user_of(conn_idx) == Some(owner.0) && self.gives_up_on(recorder, conn_idx, owner) {
                return;
            }
        }
        for pool_idx in 0..self.pools.len() {
            if self.pools[pool_idx].user != Some(owner.0) {
                continue;
            }
            let waiting = &self.pools[pool_idx].waiting;
            let Some(at) = waiting.iter().position(|exchange| self.owner_of(exchange) == Some(owner)) else {
                continue;
            };
            let Some(exchange) = self.pools[pool_idx].waiting.remove(at) else { return };
            self.counts.waiting -= 1;
            // What was sent before counts as open, and what never was is nothing yet.
            if exchange.is_retry() {
                self.interrupt(recorder, 0, &exchange);
            }
            return self.forget_call(&exchange);
        }
    }

    /// Whether a stream's connection is still the one that its key names.
    pub(in crate::shard) fn has(&self, key: StreamKey) -> bool {
        let conn = self.conns.get(key.conn_idx as usize);
        conn.is_some_and(|conn| conn.generation == key.generation && conn.state == ConnState::Open)
    }

    /// Gives up a call that is on this connection; whether it was.
    fn gives_up_on(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, owner: (u32, u32)) -> bool {
        let conn = &self.conns[conn_idx];
        let is_open = conn.state == ConnState::Open;
        if conn.cold.held_by == Some(owner) {
            // A close frame that was asked for before goes out first, where the socket takes it.
            let _ = self.flush(recorder, conn_idx);
            self.part(recorder, conn_idx);
            self.vacate(recorder, conn_idx);
            return true;
        }
        let is_its =
            |slot: &u32| self.owner_of(&self.exchanges[self.place_of(conn_idx, *slot)]) == Some(owner);
        let Some(slot) = self.slots(conn_idx).into_iter().find(is_its) else { return false };
        let exchange = self.exchanges[self.place_of(conn_idx, slot)];
        self.interrupt(recorder, conn_idx, &exchange);
        self.forget_call(&exchange);
        match is_open {
            true => self.give_up_slot(recorder, conn_idx, slot),
            false => self.vacate(recorder, conn_idx),
        }
        true
    }

    /// The user and the token of the call that a request belongs to.
    fn owner_of(&self, exchange: &Exchange) -> Option<(u32, u32)> {
        self.flight_of(exchange).map(|flight| (flight.call.user, flight.call.request.token))
    }

    /// Whether the body of a request grows.
    pub(in crate::shard) fn has_growing_body(&self, exchange: &Exchange) -> bool {
        self.flight_of(exchange).is_some_and(CallInFlight::has_growing_body)
    }

    /// The server has answered the opening request of a driver's WebSocket.
    pub(in crate::shard) fn open_held(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        offer: &Offer,
        response: &Response,
    ) {
        let place = self.place_of(conn_idx, slot);
        let exchange = self.exchanges[place];
        if response.status != 101 {
            self.settle(schedule, recorder, (conn_idx, slot), &exchange, response.status, Ok(()));
            // Connections of WebSockets carry nothing else.
            self.conns[conn_idx].is_retiring = true;
            return self.close_when_over(schedule, recorder, conn_idx);
        }
        let head = recorder.sink.head_of(place);
        let agreed = offer.agreed(Some(self.handshake_key(conn_idx)), |name| field_of(head, name));
        let owner = self.owner_of(&exchange);
        self.conns[conn_idx].client = None;
        match agreed {
            Ok(params) => {
                let conn = &mut self.conns[conn_idx];
                conn.cold.websocket = Some(Box::new(WebSocket::new(params)));
                conn.cold.held_by = owner;
                self.deadlines[conn_idx] = u64::MAX;
                self.settle(schedule, recorder, (conn_idx, slot), &exchange, 101, Ok(()));
            }
            Err(trouble) => {
                self.settle(schedule, recorder, (conn_idx, slot), &exchange, 101, Err(trouble));
                self.vacate(recorder, conn_idx);
            }
        }
    }

    /// More of the body of a stream.
    pub(in crate::shard) fn extend_stream(&mut self, conn_idx: usize, slot: u32, bytes: &[u8]) {
        let is_started = self.exchanges[self.place_of(conn_idx, slot)].start_ns > 0;
        let Some(flight) = self.flight_mut(conn_idx, slot) else { return };
        flight.outgoing.bytes.extend_from_slice(bytes);
        if let Some(client) = self.conns[conn_idx].client.as_mut().filter(|_| is_started) {
            client.extend(slot, bytes.len() as u64);
            self.list_unsent(conn_idx);
        }
    }

    /// Its body is complete.
    pub(in crate::shard) fn finish_stream(&mut self, conn_idx: usize, slot: u32) {
        let is_started = self.exchanges[self.place_of(conn_idx, slot)].start_ns > 0;
        let Some(flight) = self.flight_mut(conn_idx, slot) else { return };
        flight.outgoing.is_finished = true;
        if let Some(client) = self.conns[conn_idx].client.as_mut().filter(|_| is_started) {
            client.finish(slot);
            self.list_unsent(conn_idx);
        }
    }

    /// A piece of a body that grows, which is sent now. What was sent before is not kept.
    pub(super) fn append_growing(&mut self, conn_idx: usize, slot: u32, (offset, count): (u64, usize)) {
        let mut out = std::mem::take(&mut self.io.out);
        if let Some(flight) = self.flight_mut(conn_idx, slot) {
            let outgoing = &mut flight.outgoing;
            let begin = (offset - outgoing.begin) as usize;
            out.extend_from_slice(&outgoing.bytes[begin..begin + count]);
            outgoing.bytes.drain(..begin + count);
            outgoing.begin = offset + count as u64;
        }
        self.io.out = out;
    }

    /// Nothing is read of a stream for now, or again.
    pub(in crate::shard) fn pause_stream(&mut self, conn_idx: usize, slot: u32, is_paused: bool) {
        let conn = &mut self.conns[conn_idx];
        match (&mut conn.client, &mut conn.cold.websocket) {
            (Some(client), _) if is_paused => client.pause(slot),
            (Some(client), _) => client.resume(slot),
            (None, Some(websocket)) => websocket.is_paused = is_paused,
            (None, None) => {}
        }
        if !is_paused {
            // An edge-triggered poller does not report what has come meanwhile.
            self.turn.unfinished.push(conn_idx as u32);
        }
    }

    fn flight_mut(&mut self, conn_idx: usize, slot: u32) -> Option<&mut CallInFlight> {
        let place = self.place_of(conn_idx, slot);
        let idx = self.exchanges.get(place)?.request.dynamic_idx()?;
        self.made.calls.get_mut(idx)?.as_mut()
    }
}

/// The values of all fields of that name in a head as HTTP/1.1 writes it, as one list (RFC 9110 5.3).
fn field_of(head: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let fields = lines.filter(|(own, _)| own.trim().eq_ignore_ascii_case(name));
    let values: Vec<&str> = fields.map(|(_, value)| value.trim()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
