//! Single values of a PTR file: each is read as its type, and a wrong one is noted with its place.
//!
//! Owns: units of bare numbers, lists and choices. Never: knows what a key is for.

use std::collections::BTreeMap;

use super::super::document::{Node, Value};
use super::super::read::{parse_port, suggestion};
use super::super::{Place, Problem, Text};
use crate::InputError;
use crate::units::{parse_count, parse_duration};

/// What the command line adds to the files.
#[derive(Debug, Clone, Default)]
pub struct PtrOptions {
    /// ssh user on generators and bastion.
    pub user: Option<String>,
    /// Private key file.
    pub key: Option<String>,
    /// The host to go through.
    pub bastion: Option<String>,
    /// Whether the real tools make the load, instead of squall itself.
    pub external: bool,
    /// Whether the numbers of a scenario are divided among the generators. PTR gives every generator all of them.
    pub divide: bool,
    /// ssh's configuration file, instead of the user's.
    pub config: Option<String>,
}

/// Reads a PTR file, and notes what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) options: &'a PtrOptions,
    pub(super) folder: &'a str,
    pub(super) problems: &'a mut Vec<Problem>,
    /// Distinguishes the loads of several files.
    pub(super) prefix: String,
}

/// A mapping by key, all of whose keys are known.
pub(super) struct Fields<'n> {
    pub(super) place: Place,
    entries: BTreeMap<&'n str, &'n Node>,
}

impl<'n> Fields<'n> {
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.get(key).copied().filter(|node| node.value != Value::Null)
    }
}

/// What a number without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

impl Unit {
    fn suffix(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
        }
    }
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::at(place, message, help));
    }

    /// The entries of a mapping; notes those that are not `known`.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            let message = format!("{what} is a mapping, but here is {}", node.kind());
            self.problem(node.place, message, "write `\"key\": value` pairs");
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.value.as_str())) {
            let message = format!("{what} has no key `{}`", key.value);
            self.problem(key.place, message, suggestion(&key.value, known, "keys"));
        }
        let entries = entries.iter().map(|(key, node)| (key.value.as_str(), node)).collect();
        Some(Fields { place: node.place, entries })
    }

    /// A list; a single value counts as a list of one.
    pub(super) fn list<'n>(&mut self, fields: &Fields<'n>, key: &str) -> Vec<&'n Node> {
        match fields.get(key) {
            None => Vec::new(),
            Some(Node { value: Value::List(items), .. }) => items.iter().collect(),
            Some(node) => vec![node],
        }
    }

    pub(super) fn scalar(&mut self, node: &Node) -> Option<Text> {
        let Value::Scalar(value) = &node.value else {
            let message = format!("{} where a single value is expected", node.kind());
            self.problem(node.place, message, "write one string");
            return None;
        };
        Some(Text { value: value.clone(), place: node.place })
    }

    pub(super) fn optional(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        self.scalar(fields.get(key)?)
    }

    pub(super) fn text(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        if fields.get(key).is_none() {
            self.problem(fields.place, format!("`{key}` is missing"), "docs/ptr.md lists the keys");
        }
        self.optional(fields, key)
    }

    /// A value that `parse` accepts, as it was written.
    fn checked<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, InputError>,
    ) -> Option<(Text, T)> {
        let text = self.optional(fields, key)?;
        match parse(&text.value) {
            Ok(value) => Some((text, value)),
            Err(error) => {
                let message = format!("`{key}: {}`: {}", text.value, error.reason);
                self.problem(text.place, message, error.help);
                None
            }
        }
    }

    /// A whole number from 1, in plain digits.
    pub(super) fn count(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        let parse = |text: &str| match parse_count(text)? {
            0 => {
                Err(InputError::at(text, 0, "must be at least 1", "write a whole number from 1, such as 10"))
            }
            count => Ok(count),
        };
        let (text, count) = self.checked(fields, key, parse)?;
        Some(Text { value: count.to_string(), ..text })
    }

    pub(super) fn port(&mut self, fields: &Fields<'_>, key: &str) -> Option<u16> {
        self.checked(fields, key, parse_port).map(|(_, port)| port)
    }

    /// One of a few words, in any case.
    pub(super) fn choice(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        known: &'static [&'static str],
    ) -> Option<(&'static str, Place)> {
        let text = self.optional(fields, key)?;
        let found = known.iter().find(|word| word.eq_ignore_ascii_case(&text.value));
        if found.is_none() {
            let message = format!("`{key}: {}`: not a possible value", text.value);
            self.problem(text.place, message, format!("write {}", known.join(" or ")));
        }
        found.map(|word| (*word, text.place))
    }

    pub(super) fn truth(&mut self, fields: &Fields<'_>, key: &str) -> Option<bool> {
        self.choice(fields, key, &["true", "false"]).map(|(word, _)| word == "true")
    }

    /// A bare number in the key's own unit, or a text with a unit; as a text with a unit.
    pub(super) fn duration(&mut self, fields: &Fields<'_>, key: &str, unit: Unit) -> Option<Text> {
        let with_unit = |text: &str| {
            let is_bare = text.parse::<f64>().is_ok();
            if is_bare { format!("{text}{}", unit.suffix()) } else { text.to_owned() }
        };
        let (text, _) = self.checked(fields, key, |text| parse_duration(&with_unit(text)))?;
        Some(Text { value: with_unit(&text.value), ..text })
    }
}
