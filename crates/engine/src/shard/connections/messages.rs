//! Moves the bytes of connections that speak WebSocket: what was read to messages, control frames to their answers.
//!
//! Messages are handed over where they were read; what follows from them is done when the codec is back in its connection.

use squall_measure::{ClosedBy, Phase};
use squall_wire::ws::{CloseCode, Error, Event, MessageKind};

use crate::shard::connections::Connections;
use crate::shard::connections::conn::ConnState;
use crate::shard::connections::websocket::WebSocket;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::trouble::Trouble;

/// What the peer said besides messages: what follows ends the connection, or the reading.
#[derive(Debug)]
enum Said {
    Nothing,
    Closed(CloseCode, String),
    Wrong(Error),
}

impl Connections {
    /// Reads messages from plaintext: a part of the read buffer, or all that the TLS session holds.
    pub(in crate::shard) fn decode_messages(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        mut range: std::ops::Range<usize>,
    ) -> Result<(), Trouble> {
        let generation = self.conns[conn_idx].generation;
        loop {
            if let Some(session) = &mut self.conns[conn_idx].tls {
                match session.chunk() {
                    Ok(None) => return Ok(()),
                    Ok(Some([])) => return Err(Trouble::closed(Phase::Receiving)),
                    Ok(Some(chunk)) => {
                        // Masks are taken off where the bytes lie, which in a session they only lie to be read.
                        range = 0..chunk.len();
                        self.io.read[range.clone()].copy_from_slice(chunk);
                        session.consume(range.len());
                    }
                    Err(error) => return Err(Trouble::tls(&error, Phase::Receiving)),
                }
            }
            self.decode_range(schedule, recorder, conn_idx, range.clone());
            if !self.is_same(conn_idx, generation) || self.conns[conn_idx].tls.is_none() {
                return Ok(());
            }
        }
    }

    fn decode_range(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        range: std::ops::Range<usize>,
    ) {
        let mut read = std::mem::take(&mut self.io.read);
        let said = self.decode_all(schedule, recorder, conn_idx, &mut read[range]);
        self.io.read = read;
        self.follow(schedule, recorder, conn_idx, said);
    }

    /// Reads messages that a stream of another connection has brought.
    pub(super) fn decode_plain(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        input: &mut [u8],
    ) {
        let said = self.decode_all(schedule, recorder, conn_idx, input);
        self.follow(schedule, recorder, conn_idx, said);
    }

    fn follow(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        said: Said,
    ) {
        match said {
            Said::Nothing => schedule.after_messages(self, conn_idx),
            Said::Closed(code, reason) => {
                schedule.on_websocket_close(self, recorder, conn_idx, (code, &reason));
            }
            Said::Wrong(error) => schedule.on_websocket_error(self, recorder, conn_idx, error),
        }
    }

    fn decode_all(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        input: &mut [u8],
    ) -> Said {
        let Some(mut websocket) = self.conns[conn_idx].cold.websocket.take() else { return Said::Nothing };
        let said = self.decode_with(schedule, recorder, conn_idx, (&mut websocket, input));
        self.conns[conn_idx].cold.websocket = Some(websocket);
        said
    }

    fn decode_with(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        (websocket, mut input): (&mut WebSocket, &mut [u8]),
    ) -> Said {
        loop {
            let decoded = match websocket.decoder.decode(input) {
                Ok(decoded) => decoded,
                Err(error) => return Said::Wrong(error),
            };
            let (consumed, event) = (decoded.consumed, decoded.event);
            match event {
                None => return Said::Nothing,
                Some(Event::Part(part)) => {
                    let is_whole = part.is_last && !websocket.is_mid_message && !part.is_compressed;
                    websocket.is_mid_message = !part.is_last;
                    let talk = &mut websocket.talk;
                    if is_whole {
                        schedule.on_message(self, recorder, (conn_idx, talk), part.kind, part.bytes);
                    } else {
                        match websocket.inbox.push(part) {
                            Ok(None) => {}
                            Ok(Some(message)) => {
                                let (kind, bytes) = (message.kind, message.bytes);
                                schedule.on_message(self, recorder, (conn_idx, talk), kind, bytes);
                            }
                            Err(error) => return Said::Wrong(error),
                        }
                    }
                }
                Some(Event::Ping(payload)) => {
                    let key = Some(self.mask());
                    let mut frame = Vec::new();
                    websocket.outbox.pong(payload, key, &mut frame);
                    schedule.on_ping(self, recorder, conn_idx);
                    let waiting_bytes = self.hold_back(conn_idx, &frame);
                    websocket.pong_bytes = (websocket.pong_bytes + frame.len()).min(waiting_bytes);
                    if websocket.pong_bytes > UNSENT_PONG_BYTES_MAX {
                        return Said::Wrong(Error::TooLarge(UNSENT_PONG_BYTES_MAX as u64));
                    }
                    self.list_unsent(conn_idx);
                }
                Some(Event::Pong(payload)) => {
                    schedule.on_websocket_pong(self, recorder, (conn_idx, &mut websocket.talk), payload);
                }
                Some(Event::Close(code, reason)) => return Said::Closed(code, reason.to_owned()),
            }
            input = &mut input[consumed..];
        }
    }

    /// A masking key (RFC 6455 5.3).
    pub(in crate::shard) fn mask(&mut self) -> [u8; 4] {
        (self.masks.next() as u32).to_ne_bytes()
    }

    /// A message goes out with the turn, as soon as the socket takes it.
    pub(in crate::shard) fn send_message(&mut self, conn_idx: usize, kind: MessageKind, bytes: &[u8]) {
        self.write_frame(conn_idx, |websocket, key, out| websocket.outbox.message(kind, bytes, key, out));
    }

    /// So does a ping.
    pub(in crate::shard) fn send_ping(&mut self, conn_idx: usize, payload: &[u8]) {
        self.write_frame(conn_idx, |websocket, key, out| websocket.outbox.ping(payload, key, out));
    }

    /// So does a close frame, once.
    pub(in crate::shard) fn send_close(&mut self, conn_idx: usize, code: CloseCode, reason: &str) {
        self.write_frame(conn_idx, |websocket, key, out| {
            if !std::mem::replace(&mut websocket.is_closing, true) {
                websocket.outbox.close(code, reason, key, out);
            }
        });
        if let Some(stream) = &mut self.conns[conn_idx].cold.carried {
            stream.is_ending = true;
        }
    }

    /// Appends a frame to what the connection has to send.
    fn write_frame(
        &mut self,
        conn_idx: usize,
        write: impl FnOnce(&mut WebSocket, Option<[u8; 4]>, &mut Vec<u8>),
    ) {
        let key = Some(self.mask());
        let conn = &mut self.conns[conn_idx];
        let Some(websocket) = conn.cold.websocket.as_deref_mut() else { return };
        write(websocket, key, &mut conn.held.get_or_insert_default().rest);
        if conn.state == ConnState::Open {
            self.list_unsent(conn_idx);
        }
    }

    /// Appends the messages that a schedule wants sent now.
    pub(in crate::shard) fn fill_messages(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let Some(mut websocket) = self.conns[conn_idx].cold.websocket.take() else { return };
        schedule.write_messages(self, recorder, conn_idx, &mut websocket);
        self.conns[conn_idx].cold.websocket = Some(websocket);
    }

    /// The close frame before a close from our side, as far as the socket takes it at once.
    pub(in crate::shard) fn part_websocket(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let Some(websocket) = &self.conns[conn_idx].cold.websocket else { return };
        if websocket.is_closing {
            return;
        }
        // A socket that is full takes no close frame either; a stream ends behind what waits.
        if !self.conns[conn_idx].is_blocked() || self.is_carried(conn_idx) {
            self.send_close(conn_idx, CloseCode::NORMAL, "");
            // A socket that does not take it is closed without.
            let _ = self.flush(recorder, conn_idx);
        }
        let is_held = self.conns[conn_idx].cold.held_by.is_some();
        let Some(websocket) = &mut self.conns[conn_idx].cold.websocket else { return };
        // How a driver's WebSocket or a recorded one was closed is counted by who holds it, if at all.
        if !std::mem::replace(&mut websocket.is_noted, true) && !is_held {
            let websockets = recorder.pulse.snapshot.websockets.get_or_insert_default();
            websockets.count_close(ClosedBy::Squall, CloseCode::NORMAL.0, "", 1);
        }
    }
}

/// What a peer that pings and does not read may leave on a connection.
const UNSENT_PONG_BYTES_MAX: usize = 64 * 1024;
