//! The page of one run, saved or under way: what the browser draws, made from the record.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use squall_measure::{Cause, Event, Histogram, Monitor, Part, PartKind, RunRecord, Status, ToolRun};
use squall_plan::{Plan, What};

use super::columns::{COLUMNS, Point};
use super::kinds::{self, Block};
use crate::summary::{Distribution, Summary};
use crate::{MachineGlance, wording};

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct RunPage {
    /// Everything but the series, in the form of the JSON contract.
    pub summary: Summary,
    /// Open model: requests per second that schedules asked for, while they did.
    pub asked_per_s: Option<f64>,
    /// Each of the summary's thresholds with what it is about.
    pub rule_labels: Vec<String>,
    /// What to say of each of the summary's errors.
    pub error_labels: Vec<String>,
    /// What to say of each cause in the series.
    pub cause_labels: BTreeMap<String, String>,
    /// Length of the warm-up in seconds: points before it are in no total.
    pub warmup_s: f64,
    /// Percentile curves: all successful requests first, then other sets.
    pub curves: Vec<Curve>,
    /// The run over time.
    pub series: Series,
    /// Figures watched beside the load.
    pub monitors: Vec<Monitor>,
    /// Moments to mark.
    pub events: Vec<Event>,
    /// Steps, loads and machines with figures of their own.
    pub parts: Vec<PartLine>,
    /// What only this kind of run has.
    pub blocks: Vec<Block>,
    /// What foreign tools printed.
    pub tools: Vec<ToolRun>,
}

/// A set of times by percentile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What it is about.
    pub name: String,
    /// Pairs: the nines of a percentile (1 is 90 %, 3 is 99.9 %) and the time in microseconds.
    pub points: Vec<(f64, f64)>,
}

/// A run over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The names of the points' values.
    pub columns: &'static [&'static str],
    /// In time order.
    pub points: Vec<Point>,
}

/// A step, a load or a machine in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartLine {
    /// What it is a part of.
    pub kind: PartKind,
    /// Its name.
    pub name: String,
    /// When it began, in seconds after the run's start.
    pub at_s: f64,
    /// How long it was measured, in seconds.
    pub duration_s: f64,
    /// Whether its generator can be trusted.
    pub status: Status,
    /// Why it ended before its time.
    pub problem: Option<String>,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Latencies of successes.
    pub latency_us: Distribution,
    /// Share of its time in which its event loops worked.
    pub busy: f64,
}

impl From<&RunRecord> for RunPage {
    fn from(record: &RunRecord) -> Self {
        let series = record.series.coarsened(POINT_COUNT_MAX);
        let is_open = record.total.open_model;
        let step_s = f64::from(series.seconds_per_point);
        let point = |(idx, point)| Point::new(idx as f64 * step_s, point, is_open);
        let points = series.points.iter().enumerate().map(point).collect();
        Self { series: Series { columns: COLUMNS, points }, ..Self::without_series(record) }
    }
}

impl RunPage {
    /// Everything but the points, which a live page is sent one by one.
    pub(super) fn without_series(record: &RunRecord) -> Self {
        let mut summary = Summary::of_totals(record);
        shorten(&mut summary.plan);
        let asked = summary.totals.requests_asked;
        let label = |error: &crate::ErrorGroup| {
            format!("{} {}", wording::cause(error.cause), wording::phase(error.phase))
        };
        let causes: BTreeSet<Cause> = summary.errors.iter().map(|error| error.cause).collect();
        let cause_label = |cause: &Cause| (name_of(cause), wording::cause(*cause).to_owned());
        Self {
            asked_per_s: asked.map(|asked| crate::summary::rate_per_s(asked, summary.schedule_s())),
            rule_labels: summary.thresholds.iter().map(wording::rule).collect(),
            error_labels: summary.errors.iter().map(label).collect(),
            cause_labels: causes.iter().map(cause_label).collect(),
            warmup_s: record.plan.warmup.as_secs_f64(),
            curves: curves(record),
            series: Series { columns: COLUMNS, points: Vec::new() },
            monitors: record.monitors.iter().map(thinned).collect(),
            events: record.events.clone(),
            parts: record.parts.iter().map(PartLine::from).collect(),
            blocks: kinds::blocks(record, &summary),
            tools: record.tools.clone(),
            summary,
        }
    }
}

impl From<&Part> for PartLine {
    fn from(part: &Part) -> Self {
        let (total, duration_s) = (&part.total, part.duration.as_secs_f64());
        let generator = &total.generator;
        let wall_s = generator.wall.as_secs_f64();
        Self {
            kind: part.kind,
            name: part.name.clone(),
            at_s: part.at_s,
            duration_s,
            status: part.verdict.status,
            problem: part.problem.clone(),
            ok: total.ok(),
            failed: total.failed(),
            rate_per_s: crate::summary::rate_per_s(total.ok() + total.failed(), duration_s),
            latency_us: Distribution::from(total.latency().as_ref()),
            busy: if wall_s > 0.0 { rounded(generator.busy.as_secs_f64() / wall_s) } else { 0.0 },
        }
    }
}

/// A machine of a run that goes on.
impl From<&MachineGlance<'_>> for PartLine {
    fn from(machine: &MachineGlance<'_>) -> Self {
        let MachineGlance { name, recorder, problem } = *machine;
        let (total, series) = (recorder.total(), recorder.series());
        let closed_s = f64::from(series.seconds_per_point) * series.points.len() as f64;
        let duration_s = (closed_s - recorder.setup().plan.warmup.as_secs_f64()).max(0.0);
        Self {
            kind: PartKind::Machine,
            name: name.to_owned(),
            at_s: 0.0,
            duration_s,
            status: recorder.verdict().status,
            problem: problem.map(str::to_owned),
            ok: total.ok(),
            failed: total.failed(),
            rate_per_s: crate::summary::rate_per_s(total.ok() + total.failed(), duration_s),
            latency_us: Distribution::from(total.latency().as_ref()),
            busy: recorder.last_second().map_or(0.0, |second| rounded(second.busy_max)),
        }
    }
}

/// All successes, the service times of an open model, failures, and the first few rows where there are several.
fn curves(record: &RunRecord) -> Vec<Curve> {
    let total = &record.total;
    let mut curves = vec![curve("latency", &total.latency())];
    curves.extend(total.service().map(|times| curve("service time", times)));
    curves.push(curve("failures", &total.latency_failed));
    if total.rows.len() > 1 {
        let row = |(key, row): (&squall_measure::RowKey, &squall_measure::Row)| {
            curve(&format!("{} {}", key.method, key.url), &row.latency)
        };
        curves.extend(record.rows.iter().zip(&total.rows).take(ROW_CURVE_COUNT_MAX).map(row));
    }
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

/// Sixteen points per nine, as far as the number of values carries them, and the largest value at the end.
pub(crate) fn curve(name: &str, times: &Histogram) -> Curve {
    let nines_max = (times.count() as f64).log10();
    let step = |idx: u32| f64::from(idx) / 16.0;
    let nines = (0..).map(step).take_while(|&nines| nines < nines_max);
    let at = |nines: f64| Some((nines, times.quantile(1.0 - 10f64.powf(-nines))? as f64 / 1e3));
    let mut points: Vec<(f64, f64)> = nines.filter_map(at).collect();
    points.extend(times.max().map(|max_ns| (rounded(nines_max), max_ns as f64 / 1e3)));
    Curve { name: name.to_owned(), points }
}

/// As many values as a chart can show.
fn thinned(monitor: &Monitor) -> Monitor {
    let step = monitor.samples.len().div_ceil(POINT_COUNT_MAX).max(1);
    let sample = |&(at_s, value): &(f64, f64)| (rounded(at_s), rounded(value));
    let samples = monitor.samples.iter().step_by(step).map(sample).collect();
    Monitor { source: monitor.source.clone(), name: monitor.name.clone(), unit: monitor.unit, samples }
}

/// A plan of a million URLs is in `plan.json`; a page shows its beginning.
fn shorten(plan: &mut Plan) {
    for load in &mut plan.loads {
        if let What::Http(http) = &mut load.what {
            http.requests.truncate(PLAN_REQUEST_COUNT_MAX);
        }
    }
}

/// The name that the JSON contract has for a value.
pub(super) fn name_of(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Most points on a page: more than a screen has columns to tell apart, and a day stays far below 3 MB.
const POINT_COUNT_MAX: usize = 1200;

/// Beyond so many, curves are a tangle.
const ROW_CURVE_COUNT_MAX: usize = 8;

const PLAN_REQUEST_COUNT_MAX: usize = 100;
