//! Changes that keep recorded requests valid: fields, parameters, JSON values and cookies set by templates (`template`), texts
//! replaced by regular expressions, times moved to the present (`times`), ids of each copy's own (`ids`), tokens signed
//! again (`jwt`).

mod found;
mod ids;
#[cfg(feature = "sign")]
mod jwt;
mod message;
mod template;
mod times;

use regex::bytes::Regex;
use serde_json::Value;
use squall_plan::{Change, InputError};

use crate::play::Live;
use crate::redact::REDACTED_NUMBER;
use crate::{Field, Request, multipart, pattern};
use ids::Ids;
pub use message::{MessageTemplate, check_message};
use template::{Table, Template};

/// Changes, ready to be made.
#[derive(Debug)]
pub struct Changes {
    steps: Vec<Step>,
    table: Table,
}

#[derive(Debug)]
enum Step {
    SetHeader {
        name: String,
        value: Template,
    },
    DropHeader {
        name: String,
    },
    SetQuery {
        name: String,
        value: Template,
    },
    SetForm {
        name: String,
        value: Template,
    },
    SetJson {
        pointer: String,
        value: Template,
    },
    SetCookie {
        name: String,
        value: Template,
    },
    Replace {
        pattern: Regex,
        with: Template,
    },
    ShiftTimes,
    UniqueIds(Ids),
    #[cfg(feature = "sign")]
    SignJwt(jwt::Signer),
}

/// What changes depend on.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Number of the copy, from 0.
    pub user: u32,
    /// How often the recording was at its end before, for this copy.
    pub round: u32,
    /// Number of the record, from 0.
    pub ordinal: u64,
    /// A number that no other request of the run has, from 1.
    pub unique: u64,
    /// When the request was recorded, in nanoseconds since the epoch.
    pub recorded_ns: u64,
    /// The present, in nanoseconds since the epoch.
    pub now_ns: u64,
    /// Values that the server gave in place of recorded ones; they stand in the request already.
    pub live: Option<&'a Live>,
}

impl Changes {
    /// Reads the changes of a plan. `seed` is another number in each run.
    ///
    /// # Errors
    /// When a template, a table, a key or a regular expression cannot be read.
    pub fn new(changes: &[Change], seed: u64) -> Result<Self, InputError> {
        let mut table = Table::default();
        for change in changes {
            if let Change::Table { text, is_per_request } = change {
                table = Table::read(text, *is_per_request)?;
            }
        }
        let steps = changes.iter().filter_map(|change| step(change, &table, seed).transpose());
        Ok(Self { steps: steps.collect::<Result<_, _>>()?, table })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Changes a request.
    pub fn apply(&self, request: &mut Request, context: &Context<'_>) {
        request.change(|request| self.apply_marked(request, context));
    }

    /// Changes a message of a WebSocket as the body of a request would be.
    pub fn apply_to_message(&self, bytes: &mut Vec<u8>, context: &Context<'_>) {
        if !self.is_empty() {
            let mut request = Request { body: std::mem::take(bytes), ..Request::default() };
            self.apply(&mut request, context);
            *bytes = request.body;
        }
    }

    fn apply_marked(&self, request: &mut Request, context: &Context<'_>) {
        let fill = |template: &Template| template.fill(&self.table, context);
        for step in &self.steps {
            match step {
                Step::SetHeader { name, value } => set_header(request, name, fill(value)),
                Step::DropHeader { name } => request.headers.retain(|field| !field.is(name)),
                Step::SetQuery { name, value } => set_query(request, name, &fill(value)),
                Step::SetForm { name, value } => multipart::set_field(request, name, &fill(value)),
                Step::SetJson { pointer, value } => {
                    set_json(request, pointer, fill(value), value.has_column());
                }
                Step::SetCookie { name, value } => set_cookie(request, name, &fill(value)),
                Step::Replace { pattern, with } => {
                    replace(request, pattern, with.fill_replacement(&self.table, context).as_bytes());
                }
                Step::ShiftTimes => times::shift(request, context),
                Step::UniqueIds(ids) => ids.replace(request, context),
                #[cfg(feature = "sign")]
                Step::SignJwt(signer) => signer.replace(request, &self.table, context),
            }
        }
    }
}

/// Whether a template is one, whatever columns it names.
///
/// # Errors
/// When it is none.
pub fn check_template(text: &str) -> Result<(), InputError> {
    Template::read(text).map(drop)
}

/// The same of what stands in the place of a regular expression's match.
///
/// # Errors
/// When it is none.
pub fn check_replacement(text: &str) -> Result<(), InputError> {
    Template::read_replacement(text).map(drop)
}

fn step(change: &Change, table: &Table, seed: u64) -> Result<Option<Step>, InputError> {
    let template = |value: &String| Template::with(value, table);
    Ok(Some(match change {
        Change::SetHeader { name, value } => Step::SetHeader { name: name.clone(), value: template(value)? },
        Change::DropHeader { name } => Step::DropHeader { name: name.clone() },
        Change::SetQuery { name, value } => Step::SetQuery { name: name.clone(), value: template(value)? },
        Change::SetForm { name, value } => Step::SetForm { name: name.clone(), value: template(value)? },
        Change::SetJson { pointer, value } => {
            Step::SetJson { pointer: pointer.clone(), value: template(value)? }
        }
        Change::SetCookie { name, value } => Step::SetCookie { name: name.clone(), value: template(value)? },
        Change::Replace { pattern, with } => Step::Replace {
            pattern: pattern::compile(pattern)?,
            with: Template::of_replacement(with, table)?,
        },
        Change::Table { .. } => return Ok(None),
        Change::ShiftTimes => Step::ShiftTimes,
        Change::UniqueIds { pattern } => Step::UniqueIds(Ids::new(pattern.as_deref(), seed)?),
        #[cfg(feature = "sign")]
        Change::SignJwt { key, claims } => Step::SignJwt(jwt::Signer::new(key, claims, table)?),
        #[cfg(not(feature = "sign"))]
        Change::SignJwt { .. } => return Err(refused("this build cannot sign", "build it with `sign`")),
    }))
}

fn refused(reason: impl Into<String>, help: &str) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.to_owned() }
}

fn set_header(request: &mut Request, name: &str, value: String) {
    let value: Vec<u8> =
        value.into_bytes().into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect();
    match request.headers.iter().position(|field| field.is(name)) {
        None => request.headers.push(Field::new(name, value)),
        Some(first) => {
            request.headers[first].value = value;
            let mut nth = 0;
            request.headers.retain(|field| {
                nth += 1;
                nth - 1 <= first || !field.is(name)
            });
        }
    }
}

fn set_query(request: &mut Request, name: &str, value: &str) {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}={}", encoded(name), encoded(value));
    let is_it = |part: &str| part.split('=').next().is_some_and(|own| own == name || own == encoded(name));
    let mut parts: Vec<String> =
        query.split('&').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    match parts.iter().position(|part| is_it(part)) {
        Some(at) => parts[at] = pair,
        None => parts.push(pair),
    }
    request.target = format!("{path}?{}", parts.join("&"));
}

/// `keeps_text`: where there is a string, the value is one, whatever it looks like: tables have no types.
fn set_json(request: &mut Request, pointer: &str, value: String, keeps_text: bool) {
    let Ok(mut json) = serde_json::from_slice::<Value>(&request.body) else { return };
    let text = keeps_text.then(|| Value::String(value.clone()));
    let typed = serde_json::from_str(&value).unwrap_or(Value::String(value));
    let new = NewValue { text, typed };
    let segments: Vec<String> =
        pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
    if set_value(&mut json, &segments, &new) {
        request.body = json.to_string().into_bytes();
    }
}

/// What is set in JSON: this where a string is, else that.
struct NewValue {
    text: Option<Value>,
    typed: Value,
}

/// Whether this string stands for a number.
fn is_redacted_number(json: &Value) -> bool {
    json.as_str().is_some_and(|text| text.starts_with(REDACTED_NUMBER))
}

/// Sets every value at a path in which `*` is any name and any index; whether there was one.
fn set_value(json: &mut Value, segments: &[String], value: &NewValue) -> bool {
    let Some((segment, rest)) = segments.split_first() else {
        let text = value.text.as_ref().filter(|_| json.is_string() && !is_redacted_number(json));
        *json = text.unwrap_or(&value.typed).clone();
        return true;
    };
    let set = |inner: &mut Value| set_value(inner, rest, value);
    match json {
        // Every one is set: the count takes them all.
        Value::Object(fields) if segment == "*" => {
            fields.values_mut().map(set).filter(|is_set| *is_set).count() > 0
        }
        Value::Array(items) if segment == "*" => {
            items.iter_mut().map(set).filter(|is_set| *is_set).count() > 0
        }
        Value::Object(fields) => fields.get_mut(segment).is_some_and(set),
        Value::Array(items) => {
            segment.parse::<usize>().ok().and_then(|idx| items.get_mut(idx)).is_some_and(set)
        }
        _ => false,
    }
}

fn set_cookie(request: &mut Request, name: &str, value: &str) {
    let pair = format!("{name}={value}");
    let cookies = request.header("cookie").map(|value| String::from_utf8_lossy(value).into_owned());
    let mut pairs: Vec<String> =
        cookies.unwrap_or_default().split("; ").filter(|pair| !pair.is_empty()).map(str::to_owned).collect();
    match pairs.iter().position(|own| own.split('=').next() == Some(name)) {
        Some(at) => pairs[at] = pair,
        None => pairs.push(pair),
    }
    set_header(request, "Cookie", pairs.join("; "));
}

fn replace(request: &mut Request, pattern: &Regex, with: &[u8]) {
    if let Ok(target) = String::from_utf8(pattern.replace_all(request.target.as_bytes(), with).into_owned())
        && target.bytes().all(|byte| byte > b' ' && byte != 0x7f)
    {
        request.target = target;
    }
    if pattern.is_match(&request.body) {
        request.body = pattern.replace_all(&request.body, with).into_owned();
    }
}

#[cfg(test)]
mod tests;
