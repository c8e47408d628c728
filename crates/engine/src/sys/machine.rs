//! The machine and this process, as `/proc` tells them once a second.

use std::fs;
use std::time::Duration;

use squall_measure::MachineSecond;

use super::clock::process_cpu;
use super::process::nofile_limit;

/// Reads the machine's figures; keeps the previous counters to take differences.
#[derive(Debug, Default)]
pub(crate) struct MachineProbe {
    cpu: CpuTimes,
    process_cpu: Duration,
}

/// Jiffies since boot.
#[derive(Debug, Clone, Copy, Default)]
struct CpuTimes {
    busy: u64,
    steal: u64,
    all: u64,
}

impl MachineProbe {
    /// Starts the first span.
    pub(crate) fn new() -> Self {
        Self { cpu: CpuTimes::read(), process_cpu: process_cpu() }
    }

    /// Ends the span: figures since the last call. `source_count`: local addresses in rotation.
    pub(crate) fn read(&mut self, source_count: u64) -> MachineSecond {
        let (cpu, process_cpu) = (CpuTimes::read(), process_cpu());
        let before = std::mem::replace(&mut self.cpu, cpu);
        let process_cpu_before = std::mem::replace(&mut self.process_cpu, process_cpu);
        let all = cpu.all.saturating_sub(before.all).max(1) as f64;
        MachineSecond {
            cpu_fraction: cpu.busy.saturating_sub(before.busy) as f64 / all,
            steal_fraction: cpu.steal.saturating_sub(before.steal) as f64 / all,
            descriptors_open: descriptors_open(),
            descriptors_limit: nofile_limit(),
            ports_used: ports_used(),
            ports_available: ports_available() * source_count.max(1),
            process_rss_bytes: process_rss_bytes(),
            process_cpu: process_cpu.saturating_sub(process_cpu_before),
        }
    }
}

impl CpuTimes {
    /// proc(5): user nice system idle iowait irq softirq steal guest guest_nice; guest time is part of user time.
    fn read() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields: Vec<u64> = text
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .take(8)
            .map_while(|f| f.parse().ok())
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = fields[..] else {
            return Self::default();
        };
        let busy = user + nice + system + irq + softirq;
        Self { busy, steal, all: busy + idle + iowait + steal }
    }
}

/// Since Linux 6.2 the directory's size is the count; before, its entries are counted.
fn descriptors_open() -> u64 {
    match fs::metadata("/proc/self/fd").map(|directory| directory.len()) {
        Ok(count) if count > 0 => count,
        _ => fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64),
    }
}

/// `TCP: inuse 5 orphan 0 tw 2 alloc 9 mem 1`: sockets in use and in TIME_WAIT.
fn ports_used() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let figure = |name| {
        let at = words.iter().position(|word| *word == name);
        at.and_then(|at| words.get(at + 1)?.parse::<u64>().ok()).unwrap_or(0)
    };
    figure("inuse") + figure("tw")
}

/// Ports of the ephemeral range; 0 where the system does not tell.
pub(crate) fn ports_available() -> u64 {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ends: Vec<u64> = text.split_whitespace().map_while(|end| end.parse().ok()).collect();
    let [first, last] = ends[..] else { return 0 };
    (last + 1).saturating_sub(first)
}

fn process_rss_bytes() -> u64 {
    resident_bytes().0
}

/// Resident memory that is of no file: what the process has taken for its data.
pub(crate) fn process_data_bytes() -> u64 {
    let (all, of_files) = resident_bytes();
    all.saturating_sub(of_files)
}

/// Resident memory, and of that what is mapped from files: statm's second and third fields, in pages.
fn resident_bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text.split_whitespace().skip(1).take(2).map_while(|f| f.parse().ok()).collect();
    let page_bytes = rustix::param::page_size() as u64;
    let [resident, of_files] = pages[..] else { return (0, 0) };
    (resident * page_bytes, of_files * page_bytes)
}
