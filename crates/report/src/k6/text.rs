//! The end summary as k6 writes it (v1 and v2, compact and full).

use squall_measure::{ScriptCheck, ScriptMetric, ScriptValue};

use super::{ScriptSection, ScriptSummary, per_s, stats, units};
use crate::style::{Style, Tone};

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMode {
    /// Without the phases of requests and the durations of groups.
    Compact,
    /// With the phases of requests.
    Full,
}

impl TextMode {
    /// Whether a metric is left out.
    pub(super) fn hides(self, name: &str) -> bool {
        let starts = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
        starts(HIDDEN) || self == Self::Compact && starts(HIDDEN_IN_COMPACT)
    }
}

/// How the summary is written.
#[derive(Debug, Clone, Copy)]
pub struct TextForm {
    /// How much is told.
    pub mode: TextMode,
    /// Whether the thresholds stand before the results; not where another summary has told of them.
    pub has_thresholds: bool,
    /// Its colours.
    pub style: Style,
}

/// The summary.
pub fn summary_text(summary: &ScriptSummary<'_>, form: TextForm) -> String {
    let face = Face { summary, form };
    let mut lines = Vec::new();
    if form.has_thresholds {
        face.thresholds(&mut lines);
    }
    face.title(&mut lines, "TOTAL RESULTS");
    face.results(&mut lines);
    if form.mode == TextMode::Full {
        face.sections(&mut lines);
    }
    let mut text = String::from("\n");
    for line in lines {
        text.push_str(line.trim_end_matches('\t'));
        text.push('\n');
    }
    text.push('\n');
    text
}

struct Face<'a> {
    summary: &'a ScriptSummary<'a>,
    form: TextForm,
}

/// A line of metrics before it is aligned.
struct Row {
    name: String,
    cells: Cells,
}

enum Cells {
    /// Statistics, each a column.
    Trend(Vec<(String, String)>),
    /// A first value, and what follows it.
    Other(String, Vec<String>),
}

impl Face<'_> {
    fn title(&self, lines: &mut Vec<String>, name: &str) {
        lines.extend([
            "".to_owned(),
            format!("  █ {} ", self.form.style.paint(Tone::Title, name)),
            "".to_owned(),
        ]);
    }

    fn mark(&self, is_ok: bool) -> String {
        if is_ok { self.form.style.paint(Tone::Good, "✓") } else { self.form.style.paint(Tone::Bad, "✗") }
    }

    fn thresholds(&self, lines: &mut Vec<String>) {
        let judged = self.summary.rules.judge(self.summary.figures, self.summary.duration);
        if judged.is_empty() {
            return;
        }
        self.title(lines, "THRESHOLDS");
        let mut names: Vec<&str> = judged.iter().map(|one| one.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            lines.push(format!("    {name}"));
            for one in judged.iter().filter(|one| one.name == name) {
                let unit = self.unit_of(name, one.rule.method());
                let value = match unit {
                    Unit::Share => units::percent(one.outcome.actual),
                    Unit::Of(unit) => units::value(one.outcome.actual, unit, self.summary.time_unit),
                };
                let (mark, text) = (self.mark(one.outcome.is_ok), &one.rule.text);
                lines.push(format!("    {mark} '{text}' {}={value}", one.rule.method()));
            }
            lines.push(String::new());
        }
    }

    fn unit_of(&self, name: &str, method: &str) -> Unit {
        let metric = self
            .summary
            .figures
            .metrics
            .iter()
            .find(|metric| metric.name == name.split('{').next().unwrap_or(name));
        match metric {
            Some(ScriptMetric { value: ScriptValue::Rate { .. }, .. }) => Unit::Share,
            Some(metric) if method != "count" || matches!(metric.value, ScriptValue::Counter { .. }) => {
                Unit::Of(metric.contains)
            }
            _ => Unit::Of(squall_measure::ScriptUnit::Default),
        }
    }

    /// The scenarios with their groups; the groups of the scenario that k6 makes by itself stand alone.
    fn sections(&self, lines: &mut Vec<String>) {
        for section in self.summary.sections.iter().filter(|section| section.group.is_empty()) {
            if section.scenario == "default" {
                self.groups(lines, section, 0);
            } else {
                self.title(lines, &format!("SCENARIO: {}", section.scenario));
                self.results_of(section, lines);
                self.groups(lines, section, 1);
            }
        }
    }

    /// The groups directly within a section, each with those within it.
    fn groups(&self, lines: &mut Vec<String>, parent: &ScriptSection<'_>, depth: usize) {
        let is_child = |section: &&ScriptSection<'_>| {
            let rest = section.group.strip_prefix(parent.group).and_then(|rest| rest.strip_prefix("::"));
            section.scenario == parent.scenario && rest.is_some_and(|rest| !rest.contains("::"))
        };
        for section in self.summary.sections.iter().filter(is_child) {
            let name = format!("GROUP: {}", section.group.rsplit("::").next().unwrap_or_default());
            if depth == 0 {
                self.title(lines, &name);
            } else {
                let indent = "  ".repeat(depth + 1);
                lines.extend([
                    format!("{indent}↳ {} ", self.form.style.paint(Tone::Title, &name)),
                    String::new(),
                ]);
            }
            let mut inner = Vec::new();
            self.results_of(section, &mut inner);
            let indented =
                |line: String| if line.is_empty() { line } else { format!("{}{line}", "  ".repeat(depth)) };
            lines.extend(inner.into_iter().map(indented));
            self.groups(lines, section, depth + 1);
        }
    }

    /// The same results of a section's figures.
    fn results_of(&self, section: &ScriptSection<'_>, lines: &mut Vec<String>) {
        let summary = ScriptSummary { figures: section.figures, sections: &[], ..*self.summary };
        Face { summary: &summary, form: self.form }.results(lines);
    }

    fn results(&self, lines: &mut Vec<String>) {
        self.checks(lines);
        for (title, prefixes) in SECTIONS {
            let mut shown: Vec<&ScriptMetric> = self.metrics_of(prefixes);
            shown.sort_by_key(|metric| (metric.name.clone(), metric.full_name()));
            if shown.is_empty() {
                continue;
            }
            lines.push(format!("    {}", self.form.style.paint(Tone::Title, title)));
            let rows: Vec<Row> = shown.into_iter().map(|metric| self.row(metric)).collect();
            self.align(lines, &rows);
            lines.push(String::new());
        }
    }

    fn metrics_of(&self, prefixes: &[&str]) -> Vec<&ScriptMetric> {
        let is_own = |metric: &&ScriptMetric| {
            let starts = |list: &[&str]| list.iter().any(|prefix| metric.name.starts_with(prefix));
            if prefixes.is_empty() {
                !SECTIONS.iter().any(|(_, known)| starts(known)) && !starts(HIDDEN)
            } else {
                starts(prefixes)
            }
        };
        let is_hidden = |metric: &&ScriptMetric| self.form.mode.hides(&metric.name);
        let has_values = |metric: &&ScriptMetric| !metric.value.is_empty();
        self.summary
            .figures
            .metrics
            .iter()
            .filter(is_own)
            .filter(|metric| !is_hidden(metric))
            .filter(has_values)
            .collect()
    }

    fn checks(&self, lines: &mut Vec<String>) {
        let checks = &self.summary.figures.checks;
        let (passes, fails) =
            checks.iter().fold((0, 0), |(passes, fails), check| (passes + check.passes, fails + check.fails));
        let total = passes + fails;
        if total == 0 {
            return;
        }
        let share = |count: u64| units::percent(count as f64 / total as f64);
        let counts = [total.to_string(), share(passes), share(fails)];
        let width = counts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let rate =
            units::rate(per_s(total as f64, self.summary.duration), squall_measure::ScriptUnit::Default);
        let rest = [rate, format!("{passes} out of {total}"), format!("{fails} out of {total}")];
        for ((name, count), rest) in
            ["checks_total", "checks_succeeded", "checks_failed"].iter().zip(counts).zip(rest)
        {
            let dots = ".".repeat(CHECKS_WIDTH - name.len());
            let pad = " ".repeat(width - count.chars().count());
            let (count, rest) =
                (self.form.style.paint(Tone::Plain, &count), self.form.style.paint(Tone::Faint, &rest));
            lines.push(format!("    {name}{dots}: {count}{pad} {rest}"));
        }
        lines.push(String::new());
        for check in checks {
            self.check(lines, check);
        }
        lines.push(String::new());
    }

    fn check(&self, lines: &mut Vec<String>, check: &ScriptCheck) {
        lines.push(format!("    {} {}", self.mark(check.fails == 0), check.name));
        if check.fails > 0 {
            let percent = (check.passes * 100).checked_div(check.passes + check.fails).unwrap_or(0);
            lines.push(format!("      ↳  {percent}% — ✓ {} / ✗ {}", check.passes, check.fails));
        }
    }

    fn row(&self, metric: &ScriptMetric) -> Row {
        let name = if metric.tags.is_empty() {
            metric.name.clone()
        } else {
            let tags: Vec<String> = metric.tags.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("  {{ {} }}", tags.join(", "))
        };
        let values = stats(metric, self.summary.duration, self.summary.trend_stats);
        let show = |value: f64| units::value(value, metric.contains, self.summary.time_unit);
        let cells = match &metric.value {
            ScriptValue::Trend(_) => {
                let one = |(name, value): &(String, f64)| {
                    let text = if name == "count" { format!("{value}") } else { show(*value) };
                    (name.clone(), text)
                };
                Cells::Trend(values.iter().map(one).collect())
            }
            ScriptValue::Counter { .. } => {
                Cells::Other(show(values[0].1), vec![units::rate(values[1].1, metric.contains)])
            }
            ScriptValue::Gauge { .. } => Cells::Other(
                show(values[0].1),
                vec![format!("min={}", show(values[1].1)), format!("max={}", show(values[2].1))],
            ),
            ScriptValue::Rate { trues, total } => {
                Cells::Other(units::percent(values[0].1), vec![format!("{trues} out of {total}")])
            }
        };
        Row { name, cells }
    }

    /// Names are filled with dots, and columns are as wide as their widest cell in the block.
    fn align(&self, lines: &mut Vec<String>, rows: &[Row]) {
        let length = |text: &str| text.chars().count();
        let all = self.all_rows();
        let name_width = all.iter().map(|row| length(&row.name)).max().unwrap_or(0) + 3;
        let first_width = all
            .iter()
            .filter_map(|row| match &row.cells {
                Cells::Other(first, _) => Some(length(first)),
                Cells::Trend(_) => None,
            })
            .max()
            .unwrap_or(0);
        let column_width = |idx: usize, of: fn(&Cells, usize) -> Option<&str>| {
            all.iter().filter_map(|row| of(&row.cells, idx)).map(length).max().unwrap_or(0)
        };
        for row in rows {
            let dots =
                self.form.style.paint(Tone::Faint, &(".".repeat(name_width - length(&row.name)) + ":"));
            let cells: Vec<String> = match &row.cells {
                Cells::Trend(columns) => columns
                    .iter()
                    .enumerate()
                    .map(|(idx, (name, value))| {
                        let pad = " ".repeat(column_width(idx, trend_cell).saturating_sub(length(value)));
                        format!("{name}={}{pad}", self.form.style.paint(Tone::Plain, value))
                    })
                    .collect(),
                Cells::Other(first, rest) => {
                    let pad = " ".repeat(first_width - length(first));
                    let head = format!("{}{pad}", self.form.style.paint(Tone::Plain, first));
                    let rest = rest.iter().enumerate().map(|(idx, text)| {
                        let is_last = idx + 1 == rest.len();
                        let width = if is_last { 0 } else { column_width(idx, other_cell) };
                        let pad = " ".repeat(width.saturating_sub(length(text)));
                        format!("{}{pad}", self.form.style.paint(Tone::Faint, text))
                    });
                    std::iter::once(head).chain(rest).collect()
                }
            };
            lines.push(format!("    {}{dots} {}", row.name, cells.join(" ").trim_end()));
        }
    }

    fn all_rows(&self) -> Vec<Row> {
        let metrics = SECTIONS.iter().flat_map(|(_, prefixes)| self.metrics_of(prefixes));
        metrics.map(|metric| self.row(metric)).collect()
    }
}

enum Unit {
    Share,
    Of(squall_measure::ScriptUnit),
}

fn trend_cell(cells: &Cells, idx: usize) -> Option<&str> {
    match cells {
        Cells::Trend(columns) => columns.get(idx).map(|(_, value)| value.as_str()),
        Cells::Other(..) => None,
    }
}

fn other_cell(cells: &Cells, idx: usize) -> Option<&str> {
    match cells {
        Cells::Other(_, rest) if rest.len() > 1 => rest.get(idx).map(String::as_str),
        _ => None,
    }
}

/// Sections, and how the names of their metrics begin; the one without has all others.
const SECTIONS: &[(&str, &[&str])] = &[
    ("CUSTOM", &[]),
    ("HTTP", &["http_"]),
    ("EXECUTION", &["vus", "iteration", "dropped_iterations"]),
    ("NETWORK", &["data_"]),
];

/// What has a place of its own.
const HIDDEN: &[&str] = &["checks", "group_duration"];

/// What the compact form leaves out.
const HIDDEN_IN_COMPACT: &[&str] = &[
    "http_req_blocked",
    "http_req_connecting",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
];

/// The longest name of the checks' block, and three dots.
const CHECKS_WIDTH: usize = "checks_succeeded".len() + 3;
