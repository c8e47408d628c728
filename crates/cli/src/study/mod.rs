//! The commands whose answer rests on many runs. Each run is a process of its own, so that none inherits the memory, the ports or the
//! luck of the one before.

mod capacity;
mod child;
mod compare;
mod files;
mod loads;
mod runs;
mod sweep;
mod watch;

pub(crate) use capacity::run as capacity;
pub(crate) use child::follow_study;
pub(crate) use compare::run as compare;
pub(crate) use runs::run as runs;
pub(crate) use sweep::run as sweep;
