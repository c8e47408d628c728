//! A load that is ready to be driven, whichever kind of event loop drives it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use squall_measure::RowKey;
use squall_plan::{Load, What};

use crate::dns::Names;
use crate::pace::connection_count_max;
use crate::setup::ShardSetup;
use crate::shard::{Shard, warm_up_tls};
use crate::{Error, prepare, sessions};

/// A load, by its kind of event loop.
#[derive(Clone)]
pub(crate) enum Ready {
    /// Requests on connections: `shard`.
    Requests(Arc<prepare::Prepared>),
    /// Connections for their own sake: `sessions`.
    Sessions(Arc<sessions::Prepared>),
}

impl Ready {
    /// Prepares a load: opens its files, reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        Ok(match load.what {
            What::Handshake(_) | What::Idle(_) => {
                Self::Sessions(Arc::new(sessions::Prepared::new(load, rows, stop)?))
            }
            _ => Self::Requests(Arc::new(prepare::Prepared::new(load, rows, stop)?)),
        })
    }

    /// The load as planned.
    pub(crate) fn load(&self) -> &Load {
        match self {
            Self::Requests(prepared) => &prepared.load,
            Self::Sessions(prepared) => &prepared.load,
        }
    }

    /// Rows of figures, those of the loads before this one included.
    pub(crate) fn rows(&self) -> &[RowKey] {
        match self {
            Self::Requests(prepared) => &prepared.rows,
            Self::Sessions(prepared) => &prepared.rows,
        }
    }

    /// Names of its targets.
    pub(crate) fn names(&self) -> &Names {
        match self {
            Self::Requests(prepared) => &prepared.names,
            Self::Sessions(prepared) => &prepared.names,
        }
    }

    /// The most connections that the load opens: requests go to each target on connections of its own.
    pub(crate) fn connection_count(&self) -> u64 {
        let load = self.load();
        let one_target = load.segment.part_of(connection_count_max(&load.when));
        match self {
            Self::Requests(prepared) => one_target * prepared.target_count(),
            Self::Sessions(_) => one_target,
        }
    }

    /// Does on a new thread what must not happen within the run.
    pub(crate) fn warm_up(&self) {
        match self {
            Self::Requests(prepared) => warm_up_tls(prepared),
            Self::Sessions(prepared) => sessions::warm_up(prepared),
        }
    }
}

impl ShardSetup<Ready> {
    /// Drives this shard's part of the load; returns when that ended, on the monotonic clock.
    pub(crate) fn run(self, start_ns: u64) -> Result<u64, Error> {
        match self.prepared.clone() {
            Ready::Requests(prepared) => Shard::new(self.with(prepared), start_ns).and_then(Shard::run),
            Ready::Sessions(prepared) => sessions::SessionShard::new(self.with(prepared), start_ns)
                .and_then(sessions::SessionShard::run),
        }
    }
}
