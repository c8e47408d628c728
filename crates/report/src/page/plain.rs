//! The page without its viewer: the summary as text, two charts, and tables. Readable everywhere, and printable.

use std::fmt::Write;

use super::columns;
use super::svg::{Axis, Chart};
use super::{Page, RunPage, escaped};
use crate::studies::{IndexPage, ListedRun};
use crate::style::Style;
use crate::{terminal, units};

/// The whole document.
pub(super) fn draw(page: &Page) -> String {
    let body = match page {
        Page::Run(run) => run_body(run),
        Page::Compare(page) => text_body(&page.text(Style::FILE)),
        Page::Capacity(page) => text_body(&page.text(Style::FILE)),
        Page::Sweep(page) => {
            let charts = page.charts().into_iter().map(|(_, svg)| svg).collect::<String>();
            text_body(&page.text(Style::FILE)) + &charts
        }
        Page::Index(page) => links(page),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n{body}</html>\n",
        escaped(page.title())
    )
}

fn run_body(run: &RunPage) -> String {
    let mut body = format!(
        "<h1>{}</h1>\n<pre>{}</pre>\n",
        escaped(&run.summary.name),
        escaped(&terminal::draw(&run.summary, None, Style::FILE))
    );
    body += &rate_chart(run).draw();
    body += &latency_chart(run).draw();
    body += &points_table(run);
    body
}

fn text_body(text: &str) -> String {
    format!("<pre>{}</pre>\n", escaped(text))
}

fn links(page: &IndexPage) -> String {
    let link = |run: &ListedRun| {
        format!(
            "<li><a href=\"{}\">{}</a> {}</li>\n",
            escaped(&run.href),
            escaped(&run.name),
            escaped(&run.started_at)
        )
    };
    format!(
        "<h1>{}</h1>\n<ul>\n{}</ul>\n",
        escaped(&page.title),
        page.runs.iter().map(link).collect::<String>()
    )
}

fn rate_chart(run: &RunPage) -> Chart<'static> {
    let names = [("asked", "asked"), ("ok", "succeeded"), ("failed", "failed")];
    let mut lines = names
        .map(|(column, name)| (name.to_owned(), over_time(run, column, |value, span_s| value / span_s)))
        .to_vec();
    lines.retain(|(_, points)| !points.is_empty());
    Chart {
        title: "Requests per second",
        x_label: "time",
        y_label: "per second",
        x: TIME,
        y: Axis { is_log: false, text: units::rate },
        lines,
    }
}

fn latency_chart(run: &RunPage) -> Chart<'static> {
    let names = [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99_9", "p99.9"), ("max", "max")];
    let lines = names.map(|(column, name)| (name.to_owned(), over_time(run, column, |value, _| value)));
    Chart {
        title: "Latency of successful requests",
        x_label: "time",
        y_label: "latency",
        x: TIME,
        y: Axis { is_log: true, text: micros },
        lines: lines.to_vec(),
    }
}

/// A column over time, at the end of each point's span; of points without a value, and of empty spans, nothing.
fn over_time(run: &RunPage, name: &str, value: impl Fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    let (at, span, column) = (column("at_s"), column("span_s"), column(name));
    let point = |point: &super::Point| {
        let span_s = point.v[span].filter(|&span_s| span_s > 0.0)?;
        Some((point.v[at]? + span_s, value(point.v[column]?, span_s)))
    };
    run.series.points.iter().filter_map(point).collect()
}

fn points_table(run: &RunPage) -> String {
    let shown = ["at_s", "ok", "failed", "p50", "p90", "p99", "p99_9", "max", "busy"];
    let mut table = "<table><tr>".to_owned();
    shown.iter().for_each(|name| write!(table, "<th>{}</th>", name.replace('_', ".")).unwrap_or_default());
    for point in &run.series.points {
        table += "</tr>\n<tr>";
        for name in shown {
            let text = point.v[column(name)].map_or_else(
                || "-".to_owned(),
                |value| {
                    if name.starts_with('p') || name == "max" { micros(value) } else { value.to_string() }
                },
            );
            let _ = write!(table, "<td>{}</td>", escaped(&text));
        }
    }
    table + "</tr></table>\n"
}

fn column(name: &str) -> usize {
    columns::names().iter().position(|column| *column == name).expect("the name is one of the columns")
}

fn micros(value: f64) -> String {
    units::latency((value * 1e3).round() as u64)
}

const TIME: Axis = Axis {
    is_log: false,
    text: |seconds| units::clock(std::time::Duration::from_secs_f64(seconds.max(0.0))),
};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
pre{overflow:auto}svg{width:100%;height:auto;margin:1rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
td,th{padding:.1rem .7rem;text-align:right;border-bottom:1px solid #8884}";
