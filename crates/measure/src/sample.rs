//! One settled request, as the engine reports it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Cause, Phase};

/// One settled request. All times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Index into the snapshot's rows.
    pub row_idx: u32,
    /// Final status code; 0 when no response head was read.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// From the intended start (open model) or the start of sending (closed model) to the last byte.
    pub latency_ns: u64,
    /// k6's phases.
    pub phases: Phases,
    /// Bytes written for this request, above TLS.
    pub bytes_sent: u64,
    /// Bytes read for this request, above TLS.
    pub bytes_received: u64,
}

#[cfg(test)]
impl Sample {
    /// A whole response that took so long.
    pub(crate) fn ok(latency_ns: u64) -> Self {
        let phases = Phases::default();
        Self {
            row_idx: 0,
            status: 200,
            outcome: Outcome::Ok,
            latency_ns,
            phases,
            bytes_sent: 1,
            bytes_received: 2,
        }
    }
}

/// How a request ended: exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A whole response that met every expectation.
    Ok,
    /// Failed, for one cause, in one phase.
    Failed(Cause, Phase),
    /// Still open when the run was cut off.
    Interrupted,
}

/// k6's phases of one request, in nanoseconds. `duration` is sending + waiting + receiving.
#[derive(Debug, Clone, Copy, Default)]
pub struct Phases {
    /// From the intended start until a connection was there to use (dialling excluded).
    pub blocked_ns: u64,
    /// TCP connect; `None` on a reused connection.
    pub connecting_ns: Option<u64>,
    /// TLS handshake; `None` on a reused or plain connection.
    pub tls_handshaking_ns: Option<u64>,
    /// Writing the request.
    pub sending_ns: u64,
    /// From the last byte written to the first byte read.
    pub waiting_ns: u64,
    /// From the first byte read to the last.
    pub receiving_ns: u64,
}

impl Phases {
    /// k6's `http_req_duration`: sending + waiting + receiving.
    pub fn duration_ns(&self) -> u64 {
        self.sending_ns + self.waiting_ns + self.receiving_ns
    }

    /// Everything: blocked, connecting, TLS and the duration.
    pub fn total_ns(&self) -> u64 {
        self.blocked_ns
            + self.connecting_ns.unwrap_or(0)
            + self.tls_handshaking_ns.unwrap_or(0)
            + self.duration_ns()
    }
}

/// What a row of figures is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowKey {
    /// The load's name.
    pub load: String,
    /// Protocol spoken.
    pub protocol: Protocol,
    /// Request method.
    pub method: String,
    /// URL pattern.
    pub url: String,
}

/// Its name in every output.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Protocol spoken, by its ALPN-like name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 over TCP.
    #[serde(rename = "http/1.1")]
    Http11,
    /// HTTP/1.1 over TLS.
    #[serde(rename = "https/1.1")]
    Https11,
    /// HTTP/2 over TLS.
    #[serde(rename = "h2")]
    H2,
    /// HTTP/2 over TCP.
    #[serde(rename = "h2c")]
    H2c,
    /// HTTP/3 over QUIC.
    #[serde(rename = "h3")]
    H3,
    /// TCP alone.
    #[serde(rename = "tcp")]
    Tcp,
    /// TLS over TCP, nothing above it.
    #[serde(rename = "tls")]
    Tls,
    /// QUIC, nothing above it.
    #[serde(rename = "quic")]
    Quic,
}
