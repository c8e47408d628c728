//! What a plan file gets from outside: `${NAME}` and `${NAME:-default}` from `--var`, from its own `variables` or from the environment,
//! and its list of hosts.

use super::document::{Node, Value};
use super::inventory::HostList;
use super::{Place, Problem};
use crate::limits;

/// Where values and hosts come from, besides the file.
pub struct Variables<'a> {
    /// Given with `--var NAME=VALUE`: they win.
    pub given: &'a [(String, String)],
    /// Looks a variable of the environment up: it comes last.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Gives the hosts of `inventory`.
    pub hosts: HostList<'a>,
}

impl Variables<'_> {
    /// Fills the variables in, and takes `variables` out of the top of the tree. Gives what could not be filled in.
    pub(super) fn fill(&self, root: &mut Node) -> Vec<Problem> {
        let problems = Vec::new();
        let Value::Map(entries) = &mut root.value else { return problems };
        let own = entries.iter().position(|(key, _)| key.value == "variables");
        let own = own.map(|idx| entries.remove(idx).1);
        let mut filling =
            Filling { from: self, own: Vec::new(), space: limits::PLAN_FILLED_BYTES_MAX, problems };
        if let Some(node) = own {
            filling.read_own(&node);
        }
        for (name, _) in self.given.iter().filter(|(name, _)| !is_name(name)) {
            filling.tell(Place::START, format!("`--var {name}`: not a name"), NAME_HELP);
        }
        filling.fill_node(root);
        filling.problems
    }
}

/// The filling in of one file.
struct Filling<'a> {
    from: &'a Variables<'a>,
    /// The file's own values.
    own: Vec<(String, String)>,
    /// Bytes that values may still add.
    space: usize,
    problems: Vec<Problem>,
}

impl Filling<'_> {
    fn tell(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::at(place, message, help));
    }

    /// The file's own values, each of which may use those before it.
    fn read_own(&mut self, node: &Node) {
        let Value::Map(entries) = &node.value else {
            let message = format!("`variables` is {}, not a mapping", node.kind());
            return self.tell(node.place, message, "write `name: value` lines below it");
        };
        for (key, value) in entries {
            match &value.value {
                Value::Scalar(_) if !is_name(&key.value) => {
                    self.tell(key.place, format!("`{}` is not a name", key.value), NAME_HELP);
                }
                Value::Scalar(text) => {
                    let filled = self.fill_text(text, value.place);
                    self.own.push((key.value.clone(), filled));
                }
                Value::Null => self.own.push((key.value.clone(), String::new())),
                Value::List(_) | Value::Map(_) => {
                    let message = format!("the variable `{}` is {}", key.value, value.kind());
                    self.tell(value.place, message, "a variable is a single value");
                }
            }
        }
    }

    fn fill_node(&mut self, node: &mut Node) {
        match &mut node.value {
            Value::Null => {}
            Value::Scalar(text) if text.contains('$') => *text = self.fill_text(text, node.place),
            Value::Scalar(_) => {}
            Value::List(items) => items.iter_mut().for_each(|item| self.fill_node(item)),
            Value::Map(entries) => entries.iter_mut().for_each(|(_, value)| self.fill_node(value)),
        }
    }

    /// `$${` stands for `${`.
    fn fill_text(&mut self, text: &str, place: Place) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, reference) = (&rest[..at], &rest[at + 2..]);
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = reference;
                continue;
            }
            filled.push_str(before);
            let Some((inside, after)) = reference.split_once('}') else {
                let help = "write `${NAME}`, or `$${` for a literal `${`";
                self.tell(place, "`${` without a closing `}`", help);
                return filled;
            };
            let value = self.value(inside, place);
            filled.push_str(&value);
            rest = after;
        }
        filled + rest
    }

    /// The value of the expression between the braces; nothing once all values together are too long.
    fn value(&mut self, inside: &str, place: Place) -> String {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let of = |pairs: &[(String, String)]| {
            pairs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let found = of(self.from.given).or_else(|| of(&self.own)).or_else(|| (self.from.environment)(name));
        let Some(value) = found.or_else(|| default.map(str::to_owned)) else {
            let help = format!(
                "give it with `--var {name}=VALUE`, in the environment, or write `${{{name}:-default}}`"
            );
            self.tell(place, format!("the variable `{name}` has no value"), help);
            return String::new();
        };
        let space = self.space.checked_sub(value.len());
        if space.is_none() && self.space > 0 {
            let message = format!("variables add more than {} MiB", limits::PLAN_FILLED_BYTES_MAX >> 20);
            self.tell(place, message, "keep data in separate files that the plan refers to");
        }
        self.space = space.unwrap_or(0);
        if space.is_some() { value } else { String::new() }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

const NAME_HELP: &str = "a name consists of letters, digits and `_`, and does not start with a digit";
