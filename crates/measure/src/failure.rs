//! Why requests failed: one cause and one phase each, counted, with an example.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// The name has no address.
    NameNotResolved,
    /// Nothing listens there.
    ConnectionRefused,
    /// No route to the host or its network.
    Unreachable,
    /// The peer (or something between) reset the connection.
    ConnectionReset,
    /// The peer closed the connection before the response was whole.
    ConnectionClosed,
    /// No connection within `--connect-timeout`.
    ConnectTimeout,
    /// No whole response within `--timeout`.
    Timeout,
    /// The server's certificate did not verify: name, date, issuer, or signature.
    TlsCertificate,
    /// The peer sent a TLS alert.
    TlsAlert,
    /// The peer broke the TLS protocol, or speaks no version or cipher that was offered.
    TlsProtocol,
    /// The peer broke the QUIC protocol.
    QuicProtocol,
    /// The server does not speak the HTTP version that was asked for (ALPN).
    VersionNotNegotiated,
    /// The response is not HTTP, or breaks its framing rules.
    HttpProtocol,
    /// HTTP/2: the server ended the request's stream with an error.
    StreamReset,
    /// HTTP/2: the server refused the request unread, again and again.
    StreamRefused,
    /// The response head is larger than the limit.
    HeadTooLarge,
    /// A whole response with a status that was not expected.
    UnexpectedStatus,
    /// A whole response with a body length that was not expected.
    UnexpectedLength,
    /// A stream that ended before the event that was to be its last.
    EndedEarly,
    /// A message, or an event of a stream, larger than the limit.
    MessageTooLarge,
    /// The peer broke the WebSocket protocol, or did not agree to speak it.
    #[serde(rename = "websocket_protocol")]
    WebSocketProtocol,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect that cannot be followed: no or bad `Location`, or a host that is not in the plan.
    BadRedirect,
    /// The proxy refused the tunnel.
    ProxyRefused,
    /// Our own side: the body file could not be read.
    BodyFile,
    /// Our own side: no local port, descriptor, or buffer left.
    OutOfResources,
    /// Any other error of the operating system.
    Other,
}

/// Where in its life a request was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Phase {
    /// Waiting for a connection.
    Blocked,
    /// Resolving the name.
    LookingUp,
    /// TCP connect.
    Connecting,
    /// Asking the proxy for a tunnel, or the server for an upgrade to HTTP/2.
    Tunnelling,
    /// TLS handshake.
    TlsHandshaking,
    /// Writing the request.
    Sending,
    /// Before the first byte of the response.
    Waiting,
    /// Within the response.
    Receiving,
}

/// Counts of failures by cause and phase, with the first example of each kind.
#[derive(Clone, PartialEq, Eq)]
pub struct Failures {
    counts: Box<[u64; KIND_COUNT]>,
    given: Box<[bool; KIND_COUNT]>,
    examples: BTreeMap<(Cause, Phase), FailureExample>,
}

/// The first failure of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailureExample {
    /// When, in nanoseconds after the run's start.
    pub at_ns: u64,
    /// The row's URL.
    pub url: String,
    /// What the system, the TLS library or the codec said.
    pub text: String,
}

/// One kind of failure: how often it came, and the first that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// Why.
    pub cause: Cause,
    /// Where in the request's life.
    pub phase: Phase,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub example: Option<FailureExample>,
}

impl Failures {
    /// Counts one failure.
    pub fn count(&mut self, cause: Cause, phase: Phase) {
        self.counts[kind_idx(cause, phase)] += 1;
    }

    /// Whether an example of this kind is still wanted: false once one was given (on this shard, ever), so that the
    /// caller makes no text for nothing.
    pub fn wants_example(&self, cause: Cause, phase: Phase) -> bool {
        !self.given[kind_idx(cause, phase)]
    }

    /// Gives an example; the first one stays. Its text is cut at [`EXAMPLE_TEXT_BYTES_MAX`].
    pub fn set_example(&mut self, cause: Cause, phase: Phase, mut example: FailureExample) {
        if self.wants_example(cause, phase) {
            self.given[kind_idx(cause, phase)] = true;
            example.text.truncate(example.text.floor_char_boundary(EXAMPLE_TEXT_BYTES_MAX));
            self.examples.insert((cause, phase), example);
        }
    }

    /// How many failures there were.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many failures had this cause, in any phase.
    pub fn count_of(&self, cause: Cause) -> u64 {
        PHASES.iter().map(|&phase| self.counts[kind_idx(cause, phase)]).sum()
    }

    /// The kinds that occurred, most frequent first.
    pub fn kinds(&self) -> Vec<FailureCount> {
        let all = CAUSES.iter().flat_map(|&cause| PHASES.iter().map(move |&phase| (cause, phase)));
        let mut kinds: Vec<_> = all
            .map(|(cause, phase)| FailureCount {
                cause,
                phase,
                count: self.counts[kind_idx(cause, phase)],
                example: self.example(cause, phase).cloned(),
            })
            .filter(|kind| kind.count > 0)
            .collect();
        kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.count), kind.cause, kind.phase));
        kinds
    }

    /// The first example of a kind, if one was given since the last [`clear`](Self::clear).
    pub fn example(&self, cause: Cause, phase: Phase) -> Option<&FailureExample> {
        self.examples.get(&(cause, phase))
    }

    /// Adds the counts of others; of two examples of a kind the earlier one stays.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        for (&(cause, phase), example) in &other.examples {
            self.given[kind_idx(cause, phase)] = true;
            let mine = self.examples.entry((cause, phase)).or_insert_with(|| example.clone());
            if example < mine {
                mine.clone_from(example);
            }
        }
    }

    /// The run began so much earlier than the clock of these examples.
    pub fn put_off(&mut self, by: Duration) {
        let by_ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.examples.values_mut().for_each(|example| example.at_ns = example.at_ns.saturating_add(by_ns));
    }

    /// Forgets counts and examples, but not of which kinds an example was given.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.examples.clear();
    }
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            counts: Box::new([0; KIND_COUNT]),
            given: Box::new([false; KIND_COUNT]),
            examples: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failures").field(&self.kinds()).finish()
    }
}

/// Written as the list of the kinds that occurred.
impl Serialize for Failures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kinds().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Failures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut failures = Self::default();
        for kind in Vec::<FailureCount>::deserialize(deserializer)? {
            failures.counts[kind_idx(kind.cause, kind.phase)] = kind.count;
            if let Some(example) = kind.example {
                failures.set_example(kind.cause, kind.phase, example);
            }
        }
        Ok(failures)
    }
}

/// Longest text of an example, in bytes. Peers can send whole pages where a status line belongs.
pub const EXAMPLE_TEXT_BYTES_MAX: usize = 400;

fn kind_idx(cause: Cause, phase: Phase) -> usize {
    cause as usize * PHASES.len() + phase as usize
}

const KIND_COUNT: usize = CAUSES.len() * PHASES.len();

const CAUSES: [Cause; 27] = [
    Cause::NameNotResolved,
    Cause::ConnectionRefused,
    Cause::Unreachable,
    Cause::ConnectionReset,
    Cause::ConnectionClosed,
    Cause::ConnectTimeout,
    Cause::Timeout,
    Cause::TlsCertificate,
    Cause::TlsAlert,
    Cause::TlsProtocol,
    Cause::QuicProtocol,
    Cause::VersionNotNegotiated,
    Cause::HttpProtocol,
    Cause::StreamReset,
    Cause::StreamRefused,
    Cause::HeadTooLarge,
    Cause::UnexpectedStatus,
    Cause::UnexpectedLength,
    Cause::EndedEarly,
    Cause::MessageTooLarge,
    Cause::WebSocketProtocol,
    Cause::TooManyRedirects,
    Cause::BadRedirect,
    Cause::ProxyRefused,
    Cause::BodyFile,
    Cause::OutOfResources,
    Cause::Other,
];

const PHASES: [Phase; 8] = [
    Phase::Blocked,
    Phase::LookingUp,
    Phase::Connecting,
    Phase::Tunnelling,
    Phase::TlsHandshaking,
    Phase::Sending,
    Phase::Waiting,
    Phase::Receiving,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn example(at_ns: u64, text: &str) -> FailureExample {
        FailureExample { at_ns, url: "http://h/".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn tables_list_every_kind_at_its_own_index() {
        for (idx, &cause) in CAUSES.iter().enumerate() {
            assert_eq!(cause as usize, idx);
        }
        for (idx, &phase) in PHASES.iter().enumerate() {
            assert_eq!(phase as usize, idx);
        }
        assert_eq!(kind_idx(Cause::Other, Phase::Receiving), KIND_COUNT - 1);
    }

    #[test]
    fn an_example_is_wanted_once_even_after_clear() {
        let mut failures = Failures::default();
        assert!(failures.wants_example(Cause::Timeout, Phase::Waiting));
        failures.set_example(Cause::Timeout, Phase::Waiting, example(1, "first"));
        failures.set_example(Cause::Timeout, Phase::Waiting, example(0, "second"));
        assert_eq!(failures.example(Cause::Timeout, Phase::Waiting).unwrap().text, "first");
        failures.clear();
        assert!(!failures.wants_example(Cause::Timeout, Phase::Waiting));
        assert_eq!(failures.example(Cause::Timeout, Phase::Waiting), None);
        assert!(failures.wants_example(Cause::Timeout, Phase::Receiving));
    }

    #[test]
    fn merge_keeps_the_earlier_example_in_either_order() {
        let with = |at_ns, text| {
            let mut failures = Failures::default();
            failures.count(Cause::Timeout, Phase::Waiting);
            failures.set_example(Cause::Timeout, Phase::Waiting, example(at_ns, text));
            failures
        };
        let (late, early) = (with(9, "late"), with(3, "early"));
        for (mut first, second) in [(late.clone(), early.clone()), (early, late)] {
            first.merge(&second);
            assert_eq!(first.kinds()[0].count, 2);
            assert_eq!(first.kinds()[0].example.as_ref().unwrap().text, "early");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut failures = Failures::default();
        failures.set_example(Cause::Other, Phase::Sending, example(0, &"é".repeat(1000)));
        let text = &failures.example(Cause::Other, Phase::Sending).unwrap().text;
        assert_eq!(text.len(), EXAMPLE_TEXT_BYTES_MAX);
    }

    #[test]
    fn kinds_come_back_from_json() {
        let mut failures = Failures::default();
        failures.count(Cause::TlsAlert, Phase::TlsHandshaking);
        failures.count(Cause::Timeout, Phase::Waiting);
        failures.count(Cause::Timeout, Phase::Waiting);
        failures.set_example(Cause::Timeout, Phase::Waiting, example(5, "10 s passed"));
        let text = serde_json::to_string(&failures).unwrap();
        let back: Failures = serde_json::from_str(&text).unwrap();
        assert_eq!(back, failures);
        assert_eq!(back.count_of(Cause::Timeout), 2);
        assert_eq!(back.total(), 3);
    }
}
