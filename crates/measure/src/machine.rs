//! The state of the machine that makes the load, second by second, as the engine reads it from the system.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The machine and this process in one second. A limit of 0 says that it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSecond {
    /// Share of all CPUs' time that was used, by any process: 0 to 1.
    pub cpu_fraction: f64,
    /// Share of all CPUs' time that the hypervisor gave to others while it was wanted here: 0 to 1.
    pub steal_fraction: f64,
    /// Descriptors that this process has open.
    pub descriptors_open: u64,
    /// Descriptors that this process may have open.
    pub descriptors_limit: u64,
    /// Local ports of the ephemeral range in use.
    pub ports_used: u64,
    /// Local ports that the range has, times the source addresses in rotation.
    pub ports_available: u64,
    /// Resident memory of this process, in bytes.
    pub process_rss_bytes: u64,
    /// CPU time that all threads of this process used in this second.
    pub process_cpu: Duration,
    /// For how long a CPU limit of its cgroups stopped this process, summed over CPUs.
    #[serde(default)]
    pub cpu_throttled: Duration,
}

/// What a CPU, or all of them, did since boot, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time used by any process or by the kernel.
    pub busy: u64,
    /// Time that the hypervisor gave to others while it was wanted here.
    pub steal: u64,
    /// All time, idle time included.
    pub all: u64,
}

impl CpuTimes {
    /// From the numbers of a line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal, and guest times, which are
    /// part of user time.
    pub fn parse(numbers: &str) -> Option<Self> {
        let mut fields = numbers.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        let mut next = || fields.next();
        let [user, nice, system, idle] = [next()?, next()?, next()?, next()?];
        let [iowait, irq, softirq, steal] = [next()?, next()?, next()?, next()?];
        let busy = user + nice + system + irq + softirq;
        Some(Self { busy, steal, all: busy + idle + iowait + steal })
    }

    /// Busy time since an earlier reading and the time stolen, as fractions of all time; `None`: no time has passed.
    pub fn fractions_since(self, before: Self) -> Option<(f64, f64)> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)? as f64;
        let fraction = |now: u64, before: u64| now.saturating_sub(before) as f64 / all;
        Some((fraction(self.busy, before.busy), fraction(self.steal, before.steal)))
    }
}

impl MachineSecond {
    /// Share of the descriptors that are open; 0 when the limit is not known.
    pub fn descriptor_fraction(&self) -> f64 {
        fraction(self.descriptors_open, self.descriptors_limit)
    }

    /// Share of the local ports that are in use; 0 when their number is not known.
    pub fn port_fraction(&self) -> f64 {
        fraction(self.ports_used, self.ports_available)
    }

    /// Joins another second: of each figure the worse, of CPU time the sum.
    pub fn join(&mut self, other: &Self) {
        self.cpu_fraction = self.cpu_fraction.max(other.cpu_fraction);
        self.steal_fraction = self.steal_fraction.max(other.steal_fraction);
        self.descriptors_open = self.descriptors_open.max(other.descriptors_open);
        self.descriptors_limit = self.descriptors_limit.max(other.descriptors_limit);
        self.ports_used = self.ports_used.max(other.ports_used);
        self.ports_available = self.ports_available.max(other.ports_available);
        self.process_rss_bytes = self.process_rss_bytes.max(other.process_rss_bytes);
        self.process_cpu += other.process_cpu;
        self.cpu_throttled = self.cpu_throttled.max(other.cpu_throttled);
    }
}

/// Sockets of other source addresses towards the same endpoint, such as those that an earlier run left in TIME_WAIT, count, too, so that more
/// may be used than there are.
fn fraction(used: u64, available: u64) -> f64 {
    if available == 0 { 0.0 } else { (used as f64 / available as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_ports_are_shown_in_use_than_there_are() {
        for (used, available, share) in [(0, 0, 0.0), (50, 100, 0.5), (200, 100, 1.0)] {
            let second =
                MachineSecond { ports_used: used, ports_available: available, ..MachineSecond::default() };
            assert_eq!(second.port_fraction(), share);
        }
    }
}
