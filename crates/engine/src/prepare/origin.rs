//! Where requests go: collects the origins of a load, how each is dialled, and what is said there before any request.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_plan::{H2c, HttpLoad, HttpVersion, Load, Network, Proxy, TlsPolicy, TlsVersions};
use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h2::FieldTable;
use url::Url;

use super::encode::encode;
use super::route::Route;
use crate::dns::Names;
use crate::{Error, Remedy, tls};

/// Where requests go: scheme, host, and port, and how to get there.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Scheme, host and port, by which redirects find it.
    pub(crate) key: OriginKey,
    /// What to connect to.
    pub(crate) dial: Dial,
    /// Its connections are QUIC's.
    pub(crate) is_quic: bool,
    /// What is said before anything else.
    pub(crate) prelude: Option<Prelude>,
    /// TLS, where the scheme is https.
    pub(crate) tls: Option<OriginTls>,
    /// TLS within QUIC, where its connections begin with TCP and move to HTTP/3 once it announces that.
    pub(crate) alternative: Option<OriginTls>,
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
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) http: HttpVersion,
    /// Number of the TLS settings of its own that its calls have; 0: the load's.
    pub(super) tls_idx: u32,
    /// Its connections become WebSockets, of which as many are open as are wanted.
    pub(crate) is_held: bool,
}

impl Origin {
    /// Requests to it may be sent in HTTP/3.
    pub(crate) fn may_speak_h3(&self) -> bool {
        self.is_quic || self.alternative.is_some()
    }

    /// Its connections begin in HTTP/1.1, and are upgraded.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.prelude.as_ref().is_some_and(|prelude| prelude.kind == RequestKind::Upgrade)
    }
}

impl OriginKey {
    pub(super) fn new(is_tls: bool, host: &str, port: u16, http: HttpVersion) -> Self {
        Self { is_tls, host: host.to_owned(), port, http, tls_idx: 0, is_held: false }
    }

    /// `http`: as asked for. Over plain TCP nothing is negotiated.
    pub(super) fn of(url: &Url, http: HttpVersion) -> Option<Self> {
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        // A redirect may lead from https to http.
        let needs_tls = matches!(http, HttpVersion::Auto | HttpVersion::Http3);
        let http = if needs_tls && !is_tls { HttpVersion::Http11 } else { http };
        Some(Self::new(is_tls, url.host_str()?, url.port_or_known_default()?, http))
    }
}

/// Collects origins and the names they need.
pub(super) struct OriginTable<'a> {
    pub(super) network: &'a Network,
    pub(super) tls: &'a TlsPolicy,
    pub(super) h2c: H2c,
    pub(super) config: Option<Arc<ClientConfig>>,
    /// Of a call: how it reaches its host.
    pub(super) route: Option<&'a Route>,
    /// Announcements of HTTP/3 are followed.
    pub(super) follows_alternatives: bool,
    pub(super) origins: Vec<Origin>,
    pub(super) names: Names,
}

impl<'a> OriginTable<'a> {
    pub(super) fn new(load: &'a Load) -> Self {
        let Load { network, tls, connections, .. } = load;
        Self {
            network,
            tls,
            h2c: connections.h2c,
            config: None,
            route: None,
            follows_alternatives: false,
            origins: Vec::new(),
            names: Names::default(),
        }
    }

    /// Announcements of HTTP/3 are followed, where QUIC can be spoken.
    pub(super) fn follow_alternatives(&mut self) {
        let Network { proxy, unix_socket, .. } = self.network;
        let TlsPolicy { versions, alpn, .. } = self.tls;
        self.follows_alternatives = proxy.is_none()
            && unix_socket.is_none()
            && *versions != TlsVersions::Tls12
            // Whoever names the protocols of TLS has decided what is spoken.
            && alpn.is_empty();
    }

    /// The proxy that forwards requests to this URL itself, rather than tunnelling them.
    pub(super) fn forwarder(&self, url: &Url) -> Option<&'a Proxy> {
        self.network.proxy.as_ref().filter(|_| url.scheme() == "http")
    }

    pub(super) fn index_of(&mut self, url: &Url, http: HttpVersion) -> Result<usize, Error> {
        let key = OriginKey::of(url, http).ok_or_else(|| Error::Plan {
            problem: format!("`{url}` is not an http or https URL with a host"),
            help: "write it as http://host:port/path".to_owned(),
        })?;
        if http == HttpVersion::Http3 {
            self.refuse_without_quic(url, &key)?;
        }
        let own_tls = self.route.and_then(|route| route.tls.as_ref()).map_or(0, |(tls_idx, _)| *tls_idx);
        self.index_of_key(OriginKey { tls_idx: own_tls, ..key })
    }

    /// The same for WebSockets, whose connections carry nothing else.
    pub(super) fn index_for_websockets(&mut self, url: &Url) -> Result<usize, Error> {
        let idx = self.index_of(url, HttpVersion::Http11)?;
        let key = self.origins[idx].key.clone();
        self.index_of_key(OriginKey { is_held: true, ..key })
    }

    /// QUIC needs TLS, and the way that UDP takes.
    fn refuse_without_quic(&self, url: &Url, key: &OriginKey) -> Result<(), Error> {
        let (option, problem, instead) = match self.network {
            _ if !key.is_tls => {
                let problem = format!("HTTP/3 needs TLS, and `{url}` is not an https URL");
                ("http", problem, "use an https URL")
            }
            _ if self.tls.versions == TlsVersions::Tls12 => {
                ("tls", "HTTP/3 needs TLS 1.3, the only version that QUIC carries".to_owned(), "use TLS 1.3")
            }
            Network { proxy: Some(_), .. } => {
                let problem = "HTTP/3 cannot go through an HTTP proxy: QUIC is not TCP".to_owned();
                ("proxy", problem, "use another version of HTTP")
            }
            Network { unix_socket: Some(_), .. } => {
                let problem = "HTTP/3 cannot go through a Unix socket: QUIC needs UDP".to_owned();
                ("unix-socket", problem, "use another version of HTTP")
            }
            _ => return Ok(()),
        };
        Err(Error::Option { option, problem, remedy: Remedy::LeaveOut(instead.to_owned()) })
    }

    fn index_of_key(&mut self, key: OriginKey) -> Result<usize, Error> {
        if let Some(idx) = self.origins.iter().position(|origin| origin.key == key) {
            return Ok(idx);
        }
        let has_alternative = self.follows_alternatives && key.is_tls && key.http == HttpVersion::Auto;
        let origin = Origin {
            dial: self.dial(&key),
            is_quic: key.http == HttpVersion::Http3,
            prelude: self.prelude(&key)?,
            tls: key.is_tls.then(|| self.origin_tls(&key, key.http)).transpose()?,
            alternative: has_alternative.then(|| self.origin_tls(&key, HttpVersion::Http3)).transpose()?,
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
    pub(super) fn add_redirect_origins(&mut self, http: &HttpLoad) -> Result<(), Error> {
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

    fn origin_tls(&mut self, key: &OriginKey, http: HttpVersion) -> Result<OriginTls, Error> {
        let own = self.route.and_then(|route| route.tls.as_ref()).map(|(_, config)| config);
        let config = match own.or(self.config.as_ref()) {
            Some(config) => Arc::clone(config),
            None => Arc::clone(self.config.insert(tls::client_config(self.tls)?)),
        };
        let name = self.tls.sni.as_deref().unwrap_or(&key.host);
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        let server_name = ServerName::try_from(bare.to_owned()).map_err(|error| Error::Option {
            option: "sni",
            problem: format!("`{name}` cannot be a TLS server name: {error}"),
            remedy: Remedy::Set("give a valid name", "NAME"),
        })?;
        Ok(OriginTls { config: tls::for_version(&config, self.tls, http), server_name })
    }
}

/// curl's `--connect-to`: the first matching rule.
pub(crate) fn connect_to(network: &Network, host: &str, port: u16) -> (String, u16) {
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

/// Proxies forward HTTP/1.1; only a tunnel, which https gets, carries anything.
pub(super) fn refuse_forwarded_h2(key: &OriginKey, forwarder: Option<&Proxy>) -> Result<(), Error> {
    if forwarder.is_none() || key.http != HttpVersion::Http2 {
        return Ok(());
    }
    Err(Error::Option {
        option: "proxy",
        problem: format!("h2c to `{}:{}` cannot go through an HTTP proxy", key.host, key.port),
        remedy: Remedy::LeaveOut("use an https URL, which the proxy tunnels".to_owned()),
    })
}
