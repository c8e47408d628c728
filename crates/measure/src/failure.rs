//! Why requests failed: one cause and one phase each, counted, with an example.

use serde::{Deserialize, Serialize};

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// The name has no address.
    NameNotResolved,
    /// Nothing listens there.
    ConnectionRefused,
    /// No route to the host or its network.
    Unreachable,
    /// The peer (or something between) reset the connection.
    ConnectionReset,
    /// The peer closed the connection before the response was whole.
    ConnectionClosed,
    /// No connection within `--connect-timeout`.
    ConnectTimeout,
    /// No whole response within `--timeout`.
    Timeout,
    /// The server's certificate did not verify: name, date, issuer, or signature.
    TlsCertificate,
    /// The peer sent a TLS alert.
    TlsAlert,
    /// The peer broke the TLS protocol, or speaks no version or cipher that was offered.
    TlsProtocol,
    /// The response is not HTTP, or breaks its framing rules.
    HttpProtocol,
    /// The response head is larger than the limit.
    HeadTooLarge,
    /// A whole response with a status that was not expected.
    UnexpectedStatus,
    /// A whole response with a body length that was not expected.
    UnexpectedLength,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect that cannot be followed: no or bad `Location`, or a host that is not in the plan.
    BadRedirect,
    /// The proxy refused the tunnel.
    ProxyRefused,
    /// Our own side: the body file could not be read.
    BodyFile,
    /// Our own side: no local port, descriptor, or buffer left.
    OutOfResources,
    /// Any other error of the operating system.
    Other,
}

/// Where in its life a request was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Phase {
    /// Waiting for a connection.
    Blocked,
    /// Resolving the name.
    LookingUp,
    /// TCP connect.
    Connecting,
    /// Asking the proxy for a tunnel.
    Tunnelling,
    /// TLS handshake.
    TlsHandshaking,
    /// Writing the request.
    Sending,
    /// Before the first byte of the response.
    Waiting,
    /// Within the response.
    Receiving,
}

/// Counts of failures by cause and phase, with the first example of each.
#[derive(Debug, Clone, Default)]
pub struct Failures {}

/// The first failure of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureExample {
    /// When, in nanoseconds after the run's start.
    pub at_ns: u64,
    /// The row's URL.
    pub url: String,
    /// What the system, the TLS library or the codec said.
    pub text: String,
}

impl Failures {
    /// Counts one failure.
    pub fn count(&mut self, _cause: Cause, _phase: Phase) {
        todo!()
    }

    /// Whether an example of this kind is still wanted: false once one was given (on this shard, ever), so that the
    /// caller makes no text for nothing.
    pub fn wants_example(&self, _cause: Cause, _phase: Phase) -> bool {
        todo!()
    }

    /// Gives an example; the first one stays.
    pub fn set_example(&mut self, _cause: Cause, _phase: Phase, _example: FailureExample) {
        todo!()
    }
}
