//! The streams of a user, which are WebSockets and responses that are read while they come: how far each is, the tags of its samples, and
//! what no function of the script has been called for yet.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use squall_plan::limits::{STREAM_INBOX_BYTES_MAX, STREAM_PINGS_MAX, STREAM_UNSENT_BYTES_MAX};

use crate::cookies::Jar;
use crate::metrics::{HttpTags, MetricId, Recorder, SystemTags, Tags};
use crate::step::{
    STREAM_TOKEN, ScriptStreamCommand, ScriptStreamEvent, ScriptStreamNews, Spec, StreamEnd, StreamMessage,
    StreamRequest,
};

/// A user's streams.
#[derive(Debug, Default)]
pub(crate) struct UserStreams {
    next_token: u32,
    by_token: HashMap<u32, UserStream>,
    /// Events in the order in which they came.
    inbox: VecDeque<ScriptStreamEvent>,
    inbox_bytes: usize,
    outbox: Vec<StreamRequest>,
}

/// A stream that is not over.
#[derive(Debug)]
pub(crate) struct UserStream {
    pub(crate) owner: StreamOwner,
    pub(crate) is_web_socket: bool,
    pub(crate) state: ReadyState,
    /// When the script asked for it, on the run's clock.
    pub(crate) begin_ns: u64,
    /// How long it took to open.
    pub(crate) opening_ns: u64,
    pub(crate) spec: Rc<Spec>,
    /// Where cookies of the response go; `None`: into the user's own.
    pub(crate) jar: Option<Rc<RefCell<Jar>>>,
    pub(crate) tags: StreamTags,
    /// Bytes of messages that the driver has not taken yet, and of those that wait for the socket since.
    asked_bytes: u64,
    waiting_bytes: u64,
    ping_count: u64,
    /// Pings without an answer: number and time.
    pings: VecDeque<(u64, u64)>,
}

/// Who looks at the events of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamOwner {
    /// A call that waits for its end.
    Call,
    /// The event loop.
    Loop,
}

/// How far a WebSocket is, by the numbers of its `readyState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadyState {
    Connecting = 0,
    Open = 1,
    Closing = 2,
    Closed = 3,
}

/// Tags of a stream's samples: those that the user had when it was made.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamTags {
    pub(crate) scenario: Rc<str>,
    pub(crate) group: String,
    pub(crate) custom: Vec<(String, String)>,
    pub(crate) system: SystemTags,
    pub(crate) vu: (u64, u64),
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) url: String,
    /// Empty: none.
    pub(crate) name: String,
    pub(crate) status: Option<u16>,
    pub(crate) subproto: Option<String>,
    pub(crate) ip: String,
}

impl StreamTags {
    /// Samples with these tags.
    pub(crate) fn record(&self, recorder: &dyn Recorder, samples: &[(MetricId, f64)]) {
        let http = HttpTags {
            method: "",
            url: &self.url,
            name: &self.name,
            status: self.status,
            subproto: self.subproto.as_deref(),
            proto: "",
            tls_version: "",
            error_code: 0,
            error: "",
            expected: None,
            ip: &self.ip,
        };
        let tags = Tags {
            scenario: &self.scenario,
            group: &self.group,
            check: None,
            http: Some(&http),
            custom: [&self.custom, &[]],
            system: self.system,
            vu: self.vu,
            metadata: &self.metadata,
        };
        samples.iter().for_each(|(metric, value)| recorder.add(*metric, *value, &tags));
    }
}

impl UserStream {
    pub(crate) fn new(
        (owner, is_web_socket): (StreamOwner, bool),
        begin_ns: u64,
        spec: Rc<Spec>,
        tags: StreamTags,
    ) -> Self {
        Self {
            owner,
            is_web_socket,
            state: ReadyState::Connecting,
            begin_ns,
            opening_ns: 0,
            spec,
            jar: None,
            tags,
            asked_bytes: 0,
            waiting_bytes: 0,
            ping_count: 0,
            pings: VecDeque::new(),
        }
    }

    /// Bytes of messages that the socket has not taken, as far as is known.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.asked_bytes + self.waiting_bytes
    }

    /// The payload of the next ping.
    pub(crate) fn begin_ping(&mut self, now_ns: u64) -> Vec<u8> {
        let number = self.ping_count;
        self.ping_count += 1;
        if self.pings.len() == STREAM_PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back((number, now_ns));
        number.to_string().into_bytes()
    }

    /// When the ping was sent that a pong answers; `None`: it answers none.
    pub(crate) fn end_ping(&mut self, payload: &[u8]) -> Option<u64> {
        let number: u64 = std::str::from_utf8(payload).ok()?.parse().ok()?;
        let at = self.pings.iter().position(|(known, _)| *known == number)?;
        self.pings.remove(at).map(|(_, sent_ns)| sent_ns)
    }
}

impl UserStreams {
    /// Keeps a stream; gives its token.
    pub(crate) fn add(&mut self, stream: UserStream) -> u32 {
        self.next_token = self.next_token.wrapping_add(1) | STREAM_TOKEN;
        self.by_token.insert(self.next_token, stream);
        self.next_token
    }

    pub(crate) fn get(&self, token: u32) -> Option<&UserStream> {
        self.by_token.get(&token)
    }

    pub(crate) fn get_mut(&mut self, token: u32) -> Option<&mut UserStream> {
        self.by_token.get_mut(&token)
    }

    pub(crate) fn count(&self) -> usize {
        self.by_token.len()
    }

    /// Whether the event loop has streams that are not over.
    pub(crate) fn has_looped(&self) -> bool {
        self.by_token.values().any(|stream| stream.owner == StreamOwner::Loop)
    }

    /// A stream is over.
    pub(crate) fn remove(&mut self, token: u32) -> Option<UserStream> {
        self.by_token.remove(&token)
    }

    /// Sends a message, unless too much waits before it: that ends the stream.
    pub(crate) fn send(&mut self, token: u32, now_ns: u64, message: StreamMessage) {
        let Some(stream) = self.by_token.get_mut(&token) else { return };
        if stream.unsent_bytes() > STREAM_UNSENT_BYTES_MAX {
            let text = format!("more than {STREAM_UNSENT_BYTES_MAX} bytes of messages wait to be sent");
            // No other message is taken until the script has heard of it.
            stream.state = ReadyState::Closing;
            return self.end_by_limit(token, now_ns, text);
        }
        stream.asked_bytes += message.bytes().len() as u64;
        self.ask(token, ScriptStreamCommand::Send(message));
    }

    /// Gives a stream up that holds too much.
    fn end_by_limit(&mut self, token: u32, at_ns: u64, text: String) {
        self.ask(token, ScriptStreamCommand::Drop);
        let news = ScriptStreamNews::Closed(StreamEnd::Limit(text));
        self.inbox.push_back(ScriptStreamEvent { token, at_ns, news });
    }

    /// A command for the driver.
    pub(crate) fn ask(&mut self, token: u32, command: ScriptStreamCommand) {
        self.outbox.push(StreamRequest { token, command });
    }

    /// Hands the commands over.
    pub(crate) fn take_commands(&mut self, into: &mut Vec<StreamRequest>) {
        for request in &self.outbox {
            if let (ScriptStreamCommand::Send(_), Some(stream)) =
                (&request.command, self.by_token.get_mut(&request.token))
            {
                stream.asked_bytes = 0;
            }
        }
        into.append(&mut self.outbox);
    }

    /// Keeps an event until the script has time for it. Of a stream that the script does not read, only so much is kept.
    pub(crate) fn deliver(&mut self, event: ScriptStreamEvent) {
        let Some(stream) = self.by_token.get_mut(&event.token) else { return };
        if let ScriptStreamNews::Unsent(bytes) = event.news {
            stream.waiting_bytes = bytes;
            return;
        }
        let bytes = event.news.bytes();
        if bytes > 0 && self.inbox_bytes + bytes > STREAM_INBOX_BYTES_MAX {
            let text = format!(
                "the streams of the virtual user hold {STREAM_INBOX_BYTES_MAX} bytes that it has not read"
            );
            return self.end_by_limit(event.token, event.at_ns, text);
        }
        self.inbox_bytes += bytes;
        self.inbox.push_back(event);
    }

    /// The next event of one stream.
    pub(crate) fn take_of(&mut self, token: u32) -> Option<ScriptStreamEvent> {
        let at = self.inbox.iter().position(|event| event.token == token)?;
        self.take_at(at)
    }

    /// The next event for the event loop.
    pub(crate) fn take_looped(&mut self) -> Option<ScriptStreamEvent> {
        let is_looped = |event: &ScriptStreamEvent| {
            self.by_token.get(&event.token).is_none_or(|stream| stream.owner == StreamOwner::Loop)
        };
        let at = self.inbox.iter().position(is_looped)?;
        self.take_at(at)
    }

    fn take_at(&mut self, at: usize) -> Option<ScriptStreamEvent> {
        let event = self.inbox.remove(at)?;
        self.inbox_bytes -= event.news.bytes();
        Some(event)
    }

    /// Ends a stream at once: nothing more of it is looked at.
    pub(crate) fn abandon(&mut self, token: u32) -> Option<UserStream> {
        let stream = self.by_token.remove(&token)?;
        self.ask(token, ScriptStreamCommand::Drop);
        self.inbox.retain(|event| event.token != token);
        self.inbox_bytes = self.inbox.iter().map(|event| event.news.bytes()).sum();
        Some(stream)
    }

    /// Tokens of the streams that an owner looks at.
    pub(crate) fn tokens(&self, owner: StreamOwner) -> Vec<u32> {
        let tokens = self.by_token.iter().filter(|(_, stream)| stream.owner == owner);
        tokens.map(|(token, _)| *token).collect()
    }
}

impl StreamMessage {
    /// What is sent or was received.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

impl ScriptStreamNews {
    /// What it takes of the memory that may be held for events.
    fn bytes(&self) -> usize {
        // Small ones are many; those at its beginning and its end are one each.
        let payload = match self {
            Self::Open(_) | Self::Refused(_) | Self::Closed(_) => return 0,
            Self::Message(message) => message.bytes(),
            Self::Data(bytes) | Self::Pong(bytes) => bytes,
            Self::Ping | Self::Unsent(_) => &[],
        };
        size_of::<ScriptStreamEvent>() + payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(owner: StreamOwner) -> UserStream {
        let plan = squall_plan::RequestPlan {
            weight: std::num::NonZeroU32::MIN,
            method: "GET".to_owned(),
            pattern: String::new(),
            headers: Vec::new(),
            url: url::Url::parse("http://h/").unwrap(),
            body: squall_plan::Body::Empty,
            http: squall_plan::HttpVersion::Http11,
        };
        let spec = Spec {
            plan,
            text: String::new(),
            name: String::new(),
            user: None,
            client: 0,
            scenario: "".into(),
            prepared: std::cell::OnceCell::new(),
        };
        UserStream::new((owner, false), 0, Rc::new(spec), StreamTags::default())
    }

    fn data(token: u32, bytes: usize) -> ScriptStreamEvent {
        ScriptStreamEvent { token, at_ns: 0, news: ScriptStreamNews::Data(vec![0; bytes]) }
    }

    #[test]
    fn events_are_taken_by_their_owners_in_order() {
        let mut streams = UserStreams::default();
        let [call, looped] = [StreamOwner::Call, StreamOwner::Loop].map(|owner| streams.add(stream(owner)));
        for token in [call, looped, call, looped, 77] {
            streams.deliver(data(token, 1));
        }
        assert_eq!(streams.inbox.len(), 4);
        assert_eq!(streams.take_looped().map(|event| event.token), Some(looped));
        assert_eq!(streams.take_of(call).map(|event| event.token), Some(call));
        streams.abandon(call);
        assert!(streams.take_of(call).is_none());
        assert_eq!(streams.inbox_bytes, size_of::<ScriptStreamEvent>() + 1);
        assert!(streams.take_looped().is_some() && streams.take_looped().is_none());
        assert_eq!((streams.has_looped(), streams.count()), (true, 1));
        let mut commands = Vec::new();
        streams.take_commands(&mut commands);
        assert!(
            matches!(commands[..], [StreamRequest { token, command: ScriptStreamCommand::Drop }] if token == call)
        );
    }

    #[test]
    fn a_stream_that_is_not_read_ends() {
        let mut streams = UserStreams::default();
        let token = streams.add(stream(StreamOwner::Loop));
        streams.deliver(data(token, STREAM_INBOX_BYTES_MAX - size_of::<ScriptStreamEvent>()));
        streams.deliver(ScriptStreamEvent { token, at_ns: 0, news: ScriptStreamNews::Ping });
        assert!(matches!(
            streams.take_of(token),
            Some(ScriptStreamEvent { news: ScriptStreamNews::Data(_), .. })
        ));
        assert!(matches!(
            streams.take_of(token),
            Some(ScriptStreamEvent { news: ScriptStreamNews::Closed(StreamEnd::Limit(_)), .. })
        ));
    }

    #[test]
    fn a_stream_whose_messages_are_not_taken_ends() {
        let mut streams = UserStreams::default();
        let token = streams.add(stream(StreamOwner::Loop));
        let text = |bytes: u64| StreamMessage::Text("x".repeat(bytes as usize));
        streams.send(token, 0, text(STREAM_UNSENT_BYTES_MAX));
        streams.take_commands(&mut Vec::new());
        let waits = |bytes| ScriptStreamEvent { token, at_ns: 0, news: ScriptStreamNews::Unsent(bytes) };
        streams.deliver(waits(STREAM_UNSENT_BYTES_MAX));
        assert_eq!(streams.get(token).map(UserStream::unsent_bytes), Some(STREAM_UNSENT_BYTES_MAX));
        streams.send(token, 0, text(1));
        assert!(streams.take_of(token).is_none());
        streams.send(token, 7, text(1));
        let ended = streams.take_of(token).map(|event| (event.at_ns, event.news));
        assert!(matches!(ended, Some((7, ScriptStreamNews::Closed(StreamEnd::Limit(_))))), "{ended:?}");
        let mut commands = Vec::new();
        streams.take_commands(&mut commands);
        assert!(matches!(commands[1].command, ScriptStreamCommand::Drop), "{commands:?}");
        streams.deliver(waits(0));
        assert_eq!(streams.get(token).map(UserStream::unsent_bytes), Some(0));
    }

    #[test]
    fn pongs_find_their_pings() {
        let mut stream = stream(StreamOwner::Loop);
        for nth in 0..STREAM_PINGS_MAX as u64 + 1 {
            assert_eq!(stream.begin_ping(nth * 10), nth.to_string().into_bytes());
        }
        // The oldest one is forgotten.
        for (payload, expected) in
            [("0", None), ("2", Some(20)), ("2", None), ("1", Some(10)), ("x", None), ("", None)]
        {
            assert_eq!(stream.end_ping(payload.as_bytes()), expected, "{payload}");
        }
    }
}
