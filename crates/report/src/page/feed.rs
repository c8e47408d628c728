//! The page of a run under way, as messages: everything at first, then what is new. Pure: the server decides when.

use std::time::Duration;

use serde::Serialize;
use squall_measure::{End, RunRecord, RunRecorder, Series, StoppedBy};

use super::Page;
use super::columns::Point;
use super::lines::PartLine;
use super::run::RunPage;
use crate::MachineGlance;

/// What is known of the run, ready to be sent to any viewer.
#[derive(Debug, Default)]
pub struct Feed {
    head: String,
    /// The points as JSON, so that they are written once however many viewers there are.
    points: Vec<String>,
    seconds_per_point: u32,
    generation: u32,
    elapsed: Duration,
    goal: Option<Duration>,
    state: FeedState,
}

/// How far a viewer has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    generation: u32,
    point_count: usize,
}

/// Where the run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedState {
    /// Under way.
    #[default]
    Running,
    /// Finishing what is open.
    Draining,
    /// Over.
    Ended,
}

impl Feed {
    /// Takes the run as it is now, and of a fleet each machine.
    pub fn update(&mut self, recorder: &RunRecorder, machines: &[MachineGlance<'_>], state: FeedState) {
        let measured = recorder.elapsed().saturating_sub(recorder.setup().plan.warmup);
        let stopped_by = if state == FeedState::Running { StoppedBy::Duration } else { StoppedBy::Drained };
        self.elapsed = recorder.elapsed();
        self.goal = recorder.setup().length;
        let machines = machines.iter().map(PartLine::from).collect();
        let shares = recorder.shares().shares().cloned().collect();
        let record = RunRecord { shares, ..recorder.preview(End { duration: measured, stopped_by }) };
        self.take(&record, machines, recorder.series(), state);
    }

    /// Takes the run as it has ended.
    pub fn finish(&mut self, record: &RunRecord) {
        self.take(record, Vec::new(), &record.series, FeedState::Ended);
    }

    fn take(&mut self, record: &RunRecord, machines: Vec<PartLine>, series: &Series, state: FeedState) {
        self.state = state;
        let page = RunPage::without_series(record, machines, PART_POINT_COUNT_MAX);
        self.head = serde_json::to_string(&Page::Run(Box::new(page))).unwrap_or_default();
        self.take_points(series, record.total.open_model);
    }

    /// A long run merges its points: then all of them are new. A second that was reported late changes the last few.
    fn take_points(&mut self, series: &Series, is_open: bool) {
        if series.seconds_per_point != self.seconds_per_point {
            self.seconds_per_point = series.seconds_per_point;
            self.generation += 1;
            self.points.clear();
        }
        let kept = self.points.len().saturating_sub(LATE_POINT_COUNT).min(series.points.len());
        self.points.truncate(kept);
        let step_s = f64::from(series.seconds_per_point);
        let json = |(idx, point)| {
            serde_json::to_string(&Point::new(idx as f64 * step_s, point, is_open)).unwrap_or_default()
        };
        self.points.extend(series.points.iter().enumerate().skip(kept).map(json));
    }

    /// Where the run was at the last update.
    pub fn state(&self) -> FeedState {
        self.state
    }

    /// Whether there is anything to send.
    pub fn has_begun(&self) -> bool {
        !self.head.is_empty()
    }

    /// What a viewer at `position` does not have yet; it is then up to date.
    pub fn message(&self, position: &mut Position) -> String {
        let is_new = position.generation != self.generation;
        let from = if is_new {
            0
        } else {
            position.point_count.saturating_sub(LATE_POINT_COUNT).min(self.points.len())
        };
        *position = Position { generation: self.generation, point_count: self.points.len() };
        let goal = self.goal.map_or_else(|| "null".to_owned(), |goal| goal.as_secs_f64().to_string());
        let state = super::values::name_of(&self.state);
        format!(
            "{{\"page\":{},\"from\":{from},\"points\":[{}],\"generation\":{},\"elapsed_s\":{:.3},\"goal_s\":{goal},\"state\":\"{state}\"}}",
            self.head,
            self.points[from..].join(","),
            self.generation,
            self.elapsed.as_secs_f64(),
        )
    }
}

/// Points of all parts of the run together: they are sent anew each second.
const PART_POINT_COUNT_MAX: usize = 600;

/// How many of the newest points may still change.
const LATE_POINT_COUNT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture;

    #[test]
    fn a_viewer_gets_all_and_then_what_is_new() {
        let mut feed = Feed::default();
        let mut position = Position::default();
        let read = |feed: &Feed, position: &mut Position| -> (u64, usize) {
            let message: serde_json::Value = serde_json::from_str(&feed.message(position)).unwrap();
            (message["from"].as_u64().unwrap(), message["points"].as_array().unwrap().len())
        };
        feed.update(&fixture::closed_recorder(8), &[], FeedState::Running);
        assert_eq!(read(&feed, &mut position), (0, 8));
        feed.update(&fixture::closed_recorder(10), &[], FeedState::Running);
        assert_eq!(read(&feed, &mut position), (5, 5));
        assert_eq!(read(&feed, &mut Position::default()), (0, 10), "another viewer begins at the start");
    }
}
