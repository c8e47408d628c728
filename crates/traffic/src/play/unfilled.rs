//! Placeholders of redacted secrets that a replay would send as they are: no response gives the live value, and no change sets one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;

use memchr::memmem;
use serde_json::Value;

use super::learn::LEARN_BYTES_MAX;
use super::{Learned, tokens};
use crate::change::{Changes, Context};
use crate::redact::PLACEHOLDER;
use crate::store::{RecordView, Recording};
use crate::{Record, RecordedMessage, Request, multipart};

/// A redacted value that requests would carry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unfilled {
    /// Where it is: `password in the form of POST http://x/login`.
    pub place: String,
    /// The flag that sets it.
    pub flag: String,
    /// Requests that carry it.
    pub request_count: u64,
}

impl Unfilled {
    /// Those of the beginning of a recording, as far as it is looked through for values to learn; the most frequent first.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn of(recording: &Recording, learns: bool, changes: &Changes) -> io::Result<Vec<Self>> {
        if !has_placeholders(recording)? {
            return Ok(Vec::new());
        }
        let learned = if learns { Learned::of(recording)? } else { Learned::default() };
        let given = given_by(&learned);
        let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
        let finder = memmem::Finder::new(PLACEHOLDER);
        let mut cursor = recording.cursor(1 << 20);
        for ordinal in 0.. {
            let Some(frame) = cursor.peek()? else { break };
            if cursor.passed_bytes() >= LEARN_BYTES_MAX
                || learned.looked_through.is_some_and(|count| ordinal >= count)
            {
                break;
            }
            let payload = cursor.take(&frame)?;
            let Some(view) = finder.find(payload).and_then(|_| RecordView::read(payload)) else { continue };
            let mut record = view.record(&frame);
            let context = Context {
                user: 0,
                round: 0,
                ordinal,
                unique: 1,
                recorded_ns: frame.time_ns,
                now_ns: frame.time_ns,
                live: None,
            };
            changes.apply(&mut record.request, &context);
            let mut open = open_values(&record, &given);
            open.extend(open_in_messages(&mut record, &given, &|bytes| {
                changes.apply_to_message(bytes, &context);
            }));
            let places = open.into_iter().map(|open| (open.place, open.flag));
            for place in places.collect::<BTreeSet<_>>() {
                *found.entry(place).or_default() += 1;
            }
        }
        let unfilled =
            found.into_iter().map(|((place, flag), request_count)| Self { place, flag, request_count });
        let mut unfilled: Vec<Self> = unfilled.collect();
        unfilled.sort_by_key(|one| std::cmp::Reverse(one.request_count));
        Ok(unfilled)
    }
}

/// A redacted value that a script has to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplied {
    /// What stands for it in the recording.
    pub placeholder: Vec<u8>,
    /// Its name in capitals, which no other has: `PASSWORD`.
    pub name: String,
    /// Where it is: `password in the form of POST http://x/login`.
    pub place: String,
}

/// Collects redacted values that a script has to be given.
#[derive(Debug)]
pub struct Suppliers {
    given: HashSet<Vec<u8>>,
    found: Vec<Supplied>,
}

impl Suppliers {
    /// Of the recording that this was learned of.
    pub fn new(learned: &Learned) -> Self {
        Self { given: given_by(learned), found: Vec::new() }
    }

    /// Adds those of a record which are not there yet.
    pub fn add(&mut self, record: &Record) {
        for open in open_values(record, &self.given) {
            let is_known = self.found.iter().any(|one| one.placeholder == open.placeholder);
            if !is_known && self.found.len() < SUPPLIED_COUNT_MAX {
                let name = self.free_name(&open.name);
                self.found.push(Supplied { placeholder: open.placeholder, name, place: open.place });
            }
        }
    }

    /// All of them, in the order of their first use.
    pub fn finish(self) -> Vec<Supplied> {
        self.found
    }

    fn free_name(&self, field: &str) -> String {
        let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String =
            field.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).chars().map(capital).collect();
        let name = if name.is_empty() { "VALUE".to_owned() } else { name };
        let numbered = (2..).map(|nth| format!("{name}_{nth}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| self.found.iter().all(|one| one.name != *name)).unwrap_or(name)
    }
}

/// Placeholders that responses give.
fn given_by(learned: &Learned) -> HashSet<Vec<u8>> {
    let mut given = HashSet::new();
    for variable in &learned.variables {
        tokens::redacted(&variable.recorded, &mut |value| {
            given.insert(value.to_vec());
        });
    }
    given
}

/// Whether there is any placeholder at all.
fn has_placeholders(recording: &Recording) -> io::Result<bool> {
    let finder = memmem::Finder::new(PLACEHOLDER);
    let mut cursor = recording.cursor(1 << 20);
    while let Some(frame) = cursor.peek()? {
        if cursor.passed_bytes() >= LEARN_BYTES_MAX {
            break;
        }
        if finder.find(cursor.take(&frame)?).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes a value, its name, whose it is, and the flag that sets it.
type Add<'a> = dyn FnMut(&[u8], &str, &str, String) + 'a;

/// A placeholder in a request that no response gives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    place: String,
    flag: String,
    /// Of the field: `password`.
    name: String,
    placeholder: Vec<u8>,
}

/// Each placeholder of a record's request that no response gives.
fn open_values(record: &Record, given: &HashSet<Vec<u8>>) -> Vec<Open> {
    let request = &record.request;
    let kind = format!("{} {}", request.method, record.pattern());
    let mut found: Vec<Open> = Vec::new();
    let mut add = |value: &[u8], name: &str, whose: &str, flag: String| {
        tokens::redacted(value, &mut |placeholder| {
            if given.contains(placeholder) {
                return;
            }
            // What had to be encoded ends in a sign that has to be, too.
            if let Some(Open { placeholder: shorter, .. }) = found.last_mut()
                && placeholder.strip_suffix(b"=") == Some(shorter.as_slice())
            {
                shorter.push(b'=');
                return;
            }
            let is_token = value.windows(3).any(|part| part == b"eyJ");
            let flag = if is_token { format!("{flag}, or --sign-jwt KEYFILE") } else { flag.clone() };
            let place = match (name, whose) {
                ("", whose) => format!("{whose} of {kind}"),
                (name, "cookie" | "header") => format!("{whose} {name} of {kind}"),
                (name, whose) => format!("{name} in the {whose} of {kind}"),
            };
            let name = name.rsplit('/').find(|part| part.parse::<u64>().is_err()).unwrap_or_default();
            found.push(Open { place, flag, name: name.to_owned(), placeholder: placeholder.to_vec() });
        });
    };
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    add(path.as_bytes(), "", "the path", REPLACE_FLAG.to_owned());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        add(value.as_bytes(), &name, "query", format!("--set-query '{name}=VALUE'"));
    }
    for field in &request.headers {
        let text = String::from_utf8_lossy(&field.value);
        if field.is("cookie") {
            for (name, value) in text.split("; ").filter_map(|pair| pair.split_once('=')) {
                add(value.as_bytes(), name, "cookie", format!("--set-cookie '{name}=VALUE'"));
            }
        } else if !field.is("referer") {
            let scheme = text.split_once(' ').map_or("", |(scheme, _)| scheme);
            let value = if scheme.is_empty() || scheme.len() > 10 {
                "VALUE".to_owned()
            } else {
                format!("{scheme} VALUE")
            };
            add(&field.value, &field.name, "header", format!("--set-header '{}: {value}'", field.name));
        }
    }
    body_places(request, &mut add);
    found.sort();
    found.dedup();
    found
}

/// Those of what is said on the WebSocket that it opens, whose messages are changed as bodies are.
fn open_in_messages(
    record: &mut Record,
    given: &HashSet<Vec<u8>>,
    change: &dyn Fn(&mut Vec<u8>),
) -> Vec<Open> {
    let messages = record.response.as_mut().map(|response| std::mem::take(&mut response.messages));
    let mut found = Vec::new();
    for message in messages.into_iter().flatten().filter(RecordedMessage::is_said) {
        record.request.headers.clear();
        record.request.body = message.bytes;
        change(&mut record.request.body);
        found.extend(open_values(record, given));
    }
    found
}

fn body_places(request: &Request, add: &mut Add<'_>) {
    let body = &request.body;
    if memmem::find(body, PLACEHOLDER.as_bytes()).is_none() {
        return;
    }
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        return json_places(&json, &mut String::new(), add);
    }
    let is_form = body.contains(&b'=') && !body.contains(&b'\n') && !body.starts_with(b"<");
    if is_form || multipart::boundary(request.header("content-type").unwrap_or_default()).is_some() {
        multipart::each_field(request, &mut |name, value| {
            add(value, name, "form", format!("--set-form '{name}=VALUE'"));
        });
        return;
    }
    add(body, "", "the body", REPLACE_FLAG.to_owned());
}

fn json_places(json: &Value, pointer: &mut String, add: &mut Add<'_>) {
    let length = pointer.len();
    let mut enter = |name: &str, inner: &Value| {
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        json_places(inner, pointer, add);
        pointer.truncate(length);
    };
    match json {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| enter(name, inner)),
        Value::Array(items) => items.iter().enumerate().for_each(|(idx, item)| enter(&idx.to_string(), item)),
        Value::String(text) => add(text.as_bytes(), pointer, "JSON", format!("--set-json '{pointer}=VALUE'")),
        _ => {}
    }
}

/// Values that a script is given at most: no one sets more by hand.
const SUPPLIED_COUNT_MAX: usize = 200;

const REPLACE_FLAG: &str = "--replace 'redacted-...=>VALUE'";
