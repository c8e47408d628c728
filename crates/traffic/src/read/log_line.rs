//! What a line of an access log says: its variables, and the request that they make.

use super::http1::set_target;
use super::time;
use crate::{Field, Record, Request, Response, Scheme, Version, key_of};

/// What a variable holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Var {
    Ignored,
    Client,
    /// `address:port`, which is a connection.
    ClientPort,
    /// What identifies a client better than its address.
    Session,
    /// `10/Oct/2000:13:55:36 -0700`, maybe in brackets.
    CommonTime,
    IsoTime,
    /// Whatever it looks like: ISO 8601, common, or since the epoch.
    AnyTime,
    /// `06/Feb/2009:12:14:14.655`, or `2009-02-06 12:14:14`, in an unspecified zone.
    LocalTime,
    /// `2009-02-06`, with `12:14:14` in another column.
    Date,
    TimeOfDay,
    /// Seconds since the epoch, with milliseconds.
    EpochSeconds,
    EpochMillis,
    EpochMicros,
    /// `GET /path HTTP/1.1`
    RequestLine,
    Method,
    /// Path, maybe with the query.
    Target,
    Query,
    Protocol,
    Status,
    Bytes,
    Scheme,
    Host,
    Port,
    Header(String),
    Cookie(String),
    /// How long it took, in seconds, milliseconds or microseconds.
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// One of several times that add up; less than 0 where there was none.
    SecondsMore,
    Connection,
    Body,
}

/// What a line says.
#[derive(Default)]
pub(super) struct Line {
    time_ns: u64,
    /// Day and time of day, where they are apart.
    date: String,
    time_of_day: String,
    /// The time has no fraction.
    pub(super) is_whole_second: bool,
    took_ns: u64,
    client: String,
    session: String,
    connection: String,
    /// The request is no HTTP, such as TLS sent to a plain port.
    pub(super) is_other: bool,
    /// The log's own word for it: `ws` or `wss` instead of a scheme.
    pub(super) is_web_socket: bool,
    pub(super) has_no_zone: bool,
    query: String,
    port: String,
    status: u16,
    body_bytes: u64,
    pub(super) record: Record,
}

impl Line {
    /// Puts together what is in several places of a line.
    pub(super) fn finish(&mut self, logs_start: bool) -> Result<(), String> {
        if !self.date.is_empty() {
            self.time_ns = time::of_iso(&format!("{}T{}Z", self.date, self.time_of_day))?;
            self.is_whole_second = self.time_ns.is_multiple_of(SECOND_NS);
        }
        if self.time_ns == 0 {
            return Err("the line has no time".to_owned());
        }
        // Of whole seconds it is subtracted when they are spread: bursts at their beginning would be made up.
        if !logs_start && !self.is_whole_second {
            self.time_ns = self.time_ns.saturating_sub(self.took_ns);
        }
        let request = &mut self.record.request;
        if !self.query.is_empty() && !request.target.contains('?') {
            request.target = format!("{}?{}", request.target, self.query.trim_start_matches('?'));
        }
        if !self.port.is_empty() && !request.authority.is_empty() && !request.authority.contains(':') {
            request.authority = format!("{}:{}", request.authority, self.port);
        }
        let default_port = if request.scheme == Scheme::Https { ":443" } else { ":80" };
        if let Some(host) = request.authority.strip_suffix(default_port) {
            request.authority = host.to_owned();
        }
        request.drop_connection_fields();
        let agent = request.header("user-agent").unwrap_or_default();
        self.record.session = match self.session.as_str() {
            "" => key_of(&[self.client.as_bytes(), b" ", agent].concat()),
            session => key_of(session.as_bytes()),
        };
        if !self.connection.is_empty() {
            self.record.connection = key_of(self.connection.as_bytes());
        }
        self.record.time_ns = self.time_ns;
        self.record.response = (100..1000).contains(&self.status).then(|| Response {
            status: self.status,
            version: request.version,
            body_bytes: self.body_bytes,
            latency_ns: self.took_ns,
            ..Response::default()
        });
        Ok(())
    }

    /// Takes what a variable holds in this line.
    pub(super) fn set(&mut self, var: &Var, text: String) -> Result<(), String> {
        let is_absent = text == "-" || text.is_empty();
        if is_absent && !matches!(var, Var::CommonTime | Var::IsoTime | Var::EpochSeconds) {
            return Ok(());
        }
        let request = &mut self.record.request;
        match var {
            Var::Ignored => {}
            Var::Client => self.client = text,
            Var::ClientPort => {
                self.client = text.rsplit_once(':').map_or(text.as_str(), |(address, _)| address).to_owned();
                self.connection = text;
            }
            Var::Session => self.session = text,
            Var::Connection => self.connection = text,
            Var::CommonTime => {
                self.time_ns = time::of_common_log(text.trim_matches(['[', ']']))?;
                self.is_whole_second = true;
            }
            Var::IsoTime => {
                self.time_ns = time::of_iso(&text)?;
                self.is_whole_second = self.time_ns.is_multiple_of(SECOND_NS);
            }
            Var::AnyTime => {
                self.time_ns = time::of_any(&text)?;
                self.is_whole_second = self.time_ns.is_multiple_of(SECOND_NS);
            }
            Var::LocalTime => {
                self.time_ns = time::of_local(&text)?;
                self.has_no_zone = true;
            }
            Var::Date => self.date = text,
            Var::TimeOfDay => self.time_of_day = text,
            Var::EpochSeconds => self.time_ns = time::of_seconds(number(&text)?)?,
            Var::EpochMillis => self.time_ns = time::of_seconds(number(&text)? / 1e3)?,
            Var::EpochMicros => self.time_ns = time::of_seconds(number(&text)? / 1e6)?,
            // The line is one of the log; what the client sent was no HTTP.
            Var::RequestLine => self.is_other |= set_request_line(request, &text).is_err(),
            Var::Method => request.method = token(&text)?,
            Var::Target => set_target(request, &path(&text)?),
            Var::Query => self.query = path_text(&text)?,
            Var::Protocol => request.version = Version::of(&text),
            Var::Status => {
                self.status = text.parse().map_err(|_| format!("`{}` is not a status", time::cut(&text)))?;
            }
            Var::Bytes => self.body_bytes = text.parse().unwrap_or(0),
            Var::Scheme => {
                self.is_web_socket = matches!(text.as_str(), "ws" | "wss");
                request.scheme = Scheme::of(&text).unwrap_or_default();
            }
            Var::Host => request.authority = path_text(&text)?,
            Var::Port => self.port = text,
            Var::Header(name) => request.headers.push(Field::new(name.clone(), header_value(&text))),
            Var::Cookie(name) => {
                request.headers.push(Field::new("Cookie", header_value(&format!("{name}={text}"))));
            }
            Var::Seconds => self.took_ns = span(&text, 1e9)?,
            Var::Millis => self.took_ns = span(&text, 1e6)?,
            Var::Micros => self.took_ns = span(&text, 1e3)?,
            Var::Nanos => self.took_ns = span(&text, 1.0)?,
            Var::SecondsMore => self.took_ns += span(&text, 1e9)?,
            Var::Body => request.body = text.into_bytes(),
        }
        Ok(())
    }
}

fn set_request_line(request: &mut Request, text: &str) -> Result<(), String> {
    let refused = || format!("`{}` is not a request line", time::cut(text));
    let (method, rest) = text.split_once(' ').ok_or_else(refused)?;
    let (target, version) = match rest.rsplit_once(' ') {
        Some((target, version)) if version.starts_with("HTTP/") => (target, version),
        _ => (rest, "HTTP/1.0"),
    };
    request.method = token(method)?;
    request.version = Version::of(version);
    set_target(request, &path(target)?);
    Ok(())
}

fn token(text: &str) -> Result<String, String> {
    match squall_plan::urls::is_token(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not a method", time::cut(text))),
    }
}

fn path(text: &str) -> Result<String, String> {
    let text = path_text(text)?;
    match text.starts_with('/') || text == "*" || text.contains("://") {
        true => Ok(text),
        false => Err(format!("`{}` is not a path", time::cut(&text))),
    }
}

/// Text that can stand in a request line.
fn path_text(text: &str) -> Result<String, String> {
    match text.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` has a space or a control character", time::cut(text))),
    }
}

fn header_value(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect()
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{}` is not a number", time::cut(text)))
}

fn span(text: &str, unit_ns: f64) -> Result<u64, String> {
    Ok((number(text)?.clamp(0.0, 86_400e9 / unit_ns) * unit_ns) as u64)
}

/// `user_agent` is `User-Agent`.
pub(super) fn header_name(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    name.split('_').map(word).collect::<Vec<_>>().join("-")
}

pub(super) const SECOND_NS: u64 = 1_000_000_000;
