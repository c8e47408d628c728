//! What may be typed: commands and flags, with their help. The one source of the help, the completions and the man page.
//!
//! Owns: names, groups, wording, and the reading of each single value. Never: what values mean together (`load`).

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "doc comments are the help here, where brackets mean what may be left out"
)]

mod http;
mod load;
mod replay;
mod run;
mod script;
mod sessions;
mod study;
mod traffic;
mod values;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::streams::Out;
use clap::{Args, Parser, Subcommand, ValueEnum};
use squall_report::{ColorChoice, Format, OutputSpec};

pub(crate) use http::{HttpArgs, OutputArgs, StreamArgs};
pub(crate) use load::{LoadFlags, OfRecording};
pub(crate) use replay::ReplayArgs;
pub(crate) use run::{
    AgentArgs, DriversArg, FleetArgs, KubernetesArgs, NewArgs, PLAN_FLAGS, PTR_FLAGS, PlanArgs, PlanCommand,
    PlanFileArgs, Pods, PtrReadingArgs, RunArgs,
};
pub(crate) use script::{LogFormatArg, SCRIPT_FLAGS, ScriptArgs, SummaryArg, SummaryModeArg};
pub(crate) use sessions::{HandshakeArgs, IdleArgs, WebSocketArgs};
pub(crate) use study::{CapacityArgs, CompareArgs, Levels, RunsArgs, StudyOutputArgs, SweepArgs};
pub(crate) use traffic::{ConvertArgs, MockArgs, RecordArgs, RedactArgs, ViewArgs, session_by};
pub(crate) use values::Statuses;

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "squall",
    version,
    about = "HTTP load testing: generates load, measures it honestly, reports the results",
    long_about = LONG_ABOUT,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = AFTER_HELP,
    after_long_help = AFTER_LONG_HELP,
    override_usage = "squall [OPTIONS] URL...\n       squall COMMAND [OPTIONS]"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub http: HttpArgs,
}

/// What to do; without one: `http`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate HTTP load (the default: `squall URL` means `squall http URL`)
    #[command(after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
    Http(Box<HttpArgs>),
    /// Measure streamed responses, such as server-sent events: time to the first event, gaps, events per second
    #[command(after_help = STREAM_HELP)]
    Stream(Box<StreamArgs>),
    /// Open WebSockets and exchange messages: echo, publish and subscribe, receive, or keep them idle
    #[command(after_help = WS_HELP)]
    Ws(Box<WebSocketArgs>),
    /// Run a file: a plan, a k6 script or recorded traffic
    Run(Box<RunArgs>),
    /// Print the effective options of a k6 script as JSON
    Inspect(Box<RunArgs>),
    /// Measure TLS handshakes: open and close connections, at a rate or as fast as possible
    #[command(after_help = HANDSHAKE_HELP)]
    Handshake(Box<HandshakeArgs>),
    /// Open connections and keep them idle, silent or with periodic pings
    #[command(after_help = IDLE_HELP)]
    Idle(Box<IdleArgs>),
    /// Check or explain a plan file without running it
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Write a starter plan
    New(NewArgs),
    /// Generate load for a controller over standard input and output; started automatically by `squall run`
    #[command(hide = true)]
    Agent(AgentArgs),
    /// Replay recorded traffic with its original timing, faster, or multiplied
    Replay(Box<ReplayArgs>),
    /// Record traffic through a proxy, in front of one server or all servers
    Record(Box<RecordArgs>),
    /// Serve recorded responses in place of a server
    Mock(Box<MockArgs>),
    /// Show the requests in a recording, as a table or one in detail
    View(Box<ViewArgs>),
    /// Convert recorded traffic to another format, or summarise it
    Convert(Box<ConvertArgs>),
    /// Run a fast local test server with httpbin-like routes
    Target(TargetArgs),
    /// Show a saved run again
    Report(ReportArgs),
    /// List the saved runs
    Runs(RunsArgs),
    /// Compare groups of runs: what changed, by how much, and with what confidence
    Compare(CompareArgs),
    /// Run the same load at increasing levels and chart each metric against the level
    Sweep(SweepArgs),
    /// Find the highest rate that still meets the objectives
    Capacity(CapacityArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man {
        /// The command to describe [default: squall itself]
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(MAN_PAGES.iter().copied()))]
        command: Option<String>,
    },
    /// Print the JSON Schema of `--json`
    Schema,
}

/// `squall target`.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Address and port to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = values::listen)]
    pub listen: SocketAddr,
    /// Port to listen on, at the address of --listen
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Serve TLS, with a self-signed certificate unless --cert is given
    #[arg(long)]
    pub tls: bool,
    /// Serve HTTP/3 too, on the UDP port of the same number, and announce it with Alt-Svc
    #[arg(long, requires = "tls")]
    pub http3: bool,
    /// Certificate chain to serve (PEM); needs --tls and --key
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Additional names or addresses in the self-signed certificate (repeatable)
    #[arg(long, value_name = "NAME", requires = "tls", conflicts_with = "cert")]
    pub tls_name: Vec<String>,
    /// Write the certificate to this file (PEM), for clients to verify
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub write_cert: Option<PathBuf>,
    /// Threads [default: one per CPU available to this process]
    #[arg(long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<NonZeroU32>,
    /// Write one line per finished request to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// `squall report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folder of a saved run, or a folder of runs to take the newest from [default: the newest run]; several DIRs are merged into one report
    #[arg(value_name = "DIR")]
    pub runs: Vec<PathBuf>,
    #[command(flatten)]
    pub faces: FaceArgs,
}

/// What is shown, where: for a run that has just ended as for a saved one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FaceArgs {
    /// Also write the result to a file (json, csv, html, junit or markdown) or send it to a system (repeatable)
    ///
    /// Files are created before the run starts, so a wrong path fails at once. Systems are updated every second: prometheus=ADDRESS:PORT
    /// (for scraping), prometheus-rw=URL, otlp=URL, influxdb=URL, statsd=HOST:PORT. For a k6 script, json and csv contain its samples.
    #[arg(short = 'o', long, value_name = "FORMAT=WHERE")]
    pub out: Vec<Out>,
    /// Write the result as JSON; `-` is stdout, instead of the summary
    ///
    /// `squall schema` prints its JSON Schema.
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Print only the verdict; twice: nothing
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub quiet: u8,
    /// When to use colour: auto, always or never
    ///
    /// `auto` colours terminals only, and honours NO_COLOR, CLICOLOR_FORCE and TERM=dumb.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, hide_possible_values = true)]
    pub color: ColorArg,
}

impl FaceArgs {
    /// The outputs of `--out` and `--json`.
    pub(crate) fn outputs(&self) -> Vec<OutputSpec> {
        let json = self.json.as_ref().map(|path| OutputSpec::new(Format::Json, path));
        self.out.iter().filter_map(Out::file).cloned().chain(json).collect()
    }
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    Auto,
    Always,
    Never,
}

impl From<ColorArg> for ColorChoice {
    fn from(color: ColorArg) -> Self {
        match color {
            ColorArg::Auto => Self::Auto,
            ColorArg::Always => Self::Always,
            ColorArg::Never => Self::Never,
        }
    }
}

const STREAM_HELP: &str = "\
Examples:
  squall stream -c 100 http://localhost:8080/sse         100 streams at a time, for 10 s
  squall stream -r 5/s --body-lines prompts.jsonl --done '[DONE]' -H 'Content-Type: application/json' URL
                                                         an LLM API: 5 prompts a second, each to its [DONE]
  squall stream --slo 'first<500ms,gap:p(95)<50ms' --threshold 'goodput>95%' URL
  squall stream --reconnect -c 10k -d 5m URL             clients that come back with Last-Event-ID";

const WS_HELP: &str = "\
Examples:
  squall ws ws://localhost:8080/ws/echo                  50 connections, each sends when it has its echo
  squall ws -r 10k/s -c 500 --size 1KiB ws://localhost:8080/ws/echo
                                                         open model: 10,000 messages a second on 500 connections
  squall ws --publish 2 --subscribe 1k ws://localhost:8080/ws/broadcast
                                                         2 messages a second to 1,000 subscribers
  squall ws --idle -c 20k --ping 30s -d 10m wss://example.org/ws
  squall ws --threshold 'msg_latency: p(99)<50' ws://localhost:8080/ws/echo";

const HANDSHAKE_HELP: &str = "\
Examples:
  squall handshake example.org                           50 connections for 10 s, each a full handshake
  squall handshake -r 1k/s --tls 1.3 example.org:443     open model: 1,000 handshakes a second
  squall handshake --resumption psk --resumption-ratio 80% example.org
  squall handshake --request / --hold 5s example.org     one request each, then open for 5 s
  squall handshake -l 100 -t 2 -T 10 --tls 1.2 10.0.0.1 443      as in tls-perf";

const IDLE_HELP: &str = "\
Examples:
  squall idle example.org:80 -c 10k                      10,000 connections, kept for 10 s
  squall idle --tls example.org --open-rate 500/s -d 5m  over TLS, 500 opened a second
  squall idle -c 25k --source 10.0.0.0/26 --dry-run target:80    what 1.5 million connections would need
  squall idle --ping 30s --jitter 5s example.org:80      a request on each every 30 to 35 s";

/// The commands with a man page of their own.
const MAN_PAGES: &[&str] = &[
    "http",
    "run",
    "inspect",
    "plan",
    "new",
    "stream",
    "ws",
    "handshake",
    "idle",
    "replay",
    "record",
    "mock",
    "convert",
    "compare",
    "sweep",
    "capacity",
    "target",
    "report",
    "runs",
];

/// What `squall` alone shows.
pub(crate) const OVERVIEW: &str = "\
Squall generates HTTP load, measures it, and tells you whether the measurements
can be trusted.

Three commands to try:
  squall target --port 8080 &            start a test server in the background
  squall http://localhost:8080/          send it requests for 10 seconds
  squall report --out html=report.html   write a report of that run, as a page

`squall run FILE` runs a k6 script, recorded traffic or a plan.
`squall -h` lists the commands and common flags, `squall --help` explains all.
";

const LONG_ABOUT: &str = "\
Squall generates HTTP load from one or many machines, measures it honestly, and reports the results.

`squall URL` keeps 50 connections busy for 10 seconds and prints a summary with percentiles.";

const AFTER_HELP: &str = "\
Examples:
  squall http://localhost:8080/                        50 connections for 10 s
  squall -c 200 -d 1m -H 'Accept: text/html' URL       closed model, 200 connections
  squall -r 5k/s --threshold 'p(99)<50' URL            open model, fails unless p99 is below 50 ms

`squall --help` explains every flag.";

const AFTER_LONG_HELP: &str = "\
Examples:
  squall http://localhost:8080/
      50 connections for 10 s, each sending its next request after the previous response.
  squall -c 200 -d 1m -H 'Accept: text/html' URL
      200 connections for a minute.
  squall -r 5k/s --threshold 'p(99)<50' URL
      5,000 requests a second whether or not the server keeps up; exits with 3 when p99 is 50 ms or more.
  squall -X POST --body-file order.json -H 'Content-Type: application/json' URL
      Post a file, streamed from disk.
  squall --urls urls.txt --ramp 30s:100,1m:100,30s:0
      Request URLs from a weighted list while connections ramp up to 100, hold, and ramp down.
  squall target --port 8080
      Start a local test server.

Units:
  times 500ms 10s 2m 1h30m    sizes 512 10k 1.5MiB    counts 12345 10k 1.5M    rates 500/s 10k/s

Exit codes:
  0  ok
  1  bug in squall
  2  wrong usage; nothing was sent
  3  a threshold was missed
  4  target unreachable
  5  generator overloaded (verdict INVALID)
  6  part of a plan was not run
  130  stopped by a second Ctrl-C

The first Ctrl-C (or SIGTERM) stops new requests, waits for open ones, and reports; the second
reports at once; the third exits without a report.";
