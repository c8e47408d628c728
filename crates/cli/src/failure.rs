//! Why squall could not do what was asked: one message, one help, one exit code.

use std::fmt::Write as _;
use std::path::Path;

use squall_plan::{InputError, OptionProblem, Problems};

/// Exit codes: a contract with scripts, documented in `docs/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// The run was made, and every threshold holds.
    Ok = 0,
    /// A bug of squall.
    Bug = 1,
    /// Wrong usage or an impossible plan: nothing was sent.
    Usage = 2,
    /// A threshold does not hold.
    ThresholdsFailed = 3,
    /// Not one connection to the target could be opened.
    TargetUnreachable = 4,
    /// The generator was the limit: the verdict is INVALID.
    GeneratorOverloaded = 5,
    /// A part of a plan was not made: machines were lost that `--allow-lost` does not permit, a hook failed, or a step could not be
    /// prepared.
    Incomplete = 6,
    /// k6 script: a threshold does not hold. The codes from here to 110 are k6's own.
    ScriptThresholdsFailed = 99,
    /// k6 script: `setup()` took too long.
    ScriptSetupTimeout = 100,
    /// k6 script: `teardown()` took too long.
    ScriptTeardownTimeout = 101,
    /// k6 script: options that cannot be used.
    ScriptOptions = 104,
    /// k6 script: ended by a signal.
    ScriptStopped = 105,
    /// k6 script: it threw outside of an iteration, or cannot be compiled.
    ScriptException = 107,
    /// k6 script: `exec.test.abort()`.
    ScriptAborted = 108,
    /// k6 script: `exec.test.fail()`.
    ScriptFailed = 110,
    /// k6 script: a file or module cannot be loaded, or a rejection outside of an iteration was not handled.
    ScriptLoad = 255,
    /// Ended at once by a second Ctrl-C or SIGTERM, or by the first one before a plan's loads were started.
    Aborted = 130,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// An error to show: what is wrong, how to fix it, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub code: ExitCode,
    /// Lowercase, without a final period.
    pub message: String,
    /// A statement, not a question.
    pub help: String,
}

impl Failure {
    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code: ExitCode::Usage, message: message.into(), help: help.into() }
    }

    /// A value of a flag that cannot be read.
    pub(crate) fn value(flag: &str, value: &str, error: &InputError) -> Self {
        OptionProblem::invalid(flag, value, error).into()
    }

    /// A file that a flag names and that cannot be used.
    pub(crate) fn file(flag: &str, path: &Path, error: &std::io::Error) -> Self {
        OptionProblem::file(flag, path, error).into()
    }
}

impl From<OptionProblem> for Failure {
    fn from(problem: OptionProblem) -> Self {
        Self::usage(problem.message, problem.help)
    }
}

impl From<Problems> for Failure {
    fn from(Problems(problems): Problems) -> Self {
        if let [single] = &problems[..] {
            return single.clone().into();
        }
        let mut message = format!("{} problems, nothing was sent", problems.len());
        for problem in &problems {
            let _ = write!(message, "\n  {}\n      {}", problem.message, problem.help);
        }
        Self::usage(message, "fix these, then run again")
    }
}
