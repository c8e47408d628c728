//! A log-linear histogram of nanoseconds: 0.1 % precise, bounded, mergeable.
//!
//! Recording, merging and clearing never allocate. The counts of an octave fill one page of 4 KiB, so a histogram costs
//! memory only for the octaves in which values came.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::buckets::{self, VALUE_MAX};

/// Counts of values by size. Reported values are within 0.1 % of the recorded ones; minimum, maximum, sum and count are exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    clamped_count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// An empty histogram. Its memory is reserved now and touched as values come.
    pub fn new() -> Self {
        Self {
            counts: vec![0; Scale::BUCKET_COUNT].into_boxed_slice(),
            count: 0,
            clamped_count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `n` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.counts[Scale::bucket_idx(value_ns)] += n;
        self.count += n;
        self.clamped_count += if value_ns > VALUE_MAX { n } else { 0 };
        self.sum_ns += u128::from(value_ns) * u128::from(n);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let touched = other.touched();
        for (mine, theirs) in self.counts[touched.clone()].iter_mut().zip(&other.counts[touched]) {
            *mine += theirs;
        }
        self.count += other.count;
        self.clamped_count += other.clamped_count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets all values and keeps the memory; costs as much as the range of values is wide.
    pub fn clear(&mut self) {
        let touched = self.touched();
        self.counts[touched].fill(0);
        self.count = 0;
        self.clamped_count = 0;
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many values were too large for a bucket of their own (73 minutes): quantiles among them fall to the maximum.
    pub fn clamped_count(&self) -> u64 {
        self.clamped_count
    }

    /// Sum of all values, exact.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// Largest value, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Mean in nanoseconds; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The smallest value that at least ceil(`q` * count) values do not exceed, to 0.1 %; `None` when empty.
    /// 0 gives the minimum and 1 the maximum, both exact.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = buckets::rank(q, self.count);
        if rank == self.count {
            return self.max();
        }
        let mut seen = 0;
        self.buckets().find_map(|(value_ns, count)| {
            seen += count;
            (seen >= rank).then_some(value_ns)
        })
    }

    /// The buckets that hold values, smallest first: the value that stands for each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.filled().map(|(bucket_idx, count)| (self.value_of(bucket_idx), count))
    }

    /// The middle of a bucket, but never outside of what was recorded.
    fn value_of(&self, bucket_idx: usize) -> u64 {
        Scale::middle(bucket_idx).clamp(self.min_ns, self.max_ns)
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let touched = self.touched();
        let counts = self.counts[touched.clone()].iter().copied();
        touched.zip(counts).filter(|&(_, count)| count > 0)
    }

    /// The range of buckets outside of which all counts are zero.
    fn touched(&self) -> std::ops::Range<usize> {
        if self.is_empty() {
            return 0..0;
        }
        Scale::bucket_idx(self.min_ns)..Scale::bucket_idx(self.max_ns) + 1
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

type Scale = buckets::Scale<9>;

/// What a histogram is when written: only the buckets that hold values, as pairs of index (less the previous pair's) and count.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sparse {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    clamped_count: u64,
    buckets: Vec<u64>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut previous_idx = 0;
        let mut buckets = Vec::new();
        for (bucket_idx, count) in self.filled() {
            buckets.extend([(bucket_idx - previous_idx) as u64, count]);
            previous_idx = bucket_idx;
        }
        let sparse = Sparse {
            count: self.count,
            sum_ns: self.sum_ns,
            min_ns: self.min().unwrap_or(0),
            max_ns: self.max_ns,
            clamped_count: self.clamped_count,
            buckets,
        };
        sparse.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_sparse(&Sparse::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Histogram {
    fn from_sparse(sparse: &Sparse) -> Result<Self, SparseError> {
        let mut histogram = Self::new();
        let mut bucket_idx = 0;
        let (pairs, rest) = sparse.buckets.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(SparseError::OddLength);
        }
        for &[step, count] in pairs {
            bucket_idx = usize::try_from(step)
                .ok()
                .and_then(|step| step.checked_add(bucket_idx))
                .filter(|&idx| idx < Scale::BUCKET_COUNT && count > 0)
                .ok_or(SparseError::BadBucket { step, count })?;
            histogram.counts[bucket_idx] =
                histogram.counts[bucket_idx].checked_add(count).ok_or(SparseError::Totals)?;
            histogram.count = histogram.count.checked_add(count).ok_or(SparseError::Totals)?;
        }
        histogram.with_totals(sparse)
    }

    /// Takes over the exact totals, when they can belong to the buckets that were read.
    fn with_totals(mut self, sparse: &Sparse) -> Result<Self, SparseError> {
        if self.count != sparse.count {
            return Err(SparseError::Totals);
        }
        if self.is_empty() {
            return Ok(self);
        }
        (self.min_ns, self.max_ns) = (0, u64::MAX);
        let first = self.filled().next().map(|(idx, _)| idx);
        let last = self.filled().last().map(|(idx, _)| idx);
        let holds = |value| Some(Scale::bucket_idx(value));
        let sums = u128::from(sparse.min_ns) * u128::from(self.count)
            ..=u128::from(sparse.max_ns) * u128::from(self.count);
        if holds(sparse.min_ns) != first || holds(sparse.max_ns) != last || !sums.contains(&sparse.sum_ns) {
            return Err(SparseError::Totals);
        }
        self.clamped_count = sparse.clamped_count;
        self.sum_ns = sparse.sum_ns;
        (self.min_ns, self.max_ns) = (sparse.min_ns, sparse.max_ns);
        Ok(self)
    }
}

/// Why a written histogram cannot be read.
#[derive(Debug, thiserror::Error)]
enum SparseError {
    #[error("histogram has a bucket index without its count")]
    OddLength,
    #[error("histogram has a bucket that cannot be: step {step}, count {count}")]
    BadBucket { step: u64, count: u64 },
    #[error("histogram's totals do not fit its buckets")]
    Totals,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
