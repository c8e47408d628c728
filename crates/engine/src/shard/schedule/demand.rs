//! What wants requests to start: users of a closed model, arrivals of an open one. `starts` follows it.

use squall_plan::{Load, Profile, ShardPart, When};

use crate::pace::{Arrivals, Due, grid_ns};
use crate::pulse::Backlog;

/// What wants requests to start.
#[derive(Debug)]
pub(crate) struct Demand {
    kind: Kind,
    /// Requests that may still start; `None`: any number.
    remaining: Option<u64>,
    /// What starts before this is not measured.
    warm_ns: u64,
    /// Arrivals that are never sent: too many were waiting already, or the end came while they waited.
    unsent_count: u64,
    rotation_next: usize,
}

#[derive(Debug)]
enum Kind {
    /// A user starts its next request when the last one has ended.
    Closed { users: ClosedUsers, live_count: u32 },
    /// The schedule starts requests.
    Open {
        arrivals: Arrivals,
        asked_count: u64,
        /// It lasts until its end, even when its last arrival has been served.
        is_timed: bool,
    },
    /// Requests start at their recorded times.
    Recorded { next_due_ns: Option<u64>, is_ended: bool, asked_count: u64 },
    /// A driver starts requests.
    Driven,
}

/// How many users this shard has over time.
#[derive(Debug)]
struct ClosedUsers {
    /// Of users, or of connections with several users each.
    profile: Profile,
    part: ShardPart,
    per_connection: u32,
}

impl Demand {
    /// `per_connection`: users of a closed model for each connection. `warm_ns`: the part of the length that is not measured.
    pub(crate) fn new(
        load: &Load,
        part: &ShardPart,
        per_connection: u32,
        (length_ns, warm_ns): (u64, u64),
    ) -> Self {
        let kind = match &load.when {
            _ if load.what.has_own_times() => {
                Kind::Recorded { next_due_ns: Some(0), is_ended: false, asked_count: 0 }
            }
            When::Closed { connections, users } => {
                let (profile, per_connection) =
                    users.as_ref().map_or((connections, per_connection), |users| (users, 1));
                let users = ClosedUsers { profile: profile.clone(), part: part.clone(), per_connection };
                Kind::Closed { users, live_count: 0 }
            }
            When::Open { rate, arrival, pacing, .. } => {
                let arrivals = Arrivals::new(rate, *arrival, part, grid_ns(*pacing), length_ns);
                Kind::Open { arrivals, asked_count: 0, is_timed: load.stop.duration.is_some() }
            }
        };
        let remaining = load.stop.count.map(|count| part.part_of(count));
        Self { kind, remaining, warm_ns, unsent_count: 0, rotation_next: 0 }
    }

    /// A driver wants what is wanted.
    pub(in crate::shard) fn driven() -> Self {
        Self { kind: Kind::Driven, remaining: None, warm_ns: 0, unsent_count: 0, rotation_next: 0 }
    }

    /// Nothing more will ever be wanted.
    pub(crate) fn is_exhausted(&self) -> bool {
        match &self.kind {
            Kind::Closed { live_count, .. } => *live_count == 0 && self.remaining == Some(0),
            Kind::Open { arrivals, is_timed, .. } => {
                self.remaining == Some(0) || !is_timed && arrivals.peek().is_none()
            }
            Kind::Recorded { is_ended, .. } => *is_ended || self.remaining == Some(0),
            Kind::Driven => true,
        }
    }

    /// How far the schedule is ahead of what was sent; `waiting_count`: arrivals that are still to be sent.
    pub(crate) fn backlog(&self, waiting_count: u64) -> Backlog {
        let asked_count = match &self.kind {
            Kind::Closed { .. } | Kind::Driven => 0,
            Kind::Open { asked_count, .. } | Kind::Recorded { asked_count, .. } => *asked_count,
        };
        Backlog { asked_count, waiting_count: waiting_count + self.unsent_count }
    }

    /// Arrivals that are never sent count as waiting until they are forgotten.
    pub(crate) fn note_unsent(&mut self, count: u64) {
        self.unsent_count += count;
    }

    /// A second is over in which nothing could start any more.
    pub(crate) fn forget_unsent(&mut self) {
        self.unsent_count = 0;
    }

    /// When the next arrival is due, in nanoseconds after the run's start.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match &self.kind {
            Kind::Open { arrivals, .. } if self.remaining != Some(0) => Some(arrivals.peek()?.intended_ns),
            Kind::Recorded { next_due_ns, .. } if self.remaining != Some(0) => *next_due_ns,
            _ => None,
        }
    }

    /// Takes the next arrival when its time has come, and one from the count of requests that may start.
    pub(crate) fn pop_arrival(&mut self, at_ns: u64) -> Option<Due> {
        let Kind::Open { arrivals, .. } = &mut self.kind else { return None };
        if self.remaining == Some(0) {
            return None;
        }
        let due = arrivals.pop_due(at_ns)?;
        self.take_one(due.intended_ns);
        Some(due)
    }

    /// Counts an arrival that the schedule asked for, unless it belongs to the warm-up.
    pub(crate) fn note_asked(&mut self, at_ns: u64) {
        if let Kind::Open { asked_count, .. } = &mut self.kind {
            *asked_count += u64::from(at_ns >= self.warm_ns);
        }
    }

    /// How far the number of live users is from what the profile wants: positive, more are wanted.
    pub(crate) fn missing_users(&self, at_ns: u64) -> i64 {
        match &self.kind {
            Kind::Closed { users, live_count } => i64::from(users.count_at(at_ns)) - i64::from(*live_count),
            Kind::Open { .. } | Kind::Recorded { .. } | Kind::Driven => 0,
        }
    }

    /// When the next recorded request is to be released, and whether there will be any more.
    pub(in crate::shard) fn set_recorded(&mut self, next: Option<u64>, ended: bool) {
        if let Kind::Recorded { next_due_ns, is_ended, .. } = &mut self.kind {
            (*next_due_ns, *is_ended) = (next, ended);
        }
    }

    /// Takes a recorded request from the count of those that may start.
    pub(in crate::shard) fn take_recorded(&mut self, at_ns: u64) {
        self.take_one(at_ns);
        if let Kind::Recorded { asked_count, .. } = &mut self.kind {
            *asked_count += u64::from(at_ns >= self.warm_ns);
        }
    }

    /// No more requests may start.
    pub(in crate::shard) fn is_used_up(&self) -> bool {
        self.remaining == Some(0)
    }

    /// What comes next in the rotation.
    pub(in crate::shard) fn next_of_rotation(&mut self, rotation: &[u32]) -> u32 {
        let next = rotation[self.rotation_next];
        self.rotation_next = (self.rotation_next + 1) % rotation.len();
        next
    }

    pub(super) fn is_closed_model(&self) -> bool {
        matches!(self.kind, Kind::Closed { .. })
    }

    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.kind, Kind::Recorded { .. })
    }

    /// Each shard begins elsewhere in the rotation, so that few requests do not all fall on the first URL.
    pub(super) fn begin_rotation(&mut self, rotation_count: usize, part: &ShardPart) {
        let ShardPart { shard_idx, shard_count, .. } = *part;
        self.rotation_next = rotation_count.max(1) * shard_idx as usize / shard_count as usize;
    }

    /// There is nothing left to be started.
    pub(super) fn exhaust(&mut self) {
        self.remaining = Some(0);
    }

    pub(crate) fn add_users(&mut self, difference: i64) {
        if let Kind::Closed { live_count, .. } = &mut self.kind {
            *live_count = live_count.saturating_add_signed(difference as i32);
        }
    }

    /// Takes one from the count of requests that may start; false when none is left. The warm-up uses none up.
    pub(crate) fn take_one(&mut self, at_ns: u64) -> bool {
        match &mut self.remaining {
            None => true,
            Some(0) => false,
            Some(remaining) => {
                *remaining -= u64::from(at_ns >= self.warm_ns);
                true
            }
        }
    }
}

impl ClosedUsers {
    fn count_at(&self, at_ns: u64) -> u32 {
        let whole = self.profile.value_at(at_ns as f64 / 1e9).floor().max(0.0) as u64;
        self.part.part_of(whole) as u32 * self.per_connection
    }
}
