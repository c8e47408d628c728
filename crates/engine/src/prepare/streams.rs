//! Loads whose responses are streams of events: how a response is read, and when a stream ends.
//!
//! Owns: the translation of the plan. Never: the events themselves.

use std::time::Duration;

use squall_measure::Objectives;
use squall_plan::limits::STREAM_RETRY_MAX;
use squall_plan::{StreamFormat, StreamLoad};

use crate::sys::nanoseconds;
use crate::{Error, Remedy};

/// How every stream of such a load is handled.
#[derive(Debug, Clone)]
pub(crate) struct StreamPolicy {
    pub(crate) format: StreamFormat,
    /// The data of a stream's last event.
    pub(crate) done: Option<Box<[u8]>>,
    /// How long a stream is held from its head on; `u64::MAX`: to its end.
    pub(crate) hold_ns: u64,
    /// What is open at the load's end may end by itself.
    pub(crate) finishes: bool,
    /// What has ended is opened again.
    pub(crate) reconnects: bool,
    pub(crate) objectives: Option<Objectives>,
}

impl StreamPolicy {
    /// That of a load.
    pub(super) fn new(load: &StreamLoad) -> Result<Self, Error> {
        let objectives = load.objectives.as_deref().map(str::parse).transpose();
        let objectives = objectives.map_err(|error: squall_plan::InputError| Error::Option {
            option: "slo",
            problem: error.reason,
            remedy: Remedy::Set("write rules such as `first<500ms`", "RULES"),
        })?;
        Ok(Self {
            format: load.format,
            done: load.done.as_ref().map(|data| data.as_bytes().into()),
            hold_ns: load.hold.map_or(u64::MAX, nanoseconds),
            finishes: load.finishes,
            reconnects: load.reconnects,
            objectives,
        })
    }
}

/// How long a stream rests before it is opened again, as the server wants it.
pub(crate) fn retry_ns(asked: Duration) -> u64 {
    nanoseconds(asked.min(STREAM_RETRY_MAX))
}
