//! Recorded WebSockets in a shard: they are opened as requests are, and then each says what its client said.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use squall_measure::{Cause, ClosedBy, Outcome, Phase, WebSockets};
use squall_traffic::RecordedKind;
use squall_traffic::play::ConversationScript;
use squall_traffic::store::RecordView;
use squall_wire::h1::Response;
use squall_wire::ws::{CloseCode, MessageKind};

use super::Flight;
use super::talk::{Talk, TalkStep};
use crate::driver::stream::{StreamKey, StreamNews, StreamReport};
use crate::prepare::{Offer, PreparedReplay};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::Exchange;
use crate::shard::connections::websocket::WebSocket;
use crate::shard::recorder::ShardRecorder;
use crate::shard::recorder::capture::Place;
use crate::shard::schedule::{Life, ShardSchedule};
use crate::trouble::{Trouble, time_limit};

/// The WebSockets of a shard's replay that are open.
#[derive(Debug, Default)]
pub(super) struct Talks {
    /// By the token with which each holds its connection.
    open: Vec<Option<Talk>>,
    free: Vec<u32>,
    pub(super) count: usize,
    /// Bytes of what they are to say.
    pub(super) bytes: usize,
    /// When each is to be looked at; those whose time is another now are left out when their turn comes.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
}

/// What a request that opens a WebSocket has besides.
#[derive(Debug)]
pub(super) struct Opening {
    offer: Offer,
    script: ConversationScript,
    unique: u64,
}

impl Opening {
    /// That of a record; `None`: it opens none, or what was said on it cannot be read.
    pub(super) fn of(replay: &PreparedReplay, view: &RecordView<'_>, unique: u64) -> Option<Box<Self>> {
        let response = view.outcome().filter(|(status, _)| *status == 101).and_then(|_| view.response())?;
        let script = ConversationScript::new(response, replay.tempo);
        Some(Box::new(Self { offer: Offer::recorded(view.headers()), script, unique }))
    }

    pub(super) fn offer(&self) -> &Offer {
        &self.offer
    }
}

impl Talks {
    fn add(&mut self, talk: Talk) -> u32 {
        self.count += 1;
        self.bytes += talk.memory_bytes();
        let token = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() as u32 - 1
        });
        self.open[token as usize] = Some(talk);
        token
    }

    fn remove(&mut self, token: u32) -> Option<Talk> {
        let talk = self.open.get_mut(token as usize)?.take()?;
        self.free.push(token);
        self.count -= 1;
        self.bytes -= talk.memory_bytes();
        Some(talk)
    }

    fn get_mut(&mut self, token: u32) -> Option<&mut Talk> {
        self.open.get_mut(token as usize)?.as_mut()
    }

    /// It is to be looked at then.
    fn wake_at(&mut self, token: u32, at_ns: u64) {
        let Some(talk) = self.get_mut(token) else { return };
        if std::mem::replace(&mut talk.wake_ns, at_ns) != at_ns {
            self.wakes.push(Reverse((at_ns, token)));
        }
    }

    /// One whose time has come.
    fn pop_due(&mut self, now_ns: u64) -> Option<u32> {
        while let Some(Reverse((at_ns, token))) = self.wakes.peek().copied()
            && at_ns <= now_ns
        {
            self.wakes.pop();
            if let Some(talk) = self.get_mut(token).filter(|talk| talk.wake_ns == at_ns) {
                talk.wake_ns = u64::MAX;
                return Some(token);
            }
        }
        None
    }

    pub(super) fn next_due_ns(&self) -> u64 {
        self.wakes.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns)
    }
}

impl ShardSchedule {
    /// The answer to the opening request of a recorded WebSocket; false: it is none, or opens none.
    pub(in crate::shard) fn opens_recorded(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        place: Place,
        exchange: &Exchange,
        response: &Response,
    ) -> bool {
        let Some(opening) = self.take_opening(exchange).filter(|_| response.status == 101) else {
            return false;
        };
        let Opening { offer, script, unique } = *opening;
        let captured = recorder.sink.captures.get(place);
        let field = |name: &str| captured?.list(name);
        let agreed = offer.agreed(Some(connections.handshake_key(place.0)), field);
        self.hear_recorded(recorder, place, exchange, response);
        match agreed {
            Err(trouble) => {
                connections.settle(self, recorder, place, exchange, response.status, Err(trouble));
                connections.vacate(recorder, place.0);
            }
            Ok(params) => {
                let websocket = WebSocket::new(params);
                self.begin_talk_recorded(
                    connections,
                    recorder,
                    (place.0, exchange),
                    websocket,
                    (script, unique),
                );
            }
        }
        // A user of the closed model goes on meanwhile.
        connections.turn.ready.push(place.0 as u32);
        true
    }

    fn take_opening(&mut self, exchange: &Exchange) -> Option<Box<Opening>> {
        self.flight_mut(exchange)?.opening.take()
    }

    fn flight_mut(&mut self, exchange: &Exchange) -> Option<&mut Flight> {
        self.replay.as_mut()?.flights.get_mut(exchange.request.dynamic_idx()?)?.as_mut()
    }

    fn begin_talk_recorded(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        (conn_idx, exchange): (usize, &Exchange),
        websocket: WebSocket,
        (script, unique): (ConversationScript, u64),
    ) {
        let Some(meta) = self.flight_mut(exchange).map(|flight| flight.meta) else { return };
        connections.counts.open -= 1;
        let sample = connections.sample(recorder, conn_idx, exchange, 101, Outcome::Ok);
        let conn = &mut connections.conns[conn_idx];
        let key = StreamKey { conn_idx: conn_idx as u32, generation: conn.generation, slot: 0 };
        let (now_ns, timeout_ns) = (connections.now_ns, connections.limits.timeout_ns);
        let talk = Talk::new(
            (script, meta, unique),
            (key, (!exchange.is_warmup).then_some(sample)),
            (exchange.intended_ns, now_ns, timeout_ns),
        );
        let Some(replay) = &mut self.replay else { return };
        let token = replay.talks.add(talk);
        conn.client = None;
        (conn.cold.websocket, conn.cold.held_by) = (Some(Box::new(websocket)), Some((meta.user, token)));
        connections.deadlines[conn_idx] = u64::MAX;
        replay.talks.wake_at(token, now_ns);
        if let Some(idx) = exchange.request.dynamic_idx() {
            replay.finish(idx);
        }
        connections.give_back(exchange);
    }

    /// Hears what has come on recorded WebSockets, and says what is due.
    pub(in crate::shard) fn converse(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder) {
        if self.replay.as_ref().is_none_or(|replay| replay.talks.count == 0) {
            return;
        }
        let mut events = std::mem::take(&mut connections.made.port.events);
        for event in events.drain(..) {
            self.hear_talk(connections, recorder, event);
        }
        events.append(&mut connections.made.port.events);
        connections.made.port.events = events;
        // What is still said at the end is heard, but nothing more is answered.
        while self.life == Life::Running
            && let Some(token) =
                self.replay.as_mut().and_then(|replay| replay.talks.pop_due(connections.now_ns))
        {
            self.go_on_talking(connections, recorder, token);
        }
    }

    fn hear_talk(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        event: StreamReport,
    ) {
        let StreamReport { token, key, at_ns, news, .. } = event;
        let Some(replay) = &mut self.replay else { return };
        let Some(talk) = replay.talks.get_mut(token).filter(|talk| talk.key == key) else { return };
        match news {
            StreamNews::Message(_, bytes) => {
                let (answer, is_open_model) = (talk.note_message(at_ns), recorder.pulse.is_open_model());
                if let Some(figures) = figures(connections, recorder) {
                    figures.messages_received += 1;
                    figures.bytes_received += bytes.len() as u64;
                    if let Some(answer) = answer {
                        figures.answered += 1;
                        figures.latency.record(answer.latency_ns);
                        if is_open_model {
                            figures.service.record(answer.service_ns);
                        }
                    }
                }
                replay.talks.wake_at(token, at_ns);
            }
            StreamNews::Ping => {
                figures(connections, recorder).into_iter().for_each(|figures| figures.pings_answered += 1);
            }
            StreamNews::Close(code, reason) => talk.note_peer_close(code, reason),
            StreamNews::Closed(trouble) => {
                let outcome = talk.outcome(trouble);
                self.end_talk(connections, recorder, token, outcome);
            }
            _ => {}
        }
    }

    fn go_on_talking(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, token: u32) {
        let now_ns = connections.now_ns;
        while let Some(replay) = &mut self.replay
            && let Some(talk) = replay.talks.get_mut(token)
        {
            let conn_idx = talk.key.conn_idx as usize;
            match talk.step(now_ns) {
                TalkStep::Wait(at_ns) => return replay.talks.wake_at(token, at_ns),
                TalkStep::Say => self.say_next(connections, recorder, token),
                TalkStep::Close => {
                    let (code, reason) = close_parts(&talk.cue().bytes);
                    talk.note_closing(now_ns);
                    connections.send_close(conn_idx, code, &reason);
                }
                TalkStep::Leave => {
                    connections.vacate(recorder, conn_idx);
                    self.end_talk(connections, recorder, token, Ok(()));
                }
                TalkStep::Late => {
                    let limit = time_limit(connections.limits.timeout_ns);
                    let text = format!("no answer to a WebSocket message within {limit}");
                    connections.part(recorder, conn_idx);
                    connections.vacate(recorder, conn_idx);
                    let late = Trouble::new(Cause::Timeout, Phase::Waiting, text);
                    self.end_talk(connections, recorder, token, Err(late));
                }
            }
        }
    }

    fn say_next(&mut self, connections: &mut Connections, recorder: &mut ShardRecorder, token: u32) {
        let Some(replay) = &mut self.replay else { return };
        let live =
            replay.talks.open[token as usize].as_ref().and_then(|talk| replay.live.get(&talk.meta.session));
        let Some(talk) = replay.talks.open[token as usize].as_mut() else { return };
        let cue = talk.cue();
        let kind = if cue.kind == RecordedKind::Binary { MessageKind::Binary } else { MessageKind::Text };
        let mut bytes = cue.bytes.clone();
        let is_corrected = live.is_some_and(|live| live.correct_message(&mut bytes));
        let context = PreparedReplay::context(&talk.meta, talk.unique, crate::prepare::now_ns(), live);
        replay.prepared.changes.apply_to_message(&mut bytes, &context);
        if kind == MessageKind::Text {
            bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
        }
        connections.send_message(talk.key.conn_idx as usize, kind, &bytes);
        talk.note_said(connections.now_ns, recorder.pulse.is_open_model());
        if let Some(figures) = figures(connections, recorder) {
            figures.messages_asked += 1;
            figures.messages_sent += 1;
            figures.bytes_sent += bytes.len() as u64;
            recorder.pulse.snapshot.replay.get_or_insert_default().corrected += u64::from(is_corrected);
        }
    }

    /// A WebSocket has ended: its opening request counts now, as what it has come to.
    fn end_talk(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
        token: u32,
        outcome: Result<(), Trouble>,
    ) {
        let Some(talk) = self.replay.as_mut().and_then(|replay| replay.talks.remove(token)) else { return };
        if let Some(figures) = figures(connections, recorder) {
            figures.unanswered += u64::from(talk.is_unanswered());
            figures.messages_asked += talk.left_count() as u64;
            let (by, code, reason) = closed_by(&talk, &outcome);
            figures.count_close(by, code.0, &reason, 1);
        }
        count_opening(connections, recorder, &talk, outcome);
    }

    /// The run is over: WebSockets that are still open have ended well, and are closed with the rest.
    pub(in crate::shard) fn end_talks(
        &mut self,
        connections: &mut Connections,
        recorder: &mut ShardRecorder,
    ) {
        let Some(replay) = &mut self.replay else { return };
        for token in 0..replay.talks.open.len() as u32 {
            let Some(talk) = replay.talks.remove(token) else { continue };
            if let Some(figures) = figures(connections, recorder) {
                figures.unanswered += u64::from(talk.is_unanswered());
                figures.count_close(ClosedBy::Squall, CloseCode::NORMAL.0, "", 1);
            }
            count_opening(connections, recorder, &talk, Ok(()));
        }
    }

    /// When a recorded WebSocket has something to say.
    pub(in crate::shard) fn next_talk_ns(&self) -> u64 {
        let running = self.replay.as_ref().filter(|_| self.life == Life::Running);
        running.map_or(u64::MAX, |replay| replay.talks.next_due_ns())
    }

    /// Whether recorded WebSockets are open.
    pub(in crate::shard) fn is_talking(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.talks.count > 0)
    }
}

/// Counts the opening request of a WebSocket that has ended.
fn count_opening(
    connections: &mut Connections,
    recorder: &mut ShardRecorder,
    talk: &Talk,
    outcome: Result<(), Trouble>,
) {
    let Some(mut sample) = talk.sample else { return };
    if let Err(trouble) = outcome {
        sample.outcome = Outcome::Failed(trouble.cause, trouble.phase);
        recorder.keep_example(connections, sample.row_idx, (sample.status, 0), trouble);
    }
    recorder.pulse.record(&sample);
}

/// Who closed it, and how.
fn closed_by(talk: &Talk, outcome: &Result<(), Trouble>) -> (ClosedBy, CloseCode, String) {
    let own = || close_parts(&talk.cue().bytes);
    match (talk.peer_close(), outcome) {
        _ if talk.is_closing() => (ClosedBy::Squall, own().0, own().1),
        (Some((code, reason)), _) => (ClosedBy::Server, *code, reason.clone()),
        (None, Err(Trouble { cause: Cause::Timeout, text, .. })) => {
            (ClosedBy::Squall, CloseCode::NORMAL, text.clone())
        }
        (None, Err(trouble)) => (ClosedBy::Neither, CloseCode::ABNORMAL, trouble.text.clone()),
        (None, Ok(())) => (ClosedBy::Neither, CloseCode::ABNORMAL, String::new()),
    }
}

/// Code and reason of a recorded close frame.
fn close_parts(bytes: &[u8]) -> (CloseCode, String) {
    match bytes.split_first_chunk() {
        None => (CloseCode::NONE, String::new()),
        Some((code, reason)) => {
            (CloseCode(u16::from_be_bytes(*code)), String::from_utf8_lossy(reason).into_owned())
        }
    }
}

/// What is counted of messages; `None` in the warm-up.
fn figures<'a>(connections: &Connections, recorder: &'a mut ShardRecorder) -> Option<&'a mut WebSockets> {
    let is_measured = connections.now_ns >= connections.limits.warm_until_ns;
    is_measured.then(|| &mut **recorder.pulse.snapshot.websockets.get_or_insert_default())
}
