//! Evenly spread numbers: "random" choices whose distribution is exact after few draws, and the same in every run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The golden-ratio (Weyl) sequence: the k-th draw is `k * 0x9E3779B97F4A7C15 mod 2^64`, divided by `2^64`.
///
/// Of any n draws in a row, the share below x differs from x by less than about `ln(n) / n`, where independent draws differ
/// by `1 / sqrt(n)`: a client's percentiles can be checked against the formula without a long run.
#[derive(Debug, Default)]
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    /// The next number, in `[0, 1)`.
    pub(crate) fn draw(&self) -> f64 {
        let scrambled = self.count().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (scrambled >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next index, from 1 on.
    pub(crate) fn count(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

/// Deterministic noise, for bodies: SplitMix64 (Steele, Lea, Flood 2014), little-endian words.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    });
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_uniform_law_closely() {
        let sequence = Sequence::default();
        let mut draws: Vec<f64> = (0..1000).map(|_| sequence.draw()).collect();
        draws.sort_by(f64::total_cmp);
        for (rank, draw) in draws.iter().enumerate() {
            let expected = rank as f64 / 1000.0;
            assert!((draw - expected).abs() < 0.005, "rank {rank} is {draw}");
        }
    }

    #[test]
    fn noise_is_splitmix64() {
        // The first outputs for seed 0, as published with the algorithm.
        let expected = [0xE220_A839_7B1D_CDAF_u64, 0x6E78_9E6A_A1B9_65F4].map(u64::to_le_bytes).concat();
        assert_eq!(noise(0, 16), expected);
        assert_eq!(noise(0, 5), expected[..5]);
    }
}
