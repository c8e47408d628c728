//! Access logs: requests without headers and bodies, with times of whole seconds.
//!
//! Requests of the same second are spread evenly over it, in the order of the lines. nginx writes a line when the request
//! has ended, so the time it took is subtracted where the line has it.

use std::collections::VecDeque;

use super::http1::set_target;
use super::log_pattern::{Layout, LogPattern, Part, Var};
use super::w3c::Columns;
use super::{Notes, Source, time};
use crate::input::Input;
use crate::limits::HEAD_BYTES_MAX;
use crate::{Field, Place, Problem, Record, Request, Response, Scheme, Version, key_of};

/// The reader.
pub(super) struct AccessLog {
    input: Input,
    pattern: LogPattern,
    /// Of files that name their columns.
    columns: Columns,
    notes: Notes,
    line_count: u64,
    buffer: Vec<u8>,
    /// Requests of one second, not spread yet.
    same_second: Vec<Record>,
    /// Requests that are spread.
    ready: VecDeque<Result<Record, Problem>>,
    is_at_end: bool,
}

/// What a line says.
#[derive(Default)]
pub(super) struct Line {
    time_ns: u64,
    /// Day and time of day, where they are apart.
    date: String,
    time_of_day: String,
    /// The time has no fraction.
    is_whole_second: bool,
    took_ns: u64,
    client: String,
    session: String,
    connection: String,
    /// The request is no HTTP, such as TLS sent to a plain port.
    is_other: bool,
    /// The log's own word for it: `ws` or `wss` instead of a scheme.
    is_web_socket: bool,
    has_no_zone: bool,
    query: String,
    port: String,
    status: u16,
    body_bytes: u64,
    record: Record,
}

impl AccessLog {
    pub(super) fn new(input: Input, pattern: LogPattern) -> Self {
        Self {
            input,
            pattern,
            columns: Columns::default(),
            notes: Notes::default(),
            line_count: 0,
            buffer: Vec::new(),
            same_second: Vec::new(),
            ready: VecDeque::new(),
            is_at_end: false,
        }
    }

    fn read_line(&mut self) {
        self.line_count += 1;
        let place = self.input.place(self.line_count);
        self.buffer.clear();
        match self.input.read_record(b"\n", &mut self.buffer, HEAD_BYTES_MAX, place) {
            Err(problem) => {
                self.is_at_end = problem.is_fatal;
                if self.is_at_end {
                    self.spread();
                }
                return self.ready.push_back(Err(problem));
            }
            Ok(is_more) => self.is_at_end = !is_more,
        }
        let bytes = std::mem::take(&mut self.buffer);
        match self.line(&bytes, place) {
            Ok(Some(line)) => self.keep(line),
            Ok(None) => {}
            Err(reason) => self.ready.push_back(Err(Problem::record(place, reason))),
        }
        self.buffer = bytes;
        if self.is_at_end {
            self.spread();
        }
    }

    fn line(&mut self, bytes: &[u8], place: Place) -> Result<Option<Line>, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the line is not UTF-8".to_owned())?;
        let text = text.trim_end_matches('\r');
        if text.starts_with('#') {
            self.columns.read_directive(text);
        }
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let mut line = Line { record: Record { place, ..Record::default() }, ..Line::default() };
        match &self.pattern.layout {
            Layout::Parts(parts) => read_parts(parts, text, &mut line)?,
            Layout::Preset(preset) => preset.read(text, &mut line)?,
            Layout::Json(fields) => fields.read(text, &mut line)?,
            Layout::W3c => self.columns.read(text, &mut line)?,
        }
        if line.is_web_socket {
            self.notes.web_socket(&line.record.request.authority, place);
            return Ok(None);
        }
        if self.notes.is_web_socket(&line.record.request, place) {
            return Ok(None);
        }
        if line.has_no_zone {
            self.notes.add("times without a zone: taken as UTC", place);
        }
        if line.is_other {
            self.notes.add("lines whose request is not HTTP: left out", place);
            return Ok(None);
        }
        if line.record.request.method.is_empty() {
            line.record.request.method = "GET".to_owned();
        }
        if line.record.request.target.is_empty() {
            self.notes.add("lines without a request (`-`): left out", place);
            return Ok(None);
        }
        if matches!(line.record.request.method.as_str(), "POST" | "PUT" | "PATCH")
            && line.record.request.body.is_empty()
        {
            self.notes.add("requests whose body the log does not have: sent without", place);
        }
        line.finish(self.pattern.logs_start)?;
        if line.record.request.authority.is_empty() {
            self.notes.add("requests without host: replay needs --to", place);
        }
        Ok(Some(line))
    }

    fn keep(&mut self, line: Line) {
        let second = |record: &Record| record.time_ns / SECOND_NS;
        let is_other = self.same_second.first().is_some_and(|first| second(first) != second(&line.record));
        if is_other || self.same_second.len() >= SAME_SECOND_COUNT_MAX {
            self.spread();
        }
        if line.is_whole_second {
            self.same_second.push(line.record);
        } else {
            self.ready.push_back(Ok(line.record));
        }
    }

    /// Spreads the requests of one second evenly over it.
    fn spread(&mut self) {
        let count = self.same_second.len() as u64;
        for (nth, mut record) in (0_u64..).zip(self.same_second.drain(..)) {
            record.time_ns += (2 * nth + 1) * SECOND_NS / (2 * count);
            if !self.pattern.logs_start {
                record.time_ns -= record.response.as_ref().map_or(0, |response| response.latency_ns);
            }
            self.ready.push_back(Ok(record));
        }
    }
}

impl Source for AccessLog {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while self.ready.is_empty() && !self.is_at_end {
            self.read_line();
        }
        self.ready.pop_front().transpose()
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

impl Line {
    /// Puts together what stands in several places of a line.
    fn finish(&mut self, logs_start: bool) -> Result<(), String> {
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

/// Matches the pattern: a variable reaches to the next fixed text, beyond quotes that are escaped.
fn read_parts(parts: &[Part], text: &str, line: &mut Line) -> Result<(), String> {
    let mut rest = text;
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Text(fixed) => {
                rest = rest.strip_prefix(fixed.as_str()).ok_or_else(|| {
                    let column = text.len() - rest.len() + 1;
                    format!("column {column}: `{}` was expected, not `{}`", time::cut(fixed), time::cut(rest))
                })?;
            }
            Part::Var(var) => {
                let end = match parts.peek() {
                    // Apache's %t brings its own brackets.
                    _ if rest.starts_with('[') && *var == Var::CommonTime => {
                        rest.find(']').map_or(rest.len(), |at| at + 1)
                    }
                    Some(Part::Text(fixed)) => find_unescaped(rest, fixed).ok_or_else(|| {
                        let column = text.len() - rest.len() + 1;
                        format!("column {column}: no `{}` behind `{}`", time::cut(fixed), time::cut(rest))
                    })?,
                    _ => rest.len(),
                };
                line.set(var, unescape(&rest[..end]))?;
                rest = &rest[end..];
            }
        }
    }
    Ok(())
}

fn find_unescaped(text: &str, fixed: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find(fixed).map(|at| from + at) {
        let backslashes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 0 || !fixed.starts_with('"') {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// nginx writes `\xHH`, Apache `\"` and `\\`, JSON logs `\u0022`.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (escaped, count) = escape(&rest[at..]);
        bytes.extend_from_slice(&escaped);
        rest = &rest[at + count..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the escape at the beginning of `text` stands for, and its length.
fn escape(text: &str) -> (Vec<u8>, usize) {
    let hex = |from: usize, to: usize| u32::from_str_radix(text.get(from..to)?, 16).ok();
    match text.as_bytes().get(1) {
        Some(b'x') if let Some(byte) = hex(2, 4) => (vec![byte as u8], 4),
        Some(b'u') if let Some(c) = hex(2, 6).and_then(char::from_u32) => (c.to_string().into_bytes(), 6),
        Some(b'n') => (b"\n".to_vec(), 2),
        Some(b't') => (b"\t".to_vec(), 2),
        Some(b'r') => (b"\r".to_vec(), 2),
        Some(byte) if byte.is_ascii() => (vec![*byte], 2),
        _ => (b"\\".to_vec(), 1),
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

const SECOND_NS: u64 = 1_000_000_000;

/// Lines of one second kept at a time; a second with more is spread in parts.
const SAME_SECOND_COUNT_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good, with_pattern};
    use crate::Field;

    const COMBINED: &str = r#"1.2.3.4 - - [26/Jan/2021:06:28:51 +0000] "GET /a?b=\"x HTTP/1.1" 200 12 "-" "curl/8"
1.2.3.4 - - [26/Jan/2021:06:28:51 +0000] "POST /b HTTP/2.0" 404 0 "http://r/" "curl/8"
1.2.3.4 - - [26/Jan/2021:06:28:52 +0000] "-" 408 0 "-" "-"
"#;

    #[test]
    fn requests_of_a_second_are_spread_over_it() {
        let records = good(Format::AccessLog, COMBINED.into());
        let times: Vec<u64> = records.iter().map(|record| record.time_ns % 1_000_000_000).collect();
        assert_eq!(times, [250_000_000, 750_000_000]);
        assert_eq!(records[0].request.target, "/a?b=\"x");
        assert_eq!(
            records[1].request.headers,
            [Field::new("Referer", "http://r/"), Field::new("User-Agent", "curl/8")]
        );
        assert_eq!(records[0].session, records[1].session);
        assert_eq!(records[1].response.as_ref().unwrap().status, 404);
    }

    #[test]
    fn nginx_times_are_those_of_the_end() {
        let line = "1611642531.500 0.250 a.example GET /x 200\n";
        let records = with_pattern("$msec $request_time $host $request_method $request_uri $status", line);
        assert_eq!(records[0].time_ns, 1_611_642_531_250_000_000);
        assert_eq!(records[0].request.url(), "http://a.example/x");
        let apache = with_pattern(
            "%t %D %v \"%r\" %>s",
            "[26/Jan/2021:06:28:51 +0000] 250000 a \"GET /x HTTP/1.1\" 200",
        );
        assert_eq!(apache[0].time_ns, 1_611_642_531_500_000_000);
    }

    #[test]
    fn json_logs_are_patterns_too() {
        let pattern = r#"{"t":"$time_iso8601","r":"$request","ua":"$http_user_agent"}"#;
        let line = r#"{"t":"2021-01-26T06:28:51+00:00","r":"GET /q?a=\u0022 HTTP/1.1","ua":"a \"b\""}"#;
        let records = with_pattern(pattern, line);
        assert_eq!(records[0].request.target, "/q?a=\"");
        assert_eq!(records[0].request.headers, [Field::new("User-Agent", "a \"b\"")]);
    }

    #[test]
    fn bad_lines_say_where() {
        let text = format!("not a log line\n{COMBINED}\u{1}\n");
        let (records, problems) = all(Format::AccessLog, text.into_bytes());
        assert_eq!((records.len(), problems.len()), (2, 2));
        assert_eq!((problems[0].place.line, problems[1].place.line), (1, 5));
        assert!(problems[0].reason.contains("column"), "{}", problems[0].reason);
    }
}
