//! One recorded WebSocket while it is played: what its client says next, and when.
//!
//! Owns: how far it is. Never: reads the clock; callers pass `now_ns`.

use squall_measure::{Cause, Phase, Sample};
use squall_traffic::play::{ConversationScript, Cue};
use squall_wire::ws::CloseCode;

use super::Meta;
use crate::driver::stream::StreamKey;
use crate::shard::connections::websocket::SentMessage;
use crate::trouble::Trouble;

/// A recorded WebSocket that is open.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) key: StreamKey,
    pub(super) meta: Meta,
    /// Its number among all requests of the run, for templates.
    pub(super) unique: u64,
    /// The opening request, which counts when the WebSocket has ended: `None` in the warm-up.
    pub(super) sample: Option<Sample>,
    /// When it is to be looked at next.
    pub(super) wake_ns: u64,
    script: ConversationScript,
    /// The recording's time 0, and the time-out of an answer.
    begin_ns: u64,
    timeout_ns: u64,
    opened_ns: u64,
    /// Messages that the client has sent.
    sent_count: usize,
    /// When it opened, or when the client said something last.
    acted_ns: u64,
    /// The server has said something since then, and when it did so last.
    has_answer: bool,
    heard_ns: u64,
    received_count: u64,
    /// The client's last message, where the recording has an answer to it and none has come yet.
    unanswered: Option<SentMessage>,
    /// The server's close frame.
    peer_close: Option<(CloseCode, String)>,
    is_closing: bool,
}

/// What is to be done on a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TalkStep {
    Say,
    Close,
    /// Nothing until then, unless something comes.
    Wait(u64),
    /// What the recording has an answer to was not answered in time.
    Late,
    /// The server does not answer the close frame.
    Leave,
}

/// How a message was answered, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TalkAnswer {
    /// From the time at which the message was to be sent.
    pub(super) latency_ns: u64,
    /// From its sending.
    pub(super) service_ns: u64,
}

impl Talk {
    /// `begin_ns`: the recording's time 0.
    pub(super) fn new(
        (script, meta, unique): (ConversationScript, Meta, u64),
        (key, sample): (StreamKey, Option<Sample>),
        (begin_ns, now_ns, timeout_ns): (u64, u64, u64),
    ) -> Self {
        Self {
            key,
            meta,
            unique,
            sample,
            wake_ns: u64::MAX,
            script,
            begin_ns,
            timeout_ns,
            opened_ns: now_ns,
            sent_count: 0,
            acted_ns: now_ns,
            has_answer: false,
            heard_ns: now_ns,
            received_count: 0,
            unanswered: None,
            peer_close: None,
            is_closing: false,
        }
    }

    /// Bytes that its messages take in memory, roughly.
    pub(super) fn memory_bytes(&self) -> usize {
        self.script.memory_bytes()
    }

    /// What is to be done now.
    pub(super) fn step(&self, now_ns: u64) -> TalkStep {
        if self.is_closing {
            return wait_or(TalkStep::Leave, self.acted_ns + GRACE_NS, now_ns);
        }
        let cue = self.cue();
        let due_ns = self.begin_ns.saturating_add(cue.at_ns);
        if cue.is_answer && !self.has_answer {
            return wait_or(TalkStep::Late, due_ns.max(self.acted_ns + self.timeout_ns), now_ns);
        }
        if self.left_count() > 0 {
            return wait_or(TalkStep::Say, due_ns, now_ns);
        }
        // Messages that come without being asked for may come a little later than they did.
        let is_owed = self.received_count < self.script.received_count;
        let grace_ns = if is_owed { due_ns.max(self.heard_ns) + GRACE_NS } else { due_ns };
        wait_or(TalkStep::Close, grace_ns, now_ns)
    }

    /// What the client says next.
    pub(super) fn cue(&self) -> &Cue {
        self.script.cues.get(self.sent_count).unwrap_or(&self.script.close)
    }

    /// Messages that the client has not sent.
    pub(super) fn left_count(&self) -> usize {
        self.script.cues.len() - self.sent_count
    }

    /// The client has said it; `has_times`: at a time that does not depend on answers.
    pub(super) fn note_said(&mut self, now_ns: u64, has_times: bool) {
        // Nothing was to be sent before the WebSocket was open: how long that took is the opening request's latency.
        let due_ns = self.begin_ns.saturating_add(self.cue().at_ns).max(self.opened_ns);
        let intended_ns = if has_times { due_ns.min(now_ns) } else { now_ns };
        self.sent_count += 1;
        (self.acted_ns, self.has_answer) = (now_ns, false);
        let awaits = self.cue().is_answer;
        self.unanswered =
            awaits.then_some(SentMessage { intended_ns, sent_ns: now_ns, ..SentMessage::default() });
    }

    /// The client has sent its close frame.
    pub(super) fn note_closing(&mut self, now_ns: u64) {
        (self.is_closing, self.acted_ns) = (true, now_ns);
    }

    /// A message came.
    pub(super) fn note_message(&mut self, now_ns: u64) -> Option<TalkAnswer> {
        self.received_count += 1;
        (self.has_answer, self.heard_ns) = (true, now_ns);
        let SentMessage { intended_ns, sent_ns, .. } = self.unanswered.take()?;
        let [latency_ns, service_ns] = [intended_ns, sent_ns].map(|from_ns| now_ns.saturating_sub(from_ns));
        Some(TalkAnswer { latency_ns, service_ns })
    }

    /// The server closes, which may be the answer in the recording, too.
    pub(super) fn note_peer_close(&mut self, code: CloseCode, reason: String) {
        if self.received_count >= self.script.received_count {
            self.unanswered = None;
        }
        self.peer_close = Some((code, reason));
    }

    /// Whether its client still waits for an answer.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    pub(super) fn peer_close(&self) -> Option<&(CloseCode, String)> {
        self.peer_close.as_ref()
    }

    /// What is wrong with its end, where `trouble` has ended the connection.
    pub(super) fn outcome(&self, trouble: Option<Trouble>) -> Result<(), Trouble> {
        let left_count = self.left_count();
        let is_over = left_count == 0 && self.received_count >= self.script.received_count;
        match (&self.peer_close, trouble) {
            _ if self.is_closing => Ok(()),
            (Some(_), _) if left_count == 0 => Ok(()),
            (Some((code, reason)), _) => {
                let space = if reason.is_empty() { "" } else { " " };
                let text = format!(
                    "the server closed the WebSocket with {}{space}{reason}: {left_count} of the recorded messages not sent",
                    code.0
                );
                Err(Trouble::new(Cause::EndedEarly, Phase::Receiving, text))
            }
            (None, Some(trouble)) if is_over && trouble.cause == Cause::ConnectionClosed => Ok(()),
            (None, trouble) => Err(trouble.unwrap_or_else(|| Trouble::closed(Phase::Receiving))),
        }
    }
}

fn wait_or(step: TalkStep, at_ns: u64, now_ns: u64) -> TalkStep {
    if now_ns < at_ns { TalkStep::Wait(at_ns) } else { step }
}

/// How long it takes at most until what nobody has asked for, or the answer to a close frame, is no longer waited for.
const GRACE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use squall_traffic::play::{SessionKey, Span, Tempo};
    use squall_traffic::store::{Frame, FrameKind};
    use squall_traffic::{Peer, RecordedKind, RecordedMessage, Response};

    use super::*;

    const MS: u64 = 1_000_000;

    /// One that opened at 100 ms, 10 ms after its time 0, with answers within 500 ms.
    fn talk(messages: &[(u64, Peer)]) -> Talk {
        let said = |(at_ms, by): &(u64, Peer)| RecordedMessage {
            at_ns: at_ms * MS,
            by: *by,
            kind: RecordedKind::Text,
            bytes: b"a".to_vec(),
        };
        let messages = messages.iter().map(said).collect();
        let recorded = Response { status: 101, messages, ..Response::default() };
        let script = ConversationScript::new(recorded, Tempo { factor: 1.0, gap_ns_max: None });
        let frame = Frame {
            kind: FrameKind::Record,
            payload_bytes: 0,
            check: 0,
            time_ns: 0,
            connection: 0,
            session: 0,
            origin: 0,
            row: 0,
        };
        let meta = Meta {
            due_ns: 0,
            user: 0,
            round: 0,
            ordinal: 0,
            frame,
            offset: 0,
            session: SessionKey { user: 0, session: 0 },
            span: Span { begin_ns: 0, end_ns: None, serial_connection: 0 },
            walk: None,
        };
        let key = StreamKey { conn_idx: 0, generation: 0, slot: 0 };
        Talk::new((script, meta, 1), (key, None), (90 * MS, 100 * MS, 500 * MS))
    }

    #[test]
    fn a_message_waits_for_its_time_and_for_the_answer_before_it() {
        let mut talk = talk(&[(20, Peer::Client), (25, Peer::Server), (30, Peer::Client)]);
        assert_eq!(talk.step(100 * MS), TalkStep::Wait(110 * MS));
        assert_eq!(talk.step(112 * MS), TalkStep::Say);
        talk.note_said(112 * MS, true);
        assert_eq!(talk.step(130 * MS), TalkStep::Wait(612 * MS));
        assert_eq!((talk.step(612 * MS), talk.is_unanswered()), (TalkStep::Late, true));
        let answer = talk.note_message(140 * MS).unwrap();
        assert_eq!((answer.latency_ns, answer.service_ns), (30 * MS, 28 * MS));
        assert_eq!(talk.step(140 * MS), TalkStep::Say);
        talk.note_said(140 * MS, true);
        assert_eq!((talk.step(140 * MS), talk.is_unanswered()), (TalkStep::Close, false));
        talk.note_closing(140 * MS);
        assert_eq!(talk.step(150 * MS), TalkStep::Wait(1140 * MS));
        assert_eq!(talk.step(1140 * MS), TalkStep::Leave);
    }

    #[test]
    fn messages_of_the_server_may_come_a_little_later_than_they_did() {
        let mut talk = talk(&[(20, Peer::Server), (30, Peer::Server)]);
        assert_eq!(talk.step(100 * MS), TalkStep::Wait(600 * MS));
        assert!(talk.note_message(110 * MS).is_none());
        assert_eq!(talk.step(130 * MS), TalkStep::Wait(1120 * MS));
        talk.note_peer_close(CloseCode(1001), String::new());
        assert!(talk.outcome(None).is_ok());
        talk.note_message(140 * MS);
        assert_eq!(talk.step(140 * MS), TalkStep::Close);
    }

    #[test]
    fn a_server_that_closes_before_all_was_said_ends_early() {
        let mut talk = talk(&[(20, Peer::Client)]);
        talk.note_peer_close(CloseCode(1013), "later".to_owned());
        let trouble = talk.outcome(None).unwrap_err();
        let text = "the server closed the WebSocket with 1013 later: 1 of the recorded messages not sent";
        assert_eq!((trouble.cause, trouble.text.as_str()), (Cause::EndedEarly, text));
    }
}
