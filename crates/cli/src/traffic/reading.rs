//! How a recording is read: the flags that every command on recorded traffic has.

use std::path::PathBuf;

use squall_plan::InputError;
use squall_plan::load::RecordingOptions;
use squall_plan::options::ReadContext;
use squall_traffic::{Format, LogPattern, PatternError, SessionBy};

use crate::args::{LoadFlags, OfRecording, session_by};
use crate::failure::Failure;

/// How a recording is read.
#[derive(Debug, Clone)]
pub(crate) struct ReadArgs {
    /// Of a Postman collection the saved responses, in place of its requests.
    pub saved_responses: bool,
    pub format: Option<Format>,
    pub log_pattern: Option<LogPattern>,
    pub env_file: Vec<PathBuf>,
    pub skip_bad: bool,
    pub only_host: Vec<String>,
    pub only_path: Vec<String>,
    pub session_by: Option<SessionBy>,
    pub pipe: Option<String>,
}

impl ReadArgs {
    /// Reads what was typed.
    pub(crate) fn typed(flags: &LoadFlags<OfRecording>) -> Result<Self, Failure> {
        let spec = flags.spec([""; 0], None);
        Ok(squall_plan::load::recording(&spec, ReadContext { spoiled: None, check: &check })?.into())
    }
}

impl From<RecordingOptions> for ReadArgs {
    /// The values were checked when they were read: [`check`].
    fn from(options: RecordingOptions) -> Self {
        let RecordingOptions { env_files, skip_bad, only_hosts, only_paths, pipe, .. } = options;
        let pattern = options.log_pattern.and_then(|text| log_pattern(&text).ok());
        Self {
            saved_responses: false,
            format: options.format.and_then(|text| format(&text).ok()),
            log_pattern: pattern.or_else(|| options.log_json.and_then(|text| log_json(&text).ok())),
            env_file: env_files,
            skip_bad,
            only_host: only_hosts,
            only_path: only_paths,
            session_by: options.session_by.and_then(|text| session_by(&text).ok()),
            pipe,
        }
    }
}

/// Whether an option about reading has a good value.
pub(crate) fn check(option: &str, text: &str) -> Result<(), InputError> {
    match option {
        "format" => format(text).map(drop),
        "log-pattern" => log_pattern(text).map(drop),
        "log-json" => log_json(text).map(drop),
        "session-by" => session_by(text).map(drop),
        _ => Ok(()),
    }
}

fn format(text: &str) -> Result<Format, InputError> {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    text.parse().map_err(|reason| refused(reason, &format!("formats are {}", names.join(", "))))
}

fn log_pattern(text: &str) -> Result<LogPattern, InputError> {
    let help = "write it as in the server's configuration, '$remote_addr [$time_local] \"$request\" $status', or name a format such as alb";
    text.parse().map_err(|error: PatternError| refused(error.reason, help))
}

fn log_json(text: &str) -> Result<LogPattern, InputError> {
    let help =
        "write the names of the log's fields: ts=time,method=request.method,url=request.uri,status=status";
    LogPattern::json(text).map_err(|error| refused(error.reason, help))
}

fn refused(reason: impl Into<String>, help: &str) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.to_owned() }
}
