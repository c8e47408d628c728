//! Decides when each request of an open model starts.
//!
//! Owns: the schedule of one shard. Never: reads the clock; the k-th arrival's time is computed, so nothing drifts and
//! nothing is queued for arrivals that are not due yet.

use std::time::Duration;

use squall_plan::{Arrival, Pacing, Profile, ShardPart, When};

/// The arrivals of one shard, in order. The shards' arrivals together are exactly the plan's.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    profile: Profile,
    part: ShardPart,
    kind: Kind,
    /// Arrivals are released on this grid; 0: each at its own time.
    grid_ns: u64,
    end_ns: u64,
    next: Option<Due>,
}

/// When an arrival is due, in nanoseconds after the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// By the schedule itself.
    pub(crate) exact_ns: u64,
    /// On the pacing's grid: the intended start, from which latency counts.
    pub(crate) intended_ns: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    /// The k-th arrival comes when the rate has accumulated to k. `own_idx` counts this machine's.
    Constant { own_idx: u64 },
    /// Gaps are exponential with mean 1 in accumulated rate; shards are independent processes that add up.
    Poisson { accumulated: f64, random: SplitMix },
}

impl Arrivals {
    /// The arrivals of `profile` before `end_ns`.
    pub(crate) fn new(
        profile: &Profile,
        arrival: Arrival,
        part: &ShardPart,
        grid_ns: u64,
        end_ns: u64,
    ) -> Self {
        let kind = match arrival {
            Arrival::Constant => Kind::Constant { own_idx: part.machine_idx(0) },
            Arrival::Poisson => {
                let seed = part.segment.whole_idx(0) << 32 | u64::from(part.shard_idx);
                Kind::Poisson { accumulated: 0.0, random: SplitMix(seed) }
            }
        };
        let mut arrivals =
            Self { profile: profile.clone(), part: part.clone(), kind, grid_ns, end_ns, next: None };
        arrivals.advance();
        arrivals
    }

    /// The next arrival; `None` when there is none before the end.
    pub(crate) fn peek(&self) -> Option<Due> {
        self.next
    }

    /// Takes the next arrival when its time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Due> {
        let due = self.next.filter(|due| due.intended_ns <= now_ns)?;
        self.advance();
        Some(due)
    }

    fn advance(&mut self) {
        let amount = match &mut self.kind {
            Kind::Constant { own_idx } => {
                let amount = self.part.segment.whole_idx(*own_idx) as f64;
                *own_idx += u64::from(self.part.shard_count);
                amount
            }
            Kind::Poisson { accumulated, random } => {
                *accumulated += random.exponential() / self.part.fraction();
                *accumulated
            }
        };
        self.next = self.profile.time_of(amount).and_then(|at| self.due_at(at));
    }

    fn due_at(&self, at_s: f64) -> Option<Due> {
        let exact_ns = (at_s * 1e9) as u64;
        let intended_ns = match self.grid_ns {
            0 => exact_ns,
            grid_ns => exact_ns.div_ceil(grid_ns) * grid_ns,
        };
        (exact_ns < self.end_ns).then_some(Due { exact_ns, intended_ns })
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): small, seeded, the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// Each seed gives a sequence of its own.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, of all that there are.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// An exponential variate with mean 1, by inversion; the uniform one is in (0, 1].
    fn exponential(&mut self) -> f64 {
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln()
    }
}

/// How late a load's pacing may send by design: within its tick, and as late as a sleeping thread wakes and writes.
pub fn lag_allowed(when: &When) -> Duration {
    match when {
        When::Closed { .. } => Duration::ZERO,
        When::Open { pacing, .. } => Duration::from_nanos(grid_ns(*pacing) + WAKE_UP_NS_USUAL),
    }
}

/// The tick on which arrivals are released, in nanoseconds; 0: none.
pub(crate) const fn grid_ns(pacing: Pacing) -> u64 {
    match pacing {
        Pacing::Precise => 0,
        Pacing::Balanced => 800_000,
        Pacing::Cheap => 1_000_000,
    }
}

/// What waking a thread, and writing the requests of its tick, usually take at most on a core that is free.
const WAKE_UP_NS_USUAL: u64 = 200_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_plan::{Segment, Stage};

    use super::*;

    fn times(profile: &Profile, arrival: Arrival, shard_count: u32, grid_ns: u64, end_ns: u64) -> Vec<u64> {
        times_of(profile, arrival, (shard_count, Segment::WHOLE), grid_ns, end_ns)
    }

    fn times_of(
        profile: &Profile,
        arrival: Arrival,
        (shard_count, segment): (u32, Segment),
        grid_ns: u64,
        end_ns: u64,
    ) -> Vec<u64> {
        let mut all = Vec::new();
        for shard_idx in 0..shard_count {
            let part = ShardPart { shard_idx, shard_count, segment: segment.clone() };
            let mut arrivals = Arrivals::new(profile, arrival, &part, grid_ns, end_ns);
            while let Some(due) = arrivals.pop_due(u64::MAX) {
                all.push(due.intended_ns);
            }
        }
        all.sort_unstable();
        all
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn shards_together_make_exactly_the_schedule() {
        let profile = Profile::constant(1000.0);
        let one = times(&profile, Arrival::Constant, 1, 0, 2 * SECOND);
        assert_eq!(one.len(), 2000);
        assert_eq!(one[..3], [0, 1_000_000, 2_000_000]);
        assert_eq!(times(&profile, Arrival::Constant, 3, 0, 2 * SECOND), one);
    }

    #[test]
    fn machines_together_make_exactly_the_schedule() {
        let profile =
            Profile { from: 10.0, stages: vec![Stage { duration: Duration::from_secs(1), target: 3000.0 }] };
        let one = times(&profile, Arrival::Constant, 1, 0, 2 * SECOND);
        for weights in [&[1, 1, 1][..], &[5, 2, 1]] {
            let segments = Segment::divide(weights, u64::MAX).into_iter().flatten();
            let mut all: Vec<u64> = segments
                .zip([1, 2, 4])
                .flat_map(|(segment, shard_count)| {
                    times_of(&profile, Arrival::Constant, (shard_count, segment), 0, 2 * SECOND)
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, one, "{weights:?}");
        }
    }

    #[test]
    fn a_ramp_sends_the_area_under_it() {
        let profile =
            Profile { from: 0.0, stages: vec![Stage { duration: Duration::from_secs(10), target: 100.0 }] };
        assert_eq!(times(&profile, Arrival::Constant, 2, 0, 10 * SECOND).len(), 500);
    }

    #[test]
    fn a_day_at_a_high_rate_does_not_drift() {
        let profile = Profile::constant(100_000.0);
        let mut arrivals = Arrivals::new(&profile, Arrival::Constant, &ShardPart::WHOLE, 0, u64::MAX);
        arrivals.kind = Kind::Constant { own_idx: 86_400 * 100_000 };
        arrivals.advance();
        let exact = arrivals.peek().unwrap().exact_ns;
        assert!(exact.abs_diff(86_400 * SECOND) <= 20_000, "{exact}");
    }

    #[test]
    fn grid_moves_arrivals_only_later_and_by_less_than_a_tick() {
        let mut arrivals =
            Arrivals::new(&Profile::constant(7777.0), Arrival::Constant, &ShardPart::WHOLE, 800_000, SECOND);
        while let Some(Due { exact_ns, intended_ns }) = arrivals.pop_due(u64::MAX) {
            assert_eq!(intended_ns % 800_000, 0);
            assert!(intended_ns >= exact_ns && intended_ns - exact_ns < 800_000);
        }
    }

    #[test]
    fn poisson_gaps_have_the_right_mean_and_spread() {
        let at = times(&Profile::constant(1000.0), Arrival::Poisson, 4, 0, 100 * SECOND);
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{}", variance.sqrt() / mean);
    }
}
