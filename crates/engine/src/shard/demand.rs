//! What starts when: users of a closed model, arrivals of an open one, and the connection that each request gets.

use squall_plan::limits::ARRIVALS_WAITING_MAX;
use squall_plan::{Load, Profile, When};

use super::conn::{Exchange, RequestId, State};
use super::{Life, Shard};
use crate::pace::{Arrivals, Due, Share, grid_ns};
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
    Closed { users: Users, live_count: u32 },
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
struct Users {
    /// Of users, or of connections with several users each.
    profile: Profile,
    share: Share,
    per_connection: u32,
}

impl Demand {
    /// `per_connection`: users of a closed model for each connection. `warm_ns`: the part of the length that is not measured.
    pub(crate) fn new(
        load: &Load,
        share: Share,
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
                let users = Users { profile: profile.clone(), share, per_connection };
                Kind::Closed { users, live_count: 0 }
            }
            When::Open { rate, arrival, pacing, .. } => {
                let arrivals = Arrivals::new(rate, *arrival, share, grid_ns(*pacing), length_ns);
                Kind::Open { arrivals, asked_count: 0, is_timed: load.stop.duration.is_some() }
            }
        };
        let remaining = load.stop.count.map(|count| share.part_of(count));
        Self { kind, remaining, warm_ns, unsent_count: 0, rotation_next: 0 }
    }

    /// A driver wants what is wanted.
    pub(super) fn driven() -> Self {
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
    pub(super) fn set_recorded(&mut self, next: Option<u64>, ended: bool) {
        if let Kind::Recorded { next_due_ns, is_ended, .. } = &mut self.kind {
            (*next_due_ns, *is_ended) = (next, ended);
        }
    }

    /// Takes a recorded request from the count of those that may start; false when none is left.
    pub(super) fn take_recorded(&mut self, at_ns: u64) -> bool {
        let is_left = self.take_one(at_ns);
        if let Kind::Recorded { asked_count, .. } = &mut self.kind {
            *asked_count += u64::from(is_left && at_ns >= self.warm_ns);
        }
        is_left
    }

    fn is_closed_model(&self) -> bool {
        matches!(self.kind, Kind::Closed { .. })
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

impl Users {
    fn count_at(&self, at_ns: u64) -> u32 {
        let whole = self.profile.value_at(at_ns as f64 / 1e9).floor().max(0.0) as u64;
        self.share.part_of(whole) as u32 * self.per_connection
    }
}

impl Shard {
    pub(super) fn spawn_first_users(&mut self) {
        // Each shard begins elsewhere in the rotation, so that few requests do not all fall on the first URL.
        let rotation_count = self.prepared.rotation.len().max(1);
        let Share { shard_idx, shard_count, .. } = self.share;
        self.demand.rotation_next = rotation_count * shard_idx as usize / shard_count as usize;
        self.adjust_users();
    }

    /// Follows the profile of users or the schedule of arrivals up to now.
    pub(super) fn follow_schedule(&mut self) {
        self.opened_this_turn = 0;
        if self.life == Life::Running {
            self.release_arrivals();
        }
    }

    /// Starts users that the profile wants by now. Those that it wants no more end when their request ends.
    pub(super) fn adjust_users(&mut self) {
        let missing = self.demand.missing_users(self.now_ns.saturating_sub(self.limits.start_ns));
        for _ in 0..missing.max(0) {
            self.demand.add_users(1);
            self.continue_user(None);
        }
    }

    /// Starts all arrivals that are due.
    pub(super) fn release_arrivals(&mut self) {
        self.serve_hops();
        if matches!(self.demand.kind, Kind::Recorded { .. }) {
            return self.release_recorded();
        }
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        while let Some(due) = self.demand.pop_arrival(at_ns) {
            let intended_ns = self.limits.start_ns + due.intended_ns;
            let Some(exchange) = self.next_exchange(intended_ns) else { continue };
            self.demand.note_asked(due.intended_ns);
            if self.waiting_count >= ARRIVALS_WAITING_MAX {
                self.demand.note_unsent(1);
            } else if self.place(exchange) {
                let late_ns = self.now_ns.saturating_sub(self.limits.start_ns + due.exact_ns);
                self.pulse.snapshot.generator.schedule_lag.record(late_ns);
            }
        }
    }

    /// Starts what arrivals and those who wait have free connections for, and sends it.
    pub(super) fn start_next(&mut self) {
        self.start_released();
        self.serve_waiting();
        self.send_unsent();
    }

    /// Lets the users go on whose requests have ended, on the connections that these have left; redirects go before.
    pub(super) fn serve_ready(&mut self) {
        self.serve_hops();
        let mut ready = std::mem::take(&mut self.ready);
        for conn_idx in ready.drain(..) {
            if self.demand.is_closed_model() {
                self.continue_user(Some(conn_idx as usize));
            } else {
                self.offer(conn_idx as usize);
            }
        }
        // What was added meanwhile (a send that failed at once) is for the next turn.
        ready.append(&mut self.ready);
        self.ready = ready;
    }

    /// Follows redirects: before anything that waits, since each belongs to a request that has begun.
    fn serve_hops(&mut self) {
        let mut hops = std::mem::take(&mut self.hops);
        for hop in hops.drain(..) {
            let pool_idx = self.pool_of(&hop);
            if let Some(conn_idx) = self.take_slot(pool_idx) {
                self.assign(conn_idx, hop);
            } else {
                self.pools[pool_idx].waiting.push_front(hop);
                self.waiting_count += 1;
            }
        }
        hops.append(&mut self.hops);
        self.hops = hops;
    }

    /// A user's next request, on the connection it has where that leads to the same origin; or the user's end.
    fn continue_user(&mut self, conn_idx: Option<usize>) {
        let at_ns = self.now_ns.saturating_sub(self.limits.start_ns);
        let is_wanted = self.life == Life::Running && self.demand.missing_users(at_ns) >= 0;
        let next =
            (is_wanted && self.demand.take_one(at_ns)).then(|| self.next_exchange(self.now_ns)).flatten();
        let Some(exchange) = next else {
            self.demand.add_users(-1);
            if let Some(conn_idx) = conn_idx {
                self.retire(conn_idx);
            }
            return;
        };
        match conn_idx {
            Some(conn_idx) if self.fits(conn_idx, &exchange) => self.assign(conn_idx, exchange),
            Some(conn_idx) => {
                self.place(exchange);
                self.offer(conn_idx);
            }
            None => {
                self.place(exchange);
            }
        }
    }

    /// The next request; `None` where a recording has no more.
    fn next_exchange(&mut self, intended_ns: u64) -> Option<Exchange> {
        if self.replay.is_some() {
            return self.next_of_recording(intended_ns);
        }
        let rotation = &self.prepared.rotation;
        let request = RequestId(rotation[self.demand.rotation_next]);
        self.demand.rotation_next = (self.demand.rotation_next + 1) % rotation.len();
        Some(Exchange { request, intended_ns, ..Exchange::default() })
    }

    /// The next request of a recording that only gives the order.
    fn next_of_recording(&mut self, intended_ns: u64) -> Option<Exchange> {
        let is_closed_model = self.demand.is_closed_model();
        let next = match is_closed_model {
            true => self.next_of_copies(),
            false => self.next_recorded(None, intended_ns),
        };
        if next.is_none() && self.has_played_all() {
            self.demand.remaining = Some(0);
        }
        next
    }

    fn fits(&self, conn_idx: usize, exchange: &Exchange) -> bool {
        let conn = &self.conns[conn_idx];
        conn.pool_idx as usize == self.pool_of(exchange)
            && self.has_free_slot(conn_idx)
            && self.pools[conn.pool_idx as usize].waiting.is_empty()
    }

    pub(super) fn has_free_slot(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        let in_flight = conn.in_flight();
        conn.state == State::Open
            && conn.has_free_slot()
            && conn.served_count + in_flight < self.limits.served_max
            && (in_flight == 0 || !self.is_old(conn_idx))
    }

    /// Gives a request a connection at once, or lets it wait its turn. Returns whether it got one.
    pub(super) fn place(&mut self, exchange: Exchange) -> bool {
        let pool_idx = self.pool_of(&exchange);
        let is_first_in_line = self.pools[pool_idx].waiting.is_empty();
        match is_first_in_line.then(|| self.take_slot(pool_idx)).flatten() {
            Some(conn_idx) => {
                self.assign(conn_idx, exchange);
                true
            }
            None => {
                self.pools[pool_idx].waiting.push_back(exchange);
                self.waiting_count += 1;
                false
            }
        }
    }

    /// Requests that wait get the connections that are free, in order.
    fn serve_waiting(&mut self) {
        if self.waiting_count == 0 {
            return;
        }
        for pool_idx in 0..self.pools.len() {
            while !self.pools[pool_idx].waiting.is_empty() {
                let Some(conn_idx) = self.take_slot(pool_idx) else { break };
                if let Some(exchange) = self.pools[pool_idx].waiting.pop_front() {
                    self.waiting_count -= 1;
                    self.assign(conn_idx, exchange);
                }
            }
        }
    }

    /// A connection with room: for those who wait, or to be kept for those who come.
    pub(super) fn offer(&mut self, conn_idx: usize) {
        let pool_idx = self.conns[conn_idx].pool_idx as usize;
        while self.has_free_slot(conn_idx) {
            let Some(exchange) = self.pools[pool_idx].waiting.pop_front() else {
                self.list_idle(conn_idx);
                return;
            };
            self.waiting_count -= 1;
            self.assign(conn_idx, exchange);
        }
    }

    pub(super) fn list_idle(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        if !conn.is_listed_idle {
            conn.is_listed_idle = true;
            self.pools[conn.pool_idx as usize].idle.push(conn_idx as u32);
        }
    }

    /// A slot for one more request to this origin: an open connection, else one that is to be opened.
    fn take_slot(&mut self, pool_idx: usize) -> Option<usize> {
        while let Some(conn_idx) = self.pools[pool_idx].idle.pop() {
            let conn_idx = conn_idx as usize;
            self.conns[conn_idx].is_listed_idle = false;
            if self.has_free_slot(conn_idx) {
                return Some(conn_idx);
            }
        }
        if !self.may_open() || self.awaits_streams(pool_idx) {
            return None;
        }
        let vacant = self.pools[pool_idx].vacant.pop().map(|conn_idx| conn_idx as usize);
        let slot = vacant.or_else(|| self.add_slot(pool_idx))?;
        self.opened_this_turn += 1;
        Some(slot)
    }

    /// Whether one more connection may be opened in this turn.
    pub(super) fn may_open(&self) -> bool {
        self.opened_this_turn < OPEN_PER_TURN_MAX
    }

    /// Puts a request on a connection; opens the connection first where it is not.
    pub(super) fn assign(&mut self, conn_idx: usize, mut exchange: Exchange) {
        exchange.assigned_ns = self.now_ns;
        exchange.is_first = self.conns[conn_idx].state != State::Open;
        if !exchange.is_retry() {
            exchange.is_warmup = exchange.intended_ns < self.limits.warm_until_ns;
            self.pulse.count_start(exchange.is_warmup, exchange.redirect_count > 0);
            self.open_count += 1;
        }
        let conn = &mut self.conns[conn_idx];
        if conn.client.is_some() {
            self.reserve_slot(conn_idx, exchange);
        } else {
            conn.has_opener = true;
            let place = self.place_of(conn_idx, 0);
            self.exchanges[place] = exchange;
            self.open(conn_idx);
        }
        if self.has_free_slot(conn_idx) {
            self.list_idle(conn_idx);
        }
    }
}

/// The most slots that one shard opens to one origin.
pub(super) fn slot_count_max(when: &When, share: Share) -> u32 {
    (share.part_of(when.connection_count_max()) as u32).max(1)
}

/// Connections whose opening begins in one turn of the loop: more would keep the answers of the others waiting.
pub(super) const OPEN_PER_TURN_MAX: u32 = 64;
