//! Which part of a script's work is a shard's: this process's part of the whole run, dealt out to its shards in turn.

use squall_script::Stripes;

use squall_plan::ShardPart;

/// A shard's part.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// This process's part of the run.
    pub(super) process: Stripes,
    shard_idx: u64,
    pub(super) shard_count: u64,
}

impl Part {
    /// `segment`: what the script's own options say, which goes before the load's part.
    pub(super) fn new(part: &ShardPart, segment: Option<&Stripes>) -> Self {
        let of_load = || {
            let [first, width, cycle] =
                [part.segment.first, part.segment.width, part.segment.of].map(u64::from);
            Stripes::run(first, width, cycle)
        };
        Self {
            process: segment.cloned().unwrap_or_else(of_load),
            shard_idx: u64::from(part.shard_idx),
            shard_count: u64::from(part.shard_count),
        }
    }

    pub(super) fn is_first(&self) -> bool {
        self.shard_idx == 0
    }

    /// How many of the run's `total` items are this shard's.
    pub(super) fn count_of(&self, total: u64) -> u64 {
        let own = self.process.part_of(total);
        own / self.shard_count + u64::from(self.shard_idx < own % self.shard_count)
    }

    /// Of this process's items, the number of this shard's `own_idx`-th one; both from 0.
    pub(super) fn process_idx(&self, own_idx: u64) -> u64 {
        own_idx * self.shard_count + self.shard_idx
    }

    /// This shard's share of a rate.
    pub(super) fn fraction(&self) -> f64 {
        self.process.fraction() / self.shard_count as f64
    }
}

#[cfg(test)]
mod tests {
    use squall_plan::Segment;

    use super::*;

    #[test]
    fn the_shards_of_all_processes_make_the_whole() {
        for total in [0, 1, 5, 17, 100] {
            let mut count = 0;
            for first in 0..3 {
                for shard_idx in 0..2 {
                    let segment = Segment { first, width: 1, of: 3 };
                    count +=
                        Part::new(&ShardPart { shard_idx, shard_count: 2, segment }, None).count_of(total);
                }
            }
            assert_eq!(count, total);
        }
    }
}
