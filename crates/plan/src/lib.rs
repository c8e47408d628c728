//! What to run: every input form is parsed into one validated [`Plan`].
//!
//! Owns: the plan's types, its units (durations, rates, sizes), its limits, and the schedules' arithmetic.
//! Never: sockets, JavaScript, terminals, the clock.

pub mod cookies;
pub mod endpoints;
pub mod file;
pub mod files;
mod input;
mod latin1;
pub mod limits;
pub mod load;
pub mod log_mask;
pub mod mask;
mod model;
mod nearest;
pub mod options;
mod portable;
pub mod printable;
mod problem;
mod profile;
mod replay;
pub mod rules;
mod script;
pub mod secret;
mod segment;
mod sessions;
pub mod shell;
mod spec;
mod streams;
pub mod units;
pub mod urls;
mod validate;
mod websocket;

pub use input::InputError;
pub use model::*;
pub use nearest::nearest;
pub use portable::{IdleOpening, PortablePlan};
pub use problem::{OptionProblem, OptionStyle, Problems, option_name};
pub use profile::{Profile, Stage};
pub use replay::{Change, Compare, ReplayLoad, ReplayPace};
pub use script::ScriptSettings;
pub use segment::{Segment, ShardPart};
pub use sessions::*;
pub use spec::*;
pub use streams::*;
pub use validate::{PlanError, validate_prepared_bytes};
pub use websocket::*;
