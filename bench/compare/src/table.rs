//! The figures as a table for people and as JSON for programs.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::case::{Case, Handshake};
use crate::run::Sample;
use crate::tool::Tool;

/// The middle of several figures, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` where there is no figure.
    pub(crate) fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// Prints a case's table and returns its figures. `rounds[round][tool]` is `None` where the tool failed.
pub(crate) fn print(case: &Case, tools: &[Tool], rounds: &[Vec<Option<Sample>>]) -> Value {
    println!("\n{}: {}", case.name, description(case));
    println!(
        "  tool           us/request        (min .. max)  requests/s   RSS MiB  squall/tool    (min .. max)  limit"
    );
    let rows = tools.iter().enumerate().map(|(idx, tool)| print_row(case, *tool, idx, rounds));
    json!({ "case": case.name, "tools": rows.collect::<Vec<Value>>() })
}

/// Writes all figures as JSON.
pub(crate) fn save(results: &[Value], path: &Path) -> ExitCode {
    match fs::write(path, format!("{:#}\n", json!(results))) {
        Ok(()) => {
            println!("\nsaved: {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Seconds as milliseconds.
pub(crate) fn millis(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

fn description(case: &Case) -> String {
    if let Some(handshake) = case.handshake {
        let transport = if case.is_quic { ", QUIC" } else { "" };
        return describe_handshake(handshake, case.connection_count) + transport;
    }
    if let Some(script) = case.script {
        return format!("k6 script {script:?}, {} virtual users", case.connection_count);
    }
    if let Some(messages) = case.messages {
        return format!("WebSocket messages, {messages:?}, {} connections", case.connection_count);
    }
    let scheme = if case.is_tls { "https" } else { "http" };
    let rate = case.rate.map_or(String::new(), |rate| format!(", open model at {rate}/s"));
    let version = if case.is_quic { format!(", HTTP/3, MTU {}", loopback_mtu()) } else { String::new() };
    format!("{scheme} {}, {} connections{rate}{version}", case.path, case.connection_count)
}

/// What a datagram may have on loopback; `?` where the system does not say.
fn loopback_mtu() -> String {
    fs::read_to_string("/sys/class/net/lo/mtu").map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

fn describe_handshake(handshake: Handshake, connection_count: u32) -> String {
    let Handshake { version, is_rsa, resumes, verifies } = handshake;
    let kind = if resumes { "resumed" } else { "full" };
    let key = if is_rsa { "RSA" } else { "ECDSA" };
    let checks = if verifies { ", verified by squall alone" } else { "" };
    format!("{kind} TLS {version} handshakes, {key}, {connection_count} at once{checks}")
}

fn print_row(case: &Case, tool: Tool, tool_idx: usize, rounds: &[Vec<Option<Sample>>]) -> Value {
    let samples: Vec<Sample> = rounds.iter().filter_map(|round| round[tool_idx]).collect();
    let spread = |figure: fn(&Sample) -> f64| Spread::of(&samples.iter().map(figure).collect::<Vec<f64>>());
    let Some(cost) = spread(|one| one.cpu_us_per_request) else {
        println!("  {tool:12} failed in every round");
        return json!({ "tool": tool.to_string() });
    };
    let rate = spread(|one| one.requests_per_s).map_or(0.0, |rate| rate.median);
    let rss_bytes = samples.iter().map(|one| one.rss_bytes).max().unwrap_or(0);
    let ratio = if tool_idx == 0 { None } else { Spread::of(&ratios(tool_idx, rounds)) };
    println!(
        "  {tool:12} {:>12.2}  ({:>7.2} .. {:>7.2})  {rate:>10.0}  {:>8.1}  {}",
        cost.median,
        cost.min,
        cost.max,
        rss_bytes as f64 / (1024.0 * 1024.0),
        judged(ratio, case.limit(tool)),
    );
    json!({
        "tool": tool.to_string(),
        "cpu_us_per_request": to_json(Some(cost)),
        "requests_per_s": rate,
        "rss_bytes": rss_bytes,
        "squall_ratio": to_json(ratio),
        "limit": case.limit(tool),
    })
}

/// squall's cost divided by the tool's, round by round: what both suffer in a round cancels out.
fn ratios(tool_idx: usize, rounds: &[Vec<Option<Sample>>]) -> Vec<f64> {
    let ratio = |round: &Vec<Option<Sample>>| {
        Some(round[0]?.cpu_us_per_request / round[tool_idx]?.cpu_us_per_request)
    };
    rounds.iter().filter_map(ratio).collect()
}

fn judged(ratio: Option<Spread>, limit: Option<f64>) -> String {
    let (Some(ratio), Some(limit)) = (ratio, limit) else { return String::new() };
    let verdict = if ratio.median <= limit { "met" } else { "MISSED" };
    format!("{:>11.2}  ({:>5.2} .. {:>5.2})  {limit:.2} {verdict}", ratio.median, ratio.min, ratio.max)
}

fn to_json(spread: Option<Spread>) -> Value {
    spread.map_or(Value::Null, |one| json!({ "median": one.median, "min": one.min, "max": one.max }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_us_per_request: f64) -> Option<Sample> {
        Some(Sample { cpu_us_per_request, requests_per_s: 1.0, rss_bytes: 1 })
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_failed_rounds_left_out() {
        let rounds =
            [vec![sample(2.0), sample(4.0)], vec![sample(30.0), sample(40.0)], vec![sample(1.0), None]];
        assert_eq!(ratios(1, &rounds), [0.5, 0.75]);
    }
}
