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
    /// URLs to request: `[WEIGHT@]URL`; the scheme defaults to http
    ///
    /// Several URLs are requested in rotation according to their weights: `3@http://a/ 1@http://b/`. User and password in a URL
    /// become Basic authorization.
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Read URLs from a file, one `[METHOD ][WEIGHT@]URL` per line; `-` is stdin
    ///
    /// Blank lines and lines that start with `#` are skipped.
    #[arg(long = "urls", value_name = "FILE")]
    pub urls_file: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Users who share the connections and wait for a free one [default: connections x streams]
    ///
    /// Each user sends its next request after the previous response. The wait is the phase `blocked`, as in k6, and not part of the latency. With --ramp, the stages set the number of users.
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
    /// Concurrent connections [default: 50]
    ///
    /// With --rate, the maximum [default: 1000]: an arrival that finds no free connection waits, and its latency includes the wait.
    #[arg(short, long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<NonZeroU32>,
    /// How long to start new requests [default: 10s]
    ///
    /// With --ramp, the default is the ramp's length; with -n, there is no time limit unless one is given.
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// Number of requests to start; with -d, whichever limit is reached first
    #[arg(short = 'n', long, value_name = "N", value_parser = values::requests)]
    pub requests: Option<NonZeroU64>,
    /// Open model: start this many requests per second, such as 10k/s
    ///
    /// Requests follow the schedule whether or not the server keeps up, and latency counts from the scheduled start: a
    /// server that stalls shows in the percentiles.
    #[arg(short, long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Ramp connections, users or the rate in stages: 10s:100,1m:1000
    ///
    /// Each stage is TIME:TARGET. The target is a rate with --rate, a number of users with --users, otherwise a number of connections. The value moves linearly to each target, starting at --rate, --users or --connections (default 1).
    #[arg(long, value_name = "STAGES", value_parser = parse_ramp)]
    pub ramp: Option<Ramp>,
    /// Arrival process of the open model: constant or poisson
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub arrival: Option<ArrivalArg>,
    /// How precisely the open model follows its schedule: precise, balanced or cheap [default: balanced]
    ///
    /// `precise` spins between arrivals and uses a whole CPU per thread; `balanced` sends in ticks of 0.8 ms, `cheap` in ticks of 1 ms.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub pacing: Option<PacingArg>,
    /// Generate load for this long before measuring, in addition to --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// Event-loop threads [default: one per CPU available to this process]
    #[arg(long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'p(95)<200' (repeatable)
    ///
    /// The exit code is then 3. A rule is a metric, a comparison and a value; latencies are in milliseconds unless a unit is given.
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = parse_method)]
    pub method: Option<String>,
    /// Header field 'Name: value', or @FILE to read several (repeatable)
    ///
    /// The file has one field per line.
    #[arg(short = 'H', long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// Request body
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub body: Option<String>,
    /// File to stream as the body of each request
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
    /// Redirects to follow per request [default: 0, a redirect counts as the response]
    #[arg(long, value_name = "N", value_parser = values::redirects, hide_short_help = true)]
    pub follow: Option<u32>,
    /// Time limit from sending a request to the end of its response
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub timeout: Duration,
    /// Statuses that count as success, such as 200,2xx,301-399 [default: 200-399]
    #[arg(long, value_name = "LIST", value_parser = values::statuses, hide_short_help = true)]
    pub expect_status: Option<values::Statuses>,
    /// Fail responses whose body does not have this length
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub expect_body_bytes: Option<u64>,
    /// Fail responses whose body length differs from the first one's
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
    /// Close a connection older than this, after its current response
    #[arg(long, value_name = "TIME", value_parser = values::time, hide_short_help = true)]
    pub max_connection_age: Option<Duration>,
    /// How connections are closed: rst, fin or notify [default: notify]
    ///
    /// `notify` sends GOAWAY and TLS close_notify first; `fin` only closes TCP; `rst` resets the connection, which leaves no port in TIME_WAIT.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub close: Option<CloseArg>,
    /// HTTP version: 1.1, 2 or auto (the server chooses) [default: 1.1]
    ///
    /// Over TLS the version is negotiated by ALPN; `2` fails if the server does not support it. Over plain TCP, `2` is h2c by prior
    /// knowledge and `auto` is 1.1. A URL with the scheme `h2` (TLS) or `h2c` (plain TCP) implies HTTP/2.
    #[arg(long, value_name = "VERSION", value_enum, hide_possible_values = true)]
    pub http: Option<HttpArg>,
    /// Use HTTP/2 for http URLs: by prior knowledge, or with --h2c=upgrade by an HTTP/1.1 upgrade
    ///
    /// The upgrade request is an `OPTIONS *` at the start of each connection, and is not counted.
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "prior", hide_possible_values = true, hide_short_help = true)]
    pub h2c: Option<H2cArg>,
    /// Concurrent requests per HTTP/2 connection, up to the server's limit
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::streams)]
    pub streams: NonZeroU32,
    /// HTTP/2: flow-control window of each stream [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::window, hide_short_help = true)]
    pub window: Option<u32>,
    /// HTTP/2: flow-control window of each connection [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::connection_window, hide_short_help = true)]
    pub connection_window: Option<u32>,
    /// Pipelined requests in flight per HTTP/1.1 connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::pipeline, hide_short_help = true,
          conflicts_with_all = ["no_keepalive", "rate"])]
    pub pipeline: NonZeroU32,
    /// Time limit for opening a connection, including proxy and TLS handshakes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time, hide_short_help = true)]
    pub connect_timeout: Duration,
    /// Connect to another host, HOST:PORT:HOST:PORT, keeping the Host header and SNI, as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_connect_to, hide_short_help = true)]
    pub connect_to: Vec<ConnectToRule>,
    /// Use this address for a name, HOST:PORT:ADDRESS[,ADDRESS], as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_resolve, hide_short_help = true)]
    pub resolve: Vec<ResolveRule>,
    /// Connect to this Unix socket instead of the URL's host
    #[arg(long, value_name = "PATH", hide_short_help = true,
          conflicts_with_all = ["connect_to", "resolve", "proxy", "source"])]
    pub unix_socket: Option<PathBuf>,
    /// Local addresses to use in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// Each local address provides about 28,000 ports per server address.
    #[arg(long, value_name = "ADDRESSES", value_parser = parse_source, hide_short_help = true)]
    pub source: Vec<Source>,
    /// HTTP proxy: CONNECT for https, absolute URLs for http; environment variables are ignored
    #[arg(long, value_name = "URL", value_parser = parse_proxy, hide_short_help = true)]
    pub proxy: Option<Proxy>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    #[command(flatten)]
    pub settings: TlsSettingArgs,
    /// TLS version to offer: 1.2, 1.3 or any [default: any]
    #[arg(long, value_name = "VERSION", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub tls: Option<TlsVersionArg>,
    /// Server name to send and verify instead of the URL's host
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
    /// Private key of --cert (PEM) [default: read from the --cert file]
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Cipher suites to offer, as comma-separated IANA names
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub ciphers: Vec<String>,
    /// Key-exchange groups to offer, separated by commas [default: X25519,secp256r1,secp384r1]
    ///
    /// Post-quantum hybrids are X25519MLKEM768 and SECP256R1MLKEM768.
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub groups: Vec<String>,
    /// Append TLS session secrets to this file in NSS key-log format, for decrypting captures
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub key_log: Option<PathBuf>,
    /// ALPN protocols to offer, separated by commas [default: from the HTTP version]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub alpn: Option<Vec<String>>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Name of the run, in its folder and reports [default: the first URL's host]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub name: Option<String>,
    /// Save the run in a new folder in DIR
    ///
    /// The default is the user's state directory ($XDG_STATE_HOME/squall/runs), which keeps the newest 200 runs.
    #[arg(long, value_name = "DIR", conflicts_with = "no_save")]
    pub results: Option<PathBuf>,
    /// Do not save the run
    #[arg(long)]
    pub no_save: bool,
    #[command(flatten)]
    pub faces: FaceArgs,
    /// Show a full-screen live view of the run
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    /// Serve a live page of the run for a browser, with a stop button [default: 127.0.0.1:5665]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:5665", value_parser = values::listen)]
    pub web: Option<SocketAddr>,
    /// Show what the run would do, without running it
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
