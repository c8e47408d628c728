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
        reason: format!("bad regular expression: {error}"),
        help: "write it as in Rust's regex crate: no look-around, no back-references".to_owned(),
    })
}

/// Memory of a compiled pattern.
const SIZE_BYTES_MAX: usize = 16 << 20;
