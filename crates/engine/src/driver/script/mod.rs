//! k6 scripts as a load: their users, scenarios and figures on each shard.
//!
//! `stage` is what the shards share, `users` the virtual users of one shard, `runner` one scenario on one shard, `schedule` the
//! arithmetic of k6's executors, `figures` what is measured, `reply` how the end of a request looks to a script,
//! `load` how a script becomes one, `summary` the call of `handleSummary()` after all of it.

mod figures;
mod load;
mod reply;
mod routes;
mod runner;
mod schedule;
mod sections;
mod stage;
mod streams;
mod summary;
#[cfg(test)]
mod tests;
mod users;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use squall_measure::Snapshot;
use squall_plan::{ShardPart, TlsPolicy};
use squall_script::{
    Console, MetricId, Options, Outcome, Program, SampleOutput, SampleStream, Shared, Spec, Work,
};

use super::stream::StreamReport;
use super::{AnyDriver, Driver, DriverBox, DriverFactory, Ended, Port};
use crate::Error;
use crate::prepare::Route;

use figures::Figures;
use routes::Routes;
use runner::Runner;
use sections::SectionRecorder;
use stage::Phase;
use users::Users;

pub use figures::Submetric;
pub use load::{LoadScript, ScriptSource};
pub use sections::Sections;
pub use stage::{ScriptEnd, SetupPart, Stage};
pub use summary::SummaryRun;

/// A k6 script that is to be run.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    /// The script.
    pub program: Arc<Program>,
    /// Its options.
    pub options: Arc<Options>,
    /// Where it speaks.
    pub console: Arc<Console>,
    /// How its requests reach their hosts.
    routes: Arc<Routes>,
    /// Sub-metrics that thresholds ask for.
    pub submetrics: Vec<Submetric>,
    /// Where every sample is written to.
    pub samples: Vec<Arc<SampleOutput>>,
    /// Each scenario and group has figures of its own.
    pub has_sections: bool,
    /// Trends keep every value.
    pub exact: bool,
    /// What the shards share, and what is left of it at the end.
    pub stage: Arc<Stage>,
}

impl ScriptRun {
    /// A script that is run by this process alone, and of which nothing but its figures is wanted. `policy`: how TLS is spoken to hosts that
    /// no other rule is for.
    ///
    /// # Errors
    /// When a certificate or key of its options cannot be used.
    pub fn new(
        program: Arc<Program>,
        options: Options,
        console: Arc<Console>,
        policy: &TlsPolicy,
    ) -> Result<Self, Error> {
        Ok(Self {
            routes: Arc::new(Routes::new(&options, &program, policy)?),
            stage: Arc::new(Stage::new(options.scenarios.len(), SetupPart::Alone)),
            options: Arc::new(options),
            program,
            console,
            submetrics: Vec::new(),
            samples: Vec::new(),
            has_sections: false,
            exact: false,
        })
    }
}

impl ScriptRun {
    /// Whether there is a `setup()` or a `teardown()` to be called: they have a user, which costs as much memory as any.
    fn has_special_work(&self) -> bool {
        let calls = |is_off: bool, name: &str| !is_off && self.program.has_function(name);
        calls(self.options.no_setup, "setup") || calls(self.options.no_teardown, "teardown")
    }

    /// A shard's part: what the script's own options say goes before the load's segment.
    fn part(&self, of_load: &ShardPart) -> ShardPart {
        let segment = self.options.segment.as_ref().unwrap_or(&of_load.segment).clone();
        ShardPart { segment, ..*of_load }
    }
}

impl DriverFactory for ScriptRun {
    fn make(&self, part: &ShardPart) -> Result<Box<dyn AnyDriver>, Error> {
        Ok(Box::new(ScriptDriver::new(self, self.part(part))?))
    }

    fn connections_per_host(&self) -> u32 {
        self.options.batch_per_host.max(1)
    }

    fn user_count_max(&self) -> u64 {
        self.options.scenarios.iter().map(|scenario| scenario.executor.max_vus()).sum()
    }
}

/// A script on one shard.
struct ScriptDriver {
    part: ShardPart,
    stage: Arc<Stage>,
    options: Arc<Options>,
    figures: Rc<Figures>,
    /// Writes each sample, where that is wanted.
    stream: Option<Rc<SampleStream>>,
    sections: Option<Rc<SectionRecorder>>,
    users: Users,
    runners: Vec<Runner>,
    phase: Phase,
    is_stopped: bool,
    flushed_ns: u64,
}

impl AnyDriver for ScriptDriver {
    fn into_driver(self: Box<Self>) -> DriverBox {
        DriverBox(self)
    }
}

impl ScriptDriver {
    fn new(run: &ScriptRun, part: ShardPart) -> Result<Self, Error> {
        let figures = Rc::new(Figures::new(&run.program, &run.submetrics, run.exact));
        let recorder: Rc<dyn squall_script::Recorder> = Rc::clone(&figures) as _;
        let tags = &run.options.runtime.tags;
        let stream = (!run.samples.is_empty())
            .then(|| Rc::new(SampleStream::new(Rc::clone(&recorder), &run.samples, tags)));
        let recorder = stream.clone().map_or(recorder, |stream| stream as Rc<dyn squall_script::Recorder>);
        let sections = run.has_sections.then(|| {
            let empty = Figures::new(&run.program, &[], run.exact).into_inner();
            Rc::new(SectionRecorder::new(Rc::clone(&recorder), empty))
        });
        let recorder = sections.clone().map_or(recorder, |sections| sections as _);
        let runtime = Arc::new(run.options.runtime.clone());
        let shared = Shared::new(runtime, recorder, Arc::clone(&run.console), run.stage.counts());
        let mut users = Users::new(run, Rc::new(shared.with_part(part.segment.clone())), &part);
        let scenarios = run.options.scenarios.iter().enumerate();
        let runners: Vec<Runner> = scenarios
            .map(|(idx, config)| Runner::new(idx, config, &part, run.options.min_iteration_duration))
            .collect();
        users.make(runner::users_needed(&runners)).map_err(refused)?;
        if part.is_first() && run.has_special_work() {
            users.make_special().map_err(refused)?;
        }
        run.stage.add_shard();
        users.flush_counts(&run.stage);
        Ok(Self {
            part,
            stage: Arc::clone(&run.stage),
            options: Arc::clone(&run.options),
            figures,
            stream,
            sections,
            users,
            runners,
            phase: Phase::Setup,
            is_stopped: false,
            flushed_ns: 0,
        })
    }

    /// Before the scenarios: `setup()`, on the first shard; the others wait for what it gives.
    fn prepare(&mut self, now_ns: u64, port: &mut Port) {
        if self.part.is_first() && self.stage.calls_setup() && !self.users.has_begun_setup {
            self.users.has_begun_setup = true;
            if self.options.no_setup || !self.users.program.has_function("setup") {
                self.stage.finish_setup(None, now_ns);
            } else {
                self.users.begin_special(
                    Work::Setup,
                    now_ns + self.options.setup_timeout.as_nanos() as u64,
                    now_ns,
                    port,
                );
            }
        }
        if let Some(begin_ns) = self.stage.begin_ns() {
            *self.users.shared.setup_data.borrow_mut() = self.stage.setup_data().map(Rc::from);
            self.phase = Phase::Running;
            self.runners.iter_mut().for_each(|runner| runner.set_begin(begin_ns));
        } else if self.stage.is_over() {
            self.phase = Phase::Over;
        }
    }

    fn run(&mut self, now_ns: u64, port: &mut Port) {
        if !self.is_stopped && (self.stage.is_stopped() || self.take_abort()) {
            self.interrupt_all(now_ns, port);
        }
        // Those that end meanwhile are for the next turn: a script that never waits must not keep the others waiting.
        for _ in 0..self.users.ended_count() {
            let Some(((runner_idx, nth), outcome)) = self.users.take_ended() else { break };
            let runner = &mut self.runners[runner_idx];
            runner.on_ended(nth, &outcome, now_ns, (&mut self.users, &self.stage, port));
        }
        for runner in &mut self.runners {
            runner.turn(now_ns, &mut self.users, &self.stage, port);
        }
        if self.runners.iter().all(Runner::is_finished) {
            self.phase = Phase::Teardown;
            self.stage.leave();
        }
    }

    /// `exec.test.abort()` of one user ends the run for all.
    fn take_abort(&self) -> bool {
        match self.users.shared.abort.borrow_mut().take() {
            Some(reason) => {
                self.stage.end(ScriptEnd::Aborted(reason));
                true
            }
            None => false,
        }
    }

    fn interrupt_all(&mut self, now_ns: u64, port: &mut Port) {
        self.is_stopped = true;
        for runner in &mut self.runners {
            runner.stop(now_ns, &mut self.users, port);
        }
    }

    /// After the scenarios of all shards: `teardown()`, on the first shard.
    fn tear_down(&mut self, now_ns: u64, port: &mut Port) {
        if !self.part.is_first() || !self.stage.calls_teardown() {
            self.phase = Phase::Over;
            return;
        }
        if !self.stage.have_all_left() {
            return;
        }
        if self.options.no_teardown || !self.users.program.has_function("teardown") {
            self.phase = Phase::Over;
        } else if !self.users.has_begun_teardown {
            self.users.has_begun_teardown = true;
            let deadline_ns = now_ns + self.options.teardown_timeout.as_nanos() as u64;
            self.users.begin_special(Work::Teardown, deadline_ns, now_ns, port);
        }
    }

    /// What `setup()` and `teardown()` have come to.
    fn look_at_special(&mut self, now_ns: u64, port: &mut Port) {
        let Some((outcome, is_late)) = self.users.take_special() else { return };
        let is_setup = self.phase == Phase::Setup;
        self.users.count_special_traffic(if is_setup { "::setup" } else { "::teardown" }, port);
        match outcome {
            Outcome::Done(data) if is_setup => self.stage.finish_setup(data, now_ns),
            Outcome::Done(_) => {}
            _ if is_late => self.stage.end(ScriptEnd::TimedOut { is_setup }),
            Outcome::Failed(error) => self.stage.end(ScriptEnd::Failed { error, is_setup }),
            Outcome::Aborted(reason) => self.stage.end(ScriptEnd::Aborted(reason)),
            Outcome::Interrupted => self.stage.end(ScriptEnd::Stopped),
        }
        if !is_setup {
            self.phase = Phase::Over;
        }
    }

    fn set_stream_time(&self) {
        if let Some(stream) = &self.stream {
            let unix_time = SystemTime::now().duration_since(UNIX_EPOCH);
            stream.set_time(unix_time.unwrap_or_default());
        }
    }

    /// Samples that belong to no user.
    fn stream_of_run(&self, values: &[(MetricId, f64)]) {
        if let Some(stream) = &self.stream {
            self.set_stream_time();
            values.iter().for_each(|(metric, value)| stream.write_of_run(*metric, *value));
        }
    }

    fn flush(&mut self, now_ns: u64) {
        if now_ns >= self.flushed_ns + FLUSH_NS {
            self.flushed_ns = now_ns;
            self.users.flush_counts(&self.stage);
        }
    }
}

impl Driver for ScriptDriver {
    fn turn(&mut self, now_ns: u64, port: &mut Port) {
        self.figures.set_now(now_ns.max(1));
        self.set_stream_time();
        self.users.turn(now_ns, port);
        self.look_at_special(now_ns, port);
        if self.phase == Phase::Setup {
            self.prepare(now_ns, port);
        }
        if self.phase == Phase::Running {
            self.run(now_ns, port);
        }
        if self.phase == Phase::Teardown {
            self.tear_down(now_ns, port);
        }
        self.flush(now_ns);
    }

    fn next_due_ns(&self) -> u64 {
        let own = match self.phase {
            Phase::Setup | Phase::Teardown => self.flushed_ns.max(self.users.now_ns) + POLL_NS,
            Phase::Running if self.runners.iter().any(Runner::is_short) => self.users.now_ns + POLL_NS,
            Phase::Running => self.runners.iter().map(Runner::next_due_ns).min().unwrap_or(u64::MAX),
            Phase::Over => u64::MAX,
        };
        own.min(self.users.next_due_ns())
    }

    fn complete(&mut self, ended: Ended, now_ns: u64, port: &mut Port) {
        self.set_stream_time();
        self.users.deliver(ended, now_ns, port);
    }

    fn stream(&mut self, event: StreamReport, start_ns: u64, port: &mut Port) {
        self.set_stream_time();
        self.users.on_stream(event, start_ns, port);
    }

    fn stop(&mut self, now_ns: u64, port: &mut Port) {
        self.stage.end(ScriptEnd::Stopped);
        self.users.interrupt_special(now_ns, port);
        if self.phase == Phase::Running {
            self.interrupt_all(now_ns, port);
        }
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over
    }

    fn route(&self, spec: &Spec) -> Route {
        self.users.route(spec)
    }

    fn fill(&mut self, now_ns: u64, snapshot: &mut Snapshot) {
        self.users.flush_counts(&self.stage);
        if self.part.is_first() && self.phase != Phase::Setup {
            let gauges = self.figures.add_gauges(self.stage.counts().as_ref(), now_ns);
            self.stream_of_run(&gauges);
        }
        if let Some(stream) = &self.stream {
            stream.hand_over();
        }
        if let Some(sections) = &self.sections {
            self.stage.with_sections(|all| sections.hand_over(all));
        }
        self.figures.fill(snapshot.script.get_or_insert_default());
    }
}

fn refused(error: squall_script::ScriptError) -> Error {
    Error::Script(Box::new(error))
}

/// How often a shard looks whether the others are ready, and a scenario whether another one has given its users back.
const POLL_NS: u64 = 1_000_000;

/// How often a shard's counts are added to the run's.
const FLUSH_NS: u64 = 10_000_000;
