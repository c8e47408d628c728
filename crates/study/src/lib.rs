//! Many runs into one answer: whether two groups of runs differ, where throughput stops growing, how much load still meets the
//! objectives.
//!
//! Owns: the statistics, and the search for capacity as a state machine that takes outcomes and asks for probes. A run is the unit
//! everywhere: requests of one run are not independent of each other. Never: sockets, the clock, words on a terminal. Whatever is
//! drawn at random comes from a fixed seed, so that the same runs give the same answer.

pub mod capacity;
mod compare;
mod figures;
mod plans;
pub mod stats;
pub mod sweep;

pub use compare::{Comparison, Finding, Options, Outcome, compare, judge};
pub use figures::{FIGURES, Figure, FigureKind, figures_of};
pub use plans::{Mismatch, differences, mismatch};
