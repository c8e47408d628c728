//! From a script to what is run: its program, its options, its thresholds, and the plan as it is saved.
//!
//! Compiles the script. Sends nothing, and prints nothing but what the script itself says.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use squall_measure::{MetricRules, Rule, Rules, ScriptThreshold};
use squall_plan::files::read_text;
use squall_plan::limits::PLAN_FILE_BYTES_MAX;
use squall_plan::{
    ConnectionPolicy, HttpVersion, Load, Network, OptionStyle, Plan, Profile, Proxy, ScriptLoad,
    ScriptSettings, Segment, Stop, TlsPolicy, What, When,
};
use squall_script::{
    ClientConfig, Console, ErrorKind, Fetch, Layer, LayerKind, Level, Options, Program, ProgramSetup,
    ScenarioConfig, ScriptError, env_layer,
};

use super::ScriptRun;
use super::figures::{Submetric, empty_figures, metric_of, submetrics};
use super::stage::{SetupPart, Stage};
use crate::Error;

/// A script, and what it needs to be read.
pub struct ScriptSource {
    /// The script.
    pub path: PathBuf,
    /// Its text, where that is not in a file.
    pub text: Option<String>,
    /// The variables of this process.
    pub environment: Vec<(String, String)>,
    /// Where its console's lines go.
    pub console: Arc<Console>,
    /// How its modules are fetched.
    pub fetch: Fetch,
}

/// A script that is ready to run.
pub struct LoadScript {
    /// The plan, as it is saved.
    pub plan: Plan,
    /// Its own thresholds.
    pub rules: Rules,
    /// How its virtual users are made.
    pub run: ScriptRun,
}

impl LoadScript {
    /// Compiles a script and reads its options. `name`: of the run, unless it is called as its file is.
    ///
    /// # Errors
    /// A script that cannot be compiled, and options that cannot be used.
    pub fn read(
        source: ScriptSource,
        name: Option<&str>,
        settings: &ScriptSettings,
    ) -> Result<Self, ScriptError> {
        let ScriptSource { path, text, environment, console, fetch } = source;
        let env = script_environment(settings, &environment);
        let stdin = text.is_some().then(|| PathBuf::from("stdin.js"));
        let setup = ProgramSetup {
            path: stdin.unwrap_or_else(|| path.clone()),
            text,
            env,
            fetch: Some(fetch),
            console: Arc::clone(&console),
        };
        let program = Program::compile(setup)?;
        if program.functions().next().is_none() {
            let help = "write `export default function () { … }`";
            return Err(ScriptError::new(ErrorKind::Load, "no exported functions in script", help));
        }
        let options = options(settings, &program, &environment)?;
        options.warnings.iter().for_each(|text| console.line(Level::Warning, text, ""));
        check_functions(&program, &options)?;
        let names = options.thresholds.iter().map(|(name, _)| name.as_str());
        let submetrics = submetrics(&program, names).map_err(|problem| bad_threshold(&problem))?;
        let rules = rules(&program, &options, &submetrics)?;
        let policy = tls_policy(&options);
        let mut run = ScriptRun::new(program, options, console, &policy).map_err(refused)?;
        run.submetrics = submetrics;
        run.has_sections = settings.has_sections;
        run.exact = settings.is_exact;
        let plan = plan(&path, name, settings, &run);
        Ok(Self { plan, rules, run })
    }

    /// Every file that it was made from.
    pub fn sources(&self) -> Vec<PathBuf> {
        self.run.program.sources().collect()
    }

    /// How long it takes at most.
    pub fn length_max(&self) -> Duration {
        let options = &self.run.options;
        let end = options.scenarios.iter().map(ScenarioConfig::end).max().unwrap_or_default();
        options.setup_timeout + end + options.teardown_timeout
    }

    /// One of several machines runs it: who calls `setup()` for all, and when the scenarios begin, is for the stage to say.
    #[must_use]
    pub fn shared(mut self, is_first: bool) -> Self {
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
}

fn refused(error: Error) -> ScriptError {
    match error {
        Error::Script(error) => *error,
        other => {
            let help = other
                .help(OptionStyle::Flags)
                .unwrap_or_else(|| "check this process's limits: `ulimit -a`".to_owned());
            bad_options(other.to_string(), help)
        }
    }
}

fn bad_options(message: impl Into<String>, help: impl Into<String>) -> ScriptError {
    ScriptError::new(ErrorKind::Options, message, help)
}

fn check_functions(program: &Program, options: &Options) -> Result<(), ScriptError> {
    let missing = options.scenarios.iter().find(|scenario| !program.has_function(&scenario.exec));
    let Some(scenario) = missing else { return Ok(()) };
    let message = format!(
        "function '{}' not found in exports, as scenario '{}' requires",
        scenario.exec, scenario.name
    );
    let help = format!("export a function `{}`, or name another one in `exec`", scenario.exec);
    Err(bad_options(message, help))
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
            speaks_http3: speaks_http3(&run.options),
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

/// Whether a scenario, or what is outside of scenarios, makes its requests over HTTP/3.
fn speaks_http3(options: &Options) -> bool {
    let by_scenario = options.scenarios.iter().map(|scenario| scenario.http);
    by_scenario.chain([options.runtime.http]).any(|version| version == HttpVersion::Http3)
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

/// `__ENV`.
fn script_environment(
    settings: &ScriptSettings,
    environment: &[(String, String)],
) -> BTreeMap<String, String> {
    let of = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let is_off = || of("K6_INCLUDE_SYSTEM_ENV_VARS").is_some_and(|value| value == "false");
    let sees_environment = settings.sees_environment.unwrap_or_else(|| !is_off());
    let mut env: BTreeMap<String, String> =
        if sees_environment { environment.iter().cloned().collect() } else { BTreeMap::new() };
    env.extend(settings.env.iter().map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (pair.clone(), of(pair).unwrap_or_default()),
    }));
    env
}

/// Options in k6's order: config file, script, environment, flags.
fn options(
    settings: &ScriptSettings,
    program: &Program,
    environment: &[(String, String)],
) -> Result<Options, ScriptError> {
    let mut layers = Vec::new();
    if let Some(path) = &settings.config {
        let text = read_text(path, PLAN_FILE_BYTES_MAX).map_err(|error| {
            let message = format!("cannot read the options in `{}`: {error}", path.display());
            bad_options(message, "check the path and its permissions")
        })?;
        layers.push(Layer::of_file(&text).map_err(|reason| {
            let message = format!("`{}` is not a JSON object of options: {reason}", path.display());
            bad_options(message, "write it like {\"vus\": 10, \"duration\": \"30s\"}")
        })?);
    }
    if let Some(layer) = program.layer() {
        layers.push(layer);
    } else if !program.options().is_null() {
        let help = "export const options = { vus: 10, duration: '30s' }";
        return Err(bad_options("the exported `options` is not an object", help));
    }
    let pairs = || environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    layers.push(env_layer(pairs().filter(|(name, _)| name.starts_with("K6_"))));
    layers.push(Layer { kind: LayerKind::Flags, options: settings.options.clone() });
    let mut options = Options::of(layers)?;
    if settings.skips_thresholds || pairs().any(|pair| pair == ("K6_NO_THRESHOLDS", "true")) {
        options.thresholds.clear();
    }
    Ok(options)
}

fn rules(program: &Program, options: &Options, submetrics: &[Submetric]) -> Result<Rules, ScriptError> {
    let figures = empty_figures(program, submetrics);
    let mut all = Vec::new();
    for (name, sources) in &options.thresholds {
        let metric_idx = metric_of(program, submetrics, name).map_err(|problem| bad_threshold(&problem))?;
        let value = &figures.metrics[metric_idx].value;
        let read = |source: &squall_script::ThresholdSource| {
            let rule = Rule::parse(&source.text, value)
                .map_err(|error| bad_threshold(&format!("{name}: {error}")))?;
            Ok(ScriptThreshold { rule, aborts: source.aborts, delay: source.delay })
        };
        let rules = sources.iter().map(read).collect::<Result<_, ScriptError>>()?;
        all.push(MetricRules { name: name.clone(), metric_idx, rules });
    }
    Ok(Rules::new(all))
}

fn bad_threshold(problem: &str) -> ScriptError {
    let help = "write them like { http_req_duration: ['p(95)<200'], 'http_reqs{status:200}': ['count>10'] }";
    bad_options(format!("thresholds: {problem}"), help)
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

#[cfg(test)]
mod tests {
    use squall_script::Form;

    use super::*;

    #[test]
    fn a_plan_says_whether_any_scenario_speaks_http3() {
        let scenarios =
            "scenarios: { a: { executor: 'shared-iterations' }, b: { executor: 'shared-iterations' } }";
        for (ext, expected) in [
            ("{}", false),
            ("{ http: '2' }", false),
            ("{ http: '3' }", true),
            ("{ http: '2', scenarios: { b: { http: '3' } } }", true),
        ] {
            let options = format!("{scenarios}, ext: {{ squall: {ext} }}");
            let text = format!("export const options = {{ {options} }}; export default function () {{}}");
            let source = ScriptSource {
                path: "script.js".into(),
                text: Some(text),
                environment: Vec::new(),
                console: Arc::new(Console::new(Box::new(std::io::sink()), Form::Raw, Level::Debug)),
                fetch: Box::new(|_| Err("there is no network".to_owned())),
            };
            let Ok(script) = LoadScript::read(source, None, &ScriptSettings::default()) else {
                panic!("{options} cannot be read");
            };
            let What::Script(load) = &script.plan.loads[0].what else { panic!("not a script") };
            assert_eq!(load.speaks_http3, expected, "{ext}");
        }
    }
}
