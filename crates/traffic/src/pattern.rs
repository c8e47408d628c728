//! Regular expressions as users write them: one configuration for every flag that takes one.

use regex::bytes::{Regex, RegexBuilder};
use squall_plan::InputError;

/// Reads a pattern: Perl classes (`\d`, `\w`, `\s`, `\b`) and Unicode classes (`\p{L}`) are there.
///
/// # Errors
/// When it is none, or too large.
pub fn compile(text: &str) -> Result<Regex, InputError> {
    RegexBuilder::new(text).size_limit(SIZE_BYTES_MAX).build().map_err(|error| InputError {
        column: 1,
        reason: format!("bad regular expression: {}", in_one_line(&error)),
        help: "write it as in Rust's regex crate: no look-around, no back-references".to_owned(),
    })
}

/// The reason without the drawing of the pattern above it: a message has one line.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// Memory of a compiled pattern.
const SIZE_BYTES_MAX: usize = 16 << 20;
