//! Which recorded request a request is like, and how much.
//!
//! Owns: the levels of likeness, and what is ignored. Never: sockets, answers.

use std::collections::BTreeSet;

use serde_json::Value;
use squall_traffic::key_of;

/// What is not compared.
#[derive(Debug, Clone, Default)]
pub struct Ignored {
    /// Parameters of the query, by name.
    pub query: Vec<String>,
    /// Fields of JSON and form bodies: a name at any depth, or an RFC 6901 pointer (`*` is any name or index).
    pub body: Vec<String>,
}

/// How much a request is like a recorded one, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Likeness {
    /// The same method, target and body, ignored fields apart. JSON is compared by value, whatever its spacing and order.
    Same,
    /// The body is JSON with the same names and kinds of values.
    OtherValues,
    /// The same method and target.
    OtherBody,
    /// The same method and path.
    OtherQuery,
}

/// A request as far as it is compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MockRequest<'a> {
    /// Host and port; `None` where it says nothing: the client asked the mock by its own address.
    pub(crate) host: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
}

/// What requests that are alike have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MatchKey(Likeness, u64);

impl Likeness {
    /// Every level, the most exact first.
    pub(crate) const ALL: [Self; 4] = [Self::Same, Self::OtherValues, Self::OtherBody, Self::OtherQuery];

    /// How the request differs from the recorded one.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Same => "as recorded",
            Self::OtherValues => "other values in the body",
            Self::OtherBody => "other body",
            Self::OtherQuery => "other query",
        }
    }
}

impl Ignored {
    /// The keys under which a request is found, the most exact first.
    pub(crate) fn keys(&self, asked: MockRequest<'_>) -> [MatchKey; 4] {
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let query = self.compared_query(query);
        let json: Option<Value> = serde_json::from_slice(asked.body).ok();
        let json = json.filter(|json| json.is_object() || json.is_array());
        let json = json.map(|mut json| {
            self.body.iter().for_each(|field| forget(&mut json, field));
            json
        });
        let form = || self.compared_form(asked.body);
        let body = json.as_ref().map(|json| canonical(json, false).into_bytes()).or_else(form);
        let body = body.as_deref().unwrap_or(asked.body);
        let structure =
            json.as_ref().map_or_else(|| body.to_vec(), |json| canonical(json, true).into_bytes());
        Likeness::ALL.map(|likeness| {
            let parts: &[&[u8]] = match likeness {
                Likeness::Same => &[query.as_bytes(), body],
                Likeness::OtherValues => &[query.as_bytes(), &structure],
                Likeness::OtherBody => &[query.as_bytes()],
                Likeness::OtherQuery => &[],
            };
            let host = asked.host.unwrap_or_default();
            let head = [host.as_bytes(), asked.method.as_bytes(), path.as_bytes()];
            // NUL is in none of them but bodies, which come last.
            let all: Vec<&[u8]> = head.into_iter().chain(parts.iter().copied()).collect();
            MatchKey(likeness, key_of(&all.join(&0)))
        })
    }

    /// The parameters that count, in an order of their own.
    fn compared_query(&self, query: &str) -> String {
        let is_compared = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            !pair.is_empty() && !self.query.iter().any(|ignored| ignored == name)
        };
        let mut pairs: Vec<&str> = query.split('&').filter(is_compared).collect();
        pairs.sort_unstable();
        pairs.join("&")
    }

    /// A form without the fields that are ignored; `None` where nothing of a form is.
    fn compared_form(&self, body: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(body).ok()?;
        let is_ignored = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            self.body.iter().any(|field| field == name)
        };
        if !text.split('&').any(|pair| is_ignored(&pair)) {
            return None;
        }
        let kept: Vec<&str> = text.split('&').filter(|pair| !is_ignored(pair)).collect();
        Some(kept.join("&").into_bytes())
    }
}

/// Takes a field out of a JSON value.
fn forget(value: &mut Value, field: &str) {
    match field.strip_prefix('/') {
        Some(pointer) => forget_at(value, &pointer.split('/').collect::<Vec<_>>()),
        None => forget_name(value, field),
    }
}

fn forget_at(value: &mut Value, path: &[&str]) {
    let [segment, rest @ ..] = path else { return };
    let name = segment.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(fields) if rest.is_empty() && *segment == "*" => fields.clear(),
        Value::Object(fields) if rest.is_empty() => drop(fields.shift_remove(&name)),
        Value::Object(fields) if *segment == "*" => {
            fields.values_mut().for_each(|value| forget_at(value, rest));
        }
        Value::Object(fields) => fields.get_mut(&name).into_iter().for_each(|value| forget_at(value, rest)),
        Value::Array(items) => {
            let is_meant = |nth: usize| *segment == "*" || name == nth.to_string();
            for (_, item) in items.iter_mut().enumerate().filter(|(nth, _)| is_meant(*nth)) {
                // An item keeps its place.
                if rest.is_empty() { *item = Value::Null } else { forget_at(item, rest) }
            }
        }
        _ => {}
    }
}

fn forget_name(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove(name);
            fields.values_mut().for_each(|value| forget_name(value, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget_name(item, name)),
        _ => {}
    }
}

/// A text that is the same for equal values; of the structure, kinds take the place of values, and lists are what is in them.
fn canonical(value: &Value, is_structure: bool) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let field =
                |(name, value): (&String, &Value)| format!("{name:?}:{}", canonical(value, is_structure));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) if is_structure => {
            let kinds: BTreeSet<String> = items.iter().map(|item| canonical(item, true)).collect();
            format!("[{}]", kinds.into_iter().collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| canonical(item, false)).collect();
            format!("[{}]", items.join(","))
        }
        Value::String(_) if is_structure => "s".to_owned(),
        Value::Number(_) if is_structure => "n".to_owned(),
        Value::Bool(_) if is_structure => "b".to_owned(),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much a request is like a recorded one, both as `METHOD TARGET BODY`.
    fn likeness(ignored: &Ignored, recorded: &str, asked: &str) -> Option<Likeness> {
        let keys = |text: &str| {
            let mut words = text.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (method, target, body) = (word(), word(), word());
            ignored.keys(MockRequest { host: None, method: &method, target: &target, body: body.as_bytes() })
        };
        let recorded = keys(recorded);
        keys(asked).into_iter().find(|key| recorded.contains(key)).map(|key| key.0)
    }

    #[test]
    fn requests_are_compared_by_what_they_mean() {
        use Likeness::{OtherBody, OtherQuery, OtherValues, Same};
        for (recorded, asked, expected) in [
            ("GET /a", "GET /a", Some(Same)),
            ("GET /a", "POST /a", None),
            ("GET /a", "GET /b", None),
            ("GET /a?b=1&c=2", "GET /a?c=2&b=1", Some(Same)),
            ("GET /a?b=1", "GET /a?b=2", Some(OtherQuery)),
            ("POST /a {\"b\":1,\"c\":[1]}", "POST /a {\"c\": [1], \"b\": 1}", Some(Same)),
            ("POST /a {\"b\":1,\"c\":[1]}", "POST /a {\"b\":2,\"c\":[3,4]}", Some(OtherValues)),
            ("POST /a {\"b\":1}", "POST /a {\"b\":\"x\"}", Some(OtherBody)),
            ("POST /a {\"b\":1}", "POST /a {\"x\":1}", Some(OtherBody)),
            ("POST /a?q=1 b=1", "POST /a?q=2 b=1", Some(OtherQuery)),
            ("POST /a b=1", "POST /a b=2", Some(OtherBody)),
        ] {
            assert_eq!(likeness(&Ignored::default(), recorded, asked), expected, "{recorded} / {asked}");
        }
    }

    #[test]
    fn ignored_fields_make_no_difference() {
        let ignored = |query: &str, body: &str| Ignored {
            query: query.split_whitespace().map(str::to_owned).collect(),
            body: body.split_whitespace().map(str::to_owned).collect(),
        };
        for (query, body, recorded, asked) in [
            ("ts", "", "GET /a?ts=1&b=2", "GET /a?b=2&ts=9"),
            ("ts", "", "GET /a", "GET /a?ts=9"),
            ("", "id", "POST /a {\"id\":1,\"x\":{\"id\":2}}", "POST /a {\"id\":3,\"x\":{\"id\":4}}"),
            ("", "/a/*/t", "POST /a {\"a\":[{\"t\":1},{\"t\":2}]}", "POST /a {\"a\":[{\"t\":3},{\"t\":4}]}"),
            ("", "nonce", "POST /a nonce=1&b=2", "POST /a nonce=7&b=2"),
        ] {
            assert_eq!(
                likeness(&ignored(query, body), recorded, asked),
                Some(Likeness::Same),
                "{recorded} / {asked}"
            );
        }
        let other = likeness(&ignored("", "/a"), "POST /a {\"b\":{\"a\":1}}", "POST /a {\"b\":{\"a\":2}}");
        assert_eq!(other, Some(Likeness::OtherValues), "a pointer means one place");
    }
}
