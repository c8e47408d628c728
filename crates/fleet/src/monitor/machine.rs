//! This machine from `/proc`: CPUs, memory, sockets, network interfaces, and the processes asked for.
//!
//! Owns: which series there are; each has a number, sent with its name when it first has a value. One sample costs some
//! hundred microseconds of CPU (`docs/monitors.md`).

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use procfs::{Current, Meminfo};
use squall_measure::{CpuTimes, MonitorUnit};

use super::process::{self, Processes};
use super::rates::Rates;
use super::sample::Sample;
use crate::protocol::SeriesName;

/// Samples this machine.
#[derive(Debug, Default)]
pub(crate) struct MachineMonitor {
    numbers: HashMap<String, u32>,
    cpus: HashMap<String, CpuTimes>,
    rates: Rates,
    processes: Vec<Processes>,
    restarts: Vec<String>,
}

impl MachineMonitor {
    /// Watches the machine; no process yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Watches these processes, by name or pid, from now on.
    pub(crate) fn watch(&mut self, processes: Vec<String>) {
        self.processes = processes.into_iter().map(Processes::new).collect();
    }

    /// Names of series that are new, and the values of all that have one now.
    pub(crate) fn sample(&mut self) -> (Vec<SeriesName>, Vec<(u32, f64)>) {
        let mut sample = Sample {
            numbers: &mut self.numbers,
            rates: &mut self.rates,
            now: Instant::now(),
            new: Vec::new(),
            values: Vec::new(),
        };
        cpus(&mut self.cpus, &mut sample);
        memory(&mut sample);
        sockets(&mut sample);
        interfaces(&mut sample);
        for processes in &mut self.processes {
            self.restarts.extend(processes.sample(&mut sample));
        }
        (sample.new, sample.values)
    }

    /// Processes that were started again since the last call, as sentences.
    pub(crate) fn take_restarts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.restarts)
    }
}

/// Those of these processes that do not run, each with the similar name of one that does.
pub(crate) fn absent_processes(names: &[String]) -> Vec<(String, Option<String>)> {
    let absent = names.iter().filter(|name| !process::is_running(name));
    absent.map(|name| (name.clone(), process::similar_to(name))).collect()
}

/// The sum of all CPUs, and each of them.
fn cpus(before: &mut HashMap<String, CpuTimes>, sample: &mut Sample<'_>) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    for line in text.lines().take_while(|line| line.starts_with("cpu")).take(CPU_LINE_COUNT_MAX) {
        let Some((cpu, numbers)) = line.split_once(' ') else { continue };
        let Some(times) = CpuTimes::parse(numbers) else { continue };
        let last = before.insert(cpu.to_owned(), times);
        let Some((busy, steal)) = last.and_then(|last| times.fractions_since(last)) else { continue };
        let name = cpu.replacen("cpu", "cpu ", 1);
        sample.add(name.trim_end(), MonitorUnit::Percent, busy * 100.0);
        if cpu == "cpu" {
            sample.add("steal", MonitorUnit::Percent, steal * 100.0);
        }
    }
}

fn memory(sample: &mut Sample<'_>) {
    let Ok(memory) = Meminfo::current() else { return };
    if let Some(available) = memory.mem_available {
        sample.add("memory", MonitorUnit::Bytes, memory.mem_total.saturating_sub(available) as f64);
    }
}

fn sockets(sample: &mut Sample<'_>) {
    let sockstat = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let figure = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse::<f64>().ok()
    };
    let in_use = figure("inuse").unwrap_or(0.0);
    if let Some(waiting) = figure("tw") {
        sample.add("sockets time-wait", MonitorUnit::Count, waiting);
    }
    let tcp = table("/proc/net/snmp", "Tcp:");
    if let Some(&established) = tcp.get("CurrEstab") {
        sample.add("sockets established", MonitorUnit::Count, established);
    }
    // Reading each socket's line costs the kernel a microsecond.
    if in_use <= SOCKET_COUNT_READ_MAX {
        for (state, count) in states() {
            sample.add(&format!("sockets {state}"), MonitorUnit::Count, count);
        }
    }
    for (name, counter) in [("retransmits", "RetransSegs"), ("connections accepted", "PassiveOpens")] {
        if let Some(&value) = tcp.get(counter) {
            sample.add_rate(name, value);
        }
    }
    let extended = table("/proc/net/netstat", "TcpExt:");
    for (name, counter) in
        [("accept-queue overflows", "ListenOverflows"), ("accept-queue drops", "ListenDrops")]
    {
        if let Some(&value) = extended.get(counter) {
            sample.add_rate(name, value);
        }
    }
}

/// Sockets by the states that `CurrEstab` does not tell; none of a state is a value too.
fn states() -> Vec<(&'static str, f64)> {
    let mut counts = STATES.map(|(_, name)| (name, 0.0));
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(path).unwrap_or_default();
        for code in text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3)) {
            if let Some(at) = STATES.iter().position(|(known, _)| *known == code) {
                counts[at].1 += 1.0;
            }
        }
    }
    counts.to_vec()
}

fn interfaces(sample: &mut Sample<'_>) {
    let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    for (name, figures) in text.lines().filter_map(|line| line.split_once(':')) {
        let figures: Vec<f64> = figures.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let (Some(&received), Some(&sent)) = (figures.first(), figures.get(8)) else { continue };
        if received + sent > 0.0 {
            sample.add_rate(&format!("{} bytes received", name.trim()), received);
            sample.add_rate(&format!("{} bytes sent", name.trim()), sent);
        }
    }
}

/// A table of `/proc/net/snmp` or `netstat`: a line of names, then a line of values, both with the same first word.
fn table(path: &str, title: &str) -> HashMap<String, f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(title));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// The kernel's numbers of states (include/net/tcp_states.h), in hexadecimal.
const STATES: [(&str, &str); 7] = [
    ("02", "syn-sent"),
    ("03", "syn-received"),
    ("04", "fin-wait-1"),
    ("05", "fin-wait-2"),
    ("08", "close-wait"),
    ("09", "last-ack"),
    ("0A", "listening"),
];

/// Beyond so many sockets their states are not counted one by one: that would cost more than a percent of a CPU.
const SOCKET_COUNT_READ_MAX: f64 = 5000.0;

/// Beyond so many CPUs only their sum is reported.
const CPU_LINE_COUNT_MAX: usize = 129;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The values of the second of two samples, by name.
    fn sampled(processes: &[String]) -> HashMap<String, f64> {
        let mut monitor = MachineMonitor::new();
        monitor.watch(processes.to_vec());
        let (mut names, _) = monitor.sample();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let (new, values) = monitor.sample();
        names.extend(new);
        values.into_iter().map(|(number, value)| (names[number as usize].name.clone(), value)).collect()
    }

    #[test]
    fn the_machine_has_cpus_memory_sockets_and_itself() {
        let own = std::process::id().to_string();
        let values = sampled(std::slice::from_ref(&own));
        assert!(values["cpu"] >= 0.0 && values["cpu"] <= 100.0, "{values:?}");
        assert!(values["memory"] > 1e6);
        assert!(values.contains_key("sockets listening") && values.contains_key("retransmits"));
        assert!(values[&format!("{own} rss")] > 1e5);
        assert!(values[&format!("{own} threads")] >= 1.0);
        assert!(values[&format!("{own} descriptors")] >= 3.0);
    }

    #[test]
    fn a_process_that_is_not_there_has_no_figures() {
        let values = sampled(&["no-such-process-here".to_owned()]);
        assert_eq!(values["no-such-process-here processes"], 0.0);
        assert!(!values.contains_key("no-such-process-here rss"));
    }
}
