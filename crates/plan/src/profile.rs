//! A value over time: where it starts, and stages that lead it linearly to their targets (k6's `stages`).
//!
//! Pure arithmetic; used for connections (closed model) and for arrivals per second (open model).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A value over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Value at the start.
    pub from: f64,
    /// Stages in order; after the last one its target holds.
    pub stages: Vec<Stage>,
}

/// The value moves linearly to `target` within `duration`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long the way takes; zero jumps.
    pub duration: Duration,
    /// Value at the stage's end.
    pub target: f64,
}

impl Profile {
    /// The same value at all times.
    pub const fn constant(value: f64) -> Self {
        Self { from: value, stages: Vec::new() }
    }

    /// So many times the value, at all times.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let stage = |stage: &Stage| Stage { target: stage.target * factor, ..*stage };
        Self { from: self.from * factor, stages: self.stages.iter().map(stage).collect() }
    }

    /// Length of all stages together; zero for a constant.
    pub fn duration(&self) -> Duration {
        self.stages.iter().map(|s| s.duration).sum()
    }

    /// The largest value that is ever reached.
    pub fn max(&self) -> f64 {
        self.stages.iter().map(|s| s.target).fold(self.from, f64::max)
    }

    /// The value `at` seconds after the start.
    pub fn value_at(&self, at: f64) -> f64 {
        let mut from = self.from;
        let mut begin = 0.0;
        for stage in &self.stages {
            let length = stage.duration.as_secs_f64();
            if at < begin + length {
                return from + (stage.target - from) * (at - begin) / length;
            }
            begin += length;
            from = stage.target;
        }
        from
    }

    /// How much of the value has accumulated `at` seconds after the start (its integral): with a rate, arrivals.
    pub fn accumulated_at(&self, at: f64) -> f64 {
        let mut sum = 0.0;
        let mut from = self.from;
        let mut begin = 0.0;
        for stage in &self.stages {
            let length = stage.duration.as_secs_f64();
            if at < begin + length {
                let part = at - begin;
                let value = from + (stage.target - from) * part / length;
                return sum + (from + value) / 2.0 * part;
            }
            sum += (from + stage.target) / 2.0 * length;
            begin += length;
            from = stage.target;
        }
        sum + from * (at - begin)
    }

    /// When `amount` has accumulated, in seconds after the start; `None` when it never does.
    pub fn time_of(&self, amount: f64) -> Option<f64> {
        let mut sum = 0.0;
        let mut from = self.from;
        let mut begin = 0.0;
        for stage in &self.stages {
            let length = stage.duration.as_secs_f64();
            let whole = (from + stage.target) / 2.0 * length;
            if length > 0.0 && amount < sum + whole {
                return Some(begin + time_within(from, (stage.target - from) / length, amount - sum));
            }
            sum += whole;
            begin += length;
            from = stage.target;
        }
        (from > 0.0).then(|| begin + (amount - sum) / from)
    }
}

/// Solves `from * t + slope * t^2 / 2 = amount` for the smallest `t >= 0`, in the form that does not cancel.
fn time_within(from: f64, slope: f64, amount: f64) -> f64 {
    let root = (from * from + 2.0 * slope * amount).max(0.0).sqrt();
    if from + root > 0.0 { 2.0 * amount / (from + root) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Profile {
        let stage = |secs, target| Stage { duration: Duration::from_secs(secs), target };
        Profile { from: 0.0, stages: vec![stage(10, 100.0), stage(0, 50.0), stage(10, 0.0)] }
    }

    #[test]
    fn value_follows_the_stages() {
        for (at, value) in [(0.0, 0.0), (5.0, 50.0), (10.0, 50.0), (15.0, 25.0), (20.0, 0.0), (99.0, 0.0)] {
            assert_eq!(ramp().value_at(at), value, "at {at}");
        }
    }

    #[test]
    fn time_of_inverts_accumulated_at() {
        for tenth in 1..200 {
            let at = f64::from(tenth) / 10.0;
            let back = ramp().time_of(ramp().accumulated_at(at)).unwrap();
            assert!((back - at).abs() < 1e-6, "{at} came back as {back}");
        }
        assert_eq!(ramp().time_of(750.1), None);
        assert_eq!(Profile::constant(20.0).time_of(10.0), Some(0.5));
    }
}
