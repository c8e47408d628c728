//! Figures that only the versions of HTTP with streams have.

use serde::{Deserialize, Serialize};

use crate::figures::figures;

figures! {
    /// Connections and streams of HTTP/2, or of HTTP/3, and what header compression saved.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Http2 {
        /// Connections that turned out to speak it.
        pub connections: u64,
        /// Requests sent on streams of their own, those sent again included.
        pub streams: u64,
        /// Names and values of request fields, in bytes.
        pub header_bytes_sent: u64,
        /// The same as they were sent.
        pub header_bytes_sent_packed: u64,
        /// Names and values of response fields, in bytes.
        pub header_bytes_received: u64,
        /// The same as they came.
        pub header_bytes_received_packed: u64,
    }
}

impl Http2 {
    /// Whether it was spoken at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
