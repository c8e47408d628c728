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
    /// When the former request was answered; where that is not known, when it began.
    answered_ns: u64,
    /// Pauses too short to be written, together.
    owed_ns: u64,
}

impl<W: Write> K6<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, count: 0, answered_ns: u64::MAX, owed_ns: 0 }
    }

    /// The script waits for each answer by itself: a pause begins with the answer.
    fn pause_until(&mut self, time_ns: u64) -> io::Result<()> {
        self.owed_ns += time_ns.saturating_sub(self.answered_ns);
        let pause_ms = self.owed_ns / 1_000_000;
        if pause_ms < PAUSE_MS_MIN {
            return Ok(());
        }
        self.owed_ns = 0;
        writeln!(self.out, "  sleep({});", pause_ms as f64 / 1e3)
    }
}

impl<W: Write> Sink for K6<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.count == 0 {
            self.out.write_all(HEAD.as_bytes())?;
        }
        self.count += 1;
        self.pause_until(record.time_ns)?;
        self.answered_ns =
            record.time_ns + record.response.as_ref().map_or(0, |response| response.latency_ns);
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
