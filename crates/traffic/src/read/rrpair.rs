//! Speedscale's request/response pairs as JSON: one a line (`raw.jsonl`), or objects over several lines (`.json` files).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::json_items::Scan;
use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::RECORD_BYTES_MAX;
use crate::{Field, Place, Problem, Record, Request, Response, Scheme, Version, key_of};

/// The reader.
pub(super) struct JsonLines {
    input: Input,
    notes: Notes,
    line_count: u64,
    is_at_end: bool,
}

/// A pair, as far as replay needs it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Pair {
    ts: String,
    duration: Option<serde_json::Value>,
    #[serde(rename = "l7protocol")]
    protocol: String,
    #[serde(rename = "isTls")]
    is_tls: bool,
    direction: String,
    tags: BTreeMap<String, serde_json::Value>,
    http: Option<Http>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Http {
    req: Req,
    res: Option<Res>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Req {
    url: String,
    uri: String,
    version: String,
    method: String,
    host: String,
    headers: BTreeMap<String, Values>,
    body_base64: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Res {
    status_code: u16,
    headers: BTreeMap<String, Values>,
    body_base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Many(Vec<String>),
    One(String),
}

impl JsonLines {
    pub(super) fn new(input: Input) -> Self {
        Self { input, notes: Notes::default(), line_count: 0, is_at_end: false }
    }

    fn line(&mut self, place: Place) -> Result<Vec<u8>, Problem> {
        let mut line = Vec::new();
        self.is_at_end = !self.input.read_record(b"\n", &mut line, RECORD_BYTES_MAX, place)?;
        Ok(line)
    }

    fn at_object(&mut self, place: Place) -> Result<bool, Problem> {
        let next = self.input.fill().map_err(|error| Problem::io(place, &error))?;
        Ok(next.first() == Some(&b'{'))
    }
}

impl Source for JsonLines {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while !self.is_at_end {
            self.line_count += 1;
            let place = self.input.place(self.line_count);
            let mut text = self.line(place)?;
            if text.trim_ascii().is_empty() {
                continue;
            }
            let mut scan = Scan::default();
            scan.feed(text.trim_ascii_start());
            // An object that begins in the first column is the next one: the one before it is cut off.
            while scan.is_open() && !self.is_at_end && !self.at_object(place)? {
                let line = self.line(place)?;
                scan.feed(&line);
                text.push(b'\n');
                text.extend(line);
                if text.len() > RECORD_BYTES_MAX {
                    return Err(Problem::record(place, format!("larger than {RECORD_BYTES_MAX} bytes")));
                }
            }
            let pair: Result<Pair, _> = serde_json::from_slice(&text);
            let pair = pair.map_err(|error| Problem::record(place, format!("not an RRPair: {error}")))?;
            if let Some(record) =
                pair.record(&mut self.notes, place).map_err(|reason| Problem::record(place, reason))?
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

impl Pair {
    /// Inbound pairs are load; outbound ones are what the service asked of others, for `squall mock`.
    pub(super) fn record(self, notes: &mut Notes, place: Place) -> Result<Option<Record>, String> {
        let Some(http) =
            self.http.filter(|_| matches!(self.protocol.as_str(), "" | "http" | "https" | "http2"))
        else {
            notes.add("pairs that are not HTTP left out", place);
            return Ok(None);
        };
        if self.direction == "OUT" {
            notes.add(OUTBOUND, place);
        }
        let session = ["session", "sessionId", "user"].iter().find_map(|name| self.tags.get(*name));
        let time_ns = time::of_iso(&self.ts)?;
        let latency_ns = latency_ns(self.duration.as_ref());
        let tagged = self.tags.get("tls").is_some_and(|value| value == "true" || *value == true);
        let is_tls = tagged || self.is_tls || self.protocol == "https";
        let request = http.req.request(is_tls)?;
        if notes.is_web_socket(&request, place) {
            return Ok(None);
        }
        Ok(Some(Record {
            time_ns,
            connection: 0,
            session: session.map_or(0, |value| key_of(value.to_string().as_bytes())),
            request,
            response: http.res.map(|res| res.response(latency_ns)).transpose()?,
            place,
        }))
    }
}

pub(super) const OUTBOUND: &str = "outbound pairs: requests that the service itself sent (useful for `squall mock`; exclude them from load with --only-host)";

/// A number of milliseconds, or a text with its unit.
fn latency_ns(value: Option<&serde_json::Value>) -> u64 {
    match value {
        Some(serde_json::Value::Number(number)) => (number.as_f64().unwrap_or(0.0).max(0.0) * 1e6) as u64,
        Some(serde_json::Value::String(text)) => span(text),
        _ => 0,
    }
}

/// `155ms`, as Go writes durations; 0 when it cannot be read.
pub(super) fn span(text: &str) -> u64 {
    let span = squall_plan::units::parse_duration(text.trim());
    span.ok().and_then(|span| u64::try_from(span.as_nanos()).ok()).unwrap_or(0)
}

impl Req {
    fn request(self, is_tls: bool) -> Result<Request, String> {
        if !squall_plan::urls::is_token(&self.method) {
            return Err(format!("bad method `{}`", time::cut(&self.method)));
        }
        let mut request = Request {
            method: self.method,
            scheme: if is_tls { Scheme::Https } else { Scheme::Http },
            version: Version::of(&format!("HTTP/{}", self.version.trim_start_matches("HTTP/"))),
            headers: fields(self.headers),
            body: body(self.body_base64)?.unwrap_or_default(),
            ..Request::default()
        };
        let host = request.header("host").map(|host| String::from_utf8_lossy(host).into_owned());
        request.authority = if self.host.is_empty() { host.unwrap_or_default() } else { self.host };
        let target = if self.url.is_empty() { self.uri } else { self.url };
        let target =
            if target.contains("://") || target.starts_with('/') { target } else { format!("/{target}") };
        http1::set_target(&mut request, &target);
        if !request.target.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
            return Err(format!("bad URL `{}`", time::cut(&request.target)));
        }
        request.drop_connection_fields();
        Ok(request)
    }
}

impl Res {
    fn response(self, latency_ns: u64) -> Result<Response, String> {
        let mut response = Response {
            status: self.status_code,
            headers: fields(self.headers),
            latency_ns,
            ..Response::default()
        };
        if let Some(body) = body(self.body_base64)? {
            response.set_body(body);
        }
        Ok(response)
    }
}

fn body(text: Option<String>) -> Result<Option<Vec<u8>>, String> {
    let decode = |text: String| {
        STANDARD.decode(text.trim()).map_err(|error| format!("bodyBase64 is not valid base64: {error}"))
    };
    text.map(decode).transpose()
}

fn fields(named: BTreeMap<String, Values>) -> Vec<Field> {
    let mut fields = Vec::new();
    for (name, values) in named {
        let values = match values {
            Values::Many(values) => values,
            Values::One(value) => vec![value],
        };
        let sendable = values.into_iter().filter(|value| !value.contains(['\r', '\n', '\0']));
        if squall_plan::urls::is_token(name.trim_start_matches(':')) {
            fields.extend(sendable.map(|value| Field::new(name.clone(), value)));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};

    #[test]
    fn what_the_service_asked_over_tls_is_read_and_reported() {
        let line = r#"{"msgType":"rrpair","ts":"2025-11-25T18:06:30Z","isTls":true,"l7protocol":"https","direction":"OUT","http":{"req":{"url":"/v4/x","method":"GET","host":"api.example:443"},"res":{"statusCode":200}}}"#;
        let mut source =
            super::super::open_bytes(Format::RrpairJson, line.into(), &crate::ReadOptions::default())
                .unwrap();
        let record = source.next().unwrap().unwrap();
        assert_eq!(record.request.url(), "https://api.example:443/v4/x");
        assert!(source.notes().iter().any(|(text, count, _)| text.starts_with("outbound") && count == 1));
    }

    #[test]
    fn a_line_is_a_pair() {
        let line = r#"{"msgType":"rrpair","ts":"2024-05-01T10:00:00.5Z","l7protocol":"http","duration":155,"tags":{},"direction":"IN","http":{"req":{"url":"/a?b=1","version":"1.1","method":"POST","host":"x:80","headers":{"Accept":["a","b"]},"bodyBase64":"aGk="},"res":{"statusCode":201,"headers":{"X":["1"]},"bodyBase64":"b2s="}}}"#;
        let records = good(Format::RrpairJson, format!("{line}\n\n{line}").into());
        assert_eq!((records.len(), records[1].request.url().as_str()), (2, "http://x:80/a?b=1"));
        assert_eq!((records[0].request.body.as_slice(), records[0].request.headers.len()), (&b"hi"[..], 2));
        let response = records[0].response.as_ref().unwrap();
        assert_eq!((response.status, response.latency_ns, response.body_bytes), (201, 155_000_000, 2));
        let (_, problems) = all(Format::RrpairJson, b"{}\n[1]\n{\"ts\":1}\n".to_vec());
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn a_pair_over_several_lines_is_one() {
        let pair = "{\n  \"msgType\": \"rrpair\",\n  \"ts\": \"2024-05-01T10:00:00Z\",\n  \"http\": {\"req\": {\n    \"method\": \"GET\", \"url\": \"/a\", \"host\": \"x\"\n  }}\n}";
        assert_eq!(good(Format::RrpairJson, format!("{pair}\n{pair}\n").into()).len(), 2);
        let cut_off = &pair[..pair.len() - 10];
        let (records, problems) = all(Format::RrpairJson, format!("{cut_off}\n{pair}").into());
        assert_eq!((records.len(), problems.len()), (1, 1), "{problems:?}");
    }
}
