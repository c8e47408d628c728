//! `Response`: a native object whose fields are made when they are read.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use serde_json::Value as Json;

use crate::bodies::{Bodies, Held};
use crate::cookies;
use squall_plan::{Body, Header};

use crate::host::Host;
use crate::step::{Reply, ReplyFailure, Spec};
use crate::vm::{Call, Ctx, Field, Fun, JsResult, Lazy, Thrown, Value};

use super::state::{ResponseClass, ResponseType};

/// What a script holds of a response.
#[derive(Debug)]
pub(crate) struct Response {
    reply: Reply,
    /// `None`: the request could not even be made.
    sent: Option<Sent>,
    response_type: ResponseType,
    pub(crate) bodies: Bodies,
    body_bytes_max: u64,
    _held: Option<Held>,
    decoded: OnceCell<Result<(Vec<u8>, Held), String>>,
    json: RefCell<Option<Rc<Json>>>,
}

/// What a response answers.
#[derive(Debug)]
pub(super) struct Sent {
    /// The request as the script asked for it: `response.request`.
    pub(super) asked: Rc<Spec>,
    /// The last one that was sent, after redirects: `response.url`.
    pub(super) last: Rc<Spec>,
}

impl Response {
    pub(super) fn new(
        reply: Reply,
        sent: Sent,
        response_type: ResponseType,
        (bodies, held): (Bodies, Option<Held>),
        body_bytes_max: u64,
    ) -> Self {
        Self { bodies, body_bytes_max, _held: held, ..Self::made(reply, Some(sent), response_type) }
    }

    /// What stands for the response to a request that could not be made.
    pub(super) fn refused(failure: ReplyFailure) -> Self {
        Self::made(Reply { failure: Some(failure), ..Reply::default() }, None, ResponseType::None)
    }

    fn made(reply: Reply, sent: Option<Sent>, response_type: ResponseType) -> Self {
        Self {
            reply,
            sent,
            response_type,
            bodies: Bodies::default(),
            body_bytes_max: 0,
            _held: None,
            decoded: OnceCell::new(),
            json: RefCell::default(),
        }
    }

    /// The object for the script; a failure is thrown where that is wanted.
    pub(super) fn into_value<'js>(self: Box<Self>, ctx: Ctx<'js>, throws: bool) -> JsResult<Value<'js>> {
        if let Some(failure) = self.reply.failure.as_ref().filter(|_| throws) {
            return Err(ctx.throw_error(&self.error_text(failure)));
        }
        let known = Host::of(ctx).http.response_class.borrow().clone();
        let (proto, kind) = match known {
            Some(class) => (ctx.restore(&class.proto), Rc::clone(&class.kind)),
            None => {
                let (proto, kind) = (prototype(ctx)?, ctx.record_kind(FIELDS, METHODS.iter().map(Fun::text)));
                let class = ResponseClass { proto: proto.clone().keep(), kind: Rc::clone(&kind) };
                *Host::of(ctx).http.response_class.borrow_mut() = Some(Rc::new(class));
                (proto, kind)
            }
        };
        ctx.record(&proto, &kind, self)
    }

    /// A failure with its request, as k6 throws it.
    fn error_text(&self, failure: &ReplyFailure) -> String {
        match &self.sent {
            // The clients of `k6/x/fasthttp` say no more than what went wrong.
            Some(Sent { last, .. }) if last.client == 0 => {
                failed(&last.plan.method, &last.text, &failure.text)
            }
            _ => failure.text.clone(),
        }
    }

    /// Status code; 0 when the request failed.
    pub(crate) fn status(&self) -> u16 {
        self.reply.status
    }

    /// The body, any content coding undone.
    fn body(&self) -> Result<&[u8], &str> {
        if !self.reply.head.windows(16).any(|window| window.eq_ignore_ascii_case(b"content-encoding")) {
            return Ok(&self.reply.body);
        }
        let decoded = self.decoded.get_or_init(|| self.decode());
        decoded.as_ref().map(|(body, _)| body.as_slice()).map_err(String::as_str)
    }

    fn decode(&self) -> Result<(Vec<u8>, Held), String> {
        let codings = fields(&self.reply.head, "content-encoding");
        let body = super::form::decode(&self.reply.body, &codings, self.body_bytes_max)?;
        let held = self.bodies.hold(body.len())?;
        Ok((body, held))
    }

    fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.body().unwrap_or_default())
    }

    fn has_body(&self) -> bool {
        let status = self.reply.status;
        self.response_type != ResponseType::None
            && status >= 200
            && !matches!(status, 204 | 304)
            && self.reply.failure.is_none()
    }

    /// What a path leads to; nothing in a body that is no JSON, as in k6.
    fn json_at(&self, path: &str) -> Result<Option<Json>, String> {
        if !self.has_body() {
            return Err(NO_JSON.to_owned());
        }
        Ok(self.json().ok().and_then(|json| crate::gjson::get(&json, path)))
    }

    fn json(&self) -> Result<Rc<Json>, String> {
        if let Some(json) = &*self.json.borrow() {
            return Ok(Rc::clone(json));
        }
        let parsed: Json = serde_json::from_str(&self.text()).map_err(|error| {
            format!(
                "cannot parse json due to an error at line {}, character {} , error: {error}",
                error.line(),
                error.column()
            )
        })?;
        let json = Rc::new(parsed);
        *self.json.borrow_mut() = Some(Rc::clone(&json));
        Ok(json)
    }
}

/// A request that failed, and why, in Go's words.
pub(super) fn failed(method: &str, url: &str, why: &str) -> String {
    format!("{} \"{url}\": {why}", capitalised(method))
}

/// `Get`, as Go names methods in errors.
fn capitalised(method: &str) -> String {
    let lower = method.to_ascii_lowercase();
    lower
        .chars()
        .enumerate()
        .map(|(idx, letter)| if idx == 0 { letter.to_ascii_uppercase() } else { letter })
        .collect()
}

/// The values of a field in a raw head; `name` in lower case.
pub(crate) fn fields(head: &[u8], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = head;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        let is_it =
            line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        if is_it {
            values.push(String::from_utf8_lossy(&line[name.len() + 1..]).trim().to_owned());
        }
    }
    values
}

/// Every field of a raw head, in order.
fn all_fields(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let pairs = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (canonical(name.trim()), value.trim().to_owned())).collect()
}

/// Go's form of a field name: `Content-Type`.
pub(super) fn canonical(name: &str) -> String {
    let mut is_begin = true;
    name.chars()
        .map(|letter| {
            let changed = if is_begin { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
            is_begin = letter == '-';
            changed
        })
        .collect()
}

fn prototype(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let proto = ctx.object();
    ctx.set_functions(&proto, METHODS)?;
    Ok(proto)
}

impl Lazy for Response {
    fn make<'js>(&self, ctx: Ctx<'js>, idx: usize) -> JsResult<Value<'js>> {
        let failure = self.reply.failure.as_ref();
        let text = match FIELDS[idx].name {
            "remote_ip" => &*self.reply.remote.map(|at| at.ip().to_string()).unwrap_or_default(),
            "remote_port" => {
                return Ok(ctx.number(self.reply.remote.map_or(0.0, |at| f64::from(at.port()))));
            }
            "status" => return Ok(ctx.number(f64::from(self.reply.status))),
            "error_code" => return Ok(ctx.number(f64::from(error_code(self)))),
            "headers" => return headers(ctx, self),
            "cookies" => return cookies_object(ctx, self),
            "body" => return body(ctx, self),
            "timings" => return timings(ctx, self),
            "ocsp" => return ocsp(ctx),
            "request" => return request(ctx, self),
            "url" => url(self),
            "status_text" => &status_text(self),
            "proto" => self.reply.proto,
            "tls_version" => self.reply.tls.map_or("", |(version, _)| version),
            "tls_cipher_suite" => self.reply.tls.map_or("", |(_, cipher)| cipher),
            _ => failure.map_or("", |failure| &failure.text),
        };
        Ok(ctx.string(text))
    }
}

/// The fields in k6's order.
const FIELDS: &[Field] = &[
    Field { name: "remote_ip", is_kept: false },
    Field { name: "remote_port", is_kept: false },
    Field { name: "url", is_kept: false },
    Field { name: "status", is_kept: false },
    Field { name: "status_text", is_kept: false },
    Field { name: "proto", is_kept: false },
    Field { name: "headers", is_kept: true },
    Field { name: "cookies", is_kept: true },
    Field { name: "body", is_kept: true },
    Field { name: "timings", is_kept: true },
    Field { name: "tls_version", is_kept: false },
    Field { name: "tls_cipher_suite", is_kept: false },
    Field { name: "ocsp", is_kept: true },
    Field { name: "error", is_kept: false },
    Field { name: "error_code", is_kept: false },
    Field { name: "request", is_kept: true },
];

const METHODS: &[Fun] = &[
    Fun::new(c"clickLink", 1, |call: &Call<'_>| follow(call, "clickLink")),
    Fun::new(c"html", 1, html),
    Fun::new(c"json", 1, json),
    Fun::new(c"submitForm", 1, |call: &Call<'_>| follow(call, "submitForm")),
];

fn with<'js, T>(call: &Call<'js>, read: impl FnOnce(&Value<'js>, &Response) -> T) -> JsResult<T> {
    let this = call.this();
    match this.opaque::<Response>() {
        Some(response) => Ok(read(&this, response)),
        None => Err(call.ctx().throw_type("this is not a Response")),
    }
}

fn url(response: &Response) -> &str {
    response.sent.as_ref().map_or("", |sent| &sent.last.text)
}

fn status_text(response: &Response) -> String {
    let line = response.reply.head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let text = line.trim_end().split_once(' ').map(|(_, rest)| rest.to_owned());
    match text {
        Some(text) if response.reply.proto == "HTTP/1.1" => text,
        _ if response.reply.status == 0 => String::new(),
        _ => format!("{} {}", response.reply.status, reason(response.reply.status)),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "",
    }
}

fn error_code(response: &Response) -> u16 {
    match &response.reply.failure {
        Some(failure) => failure.code,
        None if response.reply.status >= 400 => 1000 + response.reply.status,
        None => 0,
    }
}

/// The fields of a raw head by Go's names, the values of each joined.
pub(crate) fn header_pairs(head: &[u8]) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in all_fields(head) {
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            None => joined.push((name, value)),
        }
    }
    joined
}

fn headers<'js>(ctx: Ctx<'js>, response: &Response) -> JsResult<Value<'js>> {
    let object = ctx.object();
    let pairs = header_pairs(&response.reply.head);
    pairs.iter().try_for_each(|(name, value)| object.set(name, ctx.string(value)))?;
    Ok(object)
}

fn cookies_object<'js>(ctx: Ctx<'js>, response: &Response) -> JsResult<Value<'js>> {
    let object = ctx.object();
    for cookie in fields(&response.reply.head, "set-cookie").iter().filter_map(|text| cookies::parse(text)) {
        let known = object.get(&cookie.name)?;
        let list = if known.is_array() { known } else { ctx.array() };
        let one = ctx.object();
        for (name, value) in [
            ("name", &cookie.name),
            ("value", &cookie.value),
            ("domain", &cookie.domain),
            ("path", &cookie.path),
        ] {
            one.set(name, ctx.string(value))?;
        }
        one.set("http_only", ctx.bool(cookie.http_only))?;
        one.set("secure", ctx.bool(cookie.secure))?;
        one.set("max_age", ctx.number(cookie.max_age as f64))?;
        one.set("expires", ctx.number(cookie.expires_ms.unwrap_or(NO_EXPIRY_MS) as f64))?;
        list.set_idx(list.length()?, one)?;
        object.set(&cookie.name, list)?;
    }
    Ok(object)
}

fn timings<'js>(ctx: Ctx<'js>, response: &Response) -> JsResult<Value<'js>> {
    let (timing, object) = (&response.reply.timing, ctx.object());
    for (name, ns) in [
        ("duration", timing.duration_ns()),
        ("blocked", timing.blocked_ns),
        ("looking_up", 0),
        ("connecting", timing.connecting_ns),
        ("tls_handshaking", timing.tls_handshaking_ns),
        ("sending", timing.sending_ns),
        ("waiting", timing.waiting_ns),
        ("receiving", timing.receiving_ns),
    ] {
        object.set(name, ctx.number(ns as f64 / 1e6))?;
    }
    Ok(object)
}

/// The request as it was asked for, wherever redirects led; what its URL says of the user is no header of it, as in k6.
fn request<'js>(ctx: Ctx<'js>, response: &Response) -> JsResult<Value<'js>> {
    let spec = response.sent.as_ref().map(|sent| &*sent.asked);
    let (object, headers) = (ctx.object(), ctx.object());
    let fields = spec.map_or(&[][..], |spec| &spec.plan.headers);
    let of_user = spec.and_then(|spec| spec.user.as_ref());
    let proof = of_user.map(|(name, password)| super::form::basic_authorization(name, password));
    for Header { name, value } in fields.iter().filter(|field| Some(&field.value) != proof.as_ref()) {
        headers.set(&canonical(name), ctx.array_of([ctx.string(value)])?)?;
    }
    let body = match spec.map(|spec| &spec.plan.body) {
        Some(Body::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Body::Empty | Body::File { .. }) | None => String::new(),
    };
    object.set("method", ctx.string(spec.map_or("", |spec| &spec.plan.method)))?;
    object.set("url", ctx.string(spec.map_or("", |spec| &spec.text)))?;
    object.set("headers", headers)?;
    object.set("body", ctx.string(&body))?;
    let cookies = ctx.object();
    for field in fields.iter().filter(|field| field.name == "Cookie") {
        for (name, value) in field.value.split("; ").filter_map(|pair| pair.split_once('=')) {
            let one = ctx.object();
            one.set("name", ctx.string(name))?;
            one.set("value", ctx.string(value.trim_matches('"')))?;
            one.set("replace", ctx.bool(false))?;
            cookies.set(name, ctx.array_of([one])?)?;
        }
    }
    object.set("cookies", cookies)?;
    Ok(object)
}

fn ocsp(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let object = ctx.object();
    for name in ["produced_at", "this_update", "next_update", "revoked_at"] {
        object.set(name, ctx.number(0.0))?;
    }
    object.set("revocation_reason", ctx.string(""))?;
    object.set("status", ctx.string("unknown"))?;
    Ok(object)
}

fn body<'js>(ctx: Ctx<'js>, response: &Response) -> JsResult<Value<'js>> {
    if !response.has_body() {
        return Ok(ctx.null());
    }
    match response.body() {
        Ok(bytes) if response.response_type == ResponseType::Binary => ctx.array_buffer(bytes),
        Ok(_) => Ok(ctx.string(&response.text())),
        Err(problem) => Err(ctx.throw_error(&format!("error decompressing response body: {problem}"))),
    }
}

fn json<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, path) = (call.ctx(), call.arg(0));
    if !path.is_undefined() {
        let path = path.to_string()?;
        let found = with(call, |_, response| response.json_at(&path))?;
        let found = found.map_err(|problem| ctx.throw_error(&problem))?;
        return found.map_or_else(|| Ok(ctx.undefined()), |json| ctx.parse_json(&json.to_string()));
    }
    let this = call.this();
    let known = this.get("__json")?;
    if !known.is_undefined() {
        return Ok(known);
    }
    let text = with(
        call,
        |_, response| {
            if response.has_body() { Ok(response.text().into_owned()) } else { Err(NO_JSON) }
        },
    )?;
    let text = text.map_err(|problem| ctx.throw_error(problem))?;
    let value = match ctx.parse_json(&text) {
        Ok(value) => value,
        Err(Thrown) => {
            drop(ctx.take_exception());
            let problem = with(call, |_, response| response.json().err())?.unwrap_or_default();
            return Err(ctx.throw_error(&problem));
        }
    };
    this.define_hidden("__json", value.clone())?;
    Ok(value)
}

/// `response.html(selector?)`: the page, or what of it matches.
fn html<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, this, selector) = (call.ctx(), call.this(), call.arg(0));
    if !with(call, |_, response| response.has_body())? {
        return Err(ctx.throw_error("the body is null so we can't transform it to HTML - this likely was because of a request error getting the response"));
    }
    let parse = crate::api::html::function(ctx, "parseHTML")?;
    let page = parse.call(&ctx.undefined(), &[&this.get("body")?, &this.get("url")?])?;
    if selector.is_undefined() { Ok(page) } else { page.get("find")?.call(&page, &[&selector]) }
}

/// `response.submitForm(…)` and `response.clickLink(…)`: the request that a page leads to.
fn follow<'js>(call: &Call<'js>, how: &str) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let function = crate::api::html::function(ctx, how)?;
    function.call(&ctx.undefined(), &[&call.this(), &super::object(ctx)?, &call.arg(0)])
}

/// What `json` says of a response without a body.
const NO_JSON: &str = "the body is null so we can't transform it to JSON - this likely was because of a request error getting the response";

/// What k6 gives as `expires` of a cookie without one: Go's zero time, overflown.
const NO_EXPIRY_MS: i64 = -6_795_364_578_871;
