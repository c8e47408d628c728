//! When requests start and when the load ends.

use std::num::NonZeroU32;
use std::time::Duration;

use squall_plan::units::Ramp;
use squall_plan::{Arrival, OptionProblem, Pacing, Profile, Stop, When};

use crate::args::{ArrivalArg, LoadArgs, PacingArg};

/// How long a run takes when nothing says otherwise.
pub(crate) const DURATION_DEFAULT: Duration = Duration::from_secs(10);

/// Connections of the closed model when nothing says otherwise.
pub(crate) const CONNECTION_COUNT_DEFAULT: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// Most connections of the open model when nothing says otherwise: enough that a slow server, not this bound, is what
/// arrivals wait for.
pub(crate) const CONNECTION_COUNT_MAX_DEFAULT: NonZeroU32 = NonZeroU32::new(1000).unwrap();

/// The open model with `--rate`, else the closed one, where users may be more or fewer than the connections hold.
pub(super) fn when(args: &LoadArgs, users: Option<NonZeroU32>) -> Result<When, OptionProblem> {
    match args.rate {
        Some(rate) => open(args, rate),
        None => closed(args, users),
    }
}

/// The first of the given ends; the default duration when there is none. The warm-up comes on top.
pub(super) fn stop(args: &LoadArgs) -> Stop {
    let by_default = || args.requests.is_none().then_some(DURATION_DEFAULT);
    let ramp = args.ramp.as_ref().map(|ramp| ramp.profile(0.0).duration());
    let measured = args.duration.or(ramp).or_else(by_default);
    Stop {
        duration: measured.map(|d| d + args.warmup.unwrap_or_default()),
        count: args.requests.map(|count| count.get()),
    }
}

fn open(args: &LoadArgs, rate: f64) -> Result<When, OptionProblem> {
    if rate == 0.0 && args.ramp.is_none() {
        let help = "write a rate such as `--rate 500/s`";
        return Err(OptionProblem::of("rate", "a rate of 0 starts no requests", help).with(&["ramp"]));
    }
    Ok(When::Open {
        rate: profile(args.ramp.as_ref(), rate, rate),
        arrival: match args.arrival {
            Some(ArrivalArg::Poisson) => Arrival::Poisson,
            Some(ArrivalArg::Constant) | None => Arrival::Constant,
        },
        pacing: match args.pacing {
            Some(PacingArg::Precise) => Pacing::Precise,
            Some(PacingArg::Balanced) | None => Pacing::Balanced,
            Some(PacingArg::Cheap) => Pacing::Cheap,
        },
        connection_count_max: args.connections.unwrap_or(CONNECTION_COUNT_MAX_DEFAULT),
    })
}

fn closed(args: &LoadArgs, users: Option<NonZeroU32>) -> Result<When, OptionProblem> {
    if args.arrival.is_some() || args.pacing.is_some() {
        let help = "they apply to the open model: add `--rate 500/s`, or remove the flag";
        let option = if args.arrival.is_some() { "arrival" } else { "pacing" };
        return Err(
            OptionProblem::of(option, "`--arrival` and `--pacing` need `--rate`", help).with(&["rate"])
        );
    }
    let ramp = args.ramp.as_ref();
    if let Some(ramp) = ramp {
        refuse_rates(ramp, if users.is_some() { "users" } else { "connections" })?;
    }
    let constant = f64::from(args.connections.unwrap_or(CONNECTION_COUNT_DEFAULT).get());
    if let Some(users) = users {
        let users = f64::from(users.get());
        let connections = Profile::constant(constant);
        return Ok(When::Closed { connections, users: Some(profile(ramp, users, users)) });
    }
    let ramp_from = f64::from(args.connections.unwrap_or(NonZeroU32::MIN).get());
    Ok(When::Closed { connections: profile(ramp, constant, ramp_from), users: None })
}

/// Without `--rate`, the targets of a ramp are numbers of connections or users.
fn refuse_rates(ramp: &Ramp, noun: &str) -> Result<(), OptionProblem> {
    if ramp.has_rates {
        let help = "add `--rate` as the start of the ramp (0 is allowed), or write `10s:100`";
        let message = format!("`--ramp` has rates, but without `--rate` it ramps {noun}");
        return Err(OptionProblem::of("ramp", message, help).with(&["rate"]));
    }
    match ramp.stages.iter().find(|stage| stage.target.fract() != 0.0) {
        Some(stage) => {
            let message = format!("`--ramp` leads to {} {noun}", stage.target);
            let help = format!("write whole numbers of {noun}, or add `--rate`");
            Err(OptionProblem::of("ramp", message, help).with(&["rate"]))
        }
        None => Ok(()),
    }
}

fn profile(ramp: Option<&Ramp>, constant: f64, ramp_from: f64) -> Profile {
    ramp.map_or_else(|| Profile::constant(constant), |ramp| ramp.profile(ramp_from))
}
