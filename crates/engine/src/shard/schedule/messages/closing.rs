//! Pings, deadlines and ends of WebSockets: who closed, with which code, and what was still to be answered.

use squall_measure::ClosedBy;
use squall_wire::ws::{CloseCode, Error};

use super::figures;
use crate::driver::stream::StreamNews;
use crate::shard::connections::Connections;
use crate::shard::connections::conn::SessionStage;
use crate::shard::connections::websocket::{Talk, WebSocket};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::shard::schedule::sessions::{Loss, kept};
use crate::shard::schedule::waiter::SWEEP_NS;

impl ShardSchedule {
    /// The server's ping is answered.
    pub(in crate::shard) fn on_ping(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        if connections.conns[conn_idx].cold.held_by.is_some() {
            return connections.report(conn_idx, StreamNews::Ping);
        }
        if self.messages.as_ref().is_some_and(|messages| !messages.is_warmup(connections.now_ns)) {
            figures(&mut recorder.pulse).pings_answered += 1;
        }
    }

    /// Our ping is answered; a pong that nobody asked for means nothing.
    pub(in crate::shard) fn on_websocket_pong(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, talk): (usize, &mut Talk),
        payload: &[u8],
    ) {
        if connections.conns[conn_idx].cold.held_by.is_some() {
            return connections.report(conn_idx, StreamNews::Pong(payload.to_vec()));
        }
        if self.messages.is_some() && connections.conns[conn_idx].cold.pinged_ns > 0 {
            self.on_pong(connections, recorder, conn_idx);
            talk.ping_at_ns = connections.deadlines[conn_idx];
        }
    }

    /// The server closes in order: its close frame is answered, and the connection ends.
    pub(in crate::shard) fn on_websocket_close(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        (code, reason): (CloseCode, &str),
    ) {
        if self.messages.is_none() {
            return self.on_held_close(connections, recorder, conn_idx, (code, reason));
        }
        let generation = connections.conns[conn_idx].generation;
        // Before the answer: a server that is gone already resets the connection, and that is not how it was closed.
        self.note_close(connections, recorder, conn_idx, (ClosedBy::Server, code, reason));
        connections.send_close(conn_idx, code, "");
        connections.send(self, recorder, conn_idx);
        if connections.is_same(conn_idx, generation) {
            self.lose(connections, recorder, conn_idx, Loss::Closed);
        }
    }

    /// The server broke the protocol, or a limit: it is sent the code, and the connection ends.
    pub(in crate::shard) fn on_websocket_error(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        error: Error,
    ) {
        if self.messages.is_none() {
            return self.on_held_error(connections, recorder, conn_idx, error);
        }
        let generation = connections.conns[conn_idx].generation;
        let (code, text) = (error.close_code(), error.to_string());
        self.note_close(connections, recorder, conn_idx, (ClosedBy::Squall, code, &text));
        connections.send_close(conn_idx, code, &text);
        connections.send(self, recorder, conn_idx);
        if connections.is_same(conn_idx, generation) {
            self.lose(connections, recorder, conn_idx, Loss::Broken);
        }
    }

    /// Counts how a connection was closed, once.
    pub(in crate::shard) fn note_close(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        (by, code, reason): (ClosedBy, CloseCode, &str),
    ) {
        let Some(websocket) = &mut connections.conns[conn_idx].cold.websocket else { return };
        if !std::mem::replace(&mut websocket.is_noted, true) {
            figures(&mut recorder.pulse).count_close(by, code.0, reason, 1);
        }
    }

    /// When the connection has to be looked at next, whatever comes.
    pub(super) fn rearm(&mut self, connections: &mut Connections, conn_idx: usize) {
        let Some(messages) = &self.messages else { return };
        let conn = &connections.conns[conn_idx];
        let Some(websocket) = &conn.cold.websocket else { return };
        let pong_ns = match conn.cold.pinged_ns {
            0 => websocket.talk.ping_at_ns,
            pinged_ns => pinged_ns.saturating_add(messages.policy.timeout_ns),
        };
        let oldest = websocket.talk.unanswered.front();
        let answer_ns =
            oldest.map_or(u64::MAX, |sent| sent.sent_ns.saturating_add(messages.policy.timeout_ns));
        connections.deadlines[conn_idx] = pong_ns.min(answer_ns);
    }

    /// A deadline of a WebSocket is over; false: it is none.
    pub(in crate::shard) fn on_websocket_deadline(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> bool {
        let Some(messages) = &self.messages else { return false };
        let timeout_ns = messages.policy.timeout_ns;
        let (now_ns, conn) = (connections.now_ns, &mut connections.conns[conn_idx]);
        let Some(websocket) = &mut conn.cold.websocket else { return false };
        let is_late = |since_ns: u64| since_ns > 0 && now_ns >= since_ns.saturating_add(timeout_ns);
        let text = if websocket.talk.unanswered.front().is_some_and(|sent| is_late(sent.sent_ns)) {
            Some("no answer to a message in time")
        } else if is_late(conn.cold.pinged_ns) {
            Some("no answer to a ping in time")
        } else {
            if conn.cold.pinged_ns == 0 && now_ns >= websocket.talk.ping_at_ns {
                conn.cold.pinged_ns = now_ns;
                websocket.talk.ping_at_ns = u64::MAX;
                kept(&mut recorder.pulse).pings += 1;
                connections.send_ping(conn_idx, b"");
                connections.send(self, recorder, conn_idx);
            }
            None
        };
        match text {
            None => self.rearm(connections, conn_idx),
            Some(text) => {
                self.note_close(connections, recorder, conn_idx, (ClosedBy::Squall, CloseCode::NORMAL, text));
                connections.part(recorder, conn_idx);
                self.lose(connections, recorder, conn_idx, Loss::Broken);
            }
        }
        self.times.next_sweep_ns = self.times.next_sweep_ns.min(connections.now_ns + SWEEP_NS);
        true
    }

    /// A connection ends: its messages go elsewhere, or have no answer.
    pub(in crate::shard) fn leave_talk(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(messages) = &mut self.messages else { return };
        let Some(websocket) = connections.conns[conn_idx].cold.websocket.take() else { return };
        if let Some(publishing) = &messages.publishing {
            publishing.audience.note_closed();
        }
        let WebSocket { talk, .. } = *websocket;
        let lost_count = talk.unanswered.len() as u64;
        messages.open_count -= lost_count;
        messages.unsent_count -= talk.to_send.len() as u64;
        if lost_count > 0 && !messages.is_warmup(connections.now_ns) {
            figures(&mut recorder.pulse).unanswered += lost_count;
        }
        // What never went out is another connection's to send. Without a schedule that follows from the connection itself.
        if messages.arrivals.is_some() {
            talk.to_send.into_iter().rev().for_each(|at_ns| messages.waiting.push_front(at_ns));
        } else if let Some(remaining) = &mut messages.remaining {
            *remaining += talk.to_send.len() as u64;
        }
        if let Some(at) = talk.sender_at {
            messages.senders.swap_remove(at as usize);
            if let Some(moved) = messages.senders.get(at as usize)
                && let Some(websocket) = &mut connections.conns[*moved as usize].cold.websocket
            {
                websocket.talk.sender_at = Some(at);
            }
        }
    }

    /// All connections are dropped and opened again, where the load wants that now and then.
    pub(super) fn start_storm(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        let Some(messages) = &mut self.messages else { return };
        let Some(every_ns) =
            messages.policy.storm_ns.filter(|_| connections.now_ns >= messages.next_storm_ns)
        else {
            return;
        };
        messages.next_storm_ns = connections.now_ns.saturating_add(every_ns);
        let mut all: Vec<usize> =
            (0..connections.conns.len()).filter(|idx| connections.is_kept(*idx)).collect();
        for place in connections.parked.places() {
            all.push(connections.restore(recorder, place));
        }
        for conn_idx in all {
            connections.part(recorder, conn_idx);
            kept(&mut recorder.pulse).closed_by_us += 1;
            // They did nothing wrong: none waits before it comes back.
            connections.conns[conn_idx].cold.stage = SessionStage::Kept;
            self.end_for_storm(connections, recorder, conn_idx);
        }
    }

    /// At the end, what was not answered never will be.
    pub(in crate::shard) fn count_unanswered(&mut self, recorder: &mut ShardRecorder) {
        let Some(messages) = &mut self.messages else { return };
        let scheduled = messages.arrivals.as_ref().map_or(0, |_| messages.unsent_count);
        let count = std::mem::take(&mut messages.open_count) + scheduled + messages.waiting.len() as u64;
        if count > 0 {
            figures(&mut recorder.pulse).unanswered += count;
        }
    }
}
