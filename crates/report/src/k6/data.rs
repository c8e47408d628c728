//! The data of `handleSummary`, and the older form that `--summary-export` writes.

use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use squall_measure::{ScriptCheck, ScriptMetric, ScriptValue};

use super::{ScriptSummary, contains, kind, stats};

/// What `handleSummary(data)` is given.
pub fn summary_data(summary: &ScriptSummary<'_>, is_stdout_tty: bool) -> Value {
    let mut metrics = Map::new();
    for (idx, metric) in summary.figures.metrics.iter().enumerate() {
        if metric.value.is_empty() && summary.rules.of(idx).is_none() {
            continue;
        }
        let values: Map<String, Value> =
            stats(metric, summary).into_iter().map(|(name, value)| (name, value.into())).collect();
        let mut one =
            json!({ "type": kind(&metric.value), "contains": contains(metric.contains), "values": values });
        if let Some(thresholds) = thresholds(summary, idx, false) {
            one["thresholds"] = thresholds;
        }
        metrics.insert(metric.full_name(), one);
    }
    let mut data = json!({
        "root_group": group(summary, "", ""),
        "options": {
            "summaryTrendStats": summary.trend_stats,
            "summaryTimeUnit": summary.time_unit,
            "noColor": false,
        },
        "state": {
            "isStdOutTTY": is_stdout_tty,
            "isStdErrTTY": is_stdout_tty,
            "testRunDurationMs": summary.duration.as_secs_f64() * 1e3,
        },
        "metrics": metrics,
    });
    if let Some(setup) = summary.setup_data.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        data["setup_data"] = setup;
    }
    data
}

/// `--summary-export`: groups and checks by name, values beside their thresholds, which are true where they were crossed.
pub fn export(summary: &ScriptSummary<'_>) -> Value {
    let mut metrics = Map::new();
    for (idx, metric) in summary.figures.metrics.iter().enumerate() {
        if metric.value.is_empty() && summary.rules.of(idx).is_none() {
            continue;
        }
        let is_rate = matches!(metric.value, ScriptValue::Rate { .. });
        let rename = |name: String| if is_rate && name == "rate" { "value".to_owned() } else { name };
        let values = stats(metric, summary).into_iter().map(|(name, value)| (rename(name), value.into()));
        let mut one: Map<String, Value> = values.collect();
        if let Some(thresholds) = thresholds(summary, idx, true) {
            one.insert("thresholds".to_owned(), thresholds);
        }
        metrics.insert(metric.full_name(), Value::Object(one));
    }
    let mut data = json!({ "root_group": by_name(&group(summary, "", "")), "metrics": metrics });
    if let Some(setup) = summary.setup_data.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        data["setup_data"] = setup;
    }
    data
}

/// What became of the thresholds on a metric. `is_export`: the old form, in which true means crossed.
fn thresholds(summary: &ScriptSummary<'_>, idx: usize, is_export: bool) -> Option<Value> {
    let rules = summary.rules.of(idx).filter(|rules| !rules.rules.is_empty())?;
    let metric: &ScriptMetric = summary.figures.metrics.get(idx)?;
    let one = |threshold: &squall_measure::ScriptThreshold| {
        let is_ok = threshold.rule.judge(metric, summary.duration).is_ok;
        let outcome = if is_export { Value::Bool(!is_ok) } else { json!({ "ok": is_ok }) };
        (threshold.rule.text.clone(), outcome)
    };
    Some(Value::Object(rules.rules.iter().map(one).collect()))
}

/// A group with the groups and checks in it.
fn group(summary: &ScriptSummary<'_>, path: &str, name: &str) -> Value {
    let figures = summary.figures;
    let mut children: Vec<&str> = Vec::new();
    let paths = figures.groups.iter().chain(figures.checks.iter().map(|check| &check.group));
    for child in paths.filter_map(|known| child_of(path, known)) {
        if !children.contains(&child) {
            children.push(child);
        }
    }
    let inner = |child: &&str| group(summary, &format!("{path}::{child}"), child);
    json!({
        "name": name,
        "path": path,
        "id": id(path),
        "groups": children.iter().map(inner).collect::<Vec<_>>(),
        "checks": figures.checks.iter().filter(|check| check.group == path).map(check).collect::<Vec<_>>(),
    })
}

/// The name of the group directly within `parent` that leads to `path`.
fn child_of<'a>(parent: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(parent)?.strip_prefix("::")?;
    Some(rest.split("::").next().unwrap_or(rest))
}

fn check(check: &ScriptCheck) -> Value {
    let path = format!("{}::{}", check.group, check.name);
    json!({ "name": check.name, "path": path, "id": id(&path), "passes": check.passes, "fails": check.fails })
}

fn by_name(group: &Value) -> Value {
    let list = |key: &str| group[key].as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let groups: Map<String, Value> =
        list("groups").iter().map(|inner| (name(inner), by_name(inner))).collect();
    let checks: Map<String, Value> = list("checks").into_iter().map(|check| (name(&check), check)).collect();
    json!({ "name": group["name"], "path": group["path"], "id": group["id"], "groups": groups, "checks": checks })
}

fn id(path: &str) -> String {
    Md5::digest(path.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
