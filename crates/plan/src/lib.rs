//! What to run: every input form is parsed into one validated [`Plan`].
//!
//! Owns: the plan's types, its units (durations, rates, sizes), its limits, and the schedules' arithmetic.
//! Never: sockets, JavaScript, terminals, the clock.

pub mod limits;
mod model;
mod profile;

pub use model::*;
pub use profile::{Profile, Stage};
