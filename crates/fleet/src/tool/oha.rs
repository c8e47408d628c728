//! oha: its JSON, whose times are seconds.

use serde_json::Value;
use squall_measure::ToolFigures;

use super::{Tool, ToolLoad, Words, with_unit};
use squall_plan::OptionProblem;

pub(super) struct Oha;

impl Tool for Oha {
    fn name(&self) -> &'static str {
        "oha"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "requests", "rate", "streams", "http", "header", "insecure"]
    }

    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let mut words = Words::default();
        words.add("--no-tui").option("--output-format", Some("json"));
        words.option("-c", load.connections).option("-p", load.streams);
        words
            .length(load, ("-n", "-z"), with_unit)
            .option("-q", load.rate.map(|rate| rate.round().max(1.0)))
            .option("--http-version", load.http.as_ref());
        words.flag("--latency-correction", load.rate.is_some()).flag("--insecure", load.insecure);
        words.headers("-H", load).end(load)
    }

    /// Requests that its deadline cut off are reported as errors, but are none.
    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let json = printed.find('{').map_or("", |at| &printed[at..]);
        let report: Value = serde_json::from_str(json).unwrap_or(Value::Null);
        let counts = |name: &str| -> Vec<(String, u64)> {
            let entries = report[name].as_object().into_iter().flatten();
            entries.filter_map(|(key, count)| Some((key.clone(), count.as_u64()?))).collect()
        };
        let (status, errors) = (counts("statusCodeDistribution"), counts("errorDistribution"));
        let errors: Vec<_> =
            errors.into_iter().filter(|(text, _)| text != "aborted due to deadline").collect();
        let answered: u64 = status.iter().map(|(_, count)| count).sum();
        let failed: u64 = errors.iter().map(|(_, count)| count).sum();
        let not_ok: u64 =
            status.iter().filter(|(code, _)| code.as_str() >= "400").map(|(_, count)| count).sum();
        let seconds = |value: &Value| value.as_f64().map(|seconds| seconds * 1e6);
        let times = &report["latencyPercentiles"];
        let mut latency: Vec<(String, Option<f64>)> = ["p50", "p90", "p95", "p99", "p99.9"]
            .map(|name| (name.to_owned(), seconds(&times[name])))
            .to_vec();
        let summary = &report["summary"];
        for (ours, theirs) in [("mean", "average"), ("min", "fastest"), ("max", "slowest")] {
            latency.push((ours.to_owned(), seconds(&summary[theirs])));
        }
        ToolFigures {
            requests: (!report.is_null()).then_some(answered + failed),
            failed: (!report.is_null()).then_some(failed + not_ok),
            rate_per_s: summary["requestsPerSec"].as_f64(),
            bytes_received: summary["totalData"].as_u64(),
            duration_s: summary["total"].as_f64(),
            latency_us: latency.into_iter().filter_map(|(name, us)| Some((name, us?))).collect(),
            status: status.into_iter().collect(),
            errors: errors.into_iter().collect(),
            ..ToolFigures::default()
        }
    }
}
