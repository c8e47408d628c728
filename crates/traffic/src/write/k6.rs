//! Writes a k6 script: every request in order, with the recorded pauses and a check of the recorded status.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Sink, lossless};
use crate::Record;

/// The writer.
pub(super) struct K6<W> {
    out: W,
    count: u64,
    last_ns: u64,
}

impl<W: Write> K6<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, count: 0, last_ns: 0 }
    }
}

impl<W: Write> Sink for K6<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.count == 0 {
            self.out.write_all(HEAD.as_bytes())?;
            self.last_ns = record.time_ns;
        }
        self.count += 1;
        let pause_ms = record.time_ns.saturating_sub(self.last_ns) / 1_000_000;
        if pause_ms >= PAUSE_MS_MIN {
            writeln!(self.out, "  sleep({});", pause_ms as f64 / 1e3)?;
            self.last_ns = record.time_ns;
        }
        let request = &record.request;
        let mut headers = Map::new();
        for field in request.headers.iter().filter(|field| !field.is("accept-encoding")) {
            headers.insert(field.name.clone(), Value::from(lossless(&field.value)));
        }
        let body = match std::str::from_utf8(&request.body) {
            Ok("") => "null".to_owned(),
            Ok(text) => Value::from(text).to_string(),
            Err(_) => format!("encoding.b64decode('{}')", STANDARD.encode(&request.body)),
        };
        writeln!(
            self.out,
            "  res = http.request({}, {}, {body}, {{ headers: {}, redirects: 0 }});",
            Value::from(request.method.as_str()),
            Value::from(request.url()),
            Value::from(headers)
        )?;
        match &record.response {
            Some(response) => {
                let status = response.status;
                writeln!(self.out, "  check(res, {{ 'status is {status}': (r) => r.status === {status} }});")
            }
            None => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.count == 0 {
            self.out.write_all(HEAD.as_bytes())?;
        }
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}

const HEAD: &str = "\
import http from 'k6/http';
import encoding from 'k6/encoding';
import { check, sleep } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  let res;
";

/// Shorter pauses are those between requests that belong together.
const PAUSE_MS_MIN: u64 = 5;
