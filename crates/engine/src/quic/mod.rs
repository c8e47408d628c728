//! QUIC as a transport of connections: quinn-proto's state machines, driven by the event loop with its own clock and sockets.
//!
//! `endpoint` has the sockets of a loop and what all its connections share, `session` is one of them, `crypto` how TLS is carried, `transport` the
//! settings, `qlog` its log files, `trouble` why connections end. What the shard does with them is in `shard::connections::quic`.

mod crypto;
mod endpoint;
mod qlog;
mod session;
mod transport;
mod trouble;

pub(crate) use endpoint::{
    QuicDelivery, QuicEndpoint, QuicTarget, SocketCounts, UDP_BUFFER_BYTES, udp_buffer_available,
};
pub(crate) use qlog::{QlogFiles, prepare_qlog};
pub(crate) use session::{QuicSession, QuicStreamEnd, id_of};
pub(crate) use trouble::trouble_of;
