//! Servers on recorded traffic: a proxy that records what passes through it, and a mock that answers as recorded.
//!
//! Owns: their sockets, the local certificate authority. Never: load, figures. They speak HTTP/1.1 and HTTP/2: by ALPN over TLS, with
//! prior knowledge without.

mod authority;
mod body;
mod error;
mod listener;
mod matching;
mod mock;
mod names;
mod playback;
mod record;
mod tunnel;
mod upstream;
mod websocket;

pub use authority::Authority;
pub use error::Error;
pub use matching::{Ignored, Likeness};
pub use mock::{Misses, Mock, MockOptions, MockStats};
pub use record::{RecordOptions, RecordStats, Recorded, Recorder, Role};
