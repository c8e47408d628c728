//! The time from a tool's start until the server has its first request whole.

use std::time::{Duration, Instant};

use squall_testkit::{Script, ScriptedServer};

use crate::case::Case;
use crate::run::pinned;
use crate::table::{Spread, millis};
use crate::tool::{Ask, Tool};

const TOOLS: [Tool; 6] = [Tool::Squall, Tool::Wrk, Tool::Wrk2, Tool::H2load, Tool::Ab, Tool::Oha];

const CASE: Case = Case {
    name: "start",
    path: "/",
    is_tls: false,
    connection_count: 1,
    stream_count: None,
    is_quic: false,
    rate: None,
    handshake: None,
    script: None,
    messages: None,
    limits: &[],
};

/// What squall must not exceed.
const LIMIT: Duration = Duration::from_millis(50);

/// Starts every installed tool once per round and prints its times.
pub(crate) fn compare(round_count: usize) {
    println!("\nstart to first request (limit for squall {})", millis(LIMIT.as_secs_f64()));
    for tool in TOOLS.into_iter().filter(|tool| tool.is_installed()) {
        let times: Result<Vec<f64>, String> = (0..round_count).map(|_| time_to_first_request(tool)).collect();
        match times.map(|times| Spread::of(&times)) {
            Ok(Some(times)) => {
                println!(
                    "  {tool:12} {:>10}  ({} .. {})",
                    millis(times.median),
                    millis(times.min),
                    millis(times.max)
                );
            }
            Ok(None) => {}
            Err(error) => eprintln!("  left out: {error}"),
        }
    }
}

fn time_to_first_request(tool: Tool) -> Result<f64, String> {
    let delays = vec![Duration::from_millis(10)];
    let server = ScriptedServer::start(Script { delays, ..Script::default() });
    let url = server.url();
    let started = Instant::now();
    let output = pinned(tool)?
        .args(tool.args(&CASE, &Ask { url: &url, ca_file: "", seconds: 1, script: None }))
        .output();
    output.map_err(|error| error.to_string())?;
    let first = server.finish().requests.iter().map(|request| request.received).min();
    first.map(|first| (first - started).as_secs_f64()).ok_or_else(|| format!("{tool} sent nothing"))
}
