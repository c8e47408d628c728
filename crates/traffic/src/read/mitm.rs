//! mitmproxy's dumps: concatenated tnetstrings, one dictionary for each flow. Only the keys that replay needs are read, so
//! the version of the dump is of no importance.

use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::{NESTING_MAX, RECORD_BYTES_MAX};
use crate::{Field, Place, Problem, Record, Request, Response, Scheme, Version, key_of};

/// The reader.
pub(super) struct Mitm {
    input: Input,
    notes: Notes,
    flow_count: u64,
    is_at_end: bool,
}

/// A value of a dump, on the bytes that it was read from.
#[derive(Debug, PartialEq)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
    Float(f64),
    Bool,
    Null,
    List(Vec<Self>),
    Dict(Vec<(Self, Self)>),
}

impl Mitm {
    pub(super) fn new(input: Input) -> Self {
        Self { input, notes: Notes::default(), flow_count: 0, is_at_end: false }
    }

    /// The bytes of the next flow, its kind last.
    fn flow(&mut self, place: Place) -> Result<Option<Vec<u8>>, Problem> {
        let io = |error: std::io::Error| Problem::io(place, &error);
        let mut length = 0_u64;
        for nth in 0.. {
            let Some(byte) = self.input.fill().map_err(io)?.first().copied() else {
                return match nth {
                    0 => Ok(None),
                    _ => Err(Problem::fatal(place, "the file ends inside a length")),
                };
            };
            self.input.consume(1);
            match byte {
                b':' if nth > 0 => break,
                b'0'..=b'9' if nth < DIGIT_COUNT_MAX => length = length * 10 + u64::from(byte - b'0'),
                _ => return Err(Problem::fatal(place, "the length of a tnetstring is missing")),
            }
        }
        if length >= RECORD_BYTES_MAX as u64 {
            let whole = self.input.skip(length + 1).map_err(io)?;
            let reason = format!("a flow of {length} bytes is larger than {RECORD_BYTES_MAX}");
            return Err(Problem { is_fatal: !whole, ..Problem::record(place, reason) });
        }
        let mut bytes = Vec::new();
        match self.input.read_exact(length as usize + 1, &mut bytes).map_err(io)? {
            true => Ok(Some(bytes)),
            false => Err(Problem::fatal(place, "the file ends inside a flow")),
        }
    }

    fn record(&mut self, bytes: &[u8], place: Place) -> Result<Option<Record>, String> {
        let (kind, data) = bytes.split_last().ok_or("an empty flow")?;
        let flow = value(*kind, data, 0)?;
        if flow.get("type").and_then(Value::bytes).is_some_and(|kind| kind != b"http") {
            self.notes.add("flows that are not HTTP left out", place);
            return Ok(None);
        }
        if !matches!(flow.get("websocket"), None | Some(Value::Null)) {
            let request = flow.get("request").map(request_of).transpose()?.unwrap_or_default();
            self.notes.web_socket(&request.authority, place);
            return Ok(None);
        }
        let Some(request @ Value::Dict(_)) = flow.get("request") else {
            return Err("the flow has no request".to_owned());
        };
        let started =
            request.get("timestamp_start").and_then(Value::number).ok_or("the request has no time")?;
        let connection = flow.get("client_conn").and_then(|conn| conn.get("id")).and_then(Value::bytes);
        let connection = connection.map_or(0, key_of);
        let response = flow.get("response").filter(|value| matches!(value, Value::Dict(_)));
        Ok(Some(Record {
            time_ns: time::of_seconds(started)?,
            connection,
            // A browser has several connections, and a proxy's has many clients.
            session: 0,
            request: request_of(request)?,
            response: response.and_then(|response| response_of(response, started)),
            place,
        }))
    }
}

impl Source for Mitm {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while !self.is_at_end {
            self.flow_count += 1;
            let place = Place { line: 0, ..self.input.place(self.flow_count) };
            let flow = self.flow(place);
            self.is_at_end =
                matches!(&flow, Ok(None)) || flow.as_ref().is_err_and(|problem| problem.is_fatal);
            let Some(bytes) = flow? else { break };
            if let Some(record) =
                self.record(&bytes, place).map_err(|reason| Problem::record(place, reason))?
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

fn request_of(value: &Value<'_>) -> Result<Request, String> {
    let text =
        |key: &str| value.get(key).and_then(Value::bytes).map(|b| String::from_utf8_lossy(b).into_owned());
    let scheme = text("scheme").and_then(|scheme| Scheme::of(&scheme)).unwrap_or_default();
    let mut request = Request {
        method: text("method").unwrap_or_default(),
        scheme,
        version: Version::of(&text("http_version").unwrap_or_default()),
        headers: fields(value.get("headers")),
        body: value.get("content").and_then(Value::bytes).unwrap_or_default().to_vec(),
        ..Request::default()
    };
    if !squall_plan::urls::is_token(&request.method) {
        return Err(format!("bad method `{}`", time::cut(&request.method)));
    }
    let host = request.header("host").map(|host| String::from_utf8_lossy(host).into_owned());
    let host = text("authority").filter(|text| !text.is_empty()).or(host);
    request.authority = host.unwrap_or_else(|| {
        let port = value.get("port").and_then(Value::number).unwrap_or(80.0);
        format!("{}:{port}", text("host").unwrap_or_default())
    });
    http1::set_target(&mut request, &text("path").unwrap_or_else(|| "/".to_owned()));
    let is_sendable = request.target.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !is_sendable {
        return Err(format!("bad path `{}`", time::cut(&request.target)));
    }
    request.drop_connection_fields();
    Ok(request)
}

fn response_of(value: &Value<'_>, started: f64) -> Option<Response> {
    let status = value.get("status_code").and_then(Value::number)? as u16;
    let ended = value.get("timestamp_end").and_then(Value::number).unwrap_or(started);
    let mut response = Response {
        status,
        headers: fields(value.get("headers")),
        latency_ns: ((ended - started).max(0.0) * 1e9) as u64,
        ..Response::default()
    };
    if let Some(body) = value.get("content").and_then(Value::bytes) {
        response.set_body(body.to_vec());
    }
    Some(response)
}

fn fields(value: Option<&Value<'_>>) -> Vec<Field> {
    let Some(Value::List(pairs)) = value else { return Vec::new() };
    let field = |pair: &Value<'_>| match pair {
        Value::List(parts) => match parts.as_slice() {
            [Value::Bytes(name), Value::Bytes(value)] => {
                Some(Field::new(String::from_utf8_lossy(name), value.to_vec()))
            }
            _ => None,
        },
        _ => None,
    };
    let is_sendable = |field: &Field| {
        squall_plan::urls::is_token(field.name.trim_start_matches(':'))
            && !field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
    };
    pairs.iter().filter_map(field).filter(is_sendable).collect()
}

impl<'a> Value<'a> {
    fn get(&self, key: &str) -> Option<&Self> {
        let Value::Dict(pairs) = self else { return None };
        pairs.iter().find(|(name, _)| name.bytes() == Some(key.as_bytes())).map(|(_, value)| value)
    }

    fn bytes(&self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads a value of this kind from its bytes.
fn value(kind: u8, data: &[u8], depth: u32) -> Result<Value<'_>, String> {
    if depth > NESTING_MAX {
        return Err("values are nested too deeply".to_owned());
    }
    let text = || std::str::from_utf8(data).map_err(|_| "a number that is not text".to_owned());
    Ok(match kind {
        b',' | b';' => Value::Bytes(data),
        b'#' => Value::Integer(text()?.parse().map_err(|_| "bad integer")?),
        b'^' => Value::Float(text()?.parse().map_err(|_| "bad number")?),
        b'!' => Value::Bool,
        b'~' => Value::Null,
        b']' => Value::List(values(data, depth)?),
        b'}' => {
            let mut values = values(data, depth)?.into_iter();
            let mut pairs = Vec::new();
            while let Some(key) = values.next() {
                pairs.push((key, values.next().ok_or("a key without a value")?));
            }
            Value::Dict(pairs)
        }
        other => return Err(format!("unknown kind of value `{}`", char::from(other).escape_default())),
    })
}

fn values(mut data: &[u8], depth: u32) -> Result<Vec<Value<'_>>, String> {
    let mut found = Vec::new();
    while !data.is_empty() {
        let colon = data
            .iter()
            .take(DIGIT_COUNT_MAX + 1)
            .position(|byte| *byte == b':')
            .ok_or("the length of a tnetstring is missing")?;
        let length = std::str::from_utf8(&data[..colon]).ok().and_then(|text| text.parse::<usize>().ok());
        let length = length.ok_or("bad length of a tnetstring")?;
        let rest = &data[colon + 1..];
        if length >= rest.len() {
            return Err("a length reaches beyond its value".to_owned());
        }
        found.push(value(rest[length], &rest[..length], depth + 1)?);
        data = &rest[length + 1..];
    }
    Ok(found)
}

/// tnetstrings have at most nine digits; mitmproxy allows twelve.
const DIGIT_COUNT_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};

    fn net(kind: char, data: &str) -> String {
        format!("{}:{data}{kind}", data.len())
    }

    fn dict(pairs: &[(&str, String)]) -> String {
        net('}', &pairs.iter().map(|(key, value)| net(';', key) + value).collect::<String>())
    }

    fn flow() -> String {
        let headers = net(']', &net(']', &(net(',', "Accept") + &net(',', "*/*"))));
        let request = dict(&[
            ("method", net(',', "PUT")),
            ("scheme", net(',', "https")),
            ("authority", net(',', "")),
            ("host", net(';', "x.example")),
            ("port", net('#', "8443")),
            ("path", net(',', "/p?q")),
            ("http_version", net(',', "HTTP/2.0")),
            ("headers", headers),
            ("content", net(',', "b\0dy")),
            ("timestamp_start", net('^', "1611642531.25")),
        ]);
        let response = dict(&[("status_code", net('#', "204")), ("timestamp_end", net('^', "1611642531.5"))]);
        dict(&[
            ("type", net(';', "http")),
            ("request", request),
            ("response", response),
            ("error", net('~', "")),
        ])
    }

    #[test]
    fn a_flow_becomes_a_request() {
        let records = good(Format::Mitmproxy, flow().repeat(2).into_bytes());
        assert_eq!((records.len(), records[1].request.url().as_str()), (2, "https://x.example:8443/p?q"));
        assert_eq!(
            (records[0].time_ns, records[0].request.body.as_slice()),
            (1_611_642_531_250_000_000, &b"b\0dy"[..])
        );
        assert_eq!(records[0].response.as_ref().unwrap().latency_ns, 250_000_000);
    }

    #[test]
    fn broken_dumps_end_with_a_place() {
        let flow = flow();
        for (bytes, good_count) in [
            (format!("{flow}99999999999:"), 1),
            (format!("{flow}12"), 1),
            (format!("{flow}x"), 1),
            (format!("{}{flow}", net('}', "3:abc;")), 1),
            (flow[..flow.len() / 2].to_owned(), 0),
        ] {
            let (records, problems) = all(Format::Mitmproxy, bytes.into_bytes());
            assert_eq!((records.len(), problems.len()), (good_count, 1), "{problems:?}");
        }
    }
}
