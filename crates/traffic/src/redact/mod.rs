//! Redaction: secrets of recorded traffic are replaced before they reach a disk.
//!
//! A secret is found by its place (`find`, `json`, `text`) or by a rule of the user (`rules`); from then on its value is replaced wherever it
//! occurs, in requests and responses, however it is encoded (`values`). The placeholder is made of the value and of a key that lives only as
//! long as the recorder: nothing of the secret can be learned from it, yet the same secret has the same placeholder everywhere. So what a
//! response gives can still be followed into later requests, and replay puts the live value there.

mod find;
mod json;
mod rules;
mod spooled;
mod text;
mod values;

use std::sync::{Mutex, PoisonError};

pub use rules::Rules;
pub use values::{PLACEHOLDER, REDACTED_NUMBER};

use crate::decode::decoded;
use crate::{Field, Peer, Record, RecordedKind, Request, Response};
use find::Finder;
use values::Values;

/// Replaces secrets; one for a whole recording.
#[derive(Debug, Default)]
pub struct Redactor {
    rules: Rules,
    values: Mutex<Values>,
}

/// A body without its content coding, while its secrets are replaced.
#[derive(Debug)]
struct Opened {
    plain: Vec<u8>,
    is_changed: bool,
    is_opaque: bool,
}

impl Redactor {
    /// A redactor with a new key.
    pub fn new(rules: Rules) -> Self {
        Self { rules, values: Mutex::default() }
    }

    /// Replaces every secret of a record; whether a body was left out because its content coding is not known.
    pub fn redact(&self, record: &mut Record) -> bool {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let Record { request, response, .. } = record;
        spooled::drop_opaque(request);
        let swept = request.change(|request| self.redact_parts(&mut values, request, response.as_mut()));
        spooled::sweep(&values, request);
        swept.1
    }

    fn redact_parts(
        &self,
        values: &mut Values,
        request: &mut Request,
        response: Option<&mut Response>,
    ) -> (bool, bool) {
        let mut response = response;
        let mut sent = Opened::of(&request.body, &request.headers);
        let mut finder = Finder { rules: &self.rules, values, is_request: true };
        if let Some(target) = finder.url(&request.target, 0) {
            request.target = target;
        }
        sent.change(|plain| finder.body(plain, content_type(&request.headers)));
        finder.fields(&mut request.headers);
        let mut answered = Opened::none();
        if let Some(response) = &mut response {
            answered = Opened::of(response.body.as_deref().unwrap_or_default(), &response.headers);
            finder.is_request = false;
            answered.change(|plain| finder.body(plain, content_type(&response.headers)));
            finder.fields(&mut response.headers);
            for message in &mut response.messages {
                finder.is_request = message.by == Peer::Client;
                let redacted = match message.kind {
                    RecordedKind::Text => finder.message(&message.bytes),
                    RecordedKind::Binary | RecordedKind::Close => None,
                };
                message.bytes = redacted.unwrap_or_else(|| std::mem::take(&mut message.bytes));
            }
        }
        sweep(values, request, response, (sent, answered))
    }

    /// Replaces what was found to be a secret after this record was redacted; whether there was any.
    pub fn sweep(&self, record: &mut Record) -> bool {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let Record { request, response, .. } = record;
        let answered = response.as_ref().map_or_else(Opened::none, |response| {
            Opened::of(response.body.as_deref().unwrap_or_default(), &response.headers)
        });
        let swept = request.change(|request| {
            let sent = Opened::of(&request.body, &request.headers);
            sweep(&values, request, response.as_mut(), (sent, answered))
        });
        spooled::sweep(&values, request) | swept.0
    }
}

/// Whether anything was replaced, and whether a body was left out.
fn sweep(
    values: &Values,
    request: &mut Request,
    response: Option<&mut Response>,
    (mut sent, mut answered): (Opened, Opened),
) -> (bool, bool) {
    let mut is_changed = false;
    if let Some(target) = values.sweep(request.target.as_bytes()) {
        request.target = String::from_utf8_lossy(&target).into_owned();
        is_changed = true;
    }
    sent.change(|plain| values.sweep(plain));
    is_changed |= sweep_fields(values, &mut request.headers) | sent.is_changed;
    if sent.is_opaque {
        request.drop_body();
    } else if sent.is_changed {
        request.body = sent.plain;
        request.headers.retain(|field| !field.is("content-encoding"));
    }
    if let Some(response) = response {
        answered.change(|plain| values.sweep(plain));
        is_changed |= sweep_fields(values, &mut response.headers) | answered.is_changed;
        if answered.is_opaque {
            response.drop_body();
        } else if answered.is_changed {
            response.set_body(answered.plain);
            response.headers.retain(|field| !field.is("content-encoding"));
        }
        for message in &mut response.messages {
            if let Some(swept) = values.sweep(&message.bytes) {
                message.bytes = swept;
                is_changed = true;
            }
        }
    }
    (is_changed, sent.is_opaque || answered.is_opaque)
}

fn sweep_fields(values: &Values, fields: &mut [Field]) -> bool {
    let mut is_changed = false;
    for field in fields {
        if let Some(value) = values.sweep(&field.value) {
            field.value = value;
            is_changed = true;
        }
    }
    is_changed
}

fn content_type(fields: &[Field]) -> &[u8] {
    fields.iter().find(|field| field.is("content-type")).map_or(b"", |field| &field.value)
}

impl Opened {
    fn none() -> Self {
        Self { plain: Vec::new(), is_changed: false, is_opaque: false }
    }

    fn of(body: &[u8], headers: &[Field]) -> Self {
        let coding =
            headers.iter().find(|field| field.is("content-encoding")).map(|field| field.value.as_slice());
        match decoded(body, coding) {
            Some(plain) => Self { plain, ..Self::none() },
            None => Self { is_opaque: !body.is_empty(), ..Self::none() },
        }
    }

    fn change(&mut self, change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        if let Some(plain) = change(&self.plain) {
            self.plain = plain;
            self.is_changed = true;
        }
    }
}

#[cfg(test)]
mod tests;
