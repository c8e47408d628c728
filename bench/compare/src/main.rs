//! Client CPU per request of squall and its peers in interleaved rounds: one client core, one nginx core.
//!
//! A figure of one tool means little, because machines differ; the ratio of two tools in the same round is what counts.
//! `docs/bench.md` says how to read the table.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]

mod case;
mod options;
mod run;
mod script;
mod start;
mod table;
mod tool;

use std::process::ExitCode;

use squall_testkit::real::{EnvoyOptions, NginxOptions, Server};

use case::Case;
use options::Options;
use run::{Sample, Subject};
use tool::Tool;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}\n\nhelp: cases are {}", case::names().join(", "));
            return ExitCode::from(2);
        }
    };
    if !Tool::Squall.is_installed() {
        eprintln!(
            "error: squall is not built beside this program\n\nhelp: run `make bench`, which builds both"
        );
        return ExitCode::FAILURE;
    }
    run::raise_descriptor_limit();
    let nginx =
        NginxOptions { worker_cpu: Some(run::SERVER_CPU), access_log: false, ..NginxOptions::default() };
    let server = Server::nginx(nginx);
    let mut results = Vec::new();
    for case in &options.cases {
        let own = match case.handshake {
            _ if case.is_quic => {
                Some(Server::envoy(EnvoyOptions { cpu: Some(run::SERVER_CPU), ..EnvoyOptions::default() }))
            }
            Some(handshake) => {
                Some(Server::nginx(NginxOptions { tls13: true, rsa: handshake.is_rsa, ..nginx }))
            }
            None => None,
        };
        let subject = match case.messages {
            Some(_) => Subject::target(case),
            None => Ok(Subject::of(case, own.as_ref().unwrap_or(&server))),
        };
        match subject {
            Ok(subject) => results.push(compare(case, &subject, &options)),
            Err(error) => eprintln!("{}: left out: {error}", case.name),
        }
    }
    if options.with_start {
        start::compare(options.round_count);
    }
    table::save(&results, &options.out)
}

/// Runs every tool of a case once per round, each round beginning with another tool, and prints the case's table.
fn compare(case: &Case, subject: &Subject, options: &Options) -> serde_json::Value {
    let tools: Vec<Tool> =
        case.tools().filter(|tool| options.includes(*tool) && tool.is_installed()).collect();
    let mut rounds: Vec<Vec<Option<Sample>>> = Vec::new();
    for round_idx in 0..options.round_count {
        let mut round = vec![None; tools.len()];
        for turn in 0..tools.len() {
            let tool_idx = (round_idx + turn) % tools.len();
            let tool = tools[tool_idx];
            eprintln!("{} round {}/{}: {tool}", case.name, round_idx + 1, options.round_count);
            round[tool_idx] = report_failure(run::run(tool, case, subject, options.seconds));
        }
        rounds.push(round);
    }
    table::print(case, &tools, &rounds)
}

fn report_failure(result: Result<Sample, String>) -> Option<Sample> {
    result.inspect_err(|error| eprintln!("  left out: {error}")).ok()
}
