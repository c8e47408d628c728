//! The generator and its machine over the whole run.

use std::time::Duration;

use serde::Serialize;
use squall_measure::{MachineSecond, RunRecord};

use super::{Micros, three_decimals};

/// The generator's own state over the measured part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratorSummary {
    /// CPU time of its threads (user and system) for each request.
    pub cpu_us_per_request: Option<f64>,
    /// Open model: how late requests were sent although a connection was free, 99th percentile.
    pub schedule_lag_us_p99: Option<Micros>,
    /// Share of time in which the event loops were not waiting, 0 to 1.
    pub busy: f64,
    /// CPU time of its threads, in seconds per second: 1 is one core.
    pub cpu_cores: f64,
    /// Longest turn of an event loop.
    pub stall_us_max: Micros,
    /// Event loops.
    pub threads: u32,
    /// Several machines: the longest time between the first one's start and the last one's, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_skew_ms: Option<f64>,
}

/// The machine that made the load: the worst of any second, of CPU time the sum. A limit of 0 is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineSummary {
    /// Share of all CPUs in use, by any process, 0 to 1.
    pub cpu_max: f64,
    /// Share of all CPUs that the hypervisor gave to others, 0 to 1.
    pub steal_max: f64,
    /// Descriptors that the process had open.
    pub descriptors_open_max: u64,
    /// Descriptors that the process may have open.
    pub descriptors_limit: u64,
    /// Local ports in use.
    pub ports_used_max: u64,
    /// Local ports that there are, over all source addresses.
    pub ports_available: u64,
    /// Resident memory of the process.
    pub process_rss_bytes_max: u64,
    /// CPU time of the whole process, in seconds.
    pub process_cpu_s: f64,
    /// For how long a CPU quota stopped it, summed over CPUs.
    pub cpu_throttled_us_max: Micros,
}

pub(super) fn generator(record: &RunRecord) -> GeneratorSummary {
    let generator = &record.total.generator;
    let ended_count = record.total.ok() + record.total.failed();
    let cpu_us = generator.cpu.as_secs_f64() * 1e6;
    GeneratorSummary {
        cpu_us_per_request: (ended_count > 0).then(|| three_decimals(cpu_us / ended_count as f64)),
        schedule_lag_us_p99: generator.schedule_lag.quantile(0.99).map(Micros),
        busy: share(generator.busy, generator.wall),
        cpu_cores: share(generator.cpu, record.duration),
        stall_us_max: micros(generator.stall_max),
        threads: record.shard_count,
        start_skew_ms: record.start_skew.map(|skew| three_decimals(skew.as_secs_f64() * 1e3)),
    }
}

impl From<&MachineSecond> for MachineSummary {
    fn from(worst: &MachineSecond) -> Self {
        Self {
            cpu_max: worst.cpu_fraction,
            steal_max: worst.steal_fraction,
            descriptors_open_max: worst.descriptors_open,
            descriptors_limit: worst.descriptors_limit,
            ports_used_max: worst.ports_used,
            ports_available: worst.ports_available,
            process_rss_bytes_max: worst.process_rss_bytes,
            process_cpu_s: worst.process_cpu.as_secs_f64(),
            cpu_throttled_us_max: micros(worst.cpu_throttled),
        }
    }
}

fn micros(time: Duration) -> Micros {
    Micros(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A part of a whole; zero of nothing.
fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { three_decimals(part.as_secs_f64() / whole.as_secs_f64()) }
}
