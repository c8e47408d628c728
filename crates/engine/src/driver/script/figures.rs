//! What a script measures, gathered on one shard until the second is over.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

use squall_measure::{ScriptFigures, ScriptMetric, ScriptUnit, ScriptValue, Trend};
use squall_script::{Contains, Counts, HttpSample, MetricDef, MetricId, MetricKind, Program, Recorder, Tags};

/// A sub-metric: the samples of a metric that have these tags.
#[derive(Debug, Clone)]
pub struct Submetric {
    /// The metric.
    pub metric: MetricId,
    /// Tags that a sample must have, all of them.
    pub tags: Vec<(String, String)>,
    /// The tags as the script writes them.
    pub filter: String,
}

/// A part of a metric's samples.
#[derive(Debug, Clone)]
struct Sub {
    /// Tags that samples must have.
    tags: Vec<(String, String)>,
    /// The one tag is `expected_response`, with this value: k6's own sub-metric, asked for each request.
    expected: Option<bool>,
    /// Index of its figures.
    idx: usize,
}

/// The figures of one shard.
#[derive(Debug)]
pub(super) struct Figures {
    figures: RefCell<ScriptFigures>,
    /// Of each metric: its sub-metrics.
    subs: Vec<Vec<Sub>>,
    now_ns: Cell<u64>,
    /// When the numbers of users were reported last.
    gauged_ns: Cell<u64>,
}

/// The sub-metrics that thresholds name, and k6's own one.
///
/// # Errors
/// The first name that is no metric of the script, or whose tags cannot be read.
pub(super) fn submetrics<'a>(
    program: &Program,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<Submetric>, String> {
    let mut all = vec![Submetric::read(MetricId::HTTP_REQ_DURATION, "", "expected_response:true")?];
    for name in names {
        let (base, filter) = name.split_once('{').unwrap_or((name, ""));
        let metric = program.metrics().position(|metric| metric.name == base.trim());
        let metric = metric.ok_or_else(|| format!("there is no metric `{}`", base.trim()))?;
        if let Some(filter) = filter.strip_suffix('}') {
            let sub = Submetric::read(MetricId(metric as u32), name, filter)?;
            if !all.iter().any(|known| known.is_same(&sub)) {
                all.push(sub);
            }
        } else if name.contains('{') {
            return Err(format!("`{name}` lacks a closing brace"));
        }
    }
    Ok(all)
}

/// The figures of a program before anything is measured.
pub(super) fn empty_figures(program: &Program, submetrics: &[Submetric]) -> ScriptFigures {
    Figures::new(program, submetrics, false).into_inner()
}

/// Index in the figures of a metric as thresholds name it.
///
/// # Errors
/// When there is no such metric.
pub(super) fn metric_of(program: &Program, submetrics: &[Submetric], name: &str) -> Result<usize, String> {
    let (base, filter) = name.split_once('{').unwrap_or((name, ""));
    let idx = program.metrics().position(|metric| metric.name == base.trim());
    let idx = idx.ok_or_else(|| format!("there is no metric `{}`", base.trim()))?;
    let Some(filter) = filter.strip_suffix('}') else { return Ok(idx) };
    let wanted = Submetric::read(MetricId(idx as u32), name, filter)?;
    let place = submetrics.iter().position(|known| known.is_same(&wanted));
    place
        .map(|place| program.metrics().count() + place)
        .ok_or_else(|| format!("there is no sub-metric `{name}`"))
}

impl Submetric {
    /// A sub-metric as a threshold names it, without spaces around its tags.
    fn read(metric: MetricId, name: &str, filter: &str) -> Result<Self, String> {
        Ok(Self { metric, tags: tags_of(name, filter)?, filter: filter.trim().to_owned() })
    }

    /// Whether both have the same samples, however they are written.
    fn is_same(&self, other: &Self) -> bool {
        self.metric == other.metric && self.tags == other.tags
    }
}

fn tags_of(name: &str, filter: &str) -> Result<Vec<(String, String)>, String> {
    let clean =
        |text: &str| text.trim().trim_matches(|quote| quote == '"' || quote == '\'').trim().to_owned();
    let pair = |part: &str| {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        let (key, value) = (clean(key), clean(value));
        if key.is_empty() || value.is_empty() {
            return Err(format!("`{name}` has a tag without a value"));
        }
        Ok((key, value))
    };
    filter.split(',').map(pair).collect()
}

impl Figures {
    pub(super) fn new(program: &Program, submetrics: &[Submetric], exact: bool) -> Self {
        let defs: Vec<&MetricDef> = program.metrics().collect();
        let mut subs = vec![Vec::new(); defs.len()];
        let mut metrics: Vec<ScriptMetric> = defs.iter().map(|def| metric(def, None, exact)).collect();
        for sub in submetrics {
            let idx = sub.metric.0 as usize;
            subs[idx].push(Sub::new(&sub.tags, metrics.len()));
            metrics.push(metric(defs[idx], Some(sub), exact));
        }
        Self {
            figures: RefCell::new(ScriptFigures { metrics, ..ScriptFigures::default() }),
            subs,
            now_ns: Cell::new(1),
            gauged_ns: Cell::new(0),
        }
    }

    /// The figures alone.
    pub(super) fn into_inner(self) -> ScriptFigures {
        self.figures.into_inner()
    }

    pub(super) fn set_now(&self, now_ns: u64) {
        self.now_ns.set(now_ns);
    }

    /// Hands the figures over, and begins anew.
    pub(super) fn fill(&self, into: &mut ScriptFigures) {
        let mut figures = self.figures.borrow_mut();
        into.merge(&figures);
        figures.clear();
    }

    /// Adds the gauges of users, once a second; gives what was added.
    pub(super) fn add_gauges(&self, counts: &Counts, now_ns: u64) -> Vec<(MetricId, f64)> {
        if now_ns < self.gauged_ns.get() + GAUGE_NS {
            return Vec::new();
        }
        self.gauged_ns.set(now_ns);
        self.set_now(now_ns);
        let active = counts.vus_active.load(Ordering::Relaxed) as f64;
        let made = counts.vus_initialised.load(Ordering::Relaxed) as f64;
        let values = vec![(MetricId::VUS, active), (MetricId::VUS_MAX, made)];
        let mut figures = self.figures.borrow_mut();
        for (metric, value) in &values {
            figures.metrics[metric.0 as usize].value.add(*value, now_ns);
        }
        values
    }
}

impl Sub {
    fn new(tags: &[(String, String)], idx: usize) -> Self {
        let expected = match tags {
            [(key, value)] if key == "expected_response" => value.parse().ok(),
            _ => None,
        };
        Self { tags: tags.to_vec(), expected, idx }
    }

    /// Whether a sample with these tags belongs to it.
    fn has(&self, tags: &Tags<'_>) -> bool {
        if self.expected.is_some() && tags.custom.iter().all(|own| own.is_empty()) {
            let expected = tags.http.and_then(|http| http.expected);
            return expected == self.expected && tags.system.has("expected_response");
        }
        self.tags.iter().all(|(key, wanted)| tags.get(key).is_some_and(|value| value == wanted.as_str()))
    }
}

impl Recorder for Figures {
    fn add(&self, metric: MetricId, value: f64, tags: &Tags<'_>) {
        let (mut figures, now_ns, idx) = (self.figures.borrow_mut(), self.now_ns.get(), metric.0 as usize);
        figures.metrics[idx].value.add(value, now_ns);
        for sub in self.subs[idx].iter().filter(|sub| sub.has(tags)) {
            figures.metrics[sub.idx].value.add(value, now_ns);
        }
    }

    fn http(&self, sample: &HttpSample<'_>) {
        let (timing, tags) = (sample.timing, sample.tags);
        let millis = |ns: u64| ns as f64 / 1e6;
        self.add(MetricId::HTTP_REQS, 1.0, tags);
        self.add(MetricId::HTTP_REQ_DURATION, millis(timing.duration_ns()), tags);
        self.add(MetricId::HTTP_REQ_BLOCKED, millis(timing.blocked_ns), tags);
        self.add(MetricId::HTTP_REQ_CONNECTING, millis(timing.connecting_ns), tags);
        self.add(MetricId::HTTP_REQ_TLS_HANDSHAKING, millis(timing.tls_handshaking_ns), tags);
        self.add(MetricId::HTTP_REQ_SENDING, millis(timing.sending_ns), tags);
        self.add(MetricId::HTTP_REQ_WAITING, millis(timing.waiting_ns), tags);
        self.add(MetricId::HTTP_REQ_RECEIVING, millis(timing.receiving_ns), tags);
        if let Some(is_failed) = sample.is_failed {
            self.add(MetricId::HTTP_REQ_FAILED, f64::from(u8::from(is_failed)), tags);
        }
    }

    fn check(&self, group: &str, name: &str, is_ok: bool, tags: &Tags<'_>) {
        self.add(MetricId::CHECKS, f64::from(u8::from(is_ok)), tags);
        self.figures.borrow_mut().count_check(group, name, is_ok);
    }

    fn group(&self, path: &str) {
        self.figures.borrow_mut().enter(path);
    }
}

fn metric(def: &MetricDef, sub: Option<&Submetric>, exact: bool) -> ScriptMetric {
    let value = match def.kind {
        MetricKind::Counter => ScriptValue::Counter { sum: 0.0, count: 0 },
        MetricKind::Gauge => ScriptValue::Gauge { last: 0.0, min: 0.0, max: 0.0, at_ns: 0 },
        MetricKind::Rate => ScriptValue::Rate { trues: 0, total: 0 },
        MetricKind::Trend => {
            ScriptValue::Trend(Box::new(if exact { Trend::exact() } else { Trend::default() }))
        }
    };
    let contains = match def.contains {
        Contains::Default => ScriptUnit::Default,
        Contains::Time => ScriptUnit::Time,
        Contains::Data => ScriptUnit::Data,
    };
    let (tags, filter) = sub.map(|sub| (sub.tags.clone(), sub.filter.clone())).unwrap_or_default();
    ScriptMetric { name: def.name.to_string(), tags, filter, contains, value }
}

/// k6 reports the numbers of users once a second; a shard's second may be a little short.
const GAUGE_NS: u64 = 900_000_000;
