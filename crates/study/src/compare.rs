//! Two groups of runs: what differs, by how much, and how sure that is.

use squall_measure::{RunRecord, Status};

use crate::figures::{Figure, FigureKind, figures_of};
use crate::stats::{self, Interval};

/// What counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The chance of a false alarm that is accepted, over all figures together.
    pub alpha: f64,
    /// Changes smaller than this share are reported but not called a regression.
    pub change_min: f64,
    /// How many pairs of groups are compared in all: each has its part of `alpha`.
    pub pair_count: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { alpha: 0.05, change_min: 0.01, pair_count: 1 }
    }
}

/// What came of a comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// One for each figure that every run has.
    pub findings: Vec<Finding>,
    /// The gravest: worse, then better, then the rest.
    pub outcome: Outcome,
    /// Runs that were left out because their generator was not fit to measure.
    pub invalid_count: usize,
    /// Runs whose generator may be part of what was measured.
    pub suspect_count: usize,
    /// More runs of each group that a verdict would need.
    pub runs_missing: usize,
}

/// One figure, compared.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which.
    pub figure: Figure,
    /// A value for each run of the first group.
    pub a: Vec<f64>,
    /// A value for each run of the second group.
    pub b: Vec<f64>,
    /// The second over the first (geometric means), with its interval; of a share: the difference.
    pub change: Option<Interval>,
    /// Chance of a separation like this between equal groups, adjusted for all figures and pairs.
    pub p: Option<f64>,
    /// Cliff's delta.
    pub effect: Option<f64>,
    /// How far two groups of these sizes lie apart by chance (95 %), by how runs of the same group differ: a share.
    pub noise: Option<f64>,
    /// What it comes to.
    pub outcome: Outcome,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// No change was found.
    Same,
    /// There are not enough runs to tell.
    Unknown,
    /// The second group is better.
    Better,
    /// The second group is worse.
    Worse,
}

/// Compares runs of two groups. Runs whose verdict is INVALID are left out.
pub fn compare(a: &[&RunRecord], b: &[&RunRecord], options: Options) -> Comparison {
    let (fit_a, fit_b) = (fit(a), fit(b));
    let known = known_to_all(&fit_a, &fit_b);
    let findings = judge(known, options);
    let suspect =
        |runs: &[&RunRecord]| runs.iter().filter(|run| run.verdict.status == Status::Suspect).count();
    Comparison {
        outcome: findings.iter().map(|finding| finding.outcome).max().unwrap_or(Outcome::Unknown),
        findings,
        invalid_count: a.len() + b.len() - fit_a.len() - fit_b.len(),
        suspect_count: suspect(a) + suspect(b),
        runs_missing: runs_missing(fit_a.len(), fit_b.len(), options),
    }
}

/// The figures that every run has, with a value for each run of both groups.
fn known_to_all(a: &[&RunRecord], b: &[&RunRecord]) -> Vec<(Figure, Vec<f64>, Vec<f64>)> {
    let figures = |runs: &[&RunRecord]| runs.iter().map(|run| figures_of(run)).collect::<Vec<_>>();
    let (a, b) = (figures(a), figures(b));
    let Some(first) = a.first().filter(|_| !b.is_empty()) else { return Vec::new() };
    let values = |figure: &Figure, runs: &[Vec<(Figure, f64)>]| -> Option<Vec<f64>> {
        let of_run =
            |run: &Vec<(Figure, f64)>| run.iter().find(|(own, _)| own == figure).map(|(_, value)| *value);
        runs.iter().map(of_run).collect()
    };
    let known =
        |(figure, _): &(Figure, f64)| Some((figure.clone(), values(figure, &a)?, values(figure, &b)?));
    first.iter().filter_map(known).collect()
}

/// Those whose generator was fit to measure.
fn fit<'r>(runs: &[&'r RunRecord]) -> Vec<&'r RunRecord> {
    runs.iter().copied().filter(|run| run.verdict.status != Status::Invalid).collect()
}

/// The figures alone, for those who have them from elsewhere.
pub fn judge(known: Vec<(Figure, Vec<f64>, Vec<f64>)>, options: Options) -> Vec<Finding> {
    let Some((_, a, b)) = known.first() else { return Vec::new() };
    let (a_count, b_count) = (a.len(), b.len());
    let is_enough = runs_missing(a_count, b_count, options) == 0;
    let scaled = |(figure, a, b): &(Figure, Vec<f64>, Vec<f64>)| -> Vec<f64> {
        a.iter().chain(b).map(|&value| scale(figure, value)).collect()
    };
    let adjusted = stats::permutation_test(&known.iter().map(scaled).collect::<Vec<_>>(), a_count);
    let with_p = known.into_iter().zip(adjusted);
    with_p
        .map(|((figure, a, b), p)| {
            finding(figure, a, b, is_enough.then_some((p * options.pair_count as f64).min(1.0)), options)
        })
        .collect()
}

fn finding(figure: Figure, a: Vec<f64>, b: Vec<f64>, p: Option<f64>, options: Options) -> Finding {
    let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|&value| scale(&figure, value)).collect() };
    let (scaled_a, scaled_b) = (scaled(&a), scaled(&b));
    let has_spread = a.len() > 1 && b.len() > 1;
    let change = has_spread.then(|| unscaled(&figure, stats::difference(&scaled_a, &scaled_b)));
    let noise = has_spread.then(|| noise(&figure, &scaled_a, &scaled_b));
    let effect = has_spread.then(|| stats::cliffs_delta(&a, &b));
    let outcome = match (p, change) {
        (Some(p), Some(change)) if p <= options.alpha && is_large(&figure, change.value, options) => {
            direction(&figure, change.value)
        }
        (Some(_), Some(_)) => Outcome::Same,
        _ => Outcome::Unknown,
    };
    Finding { figure, a, b, change, p, effect, noise, outcome }
}

/// Shares are compared as they are, everything else by its logarithm: then a difference is a ratio.
fn scale(figure: &Figure, value: f64) -> f64 {
    if figure.kind == FigureKind::Share { value } else { value.ln() }
}

fn unscaled(figure: &Figure, change: Interval) -> Interval {
    let back = |value: f64| if figure.kind == FigureKind::Share { value } else { value.exp() };
    Interval { low: back(change.low), value: back(change.value), high: back(change.high) }
}

/// From the spread within the groups alone: what an A/A comparison of these sizes would show.
fn noise(figure: &Figure, a: &[f64], b: &[f64]) -> f64 {
    let reach = stats::student_t_97_5(a.len() + b.len() - 2) * stats::standard_error(a, b);
    if figure.kind == FigureKind::Share { reach } else { reach.exp() - 1.0 }
}

fn is_large(figure: &Figure, change: f64, options: Options) -> bool {
    match figure.kind {
        FigureKind::Share => change.abs() >= SHARE_CHANGE_MIN,
        _ => (change - 1.0).abs() >= options.change_min,
    }
}

fn direction(figure: &Figure, change: f64) -> Outcome {
    let is_more = if figure.kind == FigureKind::Share { change > 0.0 } else { change > 1.0 };
    if is_more == figure.more_is_better { Outcome::Better } else { Outcome::Worse }
}

/// How many more runs of each group it takes until the smallest possible p is below the level.
fn runs_missing(a_count: usize, b_count: usize, options: Options) -> usize {
    let level = options.alpha / options.pair_count as f64;
    (0..RUN_COUNT_MAX)
        .find(|more| stats::p_min(a_count + more, b_count + more) <= level)
        .unwrap_or(RUN_COUNT_MAX)
}

/// One request in ten thousand: fewer failures more or less are no change.
const SHARE_CHANGE_MIN: f64 = 1e-4;

/// More runs than anyone makes.
const RUN_COUNT_MAX: usize = 100;
