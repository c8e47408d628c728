//! The JSON that is written, the schema that is shipped, and the page that documents it say the same.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use squall_measure::{Cause, Phase, Protocol, ReasonKind, Status, StoppedBy, Unit};

use super::{check_file, runs_of_every_kind};
use crate::{LoadKind, SUMMARY_SCHEMA, Summary};

#[test]
fn real_output_meets_the_schema() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for record in runs_of_every_kind() {
        let json = serde_json::to_value(Summary::from(&record)).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&json).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(faults, Vec::<String>::new());
    }
}

/// The schema allows fields that it does not know, so that new ones break no reader; ours must all be in it.
#[test]
fn schema_names_every_field_that_is_written() {
    let known: BTreeSet<String> = fields().into_iter().map(|(path, _)| path).collect();
    let mut written = BTreeSet::new();
    for record in runs_of_every_kind() {
        let json = serde_json::to_value(Summary::from(&record)).unwrap();
        collect(&json, "", &mut written);
    }
    let is_open = |path: &String| {
        [
            "plan.",
            "status.",
            "environment.",
            "rows[].status.",
            "totals.script.metrics[].values.",
            "parts[].failures.",
            "shares[].failures.",
        ]
        .iter()
        .any(|open| path.starts_with(open))
    };
    let unknown: Vec<&String> =
        written.iter().filter(|path| !known.contains(*path) && !is_open(path)).collect();
    assert_eq!(unknown, Vec::<&String>::new());
}

#[test]
fn schema_names_every_value_of_every_enum() {
    let schema = schema();
    let check = |pointer: &str, names: BTreeSet<String>| {
        let listed = schema.pointer(&format!("{pointer}/enum")).and_then(Value::as_array).unwrap();
        assert_eq!(
            listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(),
            names
        );
    };
    check("/$defs/failure/properties/cause", variants::<Cause>());
    check("/$defs/failure/properties/phase", variants::<Phase>());
    check("/properties/rows/items/properties/protocol", variants::<Protocol>());
    check("/properties/stopped_by", variants::<StoppedBy>());
    check("/properties/thresholds/items/properties/unit", variants::<Unit>());
    check("/$defs/validity", variants::<Status>());
    check("/$defs/load_kind", LoadKind::ALL.iter().map(json_name).collect());
    check("/$defs/reason_kind", variants::<ReasonKind>());
}

fn json_name(kind: &LoadKind) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}

/// The names that serde knows, as its error lists them for an unknown one.
fn variants<T: DeserializeOwned>() -> BTreeSet<String> {
    let message = serde_json::from_str::<T>("\"?\"").err().unwrap().to_string();
    message.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn page_lists_every_field_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "\n| field | meaning |\n|---|---|\n".to_owned();
    let fields = fields();
    for (name, meaning) in fields.iter().filter(|(name, _)| !is_told_elsewhere(name, &fields)) {
        writeln!(table, "| `{name}` | {meaning} |").unwrap();
    }
    check_file(&path, &format!("{before}{BEGIN}{table}{END}{after}"));
}

/// The fields of a distribution are described once, at `latency_us`.
fn is_told_elsewhere(name: &str, fields: &[(String, String)]) -> bool {
    let is_distribution = |parent: &str| fields.iter().any(|(field, _)| *field == format!("{parent}.p99_9"));
    name.rsplit_once('.').is_some_and(|(parent, _)| parent != "latency_us" && is_distribution(parent))
}

fn schema() -> Value {
    serde_json::from_str(SUMMARY_SCHEMA).unwrap()
}

/// Every field's path and description.
fn fields() -> Vec<(String, String)> {
    let schema = schema();
    let mut fields = Vec::new();
    walk(&schema, &schema, "", &mut fields);
    fields
}

fn walk(root: &Value, node: &Value, path: &str, fields: &mut Vec<(String, String)>) {
    let node = resolved(root, node);
    if let Some(items) = node.get("items") {
        walk(root, items, &format!("{path}[]"), fields);
    }
    for variant in node.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        walk(root, variant, path, fields);
    }
    for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        fields.push((path.clone(), description(root, child)));
        walk(root, child, &path, fields);
    }
}

fn resolved<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    let target = node.get("$ref").and_then(Value::as_str);
    target.map_or(node, |target| root.pointer(target.trim_start_matches('#')).unwrap())
}

fn description(root: &Value, node: &Value) -> String {
    let own = node.get("description").or_else(|| resolved(root, node).get("description"));
    own.and_then(Value::as_str).unwrap().to_owned()
}

fn collect(json: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{path}[]"), paths)),
        Value::Object(map) => {
            for (name, child) in map {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(child, &path, paths);
                paths.insert(path);
            }
        }
        _ => {}
    }
}

const BEGIN: &str = "<!-- fields: written by the tests of `report` from the schema -->";

const END: &str = "<!-- end of fields -->";
