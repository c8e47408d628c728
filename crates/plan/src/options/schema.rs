//! The JSON Schema of plan files: what holds for every plan, and from the table the keys of each kind of load.

use serde_json::{Map, Value as Json, json};

use super::{Arity, LoadOption, LoadType, ValueForm};

/// The JSON Schema (2020-12) of plan files.
pub fn plan_schema() -> String {
    let mut schema: Json = serde_json::from_str(BASE).unwrap_or_default();
    if let Some(Json::Array(kinds)) = schema.pointer_mut("/$defs/loads/items/anyOf") {
        kinds.extend(LoadType::LOADS.map(schema_of));
    }
    format!("{schema:#}\n")
}

/// The keys of one kind of load.
fn schema_of(kind: LoadType) -> Json {
    let argument =
        (kind.name().to_owned(), json!({ "anyOf": [text(), { "type": "array", "items": text() }] }));
    let keys = kind.keys().filter(|option| !option.is_hidden);
    let keys = keys.map(|option| (option.name.to_owned(), key(option)));
    let properties: Map<String, Json> = std::iter::once(argument).chain(keys).collect();
    json!({
        "description": format!("Keys are flags of `squall {}`; `_` may be written for `-`.", kind.command()),
        "required": [kind.name()],
        "properties": properties,
    })
}

/// The schema of one key: every way to write it that plan files allow. `false` is as if the key were not there.
fn key(option: &LoadOption) -> Json {
    let mut forms = single(option);
    match option.arity {
        _ if option.is_switch() => {}
        Arity::One => forms.extend([json!({ "const": false }), list_of_one()]),
        Arity::OneOr(_) => forms.extend([json!({ "type": ["boolean", "null"] }), list_of_one()]),
        Arity::Many | Arity::List => {
            forms.extend([
                json!({ "const": false }),
                json!({ "type": "array", "items": text() }),
                json!({ "type": "object" }),
            ]);
        }
    }
    let mut key = json!({ "anyOf": forms, "description": option.help() });
    if let Some(value) = option.default {
        key["default"] = value.into();
    }
    key
}

/// The ways to write a single value. Any may be a text with a variable in it.
fn single(option: &LoadOption) -> Vec<Json> {
    match option.form {
        ValueForm::Switch => vec![json!({ "type": ["boolean", "string", "null"] })],
        ValueForm::Choice(_) => vec![
            json!({ "enum": option.choices() }),
            json!({ "type": "number" }),
            json!({ "type": "string", "pattern": "\\$\\{" }),
        ],
        // Times too: 0 needs no unit.
        _ => vec![json!({ "type": ["number", "string"] })],
    }
}

fn list_of_one() -> Json {
    json!({ "type": "array", "items": text(), "minItems": 1, "maxItems": 1 })
}

/// One value of any kind, as YAML may read it.
fn text() -> Json {
    json!({ "type": ["string", "number", "boolean"] })
}

/// What is no option of a load.
const BASE: &str = include_str!("../../../../schema/plan.schema.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_load_has_its_keys() {
        let schema: Json = serde_json::from_str(&plan_schema()).unwrap();
        let kinds = schema.pointer("/$defs/loads/items/anyOf").unwrap().as_array().unwrap();
        let of = |kind: LoadType| kinds.iter().find(|found| found["required"][0] == kind.name()).unwrap();
        for kind in LoadType::LOADS {
            let keys = of(kind)["properties"].as_object().unwrap();
            assert!(keys.contains_key("threads") && keys.contains_key(kind.name()), "{keys:?}");
            assert!(!keys.contains_key("threshold") && !keys.contains_key("per-thread"), "{keys:?}");
            assert!(keys[kind.name()].get("description").is_none(), "the argument of {}", kind.name());
        }
        assert_eq!(of(LoadType::Http)["properties"]["timeout"]["default"], "30s");
        assert_eq!(of(LoadType::Idle)["properties"]["http"]["anyOf"][0]["enum"], json!(["1", "2"]));
    }
}
