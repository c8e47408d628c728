//! A run over time: one point per second, bounded by merging neighbours when the run grows long.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use squall_plan::limits::SERIES_POINT_COUNT_MAX;

use crate::{
    Cause, Failures, Histogram, MachineSecond, PathSums, PhaseHistograms, Quic, ReasonKind, Sketch, Snapshot,
};

/// Points in time order, each `seconds_per_point` long; the first begins with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a point in seconds: 1, and doubled whenever there would be more than [`SERIES_POINT_COUNT_MAX`] points.
    pub seconds_per_point: u32,
    /// Seconds in which nothing was reported are empty points.
    pub points: Vec<SeriesPoint>,
}

/// The figures of a second, or of a few seconds together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// How long it was measured: the longest span of any shard in each second, summed over seconds.
    pub wall: Duration,
    /// Requests begun.
    pub started: u64,
    /// Open model: arrivals that the schedule asked for.
    pub asked: u64,
    /// Of these, those sent.
    #[serde(default)]
    pub arrivals_sent: u64,
    /// Of those asked for, those of machines that were lost before they could send them.
    #[serde(default)]
    pub arrivals_lost: u64,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests cut off by the run's end.
    pub interrupted: u64,
    /// TCP connections opened.
    pub connections_opened: u64,
    /// Bytes written to sockets, below TLS.
    pub wire_bytes_sent: u64,
    /// Bytes read from sockets, below TLS.
    pub wire_bytes_received: u64,
    /// Latency of successful requests.
    pub latency: Sketch,
    /// Open model: how late arrivals were sent although a connection was free.
    pub schedule_lag: Sketch,
    /// Connections open at the second's end; of several seconds the most.
    pub connections_open: u64,
    /// Open model: arrivals waiting for a connection at the second's end; of several seconds the most.
    pub arrivals_waiting: u64,
    /// Share of its time that the busiest shard worked: 0 to 1; of several seconds the most.
    pub busy_max: f64,
    /// Share of its time that a shard wanted to work but did not get its core: 0 to 1; the worst of shards and seconds.
    pub descheduled_max: f64,
    /// Longest turn of a loop.
    pub stall_max: Duration,
    /// The machine; of several seconds the worst figures. `None` when it was not read.
    pub machine: Option<MachineSecond>,
    /// What impaired the measurement in this time, in the order of [`ReasonKind`].
    pub warnings: Vec<ReasonKind>,
    /// Failures by cause, in the order of [`Cause`]; causes that did not occur are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<(Cause, u64)>,
    /// Phases of successful requests, each summed over all of them.
    #[serde(default)]
    pub phases: PhaseSums,
    /// Messages on WebSockets, or events of streams, that came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received: u64,
    /// Latency of messages, or time to the first event of streams.
    #[serde(default, skip_serializing_if = "Sketch::is_empty")]
    pub received_latency: Sketch,
    /// Between two events of a stream.
    #[serde(default, skip_serializing_if = "Sketch::is_empty")]
    pub event_gap: Sketch,
    /// Kept connections that ended and were not closed by us, and streams that ended early.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disconnects: u64,
    /// Kept connections and streams that were opened again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reconnects: u64,
    /// What connections of QUIC did; `None` where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicPoint>,
}

/// What connections of QUIC did in a second, or in a few.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicPoint {
    /// Packets that were declared lost.
    pub packets_lost: u64,
    /// Open connections at the end of each second.
    pub paths: PathSums,
}

/// Phases of successful requests, each summed over all of them: divided by their number it is the phase's share of the mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSums {
    /// From the intended start until a connection was there to use.
    pub blocked: Duration,
    /// TCP connects.
    pub connecting: Duration,
    /// TLS handshakes.
    pub tls_handshaking: Duration,
    /// Writing requests.
    pub sending: Duration,
    /// From the last byte written to the first byte read.
    pub waiting: Duration,
    /// From the first byte read to the last.
    pub receiving: Duration,
}

impl Series {
    /// No points yet.
    pub fn new() -> Self {
        Self { seconds_per_point: 1, points: Vec::new() }
    }

    /// The same run in at most `point_count_max` points (at least one), by merging neighbours pairwise.
    pub fn coarsened(&self, point_count_max: usize) -> Self {
        let mut series = self.clone();
        while series.points.len() > point_count_max.max(1) {
            series.halve();
        }
        series
    }

    /// All of it as one point.
    pub fn total(&self) -> SeriesPoint {
        let mut total = SeriesPoint::default();
        for point in &self.points {
            total.join(point);
            total.wall += point.wall;
        }
        total
    }

    /// The same run in points of at least so many seconds.
    pub(crate) fn with_points_of(mut self, seconds: u32) -> Self {
        while self.seconds_per_point < seconds {
            self.halve();
        }
        self
    }

    /// Lays points over this series' own from `at_idx` on, as of another shard of the same time.
    pub(crate) fn lay(&mut self, points: &[SeriesPoint], at_idx: usize) {
        let point_count = self.points.len().max(at_idx + points.len());
        self.points.resize_with(point_count, SeriesPoint::default);
        for (mine, theirs) in self.points[at_idx..].iter_mut().zip(points) {
            mine.stand_beside(theirs);
        }
    }

    /// Adds a second. What is reported of the same second later does not make it longer.
    pub(crate) fn add(&mut self, second_idx: u32, second: &SeriesPoint) {
        self.make_room(second_idx);
        let is_one_second = self.seconds_per_point == 1;
        let point = self.point_mut(second_idx);
        point.join(second);
        point.wall = if is_one_second { point.wall.max(second.wall) } else { point.wall + second.wall };
    }

    /// Adds what a load did at its very end to the second before it, if that is what this second is; whether it was.
    pub(crate) fn add_remnant(&mut self, second_idx: u32, second: &SeriesPoint) -> bool {
        let Some(before_idx) = second_idx.checked_sub(1).filter(|_| second.wall < REMNANT_MAX) else {
            return false;
        };
        let before = self.points.get((before_idx / self.seconds_per_point) as usize);
        let is_remnant = before.is_some_and(|before| before.wall >= WALL_MIN);
        if is_remnant {
            // Of so short a time the machine's figures are chance.
            self.add(before_idx, &SeriesPoint { machine: None, ..second.clone() });
        }
        is_remnant
    }

    /// The point that a second belongs to; it is made when it is not there yet.
    fn point_mut(&mut self, second_idx: u32) -> &mut SeriesPoint {
        let point_idx = (second_idx / self.seconds_per_point) as usize;
        let point_count = self.points.len().max(point_idx + 1);
        self.points.resize_with(point_count, SeriesPoint::default);
        &mut self.points[point_idx]
    }

    fn make_room(&mut self, second_idx: u32) {
        while (second_idx / self.seconds_per_point) as usize >= SERIES_POINT_COUNT_MAX {
            self.halve();
        }
    }

    /// Merges neighbours pairwise.
    fn halve(&mut self) {
        let mut points = std::mem::take(&mut self.points).into_iter();
        while let Some(mut point) = points.next() {
            if let Some(next) = points.next() {
                point.join(&next);
                point.wall += next.wall;
            }
            self.points.push(point);
        }
        self.seconds_per_point *= 2;
    }
}

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl SeriesPoint {
    /// Requests that ended, well or not, per second; 0 when nothing was measured.
    pub fn rate_per_s(&self) -> f64 {
        let seconds = self.wall.as_secs_f64();
        if seconds > 0.0 { (self.ok + self.failed) as f64 / seconds } else { 0.0 }
    }

    /// Adds what one shard did in this second.
    pub(crate) fn absorb(&mut self, snapshot: &Snapshot) {
        let generator = &snapshot.generator;
        self.wall = self.wall.max(generator.wall);
        self.add_counts(&Self {
            started: snapshot.requests_started,
            asked: snapshot.arrivals_asked,
            arrivals_sent: snapshot.arrivals_sent,
            arrivals_lost: snapshot.arrivals_lost,
            ok: snapshot.ok(),
            failed: snapshot.failed(),
            interrupted: snapshot.interrupted(),
            connections_opened: snapshot.connections_opened,
            wire_bytes_sent: snapshot.wire_bytes_sent,
            wire_bytes_received: snapshot.wire_bytes_received,
            latency: Sketch::from(snapshot.latency().as_ref()),
            schedule_lag: Sketch::from(&generator.schedule_lag),
            busy_max: share_of_time(generator.busy, generator.wall),
            descheduled_max: share_of_time(generator.busy.saturating_sub(generator.cpu), generator.wall),
            stall_max: generator.stall_max,
            failures: by_cause(&snapshot.failures),
            phases: PhaseSums::from(&snapshot.phases),
            quic: snapshot.quic.as_deref().map(QuicPoint::from),
            ..Self::default()
        });
        self.add_received(snapshot);
        self.connections_open += generator.connections_open;
        self.arrivals_waiting += generator.arrivals_waiting;
    }

    /// Adds what came on streams and WebSockets, and how often they ended and were opened again.
    pub fn add_received(&mut self, snapshot: &Snapshot) {
        if let Some(kept) = snapshot.sessions.as_deref().map(|sessions| &sessions.kept) {
            self.disconnects += kept.lost();
            self.reconnects += kept.reopened;
        }
        if let Some(streams) = snapshot.streams.as_deref() {
            self.event_gap.merge(&Sketch::from(&streams.event_gap));
            self.disconnects += streams.ended_early;
            self.reconnects += streams.reconnects;
        }
        let streams = snapshot.streams.as_deref().map(|made| (made.events, &made.first_event));
        let messages = snapshot.websockets.as_deref().map(|made| (made.messages_received, &made.latency));
        for (count, times) in streams.into_iter().chain(messages) {
            self.received += count;
            self.received_latency.merge(&Sketch::from(times));
        }
    }

    /// Adds what another run did in the same time: states add up as well.
    fn stand_beside(&mut self, other: &Self) {
        let connections_open = self.connections_open + other.connections_open;
        let arrivals_waiting = self.arrivals_waiting + other.arrivals_waiting;
        self.join(other);
        self.wall = self.wall.max(other.wall);
        (self.connections_open, self.arrivals_waiting) = (connections_open, arrivals_waiting);
    }

    /// Joins a later or earlier point, or one that was reported late: counts add up, of states the worse stays. Whether it
    /// becomes longer the caller knows.
    fn join(&mut self, other: &Self) {
        self.add_counts(other);
        self.connections_open = self.connections_open.max(other.connections_open);
        self.arrivals_waiting = self.arrivals_waiting.max(other.arrivals_waiting);
        match (&mut self.machine, &other.machine) {
            (Some(mine), Some(theirs)) => mine.join(theirs),
            (mine, theirs) => *mine = mine.or(*theirs),
        }
        self.warnings.extend(&other.warnings);
        self.warnings.sort_unstable();
        self.warnings.dedup();
    }

    /// What adds up in the same way over shards and over time.
    fn add_counts(&mut self, other: &Self) {
        self.started += other.started;
        self.asked += other.asked;
        self.arrivals_sent += other.arrivals_sent;
        self.arrivals_lost += other.arrivals_lost;
        self.ok += other.ok;
        self.failed += other.failed;
        self.interrupted += other.interrupted;
        self.connections_opened += other.connections_opened;
        self.wire_bytes_sent += other.wire_bytes_sent;
        self.wire_bytes_received += other.wire_bytes_received;
        self.latency.merge(&other.latency);
        self.schedule_lag.merge(&other.schedule_lag);
        self.busy_max = self.busy_max.max(other.busy_max);
        self.descheduled_max = self.descheduled_max.max(other.descheduled_max);
        self.stall_max = self.stall_max.max(other.stall_max);
        add_failures(&mut self.failures, &other.failures);
        self.phases.add(&other.phases);
        self.received += other.received;
        if !other.received_latency.is_empty() {
            self.received_latency.merge(&other.received_latency);
        }
        if !other.event_gap.is_empty() {
            self.event_gap.merge(&other.event_gap);
        }
        self.disconnects += other.disconnects;
        self.reconnects += other.reconnects;
        if let Some(theirs) = &other.quic {
            self.quic.get_or_insert_default().add(theirs);
        }
    }
}

impl QuicPoint {
    fn add(&mut self, other: &Self) {
        self.packets_lost += other.packets_lost;
        self.paths.merge(&other.paths);
    }
}

impl From<&Quic> for QuicPoint {
    fn from(quic: &Quic) -> Self {
        Self { packets_lost: quic.packets_lost, paths: quic.paths }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl PhaseSums {
    fn add(&mut self, other: &Self) {
        self.blocked += other.blocked;
        self.connecting += other.connecting;
        self.tls_handshaking += other.tls_handshaking;
        self.sending += other.sending;
        self.waiting += other.waiting;
        self.receiving += other.receiving;
    }
}

impl From<&PhaseHistograms> for PhaseSums {
    fn from(phases: &PhaseHistograms) -> Self {
        let sum = |times: &Histogram| Duration::from_nanos(u64::try_from(times.sum_ns()).unwrap_or(u64::MAX));
        Self {
            blocked: sum(&phases.blocked),
            connecting: sum(&phases.connecting),
            tls_handshaking: sum(&phases.tls_handshaking),
            sending: sum(&phases.sending),
            waiting: sum(&phases.waiting),
            receiving: sum(&phases.receiving),
        }
    }
}

/// Nothing is allocated where nothing failed.
fn by_cause(failures: &Failures) -> Vec<(Cause, u64)> {
    let mut by_cause = Vec::new();
    if failures.total() > 0 {
        failures.kinds().iter().for_each(|kind| add_failures(&mut by_cause, &[(kind.cause, kind.count)]));
    }
    by_cause
}

fn add_failures(mine: &mut Vec<(Cause, u64)>, theirs: &[(Cause, u64)]) {
    for &(cause, count) in theirs {
        match mine.binary_search_by_key(&cause, |&(cause, _)| cause) {
            Ok(idx) => mine[idx].1 += count,
            Err(idx) => mine.insert(idx, (cause, count)),
        }
    }
}

/// `part` of `wall`, at most 1; 0 when the span is too short to tell.
fn share_of_time(part: Duration, wall: Duration) -> f64 {
    if wall < WALL_MIN { 0.0 } else { (part.as_secs_f64() / wall.as_secs_f64()).min(1.0) }
}

/// Shares of spans shorter than this are chance: at a run's end a shard's last span may be one turn of its loop.
pub(crate) const WALL_MIN: Duration = Duration::from_millis(200);

/// Answers that came so soon after a second's end belong to what was done in it: as a point of their own their rate would be chance.
const REMNANT_MAX: Duration = Duration::from_millis(10);
