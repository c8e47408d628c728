//! vegeta: an attack and its report, as JSON.

use serde_json::Value;
use squall_measure::ToolFigures;
use squall_plan::shell::quoted;

use super::{LENGTH, Tool, ToolLoad, masked_words, with_unit};
use squall_plan::OptionProblem;

pub(super) struct Vegeta;

impl Tool for Vegeta {
    fn name(&self) -> &'static str {
        "vegeta"
    }

    fn keys(&self) -> &'static [&'static str] {
        &["connections", "duration", "rate", "header", "insecure"]
    }

    fn words(&self, load: &ToolLoad) -> Result<Vec<String>, OptionProblem> {
        Ok(vec!["-c".to_owned(), script(load, &load.need_url()?, <[String]>::to_vec)])
    }

    /// To those who hide secrets, the shell's script is one word: they are hidden before it is put together.
    fn shown(&self, load: &ToolLoad, _: &[String]) -> Vec<String> {
        vec!["-c".to_owned(), script(load, &load.url, masked_words)]
    }

    /// Times are nanoseconds. Its errors are a set without counts.
    fn read(&self, printed: &str, _: &str) -> ToolFigures {
        let json = printed.lines().find(|line| line.trim_start().starts_with('{')).unwrap_or_default();
        let report: Value = serde_json::from_str(json).unwrap_or(Value::Null);
        let names = [
            ("mean", "mean"),
            ("min", "min"),
            ("p50", "50th"),
            ("p90", "90th"),
            ("p95", "95th"),
            ("p99", "99th"),
            ("max", "max"),
        ];
        let times = &report["latencies"];
        let status: Vec<(String, u64)> = report["status_codes"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(code, count)| Some((code.clone(), count.as_u64()?)))
            .collect();
        let requests = report["requests"].as_u64();
        let ok = report["success"]
            .as_f64()
            .zip(requests)
            .map(|(share, count)| (share * count as f64).round() as u64);
        ToolFigures {
            requests,
            failed: requests.zip(ok).map(|(all, ok)| all.saturating_sub(ok)),
            rate_per_s: report["rate"].as_f64(),
            bytes_received: report["bytes_in"]["total"].as_u64(),
            duration_s: report["duration"].as_f64().map(|ns| ns / 1e9),
            latency_us: names
                .into_iter()
                .filter_map(|(ours, theirs)| Some((ours.to_owned(), times[theirs].as_f64()? / 1e3)))
                .collect(),
            status: status.into_iter().collect(),
            ..ToolFigures::default()
        }
    }
}

/// Two programs and a pipe: the shell's work. Without a rate, as fast as `connections` workers go.
fn script(load: &ToolLoad, url: &str, written: fn(&[String]) -> Vec<String>) -> String {
    let program = quoted(load.path.as_deref().unwrap_or("vegeta"));
    let rate = load.rate.map_or_else(|| "0".to_owned(), |rate| format!("{}/1s", rate.round().max(1.0)));
    let workers = load.connections.unwrap_or_else(|| if load.rate.is_some() { 1000 } else { 50 });
    let duration = with_unit(load.duration.unwrap_or(LENGTH));
    let mut attack =
        vec![format!("-rate={rate}"), format!("-duration={duration}"), format!("-max-workers={workers}")];
    attack.extend(load.headers.iter().map(|header| format!("-header={header}")));
    attack.extend(load.insecure.then(|| "-insecure".to_owned()));
    attack.extend(load.args.iter().cloned());
    let attack: Vec<String> = written(&attack).iter().map(|word| quoted(word)).collect();
    let target = quoted(&format!("GET {}", written(&[url.to_owned()]).concat()));
    format!("printf '%s\\n' {target} | {program} attack {} | {program} report -type=json", attack.join(" "))
}
