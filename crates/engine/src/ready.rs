//! A load that is ready to be driven, whichever kind of event loop drives it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use squall_measure::RowKey;
use squall_plan::{Load, What};

use crate::dns::Names;
use crate::driver::{Driver, DriverBox, DriverFactory, ShardPart};
use crate::setup::ShardSetup;
use crate::shard::{Shard, warm_up_tls};
use crate::{Error, prepare, sessions};

/// A load, by its kind of event loop.
#[derive(Clone)]
pub(crate) enum Ready {
    /// Requests on connections: `shard`.
    Requests(Arc<prepare::Prepared>),
    /// Requests that a driver decides: `shard` as well.
    Driven(Arc<prepare::Prepared>, Arc<dyn DriverFactory>),
    /// Connections for their own sake: `sessions`.
    Sessions(Arc<sessions::PreparedSessions>),
}

impl Ready {
    /// Prepares a load: opens its files, reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        Ok(match load.what {
            What::Handshake(_) | What::Idle(_) => {
                Self::Sessions(Arc::new(sessions::PreparedSessions::new(load, rows, stop)?))
            }
            _ => Self::Requests(Arc::new(prepare::Prepared::new(load, rows, stop)?)),
        })
    }

    /// A load whose requests a driver decides.
    pub(crate) fn driven(load: &Load, factory: Arc<dyn DriverFactory>) -> Self {
        Self::Driven(Arc::new(prepare::Prepared::for_driver(load)), factory)
    }

    /// The rows that a driver's requests make.
    pub(crate) fn book(&self) -> Option<&prepare::RowBook> {
        match self {
            Self::Driven(prepared, _) => prepared.book.as_deref(),
            Self::Requests(_) | Self::Sessions(_) => None,
        }
    }

    /// The load as planned.
    pub(crate) fn load(&self) -> &Load {
        match self {
            Self::Requests(prepared) | Self::Driven(prepared, _) => &prepared.load,
            Self::Sessions(prepared) => &prepared.load,
        }
    }

    /// Rows of figures, those of the loads before this one included.
    pub(crate) fn rows(&self) -> &[RowKey] {
        match self {
            Self::Requests(prepared) | Self::Driven(prepared, _) => &prepared.rows,
            Self::Sessions(prepared) => &prepared.rows,
        }
    }

    /// Names of its targets.
    pub(crate) fn names(&self) -> &Names {
        match self {
            Self::Requests(prepared) | Self::Driven(prepared, _) => &prepared.names,
            Self::Sessions(prepared) => &prepared.names,
        }
    }

    /// Where connections go; `None` where a script decides that while it runs.
    pub(crate) fn endpoints(&self) -> Option<Vec<SocketAddr>> {
        match self {
            Self::Driven(..) => None,
            Self::Requests(_) | Self::Sessions(_) => Some(self.names().endpoints().collect()),
        }
    }

    /// The most connections that the load opens: requests go to each target on connections of its own.
    pub(crate) fn connection_count(&self) -> u64 {
        let load = self.load();
        let one_target = load.segment.part_of(load.when.connection_count_max());
        match self {
            Self::Requests(prepared) => one_target * prepared.target_count(),
            // How many hosts a script asks is not known before.
            Self::Driven(..) | Self::Sessions(_) => one_target,
        }
    }

    /// Does on a new thread what must not happen within the run.
    pub(crate) fn warm_up(&self) {
        match self {
            Self::Requests(prepared) | Self::Driven(prepared, _) => warm_up_tls(prepared),
            Self::Sessions(prepared) => sessions::warm_up(prepared),
        }
    }
}

impl ShardSetup<Ready> {
    /// Who decides the requests at run time, with its users: made before the start.
    pub(crate) fn driver(&self) -> Result<Option<Box<dyn Driver>>, Error> {
        let Ready::Driven(_, factory) = &self.prepared else { return Ok(None) };
        let DriverBox(driver) = factory.make(ShardPart { share: self.share })?.into_driver();
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
            Ready::Requests(prepared) => Shard::new(self.with(prepared), start_ns).and_then(Shard::run),
            Ready::Sessions(prepared) => sessions::SessionShard::new(self.with(prepared), start_ns)
                .and_then(sessions::SessionShard::run),
        }
    }
}
