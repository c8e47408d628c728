//! `squall agent`: makes loads on this machine for a controller, which speaks over standard input and output.

use std::path::Path;
use std::time::SystemTime;

use squall_engine::{Control, Observer, Span};
use squall_fleet::tool::ToolJob;
use squall_fleet::{Job, LoadEnd, LoadOrder, Port, Ready, Trouble, Worker, serve};
use squall_measure::{MachineSecond, RunRecorder, RunSetup, Snapshot};
use squall_plan::Plan;

use super::loads;
use crate::args::AgentArgs;
use crate::failure::{ExitCode, Failure};
use crate::signals::Watch;

/// Serves one controller.
pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode, Failure> {
    // Ctrl-C in a terminal goes to every process there: what it means is for the controller to say.
    let _ignored = Watch::start(|_| {})?;
    serve(std::io::stdin(), std::io::stdout(), args.folder.clone(), &Engine).map_err(|error| {
        Failure::usage(format!("the agent cannot work: {error}"), "`squall run` starts agents by itself")
    })?;
    Ok(ExitCode::Ok)
}

/// Makes loads with the engine.
struct Engine;

impl Worker for Engine {
    fn prepare(&self, order: &LoadOrder, folder: &Path) -> Result<Box<dyn Job>, Trouble> {
        // Files that the controller sent are named relative to the agent's folder.
        std::env::set_current_dir(folder).map_err(|error| {
            Trouble::new(format!("cannot enter `{}`: {error}", folder.display()), "try again")
        })?;
        if order.kind == "tool" {
            let order = LoadOrder { words: loads::joined(&order.words), ..order.clone() };
            return Ok(Box::new(ToolJob::new(&order, folder)?));
        }
        let mut plan = loads::plan(&order.kind, &order.words)
            .map_err(|failure| Trouble::new(failure.message, failure.help))?;
        for load in &mut plan.loads {
            load.name.clone_from(&order.name);
            load.segment = order.segment;
        }
        Ok(Box::new(EngineJob { plan, control: Control::new() }))
    }
}

struct EngineJob {
    plan: Plan,
    control: Control,
}

impl Job for EngineJob {
    fn stopper(&self) -> Box<dyn Fn(bool) + Send> {
        let control = self.control.clone();
        Box::new(move |at_once| if at_once { control.abort() } else { control.drain() })
    }

    fn run(self: Box<Self>, port: &mut Port) -> Result<LoadEnd, Trouble> {
        let record = squall_engine::run(&self.plan, &self.control, &mut Reporter(port)).map_err(|error| {
            let help =
                error.help().unwrap_or_else(|| "see what limits processes there: `ulimit -a`".to_owned());
            Trouble::new(error.to_string(), help)
        })?;
        Ok(LoadEnd {
            started_unix_ns: port.started_unix_ns(),
            duration: record.duration,
            stopped_by: record.stopped_by,
            tool: None,
        })
    }
}

/// Passes on what the engine tells.
struct Reporter<'a>(&'a mut Port);

impl Observer for Reporter<'_> {
    fn start(&mut self, setup: &RunSetup) -> Option<SystemTime> {
        self.0.start(Ready {
            plan: setup.plan.clone(),
            rows: setup.rows.clone(),
            open_model: setup.open_model,
            lag_allowed: setup.lag_allowed,
            environment: setup.environment.clone(),
        })
    }

    fn second(&mut self, span: Span, snapshot: &Snapshot) {
        self.0.second(span.second_idx, span.shard_idx, snapshot);
    }

    fn close(&mut self, second_idx: u32, machine: MachineSecond) {
        self.0.close(second_idx, machine);
    }

    fn look(&mut self, _: &RunRecorder) {}
}
