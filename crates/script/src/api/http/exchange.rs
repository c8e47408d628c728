//! One request on its way: sent, redirected, authenticated, until there is a response for the script.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use squall_plan::{Body, Header, RequestPlan};
use url::Url;

use crate::bodies::Held;
use crate::console::Level;
use crate::cookies::{self, Jar};
use crate::host::Host;
use crate::metrics::{HttpSample, HttpTags, Tags};
use crate::step::{Reply, ReplyFailure, Request, Spec};
use crate::vm::{Ctx, JsResult, Value};

use super::digest::ChallengedRequest;
use super::response::{self, Response, Sent, failed};
use super::state::{BuiltRequest, Exchange, RequestParams, ResponseType};
use super::url::{OTHER_CODE, Unusable};

/// What a reply leads to.
pub(super) enum Next {
    /// Another request was sent.
    Again,
    /// This is the response.
    Done(Box<Response>),
}

impl Exchange {
    /// Sends a request. One that no transport takes fails at once.
    pub(super) fn begin(host: &Host, BuiltRequest { spec, params, unsent }: BuiltRequest) -> Self {
        let exchange = Self {
            token: host.http.take_token(),
            asked: Rc::clone(&spec),
            spec,
            params,
            begin_ns: host.now_ns.get(),
            redirect_count: 0,
            has_answered_digest: false,
        };
        match unsent {
            None => exchange.send(host),
            failure => {
                let reply = Reply { token: exchange.token, failure, ..Reply::default() };
                host.inbox.borrow_mut().push(reply);
            }
        }
        exchange
    }

    fn send(&self, host: &Host) {
        host.outbox.borrow_mut().push(Request {
            token: self.token,
            spec: Rc::clone(&self.spec),
            timeout: self.time_left(host),
            body_bytes_max: match self.response_type(host) {
                ResponseType::None => 0,
                _ => host.shared.options.body_bytes_max,
            },
            expects: match self.params.as_ref().and_then(|params| params.callback.as_ref()) {
                Some(callback) => callback.ranges(),
                None => host.http.callback.borrow().ranges(),
            },
        });
    }

    /// Redirects and proofs of who asks share the time of the request that led to them.
    fn time_left(&self, host: &Host) -> Duration {
        let timeout = self.params.as_ref().and_then(|params| params.timeout).unwrap_or(TIMEOUT);
        timeout.saturating_sub(Duration::from_nanos(host.now_ns.get().saturating_sub(self.begin_ns)))
    }

    fn response_type(&self, host: &Host) -> ResponseType {
        let asked = self.params.as_ref().and_then(|params| params.response_type);
        asked.unwrap_or(if host.shared.options.discards_bodies {
            ResponseType::None
        } else {
            ResponseType::Text
        })
    }

    /// Takes the reply: counts it, keeps its cookies, and follows where it leads.
    pub(super) fn on_reply(&mut self, host: &Host, reply: Reply) -> Next {
        let target = self.redirect(host, &reply);
        let reply = match &target {
            Target::Unreadable(failure) => {
                Reply { failure: Some(failure.clone()), token: reply.token, ..Reply::default() }
            }
            _ => reply,
        };
        let digest = self.digest_answer(&reply);
        let is_expected = expectation(host, self.params.as_deref(), reply.status);
        self.record(host, &reply, if digest.is_some() { Some(true) } else { is_expected });
        let set_cookies = response::fields(&reply.head, "set-cookie");
        for text in set_cookies {
            if let Some(cookie) = cookies::parse(&text) {
                self.with_jar(host, |jar| jar.set(&self.spec.plan.url, cookie));
            }
        }
        if let Some(authorization) = digest {
            self.has_answered_digest = true;
            let mut spec = copy_of(&self.spec);
            replace_header(&mut spec.plan.headers, "Authorization", authorization);
            self.spec = Rc::new(spec);
            self.send(host);
            return Next::Again;
        }
        let mut reply = match target {
            Target::Url(url) => {
                self.redirect_count += 1;
                self.spec = Rc::new(self.redirected(host, reply.status, *url));
                self.send(host);
                return Next::Again;
            }
            Target::Foreign(text, failure) => {
                let mut spec = Spec { name: self.name_of(&text), text, ..copy_of(&self.spec) };
                self.redirected_method(reply.status).clone_into(&mut spec.plan.method);
                self.spec = Rc::new(spec);
                let reply = Reply { failure: Some(failure), token: reply.token, ..Reply::default() };
                self.record(host, &reply, expectation(host, self.params.as_deref(), 0));
                reply
            }
            Target::None | Target::Unreadable(_) => reply,
        };
        let held = hold(host, &mut reply);
        if let Some(failure) = reply.failure.as_ref().filter(|_| !self.throws(host)) {
            let text = failed(&self.spec.plan.method, &self.spec.text, &failure.text);
            host.shared.console.fields(Level::Warning, "Request Failed", &[("error", &text)]);
        }
        let response_type = self.response_type(host);
        let sent = Sent { asked: Rc::clone(&self.asked), last: Rc::clone(&self.spec) };
        let bodies = (host.http.bodies.clone(), held);
        let body_bytes_max = host.shared.options.body_bytes_max;
        Next::Done(Box::new(Response::new(reply, sent, response_type, bodies, body_bytes_max)))
    }

    /// Whether a failure is to be thrown.
    pub(super) fn throws(&self, host: &Host) -> bool {
        let asked = self.params.as_ref().and_then(|params| params.throws);
        asked.unwrap_or(host.shared.options.throws)
    }

    fn with_jar(&self, host: &Host, change: impl FnOnce(&mut Jar)) {
        match self.params.as_ref().and_then(|params| params.jar.as_ref()) {
            Some(jar) => change(&mut jar.borrow_mut()),
            None => change(&mut host.jar.borrow_mut()),
        }
    }

    /// Counts a request that has ended.
    fn record(&self, host: &Host, reply: &Reply, is_expected: Option<bool>) {
        let (error_code, error) = match &reply.failure {
            Some(failure) => (failure.code, failure.text.as_str()),
            None if reply.status >= 400 => (1000 + reply.status, ""),
            None => (0, ""),
        };
        let ip = if host.shared.options.system_tags.has("ip") {
            reply.remote.map(|remote| remote.ip().to_string()).unwrap_or_default()
        } else {
            String::new()
        };
        let http = HttpTags {
            method: &self.spec.plan.method,
            url: &self.spec.name,
            name: &self.spec.name,
            status: Some(reply.status),
            subproto: None,
            proto: reply.proto,
            tls_version: reply.tls.map_or("", |(version, _)| version),
            error_code,
            error,
            expected: is_expected,
            ip: &ip,
        };
        let own: &[(String, String)] = self.params.as_ref().map_or(&[], |params| &params.tags);
        host.with_tags(own, |tags| {
            let tags = Tags { http: Some(&http), ..*tags };
            let is_failed = is_expected.map(|is| !is);
            host.shared.recorder.http(&HttpSample { timing: &reply.timing, is_failed, tags: &tags });
        });
    }

    /// Where a redirect that is to be followed leads.
    fn redirect(&self, host: &Host, reply: &Reply) -> Target {
        if !matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
            return Target::None;
        }
        let location = response::fields(&reply.head, "location").into_iter().next();
        let Some(location) = location.filter(|location| !location.is_empty()) else { return Target::None };
        let asked = self.params.as_ref().and_then(|params| params.redirects);
        let asked = asked.or(host.shared.options.max_redirects);
        if self.redirect_count >= asked.unwrap_or(REDIRECT_COUNT_MAX) {
            if asked.is_none() {
                // k6 counts the request that it does not make.
                let text = format!(
                    "Stopped after {} redirects and returned the redirection; pass {{ redirects: n }} in request params or set global maxRedirects to silence this",
                    REDIRECT_COUNT_MAX + 1
                );
                host.shared.console.fields(Level::Warning, &text, &[("url", &self.asked.text)]);
            }
            return Target::None;
        }
        Target::read(&self.spec.plan.url, &location)
    }

    /// The request that follows a redirect, as Go's client makes it.
    fn redirected(&self, host: &Host, status: u16, url: Url) -> Spec {
        let old = &self.spec;
        let keeps = keeps_request(status);
        let is_same_host = url.host_str() == old.plan.url.host_str();
        let mut headers = old.plan.headers.clone();
        headers.retain(|Header { name, .. }| {
            let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
            !is("cookie")
                && !is("referer")
                && (!is("host") || is_same_host)
                && (keeps || !name.to_ascii_lowercase().starts_with("content-"))
                && (is_same_host || !is("authorization") && !is("www-authenticate"))
        });
        headers.extend(self.referer(&url).map(|value| header("Referer", &value)));
        let own = self.params.as_ref().map_or(&[][..], |params| &params.cookies);
        self.with_jar(host, |jar| {
            headers.extend(cookie_header(jar, &url, own).map(|pairs| header("Cookie", &pairs)));
        });
        let text = url.to_string();
        let name = self.name_of(&text);
        let plan = RequestPlan {
            method: self.redirected_method(status).to_owned(),
            pattern: Spec::pattern(&name),
            headers,
            body: if keeps { old.plan.body.clone() } else { Body::Empty },
            url,
            ..old.plan
        };
        Spec { plan, name, text, ..copy_of(old) }
    }

    /// The method of the request that follows a redirect.
    fn redirected_method(&self, status: u16) -> &str {
        match self.spec.plan.method.as_str() {
            method if method == "HEAD" || keeps_request(status) => method,
            _ => "GET",
        }
    }

    /// The name of a request to where a redirect leads: a name that was given is kept, a URL that stands for one is not.
    fn name_of(&self, text: &str) -> String {
        let has_name = self.asked.name != self.asked.text;
        if has_name { self.spec.name.clone() } else { text.to_owned() }
    }

    /// Where a redirect to `url` comes from: the script's own word, or the URL before; never from TLS to what has none.
    fn referer(&self, url: &Url) -> Option<String> {
        let mut fields = self.asked.plan.headers.iter();
        let own = fields.find(|field| field.name.eq_ignore_ascii_case("referer"));
        let from = || self.spec.plan.url.to_string();
        let is_allowed = self.spec.plan.url.scheme() == "http" || url.scheme() == "https";
        is_allowed.then(|| own.map_or_else(from, |field| field.value.clone()))
    }

    /// The answer to a digest challenge, where the script wants one.
    fn digest_answer(&self, reply: &Reply) -> Option<String> {
        let params = self.params.as_ref()?;
        if reply.status != 401 || params.auth.as_deref() != Some("digest") || self.has_answered_digest {
            return None;
        }
        let user = self.spec.user.as_ref()?;
        let plan = &self.spec.plan;
        let request = ChallengedRequest { method: &plan.method, url: &plan.url, body: &plan.body };
        let challenges = response::fields(&reply.head, "www-authenticate");
        challenges.iter().find_map(|challenge| request.authorization(challenge, user))
    }
}

/// Where a response leads.
enum Target {
    /// Nowhere, or too far.
    None,
    Url(Box<Url>),
    /// To a URL that cannot be requested, and why.
    Foreign(String, ReplyFailure),
    /// The `Location` is no URL.
    Unreadable(ReplyFailure),
}

impl Target {
    fn read(base: &Url, location: &str) -> Self {
        let failure = |text| ReplyFailure { code: OTHER_CODE, text };
        let unreadable = |why: &str| {
            Self::Unreadable(failure(format!("failed to parse Location header {location:?}: {why}")))
        };
        if let Some(why) = super::url::flaw(location) {
            return unreadable(&format!("parse {location:?}: {why}"));
        }
        let absolute = match super::url::scheme_of(location) {
            Some(_) => location.to_owned(),
            None if location.starts_with("//") => format!("{}:{location}", base.scheme()),
            None => base.join(location).map_or_else(|_| location.to_owned(), String::from),
        };
        match super::url::parse(&absolute) {
            Ok(url) => Self::Url(Box::new(url)),
            Err(Unusable::Unsent(failure)) => Self::Foreign(absolute, failure),
            Err(Unusable::Malformed(why)) => unreadable(&why),
        }
    }
}

/// Whether a status is expected; `None`: there is no callback.
fn expectation(host: &Host, params: Option<&RequestParams>, status: u16) -> Option<bool> {
    match params.and_then(|params| params.callback.as_ref()) {
        Some(callback) => callback.expects(status),
        None => host.http.callback.borrow().expects(status),
    }
}

/// Whether the request that follows a redirect is the same one.
fn keeps_request(status: u16) -> bool {
    matches!(status, 307 | 308)
}

/// A spec with the same content that was not prepared yet.
fn copy_of(spec: &Spec) -> Spec {
    Spec {
        plan: spec.plan.clone(),
        text: spec.text.clone(),
        name: spec.name.clone(),
        scenario: Rc::clone(&spec.scenario),
        user: spec.user.clone(),
        client: spec.client,
        prepared: std::cell::OnceCell::new(),
    }
}

/// The value of the `Cookie` header for a URL: those of the params, then the jar's.
pub(crate) fn cookie_header(jar: &Jar, url: &Url, own: &[(String, String, bool)]) -> Option<String> {
    let replaced = |name: &str| own.iter().any(|(known, _, replaces)| *replaces && known == name);
    let jar_pairs = jar.for_url(url).into_iter().filter(|(name, _)| !replaced(name));
    let own_pairs = own.iter().map(|(name, value, _)| (name.as_str(), value.as_str()));
    let pairs: Vec<String> =
        own_pairs.chain(jar_pairs).map(|(name, value)| format!("{name}={}", cookie_value(value))).collect();
    (!pairs.is_empty()).then(|| pairs.join("; "))
}

/// A value as Go writes it: in quotes where it has a comma or a space.
fn cookie_value(value: &str) -> Cow<'_, str> {
    let is_quoted = value.contains([' ', ',']) && !value.starts_with('"');
    if is_quoted { format!("\"{value}\"").into() } else { value.into() }
}

/// A header field.
pub(crate) fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.to_owned() }
}

fn replace_header(headers: &mut Vec<Header>, name: &str, value: String) {
    headers.retain(|header| !header.name.eq_ignore_ascii_case(name));
    headers.push(Header { name: name.to_owned(), value });
}

/// Sends a request and waits for its response.
pub(crate) fn perform<'js>(ctx: Ctx<'js>, prepared: BuiltRequest) -> JsResult<Value<'js>> {
    let host = Host::of(ctx);
    let mut exchange = Exchange::begin(host, prepared);
    loop {
        match take_reply(&host.inbox, exchange.token) {
            None => host.wait(ctx, None)?,
            Some(reply) => {
                if let Next::Done(response) = exchange.on_reply(host, reply) {
                    return response.into_value(ctx, exchange.throws(host));
                }
            }
        }
    }
}

/// Takes the reply to a request out of the inbox.
pub(super) fn take_reply(inbox: &RefCell<Vec<Reply>>, token: u32) -> Option<Reply> {
    let mut inbox = inbox.borrow_mut();
    let idx = inbox.iter().position(|reply| reply.token == token)?;
    Some(inbox.swap_remove(idx))
}

/// How many redirects k6 follows.
const REDIRECT_COUNT_MAX: u32 = 10;

/// k6's own time-out of a request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Counts the body that a script is about to hold; one that is too much is dropped, and the request has failed.
fn hold(host: &Host, reply: &mut Reply) -> Option<Held> {
    match host.http.bodies.hold(reply.body.len()) {
        Ok(held) => Some(held),
        Err(text) => {
            (reply.status, reply.body) = (0, Vec::new());
            reply.failure = Some(ReplyFailure { code: 1000, text });
            None
        }
    }
}
