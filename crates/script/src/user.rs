//! One virtual user: an instance of the script on its own stack, resumed by its driver.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::api;
use crate::console::{Console, Level};
use crate::error::{ErrorKind, ScriptError};
use crate::host::{Callee, Host, Ids, Interrupt, VuPhase, error_of};
use crate::modules::{self, Loaded};
use crate::program::{Program, Source};
use crate::shared::{Progress, Scenario, Shared};
use crate::step::{Reply, Request, ScriptStreamEvent, Step, StreamRequest};
use crate::vm::{Ctx, Fiber, HostHooks, JsResult, Value, Vm, VmLimits};

/// A virtual user.
#[derive(Debug)]
pub struct User {
    fiber: Fiber,
    host: Rc<Host>,
    desk: Rc<Desk>,
}

/// What a user is to do.
#[derive(Debug, Clone)]
pub enum Work {
    /// Module bodies.
    Init,
    /// `setup()`.
    Setup,
    /// One iteration.
    Iterate(Iteration),
    /// `teardown(data)`.
    Teardown,
    /// `handleSummary(data)` of this JSON.
    Summary(Rc<str>),
    /// Frees everything.
    Exit,
}

/// One iteration.
#[derive(Debug, Clone)]
pub struct Iteration {
    /// In this scenario.
    pub scenario: Rc<Scenario>,
    /// Which of the scenario's iterations, over all users.
    pub idx: u64,
    /// How much of the scenario is over.
    pub progress: Progress,
}

/// How work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// By itself; what was returned, as JSON, of `setup` and `handleSummary`.
    Done(Option<String>),
    /// It threw.
    Failed(ScriptError),
    /// It was interrupted.
    Interrupted,
    /// `exec.test.abort()`, and why.
    Aborted(String),
}

/// Where work is put and outcomes are taken from.
#[derive(Debug, Default)]
struct Desk {
    work: RefCell<Option<Work>>,
    outcome: RefCell<Option<Outcome>>,
}

impl User {
    /// A user of a program, its module bodies run. `vu`: its number from 1; 0 for setup, teardown and the summary.
    ///
    /// # Errors
    /// When its memory cannot be had, or its init throws.
    pub fn new(shared: &Rc<Shared>, program: &Arc<Program>, vu: u64) -> Result<Self, ScriptError> {
        let mut user = Self::launch(shared, Source::Built(Arc::clone(program)), vu)?;
        match user.finish_alone(Work::Init) {
            Outcome::Failed(error) => Err(error),
            Outcome::Aborted(reason) => Err(ScriptError::aborted(reason)),
            Outcome::Done(_) | Outcome::Interrupted => Ok(user),
        }
    }

    pub(crate) fn launch(shared: &Rc<Shared>, source: Source, vu: u64) -> Result<Self, ScriptError> {
        let host = Rc::new(Host::new(Rc::clone(shared), source, vu));
        let desk = Rc::new(Desk::default());
        let counter = Rc::clone(&desk);
        let fiber = Fiber::new(STACK_BYTES, Rc::clone(&host), move |host| live(host, &counter));
        let fiber = fiber.map_err(|error| {
            let message = format!("cannot allocate the stack of a virtual user: {error}");
            ScriptError::new(ErrorKind::Load, message, "raise vm.max_map_count, or use fewer virtual users")
        })?;
        Ok(Self { fiber, host, desk })
    }

    /// Begins a piece of work, and goes on with it as far as it can.
    pub fn begin(&mut self, work: Work, now_ns: u64) -> Step {
        self.host.set_interrupt(None);
        // Requests of interrupted work no longer belong to any work.
        self.host.inbox.borrow_mut().clear();
        *self.desk.work.borrow_mut() = Some(work);
        self.resume(now_ns)
    }

    /// Goes on with the work.
    pub fn resume(&mut self, now_ns: u64) -> Step {
        self.host.begin_turn(now_ns);
        if self.fiber.resume() { self.host.step.get() } else { Step::Idle }
    }

    /// Gives a reply, to be seen at the next resume.
    pub fn deliver(&self, reply: Reply) {
        self.host.inbox.borrow_mut().push(reply);
    }

    /// Gives an event of a stream, to be seen at the next resume.
    pub fn deliver_event(&self, event: ScriptStreamEvent) {
        self.host.streams.borrow_mut().deliver(event);
    }

    /// Takes what is wanted of streams, in the order in which it was asked for.
    pub fn take_stream_requests(&self, into: &mut Vec<StreamRequest>) {
        self.host.streams.borrow_mut().take_commands(into);
    }

    /// Takes the requests that are to be sent.
    pub fn take_requests(&self, into: &mut Vec<Request>) {
        into.append(&mut self.host.outbox.borrow_mut());
    }

    /// Lets the work end as soon as the user is resumed.
    pub fn interrupt(&self) {
        self.host.set_interrupt(Some(Interrupt::Stop));
    }

    /// How the last work ended.
    pub fn outcome(&self) -> Outcome {
        self.desk.outcome.borrow_mut().take().unwrap_or(Outcome::Interrupted)
    }

    /// Does work that needs no driver: no requests are sent, and sleeps pass at once.
    pub(crate) fn finish_alone(&mut self, work: Work) -> Outcome {
        let mut step = self.begin(work, 0);
        loop {
            match step {
                Step::Idle => return self.outcome(),
                Step::Yield => step = self.resume(self.host.now_ns.get()),
                Step::Wait { until_ns: Some(until_ns) } => step = self.resume(until_ns),
                Step::Wait { until_ns: None } => {
                    self.interrupt();
                    step = self.resume(self.host.now_ns.get());
                }
            }
        }
    }

    /// Tags of its samples: the run's, the scenario's, and what it has added to `exec.vu.tags`.
    pub fn tags(&self) -> Ref<'_, Vec<(String, String)>> {
        self.host.tags.borrow()
    }

    /// Number of the user.
    pub fn vu(&self) -> u64 {
        self.host.ids.get().vu
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.host.set_interrupt(Some(Interrupt::Stop));
        *self.desk.work.borrow_mut() = Some(Work::Exit);
        for _ in 0..RESUMES_TO_END_MAX {
            if !self.fiber.resume() {
                return;
            }
            *self.desk.work.borrow_mut() = Some(Work::Exit);
        }
        self.fiber.abandon();
    }
}

/// The whole life of a user, on its fiber.
fn live(host: &Rc<Host>, desk: &Desk) {
    let limits = VmLimits { memory_bytes: MEMORY_BYTES_MAX, stack_bytes: STACK_BYTES - STACK_BYTES_RESERVED };
    let Some(vm) = Vm::new(Rc::clone(host), Rc::clone(&host.shared.heap), limits) else {
        let error = ScriptError::new(ErrorKind::Load, "out of memory", "use fewer virtual users");
        *desk.outcome.borrow_mut() = Some(Outcome::Failed(error));
        return;
    };
    let ctx = vm.ctx();
    loop {
        let work = desk.work.borrow_mut().take();
        match work {
            Some(Work::Exit) => return,
            Some(work) => *desk.outcome.borrow_mut() = Some(perform(host, ctx, work)),
            None => {}
        }
        host.step.set(Step::Idle);
        if !host.suspender().suspend() {
            return;
        }
    }
}

fn perform(host: &Host, ctx: Ctx<'_>, work: Work) -> Outcome {
    drop(ctx.take_trace());
    let result = match work {
        Work::Init => {
            let done = init(host, ctx);
            ctx.collect_garbage_from_now_on();
            done.map(|()| None)
        }
        Work::Setup => setup(host, ctx),
        Work::Iterate(iteration) => iterate(host, ctx, &iteration).map(|()| None),
        Work::Teardown => teardown(host, ctx).map(|()| None),
        Work::Summary(data) => summary(host, ctx, &data),
        Work::Exit => Ok(None),
    };
    let outcome = match (host.interrupt(), result) {
        (Some(Interrupt::Abort), _) => Outcome::Aborted(host.abort_reason().unwrap_or_default()),
        (Some(Interrupt::Stop), Err(_)) => Outcome::Interrupted,
        (_, Ok(value)) => Outcome::Done(value),
        (_, Err(error)) => Outcome::Failed(error),
    };
    host.timers.borrow_mut().forget(ctx);
    host.http.forget(ctx);
    api::sockets::forget(host, &outcome);
    host.group.borrow_mut().clear();
    outcome
}

fn init(host: &Host, ctx: Ctx<'_>) -> Result<(), ScriptError> {
    host.phase.set(VuPhase::Init);
    error_of(ctx, api::install_globals(ctx))?;
    error_of(ctx, modules::install(ctx))?;
    let entry = host.source.entry().to_owned();
    let exports = match error_of(ctx, modules::load(&host.source, ctx, &entry))? {
        Loaded::Module(module) => {
            drop(ctx.take_trace());
            settle(host, ctx, module.run())?;
            error_of(ctx, module.namespace())?
        }
        Loaded::Common(function) => error_of(ctx, modules::run_common(ctx, &entry, &function))?,
    };
    if host.source.is_building() {
        if let Some(path) =
            error_of(ctx, exports.get("options").and_then(|options| not_a_number(&options, 0)))?
        {
            let message = format!("option `{path}` is not a finite number, which options cannot have");
            return Err(ScriptError::new(ErrorKind::Load, message, "calculate it from numbers that are set"));
        }
        error_of(ctx, keep_exports(host, &exports))?;
    }
    host.keep(ctx, EXPORTS, exports);
    Ok(())
}

/// Remembers what the script exports: its functions by name, and its options.
fn keep_exports(host: &Host, exports: &Value<'_>) -> JsResult<()> {
    let mut functions = BTreeSet::new();
    for key in exports.keys()? {
        if exports.get_key(&key)?.is_function() {
            functions.insert(key.text());
        }
    }
    let options = exports.get("options")?;
    let json = if options.is_nullish() { None } else { options.to_json()? };
    let json = json.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Json::Null);
    host.source.keep_exports(json, functions);
    Ok(())
}

/// Where in the options a number is `NaN` or infinite: JSON would make a silent `null` of it.
fn not_a_number(value: &Value<'_>, depth: usize) -> JsResult<Option<String>> {
    if value.as_number().is_some_and(|number| !number.is_finite()) {
        return Ok(Some(String::new()));
    }
    if !value.is_object() || value.is_function() || depth >= OPTIONS_DEPTH_MAX {
        return Ok(None);
    }
    for key in value.keys()? {
        if let Some(path) = not_a_number(&value.get_key(&key)?, depth + 1)? {
            let dot = if path.is_empty() { "" } else { "." };
            return Ok(Some(format!("{}{dot}{path}", key.text())));
        }
    }
    Ok(None)
}

fn setup(host: &Host, ctx: Ctx<'_>) -> Result<Option<String>, ScriptError> {
    enter(host, VuPhase::Setup, "::setup");
    let function = exported(host, ctx, "setup")?;
    let value = settle(host, ctx, function.call(&ctx.undefined(), &[]))?;
    // k6 breaks down on this; going on without the data would fail somewhere else.
    if value.is_promise() && value.settled().is_none() {
        return Err(ScriptError::new(
            ErrorKind::Exception,
            "the promise that it returns is never settled",
            "resolve it, or await only promises that settle",
        ));
    }
    error_of(ctx, value.to_json())
}

fn teardown(host: &Host, ctx: Ctx<'_>) -> Result<(), ScriptError> {
    enter(host, VuPhase::Teardown, "::teardown");
    let function = exported(host, ctx, "teardown")?;
    let data = setup_data(host, ctx)?;
    settle(host, ctx, function.call(&ctx.undefined(), &[&data])).map(drop)
}

/// Calls `handleSummary`; gives the object it returns as JSON, with buffers as text.
fn summary(host: &Host, ctx: Ctx<'_>, data: &str) -> Result<Option<String>, ScriptError> {
    enter(host, VuPhase::Summary, "");
    let function = exported(host, ctx, "handleSummary")?;
    let data = error_of(ctx, ctx.parse_json(data))?;
    let value = settle(host, ctx, function.call(&ctx.undefined(), &[&data]))?;
    if value.is_nullish() {
        return Ok(None);
    }
    if !value.is_object() {
        let message = "handleSummary() should return a map with string keys";
        return Err(ScriptError::new(
            ErrorKind::Exception,
            message,
            "return an object such as { stdout: 'text' }",
        ));
    }
    error_of(ctx, texts_of(&value)).map(Some)
}

/// The members of an object as a JSON object of strings.
fn texts_of(object: &Value<'_>) -> JsResult<String> {
    let mut texts = serde_json::Map::new();
    for key in object.keys()? {
        let value = object.get_key(&key)?;
        let text = match value.bytes() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => value.to_string()?,
        };
        texts.insert(key.text(), text.into());
    }
    Ok(Json::Object(texts).to_string())
}

fn iterate(host: &Host, ctx: Ctx<'_>, iteration: &Iteration) -> Result<(), ScriptError> {
    let scenario = &iteration.scenario;
    let is_new = host.scenario.borrow().as_ref().is_none_or(|current| !Rc::ptr_eq(current, scenario));
    host.phase.set(VuPhase::Iteration);
    let mut ids = host.ids.get();
    if ids.iteration == 0 {
        error_of(ctx, api::declare_iteration(ctx))?;
    }
    if is_new {
        error_of(ctx, enter_scenario(host, ctx, scenario))?;
        ids.iteration_in_scenario = 0;
    }
    ids.scenario_iteration = iteration.idx;
    host.ids.set(ids);
    host.scenario_progress.set(iteration.progress);
    if !host.shared.options.no_cookies_reset {
        host.jar.borrow_mut().clear_all();
    }
    let result = call_scenario(host, ctx, scenario);
    host.ids.set(Ids {
        iteration: ids.iteration + 1,
        iteration_in_scenario: ids.iteration_in_scenario + 1,
        ..ids
    });
    result
}

fn call_scenario(host: &Host, ctx: Ctx<'_>, scenario: &Scenario) -> Result<(), ScriptError> {
    if host.callee.borrow().is_none() {
        let function = exported(host, ctx, &scenario.exec)?.keep();
        let data = setup_data(host, ctx)?.keep();
        *host.callee.borrow_mut() = Some(Callee { function, data });
    }
    let callee = host.callee.borrow().as_ref().map(|it| (ctx.restore(&it.function), ctx.restore(&it.data)));
    let Some((function, data)) = callee else { return Ok(()) };
    settle(host, ctx, function.call(&ctx.undefined(), &[&data])).map(drop)
}

/// The scenario's environment and tags replace those of the one before.
fn enter_scenario(host: &Host, ctx: Ctx<'_>, scenario: &Rc<Scenario>) -> JsResult<()> {
    let mut tags = host.shared.options.tags.clone();
    for (key, value) in &scenario.tags {
        tags.retain(|(known, _)| known != key);
        tags.push((key.clone(), value.clone()));
    }
    *host.tags.borrow_mut() = tags;
    host.metadata.borrow_mut().clear();
    host.forget_callee(ctx);
    let before = host.scenario.borrow_mut().replace(Rc::clone(scenario));
    let had_own_env = before.is_some_and(|before| !before.env.is_empty());
    if scenario.env.is_empty() && !had_own_env {
        return Ok(());
    }
    let env = api::environment(ctx)?;
    scenario.env.iter().try_for_each(|(name, value)| env.set(name, ctx.string(value)))?;
    ctx.global().define("__ENV", env)
}

fn enter(host: &Host, phase: VuPhase, group: &str) {
    host.phase.set(phase);
    // Each has its own user in k6.
    host.jar.borrow_mut().clear_all();
    group.clone_into(&mut host.group.borrow_mut());
    *host.tags.borrow_mut() = host.shared.options.tags.clone();
}

fn exported<'js>(host: &Host, ctx: Ctx<'js>, name: &str) -> Result<Value<'js>, ScriptError> {
    let exports = host.find_kept(ctx, EXPORTS).unwrap_or_else(|| ctx.undefined());
    let function = error_of(ctx, exports.get(name))?;
    if function.is_function() {
        return Ok(function);
    }
    let message = format!("function '{name}' not found in exports");
    Err(ScriptError::new(ErrorKind::Options, message, format!("export a function `{name}` from the script")))
}

/// What `setup()` gave: parsed once for each user, which keeps the same object.
fn setup_data<'js>(host: &Host, ctx: Ctx<'js>) -> Result<Value<'js>, ScriptError> {
    if let Some(data) = host.find_kept(ctx, SETUP_DATA) {
        return Ok(data);
    }
    let json = host.shared.setup_data.borrow().clone();
    let Some(json) = json else { return Ok(ctx.undefined()) };
    let data = error_of(ctx, ctx.parse_json(&json))?;
    host.keep(ctx, SETUP_DATA, data.clone());
    Ok(data)
}

/// What the event loop runs next. Kinds take turns: timers that are always due must not keep a socket's end from a script.
#[derive(Debug, Clone, Copy)]
enum Task {
    Timer,
    Reply,
    Event,
}

impl Task {
    const fn following(self) -> Self {
        match self {
            Self::Timer => Self::Reply,
            Self::Reply => Self::Event,
            Self::Event => Self::Timer,
        }
    }

    /// Runs one, where there is one.
    fn run(self, host: &Host, ctx: Ctx<'_>) -> JsResult<bool> {
        match self {
            Self::Timer => api::timers::run_due(host, ctx),
            Self::Reply => api::http::run_replies(ctx),
            Self::Event => api::websockets::run_event(host, ctx),
        }
    }
}

/// Runs the event loop until nothing is left to do; gives the value, of a promise what it settled to.
fn settle<'js>(host: &Host, ctx: Ctx<'js>, called: JsResult<Value<'js>>) -> Result<Value<'js>, ScriptError> {
    let value = error_of(ctx, called)?;
    let mut next = Task::Timer;
    loop {
        while let Some(job) = ctx.run_job() {
            error_of(ctx, job)?;
        }
        let settled = value.is_promise().then(|| value.settled()).flatten();
        if let Some(Err(reason)) = settled.as_ref().filter(|_| host.phase.get() == VuPhase::Init) {
            return Err(ScriptError::of(reason));
        }
        if let Some(error) = host.take_rejection(ctx) {
            return Err(error);
        }
        let mut has_run = false;
        for task in [next, next.following(), next.following().following()] {
            if error_of(ctx, task.run(host, ctx))? {
                (has_run, next) = (true, task.following());
                break;
            }
        }
        if has_run {
            continue;
        }
        let timer_ns = host.timers.borrow().next_ns();
        let is_pending = value.is_promise() && settled.is_none();
        if timer_ns.is_none() && !host.http.has_async() && !api::sockets::is_awaited(host, is_pending) {
            break;
        }
        error_of(ctx, host.wait(ctx, timer_ns))?;
    }
    match value.is_promise().then(|| value.settled()).flatten() {
        Some(Ok(value)) => Ok(value),
        // A rejection that the script has handled is its own matter, as in k6.
        _ => Ok(value),
    }
}

/// Reports an iteration that failed, as k6 does.
pub fn log_failure(console: &Console, error: &ScriptError, executor: &str, scenario: &str) {
    let fields = [("executor", executor), ("scenario", scenario), ("source", "stacktrace")];
    // k6 names no source of an unhandled rejection.
    let count = if error.kind == ErrorKind::Rejection { 2 } else { 3 };
    console.fields(Level::Error, &error.message, &fields[..count]);
}

/// Stack of a user: only the pages that were used take memory.
const STACK_BYTES: usize = 512 * 1024;

/// Part of it that is left to native functions when the script has used up its own.
const STACK_BYTES_RESERVED: usize = 96 * 1024;

/// Most memory of one user's JavaScript objects.
const MEMORY_BYTES_MAX: usize = 2 << 30;

/// How often a user that is to end may give way before it does.
const RESUMES_TO_END_MAX: u32 = 1000;

/// Options are no deeper than this.
const OPTIONS_DEPTH_MAX: usize = 12;

/// Where the script's exports are kept.
const EXPORTS: &str = "exports";

/// Where the parsed setup data is kept.
const SETUP_DATA: &str = "setup data";

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::console::Form;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn failed_iterations_are_reported_with_k6s_fields() {
        for (kind, fields) in [
            (ErrorKind::Exception, "msg=no executor=constant-vus scenario=a source=stacktrace\n"),
            (ErrorKind::Rejection, "msg=no executor=constant-vus scenario=a\n"),
        ] {
            let said = Said::default();
            let console = Console::new(Box::new(said.clone()), Form::Logfmt, Level::Info);
            log_failure(&console, &ScriptError::new(kind, "no", ""), "constant-vus", "a");
            let text = String::from_utf8(said.0.lock().unwrap().clone()).unwrap();
            assert!(text.ends_with(fields), "{text}");
        }
    }
}
