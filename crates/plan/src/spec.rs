//! A load as written: each option with its values and the place that they came from.
//!
//! Owns: what flags and plan files have in common before any of it is read. Never: which options there are (`options`), what they
//! mean (`load`).

use std::fmt;
use std::time::Duration;

/// One load, as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSpec {
    /// Its name in reports; unique within the plan.
    pub name: String,
    /// The command that makes it: one of [`LOAD_KINDS`](crate::file::LOAD_KINDS).
    pub kind: Text,
    /// The command's arguments, such as URLs.
    pub arguments: Vec<Text>,
    /// The command's flags, each once.
    pub options: Vec<GivenOption>,
    /// Whether arguments and options are all there: none was left out because it could not be read.
    pub is_whole: bool,
    /// Machines that make it; empty: all.
    pub on: Vec<Text>,
    /// Whether each machine makes all of it. Otherwise they make it together, each its part.
    pub per_machine: bool,
    /// How long after the step it starts.
    pub start_after: Duration,
    /// Rules for this load.
    pub thresholds: Vec<PlanRule>,
}

/// An option of a load, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// Its name without dashes.
    pub name: Text,
    /// Its values, each of which is a flag of its own; empty: a flag without a value.
    pub values: Vec<Text>,
}

/// A rule that a result must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRule {
    /// Such as `p(95)<200`.
    pub text: Text,
    /// The watched figure that it is about, such as `shop cpu`; `None`: it is about the load.
    pub monitor: Option<Text>,
    /// Whether the run ends as soon as it is broken.
    pub abort: bool,
}

/// A text and its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The text.
    pub value: String,
    /// Where it begins.
    pub place: Place,
}

/// A place in a file, both from 1. What was typed has none: there it is [`Place::START`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl LoadSpec {
    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&GivenOption> {
        self.options.iter().find(|option| option.name.value == name)
    }

    /// Whether there is an option of that name.
    pub fn has(&self, name: &str) -> bool {
        self.option(name).is_some()
    }

    /// Gives an option one more value.
    pub fn push(&mut self, name: &str, value: Text) {
        match self.options.iter_mut().find(|option| option.name.value == name) {
            Some(option) => option.values.push(value),
            None => {
                let name = Text { value: name.to_owned(), place: value.place };
                self.options.push(GivenOption { name, values: vec![value] });
            }
        }
    }
}

impl Text {
    /// What was typed, in no file.
    pub fn typed(value: impl Into<String>) -> Self {
        Self { value: value.into(), place: Place::START }
    }
}

impl Place {
    /// Where a file begins.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl Default for Place {
    fn default() -> Self {
        Self::START
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
