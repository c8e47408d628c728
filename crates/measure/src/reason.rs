//! What impaired a measurement, with its numbers and in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Status;

/// One thing that was found, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// What it is.
    pub kind: ReasonKind,
    /// What it does to the verdict; [`Status::Valid`] in a note.
    pub severity: Status,
    /// The worst value that was seen, in the unit of [`ReasonKind`].
    pub worst: f64,
    /// The limit that it passed, in the same unit.
    pub limit: f64,
    /// In how many seconds; `None` when it is about the whole run.
    pub seconds_affected: Option<u32>,
    /// How many seconds the run had.
    pub seconds: u32,
}

/// What can impair a measurement. Shares are fractions of 1, times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ReasonKind {
    /// A shard worked for nearly all of its time: share.
    Busy,
    /// Open model: requests were sent late although a connection was free: p99 of the lag, time.
    ScheduleLag,
    /// Open model: arrivals that were never sent although a connection was free: share of those asked.
    Shortfall,
    /// A loop's turn was so long that answers lay unread: time.
    Stall,
    /// A shard wanted to work and did not get its core: share of its time.
    Descheduled,
    /// A CPU quota of the generator's cgroups stopped it: time in a second, summed over CPUs.
    CpuThrottled,
    /// All CPUs of the machine were in use: share.
    MachineCpu,
    /// The hypervisor gave the CPUs to others: share.
    Steal,
    /// Descriptors were nearly used up: share of the limit.
    Descriptors,
    /// Connections were opened while much of the local port range was in use: share of the range.
    Ports,
    /// Requests failed for the generator's own want of ports, descriptors, memory or files: share of all requests.
    OwnFailures,
    /// A note. Open model: arrivals waited because no connection was free; the server (or the limit of connections) is behind:
    /// how many waited.
    Backlog,
    /// Machines were lost before their load ended: how many; `seconds` is out of how many.
    MachinesLost,
    /// Foreign tools failed or missed their rate: how many; `seconds` is out of how many.
    ToolsFailed,
    /// The kernel dropped UDP datagrams that had arrived, because they were not read in time: share of all that arrived.
    DatagramsDropped,
    /// Pods reserved fewer CPUs than they may use, so that others may have had them: how many; `seconds` is out of how many machines.
    CpuNotReserved,
    /// Several pods ran on one node: how many; `seconds` is out of how many machines.
    NodeShared,
}

impl ReasonKind {
    /// Whether it says that load is missing, not that the generator was too slow or short of anything.
    pub fn is_missing_load(self) -> bool {
        matches!(self, Self::MachinesLost | Self::ToolsFailed)
    }
}

impl Reason {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self.kind {
            ReasonKind::Busy => {
                "use more threads or machines, or fewer connections; latencies include queueing in the generator"
            }
            ReasonKind::ScheduleLag => "lower the rate, add threads or machines, or use finer pacing",
            ReasonKind::Shortfall => "the generator cannot sustain this rate: add threads or machines",
            ReasonKind::Stall => {
                "give the generator dedicated cores; latencies at that moment are its own, not the target's"
            }
            ReasonKind::Descheduled => {
                "stop other programs on this machine, or use no more threads than it has free cores"
            }
            ReasonKind::CpuThrottled => {
                "raise the CPU limit (`resources`, `docker --cpus`, `CPUQuota`), or use fewer threads or more machines"
            }
            ReasonKind::MachineCpu => "run the generator on a different machine from the target",
            ReasonKind::Steal => "use a machine whose CPUs are not shared with other guests",
            ReasonKind::Descriptors => {
                "raise the limit of open files (`ulimit -n`), or use fewer connections"
            }
            ReasonKind::Ports => "spread the connections over more source addresses (`--source`)",
            ReasonKind::OwnFailures => {
                "see the errors: raise `ulimit -n`, add source addresses, or make the body file readable"
            }
            ReasonKind::Backlog => {
                "the server did not keep up with the rate; latencies include this wait; more connections (`-c`) may help"
            }
            ReasonKind::MachinesLost => {
                "the load was lower from then on: the events show which machine was lost, when and why; run again"
            }
            ReasonKind::ToolsFailed => "see each tool's output in the run's folder",
            ReasonKind::DatagramsDropped => {
                "raise net.core.rmem_max to 8388608 or more, or use more threads or machines; what was dropped looks like loss of the network"
            }
            ReasonKind::CpuNotReserved => {
                "request as much CPU as the limit in `resources`: more than was requested is not guaranteed"
            }
            ReasonKind::NodeShared => "`spread: node` places at most one pod on each node",
        }
    }
}

/// One sentence with its numbers, lowercase and without a final period.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worst, limit) = (Quantity(self.kind, self.worst), Quantity(self.kind, self.limit));
        match self.kind {
            ReasonKind::Busy => write!(f, "a generator thread was {worst} busy"),
            ReasonKind::ScheduleLag => write!(f, "requests were sent late: lag p99 {worst}"),
            ReasonKind::Shortfall => write!(f, "{worst} of the scheduled arrivals were never sent"),
            ReasonKind::Stall => write!(f, "a generator thread stalled for {worst}"),
            ReasonKind::Descheduled => {
                write!(f, "a generator thread was preempted for {worst} of the time")
            }
            ReasonKind::CpuThrottled => write!(f, "a CPU quota stopped the generator for {worst}"),
            ReasonKind::MachineCpu => write!(f, "the generator machine was {worst} busy"),
            ReasonKind::Steal => write!(f, "the hypervisor took {worst} of the CPU time"),
            ReasonKind::Descriptors => write!(f, "{worst} of the file descriptors were in use"),
            ReasonKind::Ports => {
                write!(f, "{worst} of the local ports were in use while connections were opened")
            }
            ReasonKind::OwnFailures => {
                write!(f, "{worst} of the requests failed on the generator side")
            }
            ReasonKind::Backlog => write!(f, "{worst} arrivals waited for a free connection"),
            ReasonKind::MachinesLost => {
                write!(f, "{worst} of {} machines were lost before the end", self.seconds)
            }
            ReasonKind::ToolsFailed => {
                write!(f, "{worst} of {} tools failed or missed their rate", self.seconds)
            }
            ReasonKind::DatagramsDropped => {
                write!(f, "the kernel dropped {worst} of the datagrams that arrived")
            }
            ReasonKind::CpuNotReserved => {
                write!(f, "{worst} of {} pods reserved less CPU than they may use", self.seconds)
            }
            ReasonKind::NodeShared => {
                write!(f, "{worst} of {} pods shared a node with another", self.seconds)
            }
        }?;
        if self.limit > 0.0 {
            write!(f, " (limit {limit})")?;
        }
        match self.seconds_affected {
            Some(affected) => write!(f, " in {affected} of {} seconds", self.seconds),
            None => Ok(()),
        }
    }
}

/// A value in the unit of its kind.
struct Quantity(ReasonKind, f64);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kind, value) = *self;
        match kind {
            ReasonKind::ScheduleLag | ReasonKind::Stall | ReasonKind::CpuThrottled => match value {
                ..0.01 => write!(f, "{:.2} ms", value * 1e3),
                ..1.0 => write!(f, "{:.0} ms", value * 1e3),
                _ => write!(f, "{value:.2} s"),
            },
            ReasonKind::Backlog
            | ReasonKind::MachinesLost
            | ReasonKind::ToolsFailed
            | ReasonKind::CpuNotReserved
            | ReasonKind::NodeShared => write!(f, "{value:.0}"),
            ReasonKind::OwnFailures | ReasonKind::Shortfall | ReasonKind::DatagramsDropped => {
                write!(f, "{:.2} %", value * 100.0)
            }
            _ => write!(f, "{:.0} %", value * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use ReasonKind::*;

    use super::*;

    #[test]
    fn reasons_read_as_sentences() {
        let reason = |kind, worst, limit, seconds_affected| {
            Reason { kind, severity: Status::Suspect, worst, limit, seconds_affected, seconds: 10 }
                .to_string()
        };
        for (sentence, expected) in [
            (
                reason(Busy, 0.974, 0.9, Some(7)),
                "a generator thread was 97 % busy (limit 90 %) in 7 of 10 seconds",
            ),
            (
                reason(ScheduleLag, 0.0021, 0.0005, Some(1)),
                "requests were sent late: lag p99 2.10 ms (limit 0.50 ms) in 1 of 10 seconds",
            ),
            (
                reason(Shortfall, 0.12345, 0.05, None),
                "12.35 % of the scheduled arrivals were never sent (limit 5.00 %)",
            ),
            (
                reason(Stall, 1.5, 0.01, Some(1)),
                "a generator thread stalled for 1.50 s (limit 10 ms) in 1 of 10 seconds",
            ),
            (
                reason(CpuThrottled, 0.43, 0.01, Some(7)),
                "a CPU quota stopped the generator for 430 ms (limit 10 ms) in 7 of 10 seconds",
            ),
            (reason(NodeShared, 4.0, 0.0, None), "4 of 10 pods shared a node with another"),
            (reason(OwnFailures, 0.0012, 0.0, None), "0.12 % of the requests failed on the generator side"),
            (reason(MachinesLost, 2.0, 0.0, None), "2 of 10 machines were lost before the end"),
            (
                reason(Backlog, 250.0, 100.0, Some(2)),
                "250 arrivals waited for a free connection (limit 100) in 2 of 10 seconds",
            ),
        ] {
            assert_eq!(sentence, expected);
        }
    }
}
