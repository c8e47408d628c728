//! Options: k6's layers of them, put together in its order, and read once into types that cannot be wrong.
//!
//! A layer is a JSON object with k6's names, whatever it came from: the defaults, a config file, the script, `K6_*` variables, flags.

mod given;
mod layer;
mod network;
mod own;
mod scenario;

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde_json::{Map, Value as Json};
use squall_plan::limits::BODY_BYTES_DEFAULT;
use squall_plan::{HttpVersion, Segment, TlsVersions};

use crate::error::{ErrorKind, ScriptError};
use crate::metrics::SystemTags;

pub use given::script_settings;
pub use layer::{Layer, LayerKind, env_layer, is_option_variable};
pub(crate) use own::{HTTP_HELP, http_version};

pub use network::{Dns, DnsPolicy, DnsSelect, HostPattern, HostRules, TlsAuth};
pub use scenario::{Executor, ScenarioConfig, Stage};

/// All options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the script's calls obey.
    pub runtime: Runtime,
    /// Scenarios, in the order in which they were given.
    pub scenarios: Vec<ScenarioConfig>,
    /// Thresholds by metric, or by metric with tags.
    pub thresholds: Vec<(String, Vec<ThresholdSource>)>,
    /// Longest `setup()`.
    pub setup_timeout: Duration,
    /// Longest `teardown()`.
    pub teardown_timeout: Duration,
    /// `setup()` is not called.
    pub no_setup: bool,
    /// `teardown()` is not called.
    pub no_teardown: bool,
    /// Statistics of trends in the summary.
    pub summary_trend_stats: Vec<String>,
    /// `s`, `ms`, `us`, or empty: what fits.
    pub summary_time_unit: String,
    /// Requests per second of all users together.
    pub rps: Option<f64>,
    /// An iteration lasts at least this.
    pub min_iteration_duration: Duration,
    /// Certificates are not verified.
    pub insecure_skip_tls_verify: bool,
    /// Connections end with the iteration.
    pub no_vu_connection_reuse: bool,
    /// Most connections of a user to one host.
    pub batch_per_host: u32,
    /// Fixed addresses by name.
    pub hosts: HostRules,
    /// Host names that are refused.
    pub block_hostnames: Vec<HostPattern>,
    /// Addresses that are refused.
    pub blacklist_ips: Vec<IpNet>,
    /// Local addresses that users connect from, in turn.
    pub local_ips: Vec<IpAddr>,
    /// Which of a name's addresses are used.
    pub dns: Dns,
    /// Client certificates.
    pub tls_auth: Vec<TlsAuth>,
    /// TLS versions offered.
    pub tls_versions: TlsVersions,
    /// Cipher suites offered, by IANA name; none: all.
    pub tls_cipher_suites: Vec<String>,
    /// How problems are shown: `headers`, `full`, or not.
    pub http_debug: Option<String>,
    /// Part of the whole run that this process makes.
    pub segment: Option<Segment>,
    /// What a user may want to know.
    pub warnings: Vec<String>,
}

/// What the script's calls obey.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// Run-wide tags.
    pub tags: Vec<(String, String)>,
    /// System tags that samples carry.
    pub system_tags: SystemTags,
    /// Cookies live on from one iteration to the next.
    pub no_cookies_reset: bool,
    /// `User-Agent`.
    pub user_agent: String,
    /// Failures are exceptions.
    pub throws: bool,
    /// Most redirects followed, where that is given.
    pub max_redirects: Option<u32>,
    /// Most requests of a batch at once.
    pub batch: u32,
    /// Bodies are not kept.
    pub discards_bodies: bool,
    /// Largest body of a response that may be read.
    pub body_bytes_max: u64,
    /// Each request uses a new connection.
    pub closes_connections: bool,
    /// WebSockets of the event loop stay open when an iteration ends.
    pub keeps_streams: bool,
    /// Version of HTTP outside of scenarios.
    pub http: HttpVersion,
    /// All options as JSON.
    pub json: String,
}

/// A threshold as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdSource {
    /// Such as `p(95)<200`.
    pub text: String,
    /// The run ends when it does not hold.
    pub aborts: bool,
    /// But not before this.
    pub delay: Duration,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            tags: Vec::new(),
            system_tags: SystemTags::default(),
            no_cookies_reset: false,
            user_agent: USER_AGENT.to_owned(),
            throws: false,
            max_redirects: None,
            batch: 20,
            discards_bodies: false,
            body_bytes_max: BODY_BYTES_DEFAULT,
            closes_connections: false,
            keeps_streams: false,
            http: HttpVersion::Auto,
            json: "{}".to_owned(),
        }
    }
}

impl Options {
    /// Puts layers together, the lowest first, and reads the result.
    ///
    /// # Errors
    /// When a value has the wrong type, or values contradict each other: [`ErrorKind::Options`].
    pub fn of(layers: Vec<Layer>) -> Result<Self, ScriptError> {
        let mut warnings = Vec::new();
        let merged = layer::merge(layers, &mut warnings);
        let read = Reader(&merged);
        let idle = IDLE.iter().filter(|name| read.get(name).is_some());
        warnings.extend(idle.map(|name| format!("the option `{name}` has no effect in squall")));
        let mut scenarios = scenario::of(&read, &mut warnings)?;
        let http = own::http(&read, &mut scenarios)?;
        let body_bytes_max = own::body_bytes_max(&read)?;
        let keeps_streams = own::keeps_streams(&read)?;
        let runtime = Runtime { http, body_bytes_max, keeps_streams, ..runtime(&read, &mut warnings)? };
        Ok(Self {
            scenarios,
            thresholds: thresholds(&read)?,
            setup_timeout: read.duration("setupTimeout")?.unwrap_or(SETUP_TIMEOUT),
            teardown_timeout: read.duration("teardownTimeout")?.unwrap_or(SETUP_TIMEOUT),
            no_setup: read.bool("noSetup")?.unwrap_or(false),
            no_teardown: read.bool("noTeardown")?.unwrap_or(false),
            summary_trend_stats: trend_stats(&read)?,
            summary_time_unit: time_unit(&read)?,
            rps: read.number("rps")?.filter(|rps| *rps > 0.0),
            min_iteration_duration: read.pause("minIterationDuration")?,
            insecure_skip_tls_verify: read.bool("insecureSkipTLSVerify")?.unwrap_or(false),
            no_vu_connection_reuse: read.bool("noVUConnectionReuse")?.unwrap_or(false),
            batch_per_host: match read.limit("batchPerHost")?.unwrap_or(6) {
                0 => BATCH_PER_HOST_UNLIMITED,
                count => count,
            },
            hosts: network::hosts(&read)?,
            block_hostnames: network::block_hostnames(&read)?,
            blacklist_ips: network::blacklist_ips(&read)?,
            local_ips: network::local_ips(&read)?,
            dns: network::dns(&read, &mut warnings)?,
            tls_auth: network::tls_auth(&read)?,
            tls_versions: network::tls_versions(&read)?,
            tls_cipher_suites: network::cipher_suites(&read)?,
            http_debug: read.text("httpDebug")?.filter(|text| !text.is_empty()),
            segment: segment(&read)?,
            runtime: Runtime { json: Json::Object(merged.clone()).to_string(), ..runtime },
            warnings,
        })
    }
}

fn runtime(read: &Reader<'_>, warnings: &mut Vec<String>) -> Result<Runtime, ScriptError> {
    let default = Runtime::default();
    let mut system_tags = default.system_tags;
    if read.get("systemTags").is_some() {
        let (known, unknown) = SystemTags::of(read.list("systemTags")?);
        system_tags = known;
        warnings.extend(
            unknown.iter().map(|name| format!("`systemTags` has the unknown tag `{name}`, which is ignored")),
        );
    }
    Ok(Runtime {
        tags: read.strings_by_name("tags")?,
        system_tags,
        no_cookies_reset: read.bool("noCookiesReset")?.unwrap_or(false),
        user_agent: read.text("userAgent")?.unwrap_or(default.user_agent),
        throws: read.bool("throw")?.unwrap_or(false),
        max_redirects: read.limit("maxRedirects")?,
        batch: read.limit("batch")?.unwrap_or(20),
        discards_bodies: read.bool("discardResponseBodies")?.unwrap_or(false),
        body_bytes_max: BODY_BYTES_DEFAULT,
        keeps_streams: false,
        closes_connections: read.bool("noConnectionReuse")?.unwrap_or(false),
        http: default.http,
        json: default.json,
    })
}

fn thresholds(read: &Reader<'_>) -> Result<Vec<(String, Vec<ThresholdSource>)>, ScriptError> {
    let Some(value) = read.get("thresholds") else { return Ok(Vec::new()) };
    let metrics = value.as_object().ok_or_else(|| {
        wrong("thresholds", "is not an object", "write it like { http_req_duration: ['p(95)<200'] }")
    })?;
    let one = |(metric, list): (&String, &Json)| {
        let items = match list {
            Json::Array(items) => items.clone(),
            single => vec![single.clone()],
        };
        let sources = items.iter().map(|item| threshold(metric, item)).collect::<Result<_, _>>()?;
        Ok((metric.clone(), sources))
    };
    metrics.iter().map(one).collect()
}

fn threshold(metric: &str, item: &Json) -> Result<ThresholdSource, ScriptError> {
    let bad = || {
        let help = "write a text like 'p(95)<200', or { threshold: 'p(95)<200', abortOnFail: true }";
        wrong("thresholds", &format!("has an invalid rule for `{metric}`"), help)
    };
    match item {
        Json::String(text) => {
            Ok(ThresholdSource { text: text.clone(), aborts: false, delay: Duration::ZERO })
        }
        Json::Object(map) => Ok(ThresholdSource {
            text: map.get("threshold").and_then(Json::as_str).ok_or_else(bad)?.to_owned(),
            aborts: map.get("abortOnFail").and_then(Json::as_bool).unwrap_or(false),
            delay: map
                .get("delayAbortEval")
                .map(|value| json_duration(value).ok_or_else(bad))
                .transpose()?
                .unwrap_or_default(),
        }),
        _ => Err(bad()),
    }
}

fn segment(read: &Reader<'_>) -> Result<Option<Segment>, ScriptError> {
    let (segment, sequence) = (read.text("executionSegment")?, read.text("executionSegmentSequence")?);
    if segment.is_none() && sequence.is_none() {
        return Ok(None);
    }
    let parsed = crate::segment::parse(segment.as_deref(), sequence.as_deref());
    let help = "write it like executionSegment: '0:1/3' and executionSegmentSequence: '0,1/3,2/3,1'";
    parsed.map(Some).map_err(|problem| ScriptError::new(ErrorKind::Options, problem, help))
}

fn trend_stats(read: &Reader<'_>) -> Result<Vec<String>, ScriptError> {
    let default = || ["avg", "min", "med", "max", "p(90)", "p(95)"].map(str::to_owned).to_vec();
    if read.get("summaryTrendStats").is_none() {
        return Ok(default());
    }
    let stats = read.list("summaryTrendStats")?;
    let is_known = |stat: &String| {
        let percentile = stat.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        ["avg", "min", "med", "max", "count"].contains(&stat.as_str())
            || percentile.and_then(|p| p.parse::<f64>().ok()).is_some_and(|p| (0.0..=100.0).contains(&p))
    };
    match stats.iter().find(|stat| !is_known(stat)) {
        Some(stat) => Err(wrong(
            "summaryTrendStats",
            &format!("has an unknown statistic `{stat}`"),
            "use avg, min, med, max, count and p(N)",
        )),
        None => Ok(stats),
    }
}

fn time_unit(read: &Reader<'_>) -> Result<String, ScriptError> {
    let unit = read.text("summaryTimeUnit")?.unwrap_or_default();
    if ["", "s", "ms", "us"].contains(&unit.as_str()) {
        return Ok(unit);
    }
    Err(wrong("summaryTimeUnit", &format!("is `{unit}`"), "use s, ms or us"))
}

/// Reads values out of merged options.
pub(crate) struct Reader<'a>(pub(crate) &'a Map<String, Json>);

impl Reader<'_> {
    /// A value that is given and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl FnOnce(&Json) -> Option<T>,
    ) -> Result<Option<T>, ScriptError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(name, &format!("is {value}, not a {kind}"), &format!("use a {kind}"))),
        }
    }

    pub(crate) fn bool(&self, name: &str) -> Result<Option<bool>, ScriptError> {
        self.read(name, "boolean", |value| match value {
            Json::Bool(is) => Some(*is),
            Json::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, ScriptError> {
        self.read(name, "number", |value| match value {
            Json::Number(number) => number.as_f64(),
            Json::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, ScriptError> {
        self.read(name, "whole number, 0 or more", |value| match value {
            Json::Number(number) => number
                .as_u64()
                .or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64)),
            Json::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// A whole number of at most something. One below 0 is 0, as in k6.
    fn limit(&self, name: &str) -> Result<Option<u32>, ScriptError> {
        if self.get(name).is_some_and(is_negative) {
            return Ok(self.number(name)?.map(|_| 0));
        }
        Ok(self.count(name)?.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
    }

    /// A duration that is none by default, and where it is negative, as in k6.
    pub(crate) fn pause(&self, name: &str) -> Result<Duration, ScriptError> {
        let is_none = self.get(name).is_some_and(is_negative);
        if is_none { Ok(Duration::ZERO) } else { Ok(self.duration(name)?.unwrap_or_default()) }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ScriptError> {
        self.read(name, "text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, ScriptError> {
        if let Some(value) = self.get(name).filter(|value| is_negative(value)) {
            return Err(wrong(name, &format!("is {value}, which is negative"), "give it like \"30s\""));
        }
        self.read(name, "duration such as \"30s\" or \"1m30s\"", json_duration)
    }

    /// A list of texts, or one text with commas.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<String>, ScriptError> {
        let list = self.read(name, "list of texts", |value| match value {
            Json::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            Json::String(text) => Some(
                text.split(',').filter(|part| !part.is_empty()).map(|part| part.trim().to_owned()).collect(),
            ),
            _ => None,
        })?;
        Ok(list.unwrap_or_default())
    }

    /// An object whose values are texts, numbers or booleans.
    pub(crate) fn strings_by_name(&self, name: &str) -> Result<Vec<(String, String)>, ScriptError> {
        let pairs = self.read(name, "object of texts", |value| {
            let members = value.as_object()?.iter();
            members
                .map(|(key, value)| match value {
                    Json::String(text) => Some((key.clone(), text.clone())),
                    Json::Number(_) | Json::Bool(_) => Some((key.clone(), value.to_string())),
                    _ => None,
                })
                .collect()
        })?;
        Ok(pairs.unwrap_or_default())
    }
}

/// An option that cannot be used.
pub(crate) fn wrong(name: &str, problem: &str, help: &str) -> ScriptError {
    ScriptError::new(ErrorKind::Options, format!("option `{name}` {problem}"), help)
}

/// A number below 0, or the text of one or of such a duration.
pub(crate) fn is_negative(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.as_f64().is_some_and(|number| number < 0.0),
        Json::String(text) => {
            let positive = text.trim().strip_prefix('-');
            positive.is_some_and(|text| duration(text).is_some() || text.parse::<f64>().is_ok())
        }
        _ => false,
    }
}

fn json_duration(value: &Json) -> Option<Duration> {
    match value {
        Json::Number(millis) => milliseconds(millis.as_f64()?),
        Json::String(text) => duration(text),
        _ => None,
    }
}

/// Go's durations with days: `1d12h`, `1m30s`, `500ms`, `1.5s`; a bare number is milliseconds.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(millis) = text.parse() {
        return milliseconds(millis);
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|letter: char| letter.is_ascii_digit() || letter == '.');
        let unit = &rest[end..unit_end.map_or(rest.len(), |at| end + at)];
        seconds += number * unit_seconds(unit)?;
        rest = &rest[end + unit.len()..];
    }
    (!text.is_empty() && seconds < DURATION_SECONDS_MAX).then(|| Duration::from_secs_f64(seconds))
}

/// So many milliseconds; `None` where they are no length of time.
pub(crate) fn milliseconds(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1e3).ok()
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "d" => 86_400.0,
        "h" => 3600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" | "μs" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    })
}

/// Options that are read and checked, and have no effect.
const IDLE: &[&str] = &["httpDebug", "paused"];

/// k6's `setupTimeout` and `teardownTimeout`.
const SETUP_TIMEOUT: Duration = Duration::from_secs(60);

/// Connections of one user to one host where `batchPerHost` sets no limit: more than a batch has requests.
const BATCH_PER_HOST_UNLIMITED: u32 = 1000;

/// A year: what is longer is a mistake.
const DURATION_SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// What a request says it comes from, unless `userAgent` or a header says otherwise.
const USER_AGENT: &str = concat!("squall/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos_with_days() {
        for (text, millis) in
            [("1d12h", 129_600_000), ("1m30s", 90_000), ("500ms", 500), ("1.5s", 1500), ("250", 250)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "1x", "1s2", "-1s", "-1", "inf", "nan", "1e300"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn limits_and_pauses_below_nothing_are_none() {
        let options = serde_json::json!({ "a": -1, "b": "-2", "c": 3, "d": u64::MAX, "e": "-1s", "f": "-x", "g": 500, "h": "--x" });
        let read = Reader(options.as_object().unwrap());
        let limits = ["a", "b", "c", "d", "none"].map(|name| read.limit(name).unwrap());
        assert_eq!(limits, [Some(0), Some(0), Some(3), Some(u32::MAX), None]);
        let pauses = ["a", "e", "g", "none"].map(|name| read.pause(name).unwrap().as_millis());
        assert_eq!(pauses, [0, 0, 500, 0]);
        assert!(read.limit("e").is_err() && read.pause("f").is_err() && read.pause("h").is_err());
        let said = read.duration("h").unwrap_err().message;
        assert!(said.contains("not a duration"), "{said}");
    }
}
