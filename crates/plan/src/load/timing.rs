//! When requests start and when the load ends.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use crate::options::Reading;
use crate::options::table::{
    ARRIVAL, CONNECTIONS, DURATION, PACING, RAMP, RATE, REQUESTS, THREADS, USERS, WARMUP,
};
use crate::units::Ramp;
use crate::{Arrival, OptionProblem, Pacing, Profile, Stop, When};

/// How long a run takes when nothing says otherwise.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(10);

/// Connections of the closed model when nothing says otherwise.
pub const CONNECTION_COUNT_DEFAULT: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// Most connections of the open model when nothing says otherwise: enough that a slow server, not this bound, is what
/// arrivals wait for.
pub const CONNECTION_COUNT_MAX_DEFAULT: NonZeroU32 = NonZeroU32::new(1000).unwrap();

/// The options of any load about when.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing {
    pub connections: Option<NonZeroU32>,
    pub duration: Option<Duration>,
    pub requests: Option<NonZeroU64>,
    /// Something else than a number of requests ends it.
    pub has_count: bool,
    pub rate: Option<f64>,
    pub ramp: Option<Ramp>,
    pub arrival: Option<Arrival>,
    pub pacing: Option<Pacing>,
    pub warmup: Option<Duration>,
    pub threads: Option<NonZeroU32>,
    /// Users who share the connections.
    pub users: Option<NonZeroU32>,
}

impl Timing {
    /// Reads them as `squall http` has them.
    pub(super) fn read(given: &mut Reading<'_>) -> Self {
        Self {
            connections: given.one(&CONNECTIONS),
            duration: given.one(&DURATION),
            requests: given.one(&REQUESTS),
            users: given.one(&USERS),
            ..Self::paced(given)
        }
    }

    /// Reads those that are the same for all loads with a pace.
    pub(super) fn paced(given: &mut Reading<'_>) -> Self {
        Self {
            rate: given.one(&RATE),
            ramp: given.one(&RAMP),
            arrival: given.one(&ARRIVAL),
            pacing: given.one(&PACING),
            warmup: given.one(&WARMUP),
            threads: given.one(&THREADS),
            ..Self::default()
        }
    }

    /// The open model with `--rate`, else the closed one, where users may be more or fewer than the connections hold.
    pub(super) fn when(&self) -> Result<When, OptionProblem> {
        match self.rate {
            Some(rate) => self.open(rate),
            None => self.closed(),
        }
    }

    /// The first of the given ends; the default duration when there is none. The warm-up comes on top.
    pub(super) fn stop(&self) -> Stop {
        let is_counted = self.requests.is_some() || self.has_count;
        let by_default = || (!is_counted).then_some(DURATION_DEFAULT);
        let ramp = self.ramp.as_ref().map(|ramp| ramp.profile(0.0).duration());
        let measured = self.duration.or(ramp).or_else(by_default);
        Stop {
            duration: measured.map(|d| d + self.warmup.unwrap_or_default()),
            count: self.requests.map(|count| count.get()),
        }
    }

    fn open(&self, rate: f64) -> Result<When, OptionProblem> {
        if rate == 0.0 && self.ramp.is_none() {
            let help = "write a rate such as `--rate 500/s`";
            return Err(OptionProblem::of("rate", "a rate of 0 starts no requests", help).with(&["ramp"]));
        }
        Ok(When::Open {
            rate: profile(self.ramp.as_ref(), rate, rate),
            arrival: self.arrival.unwrap_or(Arrival::Constant),
            pacing: self.pacing.unwrap_or(Pacing::Balanced),
            connection_count_max: self.connections.unwrap_or(CONNECTION_COUNT_MAX_DEFAULT),
        })
    }

    fn closed(&self) -> Result<When, OptionProblem> {
        if self.arrival.is_some() || self.pacing.is_some() {
            let help = "they apply to the open model: add `--rate 500/s`, or remove the flag";
            let option = if self.arrival.is_some() { "arrival" } else { "pacing" };
            return Err(
                OptionProblem::of(option, "`--arrival` and `--pacing` need `--rate`", help).with(&["rate"])
            );
        }
        let ramp = self.ramp.as_ref();
        if let Some(ramp) = ramp {
            refuse_rates(ramp, if self.users.is_some() { "users" } else { "connections" })?;
        }
        let constant = f64::from(self.connections.unwrap_or(CONNECTION_COUNT_DEFAULT).get());
        if let Some(users) = self.users {
            let users = f64::from(users.get());
            let connections = Profile::constant(constant);
            return Ok(When::Closed { connections, users: Some(profile(ramp, users, users)) });
        }
        let ramp_from = f64::from(self.connections.unwrap_or(NonZeroU32::MIN).get());
        Ok(When::Closed { connections: profile(ramp, constant, ramp_from), users: None })
    }
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

/// Of a ramp, or constant.
pub(super) fn profile(ramp: Option<&Ramp>, constant: f64, ramp_from: f64) -> Profile {
    ramp.map_or_else(|| Profile::constant(constant), |ramp| ramp.profile(ramp_from))
}
