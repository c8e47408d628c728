//! Writes Speedscale's pairs as JSON lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::sink::{Sink, iso, lossless};
use crate::{Field, Record, Scheme};

/// The writer.
pub(super) struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Sink for JsonLines<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, &pair(record))?;
        self.out.write_all(b"\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

fn pair(record: &Record) -> Value {
    let request = &record.request;
    let mut tags = json!({});
    if record.session != 0 {
        tags["session"] = json!(record.session.to_string());
    }
    if request.scheme == Scheme::Https {
        tags["tls"] = json!("true");
    }
    let mut http = json!({ "req": {
        "url": request.target,
        "version": request.version.text().trim_start_matches("HTTP/"),
        "method": request.method,
        "host": request.authority,
        "headers": headers(&request.headers),
        "bodyBase64": STANDARD.encode(&request.body),
    }});
    if let Some(response) = &record.response {
        http["res"] = json!({ "statusCode": response.status, "headers": headers(&response.headers) });
        if let Some(body) = &response.body {
            http["res"]["bodyBase64"] = json!(STANDARD.encode(body));
        }
    }
    let latency_ms = record.response.as_ref().map_or(0.0, |response| response.latency_ns as f64 / 1e6);
    json!({
        "msgType": "rrpair", "ts": iso(record.time_ns), "l7protocol": "http", "duration": latency_ms,
        "direction": "IN", "tags": tags, "http": http,
    })
}

fn headers(fields: &[Field]) -> BTreeMap<&str, Vec<String>> {
    let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Field { name, value } in fields {
        named.entry(name).or_default().push(lossless(value));
    }
    named
}
