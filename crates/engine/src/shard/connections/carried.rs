//! WebSockets as streams of HTTP/2 and HTTP/3 connections (RFC 8441, RFC 9220).
//!
//! Such a WebSocket has a slot of its own in the table of connections, so that what opens, keeps, counts and ends WebSockets is the same as
//! over HTTP/1.1; in the place of a socket it has a stream of another slot's connection, its carrier. Owns: which carrier a WebSocket gets, and
//! what becomes of its bytes and its end. Never: frames of WebSocket, which are `messages`', and frames of HTTP, which are `wire`'s.

use squall_measure::{Cause, Phase};
use squall_plan::limits::REFUSED_RETRY_COUNT_MAX;
use squall_plan::{CloseMode, HttpVersion};
use squall_wire::h1::Response;
use squall_wire::{Chunk, Client, ErrorCode, Event, StreamFailure};

use crate::shard::connections::Connections;
use crate::shard::connections::carrier::{CarriedStream, StreamUse};
use crate::shard::connections::conn::ConnState;
use crate::shard::connections::request_of;
use crate::shard::connections::streams::stream_figures;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::Trouble;

/// What has come on a stream.
#[derive(Clone, Copy)]
struct Arrival {
    slot: u32,
    bytes: u32,
    response: Option<Response>,
    first_ns: u64,
}

impl Connections {
    /// Whether a connection carries WebSockets.
    pub(in crate::shard) fn is_carrier(&self, conn_idx: usize) -> bool {
        self.carries && self.conns[conn_idx].cold.carrier.is_some()
    }

    /// Whether a slot is for WebSockets that are streams of other connections.
    pub(in crate::shard) fn is_carried(&self, conn_idx: usize) -> bool {
        if !self.carries || self.conns[conn_idx].cold.carrier.is_some() {
            return false;
        }
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        matches!(self.prepared.origins[origin_idx].key.http, HttpVersion::Http2 | HttpVersion::Http3)
    }

    /// Finds a carrier for a WebSocket that is to be opened, or opens one.
    pub(super) fn board(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        let known = self.carrier_with_space(origin_idx);
        let is_new = known.is_none();
        let carrier_idx = known.unwrap_or_else(|| self.new_carrier(recorder, origin_idx));
        // Connecting is part of the story of the one that it is opened for.
        let place = self.place_of(conn_idx, 0);
        self.exchanges[place].is_first = is_new;
        let is_secure = self.prepared.origins[origin_idx].key.is_tls;
        let stream =
            CarriedStream { carrier_idx: carrier_idx as u32, slot: None, is_ending: false, is_secure };
        self.conns[conn_idx].cold.carried = Some(stream);
        if let Some(carrier) = &mut self.conns[carrier_idx].cold.carrier {
            carrier.waiting.push_back(conn_idx as u32);
        }
        if is_new {
            self.open(schedule, recorder, carrier_idx);
        } else {
            self.take_aboard(schedule, recorder, carrier_idx);
        }
        self.note_space(carrier_idx);
    }

    fn carrier_with_space(&mut self, origin_idx: usize) -> Option<usize> {
        while let Some(carrier_idx) = self.origin_states[origin_idx].carriers.last() {
            let carrier_idx = *carrier_idx as usize;
            if self.has_space(carrier_idx) {
                return Some(carrier_idx);
            }
            self.origin_states[origin_idx].carriers.pop();
            if let Some(carrier) = &mut self.conns[carrier_idx].cold.carrier {
                carrier.is_listed = false;
            }
        }
        None
    }

    /// Whether one more WebSocket may become a stream of it.
    fn has_space(&self, carrier_idx: usize) -> bool {
        let conn = &self.conns[carrier_idx];
        let Some(carrier) = conn.cold.carrier.as_ref().filter(|_| conn.state != ConnState::Vacant) else {
            return false;
        };
        let free_count = conn.client.as_ref().map_or(self.limits.stream_count, Client::free_count);
        !conn.is_retiring && free_count as usize > carrier.waiting.len()
    }

    fn new_carrier(&mut self, recorder: &mut ShardRecorder, origin_idx: usize) -> usize {
        let carrier_idx = self.free_slot(recorder);
        let conn = &mut self.conns[carrier_idx];
        conn.origin_idx = origin_idx as u32;
        conn.cold.carrier = Some(Box::default());
        carrier_idx
    }

    /// After a stream was taken or has ended: a carrier with streams left is listed, and one that nothing is on any more takes nothing either,
    /// as the TCP connection of a WebSocket ends with it.
    fn note_space(&mut self, carrier_idx: usize) {
        let has_space = self.has_space(carrier_idx);
        let conn = &mut self.conns[carrier_idx];
        let Some(carrier) = &mut conn.cold.carrier else { return };
        if carrier.is_unused() {
            conn.is_retiring = true;
        } else if has_space && !std::mem::replace(&mut carrier.is_listed, true) {
            self.origin_states[conn.origin_idx as usize].carriers.push(carrier_idx as u32);
        }
        self.list_unsent(carrier_idx);
    }

    /// The connection of a carrier is open: WebSockets get their streams once the server's settings say that it takes them.
    pub(in crate::shard) fn greet_as_carrier(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) {
        let client = self.new_client(carrier_idx);
        self.begin_requests(recorder, carrier_idx, client);
        self.deadlines[carrier_idx] = self.now_ns + self.limits.connect_timeout_ns;
        self.send(schedule, recorder, carrier_idx);
    }

    /// Gives WebSockets that wait their streams, if the server has said that it takes them.
    fn take_aboard(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) {
        match self.conns[carrier_idx].client.as_ref().and_then(Client::extended_connect) {
            None => return,
            Some(true) => {}
            Some(false) => {
                let version = if self.conns[carrier_idx].cold.quic.is_some() { "3" } else { "2" };
                let text = format!(
                    "the server does not offer WebSockets over HTTP/{version}: its SETTINGS have no SETTINGS_ENABLE_CONNECT_PROTOCOL = 1"
                );
                let trouble = Trouble::new(Cause::WebSocketProtocol, Phase::Waiting, text);
                self.part(recorder, carrier_idx);
                return self.fail(schedule, recorder, carrier_idx, &trouble);
            }
        }
        let mut taken_count = 0;
        while self.take_first_aboard(recorder, carrier_idx) {
            taken_count += 1;
        }
        // The server allows fewer streams than were expected.
        self.send_elsewhere(schedule, recorder, carrier_idx, taken_count == 0);
        self.list_unsent(carrier_idx);
    }

    fn take_first_aboard(&mut self, recorder: &mut ShardRecorder, carrier_idx: usize) -> bool {
        let now_ns = self.now_ns;
        let conn = &mut self.conns[carrier_idx];
        let (Some(client), Some(carrier)) = (&mut conn.client, &mut conn.cold.carrier) else { return false };
        if carrier.waiting.is_empty() {
            return false;
        }
        let Some(slot) = client.reserve() else { return false };
        let Some(conn_idx) = carrier.waiting.pop_front() else { return false };
        *carrier.stream(slot) = StreamUse::WebSocket(conn_idx);
        carrier.websocket_count += 1;
        let connected_ns = conn.cold.connected_ns;
        let conn_idx = conn_idx as usize;
        let conn = &mut self.conns[conn_idx];
        conn.state = ConnState::Open;
        (conn.cold.connected_ns, conn.cold.ready_ns) = (connected_ns, now_ns);
        if let Some(stream) = &mut conn.cold.carried {
            stream.slot = Some(slot);
        }
        self.counts.opening -= 1;
        self.deadlines[conn_idx] = now_ns + self.limits.timeout_ns;
        recorder.pulse.connections_open += 1;
        recorder.sink.captures.set((carrier_idx, slot), true);
        true
    }

    /// WebSockets that wait for a carrier which takes no more go to others.
    fn send_elsewhere(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
        counts: bool,
    ) {
        let Some(carrier) = &mut self.conns[carrier_idx].cold.carrier else { return };
        for conn_idx in std::mem::take(&mut carrier.waiting) {
            self.conns[conn_idx as usize].cold.carried = None;
            self.board_again(schedule, recorder, conn_idx as usize, counts);
        }
    }

    /// A WebSocket that has not been processed goes to another carrier, unless that happened too often; `counts`: this is one of the times.
    fn board_again(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        counts: bool,
    ) {
        let place = self.place_of(conn_idx, 0);
        let exchange = self.exchanges[place];
        if counts && u32::from(exchange.retry_count) >= REFUSED_RETRY_COUNT_MAX {
            let failure = StreamFailure::Unprocessed(ErrorCode::NO_ERROR);
            let trouble = Trouble::stream(failure, Phase::Waiting);
            return self.fail(schedule, recorder, conn_idx, &trouble);
        }
        if counts {
            self.exchanges[place] = exchange.again();
            recorder.pulse.snapshot.requests_retried += 1;
        }
        let conn = &mut self.conns[conn_idx];
        if std::mem::replace(&mut conn.state, ConnState::Connecting) == ConnState::Open {
            self.counts.opening += 1;
            recorder.pulse.connections_open -= 1;
        }
        self.board(schedule, recorder, conn_idx);
    }

    /// Appends the head of the next opening request; whether there was one.
    pub(super) fn start_carried(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) -> bool {
        let conn = &mut self.conns[carrier_idx];
        let (Some(client), Some(carrier)) = (&mut conn.client, &conn.cold.carrier) else { return false };
        let Some(slot) = client.next_reserved() else { return false };
        let Some(conn_idx) = carrier.websocket(slot) else {
            client.cancel(slot);
            return true;
        };
        let place = self.conns[conn_idx].first_place as usize;
        let exchange = &mut self.exchanges[place];
        let request = request_of(&self.prepared, &self.made.requests, exchange.request).on_wire();
        let conn = &mut self.conns[carrier_idx];
        let Some(client) = &mut conn.client else { return false };
        if !client.takes(request) {
            let text = "the opening request's fields are larger than the server accepts".to_owned();
            let trouble = Trouble::new(Cause::HeadTooLarge, Phase::Blocked, text);
            self.fail(schedule, recorder, conn_idx, &trouble);
            return true;
        }
        let begin = self.io.out.len();
        client.start_stream(
            &self.prepared.origins[conn.origin_idx as usize].fields,
            request,
            &mut self.io.out,
        );
        (exchange.start_ns, exchange.sent_ns) = (self.now_ns, self.now_ns);
        exchange.sent_bytes = (self.io.out.len() - begin) as u64;
        let (is_warmup, is_reused, version) = (exchange.is_warmup, !exchange.is_first, client.version());
        recorder.pulse.snapshot.connections_reused += u64::from(is_reused && !is_warmup);
        if let Some(figures) = stream_figures(recorder, version).filter(|_| !is_warmup) {
            figures.streams += 1;
        }
        true
    }

    /// Something has happened on a carrier.
    pub(super) fn on_carrier_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
        (event, first_ns): (Event, u64),
    ) {
        match event {
            Event::Received { slot, bytes, response } => {
                let arrival = Arrival { slot, bytes, response, first_ns };
                self.on_carried_bytes(schedule, recorder, carrier_idx, arrival);
            }
            Event::Failed { slot, failure } => {
                self.on_carried_failure(schedule, recorder, (carrier_idx, slot), failure);
            }
            Event::Allowance => self.take_aboard(schedule, recorder, carrier_idx),
            Event::GoingAway => self.leave_unprocessed(schedule, recorder, carrier_idx),
            Event::Pong => {}
        }
        self.note_space(carrier_idx);
    }

    /// A stream is no longer the carrier's: the server has ended or reset it. Returns the WebSocket that was on it.
    fn free_stream(
        &mut self,
        recorder: &mut ShardRecorder,
        (carrier_idx, slot): (usize, u32),
    ) -> Option<usize> {
        let carrier = self.conns[carrier_idx].cold.carrier.as_mut()?;
        let conn_idx = carrier.websocket(slot);
        *carrier.stream(slot) = StreamUse::None;
        recorder.sink.captures.set((carrier_idx, slot), false);
        let conn_idx = conn_idx?;
        carrier.websocket_count -= 1;
        if let Some(stream) = &mut self.conns[conn_idx].cold.carried {
            stream.slot = None;
        }
        Some(conn_idx)
    }

    /// Bytes have come on a stream: of the answer to the opening request, or of messages.
    fn on_carried_bytes(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
        arrival: Arrival,
    ) {
        let at = (carrier_idx, arrival.slot);
        let carrier = self.conns[carrier_idx].cold.carrier.as_ref();
        let Some(conn_idx) = carrier.and_then(|carrier| carrier.websocket(arrival.slot)) else {
            if arrival.response.is_some() {
                self.free_stream(recorder, at);
            }
            return;
        };
        let generation = self.conns[conn_idx].generation;
        let mut data = std::mem::take(&mut self.io.carried);
        recorder.sink.captures.swap_body(at, &mut data);
        let is_open = !self.conns[conn_idx].has_opener
            || self.open_carried(schedule, recorder, (carrier_idx, conn_idx), arrival);
        if is_open && self.is_same(conn_idx, generation) {
            if arrival.response.is_some() {
                self.free_stream(recorder, at);
            }
            self.decode_plain(schedule, recorder, conn_idx, &mut data);
            // END_STREAM is to a WebSocket what FIN is to its TCP connection (RFC 8441 5).
            if arrival.response.is_some() && self.is_same(conn_idx, generation) {
                self.close(schedule, recorder, conn_idx);
            }
        }
        data.clear();
        self.io.carried = data;
    }

    /// Something came of the answer to the opening request; whether the WebSocket is open now.
    fn open_carried(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (carrier_idx, conn_idx): (usize, usize),
        arrival: Arrival,
    ) -> bool {
        let at = (carrier_idx, arrival.slot);
        let place = self.place_of(conn_idx, 0);
        let exchange = &mut self.exchanges[place];
        exchange.note_first_byte(arrival.first_ns);
        exchange.received_bytes += u64::from(arrival.bytes);
        let status = recorder.sink.captures.status(at);
        let is_accepted = (200..300).contains(&status);
        let answer = match arrival.response {
            Some(_) if is_accepted => {
                self.free_stream(recorder, at);
                let trouble = Trouble::closed(Phase::Receiving);
                self.fail(schedule, recorder, conn_idx, &trouble);
                return false;
            }
            Some(response) => response,
            None if !is_accepted => return false,
            None => Response { status, keep_alive: true, body_bytes: 0, interim_count: 0 },
        };
        recorder.sink.captures.rename(at, (conn_idx, 0));
        if arrival.response.is_some() {
            self.free_stream(recorder, at);
        } else {
            recorder.sink.captures.set(at, true);
        }
        self.conns[conn_idx].has_opener = false;
        schedule.on_session_response(self, recorder, (conn_idx, 0), &answer);
        is_accepted
    }

    /// A stream has ended in another way.
    fn on_carried_failure(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        at: (usize, u32),
        failure: StreamFailure,
    ) {
        let Some(conn_idx) = self.free_stream(recorder, at) else { return };
        if matches!(failure, StreamFailure::Unprocessed(_)) && self.conns[conn_idx].has_opener {
            self.conns[conn_idx].cold.carried = None;
            return self.board_again(schedule, recorder, conn_idx, true);
        }
        self.fail(schedule, recorder, conn_idx, &Trouble::stream(failure, Phase::Receiving));
    }

    /// The server goes away: WebSockets that it has not processed are opened elsewhere, the others go on.
    fn leave_unprocessed(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) {
        while let Some(client) = &mut self.conns[carrier_idx].client
            && let Some(slot) = client.next_unprocessed()
        {
            let failure = StreamFailure::Unprocessed(client.goaway_code().unwrap_or(ErrorCode::NO_ERROR));
            self.on_carried_failure(schedule, recorder, (carrier_idx, slot), failure);
        }
        self.send_elsewhere(schedule, recorder, carrier_idx, true);
    }

    /// Hands what a WebSocket has to send to its carrier, and fills up from its messages once that has left: where the server's windows are
    /// closed, messages wait as they do for a socket.
    pub(super) fn send_carried(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        self.conns[conn_idx].is_listed_unsent = false;
        if self.conns[conn_idx].state != ConnState::Open {
            return;
        }
        if !self.conns[conn_idx].is_blocked() {
            self.io.out.clear();
            self.fill_messages(schedule, recorder, conn_idx);
            self.conns[conn_idx].held.get_or_insert_default().rest.extend_from_slice(&self.io.out);
            self.io.out.clear();
        }
        self.offer_carried(conn_idx);
    }

    /// The carrier's client learns how much there is to send.
    fn offer_carried(&mut self, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        let left_bytes = conn.held.as_ref().map_or(0, |held| held.left_bytes()) as u64;
        let Some(CarriedStream { carrier_idx, slot: Some(slot), .. }) = conn.cold.carried else { return };
        if let Some(client) = &mut self.conns[carrier_idx as usize].client {
            client.extend(slot, left_bytes.saturating_sub(client.unsent_bytes(slot)));
        }
        self.list_unsent(carrier_idx as usize);
    }

    /// Appends bytes of a WebSocket, which leave now.
    pub(super) fn append_carried(&mut self, carrier_idx: usize, chunk: Chunk) {
        let Some(carrier) = &mut self.conns[carrier_idx].cold.carrier else { return };
        let conn_idx = carrier.websocket(chunk.slot);
        let held = match (conn_idx, carrier.stream(chunk.slot)) {
            (Some(conn_idx), _) => self.conns[conn_idx].held.as_deref_mut(),
            (None, StreamUse::Ending(held)) => Some(&mut **held),
            (None, _) => None,
        };
        let Some(held) = held else { return debug_assert_eq!(chunk.bytes, 0, "bytes of no WebSocket") };
        let begin = held.written_bytes;
        self.io.out.extend_from_slice(&held.rest[begin..begin + chunk.bytes]);
        held.take(chunk.bytes);
        let is_drained = held.left_bytes() == 0;
        if let Some(conn_idx) = conn_idx {
            self.report_unsent(conn_idx);
            let conn = &self.conns[conn_idx];
            let has_more = conn.cold.websocket.as_ref().is_some_and(|it| !it.talk.to_send.is_empty());
            if is_drained && has_more {
                self.list_unsent(conn_idx);
            }
        }
    }

    /// What WebSockets have to send goes to their carriers before those send; the others stay in the list.
    pub(super) fn send_all_carried(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        unsent: &mut Vec<u32>,
    ) {
        if !self.carries {
            return;
        }
        unsent.retain(|conn_idx| {
            let is_carried = self.is_carried(*conn_idx as usize);
            if is_carried {
                self.send_carried(schedule, recorder, *conn_idx as usize);
            }
            !is_carried
        });
        unsent.append(&mut self.turn.unsent);
    }

    /// A WebSocket's slot becomes vacant: its stream ends in order, or is reset.
    pub(super) fn leave_carrier(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        if self.conns[conn_idx].cold.carried.is_none() {
            return;
        }
        self.offer_carried(conn_idx);
        let Some(stream) = self.conns[conn_idx].cold.carried.take() else { return };
        let held = self.conns[conn_idx].held.take().unwrap_or_default();
        let carrier_idx = stream.carrier_idx as usize;
        let conn = &mut self.conns[carrier_idx];
        let (client, Some(carrier)) = (&mut conn.client, &mut conn.cold.carrier) else { return };
        match (stream.slot, client) {
            (Some(slot), Some(client)) => {
                carrier.websocket_count -= 1;
                recorder.sink.captures.set((carrier_idx, slot), false);
                if stream.is_ending {
                    client.finish(slot);
                    *carrier.stream(slot) = StreamUse::Ending(held);
                    let end_ns = self.now_ns + ENDING_NS;
                    self.deadlines[carrier_idx] = self.deadlines[carrier_idx].min(end_ns);
                } else {
                    client.cancel(slot);
                    *carrier.stream(slot) = StreamUse::None;
                }
            }
            _ => carrier.waiting.retain(|waiting| *waiting as usize != conn_idx),
        }
        self.note_space(carrier_idx);
    }

    /// Whether a WebSocket ends by a reset follows from how connections are closed.
    pub(super) fn part_carried(&mut self, conn_idx: usize) {
        if let Some(stream) = &mut self.conns[conn_idx].cold.carried {
            stream.is_ending = self.limits.close != CloseMode::Rst;
        }
    }

    /// A carrier's time is over: the server has not said what it takes, or has not ended streams that ended on our side.
    pub(super) fn on_carrier_deadline(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) {
        self.deadlines[carrier_idx] = u64::MAX;
        let conn = &mut self.conns[carrier_idx];
        let (Some(client), Some(carrier)) = (&mut conn.client, &mut conn.cold.carrier) else { return };
        if !carrier.waiting.is_empty() && client.extended_connect().is_none() {
            let text = "the server's SETTINGS did not come".to_owned();
            let trouble = Trouble::new(Cause::Timeout, Phase::Waiting, text);
            return self.fail(schedule, recorder, carrier_idx, &trouble);
        }
        carrier.take_ending().into_iter().for_each(|slot| client.cancel(slot));
        self.note_space(carrier_idx);
    }

    /// A carrier's connection has ended, and with it all that was on it.
    pub(super) fn fail_carrier(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
        trouble: &Trouble,
    ) {
        let websockets = self.drop_carrier(recorder, carrier_idx);
        for conn_idx in websockets {
            self.fail(schedule, recorder, conn_idx, trouble);
        }
    }

    /// The server has closed a carrier's connection.
    pub(super) fn close_carrier(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        carrier_idx: usize,
    ) {
        self.part(recorder, carrier_idx);
        self.fail_carrier(schedule, recorder, carrier_idx, &Trouble::closed(Phase::Waiting));
    }

    /// Vacates a carrier's slot; returns the WebSockets that were on it, without their streams.
    fn drop_carrier(&mut self, recorder: &mut ShardRecorder, carrier_idx: usize) -> Vec<usize> {
        let conn = &mut self.conns[carrier_idx];
        let Some(carrier) = conn.cold.carrier.as_deref_mut().map(std::mem::take) else { return Vec::new() };
        if carrier.is_listed {
            self.origin_states[conn.origin_idx as usize]
                .carriers
                .retain(|listed| *listed as usize != carrier_idx);
        }
        let websockets = carrier.websockets();
        for conn_idx in &websockets {
            self.conns[*conn_idx].cold.carried = None;
            self.conns[*conn_idx].held = None;
        }
        self.vacate(recorder, carrier_idx);
        websockets
    }
}

/// How long the server may take to end a stream that has ended on our side, before it is reset.
const ENDING_NS: u64 = 5_000_000_000;
