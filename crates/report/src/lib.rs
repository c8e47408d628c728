//! Shows what happened: a run's record becomes a summary, and every face is drawn from that.
//!
//! Owns: units and wording, the faces, and the saved runs. Never: sockets, ssh, the clock. Nothing here prints by itself:
//! callers pass the stream.

mod style;
pub mod units;

pub use style::{ColorChoice, Style, Tone};
