//! A distribution of a script's values: the values themselves while they are few or where that is asked for, else a histogram within
//! 0.1 %; and exact totals.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// The values of a trend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Values in millionths, once they are many.
    histogram: Histogram,
    sum: f64,
    min: f64,
    max: f64,
    count: u64,
    /// The values, unsorted, while they are few; then those that came since the histogram was told last; every one of them where
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
            self.histogram.record((value * PARTS) as u64);
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
        self.values.extend(&other.values);
        if !self.keeps_all && self.count > VALUE_COUNT_MAX as u64 {
            self.spill();
        }
    }

    pub(super) fn clear(&mut self) {
        self.histogram.clear();
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
            let mut told = self.clone();
            told.spill();
            return told.quantile(q);
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
        let q = (rank + 1) as f64 / self.count as f64;
        let value = self.histogram.quantile(q).map_or(0.0, |parts| parts as f64 / PARTS);
        value.clamp(self.min, self.max)
    }
}

/// So many values are kept as they are: what a short test says is exact, and no run needs more memory for being long.
const VALUE_COUNT_MAX: usize = 512;

/// Values are kept in millionths: of milliseconds these are nanoseconds.
const PARTS: f64 = 1e6;

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
