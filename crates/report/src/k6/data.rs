//! The data of `handleSummary`, and the older form that `--summary-export` writes.

use std::time::SystemTime;

use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use squall_measure::{ScriptCheck, ScriptMetric, ScriptValue};

use super::{ScriptSummary, TextMode, contains, kind, merged_by_name, stats};

/// What `handleSummary(data)` is given.
pub fn summary_data(summary: &ScriptSummary<'_>, is_stdout_tty: bool) -> Value {
    let mut metrics = Map::new();
    for (idx, metric) in summary.figures.metrics.iter().enumerate() {
        if !summary.tells(idx) {
            continue;
        }
        let values: Map<String, Value> = stats(metric, summary.duration, summary.trend_stats)
            .into_iter()
            .map(|(name, value)| (name, number(value)))
            .collect();
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

/// `--summary-export`: groups and checks by name, values with their thresholds, which are true where they were crossed.
pub fn export(summary: &ScriptSummary<'_>) -> Value {
    let mut metrics = Map::new();
    for (idx, metric) in summary.figures.metrics.iter().enumerate() {
        if !summary.tells(idx) {
            continue;
        }
        let is_rate = matches!(metric.value, ScriptValue::Rate { .. });
        let rename = |name: String| if is_rate && name == "rate" { "value".to_owned() } else { name };
        let values = stats(metric, summary.duration, summary.trend_stats)
            .into_iter()
            .map(|(name, value)| (rename(name), number(value)));
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

/// What `--new-machine-readable-summary` makes of both. `mode`: which metrics are included; `script`: its text.
pub fn machine_data(summary: &ScriptSummary<'_>, mode: TextMode, script: &str, now: SystemTime) -> Value {
    json!({
        "config": { "duration": summary.duration.as_secs_f64(), "execution": "local", "script": script },
        "metadata": { "generated_at": crate::time::rfc3339(now), "k6_version": concat!("squall/", env!("CARGO_PKG_VERSION")) },
        "results": { "checks": machine_checks(&summary.figures.checks), "metrics": machine_metrics(summary, mode) },
        "version": "1.0.0",
    })
}

fn machine_metrics(summary: &ScriptSummary<'_>, mode: TextMode) -> Vec<Value> {
    let trend_stats = ["avg", "max", "med", "min", "p(90)", "p(95)"].map(str::to_owned);
    let summary = ScriptSummary { trend_stats: &trend_stats, ..*summary };
    let all = summary.figures.metrics.iter().enumerate();
    let shown = all.filter(|(idx, metric)| !mode.hides(&metric.name) && summary.tells(*idx));
    shown.map(|(_, metric)| machine_metric(metric, &summary)).collect()
}

fn machine_checks(checks: &[ScriptCheck]) -> Value {
    let (passes, fails) =
        checks.iter().fold((0, 0), |(passes, fails), check| (passes + check.passes, fails + check.fails));
    let total = passes + fails;
    let share = |count: u64| json!({ "matches": count, "rate": if total == 0 { 0.0 } else { count as f64 / total as f64 }, "total": total });
    let metric = |name: &str, kind: &str, values: Value| json!({ "contains": "default", "name": name, "type": kind, "values": values });
    let outcomes: Vec<Value> = merged_by_name(checks)
        .iter()
        .map(|check| json!({ "fails": check.fails, "name": check.name, "passes": check.passes }))
        .collect();
    json!({
        "metrics": [
            metric("checks_total", "counter", json!({ "count": total })),
            metric("checks_failed", "rate", share(fails)),
            metric("checks_succeeded", "rate", share(passes)),
        ],
        "results": outcomes,
    })
}

fn machine_metric(metric: &ScriptMetric, summary: &ScriptSummary<'_>) -> Value {
    let values: Map<String, Value> = match &metric.value {
        ScriptValue::Rate { trues, total } => {
            let rate = if *total == 0 { 0.0 } else { *trues as f64 / *total as f64 };
            [("matches", (*trues).into()), ("rate", number(rate)), ("total", (*total).into())]
                .map(|(name, value): (&str, Value)| (name.to_owned(), value))
                .into_iter()
                .collect()
        }
        _ => {
            let is_kept =
                |name: &str| !matches!((&metric.value, name), (ScriptValue::Counter { .. }, "rate"));
            let plain = |name: String| name.replace(['(', ')'], "");
            stats(metric, summary.duration, summary.trend_stats)
                .into_iter()
                .filter(|(name, _)| is_kept(name))
                .map(|(name, value)| (plain(name), number(value)))
                .collect()
        }
    };
    json!({ "contains": contains(metric.contains), "name": metric.full_name(), "type": kind(&metric.value), "values": values })
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

/// As Go writes a number: without a fraction where it has none.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}
