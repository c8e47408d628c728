//! Loads of WebSockets: the opening handshake, and what is said on a connection.
//!
//! Owns: the translation of the plan, and what makes an answer to the opening handshake valid. Never: messages that arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use squall_measure::{Cause, Phase};
use squall_plan::{
    Header, HttpVersion, InputError, MessageExchange, MessagePayload, MessageRate, RequestPlan, WebSocketLoad,
};
use squall_traffic::change::MessageTemplate;
use squall_wire::ws::deflate::Params;
use squall_wire::ws::{MessageKind, handshake};

use crate::Error;
use crate::pace::SplitMix;
use crate::sys::nanoseconds;
use crate::trouble::Trouble;

/// How every WebSocket of a load behaves.
#[derive(Debug, Clone)]
pub(crate) struct WebSocketPolicy {
    pub(crate) exchange: MessageExchange,
    pub(crate) kind: MessageKind,
    pub(crate) message: MessageContent,
    pub(crate) rate: Option<MessageRate>,
    pub(crate) count: Option<u64>,
    pub(crate) pause_ns: u64,
    pub(crate) greeting: Option<Box<str>>,
    pub(crate) storm_ns: Option<u64>,
    /// How long an answer may take.
    pub(crate) timeout_ns: u64,
    pub(crate) offer: Offer,
    /// Other machines make the same load.
    pub(crate) is_copied: bool,
    pub(crate) audience: Arc<Audience>,
}

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) enum MessageContent {
    /// The same each time.
    Fixed(Box<[u8]>),
    /// Filled in for each message.
    Template(Arc<MessageTemplate>),
}

/// What the event loops of a process know of each other: nobody publishes before all are there to get it, and nobody leaves before the last
/// message.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    /// Connections that are open.
    open_count: AtomicU64,
    /// All of them were open at some time: no loop waits any longer, even if connections have ended since.
    is_complete: AtomicBool,
    /// Messages of the loops that have sent all of theirs.
    pub(crate) published_count: AtomicU64,
    /// When a message was published last, on the monotonic clock; 0: none was.
    pub(crate) published_ns: AtomicU64,
}

impl Audience {
    pub(crate) fn note_opened(&self) {
        self.open_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_closed(&self) {
        self.open_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether so many connections are open, or were for any loop that has asked.
    pub(crate) fn has_been(&self, awaited_count: u64) -> bool {
        if self.open_count.load(Ordering::Relaxed) >= awaited_count {
            self.is_complete.store(true, Ordering::Relaxed);
        }
        self.is_complete.load(Ordering::Relaxed)
    }
}

/// What the opening handshake offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) compress: bool,
    pub(crate) subprotocols: Vec<String>,
}

/// The 16 random bytes of one opening handshake (RFC 6455 4.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandshakeKey([u8; 16]);

impl WebSocketPolicy {
    /// That of a load.
    pub(crate) fn new(load: &WebSocketLoad) -> Result<Self, Error> {
        Ok(Self {
            exchange: load.exchange,
            kind: if load.message.is_binary { MessageKind::Binary } else { MessageKind::Text },
            message: MessageContent::new(&load.message)?,
            rate: load.rate.clone(),
            count: load.count,
            pause_ns: nanoseconds(load.pause),
            greeting: load.greeting.as_deref().map(Into::into),
            storm_ns: load.storm.map(nanoseconds),
            timeout_ns: nanoseconds(load.http.timeout),
            offer: Offer { compress: load.compress, subprotocols: load.subprotocols.clone() },
            is_copied: load.is_copied,
            audience: Arc::default(),
        })
    }

    /// How many connections publish, of all machines.
    pub(crate) fn publisher_count(&self) -> Option<u32> {
        match self.exchange {
            MessageExchange::Publish(count) => Some(count),
            _ => None,
        }
    }
}

impl MessageContent {
    fn new(message: &MessagePayload) -> Result<Self, Error> {
        let template = MessageTemplate::read(&message.bytes, message.table.as_deref());
        let template = template.map_err(|InputError { reason, help, .. }| Error::Plan {
            problem: format!("cannot make messages: {reason}"),
            help,
        })?;
        Ok(match template.fixed() {
            Some(bytes) => Self::Fixed(bytes.into()),
            None => Self::Template(Arc::new(template)),
        })
    }
}

impl Offer {
    /// What the request of a recorded opening handshake offered.
    pub(crate) fn recorded<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut offer = Self::default();
        for (name, value) in headers {
            let parts =
                || String::from_utf8_lossy(value).split(',').map(|part| part.trim().to_owned()).collect();
            if name.eq_ignore_ascii_case("sec-websocket-protocol") {
                offer.subprotocols = parts();
            } else if name.eq_ignore_ascii_case("sec-websocket-extensions") {
                let extensions: Vec<String> = parts();
                offer.compress =
                    extensions.iter().any(|extension| extension.starts_with("permessage-deflate"));
            }
        }
        offer
    }

    /// The request with the fields of the opening handshake (RFC 6455 4.1); in HTTP/2 and HTTP/3, that of a stream (RFC 8441 5). Fields that the
    /// user gave come behind.
    pub(crate) fn opening(&self, plan: &RequestPlan) -> RequestPlan {
        let is_stream = matches!(plan.http, HttpVersion::Http2 | HttpVersion::Http3);
        let mut headers = self.fields(is_stream);
        headers.extend(plan.headers.iter().cloned());
        let method = if is_stream { "CONNECT" } else { "GET" };
        RequestPlan { method: method.to_owned(), headers, ..plan.clone() }
    }

    /// The fields of the opening handshake; `is_stream`: over HTTP/2 or HTTP/3.
    pub(crate) fn fields(&self, is_stream: bool) -> Vec<Header> {
        let mut headers = vec![header("Sec-WebSocket-Version", handshake::VERSION)];
        if !is_stream {
            headers.extend([
                header("Connection", "Upgrade"),
                header("Upgrade", "websocket"),
                header("Sec-WebSocket-Key", KEY_PLACE),
            ]);
        }
        if !self.subprotocols.is_empty() {
            headers.push(header("Sec-WebSocket-Protocol", &self.subprotocols.join(", ")));
        }
        if self.compress {
            headers.push(header("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"));
        }
        headers
    }

    /// What the server has agreed to with its answer 101 to a request with this key, or with its answer to one without a key, for a stream;
    /// `field`: the values of its fields of one name, as a list.
    ///
    /// # Errors
    /// When the answer is none to this request (RFC 6455 4.1), or has something that was not offered.
    pub(crate) fn agreed(
        &self,
        key: Option<HandshakeKey>,
        field: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Params>, Trouble> {
        let wrong = |text: String| Err(Trouble::new(Cause::WebSocketProtocol, Phase::Receiving, text));
        if let Some(key) = key {
            let upgrade = field("upgrade").unwrap_or_default();
            if !upgrade.eq_ignore_ascii_case("websocket") {
                return wrong(format!("the server switched to `{upgrade}`, not to `websocket`"));
            }
            let connection = field("connection").unwrap_or_default();
            if !connection.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade")) {
                return wrong("the server's answer has no `Connection: Upgrade`".to_owned());
            }
            if field("sec-websocket-accept").as_deref() != Some(handshake::accept(&key.text()).as_str()) {
                return wrong("the server's `Sec-WebSocket-Accept` does not match the key".to_owned());
            }
        }
        match field("sec-websocket-protocol") {
            Some(name) if !self.subprotocols.contains(&name) => {
                return wrong(format!("the server chose the subprotocol `{name}`, which was not offered"));
            }
            _ => {}
        }
        let Some(extensions) = field("sec-websocket-extensions") else { return Ok(None) };
        match Params::agreed(&extensions, true).filter(|_| self.compress) {
            Some(params) => Ok(Some(params)),
            None => wrong(format!("the server chose the extension `{extensions}`, which was not offered")),
        }
    }
}

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.to_owned() }
}

impl HandshakeKey {
    /// That of one connection. It is computed again when the answer comes, so that nothing of it has to be kept meanwhile.
    pub(crate) fn new(seed: u64, conn_idx: usize, generation: u32) -> Self {
        let mut random = SplitMix::new(seed ^ (conn_idx as u64) << 32 ^ u64::from(generation));
        let (first, second) = (random.next(), random.next());
        Self((u128::from(first) << 64 | u128::from(second)).to_be_bytes())
    }

    /// Puts it into a request that was laid out with [`Offer::opening`].
    pub(crate) fn fill(self, request: &mut [u8]) {
        if let Some(at) = memchr::memmem::find(request, KEY_PLACE.as_bytes()) {
            request[at..at + KEY_PLACE.len()].copy_from_slice(self.text().as_bytes());
        }
    }

    fn text(self) -> String {
        handshake::key(&self.0)
    }
}

/// What the layout of a request has in the place of the key: no key has bytes that are no Base64.
const KEY_PLACE: &str = "(sec-websocket-key here)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_opened_again_counts_once() {
        let audience = Audience::default();
        audience.note_opened();
        audience.note_closed();
        audience.note_opened();
        assert!(!audience.has_been(2));
        audience.note_opened();
        assert!(audience.has_been(2));
        // Another loop looks a little later.
        audience.note_closed();
        assert!(audience.has_been(2));
    }

    #[test]
    fn an_answer_is_to_name_the_upgrade_among_the_options_of_the_connection() {
        let key = HandshakeKey::new(1, 0, 0);
        let agreed = |connection: Option<&str>| {
            Offer::default().agreed(Some(key), |name| match name {
                "upgrade" => Some("WebSocket".to_owned()),
                "connection" => connection.map(str::to_owned),
                "sec-websocket-accept" => Some(handshake::accept(&key.text())),
                _ => None,
            })
        };
        for connection in ["Upgrade", "upgrade", "keep-alive, Upgrade", "keep-alive,UPGRADE , x"] {
            assert!(agreed(Some(connection)).is_ok(), "{connection}");
        }
        for connection in [None, Some(""), Some("keep-alive"), Some("upgraded"), Some("not upgrade")] {
            assert!(agreed(connection).is_err(), "{connection:?}");
        }
    }

    #[test]
    fn each_connection_has_a_key_of_its_own() {
        let keys = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
            .map(|(seed, conn_idx, generation)| HandshakeKey::new(seed, conn_idx, generation).text());
        for (nth, key) in keys.iter().enumerate() {
            assert!(handshake::is_key(key), "{key}");
            assert!(!keys[..nth].contains(key), "{keys:?}");
        }
        let mut request = format!("GET / HTTP/1.1\r\nSec-WebSocket-Key: {KEY_PLACE}\r\n\r\n").into_bytes();
        HandshakeKey::new(1, 0, 0).fill(&mut request);
        let expected = format!("GET / HTTP/1.1\r\nSec-WebSocket-Key: {}\r\n\r\n", keys[0]);
        assert_eq!(String::from_utf8(request).unwrap(), expected);
    }
}
