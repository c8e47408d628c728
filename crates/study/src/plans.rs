//! Whether two runs can be compared: the same load must have been made, towards whatever target.

use serde_json::Value;
use squall_plan::{Plan, What};

/// Why two runs cannot be compared: what differs in the load that was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("they ran different loads: {0}")]
pub struct Mismatch(pub String);

/// The first difference that makes figures incomparable: another number of users or requests, another length, another kind of
/// load. Another URL, protocol, or way of connecting may be just what is compared.
pub fn mismatch(a: &Plan, b: &Plan) -> Option<Mismatch> {
    let kinds = |plan: &Plan| plan.loads.iter().map(|load| kind(&load.what)).collect::<Vec<_>>();
    if kinds(a) != kinds(b) {
        return Some(Mismatch(format!("{}, {}", listed(&kinds(a)), listed(&kinds(b)))));
    }
    let line = differences(a, b).into_iter().find(|line| is_of_the_load(line))?;
    let (path, values) = line.split_once(": ").unwrap_or((&line, ""));
    Some(Mismatch(format!("their plans differ in `{path}` ({values})")))
}

/// What the figures of a load are about.
fn kind(what: &What) -> &'static str {
    match what {
        What::Handshake(_) => "handshakes",
        What::Idle(_) => "connections that are kept",
        What::Stream(_) => "streams",
        What::WebSocket(_) => "WebSockets",
        _ => "requests",
    }
}

fn listed(kinds: &[&str]) -> String {
    if kinds.is_empty() { "nothing of squall's own".to_owned() } else { kinds.join(" and ") }
}

/// What differs, one line for each value: `loads[0].when.Closed.connections.from: 50.0, 100.0`. Names do not count.
pub fn differences(a: &Plan, b: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    let value = |plan: &Plan| serde_json::to_value(plan).unwrap_or(Value::Null);
    collect("", &value(a), &value(b), &mut lines);
    lines
}

fn is_of_the_load(line: &str) -> bool {
    let path = line.split(':').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('.').collect();
    match parts[..] {
        ["warmup", ..] => true,
        [load, part, ..] if load.starts_with("loads[") => matches!(part, "when" | "stop"),
        ["loads"] => true,
        _ => false,
    }
}

fn collect(path: &str, a: &Value, b: &Value, lines: &mut Vec<String>) {
    match (a, b) {
        _ if a == b || NAMES.contains(&path) => {}
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, value) in a {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&path, value, &b[key], lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (idx, (a, b)) in a.iter().zip(b).enumerate() {
                collect(&format!("{path}[{idx}]"), a, b, lines);
            }
        }
        _ => lines.push(format!("{path}: {}, {}", short(a), short(b))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHAR_COUNT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What a plan and its rules are called changes no figure.
const NAMES: [&str; 2] = ["name", "thresholds"];

const VALUE_CHAR_COUNT_MAX: usize = 80;
