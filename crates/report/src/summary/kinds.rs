//! What a run made, by kind: requests, handshakes and idle connections are different things, and no figure adds them up.

use serde::Serialize;
use squall_measure::{Histogram, PartKind, Row, RowKey, RunRecord};
use squall_plan::{Load, Plan, What, When};

use super::parts::length_s;
use super::{Distribution, Span, rate_per_s};

/// What a load makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// HTTP requests, of a plan, a script or a recording.
    Requests,
    /// TLS handshakes, or connects where no TLS is spoken.
    Handshakes,
    /// Connections that stay open.
    IdleConnections,
    /// Responses that are streams of events.
    Streams,
    /// Connections that stay open as WebSockets.
    #[serde(rename = "websockets")]
    WebSockets,
}

/// What all loads of one kind made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindTotals {
    /// What it is.
    pub kind: LoadKind,
    /// The loads that made it, in the plan's order.
    pub loads: Vec<String>,
    /// Time in which any of them was measured, in seconds.
    pub duration_s: f64,
    /// Those that ended well: whole responses, whole handshakes, connections that were opened.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those cut off by the run's end.
    pub interrupted: u64,
    /// Those that ended well or failed, per second of `duration_s`.
    pub rate_per_s: f64,
    /// What the schedules of its open-model loads asked for; null where it has none.
    pub asked: Option<u64>,
    /// Latencies of those that ended well.
    pub latency_us: Distribution,
}

impl LoadKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::Requests, Self::Handshakes, Self::IdleConnections, Self::Streams, Self::WebSockets];

    /// What a load of a plan makes.
    pub fn of(load: &Load) -> Self {
        match load.what {
            What::Handshake(_) => Self::Handshakes,
            What::Idle(_) => Self::IdleConnections,
            What::Stream(_) => Self::Streams,
            What::WebSocket(_) => Self::WebSockets,
            _ => Self::Requests,
        }
    }

    /// What the load of that name makes; in a run that was merged of several its name follows that of its run. `None` for a foreign
    /// tool's.
    pub(crate) fn of_named(plan: &Plan, name: &str) -> Option<Self> {
        let is_named = |load: &&Load| {
            name == load.name || name.strip_suffix(&load.name).is_some_and(|run| run.ends_with(": "))
        };
        plan.loads.iter().find(is_named).map(Self::of)
    }

    /// One of them, in a word.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Requests => "request",
            Self::Handshakes => "handshake",
            Self::IdleConnections | Self::WebSockets => "connection",
            Self::Streams => "stream",
        }
    }

    /// In the plural, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Handshakes => "handshakes",
            Self::IdleConnections => "idle connections",
            Self::Streams => "streams",
            Self::WebSockets => "WebSockets",
        }
    }
}

/// The totals of each kind of load that the plan has.
pub(super) fn kinds(record: &RunRecord) -> Vec<KindTotals> {
    let present = |kind: &LoadKind| record.plan.loads.iter().any(|load| LoadKind::of(load) == *kind);
    let mut kinds: Vec<LoadKind> = LoadKind::ALL.into_iter().filter(present).collect();
    let is_only = kinds.len() == 1;
    kinds.drain(..).map(|kind| of_kind(record, kind, is_only)).collect()
}

fn of_kind(record: &RunRecord, kind: LoadKind, is_only: bool) -> KindTotals {
    let loads = || record.plan.loads.iter().filter(|load| LoadKind::of(load) == kind);
    let is_own =
        |(key, _): &(&RowKey, &Row)| is_only || LoadKind::of_named(&record.plan, &key.load) == Some(kind);
    let rows: Vec<&Row> =
        record.rows.iter().zip(&record.total.rows).filter(is_own).map(|(_, row)| row).collect();
    let sum = |of: fn(&Row) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let mut latency = Histogram::new();
    rows.iter().for_each(|row| latency.merge(&row.latency));
    let duration_s = duration_s(record, kind, is_only);
    let (ok, failed) = (sum(|row| row.ok), sum(|row| row.failed));
    KindTotals {
        kind,
        loads: loads().map(|load| load.name.clone()).collect(),
        duration_s,
        ok,
        failed,
        interrupted: sum(|row| row.interrupted),
        rate_per_s: rate_per_s(ok + failed, duration_s),
        asked: loads()
            .any(|load| matches!(load.when, When::Open { .. }))
            .then(|| asked(record, kind, is_only)),
        latency_us: Distribution::from(&latency),
    }
}

/// The loads of a kind among the parts of the run.
pub(crate) fn parts_of(record: &RunRecord, kind: LoadKind) -> impl Iterator<Item = &squall_measure::Part> {
    record.parts.iter().filter(move |part| {
        part.kind == PartKind::Load && LoadKind::of_named(&record.plan, &part.name) == Some(kind)
    })
}

fn duration_s(record: &RunRecord, kind: LoadKind, is_only: bool) -> f64 {
    let span = |part: &squall_measure::Part| Span {
        from_s: part.at_s,
        until_s: part.at_s + part.duration.as_secs_f64(),
        count: 0,
    };
    let spans: Vec<Span> = parts_of(record, kind).map(span).collect();
    if is_only || spans.is_empty() { record.duration.as_secs_f64() } else { length_s(&spans) }
}

fn asked(record: &RunRecord, kind: LoadKind, is_only: bool) -> u64 {
    if is_only {
        return record.total.arrivals_asked;
    }
    parts_of(record, kind).map(|part| part.total.arrivals_asked).sum()
}

#[cfg(test)]
mod tests {
    use crate::tests::mixed;

    use super::*;

    #[test]
    fn kinds_are_never_added_up() {
        let kinds = kinds(&mixed::run());
        let counts: Vec<(LoadKind, u64, u64)> =
            kinds.iter().map(|one| (one.kind, one.ok, one.failed)).collect();
        assert_eq!(
            counts,
            [
                (LoadKind::Requests, 600, 0),
                (LoadKind::Handshakes, 120, 6),
                (LoadKind::IdleConnections, 50, 0)
            ]
        );
        assert_eq!(kinds[0].loads, ["alone", "with handshakes"]);
        assert_eq!((kinds[0].duration_s, kinds[0].rate_per_s), (6.0, 100.0), "in its own time");
        assert_eq!((kinds[1].duration_s, kinds[1].rate_per_s), (3.0, 42.0));
    }

    #[test]
    fn loads_of_merged_runs_are_known_by_their_own_name() {
        let plan = mixed::run().plan;
        for (name, kind) in [
            ("alone", Some(LoadKind::Requests)),
            ("monday: handshakes", Some(LoadKind::Handshakes)),
            ("more handshakes", None),
        ] {
            assert_eq!(LoadKind::of_named(&plan, name), kind, "{name}");
        }
    }
}
