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

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use squall_plan::file::MachineSettings;
use squall_plan::file::kubernetes::KubernetesPool;

use crate::order::FleetPlan;

pub use manifest::manifests;
pub(crate) use observed::{ClusterEvent, ClusterSample};
pub(crate) use placement::Placement;
pub(crate) use pool::Pool;
pub use standby::standby;
pub(crate) use standby::write_pid_file;
pub(crate) use transport::PodTransport;
pub(crate) use watch::{ClusterLook, ClusterWatch};

/// The pools of a plan. Their Jobs are deleted with it.
#[derive(Debug, Default)]
pub(crate) struct Pools(Mutex<Vec<Arc<Pool>>>);

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

    /// Deletes what was created; gives what could not be deleted.
    pub(crate) fn remove(&self) -> Vec<String> {
        let pools = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        thread::scope(|scope| {
            let removals: Vec<_> = pools.iter().map(|pool| scope.spawn(|| pool.remove())).collect();
            removals.into_iter().filter_map(|removal| removal.join().ok()?.err()).collect()
        })
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.remove();
    }
}
