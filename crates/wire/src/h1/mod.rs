//! HTTP/1.1 for a client (RFC 9110, RFC 9112): requests are encoded, responses decoded.
//!
//! Owns: syntax and framing. Never: sockets, the clock, content codings (gzip and the like), redirects.
//! What is accepted and what is rejected, section by section: `docs/http1.md`.
//!
//! A caller encodes a head with [`encode_head`], informs its connection's [`Decoder`] of what was asked ([`Decoder::begin`]), and hands it
//! what the socket gives, in whatever pieces. Everything but a head that comes in pieces is decoded where it lies.

mod cache;
mod chunks;
mod client;
mod decoder;
mod error;
mod field;
mod head;
pub mod limits;
mod request;
mod section;
mod sink;

pub use cache::HeadCache;
pub use client::Client;
pub use decoder::{Decoded, Decoder, RequestKind, Response};
pub use error::{DecodeError, DecodeErrorKind};
pub(crate) use field::is_token_byte;
pub use field::{Field, Fields};
pub use head::Version;
pub(crate) use request::check as check_head;
pub use request::{EncodeError, RequestHead, encode_head};
pub use sink::{HeadView, Sink};
