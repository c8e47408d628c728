//! Writes HAR 1.2.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::sink::{Sink, iso, lossless};
use crate::decode::decoded;
use crate::{
    Field, Peer, Record, RecordedEvent, RecordedKind, RecordedMessage, Request, Response, events_of,
};

/// The writer.
pub(super) struct Har<W> {
    out: W,
    count: u64,
}

impl<W: Write> Har<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, count: 0 }
    }
}

impl<W: Write> Sink for Har<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let before = if self.count == 0 { HEAD } else { ",\n" };
        self.count += 1;
        self.out.write_all(before.as_bytes())?;
        serde_json::to_writer(&mut self.out, &entry(record)).map_err(io::Error::from)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.count == 0 {
            self.out.write_all(HEAD.as_bytes())?;
        }
        self.out.write_all(b"\n]}}\n")?;
        self.out.flush()
    }
}

const HEAD: &str = concat!(
    r#"{"log":{"version":"1.2","creator":{"name":"squall","version":""#,
    env!("CARGO_PKG_VERSION"),
    "\"},\"entries\":[\n"
);

fn entry(record: &Record) -> Value {
    let latency_ms = record.response.as_ref().map_or(0.0, |response| response.latency_ns as f64 / 1e6);
    let mut entry = json!({
        "startedDateTime": iso(record.time_ns),
        "time": latency_ms,
        "request": request(&record.request),
        "response": record.response.as_ref().map_or_else(no_response, response),
        "cache": {},
        "timings": { "send": 0, "wait": latency_ms, "receive": 0 },
    });
    if record.connection != 0 {
        entry["connection"] = json!(record.connection.to_string());
    }
    if let Some(response) = &record.response {
        add_timeline(&mut entry, response, record);
    }
    entry
}

/// As Chrome's developer tools write it.
fn add_timeline(entry: &mut Value, response: &Response, record: &Record) {
    let seconds = |at_ns: u64| json!((record.time_ns.saturating_add(at_ns) / 1000) as f64 / 1e6);
    if response.is_web_socket() {
        let rest = record.request.url();
        let rest = rest.strip_prefix("http").unwrap_or_default();
        if !rest.is_empty() {
            entry["request"]["url"] = json!(format!("ws{rest}"));
        }
        entry["_resourceType"] = json!("websocket");
        let messages = response.messages.iter().map(|message| {
            let by = if message.by == Peer::Client { "send" } else { "receive" };
            let (time, opcode) = (seconds(message.at_ns), message.kind.opcode());
            json!({ "type": by, "time": time, "opcode": opcode, "data": data_of(message) })
        });
        entry["_webSocketMessages"] = messages.collect();
    }
    if let (Some(body), false) = (&response.body, response.event_times_ns.is_empty()) {
        let events = events_of(body).zip(&response.event_times_ns).map(|(event, at_ns)| {
            let RecordedEvent { kind, id, data, .. } = event;
            json!({ "time": seconds(*at_ns), "eventName": kind, "eventId": id, "data": data })
        });
        entry["_resourceType"] = json!("eventsource");
        entry["_eventSourceMessages"] = events.collect();
    }
}

fn data_of(message: &RecordedMessage) -> String {
    match message.kind {
        RecordedKind::Text => lossless(&message.bytes),
        RecordedKind::Binary => STANDARD.encode(&message.bytes),
        RecordedKind::Close => match message.close_parts() {
            (None, _) => String::new(),
            (Some(code), reason) => format!("{code} {reason}").trim_end().to_owned(),
        },
    }
}

fn request(request: &Request) -> Value {
    let url = request.url();
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query: Vec<Value> = form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let mut value = json!({
        "method": request.method,
        "url": url,
        "httpVersion": request.version.text(),
        "cookies": [],
        "headers": headers(&request.headers),
        "queryString": query,
        "headersSize": -1,
        "bodySize": request.body.len(),
    });
    if !request.body.is_empty() {
        let mime = request.header("content-type").map(lossless).unwrap_or_default();
        value["postData"] = match std::str::from_utf8(&request.body) {
            Ok(text) => json!({ "mimeType": mime, "text": text }),
            Err(_) => {
                json!({ "mimeType": mime, "text": STANDARD.encode(&request.body), "encoding": "base64" })
            }
        };
    }
    value
}

fn response(response: &Response) -> Value {
    let mime = response.header("content-type").map(lossless).unwrap_or_default();
    let mut content = json!({ "size": response.body_bytes, "mimeType": mime });
    if let Some(body) = &response.body {
        // The text of HAR is decoded. Where that cannot be, base64 holds what came.
        let plain = decoded(body, response.header("content-encoding"));
        let text = plain.as_deref().and_then(|plain| std::str::from_utf8(plain).ok());
        let bytes = plain.as_deref().unwrap_or(body);
        content["size"] = json!(bytes.len());
        content["text"] = text.map_or_else(|| json!(STANDARD.encode(bytes)), |text| json!(text));
        if text.is_none() {
            content["encoding"] = json!("base64");
        }
    }
    json!({
        "status": response.status,
        "statusText": "",
        "httpVersion": response.version.text(),
        "cookies": [],
        "headers": headers(&response.headers),
        "content": content,
        "redirectURL": response.header("location").map(lossless).unwrap_or_default(),
        "headersSize": -1,
        "bodySize": response.body_bytes,
    })
}

/// What HAR has in the place of a response that never came.
fn no_response() -> Value {
    json!({
        "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [],
        "content": { "size": 0, "mimeType": "" }, "redirectURL": "", "headersSize": -1, "bodySize": -1,
    })
}

fn headers(fields: &[Field]) -> Vec<Value> {
    fields.iter().map(|Field { name, value }| json!({ "name": name, "value": lossless(value) })).collect()
}
