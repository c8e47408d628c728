//! The tools: how each is asked for a case, and where its output says how many requests it completed.

use std::fmt;
use std::path::PathBuf;

use crate::case::{Case, Handshake, Messages};

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Squall,
    /// An earlier squall, by `SQUALL_BEFORE`: shows what a change costs or saves.
    Before,
    /// `bench/floor`: send and receive, nothing else.
    Floor,
    Wrk,
    Wrk2,
    H2load,
    /// h2load with HTTP/3, which has to be built by hand.
    H2loadH3,
    /// squall itself with HTTP/2 and TCP instead of HTTP/3 and QUIC, on the same server.
    OverTcp,
    Ab,
    Oha,
    /// Handshakes alone, by OpenSSL; in no distribution.
    TlsPerf,
    K6,
    /// k6 with its fasthttp extension, built by xk6; runs the same scripts with the extension's client.
    K6Fasthttp,
    /// From the Python package `k9-load`; its scripts are Python.
    K9,
}

/// What a tool is asked for, in addition to the case.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a str,
    /// The authority to trust, for tools that check certificates.
    pub(crate) ca_file: &'a str,
    pub(crate) seconds: u32,
    /// The case's script, where it has one.
    pub(crate) script: Option<&'a str>,
}

impl Tool {
    /// Whether it can be run here. A peer that is missing is left out.
    pub(crate) fn is_installed(self) -> bool {
        self.program().is_some()
    }

    /// Its executable.
    pub(crate) fn program(self) -> Option<PathBuf> {
        if let Some(named) = self.variable().and_then(std::env::var_os) {
            return Some(PathBuf::from(named)).filter(|program| program.is_file());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let built = std::env::current_exe().ok()?.parent()?.to_owned();
        let folders = match self {
            Self::Squall | Self::OverTcp | Self::Floor => vec![built],
            _ => std::env::split_paths(&path).collect(),
        };
        let name = if self == Self::OverTcp { Self::Squall.name() } else { self.name() };
        folders.into_iter().map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
    }

    /// Its arguments for a case: one thread, keep-alive, no more output than needed.
    pub(crate) fn args(self, case: &Case, ask: &Ask<'_>) -> Vec<String> {
        let Ask { url, ca_file, seconds, .. } = ask;
        let count = case.connection_count;
        let line = match self {
            Self::Before => return Self::Squall.args(case, ask),
            Self::OverTcp => return Self::Squall.args(&Case { is_quic: false, limits: &[], ..*case }, ask),
            Self::Squall if case.messages.is_some() => websocket_line(case, ask),
            Self::Floor if case.messages.is_some() => floor_line(case, ask),
            Self::K9 => format!("run {}", ask.script.unwrap_or_default()),
            Self::K6 if case.messages.is_some() => {
                format!("run --quiet --no-usage-report {}", ask.script.unwrap_or_default())
            }
            Self::Squall if case.handshake.is_some() => handshake_line(case, ask),
            Self::Squall if ask.script.is_some() => {
                format!("run --threads 1 --summary k6 --no-save {}", script_line(case, ask))
            }
            Self::K6 | Self::K6Fasthttp => {
                format!("run --quiet --no-usage-report {}", script_line(case, ask))
            }
            Self::Squall => format!(
                "{url} --connections {count} --duration {seconds}s --threads 1 --json - --quiet --no-save{}{}{}",
                if case.is_tls { format!(" --cacert {ca_file}") } else { String::new() },
                case.rate.map_or(String::new(), |rate| format!(" --rate {rate}/s")),
                case.stream_count.map_or(String::new(), |streams| {
                    format!(" --http {} --streams {streams}", if case.is_quic { 3 } else { 2 })
                }),
            ),
            Self::Floor => format!("{} {count} {seconds}", authority(url)),
            Self::Wrk => format!("-t1 -c{count} -d{seconds}s {url}"),
            Self::Wrk2 => format!("-t1 -c{count} -d{seconds}s -R{} {url}", case.rate.unwrap_or(u32::MAX)),
            Self::H2load => {
                let version =
                    case.stream_count.map_or_else(|| "--h1".to_owned(), |streams| format!("-m{streams}"));
                format!("{version} -t1 -c{count} -D{seconds} {url}")
            }
            Self::H2loadH3 => {
                format!("--h3 -m{} -t1 -c{count} -D{seconds} {url}", case.stream_count.unwrap_or(1))
            }
            Self::Ab => format!("-k -q -c{count} -t{seconds} -n10000000 {url}"),
            Self::Oha => format!(
                "-z {seconds}s -c {count} --no-tui --output-format json --insecure{}{} {url}",
                case.stream_count.map_or(String::new(), |streams| {
                    format!(" {} -p {streams}", if case.is_quic { "--http-version 3" } else { "--http2" })
                }),
                case.rate.map_or(String::new(), |rate| format!(" -q {rate}")),
            ),
            Self::TlsPerf => tls_perf_line(case, ask),
        };
        line.split(' ').map(str::to_owned).collect()
    }

    /// Requests completed well, by its own output.
    pub(crate) fn completed_count(self, output: &str) -> Option<u64> {
        match self {
            Self::Squall | Self::Before | Self::OverTcp => {
                let totals = json(output).map(|mut json| json["totals"].take());
                let of = |path| totals.as_ref()?.pointer(path)?.as_u64();
                script_count(output).or_else(|| of("/websockets/messages_received").or_else(|| of("/ok")))
            }
            Self::Floor => after(output, "requests: "),
            Self::Wrk | Self::Wrk2 => before(output, " requests in "),
            Self::H2load | Self::H2loadH3 => before(output, " succeeded"),
            Self::Ab => after(output, "Complete requests:"),
            Self::TlsPerf => after(output, "HANDSHAKES "),
            Self::Oha => json(output)?["statusCodeDistribution"]["200"].as_u64(),
            Self::K6 | Self::K6Fasthttp | Self::K9 => script_count(output),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Squall => "squall",
            Self::Before => "before",
            Self::Floor => "squall-floor",
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::H2load => "h2load",
            Self::H2loadH3 => "h2load-h3",
            Self::OverTcp => "squall-tcp",
            Self::Ab => "ab",
            Self::Oha => "oha",
            Self::TlsPerf => "tls-perf",
            Self::K6 => "k6",
            Self::K6Fasthttp => "k6-fasthttp",
            Self::K9 => "k9",
        }
    }

    /// The variable that names the executable, for tools that are built by hand.
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Squall | Self::OverTcp => Some("SQUALL"),
            Self::Before => Some("SQUALL_BEFORE"),
            Self::H2loadH3 => Some("H2LOAD_H3"),
            Self::K6 => Some("K6"),
            Self::K6Fasthttp => Some("K6_FASTHTTP"),
            Self::K9 => Some("K9"),
            _ => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn script_line(case: &Case, ask: &Ask<'_>) -> String {
    let script = ask.script.unwrap_or_default();
    format!("--vus {} --duration {}s {script}", case.connection_count, ask.seconds)
}

/// Requests, or messages, by k6's end summary, which squall and k9 write as well: `http_reqs....: 7 2.3/s`.
fn script_count(output: &str) -> Option<u64> {
    let line_of = |name: &str| output.lines().find(|line| line.trim_start().starts_with(name));
    let line = line_of("ws_msgs_received").or_else(|| line_of("http_reqs"))?;
    line.split_once(": ")?.1.split_whitespace().next()?.parse().ok()
}

fn websocket_line(case: &Case, ask: &Ask<'_>) -> String {
    let exchange = match case.messages {
        Some(Messages::Publish { per_s }) => format!(" --publish 1 --rate {per_s}/s"),
        _ => String::new(),
    };
    let (count, seconds, url) = (case.connection_count, ask.seconds, ask.url.replacen("http", "ws", 1));
    format!("ws {url} -c {count} -d {seconds}s --threads 1{exchange} --json - --quiet --no-save")
}

fn floor_line(case: &Case, ask: &Ask<'_>) -> String {
    let who = if case.messages == Some(Messages::Echo) { "echo" } else { "publish" };
    format!("{} {} {} {} {who}", authority(ask.url), case.connection_count, ask.seconds, case.path)
}

fn handshake_line(case: &Case, ask: &Ask<'_>) -> String {
    let Some(Handshake { version, resumes, verifies, .. }) = case.handshake else { return String::new() };
    let (count, seconds) = (case.connection_count, ask.seconds);
    let trust = if verifies { format!("--cacert {}", ask.ca_file) } else { "--insecure".to_owned() };
    let resumption = if resumes { " --resumption ticket" } else { "" };
    let quic = if case.is_quic { " --quic" } else { "" };
    format!(
        "handshake {} -c {count} -d {seconds}s -t 1 --tls {version} {trust}{resumption}{quic} --json - --quiet --no-save",
        authority(ask.url)
    )
}

fn tls_perf_line(case: &Case, ask: &Ask<'_>) -> String {
    let Some(Handshake { version, resumes, .. }) = case.handshake else { return String::new() };
    let tickets = if resumes { "on" } else { "off" };
    let (count, seconds) = (case.connection_count, ask.seconds);
    let address = authority(ask.url).replace(':', " ");
    format!("-l {count} -t 1 -T {seconds} --tls {version} --tickets {tickets} -q {address}")
}

/// Host and port of a URL.
fn authority(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or(url)
}

fn json(output: &str) -> Option<serde_json::Value> {
    serde_json::from_str(output).ok()
}

fn after(output: &str, mark: &str) -> Option<u64> {
    output.split_once(mark)?.1.split_whitespace().next()?.parse().ok()
}

fn before(output: &str, mark: &str) -> Option<u64> {
    output.split_once(mark)?.0.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_tells_its_count_in_its_own_words() {
        let cases = [
            (Tool::Squall, r#"{"totals":{"requests":9,"ok":7}}"#),
            (Tool::Floor, "requests: 7\n"),
            (Tool::Wrk, "    Max  1.2ms\n  7 requests in 3.00s, 1.0MB read\nRequests/sec: 2\n"),
            (
                Tool::H2load,
                "finished\nrequests: 9 total, 9 started, 9 done, 7 succeeded, 0 failed, 2 errored\n",
            ),
            (Tool::Ab, "Complete requests:      7\nFailed requests:        0\n"),
            (Tool::TlsPerf, " TOTAL:           SECONDS 2; HANDSHAKES 7 \n"),
            (Tool::Oha, r#"{"statusCodeDistribution":{"200":7,"500":1}}"#),
            (Tool::K6, "    http_req_waiting: avg=1\n    http_reqs......................: 7   2.3/s\n"),
            (Tool::Squall, "    http_reqs......................: 7   2.3/s\n"),
            (Tool::Squall, r#"{"totals":{"ok":9,"websockets":{"messages_received":7}}}"#),
            (Tool::K6, "    ws_msgs_received...............: 7   2.3/s\n    ws_sessions: 1\n"),
        ];
        for (tool, output) in cases {
            assert_eq!(tool.completed_count(output), Some(7), "{tool}");
        }
        assert_eq!(Tool::Wrk.completed_count("unable to connect"), None);
    }
}
