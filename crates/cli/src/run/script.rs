//! `squall run script.js`: a k6 script with its options, its thresholds, its summary and k6's exit codes.

use std::io::{IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use squall_engine::{Control, LoadScript, ScriptEnd, ScriptRun, Stage, SummaryRun};
use squall_measure::{Rules, RunRecord, RunRecorder, ScriptFigures, StoppedBy, ThresholdResult};
use squall_plan::files::read_text;
use squall_plan::limits::SCRIPT_FILE_BYTES_MAX;
use squall_plan::printable::printable_json;
use squall_plan::{OptionStyle, Plan, ScriptSettings};
use squall_report::Ask;
use squall_report::k6::{
    ScriptSection, ScriptSummary, TextForm, TextMode, export, machine_data, summary_data, summary_text,
};
use squall_script::{Console, ErrorKind, Form, Level, Outcome, ScriptError, script_settings};

use crate::args::{LogFormatArg, RunArgs, ScriptArgs, SummaryArg, SummaryModeArg};
use crate::faces::Faces;
use crate::failure::{ExitCode, Failure};
use crate::http::{steered, warn_of_stuck};
use crate::load;
use crate::load::script::{ScriptReader, part_name, refused, script_failure};
use crate::output;
use crate::patience::Patience;
use crate::run::{k6_env, samples};
use crate::signals;
use crate::view::View;

/// Runs a script. What is wrong usage elsewhere ends it with 255, as in k6.
pub(crate) fn run(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    start(path, args).map_err(|failure| match failure.code {
        ExitCode::Usage => Failure { code: ExitCode::ScriptLoad, ..failure },
        _ => failure,
    })
}

/// What it would do; nothing is sent.
pub(super) fn planned(path: &Path, args: &RunArgs) -> Result<Plan, Failure> {
    let settings = settings(path, args)?;
    let reader = ScriptReader::plain(Box::new(std::io::sink()));
    let script = load::script::read(path, args.output.name.as_deref(), &settings, reader)?;
    load::script::check(&script.plan)?;
    Ok(script.plan)
}

fn start(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    let doing = format!("reading {} and what it imports", path.display());
    let patience = Patience::unless_quiet(&args.output.faces, doing);
    let args = &k6_env::with_outputs(args)?;
    let reader = ScriptReader::new(console(&args.script)?, args.output.faces.color.into());
    let settings = settings(path, args)?;
    let LoadScript { plan, rules, run } =
        load::script::read(path, args.output.name.as_deref(), &settings, reader)?;
    drop(patience);
    let script = Script { args, path, plan, run, rules };
    if args.output.dry_run {
        output::result(&format!("{}\n", script.inspected()))?;
        return Ok(ExitCode::Ok);
    }
    load::script::check(&script.plan)?;
    script.make()
}

/// The settings that were typed.
fn settings(path: &Path, args: &RunArgs) -> Result<ScriptSettings, Failure> {
    let spec = args.load.spec([path.to_string_lossy()], args.output.name.as_deref());
    let settings = load::script::with_environment(script_settings(&spec, load::typed())?);
    let has_sections = args.script.summary_mode == Some(SummaryModeArg::Full);
    Ok(ScriptSettings { has_sections, ..settings })
}

/// What is logged at the first signal.
const INTERRUPTED: &str =
    "test run was aborted by a signal: teardown() and the summary follow; Ctrl-C again ends at once";

/// A script that is ready to run.
struct Script<'a> {
    args: &'a RunArgs,
    path: &'a Path,
    plan: Plan,
    run: ScriptRun,
    rules: Rules,
}

impl Script<'_> {
    fn make(&self) -> Result<ExitCode, Failure> {
        let (streams, files) = samples::split(&self.args.output.faces);
        let faces = Faces::open_with(&self.args.output, &self.plan.masked(), &files)?;
        let streams = samples::open(&streams, &self.run.program, &self.run.options)?;
        if self.args.output.faces.quiet == 0 {
            output::note(&self.banner());
        }
        let control = Control::new();
        // The first signal interrupts iterations, and `teardown()` and the summary follow; the second ends at once.
        let _watch = signals::steer(None, self.interrupted(steered(&control)))?;
        let mut view = View::open(&self.args.output, &self.plan.name, Box::new(steered(&control)))?;
        view.save_in(faces.folder());
        let mut judge =
            Judge { rules: &self.rules, stage: &self.run.stage, next_s: JUDGE_EVERY_S, is_crossed: false };
        let mut run = self.run.clone();
        run.samples.clone_from(&streams);
        let record = squall_engine::run_driven(
            &self.plan,
            vec![Arc::new(run)],
            &control,
            &mut |recorder: &RunRecorder| {
                judge.look(recorder);
                match self.is_setting_up() {
                    true => view.prepare("setup() is running"),
                    false => view.phase(None),
                }
                view.update(recorder, &[]);
            },
        );
        let mut record = record.map_err(|error| refused(&error))?;
        record.thresholds = self.judged(&record);
        view.finish(&record);
        warn_of_stuck(&control, self.args.output.faces.color.into());
        samples::finish(&streams, self.args.output.faces.color.into());
        let is_crossed = judge.is_crossed;
        self.warn_of_no_iterations();
        self.show(faces, &record, &control)?;
        self.exit_code(&record, is_crossed, control.is_stopped())
    }

    /// Steers the run, and logs the first signal.
    fn interrupted(&self, mut run: impl FnMut(Ask) + Send + 'static) -> impl FnMut(Ask) + Send + 'static {
        let console = Arc::clone(&self.run.console);
        move |ask| {
            if ask == Ask::Drain {
                console.line(Level::Error, INTERRUPTED, "");
            }
            run(ask);
        }
    }

    /// k6 reports a run that was too short for any iteration.
    fn warn_of_no_iterations(&self) {
        let done = self.run.stage.counts().iterations_completed.load(std::sync::atomic::Ordering::Relaxed);
        if done == 0 && self.run.stage.ended().is_none() {
            let text = "No script iterations fully finished, consider making the test duration longer";
            self.run.console.line(Level::Warning, text, "");
        }
    }

    fn is_setting_up(&self) -> bool {
        !self.run.stage.is_set_up() && self.run.program.has_function("setup")
    }

    /// What became of the script's thresholds.
    fn judged(&self, record: &RunRecord) -> Vec<ThresholdResult> {
        let none = ScriptFigures::default();
        let figures = record.total.script.as_deref().unwrap_or(&none);
        self.rules.judge(figures, record.duration).into_iter().map(ThresholdResult::from).collect()
    }

    /// What is about to run.
    fn banner(&self) -> String {
        let scenarios = self.run.options.scenarios.iter().map(|scenario| {
            let executor = &scenario.executor;
            format!(
                "  {}: {}, up to {} VUs for {:?}",
                scenario.name,
                executor.name(),
                executor.max_vus(),
                executor.duration()
            )
        });
        let lines: Vec<String> = scenarios.collect();
        format!("{}\n{}", self.path.display(), lines.join("\n"))
    }

    fn inspected(&self) -> String {
        let json: Json = serde_json::from_str(&self.run.options.runtime.json).unwrap_or(Json::Null);
        printable_json(serde_json::to_string_pretty(&json).unwrap_or_default())
    }

    /// The summary: the script's own, k6's, or squall's with the script's figures.
    fn show(&self, faces: Faces<'_>, record: &RunRecord, control: &Control) -> Result<(), Failure> {
        let none = ScriptFigures::default();
        let figures = record.total.script.as_deref().unwrap_or(&none);
        let setup_data = self.run.stage.setup_data();
        let sections = self.run.stage.sections();
        let sections: Vec<ScriptSection<'_>> = sections
            .iter()
            .map(|((scenario, group), figures)| ScriptSection { scenario, group, figures })
            .collect();
        let summary = ScriptSummary {
            figures,
            sections: &sections,
            rules: &self.rules,
            duration: record.duration,
            trend_stats: &self.run.options.summary_trend_stats,
            time_unit: &self.run.options.summary_time_unit,
            setup_data: setup_data.as_deref(),
        };
        let flags = &self.args.script;
        let is_k6 = flags.summary == SummaryArg::K6;
        let is_stdout_taken = self.args.output.faces.outputs().iter().any(|output| output.path.is_none());
        faces.finish_quietly(record, is_k6 || is_stdout_taken)?;
        if let Some(path) = &flags.summary_export {
            let data = self.machine_data(&summary).unwrap_or_else(|| export(&summary));
            let text = serde_json::to_string_pretty(&data).unwrap_or_default();
            let written = std::fs::write(path, text);
            self.warn_of_unwritten(written.err().map(|error| (path.display().to_string(), error)));
        }
        if flags.no_summary || flags.summary_mode == Some(SummaryModeArg::Disabled) {
            return Ok(());
        }
        if self.run.program.has_function("handleSummary") && self.handle_summary(&summary, control)? {
            return Ok(());
        }
        if is_stdout_taken || self.args.output.faces.quiet > 0 && !is_k6 {
            return Ok(());
        }
        // Squall's own summary has shown the thresholds.
        let style = output::stdout_style(self.args.output.faces.color);
        let form = TextForm { mode: self.text_mode(), has_thresholds: is_k6, style };
        output::result(&summary_text(&summary, form))
    }

    fn text_mode(&self) -> TextMode {
        if self.run.has_sections { TextMode::Full } else { TextMode::Compact }
    }

    /// Calls `handleSummary`; false when it throws or returns nothing, and the default summary is wanted.
    fn handle_summary(&self, summary: &ScriptSummary<'_>, control: &Control) -> Result<bool, Failure> {
        let data = self.machine_data(summary);
        let data = data.unwrap_or_else(|| summary_data(summary, std::io::stdout().is_terminal())).to_string();
        let outcome = self.finish_summary(data, &control.follower(SUMMARY_AFTER_ABORT));
        let texts = match outcome {
            Ok(Some(texts)) => texts,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.run.console.line(Level::Error, &error.message, "");
                return Ok(false);
            }
        };
        let texts: Map<String, Json> = serde_json::from_str(&texts).unwrap_or_default();
        let mut problems = Vec::new();
        for (name, text) in texts {
            let text = text.as_str().unwrap_or_default();
            match name.as_str() {
                "stdout" => output::result(text)?,
                "stderr" => output::own(text),
                path => {
                    problems.extend(std::fs::write(path, text).err().map(|error| (path.to_owned(), error)));
                }
            }
        }
        self.warn_of_unwritten(problems);
        Ok(true)
    }

    /// Files of the summary that could not be written: what was measured stays valid, and so does the exit code.
    fn warn_of_unwritten(&self, files: impl IntoIterator<Item = (String, std::io::Error)>) {
        let lines = files.into_iter().map(|(path, error)| format!("\n\t- could not write '{path}': {error}"));
        let lines: String = lines.collect();
        if !lines.is_empty() {
            let text = format!("Could not save some summary information:{lines}");
            let what = "failed to handle the end-of-test summary";
            self.run.console.fields(Level::Error, what, &[("error", &text)]);
        }
    }

    /// The newer form of the data, where it is wanted.
    fn machine_data(&self, summary: &ScriptSummary<'_>) -> Option<Json> {
        if !self.args.script.new_machine_readable_summary {
            return None;
        }
        let text = read_text(self.path, SCRIPT_FILE_BYTES_MAX).unwrap_or_default();
        Some(machine_data(summary, self.text_mode(), &text, std::time::SystemTime::now()))
    }

    /// Calls `handleSummary` where its requests are made, too.
    fn finish_summary(&self, data: String, control: &Control) -> Result<Option<String>, ScriptError> {
        let call = Arc::new(SummaryRun::new(self.run.clone(), data));
        let plan = Plan { threads: Some(NonZeroU32::MIN), ..self.plan.clone() };
        let factory: Arc<dyn squall_engine::DriverFactory> = Arc::clone(&call) as _;
        let made = squall_engine::run_driven(&plan, vec![factory], control, &mut |_: &RunRecorder| {});
        if let Err(error) = made {
            let help = error.help(OptionStyle::Flags).unwrap_or_default();
            return Err(ScriptError::new(ErrorKind::Exception, error.to_string(), help));
        }
        match call.outcome() {
            Some(Outcome::Done(texts)) => Ok(texts),
            Some(Outcome::Failed(error)) => Err(error),
            Some(Outcome::Interrupted | Outcome::Aborted(_)) => Ok(None),
            None if control.is_aborted() => Ok(None),
            None => {
                let message = "handleSummary() execution timed out after 120 seconds";
                Err(ScriptError::new(ErrorKind::Timeout, message, "make it do less"))
            }
        }
    }

    fn timed_out(&self, is_setup: bool) -> Failure {
        let options = &self.run.options;
        let (code, limit, option) = match is_setup {
            true => (ExitCode::ScriptSetupTimeout, options.setup_timeout, "setupTimeout"),
            false => (ExitCode::ScriptTeardownTimeout, options.teardown_timeout, "teardownTimeout"),
        };
        let seconds = limit.as_secs_f64();
        let message = format!("{} execution timed out after {seconds} seconds", part_name(is_setup));
        Failure { code, message, help: format!("raise the option `{option}`") }
    }

    /// What explains the others wins: k6's order.
    fn exit_code(&self, record: &RunRecord, is_crossed: bool, is_stopped: bool) -> Result<ExitCode, Failure> {
        let end = self.run.stage.ended();
        match end {
            Some(ScriptEnd::Failed { error, is_setup }) => {
                return Err(script_failure(&error, &format!("{}: ", part_name(is_setup))));
            }
            Some(ScriptEnd::TimedOut { is_setup }) => return Err(self.timed_out(is_setup)),
            Some(ScriptEnd::Aborted(reason)) => {
                self.run.console.line(Level::Error, &reason, "");
                return Ok(ExitCode::ScriptAborted);
            }
            _ => {}
        }
        if !is_crossed && (is_stopped || record.stopped_by == StoppedBy::Aborted) {
            return Ok(ExitCode::ScriptStopped);
        }
        let counts = self.run.stage.counts();
        if counts.is_failed.load(std::sync::atomic::Ordering::Relaxed) && !is_crossed {
            self.run.console.line(Level::Error, "test run was marked as failed", "");
            return Ok(ExitCode::ScriptFailed);
        }
        let mut crossed: Vec<&str> = Vec::new();
        for missed in record.thresholds.iter().filter(|result| !result.ok) {
            if !crossed.contains(&missed.metric.as_str()) {
                crossed.push(&missed.metric);
            }
        }
        crossed.sort_unstable();
        if is_crossed || !crossed.is_empty() {
            let what = if is_crossed {
                "were crossed; at least one has abortOnFail enabled, stopping test prematurely"
            } else {
                "have been crossed"
            };
            let text = format!("thresholds on metrics '{}' {what}", crossed.join(", "));
            self.run.console.line(Level::Error, &text, "");
            return Ok(ExitCode::ScriptThresholdsFailed);
        }
        let has_thrown = counts.iterations_failed.load(std::sync::atomic::Ordering::Relaxed) > 0;
        Ok(if has_thrown && self.args.script.fail_on_exceptions {
            ExitCode::ScriptException
        } else {
            ExitCode::Ok
        })
    }
}

/// Looks at the thresholds that may end the run.
struct Judge<'a> {
    rules: &'a Rules,
    stage: &'a Stage,
    next_s: f64,
    is_crossed: bool,
}

impl Judge<'_> {
    fn look(&mut self, recorder: &RunRecorder) {
        let elapsed = recorder.elapsed();
        if elapsed.as_secs_f64() < self.next_s || self.is_crossed {
            return;
        }
        self.next_s = elapsed.as_secs_f64() + JUDGE_EVERY_S;
        if let Some(figures) = recorder.total().script.as_deref()
            && self.rules.broken(figures, elapsed).is_some()
        {
            self.is_crossed = true;
            self.stage.end(ScriptEnd::Stopped);
        }
    }
}

fn console(flags: &ScriptArgs) -> Result<Console, Failure> {
    let is_terminal = std::io::stderr().is_terminal() && flags.log_output == "stderr";
    let form = match flags.log_format {
        LogFormatArg::Json => Form::Json,
        LogFormatArg::Raw => Form::Raw,
        LogFormatArg::Text if is_terminal => {
            Form::Short { color: !flags.no_color && std::env::var_os("NO_COLOR").is_none() }
        }
        LogFormatArg::Text => Form::Logfmt,
    };
    let least = if flags.verbose { Level::Debug } else { Level::Info };
    let console = Console::new(log_writer(&flags.log_output)?, form, least);
    let Some(path) = &flags.console_output else { return Ok(console) };
    let file =
        std::fs::File::create(path).map_err(|error| Failure::file("--console-output", path, &error))?;
    Ok(console.with_script_lines(Box::new(file)))
}

/// `--log-output`.
fn log_writer(place: &str) -> Result<Box<dyn Write + Send>, Failure> {
    Ok(match place {
        "stderr" => Box::new(std::io::stderr()),
        "stdout" => Box::new(std::io::stdout()),
        "none" => Box::new(std::io::sink()),
        other => {
            let path = other.strip_prefix("file=").map(|rest| rest.split(',').next().unwrap_or(rest));
            let path = path.ok_or_else(|| {
                let message = format!("`--log-output {other}` is not a log destination");
                Failure::usage(message, "use stderr, stdout, none or file=FILE")
            })?;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.map_err(|error| Failure::file("--log-output", Path::new(path), &error))?)
        }
    })
}

/// What `handleSummary()` may take when the user wants the end at once: to write its files, not to send anything.
const SUMMARY_AFTER_ABORT: Duration = Duration::from_millis(500);

/// How often k6 judges thresholds.
const JUDGE_EVERY_S: f64 = 2.0;
