//! The table of QUIC servers.

use squall_measure::Cause::*;
use squall_measure::Phase::*;

use super::{Greeting, OK, Peer, Talk};

/// Every server. The client makes three requests, one after the other, on one connection at a time.
pub const PEERS: &[Peer] = &[
    Peer { name: "a good server", ..GOOD },
    // RFC 9000: before there is a connection.
    Peer {
        section: "9000 8.1.2",
        name: "a Retry",
        greeting: Greeting::Retry,
        counts: &[("retries", 1), ("connections", 1)],
        ..GOOD
    },
    Peer {
        section: "9000 17.2.5.2",
        name: "a second Retry",
        greeting: Greeting::RetryForEver,
        args: BRIEF,
        failures: &[(ConnectTimeout, TlsHandshaking); 3],
        counts: &[("connections", 0)],
        ..GOOD
    },
    Peer {
        section: "9000 6.2",
        name: "other versions",
        greeting: Greeting::Negotiate(&[0x6b33_43cf, 0x0a0a_0a0a]),
        failures: &[(VersionNotNegotiated, TlsHandshaking); 3],
        counts: &[("version_negotiations", 3)],
        ..GOOD
    },
    Peer {
        section: "9000 6.2",
        name: "a negotiation that offers the version that was used",
        greeting: Greeting::Negotiate(&[1]),
        args: BRIEF,
        failures: &[(ConnectTimeout, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9000 5.2",
        name: "datagrams that are no QUIC",
        greeting: Greeting::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        args: BRIEF,
        failures: &[(ConnectTimeout, Connecting); 3],
        ..GOOD
    },
    Peer {
        section: "9000 20.1",
        name: "a refusal",
        greeting: Greeting::Refuse,
        failures: &[(ConnectionRefused, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9000 10.3",
        name: "a stateless reset",
        greeting: Greeting::ForgetAll,
        failures: &[(ConnectionReset, Waiting)],
        args: &["--timeout", "5s"],
        ..GOOD
    },
    Peer { section: "9001 4.6.2", name: "tickets of no use", greeting: Greeting::ForgetTickets, ..GOOD },
    // RFC 9114: on a connection.
    Peer {
        section: "9114 4.1.1",
        name: "a request that is rejected is sent again",
        on_request: |talk| first(talk, |talk| talk.reset(H3_REQUEST_REJECTED)),
        ..GOOD
    },
    Peer {
        section: "9114 8.1",
        name: "a stream that is reset",
        on_request: |talk| first(talk, |talk| talk.reset(H3_INTERNAL_ERROR)),
        failures: &[(StreamReset, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 4.1",
        name: "a stream that is reset within the response",
        on_request: |talk| {
            first(talk, |talk| {
                talk.send(OK, false);
                talk.reset(H3_INTERNAL_ERROR);
            });
        },
        // A reset may overtake what was sent before it.
        failures: &[(StreamReset, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 5.3",
        name: "a connection that is closed with an error",
        on_request: |talk| first(talk, |talk| talk.close(H3_INTERNAL_ERROR)),
        failures: &[(ConnectionClosed, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 4.1",
        name: "a stream that ends without a response",
        on_request: |talk| first(talk, |talk| talk.send(b"", true)),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 4.1",
        name: "no response at all",
        on_request: |talk| first(talk, |_| {}),
        failures: &[(Timeout, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 7.2.1",
        name: "DATA before HEADERS",
        on_request: |talk| first(talk, |talk| talk.send(&[0x00, 0x01, b'x'], true)),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 7.2.4",
        name: "SETTINGS twice",
        on_request: |talk| first(talk, |talk| talk.send_control(&[0x04, 0x00])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 6.2.1",
        name: "a control stream that ends",
        on_request: |talk| first(talk, |talk| talk.end_control()),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 6.2.1",
        name: "two control streams",
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x00, 0x04, 0x00])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 6.2.2",
        name: "a push stream that nothing promised",
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x01, 0x00])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9114 9",
        name: "streams, frames and settings that are unknown",
        on_request: |talk| {
            talk.open_uni(&[0x21, 1, 2, 3]);
            talk.send_control(&[0x21, 0x01, 0xff]);
            talk.send(&[0x21, 0x02, 1, 2], false);
            talk.answer();
        },
        ..GOOD
    },
    Peer {
        section: "9114 7.2.4.1",
        name: "a client that sends a setting that is unknown",
        on_request: |talk| first(talk, |talk| answer_if(talk, has_reserved_setting)),
        ..GOOD
    },
    Peer {
        section: "9114 5.2",
        name: "GOAWAY for the request that came",
        on_request: |talk| first(talk, |talk| talk.send_control(&[0x07, 0x01, 0x00])),
        ..GOOD
    },
    Peer {
        section: "9114 5.2",
        name: "GOAWAY behind the request that came",
        on_request: |talk| {
            if talk.request_idx == 0 {
                talk.send_control(&[0x07, 0x01, 0x04]);
            }
            talk.answer();
        },
        counts: &[("connections", 2)],
        ..GOOD
    },
];

pub(super) const GOOD: Peer = Peer {
    section: "9114 4.1",
    name: "",
    greeting: Greeting::Accept,
    on_request: |talk| talk.answer(),
    args: &[],
    failures: &[],
    counts: &[],
};

/// Does this with the first request, and answers all others well.
fn first(talk: &mut Talk<'_>, act: fn(&mut Talk<'_>)) {
    if talk.request_idx == 0 { act(talk) } else { talk.answer() }
}

/// Answers well if the beginning of the client's control stream is as expected; otherwise the connection ends.
fn answer_if(talk: &mut Talk<'_>, is_expected: fn(&[u8]) -> bool) {
    let control = talk.client_control();
    if is_expected(&control) { talk.answer() } else { talk.close(H3_INTERNAL_ERROR) }
}

/// A control stream that begins with SETTINGS, one of which is of the kind 0x1f * N + 0x21.
fn has_reserved_setting(control: &[u8]) -> bool {
    let [0x00, 0x04, length, rest @ ..] = control else { return false };
    let mut rest = &rest[..usize::from(*length).min(rest.len())];
    std::iter::from_fn(|| Some((varint(&mut rest)?, varint(&mut rest)?)))
        .any(|(id, _)| id >= 0x21 && (id - 0x21).is_multiple_of(0x1f))
}

/// Takes an integer (RFC 9000 16) off the front.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let (bytes, after) = rest.split_at_checked(1 << (first >> 6))?;
    *rest = after;
    Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

/// Three attempts that come to nothing are over before the run is taken for unreachable, which it is after a second.
const BRIEF: &[&str] = &["--connect-timeout", "200ms"];

const H3_INTERNAL_ERROR: u32 = 0x102;
const H3_REQUEST_REJECTED: u32 = 0x10b;
