//! ab (Apache Bench), with kept-alive connections.

use squall_measure::ToolFigures;

use super::text::{after, number};
use super::{Tool, ToolLoad, Words, whole_seconds};
use squall_plan::OptionProblem;

pub(super) struct Ab;

impl Tool for Ab {
    fn name(&self) -> &'static str {
        "ab"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "requests", "header"]
    }

    /// `-t` sets 50,000 requests unless `-n` comes after it, and a URL without a path is refused.
    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let mut load = load.clone();
        let authority = load.url.split("://").nth(1).unwrap_or(&load.url);
        if !authority.contains('/') {
            load.url.push('/');
        }
        let mut words = Words::default();
        words.add("-k").add("-q").add("-l").option("-c", load.connections);
        words.length(&load, ("-n", "-t"), whole_seconds);
        words.option("-n", load.requests.is_none().then_some(REQUESTS_MAX));
        words.headers("-H", &load).end(&load)
    }

    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let requests = after(printed, "Complete requests:").and_then(number::<u64>);
        let broken = after(printed, "Failed requests:").and_then(number::<u64>);
        let not_ok = after(printed, "Non-2xx responses:").and_then(number::<u64>).unwrap_or(0);
        let mut figures = ToolFigures {
            requests,
            failed: broken.map(|broken| broken + not_ok),
            rate_per_s: after(printed, "Requests per second:").and_then(number),
            bytes_received: after(printed, "Total transferred:").and_then(number),
            duration_s: after(printed, "Time taken for tests:").and_then(number),
            ..ToolFigures::default()
        };
        // The first of two such lines is the mean of requests; whole milliseconds follow in the table.
        let mean = after(printed, "Time per request:").and_then(number::<f64>);
        figures.latency_us.extend(mean.map(|ms| ("mean".to_owned(), ms * 1e3)));
        for line in printed.lines() {
            let Some((share, time)) = line.trim().split_once('%') else { continue };
            let (Ok(share), Some(ms)) = (share.parse::<u32>(), number::<f64>(time)) else { continue };
            let name = if share == 100 { "max".to_owned() } else { format!("p{share}") };
            figures.latency_us.insert(name, ms * 1e3);
        }
        figures
    }
}

/// So many that time ends the run.
const REQUESTS_MAX: u32 = 100_000_000;
