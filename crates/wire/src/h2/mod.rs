//! HTTP/2 for a client (RFC 9113, RFC 7541): many requests in flight on one connection.
//!
//! Owns: frames, header compression, flow control, and what a peer may and may not do. Never: sockets, the clock, bodies, redirects.
//! What is accepted and what is rejected, section by section: `docs/http2.md`.
//!
//! A caller makes a [`Client`] for each connection, prepares its requests once ([`prepare`]), and hands the client what the socket
//! gives, in whatever pieces; what is to be sent is appended to the caller's buffer, so that frames of many streams leave together.

mod client;
mod error;
mod frame;
mod head;
mod hpack;
mod input;
pub mod limits;
mod receive;
mod request;
mod settings;
mod stream;

pub use crate::failure::{ErrorCode, StreamFailure};
pub use client::{Client, GoAway, HeaderBytes, Request};
pub use error::Error;
pub use head::HeadCache;
pub use hpack::{FieldBlock, FieldTable};
pub use request::{prepare, prepare_extended};
pub use settings::Setup;
