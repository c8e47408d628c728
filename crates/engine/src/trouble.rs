//! What went wrong with a connection: one cause, in one phase, in words.

use std::io;
use std::time::Duration;

use rustls::CertificateError;
use squall_measure::{Cause, Phase};
use squall_plan::limits::{RECONNECT_PAUSE_MAX, RECONNECT_PAUSE_MIN};
use squall_plan::units::DurationText;
use squall_wire::h1::{DecodeError, DecodeErrorKind};
use squall_wire::{ProtocolError, StreamFailure, ws};

use crate::error::Forbidden;
use crate::sys::nanoseconds;
use crate::tls;

/// What went wrong with a connection.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) cause: Cause,
    pub(crate) phase: Phase,
    pub(crate) text: String,
    pub(crate) detail: Detail,
}

/// What k6's error codes distinguish, and causes do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    None,
    /// The certificate is not for the server's name.
    CertificateName,
    /// The certificate's issuer is not trusted.
    CertificateIssuer,
    /// A script's options forbid it.
    Forbidden(Forbidden),
}

/// How long a slot rests whose connect has failed so often in a row.
pub(crate) fn reconnect_pause_ns(failure_count: u32) -> u64 {
    let doubled = nanoseconds(RECONNECT_PAUSE_MIN) << failure_count.saturating_sub(1).min(16);
    doubled.min(nanoseconds(RECONNECT_PAUSE_MAX))
}

/// A time limit as its flag takes it: `500ms`, `30s`.
pub(crate) fn time_limit(ns: u64) -> DurationText {
    DurationText(Duration::from_nanos(ns))
}

impl Trouble {
    pub(crate) fn new(cause: Cause, phase: Phase, text: String) -> Self {
        Self { cause, phase, text, detail: Detail::None }
    }

    /// The peer closed the connection.
    pub(crate) fn closed(phase: Phase) -> Self {
        Self::new(Cause::ConnectionClosed, phase, "the server closed the connection".to_owned())
    }

    pub(crate) fn proxy_refused(status: u16) -> Self {
        Self::new(
            Cause::ProxyRefused,
            Phase::Tunnelling,
            format!("the proxy answered CONNECT with status {status}"),
        )
    }

    pub(crate) fn tls(error: &rustls::Error, phase: Phase) -> Self {
        let detail = match error {
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Detail::CertificateName,
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => Detail::CertificateIssuer,
            _ => Detail::None,
        };
        Self { detail, ..Self::new(tls::cause_of(error), phase, error.to_string()) }
    }

    /// The peer broke a rule of its protocol, or ended in the middle of it.
    pub(crate) fn protocol(error: &ProtocolError, phase: Phase) -> Self {
        match error {
            ProtocolError::H1(error) => Self::decode(error, phase),
            ProtocolError::H2(_) | ProtocolError::H3(_) => {
                Self::new(Cause::HttpProtocol, phase, error.to_string())
            }
        }
    }

    pub(crate) fn decode(error: &DecodeError, phase: Phase) -> Self {
        let cause = match error.kind() {
            DecodeErrorKind::Protocol => Cause::HttpProtocol,
            DecodeErrorKind::HeadTooLarge => Cause::HeadTooLarge,
            DecodeErrorKind::Closed => Cause::ConnectionClosed,
        };
        Self::new(cause, phase, error.to_string())
    }

    /// The peer broke the WebSocket protocol, or a limit.
    pub(crate) fn websocket(error: ws::Error) -> Self {
        let cause = match error {
            ws::Error::TooLarge(_) => Cause::MessageTooLarge,
            _ => Cause::WebSocketProtocol,
        };
        Self::new(cause, Phase::Receiving, error.to_string())
    }

    /// A stream of HTTP/2 or HTTP/3 ended without a whole response.
    pub(crate) fn stream(failure: StreamFailure, phase: Phase) -> Self {
        let cause = match failure {
            StreamFailure::Reset(_) => Cause::StreamReset,
            StreamFailure::Unprocessed(_) => Cause::StreamRefused,
            StreamFailure::Malformed(_) => Cause::HttpProtocol,
            StreamFailure::HeadTooLarge => Cause::HeadTooLarge,
        };
        Self::new(cause, phase, failure.to_string())
    }

    /// What the operating system said of a socket.
    pub(crate) fn io(error: &io::Error, phase: Phase) -> Self {
        Self::new(cause_of(error), phase, error.to_string())
    }

    /// The peer ended the connection, which a reused connection may meet at any time (RFC 9112 9.5).
    pub(crate) fn is_disconnect(&self) -> bool {
        matches!(self.cause, Cause::ConnectionClosed | Cause::ConnectionReset)
    }
}

fn cause_of(error: &io::Error) -> Cause {
    use rustix::io::Errno;
    match error.kind() {
        io::ErrorKind::ConnectionRefused => return Cause::ConnectionRefused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            return Cause::ConnectionReset;
        }
        io::ErrorKind::UnexpectedEof => return Cause::ConnectionClosed,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => return Cause::Unreachable,
        io::ErrorKind::TimedOut => return Cause::ConnectTimeout,
        _ => {}
    }
    let resources =
        [Errno::ADDRNOTAVAIL, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::NOSPC];
    match Errno::from_io_error(error) {
        Some(errno) if resources.contains(&errno) => Cause::OutOfResources,
        _ => Cause::Other,
    }
}
