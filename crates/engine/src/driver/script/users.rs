//! The virtual users of one shard: who runs, who sleeps, who waits for a reply.

use std::cell::Ref;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use squall_plan::ShardPart;
use squall_script::{
    MetricId, Outcome, Program, Request, ScriptError, Shared, Spec, Step, StreamRequest, SystemTags, Tags,
    User, Work, is_stream_token,
};

use super::ScriptRun;
use super::reply::reply_of;
use super::routes::Routes;
use super::stage::Stage;
use super::streams::StreamTable;
use crate::driver::stream::{CallKind, StreamReport};
use crate::driver::{Call, Ended, Port, Traffic};
use crate::prepare::Route;
use crate::sys::monotonic_ns;

/// The users of one shard.
pub(super) struct Users {
    pub(super) program: Arc<Program>,
    pub(super) shared: Rc<Shared>,
    pub(super) now_ns: u64,
    pub(super) has_begun_setup: bool,
    pub(super) has_begun_teardown: bool,
    part: ShardPart,
    slots: Vec<Slot>,
    /// Users that no scenario has; who has been free longest is taken first, as in k6.
    free: VecDeque<u32>,
    /// Sleepers by when they wake; an entry that is not the user's present one is stale.
    sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Users that gave way to others.
    runnable: VecDeque<u32>,
    /// Work that has ended and that was not looked at yet.
    ended: VecDeque<u32>,
    special: Option<Special>,
    requests: Vec<Request>,
    stream_requests: Vec<StreamRequest>,
    streams: StreamTable,
    limiter: Option<Limiter>,
    routes: Arc<Routes>,
    closes_after_iteration: bool,
    made_count: u64,
    pub(super) clock: Clock,
}

/// The clock while scripts compute.
pub(super) enum Clock {
    /// The machine's, and what it showed when the run's was at 0.
    Machine { epoch_ns: Option<u64> },
    /// Computing takes no time.
    #[cfg(test)]
    Still,
}

impl Clock {
    fn begin(&mut self, now_ns: u64) {
        match self {
            Self::Machine { epoch_ns } => {
                epoch_ns.get_or_insert_with(|| monotonic_ns().saturating_sub(now_ns));
            }
            #[cfg(test)]
            Self::Still => {}
        }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Self::Machine { epoch_ns: Some(epoch_ns) } => monotonic_ns().saturating_sub(*epoch_ns),
            Self::Machine { epoch_ns: None } => 0,
            #[cfg(test)]
            Self::Still => 0,
        }
    }
}

/// One user.
struct Slot {
    user: User,
    wake_ns: u64,
    is_running: bool,
    is_interrupted: bool,
    /// The scenario that has it, and its place there.
    owner: Option<(usize, usize)>,
}

/// The user of `setup()` and `teardown()`.
struct Special {
    idx: u32,
    deadline_ns: u64,
    is_running: bool,
    is_late: bool,
}

/// Holds requests back so that no more than a number of them start each second.
struct Limiter {
    gap_ns: f64,
    next_ns: f64,
    held: VecDeque<(u64, Call)>,
}

impl Limiter {
    fn hold(&mut self, call: Call, now_ns: u64) {
        self.next_ns = self.next_ns.max(now_ns as f64);
        self.held.push_back((self.next_ns as u64, call));
        self.next_ns += self.gap_ns;
    }

    /// What a user has asked for is not sent any more; those behind move up.
    fn forget(&mut self, user: u32) {
        let Some((first_ns, _)) = self.held.front() else { return };
        self.next_ns = *first_ns as f64;
        for (at_ns, call) in std::mem::take(&mut self.held) {
            if call.user != user {
                self.hold(call, at_ns.min(self.next_ns as u64));
            }
        }
    }
}

impl Users {
    pub(super) fn new(run: &ScriptRun, shared: Rc<Shared>, part: &ShardPart) -> Self {
        let limiter = run.options.rps.map(|rps| Limiter {
            gap_ns: 1e9 / (rps * part.fraction()),
            next_ns: 0.0,
            held: VecDeque::new(),
        });
        Self {
            program: Arc::clone(&run.program),
            shared,
            now_ns: 0,
            has_begun_setup: false,
            has_begun_teardown: false,
            part: part.clone(),
            slots: Vec::new(),
            free: VecDeque::new(),
            sleepers: BinaryHeap::new(),
            runnable: VecDeque::new(),
            ended: VecDeque::new(),
            special: None,
            requests: Vec::new(),
            stream_requests: Vec::new(),
            streams: StreamTable::default(),
            limiter,
            routes: Arc::clone(&run.routes),
            closes_after_iteration: run.options.no_vu_connection_reuse,
            made_count: 0,
            clock: Clock::Machine { epoch_ns: None },
        }
    }

    /// Makes users before the start.
    pub(super) fn make(&mut self, count: u64) -> Result<(), ScriptError> {
        for _ in 0..count {
            let idx = self.make_one()?;
            self.free.push_back(idx);
        }
        Ok(())
    }

    /// Makes one more user; its index.
    pub(super) fn make_one(&mut self) -> Result<u32, ScriptError> {
        let vu = self.part.machine_idx(self.made_count) + 1;
        self.made_count += 1;
        self.shared.pending.vus_initialised.update(|count| count + 1);
        self.add(vu)
    }

    pub(super) fn make_special(&mut self) -> Result<(), ScriptError> {
        let idx = self.add(0)?;
        self.special = Some(Special { idx, deadline_ns: u64::MAX, is_running: false, is_late: false });
        Ok(())
    }

    fn add(&mut self, vu: u64) -> Result<u32, ScriptError> {
        let user = User::new(&self.shared, &self.program, vu)?;
        self.slots.push(Slot {
            user,
            wake_ns: u64::MAX,
            is_running: false,
            is_interrupted: false,
            owner: None,
        });
        Ok(self.slots.len() as u32 - 1)
    }

    /// Takes a user that no scenario has.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        self.free.pop_front()
    }

    /// Gives a user back.
    pub(super) fn give_back(&mut self, idx: u32) {
        self.free.push_back(idx);
    }

    /// A user begins its scenario, or an iteration of an open model.
    pub(super) fn note_active(&mut self, change: i64) {
        self.shared.pending.vus_active.update(|count| count + change);
    }

    /// An iteration threw.
    pub(super) fn note_failed(&mut self) {
        self.shared.counts.iterations_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_ended(&mut self, is_interrupted: bool) {
        let pending = &self.shared.pending;
        let ended =
            if is_interrupted { &pending.iterations_interrupted } else { &pending.iterations_completed };
        ended.update(|count| count + 1);
    }

    pub(super) fn flush_counts(&mut self, stage: &Stage) {
        let (counts, pending) = (stage.counts(), &self.shared.pending);
        for (of_run, count) in [
            (&counts.iterations_completed, pending.iterations_completed.take()),
            (&counts.iterations_interrupted, pending.iterations_interrupted.take()),
            (&counts.vus_active, pending.vus_active.take() as u64),
            (&counts.vus_initialised, pending.vus_initialised.take()),
        ] {
            of_run.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Wakes those who are due.
    pub(super) fn turn(&mut self, now_ns: u64, port: &mut Port) {
        self.now_ns = now_ns;
        self.clock.begin(now_ns);
        for _ in 0..self.runnable.len() {
            if let Some(idx) = self.runnable.pop_front() {
                self.resume(idx, now_ns, port);
            }
        }
        while let Some(Reverse((wake_ns, idx))) = self.sleepers.peek().copied() {
            if wake_ns > now_ns {
                break;
            }
            self.sleepers.pop();
            if self.slots[idx as usize].wake_ns == wake_ns {
                self.resume(idx, now_ns, port);
            }
        }
        self.release_held(now_ns, port);
        for (idx, event) in self.streams.take_ended(now_ns) {
            self.give_event(idx, event, now_ns, port);
        }
        if let Some(special) =
            self.special.as_mut().filter(|special| special.is_running && now_ns >= special.deadline_ns)
        {
            special.is_late = true;
            let idx = special.idx;
            self.interrupt(idx, now_ns, port);
        }
    }

    fn release_held(&mut self, now_ns: u64, port: &mut Port) {
        let Some(limiter) = &mut self.limiter else { return };
        while limiter.held.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            if let Some((_, call)) = limiter.held.pop_front() {
                port.calls.push(call);
            }
        }
    }

    /// When the next user is to be woken.
    pub(super) fn next_due_ns(&self) -> u64 {
        if !self.runnable.is_empty() || !self.ended.is_empty() || self.streams.has_ended() {
            return 0;
        }
        let sleeper_ns = self.sleepers.peek().map_or(u64::MAX, |Reverse((wake_ns, _))| *wake_ns);
        let held_ns = self.limiter.as_ref().and_then(|limiter| limiter.held.front());
        let special_ns =
            self.special.as_ref().filter(|special| special.is_running).map(|special| special.deadline_ns);
        sleeper_ns.min(held_ns.map_or(u64::MAX, |(at_ns, _)| *at_ns)).min(special_ns.unwrap_or(u64::MAX))
    }

    /// A request of a user has ended.
    pub(super) fn deliver(&mut self, ended: Ended, now_ns: u64, port: &mut Port) {
        let idx = ended.user;
        if is_stream_token(ended.token) {
            if let Some(event) = self.streams.on_ended(ended, now_ns, port) {
                self.give_event(idx, event, now_ns, port);
            }
            return;
        }
        self.slots[idx as usize].user.deliver(reply_of(ended));
        if self.slots[idx as usize].is_running {
            self.resume(idx, now_ns, port);
        }
    }

    /// Something happened on a stream of a user.
    pub(super) fn on_stream(&mut self, event: StreamReport, start_ns: u64, port: &mut Port) {
        let idx = event.user;
        if let Some(event) = self.streams.on_event(event, start_ns, port) {
            let now_ns = self.now_ns.max(event.at_ns);
            self.give_event(idx, event, now_ns, port);
        }
    }

    fn give_event(
        &mut self,
        idx: u32,
        event: squall_script::ScriptStreamEvent,
        now_ns: u64,
        port: &mut Port,
    ) {
        let slot = &self.slots[idx as usize];
        slot.user.deliver_event(event);
        if slot.is_running {
            self.resume(idx, now_ns, port);
        } else {
            // It reads them when it works again; what it has asked for meanwhile is that a full inbox ends.
            self.obey_streams(idx, now_ns, port);
        }
    }

    /// Does what a user wants of its streams.
    fn obey_streams(&mut self, idx: u32, now_ns: u64, port: &mut Port) {
        let mut requests = std::mem::take(&mut self.stream_requests);
        self.slots[idx as usize].user.take_stream_requests(&mut requests);
        for request in requests.drain(..) {
            if let Some(call) = self.streams.obey(idx, request, port) {
                self.call(call, now_ns, port);
            }
        }
        self.stream_requests = requests;
    }

    /// Begins a user's work.
    pub(super) fn begin(&mut self, idx: u32, work: Work, now_ns: u64, port: &mut Port) {
        let begin_ns = self.clock_ns(now_ns);
        let slot = &mut self.slots[idx as usize];
        (slot.is_running, slot.is_interrupted) = (true, false);
        let step = slot.user.begin(work, begin_ns);
        self.follow(idx, step, begin_ns, port);
    }

    fn resume(&mut self, idx: u32, now_ns: u64, port: &mut Port) {
        let begin_ns = self.clock_ns(now_ns);
        let step = self.slots[idx as usize].user.resume(begin_ns);
        self.follow(idx, step, begin_ns, port);
    }

    /// Does what a user wants that went on at `begin_ns`.
    fn follow(&mut self, idx: u32, step: Step, begin_ns: u64, port: &mut Port) {
        let now_ns = self.clock_ns(begin_ns);
        let slot = &mut self.slots[idx as usize];
        slot.user.take_requests(&mut self.requests);
        slot.wake_ns = u64::MAX;
        match step {
            Step::Wait { until_ns: Some(until_ns) } => {
                // To the script no time passes while it computes: its rest begins when it gives way.
                let until_ns = until_ns.saturating_add(now_ns - begin_ns);
                slot.wake_ns = until_ns;
                self.sleepers.push(Reverse((until_ns, idx)));
            }
            Step::Wait { until_ns: None } => {}
            Step::Yield => self.runnable.push_back(idx),
            Step::Idle => {
                slot.is_running = false;
                self.ended.push_back(idx);
                if self.closes_after_iteration {
                    port.closed.push(idx);
                }
            }
        }
        let mut requests = std::mem::take(&mut self.requests);
        for request in requests.drain(..) {
            self.send(idx, request, now_ns, port);
        }
        self.requests = requests;
        self.obey_streams(idx, now_ns, port);
    }

    fn send(&mut self, user: u32, request: Request, now_ns: u64, port: &mut Port) {
        self.call(Call { user, request, kind: CallKind::Whole }, now_ns, port);
    }

    fn call(&mut self, call: Call, now_ns: u64, port: &mut Port) {
        match &mut self.limiter {
            None => port.calls.push(call),
            Some(limiter) => limiter.hold(call, now_ns),
        }
    }

    /// How a request reaches its host.
    pub(super) fn route(&self, spec: &Spec) -> Route {
        self.routes.of(spec)
    }

    /// How many pieces of work have ended.
    pub(super) fn ended_count(&self) -> usize {
        self.ended.len()
    }

    /// The next iteration that has ended: whose it was, and how it ended.
    pub(super) fn take_ended(&mut self) -> Option<((usize, usize), Outcome)> {
        let idx = *self.ended.front()?;
        let slot = &self.slots[idx as usize];
        let owner = slot.owner?;
        self.ended.pop_front();
        Some((owner, slot.user.outcome()))
    }

    /// A scenario takes a user, or gives it up.
    pub(super) fn set_owner(&mut self, idx: u32, owner: Option<(usize, usize)>) {
        self.slots[idx as usize].owner = owner;
    }

    /// Ends a user's work: at once where it waits, else as soon as it gives way.
    pub(super) fn interrupt(&mut self, idx: u32, now_ns: u64, port: &mut Port) {
        let slot = &mut self.slots[idx as usize];
        if !slot.is_running || slot.is_interrupted {
            return;
        }
        slot.is_interrupted = true;
        slot.user.interrupt();
        port.cancelled.push(idx);
        port.calls.retain(|call| call.user != idx);
        if let Some(limiter) = &mut self.limiter {
            limiter.forget(idx);
        }
        self.runnable.retain(|other| *other != idx);
        self.streams.forget(idx);
        self.resume(idx, now_ns, port);
    }

    /// Begins `setup()` or `teardown()`.
    pub(super) fn begin_special(&mut self, work: Work, deadline_ns: u64, now_ns: u64, port: &mut Port) {
        let Some(special) = &mut self.special else { return };
        (special.deadline_ns, special.is_running) = (deadline_ns, true);
        let idx = special.idx;
        self.begin(idx, work, now_ns, port);
    }

    pub(super) fn interrupt_special(&mut self, now_ns: u64, port: &mut Port) {
        if let Some(idx) =
            self.special.as_ref().filter(|special| special.is_running).map(|special| special.idx)
        {
            self.interrupt(idx, now_ns, port);
        }
    }

    /// How `setup()` or `teardown()` has ended, and whether its time was over.
    pub(super) fn take_special(&mut self) -> Option<(Outcome, bool)> {
        let special = self.special.as_mut().filter(|special| special.is_running)?;
        let place = self.ended.iter().position(|idx| *idx == special.idx)?;
        special.is_running = false;
        self.ended.remove(place);
        Some((self.slots[special.idx as usize].user.outcome(), special.is_late))
    }

    /// Counts the bytes of the user of `setup()` and `teardown()`.
    pub(super) fn count_special_traffic(&self, group: &str, port: &mut Port) {
        let Some(special) = &self.special else { return };
        let custom = self.tags_of(special.idx);
        let tags = Tags {
            scenario: "",
            group,
            check: None,
            http: None,
            custom: [&custom, &[]],
            system: SystemTags::default(),
            vu: (0, 0),
            metadata: &[],
        };
        self.count_traffic(special.idx, &tags, port);
    }

    /// Counts the bytes of a user since the last time.
    pub(super) fn count_traffic(&self, idx: u32, tags: &Tags<'_>, port: &mut Port) {
        let Traffic { sent, received } = std::mem::take(port.traffic_of(idx));
        self.recorder().add(MetricId::DATA_SENT, sent as f64, tags);
        self.recorder().add(MetricId::DATA_RECEIVED, received as f64, tags);
    }

    /// Tags of a user's samples.
    pub(super) fn tags_of(&self, idx: u32) -> Ref<'_, Vec<(String, String)>> {
        self.slots[idx as usize].user.tags()
    }

    /// The present by the run's clock, which was `now_ns` or earlier when the turn began.
    pub(super) fn clock_ns(&self, now_ns: u64) -> u64 {
        self.clock.now_ns().max(now_ns)
    }

    /// Where samples go.
    pub(super) fn recorder(&self) -> &dyn squall_script::Recorder {
        &*self.shared.recorder
    }
}
