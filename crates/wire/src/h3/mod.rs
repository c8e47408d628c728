//! HTTP/3 (RFC 9114) and QPACK (RFC 9204), for a client and for a server.
//!
//! Owns: frames, field compression, the unidirectional streams, and what a peer may and may not do. Never: QUIC, sockets, the clock, bodies.
//! What is accepted and what is rejected, section by section of the RFCs: `tests/h3/rules.rs`. For users: `docs/http3.md`.
//!
//! QUIC delivers bytes in order within each stream, and flow control, retransmission and the limits of streams are its own. What passes
//! between it and a [`Client`] is therefore *labelled bytes*: [`Client::decode_stream`] gets the id of a stream, some of its bytes and
//! whether they are the last, and what is to be sent is appended to the caller's buffer for one stream.
//!
//! # How a transport drives a client
//!
//! - Requests are client-initiated bidirectional streams: 0, 4, 8, … in the order in which they are [started](Client::start), which is also
//!   the order in which a transport opens its streams. [`Client::stream_of`] names a slot's. [`Client::set_stream_limit`] says how many may
//!   be opened in all.
//! - A request ends with the FIN of its stream: after its head when it has no body, or after the [last](crate::Chunk::is_last) of its
//!   [chunks](Client::next_chunk). A transport that does not take a whole chunk [returns](Client::return_chunk) the rest and
//!   [blocks](Client::block) the slot until the stream can be written again.
//! - The client's own unidirectional streams are 2, 6, 10, …: [`Client::uni_count`] of them. What waits for each is
//!   [`uni_output`](Client::uni_output), and [`uni_sent`](Client::uni_sent) says how much of that was taken. The first must be opened with
//!   the connection; they never end.
//! - [`Client::next_command`] asks for RESET_STREAM and STOP_SENDING frames. A stream whose reading was stopped is delivered no more.
//! - Before a stream is read, [`Client::wants_stream`] says whether it is to be read at all; [`Client::next_readable`] names the streams that
//!   are to be read again, beginning with a call of [`Client::decode_stream`] without bytes.

mod client;
mod control;
mod error;
mod frame;
mod head;
pub mod limits;
mod qpack;
mod reader;
mod receive;
mod request;
pub mod server;
mod settings;
mod stream;
mod varint;

pub use client::{Client, Request};
pub use control::StreamAbort;
pub use error::Error;
pub use head::HeadCache;
pub use request::{FieldSection, prepare, prepare_extended};
pub use settings::Setup;
