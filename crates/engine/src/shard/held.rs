//! Streams held by a driver, against the embedded server: every command has its effect, and every event comes once, in order.

use std::cell::OnceCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use squall_measure::Snapshot;
use squall_plan::{
    Body, ConnectionPolicy, Expect, Header, HttpLoad, HttpVersion, Load, Network, Profile, RequestPlan,
    Segment, ShardPart, Stop, TlsPolicy, What, When,
};
use squall_script::{Request, Spec};
use squall_server::{Options, Target};
use squall_wire::ws::{CloseCode, MessageKind};

use super::Shard;
use crate::Control;
use crate::driver::stream::{CallKind, StreamBody, StreamCommand, StreamKey, StreamNews, StreamReport};
use crate::driver::{Call, Driver, Ended, Port};
use crate::prepare::{Offer, Prepared, Route};
use crate::setup::ShardSetup;
use crate::sys::monotonic_ns;

/// Makes one call, and does to its stream what `act` says of each event.
struct OneStream {
    call: Option<Call>,
    act: fn(&StreamReport, &mut Port),
    opened: fn(&Ended, &mut Port),
    /// Until the stream is closed, not only the call.
    waits_for_close: bool,
    /// Pauses the stream with its head, and resumes it after a while.
    pauses: bool,
    resumed: Option<(u64, StreamKey)>,
    log: Arc<Mutex<Vec<String>>>,
    is_finished: bool,
}

impl OneStream {
    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }
}

impl Driver for OneStream {
    fn turn(&mut self, now_ns: u64, port: &mut Port) {
        port.calls.extend(self.call.take());
        if let Some((_, key)) = self.resumed.take_if(|(at_ns, _)| *at_ns <= now_ns) {
            self.note("resumed".to_owned());
            port.commands.push((key, StreamCommand::Resume));
        }
    }

    fn next_due_ns(&self) -> u64 {
        if self.call.is_some() { 0 } else { self.resumed.map_or(u64::MAX, |(at_ns, _)| at_ns) }
    }

    fn complete(&mut self, ended: Ended, _now_ns: u64, port: &mut Port) {
        self.note(format!("{:?}", ended.result.as_ref().map_err(|trouble| trouble.cause)));
        self.is_finished |= !self.waits_for_close || ended.stream.is_none();
        (self.opened)(&ended, port);
    }

    fn stream(&mut self, event: StreamReport, start_ns: u64, port: &mut Port) {
        assert!(event.at_ns >= start_ns && (event.user, event.token) == (3, 7));
        self.note(match &event.news {
            StreamNews::Open => "open".to_owned(),
            StreamNews::Head(head) => String::from_utf8_lossy(&head[9..12]).into_owned(),
            StreamNews::Data(data) => format!("data {}", String::from_utf8_lossy(data).trim()),
            StreamNews::Message(_, bytes) => format!("message {}", String::from_utf8_lossy(bytes)),
            StreamNews::Closed(trouble) => format!("closed {:?}", trouble.as_ref().map(|it| it.cause)),
            other => format!("{other:?}"),
        });
        self.is_finished |= matches!(event.news, StreamNews::Closed(_));
        if self.pauses && matches!(event.news, StreamNews::Head(_)) {
            port.commands.push((event.key, StreamCommand::Pause));
            self.resumed = Some((event.at_ns - start_ns + PAUSE_NS, event.key));
        }
        (self.act)(&event, port);
    }

    fn stop(&mut self, _now_ns: u64, _port: &mut Port) {
        self.is_finished = true;
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn route(&self, _spec: &Spec) -> Route {
        Route::default()
    }

    fn fill(&mut self, _now_ns: u64, _snapshot: &mut Snapshot) {}
}

fn plan(url: &str, method: &str, headers: &[(&str, &str)]) -> RequestPlan {
    let header = |(name, value): &(&str, &str)| Header { name: (*name).into(), value: (*value).into() };
    RequestPlan {
        weight: NonZeroU32::MIN,
        method: method.to_owned(),
        url: url.parse().unwrap(),
        pattern: url.to_owned(),
        headers: headers.iter().map(header).collect(),
        body: Body::Empty,
        http: HttpVersion::Http11,
    }
}

fn call(plan: RequestPlan, kind: CallKind) -> Call {
    let spec = Spec {
        text: plan.url.to_string(),
        name: plan.url.to_string(),
        plan,
        user: None,
        client: 0,
        scenario: "default".into(),
        prepared: OnceCell::new(),
    };
    let timeout = Duration::from_secs(10);
    let request = Request { token: 7, spec: Rc::new(spec), timeout, body_bytes_max: 0, expects: [].into() };
    Call { user: 3, request, kind }
}

/// Runs a driver to its end; the events that it was sent.
fn run(driver: OneStream) -> Vec<String> {
    let http = HttpLoad {
        requests: Vec::new(),
        user_agents: Vec::new(),
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: Duration::from_secs(10),
    };
    let load = Load {
        name: "held".to_owned(),
        what: What::Http(http),
        when: When::Closed { connections: Profile::constant(1.0), users: None },
        stop: Stop { duration: Some(Duration::from_secs(20)), count: None },
        connections: ConnectionPolicy {
            // Much less than what the tests receive.
            window_bytes: 65_535,
            ..ConnectionPolicy::default()
        },
        network: Network::default(),
        tls: TlsPolicy { insecure: true, ..TlsPolicy::default() },
        segment: Segment::WHOLE,
    };
    let (seconds, _collected) = channel();
    let (_spares, spare) = channel();
    let setup = ShardSetup {
        part: ShardPart::WHOLE,
        shard_idx: 0,
        row_count: 0,
        is_open_model: false,
        prepared: Arc::new(Prepared::for_driver(&load).for_shard()),
        control: Control::new(),
        warmup_ns: 0,
        seconds,
        spare,
        watches_memory: false,
    };
    let log = Arc::clone(&driver.log);
    let shard = Shard::driven(setup, monotonic_ns(), (Box::new(driver), 6)).unwrap();
    shard.run().unwrap();
    Arc::into_inner(log).unwrap().into_inner().unwrap()
}

fn driver(call: Call, act: fn(&StreamReport, &mut Port), opened: fn(&Ended, &mut Port)) -> OneStream {
    let waits_for_close = matches!(call.kind, CallKind::WebSocket(_));
    let (pauses, resumed, log) = (false, None, Arc::new(Mutex::new(Vec::new())));
    OneStream { call: Some(call), act, opened, waits_for_close, pauses, resumed, log, is_finished: false }
}

fn websocket(url: &str, act: fn(&StreamReport, &mut Port)) -> Vec<String> {
    let kind = CallKind::WebSocket(Rc::new(Offer::default()));
    run(driver(call(plan(url, "GET", &[]), kind), act, |ended, port| {
        let Some(key) = ended.stream else { return };
        port.commands.push((key, StreamCommand::Ping(b"p".to_vec())));
        port.commands.push((key, StreamCommand::Message(MessageKind::Text, b"hello".to_vec())));
    }))
}

#[test]
fn a_websocket_is_opened_spoken_on_and_closed() {
    let target = Target::start(&Options::default()).unwrap();
    let url = |query: &str| format!("http://{}/ws/echo{query}", target.address());
    let log = websocket(&url(""), |event, port| {
        if matches!(event.news, StreamNews::Message(..)) {
            port.commands.push((event.key, StreamCommand::Close(CloseCode(1000), "bye".to_owned())));
        }
    });
    let close = format!("{:?}", StreamNews::Close(CloseCode(1000), "bye".to_owned()));
    let pong = format!("{:?}", StreamNews::Pong(b"p".to_vec()));
    assert_eq!(log, ["Ok(101)", &pong, "message hello", &close, "closed None"]);
    let log = websocket(&url("?close-after=1&code=1001"), |_, _| {});
    let close = format!("{:?}", StreamNews::Close(CloseCode(1001), String::new()));
    assert_eq!(log[2..], ["message hello", &close, "closed None"]);
    let log = websocket(&url("").replace("/ws/echo", "/get"), |_, _| {});
    assert_eq!(log, ["Ok(200)"]);
}

#[test]
fn a_response_is_reported_as_it_comes_and_a_body_grows() {
    let target = Target::start(&Options::default()).unwrap();
    let url = format!("http://{}/sse?count=3&interval=20ms&size=1", target.address());
    let stream = call(plan(&url, "GET", &[]), CallKind::Stream(StreamBody::Whole));
    let log = run(driver(stream, |_, _| {}, |_, _| {}));
    assert_eq!(
        (log.len(), &log[..2], log[5].as_str()),
        (6, &["open".to_owned(), "200".to_owned()][..], "Ok(200)"),
        "{log:?}"
    );
    assert!(log[2..5].iter().all(|line| line.starts_with("data id: ")), "{log:?}");
    let url = format!("http://{}/post", target.address());
    let headers = [("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain")];
    let stream = call(plan(&url, "POST", &headers), CallKind::Stream(StreamBody::Grows));
    let grow = |event: &StreamReport, port: &mut Port| {
        if matches!(event.news, StreamNews::Open) {
            for part in ["one ", "two ", "three"] {
                port.commands.push((event.key, StreamCommand::Extend(part.as_bytes().to_vec())));
            }
            port.commands.push((event.key, StreamCommand::Finish));
        }
    };
    let log = run(driver(stream, grow, |_, _| {}));
    assert_eq!(log.last().map(String::as_str), Some("Ok(200)"), "{log:?}");
    assert!(log.iter().any(|line| line.contains("one two three")), "{log:?}");
}

/// A server of all versions over TLS, and the URL of a path of it.
fn secure_target(path: &str) -> (Target, String) {
    let tls = Some(squall_server::Tls::SelfMade { names: Vec::new() });
    let target = Target::start(&Options { tls, http3: true, ..Options::default() }).unwrap();
    let url = format!("https://{}{path}", target.address());
    (target, url)
}

#[test]
fn a_body_that_exceeds_the_windows_grows_in_every_version() {
    for http in [HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3] {
        let (_target, url) = secure_target("/upload");
        let fields: &[(&str, &str)] =
            if http == HttpVersion::Http11 { &[("Transfer-Encoding", "chunked")] } else { &[] };
        let plan = RequestPlan { http, ..plan(&url, "POST", fields) };
        let grow = |event: &StreamReport, port: &mut Port| {
            if matches!(event.news, StreamNews::Open) {
                for part in 0..PART_COUNT {
                    port.commands.push((event.key, StreamCommand::Extend(vec![part as u8; PART_BYTES])));
                }
                port.commands.push((event.key, StreamCommand::Finish));
            }
        };
        let log = run(driver(call(plan, CallKind::Stream(StreamBody::Grows)), grow, |_, _| {}));
        assert_eq!(log.last().map(String::as_str), Some("Ok(200)"), "{http:?} {log:?}");
        let size = (PART_COUNT * PART_BYTES).to_string();
        assert!(log.iter().any(|line| line.contains(&size)), "{http:?} {log:?}");
    }
}

#[test]
fn a_paused_response_goes_on_once_it_is_resumed() {
    for http in [HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3] {
        let (_target, url) = secure_target("/range/500000");
        let plan = RequestPlan { http, ..plan(&url, "GET", &[]) };
        let driver = driver(call(plan, CallKind::Stream(StreamBody::Whole)), |_, _| {}, |_, _| {});
        let log = run(OneStream { pauses: true, ..driver });
        let resumed = log.iter().position(|line| line == "resumed").unwrap();
        let bytes_of = |lines: &[String]| -> usize {
            lines.iter().filter_map(|line| line.strip_prefix("data ")).map(str::len).sum()
        };
        // What came with the head, in the same turn, is reported at once.
        let (before, after) = (bytes_of(&log[..resumed]), bytes_of(&log[resumed..]));
        assert!(before < 250_000, "{http:?}: {before} bytes came before it was resumed");
        assert_eq!((before + after, log.last().map(String::as_str)), (500_000, Some("Ok(200)")), "{http:?}");
    }
}

/// How long a response is paused: much longer than its first bytes need.
const PAUSE_NS: u64 = 50_000_000;

/// A body that is larger than what a server takes unread.
const PART_COUNT: usize = 64;
const PART_BYTES: usize = 100_000;
