//! The module `k6/x/fasthttp`: the extension's clients, requests and streamed files, on the same connections as `k6/http`.
//!
//! What differs from the extension is that `checkstatus` counts what it finds, and that a request used with another method is sent
//! with that method.

use std::cell::{OnceCell, RefCell};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use squall_plan::{Body, Header, HttpVersion, RequestPlan};

use crate::host::Host;
use crate::metrics::Tags;
use crate::step::{ClientConfig, Spec};
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

use super::http::call::{scenario, split_user};
use super::http::exchange::{self, header};
use super::http::form;
use super::http::response::Response;
use super::http::state::{BuiltRequest, RequestParams, ResponseType};
use super::http::url::Unusable;
use super::{exports_of, string_pairs};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let module = ctx.object();
    module.set("Client", ctx.constructor(&Fun::new(c"Client", 1, new_client), &ctx.object())?)?;
    module.set("Request", ctx.constructor(&Fun::new(c"Request", 2, new_request), &ctx.object())?)?;
    module
        .set("FileStream", ctx.constructor(&Fun::new(c"FileStream", 1, new_file_stream), &ctx.object())?)?;
    ctx.set_functions(&module, &[Fun::new(c"checkstatus", 3, check_status)])?;
    exports_of(module)
}

/// What a script holds of a client.
struct Client {
    /// Its number among the program's clients, from 1.
    id: u32,
    user_agent: String,
    timeout: Duration,
}

/// What a script holds of a request.
struct Prepared {
    url: String,
    headers: Vec<Header>,
    body: Body,
    params: Rc<RequestParams>,
    /// As they were sent: by client, method and scenario.
    specs: RefCell<Vec<Rc<Spec>>>,
    /// With the time-out of the client that sent it first.
    timed_params: OnceCell<Rc<RequestParams>>,
}

const METHODS: &[Fun] = &[
    Fun::new(c"get", 1, |call: &Call<'_>| send(call, "GET")),
    Fun::new(c"post", 1, |call: &Call<'_>| send(call, "POST")),
    Fun::new(c"put", 1, |call: &Call<'_>| send(call, "PUT")),
    Fun::new(c"patch", 1, |call: &Call<'_>| send(call, "PATCH")),
    Fun::new(c"delete", 1, |call: &Call<'_>| send(call, "DELETE")),
    Fun::new(c"options", 1, |call: &Call<'_>| send(call, "OPTIONS")),
];

fn new_client<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, config) = (call.ctx(), call.arg(0));
    Host::of(ctx).require_init(ctx, "creating a fasthttp Client")?;
    let config = if config.is_object() { config } else { ctx.object() };
    let seconds = |name: &str| -> JsResult<Duration> {
        let value = config.get(name)?;
        let seconds = if value.is_nullish() { 0.0 } else { value.to_number()? };
        Duration::try_from_secs_f64(seconds.max(0.0))
            .map_err(|_error| ctx.throw_error(&format!("`{name}` is not a number of seconds")))
    };
    let dial_timeout = seconds("dial_timeout")?;
    let (read, write) = (seconds("read_timeout")?, seconds("write_timeout")?);
    let tls = config.get("tls_config")?;
    let tls = if tls.is_object() { tls } else { ctx.object() };
    let (certificate, key) = (text(&tls, "certificate")?, text(&tls, "private_key")?);
    if certificate.is_empty() != key.is_empty() {
        let blank = if certificate.is_empty() { "certificate" } else { "private key" };
        return Err(ctx.throw_error(&format!("blank {blank}: `tls_config` takes both or neither")));
    }
    let settings = ClientConfig {
        dial_timeout,
        connection_age_max: seconds("max_conn_duration")?,
        proxy: text(&config, "proxy")?,
        insecure: tls.get("insecure_skip_verify")?.is_truthy(),
        certificate: (!certificate.is_empty()).then_some((certificate, key)),
    };
    let id = Host::of(ctx).source.client(&settings).map_err(|problem| ctx.throw_error(&problem))?;
    let timeout = if read + write > Duration::ZERO { dial_timeout + read + write } else { TIMEOUT };
    let client = Client { id, user_agent: text(&config, "user_agent")?, timeout };
    let proto = Host::of(ctx).kept(ctx, "fasthttp client", || {
        let proto = ctx.object();
        ctx.set_functions(&proto, METHODS)?;
        Ok(proto)
    })?;
    ctx.native(&proto, Box::new(client))
}

fn new_request<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    if !(1..=2).contains(&call.count()) {
        return Err(ctx.throw_error("req constructor expects 1 or 2 args"));
    }
    let options = if call.arg(1).is_object() { call.arg(1) } else { ctx.object() };
    let pairs = string_pairs(&options.get("headers")?)?;
    let mut headers: Vec<Header> = pairs.iter().map(|(name, value)| header(name, value)).collect();
    let host = text(&options, "host")?;
    if !host.is_empty() {
        headers.retain(|field| !field.name.eq_ignore_ascii_case("host"));
        headers.push(header("Host", &host));
    }
    if options.get("disable_keep_alive")?.is_truthy() {
        headers.push(header("Connection", "close"));
    }
    let body = options.get("body")?;
    if !(body.is_nullish() || body.is_string() || body.is_object()) {
        return Err(
            ctx.throw_error("req body type not supported: use a string, an ArrayBuffer or a FileStream")
        );
    }
    let response_type = match text(&options, "response_type")?.as_str() {
        "" | "text" => ResponseType::Text,
        "binary" => ResponseType::Binary,
        "none" => ResponseType::None,
        other => {
            return Err(
                ctx.throw_error(&format!("Invalid response type `{other}`: use text, binary or none"))
            );
        }
    };
    let params = RequestParams {
        redirects: Some(0),
        response_type: Some(response_type),
        throws: Some(options.get("throw")?.is_truthy()),
        ..RequestParams::default()
    };
    let request = Prepared {
        url: call.arg(0).to_string()?,
        headers,
        body: form::encode(&body, &[]).map_err(|flaw| flaw.thrown(ctx))?.body,
        params: Rc::new(params),
        specs: RefCell::default(),
        timed_params: OnceCell::new(),
    };
    ctx.native(&ctx.object(), Box::new(request))
}

/// `new FileStream(path)`: a body that is read from disk while it is sent.
fn new_file_stream<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    if call.count() != 1 {
        return Err(ctx.throw_error("one arg required of file path for stream"));
    }
    let path = call.arg(0).to_string()?;
    let full = std::fs::canonicalize(&path).and_then(|full| std::fs::File::open(&full).map(|_file| full));
    let full = full.map_err(|error| ctx.throw_error(&format!("open {path}: {error}")))?;
    let stream = ctx.object();
    stream.define_hidden(form::STREAMED_FILE, ctx.string(&crate::resolve::file_url(&full)))?;
    Ok(stream)
}

fn send<'js>(call: &Call<'js>, method: &str) -> JsResult<Value<'js>> {
    let (ctx, this, request) = (call.ctx(), call.this(), call.arg(0));
    let host = Host::of(ctx);
    host.forbid_init(ctx, "making http requests")?;
    let client = this.opaque::<Client>().ok_or_else(|| ctx.throw_type("this is not a Client"))?;
    let request = request.opaque::<Prepared>().ok_or_else(|| ctx.throw_error("object not a Request"))?;
    let spec = request.spec(host, client, method).map_err(|problem| ctx.throw_error(&problem))?;
    let params = request.timed_params.get_or_init(|| {
        Rc::new(RequestParams { timeout: Some(client.timeout), ..RequestParams::clone(&request.params) })
    });
    let prepared = BuiltRequest { spec, params: Some(Rc::clone(params)), unsent: None };
    let response = exchange::perform(ctx, prepared)?;
    let has_failed = response.opaque::<Response>().is_some_and(|response| response.status() == 0);
    Ok(if has_failed { ctx.null() } else { response })
}

impl Prepared {
    /// The request as this client sends it: made once for each method and scenario.
    fn spec(&self, host: &Host, client: &Client, method: &str) -> Result<Rc<Spec>, String> {
        let scenario = scenario(host);
        let is_it = |spec: &&Rc<Spec>| {
            spec.plan.method == method && spec.client == client.id && *spec.scenario == *scenario
        };
        if let Some(spec) = self.specs.borrow().iter().find(is_it) {
            return Ok(Rc::clone(spec));
        }
        let (url, user) = split_user(&self.url).map_err(Unusable::into_text)?;
        let mut headers = self.headers.clone();
        if !client.user_agent.is_empty() {
            headers.push(header("User-Agent", &client.user_agent));
        }
        let body = if method == "GET" { Body::Empty } else { self.body.clone() };
        let text = url.to_string();
        let plan = RequestPlan {
            weight: NonZeroU32::MIN,
            method: method.to_owned(),
            url,
            pattern: Spec::pattern(&self.url),
            headers,
            body: Spec::body(method, body),
            http: HttpVersion::Http11,
        };
        let spec = Rc::new(Spec {
            plan,
            text,
            name: self.url.clone(),
            user,
            client: client.id,
            scenario,
            prepared: OnceCell::new(),
        });
        self.specs.borrow_mut().push(Rc::clone(&spec));
        Ok(spec)
    }
}

/// `checkstatus(200, response, tags?)`: a check that needs no closure.
fn check_status<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, wanted, response) = (call.ctx(), call.arg(0).to_number()?, call.arg(1));
    let host = Host::of(ctx);
    host.forbid_init(ctx, "using checkstatus")?;
    let status = match response.opaque::<Response>() {
        Some(response) => f64::from(response.status()),
        // A request that failed gives null: its check has failed as well.
        None if response.is_nullish() => 0.0,
        None => return Err(ctx.throw_type("response object not given to checkstatus")),
    };
    let is_ok = status == wanted;
    let name = format!("check status is {wanted}");
    host.with_tags(&string_pairs(&call.arg(2))?, |tags| {
        let tags = Tags { check: Some(&name), ..*tags };
        host.shared.recorder.check(tags.group, &name, is_ok, &tags);
    });
    Ok(ctx.bool(is_ok))
}

fn text(object: &Value<'_>, name: &str) -> JsResult<String> {
    let value = object.get(name)?;
    if value.is_nullish() { Ok(String::new()) } else { value.to_string() }
}

/// The extension waits for ever; a day is as long for a load.
const TIMEOUT: Duration = Duration::from_secs(86_400);
