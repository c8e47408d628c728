//! Pods of a Kubernetes cluster as machines: one Job for each pool, and `kubectl exec` to the agent in each pod.
//!
//! Owns: how a pool is brought up, found ready and removed. Never: a client of the API server; `kubectl` is spawned as `ssh` is, so
//! that every kubeconfig, login plugin and proxy works. `kubectl` runs it and knows its complaints, `access` asks what is allowed,
//! `manifest` writes the Job and the Role, `pods` reads the state of pods, `placement` where they are, `pool` brings them up, `transport` reaches one of them,
//! `standby` is the process that keeps a container alive.
//! `watch` monitors pods and nodes of the target, and `observed` reads what the cluster says of them.

mod access;
mod kubectl;
mod manifest;
mod observed;
mod placement;
mod pods;
mod pool;
mod standby;
mod transport;
mod watch;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use squall_plan::file::MachineSettings;
use squall_plan::file::kubernetes::KubernetesPool;

use crate::fleet::Steer;
use crate::order::FleetPlan;

pub use manifest::manifests;
pub(crate) use observed::{ClusterEvent, ClusterSample};
pub(crate) use placement::Placement;
pub(crate) use pool::Pool;
pub use standby::standby;
pub(crate) use standby::write_pid_file;
pub(crate) use transport::PodTransport;
pub(crate) use watch::{ClusterLook, ClusterWatch};

/// The pools of pods that a plan has started. Their Jobs are deleted with it.
#[derive(Debug, Default)]
pub struct Pools(Mutex<Vec<Arc<Pool>>>);

impl Pools {
    /// The pool that a machine belongs to; nothing of it is created yet.
    pub(crate) fn pool(
        &self,
        spec: &Arc<KubernetesPool>,
        plan: &FleetPlan,
        settings: &MachineSettings,
    ) -> Arc<Pool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.iter().find(|pool| Arc::ptr_eq(&pool.spec, spec)) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(Pool::new(spec, plan, settings));
        pools.push(Arc::clone(&pool));
        pool
    }

    /// Deletes the Jobs that were created. `note` gets what takes long, and what could not be deleted. Where the user ended the run at
    /// once, `kubectl` is left to it after a few seconds.
    pub fn remove(&self, steer: &Steer, note: &mut dyn FnMut(&str)) {
        let pools = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let removals = removals(pools);
        let begin = Instant::now();
        let mut is_noted = false;
        loop {
            match removals.recv_timeout(LOOK_EVERY) {
                Ok(left) => note(&left),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if begin.elapsed() > DELETION_QUIET && !std::mem::replace(&mut is_noted, true) {
                note("deleting the Job of the pods");
            }
            if begin.elapsed() > DELETION_AFTER_ABORT_MAX && steer.is_aborted() {
                return note("the Job of the pods is not deleted yet: `kubectl` is still at it");
            }
        }
    }
}

/// Deletes each pool's Job on a thread of its own; gives what could not be deleted.
fn removals(pools: Vec<Arc<Pool>>) -> Receiver<String> {
    let (sender, left) = mpsc::channel();
    for pool in pools {
        let sender = sender.clone();
        // Nobody waits any more where that took too long.
        thread::spawn(move || pool.remove().map_err(|left| drop(sender.send(left))));
    }
    left
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.remove(&Steer::default(), &mut |_| {});
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A deletion that takes longer than this is reported.
const DELETION_QUIET: Duration = Duration::from_secs(2);

/// The second Ctrl-C ends the program after ten seconds, whatever hangs; ending the agents has five of them.
const DELETION_AFTER_ABORT_MAX: Duration = Duration::from_secs(3);
