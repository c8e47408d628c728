//! The figures of a run that are compared: one number each.

use squall_measure::RunRecord;

/// A figure.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Its name in reports.
    pub name: &'static str,
    /// What it is measured in.
    pub kind: FigureKind,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Its value; `None` where the run has none.
    pub of: fn(&RunRecord) -> Option<f64>,
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// Requests per second.
    PerSecond,
    /// Microseconds.
    Micros,
    /// A share of the requests that ended, 0 to 1: compared by difference, because its ratio may be over zero.
    Share,
}

/// Every figure that a comparison looks at.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "rate",
        kind: FigureKind::PerSecond,
        more_is_better: true,
        of: |run| positive(run.rate_per_s()),
    },
    Figure {
        name: "mean",
        kind: FigureKind::Micros,
        more_is_better: false,
        of: |run| run.total.latency().mean().map(|ns| ns / 1e3),
    },
    Figure { name: "p50", kind: FigureKind::Micros, more_is_better: false, of: |run| quantile(run, 0.5) },
    Figure { name: "p90", kind: FigureKind::Micros, more_is_better: false, of: |run| quantile(run, 0.9) },
    Figure { name: "p99", kind: FigureKind::Micros, more_is_better: false, of: |run| quantile(run, 0.99) },
    Figure { name: "failed", kind: FigureKind::Share, more_is_better: false, of: failed_share },
];

fn quantile(run: &RunRecord, q: f64) -> Option<f64> {
    positive(run.total.latency().quantile(q)? as f64 / 1e3)
}

fn failed_share(run: &RunRecord) -> Option<f64> {
    let settled = run.total.ok() + run.total.failed();
    (settled > 0).then(|| run.total.failed() as f64 / settled as f64)
}

/// Ratios are of values above zero.
fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}
