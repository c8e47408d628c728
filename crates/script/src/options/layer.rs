//! Layers of options, and k6's rule of putting them together.

use serde_json::{Map, Value as Json};

use super::{Reader, is_negative};
use crate::error::ScriptError;

/// One layer: options with k6's names.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Where it comes from.
    pub kind: LayerKind,
    /// Its values.
    pub options: Map<String, Json>,
}

/// Where options come from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerKind {
    /// A config file.
    File,
    /// The script's `options`.
    Script,
    /// `K6_*` variables.
    Environment,
    /// Flags.
    Flags,
}

impl Layer {
    /// The options in a configuration file.
    ///
    /// # Errors
    /// Why it is no JSON object.
    pub fn of_file(text: &str) -> Result<Self, String> {
        let options = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self { kind: LayerKind::File, options })
    }

    /// Reads the values that flags give, each independently: how they combine is for [`Options::of`](super::Options::of). `is_strict`: what is
    /// negative is refused here; otherwise it is for the whole to judge, whose exit code k6 has for it.
    ///
    /// # Errors
    /// The first value that cannot be read.
    pub fn check(&self, is_strict: bool) -> Result<(), ScriptError> {
        let (read, mut warnings) = (Reader(&self.options), Vec::new());
        let is_left = |value: &Json| !is_strict && is_negative(value);
        if !self.options.get("duration").is_some_and(is_left) {
            read.duration("duration")?;
        }
        read.pause("minIterationDuration")?;
        let stages = self.options.get("stages").and_then(Json::as_array);
        // A stage without a target is for the whole to judge, as in k6.
        let is_stage =
            |stage: &Json| stage.is_object() && !is_left(&stage["duration"]) && !is_left(&stage["target"]);
        if stages.is_some_and(|stages| stages.iter().all(is_stage)) {
            super::scenario::stages(&read, "stages")?;
        }
        super::runtime(&read, &mut warnings)?;
        super::trend_stats(&read)?;
        super::time_unit(&read)?;
        super::segment(&read)?;
        super::network::block_hostnames(&read)?;
        super::network::blacklist_ips(&read)?;
        super::network::local_ips(&read)?;
        super::network::dns(&read, &mut warnings).map(drop)
    }
}

/// Puts layers together. A layer that says how the run is executed drops all that lower ones say of it.
pub(super) fn merge(mut layers: Vec<Layer>, warnings: &mut Vec<String>) -> Map<String, Json> {
    layers.sort_by_key(|layer| layer.kind);
    let mut merged = Map::new();
    for layer in layers {
        let given = |name: &&&str| layer.options.get(**name).is_some_and(|value| !value.is_null());
        if EXECUTION.iter().any(|name| given(&name)) {
            if merged.get("scenarios").is_some_and(|value| !value.is_null()) && layer.kind > LayerKind::Script
            {
                let name = EXECUTION.iter().find(given).copied().unwrap_or_default();
                warnings.push(format!("`{name}` overrides scenarios configuration"));
            }
            EXECUTION.iter().for_each(|name| drop(merged.remove(*name)));
        }
        if layer.kind == LayerKind::Script {
            let unknown = layer.options.keys().filter(|name| !is_known(name));
            warnings.extend(unknown.map(|name| {
                format!("There were unknown fields in the options exported in the script: `{name}`")
            }));
            warnings.extend(unknown_in_stages(&layer.options));
        }
        merged.extend(layer.options.into_iter().filter(|(_, value)| !value.is_null()));
    }
    merged
}

/// Warnings of fields of stages that mean nothing: k6 passes over them.
fn unknown_in_stages(options: &Map<String, Json>) -> Vec<String> {
    let scenarios = options.get("scenarios").and_then(Json::as_object).into_iter().flat_map(Map::values);
    let lists = scenarios.map(|scenario| &scenario["stages"]).chain(options.get("stages"));
    let stages = lists.filter_map(Json::as_array).flatten().filter_map(Json::as_object);
    let fields = stages.flat_map(Map::keys).filter(|field| !matches!(field.as_str(), "duration" | "target"));
    let fields: std::collections::BTreeSet<&String> = fields.collect();
    fields
        .into_iter()
        .map(|field| format!("stages have the unknown field `{field}`, which is ignored"))
        .collect()
}

/// The layer of `K6_*` variables.
pub fn env_layer<'a>(env: impl Iterator<Item = (&'a str, &'a str)>) -> Layer {
    let mut options = Map::new();
    for (variable, value) in env {
        let Some((_, name)) = ENVIRONMENT.iter().find(|(known, _)| *known == variable) else { continue };
        let json = match *name {
            "stages" => stages(value),
            "tags" => pairs(value),
            "hosts" | "tlsAuth" | "thresholds" => {
                serde_json::from_str(value).unwrap_or_else(|_| value.into())
            }
            _ => value.into(),
        };
        options.insert((*name).to_owned(), json);
    }
    Layer { kind: LayerKind::Environment, options }
}

/// Whether a variable sets an option.
pub fn is_option_variable(name: &str) -> bool {
    ENVIRONMENT.iter().any(|(known, _)| *known == name)
}

/// `10s:5,1m:20` as stages.
pub(super) fn stages(text: &str) -> Json {
    let stage = |part: &str| match part.split_once(':') {
        Some((duration, target)) => {
            let target = target.trim().parse::<u64>().map_or_else(|_| target.into(), Json::from);
            serde_json::json!({ "duration": duration.trim(), "target": target })
        }
        None => part.into(),
    };
    text.split(',').map(stage).collect()
}

/// `a=b,c=d` as an object.
fn pairs(text: &str) -> Json {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Json::Object(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect())
}

fn is_known(name: &str) -> bool {
    ENVIRONMENT.iter().any(|(_, known)| *known == name) || OTHERS.contains(&name)
}

/// What says how the run is executed.
const EXECUTION: &[&str] = &["duration", "iterations", "stages", "scenarios"];

/// Options that no variable sets.
const OTHERS: &[&str] =
    &["scenarios", "tlsVersion", "executionSegment", "executionSegmentSequence", "cloud", "ext", "localIPs"];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("K6_VUS", "vus"),
    ("K6_DURATION", "duration"),
    ("K6_ITERATIONS", "iterations"),
    ("K6_STAGES", "stages"),
    ("K6_THRESHOLDS", "thresholds"),
    ("K6_TAGS", "tags"),
    ("K6_SETUP_TIMEOUT", "setupTimeout"),
    ("K6_TEARDOWN_TIMEOUT", "teardownTimeout"),
    ("K6_HANDLE_SUMMARY_TIMEOUT", "handleSummaryTimeout"),
    ("K6_NO_SETUP", "noSetup"),
    ("K6_NO_TEARDOWN", "noTeardown"),
    ("K6_INSECURE_SKIP_TLS_VERIFY", "insecureSkipTLSVerify"),
    ("K6_DISCARD_RESPONSE_BODIES", "discardResponseBodies"),
    ("K6_SUMMARY_TREND_STATS", "summaryTrendStats"),
    ("K6_SUMMARY_TIME_UNIT", "summaryTimeUnit"),
    ("K6_SYSTEM_TAGS", "systemTags"),
    ("K6_MAX_REDIRECTS", "maxRedirects"),
    ("K6_USER_AGENT", "userAgent"),
    ("K6_BATCH", "batch"),
    ("K6_BATCH_PER_HOST", "batchPerHost"),
    ("K6_RPS", "rps"),
    ("K6_NO_CONNECTION_REUSE", "noConnectionReuse"),
    ("K6_NO_VU_CONNECTION_REUSE", "noVUConnectionReuse"),
    ("K6_MIN_ITERATION_DURATION", "minIterationDuration"),
    ("K6_NO_COOKIES_RESET", "noCookiesReset"),
    ("K6_THROW", "throw"),
    ("K6_HOSTS", "hosts"),
    ("K6_HTTP_DEBUG", "httpDebug"),
    ("K6_TLSAUTH", "tlsAuth"),
    ("K6_TLS_CIPHER_SUITES", "tlsCipherSuites"),
    ("K6_DNS", "dns"),
    ("K6_BLACKLIST_IPS", "blacklistIPs"),
    ("K6_BLOCK_HOSTNAMES", "blockHostnames"),
    ("K6_LOCAL_IPS", "localIPs"),
    ("K6_PAUSED", "paused"),
    ("K6_METRIC_SAMPLES_BUFFER_SIZE", "metricSamplesBufferSize"),
];
