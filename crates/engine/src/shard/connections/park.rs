//! From a slot to a parking place, and back.

use std::io;

use squall_plan::CloseMode;

use crate::shard::connections::Connections;
use crate::shard::connections::conn::{Conn, ConnState, Goodbye, SessionStage};
use crate::shard::connections::parked::{PARKED, Parked, ParkedSession};
use crate::shard::connections::websocket::WebSocket;
use crate::shard::recorder::ShardRecorder;
use crate::tls::TlsStream;

impl Connections {
    /// The parked connection that an event is about; `None`: it is about one that was there before.
    pub(in crate::shard) fn parked_place(&self, token: u64) -> Option<u32> {
        let place = token as u32 & !PARKED;
        let parked = self.parked.places.get(place as usize)?;
        (u64::from(parked.generation) == token >> 32 && parked.socket.is_some()).then_some(place)
    }

    /// Whether a kept connection has nothing to send, and nothing to read that has come already.
    fn is_silent(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        let has_plain = conn.tls.as_ref().is_some_and(|tls| !matches!(tls.chunk(), Ok(None)));
        let is_quiet =
            conn.cold.websocket.as_ref().is_none_or(|it| it.is_silent() && conn.cold.pinged_ns == 0);
        conn.client.is_none()
            && conn.cold.quic.is_none()
            && conn.cold.carried.is_none()
            && !conn.wants_write()
            && !has_plain
            && is_quiet
    }

    /// Parks a kept connection, if it is silent; its slot is free then. `drops_session`: nothing will be sent through its TLS session.
    pub(in crate::shard) fn park(&mut self, conn_idx: usize, drops_session: bool) -> io::Result<()> {
        if !self.is_silent(conn_idx) {
            return Ok(());
        }
        self.drop_peeked(conn_idx);
        let (place, token) = self.parked.next_place();
        let conn = &mut self.conns[conn_idx];
        if let Some(socket) = &conn.socket
            && let Err(error) = self.poller.rewatch(socket, token)
        {
            self.parked.vacant.push(place);
            return Err(error);
        }
        let vacated = conn.vacated();
        let Conn { socket, tls, origin_idx, cold, .. } = std::mem::replace(conn, vacated);
        let goodbye = cold.goodbye.map_or(ParkedSession::None, ParkedSession::Goodbye);
        let session = match tls {
            None => goodbye,
            Some(mut session) if drops_session => {
                let record = (self.limits.close == CloseMode::Notify).then(|| sealed_goodbye(&mut session));
                record.flatten().map_or(ParkedSession::None, ParkedSession::Goodbye)
            }
            Some(mut session) => {
                session.shed_buffers();
                ParkedSession::Whole(session)
            }
        };
        let parked = &mut self.parked.places[place as usize];
        let (failure_count, ready_ns) = (cold.failure_count as u16, cold.ready_ns);
        let is_websocket = cold.websocket.is_some();
        *parked = Parked {
            origin_idx,
            socket,
            failure_count,
            is_websocket,
            ready_ns,
            session,
            ..std::mem::take(parked)
        };
        self.parked.deadlines[place as usize] = self.deadlines[conn_idx];
        self.parked.next_deadline_ns = self.parked.next_deadline_ns.min(self.deadlines[conn_idx]);
        self.end_rest(conn_idx);
        Ok(())
    }

    /// A parked connection gets a slot again; [`rewatch`](Self::rewatch) is to follow, unless it is to be closed.
    pub(in crate::shard) fn restore(&mut self, recorder: &mut ShardRecorder, place: u32) -> usize {
        let deadline_ns = self.parked.deadlines[place as usize];
        let Parked { origin_idx, socket, failure_count, is_websocket, ready_ns, session, .. } =
            self.parked.vacate(place);
        let conn_idx = self.free_slot(recorder);
        self.deadlines[conn_idx] = deadline_ns;
        let conn = &mut self.conns[conn_idx];
        conn.generation = conn.generation.wrapping_add(1);
        (conn.state, conn.origin_idx, conn.socket) = (ConnState::Open, origin_idx, socket);
        (conn.cold.stage, conn.cold.is_reopening) = (SessionStage::Kept, true);
        (conn.cold.failure_count, conn.cold.ready_ns) = (failure_count.into(), ready_ns);
        if is_websocket {
            let mut websocket = Box::new(WebSocket::new(None));
            websocket.talk.ping_at_ns = deadline_ns;
            conn.cold.websocket = Some(websocket);
        }
        match session {
            ParkedSession::None => {}
            ParkedSession::Goodbye(goodbye) => conn.cold.goodbye = Some(goodbye),
            ParkedSession::Whole(session) => conn.tls = Some(session),
        }
        conn_idx
    }

    /// Events of a connection's socket are its own again.
    pub(in crate::shard) fn rewatch(&self, conn_idx: usize) -> io::Result<()> {
        let conn = &self.conns[conn_idx];
        conn.socket.as_ref().map_or(Ok(()), |socket| self.poller.rewatch(socket, conn.token(conn_idx)))
    }

    /// Whether it is a connection that is kept for its own sake.
    pub(in crate::shard) fn is_kept(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        conn.state == ConnState::Open && conn.cold.stage == SessionStage::Kept
    }

    /// The run is over: what is parked is closed.
    pub(in crate::shard) fn part_with_parked(&mut self, recorder: &mut ShardRecorder) {
        for place in self.parked.places() {
            let conn_idx = self.restore(recorder, place);
            self.part(recorder, conn_idx);
            self.vacate(recorder, conn_idx);
        }
    }

    /// A slot without a connection, whatever pools allow: a load of connections counts them itself.
    pub(in crate::shard) fn free_slot(&mut self, recorder: &mut ShardRecorder) -> usize {
        match self.pools[0].vacant.pop() {
            Some(conn_idx) => conn_idx as usize,
            None => self.push_slot(recorder, 0),
        }
    }
}

fn sealed_goodbye(session: &mut TlsStream) -> Option<Goodbye> {
    let mut record = Vec::new();
    session.send_close_notify();
    session.write_tls(&mut record).ok()?;
    Goodbye::new(&record)
}
