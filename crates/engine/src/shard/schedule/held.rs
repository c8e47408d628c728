//! Streams that a driver holds: its commands are carried out, and what happens on them is reported to it.

use squall_wire::ws::{CloseCode, Error, MessageKind};

use crate::driver::stream::{StreamCommand, StreamKey, StreamNews, StreamReport};
use crate::shard::connections::Connections;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::Trouble;

impl ShardSchedule {
    /// Reports to the driver what has happened on its streams since the last turn.
    pub(super) fn report_streams(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        let Some(driven) = &mut self.driven else { return };
        connections.made.port.events.append(&mut recorder.sink.events);
        let mut events = std::mem::take(&mut connections.made.port.events);
        for event in events.drain(..) {
            driven.driver.stream(event, self.times.start_ns, &mut connections.made.port);
        }
        events.append(&mut connections.made.port.events);
        connections.made.port.events = events;
    }

    /// Does what the driver wants of its streams.
    pub(super) fn obey_streams(&mut self, connections: &mut Connections) {
        for (key, command) in std::mem::take(&mut connections.made.port.commands) {
            if connections.has(key) {
                obey_stream(connections, (key.conn_idx as usize, key.slot), command);
            }
        }
    }

    /// The peer of a driver's WebSocket closes; its close frame is answered with what it said.
    pub(super) fn on_held_close(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        (code, reason): (CloseCode, &str),
    ) {
        connections.report(conn_idx, StreamNews::Close(code, reason.to_owned()));
        connections.send_close(conn_idx, code, "");
        self.end_held(connections, recorder, conn_idx, None);
    }

    /// It broke a rule of the protocol, or a limit.
    pub(super) fn on_held_error(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        error: Error,
    ) {
        connections.send_close(conn_idx, error.close_code(), "");
        self.end_held(connections, recorder, conn_idx, Some(Trouble::websocket(error)));
    }

    fn end_held(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        trouble: Option<Trouble>,
    ) {
        // Whether the peer still reads our close frame is of no importance.
        let _ = connections.flush(recorder, conn_idx);
        connections.report(conn_idx, StreamNews::Closed(trouble));
        connections.vacate(recorder, conn_idx);
    }
}

fn obey_stream(connections: &mut Connections, (conn_idx, slot): (usize, u32), command: StreamCommand) {
    match command {
        StreamCommand::Message(kind, bytes) => {
            connections.send_message(conn_idx, kind, &bytes);
            connections.note_unsent(conn_idx, bytes.len());
        }
        StreamCommand::Ping(payload) => connections.send_ping(conn_idx, &payload),
        StreamCommand::Close(code, reason) => connections.send_close(conn_idx, code, &reason),
        StreamCommand::Pause => connections.pause_stream(conn_idx, slot, true),
        StreamCommand::Resume => connections.pause_stream(conn_idx, slot, false),
        StreamCommand::Extend(bytes) => connections.extend_stream(conn_idx, slot, &bytes),
        StreamCommand::Finish => connections.finish_stream(conn_idx, slot),
    }
}

impl Connections {
    /// Something happened on a WebSocket of a driver.
    pub(in crate::shard) fn report(&mut self, conn_idx: usize, news: StreamNews) {
        let conn = &self.conns[conn_idx];
        let Some((user, token)) = conn.cold.held_by else { return };
        let key = StreamKey { conn_idx: conn_idx as u32, generation: conn.generation, slot: 0 };
        self.made.port.events.push(StreamReport { user, token, key, at_ns: self.now_ns, news });
    }

    /// A message of a driver is the last of what waits for the socket.
    fn note_unsent(&mut self, conn_idx: usize, bytes: usize) {
        let conn = &mut self.conns[conn_idx];
        let (Some(websocket), Some(held)) = (&mut conn.cold.websocket, &conn.held) else { return };
        let end = held.taken_bytes + held.left_bytes() as u64;
        websocket.unsent.get_or_insert_default().add(end, bytes);
    }

    /// The socket has taken some of what waited: how much is left is reported to the driver.
    pub(in crate::shard) fn report_unsent(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        let (Some(websocket), Some(held)) = (&mut conn.cold.websocket, &conn.held) else { return };
        let news = websocket.unsent.as_mut().and_then(|unsent| unsent.advance(held.taken_bytes));
        if let Some(bytes) = news {
            self.report(conn_idx, StreamNews::Unsent(bytes));
        }
    }

    /// A message came on one.
    pub(in crate::shard) fn report_message(&mut self, conn_idx: usize, kind: MessageKind, bytes: &[u8]) {
        self.report(conn_idx, StreamNews::Message(kind, bytes.to_vec()));
    }
}
