//! Loads whose responses are streams of events: how a response is read, and when a stream ends.
//!
//! Owns: the translation of the plan. Never: the events themselves.

use std::time::Duration;

use squall_measure::Objectives;
use squall_plan::limits::{STREAM_RETRY_DEFAULT, STREAM_RETRY_MAX};
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
    /// That of streams in a recording: each ends as it was recorded.
    pub(crate) fn recorded() -> Self {
        Self {
            format: StreamFormat::Sse,
            done: None,
            hold_ns: u64::MAX,
            finishes: true,
            reconnects: false,
            objectives: None,
        }
    }

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

/// What is known of a stream that was recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedStream {
    pub(crate) event_count: u64,
    /// From the beginning of its request to its end.
    pub(crate) length_ns: u64,
}

/// Where a stream goes on that is opened again. It outlives connections, and attempts that fail (WHATWG HTML, section 9.2.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamResumption {
    /// How long the server wants clients to wait.
    pub(crate) retry: Option<Duration>,
    /// The id of the last event; `None`: no event had one, empty: the server took it back.
    pub(crate) last_id: Option<Vec<u8>>,
}

impl StreamResumption {
    /// How long the stream rests before it is opened again.
    pub(crate) fn pause_ns(&self) -> u64 {
        nanoseconds(self.retry.unwrap_or(STREAM_RETRY_DEFAULT).min(STREAM_RETRY_MAX))
    }
}
