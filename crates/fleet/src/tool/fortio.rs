//! fortio: its JSON, whose times are seconds.

use serde_json::Value;
use squall_measure::ToolFigures;

use super::{Tool, ToolLoad, Words, with_unit};
use squall_plan::OptionProblem;

pub(super) struct Fortio;

impl Tool for Fortio {
    fn name(&self) -> &'static str {
        "fortio"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "requests", "rate", "header", "insecure"]
    }

    /// A rate of 0 is as fast as it goes; its resolution of a millisecond is made finer.
    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let mut words = Words::default();
        words.add("load").option("-json", Some("-")).add("-quiet").option("-r", Some("0.00001"));
        words.option("-c", load.connections).option("-qps", Some(load.rate.unwrap_or(0.0)));
        words.length(load, ("-n", "-t"), with_unit).flag("-k", load.insecure);
        words.option("-p", Some("50,90,95,99,99.9")).headers("-H", load).end(load)
    }

    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let json = printed.find("\n{").map_or(printed, |at| &printed[at..]);
        let json = json.find('{').map_or("", |at| &json[at..]);
        let report = serde_json::Deserializer::from_str(json).into_iter::<Value>().next();
        let report = report.and_then(Result::ok).unwrap_or(Value::Null);
        let times = &report["DurationHistogram"];
        let mut latency: Vec<(String, f64)> = Vec::new();
        for (ours, theirs) in [("mean", "Avg"), ("min", "Min"), ("max", "Max")] {
            latency.extend(times[theirs].as_f64().map(|seconds| (ours.to_owned(), seconds * 1e6)));
        }
        for entry in times["Percentiles"].as_array().into_iter().flatten() {
            let (Some(share), Some(seconds)) = (entry["Percentile"].as_f64(), entry["Value"].as_f64()) else {
                continue;
            };
            latency.push((format!("p{share}"), seconds * 1e6));
        }
        let codes = report["RetCodes"].as_object().into_iter().flatten();
        let codes: Vec<(String, u64)> =
            codes.filter_map(|(code, count)| Some((code.clone(), count.as_u64()?))).collect();
        let is_ok = |code: &str| code.starts_with('2') || code.starts_with('3');
        ToolFigures {
            requests: times["Count"].as_u64(),
            failed: times["Count"]
                .as_u64()
                .map(|_| codes.iter().filter(|(code, _)| !is_ok(code)).map(|(_, count)| count).sum()),
            rate_per_s: report["ActualQPS"].as_f64(),
            duration_s: report["ActualDuration"].as_f64().map(|ns| ns / 1e9),
            latency_us: latency.into_iter().collect(),
            status: codes.into_iter().collect(),
            ..ToolFigures::default()
        }
    }
}
