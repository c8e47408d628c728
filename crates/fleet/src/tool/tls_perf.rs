//! tls-perf: handshakes per second, in the form of its source and in the older one of its README.

use squall_measure::ToolFigures;

use super::text::{after, number};
use super::{Tool, ToolLoad, Words, whole_seconds};
use squall_plan::OptionProblem;

pub(super) struct TlsPerf;

impl Tool for TlsPerf {
    fn name(&self) -> &'static str {
        "tls-perf"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "handshakes", "requests", "threads", "tls", "tickets"]
    }

    /// Takes a literal address and a port; its connections are of each thread.
    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        let url = load.need_url()?;
        let rest = url.split("://").nth(1).unwrap_or(&url);
        let authority = rest.split('/').next().unwrap_or(rest);
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let threads = load.threads.unwrap_or(1).max(1);
        let mut words = Words::default();
        words.option("-l", load.connections.map(|count| count.div_ceil(threads))).option("-t", Some(threads));
        words.length(load, ("-n", "-T"), whole_seconds);
        words.option("--tls", load.tls.as_ref()).option("--tickets", load.tickets.as_ref());
        let mut words = words.0;
        words.extend(load.args.iter().cloned());
        words.extend([host.trim_matches(['[', ']']).to_owned(), port.to_owned()]);
        Ok(words)
    }

    /// `TOTAL: SECONDS 4; HANDSHAKES 2329`, `HANDSHAKES/sec: MAX 772; AVG 579; ..`, `LATENCY (ms): MIN 0.76; AVG 4.5; 95P 23; MAX 71`.
    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let field = |line: &str, name: &str| -> Option<f64> {
            line.split(';').find_map(|part| {
                let rest = part.trim().strip_prefix(name)?.trim();
                number(rest.strip_prefix("h/s").unwrap_or(rest))
            })
        };
        let total = after(printed, "TOTAL:").unwrap_or_default();
        let rates = after(printed, "HANDSHAKES/sec:").or_else(|| after(printed, "MEASURES (seconds):"));
        let milliseconds = after(printed, "LATENCY (ms):").map(|line| (line, 1e3));
        let latency =
            milliseconds.or_else(|| after(printed, "LATENCY (microseconds):").map(|line| (line, 1.0)));
        let mut figures = ToolFigures {
            requests: field(total, "HANDSHAKES").map(|count| count as u64),
            duration_s: field(total, "SECONDS"),
            rate_per_s: rates.and_then(|line| field(line, "AVG")),
            ..ToolFigures::default()
        };
        if let Some((line, unit)) = latency {
            let names = [("min", "MIN"), ("mean", "AVG"), ("p95", "95P"), ("max", "MAX")];
            let values = names
                .into_iter()
                .filter_map(|(ours, theirs)| Some((ours.to_owned(), field(line, theirs)? * unit)));
            figures.latency_us.extend(values);
        }
        // It counts errors in its lines of progress alone.
        let errors = printed
            .lines()
            .filter_map(|line| line.rsplit_once("Errors "))
            .filter_map(|(_, count)| number(count));
        figures.failed = errors.max();
        figures
    }
}
