//! Writes a k6 script: every request in order, with the recorded pauses, a group for each step of the client, a check of each recorded
//! status, the extraction of what was learned (values of responses that later requests send), and the environment variables that stand
//! for redacted values which no response gives.
//!
//! Owns: which statements the script has, in which order. Never: learns; [`play::Learner`](crate::play::Learner) did.

mod helpers;
mod template;

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use serde_json::{Map, Value};

use self::helpers::{BYTES, SEND, extraction};
use self::template::{Text, Variable};
use super::sink::{Printable, Sink, lossless};
use crate::Record;
use crate::play::{Grammar, Learned, Live, Locator, Supplied};
use crate::redact::REDACTED_NUMBER;

/// The writer.
pub struct K6<W> {
    out: Printable<W>,
    learned: Learned,
    supplied: Vec<Supplied>,
    variables: Vec<Variable>,
    /// By session: which variable stands for which recorded value.
    live: HashMap<u64, Live>,
    /// Requests so far.
    count: u64,
    group_count: u64,
    /// When the former request was answered; where that is not known, when it began.
    answered_ns: u64,
    /// Pauses too short to be written, together.
    owed_ns: u64,
}

impl<W: Write> K6<W> {
    /// A script that does what was learned of the recording, and takes what is supplied from its environment.
    pub fn new(out: W, learned: Learned, supplied: Vec<Supplied>) -> Self {
        let is_number = |recorded: &[u8]| recorded.starts_with(REDACTED_NUMBER.as_bytes());
        let of_learned = (1..).zip(&learned.variables).map(|(nth, one)| Variable {
            name: name(&one.locator, nth),
            is_number: is_number(&one.recorded),
        });
        let of_supplied = supplied.iter().map(|one| Variable {
            name: format!("{GIVEN}.{}", one.name),
            is_number: is_number(&one.placeholder),
        });
        let variables = of_learned.chain(of_supplied).collect();
        Self {
            out: Printable(out),
            learned,
            supplied,
            variables,
            live: HashMap::new(),
            count: 0,
            group_count: 0,
            answered_ns: u64::MAX,
            owed_ns: 0,
        }
    }

    fn head(&mut self) -> io::Result<()> {
        writeln!(self.out, "import http from 'k6/http';\nimport encoding from 'k6/encoding';")?;
        writeln!(self.out, "import {{ check, group, sleep }} from 'k6';\n")?;
        writeln!(
            self.out,
            "export const options = {{ vus: 1, iterations: 1, thresholds: {{ checks: ['rate>0.95'] }} }};\n{SEND}\n{BYTES}"
        )?;
        let calls = self.learned.variables.iter().map(|one| extraction(&one.locator));
        let helpers: BTreeSet<&str> = calls.flat_map(|(_, helpers)| helpers.iter().copied()).collect();
        helpers.iter().try_for_each(|helper| writeln!(self.out, "{helper}"))?;
        self.environment()?;
        writeln!(self.out, "export default function () {{\n  let res;")?;
        for (Variable { name, .. }, variable) in self.variables.iter().zip(&self.learned.variables) {
            let recorded = Value::from(lossless(&variable.recorded));
            writeln!(
                self.out,
                "  let {name} = {recorded}; // {} of {}",
                plain(&variable.locator.to_string()),
                plain(&variable.source)
            )?;
        }
        Ok(())
    }

    /// Constants for what the script takes from its environment, and a warning for each that is not there.
    fn environment(&mut self) -> io::Result<()> {
        if self.supplied.is_empty() {
            return Ok(());
        }
        writeln!(
            self.out,
            "// Redacted in the recording, and not in any response: set each with -e NAME=VALUE."
        )?;
        writeln!(self.out, "const {GIVEN} = {{")?;
        for one in &self.supplied {
            let placeholder = Value::from(lossless(&one.placeholder));
            writeln!(self.out, "  {0}: __ENV.{0} ?? {placeholder}, // {1}", one.name, plain(&one.place))?;
        }
        writeln!(self.out, "}};\n{SETUP}")
    }

    /// The script waits for each answer: a pause begins with the answer.
    fn pause_until(&mut self, time_ns: u64) -> Option<u64> {
        self.owed_ns += time_ns.saturating_sub(self.answered_ns);
        let pause_ms = self.owed_ns / 1_000_000;
        if pause_ms < PAUSE_MS_MIN {
            return None;
        }
        self.owed_ns = 0;
        Some(pause_ms)
    }

    /// Begins a group where the client began a step: it opened a page, or had paused.
    fn begin(&mut self, record: &Record, pause_ms: Option<u64>) -> io::Result<()> {
        let is_page = record.request.header("sec-fetch-mode") == Some(b"navigate");
        let is_step = self.count == 1 || is_page || pause_ms.is_some_and(|pause| pause >= STEP_PAUSE_MS);
        if is_step && self.count > 1 {
            self.out.write_all(b"  });\n")?;
        }
        if let Some(pause_ms) = pause_ms {
            let indent = if is_step { "  " } else { "    " };
            writeln!(self.out, "{indent}sleep({});", pause_ms as f64 / 1e3)?;
        }
        if is_step {
            self.group_count += 1;
            let title = format!("{:02} {}", self.group_count, kind(record));
            writeln!(self.out, "  group({}, function () {{", Value::from(title))?;
        }
        Ok(())
    }

    fn send(&mut self, record: &Record) -> io::Result<()> {
        let request = &record.request;
        let none = self.nothing_learned();
        let live = self.live.get(&session_of(record)).unwrap_or(&none);
        let text = Text { variables: &self.variables, live };
        let url = text.expression(request.url().as_bytes(), Grammar::Target);
        let mut headers = Map::new();
        let mut templates = String::new();
        for field in request.headers.iter().filter(|field| !field.is("accept-encoding")) {
            let grammar = if field.is("referer") { Grammar::Target } else { Grammar::Plain };
            let value = text.expression(&field.value, grammar);
            match value.starts_with('`') {
                true => templates.push_str(&format!(", {}: {value}", Value::from(field.name.as_str()))),
                false => drop(headers.insert(field.name.clone(), Value::from(lossless(&field.value)))),
            }
        }
        let fixed = Value::from(headers).to_string();
        let fixed = fixed.trim_start_matches('{').trim_end_matches('}');
        let headers = format!("{{ {} }}", format!("{fixed}{templates}").trim_start_matches(", "));
        let grammar = Grammar::of_body(request.header("content-type"), &request.body);
        let body = match request.body.as_slice() {
            b"" => "null".to_owned(),
            body if std::str::from_utf8(body).is_ok() => text.expression(body, grammar),
            body => text.bytes(body),
        };
        let name =
            if url.starts_with('`') { format!(", {}", Value::from(record.pattern())) } else { String::new() };
        writeln!(
            self.out,
            "    res = send({}, {url}, {body}, {headers}{name});",
            Value::from(request.method.as_str())
        )
    }

    /// What a session begins with: nothing but what the environment gives.
    fn nothing_learned(&self) -> Live {
        let mut live = Live::default();
        for (idx, one) in (self.learned.variables.len()..).zip(&self.supplied) {
            live.set(one.placeholder.clone(), template::mark(idx));
        }
        live
    }

    fn look_at_response(&mut self, record: &Record) -> io::Result<()> {
        if let Some(response) = &record.response {
            let status = response.status;
            let what = Value::from(format!("{} is {status}", kind(record)));
            writeln!(self.out, "    check(res, {{ {what}: (r) => r.status === {status} }});")?;
        }
        for idx in self.learned.given_by(self.count - 1) {
            let (Some(variable), Some(Variable { name, .. })) =
                (self.learned.variables.get(*idx as usize), self.variables.get(*idx as usize))
            else {
                continue;
            };
            let (call, _) = extraction(&variable.locator);
            writeln!(self.out, "    {name} = {call} ?? {name};")?;
            let (recorded, mark) = (variable.recorded.clone(), template::mark(*idx as usize));
            let session = session_of(record);
            match self.live.get_mut(&session) {
                Some(live) => live.set(recorded, mark),
                None => {
                    let mut live = self.nothing_learned();
                    live.set(recorded, mark);
                    self.live.insert(session, live);
                }
            }
        }
        Ok(())
    }
}

impl<W: Write> Sink for K6<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.count == 0 {
            self.head()?;
        }
        self.count += 1;
        let pause_ms = self.pause_until(record.time_ns);
        self.answered_ns =
            record.time_ns + record.response.as_ref().map_or(0, |response| response.latency_ns);
        self.begin(record, pause_ms)?;
        self.send(record)?;
        self.look_at_response(record)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        match self.count {
            0 => self.head()?,
            _ => self.out.write_all(b"  });\n")?,
        }
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}

/// Method and path without what varies.
fn kind(record: &Record) -> String {
    let pattern = record.pattern();
    let path =
        pattern.split_once("://").map_or(pattern.as_str(), |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    format!("{} {path}", record.request.method)
}

fn session_of(record: &Record) -> u64 {
    if record.session == 0 { record.connection } else { record.session }
}

/// A name that is no word of JavaScript: it ends in a number.
fn name(locator: &Locator, nth: usize) -> String {
    let text = match locator {
        Locator::Cookie(name)
        | Locator::CookieDecoded(name)
        | Locator::Header(name)
        | Locator::LocationParameter(name)
        | Locator::Input(name)
        | Locator::Meta(name)
        | Locator::Named(name)
        | Locator::LinkParameter(name) => name,
        Locator::Json(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
        Locator::LocationSegment(_) => "segment",
    };
    let word = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let word = if word.is_empty() { "value" } else { word };
    let word: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{word}_{nth}")
}

/// Text for a comment.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What the script calls the values of its environment.
const GIVEN: &str = "given";

const SETUP: &str = "export function setup() {
  for (const name of Object.keys(given).filter((name) => __ENV[name] === undefined)) {
    console.warn(`${name} was redacted in the recording: set it with -e ${name}=VALUE`);
  }
}
";

/// Shorter pauses are those between requests that belong together.
const PAUSE_MS_MIN: u64 = 5;

/// A pause after which a client does something new.
const STEP_PAUSE_MS: u64 = 1000;
