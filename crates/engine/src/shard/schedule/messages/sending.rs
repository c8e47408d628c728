//! Which messages go out when: what was answered is followed by the next, or the schedule says.

use std::cmp::Reverse;

use squall_plan::limits::ARRIVALS_WAITING_MAX;
use squall_traffic::change::Context;

use super::{MessageSchedule, figures, write_stamp};
use crate::prepare::{self, MessageContent};
use crate::shard::connections::Connections;
use crate::shard::connections::websocket::{MessageDigest, SentMessage, WebSocket};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::shard::schedule::waiter::SWEEP_NS;

impl ShardSchedule {
    /// Sends what is due, in a turn of the loop.
    pub(in crate::shard) fn serve_messages(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        if self.messages.is_none() {
            return;
        }
        self.start_storm(connections, recorder);
        self.begin_publishing(connections.now_ns);
        self.release_messages(connections, recorder);
        self.send_waiting(connections);
        self.send_due(connections);
        if self.messages.as_ref().is_some_and(|messages| messages.is_done(connections.now_ns)) {
            self.drain(connections, recorder);
        }
    }

    /// Lets the schedule begin once all who are to get its messages are there.
    fn begin_publishing(&mut self, now_ns: u64) {
        let Some(messages) = &mut self.messages else { return };
        let Some(publishing) = &mut messages.publishing else { return };
        if messages.begin_ns == u64::MAX && publishing.may_begin(now_ns) {
            messages.begin_ns = now_ns;
        }
        if messages.remaining == Some(0) && messages.waiting.is_empty() && messages.unsent_count == 0 {
            publishing.end();
        }
    }

    /// Takes the messages from the schedule that are due.
    fn release_messages(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        while let Some(messages) = &mut self.messages
            && let begin_ns = messages.begin_ns
            && let Some(at_ns) = connections.now_ns.checked_sub(begin_ns)
            && messages.remaining != Some(0)
            && let Some(due) = messages.arrivals.as_mut().and_then(|arrivals| arrivals.pop_due(at_ns))
        {
            messages.take_one();
            let intended_ns = begin_ns + due.intended_ns;
            if !messages.is_warmup(intended_ns) {
                figures(&mut recorder.pulse).messages_asked += 1;
                let lag = &mut recorder.pulse.snapshot.generator.schedule_lag;
                lag.record(connections.now_ns.saturating_sub(begin_ns + due.exact_ns));
            }
            if messages.waiting.len() as u64 + messages.unsent_count < ARRIVALS_WAITING_MAX {
                messages.waiting.push_back(intended_ns);
            } else if !messages.is_warmup(intended_ns) {
                figures(&mut recorder.pulse).unanswered += 1;
            }
        }
    }

    /// Gives what waits to the connections that send, in turn.
    fn send_waiting(&mut self, connections: &mut Connections) {
        let Some(messages) = &mut self.messages else { return };
        while !messages.senders.is_empty()
            && let Some(intended_ns) = messages.waiting.pop_front()
        {
            messages.next_sender = (messages.next_sender + 1) % messages.senders.len();
            let conn_idx = messages.senders[messages.next_sender] as usize;
            messages.hand_over(connections, conn_idx, intended_ns);
        }
    }

    /// Lets connections go on whose message was answered, or whose pause is over.
    fn send_due(&mut self, connections: &mut Connections) {
        let Some(messages) = &mut self.messages else { return };
        let now_ns = connections.now_ns;
        let mut due = std::mem::take(&mut messages.due);
        while let Some(Reverse((at_ns, conn_idx, generation))) = messages.pausing.peek().copied()
            && at_ns <= now_ns
        {
            messages.pausing.pop();
            if connections.conns[conn_idx as usize].generation == generation {
                due.push(conn_idx);
            }
        }
        for conn_idx in due.drain(..) {
            let conn = &connections.conns[conn_idx as usize];
            let sends = conn.cold.websocket.as_ref().is_some_and(|websocket| {
                websocket.talk.sender_at.is_some() && websocket.talk.to_send.is_empty()
            });
            if sends && messages.take_one() {
                messages.hand_over(connections, conn_idx as usize, now_ns);
            }
        }
        messages.due = due;
    }

    /// Appends what a connection is to send now. The socket has taken all that went before.
    pub(in crate::shard) fn write_messages(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        websocket: &mut WebSocket,
    ) {
        let Some(messages) = &mut self.messages else { return };
        let now_ns = connections.now_ns;
        while connections.io.out.len() < WRITE_BYTES
            && let Some(intended_ns) = websocket.talk.to_send.pop_front()
        {
            messages.unsent_count -= 1;
            messages.fill(conn_idx, intended_ns.saturating_sub(self.times.start_ns));
            let (policy, key) = (&messages.policy, Some(connections.mask()));
            let (bytes, digest) = match &policy.message {
                MessageContent::Fixed(bytes) => (&bytes[..], MessageDigest::default()),
                MessageContent::Template(_) => (&messages.scratch[..], MessageDigest::of(&messages.scratch)),
            };
            let message_bytes = bytes.len() as u64;
            websocket.outbox.message(policy.kind, bytes, key, &mut connections.io.out);
            match &messages.publishing {
                // Who gets it answers for it.
                Some(publishing) => publishing.note_sent(now_ns),
                None => {
                    messages.open_count += 1;
                    websocket.talk.unanswered.push_back(SentMessage { intended_ns, sent_ns: now_ns, digest });
                    let answer_ns = now_ns.saturating_add(policy.timeout_ns);
                    connections.deadlines[conn_idx] = connections.deadlines[conn_idx].min(answer_ns);
                }
            }
            if !messages.is_warmup(intended_ns) {
                let made = figures(&mut recorder.pulse);
                // Without a schedule, what is not sent has not been asked for: its connection may end before.
                made.messages_asked += u64::from(messages.arrivals.is_none());
                made.messages_sent += 1;
                made.bytes_sent += message_bytes;
            }
        }
        self.times.next_sweep_ns = self.times.next_sweep_ns.min(now_ns + SWEEP_NS);
    }
}

impl MessageSchedule {
    /// A connection that has just opened sends its first message.
    pub(super) fn go_on_at_once(&mut self, conn_idx: u32, _generation: u32) {
        self.due.push(conn_idx);
    }

    /// Puts a message together whose time of sending is `run_ns` after the start, where each differs.
    fn fill(&mut self, conn_idx: usize, run_ns: u64) {
        let MessageContent::Template(template) = &self.policy.message else { return };
        let whole_idx = |own_idx: u64| self.part.segment.whole_idx(self.part.machine_idx(own_idx));
        let context = Context {
            user: whole_idx(conn_idx as u64) as u32,
            round: 0,
            ordinal: 0,
            unique: whole_idx(self.filled_count) + 1,
            recorded_ns: 0,
            now_ns: prepare::now_ns(),
            live: None,
        };
        self.scratch.clear();
        template.fill(&context, &write_stamp(run_ns), &mut self.scratch);
        self.filled_count += 1;
    }

    /// A message is this connection's to send.
    fn hand_over(&mut self, connections: &mut Connections, conn_idx: usize, intended_ns: u64) {
        let Some(websocket) = &mut connections.conns[conn_idx].cold.websocket else { return };
        websocket.talk.to_send.push_back(intended_ns);
        self.unsent_count += 1;
        connections.list_unsent(conn_idx);
    }
}

/// One write carries about so much.
const WRITE_BYTES: usize = 64 * 1024;
