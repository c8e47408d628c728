//! Why a script cannot be run: one message, its place, and how to fix it.

use crate::loading::LoadError;
use crate::vm::{Ctx, Thrown, Value};

/// Why a script cannot be run, or why a part of it failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// What is wrong; an exception's text with its stack.
    pub message: String,
    /// `file:line:column` of the script.
    pub place: Option<String>,
    /// How to fix it.
    pub help: String,
    /// Whose fault, as far as the exit code asks.
    pub kind: ErrorKind,
}

/// Whose fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The script threw, or cannot be compiled: k6's 107.
    Exception,
    /// A rejected promise was not handled: k6's 255, outside of iterations.
    Rejection,
    /// Options that contradict each other or cannot be read: k6's 104.
    Options,
    /// It took too long: k6's 100 and 101.
    Timeout,
    /// `exec.test.abort()`: k6's 108.
    Abort,
    /// It was interrupted from outside.
    Interrupted,
    /// A file or module that cannot be read: k6's 255.
    Load,
}

impl ScriptError {
    /// An error without a place.
    pub fn new(kind: ErrorKind, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, help: help.into(), kind }
    }

    /// `exec.test.abort()`, and why.
    pub(crate) fn aborted(reason: String) -> Self {
        Self::new(ErrorKind::Abort, reason, "the script aborted the test")
    }

    /// The pending exception.
    pub(crate) fn thrown(ctx: Ctx<'_>) -> Self {
        Self::of(&ctx.take_exception())
    }

    /// An exception; one that is no object must be the last that was thrown.
    pub(crate) fn of(exception: &Value<'_>) -> Self {
        let trace = exception.ctx().take_trace();
        let own = frames_of(exception);
        let frames = if own.is_empty() { frames_in(&trace) } else { own };
        Self::with_frames(exception, &frames)
    }

    fn with_frames(exception: &Value<'_>, frames: &[String]) -> Self {
        let place = frames.iter().find_map(|line| place_in(line));
        let mut message = describe(exception);
        for line in frames {
            message.push_str("\n\t");
            message.push_str(line);
        }
        Self { message, place, help: help_for(exception), kind: ErrorKind::Exception }
    }
}

/// What was thrown, in one line.
pub(crate) fn describe(exception: &Value<'_>) -> String {
    match exception.to_string() {
        Ok(text) => text,
        Err(_) => {
            drop(exception.ctx().take_exception());
            "an exception that cannot be displayed".to_owned()
        }
    }
}

/// The lines of an error's stack that are places.
pub(crate) fn frames_of(exception: &Value<'_>) -> Vec<String> {
    if !exception.is_object() {
        return Vec::new();
    }
    match exception.get("stack") {
        Ok(stack) => frames_in(&stack.as_text().map_or_else(String::new, |text| text.to_owned())),
        Err(_) => {
            drop(exception.ctx().take_exception());
            Vec::new()
        }
    }
}

/// Of text of which the first lines may be an error's message. What JSON itself throws has a place in the JSON, and what a module of our own
/// throws one in that module: both are left out.
fn frames_in(stack: &str) -> Vec<String> {
    let is_own = |line: &str| line.contains("(squall:") || line.starts_with("at squall:");
    let is_frame = |line: &&str| line.starts_with("at ") && !line.contains("<input>:") && !is_own(line);
    stack.lines().map(str::trim).filter(is_frame).map(str::to_owned).collect()
}

/// `file:line:column` out of a line of a stack.
fn place_in(line: &str) -> Option<String> {
    let inside = match line.split_once('(') {
        Some((_, rest)) => rest.trim_end().trim_end_matches(')'),
        None => line.trim().strip_prefix("at ")?,
    };
    let mut parts = inside.rsplitn(3, ':');
    let (column, row) = (parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(column) && is_number(row)).then(|| inside.trim_start_matches("file://").to_owned())
}

/// The help that the error was thrown with, or that for what the engine itself throws, of which it says no more than the words.
fn help_for(exception: &Value<'_>) -> String {
    if let Some(help) = property(exception, HELP) {
        return help;
    }
    let help = match (property(exception, "name").as_deref(), property(exception, "message").as_deref()) {
        (Some("SyntaxError"), _) => "correct the script at that position",
        (Some("InternalError"), Some("out of memory")) => {
            "the script exceeds the memory limit of one virtual user"
        }
        (Some("RangeError"), Some("Maximum call stack size exceeded")) => {
            "a function calls itself without end"
        }
        _ => "the script threw an exception that it did not catch",
    };
    help.to_owned()
}

fn property(exception: &Value<'_>, name: &str) -> Option<String> {
    if !exception.is_object() {
        return None;
    }
    match exception.get(name) {
        Ok(value) => value.as_text().map(|text| text.to_owned()),
        Err(_) => {
            drop(exception.ctx().take_exception());
            None
        }
    }
}

/// Throws that a module or a file cannot be had.
pub(crate) fn throw(ctx: Ctx<'_>, problem: &LoadError) -> Thrown {
    let thrown = ctx.throw_error(&problem.to_string());
    problem.help().map_or(thrown, |help| rethrown_with(ctx, HELP, help))
}

/// The same as an error with another name.
pub(crate) fn throw_as(ctx: Ctx<'_>, name: &str, problem: &LoadError) -> Thrown {
    throw(ctx, problem);
    rethrown_with(ctx, "name", name)
}

/// Throws the pending exception with one property more, which is not enumerated.
pub(crate) fn rethrown_with(ctx: Ctx<'_>, name: &str, value: &str) -> Thrown {
    let error = ctx.take_exception();
    match error.define_hidden(name, ctx.string(value)) {
        Ok(()) => ctx.throw_value(error),
        Err(Thrown) => Thrown,
    }
}

/// Where an error has its help; no property of a script is named so by chance.
const HELP: &str = "squall.help";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_stacks() {
        for (line, place) in [
            ("    at default (file:///a/b.js:5:10)", Some("/a/b.js:5:10")),
            ("    at file:///a/b.js:3:1", Some("/a/b.js:3:1")),
            ("    at get (native)", None),
            ("", None),
        ] {
            assert_eq!(place_in(line).as_deref(), place, "{line}");
        }
    }
}
