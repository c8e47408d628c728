//! Whether the figures can be believed: what impaired the generator, how badly, and for how long.
//!
//! Judges the generator only; the server's slowness and failures are data. Each limit below says why it is where it is;
//! `docs/honesty.md` tells the same to users.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::series::WALL_MIN;
use crate::{Cause, SeriesPoint, Snapshot};

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

/// One thing that was found, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// What it is.
    pub kind: ReasonKind,
    /// What it does to the verdict; [`Status::Valid`] in a note.
    pub severity: Status,
    /// The worst value that was seen, in the unit of [`ReasonKind`].
    pub worst: f64,
    /// The limit that it passed, in the same unit.
    pub limit: f64,
    /// In how many seconds; `None` when it is about the whole run.
    pub seconds_affected: Option<u32>,
    /// How many seconds the run had.
    pub seconds: u32,
}

/// What can impair a measurement. Shares are fractions of 1, times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ReasonKind {
    /// A shard worked for nearly all of its time: share.
    Busy,
    /// Open model: requests were sent late although a connection was free: p99 of the lag, time.
    ScheduleLag,
    /// Open model: arrivals that were never sent although a connection was free: share of those asked.
    Shortfall,
    /// A loop's turn was so long that answers lay unread: time.
    Stall,
    /// A shard wanted to work and did not get its core: share of its time.
    Descheduled,
    /// All CPUs of the machine were in use: share.
    MachineCpu,
    /// The hypervisor gave the CPUs to others: share.
    Steal,
    /// Descriptors were nearly used up: share of the limit.
    Descriptors,
    /// Connections were opened while much of the local port range was in use: share of the range.
    Ports,
    /// Requests failed for the generator's own want of ports, descriptors, memory or files: share of all requests.
    OwnFailures,
    /// A note. Open model: arrivals waited because no connection was free; the server (or the limit of connections) is behind:
    /// how many waited.
    Backlog,
}

/// A shard's loop that works more than this queues by itself: at 0.9, answers wait for 4.5 times the loop's own work on
/// average (M/D/1: rho / 2(1 - rho)), and twice as long at 0.95.
pub const BUSY_SUSPECT: f64 = 0.90;

/// An open model that is this busy *and* late does not keep up: what it measures is itself.
pub const BUSY_INVALID: f64 = 0.98;

/// Lag matters once its p99 is more than this share of the median latency (and more than the pacing's tick, which was chosen).
pub const LAG_SHARE_SUSPECT: f64 = 0.10;

/// Beyond this lag the load is not the one that was asked for, however slow the server is.
pub const LAG_INVALID: Duration = Duration::from_millis(100);

/// More arrivals than this share never sent: the rate on the label is not the rate in the bottle.
pub const SHORTFALL_INVALID: f64 = 0.05;

/// Fewer arrivals than this may be cut off by the boundaries of ticks and seconds.
pub const SHORTFALL_COUNT_MIN: u64 = 10;

/// A stall of 10 ms delays 1 % of a second's answers, so it can move that second's p99 ...
pub const STALL_SUSPECT: Duration = Duration::from_millis(10);

/// ... and does when it is more than this share of it.
pub const STALL_SHARE_SUSPECT: f64 = 0.10;

/// A shard that wanted its core for this much longer than it had it shared the core with someone.
pub const DESCHEDULED_SUSPECT: f64 = 0.10;

/// With all CPUs in use, waking up takes as long as the scheduler likes, and no figure of ours shows it.
pub const MACHINE_CPU_SUSPECT: f64 = 0.95;

/// Stolen time is a stall that even the kernel does not see; 5 % is 50 ms of each second.
pub const STEAL_SUSPECT: f64 = 0.05;

/// So near to the limit the next burst of connections fails.
pub const DESCRIPTORS_SUSPECT: f64 = 0.95;

/// Beyond half of the range connect() searches for a free port: from 13 us to several ms near the end, measured.
pub const PORTS_SUSPECT: f64 = 0.50;

/// Any failure of our own is told; from this share of the requests on the failures are ours, not the server's.
pub const OWN_FAILURES_INVALID: f64 = 0.01;

/// A tenth of a second's arrivals in the queue: each waits 100 ms or more.
pub const BACKLOG_SHARE_NOTED: f64 = 0.10;

/// What touches fewer of a run's seconds than this cannot move the p99 it would be printed beside. The series still marks them.
pub const AFFECTED_SHARE_MIN: f64 = 0.01;

impl Verdict {
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
    last_ask: LastAsk,
}

/// Which seconds were judged.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    second_count: u32,
    last_idx: Option<u32>,
}

/// One kind's findings so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    second_count: u32,
    severity: Option<Status>,
    worst: f64,
    limit: f64,
}

/// The last second in which the schedule asked for arrivals, and how many then waited for a connection.
#[derive(Debug, Clone, Copy, Default)]
struct LastAsk {
    second_idx: u32,
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
            last_ask: LastAsk::default(),
        }
    }

    /// Judges one second and marks what impaired it.
    pub(crate) fn judge_second(&mut self, second_idx: u32, second: &mut SeriesPoint) {
        for finding in self.findings(second) {
            self.tallies[finding.kind as usize].add(&finding);
            second.warnings.push(finding.kind);
        }
        second.warnings.sort_unstable();
        self.judged.count(second_idx, second.wall);
        self.note_ask(second_idx, second);
    }

    /// The verdict on a run with these figures.
    pub(crate) fn verdict(&self, total: &Snapshot) -> Verdict {
        let second_count = self.judged.second_count.max(1);
        let per_second = KINDS.iter().filter_map(|&kind| {
            let tally = &self.tallies[kind as usize];
            let seconds_affected = tally.second_count.min(second_count);
            let is_enough = f64::from(seconds_affected) >= AFFECTED_SHARE_MIN * f64::from(second_count);
            let Tally { worst, limit, .. } = *tally;
            let severity = tally.severity.filter(|_| is_enough)?;
            Some(Reason {
                kind,
                severity,
                worst,
                limit,
                seconds_affected: Some(seconds_affected),
                seconds: second_count,
            })
        });
        let whole_run = [self.shortfall(total), own_failures(total)].into_iter().flatten();
        let whole_run = whole_run.map(|Finding { kind, severity, value, limit }| Reason {
            kind,
            severity,
            worst: value,
            limit,
            seconds_affected: None,
            seconds: second_count,
        });
        Verdict::new(per_second.chain(whole_run).collect())
    }

    fn findings(&self, second: &SeriesPoint) -> Vec<Finding> {
        let machine = second.machine.unwrap_or_default();
        let ports = if second.connections_opened > 0 { machine.port_fraction() } else { 0.0 };
        let lag = self.lag(second);
        let all = [
            busy(second, lag.is_some()),
            lag,
            stall(second),
            above(ReasonKind::Descheduled, second.descheduled_max, DESCHEDULED_SUSPECT),
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

    fn note_ask(&mut self, second_idx: u32, second: &SeriesPoint) {
        if second.asked == 0 || second_idx < self.last_ask.second_idx {
            return;
        }
        // A shard that reports its second late adds to what the others had waiting.
        let waiting_before = if second_idx == self.last_ask.second_idx { self.last_ask.waiting } else { 0 };
        self.last_ask = LastAsk { second_idx, waiting: waiting_before + second.arrivals_waiting };
    }

    /// Arrivals neither sent nor waiting for a connection when the schedule ended. Those sent after its end count as sent:
    /// their lag tells of them.
    fn shortfall(&self, total: &Snapshot) -> Option<Finding> {
        let asked = total.arrivals_asked;
        let missing = asked.saturating_sub(total.requests_started).saturating_sub(self.last_ask.waiting);
        let share = share(missing, asked);
        let is_short = missing > SHORTFALL_COUNT_MIN && share > SHORTFALL_INVALID;
        is_short.then_some(Finding {
            kind: ReasonKind::Shortfall,
            severity: Status::Invalid,
            value: share,
            limit: SHORTFALL_INVALID,
        })
    }
}

impl Judged {
    /// Counts a second once, even when a shard reports it late, and not the remnant at a run's end.
    fn count(&mut self, second_idx: u32, wall: Duration) {
        if self.last_idx < Some(second_idx) && wall >= WALL_MIN {
            self.second_count += 1;
        }
        self.last_idx = self.last_idx.max(Some(second_idx));
    }
}

impl Tally {
    fn add(&mut self, finding: &Finding) {
        self.second_count += 1;
        if self.severity < Some(finding.severity) {
            self.severity = Some(finding.severity);
            self.limit = finding.limit;
        }
        self.worst = self.worst.max(finding.value);
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
    let p99_s = second.latency.quantile(0.99).map_or(0.0, seconds);
    let limit = STALL_SUSPECT.as_secs_f64().max(STALL_SHARE_SUSPECT * p99_s);
    above(ReasonKind::Stall, second.stall_max.as_secs_f64(), limit)
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

/// One sentence with its numbers, lowercase and without a final period.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worst, limit) = (Quantity(self.kind, self.worst), Quantity(self.kind, self.limit));
        match self.kind {
            ReasonKind::Busy => write!(f, "a generator thread was {worst} busy"),
            ReasonKind::ScheduleLag => write!(f, "requests were sent late: lag p99 {worst}"),
            ReasonKind::Shortfall => write!(f, "{worst} of the arrivals asked for were never sent"),
            ReasonKind::Stall => write!(f, "a generator thread stalled for {worst}"),
            ReasonKind::Descheduled => {
                write!(f, "a generator thread was kept off its core for {worst} of the time")
            }
            ReasonKind::MachineCpu => write!(f, "the generator's machine was {worst} busy"),
            ReasonKind::Steal => write!(f, "the hypervisor took {worst} of the CPU time"),
            ReasonKind::Descriptors => write!(f, "{worst} of the file descriptors were in use"),
            ReasonKind::Ports => {
                write!(f, "{worst} of the local ports were in use while connections were opened")
            }
            ReasonKind::OwnFailures => {
                write!(f, "{worst} of the requests failed on the generator's own side")
            }
            ReasonKind::Backlog => write!(f, "{worst} arrivals waited for a free connection"),
        }?;
        if self.limit > 0.0 {
            write!(f, " (limit {limit})")?;
        }
        match self.seconds_affected {
            Some(affected) => write!(f, " in {affected} of {} seconds", self.seconds),
            None => Ok(()),
        }
    }
}

/// A value in the unit of its kind.
struct Quantity(ReasonKind, f64);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kind, value) = *self;
        match kind {
            ReasonKind::ScheduleLag | ReasonKind::Stall if value < 1.0 => write!(f, "{:.3} ms", value * 1e3),
            ReasonKind::ScheduleLag | ReasonKind::Stall => write!(f, "{value:.2} s"),
            ReasonKind::Backlog => write!(f, "{value:.0}"),
            ReasonKind::OwnFailures | ReasonKind::Shortfall => write!(f, "{:.2} %", value * 100.0),
            _ => write!(f, "{:.0} %", value * 100.0),
        }
    }
}

impl Reason {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self.kind {
            ReasonKind::Busy => {
                "use more threads or machines, or fewer connections; latencies contain the generator's own queue"
            }
            ReasonKind::ScheduleLag => "lower the rate, add threads or machines, or use a finer pacing",
            ReasonKind::Shortfall => "the generator cannot make this rate: add threads or machines",
            ReasonKind::Stall => {
                "give the generator cores of its own; latencies of that moment are the generator's"
            }
            ReasonKind::Descheduled => {
                "stop other programs on this machine, or use fewer threads than it has free cores"
            }
            ReasonKind::MachineCpu => "run the generator on a machine of its own, away from the target",
            ReasonKind::Steal => "use a machine whose CPUs are not shared with other guests",
            ReasonKind::Descriptors => {
                "raise the limit of open files (`ulimit -n`), or use fewer connections"
            }
            ReasonKind::Ports => "spread the connections over more source addresses (`--source`)",
            ReasonKind::OwnFailures => {
                "see the errors: raise `ulimit -n`, add source addresses, or make the body file readable"
            }
            ReasonKind::Backlog => {
                "the server was slower than the rate: that wait is part of the latencies; more connections (`-c`) may help"
            }
        }
    }
}

const KIND_COUNT: usize = KINDS.len();

const KINDS: [ReasonKind; 11] = [
    ReasonKind::Busy,
    ReasonKind::ScheduleLag,
    ReasonKind::Shortfall,
    ReasonKind::Stall,
    ReasonKind::Descheduled,
    ReasonKind::MachineCpu,
    ReasonKind::Steal,
    ReasonKind::Descriptors,
    ReasonKind::Ports,
    ReasonKind::OwnFailures,
    ReasonKind::Backlog,
];
