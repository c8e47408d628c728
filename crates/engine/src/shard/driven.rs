//! Requests that a driver decides at run time: each on a connection of its user; its end is reported to the driver.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::FixedState;
use squall_measure::{Cause, Outcome, Phase, Phases, Sample};
use squall_plan::HttpVersion;
use squall_script::Spec;
use squall_wire::h1::Response;
use squall_wire::{Client, Version};

use super::acks::AckTrial;
use super::conn::{Exchange, Pool, State};
use super::connections::Connections;
use super::recorder::ShardRecorder;
use super::schedule::Life;
use super::schedule::ShardSchedule;
use crate::driver::{Call, Driver, Ended};
use crate::prepare::PreparedRequest;
use crate::sys::monotonic_ns;
use crate::tls::TlsStream;
use crate::trouble::Trouble;

/// A driver and its requests in flight.
pub(super) struct Driven {
    driver: Box<dyn Driver>,
    /// Pools by user and origin.
    pools: HashMap<(u32, u32), u32, FixedState>,
    is_stopping: bool,
}

/// A call in flight.
pub(super) struct CallInFlight {
    call: Call,
    pool_idx: u32,
}

impl CallInFlight {
    fn timeout_ns(&self) -> u64 {
        self.call.request.timeout.as_nanos() as u64
    }
}

impl Driven {
    pub(super) fn new(driver: Box<dyn Driver>) -> Self {
        Self { driver, pools: HashMap::default(), is_stopping: false }
    }

    pub(super) fn next_due_ns(&self) -> u64 {
        self.driver.next_due_ns()
    }

    pub(super) fn fill(&mut self, now_ns: u64, snapshot: &mut squall_measure::Snapshot) {
        self.driver.fill(now_ns, snapshot);
    }
}

impl Connections {
    fn prepared_call(
        &mut self,
        recorder: &mut ShardRecorder,
        driver: &dyn Driver,
        spec: &Spec,
    ) -> Result<Rc<PreparedRequest>, Trouble> {
        let known = spec.prepared.get().and_then(|any| Rc::clone(any).downcast::<PreparedRequest>().ok());
        if let Some(prepared) = known {
            return Ok(prepared);
        }
        let origin_count = self.prepared.origins.len();
        // A driven shard has its own preparation, which nothing else holds here.
        let own = Arc::get_mut(&mut self.prepared);
        let trouble = |cause, text| Trouble::new(cause, Phase::LookingUp, text);
        let own = own.ok_or_else(|| trouble(Cause::Other, "the load is in use".to_owned()))?;
        let prepared = own.prepare_call(spec, &driver.route(spec));
        // An origin that is refused stands among the others too.
        for origin_idx in origin_count..self.prepared.origins.len() {
            let view = self.view_of(origin_idx);
            self.addresses.push(view);
            self.acks.push(AckTrial::new(self.limits.stride == 1));
            self.versions.push(None);
        }
        recorder.add_rows(self);
        let prepared = prepared.map_err(|error| {
            let cause = if error.is_target_unreachable() { Cause::NameNotResolved } else { Cause::Other };
            trouble(cause, error.to_string())
        })?;
        let prepared = Rc::new(prepared);
        // Nothing else fills the cell of a spec, and a spec belongs to one shard.
        let _ = spec.prepared.set(Rc::clone(&prepared) as _);
        Ok(prepared)
    }

    /// Whether a request waits for a stream instead of a connection of its own: requests of one user to an HTTP/2 origin share a connection, as
    /// in k6, which has as many streams as the user has requests at a time.
    pub(super) fn awaits_streams(&self, pool_idx: usize) -> bool {
        let pool = &self.pools[pool_idx];
        let origin_idx = pool.origin_idx as usize;
        if pool.user.is_none()
            || self.prepared.origins[origin_idx].key.http == HttpVersion::Http11
            || self.versions[origin_idx] == Some(Version::H1)
        {
            return false;
        }
        pool.slots.iter().any(|conn_idx| self.conns[*conn_idx as usize].may_get_streams())
    }

    /// What a connection that is open now turned out to speak.
    pub(super) fn note_version(&mut self, conn_idx: usize, version: Version) {
        self.versions[self.conns[conn_idx].origin_idx as usize] = Some(version);
    }

    /// Counts bytes that a connection has sent: for the run, and for its user.
    pub(super) fn count_sent(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, bytes: u64) {
        recorder.pulse.snapshot.wire_bytes_sent += bytes;
        if let Some(user) = self.user_of(conn_idx) {
            self.port.traffic_of(user).sent += bytes;
        }
    }

    /// Counts bytes that a connection has received: for the run, and for its user.
    pub(super) fn count_received(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, bytes: u64) {
        recorder.pulse.snapshot.wire_bytes_received += bytes;
        if let Some(user) = self.user_of(conn_idx) {
            self.port.traffic_of(user).received += bytes;
        }
    }

    /// The pool that a request's connection is taken from.
    pub(super) fn pool_of(&self, exchange: &Exchange) -> usize {
        let pool_idx = self.flight_of(exchange).map(|flight| flight.pool_idx);
        pool_idx.unwrap_or_else(|| self.request(exchange.request).origin_idx) as usize
    }

    /// When a request has taken too long. The load's limit begins with its first byte; a call's own with the call, as in k6.
    pub(super) fn deadline_of(&self, exchange: &Exchange) -> u64 {
        self.deadline_of_call(exchange).unwrap_or_else(|| exchange.begin_ns() + self.limits.timeout_ns)
    }

    /// When the call that a driver made has taken too long; `None`: it is none.
    pub(super) fn deadline_of_call(&self, exchange: &Exchange) -> Option<u64> {
        Some(exchange.intended_ns.saturating_add(self.flight_of(exchange)?.timeout_ns()))
    }

    /// How long a request may take.
    pub(super) fn timeout_of(&self, exchange: &Exchange) -> u64 {
        self.flight_of(exchange).map_or(self.limits.timeout_ns, CallInFlight::timeout_ns)
    }

    /// The call that a request was made for; `None`: no driver asked for it.
    fn flight_of(&self, exchange: &Exchange) -> Option<&CallInFlight> {
        self.calls.get(exchange.request.dynamic_idx()?)?.as_ref()
    }

    fn keep_call(&mut self, idx: usize, flight: CallInFlight) {
        if self.calls.len() <= idx {
            self.calls.resize_with(idx + 1, || None);
        }
        self.calls[idx] = Some(flight);
    }

    /// How much is wanted of the body of the response to a request.
    pub(super) fn body_bytes_max(&self, exchange: &Exchange) -> usize {
        self.flight_of(exchange).map_or(0, |flight| flight.call.request.body_bytes_max as usize)
    }

    /// Whether a whole response is what its caller expects; `None`: it has no caller of that kind.
    pub(super) fn judge_call(
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
    fn cancel(&mut self, recorder: &mut ShardRecorder, user: u32) {
        for conn_idx in 0..self.conns.len() {
            if self.user_of(conn_idx) != Some(user) || self.conns[conn_idx].state == State::Vacant {
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
                self.waiting_count -= waiting.len() as u64;
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

    fn forget_call(&mut self, exchange: &Exchange) {
        if let Some(idx) = exchange.request.dynamic_idx() {
            self.calls[idx] = None;
            self.dynamic[idx] = None;
            self.dynamic_free.push(idx);
        }
    }

    fn close_idle(&mut self, schedule: &mut ShardSchedule, recorder: &mut ShardRecorder, user: u32) {
        for conn_idx in 0..self.conns.len() {
            let is_idle = self.conns[conn_idx].state == State::Open && self.conns[conn_idx].in_flight() == 0;
            if is_idle && self.user_of(conn_idx) == Some(user) {
                self.close(schedule, recorder, conn_idx);
            }
        }
    }

    pub(super) fn user_of(&self, conn_idx: usize) -> Option<u32> {
        self.pools[self.conns[conn_idx].pool_idx as usize].user
    }
}

impl ShardSchedule {
    /// Lets the driver do what is due, and makes the requests that it and its users want.
    pub(super) fn drive(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        let now_ns = self.run_ns(connections);
        let Some(driven) = &mut self.driven else { return };
        driven.driver.turn(now_ns, &mut connections.port);
        self.obey_port(connections, recorder);
    }

    /// The user wants the run to end.
    pub(super) fn stop_driver(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        let now_ns = self.run_ns(connections);
        let Some(driven) = &mut self.driven else { return };
        if !driven.is_stopping {
            driven.is_stopping = true;
            driven.driver.stop(now_ns, &mut connections.port);
        }
        self.obey_port(connections, recorder);
    }

    fn run_ns(&self, connections: &Connections) -> u64 {
        connections.now_ns.saturating_sub(self.times.start_ns)
    }

    fn obey_port(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        let mut calls = std::mem::take(&mut connections.port.calls);
        let cancelled = std::mem::take(&mut connections.port.cancelled);
        let closed = std::mem::take(&mut connections.port.closed);
        cancelled.into_iter().for_each(|user| connections.cancel(recorder, user));
        closed.into_iter().for_each(|user| connections.close_idle(self, recorder, user));
        if !calls.is_empty() {
            // What the users have computed since is no part of their requests.
            connections.now_ns = monotonic_ns();
        }
        for call in calls.drain(..) {
            self.call(connections, recorder, call);
        }
        // Calls that were added meanwhile (a request that failed at once) are for the next turn; the capacity is kept.
        calls.append(&mut connections.port.calls);
        connections.port.calls = calls;
    }

    fn call(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, call: Call) {
        let Some(driven) = &self.driven else { return };
        let prepared = match connections.prepared_call(recorder, &*driven.driver, &call.request.spec) {
            Ok(prepared) => prepared,
            Err(trouble) => return self.refuse(connections, recorder, &call, trouble),
        };
        let pool_idx = self.pool_of_user(connections, call.user, prepared.origin_idx);
        let request = connections.keep_dynamic(prepared);
        let idx = request.dynamic_idx().unwrap_or_default();
        connections.keep_call(idx, CallInFlight { call, pool_idx });
        connections.place(
            self,
            recorder,
            Exchange { request, intended_ns: connections.now_ns, ..Exchange::default() },
        );
    }

    fn pool_of_user(&mut self, connections: &mut Connections, user: u32, origin_idx: u32) -> u32 {
        let Some(driven) = &mut self.driven else { return origin_idx };
        *driven.pools.entry((user, origin_idx)).or_insert_with(|| {
            connections.pools.push(Pool::new(origin_idx, Some(user)));
            connections.pools.len() as u32 - 1
        })
    }

    /// A request that cannot even be prepared has ended.
    fn refuse(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        call: &Call,
        trouble: Trouble,
    ) {
        self.count_refused(connections, recorder, &call.request.spec, trouble.clone());
        let ended = Ended {
            user: call.user,
            token: call.request.token,
            result: Err(trouble),
            head: Vec::new(),
            body: Vec::new(),
            phases: Phases::default(),
            remote: None,
            version: None,
            tls: None,
        };
        let now_ns = self.run_ns(connections);
        if let Some(driven) = &mut self.driven {
            driven.driver.complete(ended, now_ns, &mut connections.port);
        }
    }

    fn count_refused(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        spec: &Spec,
        trouble: Trouble,
    ) {
        let row_idx = Arc::get_mut(&mut connections.prepared).and_then(|own| own.row_of_refused(spec));
        let Some(row_idx) = row_idx else { return };
        recorder.add_rows(connections);
        let outcome = Outcome::Failed(trouble.cause, trouble.phase);
        recorder.keep_example(connections, row_idx, (0, 0), trouble);
        recorder.pulse.record(&Sample {
            row_idx,
            status: 0,
            outcome,
            latency_ns: 0,
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_received: 0,
        });
    }

    /// Tells the driver how a request has ended.
    pub(super) fn tell(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        result: Result<u16, Trouble>,
    ) {
        if self.driven.is_none() {
            return;
        }
        let flight = exchange.request.dynamic_idx().and_then(|idx| connections.calls.get_mut(idx)?.take());
        if let Some(flight) = flight {
            let (head, body) = recorder.sink.take_response(connections.place_of(conn_idx, slot));
            let ended = Ended {
                user: flight.call.user,
                token: flight.call.request.token,
                result,
                head,
                body,
                phases: connections.phases(conn_idx, exchange),
                remote: connections.conns[conn_idx].cold.remote,
                version: connections.conns[conn_idx].client.as_ref().map(Client::version),
                tls: connections.conns[conn_idx].tls.as_deref().and_then(tls_names),
            };
            let now_ns = self.run_ns(connections);
            if let Some(driven) = &mut self.driven {
                driven.driver.complete(ended, now_ns, &mut connections.port);
            }
        }
    }

    /// Whether nothing of a driven load is left to do.
    pub(super) fn is_driver_finished(&self, connections: &Connections) -> bool {
        self.driven
            .as_ref()
            .is_none_or(|driven| connections.port.calls.is_empty() && driven.driver.is_finished())
            || matches!(self.life, Life::Draining { until_ns: 0 })
    }
}

/// k6's names of what a TLS session speaks.
fn tls_names(session: &TlsStream) -> Option<(&'static str, &'static str)> {
    let version = match session.protocol_version()? {
        rustls::ProtocolVersion::TLSv1_2 => "tls1.2",
        rustls::ProtocolVersion::TLSv1_3 => "tls1.3",
        _ => "",
    };
    let cipher = session.cipher_suite().and_then(|suite| suite.as_str());
    Some((version, cipher.unwrap_or_default()))
}
