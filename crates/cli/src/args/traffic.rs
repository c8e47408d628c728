//! The flags of the commands on recorded traffic.

use std::path::PathBuf;

use clap::Args;
use squall_plan::InputError;
use squall_traffic::{Format, LogPattern};
use url::Url;

/// How a recording is read: the same for every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArgs {
    /// Format of the recording [default: told by its content]
    ///
    /// har, gor, rrpair, rrpair-md, log, mitmproxy, curl, postman or squall.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,
    /// How the lines of an access log are written [default: combined]
    ///
    /// nginx's variables ($time_local, $request, ...), Apache's (%t, %r, ...), or the names combined and common. Lines are
    /// taken to be written when a request ended, with Apache's variables when it began.
    #[arg(long, value_name = "PATTERN", value_parser = log_pattern)]
    pub log_pattern: Option<LogPattern>,
    /// Go on behind what cannot be read
    #[arg(long)]
    pub skip_bad: bool,
    /// Only requests to this host, such as api.example or *.example (repeatable)
    #[arg(long, value_name = "HOST")]
    pub only_host: Vec<String>,
    /// Only requests whose path begins so (repeatable)
    #[arg(long, value_name = "PATH")]
    pub only_path: Vec<String>,
}

/// `squall convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording: a file, a folder of RRPair files, or - for stdin
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// The file to write; its ending tells the format; - is stdout, with --as
    ///
    /// .squall, .har, .gor, .jsonl (RRPair), .log (combined), .sh (curl) or .js (a k6 script).
    #[arg(value_name = "OUTPUT", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,
    /// Format to write: squall, har, gor, rrpair, log, curl or k6
    #[arg(long = "as", value_name = "FORMAT")]
    pub output_format: Option<String>,
    /// Send where the recording does not say to where, or all of it: http://host:port
    #[arg(long, value_name = "URL", value_parser = origin)]
    pub to: Option<Url>,
    /// Replace secrets: cookies, credentials, and fields that are named like one
    #[arg(long)]
    pub mask: bool,
    /// Show what the recording holds, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

fn format(text: &str) -> Result<Format, InputError> {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    text.parse().map_err(|reason| refused(reason, format!("formats are {}", names.join(", "))))
}

fn log_pattern(text: &str) -> Result<LogPattern, InputError> {
    text.parse().map_err(|error: squall_traffic::PatternError| {
        refused(error.reason, "write it as in the server's own configuration: '$remote_addr [$time_local] \"$request\" $status'")
    })
}

/// `http://host:port`, without a path.
pub(super) fn origin(text: &str) -> Result<Url, InputError> {
    let help = "write scheme, host and port, such as http://localhost:8080";
    let url = Url::parse(text).map_err(|error| refused(error.to_string(), help))?;
    let is_origin = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none();
    if is_origin { Ok(url) } else { Err(refused("not the beginning of an http or https URL alone", help)) }
}

fn refused(reason: impl Into<String>, help: impl Into<String>) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.into() }
}
