//! Squall's own options. They stand under `ext.squall`, which k6 passes over, so that a script that has them runs with k6 too.

use serde_json::{Map, Value as Json};
use squall_plan::HttpVersion;
use squall_plan::limits::{BODY_BYTES_DEFAULT, USER_BODIES_BYTES_MAX};

use super::scenario::ScenarioConfig;
use super::{Reader, wrong};
use crate::error::ScriptError;

/// The version of HTTP outside of scenarios; each scenario gets its own.
pub(super) fn http(read: &Reader<'_>, scenarios: &mut [ScenarioConfig]) -> Result<HttpVersion, ScriptError> {
    let Some(own) = read.get("ext").and_then(|ext| ext.get("squall")) else { return Ok(HttpVersion::Auto) };
    let own = members("ext.squall", own, KNOWN)?;
    let common = version("ext.squall.http", own.get("http"))?.unwrap_or(HttpVersion::Auto);
    scenarios.iter_mut().for_each(|scenario| scenario.http = common);
    let Some(by_name) = own.get("scenarios") else { return Ok(common) };
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    let by_name = members("ext.squall.scenarios", by_name, &names)?;
    for scenario in scenarios {
        let place = format!("ext.squall.scenarios.{}", scenario.name);
        let Some(one) = by_name.get(&scenario.name) else { continue };
        let one = members(&place, one, &["http"])?;
        scenario.http = version(&format!("{place}.http"), one.get("http"))?.unwrap_or(common);
    }
    Ok(common)
}

/// Largest body of a response that may be read.
pub(super) fn body_bytes_max(read: &Reader<'_>) -> Result<u64, ScriptError> {
    let own = read.get("ext").and_then(|ext| ext.get("squall")).and_then(|own| own.get("maxBodyBytes"));
    let Some(value) = own else { return Ok(BODY_BYTES_DEFAULT) };
    let known = value.as_u64().filter(|bytes| (1..=USER_BODIES_BYTES_MAX).contains(bytes));
    known.ok_or_else(|| {
        let help =
            format!("use a number of bytes up to {USER_BODIES_BYTES_MAX}, the limit for a virtual user");
        wrong("ext.squall.maxBodyBytes", &format!("is {value}"), &help)
    })
}

/// Whether WebSockets of `k6/websockets` stay open when an iteration ends.
pub(super) fn keeps_streams(read: &Reader<'_>) -> Result<bool, ScriptError> {
    let own = read.get("ext").and_then(|ext| ext.get("squall")).and_then(|own| own.get("keepWebSockets"));
    let Some(value) = own else { return Ok(false) };
    value
        .as_bool()
        .ok_or_else(|| wrong("ext.squall.keepWebSockets", &format!("is {value}"), "use true or false"))
}

/// The members of `ext.squall`.
const KNOWN: &[&str] = &["http", "keepWebSockets", "maxBodyBytes", "scenarios"];

/// The members of an object that may have these.
fn members<'j>(place: &str, value: &'j Json, known: &[&str]) -> Result<&'j Map<String, Json>, ScriptError> {
    let help = format!("allowed fields: {}", known.join(", "));
    let map = value.as_object().ok_or_else(|| wrong(place, "is not an object", &help))?;
    match map.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(map),
        Some(name) => Err(wrong(place, &format!("has the unknown field `{name}`"), &help)),
    }
}

fn version(place: &str, value: Option<&Json>) -> Result<Option<HttpVersion>, ScriptError> {
    let Some(value) = value else { return Ok(None) };
    let known = value.as_str().and_then(http_version);
    known.map(Some).ok_or_else(|| wrong(place, &format!("is {value}"), HTTP_HELP))
}

/// A version of HTTP by its name in plans.
pub(crate) fn http_version(name: &str) -> Option<HttpVersion> {
    serde_json::from_value(name.into()).ok()
}

/// What a version may be.
pub(crate) const HTTP_HELP: &str = "use '1.1', '2', '3' or 'auto'";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Layer, LayerKind, Options};
    use super::*;

    fn options(ext: &Json) -> Result<Options, ScriptError> {
        let scenario = json!({ "executor": "shared-iterations" });
        let options = json!({ "ext": ext, "scenarios": { "a": scenario, "b": scenario } });
        Options::of(vec![Layer { kind: LayerKind::Script, options: options.as_object().unwrap().clone() }])
    }

    #[test]
    fn each_scenario_has_its_version_of_http() {
        use HttpVersion::{Auto, Http2, Http11};
        for (ext, expected) in [
            (json!({}), [Auto, Auto, Auto]),
            (json!({ "loadimpact": { "projectID": 1 } }), [Auto, Auto, Auto]),
            (json!({ "squall": { "http": "1.1" } }), [Http11, Http11, Http11]),
            (json!({ "squall": { "scenarios": { "a": { "http": "2" } } } }), [Auto, Http2, Auto]),
            (
                json!({ "squall": { "http": "2", "scenarios": { "a": { "http": "1.1" }, "b": {} } } }),
                [Http2, Http11, Http2],
            ),
        ] {
            let options = options(&ext).unwrap();
            let own = |idx: usize| options.scenarios[idx].http;
            assert_eq!([options.runtime.http, own(0), own(1)], expected, "{ext}");
        }
    }

    #[test]
    fn what_is_unknown_is_refused_with_help() {
        for (own, message, help) in [
            (
                json!(1),
                "option `ext.squall` is not an object",
                "allowed fields: http, keepWebSockets, maxBodyBytes, scenarios",
            ),
            (
                json!({ "htp": "2" }),
                "option `ext.squall` has the unknown field `htp`",
                "allowed fields: http, keepWebSockets, maxBodyBytes, scenarios",
            ),
            (json!({ "http": "4" }), "option `ext.squall.http` is \"4\"", HTTP_HELP),
            (json!({ "http": 2 }), "option `ext.squall.http` is 2", HTTP_HELP),
            (
                json!({ "maxBodyBytes": "1MB" }),
                "option `ext.squall.maxBodyBytes` is \"1MB\"",
                "use a number of bytes up to 268435456, the limit for a virtual user",
            ),
            (json!({ "keepWebSockets": 1 }), "option `ext.squall.keepWebSockets` is 1", "use true or false"),
            (
                json!({ "scenarios": { "c": {} } }),
                "option `ext.squall.scenarios` has the unknown field `c`",
                "allowed fields: a, b",
            ),
            (
                json!({ "scenarios": { "a": { "http": "h2" } } }),
                "option `ext.squall.scenarios.a.http` is \"h2\"",
                HTTP_HELP,
            ),
        ] {
            let error = options(&json!({ "squall": own })).unwrap_err();
            assert_eq!((error.message.as_str(), error.help.as_str()), (message, help));
        }
    }
}
