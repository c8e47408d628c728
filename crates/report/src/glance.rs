//! A run seen while it goes on: what the progress line and the live view need of it.

use std::time::Duration;

use squall_measure::{Histogram, RunRecorder, RunSetup, SeriesPoint, Share, Sketch};
use squall_plan::What;

use crate::summary::{Distribution, ErrorGroup, LoadKind, Micros};

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
    /// What is counted, in the singular: `request`, `handshake`, `connection`, `message`; `operation` for several of them.
    pub noun: &'static str,
    /// Those that ended well so far.
    pub ok: u64,
    /// Those that failed so far.
    pub failed: u64,
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
    /// Those that ended well so far.
    pub ok: u64,
    /// Those that failed so far.
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
        let counted = Counted::of(recorder);
        Self {
            name: recorder.setup().plan.name.clone(),
            phase: None,
            elapsed: recorder.elapsed(),
            goal: Goal::from(recorder.setup()),
            noun: counted.noun(recorder),
            ok: counted.ok(recorder),
            failed: total.failed(),
            latency_us: counted.latency(recorder),
            errors: total.failures.kinds().into_iter().map(ErrorGroup::from).collect(),
            kinds: kinds(recorder),
            now: recorder.last_second().map(|second| counted.now(second)),
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
        let (mut ok, mut failed, mut latency) = (0, 0, Histogram::new());
        for (_, row) in setup.rows.iter().zip(&recorder.total().rows).filter(|(key, _)| is_own(&key.load)) {
            ok += row.ok;
            failed += row.failed;
            latency.merge(&row.latency);
        }
        let shares = recorder.shares().shares().filter(|share| is_own(&share.load));
        let rates_per_s = rates_per_s(shares, recorder.elapsed());
        Self { kind, ok, failed, latency_us: Distribution::from(&latency), rates_per_s }
    }
}

/// What shares made together, per second. The newest second is left out: some machine may not have reported it yet.
fn rates_per_s<'a>(shares: impl Iterator<Item = &'a Share> + Clone, elapsed: Duration) -> Vec<u64> {
    let span_s =
        shares.clone().map(|share| share.series.seconds_per_point).max().unwrap_or(1).max(1) as usize;
    let mut counts = vec![0; (elapsed.as_secs() as usize / span_s).saturating_sub(1)];
    for share in shares {
        for (idx, point) in share.series.points.iter().enumerate() {
            let at_s = share.at_s as usize + idx * share.series.seconds_per_point as usize;
            if let Some(count) = counts.get_mut(at_s / span_s) {
                *count += point.ok + point.failed;
            }
        }
    }
    counts.into_iter().map(|count| count / span_s as u64).collect()
}

/// What a moment counts: where all loads open WebSockets, what is received on them, else what the loads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Operations,
    Messages,
}

impl Counted {
    fn of(recorder: &RunRecorder) -> Self {
        let loads = &recorder.setup().plan.loads;
        let is_websocket = loads.iter().all(|load| matches!(load.what, What::WebSocket(_)));
        if is_websocket && !loads.is_empty() { Self::Messages } else { Self::Operations }
    }

    fn noun(self, recorder: &RunRecorder) -> &'static str {
        if self == Self::Messages { "message" } else { crate::summary::noun(&recorder.setup().plan) }
    }

    fn ok(self, recorder: &RunRecorder) -> u64 {
        let total = recorder.total();
        match self {
            Self::Operations => total.ok(),
            Self::Messages => total.websockets.as_deref().map_or(0, |made| made.messages_received),
        }
    }

    fn latency(self, recorder: &RunRecorder) -> Distribution {
        let total = recorder.total();
        match (self, total.websockets.as_deref()) {
            (Self::Messages, Some(made)) => Distribution::from(&made.latency),
            (Self::Messages, None) => Distribution::from(&Histogram::new()),
            (Self::Operations, _) => Distribution::from(total.latency().as_ref()),
        }
    }

    fn rate_per_s(self, point: &SeriesPoint) -> f64 {
        let seconds = point.wall.as_secs_f64();
        match self {
            Self::Operations => point.rate_per_s(),
            Self::Messages if seconds > 0.0 => point.received as f64 / seconds,
            Self::Messages => 0.0,
        }
    }

    fn times(self, point: &SeriesPoint) -> &Sketch {
        if self == Self::Messages { &point.received_latency } else { &point.latency }
    }

    fn now(self, second: &SeriesPoint) -> Now {
        Now {
            rate_per_s: self.rate_per_s(second),
            latency_us: Distribution::from(self.times(second)),
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
    /// Requests that ended.
    pub fn settled(&self) -> u64 {
        self.ok + self.failed
    }

    /// How much of the run is behind, 0 to 1: by whichever end is nearer; 0 when none is known.
    pub fn share_done(&self) -> f64 {
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 1.0 };
        let by_time =
            self.goal.duration.map_or(0.0, |whole| share(self.elapsed.as_secs_f64(), whole.as_secs_f64()));
        let by_count = self.goal.count.map_or(0.0, |whole| share(self.settled() as f64, whole as f64));
        by_time.max(by_count)
    }
}
