//! The statistics by name: bootstrap-t intervals, exact permutation tests with the maximum statistic, Cliff's delta.
//!
//! All work on a handful of figures, one for each run.

use fastrand::Rng;

/// A value and the interval in which the true one lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// Upper end.
    pub high: f64,
}

/// The mean; `NaN` of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance with n - 1; 0 of fewer than two.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() < 2 { 0.0 } else { sum / (values.len() - 1) as f64 }
}

/// The difference of the means, b - a, with a bootstrap-t interval (Efron and Tibshirani 1993, chapter 12): resampled within each
/// group, and studentised, which keeps its coverage for a handful of runs where the percentile bootstrap is too narrow.
pub fn difference(a: &[f64], b: &[f64]) -> Interval {
    let value = mean(b) - mean(a);
    let error = standard_error(a, b);
    let mut rng = Rng::with_seed(SEED);
    let mut studentised: Vec<f64> =
        (0..RESAMPLE_COUNT).filter_map(|_| resampled(a, b, value, &mut rng)).collect();
    if studentised.is_empty() || error == 0.0 {
        return Interval { low: value, value, high: value };
    }
    studentised.sort_by(f64::total_cmp);
    let at = |q: f64| studentised[((studentised.len() - 1) as f64 * q).round() as usize];
    // Few runs have few resamples, whose tails are chance: no tail is taken for longer than that of normal data with as many.
    let limit = student_t_97_5(a.len() + b.len() - 2) * TAIL_FACTOR_MAX;
    Interval { low: value - at(0.975).min(limit) * error, value, high: value - at(0.025).max(-limit) * error }
}

fn resampled(a: &[f64], b: &[f64], value: f64, rng: &mut Rng) -> Option<f64> {
    let mut draw =
        |from: &[f64]| -> Vec<f64> { from.iter().map(|_| from[rng.usize(..from.len())]).collect() };
    let (a, b) = (draw(a), draw(b));
    let error = standard_error(&a, &b);
    (error > 0.0).then(|| (mean(&b) - mean(&a) - value) / error)
}

/// Of the difference of two means, with the groups' variances apart (Welch).
pub fn standard_error(a: &[f64], b: &[f64]) -> f64 {
    (variance(a) / a.len() as f64 + variance(b) / b.len() as f64).sqrt()
}

/// Cliff's delta: how much more often a value of `b` exceeds one of `a` than the other way, -1 to 1.
pub fn cliffs_delta(a: &[f64], b: &[f64]) -> f64 {
    let sign = |x: f64, y: f64| f64::from(i8::from(y > x) - i8::from(y < x));
    let sum: f64 = a.iter().flat_map(|&x| b.iter().map(move |&y| sign(x, y))).sum();
    sum / (a.len() * b.len()) as f64
}

/// The smallest p that a two-sided permutation test over so many runs can give.
pub fn p_min(a_count: usize, b_count: usize) -> f64 {
    let ways = combination_count(a_count + b_count, a_count);
    // Groups of equal size mirror each other, so the most extreme split comes twice.
    (if a_count == b_count { 2.0 } else { 1.0 } / ways).min(1.0)
}

/// Permutation tests of several figures at once, adjusted by the maximum statistic (Westfall and Young 1993): the chance that any
/// figure is called different although none is, is at most the level. Each row of `figures` is one figure: its values of group a, then
/// of group b. Returns a p for each.
///
/// All splits are tried where they are few enough; else [`PERMUTATION_COUNT`] random ones.
pub fn permutation_test(figures: &[Vec<f64>], a_count: usize) -> Vec<f64> {
    let run_count = figures.first().map_or(0, Vec::len);
    let observed: Vec<f64> = figures.iter().map(|values| separation(values, |idx| idx < a_count)).collect();
    let mut exceeded = vec![0u64; figures.len()];
    let mut split_count = 0u64;
    for_each_split(run_count, a_count, |is_a| {
        let most = figures.iter().map(|values| separation(values, |idx| is_a[idx])).fold(0.0, f64::max);
        split_count += 1;
        for (count, observed) in exceeded.iter_mut().zip(&observed) {
            *count += u64::from(most >= observed * (1.0 - 1e-9));
        }
    });
    exceeded.iter().map(|&count| count as f64 / split_count.max(1) as f64).collect()
}

/// The difference of the means in units of its error: comparable between figures. Infinite where both groups are constant.
fn separation(values: &[f64], is_a: impl Fn(usize) -> bool) -> f64 {
    let (mut sums, mut squares, mut counts) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    let center = values[0];
    for (idx, value) in values.iter().enumerate() {
        let group = usize::from(!is_a(idx));
        let value = value - center;
        sums[group] += value;
        squares[group] += value * value;
        counts[group] += 1.0;
    }
    let spread = |group: usize| (squares[group] - sums[group] * sums[group] / counts[group]).max(0.0);
    let gap = (sums[1] / counts[1] - sums[0] / counts[0]).abs();
    let freedom = (counts[0] + counts[1] - 2.0).max(1.0);
    let error = ((spread(0) + spread(1)) / freedom * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
    let scale = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if gap <= scale * 1e-12 { 0.0 } else { gap / error.max(scale * 1e-12) }
}

/// Calls `visit` with who is in group a, for every split or for a sample of them; the observed one is always among them.
fn for_each_split(run_count: usize, a_count: usize, mut visit: impl FnMut(&[bool])) {
    let mut is_a: Vec<bool> = (0..run_count).map(|idx| idx < a_count).collect();
    if combination_count(run_count, a_count) <= PERMUTATION_COUNT as f64 {
        loop {
            visit(&is_a);
            if !next_split(&mut is_a) {
                return;
            }
        }
    }
    let mut rng = Rng::with_seed(SEED);
    visit(&is_a);
    for _ in 1..PERMUTATION_COUNT {
        rng.shuffle(&mut is_a);
        visit(&is_a);
    }
}

/// The next split in falling order of the flags; false after the last.
fn next_split(is_a: &mut [bool]) -> bool {
    let Some(idx) = (0..is_a.len().saturating_sub(1)).rev().find(|&idx| is_a[idx] && !is_a[idx + 1]) else {
        return false;
    };
    is_a.swap(idx, idx + 1);
    is_a[idx + 2..].sort_unstable_by(|x, y| y.cmp(x));
    true
}

fn combination_count(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).map(|idx| (n - idx) as f64 / (idx + 1) as f64).product::<f64>().round()
}

/// The 97.5 % point of Student's t, to 1 % (Cornish and Fisher's expansion; exact values where that fails).
pub fn student_t_97_5(freedom: usize) -> f64 {
    match freedom {
        0 | 1 => 12.71,
        2 => 4.30,
        3 => 3.18,
        4 => 2.78,
        n => {
            let (z, n) = (1.959_964_f64, n as f64);
            z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

/// Resamples of an interval.
const RESAMPLE_COUNT: usize = 4_000;

/// Most splits of a permutation test.
pub const PERMUTATION_COUNT: usize = 20_000;

/// How much longer than normal the tails of a resampled distribution may be.
const TAIL_FACTOR_MAX: f64 = 1.5;

const SEED: u64 = 0x5eed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_is_visited_once() {
        let mut seen = std::collections::BTreeSet::new();
        for_each_split(7, 3, |is_a| assert!(seen.insert(is_a.to_vec())));
        assert_eq!(seen.len(), 35);
    }

    #[test]
    fn separated_groups_have_the_smallest_p_and_equal_ones_the_largest() {
        let apart = vec![vec![1.0, 1.1, 0.9, 1.05, 2.0, 2.1, 1.9, 2.05]];
        assert!((permutation_test(&apart, 4)[0] - p_min(4, 4)).abs() < 1e-12);
        assert_eq!(permutation_test(&[vec![1.0; 8]], 4), [1.0]);
        let constant = vec![vec![0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]];
        assert!((permutation_test(&constant, 4)[0] - 2.0 / 70.0).abs() < 1e-12);
    }

    #[test]
    fn delta_counts_who_is_larger() {
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(cliffs_delta(&[3.0, 4.0], &[1.0, 2.0]), -1.0);
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
    }

    #[test]
    fn few_runs_cannot_give_a_small_p() {
        for ((a, b), p) in
            [((1, 1), 1.0), ((3, 3), 0.1), ((4, 4), 2.0 / 70.0), ((5, 5), 2.0 / 252.0), ((3, 5), 1.0 / 56.0)]
        {
            assert!((p_min(a, b) - p).abs() < 1e-12, "{a} and {b}");
        }
    }

    #[test]
    fn student_t_is_close() {
        for (freedom, t) in [(4, 2.776), (8, 2.306), (18, 2.101), (100, 1.984)] {
            assert!((student_t_97_5(freedom) / t - 1.0).abs() < 0.01, "{freedom}");
        }
    }
}
