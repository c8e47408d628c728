//! The user's own rules: what else is a secret, and what is none.

use regex::bytes::Regex;
use squall_plan::InputError;
use squall_plan::secret::Secrecy;

use crate::pattern;

/// What is redacted in addition to the well-known names.
#[derive(Debug, Default)]
pub struct Rules {
    names: Vec<String>,
    kept: Vec<String>,
    /// RFC 6901 pointers in segments, where `*` is any name or index.
    paths: Vec<Vec<String>>,
    patterns: Vec<Regex>,
}

impl Rules {
    /// Redacts a field by its name (`order_ref`), a JSON value by its path (`/user/phone`), or what a regular expression matches: its
    /// first group, or all of it.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn redact(&mut self, rule: &str) -> Result<(), InputError> {
        if rule.starts_with('/') {
            let unescaped = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
            self.paths.push(rule.split('/').skip(1).map(unescaped).collect());
        } else if is_name(rule) {
            self.names.push(rule.to_ascii_lowercase());
        } else {
            let pattern = pattern::compile(rule)?;
            if pattern.is_match(b"") {
                return Err(refused(
                    "the pattern matches the empty text",
                    "write one that matches the secret alone",
                ));
            }
            self.patterns.push(pattern);
        }
        Ok(())
    }

    /// Leaves fields of this name as they are.
    ///
    /// # Errors
    /// When it is no name.
    pub fn keep(&mut self, name: &str) -> Result<(), InputError> {
        if !is_name(name) {
            return Err(refused("not a name", "write the name of a field, header or cookie"));
        }
        self.kept.push(name.to_ascii_lowercase());
        Ok(())
    }

    /// Adds the rules of a file: `redact RULE` or `keep NAME` in each line, `#` begins a comment.
    ///
    /// # Errors
    /// The number of the line that is neither, and why.
    pub fn read(&mut self, text: &str) -> Result<(), (usize, InputError)> {
        for (line_number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let added = match line.split_once(char::is_whitespace) {
                Some(("redact", rule)) => self.redact(rule.trim()),
                Some(("keep", name)) => self.keep(name.trim()),
                _ => Err(refused(
                    format!("`{line}` is not a rule"),
                    "write `redact NAME`, `redact /json/path`, `redact PATTERN` or `keep NAME`",
                )),
            };
            added.map_err(|error| (line_number, error))?;
        }
        Ok(())
    }

    /// The secrecy of a field, where its name alone has this one.
    pub(super) fn secrecy(&self, name: &str, by_name: Secrecy) -> Secrecy {
        let is_in = |names: &[String]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        match () {
            () if is_in(&self.kept) => Secrecy::No,
            () if is_in(&self.names) => Secrecy::Any,
            () => by_name,
        }
    }

    /// Whether fields of this name stay as they are.
    pub(super) fn keeps(&self, name: &str) -> bool {
        self.kept.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether there are paths to compare with.
    pub(super) fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether the value at this place of a JSON text is a secret.
    pub(super) fn is_at(&self, place: &[&str]) -> bool {
        let fits = |path: &Vec<String>| {
            path.len() == place.len() && path.iter().zip(place).all(|(want, is)| want == "*" || want == is)
        };
        self.paths.iter().any(fits)
    }

    pub(super) fn patterns(&self) -> &[Regex] {
        &self.patterns
    }
}

/// `user[password]`, `X-Api-Key`, `__VIEWSTATE`, `ASP.NET_SessionId`
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-.$:".contains(c);
    // Brackets are those of a form's fields, not a class of characters.
    let plain = text.replace("[]", "");
    let (head, brackets) =
        plain.split_once('[').map_or((plain.as_str(), None), |(head, rest)| (head, Some(rest)));
    let is_bracketed = brackets
        .is_none_or(|rest| rest.ends_with(']') && rest.chars().all(|c| is_part(c) || c == '[' || c == ']'));
    !head.is_empty() && head.chars().all(is_part) && is_bracketed
}

fn refused(reason: impl Into<String>, help: &str) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_distinguished_by_how_they_are_written() {
        let mut rules = Rules::default();
        rules
            .read("# ours\nredact order_ref\nredact /user/*/phone\nredact acct-(\\d{6})\n\nkeep theme\n")
            .unwrap();
        assert_eq!(rules.secrecy("Order_Ref", Secrecy::No), Secrecy::Any);
        assert_eq!(rules.secrecy("theme", Secrecy::Text), Secrecy::No);
        assert!(rules.is_at(&["user", "0", "phone"]) && !rules.is_at(&["user", "phone"]));
        assert!(rules.patterns()[0].is_match(b"acct-123456"));
    }

    #[test]
    fn bad_rules_are_refused_with_their_line() {
        for (text, line_number, reason) in [
            ("keep a\nredact (", 2, "bad regular expression"),
            ("hide x", 1, "is not a rule"),
            ("keep", 1, "is not a rule"),
            ("keep a b", 1, "not a name"),
            ("redact x*", 1, "empty text"),
        ] {
            let (line, error) = Rules::default().read(text).unwrap_err();
            assert!(line == line_number && error.reason.contains(reason), "{text}: {line} {error:?}");
        }
    }
}
