//! What a script calls: `get`, `post` and the others, down to the request that is sent.

use std::cell::OnceCell;
use std::num::NonZeroU32;
use std::rc::Rc;

use squall_plan::{Header, HttpVersion, RequestPlan};
use url::Url;

use crate::console::Level;
use crate::host::Host;
use crate::step::{ReplyFailure, Spec};
use crate::vm::{Call, Ctx, JsResult, Value};

use super::cache::{self, Asked};
use super::exchange::{self, cookie_header, header};
use super::form;
use super::params::Flaw;
use super::response::Response;
use super::state::{AsyncCall, BuiltRequest, Exchange, RequestParams};
use super::url::Unusable;

pub(super) fn get<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    without_body(call, "GET")
}

pub(super) fn head<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    without_body(call, "HEAD")
}

pub(super) fn post<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with_body(call, "POST")
}

pub(super) fn put<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with_body(call, "PUT")
}

pub(super) fn patch<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with_body(call, "PATCH")
}

pub(super) fn delete<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with_body(call, "DELETE")
}

pub(super) fn options<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with_body(call, "OPTIONS")
}

pub(super) fn request<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let method = method_of(&call.arg(0))?;
    run(call.ctx(), &Asked { method: &method, url: call.arg(1), body: call.arg(2), params: call.arg(3) })
}

fn without_body<'js>(call: &Call<'js>, method: &str) -> JsResult<Value<'js>> {
    let body = call.ctx().undefined();
    run(call.ctx(), &Asked { method, url: call.arg(0), body, params: call.arg(1) })
}

fn with_body<'js>(call: &Call<'js>, method: &str) -> JsResult<Value<'js>> {
    run(call.ctx(), &Asked { method, url: call.arg(0), body: call.arg(1), params: call.arg(2) })
}

/// `http.asyncRequest`: a promise of the response.
pub(super) fn async_request<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let host = Host::of(ctx);
    host.forbid_init(ctx, "making http requests")?;
    let method = method_of(&call.arg(0))?;
    let asked = Asked { method: &method, url: call.arg(1), body: call.arg(2), params: call.arg(3) };
    let (promise, resolve, reject) = ctx.promise()?;
    let prepared = match asked.prepare(ctx)? {
        Ok(prepared) => prepared,
        Err(failure) => {
            match refused(ctx, failure) {
                Ok(response) => resolve.call(&ctx.undefined(), &[&response])?,
                Err(_) => reject.call(&ctx.undefined(), &[&ctx.take_exception()])?,
            };
            return Ok(promise);
        }
    };
    let exchange = Exchange::begin(host, prepared);
    let call = AsyncCall { exchange, resolve: resolve.keep(), reject: reject.keep() };
    host.http.asyncs.borrow_mut().push(call);
    Ok(promise)
}

/// `` http.url`…` ``: the URL, named by its template.
pub(super) fn url<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, parts) = (call.ctx(), call.arg(0));
    let (mut url, mut name) = (String::new(), String::new());
    if parts.is_array() {
        for (idx, part) in parts.elements()?.iter().enumerate() {
            if idx > 0 {
                url.push_str(&call.arg(idx).to_text()?);
                name.push_str("${}");
            }
            url.push_str(&part.to_text()?);
            name.push_str(&part.to_text()?);
        }
    } else {
        url = parts.to_string()?;
        name.clone_from(&url);
    }
    let object = ctx.object();
    object.set("url", ctx.string(&url))?;
    object.set("name", ctx.string(&name))?;
    object.set("clean_url", ctx.string(&url))?;
    object.set("toString", ctx.evaluate("(function() { return this.url; })")?)?;
    Ok(object)
}

fn method_of(value: &Value<'_>) -> JsResult<String> {
    let method = if value.is_nullish() { String::new() } else { value.to_text()?.to_ascii_uppercase() };
    Ok(if method.is_empty() { "GET".to_owned() } else { method })
}

fn run<'js>(ctx: Ctx<'js>, asked: &Asked<'_, 'js>) -> JsResult<Value<'js>> {
    Host::of(ctx).forbid_init(ctx, "making http requests")?;
    match asked.prepare(ctx)? {
        Ok(prepared) => exchange::perform(ctx, prepared),
        Err(failure) => refused(ctx, failure),
    }
}

/// A request that cannot be made: a response with an error, or an exception. As in k6, its own `throw` is not asked.
pub(super) fn refused(ctx: Ctx<'_>, failure: ReplyFailure) -> JsResult<Value<'_>> {
    let shared = &Host::of(ctx).shared;
    let throws = shared.options.throws;
    if !throws {
        shared.console.fields(Level::Warning, "Request Failed", &[("error", &failure.text)]);
    }
    Box::new(Response::refused(failure)).into_value(ctx, throws)
}

impl<'js> Asked<'_, 'js> {
    /// The request, or why it cannot be made.
    pub(super) fn prepare(&self, ctx: Ctx<'js>) -> JsResult<Result<BuiltRequest, ReplyFailure>> {
        let words = match cache::look_up(Host::of(ctx), self)? {
            Ok(known) => return Ok(Ok(known)),
            Err(words) => words,
        };
        let built = self.build(ctx)?;
        if let Ok(prepared) = &built {
            cache::keep(Host::of(ctx), words, prepared);
        }
        Ok(built)
    }

    /// The params, and the body as they want it.
    fn read(&self) -> Result<(RequestParams, form::Encoded), Flaw> {
        let params = RequestParams::read(&self.params)?;
        let encoded = form::encode(&self.body, &params.compression)?;
        Ok((params, encoded))
    }

    fn build(&self, ctx: Ctx<'js>) -> JsResult<Result<BuiltRequest, ReplyFailure>> {
        let host = Host::of(ctx);
        let (params, encoded) = match self.read() {
            Ok(read) => read,
            Err(Flaw::Thrown(thrown)) => return Err(thrown),
            Err(Flaw::Bad(text)) => return Ok(Err(ReplyFailure { code: 0, text })),
        };
        let (text, name) = match self.url.as_text() {
            Some(text) => (text.to_owned(), None),
            None if self.url.is_object() && !self.url.get("clean_url")?.is_undefined() => {
                (self.url.get("url")?.to_string()?, Some(self.url.get("name")?.to_string()?))
            }
            None => {
                let text = format!("invalid URL: '{}' is not a string", self.url.to_string()?);
                return Ok(Err(ReplyFailure { code: INVALID_URL_CODE, text }));
            }
        };
        let tag = params.tags.iter().find(|(key, _)| key == "name").map(|(_, value)| value.clone());
        let name = tag.or(name);
        let ((url, user), unsent) = match split_user(&text) {
            Ok(parts) => (parts, None),
            Err(Unusable::Unsent(failure)) => ((nowhere(), None), Some(failure)),
            Err(Unusable::Malformed(why)) => {
                let text = format!("invalid URL: {why}");
                return Ok(Err(ReplyFailure { code: INVALID_URL_CODE, text }));
            }
        };
        let text = shown(text, &url, user.is_some(), params.auth.as_deref());
        let name = name.unwrap_or_else(|| text.clone());
        let plan = RequestPlan {
            weight: NonZeroU32::MIN,
            method: self.method.to_owned(),
            pattern: Spec::pattern(&name),
            headers: headers(host, &url, &params, &encoded, user.as_ref()),
            url,
            body: Spec::body(self.method, encoded.body),
            http: params.http.unwrap_or_else(|| http_version(host)),
        };
        let spec =
            Spec { plan, name, text, scenario: scenario(host), user, client: 0, prepared: OnceCell::new() };
        let params = self.params.is_object().then(|| Rc::new(params));
        Ok(Ok(BuiltRequest { spec: Rc::new(spec), params, unsent }))
    }
}

pub(crate) fn scenario(host: &Host) -> Rc<str> {
    host.scenario.borrow().as_ref().map_or_else(|| Rc::from(""), |scenario| Rc::clone(&scenario.name))
}

/// The version of HTTP of the scenario, or of what runs outside of one.
fn http_version(host: &Host) -> HttpVersion {
    host.scenario.borrow().as_ref().map_or(host.shared.options.http, |scenario| scenario.http)
}

/// What a request that is never sent has in place of a URL of HTTP.
fn nowhere() -> Url {
    Url::parse("about:blank").expect("this is a URL")
}

/// The URL without user information, and that information.
pub(crate) fn split_user(text: &str) -> Result<(Url, Option<(String, String)>), Unusable> {
    let mut url = super::url::parse(text)?;
    if url.username().is_empty() && url.password().is_none() {
        return Ok((url, None));
    }
    let decoded = |part: &str| form::percent_decoded(part);
    let user = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
    // Both are allowed by the schemes checked above.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_fragment(None);
    Ok((url, Some(user)))
}

/// The URL as tags show it: as typed, credentials masked, and left out where a digest proves them.
fn shown(text: String, url: &Url, has_user: bool, auth: Option<&str>) -> String {
    let rest = &url[url::Position::BeforeHost..];
    match auth {
        _ if !has_user => text,
        Some("digest") => format!("{}://{rest}", url.scheme()),
        _ => format!("{}://****:****@{rest}", url.scheme()),
    }
}

fn headers(
    host: &Host,
    url: &Url,
    params: &RequestParams,
    encoded: &form::Encoded,
    user: Option<&(String, String)>,
) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::with_capacity(params.headers.len() + 4);
    let has = |name: &str| params.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !has("user-agent") && !host.shared.options.user_agent.is_empty() {
        headers.push(header("User-Agent", &host.shared.options.user_agent));
    }
    let is_sent = |(name, value): &&(String, String)| match name.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" | "trailer" => false,
        "user-agent" => !value.is_empty(),
        _ => true,
    };
    headers.extend(params.headers.iter().filter(is_sent).map(|(name, value)| header(name, value)));
    if let Some(content_type) = encoded.content_type.as_ref().filter(|_| !has("content-type")) {
        headers.push(header("Content-Type", content_type));
    }
    if let Some(coding) = encoded.coding.as_ref().filter(|_| !has("content-encoding")) {
        headers.push(header("Content-Encoding", coding));
    }
    let wants_basic = params.auth.as_deref().is_none_or(|auth| auth == "basic");
    if let Some((name, password)) = user.filter(|_| wants_basic && !has("authorization")) {
        headers.push(header("Authorization", &form::basic_authorization(name, password)));
    }
    let cookie = match &params.jar {
        Some(jar) => cookie_header(&jar.borrow(), url, &params.cookies),
        None => cookie_header(&host.jar.borrow(), url, &params.cookies),
    };
    add_cookies(&mut headers, cookie);
    // In addition to what the script itself says of its connection.
    if host.shared.options.closes_connections {
        headers.retain(|header| !header.name.eq_ignore_ascii_case("connection") || header.value != "close");
        headers.push(header("Connection", "close"));
    }
    headers
}

/// Adds cookies to those that the script wrote as a header itself.
pub(crate) fn add_cookies(headers: &mut Vec<Header>, cookie: Option<String>) {
    let Some(pairs) = cookie else { return };
    match headers.iter_mut().find(|header| header.name.eq_ignore_ascii_case("cookie")) {
        Some(own) => own.value.push_str(&format!("; {pairs}")),
        None => headers.push(header("Cookie", &pairs)),
    }
}

/// k6's `error_code` of a URL that cannot be used.
const INVALID_URL_CODE: u16 = 1020;
