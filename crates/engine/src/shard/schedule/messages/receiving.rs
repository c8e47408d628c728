//! Messages that come: what is counted of them, and what follows on their connection.

use squall_measure::WebSockets;
use squall_wire::ws::MessageKind;

use super::{Answer, figures};
use crate::shard::connections::Connections;
use crate::shard::connections::websocket::Talk;
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::{Life, ShardSchedule};

impl ShardSchedule {
    /// A message came.
    pub(in crate::shard) fn on_message(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, talk): (usize, &mut Talk),
        kind: MessageKind,
        bytes: &[u8],
    ) {
        let Some(messages) = &mut self.messages else {
            return connections.report_message(conn_idx, kind, bytes);
        };
        let (now_ns, start_ns) = (connections.now_ns, self.times.start_ns);
        let answer = messages.answer(talk, bytes, now_ns.saturating_sub(start_ns));
        if let (Answer::Delivery(latency_ns), Some(publishing)) = (&answer, &mut messages.publishing) {
            publishing.note_delivery(now_ns, *latency_ns);
        }
        if !messages.is_warmup(now_ns) {
            let made = figures(&mut recorder.pulse);
            made.messages_received += 1;
            made.bytes_received += bytes.len() as u64;
            note_answer(made, &answer, now_ns, messages.arrivals.is_some());
        }
        // What answers nothing, such as a heartbeat, makes nobody send.
        let sends_next = matches!(answer, Answer::Echo(_) | Answer::Mismatch)
            && messages.arrivals.is_none()
            && talk.sender_at.is_some()
            && talk.unanswered.is_empty();
        if sends_next && self.life == Life::Running {
            messages.go_on(now_ns, (conn_idx as u32, connections.conns[conn_idx].generation));
        }
    }

    /// The codec is back in its connection after a read.
    pub(in crate::shard) fn after_messages(&mut self, connections: &mut Connections, conn_idx: usize) {
        self.rearm(connections, conn_idx);
    }

    /// Whether WebSockets have nothing left that has to be waited for at the end.
    pub(in crate::shard::schedule) fn has_settled_messages(&self, now_ns: u64) -> bool {
        self.messages.as_ref().is_none_or(|messages| messages.is_settled(now_ns))
    }
}

fn note_answer(made: &mut WebSockets, answer: &Answer, now_ns: u64, is_open_model: bool) {
    match answer {
        Answer::None => return,
        Answer::Mismatch => made.mismatched += 1,
        Answer::Delivery(latency_ns) => made.latency.record(*latency_ns),
        Answer::Echo(sent) => {
            made.latency.record(now_ns.saturating_sub(sent.intended_ns));
            if is_open_model {
                made.service.record(now_ns.saturating_sub(sent.sent_ns));
            }
        }
    }
    made.answered += 1;
}
