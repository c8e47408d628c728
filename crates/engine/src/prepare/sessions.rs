//! Loads of handshakes and of idle connections: where their connections go, in which rotation, what is sent on them, and how long they stay.
//!
//! Owns: the translation of the plan. Never: tickets, timers, sockets.

use std::num::NonZeroU32;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_measure::{Protocol, RowKey};
use squall_plan::{
    CloseMode, Endpoint, Expect, ExpectBody, HandshakeLoad, HttpLoad, HttpVersion, IdleLoad, IdleProtocol,
    Load, Ping, PingKind, Resumption, ResumptionMode, SessionRequest, TlsPolicy, WebSocketLoad, Weighted,
    What,
};
use squall_wire::h1::RequestHead;
use squall_wire::h2::FieldTable;

use crate::dns::Names;
use crate::prepare::encode::encode;
use crate::prepare::origin::{Dial, Origin, OriginKey, OriginTls, resolve_rule};
use crate::prepare::request::PreparedRequest;
use crate::prepare::rows::VersionRows;
use crate::prepare::websocket::WebSocketPolicy;
use crate::sys::nanoseconds;
use crate::{Error, Remedy, tls};

/// What only loads of connections have.
#[derive(Debug)]
pub(crate) struct PreparedSessions {
    pub(crate) conduct: Conduct,
    /// How the response to a connection's request is judged.
    pub(super) http: HttpLoad,
    /// How TLS is spoken, where it is.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// What is said on connections that are WebSockets.
    pub(crate) websocket: Option<WebSocketPolicy>,
}

/// How every connection of such a load behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conduct {
    /// Connections are opened to be kept: those that the server closes are opened again, unless that is unwanted.
    pub(crate) is_idle: bool,
    pub(crate) reopens: bool,
    pub(crate) is_http2: bool,
    /// A request follows the opening.
    pub(crate) asks: bool,
    /// How long a connection is kept once it is ready; 0: it is closed at once, `u64::MAX`: until the end.
    pub(crate) keep_ns: u64,
    /// What is sent on a kept connection now and then.
    pub(crate) ping: Option<KeepAlive>,
    pub(crate) jitter_ns: u64,
    /// Where nothing is sent any more, the TLS session is dropped, but for what closes it.
    pub(crate) drops_session: bool,
    pub(crate) resumption: Resumption,
    pub(crate) close: CloseMode,
}

/// Signs of life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepAlive {
    pub(crate) kind: KeepAliveKind,
    /// How long a connection is silent before each.
    pub(crate) every_ns: u64,
    /// How long the answer may take.
    pub(crate) timeout_ns: u64,
}

/// What a sign of life is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepAliveKind {
    /// A byte that nothing answers.
    Byte,
    /// A request; its number is that of the connection's origin behind those that open connections.
    Request,
    /// A ping of the protocol.
    Ping,
}

impl PreparedSessions {
    /// `config`: how TLS is spoken.
    pub(super) fn new(load: &Load, config: Option<Arc<ClientConfig>>) -> Self {
        let request = sent(&load.what).0;
        let http = HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect { status: vec![(200, 399)], body: ExpectBody::Any },
            timeout: request.map_or(load.connections.connect_timeout, |request| request.timeout),
        };
        Self { conduct: Conduct::new(&load.what), http, tls: config, websocket: None }
    }
}

impl PreparedSessions {
    /// Connections that are kept as WebSockets.
    pub(super) fn of_websockets(load: &WebSocketLoad) -> Result<Self, Error> {
        let timeout = load.http.timeout;
        let http = HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect { status: vec![(101, 101)], body: ExpectBody::Any },
            timeout,
        };
        let ping = load.ping.map(|every| KeepAlive {
            kind: KeepAliveKind::Ping,
            every_ns: nanoseconds(every),
            timeout_ns: nanoseconds(timeout),
        });
        let conduct = Conduct {
            is_idle: true,
            reopens: load.reopens,
            is_http2: false,
            asks: true,
            keep_ns: u64::MAX,
            ping,
            jitter_ns: nanoseconds(load.jitter),
            // The server's pings are answered.
            drops_session: false,
            resumption: Resumption::OFF,
            close: load.close,
        };
        Ok(Self { conduct, http, tls: None, websocket: Some(WebSocketPolicy::new(load)?) })
    }
}

impl Conduct {
    fn new(what: &What) -> Self {
        match what {
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
            asks: load.request.is_some(),
            keep_ns: nanoseconds(load.hold),
            ping: None,
            jitter_ns: 0,
            drops_session: load.resumption.mode == ResumptionMode::Off,
            resumption: load.resumption,
            close: load.close,
        }
    }

    fn of_idle(load: &IdleLoad) -> Self {
        let is_http2 = load.protocol == IdleProtocol::Http2;
        Self {
            is_idle: true,
            reopens: load.reopens,
            is_http2,
            asks: load.first_request.is_some() && !is_http2,
            keep_ns: u64::MAX,
            ping: load.ping.as_ref().map(KeepAlive::new),
            jitter_ns: nanoseconds(load.jitter),
            // An HTTP/2 server may ask at any time whether we live.
            drops_session: load.ping.is_none() && !load.keeps_sessions && !is_http2,
            resumption: Resumption::OFF,
            close: load.close,
        }
    }

    /// Something of ours may follow the handshake's last flight.
    pub(crate) const fn writes_twice(&self) -> bool {
        self.asks || self.ping.is_some() || self.is_http2
    }
}

impl KeepAlive {
    fn new(ping: &Ping) -> Self {
        let kind = match &ping.kind {
            PingKind::H2 | PingKind::Quic => KeepAliveKind::Ping,
            PingKind::Request(_) => KeepAliveKind::Request,
            PingKind::Byte => KeepAliveKind::Byte,
        };
        Self { kind, every_ns: nanoseconds(ping.every), timeout_ns: nanoseconds(ping.timeout) }
    }
}

/// Collects every way that a connection can take (target x server name), and what is sent on it.
pub(super) struct SessionTable<'a> {
    load: &'a Load,
    pub(super) names: Names,
    pub(super) rows: Vec<RowKey>,
    pub(super) origins: Vec<Origin>,
    /// What follows the opening, maybe nothing: one for each origin.
    pub(super) requests: Vec<PreparedRequest>,
    /// What is sent now and then, the same.
    pub(super) pings: Vec<PreparedRequest>,
    pub(super) weights: Vec<u64>,
    pub(super) config: Option<Arc<ClientConfig>>,
}

impl<'a> SessionTable<'a> {
    /// That of a load, whose rows follow `rows`.
    pub(super) fn new(load: &'a Load, rows: Vec<RowKey>) -> Result<Self, Error> {
        let policy = tls_policy(load);
        let own_name = policy.sni.iter().map(|name| Weighted::once(Some(name.clone())));
        let server_names = match &load.what {
            What::Handshake(handshake) if !handshake.server_names.is_empty() => {
                handshake.server_names.iter().map(named).collect()
            }
            _ => own_name.chain([Weighted::once(None)]).take(1).collect::<Vec<_>>(),
        };
        let mut table = Self {
            load,
            names: Names::default(),
            rows,
            origins: Vec::new(),
            requests: Vec::new(),
            pings: Vec::new(),
            weights: Vec::new(),
            config: load.speaks_tls().then(|| tls::client_config(&policy)).transpose()?,
        };
        for target in load.what.endpoints().unwrap_or_default() {
            for name in &server_names {
                table.add(target, name)?;
            }
        }
        Ok(table)
    }

    fn add(
        &mut self,
        target: &Weighted<Endpoint>,
        server_name: &Weighted<Option<String>>,
    ) -> Result<(), Error> {
        let Endpoint { host, port } = &target.value;
        let name = server_name.value.as_deref().unwrap_or(host);
        let row_idx = self.row_idx(target, server_name.value.as_deref());
        let (request, ping) = sent(&self.load.what);
        let origin_idx = self.origins.len() as u32;
        for (wanted, list) in [(request, &mut self.requests), (ping, &mut self.pings)] {
            let bytes = wanted.map(|request| get(&request.path, name, &target.value)).transpose()?;
            let bytes = bytes.unwrap_or_default().into_vec();
            list.push(PreparedRequest {
                body_at: bytes.len(),
                bytes,
                origin_idx,
                rows: VersionRows::same(row_idx),
                ..PreparedRequest::empty()
            });
        }
        let fixed = resolve_rule(&self.load.network, host, *port);
        let is_http2 = matches!(&self.load.what, What::Idle(idle) if idle.protocol == IdleProtocol::Http2);
        let config = self.config.as_ref();
        let origin_tls = |config: &Arc<ClientConfig>| -> Result<OriginTls, Error> {
            Ok(OriginTls { config: Arc::clone(config), server_name: server_name_of(name)? })
        };
        self.origins.push(Origin {
            // Without HTTP/2, whatever the server chooses is right.
            key: OriginKey::new(
                config.is_some(),
                host,
                *port,
                if is_http2 { HttpVersion::Http2 } else { HttpVersion::Auto },
            ),
            dial: Dial::Tcp { name_idx: self.names.add(host, *port, fixed), port: *port },
            is_quic: self.load.what.is_quic_session(),
            prelude: None,
            tls: config.map(origin_tls).transpose()?,
            alternative: None,
            fields: FieldTable::default(),
        });
        self.weights.push(u64::from(target.weight.get()) * u64::from(server_name.weight.get()));
        Ok(())
    }

    fn row_idx(&mut self, target: &Weighted<Endpoint>, server_name: Option<&str>) -> u32 {
        let authority = target.value.authority();
        let row = RowKey {
            load: self.load.name.clone(),
            protocol: match self.load.what.is_quic_session() {
                true => Protocol::Quic,
                false if self.load.speaks_tls() => Protocol::Tls,
                false => Protocol::Tcp,
            },
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

/// The policy with the protocol that the load speaks.
fn tls_policy(load: &Load) -> TlsPolicy {
    let mut policy = load.tls.clone();
    if load.what.is_quic_session() && policy.alpn.is_empty() {
        policy.alpn = vec!["h3".to_owned()];
    }
    if let What::Idle(IdleLoad { protocol: IdleProtocol::Http2, .. }) = &load.what
        && policy.alpn.is_empty()
    {
        policy.alpn = vec!["h2".to_owned()];
    }
    policy
}

/// The requests on the connections: the one that follows the opening, and the one that is a sign of life.
fn sent(what: &What) -> (Option<&SessionRequest>, Option<&SessionRequest>) {
    match what {
        What::Handshake(load) => (load.request.as_ref(), None),
        What::Idle(IdleLoad { first_request, ping, .. }) => {
            let ping = ping.as_ref().and_then(|ping| match &ping.kind {
                PingKind::Request(request) => Some(request),
                PingKind::Byte | PingKind::H2 | PingKind::Quic => None,
            });
            (first_request.as_ref(), ping)
        }
        _ => (None, None),
    }
}

fn named(name: &Weighted<String>) -> Weighted<Option<String>> {
    Weighted { weight: NonZeroU32::max(name.weight, NonZeroU32::MIN), value: Some(name.value.clone()) }
}

fn server_name_of(name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned()).map_err(|error| Error::Option {
        option: "sni",
        problem: format!("`{name}` cannot be a TLS server name: {error}"),
        remedy: Remedy::Set("give a valid name", "NAME"),
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
    encode(&head, path)
}
