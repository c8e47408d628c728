//! Requests that a driver made, and the connections of its users.

use std::rc::Rc;
use std::sync::Arc;

use squall_measure::{Cause, Phase};
use squall_plan::HttpVersion;
use squall_wire::Version;
use squall_wire::h1::Response;

use crate::Error;
use crate::driver::stream::CallKind;
use crate::driver::{Call, Driver};
use crate::prepare::PreparedRequest;
use crate::shard::connections::Connections;
use crate::shard::connections::OriginState;
use crate::shard::connections::conn::{CallInFlight, ConnState, Exchange};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::{Detail, Trouble};

impl Connections {
    pub(in crate::shard) fn prepared_call(
        &mut self,
        recorder: &mut ShardRecorder,
        driver: &dyn Driver,
        call: &Call,
    ) -> Result<Rc<PreparedRequest>, Trouble> {
        let spec = &call.request.spec;
        let offer = match &call.kind {
            CallKind::WebSocket(offer) => Some(&**offer),
            CallKind::Whole | CallKind::Stream(_) => None,
        };
        let known = spec.prepared.get().and_then(|any| Rc::clone(any).downcast::<PreparedRequest>().ok());
        if let Some(prepared) = known {
            return Ok(prepared);
        }
        let origin_count = self.prepared.origins.len();
        // A driven shard has its own preparation, which nothing else holds here.
        let own = Arc::get_mut(&mut self.prepared);
        let trouble = |cause, text| Trouble::new(cause, Phase::LookingUp, text);
        let own = own.ok_or_else(|| trouble(Cause::Other, "the load is in use".to_owned()))?;
        let prepared = own.prepare_call(spec, &driver.route(spec), offer);
        // A refused origin is in the list too.
        for origin_idx in origin_count..self.prepared.origins.len() {
            let origin = &self.prepared.origins[origin_idx];
            self.dialer.add(&origin.dial, &self.prepared.names);
            self.origin_states.push(OriginState::new(origin, self.limits.stride == 1));
        }
        recorder.add_rows(self);
        let prepared = prepared.map_err(|error| {
            let cause = if error.is_target_unreachable() { Cause::NameNotResolved } else { Cause::Other };
            let detail = match error {
                Error::Forbidden(forbidden) => Detail::Forbidden(forbidden),
                _ => Detail::None,
            };
            Trouble { detail, ..trouble(cause, error.to_string()) }
        })?;
        let prepared = Rc::new(prepared);
        // Nothing else fills the cell of a spec, and a spec belongs to one shard.
        let _ = spec.prepared.set(Rc::clone(&prepared) as _);
        Ok(prepared)
    }

    /// Whether a request waits for a stream instead of a connection of its own: requests of one user to an HTTP/2 origin share a connection, as
    /// in k6, which has as many streams as the user has requests at a time.
    pub(in crate::shard) fn awaits_streams(&self, pool_idx: usize) -> bool {
        let pool = &self.pools[pool_idx];
        let origin_idx = pool.origin_idx as usize;
        if pool.user.is_none()
            || self.prepared.origins[origin_idx].key.http == HttpVersion::Http11
            || self.origin_states[origin_idx].version == Some(Version::H1)
        {
            return false;
        }
        pool.slots.iter().any(|conn_idx| self.conns[*conn_idx as usize].may_get_streams())
    }

    /// What a connection that is open now turned out to speak.
    pub(in crate::shard) fn note_version(&mut self, conn_idx: usize, version: Version) {
        self.origin_states[self.conns[conn_idx].origin_idx as usize].version = Some(version);
    }

    /// Counts bytes that a connection has sent: for the run, and for its user.
    pub(in crate::shard) fn count_sent(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, bytes: u64) {
        recorder.pulse.snapshot.wire_bytes_sent += bytes;
        if let Some(user) = self.user_of(conn_idx) {
            self.made.port.traffic_of(user).sent += bytes;
        }
    }

    /// Counts bytes that a connection has received: for the run, and for its user.
    pub(in crate::shard) fn count_received(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        bytes: u64,
    ) {
        recorder.pulse.snapshot.wire_bytes_received += bytes;
        if let Some(user) = self.user_of(conn_idx) {
            self.made.port.traffic_of(user).received += bytes;
        }
    }

    /// The pool that a request's connection is taken from.
    pub(in crate::shard) fn pool_of(&self, exchange: &Exchange) -> usize {
        let pool_idx = self.flight_of(exchange).map(|flight| flight.pool_idx);
        pool_idx.unwrap_or_else(|| self.request(exchange.request).origin_idx) as usize
    }

    /// When a request has taken too long. The load's limit begins with its first byte; a call's own with the call, as in k6.
    pub(in crate::shard) fn deadline_of(&self, exchange: &Exchange) -> u64 {
        self.deadline_of_call(exchange).unwrap_or_else(|| exchange.begin_ns() + self.limits.timeout_ns)
    }

    /// When the call that a driver made has taken too long; `None`: it is none.
    pub(in crate::shard) fn deadline_of_call(&self, exchange: &Exchange) -> Option<u64> {
        Some(exchange.intended_ns.saturating_add(self.flight_of(exchange)?.timeout_ns()))
    }

    /// How long a request may take.
    pub(in crate::shard) fn timeout_of(&self, exchange: &Exchange) -> u64 {
        self.flight_of(exchange).map_or(self.limits.timeout_ns, CallInFlight::timeout_ns)
    }

    /// The call that a request was made for; `None`: no driver asked for it.
    pub(super) fn flight_of(&self, exchange: &Exchange) -> Option<&CallInFlight> {
        self.made.calls.get(exchange.request.dynamic_idx()?)?.as_ref()
    }

    pub(in crate::shard) fn keep_call(&mut self, idx: usize, flight: CallInFlight) {
        if self.made.calls.len() <= idx {
            self.made.calls.resize_with(idx + 1, || None);
        }
        self.made.calls[idx] = Some(flight);
    }

    /// How much is wanted of the body of the response to a request.
    pub(in crate::shard) fn body_bytes_max(&self, exchange: &Exchange) -> usize {
        self.flight_of(exchange).map_or(0, |flight| flight.call.request.body_bytes_max as usize)
    }

    /// Whether a whole response is what its caller expects; `None`: it has no caller of that kind.
    pub(in crate::shard) fn judge_call(
        &self,
        recorder: &ShardRecorder,
        place: usize,
        exchange: &Exchange,
        response: &Response,
    ) -> Option<Result<(), Trouble>> {
        let expects = &self.flight_of(exchange)?.call.request.expects;
        if recorder.sink.is_too_large(place) {
            let text = "the response's body is larger than `ext.squall.maxBodyBytes` allows, or all bodies together are";
            return Some(Err(Trouble::new(Cause::UnexpectedLength, Phase::Receiving, text.to_owned())));
        }
        let fits = |(first, last): &(u16, u16)| (*first..=*last).contains(&response.status);
        Some(if expects.is_empty() || expects.iter().any(fits) {
            Ok(())
        } else {
            Err(Trouble::new(Cause::UnexpectedStatus, Phase::Receiving, String::new()))
        })
    }

    /// Gives up what a user has in flight: counted as interrupted, its connections closed.
    pub(in crate::shard) fn cancel(&mut self, recorder: &mut ShardRecorder, user: u32) {
        for conn_idx in 0..self.conns.len() {
            if self.user_of(conn_idx) != Some(user) || self.conns[conn_idx].state == ConnState::Vacant {
                continue;
            }
            for slot in self.slots(conn_idx) {
                let exchange = self.exchanges[self.place_of(conn_idx, slot)];
                self.interrupt(recorder, conn_idx, &exchange);
                self.forget_call(&exchange);
            }
            self.vacate(recorder, conn_idx);
        }
        for pool_idx in 0..self.pools.len() {
            if self.pools[pool_idx].user == Some(user) {
                let waiting = std::mem::take(&mut self.pools[pool_idx].waiting);
                self.counts.waiting -= waiting.len() as u64;
                for exchange in &waiting {
                    // What was sent before counts as open, and what never was is nothing yet.
                    if exchange.is_retry() {
                        self.interrupt(recorder, 0, exchange);
                    }
                    self.forget_call(exchange);
                }
            }
        }
    }

    pub(in crate::shard) fn forget_call(&mut self, exchange: &Exchange) {
        if let Some(idx) = exchange.request.dynamic_idx() {
            self.made.calls[idx] = None;
            self.made.requests[idx] = None;
            self.made.free.push(idx);
        }
    }

    pub(in crate::shard) fn close_idle(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        user: u32,
    ) {
        for conn_idx in 0..self.conns.len() {
            let conn = &self.conns[conn_idx];
            let is_idle =
                conn.state == ConnState::Open && conn.in_flight() == 0 && conn.cold.websocket.is_none();
            if is_idle && self.user_of(conn_idx) == Some(user) {
                self.close(schedule, recorder, conn_idx);
            }
        }
    }

    pub(in crate::shard) fn user_of(&self, conn_idx: usize) -> Option<u32> {
        self.pools[self.conns[conn_idx].pool_idx as usize].user
    }
}
