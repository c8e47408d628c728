//! Learns which values of recorded responses come back in later requests of the same session: session ids, CSRF tokens,
//! JWTs, the ids of things that were created. On replay the live ones take their place.
//!
//! A value counts when no request of the session had it before the response, so that what the client made up, or always
//! knew, is left alone.

use std::collections::{HashMap, HashSet};

use super::locate::{Locator, ResponseText};
use super::tokens;
use crate::{Record, decode};

/// A value that a response gave and that later requests of the session sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// As recorded.
    pub recorded: Vec<u8>,
    /// Where the response has it.
    pub locator: Locator,
    /// Method and URL of the request that was answered.
    pub source: String,
    /// Requests that sent it.
    pub use_count: u64,
}

/// What was learned of a recording.
#[derive(Debug, Clone, Default)]
pub struct Learned {
    /// Every variable.
    pub variables: Vec<Variable>,
    /// By the number of the record whose response gives them.
    sources: HashMap<u64, Vec<u32>>,
    /// There was more to learn than is kept.
    pub is_cut: bool,
}

impl Learned {
    /// The variables that this record's response gives.
    pub fn of_record(&self, ordinal: u64) -> &[u32] {
        self.sources.get(&ordinal).map_or(&[], Vec::as_slice)
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }
}

/// Looks through records in the order of their times.
#[derive(Debug, Default)]
pub struct Learner {
    sessions: HashMap<u64, Session>,
    learned: Learned,
    value_count: usize,
}

#[derive(Debug, Default)]
struct Session {
    /// Values that requests had before any response gave them.
    own: HashSet<Vec<u8>>,
    /// Values that responses gave.
    given: HashMap<Vec<u8>, Given>,
}

#[derive(Debug)]
struct Given {
    ordinal: u64,
    locator: Locator,
    source: String,
    /// The variable that was made of it at its first use.
    variable: Option<u32>,
}

impl Learner {
    /// Takes in the record of that number.
    pub fn add(&mut self, ordinal: u64, record: &Record) {
        let key = match (record.session, record.connection) {
            (0, connection) => connection,
            (session, _) => session,
        };
        if key == 0 || self.value_count > VALUE_COUNT_MAX {
            self.learned.is_cut |= key != 0;
            return;
        }
        let session = self.sessions.entry(key).or_default();
        let mut used: Vec<u32> = Vec::new();
        tokens::each(&record.request, &mut |value| {
            if !is_candidate(value) {
                return;
            }
            match session.given.get_mut(value) {
                Some(given) => used.push(variable_of(given, value, &mut self.learned)),
                None => self.value_count += usize::from(session.own.insert(value.to_vec())),
            }
        });
        used.sort_unstable();
        used.dedup();
        for variable in used {
            self.learned.variables[variable as usize].use_count += 1;
        }
        let Some(response) = &record.response else { return };
        let headers: Vec<(String, Vec<u8>)> =
            response.headers.iter().map(|field| (field.name.clone(), field.value.clone())).collect();
        let body = response.body.as_deref().unwrap_or_default();
        let body = decode::decoded(body, response.header("content-encoding")).unwrap_or_default();
        let text = ResponseText { headers: &headers, body: &body };
        let source = format!("{} {}", record.request.method, record.pattern());
        text.each(&mut |locator, value| {
            if is_candidate(value) && !session.own.contains(value) && !session.given.contains_key(value) {
                self.value_count += 1;
                let given = Given { ordinal, locator, source: source.clone(), variable: None };
                session.given.insert(value.to_vec(), given);
            }
        });
    }

    /// What was learned.
    pub fn finish(self) -> Learned {
        self.learned
    }
}

fn variable_of(given: &mut Given, value: &[u8], learned: &mut Learned) -> u32 {
    *given.variable.get_or_insert_with(|| {
        let variable = learned.variables.len() as u32;
        learned.variables.push(Variable {
            recorded: value.to_vec(),
            locator: given.locator.clone(),
            source: given.source.clone(),
            use_count: 0,
        });
        learned.sources.entry(given.ordinal).or_default().push(variable);
        variable
    })
}

/// Long enough to be no accident: numbers of three digits, and texts of six characters.
fn is_candidate(value: &[u8]) -> bool {
    let is_number = value.iter().all(u8::is_ascii_digit);
    let min = if is_number { 3 } else { 6 };
    (min..=VALUE_BYTES_MAX).contains(&value.len()) && !WORDS.contains(&value)
}

/// Words that come back everywhere and mean nothing.
const WORDS: &[&[u8]] =
    &[b"application", b"undefined", b"default", b"success", b"active", b"public", b"private"];

/// Longest value: a large JWT.
const VALUE_BYTES_MAX: usize = 8192;

/// Values kept while learning, over all sessions.
const VALUE_COUNT_MAX: usize = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Request, Response};

    fn record(
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
        response: (&[(&str, &str)], &str),
    ) -> Record {
        let fields = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| Field::new(*n, *v)).collect();
        let mut answer = Response { status: 200, headers: fields(response.0), ..Response::default() };
        answer.set_body(response.1.into());
        let request = Request {
            method: "GET".into(),
            target: target.into(),
            headers: fields(headers),
            body: body.into(),
            ..Request::default()
        };
        Record { session: 1, request, response: Some(answer), ..Record::default() }
    }

    #[test]
    fn a_login_flow_is_learned_without_a_rule() {
        let mut learner = Learner::default();
        let records = [
            record(
                "/login",
                &[],
                "",
                (
                    &[("Set-Cookie", "sid=first-session")],
                    r#"<form><input name="csrf" value="tok/en+1"></form>"#,
                ),
            ),
            record(
                "/login",
                &[("Cookie", "sid=first-session")],
                "user=someone&csrf=tok%2Fen%2B1",
                (&[("Set-Cookie", "sid=second-session")], r#"{"jwt":"ey.a.b","name":"someone"}"#),
            ),
            record(
                "/orders",
                &[("Cookie", "sid=second-session"), ("Authorization", "Bearer ey.a.b")],
                r#"{"for":"someone"}"#,
                (&[], r#"{"id":4711}"#),
            ),
            record("/orders/4711?x=1", &[("Cookie", "sid=second-session")], "", (&[], "")),
        ];
        for (nth, record) in (0..).zip(&records) {
            learner.add(nth, record);
        }
        let learned = learner.finish();
        let mut found: Vec<_> =
            learned.variables.iter().map(|one| (one.locator.to_string(), one.use_count)).collect();
        let expected =
            [("cookie sid", 1), ("form field csrf", 1), ("cookie sid", 2), ("JSON /jwt", 1), ("JSON /id", 1)];
        let mut expected: Vec<_> = expected.map(|(place, count)| (place.to_owned(), count)).into();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!((learned.of_record(1).len(), learned.of_record(3).len()), (2, 0));
    }
}
