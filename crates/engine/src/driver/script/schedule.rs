//! The arithmetic of k6's executors: when users start and stop, and when iterations arrive. Times are nanoseconds after the
//! scenario's start; integers are divided as Go divides them.

use std::time::Duration;

use squall_script::Stage;

/// A number of users from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserStep {
    pub(super) at_ns: u64,
    pub(super) user_count: u64,
}

/// The steps of `ramping-vus`: each user starts and stops at a time of its own.
pub(super) fn user_steps(start_vus: u64, stages: &[Stage]) -> Vec<UserStep> {
    let mut steps = vec![UserStep { at_ns: 0, user_count: start_vus }];
    let (mut from, mut begin_ns) = (start_vus, 0_u64);
    for stage in stages {
        let (target, length_ns) = (stage.target as u64, stage.duration.as_nanos() as u64);
        let end_ns = begin_ns + length_ns;
        let change = target.abs_diff(from);
        let part =
            |count: u64| (u128::from(length_ns) * u128::from(count) / u128::from(change.max(1))) as u64;
        if length_ns == 0 && change > 0 {
            steps.push(UserStep { at_ns: end_ns, user_count: target });
        } else {
            for nth in 1..=change {
                let user_count = if target > from { from + nth } else { from - nth };
                steps.push(UserStep { at_ns: end_ns - part(change - nth), user_count });
            }
        }
        (from, begin_ns) = (target, end_ns);
    }
    steps
}

/// When iterations arrive.
#[derive(Debug, Clone)]
pub(super) enum Arrivals {
    /// At a rate: iteration k, from 0, is due at k periods.
    Constant {
        /// Iterations per nanosecond.
        per_ns: f64,
        end_ns: u64,
    },
    /// Along stages: iteration i, from 1, is due when the rate has added up to i.
    Ramping { stages: Vec<RateStage> },
}

/// A stretch of a changing rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateStage {
    begin_ns: u64,
    length_ns: f64,
    /// Iterations per nanosecond.
    from: f64,
    to: f64,
    /// Iterations due before it.
    before: f64,
    /// Iterations due by its end.
    by_end: f64,
}

impl Arrivals {
    /// `rate` iterations per `unit` for `duration`.
    pub(super) fn constant(rate: f64, unit: Duration, duration: Duration) -> Self {
        Self::Constant { per_ns: rate / unit.as_nanos() as f64, end_ns: duration.as_nanos() as u64 }
    }

    /// A rate that begins at `start_rate` and follows stages.
    pub(super) fn ramping(start_rate: f64, unit: Duration, stages: &[Stage]) -> Self {
        let unit_ns = unit.as_nanos() as f64;
        let (mut from, mut begin_ns, mut before) = (start_rate / unit_ns, 0_u64, 0.0);
        let stages = stages.iter().map(|stage| {
            let (to, length) = (stage.target / unit_ns, stage.duration.as_nanos() as f64);
            let by_end = before + length * ((to - from) / 2.0 + from);
            let one = RateStage { begin_ns, length_ns: length, from, to, before, by_end };
            (from, before) = (to, by_end);
            begin_ns += stage.duration.as_nanos() as u64;
            one
        });
        Self::Ramping { stages: stages.collect() }
    }

    /// When the `idx`-th arrival, from 0, is due; `None`: there are not so many.
    pub(super) fn due_ns(&self, idx: u64) -> Option<u64> {
        match self {
            Self::Constant { per_ns, end_ns } => {
                // Rounded: an arrival at the very end, which is none, may not slip in a nanosecond before it.
                let at_ns = (idx as f64 / per_ns).round() as u64;
                (at_ns < *end_ns).then_some(at_ns)
            }
            Self::Ramping { stages } => {
                let wanted = (idx + 1) as f64;
                let stage = stages.iter().find(|stage| stage.length_ns > 0.0 && wanted <= stage.by_end)?;
                Some(stage.begin_ns + stage.time_of(wanted - stage.before) as u64)
            }
        }
    }
}

impl RateStage {
    /// How long after the stage's begin its `amount`-th iteration is due.
    fn time_of(&self, amount: f64) -> f64 {
        let (from, to, length) = (self.from, self.to, self.length_ns);
        if from == to {
            return amount / to;
        }
        let under = length * (from * from * length + 2.0 * amount * (to - from));
        (from * length - under.max(0.0).sqrt()) / (from - to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: u64, target: f64) -> Stage {
        Stage { duration: Duration::from_secs(seconds), target }
    }

    #[test]
    fn users_ramp_as_k6_ramps_them() {
        let steps = user_steps(0, &[stage(10, 5.0), stage(0, 2.0), stage(4, 0.0)]);
        let plain: Vec<(u64, u64)> =
            steps.iter().map(|step| (step.at_ns / 1_000_000_000, step.user_count)).collect();
        assert_eq!(plain, [(0, 0), (2, 1), (4, 2), (6, 3), (8, 4), (10, 5), (10, 2), (12, 1), (14, 0)]);
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        let arrivals = Arrivals::constant(20_000.0, Duration::from_secs(1), Duration::from_secs(86_400));
        for (idx, at_ns) in
            [(0, 0), (1, 50_000), (20_000, 1_000_000_000), (1_727_999_999, 86_399_999_950_000)]
        {
            let due_ns = arrivals.due_ns(idx).unwrap();
            assert!(due_ns.abs_diff(at_ns) <= 20, "{idx}: {due_ns}");
        }
        assert_eq!(arrivals.due_ns(1_728_000_000), None);
    }

    #[test]
    fn a_ramping_rate_adds_up_to_the_area_under_it() {
        let arrivals = Arrivals::ramping(0.0, Duration::from_secs(1), &[stage(10, 10.0), stage(5, 10.0)]);
        let due: Vec<u64> = (0..).map_while(|idx| arrivals.due_ns(idx)).collect();
        assert_eq!(due.len(), 100);
        // The area under a ramp from 0 to 10/s over 10 s is t^2 / 2.
        for (idx, at_s) in [(0, 2_f64.sqrt()), (1, 2.0), (7, 4.0), (49, 10.0), (59, 11.0), (99, 15.0)] {
            assert!((due[idx] as f64 / 1e9 - at_s).abs() < 1e-6, "{idx}: {}", due[idx]);
        }
    }
}
