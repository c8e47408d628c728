//! The server seen from outside, through plain sockets.

#![expect(clippy::unwrap_used, reason = "tests may unwrap, and so may what helps them")]

mod client;
mod connections;
mod faults;
mod http2;
mod http3;
mod routes;
mod start;
mod timing;
mod tls;
mod websocket;
