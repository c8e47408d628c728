//! A load at levels: where throughput stops growing.

/// A level and the throughput that it reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Connections, or requests per second asked for.
    pub level: f64,
    /// Requests per second that ended well.
    pub rate_per_s: f64,
}

/// The knee: the lowest level that reaches nine tenths of the most throughput of any level; more load than that mostly waits. `None`
/// while throughput still grows at the end, or with fewer than three levels.
pub fn knee(levels: &[Level]) -> Option<Level> {
    let most = levels.iter().map(|level| level.rate_per_s).fold(0.0, f64::max);
    let last = levels.last()?;
    let before_last = levels.iter().rev().nth(1)?;
    let is_growing = last.rate_per_s >= most && last.rate_per_s > before_last.rate_per_s * GROWTH_MIN;
    if levels.len() < 3 || most <= 0.0 || is_growing {
        return None;
    }
    levels.iter().find(|level| level.rate_per_s >= most * SHARE_OF_MOST).copied()
}

/// What counts as the most: measurements of the same level differ by a few percent.
const SHARE_OF_MOST: f64 = 0.9;

/// Less than this from the last level but one to the last is no growth.
const GROWTH_MIN: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn knee_of(rates: &[(f64, f64)]) -> Option<f64> {
        let levels: Vec<Level> =
            rates.iter().map(|&(level, rate_per_s)| Level { level, rate_per_s }).collect();
        knee(&levels).map(|level| level.level)
    }

    #[test]
    fn the_knee_is_where_more_load_brings_no_more_throughput() {
        assert_eq!(
            knee_of(&[(1.0, 100.0), (2.0, 200.0), (4.0, 380.0), (8.0, 400.0), (16.0, 390.0)]),
            Some(4.0)
        );
        assert_eq!(knee_of(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)]), None, "it still grows");
        assert_eq!(knee_of(&[(1.0, 100.0), (2.0, 101.0), (4.0, 60.0)]), Some(1.0), "it collapses");
        assert_eq!(knee_of(&[(1.0, 100.0)]), None);
        assert_eq!(knee_of(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]), None);
    }
}
