//! h2load of nghttp2: the table of release 1.69 and later, and the older one that distributions ship.

use squall_measure::ToolFigures;

use super::text::{after, before, micros, number};
use super::{Tool, ToolLoad, Words, is_http_1, whole_seconds};
use squall_plan::OptionProblem;

pub(super) struct H2load;

impl Tool for H2load {
    fn name(&self) -> &'static str {
        "h2load"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "requests", "threads", "streams", "http", "header", "rate"]
    }

    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        load.check_counts(self.name())?;
        let mut words = Words::default();
        words.option("-c", load.connections).option("-t", load.threads).option("-m", load.streams);
        let is_h1 = load.http.as_deref().is_some_and(is_http_1);
        words.length(load, ("-n", "-D"), whole_seconds).flag("--h1", is_h1);
        // Its rate is of each client.
        let per_client = |rate: f64| (rate / load.connections.unwrap_or(1) as f64).round().max(1.0);
        words.option("--rps", load.rate.map(per_client)).headers("-H", load);
        words.end(load)
    }

    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let mut figures = ToolFigures::default();
        // `finished in 80.03ms, 6247.74 req/s, 1.29MB/s`
        if let Some(line) = after(printed, "finished in ") {
            let mut parts = line.split(", ");
            figures.duration_s = parts.next().and_then(micros).map(|us| us / 1e6);
            figures.rate_per_s = parts.next().and_then(number);
        }
        // `requests: 500 total, 500 started, 500 done, 498 succeeded, 2 failed, 0 errored, 0 timeout`
        if let Some(line) = after(printed, "requests:") {
            figures.requests = before(line, "done");
            figures.failed = before(line, "failed");
            for kind in ["errored", "timeout"] {
                if let Some(count @ 1..) = before(line, kind) {
                    figures.errors.insert(kind.to_owned(), count);
                }
            }
        }
        if let Some(line) = after(printed, "status codes:") {
            for class in ["2xx", "3xx", "4xx", "5xx"] {
                if let Some(count @ 1..) = before(line, class) {
                    figures.status.insert(class.to_owned(), count);
                }
            }
        }
        // `traffic: 105.96KB (108500) total, ..`: the exact number is in the brackets.
        let traffic = after(printed, "traffic:").and_then(|line| line.split(['(', ')']).nth(1));
        figures.bytes_received = traffic.and_then(|bytes| bytes.parse().ok());
        figures.latency_us.extend(latency(printed));
        figures
    }
}

/// The row of requests, whose columns the line of titles names.
fn latency(printed: &str) -> Vec<(String, f64)> {
    let lines = printed.lines();
    let titles = lines.clone().find(|line| line.trim_start().starts_with("min ") && line.contains("mean"));
    let row = lines.clone().find_map(|line| {
        line.strip_prefix("time for request:").or_else(|| line.strip_prefix("request     :"))
    });
    let (Some(titles), Some(row)) = (titles, row) else { return Vec::new() };
    let names = titles.split_whitespace().map(|title| if title == "median" { "p50" } else { title });
    let wanted = |name: &str| ["min", "max", "mean", "p50", "p95", "p99"].contains(&name);
    let values = row.split_whitespace().map(micros);
    names
        .zip(values)
        .filter(|(name, _)| wanted(name))
        .filter_map(|(name, us)| Some((name.to_owned(), us?)))
        .collect()
}
