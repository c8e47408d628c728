//! k6, versions 1 and 2: its script, a part of it for each machine, and the file of `--summary-export`.

use serde_json::Value;
use squall_measure::ToolFigures;

use super::{Tool, ToolLoad, Words, is_http_1};
use squall_plan::OptionProblem;

pub(super) struct K6;

impl Tool for K6 {
    fn name(&self) -> &'static str {
        "k6"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["script", "vus", "connections", "duration", "requests", "insecure", "http"]
    }

    /// Go's own switch: k6 looks for `http2client=0` in it.
    fn env(&self, load: &ToolLoad) -> Option<(&'static str, String)> {
        load.http.as_deref().filter(|version| is_http_1(version))?;
        let given = std::env::var("GODEBUG").ok().filter(|given| !given.is_empty());
        let own = "http2client=0";
        Some(("GODEBUG", given.map_or_else(|| own.to_owned(), |given| format!("{given},{own}"))))
    }

    /// By execution segments.
    fn divides(&self) -> bool {
        true
    }

    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let script = load.script.as_ref().ok_or_else(|| {
            OptionProblem::whole(
                "k6 needs a `script`",
                "write `script: test.js`, relative to the plan's folder",
            )
        })?;
        if let Some(version) = load.http.as_deref().filter(|version| !is_http_1(version)) {
            let help = "write `http: '1.1'`, or leave it out: k6 uses HTTP/2 if the server supports it";
            return Err(OptionProblem::of(
                "http",
                format!("`http: {version}`: k6 can only be restricted to HTTP/1.1"),
                help,
            ));
        }
        let mut words = Words::default();
        words.add("run").add("--no-color").add("--quiet");
        words.option("--summary-export", Some(&load.report_file));
        words.option("--summary-trend-stats", Some("avg,min,med,max,p(90),p(95),p(99)"));
        words.option("--vus", load.connections).option("--duration", load.duration_text());
        words.option("--iterations", load.requests);
        words.flag("--insecure-skip-tls-verify", load.insecure);
        if !load.url.is_empty() {
            words.option("-e", Some(format!("TARGET={}", load.url)));
        }
        let mut words = words.0;
        words.extend(load.args.iter().cloned());
        words.push(script.to_string_lossy().into_owned());
        Ok(words)
    }

    /// Values lie in `values` in newer forms, and next to the metric's name in the old one; times are milliseconds.
    fn read(&self, _: &str, file: &str) -> ToolFigures {
        let export: Value = serde_json::from_str(file).unwrap_or(Value::Null);
        let metric = |name: &str| {
            let metric = &export["metrics"][name];
            if metric["values"].is_object() { metric["values"].clone() } else { metric.clone() }
        };
        let (requests, failed) = (metric("http_reqs"), metric("http_req_failed"));
        let times = metric("http_req_duration");
        let names = [
            ("mean", "avg"),
            ("min", "min"),
            ("p50", "med"),
            ("p90", "p(90)"),
            ("p95", "p(95)"),
            ("p99", "p(99)"),
            ("max", "max"),
        ];
        let latency = names
            .into_iter()
            .filter_map(|(ours, theirs)| Some((ours.to_owned(), times[theirs].as_f64()? * 1e3)));
        ToolFigures {
            requests: requests["count"].as_f64().map(|count| count as u64),
            rate_per_s: requests["rate"].as_f64(),
            // A rate that counts failures: its passes are requests that failed.
            failed: failed["passes"].as_u64(),
            bytes_received: metric("data_received")["count"].as_f64().map(|bytes| bytes as u64),
            latency_us: latency.collect(),
            ..ToolFigures::default()
        }
    }

    /// k6's errext/exitcodes.
    fn exit_meaning(&self, code: i32) -> Option<&'static str> {
        Some(match code {
            99 => "its thresholds were not met",
            100 => "its setup took too long",
            101 => "its teardown took too long",
            104 => "its configuration is invalid",
            105 => "it was stopped by a signal",
            107 => "its script threw an exception",
            108 => "its script aborted the test",
            _ => return None,
        })
    }
}
