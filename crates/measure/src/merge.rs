//! Several runs as one: histograms and counts are merged exactly, rows and machines stay apart, and each run is a separate part.
//!
//! Runs that went on at the same time (two generators, say) are laid over each other by their clocks; runs that followed one another
//! (repeats) are laid end to end, and the time between them is left out. Warm-ups are left out as well.
//! Owns: what can be merged. Never: percentiles of percentiles; verdicts milder than the worst run's.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use squall_plan::limits::SERIES_POINT_COUNT_MAX;
use squall_plan::{Plan, What};

use crate::{
    Event, EventKind, Monitor, Part, PartKind, Row, RowKey, RunRecord, Series, Share, Snapshot, Threshold,
    ThresholdResult,
};

/// Why runs cannot be merged: their figures would mean different things.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmergeable {
    /// Latencies count from different moments.
    #[error(
        "`{open}` measures latency from the scheduled start, `{closed}` has no schedule and measures from the actual start"
    )]
    Models {
        /// The name of a run of the open model.
        open: String,
        /// The name of a run of the closed model.
        closed: String,
    },
    /// One's requests are the other's handshakes.
    #[error("`{a}` made {a_made}, `{b}` made {b_made}")]
    Kinds {
        /// The name of a run.
        a: String,
        /// What it made.
        a_made: String,
        /// The name of another.
        b: String,
        /// What that one made.
        b_made: String,
    },
    /// Scripts with other metrics.
    #[error(
        "`{a}` and `{b}` ran scripts with different metrics: `{a_metric}` and `{b_metric}` have the same position"
    )]
    Metrics {
        /// The name of a run.
        a: String,
        /// Its metric.
        a_metric: String,
        /// The name of another.
        b: String,
        /// Its metric.
        b_metric: String,
    },
    /// It would be counted twice.
    #[error("`{a}` and `{b}` are the same run")]
    Twice {
        /// A name of the run.
        a: String,
        /// Another name of it.
        b: String,
    },
}

/// A run and its name among the others.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    /// Such as the name of its folder.
    pub name: String,
    /// The run.
    pub record: RunRecord,
}

/// One record of all `runs`, each of which is a [`PartKind::Run`] of it. A single run comes back as it is.
///
/// # Errors
/// When their figures mean different things, or a run is there twice.
///
/// # Panics
/// When there is no run.
pub fn merge(mut runs: Vec<NamedRun>) -> Result<RunRecord, Unmergeable> {
    assert!(!runs.is_empty(), "there is nothing to merge");
    if runs.len() == 1 {
        return Ok(runs.remove(0).record);
    }
    runs.sort_by_key(|run| run.record.started_unix_ms);
    runs.windows(2).try_for_each(|pair| check_same(&pair[0], &pair[1]))?;
    runs[1..].iter().try_for_each(|run| check_kind(&runs[0], run))?;
    let laid = Laid::new(&runs);
    let mut merged = Merged::new(&runs, &laid);
    for (run, at_s) in runs.iter().zip(&laid.at_s) {
        merged.take(run, *at_s);
    }
    Ok(merged.into_record(&runs, &laid))
}

fn check_same(a: &NamedRun, b: &NamedRun) -> Result<(), Unmergeable> {
    let is_same = a.record.started_unix_ms == b.record.started_unix_ms && a.record.total == b.record.total;
    if is_same { Err(Unmergeable::Twice { a: a.name.clone(), b: b.name.clone() }) } else { Ok(()) }
}

fn check_kind(a: &NamedRun, b: &NamedRun) -> Result<(), Unmergeable> {
    if a.record.total.open_model != b.record.total.open_model {
        let (open, closed) = if a.record.total.open_model { (a, b) } else { (b, a) };
        return Err(Unmergeable::Models { open: open.name.clone(), closed: closed.name.clone() });
    }
    let (a_made, b_made) = (made(&a.record.plan), made(&b.record.plan));
    if a_made != b_made {
        let (a, b) = (a.name.clone(), b.name.clone());
        return Err(Unmergeable::Kinds { a, a_made, b, b_made });
    }
    let metrics = |run: &NamedRun| -> Vec<String> {
        let script = run.record.total.script.as_deref();
        script.map_or(Vec::new(), |script| script.metrics.iter().map(|metric| metric.name.clone()).collect())
    };
    let differing = metrics(a).into_iter().zip(metrics(b)).find(|(a, b)| a != b);
    let (a, b) = (a.name.clone(), b.name.clone());
    differing.map_or(Ok(()), |(a_metric, b_metric)| Err(Unmergeable::Metrics { a, a_metric, b, b_metric }))
}

/// What a plan makes, in words: requests of any origin are requests.
fn made(plan: &Plan) -> String {
    let mut kinds: Vec<&str> = plan.loads.iter().map(|load| kind(&load.what)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(" and ") }
}

fn kind(what: &What) -> &'static str {
    match what {
        What::Http(_) => "requests",
        What::Handshake(_) => "handshakes",
        What::Idle(_) => "idle connections",
        What::Replay(_) => "replayed requests",
        What::Script(_) => "a script's requests",
        What::Stream(_) => "streams",
        What::WebSocket(_) => "WebSockets",
        _ => "another kind of load",
    }
}

/// Where each run lies on the common timeline.
struct Laid {
    /// By run: when its measurement begins, in whole seconds.
    at_s: Vec<u32>,
    /// Runs that went on at the same time.
    batches: Vec<Range<usize>>,
    /// Measured time: the batches' spans together.
    duration: Duration,
    seconds_per_point: u32,
}

impl Laid {
    /// `runs` by their start.
    fn new(runs: &[NamedRun]) -> Self {
        let seconds_per_point = runs.iter().map(|run| run.record.series.seconds_per_point).max().unwrap_or(1);
        let span = |run: &NamedRun| {
            let begin = Duration::from_millis(run.record.started_unix_ms) + run.record.plan.warmup;
            (begin, begin + run.record.duration)
        };
        let (mut at_s, mut batches, mut duration): (Vec<u32>, Vec<Range<usize>>, _) =
            (Vec::new(), Vec::new(), Duration::ZERO);
        let (mut origin_s, mut from, mut until) = (0, Duration::ZERO, Duration::ZERO);
        for (idx, run) in runs.iter().enumerate() {
            let (begin, end) = span(run);
            match batches.last_mut() {
                Some(batch) if begin < until => batch.end = idx + 1,
                _ => {
                    duration += until - from;
                    origin_s = (duration.as_secs_f64().ceil() as u32).next_multiple_of(seconds_per_point);
                    (from, until) = (begin, begin);
                    batches.push(idx..idx + 1);
                }
            }
            until = until.max(end);
            at_s.push(origin_s + begin.saturating_sub(from).as_secs_f64().round() as u32);
        }
        Self { at_s, batches, duration: duration + (until - from), seconds_per_point }
    }
}

/// The record while runs are added to it.
struct Merged {
    rows: Vec<RowKey>,
    series: Series,
    monitors: Vec<Monitor>,
    record: RunRecord,
}

impl Merged {
    /// Nothing of the runs' figures yet.
    fn new(runs: &[NamedRun], laid: &Laid) -> Self {
        let first = &runs[0].record;
        let mut rows: Vec<RowKey> = Vec::new();
        for row in runs.iter().flat_map(|run| &run.record.rows) {
            if !rows.contains(row) {
                rows.push(row.clone());
            }
        }
        let series = Series { seconds_per_point: laid.seconds_per_point, points: Vec::new() };
        let record = RunRecord {
            duration: laid.duration,
            plan: plan(runs),
            environment: common_facts(runs),
            thresholds: Vec::new(),
            total: Snapshot::new(rows.len(), first.total.open_model),
            series: Series::new(),
            machine: None,
            shard_count: 0,
            monitors: Vec::new(),
            events: Vec::new(),
            parts: Vec::new(),
            shares: Vec::new(),
            tools: Vec::new(),
            rows: rows.clone(),
            ..first.clone()
        };
        Self { rows, series, monitors: Vec::new(), record }
    }

    /// Everything of a run except what is merged per batch.
    fn take(&mut self, run: &NamedRun, at_s: u32) {
        let NamedRun { name, record } = run;
        let shift_s = f64::from(at_s) - record.plan.warmup.as_secs_f64();
        let shifted = |at: f64| (at + shift_s).max(f64::from(at_s));
        let merged = &mut self.record;
        merged.stopped_by = merged.stopped_by.graver(record.stopped_by);
        merged.verdict.join(&record.verdict);
        merged.shard_count = merged.shard_count.max(record.shard_count);
        if let Some(machine) = &record.machine {
            merged.machine.get_or_insert_default().join(machine);
        }
        merged.events.push(Event { at_s: f64::from(at_s), label: name.clone(), kind: EventKind::Step });
        let own = |event: &Event| Event { at_s: shifted(event.at_s), ..event.clone() };
        merged.events.extend(record.events.iter().filter(|event| event.kind != EventKind::Step).map(own));
        for tool in &record.tools {
            let raw_file = format!("{name}/{}", tool.raw_file);
            merged.tools.push(crate::ToolRun { at_s: shifted(tool.at_s), raw_file, ..tool.clone() });
        }
        self.take_series(record, at_s);
        for monitor in &record.monitors {
            let samples = monitor.samples.iter().map(|&(at, value)| (at + shift_s, value));
            let samples = samples.filter(|(at, _)| *at >= f64::from(at_s)).collect();
            self.take_monitor(name, Monitor { samples, ..monitor.clone() });
        }
        self.take_parts(run, shifted(0.0));
        let own = record.shares.iter().map(|share| shifted_share(share, name, shift_s, f64::from(at_s)));
        self.record.shares.extend(own);
    }

    fn take_series(&mut self, record: &RunRecord, at_s: u32) {
        let series = record.series.clone().with_points_of(self.series.seconds_per_point);
        let points_per_s = 1.0 / f64::from(self.series.seconds_per_point);
        let skipped = (record.plan.warmup.as_secs_f64() * points_per_s).round() as usize;
        let at_idx = (f64::from(at_s) * points_per_s).round() as usize;
        self.series.lay(series.points.get(skipped..).unwrap_or_default(), at_idx);
    }

    /// The same figure of a later time continues the one before; of the same time it is another one.
    fn take_monitor(&mut self, name: &str, monitor: Monitor) {
        let begin_s = monitor.samples.first().map_or(0.0, |&(at_s, _)| at_s);
        let key = |monitor: &Monitor| (monitor.source.clone(), monitor.name.clone(), monitor.unit);
        let continued = self.monitors.iter_mut().find(|known| {
            key(known) == key(&monitor) && known.samples.last().is_none_or(|&(at_s, _)| at_s <= begin_s)
        });
        if let Some(known) = continued {
            known.samples.extend(monitor.samples);
        } else if self.monitors.iter().any(|known| key(known) == key(&monitor)) {
            self.monitors.push(Monitor { source: format!("{} ({name})", monitor.source), ..monitor });
        } else {
            self.monitors.push(monitor);
        }
    }

    /// The run itself, and its steps, loads and machines.
    fn take_parts(&mut self, run: &NamedRun, at_s: f64) {
        let NamedRun { name, record } = run;
        // A run that was itself merged is represented by the runs in it, so that parts of a kind add up to the whole.
        if !record.parts.iter().any(|part| part.kind == PartKind::Run) {
            self.record.parts.push(Part {
                kind: PartKind::Run,
                name: name.clone(),
                at_s,
                duration: record.duration,
                problem: None,
                verdict: record.verdict.clone(),
                thresholds: record.thresholds.clone(),
                facts: record.environment.clone(),
                total: placed(&record.total, &record.rows, &self.rows),
            });
        }
        for part in &record.parts {
            let total = placed(&part.total, &record.rows, &self.rows);
            let is_run = part.kind == PartKind::Run;
            let name = if is_run { part.name.clone() } else { format!("{name}: {}", part.name) };
            self.record.parts.push(Part { name, at_s: at_s + part.at_s, total, ..part.clone() });
        }
    }

    fn into_record(mut self, runs: &[NamedRun], laid: &Laid) -> RunRecord {
        for batch in &laid.batches {
            self.add_batch(&runs[batch.clone()]);
        }
        let mut record = self.record;
        record.series = self.series.coarsened(SERIES_POINT_COUNT_MAX);
        record.monitors = self.monitors;
        record.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        record.parts.sort_by_key(|part| part.kind);
        record.thresholds = thresholds(runs, &record.total, record.duration);
        record
    }

    /// States such as open connections add up over runs of the same time; of runs that followed one another the most stays.
    fn add_batch(&mut self, runs: &[NamedRun]) {
        let total = &mut self.record.total;
        let mut batch = Snapshot::new(self.rows.len(), total.open_model);
        for run in runs {
            batch.merge(&placed(&run.record.total, &run.record.rows, &self.rows));
        }
        let connections_open = total.generator.connections_open.max(batch.generator.connections_open);
        let arrivals_waiting = total.generator.arrivals_waiting.max(batch.generator.arrivals_waiting);
        total.merge(&batch);
        total.generator.connections_open = connections_open;
        total.generator.arrivals_waiting = arrivals_waiting;
    }
}

/// A share with the name of its run, later by `shift_s`, without what comes before `from_s`: the warm-up.
fn shifted_share(share: &Share, name: &str, shift_s: f64, from_s: f64) -> Share {
    let at_s = share.at_s + shift_s;
    let seconds_per_point = f64::from(share.series.seconds_per_point);
    let skipped = ((from_s - at_s) / seconds_per_point).max(0.0).round();
    let points = share.series.points.get(skipped as usize..).unwrap_or_default().to_vec();
    Share {
        load: format!("{name}: {}", share.load),
        machine: format!("{name}: {}", share.machine),
        at_s: at_s + skipped * seconds_per_point,
        series: Series { points, ..share.series },
    }
}

/// The same figures with their rows in the places of `all`.
fn placed(snapshot: &Snapshot, own: &[RowKey], all: &[RowKey]) -> Snapshot {
    let mut rows: Vec<Row> = Vec::new();
    rows.resize_with(all.len(), Row::default);
    for (key, row) in own.iter().zip(&snapshot.rows) {
        if let Some(place) = all.iter().position(|known| known == key) {
            rows[place] = row.clone();
        }
    }
    Snapshot { rows, ..snapshot.clone() }
}

/// Every load once, without a warm-up: those of the runs are left out.
fn plan(runs: &[NamedRun]) -> Plan {
    let first = &runs[0].record.plan;
    let mut plan = Plan { warmup: Duration::ZERO, ..first.clone() };
    for other in runs[1..].iter().map(|run| &run.record.plan) {
        let new = other.loads.iter().filter(|load| !plan.loads.contains(load)).cloned().collect::<Vec<_>>();
        plan.loads.extend(new);
    }
    let is_one = runs.iter().all(|run| run.record.plan.name == first.name);
    plan.name =
        if is_one { format!("{}, {} runs", first.name, runs.len()) } else { format!("{} runs", runs.len()) };
    plan
}

/// Facts that all runs share; each run's own are with its part.
fn common_facts(runs: &[NamedRun]) -> BTreeMap<String, String> {
    let mut facts = runs[0].record.environment.clone();
    facts.retain(|name, value| runs.iter().all(|run| run.record.environment.get(name) == Some(value)));
    facts
}

/// Rules that all runs share are judged again, by the figures of all; others stay as each run had them.
fn thresholds(runs: &[NamedRun], total: &Snapshot, duration: Duration) -> Vec<ThresholdResult> {
    let rules = |run: &NamedRun| -> Vec<(String, String)> {
        run.record.thresholds.iter().map(|rule| (rule.metric.clone(), rule.rule.clone())).collect()
    };
    let again = |(metric, rule): &(String, String)| {
        let result = rule.parse::<Threshold>().ok()?.evaluate(total, duration);
        (result.metric == *metric).then_some(result)
    };
    let shared = rules(&runs[0]);
    let judged: Option<Vec<ThresholdResult>> = shared.iter().map(again).collect();
    match judged {
        Some(judged) if runs.iter().all(|run| rules(run) == shared) => judged,
        _ => {
            let own = |(run, rule): (&NamedRun, &ThresholdResult)| ThresholdResult {
                metric: format!("{}: {}", run.name, rule.metric),
                ..rule.clone()
            };
            runs.iter()
                .flat_map(|run| run.record.thresholds.iter().map(move |rule| own((run, rule))))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{End, MachineSecond, Protocol, RunRecorder, RunSetup, Sample, Status, StoppedBy, Verdict};

    /// A run of two seconds after a warm-up of one, with so many requests of each latency in each second.
    fn run(name: &str, started_s: u64, url: &str, latencies_ms: &[u64], open_model: bool) -> NamedRun {
        let plan = Plan {
            name: "load".to_owned(),
            loads: Vec::new(),
            thresholds: Vec::new(),
            warmup: Duration::from_secs(1),
            threads: None,
        };
        let (load, method, url) = ("http".to_owned(), "GET".to_owned(), url.to_owned());
        let mut recorder = RunRecorder::new(RunSetup {
            plan,
            rows: vec![RowKey { load, method, url, protocol: Protocol::Http11 }],
            open_model,
            lag_allowed: Duration::ZERO,
            thresholds: vec!["p(90)<50".parse().unwrap()],
            length: None,
            started_unix_ms: started_s * 1000,
            environment: BTreeMap::from([
                ("os".to_owned(), "linux".to_owned()),
                ("host".to_owned(), name.to_owned()),
            ]),
        });
        for second_idx in 1..=2 {
            recorder.absorb(second_idx, 0, &second(latencies_ms, open_model));
            recorder.close_second(second_idx, MachineSecond::default());
        }
        let record =
            recorder.finish(End { duration: Duration::from_secs(2), stopped_by: StoppedBy::Duration });
        NamedRun { name: name.to_owned(), record }
    }

    fn second(latencies_ms: &[u64], open_model: bool) -> Snapshot {
        let mut snapshot = Snapshot::new(1, open_model);
        snapshot.generator.wall = Duration::from_secs(1);
        snapshot.generator.connections_open = 3;
        for latency_ms in latencies_ms {
            snapshot.record(&Sample::ok(latency_ms * 1_000_000));
        }
        snapshot
    }

    fn merged(runs: Vec<NamedRun>) -> RunRecord {
        merge(runs).unwrap()
    }

    #[test]
    fn repeats_follow_one_another_and_their_histograms_are_one() {
        let later = run("b", 1000, "/", &[90], false);
        let record = merged(vec![later, run("a", 100, "/", &[10, 20, 30], false)]);
        assert_eq!((record.total.ok(), record.duration.as_secs(), record.rate_per_s()), (8, 4, 2.0));
        let mut all = crate::Histogram::new();
        [10, 10, 20, 20, 30, 30, 90, 90].iter().for_each(|ms| all.record(ms * 1_000_000));
        assert_eq!(*record.total.latency(), all);
        assert_eq!(record.series.points.iter().map(|point| point.ok).collect::<Vec<_>>(), [3, 3, 1, 1]);
        assert_eq!(record.total.generator.connections_open, 3, "they were not open at the same time");
        let runs: Vec<(&str, f64)> =
            record.parts.iter().map(|part| (part.name.as_str(), part.at_s)).collect();
        assert_eq!(runs, [("a", 0.0), ("b", 2.0)]);
        assert_eq!(record.environment.keys().collect::<Vec<_>>(), ["os"]);
    }

    #[test]
    fn runs_of_the_same_time_lie_over_each_other() {
        let record = merged(vec![run("a", 100, "/a", &[10], false), run("b", 101, "/b", &[20, 20], false)]);
        assert_eq!((record.duration.as_secs(), record.total.ok()), (3, 6));
        assert_eq!(record.series.points.iter().map(|point| point.ok).collect::<Vec<_>>(), [1, 3, 2]);
        assert_eq!(record.series.points[1].connections_open, 6);
        assert_eq!(record.series.points[1].wall, Duration::from_secs(1));
        assert_eq!(record.total.generator.connections_open, 6);
        let rows: Vec<(&str, u64)> =
            record.rows.iter().zip(&record.total.rows).map(|(key, row)| (key.url.as_str(), row.ok)).collect();
        assert_eq!(rows, [("/a", 2), ("/b", 4)]);
    }

    #[test]
    fn rules_that_all_share_are_judged_by_the_figures_of_all() {
        let fast = || run("fast", 100, "/", &[10; 20], false);
        let slow = || run("slow", 200, "/", &[90], false);
        let record = merged(vec![fast(), slow()]);
        assert!(!slow().record.thresholds[0].ok);
        assert_eq!((record.thresholds.len(), record.thresholds[0].ok), (1, true));
        let mut other = slow();
        other.record.thresholds[0].rule = "p(50)<50".to_owned();
        let record = merged(vec![fast(), other]);
        let metrics: Vec<&str> = record.thresholds.iter().map(|rule| rule.metric.as_str()).collect();
        assert_eq!(metrics, ["fast: latency", "slow: latency"]);
    }

    #[test]
    fn the_worst_verdict_wins() {
        let mut bad = run("b", 200, "/", &[1], false);
        bad.record.verdict.note_lost(1, 1);
        let record = merged(vec![run("a", 100, "/", &[1], false), bad]);
        assert_eq!(record.verdict.status, Status::Invalid);
        assert_eq!(
            record.parts[0].verdict,
            Verdict { status: Status::Valid, reasons: Vec::new(), notes: Vec::new() }
        );
    }

    #[test]
    fn what_means_different_things_is_refused() {
        let a = || run("a", 100, "/", &[1], false);
        let check = |other: NamedRun, expected: &str| {
            let error = merge(vec![a(), other]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(run("b", 100, "/", &[1], true), "`b` measures latency from the scheduled start");
        check(NamedRun { name: "again".to_owned(), ..a() }, "are the same run");
        let mut other = run("b", 300, "/", &[1], false);
        other.record.plan.loads.push(squall_plan::Load {
            name: "s".to_owned(),
            what: What::Script(squall_plan::ScriptLoad {
                path: "s.js".into(),
                options: String::new(),
                scenarios: Vec::new(),
                speaks_http3: false,
            }),
            when: squall_plan::When::Closed { connections: squall_plan::Profile::constant(1.0), users: None },
            stop: squall_plan::Stop { duration: None, count: None },
            connections: squall_plan::ConnectionPolicy::default(),
            network: squall_plan::Network::default(),
            tls: squall_plan::TlsPolicy::default(),
            segment: squall_plan::Segment::default(),
        });
        check(other, "made nothing, `b` made a script's requests");
    }

    #[test]
    fn a_run_alone_comes_back_as_it_is() {
        let alone = run("a", 100, "/", &[1], false);
        assert_eq!(merged(vec![alone.clone()]), alone.record);
    }

    #[test]
    fn merging_what_is_merged_keeps_every_run() {
        let two = merged(vec![run("a", 100, "/", &[1], false), run("b", 200, "/", &[1], false)]);
        let three =
            merged(vec![NamedRun { name: "two".to_owned(), record: two }, run("c", 300, "/", &[1], false)]);
        assert_eq!(three.total.ok(), 6);
        let names: Vec<&str> = three.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
