//! `--summary-mode full`: what is measured in each scenario, and in each of its groups, in addition to the figures of the run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use squall_measure::ScriptFigures;
use squall_plan::limits::GROUP_COUNT_MAX;
use squall_script::{HttpSample, MetricId, Recorder, Tags};

use crate::sys::monotonic_ns;

/// Figures by scenario and path of a group in it; those under an empty path are the whole scenario's.
pub type Sections = BTreeMap<(String, String), ScriptFigures>;

/// A recorder that keeps the sections of one shard, and hands each sample on.
#[derive(Debug)]
pub(super) struct SectionRecorder {
    inner: Rc<dyn Recorder>,
    /// What a section begins with.
    empty: ScriptFigures,
    sections: RefCell<Sections>,
}

impl SectionRecorder {
    pub(super) fn new(inner: Rc<dyn Recorder>, empty: ScriptFigures) -> Self {
        Self { inner, empty, sections: RefCell::default() }
    }

    /// Adds what was gathered to the run's sections, and begins anew.
    pub(super) fn hand_over(&self, all: &mut Sections) {
        for (key, figures) in std::mem::take(&mut *self.sections.borrow_mut()) {
            if has_room(all, &key) {
                all.entry(key).or_default().merge(&figures);
            }
        }
    }

    /// Changes the section of the sample's scenario, and that of its group. What belongs to no scenario has none.
    fn change(&self, tags: &Tags<'_>, change: impl Fn(&mut ScriptFigures)) {
        if tags.scenario.is_empty() {
            return;
        }
        let mut sections = self.sections.borrow_mut();
        for group in [Some(""), Some(tags.group).filter(|group| !group.is_empty())].into_iter().flatten() {
            let key = (tags.scenario.to_owned(), group.to_owned());
            if has_room(&sections, &key) {
                change(sections.entry(key).or_insert_with(|| self.empty.clone()));
            }
        }
    }

    fn add_values(&self, values: &[(MetricId, f64)], tags: &Tags<'_>) {
        let now_ns = monotonic_ns();
        self.change(tags, |figures| {
            values
                .iter()
                .for_each(|(metric, value)| figures.metrics[metric.0 as usize].value.add(*value, now_ns));
        });
    }
}

/// Whether a section may be added to: groups that are named after data would never end.
fn has_room(sections: &Sections, key: &(String, String)) -> bool {
    key.1.is_empty() || sections.len() < GROUP_COUNT_MAX || sections.contains_key(key)
}

impl Recorder for SectionRecorder {
    fn add(&self, metric: MetricId, value: f64, tags: &Tags<'_>) {
        self.add_values(&[(metric, value)], tags);
        self.inner.add(metric, value, tags);
    }

    fn http(&self, sample: &HttpSample<'_>) {
        self.add_values(&sample.values(), sample.tags);
        self.inner.http(sample);
    }

    fn check(&self, group: &str, name: &str, is_ok: bool, tags: &Tags<'_>) {
        self.add_values(&[(MetricId::CHECKS, f64::from(u8::from(is_ok)))], tags);
        self.change(tags, |figures| figures.count_check(group, name, is_ok));
        self.inner.check(group, name, is_ok, tags);
    }

    fn group(&self, path: &str) {
        self.inner.group(path);
    }
}
