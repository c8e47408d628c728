//! The jobs of the running step, and the moments around it.

use crate::ledger::Source;
use crate::order::FleetPlan;

/// One load on one machine in the running step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Preparing,
    Ready,
    Running,
    Over,
}

/// The loads of the running step.
pub(super) struct Step {
    pub(super) step_idx: usize,
    /// Machine, load, state.
    pub(super) jobs: Vec<(usize, usize, State)>,
    /// Load, and the machine whose `setup()` the others wait for; of a load that each makes all of, every machine for itself.
    pub(super) callers: Vec<(usize, usize)>,
    pub(super) origin_s: u32,
}

impl Step {
    pub(super) fn new(step_idx: usize) -> Self {
        Self { step_idx, jobs: Vec::new(), callers: Vec::new(), origin_s: 0 }
    }

    pub(super) fn state_mut(&mut self, machine_idx: usize, load_idx: usize) -> Option<&mut State> {
        let job =
            self.jobs.iter_mut().find(|(machine, load, _)| (*machine, *load) == (machine_idx, load_idx));
        job.map(|(_, _, state)| state)
    }

    pub(super) fn any(&self, state: State) -> bool {
        self.jobs.iter().any(|(_, _, job)| *job == state)
    }

    pub(super) fn source(&self, plan: &FleetPlan, machine_idx: usize, load_idx: usize) -> Source {
        let after_s = plan.loads[load_idx].start_after.as_secs() as u32;
        let step_origin_s = self.origin_s;
        let origin_s = step_origin_s + after_s;
        Source { machine_idx, load_idx, step_idx: self.step_idx, origin_s, step_origin_s }
    }
}

/// When hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookMoment {
    Before,
    After,
}
