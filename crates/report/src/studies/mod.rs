//! The faces of answers that rest on many runs: comparison, sweep, capacity, and the list of saved runs. Each is text for the terminal,
//! a page for the browser, and where people paste it Markdown or CSV.

mod capacity;
mod compare;
mod list;
mod sweep;

pub use capacity::{CapacityPage, Probe, answer_words};
pub use compare::{ComparePage, Group, Pair, charts};
pub use list::{IndexPage, ListedRun};
pub use sweep::{LevelRun, SweepLine, SweepPage};

/// A share as a change: `+5.1 %`, `−0.3 %`.
fn signed_percent(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "+" }, crate::units::percent(share.abs()))
}

/// A Markdown table: the first column to the left, figures to the right.
pub(crate) fn markdown_table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..head.len()).map(|idx| if idx == 0 { "---" } else { "---:" }.to_owned()).collect();
    let escaped = |text: &String| text.replace('|', "\\|");
    let mut table = line(head.iter().map(|name| (*name).to_owned()).collect()) + &line(rule);
    rows.iter().for_each(|row| table += &line(row.iter().map(escaped).collect()));
    table
}
