//! The page of one run, saved or under way: what the browser draws, made from the record.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use squall_measure::{Cause, Event, Histogram, Monitor, Row, RowKey, RunRecord, ToolRun};
use squall_plan::Plan;

use super::columns::{self, Point};
use super::kinds::{self, FactBlock};
use super::lines::{PartLine, lines};
use super::values::{name_of, rounded};
use crate::summary::{LoadKind, Summary};
use crate::{terminal, wording};

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct RunPage {
    /// Everything but the series, in the form of the JSON contract.
    pub summary: Summary,
    /// For each of the summary's kinds: what schedules asked for per second, while they did.
    pub asked_per_s: Vec<Option<f64>>,
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
    pub series: PageSeries,
    /// Metrics monitored during the load.
    pub monitors: Vec<Monitor>,
    /// Moments to mark.
    pub events: Vec<Event>,
    /// Kinds, steps, loads, machines, and loads on machines, each with its own figures.
    pub parts: Vec<PartLine>,
    /// What only this kind of run has.
    pub blocks: Vec<FactBlock>,
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
pub struct PageSeries {
    /// The names of the points' values.
    pub columns: Vec<&'static str>,
    /// In time order.
    pub points: Vec<Point>,
}

impl From<&RunRecord> for RunPage {
    fn from(record: &RunRecord) -> Self {
        let series = record.series.coarsened(POINT_COUNT_MAX);
        let is_open = record.total.open_model;
        let step_s = f64::from(series.seconds_per_point);
        let point = |(idx, point)| Point::new(idx as f64 * step_s, point, is_open);
        let points = series.points.iter().enumerate().map(point).collect();
        let page = Self::without_series(record, Vec::new(), PART_POINT_COUNT_MAX);
        Self { series: PageSeries { columns: columns::names(), points }, ..page }
    }
}

impl RunPage {
    /// Everything but the points, which a live page is sent one by one. `machines`: those of a run under way; `point_count_max`: of all
    /// parts together.
    pub(super) fn without_series(
        record: &RunRecord,
        machines: Vec<PartLine>,
        point_count_max: usize,
    ) -> Self {
        let mut summary = Summary::of_totals(record);
        shorten(&mut summary.plan);
        let parts = lines(record, &summary, machines, point_count_max);
        let label = |error: &crate::ErrorGroup| {
            format!("{} {}", wording::cause(error.cause), wording::phase(error.phase))
        };
        let causes: BTreeSet<Cause> = summary.errors.iter().map(|error| error.cause).collect();
        let asked = |kind: &crate::KindTotals| {
            let schedule_s = summary.schedule_s_of(|load| LoadKind::of(load) == kind.kind);
            kind.asked.map(|asked| crate::summary::rate_per_s(asked, schedule_s))
        };
        let cause_label = |cause: &Cause| (name_of(cause), wording::cause(*cause).to_owned());
        Self {
            asked_per_s: summary.totals.kinds.iter().map(asked).collect(),
            rule_labels: summary.thresholds.iter().map(wording::rule).collect(),
            error_labels: summary.errors.iter().map(label).collect(),
            cause_labels: causes.iter().map(cause_label).collect(),
            warmup_s: record.plan.warmup.as_secs_f64(),
            curves: curves(record, &summary),
            series: PageSeries { columns: columns::names(), points: Vec::new() },
            monitors: record.monitors.iter().map(thinned).collect(),
            events: record.events.clone(),
            parts,
            blocks: kinds::blocks(record, &summary),
            tools: record.tools.clone(),
            summary,
        }
    }
}

/// All successes of each kind, the service times of an open model, failures, and the first few rows where there are several.
fn curves(record: &RunRecord, summary: &Summary) -> Vec<Curve> {
    let total = &record.total;
    let kinds = &summary.totals.kinds;
    let mut curves = Vec::new();
    if kinds.len() > 1 {
        curves.extend(kinds.iter().map(|kind| curve_of_kind(record, kind.kind)));
    } else {
        curves.push(curve("latency", &total.latency()));
        curves.extend(total.service().map(|times| curve("service time", times)));
    }
    curves.push(curve("failures", &total.latency_failed));
    if summary.rows.len() > 1 {
        let shown = record.rows.iter().zip(&total.rows).filter(|row| crate::summary::is_shown(row, record));
        let named = terminal::row_names(&summary.rows).into_iter().zip(shown);
        let row = |(name, (_, row)): (String, (&RowKey, &Row))| curve(&name, &row.latency);
        curves.extend(named.take(ROW_CURVE_COUNT_MAX).map(row));
    }
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

fn curve_of_kind(record: &RunRecord, kind: LoadKind) -> Curve {
    let mut times = Histogram::new();
    let own = record.rows.iter().zip(&record.total.rows);
    own.filter(|(key, _)| LoadKind::of_named(&record.plan, &key.load) == Some(kind))
        .for_each(|(_, row)| times.merge(&row.latency));
    curve(kind.words(), &times)
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
        if let Some(http) = load.what.http_mut() {
            http.requests.truncate(PLAN_REQUEST_COUNT_MAX);
        }
    }
}

/// Most points on a page: more than a screen has columns to tell apart, and a day stays far below 3 MB.
const POINT_COUNT_MAX: usize = 1200;

/// Most points of all parts of a run together: 1 MB of a page.
const PART_POINT_COUNT_MAX: usize = 3000;

/// Beyond so many, curves are a tangle.
const ROW_CURVE_COUNT_MAX: usize = 8;

const PLAN_REQUEST_COUNT_MAX: usize = 100;
