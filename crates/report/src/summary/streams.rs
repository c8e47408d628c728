//! The part of the summary that only streams of events have.

use serde::Serialize;
use squall_measure::RunRecord;

use super::{Distribution, rate_per_s};

/// Events of streamed responses. Counts of streams, their failures and their whole times are those of every load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Streams whose response head came.
    pub opened: u64,
    /// Events received.
    pub events: u64,
    /// Per second of `duration_s`.
    pub events_per_s: f64,
    /// Bytes of their data.
    pub event_bytes: u64,
    /// Per second of `duration_s`.
    pub event_bytes_per_s: f64,
    /// Comments, with which servers keep streams alive.
    pub comments: u64,
    /// From the start of a stream to its first event; in the open model from the intended start.
    pub first_event_us: Distribution,
    /// Between two events of a stream.
    pub event_gap_us: Distribution,
    /// Streams that failed after their head, or ended before their last event.
    pub ended_early: u64,
    /// Streams that were open at the end of the load, and closed then.
    pub closed_by_us: u64,
    /// Streams opened again after one had ended.
    pub reconnects: u64,
    /// Of the streams that ended: how many met all objectives. Null without objectives.
    pub good: Option<u64>,
    /// Of all streams that ended. Null without objectives.
    pub judged: Option<u64>,
    /// Good streams per second of `duration_s`. Null without objectives.
    pub goodput_per_s: Option<f64>,
}

/// The streams of a run; `None` where no load was made of them.
pub(super) fn streams(record: &RunRecord) -> Option<StreamSummary> {
    let made = record.total.streams.as_deref()?;
    let duration_s = record.duration.as_secs_f64();
    let per_s = |count: u64| rate_per_s(count, duration_s);
    let is_judged = made.judged > 0;
    Some(StreamSummary {
        opened: made.opened,
        events: made.events,
        events_per_s: per_s(made.events),
        event_bytes: made.event_bytes,
        event_bytes_per_s: per_s(made.event_bytes),
        comments: made.comments,
        first_event_us: Distribution::from(&made.first_event),
        event_gap_us: Distribution::from(&made.event_gap),
        ended_early: made.ended_early,
        closed_by_us: made.closed_by_us,
        reconnects: made.reconnects,
        good: is_judged.then_some(made.good),
        judged: is_judged.then_some(made.judged),
        goodput_per_s: is_judged.then(|| per_s(made.good)),
    })
}
