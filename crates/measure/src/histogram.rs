//! A log-linear histogram of nanoseconds: 0.1 % precise, bounded, mergeable.
//!
//! Recording, merging and clearing never allocate. The counts of an octave fill one page of 4 KiB, so a histogram costs
//! memory only for the octaves in which values came.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::buckets;
use crate::sparse::{ExactTotals, Sparse};

/// Counts of values by size. Reported values are within 0.1 % of the recorded ones; minimum, maximum, sum and count are exact.
///
/// Values above 73 minutes share the last bucket: quantiles among them are the bucket's, their minimum, maximum and sum exact.
#[derive(PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    totals: ExactTotals,
}

impl Histogram {
    /// Values below this have a bucket of their own.
    pub(crate) const EXACT_BELOW: u64 = 2 << BITS;

    /// An empty histogram. Its memory is reserved now and touched as values come.
    pub fn new() -> Self {
        Self { counts: vec![0; Scale::BUCKET_COUNT].into_boxed_slice(), totals: ExactTotals::EMPTY }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `n` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        if n > 0 {
            self.counts[Scale::bucket_idx(value_ns)] += n;
            self.totals.record_n(value_ns, n);
        }
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let touched = other.touched();
        for (mine, theirs) in self.counts[touched.clone()].iter_mut().zip(&other.counts[touched]) {
            *mine += theirs;
        }
        self.totals.merge(&other.totals);
    }

    /// Forgets all values and keeps the memory; costs as much as the range of values is wide.
    pub fn clear(&mut self) {
        let touched = self.touched();
        self.counts[touched].fill(0);
        self.totals = ExactTotals::EMPTY;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.totals.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.totals.count == 0
    }

    /// Sum of all values, exact.
    pub fn sum_ns(&self) -> u128 {
        self.totals.sum_ns
    }

    /// Smallest value in nanoseconds, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        self.totals.min()
    }

    /// Largest value in nanoseconds, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        self.totals.max()
    }

    /// Mean in nanoseconds; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        self.totals.mean()
    }

    /// The smallest value (in nanoseconds) that at least ceil(`q` * count) values do not exceed, to 0.1 %; `None` when
    /// empty. 0 gives the minimum and 1 the maximum, both exact.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.totals.quantile(q, self.buckets())
    }

    /// The buckets that hold values, smallest first: the middle value of each in nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.filled().map(|(bucket_idx, count)| (Scale::middle(bucket_idx), count))
    }

    pub(crate) fn totals(&self) -> &ExactTotals {
        &self.totals
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let touched = self.touched();
        let counts = self.counts[touched.clone()].iter().copied();
        touched.zip(counts).filter(|&(_, count)| count > 0)
    }

    /// The range of buckets outside of which all counts are zero.
    fn touched(&self) -> Range<usize> {
        match (self.min(), self.max()) {
            (Some(min_ns), Some(max_ns)) => Scale::bucket_idx(min_ns)..Scale::bucket_idx(max_ns) + 1,
            _ => 0..0,
        }
    }
}

/// Copies only what holds values, so that the copy takes no more memory than the original.
impl Clone for Histogram {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.merge(self);
        copy
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The totals and the buckets that hold values, not seventeen thousand zeros.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled: Vec<_> = self.filled().collect();
        f.debug_struct("Histogram").field("totals", &self.totals).field("filled", &filled).finish()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Sparse::new(&self.totals, self.filled()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let (totals, filled) = sparse.read::<BITS>().map_err(de::Error::custom)?;
        let mut histogram = Self { totals, ..Self::new() };
        for (bucket_idx, count) in filled {
            histogram.counts[bucket_idx] = count;
        }
        Ok(histogram)
    }
}

/// 512 buckets per octave: the middle of a bucket is within 1/1024 of each value in it.
const BITS: u32 = 9;

type Scale = buckets::Scale<BITS>;
