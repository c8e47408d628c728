//! What is watched while the run goes on: series of machines and of pages that machines read.

use std::time::SystemTime;

use squall_measure::{Event, EventKind, Monitor};

use super::{Fleet, Watcher};
use crate::clock::unix_ns;
use crate::kubernetes::{ClusterEvent, ClusterLook, ClusterSample};
use crate::protocol::{SeriesName, Trouble};

impl Fleet<'_> {
    /// Takes in what a machine, or a page that it reads, showed at a moment.
    pub(super) fn samples(
        &mut self,
        (machine_idx, monitor_idx): (usize, Option<u32>),
        at_unix_ns: u64,
        new: Vec<SeriesName>,
        values: &[(u32, f64)],
    ) {
        let source = match monitor_idx {
            None => self.machine_source(machine_idx),
            Some(idx) if (idx as usize) < self.plan.monitors.len() => self.page_source(idx as usize),
            // Its number is another machine's word.
            Some(_) => return,
        };
        for name in new {
            let idx = self.series_idx(monitor_idx, &source, name);
            self.series.entry((machine_idx, monitor_idx)).or_default().push(idx);
        }
        let own = self.series.get(&(machine_idx, monitor_idx)).cloned().unwrap_or_default();
        let own_ns = self.links[machine_idx].clock.own(at_unix_ns);
        let Some(at_s) = self.at_s(own_ns) else { return };
        for &(number, value) in values {
            if let Some(&idx) = own.get(number as usize) {
                self.monitors[idx].push(at_s, value);
            }
        }
    }

    /// Takes in what a cluster showed; a cluster that does not answer its monitor at first is a problem like any other.
    pub(super) fn cluster(
        &mut self,
        monitor_idx: usize,
        look: Result<ClusterLook, Trouble>,
        watcher: &mut dyn Watcher,
    ) {
        if let Some((_, has_answered)) = self.clusters.get_mut(&monitor_idx) {
            *has_answered = true;
        }
        let look = match look {
            Ok(look) => look,
            Err(trouble) => return self.troubles.push(trouble),
        };
        look.note.iter().for_each(|note| watcher.note(note));
        let source = self.page_source(monitor_idx);
        let of_page = Some(monitor_idx as u32);
        for ClusterSample { name, unit, at_unix_ns, value } in look.samples {
            let idx = self.series_idx(of_page, &source, SeriesName { name, unit });
            let own = self.series.entry((self.links.len(), of_page)).or_default();
            if !own.contains(&idx) {
                own.push(idx);
            }
            if let Some(at_s) = self.at_s(at_unix_ns) {
                self.monitors[idx].push(at_s, value);
            }
        }
        for ClusterEvent { at_unix_ns, label, is_restart } in look.events {
            let Some(at_s) = self.at_s(at_unix_ns.unwrap_or_else(|| unix_ns(SystemTime::now()))) else {
                continue;
            };
            let kind = if is_restart { EventKind::Restart } else { EventKind::Note };
            self.events.push(Event { at_s, label: label.clone(), kind });
            watcher.note(&label);
        }
    }

    /// Where a series is in `monitors`. One of a page goes on when another machine reads that page.
    fn series_idx(
        &mut self,
        monitor_idx: Option<u32>,
        source: &str,
        SeriesName { name, unit }: SeriesName,
    ) -> usize {
        let of_page = self.series.iter().filter(|((_, of), _)| of.is_some() && *of == monitor_idx);
        let mut known = of_page.flat_map(|(_, own)| own);
        if let Some(&idx) = known.find(|idx| self.monitors[**idx].name == name) {
            return idx;
        }
        self.monitors.push(Monitor::new(source.to_owned(), name, unit));
        self.monitors.len() - 1
    }

    fn machine_source(&self, machine_idx: usize) -> String {
        let role = if self.plan.makes_load[machine_idx] { "generator" } else { "target" };
        format!("{role} {}", self.machine_name(machine_idx))
    }

    /// Reports name a page by its monitor's own name, or by its host.
    pub(super) fn page_source(&self, monitor_idx: usize) -> String {
        let spec = &self.plan.monitors[monitor_idx];
        spec.name.clone().unwrap_or_else(|| format!("target {}", spec.source()))
    }

    /// Reports clusters that had nothing to show: what they measured before the start, or not at all, is no sample of the run.
    pub(super) fn note_clusters_without_samples(&mut self, watcher: &mut dyn Watcher) {
        for monitor_idx in self.clusters.keys().copied().collect::<Vec<_>>() {
            let source = self.page_source(monitor_idx);
            let mut own = self.monitors.iter().filter(|monitor| monitor.source == source);
            if own.all(|monitor| monitor.samples.is_empty()) {
                let label = format!("monitor {source} has no samples: none was measured during the load");
                self.note(EventKind::Note, &label, watcher);
            }
        }
    }

    /// Reports series that a page did not have before the load, and never had afterwards.
    pub(super) fn note_absent_series(&mut self, watcher: &mut dyn Watcher) {
        for (monitor_idx, names) in std::mem::take(&mut self.absent_series) {
            let source = self.page_source(monitor_idx);
            let is_of = |monitor: &Monitor, name: &str| {
                let is_named = monitor.name == name || monitor.name.split('{').next() == Some(name);
                monitor.source == source && is_named && !monitor.samples.is_empty()
            };
            let is_absent = |name: &&String| !self.monitors.iter().any(|monitor| is_of(monitor, name));
            let absent: Vec<&str> = names.iter().filter(is_absent).map(String::as_str).collect();
            if !absent.is_empty() {
                let label = format!("monitor {source} never reported `{}`", absent.join("`, `"));
                self.note(EventKind::Note, &label, watcher);
            }
        }
    }
}
