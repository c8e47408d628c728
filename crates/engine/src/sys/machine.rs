//! The machine and this process, as `/proc` shows them once a second.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use procfs::process::Process;
use squall_measure::{CpuTimes, MachineSecond};

use super::clock::process_cpu;
use super::cpu_limit::CpuLimits;
use super::process::nofile_limit;

/// Reads the machine's figures; keeps the previous counters to take differences.
#[derive(Debug, Default)]
pub(crate) struct MachineProbe {
    cpu: CpuTimes,
    process_cpu: Duration,
    limits: CpuLimits,
    ports: PortCount,
}

/// Ports that were counted socket by socket, which is not done every second.
#[derive(Debug, Clone, Copy, Default)]
struct PortCount {
    used: u64,
    /// Spans for which it is still there.
    fresh_count: u32,
}

impl MachineProbe {
    /// Starts the first span.
    pub(crate) fn new() -> Self {
        Self {
            cpu: cpu_times(),
            process_cpu: process_cpu(),
            limits: CpuLimits::own(),
            ports: PortCount::default(),
        }
    }

    /// Ends the span: figures since the last call. `source_count`: local addresses in rotation. `endpoints`: where connections go, as
    /// far as that is known.
    pub(crate) fn read(&mut self, source_count: u64, endpoints: Option<&[SocketAddr]>) -> MachineSecond {
        let (cpu, process_cpu) = (cpu_times(), process_cpu());
        let before = std::mem::replace(&mut self.cpu, cpu);
        let process_cpu_before = std::mem::replace(&mut self.process_cpu, process_cpu);
        let (cpu_fraction, steal_fraction) = cpu.fractions_since(before).unwrap_or_default();
        let ports_available = ports_available() * source_count.max(1);
        MachineSecond {
            cpu_fraction,
            steal_fraction,
            descriptors_open: descriptors_open(),
            descriptors_limit: nofile_limit(),
            ports_used: self.ports.used(socket_count(), ports_available, endpoints),
            ports_available,
            process_rss_bytes: process_rss_bytes(),
            process_cpu: process_cpu.saturating_sub(process_cpu_before),
            cpu_throttled: self.limits.throttled(),
        }
    }
}

/// Of all CPUs together.
fn cpu_times() -> CpuTimes {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().next().and_then(|line| CpuTimes::parse(line.strip_prefix("cpu ")?)).unwrap_or_default()
}

fn descriptors_open() -> u64 {
    Process::myself().and_then(|process| process.fd_count()).map_or(0, |count| count as u64)
}

impl PortCount {
    /// Local ports that new connections cannot have. The kernel gives a port again towards another endpoint, so only sockets towards an
    /// endpoint of the run take its ports, those in TIME_WAIT too, and the endpoint with the most of them is the one that can run short.
    /// Counting them costs about a microsecond a socket: it is done only where all sockets together would be many ports, and not
    /// every second. Otherwise the number of all sockets stands for it, which is never too low.
    fn used(&mut self, socket_count: u64, available: u64, endpoints: Option<&[SocketAddr]>) -> u64 {
        let endpoints =
            endpoints.filter(|_| 2 * socket_count > available && socket_count <= SOCKET_COUNT_READ_MAX);
        let Some(endpoints) = endpoints else {
            self.fresh_count = 0;
            return socket_count;
        };
        if self.fresh_count == 0 {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(File::open);
            let tables = tables.into_iter().flatten().map(BufReader::new);
            *self = Self { used: most_to_one(tables, endpoints), fresh_count: COUNT_EVERY };
        }
        self.fresh_count -= 1;
        self.used
    }
}

/// Of sockets in tables such as `/proc/net/tcp` those towards the endpoint that has the most.
fn most_to_one(tables: impl Iterator<Item = impl BufRead>, endpoints: &[SocketAddr]) -> u64 {
    let mut counts: HashMap<String, u64> =
        endpoints.iter().flat_map(shown_by_kernel).map(|shown| (shown, 0)).collect();
    let mut line = String::new();
    for mut table in tables {
        while table.read_line(&mut line).is_ok_and(|length| length > 0) {
            let remote = line.split_ascii_whitespace().nth(2).unwrap_or_default();
            if let Some(count) = counts.get_mut(remote) {
                *count += 1;
            }
            line.clear();
        }
    }
    counts.into_values().max().unwrap_or(0)
}

/// An endpoint as the tables have it: words of the address in the machine's order of bytes, then the port. A socket for both families
/// shows an IPv4 address as one of IPv6.
fn shown_by_kernel(endpoint: &SocketAddr) -> Vec<String> {
    let words = |octets: &[u8]| {
        let words =
            octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        words.map(|word| format!("{word:08X}")).collect::<String>()
    };
    let shown = match endpoint.ip() {
        IpAddr::V4(address) => {
            vec![words(&address.octets()), words(&address.to_ipv6_mapped().octets())]
        }
        IpAddr::V6(address) => vec![words(&address.octets())],
    };
    shown.into_iter().map(|address| format!("{address}:{:04X}", endpoint.port())).collect()
}

/// `TCP: inuse 5 orphan 0 tw 2 alloc 9 mem 1`: sockets in use and in TIME_WAIT.
fn socket_count() -> u64 {
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

/// Resident memory, and of that what is mapped from files.
fn resident_bytes() -> (u64, u64) {
    let Ok(pages) = Process::myself().and_then(|process| process.statm()) else { return (0, 0) };
    let page_bytes = procfs::page_size();
    (pages.resident * page_bytes, pages.shared * page_bytes)
}

/// Beyond so many sockets the tables would take more than a tenth of a CPU's second.
const SOCKET_COUNT_READ_MAX: u64 = 100_000;

/// How many spans a count stands for.
const COUNT_EVERY: u32 = 5;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st
   0: 0100007F:1F90 00000000:0000 0A
   1: 0100007F:8001 0100007F:1F90 01
   2: 0100007F:8002 0100007F:1F90 06
   3: 0100007F:8003 0200007F:1F90 06
   4: 0100007F:8003 0100007F:1F91 06
   5: 0000000000000000FFFF00000100007F:8004 0000000000000000FFFF00000200007F:1F90 06
   6: 0100007F:1F90 0100007F:8001 01
";

    #[test]
    #[cfg(target_endian = "little")]
    fn only_sockets_towards_the_run_s_own_endpoints_take_its_ports() {
        for (endpoints, expected) in [
            (&["127.0.0.1:8080"][..], 2),
            (&["127.0.0.1:8081"], 1),
            (&["127.0.0.2:8080"], 1),
            (&["127.0.0.1:8080", "127.0.0.1:8081"], 2),
            (&["127.0.0.9:8080", "[::1]:8080"], 0),
            (&[], 0),
        ] {
            let parsed: Vec<SocketAddr> = endpoints.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(most_to_one([TABLE.as_bytes()].into_iter(), &parsed), expected, "{endpoints:?}");
        }
    }

    #[test]
    fn the_kernel_s_tables_are_read_as_it_writes_them() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(any).unwrap();
            let endpoint = listener.local_addr().unwrap();
            let _open: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(endpoint).unwrap()).collect();
            let mut ports = PortCount::default();
            // More sockets than half of the ports, as far as is known: they are counted.
            assert_eq!(ports.used(90_000, 100_000, Some(&[endpoint])), 3);
            assert_eq!(ports.used(90_000, 100_000, None), 90_000, "where connections go is not known");
            assert_eq!(ports.used(40_000, 100_000, Some(&[endpoint])), 40_000, "too few to matter");
        }
    }
}
