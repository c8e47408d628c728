//! HAR 1.2 as browsers and proxies write it (and bend it): entries streamed, each with its connection, page and timings.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::json_items::JsonItems;
use super::multipart::{self, Part};
use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::HEAD_BYTES_MAX;
use crate::{
    Field, Peer, Place, Problem, Record, RecordedKind, RecordedMessage, Request, Response, Scheme, Version,
    key_of,
};

/// The reader.
pub(super) struct Har {
    items: JsonItems,
    notes: Notes,
    buffer: Vec<u8>,
    /// Any entry had an Authorization or Cookie field: Chrome leaves them out unless asked.
    has_credentials: bool,
    entry_count: u64,
    /// When the last entry began.
    last_ns: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    started_date_time: String,
    #[serde(default)]
    time: Option<f64>,
    request: HarRequest,
    #[serde(default)]
    response: HarResponse,
    #[serde(default)]
    connection: Option<Value>,
    #[serde(default, rename = "serverIPAddress")]
    server_ip: Option<String>,
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<Value>,
    #[serde(default, rename = "_webSocketMessages")]
    messages: Option<Vec<HarMessage>>,
    #[serde(default, rename = "_eventSourceMessages")]
    events: Option<Vec<HarEvent>>,
}

/// As Chrome's developer tools export a message of a WebSocket.
#[derive(Deserialize, Default)]
#[serde(default)]
struct HarMessage {
    /// `send`, `receive` or `error`.
    #[serde(rename = "type")]
    by: String,
    /// In seconds since the epoch.
    time: f64,
    opcode: f64,
    /// Binary data is in Base64.
    data: String,
}

/// The same for an event of an event stream; its content is in the body, too.
#[derive(Deserialize, Default)]
#[serde(default)]
struct HarEvent {
    time: f64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HarRequest {
    method: String,
    url: String,
    http_version: String,
    headers: Vec<Named>,
    post_data: Option<PostData>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HarResponse {
    status: i64,
    http_version: String,
    headers: Vec<Named>,
    content: Content,
    body_size: Option<i64>,
    #[serde(rename = "_error")]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PostData {
    mime_type: String,
    params: Option<Vec<Param>>,
    text: Option<String>,
    encoding: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Param {
    name: String,
    #[serde(deserialize_with = "as_text")]
    value: Option<String>,
    file_name: Option<String>,
    content_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Content {
    size: Option<i64>,
    text: Option<String>,
    encoding: Option<String>,
}

/// `{"name": .., "value": ..}`, or a pair as some tools write.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Object {
        name: String,
        #[serde(default)]
        value: Option<String>,
    },
    Pair(String, String),
}

/// Some browsers take JSON bodies apart: what is no text there is written as JSON.
fn as_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

impl Har {
    pub(super) fn new(input: Input) -> Self {
        let items = JsonItems::new(input, &["log", "entries"]);
        Self {
            items,
            notes: Notes::default(),
            buffer: Vec::new(),
            has_credentials: false,
            entry_count: 0,
            last_ns: time::ANY_NS,
        }
    }

    /// The record of an entry; `None` when it stands for no request on the network.
    fn record(&mut self, place: Place) -> Result<Option<Record>, String> {
        let entry: Entry = serde_json::from_slice(&self.buffer).map_err(|error| json_reason(&error))?;
        if entry.is_web_socket() && entry.messages.is_none() {
            let url = &entry.request.url;
            let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next());
            self.notes.web_socket(host.unwrap_or_default(), place);
            return Ok(None);
        }
        if let Some(why) = left_out(&entry) {
            self.notes.add(why, place);
            return Ok(None);
        }
        let time_ns = match entry.started_date_time.trim() {
            "" => {
                self.notes.add("entries without a time: each a millisecond after the one before it", place);
                self.last_ns + 1_000_000
            }
            text => time::of_iso(text)?,
        };
        self.last_ns = time_ns;
        let connection = entry.connection_key();
        let (messages, events) = (entry.messages, entry.events);
        let Some(mut request) = self.request(entry.request, place)? else { return Ok(None) };
        request.headers.retain(|field| !field.is("sec-websocket-key") && !field.is("sec-websocket-version"));
        let mut response = response(entry.response, entry.time);
        if let Some(messages) = messages {
            let response = response.get_or_insert_default();
            // Of some WebSockets browsers write no answer to the opening request.
            response.status = 101;
            for message in messages {
                match message.read(time_ns)? {
                    Some(message) => response.messages.push(message),
                    None => self.notes.add("messages of WebSockets that cannot be sent left out", place),
                }
            }
            if let Some(flaw) = response.flaw() {
                return Err(flaw.to_owned());
            }
        }
        if let Some(response) = &mut response {
            let times = events.iter().flatten().map(|event| after_ns(event.time, time_ns));
            response.event_times_ns = times.collect();
        }
        Ok(Some(Record { time_ns, connection, session: 1, request, response, place }))
    }

    fn request(&mut self, har: HarRequest, place: Place) -> Result<Option<Request>, String> {
        let url = http_url(&har.url);
        let scheme = url.split(':').next().unwrap_or_default();
        if Scheme::of(scheme).is_none() && scheme.len() < url.len() {
            self.notes.add(&format!("{}: URLs left out", time::cut(scheme)), place);
            return Ok(None);
        }
        let field_count = har.headers.len();
        let mut headers = fields(har.headers);
        if headers.len() < field_count {
            self.notes.add("header fields that no request can carry: sent without", place);
        }
        if headers.iter().map(|field| field.name.len() + field.value.len()).sum::<usize>() > HEAD_BYTES_MAX {
            return Err(format!("the head is larger than {HEAD_BYTES_MAX} bytes"));
        }
        let body = match har.post_data {
            Some(data) => self.body(data, &mut headers, place)?,
            None => Vec::new(),
        };
        let version = Version::of(&har.http_version);
        let mut request = Request { method: har.method, version, headers, body, ..Request::default() };
        http1::set_url(&mut request, &url)?;
        if request.method.is_empty() || !squall_plan::urls::is_token(&request.method) {
            return Err(format!("bad method `{}`", time::cut(&request.method)));
        }
        self.has_credentials |= ["authorization", "cookie"].iter().any(|name| request.header(name).is_some());
        request.drop_connection_fields();
        Ok(Some(request))
    }

    /// Text wins over parameters: it is what was sent.
    fn body(&mut self, data: PostData, headers: &mut Vec<Field>, place: Place) -> Result<Vec<u8>, String> {
        let PostData { mime_type, params, text, encoding } = data;
        if let Some(text) = text.filter(|text| !text.is_empty() || params.is_none()) {
            if encoding.as_deref() == Some("base64") {
                return STANDARD
                    .decode(text.trim())
                    .map_err(|error| format!("postData is not valid base64: {error}"));
            }
            if text.contains('\u{fffd}') {
                self.notes.add("request bodies with bytes that the browser could not write as text", place);
            }
            return Ok(text.into_bytes());
        }
        let params = params.unwrap_or_default();
        if !mime_type.starts_with("multipart/") {
            return Ok(urlencoded(&params));
        }
        if params.iter().any(|param| param.file_name.is_some()) {
            self.notes.add("files of multipart bodies, which HAR does not hold: they are sent empty", place);
        }
        multipart::set_content_type(headers);
        Ok(multipart(params))
    }
}

impl Source for Har {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        loop {
            let mut buffer = std::mem::take(&mut self.buffer);
            let place = self.items.next(&mut buffer);
            self.buffer = buffer;
            let Some(place) = place? else {
                if self.entry_count > 0 && !self.has_credentials {
                    self.has_credentials = true;
                    self.notes.add(
                        "no Cookie and no Authorization anywhere: exported without secrets",
                        Place::default(),
                    );
                }
                return Ok(None);
            };
            match self.record(place) {
                Ok(Some(record)) => {
                    self.entry_count += 1;
                    return Ok(Some(record));
                }
                Ok(None) => {}
                // One entry says nothing about the others: browsers write some that stand for no request.
                Err(reason) => {
                    self.notes.add(&format!("entries that cannot be read left out: {reason}"), place);
                }
            }
        }
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.items.bytes_read()
    }
}

impl Entry {
    /// Chrome lists the messages, others give the scheme of the URL, or the header fields alone.
    fn is_web_socket(&self) -> bool {
        let is_key = |field: &Named| {
            let (Named::Object { name, .. } | Named::Pair(name, _)) = field;
            name.eq_ignore_ascii_case("sec-websocket-key")
        };
        let url = &self.request.url;
        self.messages.is_some()
            || url.starts_with("ws:")
            || url.starts_with("wss:")
            || self.request.headers.iter().any(is_key)
    }

    fn connection_key(&self) -> u64 {
        let id = match &self.connection {
            Some(Value::String(id)) if !id.is_empty() && id != "0" => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => return 0,
        };
        // Ids are those of one process; the server's address distinguishes connections of different origins.
        let host = self.server_ip.as_deref().unwrap_or_default();
        key_of(format!("{id}@{host}").as_bytes())
    }
}

impl HarMessage {
    /// The message in a record that began at `begin_ns`; `None`: an error, a ping, or data that is not Base64.
    fn read(self, begin_ns: u64) -> Result<Option<RecordedMessage>, String> {
        let by = match self.by.as_str() {
            "send" => Peer::Client,
            "receive" => Peer::Server,
            _ => return Ok(None),
        };
        let early_ns = begin_ns.saturating_sub(nanoseconds(self.time));
        if self.time > 0.0 && early_ns > EARLY_NS_MAX {
            let early_ms = early_ns / 1_000_000;
            return Err(format!("a WebSocket message {early_ms} ms before the request that opened it"));
        }
        let kind = match RecordedKind::of(self.opcode as u8) {
            Some(kind) => kind,
            None if matches!(self.opcode, PING | PONG | ERROR) => return Ok(None),
            None => return Err(format!("a WebSocket message with the opcode {}", self.opcode)),
        };
        let bytes = match kind {
            RecordedKind::Binary => STANDARD.decode(self.data.trim()).ok(),
            RecordedKind::Text | RecordedKind::Close => Some(self.data.into_bytes()),
        };
        let at_ns = after_ns(self.time, begin_ns);
        Ok(bytes.map(|bytes| match kind {
            RecordedKind::Close => close(at_ns, by, &bytes),
            RecordedKind::Text | RecordedKind::Binary => RecordedMessage { at_ns, by, kind, bytes },
        }))
    }
}

/// A close frame whose data is the code in decimal digits and the reason, as this project writes it; other tools give neither.
fn close(at_ns: u64, by: Peer, data: &[u8]) -> RecordedMessage {
    let text = String::from_utf8_lossy(data);
    let (code, reason) = text.split_once(' ').unwrap_or((&text, ""));
    match code.parse().ok().filter(|code| (1000..5000).contains(code)) {
        Some(code) => RecordedMessage::close(at_ns, by, Some(code), reason),
        None => RecordedMessage::close(at_ns, by, None, ""),
    }
}

/// From seconds since the epoch to nanoseconds after a time.
fn after_ns(seconds: f64, begin_ns: u64) -> u64 {
    nanoseconds(seconds).saturating_sub(begin_ns)
}

fn nanoseconds(seconds: f64) -> u64 {
    ((seconds * 1e6) as u64).saturating_mul(1000)
}

/// Opcodes of what belongs to a connection (RFC 6455 5.5), and what Chrome writes of errors.
const PING: f64 = 9.0;
const PONG: f64 = 10.0;
const ERROR: f64 = -1.0;

/// Browsers have one clock for requests and another for messages.
const EARLY_NS_MAX: u64 = 1_000_000_000;

/// A WebSocket's URL as that of its opening request.
fn http_url(url: &str) -> Cow<'_, str> {
    match url.split_once("://") {
        Some(("ws", rest)) => Cow::Owned(format!("http://{rest}")),
        Some(("wss", rest)) => Cow::Owned(format!("https://{rest}")),
        _ => Cow::Borrowed(url),
    }
}

/// Why an entry stands for no request that can be sent.
fn left_out(entry: &Entry) -> Option<&'static str> {
    let is_cached = match &entry.from_cache {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(_) => true,
    };
    match () {
        () if is_cached => Some("entries served from the browser's cache left out"),
        () if entry.request.method.is_empty() && entry.request.url.is_empty() => {
            Some("entries without a request left out")
        }
        () => None,
    }
}

fn response(har: HarResponse, time_ms: Option<f64>) -> Option<Response> {
    let status = u16::try_from(har.status).ok().filter(|status| (100..1000).contains(status))?;
    if har.error.is_some() {
        return None;
    }
    let latency_ns = time_ms.filter(|time| *time > 0.0).map_or(0, |time| (time * 1e6) as u64);
    let version = Version::of(&har.http_version);
    let mut response =
        Response { status, version, headers: fields(har.headers), latency_ns, ..Response::default() };
    let body = har.content.text.and_then(|text| match har.content.encoding.as_deref() {
        Some("base64") => STANDARD.decode(text.trim()).ok(),
        _ => Some(text.into_bytes()),
    });
    match body {
        Some(body) => {
            // The text is decoded, so the coding that the server applied is not on it any more.
            response.headers.retain(|field| !field.is("content-encoding"));
            response.set_body(body);
        }
        None => {
            let size = har.content.size.filter(|size| *size > 0).or(har.body_size).unwrap_or(0);
            response.body_bytes = u64::try_from(size).unwrap_or(0);
        }
    }
    Some(response)
}

fn fields(named: Vec<Named>) -> Vec<Field> {
    let field = |one: Named| match one {
        Named::Object { name, value } => Field::new(name, value.unwrap_or_default()),
        Named::Pair(name, value) => Field::new(name, value),
    };
    named.into_iter().map(field).filter(is_sendable).collect()
}

/// Pseudo-headers stay here (they are dropped for requests later); what no message can carry does not.
fn is_sendable(field: &Field) -> bool {
    let is_name = squall_plan::urls::is_token(field.name.trim_start_matches(':'));
    is_name && !field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

fn urlencoded(params: &[Param]) -> Vec<u8> {
    // Chrome writes the values as they were sent, that is encoded; others decoded. A percent sign decides.
    let is_encoded = params.iter().any(|param| param.value.as_deref().unwrap_or_default().contains('%'));
    if is_encoded {
        let parts: Vec<String> = params
            .iter()
            .map(|param| format!("{}={}", param.name, param.value.as_deref().unwrap_or_default()))
            .collect();
        return parts.join("&").into_bytes();
    }
    let pairs = params.iter().map(|param| (param.name.as_str(), param.value.as_deref().unwrap_or_default()));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
}

fn multipart(params: Vec<Param>) -> Vec<u8> {
    let part = |param: Param| Part {
        name: param.name,
        file_name: param.file_name,
        content_type: param.content_type,
        content: param.value.unwrap_or_default().into_bytes(),
    };
    multipart::body(&params.into_iter().map(part).collect::<Vec<_>>())
}

/// serde's message without its line and column, which count within the entry.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.line() {
        0 | 1 => text.to_owned(),
        line => format!("{text} (on its line {line})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::Source;
    use super::super::tests::{all, good};
    use super::Har;
    use crate::{Field, Scheme, Version};

    const CHROME: &str = r#"{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"pages":[],"entries":[
      {"_fromCache":"disk","request":{"method":"GET","url":"https://x/cached.js"},"startedDateTime":"2024-05-01T10:00:00.000Z"},
      {"_resourceType":"document","connection":"143","serverIPAddress":"[::1]","startedDateTime":"2024-05-01T10:00:00.250Z","time":12.5,
       "request":{"method":"POST","url":"https://x:8443/a?b=c#frag","httpVersion":"h2",
         "headers":[{"name":":authority","value":"x"},{"name":"Host","value":"x"},{"name":"content-length","value":"3"},{"name":"X-A","value":"1"},{"name":"x-a","value":"2"}],
         "postData":{"mimeType":"application/x-www-form-urlencoded","text":"q=1","params":[{"name":"q","value":"1"}]}},
       "response":{"status":302,"httpVersion":"h2","headers":[{"name":"content-encoding","value":"gzip"}],"content":{"size":2,"text":"b2s=","encoding":"base64"},"redirectURL":"/y"}},
      {"request":{"method":"GET","url":"data:text/plain,hi"},"response":{},"startedDateTime":"2024-05-01T10:00:01Z"},
      {"request":{"method":"GET","url":"wss://x/socket"},"startedDateTime":"2024-05-01T10:00:01Z"}
    ]}}"#;

    #[test]
    fn a_browsers_entry_becomes_a_request_that_can_be_sent() {
        let records = good(Format::Har, CHROME.into());
        assert_eq!(records.len(), 1);
        let request = &records[0].request;
        assert_eq!(
            (request.scheme, request.authority.as_str(), request.target.as_str()),
            (Scheme::Https, "x:8443", "/a?b=c")
        );
        assert_eq!(request.headers, [Field::new("X-A", "1"), Field::new("x-a", "2")]);
        assert_eq!((request.version, request.body.as_slice()), (Version::Http2, &b"q=1"[..]));
        let response = records[0].response.as_ref().unwrap();
        assert_eq!((response.status, response.latency_ns), (302, 12_500_000));
        assert_eq!(response.body.as_deref(), Some(&b"ok"[..]));
        assert_eq!(response.headers, []);
    }

    #[test]
    fn broken_entries_are_noted_and_the_rest_is_read() {
        let text = CHROME.replace("2024-05-01T10:00:00.250Z", "soon").replace("\"data:text", "\"http://x/");
        let mut har = Har::new(crate::input::of_bytes(text.as_bytes()));
        let record = har.next().unwrap().unwrap();
        assert_eq!((record.place.record, har.next()), (3, Ok(None)));
        let notes: Vec<_> =
            har.notes().iter().map(|(text, count, place)| (text.to_owned(), count, place.line)).collect();
        let expected = [
            ("WebSocket connections to x left out", 1, 9),
            ("entries served from the browser's cache left out", 1, 2),
            ("entries that cannot be read left out: `soon` is not an ISO 8601 time", 1, 3),
            ("no Cookie and no Authorization anywhere: exported without secrets", 1, 0),
        ];
        assert_eq!(notes, expected.map(|(text, count, line)| (text.to_owned(), count, line)));
        let cut = &CHROME.as_bytes()[..700];
        let (_, problems) = all(Format::Har, cut.to_vec());
        assert!(problems[0].is_fatal && problems[0].reason.contains("ends"), "{problems:?}");
    }

    #[test]
    fn messages_that_no_websocket_carried_are_named() {
        let read = |messages: &str| {
            let text = format!(
                r#"{{"log":{{"entries":[{{"startedDateTime":"2024-05-01T10:00:00Z","request":{{"method":"GET","url":"ws://x/"}},"_webSocketMessages":[{messages}]}}]}}}}"#
            );
            let mut har = Har::new(crate::input::of_bytes(text.as_bytes()));
            let record = har.next().unwrap();
            (record, har.notes().iter().next().map(|(text, ..)| text.to_owned()))
        };
        let ping = r#"{"type":"receive","time":1714557600.5,"opcode":9,"data":""},"#;
        let text = r#"{"type":"send","time":1714557600.5,"opcode":1,"data":"a"}"#;
        let (record, note) = read(&format!("{ping}{text}"));
        assert_eq!(record.unwrap().response.unwrap().messages.len(), 1);
        assert_eq!(note.as_deref(), Some("messages of WebSockets that cannot be sent left out"));
        for (message, wrong) in [
            (
                text.replace("600.5", "500.5"),
                "a WebSocket message 99500 ms before the request that opened it",
            ),
            (text.replace("\":1,", "\":3,"), "a WebSocket message with the opcode 3"),
            (
                format!("{},{text}", text.replace("\":1,", "\":8,")),
                "a WebSocket message after the close frame of its sender",
            ),
        ] {
            let (record, note) = read(&message);
            assert_eq!(record, None);
            assert_eq!(note.unwrap(), format!("entries that cannot be read left out: {wrong}"));
        }
    }

    #[test]
    fn bodies_are_made_of_parameters_where_there_is_no_text() {
        let entry = |data: &str| {
            format!(
                r#"{{"log":{{"entries":[{{"startedDateTime":"2024-05-01T10:00:00Z","request":{{"method":"POST","url":"http://x/","headers":[],"postData":{data}}}}}]}}}}"#
            )
        };
        let form = entry(
            r#"{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a b","value":"1&2"}]}"#,
        );
        let json =
            entry(r#"{"mimeType":"application/json","text":"{}","params":[{"name":"0","value":{"a":1}}]}"#);
        assert_eq!(good(Format::Har, json.into())[0].request.body, b"{}");
        assert_eq!(good(Format::Har, form.into())[0].request.body, b"a+b=1%262");
        let multipart = entry(
            r#"{"mimeType":"multipart/form-data","params":[{"name":"f","fileName":"x.txt","contentType":"text/plain"}]}"#,
        );
        let request = &good(Format::Har, multipart.into())[0].request;
        assert!(String::from_utf8_lossy(&request.body).contains("filename=\"x.txt\""));
        assert!(
            request
                .header("content-type")
                .is_some_and(|value| value.starts_with(b"multipart/form-data; boundary="))
        );
    }
}
