//! Turns a load's description into what the hot path uses: encoded requests, their rotation, and where they go.
//!
//! Everything here is made once, before the first packet, and shared by the shards read-only.

use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_measure::{Protocol, RowKey};
use squall_plan::limits::{PREPARED_REQUEST_COUNT_MAX, ROW_COUNT_MAX, WEIGHT_SUM_MAX};
use squall_plan::{
    Body, Expect, H2c, Header, HttpLoad, HttpVersion, Load, Network, Proxy, ReplayLoad, RequestPlan,
    TlsPolicy, What,
};
use squall_wire::h1::{self, RequestHead, RequestKind};
use squall_wire::h2::{self, FieldBlock, FieldTable};
use url::Url;

use crate::dns::Names;
use crate::driver::{CallRequest, DriverFactory, Route};
use crate::replay::{PreparedReplay, ReplayOrigin};
use crate::{Error, tls};

/// A load, ready to be driven.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Every request variant (URL x user agent).
    pub(crate) requests: Vec<PreparedRequest>,
    /// Indices of requests in the order in which they are sent, again and again.
    pub(crate) rotation: Vec<u32>,
    /// Where requests go.
    pub(crate) origins: Vec<Origin>,
    /// Rows of figures, those of the loads before this one included.
    pub(crate) rows: Vec<RowKey>,
    /// Names of the origins.
    pub(crate) names: Arc<Names>,
    /// The load as planned.
    pub(crate) load: Load,
    /// The recording, where the load is one.
    pub(crate) replay: Option<Arc<PreparedReplay>>,
    /// Rows made at run time, where a driver decides the requests.
    pub(crate) book: Option<Arc<RowBook>>,
    /// Makes the drivers, where they decide the requests.
    pub(crate) factory: Option<Arc<dyn DriverFactory>>,
}

/// Rows that the shards of a run make while it goes on: the same row has the same index everywhere.
#[derive(Debug, Default)]
pub(crate) struct RowBook(Mutex<Vec<RowKey>>);

impl RowBook {
    /// Begins with the rows that are known.
    pub(crate) fn seed(&self, rows: &[RowKey]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows.to_vec();
    }

    /// All rows.
    pub(crate) fn rows(&self) -> Vec<RowKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn pair_of(&self, load: &str, request: &RequestPlan, key: &OriginKey) -> RowPair {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = RowTable { load, begin: 0, rows: std::mem::take(&mut *rows) };
        let pair = table.pair_of(request, key);
        *rows = table.rows;
        pair
    }
}

/// One request, encoded.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    /// Head for HTTP/1.1 (none where that is never spoken), and the body when it is in memory.
    pub(crate) bytes: Vec<u8>,
    /// Where in `bytes` the body begins.
    pub(crate) body_at: usize,
    /// Head for HTTP/2, where that may be spoken.
    pub(crate) fields: Option<FieldBlock>,
    /// A body that is streamed from disk after `bytes`.
    pub(crate) file: Option<FileBody>,
    /// What the decoder must know of it.
    pub(crate) kind: RequestKind,
    /// Index into the origins.
    pub(crate) origin_idx: u32,
    /// Index into the rows, by the protocol that is spoken.
    pub(crate) rows: RowPair,
    /// RFC 9110 9.2.2: may be sent again when a connection died under it.
    pub(crate) is_idempotent: bool,
    /// What it was made from; kept where redirects may be followed.
    pub(crate) source: Option<Arc<RequestPlan>>,
}

/// Rows of one request. Where only one protocol may be spoken, they are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPair {
    /// Of what is not known to be HTTP/2.
    pub(crate) h1: u32,
    /// Of what was asked over HTTP/2.
    pub(crate) h2: u32,
}

/// A file that is sent as a body.
#[derive(Debug, Clone)]
pub(crate) struct FileBody {
    /// Opened once; reads give their own offsets.
    pub(crate) file: Arc<File>,
    /// Bytes promised in `Content-Length`.
    pub(crate) bytes: u64,
}

/// Where requests go: scheme, host, and port, and how to get there.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Scheme, host and port, by which redirects find it.
    pub(crate) key: OriginKey,
    /// What to connect to.
    pub(crate) dial: Dial,
    /// What is said before anything else.
    pub(crate) prelude: Option<Prelude>,
    /// TLS, where the scheme is https.
    pub(crate) tls: Option<OriginTls>,
    /// The fields that its requests share in HTTP/2.
    pub(crate) fields: FieldTable,
}

/// A request in HTTP/1.1 whose answer makes the connection something else.
#[derive(Debug)]
pub(crate) struct Prelude {
    /// The whole request.
    pub(crate) request: Box<[u8]>,
    /// `CONNECT` to a proxy, or the upgrade to HTTP/2.
    pub(crate) kind: RequestKind,
}

/// What to connect to.
#[derive(Debug)]
pub(crate) enum Dial {
    /// A name in the table of names.
    Tcp {
        /// Index into the names.
        name_idx: usize,
        /// Port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// How TLS is spoken to an origin.
#[derive(Debug)]
pub(crate) struct OriginTls {
    /// Settings, the same for all origins of a load that are spoken to in the same version of HTTP.
    pub(crate) config: Arc<ClientConfig>,
    /// Name sent and verified.
    pub(crate) server_name: ServerName<'static>,
}

/// Scheme, host and port of a URL, and the version of HTTP: connections of different versions are not shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginKey {
    is_tls: bool,
    host: String,
    port: u16,
    pub(crate) http: HttpVersion,
    /// Number of the TLS settings of its own that its calls have; 0: the load's.
    tls_idx: u32,
}

impl Prepared {
    /// Prepares a load: opens its files, reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let http = match &load.what {
            What::Http(http) => http,
            What::Replay(replay) => return Self::of_recording(load, replay, rows, stop),
            _ => unreachable!("loads of requests come here"),
        };
        let mut origins = OriginTable::new(load);
        let mut rows = RowTable { load: &load.name, begin: rows.len(), rows };
        let mut requests = Vec::new();
        let mut weights = Vec::new();
        check_request_count(http)?;
        for plan in &http.requests {
            let origin_idx = origins.index_of(&plan.url, plan.http)?;
            let key = &origins.origins[origin_idx].key;
            let rows = rows.pair_of(plan, key);
            let template = Template {
                plan,
                http: key.http,
                origin_idx: origin_idx as u32,
                rows,
                follows: http.follow_count_max > 0,
            };
            let file = open_body(&plan.body)?;
            let forwarder = origins.forwarder(&plan.url);
            refuse_forwarded_h2(key, forwarder)?;
            let table = &mut origins.origins[origin_idx].fields;
            for agent in &http.user_agents {
                requests.push(template.encode(&agent.value, file.clone(), forwarder, Some(&mut *table))?);
                weights.push(u64::from(plan.weight.get()) * u64::from(agent.weight.get()));
            }
        }
        if http.follow_count_max > 0 {
            origins.add_redirect_origins(http)?;
        }
        let OriginTable { origins, names, .. } = origins;
        let names = names.resolve(stop)?;
        Ok(Self {
            requests,
            rotation: rotation(&weights)?,
            origins,
            rows: rows.rows,
            names,
            load: load.clone(),
            replay: None,
            book: None,
            factory: None,
        })
    }

    /// The same for a recording: its index names the origins and the rows.
    fn of_recording(
        load: &Load,
        plan: &ReplayLoad,
        rows: Vec<RowKey>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let mut replay = PreparedReplay::open(plan)?;
        let mut origins = OriginTable::new(load);
        let mut rows = RowTable { load: &load.name, begin: rows.len(), rows };
        for idx in 0..replay.recording.index().origins.len() {
            let url = replay.origin_url(idx)?;
            let origin_idx = origins.index_of(&url, plan.version)?;
            let key = &origins.origins[origin_idx].key;
            refuse_forwarded_h2(key, origins.forwarder(&url))?;
            replay.origins.push(ReplayOrigin {
                origin_idx: origin_idx as u32,
                scheme: if key.is_tls { "https" } else { "http" },
                host: replay.host(idx, &url),
                http: key.http,
                is_forwarded: origins.forwarder(&url).is_some(),
            });
        }
        let recorded = replay.recording.index().rows.clone();
        for row in &recorded {
            let origin = &replay.origins[usize::from(row.origin).min(replay.origins.len() - 1)];
            let key = &origins.origins[origin.origin_idx as usize].key;
            replay.rows.push(rows.pair_of_row(&row.method, &row.pattern, key));
        }
        if replay.has_rowless() {
            replay.rows.push(rows.pair_of_row("*", "(other)", &origins.origins[0].key));
        }
        let OriginTable { origins, names, .. } = origins;
        let names = names.resolve(stop)?;
        let replay = Some(Arc::new(replay));
        Ok(Self {
            requests: Vec::new(),
            rotation: Vec::new(),
            origins,
            rows: rows.rows,
            names,
            load: load.clone(),
            replay,
            book: None,
            factory: None,
        })
    }

    /// A load whose requests a driver decides.
    pub(crate) fn for_driver(load: &Load, factory: Arc<dyn DriverFactory>) -> Self {
        let plain = HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect::default(),
            timeout: squall_plan::limits::DURATION_MAX,
        };
        Self {
            requests: Vec::new(),
            rotation: Vec::new(),
            origins: Vec::new(),
            rows: Vec::new(),
            names: Arc::default(),
            load: Load { what: What::Http(plain), ..load.clone() },
            replay: None,
            book: Some(Arc::default()),
            factory: Some(factory),
        }
    }

    /// The same for one shard, which adds origins of its own to it.
    pub(crate) fn for_shard(&self) -> Self {
        Self {
            requests: Vec::new(),
            rotation: Vec::new(),
            origins: Vec::new(),
            rows: self.rows.clone(),
            names: Arc::default(),
            load: self.load.clone(),
            replay: None,
            book: self.book.clone(),
            factory: None,
        }
    }

    /// Prepares a request that a driver has decided: its origin, its row, its bytes. A name that is new is looked up.
    pub(crate) fn prepare_call(&mut self, request: &CallRequest) -> Result<PreparedRequest, Error> {
        let (plan, route) = (&request.plan, &request.route);
        if let Some(reason) = route.refused {
            return Err(Error::Refused { reason });
        }
        let own = |origin: &&Origin| origin.key.tls_idx == 0 && origin.tls.is_some();
        let shared = self.origins.iter().find(own).and_then(|origin| origin.tls.as_ref());
        let mut table = OriginTable {
            network: &self.load.network,
            h2c: self.load.connections.h2c,
            tls: &self.load.tls,
            config: shared.map(|tls| Arc::clone(&tls.config)),
            route: Some(route),
            origins: std::mem::take(&mut self.origins),
            names: std::mem::take(Arc::get_mut(&mut self.names).ok_or_else(in_use)?),
        };
        let origin_idx = table.index_of(&plan.url, plan.http);
        let OriginTable { origins, mut names, .. } = table;
        let resolved = names.look_up_missing(route.dns);
        self.origins = origins;
        self.names = Arc::new(names);
        let origin_idx = origin_idx?;
        resolved?;
        self.check_allowed(origin_idx, route)?;
        let key = &self.origins[origin_idx].key;
        let rows = self
            .book
            .as_ref()
            .map_or(RowPair { h1: 0, h2: 0 }, |book| book.pair_of(&request.load, plan, key));
        if self.rows.len() <= rows.h1.max(rows.h2) as usize
            && let Some(book) = &self.book
        {
            self.rows = book.rows();
        }
        let forwarder = self.load.network.proxy.as_ref().filter(|_| plan.url.scheme() == "http");
        let template = Template { plan, http: key.http, origin_idx: origin_idx as u32, rows, follows: false };
        template.encode("", open_body(&plan.body)?, forwarder, None)
    }

    /// Refuses an origin that may not be dialled.
    fn check_allowed(&self, origin_idx: usize, route: &Route) -> Result<(), Error> {
        let Dial::Tcp { name_idx, .. } = &self.origins[origin_idx].dial else { return Ok(()) };
        let is_forbidden = |address: &IpAddr| route.forbidden.iter().any(|net| net.contains(address));
        if self.names.addresses(*name_idx).iter().any(is_forbidden) {
            return Err(Error::Refused { reason: "ip is blacklisted" });
        }
        Ok(())
    }

    /// Origins that the plan's requests lead to, those of redirects left out.
    pub(crate) fn target_count(&self) -> u64 {
        if self.replay.is_some() {
            return self.origins.len() as u64;
        }
        let highest = self.requests.iter().map(|request| request.origin_idx).max();
        highest.map_or(0, |idx| u64::from(idx) + 1)
    }

    /// Whether any connection may turn out to be HTTP/2.
    pub(crate) fn may_speak_h2(&self) -> bool {
        self.origins.iter().any(|origin| origin.key.http != HttpVersion::Http11)
    }

    /// The most requests that a connection of this load carries at a time: a closed model has as many users for each.
    pub(crate) fn requests_per_connection(&self) -> u32 {
        let policy = &self.load.connections;
        let of = |origin: &Origin| match origin.key.http {
            HttpVersion::Http11 => policy.pipeline_depth,
            HttpVersion::Http2 => policy.stream_count,
            HttpVersion::Auto => policy.pipeline_depth.max(policy.stream_count),
        };
        let planned = self.origins.iter().take(self.target_count() as usize);
        planned.map(of).max().map_or(1, std::num::NonZero::get)
    }

    /// The HTTP part of the load.
    pub(crate) fn http(&self) -> &HttpLoad {
        match &self.load.what {
            What::Http(http) => http,
            What::Replay(replay) => &replay.http,
            _ => unreachable!("loads of requests come here"),
        }
    }

    /// The request that follows a redirect (RFC 9110 15.4), or why it cannot be followed.
    pub(crate) fn redirected(
        &self,
        request: &PreparedRequest,
        status: u16,
        location: Option<&str>,
    ) -> Result<PreparedRequest, String> {
        let source = request.source.as_deref().ok_or("redirects are not followed")?;
        let location = location.ok_or("the response has no Location")?;
        let url = source.url.join(location).map_err(|error| format!("bad Location `{location}`: {error}"))?;
        let key =
            OriginKey::of(&url, source.http).ok_or_else(|| format!("cannot follow a redirect to `{url}`"))?;
        let origin_idx = self.origins.iter().position(|origin| origin.key == key);
        let origin_idx = origin_idx.ok_or_else(|| {
            format!("redirect to `{url}`, a host that is not in the plan: add it to the URLs")
        })?;
        let plan = redirect_plan(source, status, url);
        let forwarder = self.load.network.proxy.as_ref().filter(|_| !key.is_tls);
        let template = Template {
            plan: &plan,
            http: key.http,
            origin_idx: origin_idx as u32,
            rows: request.rows,
            follows: true,
        };
        let keeps_body = plan.body != Body::Empty;
        let file = request.file.clone().filter(|_| keeps_body);
        let agent = &self.http().user_agents[0].value;
        template.encode(agent, file, forwarder, None).map_err(|error| error.to_string())
    }
}

impl PreparedRequest {
    /// A request that is still to be written.
    pub(crate) fn empty() -> Self {
        Self {
            bytes: Vec::new(),
            body_at: 0,
            fields: None,
            file: None,
            kind: RequestKind::Other,
            origin_idx: 0,
            rows: RowPair { h1: 0, h2: 0 },
            is_idempotent: false,
            source: None,
        }
    }

    /// Bytes of the whole request in HTTP/1.1, above TLS.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.file.as_ref().map_or(0, |file| file.bytes)
    }

    /// The body, when it is in memory.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// Bytes of the body, wherever it is.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.total_bytes() - self.body_at as u64
    }
}

impl Origin {
    /// Its connections begin in HTTP/1.1, and are upgraded.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.prelude.as_ref().is_some_and(|prelude| prelude.kind == RequestKind::Upgrade)
    }
}

impl OriginKey {
    /// `http`: as asked for. Over plain TCP nothing is negotiated.
    fn of(url: &Url, http: HttpVersion) -> Option<Self> {
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let http = if http == HttpVersion::Auto && !is_tls { HttpVersion::Http11 } else { http };
        Some(Self {
            is_tls,
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
            http,
            tls_idx: 0,
        })
    }
}

fn in_use() -> Error {
    Error::Plan { problem: "the names are in use".to_owned(), help: "this is a bug of squall".to_owned() }
}

/// Collects origins and the names they need.
struct OriginTable<'a> {
    network: &'a Network,
    tls: &'a TlsPolicy,
    h2c: H2c,
    config: Option<Arc<ClientConfig>>,
    /// Of a call: how it reaches its host.
    route: Option<&'a Route>,
    origins: Vec<Origin>,
    names: Names,
}

impl<'a> OriginTable<'a> {
    fn new(load: &'a Load) -> Self {
        let Load { network, tls, connections, .. } = load;
        Self {
            network,
            tls,
            h2c: connections.h2c,
            config: None,
            route: None,
            origins: Vec::new(),
            names: Names::default(),
        }
    }

    /// The proxy that forwards requests to this URL itself, rather than tunnelling them.
    fn forwarder(&self, url: &Url) -> Option<&'a Proxy> {
        self.network.proxy.as_ref().filter(|_| url.scheme() == "http")
    }

    fn index_of(&mut self, url: &Url, http: HttpVersion) -> Result<usize, Error> {
        let key = OriginKey::of(url, http).ok_or_else(|| Error::Plan {
            problem: format!("`{url}` is not an http or https URL with a host"),
            help: "write it as http://host:port/path".to_owned(),
        })?;
        let own_tls = self.route.and_then(|route| route.tls.as_ref()).map_or(0, |(tls_idx, _)| *tls_idx);
        self.index_of_key(OriginKey { tls_idx: own_tls, ..key })
    }

    fn index_of_key(&mut self, key: OriginKey) -> Result<usize, Error> {
        if let Some(idx) = self.origins.iter().position(|origin| origin.key == key) {
            return Ok(idx);
        }
        let origin = Origin {
            dial: self.dial(&key),
            prelude: self.prelude(&key)?,
            tls: if key.is_tls { Some(self.origin_tls(&key)?) } else { None },
            fields: FieldTable::default(),
            key,
        };
        self.origins.push(origin);
        Ok(self.origins.len() - 1)
    }

    fn prelude(&self, key: &OriginKey) -> Result<Option<Prelude>, Error> {
        let upgrades = self.h2c == H2c::Upgrade && key.http == HttpVersion::Http2 && !key.is_tls;
        let (request, kind) = match &self.network.proxy {
            Some(proxy) if key.is_tls => (tunnel_request(key, proxy)?, RequestKind::Connect),
            _ if upgrades => (upgrade_request(key)?, RequestKind::Upgrade),
            _ => return Ok(None),
        };
        Ok(Some(Prelude { request, kind }))
    }

    /// A redirect often leads from http to https of the same host, or back: those origins are ready as well.
    fn add_redirect_origins(&mut self, http: &HttpLoad) -> Result<(), Error> {
        for request in &http.requests {
            let host = request.url.host_str().unwrap_or_default();
            for url in [format!("http://{host}/"), format!("https://{host}/")] {
                let key = Url::parse(&url).ok().and_then(|url| OriginKey::of(&url, request.http));
                key.map(|key| self.index_of_key(key)).transpose()?;
            }
        }
        Ok(())
    }

    fn dial(&mut self, key: &OriginKey) -> Dial {
        if let Some(path) = &self.network.unix_socket {
            return Dial::Unix(path.clone());
        }
        if let Some((address, port)) = self.route.and_then(|route| route.dial) {
            let fixed = Some(Arc::from([address]));
            return Dial::Tcp { name_idx: self.names.add(&address.to_string(), port, fixed), port };
        }
        let (host, port) = match &self.network.proxy {
            Some(proxy) => (proxy.host.clone(), proxy.port),
            None => connect_to(self.network, &key.host, key.port),
        };
        let fixed = resolve_rule(self.network, &host, port);
        Dial::Tcp { name_idx: self.names.add(&host, port, fixed), port }
    }

    fn origin_tls(&mut self, key: &OriginKey) -> Result<OriginTls, Error> {
        let own = self.route.and_then(|route| route.tls.as_ref()).map(|(_, config)| config);
        let config = match own.or(self.config.as_ref()) {
            Some(config) => Arc::clone(config),
            None => Arc::clone(self.config.insert(tls::client_config(self.tls)?)),
        };
        let name = self.tls.sni.as_deref().unwrap_or(&key.host);
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        let server_name = ServerName::try_from(bare.to_owned()).map_err(|error| Error::Plan {
            problem: format!("`{name}` cannot be a TLS server name: {error}"),
            help: "give a valid name with --sni".to_owned(),
        })?;
        Ok(OriginTls { config: tls::for_version(&config, self.tls, key.http), server_name })
    }
}

/// curl's `--connect-to`: the first matching rule.
fn connect_to(network: &Network, host: &str, port: u16) -> (String, u16) {
    let matching = network.connect_to.iter().find(|rule| {
        rule.from_host.as_deref().is_none_or(|from| from.eq_ignore_ascii_case(host))
            && rule.from_port.is_none_or(|from| from == port)
    });
    let to_host = matching.and_then(|rule| rule.to_host.clone());
    (to_host.unwrap_or_else(|| host.to_owned()), matching.and_then(|rule| rule.to_port).unwrap_or(port))
}

/// curl's `--resolve`: the first matching rule.
pub(crate) fn resolve_rule(network: &Network, host: &str, port: u16) -> Option<Arc<[IpAddr]>> {
    let matching = network.resolve.iter().find(|rule| {
        rule.host.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(host))
            && rule.port.is_none_or(|p| p == port)
    });
    matching.map(|rule| Arc::from(rule.addresses.clone()))
}

fn tunnel_request(key: &OriginKey, proxy: &Proxy) -> Result<Box<[u8]>, Error> {
    let authority = format!("{}:{}", key.host, key.port);
    let authorization = proxy.authorization.as_deref().map(|value| ("Proxy-Authorization", value));
    let head = RequestHead {
        method: "CONNECT",
        target: &authority,
        host: Some(&authority),
        headers: authorization.as_slice(),
        content_length: None,
    };
    encode(&head, &authority)
}

/// RFC 7540 3.2: asks for HTTP/2 without asking for anything else. Our settings follow with the preface, so those in the header are what we
/// say of pushing alone: none.
fn upgrade_request(key: &OriginKey) -> Result<Box<[u8]>, Error> {
    let authority = if key.port == 80 { key.host.clone() } else { format!("{}:{}", key.host, key.port) };
    let head = RequestHead {
        method: "OPTIONS",
        target: "*",
        host: Some(&authority),
        headers: &[
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAIAAAAA"),
        ],
        content_length: None,
    };
    encode(&head, &authority)
}

/// Hands out rows; what exceeds the limit shares the last one.
struct RowTable<'a> {
    load: &'a str,
    /// Where this load's rows begin.
    begin: usize,
    rows: Vec<RowKey>,
}

impl RowTable<'_> {
    fn pair_of(&mut self, request: &RequestPlan, origin: &OriginKey) -> RowPair {
        self.pair_of_row(&request.method, &request.pattern, origin)
    }

    fn pair_of_row(&mut self, method: &str, pattern: &str, origin: &OriginKey) -> RowPair {
        let (h1, h2) =
            if origin.is_tls { (Protocol::Https11, Protocol::H2) } else { (Protocol::Http11, Protocol::H2c) };
        let [h1, h2] = match origin.http {
            HttpVersion::Http11 => [h1, h1],
            HttpVersion::Http2 => [h2, h2],
            HttpVersion::Auto => [h1, h2],
        }
        .map(|protocol| self.index_of(method, pattern, protocol));
        RowPair { h1, h2 }
    }

    fn index_of(&mut self, method: &str, pattern: &str, protocol: Protocol) -> u32 {
        let (load, method, url) = (self.load.to_owned(), method.to_owned(), pattern.to_owned());
        let mut key = RowKey { load, protocol, method, url };
        if self.rows.len() - self.begin >= ROW_COUNT_MAX - 1 && !self.rows.contains(&key) {
            key = RowKey { url: "(other)".to_owned(), method: "*".to_owned(), ..key };
        }
        let known = self.rows.iter().position(|row| *row == key);
        known.unwrap_or_else(|| {
            self.rows.push(key);
            self.rows.len() - 1
        }) as u32
    }
}

/// What the variants of one request share.
struct Template<'a> {
    plan: &'a RequestPlan,
    /// As far as it is known before the connection.
    http: HttpVersion,
    origin_idx: u32,
    rows: RowPair,
    follows: bool,
}

impl Template<'_> {
    /// `table`: shares the fields with other requests; without one, the request is sent in full each time.
    fn encode(
        &self,
        user_agent: &str,
        file: Option<FileBody>,
        forwarder: Option<&Proxy>,
        table: Option<&mut FieldTable>,
    ) -> Result<PreparedRequest, Error> {
        let RequestPlan { method, url, headers, body, .. } = self.plan;
        let origin_form = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let absolute_form = &url[..url::Position::AfterQuery];
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let has = |name: &str| headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
        let mut fields: Vec<(&str, &str)> = Vec::with_capacity(headers.len() + 1);
        if !has("user-agent") && !user_agent.is_empty() {
            fields.push(("User-Agent", user_agent));
        }
        let authorization = forwarder.and_then(|proxy| proxy.authorization.as_deref());
        fields.extend(authorization.map(|value| ("Proxy-Authorization", value)));
        fields.extend(headers.iter().map(|Header { name, value }| (name.as_str(), value.as_str())));
        let head = RequestHead {
            method,
            target: if forwarder.is_some() { absolute_form } else { origin_form },
            host: (!has("host")).then_some(authority),
            headers: &fields,
            content_length: if has("transfer-encoding") { None } else { content_length(body) },
        };
        let mut bytes = match self.http {
            HttpVersion::Http2 => Vec::new(),
            HttpVersion::Http11 | HttpVersion::Auto => encode(&head, url.as_str())?.into_vec(),
        };
        let fields = match self.http {
            HttpVersion::Http11 => None,
            HttpVersion::Http2 | HttpVersion::Auto => Some(
                h2::prepare(&head, url.scheme(), table)
                    .map_err(|error| cannot_encode(&error, url.as_str()))?,
            ),
        };
        let body_at = bytes.len();
        if let Body::Bytes(body) = body {
            bytes.extend_from_slice(body);
        }
        Ok(PreparedRequest {
            bytes,
            body_at,
            fields,
            file,
            kind: if method == "HEAD" { RequestKind::Head } else { RequestKind::Other },
            origin_idx: self.origin_idx,
            rows: self.rows,
            is_idempotent: IDEMPOTENT_METHODS.contains(&method.as_str()),
            source: self.follows.then(|| Arc::new(self.plan.clone())),
        })
    }
}

fn encode(head: &RequestHead<'_>, place: &str) -> Result<Box<[u8]>, Error> {
    let mut bytes = Vec::new();
    h1::encode_head(head, &mut bytes).map_err(|error| cannot_encode(&error, place))?;
    Ok(bytes.into_boxed_slice())
}

fn cannot_encode(error: &h1::EncodeError, place: &str) -> Error {
    Error::Plan {
        problem: format!("cannot encode the request for `{place}`: {error}"),
        help: "check its method, headers and URL".to_owned(),
    }
}

/// Proxies forward HTTP/1.1; only a tunnel, which https gets, carries anything.
fn refuse_forwarded_h2(key: &OriginKey, forwarder: Option<&Proxy>) -> Result<(), Error> {
    if forwarder.is_none() || key.http != HttpVersion::Http2 {
        return Ok(());
    }
    Err(Error::Plan {
        problem: format!("h2c to `{}:{}` cannot go through an HTTP proxy", key.host, key.port),
        help: "use an https URL, which the proxy tunnels, or leave --proxy out".to_owned(),
    })
}

fn content_length(body: &Body) -> Option<u64> {
    match body {
        Body::Empty => None,
        Body::Bytes(bytes) => Some(bytes.len() as u64),
        Body::File { bytes, .. } => Some(*bytes),
    }
}

fn open_body(body: &Body) -> Result<Option<FileBody>, Error> {
    let Body::File { path, bytes } = body else { return Ok(None) };
    let file = File::open(path).map_err(|source| Error::PlanFile {
        what: "body file",
        path: path.clone(),
        source,
    })?;
    Ok(Some(FileBody { file: Arc::new(file), bytes: *bytes }))
}

/// RFC 9110 15.4: 303 becomes GET (HEAD stays); 301 and 302 turn POST into GET, as every browser does; 307 and 308
/// change nothing. Credentials do not follow to another host.
fn redirect_plan(source: &RequestPlan, status: u16, url: Url) -> RequestPlan {
    let mut plan = RequestPlan { url, ..source.clone() };
    if plan.url.host_str() != source.url.host_str() {
        plan.headers.retain(|header| !header.is_secret() && !header.name.eq_ignore_ascii_case("host"));
    }
    let becomes_get = match status {
        303 => source.method != "HEAD",
        301 | 302 => source.method == "POST",
        _ => false,
    };
    if becomes_get {
        plan.method = "GET".to_owned();
        plan.body = Body::Empty;
        plan.headers.retain(|header| !header.name.to_ascii_lowercase().starts_with("content-"));
    }
    plan
}

/// A rotation in which each item comes as often as its weight says, evenly spread, the same in every run.
pub(crate) fn rotation(weights: &[u64]) -> Result<Vec<u32>, Error> {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
    let sum: u64 = weights.iter().map(|weight| weight / divisor).sum();
    if sum > WEIGHT_SUM_MAX as u64 {
        return Err(Error::Plan {
            problem: format!("the weights add up to {sum}, more than {WEIGHT_SUM_MAX}"),
            help: "use coarser weights: only their ratios matter".to_owned(),
        });
    }
    let mut slots: Vec<(f64, u32)> = Vec::with_capacity(sum as usize);
    for (idx, weight) in weights.iter().enumerate() {
        let count = weight / divisor;
        slots.extend((0..count).map(|nth| ((nth as f64 + 0.5) / count as f64, idx as u32)));
    }
    slots.sort_by(|left, right| left.0.total_cmp(&right.0));
    Ok(slots.into_iter().map(|(_place, idx)| idx).collect())
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

fn check_request_count(http: &HttpLoad) -> Result<(), Error> {
    let count = http.requests.len() * http.user_agents.len();
    if count <= PREPARED_REQUEST_COUNT_MAX {
        return Ok(());
    }
    Err(Error::Plan {
        problem: format!(
            "{count} request variants (URLs x user agents), more than {PREPARED_REQUEST_COUNT_MAX}"
        ),
        help: "use fewer URLs or user agents".to_owned(),
    })
}

// A plan that validates can be encoded; neither room may see the other.
const _: () = assert!(squall_plan::limits::REQUEST_HEAD_BYTES_MAX == h1::limits::REQUEST_HEAD_BYTES_MAX);

/// RFC 9110 9.2.2.
pub(crate) const IDEMPOTENT_METHODS: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

#[cfg(test)]
mod tests {
    use squall_plan::HttpVersion;

    use super::*;

    #[test]
    fn rotation_keeps_the_weights_and_spreads_them() {
        assert_eq!(rotation(&[1, 1, 1]).unwrap(), [0, 1, 2]);
        assert_eq!(rotation(&[10, 20]).unwrap(), [1, 0, 1]);
        assert_eq!(rotation(&[3, 1]).unwrap(), [0, 0, 1, 0]);
        assert!(rotation(&[1 << 30, 1]).is_err());
    }

    #[test]
    fn a_redirect_keeps_what_the_rfc_says() {
        let source = RequestPlan {
            weight: std::num::NonZeroU32::MIN,
            method: "POST".to_owned(),
            url: Url::parse("http://a.example/x").unwrap(),
            pattern: "x".to_owned(),
            headers: ["Authorization", "Content-Type", "X-Trace"]
                .map(|name| Header { name: name.to_owned(), value: "v".to_owned() })
                .to_vec(),
            body: Body::Bytes(b"x".to_vec()),
            http: HttpVersion::Http11,
        };
        let to = |status, url| {
            let plan = redirect_plan(&source, status, Url::parse(url).unwrap());
            let names: Vec<String> = plan.headers.iter().map(|header| header.name.clone()).collect();
            (plan.method.clone(), plan.body != Body::Empty, names.join(" "))
        };
        let expected = |method: &str, body, names: &str| (method.to_owned(), body, names.to_owned());
        assert_eq!(to(302, "http://a.example/y"), expected("GET", false, "Authorization X-Trace"));
        assert_eq!(
            to(307, "http://a.example/y"),
            expected("POST", true, "Authorization Content-Type X-Trace")
        );
        assert_eq!(to(308, "http://b.example/y"), expected("POST", true, "Content-Type X-Trace"));
    }
}
