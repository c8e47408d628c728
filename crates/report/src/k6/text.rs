//! The end summary as k6 writes it (v1 and v2, compact and full).

use squall_measure::{Judged, Rules, ScriptCheck, ScriptMetric, ScriptUnit, ScriptValue};

use super::{ScriptSection, ScriptSummary, merged_by_name, per_s, stats, units};
use crate::style::{Style, Tone};
use crate::text::clean;

/// How much is shown.
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
    /// How much is shown.
    pub mode: TextMode,
    /// Whether the thresholds stand before the results; not where another summary has shown them.
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
struct RowSummary {
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
        let name = &clean(name);
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
        // A metric, and then its parts.
        let mut names: Vec<(&str, &str)> = judged
            .iter()
            .map(|one| one.name.split_at(one.name.find('{').unwrap_or(one.name.len())))
            .collect();
        names.sort_unstable();
        names.dedup();
        for (base, part) in &names {
            let is_within = !part.is_empty() && names.contains(&(base, ""));
            let (indent, shown) =
                if is_within { ("      ", (*part).to_owned()) } else { ("    ", format!("{base}{part}")) };
            lines.push(format!("{indent}{}", clean(&shown)));
            let own = judged.iter().filter(|one| one.name.strip_prefix(base) == Some(part));
            lines.extend(own.map(|one| format!("{indent}{}", self.judged(base, one))));
            lines.push(String::new());
        }
    }

    /// What became of one threshold on a metric, or on a part of it.
    fn judged(&self, base: &str, judged: &Judged<'_>) -> String {
        let (rule, actual) = (judged.rule, judged.outcome.actual);
        let metric = self.summary.figures.metric(base);
        let unit = metric.map_or(ScriptUnit::Default, |metric| metric.contains);
        let value = match (metric.map(|metric| &metric.value), rule.method()) {
            (Some(ScriptValue::Rate { .. }), _) => units::percent(actual),
            (Some(ScriptValue::Counter { .. }), "rate") => units::rate(actual, unit, self.summary.time_unit),
            (Some(ScriptValue::Trend(_)), "count") => units::value(actual, ScriptUnit::Default, ""),
            _ => units::value(actual, unit, self.summary.time_unit),
        };
        format!("{} '{}' {}={value}", self.mark(judged.outcome.is_ok), clean(&rule.text), rule.method())
    }

    /// The scenarios with their groups; the groups of the scenario that k6 creates automatically stand alone.
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
            let name = clean(&format!("GROUP: {}", section.group.rsplit("::").next().unwrap_or_default()));
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
            lines.extend(inner.into_iter().map(|line| indented(line, depth)));
            self.groups(lines, section, depth + 1);
        }
    }

    /// The same results of a section's figures.
    fn results_of(&self, section: &ScriptSection<'_>, lines: &mut Vec<String>) {
        let no_rules = Rules::new(Vec::new());
        let summary =
            ScriptSummary { figures: section.figures, sections: &[], rules: &no_rules, ..*self.summary };
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
            let rows: Vec<RowSummary> = shown.into_iter().map(|metric| self.row(metric)).collect();
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
        let all = self.summary.figures.metrics.iter().enumerate();
        all.filter(|(idx, _)| self.summary.tells(*idx))
            .map(|(_, metric)| metric)
            .filter(|metric| is_own(metric) && !is_hidden(metric))
            .collect()
    }

    fn checks(&self, lines: &mut Vec<String>) {
        let checks = &self.summary.figures.checks;
        let (passes, fails) =
            checks.iter().fold((0, 0), |(passes, fails), check| (passes + check.passes, fails + check.fails));
        let total = passes + fails;
        if total == 0 && !self.tells_of_checks() {
            return;
        }
        let share = |count: u64| units::percent(count as f64 / total.max(1) as f64);
        let counts = [total.to_string(), share(passes), share(fails)];
        let width = counts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let rate = units::rate(per_s(total as f64, self.summary.duration), ScriptUnit::Default, "");
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
        for check in merged_by_name(checks) {
            self.check(lines, &check);
        }
        lines.push(String::new());
    }

    /// A threshold is on checks, though there was none.
    fn tells_of_checks(&self) -> bool {
        let mut all = self.summary.figures.metrics.iter().enumerate();
        all.any(|(idx, metric)| metric.name == "checks" && self.summary.tells(idx))
    }

    fn check(&self, lines: &mut Vec<String>, check: &ScriptCheck) {
        lines.push(format!("    {} {}", self.mark(check.fails == 0), clean(&check.name)));
        if check.fails > 0 {
            let percent = (check.passes * 100).checked_div(check.passes + check.fails).unwrap_or(0);
            lines.push(format!("{FAILURES}{percent}% — ✓ {} / ✗ {}", check.passes, check.fails));
        }
    }

    fn row(&self, metric: &ScriptMetric) -> RowSummary {
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
            ScriptValue::Counter { .. } => Cells::Other(
                show(values[0].1),
                vec![units::rate(values[1].1, metric.contains, self.summary.time_unit)],
            ),
            ScriptValue::Gauge { .. } => Cells::Other(
                show(values[0].1),
                vec![format!("min={}", show(values[1].1)), format!("max={}", show(values[2].1))],
            ),
            ScriptValue::Rate { trues, total } => {
                Cells::Other(units::percent(values[0].1), vec![format!("{trues} out of {total}")])
            }
        };
        RowSummary { name: clean(&name), cells }
    }

    /// Names are filled with dots, and columns are as wide as their widest cell in the block.
    fn align(&self, lines: &mut Vec<String>, rows: &[RowSummary]) {
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

    fn all_rows(&self) -> Vec<RowSummary> {
        let metrics = SECTIONS.iter().flat_map(|(_, prefixes)| self.metrics_of(prefixes));
        metrics.map(|metric| self.row(metric)).collect()
    }
}

/// A line of a group within others; what a check's failures come to is indented twice, as in k6.
fn indented(line: String, depth: usize) -> String {
    let count = if line.starts_with(FAILURES) { 2 * depth } else { depth };
    if line.is_empty() { line } else { format!("{}{line}", "  ".repeat(count)) }
}

fn trend_cell(cells: &Cells, idx: usize) -> Option<&str> {
    match cells {
        Cells::Trend(columns) => columns.get(idx).map(|(_, value)| value.as_str()),
        Cells::Other(..) => None,
    }
}

fn other_cell(cells: &Cells, idx: usize) -> Option<&str> {
    match cells {
        Cells::Other(_, rest) => rest.get(idx).map(String::as_str),
        Cells::Trend(_) => None,
    }
}

/// Sections, and how the names of their metrics begin; the one without has all others.
const SECTIONS: &[(&str, &[&str])] = &[
    ("CUSTOM", &[]),
    ("HTTP", &["http_"]),
    ("EXECUTION", &["vus", "iteration", "dropped_iterations"]),
    ("NETWORK", &["data_"]),
];

/// What is shown elsewhere.
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

/// How a line of failures begins.
const FAILURES: &str = "      ↳  ";

/// The longest name of the checks' block, and three dots.
const CHECKS_WIDTH: usize = "checks_succeeded".len() + 3;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_measure::{MetricRules, Rule, ScriptFigures, ScriptThreshold};

    use super::*;

    fn metric(name: &str, tags: &[(&str, &str)], contains: ScriptUnit, value: ScriptValue) -> ScriptMetric {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ScriptMetric { tags, ..ScriptMetric::new(name, contains, value) }
    }

    fn counter(sum: f64) -> ScriptValue {
        ScriptValue::Counter { sum, count: sum as u64 }
    }

    /// Thresholds on metrics by their place.
    fn rules(figures: &ScriptFigures, sources: &[(usize, &[&str])]) -> Rules {
        let on = |(metric_idx, texts): &(usize, &[&str])| {
            let metric = &figures.metrics[*metric_idx];
            let threshold = |text: &&str| ScriptThreshold {
                rule: Rule::parse(text, &metric.value).unwrap(),
                aborts: false,
                delay: Duration::ZERO,
            };
            let rules = texts.iter().map(threshold).collect();
            MetricRules { name: metric.full_name(), metric_idx: *metric_idx, rules }
        };
        Rules::new(sources.iter().map(on).collect())
    }

    #[test]
    fn what_has_a_threshold_is_reported_as_k6_does_it() {
        let gauge = ScriptValue::Gauge { last: 2500.0, min: 2500.0, max: 2500.0, at_ns: 1 };
        let figures = ScriptFigures {
            metrics: vec![
                metric("checks", &[], ScriptUnit::Default, ScriptValue::Rate { trues: 0, total: 0 }),
                metric("http_reqs", &[], ScriptUnit::Default, counter(0.0)),
                metric("iterations", &[], ScriptUnit::Default, counter(2.0)),
                metric("iterations_of", &[], ScriptUnit::Time, gauge),
                metric("spent", &[], ScriptUnit::Time, counter(3000.0)),
                metric("unused", &[], ScriptUnit::Time, ScriptValue::Trend(Box::default())),
                metric("http_reqs", &[("a", "b")], ScriptUnit::Default, counter(0.0)),
                metric("iterations", &[("x", "y")], ScriptUnit::Default, counter(1.0)),
                metric(
                    "checks",
                    &[("q", "w")],
                    ScriptUnit::Default,
                    ScriptValue::Rate { trues: 0, total: 0 },
                ),
            ],
            ..ScriptFigures::default()
        };
        let sources: &[(usize, &[&str])] = &[
            (8, &["rate>0.5"]),
            (6, &["rate<9"]),
            (7, &["count>1"]),
            (2, &["count>1"]),
            (3, &["value>1"]),
            (4, &["count>5", "rate>1"]),
        ];
        let trend_stats = ["avg".to_owned()];
        let summary = ScriptSummary {
            figures: &figures,
            rules: &rules(&figures, sources),
            duration: Duration::from_secs(2),
            trend_stats: &trend_stats,
            time_unit: "",
            sections: &[],
            setup_data: None,
        };
        let form = TextForm { mode: TextMode::Compact, has_thresholds: true, style: Style::FILE };
        assert_eq!(summary_text(&summary, form), include_str!("../tests/golden/script-thresholds.txt"));
    }

    #[test]
    fn checks_of_one_name_are_one() {
        let check = |group: &str, name: &str, passes, fails| ScriptCheck {
            group: group.to_owned(),
            name: name.to_owned(),
            passes,
            fails,
        };
        let checks = vec![check("", "ok", 2, 0), check("::a", "other", 1, 0), check("::a", "ok", 1, 1)];
        let figures = ScriptFigures { checks, ..ScriptFigures::default() };
        let inner = ScriptFigures { checks: vec![check("::a::b", "ok", 0, 2)], ..ScriptFigures::default() };
        let empty = ScriptFigures::default();
        let section = |group, figures| ScriptSection { scenario: "default", group, figures };
        let sections = [section("", &empty), section("::a", &empty), section("::a::b", &inner)];
        let summary = ScriptSummary {
            figures: &figures,
            rules: &Rules::new(Vec::new()),
            duration: Duration::from_secs(2),
            trend_stats: &[],
            time_unit: "",
            sections: &sections,
            setup_data: None,
        };
        let form = TextForm { mode: TextMode::Full, has_thresholds: true, style: Style::FILE };
        let text = summary_text(&summary, form);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('✓') || line.contains('✗')).collect();
        let expected = [
            "    ✗ ok",
            "      ↳  75% — ✓ 3 / ✗ 1",
            "    ✓ other",
            "      ✗ ok",
            "          ↳  0% — ✓ 0 / ✗ 2",
        ];
        assert_eq!(lines, expected, "{text}");
    }
}
