//! Turns a load's description into what the hot path uses: encoded requests, their rotation, and where they go.
//!
//! Everything here is made once, before the first packet, and shared by the shards read-only.
//!
//! `origin` is where requests go, `request` one of them in bytes, `rows` whose figures are which, `rotation` their order, `redirect` what
//! follows.

mod encode;
mod origin;
mod redirect;
mod replay;
mod request;
mod rotation;
mod route;
mod rows;
mod sessions;
mod streams;
mod websocket;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use squall_measure::RowKey;
use squall_plan::limits::PREPARED_REQUEST_COUNT_MAX;
use squall_plan::{Body, Expect, Header, HttpLoad, HttpVersion, Load, ReplayLoad, StreamLoad, What};
use squall_script::Spec;
use squall_wire::h1::RequestKind;

use self::origin::{OriginTable, refuse_forwarded_h2};
use self::redirect::redirect_plan;
use self::request::{Source, Template, open_body};
use self::rotation::rotation;
use self::rows::RowTable;
use self::sessions::SessionTable;
use crate::dns::Names;
use crate::quic::{QlogFiles, prepare_qlog};
use crate::{Error, Forbidden};

pub(crate) use self::origin::{Dial, Origin, OriginKey, OriginTls, connect_to, resolve_rule};
pub(crate) use self::replay::{PreparedReplay, ReplayOrigin, now_ns};
pub(crate) use self::request::{FileBody, IDEMPOTENT_METHODS, Part, PreparedRequest};
pub(crate) use self::route::Route;
pub(crate) use self::rows::{RowBook, VersionRows};
pub(crate) use self::sessions::{Conduct, KeepAlive, KeepAliveKind, PreparedSessions};
pub(crate) use self::streams::{RecordedStream, StreamPolicy, StreamResumption};
pub(crate) use self::websocket::{Audience, HandshakeKey, MessageContent, Offer, WebSocketPolicy};

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
    /// What a load of connections has besides.
    pub(crate) sessions: Option<PreparedSessions>,
    /// How responses are read as streams of events, where they are.
    pub(crate) streams: Option<StreamPolicy>,
    /// Log files of QUIC connections, where they are wanted.
    pub(crate) qlog: Option<Arc<QlogFiles>>,
}

impl Prepared {
    /// Prepares a load: opens its files, reads its certificates, resolves its names. Its rows follow `rows`.
    pub(crate) fn new(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        if let Some(folder) = &load.connections.quic.qlog_dir {
            prepare_qlog(folder)?;
        }
        let (mut streams, mut sessions) = (None, None);
        let http = match &load.what {
            What::Http(http) => http,
            What::Stream(stream) => {
                streams = Some(StreamPolicy::new(stream)?);
                &stream.http
            }
            What::WebSocket(websocket) => {
                sessions = Some(PreparedSessions::of_websockets(websocket)?);
                &websocket.http
            }
            What::Replay(replay) => return Self::of_recording(load, replay, rows, stop),
            What::Handshake(_) | What::Idle(_) => return Self::of_sessions(load, rows, stop),
            _ => unreachable!("a script's load has a driver"),
        };
        let mut origins = OriginTable::new(load);
        origins.follow_alternatives();
        let has_h3 = origins.follows_alternatives;
        let mut rows = RowTable { load: &load.name, begin: rows.len(), rows, has_h3 };
        let mut requests = Vec::new();
        let mut weights = Vec::new();
        let follows = http.follow_count_max > 0 || streams.as_ref().is_some_and(|streams| streams.reconnects);
        check_request_count(http)?;
        let offer = sessions.as_ref().and_then(|sessions| Some(&sessions.websocket.as_ref()?.offer));
        for plan in &http.requests {
            let plan = &offer.map_or(Cow::Borrowed(plan), |offer| Cow::Owned(offer.opening(plan)));
            let origin_idx = origins.index_of(&plan.url, plan.http)?;
            let origin = &origins.origins[origin_idx];
            let key = &origin.key;
            let rows = rows.rows_of(plan, key);
            let versions = (key.http, origin.may_speak_h3());
            let is_stream = offer.is_some() && !matches!(key.http, HttpVersion::Http11 | HttpVersion::Auto);
            let protocol = is_stream.then_some("websocket");
            let template =
                Template { plan, versions, origin_idx: origin_idx as u32, rows, follows, protocol };
            let file = open_body(&plan.body)?;
            let forwarder = origins.forwarder(&plan.url);
            refuse_forwarded_h2(key, forwarder)?;
            let table = &mut origins.origins[origin_idx].fields;
            for agent in &http.user_agents {
                let mut request =
                    template.encode(&agent.value, file.clone(), forwarder, Some(&mut *table))?;
                if offer.is_some() {
                    request.kind = if is_stream { RequestKind::Connect } else { RequestKind::Upgrade };
                }
                requests.push(request);
                weights.push(u64::from(plan.weight.get()) * u64::from(agent.weight.get()));
            }
        }
        if http.follow_count_max > 0 {
            origins.add_redirect_origins(http)?;
        }
        let OriginTable { origins, names, .. } = origins;
        let names = names.resolve(&load.network.sources, stop)?;
        let (rotation, rows) = (rotation(&weights)?, rows.rows);
        Ok(Self { requests, rotation, origins, rows, names, streams, sessions, ..Self::empty(load.clone()) })
    }

    /// The same for a recording: its index names the origins and the rows.
    fn of_recording(
        load: &Load,
        plan: &ReplayLoad,
        rows: Vec<RowKey>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let mut replay = PreparedReplay::open(plan, &load.when)?;
        let mut origins = OriginTable::new(load);
        let mut rows = RowTable { load: &load.name, begin: rows.len(), rows, has_h3: false };
        for idx in 0..replay.recording.index().origins.len() {
            let url = replay.origin_url(idx)?;
            let origin_idx = origins.index_of(&url, plan.version)?;
            let key = &origins.origins[origin_idx].key;
            refuse_forwarded_h2(key, origins.forwarder(&url))?;
            let origin = ReplayOrigin {
                origin_idx: origin_idx as u32,
                scheme: if key.is_tls { "https" } else { "http" },
                host: replay.host(idx, &url),
                http: key.http,
                is_forwarded: origins.forwarder(&url).is_some(),
                prefix: url.path().trim_end_matches('/').to_owned(),
            };
            if replay.recording.index().web_socket_count > 0 {
                let origin_idx = origins.index_for_websockets(&url)? as u32;
                let http = HttpVersion::Http11;
                replay.websocket_origins.push(ReplayOrigin { origin_idx, http, ..origin.clone() });
            }
            replay.origins.push(origin);
        }
        let recorded = replay.recording.index().rows.clone();
        for row in &recorded {
            let origin = &replay.origins[usize::from(row.origin).min(replay.origins.len() - 1)];
            let key = &origins.origins[origin.origin_idx as usize].key;
            replay.rows.push(rows.rows_of_pattern(&row.method, &row.pattern, key));
        }
        if replay.has_rowless() {
            replay.rows.push(rows.rows_of_pattern("*", "(other)", &origins.origins[0].key));
        }
        let OriginTable { origins, names, .. } = origins;
        let names = names.resolve(&load.network.sources, stop)?;
        let (rows, replay) = (rows.rows, Some(Arc::new(replay)));
        Ok(Self { origins, rows, names, replay, ..Self::empty(load.clone()) })
    }

    /// The same for connections that are opened for their own sake: requests open them, and behind those are the ones that keep them alive.
    fn of_sessions(load: &Load, rows: Vec<RowKey>, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let table = SessionTable::new(load, rows)?;
        let SessionTable { origins, names, rows, mut requests, pings, weights, config, .. } = table;
        requests.extend(pings);
        let names = names.resolve(&load.network.sources, stop)?;
        let (rotation, sessions) = (rotation(&weights)?, Some(PreparedSessions::new(load, config)));
        Ok(Self { requests, rotation, origins, rows, names, sessions, ..Self::empty(load.clone()) })
    }

    /// A load whose requests a driver decides.
    pub(crate) fn for_driver(load: &Load) -> Self {
        let plain = HttpLoad {
            requests: Vec::new(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect::default(),
            timeout: squall_plan::limits::DURATION_MAX,
        };
        let load = Load { what: What::Http(plain), ..load.clone() };
        Self { book: Some(Arc::default()), ..Self::empty(load) }
    }

    /// The same for one shard, which adds origins of its own to it.
    pub(crate) fn for_shard(&self) -> Self {
        let (rows, book, qlog) = (self.rows.clone(), self.book.clone(), self.qlog.clone());
        Self { rows, book, qlog, ..Self::empty(self.load.clone()) }
    }

    fn empty(load: Load) -> Self {
        let qlog = load.connections.quic.qlog_dir.as_deref().map(|folder| Arc::new(QlogFiles::new(folder)));
        Self {
            requests: Vec::new(),
            rotation: Vec::new(),
            origins: Vec::new(),
            rows: Vec::new(),
            names: Arc::default(),
            load,
            replay: None,
            book: None,
            sessions: None,
            streams: None,
            qlog,
        }
    }

    /// Prepares a request that a driver has decided: its origin, its row, its bytes. A name that is new is looked up.
    pub(crate) fn prepare_call(
        &mut self,
        spec: &Spec,
        route: &Route,
        offer: Option<&Offer>,
    ) -> Result<PreparedRequest, Error> {
        let plan = &offer.map_or(Cow::Borrowed(&spec.plan), |offer| Cow::Owned(offer.opening(&spec.plan)));
        if let Some(forbidden) = route.forbidden {
            return Err(forbidden.into());
        }
        let own = |origin: &&Origin| origin.key.tls_idx == 0 && origin.tls.is_some();
        let shared = self.origins.iter().find(own).and_then(|origin| origin.tls.as_ref());
        let mut table = OriginTable {
            network: &self.load.network,
            h2c: self.load.connections.h2c,
            tls: &self.load.tls,
            config: shared.map(|tls| Arc::clone(&tls.config)),
            route: Some(route),
            follows_alternatives: false,
            origins: std::mem::take(&mut self.origins),
            names: std::mem::take(Arc::get_mut(&mut self.names).ok_or_else(in_use)?),
        };
        let origin_idx = table.index_of(&plan.url, plan.http);
        let OriginTable { origins, mut names, .. } = table;
        let resolved = match origin_idx.as_ref().map(|idx| &origins[*idx].dial) {
            Ok(Dial::Tcp { name_idx, .. }) => names.look_up_if_missing(*name_idx, route.dns),
            _ => Ok(()),
        };
        self.origins = origins;
        self.names = Arc::new(names);
        let origin_idx = origin_idx?;
        resolved?;
        self.check_allowed(origin_idx, route)?;
        let origin = &self.origins[origin_idx];
        let (versions, key) = ((origin.key.http, origin.may_speak_h3()), origin.key.clone());
        let rows = self.rows_of(spec, &key);
        let forwarder = self.load.network.proxy.as_ref().filter(|_| plan.url.scheme() == "http");
        let template =
            Template { plan, versions, origin_idx: origin_idx as u32, rows, follows: false, protocol: None };
        let mut request = template.encode("", open_body(&plan.body)?, forwarder, None)?;
        if offer.is_some() {
            request.kind = RequestKind::Upgrade;
        }
        Ok(request)
    }

    /// The row in which a call is counted that could not be prepared; `None`: its URL is none.
    pub(crate) fn row_of_refused(&mut self, spec: &Spec) -> Option<u32> {
        let key = OriginKey::of(&spec.plan.url, spec.plan.http)?;
        Some(self.rows_of(spec, &key).unsent())
    }

    fn rows_of(&mut self, spec: &Spec, key: &OriginKey) -> VersionRows {
        let Some(book) = &self.book else { return VersionRows::default() };
        let rows = book.rows_of(&spec.scenario, &spec.plan, key);
        if self.rows.len() <= rows.last() as usize {
            self.rows = book.rows();
        }
        rows
    }

    /// Refuses an origin that may not be dialled.
    fn check_allowed(&self, origin_idx: usize, route: &Route) -> Result<(), Error> {
        let Dial::Tcp { name_idx, .. } = &self.origins[origin_idx].dial else { return Ok(()) };
        // An IPv4 address reaches the same host when it is written as an IPv6 one (RFC 4291 2.5.5.2).
        let is_forbidden = |address: &IpAddr| {
            let forms = [*address, address.to_canonical(), as_ipv6(address)];
            route.forbidden_networks.iter().any(|net| forms.iter().any(|form| net.contains(form)))
        };
        if self.names.addresses(*name_idx).iter().any(is_forbidden) {
            return Err(Forbidden::Address.into());
        }
        Ok(())
    }

    /// Pools of connections that are opened, each with as many as the plan says: those without a request load are in one.
    pub(crate) fn pool_count(&self) -> u64 {
        if self.sessions.is_some() { 1 } else { self.target_count() }
    }

    /// Origins that the plan's requests lead to, those of redirects left out.
    fn target_count(&self) -> u64 {
        if self.replay.is_some() {
            return self.origins.iter().filter(|origin| !origin.key.is_held).count() as u64;
        }
        let highest = self.requests.iter().map(|request| request.origin_idx).max();
        highest.map_or(0, |idx| u64::from(idx) + 1)
    }

    /// Whether any connection may turn out to be HTTP/2.
    pub(crate) fn may_speak_h2(&self) -> bool {
        self.origins.iter().any(|origin| origin.key.http != HttpVersion::Http11)
    }

    /// Whether the requests of this load open WebSockets.
    pub(crate) fn opens_websockets(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.websocket.is_some())
    }

    /// Whether any of them is a stream of an HTTP/2 or HTTP/3 connection.
    pub(crate) fn carries_websockets(&self) -> bool {
        self.opens_websockets() && self.may_speak_h2()
    }

    /// The most requests that a connection of this load carries at a time: a closed model has as many users for each.
    pub(crate) fn requests_per_connection(&self) -> u32 {
        if self.sessions.is_some() {
            return 1;
        }
        let policy = &self.load.connections;
        let of = |origin: &Origin| match origin.key.http {
            HttpVersion::Http11 => policy.pipeline_depth,
            HttpVersion::Http2 | HttpVersion::Http3 => policy.stream_count,
            HttpVersion::Auto => policy.pipeline_depth.max(policy.stream_count),
        };
        let planned = self.origins.iter().take(self.target_count() as usize);
        planned.map(of).max().map_or(1, std::num::NonZero::get)
    }

    /// How requests are made, and their responses judged.
    pub(crate) fn http(&self) -> &HttpLoad {
        match (&self.load.what, &self.sessions) {
            (_, Some(sessions)) => &sessions.http,
            (What::Http(http) | What::Stream(StreamLoad { http, .. }), _) => http,
            (What::Replay(replay), _) => &replay.http,
            _ => unreachable!("what is prepared for a driver has a plain HTTP load"),
        }
    }

    /// The request that opens a stream again. Without an id from the server, a `Last-Event-ID` of the plan stays.
    pub(crate) fn resumed(
        &self,
        request: &PreparedRequest,
        resumption: StreamResumption,
    ) -> Option<PreparedRequest> {
        let Source { plan, user_agent } = request.source.as_deref()?;
        let mut plan = plan.clone();
        if let Some(last_id) = &resumption.last_id {
            plan.headers.retain(|header| !header.name.eq_ignore_ascii_case(LAST_EVENT_ID));
            let value = String::from_utf8_lossy(last_id).into_owned();
            let header = Header { name: LAST_EVENT_ID.to_owned(), value };
            plan.headers.extend((!last_id.is_empty()).then_some(header));
        }
        let origin = &self.origins[request.origin_idx as usize];
        let forwarder = self.load.network.proxy.as_ref().filter(|_| !origin.key.is_tls);
        let template = Template {
            plan: &plan,
            versions: (origin.key.http, origin.may_speak_h3()),
            origin_idx: request.origin_idx,
            rows: request.rows,
            follows: true,
            protocol: None,
        };
        let resumed = template.encode(user_agent, request.file.clone(), forwarder, None).ok()?;
        Some(PreparedRequest { resumption: Some(Arc::new(resumption)), ..resumed })
    }

    /// The request that follows a redirect (RFC 9110 15.4), or why it cannot be followed.
    pub(crate) fn redirected(
        &self,
        request: &PreparedRequest,
        status: u16,
        location: Option<&str>,
    ) -> Result<PreparedRequest, String> {
        let Source { plan: source, user_agent } =
            request.source.as_deref().ok_or("redirects are not followed")?;
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
            versions: (key.http, self.origins[origin_idx].may_speak_h3()),
            origin_idx: origin_idx as u32,
            rows: request.rows,
            follows: true,
            protocol: None,
        };
        let keeps_body = plan.body != Body::Empty;
        let file = request.file.clone().filter(|_| keeps_body);
        let redirected = template.encode(user_agent, file, forwarder, None);
        let redirected = redirected.map_err(|error| error.to_string())?;
        Ok(PreparedRequest { resumption: request.resumption.clone(), ..redirected })
    }
}

/// WHATWG HTML, 9.2.4.
const LAST_EVENT_ID: &str = "Last-Event-ID";

fn as_ipv6(address: &IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(_) => *address,
    }
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

fn in_use() -> Error {
    Error::Plan { problem: "the names are in use".to_owned(), help: "this is a bug in squall".to_owned() }
}
