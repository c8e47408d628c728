//! A run seen while it goes on: what the progress line and the live view need of it.

use std::time::Duration;

use squall_measure::{Counted, Histogram, RunRecorder, RunSetup, SeriesPoint, Share};
use squall_plan::{Load, Plan};

use crate::summary::{Distribution, ErrorGroup, LoadKind, Micros};
use crate::units;

/// A run at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    /// The plan's name.
    pub name: String,
    /// What else is going on, such as the step of a plan.
    pub phase: Option<String>,
    /// Time since the start of the run, warm-up included.
    pub elapsed: Duration,
    /// Where it will end.
    pub goal: Goal,
    /// What is counted, in the singular: `request`, `handshake`, `connection`, `message`, `event`; `operation` for several of them.
    pub noun: &'static str,
    /// Those that ended well, or came, so far.
    pub ok: u64,
    /// Requests, connections or streams that failed so far.
    pub failed: u64,
    /// Those that ended in either way: what the goal counts.
    pub settled: u64,
    /// Of streams: those that have begun and not ended.
    pub streams_open: Option<u64>,
    /// Latencies of all successful requests so far.
    pub latency_us: Distribution,
    /// Failures so far, the most frequent first.
    pub errors: Vec<ErrorGroup>,
    /// Where its loads make different things: each of them, as no sum of them means anything. Empty where all make the same.
    pub kinds: Vec<KindGlance>,
    /// The last whole second, in which nothing was done while a plan pauses; `None` within the first.
    pub now: Option<Now>,
    /// How many ended per second over time, the newest last.
    pub rates_per_s: Vec<u64>,
    /// 99th percentile of latency over time in microseconds, the newest last; of the last few minutes.
    pub p99_us: Vec<u64>,
}

/// One of the different things that a run makes, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct KindGlance {
    /// What it is.
    pub kind: LoadKind,
    /// What is counted of it.
    pub counted: Counted,
    /// Those that ended well, or came, so far.
    pub ok: u64,
    /// Requests, connections or streams that failed so far.
    pub failed: u64,
    /// Latencies of those that ended well so far.
    pub latency_us: Distribution,
    /// How many ended per second over time, the newest last.
    pub rates_per_s: Vec<u64>,
}

/// A machine of a fleet at one moment.
#[derive(Debug, Clone, Copy)]
pub struct MachineGlance<'a> {
    /// The name that the plan gives it.
    pub name: &'a str,
    /// Its figures so far.
    pub recorder: &'a RunRecorder,
    /// Why it does no more, where it does not.
    pub problem: Option<&'a str>,
}

impl<'a> MachineGlance<'a> {
    /// A machine as it is now.
    pub fn new(name: &'a str, recorder: &'a RunRecorder, problem: Option<&'a str>) -> Self {
        Self { name, recorder, problem }
    }
}

/// What a plan says about its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Goal {
    /// How long it takes, pauses between steps included, when all its loads have an end in time.
    pub duration: Option<Duration>,
    /// Requests of all its loads, when all of them have a number.
    pub count: Option<u64>,
}

/// The last whole second.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// Requests per second that ended well or failed.
    pub rate_per_s: f64,
    /// Latencies of successful requests.
    pub latency_us: Distribution,
    /// Connections open.
    pub connections_open: u64,
    /// Open model: requests waiting for a connection.
    pub arrivals_waiting: u64,
    /// Open model: how late requests were sent although a connection was free, 99th percentile.
    pub schedule_lag_us_p99: Option<Micros>,
    /// Share of its time in which the busiest event loop was not waiting, 0 to 1.
    pub busy: f64,
}

impl From<&RunRecorder> for Glance {
    fn from(recorder: &RunRecorder) -> Self {
        let total = recorder.total();
        let points = &recorder.series().points;
        let plan = &recorder.setup().plan;
        let counted = Counted::of(&plan.loads);
        Self {
            name: plan.name.clone(),
            phase: None,
            elapsed: recorder.elapsed(),
            goal: Goal::from(recorder.setup()),
            noun: noun(counted, plan),
            ok: counted.ok(total),
            failed: total.failed(),
            settled: total.ok() + total.failed(),
            streams_open: (counted == Counted::Events)
                .then(|| total.requests_started.saturating_sub(total.settled())),
            latency_us: Distribution::from(counted.latency(total).as_ref()),
            errors: total.failures.kinds().into_iter().map(ErrorGroup::from).collect(),
            kinds: kinds(recorder),
            now: recorder.last_second().map(|second| Now::new(counted, second)),
            rates_per_s: points.iter().map(|point| counted.rate_per_s(point).round() as u64).collect(),
            p99_us: points[points.len().saturating_sub(P99_POINT_COUNT)..]
                .iter()
                .map(|point| counted.times(point).quantile(0.99).unwrap_or(0) / 1000)
                .collect(),
        }
    }
}

/// The kinds of a plan that has several.
fn kinds(recorder: &RunRecorder) -> Vec<KindGlance> {
    let loads = &recorder.setup().plan.loads;
    let is_present = |kind: &LoadKind| loads.iter().any(|load| LoadKind::of(load) == *kind);
    let kinds: Vec<LoadKind> = LoadKind::ALL.into_iter().filter(is_present).collect();
    if kinds.len() < 2 {
        return Vec::new();
    }
    kinds.into_iter().map(|kind| KindGlance::new(recorder, kind)).collect()
}

impl KindGlance {
    fn new(recorder: &RunRecorder, kind: LoadKind) -> Self {
        let setup = recorder.setup();
        let is_own = |load: &str| LoadKind::of_named(&setup.plan, load) == Some(kind);
        let shares = recorder.shares().shares().filter(|share| is_own(&share.load));
        let counted = Counted::of(setup.plan.loads.iter().filter(|load: &&Load| LoadKind::of(load) == kind));
        let rates_per_s = rates_per_s(counted, shares, recorder.elapsed());
        let (mut ok, mut failed, mut latency) = (0, 0, Histogram::new());
        for (_, row) in setup.rows.iter().zip(&recorder.total().rows).filter(|(key, _)| is_own(&key.load)) {
            ok += row.ok;
            failed += row.failed;
            latency.merge(&row.latency);
        }
        if counted != Counted::Operations {
            ok = counted.ok(recorder.total());
            latency = counted.latency(recorder.total()).into_owned();
        }
        Self { kind, counted, ok, failed, latency_us: Distribution::from(&latency), rates_per_s }
    }

    /// What is counted of it, in the plural.
    pub(crate) fn words(&self) -> &'static str {
        match self.counted {
            Counted::Operations => self.kind.words(),
            Counted::Messages => "messages",
            Counted::Events => "events",
        }
    }

    /// Whose times are shown, in a word or two.
    pub(crate) fn times_words(&self) -> String {
        match self.counted {
            Counted::Operations => format!("{}s", self.kind.noun()),
            Counted::Messages => "messages".to_owned(),
            Counted::Events => "first event".to_owned(),
        }
    }

    /// How many failed; of what, where that is not what is counted.
    pub(crate) fn failed_words(&self) -> String {
        match self.counted {
            Counted::Operations => units::count(self.failed),
            _ => units::counted(self.failed, self.kind.noun()),
        }
    }
}

/// What shares made together, per second. The newest second is left out: some machine may not have reported it yet.
fn rates_per_s<'a>(
    counted: Counted,
    shares: impl Iterator<Item = &'a Share> + Clone,
    elapsed: Duration,
) -> Vec<u64> {
    let span_s =
        shares.clone().map(|share| share.series.seconds_per_point).max().unwrap_or(1).max(1) as usize;
    let mut counts = vec![0; (elapsed.as_secs() as usize / span_s).saturating_sub(1)];
    for share in shares {
        for (idx, point) in share.series.points.iter().enumerate() {
            let at_s = share.at_s as usize + idx * share.series.seconds_per_point as usize;
            if let Some(count) = counts.get_mut(at_s / span_s) {
                *count += counted.ended_in(point);
            }
        }
    }
    counts.into_iter().map(|count| count / span_s as u64).collect()
}

/// What is counted, in the singular.
fn noun(counted: Counted, plan: &Plan) -> &'static str {
    match counted {
        Counted::Operations => crate::summary::noun(plan),
        Counted::Messages => "message",
        Counted::Events => "event",
    }
}

impl Now {
    fn new(counted: Counted, second: &SeriesPoint) -> Self {
        Self {
            rate_per_s: counted.rate_per_s(second),
            latency_us: Distribution::from(counted.times(second)),
            connections_open: second.connections_open,
            arrivals_waiting: second.arrivals_waiting,
            schedule_lag_us_p99: second.schedule_lag.quantile(0.99).map(Micros),
            busy: second.busy_max,
        }
    }
}

/// As many as the widest terminal shows; the view asks ten times a second.
const P99_POINT_COUNT: usize = 300;

impl From<&RunSetup> for Goal {
    fn from(setup: &RunSetup) -> Self {
        let counts: Option<Vec<u64>> = setup.plan.loads.iter().map(|load| load.stop.count).collect();
        Self { duration: setup.length, count: counts.map(|all| all.iter().sum()) }
    }
}

impl Glance {
    /// What the latencies are.
    pub(crate) fn latency_words(&self) -> &'static str {
        if self.noun == "event" { "time to the first event" } else { "latency" }
    }

    /// How much of the run is behind, 0 to 1: by whichever end is nearer; 0 when none is known.
    pub fn share_done(&self) -> f64 {
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 1.0 };
        let by_time =
            self.goal.duration.map_or(0.0, |whole| share(self.elapsed.as_secs_f64(), whole.as_secs_f64()));
        let by_count = self.goal.count.map_or(0.0, |whole| share(self.settled as f64, whole as f64));
        by_time.max(by_count)
    }
}
