//! What a connection does when its socket is ready.

use crate::shard::connections::Connections;
use crate::shard::connections::conn::ConnState;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::sys::Readiness;

impl Connections {
    /// Goes on where the last turn stopped: an edge-triggered poller does not tell again.
    pub(in crate::shard) fn resume_unfinished(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        let mut unfinished = std::mem::take(&mut self.turn.unfinished);
        for conn_idx in unfinished.drain(..) {
            let conn_idx = conn_idx as usize;
            if self.conns[conn_idx].state == ConnState::Open {
                let readiness = Readiness {
                    token: self.conns[conn_idx].token(conn_idx),
                    readable: true,
                    writable: true,
                    closed: false,
                };
                self.on_open_event(schedule, recorder, conn_idx, readiness);
                schedule.settle_down(self, recorder, conn_idx);
            }
        }
        // Its capacity is kept; what was added meanwhile is for the next turn.
        unfinished.append(&mut self.turn.unfinished);
        self.turn.unfinished = unfinished;
        self.resume_quic(schedule, recorder);
    }

    pub(in crate::shard) fn handle(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        event: Readiness,
    ) {
        let conn_idx = (event.token & u64::from(u32::MAX)) as usize;
        let Some(conn) = self.conns.get_mut(conn_idx) else {
            self.on_quic_socket(schedule, recorder, event);
            return self.on_parked_event(schedule, recorder, event);
        };
        if conn.token(conn_idx) != event.token {
            return;
        }
        conn.peer_closed |= event.closed;
        match conn.state {
            ConnState::Vacant => {}
            ConnState::Connecting if event.writable => {
                self.on_connect_event(schedule, recorder, conn_idx, event.closed);
            }
            ConnState::Connecting => {}
            ConnState::Tunnelling => self.on_tunnel_event(schedule, recorder, conn_idx, event),
            ConnState::Handshaking => self.handshake(schedule, recorder, conn_idx),
            ConnState::Open => self.on_open_event(schedule, recorder, conn_idx, event),
        }
        if schedule.sessions.is_some() {
            schedule.settle_down(self, recorder, conn_idx);
        }
    }

    /// The peer of a silent connection sends something, or has closed. That its socket is writable is no news.
    fn on_parked_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        event: Readiness,
    ) {
        let Some(place) = self.parked_place(event.token).filter(|_| event.readable) else { return };
        let Some(conn_idx) = schedule.wake_parked(self, recorder, place) else { return };
        let conn = &mut self.conns[conn_idx];
        conn.peer_closed = event.closed;
        let token = conn.token(conn_idx);
        self.on_open_event(schedule, recorder, conn_idx, Readiness { token, ..event });
        schedule.settle_down(self, recorder, conn_idx);
    }

    fn on_tunnel_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        event: Readiness,
    ) {
        if event.writable {
            self.send_prelude(schedule, recorder, conn_idx);
        }
        if event.readable && self.conns[conn_idx].state == ConnState::Tunnelling {
            self.receive_prelude(schedule, recorder, conn_idx);
        }
    }

    fn on_open_event(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        event: Readiness,
    ) {
        if event.writable && self.conns[conn_idx].wants_write() {
            self.list_unsent(conn_idx);
        }
        let conn = &self.conns[conn_idx];
        let is_paused = conn.client.is_none()
            && conn.cold.websocket.as_ref().is_some_and(|websocket| websocket.is_paused);
        if event.readable && !is_paused && conn.token(conn_idx) == event.token {
            self.receive(schedule, recorder, conn_idx);
        }
    }
}
