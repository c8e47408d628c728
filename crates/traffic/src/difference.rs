//! What two recordings differ in, by kinds of requests.
//!
//! Owns: what is compared. Never: keeps records; each kind's memory is bounded, and so is the number of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use crate::Record;
use crate::limits::ROW_COUNT_MAX;

/// One side of a comparison: a recording, by kinds of requests (method and URL without what varies).
#[derive(Debug, Clone, Default)]
pub struct Side {
    kinds: BTreeMap<String, Kind>,
}

/// What the requests of one kind have.
#[derive(Debug, Clone, Default)]
struct Kind {
    count: u64,
    latency_ns_sum: u64,
    latency_count: u64,
    statuses: BTreeMap<u16, u64>,
    /// Names of header fields, parameters and JSON fields, of requests and of responses.
    names: BTreeSet<String>,
}

impl Side {
    /// Takes a record in.
    pub fn add(&mut self, record: &Record) {
        let key = format!("{} {}", record.request.method, record.pattern());
        let is_known = self.kinds.len() < ROW_COUNT_MAX || self.kinds.contains_key(&key);
        let kind = self.kinds.entry(if is_known { key } else { "(others)".to_owned() }).or_default();
        kind.count += 1;
        if let Some(response) = &record.response {
            *kind.statuses.entry(response.status).or_default() += 1;
            kind.latency_ns_sum += response.latency_ns;
            kind.latency_count += u64::from(response.latency_ns > 0);
        }
        kind.add_names(record);
    }

    /// What differs, a paragraph for each kind; `None`: nothing does. Latencies are shown where something else differs, too.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let none = Kind::default();
        let keys: BTreeSet<&String> = self.kinds.keys().chain(other.kinds.keys()).collect();
        let mut text = String::new();
        for key in keys {
            let (one, two) = (self.kinds.get(key).unwrap_or(&none), other.kinds.get(key).unwrap_or(&none));
            let lines = one.difference(two);
            if !lines.is_empty() {
                let _ = writeln!(text, "{key}");
                lines.iter().for_each(|line| _ = writeln!(text, "  {line}"));
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl Kind {
    fn add_names(&mut self, record: &Record) {
        let request = &record.request;
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        for (name, _) in form_urlencoded::parse(query.as_bytes()) {
            self.add_name("query", &name);
        }
        for field in &request.headers {
            self.add_name("header", &field.name.to_ascii_lowercase());
        }
        self.add_body("body", &request.body);
        if let Some(response) = &record.response {
            for field in &response.headers {
                self.add_name("response header", &field.name.to_ascii_lowercase());
            }
            self.add_body("response body", response.body.as_deref().unwrap_or_default());
        }
    }

    fn add_body(&mut self, what: &str, body: &[u8]) {
        if let Ok(json) = serde_json::from_slice::<Value>(body) {
            json_names(&json, &mut String::new(), &mut |pointer| self.add_name(what, pointer));
        }
    }

    fn add_name(&mut self, what: &str, name: &str) {
        if self.names.len() < NAME_COUNT_MAX {
            self.names.insert(format!("{what} {name}"));
        }
    }

    fn difference(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.count != other.count {
            lines.push(format!("requests  {} -> {}", self.count, other.count));
        }
        if self.count > 0 && other.count > 0 {
            if self.statuses != other.statuses {
                lines.push(format!("statuses  {} -> {}", self.shown_statuses(), other.shown_statuses()));
            }
            let only = |one: &Self, two: &Self| one.names.difference(&two.names).cloned().collect::<Vec<_>>();
            for (side, names) in [("first", only(self, other)), ("second", only(other, self))] {
                lines.extend(names.iter().map(|name| format!("only in the {side}: {name}")));
            }
        }
        if let (false, Some(one), Some(two)) = (lines.is_empty(), self.latency_ms(), other.latency_ms()) {
            lines.push(format!("mean time  {one:.1} ms -> {two:.1} ms"));
        }
        lines
    }

    fn shown_statuses(&self) -> String {
        let shown: Vec<String> =
            self.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }

    fn latency_ms(&self) -> Option<f64> {
        (self.latency_count > 0).then(|| self.latency_ns_sum as f64 / self.latency_count as f64 / 1e6)
    }
}

/// Pointers to the values of a JSON text; items of a list are one.
fn json_names(value: &Value, pointer: &mut String, give: &mut dyn FnMut(&str)) {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                pointer.push('/');
                pointer.push_str(name);
                json_names(field, pointer, give);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for item in items {
                pointer.push_str("/*");
                json_names(item, pointer, give);
                pointer.truncate(length);
            }
        }
        _ => give(pointer),
    }
}

/// Names kept of one kind of request.
const NAME_COUNT_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Request, Response};

    fn record(target: &str, field: &str, status: u16, body: &str) -> Record {
        let headers = vec![Field::new(field, "x")];
        let mut response = Response { status, latency_ns: 2_000_000, ..Response::default() };
        response.set_body(body.into());
        let request = Request {
            method: "GET".into(),
            authority: "h".into(),
            target: target.into(),
            headers,
            ..Request::default()
        };
        Record { request, response: Some(response), ..Record::default() }
    }

    fn side(records: &[Record]) -> Side {
        let mut side = Side::default();
        records.iter().for_each(|record| side.add(record));
        side
    }

    #[test]
    fn what_differs_is_reported_by_kinds_of_requests() {
        let one = side(&[record("/a/1?q=1", "A", 200, r#"{"id":1}"#), record("/b", "A", 200, "")]);
        let same = side(&[record("/b", "a", 200, ""), record("/a/2?q=9", "a", 200, r#"{"id":7}"#)]);
        assert_eq!(one.difference(&same), None);
        let two =
            side(&[record("/a/1?r=1", "B", 500, r#"{"id":1,"l":[{"x":1}]}"#), record("/c", "A", 200, "")]);
        let expected = "GET http://h/a/{id}
  statuses  1 x 200 -> 1 x 500
  only in the first: header a
  only in the first: query q
  only in the second: header b
  only in the second: query r
  only in the second: response body /l/*/x
  mean time  2.0 ms -> 2.0 ms
GET http://h/b
  requests  1 -> 0
GET http://h/c
  requests  0 -> 1
";
        assert_eq!(one.difference(&two).as_deref(), Some(expected));
    }
}
