//! How many event loops a run has.

use std::num::NonZeroU32;
use std::thread;

use squall_plan::{Load, Plan, ReplayPace, What, When};

pub(crate) fn thread_count(plan: &Plan) -> u32 {
    plan.threads.map_or_else(usable_cpu_count, NonZeroU32::get)
}

/// CPUs that this process may use, by affinity and cgroup quota.
pub(crate) fn usable_cpu_count() -> u32 {
    thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// No more shards than connections, users or requests. A recording that is replayed by a rate has one: its sessions are not divided evenly,
/// and a rate would be.
pub(crate) fn shard_count(load: &Load, thread_count: u32) -> u32 {
    if matches!(&load.what, What::Replay(replay) if replay.pace == ReplayPace::Load)
        && matches!(load.when, When::Open { .. })
    {
        return 1;
    }
    let part_count_max = load.segment.part_of(load.part_count_max());
    u64::from(thread_count).min(part_count_max).max(1) as u32
}

/// Shards of all loads together.
pub(crate) fn shard_count_all(plan: &Plan) -> u64 {
    plan.loads.iter().map(|load| u64::from(shard_count(load, thread_count(plan)))).sum()
}
