//! The JSON face: the summary as it is.

use serde::Serialize;
use squall_plan::printable::printable_json;

use crate::Summary;

/// The summary as indented JSON, with a final newline.
pub fn draw(summary: &Summary) -> String {
    pretty(summary)
}

/// Indented, for files that people may open.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    printable_json(serde_json::to_string_pretty(value).expect(PLAIN_DATA)) + "\n"
}

/// On one line, for large records.
pub(crate) fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect(PLAIN_DATA) + "\n"
}

/// Our types are structs of numbers and strings with string keys: serde_json fails only on other keys and on writers.
const PLAIN_DATA: &str = "plain data serialises";
