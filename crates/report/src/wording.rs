//! The words that stand for the program's terms, the same on every face that people read.

use squall_measure::{Cause, Phase, StoppedBy, ThresholdResult, Unit};

use crate::summary::Micros;
use crate::units;

/// What went wrong, to be followed by [`phase`].
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NameNotResolved => "name not resolved",
        Cause::ConnectionRefused => "connection refused",
        Cause::Unreachable => "network unreachable",
        Cause::ConnectionReset => "connection reset",
        Cause::ConnectionClosed => "connection closed too early",
        Cause::ConnectTimeout => "connect timeout",
        Cause::Timeout => "timeout",
        Cause::TlsCertificate => "certificate not trusted",
        Cause::TlsAlert => "TLS alert from the peer",
        Cause::TlsProtocol => "TLS protocol error",
        Cause::QuicProtocol => "QUIC protocol error",
        Cause::VersionNotNegotiated => "HTTP version not supported by the server",
        Cause::HttpProtocol => "malformed response",
        Cause::StreamReset => "stream reset by the server",
        Cause::StreamRefused => "stream refused by the server",
        Cause::HeadTooLarge => "response head too large",
        Cause::UnexpectedStatus => "unexpected status",
        Cause::UnexpectedLength => "unexpected body length",
        Cause::EndedEarly => "stream ended early",
        Cause::MessageTooLarge => "message too large",
        Cause::WebSocketProtocol => "WebSocket protocol error",
        Cause::TooManyRedirects => "too many redirects",
        Cause::BadRedirect => "redirect could not be followed",
        Cause::ProxyRefused => "tunnel refused by the proxy",
        Cause::BodyFile => "body file unreadable (generator side)",
        Cause::OutOfResources => "out of ports, descriptors or buffers (generator side)",
        Cause::Other => "other system error",
    }
}

/// When it went wrong.
pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Blocked => "while waiting for a connection",
        Phase::LookingUp => "while resolving the name",
        Phase::Connecting => "while connecting",
        Phase::Tunnelling => "while requesting the tunnel or upgrade",
        Phase::TlsHandshaking => "in the TLS handshake",
        Phase::Sending => "while sending",
        Phase::Waiting => "while waiting",
        Phase::Receiving => "while receiving",
    }
}

/// What to try against the most frequent failure, where something is likely to help.
pub fn advice(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::NameNotResolved => {
            Some("check the host name, or give its address with `--resolve HOST:PORT:ADDRESS`")
        }
        Cause::ConnectionRefused => {
            Some("check that a server is listening on that port; `squall target` starts a local test server")
        }
        Cause::ConnectTimeout => Some(
            "a firewall may drop the packets, or the accept queue is full: fewer connections may get through",
        ),
        Cause::Timeout => {
            Some("the server needs longer than `--timeout` allows; raise it, or lower the load")
        }
        Cause::TlsCertificate => Some(
            "trust its certificate with `--cacert FILE`, skip the check with `--insecure`, or set the expected name with `--sni NAME`",
        ),
        Cause::TlsProtocol => Some("if that port does not use TLS, use an `http://` URL"),
        Cause::UnexpectedStatus => {
            Some("statuses outside 200-399 count as failures; `--expect-status` changes that")
        }
        Cause::OutOfResources => {
            Some("spread connections over addresses with `--source`, or raise the limit of open files")
        }
        Cause::VersionNotNegotiated => Some("`--http auto` uses a version that the server supports"),
        Cause::StreamRefused => Some("the server allows fewer concurrent streams: lower `--streams`"),
        Cause::HttpProtocol => Some(
            "check that the port supports this HTTP version, and that the scheme (http or https) is right",
        ),
        _ => None,
    }
}

/// The same for a k6 script, which has other flags and options.
pub(crate) fn script_advice(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::NameNotResolved => Some("check the host name, or give its address in the option `hosts`"),
        Cause::Timeout => Some(
            "the server needs longer than the request's `timeout` allows; raise it in the params, or lower the load",
        ),
        Cause::TlsCertificate => Some(
            "trust the issuer with the variable `SSL_CERT_FILE=FILE`, or skip the check with `insecureSkipTLSVerify: true` or `--insecure-skip-tls-verify`",
        ),
        Cause::UnexpectedStatus => Some(
            "statuses outside 200-399 count as failures; `http.setResponseCallback(http.expectedStatuses(404))` changes that",
        ),
        Cause::OutOfResources => {
            Some("spread connections over addresses with `--local-ips`, or raise the limit of open files")
        }
        Cause::StreamRefused => None,
        _ => advice(cause),
    }
}

/// The same for WebSockets, which any status but 101 refuses.
pub(crate) fn websocket_advice(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::UnexpectedStatus => {
            Some("the server opens no WebSocket there: check the path, and the headers that it asks for")
        }
        _ => advice(cause),
    }
}

/// Why a run ended before its plan did; nothing when it ended as planned.
pub(crate) fn stopped_early(stopped_by: StoppedBy) -> Option<&'static str> {
    match stopped_by {
        StoppedBy::Duration | StoppedBy::Count => None,
        StoppedBy::Drained => Some("stopped early, open requests finished"),
        StoppedBy::Aborted => Some("stopped early, open requests cut off"),
        StoppedBy::Unreachable => Some("target unreachable"),
        StoppedBy::Lost => Some("the program was killed; results from its last checkpoint"),
    }
}

/// A time where there may be none.
pub(crate) fn time(time: Option<Micros>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| units::latency(time.0))
}

/// A threshold with what it is about, which not every rule says itself: `shop cpu avg<80%`.
pub(crate) fn rule(threshold: &ThresholdResult) -> String {
    let ThresholdResult { metric, rule, .. } = threshold;
    let is_named = rule.contains(':') || rule.starts_with(metric);
    if is_named { rule.clone() } else { format!("{metric} {rule}") }
}

/// A threshold's figure in its unit.
pub(crate) fn threshold_value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Us => units::latency((value * 1e3).round() as u64),
        Unit::Fraction => units::percent(value),
        Unit::Count => units::count(value.round() as u64),
        Unit::PerSecond => units::rate(value),
        Unit::Percent => units::percent(value / 100.0),
        Unit::Bytes => units::bytes(value.max(0.0) as u64),
        Unit::Seconds => units::latency((value * 1e9).round() as u64),
        Unit::Number => format!("{value:.1}"),
    }
}
