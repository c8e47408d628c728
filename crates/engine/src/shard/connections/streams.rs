//! Requests on an open connection, each in its slot: how they get there, how one of them ends without the others, and when a connection takes
//! no more.
//!
//! What a connection speaks is `wire`'s business. A request's place in the exchange table follows from its connection and its slot.

use squall_measure::{Cause, Http2, Phase};
use squall_plan::HttpVersion;
use squall_plan::limits::REFUSED_RETRY_COUNT_MAX;
use squall_wire::h2::{self, Setup};
use squall_wire::{Client, ErrorCode, StreamFailure, Version, h1, h3};

use crate::driver::stream::{StreamNews, StreamReport};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange};
use crate::shard::connections::settle::phase_of;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::Trouble;

impl Connections {
    /// The connection is ready: the request that it was opened for gets the first slot.
    pub(in crate::shard) fn begin_requests(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        client: Client,
    ) {
        self.note_version(conn_idx, client.version());
        if let Some(figures) = stream_figures(recorder, client.version()) {
            figures.connections += 1;
        }
        let has_streams = client.can_cancel();
        let conn = &mut self.conns[conn_idx];
        conn.client = Some(client);
        conn.cold.heard_ns = self.now_ns;
        let opener =
            std::mem::take(&mut conn.has_opener).then(|| self.exchanges[conn.cold.home_place as usize]);
        if has_streams && self.limits.h2_stride > self.limits.stride {
            self.conns[conn_idx].first_place = self.take_wide_part(recorder);
        }
        self.open_streams(conn_idx);
        self.list_unsent(conn_idx);
        if let Some(exchange) = opener {
            self.reserve_slot(recorder, conn_idx, exchange);
        }
    }

    /// A part of the exchange table for a connection that carries more requests than it has places of its own.
    fn take_wide_part(&mut self, recorder: &mut ShardRecorder) -> u32 {
        self.wide_parts.pop().unwrap_or_else(|| self.add_places(recorder, self.limits.h2_stride))
    }

    /// More places in the exchange table; returns the first of them.
    pub(in crate::shard) fn add_places(&mut self, recorder: &mut ShardRecorder, count: u32) -> u32 {
        let first_place = self.exchanges.len();
        self.exchanges.resize(first_place + count as usize, Exchange::default());
        recorder.sink.set_place_count(self.exchanges.len());
        first_place as u32
    }

    pub(in crate::shard) fn new_client(&self, conn_idx: usize) -> Client {
        if self.conns[conn_idx].cold.quic.is_some() {
            let table_bytes = self.prepared.load.connections.quic.table_bytes;
            // A few bytes of each connection, the same in each run: servers must ignore the setting (RFC 9114 7.2.4.1).
            let grease = Some(conn_idx as u32 % GREASE_COUNT);
            let setup = h3::Setup { table_bytes, grease, ..h3::Setup::new(self.limits.stream_count) };
            return Client::H3(Box::new(h3::Client::new(setup)));
        }
        if !self.speaks_h2(conn_idx) {
            return Client::H1(h1::Client::new(self.limits.depth));
        }
        let policy = &self.prepared.load.connections;
        let setup = Setup {
            stream_count: self.limits.stream_count,
            window_bytes: policy.window_bytes,
            connection_window_bytes: policy.connection_window_bytes,
        };
        let is_upgraded = self.prepared.origins[self.conns[conn_idx].origin_idx as usize].is_upgraded();
        let new = if is_upgraded { h2::Client::upgraded } else { h2::Client::new };
        Client::H2(Box::new(new(setup)))
    }

    fn speaks_h2(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        match (&conn.tls, self.prepared.origins[conn.origin_idx as usize].key.http) {
            (None, asked) => asked == HttpVersion::Http2,
            (Some(session), _) => session.alpn() == Some(b"h2"),
        }
    }

    /// Puts a request on an open connection, which has a free slot; it goes out with the turn.
    pub(in crate::shard) fn reserve_slot(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        exchange: Exchange,
    ) {
        let Some(client) = &mut self.conns[conn_idx].client else { return };
        let slot = client.reserve().expect("the caller has seen that a slot is free");
        // The request that had the slot before may have been answered while a later one was still being written.
        if let Some(held) = &mut self.conns[conn_idx].held {
            held.ending.retain(|ending| *ending != slot);
        }
        let place = self.place_of(conn_idx, slot);
        self.exchanges[place] = exchange;
        self.deadlines[conn_idx] = self.deadlines[conn_idx].min(self.deadline_of(&exchange));
        recorder.sink.keep_body(place, self.body_bytes_max(&exchange));
        if exchange.request.dynamic_idx().is_some() {
            let stream = self.stream_of(&exchange, conn_idx, slot);
            recorder.sink.set_stream(place, stream);
            if let Some((user, token, key)) = stream {
                let (at_ns, news) = (self.now_ns, StreamNews::Open);
                self.made.port.events.push(StreamReport { user, token, key, at_ns, news });
            }
        }
        self.list_unsent(conn_idx);
    }

    /// The place of a connection's slot in the exchange table.
    pub(in crate::shard) fn place_of(&self, conn_idx: usize, slot: u32) -> usize {
        self.conns[conn_idx].first_place as usize + slot as usize
    }

    /// Slots of the requests in flight on a connection, the oldest first.
    pub(in crate::shard) fn slots(&self, conn_idx: usize) -> Vec<u32> {
        let conn = &self.conns[conn_idx];
        if self.is_carrier(conn_idx) {
            // Its streams are WebSockets, which have slots of their own in the table of connections.
            return Vec::new();
        }
        let mut slots = conn.client.as_ref().map_or_else(Vec::new, Client::slots);
        slots.extend(conn.has_opener.then_some(0));
        slots
    }

    /// The server does not accept header lists of this size: the request fails without being sent.
    pub(in crate::shard) fn refuse_request(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
        field_bytes: usize,
    ) {
        let exchange = self.exchanges[self.place_of(conn_idx, slot)];
        let conn = &mut self.conns[conn_idx];
        let version = conn.client.as_ref().map_or(Version::H2, Client::version);
        if let Some(client) = &mut conn.client {
            client.cancel(slot);
        }
        if conn.cold.refusals.note(conn.served_count) {
            // Its next connection waits as after one that failed: a server that takes nothing is not asked without a pause.
            conn.is_retiring = true;
            conn.cold.failure_count = conn.cold.failure_count.saturating_add(1);
        }
        let text = format!(
            "the request's fields have {field_bytes} bytes, more than the server's {}",
            field_limit_name(version)
        );
        self.settle_alone(schedule, recorder, (conn_idx, slot), &exchange, Cause::HeadTooLarge, text);
    }

    /// A request has ended without a response. What the server has not processed is sent again, elsewhere or here.
    pub(in crate::shard) fn fail_alone(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
        failure: StreamFailure,
    ) {
        let exchange = self.exchanges[self.place_of(conn_idx, slot)];
        let is_unprocessed = matches!(failure, StreamFailure::Unprocessed(_));
        if is_unprocessed && u32::from(exchange.retry_count) < REFUSED_RETRY_COUNT_MAX {
            self.send_again(recorder, conn_idx, vec![exchange]);
            if self.has_free_slot(conn_idx) {
                self.list_idle(conn_idx);
            }
            return;
        }
        let Trouble { cause, text, .. } = Trouble::stream(failure, Phase::Receiving);
        self.settle_alone(schedule, recorder, (conn_idx, slot), &exchange, cause, text);
    }

    /// Counts the failure of a request whose slot is free already.
    fn settle_alone(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        cause: Cause,
        text: String,
    ) {
        let phase = phase_of(exchange, true, Phase::Receiving);
        self.settle(schedule, recorder, (conn_idx, slot), exchange, 0, Err(Trouble::new(cause, phase, text)));
        self.turn.ready.push(conn_idx as u32);
    }

    /// Ends the requests whose time is up: alone where the connection allows that. When the peer was silent for all of that time, the connection
    /// takes no more.
    pub(in crate::shard) fn end_late_requests(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        self.deadlines[conn_idx] = u64::MAX;
        for slot in self.slots(conn_idx) {
            let exchange = self.exchanges[self.place_of(conn_idx, slot)];
            let place = self.place_of(conn_idx, slot);
            let timeout_ns = self.limits.timeout_ns;
            let streams = recorder.sink.streams.as_ref().filter(|_| exchange.start_ns > 0);
            let stream_ns = streams.and_then(|streams| streams.deadline(place, timeout_ns));
            let end_ns = stream_ns.unwrap_or_else(|| self.deadline_of(&exchange));
            if self.now_ns < end_ns {
                self.deadlines[conn_idx] = self.deadlines[conn_idx].min(end_ns);
                continue;
            }
            if stream_ns.is_some() {
                schedule.on_stream_due(self, recorder, (conn_idx, slot));
                continue;
            }
            let conn = &mut self.conns[conn_idx];
            let Some(client) = conn.client.as_mut().filter(|client| client.can_cancel()) else {
                return self.fail(
                    schedule,
                    recorder,
                    conn_idx,
                    &Trouble::new(Cause::Timeout, Phase::Receiving, String::new()),
                );
            };
            client.cancel(slot);
            conn.is_retiring |= conn.cold.heard_ns < exchange.begin_ns();
            self.settle_alone(schedule, recorder, (conn_idx, slot), &exchange, Cause::Timeout, String::new());
        }
        if self.conns[conn_idx].state != ConnState::Open {
            return;
        }
        self.list_unsent(conn_idx);
        self.close_when_over(schedule, recorder, conn_idx);
    }

    /// A stream has to be looked at before the deadline that was known: it is at its end.
    pub(in crate::shard) fn hasten(&mut self, recorder: &ShardRecorder, conn_idx: usize, place: usize) {
        let streams = recorder.sink.streams.as_ref().filter(|streams| streams.is_urgent(place));
        if let Some(at_ns) = streams.and_then(|streams| streams.deadline(place, self.limits.timeout_ns)) {
            self.deadlines[conn_idx] = self.deadlines[conn_idx].min(at_ns);
        }
    }

    /// A request is over whose response is not whole: it is given up alone where the connection allows that, else with its connection, on which
    /// there is no other.
    pub(in crate::shard) fn give_up_slot(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
    ) {
        match self.conns[conn_idx].client.as_mut().filter(|client| client.can_cancel()) {
            Some(client) => {
                client.cancel(slot);
                self.list_unsent(conn_idx);
            }
            None => {
                self.part(recorder, conn_idx);
                self.vacate(recorder, conn_idx);
            }
        }
    }

    /// The peer goes away: what it has not processed is sent again on another connection, whatever its method (RFC 9113 6.8).
    pub(in crate::shard) fn take_back_unprocessed(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let mut again = Vec::new();
        while let Some(client) = &mut self.conns[conn_idx].client
            && let Some(slot) = client.next_unprocessed()
        {
            let code = client.goaway_code().unwrap_or(ErrorCode::NO_ERROR);
            let exchange = self.exchanges[self.place_of(conn_idx, slot)];
            if u32::from(exchange.retry_count) < REFUSED_RETRY_COUNT_MAX {
                again.push(exchange);
            } else {
                self.fail_alone(schedule, recorder, conn_idx, slot, StreamFailure::Unprocessed(code));
            }
        }
        self.send_again(recorder, conn_idx, again);
    }

    /// Closes a connection that takes no more requests and owes no response.
    pub(in crate::shard) fn close_when_over(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.conns[conn_idx].is_over() {
            self.close(schedule, recorder, conn_idx);
        }
    }

    /// After a response: a connection that is spent or old takes no more requests.
    pub(in crate::shard) fn retire_when_due(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let is_spent = self.conns[conn_idx].served_count >= self.limits.served_max || self.is_old(conn_idx);
        let is_due = is_spent || self.moves_to_alternative(conn_idx);
        self.conns[conn_idx].is_retiring |= is_due;
        self.close_when_over(schedule, recorder, conn_idx);
    }
}

/// The setting by which a server limits the fields of a request (RFC 9113 6.5.2, RFC 9114 7.2.4.1).
const fn field_limit_name(version: Version) -> &'static str {
    match version {
        Version::H1 | Version::H2 => "SETTINGS_MAX_HEADER_LIST_SIZE",
        Version::H3 => "SETTINGS_MAX_FIELD_SECTION_SIZE",
    }
}

/// Where what is counted of a version with streams goes; `None`: it has none.
pub(in crate::shard) fn stream_figures(recorder: &mut ShardRecorder, version: Version) -> Option<&mut Http2> {
    let snapshot = &mut recorder.pulse.snapshot;
    match version {
        Version::H1 => None,
        Version::H2 => Some(&mut snapshot.http2),
        Version::H3 => Some(&mut snapshot.http3),
    }
}

/// Of the reserved settings of HTTP/3, how many are sent by turns: these are short.
const GREASE_COUNT: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_the_name_of_its_protocol() {
        assert_eq!(field_limit_name(Version::H2), "SETTINGS_MAX_HEADER_LIST_SIZE");
        assert_eq!(field_limit_name(Version::H3), "SETTINGS_MAX_FIELD_SECTION_SIZE");
    }
}
