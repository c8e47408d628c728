//! The `K6_*` variables that are no options of a script: outputs, and those that have no effect here.

use squall_script::is_option_variable;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::streams::K6_VARIABLES;

/// The flags with the outputs of `K6_OUT` and `K6_WEB_DASHBOARD`, where no flag names any.
pub(super) fn with_outputs(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut names = Vec::new();
    if args.output.faces.out.is_empty() {
        names.extend(set("K6_OUT").map(|given| ("K6_OUT", given)));
    }
    if set("K6_WEB_DASHBOARD").is_some_and(|value| value == "true") {
        names.push(("K6_WEB_DASHBOARD", "web-dashboard".to_owned()));
    }
    for (variable, given) in names {
        let out =
            given.parse().map_err(|error| Failure::value(&format!("{variable}=OUTPUT"), &given, &error))?;
        args.output.faces.out.push(out);
    }
    Ok(args)
}

/// Warnings of variables that have no effect. `is_mentioned`: the script names it, and may read it.
pub(crate) fn ignored(is_mentioned: impl Fn(&str) -> bool) -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("K6_") && !is_known(name)).collect();
    names.retain(|name| !is_mentioned(name));
    names.sort();
    names.iter().map(|name| format!("the variable {name} has no effect: {}", reason(name))).collect()
}

fn is_known(name: &str) -> bool {
    is_option_variable(name) || OTHERS.contains(&name) || K6_VARIABLES.contains(&name)
}

fn reason(name: &str) -> &'static str {
    let reason = REASONS.iter().find(|(prefix, _)| name.starts_with(prefix));
    reason.map_or("squall has no such setting", |(_, reason)| reason)
}

/// Variables that stand for flags.
const OTHERS: &[&str] = &[
    "K6_OUT",
    "K6_NO_SUMMARY",
    "K6_NO_THRESHOLDS",
    "K6_NO_COLOR",
    "K6_NO_USAGE_REPORT",
    "K6_SUMMARY_MODE",
    "K6_SUMMARY_EXPORT",
    "K6_NEW_MACHINE_READABLE_SUMMARY",
    "K6_CONFIG",
    "K6_CONSOLE_OUTPUT",
    "K6_LOG_OUTPUT",
    "K6_LOG_FORMAT",
    "K6_INCLUDE_SYSTEM_ENV_VARS",
    "K6_COMPATIBILITY_MODE",
    "K6_TYPE",
    "K6_FASTHTTP",
];

/// Why variables with these beginnings have no effect.
const REASONS: &[(&str, &str)] = &[
    ("K6_CLOUD", "only k6 itself can use Grafana Cloud k6"),
    ("K6_BROWSER", "squall has no browser module"),
    ("K6_PROMETHEUS_RW", "names, statistics and intervals of the metrics are fixed (docs/outputs.md)"),
    ("K6_OTEL", "metrics are sent over HTTP every second (docs/outputs.md)"),
    ("K6_INFLUXDB", "metrics are sent every second, with all tags (docs/outputs.md)"),
    ("K6_STATSD", "metrics are sent every second under `k6.` (docs/outputs.md)"),
    ("K6_WEB_DASHBOARD", "the page is updated every second (docs/outputs.md)"),
    ("K6_CSV", "write `--out csv=fileName=FILE,timeFormat=FORM`"),
    ("K6_TRACES", "squall sends no traces"),
    ("K6_SECRET", "squall has no secret sources"),
    ("K6_BUILD", "Squall has no extensions to build"),
    ("K6_BINARY", "Squall has no extensions to build"),
    ("K6_AUTO_EXTENSION", "Squall has no extensions to build"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_known_or_has_a_reason() {
        for name in ["K6_VUS", "K6_OUT", "K6_INFLUXDB_DB"] {
            assert!(is_known(name), "{name}");
        }
        for (name, part) in [
            ("K6_CLOUD_TOKEN", "Grafana Cloud"),
            ("K6_OTEL_METRIC_PREFIX", "HTTP"),
            ("K6_VU", "no such setting"),
        ] {
            assert!(!is_known(name) && reason(name).contains(part), "{name}");
        }
    }
}
