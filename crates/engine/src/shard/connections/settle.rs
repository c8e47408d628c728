//! How each request ends: exactly once, as a success, a failure with one cause, or interrupted.

use std::rc::Rc;

use squall_measure::{Cause, Outcome, Phase, Phases, Sample};
use squall_plan::{CloseMode, ExpectBody};
use squall_wire::Client;
use squall_wire::h1::Response;
use squall_wire::h2::ErrorCode;

use crate::driver::stream::StreamNews;
use crate::prepare::PreparedRequest;
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange, RequestId};
use crate::shard::recorder::ShardRecorder;
use crate::shard::recorder::streams::EventStreamEnd;
use crate::shard::schedule::Life;
use crate::shard::schedule::ShardSchedule;
use crate::sys::{reset_on_close, send};
use crate::trouble::Trouble;

impl Connections {
    /// A whole response: it is judged and counted, and the connection is kept or closed.
    pub(in crate::shard) fn complete(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
        response: &Response,
    ) {
        if schedule.sessions.is_some() {
            return schedule.on_session_response(self, recorder, (conn_idx, slot), response);
        }
        let exchange = self.exchanges[self.place_of(conn_idx, slot)];
        if schedule.driven.is_some()
            && let Some(offer) = self.offer_of(&exchange)
        {
            return self.open_held(schedule, recorder, (conn_idx, slot), &offer, response);
        }
        if schedule.replay.is_some()
            && schedule.opens_recorded(self, recorder, (conn_idx, slot), &exchange, response)
        {
            return;
        }
        self.conns[conn_idx].expects_large_body = response.body_bytes >= LARGE_BODY_BYTES;
        let hop = self.conclude(schedule, recorder, conn_idx, slot, &exchange, response);
        self.retire_when_due(schedule, recorder, conn_idx);
        self.go_on(conn_idx, hop);
    }

    /// Judges and counts a whole response; returns the next hop, where it is a redirect that is to be followed.
    fn conclude(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        slot: u32,
        exchange: &Exchange,
        response: &Response,
    ) -> Option<Exchange> {
        let conn = &mut self.conns[conn_idx];
        if conn.served_count == 0 {
            conn.cold.failure_count = 0;
        }
        conn.served_count += 1;
        self.follow_announcement(recorder, conn_idx, response.status);
        let next = self.redirect(recorder, (conn_idx, slot), exchange, response.status);
        let outcome = match &next {
            Some(Err(trouble)) => Err(trouble.clone()),
            Some(Ok(_)) => Ok(()),
            None => self.judge(schedule, recorder, (conn_idx, slot), exchange, response),
        };
        schedule.hear_recorded(recorder, (conn_idx, slot), exchange, response);
        schedule.waiter.note_response(self.now_ns.saturating_sub(exchange.start_ns));
        self.settle(schedule, recorder, (conn_idx, slot), exchange, response.status, outcome);
        next.and_then(Result::ok)
    }

    /// After a response: the redirect's next hop, or the user's next request in its turn.
    fn go_on(&mut self, conn_idx: usize, hop: Option<Exchange>) {
        match hop {
            Some(hop) => {
                self.list_if_open(conn_idx);
                self.turn.hops.push(hop);
            }
            None => self.turn.ready.push(conn_idx as u32),
        }
    }

    /// The next hop, where the response is a redirect that is to be followed.
    fn redirect(
        &mut self,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        status: u16,
    ) -> Option<Result<Exchange, Trouble>> {
        let follow_count_max = self.prepared.http().follow_count_max;
        if follow_count_max == 0 || !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = recorder.sink.take(conn_idx, slot);
        if u32::from(exchange.redirect_count) >= follow_count_max {
            let text = format!(
                "more than {follow_count_max} redirects, the last to `{}`",
                location.unwrap_or_default()
            );
            return Some(Err(Trouble::new(Cause::TooManyRedirects, Phase::Receiving, text)));
        }
        let request = self.request(exchange.request);
        Some(match self.prepared.redirected(request, status, location.as_deref()) {
            Ok(request) => {
                let request = self.keep_dynamic(Rc::new(request));
                let redirect_count = exchange.redirect_count + 1;
                let (intended_ns, is_warmup) = (self.now_ns, exchange.is_warmup);
                Ok(Exchange { request, intended_ns, redirect_count, is_warmup, ..Exchange::default() })
            }
            Err(problem) => Err(Trouble::new(Cause::BadRedirect, Phase::Receiving, problem)),
        })
    }

    pub(in crate::shard) fn keep_dynamic(&mut self, request: Rc<PreparedRequest>) -> RequestId {
        let idx = self.made.free.pop().unwrap_or_else(|| {
            self.made.requests.push(None);
            self.made.requests.len() - 1
        });
        self.made.requests[idx] = Some(request);
        RequestId::dynamic(idx)
    }

    /// Whether a whole response is what the plan expects.
    pub(in crate::shard) fn judge(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        response: &Response,
    ) -> Result<(), Trouble> {
        if let Some(judged) = self.judge_call(recorder, self.place_of(conn_idx, slot), exchange, response) {
            return judged;
        }
        let expect = &self.prepared.http().expect;
        let status = response.status;
        let is_expected = match schedule.recorded_status(exchange) {
            Some(recorded) => recorded == status,
            None => expect.status.iter().any(|(first, last)| (*first..=*last).contains(&status)),
        };
        if !is_expected {
            return Err(Trouble::new(Cause::UnexpectedStatus, Phase::Receiving, String::new()));
        }
        let place = self.place_of(conn_idx, slot);
        recorder.sink.streams.as_mut().map_or(Ok(()), |streams| streams.finish(place))?;
        let expected = match expect.body {
            ExpectBody::Any => return Ok(()),
            ExpectBody::Bytes(bytes) => bytes,
            ExpectBody::SameLength => recorder.learned_length(exchange, response.body_bytes),
        };
        if expected == response.body_bytes {
            return Ok(());
        }
        let text = format!("a body of {} bytes, not {expected}", response.body_bytes);
        Err(Trouble::new(Cause::UnexpectedLength, Phase::Receiving, text))
    }

    /// Something went wrong with a connection: its oldest request fails, unless it may be sent again; so do the others on it.
    pub(in crate::shard) fn fail(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        trouble: &Trouble,
    ) {
        if self.is_carrier(conn_idx) {
            return self.fail_carrier(schedule, recorder, conn_idx, trouble);
        }
        if schedule.lose_kept(self, recorder, conn_idx, trouble)
            || self.fall_back(schedule, recorder, conn_idx, trouble)
        {
            return;
        }
        if self.conns[conn_idx].cold.held_by.is_some() {
            self.report(conn_idx, StreamNews::Closed(Some(trouble.clone())));
        }
        let conn = &self.conns[conn_idx];
        let was_open = conn.state == ConnState::Open;
        let is_in_order = conn.client.as_ref().is_some_and(Client::answers_in_order);
        let is_reused = conn.served_count > 0;
        if !was_open && trouble.cause == Cause::OutOfResources {
            self.control.note_own_failure();
        }
        let mut retries = Vec::new();
        for (nth, slot) in self.slots(conn_idx).into_iter().enumerate() {
            let exchange = self.exchanges[self.place_of(conn_idx, slot)];
            // RFC 9112 9.3.1: behind the oldest one, a server that answers in order may not have processed anything.
            let is_behind = is_in_order && nth > 0 || exchange.start_ns == 0;
            let may_retry = was_open && (is_behind || is_reused && trouble.is_disconnect());
            if may_retry && self.is_retriable(&exchange) {
                retries.push(exchange);
                continue;
            }
            let trouble = Trouble { phase: phase_of(&exchange, was_open, trouble.phase), ..trouble.clone() };
            self.settle(schedule, recorder, (conn_idx, slot), &exchange, 0, Err(trouble));
            self.turn.ready.push(conn_idx as u32);
        }
        self.send_again(recorder, conn_idx, retries);
        schedule.note_session_end(self, conn_idx);
        self.vacate(recorder, conn_idx);
    }

    /// Requests that a connection has not answered wait for another one, before all others.
    pub(in crate::shard) fn send_again(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        exchanges: Vec<Exchange>,
    ) {
        let pool_idx = self.conns[conn_idx].pool_idx as usize;
        recorder.pulse.snapshot.requests_retried += exchanges.len() as u64;
        self.counts.waiting += exchanges.len() as u64;
        for exchange in exchanges.into_iter().rev() {
            self.pools[pool_idx].waiting.push_front(exchange.again());
        }
    }

    /// RFC 9112 9.3.1: a request may be sent again when it is idempotent and no byte of its answer came. Once.
    fn is_retriable(&self, exchange: &Exchange) -> bool {
        !exchange.is_retry() && exchange.first_ns == 0 && self.request(exchange.request).is_idempotent
    }

    /// Counts a request that has ended, and forgets it.
    pub(in crate::shard) fn settle(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        status: u16,
        outcome: Result<(), Trouble>,
    ) {
        self.counts.open -= 1;
        if recorder.sink.streams.is_some() {
            let end = if outcome.is_ok() { EventStreamEnd::Ok } else { EventStreamEnd::Failed };
            schedule.end_stream(self, recorder, self.place_of(conn_idx, slot), exchange, end);
        }
        // Its driver forgets the call as soon as its end is reported.
        let timeout_ns = if outcome.is_err() { self.timeout_of(exchange) } else { 0 };
        if schedule.driven.is_some() {
            let result = match &outcome {
                // Of a body that was too large nothing is left to be read.
                Err(trouble) if status == 0 || trouble.cause == Cause::UnexpectedLength => {
                    Err(trouble.clone())
                }
                _ => Ok(status),
            };
            schedule.tell(self, recorder, (conn_idx, slot), exchange, result);
        }
        if !exchange.is_warmup {
            let outcome = match outcome {
                Ok(()) => Outcome::Ok,
                Err(trouble) => {
                    let outcome = Outcome::Failed(trouble.cause, trouble.phase);
                    let row_idx = self.request(exchange.request).rows.unsent();
                    recorder.keep_example(self, row_idx, (status, timeout_ns), trouble);
                    outcome
                }
            };
            let sample = self.sample(recorder, conn_idx, exchange, status, outcome);
            recorder.pulse.record(&sample);
        }
        if let Some(idx) = exchange.request.dynamic_idx() {
            schedule.end_recorded(idx);
        }
        self.give_back(exchange);
    }

    /// Open requests by row: what is interrupted if the loop never comes back.
    pub(in crate::shard) fn open_rows(&self, recorder: &ShardRecorder) -> Vec<u64> {
        let mut counts = vec![0; recorder.pulse.snapshot.rows.len()];
        let on_connections = (0..self.conns.len())
            .flat_map(|conn_idx| self.slots(conn_idx).into_iter().map(move |slot| (conn_idx, slot)));
        let sent =
            on_connections.map(|(conn_idx, slot)| (conn_idx, &self.exchanges[self.place_of(conn_idx, slot)]));
        let waiting = self.pools.iter().flat_map(|pool| &pool.waiting).map(|exchange| (0, exchange));
        let open = sent.chain(waiting.filter(|(_, exchange)| exchange.is_retry()));
        for (conn_idx, exchange) in open.filter(|(_, exchange)| !exchange.is_warmup) {
            counts[self.row_idx(conn_idx, exchange) as usize] += 1;
        }
        counts
    }

    fn row_idx(&self, conn_idx: usize, exchange: &Exchange) -> u32 {
        let rows = self.request(exchange.request).rows;
        match &self.conns[conn_idx].client {
            Some(client) => rows.of(client.version()),
            None => rows.unsent(),
        }
    }

    pub(in crate::shard) fn sample(
        &self,
        recorder: &ShardRecorder,
        conn_idx: usize,
        exchange: &Exchange,
        status: u16,
        outcome: Outcome,
    ) -> Sample {
        let phases = self.phases(conn_idx, exchange);
        let latency_ns = match (recorder.pulse.is_open_model(), outcome) {
            (true, _) => self.now_ns.saturating_sub(exchange.intended_ns),
            // Opening a connection for its own sake is all that it takes.
            (false, _) if recorder.pulse.has_sessions => phases.total_ns() - phases.blocked_ns,
            // What was never sent took until its connection failed, less the rest that its user had before.
            (false, Outcome::Failed(..)) if exchange.start_ns == 0 => {
                self.now_ns.saturating_sub(exchange.assigned_ns)
            }
            (false, _) => phases.duration_ns(),
        };
        let row_idx = self.row_idx(conn_idx, exchange);
        let (bytes_sent, bytes_received) = (exchange.sent_bytes, exchange.received_bytes);
        Sample { row_idx, status, outcome, latency_ns, phases, bytes_sent, bytes_received }
    }

    /// k6's phases up to now. A time that was never reached gives an empty phase.
    pub(in crate::shard) fn phases(&self, conn_idx: usize, exchange: &Exchange) -> Phases {
        let conn = &self.conns[conn_idx];
        let end_ns = self.now_ns;
        let or = |time_ns: u64, later_ns: u64| if time_ns == 0 { later_ns } else { time_ns };
        let first_ns = or(exchange.first_ns, end_ns);
        let sent_ns = or(exchange.sent_ns, first_ns);
        let start_ns = or(exchange.start_ns, sent_ns);
        let is_tls = exchange.is_first && conn.is_secure();
        let free_ns = if exchange.is_first { exchange.assigned_ns } else { start_ns };
        let connected_ns = || or(conn.cold.connected_ns, end_ns);
        Phases {
            blocked_ns: free_ns.saturating_sub(exchange.intended_ns),
            connecting_ns: exchange.is_first.then(|| connected_ns().saturating_sub(conn.opened_ns)),
            tls_handshaking_ns: is_tls.then(|| or(conn.cold.ready_ns, end_ns).saturating_sub(connected_ns())),
            sending_ns: sent_ns.saturating_sub(start_ns),
            waiting_ns: first_ns.saturating_sub(sent_ns),
            receiving_ns: end_ns.saturating_sub(first_ns),
        }
    }

    /// Whether a connection has reached the most that it, or the keys of its TLS session, may live: it takes nothing more, and ends when nothing
    /// is on it.
    pub(in crate::shard) fn is_old(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        self.now_ns.saturating_sub(conn.opened_ns) >= self.limits.age_max_ns
            || conn.tls.as_ref().is_some_and(|session| session.is_worn())
    }

    /// Closes a connection from our side; requests that it still owes are sent again elsewhere, or fail.
    pub(in crate::shard) fn close(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.is_carrier(conn_idx) {
            return self.close_carrier(schedule, recorder, conn_idx);
        }
        if self.conns[conn_idx].in_flight() > 0 {
            return self.fail(schedule, recorder, conn_idx, &Trouble::closed(Phase::Waiting));
        }
        if schedule.sessions.is_some() {
            return schedule.on_session_eof(self, recorder, conn_idx);
        }
        if let Some(websocket) = &self.conns[conn_idx].cold.websocket {
            // Where our close frame was on its way, this is its answer.
            let trouble = (!websocket.is_closing).then(|| Trouble::closed(Phase::Receiving));
            self.report(conn_idx, StreamNews::Closed(trouble));
        }
        self.part(recorder, conn_idx);
        self.vacate(recorder, conn_idx);
    }

    /// What goes before a close from our side, as the plan wants it. Whether the peer still hears it is of no importance.
    pub(in crate::shard) fn part(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        self.drop_peeked(conn_idx);
        if self.conns[conn_idx].cold.quic.is_some() {
            return self.close_quic(recorder, conn_idx, ErrorCode::H3_NO_ERROR.0);
        }
        self.part_websocket(recorder, conn_idx);
        self.part_carried(conn_idx);
        match (self.limits.close, &self.conns[conn_idx].socket) {
            (CloseMode::Rst, Some(socket)) => {
                let _ = reset_on_close(socket);
            }
            (CloseMode::Notify, Some(socket)) => {
                if let Some(goodbye) = &self.conns[conn_idx].cold.goodbye {
                    let _ = send(socket, goodbye.bytes(), false);
                }
                self.write_goodbye(recorder, conn_idx, ErrorCode::NO_ERROR);
                if let Some(session) = &mut self.conns[conn_idx].tls {
                    session.send_close_notify();
                    let _ = self.flush_tls(recorder, conn_idx);
                }
            }
            (CloseMode::Fin, _) | (_, None) => {}
        }
    }

    /// The run is over: what is open is closed.
    pub(in crate::shard) fn part_with_all(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        let open = (0..self.conns.len()).filter(|conn_idx| self.conns[*conn_idx].state == ConnState::Open);
        let (carried, others): (Vec<_>, Vec<_>) = open.partition(|conn_idx| self.is_carried(*conn_idx));
        for conn_idx in carried {
            self.part(recorder, conn_idx);
            self.vacate(recorder, conn_idx);
        }
        if self.carries {
            // What ends streams precedes what ends their connections.
            self.send_unsent(schedule, recorder);
        }
        for conn_idx in others {
            self.part(recorder, conn_idx);
        }
    }

    /// A user has gone: the connection goes with it when nothing else is on it, and no request waits for one.
    pub(in crate::shard) fn retire(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let conn = &self.conns[conn_idx];
        if !self.pools[conn.pool_idx as usize].waiting.is_empty() {
            self.offer(schedule, recorder, conn_idx);
        } else if conn.state == ConnState::Open && conn.in_flight() == 0 && conn.cold.websocket.is_none() {
            self.close(schedule, recorder, conn_idx);
        }
    }

    fn list_if_open(&mut self, conn_idx: usize) {
        if self.has_free_slot(conn_idx) {
            self.list_idle(conn_idx);
        }
    }

    pub(in crate::shard) fn on_deadline(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let state = self.conns[conn_idx].state;
        match state {
            ConnState::Vacant => self.end_rest(conn_idx),
            ConnState::Connecting => self.end_late_opening(schedule, recorder, conn_idx, Phase::Connecting),
            ConnState::Tunnelling => self.end_late_opening(schedule, recorder, conn_idx, Phase::Tunnelling),
            ConnState::Handshaking => {
                self.end_late_opening(schedule, recorder, conn_idx, Phase::TlsHandshaking);
            }
            ConnState::Open if self.is_carrier(conn_idx) => {
                self.on_carrier_deadline(schedule, recorder, conn_idx);
            }
            ConnState::Open if schedule.on_session_deadline(self, recorder, conn_idx) => {}
            ConnState::Open => self.end_late_requests(schedule, recorder, conn_idx),
        }
    }

    /// The connection is not open in time, or the call that wants it has no time left.
    fn end_late_opening(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        phase: Phase,
    ) {
        let is_call_late = self.deadline_of_opener(conn_idx).is_some_and(|at_ns| at_ns <= self.now_ns);
        let cause = if is_call_late { Cause::Timeout } else { Cause::ConnectTimeout };
        self.fail(schedule, recorder, conn_idx, &Trouble::new(cause, phase, String::new()));
    }

    /// The run is cut off: what is open is counted as interrupted.
    pub(in crate::shard) fn interrupt_all(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        schedule.life = Life::Draining { until_ns: 0 };
        if let Some(sessions) = &mut schedule.sessions {
            sessions.drop_waiting();
        }
        for hop in std::mem::take(&mut self.turn.hops) {
            self.give_back(&hop);
        }
        for conn_idx in 0..self.conns.len() {
            // What was kept until now is ours to close at the end.
            if self.is_kept(conn_idx) || self.is_carrier(conn_idx) {
                continue;
            }
            for slot in self.slots(conn_idx) {
                let exchange = self.exchanges[self.place_of(conn_idx, slot)];
                self.interrupt(recorder, conn_idx, &exchange);
                self.give_back(&exchange);
            }
            self.vacate(recorder, conn_idx);
        }
        for origin_idx in 0..self.pools.len() {
            let waiting = std::mem::take(&mut self.pools[origin_idx].waiting);
            self.counts.waiting -= waiting.len() as u64;
            for exchange in waiting {
                if exchange.is_retry() {
                    self.interrupt(recorder, 0, &exchange);
                }
                self.give_back(&exchange);
            }
        }
    }

    /// The place of a request that was made at run time is free again.
    pub(in crate::shard) fn give_back(&mut self, exchange: &Exchange) {
        self.made.free.extend(exchange.request.dynamic_idx());
    }

    pub(in crate::shard) fn interrupt(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        exchange: &Exchange,
    ) {
        self.counts.open -= 1;
        if !exchange.is_warmup {
            let sample = self.sample(recorder, conn_idx, exchange, 0, Outcome::Interrupted);
            recorder.pulse.record(&sample);
        }
    }
}

/// Where the request was when its connection broke.
pub(in crate::shard) fn phase_of(exchange: &Exchange, was_open: bool, opening_phase: Phase) -> Phase {
    match (was_open, exchange.sent_ns, exchange.first_ns) {
        (false, ..) => opening_phase,
        (true, ..) if exchange.start_ns == 0 => Phase::Blocked,
        (true, _, 1..) => Phase::Receiving,
        (true, 0, 0) => Phase::Sending,
        (true, 1.., 0) => Phase::Waiting,
    }
}

/// A body from which the next read begins with the head alone.
const LARGE_BODY_BYTES: u64 = 16 * 1024;
