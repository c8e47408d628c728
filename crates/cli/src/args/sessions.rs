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
    /// Where connections go: `[WEIGHT@]HOST[:PORT]`; the port is 443 unless given
    ///
    /// Several take turns by their weights. `HOST PORT`, as tls-perf has it, is understood too.
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
    /// Offer only this version: 1.2 or 1.3; or any [default: any]
    #[arg(
        long = "tls",
        value_name = "VERSION",
        value_enum,
        hide_possible_values = true,
        help_heading = "TLS"
    )]
    pub tls_version: Option<TlsVersionArg>,
    /// Server name sent and verified instead of the host, [WEIGHT@]NAME (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_weighted, help_heading = "TLS")]
    pub sni: Vec<Weighted<String>>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct HandshakeLoadArgs {
    /// Connections at once, those that are held among them [default: 50]
    ///
    /// With --rate, the most there may be [default: 1000, and those that --hold keeps]: a handshake that finds none free waits, and
    /// its latency contains the wait.
    #[arg(short, long, value_name = "N", value_parser = values::handshake_connections)]
    pub connections: Option<NonZeroU32>,
    /// How long handshakes are started [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// How many handshakes are started; with -d, what ends first
    #[arg(short = 'n', long, value_name = "N", value_parser = values::requests)]
    pub handshakes: Option<NonZeroU64>,
    /// Open model: start this many handshakes a second, such as 1k/s
    ///
    /// They start by the schedule whether or not the server keeps up. What was asked, started and done is told apart.
    #[arg(short, long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Stages of connections, or of the rate: 10s:100,1m:1000
    #[arg(long, value_name = "STAGES", value_parser = parse_ramp)]
    pub ramp: Option<Ramp>,
    /// How arrivals of the open model are spread: constant or poisson
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub arrival: Option<ArrivalArg>,
    /// How precisely the open model's schedule is kept: precise, balanced or cheap [default: balanced]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub pacing: Option<PacingArg>,
    /// Make handshakes for this long before measuring, on top of --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub warmup: Option<Duration>,
    /// Event-loop threads [default: the CPUs this process may use]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'tls_handshaking: p(99)<20' (repeatable)
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
    /// tls-perf's: connections for each thread, of which there is one unless -t says otherwise
    #[arg(short = 'l', value_name = "N", value_parser = values::connections, hide_short_help = true,
          conflicts_with_all = ["connections", "rate", "ramp"])]
    pub per_thread: Option<NonZeroU32>,
    /// tls-perf's: how many seconds handshakes are started
    #[arg(short = 'T', value_name = "SECONDS", value_parser = values::seconds, hide_short_help = true,
          conflicts_with = "duration")]
    pub seconds: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Handshake")]
pub(crate) struct ResumptionArgs {
    /// Resume earlier sessions: by id or ticket in TLS 1.2, by ticket or psk in TLS 1.3; or off [default: off]
    ///
    /// `id` needs TLS 1.2, `psk` TLS 1.3; `ticket` fits both. What was really resumed is counted, as the TLS library says.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub resumption: Option<ResumptionArg>,
    /// Share of the handshakes that try to resume: 0 to 1, or a percentage [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = values::share, requires = "resumption")]
    pub resumption_ratio: Option<f64>,
    /// Send the request of resumed TLS 1.3 handshakes as early data (0-RTT) where the ticket allows it
    ///
    /// What the server does not take is sent again after the handshake. Both are counted, as the TLS library says.
    #[arg(long, requires = "request")]
    pub early_data: bool,
    /// tls-perf's: on is --resumption ticket; advertise offers tickets and resumes nothing; or off
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
    /// Make one HTTP/1.1 request, GET of this path, on each connection
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub request: Option<String>,
    /// Longest time from sending the request to the end of the answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time, hide_short_help = true)]
    pub timeout: Duration,
    /// Keep each connection open for this long afterwards
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub hold: Option<Duration>,
    /// How connections are closed: rst, fin or notify [default: rst]
    ///
    /// `rst` resets them, which leaves no port in TIME_WAIT; `fin` closes TCP alone; `notify` says close_notify first.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub close: Option<CloseArg>,
}

/// Where packets go and come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct SessionNetworkArgs {
    /// Longest time to an open connection, the TLS handshake included
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time, hide_short_help = true)]
    pub connect_timeout: Duration,
    /// Use this address for a name, HOST:PORT:ADDRESS[,ADDRESS], as in curl (repeatable)
    #[arg(long, value_name = "RULE", value_parser = parse_resolve, hide_short_help = true)]
    pub resolve: Vec<ResolveRule>,
    /// Local addresses used in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// One local address has some 28,000 ports towards one server; several have as many each.
    #[arg(long, value_name = "ADDRESSES", value_parser = parse_source)]
    pub source: Vec<Source>,
    /// Use the addresses of all interfaces whose name begins so; as --source nic:PREFIX* (repeatable)
    #[arg(long, value_name = "PREFIX", hide_short_help = true)]
    pub bind_to_nics: Vec<String>,
}

/// `squall idle`.
#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Where connections go: `[WEIGHT@]HOST[:PORT]`; the port is 80, or 443 with --tls, unless given
    #[arg(value_name = "HOST:PORT", required = true)]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub load: IdleLoadArgs,
    #[command(flatten)]
    pub talk: IdleTalkArgs,
    #[command(flatten)]
    pub network: SessionNetworkArgs,
    /// Speak TLS; --tls=1.2 or --tls=1.3 offers only that version
    #[arg(long, value_name = "VERSION", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "any", hide_possible_values = true, help_heading = "TLS")]
    pub tls: Option<TlsVersionArg>,
    #[command(flatten)]
    pub tls_settings: TlsSettingArgs,
    /// Server name sent and verified instead of the host
    #[arg(long, value_name = "NAME", help_heading = "TLS", requires = "tls", hide_short_help = true)]
    pub sni: Option<String>,
    /// Keep each TLS session whole, rather than only what closes it
    ///
    /// A connection on which nothing is to be said needs a few bytes, a whole session some kilobytes. A whole one still understands what the
    /// server says, such as key updates.
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
    /// How long the run takes, the opening included [default: the opening and 10s]
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,
    /// Open this many connections a second [default: as fast as the server answers]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub open_rate: Option<f64>,
    /// Wait this long between two openings from the same local address
    #[arg(long, value_name = "TIME", value_parser = values::time, conflicts_with = "open_rate")]
    pub pause: Option<Duration>,
    /// Delay each opening and each ping by a random time up to this
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub jitter: Option<Duration>,
    /// Leave connections closed that the server has closed
    #[arg(long)]
    pub no_reopen: bool,
    /// How connections are closed at the end: rst, fin or notify [default: notify]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, hide_short_help = true)]
    pub close: Option<CloseArg>,
    /// Event-loop threads [default: the CPUs this process may use]
    #[arg(long, value_name = "N", value_parser = values::threads, hide_short_help = true)]
    pub threads: Option<NonZeroU32>,
    /// Fail the run unless this holds, such as 'errors<1%' (repeatable)
    #[arg(long, value_name = "RULE")]
    pub threshold: Vec<Threshold>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is said")]
pub(crate) struct IdleTalkArgs {
    /// Make one HTTP/1.1 request, GET of this path, before falling silent; `--after-request` alone is GET of /
    #[arg(long, value_name = "PATH", value_parser = parse_path, num_args = 0..=1, require_equals = true,
          default_missing_value = "/")]
    pub after_request: Option<String>,
    /// Speak HTTP/2 [default: 1]: settings are exchanged, the server's pings answered
    #[arg(long, value_name = "VERSION", value_parser = ["1", "2"], hide_possible_values = true)]
    pub http: Option<String>,
    /// Give a sign of life after so much silence
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub ping: Option<Duration>,
    /// What it is: byte, or request [default: request; with --http 2, its PING]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true, requires = "ping")]
    pub ping_with: Option<PingArg>,
    /// Longest time to the answer of a request or a ping
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
