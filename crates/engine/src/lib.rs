//! Drives connections: thread-per-core event loops, pacing, TCP and TLS, names, and the kinds of load.
//!
//! Owns: sockets, threads, the clock. Never: ssh, HTML, argv.
//!
//! [`run()`] takes a plan and returns the record of what was measured. What the target does wrong is data in that record;
//! an [`Error`] says that the run itself could not be made.

mod control;
mod dial;
mod dns;
mod driver;
mod error;
mod key_log;
mod observer;
mod pace;
mod preflight;
mod prepare;
mod pulse;
mod quic;
mod ready;
mod run;
mod settle;
mod setup;
mod shard;
mod shard_count;
mod sources;
mod sys;
mod tls;
mod trouble;

pub use control::Control;
pub use driver::DriverFactory;
pub use driver::script::{
    LoadScript, ScriptEnd, ScriptRun, ScriptSource, Sections, SetupPart, Stage, Submetric, SummaryRun,
};
pub use error::{Error, Forbidden, Remedy};
pub use observer::{Observer, Span};
pub use pace::lag_allowed;
pub use preflight::{Need, Resource, check, needs};
pub use run::{run, run_driven};
pub use settle::settled;
#[cfg(feature = "fuzzing")]
pub use tls::fuzzing;

use control::Stop;
