//! The live values of sessions, and putting them where the recorded ones stand.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::Request;
use crate::redact::REDACTED_NUMBER;

/// Values that the server gave this time, by the recorded ones; later ones win.
#[derive(Debug, Default)]
pub struct Live {
    values: Vec<Value>,
}

/// A recorded value and what stands for it this time.
#[derive(Debug)]
struct Value {
    recorded: Vec<u8>,
    live: Vec<u8>,
    forms: Vec<Form>,
}

/// A way of writing a recorded value, and the live one in the same way.
#[derive(Debug)]
struct Form {
    old: Vec<u8>,
    new: Vec<u8>,
    /// A bit for each [`Grammar`] in which `old` is written so.
    grammars: u8,
}

/// How a part of a request is written. A recorded value of letters and digits does not tell how the live one must be encoded there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// As it is: header fields, parts of multipart bodies.
    Plain,
    /// Path and query.
    Target,
    /// `application/x-www-form-urlencoded`
    Form,
    /// JSON.
    Json,
    /// XML.
    Xml,
}

impl Grammar {
    const ALL: [Self; 5] = [Self::Plain, Self::Target, Self::Form, Self::Json, Self::Xml];

    /// The grammar of a body.
    pub(crate) fn of_body(content_type: Option<&[u8]>, body: &[u8]) -> Self {
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        let is_type = |part: &str| memmem::find(&content_type, part.as_bytes()).is_some();
        match body.trim_ascii_start().first() {
            _ if is_type("multipart/") => Self::Plain,
            _ if is_type("urlencoded") => Self::Form,
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') => Self::Xml,
            _ if is_type("json") => Self::Json,
            _ => Self::Plain,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Ways of writing, the most likely first.
    const fn encodings(self) -> [Encoding; 4] {
        use Encoding::{Component, Entities, FormPart, JsonString, Raw, Twice};
        match self {
            Self::Plain => [Raw, Component, FormPart, Twice],
            Self::Target => [Component, FormPart, Twice, Raw],
            Self::Form => [FormPart, Component, Twice, Raw],
            Self::Json => [JsonString, Raw, Component, FormPart],
            Self::Xml => [Entities, Raw, Component, FormPart],
        }
    }
}

/// A way of writing a value.
#[derive(Debug, Clone, Copy)]
enum Encoding {
    Raw,
    /// As `encodeURIComponent` does.
    Component,
    /// As forms do.
    FormPart,
    /// A URL within a URL.
    Twice,
    JsonString,
    Entities,
}

impl Encoding {
    fn of(self, value: &[u8]) -> Vec<u8> {
        let percent = |set| percent_encode(value, set).to_string();
        match self {
            Self::Raw => value.to_vec(),
            Self::Component => percent(COMPONENT).into_bytes(),
            Self::FormPart => percent(FORM).replace("%20", "+").into_bytes(),
            Self::Twice => percent_encode(percent(COMPONENT).as_bytes(), COMPONENT).to_string().into_bytes(),
            Self::JsonString => match std::str::from_utf8(value) {
                Ok(text) => {
                    let quoted = serde_json::Value::from(text).to_string();
                    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
                }
                Err(_) => value.to_vec(),
            },
            Self::Entities => {
                let text = String::from_utf8_lossy(value);
                text.replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;")
                    .replace('"', "&quot;")
                    .into_bytes()
            }
        }
    }
}

/// The live values of all sessions, of which those that were quiet for long are forgotten.
#[derive(Debug)]
pub struct LiveSessions<K> {
    recent: HashMap<K, Live>,
    older: HashMap<K, Live>,
}

impl<K> Default for LiveSessions<K> {
    fn default() -> Self {
        Self { recent: HashMap::new(), older: HashMap::new() }
    }
}

impl<K: Eq + Hash> LiveSessions<K> {
    /// What is known of a session.
    pub fn get(&self, session: &K) -> Option<&Live> {
        self.recent.get(session).or_else(|| self.older.get(session))
    }

    /// The server gave this value in place of a recorded one.
    pub fn set(&mut self, session: K, recorded: Vec<u8>, live: Vec<u8>) {
        if self.recent.len() >= SESSION_COUNT_MAX && !self.recent.contains_key(&session) {
            self.older = std::mem::take(&mut self.recent);
        }
        let older = self.older.remove(&session);
        self.recent.entry(session).or_insert_with(|| older.unwrap_or_default()).set(recorded, live);
    }
}

impl Live {
    /// The server gave this value in place of a recorded one.
    pub fn set(&mut self, recorded: Vec<u8>, live: Vec<u8>) {
        let value = Value { forms: forms(&recorded, &live), recorded, live };
        match self.values.iter_mut().find(|known| known.recorded == value.recorded) {
            Some(known) => *known = value,
            None => {
                if self.values.len() >= VALUE_COUNT_MAX {
                    self.values.remove(0);
                }
                self.values.push(value);
            }
        }
    }

    /// Whether the server gave this value.
    pub fn has(&self, value: &[u8]) -> bool {
        self.values.iter().any(|known| known.live == value)
    }

    /// Whether there is nothing to put in.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Replaces recorded values in a request; whether there were any.
    pub fn correct(&self, request: &mut Request) -> bool {
        request.change(|request| self.correct_marked(request))
    }

    /// The same in a message of a WebSocket.
    pub fn correct_message(&self, bytes: &mut Vec<u8>) -> bool {
        let grammar = Grammar::of_body(None, bytes);
        self.put_in(bytes, grammar)
    }

    fn correct_marked(&self, request: &mut Request) -> bool {
        let mut target = std::mem::take(&mut request.target).into_bytes();
        let mut is_corrected = self.put_in(&mut target, Grammar::Target);
        // Live values are percent-encoded in targets, so they stay text.
        request.target = String::from_utf8_lossy(&target).into_owned();
        for field in &mut request.headers {
            let grammar = if field.is("referer") { Grammar::Target } else { Grammar::Plain };
            is_corrected |= self.put_in(&mut field.value, grammar);
        }
        let grammar = Grammar::of_body(request.header("content-type"), &request.body);
        is_corrected | self.put_in(&mut request.body, grammar)
    }

    /// Replaces recorded values in the bytes of a target, a header value or a body; whether there were any. What was put in is
    /// not looked at again: it may well be what another value was recorded as.
    pub(crate) fn put_in(&self, bytes: &mut Vec<u8>, grammar: Grammar) -> bool {
        let forms = self
            .values
            .iter()
            .flat_map(|value| &value.forms)
            .filter(|form| form.grammars & grammar.bit() > 0);
        let mut found: Vec<(usize, &Form)> =
            forms.filter_map(|form| Some((find_alone(bytes, &form.old, 0)?, form))).collect();
        if found.is_empty() {
            return false;
        }
        let (mut result, mut from) = (Vec::with_capacity(bytes.len()), 0);
        while let Some(&(at, form)) = found.iter().min_by_key(|(at, form)| (*at, Reverse(form.old.len()))) {
            result.extend_from_slice(&bytes[from..at]);
            result.extend_from_slice(&form.new);
            from = at + form.old.len();
            found.retain_mut(|(at, form)| {
                let next = if *at < from { find_alone(bytes, &form.old, from) } else { Some(*at) };
                *at = next.unwrap_or(*at);
                next.is_some()
            });
        }
        result.extend_from_slice(&bytes[from..]);
        *bytes = result;
        true
    }
}

/// The ways in which a value is written; none where there is nothing to replace.
fn forms(recorded: &[u8], live: &[u8]) -> Vec<Form> {
    if recorded.is_empty() || recorded == live {
        return Vec::new();
    }
    let mut forms: Vec<Form> = Vec::new();
    for grammar in Grammar::ALL {
        for encoding in grammar.encodings() {
            let (old, new) = (encoding.of(recorded), encoding.of(live));
            if forms.iter().any(|form| form.grammars & grammar.bit() > 0 && form.old == old) {
                continue;
            }
            match forms.iter_mut().find(|form| form.old == old && form.new == new) {
                Some(form) => form.grammars |= grammar.bit(),
                None => forms.push(Form { old, new, grammars: grammar.bit() }),
            }
        }
    }
    // A number of JSON is redacted as a string.
    if recorded.starts_with(REDACTED_NUMBER.as_bytes())
        && serde_json::from_slice::<serde_json::Number>(live).is_ok()
    {
        let old = [b"\"", recorded, b"\""].concat();
        forms.push(Form { old, new: live.to_vec(), grammars: Grammar::Json.bit() });
    }
    forms
}

/// Where `value` occurs alone, not before `from`: `42` in `/orders/42`, not in `/orders/1425`.
fn find_alone(bytes: &[u8], value: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memmem::find(bytes.get(from..)?, value)?;
        let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let begins_within = is_part(bytes.get(at.wrapping_sub(1))) && !is_escape_before(bytes, at);
        if !begins_within && !is_part(bytes.get(at + value.len())) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// `%2F42`: the two digits belong to the escape.
fn is_escape_before(bytes: &[u8], at: usize) -> bool {
    at >= 3 && bytes[at - 3] == b'%' && bytes[at - 2..at].iter().all(u8::is_ascii_hexdigit)
}

/// Sessions remembered after they were last given a value, at least; at most twice as many.
const SESSION_COUNT_MAX: usize = 20_000;

/// Values of one session: the oldest gives way.
const VALUE_COUNT_MAX: usize = 512;

/// What `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// What forms leave as it is.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'*');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_are_quiet_are_forgotten_in_the_end() {
        let mut sessions: LiveSessions<usize> = LiveSessions::default();
        for session in 0..2 * SESSION_COUNT_MAX + 1 {
            sessions.set(session, b"a".to_vec(), b"b".to_vec());
            sessions.set(0, b"c".to_vec(), b"d".to_vec());
        }
        assert!(sessions.get(&0).is_some() && sessions.get(&1).is_none());
        assert!(sessions.recent.len() + sessions.older.len() <= 2 * SESSION_COUNT_MAX);
    }

    /// A text with what is live put in, which something must be.
    fn put_in(live: &Live, grammar: Grammar, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        assert!(live.put_in(&mut bytes, grammar), "{text}");
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn values_are_put_in_however_they_are_encoded() {
        let mut live = Live::default();
        for (recorded, now) in [("tok/en+1", "n/w"), ("4711", "9"), ("sess.id", "S")] {
            live.set(recorded.into(), now.into());
        }
        for (grammar, text, expected) in [
            (Grammar::Form, "csrf=tok%2Fen%2B1&x=1", "csrf=n%2Fw&x=1"),
            (Grammar::Plain, "csrf=tok/en+1", "csrf=n/w"),
            (Grammar::Target, "/orders/4711/x?id=14711", "/orders/9/x?id=14711"),
            (Grammar::Target, "/a?next=%2Fb%3Ft%3Dtok%252Fen%252B1", "/a?next=%2Fb%3Ft%3Dn%252Fw"),
            (Grammar::Json, "{\"id\":4711,\"s\":\"4711\"}", "{\"id\":9,\"s\":\"9\"}"),
            (Grammar::Target, "u=%2F4711", "u=%2F9"),
            (Grammar::Plain, "sid=sess.id; b=sess.idx", "sid=S; b=sess.idx"),
        ] {
            assert_eq!(put_in(&live, grammar, text), expected);
        }
    }

    #[test]
    fn live_values_are_encoded_as_their_place_wants_it() {
        let mut live = Live::default();
        live.set("redacted-01".into(), "a+b/\"<&".into());
        live.set("redacted-number-02".into(), "17".into());
        for (grammar, text, expected) in [
            (Grammar::Plain, "x=redacted-01", "x=a+b/\"<&"),
            (Grammar::Target, "/redacted-01?a", "/a%2Bb%2F%22%3C%26?a"),
            (Grammar::Form, "t=redacted-01&x", "t=a%2Bb%2F%22%3C%26&x"),
            (Grammar::Json, "[\"redacted-01\"]", "[\"a+b/\\\"<&\"]"),
            (Grammar::Xml, "<t>redacted-01</t>", "<t>a+b/&quot;&lt;&amp;</t>"),
            (Grammar::Json, "{\"pin\":\"redacted-number-02\"}", "{\"pin\":17}"),
        ] {
            assert_eq!(put_in(&live, grammar, text), expected);
        }
    }

    #[test]
    fn what_was_put_in_is_not_replaced_again() {
        let mut live = Live::default();
        for id in 100..110 {
            live.set(id.to_string().into(), (id + 1).to_string().into());
        }
        live.set("s".into(), "s,s".into());
        live.set("s,s".into(), "t".into());
        for (text, expected) in [
            ("/orders/100/items/101", "/orders/101/items/102"),
            ("[109,100,104]", "[110,101,105]"),
            ("s s,s,s", "s,s t,s,s"),
        ] {
            assert_eq!(put_in(&live, Grammar::Plain, text), expected);
        }
    }

    #[test]
    fn an_empty_value_is_nowhere() {
        let mut live = Live::default();
        for now in ["", "x"] {
            live.set(Vec::new(), now.into());
            assert!(!live.put_in(&mut b"\xfd\xfd\x13".to_vec(), Grammar::Plain));
        }
    }
}
