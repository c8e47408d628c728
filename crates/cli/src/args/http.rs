//! The flags of `squall http`, in the groups that the help shows. `-h` hides the rarer ones.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use squall_measure::Threshold;
use squall_plan::rules::{Source, parse_connect_to, parse_proxy, parse_resolve, parse_source};
use squall_plan::units::{Ramp, parse_duration, parse_ramp, parse_rate, parse_size};
use squall_plan::urls::parse_method;
use squall_plan::{ConnectToRule, Proxy, ResolveRule};

use super::CloseArg;
use super::{FaceArgs, values};

/// `squall http`, and `squall` without a command.
#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// Where requests go: `[WEIGHT@]URL`; without a scheme, http
    ///
    /// Several URLs are requested in rotation, by their weights: `3@http://a/ 1@http://b/`. User and password in a URL
    /// become Basic authorization.
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Read URLs from a file, one `[METHOD ][WEIGHT@]URL` a line; `-` is stdin
    ///
    /// Blank lines and lines that start with `#` are skipped.
    #[arg(long = "urls", value_name = "FILE")]
    pub urls_file: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Users who share the connections and wait for a free one [default: as many as the connections hold]
    ///
    /// Each sends its next request when it has its answer. The wait is the phase `blocked`, as in k6, not part of the latency. With --ramp, the stages are of users.
    #[arg(long, value_name = "N", value_parser = values::connections, conflicts_with = "rate", help_heading = "Load")]
    pub users: Option<NonZeroU32>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Connections kept busy [default: 50]
    ///
    /// With --rate, the most there may be [default: 1000]: an arrival that finds none free waits, and its latency contains the wait.
    #[arg(short, long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<NonZeroU32>,
    /// How long requests are started [default: 10s]
    ///
    /// With --ramp, the default is the ramp's length; with -n, there is no limit unless one is given.
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// How many requests are started; with -d, what ends first
    #[arg(short = 'n', long, value_name = "N", value_parser = values::requests)]
    pub requests: Option<NonZeroU64>,
    /// Open model: start this many requests a second, such as 10k/s
    ///
    /// Requests start by the schedule whether or not the server keeps up, and latency counts from the scheduled start: a
    /// server that stalls shows in the percentiles.
    #[arg(short, long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Stages of connections, of users, or of the rate: 10s:100,1m:1000
    ///
    /// Each is TIME:TARGET, of the rate when --rate is given, of users when --users is. The value moves linearly to each target. It starts at --connections (default 1), at --users, or at --rate.
    #[arg(long, value_name = "STAGES", value_parser = parse_ramp)]
    pub ramp: Option<Ramp>,
    /// How arrivals of the open model are spread: constant or poisson
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub arrival: Option<ArrivalArg>,
    /// How precisely the open model's schedule is kept: precise, balanced or cheap [default: balanced]
    ///
    /// `precise` spins between arrivals and costs a CPU per thread; `balanced` sends in ticks of 0.8 ms, `cheap` of 1 ms.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub pacing: Option<PacingArg>,
    /// Make load for this long before measuring, on top of --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// Event-loop threads [default: the CPUs this process may use]
    #[arg(long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'p(95)<200' (repeatable)
    ///
    /// The exit code is 3 then. A metric, a comparison and a value; latencies are in milliseconds unless a unit says otherwise.
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = parse_method)]
    pub method: Option<String>,
    /// Header field 'Name: value', or @FILE of them (repeatable)
    ///
    /// The file has one field a line.
    #[arg(short = 'H', long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// Body
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub body: Option<String>,
    /// Body streamed from a file for each request
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub body_file: Option<PathBuf>,
    /// Form field NAME=VALUE (repeatable)
    ///
    /// Sent URL-encoded, with `Content-Type: application/x-www-form-urlencoded` unless --header says otherwise.
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["body", "body_file"], allow_hyphen_values = true)]
    pub form: Vec<String>,
    /// Basic authorization
    #[arg(long, value_name = "USER:PASSWORD", hide_short_help = true)]
    pub basic: Option<String>,
    /// Cookie NAME=VALUE (repeatable)
    #[arg(long, value_name = "COOKIE", hide_short_help = true)]
    pub cookie: Vec<String>,
    /// User-Agent, [WEIGHT@]TEXT; several are sent in rotation (repeatable)
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub user_agent: Vec<String>,
    /// Redirects followed for one request [default: 0, a redirect is an answer]
    #[arg(long, value_name = "N", value_parser = values::redirects, hide_short_help = true)]
    pub follow: Option<u32>,
    /// Longest time from sending to the end of the answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub timeout: Duration,
    /// Statuses that are successes, such as 200,2xx,301-399 [default: 200-399]
    #[arg(long, value_name = "LIST", value_parser = values::statuses, hide_short_help = true)]
    pub expect_status: Option<values::Statuses>,
    /// Fail responses whose body has another length
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub expect_body_bytes: Option<u64>,
    /// Fail responses whose body has another length than the first one's
    #[arg(long, conflicts_with = "expect_body_bytes", hide_short_help = true)]
    pub expect_same_length: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Open a new connection for each request
    #[arg(long, conflicts_with = "requests_per_connection")]
    pub no_keepalive: bool,
    /// Close a connection after this many requests
    #[arg(long, value_name = "N", value_parser = values::requests_per_connection, hide_short_help = true)]
    pub requests_per_connection: Option<NonZeroU32>,
    /// Close a connection that is older than this, after its answer
    #[arg(long, value_name = "TIME", value_parser = values::time, hide_short_help = true)]
    pub max_connection_age: Option<Duration>,
    /// How connections are closed: rst, fin or notify [default: notify]
    ///
    /// `notify` says so first, by GOAWAY and TLS's close_notify; `fin` closes TCP alone; `rst` resets it, which leaves no port in TIME_WAIT.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub close: Option<CloseArg>,
    /// HTTP version: 1.1, 2 or auto, which takes what the server chooses [default: 1.1]
    ///
    /// Over TLS the version is negotiated by ALPN; `2` fails where the server does not speak it. Over plain TCP, `2` is h2c by prior
    /// knowledge and `auto` is 1.1. A URL with the scheme `h2` (TLS) or `h2c` (plain TCP) asks for HTTP/2 by itself.
    #[arg(long, value_name = "VERSION", value_enum, hide_possible_values = true)]
    pub http: Option<HttpArg>,
    /// Speak HTTP/2 to http URLs: by prior knowledge, or --h2c=upgrade asks for it in HTTP/1.1
    ///
    /// The upgrade is asked for with `OPTIONS *` when a connection begins, and that request is not counted.
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "prior", hide_possible_values = true, hide_short_help = true)]
    pub h2c: Option<H2cArg>,
    /// Requests in flight on one HTTP/2 connection, where the server allows as many
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::streams)]
    pub streams: NonZeroU32,
    /// HTTP/2: bytes of one response that may be on their way [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::window, hide_short_help = true)]
    pub window: Option<u32>,
    /// HTTP/2: the same for all responses of a connection together [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::connection_window, hide_short_help = true)]
    pub connection_window: Option<u32>,
    /// Requests in flight on one HTTP/1.1 connection (pipelining)
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::pipeline, hide_short_help = true,
          conflicts_with_all = ["no_keepalive", "rate"])]
    pub pipeline: NonZeroU32,
    /// Longest time to an open connection, proxy and TLS handshakes included
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time, hide_short_help = true)]
    pub connect_timeout: Duration,
    /// Dial elsewhere, HOST:PORT:HOST:PORT, keeping the Host header and SNI, as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_connect_to, hide_short_help = true)]
    pub connect_to: Vec<ConnectToRule>,
    /// Use this address for a name, HOST:PORT:ADDRESS[,ADDRESS], as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_resolve, hide_short_help = true)]
    pub resolve: Vec<ResolveRule>,
    /// Dial this Unix socket, whatever the URL says
    #[arg(long, value_name = "PATH", hide_short_help = true,
          conflicts_with_all = ["connect_to", "resolve", "proxy", "source"])]
    pub unix_socket: Option<PathBuf>,
    /// Local addresses used in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// One local address has some 28,000 ports towards one server; several have as many each.
    #[arg(long, value_name = "ADDRESSES", value_parser = parse_source, hide_short_help = true)]
    pub source: Vec<Source>,
    /// HTTP proxy: CONNECT for https, absolute URLs for http; the environment is not read
    #[arg(long, value_name = "URL", value_parser = parse_proxy, hide_short_help = true)]
    pub proxy: Option<Proxy>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    #[command(flatten)]
    pub settings: TlsSettingArgs,
    /// Offer only this version: 1.2 or 1.3; or any [default: any]
    #[arg(long, value_name = "VERSION", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub tls: Option<TlsVersionArg>,
    /// Server name sent and verified instead of the URL's host
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub sni: Option<String>,
}

/// How TLS is spoken, by every load that does.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsSettingArgs {
    /// Do not verify the server's certificate
    #[arg(long)]
    pub insecure: bool,
    /// Trust these certificates (PEM) instead of the system's (repeatable)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub cacert: Vec<PathBuf>,
    /// Client certificate chain (PEM), for mutual TLS
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub cert: Option<PathBuf>,
    /// Private key of --cert (PEM) [default: in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Cipher suites offered, by IANA name, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub ciphers: Vec<String>,
    /// Key-exchange groups offered, separated by commas [default: X25519,secp256r1,secp384r1]
    ///
    /// Post-quantum hybrids are X25519MLKEM768 and SECP256R1MLKEM768.
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub groups: Vec<String>,
    /// Append the secrets of TLS sessions to this file, in NSS key-log format, to read captures with
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub key_log: Option<PathBuf>,
    /// ALPN protocols offered, separated by commas [default: that of the HTTP version]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub alpn: Option<Vec<String>>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Name of the run, in its folder and reports [default: the first URL's host]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub name: Option<String>,
    /// Save the run in a folder of its own in DIR
    ///
    /// By default that is the user's state directory ($XDG_STATE_HOME/squall/runs), where the newest 200 runs are kept.
    #[arg(long, value_name = "DIR", conflicts_with = "no_save")]
    pub results: Option<PathBuf>,
    /// Do not save the run
    #[arg(long)]
    pub no_save: bool,
    #[command(flatten)]
    pub faces: FaceArgs,
    /// Show the run in full screen while it goes
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    /// Show the run in a browser while it goes, with a button to stop it [default: 127.0.0.1:5665]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:5665", value_parser = values::listen)]
    pub web: Option<SocketAddr>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `--arrival`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalArg {
    Constant,
    Poisson,
}

/// `--pacing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacingArg {
    Precise,
    Balanced,
    Cheap,
}

/// `--http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpArg {
    #[value(name = "1.1")]
    Http11,
    #[value(name = "2")]
    Http2,
    Auto,
}

/// `--h2c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum H2cArg {
    Prior,
    Upgrade,
}

/// `--tls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsVersionArg {
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
    Any,
}
