//! Tests of the HTTP/1.1 codec, through its public face only.

#![expect(clippy::unwrap_used, reason = "tests may unwrap, their helpers too")]

mod allocations;
mod client;
mod harness;
mod random;
mod request;
mod response_body;
mod response_errors;
mod response_head;
