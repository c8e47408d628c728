//! The commands on recorded traffic.

pub(crate) mod convert;
mod import;
mod progress;
pub(crate) mod replay;
mod summary;
