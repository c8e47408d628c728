//! The table of hostile servers.

use std::time::Duration;

use squall_measure::Cause::*;
use squall_measure::Phase::*;
use squall_measure::{Cause, Phase};

use super::Act::*;
use super::{BODY_FILE, Expect, Peer, Tls};

/// A good status line, and the rest in one piece with it.
macro_rules! ok {
    ($rest:expr) => {
        Send(concat!("HTTP/1.1 200 OK\r\n", $rest).as_bytes())
    };
}

/// The head of a chunked response, and what follows in one piece with it.
macro_rules! chunked {
    ($rest:literal) => {
        ok!(concat!("Transfer-Encoding: chunked\r\n\r\n", $rest))
    };
}

/// A whole redirect with these fields.
macro_rules! redirect {
    ($fields:literal) => {
        Send(
            concat!("HTTP/1.1 302 Found\r\n", $fields, "Content-Length: 0\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
    };
}

/// Every hostile server.
pub const PEERS: &[Peer] = &[
    // Heads that never end or mean nothing.
    plain("endless headers", &[ReadRequest, ok!(""), SendForever(b"X-Fill: aaaaaaaaaaaa\r\n")], TOO_LARGE),
    plain("header of endless length", &[ReadRequest, ok!("X-Fill: "), SendForever(b"aaaaaaaa")], TOO_LARGE),
    plain("too many tiny headers", &[ReadRequest, ok!(""), SendForever(b"a:\r\n")], TOO_LARGE),
    plain(
        "endless reason phrase",
        &[ReadRequest, Send(b"HTTP/1.1 200 "), SendForever(b"OK OK OK ")],
        TOO_LARGE,
    ),
    plain("status in words", &[ReadRequest, Send(b"HTTP/1.1 two OK\r\n\r\n"), Hold], NOT_HTTP),
    plain(
        "status of two digits",
        &[ReadRequest, Send(b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"), Hold],
        NOT_HTTP,
    ),
    plain(
        "status of four digits",
        &[ReadRequest, Send(b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"), Hold],
        NOT_HTTP,
    ),
    plain(
        "version from the future",
        &[ReadRequest, Send(b"HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"), Hold],
        NOT_HTTP,
    ),
    plain("another protocol", &[ReadRequest, Send(b"SSH-2.0-OpenSSH_9.2\r\n"), Hold], NOT_HTTP),
    plain("binary garbage", &[ReadRequest, SendForever(b"\x00\xff\x01\xfe\r\n\x80\n")], NOT_HTTP),
    plain("body without a head", &[ReadRequest, Send(b"<html>hello</html>\r\n\r\n")], NOT_HTTP),
    plain("header without a colon", &[ReadRequest, ok!("nonsense\r\n\r\n"), Hold], NOT_HTTP),
    // Lengths that lie.
    plain("negative length", &[ReadRequest, ok!("Content-Length: -1\r\n\r\n"), Hold], NOT_HTTP),
    plain("length in words", &[ReadRequest, ok!("Content-Length: two\r\n\r\nok"), Hold], NOT_HTTP),
    plain(
        "two different lengths",
        &[ReadRequest, ok!("Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!"), Hold],
        NOT_HTTP,
    ),
    plain(
        "list of different lengths",
        &[ReadRequest, ok!("Content-Length: 2, 3\r\n\r\nok!"), Hold],
        NOT_HTTP,
    ),
    plain(
        "length beyond 64 bits",
        &[ReadRequest, ok!("Content-Length: 99999999999999999999\r\n\r\n"), Hold],
        NOT_HTTP,
    ),
    plain(
        "both length and chunks",
        &[ReadRequest, ok!("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")],
        OK_OR_NOT_HTTP,
    ),
    plain("chunk size in words", &[ReadRequest, chunked!("two\r\nok\r\n0\r\n\r\n"), Hold], NOT_HTTP),
    plain("negative chunk size", &[ReadRequest, chunked!("-2\r\nok\r\n0\r\n\r\n"), Hold], NOT_HTTP),
    plain("chunk size beyond 64 bits", &[ReadRequest, chunked!("fffffffffffffffff\r\nok"), Hold], NOT_HTTP),
    plain("chunk longer than its size", &[ReadRequest, chunked!("2\r\nokay\r\n0\r\n\r\n"), Hold], NOT_HTTP),
    plain(
        "endless chunk extension",
        &[ReadRequest, chunked!("2;x="), SendForever(b"aaaaaaaa")],
        NOT_HTTP_OR_TOO_LARGE,
    ),
    plain(
        "endless trailers",
        &[ReadRequest, chunked!("0\r\n"), SendForever(b"X-Fill: aaaaaaaa\r\n")],
        NOT_HTTP_OR_TOO_LARGE,
    ),
    // Closed too early, in every phase.
    plain("close at once", &[], GONE_BEFORE_ANSWER),
    plain("close before the answer", &[ReadRequest], fails(&[(ConnectionClosed, Waiting)])),
    plain("close within the status line", &[ReadRequest, Send(b"HTTP/1.1 2")], CUT_OFF),
    plain("close within a header", &[ReadRequest, ok!("Content-Le")], CUT_OFF),
    plain("close before the body", &[ReadRequest, Send(TEN_BYTES)], CUT_OFF),
    plain("close within the body", &[ReadRequest, Send(TEN_BYTES), Send(b"hello")], CUT_OFF),
    plain("close within a chunk size", &[ReadRequest, chunked!("1")], CUT_OFF),
    plain("close within a chunk", &[ReadRequest, chunked!("a\r\nhello")], CUT_OFF),
    plain("close between chunks", &[ReadRequest, chunked!("5\r\nhello\r\n")], CUT_OFF),
    plain("close before the trailers end", &[ReadRequest, chunked!("0\r\nX-Sum: 1\r\n")], CUT_OFF),
    // Reset, in every phase.
    plain("reset at once", &[Reset], GONE_BEFORE_ANSWER),
    plain("reset before the answer", &[ReadRequest, Reset], fails(&[(ConnectionReset, Waiting)])),
    plain("reset within a header", &[ReadRequest, ok!("Content-Le"), Reset], RESET),
    plain("reset within the body", &[ReadRequest, Send(TEN_BYTES), Send(b"hello"), Reset], RESET),
    plain("reset within a chunk", &[ReadRequest, chunked!("a\r\nhello"), Reset], RESET),
    // Too slow, or too much.
    plain("never answers", &[ReadRequest, Hold], fails(&[(Timeout, Waiting)])),
    plain("head drop by drop", &[ReadRequest, Send(b"HTTP/1.1 200 OK\r\nX-Drip: "), Drip(b"a", PAUSE)], SLOW),
    plain("body drop by drop", &[ReadRequest, Send(TEN_THOUSAND_BYTES), Drip(b"a", PAUSE)], SLOW),
    plain("chunks drop by drop", &[ReadRequest, chunked!(""), Drip(b"1\r\na\r\n", PAUSE)], SLOW),
    asked(
        &["--timeout", "60s"],
        plain("body of a gibibyte", &[ReadRequest, Send(GIBIBYTE), SendZeros(1 << 30)], OK),
    ),
    asked(
        &["--body-file", BODY_FILE],
        plain("never reads the body", &[ReadHead, HoldUnread], fails(&[(Timeout, Sending)])),
    ),
    asked(
        &["-H", "Expect: 100-continue", "--body", "ok"],
        plain(
            "never says 100 (Continue)",
            &[ReadHead, HoldUnread],
            fails(&[(Timeout, Sending), (Timeout, Waiting)]),
        ),
    ),
    // Answers without a request.
    plain(
        "endless interim responses",
        &[ReadRequest, SendForever(b"HTTP/1.1 103 Early Hints\r\n\r\n")],
        NOT_HTTP_OR_TOO_LARGE,
    ),
    plain(
        "switches protocols unasked",
        &[
            ReadRequest,
            Send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
            Hold,
        ],
        NOT_HTTP,
    ),
    plain(
        "bytes after the response",
        &[ReadRequest, ok!("Content-Length: 2\r\n\r\nok!!"), Hold],
        OK_OR_NOT_HTTP,
    ),
    plain("answers before the request", &[Send(SMALL), ReadRequest], OK_OR_UNASKED),
    plain("answers twice", &[ReadRequest, Send(SMALL), Send(SMALL)], OK_OR_UNASKED),
    plain(
        "server error",
        &[ReadRequest, Send(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")],
        fails(&[(UnexpectedStatus, Receiving)]),
    ),
    asked(
        &["--expect-body-bytes", "3"],
        plain(
            "another length than expected",
            &[ReadRequest, Send(SMALL)],
            fails(&[(UnexpectedLength, Receiving)]),
        ),
    ),
    asked(
        &["--follow", "5"],
        plain("redirects in a circle", &[ReadRequest, redirect!("Location: /\r\n")], OK_UNTIL_TOO_MANY),
    ),
    asked(&["--follow", "5"], plain("redirects to nowhere", &[ReadRequest, redirect!("")], BAD_REDIRECT)),
    asked(
        &["--follow", "5"],
        plain("redirects to nonsense", &[ReadRequest, redirect!("Location: http://[\r\n")], BAD_REDIRECT),
    ),
    // TLS that is none.
    tls(
        "TLS: answers in plain text",
        Tls::Raw,
        &[ReadSome, Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Hold],
        NOT_TLS,
    ),
    tls("TLS: answers garbage", Tls::Raw, &[ReadSome, Send(&[0xff; 64]), Hold], NOT_TLS),
    tls("TLS: alert for the ClientHello", Tls::Raw, &[ReadSome, Send(HANDSHAKE_FAILURE), Hold], ALERT),
    tls(
        "TLS: alert after the ServerHello",
        Tls::HelloThen(HANDSHAKE_FAILURE),
        &[Hold],
        fails(&[(TlsAlert, TlsHandshaking), (TlsProtocol, TlsHandshaking)]),
    ),
    tls("TLS: close at once", Tls::Raw, &[], GONE_IN_HANDSHAKE),
    tls("TLS: close after the ClientHello", Tls::Raw, &[ReadSome], GONE_IN_HANDSHAKE),
    tls("TLS: close after the ServerHello", Tls::HelloThen(b""), &[], GONE_IN_HANDSHAKE),
    tls(
        "TLS: reset after the ClientHello",
        Tls::Raw,
        &[ReadSome, Reset],
        fails(&[(ConnectionReset, TlsHandshaking)]),
    ),
    asked(
        &["--connect-timeout", "300ms"],
        tls("TLS: never answers", Tls::Raw, &[Hold], fails(&[(ConnectTimeout, TlsHandshaking)])),
    ),
    // TLS that the client or the server must refuse.
    tls("TLS: certificate for another name", Tls::WrongName, &[Hold], BAD_CERTIFICATE),
    tls("TLS: expired certificate", Tls::Expired, &[Hold], BAD_CERTIFICATE),
    tls("TLS: unknown authority", Tls::Untrusted, &[Hold], BAD_CERTIFICATE),
    asked(&["--tls", "1.3"], tls("TLS: 1.2 for a client of 1.3", Tls::Only12, &[Hold], ALERT)),
    asked(&["--tls", "1.2"], tls("TLS: 1.3 for a client of 1.2", Tls::Only13, &[Hold], ALERT)),
    tls("TLS: HTTP/2 alone", Tls::OnlyH2, &[Hold], ALERT),
    tls("TLS: no certificate for the name", Tls::UnknownName, &[Hold], ALERT),
    asked(
        &["--tls", "1.2"],
        tls("TLS 1.2: client certificate demanded", Tls::WantsClientCert, &[Hold], ALERT),
    ),
    // In TLS 1.3 the client has finished when the refusal comes (RFC 8446 4.4.2.4), so it may be in any later phase.
    asked(
        &["--tls", "1.3"],
        tls(
            "TLS 1.3: client certificate demanded",
            Tls::WantsClientCert,
            &[Hold],
            fails(&[(TlsAlert, TlsHandshaking), (TlsAlert, Sending), (TlsAlert, Waiting)]),
        ),
    ),
    // Good TLS, bad ends.
    tls("TLS: close within the body", Tls::Valid, &[ReadRequest, Send(TEN_BYTES), Send(b"hello")], CUT_OFF),
    tls(
        "TLS: reset within the body",
        Tls::Valid,
        &[ReadRequest, Send(TEN_BYTES), Send(b"hello"), Reset],
        RESET,
    ),
    // RFC 9112 9.8: without a closure alert it is unknown whether a close-delimited body is whole.
    tls("TLS: body until a close without alert", Tls::Valid, &[ReadRequest, ok!("\r\nhello")], CUT_OFF),
];

const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const TEN_BYTES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
const TEN_THOUSAND_BYTES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n";
const GIBIBYTE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\nConnection: close\r\n\r\n";

/// A fatal `handshake_failure` in plain text (RFC 8446 6).
const HANDSHAKE_FAILURE: &[u8] = &[21, 3, 3, 0, 2, 2, 40];

/// Between two bytes of a drip: a whole answer would take far longer than any timeout here.
const PAUSE: Duration = Duration::from_millis(20);

const OK: Expect = Expect { ok: true, failures: &[] };
const NOT_HTTP: Expect = fails(&[(HttpProtocol, Receiving)]);
const OK_OR_NOT_HTTP: Expect = Expect { ok: true, ..NOT_HTTP };
/// The unasked answer may come before the request is out, between two requests, or in place of an answer.
const OK_OR_UNASKED: Expect = Expect {
    ok: true,
    failures: &[
        (HttpProtocol, Blocked),
        (HttpProtocol, Sending),
        (HttpProtocol, Waiting),
        (HttpProtocol, Receiving),
    ],
};
const TOO_LARGE: Expect = fails(&[(HeadTooLarge, Receiving)]);
const NOT_HTTP_OR_TOO_LARGE: Expect = fails(&[(HttpProtocol, Receiving), (HeadTooLarge, Receiving)]);
/// Our first bytes race with the peer's FIN or RST: the kernel may refuse to send, or tell us when we read.
const GONE_BEFORE_ANSWER: Expect = fails(&[
    (ConnectionClosed, Sending),
    (ConnectionClosed, Waiting),
    (ConnectionReset, Connecting),
    (ConnectionReset, Sending),
    (ConnectionReset, Waiting),
]);
const CUT_OFF: Expect = fails(&[(ConnectionClosed, Receiving)]);
const RESET: Expect = fails(&[(ConnectionReset, Receiving)]);
const SLOW: Expect = fails(&[(Timeout, Receiving)]);
/// Each redirect on the way is an answer like any other; the last one is one too many.
const OK_UNTIL_TOO_MANY: Expect = Expect { ok: true, failures: &[(TooManyRedirects, Receiving)] };
const BAD_REDIRECT: Expect = fails(&[(BadRedirect, Receiving)]);
const NOT_TLS: Expect = fails(&[(TlsProtocol, TlsHandshaking)]);
const ALERT: Expect = fails(&[(TlsAlert, TlsHandshaking)]);
const BAD_CERTIFICATE: Expect = fails(&[(TlsCertificate, TlsHandshaking)]);
const GONE_IN_HANDSHAKE: Expect =
    fails(&[(ConnectionClosed, TlsHandshaking), (ConnectionReset, TlsHandshaking)]);

const fn fails(failures: &'static [(Cause, Phase)]) -> Expect {
    Expect { ok: false, failures }
}

const fn plain(name: &'static str, acts: &'static [super::Act], expect: Expect) -> Peer {
    Peer { name, tls: Tls::No, acts, args: &[], expect }
}

const fn tls(name: &'static str, tls: Tls, acts: &'static [super::Act], expect: Expect) -> Peer {
    Peer { name, tls, acts, args: &[], expect }
}

const fn asked(args: &'static [&'static str], peer: Peer) -> Peer {
    Peer { args, ..peer }
}
