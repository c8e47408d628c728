//! The flags of `squall run script.js`: k6's own, those of v1 among them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Heading of the flags that only k6 scripts have.
pub(crate) const SCRIPT_FLAGS: &str = "k6 scripts";

/// Flags of k6 that are about the run, not the load: its summary, its log, its exit code.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = SCRIPT_FLAGS)]
pub(crate) struct ScriptArgs {
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
    /// Use k6's machine-readable format for handleSummary() and --summary-export
    #[arg(long, env = "K6_NEW_MACHINE_READABLE_SUMMARY", hide_env = true)]
    pub new_machine_readable_summary: bool,
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
    /// Exit with 107 when any iteration threw
    #[arg(long)]
    pub fail_on_exceptions: bool,
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
