//! Shows what happened: a run's record becomes a [`Summary`], and every face is drawn from that.
//!
//! Owns: units and wording, the faces (terminal, JSON, CSV, HTML, progress, live), and the saved runs. A face is a function
//! from a summary to text; a new one is a new file. Never: sockets, ssh, the clock. Nothing here prints: callers
//! pass the stream.

pub mod csv;
mod error;
mod files;
mod glance;
mod hints;
pub mod json;
pub mod junit;
pub mod markdown;

pub mod k6;
mod live;
mod outputs;
pub mod page;
mod parts;
mod progress;
mod replay;
mod script;
mod sessions;
pub mod store;
mod streams;
pub mod studies;
mod style;
mod summary;
pub mod terminal;
mod text;
mod time;
pub mod units;
mod websockets;
mod wording;

pub use error::Error;
pub use glance::{Glance, Goal, KindGlance, MachineGlance, Now};
pub use live::{Ask, Live};
pub use outputs::{Format, OutputSpec, Outputs};
pub use progress::{Progress, ProgressMode};
pub use style::{ColorChoice, Style, Tone};
pub use summary::*;
pub use wording::advice;

/// The JSON Schema (2020-12) of a serialised [`Summary`].
pub const SUMMARY_SCHEMA: &str = include_str!("../../../schema/summary.schema.json");

#[cfg(test)]
mod tests;
