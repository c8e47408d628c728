//! The run as a whole: collects the shards' seconds, and ends in the record that everything shown is drawn from.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use squall_plan::Plan;

use crate::series::WALL_MIN;
use crate::verdict::Watch;
use crate::{
    Event, MachineSecond, Monitor, Part, RowKey, Series, SeriesPoint, Share, ShareRecorder, Snapshot,
    Threshold, ThresholdResult, ToolRun, Verdict,
};

/// What is known of a run before it starts.
#[derive(Debug, Clone)]
pub struct RunSetup {
    /// The plan, with its secrets masked: it is saved with the record.
    pub plan: Plan,
    /// What each row of the snapshots is about.
    pub rows: Vec<RowKey>,
    /// Whether a load's requests start by a schedule.
    pub open_model: bool,
    /// Open model: how late the chosen pacing may send by design (its tick, and what waking takes). Lag within it is not held against the generator.
    pub lag_allowed: Duration,
    /// Rules that the result must meet.
    pub thresholds: Vec<Threshold>,
    /// How long all of it takes, pauses between the steps of a plan included; `None` where any load ends by something else than time.
    pub length: Option<Duration>,
    /// When the run starts, in milliseconds since 1970 (UTC).
    pub started_unix_ms: u64,
    /// Facts about the machine that makes the load, by name, such as `os` and `cpus`.
    pub environment: BTreeMap<String, String>,
}

/// Collects the seconds of all shards. Memory is bounded: by the rows, and by the series' most points.
#[derive(Debug, Clone)]
pub struct RunRecorder {
    setup: RunSetup,
    total: Snapshot,
    series: Series,
    shares: ShareRecorder,
    open_seconds: BTreeMap<u32, SeriesPoint>,
    last: LastSecond,
    shard_count: u32,
    elapsed: Duration,
    machine: Option<MachineSecond>,
    watch: Watch,
}

/// What is known of the newest seconds, to tell the last whole one.
#[derive(Debug, Clone, Default)]
struct LastSecond {
    /// The newest whole second; an empty one where nothing was made since; `None` before the first.
    point: Option<SeriesPoint>,
    /// Seconds before this one were shown, or left behind by a newer one.
    shown_before: u32,
    /// Seconds before this one are closed.
    closed_before: u32,
    /// Nobody makes any load for now.
    is_resting: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Length of the measured time: from the start of measurement (after the warm-up) to the last figure.
    pub duration: Duration,
    /// Why it ended.
    pub stopped_by: StoppedBy,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// Its time was over.
    Duration,
    /// All requests were made.
    Count,
    /// The user asked to stop; open requests were finished.
    Drained,
    /// The user asked twice; open requests were cut off.
    Aborted,
    /// Nothing could be reached.
    Unreachable,
    /// It did not end: the program was killed, and this is what it had saved.
    Lost,
}

impl StoppedBy {
    /// The reason that says more of the whole, where parts of it ended for different ones.
    ///
    /// In the order in which exit codes explain one another: who cut a run off must know that its figures are cut off, whatever else
    /// had happened; a target that a part never reached explains what is missing, where an orderly stop leaves whole figures. Of
    /// parts that came to their end, a time that was over says how long the whole went on; counts were reached within it.
    #[must_use]
    pub fn graver(self, other: Self) -> Self {
        let rank = |stopped_by: &Self| match stopped_by {
            Self::Count => 0,
            Self::Duration => 1,
            Self::Drained => 2,
            Self::Unreachable => 3,
            Self::Aborted => 4,
            Self::Lost => 5,
        };
        std::cmp::max_by_key(self, other, rank)
    }
}

/// A whole run: the artefact that is saved, and from which every face is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this form: [`RUN_RECORD_SCHEMA`].
    pub schema: u32,
    /// Version of the program that made it.
    pub squall_version: String,
    /// When the run started, in milliseconds since 1970 (UTC).
    pub started_unix_ms: u64,
    /// Length of the measured time.
    pub duration: Duration,
    /// Why it ended.
    pub stopped_by: StoppedBy,
    /// Whether the figures can be believed.
    pub verdict: Verdict,
    /// The rules, each with its outcome.
    pub thresholds: Vec<ThresholdResult>,
    /// What was run, with secrets masked.
    pub plan: Plan,
    /// Facts about the machine that made the load.
    pub environment: BTreeMap<String, String>,
    /// How many shards reported.
    pub shard_count: u32,
    /// The machine: of all seconds the worst figures, of CPU time the sum. `None` when it was not read.
    pub machine: Option<MachineSecond>,
    /// What each row of `total` is about.
    pub rows: Vec<RowKey>,
    /// All figures of the run.
    pub total: Snapshot,
    /// The run over time.
    pub series: Series,
    /// Metrics monitored during the load: of the target, of the generators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<Monitor>,
    /// Marked moments, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// The run divided: by its steps, its loads, its machines. Empty for a run of one load on one machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What each machine made of each load over time, where several machines or loads made the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// What foreign tools did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolRun>,
    /// The longest time between the first machine's start and the last one's of a load that they made together, by the controller's
    /// clock. `None` for one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<Duration>,
}

/// Version of [`RunRecord`]'s written form. It rises when a reader of the old form would misread the new one.
pub const RUN_RECORD_SCHEMA: u32 = 1;

impl RunRecorder {
    /// Nothing recorded yet.
    pub fn new(setup: RunSetup) -> Self {
        Self {
            total: Snapshot::new(setup.rows.len(), setup.open_model),
            series: Series::new(),
            shares: ShareRecorder::default(),
            open_seconds: BTreeMap::new(),
            last: LastSecond::default(),
            shard_count: 0,
            elapsed: Duration::ZERO,
            machine: None,
            watch: Watch::new(setup.open_model, setup.lag_allowed),
            setup,
        }
    }

    /// Adds what shard `shard_idx` did in second `second_idx` (whole seconds since the run's start, warm-up included). The order
    /// does not matter, and a second may still be added to after it was closed.
    pub fn absorb(&mut self, second_idx: u32, shard_idx: u32, snapshot: &Snapshot) {
        self.shard_count = self.shard_count.max(shard_idx.saturating_add(1));
        self.last.is_resting = false;
        let second = self.open_seconds.entry(second_idx).or_default();
        second.absorb(snapshot);
        self.absorb_total(snapshot, second_idx);
        if self.open_seconds.len() > OPEN_SECOND_COUNT_MAX {
            self.close_first();
        }
    }

    /// Ends a second: it is judged, and becomes part of the series, as are those before it that are still open.
    pub fn close_second(&mut self, second_idx: u32, machine: MachineSecond) {
        self.open_seconds.entry(second_idx).or_default().machine = Some(machine);
        while self.open_seconds.first_key_value().is_some_and(|(&first_idx, _)| first_idx <= second_idx) {
            self.close_first();
        }
    }

    /// Nobody makes any load until the next second that is absorbed: all seconds end.
    pub fn rest(&mut self) {
        while !self.open_seconds.is_empty() {
            self.close_first();
        }
        self.last.is_resting = true;
    }

    /// Sets when the run started, where that was not known at first.
    pub fn set_started(&mut self, unix_ms: u64) {
        self.setup.started_unix_ms = unix_ms;
    }

    /// Sets what each row is about, where that was not known at first.
    pub fn set_rows(&mut self, rows: Vec<RowKey>) {
        self.setup.rows = rows;
    }

    /// Sets the time since the run's start, for [`elapsed`](Self::elapsed) and [`last_second`](Self::last_second).
    pub fn tick(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
        self.last.tick(elapsed);
    }

    /// Time since the run's start, as of the last [`tick`](Self::tick).
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What is known of the run before its start.
    pub fn setup(&self) -> &RunSetup {
        &self.setup
    }

    /// All figures so far.
    pub fn total(&self) -> &Snapshot {
        &self.total
    }

    /// The last whole second: not the remnant with which a load ends, and an empty one while a plan pauses. `None` before the first.
    pub fn last_second(&self) -> Option<&SeriesPoint> {
        self.last.point.as_ref()
    }

    /// The closed seconds.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What each machine made of each load; empty where the caller does not record it.
    pub fn shares(&self) -> &ShareRecorder {
        &self.shares
    }

    /// The same, to record it.
    pub fn shares_mut(&mut self) -> &mut ShareRecorder {
        &mut self.shares
    }

    /// The verdict so far.
    pub fn verdict(&self) -> Verdict {
        self.watch.verdict(&self.total)
    }

    /// Ends the run.
    pub fn finish(mut self, end: End) -> RunRecord {
        self.rest();
        let series = std::mem::take(&mut self.series);
        let shares = std::mem::take(&mut self.shares).finish();
        RunRecord { series, shares, ..self.preview(end) }
    }

    /// The record as it would be if the run ended now, but without its series and shares: they may be large, and are at hand as
    /// [`series`](Self::series) and [`shares`](Self::shares). For views of a run that goes on; it copies every histogram.
    pub fn preview(&self, end: End) -> RunRecord {
        let thresholds = &self.setup.thresholds;
        RunRecord {
            schema: RUN_RECORD_SCHEMA,
            squall_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: self.setup.started_unix_ms,
            duration: end.duration,
            stopped_by: end.stopped_by,
            verdict: self.verdict(),
            thresholds: thresholds.iter().map(|t| t.evaluate(&self.total, end.duration)).collect(),
            plan: self.setup.plan.clone(),
            environment: self.setup.environment.clone(),
            shard_count: self.shard_count,
            machine: self.machine,
            rows: self.setup.rows.clone(),
            total: self.total.clone(),
            series: Series::new(),
            monitors: Vec::new(),
            events: Vec::new(),
            parts: Vec::new(),
            shares: Vec::new(),
            tools: Vec::new(),
            start_skew: None,
        }
    }

    /// Counts add up; of the states at a second's end, which add up over shards only, the most of any second stays.
    fn absorb_total(&mut self, snapshot: &Snapshot, second_idx: u32) {
        let second = &self.open_seconds[&second_idx];
        let connections_open = self.total.generator.connections_open.max(second.connections_open);
        let arrivals_waiting = self.total.generator.arrivals_waiting.max(second.arrivals_waiting);
        self.total.merge(snapshot);
        self.total.generator.connections_open = connections_open;
        self.total.generator.arrivals_waiting = arrivals_waiting;
    }

    fn close_first(&mut self) {
        let Some((second_idx, mut second)) = self.open_seconds.pop_first() else { return };
        if u64::from(second_idx) >= self.setup.plan.warmup.as_secs() {
            self.watch.judge_second(second_idx, &mut second);
        }
        if let Some(machine) = &second.machine {
            self.machine.get_or_insert_default().join(machine);
        }
        if !self.series.add_remnant(second_idx, &second) {
            self.series.add(second_idx, &second);
        }
        self.last.close(second_idx, second);
    }
}

impl LastSecond {
    fn close(&mut self, second_idx: u32, second: SeriesPoint) {
        self.closed_before = self.closed_before.max(second_idx + 1);
        if second_idx < self.shown_before || second.wall < WALL_MIN {
            return;
        }
        self.shown_before = second_idx + 1;
        if second.wall >= WHOLE_MIN {
            self.point = Some(second);
        }
    }

    /// Where nothing was made in the last whole second, it is known as soon as no shard can report for it any more.
    fn tick(&mut self, elapsed: Duration) {
        let past_count = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        let is_known = self.is_resting || past_count <= self.closed_before;
        if is_known && past_count > self.shown_before && self.point.is_some() {
            self.point = Some(SeriesPoint::default());
        }
    }
}

impl RunRecord {
    /// Requests that ended, well or not, per second of measured time.
    pub fn rate_per_s(&self) -> f64 {
        per_s(self.total.ok() + self.total.failed(), self.duration)
    }
}

/// `count` per second; 0 when no time passed.
pub(crate) fn per_s(count: u64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { count as f64 / duration.as_secs_f64() }
}

/// A second measured for less is none: its load ended in it. A loop that was held up before it leaves it somewhat shorter.
const WHOLE_MIN: Duration = Duration::from_millis(800);

/// Most seconds kept open: a caller that never closes seconds shall not fill the memory.
pub(crate) const OPEN_SECOND_COUNT_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_reason_to_end_wins_whichever_comes_first() {
        use StoppedBy::{Aborted, Count, Drained, Duration, Lost, Unreachable};
        let ranked = [Count, Duration, Drained, Unreachable, Aborted, Lost];
        for (rank, graver) in ranked.iter().enumerate() {
            for lesser in &ranked[..=rank] {
                assert_eq!((lesser.graver(*graver), graver.graver(*lesser)), (*graver, *graver));
            }
        }
    }
    use crate::{ReasonKind, Sample, Status};

    fn recorder(warmup: Duration) -> RunRecorder {
        let plan =
            Plan { name: "run".to_owned(), loads: Vec::new(), thresholds: Vec::new(), warmup, threads: None };
        RunRecorder::new(RunSetup {
            plan,
            rows: Vec::new(),
            open_model: true,
            lag_allowed: Duration::ZERO,
            thresholds: Vec::new(),
            length: None,
            started_unix_ms: 0,
            environment: BTreeMap::new(),
        })
    }

    /// A second of a shard with two connections open, three arrivals waiting, and one request.
    fn second() -> Snapshot {
        let mut snapshot = Snapshot::new(1, true);
        snapshot.generator.wall = Duration::from_secs(1);
        snapshot.generator.connections_open = 2;
        snapshot.generator.arrivals_waiting = 3;
        snapshot.record(&Sample::ok(1_000_000));
        snapshot
    }

    fn finish(recorder: RunRecorder, seconds: u64) -> RunRecord {
        recorder.finish(End { duration: Duration::from_secs(seconds), stopped_by: StoppedBy::Duration })
    }

    #[test]
    fn congestion_windows_are_averaged_over_all_connections() {
        let mut recorder = recorder(Duration::ZERO);
        // Three connections on one shard, and one on another.
        for (shard_idx, windows) in [(0, &[10_000, 10_000, 10_000][..]), (1, &[50_000])] {
            let mut snapshot = second();
            let quic = snapshot.quic.get_or_insert_default();
            quic.packets_lost = 2;
            windows.iter().for_each(|bytes| quic.paths.note(*bytes, 1_000_000));
            recorder.absorb(0, shard_idx, &snapshot);
        }
        recorder.close_second(1, MachineSecond::default());
        let record = finish(recorder, 1);
        let point = record.series.points[0].quic.unwrap();
        assert_eq!((point.packets_lost, point.paths.count), (4, 4));
        assert_eq!(point.paths.window_bytes_mean(), Some(20_000));
        assert_eq!(point.paths.rtt_ns_mean(), Some(1_000_000));
        // Without connections nothing is saved.
        let plain = serde_json::to_value(SeriesPoint::default()).unwrap();
        assert_eq!(plain.get("quic"), None);
    }

    #[test]
    fn states_add_up_over_shards_and_peak_over_time() {
        let mut recorder = recorder(Duration::ZERO);
        for (second_idx, shard_idx) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
            recorder.absorb(second_idx, shard_idx, &second());
        }
        recorder.close_second(1, MachineSecond::default());
        let last = recorder.last_second().unwrap();
        assert_eq!((last.connections_open, last.ok), (2, 1));
        let record = finish(recorder, 2);
        assert_eq!(record.shard_count, 3);
        assert_eq!(record.total.generator.connections_open, 6);
        assert_eq!(record.total.generator.arrivals_waiting, 9);
        assert_eq!(record.series.points[0].arrivals_waiting, 9);
        assert_eq!(record.rate_per_s(), 2.0);
    }

    #[test]
    fn a_second_reported_late_counts_in_its_own_point() {
        let mut recorder = recorder(Duration::ZERO);
        recorder.absorb(0, 0, &second());
        recorder.close_second(0, MachineSecond::default());
        recorder.close_second(1, MachineSecond::default());
        let mut late = second();
        late.generator.busy = Duration::from_secs(1);
        recorder.absorb(0, 1, &late);
        recorder.close_second(2, MachineSecond::default());
        let record = finish(recorder, 3);
        let point = &record.series.points[0];
        assert_eq!((point.ok, point.wall, point.rate_per_s()), (2, Duration::from_secs(1), 2.0));
        assert_eq!(point.warnings, [ReasonKind::Busy, ReasonKind::Descheduled]);
        assert_eq!(record.total.ok(), 2);
        assert_eq!(record.series.points.len(), 3);
    }

    #[test]
    fn the_warm_up_is_not_judged() {
        for (warmup_ms, status) in [(0, Status::Suspect), (999, Status::Suspect), (1000, Status::Valid)] {
            let mut recorder = recorder(Duration::from_millis(warmup_ms));
            let mut busy = second();
            busy.generator.busy = Duration::from_secs(1);
            busy.generator.cpu = Duration::from_secs(1);
            recorder.absorb(0, 0, &busy);
            recorder.absorb(1, 0, &second());
            assert_eq!(finish(recorder, 2).verdict.status, status, "warm-up of {warmup_ms} ms");
        }
    }

    #[test]
    fn seconds_that_nobody_closes_do_not_pile_up() {
        let mut recorder = recorder(Duration::ZERO);
        for second_idx in 0..1000 {
            recorder.absorb(second_idx, 0, &second());
        }
        assert_eq!(recorder.open_seconds.len(), OPEN_SECOND_COUNT_MAX);
        assert_eq!(recorder.series().points.len(), 1000 - OPEN_SECOND_COUNT_MAX);
    }

    #[test]
    fn the_machine_is_reported_at_its_worst() {
        let mut recorder = recorder(Duration::ZERO);
        for (second_idx, cpu_fraction) in [(0, 0.5), (1, 0.9), (2, 0.2)] {
            let process_cpu = Duration::from_millis(100);
            recorder.close_second(
                second_idx,
                MachineSecond { cpu_fraction, process_cpu, ..MachineSecond::default() },
            );
        }
        let machine = finish(recorder, 3).machine.unwrap();
        assert_eq!((machine.cpu_fraction, machine.process_cpu), (0.9, Duration::from_millis(300)));
    }

    #[test]
    fn nothing_measured_has_no_rate() {
        let recorder = recorder(Duration::ZERO);
        assert_eq!((recorder.elapsed(), recorder.last_second()), (Duration::ZERO, None));
        assert_eq!(finish(recorder, 0).rate_per_s(), 0.0);
    }

    /// A request at the very end of a load.
    fn remnant(wall_ms: u64) -> Snapshot {
        let mut snapshot = second();
        snapshot.generator.wall = Duration::from_millis(wall_ms);
        snapshot
    }

    #[test]
    fn the_last_second_is_a_whole_one_and_empty_in_pauses() {
        let mut recorder = recorder(Duration::ZERO);
        let shown = |recorder: &mut RunRecorder, elapsed_ms| {
            recorder.tick(Duration::from_millis(elapsed_ms));
            recorder.last_second().map(|second| second.ok)
        };
        assert_eq!(shown(&mut recorder, 900), None);
        recorder.absorb(0, 0, &second());
        recorder.close_second(0, MachineSecond::default());
        assert_eq!(shown(&mut recorder, 1_100), Some(1));
        for (second_idx, wall_ms) in [(1, 1), (2, 500)] {
            recorder.absorb(second_idx, 0, &remnant(wall_ms));
        }
        recorder.rest();
        for (elapsed_ms, ok) in [(2_900, 1), (4_100, 0), (9_000, 0)] {
            assert_eq!(shown(&mut recorder, elapsed_ms), Some(ok), "after {elapsed_ms} ms");
        }
        recorder.absorb(9, 0, &second());
        assert_eq!(shown(&mut recorder, 10_100), Some(0));
        recorder.close_second(9, MachineSecond::default());
        // Who reports the next second late is still awaited.
        assert_eq!(shown(&mut recorder, 11_500), Some(1));
    }

    #[test]
    fn a_remnant_without_length_is_part_of_the_second_before() {
        let mut recorder = recorder(Duration::ZERO);
        for (second_idx, wall_ms) in [(0, 1_000), (1, 0), (5, 0), (6, 1_000), (7, 300)] {
            recorder.absorb(second_idx, 0, &remnant(wall_ms));
            recorder.close_second(second_idx, MachineSecond::default());
        }
        let points = finish(recorder, 8).series.points;
        let counts: Vec<u64> = points.iter().map(|point| point.ok).collect();
        assert_eq!(counts, [2, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(points[0].wall, Duration::from_secs(1));
    }
}
