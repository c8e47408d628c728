//! Scenarios: what each executor is given, and how the short forms (`vus`, `duration`, `iterations`, `stages`) become one.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use squall_plan::HttpVersion;

use super::{Reader, wrong};
use crate::error::{ErrorKind, ScriptError};

/// A scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioConfig {
    /// Name.
    pub name: String,
    /// Function that each iteration calls.
    pub exec: String,
    /// After `setup()`.
    pub start_time: Duration,
    /// How long iterations may go on after the end.
    pub graceful_stop: Duration,
    /// Environment laid over the script's.
    pub env: Vec<(String, String)>,
    /// Tags of its samples.
    pub tags: Vec<(String, String)>,
    /// Version of HTTP of its requests.
    pub http: HttpVersion,
    /// How iterations are started.
    pub executor: Executor,
}

/// How iterations are started.
#[derive(Debug, Clone, PartialEq)]
pub enum Executor {
    /// Each user iterates for a time.
    ConstantVus {
        /// Users.
        vus: u64,
        /// How long.
        duration: Duration,
    },
    /// Users take iterations from one count.
    SharedIterations {
        /// Users.
        vus: u64,
        /// In all.
        iterations: u64,
        /// At most this long.
        max_duration: Duration,
    },
    /// Each user makes as many.
    PerVuIterations {
        /// Users.
        vus: u64,
        /// Of each.
        iterations: u64,
        /// At most this long.
        max_duration: Duration,
    },
    /// The number of users follows stages.
    RampingVus {
        /// Users at the start.
        start_vus: u64,
        /// How it goes on.
        stages: Vec<Stage>,
        /// How long a user that is taken away may go on.
        graceful_ramp_down: Duration,
    },
    /// Iterations start at a rate.
    ConstantArrivalRate {
        /// Iterations per time unit.
        rate: f64,
        /// The unit.
        time_unit: Duration,
        /// How long.
        duration: Duration,
        /// Users made before the start.
        pre_allocated_vus: u64,
        /// Most users.
        max_vus: u64,
    },
    /// The rate follows stages.
    RampingArrivalRate {
        /// Rate at the start.
        start_rate: f64,
        /// The unit of all rates.
        time_unit: Duration,
        /// How it goes on.
        stages: Vec<Stage>,
        /// Users made before the start.
        pre_allocated_vus: u64,
        /// Most users.
        max_vus: u64,
    },
}

/// A stretch over which a number of users, or a rate, goes to a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Length; zero: a jump.
    pub duration: Duration,
    /// Where it goes.
    pub target: f64,
}

impl ScenarioConfig {
    /// When it has ended, whatever its iterations do, after `setup()`.
    pub fn end(&self) -> Duration {
        let Self { start_time, executor, graceful_stop, .. } = self;
        *start_time + executor.duration() + executor.graceful_end(*graceful_stop)
    }
}

impl Executor {
    /// k6's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ConstantVus { .. } => "constant-vus",
            Self::SharedIterations { .. } => "shared-iterations",
            Self::PerVuIterations { .. } => "per-vu-iterations",
            Self::RampingVus { .. } => "ramping-vus",
            Self::ConstantArrivalRate { .. } => "constant-arrival-rate",
            Self::RampingArrivalRate { .. } => "ramping-arrival-rate",
        }
    }

    /// Until no iteration starts any more.
    pub fn duration(&self) -> Duration {
        match self {
            Self::ConstantVus { duration, .. } | Self::ConstantArrivalRate { duration, .. } => *duration,
            Self::SharedIterations { max_duration, .. } | Self::PerVuIterations { max_duration, .. } => {
                *max_duration
            }
            Self::RampingVus { stages, .. } | Self::RampingArrivalRate { stages, .. } => {
                stages.iter().map(|stage| stage.duration).sum()
            }
        }
    }

    /// How long iterations may go on after [`Self::duration`].
    fn graceful_end(&self, graceful_stop: Duration) -> Duration {
        match self {
            Self::RampingVus { graceful_ramp_down, .. } => graceful_stop.max(*graceful_ramp_down),
            _ => graceful_stop,
        }
    }

    /// Users made before the start.
    pub fn planned_vus(&self) -> u64 {
        match self {
            Self::ConstantVus { vus, .. }
            | Self::SharedIterations { vus, .. }
            | Self::PerVuIterations { vus, .. } => *vus,
            Self::RampingVus { start_vus, stages, .. } => {
                stages.iter().map(|stage| stage.target as u64).fold(*start_vus, u64::max)
            }
            Self::ConstantArrivalRate { pre_allocated_vus, .. }
            | Self::RampingArrivalRate { pre_allocated_vus, .. } => *pre_allocated_vus,
        }
    }

    /// Most users there will ever be.
    pub fn max_vus(&self) -> u64 {
        match self {
            Self::ConstantArrivalRate { max_vus, .. } | Self::RampingArrivalRate { max_vus, .. } => *max_vus,
            other => other.planned_vus(),
        }
    }

    /// Iterations start by a schedule.
    pub fn is_open_model(&self) -> bool {
        matches!(self, Self::ConstantArrivalRate { .. } | Self::RampingArrivalRate { .. })
    }
}

/// The scenarios that options mean.
pub(super) fn of(read: &Reader<'_>, warnings: &mut Vec<String>) -> Result<Vec<ScenarioConfig>, ScriptError> {
    let has_stages = read.get("stages").is_some();
    let (iterations, duration) = (read.count("iterations")?, read.duration("duration")?);
    // As in k6: by itself, a negative number of VUs is ignored.
    let is_alone = iterations.is_none() && duration.is_none() && !has_stages;
    let negative = read.number("vus").ok().flatten().filter(|vus| is_alone && *vus < 0.0);
    let vus = if negative.is_some() { None } else { read.count("vus")? };
    warnings.extend(negative.map(|vus| format!("`vus={vus}` is ignored because it is negative")));
    if let Some(iterations) = iterations {
        alone(read, "iterations", &["stages", "scenarios"])?;
        let max_duration = duration.unwrap_or(MAX_DURATION);
        return one(Executor::SharedIterations { vus: vus.unwrap_or(1), iterations, max_duration });
    }
    if let Some(duration) = duration {
        alone(read, "duration", &["stages", "scenarios"])?;
        if duration.is_zero() {
            return Err(wrong("duration", "must be more than 0", "give it like \"30s\""));
        }
        return one(Executor::ConstantVus { vus: vus.unwrap_or(1), duration });
    }
    if has_stages && read.get("stages").and_then(Json::as_array).is_none_or(|stages| !stages.is_empty()) {
        alone(read, "stages", &["scenarios"])?;
        let stages = stages(read, "stages")?;
        let start_vus = vus.unwrap_or(1);
        return one(Executor::RampingVus { start_vus, stages, graceful_ramp_down: GRACEFUL });
    }
    match (vus, read.get("scenarios")) {
        (Some(vus), scenarios) if !has_stages => {
            if scenarios.is_some() {
                warnings.push(format!("`vus={vus}` overrides scenarios configuration"));
            }
            one(Executor::SharedIterations { vus, iterations: vus, max_duration: MAX_DURATION })
        }
        (_, Some(Json::Object(scenarios))) if !scenarios.is_empty() => {
            scenarios.iter().map(|(name, value)| scenario(name, value)).collect()
        }
        (_, scenarios @ (Some(Json::Object(_)) | None)) => {
            let emptied =
                if scenarios.is_some() { Some("scenarios") } else { has_stages.then_some("stages") };
            warnings.extend(emptied.map(|name| {
                format!("`{name}` was explicitly set to an empty value, running the script with 1 iteration in 1 VU")
            }));
            one(Executor::PerVuIterations { vus: 1, iterations: 1, max_duration: MAX_DURATION })
        }
        (_, Some(_)) => Err(wrong("scenarios", "is not an object", "write { name: { executor: … } }")),
    }
}

/// Refuses options that would say the same as `first` in another way.
fn alone(read: &Reader<'_>, first: &str, others: &[&str]) -> Result<(), ScriptError> {
    let Some(second) = others.iter().find(|other| read.get(other).is_some()) else { return Ok(()) };
    let problem = format!("using `{first}` and `{second}` options simultaneously is not allowed");
    Err(ScriptError::new(ErrorKind::Options, problem, format!("leave out `{first}` or `{second}`")))
}

fn one(executor: Executor) -> Result<Vec<ScenarioConfig>, ScriptError> {
    check("default", &executor)?;
    Ok(vec![ScenarioConfig {
        name: "default".to_owned(),
        exec: "default".to_owned(),
        start_time: Duration::ZERO,
        graceful_stop: GRACEFUL,
        env: Vec::new(),
        tags: Vec::new(),
        http: HttpVersion::Auto,
        executor,
    }])
}

fn scenario(name: &str, value: &Json) -> Result<ScenarioConfig, ScriptError> {
    let at = |problem: &str, help: &str| wrong(&format!("scenarios.{name}"), problem, help);
    let is_name_ok = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if name.is_empty() || !is_name_ok {
        return Err(at("has an invalid name", "use letters, digits, `_` and `-`"));
    }
    let map = value.as_object().ok_or_else(|| at("is not an object", "write { executor: … }"))?;
    let read = Reader(map);
    let kind = read.text("executor")?.ok_or_else(|| at("has no `executor`", EXECUTORS))?;
    let executor = executor(&kind, &read)
        .map_err(|error| inside(name, error))?
        .ok_or_else(|| at(&format!("has an unknown executor `{kind}`"), EXECUTORS))?;
    check_fields(name, &kind, map)?;
    check(name, &executor)?;
    let common = || -> Result<ScenarioConfig, ScriptError> {
        Ok(ScenarioConfig {
            name: name.to_owned(),
            exec: read.text("exec")?.unwrap_or_else(|| "default".to_owned()),
            start_time: read.duration("startTime")?.unwrap_or_default(),
            graceful_stop: read.duration("gracefulStop")?.unwrap_or(GRACEFUL),
            env: read.strings_by_name("env")?,
            tags: read.strings_by_name("tags")?,
            http: HttpVersion::Auto,
            executor,
        })
    };
    common().map_err(|error| inside(name, error))
}

fn inside(name: &str, error: ScriptError) -> ScriptError {
    let message = error.message.replacen("option `", &format!("option `scenarios.{name}."), 1);
    ScriptError { message, ..error }
}

fn executor(kind: &str, read: &Reader<'_>) -> Result<Option<Executor>, ScriptError> {
    let vus = || Ok(read.count("vus")?.unwrap_or(1));
    let needed = |name: &str| wrong(name, "is missing", &format!("give `{name}`"));
    let duration = || read.duration("duration")?.ok_or_else(|| needed("duration"));
    let max_duration = || Ok(read.duration("maxDuration")?.unwrap_or(MAX_DURATION));
    let iterations = || Ok(read.count("iterations")?.unwrap_or(1));
    let time_unit = || Ok(read.duration("timeUnit")?.unwrap_or(Duration::from_secs(1)));
    let pre_allocated = || read.count("preAllocatedVUs")?.ok_or_else(|| needed("preAllocatedVUs"));
    let max_vus = |pre: u64| Ok(read.count("maxVUs")?.unwrap_or(pre));
    Ok(Some(match kind {
        "constant-vus" => Executor::ConstantVus { vus: vus()?, duration: duration()? },
        "shared-iterations" => Executor::SharedIterations {
            vus: vus()?,
            iterations: iterations()?,
            max_duration: max_duration()?,
        },
        "per-vu-iterations" => Executor::PerVuIterations {
            vus: vus()?,
            iterations: iterations()?,
            max_duration: max_duration()?,
        },
        "ramping-vus" => Executor::RampingVus {
            start_vus: read.count("startVUs")?.unwrap_or(1),
            stages: stages(read, "stages")?,
            graceful_ramp_down: read.duration("gracefulRampDown")?.unwrap_or(GRACEFUL),
        },
        "constant-arrival-rate" => {
            let pre_allocated_vus = pre_allocated()?;
            Executor::ConstantArrivalRate {
                rate: read.number("rate")?.ok_or_else(|| needed("rate"))?,
                time_unit: time_unit()?,
                duration: duration()?,
                pre_allocated_vus,
                max_vus: max_vus(pre_allocated_vus)?,
            }
        }
        "ramping-arrival-rate" => {
            let pre_allocated_vus = pre_allocated()?;
            Executor::RampingArrivalRate {
                start_rate: read.number("startRate")?.unwrap_or(0.0),
                time_unit: time_unit()?,
                stages: stages(read, "stages")?,
                pre_allocated_vus,
                max_vus: max_vus(pre_allocated_vus)?,
            }
        }
        _ => return Ok(None),
    }))
}

pub(super) fn stages(read: &Reader<'_>, name: &str) -> Result<Vec<Stage>, ScriptError> {
    let help = "write a list like [{ duration: '30s', target: 20 }]";
    let list = read.get(name).ok_or_else(|| wrong(name, "is missing", help))?;
    let list = list
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or_else(|| wrong(name, "is not a list of stages", help))?;
    let one = |item: &Json| {
        let stage = item
            .as_object()
            .ok_or_else(|| wrong(name, &format!("has `{item}`, which is not a stage"), help))?;
        let stage = Reader(stage);
        let target =
            stage.number("target")?.ok_or_else(|| wrong(name, "has a stage without `target`", help))?;
        if target < 0.0 {
            return Err(wrong(name, "has a negative target", help));
        }
        let duration =
            stage.duration("duration")?.ok_or_else(|| wrong(name, "has a stage without `duration`", help))?;
        Ok(Stage { duration, target })
    };
    list.iter().map(one).collect()
}

/// An unknown field of a scenario is an error, as in k6.
fn check_fields(name: &str, kind: &str, map: &Map<String, Json>) -> Result<(), ScriptError> {
    let own: &[&str] = match kind {
        "constant-vus" => &["vus", "duration"],
        "shared-iterations" | "per-vu-iterations" => &["vus", "iterations", "maxDuration"],
        "ramping-vus" => &["startVUs", "stages", "gracefulRampDown"],
        "constant-arrival-rate" => &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"],
        _ => &["startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"],
    };
    let common = ["executor", "startTime", "gracefulStop", "exec", "env", "tags", "options"];
    match map.keys().find(|field| !own.contains(&field.as_str()) && !common.contains(&field.as_str())) {
        None => Ok(()),
        Some(field) => {
            let problem = format!("has the unknown field `{field}`");
            Err(wrong(&format!("scenarios.{name}"), &problem, &format!("{kind} has {}", own.join(", "))))
        }
    }
}

fn check(name: &str, executor: &Executor) -> Result<(), ScriptError> {
    let bad = |problem: &str, help: &str| Err(wrong(&format!("scenarios.{name}"), problem, help));
    match executor {
        Executor::ConstantVus { duration, .. } | Executor::ConstantArrivalRate { duration, .. }
            if *duration < DURATION_MIN =>
        {
            bad("has a duration below 1s", "use at least 1s")
        }
        Executor::SharedIterations { max_duration, .. } | Executor::PerVuIterations { max_duration, .. }
            if *max_duration < DURATION_MIN =>
        {
            bad("has a maxDuration below 1s", "use at least 1s")
        }
        Executor::SharedIterations { vus, iterations, .. } if iterations < vus => bad(
            &format!("has fewer iterations ({iterations}) than VUs ({vus})"),
            "give at least one iteration to each VU",
        ),
        Executor::ConstantVus { vus: 0, .. }
        | Executor::SharedIterations { vus: 0, .. }
        | Executor::PerVuIterations { vus: 0, .. } => bad("has no VUs", "give at least 1"),
        Executor::PerVuIterations { iterations: 0, .. } => bad("has no iterations", "give at least 1"),
        Executor::ConstantArrivalRate { rate, .. } if *rate <= 0.0 => {
            bad("has a rate of 0", "set `rate` above 0")
        }
        Executor::ConstantArrivalRate { pre_allocated_vus, max_vus, .. }
        | Executor::RampingArrivalRate { pre_allocated_vus, max_vus, .. }
            if max_vus < pre_allocated_vus =>
        {
            bad("has fewer maxVUs than preAllocatedVUs", "raise `maxVUs`")
        }
        _ => Ok(()),
    }
}

const EXECUTORS: &str = "use constant-vus, ramping-vus, shared-iterations, per-vu-iterations, constant-arrival-rate or ramping-arrival-rate";

/// Of a scenario, in k6.
const DURATION_MIN: Duration = Duration::from_secs(1);

/// k6's `maxDuration`.
const MAX_DURATION: Duration = Duration::from_secs(600);

/// k6's `gracefulStop` and `gracefulRampDown`.
const GRACEFUL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ways_of_saying_what_runs_exclude_one_another() {
        let (stages, scenarios) = (json!([{ "duration": "1s", "target": 1 }]), json!({ "a": {} }));
        for (options, shown) in [
            (json!({ "iterations": 1, "stages": stages }), "`iterations` and `stages`"),
            (json!({ "duration": "1s", "scenarios": scenarios }), "`duration` and `scenarios`"),
            (json!({ "stages": stages, "scenarios": scenarios }), "`stages` and `scenarios`"),
        ] {
            let error = of(&Reader(options.as_object().unwrap()), &mut Vec::new()).unwrap_err();
            assert!(error.message.contains(shown), "{}", error.message);
        }
    }

    #[test]
    fn what_is_ignored_has_a_warning() {
        for (options, warning) in [
            (json!({ "stages": [] }), "`stages` was explicitly set to an empty value"),
            (json!({ "scenarios": {} }), "`scenarios` was explicitly set to an empty value"),
            (json!({ "vus": -1 }), "`vus=-1` is ignored"),
            (json!({ "vus": "-1" }), "`vus=-1` is ignored"),
            (json!({}), ""),
        ] {
            let mut warnings = Vec::new();
            let scenarios = of(&Reader(options.as_object().unwrap()), &mut warnings).unwrap();
            assert_eq!(scenarios[0].executor.planned_vus(), 1, "{options}");
            assert!(
                warnings.concat().starts_with(warning) && warnings.len() == usize::from(!warning.is_empty()),
                "{options}: {warnings:?}"
            );
        }
    }
}
