//! Whether the figures can be believed: what impaired the generator, how badly, and for how long.
//!
//! Judges the generator only; the server's slowness and failures are data. Each limit below says why it is where it is;
//! `docs/honesty.md` explains it to users.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::series::WALL_MIN;
use crate::{Cause, Reason, ReasonKind, SeriesPoint, Snapshot, ToolRun};

/// The judgement on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The worst severity among the reasons.
    pub status: Status,
    /// What impaired the measurement, worst first.
    pub reasons: Vec<Reason>,
    /// What explains the figures but does not impair them, such as a backlog that the server caused.
    pub notes: Vec<Reason>,
}

/// Whether the figures can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Nothing is known that impairs them.
    Valid,
    /// The generator may be part of what was measured.
    Suspect,
    /// The generator is what was measured.
    Invalid,
}

impl Verdict {
    /// Takes over what another part of the run found: of each kind the worse stays.
    pub fn join(&mut self, other: &Self) {
        for theirs in other.reasons.iter().chain(&other.notes) {
            self.add(*theirs);
        }
    }

    /// Machines were lost before their load ended: what they measured is in the figures, what they would have is not.
    pub fn note_lost(&mut self, lost_count: usize, machine_count: usize) {
        let severity = if lost_count == machine_count { Status::Invalid } else { Status::Suspect };
        self.add_count(ReasonKind::MachinesLost, severity, (lost_count, machine_count));
    }

    /// Foreign tools failed, or missed the rate they were asked for. A load that was not made at all makes the run INVALID.
    pub fn note_tools(&mut self, tools: &[ToolRun]) {
        let problem_count = tools.iter().filter(|tool| tool.problem.is_some()).count();
        let has_failed = tools.iter().any(ToolRun::has_failed);
        let is_invalid = has_failed || problem_count == tools.len();
        let severity = if is_invalid { Status::Invalid } else { Status::Suspect };
        self.add_count(ReasonKind::ToolsFailed, severity, (problem_count, tools.len()));
    }

    /// Pods may use more CPU than is reserved for them: whether they had it depends on their neighbours.
    pub fn note_not_reserved(&mut self, count: usize, pod_count: usize) {
        self.add_count(ReasonKind::CpuNotReserved, Status::Suspect, (count, pod_count));
    }

    /// Pods shared a node, and with it at least its network interface and caches.
    pub fn note_shared_nodes(&mut self, count: usize, pod_count: usize) {
        self.add_count(ReasonKind::NodeShared, Status::Suspect, (count, pod_count));
    }

    fn add_count(&mut self, kind: ReasonKind, severity: Status, (part, whole): (usize, usize)) {
        if part > 0 {
            let (worst, limit) = (part as f64, 0.0);
            self.add(Reason { kind, severity, worst, limit, seconds_affected: None, seconds: whole as u32 });
        }
    }

    fn add(&mut self, reason: Reason) {
        let mut found: Vec<Reason> = self.reasons.drain(..).chain(self.notes.drain(..)).collect();
        match found.iter_mut().find(|known| known.kind == reason.kind) {
            Some(known) if (known.severity, known.worst) < (reason.severity, reason.worst) => *known = reason,
            Some(_) => {}
            None => found.push(reason),
        }
        *self = Self::new(found);
    }

    fn new(mut found: Vec<Reason>) -> Self {
        found.sort_by_key(|reason| (std::cmp::Reverse(reason.severity), reason.kind));
        let (notes, reasons): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|reason| reason.severity == Status::Valid);
        let status = reasons.first().map_or(Status::Valid, |worst| worst.severity);
        Self { status, reasons, notes }
    }
}

/// Collects, second by second, what impairs a run.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    open_model: bool,
    lag_allowed: Duration,
    tallies: [Tally; KIND_COUNT],
    judged: Judged,
    arrivals: Arrivals,
}

/// Which seconds were judged.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    second_count: u32,
    last_idx: Option<u32>,
}

/// One kind's findings so far: in how many seconds, and the worst.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    second_count: u32,
    invalid_count: u32,
    worst: Option<Finding>,
}

/// Open model: arrivals in the judged seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    asked: u64,
    sent: u64,
    last_asked_idx: u32,
    /// Waiting for a connection at the end of the last second in which the schedule asked.
    waiting: u64,
}

/// One kind, found in one second.
#[derive(Debug, Clone, Copy)]
struct Finding {
    kind: ReasonKind,
    severity: Status,
    value: f64,
    limit: f64,
}

impl Watch {
    pub(crate) fn new(open_model: bool, lag_allowed: Duration) -> Self {
        Self {
            open_model,
            lag_allowed,
            tallies: [Tally::default(); KIND_COUNT],
            judged: Judged::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// Judges one second and marks what impaired it.
    pub(crate) fn judge_second(&mut self, second_idx: u32, second: &mut SeriesPoint) {
        self.arrivals.count(second_idx, second);
        let is_remnant = second.wall < WALL_MIN;
        if is_remnant && self.judged.second_count > 0 {
            return;
        }
        for finding in self.findings(second) {
            self.tallies[finding.kind as usize].add(&finding);
            second.warnings.push(finding.kind);
        }
        second.warnings.sort_unstable();
        self.judged.count(second_idx);
    }

    /// The verdict on a run with these figures.
    pub(crate) fn verdict(&self, total: &Snapshot) -> Verdict {
        let second_count = self.judged.second_count.max(1);
        let per_second = self.tallies.iter().filter_map(|tally| tally.reason(second_count));
        let whole_run = [self.arrivals.shortfall(), own_failures(total), datagrams_dropped(total)];
        let whole_run = whole_run.into_iter().flatten().map(|finding| finding.reason(None, second_count));
        Verdict::new(per_second.chain(whole_run).collect())
    }

    fn findings(&self, second: &SeriesPoint) -> Vec<Finding> {
        // The system counts CPU time in ticks of up to 10 ms, too coarse for a remnant.
        let machine = second.machine.filter(|_| second.wall >= WALL_MIN).unwrap_or_default();
        let ports = if second.connections_opened > 0 { machine.port_fraction() } else { 0.0 };
        let lag = self.lag(second);
        let all = [
            busy(second, lag.is_some()),
            lag,
            stall(second),
            above(ReasonKind::Descheduled, second.descheduled_max, DESCHEDULED_SUSPECT),
            above(ReasonKind::CpuThrottled, machine.cpu_throttled.as_secs_f64(), stall_allowed(second)),
            above(ReasonKind::MachineCpu, machine.cpu_fraction, MACHINE_CPU_SUSPECT),
            above(ReasonKind::Steal, machine.steal_fraction, STEAL_SUSPECT),
            above(ReasonKind::Descriptors, machine.descriptor_fraction(), DESCRIPTORS_SUSPECT),
            above(ReasonKind::Ports, ports, PORTS_SUSPECT),
            backlog(second),
        ];
        all.into_iter().flatten().collect()
    }

    fn lag(&self, second: &SeriesPoint) -> Option<Finding> {
        let lag_s = seconds(second.schedule_lag.quantile(0.99).filter(|_| self.open_model)?);
        let latency_s = second.latency.quantile(0.5).map_or(0.0, seconds);
        let limit = self.lag_allowed.as_secs_f64().max(LAG_SHARE_SUSPECT * latency_s);
        let kind = ReasonKind::ScheduleLag;
        let invalid = LAG_INVALID.as_secs_f64();
        if lag_s > invalid {
            return Some(Finding { kind, severity: Status::Invalid, value: lag_s, limit: invalid });
        }
        above(kind, lag_s, limit)
    }
}

impl Arrivals {
    fn count(&mut self, second_idx: u32, second: &SeriesPoint) {
        // Lost machines are a separate reason.
        self.asked += second.asked.saturating_sub(second.arrivals_lost);
        self.sent += second.arrivals_sent;
        if second.asked == 0 || second_idx < self.last_asked_idx {
            return;
        }
        // In a remnant of a second at the run's end what waited has been abandoned already: the second before it says how many.
        if second.wall < WALL_MIN && self.last_asked_idx < second_idx {
            self.waiting = self.waiting.max(second.arrivals_waiting);
            return;
        }
        // A shard that reports its second late adds to what the others had waiting.
        let waiting_before = if second_idx == self.last_asked_idx { self.waiting } else { 0 };
        (self.last_asked_idx, self.waiting) = (second_idx, waiting_before + second.arrivals_waiting);
    }

    /// Those neither sent nor waiting for a connection when the schedule ended. Those sent after its end count as sent: their
    /// lag accounts for them.
    fn shortfall(&self) -> Option<Finding> {
        let missing = self.asked.saturating_sub(self.sent).saturating_sub(self.waiting);
        let (kind, severity) = (ReasonKind::Shortfall, Status::Invalid);
        let (value, limit) = (share(missing, self.asked), SHORTFALL_INVALID);
        let is_short = missing > SHORTFALL_COUNT_MIN && value > limit;
        is_short.then_some(Finding { kind, severity, value, limit })
    }
}

impl Judged {
    /// Counts a second once, even when a shard reports it late.
    fn count(&mut self, second_idx: u32) {
        self.second_count += u32::from(self.last_idx < Some(second_idx));
        self.last_idx = self.last_idx.max(Some(second_idx));
    }
}

impl Tally {
    fn add(&mut self, finding: &Finding) {
        self.second_count += 1;
        self.invalid_count += u32::from(finding.severity == Status::Invalid);
        let rank = |finding: &Finding| (finding.severity, finding.value);
        if self.worst.is_none_or(|worst| rank(&worst) < rank(finding)) {
            self.worst = Some(*finding);
        }
    }

    /// What these findings mean for a run of so many seconds; `None` when they are too few to matter.
    fn reason(&self, second_count: u32) -> Option<Reason> {
        let share = |part: u32| f64::from(part) / f64::from(second_count);
        let mut worst = self.worst.filter(|_| share(self.second_count) >= AFFECTED_SHARE_MIN)?;
        if share(self.invalid_count) < INVALID_SHARE_MIN {
            worst.severity = worst.severity.min(Status::Suspect);
        }
        // A shard that reports a second late has it judged again.
        let seconds_affected = self.second_count.min(second_count);
        Some(worst.reason(Some(seconds_affected), second_count))
    }
}

impl Finding {
    fn reason(&self, seconds_affected: Option<u32>, seconds: u32) -> Reason {
        let Self { kind, severity, value, limit } = *self;
        Reason { kind, severity, worst: value, limit, seconds_affected, seconds }
    }
}

fn busy(second: &SeriesPoint, is_late: bool) -> Option<Finding> {
    let kind = ReasonKind::Busy;
    if is_late && second.busy_max >= BUSY_INVALID {
        let (severity, value, limit) = (Status::Invalid, second.busy_max, BUSY_INVALID);
        return Some(Finding { kind, severity, value, limit });
    }
    above(kind, second.busy_max, BUSY_SUSPECT)
}

fn stall(second: &SeriesPoint) -> Option<Finding> {
    above(ReasonKind::Stall, second.stall_max.as_secs_f64(), stall_allowed(second))
}

/// For how long, in seconds, the generator may be stopped in a second.
fn stall_allowed(second: &SeriesPoint) -> f64 {
    let p99_s = second.latency.quantile(0.99).map_or(0.0, seconds);
    STALL_SUSPECT.as_secs_f64().max(STALL_SHARE_SUSPECT * p99_s)
}

fn backlog(second: &SeriesPoint) -> Option<Finding> {
    let limit = BACKLOG_SHARE_NOTED * second.asked as f64;
    let value = second.arrivals_waiting as f64;
    (second.asked > 0 && value > limit).then_some(Finding {
        kind: ReasonKind::Backlog,
        severity: Status::Valid,
        value,
        limit,
    })
}

fn own_failures(total: &Snapshot) -> Option<Finding> {
    let count = total.failures.count_of(Cause::OutOfResources) + total.failures.count_of(Cause::BodyFile);
    let value = share(count, total.settled());
    let severity = if value >= OWN_FAILURES_INVALID { Status::Invalid } else { Status::Suspect };
    (count > 0).then_some(Finding { kind: ReasonKind::OwnFailures, severity, value, limit: 0.0 })
}

/// Datagrams that reached this machine and were not read in time.
fn datagrams_dropped(total: &Snapshot) -> Option<Finding> {
    let value = total.quic.as_ref()?.dropped_share();
    let kind = ReasonKind::DatagramsDropped;
    if value > DROPPED_INVALID {
        return Some(Finding { kind, severity: Status::Invalid, value, limit: DROPPED_INVALID });
    }
    above(kind, value, DROPPED_SUSPECT)
}

/// Suspect when `value` is above `limit`.
fn above(kind: ReasonKind, value: f64, limit: f64) -> Option<Finding> {
    (value > limit).then_some(Finding { kind, severity: Status::Suspect, value, limit })
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// [`ReasonKind::NodeShared`] is the last.
const KIND_COUNT: usize = ReasonKind::NodeShared as usize + 1;

/// A shard's loop that is busier than this causes queueing: at 0.9, answers wait for 4.5 times the loop's own work on
/// average (M/D/1: rho / 2(1 - rho)), and twice as long at 0.95.
const BUSY_SUSPECT: f64 = 0.90;

/// An open model that is this busy *and* late does not keep up: what it measures is itself.
const BUSY_INVALID: f64 = 0.98;

/// Lag matters once its p99 is more than this share of the median latency (and more than the pacing's tick, which was chosen).
const LAG_SHARE_SUSPECT: f64 = 0.10;

/// Beyond this lag the load is not the one that was asked for, however slow the server is.
const LAG_INVALID: Duration = Duration::from_millis(100);

/// More arrivals than this share never sent: the rate on the label is not the rate in the bottle.
const SHORTFALL_INVALID: f64 = 0.05;

/// Fewer arrivals than this may be cut off by the boundaries of ticks and seconds.
const SHORTFALL_COUNT_MIN: u64 = 10;

/// A stall of 10 ms delays 1 % of a second's answers, so it can move that second's p99 ...
const STALL_SUSPECT: Duration = Duration::from_millis(10);

/// ... and does when it is more than this share of it.
const STALL_SHARE_SUSPECT: f64 = 0.10;

/// A shard that wanted its core for this much longer than it had it shared the core with someone.
const DESCHEDULED_SUSPECT: f64 = 0.10;

/// With all CPUs in use, waking up takes as long as the scheduler likes, and no figure of ours shows it.
const MACHINE_CPU_SUSPECT: f64 = 0.95;

/// Stolen time is a stall that even the kernel does not see; 5 % is 50 ms of each second.
const STEAL_SUSPECT: f64 = 0.05;

/// So near to the limit the next burst of connections fails.
const DESCRIPTORS_SUSPECT: f64 = 0.95;

/// Beyond half of the range connect() searches for a free port: from 13 us to several ms near the end, measured.
const PORTS_SUSPECT: f64 = 0.50;

/// Every failure of the generator is reported; from this share of the requests on the failures are ours, not the server's.
const OWN_FAILURES_INVALID: f64 = 0.01;

/// What is dropped comes again after a timeout: with one in a thousand the p99.9 is that timeout ...
const DROPPED_SUSPECT: f64 = 0.001;

/// ... and with one in a hundred the congestion controller has slowed the server down.
const DROPPED_INVALID: f64 = 0.01;

/// A tenth of a second's arrivals in the queue: each waits 100 ms or more.
const BACKLOG_SHARE_NOTED: f64 = 0.10;

/// What touches fewer of a run's seconds than this cannot move the p99 it would be printed next to. The series still marks them.
const AFFECTED_SHARE_MIN: f64 = 0.01;

/// Seconds that are invalid make the run invalid when they are this many of its seconds; fewer make it suspect.
const INVALID_SHARE_MIN: f64 = 0.10;

#[cfg(test)]
mod tests {
    use ReasonKind::*;

    use super::*;
    use crate::{Histogram, MachineSecond, Outcome, Phase, Sample, Sketch};

    /// A second without blame: latencies of 1 ms, half of the time busy.
    fn good() -> SeriesPoint {
        SeriesPoint {
            wall: Duration::from_secs(1),
            asked: 1000,
            started: 1000,
            arrivals_sent: 1000,
            latency: sketch(&[1_000_000; 100]),
            schedule_lag: sketch(&[90_000; 100]),
            connections_opened: 1,
            busy_max: 0.5,
            descheduled_max: 0.01,
            stall_max: Duration::from_millis(1),
            machine: Some(MachineSecond {
                cpu_fraction: 0.6,
                descriptors_open: 100,
                descriptors_limit: 1000,
                ports_used: 100,
                ports_available: 28_232,
                ..MachineSecond::default()
            }),
            ..SeriesPoint::default()
        }
    }

    fn sketch(values: &[u64]) -> Sketch {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        Sketch::from(&histogram)
    }

    fn open_model() -> Watch {
        Watch::new(true, Duration::from_micros(500))
    }

    fn judged(mut watch: Watch, seconds: &[SeriesPoint]) -> Verdict {
        for (second, second_idx) in seconds.iter().zip(0..) {
            watch.judge_second(second_idx, &mut second.clone());
        }
        watch.verdict(&Snapshot::new(1, true))
    }

    /// Judges ten seconds of which one is `spoilt`.
    fn check(spoil: impl Fn(&mut SeriesPoint), expected: &[(ReasonKind, Status)]) {
        let mut seconds = vec![good(); 10];
        spoil(&mut seconds[3]);
        let verdict = judged(open_model(), &seconds);
        let found: Vec<_> =
            verdict.reasons.iter().chain(&verdict.notes).map(|r| (r.kind, r.severity)).collect();
        assert_eq!(found, expected, "{:?}", seconds[3]);
        assert!(verdict.reasons.iter().all(|r| r.seconds_affected == Some(1) && r.seconds == 10));
    }

    fn lag(millis: u64) -> Sketch {
        sketch(&[millis * 1_000_000; 100])
    }

    #[test]
    fn a_good_run_is_valid() {
        let verdict = judged(open_model(), &vec![good(); 10]);
        assert_eq!(verdict, Verdict { status: Status::Valid, reasons: Vec::new(), notes: Vec::new() });
    }

    #[test]
    fn each_impairment_is_found_and_graded() {
        let machine = |change: fn(&mut MachineSecond)| {
            move |second: &mut SeriesPoint| change(second.machine.as_mut().unwrap())
        };
        check(|s| s.busy_max = 0.91, &[(Busy, Status::Suspect)]);
        check(|s| s.schedule_lag = lag(1), &[(ScheduleLag, Status::Suspect)]);
        check(|s| s.schedule_lag = lag(101), &[(ScheduleLag, Status::Invalid)]);
        check(|s| s.stall_max = Duration::from_millis(11), &[(Stall, Status::Suspect)]);
        check(machine(|m| m.cpu_throttled = Duration::from_millis(11)), &[(CpuThrottled, Status::Suspect)]);
        check(|s| s.descheduled_max = 0.11, &[(Descheduled, Status::Suspect)]);
        check(machine(|m| m.cpu_fraction = 0.96), &[(MachineCpu, Status::Suspect)]);
        check(machine(|m| m.steal_fraction = 0.06), &[(Steal, Status::Suspect)]);
        check(machine(|m| m.descriptors_open = 951), &[(Descriptors, Status::Suspect)]);
        check(machine(|m| m.ports_used = 14_117), &[(Ports, Status::Suspect)]);
    }

    #[test]
    fn a_busy_open_model_is_invalid_only_when_it_is_late() {
        check(|s| s.busy_max = 0.99, &[(Busy, Status::Suspect)]);
        let late_and_busy = |s: &mut SeriesPoint| {
            s.busy_max = 0.99;
            s.schedule_lag = lag(1);
        };
        check(late_and_busy, &[(Busy, Status::Invalid), (ScheduleLag, Status::Suspect)]);
    }

    #[test]
    fn a_server_that_is_slow_is_not_held_against_the_generator() {
        check(|s| s.arrivals_waiting = 101, &[(Backlog, Status::Valid)]);
        check(|s| s.latency = lag(5_000), &[]);
    }

    #[test]
    fn what_is_small_compared_with_the_latency_does_not_matter() {
        let slow = |s: &mut SeriesPoint| {
            s.latency = lag(200);
            s.schedule_lag = lag(19);
            s.stall_max = Duration::from_millis(19);
            s.machine.as_mut().unwrap().cpu_throttled = Duration::from_millis(19);
        };
        check(slow, &[]);
    }

    #[test]
    fn ports_in_use_do_not_matter_while_no_connection_is_opened() {
        let all_open = |s: &mut SeriesPoint| {
            s.connections_opened = 0;
            s.machine.as_mut().unwrap().ports_used = 28_000;
        };
        check(all_open, &[]);
    }

    #[test]
    fn lag_does_not_matter_in_a_closed_model() {
        let second = SeriesPoint { schedule_lag: lag(500), ..good() };
        assert_eq!(judged(Watch::new(false, Duration::ZERO), &[second]).status, Status::Valid);
    }

    #[test]
    fn a_rare_second_does_not_condemn_a_long_run() {
        let mut seconds = vec![good(); 101];
        seconds[7].busy_max = 1.0;
        assert_eq!(judged(open_model(), &seconds).reasons, []);
        seconds[7].schedule_lag = lag(500);
        seconds[8].schedule_lag = lag(400);
        let verdict = judged(open_model(), &seconds);
        assert_eq!((verdict.status, verdict.reasons.len()), (Status::Suspect, 1));
    }

    #[test]
    fn the_remnant_at_the_end_is_no_second() {
        let remnant = SeriesPoint { wall: Duration::from_millis(30), busy_max: 0.95, ..good() };
        let verdict = judged(open_model(), &[SeriesPoint { busy_max: 0.95, ..good() }, remnant]);
        assert_eq!((verdict.reasons[0].seconds_affected, verdict.reasons[0].seconds), (Some(1), 1));
    }

    #[test]
    fn a_run_that_is_only_a_remnant_is_judged() {
        let stalled = SeriesPoint {
            wall: Duration::from_millis(30),
            stall_max: Duration::from_millis(25),
            machine: Some(MachineSecond { cpu_fraction: 1.0, ..MachineSecond::default() }),
            ..good()
        };
        let reasons = judged(open_model(), &[stalled]).reasons;
        assert_eq!(reasons.iter().map(|r| (r.kind, r.seconds)).collect::<Vec<_>>(), [(Stall, 1)]);
    }

    #[test]
    fn seconds_that_impair_are_marked() {
        let mut second = SeriesPoint { busy_max: 0.95, stall_max: Duration::from_secs(1), ..good() };
        open_model().judge_second(0, &mut second);
        assert_eq!(second.warnings, [Busy, Stall]);
    }

    /// A run that asked for 1000 arrivals, sent some, and left some waiting for a connection; what a concurrent closed model started,
    /// or redirects led to, hides none that is missing.
    fn after_asking(sent: u64, waiting: u64) -> Verdict {
        let point = SeriesPoint { started: 5_000, arrivals_sent: sent, arrivals_waiting: waiting, ..good() };
        judged(open_model(), &[point])
    }

    #[test]
    fn arrivals_never_sent_are_the_generators_fault_unless_they_wait_for_the_server() {
        assert_eq!(after_asking(949, 0).reasons[0].kind, Shortfall);
        assert_eq!(after_asking(949, 0).status, Status::Invalid);
        assert_eq!(after_asking(950, 0).status, Status::Valid);
        let server_limited = after_asking(500, 500);
        assert_eq!((server_limited.status, server_limited.notes[0].kind), (Status::Valid, Backlog));
    }

    #[test]
    fn a_remnant_of_a_second_does_not_forget_who_waited() {
        let second = SeriesPoint { asked: 2000, arrivals_sent: 1600, arrivals_waiting: 400, ..good() };
        let remnant = SeriesPoint {
            wall: Duration::from_millis(2),
            asked: 1,
            arrivals_sent: 0,
            arrivals_waiting: 0,
            ..good()
        };
        let verdict = judged(open_model(), &[second, remnant]);
        assert_eq!((verdict.status, verdict.notes[0].kind), (Status::Valid, Backlog));
    }

    fn after_failures(own: u64, of: u64) -> Verdict {
        let mut total = Snapshot::new(1, false);
        for idx in 0..of {
            let outcome = if idx < own {
                Outcome::Failed(Cause::OutOfResources, Phase::Connecting)
            } else {
                Outcome::Ok
            };
            total.record(&Sample { outcome, ..Sample::ok(1) });
        }
        Watch::new(false, Duration::ZERO).verdict(&total)
    }

    #[test]
    fn failures_of_our_own_side_are_reported() {
        assert_eq!(after_failures(0, 1000).status, Status::Valid);
        assert_eq!(after_failures(1, 1000).status, Status::Suspect);
        assert_eq!(after_failures(10, 1000).status, Status::Invalid);
    }

    #[test]
    fn datagrams_that_were_not_read_in_time_are_reported() {
        let after = |dropped: u64| {
            let mut total = Snapshot::new(1, false);
            let quic = total.quic.get_or_insert_default();
            (quic.datagrams_dropped, quic.datagrams_received) = (dropped, 10_000 - dropped);
            let verdict = Watch::new(false, Duration::ZERO).verdict(&total);
            (verdict.status, verdict.reasons.first().map(|reason| reason.to_string()))
        };
        assert_eq!(after(0), (Status::Valid, None));
        assert_eq!(after(10), (Status::Valid, None));
        let (status, text) = after(50);
        assert_eq!(status, Status::Suspect);
        assert_eq!(text.unwrap(), "the kernel dropped 0.50 % of the datagrams that arrived (limit 0.10 %)");
        assert_eq!(after(500).0, Status::Invalid);
    }
}
