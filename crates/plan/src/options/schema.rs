//! The JSON Schema of plan files: what holds for every plan, and from the table the keys of each kind of load.

use serde_json::{Map, Value as Json, json};

use super::{Arity, LoadOption, LoadType, ValueForm, Written};

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
    let options = kind.options().filter(|option| option.written == Written::Anywhere && !option.is_hidden);
    let argument =
        (kind.name().to_owned(), json!({ "anyOf": [text(), { "type": "array", "items": text() }] }));
    let keys = options.map(|option| (option.name.to_owned(), key(option)));
    let properties: Map<String, Json> = std::iter::once(argument).chain(keys).collect();
    json!({
        "description": format!("Keys are flags of `squall {}`; `_` may be written for `-`.", kind.command()),
        "required": [kind.name()],
        "properties": properties,
    })
}

/// The schema of one key. Any value may be a text with a variable in it.
fn key(option: &LoadOption) -> Json {
    let single = match option.form {
        ValueForm::Switch => json!({ "type": ["boolean", "string"] }),
        ValueForm::Choice(_) => json!({ "anyOf": [
            { "enum": option.choices() },
            { "type": "number" },
            { "type": "string", "pattern": "\\$\\{" },
        ] }),
        ValueForm::Time => json!({ "type": "string" }),
        ValueForm::Number | ValueForm::Rate | ValueForm::Size => json!({ "type": ["number", "string"] }),
        ValueForm::Text | ValueForm::File | ValueForm::Path => text(),
    };
    let mut key = match option.arity {
        Arity::One => single,
        Arity::OneOr(_) => json!({ "anyOf": [single, { "const": true }] }),
        Arity::Many | Arity::List => json!({ "anyOf": [
            single,
            { "type": "array", "items": text() },
            { "type": "object" },
        ] }),
    };
    key["description"] = option.help().into();
    if let Some(value) = option.default {
        key["default"] = value.into();
    }
    key
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
        }
        assert_eq!(of(LoadType::Http)["properties"]["timeout"]["default"], "30s");
        assert_eq!(of(LoadType::Idle)["properties"]["http"]["anyOf"][0]["enum"], json!(["1", "2"]));
    }
}
