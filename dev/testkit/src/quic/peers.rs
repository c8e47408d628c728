//! The table of QUIC servers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{Connection, Dir, IdleTimeout};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use squall_measure::Cause::*;
use squall_measure::Phase::*;
use squall_measure::{Cause, Phase};

use super::{Act, Greeting, OK, Peer, Talk};

/// Every server. The client makes three requests, one after the other, on one connection at a time, unless its flags say otherwise.
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
    // RFC 9000 and 9001: handshakes.
    Peer {
        section: "9000 8.1",
        name: "a certificate that needs more than the server may send at first",
        name_count: 300,
        ..GOOD
    },
    Peer {
        section: "9001 4.8",
        name: "an alert within the handshake",
        tls: |tls| tls.cert_resolver = Arc::new(NoCertificate),
        failures: &[(TlsAlert, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9001 8.1",
        name: "another protocol of applications",
        tls: |tls| tls.alpn_protocols = vec![b"hq-interop".to_vec()],
        failures: &[(VersionNotNegotiated, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9000 10.2",
        name: "connections that are closed after the handshake",
        on_connected: |connection| close(connection, H3_INTERNAL_ERROR),
        on_request: |_| {},
        failures: &[(ConnectionClosed, Waiting); 3],
        ..GOOD
    },
    Peer {
        section: "9000 6.2",
        name: "version negotiation after the first packets",
        greeting: Greeting::LateNegotiation,
        counts: &[("version_negotiations", 1), ("connections", 1)],
        ..GOOD
    },
    Peer {
        section: "9000 17.2.5.2",
        name: "a Retry after the first packets",
        greeting: Greeting::LateRetry,
        counts: &[("retries", 1), ("connections", 1)],
        ..GOOD
    },
    // RFC 9000 18.2: transport parameters.
    Peer {
        section: "9000 7.4",
        name: "a transport parameter twice",
        parameters: |parameters| parameters.extend([0x0b, 0x01, 0x05, 0x0b, 0x01, 0x05]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18",
        name: "transport parameters that end too early",
        parameters: |parameters| parameters.extend([0x0b, 0x04, 0x05]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18.2",
        name: "an acknowledgement delay exponent of 21",
        parameters: |parameters| set_parameter(parameters, 0x0a, &[21]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18.2",
        name: "an acknowledgement delay of 2^14 ms",
        parameters: |parameters| set_parameter(parameters, 0x0b, &[0x80, 0x00, 0x40, 0x00]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18.2",
        name: "room for one connection id",
        parameters: |parameters| set_parameter(parameters, 0x0e, &[1]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18.2",
        name: "datagrams of less than 1,200 bytes",
        parameters: |parameters| set_parameter(parameters, 0x03, &[0x44, 0xaf]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 18.2",
        name: "more than 2^60 streams",
        parameters: |parameters| set_parameter(parameters, 0x08, &[0xd0, 0, 0, 0, 0, 0, 0, 1]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 7.3",
        name: "another connection id than the client began with",
        parameters: |parameters| set_parameter(parameters, 0x00, &[7; 8]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 7.3",
        name: "no connection id that the client began with",
        parameters: |parameters| drop_parameter(parameters, 0x00),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 7.3",
        name: "a Retry in the parameters that never was",
        parameters: |parameters| set_parameter(parameters, 0x10, &[7; 8]),
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    // RFC 9000 19: frames.
    Peer {
        section: "9000 12.4",
        name: "data of a stream in a Handshake packet",
        handshake_frames: &[0x0a, 0x00, 0x01, b'x'],
        failures: BROKEN_HANDSHAKES,
        ..GOOD
    },
    Peer {
        section: "9000 10.2.3",
        name: "a transport error within the handshake",
        handshake_frames: &[0x1c, 0x01, 0x00, 0x00],
        failures: &[(ConnectionClosed, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9000 20.1",
        name: "a refusal within the handshake",
        handshake_frames: &[0x1c, 0x02, 0x00, 0x00],
        failures: &[(ConnectionRefused, TlsHandshaking); 3],
        ..GOOD
    },
    Peer {
        section: "9001 4.8",
        name: "an alert after the handshake",
        // CRYPTO_ERROR with certificate_required.
        on_request: |talk| talk.forge(&[0x1c, 0x41, 0x74, 0x00, 0x00]),
        failures: &[(TlsAlert, Waiting); 3],
        ..GOOD
    },
    Peer {
        section: "9000 20.1",
        name: "a connection that is closed with a transport error",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x1c, 0x01, 0x00, 0x00])),
        failures: &[(ConnectionClosed, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9000 20.1",
        name: "a transport that closes the connection without an error, within a response",
        on_request: |talk| {
            first(talk, |talk| {
                talk.send(HALF, false);
                talk.then(|talk| talk.forge(&[0x1c, 0x00, 0x00, 0x00]));
            });
        },
        failures: &[(ConnectionClosed, Receiving)],
        ..GOOD
    },
    Peer {
        section: "9000 4.1",
        name: "more data of a stream than the window has room for",
        on_request: |talk| {
            first(talk, |talk| {
                talk.forge(&[0x0e, 0x00, 0xc0, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, b'x']);
            });
        },
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 4.6",
        name: "more streams than the client allows",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x0a, 0x80, 0x40, 0x00, 0x03, 0x01, 0x21])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 4.5",
        name: "data beyond the end of a stream",
        on_request: |talk| {
            first(talk, |talk| talk.forge(&[0x0f, 0x00, 0x05, 0x01, b'x', 0x0e, 0x00, 0x09, 0x01, b'x']));
        },
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.8",
        name: "data on a stream that only the client sends on",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x0a, 0x02, 0x01, b'x'])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.4",
        name: "a reset of a stream that only the client sends on",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x04, 0x02, 0x00, 0x00])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.5",
        name: "STOP_SENDING of a stream that only the server sends on",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x05, 0x03, 0x00])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 12.4",
        name: "a frame of an unknown type",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x21])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 13.1",
        name: "acknowledgements of packets that were never sent",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x02, 0x80, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.3.1",
        name: "acknowledgements of packets below zero",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x02, 0x00, 0x00, 0x00, 0x05])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.11",
        name: "MAX_STREAMS beyond 2^60",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x12, 0xd0, 0, 0, 0, 0, 0, 0, 1])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.7",
        name: "NEW_TOKEN without a token",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x07, 0x00])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 7.5",
        name: "more of the handshake than can be kept",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x06, 0x80, 0x10, 0x00, 0x00, 0x01, b'x'])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.16",
        name: "RETIRE_CONNECTION_ID of one that was never issued",
        on_request: |talk| first(talk, |talk| talk.forge(&[0x19, 0x40, 0x50])),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 19.15",
        name: "a connection id that retires itself",
        on_request: |talk| first(talk, |talk| talk.forge(const { &connection_ids::<28>(9, 10) })),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 5.1.1",
        name: "more connection ids than the client has room for",
        on_request: |talk| first(talk, |talk| talk.forge(const { &connection_ids::<168>(9, 0) })),
        failures: BROKEN_QUIC,
        ..GOOD
    },
    Peer {
        section: "9000 9.5",
        name: "no connection ids for a client that moves",
        withholds_ids: true,
        transport: |transport| {
            transport.max_concurrent_bidi_streams(100_000_u32.into());
        },
        args: &["--migrate", "50ms", "-n", "300", "--timeout", "5s"],
        ..GOOD
    },
    // RFC 9000: streams and their limits.
    Peer {
        section: "9000 4.6",
        name: "no streams at first",
        transport: |transport| {
            transport.max_concurrent_bidi_streams(0_u8.into());
        },
        on_connected: |connection| connection.set_max_concurrent_streams(Dir::Bi, 10_u8.into()),
        ..GOOD
    },
    Peer {
        section: "9000 4.6",
        name: "no streams at all",
        transport: |transport| {
            transport.max_concurrent_bidi_streams(0_u8.into());
        },
        failures: &[(Timeout, Blocked); 3],
        ..GOOD
    },
    Peer {
        section: "9000 4.1",
        name: "a window that never opens for an upload",
        transport: |transport| {
            transport.stream_receive_window(1000_u16.into());
        },
        on_request: |_| {},
        args: UPLOAD,
        failures: &[(Timeout, Sending); 3],
        ..GOOD
    },
    Peer {
        section: "9000 10.2",
        name: "a connection that is closed while a body is sent",
        transport: |transport| {
            transport.stream_receive_window(1000_u16.into());
        },
        on_request: |talk| talk.close(H3_INTERNAL_ERROR),
        args: UPLOAD,
        failures: &[(ConnectionClosed, Sending); 3],
        ..GOOD
    },
    Peer {
        section: "9000 10.2",
        name: "a connection that is closed within the body of a response",
        on_request: |talk| {
            first(talk, |talk| {
                talk.send(HALF, false);
                talk.then(|talk| talk.close(H3_INTERNAL_ERROR));
            });
        },
        failures: &[(ConnectionClosed, Receiving)],
        ..GOOD
    },
    Peer {
        section: "9000 10.1",
        name: "silence for longer than the idle timeout, within a response",
        transport: |transport| {
            transport.max_idle_timeout(IdleTimeout::try_from(IDLE).ok());
        },
        on_request: |talk| first(talk, |talk| talk.send(HALF, false)),
        args: &["--timeout", "5s"],
        failures: &[(ConnectionClosed, Receiving)],
        ..GOOD
    },
    // RFC 9204: QPACK.
    Peer {
        section: "9204 4.3",
        name: "an insertion into a table that is not offered",
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x02, 0xc0, 0x01, b'x'])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9204 3.2.3",
        name: "a table that is larger than offered",
        // 200 bytes.
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x02, 0x3f, 0xa9, 0x01])),
        args: &["--qpack-table", "100"],
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9204 4.4.3",
        name: "acknowledgements of insertions that were never made",
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x03, 0x01])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9204 4.4.1",
        name: "an acknowledgement of a section without a table",
        on_request: |talk| first(talk, |talk| talk.open_uni(&[0x03, 0x80])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9204 2.2.3",
        name: "a response that refers to a table that is not offered",
        on_request: |talk| first(talk, |talk| talk.send(OF_TABLE, true)),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9204 2.1.2",
        name: "responses that wait for the table",
        on_request: |talk| {
            talk.send(OF_TABLE, true);
            if talk.stream_idx() == 0 {
                talk.then(|talk| talk.open_uni(INSERTION));
            }
        },
        args: &["--qpack-table", "4096"],
        ..GOOD
    },
    Peer {
        section: "9204 2.1.2",
        name: "a response that waits for the table for ever",
        on_request: |talk| first(talk, |talk| talk.send(OF_TABLE, true)),
        args: &["--qpack-table", "4096"],
        // The response has begun, but its head cannot be read.
        failures: &[(Timeout, Receiving)],
        ..GOOD
    },
    Peer {
        section: "9204 2.1.2",
        name: "more responses that wait for the table than may",
        transport: |transport| {
            transport.max_concurrent_bidi_streams(200_u8.into());
        },
        on_request: |talk| talk.send(OF_TABLE, true),
        args: &["--qpack-table", "4096", "--streams", "101", "-n", "101"],
        failures: &{
            let mut all = [(HttpProtocol, Receiving); 101];
            // The first one beyond the limit is never read.
            all[100] = (HttpProtocol, Waiting);
            all
        },
        ..GOOD
    },
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
    Peer {
        section: "9114 5.2",
        name: "GOAWAY with many requests in flight",
        on_request: |talk| {
            if talk.request_idx == 0 {
                talk.send_control(&[0x07, 0x01, 0x10]);
            }
            if talk.connection_idx > 0 || talk.stream_idx() < 4 {
                talk.answer();
            }
        },
        args: &["--streams", "10", "-n", "20"],
        counts: &[("connections", 2)],
        ..GOOD
    },
    Peer {
        section: "9114 5.2",
        name: "a notice of the end, and the end",
        on_request: |talk| {
            if talk.request_idx == 0 {
                talk.send_control(&[0x07, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc]);
                talk.then(|talk| {
                    talk.send_control(&[0x07, 0x01, 0x04]);
                    talk.answer();
                });
            } else {
                talk.answer();
            }
        },
        counts: &[("connections", 2)],
        ..GOOD
    },
    Peer {
        section: "9114 5.2",
        name: "GOAWAY that rises",
        on_request: |talk| first(talk, |talk| talk.send_control(&[0x07, 0x01, 0x04, 0x07, 0x01, 0x08])),
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
    Peer {
        section: "9218 7.2",
        name: "PRIORITY_UPDATE from a server",
        on_request: |talk| {
            first(talk, |talk| talk.send_control(&[0x80, 0x0f, 0x07, 0x00, 0x04, 0x00, b'u', b'=', b'1']));
        },
        failures: &[(HttpProtocol, Waiting)],
        ..GOOD
    },
];

pub(super) const GOOD: Peer = Peer {
    section: "9114 4.1",
    name: "",
    greeting: Greeting::Accept,
    on_connected: |_| {},
    on_request: |talk| talk.answer(),
    transport: |_| {},
    tls: |_| {},
    parameters: |_| {},
    handshake_frames: &[],
    withholds_ids: false,
    name_count: 0,
    args: &[],
    failures: &[],
    counts: &[],
};

/// Does this with the first request, and answers all others well.
fn first(talk: &mut Talk<'_>, act: Act) {
    if talk.request_idx == 0 { act(talk) } else { talk.answer() }
}

/// Puts a transport parameter (RFC 9000 18) in the place of any with the same id, which has one byte.
fn set_parameter(parameters: &mut Vec<u8>, id: u8, value: &[u8]) {
    drop_parameter(parameters, id);
    parameters.extend([id, value.len() as u8]);
    parameters.extend(value);
}

fn drop_parameter(parameters: &mut Vec<u8>, id: u8) {
    let all = std::mem::take(parameters);
    let mut rest = &all[..];
    while let Some((found, bytes)) = parameter(&mut rest) {
        if found != u64::from(id) {
            parameters.extend_from_slice(bytes);
        }
    }
}

/// Takes a parameter off the front: its id, and all of it.
fn parameter<'p>(rest: &mut &'p [u8]) -> Option<(u64, &'p [u8])> {
    let begin = *rest;
    let (id, length) = (varint(rest)?, varint(rest)?);
    *rest = rest.get(length as usize..)?;
    Some((id, &begin[..begin.len() - rest.len()]))
}

/// NEW_CONNECTION_ID frames of 28 bytes, from this number on, each of which retires all before `retired`.
const fn connection_ids<const BYTES: usize>(first: u8, retired: u8) -> [u8; BYTES] {
    let mut frames = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        let number = first + (at / 28) as u8;
        (frames[at], frames[at + 1], frames[at + 2], frames[at + 3]) = (0x18, number, retired, 8);
        // Ids and tokens are all different.
        frames[at + 4] = number;
        frames[at + 12] = number;
        at += 28;
    }
    frames
}

fn close(connection: &mut Connection, code: u32) {
    connection.close(Instant::now(), code.into(), bytes::Bytes::new());
}

/// It has none for any name.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
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

/// More than the window of servers that are to be uploaded to slowly.
const UPLOAD: &[&str] = &[
    "-X",
    "POST",
    "--body",
    match std::str::from_utf8(&[b'x'; 5000]) {
        Ok(text) => text,
        Err(_) => "",
    },
];

/// The client finds what is wrong within each handshake.
const BROKEN_HANDSHAKES: &[(Cause, Phase)] = &[(QuicProtocol, TlsHandshaking); 3];

/// The client finds what is wrong after the first request.
const BROKEN_QUIC: &[(Cause, Phase)] = &[(QuicProtocol, Waiting)];

/// Longer than a busy machine holds a packet up, and shorter than the time-out of requests there.
const IDLE: Duration = Duration::from_millis(1500);

/// A response whose body has sixteen bytes, of which one comes.
const HALF: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9, 0x00, 0x10, b'x'];

/// HEADERS with `:status: 200` and the first entry of QPACK's table, where that may have 4,096 bytes.
const OF_TABLE: &[u8] = &[0x01, 0x04, 0x02, 0x00, 0xd9, 0x80];

/// QPACK's encoder stream: a capacity of 100 bytes, and `custom: value`.
const INSERTION: &[u8] = b"\x02\x3f\x45\x46custom\x05value";

const H3_INTERNAL_ERROR: u32 = 0x102;
const H3_REQUEST_REJECTED: u32 = 0x10b;
