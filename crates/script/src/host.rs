//! What the native functions of one virtual user share: where the script is, what it waits for, what it has asked for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;

use crate::api::http::state::HttpState;
use crate::cookies::Jar;
use crate::error::{ErrorKind, ScriptError};
use crate::metrics::{MetricId, Tags};
use crate::program::Source;
use crate::shared::{Progress, Scenario, Shared};
use crate::step::{Reply, Request, Step};
use crate::streams::UserStreams;
use crate::timers::Timers;
use crate::vm::{Ctx, HostHooks, JsResult, Kept, Key, Suspender, Thrown, Value};

/// The state of one virtual user.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) shared: Rc<Shared>,
    /// Where modules and files come from.
    pub(crate) source: Source,
    pub(crate) phase: Cell<VuPhase>,
    pub(crate) ids: Cell<Ids>,
    pub(crate) scenario: RefCell<Option<Rc<Scenario>>>,
    pub(crate) scenario_progress: Cell<Progress>,
    pub(crate) jar: RefCell<Jar>,
    pub(crate) group: RefCell<String>,
    /// `exec.vu.metrics.tags`, the scenario's and the run's among them.
    pub(crate) tags: RefCell<Vec<(String, String)>>,
    /// `exec.vu.metrics.metadata`.
    pub(crate) metadata: RefCell<Vec<(String, String)>>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) http: HttpState,
    pub(crate) streams: RefCell<UserStreams>,
    /// The metric of `k6/x/sse`, where it is imported.
    pub(crate) event_metric: Cell<Option<MetricId>>,
    pub(crate) outbox: RefCell<Vec<Request>>,
    pub(crate) inbox: RefCell<Vec<Reply>>,
    pub(crate) now_ns: Cell<u64>,
    pub(crate) step: Cell<Step>,
    interrupt: Cell<Option<Interrupt>>,
    abort_reason: RefCell<Option<String>>,
    turn_begin: Cell<Option<Instant>>,
    /// State of a seeded `Math.random`.
    pub(crate) random: Cell<Option<u64>>,
    suspender: Suspender,
    rejections: RefCell<Vec<(Kept, Kept)>>,
    kept: RefCell<HashMap<String, Kept>>,
    /// What an iteration calls, found once for each scenario.
    pub(crate) callee: RefCell<Option<Callee>>,
    /// Names by the engine's number for them.
    names: RefCell<HashMap<u32, Rc<str>, FixedState>>,
}

/// What an iteration of a scenario calls, and with what.
#[derive(Debug)]
pub(crate) struct Callee {
    pub(crate) function: Kept,
    pub(crate) data: Kept,
}

/// What part of the script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VuPhase {
    /// Module bodies.
    Init,
    /// `setup()`.
    Setup,
    /// A scenario's function.
    Iteration,
    /// `teardown()`.
    Teardown,
    /// `handleSummary()`.
    Summary,
}

/// Numbers of the user and its iteration.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ids {
    /// From 1; 0 in init, setup and teardown.
    pub(crate) vu: u64,
    /// Iterations this user has begun before.
    pub(crate) iteration: u64,
    /// Of those, in the scenario that runs.
    pub(crate) iteration_in_scenario: u64,
    /// Of the scenario's iterations, which one this is.
    pub(crate) scenario_iteration: u64,
}

/// Why a script is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Its time is over.
    Stop,
    /// `exec.test.abort()`.
    Abort,
}

impl Host {
    pub(crate) fn new(shared: Rc<Shared>, source: Source, vu: u64) -> Self {
        let tags = shared.options.tags.clone();
        Self {
            shared,
            source,
            phase: Cell::new(VuPhase::Init),
            ids: Cell::new(Ids { vu, ..Ids::default() }),
            scenario: RefCell::default(),
            scenario_progress: Cell::new(Progress::Share(0.0)),
            jar: RefCell::default(),
            group: RefCell::default(),
            tags: RefCell::new(tags),
            metadata: RefCell::default(),
            timers: RefCell::default(),
            http: HttpState::default(),
            streams: RefCell::default(),
            event_metric: Cell::default(),
            outbox: RefCell::default(),
            inbox: RefCell::default(),
            now_ns: Cell::default(),
            step: Cell::new(Step::Idle),
            interrupt: Cell::default(),
            abort_reason: RefCell::default(),
            turn_begin: Cell::default(),
            random: Cell::default(),
            suspender: Suspender::default(),
            rejections: RefCell::default(),
            kept: RefCell::default(),
            callee: RefCell::default(),
            names: RefCell::new(HashMap::with_hasher(FixedState::default())),
        }
    }

    /// The host of a context.
    pub(crate) fn of(ctx: Ctx<'_>) -> &Self {
        ctx.host::<Self>()
    }

    /// The script goes on now.
    pub(crate) fn begin_turn(&self, now_ns: u64) {
        self.now_ns.set(now_ns);
        self.turn_begin.set(None);
    }

    /// Ends what runs as soon as it gives way.
    pub(crate) fn set_interrupt(&self, interrupt: Option<Interrupt>) {
        self.interrupt.set(interrupt);
    }

    pub(crate) fn interrupt(&self) -> Option<Interrupt> {
        self.interrupt.get()
    }

    /// `exec.test.abort()`: this user ends at once, and the driver learns why.
    pub(crate) fn abort(&self, reason: String) {
        *self.abort_reason.borrow_mut() = Some(reason.clone());
        *self.shared.abort.borrow_mut() = Some(reason);
        self.interrupt.set(Some(Interrupt::Abort));
    }

    pub(crate) fn abort_reason(&self) -> Option<String> {
        self.abort_reason.borrow().clone()
    }

    /// Leaves the script until a reply has come or the time is reached.
    pub(crate) fn wait(&self, ctx: Ctx<'_>, until_ns: Option<u64>) -> JsResult<()> {
        self.step.set(Step::Wait { until_ns });
        if !self.suspender.suspend() {
            return Err(ctx.throw_error("nothing can be awaited here"));
        }
        self.check_interrupt(ctx)
    }

    /// Throws what no script can catch when the script is to end.
    pub(crate) fn check_interrupt(&self, ctx: Ctx<'_>) -> JsResult<()> {
        if self.interrupt.get().is_none() {
            return Ok(());
        }
        let thrown = ctx.throw_error("interrupted");
        ctx.make_uncatchable();
        Err(thrown)
    }

    /// Throws unless module bodies run.
    pub(crate) fn require_init(&self, ctx: Ctx<'_>, what: &str) -> JsResult<()> {
        match self.phase.get() {
            VuPhase::Init => Ok(()),
            _ => Err(ctx.throw_error(&format!("{what} is only available in the init stage"))),
        }
    }

    /// Throws while module bodies run.
    pub(crate) fn forbid_init(&self, ctx: Ctx<'_>, what: &str) -> JsResult<()> {
        match self.phase.get() {
            VuPhase::Init => Err(ctx.throw_error(&format!("{what} in the init context is not supported"))),
            _ => Ok(()),
        }
    }

    /// Tags of a sample without a request. `call`: those given with the call.
    pub(crate) fn with_tags<T>(&self, call: &[(String, String)], use_tags: impl FnOnce(&Tags<'_>) -> T) -> T {
        let (scenario, group, own) = (self.scenario.borrow(), self.group.borrow(), self.tags.borrow());
        let metadata = self.metadata.borrow();
        let ids = self.ids.get();
        use_tags(&Tags {
            scenario: scenario.as_ref().map_or("", |scenario| &scenario.name),
            group: &group,
            check: None,
            http: None,
            custom: [&own, call],
            system: self.shared.options.system_tags,
            vu: (ids.vu, ids.iteration),
            metadata: &metadata,
        })
    }

    /// A value kept under a name, made when it is first asked for.
    pub(crate) fn kept<'js>(
        &self,
        ctx: Ctx<'js>,
        name: &str,
        make: impl FnOnce() -> JsResult<Value<'js>>,
    ) -> JsResult<Value<'js>> {
        if let Some(kept) = self.kept.borrow().get(name) {
            return Ok(ctx.restore(kept));
        }
        let value = make()?;
        self.keep(ctx, name, value.clone());
        Ok(value)
    }

    /// Keeps a value under a name.
    pub(crate) fn keep<'js>(&self, ctx: Ctx<'js>, name: &str, value: Value<'js>) {
        if let Some(old) = self.kept.borrow_mut().insert(name.to_owned(), value.keep()) {
            ctx.forget(old);
        }
    }

    /// A value kept under a name.
    pub(crate) fn find_kept<'js>(&self, ctx: Ctx<'js>, name: &str) -> Option<Value<'js>> {
        self.kept.borrow().get(name).map(|kept| ctx.restore(kept))
    }

    /// The text of a property name, made once.
    pub(crate) fn name_of(&self, key: Key<'_>) -> Rc<str> {
        if let Some(name) = self.names.borrow().get(&key.id()) {
            return Rc::clone(name);
        }
        let name: Rc<str> = key.text().into();
        self.names.borrow_mut().insert(key.id(), Rc::clone(&name));
        // The number must not be given to another name.
        key.pin();
        name
    }

    /// The first unhandled rejection; forgets all.
    pub(crate) fn take_rejection(&self, ctx: Ctx<'_>) -> Option<ScriptError> {
        let rejections = std::mem::take(&mut *self.rejections.borrow_mut());
        let mut first = None;
        for (promise, reason) in rejections {
            first = first.or_else(|| {
                let mut error = ScriptError::of(&ctx.restore(&reason));
                error.message = format!("Uncaught (in promise) {}", error.message);
                error.kind = ErrorKind::Rejection;
                Some(error)
            });
            ctx.forget(promise);
            ctx.forget(reason);
        }
        first
    }

    /// Another scenario begins.
    pub(crate) fn forget_callee(&self, ctx: Ctx<'_>) {
        if let Some(callee) = self.callee.borrow_mut().take() {
            ctx.forget(callee.function);
            ctx.forget(callee.data);
        }
    }
}

impl HostHooks for Host {
    fn suspender(&self) -> &Suspender {
        &self.suspender
    }

    /// A user that has had its turn gives way to others.
    fn on_interrupt(&self) -> bool {
        let begin = self.turn_begin.get().unwrap_or_else(|| {
            let begin = Instant::now();
            self.turn_begin.set(Some(begin));
            begin
        });
        if begin.elapsed() >= TURN_MAX && self.interrupt.get().is_none() {
            self.step.set(Step::Yield);
            self.suspender.suspend();
        }
        self.interrupt.get().is_some()
    }

    /// Others have their turn, and a run that ends ends this, too.
    fn give_way(&self, ctx: Ctx<'_>) -> JsResult<()> {
        if self.on_interrupt() { self.check_interrupt(ctx) } else { Ok(()) }
    }

    fn on_rejection(&self, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool) {
        let mut rejections = self.rejections.borrow_mut();
        if is_handled {
            let (handled, open): (Vec<_>, Vec<_>) =
                rejections.drain(..).partition(|(kept, _)| promise.is_kept(kept));
            *rejections = open;
            for (promise_kept, reason_kept) in handled {
                promise.ctx().forget(promise_kept);
                promise.ctx().forget(reason_kept);
            }
        } else {
            rejections.push((promise.clone().keep(), reason.clone().keep()));
        }
    }

    fn forget_values(&self, ctx: Ctx<'_>) {
        for (promise, reason) in self.rejections.borrow_mut().drain(..) {
            ctx.forget(promise);
            ctx.forget(reason);
        }
        self.kept.borrow_mut().drain().for_each(|(_, kept)| ctx.forget(kept));
        self.forget_callee(ctx);
        self.timers.borrow_mut().forget(ctx);
        self.http.end(ctx);
    }
}

/// The pending exception as an error.
pub(crate) fn error_of<T>(ctx: Ctx<'_>, result: JsResult<T>) -> Result<T, ScriptError> {
    result.map_err(|Thrown| ScriptError::thrown(ctx))
}

/// How long a user may run before others go first.
const TURN_MAX: Duration = Duration::from_millis(5);
