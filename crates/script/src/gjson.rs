//! Paths into JSON, as `response.json(path)` takes them: the part of GJSON's syntax that names values.
//!
//! Names, indices, wildcards `*` and `?`, `#` (count and each), queries `#(name=="x")` and `#(...)#`, escapes `\.`, `@this` and a few
//! modifiers. See <https://github.com/tidwall/gjson/blob/master/SYNTAX.md>.

use serde_json::Value;

/// What is at `path`; `None` when nothing is.
pub(crate) fn get(value: &Value, path: &str) -> Option<Value> {
    let Some((part, rest, is_pipe)) = split(path) else { return Some(value.clone()) };
    if let Some(modifier) = part.strip_prefix('@') {
        return modified(value, modifier).and_then(|value| get(&value, rest));
    }
    match value {
        Value::Array(items) => in_array(items, &part, rest, is_pipe),
        Value::Object(members) => {
            let found = members.iter().find(|(name, _)| matches_name(&part, name))?.1;
            get(found, rest)
        }
        _ => None,
    }
}

fn in_array(items: &[Value], part: &str, rest: &str, is_pipe: bool) -> Option<Value> {
    if part == "#" {
        if rest.is_empty() {
            return Some(items.len().into());
        }
        return Some(Value::Array(items.iter().filter_map(|item| get(item, rest)).collect()));
    }
    if let Some(query) = part.strip_prefix("#(") {
        return match query.strip_suffix(")#") {
            Some(query) => {
                let found: Vec<Value> = items.iter().filter(|item| holds(item, query)).cloned().collect();
                if rest.is_empty() || is_pipe {
                    return get(&Value::Array(found), rest);
                }
                Some(Value::Array(found.iter().filter_map(|item| get(item, rest)).collect()))
            }
            None => {
                let query = query.strip_suffix(')')?;
                get(items.iter().find(|item| holds(item, query))?, rest)
            }
        };
    }
    get(items.get(part.parse::<usize>().ok()?)?, rest)
}

/// The first part of a path, what follows it, and whether a pipe stands between them.
fn split(path: &str) -> Option<(String, &str, bool)> {
    if path.is_empty() {
        return None;
    }
    let (mut part, mut depth, mut quoted, mut escaped) = (String::new(), 0_i32, false, false);
    let is_query = path.starts_with("#(");
    for (at, letter) in path.char_indices() {
        match letter {
            _ if escaped => {
                escaped = false;
                if !is_query {
                    part.push('\\');
                }
                part.push(letter);
                continue;
            }
            '\\' if !is_query => {
                escaped = true;
                continue;
            }
            '"' if is_query => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            '.' | '|' if depth == 0 && !quoted => return Some((part, &path[at + 1..], letter == '|')),
            _ => {}
        }
        part.push(letter);
    }
    Some((part, "", false))
}

/// Whether a member's name fits a part with wildcards; `\` makes the next letter plain.
fn matches_name(pattern: &str, name: &str) -> bool {
    fn fits(pattern: &[char], name: &[char]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some('\\'), Some(letter)) => pattern.get(1) == Some(letter) && fits(&pattern[2..], &name[1..]),
            (Some('*'), _) => fits(&pattern[1..], name) || !name.is_empty() && fits(pattern, &name[1..]),
            (Some('?'), Some(_)) => fits(&pattern[1..], &name[1..]),
            (Some(wanted), Some(letter)) => wanted == letter && fits(&pattern[1..], &name[1..]),
            _ => false,
        }
    }
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == name;
    }
    fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

/// Whether an element fits a query such as `age>=45` or `nested.name=="x"`.
fn holds(item: &Value, query: &str) -> bool {
    let Some((at, operator)) = operator_of(query) else { return get(item, query.trim()).is_some() };
    let (path, wanted) = (query[..at].trim(), query[at + operator.len()..].trim());
    let Some(actual) = (if path.is_empty() { Some(item.clone()) } else { get(item, path) }) else {
        return false;
    };
    let wanted: Value = serde_json::from_str(wanted).unwrap_or_else(|_| wanted.into());
    match (operator, &actual, &wanted) {
        ("=" | "==", _, _) => is_equal(&actual, &wanted),
        ("!=", _, _) => !is_equal(&actual, &wanted),
        ("%", Value::String(text), Value::String(pattern)) => matches_name(pattern, text),
        ("!%", Value::String(text), Value::String(pattern)) => !matches_name(pattern, text),
        (_, Value::String(left), Value::String(right)) => {
            ordered(operator, left.as_str().cmp(right.as_str()))
        }
        (_, Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.as_f64().unwrap_or(f64::NAN), right.as_f64().unwrap_or(f64::NAN));
            left.partial_cmp(&right).is_some_and(|order| ordered(operator, order))
        }
        _ => false,
    }
}

/// The operator of a query and where it stands: outside of queries within it.
fn operator_of(query: &str) -> Option<(usize, &'static str)> {
    let mut depth = 0_u32;
    for (at, letter) in query.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ => {
                if let Some(operator) = OPERATORS.iter().find(|operator| query[at..].starts_with(*operator)) {
                    return Some((at, operator));
                }
            }
        }
    }
    None
}

fn is_equal(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        _ => actual == wanted,
    }
}

fn ordered(operator: &str, order: std::cmp::Ordering) -> bool {
    match operator {
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => false,
    }
}

fn modified(value: &Value, modifier: &str) -> Option<Value> {
    Some(match (modifier, value) {
        ("this", _) => value.clone(),
        ("reverse", Value::Array(items)) => Value::Array(items.iter().rev().cloned().collect()),
        ("reverse", _) => value.clone(),
        ("keys", Value::Object(members)) => members.keys().map(|name| Value::from(name.as_str())).collect(),
        ("values", Value::Object(members)) => members.values().cloned().collect(),
        ("values", Value::Array(_)) => value.clone(),
        ("flatten", Value::Array(items)) => {
            let flat = items.iter().flat_map(|item| match item {
                Value::Array(inner) => inner.clone(),
                other => vec![other.clone()],
            });
            flat.collect()
        }
        ("tostr", _) => value.to_string().into(),
        ("fromstr", Value::String(text)) => serde_json::from_str(text).ok()?,
        ("valid" | "pretty" | "ugly", _) => value.clone(),
        _ => return None,
    })
}

const OPERATORS: &[&str] = &["==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_what_the_syntax_says() {
        // The example document of GJSON's own syntax page.
        let document: Value = serde_json::from_str(
            r#"{"name": {"first": "Tom", "last": "Anderson"}, "age": 37, "children": ["Sara","Alex","Jack"],
                "fav.movie": "Deer Hunter", "friends": [
                {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
                {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
                {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}]}"#,
        )
        .unwrap();
        for (path, expected) in [
            ("name.last", r#""Anderson""#),
            ("age", "37"),
            ("children.#", "3"),
            ("children.1", r#""Alex""#),
            ("child*.2", r#""Jack""#),
            ("c?ildren.0", r#""Sara""#),
            ("fav\\.movie", r#""Deer Hunter""#),
            ("friends.#.first", r#"["Dale","Roger","Jane"]"#),
            ("friends.1.last", r#""Craig""#),
            (r#"friends.#(last=="Murphy").first"#, r#""Dale""#),
            (r#"friends.#(last=="Murphy")#.first"#, r#"["Dale","Jane"]"#),
            ("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#),
            (r#"friends.#(first%"D*").last"#, r#""Murphy""#),
            (r#"friends.#(nets.#(=="fb"))#.first"#, r#"["Dale","Roger"]"#),
            ("children|@reverse|0", r#""Jack""#),
        ] {
            let found = get(&document, path).map(|value| value.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{path}");
        }
        for path in ["nothing", "children.9", "age.x", "friends.#(age>100).first"] {
            assert_eq!(get(&document, path), None, "{path}");
        }
    }
}
