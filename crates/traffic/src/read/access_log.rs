//! Access logs: requests without headers and bodies, with times of whole seconds.
//!
//! Requests of the same second are spread evenly over it, in the order of the lines. nginx writes a line when the request
//! has ended, so the time it took is subtracted where the line has it.

use std::collections::VecDeque;

use super::log_line::{Line, SECOND_NS, Var};
use super::log_pattern::{Layout, LogPattern, Part};
use super::w3c::Columns;
use super::{Notes, Source, time};
use crate::input::Input;
use crate::limits::HEAD_BYTES_MAX;
use crate::{Place, Problem, Record};

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
        let mut line = Line::default();
        line.record.place = place;
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
