//! A recorded WebSocket from the side of its client: what it says, when, and whether it has been answered before.

use std::io;

use super::learn::LEARN_BYTES_MAX;
use crate::store::{RecordView, Recording};
use crate::{Peer, Problem, RecordedKind, RecordedMessage, Response};

/// What is to be said on a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationScript {
    /// Messages of the client.
    pub cues: Vec<Cue>,
    /// How it ends from the client's side; its time is that of the recorded end.
    pub close: Cue,
    /// Messages that the server had sent.
    pub received_count: u64,
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cue {
    /// When, in nanoseconds after the beginning of the opening request.
    pub at_ns: u64,
    /// The server had said something since the one before it.
    pub is_answer: bool,
    /// Of a close frame, code and reason as in [`RecordedMessage::bytes`].
    pub kind: RecordedKind,
    /// Payload.
    pub bytes: Vec<u8>,
}

/// How recorded distances become those of the replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tempo {
    /// They are multiplied by this; 0: only answers are waited for.
    pub factor: f64,
    /// Longer silences are cut to this.
    pub gap_ns_max: Option<u64>,
}

impl ConversationScript {
    /// That of a recorded WebSocket.
    pub fn new(recorded: Response, tempo: Tempo) -> Self {
        let mut clock = Clock { tempo, recorded_ns: 0, cut_ns: 0 };
        let (mut cues, mut close) = (Vec::new(), None);
        let (mut received_count, mut is_answer, mut has_server_close) = (0, false, false);
        for RecordedMessage { at_ns, by, kind, bytes } in recorded.messages {
            let at_ns = clock.pass(at_ns);
            match (by, kind) {
                (Peer::Server, kind) => {
                    is_answer = true;
                    received_count += u64::from(kind != RecordedKind::Close);
                    has_server_close |= kind == RecordedKind::Close;
                }
                // Its answer to the server's close frame is the codec's to give.
                (Peer::Client, RecordedKind::Close) if has_server_close => {}
                (Peer::Client, _) => {
                    let cue = Cue { at_ns, is_answer: std::mem::take(&mut is_answer), kind, bytes };
                    if kind == RecordedKind::Close { close = Some(cue) } else { cues.push(cue) }
                }
            }
        }
        let end_ns = clock.pass(recorded.latency_ns);
        let close = close.unwrap_or_else(|| Cue {
            at_ns: end_ns,
            is_answer,
            kind: RecordedKind::Close,
            bytes: NORMAL_CLOSURE.to_be_bytes().to_vec(),
        });
        Self { cues, close, received_count }
    }

    /// Bytes that it takes in memory, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.cues.iter().map(|cue| size_of::<Cue>() + cue.bytes.len() + 16).sum()
    }

    /// The first WebSocket of a recording that nobody can have had, as far as the recording is looked through before it is played.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn find_flaw(recording: &Recording) -> io::Result<Option<Problem>> {
        let mut cursor = recording.cursor(1 << 20);
        if recording.index().web_socket_count == 0 {
            return Ok(None);
        }
        while let Some(frame) = cursor.peek()?.filter(|_| cursor.passed_bytes() < LEARN_BYTES_MAX) {
            let payload = cursor.take(&frame)?;
            let Some(view) = RecordView::read(payload) else { continue };
            if let Some(flaw) = view.flaw_of(view.response().as_ref()) {
                return Ok(Some(Problem::record(view.place, flaw)));
            }
        }
        Ok(None)
    }
}

/// Goes through recorded times in order.
struct Clock {
    tempo: Tempo,
    recorded_ns: u64,
    cut_ns: u64,
}

impl Clock {
    /// The replay's time for a recorded one.
    fn pass(&mut self, recorded_ns: u64) -> u64 {
        let gap_ns = recorded_ns.saturating_sub(self.recorded_ns);
        self.recorded_ns += gap_ns;
        self.cut_ns += gap_ns.saturating_sub(self.tempo.gap_ns_max.unwrap_or(u64::MAX));
        ((self.recorded_ns - self.cut_ns) as f64 * self.tempo.factor) as u64
    }
}

/// RFC 6455 7.4.1: of a client that leaves without a close frame of its own in the recording.
const NORMAL_CLOSURE: u16 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: Tempo = Tempo { factor: 1.0, gap_ns_max: None };

    fn message((at_ns, by, text): (u64, Peer, &str)) -> RecordedMessage {
        match text.strip_prefix("close ") {
            Some(code) => RecordedMessage::close(at_ns, by, code.parse().ok(), ""),
            None => RecordedMessage { at_ns, by, kind: RecordedKind::Text, bytes: text.into() },
        }
    }

    fn conversation(messages: &[(u64, Peer, &str)], latency_ns: u64, tempo: Tempo) -> ConversationScript {
        let messages = messages.iter().copied().map(message).collect();
        ConversationScript::new(Response { status: 101, latency_ns, messages, ..Response::default() }, tempo)
    }

    /// Time, whether it answers, and text or code of each cue; the close is the last one.
    fn shown(conversation: &ConversationScript) -> Vec<(u64, bool, String)> {
        let text = |cue: &Cue| match cue.kind {
            RecordedKind::Close => {
                format!("{:?}", cue.bytes.first_chunk().map(|code| u16::from_be_bytes(*code)))
            }
            _ => String::from_utf8_lossy(&cue.bytes).into_owned(),
        };
        let cues = conversation.cues.iter().chain([&conversation.close]);
        cues.map(|cue| (cue.at_ns, cue.is_answer, text(cue))).collect()
    }

    #[test]
    fn the_client_says_what_it_said_after_what_it_had_heard() {
        use Peer::{Client, Server};
        let talk = [
            (10, Server, "hello"),
            (20, Client, "login"),
            (21, Client, "join"),
            (30, Server, "ok"),
            (31, Server, "joined"),
            (50, Client, "bye"),
            (60, Client, "close 4001"),
            (61, Server, "close 4001"),
        ];
        let own = |at_ns, is_answer, text: &str| (at_ns, is_answer, text.to_owned());
        let said = [
            own(20, true, "login"),
            own(21, false, "join"),
            own(50, true, "bye"),
            own(60, false, "Some(4001)"),
        ];
        let whole = conversation(&talk, 62, RECORDED);
        assert_eq!((shown(&whole), whole.received_count), (said.to_vec(), 3));
        let cut = conversation(&talk[..5], 400, RECORDED);
        assert_eq!(shown(&cut)[2..], [own(400, true, "Some(1000)")]);
        let by_server = [(5, Client, "a"), (9, Server, "close 1001"), (10, Client, "close 1001")];
        let by_server = conversation(&by_server, 11, RECORDED);
        assert_eq!(shown(&by_server), [own(5, false, "a"), own(11, true, "Some(1000)")]);
        assert_eq!(shown(&conversation(&[], 0, RECORDED)), [own(0, false, "Some(1000)")]);
    }

    #[test]
    fn distances_are_scaled_and_long_silences_cut() {
        use Peer::{Client, Server};
        let talk = [(100, Client, "a"), (90, Server, "b"), (1100, Client, "c"), (1200, Client, "d")];
        let times = |tempo| -> Vec<u64> {
            shown(&conversation(&talk, 0, tempo)).into_iter().map(|(at_ns, ..)| at_ns).collect()
        };
        assert_eq!(times(RECORDED), [100, 1100, 1200, 1200]);
        assert_eq!(times(Tempo { factor: 0.5, ..RECORDED }), [50, 550, 600, 600]);
        assert_eq!(times(Tempo { factor: 2.0, gap_ns_max: Some(150) }), [200, 500, 700, 700]);
        assert_eq!(times(Tempo { factor: 0.0, ..RECORDED }), [0, 0, 0, 0]);
    }
}
