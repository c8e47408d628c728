//! Tests of the HTTP/2 codec, through its public face only.

#![expect(clippy::unwrap_used, reason = "tests may unwrap, their helpers too")]

mod allocations;
mod conversation;
mod pieces;
mod requests;
#[path = "../shared/seen.rs"]
mod seen;
mod tunnels;
