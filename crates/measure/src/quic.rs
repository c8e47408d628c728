//! Figures that only QUIC has.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::figures::figures;

figures! {
    /// Connections of QUIC: what was sent, what was lost, and where.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Quic {
        /// Connections whose handshake was completed.
        pub connections: u64,
        /// Packets sent; a datagram has one or, in handshakes, several.
        pub packets_sent: u64,
        /// Of these, those that the server did not acknowledge in time.
        pub packets_lost: u64,
        /// Times that the congestion controller took losses, or marks of explicit congestion notification, for congestion.
        #[serde(default)]
        pub congestion_events: u64,
        /// UDP datagrams sent.
        pub datagrams_sent: u64,
        /// UDP datagrams received, by connections that were known.
        pub datagrams_received: u64,
        /// System calls that sent them.
        pub send_calls: u64,
        /// System calls that received them.
        pub receive_calls: u64,
        /// Bytes of the datagrams sent, without the headers of UDP and IP.
        #[serde(default)]
        pub bytes_sent: u64,
        /// Bytes of the datagrams received, likewise.
        #[serde(default)]
        pub bytes_received: u64,
        /// Datagrams that this machine's kernel dropped because a socket's buffer was full: the generator was too slow.
        pub datagrams_dropped: u64,
        /// Retry packets: servers that wanted an address to be confirmed first (RFC 9000 8.1.2).
        pub retries: u64,
        /// Version negotiation packets (RFC 9000 6).
        pub version_negotiations: u64,
        /// Times that a connection has moved to another local address.
        #[serde(default)]
        pub migrations: u64,
        /// Of these, those after which something from the server came there.
        #[serde(default)]
        pub migrations_survived: u64,
        /// Shortest round-trip time of each connection, at its end, in nanoseconds.
        pub rtt_min: Histogram,
        /// Smoothed round-trip time of each connection, at its end, in nanoseconds.
        pub rtt_smoothed: Histogram,
        /// The paths of open connections at the end of each second.
        #[serde(default)]
        pub paths: PathSums,
    }
}

figures! {
    /// States of the paths of several connections, or of one at several times, added up: divided by their number they are the mean.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct PathSums {
        /// How many states: one for each open connection and second.
        pub count: u64,
        /// Congestion windows.
        pub window_bytes: u64,
        /// Smoothed round-trip times in nanoseconds.
        pub rtt_ns: u64,
    }
}

impl PathSums {
    /// Adds the state of one path.
    pub fn note(&mut self, window_bytes: u64, rtt_ns: u64) {
        self.merge(&Self { count: 1, window_bytes, rtt_ns });
    }

    /// The mean congestion window in bytes; `None`: no connection was open.
    pub fn window_bytes_mean(&self) -> Option<u64> {
        self.window_bytes.checked_div(self.count)
    }

    /// The mean of the smoothed round-trip times in nanoseconds.
    pub fn rtt_ns_mean(&self) -> Option<u64> {
        self.rtt_ns.checked_div(self.count)
    }
}

impl Quic {
    /// The part of what came that was dropped.
    pub fn dropped_share(&self) -> f64 {
        let came = self.datagrams_received + self.datagrams_dropped;
        if came == 0 { 0.0 } else { self.datagrams_dropped as f64 / came as f64 }
    }
}
