//! `squall run script.js`: a k6 script with its options, its thresholds, its summary and k6's exit codes.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use squall_engine::{Control, ScriptEnd, ScriptRun, SetupPart, Stage, Submetric, SummaryRun, submetrics};
use squall_measure::{
    MetricRules, Rule, Rules, RunRecord, RunRecorder, ScriptFigures, ScriptThreshold, StoppedBy,
    ThresholdResult,
};
use squall_plan::files::{read_text, read_text_from};
use squall_plan::limits::{PLAN_FILE_BYTES_MAX, SCRIPT_FILE_BYTES_MAX};
use squall_plan::printable::printable_json;
use squall_plan::{
    ConnectionPolicy, Load, Network, Plan, Profile, Proxy, ScriptLoad, Segment, Stop, TlsPolicy, What, When,
};
use squall_report::Ask;
use squall_report::k6::{
    ScriptSection, ScriptSummary, TextForm, TextMode, export, machine_data, summary_data, summary_text,
};
use squall_script::{
    ClientConfig, Console, ErrorKind, Fetch, Form, Layer, LayerKind, Level, Options, Outcome, Program,
    ProgramSetup, ScriptError, env_layer,
};

use crate::args::{HttpArg, LogFormatArg, RunArgs, ScriptArgs, SummaryArg, SummaryModeArg};
use crate::faces::Faces;
use crate::failure::{ExitCode, Failure};
use crate::http::{steered, warn_of_stuck};
use crate::output;
use crate::patience::Patience;
use crate::run::{fetch::fetcher, k6_env, samples, source_line};
use crate::signals;
use crate::view::View;

/// Runs a script. What is wrong usage elsewhere ends it with 255, as in k6.
pub(crate) fn run(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    start(path, args).map_err(|failure| match failure.code {
        ExitCode::Usage => Failure { code: ExitCode::ScriptLoad, ..failure },
        _ => failure,
    })
}

fn start(path: &Path, args: &RunArgs) -> Result<ExitCode, Failure> {
    let doing = format!("reading {} and what it imports", path.display());
    let patience = Patience::unless_quiet(&args.output.faces, doing);
    let args = &k6_env::with_outputs(args)?;
    let script = Script::prepare(path, args, console(&args.script)?)?;
    drop(patience);
    let plan = script.plan();
    if args.output.dry_run {
        output::result(&format!("{}\n", script.inspected()))?;
        return Ok(ExitCode::Ok);
    }
    plan.validate().map_err(|error| Failure::usage(error.to_string(), "correct the script's options"))?;
    script.make(&plan)
}

/// A script as a load of a plan file.
pub(crate) struct LoadScript {
    pub(crate) plan: Plan,
    /// Its own thresholds.
    pub(crate) rules: Rules,
    /// Every file that it was made from.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) run: ScriptRun,
}

/// Reads a script's flags and compiles it. `said`: where its console's lines go.
pub(crate) fn load(args: &RunArgs, said: Box<dyn Write + Send>) -> Result<LoadScript, Failure> {
    let path =
        args.files.first().ok_or_else(|| Failure::usage("no script given", "write `script: test.js`"))?;
    let script = Script::prepare(path, args, Console::new(said, Form::Short { color: false }, Level::Info))?;
    let plan = script.plan();
    plan.validate().map_err(|error| Failure::usage(error.to_string(), "correct the script's options"))?;
    let sources = script.run.program.sources().collect();
    Ok(LoadScript { plan, sources, run: script.run, rules: script.rules })
}

impl LoadScript {
    /// One of several machines runs it: who calls `setup()` for all, and when the scenarios begin, is for the stage to say.
    pub(crate) fn share(&mut self, is_first: bool) {
        let has_setup = self.run.program.has_function("setup") && !self.run.options.no_setup;
        let part = match (has_setup, is_first) {
            (true, true) => SetupPart::Caller,
            (true, false) => SetupPart::Follower,
            // `teardown()` is called once all the same.
            (false, true) => SetupPart::Alone,
            (false, false) => SetupPart::Bystander,
        };
        self.run.stage = Arc::new(Stage::new(self.run.options.scenarios.len(), part));
    }

    /// Why it ended before its time, where that is a failure.
    pub(crate) fn failure(stage: &Stage) -> Option<Failure> {
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
}

/// What is logged at the first signal.
const INTERRUPTED: &str =
    "test run was aborted by a signal: teardown() and the summary follow; Ctrl-C again ends at once";

fn part_name(is_setup: bool) -> &'static str {
    if is_setup { "setup()" } else { "teardown()" }
}

/// A script that is ready to run.
struct Script<'a> {
    args: &'a RunArgs,
    path: &'a Path,
    run: ScriptRun,
    rules: Rules,
}

impl<'a> Script<'a> {
    fn prepare(path: &'a Path, args: &'a RunArgs, console: Console) -> Result<Self, Failure> {
        let flags = &args.script;
        let console = Arc::new(console);
        let env = environment(flags)?;
        let fetch = fetcher(args.output.faces.color.into());
        let program = compile(path, (env, fetch), &console)?;
        if program.functions().next().is_none() {
            let message = "no exported functions in script".to_owned();
            let help = "write `export default function () { … }`".to_owned();
            return Err(Failure { code: ExitCode::ScriptLoad, message, help });
        }
        let options = options(flags, &program)?;
        let ignored = k6_env::ignored(|name| program.mentions(name));
        options.warnings.iter().chain(&ignored).for_each(|text| console.line(Level::Warning, text, ""));
        for scenario in &options.scenarios {
            if !program.has_function(&scenario.exec) {
                let message = format!(
                    "function '{}' not found in exports, as scenario '{}' requires",
                    scenario.exec, scenario.name
                );
                let help = format!("export a function `{}`, or name another one in `exec`", scenario.exec);
                return Err(Failure { code: ExitCode::ScriptOptions, message, help });
            }
        }
        let names = options.thresholds.iter().map(|(name, _)| name.as_str());
        let submetrics = submetrics(&program, names).map_err(|problem| bad_threshold(&problem))?;
        let rules = rules(&program, &options, &submetrics)?;
        let policy = tls_policy(&options);
        let mut run = ScriptRun::new(program, options, console, &policy)
            .map_err(|error| Failure { code: ExitCode::ScriptOptions, ..refused(&error) })?;
        run.submetrics = submetrics;
        run.has_sections = flags.summary_mode == Some(SummaryModeArg::Full);
        run.exact = flags.exact;
        Ok(Self { args, path, run, rules })
    }

    /// The plan, as it is saved.
    fn plan(&self) -> Plan {
        let scenarios = &self.run.options.scenarios;
        let users: u64 = scenarios.iter().map(|scenario| scenario.executor.max_vus()).sum();
        let stem = || self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = self.args.output.name.clone().or_else(stem).unwrap_or_else(|| "script".to_owned());
        let load = Load {
            name: name.clone(),
            what: What::Script(ScriptLoad {
                path: self.path.to_owned(),
                options: self.run.options.runtime.json.clone(),
                scenarios: scenarios
                    .iter()
                    .map(|scenario| format!("{}: {}", scenario.name, scenario.executor.name()))
                    .collect(),
            }),
            when: When::Closed { connections: Profile::constant(users.max(1) as f64), users: None },
            stop: Stop { duration: None, count: None },
            connections: self.connections(),
            network: self.network(),
            tls: tls_policy(&self.run.options),
            segment: Segment::default(),
        };
        Plan {
            name,
            loads: vec![load],
            thresholds: Vec::new(),
            warmup: Duration::ZERO,
            threads: self.args.script.threads,
        }
    }

    /// The addresses that users connect from, and the proxy of the script's own clients.
    fn network(&self) -> Network {
        let proxy = self.run.program.clients().iter().find(|client| !client.proxy.is_empty());
        Network {
            sources: self.run.options.local_ips.clone(),
            proxy: proxy.and_then(|client| proxy_of(&client.proxy)),
            ..Network::default()
        }
    }

    /// How long connections may take and live: as a client of `k6/x/fasthttp` says, else as in k6.
    fn connections(&self) -> ConnectionPolicy {
        let clients = self.run.program.clients();
        let longest =
            |of: fn(&ClientConfig) -> Duration| clients.iter().map(of).filter(|time| !time.is_zero()).max();
        ConnectionPolicy {
            request_count_max: self.run.options.runtime.closes_connections.then_some(NonZeroU32::MIN),
            connect_timeout: longest(|client| client.dial_timeout).unwrap_or(DIAL_TIMEOUT),
            age_max: longest(|client| client.connection_age_max),
            ..ConnectionPolicy::default()
        }
    }

    fn make(&self, plan: &Plan) -> Result<ExitCode, Failure> {
        let (streams, files) = samples::split(&self.args.output.faces);
        let faces = Faces::open_with(&self.args.output, &plan.masked(), &files)?;
        let streams = samples::open(&streams, &self.run.program, &self.run.options)?;
        if self.args.output.faces.quiet == 0 {
            output::note(&self.banner());
        }
        let control = Control::new();
        // The first signal interrupts iterations, and `teardown()` and the summary follow; the second ends at once.
        let _watch = signals::steer(None, self.interrupted(steered(&control)))?;
        let mut view = View::open(&self.args.output, &plan.name, Box::new(steered(&control)))?;
        view.save_in(faces.folder());
        let mut judge =
            Judge { rules: &self.rules, stage: &self.run.stage, next_s: JUDGE_EVERY_S, is_crossed: false };
        let mut run = self.run.clone();
        run.samples.clone_from(&streams);
        let record =
            squall_engine::run_driven(plan, vec![Arc::new(run)], &control, &mut |recorder: &RunRecorder| {
                judge.look(recorder);
                match self.is_setting_up() {
                    true => view.prepare("setup() is running"),
                    false => view.phase(None),
                }
                view.update(recorder, &[]);
            });
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

    /// k6 tells of a run that was too short for any iteration.
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
        // Squall's own summary has told of the thresholds.
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

    /// Files of the summary that could not be written: what was measured stands, and so does the exit code.
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
        let plan = Plan { threads: Some(NonZeroU32::MIN), ..self.plan() };
        let factory: Arc<dyn squall_engine::DriverFactory> = Arc::clone(&call) as _;
        let made = squall_engine::run_driven(&plan, vec![factory], control, &mut |_: &RunRecorder| {});
        if let Err(error) = made {
            let help = error.help().unwrap_or_default();
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

/// `__ENV`.
fn environment(flags: &ScriptArgs) -> Result<BTreeMap<String, String>, Failure> {
    let mut env: BTreeMap<String, String> =
        if sees_system_variables(flags) { std::env::vars().collect() } else { BTreeMap::new() };
    for pair in &flags.env {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (pair.clone(), std::env::var(pair).unwrap_or_default()),
        };
        if name.is_empty() {
            return Err(Failure::usage(
                format!("`--env {pair}` has no name"),
                "write it like `--env NAME=value`",
            ));
        }
        env.insert(name, value);
    }
    Ok(env)
}

/// Whether `__ENV` has the variables of this process: flags go before `K6_INCLUDE_SYSTEM_ENV_VARS`.
fn sees_system_variables(flags: &ScriptArgs) -> bool {
    let is_off = || std::env::var("K6_INCLUDE_SYSTEM_ENV_VARS").is_ok_and(|value| value == "false");
    !flags.no_system_env_vars && (flags.include_system_env_vars || !is_off())
}

fn compile(
    path: &Path,
    (env, fetch): (BTreeMap<String, String>, Fetch),
    console: &Arc<Console>,
) -> Result<Arc<Program>, Failure> {
    let is_stdin = path.as_os_str() == "-";
    let text = if is_stdin {
        let text = read_text_from(std::io::stdin(), SCRIPT_FILE_BYTES_MAX);
        Some(text.map_err(|error| Failure::file("FILE", path, &error))?)
    } else {
        std::fs::metadata(path)
            .map_err(|error| Failure { code: ExitCode::ScriptLoad, ..Failure::file("FILE", path, &error) })?;
        None
    };
    let path = if is_stdin { Path::new("stdin.js") } else { path };
    let setup =
        ProgramSetup { path: path.to_owned(), text, env, fetch: Some(fetch), console: Arc::clone(console) };
    Program::compile(setup).map_err(|error| script_failure(&error, ""))
}

fn script_failure(error: &ScriptError, prefix: &str) -> Failure {
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

/// Options in k6's order: config file, script, environment, flags.
fn options(flags: &ScriptArgs, program: &Program) -> Result<Options, Failure> {
    let mut layers = Vec::new();
    if let Some(path) = &flags.config {
        let text =
            read_text(path, PLAN_FILE_BYTES_MAX).map_err(|error| Failure::file("--config", path, &error));
        let code = ExitCode::ScriptOptions;
        let text = text.map_err(|failure| Failure { code, ..failure })?;
        let options = serde_json::from_str(&text).map_err(|error| Failure {
            code,
            message: format!("`{}` is not a JSON object of options: {error}", path.display()),
            help: "write it like {\"vus\": 10, \"duration\": \"30s\"}".to_owned(),
        })?;
        layers.push(Layer { kind: LayerKind::File, options });
    }
    if let Some(layer) = program.layer() {
        layers.push(layer);
    } else if !program.options().is_null() {
        let message = "the exported `options` is not an object".to_owned();
        let help = "export const options = { vus: 10, duration: '30s' }".to_owned();
        return Err(Failure { code: ExitCode::ScriptOptions, message, help });
    }
    let variables: Vec<(String, String)> =
        std::env::vars().filter(|(name, _)| name.starts_with("K6_")).collect();
    layers.push(env_layer(variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
    let given = Layer { kind: LayerKind::Flags, options: flag_options(flags)? };
    given.check().map_err(|error| Failure { code: ExitCode::ScriptLoad, ..script_failure(&error, "") })?;
    layers.push(given);
    let mut options = Options::of(layers).map_err(|error| script_failure(&error, ""))?;
    if flags.no_thresholds || std::env::var("K6_NO_THRESHOLDS").is_ok_and(|value| value == "true") {
        options.thresholds.clear();
    }
    Ok(options)
}

/// What flags say, with k6's names.
fn flag_options(flags: &ScriptArgs) -> Result<Map<String, Json>, Failure> {
    let mut options = Map::new();
    let mut put = |name: &str, value: Option<Json>| {
        options.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("vus", flags.vus.map(Json::from));
    put("duration", flags.duration.clone().map(Json::from));
    put("iterations", flags.iterations.map(Json::from));
    put("rps", flags.rps.map(Json::from));
    put("batch", flags.batch.map(Json::from));
    put("batchPerHost", flags.batch_per_host.map(Json::from));
    put("maxRedirects", flags.max_redirects.map(Json::from));
    put("userAgent", flags.user_agent.clone().map(Json::from));
    put("minIterationDuration", flags.min_iteration_duration.clone().map(Json::from));
    put("summaryTrendStats", flags.summary_trend_stats.clone().map(Json::from));
    put("summaryTimeUnit", flags.summary_time_unit.clone().map(Json::from));
    put("systemTags", flags.system_tags.clone().map(Json::from));
    put("dns", flags.dns.clone().map(Json::from));
    put("executionSegment", flags.execution_segment.clone().map(Json::from));
    put("executionSegmentSequence", flags.execution_segment_sequence.clone().map(Json::from));
    put("httpDebug", flags.http_debug.clone().map(Json::from));
    for (name, list) in [("blacklistIPs", &flags.blacklist_ip), ("blockHostnames", &flags.block_hostnames)] {
        put(name, (!list.is_empty()).then(|| Json::from(list.clone())));
    }
    put("ext", flags.http.map(|version| json!({ "squall": { "http": http_name(version) } })));
    put("localIPs", flags.local_ips.clone().map(Json::from));
    for (name, is_set) in [
        ("insecureSkipTLSVerify", flags.insecure_skip_tls_verify),
        ("discardResponseBodies", flags.discard_response_bodies),
        ("noConnectionReuse", flags.no_connection_reuse),
        ("noVUConnectionReuse", flags.no_vu_connection_reuse),
        ("throw", flags.throws),
        ("noSetup", flags.no_setup),
        ("noTeardown", flags.no_teardown),
    ] {
        put(name, is_set.then_some(Json::Bool(true)));
    }
    if !flags.stage.is_empty() {
        put("stages", Some(squall_script::stages(&flags.stage.join(","))));
    }
    if !flags.tag.is_empty() {
        let tags: Option<Map<String, Json>> = flags
            .tag
            .iter()
            .map(|pair| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.into())))
            .collect();
        let bad = || Failure::usage("`--tag` needs NAME=VALUE", "write it like `--tag build=42`");
        put("tags", Some(Json::Object(tags.ok_or_else(bad)?)));
    }
    Ok(options)
}

/// A version of HTTP as `ext.squall.http` has it.
fn http_name(version: HttpArg) -> &'static str {
    match version {
        HttpArg::Http11 => "1.1",
        HttpArg::Http2 => "2",
        HttpArg::Auto => "auto",
    }
}

fn rules(program: &Program, options: &Options, submetrics: &[Submetric]) -> Result<Rules, Failure> {
    let figures = squall_engine::empty_figures(program, submetrics);
    let mut all = Vec::new();
    for (name, sources) in &options.thresholds {
        let metric_idx =
            squall_engine::metric_of(program, submetrics, name).map_err(|problem| bad_threshold(&problem))?;
        let value = &figures.metrics[metric_idx].value;
        let read = |source: &squall_script::ThresholdSource| {
            let rule = Rule::parse(&source.text, value)
                .map_err(|error| bad_threshold(&format!("{name}: {error}")))?;
            Ok(ScriptThreshold { rule, aborts: source.aborts, delay: source.delay })
        };
        let rules = sources.iter().map(read).collect::<Result<_, Failure>>()?;
        all.push(MetricRules { name: name.clone(), metric_idx, rules });
    }
    Ok(Rules::new(all))
}

fn bad_threshold(problem: &str) -> Failure {
    Failure {
        code: ExitCode::ScriptOptions,
        message: format!("thresholds: {problem}"),
        help: "write them like { http_req_duration: ['p(95)<200'], 'http_reqs{status:200}': ['count>10'] }"
            .to_owned(),
    }
}

fn refused(error: &squall_engine::Error) -> Failure {
    if let squall_engine::Error::Script(error) = error {
        return script_failure(error, "");
    }
    let help = error.help().unwrap_or_else(|| "check this process's limits: `ulimit -a`".to_owned());
    Failure { code: ExitCode::Usage, message: error.to_string(), help }
}

/// How TLS is spoken to hosts that no other rule is for.
fn tls_policy(options: &Options) -> TlsPolicy {
    TlsPolicy {
        insecure: options.insecure_skip_tls_verify,
        versions: options.tls_versions,
        ciphers: options.tls_cipher_suites.clone(),
        ..TlsPolicy::default()
    }
}

/// `user:password@host:port`.
fn proxy_of(text: &str) -> Option<Proxy> {
    let url = url::Url::parse(&if text.contains("://") { text.to_owned() } else { format!("http://{text}") })
        .ok()?;
    let authorization = (!url.username().is_empty())
        .then(|| squall_plan::urls::basic_authorization(url.username(), url.password().unwrap_or_default()));
    Some(Proxy { host: url.host_str()?.to_owned(), port: url.port_or_known_default()?, authorization })
}

/// k6's dialer gives up after this.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// What `handleSummary()` may take when the user wants the end at once: to write its files, not to send anything.
const SUMMARY_AFTER_ABORT: Duration = Duration::from_millis(500);

/// How often k6 judges thresholds.
const JUDGE_EVERY_S: f64 = 2.0;
