//! Records what happened: histograms, counters, one-second series, thresholds, the verdict on the generator.
//!
//! Owns: the merge laws (a merge of parts equals the whole). Never: protocols, sockets, terminals, the clock.
//!
//! The way of a figure: a shard folds each [`Sample`] into its [`Snapshot`] of the running second; once a second that snapshot is
//! handed over whole and merged into the run's. Nothing keeps samples.

mod alt_svc;
mod buckets;
mod counted;
mod criterion;
mod failure;
mod figures;
mod histogram;
mod http2;
mod machine;
mod merge;
mod objectives;
mod part;
mod quic;
mod reason;
mod replay;
mod run;
mod sample;
mod script;
mod series;
mod sessions;
mod share;
mod sketch;
mod snapshot;
mod sparse;
mod status;
mod streams;
mod threshold;
mod timeline;
mod verdict;
mod websockets;

pub use alt_svc::AltSvc;
pub use counted::Counted;
pub use failure::{Cause, EXAMPLE_TEXT_BYTES_MAX, FailureCount, FailureExample, Failures, Phase};
pub use histogram::Histogram;
pub use http2::Http2;
pub use machine::{CpuTimes, MachineSecond};
pub use merge::{NamedRun, Unmergeable, merge};
pub use objectives::{Objectives, StreamFacts, StreamGaps};
pub use part::{Part, PartKind, ToolFigures, ToolRun};
pub use quic::{PathSums, Quic};
pub use reason::{Reason, ReasonKind};
pub use replay::{Difference, LearnedValue, ON_TIME_NS, Replay};
pub use run::{End, RUN_RECORD_SCHEMA, RunRecord, RunRecorder, RunSetup, StoppedBy};
pub use sample::{Outcome, Phases, Protocol, RowKey, Sample};
pub use script::{
    Judged, MetricRules, Rule, RuleError, RuleOutcome, Rules, ScriptCheck, ScriptFigures, ScriptMetric,
    ScriptThreshold, ScriptUnit, ScriptValue, Trend,
};
pub use series::{PhaseSums, QuicPoint, Series, SeriesPoint};
pub use sessions::{Handshakes, Kept, Negotiated, Sessions, Terms};
pub use share::{Share, ShareRecorder};
pub use sketch::Sketch;
pub use snapshot::{Generator, PhaseHistograms, Row, Snapshot};
pub use status::StatusCounts;
pub use streams::StreamFigures;
pub use threshold::{Threshold, ThresholdResult, Unit, WatchedThreshold};
pub use timeline::{Event, EventKind, Monitor, MonitorUnit, SAMPLE_COUNT_MAX};
pub use verdict::{Status, Verdict};
pub use websockets::{Close, CloseCount, ClosedBy, WebSockets};
