//! Finds what is to be watched before any load starts: processes on their machines, and for each page a machine that can read it.

use std::time::{Duration, Instant, SystemTime};

use squall_measure::EventKind;
use squall_plan::file::{MonitorSpec, Watched};

use super::jobs::Step;
use super::{Fleet, Steer, Watcher};
use crate::clock::unix_ns;
use crate::kubernetes::ClusterWatch;
use crate::link::{Arrival, Arrived};
use crate::page::MonitoredPage;
use crate::protocol::{Monitored, Order, Trouble};

impl Fleet<'_> {
    /// Has every machine look for what it may have to watch, and watch what was found. What is not there is a problem like any other
    /// that is found before the load: a run without the figures that it was made for is worth nothing.
    pub(super) fn watch_monitored(&mut self, steer: &Steer, watcher: &mut dyn Watcher) {
        let wanted: Vec<Monitored> = (0..self.links.len()).map(|idx| self.candidates(idx)).collect();
        self.found.fill(None);
        "finding the processes and pages to monitor".clone_into(&mut self.doing);
        for (link, wanted) in self.links.iter().zip(&wanted).filter(|(_, wanted)| !wanted.is_empty()) {
            link.order(Order::Find(wanted.clone()));
        }
        self.watch_clusters();
        let is_awaited = |fleet: &Self, idx: usize| {
            !wanted[idx].is_empty() && fleet.found[idx].is_none() && fleet.links[idx].lost.is_none()
        };
        let deadline = Instant::now() + FIND_MAX;
        let mut nothing = Step::new(0);
        while ((0..wanted.len()).any(|idx| is_awaited(self, idx))
            || self.clusters.values().any(|(_, has_answered)| !has_answered))
            && Instant::now() < deadline
            && self.steered == 0
        {
            self.turn(&mut nothing, watcher);
            self.obey(steer);
        }
        if self.steered == 0 {
            self.watch_found(wanted, watcher);
            self.refuse_silent_clusters();
        }
    }

    /// The controller reads clusters itself: kubectl and its login are here.
    fn watch_clusters(&mut self) {
        for (monitor_idx, monitor) in self.plan.monitors.iter().enumerate() {
            let Watched::Kubernetes(objects) = &monitor.what else { continue };
            let inbox = self.inbox_sender.clone();
            let report = move |look| {
                let what = Arrived::Cluster(monitor_idx, look);
                let came_unix_ns = unix_ns(SystemTime::now());
                inbox.send(Arrival { machine_idx: 0, what, came_unix_ns }).is_ok()
            };
            match ClusterWatch::start(objects, report) {
                Ok(watch) => drop(self.clusters.insert(monitor_idx, (watch, false))),
                Err(error) => self.troubles.push(Trouble::new(
                    format!("cannot start a thread: {error}"),
                    "raise the limit: `ulimit -u`",
                )),
            }
        }
    }

    fn refuse_silent_clusters(&mut self) {
        let silent = self.clusters.iter().filter(|(_, (_, has_answered))| !has_answered);
        self.troubles.extend(silent.map(|(monitor_idx, _)| {
            let source = self.plan.monitors[*monitor_idx].source();
            let message =
                format!("monitor `{source}`: `kubectl` has not answered for {} s", FIND_MAX.as_secs());
            Trouble::new(message, "check that `kubectl get pods` answers without a question")
        }));
    }

    /// The processes of a machine, and the pages that it may read.
    fn candidates(&self, machine_idx: usize) -> Monitored {
        let name = &self.plan.machines[machine_idx].name.value;
        let mut wanted = Monitored::default();
        if self.links[machine_idx].lost.is_some() {
            return wanted;
        }
        for (monitor_idx, monitor) in self.plan.monitors.iter().enumerate() {
            match &monitor.what {
                Watched::Machine { machine, processes } if machine.value == *name => {
                    wanted.processes.extend(processes.iter().cloned());
                }
                _ if monitor.from.as_ref().is_none_or(|from| from.value == *name) => {
                    wanted.pages.extend(MonitoredPage::of(monitor_idx, monitor));
                }
                _ => {}
            }
        }
        wanted
    }

    /// Gives each page to the first machine that could read it, and notes what none found.
    fn watch_found(&mut self, mut wanted: Vec<Monitored>, watcher: &mut dyn Watcher) {
        self.note_absent_processes();
        let mut readers = vec![None; self.plan.monitors.len()];
        for (monitor_idx, monitor) in self.plan.monitors.iter().enumerate() {
            if MonitoredPage::of(monitor_idx, monitor).is_none() {
                continue;
            }
            match self.reader(monitor_idx) {
                Ok((machine_idx, absent_series)) => {
                    readers[monitor_idx] = Some(machine_idx);
                    let machine = &self.plan.machines[machine_idx].name.value;
                    if self.links.len() > 1 && monitor.from.is_none() {
                        watcher.note(&format!("monitor `{}` is read by {machine}", monitor.source()));
                    }
                    if !absent_series.is_empty() {
                        let names = absent_series.join("`, `");
                        watcher
                            .note(&format!("monitor `{}` does not report `{names}` yet", monitor.source()));
                        self.absent_series.push((monitor_idx, absent_series));
                    }
                }
                Err(trouble) => self.troubles.push(trouble),
            }
        }
        for (machine_idx, mut wanted) in wanted.drain(..).enumerate() {
            wanted.pages.retain(|page| readers[page.monitor_idx as usize] == Some(machine_idx));
            if !wanted.is_empty() {
                self.pages[machine_idx].clone_from(&wanted.pages);
                self.links[machine_idx].order(Order::Watch(wanted));
            }
        }
    }

    /// Has others read the pages that a machine read which was lost: those that could read them before the load.
    pub(super) fn take_over_pages(&mut self, lost_idx: usize, watcher: &mut dyn Watcher) {
        for page in std::mem::take(&mut self.pages[lost_idx]) {
            let monitor_idx = page.monitor_idx as usize;
            let source = self.plan.monitors[monitor_idx].source();
            let label = match self.reader(monitor_idx) {
                Ok((machine_idx, _)) => {
                    self.pages[machine_idx].push(page.clone());
                    self.links[machine_idx].order(Order::ReadAlso(vec![page]));
                    format!("monitor `{source}` is read by {} from here on", self.machine_name(machine_idx))
                }
                Err(_) => {
                    format!("monitor `{source}` is no longer read: no other machine can, or is allowed to")
                }
            };
            self.note(EventKind::Note, &label, watcher);
        }
    }

    fn note_absent_processes(&mut self) {
        for (machine, found) in self.plan.machines.iter().zip(&self.found) {
            for (name, similar) in found.iter().flat_map(|found| &found.absent_processes) {
                let message = format!("machine `{}`: no process `{name}` runs there", machine.name.value);
                let help = match similar {
                    Some(similar) => format!("a similar one runs: `{similar}`"),
                    None => "start it, or use its name in `ps -e` there, or its pid".to_owned(),
                };
                self.troubles.push(Trouble::new(message, help));
            }
        }
    }

    /// The first machine that is not lost and could read a page, and the series that the page does not have yet.
    fn reader(&self, monitor_idx: usize) -> Result<(usize, Vec<String>), Trouble> {
        let mut failures = Vec::new();
        for (machine_idx, found) in self.found.iter().enumerate() {
            if self.links[machine_idx].lost.is_some() {
                continue;
            }
            match found.as_ref().and_then(|found| found.pages.get(&(monitor_idx as u32))) {
                Some(Ok(absent_series)) => return Ok((machine_idx, absent_series.clone())),
                Some(Err(why)) => failures.push((machine_idx, why.as_str())),
                None => {}
            }
        }
        Err(self.unread(&self.plan.monitors[monitor_idx], &failures))
    }

    /// Why no machine reads a page: the first machine's reason, for all.
    fn unread(&self, monitor: &MonitorSpec, failures: &[(usize, &str)]) -> Trouble {
        let why = match failures {
            [] => "no machine answered".to_owned(),
            [(idx, why)] => format!("{} cannot read it: {why}", self.machine_name(*idx)),
            [(idx, why), others @ ..] => {
                let machines = if others.len() == 1 { "machine" } else { "machines" };
                let name = self.machine_name(*idx);
                format!("{name} and {} other {machines} cannot read it: {why}", others.len())
            }
        };
        let help = "check its URL from there, or set `from` to the machine of the plan that can read it";
        Trouble::new(format!("monitor `{}`: {why}", monitor.source()), help)
    }
}

impl Monitored {
    fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.pages.is_empty()
    }
}

/// A page has three seconds to answer there; more than the way to a machine takes.
const FIND_MAX: Duration = Duration::from_secs(15);
