//! The parts of a run on its page: kinds of load, steps, loads, machines, and each load on each machine, as a row and a series each.
//!
//! Owns: how many points a page has for them. Never: adds up requests, handshakes and idle connections.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use squall_measure::{PartKind, RunRecord, Series, Share, Snapshot, Status};

use super::columns::Point;
use crate::MachineGlance;
use crate::summary::{self, Figures, LoadKind, Span, Summary, length_s, parts_of};

/// A part of a run in one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartLine {
    /// What it is a part of.
    pub kind: LineKind,
    /// Its name, which no other of its kind and of what it makes has.
    pub name: String,
    /// What it makes; `None` where it makes different things, or a foreign tool makes it.
    pub makes: Option<LoadKind>,
    /// Of a share: its load.
    pub load: Option<String>,
    /// Of a share: its machine.
    pub machine: Option<String>,
    /// When it began, in seconds after the run's start.
    pub at_s: f64,
    /// How long it was measured, in seconds.
    pub duration_s: f64,
    /// Whether its generator can be trusted; `None` where that is not judged apart.
    pub status: Option<Status>,
    /// Why it ended before its time.
    pub problem: Option<String>,
    /// Those that ended, per second.
    pub rate_per_s: f64,
    /// What became of them.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of its time in which its event loops worked; `None` where that is not known apart.
    pub busy: Option<f64>,
    /// Its points; empty where the page has none.
    pub points: Vec<Point>,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// All loads that make the same.
    Kind,
    /// A run among several.
    Run,
    /// A step of a plan.
    Step,
    /// A load.
    Load,
    /// A machine.
    Machine,
    /// A load on a machine.
    Share,
}

/// A line, and the shares that it is the sum of.
struct Draft<'a> {
    line: PartLine,
    shares: Vec<&'a Share>,
}

/// All lines of a record. `machines`: those of a run under way, which has no parts yet. `point_count_max`: of all lines together.
pub(super) fn lines(
    record: &RunRecord,
    summary: &Summary,
    machines: Vec<PartLine>,
    point_count_max: usize,
) -> Vec<PartLine> {
    let mut drafts = Vec::new();
    if summary.totals.kinds.len() > 1 {
        drafts.extend(summary.totals.kinds.iter().map(|kind| of_kind(record, kind)));
    }
    drafts.extend(of_parts(record, PartKind::Run));
    drafts.extend(of_parts(record, PartKind::Step));
    drafts.extend(of_loads(record, summary));
    drafts.extend(of_machines(record, machines));
    drafts.extend(summary.shares.iter().zip(&record.shares).map(|(share, series)| of_share(share, series)));
    let mut lines = with_points(drafts, point_count_max, record.total.open_model);
    make_unique(&mut lines);
    lines
}

fn of_kind<'a>(record: &'a RunRecord, totals: &summary::KindTotals) -> Draft<'a> {
    let kind = totals.kind;
    let is_own = |share: &&Share| LoadKind::of_named(&record.plan, &share.load) == Some(kind);
    let shares: Vec<&Share> = record.shares.iter().filter(is_own).collect();
    let mut total = Snapshot::new(record.rows.len(), record.total.open_model);
    parts_of(record, kind).for_each(|part| total.merge(&part.total));
    let is_under_way = parts_of(record, kind).next().is_none();
    let more = if is_under_way {
        sum(&shares).unwrap_or_else(|| Figures::from(&total))
    } else {
        Figures::from(&total)
    };
    let figures = Figures {
        ok: totals.ok,
        failed: totals.failed,
        interrupted: totals.interrupted,
        latency_us: totals.latency_us,
        ..more
    };
    let line = PartLine {
        makes: Some(kind),
        rate_per_s: totals.rate_per_s,
        ..PartLine::new(LineKind::Kind, kind.words(), (0.0, totals.duration_s), figures)
    };
    Draft { line, shares }
}

fn of_parts(record: &RunRecord, kind: PartKind) -> impl Iterator<Item = Draft<'_>> {
    let own = record.parts.iter().filter(move |part| part.kind == kind);
    own.map(|part| Draft { line: PartLine::from(part), shares: Vec::new() })
}

/// Of a run under way the loads that have begun: those with shares.
fn of_loads<'a>(record: &'a RunRecord, summary: &'a Summary) -> Vec<Draft<'a>> {
    let shares_of = |name: &str| record.shares.iter().filter(|share| share.load == name).collect::<Vec<_>>();
    let mut drafts: Vec<Draft<'_>> = of_parts(record, PartKind::Load).collect();
    if drafts.is_empty() {
        let begun = summary.plan.loads.iter().map(|load| (&load.name, shares_of(&load.name)));
        drafts.extend(begun.filter_map(|(name, shares)| {
            let (figures, at_s) = (sum(&shares)?, shares[0].at_s);
            let duration_s = shares.iter().map(|share| length(&share.series)).fold(0.0, f64::max);
            Some(Draft { line: PartLine::new(LineKind::Load, name, (at_s, duration_s), figures), shares })
        }));
    }
    for Draft { line, shares } in &mut drafts {
        *shares = shares_of(&line.name);
        line.makes = LoadKind::of_named(&record.plan, &line.name);
    }
    drafts
}

/// A machine that made different things has a line for each.
fn of_machines(record: &RunRecord, under_way: Vec<PartLine>) -> Vec<Draft<'_>> {
    let own = record.parts.iter().filter(|part| part.kind == PartKind::Machine).map(PartLine::from);
    under_way.into_iter().chain(own).flat_map(|line| of_machine(record, line)).collect()
}

fn of_machine<'a>(record: &'a RunRecord, line: PartLine) -> Vec<Draft<'a>> {
    let made = |kind: LoadKind| -> Vec<&'a Share> {
        let is_own = |share: &&Share| {
            share.machine == line.name && LoadKind::of_named(&record.plan, &share.load) == Some(kind)
        };
        record.shares.iter().filter(is_own).collect()
    };
    let mut made: Vec<(LoadKind, Vec<&'a Share>)> =
        LoadKind::ALL.into_iter().map(|kind| (kind, made(kind))).collect();
    made.retain(|(_, shares)| !shares.is_empty());
    if made.len() < 2 {
        let (makes, shares) = made.pop().map_or((None, Vec::new()), |(kind, shares)| (Some(kind), shares));
        return vec![Draft { line: PartLine { makes, ..line }, shares }];
    }
    let of_kind = |(kind, shares): (LoadKind, Vec<&'a Share>)| {
        let figures = sum(&shares).unwrap_or_else(|| line.figures.clone());
        let duration_s = measured_s(record, &shares);
        let rate_per_s = figures.rate_per_s(duration_s);
        Draft {
            line: PartLine { makes: Some(kind), duration_s, rate_per_s, figures, ..line.clone() },
            shares,
        }
    };
    made.into_iter().map(of_kind).collect()
}

/// How long the loads of shares were measured, all of them together.
fn measured_s(record: &RunRecord, shares: &[&Share]) -> f64 {
    let loads: BTreeSet<&str> = shares.iter().map(|share| share.load.as_str()).collect();
    let is_own =
        |part: &&squall_measure::Part| part.kind == PartKind::Load && loads.contains(part.name.as_str());
    let span = |part: &squall_measure::Part| Span {
        from_s: part.at_s,
        until_s: part.at_s + part.duration.as_secs_f64(),
        count: 0,
    };
    let spans: Vec<Span> = record.parts.iter().filter(is_own).map(span).collect();
    if spans.is_empty() {
        shares.iter().map(|share| length(&share.series)).fold(0.0, f64::max)
    } else {
        length_s(&spans)
    }
}

fn of_share<'a>(share: &summary::ShareSummary, series: &'a Share) -> Draft<'a> {
    let name = format!("{} on {}", share.load, share.machine);
    let line = PartLine {
        makes: share.makes,
        load: Some(share.load.clone()),
        machine: Some(share.machine.clone()),
        ..PartLine::new(LineKind::Share, &name, (share.at_s, share.duration_s), share.figures.clone())
    };
    Draft { line, shares: vec![series] }
}

fn sum(shares: &[&Share]) -> Option<Figures> {
    Share::sum(shares.iter().copied()).map(|(_, series)| Figures::from(&series.total()))
}

fn length(series: &Series) -> f64 {
    f64::from(series.seconds_per_point) * series.points.len() as f64
}

/// Gives each line its points. Where a page cannot hold enough of each, first the shares and then the machines go without.
fn with_points(drafts: Vec<Draft<'_>>, point_count_max: usize, is_open: bool) -> Vec<PartLine> {
    let count_of = |kinds: &[LineKind]| {
        drafts.iter().filter(|draft| !draft.shares.is_empty() && kinds.contains(&draft.line.kind)).count()
    };
    let all: &[LineKind] = &[LineKind::Kind, LineKind::Load, LineKind::Machine, LineKind::Share];
    let each = |kinds: &[LineKind]| point_count_max / count_of(kinds).max(1);
    let drawn = [all, &all[..3], &all[..2]].into_iter().find(|kinds| each(kinds) >= LINE_POINT_COUNT_MIN);
    let drawn = drawn.unwrap_or_default();
    let each = each(drawn).min(LINE_POINT_COUNT_MAX);
    let finish = |Draft { line, shares }: Draft<'_>| {
        let is_drawn = drawn.contains(&line.kind);
        let series = Share::sum(shares.into_iter()).filter(|_| is_drawn);
        PartLine { points: series.map_or_else(Vec::new, |series| points(&series, each, is_open)), ..line }
    };
    drafts.into_iter().map(finish).collect()
}

fn points((at_s, series): &(f64, Series), point_count_max: usize, is_open: bool) -> Vec<Point> {
    let series = series.coarsened(point_count_max);
    let step_s = f64::from(series.seconds_per_point);
    let point = |(idx, point)| Point::new(at_s + idx as f64 * step_s, point, is_open);
    series.points.iter().enumerate().map(point).collect()
}

/// Names that a plan gives twice get a number.
fn make_unique(lines: &mut [PartLine]) {
    let mut seen: BTreeMap<(LineKind, Option<LoadKind>, String), u32> = BTreeMap::new();
    for line in lines {
        let count = seen.entry((line.kind, line.makes, line.name.clone())).or_default();
        *count += 1;
        if *count > 1 {
            line.name = format!("{} ({count})", line.name);
        }
    }
}

impl PartLine {
    fn new(kind: LineKind, name: &str, (at_s, duration_s): (f64, f64), figures: Figures) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            makes: None,
            load: None,
            machine: None,
            at_s,
            duration_s,
            status: None,
            problem: None,
            rate_per_s: figures.rate_per_s(duration_s),
            figures,
            busy: None,
            points: Vec::new(),
        }
    }
}

impl From<&squall_measure::Part> for PartLine {
    fn from(part: &squall_measure::Part) -> Self {
        let kind = match part.kind {
            PartKind::Run => LineKind::Run,
            PartKind::Step => LineKind::Step,
            PartKind::Load => LineKind::Load,
            PartKind::Machine => LineKind::Machine,
        };
        let generator = &part.total.generator;
        let wall_s = generator.wall.as_secs_f64();
        let busy = (wall_s > 0.0).then(|| super::values::rounded(generator.busy.as_secs_f64() / wall_s));
        Self {
            status: Some(part.verdict.status),
            problem: part.problem.clone(),
            busy,
            ..Self::new(
                kind,
                &part.name,
                (part.at_s, part.duration.as_secs_f64()),
                Figures::from(&part.total),
            )
        }
    }
}

/// A machine of a run that goes on.
impl From<&MachineGlance<'_>> for PartLine {
    fn from(machine: &MachineGlance<'_>) -> Self {
        let MachineGlance { name, recorder, problem } = *machine;
        let duration_s = length(recorder.series()) - recorder.setup().plan.warmup.as_secs_f64();
        Self {
            status: Some(recorder.verdict().status),
            problem: problem.map(str::to_owned),
            busy: recorder.last_second().map(|second| super::values::rounded(second.busy_max)),
            ..Self::new(LineKind::Machine, name, (0.0, duration_s.max(0.0)), Figures::from(recorder.total()))
        }
    }
}

/// Fewer points than this do not show how a line went on.
const LINE_POINT_COUNT_MIN: usize = 20;

/// As many as half a screen has columns for.
const LINE_POINT_COUNT_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::mixed;

    fn of_run(record: &RunRecord) -> Vec<PartLine> {
        lines(record, &Summary::of_totals(record), Vec::new(), 3000)
    }

    fn shown(lines: &[PartLine], kind: LineKind) -> Vec<(String, u64, usize)> {
        let own = lines.iter().filter(|line| line.kind == kind);
        own.map(|line| (line.name.clone(), line.figures.ok, line.points.len())).collect()
    }

    #[test]
    fn each_kind_load_machine_and_share_has_a_row_and_a_series_of_its_own() {
        let lines = of_run(&mixed::run());
        let expected = |rows: &[(&str, u64, usize)]| -> Vec<(String, u64, usize)> {
            rows.iter().map(|(name, ok, points)| ((*name).to_owned(), *ok, *points)).collect()
        };
        assert_eq!(
            shown(&lines, LineKind::Kind),
            expected(&[("requests", 600, 8), ("handshakes", 120, 3), ("idle connections", 50, 3)])
        );
        assert_eq!(
            shown(&lines, LineKind::Load),
            expected(&[
                ("alone", 300, 3),
                ("with handshakes", 300, 3),
                ("handshakes", 120, 3),
                ("kept", 50, 3)
            ])
        );
        assert_eq!(shown(&lines, LineKind::Machine).len(), 6, "two machines of three kinds each");
        assert_eq!(shown(&lines, LineKind::Machine)[0], ("g1".to_owned(), 300, 8));
        assert_eq!(shown(&lines, LineKind::Share).len(), 8);
        assert_eq!(shown(&lines, LineKind::Share)[0], ("alone on g1".to_owned(), 150, 3));
        let handshakes = lines.iter().find(|line| line.name == "handshakes on g2").unwrap();
        assert_eq!(handshakes.figures.failures.values().sum::<u64>(), 3);
        assert!(handshakes.figures.phases_mean_us.unwrap().tls_handshaking > 1_000.0);
    }

    #[test]
    fn a_run_that_was_saved_without_shares_has_rows_and_no_series() {
        let record = RunRecord { shares: Vec::new(), ..mixed::run() };
        let lines = of_run(&record);
        assert_eq!(shown(&lines, LineKind::Kind)[1], ("handshakes".to_owned(), 120, 0));
        assert_eq!(shown(&lines, LineKind::Machine).len(), 2);
    }

    #[test]
    fn a_page_of_many_machines_stays_small() {
        let record = mixed::run_on(120);
        let lines = of_run(&record);
        assert!(lines.iter().map(|line| line.points.len()).sum::<usize>() <= 3000);
        assert!(shown(&lines, LineKind::Share).iter().all(|(_, ok, _)| *ok > 0));
        assert!(shown(&lines, LineKind::Load).iter().all(|(_, _, points)| *points > 0));
    }

    #[test]
    fn a_name_that_is_there_twice_is_distinguished() {
        let mut record = mixed::run();
        record
            .parts
            .iter_mut()
            .filter(|part| part.kind == PartKind::Step)
            .for_each(|part| part.name = "same".to_owned());
        let names: Vec<String> =
            shown(&of_run(&record), LineKind::Step).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["same", "same (2)"]);
    }
}
