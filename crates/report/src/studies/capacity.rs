//! The highest load that still meets the objectives: the answer, and the probes that led there.

use serde::Serialize;
use squall_measure::{RunRecord, Status};
use squall_study::capacity::{Answer, Outcome, Stage};

use crate::style::{Style, Tone};
use crate::text::{Cell, Page as Text, Table};
use crate::{units, wording};

/// A search for capacity, as every face of it shows it.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityPage {
    /// What was searched.
    pub title: String,
    /// The answer in one sentence.
    pub answer: String,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The objectives as typed.
    pub slo: String,
    /// In the order in which they were made.
    pub probes: Vec<Probe>,
    /// Which resource ran out, where that is known.
    pub limit_words: Option<String>,
}

/// One run of the search.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    rate: f64,
    /// Nothing: it did not count.
    holds: Option<bool>,
    words: String,
    status: Status,
    stage: &'static str,
    figures: Figures,
    report: Option<String>,
    #[serde(skip)]
    limit_words: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Figures {
    done_per_s: f64,
    failed_share: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

impl Probe {
    /// What a run at `rate` showed.
    pub fn new(
        rate: f64,
        stage: Stage,
        outcome: Outcome,
        record: &RunRecord,
        report: Option<String>,
    ) -> Self {
        let missed: Vec<&str> =
            record.thresholds.iter().filter(|rule| !rule.ok).map(|rule| rule.rule.as_str()).collect();
        let total = &record.total;
        let quantile = |q| total.latency().quantile(q).map(|ns| ns as f64 / 1e3);
        let settled = total.ok() + total.failed();
        Self {
            rate,
            holds: match outcome {
                Outcome::Holds => Some(true),
                Outcome::Fails => Some(false),
                Outcome::Void => None,
            },
            words: match outcome {
                Outcome::Holds => "met".to_owned(),
                Outcome::Fails => format!("missed {}", missed.join(", ")),
                Outcome::Void => "did not count".to_owned(),
            },
            status: record.verdict.status,
            stage: stage_name(stage),
            figures: Figures {
                done_per_s: record.rate_per_s(),
                failed_share: (settled > 0).then(|| total.failed() as f64 / settled as f64),
                p50_us: quantile(0.5),
                p99_us: quantile(0.99),
            },
            report,
            limit_words: (outcome == Outcome::Fails).then(|| limit_words(record)).flatten(),
        }
    }
}

impl CapacityPage {
    /// The answer to a search and all of its probes.
    pub fn new(title: String, slo: String, answer: Answer, probes: Vec<Probe>) -> Self {
        let (low, high) = match answer {
            Answer::Between { low_per_s, high_per_s } => (Some(low_per_s), Some(high_per_s)),
            Answer::Unsettled { low_per_s, high_per_s } | Answer::Stopped { low_per_s, high_per_s } => {
                (low_per_s, high_per_s)
            }
            Answer::NeverMissed { rate_per_s } => (Some(rate_per_s), None),
            Answer::NeverMet { rate_per_s } => (None, Some(rate_per_s)),
            Answer::GeneratorLimit { low_per_s, .. } => (low_per_s, None),
        };
        let limit_words = probes.iter().rev().find_map(|probe| probe.limit_words.clone());
        Self { title, answer: answer_words(answer), low, high, slo, probes, limit_words }
    }

    /// For the terminal.
    pub fn text(&self, style: Style) -> String {
        let mut page = Text::new(style);
        let tone = if self.low.is_some() && self.high.is_some() { Tone::Good } else { Tone::Warning };
        page.line(&[(tone, &self.answer)]);
        page.line(&[(Tone::Faint, "objectives: "), (Tone::Plain, &self.slo)]);
        if let Some(words) = &self.limit_words {
            page.line(&[(Tone::Plain, words)]);
        }
        page.gap();
        let mut table = Table::default();
        table.row(
            ["stage", "rate", "done", "p50", "p99", "failed", ""]
                .map(|name| Cell::right(name).tone(Tone::Faint))
                .into(),
        );
        self.probes.iter().for_each(|probe| table.row(probe.cells()));
        page.table(&table);
        page.into_string()
    }
}

impl Probe {
    fn cells(&self) -> Vec<Cell> {
        let or_dash =
            |figure: Option<f64>, text: fn(f64) -> String| figure.map_or_else(|| "-".to_owned(), text);
        let micros = |us: f64| units::latency((us * 1e3).round() as u64);
        let texts = [
            self.stage.to_owned(),
            units::rate(self.rate),
            units::rate(self.figures.done_per_s),
            or_dash(self.figures.p50_us, micros),
            or_dash(self.figures.p99_us, micros),
            or_dash(self.figures.failed_share, units::percent),
        ];
        let tone = match self.holds {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Warning,
        };
        texts.into_iter().map(Cell::right).chain([Cell::left(self.words.clone()).tone(tone)]).collect()
    }
}

/// The answer as one sentence.
pub fn answer_words(answer: Answer) -> String {
    let rate = units::rate;
    let end = |end: Option<f64>| end.map_or_else(|| "unknown".to_owned(), rate);
    match answer {
        Answer::Between { low_per_s, high_per_s } => format!(
            "the highest rate that meets the objectives is between {} and {} (95 %)",
            rate(low_per_s),
            rate(high_per_s)
        ),
        Answer::NeverMissed { rate_per_s } => {
            format!("the objectives were met at every rate up to the maximum of {}", rate(rate_per_s))
        }
        Answer::NeverMet { rate_per_s } => {
            format!("the objectives are not met at any rate, not even at {}", rate(rate_per_s))
        }
        Answer::GeneratorLimit { low_per_s: Some(low), rate_per_s } => {
            format!(
                "the limit is above {}; the generator cannot sustain {} to find it",
                rate(low),
                rate(rate_per_s)
            )
        }
        Answer::GeneratorLimit { low_per_s: None, rate_per_s } => {
            format!("no result: the generator cannot sustain {}", rate(rate_per_s))
        }
        Answer::Stopped { low_per_s, high_per_s } => {
            format!("stopped early: met at {}, missed at {}", end(low_per_s), end(high_per_s))
        }
        Answer::Unsettled { low_per_s, high_per_s } => format!(
            "the limit is not stable: mostly met at {}, mostly missed at {}",
            end(low_per_s),
            end(high_per_s)
        ),
    }
}

/// What was at its end while the objectives were missed: the target's CPUs if they were watched, else what failed.
fn limit_words(record: &RunRecord) -> Option<String> {
    let cpu =
        record.monitors.iter().find(|monitor| monitor.name == "cpu" && monitor.source.starts_with("target"));
    let most = cpu.and_then(|monitor| monitor.samples.iter().map(|&(_, value)| value).reduce(f64::max));
    let failures = record.total.failures.kinds();
    let backlog = record.verdict.notes.iter().find(|note| note.kind == squall_measure::ReasonKind::Backlog);
    let cpu_words =
        most.map(|percent| format!("beyond the limit the target used {percent:.0} % of a CPU at most"));
    let failure_words = failures.first().map(|kind| {
        format!("requests failed: {} {}", wording::cause(kind.cause), wording::phase(kind.phase))
    });
    let words: Vec<String> =
        [cpu_words, failure_words, backlog.map(ToString::to_string)].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Grow => "grow",
        Stage::Bisect => "bisect",
        Stage::Confirm => "confirm",
    }
}
