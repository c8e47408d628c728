//! Learns which values of recorded responses come back in later requests of the same session: session ids, CSRF tokens,
//! JWTs, the ids of things that were created. On replay the live ones take their place.
//!
//! A value counts when no request of the session had it before the response, so that what the client made up, or always
//! knew, is left alone.
//!
//! Of a large recording only the beginning is looked through. What follows is treated alike: where responses to one kind of
//! request gave values that came back, they are taken from the responses to all later requests of that kind.

use std::collections::{HashMap, HashSet};
use std::io;

use super::locate::{Locator, ResponseText};
use super::tokens;
use crate::store::{ROW_OTHER, RecordView, Recording};
use crate::{Record, Response, decode};

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
    /// Where responses to each kind of request (the recording's row) give values.
    rules: HashMap<u16, Vec<Locator>>,
    /// When a value of a response's head was first sent, for responses that ended only after that; by the number of the record.
    sent_early_ns: HashMap<u64, u64>,
    /// Records looked through, where those are not all: for later ones the rules tell.
    pub looked_through: Option<u64>,
}

/// A value that a recorded response gave, and where the live one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// As recorded.
    pub recorded: Vec<u8>,
    /// Where the response has it.
    pub locator: Locator,
}

impl Learned {
    /// What is learned of the beginning of a recording: a large one must start at once, and in little memory.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn of(recording: &Recording) -> io::Result<Self> {
        let mut learner = Learner::default();
        let mut cursor = recording.cursor(LEARN_BUFFER_BYTES);
        for ordinal in 0.. {
            let Some(frame) = cursor.peek()? else { break };
            if cursor.passed_bytes() >= LEARN_BYTES_MAX || learner.is_full() {
                return Ok(learner.finish_at(ordinal));
            }
            if let Some(view) = RecordView::read(cursor.take(&frame)?) {
                learner.add(ordinal, frame.row, &view.record(&frame));
            }
        }
        Ok(learner.finish())
    }

    /// Whether the response to this record gives values.
    pub fn has(&self, ordinal: u64, row: u16) -> bool {
        match self.is_behind(ordinal) {
            true => self.rules.contains_key(&row),
            false => self.sources.contains_key(&ordinal),
        }
    }

    /// The values that the response to this record gives; `response` is the recorded one.
    pub fn expected(
        &self,
        ordinal: u64,
        row: u16,
        response: impl FnOnce() -> Option<Response>,
    ) -> Vec<Expected> {
        if self.is_behind(ordinal) {
            let rules = self.rules.get(&row).zip(response());
            return rules.map_or_else(Vec::new, |(locators, response)| by_rules(locators, &response));
        }
        let variables = self.given_by(ordinal);
        let expected = |idx: &u32| {
            let Variable { recorded, locator, .. } = self.variables.get(*idx as usize)?;
            Some(Expected { recorded: recorded.clone(), locator: locator.clone() })
        };
        variables.iter().filter_map(expected).collect()
    }

    /// By when the client had what it needed of the response to this record. Clients follow a redirect, and send its cookies, when they have
    /// its head: what they send then must wait for the response all the same, because the live values are taken from it at its end.
    pub fn known_ns(&self, ordinal: u64, end_ns: u64) -> u64 {
        self.sent_early_ns.get(&ordinal).map_or(end_ns, |sent_ns| end_ns.min(*sent_ns))
    }

    /// The numbers of the variables that the response to this record gives.
    pub fn given_by(&self, ordinal: u64) -> &[u32] {
        self.sources.get(&ordinal).map_or(&[], Vec::as_slice)
    }

    /// Whether this record is not among those looked through.
    fn is_behind(&self, ordinal: u64) -> bool {
        self.looked_through.is_some_and(|count| ordinal >= count)
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }
}

fn by_rules(locators: &[Locator], response: &Response) -> Vec<Expected> {
    let (headers, body) = readable(response);
    let text = ResponseText { headers: &headers, body: &body };
    let expected = |locator: &Locator| {
        let recorded = text.find(locator).filter(|value| is_candidate(value))?;
        Some(Expected { recorded, locator: locator.clone() })
    };
    locators.iter().filter_map(expected).collect()
}

/// Fields and the body without its coding.
fn readable(response: &Response) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
    let headers = response.headers.iter().map(|field| (field.name.clone(), field.value.clone())).collect();
    let body = response.body.as_deref().unwrap_or_default();
    (headers, decode::decoded(body, response.header("content-encoding")).unwrap_or_default())
}

/// Looks through records in the order of their times.
#[derive(Debug, Default)]
pub struct Learner {
    sessions: HashMap<u64, Session>,
    learned: Learned,
    /// By variable: the row of the request whose response gives it.
    rows: Vec<u16>,
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
    row: u16,
    /// When the response had ended; 0: unknown.
    end_ns: u64,
    locator: Locator,
    source: String,
    /// The variable that was made of it at its first use.
    variable: Option<u32>,
}

impl Learner {
    /// Takes in the record of that number and row.
    pub fn add(&mut self, ordinal: u64, row: u16, record: &Record) {
        let key = match (record.session, record.connection) {
            (0, connection) => connection,
            (session, _) => session,
        };
        if key == 0 {
            return;
        }
        let session = self.sessions.entry(key).or_default();
        let mut used: Vec<u32> = Vec::new();
        tokens::each(&record.request, &mut |value| {
            if !is_candidate(value) {
                return;
            }
            match session.given.get_mut(value) {
                Some(given) => {
                    used.push(variable_of(given, value, &mut self.learned, &mut self.rows));
                    if given.is_sent_early(record.time_ns) {
                        self.learned.sent_early_ns.entry(given.ordinal).or_insert(record.time_ns);
                    }
                }
                None => self.value_count += usize::from(session.own.insert(value.to_vec())),
            }
        });
        // What a WebSocket says later may come from what was known when it was opened.
        for message in record.response.iter().flat_map(|response| &response.messages) {
            if message.is_said() {
                tokens::each_of_body(&message.bytes, &mut |value| {
                    let given = session.given.get_mut(value);
                    used.extend(
                        given.map(|given| variable_of(given, value, &mut self.learned, &mut self.rows)),
                    );
                });
            }
        }
        used.sort_unstable();
        used.dedup();
        for variable in used {
            self.learned.variables[variable as usize].use_count += 1;
        }
        let Some(response) = &record.response else { return };
        let (headers, body) = readable(response);
        let text = ResponseText { headers: &headers, body: &body };
        let source = format!("{} {}", record.request.method, record.pattern());
        let end_ns = record.time_ns.saturating_add(response.latency_ns);
        text.each(&mut |locator, value| {
            if is_candidate(value) && !session.own.contains(value) && !session.given.contains_key(value) {
                self.value_count += 1;
                let source = source.clone();
                let given = Given { ordinal, row, end_ns, locator, source, variable: None };
                session.given.insert(value.to_vec(), given);
            }
        });
    }

    /// Whether as many values are kept as memory is meant to hold.
    pub fn is_full(&self) -> bool {
        self.value_count >= VALUE_COUNT_MAX
    }

    /// What was learned of the whole recording.
    pub fn finish(self) -> Learned {
        self.learned
    }

    /// What was learned of the first records, which decides what to do with the rest.
    pub fn finish_at(mut self, looked_through: u64) -> Learned {
        self.learned.looked_through = Some(looked_through);
        for (variable, row) in self.learned.variables.iter().zip(self.rows) {
            let rules = self.learned.rules.entry(row).or_default();
            if row != ROW_OTHER && rules.len() < RULE_COUNT_MAX && !rules.contains(&variable.locator) {
                rules.push(variable.locator.clone());
            }
        }
        self.learned.rules.retain(|_, rules| !rules.is_empty());
        self.learned
    }
}

impl Given {
    /// Whether a request that begins at this time sends a value of the head before the response has ended. Streams that go on for
    /// long after their head do not count: a session would stand still until they end.
    fn is_sent_early(&self, begin_ns: u64) -> bool {
        self.locator.is_in_head() && begin_ns < self.end_ns && self.end_ns - begin_ns <= EARLY_NS_MAX
    }
}

fn variable_of(given: &mut Given, value: &[u8], learned: &mut Learned, rows: &mut Vec<u16>) -> u32 {
    *given.variable.get_or_insert_with(|| {
        let variable = learned.variables.len() as u32;
        learned.variables.push(Variable {
            recorded: value.to_vec(),
            locator: given.locator.clone(),
            source: given.source.clone(),
            use_count: 0,
        });
        rows.push(given.row);
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

/// Values kept while learning, over all sessions: some 40 MB.
const VALUE_COUNT_MAX: usize = 200_000;

/// Longest time from the first use of a head's value to the end of its response.
const EARLY_NS_MAX: u64 = 5_000_000_000;

const LEARN_BUFFER_BYTES: usize = 1 << 20;

/// Bytes of the recording that are looked through before the start: some tenths of a second.
pub(super) const LEARN_BYTES_MAX: u64 = 64 << 20;

/// Places in the responses to one kind of request.
const RULE_COUNT_MAX: usize = 32;

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
            learner.add(nth, nth as u16, record);
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
        let count = |ordinal| learned.expected(ordinal, 0, || None).len();
        assert_eq!((count(1), count(3), learned.has(1, 9), learned.has(3, 9)), (2, 0, true, false));
    }

    #[test]
    fn what_is_sent_with_the_cookie_of_a_response_under_way_comes_after_it() {
        let cookie: &[(&str, &str)] = &[("Set-Cookie", "sid=first-session")];
        for (cookie, json, begin_ns, known_ns) in
            [(cookie, "", 40, 40), (cookie, "", 200, 100), (&[][..], r#"{"sid":"first-session"}"#, 40, 100)]
        {
            let mut learner = Learner::default();
            let mut login = record("/login", &[], "", (cookie, json));
            login.response.as_mut().unwrap().latency_ns = 100;
            learner.add(0, 0, &login);
            let page = record("/", &[("Cookie", "sid=first-session")], "", (&[], ""));
            learner.add(1, 1, &Record { time_ns: begin_ns, ..page });
            let learned = learner.finish();
            assert_eq!(learned.variables.len(), 1);
            assert_eq!(learned.known_ns(0, 100), known_ns, "{begin_ns} {json}");
        }
    }

    #[test]
    fn what_was_not_looked_through_is_treated_like_what_was() {
        let login = |sid: &str| record("/login", &[], "", (&[("Set-Cookie", sid)], r#"{"jwt":"ey.c.d"}"#));
        let mut learner = Learner::default();
        learner.add(0, 3, &login("sid=first-session"));
        learner.add(1, 4, &record("/", &[("Cookie", "sid=first-session")], "", (&[], "")));
        let learned = learner.finish_at(2);
        let later = || login("sid=later-session").response;
        let expected =
            Expected { recorded: b"later-session".to_vec(), locator: Locator::Cookie("sid".into()) };
        assert_eq!(learned.expected(7, 3, later), [expected], "the JWT never came back");
        assert_eq!(learned.expected(7, 4, later), []);
        assert!(learned.has(7, 3) && !learned.has(7, 4) && !learned.has(1, 3));
    }
}
