//! What histograms and sketches share: their exact totals, and the form in which both are written.

use serde::{Deserialize, Serialize};

use crate::buckets::Scale;

/// Exact figures kept in addition to the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExactTotals {
    pub(crate) count: u64,
    pub(crate) sum_ns: u128,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
}

impl ExactTotals {
    /// Of no values.
    pub(crate) const EMPTY: Self = Self { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 };

    #[inline]
    pub(crate) fn record_n(&mut self, value_ns: u64, n: u64) {
        self.count += n;
        self.sum_ns += u128::from(value_ns) * u128::from(n);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    pub(crate) fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The quantile among buckets that are given as (value, count), smallest first; none of its values lies outside of
    /// what was recorded.
    pub(crate) fn quantile(&self, q: f64, buckets: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
        let rank = rank(q, self.count);
        if q <= 0.0 {
            return self.min();
        }
        if rank >= self.count {
            return self.max();
        }
        let mut seen = 0;
        let mut values = buckets.map(|(value_ns, count)| {
            seen += count;
            (value_ns, seen)
        });
        values.find(|&(_, seen)| seen >= rank).map(|(value_ns, _)| value_ns.clamp(self.min_ns, self.max_ns))
    }
}

/// The rank that a quantile asks for among `count` values: ceil(q * count), at least 1, at most `count`.
fn rank(q: f64, count: u64) -> u64 {
    // 0.07 * 100.0 is a little more than 7: what rounding added must not raise the rank.
    let rank = (q.clamp(0.0, 1.0) * count as f64 * (1.0 - 1e-12)).ceil() as u64;
    rank.clamp(1, count.max(1))
}

/// The written form: the totals, and the buckets that hold values as pairs of index (less the previous pair's) and count.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sparse {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: Vec<u64>,
}

impl Sparse {
    pub(crate) fn new(totals: &ExactTotals, filled: impl Iterator<Item = (usize, u64)>) -> Self {
        let mut buckets = Vec::new();
        let mut previous_idx = 0;
        for (bucket_idx, count) in filled {
            buckets.extend([(bucket_idx - previous_idx) as u64, count]);
            previous_idx = bucket_idx;
        }
        let ExactTotals { count, sum_ns, max_ns, .. } = *totals;
        Self { count, sum_ns, min_ns: totals.min().unwrap_or(0), max_ns, buckets }
    }

    /// The buckets, smallest first, with the totals that belong to them.
    pub(crate) fn read<const BITS: u32>(&self) -> Result<(ExactTotals, Vec<(usize, u64)>), SparseError> {
        let filled = self.filled(Scale::<BITS>::BUCKET_COUNT)?;
        let counted = filled.iter().try_fold(0u64, |sum, &(_, count)| sum.checked_add(count));
        if counted != Some(self.count) {
            return Err(SparseError::Totals);
        }
        let (Some(first), Some(last)) = (filled.first(), filled.last()) else {
            return Ok((ExactTotals::EMPTY, filled));
        };
        let sums = u128::from(self.min_ns) * u128::from(self.count)
            ..=u128::from(self.max_ns) * u128::from(self.count);
        let is_whole = Scale::<BITS>::bucket_idx(self.min_ns) == first.0
            && Scale::<BITS>::bucket_idx(self.max_ns) == last.0
            && sums.contains(&self.sum_ns);
        let Self { count, sum_ns, min_ns, max_ns, .. } = *self;
        if is_whole {
            Ok((ExactTotals { count, sum_ns, min_ns, max_ns }, filled))
        } else {
            Err(SparseError::Totals)
        }
    }

    fn filled(&self, bucket_count: usize) -> Result<Vec<(usize, u64)>, SparseError> {
        let (pairs, rest) = self.buckets.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(SparseError::OddLength);
        }
        let mut next_idx = 0;
        let mut filled = Vec::with_capacity(pairs.len());
        for &[step, count] in pairs {
            let is_first = filled.is_empty();
            let bucket_idx = usize::try_from(step).ok().and_then(|step| step.checked_add(next_idx));
            let bucket_idx =
                bucket_idx.filter(|&idx| idx < bucket_count && count > 0 && (step > 0 || is_first));
            next_idx = bucket_idx.ok_or(SparseError::BadBucket { step, count })?;
            filled.push((next_idx, count));
        }
        Ok(filled)
    }
}

/// Why a written histogram cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SparseError {
    #[error("histogram has a bucket index without its count")]
    OddLength,
    #[error("histogram has a bucket that cannot be: step {step}, count {count}")]
    BadBucket { step: u64, count: u64 },
    #[error("the totals of a histogram do not fit its buckets")]
    Totals,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_not_raised_by_rounding() {
        for (q, count, expected) in [
            (0.07, 100, 7),
            (0.95, 20, 19),
            (0.999, 1000, 999),
            (0.0, 9, 1),
            (1.0, 9, 9),
            (0.5, 3, 2),
            (0.5, 0, 1),
        ] {
            assert_eq!(rank(q, count), expected, "{q} of {count}");
        }
    }
}
