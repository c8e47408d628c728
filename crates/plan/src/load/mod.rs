//! From options to what they mean: a [`LoadSpec`] to a valid plan, or all that is wrong with it. One function for each kind of load.
//!
//! Reads the files that options name. Sends nothing, and asks the system for nothing.

mod connection;
mod http;
mod replay;
mod sessions;
mod stream;
mod timing;
mod websocket;

pub use http::http;
pub use replay::{RecordingOptions, ReplayDraft, ReplayFacts, recording, replay};
pub use sessions::{IDLE_COUNT_DEFAULT, handshake, idle};
pub use stream::stream;
pub use timing::{CONNECTION_COUNT_DEFAULT, CONNECTION_COUNT_MAX_DEFAULT, DURATION_DEFAULT};
pub use websocket::websocket;

use crate::options::Reading;
use crate::options::table::THRESHOLD;
use crate::{Load, LoadSpec, OptionProblem, Plan, PlanError, PortablePlan};

use timing::Timing;

impl PortablePlan {
    /// A plan of one load. `name`: of the run, unless the load has one.
    fn of_load(
        spec: &LoadSpec,
        name: String,
        load: Load,
        timing: &Timing,
        thresholds: Vec<String>,
    ) -> Result<Self, OptionProblem> {
        let plan = Plan {
            name: if spec.name.is_empty() { name } else { spec.name.clone() },
            loads: vec![load],
            thresholds,
            warmup: timing.warmup.unwrap_or_default(),
            threads: timing.threads,
        };
        plan.validate().map_err(|error| impossible(&error))?;
        Ok(plan.into())
    }
}

/// The rules of `--threshold`, as typed.
fn thresholds(given: &mut Reading<'_>) -> Vec<String> {
    given.all(&THRESHOLD).iter().map(|rule| rule.trim().to_owned()).collect()
}

/// What no machine can make.
pub fn impossible(error: &PlanError) -> OptionProblem {
    let help = match error {
        PlanError::TooManyRequests { .. } => "give fewer URLs, or fewer of --user-agent",
        PlanError::TooManyBytes { .. } => "send the body with --body-file, or give fewer URLs",
        PlanError::WeightsTooLarge { .. } => "round the weights so that they have a large common divisor",
        PlanError::HeadTooLarge { .. } => {
            "servers reject far smaller heads; send data in a body with --body-file"
        }
        PlanError::RateTooHigh { .. } => "lower --rate, or the targets of --ramp",
        PlanError::TooManyConnections { .. } => "lower --connections, --users, or the targets of --ramp",
        PlanError::NothingToDo => "raise --duration, --rate or --connections, or the targets of --ramp",
    };
    OptionProblem::whole(error.to_string(), help)
}
