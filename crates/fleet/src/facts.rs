//! What a machine is and allows: the agent's part of the preflight.

use std::collections::BTreeMap;
use std::fs;

use procfs::{Current, Meminfo};
use rustix::process::{Resource, getrlimit};

/// Facts by name, as they stand in reports.
pub(crate) fn facts() -> BTreeMap<String, String> {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let files = getrlimit(Resource::Nofile);
    let limit = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    BTreeMap::from([
        ("host".to_owned(), text(system.nodename())),
        ("os".to_owned(), format!("{} {}", text(system.sysname()), text(system.release()))),
        ("arch".to_owned(), text(system.machine())),
        ("cpus_usable".to_owned(), cpus.to_string()),
        ("memory_bytes".to_owned(), memory_bytes().to_string()),
        ("open_files_limit".to_owned(), limit(files.maximum)),
        ("local_ports".to_owned(), file("/proc/sys/net/ipv4/ip_local_port_range").replace(['\t', ' '], "-")),
        ("interfaces".to_owned(), interfaces().join(" ")),
    ])
}

fn memory_bytes() -> u64 {
    Meminfo::current().map_or(0, |memory| memory.mem_total)
}

fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_memory_and_a_loopback() {
        let facts = facts();
        assert!(facts["cpus_usable"].parse::<u32>().unwrap() > 0);
        assert!(facts["memory_bytes"].parse::<u64>().unwrap() > 1 << 20);
        assert!(facts["interfaces"].split(' ').any(|name| name == "lo"), "{facts:?}");
    }
}
