//! How values are written into a page.

use serde::Serialize;

/// The name that the JSON contract has for a value.
pub(super) fn name_of(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// To three decimals.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
