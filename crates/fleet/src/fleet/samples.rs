//! What is watched while the run goes on: series of machines and of web monitors.

use squall_measure::{EventKind, Monitor};

use super::{Fleet, Watcher};
use crate::protocol::SeriesName;

impl Fleet<'_> {
    pub(super) fn samples(
        &mut self,
        machine_idx: usize,
        at_unix_ns: u64,
        new: Vec<SeriesName>,
        values: Vec<(u32, f64)>,
    ) {
        let role = if self.plan.loads.iter().any(|load| load.parts.iter().any(|(idx, _)| *idx == machine_idx))
        {
            "generator"
        } else {
            "target"
        };
        let source = format!("{role} {}", self.machine_name(machine_idx));
        for SeriesName { name, unit } in new {
            self.series[machine_idx].push(self.monitors.len());
            self.monitors.push(Monitor::new(source.clone(), name, unit));
        }
        let own_ns = self.links[machine_idx].clock.own(at_unix_ns);
        let Some(at_s) = self.at_s(own_ns) else { return };
        for (number, value) in values {
            if let Some(&idx) = self.series[machine_idx].get(number as usize) {
                self.monitors[idx].push(at_s, value);
            }
        }
    }

    /// Tells of pages that never answered: a figure that is missed is missed in silence.
    pub(super) fn tell_missing(&mut self, watcher: &mut dyn Watcher) {
        for (source, why) in self.web.missing() {
            let label = format!("monitor {source} never answered: {why}");
            self.note(EventKind::Note, &label, watcher);
        }
    }

    pub(super) fn take_web_samples(&mut self) {
        for sample in self.web.take() {
            let found = self.monitors.iter().position(|monitor| {
                (monitor.source.as_str(), monitor.name.as_str())
                    == (sample.source.as_str(), sample.name.as_str())
            });
            let idx = found.unwrap_or_else(|| {
                self.monitors.push(Monitor::new(sample.source.clone(), sample.name.clone(), sample.unit));
                self.monitors.len() - 1
            });
            if let Some(at_s) = self.at_s(sample.at_unix_ns) {
                self.monitors[idx].push(at_s, sample.value);
            }
        }
    }
}
