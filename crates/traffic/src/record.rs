//! One recorded request, with its response where that was recorded: what every format becomes.

use squall_plan::urls::is_token;

use std::borrow::Cow;
use std::io::{self, Read};

use crate::limits::LOADED_BODY_BYTES_MAX;
use crate::message::flaw_of;
use crate::{Place, RecordedMessage, Spooled};

/// A request and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// When the request began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The client's connection; 0 where the recording does not say.
    pub connection: u64,
    /// The client's session: within it order is kept, and values seen in responses return in later requests.
    pub session: u64,
    /// What was sent.
    pub request: Request,
    /// What came back.
    pub response: Option<Response>,
    /// Where it is in the file that it was read from.
    pub place: Place,
}

/// What was sent. Content-Length and the fields of one connection are not among the headers: they follow from the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Method as sent.
    pub method: String,
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host and port as in the URL; empty where the recording does not say.
    pub authority: String,
    /// Path and query, beginning with `/`; or `*`.
    pub target: String,
    /// HTTP version it was sent with.
    pub version: Version,
    /// Fields in order, duplicates kept.
    pub headers: Vec<Field>,
    /// Body as sent: content codings are left on, transfer codings are off.
    pub body: Vec<u8>,
    /// The middle of a body that is too large for memory; `body` is then what is before and behind it.
    pub spooled: Option<Spooled>,
    /// Length of a body that was not kept; else 0.
    pub lost_body_bytes: u64,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// HTTP version of the response.
    pub version: Version,
    /// Fields in order, duplicates kept.
    pub headers: Vec<Field>,
    /// The body, where the recording has it: as transferred, or decoded (then `headers` lack Content-Encoding).
    pub body: Option<Vec<u8>>,
    /// Length of the body in bytes, known even where the body is not.
    pub body_bytes: u64,
    /// CRC-32 of the body; 0 where it is not known.
    pub body_check: u32,
    /// From the beginning of the request to the end of the response, in nanoseconds; 0: unknown.
    pub latency_ns: u64,
    /// What was said on the WebSocket that it opened, in order.
    pub messages: Vec<RecordedMessage>,
    /// When each event of its stream came, in nanoseconds after the beginning of the request.
    pub event_times_ns: Vec<u64>,
}

/// A header field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Name as recorded.
    pub name: String,
    /// Value; any bytes but CR, LF and NUL.
    pub value: Vec<u8>,
}

/// How the URL begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum Scheme {
    /// Without TLS.
    #[default]
    Http,
    /// Over TLS.
    Https,
}

/// HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl Field {
    /// A field of text.
    pub fn new(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// Whether its name is a token (or that of a pseudo-header) and its value stays on one line.
    pub fn is_sendable(&self) -> bool {
        is_token(self.name.strip_prefix(':').unwrap_or(&self.name))
            && !self.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
    }

    /// Whether its name is this one, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Scheme {
    /// `http` or `https`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The scheme of that name.
    pub fn of(text: &str) -> Option<Self> {
        match () {
            () if text.eq_ignore_ascii_case("http") => Some(Self::Http),
            () if text.eq_ignore_ascii_case("https") => Some(Self::Https),
            () => None,
        }
    }
}

impl Version {
    /// As in a request line: `HTTP/1.1`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        }
    }

    /// Reads what the tools write: `HTTP/1.1`, `h2`, `http/2.0`, `h3`; anything else is HTTP/1.1.
    pub fn of(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "http/1.0" => Self::Http10,
            "h2" | "http/2" | "http/2.0" => Self::Http2,
            "h3" | "http/3" | "http/3.0" => Self::Http3,
            _ => Self::Http11,
        }
    }
}

impl Request {
    /// The value of the first field of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        find(&self.headers, name)
    }

    /// `https://host:port/path?query`; without the host where that is unknown.
    pub fn url(&self) -> String {
        match self.authority.is_empty() {
            true => self.target.clone(),
            false => format!("{}://{}{}", self.scheme.text(), self.authority, self.target),
        }
    }

    /// What of it no HTTP message can hold, so that neither a request nor a file can be made of it; `None`: nothing.
    ///
    /// A request line is taken apart by spaces, a head by line ends: with one inside a part, the rest would be taken for another part.
    pub fn flaw(&self) -> Option<&'static str> {
        let is_line = |text: &str| !text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ');
        match () {
            () if !is_token(&self.method) => Some("a method that is not a token"),
            () if !is_line(&self.target) => Some("a path with a space or a control character"),
            () if !is_line(&self.authority) => Some("a host with a space or a control character"),
            () if !self.headers.iter().all(Field::is_sendable) => Some("a header that cannot be sent"),
            () => None,
        }
    }

    /// Keeps what may be sent again: no pseudo-headers, and no fields that belong to a connection or follow from the body.
    pub fn drop_connection_fields(&mut self) {
        self.headers.retain(|field| !is_of_connection(&field.name) && !field.is("host"));
    }

    /// Forgets the body, but not its length.
    pub fn drop_body(&mut self) {
        self.lost_body_bytes += self.body_bytes();
        (self.body, self.spooled) = (Vec::new(), None);
    }

    /// Replaces the whole body.
    pub fn set_body(&mut self, body: Vec<u8>) {
        (self.body, self.spooled) = (body, None);
    }

    /// Bytes of the body that are there.
    pub fn body_bytes(&self) -> u64 {
        self.body.len() as u64 + self.spooled.as_ref().map_or(0, |spooled| spooled.bytes)
    }

    /// Changes the request, with a mark in place of the spooled part of its body, so that the part keeps its place.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(spooled) = &self.spooled {
            let at = spooled.at.min(self.body.len());
            self.body.splice(at..at, SPOOLED_MARK.bytes());
        }
        let changed = change(self);
        if let Some(spooled) = &mut self.spooled {
            match memchr::memmem::find(&self.body, SPOOLED_MARK.as_bytes()) {
                Some(at) => {
                    spooled.at = at;
                    self.body.drain(at..at + SPOOLED_MARK.len());
                }
                // Something else took its place.
                None => self.spooled = None,
            }
        }
        changed
    }

    /// Bytes of what is in it, roughly.
    pub fn bytes(&self) -> usize {
        let fields: usize = self.headers.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
        let body = usize::try_from(self.body_bytes()).unwrap_or(usize::MAX);
        (self.method.len() + self.authority.len() + self.target.len() + fields).saturating_add(body)
    }
}

impl Response {
    /// The value of the first field of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        find(&self.headers, name)
    }

    /// Whether it opened a WebSocket.
    pub const fn is_web_socket(&self) -> bool {
        self.status == 101
    }

    /// What of it no server can have answered; `None`: nothing.
    pub fn flaw(&self) -> Option<&'static str> {
        match self.messages.is_empty() || self.is_web_socket() {
            true => flaw_of(&self.messages),
            false => Some("WebSocket messages after an answer that opened no WebSocket"),
        }
    }

    /// Sets the body, its length and its checksum.
    pub fn set_body(&mut self, body: Vec<u8>) {
        self.body_bytes = body.len() as u64;
        self.body_check = body_check(&body);
        self.body = Some(body);
    }

    /// Forgets the body, but not its length and checksum.
    pub fn drop_body(&mut self) {
        self.body = None;
    }
}

impl Record {
    /// Whether its response opened a WebSocket.
    pub fn opens_web_socket(&self) -> bool {
        self.response.as_ref().is_some_and(Response::is_web_socket)
    }

    /// Bytes that it takes in memory, roughly: small records take several times what is in them.
    pub fn bytes(&self) -> usize {
        let request = &self.request;
        let texts = [&request.method, &request.authority, &request.target].map(|text| allocated(text.len()));
        let response = self.response.as_ref().map_or(0, |response| {
            let said: usize = response.messages.iter().map(RecordedMessage::memory_bytes).sum();
            let times = allocated(size_of_val(&response.event_times_ns[..]));
            let body = allocated(response.body.as_ref().map_or(0, Vec::len));
            fields_bytes(&response.headers) + body + said + times
        });
        let request =
            texts.iter().sum::<usize>() + fields_bytes(&request.headers) + allocated(request.body.len());
        size_of::<Self>() + request + response
    }

    /// The record with all of its body in memory, for what cannot do with less; a body that is too large for that is left out.
    ///
    /// # Errors
    /// When the spooled part of the body cannot be read.
    pub fn loaded(&self) -> io::Result<Cow<'_, Self>> {
        match self.request.spooled {
            None => Ok(Cow::Borrowed(self)),
            Some(_) => self.clone().into_loaded().map(Cow::Owned),
        }
    }

    /// The same.
    ///
    /// # Errors
    /// As [`Record::loaded`].
    pub fn into_loaded(mut self) -> io::Result<Self> {
        let request = &mut self.request;
        if request.spooled.is_some() && request.body_bytes() > LOADED_BODY_BYTES_MAX {
            request.drop_body();
        } else if let Some(spooled) = request.spooled.take() {
            let mut middle = Vec::new();
            spooled.reader().read_to_end(&mut middle)?;
            let at = spooled.at.min(request.body.len());
            request.body.splice(at..at, middle);
        }
        Ok(self)
    }

    /// Whether its host is one of these (`*.example` for all below) and its path begins with one of these; an empty list wants all.
    pub fn is_to(&self, hosts: &[String], paths: &[String]) -> bool {
        let authority = &self.request.authority;
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        let host_fits = |wanted: &String| match wanted.strip_prefix("*.") {
            Some(domain) => host == domain || host.ends_with(&format!(".{domain}")),
            None => host.eq_ignore_ascii_case(wanted) || authority.eq_ignore_ascii_case(wanted),
        };
        (hosts.is_empty() || hosts.iter().any(host_fits))
            && (paths.is_empty() || paths.iter().any(|path| self.request.target.starts_with(path.as_str())))
    }

    /// The URL without what varies between requests of the same kind: the query, and numbers and ids in the path.
    pub fn pattern(&self) -> String {
        let path = self.request.target.split(['?', '#']).next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect();
        let path = parts.join("/");
        match self.request.authority.is_empty() {
            true => path,
            false => format!("{}://{}{path}", self.request.scheme.text(), self.request.authority),
        }
    }
}

/// Replaces the spooled part of a body while the body is changed: characters for private use, which no grammar knows.
const SPOOLED_MARK: &str = "\u{E5C1}\u{F0A7}\u{E3B9}\u{F5D2}";

fn fields_bytes(fields: &[Field]) -> usize {
    let texts: usize =
        fields.iter().map(|field| allocated(field.name.len()) + allocated(field.value.len())).sum();
    allocated(size_of_val(fields)) + texts
}

/// What an allocation of so many bytes takes: with its header, rounded up.
const fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16) }
}

/// Numbers, UUIDs and long hexadecimal texts name one thing among many.
fn is_id(part: &str) -> bool {
    let is_hex = part.len() >= 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !part.is_empty() && (part.bytes().all(|byte| byte.is_ascii_digit()) || is_hex)
}

/// RFC 9110 7.6.1, RFC 9113 8.2.2, and what follows from the body.
fn is_of_connection(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "content-length",
        "upgrade",
        "te",
        "http2-settings",
        "trailer",
    ];
    name.starts_with(':') || NAMES.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// The value of the first field of that name.
fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|field| field.is(name)).map(|field| field.value.as_slice())
}

/// The checksum by which bodies are compared: CRC-32 (IEEE), never 0 for a body that is known.
pub fn body_check(body: &[u8]) -> u32 {
    crc32fast::hash(body).max(1)
}

/// A number for a text that names a connection or a session: FNV-1a, never 0.
pub fn key_of(text: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_leave_out_what_varies() {
        for (target, pattern) in [
            ("/users/42/orders?page=3", "http://h/users/{id}/orders"),
            ("/a/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "http://h/a/{id}"),
            ("/", "http://h/"),
            ("/v1/cafe", "http://h/v1/cafe"),
        ] {
            let request = Request { authority: "h".into(), target: target.into(), ..Request::default() };
            assert_eq!(Record { request, ..Record::default() }.pattern(), pattern);
        }
    }

    #[test]
    fn versions_are_read_as_the_tools_write_them() {
        for (text, version) in [
            ("HTTP/1.1", Version::Http11),
            ("http/2.0", Version::Http2),
            ("h3", Version::Http3),
            ("HTTP/1.0", Version::Http10),
            ("unknown", Version::Http11),
            ("", Version::Http11),
        ] {
            assert_eq!(Version::of(text), version, "{text}");
        }
    }
}
