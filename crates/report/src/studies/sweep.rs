//! A load at levels: figures against the level, and where throughput stops growing.

use std::collections::BTreeMap;

use serde::Serialize;
use squall_measure::{MonitorUnit, RunRecord, Status};
use squall_plan::printable::csv_cell;
use squall_study::sweep::{Level, knee};

use crate::page::svg::{Axis, Chart};
use crate::style::{Style, Tone};
use crate::summary::Distribution;
use crate::text::{Cell, Page as Text, Table};
use crate::{units, wording};

/// A sweep, as every face of it shows it.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPage {
    /// What was swept.
    pub title: String,
    /// What a level is: `connections` or `requests/s asked`.
    pub level_name: String,
    /// One for each variant of the load.
    pub lines: Vec<SweepLine>,
    /// Watched figures that some level has.
    pub monitor_names: Vec<String>,
}

/// One variant of the load at every level.
#[derive(Debug, Clone, Serialize)]
pub struct SweepLine {
    /// What to call it.
    pub name: String,
    /// In rising order.
    pub levels: Vec<LevelRun>,
    /// Where throughput stops growing.
    pub knee: Option<Knee>,
}

/// Where throughput stops growing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// The level.
    pub level: f64,
    /// In words.
    pub words: String,
}

/// The run at one level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelRun {
    level: f64,
    ok: u64,
    failed: u64,
    rate_per_s: f64,
    bytes_per_s: f64,
    latency_us: Distribution,
    status: Status,
    reasons: Vec<String>,
    /// Means over the measured time of what was watched.
    monitors: BTreeMap<String, f64>,
    /// Its own page, relative to this one.
    report: Option<String>,
}

impl LevelRun {
    /// The run at `level`, whose page is at `report`.
    pub fn new(level: f64, record: &RunRecord, report: Option<String>) -> Self {
        let duration_s = record.duration.as_secs_f64();
        let per_s = |count: u64| crate::summary::rate_per_s(count, duration_s);
        Self {
            level,
            ok: record.total.ok(),
            failed: record.total.failed(),
            rate_per_s: per_s(record.total.ok()),
            bytes_per_s: per_s(record.total.bytes_received()),
            latency_us: Distribution::from(record.total.latency().as_ref()),
            status: record.verdict.status,
            reasons: record.verdict.reasons.iter().map(ToString::to_string).collect(),
            monitors: monitor_means(record),
            report,
        }
    }
}

impl SweepLine {
    /// A variant and its runs, in rising order of their levels.
    pub fn new(name: String, levels: Vec<LevelRun>, level_name: &str) -> Self {
        let points: Vec<Level> =
            levels.iter().map(|run| Level { level: run.level, rate_per_s: run.rate_per_s }).collect();
        let words = |level: Level| Knee {
            level: level.level,
            words: format!(
                "throughput stops growing at {level_name} {} ({})",
                units::count_short(level.level as u64),
                units::rate(level.rate_per_s)
            ),
        };
        Self { name, levels, knee: knee(&points).map(words) }
    }
}

impl SweepPage {
    /// A sweep of these variants.
    pub fn new(title: String, level_name: &str, lines: Vec<SweepLine>) -> Self {
        let mut monitor_names: Vec<String> = lines
            .iter()
            .flat_map(|line| &line.levels)
            .flat_map(|level| level.monitors.keys().cloned())
            .collect();
        monitor_names.sort();
        monitor_names.dedup();
        Self { title, level_name: level_name.to_owned(), lines, monitor_names }
    }

    /// For the terminal.
    pub fn text(&self, style: Style) -> String {
        let mut page = Text::new(style);
        for line in &self.lines {
            let knee = line.knee.as_ref().map_or(NO_KNEE, |knee| knee.words.as_str());
            page.line(&[(Tone::Title, &line.name), (Tone::Plain, "  "), (Tone::Plain, knee)]);
            let mut table = Table::default();
            let head = [self.level_name.as_str(), "rate", "failed", "p50", "p90", "p99", "max", "received"]
                .into_iter();
            let head = head.chain(self.monitor_names.iter().map(String::as_str)).chain([""]);
            table.row(head.map(|name| Cell::right(name).tone(Tone::Faint)).collect());
            line.levels.iter().for_each(|level| table.row(self.cells(level)));
            page.table(&table);
            page.gap();
        }
        page.into_string()
    }

    fn cells(&self, run: &LevelRun) -> Vec<Cell> {
        let times = &run.latency_us;
        let mut cells =
            vec![units::count_short(run.level as u64), units::rate(run.rate_per_s), units::count(run.failed)];
        cells.extend([times.p50, times.p90, times.p99, times.max].map(wording::time));
        cells.push(format!("{}/s", units::bytes(run.bytes_per_s as u64)));
        cells.extend(self.monitor_names.iter().map(|name| {
            run.monitors.get(name).map_or_else(|| "-".to_owned(), |value| monitor_text(name, *value))
        }));
        let mut cells: Vec<Cell> = cells.into_iter().map(Cell::right).collect();
        let (word, tone) = match run.status {
            Status::Valid => ("", Tone::Plain),
            Status::Suspect => ("SUSPECT", Tone::Warning),
            Status::Invalid => ("INVALID", Tone::Bad),
        };
        cells.push(Cell::left(word).tone(tone));
        cells
    }

    /// One line for each variant and level.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let monitors = self.monitor_names.iter().map(|name| name.replace([' ', ','], "_"));
        let head = CSV_HEAD.iter().map(|name| (*name).to_owned()).chain(monitors);
        let all = self.lines.iter().flat_map(|line| line.levels.iter().map(move |run| (line, run)));
        for cells in std::iter::once(head.collect()).chain(all.map(|(line, run)| self.csv_cells(line, run))) {
            let cells: Vec<String> = cells;
            writer.write_record(&cells).expect("as many cells in each line, into memory");
        }
        let bytes = writer.into_inner().expect("memory cannot fail to be flushed");
        String::from_utf8(bytes).expect("strings and numbers are UTF-8")
    }

    fn csv_cells(&self, line: &SweepLine, run: &LevelRun) -> Vec<String> {
        let times = &run.latency_us;
        let micros = [times.p50, times.p90, times.p99, times.p99_9, times.max]
            .map(|time| time.map_or(String::new(), |time| (time.0 as f64 / 1e3).to_string()));
        let mut cells = vec![csv_cell(&line.name).into_owned(), run.level.to_string()];
        cells.extend([run.ok.to_string(), run.failed.to_string(), run.rate_per_s.to_string()]);
        cells.push(format!("{:.0}", run.bytes_per_s));
        cells.extend(micros);
        cells.push(format!("{:?}", run.status).to_uppercase());
        let monitor = |name| run.monitors.get(name).map_or(String::new(), |value| format!("{value:.3}"));
        cells.extend(self.monitor_names.iter().map(monitor));
        cells
    }

    /// Charts for documents, by the name of their file: the two that such studies show (latency and throughput), and what was watched.
    pub fn charts(&self) -> Vec<(String, String)> {
        let level = Axis { is_log: true, text: |value| units::count_short(value.round() as u64) };
        let chart = |title: &str, y_label: &str, y: Axis, value: &dyn Fn(&LevelRun) -> Option<f64>| {
            let points = |line: &SweepLine| {
                line.levels.iter().filter_map(|run| Some((run.level, value(run)?))).collect()
            };
            let lines = self.lines.iter().map(|line| (line.name.clone(), points(line))).collect();
            Chart { title, x_label: &self.level_name, y_label, x: level, y, lines }.draw()
        };
        let micros = Axis { is_log: true, text: |us| units::latency((us * 1e3).round() as u64) };
        let rate = Axis { is_log: false, text: units::rate };
        let mut charts = vec![
            (
                "latency.svg".to_owned(),
                chart("Median latency", "p50", micros, &|run| {
                    run.latency_us.p50.map(|time| time.0 as f64 / 1e3)
                }),
            ),
            (
                "latency-p99.svg".to_owned(),
                chart("99th percentile of latency", "p99", micros, &|run| {
                    run.latency_us.p99.map(|time| time.0 as f64 / 1e3)
                }),
            ),
            (
                "throughput.svg".to_owned(),
                chart("Throughput", "successful requests per second", rate, &|run| Some(run.rate_per_s)),
            ),
        ];
        for name in &self.monitor_names {
            let axis = Axis { is_log: false, text: if name == "cpu" { percent_text } else { bytes_text } };
            charts.push((
                format!("target-{}.svg", name.replace(' ', "-")),
                chart(&format!("The target's {name}"), name, axis, &|run| run.monitors.get(name).copied()),
            ));
        }
        charts
    }
}

/// The mean of each watched figure of the target over the measured time.
fn monitor_means(record: &RunRecord) -> BTreeMap<String, f64> {
    let warmup_s = record.plan.warmup.as_secs_f64();
    let end_s = warmup_s + record.duration.as_secs_f64();
    let shown = record
        .monitors
        .iter()
        .filter(|monitor| matches!(monitor.unit, MonitorUnit::Percent | MonitorUnit::Bytes));
    let mean = |monitor: &squall_measure::Monitor| {
        let values: Vec<f64> = monitor
            .samples
            .iter()
            .filter(|&&(at_s, _)| (warmup_s..=end_s).contains(&at_s))
            .map(|&(_, value)| value)
            .collect();
        (!values.is_empty()).then(|| (monitor.name.clone(), squall_study::stats::mean(&values)))
    };
    shown.filter_map(mean).collect()
}

fn monitor_text(name: &str, value: f64) -> String {
    if name == "cpu" { percent_text(value) } else { bytes_text(value) }
}

fn percent_text(value: f64) -> String {
    format!("{value:.0} %")
}

fn bytes_text(value: f64) -> String {
    units::bytes(value as u64)
}

/// Why there is none.
const NO_KNEE: &str =
    "no knee found: throughput still grows at the highest level, or there are too few levels";

const CSV_HEAD: [&str; 12] = [
    "line",
    "level",
    "ok",
    "failed",
    "rate_per_s",
    "bytes_received_per_s",
    "latency_us_p50",
    "latency_us_p90",
    "latency_us_p99",
    "latency_us_p99_9",
    "latency_us_max",
    "verdict",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants_are_cells_of_csv_and_no_formulas() {
        let run = LevelRun {
            level: 2.0,
            ok: 1,
            failed: 0,
            rate_per_s: 1.5,
            bytes_per_s: 10.0,
            latency_us: Distribution::default(),
            status: Status::Valid,
            reasons: Vec::new(),
            monitors: BTreeMap::from([("cpu".to_owned(), 50.0)]),
            report: None,
        };
        let line = SweepLine { name: "=1,\"2\"\n".to_owned(), levels: vec![run], knee: None };
        let csv = SweepPage::new("t".to_owned(), "connections", vec![line]).csv();
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(rows.headers().unwrap().len(), CSV_HEAD.len() + 1);
        let row = rows.records().next().unwrap().unwrap();
        assert_eq!((&row[0], &row[1], &row[12]), ("'=1,\"2\"\n", "2", "50.000"));
    }
}
