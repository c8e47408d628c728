//! A distribution of a script's values: a histogram within 0.1 %, and exact totals; or every value, where that is asked for.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// The values of a trend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Values in millionths.
    histogram: Histogram,
    sum: f64,
    min: f64,
    max: f64,
    count: u64,
    /// Every value, unsorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact: Option<Vec<f64>>,
}

impl Trend {
    /// A trend that keeps every value.
    pub fn exact() -> Self {
        Self { exact: Some(Vec::new()), ..Self::default() }
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        self.sum += value;
        match &mut self.exact {
            Some(values) => values.push(value),
            None => self.histogram.record((value * PARTS) as u64),
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
        self.histogram.merge(&other.histogram);
        if let Some(theirs) = &other.exact {
            self.exact.get_or_insert_default().extend(theirs);
        }
    }

    pub(super) fn clear(&mut self) {
        self.histogram.clear();
        (self.sum, self.min, self.max, self.count) = (0.0, 0.0, 0.0, 0);
        if let Some(values) = &mut self.exact {
            values.clear();
        }
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
        let place = q.clamp(0.0, 1.0) * (self.count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        let (below, above) = match &self.exact {
            Some(values) => {
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                (sorted[low as usize], sorted[high as usize])
            }
            None => (self.at_rank(low as u64), self.at_rank(high as u64)),
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

/// Values are kept in millionths: of milliseconds these are nanoseconds.
const PARTS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        for mut trend in [Trend::default(), Trend::exact()] {
            (1..=4).for_each(|value| trend.add(f64::from(value) * 10.0));
            for (q, expected) in [(0.0, 10.0), (0.5, 25.0), (0.9, 37.0), (1.0, 40.0)] {
                let actual = trend.quantile(q);
                assert!((actual - expected).abs() < expected * 0.002, "{q}: {actual}");
            }
            assert_eq!((trend.mean(), trend.min(), trend.max(), trend.count()), (25.0, 10.0, 40.0, 4));
        }
    }
}
