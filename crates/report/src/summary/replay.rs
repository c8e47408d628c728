//! The part of the summary that only the replay of recorded traffic has: how true it was, and what the server answered differently.

use serde::Serialize;
use squall_measure::{LearnedValue, RunRecord};

use super::Distribution;

/// The replay of recorded traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplaySummary {
    /// Requests that started within 2 ms of their time.
    pub on_time: u64,
    /// Requests that started later.
    pub late: u64,
    /// Requests whose time had come, but that were never sent because the run ended.
    pub skipped: u64,
    /// Records that could not be read from the recording.
    pub unreadable: u64,
    /// How late requests started.
    pub lateness_us: Distribution,
    /// Requests in which a live value took the place of a recorded one.
    pub corrected: u64,
    /// Responses compared with the recorded ones.
    pub compared: u64,
    /// Of these, those that were the same.
    pub same: u64,
    /// Differences by kind, the most frequent first.
    pub differences: Vec<ReplayDifference>,
    /// Values of responses that came back in later requests of the recording.
    pub learned: Vec<LearnedValue>,
    /// Records that were looked through to learn them, where those were not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_through: Option<u64>,
}

/// Responses that differed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Method and URL pattern.
    pub request: String,
    /// Recorded status.
    pub recorded_status: u16,
    /// Live status; the same where the bodies differ.
    pub live_status: u16,
    /// How many.
    pub count: u64,
}

/// The replay of a run; `None` where nothing was replayed.
pub(super) fn replay(record: &RunRecord) -> Option<ReplaySummary> {
    let made = record.total.replay.as_deref()?;
    let mut differences: Vec<ReplayDifference> = made
        .differences
        .iter()
        .map(|one| ReplayDifference {
            request: record
                .rows
                .get(one.row_idx as usize)
                .map_or_else(String::new, |row| format!("{} {}", row.method, row.url)),
            recorded_status: one.recorded_status,
            live_status: one.live_status,
            count: one.count,
        })
        .collect();
    differences.sort_by_key(|one| std::cmp::Reverse(one.count));
    Some(ReplaySummary {
        on_time: made.on_time,
        late: made.late,
        skipped: made.skipped,
        unreadable: made.unreadable,
        lateness_us: Distribution::from(&made.lateness),
        corrected: made.corrected,
        compared: made.compared,
        same: made.same,
        differences,
        learned: made.learned.clone(),
        looked_through: (made.looked_through > 0).then_some(made.looked_through),
    })
}
