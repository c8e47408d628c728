//! The ends of streams: which are counted when, which are cut, and which are opened again.

use std::cmp::Reverse;
use std::rc::Rc;

use squall_measure::{Cause, Phase};

use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Exchange, RequestId};
use crate::shard::recorder::ShardRecorder;
use crate::shard::recorder::streams::{EventStreamEnd, StreamDue, coded};
use crate::shard::schedule::{Life, ShardSchedule};
use crate::trouble::Trouble;

impl ShardSchedule {
    /// A request of the place has ended, and is counted now: so is its stream.
    pub(in crate::shard) fn end_stream(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        place: usize,
        exchange: &Exchange,
        end: EventStreamEnd,
    ) {
        let Some(table) = &mut recorder.sink.streams else { return };
        if let Some(streams) = self.streams.as_mut().filter(|streams| streams.reconnects)
            && end != EventStreamEnd::Cut
        {
            let request = connections.request(exchange.request);
            // What failed before it was sent goes on where it was to.
            let unsent = || request.resumption.as_deref().cloned().unwrap_or_default();
            let resumption = table.resumption(place).unwrap_or_else(unsent);
            let at_ns = connections.now_ns.saturating_add(resumption.pause_ns());
            if let Some(resumed) = connections.prepared.resumed(request, resumption) {
                let request = connections.keep_dynamic(Rc::new(resumed));
                streams.ended.push((at_ns, request));
            }
        }
        table.end(place, end, (exchange.is_warmup, connections.now_ns));
    }

    /// Opens again what has waited long enough.
    pub(in crate::shard) fn release_streams(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        while let Some(streams) = &mut self.streams
            && streams.next_due_ns() <= connections.now_ns
            && let Some(Reverse((_, id))) = streams.resting.pop()
        {
            let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
            let request = RequestId(id);
            let is_wanted = self.life == Life::Running && self.demand.missing_users(at_ns) >= 0;
            if !is_wanted || !self.demand.take_one(at_ns) {
                self.demand.add_users(-1);
                connections.made.free.extend(request.dynamic_idx());
                continue;
            }
            if let Some(table) = &mut recorder.sink.streams {
                table.note_reconnect(connections.now_ns < connections.limits.warm_until_ns);
            }
            let intended_ns = connections.now_ns;
            connections.place(self, recorder, Exchange { request, intended_ns, ..Exchange::default() });
        }
    }

    /// The load is over: what would go on is closed, once it has had an event, and nothing is opened again.
    pub(in crate::shard::schedule) fn cut_streams(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let Some(streams) = &mut self.streams else { return };
        for Reverse((_, id)) in std::mem::take(&mut streams.resting) {
            connections.made.free.extend(RequestId(id).dynamic_idx());
        }
        if streams.finishes {
            return;
        }
        for conn_idx in 0..connections.conns.len() {
            for slot in connections.slots(conn_idx) {
                let place = connections.place_of(conn_idx, slot);
                if recorder.sink.streams.as_ref().is_some_and(|table| table.has_events(place)) {
                    self.cut_stream(connections, recorder, (conn_idx, slot));
                }
            }
        }
    }

    /// A stream that has had an event is closed, because the load is over.
    fn cut_stream(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
    ) {
        let place = connections.place_of(conn_idx, slot);
        let exchange = connections.exchanges[place];
        self.end_stream(connections, recorder, place, &exchange, EventStreamEnd::Cut);
        connections.interrupt(recorder, conn_idx, &exchange);
        connections.give_back(&exchange);
        connections.give_up_slot(recorder, conn_idx, slot);
    }

    /// The deadline of a stream is over: it was held as long as was wanted, or has failed.
    pub(in crate::shard) fn on_stream_due(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
    ) {
        let place = connections.place_of(conn_idx, slot);
        let exchange = connections.exchanges[place];
        let Some(table) = &recorder.sink.streams else { return };
        let due = table.due(place, connections.now_ns);
        if let StreamDue::Over(status) = due {
            self.leave_recorded(recorder, (conn_idx, slot), &exchange, status);
        }
        let (status, outcome) = match due {
            StreamDue::Over(status) => (status, Ok(())),
            StreamDue::TooLarge => {
                let text = "an event is larger than 16 MiB".to_owned();
                (0, Err(Trouble::new(Cause::MessageTooLarge, Phase::Receiving, text)))
            }
            StreamDue::Coded => (0, Err(coded())),
            StreamDue::Silent => {
                let phase = if exchange.first_ns == 0 { Phase::Waiting } else { Phase::Receiving };
                (0, Err(Trouble::new(Cause::Timeout, phase, String::new())))
            }
        };
        connections.settle(self, recorder, (conn_idx, slot), &exchange, status, outcome);
        connections.turn.ready.push(conn_idx as u32);
        connections.give_up_slot(recorder, conn_idx, slot);
    }
}
