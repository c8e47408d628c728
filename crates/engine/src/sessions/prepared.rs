//! Turns a load of connections into what the loop uses: where they go, in which rotation, and what is said on them.
//!
//! Everything here is made once, before the first packet, and shared by the shards read-only.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_measure::{Protocol, RowKey};
use squall_plan::{
    CloseMode, Endpoint, HandshakeLoad, IdleLoad, IdleProtocol, Load, Ping, PingKind, Resumption,
    SessionRequest, TlsPolicy, Weighted, What,
};
use squall_wire::h1::{self, RequestHead};
use squall_wire::h2::IdleClient;

use crate::dns::Names;
use crate::prepare::{Dial, resolve_rule, rotation};
use crate::sys::nanoseconds;
use crate::{Error, tls};

/// A load of connections, ready to be driven.
pub(crate) struct PreparedSessions {
    pub(crate) load: Load,
    /// Rows of figures, those of the loads before this one included.
    pub(crate) rows: Vec<RowKey>,
    /// Names of the targets.
    pub(crate) names: Arc<Names>,
    /// Every way that a connection can take: target x server name.
    pub(super) courses: Vec<Course>,
    /// Indices of courses in the order in which they are taken, again and again.
    pub(super) rotation: Vec<u32>,
    /// How TLS is spoken, where it is.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) conduct: Conduct,
}

/// Where a connection goes, and what is said on it.
pub(super) struct Course {
    pub(super) dial: Dial,
    pub(super) row_idx: u32,
    /// Name sent and verified, with TLS.
    pub(super) server_name: Option<ServerName<'static>>,
    /// The request that follows the handshake.
    pub(super) request: Option<Box<[u8]>>,
    /// What is said now and then.
    pub(super) ping: Option<Box<[u8]>>,
}

/// How every connection of the load behaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conduct {
    /// Connections are opened to be kept: those that the server closes are opened again, unless that is unwanted.
    pub(super) is_idle: bool,
    pub(super) reopens: bool,
    pub(super) is_http2: bool,
    /// Something of ours may follow the handshake's last flight.
    pub(super) writes_twice: bool,
    /// How long a connection is kept once it is ready; 0: it is closed at once.
    pub(super) keep_ns: u64,
    pub(super) request_timeout_ns: u64,
    /// How long the answer to a ping may take.
    pub(super) pong_timeout_ns: u64,
    /// How long a kept connection is silent before each ping.
    pub(super) ping_ns: Option<u64>,
    /// Pings are answered.
    pub(super) awaits_pong: bool,
    pub(super) jitter_ns: u64,
    /// Where nothing is said any more, the TLS session is dropped, but for what closes it.
    pub(super) parks: bool,
    pub(super) resumption: Resumption,
    pub(super) close: CloseMode,
}

impl PreparedSessions {
    /// Prepares a load: reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let policy = tls_policy(load);
        let own_name = policy.sni.iter().map(|name| Weighted::once(Some(name.clone())));
        let server_names = match &load.what {
            What::Handshake(handshake) if !handshake.server_names.is_empty() => {
                handshake.server_names.iter().map(named).collect()
            }
            _ => own_name.chain([Weighted::once(None)]).take(1).collect::<Vec<_>>(),
        };
        let mut routes =
            CourseTable { load, names: Names::default(), rows, courses: Vec::new(), weights: Vec::new() };
        for target in load.what.endpoints().unwrap_or_default() {
            for name in &server_names {
                routes.add(target, name)?;
            }
        }
        let CourseTable { names, rows, courses, weights, .. } = routes;
        Ok(Self {
            tls: load.speaks_tls().then(|| tls::client_config(&policy)).transpose()?,
            names: names.resolve(&load.network.sources, stop)?,
            rotation: rotation(&weights)?,
            conduct: Conduct::new(load),
            load: load.clone(),
            rows,
            courses,
        })
    }
}

/// Collects the courses, and the names and rows they need.
struct CourseTable<'a> {
    load: &'a Load,
    names: Names,
    rows: Vec<RowKey>,
    courses: Vec<Course>,
    weights: Vec<u64>,
}

impl CourseTable<'_> {
    fn add(
        &mut self,
        target: &Weighted<Endpoint>,
        server_name: &Weighted<Option<String>>,
    ) -> Result<(), Error> {
        let Endpoint { host, port } = &target.value;
        let name = server_name.value.as_deref().unwrap_or(host);
        let fixed = resolve_rule(&self.load.network, host, *port);
        let (request, ping) = sayings(&self.load.what);
        let encode = |request: &SessionRequest| get(&request.path, name, &target.value);
        let row_idx = self.row_idx(target, server_name.value.as_deref());
        self.courses.push(Course {
            dial: Dial::Tcp { name_idx: self.names.add(host, *port, fixed), port: *port },
            row_idx,
            server_name: self.load.speaks_tls().then(|| server_name_of(name)).transpose()?,
            request: request.map(encode).transpose()?,
            ping: match ping.map(|ping| &ping.kind) {
                None => None,
                Some(PingKind::Byte) => Some(Box::from(*b"\n")),
                Some(PingKind::Request(request)) => Some(encode(request)?),
                Some(PingKind::H2) => Some(written(IdleClient::write_ping)),
            },
        });
        self.weights.push(u64::from(target.weight.get()) * u64::from(server_name.weight.get()));
        Ok(())
    }

    fn row_idx(&mut self, target: &Weighted<Endpoint>, server_name: Option<&str>) -> u32 {
        let authority = target.value.authority();
        let row = RowKey {
            load: self.load.name.clone(),
            protocol: if self.load.speaks_tls() { Protocol::Tls } else { Protocol::Tcp },
            method: self.load.what.noun().to_uppercase(),
            url: server_name.map_or_else(|| authority.clone(), |name| format!("{authority} as {name}")),
        };
        let known = self.rows.iter().position(|known| *known == row);
        known.unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() - 1
        }) as u32
    }
}

impl Conduct {
    fn new(load: &Load) -> Self {
        match &load.what {
            What::Handshake(handshake) => Self::of_handshake(handshake),
            What::Idle(idle) => Self::of_idle(idle),
            _ => unreachable!("loads of connections come here"),
        }
    }

    fn of_handshake(load: &HandshakeLoad) -> Self {
        Self {
            is_idle: false,
            reopens: false,
            is_http2: false,
            writes_twice: load.request.is_some(),
            keep_ns: nanoseconds(load.hold),
            request_timeout_ns: load.request.as_ref().map_or(0, |request| nanoseconds(request.timeout)),
            pong_timeout_ns: 0,
            ping_ns: None,
            awaits_pong: false,
            jitter_ns: 0,
            parks: load.resumption.mode == squall_plan::ResumptionMode::Off,
            resumption: load.resumption,
            close: load.close,
        }
    }

    fn of_idle(load: &IdleLoad) -> Self {
        let (request, ping) = (&load.first_request, &load.ping);
        Self {
            is_idle: true,
            reopens: load.reopens,
            is_http2: load.protocol == IdleProtocol::Http2,
            writes_twice: request.is_some() || ping.is_some() || load.protocol == IdleProtocol::Http2,
            keep_ns: u64::MAX,
            request_timeout_ns: request.as_ref().map_or(0, |request| nanoseconds(request.timeout)),
            pong_timeout_ns: ping.as_ref().map_or(0, |ping| nanoseconds(ping.timeout)),
            ping_ns: ping.as_ref().map(|ping| nanoseconds(ping.every)),
            awaits_pong: ping.as_ref().is_some_and(|ping| ping.kind != PingKind::Byte),
            jitter_ns: nanoseconds(load.jitter),
            // An HTTP/2 server may ask at any time whether we live.
            parks: ping.is_none() && !load.keeps_sessions && load.protocol != IdleProtocol::Http2,
            resumption: Resumption::OFF,
            close: load.close,
        }
    }
}

/// The policy with the protocol that the load speaks.
fn tls_policy(load: &Load) -> TlsPolicy {
    let mut policy = load.tls.clone();
    if let What::Idle(IdleLoad { protocol: IdleProtocol::Http2, .. }) = &load.what
        && policy.alpn.is_empty()
    {
        policy.alpn = vec!["h2".to_owned()];
    }
    policy
}

/// What is said on the connections: the request that follows the opening, and the ping.
fn sayings(what: &What) -> (Option<&SessionRequest>, Option<&Ping>) {
    match what {
        What::Handshake(load) => (load.request.as_ref(), None),
        What::Idle(load) => (load.first_request.as_ref(), load.ping.as_ref()),
        _ => (None, None),
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Box<[u8]> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes.into_boxed_slice()
}

fn named(name: &Weighted<String>) -> Weighted<Option<String>> {
    Weighted { weight: NonZeroU32::max(name.weight, NonZeroU32::MIN), value: Some(name.value.clone()) }
}

fn server_name_of(name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned()).map_err(|error| Error::Plan {
        problem: format!("`{name}` cannot be a TLS server name: {error}"),
        help: "give a valid name with --sni".to_owned(),
    })
}

/// A `GET` of the server that is spoken to by `name`.
fn get(path: &str, name: &str, target: &Endpoint) -> Result<Box<[u8]>, Error> {
    let host = Endpoint { host: name.to_owned(), port: target.port };
    let is_usual_port = matches!(target.port, 80 | 443);
    let host = if is_usual_port && !name.contains(':') { name.to_owned() } else { host.authority() };
    let head = RequestHead {
        method: "GET",
        target: path,
        host: Some(&host),
        headers: &[("User-Agent", concat!("squall/", env!("CARGO_PKG_VERSION")))],
        content_length: None,
    };
    let mut bytes = Vec::new();
    h1::encode_head(&head, &mut bytes).map_err(|error| Error::Plan {
        problem: format!("cannot encode a request for `{path}`: {error}"),
        help: "write a path such as `/health`".to_owned(),
    })?;
    Ok(bytes.into_boxed_slice())
}
