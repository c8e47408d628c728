//! What servers announce in Alt-Svc, and what becomes of it.

use serde::{Deserialize, Serialize};

use crate::Failures;
use crate::figures::figures;

figures! {
    /// Origins that announced HTTP/3 (RFC 7838), and the connections that followed the announcement.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct AltSvc {
        /// Announcements of HTTP/3 that were new or had changed. Each event loop learns them for itself.
        pub discoveries: u64,
        /// Announcements that took an earlier one back.
        pub withdrawals: u64,
        /// Different values of the field in a row that were malformed, or named a place that is not used.
        pub ignored: u64,
        /// Connections of HTTP/3 that followed an announcement.
        pub connections: u64,
        /// Connections that were to follow one and could not be established, and why: TCP was used instead.
        pub fallbacks: Failures,
    }
}
