//! Plain requests: where they go, what is sent, and what makes a response a success.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::form_urlencoded;

use super::timing::Timing;
use super::{connection, thresholds};
use crate::files::{read_text, read_text_from};
use crate::limits::{
    BODY_LINES_BYTES_MAX, HEADER_FILE_BYTES_MAX, PREPARED_REQUEST_COUNT_MAX, URLS_FILE_BYTES_MAX,
};
use crate::options::table::{
    BASIC, BODY, BODY_FILE, BODY_LINES, COOKIE, EXPECT_BODY_BYTES, EXPECT_SAME_LENGTH, EXPECT_STATUS, FOLLOW,
    FORM, H2C, HEADER, HTTP, METHOD, SOURCE, TIMEOUT, URLS_FILE, USER_AGENT,
};
use crate::options::values::HeaderSource;
use crate::options::{LoadType, ReadContext, Reading};
use crate::rules::parse_header;
use crate::urls::{Target, parse_list, parse_target};
use crate::{
    Body, ConnectionPolicy, Expect, ExpectBody, Header, HttpLoad, HttpVersion, Load, LoadSpec, Network,
    OptionProblem, PlanError, PortablePlan, Problems, RequestPlan, Segment, TlsPolicy, TlsVersions, Weighted,
    What, When, validate_prepared_bytes,
};

/// The plan of plain requests.
///
/// # Errors
/// All that is wrong with its options.
pub fn http(spec: &LoadSpec, context: ReadContext<'_>) -> Result<PortablePlan, Problems> {
    let mut given = Reading::new(LoadType::Http, spec, context);
    let timeout = given.or_default(&TIMEOUT);
    let timing = Timing::read(&mut given);
    let when = given.take(timing.when());
    plan(given, (timing, when), timeout, What::Http)
}

/// The plan of a load that is described by its requests; `what`: what it makes of them.
pub(super) fn plan(
    mut given: Reading<'_>,
    (timing, when): (Timing, Option<When>),
    timeout: Duration,
    what: impl FnOnce(HttpLoad) -> What,
) -> Result<PortablePlan, Problems> {
    let spec = given.spec();
    let targets = targets(&mut given);
    let shared = Shared::read(&mut given);
    let expect = expect(&mut given);
    let follow_count_max = given.one(&FOLLOW).unwrap_or(0);
    let mut connections = connection::connection_policy(&mut given);
    let network = connection::network(&mut given);
    let tls = connection::tls_policy(&mut given);
    let (sources, thresholds) = (given.all(&SOURCE), thresholds(&mut given));
    let name = default_name(&targets);
    let requests = given.take(shared.requests(&targets));
    if let Some(requests) = &requests {
        given.take(refuse_without_effect(given.kind(), &connections, requests));
        given.take(refuse_with_http3(&network, &tls, requests));
        let is_quic = requests.iter().any(RequestPlan::may_be_http3);
        connections.quic = connection::quic_policy(&mut given, is_quic, "http 3");
    }
    let user_agents = shared.user_agents;
    let load = requests.zip(when).map(|(requests, when)| Load {
        name: given.kind().name().to_owned(),
        what: what(HttpLoad { requests, user_agents, follow_count_max, expect, timeout }),
        when,
        stop: timing.stop(),
        connections,
        network,
        tls,
        segment: Segment::WHOLE,
    });
    // What is not whole has its problems, and others would only follow.
    let load = load.filter(|_| given.is_clean());
    let plan = load.and_then(|load| given.take(PortablePlan::of_load(spec, name, load, &timing, thresholds)));
    given.finish(plan.map(|plan| PortablePlan { sources, ..plan }))
}

/// Refuses what belongs to a version of HTTP that no request can be in.
fn refuse_without_effect(
    kind: LoadType,
    connections: &ConnectionPolicy,
    requests: &[RequestPlan],
) -> Result<(), OptionProblem> {
    let may_have_streams =
        |request: &RequestPlan| request.http == HttpVersion::Http2 || request.may_be_http3();
    let refused = |option, message, help| Err(OptionProblem::of(option, message, help).with(VERSIONS));
    if requests.is_empty() {
        return Ok(());
    }
    if connections.stream_count.get() > 1 && !requests.iter().any(may_have_streams) {
        let help = match kind {
            LoadType::WebSocket => {
                "over HTTP/1.1 a connection is one WebSocket; add `--http 2` or `--http 3`"
            }
            _ => "use HTTP/2: `--http 2` with TLS, `--h2c` without; for HTTP/1.1 there is `--pipeline N`",
        };
        return refused("streams", "`--streams` needs HTTP/2, but all requests use HTTP/1.1", help);
    }
    if connections.pipeline_depth.get() > 1
        && requests.iter().all(|request| matches!(request.http, HttpVersion::Http2 | HttpVersion::Http3))
    {
        let help = "for concurrent requests on an HTTP/2 or HTTP/3 connection use `--streams N`";
        return refused("pipeline", "`--pipeline` needs HTTP/1.1, but no request uses it", help);
    }
    Ok(())
}

/// Refuses what HTTP/3 cannot do.
fn refuse_with_http3(
    network: &Network,
    tls: &TlsPolicy,
    requests: &[RequestPlan],
) -> Result<(), OptionProblem> {
    let mut spoken = requests.iter().filter(|request| request.http == HttpVersion::Http3).peekable();
    if spoken.peek().is_none() {
        return Ok(());
    }
    let refused = |option, message: &str, help| Err(OptionProblem::of(option, message, help).with(VERSIONS));
    if let Some(request) = spoken.find(|request| request.url.scheme() != "https") {
        let message = format!("HTTP/3 needs TLS, and `{}` is not an https URL", request.url);
        return refused("http", &message, "write `https://`, or use `--http 2` or `--http 1.1`");
    }
    if network.proxy.is_some() {
        let help = "remove `--proxy`, or use another version of HTTP";
        return refused("proxy", "HTTP/3 cannot go through an HTTP proxy: QUIC is not TCP", help);
    }
    if network.unix_socket.is_some() {
        let help = "remove `--unix-socket`, or use another version of HTTP";
        return refused("unix-socket", "HTTP/3 cannot go through a Unix socket: QUIC needs UDP", help);
    }
    if tls.versions == TlsVersions::Tls12 {
        let message = "HTTP/3 needs TLS 1.3, the only version that QUIC carries";
        return refused("tls", message, "remove `--tls 1.2`");
    }
    Ok(())
}

/// What says which version of HTTP is spoken.
const VERSIONS: &[&str] = &["http", "h2c", "URL", "urls"];

/// The first target's host and unusual port, which say most in a list of saved runs.
fn default_name(targets: &[Target]) -> String {
    let Some(Target { url, .. }) = targets.first() else { return "http".to_owned() };
    let host = url.host_str().unwrap_or("http");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// All targets; those of the command line first.
fn targets(given: &mut Reading<'_>) -> Vec<Target> {
    let kind = given.kind();
    let mut targets = given.arguments(|text| target(kind, text));
    // Standard input is read once: not in vain.
    let file = given.one(&URLS_FILE).filter(|_| given.spec().is_whole);
    targets.extend(file.and_then(|path| given.take(listed(&path))).into_iter().flatten());
    if given.spec().arguments.is_empty() && !given.has(&URLS_FILE.option) {
        let help = match kind {
            LoadType::WebSocket => "add one, such as `squall ws ws://localhost:8080/ws/echo`",
            LoadType::Stream => "add one, such as `squall stream http://localhost:8080/sse`",
            _ => "add one, such as `squall http://localhost:8080/`",
        };
        given.take(Err::<(), _>(OptionProblem::of("URL", "no URL given", help)));
    }
    targets
}

fn target(kind: LoadType, text: &str) -> Result<Target, OptionProblem> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let help = "a number needs a flag: `-c` connections, `-n` requests, `-d` time, `-r` rate";
        return Err(OptionProblem::of("URL", format!("`{text}` is not a URL"), help));
    }
    // A WebSocket begins as a request (RFC 6455 3).
    let as_http = match kind {
        LoadType::WebSocket => text.replacen("wss://", "https://", 1).replacen("ws://", "http://", 1),
        _ => text.to_owned(),
    };
    parse_target(&as_http).map_err(|error| OptionProblem::invalid("URL", text, &error))
}

fn listed(path: &Path) -> Result<Vec<Target>, OptionProblem> {
    let text = text_of(path).map_err(|error| OptionProblem::file("--urls", path, &error))?;
    parse_list(&text).map_err(|list| {
        let place = format!("{}:{}:{}", path.display(), list.line, list.error.column);
        OptionProblem::of("urls", format!("{place}: {}", list.error.reason), list.error.help)
    })
}

/// The whole text of a file, or of stdin for `-`, up to the limit.
fn text_of(path: &Path) -> io::Result<String> {
    match path == Path::new("-") {
        true => read_text_from(io::stdin(), URLS_FILE_BYTES_MAX),
        false => read_text(path, URLS_FILE_BYTES_MAX),
    }
}

/// What every request of the rotation has in common.
struct Shared {
    method: Option<String>,
    headers: Vec<Header>,
    /// Sent in rotation; at least one.
    bodies: Vec<Body>,
    /// The version of HTTP over TLS and over plain TCP, where a URL does not say.
    versions: (HttpVersion, HttpVersion),
    /// In rotation; at least one.
    user_agents: Vec<Weighted<String>>,
}

impl Shared {
    /// Reads the options, and the files they name.
    fn read(given: &mut Reading<'_>) -> Self {
        let bodies = bodies(given);
        let mut headers = headers(given);
        let user_agents = user_agents(given, &mut headers);
        if given.has(&FORM.option) && !has(&headers, "content-type") {
            headers.push(header("Content-Type", "application/x-www-form-urlencoded"));
        }
        let asked = given.one(&HTTP).unwrap_or_default();
        let plain = if given.one(&H2C).is_some() { HttpVersion::Http2 } else { asked };
        Self { method: given.one(&METHOD), headers, bodies, versions: (asked, plain), user_agents }
    }

    fn requests(&self, targets: &[Target]) -> Result<Vec<RequestPlan>, OptionProblem> {
        let in_memory = |body: &Body| if let Body::Bytes(bytes) = body { bytes.len() } else { 0 };
        let body_bytes = self.bodies.iter().map(in_memory).sum();
        validate_prepared_bytes(body_bytes, targets.len()).map_err(|error| super::impossible(&error))?;
        let count = targets.len().saturating_mul(self.bodies.len());
        if count > PREPARED_REQUEST_COUNT_MAX {
            return Err(super::impossible(&PlanError::TooManyRequests { count }));
        }
        let all = targets.iter().flat_map(|target| self.bodies.iter().map(|body| self.request(target, body)));
        Ok(all.collect())
    }

    /// The request to one target. An `Authorization` typed as a header wins over the one of the URL.
    fn request(&self, target: &Target, body: &Body) -> RequestPlan {
        let by_body = || if *body == Body::Empty { "GET" } else { "POST" }.to_owned();
        let (tls, plain) = self.versions;
        let by_scheme = if target.url.scheme() == "https" { tls } else { plain };
        let http = target.http.unwrap_or(by_scheme);
        let mut headers = self.headers.clone();
        headers.extend(target.authorization.clone().filter(|_| !has(&self.headers, "authorization")));
        RequestPlan {
            weight: target.weight,
            method: target.method.clone().or_else(|| self.method.clone()).unwrap_or_else(by_body),
            pattern: pattern(&target.url),
            url: target.url.clone(),
            headers,
            body: body.clone(),
            http,
        }
    }
}

/// What makes a response a success.
fn expect(given: &mut Reading<'_>) -> Expect {
    let default = Expect::default();
    let body = given.one(&EXPECT_BODY_BYTES).map(ExpectBody::Bytes);
    let by_default = if given.is_set(&EXPECT_SAME_LENGTH) { ExpectBody::SameLength } else { ExpectBody::Any };
    Expect { status: given.one(&EXPECT_STATUS).unwrap_or(default.status), body: body.unwrap_or(by_default) }
}

/// The row's name in reports: the URL without its query, so that `/item?id=1` and `/item?id=2` share a row.
fn pattern(url: &url::Url) -> String {
    let mut pattern = url.clone();
    pattern.set_query(None);
    pattern.into()
}

fn bodies(given: &mut Reading<'_>) -> Vec<Body> {
    match given.one(&BODY_LINES) {
        Some(path) => given.take(body_lines(&path)).unwrap_or_else(|| vec![Body::Empty]),
        None => vec![body(given)],
    }
}

/// A body for each line that is not blank.
fn body_lines(path: &Path) -> Result<Vec<Body>, OptionProblem> {
    let text = read_text(path, BODY_LINES_BYTES_MAX)
        .map_err(|error| OptionProblem::file("--body-lines", path, &error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let bodies: Vec<Body> = lines.map(|line| Body::Bytes(line.as_bytes().to_vec())).collect();
    if bodies.is_empty() {
        let message = format!("`{}` for `--body-lines` has no line that is not blank", path.display());
        return Err(OptionProblem::of("body-lines", message, "write one body per line"));
    }
    Ok(bodies)
}

fn body(given: &mut Reading<'_>) -> Body {
    let (text, path, fields) = (given.one(&BODY), given.one(&BODY_FILE), given.all(&FORM));
    let file = path.and_then(|path| given.take(body_file(path)));
    let form = || {
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(&fields);
        Body::Bytes(encoded.finish().into_bytes())
    };
    let text = text.map(|text| Body::Bytes(text.into_bytes()));
    text.or(file).unwrap_or_else(|| if fields.is_empty() { Body::Empty } else { form() })
}

fn body_file(path: PathBuf) -> Result<Body, OptionProblem> {
    let metadata = fs::File::open(&path).and_then(|file| file.metadata());
    let metadata = metadata.map_err(|error| OptionProblem::file("--body-file", &path, &error))?;
    if !metadata.is_file() {
        let message = format!("`{}` for `--body-file` is not a regular file", path.display());
        let help = "it is read for each request, so it must be a file on disk";
        return Err(OptionProblem::of("body-file", message, help));
    }
    Ok(Body::File { path, bytes: metadata.len() })
}

/// Header fields in the order in which they were typed, those of `--basic` and `--cookie` behind them.
fn headers(given: &mut Reading<'_>) -> Vec<Header> {
    let mut headers = Vec::new();
    for source in given.all(&HEADER) {
        match source {
            HeaderSource::Field(header) => headers.push(header),
            HeaderSource::File(path) => {
                headers.extend(given.take(headers_of_file(&path)).into_iter().flatten());
            }
        }
    }
    headers.extend(given.one(&BASIC));
    let cookies = given.all(&COOKIE);
    if !cookies.is_empty() {
        // One field for all cookies (RFC 6265 5.4).
        headers.push(header("Cookie", &cookies.join("; ")));
    }
    given.take(refuse_clashes(&headers));
    headers
}

fn headers_of_file(path: &Path) -> Result<Vec<Header>, OptionProblem> {
    let text = read_text(path, HEADER_FILE_BYTES_MAX)
        .map_err(|error| OptionProblem::file("--header", path, &error))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(idx, line)| {
            parse_header(line).map_err(|error| {
                let place = format!("{}:{}:{}", path.display(), idx + 1, error.column);
                OptionProblem::of("header", format!("{place}: {}", error.reason), error.help)
            })
        })
        .collect()
}

/// Fields that squall makes itself from the body and the URL, and fields that may stand only once.
fn refuse_clashes(headers: &[Header]) -> Result<(), OptionProblem> {
    for name in ["Content-Length", "Transfer-Encoding"] {
        if has(headers, name) {
            let message = format!("`{name}` is derived from the body");
            return Err(OptionProblem::of("header", message, "remove the header"));
        }
    }
    for name in ["Host", "Authorization", "Content-Type", "User-Agent"] {
        if headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).count() > 1 {
            return Err(OptionProblem::of("header", format!("`{name}` was given twice"), "give it once"));
        }
    }
    Ok(())
}

/// `--user-agent`, or the one typed as a header (which moves here), or ours.
fn user_agents(given: &mut Reading<'_>, headers: &mut Vec<Header>) -> Vec<Weighted<String>> {
    let agents = given.all(&USER_AGENT);
    let typed =
        headers.iter().position(|h| h.name.eq_ignore_ascii_case("user-agent")).map(|idx| headers.remove(idx));
    if typed.is_some() && given.has(&USER_AGENT.option) {
        let message = "`User-Agent` and `--user-agent` were both given";
        let problem = OptionProblem::of("user-agent", message, "remove one of them");
        given.take(Err::<(), _>(problem));
    }
    match (typed, agents.is_empty()) {
        (Some(header), _) => vec![Weighted::once(header.value)],
        (None, true) => vec![Weighted::once(USER_AGENT_DEFAULT.to_owned())],
        (None, false) => agents,
    }
}

fn has(headers: &[Header], name: &str) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
}

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.to_owned() }
}

const USER_AGENT_DEFAULT: &str = concat!("squall/", env!("CARGO_PKG_VERSION"));
