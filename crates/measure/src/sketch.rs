//! A small histogram for one point of a series: 0.8 % precise, a few hundred bytes to a few kilobytes, mergeable.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Histogram;
use crate::buckets;
use crate::sparse::{ExactTotals, Sparse};

/// Counts of values by size, to 0.8 %; minimum, maximum, sum and count are exact. Only buckets that hold values take memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    buckets: Vec<Bucket>,
    totals: ExactTotals,
}

impl Sketch {
    /// An empty sketch.
    pub fn new() -> Self {
        Self { buckets: Vec::new(), totals: ExactTotals::EMPTY }
    }

    /// Adds all values of another sketch.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut mine, mut theirs) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            merged.push(match a.idx().cmp(&b.idx()) {
                std::cmp::Ordering::Less => **a,
                std::cmp::Ordering::Greater => **b,
                std::cmp::Ordering::Equal => Bucket::new(a.idx(), a.count() + b.count()),
            });
            let (a_idx, b_idx) = (a.idx(), b.idx());
            mine.next_if(|_| a_idx <= b_idx);
            theirs.next_if(|_| b_idx <= a_idx);
        }
        merged.extend(mine);
        merged.extend(theirs);
        merged.shrink_to_fit();
        self.buckets = merged;
        self.totals.merge(&other.totals);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.totals.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.totals.count == 0
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

    /// The smallest value (in nanoseconds) that at least ceil(`q` * count) values do not exceed, to 0.8 %; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.totals.quantile(q, self.buckets())
    }

    /// The buckets that hold values, smallest first: the middle value of each in nanoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().map(|bucket| (Scale::middle(bucket.idx()), bucket.count()))
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&Histogram> for Sketch {
    fn from(histogram: &Histogram) -> Self {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (value_ns, count) in histogram.buckets() {
            let idx = Scale::bucket_idx(value_ns);
            match buckets.last_mut().filter(|last| last.idx() == idx) {
                Some(last) => *last = Bucket::new(idx, last.count() + count),
                None => buckets.push(Bucket::new(idx, count)),
            }
        }
        buckets.shrink_to_fit();
        Self { buckets, totals: *histogram.totals() }
    }
}

impl Serialize for Sketch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let filled = self.buckets.iter().map(|bucket| (bucket.idx(), bucket.count()));
        Sparse::new(&self.totals, filled).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let (totals, filled) = sparse.read::<BITS>().map_err(de::Error::custom)?;
        Ok(Self { buckets: filled.into_iter().map(|(idx, count)| Bucket::new(idx, count)).collect(), totals })
    }
}

/// 64 buckets per octave: the middle of a bucket is within 1/128 of each value in it.
const BITS: u32 = 6;

type Scale = buckets::Scale<BITS>;

/// A bucket's index in the upper 12 bits and its count in the lower 52: thousands of points are kept, so size matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bucket(u64);

const COUNT_BITS: u32 = 52;
const _: () = assert!(Scale::BUCKET_COUNT <= 1 << (64 - COUNT_BITS));

impl Bucket {
    /// A count of 2^52 or more stays at the most that fits: at a million requests per second that takes 142 years.
    fn new(idx: usize, count: u64) -> Self {
        Self((idx as u64) << COUNT_BITS | count.min((1 << COUNT_BITS) - 1))
    }

    fn idx(self) -> usize {
        (self.0 >> COUNT_BITS) as usize
    }

    fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }
}
