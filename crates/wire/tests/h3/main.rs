//! Tests of the HTTP/3 codec, through its public API only.

#![expect(clippy::unwrap_used, reason = "tests may unwrap, their helpers too")]

mod allocations;
mod conversation;
mod pieces;
mod requests;
mod rules;
#[path = "../shared/seen.rs"]
mod seen;
mod server;
mod table;
