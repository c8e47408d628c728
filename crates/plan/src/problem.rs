//! What is wrong with a load, as values: which option, where it was written, and what to write instead.
//!
//! Owns: the wording that all options share.

use std::io;
use std::path::Path;

use crate::mask::masked_text;
use crate::{InputError, Place};

/// One thing that is wrong with the options of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// The option's long name without dashes, or an argument's as the help shows it, such as `URL`; `None`: not one option alone.
    pub option: Option<String>,
    /// Where the wrong text was written; `None`: where its option was.
    pub place: Option<Place>,
    /// Other options that it depends on: where one of them is wrong itself, this only follows.
    pub others: Vec<String>,
    /// What: lowercase, without a final period.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl OptionProblem {
    /// A problem of one option.
    pub fn of(option: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { option: Some(option.to_owned()), ..Self::whole(message, help) }
    }

    /// A problem of no single option.
    pub fn whole(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { option: None, place: None, others: Vec::new(), message: message.into(), help: help.into() }
    }

    /// A value that cannot be read. `shown`: the flag as the help shows it, such as `--rate <RATE>`, or an argument's name.
    pub fn invalid(shown: &str, value: &str, error: &InputError) -> Self {
        let column = if error.column > 1 { format!(" at column {}", error.column) } else { String::new() };
        let why = if error.reason.is_empty() { String::new() } else { format!(": {}", error.reason) };
        let value = masked_text(value);
        let message = format!("invalid value `{}` for `{shown}`{why}{column}", value.escape_debug());
        Self::of(option_name(shown), message, error.help.clone())
    }

    /// A file that cannot be read. `shown` as for [`OptionProblem::invalid`].
    pub fn file(shown: &str, path: &Path, error: &io::Error) -> Self {
        let purpose = if shown.starts_with('-') { format!(" for `{shown}`") } else { String::new() };
        let message = format!("cannot read `{}`{purpose}: {error}", path.display());
        Self::of(option_name(shown), message, "check the path and its permissions")
    }

    /// The same, depending on these other options.
    #[must_use]
    pub fn with(self, others: &[&str]) -> Self {
        Self { others: others.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// The same, about the text that was written there.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }
}

/// `rate` of `--rate <RATE>`; `URL` of `[URL]...`.
pub fn option_name(shown: &str) -> &str {
    match shown.strip_prefix("--") {
        Some(rest) => rest.split(['=', ' ', '[']).next().unwrap_or(rest),
        None => shown.trim_matches(['[', ']', '<', '>', '.']),
    }
}

/// How a user writes options, and so how messages show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionStyle {
    /// On a command line: `--sni NAME`.
    Flags,
    /// In a plan file: `sni: NAME`.
    Keys,
}

impl OptionStyle {
    /// An option without its value.
    pub fn name(self, option: &str) -> String {
        match self {
            Self::Flags => format!("`--{option}`"),
            Self::Keys => format!("`{option}`"),
        }
    }

    /// An option with this value.
    pub fn with_value(self, option: &str, value: &str) -> String {
        match self {
            Self::Flags => format!("`--{option} {value}`"),
            Self::Keys => format!("`{option}: '{value}'`"),
        }
    }
}

/// All that is wrong with a load. It is empty where all of that was known before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems(pub Vec<OptionProblem>);

impl Problems {
    /// The value, or `None` and its problems added to these.
    pub fn take<T>(&mut self, result: Result<T, impl Into<Self>>) -> Option<T> {
        result.map_err(|problems| self.0.extend(problems.into().0)).ok()
    }

    /// An error where there is any problem.
    ///
    /// # Errors
    /// All problems.
    pub fn end(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<OptionProblem> for Problems {
    fn from(problem: OptionProblem) -> Self {
        Self(vec![problem])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_by_its_name_as_the_help_shows_it() {
        for (shown, name) in [
            ("--rate <RATE>", "rate"),
            ("--h2c[=<HOW>]", "h2c"),
            ("--no-keepalive", "no-keepalive"),
            ("[URL]...", "URL"),
            ("<HOST:PORT>...", "HOST:PORT"),
            ("URL", "URL"),
        ] {
            assert_eq!(option_name(shown), name, "{shown}");
        }
    }

    #[test]
    fn problems_of_all_parts_are_collected() {
        let mut problems = Problems::default();
        let bad = |option: &str| OptionProblem::of(option, "bad", "write a good one");
        assert_eq!(problems.take::<u8>(Err(bad("rate"))), None);
        assert_eq!(problems.take::<u8>(Ok::<_, Problems>(1)), Some(1));
        assert_eq!(problems.take::<u8>(Err(Problems(vec![bad("source"), bad("tls")]))), None);
        let names: Vec<_> = problems.0.iter().filter_map(|problem| problem.option.as_deref()).collect();
        assert_eq!(names, ["rate", "source", "tls"]);
        assert!(problems.end().is_err() && Problems::default().end().is_ok());
    }
}
