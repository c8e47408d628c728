//! How bytes look: sans-IO codecs. Bytes in, events out; `now` is an argument where time matters.
//!
//! Never: sockets, the clock, metrics.

pub mod h1;
pub mod h2;
