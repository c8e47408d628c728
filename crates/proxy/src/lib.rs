//! Servers on recorded traffic: a proxy that records what passes through it, and a mock that answers as recorded.
//!
//! Owns: their sockets, the local certificate authority. Never: load, figures. They speak HTTP/1.1; what speaks to them over TLS is
//! told so by ALPN.

mod authority;
mod body;
mod error;
mod listener;
mod mock;
mod record;
mod upstream;

pub use authority::Authority;
pub use error::Error;
pub use mock::{Mock, MockOptions, MockStats};
pub use record::{RecordOptions, RecordStats, Recorder, Role};
