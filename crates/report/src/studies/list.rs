//! The saved runs of a place: a list for the terminal, and an index page with a link to each run's own.

use std::path::{Path, PathBuf};

use serde::Serialize;
use squall_measure::Status;

use crate::store::PAGE_FILE;
use crate::style::{Style, Tone};
use crate::summary::{Micros, Summary};
use crate::text::{Cell, Page as Text, Table};
use crate::{units, wording};

/// The saved runs of a place, the newest first.
#[derive(Debug, Clone, Serialize)]
pub struct IndexPage {
    /// What they are.
    pub title: String,
    /// The newest first.
    pub runs: Vec<ListedRun>,
}

/// A run in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedRun {
    /// Its page, relative to the list.
    pub href: String,
    /// The plan's name.
    pub name: String,
    /// When it started.
    pub started_at: String,
    /// How long it was measured, in seconds.
    pub duration_s: f64,
    /// Whether its generator was fit.
    pub status: Status,
    /// How many thresholds were met, in words.
    pub thresholds: String,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Requests that failed.
    pub failed: u64,
    /// Median latency.
    pub p50_us: Option<Micros>,
    /// 99th percentile of latency.
    pub p99_us: Option<Micros>,
    /// Its folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl ListedRun {
    /// The run in `folder`.
    pub fn new(folder: &Path, summary: &Summary) -> Self {
        let missed = summary.thresholds.iter().filter(|rule| !rule.ok).count();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Self {
            href: format!("{name}/{PAGE_FILE}"),
            name: summary.name.clone(),
            started_at: summary.started_at.clone(),
            duration_s: summary.duration_s,
            status: summary.verdict.status,
            thresholds: match (summary.thresholds.len(), missed) {
                (0, _) => "-".to_owned(),
                (count, 0) => format!("all {count} met"),
                (count, missed) => format!("{missed} of {count} missed"),
            },
            rate_per_s: summary.totals.rate_per_s,
            failed: summary.totals.failed,
            p50_us: summary.latency_us.p50,
            p99_us: summary.latency_us.p99,
            folder: folder.to_owned(),
        }
    }
}

impl IndexPage {
    /// With each run's folder first, whole, for the next command. `width`: of a terminal; columns that do not fit are left out.
    pub fn text(&self, style: Style, width: Option<usize>) -> String {
        let width = width.unwrap_or(usize::MAX);
        let mut table = self.table(&[]);
        for count in 1..=DISPENSABLE.len() {
            if table.fits(width) {
                break;
            }
            table = self.table(&DISPENSABLE[..count]);
        }
        let mut page = Text::new(Style { width: usize::MAX, ..style });
        page.table(&table);
        page.into_string()
    }

    fn table(&self, left_out: &[&str]) -> Table {
        let mut table = Table::default();
        let is_shown = |column: &usize| !left_out.contains(&HEAD[*column]);
        let pick = |cells: Vec<Cell>| {
            cells
                .into_iter()
                .enumerate()
                .filter(|(column, _)| is_shown(column))
                .map(|(_, cell)| cell)
                .collect()
        };
        table.row(pick(HEAD.map(|name| Cell::left(name).tone(Tone::Faint)).into()));
        self.runs.iter().for_each(|run| table.row(pick(run.cells())));
        table
    }
}

impl ListedRun {
    fn cells(&self) -> Vec<Cell> {
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let started = self.started_at.get(..19).unwrap_or(&self.started_at).replace('T', " ");
        let (word, tone) = match self.status {
            Status::Valid => ("VALID", Tone::Good),
            Status::Suspect => ("SUSPECT", Tone::Warning),
            Status::Invalid => ("INVALID", Tone::Bad),
        };
        vec![
            Cell::left(folder),
            Cell::left(started),
            Cell::right(units::span(
                std::time::Duration::try_from_secs_f64(self.duration_s).unwrap_or_default(),
            )),
            Cell::right(units::rate(self.rate_per_s)),
            Cell::right(units::count_short(self.failed)),
            Cell::right(wording::time(self.p50_us)),
            Cell::right(wording::time(self.p99_us)),
            Cell::left(self.thresholds.clone()),
            Cell::left(word).tone(tone),
        ]
    }
}

const HEAD: [&str; 9] =
    ["run", "started (UTC)", "for", "rate", "failed", "p50", "p99", "thresholds", "verdict"];

/// The first to be left out first: the folder's name also says when a run started.
const DISPENSABLE: [&str; 6] = ["started (UTC)", "for", "p50", "failed", "p99", "rate"];

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> IndexPage {
        let run = |name: &str| ListedRun {
            href: String::new(),
            name: name.to_owned(),
            started_at: "2026-08-30T14:12:00.123Z".to_owned(),
            duration_s: 12.0,
            status: Status::Valid,
            thresholds: "2 of 3 missed".to_owned(),
            rate_per_s: 12_345.0,
            failed: 3,
            p50_us: None,
            p99_us: None,
            folder: PathBuf::from(name),
        };
        let names =
            ["20260830-141200-one-load-of-localhost-28080", "20260830-141300-one-load-of-localhost-28080"];
        IndexPage { title: String::new(), runs: names.map(run).into() }
    }

    #[test]
    fn runs_are_named_whole_at_every_width() {
        for (width, columns) in [
            (None, "run started (UTC) for rate failed p50 p99 thresholds verdict"),
            (Some(120), "run for rate failed p50 p99 thresholds verdict"),
            (Some(80), "run rate thresholds verdict"),
            (Some(20), "run thresholds verdict"),
        ] {
            let text = page().text(Style::FILE, width);
            let head: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
            assert_eq!(head.join(" "), columns, "{text}");
            assert!(page().runs.iter().all(|run| text.contains(&run.name)), "{text}");
        }
    }
}
