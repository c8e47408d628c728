//! How bytes look: sans-IO codecs. Bytes in, events out; `now` is an argument where time matters.
//!
//! Never: sockets, the clock, metrics.

mod client;
pub mod events;
pub mod h1;
pub mod h2;
pub mod ws;

pub use client::{Chunk, Client, Event, HeadCaches, Progress, ProtocolError, Request, Version};
