//! Whether a live body says the same as the recorded one: byte for byte, or, of JSON, in its structure.

use serde_json::Value;

use crate::{Response, decode};

/// Compares a live body with the recorded one; `None` where the recording does not have it.
pub fn same_body(recorded: &Response, live: &[u8], live_coding: Option<&[u8]>) -> Option<bool> {
    let recorded_body = recorded.body.as_deref()?;
    let recorded_body = decode::decoded(recorded_body, recorded.header("content-encoding"))?;
    let live = decode::decoded(live, live_coding)?;
    if recorded_body == live {
        return Some(true);
    }
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    match (json(&recorded_body), json(&live)) {
        (Some(one), Some(other)) => Some(same_structure(&one, &other)),
        _ => Some(false),
    }
}

/// The same names with the same kinds of values; arrays by their first elements, however long they are.
fn same_structure(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| same_structure(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => match (one.first(), other.first()) {
            (Some(one), Some(other)) => same_structure(one, other),
            _ => true,
        },
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_compared_by_structure_and_other_bodies_by_bytes() {
        let same = |recorded: &str, live: &str| {
            let mut response = Response::default();
            response.set_body(recorded.into());
            same_body(&response, live.as_bytes(), None)
        };
        assert_eq!(same(r#"{"id":1,"l":[1]}"#, r#"{"l":[2,3],"id":7}"#), Some(true));
        assert_eq!(same(r#"{"id":1}"#, r#"{"id":"1"}"#), Some(false));
        assert_eq!(same(r#"{"id":1}"#, r#"{"error":1}"#), Some(false));
        assert_eq!(same("<p>", "<p>"), Some(true));
        assert_eq!(same("<p>", "<q>"), Some(false));
        assert_eq!(same_body(&Response::default(), b"", None), None);
    }
}
