//! How the end of a request looks to a script: k6's timings, error codes and words.

use squall_measure::{Cause, Phase, Phases};
use squall_script::{Reply, ReplyFailure, Timing};
use squall_wire::Version;

use crate::Forbidden;
use crate::driver::Ended;
use crate::trouble::{Detail, Trouble};

/// The reply of a request that has ended.
pub(super) fn reply_of(ended: Ended) -> Reply {
    let Ended { token, result, head, body, phases, remote, version, tls, .. } = ended;
    let is_reached = result.as_ref().err().is_none_or(|trouble| !is_dialling(trouble));
    let (status, failure) = match result {
        Ok(status) => (status, None),
        Err(trouble) => (0, Some(failure(&trouble))),
    };
    let is_ok = failure.is_none();
    Reply {
        token,
        status,
        proto: version.filter(|_| is_ok).map_or("", proto_name),
        head: if is_ok { head } else { Vec::new() },
        body: if is_ok { body } else { Vec::new() },
        timing: timing(&phases, is_ok),
        remote: remote.filter(|_| is_reached),
        tls,
        failure,
    }
}

/// Go's name of a version.
const fn proto_name(version: Version) -> &'static str {
    match version {
        Version::H1 => "HTTP/1.1",
        Version::H2 => "HTTP/2.0",
        Version::H3 => "HTTP/3.0",
    }
}

/// k6 counts dialling as blocked, and nothing as sending or waiting when there was no connection.
fn timing(phases: &Phases, is_ok: bool) -> Timing {
    let (connecting_ns, tls_ns) = (phases.connecting_ns.unwrap_or(0), phases.tls_handshaking_ns.unwrap_or(0));
    let has_connection = is_ok || phases.sending_ns + phases.waiting_ns > 0;
    Timing {
        blocked_ns: phases.blocked_ns + connecting_ns + tls_ns,
        connecting_ns,
        tls_handshaking_ns: tls_ns,
        sending_ns: if has_connection { phases.sending_ns } else { 0 },
        waiting_ns: if has_connection { phases.waiting_ns } else { 0 },
        receiving_ns: if has_connection { phases.receiving_ns } else { 0 },
    }
}

pub(super) fn failure(trouble: &Trouble) -> ReplyFailure {
    let (code, text) = match trouble.cause {
        Cause::NameNotResolved => (1101, "lookup: no such host".to_owned()),
        Cause::ConnectTimeout => (1211, "dial: i/o timeout".to_owned()),
        Cause::Timeout => (1050, "request timeout".to_owned()),
        Cause::ConnectionRefused => (1212, "dial: connection refused".to_owned()),
        Cause::ConnectionReset => (1220, "read: connection reset by peer".to_owned()),
        Cause::Unreachable | Cause::OutOfResources if is_dialling(trouble) => {
            (1210, format!("dial: {}", trouble.text))
        }
        Cause::TlsCertificate => certificate(trouble),
        Cause::TlsAlert | Cause::TlsProtocol => (1300, format!("tls: {}", trouble.text)),
        Cause::StreamReset | Cause::StreamRefused => (1630, trouble.text.clone()),
        Cause::ConnectionClosed => (1000, "EOF".to_owned()),
        _ => (code_of(trouble.detail), trouble.text.clone()),
    };
    ReplyFailure { code, text }
}

/// Whether there was no connection yet.
fn is_dialling(trouble: &Trouble) -> bool {
    matches!(trouble.phase, Phase::Connecting | Phase::Tunnelling | Phase::TlsHandshaking)
}

/// k6's code of what its options forbid; of anything else that of an unknown error.
const fn code_of(detail: Detail) -> u16 {
    match detail {
        Detail::Forbidden(Forbidden::Address) => 1110,
        Detail::Forbidden(Forbidden::Name) => 1111,
        _ => 1000,
    }
}

fn certificate(trouble: &Trouble) -> (u16, String) {
    match trouble.detail {
        Detail::CertificateName => (1311, "x509: certificate doesn't match hostname".to_owned()),
        Detail::CertificateIssuer => (1310, "x509: unknown authority".to_owned()),
        _ => (1300, format!("tls: {}", trouble.text)),
    }
}
