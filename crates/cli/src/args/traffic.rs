//! The flags of the commands on recorded traffic.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use squall_plan::InputError;
use squall_plan::urls::parse_base;
use squall_traffic::SessionBy;
use squall_traffic::redact::Rules;
use url::Url;

use super::PtrReadingArgs;
use super::load::{LoadFlags, OfRecording};

/// `squall convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording: a file, a folder of RRPair files, or - for stdin; or a PTR configuration file (.json)
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// The file to write; its extension selects the format; - is stdout, with --as
    ///
    /// .squall, .har, .gor, .jsonl (RRPair), .log (combined), .sh (curl) or .js (a k6 script). For a PTR file, .yaml: the equivalent plan.
    #[arg(value_name = "OUTPUT", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,
    /// Format to write: squall, har, gor, rrpair, log, curl or k6
    #[arg(long = "as", value_name = "FORMAT")]
    pub output_format: Option<String>,
    /// Send all requests here instead of to the recorded server: http://host:port or http://host:port/prefix
    #[arg(long, value_name = "URL", value_parser = parse_base)]
    pub to: Option<Url>,
    /// Redact secrets: cookies, credentials, and fields with secret-like names
    #[arg(long)]
    pub mask: bool,
    /// Show the differences between the recordings INPUT and OUTPUT, by kind of request, and write nothing
    #[arg(long, conflicts_with_all = ["output_format", "mask", "to", "dry_run"], requires = "output")]
    pub diff: bool,
    #[command(flatten)]
    pub redact: RedactArgs,
    /// Summarise the recording, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub read: LoadFlags<OfRecording>,
    #[command(flatten)]
    pub ptr: PtrReadingArgs,
}

/// `squall view`.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The recording: a file, a folder of RRPair files, or - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show this request in detail; its number is in the first column of the table
    #[arg(long, value_name = "NUMBER")]
    pub record: Option<u64>,
    /// Only requests with this method (repeatable)
    #[arg(long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// Only responses with these statuses, such as 404,5xx
    #[arg(long, value_name = "STATUSES", value_parser = super::values::statuses)]
    pub status: Option<super::values::Statuses>,
    /// Only requests at least this long after the first, such as 30s
    #[arg(long, value_name = "TIME", value_parser = super::values::time)]
    pub from: Option<Duration>,
    /// Only requests less than this long after the first
    #[arg(long, value_name = "TIME", value_parser = super::values::time)]
    pub until: Option<Duration>,
    /// Show cookies, credentials and fields with secret-like names unredacted
    #[arg(long)]
    pub show_secrets: bool,
    #[command(flatten)]
    pub read: LoadFlags<OfRecording>,
}

/// What is a secret.
#[derive(Debug, Args)]
#[command(next_help_heading = "Redaction")]
pub(crate) struct RedactArgs {
    /// Also redact this: a field by its NAME, a JSON value by its /path (* is any name or index), or what a regular expression matches
    /// (repeatable)
    #[arg(long, value_name = "RULE", value_parser = redact_rule)]
    pub redact: Vec<String>,
    /// Do not redact fields with this name (repeatable)
    #[arg(long, value_name = "NAME", value_parser = keep_name)]
    pub keep: Vec<String>,
    /// A file of redaction rules, one per line: `redact RULE` or `keep NAME`
    #[arg(long, value_name = "FILE")]
    pub redact_rules: Option<PathBuf>,
}

/// `squall record`.
#[derive(Debug, Args)]
#[command(
    override_usage = "squall record --to URL [OPTIONS] [FILE]\n       squall record --proxy [OPTIONS] [FILE]"
)]
pub(crate) struct RecordArgs {
    /// The recording; if the file exists, it is appended to
    #[arg(value_name = "FILE", default_value = "recording.squall")]
    pub output: PathBuf,
    /// Record requests to this server: http://host:port or http://host:port/prefix
    #[arg(long, value_name = "URL", value_parser = parse_base, required_unless_present = "proxy", conflicts_with = "proxy")]
    pub to: Option<Url>,
    /// Act as the clients' HTTP proxy, and record their requests to any server
    #[arg(long)]
    pub proxy: bool,
    /// Address and port to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = super::values::listen)]
    pub listen: SocketAddr,
    /// With --to: also accept TLS from clients
    #[arg(long, conflicts_with = "proxy")]
    pub tls: bool,
    /// With --to and --tls: also speak HTTP/3, on the UDP port of the same number, and announce it with Alt-Svc
    #[arg(long, requires = "tls")]
    pub http3: bool,
    /// Folder of the certificate authority that clients must trust [default: squall/ca in the user's state directory]
    #[arg(long, value_name = "DIR")]
    pub ca: Option<PathBuf>,
    /// Write cookies, credentials and fields with secret-like names unredacted
    #[arg(long, conflicts_with_all = ["redact", "keep", "redact_rules"])]
    pub keep_secrets: bool,
    /// Keep only the length of bodies longer than this
    ///
    /// Request bodies of more than 32 MiB are spooled to disk, next to FILE. Of a response, at most 60 MiB are kept.
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = squall_plan::units::parse_size)]
    pub max_body: u64,
    /// What identifies a client: auto, cookie:NAME, header:NAME, address or connection
    ///
    /// auto: the cookie or token that a response gave, else a session cookie, Authorization, X-Forwarded-For, or address, user agent and
    /// connection.
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = session_by)]
    pub session_by: SessionBy,
    #[command(flatten)]
    pub redaction: RedactArgs,
    /// Do not keep response bodies, only their lengths and checksums
    #[arg(long)]
    pub no_response_bodies: bool,
    /// Record only requests to this host, such as api.example or *.example (repeatable)
    #[arg(long, value_name = "HOST")]
    pub only_host: Vec<String>,
    /// Record only requests whose path starts with this (repeatable)
    #[arg(long, value_name = "PATH")]
    pub only_path: Vec<String>,
    /// Record only responses of this type, such as text/html or image/ (repeatable)
    #[arg(long, value_name = "TYPE")]
    pub only_type: Vec<String>,
    /// Do not verify the servers' certificates
    #[arg(long)]
    pub insecure: bool,
    /// Trust these certificates (PEM) instead of the system's (repeatable)
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,
}

/// `squall mock`.
#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    /// The recording, in any format that has responses
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Address and port to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = super::values::listen)]
    pub listen: SocketAddr,
    /// Multiply the recorded response times by this; 0: respond at once
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub latency: f64,
    /// Act as the clients' HTTP proxy, and answer in place of the servers
    #[arg(long)]
    pub proxy: bool,
    /// Answer only requests identical to a recorded one, except for ignored fields
    #[arg(long)]
    pub strict: bool,
    /// Do not compare this parameter of the query (repeatable)
    #[arg(long, value_name = "NAME")]
    pub ignore_query: Vec<String>,
    /// Do not compare this field of JSON and form bodies: a name, or a pointer such as /items/*/id (repeatable)
    #[arg(long, value_name = "FIELD")]
    pub ignore_body: Vec<String>,
    /// Forward requests that are not in the recording to this server; with --proxy and no URL, to the server requested
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, value_parser = origin)]
    pub pass_through: Option<Option<Url>>,
    /// Also accept TLS from clients
    #[arg(long)]
    pub tls: bool,
    /// Also speak HTTP/3, on the UDP port of the same number, and announce it with Alt-Svc
    #[arg(long, requires = "tls")]
    pub http3: bool,
    /// Folder of the certificate authority that clients must trust [default: squall/ca in the user's state directory]
    #[arg(long, value_name = "DIR")]
    pub ca: Option<PathBuf>,
    /// Do not verify the certificates of servers that requests are forwarded to
    #[arg(long)]
    pub insecure: bool,
    /// Trust these certificates (PEM) instead of the system's (repeatable)
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,
    #[command(flatten)]
    pub read: LoadFlags<OfRecording>,
}

fn factor(text: &str) -> Result<f64, InputError> {
    let help = "write a number such as 1, 0.5 or 0";
    let number: f64 = text.trim_end_matches('x').parse().map_err(|_| refused("not a number", help))?;
    if (0.0..=1000.0).contains(&number) { Ok(number) } else { Err(refused("not between 0 and 1000", help)) }
}

/// `http://host:port`, without a path.
fn origin(text: &str) -> Result<Url, InputError> {
    let url = parse_base(text)?;
    let help = "write scheme, host and port, such as http://localhost:8080";
    if url.path() == "/" {
        Ok(url)
    } else {
        Err(refused("not only the scheme, host and port of an http or https URL", help))
    }
}

fn redact_rule(text: &str) -> Result<String, InputError> {
    Rules::default().redact(text).map(|()| text.to_owned())
}

fn keep_name(text: &str) -> Result<String, InputError> {
    Rules::default().keep(text).map(|()| text.to_owned())
}

pub(crate) fn session_by(text: &str) -> Result<SessionBy, InputError> {
    text.parse()
        .map_err(|reason| refused(reason, "write auto, cookie:NAME, header:NAME, address or connection"))
}

fn refused(reason: impl Into<String>, help: impl Into<String>) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.into() }
}
