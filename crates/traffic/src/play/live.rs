//! The live values of one session, and putting them where the recorded ones stand.

use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::Learned;

/// Values that the server gave this time; later ones of the same recorded value win.
#[derive(Debug, Default)]
pub struct Live {
    values: Vec<(u32, Vec<u8>)>,
}

impl Live {
    /// The server gave this value of a variable.
    pub fn set(&mut self, variable: u32, value: Vec<u8>) {
        match self.values.iter_mut().find(|(known, _)| *known == variable) {
            Some((_, known)) => *known = value,
            None => self.values.push((variable, value)),
        }
    }

    /// Whether there is nothing to put in.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Replaces recorded values in the bytes of a target, a header value or a body; whether there were any.
    pub fn put_in(&self, learned: &Learned, bytes: &mut Vec<u8>) -> bool {
        let mut is_changed = false;
        for (variable, live) in &self.values {
            let Some(variable) = learned.variables.get(*variable as usize) else { continue };
            let recorded = variable.recorded.as_slice();
            if recorded == live.as_slice() {
                continue;
            }
            is_changed |= replace(bytes, recorded, live);
            for set in [COMPONENT, FORM] {
                let encoded: Vec<u8> = percent_encode(recorded, set).to_string().into_bytes();
                if encoded != recorded {
                    let live: Vec<u8> = percent_encode(live, set).to_string().into_bytes();
                    is_changed |= replace(bytes, &encoded, &live);
                }
            }
        }
        is_changed
    }
}

/// Replaces `old` where it stands alone: `42` in `/orders/42`, not in `/orders/1425`.
fn replace(bytes: &mut Vec<u8>, old: &[u8], new: &[u8]) -> bool {
    let mut from = 0;
    let mut is_changed = false;
    while let Some(at) = bytes.get(from..).and_then(|rest| memmem::find(rest, old)).map(|at| from + at) {
        let end = at + old.len();
        let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let begins_within = is_part(bytes.get(at.wrapping_sub(1))) && !is_escape_before(bytes, at);
        if begins_within || is_part(bytes.get(end)) {
            from = at + 1;
            continue;
        }
        bytes.splice(at..end, new.iter().copied());
        from = at + new.len();
        is_changed = true;
    }
    is_changed
}

/// `%2F42`: the two digits belong to the escape.
fn is_escape_before(bytes: &[u8], at: usize) -> bool {
    at >= 3 && bytes[at - 3] == b'%' && bytes[at - 2..at].iter().all(u8::is_ascii_hexdigit)
}

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
    use super::super::{Locator, Variable};
    use super::*;

    #[test]
    fn values_are_put_in_however_they_are_encoded() {
        let mut learned = Learned::default();
        for recorded in ["tok/en+1", "4711", "sess.id"] {
            learned.variables.push(Variable {
                recorded: recorded.into(),
                locator: Locator::Cookie(String::new()),
                source: String::new(),
                use_count: 1,
            });
        }
        let mut live = Live::default();
        live.set(0, b"n/w".to_vec());
        live.set(1, b"9".to_vec());
        live.set(2, b"S".to_vec());
        for (text, expected) in [
            ("csrf=tok%2Fen%2B1&x=1", "csrf=n%2Fw&x=1"),
            ("csrf=tok/en+1", "csrf=n/w"),
            ("/orders/4711/x?id=14711", "/orders/9/x?id=14711"),
            ("{\"id\":4711,\"s\":\"4711\"}", "{\"id\":9,\"s\":\"9\"}"),
            ("u=%2F4711", "u=%2F9"),
            ("sid=sess.id; b=sess.idx", "sid=S; b=sess.idx"),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            assert!(live.put_in(&learned, &mut bytes));
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
