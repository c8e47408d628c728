//! The flags of `squall handshake` and `squall idle`: connections for their own sake.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use clap::{Args, ValueEnum};
use squall_measure::Threshold;
use squall_plan::endpoints::{parse_path, parse_weighted};
use squall_plan::rules::{Source, parse_resolve, parse_source};
use squall_plan::units::{Ramp, parse_duration, parse_ramp, parse_rate};
use squall_plan::{ResolveRule, Weighted};

use super::http::{ArrivalArg, OutputArgs, PacingArg, TlsSettingArgs, TlsVersionArg};
use super::values;

/// `squall handshake`.
#[derive(Debug, Args)]
pub(crate) struct HandshakeArgs {
    /// Where to connect: `[WEIGHT@]HOST[:PORT]`; the default port is 443
    ///
    /// Several are used in rotation according to their weights. `HOST PORT`, as in tls-perf, also works.
    #[arg(value_name = "HOST:PORT", required = true)]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub load: HandshakeLoadArgs,
    #[command(flatten)]
    pub handshake: ResumptionArgs,
    #[command(flatten)]
    pub after: AfterArgs,
    #[command(flatten)]
    pub network: SessionNetworkArgs,
    #[command(flatten)]
    pub tls: TlsSettingArgs,
    /// TLS version to offer: 1.2, 1.3 or any [default: any]
    #[arg(
        long = "tls",
        value_name = "VERSION",
        value_enum,
        hide_possible_values = true,
        help_heading = "TLS"
    )]
    pub tls_version: Option<TlsVersionArg>,
    /// Server name to send and verify instead of the host, [WEIGHT@]NAME (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_weighted, help_heading = "TLS")]
    pub sni: Vec<Weighted<String>>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct HandshakeLoadArgs {
    /// Concurrent connections, including held ones [default: 50]
    ///
    /// With --rate, the maximum [default: 1000, plus those that --hold keeps]: a handshake that finds no free one waits, and
    /// its latency includes the wait.
    #[arg(short, long, value_name = "N", value_parser = values::handshake_connections)]
    pub connections: Option<NonZeroU32>,
    /// How long to start new handshakes [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// Number of handshakes to start; with -d, whichever limit is reached first
    #[arg(short = 'n', long, value_name = "N", value_parser = values::requests)]
    pub handshakes: Option<NonZeroU64>,
    /// Open model: start this many handshakes per second, such as 1k/s
    ///
    /// Handshakes follow the schedule whether or not the server keeps up. Scheduled, started and completed ones are counted separately.
    #[arg(short, long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Ramp connections or the rate in stages: 10s:100,1m:1000
    #[arg(long, value_name = "STAGES", value_parser = parse_ramp)]
    pub ramp: Option<Ramp>,
    /// Arrival process of the open model: constant or poisson
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub arrival: Option<ArrivalArg>,
    /// How precisely the open model follows its schedule: precise, balanced or cheap [default: balanced]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub pacing: Option<PacingArg>,
    /// Make handshakes for this long before measuring, in addition to --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub warmup: Option<Duration>,
    /// Event-loop threads [default: one per CPU available to this process]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'tls_handshaking: p(99)<20' (repeatable)
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
    /// As in tls-perf: connections per thread, with one thread unless -t is given
    #[arg(short = 'l', value_name = "N", value_parser = values::connections, hide_short_help = true,
          conflicts_with_all = ["connections", "rate", "ramp"])]
    pub per_thread: Option<NonZeroU32>,
    /// As in tls-perf: seconds for which to start handshakes
    #[arg(short = 'T', value_name = "SECONDS", value_parser = values::seconds, hide_short_help = true,
          conflicts_with = "duration")]
    pub seconds: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Handshake")]
pub(crate) struct ResumptionArgs {
    /// Resume earlier sessions: by id or ticket in TLS 1.2, by ticket or psk in TLS 1.3; or off [default: off]
    ///
    /// `id` needs TLS 1.2, `psk` TLS 1.3; `ticket` works with both. Actual resumptions are counted, as reported by the TLS library.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub resumption: Option<ResumptionArg>,
    /// Share of the handshakes that try to resume: 0 to 1, or a percentage [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = values::share, requires = "resumption")]
    pub resumption_ratio: Option<f64>,
    /// Send the request of resumed TLS 1.3 handshakes as early data (0-RTT) if the ticket allows it
    ///
    /// Rejected early data is sent again after the handshake. Both are counted, as reported by the TLS library.
    #[arg(long, requires = "request")]
    pub early_data: bool,
    /// As in tls-perf: on is --resumption ticket; advertise offers tickets and resumes nothing; or off
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        hide_short_help = true,
        conflicts_with = "resumption"
    )]
    pub tickets: Option<TicketsArg>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "After the handshake")]
pub(crate) struct AfterArgs {
    /// Make one HTTP/1.1 GET request for this path on each connection
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub request: Option<String>,
    /// Time limit from sending the request to the end of the response
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time, hide_short_help = true)]
    pub timeout: Duration,
    /// Keep each connection open for this long afterwards
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub hold: Option<Duration>,
    /// How connections are closed: rst, fin or notify [default: rst]
    ///
    /// `rst` resets them, which leaves no port in TIME_WAIT; `fin` only closes TCP; `notify` sends close_notify first.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub close: Option<CloseArg>,
}

/// Where packets go and come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct SessionNetworkArgs {
    /// Time limit for opening a connection, including the TLS handshake
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time, hide_short_help = true)]
    pub connect_timeout: Duration,
    /// Use this address for a name, HOST:PORT:ADDRESS[,ADDRESS], as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_resolve, hide_short_help = true)]
    pub resolve: Vec<ResolveRule>,
    /// Local addresses to use in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// Each local address provides about 28,000 ports per server address.
    #[arg(long, value_name = "ADDRESSES", value_parser = parse_source)]
    pub source: Vec<Source>,
    /// Use the addresses of all interfaces with this name prefix; same as --source nic:PREFIX* (repeatable)
    #[arg(long, value_name = "PREFIX", hide_short_help = true)]
    pub bind_to_nics: Vec<String>,
}

/// `squall idle`.
#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Where to connect: `[WEIGHT@]HOST[:PORT]`; the default port is 80, or 443 with --tls
    #[arg(value_name = "HOST:PORT", required = true)]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub load: IdleLoadArgs,
    #[command(flatten)]
    pub talk: IdleTalkArgs,
    #[command(flatten)]
    pub network: SessionNetworkArgs,
    /// Use TLS; --tls=1.2 or --tls=1.3 offers only that version
    #[arg(long, value_name = "VERSION", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "any", hide_possible_values = true, help_heading = "TLS")]
    pub tls: Option<TlsVersionArg>,
    #[command(flatten)]
    pub tls_settings: TlsSettingArgs,
    /// Server name to send and verify instead of the host
    #[arg(long, value_name = "NAME", help_heading = "TLS", requires = "tls", hide_short_help = true)]
    pub sni: Option<String>,
    /// Keep each full TLS session, not only what is needed to close it
    ///
    /// A silent connection needs a few bytes, a full session several kilobytes. Only a full session can process what the
    /// server sends, such as key updates.
    #[arg(long, help_heading = "TLS", requires = "tls", hide_short_help = true)]
    pub keep_sessions: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct IdleLoadArgs {
    /// Connections for each local address [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<NonZeroU32>,
    /// Total duration, including the opening of connections [default: the opening plus 10s]
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// Open this many connections per second [default: as fast as the server accepts]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub open_rate: Option<f64>,
    /// Minimum time between opening two connections from the same local address
    #[arg(long, value_name = "TIME", value_parser = values::time, conflicts_with = "open_rate")]
    pub pause: Option<Duration>,
    /// Delay each connection and each ping by a random time of up to this
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub jitter: Option<Duration>,
    /// Do not reopen connections that the server closed
    #[arg(long)]
    pub no_reopen: bool,
    /// How connections are closed at the end: rst, fin or notify [default: notify]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub close: Option<CloseArg>,
    /// Event-loop threads [default: one per CPU available to this process]
    #[arg(long, value_name = "N", value_parser = values::threads, hide_short_help = true)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'errors<1%' (repeatable)
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is said")]
pub(crate) struct IdleTalkArgs {
    /// Make one HTTP/1.1 GET request for this path before going idle; the default path is /
    #[arg(long, value_name = "PATH", value_parser = parse_path, num_args = 0..=1, require_equals = true,
          default_missing_value = "/")]
    pub after_request: Option<String>,
    /// HTTP version [default: 1]; with 2, exchange settings and answer the server's pings
    #[arg(long, value_name = "VERSION", value_parser = ["1", "2"], hide_possible_values = true)]
    pub http: Option<String>,
    /// Send a ping after this much idle time
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub ping: Option<Duration>,
    /// What to send as a ping: byte or request [default: request; with --http 2, a PING frame]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true, requires = "ping")]
    pub ping_with: Option<PingArg>,
    /// Time limit for the response to a request or a ping
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time, hide_short_help = true)]
    pub timeout: Duration,
}

/// `--resumption`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResumptionArg {
    Off,
    Id,
    Ticket,
    Psk,
}

/// `--tickets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TicketsArg {
    On,
    Off,
    Advertise,
}

/// `--close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloseArg {
    Rst,
    Fin,
    Notify,
}

/// `--ping-with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PingArg {
    Byte,
    Request,
}
