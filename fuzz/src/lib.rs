//! What fuzz targets have in common.

pub mod h2;
pub mod h3;
pub mod seen;
pub mod traffic;

use squall_plan::InputError;

/// Checks that an error can be shown to the author of `text`: it points into it, and says something.
pub fn check_error(text: &str, error: &InputError) {
    let column_max = text.chars().count() + 1;
    assert!((1..=column_max).contains(&error.column), "column {} of {column_max}: {error:?}", error.column);
    assert!(!error.reason.is_empty() && !error.reason.ends_with('.'), "{error:?}");
    assert!(!error.help.is_empty(), "{error:?}");
}

/// The value, if the text was accepted; otherwise its error is checked.
pub fn accepted<T>(text: &str, result: Result<T, InputError>) -> Option<T> {
    result.map_err(|error| check_error(text, &error)).ok()
}
