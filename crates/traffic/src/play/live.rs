//! The live values of sessions, and putting them where the recorded ones stand.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

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

    /// Replaces recorded values in the bytes of a target, a header value or a body; whether there were any. What was put in is
    /// not looked at again: it may well be what another value was recorded as.
    pub fn put_in(&self, bytes: &mut Vec<u8>) -> bool {
        let forms = self.values.iter().flat_map(|value| &value.forms);
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
    let encoded = [COMPONENT, FORM].map(|set| {
        let encode = |value| percent_encode(value, set).to_string().into_bytes();
        Form { old: encode(recorded), new: encode(live) }
    });
    let mut forms = vec![Form { old: recorded.to_vec(), new: live.to_vec() }];
    for form in encoded {
        if forms.iter().all(|known| known.old != form.old) {
            forms.push(form);
        }
    }
    forms
}

/// Where `value` stands alone, not before `from`: `42` in `/orders/42`, not in `/orders/1425`.
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
    fn put_in(live: &Live, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        assert!(live.put_in(&mut bytes), "{text}");
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn values_are_put_in_however_they_are_encoded() {
        let mut live = Live::default();
        for (recorded, now) in [("tok/en+1", "n/w"), ("4711", "9"), ("sess.id", "S")] {
            live.set(recorded.into(), now.into());
        }
        for (text, expected) in [
            ("csrf=tok%2Fen%2B1&x=1", "csrf=n%2Fw&x=1"),
            ("csrf=tok/en+1", "csrf=n/w"),
            ("/orders/4711/x?id=14711", "/orders/9/x?id=14711"),
            ("{\"id\":4711,\"s\":\"4711\"}", "{\"id\":9,\"s\":\"9\"}"),
            ("u=%2F4711", "u=%2F9"),
            ("sid=sess.id; b=sess.idx", "sid=S; b=sess.idx"),
        ] {
            assert_eq!(put_in(&live, text), expected);
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
            assert_eq!(put_in(&live, text), expected);
        }
    }

    #[test]
    fn an_empty_value_stands_nowhere() {
        let mut live = Live::default();
        for now in ["", "x"] {
            live.set(Vec::new(), now.into());
            assert!(!live.put_in(&mut b"\xfd\xfd\x13".to_vec()));
        }
    }
}
