//! From the answer to the opening handshake to a connection on which messages go.

use squall_wire::h1::Response;
use squall_wire::ws::MessageKind;
use squall_wire::ws::deflate::Params;

use crate::shard::connections::Connections;
use crate::shard::connections::conn::Exchange;
use crate::shard::connections::websocket::WebSocket;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::{Life, ShardSchedule};
use crate::trouble::Trouble;

impl ShardSchedule {
    /// The server has answered the opening handshake.
    pub(in crate::shard) fn on_websocket_response(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        response: &Response,
    ) {
        let opened = self.opened(connections, recorder, (conn_idx, slot), exchange, response);
        let outcome = opened.as_ref().map(drop).map_err(Clone::clone);
        connections.settle(self, recorder, (conn_idx, slot), exchange, response.status, outcome);
        match opened {
            Err(_) => self.end_session(connections, recorder, conn_idx),
            Ok(params) => {
                connections.conns[conn_idx].cold.websocket = Some(Box::new(WebSocket::new(params)));
                connections.conns[conn_idx].cold.failure_count = 0;
                // Before anything can end it, as its end is counted too.
                if let Some(publishing) =
                    self.messages.as_ref().and_then(|messages| messages.publishing.as_ref())
                {
                    publishing.audience.note_opened();
                }
                self.keep_or_close(connections, recorder, conn_idx);
                self.begin_talk(connections, conn_idx);
            }
        }
    }

    /// What was agreed on.
    fn opened(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, slot): (usize, u32),
        exchange: &Exchange,
        response: &Response,
    ) -> Result<Option<Params>, Trouble> {
        let captured = recorder.sink.captures.take((conn_idx, slot)).unwrap_or_default();
        let is_carried = connections.is_carried(conn_idx);
        // RFC 8441 5: over HTTP/2, success is what 101 is over HTTP/1.1.
        let is_accepted = is_carried && (200..300).contains(&response.status);
        let judged = Response { status: if is_accepted { 101 } else { response.status }, ..*response };
        connections.judge(self, recorder, (conn_idx, slot), exchange, &judged)?;
        let field = |name: &str| captured.list(name);
        match &self.messages {
            Some(messages) => {
                let key = (!is_carried).then(|| connections.handshake_key(conn_idx));
                messages.policy.offer.agreed(key, field)
            }
            None => Ok(None),
        }
    }

    /// The connection is open: its greeting goes out, and it is among those that send.
    fn begin_talk(&mut self, connections: &mut Connections, conn_idx: usize) {
        let Some(messages) = &mut self.messages else { return };
        let ping_at_ns = connections.deadlines[conn_idx];
        if let Some(greeting) = &messages.policy.greeting {
            connections.send_message(conn_idx, MessageKind::Text, greeting.as_bytes());
        }
        let conn = &mut connections.conns[conn_idx];
        let generation = conn.generation;
        let Some(websocket) = &mut conn.cold.websocket else { return };
        websocket.talk.ping_at_ns = ping_at_ns;
        if (messages.senders.len() as u32) < messages.sender_count_max {
            websocket.talk.sender_at = Some(messages.senders.len() as u32);
            messages.senders.push(conn_idx as u32);
            if messages.arrivals.is_none() && self.life == Life::Running {
                messages.go_on_at_once(conn_idx as u32, generation);
            }
        }
    }
}
