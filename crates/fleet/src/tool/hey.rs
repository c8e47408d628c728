//! hey: its text, whose times are seconds with four digits.

use squall_measure::ToolFigures;

use super::text::{after, number};
use super::{Tool, ToolLoad, Words, with_unit};
use squall_plan::OptionProblem;

pub(super) struct Hey;

impl Tool for Hey {
    fn name(&self) -> &'static str {
        "hey"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "requests", "rate", "header", "http"]
    }

    /// Its rate is of each worker.
    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let mut words = Words::default();
        words.option("-c", load.connections).length(load, ("-n", "-z"), with_unit);
        words.option("-q", load.rate.map(|rate| rate / load.connections.unwrap_or(50) as f64));
        words.flag("-h2", load.http.as_deref() == Some("2")).headers("-H", load).end(load)
    }

    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let seconds = |name: &str| after(printed, name).and_then(number::<f64>);
        let mut figures = ToolFigures {
            rate_per_s: seconds("Requests/sec:"),
            duration_s: seconds("Total:"),
            bytes_received: after(printed, "Total data:").and_then(number),
            ..ToolFigures::default()
        };
        for (ours, theirs) in [("mean", "Average:"), ("min", "Fastest:"), ("max", "Slowest:")] {
            figures.latency_us.extend(seconds(theirs).map(|value| (ours.to_owned(), value * 1e6)));
        }
        for line in printed.lines().map(str::trim) {
            // `99% in 0.0033 secs`; some releases print two signs.
            if let Some((share, rest)) = line.split_once('%') {
                let time = rest.trim_start_matches('%').trim().strip_prefix("in ").and_then(number::<f64>);
                if let (Ok(share), Some(time)) = (share.parse::<u32>(), time) {
                    figures.latency_us.insert(format!("p{share}"), time * 1e6);
                }
            }
            // `[200]	20177 responses`, and `[3]	Get ..: connection refused`.
            if let Some((inside, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                match (inside.parse::<u64>(), rest.trim().strip_suffix(" responses").and_then(number::<u64>))
                {
                    (Ok(_), Some(count)) => drop(figures.status.insert(inside.to_owned(), count)),
                    (Ok(count), None) if !rest.contains('|') => {
                        figures.errors.insert(rest.trim().to_owned(), count);
                    }
                    _ => {}
                }
            }
        }
        let errors: u64 = figures.errors.values().sum();
        let not_ok: u64 =
            figures.status.iter().filter(|(code, _)| code.as_str() >= "400").map(|(_, count)| count).sum();
        figures.requests = figures.rate_per_s.map(|_| figures.status.values().sum::<u64>() + errors);
        figures.failed = figures.requests.map(|_| errors + not_ok);
        figures
    }
}
