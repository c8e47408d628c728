//! Scripts as this program reads them: from standard input too, with its console, its cache of modules and k6's exit codes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use squall_engine::{LoadScript, ScriptEnd, ScriptSource, Stage};
use squall_plan::files::read_text_from;
use squall_plan::limits::SCRIPT_FILE_BYTES_MAX;
use squall_plan::{OptionStyle, Plan, ScriptSettings};
use squall_report::ColorChoice;
use squall_script::{Console, ErrorKind, Fetch, Form, Level, ScriptError};

use super::source_line;
use crate::failure::{ExitCode, Failure};
use crate::run::{fetch::fetcher, k6_env};

/// Who reads a script: where its console's lines go, and how its modules are fetched.
pub(crate) struct ScriptReader {
    console: Arc<Console>,
    fetch: Fetch,
}

impl ScriptReader {
    pub(crate) fn new(console: Console, color: ColorChoice) -> Self {
        Self { console: Arc::new(console), fetch: fetcher(color) }
    }

    /// One whose lines are another's load's: `said` gets them as they are.
    pub(crate) fn plain(said: Box<dyn Write + Send>) -> Self {
        Self::new(Console::new(said, Form::Short { color: false }, Level::Info), ColorChoice::Never)
    }
}

/// Compiles a script and reads its options. `name`: of the run, unless it is called as its file is.
pub(crate) fn read(
    path: &Path,
    name: Option<&str>,
    settings: &ScriptSettings,
    reader: ScriptReader,
) -> Result<LoadScript, Failure> {
    let ScriptReader { console, fetch } = reader;
    let source = ScriptSource {
        path: path.to_owned(),
        text: text_of_stdin(path)?,
        environment: environment().collect(),
        console: Arc::clone(&console),
        fetch,
    };
    let script = LoadScript::read(source, name, settings).map_err(|error| script_failure(&error, ""))?;
    let ignored = k6_env::ignored(|name| script.run.program.mentions(name));
    ignored.iter().for_each(|text| console.line(Level::Warning, text, ""));
    Ok(script)
}

/// The variables that a script can see: those that are text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The script on standard input, for `-`; of any other, whether it is there.
fn text_of_stdin(path: &Path) -> Result<Option<String>, Failure> {
    let unreadable = |error| Failure { code: ExitCode::ScriptLoad, ..Failure::file("FILE", path, &error) };
    match path.as_os_str() == "-" {
        true => read_text_from(std::io::stdin(), SCRIPT_FILE_BYTES_MAX).map(Some).map_err(unreadable),
        false => std::fs::metadata(path).map(|_| None).map_err(unreadable),
    }
}

/// Refuses a plan that no machine can make.
pub(crate) fn check(plan: &Plan) -> Result<(), Failure> {
    plan.validate().map_err(|error| Failure::usage(error.to_string(), "correct the script's options"))
}

/// Why it ended before its time, where that is a failure.
pub(crate) fn stage_failure(stage: &Stage) -> Option<Failure> {
    match stage.ended()? {
        ScriptEnd::Failed { error, is_setup } => {
            Some(script_failure(&error, &format!("{}: ", part_name(is_setup))))
        }
        ScriptEnd::TimedOut { is_setup } => {
            let message = format!("{} took too long", part_name(is_setup));
            Some(Failure::usage(message, "give it more time: `setupTimeout`, `teardownTimeout`"))
        }
        ScriptEnd::Aborted(reason) => Some(Failure::usage(reason, "the script aborted the test")),
        ScriptEnd::Stopped => None,
    }
}

pub(crate) fn part_name(is_setup: bool) -> &'static str {
    if is_setup { "setup()" } else { "teardown()" }
}

pub(crate) fn script_failure(error: &ScriptError, prefix: &str) -> Failure {
    let code = match error.kind {
        ErrorKind::Options => ExitCode::ScriptOptions,
        ErrorKind::Load | ErrorKind::Rejection => ExitCode::ScriptLoad,
        ErrorKind::Abort => ExitCode::ScriptAborted,
        _ => ExitCode::ScriptException,
    };
    let place = error.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    Failure {
        code,
        message: format!("{place}{prefix}{}", source_line::message(error)),
        help: error.help.clone(),
    }
}

/// The settings with what the environment says where nothing else does.
pub(crate) fn with_environment(settings: ScriptSettings) -> ScriptSettings {
    let named = || std::env::var_os("K6_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    // It is relative to this folder; the machine that makes a load of a plan has another.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    ScriptSettings { config: settings.config.or_else(|| named().map(absolute)), ..settings }
}

pub(crate) fn refused(error: &squall_engine::Error) -> Failure {
    if let squall_engine::Error::Script(error) = error {
        return script_failure(error, "");
    }
    let help = error
        .help(OptionStyle::Flags)
        .unwrap_or_else(|| "check this process's limits: `ulimit -a`".to_owned());
    Failure { code: ExitCode::Usage, message: error.to_string(), help }
}
