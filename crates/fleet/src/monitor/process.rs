//! Processes of one name, or one pid, as `/proc` shows them: their figures added up.

use std::collections::BTreeSet;
use std::fs;

use squall_measure::MonitorUnit;

use super::sample::Sample;

/// The processes of one name.
#[derive(Debug)]
pub(super) struct Processes {
    name: String,
    pids: BTreeSet<u32>,
    samples_until_search: u32,
    was_found: bool,
    eldest_start: Option<u64>,
}

/// One process at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    cpu_ticks: u64,
    threads: u64,
    virtual_bytes: u64,
    rss_pages: u64,
    /// In ticks after the machine's boot.
    started: u64,
    descriptors: u64,
}

impl Processes {
    pub(super) fn new(name: String) -> Self {
        Self { name, pids: BTreeSet::new(), samples_until_search: 0, was_found: false, eldest_start: None }
    }

    /// Adds their figures; reports when they were restarted.
    pub(super) fn sample(&mut self, sample: &mut Sample<'_>) -> Option<String> {
        let mut all = self.read();
        if self.samples_until_search == 0 || all.len() < self.pids.len() {
            self.pids = search(&self.name);
            self.samples_until_search = SEARCH_EVERY;
            all = self.read();
        }
        self.samples_until_search -= 1;
        let name = &self.name;
        sample.add(&format!("{name} processes"), MonitorUnit::Count, all.len() as f64);
        if !all.is_empty() {
            let sum = |figure: fn(&Figures) -> u64| all.iter().map(figure).sum::<u64>() as f64;
            let page = rustix::param::page_size() as f64;
            let tick = rustix::param::clock_ticks_per_second() as f64;
            sample.add(&format!("{name} rss"), MonitorUnit::Bytes, sum(|f| f.rss_pages) * page);
            sample.add(&format!("{name} virtual size"), MonitorUnit::Bytes, sum(|f| f.virtual_bytes));
            sample.add(&format!("{name} threads"), MonitorUnit::Count, sum(|f| f.threads));
            sample.add(&format!("{name} descriptors"), MonitorUnit::Count, sum(|f| f.descriptors));
            sample.add_cpu_seconds(&format!("{name} cpu"), sum(|f| f.cpu_ticks) / tick);
        }
        self.restarted(&all)
    }

    fn restarted(&mut self, all: &[Figures]) -> Option<String> {
        let eldest = all.iter().map(|figures| figures.started).min();
        let was_found = self.was_found;
        self.was_found |= eldest.is_some();
        let before = std::mem::replace(&mut self.eldest_start, eldest);
        match (was_found, before, eldest) {
            (true, Some(_), None) => Some(format!("{} has exited", self.name)),
            (true, None, Some(_)) => Some(format!("{} is running again", self.name)),
            (true, Some(before), Some(now)) if before != now => Some(format!("{} was restarted", self.name)),
            _ => None,
        }
    }

    fn read(&self) -> Vec<Figures> {
        self.pids.iter().filter_map(|&pid| Figures::read(pid)).collect()
    }
}

/// Whether any process of that name or pid runs.
pub(super) fn is_running(name: &str) -> bool {
    search(name).into_iter().any(|pid| Figures::read(pid).is_some())
}

/// The name of a running program that is nearly this one.
pub(super) fn similar_to(name: &str) -> Option<String> {
    let comms: BTreeSet<String> = pids().filter_map(comm).collect();
    squall_plan::nearest(name, comms.iter().map(String::as_str)).map(str::to_owned)
}

/// By pid, or by the name of the program: `comm`, or the file that its first argument names (`nginx: worker` is nginx).
fn search(name: &str) -> BTreeSet<u32> {
    match name.parse() {
        Ok(pid) => BTreeSet::from([pid]),
        Err(_) => pids().filter(|&pid| is_named(pid, name)).collect(),
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

fn comm(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|comm| comm.trim_end().to_owned())
}

fn is_named(pid: u32, name: &str) -> bool {
    // The kernel keeps 15 bytes of a name.
    let short: String = name.chars().take(15).collect();
    if comm(pid).is_some_and(|comm| comm == short) {
        return true;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = command.split(|&byte| byte == 0).next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    first.rsplit('/').next() == Some(name)
}

impl Figures {
    /// proc(5), `/proc/PID/stat`: the name in brackets may hold anything, so fields are counted from its end; the 3rd is the state.
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            return None;
        }
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            started: field(22)?,
            virtual_bytes: field(23)?,
            rss_pages: rss_pages(pid)?,
            descriptors: descriptors(pid),
        })
    }
}

/// `statm`'s second field counts resident pages; newer kernels count them exactly there, and roughly in `stat`.
fn rss_pages(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// Since Linux 6.2 the directory's size is the count; before, its entries are counted. 0 where that is not permitted.
fn descriptors(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/fd");
    match fs::metadata(&path).map(|directory| directory.len()) {
        Ok(count) if count > 0 => count,
        _ => fs::read_dir(&path).map_or(0, |entries| entries.count() as u64),
    }
}

/// Looking through all processes costs milliseconds; those that are known are read each second.
const SEARCH_EVERY: u32 = 5;
