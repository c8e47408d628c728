//! Whole runs of the engine against real servers, the embedded one, and small scripted ones.
#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

mod behaviour;
mod h2;
mod network;
mod plans;
mod stopping;
