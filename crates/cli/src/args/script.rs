//! The flags of `squall run script.js`: k6's own, those of v1 among them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Heading of the flags that only k6 scripts have.
pub(crate) const SCRIPT_FLAGS: &str = "k6 scripts";

/// k6's flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = SCRIPT_FLAGS)]
pub(crate) struct ScriptArgs {
    /// Virtual users
    #[arg(short = 'u', long, value_name = "N", value_parser = super::values::signed, allow_negative_numbers = true)]
    pub vus: Option<i64>,
    /// How long virtual users iterate
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Total iterations, shared by the virtual users
    #[arg(short, long, value_name = "N", value_parser = super::values::signed, allow_negative_numbers = true)]
    pub iterations: Option<i64>,
    /// Stage of a ramp of virtual users, TIME:TARGET (repeatable)
    #[arg(short, long, value_name = "TIME:N", allow_hyphen_values = true)]
    pub stage: Vec<String>,
    /// Environment variable for the script's __ENV, NAME=VALUE (repeatable)
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Tag to add to every sample, NAME=VALUE (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub tag: Vec<String>,
    /// Maximum requests per second across all virtual users
    #[arg(long, value_name = "N", value_parser = super::values::rps, allow_negative_numbers = true)]
    pub rps: Option<f64>,
    /// Maximum concurrent requests in a batch
    #[arg(long, value_name = "N", value_parser = super::values::signed, allow_negative_numbers = true)]
    pub batch: Option<i64>,
    /// Maximum connections from one virtual user to one host
    #[arg(long, value_name = "N", value_parser = super::values::signed, allow_negative_numbers = true)]
    pub batch_per_host: Option<i64>,
    /// Maximum number of redirects to follow
    #[arg(long, value_name = "N", value_parser = super::values::signed, allow_negative_numbers = true)]
    pub max_redirects: Option<i64>,
    /// User-Agent for requests that set none
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Minimum duration of an iteration
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub min_iteration_duration: Option<String>,
    /// Do not verify certificates
    #[arg(long)]
    pub insecure_skip_tls_verify: bool,
    /// Do not keep bodies of responses
    #[arg(long)]
    pub discard_response_bodies: bool,
    /// Open a new connection for each request
    #[arg(long)]
    pub no_connection_reuse: bool,
    /// Open new connections for each iteration
    #[arg(long)]
    pub no_vu_connection_reuse: bool,
    /// Throw an exception when a request fails
    #[arg(short = 'w', long = "throw")]
    pub throws: bool,
    /// Do not call setup()
    #[arg(long)]
    pub no_setup: bool,
    /// Do not call teardown()
    #[arg(long)]
    pub no_teardown: bool,
    /// Do not evaluate thresholds
    #[arg(long)]
    pub no_thresholds: bool,
    /// Do not print a summary at the end or call handleSummary()
    #[arg(long, env = "K6_NO_SUMMARY", hide_env = true)]
    pub no_summary: bool,
    /// End-of-test summary: squall's own with the script's metrics, or k6's only
    #[arg(long, value_name = "FORM", value_enum, default_value_t = SummaryArg::Squall)]
    pub summary: SummaryArg,
    /// Detail of k6's summary: compact, full, legacy or disabled
    #[arg(long, value_name = "MODE", value_enum, env = "K6_SUMMARY_MODE", hide_env = true)]
    pub summary_mode: Option<SummaryModeArg>,
    /// Write k6's end summary to this file as JSON
    #[arg(long, value_name = "FILE", env = "K6_SUMMARY_EXPORT", hide_env = true)]
    pub summary_export: Option<PathBuf>,
    /// Statistics shown for trends, such as avg,p(99)
    #[arg(long, value_name = "LIST")]
    pub summary_trend_stats: Option<String>,
    /// Unit of times in the summary: s, ms or us
    #[arg(long, value_name = "UNIT")]
    pub summary_time_unit: Option<String>,
    /// System tags that samples carry
    #[arg(long, value_name = "LIST")]
    pub system_tags: Option<String>,
    /// HTTP version: 1.1, 2 or auto; takes precedence over the script's own `ext.squall`
    #[arg(long, value_name = "VERSION", value_enum, hide_possible_values = true)]
    pub http: Option<super::HttpArg>,
    /// Local addresses that virtual users connect from
    #[arg(long, value_name = "LIST")]
    pub local_ips: Option<String>,
    /// Which of a name's addresses are used, such as select=first,policy=onlyIPv4
    #[arg(long, value_name = "LIST")]
    pub dns: Option<String>,
    /// Part of the test that this process runs, FROM:TO, such as 0:1/3
    #[arg(long, value_name = "FROM:TO")]
    pub execution_segment: Option<String>,
    /// Boundaries of all parts of the test, such as 0,1/3,2/3,1
    #[arg(long, value_name = "LIST")]
    pub execution_segment_sequence: Option<String>,
    /// IP range that the script may not connect to (repeatable)
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub blacklist_ip: Vec<String>,
    /// Host names that the script may not connect to, such as *.example.com (repeatable)
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub block_hostnames: Vec<String>,
    /// Use k6's machine-readable format for handleSummary() and --summary-export
    #[arg(long, env = "K6_NEW_MACHINE_READABLE_SUMMARY", hide_env = true)]
    pub new_machine_readable_summary: bool,
    /// JSON file of options
    #[arg(long, value_name = "FILE", env = "K6_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
    /// Hide squall's own environment variables from the script
    #[arg(long)]
    pub no_system_env_vars: bool,
    /// Write the script's console output to this file
    #[arg(long, value_name = "FILE", env = "K6_CONSOLE_OUTPUT", hide_env = true)]
    pub console_output: Option<PathBuf>,
    /// Where log lines go: stderr, stdout, none or file=FILE
    #[arg(long, value_name = "WHERE", default_value = "stderr", env = "K6_LOG_OUTPUT", hide_env = true)]
    pub log_output: String,
    /// Format of log lines: text, json or raw
    #[arg(long, value_name = "FORM", value_enum, default_value_t = LogFormatArg::Text, env = "K6_LOG_FORMAT", hide_env = true)]
    pub log_format: LogFormatArg,
    /// Also log console.debug()
    #[arg(short, long)]
    pub verbose: bool,
    /// Keep every trend value, for exact percentiles; memory use grows with the run
    #[arg(long)]
    pub exact: bool,
    /// Exit with 107 when any iteration threw
    #[arg(long)]
    pub fail_on_exceptions: bool,
    /// Event-loop threads [default: one per CPU available to this process]
    #[arg(long, value_name = "N", value_parser = super::values::threads)]
    pub threads: Option<std::num::NonZeroU32>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub no_usage_report: bool,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub no_color: bool,
    /// Accepted for compatibility with k6; has no effect
    #[arg(short, long, hide = true)]
    pub linger: bool,
    /// Accepted for compatibility with k6; has no effect
    #[arg(short, long, hide = true)]
    pub address: Option<String>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub include_system_env_vars: bool,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub compatibility_mode: Option<String>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(short, long, hide = true)]
    pub r#type: Option<String>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub traces_output: Option<String>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub features: Option<String>,
    /// Accepted for compatibility with k6; has no effect
    #[arg(long, hide = true)]
    pub profiling_enabled: bool,
    /// Accepted for compatibility with k6, with a warning
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "headers")]
    pub http_debug: Option<String>,
}

/// `--summary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryArg {
    /// Squall's own, and then the script's figures.
    Squall,
    /// What k6 writes.
    K6,
}

/// `--summary-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryModeArg {
    Compact,
    Full,
    Legacy,
    Disabled,
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArg {
    Text,
    Json,
    Raw,
}
