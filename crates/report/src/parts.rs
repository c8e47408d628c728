//! What the terminal says of merged runs, of a plan's steps, loads and machines, of foreign tools, and of what was watched.

use squall_measure::{EventKind, MonitorUnit, PartKind, ToolRun};

use crate::summary::{Figures, LoadKind, MonitorSummary, Part, Summary};
use crate::units;

/// Lines with their titles: of each kind of part where there are several, then tools, targets and marked moments.
pub(crate) fn part_lines(summary: &Summary) -> Vec<(&'static str, Vec<String>)> {
    let mut lines = Vec::new();
    for (kind, title) in [
        (PartKind::Run, "RUNS"),
        (PartKind::Step, "STEPS"),
        (PartKind::Load, "LOADS"),
        (PartKind::Machine, "MACHINES"),
    ] {
        // What another tool did is listed among the tools.
        let is_tool = |part: &Part| summary.tools.iter().any(|run| run.load == part.name);
        // Parts of what tools made have no figures, but may have problems.
        let is_empty = |part: &Part| summary.is_by_tools() && part.problem.is_none();
        let is_own =
            |part: &&Part| part.kind == kind && !(kind == PartKind::Load && is_tool(part)) && !is_empty(part);
        let own: Vec<&Part> = summary.parts.iter().filter(is_own).collect();
        let is_telling = own.len() > 1 || own.iter().any(|part| part.problem.is_some());
        if is_telling {
            let title = |idx: usize| if idx == 0 { title } else { "" };
            let shown = own.iter().take(PART_COUNT_SHOWN).enumerate();
            lines.extend(shown.map(|(idx, part)| (title(idx), part_facts(summary, part))));
            let rest = own.len().saturating_sub(PART_COUNT_SHOWN);
            lines.extend(
                (rest > 0).then(|| ("", vec![format!("and {rest} more, in report.html and the JSON")])),
            );
        }
    }
    lines.extend(
        summary
            .generator
            .start_skew_ms
            .map(|ms| ("", vec![format!("started within {ms:.2} ms of each other")])),
    );
    for (idx, tool) in summary.tools.iter().enumerate() {
        lines.push((if idx == 0 { "TOOLS" } else { "" }, tool_facts(tool)));
    }
    lines.extend(watched_lines(&summary.monitors));
    let marked = summary.events.iter().filter(|event| event.kind != EventKind::Step).take(PART_COUNT_SHOWN);
    let marked = marked.map(|event| vec![format!("{:.1} s", event.at_s), event.label.clone()]).enumerate();
    lines.extend(marked.map(|(idx, facts)| (if idx == 0 { "EVENTS" } else { "" }, facts)));
    lines
}

/// `g1   4 003 ok   2 failed   1 001/s   p50 1.2 ms   p99 8.1 ms   lost: ..`; of different things only how many of each.
fn part_facts(summary: &Summary, part: &Part) -> Vec<String> {
    let is_mixed = summary.is_mixed() && part.makes.is_none() && part.kind != PartKind::Load;
    let mut facts = vec![part.name.clone()];
    facts.extend(if is_mixed { made_by_kind(summary, part) } else { figures_facts(part) });
    facts.extend(part.problem.clone());
    facts
}

fn figures_facts(part: &Part) -> Vec<String> {
    let mut facts = vec![format!("{} ok", units::count(part.figures.ok))];
    let failed = part.figures.failed;
    facts.extend((failed > 0).then(|| format!("{} failed", units::count(failed))));
    facts.push(units::rate(part.rate_per_s));
    let times = [("p50", part.figures.latency_us.p50), ("p99", part.figures.latency_us.p99)];
    facts.extend(
        times.iter().filter_map(|(name, time)| Some(format!("{name} {}", units::latency((*time)?.0)))),
    );
    facts
}

/// `300 requests   60 handshakes, 3 failed`: of a machine from its shares, of a step from the loads that began in it.
fn made_by_kind(summary: &Summary, part: &Part) -> Vec<String> {
    let next_s = |at_s: f64| {
        let later = summary.parts.iter().filter(|other| other.kind == part.kind && other.at_s > at_s);
        later.map(|other| other.at_s).fold(f64::INFINITY, f64::min)
    };
    let in_step = part.at_s..next_s(part.at_s);
    let figures: Vec<(Option<LoadKind>, &Figures)> = match part.kind {
        PartKind::Machine => {
            let own = summary.shares.iter().filter(|share| share.machine == part.name);
            own.map(|share| (share.makes, &share.figures)).collect()
        }
        _ => {
            let loads = summary.parts.iter().filter(|load| load.kind == PartKind::Load);
            loads
                .filter(|load| in_step.contains(&load.at_s))
                .map(|load| (load.makes, &load.figures))
                .collect()
        }
    };
    let of_kind = |kind: LoadKind| {
        let own = || figures.iter().filter(move |(makes, _)| *makes == Some(kind));
        let (ok, failed): (u64, u64) =
            (own().map(|(_, one)| one.ok).sum(), own().map(|(_, one)| one.failed).sum());
        let bad = if failed > 0 { format!(", {} failed", units::count(failed)) } else { String::new() };
        (ok + failed > 0).then(|| format!("{} {}{bad}", units::count(ok), kind.words()))
    };
    LoadKind::ALL.into_iter().filter_map(of_kind).collect()
}

/// `54 164 requests by wrk`, as far as the tools reported it.
pub(crate) fn made_by_tools(summary: &Summary) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in &summary.tools {
        if !names.contains(&run.tool.as_str()) {
            names.push(&run.tool);
        }
    }
    let shown: Option<u64> = summary.tools.iter().map(|run| run.figures.requests).sum();
    let nouns: Vec<&str> = summary.tools.iter().map(tool_noun).collect();
    let noun = nouns.iter().copied().reduce(|a, b| if a == b { a } else { "operation" }).unwrap_or("request");
    let made = shown.map_or_else(|| "made".to_owned(), |count| units::counted(count, noun));
    format!("{made} by {}", names.join(" and "))
}

/// What a tool counts, in the singular.
fn tool_noun(run: &ToolRun) -> &'static str {
    if run.tool == "tls-perf" { "handshake" } else { "request" }
}

/// What ended well and what did not by the tools' own measure; `None` where one did not tell.
pub(crate) fn settled_by_tools(summary: &Summary) -> Option<(u64, u64)> {
    let of = |run: &ToolRun| {
        let (requests, failed) = (run.figures.requests?, run.figures.failed.unwrap_or(0));
        Some((requests.saturating_sub(failed), failed))
    };
    let all: Option<Vec<(u64, u64)>> = summary.tools.iter().map(of).collect();
    all.map(|all| all.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
}

/// `wrk on g1   93 600 requests   44 327/s   mean 2.85 ms   p99 37.9 ms   exit code 1`
fn tool_facts(run: &ToolRun) -> Vec<String> {
    let figures = &run.figures;
    let mut facts = vec![format!("{}: {} on {}", run.load, run.tool, run.machine)];
    facts.extend(figures.requests.map(|count| units::counted(count, tool_noun(run))));
    facts.extend(
        figures.failed.filter(|count| *count > 0).map(|count| format!("{} failed", units::count(count))),
    );
    facts.extend(figures.rate_per_s.map(units::rate));
    let shown = ["mean", "p50", "p90", "p95", "p99", "max"].into_iter();
    facts.extend(shown.filter_map(|name| {
        let us = figures.latency_us.get(name)?;
        Some(format!("{name} {}", units::latency((us * 1e3) as u64)))
    }));
    facts.extend(run.problem.clone());
    facts
}

/// Of each watched target its CPU, its memory and its processes, at their highest.
fn watched_lines(monitors: &[MonitorSummary]) -> Vec<(&'static str, Vec<String>)> {
    let mut lines: Vec<(&'static str, Vec<String>)> = Vec::new();
    for monitor in monitors.iter().filter(|monitor| monitor.source.starts_with("target")) {
        let is_shown = WATCHED_SHOWN.iter().any(|name| monitor.name == *name)
            || [" rss", " cpu"].iter().any(|end| monitor.name.ends_with(end));
        if !is_shown {
            continue;
        }
        if lines.last().is_none_or(|(_, facts)| facts[0] != monitor.source) {
            lines.push((if lines.is_empty() { "MONITORED" } else { "" }, vec![monitor.source.clone()]));
        }
        if let Some((_, facts)) = lines.last_mut() {
            facts.push(format!("{} {}", monitor.name, value(monitor)));
        }
    }
    lines
}

fn value(monitor: &MonitorSummary) -> String {
    match monitor.unit {
        MonitorUnit::Percent => format!("{:.0} % (most {:.0} %)", monitor.mean, monitor.max),
        MonitorUnit::Bytes => format!("{} at most", units::bytes(monitor.max.max(0.0) as u64)),
        MonitorUnit::PerSecond => {
            format!("{} (most {})", units::rate(monitor.mean), units::rate(monitor.max))
        }
        MonitorUnit::Count => format!("{:.0} at most", monitor.max),
        MonitorUnit::Seconds => format!("{:.3} s at most", monitor.max),
    }
}

/// Figures of a target that say most in a line.
const WATCHED_SHOWN: &[&str] =
    &["cpu", "memory", "sockets established", "accept-queue overflows", "connections active", "requests"];

/// More lines than this hide the rest of the summary.
const PART_COUNT_SHOWN: usize = 12;
