//! What the shard's loop asks of a replay: what starts now, how a request ended, what a response said.

use std::rc::Rc;

use squall_measure::{LearnedValue, Replay as Figures};
use squall_plan::{Compare, ReplayPace};
use squall_traffic::compare::same_body;
use squall_traffic::play::{Expected, ResponseText};
use squall_wire::h1::Response;

use super::{Flight, Taken};
use crate::prepare::{PreparedRequest, StreamPolicy};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Exchange, RequestId};
use crate::shard::recorder::ShardRecorder;
use crate::shard::recorder::capture::Place;
use crate::shard::recorder::streams::StreamTable;
use crate::shard::schedule::{Life, ShardSchedule};

impl ShardSchedule {
    /// Starts all recorded requests that are due by their own times.
    pub(in crate::shard) fn release_recorded(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let at_ns = connections.now_ns.saturating_sub(self.times.start_ns);
        loop {
            let Some(replay) = &mut self.replay else { return };
            let is_full = replay.is_full(connections.waiting_count());
            let due = if is_full { None } else { replay.next_release_ns() };
            // What waits is looked at again when something has ended, which wakes the loop.
            self.demand.set_recorded(due, replay.is_ended);
            let Some(release_ns) = due.filter(|release_ns| *release_ns <= at_ns) else { return };
            if self.demand.is_used_up() {
                return;
            }
            let taken = self.next_recorded(connections, None, self.times.start_ns + release_ns);
            if matches!(taken, Taken::Go(_) | Taken::Later) {
                self.demand.take_recorded(release_ns);
            }
            if let Taken::Go(exchange) = taken
                && self.place_recorded(connections, recorder, exchange)
            {
                // As for all arrivals: late is what comes behind the grid of the pacing that was asked for.
                let late_ns = connections.now_ns.saturating_sub(self.times.start_ns + release_ns);
                recorder.pulse.snapshot.generator.schedule_lag.record(late_ns);
            }
        }
    }

    /// Starts requests that need not wait for others any longer.
    pub(in crate::shard) fn start_released(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        while self.life == Life::Running
            && self.replay.as_ref().is_some_and(|replay| !replay.released.is_empty())
        {
            let idx = connections.free_dynamic();
            let (Some(replay), Some(request)) = (&mut self.replay, own(&mut connections.made.requests[idx]))
            else {
                return;
            };
            let Some(flight) = replay.take_released(request) else {
                connections.made.free.push(idx);
                return;
            };
            let intended_ns = self.times.start_ns + replay.on_grid(flight.meta.due_ns);
            replay.keep_flight(idx, flight);
            let request = RequestId::dynamic(idx);
            self.place_recorded(
                connections,
                recorder,
                Exchange { request, intended_ns, ..Exchange::default() },
            );
        }
    }

    /// The next recorded request: of the copy whose last one has ended in a closed model, else the one that is due first.
    pub(in crate::shard) fn next_recorded(
        &mut self,
        connections: &mut Connections,
        walk: Option<u32>,
        intended_ns: u64,
    ) -> Taken<Exchange> {
        let idx = connections.free_dynamic();
        let (Some(replay), Some(request)) = (&mut self.replay, own(&mut connections.made.requests[idx]))
        else {
            return Taken::Nothing;
        };
        let is_by_load = walk.is_none() && replay.prepared.plan.pace == ReplayPace::Load;
        let due_ns = is_by_load.then(|| intended_ns.saturating_sub(self.times.start_ns));
        let taken = match replay.take_next(walk, due_ns, request) {
            Taken::Go(flight) => {
                replay.keep_flight(idx, flight);
                let request = RequestId::dynamic(idx);
                return Taken::Go(Exchange { request, intended_ns, ..Exchange::default() });
            }
            Taken::Later => Taken::Later,
            Taken::Unreadable => Taken::Unreadable,
            Taken::Nothing => Taken::Nothing,
        };
        connections.made.free.push(idx);
        taken
    }

    /// Closed model: the next request of a copy that has none in flight; `None` when every copy is at its end.
    pub(in crate::shard) fn next_of_copies(&mut self, connections: &mut Connections) -> Option<Exchange> {
        // A recording of which nothing can be read is not looped over for ever.
        let mut unreadable_left = self.replay.as_ref()?.prepared.recording.index().record_count;
        loop {
            let walk = self.replay.as_mut()?.ready_walks.pop_front()?;
            match self.next_recorded(connections, Some(walk), connections.now_ns) {
                Taken::Go(exchange) => return Some(exchange),
                Taken::Unreadable if unreadable_left > 0 => {
                    unreadable_left -= 1;
                    self.replay.as_mut()?.ready_walks.push_front(walk);
                }
                _ => {}
            }
        }
    }

    /// The request of an arrival whose time the recording does not say.
    pub(in crate::shard) fn next_of_recording(
        &mut self,
        connections: &mut Connections,
        intended_ns: u64,
    ) -> Taken<Exchange> {
        let Some(replay) = &mut self.replay else { return Taken::Nothing };
        if replay.is_full(connections.waiting_count()) && replay.next_release_ns().is_some() {
            self.demand.note_unsent(1);
            return Taken::Later;
        }
        let taken = self.next_recorded(connections, None, intended_ns);
        if matches!(taken, Taken::Nothing) {
            self.demand.exhaust();
        }
        taken
    }

    /// Gives a request the connection that stands for its recorded one, or any; whether it got one at once.
    pub(in crate::shard) fn place_recorded(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        exchange: Exchange,
    ) -> bool {
        let origin_idx = connections.request(exchange.request).origin_idx;
        let line =
            self.replay.as_ref().filter(|replay| replay.prepared.plan.keeps_connections).and_then(|replay| {
                let flight = replay.flights.get(exchange.request.dynamic_idx()?)?.as_ref()?;
                // A WebSocket has a connection of its own.
                flight.meta.line(origin_idx).filter(|_| flight.opening.is_none())
            });
        let Some(line) = line else { return connections.place(self, recorder, exchange) };
        let known = self.replay.as_ref().and_then(|replay| replay.lines.slot(line));
        if let Some(conn_idx) = known.filter(|conn_idx| connections.has_free_slot(*conn_idx)) {
            connections.assign(self, recorder, conn_idx, exchange);
            return true;
        }
        match connections.fresh_slot(self, recorder, origin_idx as usize) {
            Some(conn_idx) => {
                if let Some(replay) = &mut self.replay {
                    replay.lines.set(line, conn_idx);
                }
                connections.assign(self, recorder, conn_idx, exchange);
                true
            }
            None => {
                connections.pools[origin_idx as usize].waiting.push_back(exchange);
                connections.counts.waiting += 1;
                false
            }
        }
    }

    /// A recorded request begins to be written.
    pub(in crate::shard) fn begin_recorded(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        place: Place,
        request: RequestId,
        is_warmup: bool,
    ) {
        let Some(replay) = &mut self.replay else { return };
        let Some(idx) = request.dynamic_idx() else { return };
        let Some(Some(flight)) = replay.flights.get_mut(idx) else { return };
        let reads = replay.prepared.reads_response(flight.meta.ordinal, flight.meta.frame.row)
            || flight.opening.is_some();
        recorder.sink.captures.set(place, reads);
        if let Some(stream) = flight.stream {
            let (place, now_ns) = (connections.place_of(place.0, place.1), connections.now_ns);
            let exchange = &connections.exchanges[place];
            let begin_ns = if recorder.pulse.is_open_model() { exchange.intended_ns } else { now_ns };
            let new = || Box::new(StreamTable::new(StreamPolicy::recorded()));
            let table = recorder.sink.streams.get_or_insert_with(new);
            table.begin_recorded(place, (begin_ns, now_ns, is_warmup), stream);
        }
        if flight.is_begun || is_warmup {
            return;
        }
        flight.is_begun = true;
        let figures = recorder.pulse.snapshot.replay.get_or_insert_default();
        figures.corrected += u64::from(flight.is_corrected);
        if flight.meta.walk.is_none() {
            figures.note_start(connections.now_ns.saturating_sub(self.times.start_ns + flight.meta.due_ns));
        }
    }

    /// The status that the recording has for this request; `None` where it has none, or statuses are not compared.
    pub(in crate::shard) fn recorded_status(&self, exchange: &Exchange) -> Option<u16> {
        let replay = self.replay.as_ref()?;
        let flight = replay.flights.get(exchange.request.dynamic_idx()?)?.as_ref()?;
        (replay.prepared.plan.compare != Compare::Nothing && flight.status != 0).then_some(flight.status)
    }

    /// A response is whole: it is compared with the recorded one, and its values are learned.
    pub(in crate::shard) fn hear_recorded(
        &mut self,
        recorder: &mut ShardRecorder,
        place: Place,
        exchange: &Exchange,
        response: &Response,
    ) {
        let recorded_status = self.recorded_status(exchange);
        let Some(replay) = &mut self.replay else { return };
        let Some(idx) = exchange.request.dynamic_idx() else { return };
        let Some(Some(flight)) = replay.flights.get(idx) else { return };
        let captured = recorder.sink.captures.take(place);
        let mut is_same = recorded_status.is_none_or(|status| status == response.status);
        if let (Some(recorded), Some(captured)) = (&flight.recorded, &captured)
            && !captured.is_cut
        {
            is_same &=
                same_body(recorded, &captured.body, captured.header("content-encoding")).unwrap_or(true);
        }
        if let Some(status) = recorded_status.filter(|_| !exchange.is_warmup) {
            let row_idx = replay.prepared.rows_of(flight.meta.frame.row).unsent();
            let figures = recorder.pulse.snapshot.replay.get_or_insert_default();
            figures.note_compared(row_idx, status, response.status, is_same);
        }
        if let Some(captured) = captured {
            let text = ResponseText { headers: &captured.headers, body: &captured.body };
            replay.learn(idx, &text);
        }
    }

    /// An event stream is left that its recorded client had left, too: only its status is compared.
    pub(in crate::shard) fn leave_recorded(
        &mut self,
        recorder: &mut ShardRecorder,
        place: Place,
        exchange: &Exchange,
        status: u16,
    ) {
        recorder.sink.captures.take(place);
        self.hear_recorded(
            recorder,
            place,
            exchange,
            &Response { status, keep_alive: false, body_bytes: 0, interim_count: 0 },
        );
    }

    /// A recorded request has ended, one way or the other.
    pub(in crate::shard) fn end_recorded(&mut self, idx: usize) {
        if let Some(replay) = &mut self.replay {
            replay.finish(idx);
        }
    }

    /// Nothing more starts: what was due is skipped, with so many more that wait for a connection.
    pub(in crate::shard) fn skip_recorded(&mut self, recorder: &mut ShardRecorder, waiting_count: u64) {
        let Some(replay) = &mut self.replay else { return };
        let skipped = replay.pending_count() as u64 + waiting_count;
        replay.released.clear();
        replay.held_bytes = 0;
        if skipped > 0 {
            recorder.pulse.snapshot.replay.get_or_insert_default().skipped += skipped;
        }
    }

    /// Whether the recording is at its end, for every copy.
    pub(in crate::shard) fn has_played_all(&self) -> bool {
        let Some(replay) = &self.replay else { return false };
        let is_idle = replay.flights.iter().all(Option::is_none);
        replay.is_ended || is_idle && replay.ready_walks.is_empty()
    }

    /// Requests that wait for others.
    pub(in crate::shard) fn pending_recorded(&self) -> usize {
        self.replay.as_ref().map_or(0, |replay| replay.pending_count())
    }

    /// Reports what was learned (the first shard does), at the beginning; and what could not be read, at the end.
    pub(in crate::shard) fn tell_recorded(&mut self, recorder: &mut ShardRecorder) {
        let Some(replay) = &mut self.replay else { return };
        let figures = recorder.pulse.snapshot.replay.get_or_insert_default();
        figures.unreadable += std::mem::take(&mut replay.unreadable_count);
        tell_learned(figures, replay);
    }
}

fn tell_learned(figures: &mut Figures, replay: &super::Replay) {
    let learned =
        replay.prepared.learned.variables.iter().take(LEARNED_TOLD_MAX).map(|variable| LearnedValue {
            place: variable.locator.to_string(),
            source: variable.source.clone(),
            use_count: variable.use_count,
        });
    figures.learned = learned.collect();
    figures.looked_through = replay.prepared.learned.looked_through.unwrap_or_default();
}

impl super::Replay {
    /// Takes the live values out of a response that the recording says has some.
    fn learn(&mut self, idx: usize, text: &ResponseText<'_>) {
        let Some(Some(Flight { meta, expected, .. })) = self.flights.get_mut(idx) else { return };
        for Expected { recorded, locator } in std::mem::take(expected) {
            if let Some(value) = text.find(&locator) {
                self.live.set(meta.session, recorded, value);
            }
        }
    }
}

/// Learned values shown in reports.
const LEARNED_TOLD_MAX: usize = 100;

/// A recorded request's place belongs to it alone.
fn own(place: &mut Option<Rc<PreparedRequest>>) -> Option<&mut PreparedRequest> {
    place.as_mut().and_then(Rc::get_mut)
}
