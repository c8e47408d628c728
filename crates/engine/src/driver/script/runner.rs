//! One scenario on one shard: which user begins an iteration when, and when it must end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use squall_plan::ShardPart;
use squall_script::{
    Executor, Iteration, MetricId, Outcome, Progress, Scenario, ScenarioConfig, SystemTags, Tags, Work,
    log_failure,
};

use super::schedule::{Arrivals, UserStep, user_steps};
use super::stage::Stage;
use super::users::Users;
use crate::driver::Port;

/// A scenario on one shard.
pub(super) struct Runner {
    idx: usize,
    config: ScenarioConfig,
    part: ShardPart,
    scenario: Option<Rc<Scenario>>,
    /// When it starts, when nothing starts any more, and when what runs is interrupted: by the run's clock.
    begin_ns: u64,
    end_ns: u64,
    kill_ns: u64,
    members: Vec<Member>,
    /// Members that it should have, and has not yet.
    missing_count: u64,
    kind: Kind,
    state: State,
    /// Iterations begun here.
    begun_count: u64,
    /// Members without an iteration; the last one is taken first.
    idle: Vec<u32>,
    iterating_count: u64,
    /// Members that wait until their iteration has lasted long enough, the soonest first.
    rests: BinaryHeap<Reverse<(u64, usize)>>,
    min_iteration_ns: u64,
    /// The soonest of the members' own ends.
    soonest_kill_ns: u64,
    is_past_end: bool,
    /// It was ended before its time: what it did not do was not dropped.
    is_stopped: bool,
}

/// A user of the scenario.
struct Member {
    user: u32,
    state: MemberState,
    begin_ns: u64,
    /// When its iteration is interrupted.
    kill_ns: u64,
    iteration_count: u64,
    /// It iterates until it is stopped; counted as active.
    is_active: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    Idle,
    Iterating,
    /// It waits until its iteration has lasted long enough.
    Resting,
}

enum Kind {
    /// Each user iterates as long as it may.
    Looping,
    /// As many users as the steps say.
    Ramping { steps: Vec<UserStep>, next: usize, user_count: u64 },
    /// Iterations arrive; `next_idx` counts those of all shards.
    Arriving { arrivals: Arrivals, next_idx: u64, orphans: Vec<u64> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Finished,
}

/// Users that the scenarios of a shard need at most at the same time.
pub(super) fn users_needed(runners: &[Runner]) -> u64 {
    let span = |runner: &Runner| {
        let begin = runner.config.start_time;
        (begin, begin + runner.config.executor.duration() + runner.config.graceful_stop)
    };
    let at = |moment: Duration| -> u64 {
        let running = runners.iter().filter(|runner| span(runner).0 <= moment && moment < span(runner).1);
        running.map(Runner::planned_count).sum()
    };
    runners.iter().map(|runner| at(span(runner).0)).max().unwrap_or(0)
}

impl Runner {
    pub(super) fn new(
        idx: usize,
        config: &ScenarioConfig,
        part: &ShardPart,
        min_iteration: Duration,
    ) -> Self {
        let kind = match &config.executor {
            Executor::RampingVus { start_vus, stages, .. } => {
                let mut steps = user_steps(*start_vus, stages);
                steps.iter_mut().for_each(|step| step.user_count = part.segment.part_of(step.user_count));
                Kind::Ramping { steps, next: 0, user_count: 0 }
            }
            Executor::ConstantArrivalRate { rate, time_unit, duration, .. } => {
                Kind::arriving(Arrivals::constant(*rate, *time_unit, *duration), part)
            }
            Executor::RampingArrivalRate { start_rate, time_unit, stages, .. } => {
                Kind::arriving(Arrivals::ramping(*start_rate, *time_unit, stages), part)
            }
            _ => Kind::Looping,
        };
        Self {
            idx,
            config: config.clone(),
            part: part.clone(),
            scenario: None,
            begin_ns: u64::MAX,
            end_ns: u64::MAX,
            kill_ns: u64::MAX,
            members: Vec::new(),
            missing_count: 0,
            kind,
            state: State::Waiting,
            begun_count: 0,
            idle: Vec::new(),
            iterating_count: 0,
            rests: BinaryHeap::new(),
            min_iteration_ns: min_iteration.as_nanos() as u64,
            soonest_kill_ns: u64::MAX,
            is_past_end: false,
            is_stopped: false,
        }
    }

    /// Users of this shard that are made before the start.
    fn planned_count(&self) -> u64 {
        self.part.part_of(self.config.executor.planned_vus())
    }

    /// `setup()` is over.
    pub(super) fn set_begin(&mut self, begin_ns: u64) {
        let nanos = |duration: Duration| duration.as_nanos() as u64;
        self.begin_ns = begin_ns + nanos(self.config.start_time);
        self.end_ns = self.begin_ns + nanos(self.config.executor.duration());
        self.kill_ns = self.end_ns + nanos(self.config.graceful_stop);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    pub(super) fn turn(&mut self, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        if self.state == State::Waiting && now_ns >= self.begin_ns {
            self.begin(users);
            self.follow_steps(now_ns);
            self.start_idle(now_ns, users, stage, port);
        }
        if self.state != State::Running {
            return;
        }
        self.is_past_end |= now_ns >= self.end_ns;
        let has_more = self.is_short() && self.fill_up(users);
        if self.follow_steps(now_ns) || has_more {
            self.start_idle(now_ns, users, stage, port);
        }
        self.end_rests(now_ns, users, stage, port);
        self.start_arrivals(now_ns, users, stage, port);
        self.interrupt_late(now_ns, users, port);
        self.finish_when_done(now_ns, users, stage);
    }

    fn begin(&mut self, users: &mut Users) {
        self.state = State::Running;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.scenario = Some(Rc::new(Scenario {
            name: self.config.name.as_str().into(),
            executor: self.config.executor.name().to_owned(),
            exec: self.config.exec.clone(),
            env: self.config.env.clone(),
            tags: self.config.tags.clone(),
            http: self.config.http,
            start_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        }));
        self.missing_count = self.planned_count();
        self.fill_up(users);
        self.idle.reverse();
    }

    /// Takes the users that are free; true where one was missing.
    fn fill_up(&mut self, users: &mut Users) -> bool {
        let before = self.missing_count;
        while self.missing_count > 0
            && let Some(user) = users.take_free()
        {
            self.missing_count -= 1;
            self.admit(user, users);
        }
        self.missing_count < before
    }

    /// It has fewer users than it should: a scenario that ends as this one begins has them still.
    pub(super) fn is_short(&self) -> bool {
        self.state == State::Running && self.missing_count > 0 && !self.is_past_end
    }

    fn admit(&mut self, user: u32, users: &mut Users) {
        let nth = self.members.len();
        users.set_owner(user, Some((self.idx, nth)));
        self.members.push(Member::new(user));
        self.idle.push(nth as u32);
    }

    /// An iteration has ended: it is counted, and its user goes on.
    pub(super) fn on_ended(
        &mut self,
        nth: usize,
        outcome: &Outcome,
        now_ns: u64,
        (users, stage, port): (&mut Users, &Stage, &mut Port),
    ) {
        let member = &mut self.members[nth];
        let duration_ns = users.clock_ns(now_ns).saturating_sub(member.begin_ns);
        member.state = MemberState::Idle;
        member.kill_ns = u64::MAX;
        self.iterating_count -= 1;
        let user = member.user;
        self.settle(outcome, user, duration_ns, users);
        self.count_traffic(user, users, port);
        if let Kind::Arriving { .. } = &self.kind {
            self.idle.push(nth as u32);
            self.deactivate(nth, users);
        } else if duration_ns < self.min_iteration_ns && now_ns < self.end_ns {
            self.members[nth].state = MemberState::Resting;
            self.rests.push(Reverse((now_ns + self.min_iteration_ns - duration_ns, nth)));
        } else {
            self.go_on(nth, now_ns, users, stage, port);
        }
    }

    fn go_on(&mut self, nth: usize, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        match self.next_iteration(nth, now_ns, stage) {
            Some(idx) => {
                self.activate(nth, users);
                self.start(nth, idx, now_ns, users, port);
            }
            None => {
                self.idle.push(nth as u32);
                self.deactivate(nth, users);
            }
        }
    }

    /// Users without an iteration begin one, where the executor wants that.
    fn start_idle(&mut self, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        if let Kind::Arriving { .. } = &self.kind {
            return;
        }
        for nth in std::mem::take(&mut self.idle).into_iter().rev() {
            self.go_on(nth as usize, now_ns, users, stage, port);
        }
        self.idle.reverse();
    }

    fn end_rests(&mut self, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        while let Some(Reverse((until_ns, nth))) = self.rests.peek().copied() {
            if until_ns > now_ns && now_ns < self.end_ns {
                break;
            }
            self.rests.pop();
            self.members[nth].state = MemberState::Idle;
            self.go_on(nth, now_ns, users, stage, port);
        }
    }

    fn settle(&self, outcome: &Outcome, user: u32, duration_ns: u64, users: &mut Users) {
        let is_interrupted = *outcome == Outcome::Interrupted;
        users.note_ended(is_interrupted);
        if let Outcome::Failed(error) = outcome {
            let (executor, name) = (self.config.executor.name(), &self.config.name);
            users.note_failed();
            log_failure(&users.shared.console, error, executor, name);
        }
        if !is_interrupted {
            let custom = users.tags_of(user);
            let tags = self.tags([&custom, &[]]);
            users.recorder().add(MetricId::ITERATIONS, 1.0, &tags);
            users.recorder().add(MetricId::ITERATION_DURATION, duration_ns as f64 / 1e6, &tags);
        }
    }

    /// As in k6, a user's bytes are those of the iteration in whose time they were sent or received.
    fn count_traffic(&self, user: u32, users: &Users, port: &mut Port) {
        let custom = users.tags_of(user);
        users.count_traffic(user, &self.tags([&custom, &[]]), port);
    }

    /// Tags of a sample of the scenario.
    fn tags<'a>(&'a self, custom: [&'a [(String, String)]; 2]) -> Tags<'a> {
        Tags {
            scenario: &self.config.name,
            group: "",
            check: None,
            http: None,
            custom,
            system: SystemTags::default(),
            vu: (0, 0),
            metadata: &[],
        }
    }

    fn interrupt_late(&mut self, now_ns: u64, users: &mut Users, port: &mut Port) {
        if now_ns < self.soonest_kill_ns.min(self.kill_ns) || self.iterating_count == 0 {
            return;
        }
        for member in &self.members {
            if member.state == MemberState::Iterating && now_ns >= member.kill_ns.min(self.kill_ns) {
                users.interrupt(member.user, now_ns, port);
            }
        }
        let later = self.members.iter().map(|member| member.kill_ns).filter(|kill_ns| *kill_ns > now_ns);
        self.soonest_kill_ns = later.min().unwrap_or(u64::MAX);
    }

    /// The number of users follows its steps; a user that is taken away may end its iteration. True when the number has changed.
    fn follow_steps(&mut self, now_ns: u64) -> bool {
        let Kind::Ramping { steps, next, user_count } = &mut self.kind else { return false };
        let before = *user_count;
        while let Some(step) = steps.get(*next).filter(|step| self.begin_ns + step.at_ns <= now_ns) {
            *user_count = step.user_count;
            *next += 1;
        }
        if *user_count == before {
            return false;
        }
        let Executor::RampingVus { graceful_ramp_down, .. } = &self.config.executor else { return true };
        let graceful_ns = graceful_ramp_down.as_nanos() as u64;
        for (nth, member) in self.members.iter_mut().enumerate() {
            let is_wanted = self.part.machine_idx(nth as u64) < *user_count;
            match (is_wanted, member.state) {
                (true, _) => member.kill_ns = u64::MAX,
                (false, MemberState::Iterating) if member.kill_ns == u64::MAX => {
                    member.kill_ns = now_ns + graceful_ns;
                    self.soonest_kill_ns = self.soonest_kill_ns.min(member.kill_ns);
                }
                (false, _) => {}
            }
        }
        true
    }

    /// Whether a user goes on, and with which iteration.
    fn next_iteration(&mut self, nth: usize, now_ns: u64, stage: &Stage) -> Option<u64> {
        if now_ns >= self.end_ns {
            return None;
        }
        match (&self.config.executor, &self.kind) {
            (Executor::SharedIterations { iterations, .. }, _) => {
                let iterations = self.part.segment.part_of(*iterations);
                let taken = &stage.scenario(self.idx).taken;
                if taken.load(Ordering::Relaxed) >= iterations {
                    return None;
                }
                Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|idx| *idx < iterations)
            }
            (Executor::PerVuIterations { iterations, .. }, _) => {
                (self.members[nth].iteration_count < *iterations).then(|| self.own_idx())
            }
            (_, Kind::Ramping { user_count, .. }) => {
                (self.part.machine_idx(nth as u64) < *user_count).then(|| self.own_idx())
            }
            _ => Some(self.own_idx()),
        }
    }

    /// Iterations of all shards have different numbers.
    fn own_idx(&self) -> u64 {
        self.part.machine_idx(self.begun_count)
    }

    fn activate(&mut self, nth: usize, users: &mut Users) {
        if !std::mem::replace(&mut self.members[nth].is_active, true) {
            users.note_active(1);
        }
    }

    fn deactivate(&mut self, nth: usize, users: &mut Users) {
        if std::mem::replace(&mut self.members[nth].is_active, false) {
            users.note_active(-1);
        }
    }

    fn start(&mut self, nth: usize, idx: u64, now_ns: u64, users: &mut Users, port: &mut Port) {
        let Some(scenario) = self.scenario.clone() else { return };
        let progress = self.progress(idx);
        self.begun_count += 1;
        let member = &mut self.members[nth];
        self.iterating_count += 1;
        member.state = MemberState::Iterating;
        member.iteration_count += 1;
        member.begin_ns = users.clock_ns(now_ns);
        let work = Work::Iterate(Iteration { scenario, idx, progress });
        users.begin(member.user, work, now_ns, port);
    }

    /// As k6 reports it: of iterations that are counted their share, else that of the time. `idx`: the iteration that begins.
    fn progress(&self, idx: u64) -> Progress {
        let (done, count) = match &self.config.executor {
            // Those before it are done, but for one of each other user.
            Executor::SharedIterations { vus, iterations, .. } => {
                let segment = &self.part.segment;
                let others = segment.part_of(*vus).saturating_sub(1);
                (idx.saturating_sub(others), segment.part_of(*iterations))
            }
            Executor::PerVuIterations { iterations, .. } => {
                (self.begun_count - self.iterating_count, self.planned_count() * iterations)
            }
            _ => {
                let length_ns = self.end_ns - self.begin_ns;
                return Progress::Span { begin_ns: self.begin_ns, length_ns };
            }
        };
        Progress::Share(done as f64 / count.max(1) as f64)
    }

    /// Iterations that have arrived begin on free users; where there is none, they are dropped.
    fn start_arrivals(&mut self, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        while self.take_arrival(now_ns) {
            match self.idle.pop() {
                Some(nth) => self.start_arrived(nth as usize, now_ns, users, port),
                None => self.miss(now_ns, users, stage),
            }
        }
        if self.part.shard_count > 1 {
            self.adopt_orphans(now_ns, users, stage, port);
        }
    }

    fn start_arrived(&mut self, nth: usize, now_ns: u64, users: &mut Users, port: &mut Port) {
        self.activate(nth, users);
        self.start(nth, self.own_idx(), now_ns, users, port);
    }

    /// Takes the next arrival of this shard, if its time has come.
    fn take_arrival(&mut self, now_ns: u64) -> bool {
        let Kind::Arriving { arrivals, next_idx, .. } = &mut self.kind else { return false };
        let due_ns = arrivals.due_ns(self.part.segment.whole_idx(*next_idx));
        let is_due = due_ns.is_some_and(|due_ns| self.begin_ns + due_ns <= now_ns);
        *next_idx += if is_due { u64::from(self.part.shard_count) } else { 0 };
        is_due
    }

    /// An arrival finds no free user here: another shard may have one; and one more user is made, while there may be more.
    fn miss(&mut self, now_ns: u64, users: &mut Users, stage: &Stage) {
        let max_count = self.part.part_of(self.config.executor.max_vus());
        if (self.members.len() as u64) < max_count
            && let Some(user) = users.take_free().or_else(|| users.make_one().ok())
        {
            self.admit(user, users);
        }
        if self.part.shard_count > 1 {
            stage.scenario(self.idx).orphans.fetch_add(1, Ordering::Relaxed);
            if let Kind::Arriving { orphans, .. } = &mut self.kind {
                orphans.push(now_ns);
            }
        } else {
            self.drop_arrivals(1, users, stage);
        }
    }

    /// Nobody was free for these. k6 says once for a scenario that there are too few users, and may be no more.
    fn drop_arrivals(&self, count: u64, users: &Users, stage: &Stage) {
        self.drop_iterations(count, users);
        let max_count = self.config.executor.max_vus();
        let is_full = self.members.len() as u64 >= self.part.part_of(max_count);
        if count == 0 || !is_full || stage.scenario(self.idx).has_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        let text = format!(
            "Insufficient VUs, reached {} active VUs and cannot initialize more",
            self.part.segment.part_of(max_count)
        );
        let fields = [("executor", self.config.executor.name()), ("scenario", &self.config.name)];
        users.shared.console.fields(squall_script::Level::Warning, &text, &fields);
    }

    /// Arrivals that no shard could take are dropped by the one they came to.
    fn adopt_orphans(&mut self, now_ns: u64, users: &mut Users, stage: &Stage, port: &mut Port) {
        let Kind::Arriving { .. } = &self.kind else { return };
        let shared = &stage.scenario(self.idx).orphans;
        let take = || {
            shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
        };
        while !self.idle.is_empty() && take() {
            let Some(nth) = self.idle.pop() else { break };
            self.start_arrived(nth as usize, now_ns, users, port);
        }
        self.expire_orphans(now_ns, users, stage);
    }

    fn expire_orphans(&mut self, now_ns: u64, users: &Users, stage: &Stage) {
        let shared = &stage.scenario(self.idx).orphans;
        let take = || {
            shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
        };
        let Kind::Arriving { orphans, .. } = &mut self.kind else { return };
        let before = orphans.len();
        orphans.retain(|at_ns| now_ns < at_ns + ORPHAN_NS);
        let dropped = (0..before - orphans.len()).filter(|_| take()).count();
        self.drop_arrivals(dropped as u64, users, stage);
    }

    fn drop_iterations(&self, count: u64, users: &Users) {
        if count > 0 {
            let tags = self.tags([&users.shared.options.tags, &self.config.tags]);
            users.recorder().add(MetricId::DROPPED_ITERATIONS, count as f64, &tags);
        }
    }

    fn finish_when_done(&mut self, now_ns: u64, users: &mut Users, stage: &Stage) {
        let is_quiet = self.iterating_count == 0 && self.rests.is_empty();
        if !is_quiet || !(now_ns >= self.end_ns || self.is_exhausted(stage)) {
            return;
        }
        self.state = State::Finished;
        self.expire_orphans(u64::MAX, users, stage);
        if !self.is_stopped {
            self.count_dropped(users, stage);
        }
        for nth in 0..self.members.len() {
            self.deactivate(nth, users);
        }
        for member in self.members.drain(..) {
            users.set_owner(member.user, None);
            users.give_back(member.user);
        }
    }

    /// All iterations that were asked for have been begun.
    fn is_exhausted(&self, stage: &Stage) -> bool {
        match &self.config.executor {
            Executor::SharedIterations { iterations, .. } => {
                stage.scenario(self.idx).taken.load(Ordering::Relaxed)
                    >= self.part.segment.part_of(*iterations)
            }
            Executor::PerVuIterations { iterations, .. } => {
                self.missing_count == 0
                    && self.members.iter().all(|member| member.iteration_count >= *iterations)
            }
            _ => false,
        }
    }

    /// Iterations that there was no time for.
    fn count_dropped(&mut self, users: &Users, stage: &Stage) {
        let dropped = match &self.config.executor {
            Executor::SharedIterations { iterations, .. } => {
                // The first shard that notices takes all that are left.
                let iterations = self.part.segment.part_of(*iterations);
                let left = stage.scenario(self.idx).taken.fetch_max(iterations, Ordering::Relaxed);
                iterations.saturating_sub(left)
            }
            Executor::PerVuIterations { iterations, .. } => {
                let left = |member: &Member| iterations.saturating_sub(member.iteration_count);
                self.members.iter().map(left).sum::<u64>() + self.missing_count * iterations
            }
            _ => 0,
        };
        self.drop_iterations(dropped, users);
    }

    /// Everything ends now: nothing starts, and what runs is interrupted.
    pub(super) fn stop(&mut self, now_ns: u64, users: &mut Users, port: &mut Port) {
        if self.state == State::Waiting {
            self.state = State::Finished;
        }
        (self.end_ns, self.kill_ns) = (self.end_ns.min(now_ns), now_ns);
        self.rests.clear();
        self.is_stopped = true;
        self.interrupt_late(now_ns, users, port);
    }

    /// When `turn` is wanted.
    pub(super) fn next_due_ns(&self) -> u64 {
        match self.state {
            State::Waiting => self.begin_ns,
            State::Finished => u64::MAX,
            State::Running => {
                let own_ns = match &self.kind {
                    Kind::Looping => u64::MAX,
                    Kind::Ramping { steps, next, .. } => {
                        steps.get(*next).map_or(u64::MAX, |step| self.begin_ns + step.at_ns)
                    }
                    Kind::Arriving { arrivals, next_idx, .. } => {
                        let due_ns = arrivals.due_ns(self.part.segment.whole_idx(*next_idx));
                        due_ns.map_or(u64::MAX, |due_ns| self.begin_ns + due_ns)
                    }
                };
                let rest_ns = self.rests.peek().map_or(u64::MAX, |Reverse((until_ns, _))| *until_ns);
                // After the end, only what still runs is waited for.
                let end_ns =
                    if self.iterating_count > 0 && self.is_past_end { u64::MAX } else { self.end_ns };
                own_ns.min(rest_ns).min(end_ns).min(self.soonest_kill_ns).min(self.kill_ns)
            }
        }
    }
}

impl Kind {
    fn arriving(arrivals: Arrivals, part: &ShardPart) -> Self {
        Self::Arriving { arrivals, next_idx: part.machine_idx(0), orphans: Vec::new() }
    }
}

impl Member {
    fn new(user: u32) -> Self {
        Self {
            user,
            state: MemberState::Idle,
            begin_ns: 0,
            kill_ns: u64::MAX,
            iteration_count: 0,
            is_active: false,
        }
    }
}

/// How long an arrival waits for a free user on another shard: a little more than any shard sleeps.
const ORPHAN_NS: u64 = 12_000_000;
