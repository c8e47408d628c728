//! What `k6/ws`, `k6/websockets` and `k6/x/sse` share: params, the request that opens a stream, commands, and the samples of each event.
//!
//! Owns: what a script's library asks of a stream, by its token. Never: the functions of the script that are called for an event, which the
//! libraries know.

use std::cell::{OnceCell, RefCell};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use squall_plan::limits::USER_STREAM_COUNT_MAX;
use squall_plan::{Body, HttpVersion, RequestPlan};

use super::http::call::{add_cookies, scenario, split_user};
use super::http::cookies::JarObject;
use super::http::exchange::{cookie_header, header};
use super::http::form::basic_authorization;
use super::http::response::{fields, header_pairs};
use super::http::url::Unusable;
use super::{string_pairs, tag_pairs};
use crate::cookies::{self, Jar};
use crate::host::{Host, VuPhase};
use crate::metrics::MetricId;
use crate::step::{
    Reply, ReplyFailure, ScriptStreamCommand, ScriptStreamEvent, ScriptStreamNews, Spec, StreamClose,
    StreamEnd, StreamKind, StreamMessage, StreamOpen,
};
use crate::streams::{ReadyState, StreamOwner, StreamTags, UserStream};
use crate::user::Outcome;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// What the libraries call.
pub(super) const NATIVES: &[Fun] = &[
    Fun::new(c"take", 1, take),
    Fun::new(c"wait", 1, wait),
    Fun::new(c"now", 0, now_ms),
    Fun::new(c"state", 1, state),
    Fun::new(c"unsent", 1, unsent),
    Fun::new(c"send", 2, send),
    Fun::new(c"ping", 1, ping),
    Fun::new(c"close", 3, close),
    Fun::new(c"finish", 1, finish),
    Fun::new(c"abandon", 1, abandon),
    Fun::new(c"throws", 0, throws),
];

/// How a script wants a stream.
#[derive(Default)]
pub(super) struct StreamParams {
    headers: Vec<(String, String)>,
    pub(super) tags: Vec<(String, String)>,
    jar: Option<Rc<RefCell<Jar>>>,
    compresses: bool,
    method: String,
    body: String,
    timeout: Option<Duration>,
}

/// What the params of a module may be, and how its errors begin.
pub(super) struct ParamRules {
    pub(super) bad_tags: &'static str,
    /// Begin of the error for a name that is unknown; `None`: it is passed over.
    pub(super) unknown: Option<&'static str>,
    /// Method, body and timeout are among them, and compression is not.
    pub(super) is_request: bool,
}

impl StreamParams {
    pub(super) fn read(object: &Value<'_>, rules: &ParamRules) -> JsResult<Self> {
        let mut params = Self::default();
        for key in if object.is_object() { object.keys()? } else { Vec::new() } {
            params.read_one(&key.text(), &object.get_key(&key)?, rules)?;
        }
        Ok(params)
    }

    fn read_one(&mut self, name: &str, value: &Value<'_>, rules: &ParamRules) -> JsResult<()> {
        let ctx = value.ctx();
        match name {
            "headers" => self.headers = string_pairs(value)?,
            "tags" if value.is_nullish() => {}
            "tags" => {
                let tags = tag_pairs(value)?;
                self.tags = tags.map_err(|why| ctx.throw_error(&format!("{}: {why}", rules.bad_tags)))?;
            }
            "jar" => self.jar = value.opaque::<JarObject>().and_then(JarObject::jar),
            "compression" if !rules.is_request => self.compresses = compresses(value, rules)?,
            "method" if rules.is_request => self.method = value.to_text()?.trim().to_ascii_uppercase(),
            "body" if rules.is_request => value.to_text()?.trim().clone_into(&mut self.body),
            "timeout" if rules.is_request && !value.is_nullish() => {
                let text = value.to_text()?;
                let timeout = crate::options::duration(&text);
                let bad = || format!("invalid sse.open() timeout: time: invalid duration {:?}", &*text);
                self.timeout = Some(timeout.ok_or_else(|| ctx.throw_error(&bad()))?);
            }
            _ => {
                if let Some(begin) = rules.unknown {
                    return Err(ctx.throw_error(&format!("{begin} {name}")));
                }
            }
        }
        Ok(())
    }
}

fn compresses(value: &Value<'_>, rules: &ParamRules) -> JsResult<bool> {
    let text = value.to_text()?;
    match text.trim() {
        "deflate" => Ok(true),
        "" if rules.unknown.is_none() => Ok(false),
        other => Err(value.ctx().throw_error(&format!(
            "unsupported compression algorithm '{other}', supported algorithm is 'deflate'"
        ))),
    }
}

/// A stream to be opened.
pub(super) struct Wanted<'a> {
    /// As the script gave it.
    pub(super) url: &'a str,
    /// Of a WebSocket.
    pub(super) protocols: &'a [String],
    pub(super) params: StreamParams,
    pub(super) owner: StreamOwner,
    pub(super) is_web_socket: bool,
    /// The tag `name`; empty: it has none.
    pub(super) name: &'a str,
}

/// Opens a stream; gives its token. One whose URL cannot be used is refused at once.
pub(super) fn open(ctx: Ctx<'_>, wanted: &Wanted<'_>) -> JsResult<u32> {
    let host = Host::of(ctx);
    if host.streams.borrow().count() >= USER_STREAM_COUNT_MAX {
        let text = format!("a virtual user can have {USER_STREAM_COUNT_MAX} open streams at most");
        return Err(ctx.throw_error(&text));
    }
    let Wanted { url, params, owner, name, .. } = wanted;
    let tag_url = if name.is_empty() { url } else { name };
    let tags = tags(host, &params.tags, tag_url, name);
    let (spec, failure) = match spec(host, wanted) {
        Ok(spec) => (spec, None),
        Err(failure) => (unsent_spec(host, wanted), Some(failure)),
    };
    let (spec, now_ns) = (Rc::new(spec), host.now_ns.get());
    let kind = match wanted.is_web_socket {
        true => StreamKind::WebSocket { compresses: params.compresses, protocols: protocols(wanted) },
        false => StreamKind::Body,
    };
    let mut stream = UserStream::new((*owner, wanted.is_web_socket), now_ns, Rc::clone(&spec), tags);
    stream.jar.clone_from(&params.jar);
    let timeout = params.timeout.unwrap_or(if wanted.is_web_socket { HANDSHAKE_TIMEOUT } else { NO_TIMEOUT });
    let mut streams = host.streams.borrow_mut();
    let token = streams.add(stream);
    match failure {
        None => {
            let open = Box::new(StreamOpen { spec, kind, timeout });
            streams.ask(token, ScriptStreamCommand::Open(open));
        }
        Some(failure) => {
            let reply = Box::new(Reply { token, failure: Some(failure), ..Reply::default() });
            streams.deliver(ScriptStreamEvent {
                token,
                at_ns: now_ns,
                news: ScriptStreamNews::Refused(reply),
            });
        }
    }
    Ok(token)
}

/// Tags of the samples of a stream that is made now.
fn tags(host: &Host, call: &[(String, String)], url: &str, name: &str) -> StreamTags {
    let mut tags = host.with_tags(call, |tags| StreamTags {
        scenario: tags.scenario.into(),
        group: tags.group.to_owned(),
        custom: tags.custom[0].to_vec(),
        system: tags.system,
        vu: tags.vu,
        metadata: tags.metadata.to_vec(),
        url: url.to_owned(),
        name: name.to_owned(),
        ..StreamTags::default()
    });
    for (key, value) in call {
        tags.custom.retain(|(known, _)| known != key);
        tags.custom.push((key.clone(), value.clone()));
    }
    tags
}

/// The request that opens a stream, or why there is none.
fn spec(host: &Host, wanted: &Wanted<'_>) -> Result<Spec, ReplyFailure> {
    let text = if wanted.is_web_socket { http_url(wanted.url)? } else { wanted.url.to_owned() };
    let (url, user) = split_user(&text).map_err(|unusable| match unusable {
        Unusable::Unsent(failure) => failure,
        Unusable::Malformed(text) => ReplyFailure { code: INVALID_URL_CODE, text },
    })?;
    let params = &wanted.params;
    let has = |name: &str| params.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut headers = Vec::new();
    if !has("user-agent") && !host.shared.options.user_agent.is_empty() {
        headers.push(header("User-Agent", &host.shared.options.user_agent));
    }
    if !wanted.is_web_socket && !has("accept") {
        headers.push(header("Accept", "text/event-stream"));
    }
    // The handshake's own fields are those of the engine, which k6 does not let scripts change either.
    let is_sent = |name: &str| !wanted.is_web_socket || !HANDSHAKE_FIELDS.contains(&name);
    let own = params.headers.iter().filter(|(name, _)| is_sent(name.to_ascii_lowercase().as_str()));
    headers.extend(own.map(|(name, value)| header(name, value)));
    if let Some((name, password)) = user.as_ref().filter(|_| !has("authorization")) {
        headers.push(header("Authorization", &basic_authorization(name, password)));
    }
    let cookie = match &params.jar {
        Some(jar) => cookie_header(&jar.borrow(), &url, &[]),
        None => cookie_header(&host.jar.borrow(), &url, &[]),
    };
    add_cookies(&mut headers, cookie);
    let method = if params.method.is_empty() { "GET" } else { &params.method };
    let body = Some(&params.body).filter(|body| !body.is_empty());
    let body = body.map_or(Body::Empty, |body| Body::Bytes(body.clone().into_bytes()));
    let plan = RequestPlan {
        weight: NonZeroU32::MIN,
        method: method.to_owned(),
        pattern: Spec::pattern(wanted.url),
        headers,
        url,
        body: Spec::body(method, body),
        // As in k6: both kinds of streams never go over HTTP/2.
        http: HttpVersion::Http11,
    };
    Ok(spec_of(host, plan, wanted, user))
}

/// The subprotocols of a WebSocket: those of a header, which is how `k6/ws` has them, and those that were given as such.
fn protocols(wanted: &Wanted<'_>) -> Vec<String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case("sec-websocket-protocol");
    let own = wanted.params.headers.iter().filter(|(name, _)| is_it(name));
    let own = own.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_owned());
    own.filter(|name| !name.is_empty()).chain(wanted.protocols.iter().cloned()).collect()
}

/// What stands for a stream that cannot be asked for.
fn unsent_spec(host: &Host, wanted: &Wanted<'_>) -> Spec {
    let plan = RequestPlan {
        weight: NonZeroU32::MIN,
        method: "GET".to_owned(),
        pattern: String::new(),
        headers: Vec::new(),
        url: url::Url::parse("about:blank").expect("this is a URL"),
        body: Body::Empty,
        http: HttpVersion::Http11,
    };
    spec_of(host, plan, wanted, None)
}

fn spec_of(host: &Host, plan: RequestPlan, wanted: &Wanted<'_>, user: Option<(String, String)>) -> Spec {
    Spec {
        plan,
        text: wanted.url.to_owned(),
        name: wanted.url.to_owned(),
        user,
        client: 0,
        scenario: scenario(host),
        prepared: OnceCell::new(),
    }
}

/// The URL of the handshake.
fn http_url(url: &str) -> Result<String, ReplyFailure> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    match scheme.to_ascii_lowercase().as_str() {
        "ws" => Ok(format!("http:{rest}")),
        "wss" => Ok(format!("https:{rest}")),
        _ => Err(ReplyFailure { code: INVALID_URL_CODE, text: "malformed ws or wss URL".to_owned() }),
    }
}

/// Whether the event loop waits for streams. `is_pending`: the promise of the work is not settled.
pub(crate) fn is_awaited(host: &Host, is_pending: bool) -> bool {
    let keeps = host.shared.options.keeps_streams && host.phase.get() == VuPhase::Iteration;
    (is_pending || !keeps) && host.streams.borrow().has_looped()
}

/// A piece of work has ended: its streams end, too, unless they are to stay open.
pub(crate) fn forget(host: &Host, outcome: &Outcome) {
    let mut streams = host.streams.borrow_mut();
    let owners: &[StreamOwner] = match outcome {
        Outcome::Done(_) | Outcome::Failed(_) if host.shared.options.keeps_streams => &[StreamOwner::Call],
        _ => &[StreamOwner::Call, StreamOwner::Loop],
    };
    for owner in owners {
        for token in streams.tokens(*owner) {
            streams.abandon(token);
        }
    }
}

/// The next event of a stream that a call waits for, as `[type, value, …]`; `undefined`: there is none.
fn take<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let event = host.streams.borrow_mut().take_of(token);
    match event {
        Some(event) => ctx.array_of(arguments(ctx, event)?.unwrap_or_default()),
        None => Ok(ctx.undefined()),
    }
}

/// What an event is to a library: its type and its values; `None`: nothing. Counts it.
pub(super) fn arguments(ctx: Ctx<'_>, event: ScriptStreamEvent) -> JsResult<Option<Vec<Value<'_>>>> {
    let host = Host::of(ctx);
    let ScriptStreamEvent { token, at_ns, news } = event;
    let kind = |kind: &str| ctx.string(kind);
    Ok(Some(match news {
        ScriptStreamNews::Open(reply) => {
            note_reply(host, token, at_ns, &reply, ReadyState::Open);
            // One that the script has begun to close does not open for it.
            if host.streams.borrow().get(token).is_none_or(|stream| stream.state != ReadyState::Open) {
                return Ok(None);
            }
            vec![kind("open"), response(ctx, host, token, &reply)?]
        }
        ScriptStreamNews::Refused(reply) => {
            note_reply(host, token, at_ns, &reply, ReadyState::Closed);
            let failure = reply.failure.as_ref().map_or(BAD_HANDSHAKE, |failure| &failure.text);
            vec![kind("refused"), response(ctx, host, token, &reply)?, ctx.string(failure)]
        }
        ScriptStreamNews::Message(message) => {
            if !count_received(host, token) {
                return Ok(None);
            }
            match message {
                StreamMessage::Text(text) => vec![kind("text"), ctx.string(&text)],
                StreamMessage::Binary(bytes) => vec![kind("binary"), ctx.array_buffer(&bytes)?],
            }
        }
        ScriptStreamNews::Ping => vec![kind("ping")],
        // It is a figure of the stream by now.
        ScriptStreamNews::Unsent(_) => return Ok(None),
        ScriptStreamNews::Pong(payload) => {
            note_pong(host, token, at_ns, &payload);
            vec![kind("pong")]
        }
        ScriptStreamNews::Data(bytes) => vec![kind("data"), ctx.array_buffer(&bytes)?],
        ScriptStreamNews::Closed(end) => {
            if let Some(stream) = host.streams.borrow_mut().get_mut(token) {
                stream.state = ReadyState::Closed;
            }
            let (code, reason, error) = closed(end);
            let code = code.map_or_else(|| ctx.undefined(), |code| ctx.number(f64::from(code)));
            let error = error.map_or_else(|| ctx.undefined(), |error| ctx.string(&error));
            vec![kind("closed"), code, ctx.string(&reason), error]
        }
    }))
}

/// Code, reason, and the error that it is to k6, whose client reports the end of a connection without a close frame with the code 1006.
fn closed(end: StreamEnd) -> (Option<u16>, String, Option<String>) {
    let error = |code: u16, reason: &str| {
        let name = CLOSE_NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        format!("websocket: close {code}{name}{reason}")
    };
    match end {
        StreamEnd::Peer(StreamClose { code, reason }) => {
            let code = code.unwrap_or(1005);
            let error = (!matches!(code, 1000 | 1001)).then(|| error(code, &reason));
            (Some(code), reason, error)
        }
        StreamEnd::Eof => {
            let reason = "unexpected EOF".to_owned();
            (Some(1006), reason.clone(), Some(error(1006, &reason)))
        }
        StreamEnd::Failed(failure) => (None, String::new(), Some(failure.text)),
        StreamEnd::Limit(text) => (Some(1006), String::new(), Some(text)),
    }
}

/// Keeps what the head of a response says, and counts the attempt.
fn note_reply(host: &Host, token: u32, at_ns: u64, reply: &Reply, state: ReadyState) {
    let mut streams = host.streams.borrow_mut();
    let Some(stream) = streams.get_mut(token) else { return };
    if stream.state != ReadyState::Closing || state == ReadyState::Closed {
        stream.state = state;
    }
    stream.opening_ns = at_ns.saturating_sub(stream.begin_ns);
    stream.tags.status = Some(reply.status).filter(|status| *status != 0);
    let is_web_socket = stream.is_web_socket;
    let protocol = || fields(&reply.head, "sec-websocket-protocol").into_iter().next().unwrap_or_default();
    stream.tags.subproto = stream.tags.status.filter(|_| is_web_socket).map(|_| protocol());
    if stream.tags.system.has("ip") {
        stream.tags.ip = reply.remote.map(|remote| remote.ip().to_string()).unwrap_or_default();
    }
    for cookie in fields(&reply.head, "set-cookie").iter().filter_map(|text| cookies::parse(text)) {
        match &stream.jar {
            Some(jar) => jar.borrow_mut().set(&stream.spec.plan.url, cookie),
            None => host.jar.borrow_mut().set(&stream.spec.plan.url, cookie),
        }
    }
    let samples: &[(MetricId, f64)] = if is_web_socket {
        &[(MetricId::WS_SESSIONS, 1.0), (MetricId::WS_CONNECTING, millis(stream.opening_ns))]
    } else {
        &[(MetricId::HTTP_REQ_SENDING, millis(stream.opening_ns))]
    };
    stream.tags.record(&*host.shared.recorder, samples);
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Counts a message that has come, unless the script has begun to close the WebSocket: whether it has not.
fn count_received(host: &Host, token: u32) -> bool {
    let streams = host.streams.borrow();
    let stream = streams.get(token).filter(|stream| stream.state == ReadyState::Open);
    let samples = &[(MetricId::WS_MSGS_RECEIVED, 1.0)];
    stream.inspect(|stream| stream.tags.record(&*host.shared.recorder, samples)).is_some()
}

fn count_sent(host: &Host, stream: &UserStream) {
    stream.tags.record(&*host.shared.recorder, &[(MetricId::WS_MSGS_SENT, 1.0)]);
}

fn note_pong(host: &Host, token: u32, at_ns: u64, payload: &[u8]) {
    let mut streams = host.streams.borrow_mut();
    let Some(stream) = streams.get_mut(token) else { return };
    if let Some(sent_ns) = stream.end_ping(payload) {
        let samples = &[(MetricId::WS_PING, millis(at_ns.saturating_sub(sent_ns)))];
        stream.tags.record(&*host.shared.recorder, samples);
    }
}

/// What a library makes a response of: `{ url, status, headers, body, protocol, extensions }`.
fn response<'js>(ctx: Ctx<'js>, host: &Host, token: u32, reply: &Reply) -> JsResult<Value<'js>> {
    let object = ctx.object();
    let url = host.streams.borrow().get(token).map_or_else(String::new, |stream| stream.spec.text.clone());
    let headers = ctx.object();
    for (name, value) in header_pairs(&reply.head) {
        headers.set(&name, ctx.string(&value))?;
    }
    let first = |name: &str| fields(&reply.head, name).into_iter().next().unwrap_or_default();
    let extensions = fields(&reply.head, "sec-websocket-extensions");
    for (name, value) in [
        ("url", ctx.string(&url)),
        ("status", ctx.number(f64::from(reply.status))),
        ("headers", headers),
        ("body", ctx.string(&String::from_utf8_lossy(&reply.body))),
        ("protocol", ctx.string(&first("sec-websocket-protocol"))),
        ("extensions", ctx.array_of(extensions.iter().map(|text| ctx.string(text)))?),
    ] {
        object.set(name, value)?;
    }
    Ok(object)
}

fn context<'js>(call: &Call<'js>) -> (Ctx<'js>, &'js Host, u32) {
    let ctx = call.ctx();
    (ctx, Host::of(ctx), call.arg(0).as_number().unwrap_or_default() as u32)
}

/// Waits for an event, or until a time in milliseconds on the clock of `now`.
fn wait<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host) = (call.ctx(), Host::of(call.ctx()));
    host.wait(ctx, call.arg(0).as_number().map(|ms| (ms * 1e6) as u64))?;
    Ok(ctx.undefined())
}

fn now_ms<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    Ok(call.ctx().number(millis(Host::of(call.ctx()).now_ns.get())))
}

/// `readyState`.
fn state<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let state = host.streams.borrow().get(token).map_or(ReadyState::Closed, |stream| stream.state);
    Ok(ctx.number(f64::from(state as u8)))
}

/// Bytes that wait to be sent.
fn unsent<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    Ok(ctx.number(host.streams.borrow().get(token).map_or(0, UserStream::unsent_bytes) as f64))
}

/// Sends a message: text, or the bytes of a buffer or a view.
fn send<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let value = call.arg(1);
    let message = match value.bytes() {
        Some(bytes) => StreamMessage::Binary(bytes),
        None => StreamMessage::Text(value.to_string()?),
    };
    let mut streams = host.streams.borrow_mut();
    let Some(stream) = streams.get(token) else { return Ok(ctx.undefined()) };
    count_sent(host, stream);
    if stream.state == ReadyState::Open {
        streams.send(token, host.now_ns.get(), message);
    }
    Ok(ctx.undefined())
}

fn ping<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let mut streams = host.streams.borrow_mut();
    if let Some(stream) = streams.get_mut(token) {
        let payload = stream.begin_ping(host.now_ns.get());
        // As in k6: it counts as a message where the event loop sends it.
        if stream.owner == StreamOwner::Loop {
            count_sent(host, stream);
        }
        streams.ask(token, ScriptStreamCommand::Ping(payload));
    }
    Ok(ctx.undefined())
}

/// `close(token, code, reason)`: sends a close frame, if none was sent.
fn close<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let code = call.arg(1).as_number().map(|code| code as u16);
    let reason = call.arg(2).to_string()?;
    let mut streams = host.streams.borrow_mut();
    if let Some(stream) = streams.get_mut(token).filter(|stream| stream.state != ReadyState::Closed) {
        stream.state = ReadyState::Closing;
        if stream.owner == StreamOwner::Loop {
            count_sent(host, stream);
        }
        streams.ask(token, ScriptStreamCommand::Close(StreamClose { code, reason }));
    }
    Ok(ctx.undefined())
}

/// A stream is over, and its time is counted.
fn finish<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    let mut streams = host.streams.borrow_mut();
    let is_over = streams.get(token).is_none_or(|stream| stream.state == ReadyState::Closed);
    let stream = if is_over { streams.remove(token) } else { streams.abandon(token) };
    drop(streams);
    let Some(stream) = stream else { return Ok(ctx.undefined()) };
    let length_ms = millis(host.now_ns.get().saturating_sub(stream.begin_ns));
    let samples: &[(MetricId, f64)] = if stream.is_web_socket {
        &[(MetricId::WS_SESSION_DURATION, length_ms)]
    } else {
        &[
            (MetricId::HTTP_REQS, 1.0),
            (MetricId::HTTP_REQ_SENDING, millis(stream.opening_ns)),
            (MetricId::HTTP_REQ_DURATION, length_ms),
        ]
    };
    stream.tags.record(&*host.shared.recorder, samples);
    Ok(ctx.undefined())
}

/// A stream is over that never was open: its time is not counted.
fn abandon<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, host, token) = context(call);
    host.streams.borrow_mut().abandon(token);
    Ok(ctx.undefined())
}

/// The option `throw`.
fn throws<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    Ok(call.ctx().bool(Host::of(call.ctx()).shared.options.throws))
}

/// How k6's client names the close codes that have a name.
const CLOSE_NAMES: &[(u16, &str)] = &[
    (1000, "normal"),
    (1001, "going away"),
    (1002, "protocol error"),
    (1003, "unsupported data"),
    (1005, "no status"),
    (1006, "abnormal closure"),
    (1007, "invalid payload data"),
    (1008, "policy violation"),
    (1009, "message too big"),
    (1010, "mandatory extension missing"),
    (1011, "internal server error"),
    (1015, "TLS handshake error"),
];

/// What k6 says where a response is not 101.
const BAD_HANDSHAKE: &str = "websocket: bad handshake";

/// Fields of the handshake that are not the script's.
const HANDSHAKE_FIELDS: &[&str] = &[
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "content-length",
    "transfer-encoding",
];

/// k6's `error_code` of a URL that cannot be used.
const INVALID_URL_CODE: u16 = 1020;

/// k6's own limit of a WebSocket's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// An event stream has none.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// A module whose functions are JavaScript, made from the native ones and those that it alone has.
pub(super) fn library<'js>(ctx: Ctx<'js>, source: &str, own: &[Fun]) -> JsResult<Value<'js>> {
    let native = ctx.object();
    ctx.set_functions(&native, NATIVES)?;
    ctx.set_functions(&native, own)?;
    ctx.evaluate(source)?.call(&ctx.undefined(), &[&native])
}
