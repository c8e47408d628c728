//! `squall agent`: makes loads on this machine for a controller, which speaks over standard input and output.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use squall_engine::{Control, DriverFactory, LoadScript, Observer, ScriptEnd, ScriptRun, Span, Stage};
use squall_fleet::tool::ToolJob;
use squall_fleet::{
    Beginner, Job, LoadEnd, LoadOrder, LoadWork, Port, Ready, ScriptWork, Trouble, Voice, Worker, attach,
    serve, standby,
};
use squall_measure::{MachineSecond, RowKey, RunRecorder, RunSetup, Snapshot};
use squall_plan::{OptionStyle, Plan, What};

use crate::args::AgentArgs;
use crate::failure::{ExitCode, Failure};
use crate::load::{
    self,
    script::{ScriptReader, stage_failure},
};
use crate::signals::Watch;

/// Serves one controller.
pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode, Failure> {
    if let Some(wait_max) = args.standby {
        standby(wait_max);
        return Ok(ExitCode::Ok);
    }
    // Ctrl-C in a terminal goes to every process there: what it means is for the controller to say.
    let _ignored = Watch::start(|_| {})?;
    if let Some(socket) = &args.attach {
        return attach(socket, std::io::stdin(), std::io::stdout())
            .map(|()| ExitCode::Ok)
            .map_err(|trouble| Failure::usage(trouble.message, trouble.help));
    }
    serve(std::io::stdin(), std::io::stdout(), args.folder.clone(), &Engine).map_err(|trouble| {
        Failure::usage(format!("the agent cannot run: {}", trouble.message), trouble.help)
    })?;
    Ok(ExitCode::Ok)
}

/// Makes loads with the engine.
struct Engine;

impl Worker for Engine {
    fn prepare(&self, order: &LoadOrder, folder: &Path, voice: Voice) -> Result<Box<dyn Job>, Trouble> {
        let (mut plan, script) = match &order.work {
            LoadWork::Tool(tool) => return Ok(Box::new(ToolJob::new(order, tool, folder)?)),
            LoadWork::Plan(plan) => (squall_engine::settled((**plan).clone())?, None),
            LoadWork::Script(work) => {
                let script = script(work, voice)
                    .map_err(|failure| Trouble::new(failure.message, failure.help))?
                    .shared(order.is_first);
                (script.plan, Some(script.run))
            }
        };
        for own in &mut plan.loads {
            own.name.clone_from(&order.name);
            own.segment = order.segment.clone();
            if let What::WebSocket(websocket) = &mut own.what {
                websocket.is_copied = order.is_copied;
            }
        }
        Ok(Box::new(EngineJob { plan, script, control: Control::new(), started: Arc::default() }))
    }
}

/// Compiles a script; `voice` carries what it says.
fn script(work: &ScriptWork, voice: Voice) -> Result<LoadScript, Failure> {
    let script = load::script::read(&work.path, None, &work.settings, ScriptReader::plain(Box::new(voice)))?;
    load::script::check(&script.plan)?;
    Ok(script)
}

struct EngineJob {
    plan: Plan,
    script: Option<ScriptRun>,
    control: Control,
    /// When the load started.
    started: Arc<OnceLock<SystemTime>>,
}

impl Job for EngineJob {
    fn stopper(&self) -> Box<dyn Fn(bool) + Send> {
        let control = self.control.clone();
        Box::new(move |at_once| if at_once { control.abort() } else { control.drain() })
    }

    fn beginner(&self) -> Beginner {
        let stage = self.script.as_ref().map(|script| Arc::clone(&script.stage));
        let started = Arc::clone(&self.started);
        Box::new(move |begin| match (&stage, begin) {
            (Some(stage), Some((setup_data, at))) => {
                let start = started.get().copied().unwrap_or(at);
                stage.begin(setup_data, at.duration_since(start).unwrap_or_default());
            }
            (Some(stage), None) => stage.end(ScriptEnd::Stopped),
            (None, _) => {}
        })
    }

    fn run(self: Box<Self>, port: &mut Port) -> Result<LoadEnd, Trouble> {
        let Self { plan, script, control, started } = *self;
        let script = script.map(Arc::new);
        let stage = script.as_ref().map(|script| Arc::clone(&script.stage));
        let factories = script.into_iter().map(|script| script as Arc<dyn DriverFactory>).collect();
        let mut reporter = Reporter { port, stage: stage.clone(), started: &started };
        let record = squall_engine::run_driven(&plan, factories, &control, &mut reporter);
        let record = record.map_err(|error| trouble(&error))?;
        let failure = stage.and_then(|stage| stage_failure(&stage));
        Ok(LoadEnd {
            started_unix_ns: port.started_unix_ns(),
            duration: record.duration,
            stopped_by: record.stopped_by,
            trouble: failure.map(|failure| Trouble::new(failure.message, failure.help)),
            tool: None,
        })
    }
}

/// Why a load cannot be made, with help in the words of plans.
fn trouble(error: &squall_engine::Error) -> Trouble {
    let help = error
        .help(OptionStyle::Keys)
        .unwrap_or_else(|| "check the process limits there: `ulimit -a`".to_owned());
    let is_target_unreachable = error.is_target_unreachable();
    Trouble { is_target_unreachable, ..Trouble::new(error.to_string(), help) }
}

/// Passes on what the engine reports.
struct Reporter<'a> {
    port: &'a mut Port,
    /// Of a script whose `setup()` was not reported yet.
    stage: Option<Arc<Stage>>,
    started: &'a OnceLock<SystemTime>,
}

impl Observer for Reporter<'_> {
    fn start(&mut self, setup: &RunSetup) -> Option<SystemTime> {
        let at = self.port.start(Ready {
            plan: setup.plan.clone(),
            rows: setup.rows.clone(),
            open_model: setup.open_model,
            lag_allowed: setup.lag_allowed,
            environment: setup.environment.clone(),
        });
        if let Some(at) = at {
            // It starts once.
            let _ = self.started.set(at);
        }
        at
    }

    fn rows(&mut self, rows: &[RowKey]) {
        self.port.rows(rows);
    }

    fn second(&mut self, span: Span, snapshot: &Snapshot) {
        self.port.second(span.second_idx, span.shard_idx, snapshot);
    }

    fn close(&mut self, second_idx: u32, machine: MachineSecond) {
        self.port.close(second_idx, machine);
    }

    fn end(&mut self, late: Duration) {
        self.port.note_late(late);
    }

    fn look(&mut self, _: &RunRecorder) {
        if let Some(stage) = self.stage.take_if(|stage| stage.is_set_up()) {
            self.port.set_up(stage.setup_data());
        }
    }
}
