//! Processes of one name, or one pid, as `/proc` shows them: their figures added up.

use std::collections::BTreeSet;

use procfs::process::Process;
use squall_measure::MonitorUnit;

use super::sample::Sample;

/// The processes of one name.
#[derive(Debug)]
pub(super) struct Processes {
    name: String,
    pids: BTreeSet<i32>,
    samples_until_search: u32,
    was_found: bool,
    eldest_start: Option<u64>,
}

/// One process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Its process id.
    pub pid: i32,
    /// User and system time, in [clock ticks](procfs::ticks_per_second).
    pub cpu_ticks: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    virtual_bytes: u64,
    threads: u64,
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
            let sum = |figure: fn(&ProcessFigures) -> u64| all.iter().map(figure).sum::<u64>() as f64;
            sample.add(&format!("{name} rss"), MonitorUnit::Bytes, sum(|f| f.rss_bytes));
            sample.add(&format!("{name} virtual size"), MonitorUnit::Bytes, sum(|f| f.virtual_bytes));
            sample.add(&format!("{name} threads"), MonitorUnit::Count, sum(|f| f.threads));
            sample.add(&format!("{name} descriptors"), MonitorUnit::Count, sum(|f| f.descriptors));
            sample.add_cpu_seconds(
                &format!("{name} cpu"),
                sum(|f| f.cpu_ticks) / procfs::ticks_per_second() as f64,
            );
        }
        self.restarted(&all)
    }

    fn restarted(&mut self, all: &[ProcessFigures]) -> Option<String> {
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

    fn read(&self) -> Vec<ProcessFigures> {
        self.pids.iter().filter_map(|&pid| ProcessFigures::read(pid)).collect()
    }
}

/// Whether any process of that name or pid runs.
pub(super) fn is_running(name: &str) -> bool {
    search(name).into_iter().any(|pid| ProcessFigures::read(pid).is_some())
}

/// The name of a running program that is nearly this one.
pub(super) fn similar_to(name: &str) -> Option<String> {
    let names: BTreeSet<String> = all().filter_map(|process| Some(process.stat().ok()?.comm)).collect();
    squall_plan::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// The processes with that pid or name, as they are now.
pub fn processes(name: &str) -> Vec<ProcessFigures> {
    search(name).into_iter().filter_map(ProcessFigures::read).collect()
}

/// By pid, or by the name of the program: `comm`, or the file that its first argument names (`nginx: worker` is nginx).
fn search(name: &str) -> BTreeSet<i32> {
    match name.parse() {
        Ok(pid) => BTreeSet::from([pid]),
        Err(_) => all().filter(|process| is_named(process, name)).map(|process| process.pid()).collect(),
    }
}

fn all() -> impl Iterator<Item = Process> {
    procfs::process::all_processes().into_iter().flatten().flatten()
}

fn is_named(process: &Process, name: &str) -> bool {
    // The kernel keeps 15 bytes of a name.
    let short: String = name.chars().take(15).collect();
    if process.stat().is_ok_and(|stat| stat.comm == short) {
        return true;
    }
    let words = process.cmdline().unwrap_or_default();
    words.first().and_then(|first| first.rsplit('/').next()) == Some(name)
}

impl ProcessFigures {
    /// `None`: it is not there, or a zombie.
    fn read(pid: i32) -> Option<Self> {
        let process = Process::new(pid).ok()?;
        let stat = process.stat().ok().filter(|stat| stat.state != 'Z')?;
        Some(Self {
            pid,
            cpu_ticks: stat.utime + stat.stime,
            // Newer kernels count resident pages exactly in `statm`, and roughly in `stat`.
            rss_bytes: process.statm().ok()?.resident * procfs::page_size(),
            virtual_bytes: stat.vsize,
            threads: stat.num_threads.unsigned_abs(),
            started: stat.starttime,
            // Not permitted for processes of others.
            descriptors: process.fd_count().unwrap_or(0) as u64,
        })
    }
}

/// Looking through all processes costs milliseconds; those that are known are read each second.
const SEARCH_EVERY: u32 = 5;
