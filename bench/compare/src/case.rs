//! The cases: what is asked of every tool, and what squall's ratio to each must not exceed.

use crate::script::Script;
use crate::tool::Tool;

/// One kind of load.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) is_tls: bool,
    pub(crate) connection_count: u32,
    /// HTTP/2 or HTTP/3 with so many streams on each connection; `None`: HTTP/1.1.
    pub(crate) stream_count: Option<u32>,
    /// HTTP/3, or handshakes of QUIC, with envoy as the server.
    pub(crate) is_quic: bool,
    /// Requests per second of an open model; `None`: closed model.
    pub(crate) rate: Option<u32>,
    /// TLS handshakes instead of requests.
    pub(crate) handshake: Option<Handshake>,
    /// A k6 script, with as many virtual users as there are connections.
    pub(crate) script: Option<Script>,
    /// WebSocket messages instead of requests; their server is squall's own.
    pub(crate) messages: Option<Messages>,
    /// squall's cost may be at most this multiple of the tool's.
    pub(crate) limits: &'static [(Tool, f64)],
}

/// Who sends WebSocket messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Messages {
    /// Each connection sends one, gets the same back, and sends the next.
    Echo,
    /// One connection sends so many a second, and each connection gets all of them.
    Publish { per_s: u32 },
}

/// A kind of TLS handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handshake {
    /// `1.2` or `1.3`.
    pub(crate) version: &'static str,
    /// The server's key is RSA, else P-256.
    pub(crate) is_rsa: bool,
    pub(crate) resumes: bool,
    /// squall checks the certificate and its signature; tls-perf never does.
    pub(crate) verifies: bool,
}

/// Every case but [`START`].
pub(crate) const CASES: &[Case] = &[
    small("small-4", 4, &[(Tool::Wrk, 0.60), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)]),
    small(
        "small-100",
        100,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.78), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    small(
        "small-1000",
        1000,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.78), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    small(
        "small-10000",
        10_000,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.60), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    Case {
        is_tls: true,
        ..small("tls-100", 100, &[(Tool::Wrk, 0.72), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    Case {
        path: "/100k",
        ..small("body-100k", 20, &[(Tool::Wrk, 0.35), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    Case {
        path: "/1m",
        ..small("body-1m", 20, &[(Tool::Wrk, 0.55), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    h2("h2c-1", 1, &[(Tool::H2load, 0.70), (Tool::Oha, 1.0)]),
    h2("h2c-10", 10, &[(Tool::H2load, 0.40), (Tool::Oha, 1.0)]),
    h2("h2c-100", 100, &[(Tool::H2load, 0.30), (Tool::Oha, 1.0)]),
    Case { is_tls: true, ..h2("h2-tls-1", 1, &[(Tool::H2load, 0.60), (Tool::Oha, 1.0)]) },
    Case { is_tls: true, ..h2("h2-tls-10", 10, &[(Tool::H2load, 0.60), (Tool::Oha, 1.0)]) },
    Case { is_tls: true, ..h2("h2-tls-100", 100, &[(Tool::H2load, 0.60), (Tool::Oha, 1.0)]) },
    h3("h3-1", "/", 1, &[(Tool::Oha, 0.35), (Tool::H2loadH3, 1.0)]),
    h3("h3-10", "/", 10, &[(Tool::Oha, 0.35), (Tool::H2loadH3, 0.80)]),
    h3("h3-100", "/", 100, &[(Tool::Oha, 0.35), (Tool::H2loadH3, 1.0), (Tool::OverTcp, 3.0)]),
    h3("h3-body-20k", "/20k", 10, &[(Tool::Oha, 0.35), (Tool::H2loadH3, 1.0), (Tool::OverTcp, 3.0)]),
    h3("h3-body-128k", "/128k", 10, &[(Tool::Oha, 0.35), (Tool::H2loadH3, 1.0), (Tool::OverTcp, 3.0)]),
    Case { is_quic: true, ..handshake("h3-handshake", FULL_13, &[(Tool::OverTcp, 3.0)]) },
    Case { rate: Some(20_000), ..small("open-20k", 100, &[(Tool::Wrk2, 0.90), (Tool::Oha, 1.0)]) },
    Case { rate: Some(100_000), ..small("open-100k", 100, &[(Tool::Wrk2, 0.90), (Tool::Oha, 1.0)]) },
    handshake("handshake-13-ecdsa", FULL_13, &[(Tool::TlsPerf, 0.35)]),
    handshake("handshake-12-ecdsa", Handshake { version: "1.2", ..FULL_13 }, &[(Tool::TlsPerf, 0.35)]),
    handshake("handshake-13-rsa", Handshake { is_rsa: true, ..FULL_13 }, &[(Tool::TlsPerf, 0.35)]),
    handshake(
        "handshake-12-rsa",
        Handshake { version: "1.2", is_rsa: true, ..FULL_13 },
        &[(Tool::TlsPerf, 0.35)],
    ),
    handshake("resumed-12", Handshake { version: "1.2", resumes: true, ..FULL_13 }, &[(Tool::TlsPerf, 0.55)]),
    handshake("resumed-13", Handshake { resumes: true, ..FULL_13 }, &[(Tool::TlsPerf, 0.55)]),
    handshake("verified-13-ecdsa", Handshake { verifies: true, ..FULL_13 }, &[(Tool::TlsPerf, 1.0)]),
    handshake(
        "verified-13-rsa",
        Handshake { is_rsa: true, verifies: true, ..FULL_13 },
        &[(Tool::TlsPerf, 1.0)],
    ),
    script("k6-get", Script::Get, &[(Tool::K6, 0.08), (Tool::K6Fasthttp, 0.15), (Tool::Wrk, 1.1)]),
    script("k6-check", Script::Check, &[(Tool::K6, 0.09), (Tool::Wrk, 1.5)]),
    script("k6-recorded", Script::Recorded, &[(Tool::K6, 0.15)]),
    Case { connection_count: 2000, ..script("k6-2000", Script::Get, &[(Tool::K6, 0.20)]) },
    Case { connection_count: 2000, ..script("k6-library-2000", Script::Library, &[(Tool::K6, 0.20)]) },
    websocket("ws-echo-100", Messages::Echo, 100),
    websocket("ws-echo-10k", Messages::Echo, 10_000),
    websocket("ws-publish", Messages::Publish { per_s: 500 }, 100),
];

/// What a request may cost at most compared with an earlier squall.
const BEFORE_LIMIT: f64 = 1.02;

/// The case that measures the time from a tool's start to its first request.
pub(crate) const START: &str = "start";

/// The names of all cases.
pub(crate) fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).chain([START]).collect()
}

impl Case {
    /// squall, then those it is compared with.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        [Tool::Squall, Tool::Before].into_iter().chain(self.limits.iter().map(|(tool, _)| *tool))
    }

    /// What squall's ratio to `tool` must not exceed.
    pub(crate) fn limit(&self, tool: Tool) -> Option<f64> {
        if tool == Tool::Before {
            return Some(BEFORE_LIMIT);
        }
        self.limits.iter().find(|(one, _)| *one == tool).map(|(_, limit)| *limit)
    }
}

const fn small(name: &'static str, connection_count: u32, limits: &'static [(Tool, f64)]) -> Case {
    Case {
        name,
        path: "/",
        is_tls: false,
        connection_count,
        stream_count: None,
        is_quic: false,
        rate: None,
        handshake: None,
        script: None,
        messages: None,
        limits,
    }
}

/// Messages of 32 bytes on so many connections.
const fn websocket(name: &'static str, messages: Messages, connection_count: u32) -> Case {
    let path = match messages {
        Messages::Echo => "/ws/echo",
        Messages::Publish { .. } => "/ws/broadcast",
    };
    let limits = &[(Tool::Floor, 1.3), (Tool::K6, 0.10), (Tool::K9, 0.10)];
    Case { path, messages: Some(messages), ..small(name, connection_count, limits) }
}

/// A full handshake with the figures that most of them have.
const FULL_13: Handshake = Handshake { version: "1.3", is_rsa: false, resumes: false, verifies: false };

/// Ten connections at once, each closed by a reset after its handshake, as tls-perf does.
const fn handshake(name: &'static str, handshake: Handshake, limits: &'static [(Tool, f64)]) -> Case {
    Case { is_tls: true, handshake: Some(handshake), ..small(name, 10, limits) }
}

/// A script with 100 virtual users.
const fn script(name: &'static str, script: Script, limits: &'static [(Tool, f64)]) -> Case {
    Case { script: Some(script), ..small(name, 100, limits) }
}

/// HTTP/3 on ten connections with so many streams each.
const fn h3(
    name: &'static str,
    path: &'static str,
    stream_count: u32,
    limits: &'static [(Tool, f64)],
) -> Case {
    Case { path, is_tls: true, is_quic: true, ..h2(name, stream_count, limits) }
}

/// Ten connections with so many streams each.
const fn h2(name: &'static str, stream_count: u32, limits: &'static [(Tool, f64)]) -> Case {
    Case { stream_count: Some(stream_count), ..small(name, 10, limits) }
}
