//! What a lost machine owes: the arrivals that its schedule asked for and that were not reported.
//!
//! Of an open model that is known by the plan. Until the machine was lost they may have been sent, so they are interrupted; later ones
//! were not. Of a closed model it is unknown how many requests were made; what it did in its last second is the best estimate.

use std::time::Duration;

use squall_measure::Snapshot;
use squall_plan::{Plan, Profile, Segment, When};

/// What is known of one load on one machine while it reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Requests that it has begun and not reported the end of.
    open_count: u64,
    /// Arrivals that it reported as asked for.
    asked: u64,
    /// The second that is reported now, and the requests begun in it.
    second: (u32, u64),
    /// Requests begun in the second before.
    begun_per_s: u64,
    schedule: Option<Schedule>,
}

/// The arrivals of one machine.
#[derive(Debug, Clone)]
struct Schedule {
    rate: Profile,
    segment: Segment,
    warmup: Duration,
    end: Option<Duration>,
}

/// Requests of a lost machine about which nothing was reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unreported {
    /// Arrivals of its schedule that it may have sent.
    pub scheduled: u64,
    /// Requests without a schedule that it may have made, by its last whole second.
    pub estimated: u64,
}

impl Progress {
    /// What the load is on this machine.
    pub(crate) fn set_plan(&mut self, plan: &Plan) {
        self.schedule = Schedule::of(plan);
    }

    /// Takes in what an event loop reported of a second.
    pub(crate) fn take(&mut self, second_idx: u32, snapshot: &Snapshot) {
        let begun = snapshot.requests_started;
        // An event loop reports each request's start before its end, or together with it.
        self.open_count = self.open_count.saturating_add(begun).saturating_sub(snapshot.settled());
        self.asked = self.asked.saturating_add(snapshot.arrivals_asked);
        if second_idx > self.second.0 {
            (self.begun_per_s, self.second) = (self.second.1, (second_idx, 0));
        }
        self.second.1 = self.second.1.saturating_add(begun);
    }

    /// The machine was lost `lost_at` after its load's start; it had reported all before `reported`. Gives the figures that complete its
    /// own: of requests whose end is not known.
    pub(crate) fn interrupt(&mut self, reported: Duration, lost_at: Duration) -> (Snapshot, Unreported) {
        let mut snapshot = Snapshot::new(1, false);
        snapshot.rows[0].interrupted = std::mem::take(&mut self.open_count);
        let mut unreported = Unreported::default();
        if self.schedule.is_some() {
            unreported.scheduled = self.ask_until(lost_at);
            snapshot.rows[0].interrupted += unreported.scheduled;
            snapshot.requests_started = unreported.scheduled;
            snapshot.arrivals_asked = unreported.scheduled;
            snapshot.arrivals_sent = unreported.scheduled;
        } else {
            let silent = lost_at.saturating_sub(reported).as_secs_f64();
            unreported.estimated = (self.begun_per_s as f64 * silent).round() as u64;
        }
        (snapshot, unreported)
    }

    /// What its schedule goes on asking for until `now` after its load's start; `None` when that is nothing.
    pub(crate) fn miss(&mut self, now: Duration) -> Option<Snapshot> {
        let missed = self.ask_until(now);
        let mut snapshot = Snapshot::new(0, false);
        (snapshot.arrivals_asked, snapshot.arrivals_lost) = (missed, missed);
        (missed > 0).then_some(snapshot)
    }

    /// How many more arrivals the schedule has asked for by then than are counted; now they are.
    fn ask_until(&mut self, at: Duration) -> u64 {
        let Some(schedule) = &self.schedule else { return 0 };
        let asked = schedule.asked_before(at);
        let more = asked.saturating_sub(self.asked);
        self.asked += more;
        more
    }
}

impl Schedule {
    /// `None` where requests do not start by a rate.
    fn of(plan: &Plan) -> Option<Self> {
        let [load] = &plan.loads[..] else { return None };
        let When::Open { rate, .. } = &load.when else { return None };
        let segment = load.segment.clone();
        Some(Self { rate: rate.clone(), segment, warmup: plan.warmup, end: load.stop.duration })
    }

    /// Arrivals before `at`, those of the warm-up left out.
    fn asked_before(&self, at: Duration) -> u64 {
        let at = self.end.map_or(at, |end| at.min(end));
        // Arrival k comes when the rate has accumulated to k.
        let before = |at: Duration| {
            let whole = self.rate.accumulated_at(at.as_secs_f64()).ceil() as u64;
            self.segment.part_of(whole)
        };
        before(at).saturating_sub(before(self.warmup.min(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(segment: Segment) -> Progress {
        let rate = Profile::constant(10.0);
        let end = Some(Duration::from_secs(6));
        let schedule = Schedule { rate, segment, warmup: Duration::from_secs(1), end };
        Progress { schedule: Some(schedule), ..Progress::default() }
    }

    fn second(progress: &mut Progress, second_idx: u32, asked: u64, settled: u64) {
        let mut snapshot = Snapshot::new(1, true);
        (snapshot.requests_started, snapshot.arrivals_asked) = (asked, asked);
        snapshot.rows[0].ok = settled;
        progress.take(second_idx, &snapshot);
    }

    #[test]
    fn a_schedule_tells_what_was_asked_for_and_not_reported() {
        let mut progress = progress(Segment::WHOLE);
        second(&mut progress, 1, 10, 8);
        // A part of a second that is not closed is reported, too.
        second(&mut progress, 2, 4, 4);
        let at = Duration::from_millis;
        let (snapshot, unreported) = progress.interrupt(at(2000), at(3500));
        assert_eq!(
            unreported,
            Unreported { scheduled: 11, estimated: 0 },
            "25 since the warm-up, 14 reported"
        );
        assert_eq!((snapshot.interrupted(), snapshot.requests_started, snapshot.arrivals_sent), (13, 11, 11));
        let missed =
            |progress: &mut Progress, ms| progress.miss(at(ms)).map(|snapshot| snapshot.arrivals_lost);
        assert_eq!(missed(&mut progress, 3500), None);
        assert_eq!(missed(&mut progress, 4000), Some(5));
        assert_eq!(missed(&mut progress, 60_000), Some(20), "until the load would have ended");
        assert_eq!(missed(&mut progress, 60_000), None);
    }

    #[test]
    fn machines_owe_their_own_parts_and_together_the_whole() {
        let segments = Segment::divide(&[1, 1, 1], 1000);
        let owed = segments
            .into_iter()
            .flatten()
            .map(|segment| progress(segment).interrupt(Duration::ZERO, Duration::from_secs(9)).1.scheduled);
        assert_eq!(owed.sum::<u64>(), 50);
    }

    #[test]
    fn without_a_schedule_the_last_whole_second_is_the_estimate() {
        let mut progress = Progress::default();
        second(&mut progress, 0, 100, 97);
        second(&mut progress, 1, 20, 20);
        let (snapshot, unreported) = progress.interrupt(Duration::from_secs(1), Duration::from_millis(3500));
        assert_eq!(unreported, Unreported { scheduled: 0, estimated: 250 });
        assert_eq!(snapshot.interrupted(), 3, "what is not known is in no count");
    }
}
