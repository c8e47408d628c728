//! The Markdown output: the result as CI systems and issue trackers show it. The thresholds are a table; every other figure is the summary
//! of the terminal, indented so that nothing in it is read as Markdown.

use std::fmt::Write;

use squall_measure::{Status, ThresholdResult};
use squall_plan::printable::is_invisible;

use crate::page::escaped;
use crate::studies::markdown_table;
use crate::style::Style;
use crate::{Summary, terminal, units, wording};

/// The whole text.
pub fn draw(summary: &Summary) -> String {
    let missed = summary.thresholds.iter().filter(|threshold| !threshold.ok).count();
    let count = summary.thresholds.len();
    let result = match (count, missed) {
        (0, _) => verdict(summary).to_owned(),
        (_, 0) => format!("{} met", units::counted(count as u64, "threshold")),
        _ => format!("{missed} of {} missed", units::counted(count as u64, "threshold")),
    };
    let mut text = format!("### {}: {result}\n\n", inline(&summary.name));
    if count > 0 {
        let rows: Vec<Vec<String>> = summary.thresholds.iter().map(cells).collect();
        let _ = writeln!(text, "{}", markdown_table(&["threshold", "result", "measured", "limit"], &rows));
    }
    for line in terminal::draw(summary, None, Style::FILE).lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

fn verdict(summary: &Summary) -> &'static str {
    match summary.verdict.status {
        Status::Valid => "VALID",
        Status::Suspect => "SUSPECT",
        Status::Invalid => "INVALID",
    }
}

fn cells(threshold: &ThresholdResult) -> Vec<String> {
    let value = |value: f64| wording::threshold_value(value, threshold.unit);
    vec![
        inline(&wording::rule(threshold)),
        if threshold.ok { "met" } else { "**missed**" }.to_owned(),
        threshold.actual.map_or_else(|| "no sample".to_owned(), value),
        value(threshold.limit),
    ]
}

/// Text from outside, in which nothing is markup.
fn inline(text: &str) -> String {
    let mut plain = String::new();
    for character in escaped(text).chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~') {
            plain.push('\\');
        }
        plain.push(if character.is_control() || is_invisible(character) { ' ' } else { character });
    }
    plain
}
