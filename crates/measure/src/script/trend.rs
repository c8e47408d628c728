//! A distribution of a script's values: the values themselves while they are few or where that is asked for, else a histogram within
//! 0.1 % of any finite value; and exact totals.

mod wide;

use serde::{Deserialize, Serialize};

use self::wide::Wide;
use crate::Histogram;
use crate::buckets::VALUE_MAX;

/// The values of a trend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Values in millionths, once they are many: those that times have.
    histogram: Histogram,
    /// The others: negative, very large, or no millionths.
    #[serde(default, skip_serializing_if = "Wide::is_empty")]
    wide: Wide,
    sum: f64,
    min: f64,
    max: f64,
    count: u64,
    /// The values, unsorted, while they are few; then those that came since the histogram was last updated; every one of them where
    /// `keeps_all`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<f64>,
    #[serde(default)]
    keeps_all: bool,
}

impl Trend {
    /// A trend that keeps every value.
    pub fn exact() -> Self {
        Self { keeps_all: true, ..Self::default() }
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        self.sum += value;
        self.values.push(value);
        // Many at once: between two values of a script, a histogram's lines leave the cache.
        if !self.keeps_all && self.values.len() > VALUE_COUNT_MAX {
            self.spill();
        }
    }

    /// The values have become many.
    fn spill(&mut self) {
        for value in self.values.drain(..) {
            let parts = value * PARTS;
            let whole = (parts + 0.5) as u64;
            // Negative values fail this, too.
            if (parts - whole as f64).abs() <= parts * ROUNDING_SHARE_MAX && whole <= VALUE_MAX {
                self.histogram.record(whole);
            } else {
                self.wide.record(value);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = if self.count == 0 {
            (other.min, other.max)
        } else {
            (self.min.min(other.min), self.max.max(other.max))
        };
        self.count += other.count;
        self.sum += other.sum;
        self.keeps_all |= other.keeps_all;
        self.histogram.merge(&other.histogram);
        self.wide.merge(&other.wide);
        self.values.extend(&other.values);
        if !self.keeps_all && self.count > VALUE_COUNT_MAX as u64 {
            self.spill();
        }
    }

    pub(super) fn clear(&mut self) {
        self.histogram.clear();
        self.wide.clear();
        (self.sum, self.min, self.max, self.count) = (0.0, 0.0, 0.0, 0);
        self.values.clear();
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 without any.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The least; 0 without any.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The most; 0 without any.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The value below which a share `q` of them lies, between neighbours in proportion, as k6 does (Hyndman and Fan's type 7);
    /// 0 without any.
    pub fn quantile(&self, q: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let is_whole = self.values.len() as u64 == self.count;
        if !is_whole && !self.values.is_empty() {
            let mut shown = self.clone();
            shown.spill();
            return shown.quantile(q);
        }
        let place = q.clamp(0.0, 1.0) * (self.count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        let (below, above) = if is_whole {
            let mut sorted = self.values.clone();
            sorted.sort_by(f64::total_cmp);
            (sorted[low as usize], sorted[high as usize])
        } else {
            (self.at_rank(low as u64), self.at_rank(high as u64))
        };
        below + (above - below) * (place - low)
    }

    /// The value of a rank from 0.
    fn at_rank(&self, rank: u64) -> f64 {
        if rank == 0 {
            return self.min;
        }
        if rank + 1 >= self.count {
            return self.max;
        }
        let value = if self.wide.is_empty() {
            let q = (rank + 1) as f64 / self.count as f64;
            self.histogram.quantile(q).map_or(0.0, value_of)
        } else {
            self.at_rank_of_both(rank)
        };
        value.clamp(self.min, self.max)
    }

    fn at_rank_of_both(&self, rank: u64) -> f64 {
        let of_histogram = self.histogram.buckets().map(|(parts, count)| (value_of(parts), count));
        let mut counts: Vec<(f64, u64)> = self.wide.buckets().chain(of_histogram).collect();
        counts.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let mut seen = 0;
        let found = counts.iter().find(|(_, count)| {
            seen += count;
            seen > rank
        });
        found.map_or(self.max, |(value, _)| *value)
    }
}

/// The middle of the values that were rounded into a bucket of which `parts` is the middle whole number.
fn value_of(parts: u64) -> f64 {
    let has_neighbours = parts >= Histogram::EXACT_BELOW;
    (parts as f64 + if has_neighbours { 0.5 } else { 0.0 }) / PARTS
}

/// So many values are kept as they are: what a short test says is exact, and no run needs more memory for being long.
const VALUE_COUNT_MAX: usize = 512;

/// Values are kept in millionths: of milliseconds these are nanoseconds.
const PARTS: f64 = 1e6;

/// A value that rounding to millionths would change by more is kept otherwise.
const ROUNDING_SHARE_MAX: f64 = 0.0009;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let mut trend = Trend::default();
        (1..=4).for_each(|value| trend.add(f64::from(value) * 10.0));
        for (q, expected) in [(0.0, 10.0), (0.5, 25.0), (0.9, 37.0), (1.0, 40.0)] {
            assert!((trend.quantile(q) - expected).abs() < 1e-9, "{q}: {}", trend.quantile(q));
        }
        assert_eq!((trend.mean(), trend.min(), trend.max(), trend.count()), (25.0, 10.0, 40.0, 4));
    }

    /// Values of every sign and size that scripts measure, shuffled; more of them than are kept as they are.
    fn of_every_size() -> Vec<f64> {
        let sizes = [1.0, 1e-300, 3e-7, 0.000_123_4, 21.5, 5e6, 1.7e12, 6e200];
        (0..4000_u64)
            .map(|nth| {
                let nth = nth * 1277 % 4000;
                let sign = if nth.is_multiple_of(3) { -1.0 } else { 1.0 };
                sign * sizes[nth as usize % 8] * (1.0 + nth as f64 / 4000.0)
            })
            .chain([0.0; 100])
            .collect()
    }

    fn assert_quantiles_fit(trend: &Trend, values: &[f64]) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        for (rank, expected) in sorted.iter().enumerate() {
            let shown = trend.at_rank(rank as u64);
            assert!((shown - expected).abs() <= expected.abs() * 0.001, "{rank}: {shown} for {expected}");
        }
    }

    #[test]
    fn values_of_every_sign_and_size_are_exact_to_a_thousandth() {
        let sizes_bytes: Vec<f64> = (0..2000).map(|nth| 5e6 + f64::from(nth) * 1e5).collect();
        let degrees: Vec<f64> = (0..2000).map(|nth| f64::from(nth) * 0.01 - 15.0).collect();
        let small_ms: Vec<f64> = (0..2000).map(|nth| f64::from(nth) * 0.000_1).collect();
        for values in [sizes_bytes, degrees, small_ms, of_every_size()] {
            let mut trend = Trend::default();
            values.iter().for_each(|value| trend.add(*value));
            trend.spill();
            assert_quantiles_fit(&trend, &values);
            let saved = serde_json::to_string(&trend).unwrap();
            assert_eq!(serde_json::from_str::<Trend>(&saved).unwrap(), trend);
        }
    }

    #[test]
    fn parts_of_machines_make_a_whole_of_every_size() {
        let (mut left, mut right) = (Trend::default(), Trend::default());
        let values = of_every_size();
        for (nth, value) in values.iter().enumerate() {
            if nth % 3 == 0 { left.add(*value) } else { right.add(*value) }
        }
        left.merge(&right);
        left.spill();
        assert_quantiles_fit(&left, &values);
        left.clear();
        assert_eq!(left, Trend::default());
    }

    #[test]
    fn times_need_the_histogram_alone() {
        let mut trend = Trend::default();
        (0..2000).for_each(|nth| trend.add(f64::from(nth) * 37.0 / 1e6));
        trend.spill();
        assert!(trend.wide.is_empty());
    }

    #[test]
    fn many_values_merge_as_if_they_had_come_together() {
        let (mut whole, mut left, mut right) = (Trend::default(), Trend::default(), Trend::default());
        for value in 1..=2000 {
            whole.add(f64::from(value));
            if value <= 500 { left.add(f64::from(value)) } else { right.add(f64::from(value)) }
        }
        left.merge(&right);
        let mut merged = Trend::default();
        merged.merge(&whole);
        assert_eq!(left, merged);
        assert!((whole.quantile(0.5) - 1000.5).abs() < 2.0, "{}", whole.quantile(0.5));
    }
}
