//! What becomes of a connection that was opened for its own sake: its request, the wait for a ticket, keeping, pings, and its end.

use squall_measure::{Cause, ClosedBy, Phase};
use squall_wire::h1::Response;
use squall_wire::ws::CloseCode;
use squall_wire::{Client, h1};

use super::kept;
use super::outcomes::Loss;
use crate::prepare::{KeepAlive, KeepAliveKind};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange, RequestId, SessionStage};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::shard::schedule::waiter::SWEEP_NS;
use crate::tls::EarlyData;
use crate::trouble::Trouble;

impl ShardSchedule {
    /// The connection is ready: its request goes out, where there is one.
    pub(in crate::shard) fn on_session_ready(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(sessions) = &self.sessions else { return };
        let (generation, conduct) = (connections.conns[conn_idx].generation, sessions.conduct);
        if connections.is_carrier(conn_idx) {
            connections.greet_as_carrier(self, recorder, conn_idx);
        } else if conduct.is_http2 {
            self.greet(connections, recorder, conn_idx);
        } else if conduct.asks {
            self.ask(connections, recorder, conn_idx);
        } else {
            self.settle_opener(connections, recorder, conn_idx);
        }
        // Data may have come with the last flight, before the next edge.
        if connections.is_same(conn_idx, generation) && connections.conns[conn_idx].tls.is_some() {
            connections.receive(self, recorder, conn_idx);
        }
    }

    /// HTTP/2 begins with the settings of both sides: the connection is established when the server's are here.
    fn greet(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, conn_idx: usize) {
        let client = connections.new_client(conn_idx);
        let place = connections.place_of(conn_idx, 0);
        let now_ns = connections.now_ns;
        let exchange = &mut connections.exchanges[place];
        (exchange.start_ns, exchange.sent_ns) = (now_ns, now_ns);
        connections.conns[conn_idx].client = Some(client);
        connections.deadlines[conn_idx] = now_ns + connections.limits.connect_timeout_ns;
        connections.send(self, recorder, conn_idx);
    }

    fn ask(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, conn_idx: usize) {
        connections.begin_requests(recorder, conn_idx, Client::H1(h1::Client::new(1)));
        recorder.sink.captures.set((conn_idx, 0), self.messages.is_some());
        let session = connections.conns[conn_idx].tls.as_ref();
        if session.is_some_and(|session| session.early_data() == EarlyData::Accepted) {
            // It has left with the first flight; how long that took is the handshake's time.
            connections.note_sent_early(conn_idx);
        } else {
            connections.send(self, recorder, conn_idx);
        }
    }

    /// The server's settings are here.
    pub(in crate::shard) fn on_session_settings(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if connections.conns[conn_idx].has_opener {
            self.settle_opener(connections, recorder, conn_idx);
        }
    }

    /// The connection has done what it was opened for.
    fn settle_opener(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let place = connections.place_of(conn_idx, 0);
        let exchange = Exchange { start_ns: 0, sent_ns: 0, ..connections.exchanges[place] };
        connections.conns[conn_idx].has_opener = false;
        connections.settle(self, recorder, (conn_idx, 0), &exchange, 0, Ok(()));
        self.stay_or_close(connections, recorder, conn_idx);
    }

    /// A whole response: to the request that follows the opening, or to a ping.
    pub(in crate::shard) fn on_session_response(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        response: &Response,
    ) {
        connections.conns[conn_idx].client = None;
        if connections.conns[conn_idx].cold.stage == SessionStage::Kept {
            self.on_pong(connections, recorder, conn_idx);
            if !response.keep_alive {
                self.lose(connections, recorder, conn_idx, Loss::Closed);
            }
            return;
        }
        let exchange = connections.exchanges[connections.place_of(conn_idx, slot)];
        if self.messages.is_some() {
            return self.on_websocket_response(connections, recorder, (conn_idx, slot), &exchange, response);
        }
        let outcome = connections.judge(self, recorder, (conn_idx, slot), &exchange, response);
        let is_ok = outcome.is_ok();
        connections.settle(self, recorder, (conn_idx, slot), &exchange, response.status, outcome);
        let is_idle = self.sessions.as_ref().is_some_and(|sessions| sessions.conduct.is_idle);
        match (is_ok, response.keep_alive) {
            (true, true) => self.stay_or_close(connections, recorder, conn_idx),
            // The server closes with its response: what was to be kept was open, and is lost.
            (true, false) if is_idle => {
                self.count_opened(connections, recorder, conn_idx);
                connections.part(recorder, conn_idx);
                self.lose(connections, recorder, conn_idx, Loss::Closed);
            }
            // The response is none that a connection is kept for: it was open, and is ours to close.
            (false, _) if is_idle => {
                self.count_opened(connections, recorder, conn_idx);
                kept(&mut recorder.pulse).closed_by_us += 1;
                self.end_session(connections, recorder, conn_idx);
            }
            (false, _) => self.end_session(connections, recorder, conn_idx),
            (true, false) => self.close_session(connections, recorder, conn_idx),
        }
    }

    /// A connection that has done what it was opened for is closed, or stays.
    fn stay_or_close(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if self.wants_ticket(connections, conn_idx) {
            connections.conns[conn_idx].cold.stage = SessionStage::AwaitingTicket;
            connections.deadlines[conn_idx] = connections.now_ns + TICKET_WAIT_NS;
        } else {
            self.keep_or_close(connections, recorder, conn_idx);
        }
    }

    /// Whether tickets are of any use.
    pub(in crate::shard) fn uses_tickets(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.conduct.resumption.ratio > 0.0)
    }

    /// Whether a ticket is to be waited for: TLS 1.3 sends it after the handshake.
    fn wants_ticket(&self, connections: &Connections, conn_idx: usize) -> bool {
        let Some(sessions) = &self.sessions else { return false };
        if sessions.ticketless_count >= TICKETLESS_COUNT_MAX || sessions.conduct.resumption.ratio == 0.0 {
            return false;
        }
        let conn = &connections.conns[conn_idx];
        if conn.ticket_count() > 0 || !conn.agreement().is_some_and(|agreed| agreed.is_tls13()) {
            return false;
        }
        let origin_tls = connections.prepared.origins[conn.origin_idx as usize].tls.as_ref();
        let stock = sessions.configs.as_ref().zip(origin_tls);
        stock
            .is_some_and(|(configs, tls)| configs.stock_count(&tls.server_name) < sessions.count_max as usize)
    }

    pub(in crate::shard::schedule) fn keep_or_close(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(sessions) = &self.sessions else { return };
        match sessions.conduct.keep_ns {
            0 => return self.close_session(connections, recorder, conn_idx),
            u64::MAX => self.set_next_ping(connections, conn_idx),
            keep_ns => {
                let ready_ns = connections.conns[conn_idx].cold.ready_ns;
                connections.deadlines[conn_idx] = ready_ns + keep_ns;
            }
        }
        connections.conns[conn_idx].cold.stage = SessionStage::Kept;
        self.count_opened(connections, recorder, conn_idx);
    }

    /// After something has come or gone: a ticket is no longer waited for, and a kept connection that is silent is parked.
    pub(in crate::shard) fn settle_down(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(sessions) = &mut self.sessions else { return };
        let drops_session = sessions.conduct.drops_session;
        let is_carrier = connections.is_carrier(conn_idx);
        let conn = &mut connections.conns[conn_idx];
        if conn.state != ConnState::Open {
            return;
        }
        if is_carrier && let Some(client) = &mut conn.client {
            return client.note_pause();
        }
        if conn.cold.stage == SessionStage::AwaitingTicket && conn.ticket_count() > 0 {
            sessions.ticketless_count = 0;
            self.keep_or_close(connections, recorder, conn_idx);
        }
        let conn = &mut connections.conns[conn_idx];
        if conn.state != ConnState::Open || conn.cold.stage != SessionStage::Kept {
            return;
        }
        if self.messages.as_ref().is_some_and(|messages| !messages.parks()) {
            return;
        }
        if let Some(client) = &mut conn.client {
            client.note_pause();
            let held_bytes = conn.held.as_ref().map_or(0, |held| held.left_bytes());
            if client.control_bytes() + held_bytes > UNSENT_BYTES_MAX {
                return self.lose(connections, recorder, conn_idx, Loss::Broken);
            }
            if let Some(session) = &mut conn.tls {
                session.shed_buffers();
            }
            return;
        }
        if let Err(error) = connections.park(conn_idx, drops_session) {
            connections.fail(self, recorder, conn_idx, &Trouble::io(&error, Phase::Receiving));
        }
    }

    fn set_next_ping(&mut self, connections: &mut Connections, conn_idx: usize) {
        let Some(sessions) = &mut self.sessions else { return };
        connections.deadlines[conn_idx] = match sessions.conduct.ping {
            None => u64::MAX,
            Some(KeepAlive { every_ns, .. }) => {
                connections.now_ns.saturating_add(every_ns).saturating_add(sessions.jitter_ns())
            }
        };
    }

    /// Something came for a parked connection; `None`: the connection is gone.
    pub(in crate::shard) fn wake_parked(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        place: u32,
    ) -> Option<usize> {
        let conn_idx = connections.restore(recorder, place);
        if let Err(error) = connections.rewatch(conn_idx) {
            connections.fail(self, recorder, conn_idx, &Trouble::io(&error, Phase::Receiving));
            return None;
        }
        Some(conn_idx)
    }

    /// Ends what has lasted long enough among the parked connections.
    pub(in crate::shard) fn sweep_parked(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let Some(sessions) = &mut self.sessions else { return };
        let mut due = std::mem::take(&mut sessions.due);
        connections.parked.take_due(connections.now_ns, &mut due);
        for place in due.drain(..) {
            if let Some(conn_idx) = self.wake_parked(connections, recorder, place) {
                // The table has taken the deadline back: it was that of the ping.
                if let Some(websocket) = &mut connections.conns[conn_idx].cold.websocket {
                    websocket.talk.ping_at_ns = connections.now_ns;
                }
                self.on_session_deadline(connections, recorder, conn_idx);
            }
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.due = due;
        }
    }

    /// A stage has lasted too long, or long enough; false: it is a request, and ends as those of every load.
    pub(in crate::shard) fn on_session_deadline(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> bool {
        let Some(sessions) = &mut self.sessions else { return false };
        let (stage, has_opener) =
            (connections.conns[conn_idx].cold.stage, connections.conns[conn_idx].has_opener);
        match stage {
            SessionStage::Attempt if has_opener => {
                let trouble = Trouble::new(Cause::Timeout, Phase::Waiting, String::new());
                connections.fail(self, recorder, conn_idx, &trouble);
            }
            SessionStage::Attempt => return false,
            SessionStage::AwaitingTicket => {
                sessions.ticketless_count += 1;
                connections.deadlines[conn_idx] = u64::MAX;
                self.keep_or_close(connections, recorder, conn_idx);
                self.settle_down(connections, recorder, conn_idx);
            }
            SessionStage::Kept if self.on_websocket_deadline(connections, recorder, conn_idx) => {
                self.settle_down(connections, recorder, conn_idx);
            }
            SessionStage::Kept => self.end_keep(connections, recorder, conn_idx),
        }
        true
    }

    /// A kept connection's time is over: it is pinged, or its ping was not answered, or it was kept long enough.
    fn end_keep(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, conn_idx: usize) {
        let Some(sessions) = &self.sessions else { return };
        connections.deadlines[conn_idx] = u64::MAX;
        match (sessions.conduct.keep_ns, sessions.conduct.ping) {
            (u64::MAX, Some(ping)) if connections.conns[conn_idx].cold.pinged_ns == 0 => {
                self.ping(connections, recorder, conn_idx, ping);
                self.settle_down(connections, recorder, conn_idx);
            }
            (u64::MAX, _) => self.lose(connections, recorder, conn_idx, Loss::Broken),
            _ => {
                kept(&mut recorder.pulse).closed_by_us += 1;
                self.close_session(connections, recorder, conn_idx);
            }
        }
    }

    fn ping(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        ping: KeepAlive,
    ) {
        kept(&mut recorder.pulse).pings += 1;
        let now_ns = connections.now_ns;
        let is_answered = ping.kind != KeepAliveKind::Byte;
        match ping.kind {
            KeepAliveKind::Byte => {
                if connections.hold_back(conn_idx, b"\n") > UNSENT_BYTES_MAX {
                    return self.lose(connections, recorder, conn_idx, Loss::Broken);
                }
            }
            KeepAliveKind::Request => {
                let conn = &mut connections.conns[conn_idx];
                let request = RequestId(connections.prepared.origins.len() as u32 + conn.origin_idx);
                conn.client = Some(Client::H1(h1::Client::new(1)));
                let exchange = Exchange {
                    request,
                    intended_ns: now_ns,
                    assigned_ns: now_ns,
                    is_first: true,
                    is_warmup: true,
                    ..Exchange::default()
                };
                connections.reserve_slot(recorder, conn_idx, exchange);
            }
            KeepAliveKind::Ping => {
                if let Some(session) = &mut connections.conns[conn_idx].cold.quic {
                    session.ping();
                } else if let Some(client) = &mut connections.conns[conn_idx].client {
                    client.ping();
                }
            }
        }
        if is_answered {
            connections.conns[conn_idx].cold.pinged_ns = now_ns;
            connections.deadlines[conn_idx] = now_ns + ping.timeout_ns;
        } else {
            self.set_next_ping(connections, conn_idx);
        }
        self.times.next_sweep_ns = self.times.next_sweep_ns.min(now_ns + SWEEP_NS);
        connections.send(self, recorder, conn_idx);
    }

    /// Our ping is answered.
    pub(in crate::shard) fn on_pong(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let pinged_ns = std::mem::take(&mut connections.conns[conn_idx].cold.pinged_ns);
        if pinged_ns > 0 {
            kept(&mut recorder.pulse).ping_time.record(connections.now_ns.saturating_sub(pinged_ns));
            self.set_next_ping(connections, conn_idx);
        }
    }

    /// The peer ends a connection on which nothing is awaited.
    pub(in crate::shard) fn on_session_eof(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        match connections.conns[conn_idx].cold.stage {
            SessionStage::Kept => {
                let text = "closed without a close frame";
                let close = (ClosedBy::Neither, CloseCode::ABNORMAL, text);
                self.note_close(connections, recorder, conn_idx, close);
                self.lose(connections, recorder, conn_idx, Loss::Closed);
            }
            SessionStage::Attempt | SessionStage::AwaitingTicket => {
                self.close_session(connections, recorder, conn_idx);
            }
        }
    }

    /// Something went wrong with a connection that is kept, or waits for a ticket; false: it is neither.
    pub(in crate::shard) fn lose_kept(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        trouble: &Trouble,
    ) -> bool {
        match connections.conns[conn_idx].cold.stage {
            _ if self.sessions.is_none() => return false,
            SessionStage::Attempt => return false,
            SessionStage::AwaitingTicket => self.end_session(connections, recorder, conn_idx),
            SessionStage::Kept => {
                let loss = match trouble.cause {
                    Cause::ConnectionReset | Cause::StreamReset => Loss::Reset,
                    Cause::ConnectionClosed => Loss::Closed,
                    _ => Loss::Broken,
                };
                let close = (ClosedBy::Neither, CloseCode::ABNORMAL, trouble.text.as_str());
                self.note_close(connections, recorder, conn_idx, close);
                self.lose(connections, recorder, conn_idx, loss);
            }
        }
        true
    }

    /// A kept connection has ended, and not by us.
    pub(in crate::shard::schedule) fn lose(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        loss: Loss,
    ) {
        self.count_loss(connections, recorder, conn_idx, loss);
        self.end_session(connections, recorder, conn_idx);
    }

    /// Closes a connection from our side, as the plan wants it.
    fn close_session(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        connections.part(recorder, conn_idx);
        self.end_session(connections, recorder, conn_idx);
    }

    pub(in crate::shard::schedule) fn end_session(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        self.note_session_end(connections, conn_idx);
        self.leave_talk(connections, recorder, conn_idx);
        connections.vacate(recorder, conn_idx);
    }

    /// At the run's end all that is kept is ours to close: counted before the last figures are handed over.
    pub(in crate::shard) fn count_farewells(&self, connections: &Connections, recorder: &mut ShardRecorder) {
        let is_kept = |conn_idx: &usize| connections.is_kept(*conn_idx);
        let open_count = (0..connections.conns.len()).filter(is_kept).count();
        // How WebSockets are closed is counted as they part.
        let count = (open_count + connections.parked.count()) as u64;
        if count > 0 {
            kept(&mut recorder.pulse).closed_by_us += count;
        }
    }
}

/// How long a ticket may be on its way.
const TICKET_WAIT_NS: u64 = 250_000_000;

/// After so many handshakes without a ticket, none is waited for any more.
const TICKETLESS_COUNT_MAX: u32 = 8;

/// What a peer that stops reading may leave on each of many kept connections: a few pings.
const UNSENT_BYTES_MAX: usize = 4096;
