//! What is sent: method, header fields, body, user agents; and what makes an answer a success.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use squall_plan::files::read_text;
use squall_plan::limits::HEADER_FILE_BYTES_MAX;
use squall_plan::rules::parse_header;
use squall_plan::units::parse_weight;
use squall_plan::urls::{Target, basic_authorization};
use squall_plan::{
    Body, Expect, ExpectBody, Header, HttpVersion, OptionProblem, Problems, RequestPlan, Weighted,
};
use url::form_urlencoded;

use crate::args::{ConnectionArgs, HttpArg, RequestArgs};

/// What every request of the rotation has in common.
pub(super) struct Shared {
    method: Option<String>,
    headers: Vec<Header>,
    body: Body,
    versions: Versions,
    /// In rotation; at least one.
    pub user_agents: Vec<Weighted<String>>,
}

impl Shared {
    /// Reads the flags, and the files they name.
    pub(super) fn read(args: &RequestArgs, versions: Versions) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let body = problems.take(body(args)).unwrap_or(Body::Empty);
        let mut headers = problems.take(headers(args)).unwrap_or_default();
        let user_agents = problems.take(user_agents(args, &mut headers)).unwrap_or_default();
        problems.end()?;
        if !args.form.is_empty() && !has(&headers, "content-type") {
            headers.push(header("Content-Type", "application/x-www-form-urlencoded"));
        }
        Ok(Self { method: args.method.clone(), headers, body, versions, user_agents })
    }

    /// Bytes of the body that each request keeps in memory.
    pub(super) fn body_bytes(&self) -> usize {
        if let Body::Bytes(bytes) = &self.body { bytes.len() } else { 0 }
    }

    /// The request to one target. An `Authorization` typed as a header wins over the one of the URL.
    pub(super) fn request(&self, target: Target) -> RequestPlan {
        let by_body = || if self.body == Body::Empty { "GET" } else { "POST" }.to_owned();
        let http = target.http.unwrap_or_else(|| self.versions.of(&target.url));
        let mut headers = self.headers.clone();
        headers.extend(target.authorization.filter(|_| !has(&self.headers, "authorization")));
        RequestPlan {
            weight: target.weight,
            method: target.method.or_else(|| self.method.clone()).unwrap_or_else(by_body),
            pattern: pattern(&target.url),
            url: target.url,
            headers,
            body: self.body.clone(),
            http,
        }
    }
}

/// Which version of HTTP is spoken where a URL does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions {
    tls: HttpVersion,
    plain: HttpVersion,
}

impl Versions {
    /// Reads `--http` and `--h2c`.
    pub(super) fn read(args: &ConnectionArgs) -> Self {
        let asked = match args.http {
            None | Some(HttpArg::Http11) => HttpVersion::Http11,
            Some(HttpArg::Http2) => HttpVersion::Http2,
            Some(HttpArg::Auto) => HttpVersion::Auto,
        };
        Self { tls: asked, plain: if args.h2c.is_some() { HttpVersion::Http2 } else { asked } }
    }

    fn of(self, url: &url::Url) -> HttpVersion {
        if url.scheme() == "https" { self.tls } else { self.plain }
    }
}

/// What makes a response a success.
pub(super) fn expect(args: &RequestArgs) -> Expect {
    let default = Expect::default();
    Expect {
        status: args.expect_status.clone().map_or(default.status, |statuses| statuses.0),
        body: match args.expect_body_bytes {
            Some(bytes) => ExpectBody::Bytes(bytes),
            None if args.expect_same_length => ExpectBody::SameLength,
            None => ExpectBody::Any,
        },
    }
}

/// The row's name in reports: the URL without its query, so that `/item?id=1` and `/item?id=2` share a row.
fn pattern(url: &url::Url) -> String {
    let mut pattern = url.clone();
    pattern.set_query(None);
    pattern.into()
}

fn body(args: &RequestArgs) -> Result<Body, OptionProblem> {
    if let Some(text) = &args.body {
        return Ok(Body::Bytes(text.clone().into_bytes()));
    }
    if let Some(path) = &args.body_file {
        return body_file(path);
    }
    if args.form.is_empty() {
        return Ok(Body::Empty);
    }
    form(&args.form)
}

fn body_file(path: &Path) -> Result<Body, OptionProblem> {
    let file = fs::File::open(path).map_err(|error| OptionProblem::file("--body-file", path, &error))?;
    let metadata = file.metadata().map_err(|error| OptionProblem::file("--body-file", path, &error))?;
    if !metadata.is_file() {
        let message = format!("`{}` for `--body-file` is not a regular file", path.display());
        let help = "it is read for each request, so it must be a file on disk";
        return Err(OptionProblem::of("body-file", message, help));
    }
    Ok(Body::File { path: path.to_owned(), bytes: metadata.len() })
}

fn form(fields: &[String]) -> Result<Body, OptionProblem> {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    for field in fields {
        let (name, value) = field.split_once('=').ok_or_else(|| {
            let message = format!("invalid value `{field}` for `--form`: no `=`");
            OptionProblem::of("form", message, "write a field as `NAME=VALUE`").about(field)
        })?;
        encoded.append_pair(name, value);
    }
    Ok(Body::Bytes(encoded.finish().into_bytes()))
}

/// Header fields in the order in which they were typed, those of `--basic` and `--cookie` behind them.
fn headers(args: &RequestArgs) -> Result<Vec<Header>, Problems> {
    let mut problems = Problems::default();
    let mut headers = Vec::new();
    for text in &args.header {
        let read = match text.strip_prefix('@') {
            Some(path) => headers_of_file(Path::new(path)),
            None => parse_header(text)
                .map(|header| vec![header])
                .map_err(|error| OptionProblem::invalid("--header", text, &error)),
        };
        headers.extend(problems.take(read).into_iter().flatten());
    }
    headers.extend(args.basic.as_ref().and_then(|credentials| problems.take(basic(credentials))));
    if !args.cookie.is_empty() {
        headers.extend(problems.take(cookies(&args.cookie)));
    }
    problems.take(refuse_clashes(&headers));
    problems.end()?;
    Ok(headers)
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

fn basic(credentials: &str) -> Result<Header, OptionProblem> {
    let (user, password) = credentials.split_once(':').ok_or_else(|| {
        let help = "write it as `USER:PASSWORD`; the password may be empty";
        OptionProblem::of("basic", "invalid value for `--basic`: no colon", help)
    })?;
    Ok(header("Authorization", &basic_authorization(user, password)))
}

/// One field for all cookies (RFC 6265 5.4).
fn cookies(cookies: &[String]) -> Result<Header, OptionProblem> {
    let is_bad = |cookie: &&String| !cookie.contains('=') || cookie.chars().any(char::is_control);
    if let Some(bad) = cookies.iter().find(is_bad) {
        let help = "write a cookie as `NAME=VALUE`";
        return Err(OptionProblem::of("cookie", "invalid value for `--cookie`", help).about(bad));
    }
    Ok(header("Cookie", &cookies.join("; ")))
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
fn user_agents(
    args: &RequestArgs,
    headers: &mut Vec<Header>,
) -> Result<Vec<Weighted<String>>, OptionProblem> {
    let typed =
        headers.iter().position(|h| h.name.eq_ignore_ascii_case("user-agent")).map(|idx| headers.remove(idx));
    match (typed, &args.user_agent[..]) {
        (Some(_), [_, ..]) => {
            let message = "`User-Agent` and `--user-agent` were both given";
            Err(OptionProblem::of("user-agent", message, "remove one of them"))
        }
        (Some(header), []) => Ok(vec![Weighted { weight: NonZeroU32::MIN, value: header.value }]),
        (None, []) => Ok(vec![Weighted { weight: NonZeroU32::MIN, value: USER_AGENT.to_owned() }]),
        (None, texts) => texts.iter().map(|text| user_agent(text)).collect(),
    }
}

/// `[WEIGHT@]TEXT`.
fn user_agent(text: &str) -> Result<Weighted<String>, OptionProblem> {
    let bad = |error| OptionProblem::invalid("--user-agent", text, &error);
    let (weight, value) = match text.split_once('@') {
        Some((weight, value)) if !weight.is_empty() && weight.bytes().all(|b| b.is_ascii_digit()) => {
            (parse_weight(weight).map_err(bad)?, value)
        }
        _ => (NonZeroU32::MIN, text),
    };
    let value = parse_header(&format!("User-Agent:{value}")).map_err(bad)?.value;
    Ok(Weighted { weight, value })
}

fn has(headers: &[Header], name: &str) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
}

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.to_owned() }
}

const USER_AGENT: &str = concat!("squall/", env!("CARGO_PKG_VERSION"));
