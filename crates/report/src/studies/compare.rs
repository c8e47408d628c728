//! Groups of runs compared: the first group is what the others are held against.

use serde::Serialize;
use squall_measure::{Counted, Histogram, RunRecord, Status};
use squall_study::{Comparison, Figure, FigureKind, Finding, Options, Outcome, compare, differences};

use super::{markdown_table, signed_percent};
use crate::page::svg::{Axis, Chart};
use crate::page::{Curve, curve};
use crate::style::{Style, Tone};
use crate::text::{Cell, Page as Text, Table};
use crate::{time, units};

/// Runs of one kind.
#[derive(Debug, Clone)]
pub struct Group {
    /// What to call it.
    pub name: String,
    /// Each run with its own name; at least one.
    pub runs: Vec<(String, RunRecord)>,
}

/// A comparison, as every face of it shows it.
#[derive(Debug, Clone, Serialize)]
pub struct ComparePage {
    /// What is compared.
    pub title: String,
    /// Each other group against the first.
    pub pairs: Vec<Pair>,
    /// Every run.
    pub runs: Vec<ComparedRun>,
}

/// One group against the first.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    /// The first group.
    pub a: String,
    /// The other one.
    pub b: String,
    /// The answer in one line.
    pub headline: String,
    /// `worse`, `better`, `same` or `unknown`.
    pub outcome: &'static str,
    /// Figure by figure.
    pub findings: Vec<FindingLine>,
    /// What to know before believing it.
    pub notes: Vec<String>,
    /// What differs between the groups' plans.
    pub differences: Vec<String>,
}

/// A figure.
#[derive(Debug, Clone, Serialize)]
pub struct FindingLine {
    /// Its name.
    pub metric: String,
    /// What its values are measured in.
    pub unit: &'static str,
    /// A value for each run of the first group.
    pub a: Vec<f64>,
    /// A value for each run of the other one.
    pub b: Vec<f64>,
    /// The second over the first, with its interval; nothing for a share.
    pub ratio: Option<Range>,
    /// Of a share: the second less the first, with its interval.
    pub difference: Option<Range>,
    /// Adjusted p of the permutation test.
    pub p: Option<f64>,
    /// Cliff's delta.
    pub effect: Option<f64>,
    /// How far groups of these sizes lie apart by chance.
    pub noise: Option<f64>,
    /// What it comes to, in words.
    pub words: &'static str,
    /// The same for programs.
    pub outcome: &'static str,
}

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Estimate.
    pub value: f64,
    /// Upper end.
    pub high: f64,
}

/// A run for the overlaid charts.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedRun {
    group: String,
    name: String,
    started_at: String,
    status: Status,
    curve: Curve,
    series: Overlay,
}

#[derive(Debug, Clone, Serialize)]
struct Overlay {
    x: Vec<f64>,
    rate: Vec<Option<f64>>,
    p50: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
}

impl ComparePage {
    /// Compares each group with the first one; `groups` has at least two.
    pub fn new(groups: &[Group], options: Options) -> Self {
        let Some((first, others)) = groups.split_first() else {
            return Self { title: String::new(), pairs: Vec::new(), runs: Vec::new() };
        };
        let options = Options { pair_count: others.len().max(1), ..options };
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let runs =
            groups.iter().flat_map(|group| group.runs.iter().map(|run| ComparedRun::new(&group.name, run)));
        Self {
            title: format!("{} compared", names.join(", ")),
            pairs: others.iter().map(|other| pair(first, other, options)).collect(),
            runs: runs.collect(),
        }
    }

    /// Whether any group is worse than the first.
    pub fn is_worse(&self) -> bool {
        self.pairs.iter().any(|pair| pair.outcome == outcome_name(Outcome::Worse))
    }

    /// For the terminal.
    pub fn text(&self, style: Style) -> String {
        let mut page = Text::new(style);
        for (idx, pair) in self.pairs.iter().enumerate() {
            if idx > 0 {
                page.gap();
            }
            page.line(&[(tone(pair.outcome), &pair.headline)]);
            page.gap();
            let mut table = Table::default();
            table.row(pair.head().map(|name| Cell::right(name).tone(Tone::Faint)).into());
            for finding in &pair.findings {
                let mut cells: Vec<Cell> = finding.cells().into_iter().map(Cell::right).collect();
                cells.push(Cell::left(finding.words).tone(tone(finding.outcome)));
                table.row(cells);
            }
            page.table(&table);
            pair.notes.iter().for_each(|note| page.paragraph((Tone::Hint, "  note: "), note));
        }
        page.into_string()
    }

    /// For a pull request.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for pair in &self.pairs {
            let rows: Vec<Vec<String>> = pair
                .findings
                .iter()
                .map(|finding| [finding.cells(), vec![finding.words.to_owned()]].concat())
                .collect();
            let head = [&pair.head()[..], &["finding"]].concat();
            text += &format!("**{}**\n\n{}\n", pair.headline, markdown_table(&head, &rows));
            pair.notes.iter().for_each(|note| text += &format!("- {note}\n"));
        }
        text + "\nEach run counts once; intervals are 95 % (bootstrap-t), p is from a permutation test over runs, adjusted for all metrics.\n"
    }
}

/// Charts for documents, by the names of their files: each group's latency by percentile, over the requests of all its runs, and the
/// rate of each of its runs.
pub fn charts(groups: &[Group]) -> Vec<(&'static str, String)> {
    let lines = |of: fn(&Group) -> Vec<(f64, f64)>| -> Vec<(String, Vec<(f64, f64)>)> {
        groups.iter().map(|group| (group.name.clone(), of(group))).collect()
    };
    let words = Words::of(counted(groups));
    let latency = Chart {
        title: words.latency,
        x_label: &format!("percentage of {}, logarithmic towards 100 %", words.measured),
        y_label: "latency",
        x: Axis { is_log: false, text: percentile },
        y: Axis { is_log: true, text: |us| units::latency((us * 1e3).round() as u64) },
        lines: lines(|group| curve(&group.name, &group.latency()).points),
    };
    let rate = Chart {
        title: "Rate of each run",
        x_label: "round",
        y_label: words.rate,
        x: Axis {
            is_log: false,
            text: |round| if round.fract() == 0.0 { format!("{round}") } else { String::new() },
        },
        y: Axis { is_log: false, text: units::rate },
        lines: lines(|group| {
            (1_u32..).map(f64::from).zip(group.runs.iter().map(|(_, run)| rate_per_s(run))).collect()
        }),
    };
    vec![("latency.svg", latency.draw()), ("rate.svg", rate.draw())]
}

/// What the runs of these groups are measured by.
fn counted(groups: &[Group]) -> Counted {
    Counted::of(groups.iter().flat_map(|group| &group.runs).flat_map(|(_, run)| &run.plan.loads))
}

fn rate_per_s(run: &RunRecord) -> f64 {
    let ended = Counted::of(&run.plan.loads).ended(&run.total);
    crate::summary::rate_per_s(ended, run.duration.as_secs_f64())
}

/// What the charts for documents say.
struct Words {
    latency: &'static str,
    measured: &'static str,
    rate: &'static str,
}

impl Words {
    fn of(counted: Counted) -> Self {
        let (latency, measured, rate) = match counted {
            Counted::Operations => ("Latency by percentile", "requests", "completed requests per second"),
            Counted::Messages => ("Message latency by percentile", "messages", "messages per second"),
            Counted::Events => ("Time to the first event by percentile", "streams", "events per second"),
        };
        Self { latency, measured, rate }
    }
}

/// One nine is 90 %, three are 99.9 %; nothing between whole ones.
fn percentile(nines: f64) -> String {
    if nines.fract() == 0.0 { format!("{} %", 100.0 - 100.0 * 10f64.powf(-nines)) } else { String::new() }
}

impl Group {
    fn records(&self) -> Vec<&RunRecord> {
        self.runs.iter().map(|(_, record)| record).collect()
    }

    /// Of all requests, messages or streams of all its runs.
    fn latency(&self) -> Histogram {
        let mut latency = Histogram::new();
        let of_run = |run: &RunRecord| Counted::of(&run.plan.loads).latency(&run.total).into_owned();
        self.runs.iter().for_each(|(_, run)| latency.merge(&of_run(run)));
        latency
    }
}

fn pair(first: &Group, other: &Group, options: Options) -> Pair {
    let comparison = compare(&first.records(), &other.records(), options);
    let findings: Vec<FindingLine> = comparison.findings.iter().map(FindingLine::from).collect();
    Pair {
        a: first.name.clone(),
        b: other.name.clone(),
        headline: headline(first, other, &comparison, &findings),
        outcome: outcome_name(comparison.outcome),
        notes: notes(&comparison),
        differences: match (first.runs.first(), other.runs.first()) {
            (Some((_, a)), Some((_, b))) => differences(&a.plan, &b.plan),
            _ => Vec::new(),
        },
        findings,
    }
}

fn headline(first: &Group, other: &Group, comparison: &Comparison, findings: &[FindingLine]) -> String {
    let (a, b) = (&first.name, &other.name);
    let changed = |outcome: Outcome| -> String {
        let of = findings.iter().filter(|finding| finding.outcome == outcome_name(outcome));
        of.map(|finding| format!("{} {}", finding.metric, finding.change_words()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match comparison.outcome {
        Outcome::Worse => format!("{b} is worse than {a}: {}", changed(Outcome::Worse)),
        Outcome::Better => format!("{b} is better than {a}: {}", changed(Outcome::Better)),
        Outcome::Same => format!(
            "no change found between {a} and {b} in {} and {} runs",
            first.runs.len(),
            other.runs.len()
        ),
        Outcome::Unknown if comparison.runs_missing > 0 => {
            format!(
                "not enough runs to distinguish {a} and {b}: {} more of each",
                units::counted(comparison.runs_missing as u64, "run")
            )
        }
        Outcome::Unknown => {
            format!("nothing to compare between {a} and {b}: no metric is present in every run")
        }
    }
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let runs = |count: usize| units::counted(count as u64, "run");
    if comparison.invalid_count > 0 {
        notes.push(format!(
            "{} left out: the generator did not keep up (INVALID)",
            runs(comparison.invalid_count)
        ));
    }
    if comparison.suspect_count > 0 {
        notes.push(format!(
            "{} SUSPECT: the generator may have affected the comparison",
            runs(comparison.suspect_count)
        ));
    }
    if comparison.runs_missing > 0 {
        notes.push("with fewer runs a difference cannot be distinguished from chance; make interleaved runs: `squall compare --run A B --repeat 5`".to_owned());
    }
    notes
}

impl Pair {
    fn head(&self) -> [&str; 7] {
        ["", &self.a, &self.b, "change (95 %)", "p", "effect", "noise"]
    }
}

impl From<&Finding> for FindingLine {
    fn from(finding: &Finding) -> Self {
        let is_share = finding.figure.kind == FigureKind::Share;
        let range =
            finding.change.map(|change| Range { low: change.low, value: change.value, high: change.high });
        Self {
            metric: finding.figure.name.to_string(),
            unit: unit(&finding.figure),
            a: finding.a.clone(),
            b: finding.b.clone(),
            ratio: range.filter(|_| !is_share),
            difference: range.filter(|_| is_share),
            p: finding.p,
            effect: finding.effect,
            noise: finding.noise,
            words: outcome_words(finding.outcome),
            outcome: outcome_name(finding.outcome),
        }
    }
}

impl FindingLine {
    fn cells(&self) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            self.metric.clone(),
            self.value_words(&self.a),
            self.value_words(&self.b),
            self.change_words(),
            or_dash(self.p.map(|p| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") })),
            or_dash(self.effect.map(|effect| format!("{effect:+.2}"))),
            or_dash(self.noise.map(|noise| format!("± {}", units::percent(noise)))),
        ]
    }

    fn value_words(&self, values: &[f64]) -> String {
        let mean = squall_study::stats::mean(values);
        match self.unit {
            "us" => units::latency((mean * 1e3).round() as u64),
            "bytes" => units::bytes(mean.round() as u64),
            "fraction" => units::percent(mean),
            _ => units::rate(mean),
        }
    }

    fn change_words(&self) -> String {
        let shift = |range: Range| (range, if self.ratio.is_some() { 1.0 } else { 0.0 });
        self.ratio.or(self.difference).map(shift).map_or_else(
            || "-".to_owned(),
            |(range, origin)| {
                let words = |value: f64| signed_percent(value - origin);
                format!("{} ({} to {})", words(range.value), words(range.low), words(range.high))
            },
        )
    }
}

impl ComparedRun {
    fn new(group: &str, (name, record): &(String, RunRecord)) -> Self {
        let started = std::time::UNIX_EPOCH + std::time::Duration::from_millis(record.started_unix_ms);
        Self {
            group: group.to_owned(),
            name: name.clone(),
            started_at: time::rfc3339(started),
            status: record.verdict.status,
            curve: curve("latency", &Counted::of(&record.plan.loads).latency(&record.total)),
            series: Overlay::from(record),
        }
    }
}

impl From<&RunRecord> for Overlay {
    fn from(record: &RunRecord) -> Self {
        let series = record.series.coarsened(OVERLAY_POINT_COUNT_MAX);
        let micros = |ns: u64| ns as f64 / 1e3;
        let step_s = f64::from(series.seconds_per_point);
        let warmup_s = record.plan.warmup.as_secs_f64();
        let counted = Counted::of(&record.plan.loads);
        let mut overlay = Self { x: Vec::new(), rate: Vec::new(), p50: Vec::new(), p99: Vec::new() };
        for (idx, point) in series.points.iter().enumerate() {
            let at_s = (idx as f64 + 0.5) * step_s;
            // A remnant at the end would show a rate that is chance, and the warm-up has none.
            if point.wall.as_secs_f64() >= 0.5 && at_s > warmup_s {
                overlay.x.push(at_s);
                overlay.rate.push(Some(counted.rate_per_s(point)));
                overlay.p50.push(counted.times(point).quantile(0.5).map(micros));
                overlay.p99.push(counted.times(point).quantile(0.99).map(micros));
            }
        }
        overlay
    }
}

fn unit(figure: &Figure) -> &'static str {
    match figure.kind {
        FigureKind::PerSecond => "per_second",
        FigureKind::Micros => "us",
        FigureKind::Bytes => "bytes",
        FigureKind::Share => "fraction",
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Worse => "worse",
        Outcome::Better => "better",
        Outcome::Same => "same",
        Outcome::Unknown => "unknown",
    }
}

fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Worse => "worse",
        Outcome::Better => "better",
        Outcome::Same => "no change found",
        Outcome::Unknown => "too few runs",
    }
}

fn tone(outcome: &str) -> Tone {
    match outcome {
        "worse" => Tone::Bad,
        "better" => Tone::Good,
        "unknown" => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// Enough for lines that lie over each other.
const OVERLAY_POINT_COUNT_MAX: usize = 400;
