//! Writes a k6 script: every request in order, with the recorded pauses, a group for each step of the client, a check of each recorded
//! status, and the extraction of what was learned: values of responses that later requests send.
//!
//! Owns: the script's text. Never: learns by itself; [`play::Learner`](crate::play::Learner) did.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Sink, lossless};
use crate::Record;
use crate::play::{Grammar, Learned, Live, Locator};

/// The writer.
pub struct K6<W> {
    out: W,
    learned: Learned,
    /// The script's name of each learned variable.
    names: Vec<String>,
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
    /// A script that does what was learned of the recording.
    pub fn new(out: W, learned: Learned) -> Self {
        let names = (1..).zip(&learned.variables).map(|(nth, one)| name(&one.locator, nth)).collect();
        Self {
            out,
            learned,
            names,
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
        writeln!(self.out, "export const options = {{ vus: 1, iterations: 1 }};\n{SEND}")?;
        let helpers: BTreeSet<&str> =
            self.learned.variables.iter().map(|one| helper(&one.locator).1).collect();
        helpers.iter().try_for_each(|helper| writeln!(self.out, "{helper}"))?;
        writeln!(self.out, "export default function () {{\n  let res;")?;
        for (name, variable) in self.names.iter().zip(&self.learned.variables) {
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

    /// The script waits for each answer by itself: a pause begins with the answer.
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
        let none = Live::default();
        let live = self.live.get(&session_of(record)).unwrap_or(&none);
        let url = expression(&self.names, live, request.url().as_bytes(), Context::Url);
        let mut headers = Map::new();
        let mut templates = String::new();
        for field in request.headers.iter().filter(|field| !field.is("accept-encoding")) {
            let value = expression(&self.names, live, &field.value, Context::Text);
            match value.starts_with('`') {
                true => templates.push_str(&format!(", {}: {value}", Value::from(field.name.as_str()))),
                false => drop(headers.insert(field.name.clone(), Value::from(lossless(&field.value)))),
            }
        }
        let fixed = Value::from(headers).to_string();
        let fixed = fixed.trim_start_matches('{').trim_end_matches('}');
        let headers = format!("{{ {} }}", format!("{fixed}{templates}").trim_start_matches(", "));
        let is_form =
            request.header("content-type").is_some_and(|kind| kind.starts_with(b"application/x-www-form"));
        let body = match std::str::from_utf8(&request.body) {
            Ok("") => "null".to_owned(),
            Ok(_) if is_form => expression(&self.names, live, &request.body, Context::Url),
            Ok(_) => expression(&self.names, live, &request.body, Context::Text),
            Err(_) => format!("encoding.b64decode('{}')", STANDARD.encode(&request.body)),
        };
        let name =
            if url.starts_with('`') { format!(", {}", Value::from(record.pattern())) } else { String::new() };
        writeln!(
            self.out,
            "    res = send({}, {url}, {body}, {headers}{name});",
            Value::from(request.method.as_str())
        )
    }

    fn look_at_response(&mut self, record: &Record) -> io::Result<()> {
        if let Some(response) = &record.response {
            let status = response.status;
            let what = Value::from(format!("{} is {status}", kind(record)));
            writeln!(self.out, "    check(res, {{ {what}: (r) => r.status === {status} }});")?;
        }
        for idx in self.learned.given_by(self.count - 1) {
            let (Some(variable), Some(name)) =
                (self.learned.variables.get(*idx as usize), self.names.get(*idx as usize))
            else {
                continue;
            };
            let (call, _) = helper(&variable.locator);
            writeln!(self.out, "    {name} = {call} ?? {name};")?;
            let live = self.live.entry(session_of(record)).or_default();
            live.set(variable.recorded.clone(), format!("{MARK}{idx}{MARK}").into_bytes());
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

/// How a live value is written where the recorded one was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// As it is, unless the recorded one was encoded.
    Text,
    /// Encoded, unless the recorded one was not.
    Url,
}

/// JavaScript for a text: a string, or a template that has the variables in it.
fn expression(names: &[String], live: &Live, bytes: &[u8], context: Context) -> String {
    let mut marked = bytes.to_vec();
    let grammar = if context == Context::Url { Grammar::Target } else { Grammar::Plain };
    if !live.put_in(&mut marked, grammar) {
        return Value::from(lossless(bytes)).to_string();
    }
    // What was encoded twice is encoded once: it stands in a URL within a URL.
    let text = lossless(&marked).replace("%2501", ENCODED).replace(ENCODED_MARK, ENCODED);
    let mut out = "`".to_owned();
    let mut rest = text.as_str();
    while let Some(begin) = rest.find([MARK, ENCODED_AS]) {
        let mark = if rest[begin..].starts_with(MARK) { MARK } else { ENCODED_AS };
        out.push_str(&template_text(&rest[..begin]));
        let after = &rest[begin + mark.len_utf8()..];
        let Some((idx, after)) = after.split_once(mark) else { break };
        let name = idx.parse().ok().and_then(|idx: usize| names.get(idx)).map_or("undefined", String::as_str);
        let is_encoded = mark == ENCODED_AS || context == Context::Url;
        out.push_str(&if is_encoded {
            format!("${{encodeURIComponent({name})}}")
        } else {
            format!("${{{name}}}")
        });
        rest = after;
    }
    out.push_str(&template_text(rest));
    out + "`"
}

/// Text within a template: as in a string, but for what begins an expression or ends it.
fn template_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('`', "\\`").replace("${", "\\${")
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

/// The call that finds a value in a response, and the function that it calls.
fn helper(locator: &Locator) -> (String, &'static str) {
    let quoted = |name: &str| Value::from(name).to_string();
    match locator {
        Locator::Cookie(name) => (format!("cookie(res, {})", quoted(name)), COOKIE),
        Locator::CookieDecoded(name) => {
            (format!("decodeURIComponent(cookie(res, {}) || '')", quoted(name)), COOKIE)
        }
        Locator::Header(name) => (format!("header(res, {})", quoted(name)), HEADER),
        Locator::LocationParameter(name) => {
            (format!("locationParameter(res, {})", quoted(name)), LOCATION_PARAMETER)
        }
        Locator::LocationSegment(nth) => (format!("locationSegment(res, {nth})"), LOCATION_SEGMENT),
        Locator::Json(pointer) => (format!("json(res, {})", quoted(pointer)), JSON),
        Locator::Input(name) => (format!("element(res, 'input', {}, 'value')", quoted(name)), ELEMENT),
        Locator::Meta(name) => (format!("element(res, 'meta', {}, 'content')", quoted(name)), ELEMENT),
        Locator::Named(name) => (format!("named(res, {})", quoted(name)), NAMED),
        Locator::LinkParameter(name) => (format!("linkParameter(res, {})", quoted(name)), LINK_PARAMETER),
    }
}

const SEND: &str = "
// Cookies are among the headers, as recorded: k6's own jar would send them twice.
function send(method, url, body, headers, name) {
  const tags = name ? { name } : {};
  return http.request(method, url, body, { headers, tags, redirects: 0, jar: new http.CookieJar() });
}
";

const COOKIE: &str = "function cookie(res, name) {
  const found = res.cookies[name];
  return found && found.length ? found[0].value : undefined;
}
";

const HEADER: &str = "function header(res, name) {
  const key = Object.keys(res.headers).find((key) => key.toLowerCase() === name);
  return key && res.headers[key].replace(/^Bearer /, '');
}
";

const LOCATION_PARAMETER: &str = "function locationParameter(res, name) {
  const query = (res.headers.Location || '').split('#')[0].split('?')[1] || '';
  const pair = query.split('&').map((pair) => pair.split('=')).find(([key]) => key === name);
  return pair && decodeURIComponent((pair[1] || '').replace(/\\+/g, ' '));
}
";

const LOCATION_SEGMENT: &str = "function locationSegment(res, nth) {
  const path = (res.headers.Location || '').split(/[?#]/)[0];
  return path.split('/').reverse()[nth] || undefined;
}
";

const JSON: &str = "function json(res, pointer) {
  let value;
  try {
    value = JSON.parse(res.body);
  } catch (_) {
    return undefined;
  }
  for (const name of pointer.split('/').slice(1)) {
    value = value === undefined || value === null ? undefined : value[name.replace(/~1/g, '/').replace(/~0/g, '~')];
  }
  return value === undefined || value === null ? undefined : String(value);
}
";

const ELEMENT: &str = "function element(res, tag, name, attribute) {
  const quoted = JSON.stringify(name);
  return res.html().find(`${tag}[name=${quoted}],${tag}[id=${quoted}]`).first().attr(attribute);
}
";

const NAMED: &str = r#"function named(res, name) {
  const own = name.replace(/[^\w]/g, '\\$&');
  const text = new RegExp(`(?:^|[^\\w$.-])${own}\\\\?["']?\\s*[:=]\\s*\\\\?["'\`]([^"'\`<>\\r\\n]+)`).exec(res.body);
  const element = new RegExp(`<(?:[\\w.-]+:)?${own}(?:\\s[^<>]*)?>([^<>]+)</`).exec(res.body);
  const found = text || element;
  return found ? found[1].replace(/\\u([0-9A-Fa-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16))).replace(/\\\//g, '/') : undefined;
}
"#;

const LINK_PARAMETER: &str = r#"function linkParameter(res, name) {
  const own = name.replace(/[^\w]/g, '\\$&');
  const found = new RegExp(`(?:[?&]|&amp;)${own}=([^&"'<>\\s#;]+)`).exec(res.body);
  return found ? decodeURIComponent(found[1]) : undefined;
}
"#;

/// Stands around a variable's number until the text is made; no text of HTTP has it.
const MARK: char = '\u{1}';

/// What the mark becomes where it is encoded, and what stands for it then.
const ENCODED_MARK: &str = "%01";
const ENCODED: &str = "\u{2}";
const ENCODED_AS: char = '\u{2}';

/// Shorter pauses are those between requests that belong together.
const PAUSE_MS_MIN: u64 = 5;

/// A pause after which a client does something new.
const STEP_PAUSE_MS: u64 = 1000;
