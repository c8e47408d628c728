//! wrk, and wrk2, which prints the same and asks for a rate.

use squall_measure::ToolFigures;

use super::text::{after, bytes, micros, number};
use super::{Tool, ToolLoad, Words};
use squall_plan::OptionProblem;

pub(super) struct Wrk {
    pub(super) is_wrk2: bool,
}

impl Tool for Wrk {
    fn name(&self) -> &'static str {
        if self.is_wrk2 { "wrk2" } else { "wrk" }
    }

    fn keys(&self) -> &'static [&'static str] {
        match self.is_wrk2 {
            true => &["connections", "duration", "threads", "header", "script", "rate"],
            false => &["connections", "duration", "threads", "header", "script"],
        }
    }

    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        if self.is_wrk2 && load.rate.is_none() {
            return Err(OptionProblem::whole("wrk2 needs a `rate`", "write `rate: 1000/s`"));
        }
        load.check_counts(self.name())?;
        // Its defaults are 10 and 2.
        let threads = load.threads.or_else(|| load.connections.map(|count| count.min(2)));
        let mut words = Words::default();
        words.add("--latency").option("-c", load.connections).option("-t", threads);
        words
            .option("-d", load.duration_text())
            .option("-s", load.script.as_ref().map(|path| path.display()));
        words.option("-R", load.rate.map(|rate| rate.round().max(1.0))).headers("-H", load);
        words.end(load)
    }

    /// Of wrk2 the detailed spectrum has more percentiles than the eight of its table.
    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let mut figures = ToolFigures {
            rate_per_s: after(printed, "Requests/sec:").and_then(number),
            ..ToolFigures::default()
        };
        // `93600 requests in 2.11s, 19.37MB read`
        if let Some(line) = printed.lines().find(|line| line.contains(" requests in ")) {
            figures.requests = number(line.trim());
            let rest = line.split(" requests in ").nth(1).unwrap_or_default();
            let mut parts = rest.split(", ");
            figures.duration_s = parts.next().and_then(micros).map(|us| us / 1e6);
            figures.bytes_received = parts.next().and_then(bytes);
        }
        let not_ok = after(printed, "Non-2xx or 3xx responses:").and_then(number::<u64>).unwrap_or(0);
        let sockets = after(printed, "Socket errors:").unwrap_or_default();
        for kind in ["connect", "read", "write", "timeout"] {
            let count = sockets.split(", ").find_map(|part| part.strip_prefix(kind)?.trim().parse().ok());
            if let Some(count @ 1..) = count {
                figures.errors.insert(kind.to_owned(), count);
            }
        }
        figures.failed = figures.requests.map(|_| not_ok + figures.errors.values().sum::<u64>());
        // `    Latency     2.85ms    7.57ms  80.89ms   91.88%`: mean, deviation, most.
        let latency: Vec<f64> = printed
            .lines()
            .find_map(|line| line.trim_start().strip_prefix("Latency "))
            .map(|line| line.split_whitespace().map_while(micros).collect())
            .unwrap_or_default();
        for (name, at) in [("mean", 0), ("max", 2)] {
            figures.latency_us.extend(latency.get(at).map(|us| (name.to_owned(), *us)));
        }
        for line in printed.lines() {
            let Some((share, time)) = line.trim().split_once('%') else { continue };
            let Ok(share) = share.trim().parse::<f64>() else { continue };
            figures.latency_us.extend(micros(time.trim()).map(|us| (percentile(share), us)));
        }
        figures
    }
}

/// `p50`, `p99.9`; the hundredth is the most.
fn percentile(share: f64) -> String {
    if share >= 100.0 { "max".to_owned() } else { format!("p{share}") }
}
