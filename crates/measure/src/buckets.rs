//! The log-linear scale that histograms and sketches share: which bucket a value falls into, and what a bucket represents.
//!
//! Each octave is cut into 2^BITS equal buckets, so a bucket's middle is within 1/2^(BITS+1) of any value in it. Values below
//! 2^(BITS+1) have a bucket of their own. Every boundary of a coarse scale is one of every finer scale.

/// A scale with 2^BITS buckets per octave.
pub(crate) struct Scale<const BITS: u32>;

impl<const BITS: u32> Scale<BITS> {
    /// How many buckets there are.
    pub(crate) const BUCKET_COUNT: usize = Self::bucket_idx(VALUE_MAX) + 1;

    /// The bucket of a value; values above [`VALUE_MAX`] fall into the last one.
    #[inline]
    pub(crate) const fn bucket_idx(value: u64) -> usize {
        let value = if value > VALUE_MAX { VALUE_MAX } else { value };
        let octave = 63 - (value | ((2 << BITS) - 1)).leading_zeros();
        let shift = octave - BITS;
        ((shift as usize) << BITS) + (value >> shift) as usize
    }

    /// The smallest value of a bucket.
    pub(crate) const fn lowest(bucket_idx: usize) -> u64 {
        let shift = Self::shift(bucket_idx);
        ((bucket_idx - (shift << BITS)) as u64) << shift
    }

    /// The middle value of a bucket, which represents all of its values.
    pub(crate) const fn middle(bucket_idx: usize) -> u64 {
        let width = 1 << Self::shift(bucket_idx);
        Self::lowest(bucket_idx) + (width - 1) / 2
    }

    const fn shift(bucket_idx: usize) -> usize {
        (bucket_idx >> BITS).saturating_sub(1)
    }
}

/// Largest value with its own bucket, in nanoseconds: 73 minutes, longer than any timeout that makes sense.
pub(crate) const VALUE_MAX: u64 = (1 << 42) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    type Fine = Scale<9>;
    type Coarse = Scale<6>;

    #[test]
    fn small_values_are_exact() {
        for value in 0..1024 {
            assert_eq!(Fine::middle(Fine::bucket_idx(value)), value);
        }
    }

    #[test]
    fn buckets_join_without_gap_and_keep_their_error() {
        for bucket_idx in 0..Fine::BUCKET_COUNT {
            let lowest = Fine::lowest(bucket_idx);
            assert_eq!(Fine::bucket_idx(lowest), bucket_idx);
            if bucket_idx > 0 {
                assert_eq!(Fine::bucket_idx(lowest - 1), bucket_idx - 1);
            }
            let error = (Fine::middle(bucket_idx) - lowest) as f64;
            assert!(error <= lowest as f64 / 1000.0, "bucket {bucket_idx}");
        }
    }

    #[test]
    fn fine_buckets_nest_in_coarse_ones() {
        for bucket_idx in 0..Fine::BUCKET_COUNT {
            let coarse_idx = Coarse::bucket_idx(Fine::lowest(bucket_idx));
            assert_eq!(Coarse::bucket_idx(Fine::middle(bucket_idx)), coarse_idx);
        }
    }

    #[test]
    fn values_beyond_the_top_share_the_last_bucket() {
        assert_eq!(Fine::BUCKET_COUNT, 34 * 512);
        assert_eq!(Fine::bucket_idx(u64::MAX), Fine::BUCKET_COUNT - 1);
    }
}
