//! The streams of the users of one shard: what a script asks of one, by its token, becomes what the shard does on a connection.
//!
//! Owns: which connection a token stands for. Never: what a message means.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;
use squall_measure::Cause;
use squall_script::{
    Request, ScriptStreamCommand, ScriptStreamEvent, ScriptStreamNews, StreamClose, StreamEnd, StreamKind,
    StreamMessage, StreamOpen, StreamRequest,
};
use squall_wire::ws::{CloseCode, MessageKind};

use super::reply::{failure, reply_of};
use crate::driver::stream::{self, CallKind, StreamBody, StreamKey};
use crate::driver::{Call, Ended, GivenUp, Port};
use crate::prepare::Offer;

/// Streams by user and token.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    streams: HashMap<(u32, u32), HeldStream, FixedState>,
    /// Responses that have ended: their last pieces are reported with the next turn, and their ends after them.
    ended: Vec<Ended>,
}

#[derive(Debug)]
struct HeldStream {
    is_web_socket: bool,
    /// Known once it is open.
    key: Option<StreamKey>,
    /// What the script wants of one that is not open yet.
    waiting: Vec<stream::StreamCommand>,
    /// The head of its response has been reported.
    has_head: bool,
    /// The peer's close frame.
    close: Option<StreamClose>,
}

impl StreamTable {
    /// Does what a script asks; gives the call that opens a stream.
    pub(super) fn obey(&mut self, user: u32, request: StreamRequest, port: &mut Port) -> Option<Call> {
        let StreamRequest { token, command } = request;
        let command = match command {
            ScriptStreamCommand::Open(open) => return Some(self.open(user, token, *open)),
            ScriptStreamCommand::Drop => {
                self.give_up(user, token, port);
                return None;
            }
            ScriptStreamCommand::Send(StreamMessage::Text(text)) => {
                stream::StreamCommand::Message(MessageKind::Text, text.into_bytes())
            }
            ScriptStreamCommand::Send(StreamMessage::Binary(bytes)) => {
                stream::StreamCommand::Message(MessageKind::Binary, bytes)
            }
            ScriptStreamCommand::Ping(payload) => stream::StreamCommand::Ping(payload),
            ScriptStreamCommand::Close(StreamClose { code, reason }) => {
                stream::StreamCommand::Close(code.map_or(CloseCode::NONE, CloseCode), reason)
            }
        };
        let held = self.streams.get_mut(&(user, token))?;
        match held.key {
            Some(key) => port.commands.push((key, command)),
            None => held.waiting.push(command),
        }
        None
    }

    fn open(&mut self, user: u32, token: u32, open: StreamOpen) -> Call {
        let StreamOpen { spec, kind, timeout } = open;
        let (kind, is_web_socket) = match kind {
            StreamKind::WebSocket { compresses, protocols } => {
                (CallKind::WebSocket(Rc::new(Offer { compress: compresses, subprotocols: protocols })), true)
            }
            StreamKind::Body => (CallKind::Stream(StreamBody::Whole), false),
        };
        let held = HeldStream { is_web_socket, key: None, waiting: Vec::new(), has_head: false, close: None };
        self.streams.insert((user, token), held);
        let body_bytes_max = if is_web_socket { REFUSAL_BYTES_MAX } else { 0 };
        let request = Request { token, spec, timeout, body_bytes_max, expects: Rc::new([]) };
        Call { user, request, kind }
    }

    fn give_up(&mut self, user: u32, token: u32, port: &mut Port) {
        if let Some(held) = self.streams.remove(&(user, token)) {
            port.given_up.push(GivenUp { user, token, key: held.key });
        }
    }

    /// What the end of a call is to the script that opened a stream with it: `None`: nothing yet, or nothing any more.
    pub(super) fn on_ended(
        &mut self,
        ended: Ended,
        now_ns: u64,
        port: &mut Port,
    ) -> Option<ScriptStreamEvent> {
        let (user, token) = (ended.user, ended.token);
        let Some(held) = self.streams.get_mut(&(user, token)) else {
            // The script has given it up before its call was made.
            port.given_up.extend(ended.stream.map(|key| GivenUp { user, token, key: Some(key) }));
            return None;
        };
        if !held.is_web_socket {
            self.ended.push(ended);
            return None;
        }
        let Some(key) = ended.stream else {
            self.streams.remove(&(user, token));
            let refused = ScriptStreamNews::Refused(Box::new(reply_of(ended)));
            return Some(ScriptStreamEvent { token, at_ns: now_ns, news: refused });
        };
        held.key = Some(key);
        port.commands.extend(held.waiting.drain(..).map(|command| (key, command)));
        let news = ScriptStreamNews::Open(Box::new(reply_of(ended)));
        Some(ScriptStreamEvent { token, at_ns: now_ns, news })
    }

    /// What has happened on a connection, in the script's terms.
    pub(super) fn on_event(
        &mut self,
        event: stream::StreamReport,
        start_ns: u64,
        port: &mut Port,
    ) -> Option<ScriptStreamEvent> {
        use stream::StreamNews as Wire;
        let stream::StreamReport { user, token, key, at_ns, news } = event;
        let Some(held) = self.streams.get_mut(&(user, token)) else {
            let given_up = GivenUp { user, token, key: Some(key) };
            port.given_up.extend(matches!(news, Wire::Open).then_some(given_up));
            return None;
        };
        // A request that was sent again has another place.
        if held.key.is_none() || matches!(news, Wire::Open) {
            held.key = Some(key);
        }
        let news = match news {
            Wire::Head(head) => {
                held.has_head = true;
                ScriptStreamNews::Open(Box::new(head_reply(head)))
            }
            Wire::Data(bytes) => ScriptStreamNews::Data(bytes),
            Wire::Message(MessageKind::Text, bytes) => {
                // The codec has seen that it is UTF-8.
                ScriptStreamNews::Message(StreamMessage::Text(String::from_utf8(bytes).unwrap_or_default()))
            }
            Wire::Message(MessageKind::Binary, bytes) => {
                ScriptStreamNews::Message(StreamMessage::Binary(bytes))
            }
            Wire::Ping => ScriptStreamNews::Ping,
            Wire::Pong(payload) => ScriptStreamNews::Pong(payload),
            Wire::Unsent(bytes) => ScriptStreamNews::Unsent(bytes),
            Wire::Close(code, reason) => {
                let code = Some(code.0).filter(|_| code != CloseCode::NONE);
                held.close = Some(StreamClose { code, reason });
                return None;
            }
            Wire::Closed(trouble) => {
                let close = self.streams.remove(&(user, token))?.close;
                ScriptStreamNews::Closed(match (close, trouble) {
                    (Some(close), _) => StreamEnd::Peer(close),
                    (None, Some(trouble)) if trouble.cause != Cause::ConnectionClosed => {
                        StreamEnd::Failed(failure(&trouble))
                    }
                    (None, _) => StreamEnd::Eof,
                })
            }
            Wire::Open | Wire::Interim(_) | Wire::Trailers(_) => return None,
        };
        Some(ScriptStreamEvent { token, at_ns: at_ns.saturating_sub(start_ns), news })
    }

    /// Ends of responses whose pieces have all been reported, by user.
    pub(super) fn take_ended(&mut self, now_ns: u64) -> Vec<(u32, ScriptStreamEvent)> {
        let mut events = Vec::new();
        for ended in std::mem::take(&mut self.ended) {
            let (user, token) = (ended.user, ended.token);
            let Some(held) = self.streams.remove(&(user, token)) else {
                continue;
            };
            let reply = reply_of(ended);
            let news = match (held.has_head, &reply.failure) {
                (false, _) => ScriptStreamNews::Refused(Box::new(reply)),
                (true, Some(failure)) => ScriptStreamNews::Closed(StreamEnd::Failed(failure.clone())),
                (true, None) => ScriptStreamNews::Closed(StreamEnd::Peer(StreamClose {
                    code: Some(CloseCode::NORMAL.0),
                    reason: String::new(),
                })),
            };
            events.push((user, ScriptStreamEvent { token, at_ns: now_ns, news }));
        }
        events
    }

    /// Whether a turn is wanted.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The shard has ended all that a user had.
    pub(super) fn forget(&mut self, user: u32) {
        self.streams.retain(|(owner, _), _| *owner != user);
    }
}

/// The head of a response as a reply.
fn head_reply(head: Vec<u8>) -> squall_script::Reply {
    // `HTTP/1.1 200 OK`
    let digits = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    let status = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    squall_script::Reply { status, proto: "HTTP/1.1", head, ..squall_script::Reply::default() }
}

/// What is kept of the body with which a server refuses a WebSocket.
const REFUSAL_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use squall_measure::Phases;
    use squall_plan::{Body, HttpVersion, RequestPlan};
    use squall_script::Spec;

    use super::*;

    const KEY: StreamKey = StreamKey { conn_idx: 3, generation: 1, slot: 0 };

    fn open(kind: StreamKind) -> StreamRequest {
        let plan = RequestPlan {
            weight: NonZeroU32::MIN,
            method: "GET".to_owned(),
            pattern: String::new(),
            headers: Vec::new(),
            url: url::Url::parse("http://h/").unwrap(),
            body: Body::Empty,
            http: HttpVersion::Http11,
        };
        let spec = Rc::new(Spec {
            plan,
            text: String::new(),
            name: String::new(),
            user: None,
            client: 0,
            scenario: "".into(),
            prepared: std::cell::OnceCell::new(),
        });
        let open = StreamOpen { spec, kind, timeout: Duration::from_secs(1) };
        StreamRequest { token: 7, command: ScriptStreamCommand::Open(Box::new(open)) }
    }

    fn web_socket() -> StreamRequest {
        open(StreamKind::WebSocket { compresses: true, protocols: vec!["chat".to_owned()] })
    }

    fn ended(status: u16, stream: Option<StreamKey>) -> Ended {
        Ended {
            user: 2,
            token: 7,
            result: Ok(status),
            head: Vec::new(),
            body: Vec::new(),
            phases: Phases::default(),
            remote: None,
            version: None,
            tls: None,
            stream,
        }
    }

    fn event(news: stream::StreamNews) -> stream::StreamReport {
        stream::StreamReport { user: 2, token: 7, key: KEY, at_ns: 50, news }
    }

    fn ask(table: &mut StreamTable, command: ScriptStreamCommand, port: &mut Port) {
        assert!(table.obey(2, StreamRequest { token: 7, command }, port).is_none());
    }

    #[test]
    fn what_is_wanted_of_a_socket_waits_until_it_is_open() {
        let (mut table, mut port) = (StreamTable::default(), Port::default());
        let call = table.obey(2, web_socket(), &mut port).unwrap();
        let CallKind::WebSocket(offer) = &call.kind else { panic!("{call:?}") };
        assert_eq!((offer.compress, &offer.subprotocols[..]), (true, &["chat".to_owned()][..]));
        let close = StreamClose { code: None, reason: String::new() };
        ask(&mut table, ScriptStreamCommand::Close(close), &mut port);
        assert!(port.commands.is_empty());
        let opened = table.on_ended(ended(101, Some(KEY)), 9, &mut port).unwrap();
        assert!(matches!(opened.news, ScriptStreamNews::Open(_)));
        assert!(matches!(port.commands[..], [(KEY, stream::StreamCommand::Close(CloseCode::NONE, _))]));
        let said = stream::StreamNews::Close(CloseCode(1001), "bye".to_owned());
        assert!(table.on_event(event(said), 10, &mut port).is_none());
        let closed = table.on_event(event(stream::StreamNews::Closed(None)), 10, &mut port).unwrap();
        let ScriptStreamNews::Closed(StreamEnd::Peer(close)) = closed.news else { panic!("{closed:?}") };
        assert_eq!((closed.at_ns, close.code, close.reason.as_str()), (40, Some(1001), "bye"));
        assert!(table.on_event(event(stream::StreamNews::Ping), 10, &mut port).is_none());
    }

    #[test]
    fn a_socket_that_was_given_up_ends_also_if_it_opens_later() {
        let (mut table, mut port) = (StreamTable::default(), Port::default());
        table.obey(2, web_socket(), &mut port).unwrap();
        ask(&mut table, ScriptStreamCommand::Drop, &mut port);
        let given_up = |key| [GivenUp { user: 2, token: 7, key }];
        assert_eq!(std::mem::take(&mut port.given_up), given_up(None));
        assert!(table.on_ended(ended(101, Some(KEY)), 9, &mut port).is_none());
        assert_eq!(port.given_up, given_up(Some(KEY)));
        table.obey(2, web_socket(), &mut port).unwrap();
        let refused = table.on_ended(ended(403, None), 9, &mut port).unwrap();
        assert!(matches!(&refused.news, ScriptStreamNews::Refused(reply) if reply.status == 403));
        // One that is open is named by its connection, so that nobody has to look for it.
        port.given_up.clear();
        table.obey(2, web_socket(), &mut port).unwrap();
        table.on_ended(ended(101, Some(KEY)), 9, &mut port).unwrap();
        ask(&mut table, ScriptStreamCommand::Drop, &mut port);
        assert_eq!(port.given_up, given_up(Some(KEY)));
        assert!(table.streams.is_empty());
    }

    #[test]
    fn the_end_of_a_body_follows_its_pieces() {
        let (mut table, mut port) = (StreamTable::default(), Port::default());
        table.obey(2, open(StreamKind::Body), &mut port).unwrap();
        assert!(table.on_ended(ended(200, None), 9, &mut port).is_none());
        let head = stream::StreamNews::Head(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
        let opened = table.on_event(event(head), 0, &mut port).unwrap();
        assert!(matches!(&opened.news, ScriptStreamNews::Open(reply) if reply.status == 200));
        let data = table.on_event(event(stream::StreamNews::Data(b"x".to_vec())), 0, &mut port).unwrap();
        assert!(matches!(data.news, ScriptStreamNews::Data(_)));
        assert!(table.has_ended());
        let ends = table.take_ended(60);
        assert!(matches!(
            &ends[..],
            [(2, ScriptStreamEvent { news: ScriptStreamNews::Closed(StreamEnd::Peer(_)), .. })]
        ));
        assert!(!table.has_ended());
    }
}
