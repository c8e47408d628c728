//! What a plan file gets from outside: `${NAME}` and `${NAME:-default}` from `--var`, from its own `variables` or from the environment,
//! and its list of hosts.

use super::document::{Node, Value};
use super::inventory::HostList;
use super::{Place, Problem};

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
        let mut problems = Vec::new();
        let Value::Map(entries) = &mut root.value else { return problems };
        let own = entries.iter().position(|(key, _)| key.value == "variables");
        let own = own.map(|idx| entries.remove(idx).1);
        let own = own.map_or_else(Vec::new, |node| self.own(&node, &mut problems));
        for (name, _) in self.given.iter().filter(|(name, _)| !is_name(name)) {
            problems.push(Problem::at(Place::START, format!("`--var {name}`: not a name"), NAME_HELP));
        }
        self.fill_node(root, &own, &mut problems);
        problems
    }

    /// The file's own values, each of which may use those before it.
    fn own(&self, node: &Node, problems: &mut Vec<Problem>) -> Vec<(String, String)> {
        let mut own = Vec::new();
        let Value::Map(entries) = &node.value else {
            problems.push(Problem::at(
                node.place,
                format!("`variables` is {}, not a mapping", node.kind()),
                "write `name: value` lines below it",
            ));
            return own;
        };
        for (key, value) in entries {
            match &value.value {
                Value::Scalar(_) if !is_name(&key.value) => {
                    problems.push(Problem::at(
                        key.place,
                        format!("`{}` is not a name", key.value),
                        NAME_HELP,
                    ));
                }
                Value::Scalar(text) => {
                    let filled = self.fill_text(text, value.place, &own, problems);
                    own.push((key.value.clone(), filled));
                }
                Value::Null => own.push((key.value.clone(), String::new())),
                Value::List(_) | Value::Map(_) => problems.push(Problem::at(
                    value.place,
                    format!("the variable `{}` is {}", key.value, value.kind()),
                    "a variable is a single value",
                )),
            }
        }
        own
    }

    fn fill_node(&self, node: &mut Node, own: &[(String, String)], problems: &mut Vec<Problem>) {
        match &mut node.value {
            Value::Null => {}
            Value::Scalar(text) if text.contains('$') => {
                *text = self.fill_text(text, node.place, own, problems);
            }
            Value::Scalar(_) => {}
            Value::List(items) => items.iter_mut().for_each(|item| self.fill_node(item, own, problems)),
            Value::Map(entries) => {
                entries.iter_mut().for_each(|(_, value)| self.fill_node(value, own, problems));
            }
        }
    }

    /// `$${` stands for `${`.
    fn fill_text(
        &self,
        text: &str,
        place: Place,
        own: &[(String, String)],
        problems: &mut Vec<Problem>,
    ) -> String {
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
                problems.push(Problem::at(
                    place,
                    "`${` without its `}`",
                    "write `${NAME}`, or `$${` for the text itself",
                ));
                return filled;
            };
            filled.push_str(&self.value(inside, place, own, problems));
            rest = after;
        }
        filled + rest
    }

    fn value(
        &self,
        inside: &str,
        place: Place,
        own: &[(String, String)],
        problems: &mut Vec<Problem>,
    ) -> String {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let of = |pairs: &[(String, String)]| {
            pairs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let found = of(self.given).or_else(|| of(own)).or_else(|| (self.environment)(name));
        found.or_else(|| default.map(str::to_owned)).unwrap_or_else(|| {
            let help = format!(
                "give it with `--var {name}=VALUE`, in the environment, or write `${{{name}:-default}}`"
            );
            problems.push(Problem::at(place, format!("the variable `{name}` has no value"), help));
            String::new()
        })
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

const NAME_HELP: &str = "a name has letters, digits and `_`, and does not begin with a digit";
