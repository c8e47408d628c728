//! The commands on recorded traffic.

pub(crate) mod convert;
mod import;
pub(crate) mod mock;
mod progress;
pub(crate) mod reading;
pub(crate) mod record;
mod redact;
pub(crate) mod replay;
mod summary;
pub(crate) mod view;
