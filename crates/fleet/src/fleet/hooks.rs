//! Hooks: has machines run what the plan says before and after each step, one hook after the other.

use std::time::Instant;

use squall_measure::{Event, EventKind};

use super::jobs::{HookMoment, Step};
use super::step::listed;
use super::{Fleet, Steer, Watcher};
use crate::order::FleetHook;
use crate::protocol::{HookOrder, Order, Trouble};

impl Fleet<'_> {
    /// Runs the hooks of a step, each on all its machines at the same time.
    ///
    /// # Errors
    /// What failed in the first hook that did; those that would follow are left out.
    pub(super) fn run_hooks(
        &mut self,
        step_idx: usize,
        moment: HookMoment,
        steer: &Steer,
        watcher: &mut dyn Watcher,
    ) -> Result<(), Vec<Trouble>> {
        let plan = self.plan;
        let step = &plan.steps[step_idx];
        let (hooks, when) = match moment {
            HookMoment::Before => (&step.before, "before"),
            HookMoment::After => (&step.after, "after"),
        };
        for hook in hooks {
            // A run that is being stopped does not wait for the preparation of its load either.
            if self.steered > 1 || (self.steered > 0 && moment == HookMoment::Before) {
                break;
            }
            let machines: Vec<String> = hook.machine_idxs.iter().map(|&idx| self.machine_name(idx)).collect();
            let doing = format!("{when} `{}`, {}: {}", step.name, listed(&machines), hook.text);
            self.announce(&doing, watcher);
            self.run_hook(hook, &step.name, steer, watcher)?;
        }
        Ok(())
    }

    fn announce(&mut self, doing: &str, watcher: &mut dyn Watcher) {
        watcher.note(doing);
        if self.started_unix_ns > 0 {
            watcher.phase(Some(doing));
            let at_s = self.elapsed().as_secs_f64();
            self.events.push(Event { at_s, label: doing.to_owned(), kind: EventKind::Note });
        }
        doing.clone_into(&mut self.doing);
    }

    fn run_hook(
        &mut self,
        hook: &FleetHook,
        step_name: &str,
        steer: &Steer,
        watcher: &mut dyn Watcher,
    ) -> Result<(), Vec<Trouble>> {
        let mut env = hook.env.clone();
        env.insert("SQUALL_STEP".to_owned(), step_name.to_owned());
        self.hook_idx += 1;
        let (hook_idx, timeout) = (self.hook_idx, hook.timeout);
        let order = HookOrder { hook_idx, text: hook.text.clone(), words: hook.words.clone(), env, timeout };
        self.hook_ends = vec![None; self.links.len()];
        hook.machine_idxs.iter().for_each(|&idx| self.links[idx].order(Order::Hook(order.clone())));
        let is_awaited =
            |fleet: &Self, idx: usize| fleet.hook_ends[idx].is_none() && fleet.links[idx].lost.is_none();
        // The machine ends it in time; this is for one that lives and does not.
        let deadline = Instant::now() + timeout + super::HOOK_REPORT_MAX;
        let mut nothing = Step::new(0);
        while hook.machine_idxs.iter().any(|&idx| is_awaited(self, idx)) && Instant::now() < deadline {
            self.turn(&mut nothing, watcher);
            self.obey(steer);
        }
        let failed = |idx: &usize| {
            let trouble = match self.hook_ends[*idx].clone() {
                Some(Ok(())) => return None,
                Some(Err(trouble)) => trouble,
                None => Trouble::new(format!("hook `{}` did not finish", hook.text), LOST_HELP),
            };
            let message = format!("machine `{}`: {}", self.machine_name(*idx), trouble.message);
            Some(Trouble { message, ..trouble })
        };
        let failed: Vec<Trouble> = hook.machine_idxs.iter().filter_map(failed).collect();
        if failed.is_empty() { Ok(()) } else { Err(failed) }
    }
}

const LOST_HELP: &str = "check why the machine was lost";
