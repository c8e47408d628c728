//! The load of a k6 script: its settings from flags or a plan file, its program, its options, its thresholds.
//!
//! Compiles the script. Sends nothing, and prints nothing but what the script itself says.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use squall_engine::{ScriptEnd, ScriptRun, SetupPart, Stage, Submetric, submetrics};
use squall_measure::{MetricRules, Rule, Rules, ScriptThreshold};
use squall_plan::files::{read_text, read_text_from};
use squall_plan::limits::{PLAN_FILE_BYTES_MAX, SCRIPT_FILE_BYTES_MAX};
use squall_plan::{
    ConnectionPolicy, Load, Network, Plan, Profile, Proxy, ScriptLoad, ScriptSettings, Segment, Stop,
    TlsPolicy, What, When,
};
use squall_report::ColorChoice;
use squall_script::{
    ClientConfig, Console, ErrorKind, Fetch, Form, Layer, LayerKind, Level, Options, Program, ProgramSetup,
    ScriptError, env_layer,
};

use super::source_line;
use crate::failure::{ExitCode, Failure};
use crate::run::{fetch::fetcher, k6_env};

/// A script that is ready to run.
pub(crate) struct LoadScript {
    pub(crate) plan: Plan,
    /// Its own thresholds.
    pub(crate) rules: Rules,
    pub(crate) run: ScriptRun,
}

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
    let program = compile(path, (environment(settings), fetch), &console)?;
    if program.functions().next().is_none() {
        let message = "no exported functions in script".to_owned();
        let help = "write `export default function () { … }`".to_owned();
        return Err(Failure { code: ExitCode::ScriptLoad, message, help });
    }
    let options = options(settings, &program)?;
    let ignored = k6_env::ignored(|name| program.mentions(name));
    options.warnings.iter().chain(&ignored).for_each(|text| console.line(Level::Warning, text, ""));
    check_functions(&program, &options)?;
    let names = options.thresholds.iter().map(|(name, _)| name.as_str());
    let submetrics = submetrics(&program, names).map_err(|problem| bad_threshold(&problem))?;
    let rules = rules(&program, &options, &submetrics)?;
    let policy = tls_policy(&options);
    let mut run = ScriptRun::new(program, options, console, &policy)
        .map_err(|error| Failure { code: ExitCode::ScriptOptions, ..refused(&error) })?;
    run.submetrics = submetrics;
    run.has_sections = settings.has_sections;
    run.exact = settings.is_exact;
    let plan = plan(path, name, settings, &run);
    Ok(LoadScript { plan, rules, run })
}

/// Refuses a plan that no machine can make.
pub(crate) fn check(plan: &Plan) -> Result<(), Failure> {
    plan.validate().map_err(|error| Failure::usage(error.to_string(), "correct the script's options"))
}

fn check_functions(program: &Program, options: &Options) -> Result<(), Failure> {
    let missing = options.scenarios.iter().find(|scenario| !program.has_function(&scenario.exec));
    let Some(scenario) = missing else { return Ok(()) };
    let message = format!(
        "function '{}' not found in exports, as scenario '{}' requires",
        scenario.exec, scenario.name
    );
    let help = format!("export a function `{}`, or name another one in `exec`", scenario.exec);
    Err(Failure { code: ExitCode::ScriptOptions, message, help })
}

/// The plan, as it is saved.
fn plan(path: &Path, name: Option<&str>, settings: &ScriptSettings, run: &ScriptRun) -> Plan {
    let scenarios = &run.options.scenarios;
    let users: u64 = scenarios.iter().map(|scenario| scenario.executor.max_vus()).sum();
    let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.map(str::to_owned).or_else(stem).unwrap_or_else(|| "script".to_owned());
    let titles = scenarios.iter().map(|scenario| format!("{}: {}", scenario.name, scenario.executor.name()));
    let load = Load {
        name: name.clone(),
        what: What::Script(ScriptLoad {
            path: path.to_owned(),
            options: run.options.runtime.json.clone(),
            scenarios: titles.collect(),
        }),
        when: When::Closed { connections: Profile::constant(users.max(1) as f64), users: None },
        stop: Stop { duration: None, count: None },
        connections: connections(run),
        network: network(run),
        tls: tls_policy(&run.options),
        segment: Segment::default(),
    };
    Plan {
        name,
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: Duration::ZERO,
        threads: settings.threads,
    }
}

/// The addresses that users connect from, and the proxy of the script's own clients.
fn network(run: &ScriptRun) -> Network {
    let proxy = run.program.clients().iter().find(|client| !client.proxy.is_empty());
    Network {
        sources: run.options.local_ips.clone(),
        proxy: proxy.and_then(|client| proxy_of(&client.proxy)),
        ..Network::default()
    }
}

/// How long connections may take and live: as a client of `k6/x/fasthttp` says, else as in k6.
fn connections(run: &ScriptRun) -> ConnectionPolicy {
    let clients = run.program.clients();
    let longest =
        |of: fn(&ClientConfig) -> Duration| clients.iter().map(of).filter(|time| !time.is_zero()).max();
    ConnectionPolicy {
        request_count_max: run.options.runtime.closes_connections.then_some(NonZeroU32::MIN),
        connect_timeout: longest(|client| client.dial_timeout).unwrap_or(DIAL_TIMEOUT),
        age_max: longest(|client| client.connection_age_max),
        ..ConnectionPolicy::default()
    }
}

impl LoadScript {
    /// Every file that it was made from.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        self.run.program.sources().collect()
    }

    /// One of several machines runs it: who calls `setup()` for all, and when the scenarios begin, is for the stage to say.
    pub(crate) fn shared(mut self, is_first: bool) -> Self {
        let has_setup = self.run.program.has_function("setup") && !self.run.options.no_setup;
        let part = match (has_setup, is_first) {
            (true, true) => SetupPart::Caller,
            (true, false) => SetupPart::Follower,
            // `teardown()` is called once all the same.
            (false, true) => SetupPart::Alone,
            (false, false) => SetupPart::Bystander,
        };
        self.run.stage = Arc::new(Stage::new(self.run.options.scenarios.len(), part));
        self
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

pub(crate) fn part_name(is_setup: bool) -> &'static str {
    if is_setup { "setup()" } else { "teardown()" }
}

/// `__ENV`.
fn environment(settings: &ScriptSettings) -> BTreeMap<String, String> {
    let is_off = || std::env::var("K6_INCLUDE_SYSTEM_ENV_VARS").is_ok_and(|value| value == "false");
    let sees_environment = settings.sees_environment.unwrap_or_else(|| !is_off());
    let mut env: BTreeMap<String, String> =
        if sees_environment { std::env::vars().collect() } else { BTreeMap::new() };
    env.extend(settings.env.iter().map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (pair.clone(), std::env::var(pair).unwrap_or_default()),
    }));
    env
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

/// Options in k6's order: config file, script, environment, flags.
fn options(settings: &ScriptSettings, program: &Program) -> Result<Options, Failure> {
    let mut layers = Vec::new();
    if let Some(path) = &settings.config {
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
    layers.push(Layer { kind: LayerKind::Flags, options: settings.options.clone() });
    let mut options = Options::of(layers).map_err(|error| script_failure(&error, ""))?;
    if settings.skips_thresholds || std::env::var("K6_NO_THRESHOLDS").is_ok_and(|value| value == "true") {
        options.thresholds.clear();
    }
    Ok(options)
}

/// The settings with what the environment says where nothing else does.
pub(crate) fn with_environment(settings: ScriptSettings) -> ScriptSettings {
    let of_environment = || std::env::var_os("K6_CONFIG").filter(|path| !path.is_empty());
    let config = settings.config.or_else(|| of_environment().map(PathBuf::from));
    ScriptSettings { config: config.map(|path| std::path::absolute(&path).unwrap_or(path)), ..settings }
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

pub(crate) fn refused(error: &squall_engine::Error) -> Failure {
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
