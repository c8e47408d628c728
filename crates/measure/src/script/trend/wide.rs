//! Counts of values of every sign and size, to 0.1 %: what a histogram of times cannot hold.
//!
//! A bucket is what the first bits of a number have in common: its sign, its power of two, and one of 512 parts of that. Real values
//! fill hundreds of them; there are two million.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts by bucket; the buckets are in the order of their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Wide(BTreeMap<i32, u64>);

impl Wide {
    pub(super) fn record(&mut self, value: f64) {
        *self.0.entry(bucket_of(value)).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle value of each bucket, and its count, smallest first.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.0.iter().map(|(bucket, count)| (middle(*bucket), *count))
    }
}

/// From 1 up for what is above zero, from -1 down for what is below it; what is no number is zero.
fn bucket_of(value: f64) -> i32 {
    let size = (value.abs().to_bits() >> DROPPED_BITS) as i32 + 1;
    match value {
        value if value > 0.0 => size,
        value if value < 0.0 => -size,
        _ => 0,
    }
}

fn middle(bucket: i32) -> f64 {
    let Some(size) = bucket.unsigned_abs().checked_sub(1) else { return 0.0 };
    let lowest_bits = u64::from(size) << DROPPED_BITS;
    let half_bucket_bits = if f64::from_bits(lowest_bits).is_finite() { 1 << (DROPPED_BITS - 1) } else { 0 };
    f64::from_bits(lowest_bits + half_bucket_bits).copysign(f64::from(bucket))
}

/// Of the 52 bits behind the binary point 9 are kept: the middle of a bucket is within 1/1024 of each value in it.
const DROPPED_BITS: u32 = 52 - 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_keep_their_error() {
        let sizes = [f64::MIN_POSITIVE, 1e-9, 0.3, 1.0, 1.01, 2.0, 4.4e6, 1e300, f64::MAX];
        let negative = sizes.iter().rev().map(|size| -size);
        let values: Vec<f64> = negative.chain([0.0]).chain(sizes).collect();
        assert!(values.windows(2).all(|pair| bucket_of(pair[0]) < bucket_of(pair[1])));
        for value in values {
            let shown = middle(bucket_of(value));
            assert!((shown - value).abs() <= value.abs() / 1024.0, "{shown} for {value}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_no_problem() {
        for (value, shown) in [
            (f64::INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, f64::NEG_INFINITY),
            (f64::NAN, 0.0),
            (-0.0, 0.0),
        ] {
            assert_eq!(middle(bucket_of(value)), shown);
        }
    }
}
