//! What each machine made of each load, over time: the smallest parts of a run, from which the series of a load, of a machine and
//! of a kind of load are added up.
//!
//! Owns: the bound on how many points they take. Never: exact percentiles, which the totals of [`Part`](crate::Part) have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use squall_plan::limits::{SHARE_COUNT_MAX, SHARE_POINT_COUNT_MAX, SHARE_POINT_COUNT_MAX_EACH};

use crate::run::OPEN_SECOND_COUNT_MAX;
use crate::{Series, SeriesPoint, Snapshot};

/// What one machine made of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The load's name.
    pub load: String,
    /// The machine's name.
    pub machine: String,
    /// When the first point begins, in seconds after the run's start.
    pub at_s: f64,
    /// Its figures over time, without the state of the machine.
    pub series: Series,
}

/// The shares of a running run, by machine and load.
#[derive(Debug, Clone, Default)]
pub struct ShareRecorder {
    shares: BTreeMap<(usize, usize), OpenShare>,
    point_count_max: usize,
}

#[derive(Debug, Clone)]
struct OpenShare {
    share: Share,
    /// Seconds that other shards may still report.
    open_seconds: BTreeMap<u32, SeriesPoint>,
}

impl Share {
    /// The sum of shares: when its first point begins, and its points. `None` where there is no share.
    pub fn sum<'a>(shares: impl Iterator<Item = &'a Self> + Clone) -> Option<(f64, Series)> {
        let seconds_per_point = shares.clone().map(|share| share.series.seconds_per_point).max()?;
        let at_s = shares.clone().map(|share| share.at_s).fold(f64::INFINITY, f64::min);
        let mut sum = Series { seconds_per_point, points: Vec::new() };
        for share in shares {
            let series = share.series.clone().with_points_of(seconds_per_point);
            sum.lay(&series.points, ((share.at_s - at_s) / f64::from(seconds_per_point)).round() as usize);
        }
        Some((at_s, sum))
    }
}

impl ShareRecorder {
    /// A recorder of `share_count` shares. One share is the whole run, and of more than [`SHARE_COUNT_MAX`] none is kept.
    pub fn new(share_count: usize) -> Self {
        let is_kept = (2..=SHARE_COUNT_MAX).contains(&share_count);
        let point_count_max = SHARE_POINT_COUNT_MAX / share_count.max(1);
        Self {
            shares: BTreeMap::new(),
            point_count_max: if is_kept { point_count_max.min(SHARE_POINT_COUNT_MAX_EACH) } else { 0 },
        }
    }

    /// A machine begins its share of a load, `at_s` seconds after the run's start.
    pub fn begin(&mut self, key: (usize, usize), (machine, load): (&str, &str), at_s: f64) {
        if self.point_count_max > 0 {
            let (load, machine) = (load.to_owned(), machine.to_owned());
            let share = Share { load, machine, at_s, series: Series::new() };
            self.shares.entry(key).or_insert(OpenShare { share, open_seconds: BTreeMap::new() });
        }
    }

    /// Adds what a shard did in a second of its load.
    pub fn absorb(&mut self, key: (usize, usize), second_idx: u32, snapshot: &Snapshot) {
        let point_count_max = self.point_count_max;
        if let Some(open) = self.shares.get_mut(&key) {
            open.open_seconds.entry(second_idx).or_default().absorb(snapshot);
            if open.open_seconds.len() > OPEN_SECOND_COUNT_MAX {
                open.close(second_idx.saturating_sub(1), point_count_max);
            }
        }
    }

    /// All shards have reported the seconds up to `second_idx`.
    pub fn close(&mut self, key: (usize, usize), second_idx: u32) {
        let point_count_max = self.point_count_max;
        if let Some(open) = self.shares.get_mut(&key) {
            open.close(second_idx, point_count_max);
        }
    }

    /// The shares so far, with the seconds that are closed.
    pub fn shares(&self) -> impl Iterator<Item = &Share> + Clone {
        self.shares.values().map(|open| &open.share)
    }

    /// Ends them all.
    pub(crate) fn finish(mut self) -> Vec<Share> {
        let point_count_max = self.point_count_max;
        self.shares.values_mut().for_each(|open| open.close(u32::MAX, point_count_max));
        self.shares
            .into_values()
            .map(|open| open.share)
            .filter(|share| !share.series.points.is_empty())
            .collect()
    }
}

impl OpenShare {
    fn close(&mut self, second_idx: u32, point_count_max: usize) {
        let series = &mut self.share.series;
        while let Some(entry) = self.open_seconds.first_entry().filter(|entry| *entry.key() <= second_idx) {
            let (second_idx, second) = entry.remove_entry();
            if !series.add_remnant(second_idx, &second) {
                series.add(second_idx, &second);
            }
        }
        if series.points.len() > point_count_max {
            *series = series.coarsened(point_count_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn second(ok: u64) -> Snapshot {
        let mut snapshot = Snapshot::new(1, false);
        snapshot.rows[0].ok = ok;
        snapshot.generator.wall = Duration::from_secs(1);
        snapshot.generator.connections_open = 5;
        snapshot
    }

    /// A share of so many seconds, each reported by two shards with so many requests.
    fn record(recorder: &mut ShareRecorder, key: (usize, usize), at_s: f64, second_count: u32, ok: u64) {
        recorder.begin(key, (&format!("m{}", key.0), &format!("l{}", key.1)), at_s);
        for second_idx in 0..second_count {
            recorder.absorb(key, second_idx, &second(ok));
            recorder.absorb(key, second_idx, &second(ok));
            recorder.close(key, second_idx);
        }
    }

    fn counts(series: &Series) -> Vec<u64> {
        series.points.iter().map(|point| point.ok).collect()
    }

    #[test]
    fn shares_add_up_where_they_overlap() {
        let mut recorder = ShareRecorder::new(3);
        record(&mut recorder, (0, 0), 2.0, 3, 10);
        record(&mut recorder, (1, 0), 2.0, 3, 1);
        record(&mut recorder, (0, 1), 4.0, 3, 100);
        let shares = recorder.finish();
        let sum = |belongs: fn(&&Share) -> bool| {
            let (at_s, series) = Share::sum(shares.iter().filter(belongs)).unwrap();
            (at_s, counts(&series), series.points.iter().map(|point| point.connections_open).max().unwrap())
        };
        assert_eq!(sum(|share| share.load == "l0"), (2.0, vec![22, 22, 22], 20));
        assert_eq!(sum(|share| share.machine == "m0"), (2.0, vec![20, 20, 220, 200, 200], 20));
        assert_eq!(Share::sum(shares.iter().filter(|share| share.load == "none")), None);
    }

    #[test]
    fn points_are_bounded_and_nothing_is_lost() {
        for share_count in [2, 3, 100, SHARE_COUNT_MAX] {
            let mut recorder = ShareRecorder::new(share_count);
            record(&mut recorder, (0, 0), 0.0, 2_000, 1);
            let shares = recorder.finish();
            assert!(shares[0].series.points.len() * share_count <= SHARE_POINT_COUNT_MAX, "{share_count}");
            assert_eq!(counts(&shares[0].series).iter().sum::<u64>(), 4_000, "{share_count}");
        }
        for share_count in [0, 1, SHARE_COUNT_MAX + 1] {
            let mut recorder = ShareRecorder::new(share_count);
            record(&mut recorder, (0, 0), 0.0, 2, 1);
            assert_eq!(recorder.finish(), [], "{share_count}");
        }
    }

    #[test]
    fn a_second_that_is_reported_late_is_added_to_its_point() {
        let mut recorder = ShareRecorder::new(2);
        record(&mut recorder, (0, 0), 0.0, 2, 1);
        recorder.absorb((0, 0), 0, &second(7));
        let shares = recorder.finish();
        assert_eq!(counts(&shares[0].series), [9, 2]);
    }
}
