//! The server's side of a recorded WebSocket: what was recorded after a message of the client is sent after a message like it.
//!
//! A message is like a recorded one by its content, JSON by its value and then by its structure; else it stands for the next one that the
//! client had sent. Where every answer was the message itself, every message is sent back.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use squall_traffic::limits::MESSAGE_BYTES_MAX;
use squall_traffic::{Peer, RecordedKind, RecordedMessage};
use squall_wire::ws::deflate::Params;
use squall_wire::ws::{self, CloseCode, Decoder, Event, Inbox, Outbox, WebSocketRole};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::matching::{Ignored, MatchKey, MockRequest};

/// One WebSocket of a client.
pub(crate) struct Playback {
    messages: Vec<RecordedMessage>,
    /// Of each message of the client: what it is compared by, the most exact first.
    keys: Vec<Option<[MatchKey; 2]>>,
    is_echo: bool,
    /// The next recorded message.
    next: usize,
    /// Messages to be sent, and when.
    due: VecDeque<(Instant, usize)>,
    factor: f64,
    ignored: Ignored,
    counts: Arc<MessageCounts>,
}

/// Messages of all WebSockets.
#[derive(Debug, Default)]
pub(crate) struct MessageCounts {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) unlike: AtomicU64,
}

/// The codec of the connection, and what waits to be written.
struct Line {
    decoder: Decoder,
    inbox: Inbox,
    outbox: Outbox,
    out: Vec<u8>,
    is_closed: bool,
}

impl Playback {
    pub(crate) fn new(
        messages: Vec<RecordedMessage>,
        factor: f64,
        ignored: &Ignored,
        counts: &Arc<MessageCounts>,
    ) -> Self {
        let is_of_client = |message: &RecordedMessage| message.by == Peer::Client && is_content(message.kind);
        let keys =
            messages.iter().map(|message| is_of_client(message).then(|| keys(ignored, &message.bytes)));
        Self {
            keys: keys.collect(),
            is_echo: is_echo(&messages),
            messages,
            next: 0,
            due: VecDeque::new(),
            factor,
            ignored: ignored.clone(),
            counts: Arc::clone(counts),
        }
    }

    /// Talks with the client until one of the two closes.
    pub(crate) async fn play(mut self, upgraded: Upgraded, params: Option<Params>) {
        let role = WebSocketRole::Server;
        let line = Line {
            decoder: Decoder::new(role, params.is_some()),
            inbox: Inbox::new(MESSAGE_BYTES_MAX, params.map(|params| params.inflater(role))),
            outbox: Outbox::new(params.map(|params| params.deflater(role))),
            out: Vec::new(),
            is_closed: false,
        };
        // A client that breaks it off has ended it.
        let _ = self.talk(TokioIo::new(upgraded), line).await;
    }

    async fn talk(&mut self, mut io: TokioIo<Upgraded>, mut line: Line) -> io::Result<()> {
        let mut input = vec![0; READ_BYTES];
        self.schedule(0);
        loop {
            tokio::select! {
                count = io.read(&mut input) => match count? {
                    0 => return Ok(()),
                    count => self.receive(&mut line, &mut input[..count]),
                },
                () = until(self.due.front()) => self.send_due(&mut line),
            }
            io.write_all(&line.out).await?;
            io.flush().await?;
            line.out.clear();
            line.out.shrink_to(READ_BYTES);
            if line.is_closed {
                return self.part(io, line).await;
            }
        }
    }

    /// Waits for the client's close frame, or its end, for a moment.
    async fn part(&self, mut io: TokioIo<Upgraded>, mut line: Line) -> io::Result<()> {
        io.shutdown().await?;
        let rest = async {
            let mut input = vec![0; READ_BYTES];
            while let Ok(1..) = io.read(&mut input).await {}
        };
        let _ = tokio::time::timeout(CLOSE_TIME, rest).await;
        line.out.clear();
        Ok(())
    }

    fn receive(&mut self, line: &mut Line, mut input: &mut [u8]) {
        while !line.is_closed {
            let consumed = match self.receive_one(line, input) {
                Ok(0) => return,
                Ok(consumed) => consumed,
                Err(error) => return line.close(error.close_code(), &error.to_string()),
            };
            input = &mut input[consumed..];
        }
    }

    /// Handles what comes next; how many bytes it was, 0 where the rest of it has not come.
    fn receive_one(&mut self, line: &mut Line, input: &mut [u8]) -> Result<usize, ws::Error> {
        let decoded = line.decoder.decode(input)?;
        let consumed = decoded.consumed;
        match decoded.event {
            None => return Ok(0),
            Some(Event::Part(part)) => {
                if let Some(message) = line.inbox.push(part)? {
                    self.counts.received.fetch_add(1, Relaxed);
                    if self.is_echo {
                        self.counts.sent.fetch_add(1, Relaxed);
                        line.outbox.message(message.kind, message.bytes, None, &mut line.out);
                    } else {
                        self.answer(message.bytes);
                    }
                }
            }
            Some(Event::Ping(payload)) => line.outbox.pong(payload, None, &mut line.out),
            Some(Event::Pong(_)) => {}
            Some(Event::Close(code, reason)) => {
                line.outbox.close(code, reason, None, &mut line.out);
                line.is_closed = true;
            }
        }
        Ok(consumed)
    }

    /// A message came: what was recorded after the one that it is like is due.
    fn answer(&mut self, bytes: &[u8]) {
        let wanted = keys(&self.ignored, bytes);
        let (before, behind) = self.keys.split_at(self.next);
        let find = |nth: usize| {
            let is_like = |key: &Option<[MatchKey; 2]>| key.is_some_and(|keys| keys[nth] == wanted[nth]);
            let ahead = behind.iter().position(is_like).map(|at| before.len() + at);
            ahead.or_else(|| before.iter().position(is_like))
        };
        let same = find(0);
        if same.is_none() {
            self.counts.unlike.fetch_add(1, Relaxed);
        }
        let next = || Some(before.len() + behind.iter().position(Option::is_some)?);
        if let Some(at) = same.or_else(|| find(1)).or_else(next) {
            self.schedule(at + 1);
        }
    }

    /// The server's messages from this place on, up to the client's next one, are due.
    fn schedule(&mut self, from: usize) {
        let begin_ns = from.checked_sub(1).map_or(0, |at| self.messages[at].at_ns);
        let now = Instant::now();
        let mut last = self.due.back().map_or(now, |(at, _)| *at);
        self.next = self.messages.len();
        for (idx, message) in self.messages.iter().enumerate().skip(from) {
            if message.by == Peer::Client {
                if message.kind == RecordedKind::Close {
                    continue;
                }
                self.next = idx;
                return;
            }
            let after_ns = message.at_ns.saturating_sub(begin_ns) as f64 * self.factor;
            // What was due before goes out before.
            last = last.max(now + Duration::from_nanos(after_ns as u64));
            if self.due.len() < DUE_COUNT_MAX {
                self.due.push_back((last, idx));
            }
        }
    }

    fn send_due(&mut self, line: &mut Line) {
        let now = Instant::now();
        while let Some((_, idx)) = self.due.pop_front_if(|(at, _)| *at <= now) {
            let message = &self.messages[idx];
            match message.kind {
                RecordedKind::Close => {
                    let (code, reason) = message.close_parts();
                    return line.close(code.map_or(CloseCode::NONE, CloseCode), reason);
                }
                RecordedKind::Text => {
                    line.outbox.message(ws::MessageKind::Text, &message.bytes, None, &mut line.out);
                }
                RecordedKind::Binary => {
                    line.outbox.message(ws::MessageKind::Binary, &message.bytes, None, &mut line.out);
                }
            }
            self.counts.sent.fetch_add(1, Relaxed);
            if line.out.len() >= WRITE_BYTES {
                return;
            }
        }
    }
}

impl Line {
    fn close(&mut self, code: CloseCode, reason: &str) {
        self.outbox.close(code, reason, None, &mut self.out);
        self.is_closed = true;
    }
}

async fn until(due: Option<&(Instant, usize)>) {
    match due {
        Some((at, _)) => tokio::time::sleep_until(*at).await,
        None => std::future::pending().await,
    }
}

fn is_content(kind: RecordedKind) -> bool {
    kind != RecordedKind::Close
}

/// A message as it is compared: by its value, and by its structure.
fn keys(ignored: &Ignored, bytes: &[u8]) -> [MatchKey; 2] {
    let [same, structure, ..] = ignored.keys(MockRequest { host: None, method: "", target: "", body: bytes });
    [same, structure]
}

/// Whether the server only sent back what it got, each message once.
fn is_echo(messages: &[RecordedMessage]) -> bool {
    let of = |peer: Peer| {
        let messages = messages.iter().filter(move |message| message.by == peer && is_content(message.kind));
        messages.map(|message| (message.kind, &message.bytes))
    };
    of(Peer::Client).next().is_some() && of(Peer::Client).eq(of(Peer::Server))
}

/// Messages that may wait for their time: clients can ask faster than the recorded server answered.
const DUE_COUNT_MAX: usize = 100_000;

/// Written at once, about.
const WRITE_BYTES: usize = 64 << 10;

const READ_BYTES: usize = 16 << 10;

/// How long a client may take to answer a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn message(by: Peer, at_ms: u64, text: &str) -> RecordedMessage {
        RecordedMessage {
            at_ns: at_ms * 1_000_000,
            by,
            kind: RecordedKind::Text,
            bytes: text.as_bytes().to_vec(),
        }
    }

    /// What is due after each of these messages, with a recording of `c: a, s: 1, c: {"id":1}, s: 2, s: 3, c: b, s: 4`.
    fn answers(asked: &[&str]) -> (Vec<String>, u64) {
        use Peer::{Client, Server};
        let recorded = vec![
            message(Server, 1, "hello"),
            message(Client, 2, "a"),
            message(Server, 3, "1"),
            message(Client, 4, r#"{"id":1}"#),
            message(Server, 5, "2"),
            message(Server, 6, "3"),
            message(Client, 7, "b"),
            message(Server, 8, "4"),
        ];
        let counts = Arc::new(MessageCounts::default());
        let mut playback = Playback::new(recorded, 0.0, &Ignored::default(), &counts);
        playback.schedule(0);
        asked.iter().for_each(|text| playback.answer(text.as_bytes()));
        let sent = playback.due.iter().map(|(_, idx)| &playback.messages[*idx].bytes);
        let sent = sent.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        (sent, counts.unlike.load(Relaxed))
    }

    #[test]
    fn messages_are_answered_by_content_and_else_in_order() {
        for (asked, expected, unlike) in [
            (&["a", r#"{ "id": 1 }"#, "b"][..], "hello 1 2 3 4", 0),
            (&["b", "a"], "hello 4 1", 0),
            (&[r#"{"id":7}"#], "hello 2 3", 1),
            (&["x", "y", "z", "more"], "hello 1 2 3 4", 4),
            (&["a", "a"], "hello 1 1", 0),
        ] {
            assert_eq!(
                answers(asked),
                (expected.split(' ').map(str::to_owned).collect(), unlike),
                "{asked:?}"
            );
        }
    }

    #[test]
    fn a_server_that_sends_back_what_it_gets_is_an_echo() {
        use Peer::{Client, Server};
        let of = |all: &[(Peer, &str)]| {
            is_echo(&all.iter().map(|(by, text)| message(*by, 0, text)).collect::<Vec<_>>())
        };
        assert!(of(&[(Client, "a"), (Client, "b"), (Server, "a"), (Server, "b")]));
        assert!(!of(&[(Client, "a"), (Server, "a"), (Server, "b")]));
        assert!(!of(&[(Client, "a")]) && !of(&[]));
    }
}
