//! Looks at local processes while a run goes on: their CPU time and memory, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use squall_measure::{Monitor, MonitorUnit};

use crate::failure::Failure;

/// Looks twice a second until stopped.
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Monitor>>,
    since_unix_ms: u64,
}

/// A process, or all of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Id(u32),
    Name(String),
}

/// CPU time and resident memory of the processes that are meant.
#[derive(Debug, Clone, Default)]
struct Look {
    /// CPU time by process in clock ticks, so that one that ends does not make the sum fall.
    ticks: BTreeMap<u32, u64>,
    rss_bytes: u64,
}

impl Watch {
    /// Says which of the processes named does not run: a typing mistake should not cost a study.
    pub(crate) fn check(names: &[String]) -> Result<(), Failure> {
        match names.iter().find(|name| look(&Who::of(name)).ticks.is_empty()) {
            None => Ok(()),
            Some(name) => Err(Failure::usage(
                format!("no process `{name}` to monitor"),
                "give a name as shown by `ps -o comm`, or a process id",
            )),
        }
    }

    /// Starts to look at the processes named. One that has ended meanwhile, such as a server under too much load, has no figures.
    pub(crate) fn start(names: &[String]) -> Self {
        let whos: Vec<Who> = names.iter().map(|name| Who::of(name)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut watched: Vec<Watched> = whos.into_iter().map(Watched::new).collect();
            while matches!(stopped.recv_timeout(PERIOD), Err(RecvTimeoutError::Timeout)) {
                watched.iter_mut().for_each(|one| one.sample(start.elapsed().as_secs_f64()));
            }
            watched.into_iter().flat_map(|one| [one.cpu, one.memory]).collect()
        });
        Self { stop, thread, since_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX) }
    }

    /// The figures, and when their clock began in milliseconds since 1970.
    pub(crate) fn stop(self) -> Vec<(u64, Monitor)> {
        drop(self.stop);
        let monitors = self.thread.join().unwrap_or_default();
        monitors
            .into_iter()
            .filter(|monitor| !monitor.samples.is_empty())
            .map(|monitor| (self.since_unix_ms, monitor))
            .collect()
    }
}

impl Who {
    fn of(name: &str) -> Self {
        name.parse().map_or_else(|_| Self::Name(name.to_owned()), Self::Id)
    }
}

struct Watched {
    who: Who,
    before: (Instant, Look),
    cpu: Monitor,
    memory: Monitor,
}

impl Watched {
    fn new(who: Who) -> Self {
        let name = match &who {
            Who::Id(id) => format!("target process {id}"),
            Who::Name(name) => format!("target {name}"),
        };
        Self {
            before: (Instant::now(), look(&who)),
            who,
            cpu: Monitor::new(&name, "cpu", MonitorUnit::Percent),
            memory: Monitor::new(&name, "memory", MonitorUnit::Bytes),
        }
    }

    /// CPU time since the last look, in percent of one CPU.
    fn sample(&mut self, at_s: f64) {
        let (now, found) = (Instant::now(), look(&self.who));
        let (then, before) = &self.before;
        let used =
            |(id, ticks): (&u32, &u64)| ticks.saturating_sub(before.ticks.get(id).copied().unwrap_or(*ticks));
        let ticks: u64 = found.ticks.iter().map(used).sum();
        let seconds = now.duration_since(*then).as_secs_f64().max(1e-3);
        self.cpu.push(at_s, ticks as f64 / TICKS_PER_S / seconds * 100.0);
        self.memory.push(at_s, found.rss_bytes as f64);
        self.before = (now, found);
    }
}

fn look(who: &Who) -> Look {
    let ids: Vec<u32> = match who {
        Who::Id(id) => vec![*id],
        Who::Name(name) => ids_of(name),
    };
    let mut look = Look::default();
    for id in ids {
        let folder = Path::new("/proc").join(id.to_string());
        let (Some(ticks), Some(rss)) = (cpu_ticks(&folder), rss_bytes(&folder)) else { continue };
        look.ticks.insert(id, ticks);
        look.rss_bytes += rss;
    }
    look
}

fn ids_of(name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_meant =
        |id: &u32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    ids.filter(is_meant).collect()
}

/// User and system time: fields 14 and 15 of `stat`, counted behind the name, which may hold spaces (proc(5)).
fn cpu_ticks(folder: &Path) -> Option<u64> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn rss_bytes(folder: &Path) -> Option<u64> {
    let statm = fs::read_to_string(folder.join("statm")).ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * PAGE_BYTES)
}

const PERIOD: Duration = Duration::from_millis(500);

/// The kernel's USER_HZ, which is 100 wherever this runs.
const TICKS_PER_S: f64 = 100.0;

/// Of x86-64 and most other machines; where pages are larger, memory reads too small by that factor.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process_is_seen() {
        let found = look(&Who::Id(std::process::id()));
        assert!(found.ticks.contains_key(&std::process::id()) && found.rss_bytes > 100_000);
        assert!(Watch::check(&["no such process".to_owned()]).is_err());
    }
}
