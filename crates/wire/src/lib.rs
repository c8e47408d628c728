//! How bytes look: sans-IO codecs. Bytes in, events out; `now` is an argument where time matters.
//!
//! Never: sockets, the clock, metrics.

pub mod alt_svc;
mod client;
mod compression;
pub mod events;
mod failure;
pub mod h1;
pub mod h2;
pub mod h3;
mod message;
pub mod ws;

pub use client::{Chunk, Client, Event, HeadCaches, Progress, ProtocolError, Request, Version};
pub use failure::{ErrorCode, StreamFailure};
