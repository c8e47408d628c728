//! `handleSummary()` after the run: one user of its own, whose requests are made and not counted.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use squall_measure::Snapshot;
use squall_plan::ShardPart;
use squall_script::{Outcome, Shared, Spec, Work};

use super::users::Users;
use super::{ScriptRun, refused};
use crate::Error;
use crate::driver::{AnyDriver, Driver, DriverBox, DriverFactory, Ended, Port};
use crate::prepare::Route;

/// A call of `handleSummary()`, which is run like a load.
#[derive(Debug)]
pub struct SummaryRun {
    run: ScriptRun,
    data: String,
    ended: Arc<Mutex<Option<Outcome>>>,
}

impl SummaryRun {
    /// With this data, as JSON.
    pub fn new(run: ScriptRun, data: String) -> Self {
        Self { run, data, ended: Arc::default() }
    }

    /// How it ended; `None`: it did not begin, or took too long.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl DriverFactory for SummaryRun {
    fn make(&self, part: &ShardPart) -> Result<Box<dyn AnyDriver>, Error> {
        let run = &self.run;
        let part = run.part(part);
        let runtime = Arc::new(run.options.runtime.clone());
        let shared = Shared::without_recorder(runtime, Arc::clone(&run.console), run.stage.counts());
        let mut users = Users::new(run, Rc::new(shared), &part);
        if part.is_first() {
            users.make_special().map_err(refused)?;
        }
        let work = part.is_first().then(|| Work::Summary(Rc::from(self.data.as_str())));
        Ok(Box::new(SummaryDriver {
            users,
            is_finished: work.is_none(),
            work,
            ended: Arc::clone(&self.ended),
        }))
    }

    fn connections_per_host(&self) -> u32 {
        self.run.options.batch_per_host.max(1)
    }

    fn user_count_max(&self) -> u64 {
        1
    }
}

/// The call on one shard: on the first it is made, the others have nothing to do.
struct SummaryDriver {
    users: Users,
    /// Until it has begun.
    work: Option<Work>,
    ended: Arc<Mutex<Option<Outcome>>>,
    is_finished: bool,
}

impl AnyDriver for SummaryDriver {
    fn into_driver(self: Box<Self>) -> DriverBox {
        DriverBox(self)
    }
}

impl Driver for SummaryDriver {
    fn turn(&mut self, now_ns: u64, port: &mut Port) {
        self.users.turn(now_ns, port);
        if let Some(work) = self.work.take() {
            self.users.begin_special(work, now_ns + TIMEOUT_NS, now_ns, port);
        }
        if let Some((outcome, is_late)) = self.users.take_special() {
            self.is_finished = true;
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome).filter(|_| !is_late);
        }
    }

    fn next_due_ns(&self) -> u64 {
        if self.work.is_some() { 0 } else { self.users.next_due_ns() }
    }

    fn complete(&mut self, ended: Ended, now_ns: u64, port: &mut Port) {
        self.users.deliver(ended, now_ns, port);
    }

    fn stop(&mut self, now_ns: u64, port: &mut Port) {
        self.users.interrupt_special(now_ns, port);
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn route(&self, spec: &Spec) -> Route {
        self.users.route(spec)
    }

    fn fill(&mut self, _now_ns: u64, _snapshot: &mut Snapshot) {}
}

/// k6's own `handleSummaryTimeout`.
const TIMEOUT_NS: u64 = 120_000_000_000;
