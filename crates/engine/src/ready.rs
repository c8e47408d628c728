//! A load that is ready to be driven.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use squall_measure::RowKey;
use squall_plan::Load;

use crate::dns::Names;
use crate::driver::{Driver, DriverBox, DriverFactory};
use crate::preflight::{socket_count, target_count};
use crate::setup::ShardSetup;
use crate::shard::{Shard, warm_up_tls};
use crate::{Error, prepare};

/// A load, by who decides what it does.
#[derive(Clone)]
pub(crate) enum Ready {
    /// What the plan says.
    Planned(Arc<prepare::Prepared>),
    /// What a driver decides.
    Driven(Arc<prepare::Prepared>, Arc<dyn DriverFactory>),
}

impl Ready {
    /// Prepares a load: opens its files, reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        Ok(Self::Planned(Arc::new(prepare::Prepared::new(load, rows, stop)?)))
    }

    /// A load whose requests a driver decides.
    pub(crate) fn driven(load: &Load, factory: Arc<dyn DriverFactory>) -> Self {
        Self::Driven(Arc::new(prepare::Prepared::for_driver(load)), factory)
    }

    /// The rows that a driver's requests make.
    pub(crate) fn book(&self) -> Option<&prepare::RowBook> {
        match self {
            Self::Driven(prepared, _) => prepared.book.as_deref(),
            Self::Planned(_) => None,
        }
    }

    /// Whether connections are opened for their own sake.
    pub(crate) fn opens_connections(&self) -> bool {
        self.prepared().sessions.is_some()
    }

    fn prepared(&self) -> &prepare::Prepared {
        match self {
            Self::Planned(prepared) | Self::Driven(prepared, _) => prepared,
        }
    }

    /// The load as planned.
    pub(crate) fn load(&self) -> &Load {
        &self.prepared().load
    }

    /// Rows of figures, those of the loads before this one included.
    pub(crate) fn rows(&self) -> &[RowKey] {
        &self.prepared().rows
    }

    /// Names of its targets.
    pub(crate) fn names(&self) -> &Names {
        &self.prepared().names
    }

    /// Where connections go; `None` where a script decides that while it runs.
    pub(crate) fn endpoints(&self) -> Option<Vec<SocketAddr>> {
        match self {
            Self::Driven(..) => None,
            Self::Planned(_) => Some(self.names().endpoints().collect()),
        }
    }

    /// The most sockets that the load has open: requests go to each target on connections of its own.
    pub(crate) fn socket_count(&self) -> u64 {
        let load = self.load();
        let one_target = load.segment.part_of(load.when.connection_count_max());
        let pool_count = match self {
            Self::Planned(prepared) => prepared.pool_count(),
            // How many hosts a script asks is not known before.
            Self::Driven(..) => 1,
        };
        socket_count(load, one_target * pool_count, pool_count.max(target_count(load)))
    }

    /// Does on a new thread what must not happen within the run.
    pub(crate) fn warm_up(&self) {
        warm_up_tls(self.prepared());
    }
}

impl ShardSetup<Ready> {
    /// Who decides the requests at run time, with its users: made before the start.
    pub(crate) fn driver(&self) -> Result<Option<Box<dyn Driver>>, Error> {
        let Ready::Driven(_, factory) = &self.prepared else { return Ok(None) };
        let DriverBox(driver) = factory.make(&self.part)?.into_driver();
        Ok(Some(driver))
    }

    /// Drives this shard's part of the load; returns when that ended, on the monotonic clock.
    pub(crate) fn run(self, start_ns: u64, driver: Option<Box<dyn Driver>>) -> Result<u64, Error> {
        match self.prepared.clone() {
            Ready::Driven(prepared, factory) => {
                let own = self.with(Arc::new(prepared.for_shard()));
                let per_host = factory.connections_per_host();
                match driver {
                    Some(driver) => Shard::driven(own, start_ns, (driver, per_host)).and_then(Shard::run),
                    None => Ok(start_ns),
                }
            }
            Ready::Planned(prepared) => Shard::new(self.with(prepared), start_ns).and_then(Shard::run),
        }
    }
}
