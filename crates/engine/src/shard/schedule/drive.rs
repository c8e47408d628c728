//! Requests that a driver decides at run time: each on a connection of its user; its end is reported to the driver.

use std::sync::Arc;

use squall_measure::{Outcome, Phases, Sample};
use squall_script::Spec;
use squall_wire::Client;

use crate::driver::stream::{CallKind, StreamKey};
use crate::driver::{Call, Ended};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{CallInFlight, Exchange, Outgoing, Pool};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::Life;
use crate::shard::schedule::ShardSchedule;
use crate::sys::monotonic_ns;
use crate::tls::Agreement;
use crate::trouble::Trouble;

impl ShardSchedule {
    /// Lets the driver do what is due, and makes the requests that it and its users want.
    pub(in crate::shard) fn drive(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        if self.driven.is_none() {
            return;
        }
        self.report_streams(connections, recorder);
        let now_ns = self.run_ns(connections);
        let Some(driven) = &mut self.driven else { return };
        driven.driver.turn(now_ns, &mut connections.made.port);
        self.obey_port(connections, recorder);
    }

    /// The user wants the run to end.
    pub(in crate::shard) fn stop_driver(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let now_ns = self.run_ns(connections);
        let Some(driven) = &mut self.driven else { return };
        if !driven.is_stopping {
            driven.is_stopping = true;
            driven.driver.stop(now_ns, &mut connections.made.port);
        }
        self.obey_port(connections, recorder);
    }

    fn run_ns(&self, connections: &Connections) -> u64 {
        connections.now_ns.saturating_sub(self.times.start_ns)
    }

    fn obey_port(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        self.obey_streams(connections);
        let mut calls = std::mem::take(&mut connections.made.port.calls);
        let cancelled = std::mem::take(&mut connections.made.port.cancelled);
        let closed = std::mem::take(&mut connections.made.port.closed);
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
        calls.append(&mut connections.made.port.calls);
        connections.made.port.calls = calls;
        for given_up in std::mem::take(&mut connections.made.port.given_up) {
            connections.give_up_call(recorder, given_up);
        }
    }

    fn call(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, call: Call) {
        let Some(driven) = &self.driven else { return };
        let prepared = match connections.prepared_call(recorder, &*driven.driver, &call) {
            Ok(prepared) => prepared,
            Err(trouble) => return self.refuse(connections, recorder, &call, trouble),
        };
        let is_held = matches!(call.kind, CallKind::WebSocket(_));
        let pool_idx = self.pool_of_user(connections, (call.user, prepared.origin_idx, is_held));
        let request = connections.keep_dynamic(prepared);
        let idx = request.dynamic_idx().unwrap_or_default();
        connections.keep_call(idx, CallInFlight { call, pool_idx, outgoing: Outgoing::default() });
        connections.place(
            self,
            recorder,
            Exchange { request, intended_ns: connections.now_ns, ..Exchange::default() },
        );
    }

    /// The pool of a user's connections to an origin. WebSockets have one without a limit to their number: they neither wait for requests nor
    /// make these wait.
    fn pool_of_user(
        &mut self,
        connections: &mut Connections,
        (user, origin_idx, is_held): (u32, u32, bool),
    ) -> u32 {
        let Some(driven) = &mut self.driven else { return origin_idx };
        *driven.pools.entry((user, origin_idx, is_held)).or_insert_with(|| {
            connections.pools.push(Pool { is_unlimited: is_held, ..Pool::new(origin_idx, Some(user)) });
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
            stream: None,
        };
        let now_ns = self.run_ns(connections);
        if let Some(driven) = &mut self.driven {
            driven.driver.complete(ended, now_ns, &mut connections.made.port);
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

    /// Reports to the driver how a request has ended.
    pub(in crate::shard) fn tell(
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
        let flight =
            exchange.request.dynamic_idx().and_then(|idx| connections.made.calls.get_mut(idx)?.take());
        if let Some(flight) = flight {
            // What came of it before its end is reported before.
            self.report_streams(connections, recorder);
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
                tls: connections.conns[conn_idx].agreement().map(tls_names),
                stream: connections.conns[conn_idx].cold.websocket.is_some().then(|| StreamKey {
                    conn_idx: conn_idx as u32,
                    generation: connections.conns[conn_idx].generation,
                    slot: 0,
                }),
            };
            let now_ns = self.run_ns(connections);
            if let Some(driven) = &mut self.driven {
                driven.driver.complete(ended, now_ns, &mut connections.made.port);
            }
        }
    }

    /// Whether nothing of a driven load is left to do.
    pub(in crate::shard) fn is_driver_finished(&self, connections: &Connections) -> bool {
        self.driven
            .as_ref()
            .is_none_or(|driven| connections.made.port.calls.is_empty() && driven.driver.is_finished())
            || matches!(self.life, Life::Draining { until_ns: 0 })
    }
}

/// k6's names of what a TLS session speaks.
fn tls_names(agreement: &Agreement) -> (&'static str, &'static str) {
    let version = match agreement.version() {
        rustls::ProtocolVersion::TLSv1_2 => "tls1.2",
        rustls::ProtocolVersion::TLSv1_3 => "tls1.3",
        _ => "",
    };
    (version, agreement.suite().suite().as_str().unwrap_or_default())
}
