//! Options of a script that flags and plan files give: a layer above the script's own.

use serde_json::{Map, Value as Json, json};
use squall_plan::options::table::{
    SCRIPT_BATCH, SCRIPT_BATCH_PER_HOST, SCRIPT_BLACKLIST_IP, SCRIPT_BLOCK_HOSTNAMES, SCRIPT_CONFIG,
    SCRIPT_DISCARD_RESPONSE_BODIES, SCRIPT_DNS, SCRIPT_DURATION, SCRIPT_ENV, SCRIPT_EXACT,
    SCRIPT_EXECUTION_SEGMENT, SCRIPT_EXECUTION_SEGMENT_SEQUENCE, SCRIPT_HTTP, SCRIPT_HTTP_DEBUG,
    SCRIPT_INCLUDE_SYSTEM_ENV_VARS, SCRIPT_INSECURE_SKIP_TLS_VERIFY, SCRIPT_ITERATIONS, SCRIPT_LOCAL_IPS,
    SCRIPT_MAX_REDIRECTS, SCRIPT_MIN_ITERATION_DURATION, SCRIPT_NO_CONNECTION_REUSE, SCRIPT_NO_SETUP,
    SCRIPT_NO_SYSTEM_ENV_VARS, SCRIPT_NO_TEARDOWN, SCRIPT_NO_THRESHOLDS, SCRIPT_NO_VU_CONNECTION_REUSE,
    SCRIPT_RPS, SCRIPT_STAGE, SCRIPT_SUMMARY_TIME_UNIT, SCRIPT_SUMMARY_TREND_STATS, SCRIPT_SYSTEM_TAGS,
    SCRIPT_TAG, SCRIPT_THREADS, SCRIPT_THROWS, SCRIPT_USER_AGENT, SCRIPT_VUS,
};
use squall_plan::options::{LoadType, ReadContext, Reading, TypedOption};
use squall_plan::{HttpVersion, LoadSpec, OptionProblem, Problems, ScriptSettings};

use super::layer::{Layer, LayerKind, stages};

/// What is given of a script, each option judged alone: only together with the script's own is known how they combine.
///
/// # Errors
/// All that is wrong with it.
pub fn script_settings(spec: &LoadSpec, context: ReadContext<'_>) -> Result<ScriptSettings, Problems> {
    let mut given = GivenLayer {
        given: Reading::new(LoadType::Script, spec, context),
        is_plan: context.spoiled.is_some(),
        segment: None,
        options: Map::new(),
    };
    given.read();
    let GivenLayer { mut given, options, .. } = given;
    given.file();
    let settings = ScriptSettings {
        env: given.all(&SCRIPT_ENV),
        sees_environment: match given.is_set(&SCRIPT_NO_SYSTEM_ENV_VARS) {
            true => Some(false),
            false => given.is_set(&SCRIPT_INCLUDE_SYSTEM_ENV_VARS).then_some(true),
        },
        options,
        config: given.one(&SCRIPT_CONFIG),
        skips_thresholds: given.is_set(&SCRIPT_NO_THRESHOLDS),
        has_sections: false,
        is_exact: given.is_set(&SCRIPT_EXACT),
        threads: given.one(&SCRIPT_THREADS),
    };
    given.finish(Some(settings))
}

struct GivenLayer<'s> {
    given: Reading<'s>,
    /// Each has a place in a plan file, which its problems name.
    is_plan: bool,
    /// A sequence is one of segments, of which this process has one.
    segment: Option<String>,
    options: Map<String, Json>,
}

impl GivenLayer<'_> {
    /// Reads every option that k6 has, under the name it has there.
    fn read(&mut self) {
        self.one(&SCRIPT_VUS, "vus");
        self.one(&SCRIPT_DURATION, "duration");
        self.one(&SCRIPT_ITERATIONS, "iterations");
        self.one(&SCRIPT_RPS, "rps");
        self.one(&SCRIPT_BATCH, "batch");
        self.one(&SCRIPT_BATCH_PER_HOST, "batchPerHost");
        self.one(&SCRIPT_MAX_REDIRECTS, "maxRedirects");
        self.one(&SCRIPT_USER_AGENT, "userAgent");
        self.one(&SCRIPT_MIN_ITERATION_DURATION, "minIterationDuration");
        self.one(&SCRIPT_SUMMARY_TREND_STATS, "summaryTrendStats");
        self.one(&SCRIPT_SUMMARY_TIME_UNIT, "summaryTimeUnit");
        self.one(&SCRIPT_SYSTEM_TAGS, "systemTags");
        self.one(&SCRIPT_DNS, "dns");
        self.one(&SCRIPT_EXECUTION_SEGMENT, "executionSegment");
        self.segment = self.given.one(&SCRIPT_EXECUTION_SEGMENT);
        self.one(&SCRIPT_EXECUTION_SEGMENT_SEQUENCE, "executionSegmentSequence");
        self.one(&SCRIPT_HTTP_DEBUG, "httpDebug");
        self.one(&SCRIPT_LOCAL_IPS, "localIPs");
        self.list(&SCRIPT_BLACKLIST_IP, "blacklistIPs");
        self.list(&SCRIPT_BLOCK_HOSTNAMES, "blockHostnames");
        self.switch(&SCRIPT_INSECURE_SKIP_TLS_VERIFY, "insecureSkipTLSVerify");
        self.switch(&SCRIPT_DISCARD_RESPONSE_BODIES, "discardResponseBodies");
        self.switch(&SCRIPT_NO_CONNECTION_REUSE, "noConnectionReuse");
        self.switch(&SCRIPT_NO_VU_CONNECTION_REUSE, "noVUConnectionReuse");
        self.switch(&SCRIPT_THROWS, "throw");
        self.switch(&SCRIPT_NO_SETUP, "noSetup");
        self.switch(&SCRIPT_NO_TEARDOWN, "noTeardown");
        let version = self.given.one(&SCRIPT_HTTP);
        self.set(
            &SCRIPT_HTTP,
            "ext",
            version.map(|version| json!({ "squall": { "http": http_name(version) } })),
        );
        let list = self.given.all(&SCRIPT_STAGE);
        self.set(&SCRIPT_STAGE, "stages", (!list.is_empty()).then(|| stages(&list.join(","))));
        let tags = self.given.all(&SCRIPT_TAG).into_iter().map(|(name, value)| (name, value.into()));
        let tags: Map<String, Json> = tags.collect();
        self.set(&SCRIPT_TAG, "tags", (!tags.is_empty()).then_some(Json::Object(tags)));
    }

    fn one<T: Into<Json>>(&mut self, option: &TypedOption<T>, name: &str) {
        let value = self.given.one(option).map(Into::into);
        self.set(option, name, value);
    }

    fn list(&mut self, option: &TypedOption<String>, name: &str) {
        let values = self.given.all(option);
        self.set(option, name, (!values.is_empty()).then(|| values.into()));
    }

    fn switch(&mut self, option: &TypedOption<()>, name: &str) {
        let value = self.given.is_set(option).then_some(Json::Bool(true));
        self.set(option, name, value);
    }

    fn set<T>(&mut self, option: &TypedOption<T>, name: &str, value: Option<Json>) {
        let Some(value) = value else { return };
        let mut alone = Map::from_iter([(name.to_owned(), value)]);
        if let Some(segment) = self.segment.clone().filter(|_| name == "executionSegmentSequence") {
            alone.insert("executionSegment".to_owned(), segment.into());
        }
        let layer = Layer { kind: LayerKind::Flags, options: alone };
        let checked = layer
            .check(self.is_plan)
            .map_err(|error| OptionProblem::of(option.option.name, error.message, error.help));
        self.given.take(checked);
        self.options.extend(layer.options);
    }
}

/// A version of HTTP as `ext.squall.http` has it.
fn http_name(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http11 => "1.1",
        HttpVersion::Http2 => "2",
        HttpVersion::Http3 => "3",
        HttpVersion::Auto => "auto",
    }
}
