//! Looks at local processes while a run goes on: their CPU time and memory, from `/proc`.

use std::collections::BTreeMap;
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

/// CPU time and resident memory of the processes that are meant.
#[derive(Debug, Clone, Default)]
struct Look {
    /// CPU time by process in clock ticks, so that one that ends does not make the sum fall.
    ticks: BTreeMap<i32, u64>,
    rss_bytes: u64,
}

impl Watch {
    /// Says which of the processes named does not run: a typing mistake should not cost a study.
    pub(crate) fn check(names: &[String]) -> Result<(), Failure> {
        match names.iter().find(|name| look(name).ticks.is_empty()) {
            None => Ok(()),
            Some(name) => Err(Failure::usage(
                format!("no process `{name}` to monitor"),
                "give a name as shown by `ps -o comm`, or a process id",
            )),
        }
    }

    /// Starts to look at the processes named. One that has ended meanwhile, such as a server under too much load, has no figures.
    pub(crate) fn start(names: &[String]) -> Self {
        let names = names.to_vec();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut watched: Vec<Watched> = names.into_iter().map(Watched::new).collect();
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

struct Watched {
    /// A process id, or the name of processes.
    name: String,
    before: (Instant, Look),
    cpu: Monitor,
    memory: Monitor,
}

impl Watched {
    fn new(name: String) -> Self {
        let kind = if name.parse::<i32>().is_ok() { "process " } else { "" };
        let title = format!("target {kind}{name}");
        Self {
            before: (Instant::now(), look(&name)),
            cpu: Monitor::new(&title, "cpu", MonitorUnit::Percent),
            memory: Monitor::new(&title, "memory", MonitorUnit::Bytes),
            name,
        }
    }

    /// CPU time since the last look, in percent of one CPU.
    fn sample(&mut self, at_s: f64) {
        let (now, found) = (Instant::now(), look(&self.name));
        let (then, before) = &self.before;
        let used =
            |(id, ticks): (&i32, &u64)| ticks.saturating_sub(before.ticks.get(id).copied().unwrap_or(*ticks));
        let ticks: u64 = found.ticks.iter().map(used).sum();
        let seconds = now.duration_since(*then).as_secs_f64().max(1e-3);
        self.cpu.push(at_s, ticks as f64 / procfs::ticks_per_second() as f64 / seconds * 100.0);
        self.memory.push(at_s, found.rss_bytes as f64);
        self.before = (now, found);
    }
}

fn look(name: &str) -> Look {
    let found = squall_fleet::processes(name);
    Look {
        rss_bytes: found.iter().map(|process| process.rss_bytes).sum(),
        ticks: found.iter().map(|process| (process.pid, process.cpu_ticks)).collect(),
    }
}

const PERIOD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process_is_seen() {
        let own = std::process::id();
        let found = look(&own.to_string());
        assert!(found.ticks.contains_key(&(own as i32)) && found.rss_bytes > 100_000);
        assert!(Watch::check(&["no such process".to_owned()]).is_err());
    }
}
